//! The original beside the record of its migration: what was there then, and is missing or another one now.
//!
//! A drive that is not mounted, or whose client has swapped files for placeholders, packs without a flaw. Only the
//! record knows what should be in the pack. A file that was rewritten is sent through the same rewriting again, for the
//! record holds the digest of the copy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Buffers, CopyError, Dir, FileKind, Meta, Tree};
use crate::migrate::plan::{self, rewriter};
use crate::migrate::record::{Class, Done, Record};
use crate::migrate::rewriting::Rewriting;
use crate::migrate::settle::GONE;
use crate::migrate::{Difference, DifferenceKind};
use crate::pack::Manifest;
use crate::paths::Rewriter;

/// Refuses an original that holds nothing of what was migrated: so looks a drive that is not mounted.
///
/// # Errors
/// Just that; a record that does not say what was migrated.
pub(super) fn refuse_emptied(record: &Record, dir: &Dir, ctx: &Context) -> Result<()> {
    let source = &record.settings().source;
    let refuse = |what: &str| {
        Error::failed(what).at(source).hint(
            "is the disk mounted, and has the sync client downloaded everything? Nothing was packed",
        )
    };
    if !disk::is_folder(&source.join("sessions")) {
        return Err(refuse("the original has no folder `sessions` any more:"));
    }
    let mut copies = record.files().filter(|(_, done)| done.is_copy()).peekable();
    if copies.peek().is_none() {
        return match record.totals().files {
            0 => Ok(()),
            _ => Err(
                Error::failed("the record does not say which files were migrated:")
                    .at(record.folder())
                    .hint("without its files.jsonl nobody can tell whether the original is still whole"),
            ),
        };
    }
    let tree = plan::walk_source(dir, record.settings(), ctx)?;
    let now = plan::by_path(&tree);
    match copies.any(|(path, _)| now.get(path).is_some_and(|m| m.kind == FileKind::File)) {
        true => Ok(()),
        false => Err(refuse("not one file that was migrated is in the original:")),
    }
}

/// What the migration has copied, and is missing in the original or another one now, by path.
///
/// With the manifest of a pack, the digests in it stand for the files that were copied as they were. Without, a file in
/// the very state that was recorded is taken for the same.
///
/// # Errors
/// An original that can not be walked, and interruption.
pub(super) fn differences(
    record: &Record,
    home: &Path,
    dir: &Dir,
    packed: Option<&Manifest>,
    ctx: &Context,
) -> Result<Vec<Difference>> {
    let tree = plan::walk_source(dir, record.settings(), ctx)?;
    let meant = left_by_design(record)?;
    let recorded: Vec<(&PathBuf, &Done)> = record
        .files()
        .filter(|(path, _)| !meant.contains(*path))
        .collect();
    let members = packed.map_or(&[][..], |manifest| &manifest.members);
    let digests = members.iter().filter_map(|member| {
        let digest = member.blake3.as_deref()?;
        Some((&*member.path, digest))
    });
    let now = plan::by_path(&tree);
    let copies = || record.files().filter(|(_, done)| done.is_copy());
    let look = Look {
        rewriter: rewriter(record.settings(), &tree)?,
        copied: copies()
            .filter_map(|(path, _)| Some(now.get(path)?.identity()))
            .collect(),
        all: copies()
            .filter_map(|(_, done)| Some(done.digest()?.to_hex().to_string()))
            .collect(),
        now,
        unreadable: unreadable(&tree),
        home,
        dir,
        digests: packed.map(|_| digests.collect()),
        ctx,
    };
    let total = Total {
        items: recorded.len() as u64,
        bytes: record.totals().bytes,
    };
    ctx.progress
        .stage("Comparing with what was migrated", total);
    let found: Vec<Option<Difference>> = recorded
        .par_iter()
        .map_init(Buffers::new, |buffers, (path, done)| {
            ctx.stop.check()?;
            let verdict = look.at(path, done, buffers)?;
            ctx.progress.advance(1, done.size);
            Ok(verdict.map(|(kind, detail)| Difference {
                path: (*path).clone().into(),
                kind,
                detail,
            }))
        })
        .collect::<Result<_>>()?;
    ctx.progress.finish();
    let mut found: Vec<Difference> = found.into_iter().flatten().collect();
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    Ok(found)
}

/// What is not missed, though a line says that it was read. The log or journal of a database is: without it, the
/// database in the original is another one.
fn left_by_design(record: &Record) -> Result<HashSet<PathBuf>> {
    let skipped = record.outcome()?.map(|o| o.skipped).unwrap_or_default();
    let is_log = |path: &Path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.ends_with(b"-wal") || name.ends_with(b"-journal")
    };
    let meant = skipped
        .into_iter()
        .filter(|s| !s.failed && (s.reason == GONE || !is_log(&s.path)));
    Ok(meant.map(|s| s.path.0).collect())
}

