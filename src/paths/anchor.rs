//! The first, fast pass: which places of a text are worth a look at all.
//!
//! Each pattern has an anchor, a string that is in every spelling of it: a run of ASCII letters and digits, best a
//! long one of the last folder. A pattern without one (`/工作/主页`) is found by all encodings of one character. All
//! anchors are searched for in one pass of SIMD code. None contains another, so each place begins at most one.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, Input, MatchKind, packed};
use memchr::memmem;

use super::mapping::MappingError;
use super::pattern::{Form, Pattern, Unit, plain};

/// What an anchor says about the text around it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hint {
    /// The first `units` units of the pattern end `shift` bytes after the anchor's beginning. Written plainly they
    /// take `plain` bytes.
    Pattern {
        pattern: usize,
        units: usize,
        shift: isize,
        plain: Option<usize>,
    },
    /// The folder `sessions` begins so many bytes after it.
    Sessions(isize),
}

impl Hint {
    /// The same, said by an anchor that begins `by` bytes later.
    fn later(self, by: isize) -> Hint {
        match self {
            Hint::Pattern {
                pattern,
                units,
                shift,
                plain,
            } => Hint::Pattern {
                pattern,
                units,
                shift: shift - by,
                plain,
            },
            Hint::Sessions(shift) => Hint::Sessions(shift - by),
        }
    }
}

#[derive(Debug)]
enum Finder {
    None,
    One(Box<memmem::Finder<'static>>),
    /// Vector code that looks at several bytes of each anchor: an automaton with a prefilter stops at every `s`.
    Few(Box<packed::Searcher>),
    Many(AhoCorasick),
}

#[derive(Debug)]
pub(super) struct Anchors {
    finder: Finder,
    hints: Vec<Vec<Hint>>,
}

/// The folder of a home that holds its sessions: what tells other roots that hold the same ones.
pub(super) const SESSIONS: &[u8] = b"sessions";

impl Anchors {
    pub(super) fn new(patterns: &[Pattern], sessions: bool) -> Result<Anchors, MappingError> {
        let mut needles: HashMap<Vec<u8>, Vec<Hint>> = HashMap::new();
        let mut preferred: HashMap<u16, Vec<u8>> = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let chosen = choose(pattern, preferred.get(&pattern.mapping));
            if chosen.is_empty() {
                return Err(MappingError::Search(
                    "it holds nothing but separators".to_owned(),
                ));
            }
            for (needle, units, shift) in chosen {
                preferred
                    .entry(pattern.mapping)
                    .or_insert_with(|| needle.clone());
                needles.entry(needle).or_default().push(Hint::Pattern {
                    pattern: index,
                    units,
                    shift,
                    plain: pattern.units.get(..units).and_then(plain).map(|p| p.len()),
                });
            }
        }
        if sessions {
            needles
                .entry(SESSIONS.to_vec())
                .or_default()
                .push(Hint::Sessions(0));
        }
        Self::compile(without_containing(needles))
    }

    fn compile(needles: Vec<(Vec<u8>, Vec<Hint>)>) -> Result<Anchors, MappingError> {
        let (strings, hints): (Vec<_>, Vec<_>) = needles.into_iter().unzip();
        let finder = match strings.as_slice() {
            [] => Finder::None,
            [one] => Finder::One(Box::new(memmem::Finder::new(one).into_owned())),
            many => match packed::Searcher::new(many) {
                Some(searcher) => Finder::Few(Box::new(searcher)),
                None => Finder::Many(
                    AhoCorasick::builder()
                        .match_kind(MatchKind::LeftmostFirst)
                        .build(many)
                        .map_err(|e| MappingError::Search(e.to_string()))?,
                ),
            },
        };
        Ok(Anchors { finder, hints })
    }

    /// The first anchor that begins at or after `from`, and what it says.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, &[Hint])> {
        let (at, which) = match &self.finder {
            Finder::None => return None,
            Finder::One(finder) => (from + finder.find(text.get(from..)?)?, 0),
            Finder::Few(finder) => {
                (from <= text.len()).then_some(())?;
                let found = finder.find_in(text, (from..text.len()).into())?;
                (found.start(), found.pattern().as_usize())
            }
            Finder::Many(finder) => {
                (from <= text.len()).then_some(())?;
                let found = finder.find(Input::new(text).range(from..))?;
                (found.start(), found.pattern().as_usize())
            }
        };
        Some((at, self.hints.get(which)?))
    }
}

