//! `wbhome relay`: sessions that travel.

use clap::{Args, Subcommand, ValueHint};

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::{complete, place};
use crate::base::{Context, Exit, Result};

mod fetch;
mod take;

/// Let tagged sessions travel through a folder that a sync client carries
///
/// What another device has sent is never taken by itself: `fetch` copies it for a look, and `take` makes it the home's own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay fetch 20240603_crawler --to /tmp/look    what another device has sent, to be looked at
  wbhome relay take 20240603_crawler                    and made the home's own")]
pub(super) struct RelayArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Copy what the relay has of a session into another folder, read-only
    Fetch(fetch::FetchArgs),
    /// Make the relay's version of a session the home's own; the former one goes into the trash
    Take(take::TakeArgs),
}

pub(super) fn run(
    args: RelayArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    match args.action {
        Action::Fetch(args) => fetch::run(args, global, console, ctx),
        Action::Take(args) => take::run(args, global, console, ctx),
    }
}
