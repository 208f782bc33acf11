//! `wbhome ls`: the sessions.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::args::Global;
use super::complete;
use super::output::{Console, STRONG, stdout_is_terminal, styled, terminal_width};
use super::place;
use super::table::{self, Cells, Column};
use super::when::exact;
use crate::base::{Context, Exit, Result, human, parse_when};
use crate::browse::Running;
use crate::browse::ls::{self, Filter, Outcome, Row};
use crate::home::Status;
use crate::state::AtWork;

/// List sessions, the most recently active first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome ls                              all but removed ones
  wbhome ls crawler --since 2w -l        by name, active within two weeks, with sizes
  wbhome ls --project alpha --json | jq -r '.sessions[].id'")]
pub(super) struct LsArgs {
    /// Part of an id or title, or a glob for the whole of one
    pattern: Option<String>,
    /// active, archived, missing or removed; running: an agent works in it now
    #[arg(long, value_name = "STATUS", add = complete::statuses())]
    status: Option<String>,
    /// Of this agent
    #[arg(long, value_name = "AGENT", add = complete::agents())]
    agent: Option<String>,
    /// With this tag; with every one of several
    #[arg(long, value_name = "TAG", add = complete::tags())]
    tag: Vec<String>,
    /// Of this project
    #[arg(long, value_name = "PROJECT", add = complete::projects())]
    project: Option<String>,
    /// Active then or later: 2024-06-03, yesterday, 2w
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Active then or earlier
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// The order
    #[arg(long, value_enum, default_value = "updated")]
    sort: Sort,
    /// The other way round
    #[arg(long)]
    reverse: bool,
    /// Also turns, size by kind, size of the archive, and the agents that are running
    #[arg(short, long)]
    long: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    Updated,
    Created,
    Size,
    Id,
}

impl From<Sort> for ls::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Updated => ls::Sort::Updated,
            Sort::Created => ls::Sort::Created,
            Sort::Size => ls::Sort::Size,
            Sort::Id => ls::Sort::Id,
        }
    }
}

pub(super) fn run(args: LsArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let now = ctx.clock.zoned();
    let when = |text: &Option<String>| {
        text.as_deref()
            .map(|text| parse_when(text, &now))
            .transpose()
    };
    let filter = Filter {
        since: when(&args.since)?,
        until: when(&args.until)?,
        pattern: args.pattern,
        status: args.status,
        agent: args.agent,
        tags: args.tag,
        project: args.project,
    };
    let home = place::open(global)?;
    let agents = place::agents(&home, console);
    if let Some(who) = AtWork::by_registry(home.root(), &agents).anywhere() {
        console.warn(&format!("{who}; it may work in any session"));
    }
    let leases = place::leases_to_show(&home, console, ctx);
    let sort = args.sort.into();
    let listed = ls::ls(&home, &filter, sort, args.reverse, &agents, &leases)?;
    console.result("ls/1", &listed, |out| write(out, &listed, args.long, ctx))?;
    if listed.sessions.is_empty() && listed.total > 0 {
        let all = human::plural(listed.total, "session", "sessions");
        console.hint(&format!("none of {all} is what was asked for"));
    }
    let again = place::again(global);
    let now = ctx.clock.now();
    let is_old = |at: Timestamp| now.as_second() - at.as_second() > OLD;
    if listed.stale {
        console.hint(&format!(
            "sessions have come or gone since they were counted: {again} index looks again"
        ));
    } else if let Some(at) = listed.counted.filter(|at| !listed.looked && is_old(*at)) {
        console.hint(&format!(
            "activity and sizes are those of {}: {again} index looks again",
            human::age(now, at)
        ));
    }
    Ok(Exit::Done)
}

/// The night counts anew; what is older than that, in seconds, was missed by it.
const OLD: i64 = 36 * 3600;

/// The columns after the id that are shown at any width: status and age.
const MATTER: usize = 2;

fn write(out: &mut String, listed: &Outcome, long: bool, ctx: &Context) {
    if listed.sessions.is_empty() {
        if listed.total == 0 {
            out.push_str(match listed.stale {
                true => "No session is in the index.\n",
                false => "No session yet. `wbhome new TASK` makes one.\n",
            });
        }
        return;
    }
    // Of those that are all archived one wants to know how large the archives are.
    let is_archived = |row: &Row| row.status == Status::Archived.as_str();
    let archives = long || listed.sessions.iter().all(is_archived);
    let mut now = Moments::of(ctx);
    let mut shown = columns(&listed.sessions, long, archives, &now);
    if terminal_width().is_some_and(|limit| table::needs(&shown, MATTER) > limit) {
        now.age = human::brief_age;
        shown = columns(&listed.sessions, long, archives, &now);
    }
    table::write(out, shown, MATTER, stdout_is_terminal());
    if long && stdout_is_terminal() {
        let bytes: u64 = listed.sessions.iter().filter_map(Row::bytes).sum();
        let sessions = human::plural(listed.sessions.len() as u64, "session", "sessions");
        let _ = writeln!(
            out,
            "{}",
            styled(STRONG, format!("{sessions}, {}", human::size(bytes)))
        );
    }
}

