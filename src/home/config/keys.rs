//! Which keys there are. Types are checked elsewhere; here a slip of the hand is found and named.

use toml::de::{DeTable, DeValue};

use super::{Wrong, line_of};
use crate::home::nearest;

/// Every section and its keys.
pub(super) const SECTIONS: [(&str, &[&str]); 10] = [
    ("git", &["dir", "max_file", "push"]),
    ("archive", &["level", "idle"]),
    (
        "rotate",
        &[
            "logs",
            "every",
            "size",
            "keep",
            "compress",
            "delay_compress",
            "missing_ok",
            "not_empty",
            "max_age",
            "max_total",
        ],
    ),
    (
        "backup",
        &["store", "keep", "keep_deleted", "settings_every"],
    ),
    ("relay", &["dir", "mode", "logs"]),
    ("secrets", &["rules", "on_find", "allow"]),
    ("state", &["dir", "include", "exclude"]),
    ("check", &["command"]),
    ("drill", &["command"]),
    ("nightly", &["on_success", "on_failure"]),
];

/// Finds the first key that nobody knows.
pub(super) fn check(text: &str) -> Result<(), Wrong> {
    let table = DeTable::parse(text).map_err(|e| Wrong::of(text, &e))?;
    let mut sections: Vec<_> = table.get_ref().iter().collect();
    // The first in the file is the one to name first.
    sections.sort_by_key(|(key, _)| key.span().start);
    for (section, value) in sections {
        let name = section.get_ref().as_ref();
        let at = line_of(text, section.span().start);
        let Some((_, keys)) = SECTIONS.iter().find(|(known, _)| *known == name) else {
            return Err(unknown_section(name, at));
        };
        if let DeValue::Table(table) = value.get_ref() {
            let mut found: Vec<_> = table.keys().collect();
            found.sort_by_key(|key| key.span().start);
            for key in found {
                let (name_of_key, at) = (key.get_ref().as_ref(), line_of(text, key.span().start));
                if !keys.contains(&name_of_key) {
                    return Err(unknown_key(name, name_of_key, keys, at));
                }
            }
        }
    }
    Ok(())
}

fn unknown_section(name: &str, line: usize) -> Wrong {
    let known = SECTIONS.iter().map(|(section, _)| *section);
    // A key outside any section probably belongs into one.
    let home_of = SECTIONS.iter().find(|(_, keys)| keys.contains(&name));
    Wrong {
        line,
        why: format!("there is no section or key `{name}` at the top"),
        nearest: nearest(name, known)
            .map(|section| format!("[{section}]"))
            .or_else(|| home_of.map(|(section, _)| format!("{name} below [{section}]"))),
    }
}

fn unknown_key(section: &str, key: &str, keys: &[&str], line: usize) -> Wrong {
    let elsewhere = || {
        let (other, _) = SECTIONS.iter().find(|(_, keys)| keys.contains(&key))?;
        Some(format!("{key} below [{other}]"))
    };
    Wrong {
        line,
        why: format!("[{section}] has no key `{key}`"),
        nearest: nearest(key, keys.iter().copied())
            .map(str::to_owned)
            .or_else(elsewhere),
    }
}
