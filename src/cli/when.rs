//! How a moment is told.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::output::stdout_is_terminal;
use crate::base::{Context, human};

/// `2024-06-03 09:00`, in the zone of whoever reads it.
pub(super) fn moment(at: Timestamp, ctx: &Context) -> String {
    human::moment(at, ctx.clock.time_zone())
}

/// Moments in a list: to the minute, and to the second when two would look the same.
pub(super) fn moments(all: impl Iterator<Item = Timestamp> + Clone, ctx: &Context) -> Vec<String> {
    let minutes: Vec<String> = all.clone().map(|at| moment(at, ctx)).collect();
    match minutes.iter().collect::<BTreeSet<_>>().len() == minutes.len() {
        true => minutes,
        false => {
            let zone = ctx.clock.time_zone();
            all.map(|at| human::moment_to_the_second(at, zone.clone()))
                .collect()
        }
    }
}

/// `2024-06-03 09:00 (12 days ago)`
pub(super) fn dated(at: Timestamp, ctx: &Context) -> String {
    format!("{} ({})", moment(at, ctx), human::age(ctx.clock.now(), at))
}

/// `2024-06-03T01:00:00Z`: for programs.
pub(super) fn exact(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An age on a terminal, the exact moment elsewhere.
pub(super) fn age(at: Timestamp, ctx: &Context) -> String {
    match stdout_is_terminal() {
        true => human::age(ctx.clock.now(), at),
        false => exact(at),
    }
}
