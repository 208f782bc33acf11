//! `wbhome unarchive`: sessions out of their packs.

use std::fmt::Write as _;

use clap::Args;

use super::archive::{already, content, exit, interrupted, refused};
use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::{complete, place};
use crate::archive::back::{self, Done, Outcome, Plan, Request};
use crate::base::{Context, Exit, Result, human};
use crate::home::{Home, resolve_all};

/// Bring archived sessions back into sessions/, exactly as they were
///
/// Everything is read back and compared before the session gets its place; then its archive goes. One that was made by
/// hand goes into the trash instead. A session that is in sessions/ already is never written over.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome unarchive 20240603_crawler
  wbhome unarchive crawler --keep     and its archive stays")]
pub(super) struct UnarchiveArgs {
    /// Sessions: ids, unique parts of ids
    #[arg(required = true, value_name = "SESSION", add = complete::archived_sessions())]
    sessions: Vec<String>,
    /// Leave the archives where they are
    #[arg(long)]
    keep: bool,
    /// Of a damaged archive, bring back what is proved good; the archive stays
    #[arg(long)]
    force: bool,
}

pub(super) fn run(
    args: UnarchiveArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let sessions = resolve_all(&home, &args.sessions)?;
    let request = Request {
        sessions,
        keep: args.keep,
        force: args.force,
    };
    if global.dry_run {
        let plan = back::plan(&home, &request, &place::leases(&home, ctx)?)?;
        let exit = exit(
            &plan.refused,
            plan.sessions.len() + plan.already.len(),
            true,
        );
        refused(&plan.refused, exit, global, console);
        console.result("unarchive-plan/1", &plan, |out| write_plan(out, &plan))?;
        return Ok(exit);
    }
    let locked = place::lock(&home, "unarchive", global, console, ctx)?;
    let plan = back::plan(&locked, &request, &place::leases(&locked, ctx)?)?;
    let done = back::apply(&locked, plan, &request, ctx)?;
    for session in &done.sessions {
        warn(session, &locked, global, console);
    }
    let exit = exit(
        &done.refused,
        done.sessions.len() + done.already.len(),
        done.sessions.iter().all(Done::is_whole),
    );
    refused(&done.refused, exit, global, console);
    console.report("unarchive/1", &done, |out| write(out, &done))?;
    Ok(match done.interrupted {
        true => interrupted(console),
        false => exit,
    })
}

fn warn(session: &Done, home: &Home, global: &Global, console: &Console) {
    let id = human::name(session.id.as_str());
    for damage in &session.damage {
        let files = match damage.files.as_slice() {
            [] => String::new(),
            files => {
                let named: Vec<String> = files.iter().map(|file| human::path(file)).collect();
                format!("; missing: {}", named.join(", "))
            }
        };
        console.warn(&format!(
            "{id}: {} of its archive: {}{files}",
            human::escape(&damage.part),
            human::escape(&damage.what)
        ));
    }
    for left in &session.leftover {
        console.warn(&format!("{id}: {}", human::escape(left)));
    }
    if let Some(was) = &session.was_called {
        let folder = |id: &str| place::quoted(&home.sessions().join(id));
        console.note(&format!(
            "{id} was called {} when it was archived.",
            human::name(was)
        ));
        console.hint(&format!(
            "what it says of itself follows its name by: {} relink {} {} {}",
            place::again(global),
            folder(was),
            folder(session.id.as_str()),
            human::argument(session.id.as_str())
        ));
    }
}

fn write(out: &mut String, done: &Outcome) {
    for session in &done.sessions {
        let there = match session.was_there {
            true => "   was in sessions/ already, the same",
            false => "",
        };
        let archive = match (&session.act, session.archive) {
            (Some(_), _) => "   its archive is in the trash",
            (None, true) => "   its archive stays",
            (None, false) => "",
        };
        let _ = writeln!(
            out,
            "{}   {}{there}{archive}",
            styled(STRONG, human::name(session.id.as_str())),
            content(session.files, session.bytes)
        );
    }
    already(out, &done.already, "is not archived: it is in sessions/");
}

fn write_plan(out: &mut String, plan: &Plan) {
    for session in &plan.sessions {
        let what = match (session.files, session.bytes) {
            (Some(files), Some(bytes)) => content(files, bytes),
            _ => format!("{} packed", human::size(session.packed)),
        };
        let foreign = match session.foreign {
            true => "   made by hand",
            false => "",
        };
        let folder = match session.folder {
            true => "   is in sessions/ already, and would be compared",
            false => "",
        };
        let _ = writeln!(
            out,
            "{}   {what}{foreign}{folder}",
            styled(STRONG, human::name(session.id.as_str()))
        );
    }
    already(out, &plan.already, "is not archived: it is in sessions/");
    let many = human::plural(plan.sessions.len() as u64, "session", "sessions");
    let _ = writeln!(out, "{many} would be brought back. Nothing was changed.");
}
