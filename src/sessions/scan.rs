//! What is on the disk: every folder in `sessions/`, every pack in `archive/`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use rayon::prelude::*;

use super::packs::{self, Said};

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Total};
use crate::disk::{self, Dir, FileKind, Stamp};
use crate::home::{
    Cache, Counts, Home, Index, PackedCounts, Record, SessionId, SessionsStamp, measure,
};

/// A session folder.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its name.
    pub id: SessionId,
    /// Its `session.json`, when that was read and could be understood.
    pub record: Option<Record>,
    /// Why its `session.json` could not be understood, if so.
    pub torn: Option<String>,
    /// What it holds.
    pub counts: Counts,
}

/// A pack in `archive/`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchiveSeen {
    /// Its length.
    pub bytes: u64,
    /// When it was written.
    pub written: jiff::Timestamp,
    /// The same, as the disk has it.
    pub mtime: Stamp,
    /// What it holds, when that could be learned.
    pub counts: Option<Counts>,
    /// What it says of itself, when that was wanted.
    pub said: Option<Said>,
}

/// What is on the disk.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// `sessions/` before it was listed.
    pub stamp: SessionsStamp,
    /// The folders, by id.
    pub sessions: BTreeMap<SessionId, Seen>,
    /// The packs, by the id in their name.
    pub archives: BTreeMap<SessionId, ArchiveSeen>,
    /// What stands in `archive/` under the name of a pack, and is no file: entries are left alone because of it.
    pub no_archives: BTreeMap<SessionId, FileKind>,
    /// Names in `sessions/` that are files or links where a session could be: their entries are left alone.
    pub blocked: Vec<SessionId>,
    /// Folders in `sessions/` whose name no id can hold.
    pub strangers: Vec<WirePath>,
}

/// What the index knows already, and so need not be read.
#[derive(Clone, Copy, Default)]
pub struct Knowing<'a> {
    /// The index; without one, everything is to be learned.
    pub index: Option<&'a Index>,
    /// It is made anew: what it knows is completed.
    pub rebuilding: bool,
}

/// Lists `sessions/` and `archive/` and counts what they hold, on all cores. Those whose counts are `known` already are
/// not counted again, nor are archives that were counted before. Records, and what archives say of themselves, are read
/// of those that the index knows too little about; without `knowing` of none.
///
/// # Errors
/// When a folder can not be listed, when there is no `sessions/` (a disk that is not mounted looks so), and
/// interruption.
pub fn scan(
    home: &Home,
    mut known: BTreeMap<SessionId, Counts>,
    knowing: Option<Knowing>,
    context: &Context,
) -> Result<Scan> {
    let path = home.sessions();
    if !disk::is_folder(&path) {
        return Err(Error::failed("there is no folder")
            .at(&path)
            .hint("is a disk not mounted? nothing was changed; `wbhome init` makes an empty one"));
    }
    let mut scan = Scan {
        stamp: SessionsStamp::now(home)?,
        ..Scan::default()
    };
    let mut present = Vec::new();
    for (name, kind) in disk::read_dir_names(&path)? {
        match (SessionId::of_folder(&name), kind) {
            (Some(id), FileKind::Folder) => {
                let counts = known.remove(&id);
                present.push((id, counts));
            }
            (Some(id), _) => scan.blocked.push(id),
            (None, FileKind::Folder) if !name.as_encoded_bytes().starts_with(b".") => {
                scan.strangers.push(Path::new(&name).to_path_buf().into());
            }
            // Hidden names are those of tools: `.DS_Store`, `.stfolder`.
            (None, _) => {}
        }
    }
    (scan.archives, scan.no_archives) = archives(home)?;
    let folders: BTreeSet<SessionId> = present.iter().map(|(id, _)| id.clone()).collect();
    packs::look(home, &mut scan.archives, &folders, knowing, context)?;
    let identified = identified(knowing);
    let sessions = Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
    let items = present.len() as u64;
    context
        .progress
        .stage("sessions", Total { items, bytes: 0 });
    let looked_at: Vec<Seen> = present
        .into_par_iter()
        .map(|(id, counts)| {
            context.stop.check()?;
            let wanted = knowing.is_some() && !identified.contains(id.as_str());
            let seen = look_at(&sessions, id, counts, wanted);
            context.progress.advance(1, 0);
            Ok(seen)
        })
        .collect::<Result<_>>()?;
    context.progress.finish();
    let looked_at = looked_at.into_iter().map(|seen| (seen.id.clone(), seen));
    scan.sessions.extend(looked_at);
    Ok(scan)
}

/// Sessions whose lasting identity is known: their records need not be read.
fn identified<'i>(knowing: Option<Knowing<'i>>) -> BTreeSet<&'i str> {
    let index = knowing.filter(|k| !k.rebuilding).and_then(|k| k.index);
    let entries = index.into_iter().flat_map(Index::entries);
    let known = entries.filter(|entry| entry.session_id().is_some());
    known.map(|entry| entry.id()).collect()
}

fn look_at(sessions: &Dir, id: SessionId, known: Option<Counts>, wants_record: bool) -> Seen {
    let counts = known.unwrap_or_else(|| measure(sessions, id.as_str().as_ref()));
    let (record, torn) = match wants_record.then(|| read_record(sessions, &id)) {
        None | Some(Ok(None)) => (None, None),
        Some(Ok(Some(record))) => (Some(record), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    Seen {
        id,
        record,
        torn,
        counts,
    }
}

/// The record of one session; `None` when it has none.
pub(super) fn read_record(sessions: &Dir, id: &SessionId) -> Result<Option<Record>> {
    let folder = sessions
        .open_beneath(Path::new(id.as_str()))
        .map_err(|e| Error::io("can not open the folder", id.as_str(), e))?;
    Record::read(&folder)
}

/// The packs, and what else has the name of one.
fn archives(
    home: &Home,
) -> Result<(
    BTreeMap<SessionId, ArchiveSeen>,
    BTreeMap<SessionId, FileKind>,
)> {
    let path = home.archive();
    let (mut found, mut others) = (BTreeMap::new(), BTreeMap::new());
    let names = disk::read_dir_names(&path)?;
    let of_id =
        |name: &OsStr| SessionId::of_folder(OsStr::new(name.to_str()?.strip_suffix(".tar.zst")?));
    for (name, kind) in names {
        let Some(id) = of_id(&name) else {
            continue;
        };
        if kind != FileKind::File {
            others.insert(id, kind);
            continue;
        }
        if let Some(meta) = disk::stat(&path.join(&name))? {
            let seen = ArchiveSeen {
                bytes: meta.size,
                written: meta.mtime.timestamp(),
                mtime: meta.mtime,
                counts: None,
                said: None,
            };
            found.insert(id, seen);
        }
    }
    Ok((found, others))
}

impl Scan {
    /// What is worth remembering of it.
    pub(super) fn to_cache(&self, context: &Context) -> Cache {
        let counts = self.sessions.values();
        let counts = counts.map(|seen| (seen.id.as_str().to_owned(), seen.counts.clone()));
        let mut cache = Cache::new(self.stamp, counts.collect(), self.strangers.clone());
        cache.at = Some(context.clock.now());
        for (id, seen) in &self.archives {
            if let Some(counts) = &seen.counts {
                let packed = PackedCounts::new(seen.bytes, seen.mtime, counts.clone());
                cache.archives.insert(id.to_string(), packed);
            }
        }
        cache
    }
}
