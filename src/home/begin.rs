//! A home that grows from a copy: it is a home from the first moment, so that it can be locked and recorded,
//! and is completed when everything that belongs to it has come.

use std::path::Path;

use super::init;
use super::layout::OWN;
use super::{LockedHome, Trust};
use crate::base::{Context, Result};
use crate::disk;

/// Makes `dir` (0700) and the tool's own folder in it, and nothing that a copy might bring.
///
/// # Errors
/// When it can not be written.
pub fn begin(dir: &Path, context: &Context) -> Result<()> {
    begin_with(dir, None, context)
}

/// Like [`begin`], for a home that comes back and has its id from before.
///
/// # Errors
/// When it can not be written.
pub fn begin_again(dir: &Path, id: &str, context: &Context) -> Result<()> {
    begin_with(dir, Some(id), context)
}

fn begin_with(dir: &Path, id: Option<&str>, context: &Context) -> Result<()> {
    let own = dir.join(OWN);
    disk::create_private_folder(&own)?;
    // One that was there and empty is its owner's alone from now on, too.
    disk::set_mode(dir, 0o700)?;
    if super::Home::open(dir, Trust::Named).is_ok() {
        return Ok(());
    }
    let marker = match id {
        Some(id) => init::marker_of(id.to_owned(), context)?,
        None => init::marker(context)?,
    };
    init::absent(&own.join("home.json"), &marker)
}

impl LockedHome {
    /// Makes what a home has and this one still lacks. Returns what was written, as paths below it.
    ///
    /// # Errors
    /// When something stands in the way, or can not be written.
    pub fn complete(&self) -> Result<Vec<String>> {
        let plan = init::plan(self.root())?;
        init::write_missing(&plan)
    }
}
