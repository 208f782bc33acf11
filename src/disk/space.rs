//! How much room a filesystem has, and making sure of what was written to it.

use std::io;
use std::os::fd::AsFd;

/// Room left on a filesystem, for somebody without privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes.
    pub bytes: u64,
    /// Files; `None` where the filesystem makes inodes as it needs them.
    pub inodes: Option<u64>,
    /// How much the filesystem holds in all.
    pub total: u64,
    /// The unit in which it gives out space.
    pub block: u64,
}

impl Space {
    /// The room left on the filesystem of an open file or folder.
    pub fn of(file: impl AsFd) -> io::Result<Space> {
        let stat = rustix::fs::fstatvfs(file)?;
        Ok(Space {
            bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            inodes: (stat.f_files > 0).then_some(stat.f_favail),
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            block: stat.f_frsize.max(512),
        })
    }
}

/// Writes everything that waits for the filesystem of an open file or folder to the disk.
pub fn sync_filesystem(file: impl AsFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::syncfs(file)?);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        rustix::fs::sync();
        Ok(())
    }
}

/// Asks the system to forget what it holds of an open file in memory, so that the next read comes from the
/// disk. What was not yet written stays: [`sync_filesystem`] comes first.
pub fn drop_cache(file: impl AsFd) {
    #[cfg(target_os = "linux")]
    // It is advice: a system that does not take it reads from memory.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// So much of a file is asked for ahead: a long one is read in order, for which the system looks ahead by itself.
#[cfg(target_os = "linux")]
const AHEAD: u64 = 128 << 10;

/// Asks the system to fetch the beginning of an open file of `size` bytes, which will be read soon, and does not wait for
/// its content. How many bytes were asked for.
pub fn read_ahead(file: impl AsFd, size: u64) -> u64 {
    #[cfg(target_os = "linux")]
    if let Some(length) = std::num::NonZeroU64::new(size.min(AHEAD)) {
        let _ = rustix::fs::fadvise(file, 0, Some(length), rustix::fs::Advice::WillNeed);
        return length.get();
    }
    let _ = (file, size);
    0
}
