//! What a pack says of itself, behind its data.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::write::Flaw;
use super::{Member, WINDOW_LOG, frames};
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

/// It is parsed in pieces of this size.
const PIECE: usize = 64 << 10;

/// What a manifest may hold decoded: so much, and so many times its compressed length. Ours are compressed five to ten
/// times; a few kilobytes of somebody else's could claim gigabytes.
const ALLOWED: u64 = 64 << 20;
const RATIO: u64 = 64;

impl Manifest {
    /// The whole skippable frame.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let fail =
            |error| Error::failed("the manifest of the pack can not be written").because(error);
        let json = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        // Level 15 takes forty times as long and saves a third of a percent of a pack.
        let level = zstd::DEFAULT_COMPRESSION_LEVEL;
        let mut packed = zstd::bulk::compress(&json, level).map_err(fail)?;
        let length = json.len() as u64;
        if length > allowed(packed.len() as u64) {
            // Too many members that are alike: what is passed over makes up for what was saved too well.
            let short = (length / RATIO) as usize;
            packed.extend(
                frames::skippable(frames::MANIFEST, &[&vec![0; short]]).unwrap_or_default(),
            );
        }
        let digest = blake3::hash(&packed);
        frames::skippable(frames::MANIFEST, &[TAG, digest.as_bytes(), &packed])
            .ok_or_else(|| Error::failed("the pack has too many members for its manifest"))
    }

    /// Reads what such a frame holds; `None` when it is another tool's. It is read twice, each time in pieces: neither
    /// the frame nor what comes out of it is ever held as a whole.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow "the manifest"; of a newer format [`Kind::Newer`]. Outside of that,
    /// what can not be read.
    pub(super) fn decode(held: &Held<'_>) -> io::Result<Option<Result<Manifest>>> {
        let damaged = || Ok(Some(Err(Error::failed("is damaged"))));
        let head = TAG.len() + blake3::OUT_LEN;
        let mut start = Vec::with_capacity(head);
        held.after(0).take(head as u64).read_to_end(&mut start)?;
        let Some(digest) = start.strip_prefix(TAG) else {
            return Ok(None);
        };
        if digest.len() < blake3::OUT_LEN {
            return damaged();
        }
        let mut hasher = blake3::Hasher::new();
        let length = io::copy(&mut held.after(head as u64), &mut hasher)?;
        if hasher.finalize() != *digest {
            return damaged();
        }
        let packed = || held.after(head as u64);
        Ok(Some(understand(packed, allowed(length))))
    }
}

/// How long the manifest of so many compressed bytes may be.
fn allowed(packed: u64) -> u64 {
    ALLOWED.saturating_add(packed.saturating_mul(RATIO))
}

/// What a frame in a file holds.
pub(super) struct Held<'f> {
    pub file: &'f File,
    pub place: Range<u64>,
}

impl<'f> Held<'f> {
    /// A reader of it from there on.
    fn after(&self, bytes: u64) -> Reader<'f> {
        Reader {
            file: self.file,
            rest: self.place.start.saturating_add(bytes)..self.place.end,
        }
    }
}

struct Reader<'f> {
    file: &'f File,
    rest: Range<u64>,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.rest.end.saturating_sub(self.rest.start);
        let length = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.rest.start)?;
        self.rest.start += read as u64;
        Ok(read)
    }
}

/// Decodes JSON of at most so many bytes from the first zstd frame, as it is parsed.
fn parse<T: DeserializeOwned>(packed: Reader<'_>, limit: u64) -> io::Result<T> {
    let mut decoder = zstd::stream::read::Decoder::new(packed)?.single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let mut json = BufReader::with_capacity(PIECE, decoder.take(limit.saturating_add(1)));
    let parsed = serde_json::from_reader(&mut json);
    match json.get_ref().limit() {
        0 => Err(io::Error::other(
            "it holds more than any manifest of its length",
        )),
        _ => Ok(parsed?),
    }
}

