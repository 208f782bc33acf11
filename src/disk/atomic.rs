//! Writing a small file whole: its readers see the old content or the new, never a part, and after a power
//! cut one of the two is there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::files::parent_of;
use super::{Digest, Dir, NewFile};
use crate::base::{Error, Result};

/// What came of replacing a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It holds the new content.
    Done,
    /// It did not hold what was expected any more: nothing was changed, and this is what it holds (`None`:
    /// it is gone).
    Changed(Option<Vec<u8>>),
}

/// Writes a file that must not exist yet.
///
/// # Errors
/// When it exists, or can not be written.
pub fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let fail = |e| Error::io("can not write", path, e);
    let (dir, name) = parent_of(path)?;
    let mut new = prepared(&dir, |mut file| file.write_all(content), mode).map_err(fail)?;
    new.publish(name).map_err(fail)?;
    dir.sync().map_err(fail)
}

/// Replaces a file by new content, but only if it still holds `expected` (`None`: it does not exist yet).
/// Where the system can swap two names in one step, an edit that somebody saves between the look and the
/// rename is noticed as well: it comes back as [`Written::Changed`], in its place.
///
/// # Errors
/// When it can not be read or written; then the old content is in place.
pub fn replace(path: &Path, expected: Option<&[u8]>, content: &[u8], mode: u32) -> Result<Written> {
    let fail = |e| Error::io("can not write", path, e);
    let (dir, name) = parent_of(path)?;
    let mut new =
        prepared_for(&dir, name, |mut file| file.write_all(content), mode).map_err(fail)?;
    let Some(expected) = expected else {
        return match new.publish(name) {
            Ok(()) => dir.sync().map(|()| Written::Done).map_err(fail),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Written::Changed(current(&dir, name).map_err(fail)?))
            }
            Err(error) => Err(fail(error)),
        };
    };
    let found = current(&dir, name).map_err(fail)?;
    if found.as_deref() != Some(expected) {
        return Ok(Written::Changed(found));
    }
    let temporary = new.publish_temporary().map_err(fail)?;
    let swapped = swap(&dir, &temporary, name, expected, content);
    // After a swap this name holds the old content, and may go. What two people have
    // saved at once stays: whoever takes the lock next puts it into the trash.
    let may_go = match &swapped {
        Ok((_, left)) => *left == Left::Nothing,
        // After a failure in the middle it may be what somebody has saved.
        Err(_) => matches!(current(&dir, &temporary), Ok(Some(found)) if found == content),
    };
    if may_go {
        let _ = dir.unlink(&temporary);
    }
    let (written, _) = swapped.map_err(fail)?;
    dir.sync().map_err(fail)?;
    Ok(written)
}

/// Puts a file in the place of whatever has that name, which is not read: for what is this program's own.
///
/// # Errors
/// When it can not be written; then the old file is in place.
pub fn replace_any(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let fail = |e| Error::io("can not write", path, e);
    let (dir, name) = parent_of(path)?;
    let new = prepared_for(&dir, name, |mut file| file.write_all(content), mode).map_err(fail)?;
    new.publish_over(name).map_err(fail)?;
    dir.sync().map_err(fail)
}

/// Like [`replace_any`], of what is too long to be held at once: `write` says it, the same each time, to whatever it is
/// given. What the file holds already, by its digest, is not written: a full disk is no trouble then. Returns the digest
/// of what it holds now.
///
/// # Errors
/// When it can not be written; then the old file is in place.
pub fn replace_long(
    path: &Path,
    held: Option<Digest>,
    mode: u32,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<Digest> {
    let fail = |e| Error::io("can not write", path, e);
    let (dir, name) = parent_of(path)?;
    let say = |to: &mut dyn Write| {
        let mut out = io::BufWriter::with_capacity(1 << 16, to);
        write(&mut out)?;
        out.flush()
    };
    let mut hasher = blake3::Hasher::new();
    say(&mut hasher).map_err(fail)?;
    let digest = hasher.finalize();
    if held == Some(digest) && dir.find(name).map_err(fail)?.is_some() {
        return Ok(digest);
    }
    let new = prepared_for(&dir, name, |mut file| say(&mut file), mode).map_err(fail)?;
    new.publish_over(name).map_err(fail)?;
    dir.sync().map_err(fail)?;
    Ok(digest)
}

/// What is left under the temporary name.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// The old content, or ours.
    Nothing,
    /// Something that somebody has saved.
    Edit,
}

