//! `wbhome check`: everything that is wrong with a home.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::args::Global;
use super::complete;
use super::findings;
use super::output::{Console, STRONG, styled};
use super::place;
use super::shortened::{more, shown};
use crate::base::{Context, Error, Exit, Result, human};
use crate::check::{self, Finding, FindingKind, Options, Outcome};
use crate::disk::Dir;
use crate::history::{self, Repository, bring_back};
use crate::home::{Home, Index, resolve_all};
use crate::migrate;
use crate::state::Agent;

mod empty;
mod repair;

/// Look for all that is wrong: damage by sync clients, missing pieces, stale references
///
/// Nothing is changed without --repair or --empty-trash. Exit code 4 when something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome check               the whole home, the first three of each kind
  wbhome check -v crawler    one session, every finding
  wbhome check -v --json     one JSON document a line
  wbhome check --archives    every byte of the archives, too
  wbhome check --repair -n   what could be put right without losing anything
  wbhome check --empty-trash --older 30d")]
pub(super) struct CheckArgs {
    /// Only these sessions
    #[arg(value_name = "SESSION", add = complete::active_sessions())]
    sessions: Vec<String>,
    /// Also read every archive, and compare it with its manifest and with the index
    #[arg(long, conflicts_with_all = ["repair", "empty_trash"])]
    archives: bool,
    /// Put right what can not lose anything; `wbhome restore` takes it back
    #[arg(long)]
    repair: bool,
    /// Copy into a session what only its second version has
    #[arg(long, requires = "repair")]
    fill: bool,
    /// Remove for good what commands have put into the trash
    #[arg(long, conflicts_with_all = ["repair", "sessions"])]
    empty_trash: bool,
    /// Only what was put there longer ago than this, such as 30d
    #[arg(long, value_name = "AGE", requires = "empty_trash", value_parser = super::args::age)]
    older: Option<Duration>,
}

pub(super) fn run(
    args: CheckArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    if args.empty_trash {
        return empty::run(&args, &home, global, console, ctx);
    }
    if args.repair {
        return repair::run(&args, &home, global, console, ctx);
    }
    let options = options(&args, &home)?;
    let agents = place::agents(&home, console);
    let mut found = look(&options, &home, &agents, Some(console), ctx)?;
    if args.archives {
        let index = Index::read(&home).ok();
        check::read_archives(&home, index.as_ref(), &options, &mut found.outcome, ctx)?;
    }
    let again = place::again(global);
    for finding in &mut found.outcome.findings {
        let command = finding.command.take();
        finding.command = command.map(|command| place::spelled(&command, &again));
    }
    if console.json && console.verbose {
        for finding in &found.outcome.findings {
            console.document("finding/1", finding)?;
        }
    } else {
        console.result("check/1", &found.outcome, |out| {
            let broken = found.broken_index;
            write(out, &found.outcome, broken, &again, console.verbose);
        })?;
    }
    Ok(found.exit())
}

/// What was looked at, and what is wrong with it.
struct Found {
    outcome: Outcome,
    broken_index: bool,
}

/// Which sessions are meant.
fn options(args: &CheckArgs, home: &Home) -> Result<Options> {
    let ids = resolve_all(home, &args.sessions)?;
    let ids: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
    Ok(Options {
        only: (!ids.is_empty()).then_some(ids),
    })
}

/// Looks. `console` is told of an index that can not be understood.
fn look(
    options: &Options,
    home: &Home,
    agents: &[Agent],
    console: Option<&Console>,
    ctx: &Context,
) -> Result<Found> {
    let index = match Index::read(home) {
        Ok(index) => Some(index),
        Err(error) => {
            if let Some(console) = console {
                console.warn(&format!("{error}; sessions are looked at without it"));
            }
            None
        }
    };
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let mut outcome = check::inspect(&root, home.root(), index.as_ref(), options, ctx)?;
    let user_home = place::user_home();
    migrate::add_stale_paths(
        home,
        &root,
        options,
        user_home.as_deref(),
        &mut outcome,
        ctx,
    )?;
    check::add_running(home, agents, index.as_ref(), options, &mut outcome);
    if options.only.is_none() {
        outcome.add(torn_history(home, ctx)?);
    }
    name_whole_versions(home, &mut outcome, ctx)?;
    Ok(Found {
        outcome,
        broken_index: index.is_none(),
    })
}

