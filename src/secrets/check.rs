//! What is asked before anything leaves: the rules and what a person allows, together.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::found::DIGITS;
use super::windows::{self, Bounds, Sizes};
use super::{Allowed, Match, Rules};
use crate::base::{Result, Stop};
use crate::disk;

/// Changed when what is found in the same file by the same rules changes.
const VERSION: &str = "wbhome secrets 1";

/// So many findings of a file are told; the others are like them.
const TOLD: usize = 1000;

/// Rules and allow list, to be shared by all threads.
#[derive(Debug)]
pub struct Check {
    rules: Rules,
    allowed: Allowed,
    digest: String,
    sizes: Sizes,
}

/// A file that was looked at.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Secrets that are not allowed, each once, in order of place: at most the first thousand.
    pub findings: Vec<Match>,
    /// How many distinct secrets were found that a person has called harmless.
    pub allowed: u64,
    /// BLAKE3 of the bytes that were looked at.
    pub digest: disk::Digest,
    /// How many they were.
    pub size: u64,
}

impl Check {
    /// The built-in rules, those of the file `own`, and the digests that `[secrets] allow` lists.
    ///
    /// # Errors
    /// As [`Rules::load`] and [`Allowed::new`].
    pub fn load(own: Option<&Path>, allow: &[String]) -> Result<Check> {
        let rules = Rules::load(own)?;
        let allowed = Allowed::new(allow)?;
        let all = format!(
            "{VERSION}\n{}\n{}",
            rules.digest,
            allowed.digests().join("\n")
        );
        let mut digest = disk::digest(all.as_bytes()).to_string();
        digest.truncate(DIGITS);
        Ok(Check {
            rules,
            allowed,
            digest,
            sizes: Sizes::USUAL,
        })
    }

    /// 32 hex digits that change when the rules or the allow list do: what was checked by others is checked again.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads an open file from its beginning as far as it reaches now; its cursor stays where it is. `path` is the one
    /// that rules about paths look at. Less than about 100 MiB of memory is taken, whatever its size.
    ///
    /// # Errors
    /// When it can not be read; of kind `Interrupted` when the flag was raised.
    pub fn file(&self, path: &Path, file: &File, stop: &Stop) -> io::Result<Checked> {
        self.beginning(path, file, u64::MAX, stop)
    }

    /// Like [`Check::file`], at most the first `limit` bytes: as much as leaves of a file that goes on growing.
    ///
    /// # Errors
    /// As there.
    pub fn beginning(
        &self,
        path: &Path,
        file: &File,
        limit: u64,
        stop: &Stop,
    ) -> io::Result<Checked> {
        // As many as can be allowed, and some that can not be.
        let bounds = Bounds {
            limit,
            most: self.allowed.digests().len().saturating_add(TOLD),
        };
        let seen = windows::look(&self.rules, path, file, bounds, self.sizes, stop)?;
        let found = self.rules.told(path, seen.secrets);
        let (allowed, mut findings): (Vec<Match>, Vec<Match>) = found
            .into_iter()
            .partition(|found| self.allowed.allows(found));
        findings.truncate(TOLD);
        Ok(Checked {
            findings,
            allowed: allowed.len() as u64,
            digest: seen.digest,
            size: seen.size,
        })
    }

    /// The secrets in a name, or in what a link points to, that are not allowed.
    pub fn name(&self, rel: &Path) -> Vec<Match> {
        let mut found = self.rules.scan(Path::new(""), rel.as_os_str().as_bytes());
        found.retain(|found| !self.allowed.allows(found));
        found
    }

    /// A name as it may be told: one that holds a secret is cut off there, and goes on with what is shown of it.
    pub fn shown(&self, rel: &Path) -> PathBuf {
        match self.name(rel).first() {
            Some(first) => PathBuf::from(OsStr::from_bytes(&first.cut(rel.as_os_str().as_bytes()))),
            None => rel.to_path_buf(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_sizes(self, sizes: Sizes) -> Check {
        Check { sizes, ..self }
    }

    #[cfg(test)]
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }
}
