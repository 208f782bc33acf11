//! What a commit holds: trees and blobs, found by the bytes of their names.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, ObjectType, Oid, Tree};
use serde::Serialize;

use super::Repository;
use super::repository::{short_name, torn};
use crate::base::{Error, Result, human};
use crate::disk::Meta;

/// A file's mode in a tree.
pub(super) const FILE: i32 = 0o100_644;
/// The same, with the bits to run it.
pub(super) const EXECUTABLE: i32 = 0o100_755;
/// A symbolic link: its blob is the target.
pub(super) const LINK: i32 = 0o120_000;
/// A folder.
const FOLDER: i32 = 0o040_000;

/// Something that a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub oid: Oid,
    pub mode: i32,
}

impl Held {
    pub fn is_folder(self) -> bool {
        self.mode == FOLDER
    }

    /// The mode of the file that it becomes on the disk: as that of the one whose place it takes, since who may read a
    /// file does not change with what it holds, but for the bits to run it.
    pub fn mode_on_disk(self, former: Option<&Meta>) -> u32 {
        let mode = former.map_or(0o600, |meta| meta.mode & 0o7777);
        match (self.mode, mode & 0o100 != 0) {
            (EXECUTABLE, false) => mode | 0o100,
            (EXECUTABLE, true) => mode,
            _ => mode & !0o111,
        }
    }

    /// Whether it has a content: a link to a commit of another repository has none here.
    pub fn is_blob(self) -> bool {
        matches!(self.mode, FILE | EXECUTABLE | LINK | 0o100_664)
    }
}

/// One content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The name of its blob: what `git hash-object` says of it.
    pub blob: String,
    /// Its length.
    pub bytes: u64,
    /// What it is.
    pub kind: VersionKind,
}

/// What a file is to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionKind {
    /// A plain file.
    File,
    /// A file that may be run.
    Executable,
    /// A symbolic link.
    Link,
}

impl VersionKind {
    pub(super) fn of(mode: i32) -> VersionKind {
        match mode {
            LINK => VersionKind::Link,
            EXECUTABLE => VersionKind::Executable,
            _ => VersionKind::File,
        }
    }

    /// The mode that stands in a tree.
    pub(super) fn mode(self) -> i32 {
        match self {
            VersionKind::File => FILE,
            VersionKind::Executable => EXECUTABLE,
            VersionKind::Link => LINK,
        }
    }
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It holds something else, or became something else.
    Changed,
    /// It is not there any more.
    Deleted,
}

impl ChangeKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::Added => "added",
            ChangeKind::Changed => "changed",
            ChangeKind::Deleted => "deleted",
        }
    }

    /// The sign for it.
    pub fn sign(self) -> char {
        match self {
            ChangeKind::Added => '+',
            ChangeKind::Changed => '~',
            ChangeKind::Deleted => '-',
        }
    }
}

