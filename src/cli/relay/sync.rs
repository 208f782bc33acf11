//! `wbhome relay sync`.

use std::collections::BTreeSet;

use super::*;
use crate::home::{self, Config, Home, OnFind};
use crate::relay::sync::{self, Request};

/// Make the relay hold exactly the sessions that carry a sync tag
///
/// Only what differs is touched. A session is held back, and named, when a secret or a name that sync clients drop is in what would leave, and when somebody else has changed it in the relay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay sync
  wbhome relay sync -n                          what would be sent, and what not and why
  wbhome relay sync --tag laptop                only sessions with this sync tag
  wbhome relay sync --ours 20240603_crawler     the version here counts; the other one goes to the trash")]
pub(super) struct SyncArgs {
    /// Only sessions with this sync tag
    #[arg(long, value_name = "TAG", add = complete::sync_tags())]
    tag: Option<String>,
    /// Let the version here count where somebody has changed the relay; what stood there goes to the trash. Needs the lease
    #[arg(long, value_name = "SESSION", add = complete::sessions())]
    ours: Vec<String>,
}

/// What a sync goes by, as the settings have it.
///
/// # Errors
/// Settings or rules that are not understood.
pub(in crate::cli) fn request(home: &Home, tag: Option<String>) -> Result<Request> {
    let config = Config::load(home)?;
    Ok(Request {
        tag,
        ours: BTreeSet::new(),
        check: Some(place::secrets(home, &config)?),
        search: true,
        all_may_leave: false,
        on_find: config.secrets.on_find,
    })
}

pub(super) fn run(
    args: SyncArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    place::refuse_untrusted(&home)?;
    let mut request = request(&home, args.tag)?;
    request.all_may_leave = global.yes;
    let ours = home::resolve_all(&home, &args.ours)?;
    request.ours.extend(ours.iter().map(ToString::to_string));
    let warns = request.on_find == OnFind::Warn;
    let done = match global.dry_run {
        true => {
            let relay = place::open_relay(&home)?;
            let plan = sync::plan(&home, &relay, &request, ctx)?;
            console.result("relay-sync-plan/1", &plan, |out| {
                told::write(out, &plan.told, &place::again(global), true)
            })?;
            plan.told
        }
        false => {
            let locked = place::lock(&home, "relay sync", global, console, ctx)?;
            let mut relay = place::open_relay(&locked)?;
            let plan = sync::plan(&locked, &relay, &request, ctx)?;
            let done = sync::apply(&locked, &mut relay, plan, &request, ctx)?;
            console.report("relay-sync/1", &done, |out| {
                told::write(out, &done, &place::again(global), false)
            })?;
            done
        }
    };
    told::warn(&done, warns, global, console);
    Ok(done.exit())
}
