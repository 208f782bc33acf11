//! Comparing home and source again, from the disk, file by file.
//!
//! Each file of the source is read and sent through the same rewriting, which gives the digest that the
//! home's file should have. The record tells which side has changed since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::plan::{self, Settings, rewriter};
use super::record::{Class, Done, Record};
use super::rewriting::Rewriting;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result, Total, human};
use crate::disk::{self, Buffers, CopyError, Dir, Entry, FileKind, Tree, Xattrs};
use crate::home::Home;
use crate::paths::Rewriter;

/// Whether a path is one where people and agents work; the others are what the program itself keeps.
fn is_content(path: &Path) -> bool {
    path.starts_with("sessions") || path.starts_with("agents") || path.starts_with("archive")
}

/// The index is kept in agreement with the disk, and so is not what was migrated.
const INDEX: &str = "index.json";

/// What came of the comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// Where the home came from.
    #[serde(with = "crate::base::wire::exact_path")]
    pub source: PathBuf,
    /// When it was migrated.
    pub migrated: jiff::Timestamp,
    /// Entries compared.
    pub compared: u64,
    /// Of these: as they should be.
    pub equal: u64,
    /// The others, by path.
    pub differences: Vec<Difference>,
    /// Files and links in `sessions/`, `agents/` and `archive/` of the home that the source never had.
    pub new_in_home: u64,
}

impl Verified {
    /// 4 when something differs.
    pub fn exit(&self) -> Exit {
        match self.differences.is_empty() {
            true => Exit::Done,
            false => Exit::Problems,
        }
    }
}

/// An entry that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Relative to both folders.
    #[serde(flatten)]
    pub path: WirePath,
    /// In which way.
    pub kind: DifferenceKind,
    /// More about it, for a person.
    pub detail: String,
}

/// In which way an entry differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// Its content changed while its time and length did not: the disk, not a program, has changed it.
    Damaged,
    /// It is not in the home any more.
    MissingInHome,
    /// It could not be read on one side.
    Unreadable,
    /// It was changed in the home since the migration.
    ChangedInHome,
    /// It was changed in the source since the migration.
    ChangedInSource,
    /// It was added to the source since the migration.
    NewInSource,
    /// It is not in the source any more.
    MissingInSource,
}

impl DifferenceKind {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DifferenceKind::Damaged => "damaged",
            DifferenceKind::MissingInHome => "missing-in-home",
            DifferenceKind::Unreadable => "unreadable",
            DifferenceKind::ChangedInHome => "changed-in-home",
            DifferenceKind::ChangedInSource => "changed-in-source",
            DifferenceKind::NewInSource => "new-in-source",
            DifferenceKind::MissingInSource => "missing-in-source",
        }
    }
}

/// The newest migration of a home.
///
/// # Errors
/// When there is none.
pub fn newest(home: &Home) -> Result<Record> {
    Record::newest(&home.own())?.ok_or_else(|| {
        Error::failed("was not made by a migration:")
            .at(home.root())
            .hint("wbhome migrate SRC DEST moves a home off a sync drive")
    })
}

/// Compares a home with the source that it was migrated from.
///
/// # Errors
/// When the source or the home can not be opened, or the migration was not finished.
pub fn verify(home: &Home, ctx: &Context) -> Result<Verified> {
    let record = newest(home)?;
    if !record.is_finished() {
        return Err(Error::failed("the migration was stopped before its end:")
            .at(record.folder())
            .hint("run the same `wbhome migrate SRC DEST` again, it goes on where it stopped"));
    }
    let settings = record.settings();
    let source = Dir::open(&settings.source).map_err(|e| {
        Error::io("can not open the source", &settings.source, e)
            .hint("is the sync drive mounted? Once the original is gone, there is nothing to compare with")
    })?;
    let dest =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    disk::sync_filesystem(&dest).map_err(|e| Error::io("can not sync", home.root(), e))?;
    ctx.progress.stage("Reading both sides", Total::default());
    let (here, there) = (
        super::settle::walk_home(&dest, ctx)?,
        plan::walk_source(&source, settings, ctx)?,
    );
    let total = Total {
        items: record.totals().files,
        bytes: record.totals().bytes,
    };
    ctx.progress.stage("Comparing", total);
    let comparison = Comparison {
        rewriter: rewriter(settings, &there)?,
        record: &record,
        source: &source,
        dest: &dest,
        here: plan::by_path(&here),
        ctx,
    };
    let outcome = comparison.run(&there, settings);
    ctx.progress.finish();
    outcome
}

