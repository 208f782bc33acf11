//! Leases of this device that it has no more: another device has a better claim, or the session does not travel any more.

use super::meant::travels;
use super::{Devices, Holder, Lease, Relay, Said};
use crate::base::{Error, Result};
use crate::home::{Home, Index, SessionId};

/// Leases that this device says it holds, and that count no more: another device has a better claim, or had one and has
/// let go of it (`None`). Whoever finds that stops writing.
pub fn overtaken(devices: &Devices) -> Vec<(String, Lease, Option<Holder>)> {
    let own = devices.own().into_iter().flat_map(|own| &own.leases);
    own.filter_map(|(session, lease)| match devices.holder(session) {
        Some(holder) if holder.ours => None,
        holder => Some((session.clone(), lease.clone(), holder)),
    })
    .collect()
}

/// Leases of this device of sessions that do not travel from here: not active here with a sync tag any more, as after
/// `rm`, `mv` and `archive`, whatever others say of them. That of a session which is in the relay, and which this home
/// never had, is for a `relay take` to come, and stays.
///
/// # Errors
/// An index that can not be understood.
pub fn without_session(home: &Home, relay: &Relay) -> Result<Vec<String>> {
    let Some(own) = relay.devices.own().filter(|own| !own.leases.is_empty()) else {
        return Ok(Vec::new());
    };
    let index = Index::read(home)?;
    let is_to_come = |session: &str| {
        let id = SessionId::adopt(session);
        !relay.seen.had(session) && id.is_ok_and(|id| relay.has(&id))
    };
    let lapses = |session: &str| match index.find(session) {
        Some(_) => !travels(&index, session),
        None => !is_to_come(session),
    };
    let sessions = own.leases.keys().filter(|session| lapses(session));
    Ok(sessions.cloned().collect())
}

/// Takes the claims of this device on these sessions out of what it says. Those that it does not claim are passed over.
///
/// # Errors
/// When it can not be written.
pub fn give_up<'s>(
    relay: &mut Relay,
    sessions: impl IntoIterator<Item = &'s str>,
) -> Result<Vec<String>> {
    let mut said = relay.said()?.clone();
    let let_go = sessions.into_iter().filter(|session| said.let_go(session));
    let let_go: Vec<String> = let_go.map(str::to_owned).collect();
    if !let_go.is_empty() {
        relay.say(&said)?;
    }
    Ok(let_go)
}

impl Relay {
    /// What this device says.
    ///
    /// # Errors
    /// When it says nothing any more: its file was moved away after the relay was opened.
    pub(super) fn said(&self) -> Result<&Said> {
        self.devices.own().ok_or_else(|| {
            Error::failed("what this device says has gone from").at(self.path.join(super::FOLDER))
        })
    }
}
