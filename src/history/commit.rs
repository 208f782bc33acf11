//! A commit: what changed is found by the index, read, packed, and only then named by index and branch.
//!
//! The order is what makes a kill harmless: objects, then the index, then the ref. Objects that nothing names cost
//! space and nothing else; an index ahead of its branch is a staged change, which the next commit takes.

mod author;
mod look;

use std::collections::HashSet;

use git2::{IndexEntry, ObjectType, Oid};
use serde::Serialize;

pub use author::author;
pub use look::{Plan, plan};
use look::{as_path, unread};

use super::left_out::{self, Left, LeftOut, Why};
use super::message::{Counted, SessionChange, Summary, Tally};
use super::pack::{self, Encoder, Writer};
use super::read::{Job, Reading, Seen, Sink};
use super::repository::{Branch, OWN, Repository, short_name, torn};
use super::said::said;
use super::select::Scope;
use super::staging::{IndexLock, Staging};
use super::tree::{Differ, Forest, Leaf};
use super::{consolidate, moving};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result, Total, failpoint};
use crate::disk::{self, Dir};
use crate::home::{Home, LockedHome, SessionId};

/// What is to be committed, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// These sessions alone; all that belongs to the history when there is none.
    pub sessions: Vec<SessionId>,
    /// The whole message, instead of one that says what changed.
    pub message: Option<String>,
    /// Bytes above which a file is left out.
    pub max_file: u64,
    /// How long to wait for a git command that holds the index.
    pub wait: std::time::Duration,
}

/// Something that is not in the commit because it could not be read; what was committed of it before stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why, for a person.
    pub why: String,
}

/// Something that is not in the commit because it does not belong there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutFile {
    /// Below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: Why,
    /// Its bytes.
    pub bytes: u64,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Its name.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The branch that it is on.
    pub branch: String,
    /// New objects.
    pub objects: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The commit; none when nothing has changed, and in a dry run.
    pub commit: Option<Made>,
    /// The first line that the message has or would have.
    pub subject: Option<String>,
    /// The sessions that have changed.
    pub sessions: Vec<SessionChange>,
    /// All files that have changed.
    pub files: Counted,
    /// Files that the history holds now.
    pub held: u64,
    /// What is left out.
    pub left_out: Vec<LeftOutFile>,
    /// Folders with a `.git` of their own: taken in as plain files, without it.
    pub nested: Vec<WirePath>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What was done so that the repository stays small.
    pub consolidated: Option<consolidate::Consolidated>,
    /// What could not be done to keep it small; the commit stands.
    pub not_consolidated: Option<String>,
}

impl Outcome {
    /// Whether all was done, as an exit code.
    pub fn exit(&self) -> Exit {
        match self.unread.is_empty() && self.not_consolidated.is_none() {
            true => Exit::Done,
            false => Exit::Partial,
        }
    }
}

/// What was read.
struct Ready {
    /// Entries that the index gets, in its order.
    new: Vec<IndexEntry>,
    /// Entries that it loses, or has anew in `new`.
    former: HashSet<usize>,
}

/// Reads what there is to read.
fn read(
    home: &Home,
    repository: &Repository,
    plan: &mut Plan,
    pack: Option<&Sink<'_>>,
    context: &Context,
) -> Result<Ready> {
    let root = home.dir()?;
    let base = base_tree(repository, &plan.branch)?;
    let jobs = std::mem::take(&mut plan.jobs.read);
    let total = Total {
        items: jobs.len() as u64,
        bytes: jobs.iter().map(|job| job.size).sum(),
    };
    context.progress.stage("committing", total);
    let reading = Reading {
        root: &root,
        staging: &plan.staging,
        max_file: plan.max_file,
        known: known(repository, &plan.staging, base)?,
        pack,
        context,
    };
    let seen = reading.all(&jobs);
    context.progress.finish();
    let (mut new, mut former) = (Vec::with_capacity(jobs.len()), HashSet::new());
    for (job, seen) in jobs.into_iter().zip(seen?) {
        let Job { path, tracked, .. } = job;
        match seen {
            Seen::Text(entry) => {
                former.extend(tracked);
                new.push(IndexEntry { path, ..entry });
            }
            Seen::Left(left) => {
                plan.left.0.insert(path, left);
                former.extend(tracked);
            }
            Seen::Gone => former.extend(tracked),
            Seen::Restless => {
                plan.unreadable.push(unread(
                    as_path(&path),
                    "it changed each time that it was read",
                ));
                plan.jobs.kept.extend(tracked);
            }
            Seen::Unreadable(why) => {
                plan.unreadable.push(unread(as_path(&path), &why));
                plan.jobs.kept.extend(tracked);
            }
        }
    }
    former.extend(&plan.jobs.gone);
    Ok(Ready { new, former })
}

