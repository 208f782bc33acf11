//! A claim on the lease of a session, with what is known of the device that makes it.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{Devices, Holder, Relay, Said, Seen};
use crate::base::{Context, Error, Result, human};
use crate::home::{HeldBy, lease_hint};

/// A claim on a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Who makes it.
    #[serde(flatten)]
    pub holder: Holder,
    /// Since when that device has said nothing else, by our own clock; `None` for this device, and when it has said
    /// something since this home looked last.
    pub unchanged_since: Option<Timestamp>,
    /// Since when its file is not there any more, by our own clock, where that is so.
    pub gone_since: Option<Timestamp>,
    /// When this home had looked last, as long as that device said something then.
    #[serde(skip)]
    looked: Option<Timestamp>,
}

/// What is known of the devices that make claims. It is found once: what a device says may be claims on thousands.
pub(super) struct Claimants<'a> {
    devices: &'a Devices,
    seen: &'a Seen,
    /// Since when each has said just what it says.
    unchanged: HashMap<&'a str, Timestamp>,
    now: Timestamp,
}

impl<'a> Claimants<'a> {
    pub(super) fn of(devices: &'a Devices, seen: &'a Seen, now: Timestamp) -> Claimants<'a> {
        let unchanged = |said: &'a Said| Some((&*said.device, seen.unchanged_since(said)?));
        Claimants {
            devices,
            seen,
            unchanged: devices.others().filter_map(unchanged).collect(),
            now,
        }
    }

    /// The claim of a holder.
    pub(super) fn claim(&self, holder: Holder) -> Claim {
        let (device, seen) = (holder.device.as_str(), self.seen);
        let gone = self.devices.is_gone(device);
        Claim {
            unchanged_since: self.unchanged.get(device).copied(),
            gone_since: gone.then(|| seen.gone_since(device).unwrap_or(self.now)),
            looked: seen.at.filter(|_| seen.knows(device)),
            holder,
        }
    }
}

impl Claim {
    /// Who claims the lease of a session and since when, for a person: `laptop holds the lease of …`.
    pub fn told(&self, session: &str, context: &Context) -> String {
        self.holder.told_of(session, context)
    }

    /// How long nothing was heard of the device, for a person: `its file …`.
    pub fn heard(&self, context: &Context) -> String {
        let moment = |at| human::moment(at, context.clock.time_zone());
        match (self.gone_since, self.unchanged_since, self.looked) {
            (Some(since), ..) => format!(
                "its file in the relay has gone since {}, and what it said counts on",
                moment(since)
            ),
            (None, Some(since), _) => format!(
                "its file in the relay was seen to change last on {} ({})",
                moment(since),
                human::age(context.clock.now(), since)
            ),
            (None, None, Some(looked)) => format!(
                "its file in the relay has changed since this home looked last, on {}",
                moment(looked)
            ),
            (None, None, None) => "its file in the relay is new to this home".to_owned(),
        }
    }

    /// The same where there is little room.
    pub fn heard_briefly(&self, context: &Context) -> String {
        let moment = |at| human::moment(at, context.clock.time_zone());
        match (self.gone_since, self.unchanged_since, self.looked) {
            _ if self.holder.ours => "-".to_owned(),
            (Some(since), ..) => format!("its file has gone since {}", moment(since)),
            (None, Some(since), _) => human::age(context.clock.now(), since),
            (None, None, Some(looked)) => format!("after {}", moment(looked)),
            (None, None, None) => "new here".to_owned(),
        }
    }
}

impl Holder {
    /// Who holds the lease of a session and since when, for a person: `laptop holds the lease of …`.
    pub fn told_of(&self, session: &str, context: &Context) -> String {
        let lease = format!("the lease of `{}`", human::name(session));
        HeldBy::from(self.clone()).told_of(&lease, context.clock.time_zone())
    }
}

impl From<Holder> for HeldBy {
    fn from(holder: Holder) -> HeldBy {
        HeldBy {
            device: holder.device,
            name: holder.name,
            since: holder.since,
            ours: holder.ours,
        }
    }
}

impl Relay {
    /// Refuses what only the holder of the lease of a session may do.
    ///
    /// # Errors
    /// The refusal, with who holds it.
    pub fn refuse_unleased(&self, session: &str, context: &Context) -> Result<()> {
        match self.devices.holder(session) {
            Some(holder) if holder.ours => Ok(()),
            Some(holder) => {
                Err(Error::failed(holder.told_of(session, context)).hint(lease_hint(session)))
            }
            None => {
                let (name, named) = (human::name(session), human::argument(session));
                Err(
                    Error::failed(format!("nobody holds the lease of `{name}`")).hint(format!(
                        "`wbhome lease take {named}` first: only who holds it writes"
                    )),
                )
            }
        }
    }
}
