//! Which session a person means: an exact id, a unique prefix, a unique part, or `@1` for the most recent.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::{Cache, Home, Index, RelPath, SessionId, Status, measure, nearest};
use crate::base::{Error, Result, human};
use crate::disk::{self, Dir, FileKind};
use crate::pack::ENDING;

/// As many candidates of an ambiguous query are named.
const SHOWN: usize = 10;

/// A session that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: SessionId,
    /// Where it stands; a folder without an entry is active.
    pub status: Status,
    /// When something was last written in it, as far as is known.
    pub activity: Option<jiff::Timestamp>,
}

/// Every session of the home: what the index names, and what lies in `sessions/` and `archive/` beside it, the most
/// recently active first. A broken index hides nothing that is on the disk.
///
/// Activity comes from the cache; with `exact` the sessions themselves are looked at.
///
/// # Errors
/// When `sessions/` or `archive/` can not be listed.
pub fn candidates(home: &Home, exact: bool) -> Result<Vec<Candidate>> {
    let mut found: BTreeMap<SessionId, Candidate> = BTreeMap::new();
    let index = Index::read(home).unwrap_or_default();
    let known = index.entries().filter_map(|entry| {
        let activity = entry.created();
        Some((entry.session().ok()?, entry.status(), activity))
    });
    let on_disk = disk::read_dir_names(&home.sessions())?;
    let folders = on_disk
        .iter()
        .filter(|(_, kind)| *kind == FileKind::Folder)
        .filter_map(|(name, _)| Some((SessionId::of_folder(name)?, Status::Active, None)));
    let packs = disk::read_dir_names(&home.archive())?;
    let packs = packs
        .iter()
        .filter(|(_, kind)| *kind == FileKind::File)
        .filter_map(|(name, _)| name.to_str()?.strip_suffix(ENDING))
        .filter_map(|id| Some((SessionId::of_folder(id.as_ref())?, Status::Archived, None)));
    for (id, status, activity) in known.chain(folders).chain(packs) {
        found.entry(id.clone()).or_insert(Candidate {
            id,
            status,
            activity,
        });
    }
    let mut found: Vec<Candidate> = found.into_values().collect();
    set_activity(home, exact, &mut found);
    found.sort_by(|a, b| b.activity.cmp(&a.activity).then_with(|| a.id.cmp(&b.id)));
    Ok(found)
}

fn set_activity(home: &Home, exact: bool, found: &mut [Candidate]) {
    if exact && let Ok(sessions) = Dir::open(home.sessions()) {
        found.par_iter_mut().for_each(|candidate| {
            let counts = measure(&sessions, candidate.id.as_str().as_ref());
            candidate.activity = counts.last_activity.or(candidate.activity);
        });
    } else if let Some(cache) = Cache::read(home) {
        for candidate in found {
            if let Some(counts) = cache.counts(candidate.id.as_str()) {
                candidate.activity = counts.last_activity.or(candidate.activity);
            }
        }
    }
}

/// The session of the home that `query` means. For `@1` the sessions themselves are looked at: the cache may
/// be old, and the wrong session is worse than a short wait.
///
/// # Errors
/// None or several are meant.
pub fn resolve_in(home: &Home, query: &str) -> Result<SessionId> {
    resolve(query, &candidates(home, query.starts_with('@'))?)
}

/// The sessions of the home that these queries mean, in their order, as [`resolve_in`] says. The home is looked at once
/// for all of them.
///
/// # Errors
/// One of which none or several are meant.
pub fn resolve_all(home: &Home, queries: &[String]) -> Result<Vec<SessionId>> {
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let exact = queries.iter().any(|query| query.starts_with('@'));
    let all = candidates(home, exact)?;
    resolve_each(queries, &all, |query| resolve(query, &all))
}

/// The sessions that these queries mean, in their order: each that is the name of a candidate is that one, and of any other
/// `otherwise` says which is meant.
///
/// # Errors
/// What `otherwise` says.
pub fn resolve_each(
    queries: &[String],
    candidates: &[Candidate],
    otherwise: impl Fn(&str) -> Result<SessionId>,
) -> Result<Vec<SessionId>> {
    let ids = candidates.iter().map(|c| (c.id.as_str(), &c.id));
    let ids: HashMap<&str, &SessionId> = ids.collect();
    let meant = queries.iter().map(|query| match ids.get(query.as_str()) {
        Some(id) => Ok((*id).clone()),
        None => otherwise(query),
    });
    meant.collect()
}

/// The session that `query` means; `candidates` stand in order of activity. Removed ones are meant only by
/// their exact id.
///
/// # Errors
/// None is meant (with the nearest), or several are (with the first ten).
pub fn resolve(query: &str, candidates: &[Candidate]) -> Result<SessionId> {
    match matching(query, candidates)? {
        Some(id) => Ok(id),
        None => Err(unknown(query, &present(candidates))),
    }
}

fn present(candidates: &[Candidate]) -> Vec<&SessionId> {
    let present = candidates.iter().filter(|c| c.status != Status::Removed);
    present.map(|c| &c.id).collect()
}

