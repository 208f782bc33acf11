//! What is told of a sync, and of what one would do: session by session, in classes that add up.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::compare::{Difference, Happened, Leak};
use super::devices::Holder;
use super::names::BadName;
use super::place::Relay;
use super::strangers::Stranger;
use crate::base::Exit;
use crate::base::wire::WirePath;
use crate::disk;
use crate::home::RelayMode;
use crate::secrets::Check;

/// What becomes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The relay holds it as it is here.
    Same,
    /// It comes into the relay.
    Sent,
    /// What has changed of it does.
    Updated,
    /// It leaves the relay.
    Removed,
    /// It does not belong into the relay any more, and somebody else has changed it there: it is theirs, and stays.
    Left,
    /// Nothing is done with it; `why` says why.
    Held,
}

/// Why nothing is done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Another device holds its lease.
    Lease,
    /// Somebody else has changed it in the relay.
    ChangedThere,
    /// A secret is in what would leave.
    Secret,
    /// Names that sync clients drop.
    Name,
    /// Its own name is, but for case or Unicode form, that of another session.
    Clash,
    /// Something of it could not be read.
    Unreadable,
    /// Its folder is not here, though nobody has removed it.
    MissingHere,
    /// All of its files are gone here, and those in the relay may be the last.
    EmptiedHere,
    /// It was tried, and did not succeed.
    Failed,
}

/// A session, and what becomes of it.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its sync tag; none when it has none any more.
    pub tag: Option<String>,
    /// What becomes of it.
    pub state: State,
    /// Why nothing does, if so.
    pub why: Option<Why>,
    /// The cause in words, where there is more to say.
    pub detail: Option<String>,
    /// Names that come into the relay.
    pub added: u64,
    /// Names that are replaced there.
    pub replaced: u64,
    /// Names that go there.
    pub removed: u64,
    /// Bytes that come.
    pub bytes: u64,
    /// Who holds its lease, when another device does.
    pub holder: Option<Holder>,
    /// Whether it was changed here since it was sent.
    pub changed_here: bool,
    /// When, as far as it tells.
    pub changed_here_at: Option<Timestamp>,
    /// What somebody else has changed there.
    pub differences: Vec<Difference>,
    /// Secrets that were found.
    pub leaks: Vec<Leak>,
    /// Findings that `[secrets] allow` passes over.
    pub allowed: u64,
    /// Names that can not travel.
    pub bad_names: Vec<BadName>,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
    /// What is neither file, folder nor link, and stays here.
    pub left_out: Vec<WirePath>,
    /// Files that were written to while here and there they are one file.
    pub written_through: u64,
    /// The act of the trash that holds what stood in the relay and had to make way.
    pub kept: Option<String>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

impl Session {
    /// A session that is in the relay as it should be.
    pub fn new(id: &str, tag: Option<&str>) -> Session {
        Session {
            id: id.to_owned(),
            tag: tag.map(str::to_owned),
            state: State::Same,
            why: None,
            detail: None,
            added: 0,
            replaced: 0,
            removed: 0,
            bytes: 0,
            holder: None,
            changed_here: false,
            changed_here_at: None,
            differences: Vec::new(),
            leaks: Vec::new(),
            allowed: 0,
            bad_names: Vec::new(),
            unreadable: Vec::new(),
            left_out: Vec::new(),
            written_through: 0,
            kept: None,
        }
    }

