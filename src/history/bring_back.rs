//! `wbhome restore --from git`: a session, or something in it, as a commit holds it.
//!
//! What is replaced goes into the trash, and never anything that no commit holds without `force`. The files that come
//! back are built in the act of the trash, compared with the names of their blobs, and then renamed into their places by
//! journaled steps: what a kill leaves the next command completes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};
use serde::Serialize;

use super::Repository;
use super::committed::{EXECUTABLE, FILE, Held, LINK, Version};
use super::diff::read;
use super::names::{Follow, Meant, SESSIONS, meant, name_at, name_at_tip};
use super::revision::Told;
use super::said::said;
use super::select::is_dot_git;
use super::whole::is_whole;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{
    Entry, Home, Index, IndexFile, Leases, RelPath, SessionId, Status, identity_of, mend,
};
use crate::state::{Agent, AtWork};

mod apply;

pub use apply::apply;

/// What is to come back.
#[derive(Clone, Debug)]
pub struct Request {
    /// `SESSION` or `SESSION/PATH`.
    pub what: String,
    /// As of when: a commit or a moment; the last commit if none.
    pub at: Option<String>,
    /// Also over what no commit holds, and beside an archive.
    pub force: bool,
}

/// What would come back.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The session.
    pub session: SessionId,
    /// What in it, if not the whole.
    pub within: Option<String>,
    /// The commit.
    pub from: Told,
    /// What the session is called in it, where that differs.
    pub was: Option<String>,
    /// The files that come back.
    pub files: Vec<Back>,
    /// Files that are as in the commit already.
    pub same: u64,
    /// Files on the disk that the commit does not have: they stay.
    pub stays: u64,
    /// Whether the session is in the index again by that.
    pub indexed: bool,
    /// What can not come back, a line each.
    pub left: Vec<String>,
    #[serde(skip)]
    folders: Vec<PathBuf>,
    #[serde(skip)]
    entry: Option<Entry>,
}

/// A file that comes back.
#[derive(Clone, Debug, Serialize)]
pub struct Back {
    /// Where, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whether it takes the place of something, which goes into the trash.
    pub replaces: bool,
    /// What comes.
    pub version: Version,
    #[serde(skip)]
    held: Held,
    #[serde(skip)]
    former: Option<Meta>,
}

/// What came back.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was done of the plan.
    #[serde(flatten)]
    pub done: Plan,
    /// The act of the trash that takes it back, and holds what was replaced.
    pub kept: Option<String>,
}

