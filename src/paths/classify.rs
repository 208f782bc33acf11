//! Is this file text that may be rewritten, and of what kind; or binary, which is only ever reported.
//!
//! A name decides first, because transcripts may hold runs of NULs (a power cut) and are text all the same.

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// One JSON value (or several): references stand inside strings.
    Json,
    /// One JSON value a line; a line that is torn must not confuse the next.
    JsonLines,
    /// Any other text, in UTF-8 or something close to it.
    Other,
    /// UTF-16, little endian, with its mark.
    Utf16Le,
    /// UTF-16, big endian, with its mark.
    Utf16Be,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// May be rewritten.
    Text(TextKind),
    /// May only be searched.
    Binary,
}

/// https://www.sqlite.org/fileformat2.html#magic_header_string
const SQLITE: &[u8] = b"SQLite format 3\0";

/// How much of a file decides about it.
pub const HEAD: usize = 64 * 1024;

/// What a file of this name is that begins with `head`. Only the first [`HEAD`] bytes are looked at.
pub fn classify(name: &[u8], head: &[u8]) -> Content {
    let head = &head[..head.len().min(HEAD)];
    if head.starts_with(SQLITE) {
        return Content::Binary;
    }
    let named = named(name);
    match head {
        [0xFF, 0xFE, 0, 0, ..] if named.is_none() => return Content::Binary, // UTF-32, or no text at all
        [0xFF, 0xFE, rest @ ..] if is_utf16(rest, u16::from_le_bytes) => {
            return Content::Text(TextKind::Utf16Le);
        }
        [0xFE, 0xFF, rest @ ..] if is_utf16(rest, u16::from_be_bytes) => {
            return Content::Text(TextKind::Utf16Be);
        }
        _ => {}
    }
    match named {
        Some(_) if is_records(head) => Content::Binary,
        Some(kind) => Content::Text(kind),
        None if memchr::memchr(0, head).is_some() => Content::Binary,
        None => Content::Text(sniff(head)),
    }
}

/// A mark of two bytes can begin anything: what follows must be mostly sound UTF-16. It need not be wholly so
/// (Windows allows lone surrogates in names), and is preserved either way.
fn is_utf16(rest: &[u8], unit: fn([u8; 2]) -> u16) -> bool {
    let mut bad = 0usize;
    let mut high = false;
    for pair in rest.chunks_exact(2) {
        let u = unit([pair[0], pair[1]]);
        let low = (0xDC00..0xE000).contains(&u);
        bad += usize::from(high != low) + usize::from(matches!(u, 0 | 0xFFFE | 0xFFFF));
        high = (0xD800..0xDC00).contains(&u);
    }
    bad <= rest.len() / 200 + 1
}

/// A name can lie: the `000003.log` of a LevelDB (Electron's `local_storage`) holds records with lengths and
/// checksums, which a change would break. A power cut leaves NULs, and no other control characters than those of terminals.
/// https://github.com/google/leveldb/blob/main/doc/log_format.md
fn is_records(head: &[u8]) -> bool {
    let stray = |b: &&u8| matches!(b, 1..=6 | 0x0E..=0x1A | 0x1C..=0x1F);
    memchr::memchr(0, head).is_some() && head.iter().filter(stray).nth(1).is_some()
}

/// What the name says. Left out are suffixes that binary formats share (`.ts`, `.m`, `.d`): such files are text by
/// their content, or not at all.
fn named(name: &[u8]) -> Option<TextKind> {
    let name = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
    let dot = name.iter().rposition(|b| *b == b'.')?;
    let suffix = name.get(dot + 1..)?.to_ascii_lowercase();
    Some(match suffix.as_slice() {
        b"json" | b"jsonc" | b"json5" | b"code-workspace" | b"ipynb" | b"geojson" | b"map"
        | b"webmanifest" => TextKind::Json,
        b"jsonl" | b"ndjson" => TextKind::JsonLines,
        suffix if TEXT.contains(&suffix) => TextKind::Other,
        _ => return None,
    })
}

const TEXT: &[&[u8]] = &[
    // prose, tables, settings
    b"md",
    b"markdown",
    b"mdx",
    b"txt",
    b"text",
    b"rst",
    b"adoc",
    b"org",
    b"tex",
    b"log",
    b"yaml",
    b"yml",
    b"toml",
    b"ini",
    b"cfg",
    b"conf",
    b"config",
    b"env",
    b"properties",
    b"csv",
    b"tsv",
    b"xml",
    b"html",
    b"htm",
    b"xhtml",
    b"svg",
    b"css",
    b"scss",
    b"less",
    b"srt",
    b"vtt",
    b"diff",
    b"patch",
    // source code
    b"py",
    b"pyi",
    b"js",
    b"mjs",
    b"cjs",
    b"jsx",
    b"tsx",
    b"vue",
    b"svelte",
    b"rs",
    b"go",
    b"c",
    b"h",
    b"cc",
    b"cpp",
    b"cxx",
    b"hpp",
    b"hh",
    b"java",
    b"kt",
    b"kts",
    b"scala",
    b"swift",
    b"cs",
    b"fs",
    b"rb",
    b"php",
    b"lua",
    b"r",
    b"jl",
    b"dart",
    b"ex",
    b"exs",
    b"erl",
    b"hs",
    b"clj",
    b"sh",
    b"bash",
    b"zsh",
    b"fish",
    b"ps1",
    b"psm1",
    b"bat",
    b"cmd",
    b"sql",
    b"graphql",
    b"proto",
    b"gradle",
    b"cmake",
    b"mk",
    b"tf",
    b"nix",
    b"service",
    b"timer",
    b"desktop",
];

/// JSON under another name (a transcript saved as `.bak`, a lock file) is read as JSON.
fn sniff(head: &[u8]) -> TextKind {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let text = text.trim_ascii_start();
    let json = match text {
        [b'{', rest @ ..] => matches!(rest.trim_ascii_start().first(), Some(b'"' | b'}')),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start().first(), Some(b'"' | b'{')),
        _ => false,
    };
    if !json {
        return TextKind::Other;
    }
    match memchr::memchr(b'\n', text).and_then(|end| Some((text.get(..end)?, text.get(end + 1)?))) {
        Some((line, b'{')) if line.trim_ascii_end().ends_with(b"}") => TextKind::JsonLines,
        _ => TextKind::Json,
    }
}
