//! `wbhome migrate`: off the sync drive.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use super::args::Global;
use super::output::Console;
use super::place;
use super::when::dated;
use crate::base::{Context, Error, Exit, Kind, Result, human};
use crate::migrate::{self, Outcome, Plan, References, Request, Settings, Skipped, Survey};
use crate::paths::Mapping;

mod finish;
pub(super) mod report;
mod undo;

use report::{write_outcome, write_plan, write_verified};

/// Move a home off a sync drive, every path reference rewritten
///
/// SRC is copied to DEST and never written. References to SRC in files, links and databases are rewritten
/// to DEST, in the spelling they were found in; everything is read back and compared; damage that the sync
/// client has done is listed. Stopped at any moment, the same command goes on.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  wbhome migrate ~/Drive/workbuddy_home ~/workbuddy_home
  wbhome migrate -n ~/Drive/workbuddy_home ~/workbuddy_home     what would be done
  wbhome migrate ~/Drive/wb ~/wb --map '/Users/me/Drive/wb=/home/me/wb'"
)]
pub(super) struct MigrateArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The home on the sync drive: the folder that holds sessions/
    #[arg(value_name = "SRC", required = true, value_hint = ValueHint::DirPath)]
    source: Option<PathBuf>,
    /// Where it shall be: a folder that does not exist yet, or is empty
    #[arg(value_name = "DEST", required = true, value_hint = ValueHint::DirPath)]
    dest: Option<PathBuf>,
    /// Also rewrite references to OLD, another path of the home
    #[arg(long, value_name = "OLD=NEW")]
    map: Vec<String>,
    #[command(flatten)]
    state: place::StateArgs,
    /// Change only JSON fields that identify a place (cwd, path, …), and leave prose alone
    #[arg(long)]
    fields_only: bool,
    /// Leave behind what matches, relative to SRC; without a `/`, at any depth
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Go on with too little room, or while somebody works in SRC
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// What was done, what was found, how long the original should be kept
    #[command(after_help = "Examples:
  wbhome migrate status
  wbhome migrate status --json | jq .keep_until")]
    Status,
    /// Compare home and original again from the disk, file by file
    #[command(after_help = "Examples:
  wbhome migrate verify
  wbhome migrate verify -v    each difference by name")]
    Verify,
    /// Pack the original into one verified file, so that it may go two weeks later
    ///
    /// Nothing is removed, now or then: that is for you, in the sync client's own way.
    #[command(after_help = "Examples:
  wbhome migrate finish --to /media/disk
  wbhome migrate finish --to /media/disk -n    how much it is, and how much room there is")]
    Finish(finish::FinishArgs),
    /// Give the agent application's own folder back as it was, unless it was changed since
    ///
    /// The home stays, for a person to remove.
    #[command(after_help = "Examples:
  wbhome migrate undo -n    what would be given back
  wbhome migrate undo")]
    Undo {
        /// Take it back all the same; what was changed since goes to the trash
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(
    args: MigrateArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    match &args.action {
        Some(Action::Status) => return status(global, console, ctx),
        Some(Action::Verify) => return verify(global, console, ctx),
        Some(Action::Finish(args)) => return finish::run(args, global, console, ctx),
        Some(Action::Undo { force }) => return undo::run(*force, global, console, ctx),
        None => {}
    }
    let request = request(&args, global, console)?;
    let plan = migrate::plan(&request, ctx)?;
    for warning in &plan.warnings {
        console.warn(warning);
    }
    if global.dry_run {
        if plan.is_finished() && plan.state.is_empty() {
            console.note("This migration was finished before: nothing would be done.\n");
        }
        let references = migrate::preview(&plan, ctx)?;
        console.result("migrate-plan/1", &Planned::of(&plan, &references), |out| {
            write_plan(out, &plan, &references, &request.dest)
        })?;
        return Ok(Exit::Done);
    }
    if !plan.warnings.is_empty() && !global.yes && !console.ask("Go on?", true) {
        ctx.stop.check()?;
        return Err(Error::failed("nothing was done").hint("--yes goes on without asking"));
    }
    if plan.is_finished() && !plan.state.is_empty() {
        console.note("This migration was finished before; the agent application's own folder is looked at again. What follows is what came of the migration then.\n");
    } else if plan.is_finished() {
        console.note("This migration was finished before, and nothing was done now. What follows is what came of it then;\n`wbhome migrate verify` compares both sides again.\n");
    }
    ctx.stop.check()?;
    let outcome = migrate::apply(plan, global.lock_wait, ctx).map_err(|e| match e.kind() {
        Kind::Interrupted => {
            e.hint("what was copied stays, and the same command goes on from there")
        }
        _ => e,
    })?;
    tell_warnings(&outcome.warnings, console);
    tell(&outcome, &place::absolute(&request.dest)?, console, ctx)?;
    Ok(outcome.exit())
}

fn request(args: &MigrateArgs, global: &Global, console: &Console) -> Result<Request> {
    // Clap has seen to it that both are there.
    let (Some(source), Some(dest)) = (args.source.clone(), args.dest.clone()) else {
        return Err(Error::usage("SRC and DEST are needed"));
    };
    if global.home.is_some() {
        return Err(Error::usage(
            "--home means an existing home; the new one is named by DEST",
        ));
    }
    let user_home = place::user_home();
    let state = args.state.usual_folders(console)?;
    let maps = args
        .map
        .iter()
        .map(|map| mapping(map, user_home.as_deref()))
        .collect::<Result<_>>()?;
    Ok(Request {
        source,
        dest,
        maps,
        fields_only: args.fields_only,
        exclude: args.exclude.clone(),
        force: args.force,
        state,
        state_named: args.state.is_named(),
        user_home,
    })
}

/// `OLD=NEW`. A path may itself hold `=`: the one is meant that has an absolute path on both sides.
fn mapping(text: &str, user_home: Option<&Path>) -> Result<Mapping> {
    let bad = |what: &str| {
        Error::usage(format!("--map `{}` {what}", human::escape(text)))
            .hint("OLD is the path as the files spell it, NEW where it shall point: --map '/Users/me/Drive/wb=/home/me/wb'")
    };
    let expand = |path: &str| match (path.strip_prefix("~/"), user_home.and_then(Path::to_str)) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => path.to_owned(),
    };
    let is_absolute = |path: &str| {
        let drive = path.as_bytes();
        let on_drive = drive.len() > 2 && drive[0].is_ascii_alphabetic() && drive[1] == b':';
        path.starts_with('/') || path.starts_with("\\\\?\\") || on_drive
    };
    let mut halves = text
        .match_indices('=')
        .map(|(at, _)| (expand(&text[..at]), expand(&text[at + 1..])))
        .filter(|(old, new)| is_absolute(old) && new.starts_with('/'));
    let Some((old, new)) = halves.next() else {
        return Err(bad("is not OLD=NEW with an absolute path on both sides"));
    };
    if halves.next().is_some() {
        return Err(bad("can be read in two ways, a path in it holds `=/`"));
    }
    let trim = |path: String| {
        let trimmed = path.trim_end_matches(['/', '\\']);
        trimmed.to_owned()
    };
    let (old, new) = (trim(old), trim(new));
    if old.is_empty() || new.is_empty() {
        return Err(bad("the root folder can not be meant"));
    }
    Ok(Mapping { old, new })
}

