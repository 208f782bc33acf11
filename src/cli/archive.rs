//! `wbhome archive`: sessions into packs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;

use super::args::{Global, age};
use super::output::{Console, STRONG, styled};
use super::shortened::{more, shown};
use super::{complete, place};
use crate::archive::Refused;
use crate::archive::away::{self, Done, Left, Missing, Outcome, Plan, Reason, Request, Which};
use crate::base::{Context, Exit, Result, human};
use crate::home::{Config, resolve_all};

/// Put sessions into archive/, each as one .tar.zst, and take their folders away
///
/// A pack is read back and compared before the folder goes, and the folder is compared with it once more. Labels stay in
/// the index. `wbhome unarchive` brings a session back exactly; `tar --zstd -xf` does so without wbhome. A session in
/// which somebody is at work is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome archive 20240603_crawler
  wbhome archive --idle              those that have rested for [archive] idle in wbhome.toml, 30d
  wbhome archive --idle 90d -n       which would be archived, and why the others not
  wbhome archive crawler --keep      the pack, and the folder too")]
pub(super) struct ArchiveArgs {
    /// Sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(required_unless_present = "idle", value_name = "SESSION", add = complete::active_sessions())]
    sessions: Vec<String>,
    /// All sessions in which nothing was written for so long [default: [archive] idle in wbhome.toml]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = age, conflicts_with = "sessions")]
    idle: Option<Option<Duration>>,
    /// Leave the folders in sessions/
    #[arg(long)]
    keep: bool,
    /// Pack what is being written, and leave its folder; put another archive of that name into the trash
    #[arg(long)]
    force: bool,
}

pub(super) fn run(
    args: ArchiveArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let config = Config::load(&home)?.archive;
    let which = match args.idle {
        Some(rest) => Which::Idle(rest.unwrap_or(config.idle)),
        None => Which::Named(resolve_all(&home, &args.sessions)?),
    };
    let request = Request {
        which,
        keep: args.keep,
        force: args.force,
        level: config.level,
    };
    let agents = place::agents_or_refuse(&home)?;
    if global.dry_run {
        let leases = place::leases(&home, ctx)?;
        let plan = away::plan(&home, &request, &agents, &leases, ctx)?;
        let exit = exit(
            &plan.refused,
            plan.sessions.len() + plan.already.len(),
            true,
        );
        refused(&plan.refused, exit, global, console);
        console.result("archive-plan/1", &plan, |out| {
            write_plan(out, &plan, console)
        })?;
        return Ok(exit);
    }
    let locked = place::lock(&home, "archive", global, console, ctx)?;
    let leases = place::leases(&locked, ctx)?;
    let plan = away::plan(&locked, &request, &agents, &leases, ctx)?;
    let now = || place::agents_or_refuse(&locked);
    let done = away::apply(&locked, plan, &request, &now, ctx)?;
    for session in &done.sessions {
        warn(session, console);
    }
    let exit = exit(
        &done.refused,
        done.sessions.len() + done.already.len(),
        done.sessions.iter().all(Done::is_whole),
    );
    refused(&done.refused, exit, global, console);
    console.report("archive/1", &done, |out| write(out, &done, global, console))?;
    Ok(match done.interrupted {
        true => interrupted(console),
        false => exit,
    })
}

/// What is done stands; the same command does the rest.
pub(super) fn interrupted(console: &Console) -> Exit {
    console.warn("interrupted: what is done stands, and nothing is half done");
    console.hint("the same command goes on");
    Exit::Interrupted
}

/// Those that were refused, and what can be done about them: errors, where nothing else was done.
pub(super) fn refused(refused: &[Refused], exit: Exit, global: &Global, console: &Console) {
    let again = place::again(global);
    for one in refused {
        console.refuse(&place::spelled(&one.why, &again), exit);
        for hint in &one.hints {
            console.hint(&place::spelled(hint, &again));
        }
    }
}

/// The exit code of so many that were refused and so many that are as was asked for.
pub(super) fn exit(refused: &[Refused], done: usize, whole: bool) -> Exit {
    if refused.iter().any(|one| one.exit == Exit::Newer) {
        return Exit::Newer;
    }
    match (refused.len(), done) {
        (0, _) if whole => Exit::Done,
        (0, _) => Exit::Partial,
        (_, 0) => Exit::Failed,
        _ => Exit::Partial,
    }
}

fn warn(session: &Done, console: &Console) {
    let id = human::name(session.id.as_str());
    let named = |missing: &Missing| {
        format!(
            "{} ({})",
            human::path(&missing.path),
            human::escape(&missing.why)
        )
    };
    for special in &session.special {
        console.warn(&format!(
            "{id}: {} holds no bytes, and is not in the archive",
            named(special)
        ));
    }
    for changed in &session.changed {
        console.warn(&format!("{id}: {} was being written", named(changed)));
    }
    if let Some(why) = &session.kept_because {
        console.warn(&format!(
            "{id}: its folder is where it was: {}",
            human::escape(why)
        ));
    }
    for left in &session.leftover {
        console.warn(&format!("{id}: {}", human::escape(left)));
    }
}

