//! The ground floor: what every room speaks of and none owns.
//!
//! Errors and exit codes, time and randomness, progress and interruption, sizes and ages. Nothing here
//! touches a file, prints, or reads the environment.

mod clock;
mod context;
mod error;
mod exit;
pub mod failpoint;
pub mod human;
pub mod stamp;
mod when;
pub mod wire;

pub use clock::{Clock, FixedClock, SystemClock};
pub use context::{Context, NoProgress, Progress, Stop, Total};
pub use error::{Error, Kind, Result, is_full};
pub use exit::Exit;
pub use when::{parse_duration, parse_when};
