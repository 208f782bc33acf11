//! Who works in a session, as a listing tells it. What that means is decided in [`crate::state::AtWork`].

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

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
