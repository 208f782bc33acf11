//! An open folder. Everything below it is reached by name, one component at a time and never through a
//! symbolic link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fs::{self, AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::{FileKind, Meta, Stamp};

/// An open folder, held by descriptor.
#[derive(Debug)]
pub struct Dir(OwnedFd);

const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The kernel refuses a path of 4,096 bytes or more; a longer one is walked in pieces.
const PIECE: usize = 3000;

impl Dir {
    /// Opens a folder by a path that a person gave: links on the way are followed.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Dir> {
        Ok(Dir(fs::open(path.as_ref(), OPEN_FOLDER, Mode::empty())?))
    }

    /// Opens a folder below this one. `rel` must be relative and without `..`; a symbolic link anywhere in
    /// it is an error (`ELOOP`), so that nothing outside can be reached.
    pub fn open_beneath(&self, rel: &Path) -> io::Result<Dir> {
        let bytes = rel.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Ok(Dir(fs::openat(&self.0, c".", OPEN_FOLDER, Mode::empty())?));
        }
        if bytes.len() <= PIECE {
            return self.step(rel);
        }
        let mut at: Option<Dir> = None;
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = match rest.len() <= PIECE {
                true => rest.len(),
                // A component is at most 255 bytes, so there is a separator in any 3,000 of them.
                false => memchr::memrchr(b'/', &rest[..PIECE]).ok_or(Errno::NAMETOOLONG)?,
            };
            let piece = Path::new(OsStr::from_bytes(&rest[..cut]));
            at = Some(at.as_ref().unwrap_or(self).step(piece)?);
            rest = rest[cut..].strip_prefix(b"/").unwrap_or(&rest[cut..]);
        }
        at.ok_or_else(|| Errno::NOENT.into())
    }

    #[cfg(target_os = "linux")]
    fn step(&self, rel: &Path) -> io::Result<Dir> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match fs::openat2(&self.0, rel, OPEN_FOLDER, Mode::empty(), resolve) {
            Ok(fd) => Ok(Dir(fd)),
            // Kernels before 5.6, and sandboxes that filter the call.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_component(rel),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn step(&self, rel: &Path) -> io::Result<Dir> {
        self.step_by_component(rel)
    }

    fn step_by_component(&self, rel: &Path) -> io::Result<Dir> {
        let mut at: Option<OwnedFd> = None;
        for component in rel.components() {
            let Component::Normal(name) = component else {
                return Err(Errno::XDEV.into());
            };
            let from = at.as_ref().unwrap_or(&self.0);
            at = Some(fs::openat(
                from,
                name,
                OPEN_FOLDER | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        }
        at.map(Dir).ok_or_else(|| Errno::NOENT.into())
    }

    /// `lstat` of the folder itself.
    pub fn meta(&self) -> io::Result<Meta> {
        Ok(fs::fstat(&self.0)?.into())
    }

    /// `lstat` of a name in it.
    pub fn stat(&self, name: &OsStr) -> io::Result<Meta> {
        Ok(fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }

    /// Like [`Dir::stat`]; `None` when there is no such name.
    pub fn find(&self, name: &OsStr) -> io::Result<Option<Meta>> {
        match self.stat(name) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every name in it with its kind where the filesystem tells it, in the order of the disk.
    pub fn names(&self) -> io::Result<Vec<(OsString, FileKind)>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push((OsString::from_vec(name.to_vec()), entry.file_type().into()));
            }
        }
        Ok(names)
    }

    /// Opens a regular file to read. Never blocks, follows no link, and leaves the access time alone where
    /// the system allows it.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            // Only the owner and root may ask for it.
            match fs::openat(&self.0, name, flags | OFlags::NOATIME, Mode::empty()) {
                Err(Errno::PERM) => {}
                opened => return Ok(File::from(opened?)),
            }
        }
        Ok(File::from(fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Makes an empty file in it, to be read and written by its owner alone; an existing name is an error. For what is
    /// built in a folder that nobody uses yet: elsewhere a file appears complete, by [`super::NewFile`].
    pub fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(fs::openat(&self.0, name, flags, mode)?))
    }

    /// Makes a folder in it, reachable by its owner alone until [`Dir::set_mode`] says otherwise.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    /// Opens a folder below, after making what is missing of it (0700).
    ///
    /// # Errors
    /// When something that is no folder, such as a link, stands in the way.
    pub fn make_beneath(&self, rel: &Path) -> io::Result<Dir> {
        match self.open_beneath(rel) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        let mut at = self.open_beneath(Path::new(""))?;
        for name in rel.iter() {
            match at.make(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => at = at.open_beneath(Path::new(name))?,
            }
        }
        Ok(at)
    }

    /// Where a symbolic link in it points.
    pub fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Makes a symbolic link in it; an existing name is an error.
    pub fn symlink(&self, target: &[u8], name: &OsStr) -> io::Result<()> {
        Ok(fs::symlinkat(OsStr::from_bytes(target), &self.0, name)?)
    }

    /// Gives the file `name` of `from` one more name in this folder; an existing name is an error.
    pub fn hard_link(&self, from: &Dir, name: &OsStr, new: &OsStr) -> io::Result<()> {
        Ok(fs::linkat(&from.0, name, &self.0, new, AtFlags::empty())?)
    }

    /// Renames `name` to `new` in `to`, never over something that exists.
    pub fn rename(&self, name: &OsStr, to: &Dir, new: &OsStr) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match fs::renameat_with(&self.0, name, &to.0, new, fs::RenameFlags::NOREPLACE) {
            // Filesystems without the flag (some network and FUSE ones).
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
        if to.find(new)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        Ok(fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Renames `name` to `new` in the same folder, replacing a file that is there.
    pub fn rename_over(&self, name: &OsStr, new: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.0, name, &self.0, new)?)
    }

    /// Renames `name` to `new` in `to`, replacing a file that is there.
    pub fn replace_in(&self, name: &OsStr, to: &Dir, new: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Swaps `one` with `other` in `with` in one step. `Unsupported` where the system can not.
    pub fn exchange(&self, one: &OsStr, with: &Dir, other: &OsStr) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match fs::renameat_with(&self.0, one, &with.0, other, fs::RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
        let _ = (one, with, other);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file's name.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Sets the times of a name in it, of a link rather than of what it points to.
    pub fn set_time_of(&self, name: &OsStr, mtime: Stamp) -> io::Result<()> {
        Ok(fs::utimensat(
            &self.0,
            name,
            &timestamps(mtime),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets the owner of a name in it, of a link rather than of what it points to.
    pub fn set_owner_of(&self, name: &OsStr, uid: u32, gid: u32) -> io::Result<()> {
        use rustix::process::{Gid, Uid};
        Ok(fs::chownat(
            &self.0,
            name,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets the permission bits of the folder itself.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fs::fchmod(&self.0, Mode::from_raw_mode(mode as _))?)
    }

    /// Sets the times of the folder itself.
    pub fn set_time(&self, mtime: Stamp) -> io::Result<()> {
        Ok(fs::futimens(&self.0, &timestamps(mtime))?)
    }

    /// Sets the owner of the folder itself.
    pub fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        use rustix::process::{Gid, Uid};
        Ok(fs::fchown(
            &self.0,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
        )?)
    }

    /// Makes renames and new names in it durable.
    pub fn sync(&self) -> io::Result<()> {
        match fs::fsync(&self.0) {
            // Some network filesystems can not sync a folder; there is nothing more to be done there.
            Err(Errno::INVAL) => Ok(()),
            done => Ok(done?),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Both times set to the same moment: an access time of its own is not worth keeping, and `relatime`
/// would overwrite it at the next read.
pub(super) fn timestamps(mtime: Stamp) -> Timestamps {
    let time = Timespec {
        tv_sec: mtime.seconds,
        tv_nsec: i64::from(mtime.nanos) as _,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
