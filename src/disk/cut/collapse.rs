//! Whole blocks out of the beginning of a log, and nothing lost.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{Cut, MARK, Taken, blank, forget, is_copied, stands_at};
use crate::base::failpoint;
use crate::disk::Meta;

/// Takes `length` bytes out of a file; what follows moves up.
#[cfg(target_os = "linux")]
pub(super) fn collapse(file: &File, at: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::COLLAPSE_RANGE, at, length)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn collapse(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn take_out(cut: &Cut, block: u64, log: &File, copy: &File) -> io::Result<Taken> {
    let seam = cut.seam();
    if seam == 0 {
        return blank_all(cut, log, copy);
    }
    let slice = (cut.slice / block).max(1) * block;
    let line = seam_line(cut);
    let left = match find_seam(cut, seam, slice, log)? {
        Some(left) => {
            // Of the blank line before the copy nothing is left to compare.
            if left > cut.from && !is_copied(log, copy, (cut.from, left), |_| None)? {
                return Ok(Taken::Changed);
            }
            left
        }
        None => {
            // A power cut may have left a part of what stands at the seam.
            let also = |at: u64| {
                line.get(usize::try_from(at.checked_sub(seam)?).ok()?)
                    .copied()
            };
            if !is_copied(log, copy, (cut.from, cut.end), also)? {
                return Ok(Taken::Changed);
            }
            if cut.is_linked(log, copy)? {
                return Ok(Taken::Linked);
            }
            failpoint::hit("cut.unmarked");
            log.write_all_at(&line, seam)?;
            failpoint::hit("cut.marked");
            if !is_still_copied(cut, seam, log, copy)? {
                return Ok(Taken::Changed);
            }
            log.sync_data()?;
            failpoint::hit("cut.mark-synced");
            seam
        }
    };
    collapse_before(cut, left, slice, log)?;
    failpoint::hit("cut.collapsed");
    log.sync_all()?;
    failpoint::hit("cut.out");
    Ok(Taken::Out)
}

/// Whether the first and the last page before the seam are as they were: had the log been truncated right before the mark
/// was written, a hole would be there now.
fn is_still_copied(cut: &Cut, seam: u64, log: &File, copy: &File) -> io::Result<bool> {
    const PAGE: u64 = 4096;
    let first = (cut.from, (cut.from + PAGE).min(seam).max(cut.from));
    if !is_copied(log, copy, first, |_| None)? {
        return Ok(false);
    }
    let begin = seam.saturating_sub(PAGE).max(cut.from).min(seam);
    let length = usize::try_from(seam - begin).unwrap_or(0);
    let (mut there, mut held) = (vec![0; length], vec![0; length]);
    log.read_exact_at(&mut there, begin)?;
    copy.read_exact_at(&mut held, begin.saturating_sub(cut.from))?;
    Ok(begin < cut.from || there == held)
}

/// What stands between the seam and the end of what is taken out: the mark, and a blank line.
fn seam_line(cut: &Cut) -> Vec<u8> {
    let mut line = blank(cut.blank());
    let mark = cut.mark();
    debug_assert_eq!(mark.len() as u64, MARK);
    line[..mark.len()].copy_from_slice(&mark);
    line
}

/// Where the mark stands, if it does: so much is yet to be taken out before it.
fn find_seam(cut: &Cut, seam: u64, slice: u64, log: &File) -> io::Result<Option<u64>> {
    let mark = cut.mark();
    let mut at = seam;
    loop {
        if stands_at(log, at, &mark)? {
            return Ok(Some(at));
        }
        if at == 0 {
            return Ok(None);
        }
        at = begin_of_slice(at, slice);
    }
}

/// Where the slice begins that ends at `end`. They are counted from the beginning of the file, so that they are found
/// again.
fn begin_of_slice(end: u64, slice: u64) -> u64 {
    (end - 1) / slice * slice
}

/// Takes out everything before the mark, which stands at `left`.
fn collapse_before(cut: &Cut, mut left: u64, slice: u64, log: &File) -> io::Result<()> {
    let mark = cut.mark();
    while left > 0 {
        let begin = begin_of_slice(left, slice);
        // Under the lock of the file, for which the writer waits, the system would write what came in since, and forget all
        // that it holds in memory from there on. Should the first fail, that is told when all is done.
        let _ = log.sync_data();
        forget(log, begin, 0);
        // Its writer may begin the log anew at any moment.
        if !stands_at(log, left, &mark)? {
            return Ok(());
        }
        match collapse(log, begin, left - begin) {
            Ok(()) => {}
            // The end of the file came nearer: it has been truncated.
            Err(_) if Meta::of(log)?.size <= left => return Ok(()),
            // The disk is full, or has an error: what could not be taken out becomes a part of the blank line. The next
            // cut takes it out.
            Err(error) => return blank_before(left, log).map_err(|_| error),
        }
        failpoint::hit("cut.slice");
        left = begin;
        // Whoever waits comes first.
        std::thread::yield_now();
    }
    Ok(())
}

/// Blanks everything up to the end of the mark, which stands at `left`.
fn blank_before(left: u64, log: &File) -> io::Result<()> {
    let spaces = vec![b' '; super::PIECE];
    let (mut at, end) = (0, left + MARK);
    while at < end {
        let length = (end - at).min(spaces.len() as u64);
        log.write_all_at(&spaces[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// No whole block is to be taken out: the lines become a blank one. That can be done any number of times.
fn blank_all(cut: &Cut, log: &File, copy: &File) -> io::Result<Taken> {
    if cut.end == 0 {
        return Ok(Taken::Out);
    }
    if !is_copied(log, copy, (cut.from, cut.end), |_| Some(b' '))? {
        return Ok(Taken::Changed);
    }
    if cut.is_linked(log, copy)? {
        return Ok(Taken::Linked);
    }
    failpoint::hit("cut.unblanked");
    log.write_all_at(&blank(cut.end), 0)?;
    failpoint::hit("cut.blanked");
    log.sync_data()?;
    failpoint::hit("cut.out");
    Ok(Taken::Out)
}
