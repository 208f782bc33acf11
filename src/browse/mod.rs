//! Looking at a home. Nothing here writes.

mod below;
pub mod du;
pub mod ls;
mod path;
mod running;
pub mod search;
pub mod show;

pub use below::{Name, below};
pub use path::{Outcome as PathOutcome, path};
pub use running::Running;
