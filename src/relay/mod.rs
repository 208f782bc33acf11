//! Sessions that travel: into a folder that an external sync client carries, and back by a person's word.

mod devices;
pub mod fetch;
mod lay;
mod place;
mod standing;
pub mod take;
mod version;

pub use devices::{Devices, FOLDER, Holder, Lease, Said, Sent};
pub use place::{Relay, Setting};
pub use version::{Odd, Sender};
