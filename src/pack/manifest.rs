//! What a pack says of itself, behind its data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::write::Flaw;
use super::{Member, frames};
use crate::base::{Error, Kind, Result};

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

/// How what the manifest's frame holds begins.
const TAG: &[u8; 16] = b"wbhome manifest\n";

/// How the manifest is compressed: of a session of small files it is a twentieth of the pack.
const LEVEL: i32 = 15;

/// From this length on that would take longer than it is worth.
const LONG: usize = 1 << 20;

/// No manifest is longer: that of ten million members would be.
const LIMIT: u64 = 2 << 30;

impl Manifest {
    /// The whole skippable frame.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let fail =
            |error| Error::failed("the manifest of the pack can not be written").because(error);
        let json = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        let level = match json.len() < LONG {
            true => LEVEL,
            false => zstd::DEFAULT_COMPRESSION_LEVEL,
        };
        let packed = zstd::bulk::compress(&json, level).map_err(fail)?;
        let digest = blake3::hash(&packed);
        frames::skippable(frames::MANIFEST, &[TAG, digest.as_bytes(), &packed])
            .ok_or_else(|| Error::failed("the pack has too many members for its manifest"))
    }

    /// Reads what such a frame holds; `None` when it is another tool's.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow "the manifest"; of a newer format [`Kind::Newer`].
    pub(super) fn decode(held: &[u8]) -> Option<Result<Manifest>> {
        let held = held.strip_prefix(TAG)?;
        let damaged = || Error::failed("is damaged");
        let Some((digest, packed)) = held.split_at_checked(blake3::OUT_LEN) else {
            return Some(Err(damaged()));
        };
        if blake3::hash(packed) != *digest {
            return Some(Err(damaged()));
        }
        Some(read(packed).ok_or_else(damaged).and_then(understand))
    }
}

fn read(packed: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut json = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    let read = decoder.take(LIMIT).read_to_end(&mut json).ok()? as u64;
    (read < LIMIT).then_some(json)
}

fn understand(json: Vec<u8>) -> Result<Manifest> {
    /// The number first: of a newer format nothing else is known.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unknown = |error: serde_json::Error| Error::failed("can not be understood").because(error);
    let Format { format } = serde_json::from_slice(&json).map_err(unknown)?;
    if format > FORMAT {
        return Err(Error::new(
            Kind::Newer,
            format!("is of a newer format ({format}, this program knows {FORMAT})"),
        ));
    }
    serde_json::from_slice(&json).map_err(unknown)
}
