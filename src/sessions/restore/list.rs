//! What is in the trash.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::open;
use crate::base::wire::WirePath;
use crate::base::{Context, Result};
use crate::disk::Dir;
use crate::home::trash::{self, Act};
use crate::home::{Home, Index, Status, mend};

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
    let index = Index::read(home).unwrap_or_default();
    for act in trash::acts(home)? {
        let listed = listed(&root, &index, &act, context)?;
        // A command that was killed before it did anything may have left the note alone.
        if listed.files > 0 || !listed.items.is_empty() {
            acts.push(listed);
        }
    }
    Ok(Listing {
        files: acts.iter().map(|act| act.files).sum(),
        bytes: acts.iter().map(|act| act.bytes).sum(),
        acts,
    })
}

fn listed(root: &Dir, index: &Index, act: &Act, context: &Context) -> Result<Listed> {
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
    // What was undone by hand since can not be taken back any more.
    let meta = |path: &Path| mend::look(root, path).ok().flatten();
    let added = act.note.added.iter();
    let added = added.filter(|added| added.mark.is_some() && meta(&added.path).is_some());
    items.extend(added.map(|added| item(&added.path, "added", None)));
    let modes = act.note.modes.iter();
    let modes = modes.filter(|m| meta(&m.path).is_some_and(|meta| meta.mode == m.now));
    items.extend(modes.map(|m| item(&m.path, "mode", None)));
    let whole = held
        .iter()
        .filter_map(|(was, _)| super::session_of(&was.path, true));
    let whole: BTreeSet<String> = whole.map(|id| id.to_string()).collect();
    let alone = act.note.entries.iter().filter(|former| {
        let entry = index.find(&former.id);
        let removed = entry.is_some_and(|entry| entry.status() == Status::Removed);
        removed && !whole.contains(&former.id)
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
