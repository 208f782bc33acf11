//! The one pass: every entry of the source is read once, changed as it streams, published under its final
//! name, and read back.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use rayon::prelude::*;

use super::plan::{Plan, Skipped};
use super::record::{Class, Done, Record, Writer};
use super::rewriting::{Rewriting, write_line};
use super::tally::Tally;
use crate::base::{Context, Error, Kind, Result, human};
use crate::check::Probe;
use crate::disk::{
    self, Buffers, Copied, CopyError, Dir, Entry, FileKind, Folder, Meta, NewFile, Xattrs,
};
use crate::home::{LockedHome, trash};
use crate::paths::{Rewriter, Spelling};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// A folder of more files than this is shared between workers.
const SHARE: usize = 256;

/// Files of this size are begun first, so that no worker is left alone with one at the end.
const LARGE: u64 = 64 << 20;

/// Everything that a worker needs.
pub(super) struct Transfer<'a> {
    pub plan: &'a Plan,
    pub home: &'a LockedHome,
    pub dest: &'a Dir,
    pub rewriter: &'a Rewriter,
    pub record: &'a Record,
    pub writer: Mutex<Writer>,
    pub ctx: &'a Context<'a>,
    /// Set when this process may give files away.
    pub keeps_owner: bool,
    /// Names by which a hard-linked file is met first.
    first_names: HashMap<(u64, u64), PathBuf>,
    /// The links that an earlier run has listed; read when it is asked for.
    listed_links: OnceLock<HashSet<PathBuf>>,
    failure: Mutex<Option<Error>>,
    buffers: Mutex<Vec<Buffers>>,
}

/// A run of names in a folder.
struct Task<'a> {
    folder: &'a Folder,
    entries: &'a [Entry],
}

impl<'a> Transfer<'a> {
    pub fn new(
        plan: &'a Plan,
        home: &'a LockedHome,
        dest: &'a Dir,
        rewriter: &'a Rewriter,
        record: &'a Record,
        ctx: &'a Context<'a>,
    ) -> Result<Self> {
        let mut first_names = HashMap::new();
        for (path, entry) in plan.tree.entries() {
            if entry.meta.kind == FileKind::File && entry.meta.nlink > 1 {
                first_names.entry(entry.meta.identity()).or_insert(path);
            }
        }
        Ok(Transfer {
            plan,
            home,
            dest,
            rewriter,
            record,
            writer: Mutex::new(record.writer()?),
            ctx,
            keeps_owner: disk::is_root(),
            first_names,
            listed_links: OnceLock::new(),
            failure: Mutex::new(None),
            buffers: Mutex::new(Vec::new()),
        })
    }

    /// Makes the folders, then copies what is in them, on all cores.
    pub fn run(&self, folders: &[Folder]) -> Result<Tally> {
        for folder in folders {
            self.ctx.stop.check()?;
            self.make_folders(folder)?;
        }
        let mut tasks: Vec<Task> = Vec::new();
        for folder in folders {
            for entries in folder.entries.chunks(SHARE) {
                tasks.push(Task { folder, entries });
            }
        }
        let is_large = |task: &Task| task.entries.iter().any(|e| e.meta.size >= LARGE);
        let (large, small): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(is_large);
        let tally = large
            .par_iter()
            .with_max_len(1)
            .chain(small.par_iter())
            .map(|task| self.task(task))
            .reduce(
                || Ok(Tally::default()),
                |one, other| {
                    let (mut one, other) = (one?, other?);
                    one.merge(other);
                    Ok(one)
                },
            );
        if let Some(error) = self.failure.lock().ok().and_then(|mut f| f.take()) {
            return Err(error);
        }
        tally
    }

