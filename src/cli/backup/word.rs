//! `wbhome backup adopt` and `wbhome backup accept`: what only a person can say.

use std::fmt::Write as _;

use super::*;
use crate::backup::word::{self, Acceptance, Accepted, Adopted};
use crate::base::human;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup adopt /mnt/cold/wbhome    after the home was restored or moved to where it is now")]
pub(super) struct AdoptArgs {
    /// The store
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, add = complete::stores())]
    dir: PathBuf,
    /// Also a store of another home, or of one that is still there, in whose place this one comes
    #[arg(long)]
    force: bool,
}

pub(super) fn adopt(
    args: AdoptArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    place::refuse_untrusted(&home)?;
    let store = Store::open_to_read(&place::absolute(&args.dir)?)?;
    // Nothing is written into a store that is refused, not even its lock.
    let adoption = word::adoption(&home, &store, args.force)?;
    let adopted = match global.dry_run {
        true => adoption,
        false => {
            let store = store.lock(global.lock_wait, "backup adopt", ctx)?;
            word::adopt(&home, &store, args.force)?
        }
    };
    let schema = match global.dry_run {
        true => "backup-adopt-plan/1",
        false => "backup-adopt/1",
    };
    console.report(schema, &adopted, |out| write_adopted(out, &adopted, global))?;
    Ok(Exit::Done)
}

fn write_adopted(out: &mut String, adopted: &Adopted, global: &Global) {
    let (store, to) = (human::path(&adopted.store), human::path(&adopted.to));
    let _ = match (adopted.changed, global.dry_run) {
        (false, _) => writeln!(out, "{store} belongs to {to} already."),
        (true, false) => writeln!(
            out,
            "{store} belongs to {to} now; before, to {}.",
            human::path(&adopted.from)
        ),
        (true, true) => writeln!(
            out,
            "{store} belongs to {}, and would belong to {to}.",
            human::path(&adopted.from)
        ),
    };
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup accept 20240603_crawler    it lost turns, or is gone, and that is right
  wbhome backup accept notes/              a folder of the home that is gone, as `backup run` names it")]
pub(super) struct AcceptArgs {
    /// Sessions, by their whole ids; folders and the like, as `backup run` names them
    #[arg(required = true, value_name = "NAME", add = complete::sessions())]
    names: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn accept(
    args: AcceptArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let folders = args.store.folders(&home)?;
    let act = |folder: &Path| {
        let accepted = match global.dry_run {
            true => word::acceptance(&home, &Store::open_of(folder, &home)?, &args.names)?,
            false => {
                let store = lock(folder, &home, "backup accept", global, ctx)?;
                word::accept(&home, &store, &args.names)?
            }
        };
        Ok((accepted, Exit::Done))
    };
    let schema = match global.dry_run {
        true => "backup-accept-plan/1",
        false => "backup-accept/1",
    };
    in_each(folders, schema, global, console, act, write_accepted)
}

fn write_accepted(out: &mut String, acceptance: &Acceptance) {
    let _ = writeln!(out, "{}", styled(STRONG, human::path(&acceptance.store)));
    for Accepted { what, gone, former } in &acceptance.accepted {
        let _ = match gone {
            true => writeln!(
                out,
                "  {what}  gone: its last pack goes after [backup] keep_deleted"
            ),
            false => writeln!(
                out,
                "  {what}  holds less than it did: {} no longer kept for that",
                human::plural(*former, "former pack is", "former packs are")
            ),
        };
    }
}
