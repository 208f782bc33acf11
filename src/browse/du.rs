//! `wbhome du`: what the home takes on the disk, by session and kind, what of it grows, and what helps.
//!
//! One walk over the home, with all cores; no file is opened. Bytes are lengths of regular files, as `ls` and `show` count
//! them; what they take on the disk is told beside that, for it is less where files have holes. A file with several
//! names is counted once, under the first of them: sessions come first, by id.

mod grows;
mod record;
mod weigh;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

pub use self::grows::{Growing, Grows, OldFile};
pub use self::record::Former;
use self::weigh::Weighed;
pub use self::weigh::Weight;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, Entry, FileKind};
use crate::home::{Home, Index, LockedHome, SessionId, Status};
use crate::pack::ENDING;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// These sessions alone; the whole home when there is none.
    pub sessions: Vec<SessionId>,
    /// So many of the largest files are named.
    pub top: usize,
    /// After so much rest a session counts as idle.
    pub idle: std::time::Duration,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfSession {
    /// Its id, or the name of its folder where that can be no id.
    #[serde(flatten)]
    pub name: WirePath,
    /// Its status as the index says; `active` for one that it does not know.
    pub status: String,
    /// All of its folder.
    pub all: Weight,
    /// Below `context/`.
    pub context: Weight,
    /// Below `memory/`.
    pub memory: Weight,
    /// Below `artifacts/`.
    pub artifacts: Weight,
    /// Below `logs/`.
    pub logs: Weight,
    /// Anywhere else.
    pub other: Weight,
    /// Its archive; nothing where there is none.
    pub archive: Weight,
    /// When something was last written in it.
    pub updated: Option<Timestamp>,
    /// Bytes more (or fewer) than at the last record; `None` when that did not know it.
    pub growth: Option<i64>,
}

/// A large file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Large {
    /// Below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its length.
    pub bytes: u64,
    /// What it takes on the disk.
    pub allocated: u64,
    /// When it was last written.
    pub modified: Timestamp,
}

/// What else a home is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// `archive/`, all of it.
    pub archives: Weight,
    /// The repository, where it lies in the home.
    pub history: Weight,
    /// `.wbhome/trash/`.
    pub trash: Weight,
    /// The rest of `.wbhome/`.
    pub own: Weight,
    /// Everything else: `agents/`, the index, what lies about.
    pub other: Weight,
}

/// What the home takes.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The home.
    #[serde(flatten)]
    pub home: WirePath,
    /// Session by session, the largest first.
    pub sessions: Vec<OfSession>,
    /// All of them.
    pub together: Weight,
    /// The rest of the home; `None` when sessions were asked for.
    pub rest: Option<Rest>,
    /// All of the home; `None` when sessions were asked for.
    pub total: Option<Weight>,
    /// The largest files, the largest first.
    pub largest: Vec<Large>,
    /// When the last record was made; `None` when there is none.
    pub since: Option<Timestamp>,
    /// Bytes more (or fewer) than then, of what was asked for.
    pub growth: Option<i64>,
    /// The three things that grow, and what helps.
    pub grows: Vec<Grows>,
    /// What could not be read, below the home.
    pub unreadable: Vec<WirePath>,
    /// Whether this is the record that the next run compares with.
    pub recorded: bool,
    /// What the former record takes.
    #[serde(skip)]
    record: u64,
}

