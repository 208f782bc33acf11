//! After the pass: what changed meanwhile, further names of files, and the folders' own modes and times,
//! deepest first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::plan::{self, OWN, Skipped};
use super::record::{Class, Done, Record};
use super::tally::Tally;
use super::transfer::{Job, Transfer, by_depth, write_error};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Entry, FileKind, Folder, Meta, Tree, Xattrs};

/// Why an entry that was seen is not in the home.
pub(super) const GONE: &str = "went away meanwhile";

/// Why an entry that was copied is not in the home as it was seen last.
const OTHER_KIND: &str = "was a file, a link and a folder in turn while it was copied";

/// How often the source is looked at again. A file that still changes then is reported.
const SWEEPS: usize = 2;

/// Gives hard-linked files their further names.
pub(super) fn link_names(transfer: &Transfer, tally: &mut Tally) -> Result<()> {
    for (path, first) in std::mem::take(&mut tally.further_names) {
        let fail = |e| write_error("the name", &transfer.path(&path), e);
        let (first_dir, first_name) = open_parent(transfer.dest, &first).map_err(fail)?;
        let Some(there) = first_dir.find(first_name).map_err(fail)? else {
            // The file itself was skipped, and so are its names.
            tally.skipped.push(Skipped::failed(
                path.clone(),
                format!(
                    "is the same file as {}, which was skipped",
                    human::path(&first)
                ),
            ));
            continue;
        };
        let (dir, name) = open_parent(transfer.dest, &path).map_err(fail)?;
        match dir.find(name).map_err(fail)? {
            Some(meta) if meta.identity() == there.identity() => {}
            Some(_) => {
                let rel = path.parent().unwrap_or(Path::new(""));
                transfer.to_trash(&dir, rel, name)?;
                dir.hard_link(&first_dir, first_name, name).map_err(fail)?;
            }
            None => dir.hard_link(&first_dir, first_name, name).map_err(fail)?,
        }
        tally.hard_links += 1;
        transfer.record_file(&Done::other(&path, Class::Linked, &there))?;
    }
    tally.warnings.extend(transfer.take_notes());
    Ok(())
}

fn open_parent<'p>(root: &Dir, path: &'p Path) -> std::io::Result<(Dir, &'p OsStr)> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok((
        root.open_beneath(path.parent().unwrap_or(Path::new("")))?,
        name,
    ))
}

/// The source after all looks at it.
pub(super) struct Swept {
    /// Every folder that was seen, in its last state, sorted by path.
    pub folders: Vec<Folder>,
    /// How many entries there are in these folders.
    pub entries: u64,
}

/// Looks at the source again and copies what changed, until it holds still or [`SWEEPS`] are over. `known` is the source
/// as it was seen last.
pub(super) fn sweep(
    job: &Job,
    mut known: Tree,
    record: &mut Record,
    tally: &mut Tally,
) -> Result<Swept> {
    let (plan, ctx) = (job.plan, job.ctx);
    let mut changed_meanwhile = false;
    // What is named after the last count.
    let (mut late, mut fresh) = (0, Tally::default());
    for round in 0..=SWEEPS {
        note_later_states(&mut known, tally);
        let now = plan::walk_source(&plan.source, &plan.settings, ctx)?;
        let changed = changed(&known, &now);
        if changed.is_empty() {
            break;
        }
        if round == SWEEPS {
            late = report_restless(&changed, &known, &mut fresh);
            break;
        }
        changed_meanwhile = true;
        record.reread()?;
        for (path, _) in paths_of(&changed) {
            tally.discard(&path);
        }
        let again = Transfer::new(job, record)?
            .among(&now.folders)
            .run(&changed)?;
        tally.merge(again);
        known = now;
    }
    if changed_meanwhile {
        record.reread()?;
        let transfer = Transfer::new(job, record)?;
        *tally = recount(&transfer, &known, record, std::mem::take(tally));
    }
    tally.merge(fresh);
    let folders = &known.folders;
    let entries = late + folders.iter().map(|f| f.entries.len()).sum::<usize>();
    let unlisted = folders
        .iter()
        .flat_map(|f| f.unreadable.iter().filter(|(p, _)| *p != f.rel));
    Ok(Swept {
        entries: (entries + unlisted.count()) as u64,
        folders: known.folders,
    })
}

/// Files that changed while they were read were copied in a later state than the plan saw. One that never held
/// still was copied in no state at all, and is copied again.
fn note_later_states(known: &mut Tree, tally: &mut Tally) {
    for (path, meta) in std::mem::take(&mut tally.later_states) {
        let (parent, name) = split(&path);
        if tally.restless.contains(&path) {
            continue;
        }
        if let Some(at) = place(known, parent)
            && let folder = &mut known.folders[at]
            && let Some(entry) = folder.entries.iter_mut().find(|e| e.name == name)
        {
            entry.meta = meta;
        }
    }
}

fn split(path: &Path) -> (&Path, &OsStr) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default(),
    )
}

