//! The agent application's own folders among the things that are backed up.

use super::Store;
use super::run::Request;
use super::snapshot::StateThen;
use super::things::Source;
use crate::base::{Context, Result};
use crate::disk;

/// Adds the parts of each folder.
pub(super) fn add(
    _sources: &mut Vec<Source>,
    _request: &Request,
    _store: &Store,
    _notes: &mut Vec<String>,
    _context: &Context,
) -> Result<()> {
    Ok(())
}

/// Where they lie.
pub(super) fn then(request: &Request) -> Result<Vec<StateThen>> {
    let folders = request.state.iter();
    folders
        .map(|folder| {
            let path = disk::real_path(folder)?;
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Ok(StateThen {
                name,
                path: path.into(),
            })
        })
        .collect()
}
