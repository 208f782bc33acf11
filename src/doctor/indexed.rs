//! Whether the index names what is there, and what brings back that which is not.
//!
//! Whoever has lost sessions must not be told to have the index agree with that: a disk that is not mounted looks the
//! same as one that was emptied, and neither is well.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Check, Visit};
use crate::backup::{Store, list};
use crate::base::{Result, human};
use crate::disk::{self, FileKind};
use crate::history::{self, Repository, bring_back};
use crate::home::{Index, SessionId, Status};
use crate::pack::ENDING;

const NAME: &str = "index";

/// How the index stands to the disk.
struct Standing {
    /// Entries whose session should be somewhere.
    named: u64,
    /// Sessions that it does not name as they stand.
    new: u64,
    /// Those it says are there, and are not.
    gone: Vec<SessionId>,
    /// Those it says are missing, and are.
    missing: Vec<SessionId>,
}

impl Standing {
    fn of(index: &Index, there: &BTreeMap<SessionId, Status>) -> Standing {
        let mut known = BTreeMap::new();
        for entry in index.entries() {
            if let Ok(id) = entry.session() {
                known.insert(id, entry.status());
            }
        }
        let new = there.iter().filter(|(id, status)| match known.get(*id) {
            None => true,
            Some(found) => match status {
                Status::Archived => !matches!(found, Status::Archived),
                _ => !found.is_active(),
            },
        });
        let new = new.count() as u64;
        known.retain(|_, status| *status != Status::Removed);
        let named = known.len() as u64;
        known.retain(|id, _| !there.contains_key(id));
        let missing = known.iter().filter(|(_, s)| **s == Status::Missing);
        let missing = missing.map(|(id, _)| id.clone()).collect();
        known.retain(|_, status| *status != Status::Missing);
        Standing {
            named,
            new,
            gone: known.into_keys().collect(),
            missing,
        }
    }

    /// Half of them at once are not removed by hand, one by one. What is there under another name was renamed.
    fn is_lost(&self) -> bool {
        let gone = (self.gone.len() as u64).saturating_sub(self.new);
        gone > 0 && 2 * (gone + self.missing.len() as u64) >= self.named
    }
}

/// Whether most of the sessions are gone: nothing that is printed then may make the index forget them.
pub(super) fn is_lost(visit: &Visit) -> bool {
    let index = match disk::exists(&visit.home.index_file()) {
        true => Index::read(visit.home).ok(),
        false => history::last_index(visit.home.root()).ok().flatten(),
    };
    let there = on_disk(visit).ok();
    index
        .zip(there)
        .is_some_and(|(index, there)| Standing::of(&index, &there).is_lost())
}

