//! The one pass: every entry of the source is read once, changed as it streams, published under its final
//! name, and read back.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rayon::prelude::*;

use super::entry::Work;
use super::plan::Plan;
use super::record::{Done, Record, Writer};
use super::tally::Tally;
use crate::base::{self, Context, Error, Kind, Result, human};
use crate::disk::{self, Buffers, Dir, Entry, FileKind, Folder, Meta};
use crate::home::{LockedHome, trash};
use crate::paths::Rewriter;

/// A folder of more files than this is shared between workers.
const SHARE: usize = 256;

/// Files of this size are begun first, so that no worker is left alone with one at the end.
const LARGE: u64 = 64 << 20;

/// What is the same for the whole of a migration.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub plan: &'a Plan,
    pub home: &'a LockedHome,
    /// The home, open.
    pub dest: &'a Dir,
    pub rewriter: &'a Rewriter,
    pub ctx: &'a Context<'a>,
}

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
    /// The user and group of what this process makes.
    pub ids: (u32, u32),
    /// Names by which a hard-linked file is met first.
    pub first_names: HashMap<(u64, u64), PathBuf>,
    failure: Mutex<Option<Error>>,
    notes: Mutex<Vec<String>>,
    desks: Mutex<Vec<Desk>>,
}

/// What a worker writes on, kept from task to task.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub buffers: Buffers,
    /// Lines for `files.jsonl`.
    pub files: Vec<u8>,
    /// Lines for `references.jsonl`.
    pub references: Vec<u8>,
    /// Those of the file that is being copied.
    pub lines: Vec<u8>,
}

/// A run of names in a folder.
pub(super) struct Task<'a> {
    pub folder: &'a Folder,
    pub entries: &'a [Entry],
}

impl<'a> Transfer<'a> {
    /// One that knows no hard-linked file yet: see [`Transfer::among`].
    pub fn new(job: &Job<'a>, record: &'a Record) -> Result<Self> {
        let Job {
            plan,
            home,
            dest,
            rewriter,
            ctx,
        } = *job;
        Ok(Transfer {
            plan,
            home,
            dest,
            rewriter,
            record,
            writer: Mutex::new(record.writer()?),
            ctx,
            keeps_owner: disk::is_root(),
            ids: disk::own_ids(),
            first_names: HashMap::new(),
            failure: Mutex::new(None),
            notes: Mutex::new(Vec::new()),
            desks: Mutex::new(Vec::new()),
        })
    }

    /// Tells it of all that is in the source, before some of it is copied: of a hard-linked file the first name counts.
    pub fn among(mut self, folders: &[Folder]) -> Self {
        for folder in folders {
            for entry in &folder.entries {
                if entry.meta.kind == FileKind::File && entry.meta.nlink > 1 {
                    let first = self.first_names.entry(entry.meta.identity());
                    first.or_insert_with(|| folder.rel.join(&entry.name));
                }
            }
        }
        self
    }

    /// Makes the folders, then copies what is in them, on all cores.
    pub fn run(&self, folders: &[Folder]) -> Result<Tally> {
        for level in by_depth(folders) {
            self.ctx.stop.check()?;
            level
                .par_iter()
                .try_for_each(|folder| self.make_folders(folder))?;
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
        let mut tally = tally?;
        tally.warnings.extend(self.take_notes());
        Ok(tally)
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

    /// What stands where a copy belongs, and is not ours, is put aside: somebody may have made it. It is told.
    pub fn to_trash(&self, dest: &Dir, rel: &Path, name: &OsStr) -> Result<()> {
        let why = "stood in the home where a migrated file belongs";
        let path = rel.join(name);
        let kept = trash::put_entry(self.home, dest, name, &path, why, self.ctx)?;
        let kept = trash::shown(self.home, &kept);
        let note = format!(
            "{}: what stood there in the home is in {kept}",
            human::path(&path)
        );
        if let Ok(mut notes) = self.notes.lock() {
            notes.push(note);
        }
        Ok(())
    }

    /// What a person should be told of, since the last time.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes
            .lock()
            .map(|mut notes| std::mem::take(&mut *notes))
            .unwrap_or_default()
    }

    fn task(&self, task: &Task) -> Result<Tally> {
        let pooled = self.desks.lock().ok().and_then(|mut desks| desks.pop());
        let mut work = Work {
            transfer: self,
            tally: Tally::default(),
            desk: pooled.unwrap_or_default(),
        };
        let result = work.run(task);
        let Work {
            tally, mut desk, ..
        } = work;
        // What was copied before a failure is recorded, so that it need not be copied again.
        let result = result.and(self.append(&desk.files, &desk.references));
        desk.files.clear();
        desk.references.clear();
        if let Ok(mut desks) = self.desks.lock() {
            desks.push(desk);
        }
        result.map(|()| tally).map_err(|error| self.halt(error))
    }

    /// The first failure is the one that is told, and the other workers stop at their next file.
    pub fn halt(&self, error: Error) -> Error {
        let again = Error::new(error.kind(), "stopped after a failure");
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
        again
    }

    pub fn check_stop(&self) -> Result<()> {
        self.ctx.stop.check()?;
        match self.failure.lock() {
            Ok(failure) if failure.is_none() => Ok(()),
            _ => Err(Error::failed("stopped after a failure")),
        }
    }

    /// Whom a copy shall belong to, where this process may say so.
    pub fn owner_of(&self, meta: &Meta) -> Option<(u32, u32)> {
        self.keeps_owner.then_some((meta.uid, meta.gid))
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

    pub fn append(&self, files: &[u8], references: &[u8]) -> Result<()> {
        match self.writer.lock() {
            Ok(mut writer) => writer.append(files, references),
            Err(_) => Err(Error::new(
                Kind::Bug,
                "a worker died while it wrote the record",
            )),
        }
    }

    pub fn path(&self, rel: &Path) -> PathBuf {
        self.plan.settings.dest.join(rel)
    }
}

/// Folders by how deep they lie, the shallowest first. Those of one depth do not lie in each other.
pub(super) fn by_depth(folders: &[Folder]) -> Vec<Vec<&Folder>> {
    let mut levels: BTreeMap<usize, Vec<&Folder>> = BTreeMap::new();
    for folder in folders {
        levels
            .entry(folder.rel.iter().count())
            .or_default()
            .push(folder);
    }
    levels.into_values().collect()
}

/// An error while writing: a full disk is told as one, with what to do.
pub(super) fn write_error(what: &str, path: &Path, error: std::io::Error) -> Error {
    let full = base::is_full(&error);
    let error = Error::io(format!("can not write {what}"), path, error);
    if full {
        error.hint("the disk is full: make room and run the same command again, it goes on where it stopped")
    } else {
        error.hint("run the same command again when the cause is gone, it goes on where it stopped")
    }
}
