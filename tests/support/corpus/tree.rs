//! Files, links and folders with exact modes and times.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A moment with nanoseconds that no clock gives by chance.
#[derive(Debug, Clone, Copy)]
pub struct Time(SystemTime);

impl Time {
    /// `seconds` since 1970 and 123,456,789 + `nth` nanoseconds.
    pub fn new(seconds: i64, nth: u32) -> Time {
        let since = Duration::new(seconds.unsigned_abs(), 123_456_789 + nth);
        Time(SystemTime::UNIX_EPOCH + since)
    }
}

/// What is written below a folder.
pub struct Tree {
    root: PathBuf,
    /// Parents before children.
    folders: Vec<PathBuf>,
    pub files: u64,
    pub symlinks: u64,
    pub bytes: u64,
}

impl Tree {
    pub fn new(root: &Path) -> Tree {
        Tree {
            root: root.to_path_buf(),
            folders: Vec::new(),
            files: 0,
            symlinks: 0,
            bytes: 0,
        }
    }

    /// Makes a folder; its time is set by [`Tree::settle`].
    pub fn folder(&mut self, relative: &str, mode: u32) -> io::Result<()> {
        let path = self.root.join(relative);
        match fs::create_dir(&path) {
            // The root of the home may be there already.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && relative.is_empty() => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound && relative.is_empty() => {
                fs::create_dir_all(&path)?
            }
            other => other?,
        }
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        self.folders.push(path);
        Ok(())
    }

    /// Writes a new file.
    pub fn put(&mut self, relative: &str, content: &[u8], when: Time, mode: u32) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.root.join(relative))?;
        file.write_all(content)?;
        // Not with the creation: the umask would have its say.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.set_times(FileTimes::new().set_modified(when.0).set_accessed(when.0))?;
        self.files += 1;
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// A symlink. The standard library can not set its time: it is that of its making.
    pub fn symlink(&mut self, target: &str, relative: &str) -> io::Result<()> {
        self.symlinks += 1;
        symlink(target, self.root.join(relative))
    }

    /// A second name for a file.
    pub fn hard_link(&mut self, original: &str, relative: &str) -> io::Result<()> {
        self.files += 1;
        fs::hard_link(self.root.join(original), self.root.join(relative))
    }

    /// Sets the folders' times, the deepest first, when nothing more will be written.
    pub fn settle(&self, when: Time) -> io::Result<()> {
        for path in self.folders.iter().rev() {
            File::open(path)?
                .set_times(FileTimes::new().set_modified(when.0).set_accessed(when.0))?;
        }
        Ok(())
    }
}
