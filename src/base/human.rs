//! Numbers, sizes, ages and names as a person reads them.
//!
//! Names come from the disk and may hold anything: [`escape`] keeps one from driving the terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;

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

/// A name with everything escaped that could move the cursor, colour the screen or reverse the text.
pub fn escape(name: &str) -> Cow<'_, str> {
    if !name.chars().any(drives_terminal) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if drives_terminal(c) && (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if drives_terminal(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters (C0, C1, DEL), bidirectional controls (UAX #9), and line and paragraph separators.
fn drives_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A path for a person: control characters escaped, bytes that are not UTF-8 as `\xNN`.
pub fn path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    bytes(path.as_os_str().as_bytes())
}

/// A path for a person who copies it into a shell: quoted where it must be.
pub fn quoted(path: &Path) -> String {
    let text = self::path(path);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-~+@%:,=".contains(&b) || !b.is_ascii();
    match !text.is_empty() && text.bytes().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Bytes that should be text, for a person.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&escape(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// An operating-system error without the number that Rust appends.
pub fn io(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
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
    fn a_name_can_not_drive_the_terminal() {
        assert_eq!(escape("数据清洗"), "数据清洗");
        assert_eq!(
            escape("a\u{1b}[31m\r\nb\u{202e}c\u{9b}"),
            "a\\x1b[31m\\r\\nb\\u{202e}c\\x9b"
        );
        assert_eq!(bytes(b"a\xff\x1b"), "a\\xff\\x1b");
    }
}
