//! `wbhome relay sync`: the relay becomes exactly the active sessions that carry a sync tag.
//!
//! Each session goes its way alone ([`consider`](super::consider), [`carry`](super::carry)): one that is held back stops
//! no other. A session is sent whole or not at all: where somebody else has changed a part of it, nothing of it is sent,
//! so that two versions never mix.

use rayon::prelude::*;
use serde::Serialize;

use super::carry::{Carrying, Stuck, carried, temporary_of};
use super::consider::{Considering, Todo, Work};
use super::devices::Sent;
use super::lapse::{give_up, overtaken, without_session};
use super::outcome::{Outcome, Overtaken, State, Why};
use super::place::Relay;
use super::record::{Log, Put, Record, version};
use super::seen::note;
use super::strangers::{Stranger, strangers};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, Total, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::trash::{self, Note, Was};
use crate::home::{Entry, Home, Index, LockedHome, OnFind, RelayMode};
use crate::secrets::Check;

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// Only sessions with this sync tag.
    pub tag: Option<String>,
    /// Sessions whose version here counts, whatever stands there.
    pub ours: Vec<String>,
    /// What finds secrets; none when it is not asked for, as when one only looks.
    pub check: Option<Check>,
    /// What a secret means.
    pub on_find: OnFind,
}

/// What a sync would do.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// What is told of it.
    #[serde(flatten)]
    pub told: Outcome,
    #[serde(skip)]
    todo: Vec<Todo>,
    #[serde(skip)]
    record: Record,
}

/// So often a session is compared anew that was written to while it was sent.
const ATTEMPTS: usize = 3;

/// What has to be done.
///
/// # Errors
/// An index that can not be read, a record of a newer program, a session whose version here shall count and whose lease
/// is not ours; interruption.
pub fn plan(home: &Home, relay: &Relay, request: &Request, context: &Context) -> Result<Plan> {
    if relay.mode == RelayMode::Hardlink {
        refuse_across_filesystems(home, relay)?;
    }
    for id in &request.ours {
        refuse_without_lease(relay, id)?;
    }
    let index = Index::read(home)?;
    let record = Record::read(home, &relay.path, &relay.device.id)?;
    let considering = Considering::new(home, relay, request, &record, context)?;
    let wanted: Vec<&Entry> = index
        .entries()
        .filter(|entry| is_wanted(entry, request.tag.as_deref()))
        .collect();
    for id in &request.ours {
        if !wanted.iter().any(|entry| entry.id() == id) {
            return Err(Error::failed(format!(
                "`{}` carries no sync tag, or is not active, so it does not belong into the relay",
                human::name(id)
            )));
        }
    }
    let leaving: Vec<(&String, &Put)> = record
        .sessions
        .iter()
        .filter(|(id, put)| {
            request.tag.as_ref().is_none_or(|tag| *tag == put.tag)
                && !index.find(id).is_some_and(|entry| is_wanted(entry, None))
        })
        .collect();
    let total = Total {
        items: (wanted.len() + leaving.len()) as u64,
        bytes: 0,
    };
    context.progress.stage("comparing", total);
    let clashes = considering.clashes(&wanted);
    let stay = wanted.par_iter().map(|entry| {
        let done = considering.wanted(entry, &clashes);
        context.progress.advance(1, 0);
        done
    });
    let go = leaving.par_iter().map(|(id, put)| {
        let done = considering.leaving(id, put, &index);
        context.progress.advance(1, 0);
        done
    });
    let todo: Result<Vec<Todo>> = stay.chain(go).collect();
    context.progress.finish();
    let mut todo = todo?;
    todo.sort_by(|a, b| a.session.id.cmp(&b.session.id));
    let strangers: Vec<Stranger> = strangers(relay, &record, &index)?;
    Ok(Plan {
        told: Outcome::new(
            relay,
            todo.iter().map(|todo| todo.session.clone()),
            strangers,
        ),
        todo,
        record,
    })
}

fn is_wanted(entry: &Entry, tag: Option<&str>) -> bool {
    let own = entry.sync_tag().filter(|own| !own.is_empty());
    entry.status().is_active() && own.is_some_and(|own| tag.is_none_or(|tag| tag == own))
}

fn refuse_across_filesystems(home: &Home, relay: &Relay) -> Result<()> {
    let here = disk::stat(&home.sessions())?.map(|meta| meta.dev);
    let there = relay.root.meta().ok().map(|meta| meta.dev);
    match here == there {
        true => Ok(()),
        false => Err(Error::failed(
            "the relay is on another filesystem than the home, and hard links can not lead there:",
        )
        .at(&relay.path)
        .hint(format!(
            "`wbhome relay init {} --mode clone` copies instead",
            human::quoted(&relay.path)
        ))),
    }
}

