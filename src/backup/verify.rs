//! Reading packs of the store from beginning to end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::{Form, PackRef, Store};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, NoProgress, Result, Total};
use crate::pack;

/// Something that is wrong with a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// What is in it.
    pub what: String,
    /// Where it lies, relative to the store.
    pub file: String,
    /// What is wrong.
    pub why: String,
    /// The newest snapshot that names it.
    pub snapshot: Timestamp,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The store.
    pub store: WirePath,
    /// How many snapshots.
    pub snapshots: u64,
    /// How many packs.
    pub packs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Which of them are not what was written.
    pub broken: Vec<Broken>,
    /// Snapshots that can not be read.
    pub unreadable: Vec<String>,
}

/// Reads every pack that the newest snapshot names, or with `all` every snapshot: its digest, and then everything in it.
///
/// # Errors
/// A store that can not be listed or has no snapshot, and interruption.
pub fn verify(store: &Store, all: bool, context: &Context) -> Result<Outcome> {
    let mut moments = store.snapshots()?;
    moments.reverse();
    if moments.is_empty() {
        return Err(Error::failed("there is no snapshot in the store yet:")
            .at(store.path())
            .hint("`wbhome backup run` makes one"));
    }
    let mut outcome = Outcome {
        store: store.path().to_path_buf().into(),
        snapshots: 0,
        packs: 0,
        bytes: 0,
        broken: Vec::new(),
        unreadable: Vec::new(),
    };
    let mut named: BTreeMap<String, (PackRef, String, Timestamp)> = BTreeMap::new();
    for at in moments {
        match store.snapshot(at) {
            Ok(snapshot) => {
                outcome.snapshots += 1;
                for item in &snapshot.items {
                    for pack in item.packs() {
                        let known = || (pack.clone(), item.place.shown(), at);
                        named.entry(pack.file.clone()).or_insert_with(known);
                    }
                }
            }
            Err(error) if error.kind() == crate::base::Kind::Newer => return Err(error),
            Err(error) => {
                outcome.unreadable.push(error.to_string());
                continue;
            }
        }
        if !all {
            break;
        }
    }
    outcome.packs = named.len() as u64;
    outcome.bytes = named.values().map(|(pack, ..)| pack.bytes).sum();
    let total = Total {
        items: outcome.packs,
        bytes: outcome.bytes,
    };
    context.progress.stage("reading packs", total);
    let read = |(pack, what, snapshot): (PackRef, String, Timestamp)| {
        context.stop.check()?;
        let why = broken(store, &pack, context)?;
        context.progress.advance(1, pack.bytes);
        Ok(why.map(|why| Broken {
            what,
            file: pack.file,
            why,
            snapshot,
        }))
    };
    let named: Vec<_> = named.into_values().collect();
    let broken = named
        .into_par_iter()
        .map(read)
        .collect::<Result<Vec<_>>>()?;
    context.progress.finish();
    outcome.broken = broken.into_iter().flatten().collect();
    Ok(outcome)
}

/// What is wrong with a pack, if anything is.
///
/// # Errors
/// Interruption.
pub(super) fn broken(store: &Store, pack: &PackRef, context: &Context) -> Result<Option<String>> {
    let quiet = Context {
        progress: &NoProgress,
        ..*context
    };
    let opened = match store.compare(pack).and_then(|()| store.pack(pack)) {
        Ok(opened) => opened,
        Err(error) => return Ok(Some(error.to_string())),
    };
    // An archive that was damaged before it was copied is as it was written; each run names it.
    if pack.form == Form::Archive && !pack.is_complete() {
        return Ok(None);
    }
    // The digest is right: then this is how it was written, and only memory or this program could be to blame.
    match pack::verify(&opened, &quiet) {
        Ok(verified) => Ok(verified
            .problems
            .first()
            .map(|problem| format!("{}: {}", problem.part, problem.what))),
        Err(error) if error.kind() == crate::base::Kind::Interrupted => Err(error),
        Err(error) => Ok(Some(error.to_string())),
    }
}
