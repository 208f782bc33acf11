//! `wbhome history`: the commits that touched a session.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

use super::args::Global;
use super::complete;
use super::output::{Console, STRONG, styled, terminal_width};
use super::when::moment;
use super::width::fold;
use super::{place, shortened};
use crate::base::{Context, Exit, Result, human};
use crate::history::{self, Change, ChangeKind, Log, LogRequest, Touched};

/// List the commits that touched a session, or something in it, the newest first
///
/// A session that was renamed goes on under its former name. One that was removed, archived or lost has a history, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome history crawler                             when it changed, and what of it
  wbhome history -v crawler --limit 3                every file of the last three commits
  wbhome history crawler/memory/notes.md --limit 0   all versions of a file
  wbhome restore crawler --from git --at 3f2a9c1      what one of the commits holds")]
pub(super) struct HistoryArgs {
    /// A session, or something in it
    #[arg(value_name = "SESSION[/PATH]", add = complete::inside_sessions())]
    what: String,
    /// So many commits at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(super) fn run(
    args: HistoryArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    place::refuse_astray(&home)?;
    let request = LogRequest {
        what: args.what,
        limit: args.limit,
    };
    let log = history::log(&home, &request, ctx)?;
    let again = place::again(global);
    console.result("history/1", &log, |out| {
        write(out, &log, console.verbose, &again, ctx);
    })?;
    Ok(Exit::Done)
}

fn write(out: &mut String, log: &Log, all: bool, again: &str, ctx: &Context) {
    if log.total == 0 {
        let id = human::name(log.session.as_str());
        let named = human::argument(log.session.as_str());
        let _ = writeln!(
            out,
            "No commit holds {id} yet.  Next: {again} commit {named}"
        );
        return;
    }
    for touched in &log.commits {
        write_commit(out, touched, all, ctx);
    }
    let hidden = usize::try_from(log.total).unwrap_or(usize::MAX) - log.commits.len();
    if hidden > 0 {
        let more = shortened::more(hidden, &format!(": --limit {}", log.total));
        let _ = writeln!(out, "{more}");
    }
}

fn write_commit(out: &mut String, touched: &Touched, all: bool, ctx: &Context) {
    let told = &touched.told;
    let text = format!(
        "{}, {}   {}",
        moment(told.at, ctx),
        human::age(ctx.clock.now(), told.at),
        human::escape(&told.subject)
    );
    let text = fold(&text, told.short.len() + 2, terminal_width());
    let _ = writeln!(out, "{}  {text}", styled(STRONG, &told.short));
    if let Some(was) = &touched.was {
        let _ = writeln!(out, "    was {}", human::name(was));
    }
    if all {
        for change in &touched.changes {
            let _ = writeln!(
                out,
                "    {:<9}{}   {}",
                change.change.as_str(),
                human::path(&change.path),
                sizes(change)
            );
        }
    } else if !touched.changes.is_empty() {
        let changes = fold(&summary(&touched.changes), 4, terminal_width());
        let _ = writeln!(out, "    {changes}");
    }
}

/// `1.2 kB`, or `1.2 kB → 1.4 kB`.
fn sizes(change: &Change) -> String {
    let size = |version: &Option<history::Version>| version.as_ref().map(|v| human::size(v.bytes));
    match (size(&change.before), size(&change.after)) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

/// So many changes are named when not all are.
const NAMED: usize = 4;

/// What changed, in one line: the names, or when there are many how many of each kind.
fn summary(changes: &[Change]) -> String {
    if changes.len() <= NAMED {
        let named = changes
            .iter()
            .map(|change| format!("{}{}", change.change.sign(), short(&change.path)));
        return named.collect::<Vec<_>>().join(", ");
    }
    let mut parts = Vec::new();
    for kind in [ChangeKind::Added, ChangeKind::Changed, ChangeKind::Deleted] {
        let of_kind = || changes.iter().filter(|change| change.change == kind);
        let turns = of_kind().filter(|change| is_turn(&change.path)).count() as u64;
        let files = of_kind().count() as u64 - turns;
        let sign = kind.sign();
        if turns > 0 {
            parts.push(format!("{sign}{}", human::plural(turns, "turn", "turns")));
        }
        if files > 0 {
            parts.push(format!("{sign}{}", human::plural(files, "file", "files")));
        }
    }
    parts.join(", ")
}

fn is_turn(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    path.parent() == Some(Path::new("context"))
        && name.is_some_and(|name| name.starts_with("turn_") && name.ends_with(".json"))
}

/// A turn by its number alone, everything else by its path.
fn short(path: &Path) -> String {
    match is_turn(path) {
        true => human::path(Path::new(path.file_stem().unwrap_or_default())),
        false => human::path(path),
    }
}