    fn make_folders(&self, folder: &Folder) -> Result<()> {
        let fail = |e| write_error("the folder", &self.path(&folder.rel), e);
        let mut dest = None;
        for entry in &folder.entries {
            if entry.meta.kind != FileKind::Folder {
                continue;
            }
            let dest = match &dest {
                Some(dest) => dest,
                None => dest.insert(self.dest.open_beneath(&folder.rel).map_err(fail)?),
            };
            match dest.make(&entry.name) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    self.clear_unless(dest, &folder.rel, &entry.name, FileKind::Folder)?;
                }
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(())
    }

    /// Something has the name of a folder to be made: a folder stays, anything else goes to the trash.
    fn clear_unless(&self, dest: &Dir, rel: &Path, name: &OsStr, kind: FileKind) -> Result<()> {
        let fail = |e| write_error("the folder", &self.path(&rel.join(name)), e);
        let there = dest.stat(name).map_err(fail)?;
        if there.kind == kind {
            // An earlier run may have given it a mode without write permission.
            let folder = dest.open_beneath(Path::new(name)).map_err(fail)?;
            return folder.set_mode(there.mode | 0o700).map_err(fail);
        }
        self.to_trash(dest, rel, name)?;
        dest.make(name).map_err(fail)
    }

    /// What stands where a copy belongs, and is not ours, is put aside: somebody may have made it.
    pub fn to_trash(&self, dest: &Dir, rel: &Path, name: &OsStr) -> Result<()> {
        let why = "stood in the home where a migrated file belongs";
        trash::put_entry(self.home, dest, name, &rel.join(name), why, self.ctx).map(|_| ())
    }

    fn task(&self, task: &Task) -> Result<Tally> {
        let mut work = Work {
            transfer: self,
            tally: Tally::default(),
            buffers: self.take_buffers(),
            files: Vec::new(),
            references: Vec::new(),
        };
        let result = work.run(task);
        let Work {
            tally,
            buffers,
            files,
            references,
            ..
        } = work;
        if let Ok(mut pool) = self.buffers.lock() {
            pool.push(buffers);
        }
        // What was copied before a failure is recorded, so that it need not be copied again.
        self.append(&files, &references)?;
        result.map(|()| tally).map_err(|error| self.halt(error))
    }

    /// The first failure is the one that is told, and the other workers stop at their next file.
    fn halt(&self, error: Error) -> Error {
        let again = Error::new(error.kind(), "stopped after a failure");
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
        again
    }

    fn check_stop(&self) -> Result<()> {
        self.ctx.stop.check()?;
        match self.failure.lock() {
            Ok(failure) if failure.is_none() => Ok(()),
            _ => Err(Error::failed("stopped after a failure")),
        }
    }

    fn take_buffers(&self) -> Buffers {
        let pooled = self.buffers.lock().ok().and_then(|mut pool| pool.pop());
        pooled.unwrap_or_default()
    }

    /// Records a file outside of the pass.
    pub fn record_file(&self, done: &Done) -> Result<()> {
        let mut line = Vec::new();
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut line, done);
        line.push(b'\n');
        self.append(&line, &[])
    }

    /// Writes the record to the disk.
    pub fn sync_record(&self) -> Result<()> {
        match self.writer.lock() {
            Ok(writer) => writer.sync(),
            Err(_) => Err(Error::new(
                Kind::Bug,
                "a worker died while it wrote the record",
            )),
        }
    }

    fn append(&self, files: &[u8], references: &[u8]) -> Result<()> {
        match self.writer.lock() {
            Ok(mut writer) => writer.append(files, references),
            Err(_) => Err(Error::new(
                Kind::Bug,
                "a worker died while it wrote the record",
            )),
        }
    }

    /// The mapping that a link's target falls under: the longest, as everywhere.
    fn mapping_of(&self, target: &[u8]) -> u16 {
        let target = Path::new(OsStr::from_bytes(target));
        let under = self.rewriter.mappings().iter().enumerate();
        let longest = under
            .filter(|(_, m)| target.starts_with(&m.old))
            .max_by_key(|(_, m)| m.old.len());
        longest.map_or(0, |(i, _)| u16::try_from(i).unwrap_or(u16::MAX))
    }

    /// Whether an earlier run has listed a link. One that was killed may have made it and not have come to that.
    fn is_listed(&self, link: &Path) -> Result<bool> {
        if let Some(listed) = self.listed_links.get() {
            return Ok(listed.contains(link));
        }
        let listed = self.record.listed_links()?;
        Ok(self.listed_links.get_or_init(|| listed).contains(link))
    }

    pub fn path(&self, rel: &Path) -> PathBuf {
        self.plan.settings.dest.join(rel)
    }
}

