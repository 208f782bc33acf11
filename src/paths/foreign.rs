//! Other roots that a text mentions: `<prefix>/sessions/<id>` with an id that exists here, under a prefix that is
//! not mapped. The home was known by that name once, so a person should map it, too.
//!
//! Where the prefix ends is certain; where it begins is a guess, because names may hold spaces. Read back from
//! `/sessions/`, it can reach no further than a quote, backtick, `=`, `<`, `>`, `|`, `*`, `?`, a control character (a
//! JSON `\n` too) or CJK punctuation. Within that stretch it begins at the last place that looks like the beginning
//! of an absolute path: `/`, `~/`, `$HOME/` or a drive, at the start of the stretch or after a space that is not
//! escaped, one of `: , ; ( [ {`, or `file://`. Failing that, at the first `/` behind a letter of another script
//! (`在/a/b`). What has no such place is relative and not reported; web addresses are not either.

use std::collections::HashSet;

use super::anchor::SESSIONS;
use super::boundary::{is_ascii_name, is_foreign_letter};
use super::reading::{MAX_CHAR, Seen, next, prev, run_before};

const MAX_ID: usize = 160;
const MAX_PREFIX: usize = 512;
/// How far back a prefix is read, in bytes.
pub(super) const BEHIND: usize = 4096;
/// How far an id is read, in bytes.
pub(super) const AHEAD: usize = (MAX_ID + 8) * MAX_CHAR;

/// Where the path of the folder that holds `at` ends, and the backslashes that separate folders there.
pub(super) fn parent(text: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    match run_before(text, at) {
        0 => {
            let (before, end) = prev(text, at);
            matches!(before, Seen::Char('/' | '\\')).then_some((end, None))
        }
        run => Some((at - run, Some(run))),
    }
}

/// Whether the folder `sessions` at `at` holds a known session.
pub(super) fn is_session(
    text: &[u8],
    at: usize,
    separator: Option<usize>,
    ids: &HashSet<String>,
) -> bool {
    let (after, mut at) = next(text, at + SESSIONS.len(), separator);
    if !matches!(after, Seen::Char('/' | '\\')) {
        return false;
    }
    let mut component = String::new();
    let mut name = None; // where the component would end if it held no spaces or brackets
    for _ in 0..MAX_ID {
        let (seen, end) = next(text, at, separator);
        match seen {
            Seen::Char(c) if !matches!(c, '/' | '\\' | '"' | '\'' | '`') && !c.is_control() => {
                if name.is_none() && !(is_ascii_name(c) || is_foreign_letter(c) || c == '.') {
                    name = Some(component.len());
                }
                component.push(c);
            }
            _ => break,
        }
        at = end;
    }
    let known = |id: Option<&str>| id.is_some_and(|id| ids.contains(id));
    let short = component.get(..name.unwrap_or(component.len()));
    let sentence = short.map(|s| s.trim_end_matches('.'));
    known(Some(&component)) || known(short) || known(sentence)
}

/// The prefix that ends at `end`, as people read it.
pub(super) fn prefix(text: &[u8], end: usize, separator: Option<usize>) -> Option<String> {
    let mut stretch: Vec<(char, bool)> = Vec::new();
    let mut at = end;
    loop {
        let (seen, start) = prev_in(text, at, separator);
        match seen {
            Seen::Char(c) if !stops(c) => stretch.push((c, at - start > c.len_utf8())),
            _ => break,
        }
        at = start;
        if stretch.len() > MAX_PREFIX || end - at + MAX_CHAR > BEHIND {
            return None;
        }
    }
    stretch.reverse();
    let begin = beginning(&stretch)?;
    let path: String = stretch.get(begin..)?.iter().map(|(c, _)| *c).collect();
    let path = match path.strip_prefix("///") {
        Some(rest) => format!("/{rest}"), // file:///…
        None if path.starts_with("//localhost/") => path.replacen("//localhost", "", 1),
        None if path.starts_with("//") => return None, // another host
        None => path,
    };
    // A home inside a session of another one is rather two paths with a space between them.
    if path.contains("/sessions/") || path.contains("\\sessions\\") {
        return None;
    }
    for home in ["$HOME/", "${HOME}/"] {
        if let Some(rest) = path.strip_prefix(home) {
            return Some(format!("~/{rest}"));
        }
    }
    let bytes = path.as_bytes();
    let drive = bytes.len() > 3 && bytes[1].is_ascii_alphabetic() && bytes[2] == b':'; // `/C:/…` of a URL
    Some(if drive { path[1..].to_owned() } else { path })
}

/// The character before `at`, where folders may be separated by backslashes: they, and a letter behind them, are then
/// no escape.
fn prev_in(text: &[u8], at: usize, separator: Option<usize>) -> (Seen, usize) {
    if let Some(run) = separator {
        if run_before(text, at) == run {
            return (Seen::Char('\\'), at - run);
        }
        let last = at.saturating_sub(1);
        if text.get(last).is_some_and(u8::is_ascii_alphanumeric) && run_before(text, last) == run {
            return (
                text.get(last)
                    .map_or(Seen::End, |b| Seen::Char(char::from(*b))),
                last,
            );
        }
    }
    prev(text, at)
}

fn stops(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | '='
                | '<'
                | '>'
                | '|'
                | '*'
                | '?'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '「'
                | '」'
                | '『'
                | '』'
        )
        || matches!(
            c,
            '《' | '》'
                | '【'
                | '】'
                | '，'
                | '。'
                | '；'
                | '：'
                | '、'
                | '（'
                | '）'
                | '！'
                | '？'
        )
}

/// Where an absolute path begins in a stretch of characters (and whether each was escaped).
fn beginning(stretch: &[(char, bool)]) -> Option<usize> {
    let char = |i: usize| stretch.get(i).map(|(c, _)| *c);
    let free = |i: usize| match i.checked_sub(1).and_then(|i| stretch.get(i)) {
        None => true,
        Some((' ', escaped)) => !escaped,
        Some((c, _)) => matches!(c, ':' | ',' | ';' | '(' | '[' | '{'),
    };
    let is_drive = |i: usize| {
        char(i).is_some_and(|c| c.is_ascii_alphabetic())
            && char(i + 1) == Some(':')
            && matches!(char(i + 2), Some('/' | '\\'))
            && !i
                .checked_sub(1)
                .and_then(char)
                .is_some_and(char::is_alphanumeric)
    };
    let word = |i: usize, word: &str| {
        word.chars()
            .enumerate()
            .all(|(k, c)| char(i + k) == Some(c))
    };
    let begins = |i: &usize| {
        let i = *i;
        let posix = char(i) == Some('/') && !i.checked_sub(2).is_some_and(is_drive);
        let home = ["~/", "$HOME/", "${HOME}/"]
            .iter()
            .any(|home| word(i, home));
        free(i) && (posix || home || is_drive(i))
    };
    (0..stretch.len()).rev().find(begins).or_else(|| {
        let first = stretch.iter().position(|(c, _)| *c == '/')?;
        let before = char(first.checked_sub(1)?)?;
        is_foreign_letter(before).then_some(first)
    })
}
