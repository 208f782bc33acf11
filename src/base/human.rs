//! Numbers, sizes, ages and names as a person reads them.
//!
//! Names come from the disk and may hold anything: [`escape`] keeps one from driving the terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `1,907`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 file`, `3 files`: the number and the noun that agrees with it.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `32.1 MB`: decimal units, as file managers and `df -H` show them.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `3 minutes ago`, `5 weeks ago`; `in the future` for a clock that jumped.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    let (n, unit) = match seconds {
        i64::MIN..=-60 => return "in the future".into(),
        -59..=59 => return "just now".into(),
        60..=3599 => (seconds / 60, "minute"),
        3600..=86_399 => (seconds / 3600, "hour"),
        86_400..=1_209_599 => (seconds / 86_400, "day"),
        1_209_600..=5_183_999 => (seconds / 604_800, "week"),
        5_184_000..=63_071_999 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    format!("{n} {unit}{} ago", if n == 1 { "" } else { "s" })
}

/// `3min`, `5w`: the same where there is little room.
pub fn brief_age(now: Timestamp, then: Timestamp) -> String {
    let age = age(now, then);
    let mut words = age.split(' ');
    match (words.next(), words.next()) {
        (Some(n), Some(unit)) if n.bytes().all(|b| b.is_ascii_digit()) => {
            let unit = match unit.trim_end_matches('s') {
                "minute" => "min",
                "month" => "mon",
                unit => &unit[..1],
            };
            format!("{n}{unit}")
        }
        (Some("in"), _) => "future".to_owned(),
        _ => "now".to_owned(),
    }
}

