//! What only the application's registry knows: an agent that is running in a folder that has gone.
//!
//! It goes on in a folder without a name; what it writes there is lost, and `session.json` may say nothing of it.

use std::path::{Component, Path, PathBuf};

use super::{Finding, FindingKind, Options, Outcome};
use crate::base::human;
use crate::disk;
use crate::home::{Home, Index};
use crate::state::Agent;

/// Adds a finding for each running agent of this home whose working folder is not there.
pub fn add_running(
    home: &Home,
    agents: &[Agent],
    index: Option<&Index>,
    options: &Options,
    outcome: &mut Outcome,
) {
    let found = agents
        .iter()
        .filter(|agent| agent.is_running() && !agent.is_prewarm())
        .filter_map(|agent| wrong_cwd(home, agent, index))
        .filter(|finding| options.covers(&finding.path))
        .collect::<Vec<_>>();
    outcome.add(found);
}

fn wrong_cwd(home: &Home, agent: &Agent, index: Option<&Index>) -> Option<Finding> {
    let cwd = agent.cwd.as_deref()?;
    // What can not be looked at (another user's folder, a name too long) may be there.
    if !cwd.is_absolute() || !matches!(disk::stat(cwd), Ok(None)) {
        return None;
    }
    let session = session_of(home, agent, cwd, index)?;
    let detail = format!(
        "an agent (process {}) is running in {}, which is not there",
        agent.pid,
        human::path(cwd)
    );
    Some(Finding::new(FindingKind::WrongCwd, session, detail))
}

/// The session of this home that an agent works on; `None` when it has nothing to do with this home.
fn session_of(home: &Home, agent: &Agent, cwd: &Path, index: Option<&Index>) -> Option<PathBuf> {
    let sessions = Path::new("sessions");
    if let Some(name) = home.session_at(cwd) {
        return Some(sessions.join(name));
    }
    let by_identity = || {
        let identity = agent.session_id.as_deref()?;
        let mut entries = index?.entries();
        let entry = entries.find(|entry| entry.session_id() == Some(identity))?;
        Some(sessions.join(entry.session().ok()?.as_str()))
    };
    // The folder that the home was moved from: `<anywhere>/sessions/<an id that is here>`.
    let by_name = || {
        let mut parts = cwd.components();
        parts.find(|part| *part == Component::Normal("sessions".as_ref()))?;
        let session = sessions.join(parts.next()?);
        disk::is_folder(&home.root().join(&session)).then_some(session)
    };
    by_identity().or_else(by_name)
}
