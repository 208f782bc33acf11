//! The vocabulary in which `check` and `migrate` say what is wrong: kinds, and findings of a kind.
//!
//! A finding is one thing that a person can look at: where it is, what is the case, and what stands beside it. It is
//! plain data, so that a migration can store what it found and show it weeks later.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::conflict::Relation;
use crate::base::human;

mod kind;
mod wire;

pub use kind::FindingKind;

/// One thing that is wrong, or that one should know.
///
/// In JSON, what does not apply is left out, and a path that is not UTF-8 is told twice: readable, and exact as base64 of
/// its bytes (`path_bytes`, `of_bytes`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "wire::Wire", from = "wire::Wire")]
pub struct Finding {
    /// Its class.
    pub kind: FindingKind,
    /// Where, relative to the home; empty for the home itself. What is missing is named by the path that it would have.
    pub path: PathBuf,
    /// The session concerned: its folder's name.
    pub session: Option<String>,
    /// What is the case, for a person: exact, short, without the path, safe to print.
    pub detail: String,
    /// What stands beside it, relative to the home: the original of a copy, the twin of a name.
    pub of: Option<PathBuf>,
    /// How a conflict copy relates to its original. Of a folder: `same` holds the same files, `prefix` fewer of the
    /// same, `extends` the same and more.
    pub relation: Option<Relation>,
    /// The number of the missing turn, the first one of a gap.
    pub turn: Option<u32>,
    /// How many: turns of a gap, torn lines, NUL bytes, references, files that only the copy of a folder has.
    pub count: Option<u64>,
    /// What to type to have it mended, where there is a command for that.
    pub command: Option<String>,
}

impl Finding {
    /// A finding; the session is read off the path.
    pub fn new(kind: FindingKind, path: impl Into<PathBuf>, detail: impl Into<String>) -> Self {
        let path = path.into();
        Finding {
            kind,
            session: session_of(&path).map(str::to_owned),
            path,
            detail: detail.into(),
            of: None,
            relation: None,
            turn: None,
            count: None,
            command: None,
        }
    }

    /// References to the place that the home was moved from (`old`), which are still in a file.
    pub fn stale_path(path: impl Into<PathBuf>, old: &Path, count: u64) -> Self {
        let old = human::path(old);
        Finding::new(FindingKind::StalePath, path, references(count, &old)).count(count)
    }

    /// Text that looks like a reference to `old` and may be prose.
    pub fn doubtful_path(path: impl Into<PathBuf>, old: &Path, count: u64) -> Self {
        let detail = format!(
            "{}, with a letter of another script right behind it, left alone",
            references(count, &human::path(old))
        );
        Finding::new(FindingKind::DoubtfulPath, path, detail).count(count)
    }

    /// References to `old` in a binary file.
    pub fn binary_path(path: impl Into<PathBuf>, old: &Path, count: u64) -> Self {
        let detail = format!(
            "{} in binary data, left alone",
            references(count, &human::path(old))
        );
        Finding::new(FindingKind::BinaryPath, path, detail).count(count)
    }

    /// Something that could not be read, and why.
    pub fn unreadable(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Finding::new(FindingKind::Unreadable, path, why)
    }

    /// Names the session concerned, where the path does not tell it.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Names what stands beside it.
    #[must_use]
    pub fn of(mut self, of: impl Into<PathBuf>) -> Self {
        self.of = Some(of.into());
        self
    }

    /// Says how the copy relates to its original.
    #[must_use]
    pub fn relation(mut self, relation: Relation) -> Self {
        self.relation = Some(relation);
        self
    }

    /// Names the turn.
    #[must_use]
    pub fn turn(mut self, turn: u32) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Says how many.
    #[must_use]
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Names the command that mends it.
    #[must_use]
    pub fn command(mut self, command: Option<String>) -> Self {
        self.command = command;
        self
    }

    /// What to print after the name of the session: the path within it, and the detail. Where the path only repeats what
    /// the detail says, the detail alone.
    pub fn sentence(&self) -> String {
        let within = match &self.session {
            Some(id) => self.path.strip_prefix(Path::new("sessions").join(id)),
            None => Ok(self.path.as_path()),
        };
        let within = within.unwrap_or(&self.path);
        if self.kind == FindingKind::MissingTurn || within.as_os_str().is_empty() {
            return self.detail.clone();
        }
        format!("{} {}", human::path(within), self.detail)
    }

    /// The order of every list: worst first, then by path.
    pub(super) fn order(&self, other: &Finding) -> std::cmp::Ordering {
        (self.kind, &self.path, &self.detail).cmp(&(other.kind, &other.path, &other.detail))
    }
}

/// The name of the session that a path relative to the home lies in, if it is UTF-8.
pub(super) fn session_of(rel: &Path) -> Option<&str> {
    let mut components = rel.iter();
    match components.next() {
        Some(first) if first == "sessions" => components.next()?.to_str(),
        _ => None,
    }
}

fn references(count: u64, to: &str) -> String {
    format!(
        "holds {} to {to}",
        human::plural(count, "reference", "references")
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn json_leaves_out_what_does_not_apply() {
        let finding = Finding::new(
            FindingKind::MissingTurn,
            "sessions/20240605_report/context/turn_004.json",
            "004 between 003 and 005",
        )
        .turn(4)
        .count(1);
        assert_eq!(
            serde_json::to_string(&finding).unwrap(),
            r#"{"kind":"missing-turn","path":"sessions/20240605_report/context/turn_004.json","session":"20240605_report","detail":"004 between 003 and 005","turn":4,"count":1}"#
        );
    }

    #[test]
    fn any_path_survives_json() {
        let odd = Path::new(OsStr::from_bytes(b"sessions/a\xff/b"));
        let finding = Finding::new(FindingKind::ConflictCopy, odd, "the same")
            .of(Path::new(OsStr::from_bytes(b"\xfe")))
            .relation(Relation::Same);
        let json = serde_json::to_string(&finding).unwrap();
        assert!(
            json.contains(r#""path_bytes":"c2Vzc2lvbnMvYf8vYg==""#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), finding);
        assert_eq!(finding.session, None);
    }

    #[test]
    fn a_sentence_says_nothing_twice() {
        let torn = Finding::new(
            FindingKind::TornJson,
            "sessions/s/context/turn_005.json",
            "ends in mid-record",
        );
        assert_eq!(torn.sentence(), "context/turn_005.json ends in mid-record");
        let gap = Finding::new(
            FindingKind::MissingTurn,
            "sessions/s/context/turn_004.json",
            "004 between 003 and 005",
        );
        assert_eq!(gap.sentence(), "004 between 003 and 005");
        let empty = Finding::new(FindingKind::EmptySession, "sessions/s", "holds no file");
        assert_eq!(empty.sentence(), "holds no file");
        let stale = Finding::stale_path("index.json", Path::new("/old\n"), 1907);
        assert_eq!(
            stale.sentence(),
            "index.json holds 1,907 references to /old\\n"
        );
    }
}
