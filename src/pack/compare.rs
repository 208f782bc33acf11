//! A folder beside the manifest of a pack: is everything in it the same?

use std::path::PathBuf;

use super::Manifest;
use crate::base::{Context, Result};
use crate::disk::Dir;

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Below the top folder.
    pub path: PathBuf,
    /// What, for a person: "is not in the archive", "its content differs".
    pub what: String,
}

/// Compares every member with what stands in the folder: names, kinds, content (read again, on all cores), modes,
/// times, links, attributes. Empty when the folder is what was packed.
///
/// # Errors
/// A folder that can not be read, and interruption.
pub fn compare(manifest: &Manifest, dir: &Dir, context: &Context) -> Result<Vec<Difference>> {
    let _ = (manifest, dir, context);
    unimplemented!("the next commit")
}
