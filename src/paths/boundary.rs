//! Where a path ends and another one would begin: the boundary table.
//!
//! A *name character* is an ASCII letter or digit, `_ - ~ + @`, and a letter, mark or digit of any other script.
//! Both sides are read as people see them (see [`reading`](super::reading)). Where nobody can know, the answer is
//! [`Verdict::Doubtful`], and the place is left alone and reported.

use super::reading::{MAX_CHAR, Seen, next, prev, run_before};

/// The answer for one side, or for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reference,
    Doubtful,
    /// Another path.
    Other,
}

impl Verdict {
    /// What two sides say together: one that says "another path" is enough.
    pub(super) fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Other, _) | (_, Verdict::Other) => Verdict::Other,
            (Verdict::Doubtful, _) | (_, Verdict::Doubtful) => Verdict::Doubtful,
            _ => Verdict::Reference,
        }
    }
}

/// A name in a folder has at most 255 bytes: longer runs of letters are prose whatever stands before them.
const MAX_LETTERS: usize = 128;
const MAX_DOTS: usize = 64;
/// Longest text between the brackets of a sync client's mark.
const MAX_MARK: usize = 120;

/// How far the functions of this file look, at most, in bytes.
pub(super) const REACH: usize = (MAX_LETTERS + 16) * MAX_CHAR;

pub(super) fn is_ascii_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '~' | '+' | '@')
}

/// A letter, mark or digit of another script than ASCII. The standard library has no table of marks: those that are
/// not "alphabetic" (accents, viramas, voicing marks, selectors) are given by block.
pub(super) fn is_foreign_letter(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    c.is_alphanumeric()
        || match u32::from(c) {
            0x0964 | 0x0965 | 0x0970 => false, // dandas and their kin: punctuation
            0x0300..=0x036F
            | 0x0483..=0x0489
            | 0x0591..=0x05BD
            | 0x0610..=0x061A
            | 0x064B..=0x065F
            | 0x0900..=0x0DFF
            | 0x0E31..=0x0E3A
            | 0x0E47..=0x0E4E
            | 0x0EB1..=0x0EBC
            | 0x0EC8..=0x0ECE
            | 0x0F71..=0x0F84
            | 0x102B..=0x103E
            | 0x135D..=0x135F
            | 0x17B4..=0x17D3
            | 0x1AB0..=0x1AFF
            | 0x1DC0..=0x1DFF
            | 0x20D0..=0x20FF
            | 0x302A..=0x302F
            | 0x3099..=0x309A
            | 0xFE00..=0xFE0F
            | 0xFE20..=0xFE2F
            | 0xE0100..=0xE01EF => true,
            _ => false,
        }
}

fn is_name(c: char) -> bool {
    is_ascii_name(c) || is_foreign_letter(c)
}

/// What comes before a path that begins at `start`. With `binary`, bytes that are no text end a name (in a text they
/// are probably letters in another encoding), and see [`is_longer`].
pub(super) fn before(text: &[u8], start: usize, binary: bool) -> Verdict {
    let (seen, at) = prev(text, start);
    match seen {
        Seen::End => Verdict::Reference,
        Seen::Bad if binary => Verdict::Reference,
        Seen::Bad => before_letters(text, at),
        Seen::Char(c) if is_foreign_letter(c) => before_letters(text, at),
        Seen::Char('/') if scheme(text, start).is_some() => Verdict::Reference,
        Seen::Char('/' | '.') => Verdict::Other,
        Seen::Char('}') if is_variable(text, at) => Verdict::Other,
        Seen::Char(c) if is_ascii_name(c) => {
            if is_ansi(text, start) || is_here(text, start) || (binary && !is_longer(text, at)) {
                Verdict::Reference
            } else {
                Verdict::Other
            }
        }
        Seen::Char(_) => Verdict::Reference,
    }
}

