//! `wbhome ls`: the sessions, from `index.json` and the cache alone, and who works in them.

use std::borrow::Cow;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};

use super::running::Running;
use crate::base::wire::WirePath;
use crate::base::{Error, Result};
use crate::disk::{self, Dir};
use crate::home::{
    Brief, Cache, Counts, HeldBy, Home, Index, Leases, SessionId, Status, Tally,
    each_brief_with_archive, folded, measure,
};
use crate::state::{Agent, AtWork};

/// What is asked for, instead of a status, to get the sessions that somebody works in.
pub const RUNNING: &str = "running";

/// Which sessions are listed. All that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A part of the id or title, or a glob for the whole of one; case does not matter.
    pub pattern: Option<String>,
    /// The status, or [`RUNNING`]. Without it removed sessions are left out.
    pub status: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The tags, every one.
    pub tags: Vec<String>,
    /// The project.
    pub project: Option<String>,
    /// Last active then or later. Where one asks for a time, the sessions themselves are looked at: the wrong ones are
    /// worse than a short wait.
    pub since: Option<Timestamp>,
    /// Last active then or earlier.
    pub until: Option<Timestamp>,
}

/// The order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The most recently active first.
    #[default]
    Updated,
    /// The youngest first.
    Created,
    /// The largest first.
    Size,
    /// By id, from A to Z.
    Id,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its id as it stands in the index: to be shown, not to be made a path.
    pub id: String,
    /// Its status, in the index's own word.
    pub status: String,
    /// Its title.
    pub title: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whom it is shared with.
    pub sync_tag: Option<String>,
    /// When it began.
    pub created: Option<Timestamp>,
    /// When something was last written in it, as the cache knows.
    pub updated: Option<Timestamp>,
    /// What it held when it was last counted; of an archived one, what is in its archive.
    pub holds: Option<Holds>,
    /// Its archive, as the index says.
    pub archive: Option<Map<String, Value>>,
    /// The agent that works in it right now.
    pub running: Option<Running>,
    /// The device that holds its lease, this or another.
    pub held_by: Option<HeldBy>,
}

/// What a session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// Turns.
    pub turns: u64,
    /// All files.
    pub files: u64,
    /// All bytes.
    pub bytes: u64,
    /// Below `context/`.
    pub context: Tally,
    /// Below `memory/`.
    pub memory: Tally,
    /// Below `artifacts/`.
    pub artifacts: Tally,
    /// Below `logs/`.
    pub logs: Tally,
    /// Anywhere else.
    pub other: Tally,
    /// Folders that could not be read.
    pub unreadable: u64,
}

impl From<&Counts> for Holds {
    fn from(counts: &Counts) -> Self {
        let total = counts.total();
        Holds {
            turns: counts.turns,
            files: total.files,
            bytes: total.bytes,
            context: counts.context,
            memory: counts.memory,
            artifacts: counts.artifacts,
            logs: counts.logs,
            other: counts.other,
            unreadable: counts.unreadable,
        }
    }
}

/// The list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Those that pass the filter, in order.
    pub sessions: Vec<Row>,
    /// How many the index holds.
    pub total: u64,
    /// When they were counted; `None` when they never were.
    pub counted: Option<Timestamp>,
    /// Whether the sessions themselves were looked at just now, because a time was asked for.
    #[serde(skip)]
    pub looked: bool,
    /// Whether sessions have come or gone since they were counted: `wbhome index` looks again.
    pub stale: bool,
    /// Folders in `sessions/` whose name the index can not hold, as of the last count; not filtered.
    pub strangers: Vec<WirePath>,
}

/// Lists the sessions. `agents` are the processes that the application has noted; `leases` say who holds which.
///
/// # Errors
/// An index that can not be understood; a usage error for a pattern that is no glob.
pub fn ls(
    home: &Home,
    filter: &Filter,
    sort: Sort,
    reverse: bool,
    agents: &[Agent],
    leases: &Leases,
) -> Result<Outcome> {
    let at_work = AtWork::by_registry(home.root(), agents);
    let pattern = filter.pattern.as_deref().map(Pattern::new).transpose()?;
    // The larger one on this thread: the memory of others grows page by page.
    let (rows, cache) = std::thread::scope(|scope| {
        let cache = scope.spawn(|| Cache::read(home));
        (rows(home, &at_work, leases), cache.join().ok().flatten())
    });
    let mut rows = rows?;
    let stale = match &cache {
        Some(cache) => cache.is_stale(home),
        // Nothing was ever counted; in a new home there is nothing to count.
        None => !rows.is_empty() || !disk::read_dir_names(&home.sessions())?.is_empty(),
    };
    let mut cache = cache.unwrap_or_default();
    let looked = filter.since.is_some() || filter.until.is_some();
    if looked {
        cache.sessions.extend(counted_now(home, &rows));
    }
    let total = rows.len() as u64;
    rows.iter_mut()
        .for_each(|row| row.count(cache.counts(&row.id)));
    rows.retain(|row| filter.passes(row) && pattern.as_ref().is_none_or(|p| p.matches(row)));
    let mut sessions = rows;
    sort_rows(&mut sessions, sort);
    if reverse {
        sessions.reverse();
    }
    Ok(Outcome {
        sessions,
        total,
        counted: cache.at,
        looked,
        stale,
        strangers: cache.strangers,
    })
}

