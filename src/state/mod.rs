//! The agent application's own folder (`~/.workbuddy`, in the international build `~/.workbuddy-ai`): who
//! is running, and where.
//!
//! This room only reads. The folder belongs to the application; what is known of it stands in the public
//! behaviour of its engine, and nothing here depends on more than a few fields of small JSON files.

mod at_work;
mod registry;

pub use at_work::AtWork;
pub use registry::{Agent, Liveness, agents};

use std::path::{Path, PathBuf};

/// The names that the application gives its folder in the user's home.
pub const FOLDER_NAMES: [&str; 2] = [".workbuddy", ".workbuddy-ai"];

/// The state folders that exist in a user's home.
pub fn folders_in(user_home: &Path) -> Vec<PathBuf> {
    FOLDER_NAMES
        .iter()
        .map(|name| user_home.join(name))
        .filter(|folder| crate::disk::is_folder(folder))
        .collect()
}
