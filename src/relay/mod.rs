//! Sessions that travel: into a folder that an external sync client carries, and back by a person's word.
//!
//! One device writes to a session at a time: the one that holds its lease (`lease`, `leases`). What a device says of
//! itself stands in a file of its own (`devices`); what was heard of the others, and when, in the home (`seen`).

mod claim;
mod devices;
mod gate;
mod lapse;
pub mod lease;
pub mod leases;
mod look;
mod meant;
mod place;
mod seen;

pub use claim::Claim;
pub use devices::{Devices, FOLDER, Holder, Lease, Said, Sent};
pub use gate::gate;
pub use lapse::{give_up, overtaken, without_session};
pub use look::{Look, look};
pub use meant::meant;
pub use place::{Relay, Setting};
pub use seen::{Seen, note};