/// The place of a folder in a tree.
fn place(known: &Tree, rel: &Path) -> Option<usize> {
    let of = |folder: &Folder| folder.rel.as_path().cmp(rel);
    known.folders.binary_search_by(of).ok()
}

fn find<'k>(known: &'k Tree, path: &Path) -> Option<&'k Meta> {
    let (parent, name) = split(path);
    let entries = &known.folders[place(known, parent)?].entries;
    let at = entries
        .binary_search_by(|e| e.name.as_os_str().cmp(name))
        .ok()?;
    Some(&entries[at].meta)
}

fn paths_of(folders: &[Folder]) -> impl Iterator<Item = (PathBuf, &Entry)> {
    folders
        .iter()
        .flat_map(|f| f.entries.iter().map(|e| (f.rel.join(&e.name), e)))
}

/// Counts everything anew, from what was seen last and from the record: after a source has changed, what was
/// counted on the way may speak of entries that are something else by now.
fn recount(transfer: &Transfer, known: &Tree, record: &Record, old: Tally) -> Tally {
    let mut tally = Tally {
        kept: old.kept,
        restless: old.restless,
        warnings: old.warnings,
        defects: old.defects,
        further_names: old.further_names,
        ..Tally::default()
    };
    // What was one more name of a file may be a link or a folder by now.
    let is_file = |meta: &Meta| meta.kind == FileKind::File;
    tally
        .further_names
        .retain(|(path, _)| find(known, path).is_some_and(is_file));
    let further: BTreeSet<PathBuf> = tally
        .further_names
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    let mut skipped: BTreeMap<PathBuf, Skipped> = old
        .skipped
        .into_iter()
        .map(|s| (s.path.0.clone(), s))
        .collect();
    for folder in &known.folders {
        for entry in &folder.entries {
            let path = folder.rel.join(&entry.name);
            if entry.meta.kind == FileKind::Folder || further.contains(&path) {
                // Folders are counted when they are dressed, further names when they are made.
            } else if let Some(skipped) = skipped.remove(&path) {
                tally.skipped.push(skipped);
            } else if entry.meta.kind == FileKind::Symlink {
                recount_link(transfer, path, &mut tally);
            } else if let Some(done) = record.file(&path).filter(|done| done.is_copy()) {
                // What an earlier look had copied may have made way for what a later one saw.
                match is_there(transfer, &path, FileKind::File) {
                    true => tally.add(&path, done),
                    false => tally.skipped.push(Skipped::failed(path, OTHER_KIND)),
                }
            } else {
                tally.skipped.push(Skipped::by_design(path, GONE));
            }
        }
    }
    tally
}

/// Whether the home has something of that kind under the name.
fn is_there(transfer: &Transfer, path: &Path, kind: FileKind) -> bool {
    let (parent, name) = split(path);
    let parent = transfer.dest.open_beneath(parent);
    let found = parent.and_then(|dir| dir.find(name));
    matches!(found, Ok(Some(meta)) if meta.kind == kind)
}

fn recount_link(transfer: &Transfer, path: PathBuf, tally: &mut Tally) {
    let (parent, name) = split(&path);
    let source = transfer.plan.source.open_beneath(parent);
    match source.and_then(|dir| dir.read_link(name)) {
        Ok(_) if !is_there(transfer, &path, FileKind::Symlink) => {
            tally.skipped.push(Skipped::failed(path, OTHER_KIND));
        }
        Ok(target) => {
            let mapping = transfer
                .rewriter
                .link_target(&target)
                .map(|(mapping, _)| mapping);
            tally.add_link(mapping);
        }
        Err(_) => tally.skipped.push(Skipped::by_design(path, GONE)),
    }
}

/// The folders of `now` with only those entries that are new or in another state than `known`.
fn changed(known: &Tree, now: &Tree) -> Vec<Folder> {
    let mut changed = Vec::new();
    for folder in &now.folders {
        let before = place(known, &folder.rel).map_or(&[][..], |at| &known.folders[at].entries);
        let is_known = |entry: &Entry| {
            let at = before.binary_search_by(|e| e.name.cmp(&entry.name));
            at.is_ok_and(|at| match entry.meta.kind {
                FileKind::Folder => before[at].meta.kind == FileKind::Folder,
                _ => before[at].meta.same_state(&entry.meta),
            })
        };
        let entries: Vec<Entry> = folder
            .entries
            .iter()
            .filter(|e| !is_known(e))
            .cloned()
            .collect();
        if !entries.is_empty() {
            changed.push(Folder {
                rel: folder.rel.clone(),
                meta: folder.meta,
                entries,
                unreadable: Vec::new(),
            });
        }
    }
    changed
}

/// What came up in the last look is beyond what was copied; what changed in it is named as it is. Returns how
/// many came up.
fn report_restless(changed: &[Folder], known: &Tree, tally: &mut Tally) -> usize {
    let mut late = 0;
    for (path, _) in paths_of(changed) {
        if find(known, &path).is_none() {
            tally.skipped.push(Skipped::failed(
                path,
                "appeared after everything was copied",
            ));
            late += 1;
        } else {
            tally.restless.push(path);
        }
    }
    late
}

