//! Who is at work in a home right now: agents by the registry, and whoever has a file open for writing.
//!
//! Here alone is decided what it means that an agent is at work in a session: its folder lies in the session, or it
//! works on the session's conversation, wherever that may be. One that works in the home itself, or nobody knows where,
//! may be at work in any of them.

use std::path::{Path, PathBuf};

use super::Agent;
use crate::base::human;
use crate::disk::{self, OpenFile};

/// A look at who is at work in a home.
#[derive(Debug)]
pub struct AtWork<'a> {
    /// Folders of the home, each with its path without links.
    root: [PathBuf; 2],
    sessions: [PathBuf; 2],
    agents: Vec<Placed<'a>>,
    writing: Vec<OpenFile>,
    /// Folders in which somebody works, or that somebody has open.
    inside: Vec<OpenFile>,
}

/// An agent that is at work, with its folder by the letter and without links.
#[derive(Debug)]
struct Placed<'a> {
    agent: &'a Agent,
    cwd: Vec<PathBuf>,
}

/// A process whose current folder, or a folder that it has open, lies in a session.
pub fn works_in(program: &str, pid: u32) -> String {
    format!(
        "{} (process {pid}) works in its folder",
        human::name(program)
    )
}

impl<'a> AtWork<'a> {
    /// Looks once, at the agents of the registry and at all processes that let us. `root` is the home.
    pub fn look(root: &Path, agents: &'a [Agent]) -> AtWork<'a> {
        let mut at_work = AtWork::by_registry(root, agents);
        let open = disk::open_below(&at_work.root[1]);
        at_work.writing = open.seen;
        at_work.writing.retain(|file| file.writing);
        at_work.inside = open.folders;
        at_work
    }

    /// Like [`AtWork::look`], at the agents of the registry alone.
    pub fn by_registry(root: &Path, agents: &'a [Agent]) -> AtWork<'a> {
        let both = |path: &Path| {
            let real = disk::real_path(path).unwrap_or_else(|_| path.to_path_buf());
            [path.to_path_buf(), real]
        };
        let placed = |agent: &'a Agent| {
            let cwd = agent.cwd.as_deref().filter(|cwd| cwd.is_absolute());
            Placed {
                agent,
                cwd: cwd.map(both).into_iter().flatten().collect(),
            }
        };
        let mut agents: Vec<Placed> = agents
            .iter()
            .filter(|agent| agent.is_at_work())
            .map(placed)
            .collect();
        // Of several, the one that showed a sign of life last comes first.
        agents.sort_by_key(|placed| {
            std::cmp::Reverse((placed.agent.last_heartbeat, placed.agent.pid))
        });
        AtWork {
            root: both(root),
            sessions: both(&root.join("sessions")),
            agents,
            writing: Vec::new(),
            inside: Vec::new(),
        }
    }

    /// The agent that works in this folder or below it, or on this conversation, or may do so, in words that follow
    /// `because`.
    pub fn agent_in_session(&self, folder: &Path, session_id: Option<&str>) -> Option<String> {
        if let Some(agent) = self.agent_on(folder, session_id) {
            return Some(format!("an agent (process {}) is at work in it", agent.pid));
        }
        self.anywhere()
    }

    /// The agent that is known to work in this folder or below it, or on this conversation.
    pub fn agent_on(&self, folder: &Path, session_id: Option<&str>) -> Option<&'a Agent> {
        let folder = [folder.to_path_buf(), self.without_links(folder)];
        let is_in = |placed: &&Placed| {
            let within = |cwd: &PathBuf| folder.iter().any(|folder| cwd.starts_with(folder));
            placed.cwd.iter().any(within)
        };
        let by_folder = self.agents.iter().find(is_in);
        let by_identity = || {
            let id = session_id?;
            let mut agents = self.agents.iter();
            agents.find(|placed| placed.agent.session_id.as_deref() == Some(id))
        };
        Some(by_folder.or_else(by_identity)?.agent)
    }

    /// The agent that may be at work in any session: in the home itself, or nobody knows where.
    pub fn anywhere(&self) -> Option<String> {
        let lost = self.agents.iter().map(|placed| placed.agent);
        if let Some(agent) = lost.clone().find(|agent| agent.is_at_work_somewhere()) {
            return Some(format!(
                "an agent (process {}) runs, and where can not be read: {}",
                agent.pid,
                human::path(&agent.file)
            ));
        }
        let in_home = |cwd: &PathBuf| self.root.contains(cwd) || self.sessions.contains(cwd);
        let mut agents = self.agents.iter();
        let placed = agents.find(|placed| placed.cwd.iter().any(in_home))?;
        Some(format!(
            "an agent (process {}) is at work in the home itself",
            placed.agent.pid
        ))
    }

    /// A folder of the home by way of the real path of the home; no link below that is followed.
    fn without_links(&self, folder: &Path) -> PathBuf {
        for [letter, real] in [&self.sessions, &self.root] {
            if let Ok(rest) = folder.strip_prefix(letter) {
                return real.join(rest);
            }
        }
        folder.to_path_buf()
    }

    /// Who has this folder, or one below it, as their current folder or open, in words that follow `because`.
    pub fn worker_in(&self, folder: &Path) -> Option<String> {
        let folder = self.without_links(folder);
        let mut inside = self.inside.iter();
        let worker = inside.find(|open| open.path.starts_with(&folder))?;
        Some(works_in(&worker.program, worker.pid))
    }

    /// Who has this file, or one below this folder, open for writing, in words that follow `because`.
    pub fn writer_of(&self, path: &Path) -> Option<String> {
        let path = self.without_links(path);
        let file = self
            .writing
            .iter()
            .find(|file| file.path.starts_with(&path))?;
        let program = human::name(&file.program);
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
