//! What has to be done with one session, and whether it may.

mod by_link;
mod leaving;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use super::compare::{Change, Compared, Comparison, Difference, Happened, Leak};
use super::names::bad_names;
use super::outcome::{Session, State, Unreadable, Why};
use super::place::Relay;
use super::record::{Begun, Holds, Put, Record};
use super::side::Side;
use super::sync::Request;
use crate::base::{Context, Error, Kind, Result};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::trash::Act;
use crate::home::{self, Entry, Home, OnFind, RelayMode, SessionId};

/// A session, and the work that it makes.
#[derive(Debug)]
pub struct Todo {
    /// What is told of it.
    pub session: Session,
    /// What has to be done; none when nothing has, or may.
    pub work: Option<Work>,
    /// Whether it was, where there was something.
    pub done: bool,
}

impl Todo {
    /// What came of considering a session: one that could not be looked at is held back alone.
    fn of(mut session: Session, work: Result<Option<Work>>) -> Result<Todo> {
        let work = match work {
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
}

/// What has to be done with a session.
#[derive(Debug)]
pub enum Work {
    /// Nothing there; only the record learns what is so already.
    Record {
        /// What is recorded.
        put: Put,
    },
    /// It comes, or what has changed of it.
    Carry {
        /// What will be recorded, but for the names.
        put: Put,
        /// What has to be done.
        compared: Compared,
        /// Whether its folder is there.
        is_there: bool,
        /// The link of ours that stands in its place.
        former_link: Option<Meta>,
    },
    /// It becomes a link.
    Link {
        /// What will be recorded.
        put: Put,
        /// Where the link points.
        target: PathBuf,
        /// What we have put in its place, file by file.
        former: Option<Compared>,
        /// The link of ours that points elsewhere.
        former_link: Option<Meta>,
    },
    /// It leaves.
    Leave {
        /// What has to go.
        compared: Compared,
        /// It is a link of ours.
        former_link: Option<Meta>,
        /// Whether what is there goes to the trash of the home first.
        keep: bool,
    },
}

/// What stands in the relay under the name of a session.
enum There {
    Nothing,
    /// A folder.
    Folder(Side),
    /// A link that we have put there.
    OurLink(Meta),
    /// A file, or a link of somebody else's.
    Strange(Meta),
}

/// What sessions are considered by.
pub struct Considering<'a> {
    home: &'a Home,
    relay: &'a Relay,
    request: &'a Request,
    record: &'a Record,
    context: &'a Context<'a>,
    /// `sessions/`, opened and resolved.
    sessions: Dir,
    real: PathBuf,
    /// What was begun of sessions that are considered once more, with what the record knew of them.
    pub begun_now: BTreeMap<String, Begun>,
    large: Mutex<()>,
    /// The acts of the trash, once somebody has asked for them.
    trash: OnceLock<Vec<Act>>,
}

impl<'a> Considering<'a> {
    /// Opens what is needed.
    ///
    /// # Errors
    /// A home whose sessions can not be opened.
    pub fn new(
        home: &'a Home,
        relay: &'a Relay,
        request: &'a Request,
        record: &'a Record,
        context: &'a Context<'a>,
    ) -> Result<Self> {
        let path = home.sessions();
        let sessions =
            Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
        Ok(Considering {
            home,
            relay,
            request,
            record,
            context,
            sessions,
            real: disk::real_path(&path)?,
            begun_now: BTreeMap::new(),
            large: Mutex::new(()),
            trash: OnceLock::new(),
        })
    }

    /// Names in the relay that more than one session would have, where case and Unicode form do not count.
    pub fn clashes(&self, wanted: &[&Entry]) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for entry in wanted {
            *seen.entry(home::folded(entry.id())).or_default() += 1;
        }
        let ids: BTreeSet<&str> = wanted.iter().map(|entry| entry.id()).collect();
        // What others have put there takes the name as well.
        let names = self.relay.root.names().unwrap_or_default();
        for (name, _) in names {
            let name = name.to_string_lossy();
            if !ids.contains(&*name)
                && let Some(n) = seen.get_mut(&home::folded(&name))
                && self.record.put(&name).is_none()
            {
                *n += 1;
            }
        }
        seen.retain(|_, n| *n > 1);
        seen.into_keys().collect()
    }

    /// A session that belongs into the relay.
    ///
    /// # Errors
    /// Interruption.
    pub fn wanted(&self, entry: &Entry, clashes: &BTreeSet<String>) -> Result<Todo> {
        let tag = entry.sync_tag().unwrap_or_default();
        let mut session = Session::new(entry.id(), Some(tag));
        if self.is_held_elsewhere(&mut session) || self.blocked(&mut session, clashes) {
            return Todo::of(session, Ok(None));
        }
        let work = self.work(entry, tag, &mut session);
        Todo::of(session, work)
    }

    /// Whether another device holds its lease: then nothing is done with it.
    fn is_held_elsewhere(&self, session: &mut Session) -> bool {
        let holder = self.relay.devices.held_elsewhere(&session.id);
        if holder.is_some() {
            session.hold(Why::Lease, None);
            session.holder = holder;
        }
        session.holder.is_some()
    }

