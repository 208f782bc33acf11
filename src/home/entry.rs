//! One session in the index: what a person edits and git should see.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{SessionId, parse_moment};
use crate::base::Result;

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// In `sessions/`.
    Active,
    /// In `archive/` alone.
    Archived,
    /// Indexed, found nowhere: kept until a person decides.
    Missing,
    /// Removed on purpose.
    Removed,
    /// A word of somebody else's, kept as it is; such a session counts as active.
    Other(String),
}

impl Status {
    /// Reads the word; any other than ours is kept.
    pub fn parse(word: &str) -> Status {
        match word {
            "active" => Status::Active,
            "archived" => Status::Archived,
            "missing" => Status::Missing,
            "removed" => Status::Removed,
            other => Status::Other(other.to_owned()),
        }
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        match self {
            Status::Active => "active",
            Status::Archived => "archived",
            Status::Missing => "missing",
            Status::Removed => "removed",
            Status::Other(word) => word,
        }
    }

    /// Whether the session should be in `sessions/`.
    pub fn is_active(&self) -> bool {
        matches!(self, Status::Active | Status::Other(_))
    }
}

/// When a session began: as its entry says, else by the date in its id.
pub(super) fn began(created_at: Option<&str>, id: &str) -> Option<Timestamp> {
    let by_field = created_at.and_then(parse_moment);
    by_field.or_else(|| {
        let date = SessionId::adopt(id).ok()?.date()?;
        let zoned = date.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok()?;
        Some(zoned.timestamp())
    })
}

/// An entry of the index. Fields that this program does not know keep their place, order and digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    id: String,
    fields: Map<String, Value>,
}

impl Entry {
    /// The entry of a new active session, with every field that the format names.
    pub fn new(id: &SessionId) -> Entry {
        let mut fields = Map::new();
        fields.insert("id".into(), id.as_str().into());
        fields.insert("status".into(), "active".into());
        for key in ["title", "agent", "project"] {
            fields.insert(key.into(), Value::Null);
        }
        fields.insert("tags".into(), Value::Array(Vec::new()));
        for key in [
            "sync_tag",
            "created_at",
            "archived_at",
            "session_id",
            "archive",
        ] {
            fields.insert(key.into(), Value::Null);
        }
        Entry {
            id: id.as_str().to_owned(),
            fields,
        }
    }

    /// The entry that a pack carries, under the id that the pack's name gives it: what the index said when it was made,
    /// without what it could not know of the pack itself.
    pub fn packed(id: &SessionId, fields: &Map<String, Value>) -> Entry {
        let mut fields = fields.clone();
        // In an index that is an object of entries the id is the key, and no field.
        match fields.get_mut("id") {
            Some(field) => *field = id.as_str().into(),
            None => drop(fields.shift_insert(0, "id".into(), id.as_str().into())),
        }
        for key in ["archived_at", "archive"] {
            if let Some(field) = fields.get_mut(key) {
                *field = Value::Null;
            }
        }
        Entry {
            id: id.as_str().to_owned(),
            fields,
        }
    }

    /// An entry as it stands in a file, under the id that the file gives it.
    pub(super) fn read(id: String, fields: Map<String, Value>) -> Entry {
        Entry { id, fields }
    }

    /// The id as it stands there. It may be anything: only [`Entry::session`] may become a path.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id, checked: safe to be joined to a path.
    ///
    /// # Errors
    /// When it could not be a session's folder.
    pub fn session(&self) -> Result<SessionId> {
        SessionId::adopt(&self.id)
    }

    /// Every field, in order.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The status; absent or of another type: active.
    pub fn status(&self) -> Status {
        self.text("status").map_or(Status::Active, Status::parse)
    }

    /// The title that a person or agent gave.
    pub fn title(&self) -> Option<&str> {
        self.text("title")
    }

    /// The agent's name.
    pub fn agent(&self) -> Option<&str> {
        self.text("agent")
    }

    /// The project.
    pub fn project(&self) -> Option<&str> {
        self.text("project")
    }

    /// The tags. A single text counts as one.
    pub fn tags(&self) -> Vec<&str> {
        match self.fields.get("tags") {
            Some(Value::Array(tags)) => tags.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(tag)) => vec![tag],
            _ => Vec::new(),
        }
    }

    /// The device or group that the session is shared with.
    pub fn sync_tag(&self) -> Option<&str> {
        self.text("sync_tag")
    }

    /// Whether the session goes to other devices: it is active and carries a sync tag.
    pub fn travels(&self) -> bool {
        self.status().is_active() && self.sync_tag().is_some()
    }

    /// When the session began, as it stands there.
    pub fn created_at(&self) -> Option<&str> {
        self.text("created_at")
    }

    /// When the session began: as the entry says, else by the date in its id.
    pub fn created(&self) -> Option<Timestamp> {
        began(self.created_at(), &self.id)
    }

    /// When the session was archived, as it stands there.
    pub fn archived_at(&self) -> Option<&str> {
        self.text("archived_at")
    }

    /// The identity that stays when the folder is renamed.
    pub fn session_id(&self) -> Option<&str> {
        self.text("session_id")
    }

    /// `{"file", "bytes", "blake3"}` of the archive.
    pub fn archive(&self) -> Option<&Map<String, Value>> {
        self.fields.get("archive")?.as_object()
    }

    /// The archive has the name that belongs to `id`.
    pub fn follow_archive(&mut self, id: &SessionId) {
        if let Some(Value::Object(archive)) = self.fields.get_mut("archive")
            && let Some(file) = archive.get_mut("file")
        {
            *file = Value::String(format!("archive/{id}.tar.zst"));
        }
    }

    /// A field that is a text and not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.fields.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Sets a field in its place, or at the end. Null for a field that is absent is nothing to do.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.fields.get_mut(key) {
            Some(field) => *field = value,
            None if value.is_null() => {}
            None => {
                self.fields.insert(key.to_owned(), value);
            }
        }
    }

    /// Takes a field away.
    pub fn unset(&mut self, key: &str) {
        // `shift_remove`, so that the others keep their order.
        self.fields.shift_remove(key);
    }

    /// Sets the status.
    pub fn set_status(&mut self, status: &Status) {
        if self.text("status") != Some(status.as_str()) {
            self.set("status", status.as_str());
        }
    }

    /// Gives it another id, as when its folder was renamed.
    pub fn set_id(&mut self, id: &SessionId) {
        id.as_str().clone_into(&mut self.id);
        if self.fields.contains_key("id") {
            self.set("id", id.as_str());
        }
    }

    /// Adds a tag that it does not have.
    pub fn add_tag(&mut self, tag: &str) {
        let mut tags = self.tag_values().into_owned();
        if !tags.iter().any(|t| t == tag) {
            tags.push(tag.into());
            self.set("tags", tags);
        }
    }

    /// Takes a tag away.
    pub fn remove_tag(&mut self, tag: &str) {
        let mut tags = self.tag_values().into_owned();
        let before = tags.len();
        tags.retain(|t| t != tag);
        if tags.len() != before {
            self.set("tags", tags);
        }
    }

    /// The tags with whatever else stands among them.
    fn tag_values(&self) -> Cow<'_, [Value]> {
        match self.fields.get("tags") {
            Some(Value::Array(tags)) => Cow::Borrowed(tags),
            Some(Value::Null) | None => Cow::Owned(Vec::new()),
            Some(other) => Cow::Owned(vec![other.clone()]),
        }
    }
}
