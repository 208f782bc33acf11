//! `snapshots/<stamp>.json`: everything that the home was made of at that moment, and which pack holds it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Device;
use super::place::{Fields, Place};
use crate::base::wire::ExactPath;
use crate::base::{Error, Result};
use crate::pack::Flaw;

/// The format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its format.
    pub format: u32,
    /// When it was made. Later than each one before it, whatever the clock says.
    pub at: Timestamp,
    /// What the clock said, where that was behind the snapshot before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
    /// The program that made it.
    pub made_by: String,
    /// The home.
    pub home: HomeThen,
    /// What it was made of, in the order of [`Place`].
    pub items: Vec<Item>,
}

/// The home at the moment of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeThen {
    /// Its id.
    pub id: String,
    /// Where it lay.
    pub path: ExactPath,
    /// On which machine.
    pub device: Device,
    /// The newest commit of its history, if it had one.
    pub commit: Option<String>,
    /// The agent application's own folders that were saved: name in the store → where it lay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StateThen>,
}

/// A state folder at the moment of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateThen {
    /// What it is called in the store.
    pub name: String,
    /// Where it lay.
    pub path: ExactPath,
}

/// Where a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is there.
    Present,
    /// It is not there, and nobody said that it should not be: its last pack is kept for ever.
    Missing,
    /// It was removed on purpose: its last pack is kept for `keep_deleted`.
    Removed,
}

/// A thing of the home, and its packs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Which.
    #[serde(flatten, with = "place_fields")]
    pub place: Place,
    /// Where it stands.
    pub standing: Standing,
    /// Since which snapshot, unless it is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its newest pack. Of a session that has both, the folder's.
    pub newest: PackRef,
    /// The newest one that holds everything, when `newest` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<PackRef>,
    /// The session's archive, where it has a folder, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<PackRef>,
    /// Former packs that hold more than the newest one, until a person says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// The identity of the session: it stays when the session is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session's entry in the index, with all labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Map<String, Value>>,
}

/// A former pack that is kept, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Why: "3 turns fewer".
    pub why: String,
    /// Since which snapshot.
    pub since: Timestamp,
    /// The pack.
    pub pack: PackRef,
}

/// What a pack in the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A folder, packed.
    Packed,
    /// An archive, as it stood in `archive/`.
    Archive,
}

/// A pack in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRef {
    /// Where it lies, relative to the store.
    pub file: String,
    /// What it is.
    pub form: Form,
    /// When it was made.
    pub at: Timestamp,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 of it.
    pub blake3: String,
    /// How many files are in it.
    pub files: u64,
    /// Their length together.
    pub content: u64,
    /// How many turns, of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// What the source looked like: a digest over names, lengths, times, inodes and modes. `None` when something was
    /// changed while it was looked at, so that nobody can say whether the pack is what is there.
    pub seen: Option<String>,
    /// How many files changed, grew or vanished while they were packed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restless: u64,
    /// How many could not be read: with any, the pack is partial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: u64,
    /// The first of those; the manifest of the pack has them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<Flaw>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Item {
    /// Every pack that it names.
    pub fn packs(&self) -> impl Iterator<Item = &PackRef> {
        let kept = self.kept.iter().map(|kept| &kept.pack);
        std::iter::once(&self.newest)
            .chain(&self.complete)
            .chain(&self.archive)
            .chain(kept)
    }
}

impl Item {
    /// The pack of what is there now in this form.
    pub(super) fn in_form(&self, form: Form) -> Option<&PackRef> {
        let mut packs = std::iter::once(&self.newest).chain(&self.archive);
        packs.find(|pack| pack.form == form)
    }
}

impl PackRef {
    /// Whether everything that could have been read is in it.
    pub fn is_complete(&self) -> bool {
        self.unreadable == 0
    }
}

impl Snapshot {
    /// The item of a place.
    pub fn item(&self, place: &Place) -> Option<&Item> {
        let at = self.items.binary_search_by(|item| item.place.cmp(place));
        self.items.get(at.ok()?)
    }

    /// Understands the text of a snapshot.
    ///
    /// # Errors
    /// What is wrong with it; of a newer format [`Kind::Newer`](crate::base::Kind).
    pub(super) fn parse(text: &[u8]) -> Result<Snapshot> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        match serde_json::from_slice::<Format>(text) {
            Ok(found) if found.format > FORMAT => Err(Error::new(
                crate::base::Kind::Newer,
                format!(
                    "is of a newer format ({}, this program knows {FORMAT})",
                    found.format
                ),
            )),
            _ => {
                let mut snapshot: Snapshot = serde_json::from_slice(text)
                    .map_err(|error| Error::failed("can not be understood").because(error))?;
                snapshot
                    .items
                    .sort_by(|one, other| one.place.cmp(&other.place));
                Ok(snapshot)
            }
        }
    }
}

mod place_fields {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Fields, Place};

    pub(super) fn serialize<S: Serializer>(
        place: &Place,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Fields::from(place.clone()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Place, D::Error> {
        Place::try_from(Fields::deserialize(from)?).map_err(D::Error::custom)
    }
}
