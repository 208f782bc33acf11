//! What makes a machine run `wbhome nightly`: a systemd user timer, a crontab line or a launchd job.
//!
//! The texts are made without looking at anything (`systemd`, `cron`, `launchd`), so that they can be shown, compared
//! and tested. Each carries a marker with the id of the home: by it an entry is recognised as ours, and nothing else is
//! ever taken out. There is one entry a home; installing another kind takes the former one away, last.

mod cron;
mod installed;
mod job;
mod launchd;
mod steps;
mod systemd;

use std::path::PathBuf;

use serde::Serialize;

pub use self::installed::Installed;
pub use self::job::At;
use self::job::Job;
pub use self::steps::{Outcome, Step, apply};
use crate::base::wire::WirePath;
use crate::base::{Error, Result, human};
use crate::disk;
use crate::home::Home;

/// What runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum With {
    /// A user timer of systemd.
    Systemd,
    /// A line in the user's crontab.
    Cron,
    /// An agent of launchd, on macOS.
    Launchd,
}

impl With {
    const ALL: [With; 3] = [With::Systemd, With::Cron, With::Launchd];

    /// As people call it.
    pub fn described(self) -> &'static str {
        match self {
            With::Systemd => "a systemd user timer",
            With::Cron => "a line in the crontab",
            With::Launchd => "a launchd agent",
        }
    }
}

/// What is to be run, and where the entries of this user lie.
#[derive(Clone, Debug)]
pub struct Machine {
    /// This program, absolute and without links.
    pub program: PathBuf,
    /// The user's own folder.
    pub user_home: Option<PathBuf>,
    /// Where the user's settings lie, when that is not `.config` in it: `$XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
}

impl Machine {
    fn config(&self) -> Result<PathBuf> {
        let usual = || Some(self.user_home.as_ref()?.join(".config"));
        self.config.clone().or_else(usual).ok_or_else(homeless)
    }
}

fn homeless() -> Error {
    Error::failed("where your own settings lie is not known")
        .hint("HOME is not set, or is no absolute path")
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// What shall run it; the one that is installed, else whichever the machine has.
    pub with: Option<With>,
    /// When; else as it is installed, else at three.
    pub at: Option<At>,
}

/// A text that stands somewhere when all is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The file; none for the crontab.
    pub file: Option<WirePath>,
    /// All of the file, or the line.
    pub text: String,
}

/// What would be done.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// What runs it, or would; none when something is only taken out.
    pub with: Option<With>,
    /// Why that.
    pub why: String,
    /// When it is run, every day.
    pub at: At,
    /// What is run, as a person would type it.
    pub command: String,
    /// What stands there when all is done.
    pub entries: Vec<Entry>,
    /// What stands there now.
    pub installed: Vec<Installed>,
    /// What is to be done; nothing when it is installed like that.
    pub steps: Vec<Step>,
    /// Why it can not be done here.
    pub hindrance: Option<String>,
    /// Whether the user's timers go on when nobody is logged in; none where that is no question, or not known.
    pub lingers: Option<bool>,
    /// What a person may want to know.
    pub notes: Vec<String>,
}

/// How the night of this home would be installed, and what is installed.
///
/// # Errors
/// A name that can not be written there; a crontab that can not be read; an entry of that name that is not ours.
pub fn plan(home: &Home, machine: &Machine, request: &Request) -> Result<Plan> {
    let mut job = Job::of(home, machine, request.at)?;
    let found = Found::look(&job, machine)?;
    let (with, why) = choose(request.with, &found);
    if request.at.is_none()
        && let Some(at) = found.at(with)
    {
        job.at = at;
    }
    let mut plan = Plan::of(&job, &found, Some(with), why);
    match with {
        With::Systemd => systemd::plan(&job, machine, &found, &mut plan)?,
        With::Cron => cron::plan(&job, &found, &mut plan)?,
        With::Launchd => launchd::plan(&job, machine, &found, &mut plan)?,
    }
    for other in With::ALL.into_iter().filter(|other| *other != with) {
        found.take_out(other, &job, &mut plan);
    }
    Ok(plan)
}

