//! `wbhome schedule`: what makes the machine run the night.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::args::Global;
use super::output::{Console, FAINT, STRONG, can_ask, styled};
use super::place;
use crate::base::{Context, Error, Exit, Result, human};
use crate::disk;
use crate::home::Home;
use crate::nightly::schedule::{self, At, Installed, Machine, Outcome, Plan, Request, Step, With};

/// Have the machine run `wbhome nightly` every night
///
/// A systemd user timer where `systemctl --user` works, else a line in your crontab; on macOS a launchd agent. What is
/// installed names this program and this home by their absolute paths, and needs nothing from the environment.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  wbhome schedule show                     what would be installed, and what is
  wbhome schedule install --at 02:30
  wbhome schedule install --with cron -y   without a question
  wbhome schedule remove"
)]
pub(super) struct ScheduleArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// What would be installed and where, and what is installed now
    #[command(after_help = "Examples:
  wbhome schedule show
  wbhome schedule show --with cron    the lines for a crontab")]
    Show(How),
    /// Install it, or bring what is installed up to date
    ///
    /// Shows what it is about to write, and asks. Run again, it changes only what is not as it should be.
    #[command(after_help = "Examples:
  wbhome schedule install --at 03:00
  wbhome schedule install -n    what would be written, and where")]
    Install(How),
    /// Take out what `install` has put in, and nothing else
    #[command(after_help = "Examples:
  wbhome schedule remove
  wbhome schedule remove -n    what would be taken out")]
    Remove,
}

#[derive(Debug, Args)]
struct How {
    /// When, every day, by the machine's own clock [default: as it is installed, else 03:00]
    #[arg(long, value_name = "HH:MM")]
    at: Option<At>,
    /// What shall run it [default: what is installed, else what the machine has]
    #[arg(long, value_name = "WHAT")]
    with: Option<Runs>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Runs {
    Systemd,
    Cron,
    Launchd,
}

impl How {
    fn request(&self) -> Request {
        let with = self.with.map(|with| match with {
            Runs::Systemd => With::Systemd,
            Runs::Cron => With::Cron,
            Runs::Launchd => With::Launchd,
        });
        Request { with, at: self.at }
    }
}

pub(super) fn run(
    args: ScheduleArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let machine = machine()?;
    match args.action {
        Action::Show(how) => show(&home, &machine, &how.request(), global, console),
        Action::Install(how) => {
            let request = how.request();
            let plan = |home: &Home| schedule::plan(home, &machine, &request);
            let again = format!("wbhome schedule install{} --yes", request.again());
            change(&home, "install", plan, &again, global, console, ctx)
        }
        Action::Remove => {
            let plan = |home: &Home| schedule::plan_removal(home, &machine);
            let again = "wbhome schedule remove --yes";
            change(&home, "remove", plan, again, global, console, ctx)
        }
    }
}

/// This program and this user, as the environment tells.
pub(super) fn machine() -> Result<Machine> {
    let program = std::env::current_exe()
        .map_err(|e| Error::failed("where this program lies can not be found").because(e))?;
    Ok(Machine {
        program: disk::real_path(&program)?,
        user_home: place::user_home(),
        config: std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|config| config.is_absolute()),
    })
}

fn show(
    home: &Home,
    machine: &Machine,
    request: &Request,
    global: &Global,
    console: &Console,
) -> Result<Exit> {
    let shown = Outcome::only_shown(schedule::plan(home, machine, request)?);
    let plan = &shown.plan;
    console.result("schedule/1", &shown, |out| {
        write_installed(out, &plan.installed);
        if plan.steps.is_empty() {
            let _ = writeln!(out, "Nothing to install: it is as it should be.");
        } else {
            write_with(out, plan, "would run");
            write_entries(out, plan);
        }
        if let Some(hindrance) = &plan.hindrance {
            let _ = writeln!(out, "It can not be installed: {hindrance}");
        }
        write_notes(out, plan);
        if !plan.steps.is_empty() && plan.hindrance.is_none() {
            let wbhome = place::again(global);
            let _ = writeln!(out, "Next: {wbhome} schedule install{}", request.again());
        }
    })?;
    Ok(Exit::Done)
}

