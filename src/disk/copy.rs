//! Copying one file: read once, changed as it streams, its holes kept, its digest taken on the way; and
//! reading it back.
//!
//! The copy has no name yet when [`copy_file`] returns ([`NewFile`]): whoever called decides whether the
//! source held still, dresses the copy, and publishes it.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;

use super::{Digest, Dir, Meta, NewFile};
use crate::base::Stop;

/// A file up to this size is read in one call; a larger one in pieces of this size.
const BLOCK: usize = 1 << 20;

/// From this size on it is worth asking the filesystem to share blocks instead of writing them again.
const WORTH_CLONING: u64 = 1 << 20;

thread_local! {
    /// What the last buffers of this thread have left. Work is split anew for each session, and fresh megabytes, which the
    /// system clears and we clear, cost more than the files of a small one.
    static SPARE: RefCell<Option<[Vec<u8>; 3]>> = const { RefCell::new(None) };
}

/// The buffers of one worker, reused from file to file.
#[derive(Debug)]
pub struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
    /// What is read back.
    back: Vec<u8>,
    /// The content of the last small copy, where it is still held, and its digest.
    held: Option<(Held, Digest)>,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Input(usize),
    Output,
}

impl Buffers {
    /// Buffers that get their fixed size when they are used: to clear megabytes costs more than to look at a session in
    /// which nothing has to be read.
    pub fn new() -> Self {
        Buffers {
            input: Vec::new(),
            output: Vec::new(),
            back: Vec::new(),
            held: None,
        }
    }

    fn prepare(&mut self) {
        if self.input.is_empty() {
            [self.input, self.output, self.back] = SPARE.take().unwrap_or_else(|| {
                [
                    vec![0; BLOCK + 1],
                    Vec::with_capacity(BLOCK + BLOCK / 4),
                    vec![0; BLOCK],
                ]
            });
        }
    }

    /// The digest of the first `length` bytes that were read back. Equal bytes have the digest that is known
    /// already, and comparing is faster than hashing.
    fn digest_of_back(&self, length: usize) -> Digest {
        let back = &self.back[..length];
        match self.held {
            Some((Held::Input(n), digest)) if self.input[..n] == *back => digest,
            Some((Held::Output, digest)) if self.output == back => digest,
            _ => blake3::hash(back),
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.input.is_empty() {
            return;
        }
        let take = std::mem::take;
        let all = [&mut self.input, &mut self.output, &mut self.back].map(take);
        // A thread that ends has no use for them.
        let _ = SPARE.try_with(|spare| spare.replace(Some(all)));
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

/// What happens to the content on its way from source to copy.
pub trait Transform {
    /// The file begins with `head`: the first 64 KiB of it, or all. Called again when a file is read again.
    fn start(&mut self, head: &[u8]);
    /// Takes a piece of the input and appends to the output what is ready.
    fn push(&mut self, chunk: &[u8], output: &mut Vec<u8>);
    /// A hole of `length` zero bytes follows, which the copy will have too: appends what was held back.
    fn zeros(&mut self, length: u64, output: &mut Vec<u8>);
    /// The input ends: appends what was held back.
    fn finish(&mut self, output: &mut Vec<u8>);
    /// Takes the whole input at once; `start` was called. An identity need not fill the output.
    fn whole(&mut self, input: &[u8], output: &mut Vec<u8>) {
        self.push(input, output);
        self.finish(output);
    }
    /// Whether the output is known to be the input, so that the filesystem may share the blocks.
    fn is_identity(&self) -> bool {
        false
    }
}

/// Leaves the content as it is.
#[derive(Debug, Default)]
pub struct Identity;

impl Transform for Identity {
    fn start(&mut self, _: &[u8]) {}
    fn push(&mut self, chunk: &[u8], output: &mut Vec<u8>) {
        output.extend_from_slice(chunk);
    }
    fn zeros(&mut self, _: u64, _: &mut Vec<u8>) {}
    fn finish(&mut self, _: &mut Vec<u8>) {}
    fn whole(&mut self, _: &[u8], _: &mut Vec<u8>) {}
    fn is_identity(&self) -> bool {
        true
    }
}

/// What a copy holds.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    /// Its length.
    pub size: u64,
    /// Its digest: what must be read back.
    pub digest: Digest,
    /// The source, looked at after it had been read.
    pub source: Meta,
}

/// Which side failed: a source that can not be read is one file fewer, a destination that can not be
/// written ends the run.
#[derive(Debug)]
pub enum CopyError {
    /// Reading the source.
    Read(io::Error),
    /// Writing the copy.
    Write(io::Error),
    /// The flag was raised.
    Stopped,
}

/// Copies an open file, as far as `seen.size`, into a new nameless file in `dest`.
pub fn copy_file<'d>(
    source: &File,
    seen: &Meta,
    dest: &'d Dir,
    transform: &mut dyn Transform,
    buffers: &mut Buffers,
    stop: &Stop,
) -> Result<(NewFile<'d>, Copied), CopyError> {
    let new = NewFile::create_as(dest, seen.mode).map_err(CopyError::Write)?;
    let (size, digest) = pass(source, seen, Some(new.file()), transform, buffers, stop)?;
    let source = rustix::fs::fstat(source)
        .map_err(|e| CopyError::Read(e.into()))?
        .into();
    Ok((
        new,
        Copied {
            size,
            digest,
            source,
        },
    ))
}

/// The length and digest that a copy of an open file would have; nothing is written.
pub fn digest_of_copy(
    source: &File,
    seen: &Meta,
    transform: &mut dyn Transform,
    buffers: &mut Buffers,
    stop: &Stop,
) -> Result<(u64, Digest), CopyError> {
    pass(source, seen, None, transform, buffers, stop)
}

fn pass(
    source: &File,
    seen: &Meta,
    file: Option<&File>,
    transform: &mut dyn Transform,
    buffers: &mut Buffers,
    stop: &Stop,
) -> Result<(u64, Digest), CopyError> {
    buffers.prepare();
    buffers.held = None;
    if seen.size <= BLOCK as u64 && !seen.is_sparse() {
        return copy_small(source, seen, file, transform, buffers);
    }
    let mut copying = Copying {
        source,
        file,
        transform,
        hasher: blake3::Hasher::new(),
        position: 0,
        cloned: false,
        stop,
    };
    copying.run(seen, buffers)?;
    Ok((copying.position, copying.hasher.finalize()))
}

fn copy_small(
    source: &File,
    seen: &Meta,
    file: Option<&File>,
    transform: &mut dyn Transform,
    buffers: &mut Buffers,
) -> Result<(u64, Digest), CopyError> {
    let Buffers {
        input,
        output,
        held,
        ..
    } = buffers;
    let wanted = seen.size as usize;
    let mut length = 0;
    // One byte more than is wanted tells the end of the file in the same call.
    while length < wanted {
        match source.read_at(&mut input[length..=wanted], length as u64) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CopyError::Read(error)),
        }
    }
    let input = &input[..length.min(wanted)];
    output.clear();
    transform.start(&input[..input.len().min(HEAD)]);
    transform.whole(input, output);
    let (content, where_held) = match transform.is_identity() {
        true => (input, Held::Input(input.len())),
        false => (output.as_slice(), Held::Output),
    };
    if let Some(file) = file {
        file.write_all_at(content, 0).map_err(CopyError::Write)?;
    }
    let digest = blake3::hash(content);
    *held = Some((where_held, digest));
    Ok((content.len() as u64, digest))
}

