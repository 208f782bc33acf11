//! Replacing and removing a name only as long as it is what was looked at: in a folder that others change, too.
//!
//! Between a look and a rename somebody may have put another file there. So what goes is renamed aside first, in one
//! step, and looked at there, where nobody else finds it; what was not expected goes back to its place.

use std::ffi::OsStr;
use std::io;

use super::new_file::temporary_name;
use super::{Dir, FileKind, Meta, NewFile};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It was as expected, and the change is made.
    Done,
    /// It was something else: that stands where it stood.
    Changed,
}

/// Whether it is still what was looked at. A rename changes the time of change, and a new name the number of names.
fn is_still(now: &Meta, seen: &Meta) -> bool {
    let state = |meta: &Meta| (meta.identity(), meta.kind, meta.size, meta.mtime);
    state(now) == state(seen)
}

impl NewFile<'_> {
    /// Gives the file its final name in the place of a file or link that is still what was looked at.
    ///
    /// # Errors
    /// What the system says; then what was there is there.
    pub fn publish_instead(self, name: &OsStr, seen: &Meta) -> io::Result<Expected> {
        let dir = self.dir();
        let temporary = self.publish_temporary()?;
        replace_expected(dir, &temporary, name, seen)
    }
}

/// Gives the file `temporary` of the folder the name of a file or link that is still what was looked at. When it is not,
/// `temporary` is removed.
///
/// # Errors
/// What the system says; then what was there is there, and `temporary` is not.
pub fn replace_expected(
    dir: &Dir,
    temporary: &OsStr,
    name: &OsStr,
    seen: &Meta,
) -> io::Result<Expected> {
    let undone = |error: io::Error| {
        // Nothing more can be done about a temporary file that stays.
        let _ = dir.unlink(temporary);
        Err(error)
    };
    let ours = dir.stat(temporary)?.identity();
    match dir.exchange(temporary, dir, name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            return match dir.find(name) {
                Ok(Some(now)) if is_still(&now, seen) => dir
                    .rename_over(temporary, name)
                    .map(|()| Expected::Done)
                    .or_else(undone),
                Ok(_) => dir.unlink(temporary).map(|()| Expected::Changed),
                Err(error) => undone(error),
            };
        }
        // It has gone meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return dir.unlink(temporary).map(|()| Expected::Changed);
        }
        Err(error) => return undone(error),
    }
    let former = dir.stat(temporary)?;
    if is_still(&former, seen) {
        return dir.unlink(temporary).map(|()| Expected::Done);
    }
    give_back(dir, temporary, name, ours)
}

/// Gives a name back to what was not expected. Whoever saves in the meantime, saves over ours: then theirs is the newer
/// one, and takes the place of what they have saved before, as it would have without us.
fn give_back(dir: &Dir, temporary: &OsStr, name: &OsStr, ours: (u64, u64)) -> io::Result<Expected> {
    for _ in 0..ATTEMPTS {
        let older = dir.stat(temporary)?.identity();
        dir.exchange(temporary, dir, name)?;
        if dir.stat(temporary)?.identity() == ours {
            return dir.unlink(temporary).map(|()| Expected::Changed);
        }
        // What came out is newer than what went in.
        dir.exchange(temporary, dir, name)?;
        if dir.stat(temporary)?.identity() == older {
            return dir.unlink(temporary).map(|()| Expected::Changed);
        }
    }
    // Somebody saves again and again: both stay, and nothing is lost.
    Ok(Expected::Changed)
}

/// So often a name is given back to somebody who saves in the same moment.
const ATTEMPTS: usize = 8;

/// Removes the name of a file or link, as long as it is what was looked at; one that has gone already is as expected.
///
/// # Errors
/// What the system says.
pub fn remove_expected(dir: &Dir, name: &OsStr, seen: &Meta) -> io::Result<Expected> {
    match dir.find(name)? {
        None => return Ok(Expected::Done),
        Some(now) if !is_still(&now, seen) || now.kind == FileKind::Folder => {
            return Ok(Expected::Changed);
        }
        Some(_) => {}
    }
    let aside = temporary_name();
    match dir.rename(name, dir, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Expected::Done),
        done => done?,
    }
    if is_still(&dir.stat(&aside)?, seen) {
        return dir.unlink(&aside).map(|()| Expected::Done);
    }
    match dir.rename(&aside, dir, name) {
        // Somebody has saved a newer one meanwhile. The other stays under its temporary name.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Expected::Changed),
        done => done.map(|()| Expected::Changed),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn new<'d>(dir: &'d Dir, content: &str) -> NewFile<'d> {
        let new = NewFile::create(dir).unwrap();
        new.file().write_all(content.as_bytes()).unwrap();
        new
    }

    #[test]
    fn of_what_is_saved_in_the_same_moment_the_newest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (name, temporary) = (OsStr::new("f"), OsStr::new(".t"));
        let put =
            |name: &OsStr, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        // Ours had the name for a moment: the older one came out, and a newer one was saved over ours.
        put(OsStr::new("ours"), "ours");
        let ours = dir.stat(OsStr::new("ours")).unwrap().identity();
        put(temporary, "older");
        put(name, "newer");
        assert_eq!(
            give_back(&dir, temporary, name, ours).unwrap(),
            Expected::Changed
        );
        assert_eq!(
            std::fs::read_to_string(folder.path().join(name)).unwrap(),
            "newer"
        );
        // Nobody has saved: the older one has its name again, and ours goes.
        put(temporary, "older");
        dir.rename_over(OsStr::new("ours"), name).unwrap();
        assert_eq!(
            give_back(&dir, temporary, name, ours).unwrap(),
            Expected::Changed
        );
        assert_eq!(
            std::fs::read_to_string(folder.path().join(name)).unwrap(),
            "older"
        );
        assert_eq!(dir.names().unwrap().len(), 1);
    }

    #[test]
    fn only_what_was_seen_is_replaced_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (path, name) = (folder.path().join("甲"), OsStr::new("甲"));
        let content = || std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "one").unwrap();
        let seen = dir.stat(name).unwrap();
        let done = new(&dir, "two").publish_instead(name, &seen).unwrap();
        assert_eq!((done, content()), (Expected::Done, "two".to_owned()));
        // `seen` is what was there before.
        let done = new(&dir, "three").publish_instead(name, &seen).unwrap();
        assert_eq!((done, content()), (Expected::Changed, "two".to_owned()));
        assert_eq!(
            remove_expected(&dir, name, &seen).unwrap(),
            Expected::Changed
        );
        assert_eq!(content(), "two");
        let seen = dir.stat(name).unwrap();
        assert_eq!(remove_expected(&dir, name, &seen).unwrap(), Expected::Done);
        assert_eq!(remove_expected(&dir, name, &seen).unwrap(), Expected::Done);
        let done = new(&dir, "four").publish_instead(name, &seen).unwrap();
        assert_eq!(done, Expected::Changed);
        assert_eq!(dir.names().unwrap(), []);
    }
}
