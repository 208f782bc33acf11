//! An exact second file or link: content, holes, mode, times, attributes, and the owner where this process may
//! say so.

use std::ffi::OsStr;
use std::io;

use super::{Buffers, CopyError, Dir, FileKind, Identity, Meta, Xattrs, check_open, copy_file};
use crate::base::Stop;

/// Copies the file or link `name` of `from` to `new` in `to`, where nothing may stand, and reads it back before
/// it gets its name. Returns what the copy was made of.
///
/// # Errors
/// What the system says; something that is neither file nor link; a copy that reads back differently; a file
/// that did not hold still.
pub fn duplicate(
    from: &Dir,
    name: &OsStr,
    to: &Dir,
    new: &OsStr,
    buffers: &mut Buffers,
    stop: &Stop,
) -> io::Result<Meta> {
    let meta = from.stat(name)?;
    match meta.kind {
        FileKind::File => file(from, name, to, new, buffers, stop),
        FileKind::Symlink => {
            to.symlink(&from.read_link(name)?, new)?;
            if let Some((uid, gid)) = owner_of(&meta) {
                to.set_owner_of(new, uid, gid)?;
            }
            to.set_time_of(new, meta.mtime)?;
            Ok(meta)
        }
        other => Err(io::Error::other(format!(
            "can not be copied, it is {}",
            other.described()
        ))),
    }
}

fn owner_of(meta: &Meta) -> Option<(u32, u32)> {
    super::is_root().then_some((meta.uid, meta.gid))
}

fn file(
    from: &Dir,
    name: &OsStr,
    to: &Dir,
    new: &OsStr,
    buffers: &mut Buffers,
    stop: &Stop,
) -> io::Result<Meta> {
    let source = from.open_file(name)?;
    let meta: Meta = rustix::fs::fstat(&source)?.into();
    let (mut copy, copied) =
        copy_file(&source, &meta, to, &mut Identity, buffers, stop).map_err(plain)?;
    if !copied.source.same_state(&meta) {
        return Err(io::Error::other("changed while it was copied"));
    }
    // An attribute that this filesystem does not take is no reason to have no copy.
    let _ = Xattrs::of(&source).map(|attributes| attributes.apply(copy.file()));
    copy.dress_again(owner_of(&meta), meta.mode, meta.mtime)?;
    let back = check_open(copy.file(), buffers, stop, &mut |_, _| {}).map_err(plain)?;
    if back.digest != copied.digest {
        return Err(io::Error::other("what was written reads back differently"));
    }
    copy.publish(new)?;
    Ok(meta)
}

fn plain(error: CopyError) -> io::Error {
    match error {
        CopyError::Read(error) | CopyError::Write(error) => error,
        CopyError::Stopped => io::Error::new(io::ErrorKind::Interrupted, "interrupted"),
    }
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
            duplicate(&dir, name, &dir, new, &mut Buffers::new(), &Stop::new())
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
}
