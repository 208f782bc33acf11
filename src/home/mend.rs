//! The steps by which things are put away, brought back and put right. They are written into the journal
//! before the first of them is done.
//!
//! Each step carries the facts that it was decided on, and looks at them again right before: what has changed
//! meanwhile is left as it is, and said. A step that has been done already does nothing. One that the system
//! refuses is told and left, so that a folder without permission does not lock a home for ever; nothing is
//! ever between two places but for the length of one rename.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::journal::below;
use super::trash::{self, Former, Mark, TRASH};
use super::{Entry, IndexFile, LockedHome, RelPath, SessionId, Status};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Kind, Result, Stop, failpoint, human};
use crate::disk::{self, Buffers, Dir, FileKind, Meta, Written};

/// A step. Paths are relative to the home, those in an act to its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Mend {
    /// Put something into an act of the trash.
    PutAway {
        /// What.
        path: ExactPath,
        /// The act.
        act: String,
        /// Where in the act.
        lies: ExactPath,
        /// What it was when that was decided.
        seen: Seen,
        /// Only if everything in it is in this, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_by: Option<ExactPath>,
    },
    /// Take something out of an act.
    BringBack {
        /// The act.
        act: String,
        /// Where in the act.
        lies: ExactPath,
        /// Where it belongs.
        path: ExactPath,
    },
    /// Copy a file or link to where nothing is.
    Copy {
        /// What.
        from: ExactPath,
        /// What it was when that was decided.
        seen: Seen,
        /// To where.
        path: ExactPath,
        /// What it takes the place of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<Instead>,
    },
    /// Make a folder where nothing is, with mode and times of another.
    Folder {
        /// The other.
        like: ExactPath,
        /// Where.
        path: ExactPath,
    },
    /// Remove a folder when it is empty.
    Prune {
        /// Which.
        path: ExactPath,
    },
    /// Set permission bits.
    Mode {
        /// Of what.
        path: ExactPath,
        /// What they are.
        before: u32,
        /// What they shall be.
        after: u32,
    },
    /// Point a link elsewhere; the former one goes into an act.
    Point {
        /// The link.
        path: ExactPath,
        /// The act.
        act: String,
        /// Where in the act.
        lies: ExactPath,
        /// What it was when that was decided.
        seen: Seen,
        /// To where.
        target: ExactPath,
    },
    /// Keep a copy of the index in an act.
    KeepIndex {
        /// The act.
        act: String,
    },
    /// The index becomes the one that an act holds; the present one is kept in another.
    IndexBack {
        /// The act that holds it.
        act: String,
        /// Where in that act.
        lies: ExactPath,
        /// The act for the present one.
        keep: String,
    },
    /// Sessions that are not there any more become tombstones in the index.
    Remove {
        /// What becomes the entry of a session that has none.
        entries: Vec<Map<String, Value>>,
        /// When.
        at: String,
    },
    /// Sessions that are tombstones get the status back that fits what is there.
    Return {
        /// What they were.
        entries: Vec<Former>,
    },
    /// Remove an act that has nothing left to be taken back.
    Close {
        /// Which.
        act: String,
    },
}

/// What goes into an act when something else takes its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instead {
    /// The act.
    pub act: String,
    /// Where in the act.
    pub lies: ExactPath,
    /// What it was when that was decided.
    pub seen: Seen,
}

/// What something was when a step was decided. Of a folder its number alone: what is in it may go on changing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    ino: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<(u64, i64, u32)>,
}

impl Seen {
    /// Of what `lstat` says.
    pub fn of(meta: &Meta) -> Seen {
        let state = (meta.size, meta.mtime.seconds, meta.mtime.nanos);
        Seen {
            ino: meta.ino,
            state: (meta.kind != FileKind::Folder).then_some(state),
        }
    }

    fn fits(&self, meta: &Meta) -> bool {
        *self == Seen::of(meta)
    }
}

/// What came of a step: a line for the person, if something is to be said.
type Said = Result<Option<String>>;

impl Mend {
    pub(super) fn needs_index(&self) -> bool {
        matches!(self, Mend::Remove { .. } | Mend::Return { .. })
    }

