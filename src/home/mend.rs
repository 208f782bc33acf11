//! The steps by which things are put away, brought back and put right. They are written into the journal
//! before the first of them is done.
//!
//! Each step carries the facts that it was decided on, and looks at them again right before: what has changed
//! meanwhile is left as it is, and said. A step that has been done already does nothing. One that the system
//! refuses is told and left, so that a folder without permission does not lock a home for ever; nothing is
//! ever between two places but for the length of one rename.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::trash::{self, Former, Mark};
use super::{LockedHome, RelPath};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Kind, Result, Stop, human};
use crate::disk::{self, Buffers, Dir, FileKind, Meta};

mod entries;
mod place;
#[cfg(test)]
mod tests;

use place::Place;

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
        /// What stood there when that was decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<Mark>,
    },
    /// Sessions that are not there any more become tombstones in the index.
    Remove {
        /// What becomes the entry of a session that has none.
        entries: Vec<Map<String, Value>>,
        /// When.
        at: String,
    },
    /// Sessions that are tombstones, or missing, get the status back that fits what is there.
    Return {
        /// What they were.
        entries: Vec<Former>,
    },
    /// The entry of a session says that it has this archive, and with a moment that it is archived.
    Archived {
        /// What becomes its entry when it has none.
        entry: Map<String, Value>,
        /// The field `archive`.
        archive: Map<String, Value>,
        /// When its folder was put away; none when that stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The pack.
        pack: ExactPath,
        /// What the pack was when that was decided.
        seen: Seen,
    },
    /// The entry of a session says that it is in its folder again, and of its archive what is there.
    Unarchived {
        /// What becomes its entry when it has none.
        entry: Map<String, Value>,
        /// The field `archive`, in case that the archive stays and the entry does not know it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archive: Option<Map<String, Value>>,
    },
    /// The entry of a session has these fields.
    Label {
        /// Its id.
        id: String,
        /// The fields.
        fields: Map<String, Value>,
    },
    /// Remove for good what was compared with something else and found to be all in it.
    Discard {
        /// What.
        path: ExactPath,
        /// What it was when that was decided.
        seen: Seen,
        /// What holds all of it.
        kept_in: ExactPath,
        /// What that was when it was compared.
        kept_seen: Seen,
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

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// There was nothing to do, or nothing to say of it.
    Nothing,
    /// What was done, a line for the person.
    Did(String),
    /// It was not done.
    Left(Left),
}

/// Something that a step has left as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where, below the home.
    pub path: PathBuf,
    /// Why, for a person.
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "left {}: {}", human::path(&self.path), self.why)
    }
}

