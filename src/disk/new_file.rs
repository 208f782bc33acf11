//! A file that has no name until it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::dir::timestamps;
use super::{Dir, Stamp};

/// How the name of a temporary file begins where a file can not be made without one. The rest is random:
/// a final name with something added could be longer than a name may be.
pub const TEMPORARY_PREFIX: &str = ".wbhome-tmp-";

/// A file being written in a folder, nameless where the filesystem allows it (`O_TMPFILE`), else under a
/// temporary name. Dropped before [`NewFile::publish`], it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile<'d> {
    dir: &'d Dir,
    file: File,
    temporary: Option<OsString>,
    /// The permission bits that it was made with.
    mode: u32,
}

impl<'d> NewFile<'d> {
    /// Begins a file in `dir`, readable by its owner alone.
    pub fn create(dir: &'d Dir) -> io::Result<NewFile<'d>> {
        NewFile::create_as(dir, 0o600)
    }

    /// Begins a file that shall have the permission bits `mode`. A nameless one is made with them, where the
    /// mask of the process lets it: nobody can reach it before it is published, and a call is saved.
    pub(super) fn create_as(dir: &'d Dir, mode: u32) -> io::Result<NewFile<'d>> {
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            let mode = match mode & (0o7000 | super::process::umask()) {
                0 => mode,
                _ => 0o600,
            };
            match fs::openat(dir, c".", flags, Mode::from_raw_mode(mode as _)) {
                Ok(fd) => {
                    return Ok(NewFile {
                        dir,
                        file: File::from(fd),
                        temporary: None,
                        mode,
                    });
                }
                // Filesystems that have no such thing answer in one of these ways.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Self::create_named(dir)
    }

    /// Begins a file under a temporary name.
    pub(super) fn create_named(dir: &'d Dir) -> io::Result<NewFile<'d>> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = temporary_name();
            match fs::openat(dir, name.as_os_str(), flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => {
                    return Ok(NewFile {
                        dir,
                        file: File::from(fd),
                        temporary: Some(name),
                        mode: 0o600,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The folder that it is made in.
    pub(super) fn dir(&self) -> &'d Dir {
        self.dir
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Sets owner, permission bits and times. The owner comes first: changing it clears setuid bits.
    pub fn dress(&self, owner: Option<(u32, u32)>, mode: u32, mtime: Stamp) -> io::Result<()> {
        use rustix::process::{Gid, Uid};
        if let Some((uid, gid)) = owner {
            fs::fchown(
                &self.file,
                Some(Uid::from_raw(uid)),
                Some(Gid::from_raw(gid)),
            )?;
        }
        if owner.is_some() || mode != self.mode {
            fs::fchmod(&self.file, Mode::from_raw_mode(mode as _))?;
        }
        Ok(fs::futimens(&self.file, &timestamps(mtime))?)
    }

    /// Sets owner and permission bits.
    pub fn give_to(&mut self, uid: u32, gid: u32, mode: u32) -> io::Result<()> {
        use rustix::process::{Gid, Uid};
        fs::fchown(
            &self.file,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
        )?;
        Ok(fs::fchmod(&self.file, Mode::from_raw_mode(mode as _))?)
    }

    /// Writes the content and what describes it to the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives the file its final name; a name that exists is an error, and may be tried again.
    pub fn publish(&mut self, name: &OsStr) -> io::Result<()> {
        match &self.temporary {
            Some(temporary) => {
                self.dir.rename(temporary, self.dir, name)?;
                self.temporary = None;
                Ok(())
            }
            None => link_nameless(&self.file, self.dir, name),
        }
    }

    /// Gives the file its final name in the place of what has that name now, which is gone then: for what
    /// the caller wrote itself, or has compared.
    pub fn publish_over(self, name: &OsStr) -> io::Result<()> {
        let dir = self.dir;
        let temporary = self.publish_temporary()?;
        dir.rename_over(&temporary, name).inspect_err(|_| {
            let _ = dir.unlink(&temporary);
        })
    }

    /// Gives the file a temporary name, to be renamed or exchanged by the caller.
    pub(super) fn publish_temporary(mut self) -> io::Result<OsString> {
        if let Some(temporary) = self.temporary.take() {
            return Ok(temporary);
        }
        loop {
            let name = temporary_name();
            match link_nameless(&self.file, self.dir, &name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done.map(|()| name),
            }
        }
    }
}

/// Gives an open file its owner, mode and time, in this order: to give a file away takes special bits off its
/// mode.
///
/// # Errors
/// What the system says.
pub fn dress_file(
    file: &File,
    owner: Option<(u32, u32)>,
    mode: u32,
    mtime: Stamp,
) -> io::Result<()> {
    use rustix::process::{Gid, Uid};
    if let Some((uid, gid)) = owner {
        fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    fs::fchmod(file, Mode::from_raw_mode(mode as _))?;
    Ok(fs::futimens(file, &timestamps(mtime))?)
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.temporary.take() {
            // Nothing more can be done about a temporary file that stays.
            let _ = self.dir.unlink(&name);
        }
    }
}

/// Whether a name is that of a file, link or folder that was being made.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// A name that nobody has, and that tells what it is: [`TEMPORARY_PREFIX`] and 16 hex digits.
pub fn temporary_name() -> OsString {
    use std::hash::{BuildHasher, RandomState};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let random = RandomState::new().hash_one((std::process::id(), n));
    format!("{TEMPORARY_PREFIX}{random:016x}").into()
}

/// Names a nameless file. The direct way needs a capability on kernels before 6.10; the way through
/// `/proc` needs `/proc`. See `open(2)`, `O_TMPFILE`.
fn link_nameless(file: &File, dir: &Dir, name: &OsStr) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::AtomicBool;
    static DIRECT: AtomicBool = AtomicBool::new(true);
    if DIRECT.load(Ordering::Relaxed) {
        match fs::linkat(file.as_fd(), c"", dir, name, AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT | Errno::PERM | Errno::ACCESS | Errno::INVAL) => {
                DIRECT.store(false, Ordering::Relaxed);
            }
            done => return Ok(done?),
        }
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(fs::linkat(
        fs::CWD,
        path.as_str(),
        dir,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}
