//! Everything below a folder, in one pass over the disk, following no link and opening no file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{Dir, FileKind, Meta};
use crate::base::{Result, Stop};

/// A name in a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, any bytes but `/` and NUL.
    pub name: OsString,
    /// What `lstat` says.
    pub meta: Meta,
}

/// A folder and what it holds, sub-folders included as names.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Relative to the root; empty for the root itself.
    pub rel: PathBuf,
    /// What `lstat` says.
    pub meta: Meta,
    /// Sorted by name.
    pub entries: Vec<Entry>,
    /// Why it, or one name in it, could not be read, if so.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Everything below a folder.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Sorted by path, so that a folder stands before what is in it.
    pub folders: Vec<Folder>,
}

impl Tree {
    /// Every entry with its path relative to the root, folders included, the root itself not.
    pub fn entries(&self) -> impl Iterator<Item = (PathBuf, &Entry)> {
        self.folders
            .iter()
            .flat_map(|f| f.entries.iter().map(|e| (f.rel.join(&e.name), e)))
    }
}

/// Walks `root`, on all cores. What `skip` says yes to is left out, with everything below it.
///
/// # Errors
/// A root that can not be looked at, and interruption: a folder that can not be listed, the root included, is
/// told in [`Folder::unreadable`].
pub fn walk(
    root: &Dir,
    skip: &(dyn Fn(&Path, &Entry) -> bool + Sync),
    stop: &Stop,
) -> Result<Tree> {
    let folders = Mutex::new(Vec::new());
    let keep = |folder| {
        if let Ok(mut folders) = folders.lock() {
            folders.push(folder);
        }
    };
    walk_each(root, skip, &keep, stop)?;
    let mut folders = folders.into_inner().unwrap_or_default();
    folders.sort_by(|a, b| a.rel.cmp(&b.rel));
    Ok(Tree { folders })
}

/// Walks as [`walk`] does, and hands each folder over when it was read, on any core and in no order: for whoever needs
/// none of them afterwards.
///
/// # Errors
/// As [`walk`].
pub fn walk_each(
    root: &Dir,
    skip: &(dyn Fn(&Path, &Entry) -> bool + Sync),
    each: &(dyn Fn(Folder) + Sync),
    stop: &Stop,
) -> Result<()> {
    let meta = root
        .meta()
        .map_err(|e| crate::base::Error::io("can not read", ".", e))?;
    rayon::scope(|scope| visit(scope, root, PathBuf::new(), meta, skip, stop, each));
    stop.check()
}

fn visit<'s>(
    scope: &rayon::Scope<'s>,
    root: &'s Dir,
    rel: PathBuf,
    meta: Meta,
    skip: &'s (dyn Fn(&Path, &Entry) -> bool + Sync),
    stop: &'s Stop,
    each: &'s (dyn Fn(Folder) + Sync),
) {
    if stop.raised() {
        return;
    }
    let mut folder = Folder {
        rel,
        meta,
        entries: Vec::new(),
        unreadable: Vec::new(),
    };
    match read(root, &folder.rel) {
        Ok((entries, unreadable)) => {
            folder.entries = entries;
            folder.unreadable = unreadable;
        }
        Err(error) => folder
            .unreadable
            .push((folder.rel.clone(), crate::base::human::io(&error))),
    }
    folder.entries.retain(|entry| !skip(&folder.rel, entry));
    // There are many folders, and some callers skip most of what is in them.
    folder.entries.shrink_to_fit();
    for entry in &folder.entries {
        if entry.meta.kind == FileKind::Folder {
            let (mut rel, meta) = (folder.rel.join(&entry.name), entry.meta);
            rel.shrink_to_fit();
            scope.spawn(move |scope| visit(scope, root, rel, meta, skip, stop, each));
        }
    }
    each(folder);
}

type Names = (Vec<Entry>, Vec<(PathBuf, String)>);

fn read(root: &Dir, rel: &Path) -> std::io::Result<Names> {
    let dir = root.open_beneath(rel)?;
    let names = dir.names()?;
    let (mut entries, mut unreadable) = (Vec::with_capacity(names.len()), Vec::new());
    for (name, _) in names {
        match dir.find(&name) {
            Ok(Some(meta)) => entries.push(Entry { name, meta }),
            // Removed between the two calls: it was never there.
            Ok(None) => {}
            Err(error) => unreadable.push((rel.join(&name), crate::base::human::io(&error))),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((entries, unreadable))
}
