//! What the packs in `archive/` say of themselves: what they hold, and what the index needs when it knows nothing of
//! one.
//!
//! Of a pack with a manifest that alone is read. One that was made by hand has to be read whole, once: what was counted
//! stays in the cache as long as its length and time do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{ArchiveSeen, Knowing};
use crate::base::{Context, Kind, Result, Total};
use crate::home::{
    Cache, Entry, Home, Index, PackedCounts, Record, SessionId, Status, counts_of, record_of,
};
use crate::pack::{self, Nature, Pack};

/// What a pack says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The session's entry in the index when it was made.
    pub entry: Option<Map<String, Value>>,
    /// Its `session.json`, where it carries no entry.
    pub record: Option<Record>,
    /// When it was made.
    pub made: Option<Timestamp>,
    /// BLAKE3 of the whole file, when that was wanted.
    pub blake3: Option<String>,
    /// What of it could not be read, and why, if so.
    pub problem: Option<String>,
}

/// What is wanted of a pack besides its counts.
#[derive(Clone, Copy, Default)]
struct Wanted {
    said: bool,
    digest: bool,
}

/// Looks into those packs of which the cache or the index does not know enough. `folders` are the sessions that have
/// one.
///
/// # Errors
/// Interruption. A pack that can not be read says why.
pub(super) fn look(
    home: &Home,
    archives: &mut BTreeMap<SessionId, ArchiveSeen>,
    folders: &BTreeSet<SessionId>,
    knowing: Option<Knowing>,
    context: &Context,
) -> Result<()> {
    if archives.is_empty() {
        return Ok(());
    }
    let mut cached = Cache::read(home).unwrap_or_default().archives;
    let entries: HashMap<&str, &Entry> = knowing
        .and_then(|knowing| knowing.index)
        .into_iter()
        .flat_map(Index::entries)
        .map(|entry| (entry.id(), entry))
        .collect();
    let mut todo = Vec::new();
    for (id, seen) in archives {
        let counted = cached.remove(id.as_str());
        let counted = counted.filter(|counted| counted.is_of(seen.bytes, seen.mtime));
        seen.counts = counted.map(|counted: PackedCounts| counted.counts);
        let entry = entries.get(id.as_str()).copied();
        let wanted = match knowing {
            Some(knowing) => wanted(entry, folders.contains(id), seen, knowing.rebuilding),
            None => Wanted::default(),
        };
        if seen.counts.is_none() || wanted.said {
            todo.push((id, seen, wanted));
        }
    }
    let digested = todo.iter().filter(|(.., wanted)| wanted.digest);
    let total = Total {
        items: todo.len() as u64,
        bytes: digested.map(|(_, seen, _)| seen.bytes).sum(),
    };
    context.progress.stage("archives", total);
    for (id, seen, wanted) in todo {
        context.stop.check()?;
        let mut said = Said::default();
        match look_into(home, id, seen, wanted, &mut said, context) {
            Ok(()) => {}
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => said.problem = Some(format!("its archive can not be read: {error}")),
        }
        seen.said = wanted.said.then_some(said);
        context
            .progress
            .advance(1, if wanted.digest { seen.bytes } else { 0 });
    }
    context.progress.finish();
    Ok(())
}

fn wanted(entry: Option<&Entry>, has_folder: bool, seen: &ArchiveSeen, rebuilding: bool) -> Wanted {
    let noted = entry.and_then(Entry::archive);
    let settled = entry
        .is_some_and(|entry| has_folder || noted.is_some() && entry.status() == Status::Archived);
    let same_length =
        noted.is_some_and(|a| a.get("bytes").and_then(Value::as_u64) == Some(seen.bytes));
    let has_digest = noted.is_some_and(|a| a.get("blake3").is_some_and(Value::is_string));
    let said = rebuilding || !settled;
    Wanted {
        said,
        // Reading all of it takes its time: what the index knows is not asked for again.
        digest: said && !(same_length && has_digest),
    }
}

fn look_into(
    home: &Home,
    id: &SessionId,
    seen: &mut ArchiveSeen,
    wanted: Wanted,
    said: &mut Said,
    context: &Context,
) -> Result<()> {
    let pack = Pack::open(&home.archive_of(id))?;
    if let Some(manifest) = pack.manifest() {
        said.made = Some(manifest.created_at);
        said.entry = manifest.entry.clone();
    }
    if wanted.digest {
        said.blake3 = Some(pack.digest()?);
    }
    if seen.counts.is_none() {
        seen.counts = Some(match pack.manifest() {
            Some(manifest) => counts_of(&manifest.members),
            None => {
                let (members, problems) = pack::list_good(&pack, context)?;
                let first = problems.first();
                said.problem = first.map(|first| {
                    let (part, what) = (&first.part, &first.what);
                    format!("not all of its archive can be read: {part}: {what}")
                });
                counts_of(&members)
            }
        });
    }
    if let (Nature::Damaged(what), None) = (pack.nature(), pack.manifest()) {
        let lost = "the labels that it carried can not be read";
        said.problem = Some(format!("its archive is damaged: {what}; {lost}"));
    }
    if wanted.said && said.entry.is_none() {
        said.record = record_of(&pack, context)?;
    }
    Ok(())
}
