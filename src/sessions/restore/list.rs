//! What is in the trash.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::open;
use crate::base::wire::WirePath;
use crate::base::{Context, Result};
use crate::disk::Dir;
use crate::home::Home;
use crate::home::trash::{self, Act};

/// The trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Its acts, the newest first.
    pub acts: Vec<Listed>,
    /// Files that lie in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An act of the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub act: String,
    /// When it was done.
    pub at: Option<Timestamp>,
    /// Why.
    pub why: String,
    /// The command, where it is known.
    pub command: Option<String>,
    /// Files that lie in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What it has done and can be taken back.
    pub items: Vec<ListedItem>,
}

/// Something that an act has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedItem {
    /// Where, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// `kept`: it lies in the trash; `added`: it is in the home since; `mode`: its mode was changed;
    /// `removed`: its session is a tombstone in the index.
    pub what: &'static str,
    /// Why, where that differs from the rest.
    pub why: Option<String>,
}

/// Lists the trash.
///
/// # Errors
/// When it can not be listed, and interruption.
pub fn list(home: &Home, context: &Context) -> Result<Listing> {
    let root = open(home)?;
    let mut acts = Vec::new();
    for act in trash::acts(home)? {
        acts.push(listed(&root, &act, context)?);
    }
    Ok(Listing {
        files: acts.iter().map(|act| act.files).sum(),
        bytes: acts.iter().map(|act| act.bytes).sum(),
        acts,
    })
}

fn listed(root: &Dir, act: &Act, context: &Context) -> Result<Listed> {
    let item = |path: &Path, what, why: Option<String>| ListedItem {
        path: path.to_path_buf().into(),
        what,
        why,
    };
    let held = act.holds(root);
    let mut items: Vec<ListedItem> = held
        .iter()
        .map(|(was, _)| item(&was.path, "kept", was.why.clone()))
        .collect();
    let added = act.note.added.iter().filter(|added| added.mark.is_some());
    items.extend(added.map(|added| item(&added.path, "added", None)));
    items.extend(act.note.modes.iter().map(|m| item(&m.path, "mode", None)));
    let alone = act.note.entries.iter().filter(|former| {
        let of =
            |path: &Path| super::session_of(path, true).is_some_and(|id| id.as_str() == former.id);
        !held.iter().any(|(was, _)| of(&was.path))
    });
    items
        .extend(alone.map(|former| item(&Path::new("sessions").join(&former.id), "removed", None)));
    let (files, bytes) = act.size(root, context.stop)?;
    Ok(Listed {
        act: act.name.clone(),
        at: act.at(),
        why: match act.noted {
            true => act.note.why.clone(),
            false => "it has no note that can be read".to_owned(),
        },
        command: act.note.command.clone(),
        files,
        bytes,
        items,
    })
}
