//! `wbhome diff`: what changed in a session since a commit, up to the disk or another commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use git2::{ObjectType, Oid};
use serde::Serialize;

use super::Repository;
use super::committed::{ChangeKind, EXECUTABLE, FILE, Held, LINK, Version, VersionKind};
use super::left_out::own_excludes;
use super::names::{Meant, SESSIONS, meant, name_at};
use super::read::is_binary;
use super::revision::Told;
use super::said::said;
use super::select::{Scope, select};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{Config, Home, SessionId};

mod lines;
mod patch;
mod readable;
mod shown;

pub use patch::patch;
pub use shown::{Form, Hunk, Line, LineKind};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// `SESSION` or `SESSION/PATH`.
    pub what: String,
    /// Since when: a commit or a moment; the last commit if none.
    pub from: Option<String>,
    /// Up to when; the disk if none.
    pub to: Option<String>,
    /// The lines as they are stored, for a patch.
    pub raw: bool,
}

/// What differs.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// The session.
    pub session: SessionId,
    /// What in it, if not the whole.
    pub within: Option<String>,
    /// The older side.
    pub from: Told,
    /// The newer side; none for the disk.
    pub to: Option<Told>,
    /// What the session was called on the older side, where that differs.
    pub was: Option<String>,
    /// Every file that differs, by name.
    pub files: Vec<Differing>,
    /// What on the disk could not be read, and why.
    pub unreadable: Vec<Unreadable>,
}

/// A file that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Differing {
    /// Which, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// What became of it.
    pub change: ChangeKind,
    /// The older version.
    pub before: Option<Version>,
    /// The newer version.
    pub after: Option<Version>,
    /// How its content is shown.
    pub form: Form,
    /// What has to be said of that.
    pub note: Option<String>,
    /// What differs in it, from top to bottom.
    pub hunks: Vec<Hunk>,
}

/// Something that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct Unreadable {
    /// Which, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

/// No larger file is shown: only that it differs.
const LIMIT: u64 = 64 << 20;

/// One side of a comparison: what it has of each path.
type Side = BTreeMap<PathBuf, Held>;

/// Compares.
///
/// # Errors
/// A session, commit or moment that is not known; objects that can not be read.
pub fn diff(home: &Home, request: &Request, context: &Context) -> Result<Diff> {
    let repository = Repository::expect(home)?;
    let meant = meant(home, &repository, &request.what)?;
    let now = context.clock.zoned();
    let from = repository.revision(request.from.as_deref(), &now)?;
    let to = match &request.to {
        Some(to) => Some(repository.revision(Some(to), &now)?),
        None => None,
    };
    let name = name_at(home, &repository, &from, &meant.id, context.stop)?;
    let mut unreadable = Vec::new();
    let old = in_commit(&repository, &from, &name, &meant)?;
    let new = match &to {
        Some(to) => {
            let name = name_at(home, &repository, to, &meant.id, context.stop)?;
            in_commit(&repository, to, &name, &meant)?
        }
        None => on_disk(home, &repository, &meant, &old, &mut unreadable, context)?,
    };
    refuse_nothing(home, &meant, &old, &new, to.is_none())?;
    let differ = Differ {
        repository: &repository,
        folder: to.is_none().then(|| home.session(&meant.id)),
        raw: request.raw,
    };
    let paths: BTreeSet<&PathBuf> = old.keys().chain(new.keys()).collect();
    let mut files = Vec::new();
    for path in paths {
        context.stop.check()?;
        let (before, after) = (old.get(path).copied(), new.get(path).copied());
        if before == after {
            continue;
        }
        let is_link = |held: Held| held.mode == LINK;
        match (before, after) {
            // No patch makes a link of a file: as git does, one goes and the other comes.
            (Some(old), Some(new)) if request.raw && is_link(old) != is_link(new) => {
                files.push(differ.file(path, before, None)?);
                files.push(differ.file(path, None, after)?);
            }
            _ => files.push(differ.file(path, before, after)?),
        }
    }
    Ok(Diff {
        within: (!meant.rel.is_empty()).then(|| meant.rel.as_path().to_string_lossy().into_owned()),
        from: repository.told(&from),
        to: to.map(|to| repository.told(&to)),
        was: Some(name).filter(|name| name != meant.id.as_str()),
        session: meant.id,
        files,
        unreadable,
    })
}

