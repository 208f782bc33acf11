//! What a capability is handed by whoever calls it: a clock, somewhere to report progress, and a flag
//! that asks it to stop at the next safe point.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Clock, Error, Kind, Result};

/// How much a stage has to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    /// Files, or whatever the stage counts.
    pub items: u64,
    /// Bytes; 0 when the stage does not count bytes.
    pub bytes: u64,
}

/// Where a capability reports how far it is. Drawing it is the command line's business.
pub trait Progress: Sync {
    /// A new stage begins.
    fn stage(&self, name: &'static str, total: Total);
    /// So much more of the stage is done.
    fn advance(&self, items: u64, bytes: u64);
    /// The last stage is over.
    fn finish(&self);
}

/// Progress that nobody watches.
#[derive(Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn stage(&self, _: &'static str, _: Total) {}
    fn advance(&self, _: u64, _: u64) {}
    fn finish(&self) {}
}

/// Set by the signal handler; looked at between two files and between two blocks of a large one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that nobody has raised.
    pub fn new() -> Self {
        Stop::default()
    }

    /// The flag itself, for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Asks everybody to stop at the next safe point.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error of kind [`Kind::Interrupted`] once the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.raised() {
            return Err(Error::new(Kind::Interrupted, "interrupted"));
        }
        Ok(())
    }
}

/// The three together.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Time and randomness.
    pub clock: &'a dyn Clock,
    /// Where progress goes.
    pub progress: &'a dyn Progress,
    /// Whether to stop.
    pub stop: &'a Stop,
}
