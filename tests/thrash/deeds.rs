//! What is done to the home: which command, on which sessions, and which ends of it are right.

use crate::written::Lies;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    Commit,
    CommitOne,
    Consolidate,
    Archive,
    Unarchive,
    Rotate,
    RotateForced,
    Backup,
    Prune,
    Verify,
    Relay,
    Label,
    Index,
    Nightly,
    Remove,
    Restore,
    New,
    ByHand,
    EmptyTrash,
    Look,
}

use Deed::*;

/// Each of them, the more often the more can go wrong.
pub const DECK: [Deed; 34] = [
    Commit,
    Commit,
    CommitOne,
    Consolidate,
    Archive,
    Archive,
    Archive,
    Archive,
    Unarchive,
    Unarchive,
    Unarchive,
    Rotate,
    RotateForced,
    RotateForced,
    RotateForced,
    Backup,
    Backup,
    Backup,
    Prune,
    Verify,
    Relay,
    Relay,
    Relay,
    Label,
    Label,
    Index,
    Nightly,
    Nightly,
    Remove,
    Restore,
    New,
    ByHand,
    EmptyTrash,
    Look,
];

impl Deed {
    /// The arguments that always stand first.
    pub fn verb(self) -> &'static [&'static str] {
        match self {
            Commit | CommitOne => &["commit"],
            Consolidate => &["commit", "--consolidate"],
            Archive => &["archive"],
            Unarchive => &["unarchive"],
            Rotate => &["rotate"],
            RotateForced => &["rotate", "--force"],
            Backup => &["backup", "run"],
            Prune => &["backup", "prune"],
            Verify => &["backup", "verify"],
            // Of the sessions with a tag none may be left for a moment.
            Relay => &["relay", "sync", "--yes"],
            Label => &["label"],
            Index => &["index"],
            Nightly => &["nightly"],
            Remove => &["rm"],
            Restore => &["restore", "--from", "trash"],
            New => &["new"],
            ByHand => &["index"],
            EmptyTrash => &["check", "--empty-trash", "--older", "30d", "--yes"],
            Look => &["ls"],
        }
    }

    /// Where a session that it is told of must lie, and where it lies afterwards.
    pub fn moves(self) -> Option<(Lies, Lies)> {
        match self {
            Archive => Some((Lies::Folder, Lies::Archive)),
            Unarchive => Some((Lies::Archive, Lies::Folder)),
            Remove => Some((Lies::Folder, Lies::Trash)),
            Restore => Some((Lies::Trash, Lies::Folder)),
            _ => None,
        }
    }

    /// It writes to the stores.
    pub fn backs_up(self) -> bool {
        matches!(self, Backup | Prune | Nightly)
    }

    /// It may let go of what was cut out of a log.
    pub fn rotates(self) -> bool {
        matches!(self, Rotate | RotateForced | Nightly)
    }

    /// How it may end when the disk has room and nobody else has the lock.
    pub fn ends(self) -> &'static [i32] {
        match self {
            // Somebody writes to the session.
            Archive | Remove => &[0, 1],
            // Something changed too often to be read, or went away meanwhile.
            Commit | CommitOne | Consolidate | Backup | Relay | Nightly => &[0, 3],
            _ => &[0],
        }
    }
}
