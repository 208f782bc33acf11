//! What this home may change: a session with a sync tag whose lease another device holds is read-only here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::look::look_as;
use super::said::Wanted;
use crate::base::{Context, Result};
use crate::home::{Device, HeldBy, Home, Leases, Unknown, each_brief};

/// Who holds the leases of the sessions of a home, as its relay in this folder says; or, where that can not be reached, as
/// was noted. `None`: no relay is set, and nobody holds any. A device that is not known holds none of them; where it can not
/// be learned which one this is, the refusals say so.
pub fn gate(
    home: &Home,
    relay: Option<&Path>,
    device: &Result<Option<Device>>,
    context: &Context,
) -> Leases {
    let Some(relay) = relay else {
        return Leases::default();
    };
    let known = device.as_ref().ok().and_then(Option::as_ref);
    let look = look_as(home, relay, known, Wanted::Leases);
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
        if let Some(holder) = holder(&brief.id).filter(|_| brief.sync_tag.is_some()) {
            held.insert(brief.id.into_owned(), holder);
        }
    });
    if read.is_err() {
        // Which of them travel is not known: until it is, all do.
        let all = claimed.into_iter();
        held.extend(all.filter_map(|session| Some((session.to_owned(), holder(session)?))));
    }
    let noted = look.noted.and_then(|(_, at)| at);
    let unknown = device.as_ref().err().map(Unknown::from);
    Leases::new(held, noted, context.clock.time_zone()).of_unknown(unknown)
}
