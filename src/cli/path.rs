//! `wbhome path`: the absolute path, alone on a line.

use std::os::unix::ffi::OsStrExt;

use clap::Args;

use super::args::Global;
use super::complete;
use super::output::{Console, stdout_is_terminal};
use super::place;
use crate::base::{Exit, Result, human};
use crate::browse;

/// Print the absolute path of a session, or of a file in it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cd \"$(wbhome path @1)\"                    the most recent session
  less \"$(wbhome path crawler/logs/agent_run.log)\"")]
pub(super) struct PathArgs {
    /// An id, a unique part of one, or @1 for the most recent; then a path inside, if you like
    #[arg(value_name = "SESSION[/PATH]", add = complete::inside_active_sessions())]
    session: String,
}

pub(super) fn run(args: PathArgs, global: &Global, console: &Console) -> Result<Exit> {
    let home = place::open(global)?;
    let found = browse::path(&home, &args.session)?;
    if console.json {
        console.document("path/1", &found)?;
    } else if stdout_is_terminal() {
        console.print(&format!("{}\n", human::path(&found.path)))?;
    } else {
        // Byte for byte: it is meant for a shell.
        let mut line = found.path.as_os_str().as_bytes().to_vec();
        line.push(b'\n');
        console.print_bytes(&line)?;
    }
    Ok(Exit::Done)
}
