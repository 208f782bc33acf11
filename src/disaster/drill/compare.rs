//! The live home beside the rebuilt one, file by file.
//!
//! What the rebuilt home has was read back and compared with its pack already. What differs from the live home was
//! changed since, and then its length, time or mode tells; where they do not, one of the two is damaged. A file that only
//! the live home has is younger than its pack: a pack names what it does not hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rayon::prelude::*;

use super::super::rebuild::Outcome;
use super::report::{Data, Lost, OfKind, Report, Then, Wrong};
use crate::backup::{Form, Item, Place, Snapshot, Standing, StatePart};
use crate::base::{Context, Error, Result, Total, human};
use crate::check::conflict::{self, Relation};
use crate::disk::{self, Dir, Entry, FileKind, Meta};
use crate::home::SessionId;
use crate::pack;

/// A thing of the live home.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Thing {
    pub data: Data,
    pub place: Place,
}

/// A folder of the live side beside the one that was rebuilt.
pub(super) struct Side<'s> {
    pub live: &'s Dir,
    pub rebuilt: Dir,
    /// What of the live side is compared.
    pub skip: &'s (dyn Fn(&Path, &Entry) -> bool + Sync),
    /// Which thing a file belongs to, and its path there.
    pub thing: &'s (dyn Fn(&Path) -> (Thing, PathBuf) + Sync),
}

/// What became of one file.
enum Fate {
    Same,
    /// The same content, with another mode.
    Mode,
    Newer,
    Wrong(String),
}

/// What is known of a thing.
#[derive(Default)]
struct Told {
    files: u64,
    back: u64,
    newer: u64,
    first: Option<PathBuf>,
}

/// Collects what is compared.
pub(super) struct Comparison<'c> {
    snapshot: &'c Snapshot,
    outcome: &'c Outcome,
    things: BTreeMap<Thing, Told>,
    wrong: Vec<Wrong>,
    total: Total,
    context: &'c Context<'c>,
}

impl<'c> Comparison<'c> {
    pub fn new(snapshot: &'c Snapshot, outcome: &'c Outcome, context: &'c Context<'c>) -> Self {
        Comparison {
            snapshot,
            outcome,
            things: BTreeMap::new(),
            wrong: Vec::new(),
            total: Total::default(),
            context,
        }
    }

    /// Compares the files of one side.
    ///
    /// # Errors
    /// A folder that can not be looked at, and interruption.
    pub fn add(&mut self, side: &Side) -> Result<()> {
        let tree = disk::walk(side.live, side.skip, self.context.stop)?;
        let files: Vec<(PathBuf, &Entry)> = tree
            .entries()
            .filter(|(_, entry)| matches!(entry.meta.kind, FileKind::File | FileKind::Symlink))
            .collect();
        let bytes = files.iter().map(|(_, entry)| entry.meta.size).sum();
        let total = Total {
            items: files.len() as u64,
            bytes,
        };
        self.total.items += total.items;
        self.total.bytes += total.bytes;
        self.context.progress.stage("comparing", total);
        let fates: Vec<(bool, Fate)> = files
            .par_iter()
            .map(|(rel, entry)| {
                self.context.stop.check()?;
                let fate = side.fate(rel, entry);
                self.context.progress.advance(1, entry.meta.size);
                fate.map_err(|e| Error::io("can not compare", rel, e))
            })
            .collect::<Result<_>>()?;
        self.context.progress.finish();
        // A mixture of two states is what it is.
        let restless: HashSet<(&str, &Path)> = self
            .outcome
            .restless
            .iter()
            .map(|file| (file.thing.as_str(), &*file.path))
            .collect();
        // Git keeps no modes.
        let from_git: HashSet<&Path> = self
            .outcome
            .git
            .iter()
            .flat_map(|git| git.files.iter().map(|file| &*file.path))
            .collect();
        for ((rel, _), (back, fate)) in files.into_iter().zip(fates) {
            let (thing, within) = (side.thing)(&rel);
            let shown = thing.place.shown();
            let told = self.things.entry(thing).or_default();
            told.files += 1;
            told.back += u64::from(back);
            match fate {
                Fate::Same => {}
                Fate::Mode if from_git.contains(rel.as_path()) => {}
                Fate::Wrong(why) if !restless.contains(&(shown.as_str(), within.as_path())) => {
                    self.wrong.push(Wrong {
                        thing: shown,
                        path: within.into(),
                        why,
                    });
                }
                Fate::Newer | Fate::Mode | Fate::Wrong(_) => {
                    told.newer += 1;
                    told.first.get_or_insert(within);
                }
            }
        }
        Ok(())
    }

    /// Notes a thing that is compared as a whole: whether it came back, and whether it is as it is now.
    pub fn note(&mut self, thing: Thing, back: bool, as_now: bool, file: &Path) {
        let told = self.things.entry(thing).or_default();
        told.files += 1;
        told.back += u64::from(back);
        if !as_now {
            told.newer += 1;
            told.first.get_or_insert_with(|| file.to_path_buf());
        }
    }

