//! What is in a store.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::{Form, Place, Standing, Store};
use crate::base::wire::WirePath;
use crate::base::{Kind, Result};
use crate::home::SessionId;

/// A snapshot in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// When.
    pub at: Timestamp,
    /// How many sessions were in the home.
    pub sessions: u64,
    /// How many are missing.
    pub missing: u64,
    /// How many things are only partly in their newest pack.
    pub partial: u64,
    /// How many packs were made for it.
    pub packed: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The store.
    pub store: WirePath,
    /// The home that it belongs to, as it was last.
    pub home: WirePath,
    /// Its snapshots, the newest first.
    pub snapshots: Vec<Listed>,
    /// How many packs they name.
    pub packs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Snapshots that can not be read.
    pub unreadable: Vec<String>,
}

/// A pack of a session, in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedPack {
    /// When it was made.
    pub at: Timestamp,
    /// What it is.
    pub form: Form,
    /// Whether everything is in it.
    pub complete: bool,
    /// Turns in it.
    pub turns: Option<u64>,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub content: u64,
    /// Its length.
    pub bytes: u64,
    /// Where it lies, relative to the store.
    pub file: String,
    /// Why it is kept beyond its time, if so.
    pub kept: Option<String>,
}

/// What a store has of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfSession {
    /// The store.
    pub store: WirePath,
    /// The session.
    pub session: SessionId,
    /// Where it stood in the newest snapshot; `None` when that does not name it.
    pub standing: Option<Standing>,
    /// Its packs, the newest first.
    pub packs: Vec<ListedPack>,
    /// Snapshots that can not be read.
    pub unreadable: Vec<String>,
}

/// What the newest snapshot of a store says of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// When that snapshot was made.
    pub at: Timestamp,
    /// Where the session stood then; `None` when it does not name it.
    pub standing: Option<Standing>,
    /// When its newest pack was made.
    pub packed: Option<Timestamp>,
    /// Whether everything is in that.
    pub complete: bool,
}

/// What the newest snapshot that can be read says of a session; `None` when there is none. No pack is opened.
///
/// # Errors
/// A store that can not be listed.
pub fn held(store: &Store, session: &SessionId) -> Result<Option<Held>> {
    let place = Place::Session(session.clone());
    let mut all = store.snapshots()?.into_iter().rev();
    let newest = all.find_map(|at| store.snapshot(at).ok());
    Ok(newest.map(|snapshot| {
        let item = snapshot.item(&place);
        Held {
            at: snapshot.at,
            standing: item.map(|item| item.standing),
            packed: item.map(|item| item.newest.at),
            complete: item.is_some_and(|item| item.newest.is_complete()),
        }
    }))
}

/// Lists the snapshots.
///
/// # Errors
/// A store that can not be listed.
pub fn list(store: &Store) -> Result<Outcome> {
    let mut outcome = Outcome {
        store: store.path().to_path_buf().into(),
        home: store.marker().path.to_path_buf().into(),
        snapshots: Vec::new(),
        packs: 0,
        bytes: 0,
        unreadable: Vec::new(),
    };
    let mut named = BTreeSet::new();
    for at in store.snapshots()?.into_iter().rev() {
        let snapshot = match store.snapshot(at) {
            Ok(snapshot) => snapshot,
            Err(error) if error.kind() == Kind::Newer => return Err(error),
            Err(error) => {
                outcome.unreadable.push(error.to_string());
                continue;
            }
        };
        let mut listed = Listed {
            at,
            sessions: 0,
            missing: 0,
            partial: 0,
            packed: 0,
            bytes: 0,
        };
        for item in &snapshot.items {
            let is_session = matches!(item.place, Place::Session(_));
            listed.sessions += u64::from(is_session && item.standing == Standing::Present);
            listed.missing += u64::from(item.standing == Standing::Missing);
            listed.partial += u64::from(!item.newest.is_complete());
            for pack in item.packs() {
                if pack.at == at {
                    listed.packed += 1;
                    listed.bytes += pack.bytes;
                }
                if named.insert(pack.file.clone()) {
                    outcome.packs += 1;
                    outcome.bytes += pack.bytes;
                }
            }
        }
        outcome.snapshots.push(listed);
    }
    Ok(outcome)
}

/// Lists the packs of a session.
///
/// # Errors
/// A store that can not be listed.
pub fn of_session(store: &Store, session: &SessionId) -> Result<OfSession> {
    let place = Place::Session(session.clone());
    let (mut packs, mut known) = (Vec::new(), BTreeSet::new());
    let mut standing = None;
    let (mut unreadable, mut first) = (Vec::new(), true);
    for at in store.snapshots()?.into_iter().rev() {
        let snapshot = match store.snapshot(at) {
            Ok(snapshot) => snapshot,
            Err(error) if error.kind() == Kind::Newer => return Err(error),
            Err(error) => {
                unreadable.push(error.to_string());
                continue;
            }
        };
        let is_newest = std::mem::take(&mut first);
        let Some(item) = snapshot.item(&place) else {
            continue;
        };
        if is_newest {
            standing = Some(item.standing);
        }
        for pack in item.packs() {
            if !known.insert(pack.file.clone()) {
                continue;
            }
            let kept = item.kept.iter().find(|kept| kept.pack.file == pack.file);
            packs.push(ListedPack {
                at: pack.at,
                form: pack.form,
                complete: pack.is_complete(),
                turns: pack.turns,
                files: pack.files,
                content: pack.content,
                bytes: pack.bytes,
                file: pack.file.clone(),
                kept: kept.map(|kept| kept.why.clone()),
            });
        }
    }
    packs.sort_by(|one, other| (other.at, &other.file).cmp(&(one.at, &one.file)));
    Ok(OfSession {
        store: store.path().to_path_buf().into(),
        session: session.clone(),
        standing,
        packs,
        unreadable,
    })
}
