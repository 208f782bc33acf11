//! `wbhome check --repair`: look, put right what can not lose anything, look again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{CheckArgs, Found};
use crate::base::{Context, Error, Exit, Result, human};
use crate::check::repair::{self, Left, Mended, Moved, Request, What};
use crate::check::{Finding, FindingKind, Options};
use crate::cli::args::Global;
use crate::cli::output::{Console, STRONG, styled};
use crate::cli::shortened::{more, shown};
use crate::cli::{index, place};
use crate::home::{Home, IndexFile, LockedHome, SessionId};
use crate::migrate;
use crate::paths::Mapping;
use crate::sessions::{Changes, reconcile};
use crate::state::Agent;

/// What would be done.
#[derive(Serialize)]
struct Planned {
    #[serde(flatten)]
    plan: repair::Plan,
    index: Option<Changes>,
}

/// What was done, and what is still wrong.
#[derive(Serialize)]
struct Repaired {
    #[serde(flatten)]
    done: repair::Outcome,
    index: Option<Changes>,
    counts: std::collections::BTreeMap<FindingKind, u64>,
    findings: Vec<Finding>,
}

pub(super) fn run(
    args: &CheckArgs,
    home: &Home,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if !home.is_trusted() {
        return Err(
            Error::failed("was merely found, and is not changed by a repair:")
                .at(home.root())
                .hint(format!("name it: --home {}", human::quoted(home.root()))),
        );
    }
    let options = super::options(args, home)?;
    let leases = place::leases(home, ctx)?;
    for id in options.only.iter().flatten() {
        leases.refuse(&SessionId::adopt(id)?)?;
    }
    let agents = place::agents_or_refuse(home)?;
    if global.dry_run {
        let found = super::look(&options, home, &agents, Some(console), ctx)?;
        let (plan, index) = plan(args, &options, home, &found, &agents, ctx)?;
        let planned = Planned {
            plan,
            index: index.map(|plan| plan.changes),
        };
        console.result("check-repair-plan/1", &planned, |out| {
            let plan = &planned.plan;
            let index = planned.index.as_ref();
            write(out, &plan.mended, &plan.left, index, console.verbose);
            let _ = match plan.mended.is_empty() && index.is_none() {
                true => writeln!(out, "\nNothing was changed."),
                false => writeln!(out, "\nThis would be done. Nothing was changed."),
            };
        })?;
        return Ok(found.exit().merge(exit(&planned.plan.left)));
    }
    let locked = place::lock(home, "check --repair", global, console, ctx)?;
    let found = super::look(&options, &locked, &agents, Some(console), ctx)?;
    let (plan, index) = plan(args, &options, &locked, &found, &agents, ctx)?;
    let changes_index = index.is_some();
    let mut done = repair::apply(&locked, plan, ctx)?;
    let index = match changes_index {
        true => reconciled(&locked, console, ctx)?,
        false => None,
    };
    if let Some(act) = &done.act
        && !repair::settle_index(&locked, act, ctx)?
    {
        done.act = None;
    }
    if index.is_none() && !done.mended.is_empty() {
        reconcile::refresh_cache(&locked, ctx)?;
    }
    let after = super::look(&options, &locked, &agents, None, ctx)?;
    let repaired = Repaired {
        done,
        index,
        counts: after.outcome.counts.clone(),
        findings: after.outcome.findings.clone(),
    };
    console.report("check-repair/1", &repaired, |out| {
        tell(
            out,
            &repaired,
            &after,
            &place::again(global),
            console.verbose,
        );
    })?;
    Ok(after.exit().merge(exit(&repaired.done.left)))
}

/// What could not be done makes the run one that was done in part.
fn exit(left: &[Left]) -> Exit {
    match left.iter().any(|left| left.failed) {
        true => Exit::Partial,
        false => Exit::Done,
    }
}

/// What can be put right, and what the index would change.
fn plan(
    args: &CheckArgs,
    options: &Options,
    home: &Home,
    found: &Found,
    agents: &[Agent],
    ctx: &Context,
) -> Result<(repair::Plan, Option<reconcile::Plan>)> {
    // The index is the whole home's.
    let index = match options.only.is_none() && IndexFile::ready(home).is_ok() {
        true => Some(reconcile::plan(home, false, ctx)?).filter(|plan| plan.changes.any()),
        false => None,
    };
    let request = Request {
        fill: args.fill,
        moved: moved(home)?,
        agents,
        leases: place::leases(home, ctx)?,
        keep_index: index.is_some(),
        index_parses: !found.broken_index,
    };
    let plan = repair::plan(home, &found.outcome, &request, ctx)?;
    Ok((plan, index))
}

