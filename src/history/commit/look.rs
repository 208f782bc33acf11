//! Looking at the home beside git's index: what is as it was, what has to be read, what has gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Outcome, Request, Unread};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind};
use crate::history::left_out::{Left, LeftOut, Why, own_excludes};
use crate::history::message::Counted;
use crate::history::read::Job;
use crate::history::repository::{Branch, Repository};
use crate::history::select::{Found, Scope, Selection, select};
use crate::history::staging::Staging;
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
    let scope = match request.sessions.as_slice() {
        [] => Scope::Home,
        ids => Scope::Sessions(ids.to_vec()),
    };
    let branch = repository.branch()?;
    let staging = Staging::read(repository)?;
    let root = home.dir()?;
    let selection = select(&root, &scope, &own_excludes(repository), context.stop)?;
    refuse_empty(home, &root, &staging)?;
    let left_before = LeftOut::read(repository);
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
    plan.sort(&root, selection)?;
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

/// What git's flags of an entry say of a file that is not there on purpose (sparse checkout).
const SKIP_WORKTREE: u16 = 1 << 14;

impl Plan {
    /// Whether there is nothing to read and nothing gone: then nothing has changed.
    pub(super) fn is_settled(&self) -> bool {
        self.jobs.read.is_empty() && self.jobs.gone.is_empty()
    }

    /// Merges what the index has with what the walk has found; both stand in the same order.
    fn sort(&mut self, root: &Dir, selection: Selection) -> Result<()> {
        let Selection {
            found,
            refused,
            special,
            nested,
            unreadable,
        } = selection;
        self.nested = nested;
        for path in refused {
            self.leave_out_unseen(root, path, Why::Refused);
        }
        for path in special {
            self.leave_out_unseen(root, path, Why::Special);
        }
        let mut found = found.into_iter().peekable();
        for at in 0..self.staging.entries.len() {
            let entry = &self.staging.entries[at];
            if !self.scope.holds(&entry.path) {
                continue;
            }
            while let Some(new) = found.next_if(|found| found.path < entry.path) {
                new_file(
                    &mut self.jobs,
                    &mut self.left,
                    &self.left_before,
                    self.max_file,
                    new,
                );
            }
            match found.next_if(|found| found.path == entry.path) {
                Some(file)
                    if self.staging.is_clean(entry, &file.meta)
                        && file.meta.size <= self.max_file =>
                {
                    self.jobs.kept.push(at);
                }
                Some(file) => self.jobs.tracked(&mut self.left, self.max_file, at, file),
                None => {
                    let path = as_path(&entry.path);
                    let hidden = unreadable
                        .iter()
                        .any(|(folder, _)| path.starts_with(folder));
                    if hidden || entry.flags_extended & SKIP_WORKTREE != 0 {
                        self.jobs.kept.push(at);
                        continue;
                    }
                    // It may be there and ignored: what git tracks it does not ignore.
                    match find(root, path) {
                        Ok(Some(meta))
                            if matches!(meta.kind, FileKind::File | FileKind::Symlink) =>
                        {
                            let file = Found {
                                path: entry.path.clone(),
                                meta,
                            };
                            match self.staging.is_clean(entry, &meta) && meta.size <= self.max_file
                            {
                                true => self.jobs.kept.push(at),
                                false => self.jobs.tracked(&mut self.left, self.max_file, at, file),
                            }
                        }
                        Ok(_) => self.jobs.gone.push(at),
                        Err(error) => {
                            self.unreadable.push(unread(path, &human::io(&error)));
                            self.jobs.kept.push(at);
                        }
                    }
                }
            }
        }
        for new in found {
            new_file(
                &mut self.jobs,
                &mut self.left,
                &self.left_before,
                self.max_file,
                new,
            );
        }
        Ok(())
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

impl Jobs {
    fn tracked(&mut self, left: &mut LeftOut, max_file: u64, at: usize, file: Found) {
        if file.meta.kind == FileKind::File && file.meta.size > max_file {
            left.0
                .insert(file.path, Left::new(Why::TooLarge, &file.meta));
            self.gone.push(at);
            return;
        }
        self.read.push(Job {
            path: file.path,
            tracked: Some(at),
            size: file.meta.size,
        });
    }
}

fn new_file(jobs: &mut Jobs, left: &mut LeftOut, before: &LeftOut, max_file: u64, file: Found) {
    if file.meta.kind == FileKind::File && file.meta.size > max_file {
        left.0
            .insert(file.path, Left::new(Why::TooLarge, &file.meta));
        return;
    }
    let known = before.0.get(&file.path);
    let known = known.filter(|left| left.fits(&file.meta) && left.why != Why::TooLarge);
    match known {
        Some(known) => {
            left.0.insert(file.path, known.clone());
        }
        None => jobs.read.push(Job {
            path: file.path,
            tracked: None,
            size: file.meta.size,
        }),
    }
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
