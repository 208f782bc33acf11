//! What this home may change: a session with a sync tag whose lease another device holds is read-only here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Holder, look};
use crate::base::Context;
use crate::home::{Device, HeldBy, Home, Leases, each_brief};

/// Who holds the leases of the sessions of a home, as its relay in this folder says; or, where that can not be reached, as
/// was noted. `None`: no relay is set, and nobody holds any. A device that is not known holds none of them.
pub fn gate(
    home: &Home,
    relay: Option<&Path>,
    device: Option<&Device>,
    context: &Context,
) -> Leases {
    let Some(relay) = relay else {
        return Leases::default();
    };
    let look = look(home, relay, device);
    let said = look.devices.all();
    let claimed: BTreeSet<&str> = said
        .flat_map(|said| said.leases.keys().map(String::as_str))
        .collect();
    if claimed.is_empty() {
        return Leases::default();
    }
    let holder = |session: &str| look.devices.holder(session).map(HeldBy::from);
    let mut held = BTreeMap::new();
    let read = each_brief(home, &|id| claimed.contains(id), &mut |brief| {
        let tagged = brief.sync_tag.as_deref().is_some_and(|tag| !tag.is_empty());
        if let Some(holder) = holder(&brief.id).filter(|_| tagged) {
            held.insert(brief.id.into_owned(), holder);
        }
    });
    if read.is_err() {
        // Which of them travel is not known: until it is, all do.
        let all = claimed.into_iter();
        held.extend(all.filter_map(|session| Some((session.to_owned(), holder(session)?))));
    }
    let noted = look.noted.and_then(|(_, at)| at);
    Leases::new(held, noted, context.clock.time_zone())
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
