//! What kind of filesystem something lies on, without writing to it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use super::Dir;

/// What a filesystem does not do as a home needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Nothing that is known of.
    Nothing,
    /// Somebody else on the network decides about locks and renames.
    Network,
    /// A program decides what is kept.
    Program,
    /// It keeps no modes and no symbolic links.
    ModesAndLinks,
    /// It is gone when the machine stops.
    Memory,
}

/// A kind of filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Its name, where it has one here.
    pub name: Option<&'static str>,
    /// What it does not do.
    pub lack: Lack,
}

/// The numbers of statfs(2), and of the headers of Linux for those that are not there.
#[cfg(target_os = "linux")]
const KNOWN: [(i64, &str, Lack); 22] = [
    (0xEF53, "ext4", Lack::Nothing),
    (0x5846_5342, "XFS", Lack::Nothing),
    (0x9123_683E, "Btrfs", Lack::Nothing),
    (0x2FC1_2FC1, "ZFS", Lack::Nothing),
    (0xCA45_1A4E, "bcachefs", Lack::Nothing),
    (0xF2F5_2010, "F2FS", Lack::Nothing),
    (0x794C_7630, "overlayfs", Lack::Nothing),
    (0xF15F, "eCryptfs", Lack::Nothing),
    (0x0102_1994, "tmpfs", Lack::Memory),
    (0x8584_58F6, "ramfs", Lack::Memory),
    (0x6969, "NFS", Lack::Network),
    (0xFF53_4D42, "SMB", Lack::Network),
    (0xFE53_4D42, "SMB", Lack::Network),
    (0x517B, "SMB", Lack::Network),
    (0x0102_1997, "9p", Lack::Network),
    (0x5346_414F, "AFS", Lack::Network),
    (0x00C3_6400, "Ceph", Lack::Network),
    (0x6573_5546, "FUSE", Lack::Program),
    (0x4D44, "FAT", Lack::ModesAndLinks),
    (0x2011_BAB0, "exFAT", Lack::ModesAndLinks),
    (0x5346_544E, "NTFS", Lack::ModesAndLinks),
    (0x7366_746E, "NTFS", Lack::ModesAndLinks),
];

/// What an open file or folder lies on.
///
/// # Errors
/// What the system says.
#[cfg(target_os = "linux")]
pub fn filesystem(file: impl AsFd) -> io::Result<Filesystem> {
    let stat = rustix::fs::fstatfs(file)?;
    #[allow(
        clippy::unnecessary_cast,
        reason = "its type differs from system to system"
    )]
    // On some machines the number is 32 bits wide and negative.
    let kind = i64::from(stat.f_type as u32);
    let known = KNOWN.iter().find(|(number, ..)| *number == kind);
    Ok(match known {
        Some((_, name, lack)) => Filesystem {
            name: Some(name),
            lack: *lack,
        },
        None => Filesystem {
            name: None,
            lack: Lack::Nothing,
        },
    })
}

/// What an open file or folder lies on; not asked on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn filesystem(_: impl AsFd) -> io::Result<Filesystem> {
    Ok(Filesystem {
        name: None,
        lack: Lack::Nothing,
    })
}

/// Whether a name that differs only in case leads to the same file: looked up, not tried out. `name` is there, and
/// holds an ASCII letter.
///
/// # Errors
/// When the folder can not be looked at.
pub fn folds_case(dir: &Dir, name: &OsStr) -> io::Result<bool> {
    let other = name.to_ascii_uppercase();
    let (here, there) = (dir.find(name)?, dir.find(&other)?);
    Ok(other != name
        && here
            .zip(there)
            .is_some_and(|(here, there)| here.identity() == there.identity()))
}

/// Whether this process may write into an open folder, as far as the system tells without trying: access(2).
pub fn may_write(dir: &Dir) -> bool {
    use rustix::fs::{Access, AtFlags, accessat};
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    accessat(dir, ".", wanted, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_to_learn_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.json"), "").unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let before = dir.meta().unwrap();
        filesystem(&dir).unwrap();
        assert!(!folds_case(&dir, OsStr::new("index.json")).unwrap());
        assert!(may_write(&dir));
        let after = dir.meta().unwrap();
        assert_eq!((after.mtime, after.ctime), (before.mtime, before.ctime));
        assert_eq!(dir.names().unwrap().len(), 1);
        // As on a filesystem that folds case: both names are one file.
        std::fs::hard_link(
            folder.path().join("index.json"),
            folder.path().join("INDEX.JSON"),
        )
        .unwrap();
        assert!(folds_case(&dir, OsStr::new("index.json")).unwrap());
    }
}