    /// Writes what was found into the report.
    pub fn tell(mut self, report: &mut Report) {
        let items: HashMap<&Place, &Item> = self
            .snapshot
            .items
            .iter()
            .map(|item| (&item.place, item))
            .collect();
        let gone: HashMap<&str, &str> = self
            .outcome
            .lost
            .iter()
            .map(|lost| (lost.thing.as_str(), lost.why.as_str()))
            .collect();
        let mut told_lost: HashSet<String> = HashSet::new();
        for (thing, told) in std::mem::take(&mut self.things) {
            let shown = thing.place.shown();
            let item = items.get(&thing.place).copied();
            let item = item.filter(|item| holds(item, thing.data));
            let kind = of_kind(&mut report.kinds, thing.data);
            kind.things += 1;
            let text_only = self.outcome.git.as_ref().is_some_and(|git| {
                matches!(&thing.place, Place::Session(id) if git.text_only.iter().any(|t| t == id.as_str()))
            });
            let why = match gone.get(shown.as_str()) {
                Some(why) if told.back == 0 => Some((*why).to_owned()),
                _ if item.is_some() => None,
                _ if text_only && told.back == told.files => None,
                _ if told.back > 0 => Some(format!(
                    "the history has its text alone: {} of {} are nowhere else",
                    human::count(told.files - told.back),
                    human::plural(told.files, "file", "files")
                )),
                _ => Some("neither the store nor the history has it".to_owned()),
            };
            if let Some(why) = why {
                kind.lost += 1;
                told_lost.insert(shown.clone());
                report.lost.push(Lost {
                    data: thing.data,
                    thing: shown,
                    why,
                });
                continue;
            }
            if told.newer == 0 {
                kind.as_now += 1;
                continue;
            }
            let as_of = self.as_of(item, &shown, thing.data);
            kind.as_then += 1;
            kind.newer_files += told.newer;
            kind.as_of = Some(kind.as_of.map_or(as_of, |known| known.min(as_of)));
            report.then.push(Then {
                data: thing.data,
                thing: shown,
                as_of,
                newer_files: told.newer,
                first: told.first.unwrap_or_default().into(),
            });
        }
        // What the live home does not have any more either, and should have come back.
        for lost in &self.outcome.lost {
            if told_lost.insert(lost.thing.clone()) {
                let data = data_of(lost.kind);
                of_kind(&mut report.kinds, data).lost += 1;
                report.lost.push(Lost {
                    data,
                    thing: lost.thing.clone(),
                    why: lost.why.clone(),
                });
            }
        }
        report.wrong = self.wrong;
        report.files = self.total.items;
        report.bytes = self.total.bytes;
    }

    /// As of when a thing came back. What has not changed until the snapshot is as of that.
    fn as_of(&self, item: Option<&Item>, shown: &str, data: Data) -> Timestamp {
        let older = self.outcome.older.iter();
        let older = older.filter(|older| older.thing == shown);
        if let Some(at) = older.map(|older| older.at).min() {
            return at;
        }
        match item {
            Some(item) if item.standing != Standing::Present => item.newest.at,
            // Settings are packed once in a while, and may have changed before the snapshot.
            Some(item) if data == Data::Settings => item.newest.at,
            Some(item) if !item.newest.is_complete() => item
                .complete
                .as_ref()
                .map_or(item.newest.at, |pack| pack.at),
            _ => self.snapshot.at,
        }
    }
}

/// Whether the snapshot has this form of a session.
fn holds(item: &Item, data: Data) -> bool {
    let mut packs = std::iter::once(&item.newest).chain(&item.archive);
    match data {
        Data::Archives => packs.any(|pack| pack.form == Form::Archive),
        Data::Sessions => packs.any(|pack| pack.form == Form::Packed),
        _ => true,
    }
}

pub(super) fn of_kind(kinds: &mut Vec<OfKind>, data: Data) -> &mut OfKind {
    let at = match kinds.binary_search_by_key(&data, |kind| kind.data) {
        Ok(at) => at,
        Err(at) => {
            let kind = OfKind {
                data,
                things: 0,
                as_now: 0,
                as_then: 0,
                as_of: None,
                newer_files: 0,
                lost: 0,
            };
            kinds.insert(at, kind);
            at
        }
    };
    &mut kinds[at]
}

fn data_of(kind: crate::backup::Kind) -> Data {
    use crate::backup::Kind;
    match kind {
        Kind::Home => Data::Home,
        Kind::Agents => Data::Agents,
        Kind::Folder => Data::Folders,
        Kind::Session => Data::Sessions,
        Kind::State => Data::Settings,
        Kind::Transcripts => Data::Conversations,
    }
}

