//! What becomes of one entry of the source: a file is copied, changed on the way, published and read back; a
//! link is made; anything else is named.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::plan::Skipped;
use super::record::{Class, Done};
use super::rewriting::{Rewriting, write_line};
use super::settle::GONE;
use super::tally::Tally;
use super::transfer::{Desk, Task, Transfer, write_error};
use crate::base::{Error, Result, human};
use crate::check::Probe;
use crate::disk::{self, Copied, CopyError, Dir, Entry, FileKind, Meta, NewFile, Xattrs};
use crate::paths::Spelling;

/// The index follows the home, and is made to agree with it when everything is there.
const INDEX: &str = "index.json";

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// One worker's work on one task.
pub(super) struct Work<'t, 'a> {
    pub transfer: &'t Transfer<'a>,
    pub tally: Tally,
    pub desk: Desk,
}

impl Work<'_, '_> {
    /// Takes every entry of the task but folders, which are there already.
    pub fn run(&mut self, task: &Task) -> Result<()> {
        let t = self.transfer;
        let rel = &task.folder.rel;
        if task.entries.iter().all(|e| e.meta.kind == FileKind::Folder) {
            return Ok(());
        }
        let source = match t.plan.source.open_beneath(rel) {
            Ok(dir) => dir,
            Err(error) => {
                self.skip_all(task, &error);
                return Ok(());
            }
        };
        let dest = t
            .dest
            .open_beneath(rel)
            .map_err(|e| write_error("into the folder", &t.path(rel), e))?;
        for entry in task.entries {
            t.check_stop()?;
            let path = rel.join(&entry.name);
            match entry.meta.kind {
                FileKind::Folder => continue,
                FileKind::File => self.file(&source, &dest, rel, entry, path)?,
                FileKind::Symlink => self.symlink(&source, &dest, rel, entry, path)?,
                other => self
                    .tally
                    .skipped
                    .push(Skipped::by_design(path, other.described())),
            }
            t.ctx.progress.advance(1, entry.meta.size);
        }
        Ok(())
    }

    fn skip_all(&mut self, task: &Task, error: &std::io::Error) {
        for entry in task.entries {
            if entry.meta.kind != FileKind::Folder {
                self.skip(task.folder.rel.join(&entry.name), error);
            }
        }
    }

    /// Names an entry that can not be read. One that went away was not missed: its owner has removed it.
    fn skip(&mut self, path: PathBuf, error: &std::io::Error) {
        self.tally.skipped.push(match error.kind() {
            std::io::ErrorKind::NotFound => Skipped::by_design(path, GONE),
            _ => Skipped::failed(path, format!("can not be read: {}", human::io(error))),
        });
    }

    fn file(
        &mut self,
        source: &Dir,
        dest: &Dir,
        rel: &Path,
        entry: &Entry,
        path: PathBuf,
    ) -> Result<()> {
        let t = self.transfer;
        if entry.meta.nlink > 1
            && let Some(first) = t.first_names.get(&entry.meta.identity())
            && *first != path
        {
            self.tally.further_names.push((path, first.clone()));
            return Ok(());
        }
        if let Some(done) = t.record.file(&path).filter(|done| done.is_copy()) {
            let same_source = done.source == (&entry.meta).into();
            match self.earlier_copy(dest, entry, &path, done)? {
                Earlier::Edited if same_source && path != Path::new(INDEX) => {
                    self.tally.warnings.push(format!(
                        "{}: was changed in the home since it was copied, and is left as it is",
                        human::path(&path)
                    ));
                    self.tally.add(&path, done);
                    self.tally.databases.retain(|database| *database != path);
                    self.tally.kept += 1;
                    return Ok(());
                }
                // A database is always taken again: what its log holds may have changed while it has not.
                Earlier::Right
                    if same_source && !(done.database && done.class == Class::Rewritten) =>
                {
                    self.tally.add(&path, done);
                    self.tally.kept += 1;
                    return Ok(());
                }
                _ => {}
            }
        }
        self.copy(source, dest, rel, entry, &path)
    }

    /// What has become of the copy that an earlier run has made.
    fn earlier_copy(
        &mut self,
        dest: &Dir,
        entry: &Entry,
        path: &Path,
        done: &Done,
    ) -> Result<Earlier> {
        let there = match dest.find(&entry.name) {
            Ok(Some(meta)) if meta.kind == FileKind::File => meta,
            _ => return Ok(Earlier::Wrong),
        };
        let Ok(file) = dest.open_file(&entry.name) else {
            return Ok(Earlier::Wrong);
        };
        let wanted = Wanted {
            size: done.size,
            digest: done.digest(),
            meta: &entry.meta,
        };
        if self.read_back(&file, path, &wanted)? != Some(Wrong::Content) {
            return Ok(Earlier::Right);
        }
        // A copy has the time of its source from the first moment. Another time is that of somebody's work; with
        // the same one, the disk has lost what was written. Some filesystems keep only every second second.
        match (there.mtime.seconds - entry.meta.mtime.seconds).abs() > 2 {
            true => Ok(Earlier::Edited),
            false => Ok(Earlier::Wrong),
        }
    }