/// Gives every folder the mode, owner, attributes and times of its source, deepest first: a folder without
/// write permission could not be filled any more.
pub(super) fn dress_folders(
    transfer: &Transfer,
    folders: &[Folder],
    tally: &mut Tally,
) -> Result<()> {
    for level in by_depth(folders).into_iter().rev() {
        let warnings: Vec<Option<String>> = level
            .par_iter()
            .map(|folder| dress_folder(transfer, folder))
            .collect::<Result<_>>()?;
        tally.warnings.extend(warnings.into_iter().flatten());
    }
    let mut lines = Vec::new();
    for folder in folders {
        let is_root = folder.rel.as_os_str().is_empty();
        if !is_root {
            // Writing a line to memory does not fail.
            let line = Done::other(&folder.rel, Class::Folder, &folder.meta);
            let _ = serde_json::to_writer(&mut lines, &line);
            lines.push(b'\n');
        }
        let unlisted = folder
            .unreadable
            .iter()
            .any(|(path, _)| *path == folder.rel);
        tally.folders += u64::from(!is_root && !unlisted);
        for (path, why) in &folder.unreadable {
            tally.skipped.push(Skipped::failed(
                path.clone(),
                format!("can not be read: {why}"),
            ));
        }
    }
    transfer.append(&lines, &[])
}

/// Returns a warning when an attribute could not be kept.
fn dress_folder(transfer: &Transfer, folder: &Folder) -> Result<Option<String>> {
    let is_root = folder.rel.as_os_str().is_empty();
    let fail = |e| write_error("the folder", &transfer.path(&folder.rel), e);
    let dest = transfer.dest.open_beneath(&folder.rel).map_err(fail)?;
    let mut warning = None;
    if let Ok(attributes) = transfer
        .plan
        .source
        .open_beneath(&folder.rel)
        .and_then(Xattrs::of)
        && let Err((name, error)) = attributes.apply(&dest)
    {
        warning = Some(format!(
            "{}: the attribute {} could not be kept: {}",
            human::path(&folder.rel),
            human::escape(&name),
            human::io(&error)
        ));
    }
    if let Some((uid, gid)) = transfer
        .owner_of(&folder.meta)
        .filter(|ids| *ids != transfer.ids)
    {
        dest.set_owner(uid, gid).map_err(fail)?;
    }
    // The home itself is its owner's alone, whatever the sync drive had made of it.
    dest.set_mode(if is_root { 0o700 } else { folder.meta.mode })
        .map_err(fail)?;
    dest.set_time(folder.meta.mtime).map_err(fail)?;
    Ok(warning)
}

/// Compares names and kinds of the home with the source: each entry must be there, or be among those that
/// were skipped.
pub(super) fn all_there(folders: &[Folder], home: &Tree, tally: &Tally) -> Result<()> {
    let here: BTreeMap<&Path, &Folder> =
        home.folders.iter().map(|f| (f.rel.as_path(), f)).collect();
    let skipped: BTreeSet<&Path> = tally.skipped.iter().map(|s| &*s.path).collect();
    for folder in folders {
        let here = here
            .get(folder.rel.as_path())
            .map_or(&[][..], |f| &f.entries);
        for entry in &folder.entries {
            let at = here.binary_search_by(|e| e.name.cmp(&entry.name));
            if at.is_ok_and(|at| here[at].meta.kind == entry.meta.kind) {
                continue;
            }
            let path = folder.rel.join(&entry.name);
            if !skipped.contains(path.as_path()) {
                return Err(
                    Error::failed("was copied, and is not in the home any more:")
                        .at(&path)
                        .hint(
                            "something changes the new home: end it and run the same command again",
                        ),
                );
            }
        }
    }
    Ok(())
}

/// The new home, without the program's own folder.
pub(super) fn walk_home(dest: &Dir, ctx: &Context) -> Result<Tree> {
    let own = |rel: &Path, entry: &Entry| rel.as_os_str().is_empty() && entry.name == OWN;
    disk::walk(dest, &own, ctx.stop)
}

/// Removes what a run that was killed between two calls has left under a temporary name: it is complete under
/// that name or nowhere, and is copied again.
pub(super) fn clear_temporary(dest: &Dir, ctx: &Context) -> Result<()> {
    let tree = walk_home(dest, ctx)?;
    let temporary = |entry: &Entry| {
        let name = entry.name.as_encoded_bytes();
        entry.meta.kind == FileKind::File && name.starts_with(disk::TEMPORARY_PREFIX.as_bytes())
    };
    for folder in &tree.folders {
        for entry in folder.entries.iter().filter(|e| temporary(e)) {
            let removed = dest
                .open_beneath(&folder.rel)
                .and_then(|dir| dir.unlink(&entry.name));
            removed.map_err(|e| Error::io("can not remove", folder.rel.join(&entry.name), e))?;
        }
    }
    Ok(())
}