/// The thing that a file of a home belongs to, and its path in the thing's folder.
pub(super) fn thing_of_home(rel: &Path) -> (Thing, PathBuf) {
    let mut names = rel.iter();
    let (first, second) = (names.next().unwrap_or_default(), names.next());
    let rest = names.as_path().to_path_buf();
    let thing = |data, place| Thing { data, place };
    let own = || (thing(Data::Home, Place::Home), rel.to_path_buf());
    let Some(second) = second else {
        return own();
    };
    let below = || rel.strip_prefix(first).unwrap_or(rel).to_path_buf();
    match first.to_str() {
        Some("sessions") if !rest.as_os_str().is_empty() => match SessionId::of_folder(second) {
            Some(id) => (thing(Data::Sessions, Place::Session(id)), rest),
            None => own(),
        },
        Some("archive") if rest.as_os_str().is_empty() => {
            let id = second
                .to_str()
                .and_then(|name| name.strip_suffix(pack::ENDING));
            match id.and_then(|id| SessionId::of_folder(OsStr::new(id))) {
                Some(id) => (
                    thing(Data::Archives, Place::Session(id)),
                    PathBuf::from(second),
                ),
                None => own(),
            }
        }
        Some("agents") => (thing(Data::Agents, Place::Agents), below()),
        Some("sessions" | "archive" | "projects" | ".wbhome") | None => own(),
        Some(other) => (
            thing(Data::Folders, Place::Folder(other.to_owned())),
            below(),
        ),
    }
}

/// The kind of data of a part of a state folder.
pub(super) fn data_of_place(place: &Place) -> Data {
    match place {
        Place::State(StatePart::Databases, _) => Data::Databases,
        Place::Transcripts(..) => Data::Conversations,
        _ => Data::Settings,
    }
}

impl Side<'_> {
    fn fate(&self, rel: &Path, entry: &Entry) -> io::Result<(bool, Fate)> {
        let parent = rel.parent().unwrap_or(Path::new(""));
        let there = match self.rebuilt.open_beneath(parent) {
            Ok(dir) => dir.find(&entry.name)?.map(|meta| (dir, meta)),
            Err(error) if disk::is_nowhere(&error) => None,
            Err(error) => return Err(error),
        };
        let Some((dir, back)) = there else {
            return Ok((false, Fate::Newer));
        };
        let live = &entry.meta;
        if back.kind != live.kind {
            return Ok((true, Fate::Newer));
        }
        let same = self
            .live
            .open_beneath(parent)
            .and_then(|live_dir| match live.kind {
                FileKind::Symlink => {
                    Ok(live_dir.read_link(&entry.name)? == dir.read_link(&entry.name)?)
                }
                _ if live.size != back.size => Ok(false),
                _ => equal(&live_dir, &dir, &entry.name),
            });
        Ok((
            true,
            match same {
                Ok(true) if live.kind == FileKind::File && back.mode != live.mode => Fate::Mode,
                Ok(true) => Fate::Same,
                Ok(false) if unchanged(live, &back) && self.rests(parent, entry) => Fate::Wrong(
                    "differs from the live file, though length and time are the same: one of them is damaged"
                        .to_owned(),
                ),
                Ok(false) => Fate::Newer,
                // It went while it was looked at.
                Err(error) if disk::is_nowhere(&error) => Fate::Same,
                Err(error) => Fate::Wrong(format!(
                    "the live file can not be read: {}",
                    human::io(&error)
                )),
            },
        ))
    }

    /// Whether the live file is still what it was when the folder was listed.
    fn rests(&self, parent: &Path, entry: &Entry) -> bool {
        let now = self.live.open_beneath(parent);
        now.and_then(|dir| dir.stat(&entry.name))
            .is_ok_and(|now| now.same_state(&entry.meta))
    }
}

fn unchanged(live: &Meta, back: &Meta) -> bool {
    live.size == back.size && live.mtime == back.mtime
}

fn equal(one: &Dir, other: &Dir, name: &OsStr) -> io::Result<bool> {
    let (mut one, mut other) = (one.open_file(name)?, other.open_file(name)?);
    Ok(conflict::relation(&mut one, &mut other)? == Relation::Same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_belongs_to_one_thing() {
        for (rel, data, shown, within) in [
            ("index.json", Data::Home, "the home itself", "index.json"),
            (
                "sessions/20240603_爬虫/context/turn_001.json",
                Data::Sessions,
                "20240603_爬虫",
                "context/turn_001.json",
            ),
            (
                "sessions/note.txt",
                Data::Home,
                "the home itself",
                "sessions/note.txt",
            ),
            ("archive/a.tar.zst", Data::Archives, "a", "a.tar.zst"),
            (
                "archive/note",
                Data::Home,
                "the home itself",
                "archive/note",
            ),
            (
                "agents/a/agent.yaml",
                Data::Agents,
                "agents/",
                "a/agent.yaml",
            ),
            (
                "projects/p/a",
                Data::Home,
                "the home itself",
                "projects/p/a",
            ),
            ("资料/书/1", Data::Folders, "资料/", "书/1"),
            (
                ".wbhome/runs/1",
                Data::Home,
                "the home itself",
                ".wbhome/runs/1",
            ),
        ] {
            let (thing, path) = thing_of_home(Path::new(rel));
            assert_eq!(
                (thing.data, thing.place.shown().as_str(), path.as_path()),
                (data, shown, Path::new(within)),
                "{rel}"
            );
        }
    }
}
