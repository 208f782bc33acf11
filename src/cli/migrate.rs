//! `wbhome migrate`: off the sync drive.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use super::args::Global;
use super::findings;
use super::output::{Console, FAINT, STRONG, WARNING, styled};
use super::place;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Kind, Result, human};
use crate::migrate::{self, DifferenceKind, Outcome, Plan, Request, Skipped, Verified};
use crate::paths::Mapping;
use crate::state;

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
    /// The agent application's own folder, to see who is running [default: ~/.workbuddy, ~/.workbuddy-ai]
    #[arg(long, value_name = "DIR", conflicts_with = "no_state", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Do not look for running agents
    #[arg(long)]
    no_state: bool,
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
    Status,
    /// Compare home and original again from the disk, file by file
    Verify,
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
        None => {}
    }
    let request = request(&args, global)?;
    let plan = migrate::plan(&request, ctx)?;
    for warning in &plan.warnings {
        console.warn(warning);
    }
    if global.dry_run {
        console.result("migrate-plan/1", &Planned::of(&plan), |out| {
            write_plan(out, &plan, &request.dest)
        })?;
        return Ok(Exit::Done);
    }
    if !plan.warnings.is_empty() && !global.yes && !console.ask("Go on?", true) {
        return Err(Error::failed("nothing was done").hint("--yes goes on without asking"));
    }
    if plan.is_finished() {
        console.note("This migration was finished before, and nothing was done now. What follows is what came of it then;\n`wbhome migrate verify` compares both sides again.\n");
    }
    let outcome = migrate::apply(plan, global.lock_wait, ctx).map_err(|e| match e.kind() {
        Kind::Interrupted => {
            e.hint("what was copied stays, and the same command goes on from there")
        }
        _ => e,
    })?;
    for warning in &outcome.warnings {
        console.warn(&human::escape(warning));
    }
    tell(&outcome, &request.dest, console, ctx)?;
    Ok(outcome.exit())
}

fn request(args: &MigrateArgs, global: &Global) -> Result<Request> {
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
    let state = match (&args.state, args.no_state) {
        (_, true) => Vec::new(),
        (Some(folder), _) if !crate::disk::exists(folder) => {
            return Err(Error::failed("there is no state folder:").at(folder));
        }
        (Some(folder), _) => vec![folder.clone()],
        (None, false) => user_home
            .as_deref()
            .map(state::folders_in)
            .unwrap_or_default(),
    };
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
        user_home,
    })
}

