//! `wbhome mv`: another name for a session.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::args::Global;
use super::output::Console;
use super::relink::{write, write_plan};
use super::{complete, place};
use crate::base::{Context, Error, Exit, Result, human};
use crate::home::{SessionId, resolve_in};
use crate::migrate::relink::{Outcome, Plan, Request};
use crate::migrate::rename;

/// Give a session another name
///
/// Its folder, archive, labels and project view follow, and every reference to its folder, in the home and in the
/// agent application's own folder. `wbhome mv NEW OLD` renames it back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome mv crawler price_crawler     keeps the day
  wbhome mv 20240603_crawler 20240604_数据清洗")]
pub(super) struct MvArgs {
    /// The session
    #[arg(value_name = "SESSION", add = complete::sessions())]
    session: String,
    /// Its new name: a whole id, or a task, which keeps the day
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    state: place::StateArgs,
    /// Allow a name of more than 30 characters, and go on although somebody works in the home
    #[arg(long)]
    force: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'p, T> {
    from: &'p str,
    to: &'p str,
    #[serde(flatten)]
    rest: &'p T,
}

pub(super) fn run(args: MvArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let from = resolve_in(&home, &args.session)?;
    let to = new_id(&from, &args.new, args.force)?;
    let request = Request {
        old: home.session(&from),
        new: home.session(&to),
        sessions: Vec::new(),
        state: args.state.folders(&home, console)?,
        fields_only: false,
        force: args.force,
        leases: place::leases(&home, ctx)?,
        user_home: place::user_home(),
    };
    let (old, new) = (from.to_string(), to.to_string());
    if global.dry_run {
        let plan = rename::plan(&home, &from, &to, &request, ctx)?;
        let printed: Printed<Plan> = Printed {
            from: &old,
            to: &new,
            rest: &plan,
        };
        console.result("mv-plan/1", &printed, |out| {
            let _ = writeln!(
                out,
                "{} would become {}\n",
                human::name(&old),
                human::name(&new)
            );
            write_plan(out, &plan);
        })?;
        return Ok(Exit::Done);
    }
    let home = place::lock(&home, "mv", global, console, ctx)?;
    let plan = rename::plan(&home, &from, &to, &request, ctx)?;
    let outcome = rename::apply(&home, plan, ctx)?;
    let printed: Printed<Outcome> = Printed {
        from: &old,
        to: &new,
        rest: &outcome,
    };
    console.report("mv/1", &printed, |out| {
        let _ = writeln!(out, "{} is {} now\n", human::name(&old), human::name(&new));
        let names = match new.starts_with('-') {
            true => format!(
                "-- {} {}",
                human::quoted(new.as_ref()),
                human::quoted(old.as_ref())
            ),
            false => format!("{} {}", human::quoted(new.as_ref()), human::argument(&old)),
        };
        let (again, state) = (place::again(global), args.state.again());
        let undo = format!("{again} mv{state} {names}");
        write(out, &outcome, &undo, console.verbose);
    })?;
    Ok(outcome.exit())
}

/// A whole id, or a task on the day that the session has.
fn new_id(from: &SessionId, new: &str, force: bool) -> Result<SessionId> {
    let whole = SessionId::adopt(new)?;
    if let Some(date) = whole.date() {
        let task = new.split_once('_').map_or("", |(_, task)| task);
        return match whole.follows_convention() || force {
            true => Ok(whole),
            // What is wrong with it is told in the words of `new`.
            false => SessionId::compose(date, task, force),
        };
    }
    match from.date() {
        Some(date) => SessionId::compose(date, new, force),
        None if force => Ok(whole),
        None => Err(Error::usage(format!(
            "`{}` has no day, and `{}` has none to keep",
            human::name(new),
            human::name(from.as_str())
        ))
        .hint("write it as YYYYMMDD_task; --force takes the name as it is")),
    }
}
