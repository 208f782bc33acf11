//! Looking for references in a file, and changing nothing.

use std::path::Path;

use super::record::{Class, Done};
use super::rewriting::Rewriting;
use crate::base::Context;
use crate::disk::{self, Buffers, Dir, Entry};
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
