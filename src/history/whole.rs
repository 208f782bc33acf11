//! Where the history holds a whole version of what is damaged or gone on the disk.
//!
//! With a commit every few minutes a torn file is committed before anybody has seen that it is torn, so the last commit is
//! only the first one to ask.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use git2::Oid;
use serde::de::IgnoredAny;

use super::Repository;
use super::committed::LINK;
use super::names::{Follow, SESSIONS, name_at_tip};
use crate::base::{Kind, Result, Stop};
use crate::home::{Home, RelPath, SessionId};

/// So many commits are gone back for a session: damage that is older than that is no news.
const COMMITS: usize = 10_000;

/// So many versions of one file are read.
const VERSIONS: usize = 200;

/// No larger version is read.
const LIMIT: u64 = 64 << 20;

/// A file of a session that is looked for.
struct Wanted {
    path: PathBuf,
    within: PathBuf,
    seen: HashSet<Oid>,
}

/// Those of some paths below the home of which a commit holds a whole version, each with the newest such commit; `None`
/// for the last one. Whole is JSON that parses, JSON line by line, of other files any content without a NUL.
///
/// What can not be read is passed over: `wbhome check` tells of it elsewhere.
///
/// # Errors
/// Interruption.
pub fn newest_whole(
    home: &Home,
    repository: &Repository,
    paths: &[PathBuf],
    stop: &Stop,
) -> Result<BTreeMap<PathBuf, Option<String>>> {
    let mut sessions: BTreeMap<SessionId, Vec<Wanted>> = BTreeMap::new();
    for path in paths {
        let mut names = path.iter();
        let room = names.next().is_some_and(|room| room == SESSIONS);
        let id = names.next().and_then(SessionId::of_folder);
        if let (true, Some(id)) = (room, id) {
            sessions.entry(id).or_default().push(Wanted {
                path: path.clone(),
                within: names.as_path().to_path_buf(),
                seen: HashSet::new(),
            });
        }
    }
    let mut whole = BTreeMap::new();
    for (id, wanted) in sessions {
        match in_session(home, repository, &id, wanted, &mut whole, stop) {
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(whole)
}

fn in_session(
    home: &Home,
    repository: &Repository,
    id: &SessionId,
    mut wanted: Vec<Wanted>,
    whole: &mut BTreeMap<PathBuf, Option<String>>,
    stop: &Stop,
) -> Result<()> {
    let Some(tip) = repository.tip()? else {
        return Ok(());
    };
    let name = name_at_tip(home, repository, &tip, id)?;
    let rel = RelPath::default();
    let mut seen = HashSet::new();
    let mut commits = 0;
    Follow::new(repository, &rel).back(tip.id(), &name, stop, &mut |visited| {
        commits += 1;
        let new = visited.here.filter(|held| seen.insert(held.oid));
        if let Some(session) = new.filter(|held| held.is_folder()) {
            let commit = visited.commit.id();
            wanted.retain_mut(|file| {
                let found = file.is_whole_in(repository, session.oid);
                if found {
                    let at = (commit != tip.id()).then(|| repository.short(commit));
                    whole.insert(file.path.clone(), at);
                }
                !found && file.seen.len() < VERSIONS
            });
        }
        Ok(!wanted.is_empty() && commits < COMMITS)
    })
}

impl Wanted {
    /// Whether a session's tree holds a version of it that was not looked at before, and that is whole.
    fn is_whole_in(&mut self, repository: &Repository, session: Oid) -> bool {
        let held = repository.held(session, &self.within).ok().flatten();
        let Some(held) = held.filter(|held| held.is_blob() && held.mode != LINK) else {
            return false;
        };
        if !self.seen.insert(held.oid) {
            return false;
        }
        let small = repository.version(held).is_ok_and(|v| v.bytes <= LIMIT);
        let content = small.then(|| repository.content(held.oid));
        content.is_some_and(|content| content.is_ok_and(|content| is_whole(&self.path, &content)))
    }
}

/// Whether a content is what its name promises.
pub(super) fn is_whole(path: &Path, content: &[u8]) -> bool {
    let parses = |json: &[u8]| serde_json::from_slice::<IgnoredAny>(json).is_ok();
    match path.extension().and_then(|e| e.to_str()) {
        _ if content.is_empty() || content.contains(&0) => false,
        Some("json") => parses(content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)),
        Some("jsonl" | "ndjson") => content
            .split(|b| *b == b'\n')
            .all(|line| line.trim_ascii().is_empty() || parses(line)),
        _ => true,
    }
}
