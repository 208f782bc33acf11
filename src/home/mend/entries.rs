//! Sessions that become tombstones in the index, and come back.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Said;
use crate::base::{Result, failpoint, human};
use crate::disk;
use crate::home::trash::Former;
use crate::home::{Entry, IndexFile, LockedHome, SessionId, Status};

/// Whether a session has its folder, and its archive.
fn on_disk(home: &LockedHome, id: &SessionId) -> (bool, bool) {
    let there = |path: PathBuf| disk::exists(&path);
    (there(home.session(id)), there(home.archive_of(id)))
}

pub(super) fn remove(home: &LockedHome, entries: &[Map<String, Value>], at: &str) -> Result<Said> {
    let removed = IndexFile::update(home, |index| {
        let mut removed = Vec::new();
        for fields in entries {
            let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
            let fresh = Entry::read(id.to_owned(), fields.clone());
            let session = fresh.session()?;
            if on_disk(home, &session) != (false, false) {
                continue;
            }
            if index.find(session.as_str()).is_none() {
                index.insert(fresh);
            }
            let same = index.entries_mut().filter(|e| e.id() == session.as_str());
            for entry in same.filter(|e| e.status() != Status::Removed) {
                entry.set_status(&Status::Removed);
                entry.set("removed_at", at);
                removed.push(human::escape(session.as_str()).into_owned());
            }
        }
        Ok(removed)
    })?;
    failpoint::hit("mend.removed");
    Ok(match removed.is_empty() {
        true => Said::Nothing,
        false => Said::Did(format!("removed {}", removed.join(", "))),
    })
}

pub(super) fn bring_back(home: &LockedHome, former: &[Former]) -> Result<Said> {
    let back = IndexFile::update(home, |index| {
        let mut back = Vec::new();
        for entry in index.entries_mut() {
            let Some(former) = former.iter().find(|f| f.id == entry.id()) else {
                continue;
            };
            // A missing one whose folder came back is there again, too.
            if !matches!(entry.status(), Status::Removed | Status::Missing) {
                continue;
            }
            let status = fitting(former.status.as_deref(), on_disk(home, &entry.session()?));
            match status {
                Some(status) => entry.set_status(&status),
                None => entry.unset("status"),
            }
            entry.unset("removed_at");
            back.push(human::escape(entry.id()).into_owned());
        }
        Ok(back)
    })?;
    failpoint::hit("mend.returned");
    Ok(match back.is_empty() {
        true => Said::Nothing,
        false => Said::Did(format!("{} is in the index again", back.join(", "))),
    })
}

/// The former status when it fits what is there, else the one that does; `None` for no such field.
fn fitting(former: Option<&str>, (folder, archive): (bool, bool)) -> Option<Status> {
    let fits = |status: &Status| match status {
        Status::Archived => archive && !folder,
        Status::Missing => !archive && !folder,
        Status::Removed => false,
        Status::Active | Status::Other(_) => folder,
    };
    match former.map(Status::parse) {
        None if folder => None,
        Some(status) if fits(&status) => Some(status),
        _ if folder => Some(Status::Active),
        _ if archive => Some(Status::Archived),
        _ => Some(Status::Missing),
    }
}
