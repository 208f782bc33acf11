//! `wbhome restore --all`: a whole home out of a store.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;

use super::{Global, RestoreArgs};
use crate::backup::Kind;
use crate::base::{Context, Error, Exit, Result, human, parse_when};
use crate::cli::output::{Console, FAINT, STRONG, styled};
use crate::cli::place;
use crate::cli::shortened::{more, shown};
use crate::cli::when::{dated, moment};
use crate::disaster::rebuild::{self, FromGit, History, Outcome, Plan, Recovered, Request};

/// So many of a kind are named when not all are.
const SHOWN: usize = 5;

pub(super) fn run(
    args: RestoreArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let only_state = args.to.is_none();
    if only_state && args.state_to.is_none() {
        return Err(
            Error::usage("--to names the folder of the new home, and is required")
                .hint("--state-to DIR without it brings back only what the agent application had"),
        );
    }
    if only_state && args.git.is_some() {
        return Err(Error::usage("--git has no meaning without --to"));
    }
    if global.home.is_some() {
        return Err(Error::usage(
            "--home has no meaning here: a whole home comes out of the store",
        )
        .hint("--to names where it shall be"));
    }
    let current = place::current_folder()?;
    let request = Request {
        store: current.join(&args.from),
        to: current.join(args.to.unwrap_or_default()),
        only_state,
        at: match &args.at {
            Some(when) => Some(parse_when(when, &ctx.clock.zoned())?),
            None => None,
        },
        git: args.git.map(|git| current.join(git)),
        state_to: args.state_to.map(|to| current.join(to)),
        force: args.force,
        rehearsal: false,
    };
    let plan = rebuild::plan(&request, ctx)?;
    for line in &plan.skipped {
        console.warn(&format!("passed over: {line}"));
    }
    if global.dry_run {
        console.result("restore-all-plan/1", &plan, |out| {
            write_plan(out, &plan, only_state, ctx);
        })?;
        return Ok(Exit::Done);
    }
    let skipped = plan.skipped.clone();
    let outcome = rebuild::apply(plan, ctx)?;
    warn(&outcome, &skipped, console, ctx);
    console.report("restore-all/1", &outcome, |out| match only_state {
        true => write_only_state(out, &outcome, ctx),
        false => write(out, &outcome, console.verbose, ctx),
    })?;
    Ok(match outcome.is_complete() && skipped.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Home => "home",
        Kind::Agents => "agents",
        Kind::Folder => "folders",
        Kind::Session => "sessions",
        Kind::State => "state",
        Kind::Transcripts => "transcripts",
    }
}

fn line(out: &mut String, what: &str, n: u64, rest: &str) {
    let text = format!("  {what:<12}{:>6}   {rest}", human::count(n));
    let _ = writeln!(out, "{}", text.trim_end());
}

fn counted(out: &mut String, kinds: &[Recovered]) {
    for counted in kinds {
        let archives = match counted.archives {
            0 => String::new(),
            n => format!(", {} as archives", human::count(n)),
        };
        let rest = format!(
            "{}, {}{archives}",
            human::plural(counted.files, "file", "files"),
            human::size(counted.bytes)
        );
        line(out, kind(counted.kind), counted.things, &rest);
    }
}

/// The first few, and how many more.
fn some(names: &[String], all: bool) -> String {
    let shown = shown(names.len(), SHOWN, all);
    let mut text = names[..shown]
        .iter()
        .map(|name| human::escape(name).into_owned())
        .collect::<Vec<_>>()
        .join(", ");
    if shown < names.len() {
        let _ = write!(
            text,
            " and {} more",
            human::count((names.len() - shown) as u64)
        );
    }
    text
}

