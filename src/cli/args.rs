//! The command line as a whole: the global flags, which mean the same for every verb, and the verbs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, Parser, Subcommand};

use super::{
    archive, backup, check, commit, complete, diff, doctor, drill, du, history, index, init, label,
    ls, man, migrate, mv, new, nightly, path, relay, relink, restore, rm, rotate, schedule, search,
    shell_init, show, unarchive,
};

/// A home for every agent session: move it off the sync drive, keep it sound, find things in it.
#[derive(Debug, Parser)]
#[command(
    name = "wbhome",
    version,
    max_term_width = 100,
    propagate_version = false,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  wbhome migrate ~/Drive/workbuddy_home ~/workbuddy_home    off the sync drive, once
  wbhome ls --since 2w                                      what was done of late
  wbhome show @1                                            where the last session stands

Exit codes: 0 done · 1 failed · 2 usage · 3 done in part · 4 problems found · 10 no home · 11 locked · 12 newer format · 130 interrupted"
)]
pub struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// Flags that every verb takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The home [default: $WBHOME, the nearest one above, ~/workbuddy_home]
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub home: Option<PathBuf>,
    /// Print the result as one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// Show what would be done, and change nothing
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// Print only what was asked for, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Name each thing instead of counting
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Answer every question with yes
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: ColorChoice,
    /// Draw no progress bar
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// How long to wait for somebody else's lock
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub lock_wait: Duration,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    crate::base::parse_duration(text).map_err(|e| match e.hints().first() {
        Some(hint) => format!("{e}; {hint}"),
        None => e.to_string(),
    })
}

/// How old something must be that goes for good: a number alone would be one of seconds, and is meant as days.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err("write a number and a unit, such as 30d".to_owned()),
        Err(_) => duration(text),
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Init(init::InitArgs),
    New(new::NewArgs),
    Ls(ls::LsArgs),
    Show(show::ShowArgs),
    Path(path::PathArgs),
    Search(search::SearchArgs),
    Du(du::DuArgs),
    Label(label::LabelArgs),
    Mv(mv::MvArgs),
    Rm(rm::RmArgs),
    Restore(restore::RestoreArgs),
    History(history::HistoryArgs),
    Diff(diff::DiffArgs),
    Index(index::IndexArgs),
    Check(check::CheckArgs),
    Commit(commit::CommitArgs),
    Archive(archive::ArchiveArgs),
    Unarchive(unarchive::UnarchiveArgs),
    Rotate(rotate::RotateArgs),
    Backup(backup::BackupArgs),
    Drill(drill::DrillArgs),
    Doctor(doctor::DoctorArgs),
    Relink(relink::RelinkArgs),
    Migrate(migrate::MigrateArgs),
    Nightly(nightly::NightlyArgs),
    Schedule(schedule::ScheduleArgs),
    Relay(relay::RelayArgs),

    Completions(complete::CompletionsArgs),
    ShellInit(shell_init::ShellInitArgs),
    Man(man::ManArgs),
}
