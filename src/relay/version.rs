//! The version of a session that lies in the relay: which one a person means, who sent it, and its open folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::place::Relay;
use super::standing::Side;
use crate::base::wire::WirePath;
use crate::base::{Error, Result, Stop, human};
use crate::disk::{self, FileKind};
use crate::home::{Candidate, Home, SessionId, Status, matching, nearest};

/// So often a version that changes while it is read is read again.
pub(super) const ATTEMPTS: usize = 3;

/// The device that has put a session into the relay, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sender {
    /// Its id.
    pub device: String,
    /// What its machine is called. Not escaped.
    pub name: String,
    /// When it sent the session last, by its clock.
    pub at: Timestamp,
    /// The sync tag of the session there. Not escaped.
    pub tag: String,
}

/// Something in a session that is not as the rest, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Odd {
    /// Where, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why, for a person.
    pub why: String,
}

impl Odd {
    pub(super) fn new(path: impl AsRef<Path>, why: impl Into<String>) -> Odd {
        Odd {
            path: path.as_ref().to_path_buf().into(),
            why: why.into(),
        }
    }
}

/// The device that has put a session into the relay last; this one is not asked.
pub(super) fn sender(relay: &Relay, id: &SessionId) -> Option<Sender> {
    let senders = relay.devices.senders(id.as_str());
    senders.first().map(|(said, sent)| Sender {
        device: said.device.clone(),
        name: said.name.clone(),
        at: sent.at,
        tag: sent.tag.clone(),
    })
}

/// The session of the relay that a person means: the exact name of a folder in it, else a unique prefix or part of one.
/// `None` when none is meant.
///
/// # Errors
/// Several are meant; a path, which is never taken; a relay that can not be listed.
pub(super) fn meant(relay: &Relay, query: &str) -> Result<Option<SessionId>> {
    if query.contains('/') {
        return Err(Error::usage(format!("`{}` is a path", human::name(query)))
            .hint("name the session alone, as its folder in the relay is called"));
    }
    // A number counts the sessions of the home.
    if query.starts_with('@') && !ids(relay)?.iter().any(|c| c.id.as_str() == query) {
        return Ok(None);
    }
    matching(query, &ids(relay)?)
}

/// What could be a session in the relay.
fn ids(relay: &Relay) -> Result<Vec<Candidate>> {
    let fail = |e| Error::io("can not list", &relay.path, e);
    let mut found = Vec::new();
    for (name, _) in relay.root.names().map_err(fail)? {
        found.extend(SessionId::of_folder(&name).map(|id| Candidate {
            id,
            status: Status::Active,
            activity: None,
        }));
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// That no session of the relay is meant, with the nearest one.
pub(super) fn unknown(relay: &Relay, query: &str) -> Error {
    let error = Error::failed(format!(
        "the relay has no session `{}`:",
        human::name(query)
    ))
    .at(&relay.path);
    let all = ids(relay).unwrap_or_default();
    match nearest(query, all.iter().map(|c| c.id.as_str())) {
        Some(near) => error.hint(format!("did you mean {}?", human::name(near))),
        None => error.hint("`wbhome relay status` lists what is there"),
    }
}

/// Opens the relay's version of a session, and looks at everything in it.
///
/// # Errors
/// What is no folder, such as a link; one that can not be opened.
pub(super) fn open(home: &Home, relay: &Relay, id: &SessionId, stop: &Stop) -> Result<Side> {
    let path = relay.path.join(id.as_str());
    let name = OsStr::new(id.as_str());
    let fail = |e| Error::io("can not look at", &path, e);
    match relay.root.stat(name).map_err(fail)?.kind {
        FileKind::Folder => {}
        FileKind::Symlink => {
            let target = relay.root.read_link(name).map_err(fail)?;
            return Err(match is_own(home, id, Path::new(OsStr::from_bytes(&target)))? {
                true => Error::failed("that is this home's own session, and no version of another device:")
                    .at(&path)
                    .hint("in the mode symlink the relay holds a link to it"),
                false => Error::failed("is a symbolic link, which is not followed:")
                    .at(&path)
                    .hint("a session in a relay is a folder; look at where it leads, and who made it"),
            });
        }
        kind => {
            return Err(Error::failed(format!(
                "is {}, and a session is a folder:",
                kind.described()
            ))
            .at(&path));
        }
    }
    let dir = relay
        .root
        .open_beneath(Path::new(name))
        .map_err(|e| Error::io("can not open the folder", &path, e))?;
    Side::look(dir, stop)
}

/// Whether a link points to the session's folder in the home, by the letter.
fn is_own(home: &Home, id: &SessionId, target: &Path) -> Result<bool> {
    let real = disk::real_path(home.root())?
        .join("sessions")
        .join(id.as_str());
    Ok(target == home.session(id) || target == real)
}

/// That a version has changed each time that it was read.
pub(super) fn restless(relay: &Relay, id: &SessionId) -> Error {
    Error::failed("is still being synced; it changed each time that it was read:")
        .at(relay.path.join(id.as_str()))
        .hint("wait until the sync client is done, and run the command again; nothing was changed")
}
