//! The whole log copied and truncated to nothing, where no other way is: what is written between the last copy and the
//! truncation is lost.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::{Cut, PIECE, Taken, has_more_names, is_copied, stands_at};
use crate::base::failpoint;
use crate::disk::Meta;

/// So often the end is waited for of a line that is being written.
const PATIENCE: u32 = 20;

/// The rest is copied so often before it is taken as it is.
const ROUNDS: u32 = 8;

pub(super) fn take_out(cut: &Cut, log: &File, copy: &File, fresh: bool) -> io::Result<Taken> {
    let mark = mark_of(cut);
    if !stands_at(log, 0, &mark)? {
        // After a kill this means that it was done, or that it was not begun and lines are in both: the first is told by a
        // log that does not hold any more what was copied. In the other case nothing must be lost.
        let held = cut.from + Meta::of(copy)?.size;
        let same = is_copied(log, copy, (cut.from, held), |_| None)?;
        if !fresh && !same {
            return Ok(Taken::Out);
        }
        if !fresh || !same {
            return Ok(Taken::Changed);
        }
        if has_more_names(log)? {
            return Ok(Taken::Linked);
        }
        failpoint::hit("cut.unmarked");
        log.write_all_at(&mark, 0)?;
        failpoint::hit("cut.marked");
    }
    copy_rest(cut, log, copy)?;
    // Nothing may come between the two.
    log.set_len(0)?;
    failpoint::hit("cut.truncated");
    copy.sync_all()?;
    log.sync_all()?;
    failpoint::hit("cut.out");
    Ok(Taken::Out)
}

/// What stands at the head of the log until it is truncated, as much as fits into what was copied.
fn mark_of(cut: &Cut) -> Vec<u8> {
    let mut mark = cut.mark();
    mark.truncate(usize::try_from(cut.end).unwrap_or(usize::MAX));
    mark
}

/// Adds to the copy what was written since, and to the end of a line if one is near. The copy tells how far it has come.
fn copy_rest(cut: &Cut, log: &File, copy: &File) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut held = Meta::of(copy)?.size;
    let mut patience = PATIENCE;
    let mut rounds = ROUNDS;
    let mut last = b'\n';
    loop {
        let length = log.read_at(&mut buffer, cut.from + held)?;
        if length > 0 {
            copy.write_all_at(&buffer[..length], held)?;
            held += length as u64;
            last = buffer[length - 1];
            failpoint::hit("cut.rest");
        }
        if length == PIECE {
            continue;
        }
        if last != b'\n' && patience > 0 {
            patience -= 1;
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        rounds = match length {
            0 => 0,
            _ => rounds - 1,
        };
        if rounds == 0 {
            return Ok(());
        }
    }
}
