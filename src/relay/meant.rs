//! Which session is meant where some are in the relay alone, and whether its lease is anybody's business.

use super::{Relay, version};
use crate::base::{Error, Result, human};
use crate::disk::FileKind;
use crate::home::{
    Candidate, Entry, Home, Index, SessionId, Status, candidates, matching, resolve, resolve_each,
};

/// The sessions that these queries mean: of this home, as everywhere; or one that only the relay has, or that somebody
/// claims, by its exact name, and where this home has none of that name, of the relay by a unique part of it. The home is
/// looked at once for all of them.
///
/// # Errors
/// One of which none or several are meant.
pub fn meant(home: &Home, relay: &Relay, queries: &[String]) -> Result<Vec<SessionId>> {
    let exact = queries.iter().any(|query| query.starts_with('@'));
    let here = candidates(home, exact)?;
    resolve_each(queries, &here, |query| elsewhere(relay, query, &here))
}

/// A query that is no exact name of a session here.
fn elsewhere(relay: &Relay, query: &str, here: &[Candidate]) -> Result<SessionId> {
    if let Ok(id) = SessionId::adopt(query)
        && (relay.has(&id) || relay.devices.holder(query).is_some())
    {
        return Ok(id);
    }
    if let Some(id) = matching(query, here)? {
        return Ok(id);
    }
    let is_name = !query.contains('/') && !query.starts_with('@');
    match is_name.then(|| version::meant(relay, query)).transpose()? {
        Some(Some(id)) => Ok(id),
        _ => resolve(query, here),
    }
}

impl Relay {
    /// Whether the session is in the relay, or another device says so.
    pub fn has(&self, id: &SessionId) -> bool {
        let found = self.root.find(id.as_str().as_ref());
        matches!(found, Ok(Some(meta)) if meta.kind == FileKind::Folder)
            || !self.devices.senders(id.as_str()).is_empty()
    }
}

/// Whether a session of the home travels: it is active and carries a sync tag.
pub(super) fn travels(index: &Index, id: &str) -> bool {
    index.entries_of(id).any(Entry::travels)
}

/// Refuses a session that does not travel.
pub(super) fn refuse_at_home(index: &Index, relay: &Relay, id: &SessionId) -> Result<()> {
    if travels(index, id.as_str()) || relay.has(id) {
        return Ok(());
    }
    let shown = human::name(id.as_str());
    let status = index.find(id.as_str()).map(|entry| entry.status());
    let named = human::argument(id.as_str());
    Err(match status {
        Some(status @ (Status::Archived | Status::Missing | Status::Removed)) => {
            let status = status.as_str();
            Error::failed(format!("`{shown}` is {status}, and does not travel"))
        }
        _ => Error::failed(format!(
            "`{shown}` carries no sync tag, and does not travel"
        ))
        .hint(format!(
            "`wbhome label --sync-tag TAG {named}` gives it one"
        )),
    })
}
