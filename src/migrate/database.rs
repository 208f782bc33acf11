//! SQLite databases: a copy whose references `paths::database` has changed takes the database's place.
//!
//! The source is never opened: even a reader makes files beside a database. The exact copy in the home, with
//! its write-ahead log or rollback journal, is copied once more into a scratch folder; there SQLite brings it
//! up to date, and what comes of it must pass `integrity_check`. When anything fails, the exact copy stays, and
//! the report says so.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::outcome::Database;
use super::plan::Skipped;
use super::record::{Class, Done, Record};
use super::rewriting::write_count;
use super::tally::Tally;
use super::transfer::{Transfer, write_error};
use crate::base::{Error, Kind, Result, human};
use crate::disk::{self, Buffers, Copied, CopyError, Dir, Identity, NewFile, Xattrs};
use crate::paths::database::{self, COMPANIONS, Counts};

/// Rewrites every database that the pass has met.
pub(super) fn rewrite_all(
    transfer: &Transfer,
    record: &Record,
    tally: &mut Tally,
) -> Result<Vec<Database>> {
    let mut reports = Vec::new();
    for path in tally.databases.clone() {
        transfer.ctx.stop.check()?;
        reports.push(rewrite_one(transfer, record, &path, tally)?);
    }
    Ok(reports)
}

fn rewrite_one(
    transfer: &Transfer,
    record: &Record,
    path: &Path,
    tally: &mut Tally,
) -> Result<Database> {
    let mut report = Database {
        path: path.to_path_buf().into(),
        references: 0,
        failed: false,
        notes: Vec::new(),
    };
    // Taken by this run, and so as it is in the source.
    let Some(done) = record.file(path) else {
        return Ok(report);
    };
    let scratch = transfer.home.scratch(transfer.ctx)?;
    let staged = stage(transfer, path, scratch.path())?;
    match database::rewrite(&staged, transfer.rewriter) {
        Ok((counts, notes)) => {
            report.notes = notes;
            report.references = counts.values().sum();
            if !counts.is_empty() {
                // Before it has its name: an old log beside the new database would undo parts of it.
                remove_companions(transfer, path, tally)?;
                let done = put_back(transfer, path, done, scratch.path(), counts)?;
                // It was counted as copied, without references.
                tally.copied = tally.copied.saturating_sub(1);
                tally.add(path, &done);
                let mut lines = Vec::new();
                for (mapping, spelling, n) in &done.references {
                    write_count(&mut lines, path, (*mapping, *spelling), *n);
                }
                transfer.append(&[], &lines)?;
                transfer.record_file(&done)?;
            }
        }
        Err(error) => {
            report.failed = true;
            report.notes.push(format!(
                "copied exactly, its references could not be looked for: {}",
                human::escape(&error.to_string())
            ));
        }
    }
    Ok(report)
}

fn split(path: &Path) -> (&Path, OsString) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default().to_owned(),
    )
}

fn fail(transfer: &Transfer, path: &Path, error: std::io::Error) -> Error {
    write_error("the database", &transfer.path(path), error)
}

/// Copies the database and what belongs to it into the scratch folder.
fn stage(transfer: &Transfer, path: &Path, scratch: &Path) -> Result<PathBuf> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let from = transfer.dest.open_beneath(folder).map_err(fail)?;
    let to = Dir::open(scratch).map_err(fail)?;
    for suffix in ["", "-wal", "-journal"] {
        let mut source = name.clone();
        source.push(suffix);
        if from.find(&source).map_err(fail)?.is_some() {
            let (mut copy, _) = copy(transfer, path, &from, &source, &to)?;
            copy.publish(format!("database{suffix}").as_ref())
                .map_err(fail)?;
        }
    }
    Ok(scratch.join("database"))
}

fn copy<'d>(
    transfer: &Transfer,
    path: &Path,
    from: &Dir,
    name: &std::ffi::OsStr,
    to: &'d Dir,
) -> Result<(NewFile<'d>, Copied)> {
    let fail = |e| fail(transfer, path, e);
    let meta = from.stat(name).map_err(fail)?;
    let file = from.open_file(name).map_err(fail)?;
    let stop = transfer.ctx.stop;
    disk::copy_file(&file, &meta, to, &mut Identity, &mut Buffers::new(), stop)
        .map_err(|e| copy_error(transfer, path, e))
}

fn copy_error(transfer: &Transfer, path: &Path, error: CopyError) -> Error {
    match error {
        CopyError::Read(error) | CopyError::Write(error) => fail(transfer, path, error),
        CopyError::Stopped => Error::new(Kind::Interrupted, "interrupted"),
    }
}

/// Replaces the exact copy by the rewritten one, with the modes, times and attributes of the source, after it has
/// been read back.
fn put_back(
    transfer: &Transfer,
    path: &Path,
    done: &Done,
    scratch: &Path,
    counts: Counts,
) -> Result<Done> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let from = Dir::open(scratch).map_err(fail)?;
    let to = transfer.dest.open_beneath(folder).map_err(fail)?;
    let dress = to.stat(&name).map_err(fail)?;
    let attributes = to.open_file(&name).and_then(Xattrs::of).map_err(fail)?;
    let (new, copied) = copy(transfer, path, &from, "database".as_ref(), &to)?;
    // Those of the exact copy, which this filesystem took before.
    attributes.apply(new.file()).map_err(|(_, e)| fail(e))?;
    new.dress(transfer.owner_of(&dress), dress.mode, dress.mtime)
        .map_err(fail)?;
    let stop = transfer.ctx.stop;
    let back = disk::check_open(new.file(), &mut Buffers::new(), stop, &mut |_, _| {})
        .map_err(|e| copy_error(transfer, path, e))?;
    if back.digest != copied.digest {
        return Err(Error::failed("what was written reads back differently:")
            .at(transfer.path(path))
            .hint("the disk or its driver is failing: choose a DEST on another one"));
    }
    new.publish_over(&name).map_err(fail)?;
    let mut rewritten = done.clone();
    rewritten.class = Class::Rewritten;
    rewritten.size = copied.size;
    rewritten.digest = copied.digest.to_hex().to_string();
    rewritten.references = counts.into_iter().map(|((m, s), n)| (m, s, n)).collect();
    Ok(rewritten)
}

/// What the log or journal held is in the database now; the old ones would undo that.
fn remove_companions(transfer: &Transfer, path: &Path, tally: &mut Tally) -> Result<()> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let dest = transfer.dest.open_beneath(folder).map_err(fail)?;
    for suffix in COMPANIONS {
        let mut companion = name.clone();
        companion.push(suffix);
        if dest.find(&companion).map_err(fail)?.is_some() {
            dest.unlink(&companion).map_err(fail)?;
            let rel = folder.join(&companion);
            tally.copied = tally.copied.saturating_sub(1);
            tally.binary.retain(|(path, _)| *path != rel);
            tally.skipped.push(Skipped::by_design(
                rel,
                format!("what it held is in {} now", human::path(Path::new(&name))),
            ));
        }
    }
    Ok(())
}
