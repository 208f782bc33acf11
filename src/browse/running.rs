//! Which sessions somebody works in right now.
//!
//! The processes are handed in: only the application's own registry knows them, and where that lies is a matter of the
//! environment.

use std::collections::HashMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::home::{Entry, Home};
use crate::state::Agent;

/// An agent at work in a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Running {
    /// The number of its process.
    pub pid: u32,
    /// `interactive`, or another word of the application.
    pub kind: String,
    /// When it started.
    pub since: Option<Timestamp>,
    /// Its last sign of life; an old one means that it was stopped, or that the machine slept.
    pub heartbeat: Option<Timestamp>,
    /// The folder that it works in.
    pub cwd: Option<PathBuf>,
}

impl From<&Agent> for Running {
    fn from(agent: &Agent) -> Self {
        let moment = |ms: Option<i64>| Timestamp::from_millisecond(ms?).ok();
        Running {
            pid: agent.pid,
            kind: agent.kind.clone(),
            since: moment(agent.started_at),
            heartbeat: moment(agent.last_heartbeat),
            cwd: agent.cwd.clone(),
        }
    }
}

/// Agents at work, by the session that they work in.
#[derive(Default)]
pub(super) struct AtWork<'a> {
    by_folder: HashMap<String, &'a Agent>,
    by_identity: HashMap<&'a str, &'a Agent>,
}

impl<'a> AtWork<'a> {
    /// Of several in one session, the one that showed a sign of life last.
    pub(super) fn new(home: &Home, agents: &'a [Agent]) -> AtWork<'a> {
        let mut at_work = AtWork::default();
        let mut agents: Vec<&Agent> = agents
            .iter()
            .filter(|agent| agent.is_running() && !agent.is_prewarm())
            .collect();
        agents.sort_by_key(|agent| (agent.last_heartbeat, agent.pid));
        for agent in agents {
            let folder = agent.cwd.as_deref().and_then(|cwd| home.session_at(cwd));
            if let Some(folder) = folder.and_then(|name| name.into_string().ok()) {
                at_work.by_folder.insert(folder, agent);
            }
            if let Some(identity) = agent.session_id.as_deref() {
                at_work.by_identity.insert(identity, agent);
            }
        }
        at_work
    }

    /// Who works in a session: in its folder, or, wherever that may be, on its conversation.
    pub(super) fn on(&self, entry: &Entry) -> Option<Running> {
        let by_identity = || self.by_identity.get(entry.session_id()?);
        let agent = self.by_folder.get(entry.id()).or_else(by_identity)?;
        Some((*agent).into())
    }
}
