//! How a moment is told.

use jiff::Timestamp;

use super::output::stdout_is_terminal;
use crate::base::{Context, human};

/// `2024-06-03 09:00`, in the zone of whoever reads it.
pub(super) fn moment(at: Timestamp, ctx: &Context) -> String {
    human::moment(at, ctx.clock.time_zone())
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
