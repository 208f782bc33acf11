//! What else stands in a relay: sessions that other devices have put there.

use jiff::Timestamp;
use serde::Serialize;

use super::devices::Holder;
use super::place::Relay;
use super::record::Record;
use crate::base::wire::WirePath;
use crate::base::{Error, Result};
use crate::disk::FileKind;
use crate::home::{Entry, Index, KINDS};

/// A session that this home has not put into the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stranger {
    /// The name of its folder.
    #[serde(flatten)]
    pub name: WirePath,
    /// The device that says to have sent it last, by the name of its machine.
    pub from: Option<String>,
    /// When it did, by its own clock.
    pub sent: Option<Timestamp>,
    /// Who holds its lease.
    pub holder: Option<Holder>,
    /// Whether a session of that name is in the index of this home, without a sync tag.
    pub known_here: bool,
}

/// The folders in a relay that hold a session, which this home has not put there and does not send.
///
/// # Errors
/// When the folder can not be listed.
pub(super) fn strangers(relay: &Relay, record: &Record, index: &Index) -> Result<Vec<Stranger>> {
    let names = relay
        .root
        .names()
        .map_err(|e| Error::io("can not list the folder", &relay.path, e))?;
    let mut strangers = Vec::new();
    for (name, _) in names {
        let shown = name.to_string_lossy();
        let entry = index.find(&shown);
        if shown.starts_with('.')
            || entry.is_some_and(Entry::travels)
            || record.put(&shown).is_some()
            || !is_session(relay, &name)
        {
            continue;
        }
        let sender = relay.devices.senders(&shown).into_iter().next();
        strangers.push(Stranger {
            from: sender.map(|(said, _)| said.name.clone()),
            sent: sender.map(|(_, sent)| sent.at),
            holder: relay.devices.holder(&shown),
            known_here: entry.is_some(),
            name: std::path::PathBuf::from(&name).into(),
        });
    }
    strangers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(strangers)
}

/// Whether a folder looks like a session: it has its record, or one of its folders.
fn is_session(relay: &Relay, name: &std::ffi::OsStr) -> bool {
    let Ok(Some(meta)) = relay.root.find(name) else {
        return false;
    };
    let Ok(dir) = relay.root.open_beneath(name.as_ref()) else {
        return false;
    };
    let has = |name: &str, kind| dir.stat(name.as_ref()).is_ok_and(|meta| meta.kind == kind);
    meta.kind == FileKind::Folder
        && (has("session.json", FileKind::File)
            || KINDS.iter().any(|folder| has(folder, FileKind::Folder)))
}
