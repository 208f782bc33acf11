//! `wbhome lease`: one writer at a time.

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::{complete, place};
use crate::base::{Context, Error, Exit, Result, human};
use crate::home::{Home, SessionId};
use crate::relay::lease::{self, Change, Plan, Refused, Step, Wish};
use crate::relay::{Devices, Relay, meant};

mod ls;

/// Say which device writes to a session that travels, one at a time
///
/// A lease is a line that a sync client carries, not a lock: it keeps apart people who look at it. A session with a sync
/// tag whose lease another device holds is not changed here. docs/devices.md says what a lease can not prevent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome lease take crawler       before work on it begins here
  wbhome lease release crawler    when it is done
  wbhome lease ls                 who holds what, and when that device was heard of last
  wbhome lease steal crawler      from a device that is gone; it is not asked")]
pub(super) struct LeaseArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Take the lease of sessions, unless another device holds it
    #[command(after_help = "Examples:
  wbhome lease take crawler
  wbhome lease take 20240603_crawler -n    whether it is free")]
    Take(SessionArgs),
    /// Let go of leases that this device holds
    #[command(after_help = "Examples:
  wbhome lease release crawler
  wbhome lease release --all")]
    Release(ReleaseArgs),
    /// Take the lease of sessions, whoever holds it
    ///
    /// The other device is not asked, and may go on writing until it has seen this. Nothing of what either has written is
    /// lost: then there are two versions, for a person to choose from.
    #[command(after_help = "Examples:
  wbhome lease steal crawler
  wbhome lease steal crawler -n    from whom, and when that device was heard of last")]
    Steal(SessionArgs),
    /// List who holds which lease
    Ls(ls::LsArgs),
}

#[derive(Debug, Args)]
struct SessionArgs {
    /// Sessions: ids, unique parts of ids, or @1 for the most recent; the exact name of one that only the relay has
    #[arg(required = true, value_name = "SESSION", add = complete::travelling_sessions())]
    sessions: Vec<String>,
}

#[derive(Debug, Args)]
struct ReleaseArgs {
    /// Sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(required_unless_present = "all", value_name = "SESSION", add = complete::travelling_sessions())]
    sessions: Vec<String>,
    /// Every lease of this device
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
}