fn swap(
    dir: &Dir,
    temporary: &OsStr,
    name: &OsStr,
    expected: &[u8],
    ours: &[u8],
) -> io::Result<(Written, Left)> {
    match dir.exchange(temporary, dir, name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            dir.rename_over(temporary, name)?;
            return Ok((Written::Done, Left::Nothing));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Written::Changed(None), Left::Nothing));
        }
        Err(error) => return Err(error),
    }
    let former = current(dir, temporary)?;
    if former.as_deref() == Some(expected) {
        return Ok((Written::Done, Left::Nothing));
    }
    give_back(dir, temporary, name, former, ours)
}

/// Somebody saved between the look and the swap: theirs goes back to its place. If somebody saved once more
/// meanwhile, the later one stands in the place, and the earlier one is kept.
fn give_back(
    dir: &Dir,
    temporary: &OsStr,
    name: &OsStr,
    former: Option<Vec<u8>>,
    ours: &[u8],
) -> io::Result<(Written, Left)> {
    dir.exchange(temporary, dir, name)?;
    let came_back = current(dir, temporary)?;
    if came_back.as_deref() == Some(ours) {
        return Ok((Written::Changed(former), Left::Nothing));
    }
    dir.exchange(temporary, dir, name)?;
    Ok((Written::Changed(came_back), Left::Edit))
}

fn prepared<'d>(
    dir: &'d Dir,
    content: impl FnOnce(&File) -> io::Result<()>,
    mode: u32,
) -> io::Result<NewFile<'d>> {
    use rustix::fs::Mode;
    let new = NewFile::create(dir)?;
    content(new.file())?;
    rustix::fs::fchmod(new.file(), Mode::from_raw_mode(mode as _))?;
    new.sync()?;
    Ok(new)
}

/// Like [`prepared`], for a name that something may have already. It goes to the owner of that: root that writes for another
/// user must not lock them out of their own file.
fn prepared_for<'d>(
    dir: &'d Dir,
    name: &OsStr,
    content: impl FnOnce(&File) -> io::Result<()>,
    mode: u32,
) -> io::Result<NewFile<'d>> {
    let mut new = prepared(dir, content, mode)?;
    if super::is_root()
        && let Some(there) = dir.find(name)?
    {
        new.give_to(there.uid, there.gid, mode)?;
    }
    Ok(new)
}

fn current(dir: &Dir, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    match dir.open_file(name) {
        Ok(mut file) => {
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            Ok(Some(content))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.json");
        assert_eq!(replace(&path, None, b"one", 0o644).unwrap(), Written::Done);
        assert_eq!(
            replace(&path, None, b"two", 0o644).unwrap(),
            Written::Changed(Some(b"one".to_vec()))
        );
        assert_eq!(
            replace(&path, Some(b"other"), b"two", 0o644).unwrap(),
            Written::Changed(Some(b"one".to_vec()))
        );
        assert_eq!(
            replace(&path, Some(b"one"), b"two", 0o644).unwrap(),
            Written::Done
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            replace(&path, Some(b"two"), b"three", 0o644).unwrap(),
            Written::Changed(None)
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_held_already_is_not_written() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay.json");
        let write = |held, text: &'static [u8]| {
            replace_long(&path, held, 0o600, |to| to.write_all(text)).unwrap()
        };
        let inode = || std::fs::metadata(&path).unwrap().ino();
        let one = write(None, b"one");
        assert_eq!(
            (one, std::fs::read(&path).unwrap()),
            (super::super::digest(b"one"), b"one".to_vec())
        );
        let before = inode();
        assert_eq!((write(Some(one), b"one"), inode()), (one, before));
        let two = write(Some(one), b"two");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        std::fs::remove_file(&path).unwrap();
        write(Some(two), b"two");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_swap_gives_back_an_edit_saved_in_the_last_moment() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (name, temporary) = (OsStr::new("index.json"), OsStr::new(".tmp"));
        std::fs::write(folder.path().join(name), "edited").unwrap();
        std::fs::write(folder.path().join(temporary), "ours").unwrap();
        assert_eq!(
            swap(&dir, temporary, name, b"looked at", b"ours").unwrap(),
            (Written::Changed(Some(b"edited".to_vec())), Left::Nothing)
        );
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"edited");
    }

    #[test]
    fn of_two_edits_saved_at_once_the_later_stands_and_the_earlier_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (name, temporary) = (OsStr::new("index.json"), OsStr::new(".tmp"));
        // The swap has been made, ours stood in the place, and somebody saved over it.
        std::fs::write(folder.path().join(temporary), "earlier").unwrap();
        std::fs::write(folder.path().join(name), "later").unwrap();
        assert_eq!(
            give_back(&dir, temporary, name, Some(b"earlier".to_vec()), b"ours").unwrap(),
            (Written::Changed(Some(b"later".to_vec())), Left::Edit)
        );
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"later");
        let kept = std::fs::read(folder.path().join(temporary)).unwrap();
        assert_eq!(kept, b"earlier");
    }
}
