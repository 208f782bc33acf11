//! Sessions that travel: into a folder that an external sync client carries, and back by a person's word.
//!
//! The relay folder holds exactly the active sessions of the home that carry a sync tag (`sync`). Of each the record
//! (`record`) knows what was put there; so it is known what somebody else has done since, and that is never overwritten.
//! One device writes to a session at a time: the one that holds its lease (`lease`, `leases`). What a device says of
//! itself stands in a file of its own (`devices`); what was heard of the others, and when, in the home (`seen`).

mod agree;
mod below;
mod carry;
mod claim;
mod compare;
mod consider;
mod devices;
pub mod export;
pub mod fetch;
mod gate;
pub mod init;
mod lapse;
mod lay;
pub mod lease;
pub mod leases;
mod look;
mod meant;
mod names;
mod outcome;
mod place;
mod record;
mod said;
mod seen;
mod side;
mod standing;
mod strangers;
pub mod sync;
pub mod take;
mod version;

pub use claim::Claim;
pub use compare::{Difference, Happened, Leak};
pub use devices::{Devices, FOLDER, Holder, Lease, Said, Sent};
pub use gate::gate;
pub use lapse::{give_up, overtaken, without_session};
pub use look::{Look, look};
pub use meant::meant;
pub use names::BadName;
pub use outcome::{Outcome, Overtaken, Session, State, Unreadable, Why};
pub use place::{Relay, Setting, not_bound};
pub use seen::{Seen, note};
pub use strangers::Stranger;
pub use version::{Odd, Sender};
