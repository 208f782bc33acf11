//! The message of a commit: which sessions, how many turns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::tree::{Became, Change};
use crate::base::human;

/// So many of a kind were added, changed and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// New ones.
    pub added: u64,
    /// Those that hold something else now.
    pub changed: u64,
    /// Those that went.
    pub removed: u64,
}

impl Counted {
    fn count(&mut self, became: Became) {
        match became {
            Became::Added => self.added += 1,
            Became::Changed => self.changed += 1,
            Became::Removed => self.removed += 1,
        }
    }

    fn add(&mut self, other: &Counted) {
        self.added += other.added;
        self.changed += other.changed;
        self.removed += other.removed;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.added + self.changed + self.removed
    }

    /// `+14 ~2 -1 turns`
    fn signed(&self, one: &str, many: &str) -> Option<String> {
        let signs = [("+", self.added), ("~", self.changed), ("-", self.removed)];
        let parts: Vec<String> = signs
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(sign, n)| format!("{sign}{}", human::count(*n)))
            .collect();
        let noun = if self.total() == 1 { one } else { many };
        (!parts.is_empty()).then(|| format!("{} {noun}", parts.join(" ")))
    }

    /// `2 memories`, where it does not matter how they changed; what went is said.
    fn plain(&self, one: &str, many: &str) -> Option<String> {
        let here = self.added + self.changed;
        let parts = [
            (here > 0).then(|| human::plural(here, one, many)),
            (self.removed > 0).then(|| format!("-{}", human::plural(self.removed, one, many))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// What of a session a commit has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionChange {
    /// Its id.
    pub id: String,
    /// `context/turn_*`.
    pub turns: Counted,
    /// What is in `memory/`.
    pub memories: Counted,
    /// `checkpoint.md`, wherever it lies.
    pub checkpoints: Counted,
    /// What is in `artifacts/`.
    pub artifacts: Counted,
    /// All else.
    pub others: Counted,
}

impl SessionChange {
    fn add(&mut self, other: &SessionChange) {
        self.turns.add(&other.turns);
        self.memories.add(&other.memories);
        self.checkpoints.add(&other.checkpoints);
        self.artifacts.add(&other.artifacts);
        self.others.add(&other.others);
    }

    fn count(&mut self, below: &[u8], became: Became) {
        let name = below.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let kind = below.split(|b| *b == b'/').next().unwrap_or_default();
        let counted = match kind {
            _ if name == b"checkpoint.md" => &mut self.checkpoints,
            b"context" if name.starts_with(b"turn_") => &mut self.turns,
            b"memory" => &mut self.memories,
            b"artifacts" => &mut self.artifacts,
            _ => &mut self.others,
        };
        counted.count(became);
    }

    /// `+14 turns, 2 memories`
    fn described(&self) -> String {
        let parts = [
            self.turns.signed("turn", "turns"),
            self.memories.plain("memory", "memories"),
            self.checkpoints.plain("checkpoint", "checkpoints"),
            self.artifacts.plain("artifact", "artifacts"),
            self.others.plain("file", "files"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// `20240603_crawler: +14 turns, 2 memories`
impl std::fmt::Display for SessionChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.id, self.described())
    }
}

/// What a commit has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub sessions: Vec<SessionChange>,
    /// Outside of sessions: `index.json`, `wbhome.toml`, `agents/…`.
    pub others: BTreeMap<String, Counted>,
    pub files: Counted,
}

/// A summary in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sessions: BTreeMap<Vec<u8>, SessionChange>,
    rest: Summary,
}

impl Tally {
    /// Counts a file.
    pub fn count(&mut self, change: &Change) {
        self.rest.files.count(change.became);
        let mut parts = change.path.splitn(3, |b| *b == b'/');
        match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
            (b"sessions", Some(id), Some(below)) => {
                let session = self.sessions.entry(id.to_vec());
                let session = session.or_insert_with(|| SessionChange {
                    id: String::from_utf8_lossy(id).into_owned(),
                    ..SessionChange::default()
                });
                session.count(below, change.became);
            }
            (first, _, _) => {
                let name = human::bytes(first);
                let other = self.rest.others.entry(name).or_default();
                other.count(change.became);
            }
        }
    }

    /// What was counted.
    pub fn summary(self) -> Summary {
        Summary {
            sessions: self.sessions.into_values().collect(),
            ..self.rest
        }
    }
}

impl Summary {
    /// `3 sessions: +14 turns, 2 memories`
    pub fn subject(&self) -> String {
        let mut all = SessionChange::default();
        self.sessions.iter().for_each(|session| all.add(session));
        let others: Vec<String> = self
            .others
            .iter()
            .map(|(name, counted)| other(name, counted))
            .collect();
        match self.sessions.as_slice() {
            [] if others.is_empty() => "nothing".to_owned(),
            [] => others.join(", "),
            [one] => format!("{}: {}", human::name(&one.id), one.described()),
            many => format!(
                "{} sessions: {}",
                human::count(many.len() as u64),
                all.described()
            ),
        }
    }

    /// Subject, a blank line, a line for each session, and for what is none.
    pub fn message(&self) -> String {
        let mut text = self.subject();
        text.push_str("\n\n");
        for session in &self.sessions {
            let _ = writeln!(
                text,
                "{}: {}",
                human::name(&session.id),
                session.described()
            );
        }
        for (name, counted) in &self.others {
            let _ = writeln!(text, "{}", other(name, counted));
        }
        text
    }
}

fn other(name: &str, counted: &Counted) -> String {
    match (name, counted) {
        // A folder.
        ("agents", _) => format!(
            "{name}: {}",
            counted.plain("file", "files").unwrap_or_default()
        ),
        (_, Counted { removed: 1.., .. }) => format!("-{name}"),
        _ => name.to_owned(),
    }
}
