//! A file that only grows: one record a line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::base::{Error, Result};

/// A file of lines, open for appending.
#[derive(Debug)]
pub struct Lines(File);

impl Lines {
    /// Opens or makes it (0600). A last line that a kill left unfinished is ended, so that the next record
    /// begins on a line of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Lines> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
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
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(fail)? > 0 {
            each(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
        Ok(())
    }
}
