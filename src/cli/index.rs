//! `wbhome index`: the index agrees with the disk.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::place;
use crate::base::{Context, Exit, Result, human};
use crate::disk;
use crate::history;
use crate::home::{Home, Index, LockedHome, mend};
use crate::sessions::{Changes, reconcile};

/// Make index.json agree with the disk, and say what changed
///
/// Labels are kept. A folder renamed by hand is recognised by its session.json. An entry whose session is
/// found nowhere becomes `missing` and stays until you decide. Where index.json is gone, the labels are those of
/// the last commit.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome index              after sessions were added, renamed or removed by hand
  wbhome index --rebuild    when index.json itself is damaged; the damaged one goes to the trash")]
pub(super) struct IndexArgs {
    /// Make it anew, with the labels of the old one if that can be read, else of the last commit
    #[arg(long)]
    rebuild: bool,
}

pub(super) fn run(
    args: IndexArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    if global.dry_run {
        let plan = plan(&home, args.rebuild, console, ctx)?;
        console.result("index-plan/1", &plan, |out| {
            write(out, &plan.changes, plan.rebuild)
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(&home, "index", global, console, ctx)?;
    let plan = plan(&locked, args.rebuild, console, ctx)?;
    let rebuilt = plan.rebuild;
    let done = reconcile::apply(&locked, plan, ctx)?;
    for stranger in &done.views.foreign {
        console.warn(&format!(
            "{stranger} is none of the links that wbhome makes; it was left alone"
        ));
    }
    for project in &done.views.unusable {
        // Escaped where it was noted.
        console.warn(&format!(
            "`{project}` can not be a folder in projects/: the sessions of that project have no view"
        ));
    }
    for stranger in &done.strangers {
        console.warn(&format!(
            "{} can not be indexed: its name is not UTF-8, or longer than 200 bytes",
            human::path(stranger)
        ));
    }
    console.report("index/1", &done, |out| {
        write(out, &done.changes, rebuilt);
        if let Some(former) = &done.former_index {
            let _ = writeln!(out, "The former index is kept: {former}");
        }
    })?;
    Ok(Exit::Done)
}

fn plan(home: &Home, rebuild: bool, console: &Console, ctx: &Context) -> Result<reconcile::Plan> {
    if !rebuild {
        return agreeing(home, console, ctx);
    }
    let labels = match Index::read(home) {
        Ok(_) if disk::exists(&home.index_file()) => None,
        _ => last_committed(home.root(), console),
    };
    reconcile::plan_anew(home, labels, ctx)
}

/// How the index would agree with the disk. One that is gone is not made without the labels that a commit holds.
///
/// # Errors
/// It is gone, and what commits hold can not be read: nobody would ever know again that there were labels.
pub(super) fn agreeing(home: &Home, console: &Console, ctx: &Context) -> Result<reconcile::Plan> {
    if disk::exists(&home.index_file()) {
        return reconcile::plan(home, false, ctx);
    }
    match labels_of_commits(home)? {
        Some(labels) => {
            say_whence(home.root(), console);
            reconcile::plan_anew(home, Some(labels), ctx)
        }
        None => reconcile::plan(home, false, ctx),
    }
}

/// Makes the index anew where it is gone and a commit holds one.
///
/// # Errors
/// As [`agreeing`], and what can not be written.
pub(super) fn bring_back(home: &LockedHome, console: &Console, ctx: &Context) -> Result<()> {
    if disk::exists(&home.index_file()) || labels_of_commits(home)?.is_none() {
        return Ok(());
    }
    let plan = agreeing(home, console, ctx)?;
    reconcile::apply(home, plan, ctx).map(|_| ())
}

fn labels_of_commits(home: &Home) -> Result<Option<Index>> {
    history::last_index(home.root()).map_err(|error| {
        error
            .hint("index.json is gone, and its labels are in the commits")
            .hint("`wbhome index --rebuild` makes one without them")
    })
}

/// The newest index that a commit holds whole, in the place of the present one, which is gone or can not be read.
pub(super) fn last_committed(root: &Path, console: &Console) -> Option<Index> {
    let labels = history::last_index(root).unwrap_or_else(|error| {
        console.warn(&format!(
            "what commits hold of the index can not be read: {error}"
        ));
        None
    })?;
    say_whence(root, console);
    Some(labels)
}

fn say_whence(root: &Path, console: &Console) {
    let why = match disk::exists(&root.join(mend::INDEX)) {
        true => "can not be read",
        false => "is gone",
    };
    console.note(&format!(
        "index.json {why}: the labels are those of the last commit that has a whole one"
    ));
}

fn write(out: &mut String, changes: &Changes, rebuilt: bool) {
    let mut row = |what: &str, ids: &[String]| {
        for (i, id) in ids.iter().enumerate() {
            let head = if i == 0 { what } else { "" };
            let _ = writeln!(out, "  {head:<10} {}", human::name(id));
        }
    };
    let renamed: Vec<String> = changes
        .renamed
        .iter()
        .map(|r| format!("{} → {}", r.from, r.to))
        .collect();
    row("missing", &changes.missing);
    row("renamed", &renamed);
    row("added", &changes.added);
    row("returned", &changes.returned);
    row("archived", &changes.archived);
    row("completed", &changes.completed);
    for problem in &changes.problems {
        let _ = writeln!(
            out,
            "  {:<10} {}   {}",
            "problem",
            human::name(&problem.id),
            human::escape(&problem.why)
        );
    }
    if changes.not_entries > 0 {
        let what = match rebuilt {
            true => "of the former index can not be entries: left out",
            false => "of the index are no entries: kept as they are",
        };
        let elements = human::plural(changes.not_entries, "element", "elements");
        let _ = writeln!(out, "  {elements} {what}");
    }
    let entries = human::plural(changes.entries, "entry", "entries");
    let _ = match changes.any() || !changes.problems.is_empty() {
        true => writeln!(
            out,
            "{}, {} unchanged.",
            styled(STRONG, entries),
            human::count(changes.unchanged)
        ),
        false => writeln!(out, "{entries}, all as on the disk."),
    };
}