/// Looks at the home.
///
/// # Errors
/// A home that can not be opened, and interruption. A folder that can not be listed is named in the outcome; of an index
/// that can not be read nothing is known.
pub fn du(home: &Home, request: &Request, context: &Context) -> Result<Outcome> {
    let index = Index::read(home).unwrap_or_default();
    let former = Former::read(home);
    let mut weighed = Weighed::new(request.top);
    let everything = request.sessions.is_empty();
    let root = Dir::open(home.root()).map_err(|e| Error::io("can not open", home.root(), e))?;
    let skip = |rel: &Path, entry: &Entry| !everything && !is_meant(&request.sessions, rel, entry);
    let mut tree = disk::walk(&root, &skip, context.stop)?;
    // What has several names is the session's, where one of them is in a session.
    tree.folders
        .sort_by_key(|folder| !folder.rel.starts_with("sessions"));
    for folder in &tree.folders {
        weighed.add(folder);
    }
    drop(tree);
    let mut sessions = weighed.sessions(&index);
    let now = context.clock.now();
    let grows = match sessions.is_empty() {
        true => Vec::new(),
        false => grows::grows(&sessions, &weighed, request.idle, now),
    };
    for session in &mut sessions {
        session.growth = former.as_ref().and_then(|former| former.growth(session));
    }
    sessions.sort_by(|a, b| {
        let size = |session: &OfSession| session.all.bytes + session.archive.bytes;
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    let mut together = Weight::default();
    sessions.iter().for_each(|session| together += session.all);
    let mut total = together;
    let rest = weighed.rest;
    for part in [
        rest.archives,
        rest.history,
        rest.trash,
        rest.own,
        rest.other,
    ] {
        total += part;
    }
    let growth = former.as_ref().and_then(|former| match everything {
        true => Some(record::difference(
            total.bytes - weighed.record,
            former.total,
        )),
        false => sessions.iter().map(|session| session.growth).sum(),
    });
    Ok(Outcome {
        home: home.root().to_path_buf().into(),
        together,
        rest: everything.then_some(rest),
        total: everything.then_some(total),
        largest: weighed.largest(),
        since: former.as_ref().map(|former| former.at),
        growth,
        grows,
        unreadable: weighed.unreadable,
        sessions,
        recorded: false,
        record: weighed.record,
    })
}

/// Keeps what was found, for the next run to compare with.
///
/// # Errors
/// When it can not be written.
pub fn keep(home: &LockedHome, outcome: &mut Outcome, context: &Context) -> Result<()> {
    if let Some(total) = outcome.total {
        record::write(
            home,
            total.bytes - outcome.record,
            &outcome.sessions,
            context,
        )?;
        outcome.recorded = true;
    }
    Ok(())
}

/// Whether something belongs to one of the sessions, or leads to one.
fn is_meant(sessions: &[SessionId], rel: &Path, entry: &Entry) -> bool {
    let mut names = rel.iter();
    let is_one = |name: &OsStr| sessions.iter().any(|id| name == id.as_str());
    match (names.next(), names.next()) {
        (None, _) => entry.name == "sessions" || entry.name == "archive",
        (Some(top), None) if top == "sessions" => is_one(&entry.name),
        (Some(top), None) if top == "archive" => {
            let id = entry
                .name
                .to_str()
                .and_then(|name| name.strip_suffix(ENDING));
            entry.meta.kind == FileKind::File && id.is_some_and(|id| is_one(id.as_ref()))
        }
        (Some(top), Some(id)) => top == "sessions" && is_one(id),
        _ => false,
    }
}

/// The status of a session, by what the index says and where it was found.
fn status_of(index: &BTreeMap<&str, Status>, name: &OsStr, has_folder: bool) -> String {
    let known = name.to_str().and_then(|name| index.get(name));
    let found = match has_folder {
        true => Status::Active,
        false => Status::Archived,
    };
    known.unwrap_or(&found).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::weigh::Names;
    use super::*;
    use crate::home::testing;

    #[test]
    fn a_path_belongs_to_the_sessions_that_are_meant() {
        let place = testing::home();
        place.put("sessions/a/x/y", "");
        place.put("archive/a.tar.zst", "");
        place.put("archive/b.tar.zst", "");
        place.put("agents/a", "");
        let root = Dir::open(place.home.root()).unwrap();
        let ids = [SessionId::adopt("a").unwrap()];
        let skip = |rel: &Path, entry: &Entry| !is_meant(&ids, rel, entry);
        let stop = crate::base::Stop::new();
        let tree = disk::walk(&root, &skip, &stop).unwrap();
        let found: Vec<String> = tree
            .entries()
            .map(|(path, _)| path.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            found,
            [
                "archive",
                "sessions",
                "archive/a.tar.zst",
                "sessions/a",
                "sessions/a/x",
                "sessions/a/x/y"
            ]
        );
    }

    #[test]
    fn what_is_never_a_session_is_other() {
        assert_eq!(Names::of(Path::new("sessions")), Names::Other);
        assert_eq!(Names::of(Path::new("agents/x")), Names::Other);
    }
}
