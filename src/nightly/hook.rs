//! The person's own command after the night: `[nightly] on_success` or `on_failure`. No lock is held while it runs, so
//! it may call this program.

use serde::Serialize;

use super::Record;
use crate::base::{Exit, Kind, Stop, human};
use crate::disk;
use crate::home::{Home, Nightly};

/// What was run, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hook {
    /// `on_success` or `on_failure`.
    pub name: &'static str,
    /// Its exit code; none when a signal ended it, or it was not run.
    pub code: Option<i32>,
    /// What went wrong with it, if something did.
    pub trouble: Option<String>,
    #[serde(skip)]
    interrupted: bool,
}

impl Hook {
    /// What it means for the night.
    pub fn exit(&self) -> Exit {
        match self.trouble {
            None => Exit::Done,
            Some(_) if self.interrupted => Exit::Interrupted,
            Some(_) => Exit::Failed,
        }
    }
}

/// Runs the command for how the night has ended. None when none is set, or the home was merely found.
pub(super) fn run(home: &Home, settings: &Nightly, record: &Record, stop: &Stop) -> Option<Hook> {
    let (name, command) = match record.exit {
        Exit::Done => ("on_success", &settings.on_success),
        _ => ("on_failure", &settings.on_failure),
    };
    let command = command.as_ref()?.of(home)?;
    // A night that was interrupted is told of all the same.
    let anew = Stop::new();
    let stop = if stop.raised() { &anew } else { stop };
    let ran = disk::run_in(home.root(), command, &record.document(), stop);
    let interrupted = matches!(&ran, Err(error) if error.kind() == Kind::Interrupted);
    let (code, trouble) = match ran {
        Ok(Some(0)) => (Some(0), None),
        Ok(Some(code)) => (Some(code), Some(format!("ended with exit code {code}"))),
        Ok(None) => (None, Some("was ended by a signal".to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    let trouble =
        trouble.map(|trouble| format!("[nightly] {name} (`{}`) {trouble}", human::escape(command)));
    Some(Hook {
        name,
        code,
        trouble,
        interrupted,
    })
}
