//! `wbhome init`: make a home, or adopt a folder that has the layout.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::{index, place};
use crate::base::{Context, Error, Exit, Result, human};
use crate::history;
use crate::home::{self, Config, Home, Index, Trust, USUAL_NAME, mend};
use crate::sessions::reconcile;

/// Make a home, or adopt a folder that has sessions already
///
/// Writes only what is missing, and may be run again at any time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome init                    ~/workbuddy_home
  wbhome init /data/sessions     another folder")]
pub(super) struct InitArgs {
    /// The folder [default: --home, $WBHOME, else ~/workbuddy_home]
    #[arg(value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(super) fn run(
    args: InitArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if args.dir.is_some() && global.home.is_some() {
        return Err(Error::usage("DIR and --home both name the folder")
            .hint("give one of them: wbhome init DIR"));
    }
    let dir = match args
        .dir
        .or_else(|| place::named(global).map(|(dir, _)| dir))
    {
        Some(dir) => dir,
        None => place::user_home()
            .map(|home| home.join(USUAL_NAME))
            .ok_or_else(|| {
                Error::usage("no folder is given, and $HOME is not set").hint("wbhome init DIR")
            })?,
    };
    let mut plan = home::initialise::plan(&dir)?;
    if plan.missing.iter().any(|name| name == mend::INDEX)
        && let Some(labels) = index::last_committed(&plan.root, console)
    {
        plan.index = labels;
    }
    if global.dry_run {
        let repository = match Home::open(plan.root.0.clone(), Trust::Named) {
            Ok(home) => Some(history::beginning(
                &home,
                place::git_dir(&Config::load(&home)?).as_deref(),
            )?),
            Err(_) => None,
        };
        let plan = Planned { plan, repository };
        console.result("init-plan/1", &plan, |out| write_plan(out, &plan))?;
        return Ok(Exit::Done);
    }
    let made = home::initialise::apply(plan, ctx)?;
    let home = Home::open(made.root.0.clone(), Trust::Named)?;
    let indexed = made.written.iter().any(|name| name == mend::INDEX);
    if made.adopted || indexed {
        fill_index(&home, indexed, global, console, ctx)?;
    }
    let repository = {
        let locked = place::lock(&home, "init", global, console, ctx)?;
        history::begin(
            &locked,
            place::git_dir(&Config::load(&home)?).as_deref(),
            ctx,
        )?
    };
    for line in &repository.advice {
        console.warn(&human::escape(line));
    }
    let done = Done { made, repository };
    let made = &done.made;
    console.report("init/1", &done, |out| {
        let what = match (made.written.is_empty(), made.adopted) {
            (true, _) if done.repository.adopted => "is a home already; nothing was written",
            (true, _) => "is a home already",
            (false, true) => "is a home now; what was there is untouched",
            (false, false) => "is a home now",
        };
        let _ = writeln!(out, "{} {what}.", styled(STRONG, human::path(&made.root)));
        if let Some(mode) = made.tightened {
            let _ = writeln!(
                out,
                "Others could look into it (mode {mode:04o}); it is yours alone now (0700)."
            );
        }
        if !done.repository.adopted {
            let _ = writeln!(
                out,
                "Its history begins in {}.",
                human::path(&done.repository.dir)
            );
        }
        if made.adopted && !made.written.is_empty() {
            let _ = writeln!(
                out,
                "Next: wbhome check --home {}",
                place::quoted(&made.root)
            );
        }
    })?;
    Ok(Exit::Done)
}

/// What would be made.
#[derive(Serialize)]
struct Planned {
    #[serde(flatten)]
    plan: home::initialise::Plan,
    /// Of a home that is there already; a new one gets its own.
    repository: Option<history::Beginning>,
}

/// What was made.
#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    made: home::Initialised,
    repository: history::Began,
}

/// An index that was written just now, or has no entry, gets the sessions that are there. One that was there and
/// has entries, or is broken, is somebody's: `wbhome index` is asked for by a person.
fn fill_index(
    home: &Home,
    written: bool,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<()> {
    if !Index::read(home).is_ok_and(|index| written || index.items().is_empty())
        || !reconcile::plan(home, false, ctx)?.changes.any()
    {
        return Ok(());
    }
    let locked = place::lock(home, "init", global, console, ctx)?;
    let plan = reconcile::plan(&locked, false, ctx)?;
    reconcile::apply(&locked, plan, ctx)?;
    Ok(())
}

fn write_plan(out: &mut String, planned: &Planned) {
    let plan = &planned.plan;
    let begins = planned
        .repository
        .as_ref()
        .is_none_or(|repository| !repository.exists);
    let root = human::path(&plan.root);
    if plan.missing.is_empty() {
        let written = if begins {
            "its history would begin"
        } else {
            "nothing would be written"
        };
        let _ = writeln!(out, "{root} is a home already; {written}.");
        return;
    }
    let _ = match plan.adopts {
        true => writeln!(out, "{root} would be a home; what is there stays as it is."),
        false => writeln!(out, "{root} would be a home."),
    };
    let missing: Vec<&str> = plan.missing.iter().map(String::as_str).collect();
    let git = begins.then_some(".git");
    let below = missing.into_iter().filter(|name| *name != ".").chain(git);
    let _ = writeln!(
        out,
        "Would be written: {}",
        below.collect::<Vec<_>>().join(", ")
    );
    if let Some(mode) = plan.tightens {
        let _ = writeln!(
            out,
            "Others can look into it (mode {mode:04o}); it would be yours alone (0700)."
        );
    }
}
