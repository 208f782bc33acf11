//! What the index says of a session that is archived, and of one that comes back.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::disk::Dir;
use crate::home::{Entry, Index, Record, SessionId, Status};
use crate::pack::{ENDING, Manifest};
use crate::sessions::new_entry;

/// A session's folder below the home.
pub(super) fn folder_of(id: &SessionId) -> PathBuf {
    PathBuf::from(format!("sessions/{id}"))
}

/// A session's pack below the home.
pub(super) fn pack_of(id: &SessionId) -> PathBuf {
    PathBuf::from(format!("archive/{id}{ENDING}"))
}

/// The field `archive` of an entry.
pub(super) fn archive_field(id: &SessionId, bytes: u64, blake3: &str) -> Map<String, Value> {
    let mut field = Map::new();
    field.insert("file".into(), json!(format!("archive/{id}{ENDING}")));
    field.insert("bytes".into(), json!(bytes));
    field.insert("blake3".into(), json!(blake3));
    field
}

/// The entry of a session as it stands in the index, or else as its record makes it. A torn record costs the entry
/// its details, and nothing else.
pub(super) fn entry_of(index: &Index, id: &SessionId, folder: &Dir) -> Entry {
    index.find(id.as_str()).cloned().unwrap_or_else(|| {
        let record = Record::read(folder).unwrap_or_default();
        new_entry(id, record.as_ref())
    })
}

/// The entry of a session that comes out of its pack: as the index has it, else as the pack keeps it, else as its
/// record makes it.
pub(super) fn entry_from(
    index: &Index,
    id: &SessionId,
    manifest: Option<&Manifest>,
    folder: &Dir,
) -> Entry {
    match manifest.and_then(|manifest| manifest.entry.clone()) {
        Some(fields) if index.find(id.as_str()).is_none() => Entry::packed(id, &fields),
        _ => entry_of(index, id, folder),
    }
}

/// What the pack keeps of the entry: as it will be when the folder has been put away.
pub(super) fn kept_in_pack(entry: &Entry, archived_at: Option<&str>) -> Map<String, Value> {
    let mut entry = entry.clone();
    // A pack can not hold its own digest.
    entry.set("archive", Value::Null);
    if let Some(at) = archived_at {
        if let Status::Other(word) = entry.status() {
            entry.set("status_before", word);
        }
        entry.set_status(&Status::Archived);
        entry.set("archived_at", at);
    }
    entry.fields().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_keeps_the_labels_and_the_word_that_somebody_else_gave() {
        let id = SessionId::adopt("20240603_数据").unwrap();
        let mut entry = Entry::new(&id);
        entry.add_tag("清洗");
        entry.set("status", "paused");
        entry.set("archive", json!({"file": "x"}));
        let kept = kept_in_pack(&entry, Some("2024-06-15T12:00:00Z"));
        assert_eq!(kept["status"], "archived");
        assert_eq!(kept["status_before"], "paused");
        assert_eq!(kept["tags"], json!(["清洗"]));
        assert_eq!(kept["archive"], Value::Null);
        assert_eq!(kept_in_pack(&entry, None)["status"], "paused");
        let back = Entry::packed(&SessionId::adopt("renamed").unwrap(), &kept);
        assert_eq!((back.id(), back.tags()), ("renamed", vec!["清洗"]));
        assert_eq!(back.fields()["id"], "renamed");
    }
}
