//! Looking at a home. Nothing here writes.

pub mod du;
pub mod ls;
mod path;
mod running;
pub mod search;
pub mod show;

pub use path::{Outcome as PathOutcome, path};
pub use running::Running;