    /// Whether nothing may be done with it, whatever it holds.
    fn blocked(&self, session: &mut Session, clashes: &BTreeSet<String>) -> bool {
        if clashes.contains(&home::folded(&session.id)) {
            session.hold(Why::Clash, None);
            return true;
        }
        if SessionId::adopt(&session.id).is_err() || session.id.starts_with('.') {
            session.hold(Why::Name, Some("hidden names are not carried".to_owned()));
            return true;
        }
        false
    }

    fn work(&self, entry: &Entry, tag: &str, session: &mut Session) -> Result<Option<Work>> {
        let id = entry.id();
        let stop = self.context.stop;
        let by_link = self.relay.mode == RelayMode::Symlink;
        // A link shows everything, logs too.
        let logs = self.relay.logs || by_link;
        let Some(here) = Side::look(&self.sessions, OsStr::new(id), logs, stop)? else {
            session.hold(Why::MissingHere, None);
            return Ok(None);
        };
        session.left_out = here.odd.iter().map(|path| path.clone().into()).collect();
        let put = self.record.put(id);
        let there = self.there(id, put)?;
        if let There::Strange(meta) = &there
            && !self.is_ours(id)
        {
            let changed = Some(meta.mtime.timestamp());
            session.differences = vec![whole(Happened::Changed, changed)];
            let what = format!("{} stands in its place", meta.kind.described());
            session.hold(Why::ChangedThere, Some(what));
            return Ok(None);
        }
        if let Some(check) = self.request.check.as_ref().filter(|_| self.request.search) {
            // Its own name leaves, and its tag in what this device says.
            let names = [Path::new(id), Path::new(tag)];
            session
                .leaks
                .extend(
                    names
                        .iter()
                        .flat_map(|name| check.name(name))
                        .map(|found| Leak {
                            path: PathBuf::new().into(),
                            found,
                        }),
                );
        }
        if put.is_some_and(has_files) && here.is_empty() && !self.is_ours(id) {
            session.hold(Why::EmptiedHere, None);
            return Ok(None);
        }
        let new = Put {
            mode: self.relay.mode,
            tag: tag.to_owned(),
            session_id: entry.session_id().map(str::to_owned),
            folder: here.meta.ino,
            at: put.map_or_else(|| self.context.clock.now(), |put| put.at),
            checked_by: self.checked_by(),
            names: BTreeMap::new(),
        };
        match by_link {
            true => self.by_link(session, &here, there, put, new),
            false => self.by_files(session, &here, there, put, new),
        }
    }

    /// What was found by other rules, or was allowed to leave by another setting, is looked at again.
    fn checked_by(&self) -> String {
        let check = self.request.check.as_ref();
        let strict = self.request.on_find == OnFind::Refuse;
        match check.filter(|_| self.request.search) {
            Some(check) => format!(
                "{}-{}",
                check.digest(),
                if strict { "refuse" } else { "warn" }
            ),
            None => String::new(),
        }
    }

    fn is_ours(&self, id: &str) -> bool {
        self.request.ours.contains(id)
    }

    fn there(&self, id: &str, put: Option<&Put>) -> Result<There> {
        let fail = |e| Error::io("can not look at", self.relay.path.join(id), e);
        let name = OsStr::new(id);
        let Some(meta) = self.relay.root.find(name).map_err(fail)? else {
            return Ok(There::Nothing);
        };
        match meta.kind {
            FileKind::Folder => {
                let side = Side::look(&self.relay.root, name, true, self.context.stop)?;
                Ok(side.map_or(There::Nothing, There::Folder))
            }
            FileKind::Symlink => {
                let target = self.relay.root.read_link(name).map_err(fail)?;
                let recorded = put.and_then(|put| put.noted(Path::new("")));
                let recorded =
                    recorded.is_some_and(|noted| noted.holds == Holds::Link(target.clone()));
                let present = target == self.real.join(id).as_os_str().as_bytes();
                Ok(match recorded || present {
                    true => There::OurLink(meta),
                    false => There::Strange(meta),
                })
            }
            _ => Ok(There::Strange(meta)),
        }
    }

