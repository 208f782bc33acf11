//! A lock that the kernel lets go of when its holder dies, and a text that says who holds it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// An exclusive lock on a file, held until dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    holder: String,
}

/// What came of trying.
#[derive(Debug)]
pub enum LockAttempt {
    /// It is ours.
    Got(FileLock),
    /// It is somebody else's, who wrote this about themselves.
    HeldBy(String),
}

impl FileLock {
    /// Tries to take the lock, and writes `holder` into it.
    pub fn attempt(path: &Path, holder: &str) -> io::Result<LockAttempt> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as _)
            .open(path)?;
        FileLock::of(file, holder)
    }

    /// Like [`FileLock::attempt`], of a name in an open folder, wherever that folder may be by now.
    pub fn attempt_in(dir: &super::Dir, name: &OsStr, holder: &str) -> io::Result<LockAttempt> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        FileLock::of(File::from(file), holder)
    }

    fn of(file: File, holder: &str) -> io::Result<LockAttempt> {
        match file.try_lock() {
            Ok(()) => {
                let holder = holder.to_owned();
                let lock = FileLock { file, holder };
                lock.say(&lock.holder)?;
                Ok(LockAttempt::Got(lock))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The holder may be writing it just now; a half-read name only makes a poorer message.
                let _ = file.take(4096).read_to_string(&mut text);
                Ok(LockAttempt::HeldBy(text))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl FileLock {
    /// Holds the lock for a program that `run` starts, too, with what it is handed as its standard input (which is at its
    /// end): if we are killed, the lock is held until that program has ended. `program` is what others are told.
    ///
    /// # Errors
    /// That of `run`; or the handle can not be doubled.
    pub fn lent<T>(&self, program: &str, run: impl FnOnce(File) -> io::Result<T>) -> io::Result<T> {
        self.say(&format!("{program}, started by {}", self.holder))?;
        let ran = run(self.file.try_clone()?);
        self.say(&self.holder)?;
        ran
    }

    fn say(&self, holder: &str) -> io::Result<()> {
        if is_alone(&self.file)? {
            self.file.set_len(0)?;
            (&self.file).rewind()?;
            // The lock is held without it, too, and whoever wants to make room on a full disk has to get it.
            let _ = (&self.file).write_all(holder.as_bytes());
        }
        Ok(())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The text must not name a holder who has gone. The lock itself goes with the descriptor.
        if is_alone(&self.file).unwrap_or(false) {
            let _ = self.file.set_len(0);
        }
    }
}

/// Whether a file has no other name: what is written into it would stand there, too, wherever that is.
fn is_alone(file: &File) -> io::Result<bool> {
    Ok(super::Meta::of(file)?.nlink == 1)
}

/// An exclusive lock on a folder, held until dropped. Nothing is written into it.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "it is held, not used")] super::Dir);

impl FolderLock {
    /// Tries to take the lock; `None` when somebody else has it. See flock(2).
    pub fn attempt(dir: &super::Dir) -> io::Result<Option<FolderLock>> {
        use rustix::fs::{FlockOperation, flock};
        // A descriptor of its own: the lock goes with it.
        let own = dir.open_beneath(Path::new(""))?;
        match flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(FolderLock(own))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            // Some network filesystems have no locks; there is nothing more to be done there.
            Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP) => {
                Ok(Some(FolderLock(own)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let dir = super::super::Dir::open(folder.path()).unwrap();
        let held = FolderLock::attempt(&dir).unwrap().unwrap();
        assert!(FolderLock::attempt(&dir).unwrap().is_none());
        drop(held);
        assert!(FolderLock::attempt(&dir).unwrap().is_some());
        assert_eq!(dir.names().unwrap(), []);
    }
}
