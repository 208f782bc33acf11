//! `wbhome rm`: sessions into the trash.

use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::complete;

use super::output::{Console, STRONG, styled};
use super::place;
use crate::base::{Context, Exit, Result, human};
use crate::home::resolve_all;
use crate::sessions::remove::{self, Removed};

/// Put sessions into the trash; the index keeps a tombstone with their labels
///
/// `wbhome restore` brings them back. A session in which an agent is at work is refused, and then none is removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome rm 20240603_crawler
  wbhome restore 20240603_crawler --from trash    and back again")]
pub(super) struct RmArgs {
    /// Sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(required = true, value_name = "SESSION", add = complete::sessions())]
    sessions: Vec<String>,
}

pub(super) fn run(args: RmArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let ids = resolve_all(&home, &args.sessions)?;
    let agents = place::agents_or_refuse(&home)?;
    if global.dry_run {
        let plan = remove::plan(&home, &ids, &agents, &place::leases(&home, ctx)?)?;
        console.result("rm-plan/1", &plan, |out| {
            write(out, &plan.sessions);
            let many = human::plural(plan.sessions.len() as u64, "session", "sessions");
            let _ = writeln!(out, "{many} would be removed. Nothing was changed.");
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(&home, "rm", global, console, ctx)?;
    let plan = remove::plan(&locked, &ids, &agents, &place::leases(&locked, ctx)?)?;
    let done = remove::apply(&locked, plan, ctx)?;
    for left in &done.left {
        console.warn(&format!("left {left}"));
    }
    console.report("rm/1", &done, |out| {
        write(out, &done.sessions);
        if let Some(act) = &done.act {
            let again = place::again(global);
            let _ = writeln!(
                out,
                "In the trash.  Back again: {again} restore {act} --from trash"
            );
        }
    })?;
    Ok(match (done.left.is_empty(), &done.act) {
        (true, _) => Exit::Done,
        (false, Some(_)) => Exit::Partial,
        (false, None) => Exit::Failed,
    })
}

fn write(out: &mut String, sessions: &[Removed]) {
    for session in sessions {
        let what = match (session.folder, session.archive) {
            (false, false) => "is found nowhere: its entry becomes a tombstone".to_owned(),
            (false, true) => format!("its archive, {}", human::size(session.bytes)),
            (true, archive) => format!(
                "{}, {}{}",
                human::plural(session.files, "file", "files"),
                human::size(session.bytes),
                if archive { " with its archive" } else { "" }
            ),
        };
        let id = human::name(session.id.as_str());
        let _ = writeln!(out, "{}   {what}", styled(STRONG, id));
    }
}
