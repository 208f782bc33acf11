//! What makes the machine run the night, and how the last one ended.

use super::{Check, Visit};
use crate::base::{Exit, human};
use crate::nightly::{self, schedule};

/// A night that is due every day is late after so many seconds.
const LATE: i64 = 2 * 86_400;

/// Whether something is installed, and whether it is as this program would install it.
pub(super) fn schedule(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "schedule";
    let Some(machine) = visit
        .request
        .machine
        .as_ref()
        .filter(|_| visit.home.is_trusted())
    else {
        return Vec::new();
    };
    let request = schedule::Request::default();
    let plan = match schedule::plan(visit.home, machine, &request) {
        Ok(plan) => plan,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    if plan.installed.is_empty() {
        let says = "nothing runs `wbhome nightly`; `wbhome schedule install` has the machine do it";
        return vec![Check::ok(NAME, says)];
    }
    let what = plan.with.map_or("something", schedule::With::described);
    let says = format!("{what} runs the night at {}", plan.at);
    let mut checks = Vec::new();
    let differs = plan.installed.iter().flat_map(|one| &one.differs);
    let differs: Vec<&str> = differs.map(String::as_str).collect();
    if !differs.is_empty() {
        let check = Check::warning(NAME, format!("{says}, but {}", differs.join("; ")));
        checks.push(check.cure("wbhome schedule install --yes"));
    } else if !plan.steps.is_empty() {
        let check = Check::warning(NAME, format!("{says}, but it is not turned on"));
        checks.push(check.cure("wbhome schedule install --yes"));
    }
    if let Some(hindrance) = &plan.hindrance {
        checks.push(Check::warning(
            NAME,
            format!("{says}, but {}", human::escape(hindrance)),
        ));
    }
    if plan.lingers == Some(false) {
        let check = Check::warning(NAME, format!("{says}, but only while you are logged in"));
        checks.push(check.cure("loginctl enable-linger"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, says));
    }
    checks
}

/// How the last night ended, where there ever was one.
pub(super) fn last(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "night";
    let last = match nightly::last_night(visit.home) {
        Ok(Some(last)) => last,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let now = visit.context.clock.now();
    let when = human::age(now, last.began);
    let late = now.as_second() - last.began.as_second() > LATE;
    let run = |check: Check| check.cure("wbhome nightly");
    let says = match last.exit {
        Some(code) if code == Exit::Done.code() => {
            format!("the last one was {when}, and all was well")
        }
        Some(code) => format!("the last one was {when}, and ended with exit code {code}"),
        None => format!("the record of the last one, {when}, can not be understood"),
    };
    vec![match (last.exit, late) {
        (Some(code), _) if code != Exit::Done.code() => {
            let failed: Vec<&str> = last.failed.iter().map(String::as_str).collect();
            let says = match failed.is_empty() {
                true => says,
                false => format!("{says}: {}", failed.join(", ")),
            };
            run(Check::warning(NAME, says))
        }
        (None, _) | (_, true) => run(Check::warning(NAME, says)),
        _ => Check::ok(NAME, says),
    }]
}
