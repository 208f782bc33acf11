//! `wbhome relink`: references follow a folder that was moved or renamed.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use super::args::Global;
use super::migrate::report::write_databases;
use super::output::{Console, STRONG, WARNING, styled};
use super::shortened::more;
use super::{complete, followed, place};
use crate::base::{Context, Error, Exit, Result, human};
use crate::home::{Home, PassedOver, resolve_all};
use crate::migrate::relink::{self, Outcome, Plan, Request};
use crate::migrate::{Mention, Undone};

/// Let references follow a folder that was moved or renamed
///
/// Every reference to OLD in the home is changed to NEW, in the spelling it was found in, and the agent
/// application's own folder follows. All of it is changed, or nothing; `wbhome relink undo` takes it back.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  mv ~/workbuddy_home ~/wb && wbhome --home ~/wb relink ~/workbuddy_home ~/wb
  wbhome relink -n ~/code/shop ~/code/店铺     what would be changed
  wbhome relink /old/data /new/data crawler     only in one session
  wbhome relink undo"
)]
pub(super) struct RelinkArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The folder as it was called
    #[arg(value_name = "OLD", required = true, value_hint = ValueHint::DirPath)]
    old: Option<PathBuf>,
    /// As it is called now
    #[arg(value_name = "NEW", required = true, value_hint = ValueHint::DirPath)]
    new: Option<PathBuf>,
    /// Only in these sessions; the agent application's own folder is left as it is then, unless --state names it
    #[arg(value_name = "SESSION", add = complete::sessions())]
    sessions: Vec<String>,
    #[command(flatten)]
    state: place::StateArgs,
    /// Change only JSON fields that identify a place (cwd, path, …), and leave prose alone
    #[arg(long)]
    fields_only: bool,
    /// Go on although NEW is not there, or somebody works in the home
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Take the newest relink back, unless something was changed since
    #[command(after_help = "Examples:
  wbhome relink undo -n    what would be changed back
  wbhome relink undo")]
    Undo {
        /// Take it back all the same; what was changed since goes to the trash
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(
    args: RelinkArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    if let Some(Action::Undo { force }) = args.action {
        return undo(&home, force, global, console, ctx);
    }
    // Clap has seen to it that both are there.
    let (Some(old), Some(new)) = (args.old, args.new) else {
        return Err(Error::usage("OLD and NEW are needed"));
    };
    let sessions = resolve_all(&home, &args.sessions)?;
    let state = match sessions.is_empty() || args.state.is_named() {
        true => args.state.folders(&home, console)?,
        false => Vec::new(),
    };
    let request = Request {
        old,
        new,
        sessions,
        state,
        fields_only: args.fields_only,
        force: args.force,
        leases: place::leases(&home, ctx)?,
        user_home: place::user_home(),
    };
    if global.dry_run {
        let plan = relink::plan(&home, &request, ctx)?;
        console.result("relink-plan/1", &plan, |out| write_plan(out, &plan))?;
        return Ok(Exit::Done);
    }
    let home = place::lock(&home, "relink", global, console, ctx)?;
    let plan = relink::plan(&home, &request, ctx)?;
    let outcome = relink::apply(&home, plan, ctx)?;
    console.report("relink/1", &outcome, |out| {
        let undo = format!("{} relink undo", place::again(global));
        write(out, &outcome, &undo, console.verbose);
        if let Some(record) = &outcome.record {
            let record = human::name(record);
            let _ = writeln!(out, "\nRecord: {record}.  To take it back: {undo}");
        }
    })?;
    Ok(outcome.exit())
}

/// What `undo --json` prints.
#[derive(Serialize)]
struct Printed<'u> {
    undone: &'u [Undone],
}