/// What `-n --json` prints.
#[derive(Serialize)]
struct Planned<'p> {
    #[serde(with = "crate::base::wire::exact_path")]
    source: PathBuf,
    home: &'p Path,
    sessions: u64,
    files: u64,
    folders: u64,
    bytes: u64,
    references: &'p References,
    state: &'p [Survey],
    skipped: &'p [Skipped],
    warnings: &'p [String],
    resumes: bool,
}

impl<'p> Planned<'p> {
    fn of(plan: &'p Plan, references: &'p References) -> Self {
        Planned {
            source: plan.settings.source.clone(),
            home: &plan.settings.dest,
            sessions: plan.totals.sessions,
            files: plan.totals.files,
            folders: plan.totals.folders,
            bytes: plan.totals.bytes,
            references,
            state: &plan.state,
            skipped: &plan.left,
            warnings: &plan.warnings,
            resumes: plan.resumes(),
        }
    }
}

/// A filesystem that keeps no attributes would give one for each file: the record has them all.
fn tell_warnings(warnings: &[String], console: &Console) {
    const SHOWN: usize = 20;
    for warning in warnings.iter().take(SHOWN) {
        console.warn(&human::escape(warning));
    }
    if warnings.len() > SHOWN {
        let more = human::count((warnings.len() - SHOWN) as u64);
        console.warn(&format!(
            "{more} more like these: wbhome migrate status --json"
        ));
    }
}

