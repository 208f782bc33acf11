//! `wbhome nightly`: everything that is to be done while nobody is at work.

use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::output::{Console, ERROR, FAINT, STRONG, WARNING, stdout_is_terminal, styled};
use super::{place, relay, rotate};
use crate::base::{Context, Exit, Result, human};
use crate::nightly::{self, Record, Request, Stage, Trouble};

/// Do all that is to be done every night: rotate, index, commit, backup, prune, relay
///
/// Each stage is done whatever became of those before it; a store is pruned only after its backup was good. One record of
/// it stays below .wbhome/runs/, and one exit code tells the gravest. When all is well and nobody watches, nothing is
/// printed. `wbhome schedule install` has the machine run it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome nightly
  wbhome nightly -n         what each stage would do
  wbhome nightly --json     the record")]
pub(super) struct NightlyArgs {}

pub(super) fn run(
    _: NightlyArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let request = Request {
        wait: global.lock_wait,
        stores: place::stores,
        git: place::git_dir,
        backup: place::backup_request,
        rotate: |home, ctx| rotate::request(home, Vec::new(), false, ctx),
        relay: place::open_relay,
        relay_request: |home| relay::request(home, None),
    };
    if global.dry_run {
        let record = nightly::plan(&home, &request, ctx);
        crate::base::Progress::finish(ctx.progress);
        tell(&record, true, global, console);
        console.result("nightly-plan/1", &record, |out| {
            write(out, &record, console.verbose);
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(record.exit);
    }
    let record = nightly::apply(&home, &request, ctx);
    crate::base::Progress::finish(ctx.progress);
    let watched = stdout_is_terminal() || console.verbose;
    tell(&record, watched, global, console);
    if console.json || watched || record.exit != Exit::Done {
        console.report("nightly/1", &record, |out| {
            write(out, &record, console.verbose);
        })?;
    }
    Ok(record.exit)
}

/// What went wrong, the worst first, and then what a person should know.
fn tell(record: &Record, watched: bool, global: &Global, console: &Console) {
    if console.json {
        return;
    }
    let again = place::again(global);
    let say = |head: String, trouble: &Trouble| {
        let message = place::spelled(&trouble.message, &again);
        console.say(&format!("{head} {message}\n"));
        for hint in &trouble.hints {
            console.hint(&place::spelled(hint, &again));
        }
    };
    let mut failed: Vec<&Stage> = record.stages.iter().collect();
    failed.retain(|stage| stage.exit != Exit::Done);
    failed.sort_by_key(|stage| std::cmp::Reverse(stage.exit.gravity()));
    for stage in failed {
        let head = match stage.exit {
            Exit::Partial | Exit::Problems => styled(WARNING, "warning:"),
            _ => styled(ERROR, "error:"),
        };
        for trouble in &stage.troubles {
            say(format!("{head} {}:", stage.name), trouble);
        }
    }
    if let Some(trouble) = &record.not_kept {
        say(styled(ERROR, "error:"), trouble);
    }
    if let Some(trouble) = record.hook.as_ref().and_then(|hook| hook.trouble.as_ref()) {
        console.say(&format!("{} {trouble}\n", styled(ERROR, "error:")));
    }
    for warning in &record.warnings {
        if warning.pressing || watched {
            console.warn(&place::spelled(&warning.message, &again));
            for hint in &warning.hints {
                console.hint(&place::spelled(hint, &again));
            }
        }
    }
}

/// A line for each stage.
fn write(out: &mut String, record: &Record, verbose: bool) {
    let mut stages: Vec<&Stage> = record.stages.iter().collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.exit.gravity()));
    for stage in stages {
        let store = stage.store.as_ref().map(|store| human::path(store));
        let store = store.map(|store| format!("{store}: ")).unwrap_or_default();
        let did = match (&stage.skipped, stage.exit) {
            (Some(why), _) => format!("not done: {why}"),
            (None, Exit::Done) => stage.did.clone(),
            (None, Exit::Partial) => format!("in part: {}", stage.did),
            (None, Exit::Locked) => "not done: somebody else was at work".to_owned(),
            (None, Exit::Interrupted) => "interrupted".to_owned(),
            (None, _) => "failed".to_owned(),
        };
        let took = std::time::Duration::from_millis(stage.took_ms);
        let took = match took.as_secs() {
            0 => String::new(),
            _ => format!("   {}", styled(FAINT, human::took(took))),
        };
        let name = format!("{:<9}", stage.name);
        let _ = writeln!(out, "{}{store}{did}{took}", styled(STRONG, name));
        for note in stage.notes.iter().filter(|_| verbose) {
            let _ = writeln!(out, "         {note}");
        }
    }
    if let Some(kept) = &record.record
        && (verbose || record.exit != Exit::Done)
    {
        let _ = writeln!(out, "The record: {}", human::path(kept));
    }
}
