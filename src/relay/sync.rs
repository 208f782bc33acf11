//! `wbhome relay sync`: the relay becomes exactly the active sessions that carry a sync tag.
//!
//! Each session goes its way alone (`consider`, `carry`): one that is held back stops
//! no other. A session is sent whole or not at all: where somebody else has changed a part of it, nothing of it is sent,
//! so that two versions never mix.

mod sending;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rayon::prelude::*;
use serde::Serialize;

use self::sending::{Recorded, Sending};
use super::carry::temporary_of;
use super::consider::{Considering, Todo, Work};
use super::devices::Sent;
use super::lapse::{give_up, overtaken, without_session};
use super::outcome::{Outcome, Overtaken, Session, State};
use super::place::Relay;
use super::record::{Begun, Log, Put, Record, merge, version};
use super::seen::note;
use super::strangers::{Stranger, strangers};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, Total, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::{Entry, Home, Index, LockedHome, OnFind, RelayMode};
use crate::secrets::Check;

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// Only sessions with this sync tag.
    pub tag: Option<String>,
    /// Sessions whose version here counts, whatever stands there.
    pub ours: BTreeSet<String>,
    /// What finds secrets, also in names that are told; none where nothing is told.
    pub check: Option<Check>,
    /// Whether what would leave is searched. Whoever only looks does not.
    pub search: bool,
    /// Whether all sessions may leave because none carries a sync tag any more.
    pub all_may_leave: bool,
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
        relay.refuse_unleased(id, context)?;
    }
    let index = Index::read(home)?;
    let record = Record::read(home, &relay.path, &relay.device.id)?;
    let considering = Considering::new(home, relay, request, &record, context)?;
    let wanted: Vec<&Entry> = index
        .entries()
        .filter(|entry| {
            entry.travels()
                && request
                    .tag
                    .as_deref()
                    .is_none_or(|tag| entry.sync_tag() == Some(tag))
        })
        .collect();
    let names: HashSet<&str> = wanted.iter().map(|entry| entry.id()).collect();
    for id in &request.ours {
        if !names.contains(id.as_str()) {
            return Err(Error::failed(format!(
                "`{}` carries no sync tag, or is not active, so it does not belong into the relay",
                human::name(id)
            )));
        }
    }
    let travel: HashSet<&str> = index
        .entries()
        .filter(|entry| entry.travels())
        .map(Entry::id)
        .collect();
    let leaving: Vec<(&String, &Put)> = record
        .puts()
        .filter(|(id, put)| {
            request.tag.as_ref().is_none_or(|tag| *tag == put.tag) && !travel.contains(id.as_str())
        })
        .collect();
    let untagged = |(id, _): &&(&String, &Put)| {
        let entry = index.find(id);
        entry.is_some_and(|entry| entry.status().is_active())
    };
    let untagged = leaving.iter().filter(untagged).count();
    // One that is untagged by hand leaves others, or at least their labels.
    let unlabelled = || index.entries().all(is_unlabelled);
    if travel.is_empty()
        && (untagged > 1 || untagged == 1 && unlabelled())
        && !request.all_may_leave
    {
        return Err(all_would_leave(relay, untagged));
    }
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
            todo.iter().map(|todo| shown(&todo.session, request)),
            strangers,
        ),
        todo,
        record,
    })
}

fn is_unlabelled(entry: &Entry) -> bool {
    entry.title().is_none() && entry.project().is_none() && entry.tags().is_empty()
}

/// An index that was made anew knows no tags. That is not what a person means by taking them away.
fn all_would_leave(relay: &Relay, sessions: usize) -> Error {
    let sessions = human::plural(sessions as u64, "session", "sessions");
    Error::failed(format!(
        "no session carries a sync tag any more, so {sessions} would leave the relay:"
    ))
    .at(&relay.path)
    .hint("if the index was made anew: `git show HEAD:index.json` in the home shows the tags of the last commit, and `wbhome label SESSION --sync-tag TAG` sets one")
    .hint("if that is meant: `wbhome relay sync --yes`")
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

/// As it may be told: names that hold a secret are cut off there.
fn shown(session: &Session, request: &Request) -> Session {
    let mut session = session.clone();
    if let Some(check) = &request.check {
        session.hide(check);
    }
    session
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
    let mut log = None;
    if work {
        log = Some(carry_all(home, relay, &mut plan, request, context)?);
    }
    if touches {
        disk::sync_filesystem(&relay.root)
            .map_err(|e| Error::io("can not write to the disk what is in", &relay.path, e))?;
        failpoint::hit("relay.synced");
    }
    let stopped = context.stop.raised();
    if work || plan.record.broken || !plan.record.begun.is_empty() {
        let device = relay.device.id.clone();
        let begun = not_seen_to(&plan, log.as_ref());
        plan.record
            .write(home, &relay.path, &device, &begun, context)?;
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
    told.settle(todo.iter().map(|todo| shown(&todo.session, request)));
    Ok(told)
}

/// What was begun of sessions that were not seen to: it has to be known until they are.
fn not_seen_to(plan: &Plan, log: Option<&Log>) -> BTreeMap<String, Begun> {
    let settled: HashSet<&str> = plan
        .todo
        .iter()
        .filter(|todo| todo.done && todo.session.state != State::Held)
        .map(|todo| todo.session.id.as_str())
        .collect();
    let mut begun = plan.record.begun.clone();
    for todo in plan.todo.iter().filter(|todo| !todo.done) {
        let id = &todo.session.id;
        let later = log.map(|log| log.begun(id)).unwrap_or_default();
        if !later.is_empty() {
            merge(begun.entry(id.clone()).or_default(), &later);
        }
    }
    begun.retain(|id, _| !settled.contains(id.as_str()));
    begun
}

/// Carries session by session, on all cores.
fn carry_all(
    home: &LockedHome,
    relay: &Relay,
    plan: &mut Plan,
    request: &Request,
    context: &Context,
) -> Result<Log> {
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
    let one = |todo: &mut Todo| -> (String, Recorded) {
        let id = todo.session.id.clone();
        let Some(work) = todo.work.take() else {
            return (id, Recorded::AsBefore);
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
        let recorded = sending.run(todo, work);
        context.progress.advance(1, bytes);
        (id, recorded)
    };
    let done: Vec<_> = plan.todo.par_iter_mut().map(one).collect();
    context.progress.finish();
    for (id, recorded) in done {
        match recorded {
            Recorded::As(put) => drop(plan.record.sessions.insert(id, *put)),
            Recorded::Nothing => drop(plan.record.sessions.remove(&id)),
            Recorded::AsBefore => {}
        }
    }
    Ok(log)
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
                version: version(
                    put.names
                        .iter()
                        .map(|(path, noted)| (&**path, &noted.holds)),
                ),
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