/// What bringing it back would do.
///
/// # Errors
/// A session, commit or moment that is not known; what the commit does not hold; somebody at work; a session that another
/// device holds; something in the way that is no file, or that no commit holds.
pub fn plan(
    home: &Home,
    request: &Request,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Plan> {
    let repository = Repository::expect(home)?;
    let meant = meant(home, &repository, &request.what)?;
    leases.refuse(&meant.id)?;
    let now = context.clock.zoned();
    let commit = repository.revision(request.at.as_deref(), &now)?;
    let name = name_at(home, &repository, &commit, &meant.id, context.stop)?;
    let rel = meant.rel.as_path();
    let there = meant.below(&Path::new(SESSIONS).join(&name));
    let held = repository.files(repository.held(commit.tree_id(), &there)?)?;
    if held.is_empty() {
        return Err(not_held(&repository, &commit, &there, &meant));
    }
    refuse_archived(home, &meant.id, request.force)?;
    let session = Path::new(SESSIONS).join(meant.id.as_str());
    let mut plan = Plan {
        within: (!meant.rel.is_empty()).then(|| rel.to_string_lossy().into_owned()),
        from: repository.told(&commit),
        was: Some(name.clone()).filter(|name| name != meant.id.as_str()),
        files: Vec::new(),
        same: 0,
        stays: 0,
        indexed: false,
        left: Vec::new(),
        folders: Vec::new(),
        entry: None,
        session: meant.id.clone(),
    };
    let root = home.dir()?;
    let mut look = Look {
        repository: &repository,
        root: &root,
        folders: BTreeMap::new(),
        named: !meant.rel.is_empty() && held.contains_key(Path::new("")),
        unheld: BTreeMap::new(),
    };
    let mut coming = BTreeSet::new();
    for (path, held) in held {
        context.stop.check()?;
        let path = match path.as_os_str().is_empty() {
            true => session.join(rel),
            false => session.join(rel).join(path),
        };
        coming.insert(path.clone());
        look.file(path, held, &mut plan)?;
    }
    plan.folders = look.missing_folders();
    at_work(home, &plan, agents)?;
    let unheld = std::mem::take(&mut look.unheld);
    if !request.force {
        refuse_unheld(home, &repository, &commit, &meant, unheld, context)?;
    }
    plan.stays = stays(&root, &session, rel, &coming, context)?;
    index_again(home, &repository, &commit, &name, &mut plan);
    Ok(plan)
}

fn not_held(repository: &Repository, commit: &git2::Commit, there: &Path, meant: &Meant) -> Error {
    let short = repository.short(commit.id());
    let error = Error::failed(format!(
        "the commit {short} does not hold {}",
        human::path(there)
    ));
    let error = match last_that_holds(repository, commit, there) {
        Some(last) => error.hint(format!(
            "the last one that does: --at {}",
            repository.short(last)
        )),
        None => error,
    };
    error.hint(format!(
        "`wbhome history {}` lists those that changed it; --at names one",
        human::argument(meant.below(Path::new(meant.id.as_str())))
    ))
}

/// The newest commit before one that holds a path.
fn last_that_holds(repository: &Repository, commit: &git2::Commit, there: &Path) -> Option<Oid> {
    let holds = |id: &Oid| {
        let tree = repository.commit(*id).map(|commit| commit.tree_id());
        tree.is_ok_and(|tree| matches!(repository.held(tree, there), Ok(Some(_))))
    };
    repository.walk(commit.id()).ok()?.into_iter().find(holds)
}

fn refuse_archived(home: &Home, id: &SessionId, force: bool) -> Result<()> {
    let archived = !disk::exists(&home.session(id)) && disk::exists(&home.archive_of(id));
    match archived && !force {
        false => Ok(()),
        true => Err(Error::failed(format!(
            "`{}` is archived, and the archive holds all of it",
            human::name(id.as_str())
        ))
        .hint("--force puts what git holds into sessions/ all the same, beside the archive")),
    }
}

fn at_work(home: &Home, plan: &Plan, agents: &[Agent]) -> Result<()> {
    let at_work = AtWork::look(home.root(), agents);
    let index = Index::read(home).ok();
    let identity = identity_of(home, index.as_ref(), &plan.session);
    let folder = home.session(&plan.session);
    let files = plan.files.iter().map(|back| home.root().join(&*back.path));
    let who = at_work
        .agent_in_session(&folder, identity.as_deref())
        .or_else(|| files.into_iter().find_map(|file| at_work.writer_of(&file)));
    match who {
        None => Ok(()),
        Some(who) => Err(Error::failed(format!(
            "{} can not be changed: {who}",
            human::name(plan.session.as_str())
        ))
        .hint("end its session first; nothing was changed")),
    }
}

/// What is on the disk where files come back.
struct Look<'a> {
    repository: &'a Repository,
    root: &'a Dir,
    /// Folders that have to be there, and whether they are.
    folders: BTreeMap<PathBuf, bool>,
    /// Whether a person has named one file.
    named: bool,
    /// What is replaced, and what it holds.
    unheld: BTreeMap<PathBuf, Oid>,
}

