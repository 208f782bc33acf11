//! `wbhome new`: a session with its folders, record and entry.

use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::complete;
use super::output::Console;
use super::place;
use crate::base::{Context, Error, Exit, Result, human};
use crate::sessions::new;

/// Make a session; prints its id
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome new crawler --agent research_agent --project alpha --tag web
  cd \"$(wbhome path \"$(wbhome new 数据清洗)\")\"")]
pub(super) struct NewArgs {
    /// What it is about: letters and digits of any script, `_` and `-`
    task: String,
    /// The agent that will work in it
    #[arg(long, value_name = "AGENT", add = complete::agents())]
    agent: Option<String>,
    /// The project that it belongs to
    #[arg(long, value_name = "PROJECT", add = complete::projects())]
    project: Option<String>,
    /// A tag; may be repeated
    #[arg(long, value_name = "TAG", add = complete::tags())]
    tag: Vec<String>,
    /// Mark it for sharing under this name: `relay sync` and the night put it into the relay
    #[arg(long, value_name = "SYNC_TAG", add = complete::sync_tags())]
    sync_tag: Option<String>,
    /// A title for people
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// The day in its name [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
    /// Allow a name of more than 30 characters
    #[arg(long)]
    force: bool,
}

pub(super) fn run(
    args: NewArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let date = args.date.as_deref().map(day).transpose()?;
    let request = new::Request {
        task: args.task,
        agent: args.agent,
        project: args.project,
        tags: args.tag,
        sync_tag: args.sync_tag,
        title: args.title,
        date,
        force: args.force,
    };
    let home = place::open(global)?;
    if global.dry_run {
        let plan = new::plan(&home, &request, ctx)?;
        for warning in &plan.warnings {
            console.warn(warning);
        }
        console.result("new-plan/1", &plan, |out| {
            let _ = writeln!(out, "{}", plan.id);
        })?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(&home, "new", global, console, ctx)?;
    let plan = new::plan(&locked, &request, ctx)?;
    let made = new::apply(&locked, plan, ctx)?;
    for warning in &made.warnings {
        console.warn(warning);
    }
    console.result("new/1", &made, |out| {
        let _ = writeln!(out, "{}", made.id);
    })?;
    Ok(Exit::Done)
}

fn day(text: &str) -> Result<jiff::civil::Date> {
    text.parse().map_err(|_| {
        Error::usage(format!("`{}` is not a day", human::escape(text)))
            .hint("write --date 2024-06-03")
    })
}