    /// Every path in it, to be checked before one of them is followed.
    pub(super) fn paths(&self) -> Vec<&Path> {
        match self {
            Mend::PutAway {
                path,
                act,
                lies,
                held_by,
                ..
            } => {
                let mut paths = vec![&**path, Path::new(act), &**lies];
                paths.extend(held_by.as_deref());
                paths
            }
            Mend::BringBack { act, lies, path } => vec![Path::new(act), &**lies, &**path],
            Mend::Copy {
                from,
                path,
                instead,
                ..
            } => {
                let mut paths = vec![&**from, &**path];
                if let Some(instead) = instead {
                    paths.extend([Path::new(&instead.act), &*instead.lies]);
                }
                paths
            }
            Mend::Folder { like, path } => vec![&**like, &**path],
            Mend::Prune { path } | Mend::Mode { path, .. } => vec![&**path],
            Mend::Point {
                path, act, lies, ..
            } => vec![&**path, Path::new(act), &**lies],
            Mend::KeepIndex { act } | Mend::Close { act } => vec![Path::new(act)],
            Mend::IndexBack { act, lies, keep } => {
                vec![Path::new(act), &**lies, Path::new(keep)]
            }
            Mend::Remove { .. } | Mend::Return { .. } => Vec::new(),
        }
    }

    /// Does the step. What the system refuses is told and left.
    ///
    /// # Errors
    /// Interruption, and an index that can not be written: the next command goes on from there.
    pub(super) fn done(&self, home: &LockedHome, context: &Context) -> Said {
        let root = Dir::open(home.root())
            .map_err(|e| Error::io("can not open the home", home.root(), e))?;
        let at = Place {
            home,
            root: &root,
            context,
        };
        let said = match self {
            Mend::PutAway {
                path,
                act,
                lies,
                seen,
                held_by,
            } => at.put_away(path, (act, lies), seen, held_by.as_deref()),
            Mend::BringBack { act, lies, path } => at.bring_back((act, lies), path),
            Mend::Copy {
                from,
                seen,
                path,
                instead,
            } => at.copy(from, seen, path, instead.as_ref()),
            Mend::Folder { like, path } => at.folder(like, path),
            Mend::Prune { path } => at.prune(path),
            Mend::Mode {
                path,
                before,
                after,
            } => at.mode(path, *before, *after),
            Mend::Point {
                path,
                act,
                lies,
                seen,
                target,
            } => at.point(path, (act, lies), seen, target),
            Mend::KeepIndex { act } => at.keep_index(act),
            Mend::IndexBack { act, lies, keep } => at.index_back((act, lies), keep),
            // An index that can not be written is no small matter: these two are tried again.
            Mend::Remove { entries, at: when } => return remove(home, entries, when),
            Mend::Return { entries } => return bring_entries_back(home, entries),
            Mend::Close { act } => trash::close(home, act).map(|_| None),
        };
        match said {
            Err(error) if error.kind() != Kind::Interrupted => Ok(Some(format!("left: {error}"))),
            said => said,
        }
    }
}

/// Where steps are done.
struct Place<'h> {
    home: &'h LockedHome,
    root: &'h Dir,
    context: &'h Context<'h>,
}

/// A name in an open folder.
type Named = (Dir, OsString);

