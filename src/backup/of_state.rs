//! The agent application's own folders among the things that are backed up.

use std::sync::Arc;

use super::Store;
use super::agent_state::portions;
use super::run::Request;
use super::snapshot::StateThen;
use super::things::{Source, Way};
use crate::base::{Context, Kind, Result};
use crate::disk;
use crate::state::Saved;

/// Adds the parts of each folder. One that can not be opened costs only itself: it is noted.
///
/// # Errors
/// A glob in the settings that is none, and interruption.
pub(super) fn add(
    sources: &mut Vec<Source>,
    request: &Request,
    store: &Store,
    notes: &mut Vec<String>,
    context: &Context,
) -> Result<()> {
    if request.state.is_empty() {
        return Ok(());
    }
    if let Some(why) = &store.marker().without_state {
        notes.push(format!(
            "the agent application's own folder is not kept in this store: {why}"
        ));
        return Ok(());
    }
    let saved = Arc::new(Saved::new(&request.include, &request.exclude)?);
    for folder in &request.state {
        let found = disk::real_path(folder).and_then(|folder| portions(&folder, &saved, context));
        match found {
            Ok(found) => sources.extend(found.into_iter().map(|portion| Source {
                place: portion.place.clone(),
                way: match portion.databases.is_empty() {
                    true => Way::State(portion),
                    false => Way::Databases(portion),
                },
            })),
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => notes.push(format!(
                "the agent application's own folder was not backed up: {error}"
            )),
        }
    }
    Ok(())
}

/// Where they lie.
///
/// # Errors
/// A path that can not be resolved.
pub(super) fn then(request: &Request) -> Result<Vec<StateThen>> {
    let folders = request.state.iter();
    folders
        .map(|folder| {
            let path = disk::real_path(folder)?;
            let name = path.file_name().unwrap_or_default();
            Ok(StateThen {
                name: name.to_string_lossy().into_owned(),
                path: path.into(),
            })
        })
        .collect()
}
