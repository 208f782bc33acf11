//! What came of a migration, as plain data: for the command line to print, and for the record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::plan::{Skipped, Totals};
use super::state::Followed;
use crate::base::Exit;
use crate::base::wire::{self, WirePath};
use crate::check::Finding;

/// What came of a migration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Where it came from.
    #[serde(with = "wire::exact_path")]
    pub source: PathBuf,
    /// Where it is now.
    pub home: PathBuf,
    /// When the first run of it began.
    pub started: jiff::Timestamp,
    /// When it was finished.
    pub finished: jiff::Timestamp,
    /// Until when the original should be kept.
    pub keep_until: jiff::Timestamp,
    /// Whether an earlier run had been stopped.
    pub resumed: bool,
    /// Counts of the source.
    pub totals: Totals,
    /// What became of each entry.
    pub classes: Classes,
    /// References that were changed.
    pub references: References,
    /// What did not go along, each with its reason.
    pub skipped: Vec<Skipped>,
    /// Files that did not hold still, copied as they were at some moment.
    pub restless: Vec<WirePath>,
    /// SQLite databases.
    pub databases: Vec<Database>,
    /// The application's own folders, which have followed.
    #[serde(default)]
    pub state: Vec<Followed>,
    /// Sessions before and after.
    pub sessions: SessionCounts,
    /// Everything that is wrong with the home, worst first: what the sync drive had damaged.
    pub findings: Vec<Finding>,
    /// What could not be kept, or should be known.
    pub warnings: Vec<String>,
    /// The user's own smoke test, when one is set.
    pub command: Option<SmokeTest>,
    /// Where the record is.
    pub record: PathBuf,
}

impl Outcome {
    /// Whether everything that should have gone along did.
    pub fn is_complete(&self) -> bool {
        self.restless.is_empty() && !self.skipped.iter().any(|s| s.failed)
    }

    /// Whether the user's own test is set and has failed.
    pub fn failed_its_test(&self) -> bool {
        self.command.as_ref().is_some_and(|c| c.exit != Some(0))
    }

    /// 0 when the copy is right, whatever was found in the source; 3 when something that should have gone
    /// along did not; 1 when the user's own test failed.
    pub fn exit(&self) -> Exit {
        let mut exit = Exit::Done;
        if !self.is_complete() || self.databases.iter().any(|d| d.failed) {
            exit = exit.merge(Exit::Partial);
        }
        if self.failed_its_test() {
            exit = exit.merge(Exit::Failed);
        }
        exit
    }
}

/// How many source entries ended in each class. Each ends in exactly one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// Files with the same bytes.
    pub copied: u64,
    /// Files with references changed.
    pub rewritten: u64,
    /// Symbolic links and further names of hard-linked files.
    pub linked: u64,
    /// Folders.
    pub folders: u64,
    /// Left behind.
    pub skipped: u64,
    /// All entries of the source: the sum of the others.
    pub total: u64,
    /// Of `linked`: symbolic links that were pointed into the new home.
    pub links_rewritten: u64,
    /// Of `linked`: symbolic links that were left as they were.
    pub links_kept: u64,
    /// Of `linked`: further names of hard-linked files.
    pub hard_links: u64,
    /// Of `copied` and `rewritten`: done by an earlier run, and compared again.
    pub kept: u64,
}

impl Classes {
    /// The sum of the classes.
    pub fn sum(&self) -> u64 {
        self.copied + self.rewritten + self.linked + self.folders + self.skipped
    }
}

/// References that were changed, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct References {
    /// How many were changed.
    pub changed: u64,
    /// By folder.
    pub by_mapping: Vec<Mapped>,
    /// By the way they were spelled.
    pub by_spelling: BTreeMap<String, u64>,
    /// Left alone because of `--fields-only`.
    pub left: u64,
    /// Other homes that the files mention, and how often.
    pub also_mentioned: BTreeMap<String, u64>,
}

/// One folder whose references were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapped {
    /// What the files said.
    pub old: String,
    /// What they say now.
    pub new: String,
    /// How often.
    pub count: u64,
}

/// A SQLite database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Relative to the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// References changed in it.
    pub references: u64,
    /// Whether its references could not be looked for: it was copied exactly, and is as damaged as it was.
    pub failed: bool,
    /// Rows that could not be changed, and why nothing or not all was.
    pub notes: Vec<String>,
}

/// Sessions before and after, side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Folders below `sessions/` of the source.
    pub source_folders: u64,
    /// Entries in the index of the source.
    pub source_indexed: u64,
    /// Folders below `sessions/` of the home.
    pub home_folders: u64,
    /// Entries in the index of the home.
    pub home_indexed: u64,
    /// Entries that were added because the session was there without one.
    pub added: u64,
    /// Entries whose session is nowhere.
    pub missing: u64,
}

/// What came of `[check] command`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmokeTest {
    /// The command.
    pub command: String,
    /// Its exit code; none when a signal ended it.
    pub exit: Option<i32>,
}