impl Repository {
    /// The last commit; `None` before the first.
    pub(super) fn tip(&self) -> Result<Option<Commit<'_>>> {
        match self.git.head() {
            Ok(head) => {
                let commit = head.peel_to_commit();
                commit.map(Some).map_err(|e| torn(self.dir(), "HEAD", e))
            }
            // A branch whose ref was lost is told from one that has no commit yet.
            Err(error) if error.code() == ErrorCode::UnbornBranch => self.branch().map(|_| None),
            Err(error) => Err(torn(self.dir(), "HEAD", error)),
        }
    }

    /// Like [`Repository::tip`], where there has to be a commit.
    pub(super) fn expect_tip(&self) -> Result<Commit<'_>> {
        self.tip()?.ok_or_else(|| self.no_tip())
    }

    /// The branch has no commit. Others may: then it is a matter of which one is meant.
    pub(super) fn no_tip(&self) -> Error {
        let others = self.branches();
        if others.is_empty() {
            return Error::failed("the repository has no commit yet:")
                .at(self.dir())
                .hint("`wbhome commit` makes the first");
        }
        let own = self.branch().map(|branch| branch.name).unwrap_or_default();
        let own = short_name(&own);
        Error::failed(format!(
            "the branch {} has no commit yet:",
            human::escape(own)
        ))
        .at(self.dir())
        .hint(format!(
            "these have: {}; name one in the place of REV, or as --at",
            human::escape(&others.join(", "))
        ))
    }

    /// The names of the branches that have commits.
    pub(super) fn branches(&self) -> Vec<String> {
        let branches = self.git.branches(Some(git2::BranchType::Local));
        let branches = branches.into_iter().flatten().flatten();
        let names = branches.filter_map(|(branch, _)| {
            branch.get().peel_to_commit().ok()?;
            let name = branch.name_bytes().ok()?;
            Some(String::from_utf8_lossy(name).into_owned())
        });
        names.collect()
    }

    pub(super) fn commit(&self, oid: Oid) -> Result<Commit<'_>> {
        let found = self.git.find_commit(oid);
        found.map_err(|e| torn(self.dir(), &format!("the commit {oid}"), e))
    }

    pub(super) fn tree(&self, oid: Oid) -> Result<Tree<'_>> {
        let found = self.git.find_tree(oid);
        found.map_err(|e| torn(self.dir(), &format!("the tree {oid}"), e))
    }

    /// What a tree holds at a path.
    pub(super) fn held(&self, tree: Oid, path: &Path) -> Result<Option<Held>> {
        let mut at = Held {
            oid: tree,
            mode: FOLDER,
        };
        for name in path {
            if !at.is_folder() {
                return Ok(None);
            }
            match self.tree(at.oid)?.get_name_bytes(name.as_bytes()) {
                Some(entry) => {
                    at = Held {
                        oid: entry.id(),
                        mode: entry.filemode(),
                    }
                }
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Every file below something that a tree holds, by its path below that; a file itself as the empty path.
    pub(super) fn files(&self, held: Option<Held>) -> Result<BTreeMap<PathBuf, Held>> {
        let mut files = BTreeMap::new();
        let mut todo: Vec<(PathBuf, Held)> = held
            .map(|held| (PathBuf::new(), held))
            .into_iter()
            .collect();
        while let Some((path, held)) = todo.pop() {
            if !held.is_folder() {
                files.insert(path, held);
                continue;
            }
            for entry in self.tree(held.oid)?.iter() {
                let name = std::ffi::OsStr::from_bytes(entry.name_bytes());
                let held = Held {
                    oid: entry.id(),
                    mode: entry.filemode(),
                };
                todo.push((path.join(name), held));
            }
        }
        Ok(files)
    }

    /// The content of a blob.
    pub(super) fn content(&self, oid: Oid) -> Result<Vec<u8>> {
        let found = self.git.find_blob(oid);
        let blob = found.map_err(|e| torn(self.dir(), &format!("the blob {oid}"), e))?;
        Ok(blob.content().to_vec())
    }

    /// What a blob is, without its content.
    pub(super) fn version(&self, held: Held) -> Result<Version> {
        let header = self.git.odb().and_then(|odb| odb.read_header(held.oid));
        let bytes = match header {
            Ok((bytes, ObjectType::Blob)) => bytes as u64,
            // A commit of another repository, which is not here.
            _ if !held.is_blob() => 0,
            Ok(_) => 0,
            Err(error) => {
                let what = format!("the blob {}", held.oid);
                return Err(torn(self.dir(), &what, error));
            }
        };
        Ok(Version {
            blob: held.oid.to_string(),
            bytes,
            kind: VersionKind::of(held.mode),
        })
    }

    /// As many digits of a commit's name as tell it from all others.
    pub(super) fn short(&self, oid: Oid) -> String {
        let object = self.git.find_object(oid, None);
        let short = object.and_then(|object| object.short_id());
        match short {
            Ok(short) => String::from_utf8_lossy(&short).into_owned(),
            Err(_) => oid.to_string(),
        }
    }
}

/// The newest content of a file that any commit before the last one, or it, holds and that `fits`.
///
/// # Errors
/// Commits and trees that can not be read.
pub fn newest_that(
    repository: &Repository,
    path: &Path,
    fits: impl Fn(&[u8]) -> bool,
) -> Result<Option<Vec<u8>>> {
    let Some(tip) = repository.tip()? else {
        return Ok(None);
    };
    let mut looked = None;
    for id in repository.walk(tip.id())? {
        let commit = repository.commit(id)?;
        let Some(held) = repository.held(commit.tree_id(), path)? else {
            continue;
        };
        if !held.is_blob() || held.mode == LINK || looked.replace(held.oid) == Some(held.oid) {
            continue;
        }
        let content = repository.content(held.oid)?;
        if fits(&content) {
            return Ok(Some(content));
        }
    }
    Ok(None)
}
