//! Taking the beginning out of a log that somebody keeps writing to.
//!
//! What is taken out has been copied before, and that copy is durable. `FALLOC_FL_COLLAPSE_RANGE` takes whole blocks
//! out of a file while its writers append: the kernel holds both off from each other, so that no byte can fall in
//! between, and a descriptor that is open stays valid. See fallocate(2). Three things have to be done around it:
//!
//! - Lines do not end where blocks do. What remains of the last block is overwritten by spaces up to the newline that
//!   ends it: one blank line, at the head of the log from then on. NULs would be a torn line.
//! - The kernel holds writers off as long as it takes, which is half a second for gigabytes. So it is done in slices,
//!   from the back to the front: then only what follows the cut has to be moved each time.
//! - A kill may come between two slices. A [mark](Cut::mark) at the seam, written before the first one, says where it
//!   is: the content alone does not, where lines repeat themselves.
//!
//! Elsewhere the log is truncated to nothing, right after what was written since it was copied has been copied, too:
//! what is written between the two is lost.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{self, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::{Dir, FileKind, Meta, NewFile};
use crate::base::{Progress, Stop};

mod collapse;
#[cfg(test)]
mod tests;
mod truncate;

/// So much is read and written at once: what fits into the caches of a core. With a MiB it takes twice as long.
const PIECE: usize = 256 << 10;

/// So much of a copy is written before it is sent to the disk. Dirty pages without end would hold off every writer of
/// the machine, the log's own among them.
const SYNCED: u64 = 32 << 20;

/// So much of a log that was compared stays in memory. To forget it piece by piece costs more.
const REMEMBERED: u64 = 8 << 20;

/// So much is best taken out in one go: a writer waits for it, some milliseconds where the filesystem tells the disk of
/// each block that is free again.
pub const SLICE: u64 = 24 << 20;

/// No filesystem gives out blocks in larger clusters.
#[cfg(target_os = "linux")]
const LARGEST_CLUSTER: u64 = 1 << 20;

/// How long the mark is.
const MARK: u64 = 56;

/// How a log can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Without losing anything: whole blocks of this size are taken out of it.
    Collapse {
        /// In bytes.
        block: u64,
    },
    /// By truncating it to nothing.
    Truncate,
}

/// A cut: what is taken out of which place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the copy begins: after the blank line that the last cut has left.
    pub from: u64,
    /// Where it ends: after a newline. When the log is truncated, what came later is added to the copy.
    pub end: u64,
    /// How.
    pub means: Means,
    /// So much is taken out in one go; see [`SLICE`].
    pub slice: u64,
    /// Nobody else's number.
    pub id: u128,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is out.
    Out,
    /// The log does not hold what was copied any more: its writer has begun it anew, or it was changed. Nothing was taken
    /// out of it.
    Changed,
    /// The log is what was copied, and has got a second name. Nothing was taken out of it.
    Linked,
}

/// Opens a log to be cut: a regular file, through no link. Not for appending, so that a write goes where it is told.
///
/// # Errors
/// When it can not be opened, or is something else.
pub fn open_log(dir: &Dir, name: &OsStr) -> io::Result<File> {
    // A FIFO that was put in its place must not hang.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(dir, name, flags, Mode::empty())?);
    match Meta::of(&file)?.kind {
        FileKind::File => Ok(file),
        kind => Err(io::Error::other(format!(
            "expected a file, found {}",
            kind.described()
        ))),
    }
}

/// How a log in this folder can be cut. The filesystem is asked by its name: some that are reached over a network claim to
/// collapse and do it in several steps.
///
/// # Errors
/// What the system says.
#[cfg(target_os = "linux")]
pub fn means(dir: &Dir, log: &File) -> io::Result<Means> {
    /// See statfs(2).
    const COLLAPSING: [i64; 2] = [0xEF53, 0x5846_5342];
    let stat = fs::fstatfs(log)?;
    #[allow(
        clippy::unnecessary_cast,
        reason = "its type differs from system to system"
    )]
    if !COLLAPSING.contains(&(stat.f_type as i64)) {
        return Ok(Means::Truncate);
    }
    // One byte is never whole blocks. A file without extents says first that it can not at all.
    if !asks_for_whole_blocks(collapse::collapse(log, 0, 1))? {
        return Ok(Means::Truncate);
    }
    #[allow(
        clippy::unnecessary_cast,
        reason = "its type differs from system to system"
    )]
    let mut block = stat.f_bsize as u64;
    // Blocks may be given out in clusters; nothing but trying tells how large these are. Holes are enough for that.
    while block <= LARGEST_CLUSTER {
        let scratch = NewFile::create(dir)?;
        scratch.file().set_len(3 * block)?;
        let too_small = asks_for_whole_blocks(collapse::collapse(scratch.file(), 0, block))?;
        if !too_small && Meta::of(scratch.file())?.size == 2 * block {
            return Ok(Means::Collapse { block });
        }
        block *= 2;
    }
    Ok(Means::Truncate)
}

