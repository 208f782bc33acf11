//! The history in git: whether it can take a commit, how old the last one is, what waits for the next.

use std::time::Duration;

use jiff::Timestamp;

use super::{Check, Visit};
use crate::base::{Result, human};
use crate::disk;
use crate::history::{self, Repository, commit};
use crate::home::{Config, Index, SessionId};

/// What was changed and is in no commit after so many days waits for too long.
const DAYS: i64 = 2;

/// No git works for so many seconds.
const LOCKED: i64 = 3_600;

/// The history.
pub(super) fn history(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "history";
    let elsewhere = visit.config.as_ref().ok().and_then(visit.request.git);
    if let Err(error) = history::refuse_astray(visit.home, elsewhere.as_deref()) {
        return vec![Check::failed(NAME, &error)];
    }
    let repository = match Repository::open(visit.home) {
        Ok(Some(repository)) => repository,
        Ok(None) => return vec![Check::ok(NAME, "none; `wbhome commit` begins one")],
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let check = look(visit, &repository).unwrap_or_else(|error| Check::failed(NAME, &error));
    std::iter::once(check)
        .chain(locked(visit, &repository))
        .collect()
}

/// What a git that was killed has left locked: every later one refuses.
fn locked(visit: &Visit, repository: &Repository) -> Option<Check> {
    let now = visit.context.clock.now().as_second();
    let mut old = repository.locks();
    old.retain(|(_, since)| now - since.as_second() > LOCKED);
    let (path, since) = old.first()?;
    let says = format!(
        "{} since {}: git refuses to work while it is there{}",
        human::path(path),
        human::age(visit.context.clock.now(), *since),
        match old.len() as u64 - 1 {
            0 => String::new(),
            n => format!(", and {} more like it", human::count(n)),
        }
    );
    let paths: Vec<String> = old.iter().map(|(path, _)| human::quoted(path)).collect();
    let check = Check::warning("history", says);
    Some(check.hint(format!(
        "when no git runs in this home: rm {}",
        paths.join(" ")
    )))
}

fn look(visit: &Visit, repository: &Repository) -> Result<Check> {
    const NAME: &str = "history";
    let config = visit
        .config
        .as_ref()
        .cloned()
        .unwrap_or_else(|_| Config::default());
    let request = commit::Request {
        sessions: Vec::new(),
        message: None,
        max_file: config.git.max_file,
        wait: Duration::ZERO,
    };
    let plan = commit::plan(visit.home, repository, &request, visit.context)?;
    let waiting = commit::preview(visit.home, repository, plan, visit.context)?;
    let (files, sessions) = (&waiting.files, waiting.sessions.len() as u64);
    let files = files.added + files.changed + files.removed;
    let newest = history::newest(repository)?;
    let by = match commit::author(repository)? {
        Some((name, _)) => human::escape(&name).into_owned(),
        None => "wbhome itself, as git knows no user.name and user.email".to_owned(),
    };
    let now = visit.context.clock.now();
    let last = match &newest {
        Some(last) => format!("last commit {}", human::age(now, last.at)),
        None => "no commit yet".to_owned(),
    };
    let waits = format!(
        "{} in {} in no commit",
        human::plural(files, "file", "files"),
        human::plural(sessions, "session", "sessions"),
    );
    let is_old = |then: Timestamp| now.as_second() - then.as_second() > DAYS * 86_400;
    let is_old = match newest {
        Some(last) => is_old(last.at),
        None => {
            let index = Index::read(visit.home).unwrap_or_default();
            let begun = |id: &str| begun(visit, &index, id);
            let mut waiting = waiting.sessions.iter();
            waiting.any(|session| begun(&session.id).is_none_or(is_old))
        }
    };
    Ok(match (files, sessions) {
        (0, _) => Check::ok(
            NAME,
            format!("{last}, everything in it; commits are by {by}"),
        ),
        (_, 0) => Check::ok(NAME, format!("{last}; commits are by {by}")),
        _ if is_old => Check::warning(NAME, format!("{last}; {waits}")).cure("wbhome commit"),
        _ => Check::ok(NAME, format!("{last}; {waits}; commits are by {by}")),
    })
}

/// When a session began, by the index or else by its folder.
fn begun(visit: &Visit, index: &Index, id: &str) -> Option<Timestamp> {
    let entry = index.find(id).and_then(|entry| entry.created());
    entry.or_else(|| {
        let folder = visit.home.session(&SessionId::adopt(id).ok()?);
        let meta = disk::stat(&folder).ok()??;
        Some(meta.mtime.timestamp())
    })
}