    fn comparison<'s>(
        &'s self,
        id: &'s str,
        here: Option<&'s Side>,
        there: Option<&'s Side>,
        put: Option<&'s Put>,
    ) -> Comparison<'s> {
        let checked = |put: &Put| put.checked_by == self.checked_by();
        let check = self.request.check.as_ref().filter(|_| self.request.search);
        Comparison {
            id,
            here,
            there,
            put,
            begun: self.begun(id),
            mode: self.relay.mode,
            logs: self.relay.logs,
            check,
            all_again: check.is_some() && !put.is_none_or(checked),
            ours: self.is_ours(id),
            whole: false,
            kept: None,
            archived: None,
            large: &self.large,
            stop: self.context.stop,
        }
    }

    fn begun(&self, id: &str) -> Option<&Begun> {
        self.begun_now.get(id).or_else(|| self.record.begun.get(id))
    }

    fn compare(
        &self,
        id: &str,
        here: Option<&Side>,
        there: Option<&Side>,
        put: Option<&Put>,
    ) -> Result<Compared> {
        self.comparison(id, here, there, put).run()
    }

    /// Whether a sync that was killed was about to take the link that the session was, or to make it.
    fn begun_to_go(&self, id: &str) -> bool {
        let begun = self.begun(id);
        begun.is_some_and(|begun| begun.contains_key(Path::new("")))
    }

    /// As copies or hard links.
    fn by_files(
        &self,
        session: &mut Session,
        here: &Side,
        there: There,
        put: Option<&Put>,
        new: Put,
    ) -> Result<Option<Work>> {
        let (side, former_link) = match there {
            There::Folder(side) => (Some(side), None),
            // A strange one is here only when a person has said that it shall make way.
            There::OurLink(meta) | There::Strange(meta) => (None, Some(meta)),
            There::Nothing => (None, None),
        };
        // What a link of ours has shown was not put there file by file.
        let files = put.filter(|put| put.mode != RelayMode::Symlink);
        let nothing = side.is_none() && former_link.is_none();
        let link_gone =
            nothing && put.is_some() && files.is_none() && !self.begun_to_go(&session.id);
        let compared = self.compare(&session.id, Some(here), side.as_ref(), files)?;
        let renewed = put.is_none_or(|put| !same_but_names(put, &new)) || compared.renewed;
        let is_there = side.is_some();
        if link_gone && !self.is_ours(&session.id) {
            session.differences = vec![whole(Happened::Deleted, None)];
        }
        if !self.may(session, &compared, put.is_none()) {
            return Ok(None);
        }
        session.tell(&compared, is_there);
        if compared.changes.is_empty() && is_there {
            let mut names = compared.names;
            names.values_mut().for_each(|noted| noted.looked = None);
            let put = Put { names, ..new };
            return Ok(renewed.then_some(Work::Record { put }));
        }
        Ok(Some(Work::Carry {
            put: new,
            compared,
            is_there,
            former_link,
        }))
    }

    /// Whether what was found lets the session be carried; if not, the session says why.
    fn may(&self, session: &mut Session, compared: &Compared, is_new: bool) -> bool {
        session
            .differences
            .extend(compared.differences.iter().cloned());
        session.leaks.extend(compared.leaks.iter().cloned());
        session.changed_here = compared.changed_here;
        session.changed_here_at = compared.changed_here_at;
        session.allowed = compared.allowed;
        session.written_through = compared.written_through;
        session.unreadable = compared.unreadable.iter().map(Unreadable::of).collect();
        let comes = compared
            .changes
            .values()
            .any(|change| !matches!(change, Change::Remove(_)));
        if is_new || comes {
            let folders = compared.names.keys();
            session.bad_names = bad_names(&session.id, folders);
        }
        let refused = self.request.on_find == OnFind::Refuse && !session.leaks.is_empty();
        let why = [
            (!session.unreadable.is_empty(), Why::Unreadable),
            (!session.differences.is_empty(), Why::ChangedThere),
            (refused, Why::Secret),
            (!session.bad_names.is_empty(), Why::Name),
        ];
        match why.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, why)) => session.hold(why, None),
            None => return true,
        }
        false
    }
}

fn has_files(put: &Put) -> bool {
    let mut names = put.names.iter();
    names.any(|(path, noted)| !path.as_os_str().is_empty() && noted.holds != Holds::Folder)
}

/// Whether two records of a session say the same, but for its names.
fn same_but_names(one: &Put, other: &Put) -> bool {
    let facts = |put: &Put| {
        (
            put.mode,
            put.tag.clone(),
            put.session_id.clone(),
            put.folder,
            put.checked_by.clone(),
        )
    };
    facts(one) == facts(other)
}

/// The session itself is not there as we have put it.
fn whole(there: Happened, changed_there: Option<jiff::Timestamp>) -> Difference {
    Difference {
        path: PathBuf::new().into(),
        there,
        changed_there,
        here_too: false,
        changed_here: None,
    }
}

impl Unreadable {
    fn of((path, why): &(PathBuf, String)) -> Unreadable {
        Unreadable {
            path: path.clone().into(),
            why: why.clone(),
        }
    }
}

impl Session {
    /// Says what will be done.
    fn tell(&mut self, compared: &Compared, is_there: bool) {
        let files = compared.changes.values();
        let count = |is: fn(&Change) -> bool| files.clone().filter(|c| is(c)).count() as u64;
        self.added = count(|change| matches!(change, Change::Put));
        self.replaced = count(|change| matches!(change, Change::Replace(_)));
        self.removed = count(|change| matches!(change, Change::Remove(_)));
        self.bytes = compared.bytes;
        self.state = match (is_there, compared.changes.is_empty()) {
            (false, _) => State::Sent,
            (true, false) => State::Updated,
            (true, true) => State::Same,
        };
    }
}
