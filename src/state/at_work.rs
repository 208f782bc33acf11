//! Who is at work in a home right now: agents by the registry, and whoever has a file open for writing.

use std::path::Path;

use super::{Agent, Liveness};
use crate::base::human;
use crate::disk::{self, OpenFile};

/// A look at who is at work below a folder.
#[derive(Debug)]
pub struct AtWork<'a> {
    agents: &'a [Agent],
    writing: Vec<OpenFile>,
}

impl<'a> AtWork<'a> {
    /// Looks once, at the agents of the registry and at all processes that let us.
    pub fn look(root: &Path, agents: &'a [Agent]) -> AtWork<'a> {
        let mut writing = disk::open_below(root).seen;
        writing.retain(|file| file.writing);
        AtWork { agents, writing }
    }

    /// The agent that works in this folder or below it, in words that follow `because`.
    pub fn agent_in(&self, folder: &Path) -> Option<String> {
        let at = |cwd: &Path| {
            cwd.starts_with(folder)
                || disk::real_path(cwd).is_ok_and(|real| real.starts_with(folder))
        };
        let agent = self.agents.iter().find(|agent| {
            agent.liveness == Liveness::Running
                && !agent.is_prewarm()
                && agent.cwd.as_deref().is_some_and(at)
        })?;
        Some(format!("an agent (process {}) is at work in it", agent.pid))
    }

    /// Who has this file, or one below this folder, open for writing, in words that follow `because`.
    pub fn writer_of(&self, path: &Path) -> Option<String> {
        let file = self
            .writing
            .iter()
            .find(|file| file.path.starts_with(path))?;
        let program = human::escape(&file.program);
        let what = match file.path == path {
            true => "it",
            false => "a file of it",
        };
        Some(format!(
            "{program} (process {}) has {what} open for writing",
            file.pid
        ))
    }
}
