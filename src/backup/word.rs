//! What only a person can say to a store: that it belongs to the home where that is now, and that what is gone is gone.

use serde::Serialize;

use super::{Device, Item, LockedStore, Marker, Place, Snapshot, Standing, Store, init};
use crate::base::wire::WirePath;
use crate::base::{Error, Result, human};
use crate::disk;
use crate::home::{Home, Trust};

/// A store that was bound to a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// The store.
    pub store: WirePath,
    /// Where its home was.
    pub from: WirePath,
    /// Where it is.
    pub to: WirePath,
    /// Whether anything had to be changed.
    pub changed: bool,
}

/// Says what [`adopt`] would change.
///
/// # Errors
/// A store of another home, or of one that lives on where it was, unless `force` says that it shall be this one's.
pub fn adoption(home: &Home, store: &Store, force: bool) -> Result<Adopted> {
    let marker = store.marker();
    if store.marker_is_lost() && !force {
        return Err(
            Error::failed("the backup store has lost its marker, wbhome-store.json:")
                .at(store.path())
                .hint("if it is this home's: --force writes a new one"),
        );
    }
    if marker.home != home.id() && !force {
        return Err(Error::failed("the store belongs to another home:")
            .at(store.path())
            .hint("a store for this one: `wbhome backup init DIR`")
            .hint("if the other home is gone, and this one takes its place: --force"));
    }
    if !force && still_there(home, marker)? {
        return Err(Error::failed("the home that the store belongs to is still there:")
            .at(&*marker.path)
            .hint("two homes of one id are a home and its copy: whichever does not back up here needs a store of its own, `wbhome backup init DIR`")
            .hint("if this one takes the place of the other: --force"));
    }
    Ok(Adopted {
        store: store.path().to_path_buf().into(),
        from: marker.path.to_path_buf().into(),
        to: disk::real_path(home.root())?.into(),
        changed: store.marker_is_lost() || marker.disagrees(home)?.is_some(),
    })
}

/// Whether the home of a store lives on where it was: this one is its copy, or it is this one's. What another machine has
/// under that path is not to be seen from here.
fn still_there(home: &Home, marker: &Marker) -> Result<bool> {
    let former = &marker.path;
    if marker.home != home.id() || marker.device.id != Device::this().id {
        return Ok(false);
    }
    let lives = Home::open(former.to_path_buf(), Trust::Found);
    let same = disk::same_file(former, home.root()).unwrap_or(false);
    Ok(!same && lives.is_ok_and(|lives| lives.id() == marker.home))
}

/// Binds a store to a home that was restored or moved.
///
/// # Errors
/// As [`adoption`], and a store that can not be written.
pub fn adopt(home: &Home, store: &LockedStore, force: bool) -> Result<Adopted> {
    let adopted = adoption(home, store, force)?;
    let former = store.marker();
    let fail = |e| Error::io("can not write the marker in", store.path(), e);
    // With the marker it is lost whether a person wanted the application's folder there.
    let without_state = match store.marker_is_lost() {
        true => init::not_for_state(store.path(), &store.dir).map_err(fail)?,
        false => former.without_state.clone(),
    };
    let marker = Marker::of(home, former.created, without_state)?;
    init::write_marker(&store.dir, &marker, true).map_err(fail)?;
    Ok(adopted)
}

/// What was accepted of a thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The thing: a session by its id, others as `backup run` names them.
    pub what: String,
    /// Whether it is gone: its last pack goes after `keep_deleted`.
    pub gone: bool,
    /// Former packs, larger than the newest, that go as others do.
    pub former: u64,
}

/// What was accepted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Acceptance {
    /// The store.
    pub store: WirePath,
    /// The things.
    pub accepted: Vec<Accepted>,
    #[serde(skip)]
    snapshot: Snapshot,
}

/// Says what accepting would change: that things are gone, or hold less than they did, and that this is right.
///
/// # Errors
/// A name that the newest snapshot does not know, and one of which there is nothing to accept.
pub fn acceptance(home: &Home, store: &Store, names: &[String]) -> Result<Acceptance> {
    let newest = store
        .snapshots()?
        .pop()
        .ok_or_else(|| Error::failed("there is no snapshot in the store yet:").at(store.path()))?;
    let mut snapshot = store.snapshot(newest)?;
    let mut accepted = Vec::new();
    for name in names {
        let mut items = snapshot.items.iter_mut();
        let item = items.find(|item| is_called(&item.place, name));
        let item = item.ok_or_else(|| unknown(name, store))?;
        accepted.push(accept_one(home, item)?);
    }
    Ok(Acceptance {
        store: store.path().to_path_buf().into(),
        accepted,
        snapshot,
    })
}

/// Accepts it: what is kept of these things goes in time, as of others.
///
/// # Errors
/// As [`acceptance`], and a store that can not be written.
pub fn accept(home: &Home, store: &LockedStore, names: &[String]) -> Result<Acceptance> {
    let acceptance = acceptance(home, store, names)?;
    store.replace_snapshot(&acceptance.snapshot)?;
    Ok(acceptance)
}

fn is_called(place: &Place, name: &str) -> bool {
    match place {
        Place::Session(id) => id.as_str() == name,
        other => other.shown() == name,
    }
}

fn unknown(name: &str, store: &Store) -> Error {
    Error::failed(format!(
        "the newest snapshot knows nothing of the name `{}`:",
        human::escape(name)
    ))
    .at(store.path())
    .hint("sessions go by their whole ids; all else as `wbhome backup run` has named it")
}

fn accept_one(home: &Home, item: &mut Item) -> Result<Accepted> {
    let what = item.place.shown();
    // A session may have gone since the snapshot: `run` asks for this word before it makes the next one.
    let there = match &item.place {
        Place::Session(id) => disk::exists(&home.session(id)) || disk::exists(&home.archive_of(id)),
        _ => item.standing == Standing::Present,
    };
    let gone = !there && item.standing != Standing::Removed;
    let former = std::mem::take(&mut item.kept).len() as u64;
    if !gone && former == 0 {
        let why = match there {
            true => "is there, and holds what it did",
            false => "was accepted as gone, or removed, already",
        };
        return Err(Error::failed(format!(
            "`{what}` {why}: there is nothing to accept"
        )));
    }
    if gone {
        item.standing = Standing::Removed;
        // From the next snapshot on: the newest may be older than `keep_deleted`.
        item.since = None;
    }
    Ok(Accepted { what, gone, former })
}
