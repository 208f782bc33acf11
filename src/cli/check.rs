//! `wbhome check`: everything that is wrong with a home.

use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::complete;
use super::findings;
use super::output::{Console, STRONG, styled};
use super::place;
use crate::base::{Context, Error, Exit, Result, human};
use crate::check::{self, FindingKind, Options, Outcome};
use crate::disk::Dir;
use crate::home::{Index, resolve_in};
use crate::migrate;

/// Look for everything that is wrong: damage by sync clients, missing pieces, stale references
///
/// Nothing is changed. Exit code 4 when something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome check               the whole home, the first three of each kind
  wbhome check -v crawler    one session, every finding
  wbhome check -v --json     one JSON document a line")]
pub(super) struct CheckArgs {
    /// Only these sessions
    #[arg(value_name = "SESSION", add = complete::sessions())]
    sessions: Vec<String>,
}

pub(super) fn run(
    args: CheckArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let ids = args
        .sessions
        .iter()
        .map(|query| resolve_in(&home, query).map(|id| id.to_string()))
        .collect::<Result<Vec<_>>>()?;
    let index = match Index::read(&home) {
        Ok(index) => Some(index),
        Err(error) => {
            console.warn(&format!("{error}; sessions are looked at without it"));
            None
        }
    };
    let broken_index = index.is_none();
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let options = Options {
        only: (!ids.is_empty()).then_some(ids),
    };
    let mut outcome = check::inspect(&root, home.root(), index.as_ref(), &options, ctx)?;
    migrate::add_stale_paths(&home, &root, &options, &mut outcome, ctx)?;
    let agents = place::agents(&home, console);
    check::add_running(&home, &agents, index.as_ref(), &options, &mut outcome);
    if console.json && console.verbose {
        for finding in &outcome.findings {
            console.document("finding/1", finding)?;
        }
    } else {
        console.result("check/1", &outcome, |out| {
            write(out, &outcome, broken_index, console.verbose)
        })?;
    }
    let mut exit = match outcome.has_problems() || broken_index {
        true => Exit::Problems,
        false => Exit::Done,
    };
    if outcome.counts.contains_key(&FindingKind::Unreadable) {
        // What could not be read was not looked at: it is done in part.
        exit = exit.merge(Exit::Partial);
    }
    Ok(exit)
}

fn write(out: &mut String, outcome: &Outcome, broken_index: bool, all: bool) {
    let looked = format!(
        "{} · {} · {}",
        human::plural(outcome.sessions, "session", "sessions"),
        human::plural(outcome.files, "file", "files"),
        human::size(outcome.bytes)
    );
    let (problems, others): (Vec<_>, Vec<_>) = outcome
        .findings
        .iter()
        .cloned()
        .partition(|f| f.kind.is_problem());
    let _ = writeln!(out, "{}", styled(STRONG, looked));
    if problems.is_empty() && broken_index {
        let _ = writeln!(out, "\nNothing is wrong here but the index.");
    } else if problems.is_empty() {
        let _ = writeln!(out, "\nNothing is wrong.");
    } else {
        let _ = writeln!(
            out,
            "\n{}",
            human::plural(problems.len() as u64, "problem", "problems")
        );
        findings::write(out, &problems, all);
    }
    if !others.is_empty() {
        let _ = writeln!(out, "\nGood to know");
        findings::write(out, &others, all);
    }
    if !all && findings::cuts(&outcome.findings) {
        let _ = writeln!(out, "\nEvery finding: wbhome check -v");
    }
}
