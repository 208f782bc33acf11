//! After the pass: further names of files, what changed meanwhile, databases, and the folders' own modes
//! and times, deepest first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::plan::{self, OWN, Plan, Skipped, by_path};
use super::record::Record;
use super::tally::Tally;
use super::transfer::{Transfer, write_error};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Entry, FileKind, Folder, Meta, Tree, Xattrs};
use crate::home::LockedHome;
use crate::paths::Rewriter;

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
    }
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
    /// Every entry that was seen.
    pub entries: u64,
}

/// Looks at the source again and copies what changed, until it holds still or [`SWEEPS`] are over.
pub(super) fn sweep(
    plan: &Plan,
    home: &LockedHome,
    dest: &Dir,
    rewriter: &Rewriter,
    record: &mut Record,
    tally: &mut Tally,
    ctx: &Context,
) -> Result<Swept> {
    let mut known = by_path(&plan.tree);
    let mut folders: BTreeMap<PathBuf, Folder> = plan
        .tree
        .folders
        .iter()
        .map(|f| (f.rel.clone(), f.clone()))
        .collect();
    for round in 0..=SWEEPS {
        for (path, meta) in std::mem::take(&mut tally.later_states) {
            known.insert(path, meta);
        }
        let now = plan::walk_source(&plan.source, &plan.settings, ctx)?;
        let changed = changed(&known, &now);
        if changed.is_empty() {
            break;
        }
        if round == SWEEPS {
            report_restless(&changed, &known, tally);
            break;
        }
        record.reread()?;
        for path in changed
            .iter()
            .flat_map(|f| f.entries.iter().map(|e| f.rel.join(&e.name)))
        {
            if let Some(done) = record.file(&path) {
                tally.forget(&path, done);
            }
            tally.skipped.retain(|s| *s.path != *path);
            tally.further_names.retain(|(p, _)| *p != path);
        }
        forget_links(&known, &changed, tally);
        let again = Transfer::new(plan, home, dest, rewriter, record, ctx)?.run(&changed)?;
        tally.merge(again);
        for folder in now.folders {
            for entry in &folder.entries {
                known.insert(folder.rel.join(&entry.name), entry.meta);
            }
            folders.insert(folder.rel.clone(), folder);
        }
    }
    record.reread()?;
    let unlisted = folders
        .values()
        .flat_map(|f| f.unreadable.iter().filter(|(p, _)| *p != f.rel))
        .count();
    Ok(Swept {
        entries: (known.len() + unlisted) as u64,
        folders: folders.into_values().collect(),
    })
}

/// A link that is made again was counted before.
fn forget_links(known: &BTreeMap<PathBuf, Meta>, changed: &[Folder], tally: &mut Tally) {
    for folder in changed {
        for entry in &folder.entries {
            let before = known.get(&folder.rel.join(&entry.name));
            if before.is_some_and(|m| m.kind == FileKind::Symlink) {
                // Which of the two it was does not matter for the sum; links rarely change.
                match tally.links_kept {
                    0 => tally.links_rewritten = tally.links_rewritten.saturating_sub(1),
                    n => tally.links_kept = n - 1,
                }
            }
        }
    }
}

/// The folders of `now` with only those entries that are new or in another state than `known`.
fn changed(known: &BTreeMap<PathBuf, Meta>, now: &Tree) -> Vec<Folder> {
    let is_known = |path: &Path, meta: &Meta| match known.get(path) {
        None => false,
        Some(before) if meta.kind == FileKind::Folder => before.kind == FileKind::Folder,
        Some(before) => before.same_state(meta),
    };
    now.folders
        .iter()
        .filter_map(|folder| {
            let entries: Vec<Entry> = folder
                .entries
                .iter()
                .filter(|e| !is_known(&folder.rel.join(&e.name), &e.meta))
                .cloned()
                .collect();
            (!entries.is_empty()).then(|| Folder {
                rel: folder.rel.clone(),
                meta: folder.meta,
                entries,
                unreadable: Vec::new(),
            })
        })
        .collect()
}

/// What came up in the last look is beyond what was copied; what changed in it is named as it is.
fn report_restless(changed: &[Folder], known: &BTreeMap<PathBuf, Meta>, tally: &mut Tally) {
    for folder in changed {
        for entry in &folder.entries {
            let path = folder.rel.join(&entry.name);
            if !known.contains_key(&path) {
                tally.warnings.push(format!(
                    "{}: appeared in the source after everything was copied",
                    human::path(&path)
                ));
            } else if !tally.restless.contains(&path) {
                tally.restless.push(path);
            }
        }
    }
}

/// Gives every folder the mode, owner, attributes and times of its source, deepest first: making something
/// in a folder changes its time, and a folder without write permission could not be filled.
pub(super) fn dress_folders(
    transfer: &Transfer,
    folders: &[Folder],
    tally: &mut Tally,
) -> Result<()> {
    let source = &transfer.plan.source;
    for folder in folders.iter().rev() {
        let is_root = folder.rel.as_os_str().is_empty();
        let fail = |e| write_error("the folder", &transfer.path(&folder.rel), e);
        let dest = match transfer.dest.open_beneath(&folder.rel) {
            Ok(dest) => dest,
            Err(error) => return Err(fail(error)),
        };
        if let Ok(attributes) = source.open_beneath(&folder.rel).and_then(Xattrs::of)
            && let Err((name, error)) = attributes.apply(&dest)
        {
            tally.warnings.push(format!(
                "{}: the attribute {} could not be kept: {}",
                human::path(&folder.rel),
                human::escape(&name),
                human::io(&error)
            ));
        }
        if transfer.keeps_owner {
            dest.set_owner(folder.meta.uid, folder.meta.gid)
                .map_err(fail)?;
        }
        // The home itself is its owner's alone, whatever the sync drive had made of it.
        dest.set_mode(if is_root { 0o700 } else { folder.meta.mode })
            .map_err(fail)?;
        dest.set_time(folder.meta.mtime).map_err(fail)?;
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
    Ok(())
}

/// Compares names and kinds of the home with the source: each entry must be there, or be among those that
/// were skipped.
pub(super) fn all_there(folders: &[Folder], home: &Tree, tally: &Tally) -> Result<()> {
    let there: HashMap<PathBuf, FileKind> = home
        .entries()
        .map(|(path, entry)| (path, entry.meta.kind))
        .collect();
    let skipped: BTreeSet<&Path> = tally.skipped.iter().map(|s| &*s.path).collect();
    let entries = folders
        .iter()
        .flat_map(|f| f.entries.iter().map(|e| (f.rel.join(&e.name), e)));
    for (path, entry) in entries {
        if there.get(&path) != Some(&entry.meta.kind) && !skipped.contains(path.as_path()) {
            return Err(
                Error::failed("was copied, and is not in the home any more:")
                    .at(&path)
                    .hint("something changes the new home: end it and run the same command again"),
            );
        }
    }
    Ok(())
}

/// The new home, without the program's own folder.
pub(super) fn walk_home(dest: &Dir, ctx: &Context) -> Result<Tree> {
    let own = |rel: &Path, entry: &Entry| rel.as_os_str().is_empty() && entry.name == OWN;
    disk::walk(dest, &own, ctx.stop)
}