impl Mend {
    pub(super) fn needs_index(&self) -> bool {
        matches!(
            self,
            Mend::Remove { .. }
                | Mend::Return { .. }
                | Mend::Archived { .. }
                | Mend::Unarchived { .. }
                | Mend::Label { .. }
        )
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
            Mend::IndexBack {
                act, lies, keep, ..
            } => {
                vec![Path::new(act), &**lies, Path::new(keep)]
            }
            Mend::Archived { pack, .. } => vec![&**pack],
            Mend::Discard { path, kept_in, .. } => vec![&**path, &**kept_in],
            Mend::Remove { .. }
            | Mend::Return { .. }
            | Mend::Unarchived { .. }
            | Mend::Label { .. } => Vec::new(),
        }
    }

    /// Where something goes that is in the trash.
    pub(super) fn place_given(&self) -> Option<&Path> {
        match self {
            Mend::BringBack { path, .. } => Some(path),
            _ => None,
        }
    }

    /// What it is about, for the person.
    fn subject(&self) -> PathBuf {
        match self {
            Mend::PutAway { path, .. }
            | Mend::BringBack { path, .. }
            | Mend::Copy { path, .. }
            | Mend::Folder { path, .. }
            | Mend::Prune { path }
            | Mend::Mode { path, .. }
            | Mend::Point { path, .. }
            | Mend::Discard { path, .. } => path.0.clone(),
            Mend::Close { act } => Path::new(trash::TRASH).join(act),
            Mend::KeepIndex { .. }
            | Mend::IndexBack { .. }
            | Mend::Remove { .. }
            | Mend::Return { .. }
            | Mend::Archived { .. }
            | Mend::Unarchived { .. }
            | Mend::Label { .. } => INDEX.into(),
        }
    }

    /// Whether the step notes something of a session's archive: several of them can be done at once.
    pub(super) fn notes(&self) -> bool {
        matches!(self, Mend::Archived { .. } | Mend::Unarchived { .. })
    }

    /// Does steps of which [`Mend::notes`] is true; the index is written once for all of them.
    ///
    /// # Errors
    /// An index that can not be written: then none of them is done.
    pub(super) fn noted(home: &LockedHome, steps: &[&Mend]) -> Result<Vec<Said>> {
        let root = Dir::open(home.root())
            .map_err(|e| Error::io("can not open the home", home.root(), e))?;
        let left = steps.iter().map(|step| step.has_changed(&root));
        let left = left.collect::<Result<Vec<_>>>()?;
        let sound = steps.iter().zip(&left).filter(|(_, left)| left.is_none());
        let sound: Vec<&Mend> = sound.map(|(step, _)| *step).collect();
        let mut said = match sound.is_empty() {
            true => Vec::new(),
            false => entries::noted(home, &sound)?,
        }
        .into_iter();
        let of = |left: Option<Left>| match left {
            Some(left) => Said::Left(left),
            None => said.next().unwrap_or(Said::Nothing),
        };
        Ok(left.into_iter().map(of).collect())
    }

    /// What is left as it is, because the pack that is to be noted is another one by now.
    fn has_changed(&self, root: &Dir) -> Result<Option<Left>> {
        let Mend::Archived { pack, seen, .. } = self else {
            return Ok(None);
        };
        let stands = look(root, pack)?.is_some_and(|meta| seen.fits(&meta));
        Ok((!stands).then(|| Left {
            path: pack.0.clone(),
            why: CHANGED.to_owned(),
        }))
    }

    /// Does the step. What the system refuses is told and left.
    ///
    /// # Errors
    /// Interruption, and an index that can not be written: the next command goes on from there.
    pub(super) fn done(&self, home: &LockedHome, context: &Context) -> Result<Said> {
        let root = home.dir()?;
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
            Mend::IndexBack {
                act,
                lies,
                keep,
                seen,
            } => at.index_back((act, lies), keep, seen.as_ref()),
            Mend::Discard {
                path,
                seen,
                kept_in,
                kept_seen,
            } => at.discard(path, seen, kept_in, kept_seen),
            // An index that can not be written is no small matter: these are tried again.
            Mend::Remove { entries, at: when } => return entries::remove(home, entries, when),
            Mend::Return { entries } => return entries::bring_back(home, entries),
            Mend::Archived { .. } | Mend::Unarchived { .. } => {
                let mut said = Mend::noted(home, &[self])?;
                return Ok(said.pop().unwrap_or(Said::Nothing));
            }
            Mend::Label { id, fields } => return entries::label(home, id, fields),
            Mend::Close { act } => trash::close(home, act).map(|_| Said::Nothing),
        };
        match said {
            Err(error) if error.kind() != Kind::Interrupted => Ok(Said::Left(Left {
                path: self.subject(),
                why: error.to_string(),
            })),
            said => said,
        }
    }
}

/// Why a step was not done.
const CHANGED: &str = "it has changed meanwhile";

/// The index's name in the home, and in an act.
pub const INDEX: &str = "index.json";

/// Why a former index does not take the place of the present one.
pub const INDEX_CHANGED: &str =
    "it was changed since and is left as it is; `wbhome index` makes it agree";

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