/// What the index says of each session.
fn rows(home: &Home, at_work: &AtWork, leases: &Leases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let read = each_brief_with_archive(home, &mut |brief| {
        let folder = SessionId::adopt(&brief.id).ok().map(|id| home.session(&id));
        let agent = folder.and_then(|f| at_work.agent_on(&f, brief.session_id.as_deref()));
        let held_by = leases.of(&brief.id).cloned();
        rows.push(row(brief, agent.map(Running::from), held_by));
    });
    match read {
        Ok(()) => Ok(rows),
        // That says best where it is broken.
        Err(error) => Err(Index::read(home).err().unwrap_or(error)),
    }
}

/// What the sessions hold now.
fn counted_now(home: &Home, rows: &[Row]) -> Vec<(String, Counts)> {
    let Ok(sessions) = Dir::open(home.sessions()) else {
        return Vec::new();
    };
    let ids = rows.iter().filter_map(|row| SessionId::adopt(&row.id).ok());
    let present: Vec<SessionId> = ids
        .filter(|id| disk::is_folder(&home.session(id)))
        .collect();
    let count = |id: SessionId| {
        let counts = measure(&sessions, id.as_str().as_ref());
        (id.to_string(), counts)
    };
    present.into_par_iter().map(count).collect()
}

fn row(brief: Brief, running: Option<Running>, held_by: Option<HeldBy>) -> Row {
    let created = brief.created();
    let status = brief.status().as_str().to_owned();
    let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    Row {
        id: brief.id.into_owned(),
        status,
        title: text(brief.title),
        agent: text(brief.agent),
        project: text(brief.project),
        tags: brief.tags.into_iter().map(Cow::into_owned).collect(),
        sync_tag: text(brief.sync_tag),
        created,
        updated: None,
        holds: None,
        archive: brief.archive,
        running,
        held_by,
    }
}

impl Row {
    fn count(&mut self, counts: Option<&Counts>) {
        self.updated = counts.and_then(|c| c.last_activity);
        self.holds = counts.map(Holds::from);
    }

    /// The last activity that is known of: of a session that was never counted, its beginning.
    fn active(&self) -> Option<Timestamp> {
        self.updated.or(self.created)
    }

    /// The length of its archive, as the index says.
    pub fn packed(&self) -> Option<u64> {
        self.archive.as_ref()?.get("bytes")?.as_u64()
    }

    /// What it takes on the disk: an archived session is its archive.
    pub fn bytes(&self) -> Option<u64> {
        match self.status == Status::Archived.as_str() {
            true => self.packed(),
            false => self
                .holds
                .map(|holds| holds.bytes)
                .or_else(|| self.packed()),
        }
    }
}

fn sort_rows(rows: &mut [Row], sort: Sort) {
    // What is not known sorts as the least, and so comes last.
    rows.sort_by(|a, b| {
        let order = match sort {
            Sort::Updated => b.active().cmp(&a.active()),
            Sort::Created => b.created.cmp(&a.created),
            Sort::Size => b.bytes().cmp(&a.bytes()),
            Sort::Id => std::cmp::Ordering::Equal,
        };
        order.then_with(|| a.id.cmp(&b.id))
    });
}

impl Filter {
    fn passes(&self, row: &Row) -> bool {
        let same = |wanted: &Option<String>, value: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == value
        };
        let status = match &self.status {
            Some(wanted) => *wanted == row.status || wanted == RUNNING && row.running.is_some(),
            None => row.status != Status::Removed.as_str(),
        };
        let moment = row.active();
        status
            && same(&self.agent, row.agent.as_deref())
            && same(&self.project, row.project.as_deref())
            && self.tags.iter().all(|tag| row.tags.contains(tag))
            && self.since.is_none_or(|since| moment >= Some(since))
            && self
                .until
                .is_none_or(|until| moment.is_some_and(|m| m <= until))
    }
}

enum Pattern {
    Part(String),
    Glob(globset::GlobMatcher),
}

impl Pattern {
    fn new(text: &str) -> Result<Pattern> {
        let folded = folded(text);
        if !text.contains(['*', '?', '[', '{']) {
            return Ok(Pattern::Part(folded));
        }
        let glob = globset::Glob::new(&folded).map_err(|e| {
            Error::usage(format!(
                "`{}` is no pattern",
                crate::base::human::escape(text)
            ))
            .because(e)
        })?;
        Ok(Pattern::Glob(glob.compile_matcher()))
    }

    fn matches(&self, row: &Row) -> bool {
        let texts = [Some(row.id.as_str()), row.title.as_deref()];
        texts
            .into_iter()
            .flatten()
            .map(folded)
            .any(|text| match self {
                Pattern::Part(part) => text.contains(part.as_str()),
                Pattern::Glob(glob) => glob.is_match(&text),
            })
    }
}

#[cfg(test)]
#[path = "ls_tests.rs"]
mod tests;
