//! Which home a command line means, and opening it.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::index;
use super::output::Console;
use crate::backup;
pub(super) use crate::base::human::quoted;
use crate::base::{Context, Error, Result};
use crate::disk::{self, FileKind};
use crate::history;
use crate::home::{self, Config, Home, Leases, LockedHome};
use crate::relay;
use crate::state::{self, Agent};

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
        None => named_by_environment(),
    }
}

/// The home that `$WBHOME` names.
pub(super) fn named_by_environment() -> Option<(PathBuf, &'static str)> {
    std::env::var_os("WBHOME")
        .filter(|home| !home.is_empty())
        .map(|home| (PathBuf::from(home), "$WBHOME"))
}

/// What a home's own records say is done only in a home that a person has named: they lead to other folders, too.
pub(super) fn refuse_untrusted(home: &Home) -> Result<()> {
    match home.is_trusted() {
        true => Ok(()),
        false => Err(Error::failed(
            "was merely found, or is another user's, and its records are not obeyed:",
        )
        .at(home.root())
        .hint(format!(
            "name it, if it is yours: --home {}",
            quoted(home.root())
        ))),
    }
}

/// How the program is called once more for the same home: `wbhome`, or `wbhome --home DIR` where that named it.
pub(super) fn again(global: &Global) -> String {
    match &global.home {
        Some(home) => format!("wbhome --home {}", quoted(home)),
        None => "wbhome".to_owned(),
    }
}

/// The verbs that need the same home again.
const VERBS: [&str; 27] = [
    "archive",
    "backup",
    "check",
    "commit",
    "diff",
    "doctor",
    "drill",
    "du",
    "export",
    "history",
    "index",
    "label",
    "lease",
    "ls",
    "mv",
    "new",
    "nightly",
    "path",
    "relay",
    "relink",
    "restore",
    "rm",
    "rotate",
    "schedule",
    "search",
    "show",
    "unarchive",
];

/// A text of a room that knows nothing of the command line, with its commands as [`again`] spells them.
pub(super) fn spelled(text: &str, again: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("wbhome ") {
        let (before, found) = rest.split_at(at);
        let after = found.strip_prefix("wbhome ").unwrap_or_default();
        let begins = before.is_empty() && out.is_empty() || before.ends_with([' ', '`']);
        let verb = after.split([' ', '`']).next().unwrap_or_default();
        out.push_str(before);
        out.push_str(match begins && VERBS.contains(&verb) {
            true => again,
            false => "wbhome",
        });
        out.push(' ');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Like [`open`], and why it is that one.
pub(super) fn open_found(global: &Global) -> Result<(Home, home::How)> {
    let found = home::find(named(global), &current_folder()?, user_home().as_deref())?;
    Ok((Home::open(found.root.0, found.trust)?, found.how))
}

/// Opens the home that `--home`, `$WBHOME`, the current folder or the user's own folder names.
pub(super) fn open(global: &Global) -> Result<Home> {
    open_found(global).map(|(home, _)| home)
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

/// The application's own folders: the one that the settings of the home name, else the usual ones that exist. A home
/// that was merely found is not obeyed in this either.
///
/// # Errors
/// Settings that are not understood, or that name a folder that is not there.
pub(super) fn state_folders(home: &Home) -> Result<Vec<PathBuf>> {
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
    let why = match disk::stat(&disk::real_path(&folder)?)? {
        Some(meta) if meta.kind == FileKind::Folder => return Ok(vec![folder]),
        Some(meta) => format!("the state folder is {}:", meta.kind.described()),
        None => "there is no state folder:".to_owned(),
    };
    Err(Error::failed(why)
        .at(&folder)
        .hint("[state] dir in wbhome.toml names it"))
}

/// Where the repository lies when it is not in the home: `[git] dir`, with `~` as people write it.
pub(super) fn git_dir(config: &Config) -> Option<PathBuf> {
    let dir = config.git.dir.as_deref()?;
    match (dir.strip_prefix("~"), user_home()) {
        (Ok(rest), Some(user_home)) => Some(user_home.join(rest)),
        _ => Some(dir.to_path_buf()),
    }
}

/// A path as a person wrote it in the settings: `~` is their own folder, and what is relative lies in the home.
fn as_set(home: &Home, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), user_home()) {
        (Ok(rest), Some(user_home)) => user_home.join(rest),
        _ => home.root().join(path),
    }
}

/// The user's own data folder: `$XDG_DATA_HOME`, else `~/.local/share`.
///
/// # Errors
/// When neither is known.
pub(super) fn user_data() -> Result<PathBuf> {
    let set = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    set.filter(|data| data.is_absolute())
        .or_else(|| user_home().map(|home| home.join(".local/share")))
        .ok_or_else(|| {
            Error::failed("HOME is not set, so it can not be known which device this is")
                .hint("set HOME (cron and systemd do), or XDG_DATA_HOME")
        })
}

/// The folder that the settings name as the relay, as an absolute path.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn relay_dir(home: &Home) -> Result<Option<PathBuf>> {
    let dir = Config::load(home)?.relay.dir;
    Ok(dir.map(|dir| as_set(home, &dir)))
}

