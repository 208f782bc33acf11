//! `wbhome rotate`: logs cut while they are written.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

use super::args::Global;
use super::output::{Console, FAINT, STRONG, styled};
use super::{complete, place};
use crate::base::{Context, Error, Exit, Result, human};
use crate::disk;
use crate::home::{Config, Home, SessionId, resolve_in};
use crate::rotate::{self, Beyond, CutLog, How, Outcome, Plan, Planned, Request};

/// So many are named when there are more.
const NAMED: usize = 20;

/// Cut the logs that are due while agents go on writing to them, and lose no line
///
/// Which logs, how often and how many are kept stands in wbhome.toml, [rotate]: as it is, each sessions/*/logs/*.log once
/// a day, seven of them, compressed. What is cut out of run.log is run.log-20240615T030000Z beside it. On ext4 and XFS
/// nothing is lost; elsewhere a log is copied and truncated, which is told as not lossless.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome rotate                  what is due
  wbhome rotate -n               which logs are due, and why
  wbhome rotate crawler --force  the logs of this session, due or not")]
pub(super) struct RotateArgs {
    /// Only the logs of these sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(value_name = "SESSION", add = complete::active_sessions())]
    sessions: Vec<String>,
    /// Cut logs that are not due, and those that are written without O_APPEND: these get a hole of NULs
    #[arg(long)]
    force: bool,
}

pub(super) fn run(
    args: RotateArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let sessions = args.sessions.iter().map(|query| with_logs(&home, query));
    let request = request(&home, sessions.collect::<Result<_>>()?, args.force, ctx)?;
    if global.dry_run {
        let plan = rotate::plan(&home, &request, ctx)?;
        for left in &plan.left {
            left_alone(left, console);
        }
        failed(&plan.failed, global, console);
        console.result("rotate-plan/1", &plan, |out| {
            write_plan(out, &plan, console)
        })?;
        return Ok(match plan.failed.is_empty() {
            true => Exit::Done,
            false => Exit::Partial,
        });
    }
    let locked = place::lock(&home, "rotate", global, console, ctx)?;
    let plan = rotate::plan(&locked, &request, ctx)?;
    let done = rotate::apply(&locked, plan, &request, ctx)?;
    for cut in &done.cut {
        forced(cut, console);
    }
    for left in &done.left {
        left_alone(left, console);
    }
    failed(&done.failed, global, console);
    console.report("rotate/1", &done, |out| write(out, &done, console))?;
    if done.interrupted {
        console.warn("interrupted: what is done stands, and nothing is half done");
        console.hint("the same command goes on");
    }
    Ok(done.exit())
}

/// A session that is in `sessions/`.
fn with_logs(home: &Home, query: &str) -> Result<SessionId> {
    let id = resolve_in(home, query)?;
    match disk::exists(&home.session(&id)) {
        true => Ok(id),
        false => Err(
            Error::failed("is not in sessions/, and has no logs to cut:")
                .at(Path::new(id.as_str()))
                .hint(
                    "if it is archived, they are in its archive: `wbhome unarchive` brings it back",
                ),
        ),
    }
}

/// What a rotation goes by: the settings, and where the application keeps its own folder.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn request(
    home: &Home,
    sessions: Vec<SessionId>,
    force: bool,
    ctx: &Context,
) -> Result<Request> {
    let mut settings = Config::load(home)?.rotate;
    let user_home = place::user_home();
    for glob in &mut settings.logs {
        if let (Ok(rest), Some(user_home)) =
            (Path::new(glob.as_str()).strip_prefix("~"), &user_home)
            && let Some(absolute) = user_home.join(rest).to_str()
        {
            *glob = absolute.to_owned();
        }
    }
    let leads_out = settings
        .logs
        .iter()
        .any(|glob| Path::new(glob).is_absolute());
    Ok(Request {
        sessions,
        force,
        settings,
        leases: place::leases(home, ctx)?,
        lets_go: true,
        state: match leads_out {
            true => place::state_folders(home)?,
            false => Vec::new(),
        },
    })
}

fn left_alone(left: &rotate::Left, console: &Console) {
    let told = format!("left {}: it {}", human::path(&left.path), left.why);
    match left.reason.is_lack() {
        true => console.warn(&told),
        false => console.note(&told),
    }
    for hint in &left.hints {
        console.hint(hint);
    }
}

