//! Looking at the home beside git's index: what is as it was, what has to be read, what has gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use git2::IndexEntry;

use super::{Outcome, Request, Unread};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::history::left_out::{Left, LeftOut, Why, own_excludes};
use crate::history::message::Counted;
use crate::history::read::Job;
use crate::history::repository::{Branch, Repository};
use crate::history::select::{Scope, Selection, select};
use crate::history::staging::{SKIP_WORKTREE, Staging};
use crate::home::{Home, Index, Status};

/// What a commit would look at.
#[derive(Debug)]
pub struct Plan {
    pub(super) scope: Scope,
    pub(super) message: Option<String>,
    pub(super) max_file: u64,
    pub(super) branch: Branch,
    pub(super) staging: Staging,
    pub(super) jobs: Jobs,
    /// Folders that have a `.git` of their own.
    pub(super) nested: Vec<Vec<u8>>,
    pub(super) left: LeftOut,
    pub(super) left_before: LeftOut,
    pub(super) unreadable: Vec<Unread>,
}

#[derive(Default)]
pub(super) struct Jobs {
    /// To be read.
    pub read: Vec<Job>,
    /// Entries of the index that stay as they are.
    pub kept: Vec<usize>,
    /// Entries whose file is not there any more, or is left out from now on.
    pub gone: Vec<usize>,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} to read, {} kept, {} gone",
            self.read.len(),
            self.kept.len(),
            self.gone.len()
        )
    }
}

/// Looks at the home beside the index.
///
/// # Errors
/// As [`Repository::branch`]; an index that can not be read; a home whose `sessions` is not there.
pub fn plan(
    home: &Home,
    repository: &Repository,
    request: &Request,
    context: &Context,
) -> Result<Plan> {
    let scope = Scope::of(&request.sessions);
    let branch = repository.branch()?;
    let staging = Staging::read(repository)?;
    let root = home.dir()?;
    let left_before = LeftOut::read(repository);
    let sorting = Sorting {
        staging: &staging,
        left_before: &left_before,
        max_file: request.max_file,
        sorted: Mutex::new(Sorted::of(&staging)),
    };
    let exclude = own_excludes(repository);
    let found = |path, meta| sorting.put(path, &meta);
    let selection = select(&root, &scope, &exclude, &found, context.stop)?;
    let sorted = sorting.sorted.into_inner().unwrap_or_default();
    refuse_empty(home, &root, &staging)?;
    // What lies outside of the scope is not looked at, and stays as it was.
    let left = left_before.0.iter().filter(|(path, _)| !scope.holds(path));
    let mut plan = Plan {
        message: request.message.clone(),
        max_file: request.max_file,
        branch,
        jobs: Jobs::default(),
        nested: Vec::new(),
        left: LeftOut(
            left.map(|(path, left)| (path.clone(), left.clone()))
                .collect(),
        ),
        left_before,
        unreadable: selection
            .unreadable
            .iter()
            .map(|(path, why)| unread(path, why))
            .collect(),
        scope,
        staging,
    };
    plan.settle(&root, selection, sorted);
    Ok(plan)
}

pub(super) fn unread(path: &Path, why: &str) -> Unread {
    Unread {
        path: path.to_path_buf().into(),
        why: why.to_owned(),
    }
}

pub(super) fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// A disk that is not mounted leaves an empty folder, and an empty folder is not the end of all sessions.
fn refuse_empty(home: &Home, root: &Dir, staging: &Staging) -> Result<()> {
    let sessions = root.open_beneath(Path::new("sessions")).and_then(|dir| {
        let names = dir.names()?;
        let is_session = |(name, _): &(std::ffi::OsString, FileKind)| {
            dir.stat(name)
                .is_ok_and(|meta| meta.kind == FileKind::Folder)
        };
        Ok(names.iter().any(is_session))
    });
    if sessions.map_err(|e| Error::io("can not list", "sessions", e))? {
        return Ok(());
    }
    let committed = |id: &str| {
        let folder = format!("sessions/{id}/").into_bytes();
        staging
            .entries
            .iter()
            .any(|entry| entry.path.starts_with(&folder))
    };
    let lost = match Index::read(home) {
        Ok(index) => index
            .entries()
            .filter(|entry| entry.status() == Status::Active)
            .filter(|entry| entry.session().is_ok_and(|id| committed(id.as_str())))
            .count(),
        // Which of them are meant to be gone is not known.
        Err(_) => staging
            .entries
            .iter()
            .filter(|entry| entry.path.starts_with(b"sessions/"))
            .count()
            .min(1),
    };
    match lost {
        0 => Ok(()),
        n => Err(Error::failed(format!(
            "the folder of the sessions is empty, and {} should be in it; is its disk mounted?",
            human::plural(n as u64, "session at least", "sessions")
        ))
        .at("sessions")
        .hint("nothing was recorded as removed")
        .hint("if they are gone for good: wbhome index, and then wbhome commit")),
    }
}

impl Plan {
    /// Whether there is nothing to read and nothing gone: then nothing has changed.
    pub(super) fn is_settled(&self) -> bool {
        self.jobs.read.is_empty() && self.jobs.gone.is_empty()
    }

