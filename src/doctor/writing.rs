//! Whether the home can be changed: who holds the lock, and what a killed command left.

use jiff::Timestamp;

use super::{Check, Visit};
use crate::base::{Result, human};
use crate::disk;
use crate::home::journal;
use crate::migrate;

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
    let look = || -> Result<_> { Ok((journal::waiting(home)?, home.unfinished_move()?)) };
    let at_work = || {
        lock(visit)
            .iter()
            .any(|check| check.says.starts_with("held"))
    };
    vec![match look() {
        Err(error) => Check::failed(NAME, &error),
        Ok((_, true)) => moving(visit),
        Ok((0, _)) => Check::ok(NAME, "nothing left over"),
        Ok((_, _)) if at_work() => Check::ok(NAME, "a command is at work"),
        Ok((n, _)) => {
            let what = human::plural(n, "command was", "commands were");
            let check = Check::warning(NAME, format!("{what} stopped in the middle"));
            match home.is_trusted() && !super::indexed::is_lost(visit) {
                true => check.cure("wbhome index"),
                false => {
                    check.hint("the next command that changes this home by its name completes it")
                }
            }
        }
    }]
}

/// Whether a migration into the home was stopped: until it is finished nothing else changes it.
pub(super) fn is_moving(visit: &Visit) -> bool {
    visit.home.unfinished_move().unwrap_or(false)
}

fn moving(visit: &Visit) -> Check {
    const NAME: &str = "journal";
    let says =
        "a migration into this home was stopped; until it is finished nothing else changes it";
    let check = Check::error(NAME, says);
    match migrate::newest(visit.home) {
        Ok(_) => check
            .cure(format!(
                "wbhome --home {} migrate status",
                human::quoted(visit.home.root())
            ))
            .hint("it shows the command that goes on"),
        Err(error) => {
            let check = check.hint(error.to_string());
            check.hint(
                "bring that file back from a copy; or migrate anew, into another folder: the source is as it was",
            )
        }
    }
}
