//! What is offered for the values that a home knows: sessions and what is in them, labels, acts of the trash, stores.
//!
//! Of what begins as the word does; where nothing does, of what has it somewhere, as the command itself takes it.
//! Only `index.json` is read, or the one folder that a path leads to. No lock, and on any error nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter as _};
use jiff::Timestamp;

use super::super::{label, place, restore};
use super::line::line;
use super::shells::{Offer, stand_in};
use crate::base::{Context, NoProgress, Stop, human};
use crate::browse;
use crate::disk::{self, FileKind};
use crate::home::{Brief, Home, RelPath, SessionId, Status, each_brief, resolve_in, trash};

/// So many acts are told of; to open the notes of all could take long.
const EXPLAINED: usize = 50;

/// Of more sessions nobody reads what they are, and there is no time to say it.
const DESCRIBED: usize = 1000;

/// Sessions that a command may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// All but removed ones.
    Present,
    /// In `sessions/`.
    Active,
    /// In `sessions/`, with a sync tag.
    Travelling,
    /// In `archive/` alone.
    Archived,
    /// Those that are in `archive/`, or were removed or are missing: what can be brought back.
    Any,
}

/// Session ids, with status, age and title, the youngest first.
pub(in crate::cli) fn sessions() -> ArgValueCompleter {
    completer(|typed| ids(typed, Which::Present))
}

/// Those that are in `sessions/`.
pub(in crate::cli) fn active_sessions() -> ArgValueCompleter {
    completer(|typed| ids(typed, Which::Active))
}

/// Those that are in `sessions/` with a sync tag.
pub(in crate::cli) fn travelling_sessions() -> ArgValueCompleter {
    completer(|typed| ids(typed, Which::Travelling))
}

/// Those that are in `archive/` alone.
pub(in crate::cli) fn archived_sessions() -> ArgValueCompleter {
    completer(|typed| ids(typed, Which::Archived))
}

/// Session ids, and behind a slash what is in the session, archived or not.
pub(in crate::cli) fn inside_sessions() -> ArgValueCompleter {
    completer(|typed| session_or_path(typed, Which::Present))
}

/// As [`inside_sessions`], of those that have a folder.
pub(in crate::cli) fn inside_active_sessions() -> ArgValueCompleter {
    completer(|typed| session_or_path(typed, Which::Active))
}

/// What `restore` brings back: out of the trash also acts and removed sessions.
pub(in crate::cli) fn restorable() -> ArgValueCompleter {
    completer(|typed| match line().option("--from") {
        Some(from) if from == "trash" => {
            let mut all = acts(typed);
            all.extend(session_or_path(typed, Which::Any));
            preferred(all, typed)
        }
        Some(from) if from == "twin" => session_or_path(typed, Which::Active),
        _ => session_or_path(typed, Which::Any),
    })
}

/// Where `restore` takes from; with `--all`, a store.
pub(in crate::cli) fn restore_places() -> ArgValueCompleter {
    completer(|typed| {
        if line().has("--all") {
            return known_stores(typed);
        }
        let places = restore::PLACES.iter();
        let fits = places.filter(|(name, _)| begins(OsStr::new(name), typed));
        let all: Vec<Offer> = fits.map(|(name, what)| offer(name, what)).collect();
        match all.is_empty() {
            true => known_stores(typed),
            false => all,
        }
    })
}

/// The stores in the settings, and folders.
pub(in crate::cli) fn stores() -> ArgValueCompleter {
    completer(known_stores)
}

/// Sessions that lie in the relay.
pub(in crate::cli) fn relayed_sessions() -> ArgValueCompleter {
    completer(|typed| {
        let setting = line().home().map(|home| place::relay_setting(&home));
        let Some(Ok(Some(setting))) = setting else {
            return Vec::new();
        };
        let names = disk::read_dir_names(&setting.dir).unwrap_or_default();
        let folders = names.into_iter().filter(|(name, kind)| {
            *kind == FileKind::Folder && SessionId::of_folder(name).is_some()
        });
        preferred(folders.map(|(name, _)| offer(name, "")).collect(), typed)
    })
}

/// Tags in use.
pub(in crate::cli) fn tags() -> ArgValueCompleter {
    labels(|brief, all| all.extend(brief.tags.into_iter().map(Into::into)))
}

/// Sync tags in use.
pub(in crate::cli) fn sync_tags() -> ArgValueCompleter {
    labels(|brief, all| all.extend(brief.sync_tag.map(Into::into)))
}

/// Projects in use.
pub(in crate::cli) fn projects() -> ArgValueCompleter {
    labels(|brief, all| all.extend(brief.project.map(Into::into)))
}

