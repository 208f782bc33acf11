//! What lies in the folder of a session, in the home or in a relay. Looked at twice, it tells whether somebody writes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::below::Below;
use super::side::is_left_by_others;
use crate::base::{Error, Result, Stop};
use crate::disk::{self, Dir, FileKind, Meta};

/// A file, link or folder.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// What `lstat` says.
    pub meta: Meta,
    /// Where it points, if it is a link.
    pub link: Option<Vec<u8>>,
}

impl Item {
    /// The bytes of its content; a link and a folder have none.
    pub fn bytes(&self) -> u64 {
        match self.meta.kind {
            FileKind::File => self.meta.size,
            _ => 0,
        }
    }

    fn is_as(&self, other: &Item) -> bool {
        self.meta.same_state(&other.meta) && self.link == other.link
    }
}

/// A folder of a session, as it was when it was looked at.
#[derive(Debug)]
pub(super) struct Side {
    /// Open.
    pub dir: Dir,
    /// The folder itself.
    pub top: Meta,
    /// Everything below that can be copied, a folder before what is in it.
    pub items: BTreeMap<PathBuf, Item>,
    /// Files that file managers and sync clients leave everywhere: nobody's work, and no part of a version.
    pub left_by_others: BTreeMap<PathBuf, Item>,
    /// FIFOs, sockets and devices.
    pub special: Vec<(PathBuf, FileKind)>,
    /// What could not be looked at, and why; the folder itself as an empty path.
    pub unread: Vec<(PathBuf, String)>,
}

impl Side {
    /// Looks at everything in a folder but what is being written under a temporary name.
    ///
    /// # Errors
    /// A folder that can not be looked at itself, and interruption.
    pub fn look(dir: Dir, stop: &Stop) -> Result<Side> {
        let temporary = disk::TEMPORARY_PREFIX.as_bytes();
        let skip =
            |_: &Path, entry: &disk::Entry| entry.name.as_encoded_bytes().starts_with(temporary);
        let tree = disk::walk(&dir, &skip, stop)?;
        let top = dir.meta().map_err(|e| Error::io("can not read", ".", e))?;
        let mut side = Side {
            dir,
            top,
            items: BTreeMap::new(),
            left_by_others: BTreeMap::new(),
            special: Vec::new(),
            unread: Vec::new(),
        };
        let mut links = Vec::new();
        for folder in tree.folders {
            side.unread.extend(folder.unreadable);
            for entry in folder.entries {
                let path = folder.rel.join(&entry.name);
                match entry.meta.kind {
                    FileKind::Symlink => links.push((path, entry.meta)),
                    _ => side.add(path, &entry),
                }
            }
        }
        side.add_links(links);
        Ok(side)
    }

    fn add(&mut self, path: PathBuf, entry: &disk::Entry) {
        let item = Item {
            meta: entry.meta,
            link: None,
        };
        match entry.meta.kind {
            FileKind::File if is_left_by_others(&entry.name) => {
                self.left_by_others.insert(path, item);
            }
            FileKind::File | FileKind::Folder => drop(self.items.insert(path, item)),
            kind => self.special.push((path, kind)),
        }
    }

    fn add_links(&mut self, links: Vec<(PathBuf, Meta)>) {
        let mut folders = Below::new(&self.dir);
        for (path, meta) in links {
            let parent = folders.open(path.parent().unwrap_or(Path::new("")));
            let name = path.file_name().unwrap_or_default();
            match parent.and_then(|dir| dir.read_link(name)) {
                Ok(target) => {
                    let link = Some(target);
                    self.items.insert(path, Item { meta, link });
                }
                Err(error) => self.unread.push((path, crate::base::human::io(&error))),
            }
        }
    }

    /// Whether nothing has changed between the two looks.
    pub fn is_as(&self, other: &Side) -> bool {
        self.top.same_state(&other.top) && self.holds_as(other)
    }

    /// Whether nothing in it has changed between the two looks. A rename changes the folder itself.
    pub fn holds_as(&self, other: &Side) -> bool {
        are_as(&self.items, &other.items)
            && are_as(&self.left_by_others, &other.left_by_others)
            && self.special == other.special
            && self.unread == other.unread
    }

    /// Files and links.
    pub fn content(&self) -> impl Iterator<Item = (&PathBuf, &Item)> {
        let items = self.items.iter();
        items.filter(|(_, item)| item.meta.kind != FileKind::Folder)
    }

    /// Links that lead out of the session, or nobody knows where.
    pub fn leading_out(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let links = self.items.iter().filter_map(|(path, item)| {
            let target = item.link.as_ref()?;
            leads_out(path, target).then(|| (path.clone(), target.clone()))
        });
        links.collect()
    }
}

fn are_as(items: &BTreeMap<PathBuf, Item>, then: &BTreeMap<PathBuf, Item>) -> bool {
    let mut both = items.iter().zip(then);
    items.len() == then.len()
        && both.all(|((path, item), (was, then))| path == was && item.is_as(then))
}

/// Whether a link at `path` below the session leads out of it, by the letter.
fn leads_out(path: &Path, target: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut depth = path.components().count() - 1;
    for component in Path::new(OsStr::from_bytes(target)).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_told_from_those_that_do_not() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a", "../b", true),
            ("context/最新", "turn_001.json", false),
            ("context/最新", "../memory/x", false),
            ("context/最新", "../../x", true),
            ("context/最新", "../context/../../x", true),
            ("a", "/etc/passwd", true),
            ("a", "b/../c", false),
        ] {
            assert_eq!(
                leads_out(Path::new(path), target.as_bytes()),
                out,
                "{path} {target}"
            );
        }
    }

    #[test]
    fn a_change_between_two_looks_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| std::fs::write(folder.path().join(name), content);
        let look = || Side::look(Dir::open(folder.path()).unwrap(), &Stop::new()).unwrap();
        put("数据.json", "1").unwrap();
        put(".wbhome-tmp-0", "being written").unwrap();
        std::os::unix::fs::symlink("数据.json", folder.path().join("link")).unwrap();
        let first = look();
        assert_eq!(first.items.len(), 2);
        assert!(first.is_as(&look()));
        put("数据.json", "12").unwrap();
        assert!(!first.is_as(&look()));
        let second = look();
        std::fs::create_dir(folder.path().join("new")).unwrap();
        assert!(!second.is_as(&look()));
    }
}
