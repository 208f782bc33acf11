//! Session text in git: which day which turn or memory changed, and what it was before.
//!
//! A home has one ordinary repository, which any git understands. This room walks and reads by itself, because what
//! git would do on its own loses things here: a folder with a `.git` of its own would become a link to a commit that
//! nobody has, line ends and filters would change bytes. It writes objects, index and refs in git's own formats.

mod astray;
pub mod bring_back;
pub mod commit;
mod committed;
pub mod consolidate;
mod damage;
mod diff;
mod last_index;
mod left_out;
mod log;
mod loose;
mod message;
mod moving;
mod names;
mod pack;
mod pipes;
pub mod push;
mod read;
mod repository;
mod revision;
mod said;
mod select;
mod staging;
mod surviving;
mod tree;
mod whole;

pub use astray::refuse_astray;
pub use committed::{ChangeKind, Version, VersionKind, newest_that};
pub use damage::{Damage, damage};
pub use diff::{
    Diff, Differing, Form, Hunk, Line, LineKind, Request as DiffRequest, Unreadable, diff, patch,
};
pub use last_index::last_index;
pub use left_out::Why;
pub use log::{Change, Log, Request as LogRequest, Touched, last_touch, log, newest};
pub use message::{Counted, SessionChange};
pub use repository::{Began, Beginning, Branch, Repository, begin, beginning, tip};
pub use revision::Told;
pub use surviving::{Cut, LaidOver, Surviving};
pub use whole::newest_whole;
