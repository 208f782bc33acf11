//! `wbhome restore SESSION[/PATH]`, out of a cold store or out of the session's archive.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{From, Global, RestoreArgs, WOULD, back};
use crate::backup::Store;
use crate::backup::bring_back::{self, Outcome, Plan, Request};
use crate::base::{Context, Error, Exit, Result, human, parse_when};
use crate::cli::output::{Console, STRONG, styled};
use crate::cli::place;
use crate::cli::when::{dated, moment};
use crate::home::Home;
use crate::sessions::reconcile;

pub(super) fn run(
    home: &Home,
    what: String,
    from: From,
    args: &RestoreArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let current = place::current_folder()?;
    let at = match &args.at {
        Some(when) => Some(parse_when(when, &ctx.clock.zoned())?),
        None => None,
    };
    let request = Request {
        what,
        from: match from {
            From::Backup => bring_back::From::Store {
                store: store(home, args, &current, at)?,
                at,
            },
            _ => bring_back::From::Archive,
        },
        to: args.to.as_ref().map(|to| current.join(to)),
        force: args.force,
    };
    let agents = place::agents_or_refuse(home)?;
    let plan =
        |home: &Home| bring_back::plan(home, &request, &agents, &place::leases(home, ctx)?, ctx);
    if global.dry_run {
        let plan = plan(home)?;
        warn_skipped(&plan, console);
        console.result("restore-packed-plan/1", &plan, |out| {
            write(out, &plan, ctx);
            let _ = writeln!(out, "{WOULD}");
        })?;
        return Ok(Exit::Done);
    }
    if request.to.is_some() {
        let plan = plan(home)?;
        warn_skipped(&plan, console);
        let done = bring_back::apply_elsewhere(home, plan, &request, ctx)?;
        return report(&done, None, console, ctx);
    }
    let locked = place::lock(home, "restore", global, console, ctx)?;
    let plan = plan(&locked)?;
    warn_skipped(&plan, console);
    let done = bring_back::apply(&locked, plan, &request, ctx)?;
    let agreed = reconcile::plan(&locked, false, ctx)?;
    reconcile::apply(&locked, agreed, ctx)?;
    let again = done
        .kept
        .as_ref()
        .map(|act| back(act, &locked, global, ctx));
    report(&done, again, console, ctx)
}

/// The store that is asked for, or of those in the settings the one with the newest snapshot that is not too new.
fn store(
    home: &Home,
    args: &RestoreArgs,
    current: &Path,
    at: Option<jiff::Timestamp>,
) -> Result<PathBuf> {
    if let Some(store) = &args.store {
        let folder = current.join(store);
        let opened = Store::open_to_read(&folder)?;
        if opened.marker().home != home.id() {
            return Err(Error::failed("the store belongs to another home:")
                .at(&folder)
                .hint(format!(
                    "`wbhome restore --all --from {} --to DIR` brings that one back, in a folder of its own",
                    human::quoted(&folder)
                )));
        }
        return Ok(folder);
    }
    let mut best = None;
    let mut failed = None;
    for folder in place::stores(home)? {
        match Store::open_to_read(&folder).and_then(|store| store.snapshots()) {
            Ok(snapshots) => {
                let fits = |one: &&jiff::Timestamp| at.is_none_or(|at| **one <= at);
                let newest = snapshots.iter().rfind(fits).copied();
                if best.as_ref().is_none_or(|(known, _)| newest > *known) {
                    best = Some((newest, folder));
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    match (best, failed) {
        (Some((_, folder)), _) => Ok(folder),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::failed("no backup store is set")),
    }
}

fn warn_skipped(plan: &Plan, console: &Console) {
    for line in &plan.skipped {
        console.warn(&format!("passed over: {line}"));
    }
}

fn write(out: &mut String, plan: &Plan, ctx: &Context) {
    let from = match (&plan.store, plan.snapshot) {
        (Some(store), Some(snapshot)) => {
            format!("{}, snapshot {}", human::path(store), moment(snapshot, ctx))
        }
        _ => "its archive".to_owned(),
    };
    let _ = writeln!(
        out,
        "{}  as of {}, from {from}",
        styled(STRONG, human::name(plan.session.as_str())),
        dated(plan.at, ctx),
    );
    if let Some(was) = &plan.was {
        let _ = writeln!(out, "It was called {} then.", human::name(was));
    }
    let more = match plan.replaces {
        true => "   in the place of what was there",
        false => "",
    };
    let _ = writeln!(out, "  {:<9}{}{more}", "back", human::path(&plan.to));
}

fn report(done: &Outcome, again: Option<String>, console: &Console, ctx: &Context) -> Result<Exit> {
    for not_used in &done.not_used {
        console.warn(&format!(
            "a pack is of no use, {}: {}",
            human::name(&not_used.file),
            not_used.why
        ));
    }
    for partial in &done.partial {
        console.warn(&format!(
            "there is a newer pack, in which not everything could be read: {}",
            human::name(partial)
        ));
    }
    for missing in &done.missing {
        console.warn(&format!(
            "could not be brought back: {} ({})",
            human::path(&missing.path),
            human::escape(&missing.why)
        ));
    }
    for left in &done.left {
        console.warn(&human::escape(left));
    }
    console.report("restore-packed/1", done, |out| {
        write(out, &done.done, ctx);
        let _ = writeln!(
            out,
            "{} back, {}, compared.",
            human::plural(done.files, "file", "files"),
            human::size(done.bytes)
        );
        if let Some(again) = &again {
            let _ = writeln!(out, "What was there is in the trash.  Back again: {again}");
        }
    })?;
    Ok(match done.is_complete() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}
