//! Making and labelling sessions, and making the index agree with what is on the disk.

mod agree;
pub mod label;
pub mod new;
pub mod reconcile;
mod scan;

pub use agree::{Changes, Problem, Renamed};
pub use scan::{ArchiveSeen, Scan, Seen, scan};