fn reconciled(home: &LockedHome, console: &Console, ctx: &Context) -> Result<Option<Changes>> {
    // Looked at again: what was put away is not there any more.
    let plan = index::agreeing(home, console, ctx)?;
    plan.refuse_if_all_are_missing()?;
    let done = reconcile::apply(home, plan, ctx)?;
    Ok(Some(done.changes).filter(Changes::any))
}

/// The places that something was moved from, and where in the home it is now.
fn moved(home: &Home) -> Result<Vec<Moved>> {
    let root = crate::disk::real_path(home.root())?;
    let within = |mapping: &Mapping| {
        let within = Path::new(&mapping.new).strip_prefix(&root).ok()?;
        Some(Moved {
            old: PathBuf::from(&mapping.old),
            within: within.to_path_buf(),
        })
    };
    Ok(migrate::moved_from(home)?
        .iter()
        .filter_map(within)
        .collect())
}

fn tell(out: &mut String, repaired: &Repaired, after: &Found, again: &str, all: bool) {
    let done = &repaired.done;
    write(out, &done.mended, &done.left, repaired.index.as_ref(), all);
    if let Some(act) = &done.act {
        let _ = writeln!(out, "\nTo take it back: {again} restore {act} --from trash");
    }
    let problems = after
        .outcome
        .findings
        .iter()
        .filter(|f| f.kind.is_problem());
    let problems = problems.count() as u64;
    let _ = match problems {
        0 => writeln!(out, "\nNothing is wrong any more."),
        n => writeln!(
            out,
            "\n{} left.  See them: {again} check",
            human::plural(n, "problem", "problems")
        ),
    };
}

/// So many of a kind are shown when not all are.
const SHOWN: usize = 3;

fn write(out: &mut String, mended: &[Mended], left: &[Left], index: Option<&Changes>, all: bool) {
    if mended.is_empty() && index.is_none() {
        let _ = writeln!(out, "Nothing to repair.");
    }
    for (what, word) in [
        (What::PutAway, "put away"),
        (What::Filled, "filled in"),
        (What::Pointed, "pointed"),
        (What::Tightened, "tightened"),
    ] {
        let of_kind: Vec<&Mended> = mended.iter().filter(|m| m.what == what).collect();
        let lines = of_kind.iter().map(|mended| {
            let path = match mended.path.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => human::path(&mended.path),
            };
            format!("{path} {}", mended.detail)
        });
        rows(out, word, lines.collect(), all);
    }
    if let Some(changes) = index {
        rows(out, "index", vec![told(changes)], all);
    }
    let (failed, left): (Vec<&Left>, Vec<&Left>) = left.iter().partition(|left| left.failed);
    if !failed.is_empty() {
        let _ = writeln!(out, "\n{}", styled(STRONG, "Could not be done"));
        for failed in failed {
            let _ = writeln!(
                out,
                "  {}   {}",
                human::path(&failed.path),
                human::escape(&failed.why)
            );
        }
    }
    if !left.is_empty() {
        let _ = writeln!(out, "\n{}", styled(STRONG, "Left for you"));
        let shown = shown(left.len(), SHOWN, all);
        for left in left.iter().take(shown) {
            let _ = writeln!(out, "  {}   {}", human::path(&left.path), left.why);
            if let Some(of) = &left.of {
                let _ = writeln!(out, "  {}", human::path(of));
            }
        }
        if shown < left.len() {
            let _ = writeln!(out, "  {}", more(left.len() - shown, ""));
        }
    }
}

fn rows(out: &mut String, word: &str, lines: Vec<String>, all: bool) {
    let shown = shown(lines.len(), SHOWN, all);
    let count = human::count(lines.len() as u64);
    for (i, line) in lines.iter().take(shown).enumerate() {
        let head = match i {
            0 => styled(STRONG, format!("{word:<10}{count:>5}")),
            _ => " ".repeat(15),
        };
        let _ = writeln!(out, "  {head}   {line}");
    }
    if shown < lines.len() {
        let more = more(lines.len() - shown, "");
        let _ = writeln!(out, "  {}   {more}", " ".repeat(15));
    }
}

/// `2 added, 1 missing`
fn told(changes: &Changes) -> String {
    let counts = [
        (changes.missing.len(), "missing"),
        (changes.renamed.len(), "renamed"),
        (changes.added.len(), "added"),
        (changes.returned.len(), "returned"),
        (changes.archived.len(), "archived"),
        (changes.completed.len(), "completed"),
    ];
    let counts = counts.iter().filter(|(n, _)| *n > 0);
    let told: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
    format!("made to agree with the disk: {}", told.join(", "))
}
