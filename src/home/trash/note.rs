//! `note.json` in each folder of the trash: what an act has done, so that it can be taken back.
//!
//! A person reads it with `cat`, so a path is a plain text wherever that is exact. What is not plain (bytes
//! that are not UTF-8, a place below the folder other than the one in the home) is told in an object.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Context, human};
use crate::disk::Digest;

/// What an act has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Why, for a person.
    pub why: String,
    /// When, as RFC 3339.
    pub at: String,
    /// The command, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What was moved here, or kept here as a copy before it was replaced.
    #[serde(default)]
    pub was: Vec<Was>,
    /// Files and folders that were added to the home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Added>,
    /// Permission bits that were changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeChange>,
    /// Sessions that became tombstones in the index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Former>,
}

impl Note {
    /// Of an act that begins now.
    pub fn of(why: impl Into<String>, context: &Context) -> Note {
        Note {
            why: why.into(),
            at: context.clock.now().to_string(),
            ..Note::default()
        }
    }

    /// Like [`Note::of`], of what a command does that a person has given.
    pub fn by(command: &str, why: impl Into<String>, context: &Context) -> Note {
        Note {
            command: Some(command.to_owned()),
            ..Note::of(why, context)
        }
    }
}

/// Something that lies beside the note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Wire", from = "Wire")]
pub struct Was {
    /// Where it was, below the home.
    pub path: PathBuf,
    /// Where it lies, below the note's folder.
    pub lies: PathBuf,
    /// Why, where that differs from thing to thing.
    pub why: Option<String>,
    /// What stands in its place since, if that is known: as long as it does, going back loses nothing.
    pub replaced_by: Option<Mark>,
}

/// What tells one content of a file, or one target of a link, from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The digest of a file, in hexadecimal digits, as `b3sum` prints it.
    Blake3(String),
    /// Where a link points.
    Link(ExactPath),
}

impl Mark {
    /// Of a file with this digest.
    pub fn of(digest: Digest) -> Mark {
        Mark::Blake3(digest.to_hex().to_string())
    }
}

/// Something that was added to the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Where, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// What it held then; none for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// Permission bits that were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChange {
    /// Of what, below the home; empty for the home itself.
    #[serde(flatten)]
    pub path: WirePath,
    /// What they were.
    pub mode: u32,
    /// What they were set to.
    pub now: u32,
}

/// The status that a session had before it became a tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// Its id.
    pub id: String,
    /// Its status as it stood in the index; none when the field was not there.
    pub status: Option<String>,
}

impl Was {
    /// Something that lies at the same path below the folder as it had below the home.
    pub fn new(path: impl Into<PathBuf>) -> Was {
        let path = path.into();
        Was {
            lies: lies(&path),
            path,
            why: None,
            replaced_by: None,
        }
    }

    /// Says why.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Was {
        self.why = Some(why.into());
        self
    }

    /// Says what stands in its place since.
    #[must_use]
    pub fn replaced_by(mut self, mark: Option<Mark>) -> Was {
        self.replaced_by = mark;
        self
    }
}

/// Where something lies below its folder of the trash: the note's own name is not free.
pub(super) fn lies(path: &Path) -> PathBuf {
    match path.starts_with(super::NOTE) {
        true => Path::new("_").join(path),
        false => path.to_path_buf(),
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Plain(String),
    Exact(Exact),
}

#[derive(Clone, Serialize, Deserialize)]
struct Exact {
    #[serde(flatten)]
    path: WirePath,
    lies: ExactPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaced_by: Option<Mark>,
}

impl From<Was> for Wire {
    fn from(was: Was) -> Wire {
        let plain = was.lies == was.path && was.why.is_none() && was.replaced_by.is_none();
        match was.path.to_str() {
            Some(text) if plain && human::escape(text) == text => Wire::Plain(text.to_owned()),
            _ => Wire::Exact(Exact {
                path: was.path.into(),
                lies: was.lies.into(),
                why: was.why,
                replaced_by: was.replaced_by,
            }),
        }
    }
}

impl From<Wire> for Was {
    fn from(wire: Wire) -> Was {
        match wire {
            Wire::Plain(text) => Was::new(text),
            Wire::Exact(exact) => Was {
                path: exact.path.0,
                lies: exact.lies.0,
                why: exact.why,
                replaced_by: exact.replaced_by,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn plain_where_that_is_exact() {
        let odd = Path::new(OsStr::from_bytes(b"sessions/a\xff"));
        let note = Note {
            why: "a test".into(),
            at: "2024-06-15T12:00:00Z".into(),
            was: vec![
                Was::new("sessions/数据/a.md"),
                Was::new("note.json"),
                Was::new(odd).because("the same"),
                Was::new("a\nb"),
            ],
            added: vec![Added {
                path: odd.to_path_buf().into(),
                mark: Some(Mark::Link(odd.to_path_buf().into())),
            }],
            ..Note::default()
        };
        let text = serde_json::to_string(&note).unwrap();
        assert!(
            text.contains(
                r#""was":["sessions/数据/a.md",{"path":"note.json","lies":"_/note.json"}"#
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), note);
    }

    #[test]
    fn the_notes_of_earlier_versions_are_read() {
        let old = r#"{"why": "the index was made anew", "at": "2024-06-15T12:00:00Z", "was": ["index.json"]}"#;
        let note: Note = serde_json::from_str(old).unwrap();
        assert_eq!(note.was, [Was::new("index.json")]);
        assert_eq!(note.command, None);
    }
}