impl Place<'_> {
    /// The folder that holds a path of the home and the name in it, when both are there.
    fn find(&self, path: &Path) -> Result<Option<(Named, Meta)>> {
        let fail = |e| Error::io("can not look at", path, e);
        let Some((dir, name)) = below(self.root, path).map_err(fail)? else {
            return Ok(None);
        };
        let meta = dir.find(&name).map_err(fail)?;
        Ok(meta.map(|meta| ((dir, name), meta)))
    }

    /// The folder that a path belongs into, made if it is missing.
    fn make_way(&self, path: &Path) -> Result<Named> {
        let fail = |e| Error::io("can not make the folder for", path, e);
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut at = self.root.open_beneath(Path::new("")).map_err(fail)?;
        for name in parent {
            let next = match at.open_beneath(Path::new(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    at.make(name).map_err(fail)?;
                    at.sync().map_err(fail)?;
                    at.open_beneath(Path::new(name))
                }
                next => next,
            };
            at = next.map_err(fail)?;
        }
        Ok((at, path.file_name().unwrap_or_default().to_owned()))
    }

    /// Renames something, never over what is there; makes that durable on both sides.
    fn rename(&self, from: &Named, to: &Named, path: &Path) -> Result<()> {
        from.0
            .rename(&from.1, &to.0, &to.1)
            .and_then(|()| to.0.sync())
            .and_then(|()| from.0.sync())
            .map_err(|e| Error::io("can not be moved:", path, e))
    }

    fn put_away(
        &self,
        path: &Path,
        to: (&str, &Path),
        seen: &Seen,
        held_by: Option<&Path>,
    ) -> Said {
        let Some((from, meta)) = self.find(path)? else {
            return Ok(None);
        };
        if !seen.fits(&meta) {
            return Ok(left(path, "it has changed meanwhile"));
        }
        if let Some(original) = held_by
            && !self.holds(original, &from, path)?
        {
            let why = format!("it is not all in {}", human::path(original));
            return Ok(left(path, why));
        }
        let to = self.make_way(&in_act(to.0, to.1))?;
        self.rename(&from, &to, path)?;
        failpoint::hit("mend.put-away");
        Ok(Some(format!("put {} into the trash", human::path(path))))
    }

    fn holds(&self, original: &Path, copy: &Named, path: &Path) -> Result<bool> {
        let Some((first, _)) = self.find(original)? else {
            return Ok(false);
        };
        let stop = self.context.stop;
        disk::holds_all((&first.0, &first.1), (&copy.0, &copy.1), stop).map_err(|e| {
            match stop.check() {
                Err(interrupted) => interrupted,
                Ok(()) => Error::io("can not be compared:", path, e),
            }
        })
    }

    fn bring_back(&self, from: (&str, &Path), path: &Path) -> Said {
        let Some((from, _)) = self.find(&in_act(from.0, from.1))? else {
            return Ok(None);
        };
        let to = self.make_way(path)?;
        self.rename(&from, &to, path)?;
        failpoint::hit("mend.brought-back");
        Ok(Some(format!("put {} back", human::path(path))))
    }

    fn copy(&self, from: &Path, seen: &Seen, path: &Path, instead: Option<&Instead>) -> Said {
        let Some((source, meta)) = self.find(from)? else {
            return Ok(None);
        };
        if !seen.fits(&meta) {
            return Ok(left(from, "it has changed meanwhile"));
        }
        let there = self.find(path)?;
        let replaced = match (&there, instead) {
            (None, _) => None,
            (Some((_, meta)), Some(instead)) if instead.seen.fits(meta) => Some(instead),
            // Copied already, or somebody else's.
            (Some(_), _) => return Ok(None),
        };
        let to = self.make_way(path)?;
        let publish = |make: &mut dyn FnMut() -> io::Result<()>| -> Result<()> {
            if let (Some((former, _)), Some(instead)) = (&there, replaced) {
                let kept = self.make_way(&in_act(&instead.act, &instead.lies))?;
                self.rename(former, &kept, path)?;
                failpoint::hit("mend.replaced");
            }
            make()
                .and_then(|()| to.0.sync())
                .map_err(|e| Error::io("can not write", path, e))
        };
        match meta.kind {
            FileKind::Symlink => {
                let fail = |e| Error::io("can not read", from, e);
                let target = source.0.read_link(&source.1).map_err(fail)?;
                publish(&mut || {
                    to.0.symlink(&target, &to.1)?;
                    to.0.set_time_of(&to.1, meta.mtime)
                })?;
            }
            _ => {
                let stop = self.context.stop;
                // Complete, read back and compared before it has a name.
                let mut copy = disk::duplicate(&source.0, &source.1, &to.0, stop)
                    .map_err(|e| copy_error(e, from, path))?;
                publish(&mut || copy.publish(&to.1))?;
            }
        }
        failpoint::hit("mend.copied");
        let (from, path) = (human::path(from), human::path(path));
        Ok(Some(format!("copied {from} to {path}")))
    }

    fn folder(&self, like: &Path, path: &Path) -> Said {
        let fail = |e| Error::io("can not make the folder", path, e);
        if self.find(path)?.is_some() {
            return Ok(None);
        }
        let Ok(model) = self.root.open_beneath(like) else {
            return Ok(None);
        };
        let meta = model.meta().map_err(fail)?;
        let (dir, name) = self.make_way(path)?;
        dir.make(&name)
            .and_then(|()| dir.open_beneath(Path::new(&name)))
            .and_then(|made| {
                if disk::is_root() {
                    made.set_owner(meta.uid, meta.gid)?;
                }
                made.set_mode(meta.mode)?;
                dir.sync()
            })
            .map_err(fail)?;
        Ok(None)
    }

    fn prune(&self, path: &Path) -> Said {
        let Some(((dir, name), meta)) = self.find(path)? else {
            return Ok(None);
        };
        if meta.kind == FileKind::Folder {
            // Fails, as it should, when something lies in it.
            let _ = dir.remove_folder(&name).and_then(|()| dir.sync());
        }
        Ok(None)
    }

    fn mode(&self, path: &Path, before: u32, after: u32) -> Said {
        let fail = |e| Error::io("can not set the mode of", path, e);
        let dir = self.root.open_beneath(path).map_err(fail)?;
        if dir.meta().map_err(fail)?.mode != before {
            return Ok(None);
        }
        dir.set_mode(after).map_err(fail)?;
        failpoint::hit("mend.mode-set");
        Ok(Some(format!("set mode {after:04o}")))
    }

    fn point(&self, path: &Path, to: (&str, &Path), seen: &Seen, target: &Path) -> Said {
        let fail = |e| Error::io("can not make the link", path, e);
        let kept = in_act(to.0, to.1);
        match self.find(path)? {
            Some((from, meta)) if seen.fits(&meta) && meta.kind == FileKind::Symlink => {
                let to = self.make_way(&kept)?;
                self.rename(&from, &to, path)?;
                failpoint::hit("mend.link-kept");
            }
            Some(_) => return Ok(None),
            None => {}
        }
        // Between the two there is no link; one that was killed here is made by the next command.
        let Some((_, former)) = self.find(&kept)? else {
            return Ok(None);
        };
        let Some((dir, name)) = below(self.root, path).map_err(fail)? else {
            return Ok(None);
        };
        dir.symlink(target.as_os_str().as_encoded_bytes(), &name)
            .and_then(|()| dir.set_time_of(&name, former.mtime))
            .and_then(|()| dir.sync())
            .map_err(fail)?;
        failpoint::hit("mend.pointed");
        Ok(Some(format!("pointed {} into the home", human::path(path))))
    }

    fn keep_index(&self, act: &str) -> Said {
        let kept = self.home.root().join(in_act(act, Path::new(INDEX)));
        if let (Some(content), false) = (disk::read(&self.home.index_file())?, disk::exists(&kept))
        {
            disk::write_new(&kept, &content, 0o600)?;
        }
        Ok(None)
    }

    fn index_back(&self, from: (&str, &Path), keep: &str) -> Said {
        let held = in_act(from.0, from.1);
        let Some(((dir, name), meta)) = self.find(&held)? else {
            return Ok(None);
        };
        let fail = |e| Error::io("can not read", &held, e);
        let content = disk::read_small_in(&dir, &name, u64::MAX).map_err(fail)?;
        let content = content.unwrap_or_default();
        let path = self.home.index_file();
        let present = disk::read(&path)?;
        let was = present.as_deref() != Some(&content);
        if was {
            let kept = self.home.root().join(in_act(keep, Path::new(INDEX)));
            if let (Some(present), false) = (&present, disk::exists(&kept)) {
                disk::write_new(&kept, present, 0o600)?;
            }
            let mode = disk::stat(&path)?.map_or(meta.mode, |meta| meta.mode & 0o777);
            if let Written::Changed(_) = disk::replace(&path, present.as_deref(), &content, mode)? {
                return Ok(left(Path::new(INDEX), "somebody else is writing it"));
            }
            failpoint::hit("mend.index-back");
        }
        // What was kept is in its place, byte for byte.
        dir.unlink(&name).and_then(|()| dir.sync()).map_err(fail)?;
        Ok(was.then(|| "put the former index back".to_owned()))
    }
}

