//! The kinds of findings: their words, meanings and order, in one table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The classes of findings, worst first: what is lost, what is damaged, what stands twice, what points nowhere, what
/// disagrees, and at the end what one should only know. The order is that of every list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// In the index, found nowhere.
    MissingSession,
    /// JSON that does not parse to its end.
    TornJson,
    /// NUL bytes where text was.
    NulRun,
    /// A gap in the numbers of the turns.
    MissingTurn,
    /// A file that the sync client never downloaded.
    Placeholder,
    /// An archive that is none.
    BadArchive,
    /// A repository that a sync client tore.
    TornHistory,
    /// Something that could not be read.
    Unreadable,
    /// A session folder without a single file.
    EmptySession,
    /// A session without its record.
    NoSessionJson,
    /// A second version of a folder.
    ConflictDir,
    /// A second version of a file.
    ConflictCopy,
    /// Two that claim to be the same session.
    DuplicateId,
    /// Two names that are one on other systems.
    NameCollision,
    /// A reference into the place that the home came from.
    StalePath,
    /// A link to something that is not there.
    DanglingLink,
    /// A session that would resume in a folder that is not there.
    WrongCwd,
    /// A session of an agent that is not declared.
    UnknownAgent,
    /// An agent that names a skill which is not there.
    MissingSkill,
    /// A session that the index does not know.
    UnindexedSession,
    /// An archive that the index does not know.
    ArchiveUnindexed,
    /// A home that other users can enter.
    OpenToOthers,
    /// A session whose name breaks the convention.
    BadName,
    /// Something that may be a reference, or prose.
    DoubtfulPath,
    /// A reference within a binary file.
    BinaryPath,
    /// A link that leaves the home.
    OutsideLink,
}

/// Each kind with its word and its meaning, in the order of the enum.
const TABLE: [(FindingKind, &str, &str); 26] = [
    (
        FindingKind::MissingSession,
        "missing-session",
        "the index names a session that is neither in sessions/ nor in archive/",
    ),
    (
        FindingKind::TornJson,
        "torn-json",
        "JSON that ends too early or does not parse",
    ),
    (
        FindingKind::NulRun,
        "nul-run",
        "a text file with a run of NUL bytes: the client or a power cut lost what was there",
    ),
    (
        FindingKind::MissingTurn,
        "missing-turn",
        "a gap in the numbers of a session's turns",
    ),
    (
        FindingKind::Placeholder,
        "placeholder",
        "a stand-in for a file that was never downloaded",
    ),
    (
        FindingKind::BadArchive,
        "bad-archive",
        "an archive that is no file, empty, no zstd, damaged, or not the one that the index knows",
    ),
    (
        FindingKind::TornHistory,
        "torn-history",
        "the repository of the home is torn, or can take no commit as it is",
    ),
    (
        FindingKind::Unreadable,
        "unreadable",
        "something that could not be read",
    ),
    (
        FindingKind::EmptySession,
        "empty-session",
        "a session folder without any file",
    ),
    (
        FindingKind::NoSessionJson,
        "no-session-json",
        "a session with files but without its session.json",
    ),
    (
        FindingKind::ConflictDir,
        "conflict-dir",
        "a second version of a folder that a sync client kept beside it",
    ),
    (
        FindingKind::ConflictCopy,
        "conflict-copy",
        "a second version of a file that a sync client kept beside it",
    ),
    (
        FindingKind::DuplicateId,
        "duplicate-id",
        "one id in two entries of the index, or in the session.json of two sessions",
    ),
    (
        FindingKind::NameCollision,
        "name-collision",
        "names that differ only by case or Unicode form: other systems keep one of them",
    ),
    (
        FindingKind::StalePath,
        "stale-path",
        "references to the place that the home was moved from",
    ),
    (
        FindingKind::DanglingLink,
        "dangling-link",
        "a symbolic link whose target is not there",
    ),
    (
        FindingKind::WrongCwd,
        "wrong-cwd",
        "the working folder in session.json, or of an agent that is running, does not exist",
    ),
    (
        FindingKind::UnknownAgent,
        "unknown-agent",
        "a session of an agent that has no folder in agents/",
    ),
    (
        FindingKind::MissingSkill,
        "missing-skill",
        "an agent.yaml names a skill that has no file, or the file an entry that is not there",
    ),
    (
        FindingKind::UnindexedSession,
        "unindexed-session",
        "a session folder that the index does not name",
    ),
    (
        FindingKind::ArchiveUnindexed,
        "archive-unindexed",
        "an archive that the index does not name",
    ),
    (
        FindingKind::OpenToOthers,
        "open-to-others",
        "other users of this machine can enter the home",
    ),
    (
        FindingKind::BadName,
        "bad-name",
        "a session name that is not YYYYMMDD_task in at most 30 characters",
    ),
    (
        FindingKind::DoubtfulPath,
        "doubtful-path",
        "text that may be a reference or prose: left as it is",
    ),
    (
        FindingKind::BinaryPath,
        "binary-path",
        "references within a binary file: left as they are",
    ),
    (
        FindingKind::OutsideLink,
        "outside-link",
        "a symbolic link that leaves the home",
    ),
];

impl FindingKind {
    /// Every kind, worst first.
    pub const ALL: [FindingKind; 26] = {
        let mut all = [FindingKind::MissingSession; 26];
        let mut i = 0;
        while i < all.len() {
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    /// The word that is printed, and used in JSON.
    pub fn as_str(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// What it means, in a line without a full stop.
    pub fn meaning(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Whether it is a problem (exit 4) or only something to know (exit 0). To know is what the program leaves alone
    /// by design, or what was somebody's choice: a home that holds nothing else is sound, and an alarm that never
    /// ends is read by nobody.
    pub fn is_problem(self) -> bool {
        self < FindingKind::BadName
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, (kind, word, meaning)) in TABLE.iter().enumerate() {
            assert_eq!(*kind as usize, i, "{word}");
            assert_eq!(serde_json::to_value(kind).unwrap(), *word);
            assert!(!meaning.is_empty() && !meaning.ends_with('.'));
        }
        assert!(FindingKind::ALL.is_sorted());
    }

    #[test]
    fn what_is_left_alone_by_design_is_no_problem() {
        let known: Vec<&str> = FindingKind::ALL
            .iter()
            .filter(|k| !k.is_problem())
            .map(|k| k.as_str())
            .collect();
        assert_eq!(
            known,
            ["bad-name", "doubtful-path", "binary-path", "outside-link"]
        );
    }
}
