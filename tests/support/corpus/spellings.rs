//! The old path in every spelling in which programs write it, and beside it what only looks like it.

use super::text::{Doc, Style};
use super::{ELSEWHERE, Planted};

/// The paths of a session, escaped for one style of JSON.
pub struct Paths {
    /// The session's folder, inside a JSON string.
    pub here: String,
    /// The same inside a JSON string that stands inside another one.
    pub nested: String,
    /// The home.
    pub old: String,
}

impl Paths {
    pub fn new(style: Style, old: &str, folder: &str) -> Paths {
        let here = format!("{old}/{folder}");
        Paths {
            here: style.escape(&here),
            nested: style.escape_twice(&here),
            old: style.escape(old),
        }
    }
}

/// A page of notes with one spelling a line, in plain text.
pub fn notes(old: &str, user_home: Option<&str>, folder: &str) -> Doc {
    let here = format!("{old}/{folder}");
    let (upper, lower) = (percent(old, false, b""), percent(old, true, b""));
    // Node leaves these as they are: <https://url.spec.whatwg.org/#path-percent-encode-set>
    let node = percent(old, false, b"()[]+");
    let mut doc = Doc::default();
    doc.raw("# Where things are\n\n").cut();
    let references = |count| Planted {
        references: count,
        ..Planted::default()
    };
    let mut line = |name: &str, text: String, planted: Planted| {
        doc.raw(name)
            .raw(": ")
            .counted(&text, planted)
            .raw("\n")
            .cut();
    };
    line("plain", format!("{here}/a.md"), references(1));
    line(
        "quoted",
        format!("\"{old}\" '{old}' `{old}` <{old}> ({old}) [{old}]"),
        references(6),
    );
    line(
        "list",
        format!("{old}; {old}, {old}:{here} ={old} {old}|{here}"),
        references(7),
    );
    line(
        "url",
        format!("file://{upper}/{folder}/a.md and file://{lower}/{folder}/b.md, file://{node}"),
        references(3),
    );
    line(
        "shell",
        format!("cd {}/{folder} && ls '{old}'", backslashed(old)),
        references(2),
    );
    line(
        "sentence",
        format!("See {old}. Then {old}! Also {old}... and {old}? At the end {old}"),
        references(5),
    );
    line(
        "中文",
        format!("在{old}/{folder}里，（{old}）。打开{old}。见《{old}》"),
        references(4),
    );
    line("table", format!("| {old} | {here} |"), references(2));
    line("windows line end", format!("{old}\r"), references(1));
    let stays = |count| Planted {
        stays: count,
        ..Planted::default()
    };
    line(
        "siblings",
        format!("{old}2/keep {old}-2/keep {old}_old/keep {old}.bak/keep {old}~ {old}+x/keep"),
        stays(6),
    );
    line(
        "longer",
        format!("/Volumes/Backup{old}/keep ./x{old}/keep ..{old}/keep"),
        stays(3),
    );
    line(
        "sync copies",
        format!("{old} (1)/keep {old}(1)/keep {old} 2/keep"),
        stays(3),
    );
    line(
        "sibling urls",
        format!("file://{upper}-2/keep file://{lower}2/keep"),
        stays(2),
    );
    let doubtful = |count| Planted {
        doubtful: count,
        ..Planted::default()
    };
    line(
        "who knows",
        format!("{old}目录下的文件 {old}的副本/keep file://{upper}%E7%9A%84/keep"),
        doubtful(3),
    );
    let elsewhere = Planted {
        elsewhere: 2,
        ..Planted::default()
    };
    line(
        "before the move",
        format!("{ELSEWHERE}/{folder}/a.md \"{ELSEWHERE}/{folder}\""),
        elsewhere,
    );
    if let Some(rest) = user_home.and_then(|home| old.strip_prefix(home)) {
        let from_home = |count| Planted {
            from_home: count,
            ..Planted::default()
        };
        line(
            "home",
            format!("~{rest}/{folder}/a.md $HOME{rest}/{folder}"),
            from_home(2),
        );
        line(
            "home sibling",
            format!("~{rest}2/keep $HOME{rest}-2/keep"),
            stays(2),
        );
    }
    doc
}

/// Tool calls, one a line, as JSON writers of several kinds leave them.
pub fn calls(old: &str, folder: &str) -> Doc {
    let here = format!("{old}/{folder}");
    let mut doc = Doc::default();
    for style in Style::ALL {
        let once = |text: &str| style.escape(text);
        doc.raw("{\"tool\":\"edit\",\"path\":\"")
            .reference(&once(&format!("{here}/a.md")));
        doc.raw("\",\"lines\":\"see\\n")
            .reference(&once(&here))
            .raw("\\tand\\t")
            .reference(&once(old));
        doc.raw("\\n\",\"command\":\"")
            .reference(&once(&format!("cd {}/{folder}", backslashed(old))));
        doc.raw("\",\"url\":\"").reference(&once(&format!(
            "file://{}/{folder}",
            percent(old, false, b"")
        )));
        let inner = format!("{{\"cwd\":\"{}\",\"n\":1.50}}", once(&here));
        doc.raw("\",\"nested\":\"").reference(&once(&inner));
        // The inner writer escapes slashes, the outer one does not.
        let mixed = format!("{{\"cwd\":\"{}\"}}", Style::Slashes.escape(&here));
        doc.raw("\",\"mixed\":\"")
            .reference(&Style::Utf8.escape(&mixed));
        let sibling = |tail: &str| once(&format!("{old}{tail}"));
        let stays = Planted {
            stays: 3,
            ..Planted::default()
        };
        let text = format!(
            "\",\"keep\":[\"{}\",\"{}\",\"{}\"]",
            sibling("2/x"),
            sibling("-2/x"),
            sibling("_old")
        );
        doc.counted(&text, stays);
        let doubtful = Planted {
            doubtful: 1,
            ..Planted::default()
        };
        doc.counted(&format!(",\"maybe\":\"{}\"", sibling("的副本/x")), doubtful);
        doc.raw(",\"id\":12345678901234567890,\"id\":2}\n").cut();
    }
    doc
}

/// Percent-encoded as in a `file://` URL, but for the bytes that this writer leaves `plain`.
fn percent(path: &str, lower_case: bool, plain: &[u8]) -> String {
    let mut out = String::with_capacity(path.len() * 3);
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => {
                out.push(char::from(byte))
            }
            _ if lower_case => out.push_str(&format!("%{byte:02x}")),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Escaped for a shell without quotes.
fn backslashed(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    for c in path.chars() {
        if " ()[]&;'\"$*?`".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