/// How moments are written: as ages on a terminal, exactly elsewhere.
struct Moments {
    now: Timestamp,
    on_terminal: bool,
    age: fn(Timestamp, Timestamp) -> String,
}

impl Moments {
    fn of(ctx: &Context) -> Self {
        Moments {
            now: ctx.clock.now(),
            on_terminal: stdout_is_terminal(),
            age: human::age,
        }
    }

    fn told(&self, then: Timestamp) -> String {
        match self.on_terminal {
            true => (self.age)(self.now, then),
            false => exact(then),
        }
    }
}

fn columns(rows: &[Row], long: bool, archives: bool, moments: &Moments) -> Vec<Column> {
    let column = |title, holds, cell: &dyn Fn(&Row) -> String| Column {
        title,
        holds,
        cells: rows.iter().map(cell).collect(),
    };
    let text = |value: &Option<String>| {
        value
            .as_deref()
            .map_or_else(|| "-".to_owned(), |v| human::name(v).into_owned())
    };
    let updated = |row: &Row| {
        let then = row.updated.or(row.created);
        then.map_or_else(|| "-".to_owned(), |then| moments.told(then))
    };
    let mut columns = vec![
        column("SESSION", Cells::Words, &|row| {
            human::name(&row.id).into_owned()
        }),
        column("STATUS", Cells::Words, &|row| match row.running {
            Some(_) => ls::RUNNING.to_owned(),
            None => human::name(&row.status).into_owned(),
        }),
        column("ACTIVE", Cells::Words, &updated),
    ];
    if long {
        let size = |bytes: fn(&ls::Holds) -> u64| {
            move |row: &Row| {
                row.holds
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |h| human::size(bytes(h)))
            }
        };
        columns.push(column("TURNS", Cells::Numbers, &|row| {
            row.holds
                .map_or_else(|| "-".to_owned(), |h| human::count(h.turns))
        }));
        columns.push(column(
            "CONTEXT",
            Cells::Numbers,
            &size(|h| h.context.bytes),
        ));
        columns.push(column("MEMORY", Cells::Numbers, &size(|h| h.memory.bytes)));
        columns.push(column(
            "ARTIFACTS",
            Cells::Numbers,
            &size(|h| h.artifacts.bytes),
        ));
        columns.push(column("LOGS", Cells::Numbers, &size(|h| h.logs.bytes)));
    }
    if archives {
        let packed = |row: &Row| row.packed().map_or_else(|| "-".to_owned(), human::size);
        columns.push(column("ARCHIVE", Cells::Numbers, &packed));
    }
    if long && rows.iter().any(|row| row.running.is_some()) {
        columns.extend(running_columns(rows, moments));
    }
    if rows.iter().any(|row| row.held_by.is_some()) {
        columns.push(column("HELD BY", Cells::Words, &held_by));
    }
    columns.push(column("AGENT", Cells::Text, &|row| text(&row.agent)));
    columns.push(column("PROJECT", Cells::Text, &|row| text(&row.project)));
    let tags = |row: &Row| {
        let mut tags: Vec<String> = row
            .tags
            .iter()
            .map(|t| human::name(t).into_owned())
            .collect();
        tags.extend(
            row.sync_tag
                .iter()
                .map(|t| format!("sync:{}", human::name(t))),
        );
        tags.join(" ")
    };
    columns.push(column("TAGS", Cells::Text, &tags));
    columns.push(column("TITLE", Cells::Text, &|row| {
        row.title
            .as_deref()
            .map(|t| human::name(t).into_owned())
            .unwrap_or_default()
    }));
    columns
}

/// The device that holds the lease of a session.
fn held_by(row: &Row) -> String {
    match &row.held_by {
        None => "-".to_owned(),
        Some(holder) if holder.ours => "this device".to_owned(),
        Some(holder) => human::name(&holder.name).into_owned(),
    }
}

/// Who is running, since when, when it was last heard of, and where.
fn running_columns(rows: &[Row], moments: &Moments) -> Vec<Column> {
    let column = |title, holds, cell: &dyn Fn(&Running) -> Option<String>| Column {
        title,
        holds,
        cells: rows
            .iter()
            .map(|row| row.running.as_ref().and_then(cell))
            .map(|cell| cell.unwrap_or_else(|| "-".to_owned()))
            .collect(),
    };
    let moment = |then: Timestamp| moments.told(then);
    vec![
        column("PID", Cells::Numbers, &|running| {
            Some(running.pid.to_string())
        }),
        column("SINCE", Cells::Words, &|running| running.since.map(moment)),
        column("HEARTBEAT", Cells::Words, &|running| {
            running.heartbeat.map(moment)
        }),
        column("CWD", Cells::Text, &|running| {
            running.cwd.as_deref().map(human::path)
        }),
    ]
}
