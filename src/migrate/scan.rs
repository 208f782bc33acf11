//! Looking for references in files and links, and changing nothing.

use std::collections::HashSet;
use std::path::Path;

use rayon::prelude::*;

use super::record::{Class, Done};
use super::rewriting::Rewriting;
use super::tally::Tally;
use crate::base::{Context, Result};
use crate::disk::{self, Buffers, Dir, Entry, FileKind, Tree};
use crate::paths::Rewriter;

/// What a file refers to; `None` when it can not be read, which is for others to tell.
pub(super) fn references_in(
    root: &Dir,
    path: &Path,
    entry: &Entry,
    rewriter: &Rewriter,
    buffers: &mut Buffers,
    ctx: &Context,
) -> Option<Done> {
    let folder = root
        .open_beneath(path.parent().unwrap_or(Path::new("")))
        .ok()?;
    let file = folder.open_file(&entry.name).ok()?;
    let mut rewriting = Rewriting::new(rewriter, path, Vec::new(), &|_| {});
    let copy = disk::digest_of_copy(&file, &entry.meta, &mut rewriting, buffers, ctx.stop);
    let (size, digest) = copy.ok()?;
    let mut done = Done::new(path, Class::Copied, &entry.meta, size, digest);
    rewriting.report(&mut done);
    Some(done)
}

/// What the files and links at these paths refer to. `rewritten` of the tally are files that would be written anew,
/// each hard-linked file once.
///
/// # Errors
/// Interruption; what can not be read is for others to tell.
pub(super) fn count(
    root: &Dir,
    tree: &Tree,
    rewriter: &Rewriter,
    covers: &(dyn Fn(&Path) -> bool + Sync),
    ctx: &Context,
) -> Result<Counted> {
    let mut linked = HashSet::new();
    let entries: Vec<_> = tree
        .entries()
        .filter(|(path, _)| covers(path))
        .filter(|(_, Entry { meta, .. })| {
            meta.kind != FileKind::File || meta.nlink == 1 || linked.insert(meta.identity())
        })
        .collect();
    let counted = entries
        .par_iter()
        .map_init(Buffers::new, |buffers, (path, entry)| {
            ctx.stop.check()?;
            let mut counted = Counted::default();
            if entry.meta.kind == FileKind::Symlink {
                let folder = root.open_beneath(path.parent().unwrap_or(Path::new("")));
                if let Ok(target) = folder.and_then(|folder| folder.read_link(&entry.name)) {
                    let moved = rewriter.link_target(&target);
                    counted.tally.add_link(moved.map(|(mapping, _)| mapping));
                }
            } else if entry.meta.kind == FileKind::File {
                counted.files = 1;
                if let Some(mut done) = references_in(root, path, entry, rewriter, buffers, ctx) {
                    if !done.references.is_empty() {
                        done.class = Class::Rewritten;
                        counted.bytes = entry.meta.size;
                    }
                    counted.tally.add(path, &done);
                }
            }
            if entry.meta.kind != FileKind::Folder {
                ctx.progress.advance(1, entry.meta.size);
            }
            Ok(counted)
        })
        .try_reduce(Counted::default, |mut one, other| {
            one.files += other.files;
            one.bytes += other.bytes;
            one.tally.merge(other.tally);
            Ok(one)
        })?;
    Ok(counted)
}

/// What was counted.
#[derive(Default)]
pub(super) struct Counted {
    /// Files that were looked at.
    pub files: u64,
    /// The bytes of those that would be written anew.
    pub bytes: u64,
    pub tally: Tally,
}