fn undo(
    home: &Home,
    force: bool,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if global.dry_run {
        let plan = relink::undo_plan(home, &place::leases(home, ctx)?, ctx)?;
        console.result("relink-undo-plan/1", &plan, |out| {
            followed::write_undo_plan(out, &plan, force);
        })?;
        return Ok(followed::undo_exit(&plan, force));
    }
    place::refuse_untrusted(home)?;
    let home = place::lock(home, "relink undo", global, console, ctx)?;
    let undone = relink::undo(&home, force, &place::leases(&home, ctx)?, ctx)?;
    console.result("relink-undo/1", &Printed { undone: &undone }, |out| {
        followed::write_undone(out, &undone);
    })?;
    Ok(Exit::Done)
}

/// What a relink, or a renaming, would change.
pub(super) fn write_plan(out: &mut String, plan: &Plan) {
    for mapping in &plan.mappings {
        let _ = writeln!(out, "{}", relink::told(mapping));
    }
    let _ = writeln!(
        out,
        "would change {} in {} and {}, of {} looked at",
        human::plural(plan.references.changed, "reference", "references"),
        human::plural(plan.rewritten, "file", "files"),
        human::plural(plan.links, "link", "links"),
        human::count(plan.files)
    );
    write_passed_over(out, &plan.passed_over);
    followed::write_surveys(out, &plan.state);
    let _ = writeln!(out, "\nNothing was changed.");
}

/// What a relink, or a renaming, has changed.
pub(super) fn write(out: &mut String, outcome: &Outcome, undo: &str, all: bool) {
    let changed = human::plural(outcome.references.changed, "reference", "references");
    let _ = writeln!(
        out,
        "{} in {} and {}, of {} looked at",
        styled(STRONG, changed),
        human::plural(outcome.rewritten, "file", "files"),
        human::plural(outcome.links, "link", "links"),
        human::count(outcome.files)
    );
    for mapped in outcome.references.by_mapping.iter().filter(|m| m.count > 0) {
        let _ = writeln!(
            out,
            "  {:>8}   {} → {}",
            human::count(mapped.count),
            human::name(&mapped.old),
            human::name(&mapped.new)
        );
    }
    write_passed_over(out, &outcome.passed_over);
    for skipped in &outcome.skipped {
        let reason = human::escape(&skipped.reason).into_owned();
        let reason = match skipped.failed {
            true => styled(WARNING, reason),
            false => reason,
        };
        let _ = writeln!(out, "  {}   {reason}", human::path(&skipped.path));
    }
    write_databases(out, &outcome.databases);
    mentions(out, "Binary, left as they are", &outcome.binary, all);
    mentions(
        out,
        "A reference or prose, left as they are",
        &outcome.doubtful,
        all,
    );
    followed::write_followed(out, &outcome.state, undo, all);
    for path in &outcome.overtaken {
        let path = human::path(path);
        let _ = writeln!(
            out,
            "  {path} was changed in the last moment; what stood there is in the record"
        );
    }
}

/// Sessions that another device holds.
fn write_passed_over(out: &mut String, passed_over: &[PassedOver]) {
    if passed_over.is_empty() {
        return;
    }
    let many = human::plural(passed_over.len() as u64, "session", "sessions");
    let _ = writeln!(out, "  left, since another device holds the lease: {many}");
    for held in passed_over {
        let _ = writeln!(out, "    {}   {}", human::name(&held.session), held.why);
    }
}

fn mentions(out: &mut String, title: &str, found: &[Mention], all: bool) {
    const NAMED: usize = 5;
    if found.is_empty() {
        return;
    }
    let files = human::plural(found.len() as u64, "file", "files");
    let _ = writeln!(out, "\n{title}: {files}");
    let shown = if all { usize::MAX } else { NAMED };
    for mention in found.iter().take(shown) {
        let times = human::plural(mention.count, "mention", "mentions");
        let _ = writeln!(out, "  {}   {times}", human::path(&mention.path));
    }
    if found.len() > shown {
        let _ = writeln!(out, "  {}", more(found.len() - shown, ""));
    }
}
