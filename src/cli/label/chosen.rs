//! `label --where KEY=VALUE`: the sessions that `ls` would list with the same filter.

use jiff::ZonedDateTime;

use crate::base::{Error, Result, human, parse_when};
use crate::browse::ls::Filter;

/// What can be asked of a session.
pub(in crate::cli) const KEYS: [(&str, &str); 7] = [
    (
        "name",
        "part of an id or title, or a glob for the whole of one",
    ),
    ("agent", "of this agent"),
    ("tag", "with this tag; with every one of several"),
    ("project", "of this project"),
    ("status", "active, archived, missing; running"),
    ("since", "active then or later: 2024-06-03, 2w"),
    ("until", "active then or earlier"),
];

/// The filter of all the conditions.
///
/// # Errors
/// A usage error for what is no condition, or one that is given twice.
pub(super) fn filter(conditions: &[String], now: &ZonedDateTime) -> Result<Filter> {
    let mut filter = Filter::default();
    for condition in conditions {
        let Some((key, value)) = condition.split_once('=').filter(|(_, v)| !v.is_empty()) else {
            return Err(unknown(condition));
        };
        let text = || value.to_owned();
        let twice = match key {
            "tag" => {
                filter.tags.push(text());
                continue;
            }
            "name" => filter.pattern.replace(text()).is_some(),
            "agent" => filter.agent.replace(text()).is_some(),
            "project" => filter.project.replace(text()).is_some(),
            "status" => filter.status.replace(text()).is_some(),
            "since" => filter.since.replace(parse_when(value, now)?).is_some(),
            "until" => filter.until.replace(parse_when(value, now)?).is_some(),
            _ => return Err(unknown(condition)),
        };
        if twice {
            return Err(Error::usage(format!(
                "--where {key}=… is given twice, and no session is of both"
            )));
        }
    }
    Ok(filter)
}

fn unknown(condition: &str) -> Error {
    let keys: Vec<String> = KEYS.iter().map(|(key, _)| format!("{key}=…")).collect();
    Error::usage(format!(
        "`{}` says nothing of a session",
        human::name(condition)
    ))
    .hint(format!("--where takes {}", keys.join(", ")))
}
