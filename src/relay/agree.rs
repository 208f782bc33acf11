//! A session that holds the same on both sides, noted right away: the version that was taken is the one that this home
//! goes on from. Else the first change here would look like a second version.

use std::ffi::OsStr;

use super::compare::Comparison;
use super::place::Relay;
use super::record::{Put, Record};
use super::side::Side;
use crate::base::{Context, Error, Result};
use crate::disk::Dir;
use crate::home::{Entry, Index, LockedHome, RelayMode, SessionId};

/// Notes it, when it is so. Nothing is looked at for secrets: the next sync does that.
///
/// # Errors
/// What can not be looked at; a record that can not be written; interruption.
pub(super) fn agree(
    home: &LockedHome,
    relay: &Relay,
    id: &SessionId,
    context: &Context,
) -> Result<()> {
    let index = Index::read(home)?;
    let entry = index.find(id.as_str());
    // One without a tag does not travel from here: what stands there is another's, and never ours to take away.
    if relay.mode == RelayMode::Symlink || !entry.is_some_and(Entry::travels) {
        return Ok(());
    }
    let path = home.sessions();
    let sessions = Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
    let name = OsStr::new(id.as_str());
    let here = Side::look(&sessions, name, relay.logs, context.stop)?;
    let there = Side::look(&relay.root, name, true, context.stop)?;
    let (Some(here), Some(there)) = (here, there) else {
        return Ok(());
    };
    let comparison = Comparison {
        id: id.as_str(),
        here: Some(&here),
        there: Some(&there),
        put: None,
        begun: None,
        mode: relay.mode,
        logs: relay.logs,
        check: None,
        all_again: false,
        ours: false,
        whole: false,
        kept: None,
        archived: None,
        large: &std::sync::Mutex::new(()),
        stop: context.stop,
    };
    let compared = comparison.run()?;
    if !compared.differences.is_empty() || !compared.unreadable.is_empty() {
        return Ok(());
    }
    let device = &relay.device.id;
    let mut record = Record::read(home, &relay.path, device)?;
    let put = Put {
        mode: relay.mode,
        tag: entry
            .and_then(Entry::sync_tag)
            .unwrap_or_default()
            .to_owned(),
        session_id: entry.and_then(Entry::session_id).map(str::to_owned),
        folder: here.meta.ino,
        at: context.clock.now(),
        checked_by: String::new(),
        // What is here alone, such as a folder without a file, is not there.
        names: super::carry::carried(compared),
    };
    record.sessions.insert(id.to_string(), put);
    let begun = std::mem::take(&mut record.begun);
    record.write(home, &relay.path, device, &begun, context)
}
