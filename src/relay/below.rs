//! Folders below an open one, opened one after the other: each costs a few steps, however deep it lies.
//!
//! From the top, a folder that lies a thousand deep is a thousand steps away, and so is the one in it. So the folder that
//! was opened last stays open, and of those above it one in every so many.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::disk::Dir;

/// Of so many folders above one another one stays open.
const STEP: usize = 64;

/// Folders below one, for whoever goes through them in order.
#[derive(Debug)]
pub(super) struct Below<'d> {
    top: &'d Dir,
    open: Vec<Opened>,
}

#[derive(Debug)]
struct Opened {
    path: PathBuf,
    depth: usize,
    dir: Dir,
}

impl<'d> Below<'d> {
    /// Below this one.
    pub fn new(top: &'d Dir) -> Self {
        let open = Vec::new();
        Below { top, open }
    }

    /// Opens a folder, through no link ([`Dir::open_beneath`]).
    pub fn open(&mut self, rel: &Path) -> io::Result<&Dir> {
        self.reach(rel, &|dir, piece| dir.open_beneath(piece))
    }

    /// Opens a folder, and makes it when it is missing ([`Dir::make_beneath`]).
    pub fn make(&mut self, rel: &Path) -> io::Result<&Dir> {
        self.reach(rel, &|dir, piece| dir.make_beneath(piece))
    }

    fn reach(
        &mut self,
        rel: &Path,
        step: &dyn Fn(&Dir, &Path) -> io::Result<Dir>,
    ) -> io::Result<&Dir> {
        while self
            .open
            .last()
            .is_some_and(|last| rest(rel, &last.path).is_none())
        {
            self.open.pop();
        }
        loop {
            let (done, depth, dir) = match self.open.last() {
                Some(last) => (last.path.as_path(), last.depth, &last.dir),
                None => (Path::new(""), 0, self.top),
            };
            let Some(rest) = rest(rel, done).filter(|rest| !rest.as_os_str().is_empty()) else {
                break;
            };
            let piece: PathBuf = rest.iter().take(STEP - depth % STEP).collect();
            let opened = Opened {
                dir: step(dir, &piece)?,
                path: done.join(&piece),
                depth: depth + piece.iter().count(),
            };
            if depth % STEP != 0 {
                self.open.pop();
            }
            self.open.push(opened);
        }
        Ok(self.open.last().map_or(self.top, |last| &last.dir))
    }
}

/// What of `path` is left below `above`; `None` when it does not lie there. By the letter: components of a path that is
/// thousands long take their time.
fn rest<'p>(path: &'p Path, above: &Path) -> Option<&'p Path> {
    let (path, above) = (path.as_os_str().as_bytes(), above.as_os_str().as_bytes());
    let rest = path.strip_prefix(above)?;
    let rest = match (above.is_empty(), rest) {
        (true, _) | (_, []) => rest,
        _ => rest.strip_prefix(b"/")?,
    };
    Some(Path::new(OsStr::from_bytes(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_the_one_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let top = Dir::open(folder.path()).unwrap();
        let mut below = Below::new(&top);
        let chain: PathBuf = "深/".repeat(3 * STEP + 5).into();
        let chain: PathBuf = chain.iter().collect();
        let mut paths: Vec<PathBuf> = chain.ancestors().map(Path::to_path_buf).collect();
        paths.extend([
            "a".into(),
            "a/b".into(),
            "ab/c".into(),
            chain.join("b"),
            "a/c".into(),
        ]);
        paths.sort();
        for path in &paths {
            let made = below.make(path).unwrap().meta().unwrap();
            assert_eq!(
                made.identity(),
                top.open_beneath(path).unwrap().meta().unwrap().identity()
            );
            assert!(below.open.len() <= 3 + 1);
        }
        let mut below = Below::new(&top);
        for path in paths.iter().rev() {
            let found = below.open(path).unwrap().meta().unwrap();
            assert_eq!(
                found.identity(),
                top.open_beneath(path).unwrap().meta().unwrap().identity()
            );
        }
        assert!(below.open(Path::new("a/none")).is_err());
        std::os::unix::fs::symlink("/etc", folder.path().join("a/out")).unwrap();
        assert!(below.open(Path::new("a/out")).is_err());
        assert!(below.open(Path::new("a/b")).is_ok());
    }
}
