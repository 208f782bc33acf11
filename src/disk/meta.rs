//! What is known of a file without opening it.

use rustix::fs::{FileType, Stat};

/// The kinds of things that a folder can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A FIFO (named pipe).
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// Something that this program has no word for.
    Unknown,
}

impl FileKind {
    /// The word that people use, with its article.
    pub fn described(self) -> &'static str {
        match self {
            FileKind::File => "a file",
            FileKind::Folder => "a folder",
            FileKind::Symlink => "a symbolic link",
            FileKind::Fifo => "a FIFO",
            FileKind::Socket => "a socket",
            FileKind::Device => "a device",
            FileKind::Unknown => "something unknown",
        }
    }
}

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Folder,
            FileType::Symlink => FileKind::Symlink,
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
            _ => FileKind::Unknown,
        }
    }
}

/// A file time: whole seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Seconds since 1970-01-01T00:00:00Z; negative before.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanos: u32,
}

impl Stamp {
    /// As a moment; a time that no calendar holds becomes the epoch.
    pub fn timestamp(self) -> jiff::Timestamp {
        // `nanos` is below 10⁹ and so fits an i32.
        jiff::Timestamp::new(self.seconds, self.nanos as i32).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl From<jiff::Timestamp> for Stamp {
    /// The second below, and what is above that.
    fn from(at: jiff::Timestamp) -> Stamp {
        let (seconds, nanos) = match (at.as_second(), at.subsec_nanosecond()) {
            (seconds, nanos) if nanos < 0 => (seconds - 1, nanos + 1_000_000_000),
            whole => whole,
        };
        Stamp {
            seconds,
            nanos: nanos.unsigned_abs(),
        }
    }
}

/// `lstat` of a file, in the types of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits with setuid, setgid and sticky: `mode & 0o7777`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Space taken, in blocks of 512 bytes.
    pub blocks: u64,
    /// When the content changed last.
    pub mtime: Stamp,
    /// When anything about it changed last.
    pub ctime: Stamp,
    /// The filesystem it is on.
    pub dev: u64,
    /// Its number there.
    pub ino: u64,
    /// How many names it has.
    pub nlink: u64,
}

impl Meta {
    /// What an open file is.
    pub fn of(file: impl std::os::fd::AsFd) -> std::io::Result<Meta> {
        Ok(rustix::fs::fstat(file)?.into())
    }

    /// Whether the two are the same state of the same file. Access times and the link count do not matter:
    /// reading changes the one, and a new name elsewhere the other.
    pub fn same_state(&self, other: &Meta) -> bool {
        self.identity() == other.identity()
            && self.size == other.size
            && self.mtime == other.mtime
            && self.ctime == other.ctime
            && self.mode == other.mode
    }

    /// The device and number of the file: two names with the same identity are the same file.
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }

    /// Whether it may have holes: less space than length.
    pub fn is_sparse(&self) -> bool {
        self.kind == FileKind::File && self.blocks.saturating_mul(512) < self.size
    }
}

impl From<Stat> for Meta {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the field types differ from system to system"
    )]
    fn from(stat: Stat) -> Self {
        Meta {
            kind: FileType::from_raw_mode(stat.st_mode as _).into(),
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            mtime: Stamp {
                seconds: stat.st_mtime as i64,
                nanos: stat.st_mtime_nsec as u32,
            },
            ctime: Stamp {
                seconds: stat.st_ctime as i64,
                nanos: stat.st_ctime_nsec as u32,
            },
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            nlink: stat.st_nlink as u64,
        }
    }
}
