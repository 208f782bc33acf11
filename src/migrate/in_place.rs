//! References changed where they stand, in a home or in the application's folder: each changed file is built
//! anew beside the old one, in a swap that replaces all of them at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rayon::prelude::*;

use super::plan::Skipped;
use super::record::Done;
use super::rewriting::{Rewriting, write_count, write_line};
use super::scan::references_in;
use super::tally::Tally;
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::{self, Buffers, CopyError, Dir, Entry, FileKind, Lines, Meta, Tree, Xattrs};
use crate::home::swap::Draft;
use crate::paths::database::{self, COMPANIONS};
use crate::paths::{Rewriter, Spelling};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// A folder whose files are rewritten.
pub(super) struct InPlace<'a> {
    pub draft: &'a Draft<'a>,
    /// Which of the draft's roots it is.
    pub root: usize,
    pub rewriter: &'a Rewriter,
    pub ctx: &'a Context<'a>,
    /// Every reference that is changed, a line each.
    references: Mutex<Lines>,
}

impl<'a> InPlace<'a> {
    pub fn new(
        draft: &'a Draft<'a>,
        root: usize,
        rewriter: &'a Rewriter,
        ctx: &'a Context<'a>,
    ) -> Result<Self> {
        let list = draft.folder().join(format!("references-{root}.jsonl"));
        Ok(InPlace {
            draft,
            root,
            rewriter,
            ctx,
            references: Mutex::new(
                Lines::open(&list).map_err(|e| Error::io("can not write", &list, e))?,
            ),
        })
    }

    fn dir(&self) -> &Dir {
        self.draft.dir(self.root)
    }

