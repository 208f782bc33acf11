//! Matches in lines: a window of whole lines after the other, so that a text of any size takes the same memory.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use regex::bytes::{Match, Regex};
use serde::Serialize;

/// A longer line is cut around its first match, and a longer line beside a match behind its beginning.
const LONGEST: usize = 64 << 10;
/// So much of a line that is cut stands before its first match.
const LEAD: usize = 4 << 10;
/// So many matches of a line are told.
const MOST_MATCHES: usize = 1000;

/// What is to be told of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The line, and so many lines around it.
    Lines(usize),
    /// That there is one.
    Files,
    /// How many lines match.
    Count,
}

/// A line that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, from 1.
    #[serde(skip)]
    pub number: u64,
    /// The line, without its end. What is no UTF-8 in it stands there as U+FFFD.
    pub text: String,
    /// Whether it is longer than that.
    pub cut: bool,
    /// Where in `text` the matches stand, in bytes: from, to. A match without a length is not among them.
    pub matches: Vec<(usize, usize)>,
    /// Lines before it that were not told already.
    pub before: Vec<String>,
    /// Lines after it, up to the next one that matches.
    pub after: Vec<String>,
}

/// Takes what is found. To break ends the search.
pub(super) type Found<'f> = dyn FnMut(Line) -> ControlFlow<()> + 'f;

/// A text being searched.
pub(super) struct Lines<'p> {
    regex: &'p Regex,
    want: Want,
    /// Line breaks before the window.
    breaks: u64,
    /// The last lines before the window that were not told.
    recent: VecDeque<String>,
    /// A line that still waits for so many lines after it.
    open: Option<(Line, usize)>,
}

impl<'p> Lines<'p> {
    pub(super) fn new(regex: &'p Regex, want: Want) -> Lines<'p> {
        Lines {
            regex,
            want,
            breaks: 0,
            recent: VecDeque::new(),
            open: None,
        }
    }

    /// The text begins behind so many line breaks.
    pub(super) fn behind(mut self, breaks: u64) -> Lines<'p> {
        self.breaks = breaks;
        self
    }

    /// Line breaks so far.
    pub(super) fn breaks(&self) -> u64 {
        self.breaks
    }

    /// Passes over lines that somebody else has searched.
    pub(super) fn skip(&mut self, text: &[u8]) {
        self.breaks += breaks_in(text);
    }

    /// Searches the next lines. Each but the last of the text has its line break.
    pub(super) fn window(
        &mut self,
        text: &[u8],
        is_last: bool,
        found: &mut Found<'_>,
    ) -> ControlFlow<()> {
        let (mut counted, mut told) = (0, 0);
        let mut next = self.regex.find_at(text, 0);
        while let Some(first) = next {
            let line = line_around(text, first.start());
            if line.start == text.len() {
                // Behind the last line break there is no line.
                break;
            }
            self.breaks += breaks_in(&text[counted..line.start]);
            counted = line.start;
            let mut matched = Line {
                number: self.breaks + 1,
                ..Line::default()
            };
            if let Want::Lines(around) = self.want {
                let mut matches = Vec::new();
                next = self.rest_of_line(text, first, &line, &mut matches);
                matched.take(&text[line.clone()], line.start, &matches);
                self.pass(&text[told..line.start], around, found)?;
                if let Some((open, _)) = self.open.take() {
                    found(open)?;
                }
                matched.before = self.recent.drain(..).collect();
                told = text.len().min(line.end + 1);
                match around {
                    0 => found(matched)?,
                    _ => self.open = Some((matched, around)),
                }
            } else {
                next = self.behind_line(text, line.end);
                found(matched)?;
            }
        }
        if let Want::Lines(around) = self.want {
            self.pass(&text[told..], around, found)?;
        }
        if !is_last {
            self.breaks += breaks_in(&text[counted..]);
        }
        ControlFlow::Continue(())
    }

