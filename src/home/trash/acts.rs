//! Reading the trash: its acts, the newest first, and what each of them still holds.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{NOTE, Note, Was, lies};
use crate::base::{Error, Result, Stop, stamp};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{Home, Index, LockedHome, Status};

/// What the note of an act says that has put away the version of a relay.
pub const OF_RELAY: &str = "relay sync";

/// The trash below the home.
pub(crate) const TRASH: &str = ".wbhome/trash";

/// A folder of the trash.
#[derive(Clone, Debug)]
pub struct Act {
    /// Its name: the moment, and a number when that had several.
    pub name: String,
    /// What it has done. Where the note can not be read, nothing is known.
    pub note: Note,
    /// Whether there is a note that can be read.
    pub noted: bool,
}

/// Every act, the newest first.
///
/// # Errors
/// When the trash can not be listed.
pub fn acts(home: &Home) -> Result<Vec<Act>> {
    let mut acts = Vec::new();
    for (name, kind) in disk::read_dir_names(&home.trash())? {
        if let (FileKind::Folder, Some(name)) = (kind, name.to_str()) {
            acts.push(read(home, name));
        }
    }
    acts.sort_by(|a, b| age(&b.name).cmp(&age(&a.name)));
    Ok(acts)
}

/// The act of that name; `None` when there is none.
pub fn act(home: &Home, name: &str) -> Option<Act> {
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
    (plain && disk::is_folder(&home.trash().join(name))).then(|| read(home, name))
}

/// `20240615T120000Z-10` comes after `20240615T120000Z-9`.
fn age(name: &str) -> (&str, u64, &str) {
    let (stamp, n) = name.split_once('-').unwrap_or((name, "1"));
    (stamp, n.parse().unwrap_or(0), name)
}

fn read(home: &Home, name: &str) -> Act {
    let path = home.trash().join(name).join(NOTE);
    let note = disk::read_own(&path).ok().flatten();
    let note: Option<Note> = note.and_then(|text| serde_json::from_slice(&text).ok());
    let noted = note.is_some();
    let mut act = Act {
        name: name.to_owned(),
        note: note.unwrap_or_default(),
        noted,
    };
    act.find_what_lies_elsewhere(home);
    act
}

impl Act {
    /// Its folder, below the home.
    pub fn folder(&self) -> PathBuf {
        Path::new(TRASH).join(&self.name)
    }

    /// When it was done: as its note says, or else its name.
    pub fn at(&self) -> Option<jiff::Timestamp> {
        let by_name = || stamp::read(self.name.split('-').next()?);
        self.note.at.parse().ok().or_else(by_name)
    }

    /// Whether what lies in it was no session of the home, but the version that a relay had of one.
    pub fn is_of_relay(&self) -> bool {
        self.note.command.as_deref() == Some(OF_RELAY)
    }

    /// What of it still lies there, with what `lstat` says.
    pub fn holds(&self, root: &Dir) -> Vec<(&Was, Meta)> {
        let was = self.note.was.iter();
        was.filter_map(|was| Some((was, self.look(root, &was.lies)?)))
            .collect()
    }

    /// How many files lie in it besides its note, and how many bytes.
    ///
    /// # Errors
    /// Interruption.
    pub fn size(&self, root: &Dir, stop: &Stop) -> Result<(u64, u64)> {
        let Ok(folder) = root.open_beneath(&self.folder()) else {
            return Ok((0, 0));
        };
        let tree = disk::walk(&folder, &|_, _| false, stop)?;
        let files = tree
            .entries()
            .filter(|(path, entry)| entry.meta.kind != FileKind::Folder && path != Path::new(NOTE));
        let sizes = files.map(|(_, entry)| entry.meta.size);
        Ok(sizes.fold((0, 0), |(n, bytes), size| (n + 1, bytes + size)))
    }

    /// Something below its folder.
    pub fn look(&self, root: &Dir, lies: &Path) -> Option<Meta> {
        let path = self.folder().join(lies);
        let dir = root.open_beneath(path.parent()?).ok()?;
        dir.find(path.file_name()?).ok().flatten()
    }

