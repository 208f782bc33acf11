//! The units of a systemd user timer. See systemd.timer(5), systemd.service(5), systemd.syntax(7).

use std::path::{Path, PathBuf};

use super::job::{At, Job};
use super::{Found, Machine, Plan, Step, complaint, homeless};
use crate::base::{Error, Result};
use crate::disk;

/// Whether the user's own systemd is there.
///
/// # Errors
/// When it says nothing at all: nobody knows then what it runs.
pub(super) fn answers() -> Result<bool> {
    match disk::ask_program("systemctl", &["--user", "show-environment"]) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Err(Error::failed("what runs the night is not known")
                .because(error)
                .hint("look at it by yourself: systemctl --user show-environment"))
        }
        asked => Ok(matches!(asked, Ok(Some(said)) if said.is_good())),
    }
}

/// The service, then the timer.
pub(super) fn files(job: &Job, machine: &Machine) -> Result<Vec<PathBuf>> {
    let folder = machine.config()?.join("systemd/user");
    let file = |kind: &str| folder.join(format!("{}.{kind}", job.name()));
    Ok(vec![file("service"), file("timer")])
}

/// The texts of the service and the timer.
pub(super) fn texts(job: &Job) -> [String; 2] {
    let head = format!(
        "# {}: made by `wbhome schedule install`, taken out by `wbhome schedule remove`.\n\
         # To change something, `systemctl --user edit` keeps it beside this file.\n\
         [Unit]\n\
         Description=The night of {}\n",
        job.marker(),
        specifiers(&job.home)
    );
    let command = [
        program(&job.program),
        "nightly".to_owned(),
        "--home".to_owned(),
        word(&job.home),
    ];
    // A night that hangs must have ended before the next one.
    let service = format!(
        "{head}\n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={}\n\
         Nice=10\n\
         IOSchedulingClass=idle\n\
         TimeoutStartSec=23h\n",
        command.join(" ")
    );
    let timer = format!(
        "{head}\n\
         [Timer]\n\
         OnCalendar=*-*-* {}:00\n\
         RandomizedDelaySec=10min\n\
         Persistent=true\n\n\
         [Install]\n\
         WantedBy=timers.target\n",
        job.at
    );
    [service, timer]
}

/// `%` begins what systemd fills in, everywhere in a unit.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of a command line: quoted, and nothing in it is filled in.
pub(super) fn word(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", specifiers(&text).replace('$', "$$"))
}

/// The first word of a command line. It is not looked at for variables, so that a `$` stands for itself.
pub(super) fn program(text: &str) -> String {
    format!("\"{}\"", specifiers(text))
}

/// When a timer of ours runs.
pub(super) fn at(text: &str) -> Option<At> {
    let at = text
        .lines()
        .find_map(|line| line.strip_prefix("OnCalendar=*-*-* "))?;
    let mut parts = at.split(':');
    At::of(parts.next()?, parts.next()?)
}

pub(super) fn plan(job: &Job, machine: &Machine, found: &Found, plan: &mut Plan) -> Result<()> {
    let files = found.systemd.as_ref().ok_or_else(homeless)?;
    // See string_is_safe in systemd: it does not start a program of such a name.
    if job.program.contains(['"', '\'', '\\']) {
        plan.hindrance = Some(
            "systemd starts no program whose path holds a quote or a backslash; --with cron does"
                .to_owned(),
        );
    } else if !found.manager {
        plan.hindrance = Some(
            "`systemctl --user` does not work here: no systemd of your own is running".to_owned(),
        );
    }
    let timer = format!("{}.timer", job.name());
    (plan.entries, plan.steps) = files.write(texts(job));
    let same = plan.steps.is_empty();
    if !same {
        plan.steps.push(run(&["daemon-reload"]));
    }
    if !same || !is_enabled(&timer) {
        plan.steps.push(run(&["enable", "--now", &timer]));
    }
    if !same {
        // One that runs already goes on with the time that it had.
        plan.steps.push(run(&["restart", &timer]));
    }
    plan.lingers = lingers();
    if plan.lingers == Some(false) {
        plan.notes.push(
            "Your timers stop when you log out. So that they go on: loginctl enable-linger"
                .to_owned(),
        );
    }
    if !files_are_default(machine) {
        plan.notes.push(
            "$XDG_CONFIG_HOME is set: systemd finds the units only if it has the same".to_owned(),
        );
    }
    Ok(())
}

fn files_are_default(machine: &Machine) -> bool {
    match (&machine.config, &machine.user_home) {
        (Some(config), Some(home)) => *config == home.join(".config"),
        (config, _) => config.is_none(),
    }
}

pub(super) fn take_out(job: &Job, found: &Found, plan: &mut Plan) {
    let timer = format!("{}.timer", job.name());
    if found.manager {
        plan.steps.push(run(&["disable", "--now", &timer]));
    } else {
        plan.notes.push(format!(
            "`systemctl --user` does not work here; where it does, `systemctl --user disable {timer}` takes away the link that turns the timer on"
        ));
    }
    plan.steps
        .extend(found.systemd.iter().flat_map(|files| files.remove()));
    if found.manager {
        plan.steps.push(run(&["daemon-reload"]));
    }
}

fn run(words: &[&str]) -> Step {
    let words = ["systemctl", "--user"].iter().chain(words);
    Step::Run {
        command: words.map(|word| (*word).to_owned()).collect(),
    }
}

fn is_enabled(timer: &str) -> bool {
    let on = |what| {
        let asked = disk::ask_program("systemctl", &["--user", what, timer]);
        matches!(asked, Ok(Some(said)) if said.is_good())
    };
    on("is-enabled") && on("is-active")
}

/// Whether the user's systemd goes on when nobody is logged in; `None` when it does not say.
fn lingers() -> Option<bool> {
    let user = disk::current_user().to_string();
    let asked = ["show-user", user.as_str(), "-p", "Linger"];
    let said = disk::ask_program("loginctl", &asked).ok()??;
    match said.output.trim_ascii() {
        b"Linger=yes" => Some(true),
        b"Linger=no" => Some(false),
        _ => None,
    }
}

/// Has systemd look at the units, which lie in a folder of ours. Gives the name of what has looked; none where there is
/// nothing that could.
///
/// # Errors
/// What it says of them.
pub(super) fn verify(units: &[PathBuf]) -> Result<Option<&'static str>> {
    let mut words = vec!["--user".into(), "verify".into()];
    words.extend(units.iter().map(|unit| unit.as_os_str().to_owned()));
    let Ok(Some(said)) = disk::ask_program("systemd-analyze", &words) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&said.errors).into_owned();
    // Where no systemd runs it can not even begin.
    if text.contains("Failed to initialize manager") || text.contains("Unknown operation") {
        return Ok(None);
    }
    // It ends well after a line that it could not understand, and it tells of other units, too.
    let ours = |line: &&str| units.iter().any(|unit| line.contains(&*name_of(unit)));
    let complaints: Vec<&str> = text.lines().filter(ours).collect();
    match (said.is_good(), complaints.is_empty()) {
        (true, true) => Ok(Some("systemd-analyze verify")),
        (good, _) => Err(Error::failed(format!(
            "systemd does not take the units: {}",
            match good {
                true => crate::base::human::escape(&complaints.join("; ")).into_owned(),
                false => complaint(&said),
            }
        ))
        .hint("nothing was installed; --with cron may do")),
    }
}

fn name_of(unit: &Path) -> String {
    let name = unit.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