    fn copy(
        &mut self,
        source: &Dir,
        dest: &Dir,
        rel: &Path,
        entry: &Entry,
        path: &Path,
    ) -> Result<()> {
        let t = self.transfer;
        let file = match source.open_file(&entry.name) {
            Ok(file) => file,
            Err(error) => {
                self.skip(path.to_path_buf(), &error);
                return Ok(());
            }
        };
        let spill = |lines: &[u8]| {
            if let Err(error) = t.append(&[], lines) {
                t.halt(error);
            }
        };
        let mut rewriting = Rewriting::new(
            t.rewriter,
            path,
            std::mem::take(&mut self.desk.lines),
            &spill,
        );
        let mut seen = entry.meta;
        let mut settled = false;
        let mut last: Option<(NewFile, Copied)> = None;
        for _ in 0..ATTEMPTS {
            let copied = disk::copy_file(
                &file,
                &seen,
                dest,
                &mut rewriting,
                &mut self.desk.buffers,
                t.ctx.stop,
            );
            let (new, copied) = match copied {
                Ok(done) => done,
                Err(CopyError::Stopped) => return t.ctx.stop.check(),
                Err(CopyError::Write(error)) => return Err(write_error("", &t.path(path), error)),
                Err(CopyError::Read(error)) => {
                    self.skip(path.to_path_buf(), &error);
                    return Ok(());
                }
            };
            settled = copied.source.same_state(&seen);
            seen = copied.source;
            last = Some((new, copied));
            if settled || seen.kind != FileKind::File {
                break;
            }
        }
        let Some((mut new, copied)) = last else {
            return Ok(());
        };
        if !settled {
            self.tally.restless.push(path.to_path_buf());
        }
        if !seen.same_state(&entry.meta) {
            self.tally.later_states.push((path.to_path_buf(), seen));
        }
        self.keep_attributes(&file, &new, path)?;
        let owner = t.owner_of(&seen);
        new.dress(owner.filter(|ids| *ids != t.ids), seen.mode, seen.mtime)
            .map_err(|e| write_error("", &t.path(path), e))?;
        let class = if rewriting.changed() {
            Class::Rewritten
        } else {
            Class::Copied
        };
        let mut done = Done::new(path, class, &seen, copied.size, copied.digest);
        let lines = rewriting.report(&mut done);
        let wanted = Wanted {
            size: copied.size,
            digest: Some(copied.digest),
            meta: &seen,
        };
        let mut wrong = self.read_back(new.file(), path, &wanted)?;
        if wrong == Some(Wrong::Dress) {
            wrong = self.dress_again(&mut new, path, &wanted)?;
        }
        if wrong.is_some() {
            return Err(Error::failed("what was written reads back differently:")
                .at(t.path(path))
                .hint("the disk or its driver is failing: choose a DEST on another one"));
        }
        self.publish(new, dest, rel, &entry.name, path, &copied)?;
        self.desk.references.extend_from_slice(&lines);
        self.desk.lines = lines;
        self.note(&done);
        self.tally.add(path, &done);
        Ok(())
    }

    fn note(&mut self, done: &Done) {
        // Writing a line to memory does not fail.
        let _ = serde_json::to_writer(&mut self.desk.files, done);
        self.desk.files.push(b'\n');
    }

    /// A default access list or a mount option has given the copy something else than was asked for. A
    /// filesystem that can not keep it at all is told of, and the content is right.
    fn dress_again(
        &mut self,
        new: &mut NewFile,
        path: &Path,
        wanted: &Wanted,
    ) -> Result<Option<Wrong>> {
        let meta = wanted.meta;
        let dressed = disk::dress_file(
            new.file(),
            self.transfer.owner_of(meta),
            meta.mode,
            meta.mtime,
        );
        self.tally.defects.retain(|(p, _)| p != path);
        let wrong = self.read_back(new.file(), path, wanted)?;
        if wrong != Some(Wrong::Dress) {
            return Ok(wrong);
        }
        let why = dressed
            .err()
            .map(|e| format!(": {}", human::io(&e)))
            .unwrap_or_default();
        self.tally.warnings.push(format!(
            "{}: its mode, owner or time could not be kept{why}",
            human::path(path)
        ));
        Ok(None)
    }

    fn keep_attributes(
        &mut self,
        file: impl std::os::fd::AsFd,
        new: &NewFile,
        path: &Path,
    ) -> Result<()> {
        let attributes = match Xattrs::of(file) {
            Ok(attributes) => attributes,
            Err(error) => {
                let what = format!(
                    "{}: its extended attributes can not be read: {}",
                    human::path(path),
                    human::io(&error)
                );
                self.tally.warnings.push(what);
                return Ok(());
            }
        };
        if let Err((name, error)) = attributes.apply(new.file()) {
            self.tally.warnings.push(format!(
                "{}: the attribute {} could not be kept: {}",
                human::path(path),
                human::escape(&name),
                human::io(&error)
            ));
        }
        Ok(())
    }

