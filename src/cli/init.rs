//! `wbhome init`: make a home, or adopt a folder that has the layout.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::args::Global;
use super::output::{Console, STRONG, styled};
use super::place;
use crate::base::{Context, Error, Exit, Result, human};
use crate::home::{self, Home, Trust, USUAL_NAME};
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
        console.result("init-plan/1", &plan, |out| {
            let _ = writeln!(out, "{}", human::path(&plan.root));
            match plan.missing.is_empty() {
                true => out.push_str("is a home already; nothing would be written.\n"),
                false => {
                    let _ = writeln!(out, "would get: {}", plan.missing.join(", "));
                }
            }
        })?;
        return Ok(Exit::Done);
    }
    let made = home::initialise::apply(plan, ctx)?;
    if made.adopted && made.written.iter().any(|name| name == "index.json") {
        // The index that was missing is made of the sessions that are there.
        let home = Home::open(made.root.0.clone(), Trust::Named)?;
        let locked = place::lock(&home, "init", global, console, ctx)?;
        let plan = reconcile::plan(&locked, false, ctx)?;
        reconcile::apply(&locked, plan, ctx)?;
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
        if made.adopted {
            let _ = writeln!(
                out,
                "Next: wbhome check --home {}",
                place::quoted(&made.root)
            );
        }
    })?;
    Ok(Exit::Done)
}