fn failed(failed: &[rotate::Failed], global: &Global, console: &Console) {
    let again = place::again(global);
    for one in failed {
        console.warn(&place::spelled(&one.message, &again));
        for hint in &one.hints {
            console.hint(&place::spelled(hint, &again));
        }
    }
}

/// What it means for whoever writes at a place of their own.
fn forced(cut: &CutLog, console: &Console) {
    for writer in &cut.writers {
        console.warn(&format!(
            "{}: {} (process {}) writes without O_APPEND: what it writes next stands behind a hole of NULs",
            human::path(&cut.path),
            human::name(&writer.program),
            writer.pid
        ));
    }
}

fn write(out: &mut String, done: &Outcome, console: &Console) {
    let named = if console.verbose { usize::MAX } else { NAMED };
    for cut in done.cut.iter().take(named) {
        let how = match cut.how {
            How::Collapse | How::Blank if cut.lossless => "lossless",
            How::Collapse | How::Blank => "behind a hole",
            How::Truncate => "truncated: not lossless",
            How::Copy => "copied; its writer had begun it anew",
        };
        let _ = writeln!(
            out,
            "{}   {} → {}   {how}",
            styled(STRONG, human::path(&cut.path)),
            human::size(cut.bytes),
            human::path(&cut.rotated),
        );
    }
    if let Some(more @ 1..) = done.cut.len().checked_sub(named) {
        let _ = writeln!(out, "and {} more: -v names them", human::count(more as u64));
    }
    if let Some(n) = done.forgotten {
        let what = match n {
            0 => "the end of rotate.json".to_owned(),
            n => format!("{} of rotate.json", human::plural(n, "entry", "entries")),
        };
        let _ = writeln!(
            out,
            "{what} could not be understood; the former file is in the trash"
        );
    }
    let mut counts = Vec::new();
    let mut count = |n: usize, what: &str| {
        if n > 0 {
            counts.push(format!("{} {what}", human::count(n as u64)));
        }
    };
    count(done.cut.len(), "cut");
    count(usize::try_from(done.resting).unwrap_or(0), "not due");
    count(done.left.len(), "left alone");
    count(done.compressed.len(), "compressed");
    count(done.removed.len(), "let go of");
    count(done.failed.len(), "failed");
    let _ = match counts.is_empty() {
        true if done.interrupted => Ok(()),
        true => writeln!(out, "No logs."),
        false => writeln!(out, "Logs: {}", counts.join(" · ")),
    };
    if console.verbose {
        for one in &done.compressed {
            let (path, from, to) = (
                human::path(&one.path),
                human::size(one.from),
                human::size(one.bytes),
            );
            let _ = writeln!(out, "  compressed {path}   {from} → {to}");
        }
        for one in &done.removed {
            let _ = writeln!(
                out,
                "  let go of {}   [rotate] {}",
                human::path(&one.path),
                one.beyond.told()
            );
        }
    }
}

fn write_plan(out: &mut String, plan: &Plan, console: &Console) {
    let due: Vec<&Planned> = plan.logs.iter().filter(|log| log.due.is_some()).collect();
    for log in &due {
        let why = log.due.map_or("", |why| why.told());
        let _ = writeln!(
            out,
            "{}   {}   due: {why}",
            styled(STRONG, human::path(&log.path)),
            human::size(log.bytes)
        );
    }
    for log in plan.logs.iter().filter(|_| console.verbose) {
        if let Some(rest) = log.rest {
            let _ = writeln!(
                out,
                "{}   not due: {}",
                human::path(&log.path),
                styled(FAINT, rest.told())
            );
        }
    }
    for one in &plan.compressed {
        let _ = writeln!(out, "{}   would be compressed", human::path(one));
    }
    for one in &plan.removed {
        let unless = match one.beyond {
            Beyond::MaxTotal if !plan.compressed.is_empty() => ", unless compressing makes room",
            _ => "",
        };
        let _ = writeln!(
            out,
            "{}   would go: [rotate] {}{unless}",
            human::path(&one.path),
            one.beyond.told()
        );
    }
    let resting = plan.logs.len() - due.len();
    let _ = writeln!(
        out,
        "{} due, {} not. Nothing was changed.",
        human::plural(due.len() as u64, "log", "logs"),
        human::count(resting as u64)
    );
}