/// Replaces each anchor that contains another one by that other one: overlapping ones could hide each other.
fn without_containing(needles: HashMap<Vec<u8>, Vec<Hint>>) -> Vec<(Vec<u8>, Vec<Hint>)> {
    let mut sorted: Vec<_> = needles.into_iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut kept: Vec<(Vec<u8>, Vec<Hint>)> = Vec::new();
    for (needle, hints) in sorted {
        let inside = kept.iter_mut().find_map(|(shorter, others)| {
            memmem::find(&needle, shorter).map(|offset| (offset, others))
        });
        match inside {
            Some((offset, others)) => {
                let by = isize::try_from(offset).unwrap_or(0);
                others.extend(hints.into_iter().map(|hint| hint.later(by)));
            }
            None => kept.push((needle, hints)),
        }
    }
    kept
}

type Choice = (Vec<u8>, usize, isize);

/// The anchors of one pattern: strings of which one is in every spelling.
fn choose(pattern: &Pattern, preferred: Option<&Vec<u8>>) -> Vec<Choice> {
    let units = &pattern.units;
    let last = units
        .iter()
        .rposition(|u| matches!(u, Unit::Slash | Unit::Either))
        .unwrap_or(0);
    let runs = runs(units);
    let same = runs.iter().find(|(_, run)| Some(run) == preferred);
    let best = same.or_else(|| {
        runs.iter()
            .max_by_key(|(start, run)| worth(run, *start > last))
    });
    let wide = units.iter().enumerate().rev().find_map(|(i, u)| {
        u.char()
            .filter(|c| !c.is_ascii())
            .map(|c| encodings(c, i + 1))
    });
    match (best, wide) {
        (Some((start, run)), wide) if run.len() >= 3 || wide.is_none() => {
            vec![(run.clone(), *start, 0)]
        }
        (_, Some(wide)) => wide,
        _ if matches!(pattern.form, Form::Slug(_)) => Vec::new(),
        _ => units
            .iter()
            .enumerate()
            .rev()
            .find_map(|(i, u)| match u {
                Unit::Char(c) => Some(encodings(*c, i + 1)),
                _ => None,
            })
            .unwrap_or_default(),
    }
}

/// The longest runs of letters and digits, and the unit at which each begins.
fn runs(units: &[Unit]) -> Vec<(usize, Vec<u8>)> {
    let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut open = false;
    for (i, unit) in units.iter().enumerate() {
        if !unit.is_plain_letter() {
            open = false;
            continue;
        }
        if !open {
            runs.push((i, Vec::new()));
            open = true;
        }
        if let (Some((_, run)), Some(c)) = (runs.last_mut(), unit.char()) {
            run.extend(u8::try_from(u32::from(c)).ok());
        }
    }
    runs
}

/// Words that every second path holds: each costs a look that finds nothing.
const COMMON: &[&[u8]] = &[
    b"home",
    b"users",
    b"desktop",
    b"documents",
    b"downloads",
    b"library",
    b"sessions",
    b"projects",
    b"workspace",
    b"agents",
    b"archive",
    b"data",
    b"code",
    b"file",
    b"repo",
    b"path",
    b"work",
];

fn worth(run: &[u8], in_last: bool) -> (i32, usize) {
    let length = i32::try_from(run.len().min(16)).unwrap_or(16);
    let common = COMMON.contains(&run.to_ascii_lowercase().as_slice());
    let worth = 2 * length + if in_last { 5 } else { 0 } - if common { 12 } else { 0 };
    (worth, run.len())
}

/// Every way to encode one character that ends unit `units`: raw, `uXXXX` and percent with digits in any case. Of a
/// pair the second half, and of percent-encoded bytes the last two are enough, and keep the number of variants small.
fn encodings(c: char, units: usize) -> Vec<Choice> {
    let mut buffer = [0; 4];
    let raw = c.encode_utf8(&mut buffer).as_bytes().to_vec();
    let percent: String = raw
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(|b| format!("%{b:02x}"))
        .collect();
    let mut pair = [0; 2];
    let unicode = c
        .encode_utf16(&mut pair)
        .last()
        .map(|unit| format!("u{unit:04x}"))
        .unwrap_or_default();
    let mut all = vec![raw];
    all.extend(cases(unicode.as_bytes(), 1));
    all.extend(cases(percent.as_bytes(), 0));
    all.into_iter()
        .map(|needle| {
            let shift = isize::try_from(needle.len()).unwrap_or(0);
            (needle, units, shift)
        })
        .collect()
}

/// Every combination of upper and lower case of the hex digits from `from` on.
fn cases(text: &[u8], from: usize) -> Vec<Vec<u8>> {
    let mut all = vec![text.to_vec()];
    for i in from..text.len() {
        if text[i].is_ascii_lowercase() {
            let mut upper = all.clone();
            for variant in &mut upper {
                variant[i] = variant[i].to_ascii_uppercase();
            }
            all.extend(upper);
        }
    }
    all
}
