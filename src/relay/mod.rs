//! Sessions that travel: into a folder that an external sync client carries, and back by a person's word.

mod devices;
mod place;

pub use devices::{Devices, FOLDER, Holder, Lease, Said, Sent};
pub use place::{Relay, Setting};
