//! `wbhome relay take`.

use std::fmt::Write as _;

use super::fetch::{leading_out, sent_by, shown};
use super::*;
use crate::base::human;
use crate::relay::take::{self, Change, Outcome, Plan, Request, State, Turn};

/// Make the relay's version of a session the home's own
///
/// The former one goes into the trash. Only who holds the lease of the session takes (`wbhome lease take SESSION`), and only a version that has arrived whole. What the relay leaves out, such as logs, stays. Labels stay, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay take 20240603_crawler -n      what differs, on both sides
  wbhome relay take 20240603_crawler
  wbhome restore 20240603_crawler --from trash --force    and the former one back again")]
pub(super) struct TakeArgs {
    /// The session: the name of a folder in the relay, or a unique part of it
    #[arg(value_name = "SESSION", add = complete::relayed_sessions())]
    session: String,
    /// The sync tag that it gets [default: its own, or that of the device that has sent it]
    #[arg(long, value_name = "TAG", add = complete::sync_tags())]
    sync_tag: Option<String>,
    /// Take it also when it may be still on its way, or is another session of the same name
    #[arg(long)]
    force: bool,
}

pub(super) fn run(
    args: TakeArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let request = Request {
        session: args.session,
        sync_tag: args.sync_tag,
        force: args.force,
    };
    if global.dry_run {
        let relay = place::open_relay(&home)?;
        let agents = place::agents_or_refuse(&home)?;
        let plan = take::plan(&home, &relay, &request, &agents, ctx)?;
        warn(&plan, console);
        console.result("relay-take-plan/1", &plan, |out| {
            write(out, &plan, console.verbose, ctx);
            if !plan.is_nothing() {
                let _ = writeln!(out, "It would be taken. Nothing was changed.");
            }
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(&home, "relay take", global, console, ctx)?;
    let mut relay = place::open_relay(&locked)?;
    let agents = || place::agents_or_refuse(&locked);
    let plan = take::plan(&locked, &relay, &request, &agents()?, ctx)?;
    let outcome = take::apply(&locked, &mut relay, plan, &request, &agents, ctx)?;
    warn(&outcome.done, console);
    for left in &outcome.left {
        console.warn(&human::escape(left));
    }
    console.report("relay-take/1", &outcome, |out| {
        write(out, &outcome.done, console.verbose, ctx);
        finish(out, &outcome, global);
    })?;
    Ok(match outcome.left.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}

fn finish(out: &mut String, outcome: &Outcome, global: &Global) {
    let again = place::again(global);
    match &outcome.act {
        Some(act) => {
            let _ = writeln!(
                out,
                "Taken; the former one is in the trash.  Back again: {again} restore {act} --from trash --force"
            );
        }
        None if outcome.done.is_nothing() => {}
        None => {
            let _ = writeln!(out, "Taken.");
        }
    }
}

fn warn(plan: &Plan, console: &Console) {
    for warning in &plan.warnings {
        console.warn(warning);
    }
    leading_out(&plan.leading_out, console);
}

/// So many files are named unless all are wanted.
const NAMED: usize = 20;

fn write(out: &mut String, plan: &Plan, all: bool, ctx: &Context) {
    let id = styled(STRONG, human::name(plan.session.as_str()));
    if plan.is_nothing() {
        let _ = writeln!(
            out,
            "{id}   the relay holds what the home holds; nothing to do"
        );
        return;
    }
    let _ = writeln!(
        out,
        "{id}   {}, {}{}",
        human::plural(plan.files, "file", "files"),
        human::size(plan.bytes),
        if plan.new { ", new here" } else { "" }
    );
    let _ = writeln!(out, "  sent by   {}", sent_by(plan.sender.as_ref(), ctx));
    if let Some(tag) = &plan.sync_tag {
        let _ = writeln!(out, "  sync tag  {}", human::name(tag));
    }
    // Of one that is new every file comes.
    let changes = match plan.new && !all {
        true => &[],
        false => plan.changes.as_slice(),
    };
    let named = if all { changes.len() } else { NAMED };
    for change in changes.iter().take(named) {
        write_change(out, change, ctx);
    }
    if let more @ 1.. = changes.len().saturating_sub(named) {
        let _ = writeln!(out, "  … {} more: -v", human::count(more as u64));
    }
    if plan.kept.files > 0 {
        let _ = writeln!(
            out,
            "  stays     logs/   {}, {}",
            human::plural(plan.kept.files, "file", "files"),
            human::size(plan.kept.bytes)
        );
    }
    for odd in &plan.left_out {
        let _ = writeln!(out, "  left out  {}   {}", shown(odd), odd.why);
    }
    for odd in &plan.left_behind {
        let why = &odd.why;
        let _ = writeln!(
            out,
            "  gone      {}   {why}, which can not be copied",
            shown(odd)
        );
    }
}

fn write_change(out: &mut String, change: &Change, ctx: &Context) {
    let what = match change.change {
        Turn::Added => "added",
        Turn::Changed => "changed",
        Turn::Gone => "gone",
    };
    let side = |name: &str, state: &Option<State>| {
        let state = state.as_ref()?;
        let age = human::age(ctx.clock.now(), state.modified);
        Some(format!("{name} {}, {age}", human::size(state.bytes)))
    };
    let sides = [side("here", &change.here), side("there", &change.there)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    let path = human::path(&change.path);
    let _ = writeln!(out, "  {what:<9} {path}   {}", sides.join(" · "));
}
