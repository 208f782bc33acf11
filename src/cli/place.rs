//! Which home a command line means, and opening it.

mod relay;
mod state;

use std::path::{Path, PathBuf};

pub(super) use self::relay::{
    device, known_device, leases, leases_to_show, open_relay, relay_dir, relay_setting, set_relay,
    user_data,
};
pub(super) use self::state::{StateArgs, agents, agents_or_refuse, state_folders, unsaved_state};
use super::args::Global;
use super::index;
use super::output::Console;
use crate::backup;
pub(super) use crate::base::human::quoted;
use crate::base::{Context, Error, Result};
use crate::disk;
use crate::history;
use crate::home::{self, Config, Home, LockedHome};
use crate::secrets::Check;

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
            "the home was merely found, or is another user's, and its records are not obeyed:",
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

/// Where the repository lies when it is not in the home: `[git] dir`, with `~` as people write it.
pub(super) fn git_dir(config: &Config) -> Option<PathBuf> {
    let dir = config.git.dir.as_deref()?;
    match (dir.strip_prefix("~"), user_home()) {
        (Ok(rest), Some(user_home)) => Some(user_home.join(rest)),
        _ => Some(dir.to_path_buf()),
    }
}

/// Refuses a home whose history lies in another place than its settings say. Settings that are not understood are a matter of
/// what needs them.
///
/// # Errors
/// As [`history::refuse_astray`].
pub(super) fn refuse_astray(home: &Home) -> Result<()> {
    match Config::load(home) {
        Ok(config) => history::refuse_astray(home, git_dir(&config).as_deref()),
        Err(_) => Ok(()),
    }
}

/// A path as a person wrote it in the settings: `~` is their own folder, and what is relative lies in the home.
fn as_set(home: &Home, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), user_home()) {
        (Ok(rest), Some(user_home)) => user_home.join(rest),
        _ => home.root().join(path),
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
    let set = set_stores(home)?;
    match set.is_empty() {
        false => Ok(set),
        true => Err(Error::failed("no backup store is set in")
            .at(home.config_file())
            .hint("`wbhome backup init DIR` makes one in a folder on another disk, and adds it")),
    }
}

/// What says what may not leave: the rules and what is called harmless, as the settings have it.
///
/// # Errors
/// Those that are not understood.
pub(super) fn secrets(home: &Home, config: &Config) -> Result<Check> {
    let own = config.secrets.rules.as_ref();
    let own = own.map(|rules| home.root().join(rules));
    Check::load(own.as_deref(), &config.secrets.allow)
}

/// The folders of the cold stores in the settings, if any.
///
/// # Errors
/// Settings that are not understood.
pub(super) fn set_stores(home: &Home) -> Result<Vec<PathBuf>> {
    let set = Config::load(home)?.backup.store;
    Ok(set.iter().map(|store| as_set(home, &store.dir)).collect())
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
    if let Some(folder) = &state {
        state::refuse_around(home, folder)?;
    }
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