/// All files of the scope as they are to be committed, in the order of git's index.
fn leaves<'p>(plan: &'p Plan, new: &'p [IndexEntry]) -> Vec<Leaf<'p>> {
    let mut leaves = Vec::with_capacity(plan.jobs.kept.len() + new.len());
    let kept = plan.jobs.kept.iter();
    leaves.extend(kept.map(|at| Leaf::of(&plan.staging.entries[*at])));
    leaves.extend(new.iter().map(Leaf::of));
    leaves.sort_unstable_by(|a, b| a.path.cmp(b.path));
    leaves
}

fn plant<'p>(
    repository: &'p Repository,
    plan: &Plan,
    leaves: &'p [Leaf<'p>],
) -> Result<Forest<'p>> {
    let base = base_tree(repository, &plan.branch)?;
    Forest::plant(&repository.git, base, &plan.scope.prefixes(), leaves)
        .map_err(|e| torn(repository.dir(), "the last commit", e))
}

fn base_tree(repository: &Repository, branch: &Branch) -> Result<Option<Oid>> {
    let Some(tip) = branch.tip else {
        return Ok(None);
    };
    let commit = repository.git.find_commit(tip);
    let commit = commit.map_err(|e| torn(repository.dir(), "the last commit", e))?;
    Ok(Some(commit.tree_id()))
}

/// The objects that need not be written again: those of the index, or, where somebody has removed it, of the last
/// commit.
fn known(repository: &Repository, staging: &Staging, base: Option<Oid>) -> Result<HashSet<Oid>> {
    if !staging.entries.is_empty() {
        return Ok(staging.entries.iter().map(|entry| entry.id).collect());
    }
    let mut known = HashSet::new();
    if let Some(base) = base {
        let tree = repository.git.find_tree(base).and_then(|tree| {
            tree.walk(git2::TreeWalkMode::PreOrder, |_, entry| {
                known.insert(entry.id());
                git2::TreeWalkResult::Ok
            })
        });
        tree.map_err(|e| torn(repository.dir(), "the last commit", e))?;
    }
    Ok(known)
}

fn tell(outcome: &mut Outcome, plan: &Plan, leaves: &[Leaf], tally: Tally) -> Summary {
    let summary = tally.summary();
    outcome.sessions.clone_from(&summary.sessions);
    outcome.files = summary.files;
    outcome.held = leaves.len() as u64;
    outcome.unread.clone_from(&plan.unreadable);
    summary
}

fn tell_left(outcome: &mut Outcome, left: &LeftOut) {
    let file = |(path, left): (&Vec<u8>, &Left)| LeftOutFile {
        path: as_path(path).to_path_buf().into(),
        why: left.why,
        bytes: left.size,
    };
    outcome.left_out = left.0.iter().map(file).collect();
}

/// What a commit would do. Reads what has changed, and writes nothing.
///
/// # Errors
/// As [`apply`], but for what concerns writing.
pub fn preview(
    home: &Home,
    repository: &Repository,
    mut plan: Plan,
    context: &Context,
) -> Result<Outcome> {
    let mut outcome = plan.outcome();
    let ready = read(home, repository, &mut plan, None, context)?;
    let leaves = leaves(&plan, &ready.new);
    let mut tally = Tally::default();
    plant(repository, &plan, &leaves)?
        .differ(
            &mut |change| tally.count(&change),
            &mut |_| Ok(()),
            &mut |_, _| Ok(()),
        )
        .map_err(|e| differs(repository, e))?;
    let summary = tell(&mut outcome, &plan, &leaves, tally);
    if summary.files.total() > 0 {
        outcome.subject = Some(subject_of(plan.message.as_deref(), &summary));
    }
    tell_left(&mut outcome, &plan.left);
    Ok(outcome)
}