fn refuse_without_lease(relay: &Relay, id: &str) -> Result<()> {
    let quoted = human::quoted(std::path::Path::new(id));
    match relay.devices.holder(id) {
        Some(holder) if holder.ours => Ok(()),
        Some(holder) => Err(Error::failed(format!(
            "`{}` is held by {} since {}, so its version there is not replaced",
            human::name(id),
            human::name(&holder.name),
            holder.since
        ))
        .hint(format!(
            "`wbhome lease steal {quoted}` explains what that would mean"
        ))),
        None => Err(Error::failed(format!(
            "nobody holds the lease of `{}`, so its version there is not replaced",
            human::name(id)
        ))
        .hint(format!("`wbhome lease take {quoted}` first"))),
    }
}

/// Does it.
///
/// # Errors
/// A relay that can not be written at all, a record that can not be written; interruption. What was done until then is
/// recorded.
pub fn apply(
    home: &LockedHome,
    relay: &mut Relay,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let mut work = plan.todo.iter().filter_map(|todo| todo.work.as_ref());
    let touches = work.any(|work| !matches!(work, Work::Record { .. }));
    let work = plan.todo.iter().any(|todo| todo.work.is_some());
    if touches && !disk::may_write(&relay.root) {
        return Err(Error::failed("the relay folder can not be written to:").at(&relay.path));
    }
    clear_leftovers(relay)?;
    let mut ended = true;
    if work {
        ended = carry_all(home, relay, &mut plan, request, context)?;
    }
    if touches {
        disk::sync_filesystem(&relay.root)
            .map_err(|e| Error::io("can not write to the disk what is in", &relay.path, e))?;
        failpoint::hit("relay.synced");
    }
    let stopped = context.stop.raised();
    // What the log says of a session counts until that was seen to.
    let seen_to = |id: &String| {
        let todo = plan.todo.iter().find(|todo| todo.session.id == *id);
        todo.is_some_and(|todo| todo.session.state != State::Held)
    };
    ended = ended && plan.record.begun.keys().all(seen_to);
    if work || plan.record.broken || !plan.record.begun.is_empty() {
        let device = relay.device.id.clone();
        plan.record
            .write(home, &relay.path, &device, ended && !stopped, context)?;
    }
    if !stopped {
        speak(home, relay, &plan.record)?;
        settle_leases(home, relay, &mut plan.told, context)?;
    }
    context
        .stop
        .check()
        .map_err(|e| e.hint("what was sent until then is recorded; `wbhome relay sync` goes on"))?;
    let Plan { mut told, todo, .. } = plan;
    told.settle(todo.into_iter().map(|todo| todo.session));
    Ok(told)
}

/// Carries session by session, on all cores. Whether all that was begun came to its end.
fn carry_all(
    home: &LockedHome,
    relay: &Relay,
    plan: &mut Plan,
    request: &Request,
    context: &Context,
) -> Result<bool> {
    let log = Log::open(home, &relay.path)?;
    let sessions = Dir::open(home.sessions())
        .map_err(|e| Error::io("can not open the folder", home.sessions(), e))?;
    let bytes = plan.todo.iter().map(|todo| todo.session.bytes).sum();
    let items = plan.todo.iter().filter(|todo| todo.work.is_some()).count();
    let total = Total {
        items: items as u64,
        bytes,
    };
    context.progress.stage("sending", total);
    let record = &plan.record;
    let one = |todo: &mut Todo| -> (String, Option<Option<Put>>, bool) {
        let id = todo.session.id.clone();
        let Some(work) = todo.work.take() else {
            return (id, None, true);
        };
        let sending = Sending {
            home,
            relay,
            sessions: &sessions,
            log: &log,
            record,
            request,
            context,
        };
        let bytes = todo.session.bytes;
        let (put, ended) = sending.run(todo, work);
        context.progress.advance(1, bytes);
        (id, put, ended)
    };
    let done: Vec<_> = plan.todo.par_iter_mut().map(one).collect();
    context.progress.finish();
    let mut all = true;
    for (id, put, ended) in done {
        all &= ended;
        match put {
            Some(Some(put)) => drop(plan.record.sessions.insert(id, put)),
            Some(None) => drop(plan.record.sessions.remove(&id)),
            None => {}
        }
    }
    Ok(all)
}

/// What is needed to send one session.
struct Sending<'a> {
    home: &'a LockedHome,
    relay: &'a Relay,
    sessions: &'a Dir,
    log: &'a Log,
    record: &'a Record,
    request: &'a Request,
    context: &'a Context<'a>,
}

