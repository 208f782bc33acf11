//! Whether a set-up is sound: which home and where it lies, its settings, what a killed command left, history, backups,
//! the night, the agent application's own folder, the relay.
//!
//! A composition, as the night is: it asks each capability through its public face, and knows how none of them works. A
//! check is one line with one verdict and, where something is wrong, the command that cures it. What a person does not
//! use is no lack; that nothing else holds a copy of the home is one. Nothing is changed, not even a lock is taken.

mod agent;
mod indexed;
mod keeping;
mod night;
mod place;
mod relay;
mod rest;
mod settings;
mod snapshots;
mod stores;
mod writing;

use std::path::PathBuf;

use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result};
use crate::home::{Config, Device, Home, How, Trust};
use crate::nightly::schedule::Machine;
use crate::relay::Setting;

/// How a check has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and may not when it is needed.
    Warning,
    /// Something does not work.
    Error,
}

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// The same in a line.
    pub says: String,
    /// The command that puts it right, to be typed as it is: where only a person can say what it is done with, it is a
    /// hint.
    pub cure: Option<String>,
    /// What else a person can do, or should know.
    pub hints: Vec<String>,
}

/// Everything that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The home.
    #[serde(flatten)]
    pub home: WirePath,
    /// Its id.
    pub id: String,
    /// The version of the program.
    pub program: &'static str,
    /// Whether it is trusted.
    pub trust: Trust,
    /// Check by check.
    pub checks: Vec<Check>,
    /// How many of them are warnings.
    pub warnings: u64,
    /// How many are errors.
    pub errors: u64,
}

/// What only the command line knows.
#[derive(Clone, Debug)]
pub struct Request {
    /// Why this home is meant.
    pub how: How,
    /// The user's own folder.
    pub user_home: Option<PathBuf>,
    /// This program and this user; why they are not known, if so.
    pub machine: Option<Machine>,
    /// Finds the folders of the stores, which the settings may name by what the environment holds.
    pub stores: fn(&Home) -> Result<Vec<PathBuf>>,
    /// Finds the application's own folders.
    pub state: fn(&Home) -> Result<Vec<PathBuf>>,
    /// Finds where the settings say that the repository lies; none says that it is in the home.
    pub git: fn(&Config) -> Option<PathBuf>,
    /// Finds the relay that the settings name.
    pub relay: fn(&Home) -> Result<Option<Setting>>,
    /// Finds this device, as long as it is known.
    pub device: fn() -> Result<Option<Device>>,
}

/// Everything that a check needs.
struct Visit<'a> {
    home: &'a Home,
    /// Why they are not known, when they can not be read.
    config: Result<Config>,
    request: &'a Request,
    context: &'a Context<'a>,
}

/// What is looked at, in order. Each may have several things to say.
const CHECKS: [fn(&Visit) -> Vec<Check>; 20] = [
    place::home,
    place::permissions,
    place::filesystem,
    place::room,
    place::layout,
    settings::understood,
    settings::secrets,
    settings::rotation,
    writing::lock,
    writing::journal,
    indexed::index,
    keeping::history,
    stores::stores,
    stores::drill,
    night::schedule,
    night::last,
    agent::folder,
    agent::retention,
    relay::relay,
    rest::trash,
];

/// Looks at everything.
///
/// # Errors
/// Interruption alone: what can not be looked at is what a check says.
pub fn look(home: &Home, request: &Request, context: &Context) -> Result<Report> {
    let visit = Visit {
        home,
        config: Config::load(home),
        request,
        context,
    };
    let mut checks = Vec::new();
    for check in CHECKS {
        context.stop.check()?;
        checks.extend(check(&visit));
    }
    context.stop.check()?;
    let count = |verdict| {
        checks
            .iter()
            .filter(|c: &&Check| c.verdict == verdict)
            .count() as u64
    };
    Ok(Report {
        home: home.root().to_path_buf().into(),
        id: home.id().to_owned(),
        program: env!("CARGO_PKG_VERSION"),
        trust: home.trust(),
        warnings: count(Verdict::Warning),
        errors: count(Verdict::Error),
        checks,
    })
}

impl Report {
    /// Problems are errors: a warning is for a day that has not come.
    pub fn exit(&self) -> Exit {
        match self.errors {
            0 => Exit::Done,
            _ => Exit::Problems,
        }
    }
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, says: impl Into<String>) -> Check {
        Check {
            name,
            verdict,
            says: says.into(),
            cure: None,
            hints: Vec::new(),
        }
    }

    fn ok(name: &'static str, says: impl Into<String>) -> Check {
        Check::new(name, Verdict::Ok, says)
    }

    fn warning(name: &'static str, says: impl Into<String>) -> Check {
        Check::new(name, Verdict::Warning, says)
    }

    fn error(name: &'static str, says: impl Into<String>) -> Check {
        Check::new(name, Verdict::Error, says)
    }

    /// What could not be done, with its hints.
    fn failed(name: &'static str, error: &Error) -> Check {
        Check {
            hints: error.hints().to_vec(),
            ..Check::error(name, error.to_string())
        }
    }

    fn cure(mut self, command: impl Into<String>) -> Check {
        self.cure = Some(command.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Check {
        self.hints.push(hint.into());
        self
    }
}

/// A file to be changed by hand: the command that opens it.
fn edit(path: &std::path::Path) -> String {
    format!("${{EDITOR:-vi}} {}", crate::base::human::quoted(path))
}
