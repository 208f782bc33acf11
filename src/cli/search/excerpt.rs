//! A part of a line around what was found in it, as wide as there is room. No character is cut in half, and none can
//! drive the terminal.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::super::output::styled;
use crate::base::human;

/// So wide where there is no terminal.
pub(super) const ELSEWHERE: usize = 200;

const MATCH: Style = AnsiColor::Red.on_default().bold();

pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// One character as it is shown.
struct Shown {
    text: String,
    width: usize,
    is_match: bool,
}

/// What of a line has room in so many columns. `is_cut` says that the line itself goes on.
pub(super) fn excerpt(line: &str, matches: &[(usize, usize)], room: usize, is_cut: bool) -> String {
    let begin = matches.first().map_or(0, |first| first.0);
    let (from, to) = part(line, begin, room);
    let shown: Vec<Shown> = line[from..to]
        .char_indices()
        .map(|(at, c)| {
            let at = from + at;
            let text = shown(c);
            Shown {
                width: text.width(),
                text,
                is_match: matches.iter().any(|(from, to)| (*from..*to).contains(&at)),
            }
        })
        .collect();
    let all: usize = shown.iter().map(|c| c.width).sum();
    let (goes_before, goes_on) = (from > 0, to < line.len() || is_cut);
    let (first, last) = match all + usize::from(goes_before) + usize::from(goes_on) <= room {
        true => (0, shown.len()),
        false => window(&shown, room),
    };
    let mut out = String::new();
    if first > 0 || goes_before {
        out.push('…');
    }
    let mut rest = &shown[first..last];
    while let Some(head) = rest.first() {
        let same = rest
            .iter()
            .take_while(|c| c.is_match == head.is_match)
            .count();
        let text: String = rest[..same].iter().map(|c| c.text.as_str()).collect();
        match head.is_match {
            true => out.push_str(&styled(MATCH, text)),
            false => out.push_str(&text),
        }
        rest = &rest[same..];
    }
    if last < shown.len() || goes_on {
        out.push('…');
    }
    out
}

/// A part of the line that is wide enough for any excerpt: a line may be long, and is not looked at as a whole.
fn part(line: &str, begin: usize, room: usize) -> (usize, usize) {
    let around = room.saturating_mul(4).max(64);
    let from = line.floor_char_boundary(begin.saturating_sub(around));
    let to = line.ceil_char_boundary((begin + around.saturating_mul(4)).min(line.len()));
    (from, to)
}

/// Which characters are shown: a third of the room before the match, the rest from there on; the ends for an ellipsis.
fn window(shown: &[Shown], room: usize) -> (usize, usize) {
    let room = room.saturating_sub(2).max(1);
    let begin = shown.iter().position(|c| c.is_match).unwrap_or(0);
    let rest: usize = shown[begin..].iter().map(|c| c.width).sum();
    // Where little follows, more stands before.
    let before = (room / 3).max(room.saturating_sub(rest));
    let mut first = begin;
    let mut used = 0;
    while first > 0 && used + shown[first - 1].width <= before {
        first -= 1;
        used += shown[first].width;
    }
    // A mark belongs to the character before it.
    while first < begin && shown[first].width == 0 {
        first += 1;
    }
    let mut last = begin;
    while last < shown.len() && used + shown[last].width <= room {
        used += shown[last].width;
        last += 1;
    }
    (first, last)
}

fn shown(c: char) -> String {
    match c {
        '\t' => " ".to_owned(),
        c => human::escape(c.encode_utf8(&mut [0; 4])).into_owned(),
    }
}

/// The end of a text, as much as has room.
pub(super) fn end_of(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| text.width() > *room) else {
        return text.to_owned();
    };
    let mut from = text.len();
    let mut used = 1;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        from = at;
    }
    format!("…{}", &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str, matches: &[(usize, usize)], room: usize) -> String {
        let coloured = excerpt(line, matches, room, false);
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
    fn a_line_can_not_drive_the_terminal() {
        let line = "a\u{1b}[2Jb\tc\u{202e}d\u{9b}";
        assert_eq!(plain(line, &[], 80), "a\\x1b[2Jb c\\u{202e}d\\x9b");
        let long = "\u{1b}".repeat(100_000);
        assert!(plain(&long, &[(50_000, 50_001)], 20).width() <= 20);
    }

    #[test]
    fn the_end_of_a_path() {
        assert_eq!(
            end_of("context/turn_014.json", None),
            "context/turn_014.json"
        );
        assert_eq!(end_of("context/turn_014.json", Some(14)), "…turn_014.json");
        assert_eq!(end_of("数据/一", Some(5)), "…/一");
    }
}
