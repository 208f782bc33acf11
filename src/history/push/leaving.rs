//! What would leave with a push: the commits that the remote does not have, and each version of a file that they
//! bring. What a later commit has removed leaves too, so it is looked at.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use git2::{ErrorCode, ObjectType, Oid, Sort};
use rayon::prelude::*;
use serde::Serialize;

use super::super::repository::{Repository, torn};
use super::target::{Target, command};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Total, human};
use crate::history::said::said;
use crate::secrets::{Allowed, Match, Rules};

/// Larger versions of a file can not be looked at in the memory that a machine surely has; no host takes them either.
const LARGEST: usize = 512 << 20;

/// A secret in what would leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// Which part of the commit it stands in.
    pub part: Part,
    /// The file, below the home; none for what the commit itself says. A name that holds a secret is cut off there.
    #[serde(flatten)]
    pub path: Option<WirePath>,
    /// The oldest commit that brings it.
    pub commit: String,
    /// What was found.
    #[serde(flatten)]
    pub found: Match,
}

/// A part of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// What a file holds.
    Content,
    /// The name of a file.
    Name,
    /// The message.
    Message,
    /// Author, committer and what else stands before the message.
    Header,
}

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// Versions of files.
    pub files: u64,
    /// In order of the commits, oldest first; each secret once a file.
    pub leaks: Vec<Leak>,
    /// Findings that a person has called harmless.
    pub allowed: u64,
}

/// The commits that the remote is not known to have, oldest first.
///
/// # Errors
/// A repository that does not hold all of its history; a remote that has commits which the branch has not.
pub(super) fn commits(repository: &Repository, tip: Oid, target: &Target) -> Result<Vec<Oid>> {
    let git = &repository.git;
    if git.is_shallow() {
        return Err(incomplete(
            repository,
            "the repository is a shallow clone, so what would leave can not be seen:",
        ));
    }
    if Some(tip) == target.known {
        return Ok(Vec::new());
    }
    let fail = |e| unread(repository, "the history", e);
    let mut walk = git.revwalk().map_err(fail)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)
        .map_err(fail)?;
    walk.push(tip).map_err(fail)?;
    if let Some(known) = target.known {
        walk.hide(known).map_err(fail)?;
    }
    let commits = walk.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    if let Some(known) = target.known
        && !commits.is_empty()
        && !git.graph_descendant_of(tip, known).map_err(fail)?
    {
        return Err(Error::failed(format!(
            "{} has commits that the home has not:",
            target.shown()
        ))
        .at(repository.dir())
        .hint(format!(
            "take them in, while no agent is at work: {} pull --rebase",
            command(repository)
        )));
    }
    Ok(commits)
}

fn incomplete(repository: &Repository, what: &str) -> Error {
    Error::failed(what).at(repository.dir()).hint(format!(
        "fetch the rest: {} fetch --unshallow, or --refetch for a partial clone",
        command(repository)
    ))
}

/// An object that can not be read: what can not be looked at does not leave.
fn unread(repository: &Repository, what: &str, error: git2::Error) -> Error {
    match error.code() {
        ErrorCode::NotFound => incomplete(
            repository,
            "the repository lacks a part of its history (a partial clone, or torn), so what would leave can not be seen:",
        )
        .because(said(error)),
        _ => torn(repository.dir(), what, error),
    }
}

/// A version of a file that a commit brings.
struct File {
    /// Its place among the commits.
    commit: usize,
    path: Vec<u8>,
    blob: Oid,
    /// Whether no older commit of these brings a file of that name.
    is_new_name: bool,
}

/// Looks at all that the commits bring.
///
/// # Errors
/// What can not be read, or is too large to be looked at; an interruption.
pub(super) fn look(
    repository: &Repository,
    commits: &[Oid],
    rules: &Rules,
    allowed: &Allowed,
    context: &Context,
) -> Result<Looked> {
    let files = brought(repository, commits, context)?;
    let total = Total {
        items: (files.len() + commits.len()) as u64,
        bytes: 0,
    };
    context.progress.stage("looking for secrets", total);
    let look = Look {
        repository,
        commits,
        rules,
        context,
    };
    let found = look.all(&files);
    context.progress.finish();
    let mut found = found?;
    found.sort_by(|a, b| a.place().cmp(&b.place()));
    let mut looked = Looked {
        files: files.len() as u64,
        ..Looked::default()
    };
    let mut told = HashSet::new();
    for Found {
        part, path, leak, ..
    } in found
    {
        if allowed.allows(&leak.found) {
            looked.allowed += 1;
        } else if told.insert((part, path, leak.found.digest.clone())) {
            looked.leaks.push(leak);
        }
    }
    Ok(looked)
}