    /// Where a path of the home lies below its folder, alone or within something larger, and in what.
    pub fn place_of(&self, root: &Dir, path: &Path) -> Option<(&Was, PathBuf)> {
        self.note.was.iter().find_map(|was| {
            let within = path.strip_prefix(&was.path).ok()?;
            let lies = match within.as_os_str().is_empty() {
                true => was.lies.clone(),
                false => was.lies.join(within),
            };
            self.look(root, &lies)?;
            Some((was, lies))
        })
    }

    /// Notes of earlier versions do not tell where something lies that lies directly beside the note.
    fn find_what_lies_elsewhere(&mut self, home: &Home) {
        let folder = home.trash().join(&self.name);
        for was in &mut self.note.was {
            if was.lies != lies(&was.path) || disk::exists(&folder.join(&was.lies)) {
                continue;
            }
            let name = was.path.file_name().unwrap_or_default();
            let beside = match name == NOTE {
                true => OsStr::new("_note.json"),
                false => name,
            };
            if disk::exists(&folder.join(beside)) {
                was.lies = beside.into();
            }
        }
    }
}

/// Removes an act that has nothing left to be taken back: its note and its empty folders, and no file that was
/// kept. Whether it was removed.
///
/// # Errors
/// When it can not be looked at or removed.
pub(crate) fn close(home: &LockedHome, name: &str) -> Result<bool> {
    let Some(act) = act(home, name) else {
        return Ok(false);
    };
    let fail = |e| Error::io("can not remove", home.trash().join(name), e);
    let root = Dir::open(home.root()).map_err(fail)?;
    if still_in_force(home, &root, &act) {
        return Ok(false);
    }
    let Ok(folder) = root.open_beneath(&act.folder()) else {
        return Ok(false);
    };
    let mut folders = vec![PathBuf::new()];
    let mut at = 0;
    while let Some(rel) = folders.get(at).cloned() {
        at += 1;
        for (name, _) in folder
            .open_beneath(&rel)
            .and_then(|d| d.names())
            .map_err(fail)?
        {
            let below = rel.join(&name);
            let kind = folder
                .open_beneath(&rel)
                .and_then(|dir| dir.stat(&name))
                .map_err(fail)?
                .kind;
            match kind {
                FileKind::Folder => folders.push(below),
                _ if below == Path::new(NOTE) => {}
                _ => return Ok(false),
            }
        }
    }
    remove_empty(&folder, &folders).map_err(fail)?;
    let trash = root.open_beneath(Path::new(TRASH)).map_err(fail)?;
    trash
        .remove_folder(OsStr::new(name))
        .and_then(|()| trash.sync())
        .map_err(fail)?;
    Ok(true)
}

fn remove_empty(folder: &Dir, folders: &[PathBuf]) -> io::Result<()> {
    for rel in folders.iter().skip(1).rev() {
        if let (Some(parent), Some(name)) = (rel.parent(), rel.file_name()) {
            folder.open_beneath(parent)?.remove_folder(name)?;
        }
    }
    // Last, so that what a kill leaves is still an act.
    match folder.unlink(OsStr::new(NOTE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether something that it has done and that lies elsewhere still stands: files added, modes changed,
/// sessions removed.
fn still_in_force(home: &LockedHome, root: &Dir, act: &Act) -> bool {
    let there = |path: &Path| {
        let parent = path.parent().and_then(|p| root.open_beneath(p).ok());
        let found = parent.and_then(|dir| dir.find(path.file_name()?).ok().flatten());
        found.is_some()
    };
    let tight = |path: &Path, now: u32| {
        root.open_beneath(path)
            .and_then(|dir| dir.meta())
            .is_ok_and(|meta| meta.mode == now)
    };
    let note = &act.note;
    if note.added.iter().any(|added| there(&added.path))
        || note.modes.iter().any(|m| tight(&m.path, m.now))
    {
        return true;
    }
    let index = match note.entries.is_empty() {
        true => Index::default(),
        false => Index::read(home).unwrap_or_default(),
    };
    let removed = |id: &str| {
        index
            .find(id)
            .is_some_and(|entry| entry.status() == Status::Removed)
    };
    note.entries.iter().any(|former| removed(&former.id))
}