/// Like [`resolve`]; `None` when none is meant, for those who then look elsewhere.
///
/// # Errors
/// Several are meant; no name at all; an `@1` that there is not.
pub fn matching(query: &str, candidates: &[Candidate]) -> Result<Option<SessionId>> {
    if let Some(exact) = candidates.iter().find(|c| c.id.as_str() == query) {
        return Ok(Some(exact.id.clone()));
    }
    let present = present(candidates);
    if query.is_empty() {
        return Err(Error::usage("no session was named"));
    }
    if let Some(n) = query
        .strip_prefix('@')
        .and_then(|n| n.parse::<usize>().ok())
    {
        let chosen = n.checked_sub(1).and_then(|n| present.get(n));
        return chosen.map(|id| Some((*id).clone())).ok_or_else(|| {
            let many = human::plural(present.len() as u64, "session", "sessions");
            Error::failed(format!("there is no session {query}: this home has {many}"))
                .hint("@1 is the most recently active one")
        });
    }
    // A name typed on a keyboard is composed; one that a Mac has written may not be.
    let composed = |text: &str| text.nfc().collect::<String>();
    let wanted = composed(query);
    let tests: [fn(&str, &str) -> bool; 2] = [|id, q| id.starts_with(q), |id, q| id.contains(q)];
    for test in tests {
        let matching: Vec<&SessionId> = present
            .iter()
            .copied()
            .filter(|id| test(id.as_str(), query) || test(&composed(id.as_str()), &wanted))
            .collect();
        match matching.as_slice() {
            [] => {}
            [one] => return Ok(Some((*one).clone())),
            several => return Err(ambiguous(query, several)),
        }
    }
    Ok(None)
}

fn ambiguous(query: &str, several: &[&SessionId]) -> Error {
    let mut error = Error::failed(format!(
        "`{}` may mean {} sessions",
        human::name(query),
        human::count(several.len() as u64)
    ));
    for id in several.iter().take(SHOWN) {
        error = error.hint(human::name(id.as_str()));
    }
    match several.len().checked_sub(SHOWN) {
        Some(more @ 1..) => error.hint(format!("and {} more", human::count(more as u64))),
        _ => error,
    }
}

fn unknown(query: &str, present: &[&SessionId]) -> Error {
    let error = Error::failed(format!("there is no session `{}`", human::name(query)));
    let ids = || present.iter().map(|id| id.as_str());
    // People remember the task better than the date.
    let tasks = || ids().filter_map(|id| id.split_once('_').map(|(_, task)| task));
    let near = nearest(query, ids()).or_else(|| {
        let task = nearest(query, tasks())?;
        ids().find(|id| id.ends_with(task))
    });
    // And of a long task the beginning.
    let typed = query.chars().count();
    let begins = |task: &str| {
        let begin: String = task.chars().take(typed).collect();
        typed > 3 && nearest(query, [&*begin]).is_some()
    };
    let near = near.or_else(|| {
        let task = tasks().find(|task| begins(task))?;
        ids().find(|id| id.ends_with(task))
    });
    match near {
        Some(near) => error.hint(format!("did you mean {}?", human::name(near))),
        None => error.hint("`wbhome ls` lists them"),
    }
}

/// `SESSION/PATH` in its two parts; the path is checked.
///
/// # Errors
/// A path that leads out of the session.
pub fn split(spec: &str) -> Result<(&str, RelPath)> {
    match spec.split_once('/') {
        Some((session, path)) => Ok((session, RelPath::new(path)?)),
        None => Ok((spec, RelPath::default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ids: &[&str]) -> Vec<Candidate> {
        ids.iter()
            .map(|id| Candidate {
                id: SessionId::adopt(id).unwrap(),
                status: Status::Active,
                activity: None,
            })
            .collect()
    }

    #[test]
    fn exact_then_prefix_then_part_then_recent() {
        let mut home = all(&[
            "20240605_数据清洗",
            "20240603_crawler",
            "20240603_crawler_2",
            "20240604_e\u{301}tude",
        ]);
        let means = |query: &str| resolve(query, &home).map(|id| id.as_str().to_owned());
        assert_eq!(means("20240603_crawler").unwrap(), "20240603_crawler");
        assert_eq!(means("20240605").unwrap(), "20240605_数据清洗");
        assert_eq!(means("清").unwrap(), "20240605_数据清洗");
        assert_eq!(means("\u{e9}tude").unwrap(), "20240604_e\u{301}tude");
        assert_eq!(means("@2").unwrap(), "20240603_crawler");
        for none in ["@0", "@5", "", "nothing like it"] {
            assert!(means(none).is_err(), "{none}");
        }
        let error = means("2024").unwrap_err();
        assert_eq!(error.to_string(), "`2024` may mean 4 sessions");
        assert_eq!(error.hints().len(), 4);
        let error = means("crawlr").unwrap_err();
        assert_eq!(error.hints(), ["did you mean 20240603_crawler?"]);
        home[1].status = Status::Removed;
        assert!(resolve("20240603_crawler", &home).is_ok());
        let found = resolve("20240603", &home).unwrap();
        assert_eq!(found.as_str(), "20240603_crawler_2");
    }

    #[test]
    fn many_candidates_are_cut() {
        let ids: Vec<String> = (0..25).map(|n| format!("20240603_{n:02}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let error = resolve("2024", &all(&ids)).unwrap_err();
        assert_eq!(error.hints().len(), 11);
        assert_eq!(error.hints()[10], "and 15 more");
    }

    #[test]
    fn a_path_can_not_lead_out() {
        let (session, path) = split("a/context/turn_001.json").unwrap();
        assert_eq!(session, "a");
        assert_eq!(
            path.as_path(),
            std::path::Path::new("context/turn_001.json")
        );
        assert!(split("a").unwrap().1.is_empty() && split("a/").unwrap().1.is_empty());
        assert!(split("a/../b").is_err() && split("a//etc/passwd").is_err());
    }
}
