//! A claim on the lease of a session, with what is known of the device that makes it.

use jiff::Timestamp;
use serde::Serialize;

use super::{Devices, Holder, Seen};
use crate::base::{Context, human};

/// A claim on a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Who makes it.
    #[serde(flatten)]
    pub holder: Holder,
    /// Since when that device has said nothing else, by our own clock; `None` for this device, and when it has said
    /// something since this home looked last.
    pub unchanged_since: Option<Timestamp>,
}

impl Claim {
    /// What is known of a holder.
    pub(super) fn of(holder: Holder, devices: &Devices, seen: &Seen) -> Claim {
        let mut others = devices.others();
        let said = others.find(|said| said.device == holder.device);
        Claim {
            unchanged_since: said.and_then(|said| seen.unchanged_since(said)),
            holder,
        }
    }

    /// Who claims the lease of a session and since when, for a person: `laptop holds the lease of …`.
    pub fn told(&self, session: &str, context: &Context) -> String {
        format!(
            "{} holds the lease of `{}` since {} by its clock",
            human::name(&self.holder.name),
            human::name(session),
            moment(self.holder.since, context)
        )
    }

    /// How long nothing was heard of the device, for a person: `its file …`.
    pub fn heard(&self, context: &Context) -> String {
        match self.unchanged_since {
            Some(since) => format!(
                "its file in the relay was seen to change last on {} ({})",
                moment(since, context),
                human::age(context.clock.now(), since)
            ),
            None => "its file in the relay is new to this home".to_owned(),
        }
    }
}

/// A moment as a person reads it.
pub(super) fn moment(at: Timestamp, context: &Context) -> String {
    let zoned = at.to_zoned_datetime(context.clock.time_zone());
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}
