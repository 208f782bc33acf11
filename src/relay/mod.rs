//! Sessions that travel: into a folder that an external sync client carries, and back by a person's word.
//!
//! The relay folder holds exactly the active sessions of the home that carry a sync tag ([`sync`]). Of each the record
//! ([`record`]) knows what was put there; so it is known what somebody else has done since, and that is never
//! overwritten. Each device says of itself what it has sent and which leases it holds ([`devices`]).

mod carry;
mod compare;
mod consider;
mod devices;
pub mod export;
pub mod init;
mod names;
mod outcome;
mod place;
mod record;
mod side;
mod strangers;
pub mod sync;

pub use compare::{Difference, Happened, Leak};
pub use devices::{Devices, FOLDER, Holder, Lease, Said, Sent};
pub use names::BadName;
pub use outcome::{Outcome, Session, State, Unreadable, Why};
pub use place::{Relay, Setting};
pub use strangers::Stranger;
