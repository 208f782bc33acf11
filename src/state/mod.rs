//! The agent application's own folder (`~/.workbuddy`, in the international build `~/.workbuddy-ai`): who
//! is running, and where.
//!
//! This room reads the folder and never writes into it: the folder belongs to the application. What is known of it
//! stands in the public behaviour of its engine. What is to be changed is planned here ([`slugs`]) or done in a private
//! copy ([`database`]), and whoever puts it in place asks first whether somebody uses it.

mod busy;
pub mod database;
mod registry;
pub mod slugs;

pub use busy::{DATABASE, Use, User, in_use, refuse_while_in_use};
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
