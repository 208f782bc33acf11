//! `wbhome drill`: what a disaster would cost, found out before it happens.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::args::Global;
use super::findings;
use super::output::{Console, STRONG, styled, terminal_width};
use super::place;
use super::shortened::{more, shown};
use super::when::moment;
use super::width::fold;
use crate::base::{Context, Exit, Result, human};
use crate::disaster::drill::{self, BlindSpot, Data, OfKind, Plan, Report, Request};
use crate::home::Home;
use crate::state;

/// Rehearse a disaster: rebuild the home in a scratch folder, and compare
///
/// Tells what would be back as it is now, what as it was and as of when, what would be lost, how long it takes, and what no
/// backup holds. The scratch folder is removed afterwards; the report is kept in .wbhome/drills/. Exit code 4 when something
/// would be lost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome drill
  wbhome drill -v                     every thing that is newer than its backup
  wbhome drill --keep /tmp/rebuilt    leave the rebuilt home there, to look into it
  wbhome drill -n                     which store and how much room, without doing it")]
pub(super) struct DrillArgs {
    /// This store alone [default: of each [[backup.store]] in wbhome.toml the one with the newest snapshot, on another disk
    /// than the home if there is one of that night]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    store: Option<PathBuf>,
    /// Build in this folder, which is new or empty, and leave it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    keep: Option<PathBuf>,
}

pub(super) fn run(
    args: DrillArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let request = request(&args, &home)?;
    let plan = drill::plan(&home, &request, ctx)?;
    if global.dry_run {
        for warning in &plan.warnings {
            console.warn(warning);
        }
        console.result("drill-plan/1", &plan, |out| write_plan(out, &plan, ctx))?;
        return Ok(Exit::Done);
    }
    let report = drill::apply(&home, plan, &request, ctx)?;
    for warning in &report.warnings {
        console.warn(&place::spelled(warning, &place::again(global)));
    }
    console.report("drill/1", &report, |out| write(out, &report, console, ctx))?;
    Ok(match report.recovered {
        true => Exit::Done,
        false => Exit::Problems,
    })
}

fn request(args: &DrillArgs, home: &Home) -> Result<Request> {
    let saved = place::backup_request(home)?;
    let set = !saved.state.is_empty();
    let usual = || place::user_home().map(|user_home| state::folders_in(&user_home));
    Ok(Request {
        stores: match &args.store {
            Some(store) => vec![place::absolute(store)?],
            None => place::stores(home)?,
        },
        keep: args.keep.as_deref().map(place::absolute).transpose()?,
        state: saved.state,
        unsaved_state: match set {
            true => Vec::new(),
            false => usual().unwrap_or_default(),
        },
        include: saved.include,
        exclude: saved.exclude,
        user_home: place::user_home(),
    })
}

fn write_plan(out: &mut String, plan: &Plan, ctx: &Context) {
    let _ = writeln!(
        out,
        "The home would be rebuilt from {}, snapshot {}{}",
        human::path(&plan.store),
        moment(plan.snapshot, ctx),
        match &plan.repository {
            Some(repository) => format!(", and {}", human::path(repository)),
            None => String::new(),
        }
    );
    let _ = writeln!(
        out,
        "It takes about {}; {} are free.{}",
        human::size(plan.needs),
        human::size(plan.room),
        match plan.runs_command {
            true => " [drill] command would be run in it.",
            false => "",
        }
    );
}

/// So many of a list are named when not all are.
const NAMED: usize = 3;

/// A list under a title, shortened.
fn list<T>(out: &mut String, title: &str, all: &[T], verbose: bool, line: impl Fn(&T) -> String) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(STRONG, title));
    let named = shown(all.len(), NAMED, verbose);
    for one in &all[..named] {
        let line = fold(&line(one), 4, terminal_width());
        let _ = writeln!(out, "  {line}");
    }
    if named < all.len() {
        let _ = writeln!(out, "  {}", more(all.len() - named, ": -v"));
    }
}

fn called(data: Data) -> &'static str {
    match data {
        Data::Sessions => "sessions",
        Data::Archives => "archives",
        Data::Agents => "agents",
        Data::Home => "index, settings",
        Data::Folders => "other folders",
        Data::Conversations => "conversations",
        Data::Databases => "app's databases",
        Data::Settings => "app's settings",
        Data::History => "history",
    }
}