/// Agents in use.
pub(in crate::cli) fn agents() -> ArgValueCompleter {
    labels(|brief, all| all.extend(brief.agent.map(Into::into)))
}

/// Statuses in use, and what `ls` also takes for one.
pub(in crate::cli) fn statuses() -> ArgValueCompleter {
    completer(|typed| {
        let all = known_statuses().into_iter();
        preferred(all.map(|status| offer(status, "")).collect(), typed)
    })
}

fn known_statuses() -> Vec<String> {
    let usual = ["active", "archived", "missing", "removed", "running"].map(str::to_owned);
    let mut used = in_use(|brief, all| all.extend(brief.status.map(Into::into)));
    used.retain(|status| !usual.contains(status));
    usual.into_iter().chain(used).collect()
}

/// `agent=`, and behind that the agents in use; so for each key of `label --where`.
pub(in crate::cli) fn conditions() -> ArgValueCompleter {
    completer(|typed| {
        let key = str::from_utf8(typed.as_bytes())
            .ok()
            .and_then(|typed| typed.split_once('='));
        let Some((key, _)) = key else {
            let keys = label::chosen::KEYS.iter();
            let all = keys.map(|(key, what)| offer(format!("{key}="), what));
            return preferred(all.collect(), typed);
        };
        let values: Vec<String> = match key {
            "agent" => labels_in_use(|brief, all| all.extend(brief.agent.map(Into::into))),
            "tag" => labels_in_use(|brief, all| all.extend(brief.tags.into_iter().map(Into::into))),
            "project" => labels_in_use(|brief, all| all.extend(brief.project.map(Into::into))),
            "status" => known_statuses(),
            _ => Vec::new(),
        };
        let all = values
            .iter()
            .map(|value| offer(format!("{key}={value}"), ""));
        preferred(all.collect(), typed)
    })
}

fn labels_in_use(collect: Collect) -> Vec<String> {
    in_use(collect).into_iter().collect()
}

fn completer(of: impl Fn(&OsStr) -> Vec<Offer> + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| stand_in(of(typed)))
}

/// Puts what a session carries into a set.
type Collect = fn(Brief, &mut BTreeSet<String>);

fn labels(collect: Collect) -> ArgValueCompleter {
    completer(move |typed| {
        let all = in_use(collect).into_iter();
        preferred(all.map(|label| offer(label, "")).collect(), typed)
    })
}

fn in_use(collect: Collect) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if let Some(home) = line().home() {
        // Of an index that is broken, nothing.
        let read = each_brief(&home, &|_| true, &mut |brief| collect(brief, &mut all));
        if read.is_err() {
            all.clear();
        }
    }
    all
}

/// The sessions that somebody could go to, for a person to choose from.
pub(super) fn places_to_go() -> Vec<Offer> {
    ids(OsStr::new(""), Which::Active)
}

/// One with a description, which can not drive the terminal.
fn offer(value: impl Into<OsString>, help: &str) -> Offer {
    Offer {
        value: value.into(),
        help: (!help.is_empty()).then(|| human::escape(help).into_owned()),
    }
}

fn begins(value: &OsStr, typed: &OsStr) -> bool {
    value.as_bytes().starts_with(typed.as_bytes())
}

fn has(value: &OsStr, typed: &OsStr) -> bool {
    memchr::memmem::find(value.as_bytes(), typed.as_bytes()).is_some()
}

/// Of all that begin as `typed` does, or else of those that have it somewhere. What begins with a dash would be taken
/// for an option.
fn preferred(mut all: Vec<Offer>, typed: &OsStr) -> Vec<Offer> {
    all.retain(|one| has(&one.value, typed) && !one.value.as_bytes().starts_with(b"-"));
    if all.iter().any(|one| begins(&one.value, typed)) {
        all.retain(|one| begins(&one.value, typed));
    }
    all
}

fn ids(typed: &OsStr, which: Which) -> Vec<Offer> {
    let Some(home) = line().home() else {
        return Vec::new();
    };
    let now = super::super::clock().now();
    let mut fits: Vec<(Option<Timestamp>, Offer)> = Vec::new();
    // What is no name of a folder is no session.
    let wanted = |id: &str| has(OsStr::new(id), typed) && SessionId::adopt(id).is_ok();
    let read = each_brief(&home, &wanted, &mut |brief| {
        let is_meant = match (which, brief.status()) {
            (Which::Any, _) => true,
            (Which::Present, status) => status != Status::Removed,
            (Which::Active, status) => status.is_active(),
            (Which::Travelling, status) => status.is_active() && brief.sync_tag.is_some(),
            (Which::Archived, status) => status == Status::Archived,
        };
        if is_meant {
            let created = brief.created();
            let help = match line().describes() && fits.len() <= DESCRIBED {
                true => description(&brief, created, now),
                false => String::new(),
            };
            fits.push((created, offer(brief.id.into_owned(), &help)));
        }
    });
    if read.is_err() {
        return Vec::new();
    }
    if fits.len() > DESCRIBED {
        fits.iter_mut().for_each(|(_, offer)| offer.help = None);
    }
    fits.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.value.cmp(&y.value)));
    fits.dedup_by(|(_, a), (_, b)| a.value == b.value);
    preferred(fits.into_iter().map(|(_, offer)| offer).collect(), typed)
}

