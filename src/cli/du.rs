//! `wbhome du`: what the home takes on the disk.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;

use super::args::Global;
use super::output::{Console, FAINT, STRONG, styled, terminal_width};
use super::shortened::{more, shown};
use super::table::{self, Cells, Column};
use super::when::age;
use super::width::end_of;
use super::{complete, place};
use crate::base::{Context, Exit, Result, human};
use crate::browse::du::{self, Growing, Grows, OfSession, Outcome, Request, Weight};
use crate::home::{Config, Home, resolve_all};

/// Say what takes the room, by session and kind, what of it grows, and what helps
///
/// Sizes are those of files; what they take on the disk is told where that is less or more by a tenth. A file with several
/// names is counted once. Growth is told since the last time that all of the home was looked at.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome du                  the whole home
  wbhome du crawler @1       these sessions
  wbhome du --top 50         with the 50 largest files
  wbhome du --json | jq -r '.grows[].files[].path'    large results in sessions that rest")]
pub(super) struct DuArgs {
    /// Only these sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(value_name = "SESSION", add = complete::sessions())]
    sessions: Vec<String>,
    /// So many of the largest files
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

pub(super) fn run(args: DuArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let request = Request {
        sessions: resolve_all(&home, &args.sessions)?,
        top: args.top,
        // What settings that are broken say of it, `doctor` tells.
        idle: Config::load(&home).unwrap_or_default().archive.idle,
    };
    let mut found = du::du(&home, &request, ctx)?;
    if !global.dry_run {
        keep(&home, &mut found, ctx);
    }
    let again = place::again(global);
    for grows in &mut found.grows {
        grows.helps = grows
            .helps
            .as_ref()
            .map(|helps| place::spelled(helps, &again));
    }
    for path in &found.unreadable {
        console.warn(&format!("can not be read: {}", human::path(path)));
    }
    console.result("du/1", &found, |out| write(out, &found, console, ctx))?;
    Ok(match found.unreadable.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}

/// Keeps the record, where that is possible at once: whoever only looks does not wait for others, and does not settle
/// what they have left.
fn keep(home: &Home, found: &mut Outcome, ctx: &Context) {
    let is_free = home.is_trusted() && home.has_unsettled().is_ok_and(|unsettled| !unsettled);
    // What could not be read would look as if it had grown the next time.
    if found.total.is_some()
        && found.unreadable.is_empty()
        && is_free
        && let Ok(locked) = home.lock(Duration::ZERO, "du", ctx)
    {
        // A disk that is full, or mounted read-only: the answer is there all the same.
        let _ = du::keep(&locked, found, ctx);
    }
}

/// What is shown of so many sessions that have most.
const SHOWN: usize = 20;

/// And of so many old files.
const FILES: usize = 5;

/// Advice on less than that is a waste of words.
const WORTH: u64 = 1_000_000;

fn write(out: &mut String, found: &Outcome, console: &Console, ctx: &Context) {
    let all = console.verbose || found.total.is_none();
    let named = shown(found.sessions.len(), SHOWN, all);
    write_sessions(out, &found.sessions[..named], found.since.is_some());
    if named < found.sessions.len() {
        let mut more = Weight::default();
        found.sessions[named..]
            .iter()
            .for_each(|session| more += session.all);
        let n = human::count((found.sessions.len() - named) as u64);
        let more = format!("… {n} more, {}: -v", human::size(more.bytes));
        let _ = writeln!(out, "{}", styled(FAINT, more));
    }
    write_parts(out, found);
    if let (Some(since), Some(growth)) = (found.since, found.growth) {
        let when = age(since, ctx);
        let _ = writeln!(out, "{} since the last record, {when}", signed(growth));
    }
    if !found.largest.is_empty() {
        let _ = writeln!(out, "\n{}", styled(STRONG, "Largest files"));
        for large in &found.largest {
            let size = human::size(large.bytes);
            let on_disk = on_disk(large.bytes, large.allocated);
            let path = short(&human::path(&large.path), 12 + on_disk.len());
            let _ = writeln!(out, "{size:>10}  {path}{on_disk}");
        }
    }
    write_grows(out, &found.grows, console.verbose, ctx);
}

/// A table: the id first, and what all of it is, whatever the width.
fn write_sessions(out: &mut String, sessions: &[OfSession], with_growth: bool) {
    if sessions.is_empty() {
        return;
    }
    let size = |bytes: u64| match bytes {
        0 => "-".to_owned(),
        bytes => human::size(bytes),
    };
    let column = |title, cell: &dyn Fn(&OfSession) -> String| Column {
        title,
        holds: Cells::Numbers,
        cells: sessions.iter().map(cell).collect(),
    };
    let mut columns = vec![
        Column {
            holds: Cells::Words,
            ..column("SESSION", &|session| human::path(&session.name))
        },
        column("ALL", &|session| size(session.all.bytes)),
        column("CONTEXT", &|session| size(session.context.bytes)),
        column("MEMORY", &|session| size(session.memory.bytes)),
        column("ARTIFACTS", &|session| size(session.artifacts.bytes)),
        column("LOGS", &|session| size(session.logs.bytes)),
        column("OTHER", &|session| size(session.other.bytes)),
        column("ARCHIVE", &|session| size(session.archive.bytes)),
    ];
    if with_growth {
        columns.push(column("GROWTH", &|session| {
            session.growth.map_or_else(|| "new".to_owned(), signed)
        }));
    }
    table::write(out, columns, 1, true);
}

/// A path in a line where so many columns are taken: its end, when there is a terminal that has no room for more.
fn short(path: &str, taken: usize) -> String {
    match terminal_width() {
        Some(limit) => end_of(path, limit.saturating_sub(taken).max(8)),
        None => path.to_owned(),
    }
}

fn write_parts(out: &mut String, found: &Outcome) {
    let mut part = |name: &str, weight: Weight| {
        if weight.files > 0 {
            let files = human::plural(weight.files, "file", "files");
            let size = human::size(weight.bytes);
            let on_disk = on_disk(weight.bytes, weight.allocated);
            let _ = writeln!(out, "{size:>10}  {name:<10} {files}{on_disk}");
        }
    };
    part("sessions", found.together);
    if let Some(rest) = &found.rest {
        part("archives", rest.archives);
        part("history", rest.history);
        part("trash", rest.trash);
        part(".wbhome", rest.own);
        part("other", rest.other);
    }
    if let Some(total) = found.total {
        part("together", total);
    }
}

/// What a file takes on the disk, where its length does not tell.
fn on_disk(bytes: u64, allocated: u64) -> String {
    // Blocks make many small files take more: that is no news, and a tenth is none either.
    let tenth = bytes / 10;
    let holes = allocated < bytes - tenth;
    let wastes = allocated > bytes.saturating_add(tenth) && allocated - bytes > WORTH;
    match holes || wastes {
        true => format!("   ({} on the disk)", human::size(allocated)),
        false => String::new(),
    }
}

fn signed(growth: i64) -> String {
    let size = human::size(growth.unsigned_abs());
    match growth {
        0 => "+0 B".to_owned(),
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

fn write_grows(out: &mut String, grows: &[Grows], verbose: bool, ctx: &Context) {
    let worth: Vec<&Grows> = grows.iter().filter(|grows| grows.bytes >= WORTH).collect();
    if worth.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(STRONG, "What grows, and what helps"));
    for grows in worth {
        let size = human::size(grows.bytes);
        let what = match grows.what {
            Growing::ContextSnapshots => "context that later turns say again",
            Growing::Logs => "logs",
            Growing::ArtifactsLeftBehind => "large results in sessions that rest",
        };
        let named: Vec<String> = grows
            .sessions
            .iter()
            .map(|name| human::path(name))
            .collect();
        let others = match grows.of.saturating_sub(named.len() as u64) {
            0 => String::new(),
            n => format!(" and {} more", human::count(n)),
        };
        let _ = writeln!(out, "{size:>10}  {what}: {}{others}", named.join(", "));
        match (&grows.helps, grows.what) {
            (Some(helps), _) => {
                let _ = writeln!(out, "{:12}{helps}", "");
            }
            (None, Growing::ContextSnapshots) => {
                let _ = writeln!(out, "{:12}wbhome archive SESSION, when one is done", "");
            }
            (None, _) => {}
        }
        let shown = shown(grows.files.len(), FILES, verbose);
        if shown > 0 {
            let _ = writeln!(
                out,
                "{:12}what of these is needed no more, you may delete, when a backup has it:",
                ""
            );
        }
        for file in &grows.files[..shown] {
            let size = human::size(file.bytes);
            let when = age(file.modified, ctx);
            let path = short(&human::path(&file.path), 27 + when.len());
            let _ = writeln!(out, "{:12}{size:>10}  {path}   {when}", "");
        }
        if shown < grows.files.len() {
            let rest = more(grows.files.len() - shown, ": -v");
            let _ = writeln!(out, "{:12}{rest}", "");
        }
    }
}
