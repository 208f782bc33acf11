//! Sessions that become tombstones in the index, and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Mend, Said};
use crate::base::{Error, Result, failpoint, human};
use crate::disk;
use crate::home::trash::Former;
use crate::home::{Entry, Index, IndexFile, LockedHome, SessionId, Status};

/// Whether a session has its folder, and its archive.
fn on_disk(home: &LockedHome, id: &SessionId) -> (bool, bool) {
    let there = |path: PathBuf| disk::exists(&path);
    (there(home.session(id)), there(home.archive_of(id)))
}

pub(super) fn remove(home: &LockedHome, entries: &[Map<String, Value>], at: &str) -> Result<Said> {
    let removed = IndexFile::update(home, |index| {
        let mut gone = BTreeSet::new();
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
            gone.insert(session.to_string());
        }
        let same = index.entries_mut().filter(|e| gone.contains(e.id()));
        let mut removed = Vec::new();
        for entry in same.filter(|e| e.status() != Status::Removed) {
            entry.set_status(&Status::Removed);
            entry.set("removed_at", at);
            removed.push(human::name(entry.id()).into_owned());
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
    // Of several that say something of one session the first counts: it is put in last.
    let former: BTreeMap<&str, &Former> = former.iter().rev().map(|f| (&*f.id, f)).collect();
    let back = IndexFile::update(home, |index| {
        let mut back = Vec::new();
        for entry in index.entries_mut() {
            let Some(former) = former.get(entry.id()) else {
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
            back.push(human::name(entry.id()).into_owned());
        }
        Ok(back)
    })?;
    failpoint::hit("mend.returned");
    Ok(match back.is_empty() {
        true => Said::Nothing,
        false => Said::Did(format!("{} is in the index again", back.join(", "))),
    })
}

/// Changes the entry of the session that `fields` describe; it is made of them when there is none. Its name, if that has
/// changed anything.
fn edit(
    index: &mut Index,
    fields: &Map<String, Value>,
    change: impl FnOnce(&mut Entry, &SessionId),
) -> Result<Option<String>> {
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
    let fresh = Entry::read(id.to_owned(), fields.clone());
    let session = fresh.session()?;
    if index.find(session.as_str()).is_none() {
        index.insert(fresh);
    }
    let name = human::name(session.as_str()).into_owned();
    let changed = index.edit(session.as_str(), |entry| {
        let before = entry.clone();
        change(entry, &session);
        *entry != before
    });
    let changed = changed.ok_or_else(|| Error::failed("the entry is not in the index"))?;
    Ok(changed.then_some(name))
}

/// Does these steps, each of which notes something of a session's archive: the index is written once for all of them.
pub(super) fn noted(home: &LockedHome, steps: &[&Mend]) -> Result<Vec<Said>> {
    let said = IndexFile::update(home, |index| {
        let note = |step: &&Mend| note(home, index, step);
        steps.iter().map(note).collect::<Result<Vec<_>>>()
    })?;
    for step in steps {
        match step {
            Mend::Archived { .. } => failpoint::hit("mend.archived"),
            _ => failpoint::hit("mend.unarchived"),
        }
    }
    Ok(said)
}

fn note(home: &LockedHome, index: &mut Index, step: &Mend) -> Result<Said> {
    match step {
        Mend::Archived {
            entry, archive, at, ..
        } => archived(index, entry, archive, at.as_deref()),
        Mend::Unarchived { entry, archive } => unarchived(home, index, entry, archive.as_ref()),
        _ => Ok(Said::Nothing),
    }
}

fn archived(
    index: &mut Index,
    fields: &Map<String, Value>,
    archive: &Map<String, Value>,
    at: Option<&str>,
) -> Result<Said> {
    let changed = edit(index, fields, |entry, _| {
        if let Some(at) = at {
            if let Status::Other(word) = entry.status() {
                entry.set("status_before", word);
            }
            entry.set_status(&Status::Archived);
            entry.set("archived_at", at);
            entry.unset("removed_at");
        }
        entry.set("archive", archive.clone());
    })?;
    Ok(match (changed, at) {
        (None, _) => Said::Nothing,
        (Some(name), Some(_)) => Said::Did(format!("{name} is archived in the index")),
        (Some(name), None) => Said::Did(format!("noted the archive of {name} in the index")),
    })
}

fn unarchived(
    home: &LockedHome,
    index: &mut Index,
    fields: &Map<String, Value>,
    archive: Option<&Map<String, Value>>,
) -> Result<Said> {
    let changed = edit(index, fields, |entry, session| {
        // What is not there after all is not said to be.
        let (folder, pack) = on_disk(home, session);
        if folder {
            if !entry.status().is_active() {
                let word = entry.text("status_before").map(Status::parse);
                entry.set_status(&word.unwrap_or(Status::Active));
                entry.unset("status_before");
                entry.unset("removed_at");
            }
            entry.set("archived_at", Value::Null);
        }
        match archive {
            Some(archive) if pack && entry.archive().is_none() => {
                entry.set("archive", archive.clone());
            }
            _ if !pack => entry.set("archive", Value::Null),
            _ => {}
        }
    })?;
    Ok(changed.map_or(Said::Nothing, |name| {
        Said::Did(format!("{name} is active in the index"))
    }))
}

pub(super) fn label(home: &LockedHome, id: &str, fields: &Map<String, Value>) -> Result<Said> {
    IndexFile::update(home, |index| {
        index.edit(id, |entry| {
            for (key, value) in fields {
                entry.set(key, value.clone());
            }
        });
        Ok(())
    })?;
    failpoint::hit("mend.labelled");
    Ok(Said::Nothing)
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