impl Sending<'_> {
    /// What has to be recorded of it (`Some(None)`: nothing any more), and whether all that was begun came to its end.
    fn run(&self, todo: &mut Todo, mut work: Work) -> (Option<Option<Put>>, bool) {
        for attempt in 1.. {
            match self.attempt(todo, work) {
                Ok(put) => return (Some(put), true),
                Err(Stuck::Restless(_)) if attempt < ATTEMPTS => {}
                Err(stuck) => {
                    if !matches!(stuck, Stuck::Stopped) {
                        todo.session.hold(Why::Failed, Some(stuck.told()));
                    }
                    return (None, false);
                }
            }
            match self.again(todo) {
                Ok(Some(next)) => work = next,
                Ok(None) => return (None, false),
                Err(error) => {
                    todo.session.hold(Why::Failed, Some(error.to_string()));
                    return (None, false);
                }
            }
        }
        (None, false)
    }

    /// Compares a session anew, that was written to meanwhile.
    fn again(&self, todo: &mut Todo) -> Result<Option<Work>> {
        let index = Index::read(self.home)?;
        let record = self.record;
        let considering =
            Considering::new(self.home, self.relay, self.request, record, self.context)?;
        let Some(entry) = index.find(&todo.session.id) else {
            return Ok(None);
        };
        *todo = considering.wanted(entry, &Default::default())?;
        Ok(todo.work.take())
    }

    fn attempt(&self, todo: &Todo, work: Work) -> Result<Option<Put>, Stuck> {
        let id = todo.session.id.as_str();
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
            Work::Record { put } => Ok(Some(put)),
            Work::Carry {
                mut put,
                mut compared,
                is_there,
                former_link,
            } => {
                if compared.overrides {
                    self.keep(id)?;
                }
                if let Some(link) = former_link {
                    carrying.unlink(&link)?;
                }
                carrying.run(&mut compared, is_there)?;
                put.names = carried(compared);
                put.at = self.context.clock.now();
                Ok(Some(put))
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
                Ok(Some(put))
            }
            Work::Leave {
                compared,
                former_link,
            } => {
                match former_link {
                    Some(link) => carrying.unlink(&link)?,
                    None => carrying.clear(&compared)?,
                }
                Ok(None)
            }
        }
    }

    /// What stands in the relay and has to make way goes to the trash of the home: it may be the only copy.
    fn keep(&self, id: &str) -> Result<(), Stuck> {
        use std::path::Path;
        let at = Path::new("sessions").join(id);
        let fail = |e| Stuck::Io(at.clone(), e);
        if self.relay.root.find(id.as_ref()).map_err(fail)?.is_none() {
            return Ok(());
        }
        let note = Note {
            why: "the version of the relay, which `relay sync --ours` has replaced".to_owned(),
            at: self.context.clock.now().to_string(),
            command: Some("relay sync".to_owned()),
            was: vec![Was::new(&at)],
            ..Note::default()
        };
        let act = trash::open(self.home, note, self.context).map_err(Stuck::Log)?;
        let folder = self.home.trash().join(act);
        let keep = || {
            let to = Dir::open(&folder)?.make_beneath(Path::new("sessions"))?;
            let (root, name) = (&self.relay.root, id.as_ref());
            disk::duplicate_tree(root, name, &to, name, self.context.stop)?;
            disk::sync_filesystem(&to)
        };
        keep().map_err(fail)
    }
}

/// Folders that a kill has left of sessions that this device was building.
fn clear_leftovers(relay: &Relay) -> Result<()> {
    let fail = |e| Error::io("can not clear the relay folder", &relay.path, e);
    let prefix = temporary_of(&relay.device.id);
    for (name, _) in relay.root.names().map_err(fail)? {
        if name.to_str().is_some_and(|name| name.starts_with(&prefix)) {
            disk::remove_tree(&relay.root, &name).map_err(fail)?;
        }
    }
    Ok(())
}

/// Gives up leases that count no more: those on which another device has a better claim, and those of sessions that do
/// not travel any more.
fn settle_leases(
    home: &LockedHome,
    relay: &mut Relay,
    told: &mut Outcome,
    context: &Context,
) -> Result<()> {
    let overtaken = overtaken(&relay.devices);
    let gone = without_session(home, relay)?;
    if !overtaken.is_empty() || !gone.is_empty() {
        let lost = overtaken.iter().map(|(session, ..)| session.as_str());
        give_up(relay, lost.chain(gone.iter().map(String::as_str)))?;
    }
    told.released = gone;
    told.overtaken = overtaken
        .into_iter()
        .map(|(session, _, holder)| Overtaken { session, holder })
        .collect();
    note(home, relay, context)
}

/// Tells the other devices what has been sent, when that is something new.
fn speak(home: &Home, relay: &mut Relay, record: &Record) -> Result<()> {
    let Some(own) = relay.devices.own() else {
        return Ok(());
    };
    let mut said = own.clone();
    // It may have been moved since.
    said.path = ExactPath::from(disk::real_path(home.root())?);
    said.sessions = record
        .sessions
        .iter()
        .map(|(id, put)| {
            let sent = Sent {
                tag: put.tag.clone(),
                at: put.at,
                version: match put.mode {
                    // What a link shows may be another by now.
                    RelayMode::Symlink => String::new(),
                    _ => version(
                        put.names
                            .iter()
                            .map(|(path, noted)| (&**path, &noted.holds)),
                    ),
                },
            };
            (id.clone(), sent)
        })
        .collect();
    if !said.leases.is_empty() {
        said.beat = said.beat.saturating_add(1);
    }
    match said == *own {
        true => Ok(()),
        false => relay.say(&said),
    }
}

impl State {
    /// Whether it stands for a session that is in the relay as it should be.
    pub fn is_settled(self) -> bool {
        !matches!(self, State::Held)
    }
}