/// Installs or removes: the same question, the same lock, the same way to tell it.
fn change(
    home: &Home,
    verb: &str,
    plan: impl Fn(&Home) -> Result<Plan>,
    again: &str,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if global.dry_run {
        let shown = Outcome::only_shown(plan(home)?);
        console.result("schedule/1", &shown, |out| {
            write_steps(out, &shown.plan);
            write_notes(out, &shown.plan);
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(Exit::Done);
    }
    place::refuse_untrusted(home)?;
    let command = format!("schedule {verb}");
    let locked = place::lock(home, &command, global, console, ctx)?;
    let plan = plan(&locked)?;
    if !plan.steps.is_empty() && !global.yes && plan.hindrance.is_none() {
        let mut text = String::new();
        write_steps(&mut text, &plan);
        console.say(&text);
        if !console.ask("Do this?", false) {
            let hint = match can_ask() {
                true => "nothing was changed".to_owned(),
                false => format!("without a terminal to ask on: {again}"),
            };
            return Err(Error::failed("nothing was installed or removed").hint(hint));
        }
    }
    let nothing = plan.steps.is_empty();
    let done = schedule::apply(&locked, plan, ctx)?;
    console.report("schedule/1", &done, |out| {
        if global.yes || console.verbose {
            write_steps(out, &done.plan);
        }
        match (done.plan.with, nothing) {
            (Some(_), true) => {
                let _ = writeln!(out, "Nothing to install: it is as it should be.");
            }
            (Some(_), false) => write_with(out, &done.plan, "runs"),
            (None, true) => {
                let _ = writeln!(out, "Nothing to remove: nothing of this home is installed.");
            }
            (None, false) => {
                let _ = writeln!(
                    out,
                    "{}",
                    styled(STRONG, "Nothing runs the night any more.")
                );
            }
        }
        write_notes(out, &done.plan);
    })?;
    Ok(Exit::Done)
}

fn write_with(out: &mut String, plan: &Plan, verb: &str) {
    if let Some(with) = plan.with {
        let head = format!("{} {verb} the night at {}", with.described(), plan.at);
        let mut head = head.chars();
        let first = head.next().into_iter().flat_map(char::to_uppercase);
        let head: String = first.chain(head).collect();
        let _ = writeln!(
            out,
            "{}   {}",
            styled(STRONG, head),
            styled(FAINT, &plan.why)
        );
        let _ = writeln!(out, "  {}", human::escape(&plan.command));
    }
}

fn write_entries(out: &mut String, plan: &Plan) {
    for entry in &plan.entries {
        let name = match &entry.file {
            Some(file) => human::path(file),
            None => "your crontab".to_owned(),
        };
        let _ = writeln!(out, "\n{}", styled(FAINT, format!("{name}:")));
        write_text(out, &entry.text);
    }
    let _ = writeln!(out);
}

/// A text, a bit to the right.
fn write_text(out: &mut String, text: &str) {
    for line in text.lines() {
        let _ = match line.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "  {}", human::escape(line)),
        };
    }
}

fn write_installed(out: &mut String, installed: &[Installed]) {
    for one in installed {
        let name = match &one.file {
            Some(file) => human::path(file),
            None => format!("your crontab: {}", human::escape(&one.text)),
        };
        let _ = writeln!(out, "{} {name}", styled(FAINT, "installed:"));
        for differs in &one.differs {
            let _ = writeln!(out, "  {differs}");
        }
    }
    if installed.is_empty() {
        let _ = writeln!(out, "Nothing of this home is installed.");
    }
}

fn write_steps(out: &mut String, plan: &Plan) {
    for step in &plan.steps {
        let _ = match step {
            Step::Write { path, replaces, .. } => writeln!(
                out,
                "{} {}",
                match replaces {
                    Some(_) => "write anew",
                    None => "write",
                },
                human::path(path)
            ),
            Step::Remove { path, .. } => writeln!(out, "remove {}", human::path(path)),
            Step::Crontab { added, removed, .. } => {
                let removed = removed.iter().map(|line| format!("- {line}"));
                let lines = removed.chain(added.iter().map(|line| format!("+ {line}")));
                let lines: Vec<String> = lines.collect();
                writeln!(out, "your crontab:").map(|()| write_text(out, &lines.join("\n")))
            }
            Step::Run { command } => writeln!(out, "run {}", human::escape(&command.join(" "))),
        };
        if let Step::Write { text, .. } = step {
            write_text(out, text);
        }
    }
}

fn write_notes(out: &mut String, plan: &Plan) {
    for note in &plan.notes {
        let _ = writeln!(out, "{}", human::escape(note));
    }
}
