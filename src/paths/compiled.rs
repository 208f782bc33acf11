//! Everything that is compiled once, and the decision about one place.

use std::collections::HashSet;

use super::Options;
use super::anchor::Anchors;
use super::boundary::{self, Verdict};
use super::foreign;
use super::mapping::{Folder, Mapping, MappingError, Move, check};
use super::pattern::{Form, Pattern, Unit, patterns};
use super::reading::{MAX_CHAR, Seen, next, prev, run_before};
use super::spell::{self, Match, Separator};
use super::write::{self, Target};

/// Everything that is compiled once.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) mappings: Vec<Mapping>,
    pub(super) moves: Vec<Move>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) sizes: Sizes,
    pub(super) fields_only: bool,
    pub(super) targets: Vec<Target>,
    pub(super) anchors: Anchors,
    pub(super) ids: HashSet<String>,
    pub(super) home: Option<String>,
}

/// How many bytes around a place decide about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// From the beginning of an anchor on.
    pub(super) ahead: usize,
    /// From the beginning of a reference to the beginning of its anchor.
    pub(super) head: usize,
    /// Before the beginning of a reference.
    pub(super) behind: usize,
}

impl Compiled {
    pub(super) fn new(mappings: Vec<Mapping>, options: Options) -> Result<Compiled, MappingError> {
        let folder = options
            .user_home
            .map(|home| Folder::of(&home))
            .filter(|f| !f.as_str().is_empty());
        let (mappings, moves): (Vec<_>, Vec<_>) = check(mappings)?.into_iter().unzip();
        let patterns = patterns(&moves, folder.as_ref());
        let ids: HashSet<String> = options
            .known_ids
            .into_iter()
            .filter(|id| !id.is_empty())
            .collect();
        let longest = patterns.iter().map(encoded_len).max().unwrap_or(0);
        Ok(Compiled {
            anchors: Anchors::new(&patterns, !ids.is_empty())?,
            targets: moves
                .iter()
                .map(|m| Target::new(m, folder.as_ref()))
                .collect(),
            sizes: Sizes {
                ahead: longest + boundary::REACH.max(write::REACH).max(foreign::AHEAD),
                head: longest + 64,
                behind: boundary::REACH.max(write::REACH).max(foreign::BEHIND) + 64,
            },
            fields_only: options.fields_only,
            home: folder.map(|home| home.as_str().to_owned()),
            mappings,
            moves,
            patterns,
            ids,
        })
    }

    /// The decision about `pattern` at `core`: the longest pattern there that is a reference, or may be one.
    pub(super) fn decide(
        &self,
        pattern: usize,
        text: &[u8],
        core: usize,
        binary: bool,
    ) -> Option<Decision> {
        let one = self.patterns.get(pattern)?;
        one.longer.iter().chain([&pattern]).find_map(|&index| {
            let pattern = self.patterns.get(index)?;
            let found = spell::read(pattern, text, core)?;
            let verdict = verdict(pattern, &found, text, binary);
            (verdict != Verdict::Other).then_some(Decision {
                pattern: index,
                found,
                verdict,
            })
        })
    }

    /// A decision that begins earlier and reaches into this one, if there is any.
    pub(super) fn earlier(&self, than: &Decision, text: &[u8], binary: bool) -> Option<Decision> {
        let one = self.patterns.get(than.pattern)?;
        let core = than.found.core;
        let end = match text.get(core) {
            Some(b'/') => core - run_before(text, core),
            _ => core,
        };
        one.earlier
            .iter()
            .filter_map(|&(pattern, units)| {
                let core = walk_back(&self.patterns.get(pattern)?.units, units, text, end)?;
                self.decide(pattern, text, core, binary)
            })
            .filter(|d| d.found.start < than.found.start && d.found.end > than.found.start)
            .min_by_key(|d| (d.found.start, usize::MAX - d.found.end))
    }
}

/// The most bytes that a pattern can take.
fn encoded_len(pattern: &Pattern) -> usize {
    let units = pattern.units.iter().map(|unit| match unit {
        Unit::Backslashes(n) => *n,
        _ => 1,
    });
    MAX_CHAR * units.sum::<usize>()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) pattern: usize,
    pub(super) found: Match,
    pub(super) verdict: Verdict,
}

/// Where the first of `units` units begins, if they end at `end`.
pub(super) fn walk_back(units: &[Unit], count: usize, text: &[u8], end: usize) -> Option<usize> {
    (0..count)
        .rev()
        .try_fold(end, |at, index| spell::back(units, index, text, at))
}

/// Both boundaries of a match.
pub(super) fn verdict(pattern: &Pattern, found: &Match, text: &[u8], binary: bool) -> Verdict {
    if let Form::Slug(_) = pattern.form {
        return slug_before(text, found.start).and(slug_after(text, found.end));
    }
    let separator = match (&pattern.form, found.style.separator) {
        (Form::Drive | Form::Home, Some(Separator::Back(run))) => Some(run),
        _ => None,
    };
    match boundary::after(text, found.start, found.end, separator, binary) {
        Verdict::Other => Verdict::Other,
        after => after.and(boundary::before(text, found.start, binary)),
    }
}

/// The folders of a home: behind its slug they are the slug of something in the home.
const TOP: &[&[u8]] = &[b"sessions", b"agents", b"archive", b"projects"];

/// A slug begins a name; some agents keep its leading dash.
fn slug_before(text: &[u8], start: usize) -> Verdict {
    let (seen, at) = prev(text, start);
    let seen = if seen == Seen::Char('-') {
        prev(text, at).0
    } else {
        seen
    };
    match seen {
        Seen::Char(c) if boundary::is_ascii_name(c) || c == '.' => Verdict::Other,
        _ => Verdict::Reference,
    }
}

/// A slug ends its name, or goes on with a folder of the home. `-` and anything else may be a sibling (`/a/b-2`) as
/// well as a folder (`/a/b/2`): slugs do not tell.
fn slug_after(text: &[u8], end: usize) -> Verdict {
    match next(text, end, None).0 {
        Seen::Char('-') => {
            let rest = text.get(end + 1..).unwrap_or_default();
            let inside = TOP.iter().any(|top| {
                rest.starts_with(top)
                    && match next(rest, top.len(), None).0 {
                        Seen::Char(c) => c == '-' || !boundary::is_ascii_name(c),
                        _ => true,
                    }
            });
            if inside {
                Verdict::Reference
            } else {
                Verdict::Doubtful
            }
        }
        Seen::Char(c) if boundary::is_ascii_name(c) => Verdict::Other,
        Seen::Char(c) if boundary::is_foreign_letter(c) => Verdict::Doubtful,
        _ => Verdict::Reference,
    }
}
