//! One side of a session: what its folder holds, here or in the relay, without a file being opened.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::record::travels;
use crate::base::{Error, Result, Stop};
use crate::disk::{self, Dir, Entry, FileKind, Meta, TEMPORARY_PREFIX};
use crate::home::LOGS;

/// Files that file managers and sync clients leave in every folder, and that are nobody's work: in a relay they come and
/// go by themselves, so they are passed over on both sides.
const LEFT_BY_OTHERS: [&str; 6] = [
    ".DS_Store",
    ".directory",
    ".dropbox.attr",
    "Icon\r",
    "Thumbs.db",
    "desktop.ini",
];

/// A folder of a session.
#[derive(Debug)]
pub struct Side {
    /// The folder itself.
    pub dir: Dir,
    /// What `lstat` says of it.
    pub meta: Meta,
    /// What is in it, by path below it.
    pub names: BTreeMap<PathBuf, Meta>,
    /// What can not travel: sockets, FIFOs, devices.
    pub odd: Vec<PathBuf>,
    /// What could not be listed, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Temporary files that a kill has left.
    pub temporary: Vec<(PathBuf, Meta)>,
}

impl Side {
    /// Looks at the folder `name` of `parent`; `None` when there is none. What stands there and is no folder is an error
    /// of kind `NotADirectory`.
    ///
    /// # Errors
    /// A folder that can not be opened; interruption.
    pub fn look(parent: &Dir, name: &OsStr, logs: bool, stop: &Stop) -> Result<Option<Side>> {
        let fail = |e| Error::io("can not open the folder", Path::new(name), e);
        match parent.find(name).map_err(fail)? {
            None => return Ok(None),
            Some(meta) if meta.kind != FileKind::Folder => {
                return Err(fail(io::ErrorKind::NotADirectory.into()));
            }
            Some(_) => {}
        }
        let dir = parent.open_beneath(Path::new(name)).map_err(fail)?;
        let meta = dir.meta().map_err(fail)?;
        let tree = disk::walk(&dir, &|rel, entry| passed_over(rel, entry, logs), stop)?;
        let mut side = Side {
            dir,
            meta,
            names: BTreeMap::new(),
            odd: Vec::new(),
            unreadable: Vec::new(),
            temporary: Vec::new(),
        };
        for folder in tree.folders {
            side.unreadable.extend(folder.unreadable);
            for entry in folder.entries {
                let path = folder.rel.join(&entry.name);
                if is_temporary(&entry.name) {
                    side.temporary.push((path, entry.meta));
                } else if travels(entry.meta.kind) {
                    side.names.insert(path, entry.meta);
                } else {
                    side.odd.push(path);
                }
            }
        }
        Ok(Some(side))
    }

    /// Whether there is no file and no link in it.
    pub fn is_empty(&self) -> bool {
        self.names
            .values()
            .all(|meta| meta.kind == FileKind::Folder)
    }
}

fn passed_over(rel: &Path, entry: &Entry, logs: bool) -> bool {
    let is_logs = rel.as_os_str().is_empty() && entry.name == LOGS;
    (is_logs && !logs) || (entry.meta.kind == FileKind::File && is_left_by_others(&entry.name))
}

/// Whether a file of that name is one that file managers and sync clients leave everywhere.
pub fn is_left_by_others(name: &OsStr) -> bool {
    LEFT_BY_OTHERS.iter().any(|left| name == *left)
}

fn is_temporary(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with(TEMPORARY_PREFIX))
}
