//! Gaps in the numbers of a session's turns.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use super::damage::placeholder_of;
use super::view::{Session, View};
use crate::base::human;
use crate::check::{Finding, FindingKind, conflict, twin};
use crate::disk::{Entry, FileKind, Folder};

/// A gap of more turns than this is one finding.
const MOST_NAMED: u32 = 3;

/// Every gap from turn 1 to the last turn that is there.
pub(super) fn find(view: &View) -> Vec<Finding> {
    view.sessions()
        .filter_map(|session| Some((session, view.folder(&session.rel.join("context"))?)))
        .flat_map(|(session, context)| gaps(view, session, context))
        .collect()
}

/// The turns that are there: number, and how many digits its name has.
fn turns(context: &Folder) -> BTreeMap<u32, usize> {
    context
        .entries
        .iter()
        .filter_map(|entry| {
            let name = entry.name.as_bytes();
            // A turn that waits in the cloud is there; it is a finding of its own.
            number(placeholder_of(name).unwrap_or(name))
        })
        .collect()
}

/// The number in `turn_004.json`, and its digits.
fn number(name: &[u8]) -> Option<(u32, usize)> {
    let digits = name.strip_prefix(b"turn_")?.strip_suffix(b".json")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, digits.len()))
}

fn gaps(view: &View, session: &Session, context: &Folder) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before: Option<(u32, usize)> = None;
    let copies = OnceCell::new();
    let copies_of = |turn: u32| {
        let copies = copies.get_or_init(|| copies_of_turns(context));
        copies.get(&turn).map_or(&[][..], Vec::as_slice)
    };
    for (number, width) in turns(context) {
        let first = before.map_or(1, |(last, _)| last + 1);
        if first < number {
            let gap = Gap {
                first,
                last: number - 1,
                before,
                after: (number, width),
            };
            gap.report(view, session, context, &copies_of, &mut findings);
        }
        before = Some((number, width));
    }
    findings
}

struct Gap {
    first: u32,
    last: u32,
    /// The turns on both sides, with their digits.
    before: Option<(u32, usize)>,
    after: (u32, usize),
}

impl Gap {
    fn report<'c>(
        &self,
        view: &View,
        session: &Session,
        context: &Folder,
        copies_of: &dyn Fn(u32) -> &'c [&'c Entry],
        findings: &mut Vec<Finding>,
    ) {
        let count = self.last - self.first + 1;
        if count > MOST_NAMED {
            let which = format!("{} to {}", self.shown(self.first), self.shown(self.last));
            findings.push(self.finding(session, self.first, count, which));
            return;
        }
        for turn in self.first..=self.last {
            let mut finding = self.finding(session, turn, 1, self.shown(turn));
            let copies = copies_of(turn);
            if let Some(copy) = copies.first() {
                let name = human::bytes(copy.name.as_bytes());
                finding.detail.push_str(&format!("; {name} is there"));
            }
            if let [copy] = copies
                && copy.meta.size > 0
                && view.defects(&context.rel.join(&copy.name)).is_empty()
            {
                finding.command = twin::command(&finding.path);
            }
            findings.push(finding);
        }
    }

    fn finding(&self, session: &Session, turn: u32, count: u32, which: String) -> Finding {
        let after = shown(self.after.0, self.after.1);
        let detail = match self.before {
            Some((before, width)) => {
                format!("{which} between {} and {after}", shown(before, width))
            }
            None => format!("{which} before {after}"),
        };
        let path = session
            .rel
            .join(format!("context/turn_{}.json", self.shown(turn)));
        Finding::new(FindingKind::MissingTurn, path, detail)
            .turn(turn)
            .count(u64::from(count))
    }

    /// A number as wide as its neighbours write theirs.
    fn shown(&self, turn: u32) -> String {
        let (_, width) = self.before.unwrap_or(self.after);
        shown(turn, width)
    }
}

fn shown(turn: u32, width: usize) -> String {
    // A name has at most 255 bytes, and so has its number.
    format!("{turn:0width$}", width = width.min(255))
}

/// The second versions of turns, by their number: `turn_004 (1).json`. The first of some may be missing.
fn copies_of_turns(context: &Folder) -> BTreeMap<u32, Vec<&Entry>> {
    let mut copies: BTreeMap<u32, Vec<&Entry>> = BTreeMap::new();
    let files = context.entries.iter();
    for entry in files.filter(|entry| entry.meta.kind == FileKind::File) {
        let marks = conflict::parse(entry.name.as_bytes(), false);
        let numbers = marks.iter().filter_map(|mark| number(&mark.original));
        let numbers: BTreeSet<u32> = numbers.map(|(number, _)| number).collect();
        for number in numbers {
            copies.entry(number).or_default().push(entry);
        }
    }
    copies
}
