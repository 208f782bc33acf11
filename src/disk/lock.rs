//! A lock that the kernel lets go of when its holder dies, and a text that says who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// An exclusive lock on a file, held until dropped.
#[derive(Debug)]
pub struct FileLock(File);

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
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as _)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(holder.as_bytes())?;
                Ok(LockAttempt::Got(FileLock(file)))
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

impl Drop for FileLock {
    fn drop(&mut self) {
        // The text must not name a holder who has gone. The lock itself goes with the descriptor.
        let _ = self.0.set_len(0);
    }
}
