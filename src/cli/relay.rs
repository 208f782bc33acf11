//! `wbhome relay`: sessions that travel, through a folder that a sync client carries.

use clap::{Args, Subcommand, ValueHint};

use super::args::Global;
use super::output::{Console, FAINT, STRONG, styled};
use super::{complete, place};
use crate::base::{Context, Error, Exit, Result, human};

mod fetch;
mod init;
mod status;
mod sync;
mod take;
mod told;

pub(super) use sync::request;

/// Carry tagged sessions to other devices, through a folder that a sync client syncs
///
/// The home itself is never synced. The relay holds exactly the active sessions that carry a sync tag (wbhome label SESSION --sync-tag TAG), after a look for secrets. What another device changes there is told, never
/// overwritten, and comes into the home by `relay take` alone. docs/devices.md shows how two devices work together.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay init ~/Sync/relay --mode clone    once on each device
  wbhome label @1 --sync-tag laptop              this session travels
  wbhome relay sync                              the nightly run does it, too
  wbhome relay status                            what differs, on which side, and since when
  wbhome relay fetch crawler --to /tmp/look      what another device has sent, to be looked at
  wbhome relay take crawler                      and made the home's own")]
pub(super) struct RelayArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a folder the relay of this home on this device
    Init(init::InitArgs),
    /// Make the relay hold exactly the sessions that carry a sync tag
    Sync(sync::SyncArgs),
    /// Show what differs between here and the relay
    Status(status::StatusArgs),
    /// Copy what the relay has of a session into another folder, read-only
    Fetch(fetch::FetchArgs),
    /// Make the relay's version of a session the home's own
    Take(take::TakeArgs),
}

pub(super) fn run(
    args: RelayArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    match args.action {
        Action::Init(args) => init::run(args, global, console, ctx),
        Action::Sync(args) => sync::run(args, global, console, ctx),
        Action::Status(args) => status::run(args, global, console, ctx),
        Action::Fetch(args) => fetch::run(args, global, console, ctx),
        Action::Take(args) => take::run(args, global, console, ctx),
    }
}