struct Comparison<'a> {
    rewriter: Rewriter,
    record: &'a Record,
    source: &'a Dir,
    dest: &'a Dir,
    here: BTreeMap<PathBuf, disk::Meta>,
    ctx: &'a Context<'a>,
}

type Verdict = Option<(DifferenceKind, String)>;

impl Comparison<'_> {
    fn run(&self, there: &Tree, settings: &Settings) -> Result<Verified> {
        let skipped = self.skipped()?;
        let entries: Vec<(PathBuf, &Entry)> = there
            .entries()
            .filter(|(path, _)| !skipped.contains(path) && path != Path::new(INDEX))
            .collect();
        let verdicts: Vec<(PathBuf, Verdict)> = entries
            .par_iter()
            .map_init(Buffers::new, |buffers, (path, entry)| {
                self.ctx.stop.check()?;
                let verdict = self.compare(path, entry, buffers)?;
                self.ctx.progress.advance(
                    u64::from(entry.meta.kind != FileKind::Folder),
                    entry.meta.size,
                );
                Ok((path.clone(), verdict))
            })
            .collect::<Result<_>>()?;
        let compared = verdicts.len() as u64;
        let mut differences: Vec<Difference> = verdicts
            .into_iter()
            .filter_map(|(path, verdict)| {
                verdict.map(|(kind, detail)| Difference {
                    path: path.into(),
                    kind,
                    detail,
                })
            })
            .collect();
        let in_source: std::collections::HashSet<&PathBuf> =
            entries.iter().map(|(p, _)| p).collect();
        let mut gone = 0;
        for (path, _) in self.record.files() {
            if !in_source.contains(path) && !skipped.contains(path) && path != Path::new(INDEX) {
                let (kind, detail) = match self.here.contains_key(path) {
                    true => (DifferenceKind::MissingInSource, "the home still has it"),
                    false => (DifferenceKind::MissingInHome, "is on neither side any more"),
                };
                differences.push(Difference {
                    path: path.clone().into(),
                    kind,
                    detail: detail.into(),
                });
                gone += 1;
            }
        }
        differences.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
        let known = |path: &PathBuf| in_source.contains(path) || self.record.file(path).is_some();
        let new_in_home = self
            .here
            .iter()
            .filter(|(p, m)| m.kind != FileKind::Folder && is_content(p) && !known(p))
            .count();
        Ok(Verified {
            source: settings.source.clone(),
            migrated: self.record.started(),
            compared: compared + gone,
            equal: compared + gone - differences.len() as u64,
            differences,
            new_in_home: new_in_home as u64,
        })
    }

    /// What the migration had left behind is not missed.
    fn skipped(&self) -> Result<std::collections::HashSet<PathBuf>> {
        let outcome = self.record.outcome()?;
        let skipped = outcome.map(|o| o.skipped).unwrap_or_default();
        // What could not be read then is missed until it is copied.
        let meant = skipped.into_iter().filter(|s| !s.failed);
        Ok(meant.map(|s| s.path.0).collect())
    }

    fn compare(&self, path: &Path, entry: &Entry, buffers: &mut Buffers) -> Result<Verdict> {
        let recorded = self.record.file(path);
        let Some(here) = self.here.get(path) else {
            let is_new = recorded.is_none();
            return Ok(Some(match is_new {
                true => (
                    DifferenceKind::NewInSource,
                    "added since the migration, or not copied then".into(),
                ),
                false => (
                    DifferenceKind::MissingInHome,
                    "removed since the migration".into(),
                ),
            }));
        };
        if here.kind != entry.meta.kind {
            let what = format!(
                "{} there, {} here",
                entry.meta.kind.described(),
                here.kind.described()
            );
            return Ok(Some((DifferenceKind::ChangedInHome, what)));
        }
        let (mode, was) = (here.mode, entry.meta.mode);
        if mode != was && here.kind != FileKind::Symlink {
            let what = format!("its mode is {mode:04o}, in the source {was:04o}");
            return Ok(Some((DifferenceKind::ChangedInHome, what)));
        }
        let compared = match entry.meta.kind {
            FileKind::File => self.compare_files(path, entry, here, recorded, buffers),
            FileKind::Symlink => self.compare_links(path),
            _ => return Ok(None),
        };
        match compared {
            Err(CopyError::Stopped) => self.ctx.stop.check().map(|()| None),
            Err(CopyError::Read(e) | CopyError::Write(e)) => {
                Ok(Some((DifferenceKind::Unreadable, human::io(&e))))
            }
            Ok(verdict) => Ok(verdict),
        }
    }

    fn compare_files(
        &self,
        path: &Path,
        entry: &Entry,
        here: &disk::Meta,
        recorded: Option<&Done>,
        buffers: &mut Buffers,
    ) -> Result<Verdict, CopyError> {
        let (source_dir, dest_dir, name) = self.open(path)?;
        let found = dest_dir.open_file(name).map_err(CopyError::Read)?;
        disk::drop_cache(&found);
        drop(found);
        let found = disk::check_file(&dest_dir, name, buffers, self.ctx.stop, &mut |_, _| {})?;
        let source_as_recorded = recorded.is_some_and(|done| done.source == (&entry.meta).into());
        // A further name of a file is that file, whatever it holds.
        let is_further_name =
            recorded.is_some_and(|done| done.class == Class::Linked) && here.nlink > 1;
        // A database is not rewritten a second time: its source is judged by its state alone.
        let expected = match recorded {
            Some(_) if is_further_name => Some(found.digest),
            Some(done) if done.database && done.class == Class::Rewritten && source_as_recorded => {
                done.digest()
            }
            _ => Some(self.expected(path, entry, &source_dir, name, buffers)?),
        };
        if Some(found.digest) == expected {
            return Ok(self.compare_attributes(&source_dir, &dest_dir, name));
        }
        let recorded_digest = recorded.and_then(Done::digest);
        Ok(Some(if recorded_digest == Some(found.digest) {
            (
                DifferenceKind::ChangedInSource,
                "the home has it as it was migrated".into(),
            )
        } else if source_as_recorded
            && here.mtime == entry.meta.mtime
            && recorded.map(|d| d.size) == Some(here.size)
        {
            (
                DifferenceKind::Damaged,
                "other content, but the same time and length: restore it from the source".into(),
            )
        } else {
            (
                DifferenceKind::ChangedInHome,
                "changed since the migration".into(),
            )
        }))
    }

    /// Extended attributes and access lists. What can not be asked for on one side is no difference.
    fn compare_attributes(&self, source: &Dir, dest: &Dir, name: &std::ffi::OsStr) -> Verdict {
        let of = |dir: &Dir| dir.open_file(name).and_then(Xattrs::of).ok();
        let (there, here) = (of(source)?, of(dest)?);
        let what = "its extended attributes or access list are others".to_owned();
        (there != here).then_some((DifferenceKind::ChangedInHome, what))
    }

    fn expected(
        &self,
        path: &Path,
        entry: &Entry,
        dir: &Dir,
        name: &std::ffi::OsStr,
        buffers: &mut Buffers,
    ) -> Result<disk::Digest, CopyError> {
        let file = dir.open_file(name).map_err(CopyError::Read)?;
        disk::drop_cache(&file);
        let mut rewriting = Rewriting::new(&self.rewriter, path, Vec::new(), &|_| {});
        let digested =
            disk::digest_of_copy(&file, &entry.meta, &mut rewriting, buffers, self.ctx.stop)?;
        Ok(digested.1)
    }

    fn compare_links(&self, path: &Path) -> Result<Verdict, CopyError> {
        let (source_dir, dest_dir, name) = self.open(path)?;
        let old = source_dir.read_link(name).map_err(CopyError::Read)?;
        let found = dest_dir.read_link(name).map_err(CopyError::Read)?;
        let expected = self.rewriter.link_target(&old).map_or(old, |(_, new)| new);
        Ok((found != expected).then(|| {
            (
                DifferenceKind::ChangedInHome,
                format!("points to {}", human::bytes(&found)),
            )
        }))
    }

    fn open<'p>(&self, path: &'p Path) -> Result<(Dir, Dir, &'p std::ffi::OsStr), CopyError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let source = self.source.open_beneath(folder).map_err(CopyError::Read)?;
        let dest = self.dest.open_beneath(folder).map_err(CopyError::Read)?;
        Ok((source, dest, path.file_name().unwrap_or_default()))
    }
}
