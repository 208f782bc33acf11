//! How findings are shown: by kind, the worst first, each with its first examples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::output::{FAINT, STRONG, styled, terminal_width};
use super::shortened::{more, shown};
use super::width::fold;
use crate::base::human;
use crate::check::conflict::Relation;
use crate::check::{Finding, FindingKind};

/// So many of a kind are shown when not all are.
const SHOWN: usize = 3;

/// Writes findings, which stand in their order.
pub(super) fn write(out: &mut String, findings: &[Finding], all: bool) {
    let mut kinds: BTreeMap<FindingKind, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        kinds.entry(finding.kind).or_default().push(finding);
    }
    let width = kinds
        .keys()
        .map(|kind| kind.as_str().len())
        .max()
        .unwrap_or(0);
    for (kind, of_kind) in kinds {
        let count = human::count(of_kind.len() as u64);
        if !all && of_kind.len() > 1 && counts_references(kind) {
            let [line, first] = summary(kind, &of_kind);
            let line = folded(&line, width);
            let _ = writeln!(out, "  {:width$} {count:>5}   {line}", kind.as_str());
            let _ = writeln!(out, "  {}   {first}", " ".repeat(width + 6));
            continue;
        }
        let shown = shown(of_kind.len(), SHOWN, all);
        for (i, finding) in of_kind.iter().take(shown).enumerate() {
            let head = match i {
                0 => format!("{:width$} {count:>5}", kind.as_str()),
                _ => " ".repeat(width + 6),
            };
            let head = match kind.is_problem() {
                true => styled(STRONG, head),
                false => head,
            };
            let _ = writeln!(out, "  {head}   {}", folded(&sentence(finding), width));
        }
        if shown < of_kind.len() {
            let more = more(of_kind.len() - shown, &relations(&of_kind));
            let _ = writeln!(out, "  {}   {more}", " ".repeat(width + 6));
        }
    }
}

/// What is told behind a kind and a number, broken between words where a terminal is not wide enough.
fn folded(text: &str, width: usize) -> String {
    let indent = width + 11;
    let has_room = |limit: &usize| limit.saturating_sub(indent) >= 30;
    fold(text, indent, terminal_width().filter(has_room))
}

/// Findings of these kinds tell a number of references each, and little else.
fn counts_references(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::StalePath | FindingKind::DoubtfulPath | FindingKind::BinaryPath
    )
}

/// `243 references in 81 files, in binary data, left alone` and the first of them.
fn summary(kind: FindingKind, findings: &[&Finding]) -> [String; 2] {
    let references: u64 = findings.iter().filter_map(|finding| finding.count).sum();
    let what = match kind {
        FindingKind::DoubtfulPath => {
            "with a letter of another script right behind them: prose or another path, left alone"
        }
        FindingKind::BinaryPath => "in binary data, left alone",
        _ => "to the place that the home was moved from",
    };
    let summary = format!(
        "{} in {}, {what}",
        human::plural(references, "reference", "references"),
        human::plural(findings.len() as u64, "file", "files"),
    );
    let first = findings
        .first()
        .map(|f| human::path(&f.path))
        .unwrap_or_default();
    [summary, styled(FAINT, format!("the first: {first}"))]
}

/// Whether [`write`] names fewer than all.
pub(super) fn cuts(findings: &[Finding]) -> bool {
    let mut kinds: BTreeMap<FindingKind, usize> = BTreeMap::new();
    for finding in findings {
        *kinds.entry(finding.kind).or_default() += 1;
    }
    kinds
        .into_iter()
        .any(|(kind, n)| n > SHOWN + 1 || (n > 1 && counts_references(kind)))
}

fn sentence(finding: &Finding) -> String {
    match &finding.session {
        Some(session) => format!("{}  {}", human::name(session), finding.sentence()),
        None => finding.sentence(),
    }
}

/// `; in all 4 same, 2 prefix, 1 diverged`
fn relations(findings: &[&Finding]) -> String {
    let mut counts: Vec<(Relation, usize)> = Vec::new();
    for relation in findings.iter().filter_map(|f| f.relation) {
        match counts.iter_mut().find(|(r, _)| *r == relation) {
            Some((_, n)) => *n += 1,
            None => counts.push((relation, 1)),
        }
    }
    if counts.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(r, n)| format!("{n} {}", r.as_str()))
        .collect();
    format!("; in all {}", parts.join(", "))
}

/// How many sessions the problems among the findings touch.
pub(super) fn sessions_touched(findings: &[Finding]) -> u64 {
    let sessions: std::collections::BTreeSet<&str> = findings
        .iter()
        .filter(|finding| finding.kind.is_problem())
        .filter_map(|finding| finding.session.as_deref())
        .collect();
    sessions.len() as u64
}
