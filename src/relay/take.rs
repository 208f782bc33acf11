//! `wbhome relay take`: the relay's version of a session becomes the home's own, on a person's word.
//!
//! It is copied beside its place and compared; the relay is looked at again, and when it is still the same the former
//! version goes into the trash and the new one takes its place, by journaled steps: a kill leaves the one or the other.
//! What the relay leaves out, such as logs and what file managers leave, is carried over from the former one.

use std::path::Path;

use serde::Serialize;

use super::devices::Holder;
use super::place::Relay;
use super::standing::Side;
use super::version::{self, Odd, Sender};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Stop, human};
use crate::disk::{Dir, FileKind};
use crate::home::mend;
use crate::home::{
    Entry, Home, Index, IndexFile, LOGS, Record, SessionId, candidates, is_log, matching,
};
use crate::sessions::new::check_tag;
use crate::state::Agent;

mod apply;
mod compare;
mod former;
mod refuse;
mod settle;
mod warn;

pub use apply::{Outcome, apply};
use compare::Compared;
pub use compare::{Change, State, Turn};
use refuse::{refuse_archived, refuse_at_work};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The session, as a person names it.
    pub session: String,
    /// The sync tag that it gets.
    pub sync_tag: Option<String>,
    /// Also a version that looks as if it were still on its way.
    pub force: bool,
}

/// How much is carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Files and links.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// What would become of the session.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The session.
    #[serde(rename = "id")]
    pub session: SessionId,
    /// The relay.
    pub relay: WirePath,
    /// Who has sent the version; none when no other device says so.
    pub sender: Option<Sender>,
    /// Who holds the lease; when something differs, it is this device.
    pub lease: Option<Holder>,
    /// Whether the home does not have its folder.
    pub new: bool,
    /// Files and links that differ; none when there is nothing to do.
    pub changes: Vec<Change>,
    /// Files and links of the version.
    pub files: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The logs here, which the relay leaves out, and which stay.
    pub kept: Kept,
    /// FIFOs, sockets and devices in the relay, which do not come.
    pub left_out: Vec<Odd>,
    /// FIFOs, sockets and devices here, which go into the trash with the former version.
    pub left_behind: Vec<Odd>,
    /// Links of the version that lead out of the session.
    pub leading_out: Vec<Odd>,
    /// The sync tag that it gets; none when it keeps what it has.
    pub sync_tag: Option<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
    #[serde(skip)]
    here: Option<Side>,
    #[serde(skip)]
    there: Side,
    #[serde(skip)]
    compared: Compared,
    /// What the version says of itself.
    #[serde(skip)]
    record: Option<Record>,
    /// Whether logs are no part of what travels.
    #[serde(skip)]
    without_logs: bool,
}

impl Plan {
    /// Whether the home's own version is that of the relay already.
    pub fn is_nothing(&self) -> bool {
        !self.new && self.changes.is_empty()
    }

    /// Whether the logs of the version make way for those that are here.
    fn keeps_logs(&self) -> bool {
        let here = self.here.as_ref();
        self.without_logs && here.is_some_and(|here| here.items.contains_key(Path::new(LOGS)))
    }
}

/// What taking the version would do.
///
/// # Errors
/// A session that the relay does not have; one that is archived, or that somebody is at work in; a lease that is not
/// ours; a version that can not be read, holds nothing, or without `force` looks as if it were still on its way.
pub fn plan(
    home: &Home,
    relay: &Relay,
    request: &Request,
    agents: &[Agent],
    context: &Context,
) -> Result<Plan> {
    if let Some(tag) = &request.sync_tag {
        check_tag("sync tag", tag)?;
    }
    let id = meant(home, relay, &request.session)?;
    // It will have to be written.
    let index = IndexFile::ready(home)?;
    let here = own(home, &id, context.stop)?;
    refuse_archived(home, &id, here.is_some())?;
    let there = version::open(home, relay, &id, context.stop)?;
    let plan = compared(relay, &index, id, here, there, request, context)?;
    if plan.is_nothing() {
        return Ok(plan);
    }
    relay.refuse_unleased(plan.session.as_str(), context)?;
    plan.refuse_unread(home, relay)?;
    plan.refuse_alike(home)?;
    let record = Record::read(&plan.there.dir);
    plan.refuse_empty(relay)?;
    if !request.force {
        plan.refuse_half(relay, &record, context)?;
        plan.refuse_another(home, &index, relay, &record)?;
    }
    refuse_at_work(home, &index, &plan.session, agents)?;
    // With `force` a torn record costs the entry its details, and nothing else.
    let record = record.unwrap_or_default();
    let mut plan = Plan { record, ..plan };
    plan.warn(&index);
    Ok(plan)
}

