//! What a pack says of itself, behind its data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Member;
use super::write::Flaw;

/// The format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;

/// What the maker of a pack knows of it besides its members.
#[derive(Clone, Debug)]
pub struct About {
    /// When it is made.
    pub created_at: Timestamp,
    /// The session's entry in the index, with all its labels.
    pub entry: Option<Map<String, Value>>,
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its format.
    pub format: u32,
    /// When the pack was made.
    pub created_at: Timestamp,
    /// The program that made it.
    pub made_by: String,
    /// The one top folder.
    pub top: String,
    /// The session's entry in the index, with all its labels.
    pub entry: Option<Map<String, Value>>,
    /// What could not be packed as it was. A pack with any is not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<Flaw>,
    /// The data frames in their order.
    pub frames: Vec<Frame>,
    /// The members in their order.
    pub members: Vec<Member>,
}

/// A data frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its length in the file.
    pub bytes: u64,
    /// The length of its content.
    pub content: u64,
    /// BLAKE3 of the frame as it stands in the file, in hexadecimal digits.
    pub blake3: String,
}