/// `OLD=NEW`. A path may itself hold `=`: the one is meant that has an absolute path on both sides.
fn mapping(text: &str, user_home: Option<&Path>) -> Result<Mapping> {
    let bad = |what: &str| {
        Error::usage(format!("--map {}: {what}", human::escape(text)))
            .hint("write --map OLD=NEW with two absolute paths, OLD as the files spell it")
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
        return Err(bad("is not OLD=NEW"));
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
    mappings: &'p [Mapping],
    skipped: &'p [Skipped],
    warnings: &'p [String],
    resumes: bool,
}

impl<'p> Planned<'p> {
    fn of(plan: &'p Plan) -> Self {
        Planned {
            source: plan.settings.source.clone(),
            home: &plan.settings.dest,
            sessions: plan.totals.sessions,
            files: plan.totals.files,
            folders: plan.totals.folders,
            bytes: plan.totals.bytes,
            mappings: &plan.settings.mappings,
            skipped: &plan.left,
            warnings: &plan.warnings,
            resumes: plan.resumes(),
        }
    }
}

fn write_plan(out: &mut String, plan: &Plan, dest: &Path) {
    let totals = &plan.totals;
    let _ = writeln!(
        out,
        "{} · {} · {}    from {}",
        human::plural(totals.sessions, "session", "sessions"),
        human::plural(totals.files, "file", "files"),
        human::size(totals.bytes),
        human::path(&plan.settings.source)
    );
    let _ = writeln!(out, "would be copied to {}", human::path(dest));
    let _ = writeln!(
        out,
        "\nReferences that would be rewritten, in any spelling:"
    );
    for mapping in &plan.settings.mappings {
        let _ = writeln!(
            out,
            "  {} → {}",
            human::escape(&mapping.old),
            human::escape(&mapping.new)
        );
    }
    write_skipped(out, &plan.left.iter().collect::<Vec<_>>());
    if plan.resumes() {
        let _ = writeln!(
            out,
            "\nA migration was stopped here: what is done would not be copied again."
        );
    }
    let _ = writeln!(out, "\nNothing was changed.");
}

fn tell(outcome: &Outcome, dest: &Path, console: &Console, ctx: &Context) -> Result<()> {
    console.report("migrate/1", outcome, |out| {
        write_outcome(out, outcome, dest, console, ctx)
    })
}

fn write_outcome(
    out: &mut String,
    outcome: &Outcome,
    dest: &Path,
    console: &Console,
    ctx: &Context,
) {
    write_head(out, outcome);
    write_classes(out, outcome);
    write_skipped(out, &outcome.skipped.iter().collect::<Vec<_>>());
    write_names(
        out,
        "Changed while they were copied, and are as they were at some moment",
        &outcome.restless,
    );
    write_databases(out, outcome);
    if console.verbose {
        write_references(out, outcome);
    }
    write_damage(out, outcome, console.verbose);
    write_next(out, outcome, dest, ctx);
}

fn write_head(out: &mut String, outcome: &Outcome) {
    let totals = &outcome.totals;
    let head = format!(
        "{} · {} · {}",
        human::plural(totals.sessions, "session", "sessions"),
        human::plural(totals.files, "file", "files"),
        human::size(totals.bytes)
    );
    let _ = writeln!(
        out,
        "{}    from {} (untouched)\n",
        styled(STRONG, head),
        human::path(&outcome.source)
    );
}

fn write_classes(out: &mut String, outcome: &Outcome) {
    let classes = &outcome.classes;
    let mut row = |name: &str, count: u64, more: String| {
        let _ = writeln!(out, "  {name:<10}{:>8}   {more}", human::count(count));
    };
    let kept = match classes.kept {
        0 => String::new(),
        n => format!(", {} of them by the run that was stopped", human::count(n)),
    };
    row("copied", classes.copied, format!("read back, equal{kept}"));
    let references = &outcome.references;
    let mapped: Vec<String> = references
        .by_mapping
        .iter()
        .filter(|m| m.count > 0)
        .map(|m| {
            format!(
                "{} to {}",
                human::plural(m.count, "reference", "references"),
                human::escape(&m.old)
            )
        })
        .collect();
    row(
        "rewritten",
        classes.rewritten,
        mapped.first().cloned().unwrap_or_default(),
    );
    for more in mapped.iter().skip(1) {
        let _ = writeln!(out, "{:23}{more}", "");
    }
    if classes.linked > 0 {
        let mut parts = Vec::new();
        if classes.links_rewritten > 0 {
            parts.push(format!(
                "{} pointed into the new home",
                human::count(classes.links_rewritten)
            ));
        }
        if classes.links_kept > 0 {
            parts.push(format!(
                "{} left as they were",
                human::count(classes.links_kept)
            ));
        }
        if classes.hard_links > 0 {
            parts.push(format!(
                "{} further names of files",
                human::count(classes.hard_links)
            ));
        }
        let _ = writeln!(
            out,
            "  {:<10}{:>8}   {}",
            "links",
            human::count(classes.linked),
            parts.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "  {:<10}{:>8}",
        "folders",
        human::count(classes.folders)
    );
    if classes.skipped > 0 {
        let _ = writeln!(
            out,
            "  {:<10}{:>8}   named below",
            "skipped",
            human::count(classes.skipped)
        );
    }
    let _ = writeln!(
        out,
        "  {:<10}{:>8}   everything in the source",
        "together",
        human::count(classes.total)
    );
    if references.left > 0 {
        let _ = writeln!(
            out,
            "\n{} outside of fields that identify a place were left alone (--fields-only).",
            human::plural(references.left, "reference", "references")
        );
    }
}

/// So many names are printed of a list that may be long; JSON and the record have them all.
const NAMED: usize = 20;

fn write_skipped(out: &mut String, skipped: &[&Skipped]) {
    if skipped.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nSkipped");
    let (failed, by_design): (Vec<&Skipped>, Vec<&Skipped>) =
        skipped.iter().partition(|s| s.failed);
    for skipped in failed.iter().chain(&by_design).take(NAMED) {
        let reason = human::escape(&skipped.reason);
        let reason = match skipped.failed {
            true => styled(WARNING, reason),
            false => reason.into_owned(),
        };
        let _ = writeln!(out, "  {}   {reason}", human::path(&skipped.path));
    }
    if skipped.len() > NAMED {
        let _ = writeln!(
            out,
            "  {}",
            styled(
                FAINT,
                format!("… {} more", human::count((skipped.len() - NAMED) as u64))
            )
        );
    }
}

fn write_names(out: &mut String, title: &str, names: &[WirePath]) {
    if names.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for name in names.iter().take(NAMED) {
        let _ = writeln!(out, "  {}", human::path(name));
    }
    if names.len() > NAMED {
        let _ = writeln!(
            out,
            "  {}",
            styled(
                FAINT,
                format!("… {} more", human::count((names.len() - NAMED) as u64))
            )
        );
    }
}

fn write_databases(out: &mut String, outcome: &Outcome) {
    let worth_telling = outcome
        .databases
        .iter()
        .filter(|d| d.references > 0 || !d.notes.is_empty());
    let databases: Vec<_> = worth_telling.collect();
    if databases.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nDatabases");
    for database in databases {
        let references = human::plural(database.references, "reference", "references");
        let _ = writeln!(
            out,
            "  {}   {references}, integrity checked",
            human::path(&database.path)
        );
        for note in &database.notes {
            let _ = writeln!(out, "    {}", human::escape(note));
        }
    }
}

fn write_references(out: &mut String, outcome: &Outcome) {
    if outcome.references.by_spelling.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nReferences by spelling");
    for (spelling, count) in &outcome.references.by_spelling {
        let _ = writeln!(out, "  {spelling:<12} {:>8}", human::count(*count));
    }
    let list = outcome.record.join("references.jsonl");
    let _ = writeln!(out, "  each with file and offset: {}", human::path(&list));
}

fn write_damage(out: &mut String, outcome: &Outcome, all: bool) {
    let problems: Vec<_> = outcome
        .findings
        .iter()
        .filter(|f| f.kind.is_problem())
        .cloned()
        .collect();
    let others: Vec<_> = outcome
        .findings
        .iter()
        .filter(|f| !f.kind.is_problem())
        .cloned()
        .collect();
    if problems.is_empty() {
        let _ = writeln!(out, "\nNo damage was found in any session.");
    } else {
        let touched = findings::sessions_touched(&problems);
        let title = match touched {
            0 => "Wrong with the old home".to_owned(),
            n => format!(
                "The sync drive had damaged {}",
                human::plural(n, "session", "sessions")
            ),
        };
        let _ = writeln!(
            out,
            "\n{} (all of it: wbhome check -v)",
            styled(STRONG, title)
        );
        findings::write(out, &problems, all);
    }
    if !others.is_empty() {
        let _ = writeln!(out, "\nGood to know");
        findings::write(out, &others, all);
    }
    let sessions = &outcome.sessions;
    let _ = writeln!(
        out,
        "\nSessions: {} in the source, {} in the home. Index: {} entries before, {} now ({} added, {} missing).",
        human::count(sessions.source_folders),
        human::count(sessions.home_folders),
        human::count(sessions.source_indexed),
        human::count(sessions.home_indexed),
        human::count(sessions.added),
        human::count(sessions.missing)
    );
}

fn write_next(out: &mut String, outcome: &Outcome, dest: &Path, ctx: &Context) {
    let _ = writeln!(out);
    for (root, count) in &outcome.references.also_mentioned {
        let _ = writeln!(
            out,
            "Also mentioned: {}, {}. To rewrite these too, migrate into a fresh DEST with --map '{}={}'",
            human::escape(root),
            human::plural(*count, "time", "times"),
            human::escape(root),
            human::path(&outcome.home)
        );
    }
    if let Some(command) = &outcome.command {
        let what = match command.exit {
            Some(0) => "passed".to_owned(),
            Some(code) => styled(WARNING, format!("failed with exit code {code}")),
            None => styled(WARNING, "was ended by a signal"),
        };
        let _ = writeln!(
            out,
            "Your own check, `{}`, {what}.",
            human::escape(&command.command)
        );
    }
    let until = outcome
        .keep_until
        .to_zoned_datetime(ctx.clock.time_zone())
        .date();
    let _ = writeln!(
        out,
        "Keep the original until {until}.  Next: {}",
        styled(
            STRONG,
            format!("wbhome check --home {}", place::quoted(dest))
        )
    );
}

fn status(global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let record = migrate::newest(&home)?;
    let Some(outcome) = record.outcome()? else {
        return Err(Error::failed("the migration was stopped before its end:")
            .at(record.folder())
            .hint(format!(
                "run it again, it goes on where it stopped: wbhome migrate {} {}",
                place::quoted(&record.settings().source),
                place::quoted(home.root())
            )));
    };
    console.result("migrate-status/1", &outcome, |out| {
        let then = outcome.finished.to_zoned_datetime(ctx.clock.time_zone());
        let _ = writeln!(
            out,
            "Migrated {} ({})\n",
            then.strftime("%Y-%m-%d %H:%M"),
            human::age(ctx.clock.now(), outcome.finished)
        );
        write_outcome(out, &outcome, home.root(), console, ctx);
        let _ = writeln!(out, "Record: {}", human::path(&outcome.record));
    })?;
    Ok(Exit::Done)
}

fn verify(global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let verified = migrate::verify(&home, ctx)?;
    console.result("migrate-verify/1", &verified, |out| {
        write_verified(out, &verified)
    })?;
    Ok(verified.exit())
}

fn write_verified(out: &mut String, verified: &Verified) {
    let _ = writeln!(
        out,
        "{} compared with {}: {} as they should be, {} not.",
        human::plural(verified.compared, "entry", "entries"),
        human::path(&verified.source),
        human::count(verified.equal),
        human::count(verified.differences.len() as u64)
    );
    let mut last: Option<DifferenceKind> = None;
    for difference in &verified.differences {
        if last != Some(difference.kind) {
            let _ = writeln!(out, "\n{}", styled(STRONG, difference.kind.as_str()));
            last = Some(difference.kind);
        }
        let _ = writeln!(
            out,
            "  {}   {}",
            human::path(&difference.path),
            human::escape(&difference.detail)
        );
    }
    if verified.new_in_home > 0 {
        let _ = writeln!(
            out,
            "\n{} in the home that the source never had.",
            human::plural(verified.new_in_home, "file is", "files are")
        );
    }
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
