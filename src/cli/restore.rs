//! `wbhome restore`: what was put into the trash, back again; a whole second version in the place of a damaged
//! file; what a commit holds, or an archive, or a cold store. And a whole home out of a store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::args::Global;
use super::complete;

use super::output::{Console, STRONG, styled};
use super::place;
use super::shortened::{more, shown};
use crate::base::{Context, Error, Exit, Result, human};
use crate::check::twin;
use crate::history::bring_back;
use crate::home::{Home, resolve_in, split};
use crate::sessions::reconcile;
use crate::sessions::restore::{self, Listing, Plan, Request};

mod all;
mod packed;

/// Bring back a session, a file, what one command has put away, or a whole home
///
/// Nothing that is there is written over: it is refused, and with --force goes into the trash itself. Without
/// SESSION or ACT, lists what the trash holds. With --all, a whole home comes out of a backup store, into a folder that
/// is new or empty; it needs no home, and nothing but the store.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome restore --from trash                                      what the trash holds
  wbhome restore 20240603_crawler --from trash                     a session that was removed
  wbhome restore 20240615T120000Z-2 --from trash                   all that one command has done
  wbhome restore crawler/context/turn_005.json --from twin         the whole copy beside a torn file
  wbhome restore crawler/memory --from git --at yesterday          as the last commit before today
  wbhome restore crawler --from backup --at 2024-06-10             as the cold store has it
  wbhome restore crawler/memory --from archive                     out of the session's own archive
  wbhome restore --all --from /mnt/cold/wbhome --to ~/workbuddy_home   a whole home, out of a store")]
pub(super) struct RestoreArgs {
    /// A session or something in it; or an act of the trash
    #[arg(value_name = "SESSION[/PATH]|ACT", add = complete::restorable())]
    what: Option<String>,
    /// From where: trash, twin, git, archive or backup; with --all, the folder of a backup store
    #[arg(long, value_name = "PLACE|STORE", value_hint = ValueHint::DirPath, add = complete::restore_places())]
    from: PathBuf,
    /// As of when: from git a commit or a moment [default: the last commit], from a store a moment [default: the newest
    /// snapshot]
    #[arg(long, value_name = "REV|WHEN")]
    at: Option<String>,
    /// Put what is in the way into the trash; with --all: also a repository that does not know the home, and where room
    /// seems to lack
    #[arg(long)]
    force: bool,
    /// A whole home, out of a store
    #[arg(long, conflicts_with = "what")]
    all: bool,
    /// This store alone, from backup [default: each [[backup.store]] in wbhome.toml, the one with the newest snapshot]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "all", add = complete::stores())]
    store: Option<PathBuf>,
    /// Into a folder that is new or empty, and not into the home; from archive or backup, and with --all
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: Option<PathBuf>,
    /// With --all: the repository of the home, if it has survived; newer text in it is laid over
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "all")]
    git: Option<PathBuf>,
    /// With --all: a folder, new or empty, for what the store has of the agent application's own folder; without --to only
    /// that comes back
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "all")]
    state_to: Option<PathBuf>,
}

/// From where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// What commands have put away
    Trash,
    /// The second version that a sync client has left beside it
    Twin,
    /// A commit
    Git,
    /// The session's own archive
    Archive,
    /// A cold store
    Backup,
}

/// What --from may name, with what it is.
pub(super) const PLACES: [(&str, &str); 5] = [
    ("trash", "What commands have put away"),
    (
        "twin",
        "The second version that a sync client has left beside it",
    ),
    ("git", "A commit"),
    ("archive", "The session's own archive"),
    ("backup", "A cold store"),
];

fn from(named: &Path) -> Result<From> {
    Ok(match named.to_str() {
        Some("trash") => From::Trash,
        Some("twin") => From::Twin,
        Some("git") => From::Git,
        Some("archive") => From::Archive,
        Some("backup") => From::Backup,
        _ => {
            let places = PLACES.map(|(name, _)| name).join(", ");
            return Err(Error::usage(format!(
                "nothing is brought back from `{}`",
                human::path(named)
            ))
            .hint(format!("--from is one of {places}"))
            .hint("a whole home comes out of a store with --all"));
        }
    })
}

