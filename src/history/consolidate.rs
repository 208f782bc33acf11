//! Keeping the repository small: few packs, and no heap of loose objects.

use super::repository::Repository;
use crate::base::{Error, Result};
use crate::disk::{self, Dir};

/// git's folder for packs, opened.
pub(super) fn folder_of_packs(repository: &Repository) -> Result<Dir> {
    let packs = repository.git.commondir().join("objects/pack");
    disk::create_private_folder(&packs)?;
    Dir::open(&packs).map_err(|e| Error::io("can not open", &packs, e))
}