fn subject_of(message: Option<&str>, summary: &Summary) -> String {
    match message {
        Some(message) => message.lines().next().unwrap_or_default().to_owned(),
        None => summary.subject(),
    }
}

fn differs(repository: &Repository, error: Differ) -> Error {
    match error {
        Differ::Git(error) => torn(repository.dir(), "the last commit", error),
        Differ::Missing(error) => Error::failed("an object that the commit needs can not be read:")
            .at(repository.dir())
            .because(said(error))
            .hint(
                "`wbhome check` and git fsck say which; docs/disaster.md says how one comes back",
            ),
        Differ::Io(error) => Error::io("can not write to the repository", repository.dir(), error),
    }
}

/// Commits. Everything is on the disk when it returns.
///
/// # Errors
/// As [`plan`]; somebody else's `index.lock`; what can not be written: then nothing has been committed.
pub fn apply(
    home: &LockedHome,
    repository: &Repository,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let mut outcome = {
        let _lock = IndexLock::take(repository, home, request.wait, context)?;
        failpoint::hit("commit.locked");
        locked(home, repository, request, context)?
    };
    if outcome.commit.is_some() && outcome.not_consolidated.is_none() {
        // The commit stands, whatever becomes of this.
        match consolidate::when_due(home, repository, context) {
            Ok(done) => outcome.consolidated = done,
            Err(error) => outcome.not_consolidated = Some(error.to_string()),
        }
    }
    Ok(outcome)
}

/// The commit itself, while nobody else writes the index.
fn locked(
    home: &LockedHome,
    repository: &Repository,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let io = |e| Error::io("can not write to the repository", repository.dir(), e);
    let packs = consolidate::folder_of_packs(repository)?;
    tidy(home, repository, &packs).map_err(io)?;
    // What stays there is of no harm.
    let _ = left_out::keep_edits(home, repository, context);
    let mut plan = plan(home, repository, request, context)?;
    moving::settle(repository, &plan.branch)?;
    let mut outcome = plan.outcome();
    if plan.is_settled() && base_is_index(repository, &plan)? {
        let nested = empty_nested(&plan, &[]);
        if let Err(error) = plan.left.write(repository, &plan.left_before, &nested) {
            outcome.not_consolidated = Some(error.to_string());
        }
        tell_left(&mut outcome, &plan.left);
        return Ok(outcome);
    }
    let sink = Sink::new(Writer::begin(&packs).map_err(io)?);
    let Ready { new, former } = read(home, repository, &mut plan, Some(&sink), context)?;
    // Nothing of the index lies elsewhere, so that all of it is committed.
    let scope = &plan.scope;
    let is_held = |entry: &IndexEntry| scope.holds(&entry.path);
    let whole = *scope == Scope::Home && plan.staging.entries.iter().all(is_held);
    let leaves = leaves(&plan, &new);
    let forest = plant(repository, &plan, &leaves)?;
    let (mut tally, mut encoder) = (Tally::default(), Encoder::new());
    let odb = repository.git.odb();
    let odb = odb.map_err(|e| torn(repository.dir(), "the objects", e))?;
    forest
        .differ(
            &mut |change| tally.count(&change),
            &mut |oid| match whole && !sink.has(oid)? {
                true => odb.read_header(oid).map(|_| ()).map_err(Differ::Missing),
                false => Ok(()),
            },
            &mut |oid, bytes| sink.put(&mut encoder, oid, ObjectType::Tree, bytes),
        )
        .map_err(|e| differs(repository, e))?;
    let summary = tell(&mut outcome, &plan, &leaves, tally);
    let commit = match forest.is_base() || summary.files.total() == 0 {
        true => None,
        false => {
            let message = match &plan.message {
                Some(message) => message.clone(),
                None => summary.message(),
            };
            let text =
                author::object(repository, forest.oid(), plan.branch.tip, &message, context)?;
            let oid = Oid::hash_object(ObjectType::Commit, &text)
                .map_err(|e| Error::failed("can not name the commit:").because(said(e)))?;
            sink.put(&mut encoder, oid, ObjectType::Commit, &text)
                .map_err(io)?;
            Some((oid, subject_of(plan.message.as_deref(), &summary)))
        }
    };
    let nested = empty_nested(&plan, &leaves);
    let trees = match whole {
        true => forest.cached(),
        false => None,
    };
    drop(forest);
    drop(leaves);
    context.stop.check()?;
    let (mut objects, mut bytes, mut folded) = (0, 0, None);
    if commit.is_some() {
        (objects, bytes) = sink.size().map_err(io)?;
        let small = consolidate::small(&packs).ok().flatten();
        let small = small.map(|small| small.fold(&packs, &sink));
        let small = small.transpose().map_err(io)?;
        let name = sink
            .into_writer()
            .map_err(io)?
            .finish(&keep(home))
            .map_err(io)?;
        folded = Some((name, small));
        repository
            .git
            .odb()
            .and_then(|odb| odb.refresh())
            .map_err(|e| torn(repository.dir(), "the objects", e))?;
        failpoint::hit("commit.packed");
    }
    let Plan {
        staging,
        left,
        left_before,
        branch,
        scope,
        ..
    } = plan;
    if !new.is_empty() || !former.is_empty() {
        let all_read = scope == Scope::Home;
        staging.write(repository, &former, &new, trees.as_deref(), all_read)?;
    }
    failpoint::hit("commit.indexed");
    if let Some((oid, subject)) = commit {
        moving::to(repository, &branch, oid, &subject, request.wait, context)?;
        failpoint::hit("commit.named");
        if let Some((name, small)) = folded {
            // What stays is freed and folded by a later commit.
            let _ = pack::release(&packs, &name);
            let _ = small.map(|small| small.remove(&packs, &name));
        }
        outcome.subject = Some(subject.clone());
        outcome.commit = Some(Made {
            id: oid.to_string(),
            subject,
            branch: short_name(&branch.name).to_owned(),
            objects,
            bytes,
        });
    }
    // What git is told to pass over is no part of the commit, and does not hold it up.
    if let Err(error) = left.write(repository, &left_before, &nested) {
        outcome.not_consolidated = Some(error.to_string());
    }
    tell_left(&mut outcome, &left);
    Ok(outcome)
}