    /// Prepares the new form of every file and link that refers to what has moved. Databases are only listed.
    ///
    /// # Errors
    /// What can not be written; a file that does not hold still. What can not be read is in the tally.
    pub fn run(&self, tree: &Tree, covers: &(dyn Fn(&Path) -> bool + Sync)) -> Result<Tally> {
        let mut first_names: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
        let mut further: Vec<(PathBuf, Meta)> = Vec::new();
        let mut entries = Vec::new();
        for (path, entry) in tree.entries().filter(|(path, _)| covers(path)) {
            let meta = entry.meta;
            if meta.kind == FileKind::File && meta.nlink > 1 {
                if first_names.contains_key(&meta.identity()) {
                    further.push((path, meta));
                    continue;
                }
                first_names.insert(meta.identity(), path.clone());
            }
            entries.push((path, entry));
        }
        let built: Mutex<BTreeMap<PathBuf, String>> = Mutex::default();
        let mut tally = entries
            .par_iter()
            .map_init(Buffers::new, |buffers, (path, entry)| {
                self.ctx.stop.check()?;
                let mut tally = Tally::default();
                if let Some(name) = self.entry(path, entry, buffers, &mut tally)?
                    && entry.meta.nlink > 1
                    && let Ok(mut built) = built.lock()
                {
                    built.insert(path.clone(), name);
                }
                self.ctx.progress.advance(1, entry.meta.size);
                Ok(tally)
            })
            .try_reduce(Tally::default, |mut one, other| {
                one.merge(other);
                Ok(one)
            })?;
        let built = built.into_inner().unwrap_or_default();
        for (path, meta) in further {
            let first = first_names.get(&meta.identity());
            if let Some(name) = first.and_then(|first| built.get(first)) {
                self.draft.put_again(self.root, &path, name, &meta)?;
                tally.hard_links += 1;
            }
        }
        for folder in &tree.folders {
            for (path, why) in folder.unreadable.iter().filter(|(path, _)| covers(path)) {
                let why = format!("can not be read: {why}");
                tally.skipped.push(Skipped::failed(path.clone(), why));
            }
        }
        tally.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tally)
    }

    /// Returns the name under which the new form of a file waits, if it has one.
    fn entry(
        &self,
        path: &Path,
        entry: &Entry,
        buffers: &mut Buffers,
        tally: &mut Tally,
    ) -> Result<Option<String>> {
        match entry.meta.kind {
            FileKind::File => self.file(path, entry, buffers, tally),
            FileKind::Symlink => self.link(path, entry, tally).map(|()| None),
            FileKind::Folder => Ok(None),
            other => {
                let skipped = Skipped::by_design(path.to_path_buf(), other.described());
                tally.skipped.push(skipped);
                Ok(None)
            }
        }
    }

    fn link(&self, path: &Path, entry: &Entry, tally: &mut Tally) -> Result<()> {
        let folder = self.dir().open_beneath(parent(path));
        let target = match folder.and_then(|folder| folder.read_link(&entry.name)) {
            Ok(target) => target,
            Err(error) => {
                skip(path, &error, tally);
                return Ok(());
            }
        };
        let moved = self.rewriter.link_target(&target);
        tally.add_link(moved.as_ref().map(|(mapping, _)| *mapping));
        if let Some((mapping, target)) = moved {
            self.draft.put_link(self.root, path, &target, &entry.meta)?;
            let mut line = Vec::new();
            write_line(&mut line, path, (mapping, Spelling::Plain), [0]);
            self.append(&line)?;
        }
        Ok(())
    }

    fn file(
        &self,
        path: &Path,
        entry: &Entry,
        buffers: &mut Buffers,
        tally: &mut Tally,
    ) -> Result<Option<String>> {
        let seen = references_in(self.dir(), path, entry, self.rewriter, buffers, self.ctx);
        let Some(done) = seen else {
            self.ctx.stop.check()?;
            skip(path, &std::io::ErrorKind::PermissionDenied.into(), tally);
            return Ok(None);
        };
        if done.references.is_empty() {
            tally.add(path, &done);
            return Ok(None);
        }
        let mut meta = entry.meta;
        for _ in 0..ATTEMPTS {
            match self.build(path, &meta, buffers, done.clone())? {
                Built::Named(name, done) => {
                    tally.add(path, &done);
                    return Ok(Some(name));
                }
                Built::Changed(now) => meta = now,
            }
        }
        Err(Error::failed("does not hold still, somebody writes to it:")
            .at(path)
            .hint("nothing was changed; end whoever writes there and run it again"))
    }

    fn build(
        &self,
        path: &Path,
        meta: &Meta,
        buffers: &mut Buffers,
        mut done: Done,
    ) -> Result<Built> {
        let fail = |e| Error::io("can not build the new form of", path, e);
        let told = |error| match error {
            CopyError::Read(error) | CopyError::Write(error) => fail(error),
            CopyError::Stopped => Error::new(Kind::Interrupted, "interrupted"),
        };
        let folder = self.dir().open_beneath(parent(path)).map_err(fail)?;
        let file = folder
            .open_file(path.file_name().unwrap_or_default())
            .map_err(fail)?;
        let spill = |lines: &[u8]| {
            // The list is for a person to read; the file itself is what counts.
            let _ = self.append(lines);
        };
        let mut rewriting = Rewriting::new(self.rewriter, path, Vec::new(), &spill);
        let staging = self.draft.staging(self.root);
        let stop = self.ctx.stop;
        let (new, copied) =
            disk::copy_file(&file, meta, staging, &mut rewriting, buffers, stop).map_err(told)?;
        if !copied.source.same_state(meta) {
            return Ok(Built::Changed(copied.source));
        }
        let back = disk::check_open(new.file(), buffers, stop, &mut |_, _| {}).map_err(told)?;
        if back.digest != copied.digest {
            return Err(Error::failed("what was written reads back differently:")
                .at(path)
                .hint("nothing was changed; the disk or its driver is failing"));
        }
        if let Ok(attributes) = Xattrs::of(&file) {
            attributes
                .apply(new.file())
                .map_err(|(_, error)| fail(error))?;
        }
        let owner = disk::is_root().then_some((meta.uid, meta.gid));
        disk::dress_file(new.file(), owner, meta.mode, meta.mtime).map_err(fail)?;
        done.class = super::record::Class::Rewritten;
        let lines = rewriting.report(&mut done);
        self.append(&lines)?;
        let name = self.draft.put(self.root, path, new, &copied.digest, meta)?;
        Ok(Built::Named(name, done))
    }

    fn append(&self, lines: &[u8]) -> Result<()> {
        let Ok(mut references) = self.references.lock() else {
            return Err(Error::new(
                Kind::Bug,
                "a worker died while it wrote the record",
            ));
        };
        references
            .append(lines)
            .map_err(|e| Error::io("can not write the record in", self.draft.folder(), e))
    }

    /// Copies a database and what belongs to it into a workshop, lets `change` work on the copy, and prepares it
    /// to take the place of the old one when `change` says that anything changed.
    ///
    /// # Errors
    /// What can not be copied, and what `change` says.
    pub fn database<T>(
        &self,
        path: &Path,
        change: impl FnOnce(&Path) -> Result<(bool, T)>,
    ) -> Result<T> {
        let fail = |e| Error::io("can not copy the database", path, e);
        let name = path.file_name().unwrap_or_default();
        let from = self.dir().open_beneath(parent(path)).map_err(fail)?;
        let (place, workshop) = self.draft.workshop(self.root)?;
        let mut companions = Vec::new();
        let old = from.stat(name).map_err(fail)?;
        let copy = |name: &std::ffi::OsStr, new: &str| {
            disk::duplicate_as(
                &from,
                name,
                &workshop,
                std::ffi::OsStr::new(new),
                self.ctx.stop,
            )
        };
        copy(name, "database").map_err(fail)?;
        for suffix in COMPANIONS {
            let mut companion = name.to_owned();
            companion.push(suffix);
            let meta = from.find(&companion).map_err(fail)?;
            if suffix != "-shm" && meta.is_some() {
                copy(&companion, &format!("database{suffix}")).map_err(fail)?;
            }
            companions.push((parent(path).join(companion), meta));
        }
        let (changed, told) = change(&place.join("database"))?;
        if changed {
            let built = std::ffi::OsStr::new("database");
            let built = self
                .draft
                .put_worked(self.root, path, &workshop, built, &old)?;
            for (companion, meta) in companions {
                self.draft
                    .take(self.root, &companion, meta.as_ref(), &built)?;
            }
        }
        Ok(told)
    }

    /// Rewrites every text of a database that is in a home.
    ///
    /// # Errors
    /// As [`InPlace::database`]; a database that is not sound is told in the result.
    pub fn whole_database(
        &self,
        path: &Path,
        tally: &mut Tally,
    ) -> Result<super::outcome::Database> {
        let mut report = super::outcome::Database {
            path: path.to_path_buf().into(),
            references: 0,
            failed: false,
            notes: Vec::new(),
        };
        let rewritten = self.database(path, |copy| {
            Ok(match database::rewrite(copy, self.rewriter) {
                Ok((counts, notes)) => (!counts.is_empty(), Ok((counts, notes))),
                Err(error) => (false, Err(error)),
            })
        })?;
        match rewritten {
            Ok((counts, notes)) => {
                let mut lines = Vec::new();
                for ((mapping, spelling), n) in counts {
                    tally.count(mapping, spelling, n);
                    report.references += n;
                    write_count(&mut lines, path, (mapping, spelling), n);
                }
                report.notes = notes;
                self.append(&lines)?;
            }
            Err(error) => {
                report.failed = true;
                report.notes.push(format!(
                    "left as it is, its references could not be looked for: {}",
                    human::escape(&error.to_string())
                ));
            }
        }
        Ok(report)
    }
}

enum Built {
    /// The name under which it waits.
    Named(String, Done),
    /// It changed while it was read.
    Changed(Meta),
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn skip(path: &Path, error: &std::io::Error, tally: &mut Tally) {
    tally.skipped.push(match error.kind() {
        std::io::ErrorKind::NotFound => Skipped::by_design(path.to_path_buf(), super::settle::GONE),
        _ => Skipped::failed(
            path.to_path_buf(),
            format!("can not be read: {}", human::io(error)),
        ),
    });
}
