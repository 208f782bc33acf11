//! `wbhome ls`: the sessions.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use unicode_width::UnicodeWidthStr;

use super::args::Global;
use super::complete;
use super::output::{Console, FAINT, STRONG, stdout_is_terminal, styled, terminal_width};
use super::place;
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
    let listed = ls::ls(&home, &filter, args.sort.into(), args.reverse, &agents)?;
    console.result("ls/1", &listed, |out| write(out, &listed, args.long, ctx))?;
    if listed.sessions.is_empty() && listed.total > 0 {
        let all = human::plural(listed.total, "session", "sessions");
        console.hint(&format!("none of {all} is what was asked for"));
    }
    if listed.stale {
        console.hint(&format!(
            "sessions have come or gone since they were counted: {} index looks again",
            place::again(global)
        ));
    }
    Ok(Exit::Done)
}

/// One column: its title, whether numbers stand in it, and a cell a row.
struct Column {
    title: &'static str,
    right: bool,
    cells: Vec<String>,
}

fn write(out: &mut String, listed: &Outcome, long: bool, ctx: &Context) {
    if listed.sessions.is_empty() {
        if listed.total == 0 {
            out.push_str("No session yet. `wbhome new TASK` makes one.\n");
        }
        return;
    }
    // Of those that are all archived one wants to know how large the archives are.
    let is_archived = |row: &Row| row.status == Status::Archived.as_str();
    let archives = long || listed.sessions.iter().all(is_archived);
    let columns = columns(&listed.sessions, long, archives, ctx);
    let widths: Vec<usize> = columns
        .iter()
        .map(|c| {
            c.cells
                .iter()
                .map(|cell| cell.width())
                .max()
                .unwrap_or(0)
                .max(c.title.len())
        })
        .collect();
    let limit = terminal_width();
    let mut line = |cells: Vec<&str>, style| {
        let mut text = String::new();
        for ((cell, width), column) in cells.iter().zip(&widths).zip(&columns) {
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            if !text.is_empty() {
                text.push_str("  ");
            }
            match column.right {
                true => text.extend([pad.as_str(), cell]),
                false => text.extend([cell, pad.as_str()]),
            }
        }
        // The id comes first and is never cut.
        let text = match limit {
            Some(limit) if limit <= widths[0] => cells[0].to_owned(),
            limit => fit(text.trim_end(), limit),
        };
        let _ = match style {
            Some(style) => writeln!(out, "{}", styled(style, text)),
            None => writeln!(out, "{text}"),
        };
    };
    if stdout_is_terminal() {
        line(columns.iter().map(|c| c.title).collect(), Some(FAINT));
    }
    for i in 0..listed.sessions.len() {
        line(columns.iter().map(|c| c.cells[i].as_str()).collect(), None);
    }
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

fn columns(rows: &[Row], long: bool, archives: bool, ctx: &Context) -> Vec<Column> {
    let column = |title, right, cell: &dyn Fn(&Row) -> String| Column {
        title,
        right,
        cells: rows.iter().map(cell).collect(),
    };
    let text = |value: &Option<String>| {
        value
            .as_deref()
            .map_or_else(|| "-".to_owned(), |v| human::name(v).into_owned())
    };
    let now = ctx.clock.now();
    let terminal = stdout_is_terminal();
    let updated = |row: &Row| match row.updated.or(row.created) {
        None => "-".to_owned(),
        Some(then) if terminal => human::age(now, then),
        Some(then) => then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    };
    let mut columns = vec![
        column("SESSION", false, &|row| human::name(&row.id).into_owned()),
        column("STATUS", false, &|row| match row.running {
            Some(_) => ls::RUNNING.to_owned(),
            None => human::name(&row.status).into_owned(),
        }),
        column("ACTIVE", false, &updated),
    ];
    if long {
        let size = |bytes: fn(&ls::Holds) -> u64| {
            move |row: &Row| {
                row.holds
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |h| human::size(bytes(h)))
            }
        };
        columns.push(column("TURNS", true, &|row| {
            row.holds
                .map_or_else(|| "-".to_owned(), |h| human::count(h.turns))
        }));
        columns.push(column("CONTEXT", true, &size(|h| h.context.bytes)));
        columns.push(column("MEMORY", true, &size(|h| h.memory.bytes)));
        columns.push(column("ARTIFACTS", true, &size(|h| h.artifacts.bytes)));
        columns.push(column("LOGS", true, &size(|h| h.logs.bytes)));
    }
    if archives {
        let packed = |row: &Row| row.packed().map_or_else(|| "-".to_owned(), human::size);
        columns.push(column("ARCHIVE", true, &packed));
    }
    if long && rows.iter().any(|row| row.running.is_some()) {
        columns.extend(running_columns(rows, ctx));
    }
    columns.push(column("AGENT", false, &|row| text(&row.agent)));
    columns.push(column("PROJECT", false, &|row| text(&row.project)));
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
    columns.push(column("TAGS", false, &tags));
    columns.push(column("TITLE", false, &|row| {
        row.title
            .as_deref()
            .map(|t| human::name(t).into_owned())
            .unwrap_or_default()
    }));
    columns
}

/// Who is running, since when, when it was last heard of, and where.
fn running_columns(rows: &[Row], ctx: &Context) -> Vec<Column> {
    let column = |title, right, cell: &dyn Fn(&Running) -> Option<String>| Column {
        title,
        right,
        cells: rows
            .iter()
            .map(|row| row.running.as_ref().and_then(cell))
            .map(|cell| cell.unwrap_or_else(|| "-".to_owned()))
            .collect(),
    };
    let now = ctx.clock.now();
    let terminal = stdout_is_terminal();
    let moment = |then: Timestamp| match terminal {
        true => human::age(now, then),
        false => then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    };
    vec![
        column("PID", true, &|running| Some(running.pid.to_string())),
        column("SINCE", false, &|running| running.since.map(moment)),
        column("HEARTBEAT", false, &|running| running.heartbeat.map(moment)),
        column("CWD", false, &|running| {
            running.cwd.as_deref().map(human::path)
        }),
    ]
}

/// Cuts a line to a number of columns, with an ellipsis, between characters.
pub(super) fn fit(text: &str, limit: Option<usize>) -> String {
    let Some(limit) = limit.filter(|limit| text.width() > *limit) else {
        return text.to_owned();
    };
    let mut cut = String::new();
    let mut width = 0;
    for c in text.chars() {
        // With a selector behind it, a narrow sign is a wide picture.
        let wide = match c {
            '\u{fe0f}' => 1,
            c => unicode_width::UnicodeWidthChar::width(c).unwrap_or(0),
        };
        if width + wide + 1 > limit {
            break;
        }
        width += wide;
        cut.push(c);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_not_by_bytes() {
        assert_eq!(fit("abc", None), "abc");
        assert_eq!(fit("数据清洗", Some(8)), "数据清洗");
        assert_eq!(fit("数据清洗", Some(7)), "数据清…");
        assert_eq!(fit("数据清洗", Some(6)), "数据…");
        let cut = fit("🕷️🕷️🕷️", Some(5));
        assert!(cut.width() <= 5 && cut.ends_with('…'), "{cut}");
    }
}
