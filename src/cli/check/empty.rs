//! `wbhome check --empty-trash`.

use std::fmt::Write as _;

use super::CheckArgs;
use crate::base::{Context, Error, Exit, Result, human};
use crate::cli::args::Global;
use crate::cli::output::{Console, FAINT, STRONG, styled};
use crate::cli::place;
use crate::home::Home;
use crate::home::trash::empty::{self, Plan};

pub(super) fn run(
    args: &CheckArgs,
    home: &Home,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if global.dry_run {
        let plan = empty::plan(home, args.older, ctx)?;
        console.result("empty-trash-plan/1", &plan, |out| {
            write(out, &plan, "would go for good");
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(home, "check --empty-trash", global, console, ctx)?;
    let plan = empty::plan(&locked, args.older, ctx)?;
    if !plan.acts.is_empty() && !global.yes {
        let what = format!(
            "{}, {} of the trash",
            human::plural(plan.files, "file", "files"),
            human::size(plan.bytes)
        );
        if !console.ask(&format!("Remove {what} for good?"), false) {
            return Err(Error::failed(format!("{what} would go for good"))
                .hint("--yes removes them without a question; -n shows them"));
        }
    }
    let done = empty::apply(&locked, plan, ctx)?;
    console.report("empty-trash/1", &done, |out| {
        write(out, &done, "removed for good");
    })?;
    Ok(Exit::Done)
}

fn write(out: &mut String, plan: &Plan, what: &str) {
    for act in &plan.acts {
        let size = human::size(act.bytes);
        let _ = writeln!(out, "  {}   {size}", human::name(&act.act));
    }
    let total = format!(
        "{}, {}, {}",
        human::plural(plan.acts.len() as u64, "act", "acts"),
        human::plural(plan.files, "file", "files"),
        human::size(plan.bytes)
    );
    let _ = match plan.acts.is_empty() {
        true => writeln!(out, "Nothing to remove."),
        false => writeln!(out, "{} {what}.", styled(STRONG, total)),
    };
    if plan.kept > 0 {
        let kept = human::plural(plan.kept, "act is", "acts are");
        let _ = writeln!(
            out,
            "{}",
            styled(FAINT, format!("{kept} younger, and kept."))
        );
    }
}