/// The index's name in the home, and in an act.
pub const INDEX: &str = "index.json";

fn in_act(act: &str, lies: &Path) -> PathBuf {
    Path::new(TRASH).join(act).join(lies)
}

fn left(path: &Path, why: impl std::fmt::Display) -> Option<String> {
    Some(format!("left {}: {why}", human::path(path)))
}

fn copy_error(error: disk::CopyError, from: &Path, path: &Path) -> Error {
    match error {
        disk::CopyError::Read(e) => Error::io("can not read", from, e),
        disk::CopyError::Write(e) => Error::io("can not write", path, e),
        disk::CopyError::Stopped => Error::new(Kind::Interrupted, "interrupted"),
    }
}

/// Whether a session has its folder, and its archive.
fn on_disk(home: &LockedHome, id: &SessionId) -> (bool, bool) {
    let there = |path: PathBuf| disk::exists(&path);
    (there(home.session(id)), there(home.archive_of(id)))
}

fn remove(home: &LockedHome, entries: &[Map<String, Value>], at: &str) -> Said {
    let removed = IndexFile::update(home, |index| {
        let mut removed = Vec::new();
        for fields in entries {
            let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
            let fresh = Entry::read(id.to_owned(), fields.clone());
            let session = fresh.session()?;
            if on_disk(home, &session) != (false, false) {
                continue;
            }
            if index.find(session.as_str()).is_none() {
                index.insert(fresh);
            }
            let same = index.entries_mut().filter(|e| e.id() == session.as_str());
            for entry in same.filter(|e| e.status() != Status::Removed) {
                entry.set_status(&Status::Removed);
                entry.set("removed_at", at);
                removed.push(human::escape(session.as_str()).into_owned());
            }
        }
        Ok(removed)
    })?;
    failpoint::hit("mend.removed");
    Ok((!removed.is_empty()).then(|| format!("removed {}", removed.join(", "))))
}