    /// After the last window.
    pub(super) fn end(&mut self, found: &mut Found<'_>) -> ControlFlow<()> {
        self.recent.clear();
        match self.open.take() {
            Some((line, _)) => found(line),
            None => ControlFlow::Continue(()),
        }
    }

    /// The first match behind a line.
    fn behind_line<'t>(&self, text: &'t [u8], end: usize) -> Option<Match<'t>> {
        match end < text.len() {
            true => self.regex.find_at(text, end + 1),
            false => None,
        }
    }

    /// Notes the matches of a line; the first one behind it.
    fn rest_of_line<'t>(
        &self,
        text: &'t [u8],
        first: Match<'t>,
        line: &Range<usize>,
        matches: &mut Vec<Range<usize>>,
    ) -> Option<Match<'t>> {
        let mut next = Some(first);
        while let Some(found) = next.filter(|found| found.start() <= line.end) {
            if !found.is_empty() {
                matches.push(found.range());
            }
            let from = found.end() + usize::from(found.is_empty());
            if matches.len() == MOST_MATCHES || from > line.end {
                return self.behind_line(text, line.end);
            }
            next = self.regex.find_at(text, from);
        }
        next
    }

    /// Lines that do not match: the first ones are told after the match before them, the last ones are kept.
    fn pass(&mut self, text: &[u8], around: usize, found: &mut Found<'_>) -> ControlFlow<()> {
        let mut rest = text;
        while let Some((open, missing)) = &mut self.open
            && !rest.is_empty()
        {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            open.after.push(beside(&rest[..end]));
            rest = &rest[rest.len().min(end + 1)..];
            *missing -= 1;
            if *missing == 0
                && let Some((open, _)) = self.open.take()
            {
                found(open)?;
            }
        }
        if around == 0 || rest.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut last = Vec::new();
        let mut end = rest.strip_suffix(b"\n").unwrap_or(rest);
        while last.len() < around {
            let start = memchr::memrchr(b'\n', end);
            last.push(beside(&end[start.map_or(0, |at| at + 1)..]));
            match start {
                Some(at) => end = &end[..at],
                None => break,
            }
        }
        self.recent.extend(last.into_iter().rev());
        while self.recent.len() > around {
            self.recent.pop_front();
        }
        ControlFlow::Continue(())
    }
}

fn breaks_in(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The line that a place stands in, without its end.
fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after);
    start..end
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line beside one that matches.
fn beside(line: &[u8]) -> String {
    let line = without_return(line);
    let kept = &line[..line.len().min(LONGEST)];
    String::from_utf8_lossy(kept).into_owned()
}

impl Line {
    /// Takes the text of a line that begins at `start` of what `matches` are places in.
    fn take(&mut self, line: &[u8], start: usize, matches: &[Range<usize>]) {
        let line = without_return(line);
        let first = matches.first().map_or(0, |first| first.start - start);
        let mut kept = 0..line.len();
        if line.len() > LONGEST {
            let from = first.saturating_sub(LEAD);
            kept = from..line.len().min(from + LONGEST);
            // No character is cut in half.
            let inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
            kept.start = (kept.start..kept.start + 4)
                .find(|at| !inside(at))
                .unwrap_or(kept.start);
            kept.end = (kept.end - 4..=kept.end)
                .rev()
                .find(|at| !inside(at))
                .unwrap_or(kept.end);
            self.cut = true;
        }
        let mut at = kept.start;
        for range in matches {
            let from = (range.start - start).clamp(at, kept.end);
            let to = (range.end - start).clamp(from, kept.end);
            self.push(&line[at..from]);
            let begin = self.text.len();
            self.push(&line[from..to]);
            if from < to {
                self.matches.push((begin, self.text.len()));
            }
            at = to;
        }
        self.push(&line[at..kept.end]);
    }

    fn push(&mut self, part: &[u8]) {
        self.text.push_str(&String::from_utf8_lossy(part));
    }

