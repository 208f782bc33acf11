//! Which home a command line means, and opening it.

use std::path::PathBuf;

use super::args::Global;
use super::output::Console;
pub(super) use crate::base::human::quoted;
use crate::base::{Context, Error, Result, human};
use crate::home::{self, Home, LockedHome};

/// The user's own folder.
pub(super) fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

/// The folder that the program was started in.
pub(super) fn current_folder() -> Result<PathBuf> {
    std::env::current_dir().map_err(|e| {
        Error::failed("the current folder can not be found")
            .because(e)
            .hint("it may have been removed: change to another one")
    })
}

/// The home that `--home` or `$WBHOME` names, and which of the two.
pub(super) fn named(global: &Global) -> Option<(PathBuf, &'static str)> {
    match &global.home {
        Some(home) => Some((home.clone(), "--home")),
        None => std::env::var_os("WBHOME")
            .filter(|home| !home.is_empty())
            .map(|home| (PathBuf::from(home), "$WBHOME")),
    }
}

/// Opens the home that `--home`, `$WBHOME`, the current folder or the user's own folder names.
pub(super) fn open(global: &Global) -> Result<Home> {
    let found = home::find(named(global), &current_folder()?, user_home().as_deref())?;
    Home::open(found.root.0, found.trust)
}

/// Takes the lock of a home, and tells what a command that was killed had left.
pub(super) fn lock(
    home: &Home,
    verb: &str,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<LockedHome> {
    let locked = home.lock(global.lock_wait, verb, ctx)?;
    for settled in locked.settled() {
        let who = match &settled.command {
            Some(command) => format!(
                "`wbhome {}` was stopped in the middle",
                human::escape(command)
            ),
            None => "a command was stopped in the middle".to_owned(),
        };
        match (&settled.pending, settled.did.is_empty()) {
            (Some(why), _) => console.warn(&format!(
                "{who}, and can not be completed yet: {}",
                human::escape(why)
            )),
            (None, true) => console.note(&format!(
                "{who}, and left nothing half done; run it again if its work is missing"
            )),
            (None, false) => console.note(&format!(
                "{who}; completed now: {}",
                human::escape(&settled.did.join("; "))
            )),
        }
    }
    Ok(locked)
}
