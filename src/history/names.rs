//! Which session a person means, and what it was called in each commit: a folder that was renamed goes on under its
//! former name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{Commit, Oid};

use super::Repository;
use super::committed::Held;
use crate::base::{Result, Stop};
use crate::disk;
use crate::home::{
    Candidate, Home, Index, Record, RelPath, SessionId, Status, candidates, identity_of, matching,
    resolve, split,
};

/// What in the history is meant.
#[derive(Clone, Debug)]
pub(super) struct Meant {
    pub id: SessionId,
    /// Within the session; empty for the whole of it.
    pub rel: RelPath,
}

impl Meant {
    /// Where it lies below the folder of the session.
    pub fn below(&self, session: &Path) -> PathBuf {
        match self.rel.is_empty() {
            true => session.to_path_buf(),
            false => session.join(self.rel.as_path()),
        }
    }
}

/// The session, or what in one, that a person means: one that the home knows, or else one that a commit holds.
///
/// # Errors
/// None or several are meant.
pub(super) fn meant(home: &Home, repository: &Repository, spec: &str) -> Result<Meant> {
    let (query, rel) = split(spec)?;
    let known = candidates(home, query.starts_with('@'))?;
    let id = match matching(query, &known)? {
        Some(id) => id,
        None => match committed_id(repository, query)? {
            Some(id) => id,
            None => resolve(query, &known)?,
        },
    };
    Ok(Meant { id, rel })
}

/// The session of a commit that is meant: of the last one, or else of any.
fn committed_id(repository: &Repository, query: &str) -> Result<Option<SessionId>> {
    let Some(tip) = repository.tip()? else {
        return Ok(None);
    };
    let mut seen = HashSet::new();
    let mut ids = BTreeSet::new();
    for oid in repository.walk(tip.id())? {
        let tree = repository.commit(oid)?.tree_id();
        let Some(sessions) = repository.held(tree, Path::new(SESSIONS))? else {
            continue;
        };
        if !sessions.is_folder() || !seen.insert(sessions.oid) {
            continue;
        }
        for entry in repository.tree(sessions.oid)?.iter() {
            ids.extend(SessionId::of_folder(OsStr::from_bytes(entry.name_bytes())));
        }
        if let Some(id) = one_of(&ids, query)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn one_of(ids: &BTreeSet<SessionId>, query: &str) -> Result<Option<SessionId>> {
    let candidates: Vec<Candidate> = ids
        .iter()
        .map(|id| Candidate {
            id: id.clone(),
            status: Status::Active,
            activity: None,
        })
        .collect();
    matching(query, &candidates)
}

pub(super) const SESSIONS: &str = "sessions";

/// A commit on the way back, with what it and those before it hold of what is meant.
pub(super) struct Visited<'r> {
    pub commit: Commit<'r>,
    /// What the session is called in it.
    pub name: String,
    pub here: Option<Held>,
    pub parents: Vec<Before>,
}

/// A commit before.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// What the session was called there.
    pub name: String,
    pub held: Option<Held>,
}

impl Visited<'_> {
    /// Whether the commit is one that changed it: what it holds differs from all that came before.
    pub fn touches(&self) -> bool {
        match self.parents.is_empty() {
            true => self.here.is_some(),
            false => self.parents.iter().all(|before| {
                before.held != self.here || before.name != self.name && self.here.is_some()
            }),
        }
    }
}

/// Follows a session, or something in one, back through all commits.
pub(super) struct Follow<'r> {
    repository: &'r Repository,
    rel: &'r RelPath,
    /// What `sessions` trees hold of a name: most commits leave most sessions as they were.
    known: HashMap<(Oid, String), Option<Held>>,
}

impl<'r> Follow<'r> {
    pub fn new(repository: &'r Repository, rel: &'r RelPath) -> Self {
        Follow {
            repository,
            rel,
            known: HashMap::new(),
        }
    }

