//! Writing a pack.

use std::fs::File;

use serde::{Deserialize, Serialize};

use super::manifest::About;
use super::{Manifest, Survey};
use crate::base::wire::ExactPath;
use crate::base::{Context, Result};
use crate::disk::Dir;

/// Why something is not in a pack as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlawKind {
    /// It could not be read.
    Unreadable,
    /// It was changed while it was read: what is packed is a beginning of it, or one of its states.
    Changed,
    /// It is neither file, folder nor link.
    Special,
}

/// Something that is not in a pack as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// Below the top folder.
    pub path: ExactPath,
    /// What is wrong.
    pub kind: FlawKind,
    /// Why, for a person.
    pub why: String,
}

/// What was written.
#[derive(Debug)]
pub struct Packed {
    /// As it stands in the pack, with the digest of each file as it was read.
    pub manifest: Manifest,
    /// The length of the pack.
    pub bytes: u64,
    /// BLAKE3 of the pack, in hexadecimal digits.
    pub blake3: String,
}

/// Writes a pack into an empty file, at its beginning. The data frames depend on the input and `level` alone, not on
/// `threads` (at least one). Syncing and naming the file is the caller's.
///
/// # Errors
/// A file that can not be written, and interruption. What could not be read as it was is a flaw in the manifest.
pub fn write(
    file: &File,
    dir: &Dir,
    survey: Survey,
    about: About,
    level: i32,
    threads: u32,
    context: &Context,
) -> Result<Packed> {
    let _ = (file, dir, survey, about, level, threads, context);
    unimplemented!("the next commit")
}