/// Whether what the index holds is what the last commit holds, when nothing has to be read.
fn base_is_index(repository: &Repository, plan: &Plan) -> Result<bool> {
    Ok(plant(repository, plan, &leaves(plan, &[]))?.is_base())
}

/// Folders with a `.git` of their own of which nothing is held: git would name them as untracked.
fn empty_nested(plan: &Plan, leaves: &[Leaf]) -> Vec<Vec<u8>> {
    if plan.nested.is_empty() {
        return Vec::new();
    }
    let kept = plan.jobs.kept.iter();
    let kept = kept.map(|at| plan.staging.entries[*at].path.as_slice());
    let mut held: Vec<&[u8]> = kept.chain(leaves.iter().map(|leaf| leaf.path)).collect();
    held.sort_unstable();
    let is_empty = |folder: &&Vec<u8>| {
        let within = [folder, &b"/"[..]].concat();
        let first = held.partition_point(|path| *path < within.as_slice());
        !held
            .get(first)
            .is_some_and(|path| path.starts_with(&within))
    };
    plan.nested.iter().filter(is_empty).cloned().collect()
}

/// How the file begins that keeps a pack of ours until the branch names what is in it.
fn keep(home: &LockedHome) -> String {
    format!("wbhome commit, home {}\n", home.id())
}

/// What a killed run of ours has left in the git dir, but for its locks.
fn tidy(home: &LockedHome, repository: &Repository, packs: &Dir) -> std::io::Result<()> {
    pack::tidy(packs, &keep(home))?;
    let own = repository.dir().join(OWN);
    for draft in ["index", "index.lock"] {
        let _ = disk::remove_file(&own.join(draft));
    }
    match disk::is_folder(&own) {
        true => pack::tidy(&Dir::open(&own)?, &keep(home)),
        false => Ok(()),
    }
}