/// Letters of another script stand before a path: prose (`在/a/b`), or the end of a longer path
/// (`/Volumes/备份/a/b`)? A `/`, `.` or `-` before them says the latter. ASCII name characters before them are
/// prose too, unless a `/` comes before those: `从/tmp/y移到/a/b` and `/Volumes/Old备份/a/b` look alike, so that is
/// doubtful.
fn before_letters(text: &[u8], mut at: usize) -> Verdict {
    let mut mixed = false;
    for _ in 0..MAX_LETTERS {
        let (seen, start) = prev(text, at);
        match seen {
            Seen::Bad => {}
            Seen::Char('.' | '-') if !mixed => return Verdict::Other,
            Seen::Char('/' | '\\') if mixed => return Verdict::Doubtful,
            Seen::Char('/' | '\\') => return Verdict::Other,
            Seen::Char(c) if is_foreign_letter(c) => {}
            Seen::Char(c) if is_ascii_name(c) => mixed = true,
            _ => return Verdict::Reference,
        }
        at = start;
    }
    Verdict::Reference
}

/// In binary data strings touch: a database keeps its columns side by side, with nothing between an id and the path
/// that follows. A name before a path is only the end of a longer path if a `/` or `.` comes before the name, too.
fn is_longer(text: &[u8], mut at: usize) -> bool {
    for _ in 0..MAX_LETTERS {
        match prev(text, at) {
            (Seen::Char(c), start) if is_ascii_name(c) => at = start,
            (Seen::Char('/' | '.' | '\\'), _) => return true,
            _ => return false,
        }
    }
    false
}

/// `scheme:` or `scheme://` directly before `start`, however it is written: where the scheme ends. A single letter
/// is a drive.
pub(super) fn scheme(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for expected in ['/', '/', ':'] {
        let (seen, begin) = prev(text, at);
        if seen != Seen::Char(expected) {
            return None;
        }
        at = begin;
    }
    let letter = |at| match prev(text, at) {
        (Seen::Char(c), begin) if c.is_ascii_alphanumeric() => Some(begin),
        _ => None,
    };
    letter(at).and_then(letter).map(|_| at)
}

/// Whether `start` is inside a URL by what stands before it: `scheme://`, `file:` (as Java writes it) or an authority
/// that means "here".
pub(super) fn in_url(text: &[u8], start: usize) -> bool {
    scheme(text, start).is_some()
        || is_here(text, start)
        || text
            .get(..start)
            .is_some_and(|before| before.ends_with(b"file:"))
}

/// Authorities that mean this machine: `file://localhost/a/b`, and `vscode://file/a/b` as editors have it.
fn is_here(text: &[u8], start: usize) -> bool {
    [&b"localhost"[..], b"file"].iter().any(|authority| {
        let Some(at) = start.checked_sub(authority.len()) else {
            return false;
        };
        text.get(at..start) == Some(authority)
            && scheme(text, at).is_some_and(|end| {
                let named = text.get(..end).unwrap_or_default();
                (*authority == b"localhost") == named.ends_with(b"file")
            })
    })
}

/// `${NAME}` ends at the brace at `at`: what follows is relative to a folder that we do not know.
fn is_variable(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(64)..at).unwrap_or_default();
    let name = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    name > 0
        && before
            .get(..before.len() - name)
            .is_some_and(|b| b.ends_with(b"${"))
}

/// A terminal's colour (`ESC [ 0 m`) ends at `start`: its last letter is not a letter. ESC may be spelled `\u001b`,
/// `\x1b`, `\033` or `\e`. https://ecma-international.org/publications-and-standards/standards/ecma-48/
fn is_ansi(text: &[u8], start: usize) -> bool {
    let before = text
        .get(start.saturating_sub(40)..start)
        .unwrap_or_default();
    let Some((letter, rest)) = before.split_last() else {
        return false;
    };
    let parameters = rest
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b';' | b':' | b'?'))
        .count();
    let Some((b'[', escape)) = rest
        .get(..rest.len() - parameters)
        .and_then(|r| r.split_last())
        .map(|(bracket, escape)| (*bracket, escape))
    else {
        return false;
    };
    let spelled = [&b"u001b"[..], b"u001B", b"x1b", b"x1B", b"033", b"e"]
        .iter()
        .any(|s| escape.ends_with(s) && run_before(escape, escape.len() - s.len()) > 0);
    letter.is_ascii_alphabetic() && (escape.ends_with(b"\x1b") || spelled)
}