/// `archived, 3 weeks ago, Prices`
fn description(brief: &Brief, created: Option<Timestamp>, now: Timestamp) -> String {
    let mut text = brief.status().as_str().to_owned();
    if let Some(created) = created {
        text.push_str(", ");
        text.push_str(&human::age(now, created));
    }
    if let Some(title) = &brief.title {
        text.push_str(", ");
        text.push_str(title);
    }
    text
}

fn session_or_path(typed: &OsStr, which: Which) -> Vec<Offer> {
    match memchr::memchr(b'/', typed.as_bytes()) {
        None => ids(typed, which),
        Some(at) => within(typed.as_bytes(), at).unwrap_or_default(),
    }
}

/// What stands in a folder of a session: `SESSION/FOLDER/BEGINNING`, with the slash behind the session at `at`.
fn within(typed: &[u8], at: usize) -> Option<Vec<Offer>> {
    let home = line().home()?;
    let id = session(&home, str::from_utf8(&typed[..at]).ok()?)?;
    let last = memchr::memrchr(b'/', typed)?;
    let (folder, beginning) = typed.split_at(last + 1);
    let rel = RelPath::new(OsStr::from_bytes(
        folder.get(at + 1..last).unwrap_or_default(),
    ))
    .ok()?;
    let clock = super::super::clock();
    let context = Context {
        clock: clock.as_ref(),
        progress: &NoProgress,
        stop: &Stop::new(),
    };
    let mut names = browse::below(&home, &id, rel.as_path(), &context).ok()?;
    names.retain(|(name, is_folder)| {
        let is_hidden = name.as_bytes().starts_with(b".") && !beginning.starts_with(b".");
        !is_hidden && has(name, OsStr::from_bytes(beginning)) && (*is_folder || !line().goes())
    });
    let starts = |name: &OsStr| name.as_bytes().starts_with(beginning);
    if names.iter().any(|(name, _)| starts(name)) {
        names.retain(|(name, _)| starts(name));
    }
    let offered = names.into_iter().map(|(name, is_folder)| {
        let mut value = folder.to_vec();
        value.extend(name.as_bytes());
        if is_folder {
            value.push(b'/');
        }
        offer(OsString::from_vec(value), "")
    });
    Some(offered.collect())
}

/// Mostly the id is typed out already, and nothing else has to be read.
fn session(home: &Home, query: &str) -> Option<SessionId> {
    let exact = SessionId::adopt(query)
        .ok()
        .filter(|id| disk::is_folder(&home.session(id)) || disk::exists(&home.archive_of(id)));
    exact.or_else(|| resolve_in(home, query).ok())
}

fn acts(typed: &OsStr) -> Vec<Offer> {
    let Some(home) = line().home() else {
        return Vec::new();
    };
    let mut names = disk::read_dir_names(&home.trash()).unwrap_or_default();
    names.retain(|(name, kind)| *kind == FileKind::Folder && has(name, typed));
    // They are named for their moment.
    names.reverse();
    let now = super::super::clock().now();
    let offered = names.into_iter().enumerate().map(|(n, (name, _))| {
        let act = name.to_str().filter(|_| n < EXPLAINED);
        let act = act.and_then(|name| trash::act(&home, name));
        let help = act.map(|act| match act.at() {
            Some(at) => format!("{}, {}", act.note.why, human::age(now, at)),
            None => act.note.why,
        });
        offer(name, &help.unwrap_or_default())
    });
    offered.collect()
}

fn known_stores(typed: &OsStr) -> Vec<Offer> {
    let home = line().home();
    let known = home.and_then(|home| place::stores(&home).ok());
    let known = known.unwrap_or_default().into_iter();
    let mut all: Vec<Offer> = known
        .filter(|store| begins(store.as_os_str(), typed))
        .map(|store| offer(store, "in the settings of the home"))
        .collect();
    for folder in PathCompleter::dir().complete(typed) {
        let path = Path::new(folder.get_value());
        if !folder.is_hide_set() && !all.iter().any(|known| Path::new(&known.value) == path) {
            all.push(offer(path, ""));
        }
    }
    all
}