/// What of the commits none of their parents has in the same place.
fn brought(repository: &Repository, commits: &[Oid], context: &Context) -> Result<Vec<File>> {
    let git = &repository.git;
    let fail = |e| unread(repository, "a commit", e);
    let (mut files, mut names, mut versions) = (Vec::new(), HashSet::new(), HashSet::new());
    for (at, oid) in commits.iter().enumerate() {
        context.stop.check()?;
        let commit = git.find_commit(*oid).map_err(fail)?;
        let parents = commit
            .parents()
            .map(|parent| parent.tree_id())
            .collect::<Vec<_>>();
        if parents.len() != commit.parent_count() {
            return Err(incomplete(repository, "a commit lacks its parent:"));
        }
        let mut folders = vec![(Vec::new(), commit.tree_id(), parents)];
        while let Some((folder, tree, before)) = folders.pop() {
            if before.contains(&tree) {
                continue;
            }
            let tree = git.find_tree(tree).map_err(fail)?;
            let before = before.iter().map(|oid| git.find_tree(*oid));
            let before = before.collect::<Result<Vec<_>, _>>().map_err(fail)?;
            for entry in &tree {
                let name = entry.name_bytes();
                let former: Vec<_> = before
                    .iter()
                    .filter_map(|tree| tree.get_name_bytes(name))
                    .collect();
                if former.iter().any(|former| former.id() == entry.id()) {
                    continue;
                }
                let mut path: Vec<u8> = folder.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
                match entry.kind() {
                    Some(ObjectType::Tree) => {
                        let former = former
                            .iter()
                            .filter(|former| former.kind() == Some(ObjectType::Tree))
                            .map(git2::TreeEntry::id);
                        folders.push((path, entry.id(), former.collect()));
                    }
                    // What a rule says may hang on the name: the same content is another file elsewhere.
                    Some(ObjectType::Blob) if versions.insert((entry.id(), path.clone())) => {
                        files.push(File {
                            commit: at,
                            is_new_name: names.insert(path.clone()),
                            blob: entry.id(),
                            path,
                        });
                    }
                    // Known already; or a commit of another repository, of which only the name leaves.
                    _ => {}
                }
            }
        }
    }
    Ok(files)
}

/// A finding, before it is known whether it is told.
struct Found {
    commit: usize,
    part: Part,
    /// As it is in git.
    path: Vec<u8>,
    leak: Leak,
}

impl Found {
    fn place(&self) -> (usize, Part, &[u8], u64, u64) {
        let found = &self.leak.found;
        (self.commit, self.part, &self.path, found.line, found.column)
    }
}

struct Look<'a> {
    repository: &'a Repository,
    commits: &'a [Oid],
    rules: &'a Rules,
    context: &'a Context<'a>,
}

/// So many files a thread takes at a time.
const SHARE: usize = 32;

impl Look<'_> {
    fn all(&self, files: &[File]) -> Result<Vec<Found>> {
        let next = AtomicUsize::new(0);
        let dir = self.repository.dir();
        let (stop, progress) = (self.context.stop, self.context.progress);
        let (rules, commits) = (self.rules, self.commits);
        // libgit2's repository belongs to one thread: each opens its own.
        let found: Result<Vec<Vec<Found>>, Failure> = (0..rayon::current_num_threads())
            .into_par_iter()
            .map(|_| {
                let git = git2::Repository::open(dir).map_err(Failure::Git)?;
                let odb = git.odb().map_err(Failure::Git)?;
                let mut found = Vec::new();
                loop {
                    let from = next.fetch_add(SHARE, Ordering::Relaxed);
                    let share = files.iter().skip(from).take(SHARE);
                    if share.len() == 0 {
                        return Ok(found);
                    }
                    for file in share {
                        stop.check().map_err(Failure::Other)?;
                        in_file(rules, commits, &odb, file, &mut found)?;
                        progress.advance(1, 0);
                    }
                }
            })
            .collect();
        let mut found: Vec<Found> = found
            .map_err(|failure| match failure {
                Failure::Git(error) => unread(self.repository, "a file", error),
                Failure::Other(error) => error,
            })?
            .into_iter()
            .flatten()
            .collect();
        for (at, oid) in self.commits.iter().enumerate() {
            stop.check()?;
            let commit = self.repository.git.find_commit(*oid);
            let commit = commit.map_err(|e| unread(self.repository, "a commit", e))?;
            let parts = [
                (Part::Message, commit.message_raw_bytes()),
                (Part::Header, commit.raw_header_bytes()),
            ];
            for (part, text) in parts {
                let matches = self.rules.scan(Path::new(""), text);
                found.extend(matches.into_iter().map(|found| Found {
                    commit: at,
                    part,
                    path: Vec::new(),
                    leak: Leak {
                        part,
                        path: None,
                        commit: oid.to_string(),
                        found,
                    },
                }));
            }
            progress.advance(1, 0);
        }
        Ok(found)
    }
}

enum Failure {
    Git(git2::Error),
    Other(Error),
}

fn in_file(
    rules: &Rules,
    commits: &[Oid],
    odb: &git2::Odb<'_>,
    file: &File,
    found: &mut Vec<Found>,
) -> Result<(), Failure> {
    let path = Path::new(OsStr::from_bytes(&file.path));
    let (size, _) = odb.read_header(file.blob).map_err(Failure::Git)?;
    if size > LARGEST {
        return Err(Failure::Other(
            Error::failed(format!(
                "a version of {} has {}, which is too much to be looked at for secrets",
                human::path(path),
                human::size(size as u64)
            ))
            .hint("it would have to be taken out of the history: docs/history.md"),
        ));
    }
    let content = odb.read(file.blob).map_err(Failure::Git)?;
    let in_content = rules.scan(path, content.data());
    if in_content.is_empty() && !file.is_new_name {
        return Ok(());
    }
    let in_name = rules.scan(Path::new(""), &file.path);
    let shown = match in_name.first() {
        Some(first) => PathBuf::from(OsStr::from_bytes(&first.cut(&file.path))),
        None => path.to_path_buf(),
    };
    let tell = |part, found: Match, into: &mut Vec<Found>| {
        into.push(Found {
            commit: file.commit,
            part,
            path: file.path.clone(),
            leak: Leak {
                part,
                path: Some(shown.clone().into()),
                commit: commits[file.commit].to_string(),
                found,
            },
        });
    };
    for one in in_content {
        tell(Part::Content, one, found);
    }
    if file.is_new_name {
        for one in in_name {
            tell(Part::Name, one, found);
        }
    }
    Ok(())
}
