//! `wbhome lease ls`: who holds what.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::claim::Claimants;
use super::{Claim, Look};
use crate::base::{Context, Result};
use crate::disk::{self, FileKind};
use crate::home::{Home, SessionId, candidates};

/// A session and the claims on its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its id, as the devices say it: to be shown, not to be made a path.
    #[serde(rename = "id")]
    pub session: String,
    /// Who holds it; `None` when nobody does: all claims were overtaken by a device that has let go of it since.
    pub holder: Option<Claim>,
    /// Other claims, which do not count, the best first.
    pub overtaken: Vec<Claim>,
}

/// A file among those of the devices that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Strange {
    /// Its name.
    pub name: String,
    /// Why it says nothing, for a person.
    pub why: String,
}

/// The list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// By session.
    pub leases: Vec<Row>,
    /// So many are of sessions that are neither in this home nor in the relay, and are left out.
    pub elsewhere: u64,
    /// What else lies beside the files of the devices.
    pub strange: Vec<Strange>,
    /// When the devices were looked at, where the relay can not be reached now.
    pub noted: Option<Timestamp>,
}

/// Lists the leases of all devices; without `all`, of sessions that are in this home or in the relay, and this device's
/// own.
///
/// # Errors
/// A home that can not be listed.
pub fn list(
    home: &Home,
    relay: &Path,
    look: &Look,
    all: bool,
    context: &Context,
) -> Result<Outcome> {
    let sessions: BTreeSet<&String> = look
        .devices
        .all()
        .flat_map(|said| said.leases.keys())
        .collect();
    let known = known(home, relay)?;
    let mut outcome = Outcome {
        leases: Vec::new(),
        elsewhere: 0,
        strange: Vec::new(),
        noted: look.noted.as_ref().and_then(|(_, at)| *at),
    };
    let claimants = Claimants::of(&look.devices, &look.seen, context.clock.now());
    for session in sessions {
        let claims = look.devices.claims(session);
        if !all && !known.contains(session) && !claims.iter().any(|claim| claim.ours) {
            outcome.elsewhere += 1;
            continue;
        }
        let holder = look.devices.holder(session);
        let claim = |holder| claimants.claim(holder);
        let others = claims.into_iter().skip(usize::from(holder.is_some()));
        outcome.leases.push(Row {
            session: session.clone(),
            overtaken: others.map(claim).collect(),
            holder: holder.map(claim),
        });
    }
    let strange = look.devices.strange.iter().cloned();
    outcome.strange = strange.map(|(name, why)| Strange { name, why }).collect();
    Ok(outcome)
}

fn known(home: &Home, relay: &Path) -> Result<BTreeSet<String>> {
    let mut known: BTreeSet<String> = candidates(home, false)?
        .into_iter()
        .map(|candidate| candidate.id.to_string())
        .collect();
    // A folder that can not be reached holds none.
    let there = disk::read_dir_names(relay).unwrap_or_default();
    let there = there.into_iter();
    known.extend(
        there
            .filter(|(_, kind)| *kind == FileKind::Folder)
            .filter_map(|(name, _)| SessionId::of_folder(&name))
            .map(|id| id.to_string()),
    );
    Ok(known)
}
