//! Sending one session, as often as it takes when it is written to meanwhile.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::super::carry::{Carrying, Stuck, carried};
use super::super::consider::{Considering, Todo, Work};
use super::super::outcome::{State, Why};
use super::super::place::Relay;
use super::super::record::{Log, Put, Record, merge};
use super::Request;
use crate::base::{Context, Result, failpoint};
use crate::disk::{self, Dir, FileKind};
use crate::home::trash::{self, Note, Was};
use crate::home::{Index, LockedHome};

/// So often a session is compared anew that was written to while it was sent.
const ATTEMPTS: usize = 3;

/// What is recorded of a session from now on.
pub(super) enum Recorded {
    /// This.
    As(Box<Put>),
    /// Nothing any more.
    Nothing,
    /// What was recorded before.
    AsBefore,
}

/// What is needed to send one session.
pub(super) struct Sending<'a> {
    pub home: &'a LockedHome,
    pub relay: &'a Relay,
    pub sessions: &'a Dir,
    pub log: &'a Log,
    pub record: &'a Record,
    pub request: &'a Request,
    pub context: &'a Context<'a>,
}

impl Sending<'_> {
    pub fn run(&self, todo: &mut Todo, mut work: Work) -> Recorded {
        todo.done = false;
        // The version there goes to the trash before anything of it makes way for that of a person's choice: once, while it
        // is whole.
        let id = todo.session.id.clone();
        if self.request.ours.contains(&id) && !matches!(work, Work::Record { .. }) {
            match self.keep(&id, "which `relay sync --ours` has replaced") {
                Ok(act) => todo.session.kept = act,
                Err(stuck) => {
                    todo.session.hold(Why::Failed, Some(stuck.told()));
                    return Recorded::AsBefore;
                }
            }
        }
        for attempt in 1.. {
            match self.attempt(todo, work) {
                Ok(recorded) => {
                    todo.done = true;
                    self.log.forget(&todo.session.id);
                    return recorded;
                }
                Err(Stuck::Restless(_)) if attempt < ATTEMPTS => {}
                Err(Stuck::Stopped) => break,
                Err(stuck) => {
                    todo.session.hold(Why::Failed, Some(stuck.told()));
                    break;
                }
            }
            match self.again(todo) {
                Ok(Some(next)) => work = next,
                Ok(None) => break,
                Err(error) => {
                    todo.session.hold(Why::Failed, Some(error.to_string()));
                    break;
                }
            }
        }
        Recorded::AsBefore
    }

    /// Compares a session anew, that was written to meanwhile.
    fn again(&self, todo: &mut Todo) -> Result<Option<Work>> {
        let index = Index::read(self.home)?;
        let record = self.record;
        let mut considering =
            Considering::new(self.home, self.relay, self.request, record, self.context)?;
        let id = todo.session.id.clone();
        // What the first attempt has put there is ours.
        let mut begun = record.begun.get(&id).cloned().unwrap_or_default();
        merge(&mut begun, &self.log.begun(&id));
        considering.begun_now.insert(id.clone(), begun);
        let Some(entry) = index.find(&id) else {
            return Ok(None);
        };
        let kept = todo.session.kept.take();
        *todo = considering.wanted(entry, &Default::default())?;
        todo.session.kept = kept;
        todo.done = false;
        Ok(todo.work.take())
    }

    fn attempt(&self, todo: &mut Todo, work: Work) -> Result<Recorded, Stuck> {
        let id = todo.session.id.clone();
        let id = id.as_str();
        let here = match work {
            Work::Leave { .. } => self.sessions.open_beneath("".as_ref()),
            _ => self.sessions.open_beneath(id.as_ref()),
        };
        let here = here.map_err(|e| Stuck::Io(id.into(), e))?;
        let carrying = Carrying {
            root: &self.relay.root,
            device: &self.relay.device.id,
            id,
            here: &here,
            mode: self.relay.mode,
            log: self.log,
            stop: self.context.stop,
        };
        match work {
            Work::Record { put } => Ok(Recorded::As(Box::new(put))),
            Work::Carry {
                mut put,
                mut compared,
                is_there,
                former_link,
            } => {
                if let Some(link) = former_link {
                    carrying.unlink(&link)?;
                }
                carrying.run(&mut compared, is_there)?;
                put.names = carried(compared);
                put.at = self.context.clock.now();
                Ok(Recorded::As(Box::new(put)))
            }
            Work::Link {
                mut put,
                target,
                former,
                former_link,
            } => {
                if let Some(link) = former_link {
                    carrying.unlink(&link)?;
                }
                if let Some(former) = former {
                    carrying.clear(&former)?;
                }
                carrying.put_link(&target)?;
                put.at = self.context.clock.now();
                Ok(Recorded::As(Box::new(put)))
            }
            Work::Leave {
                compared,
                former_link,
                keep,
            } => {
                if keep {
                    let why = "which was the last one, when the session was removed";
                    todo.session.kept = self.keep(id, why)?;
                }
                match former_link {
                    Some(link) => carrying.unlink(&link)?,
                    None if todo.session.state == State::Left => {}
                    None => carrying.clear(&compared)?,
                }
                Ok(Recorded::Nothing)
            }
        }
    }

    /// What stands in the relay and has to make way goes to the trash of the home: it may be the only copy.
    fn keep(&self, id: &str, why: &str) -> Result<Option<String>, Stuck> {
        let at = Path::new("sessions").join(id);
        let fail = |e| Stuck::Io(PathBuf::new(), e);
        let Some(meta) = self.relay.root.find(id.as_ref()).map_err(fail)? else {
            return Ok(None);
        };
        // Complete before there is an act that speaks of it: half of one would be brought back as a whole.
        let scratch = self.home.scratch(self.context).map_err(Stuck::Log)?;
        let folder = Dir::open(scratch.path()).map_err(fail)?;
        self.duplicate(id, meta.kind, &folder)
            .and_then(|()| disk::sync_filesystem(&folder))
            .map_err(fail)?;
        let note = Note {
            why: format!("the version of the relay, {why}"),
            at: self.context.clock.now().to_string(),
            command: Some(trash::OF_RELAY.to_owned()),
            was: vec![Was::new(&at)],
            ..Note::default()
        };
        let act = trash::open(self.home, note, self.context).map_err(Stuck::Log)?;
        failpoint::hit("relay.keeping");
        let kept = Dir::open(self.home.trash().join(&act))
            .and_then(|dir| dir.make_beneath(Path::new("sessions")))
            .and_then(|to| {
                folder.rename(id.as_ref(), &to, id.as_ref())?;
                to.sync()
            });
        kept.map_err(fail)?;
        Ok(Some(act))
    }

    /// Copies what can travel of a session in the relay. Sockets and the like hold nothing.
    fn duplicate(&self, id: &str, kind: FileKind, to: &Dir) -> io::Result<()> {
        let (root, name, stop) = (&self.relay.root, OsStr::new(id), self.context.stop);
        if kind != FileKind::Folder {
            return disk::duplicate_as(root, name, to, name, stop);
        }
        let from = root.open_beneath(Path::new(id))?;
        let tree = disk::walk(&from, &|_, _| false, stop).map_err(io::Error::other)?;
        let to = to.make_beneath(Path::new(id))?;
        for folder in &tree.folders {
            if let Some((_, why)) = folder.unreadable.first() {
                return Err(io::Error::other(why.clone()));
            }
            let (here, there) = (
                from.open_beneath(&folder.rel)?,
                to.make_beneath(&folder.rel)?,
            );
            let content = |kind| matches!(kind, FileKind::File | FileKind::Symlink);
            for entry in folder
                .entries
                .iter()
                .filter(|entry| content(entry.meta.kind))
            {
                disk::duplicate_as(&here, &entry.name, &there, &entry.name, stop)?;
            }
        }
        Ok(())
    }
}
