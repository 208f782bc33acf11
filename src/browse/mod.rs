//! Looking at a home. Nothing here writes.

pub mod ls;
mod path;

pub use path::{Outcome as PathOutcome, path};
