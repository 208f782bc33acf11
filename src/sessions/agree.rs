//! The index made to agree with what is on the disk, as a function of the two and nothing else.
//!
//! Labels are a person's: nothing here takes one away. An entry whose session is found nowhere is kept as
//! `missing`, and comes back when the session does.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::{ArchiveSeen, Scan, Seen};
use crate::home::{Entry, Index, Record, SessionId, Status, no_pack};

/// A folder that was renamed by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// The id that the index had.
    pub from: String,
    /// The folder's name.
    pub to: String,
}

/// A session, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its id as it stands in the index or on the disk.
    pub id: String,
    /// What is wrong.
    pub why: String,
}

/// What was changed. Each entry of the index stands in exactly one of the first seven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Sessions or archives that had no entry.
    pub added: Vec<String>,
    /// Entries whose folder was renamed by hand; labels kept.
    pub renamed: Vec<Renamed>,
    /// Entries whose session is there again.
    pub returned: Vec<String>,
    /// Entries whose session is only in the archive.
    pub archived: Vec<String>,
    /// Entries whose session is found nowhere any more; kept.
    pub missing: Vec<String>,
    /// Entries that learned something from their `session.json`.
    pub completed: Vec<String>,
    /// Entries that agreed.
    pub unchanged: u64,
    /// Entries in the index now.
    pub entries: u64,
    /// What needs a person: ids twice or impossible, records that can not be read, folders that two claim.
    pub problems: Vec<Problem>,
    /// Elements of the index that are no entries, and are kept. A rebuild leaves them out, and entries whose
    /// id can not be a session's too.
    pub not_entries: u64,
}

impl Changes {
    /// Whether the index differs from before.
    pub fn any(&self) -> bool {
        self.unchanged != self.entries
    }
}

/// Makes the index agree with the disk.
pub(super) fn agree(index: &mut Index, scan: &Scan, rebuilding: bool) -> Changes {
    let mut changes = Changes {
        not_entries: index.others() as u64,
        ..Changes::default()
    };
    report_odd_entries(index, &mut changes);
    let renamed = renames(index, scan, &mut changes);
    for entry in index.entries_mut() {
        settle(entry, scan, &renamed, rebuilding, &mut changes);
    }
    let known = index.sessions();
    for seen in scan.sessions.values().filter(|s| !known.contains(&s.id)) {
        if let Some(torn) = &seen.torn {
            changes.problems.push(problem(&seen.id, torn));
        }
        if let Some(why) = scan.archives.get(&seen.id).and_then(unreadable) {
            changes.problems.push(problem(&seen.id, why));
        }
        changes.added.push(seen.id.to_string());
        index.insert(unpacked_entry(seen, scan.archives.get(&seen.id)));
    }
    for (id, seen) in &scan.archives {
        if !known.contains(id) && !scan.sessions.contains_key(id) {
            if let Some(why) = unreadable(seen) {
                changes.problems.push(problem(id, why));
            }
            let mut entry = packed_entry(id, seen);
            set_archived(&mut entry, id, seen, rebuilding);
            changes.added.push(id.to_string());
            index.insert(entry);
        }
    }
    for (id, kind) in &scan.no_archives {
        if !known.contains(id) && !scan.sessions.contains_key(id) {
            changes.problems.push(problem(id, no_pack(id, *kind)));
        }
    }
    changes.entries = index.entries().count() as u64;
    changes
}

fn problem(id: impl ToString, why: impl Into<String>) -> Problem {
    Problem {
        id: id.to_string(),
        why: why.into(),
    }
}

fn report_odd_entries(index: &Index, changes: &mut Changes) {
    for id in index.duplicates() {
        let why = "stands more than once in the index";
        changes.problems.push(problem(id, why));
    }
    for entry in index.entries().filter(|e| e.session().is_err()) {
        let why = "can not be the name of a session's folder";
        changes.problems.push(problem(entry.id(), why));
    }
}

/// Which folders without an entry are those of entries without a folder: from the old id to the new.
///
/// `session.json` tells: by `session_id`, which no rename changes, or by the `id` that it had when the record
/// was written. A copy of a session has both too, but then the original is still there. When two folders
/// claim one entry, or one folder two, nobody gets it.
fn renames(index: &Index, scan: &Scan, changes: &mut Changes) -> BTreeMap<SessionId, SessionId> {
    let known = index.sessions();
    let mut by_identity: HashMap<&str, Vec<&Entry>> = HashMap::new();
    let mut by_id: HashMap<&str, &Entry> = HashMap::new();
    let lost = |e: &&Entry| {
        let gone =
            |id: SessionId| !scan.sessions.contains_key(&id) && !scan.archives.contains_key(&id);
        e.session().is_ok_and(gone) && e.status() != Status::Removed
    };
    for entry in index.entries().filter(lost) {
        by_id.insert(entry.id(), entry);
        if let Some(identity) = entry.session_id() {
            by_identity.entry(identity).or_default().push(entry);
        }
    }
    let mut claims: BTreeMap<SessionId, Vec<SessionId>> = BTreeMap::new();
    for seen in scan.sessions.values().filter(|s| !known.contains(&s.id)) {
        let Some(record) = &seen.record else {
            continue;
        };
        let entry = match record
            .session_id
            .as_deref()
            .and_then(|i| by_identity.get(i))
        {
            Some(entries) if entries.len() == 1 => Some(entries[0]),
            _ => record.id.as_deref().and_then(|id| by_id.get(id).copied()),
        };
        if let Some(entry) = entry.filter(|entry| same_identity(entry, record))
            && let Ok(from) = entry.session()
        {
            claims.entry(from).or_default().push(seen.id.clone());
        }
    }
    let mut renamed = BTreeMap::new();
    for (from, mut to) in claims {
        if to.len() > 1 {
            let names: Vec<&str> = to.iter().map(SessionId::as_str).collect();
            let why = format!("was renamed to one of {}, but which?", names.join(", "));
            changes.problems.push(problem(&from, why));
        } else if let Some(to) = to.pop() {
            renamed.insert(from, to);
        }
    }
    renamed
}

