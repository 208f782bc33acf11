//! Leases of this device that it has no more: another device has a better claim, or the session does not travel any more.

use super::meant::travels;
use super::{Devices, Holder, Lease, Relay, Said};
use crate::base::{Error, Result};
use crate::home::{Home, Index, SessionId};

/// Leases that this device says it holds, and another with a better claim: whoever finds that stops writing.
pub fn overtaken(devices: &Devices) -> Vec<(String, Lease, Holder)> {
    let own = devices.own().into_iter().flat_map(|own| &own.leases);
    own.filter_map(|(session, lease)| {
        let holder = devices.held_elsewhere(session)?;
        Some((session.clone(), lease.clone(), holder))
    })
    .collect()
}

/// Leases of this device of sessions that do not travel: not active here with a sync tag any more, as after `rm` or
/// `mv`, and not in the relay either.
///
/// # Errors
/// An index that can not be understood.
pub fn without_session(home: &Home, relay: &Relay) -> Result<Vec<String>> {
    let Some(own) = relay.devices.own().filter(|own| !own.leases.is_empty()) else {
        return Ok(Vec::new());
    };
    let index = Index::read(home)?;
    let is_somewhere = |session: &str| {
        let id = SessionId::adopt(session);
        travels(&index, session) || id.is_ok_and(|id| relay.has(&id))
    };
    let sessions = own.leases.keys().filter(|session| !is_somewhere(session));
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

impl Said {
    /// Takes a lease out, and notes that it was held. Whether there was one.
    pub(super) fn let_go(&mut self, session: &str) -> bool {
        let Some(lease) = self.leases.remove(session) else {
            return false;
        };
        let released = self.released.entry(session.to_owned()).or_default();
        *released = lease.epoch.max(*released);
        true
    }
}