pub(super) fn run(
    args: RestoreArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if args.all {
        return all::run(args, global, console, ctx);
    }
    let from = from(&args.from)?;
    if args.at.is_some() && !matches!(from, From::Git | From::Backup) {
        return Err(Error::usage(
            "--at is a matter of --from git and --from backup alone",
        ));
    }
    if args.to.is_some() && !matches!(from, From::Archive | From::Backup) {
        return Err(Error::usage(
            "--to is a matter of --from archive, --from backup and --all alone",
        ));
    }
    if args.store.is_some() && from != From::Backup {
        return Err(Error::usage("--store is a matter of --from backup alone"));
    }
    let home = place::open(global)?;
    match (from, args.what.clone()) {
        (From::Archive | From::Backup, None) => Err(Error::usage("no session was named").hint(
            "write wbhome restore SESSION[/PATH] --from backup; a whole home comes out of a store with --all",
        )),
        (From::Archive | From::Backup, Some(what)) => {
            packed::run(&home, what, from, &args, global, console, ctx)
        }
        (From::Git, None) => Err(Error::usage("no session was named")
            .hint("write wbhome restore SESSION[/PATH] --from git")),
        (From::Git, Some(what)) => {
            let request = bring_back::Request {
                what,
                at: args.at,
                force: args.force,
            };
            from_git(&home, &request, global, console, ctx)
        }
        (From::Trash, None) => {
            let listing = restore::list(&home, ctx)?;
            console.result("trash/1", &listing, |out| {
                write_list(out, &listing, &place::again(global), ctx, console)
            })?;
            Ok(Exit::Done)
        }
        (From::Twin, None) => {
            Err(Error::usage("no file was named")
                .hint("write wbhome restore SESSION/PATH --from twin"))
        }
        (From::Trash, Some(what)) => {
            let request = Request {
                what,
                force: args.force,
            };
            from_trash(&home, &request, global, console, ctx)
        }
        (From::Twin, Some(what)) => from_twin(&home, &what, args.force, global, console, ctx),
    }
}

fn from_trash(
    home: &Home,
    request: &Request,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let agents = place::agents_or_refuse(home)?;
    if global.dry_run {
        let plan = restore::plan(home, request, &agents, &place::leases(home, ctx)?, ctx)?;
        warn(&plan, global, console);
        console.result("restore-plan/1", &plan, |out| {
            write(out, &plan);
            let _ = writeln!(out, "{WOULD}");
        })?;
        return Ok(exit(&plan));
    }
    let locked = place::lock(home, "restore", global, console, ctx)?;
    let plan = restore::plan(
        &locked,
        request,
        &agents,
        &place::leases(&locked, ctx)?,
        ctx,
    )?;
    let done = restore::apply(&locked, plan, ctx)?;
    warn(&done.done, global, console);
    console.report("restore/1", &done, |out| {
        write(out, &done.done);
        if let Some(act) = &done.kept {
            let back = back(act, &locked, global, ctx);
            let _ = writeln!(out, "What was there is in the trash.  Back again: {back}");
        }
    })?;
    Ok(exit(&done.done))
}

/// What a dry run ends with.
const WOULD: &str = "This would be done. Nothing was changed.";

fn warn(plan: &Plan, global: &Global, console: &Console) {
    for line in &plan.left {
        let line = place::spelled(line, &place::again(global));
        console.warn(&human::escape(&line));
    }
}

fn exit(plan: &Plan) -> Exit {
    match plan.left.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    }
}

fn write(out: &mut String, plan: &Plan) {
    let mut line = |what: &str, path: &Path, more: &str| {
        let shown = match path.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => human::path(path),
        };
        let _ = writeln!(out, "  {what:<9}{shown}{more}");
    };
    for back in &plan.back {
        let more = match back.replaces {
            true => "   in the place of what was there",
            false => "",
        };
        line("back", &back.path, more);
    }
    for away in &plan.away {
        line("away", away, "   it had been added");
    }
    for mode in &plan.modes {
        line("mode", &mode.path, &format!("   {:04o}", mode.mode));
    }
    for session in &plan.sessions {
        let _ = writeln!(out, "  {:<9}{}", "indexed", human::name(session));
    }
}

/// The command that takes an act back.
fn back(act: &str, home: &Home, global: &Global, ctx: &Context) -> String {
    let force = match restore::needs_force(home, act, ctx) {
        true => " --force",
        false => "",
    };
    format!("{} restore {act} --from trash{force}", place::again(global))
}

