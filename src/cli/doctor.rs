//! `wbhome doctor`: is this set-up sound.

use std::fmt::Write as _;

use clap::Args;

use super::args::Global;
use super::output::{Console, ERROR, FAINT, STRONG, WARNING, styled, terminal_width};
use super::width::fold;
use super::{place, schedule};
use crate::base::{Context, Exit, Result, human};
use crate::doctor::{self, Check, Report, Request, Verdict};

/// Say whether this set-up is sound, a line a check, with the cure for what is not
///
/// Which home is meant and why, what it lies on, settings, permissions, lock, what a killed command left, index, history,
/// backups and drills, the night, the agent application's own folder, the relay. Nothing is changed. Exit code 4 when there is an error;
/// warnings alone are 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome doctor
  wbhome doctor -q          only what is not as it should be
  wbhome doctor --json | jq -r '.checks[] | select(.cure) | .cure'")]
pub(super) struct DoctorArgs {}

pub(super) fn run(
    _: DoctorArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let (home, how) = place::open_found(global)?;
    let request = Request {
        how,
        user_home: place::user_home(),
        machine: schedule::machine().ok(),
        stores: place::stores,
        state: place::state_folders,
        git: place::git_dir,
        relay: place::relay_setting,
        device: place::known_device,
    };
    let mut report = doctor::look(&home, &request, ctx)?;
    crate::base::Progress::finish(ctx.progress);
    spell(&mut report, &place::again(global));
    let exit = report.exit();
    console.result("doctor/1", &report, |out| {
        write(out, &report, console.quiet)
    })?;
    Ok(exit)
}

/// What is to be typed is for this home.
fn spell(report: &mut Report, again: &str) {
    let spelled = |text: &String| place::spelled(text, again);
    for check in &mut report.checks {
        check.says = spelled(&check.says);
        check.cure = check.cure.as_ref().map(spelled);
        check.hints = check.hints.iter().map(spelled).collect();
    }
}

/// A line a check, the worst first.
fn write(out: &mut String, report: &Report, quiet: bool) {
    let mut checks: Vec<&Check> = report.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    checks.retain(|check| !quiet || check.verdict != Verdict::Ok);
    for check in checks {
        let (word, style) = match check.verdict {
            Verdict::Ok => ("ok", FAINT),
            Verdict::Warning => ("warning", WARNING),
            Verdict::Error => ("error", ERROR),
        };
        let word = styled(style, format!("{word:<8}"));
        let says = fold(&check.says, 21, terminal_width());
        let _ = writeln!(out, "{word}{:<12} {says}", check.name);
        let mut below = |name: &str, text: &str| {
            let name = styled(FAINT, format!("{name:>19}"));
            let _ = writeln!(out, "{name}  {text}");
        };
        if let Some(cure) = &check.cure {
            // A command is copied as it stands.
            below("cure:", cure);
        }
        for hint in &check.hints {
            below("hint:", &fold(hint, 21, terminal_width()));
        }
    }
    if quiet {
        return;
    }
    let told = match (report.errors, report.warnings) {
        (0, 0) => "All is well.".to_owned(),
        (errors, warnings) => format!(
            "{}, {}.",
            human::plural(errors, "error", "errors"),
            human::plural(warnings, "warning", "warnings")
        ),
    };
    let _ = writeln!(out, "\n{}", styled(STRONG, told));
}
