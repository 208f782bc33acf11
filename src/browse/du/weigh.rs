//! Each file of a walk, put onto the scale that it belongs to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::record::RECORD;
use super::{Large, OfSession, Rest, status_of};
use crate::base::wire::WirePath;
use crate::disk::{FileKind, Folder, Meta, Stamp};
use crate::home::{Index, Status, turn_number};
use crate::pack::ENDING;

/// Files, their lengths, and what they take on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Weight {
    /// Regular files.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// What they take on the disk.
    pub allocated: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.allocated = self.allocated.saturating_add(other.allocated);
    }
}

impl Weight {
    fn of(meta: &Meta) -> Weight {
        Weight {
            files: 1,
            bytes: meta.size,
            allocated: meta.blocks.saturating_mul(512),
        }
    }
}

/// Which part of the home a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names<'p> {
    /// A session, and the kind of what is in it.
    Session(&'p OsStr, Kind),
    Archives,
    History,
    Trash,
    Own,
    Other,
}

/// What a file of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Context,
    Memory,
    Artifacts,
    Logs,
    Other,
}

impl<'p> Names<'p> {
    /// Of a folder, relative to the home: what lies directly in it.
    pub fn of(folder: &'p Path) -> Names<'p> {
        let mut names = folder.iter();
        match (names.next().and_then(OsStr::to_str), names.next()) {
            (Some("sessions"), Some(id)) => Names::Session(
                id,
                match names.next().and_then(OsStr::to_str) {
                    Some("context") => Kind::Context,
                    Some("memory") => Kind::Memory,
                    Some("artifacts") => Kind::Artifacts,
                    Some("logs") => Kind::Logs,
                    _ => Kind::Other,
                },
            ),
            (Some("archive"), _) => Names::Archives,
            (Some(".git"), _) => Names::History,
            (Some(".wbhome"), Some(name)) if name == "trash" => Names::Trash,
            (Some(".wbhome"), _) => Names::Own,
            _ => Names::Other,
        }
    }
}

/// What a session weighs, and what of it tells why.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub kinds: [Weight; 5],
    pub archive: Weight,
    /// When a file of it was last written.
    pub updated: Option<Stamp>,
    pub has_folder: bool,
    /// Its turns: number and length.
    pub turns: Vec<(u64, u64)>,
    /// Its artifacts that are large: below the home.
    pub large: Vec<Large>,
}

/// An artifact so long is worth a look.
pub(super) const LARGE: u64 = 10_000_000;

/// A file in the order of the largest: length, and of equal ones the first by name; what it takes, and its time.
type Ranked = (u64, Reverse<PathBuf>, u64, Stamp);

/// All of it.
pub(super) struct Weighed {
    pub by_name: BTreeMap<OsString, Session>,
    pub rest: Rest,
    /// The length of the last record, which no run is to count as growth.
    pub record: u64,
    pub unreadable: Vec<WirePath>,
    top: usize,
    /// The smallest of the largest is on top.
    largest: BinaryHeap<Reverse<Ranked>>,
    /// Files with several names that were counted.
    counted: HashSet<(u64, u64)>,
}

impl Weighed {
    pub fn new(top: usize) -> Weighed {
        Weighed {
            by_name: BTreeMap::new(),
            rest: Rest::default(),
            record: 0,
            unreadable: Vec::new(),
            top,
            largest: BinaryHeap::new(),
            counted: HashSet::new(),
        }
    }

    /// Counts what lies directly in a folder.
    pub fn add(&mut self, folder: &Folder) {
        let unreadable = folder.unreadable.iter();
        self.unreadable
            .extend(unreadable.map(|(path, _)| WirePath(path.clone())));
        let names = Names::of(&folder.rel);
        if let Names::Session(id, _) = names
            && folder.rel.iter().count() == 2
        {
            let session = self.by_name.entry(id.to_owned()).or_default();
            session.has_folder = true;
        }
        for entry in &folder.entries {
            let meta = &entry.meta;
            let again = meta.nlink > 1 && !self.counted.insert(meta.identity());
            if meta.kind != FileKind::File || again {
                continue;
            }
            let weight = Weight::of(meta);
            self.note_large(&folder.rel, &entry.name, meta);
            match names {
                Names::Session(id, kind) => {
                    let session = self.by_name.entry(id.to_owned()).or_default();
                    session.kinds[kind as usize] += weight;
                    session.updated = session.updated.max(Some(meta.mtime));
                    session.note(kind, &folder.rel, &entry.name, meta);
                }
                Names::Archives => {
                    self.rest.archives += weight;
                    let id = entry
                        .name
                        .to_str()
                        .and_then(|name| name.strip_suffix(ENDING));
                    if let Some(id) = id.filter(|_| folder.rel == Path::new("archive")) {
                        let session = self.by_name.entry(OsString::from(id)).or_default();
                        session.archive += weight;
                    }
                }
                Names::History => self.rest.history += weight,
                Names::Trash => self.rest.trash += weight,
                Names::Own => {
                    self.rest.own += weight;
                    if folder.rel.join(&entry.name) == Path::new(RECORD) {
                        self.record = weight.bytes;
                    }
                }
                Names::Other => self.rest.other += weight,
            }
        }
    }

    fn note_large(&mut self, folder: &Path, name: &OsStr, meta: &Meta) {
        let is_in = match self.largest.peek() {
            _ if self.largest.len() < self.top => true,
            Some(Reverse((least, ..))) => meta.size >= *least,
            None => false,
        };
        if is_in && self.top > 0 {
            let path = Reverse(folder.join(name));
            let allocated = meta.blocks.saturating_mul(512);
            self.largest
                .push(Reverse((meta.size, path, allocated, meta.mtime)));
            if self.largest.len() > self.top {
                self.largest.pop();
            }
        }
    }

    /// The largest files, the largest first; of equal ones by name.
    pub fn largest(&mut self) -> Vec<Large> {
        let sorted = std::mem::take(&mut self.largest).into_sorted_vec();
        let large = |Reverse((bytes, Reverse(path), allocated, mtime)): Reverse<Ranked>| Large {
            path: path.into(),
            bytes,
            allocated,
            modified: mtime.timestamp(),
        };
        sorted.into_iter().map(large).collect()
    }

    /// The sessions, by name.
    pub fn sessions(&self, index: &Index) -> Vec<OfSession> {
        let known: BTreeMap<&str, Status> = index
            .entries()
            .map(|entry| (entry.id(), entry.status()))
            .collect();
        let told = |(name, session): (&OsString, &Session)| {
            let [context, memory, artifacts, logs, other] = session.kinds;
            let mut all = Weight::default();
            session.kinds.iter().for_each(|kind| all += *kind);
            OfSession {
                name: PathBuf::from(name).into(),
                status: status_of(&known, name, session.has_folder),
                all,
                context,
                memory,
                artifacts,
                logs,
                other,
                archive: session.archive,
                updated: session.updated.map(Stamp::timestamp),
                growth: None,
            }
        };
        self.by_name.iter().map(told).collect()
    }
}

impl Session {
    fn note(&mut self, kind: Kind, folder: &Path, name: &OsStr, meta: &Meta) {
        match kind {
            Kind::Context if folder.iter().count() == 3 => {
                let turn = turn_number(name).map(|number| (number, meta.size));
                self.turns.extend(turn);
            }
            Kind::Artifacts if meta.size >= LARGE => self.large.push(Large {
                path: folder.join(name).into(),
                bytes: meta.size,
                allocated: meta.blocks.saturating_mul(512),
                modified: meta.mtime.timestamp(),
            }),
            _ => {}
        }
    }
}
