//! What only a person can say to a store: that it belongs to the home where that is now, and that what is gone is gone.

use serde::Serialize;

use super::{Item, LockedStore, Marker, Place, Standing, init};
use crate::base::wire::WirePath;
use crate::base::{Error, Result, human};
use crate::disk;
use crate::home::{Home, SessionId};

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
/// A store of another home, unless `force` says that it shall be this one's.
pub fn adoption(home: &Home, store: &super::Store, force: bool) -> Result<Adopted> {
    let marker = store.marker();
    if marker.home != home.id() && !force {
        return Err(Error::failed("the store belongs to another home:")
            .at(store.path())
            .hint("a store for this one: `wbhome backup init DIR`")
            .hint("if the other home is gone, and this one takes its place: --force"));
    }
    Ok(Adopted {
        store: store.path().to_path_buf().into(),
        from: marker.path.to_path_buf().into(),
        to: disk::real_path(home.root())?.into(),
        changed: marker.disagrees(home)?.is_some(),
    })
}

/// Binds a store to a home that was restored or moved.
///
/// # Errors
/// As [`adoption`], and a store that can not be written.
pub fn adopt(home: &Home, store: &LockedStore, force: bool) -> Result<Adopted> {
    let adopted = adoption(home, store, force)?;
    let former = store.marker();
    let marker = Marker::of(home, former.created, former.without_state.clone())?;
    init::write_marker(&store.dir, &marker, true)
        .map_err(|e| Error::io("can not write the marker in", store.path(), e))?;
    Ok(adopted)
}

/// What was accepted of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The session.
    pub session: SessionId,
    /// Whether it is gone: its last pack goes after `keep_deleted`.
    pub gone: bool,
    /// Former packs, larger than the newest, that go as others do.
    pub former: u64,
}

/// What was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// The store.
    pub store: WirePath,
    /// The sessions.
    pub sessions: Vec<Accepted>,
}

/// Accepts that sessions are gone, or hold less than they did: what is kept of them goes in time, as of others.
///
/// # Errors
/// A session of which there is nothing to accept: then nothing is changed.
pub fn accept(
    home: &Home,
    store: &LockedStore,
    sessions: &[SessionId],
    dry_run: bool,
) -> Result<Acceptance> {
    let newest = store
        .snapshots()?
        .pop()
        .ok_or_else(|| Error::failed("there is no snapshot in the store yet:").at(store.path()))?;
    let mut snapshot = store.snapshot(newest)?;
    let mut accepted = Vec::new();
    for session in sessions {
        let place = Place::Session(session.clone());
        let item = snapshot.items.iter_mut().find(|item| item.place == place);
        let item = item.ok_or_else(|| unknown(session, store))?;
        accepted.push(accept_one(home, session, item)?);
    }
    if !dry_run {
        store.replace_snapshot(&snapshot)?;
    }
    Ok(Acceptance {
        store: store.path().to_path_buf().into(),
        sessions: accepted,
    })
}

fn unknown(session: &SessionId, store: &LockedStore) -> Error {
    Error::failed(format!(
        "the newest snapshot knows no session `{}`:",
        human::escape(session.as_str())
    ))
    .at(store.path())
}

fn accept_one(home: &Home, session: &SessionId, item: &mut Item) -> Result<Accepted> {
    let there = disk::exists(&home.session(session)) || disk::exists(&home.archive_of(session));
    let gone = !there && item.standing != Standing::Removed;
    let former = std::mem::take(&mut item.kept).len() as u64;
    if !gone && former == 0 {
        let what = match there {
            true => "is in the home, and holds what it did",
            false => "was accepted as gone, or removed, already",
        };
        return Err(Error::failed(format!(
            "`{}` {what}: there is nothing to accept",
            human::escape(session.as_str())
        )));
    }
    if gone {
        item.standing = Standing::Removed;
        // From the next snapshot on: the newest may be older than `keep_deleted`.
        item.since = None;
    }
    Ok(Accepted {
        session: session.clone(),
        gone,
        former,
    })
}
