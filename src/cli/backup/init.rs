//! `wbhome backup init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::backup::init::{self, Plan, Request};
use crate::base::human;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup init /mnt/cold/wbhome
  wbhome backup init -n /mnt/cold/wbhome    what would be done, and what speaks against it")]
pub(super) struct InitArgs {
    /// A folder on another disk that does not exist yet, or is empty
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Keep the agent application's own folder there, too, although a sync client carries it, or everybody can read it
    #[arg(long)]
    with_state: bool,
    /// Make a new store where wbhome.toml names one that is not there
    #[arg(long)]
    again: bool,
}

pub(super) fn run(
    args: InitArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let mut request = Request {
        dir: place::absolute(&args.dir)?,
        with_state: args.with_state,
        again: args.again,
        set: place::set_stores(&home)?,
    };
    let plan = match global.dry_run {
        true => init::plan(&home, &request)?,
        false => {
            let locked = place::lock(&home, "backup init", global, console, ctx)?;
            request.set = place::set_stores(&locked)?;
            let plan = init::plan(&locked, &request)?;
            init::apply(&locked, plan, &request, ctx)?
        }
    };
    for note in &plan.notes {
        console.warn(note);
    }
    without_state(&home, &plan, console)?;
    let schema = match global.dry_run {
        true => "backup-init-plan/1",
        false => "backup-init/1",
    };
    console.report(schema, &plan, |out| write(out, &plan, global))?;
    Ok(Exit::Done)
}

/// What of the agent application's own folder is not going to be saved.
fn without_state(home: &Home, plan: &Plan, console: &Console) -> Result<()> {
    let usual = place::unsaved_state(home)?;
    if let Some(why) = &plan.without_state {
        console.warn(&format!(
            "the agent application's own folder is not kept there ({why}); --with-state, when the store is made, keeps it all the same"
        ));
    } else if let Some(folder) = usual {
        console.warn(&format!(
            "the agent application's own folder is not backed up: {}",
            human::path(&folder)
        ));
        console.hint(&format!(
            "it holds conversations, settings and keys; to save it, too: dir = {} below [state] in wbhome.toml",
            toml::Value::String(folder.to_string_lossy().into_owned())
        ));
    }
    Ok(())
}

fn write(out: &mut String, plan: &Plan, global: &Global) {
    let would = match global.dry_run {
        true => "would be ",
        false => "",
    };
    let store = human::path(&plan.store);
    let _ = match (plan.exists, plan.configured) {
        (true, true) => writeln!(
            out,
            "{store} is a store of this home already, and wbhome.toml names it."
        ),
        (true, false) => writeln!(
            out,
            "{store} is a store of this home already; {would}added to wbhome.toml."
        ),
        (false, true) => writeln!(out, "{store}: {would}made; wbhome.toml names it already."),
        (false, false) => writeln!(out, "{store}: {would}made, and added to wbhome.toml."),
    };
    let _ = writeln!(out, "Next: {} backup run", place::again(global));
}