/// Whether it was refused because it was not whole blocks. That it can not be done at all is no error; all else is: a log
/// is not to be truncated because a disk has trouble.
#[cfg(target_os = "linux")]
fn asks_for_whole_blocks(collapsed: io::Result<()>) -> io::Result<bool> {
    let error = match collapsed {
        Ok(()) => return Ok(false),
        Err(error) => error,
    };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INVAL) => Ok(true),
        Some(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        _ => Err(error),
    }
}

/// How a log can be cut: on this system by truncating it.
#[cfg(not(target_os = "linux"))]
pub fn means(_: &Dir, _: &File) -> io::Result<Means> {
    Ok(Means::Truncate)
}

/// Where the last whole line of `from..size` ends; `from` when there is none.
///
/// # Errors
/// When it can not be read.
pub fn end_of_lines(log: &File, from: u64, size: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    let mut end = size;
    while end > from {
        let length = (end - from).min(buffer.len() as u64);
        let piece = &mut buffer[..length as usize];
        log.read_exact_at(piece, end - length)?;
        if let Some(at) = memchr::memrchr(b'\n', piece) {
            return Ok(end - length + at as u64 + 1);
        }
        end -= length;
    }
    Ok(from)
}

/// How long the blank line is that a cut has left at the head of a log, its end included; 0 where none is. `known` is
/// what was noted of it. A long line of nothing but spaces is recognised without: a log that was moved, or whose record
/// is lost, keeps it.
///
/// # Errors
/// When it can not be read.
pub fn blank_head(log: &File, known: u64) -> io::Result<u64> {
    let size = Meta::of(log)?.size;
    let mut buffer = vec![0; 8 << 10];
    let mut at = 0;
    while at < size {
        let piece = &mut buffer[..(size - at).min(8 << 10) as usize];
        log.read_exact_at(piece, at)?;
        if let Some(n) = piece.iter().position(|b| *b != b' ') {
            at += n as u64;
            let is_ours = piece[n] == b'\n' && (at + 1 == known || at >= MARK);
            return Ok(if is_ours { at + 1 } else { 0 });
        }
        at += piece.len() as u64;
    }
    Ok(0)
}

/// Copies `from..end` of a log to the beginning of an empty file and makes that durable. Holes stay holes.
///
/// # Errors
/// When it can not be read or written, and interruption.
pub fn copy_out(
    log: &File,
    copy: &File,
    (from, end): (u64, u64),
    progress: &dyn Progress,
    stop: &Stop,
) -> io::Result<()> {
    let sparse = Meta::of(log)?.is_sparse();
    std::thread::scope(|scope| {
        let (written, to_sync) = std::sync::mpsc::sync_channel::<()>(0);
        let syncing = scope.spawn(move || {
            while to_sync.recv().is_ok() {
                copy.sync_data()?;
            }
            Ok::<_, io::Error>(())
        });
        let mut unsynced = 0;
        let copied = pieces(log, (from, end), sparse, |at, piece| {
            stop.check().map_err(|_| interrupted())?;
            copy.write_all_at(piece, at - from)?;
            progress.advance(0, piece.len() as u64);
            unsynced += piece.len() as u64;
            if unsynced >= SYNCED {
                unsynced = 0;
                // Whoever syncs has failed: that is told below.
                let _ = written.send(());
            }
            Ok(())
        });
        drop(written);
        let synced = syncing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("failed")));
        copied.and(synced)
    })?;
    copy.set_len(end - from)?;
    copy.sync_all()
}

fn interrupted() -> io::Error {
    // Not `Interrupted`, which means that a call is to be repeated.
    io::Error::other("interrupted")
}

/// Calls `each` with every piece of `from..end` that is data, and with where it is.
fn pieces(
    file: &File,
    (from, end): (u64, u64),
    sparse: bool,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut at = from;
    while at < end {
        let mut until = end;
        if sparse {
            (at, until) = match next_data(file, at, end)? {
                Some(data) => data,
                None => return Ok(()),
            };
        }
        while at < until {
            let piece = &mut buffer[..(until - at).min(PIECE as u64) as usize];
            file.read_exact_at(piece, at)?;
            each(at, piece)?;
            at += piece.len() as u64;
        }
    }
    Ok(())
}

/// The next data at or after `at`, and where it ends.
fn next_data(file: &File, at: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let data = match fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(end),
        Err(Errno::NXIO) => return Ok(None),
        // A filesystem that does not know its holes.
        Err(Errno::INVAL) => return Ok(Some((at, end))),
        Err(error) => return Err(error.into()),
    };
    match fs::seek(file, SeekFrom::Hole(data)) {
        Ok(hole) => Ok(Some((data, hole.min(end)))),
        Err(Errno::NXIO | Errno::INVAL) => Ok(Some((data, end))),
        Err(error) => Err(error.into()),
    }
}