/// Whether the index names what is there, by the names of folders and archives alone.
pub(super) fn index(visit: &Visit) -> Vec<Check> {
    let home = visit.home;
    if super::writing::is_moving(visit) {
        return vec![Check::ok(
            NAME,
            "not looked at: the migration is not finished",
        )];
    }
    let there = match on_disk(visit) {
        Ok(there) => there,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    match disk::stat(&home.index_file()) {
        Ok(None) => return vec![without(visit, &there)],
        Ok(Some(meta)) if meta.kind != FileKind::File => {
            let says = format!("index.json is {}", meta.kind.described());
            return vec![Check::error(NAME, says).hint(
                "put the file itself there; or move this away, and `wbhome index` makes one with the labels of the last commit",
            )];
        }
        _ => {}
    }
    let index = match Index::read(home) {
        Ok(index) => index,
        Err(error) => return vec![Check::failed(NAME, &error).cure("wbhome index --rebuild")],
    };
    let standing = Standing::of(&index, &there);
    let mut checks = Vec::new();
    if standing.is_lost() {
        checks.push(lost(visit, &standing));
    } else if let Some(says) = differs(&standing) {
        checks.push(Check::warning(NAME, says).cure("wbhome index"));
    }
    if let Some(one) = standing.missing.first() {
        let n = standing.missing.len() as u64;
        let says = format!(
            "{} missing: {}{}",
            human::plural(n, "session is", "sessions are"),
            human::name(one.as_str()),
            match n {
                1 => String::new(),
                n => format!(" and {} more", human::count(n - 1)),
            }
        );
        let check = Check::warning(NAME, says).cure(back(visit, one));
        checks.push(check.hint(format!(
            "when it is meant to be gone: `wbhome rm {}`",
            human::argument(one.as_str())
        )));
    }
    if checks.is_empty() {
        let n = human::plural(there.len() as u64, "session", "sessions");
        checks.push(Check::ok(NAME, format!("agrees with the disk, {n}")));
    }
    checks
}

fn differs(standing: &Standing) -> Option<String> {
    let mut parts = Vec::new();
    if standing.new > 0 {
        let sessions = human::plural(standing.new, "session is", "sessions are");
        parts.push(format!("{sessions} not in it as they stand"));
    }
    if !standing.gone.is_empty() {
        let sessions = human::plural(standing.gone.len() as u64, "session", "sessions");
        parts.push(format!("{sessions} in it, and not on the disk"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Most of what it names is not there.
fn lost(visit: &Visit, standing: &Standing) -> Check {
    let says = format!(
        "{} of the {} in it are not on the disk: is its disk mounted?",
        human::count(standing.gone.len() as u64),
        human::plural(standing.named, "session", "sessions")
    );
    let check = Check::error(NAME, says);
    let check = match standing.gone.first() {
        Some(one) => check.cure(back(visit, one)),
        None => check,
    };
    check
        .hint("look at the disk first: what is on one that is not mounted is not gone")
        .hint("one by one; or all of the home, beside this one: `wbhome restore --all --from STORE --to DIR`")
        .hint("`wbhome index` would note all of them as missing")
}

/// There is none. A home without sessions, of which no commit knows any either, has lost nothing.
fn without(visit: &Visit, there: &BTreeMap<SessionId, Status>) -> Check {
    let sessions = human::plural(there.len() as u64, "session is", "sessions are");
    let says = format!("index.json is gone, and {sessions} there");
    let known = match history::last_index(visit.home.root()) {
        Ok(known) => known,
        Err(error) => {
            return Check::error(NAME, says)
                .hint("mend the repository first: the labels are in its commits")
                .hint(error.to_string());
        }
    };
    if there.is_empty() && known.is_none() {
        return Check::ok(NAME, "none yet, and no session");
    }
    match known {
        Some(known) => {
            let standing = Standing::of(&known, there);
            match standing.is_lost() {
                true => lost(visit, &standing),
                false => Check::error(NAME, says)
                    .cure("wbhome index --rebuild")
                    .hint("it takes the labels of the last commit"),
            }
        }
        None => Check::error(NAME, says)
            .cure("wbhome index --rebuild")
            .hint("no commit holds one: labels that stood in it are in the snapshots of a store alone"),
    }
}

/// What brings a session back, from wherever it is.
fn back(visit: &Visit, id: &SessionId) -> String {
    let from_store = || {
        let stores = (visit.request.stores)(visit.home).ok()?;
        let has = |path: &std::path::PathBuf| {
            let store = Store::open_of(path, visit.home).ok()?;
            list::held(&store, id).ok()??.packed
        };
        stores.iter().find_map(has)?;
        let typed = human::argument_with(id.as_str(), "--from backup");
        Some(format!("wbhome restore {typed}"))
    };
    let from_git = || {
        let repository = Repository::open(visit.home).ok()??;
        let session = Path::new("sessions").join(id.as_str());
        let record = [session.join("session.json")];
        let stop = visit.context.stop;
        let found = history::newest_whole(visit.home, &repository, &record, stop).ok()?;
        let at = found.into_values().next()?;
        bring_back::command(&session, at.as_deref())
    };
    let check = || "wbhome check".to_owned();
    from_store().or_else(from_git).unwrap_or_else(check)
}

/// The sessions that are there: a folder counts before an archive.
fn on_disk(visit: &Visit) -> Result<BTreeMap<SessionId, Status>> {
    let mut there = BTreeMap::new();
    for (name, kind) in disk::read_dir_names(&visit.home.archive())? {
        let id = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        if let (FileKind::File, Some(id)) = (kind, id)
            && let Some(id) = SessionId::of_folder(id.as_ref())
        {
            there.insert(id, Status::Archived);
        }
    }
    for (name, kind) in disk::read_dir_names(&visit.home.sessions())? {
        if let (FileKind::Folder, Some(id)) = (kind, SessionId::of_folder(&name)) {
            there.insert(id, Status::Active);
        }
    }
    Ok(there)
}