fn write_plan(out: &mut String, plan: &Plan, only_state: bool, ctx: &Context) {
    let to = match only_state {
        true => plan.built_in(),
        false => &plan.to,
    };
    head(out, to, plan.snapshot, plan.store(), ctx);
    if plan.only_moves_up() {
        let _ = writeln!(
            out,
            "An earlier restore is complete but for the last renames: only those would be made."
        );
    } else {
        counted(out, &plan.kinds);
        if !plan.were_missing.is_empty() {
            let names = some(&plan.were_missing, false);
            let n = plan.were_missing.len() as u64;
            line(
                out,
                "missing",
                n,
                &format!("the home itself had lost them: {names}"),
            );
        }
        if !plan.removed.is_empty() {
            let names = some(&plan.removed, false);
            let n = plan.removed.len() as u64;
            line(
                out,
                "removed",
                n,
                &format!("on purpose, and stay in the store: {names}"),
            );
        }
        if let Some(tip) = &plan.git {
            let _ = writeln!(
                out,
                "\nThen what is newer in git: {}, {}",
                tip.short,
                moment(tip.at, ctx)
            );
        }
        let _ = writeln!(
            out,
            "\nIt needs about {}; {} are free.",
            human::size(plan.needs),
            human::size(plan.room)
        );
    }
    let _ = writeln!(out, "Nothing was changed.");
}

fn warn(outcome: &Outcome, told: &[String], console: &Console, ctx: &Context) {
    for line in outcome.warnings.iter().filter(|line| !told.contains(line)) {
        console.warn(line);
    }
    for lost in &outcome.lost {
        console.warn(&format!(
            "did not come back: {}: {}",
            lost.thing,
            human::escape(&lost.why)
        ));
    }
    for not_used in &outcome.not_used {
        console.warn(&format!(
            "a pack of {} is of no use, {}: {}",
            not_used.thing,
            human::name(&not_used.file),
            not_used.why
        ));
    }
    for older in &outcome.older {
        console.warn(&format!(
            "{} is as of {}; the pack of {} was not taken, {}: {}",
            older.thing,
            moment(older.at, ctx),
            moment(older.newest, ctx),
            older.why,
            human::name(&older.file)
        ));
    }
    for missing in &outcome.missing {
        let path = match missing.path.as_os_str().is_empty() {
            true => String::new(),
            false => format!(": {}", human::path(&missing.path)),
        };
        let what = match missing.vanished {
            true => "was removed while it was backed up",
            false => "could not be brought back",
        };
        console.warn(&format!(
            "{what}, {}{path} ({})",
            missing.thing,
            human::escape(&missing.why)
        ));
    }
    for left in outcome.git.iter().flat_map(|git| &git.left) {
        console.warn(&format!(
            "not taken from git: {}: {}",
            human::path(&left.path),
            human::escape(&left.why)
        ));
    }
}

fn head(out: &mut String, to: &Path, snapshot: Timestamp, store: &Path, ctx: &Context) {
    let _ = writeln!(
        out,
        "{}    as of {}, from {}\n",
        styled(STRONG, human::path(to)),
        dated(snapshot, ctx),
        human::path(store)
    );
}

fn write_only_state(out: &mut String, outcome: &Outcome, ctx: &Context) {
    let Some(state) = &outcome.state else {
        return;
    };
    head(out, &state.to, outcome.snapshot, &outcome.store, ctx);
    counted(out, &outcome.kinds);
    let _ = writeln!(out);
    write_state(out, state);
}

fn write(out: &mut String, outcome: &Outcome, all: bool, ctx: &Context) {
    head(out, &outcome.to, outcome.snapshot, &outcome.store, ctx);
    counted(out, &outcome.kinds);
    let n = outcome.were_missing.len() as u64;
    if n > 0 {
        let names = some(&outcome.were_missing, all);
        line(
            out,
            "missing",
            n,
            &format!("the home itself had lost them, and they are back: {names}"),
        );
    }
    let n = outcome.restless.len() as u64;
    if n > 0 {
        let names: Vec<String> = outcome
            .restless
            .iter()
            .map(|one| format!("{}: {}", one.thing, one.path.display()))
            .collect();
        let names = some(&names, all);
        line(
            out,
            "restless",
            n,
            &format!("may be a mixture of two states: {names}"),
        );
    }
    if let Some(git) = &outcome.git {
        write_git(out, git, all, ctx);
    }
    if outcome.index_made_anew {
        let _ = writeln!(
            out,
            "  the index was made anew, with the labels that the snapshot has"
        );
    }
    if outcome.continued {
        let _ = writeln!(
            out,
            "  all was there from an earlier run, and only had to move up"
        );
    } else {
        let _ = writeln!(
            out,
            "  {}",
            styled(
                FAINT,
                format!(
                    "every file was read back and compared; it took {}",
                    human::took(std::time::Duration::from_secs_f64(outcome.seconds.max(0.0)))
                )
            )
        );
    }
    write_next(out, outcome);
}

