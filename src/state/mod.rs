//! The agent application's own folder (`~/.workbuddy`, in the international build `~/.workbuddy-ai`): who
//! is running, and where.
//!
//! This room reads the folder and never writes into it: the folder belongs to the application. What is known of it
//! stands in the public behaviour of its engine. What is to be changed is planned here ([`slugs`]) or done in a private
//! copy ([`database`]), and whoever puts it in place asks first whether somebody uses it.

mod at_work;
mod busy;
pub mod database;
pub mod live_copy;
mod registry;
mod saved;
pub mod slugs;

pub use at_work::{AtWork, works_in};
pub use busy::{DATABASE, refuse_while_in_use};
pub use registry::{Agent, Liveness, agents};
pub use saved::{Part, Saved};

use std::path::{Path, PathBuf};

/// The names that the application gives its folder in the user's home.
pub const FOLDER_NAMES: [&str; 2] = [".workbuddy", ".workbuddy-ai"];

/// What the application writes and never goes by again, or can make anew. It may be large, and speaks of what was.
const HISTORY: [&str; 6] = [
    "logs",
    "traces",
    "file-history",
    "shell-snapshots",
    "audit-log",
    "binaries",
];

/// Whether what lies at `rel`, relative to a state folder, follows a move. What ties sessions to the cloud does
/// not: the other side would not know them again.
pub fn follows_a_move(rel: &Path) -> bool {
    let first = rel.iter().next().unwrap_or_default();
    let cloud = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"edge-sync-mapping");
    !HISTORY.iter().any(|name| first == *name)
        && !first.as_encoded_bytes().starts_with(b".wbhome-")
        && !rel.iter().any(cloud)
}

/// The state folders that exist in a user's home.
pub fn folders_in(user_home: &Path) -> Vec<PathBuf> {
    FOLDER_NAMES
        .iter()
        .map(|name| user_home.join(name))
        .filter(|folder| crate::disk::is_folder(folder))
        .collect()
}