/// An error while writing: a full disk is told as one, with what to do.
pub(super) fn write_error(what: &str, path: &Path, error: std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let full = matches!(error.kind(), StorageFull | QuotaExceeded);
    let error = Error::io(format!("can not write {what}"), path, error);
    if full {
        error.hint("the disk is full: make room and run the same command again, it goes on where it stopped")
    } else {
        error.hint("run the same command again when the cause is gone, it goes on where it stopped")
    }
}

/// One worker's work on one task.
struct Work<'t, 'a> {
    transfer: &'t Transfer<'a>,
    tally: Tally,
    buffers: Buffers,
    files: Vec<u8>,
    references: Vec<u8>,
}

impl Work<'_, '_> {
    fn run(&mut self, task: &Task) -> Result<()> {
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
                let path = task.folder.rel.join(&entry.name);
                self.tally
                    .skipped
                    .push(Skipped::failed(path, unreadable(error)));
            }
        }
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
        if let Some(done) = t.record.file(&path)
            && done.source == (&entry.meta).into()
            && self.is_still_right(dest, entry, &path, done)?
        {
            self.tally.add(&path, done);
            self.tally.kept += 1;
            return Ok(());
        }
        self.copy(source, dest, rel, entry, &path)
    }

    /// Whether what an earlier run has copied is what should be there.
    fn is_still_right(
        &mut self,
        dest: &Dir,
        entry: &Entry,
        path: &Path,
        done: &Done,
    ) -> Result<bool> {
        match dest.find(&entry.name) {
            Ok(Some(meta)) if meta.kind == FileKind::File => {}
            _ => return Ok(false),
        }
        let wanted = Wanted {
            size: done.size,
            digest: done.digest(),
            meta: &entry.meta,
        };
        self.read_back(dest, &entry.name, path, &wanted)
            .map(|wrong| wrong.is_none())
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
                let gone = error.kind() == std::io::ErrorKind::NotFound;
                let reason = if gone {
                    "went away meanwhile".to_owned()
                } else {
                    unreadable(&error)
                };
                let path = path.to_path_buf().into();
                self.tally.skipped.push(Skipped {
                    path,
                    reason,
                    failed: !gone,
                });
                return Ok(());
            }
        };
        let spill = |lines: &[u8]| {
            if let Err(error) = t.append(&[], lines) {
                t.halt(error);
            }
        };
        let mut rewriting = Rewriting::new(t.rewriter, path, Vec::new(), &spill);
        let mut seen = entry.meta;
        let mut settled = false;
        let mut last: Option<(NewFile, Copied)> = None;
        for _ in 0..ATTEMPTS {
            let copied = disk::copy_file(
                &file,
                &seen,
                dest,
                &mut rewriting,
                &mut self.buffers,
                t.ctx.stop,
            );
            let (new, copied) = match copied {
                Ok(done) => done,
                Err(CopyError::Stopped) => return t.ctx.stop.check(),
                Err(CopyError::Write(error)) => return Err(write_error("", &t.path(path), error)),
                Err(CopyError::Read(error)) => {
                    self.tally
                        .skipped
                        .push(Skipped::failed(path.to_path_buf(), unreadable(&error)));
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
        let Some((new, copied)) = last else {
            return Ok(());
        };
        if !settled {
            self.tally.restless.push(path.to_path_buf());
        }
        if !seen.same_state(&entry.meta) {
            self.tally.later_states.push((path.to_path_buf(), seen));
        }
        self.keep_attributes(&file, &new, path)?;
        let owner = t.keeps_owner.then_some((seen.uid, seen.gid));
        new.dress(owner, seen.mode, seen.mtime)
            .map_err(|e| write_error("", &t.path(path), e))?;
        self.publish(new, dest, rel, &entry.name, path, &copied)?;
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
        if let Some(wrong) = self.read_back(dest, &entry.name, path, &wanted)? {
            return Err(
                Error::failed(format!("what was written does not read back: {wrong}:"))
                    .at(t.path(path))
                    .hint("the disk or its driver is failing: choose a DEST on another one"),
            );
        }
        self.references.extend_from_slice(&lines);
        // Writing a line to memory does not fail.
        let _ = serde_json::to_writer(&mut self.files, &done);
        self.files.push(b'\n');
        self.tally.add(path, &done);
        Ok(())
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
            let found = disk::check_file(dest, name, &mut self.buffers, t.ctx.stop, &mut |_, _| {});
            let ours = t.record.file(path).and_then(Done::digest);
            if let Ok(found) = found
                && (found.digest == copied.digest || Some(found.digest) == ours)
            {
                return new.publish_over(name).map_err(fail);
            }
        }
        t.to_trash(dest, rel, name)?;
        new.publish(name).map_err(fail)
    }

    /// Reads a copy from its name, compares it with what should be there, and looks for damage in its
    /// content. Says what differs.
    fn read_back(
        &mut self,
        dest: &Dir,
        name: &OsStr,
        path: &Path,
        wanted: &Wanted,
    ) -> Result<Option<&'static str>> {
        let t = self.transfer;
        let mut probe = Probe::for_file(path);
        let found = disk::check_file(
            dest,
            name,
            &mut self.buffers,
            t.ctx.stop,
            &mut |data, length| {
                if let Some(probe) = &mut probe {
                    probe.push(data, length);
                }
            },
        );
        let found = match found {
            Ok(found) => found,
            Err(CopyError::Stopped) => {
                t.ctx.stop.check()?;
                return Ok(Some("it was not read to its end"));
            }
            Err(CopyError::Read(error) | CopyError::Write(error)) => {
                return Err(Error::io("can not read back", t.path(path), error));
            }
        };
        let wrong = if found.meta.size != wanted.size {
            "its length is another"
        } else if Some(found.digest) != wanted.digest {
            "its content is another"
        } else if found.meta.mode != wanted.meta.mode {
            "its mode is another"
        } else if found.meta.mtime != wanted.meta.mtime {
            "its time is another"
        } else {
            if let Some(probe) = probe {
                let defects = probe.finish().into_iter().map(|d| (path.to_path_buf(), d));
                self.tally.defects.extend(defects);
            }
            return Ok(None);
        };
        Ok(Some(wrong))
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
                self.tally
                    .skipped
                    .push(Skipped::failed(path, unreadable(&error)));
                return Ok(());
            }
        };
        let changed = t.rewriter.link_target(&old);
        let target = changed.as_ref().unwrap_or(&old);
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
            done => done.map_err(fail)?,
        }
        if t.keeps_owner {
            dest.set_owner_of(&entry.name, entry.meta.uid, entry.meta.gid)
                .map_err(fail)?;
        }
        dest.set_time_of(&entry.name, entry.meta.mtime)
            .map_err(fail)?;
        match changed {
            Some(_) => {
                let mapping = t.mapping_of(&old);
                self.tally.links_rewritten += 1;
                self.tally.count(mapping, Spelling::Plain, 1);
                if made || !t.is_listed(&path)? {
                    write_line(&mut self.references, &path, (mapping, Spelling::Plain), [0]);
                }
            }
            None => self.tally.links_kept += 1,
        }
        Ok(())
    }
}

/// What must be read back.
struct Wanted<'m> {
    size: u64,
    digest: Option<disk::Digest>,
    meta: &'m Meta,
}

fn unreadable(error: &std::io::Error) -> String {
    format!("can not be read: {}", human::io(error))
}
