//! `wbhome history`: the commits that touched a session, or something in one.

use std::path::{Path, PathBuf};

use git2::Commit;
use serde::Serialize;

use super::committed::{ChangeKind, Held, Version};
use super::names::{Follow, Visited, meant, name_at_tip};
use super::revision::Told;
use super::{Repository, repository::torn};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::home::{Home, RelPath, SessionId};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// `SESSION` or `SESSION/PATH`.
    pub what: String,
    /// So many commits at most; 0 for all.
    pub limit: usize,
}

/// The commits, the newest first.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// The session.
    pub session: SessionId,
    /// What in it, if not the whole.
    pub within: Option<String>,
    /// As many as were asked for.
    pub commits: Vec<Touched>,
    /// How many there are.
    pub total: u64,
    /// Whether there is any commit at all.
    #[serde(skip)]
    pub any: bool,
}

/// A commit that touched it.
#[derive(Clone, Debug, Serialize)]
pub struct Touched {
    /// Which.
    #[serde(flatten)]
    pub told: Told,
    /// What the session is called in it.
    pub session: String,
    /// What it was called before, where the commit renamed it.
    pub was: Option<String>,
    /// What in it changed.
    pub changes: Vec<Change>,
}

/// A file that changed.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Which, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// What became of it.
    pub change: ChangeKind,
    /// What it was; none when it was not there.
    pub before: Option<Version>,
    /// What it is then.
    pub after: Option<Version>,
}

/// Finds the commits. Only trees are compared, by their names: what did not change is never read.
///
/// # Errors
/// A session that is unknown, something in it that never was there, objects that can not be read.
pub fn log(home: &Home, request: &Request, context: &Context) -> Result<Log> {
    let repository = Repository::expect(home)?;
    let meant = meant(home, &repository, &request.what)?;
    let rel = meant.rel.as_path();
    let mut log = Log {
        session: meant.id.clone(),
        within: (!meant.rel.is_empty()).then(|| rel.to_string_lossy().into_owned()),
        commits: Vec::new(),
        total: 0,
        any: false,
    };
    let Some(tip) = repository.tip()? else {
        return match repository.branches().is_empty() {
            true => Ok(log),
            false => Err(repository.no_tip()),
        };
    };
    log.any = true;
    let name = name_at_tip(home, &repository, &tip, &meant.id)?;
    Follow::new(&repository, &meant.rel).back(tip.id(), &name, context.stop, &mut |visited| {
        if !visited.touches() {
            return Ok(true);
        }
        log.total += 1;
        if request.limit == 0 || log.commits.len() < request.limit {
            log.commits.push(touched(&repository, &visited, rel)?);
        }
        Ok(true)
    })?;
    if log.total == 0 && !meant.rel.is_empty() {
        return Err(Error::failed(format!(
            "no commit has held {} of {}",
            human::path(rel),
            human::name(meant.id.as_str())
        ))
        .hint(format!(
            "`wbhome history -v {}` names the files of each commit",
            human::argument(meant.id.as_str())
        )));
    }
    Ok(log)
}

/// The last commit that touched a session; `None` when none has, or when there is no repository.
///
/// # Errors
/// A repository that can not be used, and objects that can not be read.
pub fn last_touch(home: &Home, id: &SessionId, context: &Context) -> Result<Option<Told>> {
    let Some(repository) = Repository::open(home)? else {
        return Ok(None);
    };
    let Some(tip) = repository.tip()? else {
        return Ok(None);
    };
    let name = name_at_tip(home, &repository, &tip, id)?;
    let whole = RelPath::default();
    let mut last = None;
    Follow::new(&repository, &whole).back(tip.id(), &name, context.stop, &mut |visited| {
        if visited.touches() {
            last = Some(repository.told(&visited.commit));
        }
        Ok(last.is_none())
    })?;
    Ok(last)
}

/// The newest commit; `None` before the first.
///
/// # Errors
/// A branch or an object that can not be read.
pub fn newest(repository: &Repository) -> Result<Option<Told>> {
    Ok(repository.tip()?.map(|tip| repository.told(&tip)))
}

fn touched(repository: &Repository, visited: &Visited, rel: &Path) -> Result<Touched> {
    let before = visited.parents.first();
    let was = before
        .map(|before| before.name.clone())
        .filter(|name| *name != visited.name);
    let former = before.and_then(|before| before.held);
    Ok(Touched {
        told: repository.told(&visited.commit as &Commit),
        session: visited.name.clone(),
        was,
        changes: changes(repository, former, visited.here, rel)?,
    })
}

/// The files that differ between two things that trees hold, at `rel` in a session.
pub(super) fn changes(
    repository: &Repository,
    old: Option<Held>,
    new: Option<Held>,
    rel: &Path,
) -> Result<Vec<Change>> {
    let mut pairs: Vec<(PathBuf, Option<Held>, Option<Held>)> = Vec::new();
    let file = |held: &Option<Held>| held.filter(|held| !held.is_folder());
    if file(&old).is_some() || file(&new).is_some() {
        pairs.push((rel.to_path_buf(), file(&old), file(&new)));
    }
    let folder = |held: Option<Held>| match held.filter(|held| held.is_folder()) {
        Some(held) => repository.tree(held.oid).map(Some),
        None => Ok(None),
    };
    let (old, new) = (folder(old)?, folder(new)?);
    let diff = repository
        .git
        .diff_tree_to_tree(old.as_ref(), new.as_ref(), None)
        .map_err(|e| torn(repository.dir(), "a tree", e))?;
    for delta in diff.deltas() {
        let side = |file: git2::DiffFile| {
            let mode = u32::from(file.mode()) as i32;
            (mode != 0).then(|| Held {
                oid: file.id(),
                mode,
            })
        };
        let path = delta.new_file().path().or(delta.old_file().path());
        let path = rel.join(path.unwrap_or(Path::new("")));
        pairs.push((path, side(delta.old_file()), side(delta.new_file())));
    }
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    // A file that becomes a link goes and comes.
    pairs.dedup_by(|second, first| {
        let same = first.0 == second.0;
        if same {
            first.1 = first.1.or(second.1);
            first.2 = first.2.or(second.2);
        }
        same
    });
    let version = |held: Option<Held>| held.map(|held| repository.version(held)).transpose();
    let told = |(path, old, new): (PathBuf, Option<Held>, Option<Held>)| {
        Ok(Change {
            path: path.into(),
            change: match (&old, &new) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Changed,
            },
            before: version(old)?,
            after: version(new)?,
        })
    };
    pairs.into_iter().map(told).collect()
}