/// `4 files, 1.2 MB`.
pub(super) fn content(files: u64, bytes: u64) -> String {
    format!(
        "{}, {}",
        human::plural(files, "file", "files"),
        human::size(bytes)
    )
}

fn write(out: &mut String, done: &Outcome, global: &Global, console: &Console) {
    for session in &done.sessions {
        // A few small files take less than what a pack says of them.
        let ratio = match session.packed < session.bytes {
            true => format!("   {:.1} : 1", session.bytes as f64 / session.packed as f64),
            false => String::new(),
        };
        let folder = match (session.folder, session.reused) {
            (true, true) => "   had its archive; the folder stays",
            (true, false) => "   the folder stays",
            (false, true) => "   had its archive",
            (false, false) => "",
        };
        let _ = writeln!(
            out,
            "{}   {} → {}{ratio}{folder}",
            styled(STRONG, human::name(session.id.as_str())),
            content(session.files, session.bytes),
            human::size(session.packed),
        );
    }
    already(out, &done.already, "is archived already");
    left(out, &done.left, console);
    if done.sessions.is_empty() {
        if done.already.is_empty() && done.refused.is_empty() {
            let _ = writeln!(out, "Nothing to archive.");
        }
        return;
    }
    if done.sessions.len() > 1 {
        let sum = |of: fn(&Done) -> u64| done.sessions.iter().map(of).sum::<u64>();
        let _ = writeln!(
            out,
            "{}: {} → {}",
            human::plural(done.sessions.len() as u64, "session", "sessions"),
            content(sum(|s| s.files), sum(|s| s.bytes)),
            human::size(sum(|s| s.packed)),
        );
    }
    if let Some(away) = done.sessions.iter().find(|session| !session.folder) {
        let _ = writeln!(
            out,
            "Back again: {} unarchive {}",
            place::again(global),
            human::argument(away.id.as_str())
        );
    }
}

/// Those for which there was nothing to do.
pub(super) fn already(out: &mut String, ids: &[String], what: &str) {
    for id in ids {
        let _ = writeln!(out, "{}   {what}", styled(STRONG, human::name(id)));
    }
}

/// So many of a group are named when not all are.
const NAMED: usize = 3;

/// Those that have not rested, in groups.
fn left(out: &mut String, left: &[Left], console: &Console) {
    let mut groups: BTreeMap<Reason, Vec<&Left>> = BTreeMap::new();
    for one in left {
        groups.entry(one.reason).or_default().push(one);
    }
    for (reason, mut group) in groups {
        // Those that will rest for long enough next come first.
        group.sort_by_key(|left| left.last_activity);
        let told = match reason {
            Reason::AtWork => "still at work",
            Reason::Active => "active since",
            Reason::Unreadable => "can not be read",
            Reason::Name => "with a name that can not be that of a pack",
            Reason::Leased => "held by another device",
        };
        let shown = shown(group.len(), NAMED, console.verbose);
        let _ = writeln!(
            out,
            "{} left, {told}:",
            human::plural(group.len() as u64, "session", "sessions")
        );
        for one in &group[..shown] {
            let since = one.last_activity.filter(|_| reason == Reason::Active);
            let why = match since {
                Some(since) => since.strftime("%Y-%m-%d").to_string(),
                None => human::escape(&one.why).into_owned(),
            };
            let _ = writeln!(out, "  {}   {why}", human::name(&one.id));
        }
        if shown < group.len() {
            let _ = writeln!(out, "  {}", more(group.len() - shown, ": -v"));
        }
    }
}

fn write_plan(out: &mut String, plan: &Plan, console: &Console) {
    for session in &plan.sessions {
        let archive = match session.archive {
            true => "   has an archive, which would be compared",
            false => "",
        };
        let _ = writeln!(
            out,
            "{}   {}{archive}",
            styled(STRONG, human::name(session.id.as_str())),
            content(session.files, session.bytes)
        );
    }
    already(out, &plan.already, "is archived already");
    left(out, &plan.left, console);
    let sum = plan.sessions.iter();
    let (files, bytes) = sum.fold((0, 0), |(f, b), s| (f + s.files, b + s.bytes));
    let many = human::plural(plan.sessions.len() as u64, "session", "sessions");
    let content = content(files, bytes);
    let what = match plan.keep {
        true => "would be archived, and stay in sessions/",
        false => "would be archived",
    };
    let _ = writeln!(out, "{many} {what}: {content}. Nothing was changed.");
}
