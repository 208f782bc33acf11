//! References to a place that the home was moved from, in what has been written since.

use std::path::Path;

use rayon::prelude::*;

use super::record::Record;
use super::scan::references_in;
use crate::base::{Context, Result};
use crate::check::{self, Finding, Options, Outcome};
use crate::disk::{self, Buffers, Dir, Entry, FileKind};
use crate::home::Home;
use crate::paths::{self, Mapping, Rewriter};

/// Adds what still refers to the places that the newest migration moved from.
///
/// # Errors
/// When the record can not be understood, the root not be read, or interruption.
pub fn add_stale_paths(
    home: &Home,
    root: &Dir,
    options: &Options,
    outcome: &mut Outcome,
    ctx: &Context,
) -> Result<()> {
    let Some(rewriter) = rewriter_of(home)? else {
        return Ok(());
    };
    let tree = disk::walk(
        root,
        &|rel: &Path, entry: &Entry| check::is_left_alone(&rel.join(&entry.name)),
        ctx.stop,
    )?;
    let files: Vec<_> = tree
        .entries()
        .filter(|(path, entry)| entry.meta.kind == FileKind::File && options.covers(path))
        .collect();
    let found: Vec<Vec<Finding>> = files
        .par_iter()
        .map_init(Buffers::new, |buffers, (path, entry)| {
            ctx.stop.check()?;
            Ok(stale_in(root, path, entry, &rewriter, buffers, ctx))
        })
        .collect::<Result<_>>()?;
    outcome.add(found.into_iter().flatten());
    Ok(())
}

fn rewriter_of(home: &Home) -> Result<Option<Rewriter>> {
    let Some(record) = Record::newest(&home.own())? else {
        return Ok(None);
    };
    let settings = record.settings();
    // A place that holds the home is no stale one.
    let holds_home = |mapping: &Mapping| home.root().starts_with(&mapping.old);
    let mappings: Vec<Mapping> = settings
        .mappings
        .iter()
        .filter(|m| !holds_home(m))
        .cloned()
        .collect();
    let options = paths::Options {
        fields_only: settings.fields_only,
        user_home: settings.user_home.clone(),
        known_ids: Vec::new(),
    };
    // What was accepted once compiles again; a record that was edited into nonsense names nothing.
    Ok(Rewriter::new(mappings, options).ok())
}

fn stale_in(
    root: &Dir,
    path: &Path,
    entry: &Entry,
    rewriter: &Rewriter,
    buffers: &mut Buffers,
    ctx: &Context,
) -> Vec<Finding> {
    let Some(done) = references_in(root, path, entry, rewriter, buffers, ctx) else {
        return vec![Finding::unreadable(path, "can not be read")];
    };
    let old = |mapping: u16| {
        let mapping = rewriter.mappings().get(usize::from(mapping));
        Path::new(mapping.map_or("", |m| m.old.as_str()))
    };
    let mut by_mapping = std::collections::BTreeMap::new();
    for (mapping, _, n) in &done.references {
        *by_mapping.entry(*mapping).or_insert(0u64) += n;
    }
    let stale = by_mapping
        .into_iter()
        .map(|(m, n)| Finding::stale_path(path, old(m), n));
    let doubtful = done
        .doubtful
        .iter()
        .map(|(m, n)| Finding::doubtful_path(path, old(*m), *n));
    let binary = (done.binary > 0).then(|| Finding::binary_path(path, old(0), done.binary));
    stale.chain(doubtful).chain(binary).collect()
}