/// Neither side has it: it was misspelt, or it is in the archive.
fn refuse_nothing(home: &Home, meant: &Meant, old: &Side, new: &Side, disk: bool) -> Result<()> {
    let id = human::name(meant.id.as_str());
    if disk && !disk::exists(&home.session(&meant.id)) && disk::exists(&home.archive_of(&meant.id))
    {
        return Err(Error::failed(format!(
            "`{id}` is archived, so the disk has nothing to compare with"
        ))
        .hint("name two commits: wbhome diff SESSION REV REV"));
    }
    if old.is_empty() && new.is_empty() && !meant.rel.is_empty() {
        return Err(Error::failed(format!(
            "neither side has {} of {id}",
            human::path(meant.rel.as_path())
        ))
        .hint(format!(
            "`wbhome history {}` shows when it was there",
            human::argument(Path::new(meant.id.as_str()).join(meant.rel.as_path()))
        )));
    }
    Ok(())
}

/// The files of the session, or of what is meant in it, that a commit holds: by their paths below the session.
fn in_commit(
    repository: &Repository,
    commit: &git2::Commit,
    name: &str,
    meant: &Meant,
) -> Result<Side> {
    let rel = meant.rel.as_path();
    let path = Path::new(SESSIONS).join(name).join(rel);
    let files = repository.files(repository.held(commit.tree_id(), &path)?)?;
    Ok(below(files, rel))
}

/// Paths that begin at the session.
fn below(files: Side, rel: &Path) -> Side {
    let named = |path: &Path| match path.as_os_str().is_empty() {
        true => rel.to_path_buf(),
        false => rel.join(path),
    };
    let blobs = files.into_iter().filter(|(_, held)| held.is_blob());
    blobs
        .map(|(path, held)| {
            // Of the bits of a mode those alone count that the disk is asked for.
            let mode = VersionKind::of(held.mode).mode();
            (named(&path), Held { mode, ..held })
        })
        .collect()
}

/// The files on the disk that count: those that the other side has, and new ones that a commit would take.
fn on_disk(
    home: &Home,
    repository: &Repository,
    meant: &Meant,
    old: &Side,
    unreadable: &mut Vec<Unreadable>,
    context: &Context,
) -> Result<Side> {
    let session = home.session(&meant.id);
    let mut side = Side::new();
    let Ok(root) = Dir::open(&session) else {
        return Ok(side);
    };
    let rel = meant.rel.as_path();
    let look = Look {
        root: &root,
        taken: taken(home, repository, meant, context)?,
        max_file: Config::load(home)?.git.max_file,
    };
    let tree = disk::walk(&root, &|_, entry| entry.name == ".git", context.stop)?;
    for (path, why) in tree.folders.iter().flat_map(|f| f.unreadable.iter()) {
        unreadable.push(Unreadable {
            path: path.clone().into(),
            why: why.clone(),
        });
    }
    for (path, entry) in tree.entries().filter(|(path, _)| path.starts_with(rel)) {
        context.stop.check()?;
        match look.file(&path, &entry.meta, old.get(&path)) {
            Ok(held) => side.extend(held.map(|held| (path, held))),
            Err(error) => {
                unreadable.push(Unreadable {
                    path: path.clone().into(),
                    why: human::io(&error),
                });
                // What can not be read is not told to be gone.
                side.extend(old.get(&path).map(|held| (path, *held)));
            }
        }
    }
    Ok(side)
}

/// What of the session a commit would look at, below the session.
fn taken(
    home: &Home,
    repository: &Repository,
    meant: &Meant,
    context: &Context,
) -> Result<BTreeSet<PathBuf>> {
    let root = home.dir()?;
    let scope = Scope::of(std::slice::from_ref(&meant.id));
    let session = Path::new(SESSIONS).join(meant.id.as_str());
    let taken = Mutex::new(BTreeSet::new());
    let found = |path: Vec<u8>, _| {
        let path = PathBuf::from(OsString::from_vec(path));
        if let (Ok(within), Ok(mut taken)) = (path.strip_prefix(&session), taken.lock()) {
            taken.insert(within.to_path_buf());
        }
    };
    let exclude = own_excludes(repository);
    select(&root, &scope, &exclude, &found, context.stop)?;
    Ok(taken.into_inner().unwrap_or_default())
}

/// A look at the files of a session.
struct Look<'a> {
    root: &'a Dir,
    /// What a commit would look at.
    taken: BTreeSet<PathBuf>,
    max_file: u64,
}

