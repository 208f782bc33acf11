//! `wbhome backup verify`.

use std::fmt::Write as _;

use super::*;
use crate::backup::verify::{self, Outcome};
use crate::base::human;
use crate::cli::when::moment;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup verify          what the newest snapshot needs
  wbhome backup verify --all    what any snapshot needs")]
pub(super) struct VerifyArgs {
    /// Read the packs of all snapshots, and not only of the newest
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(
    args: VerifyArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let folders = args.store.folders(&home)?;
    let act = |folder: &Path| {
        // Nothing may be pruned meanwhile.
        let store = lock(folder, &home, "backup verify", global, ctx)?;
        let outcome = verify::verify(&store, args.all, ctx)?;
        let exit = match outcome.broken.is_empty() && outcome.unreadable.is_empty() {
            true => Exit::Done,
            false => Exit::Problems,
        };
        Ok((outcome, exit))
    };
    let write = |out: &mut String, outcome: &Outcome| write(out, outcome, ctx);
    in_each(folders, "backup-verify/1", global, console, act, write)
}

fn write(out: &mut String, outcome: &Outcome, ctx: &Context) {
    let _ = writeln!(out, "{}", styled(STRONG, human::path(&outcome.store)));
    for unreadable in &outcome.unreadable {
        let _ = writeln!(out, "  {unreadable}");
    }
    for broken in &outcome.broken {
        let _ = writeln!(
            out,
            "  broken  {}  {}  (named by the snapshot of {})\n      {}",
            broken.what,
            human::name(&broken.file),
            moment(broken.snapshot, ctx),
            human::escape(&broken.why)
        );
    }
    let whole = outcome.packs - outcome.broken.len() as u64;
    let _ = writeln!(
        out,
        "{} of {} whole, {}, {}",
        human::count(whole),
        human::plural(outcome.packs, "pack", "packs"),
        human::size(outcome.bytes),
        human::plural(outcome.snapshots, "snapshot", "snapshots")
    );
    if !outcome.broken.is_empty() {
        let _ = writeln!(
            out,
            "What is broken is packed again by the next run once its file is moved away; a restore takes the pack before it."
        );
    }
}
