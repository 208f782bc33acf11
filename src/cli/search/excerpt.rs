//! A part of a line around what was found in it, as wide as there is room. No character is cut in half, and none can
//! drive the terminal.

use std::fmt::Write as _;
use std::ops::Range;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use crate::base::human;

/// So wide where there is no terminal.
pub(super) const ELSEWHERE: usize = 200;

const MATCH: Style = AnsiColor::Red.on_default().bold();

pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Writes what of a line has room in so many columns. `is_cut` says that the line itself goes on.
pub(super) fn write(
    out: &mut String,
    line: &str,
    matches: &[(usize, usize)],
    room: usize,
    is_cut: bool,
) {
    let begin = matches.first().map_or(0, |first| first.0);
    let near = near(line, begin, room);
    let (goes_before, goes_on) = (near.start > 0, near.end < line.len() || is_cut);
    let ends = usize::from(goes_before) + usize::from(goes_on);
    let mut kept = near.clone();
    if width_of(&line[near.clone()]) + ends > room {
        kept = window(line, near.clone(), begin, room);
    }
    if kept.start > near.start || goes_before {
        out.push('…');
    }
    let mut at = kept.start;
    for (from, to) in matches {
        let (from, to) = ((*from).clamp(at, kept.end), (*to).clamp(at, kept.end));
        show(&line[at..from], out);
        if from < to {
            let _ = write!(out, "{MATCH}");
            show(&line[from..to], out);
            let _ = write!(out, "{MATCH:#}");
        }
        at = to;
    }
    show(&line[at..kept.end], out);
    if kept.end < near.end || goes_on {
        out.push('…');
    }
}

/// A part of the line that is wide enough for any excerpt: a line may be long, and is not looked at as a whole.
fn near(line: &str, begin: usize, room: usize) -> Range<usize> {
    let around = room.saturating_mul(4).max(64);
    let from = line.floor_char_boundary(begin.saturating_sub(around));
    let to = line.ceil_char_boundary(begin.saturating_add(around).min(line.len()));
    from..to
}

/// What is shown of it: a third of the room before the match, the rest from there on; the ends for an ellipsis.
fn window(line: &str, near: Range<usize>, begin: usize, room: usize) -> Range<usize> {
    let room = room.saturating_sub(2).max(1);
    let rest = width_of(&line[begin..near.end]);
    // Where little follows, more stands before.
    let before = (room / 3).max(room.saturating_sub(rest));
    let (mut from, mut used) = (begin, 0);
    for c in line[near.start..begin].chars().rev() {
        if used + width_of_char(c) > before {
            break;
        }
        used += width_of_char(c);
        from -= c.len_utf8();
    }
    // A mark belongs to the character before it.
    let marks = line[from..begin]
        .chars()
        .take_while(|c| width_of_char(*c) == 0);
    from += marks.map(char::len_utf8).sum::<usize>();
    let mut to = begin;
    for c in line[begin..near.end].chars() {
        if used + width_of_char(c) > room {
            break;
        }
        used += width_of_char(c);
        to += c.len_utf8();
    }
    from..to
}

/// How many columns a text takes as it is shown, character by character.
fn width_of(text: &str) -> usize {
    match is_plain(text) {
        true => text.len(),
        false => text.chars().map(width_of_char).sum(),
    }
}

/// A tab is shown as a space, and what could drive the terminal by its number.
fn width_of_char(c: char) -> usize {
    match c {
        ' '..='~' | '\t' => 1,
        // With this behind it, a narrow sign is a wide picture.
        '\u{fe0f}' => 1,
        c => human::escape(c.encode_utf8(&mut [0; 4])).width(),
    }
}

/// Whether each byte is a character of one column.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn show(text: &str, out: &mut String) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    for (n, part) in text.split('\t').enumerate() {
        out.push_str(if n > 0 { " " } else { "" });
        out.push_str(&human::escape(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str, matches: &[(usize, usize)], room: usize) -> String {
        let mut coloured = String::new();
        write(&mut coloured, line, matches, room, false);
        anstream::adapter::strip_str(&coloured).to_string()
    }

    #[test]
    fn what_was_found_is_in_sight() {
        let line = "one two three four five six seven eight nine ten";
        let at = line.find("eight").unwrap();
        let found = [(at, at + 5)];
        for room in 8..80 {
            let shown = plain(line, &found, room);
            assert!(shown.width() <= room, "{room}: {shown}");
            assert!(shown.contains("eigh"), "{room}: {shown}");
        }
        assert_eq!(plain(line, &found, 80), line);
        assert_eq!(plain(line, &found, 20), "…seven eight nine t…");
        assert_eq!(plain(line, &[(0, 3)], 12), "one two th…");
    }

    #[test]
    fn a_wide_character_is_not_cut_in_half() {
        let line = "数据清洗和数据分析的报告";
        let at = line.find("分析").unwrap();
        for room in 8..30 {
            let shown = plain(line, &[(at, at + 6)], room);
            assert!(
                shown.width() <= room && shown.contains('分'),
                "{room}: {shown}"
            );
        }
        assert_eq!(plain(line, &[(at, at + 6)], 12), "…据分析的报…");
    }

    #[test]
    fn a_sign_that_is_made_a_picture_is_wide() {
        let line = "🕷️🕷️🕷️🕷️ spider 🕷️🕷️🕷️🕷️";
        let at = line.find("spider").unwrap();
        for room in 8..24 {
            let shown = plain(line, &[(at, at + 6)], room);
            assert!(shown.width() <= room, "{room}: {shown}");
        }
    }

    #[test]
    fn a_line_can_not_drive_the_terminal() {
        let line = "a\u{1b}[2Jb\tc\u{202e}d\u{9b}";
        assert_eq!(plain(line, &[], 80), "a\\x1b[2Jb c\\u{202e}d\\u{9b}");
        let long = "\u{1b}".repeat(100_000);
        assert!(plain(&long, &[(50_000, 50_001)], 20).width() <= 20);
    }
}