/// How much of a file decides what it is.
const HEAD: usize = 64 << 10;

struct Copying<'a> {
    source: &'a File,
    /// The copy; none when only its digest is wanted.
    file: Option<&'a File>,
    transform: &'a mut dyn Transform,
    hasher: blake3::Hasher,
    /// Where the copy is.
    position: u64,
    /// Whether the copy already shares the source's blocks.
    cloned: bool,
    stop: &'a Stop,
}

impl Copying<'_> {
    fn run(&mut self, seen: &Meta, buffers: &mut Buffers) -> Result<(), CopyError> {
        let Buffers { input, output, .. } = buffers;
        let mut head = vec![0; HEAD.min(usize::try_from(seen.size).unwrap_or(HEAD))];
        let length = read_full(self.source, &mut head, 0).map_err(CopyError::Read)?;
        self.transform.start(&head[..length]);
        drop(head);
        if let Some(file) = self.file
            && self.transform.is_identity()
            && seen.size >= WORTH_CLONING
        {
            self.cloned = clone_blocks(self.source, file);
        }
        // What was cloned is read from the clone: a source that is being written may be another by now.
        let from = match self.file {
            Some(file) if self.cloned => file,
            _ => self.source,
        };
        for extent in Extents::of(from, seen) {
            match extent.map_err(CopyError::Read)? {
                Extent::Hole { length } => {
                    output.clear();
                    self.transform.zeros(length, output);
                    self.emit(output)?;
                    hash_zeros(&mut self.hasher, length);
                    self.position += length;
                }
                Extent::Data { mut at, end } => {
                    while at < end {
                        self.stop.check().map_err(|_| CopyError::Stopped)?;
                        let wanted = BLOCK.min(usize::try_from(end - at).unwrap_or(BLOCK));
                        let length =
                            read_full(from, &mut input[..wanted], at).map_err(CopyError::Read)?;
                        if length == 0 {
                            break;
                        }
                        output.clear();
                        self.transform.push(&input[..length], output);
                        self.emit(output)?;
                        at += length as u64;
                    }
                }
            }
        }
        output.clear();
        self.transform.finish(output);
        self.emit(output)?;
        // A hole at the end, and a source that shrank after it was cloned.
        match self.file {
            Some(file) => file.set_len(self.position).map_err(CopyError::Write),
            None => Ok(()),
        }
    }

    fn emit(&mut self, output: &[u8]) -> Result<(), CopyError> {
        if let Some(file) = self.file
            && !self.cloned
        {
            file.write_all_at(output, self.position)
                .map_err(CopyError::Write)?;
        }
        self.hasher.update(output);
        self.position += output.len() as u64;
        Ok(())
    }
}