fn same_identity(entry: &Entry, record: &Record) -> bool {
    match (entry.session_id(), record.session_id.as_deref()) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Makes one entry agree, and counts it in its class.
fn settle(
    entry: &mut Entry,
    scan: &Scan,
    renamed: &BTreeMap<SessionId, SessionId>,
    rebuilding: bool,
    changes: &mut Changes,
) {
    let Ok(mut id) = entry.session() else {
        changes.unchanged += 1;
        return;
    };
    let was_renamed = renamed.get(&id);
    if let Some(to) = was_renamed {
        let from = id.to_string();
        changes.renamed.push(Renamed {
            from,
            to: to.to_string(),
        });
        entry.set_id(to);
        id = to.clone();
    }
    let status = entry.status();
    if let Some(seen) = scan.sessions.get(&id) {
        let returned = !status.is_active();
        if returned {
            set_active(entry);
        }
        let completed = complete(entry, seen, rebuilding);
        let name = id.to_string();
        match (was_renamed.is_some(), returned, completed) {
            (true, ..) => {}
            (_, true, _) => changes.returned.push(name),
            (_, _, true) => changes.completed.push(name),
            _ => changes.unchanged += 1,
        }
    } else if let Some(archive) = scan.archives.get(&id) {
        if let Some(why) = unreadable(archive) {
            changes.problems.push(problem(&id, why));
        }
        let was_archived = entry.status() == Status::Archived;
        let learned = set_archived(entry, &id, archive, rebuilding);
        match (learned, was_archived) {
            (false, _) => changes.unchanged += 1,
            (true, true) => changes.completed.push(id.to_string()),
            (true, false) => changes.archived.push(id.to_string()),
        }
    } else if scan.blocked.contains(&id) {
        let why = "in sessions/ stands a file or a link of that name";
        changes.problems.push(problem(&id, why));
        changes.unchanged += 1;
    } else if let Some(kind) = scan.no_archives.get(&id) {
        changes.problems.push(problem(&id, no_pack(&id, *kind)));
        changes.unchanged += 1;
    } else if matches!(status, Status::Missing | Status::Removed) {
        changes.unchanged += 1;
    } else {
        if let Status::Other(word) = &status {
            entry.set("status_before", word.as_str());
        }
        entry.set_status(&Status::Missing);
        changes.missing.push(id.to_string());
    }
}

/// The session is there again: as active, or with the word of its own that it had.
fn set_active(entry: &mut Entry) {
    let before = entry.text("status_before").map(Status::parse);
    entry.set_status(&before.unwrap_or(Status::Active));
    entry.unset("status_before");
    entry.unset("removed_at");
}

/// What an archive does not say of itself as was wanted, and why.
fn unreadable(archive: &ArchiveSeen) -> Option<String> {
    archive.said.as_ref()?.problem.clone()
}

/// Whether that changed anything.
fn set_archived(entry: &mut Entry, id: &SessionId, seen: &ArchiveSeen, rebuilding: bool) -> bool {
    let before = entry.clone();
    entry.set_status(&Status::Archived);
    entry.unset("removed_at");
    set_archive(entry, id, seen, rebuilding);
    let said = seen.said.as_ref();
    if entry.archived_at().is_none() {
        let made = said.and_then(|said| said.made).unwrap_or(seen.written);
        let made = made.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        entry.set("archived_at", made);
    }
    if said.is_some() {
        learn(entry, &packed_entry(id, seen), rebuilding);
    }
    *entry != before
}

/// Notes which file the archive is. What is noted of another one is kept, unless the index is made anew.
fn set_archive(entry: &mut Entry, id: &SessionId, seen: &ArchiveSeen, rebuilding: bool) {
    let digest = seen.said.as_ref().and_then(|said| said.blake3.as_deref());
    let noted = entry.archive();
    let bytes = noted.and_then(|archive| archive.get("bytes")?.as_u64());
    let has_digest =
        noted.is_some_and(|archive| archive.get("blake3").is_some_and(Value::is_string));
    let keep = match noted {
        None => false,
        Some(_) if !rebuilding => true,
        Some(_) => bytes == Some(seen.bytes) && (has_digest || digest.is_none()),
    };
    if !keep {
        let file = format!("archive/{id}.tar.zst");
        let archive = json!({"file": file, "bytes": seen.bytes, "blake3": digest});
        entry.set("archive", archive);
    }
}

/// What `from` knows of the same session and the entry does not: its lasting identity, and when the index is made anew
/// what a new entry would know.
fn learn(entry: &mut Entry, from: &Entry, rebuilding: bool) {
    let keys: &[&str] = match rebuilding {
        true => &["session_id", "title", "agent", "created_at"],
        false => &["session_id"],
    };
    for key in keys {
        if let (None, Some(value)) = (entry.text(key), from.text(key)) {
            entry.set(key, value);
        }
    }
}

/// The entry of an archive that has none: what the index said when it was made, or else what its `session.json` says.
fn packed_entry(id: &SessionId, seen: &ArchiveSeen) -> Entry {
    let said = seen.said.as_ref();
    match said.and_then(|said| said.entry.as_ref()) {
        Some(fields) => Entry::packed(id, fields),
        None => new_entry(id, said.and_then(|said| said.record.as_ref())),
    }
}

/// The entry of a folder that has none. An archive of the very same session beside it has kept the labels.
fn unpacked_entry(seen: &Seen, archive: Option<&ArchiveSeen>) -> Entry {
    let plain = new_entry(&seen.id, seen.record.as_ref());
    let Some(archive) = archive.filter(|archive| archive.said.is_some()) else {
        return plain;
    };
    let mut packed = packed_entry(&seen.id, archive);
    let same = packed.session_id().is_some() && packed.session_id() == plain.session_id();
    if !same {
        return plain;
    }
    packed.set_status(&Status::Active);
    set_archive(&mut packed, &seen.id, archive, true);
    packed
}

/// Learns from the record what the entry does not know: its lasting identity, and when the index is rebuilt
/// all that a new entry would know. Whether that changed anything.
fn complete(entry: &mut Entry, seen: &Seen, rebuilding: bool) -> bool {
    let Some(record) = &seen.record else {
        return false;
    };
    let before = entry.clone();
    if let Some(identity) = &record.session_id
        && (rebuilding || entry.session_id().is_none())
    {
        entry.set("session_id", identity.as_str());
    }
    if rebuilding {
        for (key, value) in [
            ("title", &record.title),
            ("agent", &record.agent),
            ("created_at", &record.created_at),
        ] {
            if let Some(value) = value.as_deref().filter(|_| entry.text(key).is_none()) {
                entry.set(key, value);
            }
        }
    }
    *entry != before
}

/// The entry of a session that has none. A sync tag is not taken from the record: what is shared with other
/// devices is decided in the index alone.
pub fn new_entry(id: &SessionId, record: Option<&Record>) -> Entry {
    let mut entry = Entry::new(id);
    let Some(record) = record else {
        return entry;
    };
    for (key, value) in [
        ("title", &record.title),
        ("agent", &record.agent),
        ("project", &record.project),
        ("created_at", &record.created_at),
        ("session_id", &record.session_id),
    ] {
        if let Some(value) = value {
            entry.set(key, value.as_str());
        }
    }
    if !record.tags.is_empty() {
        entry.set("tags", record.tags.clone());
    }
    entry
}

/// The index made anew: one entry an id, with the labels of the old index when that parses.
pub(super) fn rebuild(old: Option<&Index>, scan: &Scan) -> (Index, Changes) {
    let Some(old) = old else {
        let mut index = Index::default();
        let changes = agree(&mut index, scan, true);
        return (index, changes);
    };
    let mut folded: Vec<Entry> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for entry in old.entries().filter(|e| e.session().is_ok()) {
        match place.get(entry.id()) {
            Some(at) => fold(&mut folded[*at], entry),
            None => {
                place.insert(entry.id(), folded.len());
                folded.push(entry.clone());
            }
        }
    }
    let twice: BTreeSet<String> = old.duplicates().into_iter().collect();
    let kept = old.entries().filter(|e| e.session().is_ok()).count();
    let dropped = (old.items().len() - kept) as u64;
    let mut index = Index::anew(old.shape(), folded);
    let mut changes = agree(&mut index, scan, true);
    changes.not_entries = dropped;
    for id in twice {
        let why = "stood more than once in the index; its entries were put together";
        changes.problems.push(problem(id, why));
    }
    (index, changes)
}

/// Adds to an entry what another of the same id knows besides: tags, and fields that are empty in the first.
fn fold(first: &mut Entry, other: &Entry) {
    for (key, value) in other.fields() {
        let empty = matches!(first.fields().get(key), None | Some(Value::Null));
        if empty {
            first.set(key, value.clone());
        }
    }
    for tag in other.tags() {
        first.add_tag(tag);
    }
}

#[cfg(test)]
#[path = "agree_tests.rs"]
mod tests;
