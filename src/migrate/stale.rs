//! References to a place that the home, or a folder that it speaks of, was moved from.

use std::path::Path;

use rayon::prelude::*;

use super::record::Record;
use super::relink;
use super::scan::references_in;
use crate::base::{Context, Result};
use crate::check::{self, Finding, Options, Outcome};
use crate::disk::{self, Buffers, Dir, Entry, FileKind};
use crate::home::Home;
use crate::paths::{self, Mapping, Rewriter};

/// Adds what still refers to the places that the newest migration moved from. `user_home` is what `~` means now; where that
/// is not known, it is what it meant at the migration.
///
/// # Errors
/// When the record can not be understood, the root not be read, or interruption.
pub fn add_stale_paths(
    home: &Home,
    root: &Dir,
    options: &Options,
    user_home: Option<&Path>,
    outcome: &mut Outcome,
    ctx: &Context,
) -> Result<()> {
    let Some(rewriter) = rewriter_of(home, user_home)? else {
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

/// Every place that references were moved away from: by the newest migration, and by each relink since.
///
/// # Errors
/// A record that can not be understood.
pub fn moved_from(home: &Home) -> Result<Vec<Mapping>> {
    let mut all: Vec<Mapping> = Vec::new();
    if let Some(record) = Record::newest(&home.own())? {
        all.extend(record.settings().mappings.iter().cloned());
    }
    all.extend(relink::moved_from(home)?);
    let mut stale: Vec<Mapping> = Vec::new();
    for mapping in all {
        // Something moved back to where it once was: that place is none that is left behind.
        stale.retain(|earlier| earlier.old != mapping.new && earlier.old != mapping.old);
        // What led to a place that is itself left behind leads to the next one.
        for earlier in &mut stale {
            if let Ok(rest) = Path::new(&earlier.new).strip_prefix(&mapping.old) {
                let new = Path::new(&mapping.new).join(rest);
                earlier.new = new.to_string_lossy().trim_end_matches('/').to_owned();
            }
        }
        stale.push(mapping);
    }
    // A place that holds the home is no stale one, nor is a session that has the name that another one had.
    let sessions = home.sessions();
    let is_back = |old: &Path| old.starts_with(&sessions) && crate::disk::exists(old);
    stale.retain(|m| {
        m.old != m.new && !home.root().starts_with(&m.old) && !is_back(Path::new(&m.old))
    });
    Ok(stale)
}

fn rewriter_of(home: &Home, user_home: Option<&Path>) -> Result<Option<Rewriter>> {
    let mappings = moved_from(home)?;
    if mappings.is_empty() {
        return Ok(None);
    }
    let record = Record::newest(&home.own())?;
    let settings = record.as_ref().map(Record::settings);
    let options = paths::Options {
        fields_only: settings.is_some_and(|s| s.fields_only),
        user_home: user_home
            .and_then(Path::to_str)
            .map(str::to_owned)
            .or_else(|| settings.and_then(|s| s.user_home.clone())),
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
