//! `wbhome show`: a session at a glance, or something in it.

mod inside;
mod overview;

use std::ffi::OsString;

use clap::Args;

use self::inside::{inside, is_turn, turn};
use self::overview::overview;
use super::args::Global;
use super::output::{Console, stdout_is_terminal};
use super::{complete, place};
use crate::base::{Context, Exit, Result};
use crate::browse::show;

/// Show a session at a glance, or a file in it
///
/// Alone, SESSION tells what it is, where it stands, what it holds and what protects it. With PATH the bytes of a file are
/// printed just as they are, as `cat` does, control characters too; on a terminal a turn is made readable, unless --raw is
/// given. A folder is listed, and of a link the target is shown. An archived session is read from its archive, without
/// unpacking it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome show @1                               the most recent session
  wbhome show crawler/context/checkpoint.md    a file, to standard output
  wbhome show crawler/                         what it holds; crawler/artifacts/ a folder of it
  wbhome show crawler/context/turn_014.json    a turn, readable on a terminal; --raw as it is
  wbhome show old/artifacts/data.bin > data.bin")]
pub(super) struct ShowArgs {
    /// An id, a unique part of one, or @1 for the most recent; then a path inside, if you like
    #[arg(value_name = "SESSION[/PATH]", add = complete::inside_sessions())]
    session: OsString,
    /// The bytes of a turn on a terminal, too, where it is made readable else
    #[arg(long)]
    raw: bool,
    /// Straight to the terminal, without a pager
    #[arg(long)]
    no_pager: bool,
}

pub(super) fn run(
    args: ShowArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    match show::meant(&home, &args.session)? {
        (id, None) => overview(&home, &id, console, ctx),
        (id, Some(rel)) if is_turn(&rel) && stdout_is_terminal() && !args.raw && !console.json => {
            turn(&home, &id, &rel, args.no_pager, console, ctx)
        }
        (id, Some(rel)) => inside(&home, &id, &rel, console, ctx),
    }
}
