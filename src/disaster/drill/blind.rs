//! What lies in the home, or in the agent application's own folder, and is held by no backup: with its size, so that a
//! person can decide whether that is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::report::BlindSpot;
use crate::backup::agent_state::Portion;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Entry, FileKind};
use crate::history::{Repository, push};
use crate::home::{Config, Home};

/// Files and bytes.
#[derive(Clone, Copy, Default)]
struct Size {
    files: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, entry: &Entry) {
        if matches!(entry.meta.kind, FileKind::File | FileKind::Symlink) {
            self.files += 1;
            self.bytes += entry.meta.size;
        }
    }

    fn spot(self, path: PathBuf, why: impl Into<String>) -> BlindSpot {
        BlindSpot {
            path: path.into(),
            files: self.files,
            bytes: self.bytes,
            why: why.into(),
        }
    }
}

fn size_of(folder: &Path, context: &Context) -> Result<Size> {
    let mut size = Size::default();
    if disk::is_folder(folder) {
        let dir = Dir::open(folder).map_err(|e| Error::io("can not open", folder, e))?;
        let tree = disk::walk(&dir, &|_, _| false, context.stop)?;
        tree.entries().for_each(|(_, entry)| size.add(entry));
    }
    Ok(size)
}

/// What of the home itself is held by nothing.
///
/// # Errors
/// What can not be looked at, and interruption.
pub(super) fn in_home(
    home: &Home,
    repository: Option<&Repository>,
    context: &Context,
) -> Result<Vec<BlindSpot>> {
    let mut spots = Vec::new();
    if let Some(repository) = repository
        && disk::real_path(repository.dir())?.starts_with(disk::real_path(home.root())?)
    {
        let pushed = Config::load(home)
            .ok()
            .map(|config| push::preview(home, repository, &config, context));
        // A branch of which the remote is known to have every commit can be cloned from there.
        let elsewhere = pushed.is_some_and(|push| {
            push.state == push::State::Nothing && push.remote.is_some() && push.commits == 0
        });
        if !elsewhere {
            spots.push(size_of(repository.dir(), context)?.spot(
                repository.dir().components().collect(),
                "the history lies in the home and goes with it: `[git] dir` on another disk, or a remote and `wbhome commit --push`, keep it (docs/configuration.md says how it is moved)",
            ));
        }
    }
    let trash = size_of(&home.trash(), context)?;
    if trash.files > 0 {
        spots.push(trash.spot(
            home.trash(),
            "what commands have replaced or removed is not backed up",
        ));
    }
    Ok(spots)
}

/// A whole folder of the application that nobody has asked to save.
///
/// # Errors
/// What can not be looked at, and interruption.
pub(super) fn unsaved_state(
    folder: &Path,
    why: &str,
    context: &Context,
) -> Result<Option<BlindSpot>> {
    let size = size_of(folder, context)?;
    Ok((size.files > 0).then(|| size.spot(folder.to_path_buf(), why)))
}

/// What of a saved folder of the application is in no part of it, by the names at its top.
///
/// # Errors
/// What can not be looked at, and interruption.
pub(super) fn in_state(
    folder: &Path,
    portions: &[Portion],
    context: &Context,
) -> Result<Vec<BlindSpot>> {
    let root = Dir::open(folder).map_err(|e| Error::io("can not open", folder, e))?;
    let tree = disk::walk(&root, &|_, _| false, context.stop)?;
    let mut all: BTreeMap<PathBuf, &Entry> = tree
        .entries()
        .filter(|(_, entry)| entry.meta.kind != FileKind::Folder)
        .collect();
    for portion in portions {
        let below = portion.path.strip_prefix(folder).unwrap_or(Path::new(""));
        let saved = disk::walk(&portion.root, &*portion.skip, context.stop)?;
        for (rel, _) in saved.entries() {
            all.remove(&below.join(rel));
        }
        for database in &portion.databases {
            // The index of its log is made anew.
            let mut index = database.as_os_str().to_owned();
            index.push("-shm");
            all.remove(Path::new(&index));
        }
    }
    let mut spots: BTreeMap<PathBuf, Size> = BTreeMap::new();
    for (rel, entry) in all {
        let top = rel.iter().next().unwrap_or_default();
        spots.entry(folder.join(top)).or_default().add(entry);
    }
    Ok(spots
        .into_iter()
        .filter(|(_, size)| size.files > 0)
        .map(|(path, size)| {
            let why = why_not(path.strip_prefix(folder).unwrap_or(&path));
            size.spot(path, why)
        })
        .collect())
}

fn why_not(rel: &Path) -> String {
    let name = human::path(rel);
    match name.as_str() {
        "sessions" => "the registry of running processes".to_owned(),
        "binaries" => "can be downloaded again".to_owned(),
        _ => format!("not saved: `[state] include = [\"{name}\"]` would"),
    }
}