    /// How much memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let around = self
            .before
            .iter()
            .chain(&self.after)
            .map(|line| line.len() + 24);
        200 + self.text.len() + 16 * self.matches.len() + around.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Meaning, Pattern};
    use super::*;

    fn search(pattern: &str, want: Want, windows: &[&[u8]]) -> Vec<Line> {
        let pattern = Pattern::new(pattern, Meaning::default()).unwrap();
        let mut lines = Lines::new(&pattern.lines, want);
        let mut all = Vec::new();
        let mut found = |line| {
            all.push(line);
            ControlFlow::Continue(())
        };
        for window in windows {
            let _ = lines.window(window, false, &mut found);
        }
        let _ = lines.end(&mut found);
        all
    }

    #[test]
    fn lines_with_numbers_and_places() {
        let found = search(
            "a+",
            Want::Lines(0),
            &[b"baab a\nx\n", b"\xffa\xfe\r\nno\n", b"a"],
        );
        let told: Vec<_> = found
            .iter()
            .map(|l| (l.number, &*l.text, &*l.matches))
            .collect();
        assert_eq!(
            told,
            [
                (1, "baab a", &[(1, 3), (5, 6)][..]),
                (3, "\u{fffd}a\u{fffd}", &[(3, 4)][..]),
                (5, "a", &[(0, 1)][..]),
            ]
        );
        let counted = search("a", Want::Count, &[b"aa\na\n", b"b\na\n"]);
        assert_eq!(
            counted.iter().map(|l| l.number).collect::<Vec<_>>(),
            [1, 2, 4]
        );
    }

    #[test]
    fn empty_matches_are_lines_without_places() {
        for (text, lines) in [
            (&b""[..], 0),
            (b"\n", 1),
            (b"a", 1),
            (b"a\n", 1),
            (b"a\n\nb", 3),
        ] {
            let found = search("x*", Want::Lines(0), &[text]);
            assert_eq!(found.len(), lines, "{text:?}");
            assert!(found.iter().all(|line| line.matches.is_empty()));
            assert_eq!(search("x*", Want::Count, &[text]).len(), lines);
        }
        assert_eq!(search("^$", Want::Lines(0), &[b"a\n\nb\n"])[0].number, 2);
    }

    #[test]
    fn lines_around_are_told_once() {
        let text: &[u8] = b"1\n2\n3\n4x\n5\n6\n7x\n8\n9\n10\n11\n12x\n";
        let around = |found: &[Line]| -> Vec<String> {
            let joined = |lines: &[String]| lines.join(",");
            let told = found.iter();
            told.map(|l| format!("{}|{}|{}", joined(&l.before), l.text, joined(&l.after)))
                .collect()
        };
        let wanted = ["2,3|4x|5,6", "|7x|8,9", "10,11|12x|"];
        assert_eq!(around(&search("x", Want::Lines(2), &[text])), wanted);
        // However the windows are cut.
        let cuts: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        assert_eq!(around(&search("x", Want::Lines(2), &cuts)), wanted);
        assert_eq!(
            around(&search("x", Want::Lines(0), &cuts)),
            ["|4x|", "|7x|", "|12x|"]
        );
        assert_eq!(around(&search("x", Want::Lines(9), &[b"a\nx"])), ["a|x|"]);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = format!("{}needle{}", "数".repeat(50_000), "据".repeat(50_000));
        let found = &search("needle", Want::Lines(0), &[text.as_bytes()])[0];
        assert!(found.cut && found.text.len() <= LONGEST && !found.text.contains('\u{fffd}'));
        let (from, to) = found.matches[0];
        assert_eq!(&found.text[from..to], "needle");
        let many = "ab".repeat(4_000);
        assert_eq!(
            search("a", Want::Lines(0), &[many.as_bytes()])[0]
                .matches
                .len(),
            MOST_MATCHES
        );
    }
}
