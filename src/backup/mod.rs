//! The cold stores: a folder on another disk that holds packs of what changed, and snapshots that say which packs
//! were the home on a day.
//!
//! ```text
//! STORE/wbhome-store.json            whose store this is (`marker`)
//! STORE/packs/<place>/<stamp>.tar.zst    one thing of the home as it was (`place` names the things)
//! STORE/snapshots/<stamp>.json       everything that the home was made of then (`snapshot`)
//! ```
//!
//! A snapshot tells everything: what it does not name is not needed, and what it names is there. So retention is two
//! lines (`retention`): a snapshot goes when what followed it is old, and a pack when no snapshot names it any more.
//! Whatever has to be kept for longer (the last pack of what is gone, the former one of what has shrunk) is carried
//! from snapshot to snapshot (`carry`).

pub mod agent_state;
pub mod bring_back;
mod carry;
mod cuts;
pub mod fetch;
pub mod init;
pub mod list;
mod marker;
mod night;
mod of_state;
mod packing;
mod place;
pub mod prune;
mod retention;
pub mod run;
mod snapshot;
mod source;
mod store;
mod things;
pub mod verify;
pub mod word;

pub use marker::{Device, Marker};
pub use place::{Kind, Place, StatePart};
pub use snapshot::{Form, HomeThen, Item, Kept, PackRef, Snapshot, Standing, StateThen};
pub use source::Source;
pub use store::{LockedStore, Store};
