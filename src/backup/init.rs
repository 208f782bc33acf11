//! Making a store, and telling the home of it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::store::{PACKS, SNAPSHOTS, put};
use super::{Marker, Store, marker};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Written};
use crate::home::{Config, Home, LockedHome};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder, absolute.
    pub dir: PathBuf,
    /// Keep the agent application's own folder there, whatever speaks against it.
    pub with_state: bool,
    /// Make one where the settings name one that is not there.
    pub again: bool,
    /// The folders that the settings name, absolute.
    pub set: Vec<PathBuf>,
}

/// What is going to be done.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The folder.
    pub store: WirePath,
    /// Whether it is a store of this home already.
    pub exists: bool,
    /// Whether `wbhome.toml` names it already.
    pub configured: bool,
    /// Why the agent application's own folder is not kept there, if so.
    pub without_state: Option<String>,
    /// What a person should know.
    pub notes: Vec<String>,
    #[serde(skip)]
    settings: Option<Settings>,
}

/// `wbhome.toml` as it is, if it is there, and as it will be.
#[derive(Clone, Debug)]
struct Settings {
    before: Option<Vec<u8>>,
    after: Vec<u8>,
}

/// What was done. The same words.
pub type Outcome = Plan;

/// The file that tells whether a filesystem keeps what only its owner may read.
const PROBE: &str = ".wbhome-probe";

/// Says what will be done.
///
/// # Errors
/// A folder that can not be a store of this home.
pub fn plan(home: &Home, request: &Request) -> Result<Plan> {
    let dir = &request.dir;
    let inside = |one: &Path, other: &Path| {
        disk::is_inside(one, other).map_err(|e| Error::io("can not look at", one, e))
    };
    if inside(dir, home.root())? || disk::exists(dir) && inside(home.root(), dir)? {
        return Err(
            Error::failed("a backup store can not lie in the home, nor the home in it:")
                .at(dir)
                .hint("choose a folder on another disk"),
        );
    }
    let mut above = dir.ancestors().skip(1);
    if let Some(outer) = above.find(|above| disk::exists(&above.join(marker::NAME))) {
        return Err(
            Error::failed("the folder lies inside another backup store:")
                .at(dir)
                .hint(format!("choose a folder outside {}", human::path(outer))),
        );
    }
    let exists = match disk::stat(dir)? {
        Some(_) => is_store_of(home, dir)?,
        None => false,
    };
    let mut plan = Plan {
        store: dir.clone().into(),
        exists,
        configured: false,
        without_state: None,
        notes: Vec::new(),
        settings: None,
    };
    plan.settings = settings(home, request)?;
    plan.configured = plan.settings.is_none();
    if plan.configured && !plan.exists && !request.again {
        return Err(
            Error::failed("wbhome.toml names the store already, and it is not there:")
                .at(dir)
                .hint("if it is on a disk that is not mounted, mount it")
                .hint("if it was never made, or is gone: --again makes a new one"),
        );
    }
    if let Some((_, client)) = disk::sync_folder(dir) {
        plan.notes.push(format!("the store lies in a folder of {client}: what is backed up there leaves this machine, and what the client removes is gone"));
        plan.without_state = synced(dir).filter(|_| !request.with_state);
    }
    if on_one_disk(home.root(), dir) {
        plan.notes.push("the store lies on the same filesystem as the home: it helps against slips, and not against a dead disk".to_owned());
    }
    Ok(plan)
}

/// Whether the folder is a store of this home; one that may become a store is none yet.
fn is_store_of(home: &Home, dir: &Path) -> Result<bool> {
    let opened = Dir::open(dir).map_err(|e| Error::io("can not open the folder", dir, e))?;
    if Marker::read(&opened)?.is_some() {
        return Store::open_of(dir, home).map(|_| true);
    }
    let names = opened
        .names()
        .map_err(|e| Error::io("can not list the folder", dir, e))?;
    // A filesystem of its own begins with the first; the others are left by an `init` that was killed.
    let is_ours = |name: &std::ffi::OsStr| {
        let empty = |folder: &str| {
            let opened = opened.open_beneath(Path::new(folder));
            opened
                .and_then(|dir| dir.names())
                .is_ok_and(|names| names.is_empty())
        };
        match name.to_str() {
            Some("lost+found" | PROBE) => true,
            Some(folder @ (PACKS | SNAPSHOTS)) => empty(folder),
            _ => false,
        }
    };
    let others = names.iter().find(|(name, _)| !is_ours(name));
    match others {
        None => Ok(false),
        Some((name, _)) => Err(
            Error::failed("the folder is not empty, and no backup store:")
                .at(dir)
                .because(std::io::Error::other(format!(
                    "it holds {}",
                    human::path(Path::new(name))
                )))
                .hint("choose a folder that does not exist yet"),
        ),
    }
}

