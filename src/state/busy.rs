//! Who stands in the way of changing a state folder.
//!
//! The application keeps its database open and its memory of it: what is changed under its hands is lost or overwritten.
//! So it must have ended, the processes that it keeps ready included. Three witnesses are heard, because each is blind
//! somewhere: the registry (a process may not be in it), open files (those of other users are hidden), and SQLite's
//! own locks, which the kernel tells of whoever holds them.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::registry::agents;
use crate::base::{Error, Result, human};
use crate::disk;

/// The application's database.
pub const DATABASE: &str = "workbuddy.db";

/// What belongs to the database: whoever has one of these open has the database open.
const DATABASE_FILES: [&str; 4] = [
    "workbuddy.db",
    "workbuddy.db-wal",
    "workbuddy.db-shm",
    "workbuddy.db-journal",
];

/// What is written here concerns nobody.
const HARMLESS: [&str; 2] = ["logs", "traces"];

/// Any lock on a database in rollback mode, and the shared one that a connection in WAL mode holds as well: the pending,
/// reserved and shared bytes. See `os.h` in SQLite's sources and <https://www.sqlite.org/fileformat2.html#the_lock_byte_page>.
const LOCK_BYTES: Range<u64> = 0x4000_0000..0x4000_0200;

/// The locks in the shared-memory file, the last of which every connection holds as long as it is open. See
/// <https://www.sqlite.org/walformat.html#wal_locks>.
const SHM_LOCK_BYTES: Range<u64> = 120..129;

/// Somebody who uses a state folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Who, where the system tells.
    pub pid: Option<u32>,
    /// The name of the program, where the system tells.
    pub program: Option<String>,
    /// What for.
    #[serde(flatten)]
    pub what: Use,
}

/// What somebody uses a state folder for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "use")]
pub enum Use {
    /// The application itself, as its registry says.
    Registered {
        /// `interactive`, `prewarm` or another.
        kind: String,
    },
    /// It has the database open.
    Database,
    /// It holds a lock on the database.
    Lock,
    /// It has another file open for writing.
    Writing {
        /// Relative to the folder.
        #[serde(serialize_with = "crate::base::wire::exact_path::serialize")]
        path: PathBuf,
    },
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.program, self.pid) {
            (Some(program), Some(pid)) => {
                write!(f, "{} (process {pid})", human::name(program))?;
            }
            (_, Some(pid)) => write!(f, "process {pid}")?,
            _ => f.write_str("a process that this system does not name")?,
        }
        match &self.what {
            Use::Registered { kind } if kind == "prewarm" => {
                f.write_str(" is kept ready by the application (prewarm)")
            }
            Use::Registered { .. } => f.write_str(" is the application at work"),
            Use::Database => write!(f, " has {DATABASE} open"),
            Use::Lock => write!(f, " holds a lock on {DATABASE}"),
            Use::Writing { path } => write!(f, " has {} open for writing", human::path(path)),
        }
    }
}

/// Everybody who uses a state folder, each process once, with the gravest reason.
///
/// # Errors
/// A folder or database that can not be looked at: then nothing is known.
pub fn in_use(state: &Path) -> Result<Vec<User>> {
    if !disk::exists(state) {
        return Ok(Vec::new());
    }
    let state = disk::real_path(state)?;
    let mut users = Vec::new();
    let mut add = |user: User| {
        let known = |other: &User| user.pid.is_some() && other.pid == user.pid;
        if !users.iter().any(known) {
            users.push(user);
        }
    };
    for agent in agents(&state)? {
        if agent.is_running() {
            add(User {
                pid: Some(agent.pid),
                program: disk::process(agent.pid).map(|p| p.name),
                what: Use::Registered { kind: agent.kind },
            });
        }
    }
    let mut writers = Vec::new();
    for file in disk::open_below(&state).seen {
        let Ok(path) = file.path.strip_prefix(&state) else {
            continue;
        };
        let user = |what| User {
            pid: Some(file.pid),
            program: Some(file.program.clone()),
            what,
        };
        if DATABASE_FILES.contains(&name_of(path).as_str()) {
            add(user(Use::Database));
        } else if file.writing && !HARMLESS.iter().any(|folder| path.starts_with(folder)) {
            let path = path.to_path_buf();
            writers.push(user(Use::Writing { path }));
        }
    }
    if let Some(holder) = lock_on_database(&state)? {
        let process = holder.pid.and_then(disk::process);
        add(User {
            pid: holder.pid,
            program: process.map(|p| p.name).filter(|name| !name.is_empty()),
            what: Use::Lock,
        });
    }
    writers.into_iter().for_each(add);
    Ok(users)
}

/// A file that has been replaced or removed is marked by the kernel, and still in use.
fn name_of(path: &Path) -> String {
    let name = path.to_string_lossy();
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

fn lock_on_database(state: &Path) -> Result<Option<disk::LockHolder>> {
    let database = state.join(DATABASE);
    let shared = state.join(format!("{DATABASE}-shm"));
    for (path, bytes) in [(shared, SHM_LOCK_BYTES), (database, LOCK_BYTES)] {
        let holder = disk::lock_holder(&path, bytes).map_err(|e| {
            Error::io("can not see whether somebody uses", &path, e)
                .hint("run this as the user whom the folder belongs to")
        })?;
        if holder.is_some() {
            return Ok(holder);
        }
    }
    Ok(None)
}

/// Refuses to go on while somebody uses a state folder.
///
/// # Errors
/// Says who it is, and what to do.
pub fn refuse_while_in_use(state: &Path) -> Result<()> {
    let users = in_use(state)?;
    if users.is_empty() {
        return Ok(());
    }
    let mut said: Vec<String> = users.iter().take(3).map(User::to_string).collect();
    if let Some(more) = users.len().checked_sub(4) {
        said.push(format!(
            "and {} more",
            human::plural(more as u64 + 1, "process", "processes")
        ));
    }
    let registered = |user: &User| matches!(user.what, Use::Registered { .. });
    let hint = match users.iter().any(registered) {
        true => {
            "quit the application, the processes that it keeps ready included, and run the same command again"
        }
        false => {
            "quit the application and whatever else uses its folder, and run the same command again"
        }
    };
    Err(Error::failed(format!(
        "the application's folder is in use ({}):",
        said.join("; ")
    ))
    .at(state)
    .hint(hint))
}

#[cfg(test)]
mod tests;
