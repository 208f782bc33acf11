//! Who holds a lock on a part of a file, asked of the kernel without taking one.
//!
//! Programs such as SQLite lock single bytes (POSIX record locks). The kernel tells of such a lock whoever holds it, also
//! where the holder's open files are hidden from us because they are another user's.

use std::io;
use std::ops::Range;
use std::path::Path;

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

/// Somebody who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Who, where the kernel tells: a process of another container or machine has no number here.
    pub pid: Option<u32>,
}

/// Who holds any lock on one of these bytes of a file; of several, one. `None` also when there is no such file. Links are
/// followed: it is the file behind them that is locked.
///
/// The file is opened and closed, which lets go of all record locks that *this* process holds on it: never to be called
/// while it has the file open as a database.
///
/// # Errors
/// A file that can not be opened: nothing is known then.
pub fn lock_holder(path: &Path, bytes: Range<u64>) -> io::Result<Option<LockHolder>> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as _)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // What would stand in the way of writing: shared locks too.
    let asked = Flock {
        start: bytes.start,
        length: bytes.end.saturating_sub(bytes.start),
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    let held = fcntl_getlk(&file, &asked)?;
    Ok(held.map(|lock| LockHolder {
        pid: lock
            .pid
            .and_then(|pid| u32::try_from(pid.as_raw_pid()).ok()),
    }))
}
