//! A repository that has outlived its home: what it holds that is newer than a backup, and a copy of it for the home
//! that takes its place.
//!
//! Nothing is written into it but by [`Surviving::lead_to`].

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Oid};
use jiff::Timestamp;

use super::Repository;
use super::committed::{Held, LINK};
use super::diff::read;
use super::names::SESSIONS;
use super::repository::{DOT_GIT, torn};
use super::revision::{Told, made};
use super::said::said;
use super::select::is_dot_git;
use super::whole::is_whole;
use crate::base::{Error, Result, Stop, human};
use crate::disk::{self, Dir, FileKind, Meta, NewFile, Stamp};
use crate::home::RelPath;

/// The repository.
#[derive(Debug)]
pub struct Surviving {
    repository: Repository,
    tip: Oid,
}

/// From when on a commit is newer.
#[derive(Clone, Debug)]
pub enum Cut {
    /// What does not come from this commit.
    Commit(String),
    /// What was made after this moment.
    Moment(Timestamp),
}

/// What became of a file that was to be laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaidOver {
    /// It holds what the commit holds now; whether something was there.
    Laid {
        /// Whether something else was there before.
        replaced: bool,
    },
    /// It held that already.
    Same,
    /// It was left, and why.
    Left(String),
}

impl Surviving {
    /// Opens a repository: a bare one, a `.git`, or the folder that it belongs to.
    ///
    /// # Errors
    /// What is none, is another user's, can not be read, or has no commit.
    pub fn open(path: &Path) -> Result<Surviving> {
        // As a bare one: the folder that it belongs to may be gone.
        let dir = git_dir(path)?;
        super::pipes::refuse_pipes(&dir)?;
        let git = git2::Repository::open_bare(&dir).map_err(|error| not_opened(path, error))?;
        let root = disk::real_path(path)?;
        let repository = Repository { git, root };
        let tip = repository.expect_tip()?.id();
        Ok(Surviving { repository, tip })
    }

    /// The git dir.
    pub fn dir(&self) -> &Path {
        self.repository.dir()
    }

    /// Its last commit.
    ///
    /// # Errors
    /// When it can not be read.
    pub fn tip(&self) -> Result<Told> {
        let commit = self.repository.commit(self.tip)?;
        Ok(self.repository.told(&commit))
    }

    /// Where the folder lies that it belongs to, when that is not beside it: what `core.worktree` says.
    pub fn works_for(&self) -> Option<PathBuf> {
        let config = self.repository.git.config().ok()?;
        config.get_path("core.worktree").ok()
    }

    /// Whether it holds a commit.
    pub fn has(&self, commit: &str) -> bool {
        Oid::from_str(commit).is_ok_and(|oid| self.repository.git.find_commit(oid).is_ok())
    }