fn unreadable(tree: &Tree) -> Vec<PathBuf> {
    let folders = tree.folders.iter();
    folders
        .flat_map(|folder| folder.unreadable.iter().map(|(path, _)| path.clone()))
        .collect()
}

struct Look<'a> {
    rewriter: Rewriter,
    now: BTreeMap<PathBuf, Meta>,
    /// The files that have a line of their own, and the digests of all copies.
    copied: HashSet<(u64, u64)>,
    all: HashSet<String>,
    /// What can not be looked into now.
    unreadable: Vec<PathBuf>,
    home: &'a Path,
    dir: &'a Dir,
    /// What was packed, where something was.
    digests: Option<HashMap<&'a Path, &'a str>>,
    ctx: &'a Context<'a>,
}

type Verdict = Option<(DifferenceKind, String)>;

impl Look<'_> {
    fn at(&self, path: &Path, done: &Done, buffers: &mut Buffers) -> Result<Verdict> {
        let Some(now) = self.now.get(path) else {
            return Ok(Some(self.missing(path)));
        };
        let is_kind = match done.class {
            Class::Copied | Class::Rewritten => now.kind == FileKind::File,
            Class::Linked => matches!(now.kind, FileKind::File | FileKind::Symlink),
            Class::Folder => now.kind == FileKind::Folder,
        };
        if !is_kind {
            let what = format!("it is {} now", now.kind.described());
            return Ok(Some((DifferenceKind::ChangedInSource, what)));
        }
        let is_as_recorded = done.source == now.into();
        let is_same = match done.class {
            Class::Folder => true,
            // Where it points is not on record, only how long that is.
            Class::Linked if now.kind == FileKind::Symlink => done.source.size() == now.size,
            // What SQL has rewritten can not be had by rewriting it a second time.
            Class::Rewritten if done.database => is_as_recorded || done.source.resembles(now),
            _ if self.digests.is_none() && is_as_recorded => true,
            _ => match self.same_content(path, done, now, buffers) {
                Ok(is_same) => is_same,
                Err(CopyError::Stopped) => return self.ctx.stop.check().map(|()| None),
                Err(CopyError::Read(error) | CopyError::Write(error)) => {
                    return Ok(Some((DifferenceKind::Unreadable, human::io(&error))));
                }
            },
        };
        Ok((!is_same).then(|| {
            let what = match now.kind {
                FileKind::File => format!(
                    "other content than was migrated, {} now",
                    human::size(now.size)
                ),
                _ => "points elsewhere than what was migrated".to_owned(),
            };
            (DifferenceKind::ChangedInSource, what)
        }))
    }

    fn missing(&self, path: &Path) -> (DifferenceKind, String) {
        let around = self.unreadable.iter().find(|r| path.starts_with(r));
        if let Some(around) = around {
            let what = format!("{} can not be read", human::path(around));
            return (DifferenceKind::Unreadable, what);
        }
        let what = match disk::exists(&self.home.join(path)) {
            true => "the home still has it",
            false => "is on neither side any more",
        };
        (DifferenceKind::MissingInSource, what.to_owned())
    }

    fn same_content(
        &self,
        path: &Path,
        done: &Done,
        now: &Meta,
        buffers: &mut Buffers,
    ) -> Result<bool, CopyError> {
        // A further name of a file that was copied: that is compared under its own name.
        if done.class == Class::Linked && self.copied.contains(&now.identity()) {
            return Ok(true);
        }
        if done.class == Class::Copied
            && let Some(packed) = self.digests.as_ref().and_then(|d| d.get(path))
            && let Some(recorded) = done.digest()
        {
            return Ok(*packed == crate::pack::short_digest(&recorded));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = self.dir.open_beneath(folder).map_err(CopyError::Read)?;
        let name = path.file_name().unwrap_or_default();
        let file = folder.open_file(name).map_err(CopyError::Read)?;
        disk::drop_cache(&file);
        let mut rewriting = Rewriting::new(&self.rewriter, path, Vec::new(), &|_| {});
        let stop = self.ctx.stop;
        let (size, digest) = disk::digest_of_copy(&file, now, &mut rewriting, buffers, stop)?;
        Ok(match done.class {
            // One that is a file of its own now should be what one of the files is whose name it was. Its line has the
            // length of that copy, and not which one it is.
            Class::Linked => {
                size == done.source.size() && self.all.contains(digest.to_hex().as_str())
            }
            _ => Some(digest) == done.digest(),
        })
    }
}
