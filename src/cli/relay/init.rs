//! `wbhome relay init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::home::{Device, RelayMode};
use crate::relay::init::{self, Plan, Request};

/// Make a folder the relay of this home on this device
///
/// The folder is one that an external sync client carries, or a folder in it; each device has its own. The mode has to be chosen:
/// clone: copies; what was checked is what leaves, and nothing flows back by itself.
/// hardlink: no second copy, but a write in place passes both ways, and what is appended later leaves unchecked.
/// symlink: one link a session, logs too; many clients do not follow it, and what is written later leaves unchecked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay init ~/Sync/relay --mode clone
  wbhome relay init ~/Sync/relay --mode hardlink    another mode: the next sync converts")]
pub(super) struct InitArgs {
    /// A folder that a sync client carries, or one in it; made where it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// How sessions get there: clone, hardlink or symlink
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<RelayMode>,
}

fn mode(text: &str) -> Result<RelayMode, String> {
    let modes = [RelayMode::Clone, RelayMode::Hardlink, RelayMode::Symlink];
    let found = modes.into_iter().find(|mode| mode.word() == text);
    found.ok_or_else(|| "the modes are clone, hardlink and symlink".to_owned())
}

/// What a mode means, in a line.
fn meaning(mode: RelayMode) -> &'static str {
    match mode {
        RelayMode::Clone => {
            "copies; what was checked is what leaves, and nothing flows back by itself"
        }
        RelayMode::Hardlink => {
            "no second copy; a write in place passes both ways, and what is appended later leaves unchecked"
        }
        RelayMode::Symlink => {
            "one link a session, logs too; many sync clients do not follow it, and what is written later leaves unchecked"
        }
    }
}

fn ask_for_a_mode(args: &InitArgs, global: &Global) -> Error {
    let dir = place::quoted(&args.dir);
    let again = place::again(global);
    let modes = [RelayMode::Clone, RelayMode::Hardlink, RelayMode::Symlink];
    let error = Error::usage("how sessions get into the relay has to be chosen: --mode");
    let lines = modes.map(|mode| format!("{}: {}", mode.word(), meaning(mode)));
    let error = lines.into_iter().fold(error, Error::hint);
    error.hint(format!("{again} relay init {dir} --mode clone"))
}

pub(super) fn run(
    args: InitArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let Some(mode) = args.mode else {
        return Err(ask_for_a_mode(&args, global));
    };
    let home = place::open(global)?;
    place::refuse_untrusted(&home)?;
    let request = Request {
        dir: place::absolute(&args.dir)?,
        mode,
        set: place::relay_dir(&home)?,
    };
    let data = place::user_data()?;
    let plan = match global.dry_run {
        true => init::plan(&home, Device::known(&data)?.as_ref(), &request)?,
        false => {
            let locked = place::lock(&home, "relay init", global, console, ctx)?;
            let device = Device::of_user(&data, ctx)?;
            let plan = init::plan(&locked, Some(&device), &request)?;
            init::apply(&locked, &device, plan, ctx)?
        }
    };
    for note in &plan.notes {
        console.note(&place::spelled(note, &place::again(global)));
    }
    let schema = match global.dry_run {
        true => "relay-init-plan/1",
        false => "relay-init/1",
    };
    console.report(schema, &plan, |out| write(out, &plan, global))?;
    Ok(Exit::Done)
}

fn write(out: &mut String, plan: &Plan, global: &Global) {
    let relay = human::path(&plan.relay);
    let word = plan.mode.word();
    let _ = match (plan.bound, global.dry_run) {
        (true, _) => writeln!(out, "{relay} is a relay of this home already."),
        (false, true) => writeln!(out, "{relay} would be the relay of this home."),
        (false, false) => writeln!(out, "{relay} is the relay of this home now."),
    };
    let _ = writeln!(out, "{word}: {}.", meaning(plan.mode));
    if let Some(former) = plan.former_mode {
        let former = former.word();
        let _ = writeln!(
            out,
            "It was {former}: the next sync converts what is there."
        );
    }
    if let Some(former) = &plan.former {
        let former = human::path(std::path::Path::new(former));
        let _ = writeln!(out, "What was put into {former} stays there.");
    }
    let again = place::again(global);
    let _ = writeln!(
        out,
        "Next: {again} label SESSION --sync-tag TAG, then {again} relay sync"
    );
}
