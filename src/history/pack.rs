//! A pack of new objects, streamed to the disk undeltified, with its index: two files for any number of objects.
//!
//! `git_indexer` wants the number of objects before the first, and a commit knows it only when the last file has been
//! read: one may have gone, or hold what another holds. So the number is written last, as `git fast-import` does.
//! Formats: gitformat-pack(5).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use git2::{ObjectType, Oid};
use sha1::{Digest, Sha1};

use crate::disk::{Dir, NewFile, Stamp};

/// Half the time of git's usual level for text, and a tenth more bytes; consolidation packs anew.
const LEVEL: u32 = 2;

/// The modes that git gives to its own.
const MODE: u32 = 0o444;

/// An object as it stands in a pack.
#[derive(Debug)]
pub(super) struct Encoded {
    pub oid: Oid,
    bytes: Vec<u8>,
    crc: u32,
}

/// Makes [`Encoded`] objects; one for each worker.
pub(super) struct Encoder(Compress);

impl Encoder {
    pub fn new() -> Self {
        Encoder(Compress::new(Compression::new(LEVEL), true))
    }

    /// Encodes an object whose name is known.
    pub fn encode(&mut self, oid: Oid, kind: ObjectType, content: &[u8]) -> io::Result<Encoded> {
        let mut bytes = Vec::with_capacity(content.len() / 3 + 64);
        header(&mut bytes, kind, content.len() as u64);
        self.0.reset();
        loop {
            let taken = usize::try_from(self.0.total_in()).unwrap_or(usize::MAX);
            let rest = content.get(taken..).unwrap_or_default();
            let status = self
                .0
                .compress_vec(rest, &mut bytes, FlushCompress::Finish)
                .map_err(io::Error::other)?;
            match status {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError => bytes.reserve(bytes.capacity().max(4096) / 2),
            }
        }
        let mut crc = Crc::new();
        crc.update(&bytes);
        Ok(Encoded {
            oid,
            bytes,
            crc: crc.sum(),
        })
    }
}

/// Kind and size: four bits of the size beside the kind, then seven a byte, the lowest first.
fn header(out: &mut Vec<u8>, kind: ObjectType, size: u64) {
    let kind = match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        ObjectType::Tag => 4,
        ObjectType::Blob | ObjectType::Any => 3,
    };
    let mut byte = kind << 4 | (size & 15) as u8;
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub oid: Oid,
    pub offset: u64,
    pub crc: u32,
}

/// A pack that is being written; it has no name until it is finished.
pub(super) struct Writer<'d> {
    dir: &'d Dir,
    file: NewFile<'d>,
    buffer: Vec<u8>,
    written: u64,
    entries: Vec<Entry>,
}

/// So many bytes are written at once.
const BUFFER: usize = 1 << 20;

const HEADER: u64 = 12;