    /// Gives the copy its name. What has that name already is replaced when it is the same, or an earlier
    /// copy of ours; else it goes to the trash.
    fn publish(
        &mut self,
        mut new: NewFile,
        dest: &Dir,
        rel: &Path,
        name: &OsStr,
        path: &Path,
        copied: &Copied,
    ) -> Result<()> {
        let t = self.transfer;
        let fail = |e| write_error("", &t.path(path), e);
        match new.publish(name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            done => return done.map_err(fail),
        }
        let there = dest.stat(name).map_err(fail)?;
        if there.kind == FileKind::File {
            let found = disk::check_file(
                dest,
                name,
                &mut self.desk.buffers,
                t.ctx.stop,
                &mut |_, _| {},
            );
            let ours = t.record.file(path).and_then(Done::digest);
            if let Ok(found) = found
                && (found.digest == copied.digest || Some(found.digest) == ours)
            {
                let dressed =
                    (there.mode, there.mtime) == (copied.source.mode, copied.source.mtime);
                // A run that was killed has published this very copy and not recorded it.
                if found.digest == copied.digest && dressed {
                    return Ok(());
                }
                return new.publish_over(name).map_err(fail);
            }
        }
        t.to_trash(dest, rel, name)?;
        new.publish(name).map_err(fail)
    }

    /// Reads a copy, compares it with what should be there, and looks for damage in its content. Says what
    /// differs.
    fn read_back(&mut self, file: &File, path: &Path, wanted: &Wanted) -> Result<Option<Wrong>> {
        let t = self.transfer;
        let mut probe = Probe::for_file(path);
        let mut look = |data: Option<&[u8]>, length| {
            if let Some(probe) = &mut probe {
                probe.push(data, length);
            }
        };
        let found = disk::check_open(file, &mut self.desk.buffers, t.ctx.stop, &mut look);
        let found = match found {
            Ok(found) => found,
            Err(CopyError::Stopped) => return t.ctx.stop.check().map(|()| Some(Wrong::Content)),
            Err(CopyError::Read(error) | CopyError::Write(error)) => {
                return Err(Error::io("can not read back", t.path(path), error));
            }
        };
        if found.meta.size != wanted.size || Some(found.digest) != wanted.digest {
            return Ok(Some(Wrong::Content));
        }
        if let Some(probe) = probe {
            let defects = probe.finish().into_iter().map(|d| (path.to_path_buf(), d));
            self.tally.defects.extend(defects);
        }
        let (here, there) = (&found.meta, wanted.meta);
        let owner = t
            .owner_of(there)
            .is_none_or(|ids| ids == (here.uid, here.gid));
        match owner && here.mode == there.mode && here.mtime == there.mtime {
            true => Ok(None),
            false => Ok(Some(Wrong::Dress)),
        }
    }

    fn symlink(
        &mut self,
        source: &Dir,
        dest: &Dir,
        rel: &Path,
        entry: &Entry,
        path: PathBuf,
    ) -> Result<()> {
        let t = self.transfer;
        let old = match source.read_link(&entry.name) {
            Ok(target) => target,
            Err(error) => {
                self.skip(path, &error);
                return Ok(());
            }
        };
        let changed = t.rewriter.link_target(&old);
        let target = changed.as_ref().map_or(&old, |(_, target)| target);
        let fail = |e| write_error("the link", &t.path(&path), e);
        let mut made = true;
        match dest.symlink(target, &entry.name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                made = false;
                if !dest
                    .read_link(&entry.name)
                    .is_ok_and(|there| there == *target)
                {
                    t.to_trash(dest, rel, &entry.name)?;
                    dest.symlink(target, &entry.name).map_err(fail)?;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::InvalidFilename => {
                let reason = "its new target is longer than a link can hold";
                self.tally.skipped.push(Skipped::failed(path, reason));
                return Ok(());
            }
            done => done.map_err(fail)?,
        }
        if t.keeps_owner {
            dest.set_owner_of(&entry.name, entry.meta.uid, entry.meta.gid)
                .map_err(fail)?;
        }
        dest.set_time_of(&entry.name, entry.meta.mtime)
            .map_err(fail)?;
        let mapping = changed.map(|(mapping, _)| mapping);
        // One that an earlier run has made and listed is not listed again.
        if made || t.record.file(&path).is_none() {
            if let Some(mapping) = mapping {
                write_line(
                    &mut self.desk.references,
                    &path,
                    (mapping, Spelling::Plain),
                    [0],
                );
            }
            self.note(&Done::other(&path, Class::Linked, &entry.meta));
        }
        self.tally.add_link(mapping);
        Ok(())
    }
}

/// What has become of a copy that an earlier run has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Earlier {
    /// It is as it was made.
    Right,
    /// Somebody has worked on it since.
    Edited,
    /// It is not there, or not what was written.
    Wrong,
}

/// In which way a copy is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Its bytes.
    Content,
    /// Its owner, mode or time.
    Dress,
}

/// What must be read back.
struct Wanted<'m> {
    size: u64,
    digest: Option<disk::Digest>,
    meta: &'m Meta,
}
