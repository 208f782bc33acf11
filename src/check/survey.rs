//! What names, numbers, links and small records tell about a home, and whether the index agrees.
//!
//! [`survey()`] works on a walk that was made before and on defects that somebody found while reading, so that a
//! migration, which has done both, does not do either twice. Each subject has a file of its own; they share a `View`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Defect, Finding, FindingKind, is_selected};
use crate::base::{Result, Stop};
use crate::disk::{Dir, Tree};
use crate::home::Index;

mod agents;
pub(super) mod archives;
mod copies;
mod damage;
mod entries;
mod links;
mod names;
mod records;
pub(super) mod sessions;
mod turns;
mod view;

use view::View;

/// What is known of a home before it is surveyed.
pub struct Survey<'a> {
    /// Its open folder.
    pub root: &'a Dir,
    /// Where it lies, for links and working folders that name it by its absolute path.
    pub root_path: &'a Path,
    /// Everything in it.
    pub tree: &'a Tree,
    /// Its index; without one, nothing is said about what it should hold.
    pub index: Option<&'a Index>,
    /// What the content of its files told, by path relative to the home.
    pub defects: Vec<(PathBuf, Defect)>,
    /// These sessions alone; `None`: the whole home.
    pub only: Option<&'a BTreeSet<String>>,
}

/// Every finding, worst first and then by path.
///
/// # Errors
/// Interruption. What can not be read is a finding.
pub fn survey(survey: &Survey, stop: &Stop) -> Result<Vec<Finding>> {
    let view = View::new(survey, stop);
    let mut findings = Vec::new();
    let subjects = [
        damage::find,
        damage::find_unreadable,
        damage::find_placeholders,
        sessions::find,
        turns::find,
        records::find,
        agents::find,
        archives::find,
        copies::find,
        names::find,
        links::find,
    ];
    for find in subjects {
        findings.extend(find(&view));
        stop.check()?;
    }
    findings.retain(|finding| concerns(finding, survey.only));
    settle(&mut findings);
    Ok(findings)
}

/// How many sessions the survey is about; second versions of a session are not counted.
pub fn sessions(survey: &Survey) -> usize {
    View::new(survey, &Stop::new()).sessions().count()
}

/// Brings findings into their order, and drops what was found twice.
pub fn settle(findings: &mut Vec<Finding>) {
    findings.sort_by(Finding::order);
    // The walk, the reading and a comparison may each have met the same closed door.
    findings.dedup_by(|next, kept| {
        next == kept
            || next.kind == FindingKind::Unreadable
                && kept.kind == FindingKind::Unreadable
                && next.path == kept.path
    });
}

/// Whether a finding is about one of these sessions: it lies in one, names one, or is a second version of one.
fn concerns(finding: &Finding, only: Option<&BTreeSet<String>>) -> bool {
    let Some(ids) = only else {
        return true;
    };
    let named = |session: &String| ids.contains(session);
    finding.session.as_ref().is_some_and(named)
        || finding
            .of
            .as_deref()
            .is_some_and(|of| is_selected(of, only))
}
