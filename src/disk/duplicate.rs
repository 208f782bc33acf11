//! An exact second file or link: content, holes, mode, times, attributes, and the owner where this process may
//! say so.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Buffers, CopyError, Dir, FileKind, Identity, Meta, NewFile, Xattrs};
use super::{check_open, copy_file};
use crate::base::Stop;

/// Copies a file with its mode, times and extended attributes, reads the copy back and compares. It has no
/// name yet: [`NewFile::publish`] gives it one.
///
/// # Errors
/// A source that can not be read, is no file, or did not hold still; a copy that can not be written.
pub fn duplicate<'d>(
    from: &Dir,
    name: &OsStr,
    to: &'d Dir,
    stop: &Stop,
) -> Result<NewFile<'d>, CopyError> {
    let source = from.open_file(name).map_err(CopyError::Read)?;
    let seen: Meta = rustix::fs::fstat(&source)
        .map_err(|e| CopyError::Read(e.into()))?
        .into();
    if seen.kind != FileKind::File {
        let what = format!("expected a file, found {}", seen.kind.described());
        return Err(CopyError::Read(io::Error::other(what)));
    }
    let mut buffers = Buffers::new();
    let (copy, copied) = copy_file(&source, &seen, to, &mut Identity, &mut buffers, stop)?;
    if !copied.source.same_state(&seen) || copied.size != seen.size {
        return Err(CopyError::Read(io::Error::other("it is being written")));
    }
    let attributes = Xattrs::of(&source).map_err(CopyError::Read)?;
    attributes
        .apply(copy.file())
        .map_err(|(_, error)| CopyError::Write(error))?;
    let owner = owner_of(&seen);
    copy.dress(owner, seen.mode, seen.mtime)
        .and_then(|()| copy.sync())
        .map_err(CopyError::Write)?;
    let back = check_open(copy.file(), &mut buffers, stop, &mut |_, _| {})?;
    if back.digest != copied.digest {
        let what = "what was read back is not what was written";
        return Err(CopyError::Write(io::Error::other(what)));
    }
    Ok(copy)
}

/// Copies the file or link `name` of `from` to `new` in `to`, where nothing may stand. A file is read back before it
/// gets its name.
///
/// # Errors
/// What the system says; something that is neither file nor link; what [`duplicate`] says.
pub fn duplicate_as(
    from: &Dir,
    name: &OsStr,
    to: &Dir,
    new: &OsStr,
    stop: &Stop,
) -> io::Result<()> {
    let meta = from.stat(name)?;
    if meta.kind != FileKind::Symlink {
        let mut copy = duplicate(from, name, to, stop).map_err(|error| match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
            CopyError::Stopped => io::Error::new(io::ErrorKind::Interrupted, "interrupted"),
        })?;
        return copy.publish(new);
    }
    to.symlink(&from.read_link(name)?, new)?;
    if let Some((uid, gid)) = owner_of(&meta) {
        to.set_owner_of(new, uid, gid)?;
    }
    to.set_time_of(new, meta.mtime)
}

/// Like [`duplicate_as`], for a folder with everything in it too.
///
/// # Errors
/// As there; what has been copied until then stays.
pub fn duplicate_tree(
    from: &Dir,
    name: &OsStr,
    to: &Dir,
    new: &OsStr,
    stop: &Stop,
) -> io::Result<()> {
    let meta = from.stat(name)?;
    if meta.kind != FileKind::Folder {
        return duplicate_as(from, name, to, new, stop);
    }
    let source = from.open_beneath(Path::new(name))?;
    let tree = super::walk(&source, &|_, _| false, stop).map_err(io::Error::other)?;
    to.make(new)?;
    let copy = to.open_beneath(Path::new(new))?;
    for folder in &tree.folders {
        let (here, there) = (
            source.open_beneath(&folder.rel)?,
            copy.make_beneath(&folder.rel)?,
        );
        for entry in folder
            .entries
            .iter()
            .filter(|e| e.meta.kind != FileKind::Folder)
        {
            duplicate_as(&here, &entry.name, &there, &entry.name, stop)?;
        }
    }
    // Deepest first, so that dressing one does not change another's time.
    for folder in tree.folders.iter().rev() {
        let there = copy.open_beneath(&folder.rel)?;
        if let Some((uid, gid)) = owner_of(&folder.meta) {
            there.set_owner(uid, gid)?;
        }
        there.set_mode(folder.meta.mode)?;
        there.set_time(folder.meta.mtime)?;
    }
    Ok(())
}

fn owner_of(meta: &Meta) -> Option<(u32, u32)> {
    super::is_root().then_some((meta.uid, meta.gid))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn mode_time_and_content_are_kept_and_nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("甲.md");
        std::fs::write(&path, "内容").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        dir.set_time_of(
            OsStr::new("甲.md"),
            super::super::Stamp {
                seconds: 7,
                nanos: 9,
            },
        )
        .unwrap();
        dir.symlink(b"/nowhere", OsStr::new("link")).unwrap();
        let copy = |name: &str, new: &str| {
            let (name, new) = (OsStr::new(name), OsStr::new(new));
            duplicate_as(&dir, name, &dir, new, &Stop::new())
        };
        copy("甲.md", "copy").unwrap();
        copy("link", "link2").unwrap();
        let meta = dir.stat(OsStr::new("copy")).unwrap();
        assert_eq!(
            (meta.mode, meta.mtime.seconds, meta.mtime.nanos),
            (0o640, 7, 9)
        );
        assert_eq!(
            std::fs::read(folder.path().join("copy")).unwrap(),
            "内容".as_bytes()
        );
        assert_eq!(dir.read_link(OsStr::new("link2")).unwrap(), b"/nowhere");
        assert!(copy("甲.md", "link").is_err());
        assert_eq!(dir.read_link(OsStr::new("link")).unwrap(), b"/nowhere");
    }

    #[test]
    fn a_folder_is_copied_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("甲/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("x"), "1").unwrap();
        std::os::unix::fs::symlink("x", deep.join("l")).unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let time = super::super::Stamp {
            seconds: 7,
            nanos: 9,
        };
        dir.set_time_of(OsStr::new("甲"), time).unwrap();
        let (name, new) = (OsStr::new("甲"), OsStr::new("乙"));
        duplicate_tree(&dir, name, &dir, new, &Stop::new()).unwrap();
        assert_eq!(dir.stat(new).unwrap().mtime, time);
        let copy = folder.path().join("乙/b/c");
        assert_eq!(std::fs::read(copy.join("x")).unwrap(), b"1");
        assert_eq!(std::fs::read_link(copy.join("l")).unwrap(), Path::new("x"));
    }
}
