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

/// Where the agent application keeps its own folder.
#[derive(Debug, clap::Args)]
pub(super) struct StateArgs {
    /// The agent application's own folder, which follows [default: ~/.workbuddy and ~/.workbuddy-ai, where they mention it]
    #[arg(long, value_name = "DIR", conflicts_with = "no_state", value_hint = clap::ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Leave the agent application's own folder as it is, and do not look for running agents
    #[arg(long)]
    no_state: bool,
}

impl StateArgs {
    /// Whether a folder was named.
    pub fn is_named(&self) -> bool {
        self.state.is_some()
    }

    /// The folder that was named, or those that the settings of the home or the user's own folder hold.
    pub fn folders(&self, home: &Home) -> Result<Vec<PathBuf>> {
        match self.no_state || self.is_named() {
            true => self.usual_folders(),
            false => state_folders(home),
        }
    }

    /// Like [`StateArgs::folders`], without a home whose settings could say more.
    pub fn usual_folders(&self) -> Result<Vec<PathBuf>> {
        match &self.state {
            _ if self.no_state => Ok(Vec::new()),
            Some(folder) if !crate::disk::is_folder(&crate::disk::real_path(folder)?) => {
                Err(Error::failed("there is no state folder:").at(folder))
            }
            Some(folder) => Ok(vec![folder.clone()]),
            None => Ok(user_home()
                .as_deref()
                .map(crate::state::folders_in)
                .unwrap_or_default()),
        }
    }
}

/// The agent application's own folders: the one that the settings name, else those where it usually keeps them.
pub(super) fn state_folders(home: &Home) -> Result<Vec<PathBuf>> {
    let named = home::Config::load(home)?.state.dir;
    match named {
        Some(folder) if crate::disk::exists(&folder) => Ok(vec![folder]),
        Some(folder) => Err(Error::failed("[state] dir of the settings is not there:").at(folder)),
        None => Ok(user_home()
            .as_deref()
            .map(crate::state::folders_in)
            .unwrap_or_default()),
    }
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
