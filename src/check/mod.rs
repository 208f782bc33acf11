//! What is wrong with a home.
//!
//! - [`finding`]: the vocabulary, shared with migration.
//! - [`content`]: what the bytes of one file tell.
//! - [`conflict`]: how sync clients name and leave second versions.
//! - [`survey()`]: what names, numbers, links and small records tell, and the index.
//! - [`read_archives`]: what every byte of the archives tells.
//! - [`add_running`]: what the agents that are running tell.
//!
//! [`inspect`] is the standalone command: it walks the home, probes every text file on all cores, and surveys the rest.
//! A migration has read every byte anyway; it feeds a [`Probe`] a file and calls [`survey()`] itself.
//!
//! [`repair`] puts right what can not lose anything, and [`twin`] puts a whole second version in its place; nothing else
//! is changed here. No link is followed, and no path is too long: a home is looked at through its open folder.
//! Folders that a package manager or git made are left alone, and so is the tool's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::base::{Context, Result};
use crate::disk::{self, Dir};
use crate::home::Index;

pub mod conflict;
pub mod content;
pub mod finding;
mod packed;
mod probing;
pub mod repair;
mod running;
pub mod survey;
#[cfg(test)]
mod tests;
pub mod twin;

pub use content::{Defect, Probe};
pub use finding::{Finding, FindingKind};
pub use packed::{Archives, read_archives};
pub use running::add_running;
pub use survey::{Survey, survey};

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// These sessions alone, by the names of their folders; `None`: the whole home.
    pub only: Option<BTreeSet<String>>,
}

impl Options {
    /// Whether what lies at `path`, relative to the home, is looked at.
    pub fn covers(&self, path: &Path) -> bool {
        is_selected(path, self.only.as_ref())
    }
}

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Session folders looked at; second versions of a session are not counted.
    pub sessions: u64,
    /// Files looked at, whether or not their content tells anything.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files whose content was read.
    pub probed: u64,
    /// The archives that were read from beginning to end; none when that was not asked for.
    pub archives: Option<Archives>,
    /// How many findings there are of each kind, worst first.
    pub counts: BTreeMap<FindingKind, u64>,
    /// The findings, worst first.
    pub findings: Vec<Finding>,
}

impl Outcome {
    /// Adds findings of others, in their order.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        survey::settle(&mut self.findings);
        self.counts = counts(&self.findings);
    }

    /// Whether something is wrong: exit 4. What one should only know does not count.
    pub fn has_problems(&self) -> bool {
        self.counts.keys().any(|kind| kind.is_problem())
    }
}

/// Looks at the home below `root`. `root_path` is where it lies, for links and working folders that name it by its
/// absolute path. Without an index, nothing is said about what it should hold.
///
/// # Errors
/// The root itself can not be read, or interruption. Whatever can not be read below it is a finding.
pub fn inspect(
    root: &Dir,
    root_path: &Path,
    index: Option<&Index>,
    options: &Options,
    context: &Context,
) -> Result<Outcome> {
    let skip = |rel: &Path, entry: &disk::Entry| is_own_folder(&rel.join(&entry.name));
    let tree = disk::walk(root, &skip, context.stop)?;
    let only = options.only.as_ref();
    let probed = probing::probe(root, &tree, only, context)?;
    let survey = Survey {
        root,
        root_path,
        tree: &tree,
        index,
        defects: probed.defects,
        only,
    };
    let mut findings = survey::survey(&survey, context.stop)?;
    findings.extend(probed.unreadable);
    survey::settle(&mut findings);
    Ok(Outcome {
        sessions: survey::sessions(&survey) as u64,
        files: probed.files,
        bytes: probed.bytes,
        probed: probed.probed,
        archives: None,
        counts: counts(&findings),
        findings,
    })
}

/// How many findings there are of each kind, worst first.
pub fn counts(findings: &[Finding]) -> BTreeMap<FindingKind, u64> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.kind).or_default() += 1;
    }
    counts
}

/// Folders whose content others own and can make again: never probed, and no finding but an unreadable one comes from them.
const DEPENDENCIES: [&str; 5] = ["node_modules", ".git", ".venv", "venv", "__pycache__"];

/// Whether a path relative to the home lies in such a folder, or in the tool's own.
pub(crate) fn is_left_alone(rel: &Path) -> bool {
    is_own_folder(rel)
        || rel
            .iter()
            .any(|part| DEPENDENCIES.iter().any(|d| part == *d))
}

/// `.wbhome/`, and the repository that some keep at the top of their home.
fn is_own_folder(rel: &Path) -> bool {
    rel.iter()
        .next()
        .is_some_and(|first| first == ".wbhome" || first == ".git")
}

/// Whether a path relative to the home belongs to one of these sessions; all of them when there is no list.
fn is_selected(rel: &Path, only: Option<&BTreeSet<String>>) -> bool {
    let Some(only) = only else {
        return true;
    };
    finding::session_of(rel).is_some_and(|session| only.contains(session))
}
