//! `wbhome migrate undo`: the agent application's own folder as it was.

use std::fmt::Write as _;

use serde::Serialize;

use super::super::args::Global;
use super::super::followed;
use super::super::output::Console;
use super::super::place;
use crate::base::{Context, Exit, Result, human};
use crate::migrate::{self, Undone};

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'u> {
    undone: &'u [Undone],
}

pub(super) fn run(force: bool, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    if global.dry_run {
        let undone = migrate::undo_plan(&home, ctx)?;
        console.result("migrate-undo-plan/1", &undone, |out| {
            followed::write_undo_plan(out, &undone, force);
        })?;
        return Ok(followed::undo_exit(&undone, force));
    }
    place::refuse_untrusted(&home)?;
    let home = place::lock(&home, "migrate undo", global, console, ctx)?;
    let undone = migrate::undo(&home, force, ctx)?;
    console.result("migrate-undo/1", &Printed { undone: &undone }, |out| {
        followed::write_undone(out, &undone);
        let _ = writeln!(
            out,
            "\nThe home is still there: {}. Remove it yourself when nothing in it is wanted.",
            human::path(home.root())
        );
    })?;
    Ok(Exit::Done)
}
