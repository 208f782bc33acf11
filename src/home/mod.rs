//! The material of every command: what a home looks like on disk, and how it is changed safely.
//!
//! Reading needs a [`Home`], which anybody may open. Writing needs a [`LockedHome`], which only the lock can
//! make, so that forgetting the lock does not compile. Taking the lock settles what a killed command left.
//! Nothing read from the disk (an id in the index, a path in the journal) becomes a path before it has been
//! checked.

mod begin;
mod brief;
mod cache;
mod config;
mod cut;
mod device;
mod entry;
mod find;
mod id;
mod index;
mod index_file;
mod init;
pub mod journal;
mod layout;
mod leases;
mod lock;
mod measure;
pub mod mend;
mod nearest;
mod packed;
mod record;
mod rel;
mod repeated;
mod resolve;
mod rotations;
mod scratch;
mod settled;
pub mod swap;
#[cfg(test)]
pub(crate) mod testing;
pub mod trash;
pub mod views;

pub use begin::{begin, begin_again};
pub use brief::{Brief, each_brief, each_brief_with_archive};
pub use cache::{Cache, PackedCounts, SessionsStamp};
pub use config::{
    Archive, Backup, Check, Command, Compress, Config, Drill, Every, Git, Nightly, OnFind, Relay,
    RelayMode, Rotate, Secrets, State, Store,
};
pub use cut::{CutEnd, LogCut, log_folder};
pub use device::{Device, is_id as is_device_id};
pub use entry::{Entry, Status};
pub use find::{Found, How, USUAL_NAME, find};
pub use id::{LONGEST_ADOPTED, LONGEST_NEW, SessionId, folded};
pub use index::{Index, Item, Shape};
pub use index_file::IndexFile;
pub use init::{Initialised, init, layout};
pub use layout::{FORMAT, Home, KINDS, LOGS, Trust, is_log};
pub use leases::{HeldBy, Leases, PassedOver, Unknown, lease_hint};
pub use lock::LockedHome;
pub use measure::{Counts, Tally, measure, turn_number};
pub use nearest::nearest;
pub use packed::{counts_of, no_pack, read_beginning, record_of};
pub use record::{Record, identity_of, parse_moment};
pub use rel::RelPath;
pub use resolve::{
    Candidate, candidates, matching, resolve, resolve_all, resolve_each, resolve_in, split,
};
pub use rotations::{Known, Rotations};
pub use scratch::Scratch;

/// The parts of [`init`], for a run that only shows what would be done.
pub mod initialise {
    pub use super::init::{Plan, apply, plan};
}