    /// Every path that a newer commit has touched, and when the newest of them did.
    ///
    /// # Errors
    /// Commits and trees that can not be read; interruption.
    pub fn touched(&self, cut: &Cut, stop: &Stop) -> Result<BTreeMap<PathBuf, Timestamp>> {
        let git = &self.repository.git;
        let fail = |e| torn(self.dir(), "the history", e);
        let walk = || -> std::result::Result<Vec<Oid>, git2::Error> {
            let mut walk = git.revwalk()?;
            walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::TIME)?;
            walk.push(self.tip)?;
            if let Cut::Commit(commit) = cut {
                walk.hide(Oid::from_str(commit)?)?;
            }
            walk.collect()
        };
        let mut touched = BTreeMap::new();
        for oid in walk().map_err(fail)? {
            stop.check()?;
            let commit = self.repository.commit(oid)?;
            let at = made(&commit);
            if matches!(cut, Cut::Moment(moment) if at <= *moment) {
                continue;
            }
            let own = self.repository.tree(commit.tree_id())?;
            let before = match commit.parent(0) {
                Ok(parent) => Some(self.repository.tree(parent.tree_id())?),
                Err(error) if error.code() == ErrorCode::NotFound => None,
                Err(error) => return Err(fail(error)),
            };
            let diff = git
                .diff_tree_to_tree(before.as_ref(), Some(&own), None)
                .map_err(fail)?;
            for delta in diff.deltas() {
                for file in [delta.old_file(), delta.new_file()] {
                    if let Some(path) = file.path_bytes() {
                        let path = Path::new(OsStr::from_bytes(path)).to_path_buf();
                        // The first that is met is the newest.
                        touched.entry(path).or_insert(at);
                    }
                }
            }
        }
        Ok(touched)
    }

    /// Every file that the last commit holds below a path, or at it.
    ///
    /// # Errors
    /// Trees that can not be read.
    pub fn below(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let tree = self.repository.commit(self.tip)?.tree_id();
        let held = self.repository.held(tree, path)?;
        let files = self.repository.files(held)?.into_keys();
        let whole = |rel: PathBuf| match rel.as_os_str().is_empty() {
            true => path.to_path_buf(),
            false => path.join(rel),
        };
        Ok(files.map(whole).collect())
    }

    /// The names in `sessions/` of the last commit.
    ///
    /// # Errors
    /// Trees that can not be read.
    pub fn sessions(&self) -> Result<Vec<String>> {
        let tree = self.repository.commit(self.tip)?.tree_id();
        let Some(sessions) = self.repository.held(tree, Path::new(SESSIONS))? else {
            return Ok(Vec::new());
        };
        if !sessions.is_folder() {
            return Ok(Vec::new());
        }
        let tree = self.repository.tree(sessions.oid)?;
        let folders = tree.iter().filter(|entry| {
            let held = Held {
                oid: entry.id(),
                mode: entry.filemode(),
            };
            held.is_folder()
        });
        let names = folders.filter_map(|entry| {
            let name = std::str::from_utf8(entry.name_bytes()).ok()?;
            Some(name.to_owned())
        });
        Ok(names.collect())
    }

    /// When each path was last touched by any commit.
    ///
    /// # Errors
    /// As [`Surviving::touched`].
    pub fn last_touched(
        &self,
        paths: impl IntoIterator<Item = PathBuf>,
        stop: &Stop,
    ) -> Result<HashMap<PathBuf, Timestamp>> {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        if paths.is_empty() {
            return Ok(HashMap::new());
        }
        let mut all = self.touched(&Cut::Moment(Timestamp::MIN), stop)?;
        let found = paths.into_iter().filter_map(|path| all.remove_entry(&path));
        Ok(found.collect())
    }

    /// Whether the last commit holds a file or link at a path.
    ///
    /// # Errors
    /// Trees that can not be read.
    pub fn holds(&self, path: &Path) -> Result<bool> {
        let tree = self.repository.commit(self.tip)?.tree_id();
        let held = self.repository.held(tree, path)?;
        Ok(held.is_some_and(|held| !held.is_folder()))
    }

    /// Lays what the last commit holds at `path` into a home that nobody uses yet, with that time. What was there is
    /// gone then: it came out of a store, and is still there.
    ///
    /// # Errors
    /// What can not be written.
    pub fn lay(&self, path: &Path, root: &Dir, at: Timestamp) -> Result<LaidOver> {
        let left = |why: &str| Ok(LaidOver::Left(why.to_owned()));
        let is_git = |name: &OsStr| is_dot_git(name.as_bytes());
        if RelPath::new(path).is_err() || path.iter().any(is_git) || path.starts_with(".wbhome") {
            return left("such a name is not taken from a repository");
        }
        let tree = self.repository.commit(self.tip)?.tree_id();
        let Some(held) = self.repository.held(tree, path)? else {
            return left("the last commit does not hold it");
        };
        if !held.is_blob() {
            return left("a repository of its own, which the commit does not hold");
        }
        let content = match self.repository.content(held.oid) {
            Ok(content) => content,
            Err(error) => return left(&error.to_string()),
        };
        if path == Path::new("index.json") && !is_whole(path, &content) {
            return left("the index of the last commit can not be understood");
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        let fail = |e| Error::io("can not write", path, e);
        let above = match root.make_beneath(parent) {
            Ok(above) => above,
            Err(error) if disk::is_nowhere(&error) => {
                return left("something that is no folder is in the way");
            }
            Err(error) => return Err(fail(error)),
        };
        let folder = above.meta().map_err(fail)?;
        let there = above.find(name).map_err(fail)?;
        if let Some(there) = &there {
            if !matches!(there.kind, FileKind::File | FileKind::Symlink) {
                return left("something that is no file is in the way");
            }
            let same_kind = (there.kind == FileKind::Symlink) == (held.mode == LINK);
            let now = read(root, path, there).map_err(fail)?;
            let oid = Oid::hash_object(ObjectType::Blob, &now).ok();
            if same_kind && oid == Some(held.oid) {
                return Ok(LaidOver::Same);
            }
            if same_kind && is_whole(path, &now) && !is_whole(path, &content) {
                return left("the newer one that the last commit holds is damaged");
            }
        }
        let time = Stamp {
            seconds: at.as_second(),
            nanos: 0,
        };
        match held.mode {
            LINK => {
                if there.is_some() {
                    above.unlink(name).map_err(fail)?;
                }
                above
                    .symlink(&content, name)
                    .and_then(|()| above.set_time_of(name, time))
                    .map_err(fail)?;
            }
            _ => lay_file(&above, name, &content, held, there, &folder, time).map_err(fail)?,
        }
        let written = above
            .stat(name)
            .and_then(|meta| read(root, path, &meta))
            .map_err(fail)?;
        if written != content {
            return Err(fail(std::io::Error::other(
                "what was read back is not what was written",
            )));
        }
        // A folder in which nothing came or went is as old as it was.
        let folder_time = match there {
            Some(_) => folder.mtime,
            None => folder.mtime.max(time),
        };
        above.set_time(folder_time).map_err(fail)?;
        Ok(LaidOver::Laid {
            replaced: there.is_some(),
        })
    }

    /// Copies the repository to be `.git` in `root`, a folder that nobody uses yet: as it is, but that it belongs to
    /// that folder, and without what somebody held locked.
    ///
    /// # Errors
    /// What can not be read or written.
    pub fn copy_to(&self, root: &Dir, path: &Path, stop: &Stop) -> Result<()> {
        let from = self.dir();
        let fail = |e| Error::io("can not copy the repository to", path.join(DOT_GIT), e);
        let source = Dir::open(from).map_err(|e| Error::io("can not open", from, e))?;
        root.make(OsStr::new(DOT_GIT)).map_err(fail)?;
        let copy = root.open_beneath(Path::new(DOT_GIT)).map_err(fail)?;
        for (name, _) in source.names().map_err(fail)? {
            stop.check()?;
            let kind = source.stat(&name).map_err(fail)?.kind;
            let is_lock = Path::new(&name).extension().is_some_and(|e| e == "lock");
            let known = matches!(kind, FileKind::File | FileKind::Folder | FileKind::Symlink);
            if known && !is_lock {
                disk::duplicate_tree(&source, &name, &copy, &name, stop).map_err(fail)?;
            }
        }
        let told = |e| {
            Error::failed("the configuration of the repository can not be written:")
                .at(path.join(DOT_GIT))
                .because(said(e))
        };
        let config = path.join(DOT_GIT).join("config");
        let mut config = git2::Config::open(&config).map_err(told)?;
        config.set_bool("core.bare", false).map_err(told)?;
        match config.remove("core.worktree") {
            Err(error) if error.code() != ErrorCode::NotFound => return Err(told(error)),
            _ => {}
        }
        let mode = source.meta().map_err(fail)?.mode;
        copy.set_mode(mode | 0o700).map_err(fail)
    }

    /// Makes the repository, which lies elsewhere and stays there, belong to the folder `home`.
    ///
    /// # Errors
    /// What can not be written.
    pub fn lead_to(&self, home: &Path) -> Result<()> {
        let told = |e| {
            Error::failed("the configuration of the repository can not be written:")
                .at(self.dir())
                .because(said(e))
        };
        let Some(home) = home.to_str() else {
            return Err(Error::failed(
                "git can not be told of a work folder whose name is not UTF-8:",
            )
            .at(home));
        };
        let mut config = git2::Config::open(&self.dir().join("config")).map_err(told)?;
        config.set_bool("core.bare", false).map_err(told)?;
        config.set_str("core.worktree", home).map_err(told)
    }
}