impl<'d> Writer<'d> {
    /// Begins a pack in git's folder for packs.
    pub fn begin(dir: &'d Dir) -> io::Result<Writer<'d>> {
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(&head(0));
        Ok(Writer {
            dir,
            file: NewFile::create(dir)?,
            buffer,
            written: 0,
            entries: Vec::new(),
        })
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Encoded) -> io::Result<()> {
        let bytes = &object.bytes;
        self.entries.push(Entry {
            oid: object.oid,
            offset: self.written + self.buffer.len() as u64,
            crc: object.crc,
        });
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        match bytes.len() > BUFFER {
            true => {
                self.file.file().write_all(bytes)?;
                self.written += bytes.len() as u64;
            }
            false => self.buffer.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.file().write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// How many objects it has, and how many bytes they take.
    pub fn size(&self) -> (u64, u64) {
        (
            self.entries.len() as u64,
            self.written + self.buffer.len() as u64 - HEADER,
        )
    }

    /// Completes the pack and its index, makes both durable, reads the index back and gives them their names, the pack
    /// first: git looks at a pack when it sees the index. A file called `….keep` stands beside them until
    /// [`release`]: a `git repack` of somebody else must not drop objects that no branch names yet.
    pub fn finish(mut self, keep: &str) -> io::Result<String> {
        self.flush()?;
        let count = u32::try_from(self.entries.len())
            .map_err(|_| io::Error::other("more objects than a pack can hold"))?;
        self.file.file().write_all_at(&head(count), 0)?;
        let sum = sum_of(self.file.file())?;
        self.file.file().write_all(&sum)?;
        let index = index(&mut self.entries, &sum);
        let index_file = NewFile::create(self.dir)?;
        index_file.file().write_all(&index)?;
        let name = format!("pack-{}", hex(&sum));
        let keep_file = NewFile::create(self.dir)?;
        keep_file.file().write_all(keep.as_bytes())?;
        let files = [
            (keep_file, "keep"),
            (self.file, "pack"),
            (index_file, "idx"),
        ];
        for (file, ending) in files {
            file.dress(None, MODE, now_of(&file)?)?;
            file.sync()?;
            // One of this name holds the same objects in the same order, or is what a full disk has left of them.
            file.publish_over(&OsString::from(format!("{name}.{ending}")))?;
        }
        self.dir.sync()?;
        let read = OsString::from(format!("{name}.idx"));
        match crate::disk::read_small_in(self.dir, &read, u64::MAX)? {
            Some(read) if read == index => Ok(name),
            _ => Err(io::Error::other(
                "the index of the pack does not hold what was written",
            )),
        }
    }
}

/// Gives a pack free, once a branch names what is in it.
pub(super) fn release(dir: &Dir, name: &str) -> io::Result<()> {
    dir.unlink(&OsString::from(format!("{name}.keep")))
}

/// Gives those free that runs of ours have left behind, which begin their `….keep` with this text, and removes
/// files without a name of their own, and a pack that has no index yet.
pub(super) fn tidy(dir: &Dir, keep: &str) -> io::Result<()> {
    for (name, _) in dir.names()? {
        let is_keep = std::path::Path::new(&name).extension() == Some(std::ffi::OsStr::new("keep"));
        let ours = || {
            let text = crate::disk::read_small_in(dir, &name, 1 << 10)
                .ok()
                .flatten();
            text.is_some_and(|text| text.starts_with(keep.as_bytes()))
        };
        if is_keep && ours() {
            // Killed between the names: a pack without its index serves nobody.
            let with = |ending: &str| {
                std::path::Path::new(&name)
                    .with_extension(ending)
                    .into_os_string()
            };
            if dir.find(&with("idx"))?.is_none() && dir.find(&with("pack"))?.is_some() {
                dir.unlink(&with("pack"))?;
            }
            dir.unlink(&name)?;
        } else if crate::disk::is_temporary(&name) {
            dir.unlink(&name)?;
        }
    }
    Ok(())
}

fn now_of(file: &NewFile<'_>) -> io::Result<Stamp> {
    Ok(crate::disk::Meta::of(file.file())?.mtime)
}

fn head(count: u32) -> [u8; HEADER as usize] {
    let mut head = *b"PACK\0\0\0\x02\0\0\0\0";
    head[8..].copy_from_slice(&count.to_be_bytes());
    head
}

fn sum_of(mut file: &std::fs::File) -> io::Result<[u8; 20]> {
    use io::Seek;
    file.rewind()?;
    let mut sum = Sha1::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sum.finalize().into()),
            n => sum.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The index of a pack, version 2.
fn index(entries: &mut [Entry], pack_sum: &[u8; 20]) -> Vec<u8> {
    entries.sort_unstable_by_key(|entry| entry.oid);
    let mut out = Vec::with_capacity(entries.len() * 28 + 1100);
    out.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut upto = 0;
    for first in 0..=255u8 {
        upto += entries[upto..]
            .iter()
            .take_while(|e| e.oid.as_bytes()[0] == first)
            .count();
        out.extend_from_slice(&(upto as u32).to_be_bytes());
    }
    entries
        .iter()
        .for_each(|e| out.extend_from_slice(e.oid.as_bytes()));
    entries
        .iter()
        .for_each(|e| out.extend_from_slice(&e.crc.to_be_bytes()));
    let mut far = Vec::new();
    for entry in entries.iter() {
        let near = match u32::try_from(entry.offset) {
            Ok(near) if near < FAR => near,
            _ => {
                far.extend_from_slice(&entry.offset.to_be_bytes());
                FAR | (far.len() / 8 - 1) as u32
            }
        };
        out.extend_from_slice(&near.to_be_bytes());
    }
    out.extend_from_slice(&far);
    out.extend_from_slice(pack_sum);
    let sum: [u8; 20] = Sha1::digest(&out).into();
    out.extend_from_slice(&sum);
    out
}

/// Marks an offset that stands in the table of long ones.
const FAR: u32 = 1 << 31;

/// The objects of a pack of at most `limit` bytes, as they stand; `None` of one that is not understood, has an object
/// that stands relative to another, or one whose checksum is wrong.
///
/// # Errors
/// What can not be read, and a pack that is larger.
pub(super) fn read(dir: &Dir, name: &str, limit: u64) -> io::Result<Option<Vec<Encoded>>> {
    let file = |ending: &str| {
        let name = OsString::from(format!("{name}.{ending}"));
        crate::disk::read_small_in(dir, &name, limit)
    };
    let (Some(pack), Some(index)) = (file("pack")?, file("idx")?) else {
        return Ok(None);
    };
    let Some(mut entries) = entries_of(&index) else {
        return Ok(None);
    };
    entries.sort_unstable_by_key(|entry| entry.offset);
    let end = pack.len().saturating_sub(20) as u64;
    let ends = entries
        .iter()
        .skip(1)
        .map(|entry| entry.offset)
        .chain([end]);
    let mut objects = Vec::with_capacity(entries.len());
    for (entry, end) in entries.iter().zip(ends) {
        let range = usize::try_from(entry.offset)
            .ok()
            .zip(usize::try_from(end).ok());
        let Some(bytes) = range.and_then(|(from, to)| pack.get(from..to)) else {
            return Ok(None);
        };
        if bytes
            .first()
            .is_none_or(|first| !matches!(first >> 4 & 7, 1..=4))
        {
            return Ok(None);
        }
        let mut crc = Crc::new();
        crc.update(bytes);
        if crc.sum() != entry.crc {
            return Ok(None);
        }
        objects.push(Encoded {
            oid: entry.oid,
            bytes: bytes.to_vec(),
            crc: entry.crc,
        });
    }
    Ok(Some(objects))
}

/// What the index of a pack says, when it is one of version 2 without long offsets.
fn entries_of(index: &[u8]) -> Option<Vec<Entry>> {
    let rest = index.strip_prefix(b"\xfftOc\0\0\0\x02")?;
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at * 4..at * 4 + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let count = number(rest, 255)? as usize;
    let oids = rest.get(1024..1024 + count * 20)?;
    let crcs = rest.get(1024 + count * 20..1024 + count * 24)?;
    let offsets = rest.get(1024 + count * 24..1024 + count * 28)?;
    let entry = |(n, oid): (usize, &[u8])| {
        let offset = number(offsets, n).filter(|offset| *offset < FAR)?;
        Some(Entry {
            oid: Oid::from_bytes(oid).ok()?,
            offset: u64::from(offset),
            crc: number(crcs, n)?,
        })
    };
    oids.chunks_exact(20).enumerate().map(entry).collect()
}
