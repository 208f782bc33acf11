//! The night: what is done while nobody is at work, and what makes the machine do it.
//!
//! A composition: it calls several capabilities through their public faces, and knows how none of them works. Its stages
//! are a list (`stages`); each is done whatever became of those before it, takes the lock of the home for itself and lets
//! go of it, and says what it did. All of it is one record (`record`) and one exit code. At the very end a command of the
//! person's own gets the record (`hook`).

mod hook;
mod record;
pub mod schedule;
mod stages;
mod unrehearsed;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::backup::run;
use crate::base::{Context, Error, Exit, Result};
use crate::home::{Config, Home};
use crate::relay::{Relay, sync};
use crate::rotate;

pub use self::hook::Hook;
pub use self::record::{Past, Record, Stage, Trouble, Warning, last_night};

/// How the night is to be done.
#[derive(Clone, Debug)]
pub struct Request {
    /// How long each stage waits for somebody else's lock.
    pub wait: Duration,
    /// Finds the folders of the stores, which the settings may name by what the environment holds.
    pub stores: fn(&Home) -> Result<Vec<PathBuf>>,
    /// Finds where the settings say that the repository lies; none says that it is in the home.
    pub git: fn(&Config) -> Option<PathBuf>,
    /// Finds what a backup goes by.
    pub backup: fn(&Home) -> Result<run::Request>,
    /// Finds which logs are cut, and when.
    pub rotate: fn(&Home, &Context) -> Result<rotate::Request>,
    /// Opens the relay that the settings name.
    pub relay: fn(&Home) -> Result<Relay>,
    /// Finds what goes into it.
    pub relay_request: fn(&Home) -> Result<sync::Request>,
}

/// Everything that a stage needs.
struct Night<'a> {
    home: &'a Home,
    /// Why they are not known, when they can not be read.
    config: Result<Config>,
    request: &'a Request,
    context: &'a Context<'a>,
    /// Nothing is changed; each stage says what it would do.
    only_look: bool,
}

/// What the night would do.
pub fn plan(home: &Home, request: &Request, context: &Context) -> Record {
    let night = Night::new(home, request, context, true);
    night.stages().0
}

/// Does it, keeps the record, and runs the hook. What goes wrong stands in the record.
pub fn apply(home: &Home, request: &Request, context: &Context) -> Record {
    let night = Night::new(home, request, context, false);
    let (mut record, begun) = night.stages();
    record.take_time(begun.elapsed());
    let kept = record.keep(home);
    if let Ok(config) = &night.config {
        record.hook = hook::run(home, &config.nightly, &record, context.stop);
    }
    if let Some(hook) = &record.hook {
        record.exit = record.exit.merge(hook.exit());
        record.keep_again(&kept);
    }
    record
}

impl<'a> Night<'a> {
    fn new(
        home: &'a Home,
        request: &'a Request,
        context: &'a Context<'a>,
        only_look: bool,
    ) -> Night<'a> {
        Night {
            home,
            config: Config::load(home),
            request,
            context,
            only_look,
        }
    }

    fn stages(&self) -> (Record, Instant) {
        let begun = Instant::now();
        let mut record = Record::begin(self.home, self.context);
        if let Err(error) = &self.config {
            let mut stage = Stage::begin("settings", None, self.context);
            stage.fail(error);
            record.stages.push(stage);
        }
        for run in stages::STAGES {
            let done = run(self, &record.stages);
            record.stages.extend(done);
        }
        for stage in &record.stages {
            record.exit = record.exit.merge(stage.exit);
        }
        record.warnings = self.warnings(&record.stages);
        (record, begun)
    }

    /// What a person should know though nothing has failed.
    fn warnings(&self, stages: &[Stage]) -> Vec<Warning> {
        let told = stages.iter().flat_map(|stage| &stage.warnings);
        let mut warnings: Vec<Warning> = told.cloned().collect();
        warnings.extend(unrehearsed::warning(self));
        warnings
    }
}

/// What an error is, as an exit code and as a person reads it.
fn told(error: &Error) -> (Exit, Trouble) {
    let trouble = Trouble {
        message: error.to_string(),
        hints: error.hints().to_vec(),
    };
    (error.kind().exit(), trouble)
}