fn from_twin(
    home: &Home,
    what: &str,
    force: bool,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let (query, rel) = split(what)?;
    if rel.is_empty() {
        return Err(
            Error::usage("a session has no second version that could be told from it")
                .hint("write wbhome restore SESSION/PATH --from twin"),
        );
    }
    let id = resolve_in(home, query)?;
    let path = Path::new("sessions").join(id.as_str()).join(rel.as_path());
    let agents = place::agents_or_refuse(home)?;
    if global.dry_run {
        let plan = twin::plan(home, &path, force, &agents, &place::leases(home, ctx)?, ctx)?;
        console.result("restore-twin-plan/1", &plan, |out| {
            write_twin(out, &plan, "would hold what");
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(home, "restore", global, console, ctx)?;
    let plan = twin::plan(
        &locked,
        &path,
        force,
        &agents,
        &place::leases(&locked, ctx)?,
        ctx,
    )?;
    let done = twin::apply(&locked, plan, ctx)?;
    if let Some(left) = &done.left {
        console.warn(&human::escape(left));
    }
    console.report("restore-twin/1", &done, |out| {
        if done.left.is_none() {
            write_twin(out, &done.done, "holds what");
        }
        if let Some(act) = &done.kept {
            let back = back(act, &locked, global, ctx);
            let told = match done.done.replaces {
                true => "The former one is in the trash.  Back again",
                false => "To take it back",
            };
            let _ = writeln!(out, "{told}: {back}");
        }
    })?;
    Ok(match done.left {
        None => Exit::Done,
        Some(_) => Exit::Partial,
    })
}

fn write_twin(out: &mut String, plan: &twin::Plan, holds: &str) {
    let _ = writeln!(
        out,
        "{}\n  {holds} {} holds, which stays",
        styled(STRONG, human::path(&plan.path)),
        human::path(&plan.twin)
    );
}

fn from_git(
    home: &Home,
    request: &bring_back::Request,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let agents = place::agents_or_refuse(home)?;
    let warn = |left: &[String]| {
        for line in left {
            console.warn(&human::escape(line));
        }
        match left.is_empty() {
            true => Exit::Done,
            false => Exit::Partial,
        }
    };
    if global.dry_run {
        let plan = bring_back::plan(home, request, &agents, &place::leases(home, ctx)?, ctx)?;
        console.result("restore-git-plan/1", &plan, |out| {
            write_git(out, &plan, console.verbose);
            let _ = writeln!(out, "{WOULD}");
        })?;
        return Ok(warn(&plan.left));
    }
    let locked = place::lock(home, "restore", global, console, ctx)?;
    let plan = bring_back::plan(
        &locked,
        request,
        &agents,
        &place::leases(&locked, ctx)?,
        ctx,
    )?;
    let done = bring_back::apply(&locked, plan, ctx)?;
    reconcile::refresh_cache(&locked, ctx)?;
    console.report("restore-git/1", &done, |out| {
        write_git(out, &done.done, console.verbose);
        if let Some(act) = &done.kept {
            let back = back(act, &locked, global, ctx);
            let told = match done.done.files.iter().any(|back| back.replaces) {
                true => "What was there is in the trash.  Back again",
                false => "To take it back",
            };
            let _ = writeln!(out, "{told}: {back}");
        }
    })?;
    Ok(warn(&done.done.left))
}

/// So many files are named when not all are.
const FILES: usize = 10;

fn write_git(out: &mut String, plan: &bring_back::Plan, all: bool) {
    let session = human::name(plan.session.as_str());
    let from = &plan.from;
    let _ = writeln!(
        out,
        "{}  from {}, {}",
        styled(STRONG, &session),
        from.short,
        human::escape(&from.subject)
    );
    if let Some(was) = &plan.was {
        let _ = writeln!(out, "It was called {} then.", human::name(was));
    }
    let shown = shown(plan.files.len(), FILES, all);
    for back in &plan.files[..shown] {
        let more = match back.replaces {
            true => "   in the place of what was there",
            false => "",
        };
        let _ = writeln!(out, "  {:<9}{}{more}", "back", human::path(&back.path));
    }
    if shown < plan.files.len() {
        let _ = writeln!(out, "  {}", more(plan.files.len() - shown, ": -v"));
    }
    if plan.indexed {
        let _ = writeln!(out, "  {:<9}{session}", "indexed");
    }
    let count = |n: u64| human::plural(n, "file", "files");
    let mut counts = vec![format!("{} back", count(plan.files.len() as u64))];
    if plan.same > 0 {
        counts.push(format!(
            "{} as in the commit already",
            human::count(plan.same)
        ));
    }
    if plan.stays > 0 {
        counts.push(format!(
            "{} not in the commit, which stay",
            human::count(plan.stays)
        ));
    }
    let _ = writeln!(out, "{}.", counts.join(", "));
}

/// So many of an act are shown when not all are.
const SHOWN: usize = 3;

fn write_list(out: &mut String, listing: &Listing, again: &str, ctx: &Context, console: &Console) {
    if listing.acts.is_empty() {
        let _ = writeln!(out, "The trash is empty.");
        return;
    }
    let _ = writeln!(
        out,
        "{}",
        styled(
            STRONG,
            format!(
                "{} · {} · {}",
                human::plural(listing.acts.len() as u64, "act", "acts"),
                human::plural(listing.files, "file", "files"),
                human::size(listing.bytes)
            )
        )
    );
    for act in &listing.acts {
        let age = act
            .at
            .map(|at| human::age(ctx.clock.now(), at))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "\n{}   {age}, {}   {}",
            styled(STRONG, human::name(&act.act)),
            human::size(act.bytes),
            human::escape(&act.why)
        );
        let shown = shown(act.items.len(), SHOWN, console.verbose);
        for item in act.items.iter().take(shown) {
            let why = item
                .why
                .as_deref()
                .map(|why| format!("   {}", human::escape(why)));
            let path = match item.path.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => human::path(&item.path),
            };
            let _ = writeln!(out, "  {:<9}{path}{}", item.what, why.unwrap_or_default());
        }
        if shown < act.items.len() {
            let _ = writeln!(out, "  {}", more(act.items.len() - shown, ""));
        }
    }
    let _ = writeln!(out, "\nBack again: {again} restore ACT --from trash");
}