/// Names the command for a file that is damaged or gone, where a commit holds it whole and nothing beside it does. Of a long
/// gap in the turns that is the first of them.
fn name_whole_versions(home: &Home, outcome: &mut Outcome, ctx: &Context) -> Result<()> {
    use FindingKind::{MissingTurn, NulRun, TornJson};
    // What is wrong with the repository itself is told elsewhere.
    let Ok(Some(repository)) = Repository::open(home) else {
        return Ok(());
    };
    let helped = |finding: &&mut Finding| {
        matches!(finding.kind, TornJson | NulRun | MissingTurn) && finding.command.is_none()
    };
    let mut findings: Vec<&mut Finding> = outcome.findings.iter_mut().filter(helped).collect();
    let paths: Vec<PathBuf> = findings.iter().map(|f| f.path.clone()).collect();
    let whole = history::newest_whole(home, &repository, &paths, ctx.stop)?;
    for finding in &mut findings {
        if let Some(at) = whole.get(&finding.path) {
            finding.command = bring_back::command(&finding.path, at.as_deref());
        }
    }
    Ok(())
}

/// What is wrong with the repository of the home.
fn torn_history(home: &Home, ctx: &Context) -> Result<Vec<Finding>> {
    let finding = |damage: history::Damage| {
        Finding::new(FindingKind::TornHistory, damage.path.0, damage.what)
    };
    Ok(history::damage(home, ctx)?
        .into_iter()
        .map(finding)
        .collect())
}

impl Found {
    /// What the findings tell the caller.
    fn exit(&self) -> Exit {
        let mut exit = match self.outcome.has_problems() || self.broken_index {
            true => Exit::Problems,
            false => Exit::Done,
        };
        if self.outcome.counts.contains_key(&FindingKind::Unreadable) {
            // What could not be read was not looked at: it is done in part.
            exit = exit.merge(Exit::Partial);
        }
        exit
    }
}

/// So many commands are shown when not all are.
const COMMANDS: usize = 3;

fn write(out: &mut String, outcome: &Outcome, broken_index: bool, again: &str, all: bool) {
    let looked = format!(
        "{} · {} · {}",
        human::plural(outcome.sessions, "session", "sessions"),
        human::plural(outcome.files, "file", "files"),
        human::size(outcome.bytes)
    );
    let archives = outcome.archives.map(|read| {
        let archives = human::plural(read.archives, "archive", "archives");
        format!("{archives} read, {}", human::size(read.bytes))
    });
    let (problems, others): (Vec<_>, Vec<_>) = outcome
        .findings
        .iter()
        .cloned()
        .partition(|f| f.kind.is_problem());
    let looked = [Some(looked), archives].into_iter().flatten();
    let looked: Vec<String> = looked.collect();
    let _ = writeln!(out, "{}", styled(STRONG, looked.join(" · ")));
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
    let commands = outcome.findings.iter().filter_map(|f| f.command.as_ref());
    let commands: Vec<&String> = commands.collect();
    if !commands.is_empty() {
        let _ = writeln!(out, "\nTo put what is whole in its place:");
        let shown = shown(commands.len(), COMMANDS, all);
        for command in commands.iter().take(shown) {
            let _ = writeln!(out, "  {command}");
        }
        if shown < commands.len() {
            let more = more(commands.len() - shown, ": check -v");
            let _ = writeln!(out, "  {more}");
        }
    }
    if !others.is_empty() {
        let _ = writeln!(out, "\nGood to know");
        findings::write(out, &others, all);
    }
    if !all && findings::cuts(&outcome.findings) {
        let _ = writeln!(out, "\nEvery finding: {again} check -v");
    }
}