/// How everything that makes this machine run the night of this home would be taken out.
///
/// # Errors
/// As [`plan`].
pub fn plan_removal(home: &Home, machine: &Machine) -> Result<Plan> {
    let job = Job::of(home, machine, None)?;
    let found = Found::look(&job, machine)?;
    let mut plan = Plan::of(&job, &found, None, String::new());
    for with in With::ALL {
        found.take_out(with, &job, &mut plan);
    }
    Ok(plan)
}

impl Plan {
    fn of(job: &Job, found: &Found, with: Option<With>, why: String) -> Plan {
        let installed = [&found.systemd, &found.launchd].into_iter().flatten();
        let installed = installed.flat_map(|files| files.installed(job));
        Plan {
            with,
            why,
            at: job.at,
            command: job.command(),
            entries: Vec::new(),
            installed: installed.chain(found.crontab.installed(job)).collect(),
            steps: Vec::new(),
            hindrance: None,
            lingers: None,
            notes: Vec::new(),
        }
    }
}

/// What this machine has, and what of ours is in it.
#[derive(Debug)]
struct Found {
    /// Whether the user's own systemd answers.
    manager: bool,
    systemd: Option<installed::Files>,
    crontab: cron::Crontab,
    launchd: Option<installed::Files>,
}

impl Found {
    fn look(job: &Job, machine: &Machine) -> Result<Found> {
        let look = |files: Result<Vec<PathBuf>>, with| match files {
            Ok(files) => installed::Files::read(with, job, files).map(Some),
            Err(_) => Ok(None),
        };
        Ok(Found {
            manager: systemd::answers()?,
            systemd: look(systemd::files(job, machine), With::Systemd)?,
            crontab: cron::Crontab::read(job)?,
            launchd: look(launchd::files(job, machine), With::Launchd)?,
        })
    }

    fn files(&self, with: With) -> Option<&installed::Files> {
        match with {
            With::Systemd => self.systemd.as_ref(),
            With::Launchd => self.launchd.as_ref(),
            With::Cron => None,
        }
    }

    fn has(&self, with: With) -> bool {
        match with {
            With::Cron => self.crontab.has_ours(),
            _ => self.files(with).is_some_and(installed::Files::any),
        }
    }

    /// When what is installed runs.
    fn at(&self, with: With) -> Option<At> {
        let own = |with| match with {
            With::Cron => self.crontab.at(),
            _ => self.files(with)?.at(),
        };
        own(with).or_else(|| With::ALL.into_iter().find_map(own))
    }

    fn take_out(&self, with: With, job: &Job, plan: &mut Plan) {
        if !self.has(with) {
            return;
        }
        match with {
            With::Systemd => systemd::take_out(job, self, plan),
            With::Cron => plan.steps.extend(self.crontab.without_ours()),
            With::Launchd => launchd::take_out(job, self, plan),
        }
    }
}

/// What shall run it, and why that.
fn choose(asked: Option<With>, found: &Found) -> (With, String) {
    if let Some(asked) = asked {
        return (asked, "you named it".to_owned());
    }
    if let Some(there) = With::ALL.into_iter().find(|with| found.has(*with)) {
        return (there, "it is installed".to_owned());
    }
    if cfg!(target_os = "macos") {
        return (With::Launchd, "this is macOS".to_owned());
    }
    match (found.manager, found.crontab.is_possible()) {
        (true, _) => (With::Systemd, "`systemctl --user` works here".to_owned()),
        (false, true) => (
            With::Cron,
            "`systemctl --user` does not work here, and there is `crontab`".to_owned(),
        ),
        (false, false) => (
            With::Systemd,
            "there is no `crontab`; `systemctl --user` does not work here either".to_owned(),
        ),
    }
}

/// What a program has said of why it would not.
fn complaint(said: &disk::Finished) -> String {
    human::escape(&said.complaint()).into_owned()
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
