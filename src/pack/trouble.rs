//! What goes wrong while a pack is read: the pack is not what it should be, or the machine fails.
//!
//! The two are kept apart, because verifying and salvaging go on after the first, and nothing goes on after the second.

use std::fmt;

use super::{Pack, Problem};
use crate::base::{Error, human};

/// Something wrong with a pack, found while it is read.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    /// Which part, for a person.
    pub part: String,
    /// What.
    pub what: String,
    /// What a person can do about it.
    pub hint: Option<String>,
    /// The frame that was being read.
    pub frame: u32,
}

/// Why reading went no further.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The pack is not what it should be.
    Damage(Damage),
    /// It can not be read, what comes out can not be written, or somebody wants it to stop.
    Failed(Error),
}

impl Damage {
    pub(super) fn new(part: impl Into<String>, what: impl Into<String>, frame: u32) -> Damage {
        Damage {
            part: part.into(),
            what: what.into(),
            hint: None,
            frame,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Damage {
        self.hint = Some(hint.into());
        self
    }

    /// As a problem that concerns no member that anybody could name.
    pub(super) fn problem(&self) -> Problem {
        Problem {
            part: self.part.clone(),
            what: self.what.clone(),
            members: Vec::new(),
        }
    }

    /// As an error about the pack.
    pub(super) fn error(self, attempt: &str, pack: &Pack) -> Error {
        let error = Error::failed(attempt).at(&pack.path).because(Cause {
            part: self.part,
            what: self.what,
        });
        match self.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl Trouble {
    /// As an error about the pack.
    pub(super) fn error(self, attempt: &str, pack: &Pack) -> Error {
        match self {
            Trouble::Damage(damage) => damage.error(attempt, pack),
            Trouble::Failed(error) => error,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Failed(error)
    }
}

impl From<Damage> for Trouble {
    fn from(damage: Damage) -> Self {
        Trouble::Damage(damage)
    }
}

#[derive(Debug)]
struct Cause {
    part: String,
    what: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

impl std::error::Error for Cause {}

/// A data frame for a person, who counts from one.
pub(super) fn frame_named(frame: u32, from: u64) -> String {
    let number = human::count(u64::from(frame) + 1);
    format!("the data frame {number} (at byte {})", human::count(from))
}
