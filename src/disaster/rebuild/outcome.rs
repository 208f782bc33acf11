//! What became of a home that was built anew: everything that did not come back as it was is named.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backup::{Kind, PackRef, Place};
use crate::base::wire::{ExactPath, WirePath};
use crate::history::Told;

/// What was brought back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The store that it came from.
    pub store: ExactPath,
    /// Where the home is now.
    pub to: ExactPath,
    /// The snapshot.
    pub snapshot: Timestamp,
    /// The id of the home.
    pub home: String,
    /// Where it lay.
    pub was: ExactPath,
    /// On which machine.
    pub host: String,
    /// Whether it lies elsewhere now, on this machine or another: then the store has to be told.
    pub moved: bool,
    /// What came back, kind by kind.
    pub kinds: Vec<Recovered>,
    /// Things of which no pack gave back anything.
    pub lost: Vec<Lost>,
    /// Things that came from an older pack than the newest.
    pub older: Vec<Older>,
    /// Packs that are of no use.
    pub not_used: Vec<NotUsed>,
    /// What is not there.
    pub missing: Vec<Missing>,
    /// Files that changed while they were packed.
    pub restless: Vec<InThing>,
    /// Sessions that the home itself was missing; they are back.
    pub were_missing: Vec<String>,
    /// Whether the index had to be made anew.
    pub index_made_anew: bool,
    /// What a repository gave.
    pub git: Option<FromGit>,
    /// What went into a folder for the agent application.
    pub state: Option<StateBack>,
    /// Things of the agent application's own folder that stay in the store, because nobody has named a folder for them.
    pub state_left: u64,
    /// What else a person should know.
    pub warnings: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// Whether an earlier run had done all but the last renames.
    pub continued: bool,
}

/// What came back of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Which.
    pub kind: Kind,
    /// How many things.
    pub things: u64,
    /// Of sessions: how many of them are archives.
    pub archives: u64,
    /// Their files.
    pub files: u64,
    /// And bytes.
    pub bytes: u64,
}

/// A thing of which nothing came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Of which kind.
    pub kind: Kind,
    /// How a person calls it.
    pub thing: String,
    /// Why.
    pub why: String,
}

/// A thing that came from an older pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Older {
    /// Of which kind.
    pub kind: Kind,
    /// How a person calls it.
    pub thing: String,
    /// When the pack that it came from was made.
    pub at: Timestamp,
    /// When the newest one was made.
    pub newest: Timestamp,
    /// The newest one, below the store: it can be looked into by hand.
    pub file: String,
    /// Why it was not taken.
    pub why: String,
}

/// A pack that is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotUsed {
    /// How a person calls the thing.
    pub thing: String,
    /// The pack, below the store.
    pub file: String,
    /// When it was made.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// Something that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// How a person calls the thing that it belongs to.
    pub thing: String,
    /// Which, below the thing.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
    /// Whether it had been removed before it could be packed: then nothing is missed.
    pub vanished: bool,
}

/// Something in a thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InThing {
    /// How a person calls the thing.
    pub thing: String,
    /// Which, below the thing.
    #[serde(flatten)]
    pub path: WirePath,
}

/// What a repository gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromGit {
    /// The repository that was named.
    pub repository: ExactPath,
    /// Its last commit.
    pub tip: Told,
    /// What that holds that is newer.
    pub files: Vec<Newer>,
    /// Paths that a newer commit has removed, and that the store gave back all the same.
    pub removed: Vec<WirePath>,
    /// What was not laid, and why.
    pub left: Vec<Left>,
    /// Sessions that the store does not have: their text alone is back.
    pub text_only: Vec<String>,
    /// What became of the repository itself.
    pub history: History,
}

/// What became of the repository itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// It was copied into the home.
    Copied,
    /// It stays where it is, and belongs to the home.
    Linked,
}

/// A file that came from the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newer {
    /// Which, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// When it was committed, which is its time now.
    pub at: Timestamp,
    /// Whether it took the place of an older one.
    pub replaced: bool,
}

/// Something that was left, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Which, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
    /// Whether it is there all the same, in the archive of its session.
    pub in_archive: bool,
}

/// What went into a folder for the agent application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateBack {
    /// The folder.
    pub to: ExactPath,
    /// Where the former ones lay.
    pub was: Vec<ExactPath>,
    /// Transcripts in it.
    pub transcripts: u64,
    /// Files.
    pub files: u64,
    /// And bytes.
    pub bytes: u64,
}

impl Outcome {
    /// Whether everything that the snapshot knew came back as the newest that was known of it.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty()
            && self.not_used.is_empty()
            && self.older.is_empty()
            && self
                .git
                .iter()
                .flat_map(|git| &git.left)
                .all(|left| left.in_archive)
            && self.missing.iter().all(|missing| missing.vanished)
    }

    /// Counts what came back.
    pub(super) fn count(&mut self, kind: Kind, archive: bool, files: u64, bytes: u64) {
        let at = self.kinds.iter().position(|known| known.kind == kind);
        let at = at.unwrap_or_else(|| {
            self.kinds.push(Recovered {
                kind,
                things: 0,
                archives: 0,
                files: 0,
                bytes: 0,
            });
            self.kinds.len() - 1
        });
        if let Some(counted) = self.kinds.get_mut(at) {
            counted.things += 1;
            counted.archives += u64::from(archive);
            counted.files += files;
            counted.bytes += bytes;
        }
    }

    pub(super) fn not_used(&mut self, place: &Place, pack: &PackRef, why: &str) {
        self.not_used.push(NotUsed {
            thing: place.shown(),
            file: pack.file.clone(),
            at: pack.at,
            why: why.to_owned(),
        });
    }

    pub(super) fn lost(&mut self, place: &Place, why: impl Into<String>) {
        self.lost.push(Lost {
            kind: place.kind(),
            thing: place.shown(),
            why: why.into(),
        });
    }
}