impl Look<'_> {
    fn file(&mut self, path: PathBuf, held: Held, plan: &mut Plan) -> Result<()> {
        let is_git = |name: &OsStr| is_dot_git(name.as_bytes());
        // No name of a tree leads out of the session, or makes a repository in it.
        if RelPath::new(&path).is_err() || path.iter().any(is_git) {
            let shown = human::path(&path);
            plan.left
                .push(format!("{shown}: git itself does not write such a name"));
            return Ok(());
        }
        if !held.is_blob() {
            let shown = human::path(&path);
            plan.left.push(format!(
                "{shown}: a repository of its own, which the commit does not hold"
            ));
            return Ok(());
        }
        let there = match self.has_its_folder(&path)? {
            true => mend::look(self.root, &path)?,
            false => None,
        };
        if let Some(meta) = &there {
            let mode = match meta.kind {
                FileKind::File if meta.mode & 0o100 != 0 => EXECUTABLE,
                FileKind::File => FILE,
                FileKind::Symlink => LINK,
                kind => return Err(in_the_way(&path, kind, "a file")),
            };
            let fail = |e| Error::io("can not read", &path, e);
            let content = read(self.root, &path, meta).map_err(fail)?;
            let oid = Oid::hash_object(ObjectType::Blob, &content)
                .map_err(|e| Error::io("can not read", &path, said(e)))?;
            if oid == held.oid && (mode == held.mode || held.mode == 0o100_664 && mode == FILE) {
                plan.same += 1;
                return Ok(());
            }
            // Who names a damaged file knows what is replaced, as with `--from twin`.
            let damaged = self.named && !is_whole(&path, &content);
            if !damaged || !is_whole(&path, &self.repository.content(held.oid)?) {
                self.unheld.insert(path.clone(), oid);
            }
        }
        plan.files.push(Back {
            version: self.repository.version(held)?,
            path: path.into(),
            replaces: there.is_some(),
            held,
            former: there,
        });
        Ok(())
    }

    /// Whether every folder above is there; those that are not will be made.
    fn has_its_folder(&mut self, path: &Path) -> Result<bool> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in above.into_iter().rev().skip(1) {
            let there = match self.folders.get(folder) {
                Some(there) => *there,
                None => match mend::look(self.root, folder)? {
                    None => false,
                    Some(meta) if meta.kind == FileKind::Folder => true,
                    Some(meta) => return Err(in_the_way(folder, meta.kind, "a folder")),
                },
            };
            self.folders.insert(folder.to_path_buf(), there);
            if !there {
                // Nor is anything below it.
                let below = path.ancestors().skip(1);
                for missing in below.take_while(|at| *at != folder) {
                    self.folders.insert(missing.to_path_buf(), false);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn missing_folders(&self) -> Vec<PathBuf> {
        let missing = self.folders.iter().filter(|(_, there)| !**there);
        missing.map(|(folder, _)| folder.clone()).collect()
    }
}

fn in_the_way(path: &Path, is: FileKind, should: &str) -> Error {
    Error::failed(format!(
        "there is {} now where {should} would have to be:",
        is.described()
    ))
    .at(path)
    .hint("move it away first; nothing was changed")
}

/// So many files are named.
const NAMED: usize = 10;

/// Refuses what would put something into the trash that is nowhere else.
fn refuse_unheld(
    home: &Home,
    repository: &Repository,
    commit: &git2::Commit,
    meant: &Meant,
    mut unheld: BTreeMap<PathBuf, Oid>,
    context: &Context,
) -> Result<()> {
    // On a branch without a commit, those count that the named one comes from.
    let tip = repository.tip()?.unwrap_or_else(|| commit.clone());
    let session = Path::new(SESSIONS).join(meant.id.as_str());
    let whole = RelPath::default();
    let name = name_at_tip(home, repository, &tip, &meant.id)?;
    let mut seen = BTreeSet::new();
    Follow::new(repository, &whole).back(tip.id(), &name, context.stop, &mut |visited| {
        let new = visited.here.filter(|held| seen.insert(held.oid));
        if let Some(held) = new.filter(|held| held.is_folder()) {
            let mut known = Vec::new();
            for (path, oid) in &unheld {
                let rel = path.strip_prefix(&session).unwrap_or(path);
                let there = repository.held(held.oid, rel)?;
                if there.is_some_and(|there| there.oid == *oid) {
                    known.push(path.clone());
                }
            }
            for path in known {
                unheld.remove(&path);
            }
        }
        Ok(!unheld.is_empty())
    })?;
    if unheld.is_empty() {
        return Ok(());
    }
    let count = unheld.len() as u64;
    let mut error = Error::failed(format!(
        "{} what no commit holds, so nothing was changed",
        human::plural(count, "file holds", "files hold")
    ));
    for path in unheld.keys().take(NAMED) {
        error = error.hint(human::path(path));
    }
    if unheld.len() > NAMED {
        error = error.hint(format!(
            "and {} more",
            human::count((unheld.len() - NAMED) as u64)
        ));
    }
    Err(error.hint(format!(
        "`wbhome commit {}` first; or --force, which puts them into the trash",
        human::argument(meant.id.as_str())
    )))
}

/// How many files on the disk the commit does not have.
fn stays(
    root: &Dir,
    session: &Path,
    rel: &Path,
    coming: &BTreeSet<PathBuf>,
    context: &Context,
) -> Result<u64> {
    let folder = session.join(rel);
    let Ok(dir) = root.open_beneath(&folder) else {
        return Ok(0);
    };
    let tree = disk::walk(&dir, &|_, entry| entry.name == ".git", context.stop)?;
    let files = tree
        .entries()
        .filter(|(_, entry)| matches!(entry.meta.kind, FileKind::File | FileKind::Symlink))
        .filter(|(path, _)| !coming.contains(&folder.join(path)));
    Ok(files.count() as u64)
}

/// A session that comes back is in the index again: with the entry that it has, or that the commit has.
///
/// One whose folder is there and that the index does not know may have been renamed by hand: `wbhome index` recognizes that
/// as long as nobody has made an entry for it.
fn index_again(
    home: &Home,
    repository: &Repository,
    commit: &git2::Commit,
    name: &str,
    plan: &mut Plan,
) {
    if plan.files.is_empty() {
        return;
    }
    let index = match IndexFile::ready(home) {
        Ok(index) => index,
        Err(error) => {
            plan.left.push(format!("index.json: {error}"));
            return;
        }
    };
    match index.find(plan.session.as_str()).map(Entry::status) {
        Some(Status::Removed | Status::Missing) => plan.indexed = true,
        Some(_) => {}
        None if disk::exists(&home.session(&plan.session)) => {}
        None => {
            plan.indexed = true;
            let held = repository.held(commit.tree_id(), Path::new(mend::INDEX));
            let content = held.ok().flatten().filter(|held| held.is_blob());
            let content = content.and_then(|held| repository.content(held.oid).ok());
            let former = content.and_then(|content| Index::parse(&content).ok());
            let former = former.and_then(|index| index.find(name).cloned());
            let mut entry = former.unwrap_or_else(|| Entry::new(&plan.session));
            entry.set_id(&plan.session);
            entry.set_status(&Status::Active);
            entry.unset("removed_at");
            plan.entry = Some(entry);
        }
    }
}

/// The command that brings a file of a session back from a commit, the last one unless `at` names it: `path` is below the
/// home.
pub fn command(path: &Path, at: Option<&str>) -> Option<String> {
    let within = path.strip_prefix(SESSIONS).ok()?;
    // A name that can not be typed can not be shown either.
    within
        .to_str()
        .filter(|text| human::escape(text) == *text)?;
    let at = at.map(|at| format!(" --at {at}")).unwrap_or_default();
    Some(format!(
        "wbhome restore {} --from git{at}",
        human::quoted(within)
    ))
}
