//! `[secrets] allow`: what a person has looked at and called harmless.

use std::collections::HashSet;

use super::Match;
use super::found::DIGITS;
use crate::base::{Error, Result, human};

/// Digests of findings that are known to be harmless.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(HashSet<String>);

impl Allowed {
    /// The digests as `[secrets] allow` lists them.
    ///
    /// # Errors
    /// One that is no digest: it would allow nothing, and nobody would notice.
    pub fn new(digests: &[String]) -> Result<Allowed> {
        let mut allowed = HashSet::new();
        for digest in digests {
            if digest.len() != DIGITS || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
                let shown = human::escape(digest);
                return Err(Error::failed(format!(
                    "\"{shown}\" in [secrets] allow is no digest of a finding"
                ))
                .hint(format!(
                    "a digest is {DIGITS} hex digits; each finding is reported with its own"
                )));
            }
            allowed.insert(digest.to_ascii_lowercase());
        }
        Ok(Allowed(allowed))
    }

    /// Whether a person has called this finding harmless.
    pub fn allows(&self, found: &Match) -> bool {
        self.0.contains(&found.digest)
    }

    /// The digests, in order.
    pub(super) fn digests(&self) -> Vec<&str> {
        let mut digests: Vec<&str> = self.0.iter().map(String::as_str).collect();
        digests.sort_unstable();
        digests
    }
}
