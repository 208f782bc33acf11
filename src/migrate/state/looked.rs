//! A state folder that was walked, and what in it is known.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, Entry, FileKind, Folder, Tree};
use crate::state::{self, DATABASE};

/// A state folder that was walked.
pub(in crate::migrate) struct Looked {
    pub(super) path: PathBuf,
    pub dir: Dir,
    pub(super) tree: Tree,
}

impl Looked {
    /// Walks a state folder, without what the application writes and never reads again.
    ///
    /// # Errors
    /// A folder that can not be read, or whose parts lie elsewhere.
    pub fn at(folder: &Path, ctx: &Context) -> Result<Looked> {
        let fail = |e| Error::io("can not open the state folder", folder, e);
        let path = disk::real_path(folder)?;
        let dir = Dir::open(&path).map_err(fail)?;
        let skip = |rel: &Path, entry: &Entry| !state::follows_a_move(&rel.join(&entry.name));
        let tree = disk::walk(&dir, &skip, ctx.stop)?;
        let looked = Looked { path, dir, tree };
        looked.in_one_place()?;
        Ok(looked)
    }

    /// Everything must be on one filesystem and in the folder itself: what is to be replaced as one can not lie
    /// in two places.
    fn in_one_place(&self) -> Result<()> {
        let root = self.tree.folders.first();
        let device = root.map(|root| root.meta.dev);
        let parts = [
            OsStr::new("projects"),
            OsStr::new("sessions"),
            OsStr::new(DATABASE),
        ];
        for entry in root.iter().flat_map(|root| &root.entries) {
            if entry.meta.kind == FileKind::Symlink && parts.contains(&entry.name.as_os_str()) {
                return Err(Error::failed("is a link, and what it leads to can not be replaced together with the rest:")
                    .at(self.path.join(&entry.name))
                    .hint("put the folder or file itself there; --no-state leaves the state folder as it is"));
            }
        }
        let elsewhere = self
            .tree
            .folders
            .iter()
            .find(|folder| Some(folder.meta.dev) != device);
        match elsewhere {
            Some(folder) => Err(Error::failed(
                "lies on another disk than the rest of the state folder, and can not be replaced together with it:",
            )
            .at(self.path.join(&folder.rel))
            .hint("put it there itself; --no-state leaves the state folder as it is")),
            None => Ok(()),
        }
    }

    pub(super) fn root(&self) -> Option<&Folder> {
        self.tree.folders.first()
    }

    pub(super) fn entry(&self, path: &Path) -> Option<&Entry> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name()?;
        let folders = &self.tree.folders;
        let at = folders
            .binary_search_by(|f| f.rel.as_path().cmp(parent))
            .ok()?;
        let entries = &folders[at].entries;
        let at = entries
            .binary_search_by(|entry| entry.name.as_os_str().cmp(name))
            .ok()?;
        Some(&entries[at])
    }

    /// The application's database, if there is one.
    pub(super) fn database(&self) -> Option<&Entry> {
        let root = self.root()?;
        let found = root.entries.iter().find(|entry| entry.name == DATABASE);
        found.filter(|entry| entry.meta.kind == FileKind::File)
    }

    /// The folders that running and former processes have noted.
    pub(super) fn noted(&self, known: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let mut folders = known.clone();
        for agent in state::agents(&self.path)? {
            folders.extend(
                agent
                    .cwd
                    .and_then(|cwd| cwd.into_os_string().into_string().ok()),
            );
        }
        Ok(folders)
    }
}