impl Look<'_> {
    /// What git would say of a file; `None` of what no commit would take.
    fn file(
        &self,
        path: &Path,
        meta: &Meta,
        known: Option<&Held>,
    ) -> std::io::Result<Option<Held>> {
        let mode = match meta.kind {
            FileKind::Symlink => LINK,
            FileKind::File if meta.mode & 0o100 != 0 => EXECUTABLE,
            FileKind::File => FILE,
            _ => return Ok(None),
        };
        if known.is_none() && !self.is_taken(path, meta)? {
            return Ok(None);
        }
        let content = read(self.root, path, meta)?;
        let oid = Oid::hash_object(ObjectType::Blob, &content)
            .map_err(|e| std::io::Error::other(said(e)))?;
        Ok(Some(Held { oid, mode }))
    }

    /// Whether a commit would take a new file.
    fn is_taken(&self, path: &Path, meta: &Meta) -> std::io::Result<bool> {
        if !self.taken.contains(path) || meta.size > self.max_file {
            return Ok(false);
        }
        Ok(meta.kind == FileKind::Symlink || !is_binary(&read(self.root, path, meta)?))
    }
}

/// The content of a file, or the target of a link.
pub(super) fn read(root: &Dir, path: &Path, meta: &Meta) -> std::io::Result<Vec<u8>> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default();
    let dir = root.open_beneath(parent)?;
    match meta.kind {
        FileKind::Symlink => dir.read_link(name),
        _ => {
            let content = disk::read_small_in(&dir, name, u64::MAX)?;
            content.ok_or_else(|| std::io::ErrorKind::NotFound.into())
        }
    }
}

struct Differ<'a> {
    repository: &'a Repository,
    /// The session, where the newer side is the disk.
    folder: Option<PathBuf>,
    raw: bool,
}

impl Differ<'_> {
    fn file(&self, path: &Path, old: Option<Held>, new: Option<Held>) -> Result<Differing> {
        let content = |held: Option<Held>| held.map(|held| self.repository.content(held.oid));
        let before = old.map(|held| self.repository.version(held)).transpose()?;
        let (after, newer) = match (new, &self.folder) {
            (Some(held), Some(folder)) => {
                // It may have changed since it was looked at: what is shown is what is told.
                let content = present(folder, path)?;
                let oid = Oid::hash_object(ObjectType::Blob, &content);
                let version = Version {
                    blob: oid.unwrap_or(held.oid).to_string(),
                    bytes: content.len() as u64,
                    kind: VersionKind::of(held.mode),
                };
                (Some(version), Some(content))
            }
            (new, _) => (
                new.map(|held| self.repository.version(held)).transpose()?,
                content(new).transpose()?,
            ),
        };
        let larger = |version: &Option<Version>| version.as_ref().is_some_and(|v| v.bytes > LIMIT);
        let shown = match larger(&before) || larger(&after) {
            true => shown::Shown::too_large(),
            false => {
                let older = content(old).transpose()?;
                shown::show(path, older.as_deref(), newer.as_deref(), self.raw)?
            }
        };
        let mode = match (&before, &after) {
            (Some(before), Some(after)) if before.kind != after.kind => {
                Some(format!("{} → {}", word(before.kind), word(after.kind)))
            }
            _ => None,
        };
        Ok(Differing {
            path: path.to_path_buf().into(),
            change: match (&before, &after) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Changed,
            },
            before,
            after,
            form: shown.form,
            note: match (mode, shown.note) {
                (Some(mode), Some(note)) => Some(format!("{mode}; {note}")),
                (mode, note) => mode.or(note),
            },
            hunks: shown.hunks,
        })
    }
}

/// What a file of a session holds now.
fn present(session: &Path, path: &Path) -> Result<Vec<u8>> {
    let look = || {
        let root = Dir::open(session)?;
        let parent = root.open_beneath(path.parent().unwrap_or(Path::new("")))?;
        let meta = parent.stat(path.file_name().unwrap_or_default())?;
        read(&root, path, &meta)
    };
    look().map_err(|e| Error::io("can not read", session.join(path), e))
}

fn word(kind: VersionKind) -> &'static str {
    match kind {
        VersionKind::File => "a plain file",
        VersionKind::Executable => "executable",
        VersionKind::Link => "a symbolic link",
    }
}