fn tell(outcome: &Outcome, dest: &Path, console: &Console, ctx: &Context) -> Result<()> {
    console.report("migrate/1", outcome, |out| {
        write_outcome(out, outcome, dest, console, ctx)
    })
}

/// What `status --json` prints.
#[derive(Serialize)]
struct Status<'s> {
    #[serde(flatten)]
    outcome: &'s Outcome,
    packed: Option<&'s migrate::finish::Finished>,
}

fn status(global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    if home.has_unsettled()? {
        console.warn("a command was stopped in its middle, and what it had begun is half done until the next one that writes completes it or takes it back, such as `wbhome index`");
    }
    let record = migrate::newest(&home)?;
    let Some(mut outcome) = record.outcome()? else {
        return Err(Error::failed("the migration was stopped before its end:")
            .at(record.folder())
            .hint(format!(
                "run it again, it goes on where it stopped: {}",
                command_of(record.settings())
            )));
    };
    outcome.state = migrate::state_of(&home, &record)?;
    let packed = migrate::finish::noted(&record)?;
    let status = Status {
        outcome: &outcome,
        packed: packed.as_ref(),
    };
    console.result("migrate-status/1", &status, |out| {
        let _ = writeln!(out, "Migrated {}\n", dated(outcome.finished, ctx));
        write_outcome(out, &outcome, home.root(), console, ctx);
        if let Some(packed) = &packed {
            finish::write_packed(out, packed, ctx);
        }
        let _ = writeln!(out, "Record: {}", human::path(&outcome.record));
    })?;
    Ok(Exit::Done)
}

/// The command line that a migration was begun with, in its final form.
fn command_of(settings: &Settings) -> String {
    let mut words = vec![
        "wbhome migrate".to_owned(),
        human::quoted(&settings.source),
        human::quoted(&settings.dest),
    ];
    for mapping in settings
        .mappings
        .iter()
        .filter(|m| Path::new(&m.old) != settings.source)
    {
        let map = format!("{}={}", mapping.old, mapping.new);
        words.push(format!("--map {}", human::quoted(Path::new(&map))));
    }
    if settings.fields_only {
        words.push("--fields-only".to_owned());
    }
    for glob in &settings.exclude {
        words.push(format!("--exclude {}", human::quoted(Path::new(glob))));
    }
    for folder in &settings.state {
        words.push(format!("--state {}", human::quoted(&folder.0)));
    }
    words.join(" ")
}

fn verify(global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let verified = migrate::verify(&home, ctx)?;
    console.result("migrate-verify/1", &verified, |out| {
        write_verified(out, &verified)
    })?;
    Ok(verified.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_cut_where_two_absolute_paths_meet() {
        let home = Some(Path::new("/home/me"));
        let cut = |text: &str| mapping(text, home).map(|m| (m.old, m.new));
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        assert_eq!(cut("/a/b=/c").unwrap(), pair("/a/b", "/c"));
        assert_eq!(
            cut("/a/工作 (old)+[1]/=/c/").unwrap(),
            pair("/a/工作 (old)+[1]", "/c")
        );
        assert_eq!(cut("/a=b/c=/d").unwrap(), pair("/a=b/c", "/d"));
        assert_eq!(
            cut("C:\\Users\\me=/d").unwrap(),
            pair("C:\\Users\\me", "/d")
        );
        assert_eq!(
            cut("~/old=~/new").unwrap(),
            pair("/home/me/old", "/home/me/new")
        );
        for bad in ["/a", "/a=", "a=/b", "/a=b", "/a=/b=/c", "/=/b", ""] {
            assert_eq!(cut(bad).unwrap_err().kind().exit(), Exit::Usage, "{bad}");
        }
    }
}
