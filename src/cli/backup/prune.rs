//! `wbhome backup prune`.

use std::fmt::Write as _;

use super::*;
use crate::backup::prune::{self, Plan};
use crate::base::human;
use crate::cli::when::moment;

pub(super) fn run(
    args: StoreArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let keep = Config::load(&home)?.backup;
    let keep = prune::Keep {
        snapshots: keep.keep,
        deleted: keep.keep_deleted,
    };
    let folders = args.folders(&home)?;
    let (dry_run, verbose) = (global.dry_run, console.verbose);
    let act = |folder: &Path| {
        let plan = match dry_run {
            true => prune::plan(&Store::open_of(folder, &home)?, keep, ctx)?,
            false => {
                let store = lock(folder, &home, "backup prune", global, ctx)?;
                let plan = prune::plan(&store, keep, ctx)?;
                prune::apply(&store, plan, ctx)?
            }
        };
        Ok((plan, Exit::Done))
    };
    let schema = match dry_run {
        true => "backup-prune-plan/1",
        false => "backup-prune/1",
    };
    let write = |out: &mut String, plan: &Plan| write(out, plan, dry_run, verbose, ctx);
    in_each(folders, schema, global, console, act, write)
}

fn write(out: &mut String, plan: &Plan, dry_run: bool, verbose: bool, ctx: &Context) {
    let _ = writeln!(out, "{}", styled(STRONG, human::path(&plan.store)));
    if dry_run || verbose {
        for at in &plan.snapshots {
            let _ = writeln!(out, "  snapshot of {}", moment(*at, ctx));
        }
        for pack in &plan.packs {
            let file = human::name(&pack.file);
            let _ = writeln!(out, "  {file}  {}", human::size(pack.bytes));
        }
    }
    let removed = match dry_run {
        true => "would be removed",
        false => "removed",
    };
    let _ = writeln!(
        out,
        "{} and {} {removed}, {}; {} and {} stay",
        human::plural(plan.snapshots.len() as u64, "snapshot", "snapshots"),
        human::plural(plan.packs.len() as u64, "pack", "packs"),
        human::size(plan.bytes),
        human::plural(plan.snapshots_kept, "snapshot", "snapshots"),
        human::plural(plan.packs_kept, "pack", "packs")
    );
    if !plan.unknown.is_empty() {
        let _ = writeln!(
            out,
            "  {} of things that no snapshot knows: kept for [backup] keep_deleted",
            human::plural(plan.unknown.len() as u64, "pack is", "packs are")
        );
        for pack in plan.unknown.iter().filter(|_| verbose) {
            let _ = writeln!(out, "  {}", human::name(&pack.file));
        }
    }
}