/// The git dir that a person means: the folder itself, the `.git` in it, or what that names.
fn git_dir(path: &Path) -> Result<PathBuf> {
    let dot_git = path.join(DOT_GIT);
    let Some(found) = disk::stat(&dot_git)? else {
        return Ok(path.to_path_buf());
    };
    if found.kind != FileKind::File {
        return Ok(dot_git);
    }
    let named = disk::read_small(&dot_git, 8 << 10)?.unwrap_or_default();
    let named = named.strip_prefix(b"gitdir:").unwrap_or(&named);
    Ok(path.join(OsStr::from_bytes(named.trim_ascii())))
}

fn lay_file(
    above: &Dir,
    name: &OsStr,
    content: &[u8],
    held: Held,
    there: Option<Meta>,
    folder: &Meta,
    time: Stamp,
) -> std::io::Result<()> {
    let former = there.filter(|meta| meta.kind == FileKind::File);
    let mode = held.mode_on_disk(former.as_ref());
    let whose = former.as_ref().unwrap_or(folder);
    let owner = disk::is_root().then_some((whose.uid, whose.gid));
    let mut file = NewFile::create(above)?;
    file.file().write_all(content)?;
    disk::dress_file(file.file(), owner, mode, time)?;
    match there {
        None => file.publish(name),
        Some(_) => file.publish_over(name),
    }
}

fn not_opened(path: &Path, error: git2::Error) -> Error {
    match error.code() {
        ErrorCode::Owner => Error::failed("another user owns the repository, so it is not obeyed:")
            .at(path)
            .hint(format!(
                "if that is as it should be: git config --global --add safe.directory {}",
                human::quoted(path)
            )),
        ErrorCode::NotFound => Error::failed("there is no repository:")
            .at(path)
            .hint("name a bare one, a `.git`, or the folder that holds one"),
        _ => Error::failed("the repository can not be opened:")
            .at(path)
            .because(said(error))
            .hint("git fsck says more; without --git the home comes from the store alone"),
    }
}
