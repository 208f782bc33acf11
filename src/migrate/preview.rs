//! What a migration would find, for a run that changes nothing: how many references there are, and which other
//! homes the files mention. A person learns here which `--map` is missing, before anything is copied.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use rayon::prelude::*;

use super::outcome::{Mapped, References};
use super::plan::{self, Plan};
use super::scan::references_in;
use super::tally::Tally;
use crate::base::{Context, Result};
use crate::disk::{Buffers, Entry, FileKind};
use crate::paths::Mapping;

/// Reads every file of the source. References in databases are not counted: they are found by SQL, in a copy.
///
/// # Errors
/// References that can not be searched for, and interruption.
pub fn preview(plan: &Plan, ctx: &Context) -> Result<References> {
    let rewriter = plan::rewriter(&plan.settings, &plan.tree)?;
    ctx.progress
        .stage("Counting references", plan.totals.total());
    let mut linked = HashSet::new();
    let files: Vec<_> = plan
        .tree
        .entries()
        .filter(|(_, Entry { meta, .. })| match meta.kind {
            // A file of several names is read once.
            FileKind::File => meta.nlink == 1 || linked.insert(meta.identity()),
            kind => kind == FileKind::Symlink,
        })
        .collect();
    let tally = files
        .par_iter()
        .map_init(Buffers::new, |buffers, (path, entry)| {
            ctx.stop.check()?;
            let mut tally = Tally::default();
            if entry.meta.kind == FileKind::Symlink {
                let folder = plan
                    .source
                    .open_beneath(path.parent().unwrap_or(Path::new("")));
                if let Ok(target) = folder.and_then(|folder| folder.read_link(&entry.name)) {
                    tally.add_link(rewriter.link_target(&target).map(|(mapping, _)| mapping));
                }
            } else if let Some(done) =
                references_in(&plan.source, path, entry, &rewriter, buffers, ctx)
            {
                tally.add(path, &done);
            }
            ctx.progress.advance(1, entry.meta.size);
            Ok(tally)
        })
        .try_reduce(Tally::default, |mut one, other| {
            one.merge(other);
            Ok(one)
        })?;
    ctx.progress.finish();
    Ok(references(&plan.settings.mappings, &tally))
}

/// The references that a tally has counted, under the names that people know them by.
pub(super) fn references(mappings: &[Mapping], tally: &Tally) -> References {
    let mappings = mappings.iter().enumerate();
    let some = |counts: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        counts
            .iter()
            .filter(|(_, n)| **n > 0)
            .map(|(name, n)| (name.clone(), *n))
            .collect()
    };
    let spellings = tally.by_spelling.iter().filter(|(_, n)| **n > 0);
    References {
        changed: tally.references(),
        by_mapping: mappings
            .map(|(i, mapping)| Mapped {
                old: mapping.old.clone(),
                new: mapping.new.clone(),
                count: tally.of_mapping(i),
            })
            .collect(),
        by_spelling: spellings
            .map(|(s, n)| (s.as_str().to_owned(), *n))
            .collect(),
        left: tally.left,
        also_mentioned: some(&tally.foreign),
    }
}
