//! Tests of the room as a whole. What a spelling looks like is written down here a second time, by hand, so that the
//! code is not judged by itself.

mod kinds;
mod properties;
mod table;

use super::*;

/// The folder of the corpus: a space, Chinese, brackets, a plus.
const OLD: &str = "/Users/me/Cloud Drive/工作 (old)+[1]/workbuddy_home";
const NEW: &str = "/Users/me/家 (new)+[2]/wb";

fn rewriter(pairs: &[(&str, &str)]) -> Rewriter {
    with(pairs, Options::default())
}

fn with(pairs: &[(&str, &str)], options: Options) -> Rewriter {
    let mappings = pairs.iter().map(|(old, new)| Mapping {
        old: (*old).to_owned(),
        new: (*new).to_owned(),
    });
    Rewriter::new(mappings.collect(), options).expect("the mappings are sound")
}

fn at_home() -> Options {
    Options {
        user_home: Some("/Users/me".to_owned()),
        ..Options::default()
    }
}

/// Rewrites as a whole and in small pieces, which must agree.
fn run_bytes(rewriter: &Rewriter, kind: TextKind, input: &[u8]) -> (Vec<u8>, Found) {
    let mut out = Vec::new();
    let found = rewriter.rewrite(kind, input, &mut out);
    for size in [1, 7, 1000] {
        assert_eq!(
            streamed(rewriter, kind, input, &[size]),
            (out.clone(), found.clone()),
            "in pieces of {size}"
        );
    }
    (out, found)
}

fn run(rewriter: &Rewriter, kind: TextKind, input: &str) -> (String, Found) {
    let (out, found) = run_bytes(rewriter, kind, input.as_bytes());
    (String::from_utf8(out).expect("text stays text"), found)
}

fn streamed(
    rewriter: &Rewriter,
    kind: TextKind,
    input: &[u8],
    sizes: &[usize],
) -> (Vec<u8>, Found) {
    let (mut out, mut found) = (Vec::new(), Found::default());
    let mut stream = rewriter.stream(kind);
    let mut rest = input;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at(rest.len().min((*size).max(1)));
        stream.push(chunk, &mut out);
        found.merge(stream.drain());
        rest = after;
    }
    stream.finish(&mut out);
    found.merge(stream.drain());
    (out, found)
}

/// One way to write a path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    Slashed,
    Ascii,
    AsciiUpper,
    AsciiSlashed,
    Nested,
    NestedSlashed,
    NestedAscii,
    Url,
    UrlLower,
    UrlNode,
    UrlComponent,
    Shell,
    ShellInJson,
}

const WAYS: &[Way] = &[
    Way::Plain,
    Way::Slashed,
    Way::Ascii,
    Way::AsciiUpper,
    Way::AsciiSlashed,
    Way::Nested,
    Way::NestedSlashed,
    Way::NestedAscii,
    Way::Url,
    Way::UrlLower,
    Way::UrlNode,
    Way::UrlComponent,
    Way::Shell,
    Way::ShellInJson,
];

impl Way {
    fn write(self, path: &str) -> String {
        match self {
            Way::Plain | Way::Nested => path.to_owned(),
            Way::Slashed => path.replace('/', "\\/"),
            Way::Ascii => ascii(path, "\\", false),
            Way::AsciiUpper => ascii(path, "\\", true),
            Way::AsciiSlashed => ascii(path, "\\", false).replace('/', "\\/"),
            Way::NestedSlashed => path.replace('/', "\\\\/"),
            Way::NestedAscii => ascii(path, "\\\\", false),
            Way::Url => percent(path, "/_.-~", true),
            Way::UrlLower => percent(path, "/_.-~", false),
            Way::UrlNode => percent(path, "/_.-~()+[]&;'$*", true),
            Way::UrlComponent => percent(path, "_.-~", true),
            Way::Shell => shell(path, "\\"),
            Way::ShellInJson => shell(path, "\\\\"),
        }
    }

    fn spelling(self) -> Spelling {
        match self {
            Way::Plain | Way::Nested => Spelling::Plain,
            Way::Slashed | Way::Ascii | Way::AsciiUpper | Way::AsciiSlashed => Spelling::Json,
            Way::NestedSlashed | Way::NestedAscii => Spelling::JsonNested,
            Way::Url | Way::UrlLower | Way::UrlNode | Way::UrlComponent => Spelling::Url,
            Way::Shell | Way::ShellInJson => Spelling::Shell,
        }
    }

    /// What may stand on both sides of a path in such a text: where the table wants a boundary, a letter, a name.
    fn around(self, text: &str) -> String {
        match self {
            // In a URL the brackets of a mark stay as they are as often as not.
            Way::Url | Way::UrlLower | Way::UrlComponent => percent(
                text,
                "/_.-~()+[]&;'$*\"`<>,:=!#?{}，。（）\n",
                self != Way::UrlLower,
            ),
            Way::UrlNode => percent(text, "/_.-~()+[]&;'$*\"`<>,:=!#?{}\n", true),
            Way::Shell | Way::ShellInJson => text.to_owned(),
            Way::Nested => text
                .replace('\\', "\\\\\\\\")
                .replace('\n', "\\\\n")
                .replace('"', "\\\\\\\""),
            _ if self.spelling() == Spelling::Json => {
                let text = text
                    .replace('\\', "\\\\")
                    .replace('\n', "\\n")
                    .replace('"', "\\\"");
                self.write(&text)
            }
            _ => text.to_owned(),
        }
    }
}

fn ascii(path: &str, backslash: &str, upper: bool) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let digits = if upper {
                format!("{unit:04X}")
            } else {
                format!("{unit:04x}")
            };
            out += &format!("{backslash}u{digits}");
        }
    }
    out
}

fn percent(path: &str, safe: &str, upper: bool) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if c.is_ascii_alphanumeric() || safe.contains(c) {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            out += &if upper {
                format!("%{byte:02X}")
            } else {
                format!("%{byte:02x}")
            };
        }
    }
    out
}

fn shell(path: &str, backslash: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if " ()[]&;'$*?".contains(c) {
            out += backslash;
        }
        out.push(c);
    }
    out
}
