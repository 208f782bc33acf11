//! A session that does not belong into the relay any more: whether that is meant, and what of it is ours to take away.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Considering, There, Todo, Work, has_files};
use crate::base::{Error, Result};
use crate::disk::{self, Buffers, Dir, FileKind};
use crate::home::{Index, RelayMode, SessionId, Status, trash};
use crate::pack::{Pack, short_digest};
use crate::relay::compare::{Compared, Comparison, Happened, read};
use crate::relay::outcome::{Session, State, Unreadable, Why};
use crate::relay::record::{Holds, Put};
use crate::relay::side::Side;

impl Considering<'_> {
    /// A session that does not belong into the relay any more.
    ///
    /// # Errors
    /// Interruption.
    pub fn leaving(&self, id: &str, put: &Put, index: &Index) -> Result<Todo> {
        let mut session = Session::new(id, None);
        if self.is_held_elsewhere(&mut session) {
            return Todo::of(session, Ok(None));
        }
        let work = self.leave(&mut session, put, index);
        Todo::of(session, work)
    }

    /// Why the session may leave: somebody has taken its label, archived or removed it, or given it a new name. `None`
    /// when it is only gone: then the relay may hold the last copy.
    fn meant(&self, id: &str, put: &Put, index: &Index) -> Result<Option<Meant>> {
        let Some(entry) = index.find(id) else {
            return self.renamed(put, index);
        };
        Ok(match entry.status() {
            Status::Missing => None,
            Status::Removed => Some(Meant::Removed),
            Status::Archived => {
                let archive = SessionId::adopt(id)
                    .ok()
                    .map(|id| self.home.archive_of(&id));
                archive
                    .filter(|path| disk::exists(path))
                    .map(|_| Meant::Archived)
            }
            Status::Active | Status::Other(_) => self.folder(id)?.map(Meant::Here),
        })
    }

    /// The session under its new name. A copy has the same identity, and a new folder may have the same number: both only
    /// a renamed one has. One that was archived, removed or brought back since has another number, and is it when it holds
    /// all that was sent.
    fn renamed(&self, put: &Put, index: &Index) -> Result<Option<Meant>> {
        let Some(same) = put.session_id.as_deref() else {
            return Ok(None);
        };
        let others = index
            .entries()
            .filter(|entry| entry.session_id() == Some(same));
        for entry in others {
            let id = entry.id();
            let archived = self.archived(id).is_some_and(|archived| {
                let sent = files(put);
                sent.into_iter().all(|(path, digest)| {
                    archived
                        .get(path)
                        .is_some_and(|found| *found == short_digest(digest))
                })
            });
            if archived {
                return Ok(Some(Meant::Elsewhere(None)));
            }
            let side = match entry.status() {
                Status::Removed => self.in_trash(id)?,
                _ => self.folder(id)?,
            };
            let Some(side) = side else {
                continue;
            };
            if side.meta.ino == put.folder || self.holds_all(&side, files(put))? {
                return Ok(Some(Meant::Elsewhere(Some(side))));
            }
        }
        Ok(None)
    }

    /// The folder of a session here.
    fn folder(&self, id: &str) -> Result<Option<Side>> {
        let name = OsStr::new(id);
        let found = self.sessions.find(name).ok().flatten();
        match found.is_some_and(|meta| meta.kind == FileKind::Folder) {
            true => Side::look(&self.sessions, name, true, self.context.stop),
            false => Ok(None),
        }
    }

    /// Whether a folder holds each of these contents at its path.
    fn holds_all<'f>(
        &self,
        side: &Side,
        files: impl IntoIterator<Item = (&'f PathBuf, &'f disk::Digest)>,
    ) -> Result<bool> {
        let mut buffers = Buffers::new();
        for (path, digest) in files {
            self.context.stop.check()?;
            let found = side.names.get(path);
            let stop = self.context.stop;
            let holds = found.and_then(|meta| read(side, path, meta, &mut buffers, stop).ok());
            if holds != Some(Holds::File(*digest)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The digests of what the archive of a session holds; `None` when that is not known.
    fn archived(&self, id: &str) -> Option<BTreeMap<PathBuf, String>> {
        let id = SessionId::adopt(id).ok()?;
        let pack = Pack::open(&self.home.archive_of(&id)).ok()?;
        let members = pack.manifest()?.members.iter();
        let files =
            members.filter_map(|member| Some((member.path.to_path_buf(), member.blake3.clone()?)));
        Some(files.collect())
    }

    /// The folder of a session that was removed, in the trash.
    fn in_trash(&self, id: &str) -> Result<Option<Side>> {
        let path = Path::new("sessions").join(id);
        let root = self.home.root();
        let root = Dir::open(root).map_err(|e| Error::io("can not open the home", root, e))?;
        let acts = match self.trash.get() {
            Some(acts) => acts,
            None => {
                let acts = trash::acts(self.home)?;
                self.trash.get_or_init(|| acts)
            }
        };
        for act in acts {
            let Some((_, lies)) = act.place_of(&root, &path) else {
                continue;
            };
            let at = act.folder().join(lies);
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                continue;
            };
            let parent = root.open_beneath(parent);
            let parent = parent.map_err(|e| Error::io("can not open", &at, e))?;
            return Side::look(&parent, name, true, self.context.stop);
        }
        Ok(None)
    }

    /// Whether the trash has all that a folder of the relay holds. When the session was gone or emptied before it was
    /// removed, it has not.
    fn is_in(&self, trash: Option<&Side>, there: &Side) -> Result<bool> {
        let Some(trash) = trash else {
            return Ok(false);
        };
        let mut buffers = Buffers::new();
        let stop = self.context.stop;
        for (path, meta) in there
            .names
            .iter()
            .filter(|(_, m)| m.kind != FileKind::Folder)
        {
            stop.check()?;
            let here = read(there, path, meta, &mut buffers, stop).ok();
            let kept = trash.names.get(path);
            let kept = kept.and_then(|meta| read(trash, path, meta, &mut buffers, stop).ok());
            if here.is_none() || here != kept {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What takes a session out of the relay. What somebody else has changed there is theirs, and stays.
    fn leave(&self, session: &mut Session, put: &Put, index: &Index) -> Result<Option<Work>> {
        let id = session.id.clone();
        let there = self.there(&id, Some(put))?;
        session.state = State::Removed;
        let nothing = Work::Leave {
            compared: Compared::default(),
            former_link: None,
            keep: false,
        };
        if let There::Nothing = there {
            return Ok(Some(nothing));
        }
        let Some(meant) = self.meant(&id, put, index)? else {
            session.tag = Some(put.tag.clone());
            session.hold(Why::MissingHere, None);
            return Ok(None);
        };
        let archived = match meant {
            Meant::Archived => self.archived(&id),
            _ => None,
        };
        let emptied = match &meant {
            Meant::Here(side) | Meant::Elsewhere(Some(side)) => side.is_empty(),
            Meant::Archived => archived.as_ref().is_some_and(BTreeMap::is_empty),
            Meant::Removed | Meant::Elsewhere(None) => false,
        };
        if emptied && has_files(put) {
            session.hold(Why::EmptiedHere, None);
            return Ok(None);
        }
        let trash = match meant {
            Meant::Removed => self.in_trash(&id)?,
            _ => None,
        };
        let kept = match &meant {
            Meant::Here(side) | Meant::Elsewhere(Some(side)) => Some(side),
            _ => trash.as_ref(),
        };
        match there {
            There::OurLink(meta) => {
                session.removed = 1;
                Ok(Some(Work::Leave {
                    compared: Compared::default(),
                    former_link: Some(meta),
                    keep: false,
                }))
            }
            There::Folder(side) if put.mode != RelayMode::Symlink || self.begun(&id).is_some() => {
                // What a link of ours has shown was not put there file by file; what was begun since was.
                let put = Some(put).filter(|put| put.mode != RelayMode::Symlink);
                let comparison = Comparison {
                    whole: true,
                    kept,
                    archived: archived.as_ref(),
                    check: None,
                    ..self.comparison(&id, None, Some(&side), put)
                };
                let compared = comparison.run()?;
                session.unreadable = compared.unreadable.iter().map(Unreadable::of).collect();
                if !session.unreadable.is_empty() {
                    session.hold(Why::Unreadable, None);
                    return Ok(None);
                }
                if compared
                    .differences
                    .iter()
                    .any(|one| one.there != Happened::Deleted)
                {
                    session.differences = compared.differences;
                    session.state = State::Left;
                    return Ok(Some(nothing));
                }
                session.removed = compared.changes.len() as u64;
                let keep = meant.is_removed() && !self.is_in(trash.as_ref(), &side)?;
                Ok(Some(Work::Leave {
                    compared,
                    former_link: None,
                    keep,
                }))
            }
            There::Folder(_) | There::Strange(_) | There::Nothing => {
                session.state = State::Left;
                Ok(Some(nothing))
            }
        }
    }
}

/// Why a session may leave the relay.
#[derive(Debug)]
enum Meant {
    /// It is here, and carries no sync tag any more.
    Here(Side),
    /// Its archive has it.
    Archived,
    /// It was removed.
    Removed,
    /// It has another name, and is here under that, or in an archive.
    Elsewhere(Option<Side>),
}

impl Meant {
    fn is_removed(&self) -> bool {
        matches!(self, Meant::Removed)
    }
}

/// The files of a session that were sent, with what they held.
fn files(put: &Put) -> Vec<(&PathBuf, &disk::Digest)> {
    let names = put.names.iter();
    names
        .filter_map(|(path, noted)| match &noted.holds {
            Holds::File(digest) => Some((path, digest)),
            _ => None,
        })
        .collect()
}
