//! The history in git: whether it can take a commit, how old the last one is, what waits for the next.

use std::time::Duration;

use super::{Check, Visit};
use crate::base::{Result, human};
use crate::history::{self, Repository, commit};
use crate::home::Config;

/// What was changed and is in no commit after so many days waits for too long.
const DAYS: i64 = 2;

/// The history.
pub(super) fn history(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "history";
    let repository = match Repository::open(visit.home) {
        Ok(Some(repository)) => repository,
        Ok(None) => return vec![Check::ok(NAME, "none; `wbhome commit` begins one")],
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    vec![look(visit, &repository).unwrap_or_else(|error| Check::failed(NAME, &error))]
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
    let is_old = newest.is_none_or(|last| now.as_second() - last.at.as_second() > DAYS * 86_400);
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