/// What comes after a path that takes `start..end`. `separator`: the backslashes that separate folders in it.
pub(super) fn after(
    text: &[u8],
    start: usize,
    end: usize,
    separator: Option<usize>,
    binary: bool,
) -> Verdict {
    let (seen, at) = next(text, end, separator);
    match seen {
        Seen::Bad if !binary => Verdict::Doubtful,
        Seen::End | Seen::Bad => Verdict::Reference,
        Seen::Char('.') => after_dots(text, at, separator, binary),
        Seen::Char(c) if is_ascii_name(c) => Verdict::Other,
        Seen::Char(c) if is_foreign_letter(c) => Verdict::Doubtful,
        Seen::Char(c @ (' ' | '(' | '[')) if is_mark(text, start, c, at, separator) => {
            Verdict::Other
        }
        Seen::Char(_) => Verdict::Reference,
    }
}

fn after_dots(text: &[u8], mut at: usize, separator: Option<usize>, binary: bool) -> Verdict {
    for _ in 0..MAX_DOTS {
        let (seen, end) = next(text, at, separator);
        match seen {
            Seen::Char('.') => at = end,
            Seen::Char('/') => return Verdict::Other,
            Seen::Char('\\') if separator.is_some() => return Verdict::Other,
            Seen::Char(c) if is_name(c) => return Verdict::Other,
            Seen::Bad if !binary => return Verdict::Doubtful,
            _ => return Verdict::Reference,
        }
    }
    Verdict::Reference
}

/// A sync client's mark on a folder: ` (1)`, `(1)`, ` 2/`, ` (… conflicted copy …)`, ` [conflicted]`. `first` was
/// read, `at` is behind it. ` 2` also counts where a quoted string ends with it that began with the path.
fn is_mark(text: &[u8], start: usize, first: char, at: usize, separator: Option<usize>) -> bool {
    if first != ' ' {
        return in_brackets(text, first, at);
    }
    match next(text, at, separator) {
        (Seen::Char(c @ ('(' | '[')), at) => in_brackets(text, c, at),
        (Seen::Char(c), mut at) if c.is_ascii_digit() => {
            for _ in 0..3 {
                let (seen, end) = next(text, at, separator);
                match seen {
                    Seen::Char(c) if c.is_ascii_digit() => at = end,
                    Seen::Char('/') => return true,
                    Seen::Char('\\') => return separator.is_some(),
                    Seen::Char(quote @ ('"' | '\'' | '`')) => {
                        return prev(text, start).0 == Seen::Char(quote);
                    }
                    _ => return false,
                }
            }
            false
        }
        _ => false,
    }
}

/// Words that clients use for a conflict, in the languages of facts.md and those that share a stem.
const CONFLICT: &[&str] = &[
    "conflict",
    "conflit",
    "konflikt",
    "motstridiga",
    "冲突",
    "衝突",
    "競合",
    "충돌",
];

fn in_brackets(text: &[u8], open: char, mut at: usize) -> bool {
    let close = if open == '(' { ')' } else { ']' };
    let mut inside = String::new();
    for _ in 0..MAX_MARK {
        let (seen, end) = next(text, at, None);
        match seen {
            Seen::Char(c) if c == close => {
                let number =
                    (1..=4).contains(&inside.len()) && inside.bytes().all(|b| b.is_ascii_digit());
                return (open == '(' && number) || CONFLICT.iter().any(|w| inside.contains(w));
            }
            Seen::Char(c) if c == '/' || c == '"' || c.is_control() => return false,
            Seen::Char(c) => inside.extend(c.to_lowercase()),
            Seen::Bad | Seen::End => return false,
        }
        at = end;
    }
    false
}
