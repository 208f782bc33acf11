//! Making, labelling, removing and bringing back sessions, and making the index agree with what is on the disk.

mod agree;
pub mod label;
pub mod new;
mod packs;
pub mod reconcile;
pub mod remove;
pub mod restore;
mod scan;

pub use agree::{Changes, Problem, Renamed, new_entry};
pub use packs::Said;
pub use scan::{ArchiveSeen, Knowing, Scan, Seen, scan};