/// The relay that the settings name; `None` when they name none. That of a home that was merely found is not obeyed.
///
/// # Errors
/// Settings that are not understood, or that name a folder and no mode.
pub(super) fn relay_setting(home: &Home) -> Result<Option<relay::Setting>> {
    let set = Config::load(home)?.relay;
    let Some(dir) = set.dir.filter(|_| home.is_trusted()) else {
        return Ok(None);
    };
    let mode = set.mode.ok_or_else(|| {
        Error::failed("[relay] names a folder and no mode, in")
            .at(home.config_file())
            .hint("`wbhome relay init DIR --mode clone|hardlink|symlink` sets it, and says what each means")
    })?;
    Ok(Some(relay::Setting {
        dir: as_set(home, &dir),
        mode,
        logs: set.logs,
    }))
}

/// The relay that the settings name.
///
/// # Errors
/// None named, and what [`relay_setting`] refuses; a home that was merely found.
pub(super) fn set_relay(home: &Home) -> Result<relay::Setting> {
    refuse_untrusted(home)?;
    relay_setting(home)?.ok_or_else(|| {
        Error::failed("no relay is set in").at(home.config_file()).hint(
            "`wbhome relay init DIR --mode clone` makes one in a folder that a sync client carries",
        )
    })
}

/// Who holds the leases of the sessions of a home, for whoever is about to change some. A home that was merely found is
/// looked at as well: more than a refusal does not come of it. Where it can not be learned which device this is, the
/// refusals say so.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn leases(home: &Home, ctx: &Context) -> Result<Leases> {
    let dir = Config::load(home)?.relay.dir;
    let dir = dir.map(|dir| as_set(home, &dir));
    let device = match dir {
        Some(_) => known_device(),
        None => Ok(None),
    };
    Ok(relay::gate(home, dir.as_deref(), &device, ctx))
}

/// The same for whoever only looks: what can not be read is a warning.
pub(super) fn leases_to_show(home: &Home, console: &Console, ctx: &Context) -> Leases {
    let leases = leases(home, ctx).unwrap_or_else(|error| {
        console.warn(&format!("who holds a lease is not known: {error}"));
        Leases::default()
    });
    if let Some(unknown) = leases.unknown() {
        let why = &unknown.why;
        console.warn(&format!(
            "it is not known which device this is, and so which leases are its own: {why}"
        ));
        unknown.hints.iter().for_each(|hint| console.hint(hint));
    }
    leases
}

/// This device, as long as it is known: nothing is made.
///
/// # Errors
/// Where that stands can not be read, or is not known.
pub(super) fn known_device() -> Result<Option<home::Device>> {
    home::Device::known(&user_data()?)
}

/// The same for whoever only looks: that it can not be learned is a warning.
pub(super) fn device(console: &Console) -> Option<home::Device> {
    known_device().unwrap_or_else(|error| {
        console.warn(&format!(
            "it is not known which device this is, and so which leases are its own: {error}"
        ));
        for hint in error.hints() {
            console.hint(hint);
        }
        None
    })
}

