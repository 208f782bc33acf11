//! How findings are shown: by kind, the worst first, each with its first examples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::output::{FAINT, STRONG, styled};
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
        let shown = match all || of_kind.len() <= SHOWN + 1 {
            true => of_kind.len(),
            false => SHOWN,
        };
        for (i, finding) in of_kind.iter().take(shown).enumerate() {
            let head = match i {
                0 => format!("{:width$} {count:>5}", kind.as_str()),
                _ => " ".repeat(width + 6),
            };
            let head = match kind.is_problem() {
                true => styled(STRONG, head),
                false => head,
            };
            let _ = writeln!(out, "  {head}   {}", sentence(finding));
        }
        if shown < of_kind.len() {
            let more = format!(
                "… {} more{}",
                human::count((of_kind.len() - shown) as u64),
                relations(&of_kind)
            );
            let _ = writeln!(out, "  {}   {}", " ".repeat(width + 6), styled(FAINT, more));
        }
    }
}

/// Whether [`write`] names fewer than all.
pub(super) fn cuts(findings: &[Finding]) -> bool {
    let mut kinds: BTreeMap<FindingKind, usize> = BTreeMap::new();
    for finding in findings {
        *kinds.entry(finding.kind).or_default() += 1;
    }
    kinds.into_values().any(|n| n > SHOWN + 1)
}

fn sentence(finding: &Finding) -> String {
    match &finding.session {
        Some(session) => format!("{}  {}", human::escape(session), finding.sentence()),
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