fn read_full(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], at + length as u64) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(target_os = "linux")]
fn clone_blocks(source: &File, file: &File) -> bool {
    rustix::fs::ioctl_ficlone(file, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn clone_blocks(_: &File, _: &File) -> bool {
    false
}

fn hash_zeros(hasher: &mut blake3::Hasher, mut length: u64) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while length > 0 {
        let n = length.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..n as usize]);
        length -= n;
    }
}

enum Extent {
    Data { at: u64, end: u64 },
    Hole { length: u64 },
}

/// The data and holes of a file, in order, as far as its size was when it was seen.
struct Extents<'a> {
    file: &'a File,
    at: u64,
    end: u64,
    sparse: bool,
}

impl<'a> Extents<'a> {
    fn of(file: &'a File, seen: &Meta) -> Self {
        Extents {
            file,
            at: 0,
            end: seen.size,
            sparse: seen.is_sparse(),
        }
    }

    fn seek(&self, to: SeekFrom) -> io::Result<Option<u64>> {
        use rustix::io::Errno;
        match rustix::fs::seek(self.file, to) {
            Ok(at) => Ok(Some(at)),
            // No data after this place.
            Err(Errno::NXIO) => Ok(None),
            // A filesystem that does not know its holes: all is data.
            Err(Errno::INVAL) => Ok(Some(match to {
                SeekFrom::Data(at) => at,
                _ => self.end,
            })),
            Err(error) => Err(error.into()),
        }
    }
}

impl Iterator for Extents<'_> {
    type Item = io::Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        if !self.sparse {
            let at = std::mem::replace(&mut self.at, self.end);
            return Some(Ok(Extent::Data { at, end: self.end }));
        }
        let found = self.seek(SeekFrom::Data(self.at)).and_then(|data| {
            let data = data.unwrap_or(self.end).min(self.end);
            if data > self.at {
                let length = data - self.at;
                return Ok((data, Extent::Hole { length }));
            }
            let hole = self.seek(SeekFrom::Hole(self.at))?.unwrap_or(self.end);
            let end = hole.min(self.end);
            Ok((end, Extent::Data { at: self.at, end }))
        });
        match found {
            Ok((next, extent)) => {
                self.at = next;
                Some(Ok(extent))
            }
            Err(error) => {
                self.at = self.end;
                Some(Err(error))
            }
        }
    }
}

/// A file as it is on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// The digest of its content.
    pub digest: Digest,
    /// The file itself.
    pub meta: Meta,
}

/// Reads a file from its name and takes its digest; `look` sees the content on the way, in pieces, holes
/// as `None` with their length.
pub fn check_file(
    dir: &Dir,
    name: &std::ffi::OsStr,
    buffers: &mut Buffers,
    stop: &Stop,
    look: &mut dyn FnMut(Option<&[u8]>, u64),
) -> Result<Checked, CopyError> {
    let file = dir.open_file(name).map_err(CopyError::Read)?;
    check_open(&file, buffers, stop, look)
}

/// Like [`check_file`], for a file that is open: a copy is compared before it gets its name.
pub fn check_open(
    file: &File,
    buffers: &mut Buffers,
    stop: &Stop,
    look: &mut dyn FnMut(Option<&[u8]>, u64),
) -> Result<Checked, CopyError> {
    buffers.prepare();
    let meta: Meta = rustix::fs::fstat(file)
        .map_err(|e| CopyError::Read(e.into()))?
        .into();
    if meta.size <= BLOCK as u64 && !meta.is_sparse() {
        let length =
            read_full(file, &mut buffers.back[..meta.size as usize], 0).map_err(CopyError::Read)?;
        look(Some(&buffers.back[..length]), length as u64);
        let digest = buffers.digest_of_back(length);
        return Ok(Checked { digest, meta });
    }
    let input = &mut buffers.back;
    let mut hasher = blake3::Hasher::new();
    for extent in Extents::of(file, &meta) {
        match extent.map_err(CopyError::Read)? {
            Extent::Hole { length } => {
                look(None, length);
                hash_zeros(&mut hasher, length);
            }
            Extent::Data { mut at, end } => {
                while at < end {
                    stop.check().map_err(|_| CopyError::Stopped)?;
                    let wanted = BLOCK.min(usize::try_from(end - at).unwrap_or(BLOCK));
                    let length =
                        read_full(file, &mut input[..wanted], at).map_err(CopyError::Read)?;
                    if length == 0 {
                        break;
                    }
                    look(Some(&input[..length]), length as u64);
                    hasher.update(&input[..length]);
                    at += length as u64;
                }
            }
        }
    }
    Ok(Checked {
        digest: hasher.finalize(),
        meta,
    })
}
