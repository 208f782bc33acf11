//! `session.json`: the agent's own record of a session, read leniently and never rewritten.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Entry, Home, Index, SessionId};
use crate::base::{Error, Result};
use crate::disk::{self, Dir};

/// No honest record is larger; a file that is does not deserve the memory.
pub(super) const LIMIT: u64 = 16 << 20;

/// What is needed of a session's record. A field that is absent or of another type is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The folder's name when the record was written.
    pub id: Option<String>,
    /// The identity that stays when the folder is renamed.
    pub session_id: Option<String>,
    /// When the session began, as it stands there.
    pub created_at: Option<String>,
    /// The agent's name.
    pub agent: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The folder in which the agent works.
    pub cwd: Option<String>,
    /// The project that the session was made for.
    pub project: Option<String>,
    /// The tags that it was made with.
    pub tags: Vec<String>,
}

impl Record {
    /// Reads the record of a session's open folder; `None` when it has none.
    ///
    /// # Errors
    /// When it is unreadable, too large, torn, or no JSON object.
    pub fn read(session: &Dir) -> Result<Option<Record>> {
        let name = std::ffi::OsStr::new("session.json");
        let content = disk::read_small_in(session, name, LIMIT)
            .map_err(|e| Error::io("can not read", "session.json", e))?;
        content.map(|content| Record::parse(&content)).transpose()
    }

    /// Understands the content of a `session.json`.
    ///
    /// # Errors
    /// When it is torn, or no JSON object.
    pub fn parse(content: &[u8]) -> Result<Record> {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let value: Value = serde_json::from_slice(content)
            .map_err(|e| Error::io("can not understand", "session.json", e))?;
        match value {
            Value::Object(fields) => Ok(Record::of(&fields)),
            _ => Err(Error::failed("holds no JSON object:").at("session.json")),
        }
    }

    fn of(fields: &Map<String, Value>) -> Record {
        Record {
            id: text(fields, "id"),
            session_id: text(fields, "session_id").or_else(|| text(fields, "sessionId")),
            created_at: moment(fields, "created_at").or_else(|| moment(fields, "createdAt")),
            agent: text(fields, "agent"),
            title: text(fields, "title"),
            cwd: text(fields, "cwd"),
            project: text(fields, "project"),
            tags: match fields.get("tags") {
                Some(Value::Array(tags)) => tags
                    .iter()
                    .filter_map(|t| t.as_str().map(str::to_owned))
                    .collect(),
                _ => Vec::new(),
            },
        }
    }
}

/// A moment as agents write it: RFC 3339, or a date and time without an offset, which is taken for UTC.
pub fn parse_moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok()?;
        Some(zoned.timestamp())
    })
}

fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    match fields.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// A moment as text; a number is milliseconds since 1970, as agents write them, or seconds when it is small.
fn moment(fields: &Map<String, Value>, key: &str) -> Option<String> {
    let Some(Value::Number(number)) = fields.get(key) else {
        return text(fields, key);
    };
    let number = number.as_f64()?;
    let milliseconds = if number.abs() < 1e11 {
        number * 1000.0
    } else {
        number
    };
    // `as` saturates, and a moment outside the calendar is none.
    Some(
        Timestamp::from_millisecond(milliseconds as i64)
            .ok()?
            .to_string(),
    )
}

/// The conversation of a session: as the index has it, else as its record says.
pub fn identity_of(home: &Home, index: Option<&Index>, id: &SessionId) -> Option<String> {
    let entry = index.and_then(|index| index.find(id.as_str()));
    let indexed = entry.and_then(Entry::session_id).map(str::to_owned);
    indexed.or_else(|| {
        let folder = Dir::open(home.sessions()).ok()?;
        let folder = folder.open_beneath(Path::new(id.as_str())).ok()?;
        Record::read(&folder).ok()??.session_id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_do_not_fail() {
        let record = Record::parse(
            r#"{"id": 7, "session_id": "ab", "created_at": 1717405200000, "agent": null, "title": ["x"],
                "tags": ["清洗", 3, null], "cwd": "/a/b", "turns": {"n": 1}}"#
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(record.id, None);
        assert_eq!(record.session_id.as_deref(), Some("ab"));
        assert_eq!(record.created_at.as_deref(), Some("2024-06-03T09:00:00Z"));
        assert_eq!((record.agent, record.title), (None, None));
        assert_eq!(record.tags, ["清洗"]);
        assert_eq!(record.cwd.as_deref(), Some("/a/b"));
    }

    #[test]
    fn torn_ones_are_an_error_with_a_place() {
        for torn in ["", "{\"id\": \"a", "\0\0\0\0", "[1]", "\"x\"", "{} {}"] {
            assert!(Record::parse(torn.as_bytes()).is_err(), "{torn:?}");
        }
        let error = Record::parse(b"{\n  \"id\": ").unwrap_err().to_string();
        assert!(error.contains("line 2 column"), "{error}");
        let deep = "[".repeat(100_000);
        assert!(Record::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn moments() {
        let read = |t: &str| parse_moment(t).map(|m| m.to_string());
        assert_eq!(
            read("2024-06-03T17:00:00+08:00").unwrap(),
            "2024-06-03T09:00:00Z"
        );
        assert_eq!(
            read("2024-06-03T09:00:00.5").unwrap(),
            "2024-06-03T09:00:00.5Z"
        );
        assert_eq!(read("2024-06-03").unwrap(), "2024-06-03T00:00:00Z");
        assert_eq!(read("昨天"), None);
    }
}
