//! Where the agent application keeps its own folder, and who of it is at work.

use std::path::{Path, PathBuf};

use super::{as_set, quoted, user_home};
use crate::base::{Error, Result};
use crate::cli::output::Console;
use crate::disk::{self, FileKind};
use crate::home::{Config, Home};
use crate::state::{self, Agent};

/// Where the agent application keeps its own folder.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct StateArgs {
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
    pub fn folders(&self, home: &Home, console: &Console) -> Result<Vec<PathBuf>> {
        match self.no_state || self.is_named() {
            true => self.usual_folders(console),
            false if user_home().is_none() && Config::load(home)?.state.dir.is_none() => {
                self.usual_folders(console)
            }
            false => state_folders(home),
        }
    }

    /// The flags, to be typed once more.
    pub fn again(&self) -> String {
        match &self.state {
            _ if self.no_state => " --no-state".to_owned(),
            Some(folder) => format!(" --state {}", quoted(folder)),
            None => String::new(),
        }
    }

    /// Like [`StateArgs::folders`], without a home whose settings could say more.
    pub fn usual_folders(&self, console: &Console) -> Result<Vec<PathBuf>> {
        if user_home().is_none() && !self.no_state && !self.is_named() {
            console.warn(
                "HOME is not set, so the agent application's own folder is not looked for: --state DIR names it, --no-state leaves it alone",
            );
        }
        match &self.state {
            _ if self.no_state => Ok(Vec::new()),
            Some(folder) if !disk::is_folder(&disk::real_path(folder)?) => {
                Err(Error::failed("there is no state folder:").at(folder))
            }
            Some(folder) => Ok(vec![folder.clone()]),
            None => Ok(user_home()
                .as_deref()
                .map(state::folders_in)
                .unwrap_or_default()),
        }
    }
}

/// The application's own folders: the one that the settings of the home name, else the usual ones that exist. A home
/// that was merely found is not obeyed in this either.
///
/// # Errors
/// Settings that are not understood, or that name a folder that is not there.
pub(in crate::cli) fn state_folders(home: &Home) -> Result<Vec<PathBuf>> {
    let user_home = user_home();
    let set = match home.is_trusted() {
        true => Config::load(home)?.state.dir,
        false => None,
    };
    let Some(set) = set else {
        let usual = user_home.as_deref().map(state::folders_in);
        return Ok(usual.unwrap_or_default());
    };
    let folder = as_set(home, &set);
    refuse_around(home, &folder)?;
    let why = match disk::stat(&disk::real_path(&folder)?)? {
        Some(meta) if meta.kind == FileKind::Folder => return Ok(vec![folder]),
        Some(meta) => format!("the state folder is {}:", meta.kind.described()),
        None => "there is no state folder:".to_owned(),
    };
    Err(Error::failed(why)
        .at(&folder)
        .hint("[state] dir in wbhome.toml names it"))
}

/// What holds the home is no folder of an application: all of it would be read, and saved.
pub(super) fn refuse_around(home: &Home, folder: &Path) -> Result<()> {
    match disk::real_path(home.root())?.starts_with(disk::real_path(folder)?) {
        true => Err(Error::failed("the state folder holds the home itself:")
            .at(folder)
            .hint("[state] dir in wbhome.toml names it")),
        false => Ok(()),
    }
}

/// A folder of the application that exists, and that no setting says to save.
///
/// # Errors
/// Settings that are not understood.
pub(in crate::cli) fn unsaved_state(home: &Home) -> Result<Option<PathBuf>> {
    Ok(match Config::load(home)?.state.dir {
        Some(_) => None,
        None => user_home().and_then(|user_home| state::folders_in(&user_home).into_iter().next()),
    })
}

/// Every process that the application has noted, for whoever is about to change something.
///
/// # Errors
/// When it can not be learned: then somebody may be at work anywhere.
pub(in crate::cli) fn agents_or_refuse(home: &Home) -> Result<Vec<Agent>> {
    let refused = |error: Error| {
        let hints = error.hints().to_vec();
        let set = "[state] dir in wbhome.toml names the folder of the application";
        let refused = Error::failed(format!(
            "who is running is not known, so nothing was changed: {error}"
        ));
        let hinted = hints.iter().any(|hint| hint.contains("[state] dir"));
        let hints = hints.into_iter().chain((!hinted).then(|| set.to_owned()));
        hints.fold(refused, |refused, hint| refused.hint(hint))
    };
    let mut found = Vec::new();
    for folder in state_folders(home).map_err(refused)? {
        found.extend(state::agents(&folder).map_err(refused)?);
    }
    Ok(found)
}

/// Every process that the application has noted. What can not be read is a warning: whoever only looks goes on without.
pub(in crate::cli) fn agents(home: &Home, console: &Console) -> Vec<Agent> {
    let warn = |error: Error| {
        console.warn(&format!(
            "who is running is not known: {error}{}",
            error
                .hints()
                .first()
                .map(|hint| format!(" ({hint})"))
                .unwrap_or_default()
        ));
    };
    let folders = state_folders(home).unwrap_or_else(|error| {
        warn(error);
        Vec::new()
    });
    let read = |folder: &Path| {
        state::agents(folder).unwrap_or_else(|error| {
            warn(error);
            Vec::new()
        })
    };
    folders.iter().flat_map(|folder| read(folder)).collect()
}