/// Opens the relay of a home, which the settings name and which is bound to it.
///
/// # Errors
/// None named; what [`relay::Relay::open`] refuses.
pub(super) fn open_relay(home: &Home) -> Result<relay::Relay> {
    let setting = set_relay(home)?;
    match known_device()? {
        Some(device) => relay::Relay::open(home, &setting, device),
        None => Err(relay::not_bound(&setting.dir)),
    }
}

/// A path as a person typed it, without links where it exists.
///
/// # Errors
/// When the current folder is gone.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    disk::real_path(&current_folder()?.join(path))
}

/// The folders of the cold stores in the settings. Those of a home that was merely found are not obeyed.
///
/// # Errors
/// When none is set.
pub(super) fn stores(home: &Home) -> Result<Vec<PathBuf>> {
    refuse_untrusted(home)?;
    let set = Config::load(home)?.backup.store;
    match set.is_empty() {
        false => Ok(set.iter().map(|store| as_set(home, &store.dir)).collect()),
        true => Err(Error::failed("no backup store is set in")
            .at(home.config_file())
            .hint("`wbhome backup init DIR` makes one in a folder on another disk, and adds it")),
    }
}

/// What a backup goes by: the settings, and where the history stands.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn backup_request(home: &Home) -> Result<backup::run::Request> {
    let config = Config::load(home)?;
    // One that is not there costs only itself: the run names it.
    let state = config.state.dir.as_deref().filter(|_| home.is_trusted());
    let state = state.map(|dir| as_set(home, dir));
    Ok(backup::run::Request {
        keep: config.backup.keep,
        keep_deleted: config.backup.keep_deleted,
        settings_every: config.backup.settings_every,
        level: config.archive.level,
        commit: history::tip(home),
        state: state.into_iter().collect(),
        include: config.state.include,
        exclude: config.state.exclude,
        explain: false,
    })
}

/// A folder of the application that exists, and that no setting says to save.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn unsaved_state(home: &Home) -> Result<Option<PathBuf>> {
    Ok(match Config::load(home)?.state.dir {
        Some(_) => None,
        None => user_home().and_then(|user_home| state::folders_in(&user_home).into_iter().next()),
    })
}

/// Every process that the application has noted, for whoever is about to change something.
///
/// # Errors
/// When it can not be learned: then somebody may be at work anywhere.
pub(super) fn agents_or_refuse(home: &Home) -> Result<Vec<Agent>> {
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
pub(super) fn agents(home: &Home, console: &Console) -> Vec<Agent> {
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

/// Commands that write into the index, or keep it in a commit.
const NEED_THE_INDEX: [&str; 9] = [
    "archive",
    "commit",
    "label",
    "mv",
    "new",
    "relay take",
    "restore",
    "rm",
    "unarchive",
];

/// Takes the lock of a home, and tells what a command that was killed had left. Where the index is gone that a commit
/// holds, those that need it get it back first: else they would write one that knows of nothing but what they do.
pub(super) fn lock(
    home: &Home,
    verb: &str,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<LockedHome> {
    let locked = home.lock(global.lock_wait, verb, ctx)?;
    for settled in locked.settled() {
        let told = settled.told(console.verbose);
        match settled.pending {
            Some(_) => console.warn(&told),
            None => console.note(&told),
        }
    }
    if NEED_THE_INDEX.contains(&verb) && home.is_trusted() {
        index::bring_back(&locked, console, ctx)?;
    }
    Ok(locked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_home_again_and_nothing_else_is_touched() {
        let told = |text: &str| spelled(text, "wbhome --home '/a b'");
        for (text, spelled) in [
            (
                "`wbhome ls` lists them",
                "`wbhome --home '/a b' ls` lists them",
            ),
            (
                "wbhome restore x --from trash",
                "wbhome --home '/a b' restore x --from trash",
            ),
            (
                "back: wbhome mv NEW OLD",
                "back: wbhome --home '/a b' mv NEW OLD",
            ),
            ("`wbhome init /x` makes one", "`wbhome init /x` makes one"),
            ("wbhome --home /y ls", "wbhome --home /y ls"),
            (
                "my-wbhome ls, the wbhome way",
                "my-wbhome ls, the wbhome way",
            ),
            ("", ""),
        ] {
            assert_eq!(told(text), spelled);
            assert_eq!(super::spelled(text, "wbhome"), text);
        }
    }
}