    /// Visits every commit from the tip on, none before those that come from it, until `visit` says no.
    pub fn back(
        &mut self,
        tip: Oid,
        name: &str,
        stop: &Stop,
        visit: &mut dyn FnMut(Visited<'r>) -> Result<bool>,
    ) -> Result<()> {
        let mut names = HashMap::from([(tip, name.to_owned())]);
        for oid in self.repository.walk(tip)? {
            stop.check()?;
            let name = names.remove(&oid).unwrap_or_else(|| name.to_owned());
            let commit = self.repository.commit(oid)?;
            let mut parents = Vec::new();
            for parent in commit.parents() {
                let before = self.before(&commit, &name, &parent)?;
                names.entry(parent.id()).or_insert(before.name.clone());
                parents.push(before);
            }
            let visited = Visited {
                here: self.within(&commit, &name)?,
                commit,
                name,
                parents,
            };
            if !visit(visited)? {
                break;
            }
        }
        Ok(())
    }

    fn before(&mut self, commit: &Commit, name: &str, parent: &Commit) -> Result<Before> {
        let appears =
            self.session(commit, name)?.is_some() && self.session(parent, name)?.is_none();
        let former = match appears {
            true => self.former(commit, name, parent)?,
            false => None,
        };
        let name = former.unwrap_or_else(|| name.to_owned());
        Ok(Before {
            held: self.within(parent, &name)?,
            name,
        })
    }

    /// The folder of a session in a commit.
    fn session(&mut self, commit: &Commit, name: &str) -> Result<Option<Held>> {
        let Some(sessions) = self.sessions(commit)? else {
            return Ok(None);
        };
        let key = (sessions, name.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let held = self.repository.held(sessions, Path::new(name))?;
        self.known.insert(key, held);
        Ok(held)
    }

    fn sessions(&self, commit: &Commit) -> Result<Option<Oid>> {
        let held = self
            .repository
            .held(commit.tree_id(), Path::new(SESSIONS))?;
        Ok(held.filter(|held| held.is_folder()).map(|held| held.oid))
    }

    fn within(&mut self, commit: &Commit, name: &str) -> Result<Option<Held>> {
        match self.session(commit, name)? {
            Some(session) if self.rel.is_empty() => Ok(Some(session)),
            Some(session) if session.is_folder() => {
                self.repository.held(session.oid, self.rel.as_path())
            }
            _ => Ok(None),
        }
    }

    /// What a session that appears in a commit was called before: among those that vanish in it, the one of the same
    /// identity, or else the one that shares most files with it.
    fn former(&mut self, commit: &Commit, name: &str, parent: &Commit) -> Result<Option<String>> {
        let (Some(now), Some(then)) = (self.sessions(commit)?, self.sessions(parent)?) else {
            return Ok(None);
        };
        let gone = gone(self.repository, then, &|name| {
            Ok(self.repository.held(now, Path::new(name))?.is_some())
        })?;
        if gone.is_empty() {
            return Ok(None);
        }
        let identity = identity(self.repository, now, name)?;
        let here = self.repository.held(now, Path::new(name))?;
        let here: HashSet<Oid> = blobs(self.repository, here)?;
        let mut best: Option<(usize, String)> = None;
        for old in gone {
            let former = self::identity(self.repository, then, &old)?;
            if former.is_some() && identity.is_some() {
                match former == identity {
                    true => return Ok(Some(old)),
                    false => continue,
                }
            }
            let there = self.repository.held(then, Path::new(&old))?;
            let there = blobs(self.repository, there)?;
            let shared = here.intersection(&there).count();
            let enough = shared > 0 && shared * 2 >= here.len().min(there.len());
            if enough && best.as_ref().is_none_or(|(most, _)| shared > *most) {
                best = Some((shared, old));
            }
        }
        Ok(best.map(|(_, old)| old))
    }
}

/// The sessions of a tree that are not `there` any more.
fn gone(
    repository: &Repository,
    sessions: Oid,
    there: &dyn Fn(&str) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut gone = Vec::new();
    for entry in repository.tree(sessions)?.iter() {
        let id = SessionId::of_folder(OsStr::from_bytes(entry.name_bytes()));
        if let Some(id) = id
            && !there(id.as_str())?
        {
            gone.push(id.to_string());
        }
    }
    Ok(gone)
}

fn blobs(repository: &Repository, held: Option<Held>) -> Result<HashSet<Oid>> {
    let files = repository.files(held)?;
    Ok(files.into_values().map(|held| held.oid).collect())
}

/// The identity that a session has in a `sessions` tree, which no rename changes.
fn identity(repository: &Repository, sessions: Oid, name: &str) -> Result<Option<String>> {
    let path = Path::new(name).join("session.json");
    match repository.held(sessions, &path)? {
        Some(held) if held.is_blob() => {
            let record = Record::parse(&repository.content(held.oid)?);
            Ok(record.ok().and_then(|record| record.session_id))
        }
        _ => Ok(None),
    }
}

/// What a session is called in the last commit: renamed since, it still has its former name there.
pub(super) fn name_at_tip(
    home: &Home,
    repository: &Repository,
    tip: &Commit,
    id: &SessionId,
) -> Result<String> {
    let name = id.to_string();
    let sessions = repository.held(tip.tree_id(), Path::new(SESSIONS))?;
    let Some(sessions) = sessions.filter(|held| held.is_folder()) else {
        return Ok(name);
    };
    let known = repository.held(sessions.oid, Path::new(&name))?.is_some();
    if known || !disk::is_folder(&home.session(id)) {
        return Ok(name);
    }
    let index = Index::read(home).ok();
    let Some(own) = identity_of(home, index.as_ref(), id) else {
        return Ok(name);
    };
    let on_disk = |name: &str| Ok(disk::exists(&home.sessions().join(name)));
    for old in gone(repository, sessions.oid, &on_disk)? {
        if identity(repository, sessions.oid, &old)?.as_ref() == Some(&own) {
            return Ok(old);
        }
    }
    Ok(name)
}

/// What a session is called in a commit, which may be older than its name.
pub(super) fn name_at(
    home: &Home,
    repository: &Repository,
    commit: &Commit,
    id: &SessionId,
    stop: &Stop,
) -> Result<String> {
    let path = Path::new(SESSIONS).join(id.as_str());
    if repository.held(commit.tree_id(), &path)?.is_some() {
        return Ok(id.to_string());
    }
    let mut found = id.to_string();
    let Some(tip) = repository.tip()? else {
        return Ok(found);
    };
    let name = name_at_tip(home, repository, &tip, id)?;
    let whole = RelPath::default();
    Follow::new(repository, &whole).back(tip.id(), &name, stop, &mut |visited| {
        let wanted = visited.commit.id() == commit.id();
        if wanted {
            found = visited.name;
        }
        Ok(!wanted)
    })?;
    Ok(found)
}