fn bring_entries_back(home: &LockedHome, former: &[Former]) -> Said {
    let back = IndexFile::update(home, |index| {
        let mut back = Vec::new();
        for entry in index.entries_mut() {
            let Some(former) = former.iter().find(|f| f.id == entry.id()) else {
                continue;
            };
            if entry.status() != Status::Removed {
                continue;
            }
            let status = fitting(former.status.as_deref(), on_disk(home, &entry.session()?));
            match status {
                Some(status) => entry.set_status(&status),
                None => entry.unset("status"),
            }
            entry.unset("removed_at");
            back.push(human::escape(entry.id()).into_owned());
        }
        Ok(back)
    })?;
    failpoint::hit("mend.returned");
    Ok((!back.is_empty()).then(|| format!("{} is in the index again", back.join(", "))))
}

/// The former status when it fits what is there, else the one that does; `None` for no such field.
fn fitting(former: Option<&str>, (folder, archive): (bool, bool)) -> Option<Status> {
    let fits = |status: &Status| match status {
        Status::Archived => archive && !folder,
        Status::Missing => !archive && !folder,
        Status::Removed => false,
        Status::Active | Status::Other(_) => folder,
    };
    match former.map(Status::parse) {
        None if folder => None,
        Some(status) if fits(&status) => Some(status),
        _ if folder => Some(Status::Active),
        _ if archive => Some(Status::Archived),
        _ => Some(Status::Missing),
    }
}

/// The name of something in the home, for those who look at it before a step is decided.
///
/// # Errors
/// When it can not be looked at.
pub fn look(root: &Dir, path: &Path) -> Result<Option<Meta>> {
    let path = RelPath::new(path)?;
    let path = path.as_path();
    let fail = |e| Error::io("can not look at", path, e);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return root.meta().map(Some).map_err(fail);
    };
    match root.open_beneath(parent) {
        Ok(dir) => dir.find(OsStr::new(name)).map_err(fail),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(fail(error)),
    }
}

/// What tells the content of a file, or the target of a link; `None` of anything else and where nothing is.
///
/// # Errors
/// What can not be read, and interruption.
pub fn mark(root: &Dir, path: &Path, stop: &Stop) -> Result<Option<Mark>> {
    let Some(meta) = look(root, path)? else {
        return Ok(None);
    };
    let fail = |e| Error::io("can not read", path, e);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let dir = root.open_beneath(parent).map_err(fail)?;
    match meta.kind {
        FileKind::Symlink => {
            use std::os::unix::ffi::OsStringExt;
            let target = dir.read_link(name).map_err(fail)?;
            let target = PathBuf::from(std::ffi::OsString::from_vec(target));
            Ok(Some(Mark::Link(ExactPath(target))))
        }
        FileKind::File => {
            let mut buffers = Buffers::new();
            match disk::check_file(&dir, name, &mut buffers, stop, &mut |_, _| {}) {
                Ok(checked) => Ok(Some(Mark::of(checked.digest))),
                Err(disk::CopyError::Read(e) | disk::CopyError::Write(e)) => Err(fail(e)),
                Err(disk::CopyError::Stopped) => {
                    stop.check()?;
                    Ok(None)
                }
            }
        }
        _ => Ok(None),
    }
}