/// Whether `from..end` of a log is what its copy holds from its beginning on; `also` says which other byte may stand at
/// a place of the log.
fn is_copied(
    log: &File,
    copy: &File,
    (from, end): (u64, u64),
    also: impl Fn(u64) -> Option<u8> + Sync,
) -> io::Result<bool> {
    if end < from || Meta::of(log)?.size < end || Meta::of(copy)?.size < end - from {
        return Ok(false);
    }
    // Both halves at once: the shorter this takes, the less can happen meanwhile.
    let middle = from + (end - from) / 2;
    std::thread::scope(|scope| {
        let second = scope.spawn(|| is_same(log, copy, from, (middle, end), &also));
        let first = is_same(log, copy, from, (from, middle), &also);
        let second = second
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("failed")));
        Ok(first? && second?)
    })
}

/// Whether `begin..end` of a log is what stands in its copy, which begins with what the log holds at `from`.
fn is_same(
    log: &File,
    copy: &File,
    from: u64,
    (begin, end): (u64, u64),
    also: &impl Fn(u64) -> Option<u8>,
) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = begin;
    let mut remembered = begin;
    while at < end {
        let length = (end - at).min(PIECE as u64) as usize;
        let (left, right) = (&mut left[..length], &mut right[..length]);
        match log.read_exact_at(left, at) {
            // It has become shorter since.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            done => done?,
        }
        copy.read_exact_at(right, at - from)?;
        if left != right {
            let differs = |(i, (one, other)): (usize, (&u8, &u8))| {
                one != other && also(at + i as u64) != Some(*one)
            };
            if left.iter().zip(right.iter()).enumerate().any(differs) {
                return Ok(false);
            }
        }
        at += length as u64;
        if at - remembered >= REMEMBERED || at == end {
            forget(log, remembered, at - remembered);
            remembered = at;
        }
    }
    Ok(true)
}

/// Lets the system forget what it holds of a log in memory; up to its end when `length` is 0. Nobody needs what is to be
/// taken out, and that would be done under the lock of the file, for which the writer waits.
#[cfg(target_os = "linux")]
fn forget(log: &File, at: u64, length: u64) {
    // It is only advice.
    let length = std::num::NonZeroU64::new(length);
    let _ = fs::fadvise(log, at, length, fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn forget(_: &File, _: u64, _: u64) {}

/// A blank line of this length.
fn blank(length: u64) -> Vec<u8> {
    let mut line = vec![b' '; length as usize];
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    line
}

impl Cut {
    /// Where the seam is: the end of the whole blocks that are taken out, such that the mark finds room between it and
    /// the end of the lines.
    fn seam(&self) -> u64 {
        match self.means {
            Means::Collapse { block } => self.end.saturating_sub(MARK + 1) / block * block,
            Means::Truncate => 0,
        }
    }

    /// Whether whole blocks are taken out.
    pub fn takes_blocks(&self) -> bool {
        self.seam() > 0
    }

    /// How long the blank line is that it leaves, its end included.
    pub fn blank(&self) -> u64 {
        match self.means {
            Means::Collapse { .. } => self.end - self.seam(),
            Means::Truncate => 0,
        }
    }

    /// What stands at the seam while it is being cut. Whoever reads the log then is told why it is as it is.
    fn mark(&self) -> Vec<u8> {
        format!("\n[wbhome cuts this log {:032x}]", self.id).into_bytes()
    }

    /// Takes out of the log what its copy holds. `fresh` says that the log has not been cut since it was copied: either the
    /// copy has just been made, or nobody has touched the log. Afterwards [`Cut::clear`] has to be called, when it has been
    /// noted that it is out.
    ///
    /// # Errors
    /// What the system says. The same call goes on from there.
    pub fn take_out(&self, log: &File, copy: &File, fresh: bool) -> io::Result<Taken> {
        let taken = match self.means {
            Means::Collapse { block } => collapse::take_out(self, block, log, copy),
            Means::Truncate => truncate::take_out(self, log, copy, fresh),
        };
        match taken {
            // It has become shorter meanwhile.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Taken::Changed),
            taken => taken,
        }
    }

    /// Whether the log has got a second name, under which it would change, too, and holds all that its copy does: what a
    /// power cut has left half done is not that, and has to be completed.
    fn is_linked(&self, log: &File, copy: &File) -> io::Result<bool> {
        Ok(has_more_names(log)? && is_copied(log, copy, (self.from, self.end), |_| None)?)
    }

    /// Blanks what is left of the mark.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn clear(&self, log: &File) -> io::Result<()> {
        let mark = self.mark();
        if self.seam() == 0 || !stands_at(log, 0, &mark)? {
            return Ok(());
        }
        log.write_all_at(&vec![b' '; mark.len()], 0)?;
        log.sync_data()
    }
}

/// Whether it would change under another name, too.
fn has_more_names(log: &File) -> io::Result<bool> {
    Ok(Meta::of(log)?.nlink > 1)
}

/// Whether these bytes stand there.
fn stands_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut there = vec![0; bytes.len()];
    match file.read_exact_at(&mut there, at) {
        Ok(()) => Ok(there == bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