/// The session that is meant: one of the relay, else one of the home, which the relay then does not have.
fn meant(home: &Home, relay: &Relay, query: &str) -> Result<SessionId> {
    if let Some(id) = version::meant(relay, query)? {
        return Ok(id);
    }
    let Some(id) = matching(query, &candidates(home, query.starts_with('@'))?)? else {
        return Err(version::unknown(relay, query));
    };
    let fail = |e| Error::io("can not look at", relay.path.join(id.as_str()), e);
    if relay
        .root
        .find(id.as_str().as_ref())
        .map_err(fail)?
        .is_some()
    {
        return Ok(id);
    }
    let name = human::name(id.as_str());
    let (quoted, kept) = (
        human::argument(id.as_str()),
        human::argument_with(id.as_str(), "--no-sync-tag"),
    );
    let own = relay.devices.own();
    Err(match own.is_some_and(|own| own.sessions.contains_key(id.as_str())) {
        true => Error::failed(format!(
            "`{name}` is not in the relay any more: another device, or somebody, has deleted what this home had sent"
        ))
        .hint(format!("to follow: `wbhome rm {quoted}`, or without its sync tag it stays here: `wbhome label {kept}`"))
        .hint(format!("to send it again: `wbhome relay sync --ours {quoted}`")),
        false => Error::failed(format!("the relay has no version of `{name}`:"))
            .at(&relay.path)
            .hint("`wbhome relay status` lists what is there"),
    })
}

/// The session's own folder, if there is one.
fn own(home: &Home, id: &SessionId, stop: &Stop) -> Result<Option<Side>> {
    let path = Path::new("sessions").join(id.as_str());
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    match mend::look(&root, &path)? {
        None => Ok(None),
        Some(meta) if meta.kind == FileKind::Folder => {
            let dir = root
                .open_beneath(&path)
                .map_err(|e| Error::io("can not open the folder", &path, e))?;
            Side::look(dir, stop).map(Some)
        }
        Some(meta) => Err(Error::failed(format!(
            "{} stands in the way, and a session is a folder:",
            meta.kind.described()
        ))
        .at(home.session(id))
        .hint("move it away")),
    }
}

/// Looks at what differs, and what goes with it.
fn compared(
    relay: &Relay,
    index: &Index,
    id: SessionId,
    here: Option<Side>,
    there: Side,
    request: &Request,
    context: &Context,
) -> Result<Plan> {
    let apart = |path: &Path| !relay.logs && is_log(path);
    let mut compared = compare::compare(here.as_ref(), &there, &apart, context)?;
    let sender = version::sender(relay, &id);
    let entry = index.find(id.as_str());
    let special = |side: &Side| -> Vec<Odd> {
        let special = side.special.iter();
        special
            .map(|(path, kind)| Odd::new(path, kind.described()))
            .collect()
    };
    let links = there.leading_out().into_iter();
    let links = links.map(|(path, target)| Odd::new(path, human::bytes(&target)));
    let changes = std::mem::take(&mut compared.changes);
    let mut plan = Plan {
        relay: relay.path.clone().into(),
        lease: relay.devices.holder(id.as_str()),
        new: here.is_none(),
        changes,
        files: 0,
        bytes: 0,
        kept: Kept::default(),
        left_out: special(&there),
        left_behind: here.as_ref().map(special).unwrap_or_default(),
        leading_out: links.collect(),
        sync_tag: sync_tag(entry, here.is_none(), sender.as_ref(), request),
        warnings: Vec::new(),
        record: None,
        without_logs: !relay.logs,
        sender,
        session: id,
        here,
        there,
        compared,
    };
    plan.count();
    plan.warn_without_tag(entry);
    Ok(plan)
}

/// What a session of another device is tagged with when nobody says.
const TAG: &str = "relay";

/// The sync tag that a session gets. One that is new here needs one: what has none is taken out of the relay.
fn sync_tag(
    entry: Option<&Entry>,
    new: bool,
    sender: Option<&Sender>,
    request: &Request,
) -> Option<String> {
    let has = entry.and_then(Entry::sync_tag);
    let theirs = || {
        let tag = sender.map(|sender| sender.tag.clone());
        tag.filter(|tag| check_tag("sync tag", tag).is_ok())
            .unwrap_or_else(|| TAG.to_owned())
    };
    let wanted = match &request.sync_tag {
        Some(tag) => Some(tag.clone()),
        None => (new && has.is_none()).then(theirs),
    };
    wanted.filter(|wanted| has != Some(wanted))
}

impl Plan {
    fn count(&mut self) {
        let keeps_logs = self.keeps_logs();
        for (path, item) in self.there.content() {
            if !(keeps_logs && is_log(path)) {
                self.files += 1;
                self.bytes += item.bytes();
            }
        }
        if let Some(here) = self.here.as_ref().filter(|_| keeps_logs) {
            for (_, item) in here.content().filter(|(path, _)| is_log(path)) {
                self.kept.files += 1;
                self.kept.bytes += item.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests;
