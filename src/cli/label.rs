//! `wbhome label`: tags, project, sync tag and title.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::complete;
use super::output::{Console, FAINT, STRONG, styled};
use super::place;
use crate::base::{Context, Exit, Result, human};
use crate::browse::ls;
use crate::home::{Home, Leases, SessionId, resolve_all};
use crate::sessions::label::{self, Labelled, Labels, Outcome};

pub(super) mod chosen;

/// Tag sessions, give them a project, a sync tag or a title
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome label crawler --tag web --project alpha
  wbhome label 20240603_task_crawler 20240604_周报 --sync-tag laptop
  wbhome label @1 --title 'Prices, second try' --untag draft
  wbhome label --where agent=research_agent --where since=2w --tag web -n")]
pub(super) struct LabelArgs {
    /// Sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(
        required_unless_present = "conditions",
        value_name = "SESSION",
        add = complete::sessions()
    )]
    sessions: Vec<String>,
    /// Instead of SESSION: every one that is so, as `wbhome ls` filters; of several, all must hold. KEY is name, agent, tag,
    /// project, status, since or until
    #[arg(
        long = "where",
        id = "conditions",
        value_name = "KEY=VALUE",
        conflicts_with = "sessions",
        add = complete::conditions()
    )]
    conditions: Vec<String>,
    /// Add a tag
    #[arg(long, value_name = "TAG", add = complete::tags())]
    tag: Vec<String>,
    /// Take a tag away
    #[arg(long, value_name = "TAG", add = complete::tags())]
    untag: Vec<String>,
    /// Set the project; projects/P links to it
    #[arg(long, value_name = "PROJECT", conflicts_with = "no_project", add = complete::projects())]
    project: Option<String>,
    /// Take the project away
    #[arg(long)]
    no_project: bool,
    /// Mark it for sharing under this name: `relay sync` and the night put it into the relay
    #[arg(long, value_name = "SYNC_TAG", conflicts_with = "no_sync_tag", add = complete::sync_tags())]
    sync_tag: Option<String>,
    /// Take the sync tag away
    #[arg(long)]
    no_sync_tag: bool,
    /// Set the title; an empty one takes it away
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
}

fn change(value: Option<String>, none: bool) -> Option<Option<String>> {
    match none {
        true => Some(None),
        false => value.map(Some),
    }
}

pub(super) fn run(
    args: LabelArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let request = label::Request {
        tag: args.tag,
        untag: args.untag,
        project: change(args.project, args.no_project),
        sync_tag: change(args.sync_tag, args.no_sync_tag),
        title: args.title,
    };
    let home = place::open(global)?;
    let ids = match args.conditions.is_empty() {
        true => resolve_all(&home, &args.sessions)?,
        false => meeting(&args.conditions, &home, console, ctx)?,
    };
    // It is the way out as well: without a sync tag a session is read-only no more.
    let leases = place::leases_to_show(&home, console, ctx);
    for id in &ids {
        if let Some(who) = leases.elsewhere(id.as_str()) {
            let id = human::name(id.as_str());
            console.note(&format!(
                "{id}: {who}; its labels are this home's own all the same"
            ));
        }
    }
    if global.dry_run {
        let plan = label::plan(&home, &ids, request)?;
        console.result("label-plan/1", &plan, |out| write(out, &plan.sessions))?;
        return Ok(Exit::Done);
    }
    let locked = place::lock(&home, "label", global, console, ctx)?;
    let plan = label::plan(&locked, &ids, request)?;
    let done = label::apply(&locked, plan, ctx)?;
    for obstacle in in_the_way(&done) {
        console.warn(&format!(
            "{obstacle} is in the way of a project view; it was left alone, and the view was not made"
        ));
    }
    console.report("label/1", &done, |out| write(out, &done.sessions))?;
    Ok(Exit::Done)
}

/// The sessions that meet all conditions.
fn meeting(
    conditions: &[String],
    home: &Home,
    console: &Console,
    ctx: &Context,
) -> Result<Vec<SessionId>> {
    let filter = chosen::filter(conditions, &ctx.clock.zoned())?;
    let agents = match filter.status.as_deref() {
        Some(ls::RUNNING) => place::agents(home, console),
        _ => Vec::new(),
    };
    let listed = ls::ls(
        home,
        &filter,
        ls::Sort::Id,
        false,
        &agents,
        &Leases::default(),
    )?;
    if listed.sessions.is_empty() {
        let all = human::plural(listed.total, "session", "sessions");
        console.hint(&format!("none of {all} is what was asked for"));
    }
    let ids = listed.sessions.iter().filter_map(|row| {
        let id = SessionId::adopt(&row.id);
        id.inspect_err(|error| console.warn(&format!("left out: {error}")))
            .ok()
    });
    Ok(ids.collect())
}

/// What others have put where a view belongs. What else lies in `projects/` is no concern of these sessions.
fn in_the_way(done: &Outcome) -> Vec<&String> {
    let mut places: BTreeSet<String> = BTreeSet::new();
    for session in &done.sessions {
        if let Some(project) = &session.after.project {
            let folder = format!("projects/{}", human::name(project));
            places.insert(format!("{folder}/{}", human::name(&session.id)));
            places.insert(folder);
            // Nothing is written where that leads out of the home.
            places.insert("projects".to_owned());
        }
    }
    let foreign = done.views.foreign.iter();
    foreign.filter(|at| places.contains(*at)).collect()
}

fn write(out: &mut String, sessions: &[Labelled]) {
    for session in sessions {
        let id = human::name(&session.id);
        if !session.changed() {
            let _ = writeln!(out, "{id}   {}", styled(FAINT, "has these labels already"));
            continue;
        }
        let _ = writeln!(
            out,
            "{}   {}",
            styled(STRONG, id),
            differences(&session.before, &session.after)
        );
    }
}

/// `+web −draft  project: alpha → beta`
fn differences(before: &Labels, after: &Labels) -> String {
    let mut parts: Vec<String> = Vec::new();
    let added = after.tags.iter().filter(|tag| !before.tags.contains(tag));
    let removed = before.tags.iter().filter(|tag| !after.tags.contains(tag));
    parts.extend(added.map(|tag| format!("+{}", human::name(tag))));
    parts.extend(removed.map(|tag| format!("-{}", human::name(tag))));
    for (name, before, after) in [
        ("project", &before.project, &after.project),
        ("sync tag", &before.sync_tag, &after.sync_tag),
        ("title", &before.title, &after.title),
    ] {
        if before == after {
            continue;
        }
        let shown = |label: &Option<String>| match label {
            Some(text) => human::name(text).into_owned(),
            None => "none".to_owned(),
        };
        parts.push(format!("{name}: {} → {}", shown(before), shown(after)));
    }
    match parts.is_empty() {
        true => "indexed".to_owned(),
        false => parts.join("  "),
    }
}