    /// Puts together what the walk has found and what the index has beside it.
    fn settle(&mut self, root: &Dir, selection: Selection, sorted: Sorted) {
        let Selection {
            refused,
            special,
            nested,
            unreadable,
        } = selection;
        let Sorted { met, read, left } = sorted;
        self.nested = nested;
        self.jobs.read = read;
        self.left.0.extend(left);
        for path in refused {
            self.leave_out_unseen(root, path, Why::Refused);
        }
        for path in special {
            self.leave_out_unseen(root, path, Why::Special);
        }
        for (at, met) in met.into_iter().enumerate() {
            match met {
                Met::Clean => self.jobs.kept.push(at),
                Met::Left => self.jobs.gone.push(at),
                Met::ToRead => {}
                Met::Nowhere if self.scope.holds(&self.staging.entries[at].path) => {
                    self.not_met(root, at, &unreadable);
                }
                Met::Nowhere => {}
            }
        }
        self.jobs.read.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    }

    /// An entry that the walk has not come by.
    fn not_met(&mut self, root: &Dir, at: usize, unreadable: &[(PathBuf, String)]) {
        let entry = &self.staging.entries[at];
        let path = as_path(&entry.path);
        let hidden = unreadable
            .iter()
            .any(|(folder, _)| path.starts_with(folder));
        if hidden || entry.flags_extended & SKIP_WORKTREE != 0 {
            self.jobs.kept.push(at);
            return;
        }
        // It may be there and ignored: what git tracks it does not ignore.
        match find(root, path) {
            Ok(Some(meta)) if matches!(meta.kind, FileKind::File | FileKind::Symlink) => {
                match tracked(&self.staging, entry, &meta, self.max_file) {
                    What::Clean => self.jobs.kept.push(at),
                    What::Left(left) => {
                        self.left.0.insert(entry.path.clone(), left);
                        self.jobs.gone.push(at);
                    }
                    What::ToRead => self.jobs.read.push(Job {
                        path: entry.path.clone(),
                        tracked: Some(at),
                        size: meta.size,
                    }),
                }
            }
            Ok(_) => self.jobs.gone.push(at),
            Err(error) => {
                self.unreadable.push(unread(path, &human::io(&error)));
                self.jobs.kept.push(at);
            }
        }
    }

    fn leave_out_unseen(&mut self, root: &Dir, path: Vec<u8>, why: Why) {
        if let Ok(Some(meta)) = find(root, as_path(&path)) {
            self.left.0.insert(path, Left::new(why, &meta));
        }
    }

    /// What it says before anything was read.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            commit: None,
            subject: None,
            sessions: Vec::new(),
            files: Counted::default(),
            held: self.jobs.kept.len() as u64,
            left_out: Vec::new(),
            nested: self
                .nested
                .iter()
                .map(|path| as_path(path).to_path_buf().into())
                .collect(),
            unread: self.unreadable.clone(),
            consolidated: None,
            not_consolidated: None,
        }
    }
}

/// What is to be done with a file.
enum What {
    /// Nothing: it is as the index says.
    Clean,
    ToRead,
    Left(Left),
}

/// What the walk has found of an entry of the index.
#[derive(Clone, Copy)]
enum Met {
    Nowhere,
    Clean,
    ToRead,
    Left,
}

/// What the walk has found so far.
#[derive(Default)]
struct Sorted {
    /// Of each entry of the index.
    met: Vec<Met>,
    read: Vec<Job>,
    left: Vec<(Vec<u8>, Left)>,
}

impl Sorted {
    fn of(staging: &Staging) -> Self {
        Sorted {
            met: vec![Met::Nowhere; staging.entries.len()],
            ..Sorted::default()
        }
    }
}

/// Holds each file beside the index in the moment in which it is found, so that of one that is clean nothing is kept.
struct Sorting<'a> {
    staging: &'a Staging,
    left_before: &'a LeftOut,
    max_file: u64,
    sorted: Mutex<Sorted>,
}

impl Sorting<'_> {
    fn put(&self, path: Vec<u8>, meta: &Meta) {
        let at = self.staging.find(&path);
        let what = match at {
            Some(at) => tracked(self.staging, &self.staging.entries[at], meta, self.max_file),
            None => self.untracked(&path, meta),
        };
        let Ok(mut sorted) = self.sorted.lock() else {
            return;
        };
        let met = match what {
            What::Clean => Met::Clean,
            What::Left(left) => {
                sorted.left.push((path, left));
                Met::Left
            }
            What::ToRead => {
                sorted.read.push(Job {
                    path,
                    tracked: at,
                    size: meta.size,
                });
                Met::ToRead
            }
        };
        if let Some(at) = at {
            sorted.met[at] = met;
        }
    }

    fn untracked(&self, path: &[u8], meta: &Meta) -> What {
        if is_too_large(meta, self.max_file) {
            return What::Left(Left::new(Why::TooLarge, meta));
        }
        let known = self.left_before.0.get(path);
        let known = known.filter(|left| left.fits(meta) && left.why != Why::TooLarge);
        known.map_or(What::ToRead, |known| What::Left(known.clone()))
    }
}

fn tracked(staging: &Staging, entry: &IndexEntry, meta: &Meta, max_file: u64) -> What {
    if is_too_large(meta, max_file) {
        return What::Left(Left::new(Why::TooLarge, meta));
    }
    match staging.is_clean(entry, meta) && meta.size <= max_file {
        true => What::Clean,
        false => What::ToRead,
    }
}

fn is_too_large(meta: &Meta, max_file: u64) -> bool {
    meta.kind == FileKind::File && meta.size > max_file
}

/// What stands under a path; `None` when nothing does, or something on the way is no folder.
///
/// # Errors
/// When that can not be known: then it is not gone.
fn find(root: &Dir, path: &Path) -> io::Result<Option<disk::Meta>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let found = root.open_beneath(parent).and_then(|dir| dir.find(name));
    match found {
        Err(error) if disk::is_nowhere(&error) => Ok(None),
        found => found,
    }
}
