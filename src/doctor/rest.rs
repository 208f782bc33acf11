//! What has gathered in the trash.

use std::time::Duration;

use super::{Check, Visit};
use crate::base::human;
use crate::home::trash;

/// What has lain there for so long is not missed, and so much of it is worth a word.
const AGE: Duration = Duration::from_secs(30 * 86_400);
const MUCH: u64 = 1 << 30;

/// How much there is, and how much of that is old.
pub(super) fn trash(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "trash";
    let size = |older| trash::empty::plan(visit.home, older, visit.context);
    let all = match size(None) {
        Ok(all) => all,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let old = match size(Some(AGE)) {
        Ok(old) => old.bytes,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let says = match all.acts.len() as u64 {
        0 => "empty".to_owned(),
        n => format!(
            "{}, {}",
            human::plural(n, "act", "acts"),
            human::size(all.bytes)
        ),
    };
    vec![match old > MUCH {
        true => Check::warning(
            NAME,
            format!(
                "{says}, of which {} is older than 30 days",
                human::size(old)
            ),
        )
        .cure("wbhome check --empty-trash --older 30d --yes"),
        false => Check::ok(NAME, says),
    }]
}