fn understand<'f>(packed: impl Fn() -> Reader<'f>, limit: u64) -> Result<Manifest> {
    /// Of a newer format nothing else is known.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let parsed = parse::<Manifest>(packed(), limit);
    let format = match &parsed {
        Ok(manifest) => manifest.format,
        Err(_) => parse::<Format>(packed(), limit).map_or(0, |known| known.format),
    };
    if format > FORMAT {
        return Err(Error::new(
            Kind::Newer,
            format!("is of a newer format ({format}, this program knows {FORMAT})"),
        ));
    }
    parsed.map_err(|error| Error::failed("can not be understood").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    /// A manifest frame of this packed JSON, read.
    fn read(packed: &[u8]) -> Result<Manifest> {
        let bytes = [&TAG[..], blake3::hash(packed).as_bytes(), packed].concat();
        let place = 0..bytes.len() as u64;
        let file = &file(&bytes);
        Manifest::decode(&Held { file, place }).unwrap().unwrap()
    }

    fn manifest(members: usize, attribute: &str) -> Manifest {
        let member: Member = serde_json::from_str(
            r#"{"path":"a","kind":"file","mode":0,"uid":0,"gid":0,"mtime":"0","frame":0,"at":0}"#,
        )
        .unwrap();
        let mut members = vec![member; members];
        for member in &mut members {
            member.xattrs.insert("user.a".into(), attribute.into());
        }
        Manifest {
            format: FORMAT,
            created_at: Timestamp::UNIX_EPOCH,
            made_by: "a test".into(),
            top: "s".into(),
            entry: None,
            flaws: Vec::new(),
            frames: Vec::new(),
            members,
        }
    }

    #[test]
    fn a_few_kilobytes_do_not_become_gigabytes() {
        let blanks = zstd::bulk::compress(&vec![b' '; 256 << 20], 3).unwrap();
        let error = read(&blanks).unwrap_err();
        assert!(
            format!("{error:?}").contains("holds more than"),
            "{error:?}"
        );
        // Neither what stands behind a whole one, nor in a further frame.
        let json = serde_json::to_vec(&manifest(2, "")).unwrap();
        let padded = [&json[..], &vec![b' '; 256 << 20]].concat();
        read(&zstd::bulk::compress(&padded, 3).unwrap()).unwrap_err();
        let one = zstd::bulk::compress(&json, 3).unwrap();
        assert_eq!(read(&one).unwrap(), manifest(2, ""));
        let half = json.len() / 2;
        let halves = [&json[..half], &json[half..]].map(|h| zstd::bulk::compress(h, 3).unwrap());
        read(&halves.concat()).unwrap_err();
        // A window that asks for more memory than any of ours.
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap();
        std::io::Write::write_all(&mut encoder, &json).unwrap();
        read(&encoder.finish().unwrap()).unwrap_err();
    }

    #[test]
    fn what_is_written_is_read_however_well_it_was_compressed() {
        let alike = manifest(20_000, &"A".repeat(5_000));
        let encoded = alike.encode().unwrap();
        let json = serde_json::to_vec(&alike).unwrap().len() as u64;
        assert!(json > ALLOWED, "the test is too small");
        let place = frames::SKIPPABLE_HEADER..encoded.len() as u64;
        let file = &file(&encoded);
        let read = Manifest::decode(&Held { file, place }).unwrap().unwrap();
        assert!(read.unwrap() == alike);
    }

    #[test]
    fn a_newer_format_is_told_whatever_else_it_says() {
        for json in [
            r#"{"format":2}"#.to_owned(),
            serde_json::to_string(&manifest(1, ""))
                .unwrap()
                .replace(r#""format":1"#, r#""format":2"#),
        ] {
            let error = read(&zstd::bulk::compress(json.as_bytes(), 3).unwrap()).unwrap_err();
            assert_eq!(error.kind(), Kind::Newer, "{json}");
        }
        let error = read(&zstd::bulk::compress(br#"{"format":1}"#, 3).unwrap()).unwrap_err();
        assert_eq!(error.kind(), Kind::Failed);
    }
}
