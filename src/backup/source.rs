//! What a store holds of each thing, as of a moment: one snapshot says what there was, and the ones before it name
//! further packs in case that one is damaged.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use jiff::Timestamp;

use super::{Item, PackRef, Place, Snapshot, Store};
use crate::base::{Context, Error, Kind, Result};

/// A store, looked at as of a moment.
#[derive(Debug)]
pub struct Source<'s> {
    store: &'s Store,
    snapshot: Snapshot,
    /// Those before it, the oldest first.
    before: Vec<Timestamp>,
    skipped: Vec<String>,
    /// Read only when a pack of the snapshot is of no use.
    older: OnceLock<Older>,
}

/// What older snapshots name, the newest first.
#[derive(Debug, Default)]
struct Older {
    by_place: HashMap<Place, Vec<PackRef>>,
    /// Sessions under the identity that stays when they are renamed.
    by_identity: HashMap<String, Vec<PackRef>>,
    skipped: Vec<String>,
}

impl<'s> Source<'s> {
    /// Takes the newest snapshot that is not later than `until`, or the newest of all.
    ///
    /// # Errors
    /// A store without such a snapshot, or one in which none can be read; interruption.
    pub fn of(store: &'s Store, until: Option<Timestamp>, context: &Context) -> Result<Source<'s>> {
        let all = store.snapshots()?;
        let mut before = all.clone();
        before.retain(|at| until.is_none_or(|until| *at <= until));
        if before.is_empty() {
            return Err(without_snapshot(store, until, all.first().copied()));
        }
        let mut skipped = Vec::new();
        let mut first = None;
        while let Some(at) = before.pop() {
            context.stop.check()?;
            match store.snapshot(at) {
                Ok(snapshot) => {
                    return Ok(Source {
                        store,
                        snapshot,
                        before,
                        skipped,
                        older: OnceLock::new(),
                    });
                }
                // What a newer program has made is not damaged, and may say that the older ones are wrong.
                Err(error) if error.kind() == Kind::Newer => return Err(error),
                Err(error) => {
                    skipped.push(error.to_string());
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.unwrap_or_else(|| without_snapshot(store, until, None)))
    }

    /// The store.
    pub fn store(&self) -> &'s Store {
        self.store
    }

    /// The snapshot that says what there was.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Newer snapshots that could not be read, and older ones as far as they were looked at: a line each.
    pub fn skipped(&self) -> Vec<String> {
        let older = self.older.get().into_iter();
        let older = older.flat_map(|older| older.skipped.clone());
        self.skipped.iter().cloned().chain(older).collect()
    }

    /// The packs of a thing that its item in the snapshot names: the newest complete one first, then what is newer and
    /// partial.
    pub fn newest(item: &Item) -> Vec<PackRef> {
        let complete = item.complete.iter().cloned();
        // Beside a complete one there is another when that is damaged.
        let newest = [item.newest.clone()];
        let mut found: Vec<PackRef> = match item.newest.is_complete() {
            true => newest.into_iter().chain(complete).collect(),
            false => complete.chain(newest).collect(),
        };
        found.dedup_by(|one, other| one.file == other.file);
        found
    }

    /// What else could stand in for them: what older snapshots name, the newest first and a complete one before a
    /// partial one of the same moment, and then what is kept because it holds more.
    pub fn further(&self, item: &Item) -> Vec<PackRef> {
        let older = self.older.get_or_init(|| self.read_older());
        let by_place = older.by_place.get(&item.place);
        let identity = item.session_id.as_ref();
        let by_identity = identity.and_then(|id| older.by_identity.get(id));
        let mut found: Vec<PackRef> = by_place
            .into_iter()
            .chain(by_identity)
            .flatten()
            .cloned()
            .collect();
        found.sort_by_key(|pack| std::cmp::Reverse((pack.at, pack.is_complete())));
        found.extend(item.kept.iter().map(|kept| kept.pack.clone()));
        let mut seen: HashSet<String> = Source::newest(item).into_iter().map(|p| p.file).collect();
        seen.extend(item.archive.iter().map(|pack| pack.file.clone()));
        found.retain(|pack| seen.insert(pack.file.clone()));
        found
    }

    fn read_older(&self) -> Older {
        let mut older = Older::default();
        for at in self.before.iter().rev() {
            let snapshot = match self.store.snapshot(*at) {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    older.skipped.push(error.to_string());
                    continue;
                }
            };
            for item in snapshot.items {
                let packs = [Some(&item.newest), item.complete.as_ref()];
                let packs: Vec<PackRef> = packs.into_iter().flatten().cloned().collect();
                if let Some(id) = &item.session_id {
                    let known = older.by_identity.entry(id.clone()).or_default();
                    known.extend(packs.iter().cloned());
                }
                older.by_place.entry(item.place).or_default().extend(packs);
            }
        }
        older
    }
}

fn without_snapshot(store: &Store, until: Option<Timestamp>, oldest: Option<Timestamp>) -> Error {
    let Some(until) = until else {
        return Error::failed("the backup store has no snapshot:")
            .at(store.path())
            .hint("`wbhome backup run` makes the first")
            .hint("if there were some: tar unpacks the newest pack of each folder below packs/ (docs/disaster.md)");
    };
    let error = Error::failed(format!(
        "the backup store has no snapshot as old as {until}:"
    ))
    .at(store.path());
    match oldest {
        Some(oldest) => error.hint(format!("the oldest is of {oldest}; --at names a moment")),
        None => error.hint("`wbhome backup run` makes the first"),
    }
}
