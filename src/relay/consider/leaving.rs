//! A session that does not belong into the relay any more: whether that is meant, and what of it is ours to take away.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Considering, There, Todo, Work, has_files};
use crate::base::{Error, Kind, Result};
use crate::disk::{self, Dir, FileKind};
use crate::home::{Index, RelayMode, SessionId, Status, trash};
use crate::pack::Pack;
use crate::relay::compare::{Compared, Comparison, Happened};
use crate::relay::outcome::{Session, State, Unreadable, Why};
use crate::relay::record::Put;
use crate::relay::side::Side;

impl Considering<'_> {
    /// A session that does not belong into the relay any more.
    ///
    /// # Errors
    /// Interruption.
    pub fn leaving(&self, id: &str, put: &Put, index: &Index) -> Result<Todo> {
        let mut session = Session::new(id, None);
        if let Some(holder) = self.relay.devices.held_elsewhere(id) {
            session.hold(Why::Lease, None);
            session.holder = Some(holder);
            return Ok(Todo {
                session,
                work: None,
                done: true,
            });
        }
        let work = match self.leave(&mut session, put, index) {
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => {
                session.hold(Why::Unreadable, Some(error.to_string()));
                None
            }
            Ok(work) => work,
        };
        Ok(Todo {
            session,
            work,
            done: true,
        })
    }

    /// Why the session may leave: somebody has taken its label, archived or removed it, or given it a new name. `None`
    /// when it is only gone: then the relay may hold the last copy.
    fn meant(&self, id: &str, put: &Put, index: &Index) -> Option<Meant> {
        let folder = |id: &str| {
            let found = self.sessions.find(OsStr::new(id)).ok().flatten();
            found.filter(|meta| meta.kind == FileKind::Folder)
        };
        let Some(entry) = index.find(id) else {
            // A copy has the same id, and a new folder may have the same number: both only a renamed one has.
            let same = put.session_id.as_deref()?;
            let mut others = index
                .entries()
                .filter(|entry| entry.session_id() == Some(same));
            let renamed =
                others.any(|entry| folder(entry.id()).is_some_and(|f| f.ino == put.folder));
            return renamed.then_some(Meant::Elsewhere);
        };
        match entry.status() {
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
            Status::Active | Status::Other(_) => folder(id).map(|_| Meant::Here),
        }
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
        for act in trash::acts(self.home)? {
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
        let Some(meant) = self.meant(&id, put, index) else {
            session.tag = Some(put.tag.clone());
            session.hold(Why::MissingHere, None);
            return Ok(None);
        };
        let archived = match meant {
            Meant::Archived => self.archived(&id),
            _ => None,
        };
        let kept = match meant {
            Meant::Here => Side::look(&self.sessions, OsStr::new(&id), true, self.context.stop)?,
            Meant::Removed => self.in_trash(&id)?,
            Meant::Archived | Meant::Elsewhere => None,
        };
        let emptied = match meant {
            Meant::Here => kept.as_ref().is_some_and(Side::is_empty),
            Meant::Archived => archived.as_ref().is_some_and(BTreeMap::is_empty),
            Meant::Removed | Meant::Elsewhere => false,
        };
        if emptied && has_files(put) {
            session.hold(Why::EmptiedHere, None);
            return Ok(None);
        }
        // Removed when it was gone already: then the relay holds what the trash does not.
        let keep = matches!(meant, Meant::Removed) && kept.is_none();
        match there {
            There::OurLink(meta) => {
                session.removed = 1;
                Ok(Some(Work::Leave {
                    compared: Compared::default(),
                    former_link: Some(meta),
                    keep: false,
                }))
            }
            There::Folder(side) if put.mode != RelayMode::Symlink => {
                let comparison = Comparison {
                    whole: true,
                    kept: kept.as_ref(),
                    archived: archived.as_ref(),
                    check: None,
                    ..self.comparison(&id, None, Some(&side), Some(put))
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    /// It is here, and carries no sync tag any more.
    Here,
    /// Its archive has it.
    Archived,
    /// It was removed.
    Removed,
    /// It has another name.
    Elsewhere,
}