fn write_git(out: &mut String, git: &FromGit, all: bool, ctx: &Context) {
    let rest = format!("from git, {}, {}", git.tip.short, moment(git.tip.at, ctx));
    line(out, "newer", git.files.len() as u64, &rest);
    let shown = shown(git.files.len(), SHOWN, all);
    for file in &git.files[..shown] {
        let _ = writeln!(
            out,
            "{:23}{}   {}",
            "",
            human::path(&file.path),
            styled(FAINT, moment(file.at, ctx))
        );
    }
    if shown < git.files.len() {
        let more = more(git.files.len() - shown, ": -v");
        let _ = writeln!(out, "{:23}{more}", "");
    }
    if !git.text_only.is_empty() {
        let names = some(&git.text_only, all);
        let n = git.text_only.len() as u64;
        line(
            out,
            "text only",
            n,
            &format!("sessions of which nothing but their text in git is back: {names}"),
        );
    }
    if !git.removed.is_empty() {
        let names: Vec<String> = git
            .removed
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let names = some(&names, all);
        let n = git.removed.len() as u64;
        line(
            out,
            "removed",
            n,
            &format!("in git since, and here all the same: {names}"),
        );
    }
    let _ = writeln!(
        out,
        "  the history {}",
        match git.history {
            History::Copied =>
                "was copied into .git, and `wbhome commit` goes on with it".to_owned(),
            History::Linked => format!(
                "stays in {}, and belongs to this home now",
                human::path(&git.repository)
            ),
        }
    );
}

/// What a person does next, in its order.
fn write_next(out: &mut String, outcome: &Outcome) {
    let home = human::quoted(&outcome.to);
    let mut lines: Vec<(String, &str)> = vec![(
        format!("wbhome --home {home} check"),
        "what is wrong in it, if anything",
    )];
    if *outcome.was != *outcome.to {
        lines.push((
            format!(
                "wbhome --home {home} relink {} {home}",
                human::quoted(&outcome.was)
            ),
            "point what refers to the old place to the new one",
        ));
    }
    if outcome.moved {
        lines.push((
            format!(
                "wbhome --home {home} backup adopt {}",
                human::quoted(&outcome.store)
            ),
            "before the next backup: the store belongs to the old place",
        ));
    }
    let _ = writeln!(out, "\nNext:");
    for (command, why) in lines {
        let _ = writeln!(out, "  {command}\n      {}", styled(FAINT, why));
    }
    if outcome.state_left > 0 {
        let _ = writeln!(
            out,
            "The store also holds what the agent application had in its own folder ({}); --state-to DIR lays it into DIR.",
            human::plural(outcome.state_left, "thing", "things")
        );
    }
    if let Some(state) = &outcome.state {
        write_state(out, state);
    }
}

fn write_state(out: &mut String, state: &rebuild::StateBack) {
    let was: Vec<String> = state.was.iter().map(|was| human::path(was)).collect();
    let content = format!(
        "{}, {}",
        human::plural(state.files, "file", "files"),
        human::size(state.bytes)
    );
    let to = human::path(&state.to);
    if state.was.as_slice() == std::slice::from_ref(&state.to) {
        let _ = writeln!(
            out,
            "What the agent application had is in its place, {to}: {content}."
        );
    } else {
        let _ = writeln!(
            out,
            "What the agent application had ({}) is in {to}: {content}.",
            was.join(", ")
        );
        let was = state
            .was
            .first()
            .map_or(Path::new("~/.workbuddy"), |was| &**was);
        let _ = writeln!(
            out,
            "Put it in the place of {} while the application is not running.",
            human::path(was)
        );
    }
    if state.transcripts > 0 {
        let _ = writeln!(
            out,
            "Its transcripts have their old times: the application's own clean-up (cleanupPeriodDays, 30 by default) may sweep\nthem at its next start. Raise that in its settings.json first."
        );
    }
}
