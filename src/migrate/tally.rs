//! What has become of the source so far: counts, and everything that must be named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::plan::Skipped;
use super::record::{Class, Done};
use crate::check::Defect;
use crate::disk::Meta;
use crate::paths::Spelling;

/// What one worker has seen; merged into the whole when it has finished a folder.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Entries of each class.
    pub copied: u64,
    pub rewritten: u64,
    pub links_rewritten: u64,
    pub links_kept: u64,
    pub hard_links: u64,
    pub folders: u64,
    pub skipped: Vec<Skipped>,
    /// Files that an earlier run had copied.
    pub kept: u64,
    /// References changed, by mapping and by spelling.
    pub by_mapping: BTreeMap<u16, u64>,
    pub by_spelling: BTreeMap<Spelling, u64>,
    /// References left alone because of `--fields-only`.
    pub left: u64,
    /// Other homes that the files mention.
    pub foreign: BTreeMap<String, u64>,
    /// Files with references that may be something else, and in binary data.
    pub doubtful: Vec<(PathBuf, u16, u64)>,
    pub binary: Vec<(PathBuf, u64)>,
    /// Damage seen while reading back.
    pub defects: Vec<(PathBuf, Defect)>,
    /// SQLite databases, to be rewritten by SQL.
    pub databases: Vec<PathBuf>,
    /// Further names of files: the name, and the name that was copied.
    pub further_names: Vec<(PathBuf, PathBuf)>,
    /// Files that were copied in another state than the plan saw.
    pub later_states: Vec<(PathBuf, Meta)>,
    /// Files that did not hold still.
    pub restless: Vec<PathBuf>,
    /// What could not be kept, such as an attribute that the filesystem does not take.
    pub warnings: Vec<String>,
}

impl Tally {
    /// Counts a file.
    pub fn add(&mut self, path: &Path, done: &Done) {
        match done.class {
            Class::Rewritten => self.rewritten += 1,
            _ => self.copied += 1,
        }
        for (mapping, spelling, n) in &done.references {
            self.count(*mapping, *spelling, *n);
        }
        self.left += done.left;
        for (root, n) in &done.foreign {
            *self.foreign.entry(root.clone()).or_default() += n;
        }
        for (mapping, n) in &done.doubtful {
            self.doubtful.push((path.to_path_buf(), *mapping, *n));
        }
        if done.binary > 0 {
            self.binary.push((path.to_path_buf(), done.binary));
        }
        if done.database {
            self.databases.push(path.to_path_buf());
        }
    }

    /// Counts references that were changed.
    pub fn count(&mut self, mapping: u16, spelling: Spelling, n: u64) {
        *self.by_mapping.entry(mapping).or_default() += n;
        *self.by_spelling.entry(spelling).or_default() += n;
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: Tally) {
        self.copied += other.copied;
        self.rewritten += other.rewritten;
        self.links_rewritten += other.links_rewritten;
        self.links_kept += other.links_kept;
        self.hard_links += other.hard_links;
        self.folders += other.folders;
        self.kept += other.kept;
        self.left += other.left;
        self.skipped.extend(other.skipped);
        self.doubtful.extend(other.doubtful);
        self.binary.extend(other.binary);
        self.defects.extend(other.defects);
        self.databases.extend(other.databases);
        self.further_names.extend(other.further_names);
        self.later_states.extend(other.later_states);
        self.restless.extend(other.restless);
        self.warnings.extend(other.warnings);
        for (mapping, n) in other.by_mapping {
            *self.by_mapping.entry(mapping).or_default() += n;
        }
        for (spelling, n) in other.by_spelling {
            *self.by_spelling.entry(spelling).or_default() += n;
        }
        for (root, n) in other.foreign {
            *self.foreign.entry(root).or_default() += n;
        }
    }

    /// Forgets what was said of an entry that is about to be taken again.
    pub fn discard(&mut self, path: &Path) {
        self.skipped.retain(|s| *s.path != *path);
        self.further_names.retain(|(p, _)| p != path);
        self.defects.retain(|(p, _)| p != path);
        self.restless.retain(|p| p != path);
    }

    /// Counts a symbolic link.
    pub fn add_link(&mut self, mapping: Option<u16>) {
        match mapping {
            Some(mapping) => {
                self.links_rewritten += 1;
                self.count(mapping, Spelling::Plain, 1);
            }
            None => self.links_kept += 1,
        }
    }

    /// References changed, of the mapping at that place.
    pub fn of_mapping(&self, index: usize) -> u64 {
        let index = u16::try_from(index).ok();
        index
            .and_then(|i| self.by_mapping.get(&i))
            .copied()
            .unwrap_or(0)
    }

    /// References changed.
    pub fn references(&self) -> u64 {
        self.by_mapping.values().sum()
    }
}
