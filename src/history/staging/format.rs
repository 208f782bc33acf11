//! git's index as bytes (gitformat-index(5)): written in one pass, so that a home of any size needs no second copy of it.

use std::io::{self, Write};

use git2::IndexEntry;
use sha1::{Digest, Sha1};

use super::{INTENT_TO_ADD, SKIP_WORKTREE};

/// What of `flags` is not the length of the name.
const FLAGS: u16 = 0xf000;
/// Says in `flags` that more of them follow.
const EXTENDED: u16 = 1 << 14;
/// The length of a name is written up to this.
const LONGEST: u16 = 0xfff;
/// Bytes of an entry before its flags.
const FIXED: usize = 60;

/// Writes an index of these entries, which stand in git's order. `trees` is what the extension `TREE` says.
pub(super) fn write<'e>(
    to: &mut dyn Write,
    entries: impl ExactSizeIterator<Item = &'e IndexEntry> + Clone,
    trees: Option<&[u8]>,
) -> io::Result<()> {
    let mut out = Summed {
        to,
        sum: Sha1::new(),
    };
    let count = u32::try_from(entries.len());
    let count = count.map_err(|_| io::Error::other("more files than an index can hold"))?;
    let version: u32 = match entries.clone().any(|entry| extended(entry) != 0) {
        true => 3,
        false => 2,
    };
    out.write_all(b"DIRC")?;
    out.write_all(&version.to_be_bytes())?;
    out.write_all(&count.to_be_bytes())?;
    let mut line = Vec::new();
    for entry in entries {
        line.clear();
        put(&mut line, entry);
        out.write_all(&line)?;
    }
    if let Some(trees) = trees {
        let length = u32::try_from(trees.len());
        let length = length.map_err(|_| io::Error::other("more folders than an index can hold"))?;
        out.write_all(b"TREE")?;
        out.write_all(&length.to_be_bytes())?;
        out.write_all(trees)?;
    }
    let sum = out.sum.finalize();
    to.write_all(&sum)
}

fn extended(entry: &IndexEntry) -> u16 {
    entry.flags_extended & (INTENT_TO_ADD | SKIP_WORKTREE)
}

fn put(line: &mut Vec<u8>, entry: &IndexEntry) {
    let numbers = [
        entry.ctime.seconds().cast_unsigned(),
        entry.ctime.nanoseconds(),
        entry.mtime.seconds().cast_unsigned(),
        entry.mtime.nanoseconds(),
        entry.dev,
        entry.ino,
        entry.mode,
        entry.uid,
        entry.gid,
        entry.file_size,
    ];
    for number in numbers {
        line.extend_from_slice(&number.to_be_bytes());
    }
    line.extend_from_slice(entry.id.as_bytes());
    debug_assert_eq!(line.len(), FIXED);
    let length = u16::try_from(entry.path.len()).map_or(LONGEST, |length| length.min(LONGEST));
    let more = extended(entry);
    let flags = entry.flags & FLAGS & !EXTENDED | length;
    match more {
        0 => line.extend_from_slice(&flags.to_be_bytes()),
        more => {
            line.extend_from_slice(&(flags | EXTENDED).to_be_bytes());
            line.extend_from_slice(&more.to_be_bytes());
        }
    }
    line.extend_from_slice(&entry.path);
    // One NUL at least, up to a multiple of eight.
    line.resize((line.len() + 8) & !7, 0);
}

/// Passes on what is written, and sums it up.
struct Summed<'w> {
    to: &'w mut dyn Write,
    sum: Sha1,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use git2::{Index, IndexTime, Oid};

    use super::*;

    fn entry(path: &[u8], flags: u16, flags_extended: u16) -> IndexEntry {
        IndexEntry {
            ctime: IndexTime::new(-1, 999_999_999),
            mtime: IndexTime::new(1_700_000_000, 1),
            dev: 1,
            ino: u32::MAX,
            mode: 0o100_755,
            uid: 3,
            gid: 4,
            file_size: 5,
            id: Oid::hash_object(git2::ObjectType::Blob, path).unwrap(),
            flags,
            flags_extended,
            path: path.to_vec(),
        }
    }

    fn read_again(entries: &[IndexEntry], trees: Option<&[u8]>) -> (Vec<u8>, Vec<IndexEntry>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("index");
        let mut bytes = Vec::new();
        write(&mut bytes, entries.iter(), trees).unwrap();
        crate::disk::write_new(&file, &bytes, 0o600).unwrap();
        let read = Index::open(&file).unwrap().iter().collect();
        (bytes, read)
    }

    #[test]
    fn libgit2_reads_what_was_written() {
        let long = vec![b'x'; 5000];
        let paths: [&[u8]; 9] = [
            b"1",
            b"12",
            b"123",
            b"1234",
            b"12345",
            b"123456",
            b"1234567",
            "会话/第一".as_bytes(),
            &long,
        ];
        let assumed_valid = 1 << 15;
        for extended in [0, SKIP_WORKTREE, INTENT_TO_ADD] {
            let entries = paths.map(|path| entry(path, assumed_valid, extended));
            let (bytes, read) = read_again(&entries, None);
            assert_eq!(bytes[7], if extended == 0 { 2 } else { 3 });
            assert_eq!(read.len(), entries.len());
            for (read, written) in read.iter().zip(&entries) {
                assert_eq!(read.path, written.path);
                assert_eq!((read.id, read.mode), (written.id, written.mode));
                assert_eq!(read.flags & assumed_valid, assumed_valid);
                assert_eq!(read.flags_extended, extended);
                let times =
                    |e: &IndexEntry| [e.ctime, e.mtime].map(|t| (t.seconds(), t.nanoseconds()));
                assert_eq!(times(read), times(written));
                let numbers = |e: &IndexEntry| (e.dev, e.ino, e.uid, e.gid, e.file_size);
                assert_eq!(numbers(read), numbers(written));
            }
        }
    }
}
