//! A file that only grows: one record a line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::OFlags;

use super::{FileKind, Meta};
use crate::base::{Error, Result};

/// A link is not followed, and a pipe is not waited for.
const FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// Bytes of a line that nobody has written.
const LONGEST: u64 = 64 << 20;

/// What an open file is, when it is one.
fn a_file(file: &File) -> io::Result<Meta> {
    let meta = Meta::of(file)?;
    match meta.kind {
        FileKind::File => Ok(meta),
        other => Err(io::Error::other(format!(
            "expected a file, found {}",
            other.described()
        ))),
    }
}

/// A file of lines, open for appending.
#[derive(Debug)]
pub struct Lines(File);

impl Lines {
    /// Opens or makes it (0600). A last line that a kill left unfinished is ended, so that the next record
    /// begins on a line of its own.
    ///
    /// # Errors
    /// What the system says; a link, what is no file, and a file that has another name as well: the lines would stand
    /// there, too.
    pub fn open(path: &Path) -> io::Result<Lines> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(FLAGS.bits() as _)
            .open(path)?;
        let meta = a_file(&file)?;
        if meta.nlink > 1 {
            return Err(io::Error::other("the file has another name as well"));
        }
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(Lines(file))
    }

    /// Appends whole lines in one write.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.write_all(lines)
    }

    /// Writes what was appended to the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Calls `each` with every line of a file, without its end; none when nothing is there.
    pub fn read(path: &Path, mut each: impl FnMut(&[u8])) -> Result<()> {
        let fail = |e| Error::io("can not read", path, e);
        let mut options = OpenOptions::new();
        let opened =
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, FLAGS.bits() as _);
        let file = match opened.read(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        a_file(&file).map_err(fail)?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        while (&mut reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(fail)?
            > 0
        {
            if line.len() as u64 == LONGEST {
                return Err(fail(io::Error::other("a line in it is too long to be one")));
            }
            each(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
        Ok(())
    }
}
