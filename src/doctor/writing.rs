//! Whether the home can be changed: who holds the lock, what a killed command left, whether the index agrees.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Check, Visit};
use crate::base::{Result, human};
use crate::disk::{self, FileKind};
use crate::home::{Index, SessionId, Status};
use crate::pack::ENDING;

/// Nothing takes so long.
const LONG: i64 = 86_400;

/// Who holds the lock, by the text in it: whoever lets go of it takes that out, and one that was killed has no process
/// any more. The lock itself is not tried.
pub(super) fn lock(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "lock";
    let text = match disk::read_small(&visit.home.lock_file(), 4096) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let Some(holder) = Holder::alive(&text) else {
        return vec![Check::ok(NAME, "free")];
    };
    let shown = human::escape(&text);
    let now = visit.context.clock.now();
    let held = holder
        .since
        .map_or(0, |since| now.as_second() - since.as_second());
    vec![match held > LONG {
        false => Check::ok(NAME, format!("held by {shown}")),
        true => Check::warning(NAME, format!("held for more than a day by {shown}"))
            .cure(format!("kill {}", holder.pid))
            .hint("nothing is lost by that: the next command completes what it has begun"),
    }]
}

struct Holder {
    pid: u32,
    since: Option<Timestamp>,
}

impl Holder {
    /// Reads `wbhome VERB (process N, since T)`; `None` when that process is no more.
    fn alive(text: &str) -> Option<Holder> {
        let (_, rest) = text.rsplit_once("(process ")?;
        let pid: u32 = rest.split([',', ')', ' ']).next()?.parse().ok()?;
        let since = rest.split_once("since ").map(|(_, since)| since);
        let since = since.and_then(|since| since.trim_end_matches(')').parse().ok());
        // Its number may be another's by now.
        disk::process(pid).filter(|process| process.name.starts_with("wbhome"))?;
        Some(Holder { pid, since })
    }
}

/// What a command that was killed has left for the next one.
pub(super) fn journal(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "journal";
    let home = visit.home;
    let look = || -> Result<_> {
        let entries = disk::read_dir_names(&home.journal())?.len() as u64;
        Ok((entries, home.unfinished_move()?))
    };
    let at_work = || {
        lock(visit)
            .iter()
            .any(|check| check.says.starts_with("held"))
    };
    vec![match look() {
        Err(error) => Check::failed(NAME, &error),
        Ok((_, true)) => Check::warning(
            NAME,
            "a migration into this home was stopped; until it is finished nothing else changes it",
        )
        .cure("wbhome migrate status")
        .hint("it shows the command that goes on"),
        Ok((0, _)) => Check::ok(NAME, "nothing left over"),
        Ok((_, _)) if at_work() => Check::ok(NAME, "a command is at work"),
        Ok((n, _)) => {
            let what = human::plural(n, "command was", "commands were");
            let check = Check::warning(NAME, format!("{what} stopped in the middle"));
            match home.is_trusted() {
                true => check.cure("wbhome index"),
                false => {
                    check.hint("the next command that changes this home by its name completes it")
                }
            }
        }
    }]
}

/// Whether the index names what is there, by the names of folders and archives alone.
pub(super) fn index(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "index";
    let home = visit.home;
    let index = match Index::read(home) {
        Ok(index) => index,
        Err(error) => return vec![Check::failed(NAME, &error).cure("wbhome index --rebuild")],
    };
    let there = match on_disk(visit) {
        Ok(there) => there,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
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
    let gone = known.iter().filter(|(id, status)| {
        (status.is_active() || **status == Status::Archived) && !there.contains_key(*id)
    });
    let (new, gone) = (new.count() as u64, gone.count() as u64);
    let mut parts = Vec::new();
    if new > 0 {
        let sessions = human::plural(new, "session is", "sessions are");
        parts.push(format!("{sessions} not in it as they stand"));
    }
    if gone > 0 {
        let sessions = human::plural(gone, "session", "sessions");
        parts.push(format!("{sessions} in it, and not on the disk"));
    }
    vec![match parts.is_empty() {
        true => {
            let n = human::plural(there.len() as u64, "session", "sessions");
            Check::ok(NAME, format!("agrees with the disk, {n}"))
        }
        false => Check::warning(NAME, parts.join("; ")).cure("wbhome index"),
    }]
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