/// `2024-06-03 09:00`: a moment in the zone of whoever reads it.
pub fn moment(at: Timestamp, zone: TimeZone) -> String {
    let zoned = at.to_zoned_datetime(zone);
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2024-06-03 09:00:15`, in the same zone.
pub fn moment_to_the_second(at: Timestamp, zone: TimeZone) -> String {
    let zoned = at.to_zoned_datetime(zone);
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `1.2 s`, `4 min 10 s`: how long something took.
pub fn took(elapsed: std::time::Duration) -> String {
    let seconds = elapsed.as_secs();
    if seconds < 60 {
        format!("{:.1} s", elapsed.as_secs_f64())
    } else if seconds < 3600 {
        format!("{} min {} s", seconds / 60, seconds % 60)
    } else if seconds < 2 * 86_400 {
        format!("{} h {} min", seconds / 3600, seconds % 3600 / 60)
    } else {
        format!("{} days {} h", seconds / 86_400, seconds % 86_400 / 3600)
    }
}

/// A text with everything escaped that could move the cursor, colour the screen or reverse the text. What was escaped
/// already stays as it is, so that a sentence with names in it may go through once more; a name itself is shown by
/// [`name`] or [`path`].
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_unseen(c) {
            true => push_escaped(&mut out, c),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A name from the disk, the index or the command line, as [`escape`] shows a text. A backslash that would read as the
/// begin of an escape is doubled: two names never look the same because one spells out what is in the other.
pub fn name(name: &str) -> Cow<'_, str> {
    match name.contains('\\') || name.chars().any(is_unseen) {
        true => Cow::Owned(bytes(name.as_bytes())),
        false => Cow::Borrowed(name),
    }
}

/// What must not reach a terminal as it is, or can not be seen there.
///
/// Controls (C0, C1, DEL) drive it, bidirectional ones (UAX #9) reorder what stands beside them, line and paragraph
/// separators end a line, and of the rest nothing is seen. The joiners and variation selectors are not among them:
/// emoji and many scripts are written with them.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e00ff}')
}

/// `\xNN` is one byte, so that a character of several is never written like a byte that is not UTF-8.
fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_ascii() => {
            let _ = write!(out, "\\x{:02x}", c as u32);
        }
        c => {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        }
    }
}

/// A path for a person, as [`name`] shows a name; bytes that are not UTF-8 as `\xNN`.
pub fn path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    bytes(path.as_os_str().as_bytes())
}

/// A path for a person who copies it into a shell: quoted where it must be. What can not be seen, or is not UTF-8, is
/// told to the shell byte by byte.
pub fn quoted(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let name = path.as_os_str().as_bytes();
    match std::str::from_utf8(name) {
        Ok(text) if !text.chars().any(is_unseen) => {
            let plain =
                |b: u8| b.is_ascii_alphanumeric() || b"/._-~+@%:,=".contains(&b) || !b.is_ascii();
            match !text.is_empty() && text.bytes().all(plain) {
                true => text.to_owned(),
                false => format!("'{}'", text.replace('\'', "'\\''")),
            }
        }
        _ => coded(name),
    }
}

/// The id of a session, or a path that begins with one, for a person who copies a command: as [`quoted`], and after `--` where it would be taken for an
/// option. It stands last, since what follows a `--` is none.
pub fn argument(id: impl AsRef<Path>) -> String {
    let quoted = quoted(id.as_ref());
    match id.as_ref().as_os_str().as_encoded_bytes().starts_with(b"-") {
        true => format!("-- {quoted}"),
        false => quoted,
    }
}

/// The id, and the options of the command behind it: before it, where nothing can be an option behind it.
pub fn argument_with(id: &str, options: &str) -> String {
    let argument = argument(id);
    match id.starts_with('-') {
        true => format!("{options} {argument}"),
        false => format!("{argument} {options}"),
    }
}

/// `$'a\x1b'`, as bash and zsh read it.
fn coded(name: &[u8]) -> String {
    let mut out = String::from("$'");
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if is_unseen(c) => push_bytes(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        push_bytes(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Three digits are the most that a shell reads: the next character is never taken for one more.
        let _ = write!(out, "\\{byte:03o}");
    }
}

/// Bytes that should be a name, for a person: see [`name`].
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            let mut reads_as_escape = || match chars.peek() {
                Some(next) => {
                    matches!(next, '\\' | 'n' | 'r' | 't' | 'x' | 'u') || is_unseen(*next)
                }
                None => !chunk.invalid().is_empty(),
            };
            match c {
                c if is_unseen(c) => push_escaped(&mut out, c),
                '\\' if reads_as_escape() => out.push_str("\\\\"),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// JSON, which may have such characters only in its texts, with those written as `\uNNNN`: the same document, and
/// nothing in it drives a terminal.
pub fn json(document: &str) -> Cow<'_, str> {
    if !document.chars().any(is_unseen) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        match is_unseen(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// An operating-system error without the number that Rust appends.
pub fn io(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_lowercase(),
        // One that a library has made may tell of what it has read.
        None => escape(&text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes() {
        let counts: Vec<String> = [0, 999, 1000, 1_234_567].map(count).to_vec();
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes: Vec<String> = [0, 999, 1000, 999_949, 999_950, 32_100_000, u64::MAX]
            .map(size)
            .to_vec();
        assert_eq!(
            sizes,
            [
                "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "32.1 MB", "18.4 EB"
            ]
        );
    }

    #[test]
    fn an_id_is_no_option() {
        for (id, argument) in [
            ("任务", "任务"),
            ("a b", "'a b'"),
            ("-x", "-- -x"),
            ("--a b", "-- '--a b'"),
            ("a-b", "a-b"),
        ] {
            assert_eq!(super::argument(id), argument);
        }
        for (id, typed) in [("a b", "'a b' --from git"), ("-x", "--from git -- -x")] {
            assert_eq!(super::argument_with(id, "--from git"), typed);
        }
    }

    #[test]
    fn ages() {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        let ago = |s: i64| age(now, Timestamp::from_second(1_000_000_000 - s).unwrap());
        assert_eq!(ago(0), "just now");
        assert_eq!(ago(60), "1 minute ago");
        assert_eq!(ago(7200), "2 hours ago");
        assert_eq!(ago(86_400 * 13), "13 days ago");
        assert_eq!(ago(86_400 * 14), "2 weeks ago");
        assert_eq!(ago(86_400 * 400), "13 months ago");
        assert_eq!(ago(-3600), "in the future");
        let brief = |s: i64| brief_age(now, Timestamp::from_second(1_000_000_000 - s).unwrap());
        let all = [-3600, 0, 60, 7200, 86_400, 86_400 * 14, 86_400 * 400].map(brief);
        assert_eq!(all, ["future", "now", "1min", "2h", "1d", "2w", "13mon"]);
        assert_eq!(
            took(std::time::Duration::from_secs(57 * 3600)),
            "2 days 9 h"
        );
    }

    #[test]
    fn what_a_shell_would_cut_is_quoted() {
        let shown = |text: &str| quoted(Path::new(text));
        assert_eq!(shown("/home/我/wb"), "/home/我/wb");
        assert_eq!(shown("/a b/c"), "'/a b/c'");
        assert_eq!(shown("/it's"), "'/it'\\''s'");
        assert_eq!(shown(""), "''");
    }

    #[test]
    fn a_shell_reads_what_can_not_be_seen_byte_by_byte() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let shown = |bytes: &[u8]| quoted(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(shown(b"/a\\x1b"), r"'/a\x1b'");
        assert_eq!(shown(b"/a\x1b0\xff'\\"), r"$'/a\0330\377\'\\'");
        assert_eq!(shown("数\u{202e}".as_bytes()), r"$'数\342\200\256'");
    }

    #[test]
    fn a_name_can_not_drive_the_terminal() {
        assert_eq!(escape("数据清洗"), "数据清洗");
        assert_eq!(
            escape("a\u{1b}[31m\r\nb\u{202e}c\u{9b}"),
            "a\\x1b[31m\\r\\nb\\u{202e}c\\u{9b}"
        );
        assert_eq!(bytes(b"a\xff\x1b"), "a\\xff\\x1b");
        // Emoji and Persian are written with joiners; a mark at the begin of a file is not seen.
        assert_eq!(name("👩‍💻🕷️ می‌خواهم"), "👩‍💻🕷️ می‌خواهم");
        assert_eq!(name("\u{feff}a\u{e0041}"), "\\u{feff}a\\u{e0041}");
    }

    #[test]
    fn a_backslash_is_doubled_where_it_could_be_an_escape() {
        assert_eq!(name(r"C:\Program"), r"C:\Program");
        assert_eq!(name(r"C:\new"), r"C:\\new");
        assert_eq!(name("\\\u{1b}"), r"\\\x1b");
        assert_eq!(bytes(b"\\\xff"), r"\\\xff");
    }

    #[test]
    fn json_stays_the_same_document() {
        let texts = ["\u{9b}31m\u{7f}", "\u{202e}\u{e0041}", "数据\n\u{1b}"];
        let shown = json(&serde_json::json!(texts).to_string()).into_owned();
        assert!(!shown.chars().any(is_unseen), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), texts);
    }

    /// What the name was that is shown so.
    fn read_back(shown: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chars = shown.chars();
        while let Some(c) = chars.next() {
            let escaped = match c {
                '\\' => chars
                    .clone()
                    .next()
                    .filter(|next| "\\nrtxu".contains(*next)),
                _ => None,
            };
            let Some(kind) = escaped else {
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                continue;
            };
            chars.next();
            match kind {
                '\\' => out.push(b'\\'),
                'n' => out.push(b'\n'),
                'r' => out.push(b'\r'),
                't' => out.push(b'\t'),
                'x' => {
                    let digits: String = chars.by_ref().take(2).collect();
                    out.push(u8::from_str_radix(&digits, 16).unwrap());
                }
                _ => {
                    let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    let c = char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap();
                    out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                }
            }
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn no_two_names_look_the_same(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                &b"\\"[..], b"n", b"x", b"1b", b"u", b"{202e}", b"\x1b", b"\n", b"\xff", b"\x9b", "\u{9b}".as_bytes(),
                "\u{202e}".as_bytes(), "数".as_bytes(), b"a",
            ]), 0..12),
        ) {
            let name = parts.concat();
            let shown = bytes(&name);
            proptest::prop_assert!(!shown.chars().any(is_unseen));
            proptest::prop_assert_eq!(read_back(&shown), name);
            // A sentence that it stands in may be escaped once more.
            proptest::prop_assert_eq!(escape(&shown), shown.as_str());
        }
    }
}
