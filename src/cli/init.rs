//! `wbhome init`: make a home, or adopt a folder that has the layout.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::place;
use crate::base::{Context, Error, Exit, Result, human};
use crate::home::{self, Home, Index, Trust, USUAL_NAME};
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
    let plan = home::initialise::plan(&dir)?;
    if global.dry_run {
        console.result("init-plan/1", &plan, |out| write_plan(out, &plan))?;
        return Ok(Exit::Done);
    }
    let made = home::initialise::apply(plan, ctx)?;
    if made.adopted {
        let home = Home::open(made.root.0.clone(), Trust::Named)?;
        fill_index(&home, global, console, ctx)?;
    }
    console.report("init/1", &made, |out| {
        let what = match (made.written.is_empty(), made.adopted) {
            (true, _) => "is a home already; nothing was written",
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

/// An index without any entry, as `init` writes it where none is, gets the sessions that are there. One that
/// has entries, or is broken, is somebody's: `wbhome index` is asked for by a person.
fn fill_index(home: &Home, global: &Global, console: &Console, ctx: &Context) -> Result<()> {
    if !Index::read(home).is_ok_and(|index| index.items().is_empty())
        || !reconcile::plan(home, false, ctx)?.changes.any()
    {
        return Ok(());
    }
    let locked = place::lock(home, "init", global, console, ctx)?;
    let plan = reconcile::plan(&locked, false, ctx)?;
    reconcile::apply(&locked, plan, ctx)?;
    Ok(())
}

fn write_plan(out: &mut String, plan: &home::initialise::Plan) {
    let root = human::path(&plan.root);
    if plan.missing.is_empty() {
        let _ = writeln!(out, "{root} is a home already; nothing would be written.");
        return;
    }
    let _ = match plan.adopts {
        true => writeln!(out, "{root} would be a home; what is there stays as it is."),
        false => writeln!(out, "{root} would be a home."),
    };
    let missing: Vec<&str> = plan.missing.iter().map(String::as_str).collect();
    let below = missing.into_iter().filter(|name| *name != ".");
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