    /// What becomes of it, in a word or two.
    pub fn word(&self) -> &'static str {
        match (self.state, self.why) {
            (State::Same, _) => "same",
            (State::Sent, _) => "not sent yet",
            (State::Updated, _) => "changed here",
            (State::Removed, _) => "to remove",
            (State::Left, _) => "left to others",
            (State::Held, Some(Why::Lease)) => "held",
            (State::Held, Some(Why::ChangedThere)) => self.changed(),
            (State::Held, Some(Why::Secret)) => "a secret",
            (State::Held, Some(Why::Name)) => "a bad name",
            (State::Held, Some(Why::Clash)) => "a clash of names",
            (State::Held, Some(Why::Unreadable)) => "unreadable",
            (State::Held, Some(Why::MissingHere)) => "missing here",
            (State::Held, Some(Why::EmptiedHere)) => "emptied here",
            (State::Held, Some(Why::Failed) | None) => "failed",
        }
    }

    fn changed(&self) -> &'static str {
        let here = self.changed_here;
        let deleted =
            |d: &Difference| d.path.as_os_str().is_empty() && d.there == Happened::Deleted;
        match (here, self.differences.iter().any(deleted)) {
            (_, true) => "deleted there",
            (true, _) => "changed on both sides",
            (false, _) => "changed there",
        }
    }

    /// Whether nothing but files under temporary names differs there, which neither a fetch nor a take looks at.
    pub fn differs_in_temporary_names(&self) -> bool {
        self.differences.iter().all(|one| {
            let name = one.path.file_name();
            name.is_some_and(|name| {
                let name = name.as_encoded_bytes();
                name.starts_with(disk::TEMPORARY_PREFIX.as_bytes())
            })
        })
    }

    /// Cuts off each name at a secret that it holds.
    pub(super) fn hide(&mut self, check: &Check) {
        let hide = |path: &mut WirePath| *path = check.shown(path).into();
        self.id = shown(&self.id, check);
        self.tag = self.tag.take().map(|tag| shown(&tag, check));
        self.differences
            .iter_mut()
            .for_each(|one| hide(&mut one.path));
        self.unreadable
            .iter_mut()
            .for_each(|one| hide(&mut one.path));
        self.left_out.iter_mut().for_each(hide);
        for bad in &mut self.bad_names {
            let shown: WirePath = check.shown(&bad.path).into();
            if shown != bad.path {
                bad.suggestion = None;
            }
            bad.path = shown;
        }
    }

    /// Says that nothing is done with it.
    pub fn hold(&mut self, why: Why, detail: Option<String>) {
        self.state = State::Held;
        self.why = Some(why);
        self.detail = detail;
        (self.added, self.replaced, self.removed, self.bytes) = (0, 0, 0, 0);
    }
}

/// A text that is cut off at a secret.
fn shown(text: &str, check: &Check) -> String {
    let shown = check.shown(Path::new(text));
    shown.to_string_lossy().into_owned()
}

/// What a sync has done, or would do.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The relay.
    #[serde(flatten)]
    pub relay: WirePath,
    /// How sessions get there.
    pub mode: RelayMode,
    /// Session by session, in order of their ids.
    pub sessions: Vec<Session>,
    /// Sessions in the relay that others have put there.
    pub strangers: Vec<Stranger>,
    /// Leases that this device had and has given up: another one has a better claim.
    pub overtaken: Vec<Overtaken>,
    /// Leases that it has given up because the session does not travel any more.
    pub released: Vec<String>,
}

/// A lease that this device has lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overtaken {
    /// The session.
    pub session: String,
    /// Who holds it; `None` when another device has had it since, and has let go of it.
    pub holder: Option<Holder>,
}

impl Outcome {
    pub(super) fn new(
        relay: &Relay,
        sessions: impl Iterator<Item = Session>,
        strangers: Vec<Stranger>,
    ) -> Outcome {
        Outcome {
            relay: relay.path.clone().into(),
            mode: relay.mode,
            sessions: sessions.collect(),
            strangers,
            overtaken: Vec::new(),
            released: Vec::new(),
        }
    }

    /// Takes over what came of each session.
    pub(super) fn settle(&mut self, sessions: impl Iterator<Item = Session>) {
        self.sessions = sessions.collect();
    }

    /// How many sessions are in a state.
    pub fn count(&self, state: State) -> u64 {
        self.sessions.iter().filter(|s| s.state == state).count() as u64
    }

    /// Sessions that were held back and that somebody has to see to: that another device holds a lease is as it should
    /// be.
    pub fn stuck(&self) -> impl Iterator<Item = &Session> {
        self.sessions
            .iter()
            .filter(|s| s.state == State::Held && s.why != Some(Why::Lease))
    }

    /// What came of it, as an exit code.
    pub fn exit(&self) -> Exit {
        match self.stuck().next() {
            Some(_) => Exit::Partial,
            None => Exit::Done,
        }
    }
}