/// Whether two folders lie on one filesystem, wherever links lead.
pub fn on_one_disk(home: &Path, dir: &Path) -> bool {
    let real = |path: &Path| disk::real_path(path).unwrap_or_else(|_| path.to_path_buf());
    let (home, dir) = (real(home), real(dir));
    let there = dir.ancestors().find_map(|dir| disk::stat(dir).ok()?);
    let here = disk::stat(&home).ok().flatten();
    there
        .zip(here)
        .is_some_and(|(there, here)| there.dev == here.dev)
}

/// The settings as they are and as they will be; `None` when they name the store already.
fn settings(home: &Home, request: &Request) -> Result<Option<Settings>> {
    let dir = request.dir.as_path();
    let is_it = |set: &PathBuf| set == dir || disk::same_file(set, dir).unwrap_or(false);
    if request.set.iter().any(is_it) {
        return Ok(None);
    }
    let by_hand = |why: String| {
        Error::failed(format!(
            "the store can not be added to the settings: {why}:"
        ))
        .at(home.config_file())
        .hint(format!(
            "add it by hand: [[backup.store]] and below it dir = {}",
            human::quoted(dir)
        ))
    };
    let Some(text) = dir.to_str() else {
        return Err(by_hand("its path is not UTF-8".to_owned()));
    };
    let before = disk::read_small(&home.config_file(), 1 << 20)?;
    let mut after = before.clone().unwrap_or_default();
    if !after.is_empty() && !after.ends_with(b"\n") {
        after.push(b'\n');
    }
    let value = toml::Value::String(text.to_owned());
    after.extend_from_slice(format!("\n[[backup.store]]\ndir = {value}\n").as_bytes());
    let parsed = String::from_utf8(after.clone())
        .ok()
        .and_then(|text| Config::parse(&text).ok());
    match parsed.is_some_and(|config| config.backup.store.iter().any(|store| store.dir == dir)) {
        true => Ok(Some(Settings { before, after })),
        false => Err(by_hand("they would not be understood any more".to_owned())),
    }
}

/// Makes the store, and adds it to the settings.
///
/// # Errors
/// A folder that can not be written, and settings that somebody changes meanwhile.
pub fn apply(
    home: &LockedHome,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    if !plan.exists {
        make(home, &mut plan, request, context)?;
    }
    if let Some(Settings { before, after }) = plan.settings.take() {
        let path = home.config_file();
        let written = disk::replace(&path, before.as_deref(), &after, 0o600)?;
        if written != Written::Done {
            return Err(Error::failed(
                "was changed at the same moment, so the store was made and not added:",
            )
            .at(&path)
            .hint("run the command again"));
        }
    }
    Ok(plan)
}

fn make(home: &LockedHome, plan: &mut Plan, request: &Request, context: &Context) -> Result<()> {
    let path = &request.dir;
    let fail = |e| Error::io("can not make the backup store", path, e);
    disk::create_private_folder(path)?;
    let dir = Dir::open(path).map_err(fail)?;
    if !keeps_private(&dir).map_err(fail)? {
        plan.notes.push("the store's filesystem keeps no permissions: everybody who can read the disk can read the packs".to_owned());
        if !request.with_state && plan.without_state.is_none() {
            plan.without_state = Some(NOT_PRIVATE.to_owned());
        }
    }
    for folder in [PACKS, SNAPSHOTS] {
        dir.make_beneath(Path::new(folder)).map_err(fail)?;
    }
    let marker = Marker::of(home, context.clock.now(), plan.without_state.clone())?;
    write_marker(&dir, &marker, false).map_err(fail)
}

const NOT_PRIVATE: &str = "the store's filesystem keeps no permissions";

fn synced(dir: &Path) -> Option<String> {
    let (_, client) = disk::sync_folder(dir)?;
    Some(format!("the store lies in a folder of {client}"))
}

/// Why the agent application's own folder should not be kept in a store, if so.
pub(super) fn not_for_state(path: &Path, dir: &Dir) -> std::io::Result<Option<String>> {
    let private = keeps_private(dir)?;
    Ok(synced(path).or_else(|| (!private).then(|| NOT_PRIVATE.to_owned())))
}

/// Whether what only its owner may read stays so.
fn keeps_private(dir: &Dir) -> std::io::Result<bool> {
    let name = PROBE.as_ref();
    disk::remove_tree(dir, name)?;
    dir.create_file(name)?;
    let kept = dir.stat(name).map(|meta| meta.mode == 0o600);
    dir.unlink(name)?;
    kept
}

/// Writes the marker, so that it is on the disk.
pub(super) fn write_marker(dir: &Dir, marker: &Marker, over: bool) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(marker)?;
    text.push(b'\n');
    put(dir, marker::NAME, &text, over)?;
    dir.sync()
}