pub(super) fn run(
    args: LeaseArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let (wish, sessions) = match args.action {
        Action::Ls(args) => return ls::run(args, global, console, ctx),
        Action::Take(args) => (Wish::Take, args.sessions),
        Action::Steal(args) => (Wish::Steal, args.sessions),
        // None named is all of them.
        Action::Release(args) => (Wish::Release, args.sessions),
    };
    let schema = match (wish, global.dry_run) {
        (Wish::Take, true) => "lease-take-plan/1",
        (Wish::Take, false) => "lease-take/1",
        (Wish::Steal, true) => "lease-steal-plan/1",
        (Wish::Steal, false) => "lease-steal/1",
        (Wish::Release, true) => "lease-release-plan/1",
        (Wish::Release, false) => "lease-release/1",
    };
    let home = place::open(global)?;
    if global.dry_run {
        let relay = place::open_relay(&home)?;
        let ids = ids(&home, &relay, &sessions)?;
        let plan = lease::plan(&home, &relay, &ids, wish, ctx)?;
        if wish != Wish::Release {
            strange(&relay.devices, console);
        }
        let exit = exit(&plan.refused, &plan.sessions);
        refused(&plan.refused, exit, global, console);
        console.result(schema, &plan, |out| {
            write(out, &plan.sessions, &plan.refused, true);
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(exit);
    }
    let locked = place::lock(&home, "lease", global, console, ctx)?;
    let mut relay = place::open_relay(&locked)?;
    let ids = ids(&locked, &relay, &sessions)?;
    let mut plan = lease::plan(&locked, &relay, &ids, wish, ctx)?;
    if wish != Wish::Release {
        strange(&relay.devices, console);
    }
    if plan.stolen().next().is_some() && !global.yes {
        ask(&plan, console, ctx)?;
        relay.read_devices()?;
        let now = lease::plan(&locked, &relay, &ids, wish, ctx)?;
        if !now.stolen().eq(plan.stolen()) {
            return Err(
                Error::failed("the leases have changed meanwhile, and nothing was stolen")
                    .hint("`wbhome lease ls` lists them"),
            );
        }
        plan = now;
    }
    let done = lease::apply(&locked, &mut relay, plan, ctx)?;
    let exit = exit(&done.refused, &done.sessions);
    refused(&done.refused, exit, global, console);
    console.report(schema, &done, |out| {
        write(out, &done.sessions, &done.refused, false);
        if done.sessions.iter().any(|step| is_new(step.change)) {
            let _ = writeln!(
                out,
                "Other devices know of it when the sync client has carried it."
            );
        }
    })?;
    Ok(exit)
}

/// The sessions that are meant; none named: all whose lease this device holds.
fn ids(home: &Home, relay: &Relay, sessions: &[String]) -> Result<Vec<SessionId>> {
    if !sessions.is_empty() {
        return meant(home, relay, sessions);
    }
    let own = relay.devices.own().into_iter();
    own.flat_map(|own| own.leases.keys())
        .map(|session| SessionId::adopt(session))
        .collect()
}

/// So many files that can not be understood are named.
const NAMED: usize = 10;

/// What can not be understood may say that somebody holds a lease.
fn strange(devices: &Devices, console: &Console) {
    for (name, why) in devices.strange.iter().take(NAMED) {
        console.warn(&format!(
            "{} in .leases can not be understood, and may be a claim: {}",
            human::name(name),
            human::escape(why)
        ));
    }
    if let Some(more @ 1..) = devices.strange.len().checked_sub(NAMED) {
        let more = human::plural(more as u64, "file", "files");
        console.warn(&format!("{more} more in .leases can not be understood"));
    }
}

fn refused(refused: &[Refused], exit: Exit, global: &Global, console: &Console) {
    let again = place::again(global);
    for one in refused {
        console.refuse(&place::spelled(&one.why, &again), exit);
        for hint in &one.hints {
            console.hint(&place::spelled(hint, &again));
        }
    }
}

fn exit(refused: &[Refused], done: &[Step]) -> Exit {
    match (refused.is_empty(), done.is_empty()) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Partial,
    }
}

/// Says what a theft means, and asks.
fn ask(plan: &Plan, console: &Console, ctx: &Context) -> Result<()> {
    let stolen: Vec<_> = plan.stolen().collect();
    let what = match stolen.as_slice() {
        [(step, _)] => format!("the lease of `{}`", human::name(step.session.as_str())),
        many => human::plural(many.len() as u64, "lease", "leases"),
    };
    for (step, claim) in &stolen {
        let told = claim.told(step.session.as_str(), ctx);
        console.say(&format!("{told}; {}.\n", claim.heard(ctx)));
    }
    console.say("Nobody is asked there, and it may be written to until the other device has seen this. Both versions are kept.\n");
    match console.ask(&format!("Take {what} from who holds it now?"), false) {
        true => Ok(()),
        false => Err(
            Error::failed(format!("{what} would be taken from who holds it now"))
                .hint("--yes takes it without a question; -n shows it"),
        ),
    }
}

fn is_new(change: Change) -> bool {
    matches!(change, Change::Taken | Change::Stolen)
}

fn write(out: &mut String, steps: &[Step], refused: &[Refused], is_plan: bool) {
    for step in steps {
        let other = step.other.as_ref();
        let other = other.map(|claim| human::name(&claim.holder.name));
        let holder = other.as_ref();
        let holder = holder.map_or("nobody's".to_owned(), |other| format!("{other}'s"));
        let other = other.unwrap_or_default();
        let what = match (step.change, is_plan) {
            (Change::Taken, true) => "is free, and would be taken".to_owned(),
            (Change::Taken, false) => "is this device's now".to_owned(),
            (Change::Stolen, true) => format!("would be taken from {other}"),
            (Change::Stolen, false) => format!("was taken from {other}"),
            (Change::Held, _) => "is this device's already".to_owned(),
            (Change::Released, true) => "would be released".to_owned(),
            (Change::Released, false) => "was released".to_owned(),
            (Change::GivenUp, true) => format!("is {holder}; the claim of this device would go"),
            (Change::GivenUp, false) => format!("is {holder}; the claim of this device is gone"),
            (Change::Free, _) => "is nobody's".to_owned(),
        };
        let id = human::name(step.session.as_str());
        let _ = writeln!(out, "{}   its lease {what}", styled(STRONG, id));
    }
    if steps.is_empty() && refused.is_empty() {
        let _ = writeln!(out, "This device holds no lease.");
    } else if steps.len() > 1 {
        let changed = |step: &&Step| !matches!(step.change, Change::Held | Change::Free);
        let _ = writeln!(
            out,
            "{}, {} {}",
            human::plural(steps.len() as u64, "session", "sessions"),
            human::count(steps.iter().filter(changed).count() as u64),
            if is_plan { "to change" } else { "changed" }
        );
    }
}
