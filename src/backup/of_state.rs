//! The agent application's own folders among the things that are backed up.

use std::path::PathBuf;
use std::sync::Arc;

use super::Store;
use super::agent_state::portions;
use super::run::{Request, Unread};
use super::snapshot::StateThen;
use super::things::{Source, Way};
use crate::base::{Context, Kind, Result};
use crate::disk;
use crate::state::Saved;

/// Why this store keeps nothing of it, if it does not.
pub(super) fn not_kept(request: &Request, store: &Store) -> Option<String> {
    let why = store.marker().without_state.as_ref()?;
    let why = format!("the agent application's own folder is not kept in this store: {why}");
    (!request.state.is_empty()).then_some(why)
}

/// Adds the parts of each folder. One that can not be opened costs only itself: it is named.
///
/// # Errors
/// A glob in the settings that is none, and interruption.
pub(super) fn add(
    sources: &mut Vec<Source>,
    request: &Request,
    unread: &mut Vec<Unread>,
    context: &Context,
) -> Result<()> {
    if request.state.is_empty() {
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
            Err(error) => unread.push(Unread {
                what: "the agent application's own folder".to_owned(),
                path: PathBuf::default().into(),
                why: error.to_string(),
            }),
        }
    }
    Ok(())
}

/// Where they lie. One that can not be reached was named when it was to be looked at.
pub(super) fn then(request: &Request) -> Vec<StateThen> {
    let folders = request.state.iter();
    let paths = folders.filter_map(|folder| disk::real_path(folder).ok());
    paths
        .map(|path| StateThen {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: path.into(),
        })
        .collect()
}
