//! Lines that have room on a terminal: cut with an ellipsis, cut at their beginning, or broken between words.
//!
//! Without a terminal there is no width, and everything is printed whole. What a person would copy, an id or an absolute
//! path, is never cut: the terminal breaks it, and joins it again when it is copied.

use anstream::adapter::strip_str;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cuts a line to a number of columns, with an ellipsis, between characters.
pub(super) fn fit(text: &str, limit: Option<usize>) -> String {
    let Some(limit) = limit.filter(|limit| text.width() > *limit) else {
        return text.to_owned();
    };
    let mut cut = String::new();
    let mut width = 0;
    for c in text.chars() {
        let wide = width_of(c);
        if width + wide + 1 > limit {
            break;
        }
        width += wide;
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// The end of a path in a number of columns: whole names where there is room for one.
pub(super) fn end_of(path: &str, limit: usize) -> String {
    if path.width() <= limit {
        return path.to_owned();
    }
    let mut ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    if let Some(end) = ends.find(|end| end.width() < limit) {
        return format!("…{end}");
    }
    let mut from = path.len();
    let mut width = 1;
    for (at, c) in path.char_indices().rev() {
        width += width_of(c);
        if width > limit {
            break;
        }
        from = at;
    }
    format!("…{}", &path[from..])
}

/// Breaks a line between words, each line after the first so far to the right. What stands in brackets stays together,
/// where that has room. A path is left whole, and so is what is coloured; another word that has no room on any line is
/// broken.
pub(super) fn fold(text: &str, indent: usize, limit: Option<usize>) -> String {
    let whole = strip_str(text).to_string().width() + indent;
    let Some(limit) = limit.filter(|limit| whole > *limit) else {
        return text.to_owned();
    };
    let room = limit.saturating_sub(indent).max(8);
    let mut out = String::new();
    let mut used = 0;
    let next = |out: &mut String, used: &mut usize| {
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
        *used = 0;
    };
    for word in words(text, room) {
        let wide = strip_str(word.trim_end()).to_string().width();
        let breaks = wide > room && !word.contains(['/', '\u{1b}']);
        if used > 0 && used + wide > room && !breaks {
            next(&mut out, &mut used);
        }
        if !breaks {
            out.push_str(word);
            used += strip_str(word).to_string().width();
            continue;
        }
        for c in word.chars() {
            if used + width_of(c) > room {
                next(&mut out, &mut used);
            }
            out.push(c);
            used += width_of(c);
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// The words of a line, each with the space after it, and `(12 days ago)` as one.
fn words(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(' ') {
        let word = &text[from..at];
        let opens = word.matches('(').count() > word.matches(')').count();
        let closes = text[at..].find(')').map(|end| &text[from..=at + end]);
        if !opens || closes.is_none_or(|whole| whole.width() > room) {
            words.push(&text[from..=at]);
            from = at + 1;
        }
    }
    words.push(&text[from..]);
    words
}

/// With a selector behind it, a narrow sign is a wide picture.
fn width_of(c: char) -> usize {
    match c {
        '\u{fe0f}' => 1,
        c => c.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_not_by_bytes() {
        assert_eq!(fit("abc", None), "abc");
        assert_eq!(fit("数据清洗", Some(8)), "数据清洗");
        assert_eq!(fit("数据清洗", Some(7)), "数据清…");
        assert_eq!(fit("数据清洗", Some(6)), "数据…");
        let cut = fit("🕷️🕷️🕷️", Some(5));
        assert!(cut.width() <= 5 && cut.ends_with('…'), "{cut}");
    }

    #[test]
    fn of_a_path_the_end_is_kept() {
        let path = "sessions/数据/logs/run.log";
        assert_eq!(end_of(path, 40), path);
        assert_eq!(end_of(path, 20), "…/数据/logs/run.log");
        assert_eq!(end_of(path, 18), "…/logs/run.log");
        assert_eq!(end_of(path, 8), "…run.log");
        assert_eq!(end_of("数据.csv", 7), "…据.csv");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let folded = |text: &str, limit| fold(text, 2, Some(limit));
        assert_eq!(fold("one two", 2, None), "one two");
        assert_eq!(folded("one two", 9), "one two");
        assert_eq!(folded("one two three", 10), "one two\n  three");
        assert_eq!(
            folded("at /a/long/way down", 10),
            "at\n  /a/long/way\n  down"
        );
        assert_eq!(folded("one (two three)", 14), "one\n  (two three)");
        assert_eq!(folded("one (two three)", 10), "one (two\n  three)");
        assert_eq!(folded("数据清洗与分析", 10), "数据清洗\n  与分析");
        let red = "\u{1b}[31mred\u{1b}[0m it is";
        assert_eq!(folded(red, 11), red);
    }
}