fn write(out: &mut String, report: &Report, console: &Console, ctx: &Context) {
    let all = console.verbose;
    let _ = writeln!(
        out,
        "{}    {}, snapshot {} ({})\n",
        styled(STRONG, human::path(&report.home)),
        human::path(&report.store),
        moment(report.snapshot, ctx),
        human::age(report.at, report.snapshot)
    );
    for kind in &report.kinds {
        let _ = writeln!(
            out,
            "  {:<16}{:>6}   {}",
            called(kind.data),
            human::count(kind.things),
            of_kind(kind, ctx)
        );
    }
    write_lost(out, report, all, ctx);
    if all {
        list(out, "Newer in the live home", &report.then, all, |then| {
            format!(
                "{}   {} newer than {}, such as {}",
                then.thing,
                human::plural(then.newer_files, "file", "files"),
                moment(then.as_of, ctx),
                human::path(&then.first)
            )
        });
    }
    if !report.findings.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            styled(
                STRONG,
                "`wbhome check` says of the rebuilt home, and not of the live one"
            )
        );
        findings::write(out, &report.findings, all);
    }
    list(
        out,
        "No backup holds",
        &report.blind_spots,
        all,
        |spot: &BlindSpot| {
            format!(
                "{}   {}, {}   {}",
                human::path(&spot.path),
                human::plural(spot.files, "file", "files"),
                human::size(spot.bytes),
                spot.why
            )
        },
    );
    summary(out, report);
}

/// What the store or the history does not give back as it was.
fn write_lost(out: &mut String, report: &Report, all: bool, ctx: &Context) {
    list(out, "Would be lost", &report.lost, all, |lost| {
        format!("{}   {}", lost.thing, human::escape(&lost.why))
    });
    list(
        out,
        "Broken packs: an older one had to do",
        &report.older,
        all,
        |older| {
            format!(
                "{}   as of {}, not {}: {}   {}",
                older.thing,
                moment(older.at, ctx),
                moment(older.newest, ctx),
                human::escape(&older.why),
                human::name(&older.file)
            )
        },
    );
    let missing: Vec<_> = report.missing.iter().filter(|one| !one.vanished).collect();
    list(out, "Would not come back", &missing, all, |one| {
        named(&one.thing, &one.path, &one.why)
    });
    list(out, "Not what was backed up", &report.wrong, all, |one| {
        named(&one.thing, &one.path, &one.why)
    });
    list(
        out,
        "Databases that are not sound",
        &report.unsound,
        all,
        |one| named(&one.thing, &one.path, &one.why),
    );
    list(
        out,
        "The history is damaged",
        &report.history,
        all,
        |damage| {
            format!(
                "{}   {}",
                human::path(&damage.path),
                human::escape(&damage.what)
            )
        },
    );
    if let Some(run) = report.command.as_ref().filter(|run| run.exit != Some(0)) {
        let _ = writeln!(
            out,
            "\n{}\n  {}   {}",
            styled(STRONG, "[drill] command failed"),
            human::escape(&run.command),
            match run.exit {
                Some(code) => format!("exit code {code}"),
                None => "a signal ended it".to_owned(),
            }
        );
    }
}

fn summary(out: &mut String, report: &Report) {
    let told = format!(
        "The oldest state of what has changed since: {}. Rebuilt in {}; {}, {} compared{}.",
        match report.rpo_seconds {
            Some(seconds) => format!(
                "{} old (RPO)",
                human::took(std::time::Duration::from_secs(seconds))
            ),
            None => "none, all is as it is now".to_owned(),
        },
        format_args!(
            "{} (RTO)",
            human::took(std::time::Duration::from_secs_f64(
                report.rto_seconds.max(0.0)
            ))
        ),
        human::plural(report.files, "file", "files"),
        human::size(report.bytes),
        match report.databases {
            0 => String::new(),
            n => format!(", {} checked", human::plural(n, "database", "databases")),
        }
    );
    let _ = writeln!(out, "\n{}", fold(&told, 0, terminal_width()));
    if let Some(kept) = &report.kept {
        let _ = writeln!(
            out,
            "The rebuilt home is in {}.",
            human::path(&kept.join("home"))
        );
    }
    let _ = match report.recovered {
        true => writeln!(out, "A disaster now would lose nothing that was backed up."),
        false => writeln!(out, "A disaster now would lose what is named above."),
    };
}

fn of_kind(kind: &OfKind, ctx: &Context) -> String {
    let mut parts = Vec::new();
    if kind.lost > 0 {
        parts.push(format!("{} lost", human::count(kind.lost)));
    }
    if kind.as_now > 0 {
        let n = match kind.as_now == kind.things {
            true => String::new(),
            false => format!("{} ", human::count(kind.as_now)),
        };
        parts.push(format!("{n}as now"));
    }
    if let Some(as_of) = kind.as_of {
        let n = match kind.as_then == kind.things {
            true => String::new(),
            false => format!("{} ", human::count(kind.as_then)),
        };
        parts.push(format!(
            "{n}as of {} ({} newer now)",
            moment(as_of, ctx),
            human::plural(kind.newer_files, "file is", "files are")
        ));
    }
    parts.join(" · ")
}

/// `a session: artifacts/a.bin   why`
fn named(thing: &str, path: &Path, why: &str) -> String {
    let why = human::escape(why);
    match path.as_os_str().is_empty() {
        true => format!("{thing}   {why}"),
        false => format!("{thing}: {}   {why}", human::path(path)),
    }
}
