//! Opening a pack: what it says of itself, and whether that can be trusted.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Manifest;
use super::frames::{self, Found, MANIFEST, SEEK_TABLE, SKIPPABLE_HEADER};
use super::manifest::Held;
use crate::base::{Error, Kind, Result};
use crate::disk::{Dir, FileKind, Meta};

/// What kind of pack a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Manifest and seek table are there and agree.
    Whole,
    /// Made by hand: zstd frames with a tar stream, and nothing behind them.
    Foreign,
    /// One of ours, with something wrong outside of the data frames (what). It may still have its manifest.
    Damaged(String),
}

/// An open pack. Nothing of its data has been decoded yet.
#[derive(Debug)]
pub struct Pack {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// What the file was when it was opened.
    pub(super) meta: Meta,
    pub(super) nature: Nature,
    pub(super) manifest: Option<Manifest>,
    /// The data frames: where each begins and ends in the file. Of a damaged pack those that could be told apart.
    pub(super) frames: Vec<Range<u64>>,
    /// Why the file can not be followed to its end, frame by frame, if so.
    pub(super) broken_off: Option<String>,
}

impl Pack {
    /// Opens a pack and reads its manifest.
    ///
    /// # Errors
    /// A file that can not be read or is no zstd at all; a manifest of a newer format.
    pub fn open(path: &Path) -> Result<Pack> {
        let fail = |error| Error::io("can not open", path, error);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(fail(io::ErrorKind::NotFound.into()));
        };
        let file = Dir::open(parent).and_then(|dir| dir.open_file(name));
        Pack::of(file.map_err(fail)?, path)
    }

    /// Like [`Pack::open`], of a file that is open already and perhaps has no name yet.
    ///
    /// # Errors
    /// As there.
    pub fn of(file: File, path: &Path) -> Result<Pack> {
        let fail = |error| Error::io("can not read", path, error);
        let meta = Meta::of(&file).map_err(fail)?;
        if meta.kind != FileKind::File {
            let what = meta.kind.described();
            return Err(Error::failed(format!("expected a pack, found {what}:")).at(path));
        }
        let mut pack = Pack {
            path: path.to_path_buf(),
            file,
            meta,
            nature: Nature::Whole,
            manifest: None,
            frames: Vec::new(),
            broken_off: None,
        };
        let of_pack = |error: Error| match error.kind() {
            Kind::Newer => Error::new(Kind::Newer, format!("the manifest {error}:"))
                .at(path)
                .hint("use the newer wbhome; `tar --zstd -xf` unpacks it, too"),
            _ => error,
        };
        match pack.follow_end().map_err(of_pack)? {
            None => pack.follow_frames().map_err(of_pack)?,
            Some(why) => pack.nature = why.map_or(Nature::Whole, Nature::Damaged),
        }
        Ok(pack)
    }

    /// Reads seek table and manifest, and what is wrong with them; `None` when there is no seek table.
    fn follow_end(&mut self) -> Result<Option<Option<String>>> {
        let fail = |error| Error::io("can not read", &self.path, error);
        let Some(table) = frames::read_seek_table(&self.file, self.meta.size).map_err(fail)? else {
            return Ok(None);
        };
        let Some((&(length, _), data)) = table.frames.split_last() else {
            return Ok(None);
        };
        let at = table.at - length;
        let found = match frames::frame_at(&self.file, at, table.at) {
            Ok(Found::Skippable(MANIFEST, held)) if held.end == table.at => held,
            // A seek table that some other tool wrote covers data alone.
            Ok(Found::Data(_)) => return Ok(None),
            Ok(_) | Err(_) => {
                self.frames = ranges(data.iter().map(|(bytes, _)| *bytes));
                return Ok(Some(Some("the manifest can not be found".to_owned())));
            }
        };
        let manifest = match self.read_manifest(found)? {
            Ok(manifest) => manifest,
            Err(why) => {
                self.frames = ranges(data.iter().map(|(bytes, _)| *bytes));
                return Ok(Some(Some(why)));
            }
        };
        self.take(manifest);
        let disagrees = "the seek table does not agree with the manifest";
        Ok(Some((!self.tail_is_exact()?).then(|| disagrees.to_owned())))
    }

    /// Follows the frames from the beginning.
    fn follow_frames(&mut self) -> Result<()> {
        let fail = |error| Error::io("can not read", &self.path, error);
        let (found, broken_off) = frames::walk(&self.file, self.meta.size).map_err(fail)?;
        let is_data = |frame: &Found| matches!(frame, Found::Data(_));
        if !found.iter().any(is_data) && broken_off.is_none() {
            let what = match self.meta.size {
                0 => "is empty:",
                _ => "holds no zstd frame:",
            };
            return Err(Error::failed(what).at(&self.path));
        }
        let mut ours = None;
        let mut table = false;
        for frame in &found {
            match frame {
                Found::Data(range) => self.frames.push(range.clone()),
                Found::Skippable(MANIFEST, held) if ours.is_none() => {
                    ours = Some(self.read_manifest(held.clone())?);
                }
                Found::Skippable(SEEK_TABLE, _) => table = true,
                Found::Skippable(..) => {}
            }
        }
        let followed = found.last().map_or(0, Found::end);
        if broken_off.is_some() && frames::is_data(&self.file, followed).map_err(fail)? {
            // Cut off: what is left of it can be read as far as it goes.
            self.frames.push(followed..self.meta.size);
        }
        self.broken_off = broken_off;
        self.nature = match (ours, &self.broken_off) {
            (Some(Ok(manifest)), why) => {
                let why = why.clone();
                self.take(manifest);
                Nature::Damaged(why.unwrap_or_else(|| "the seek table is damaged".to_owned()))
            }
            (Some(Err(why)), _) => Nature::Damaged(why),
            (None, Some(why)) if self.frames.is_empty() => {
                return Err(Error::failed(format!("is no pack: {why}:"))
                    .at(&self.path)
                    .hint("`file` tells what it is"));
            }
            (None, _) if table => Nature::Damaged("the manifest is missing".to_owned()),
            (None, _) => Nature::Foreign,
        };
        Ok(())
    }

    /// What the manifest says goes for where the frames lie, too.
    fn take(&mut self, manifest: Manifest) {
        self.frames = ranges(manifest.frames.iter().map(|frame| frame.bytes));
        self.manifest = Some(manifest);
    }

    fn read_manifest(&self, held: Range<u64>) -> Result<std::result::Result<Manifest, String>> {
        let held = Held {
            file: &self.file,
            place: held,
        };
        let read = Manifest::decode(&held);
        match read.map_err(|error| Error::io("can not read", &self.path, error))? {
            None => Ok(Err("the manifest is damaged".to_owned())),
            Some(Ok(manifest)) => Ok(Ok(manifest)),
            Some(Err(error)) if error.kind() == Kind::Newer => Err(error),
            Some(Err(error)) => Ok(Err(format!("the manifest {error}"))),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn size(&self) -> u64 {
        self.meta.size
    }

    /// What the file was when it was opened: another one may have its name by now.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// What kind of pack it is.
    pub fn nature(&self) -> &Nature {
        &self.nature
    }

    /// What it says of itself; none when it was made by hand, or when that part is damaged.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Where the data ends, as far as that is known.
    pub(super) fn data_end(&self) -> u64 {
        self.frames.last().map_or(0, |range| range.end)
    }

    /// Whether manifest and seek table stand directly behind the data and are the whole rest of the file, byte for
    /// byte.
    fn tail_is_exact(&self) -> Result<bool> {
        let Some(manifest) = &self.manifest else {
            return Ok(false);
        };
        let fail = |error| Error::io("can not read", &self.path, error);
        let at = self.data_end();
        let Ok(Found::Skippable(MANIFEST, held)) = frames::frame_at(&self.file, at, self.meta.size)
        else {
            return Ok(false);
        };
        let mut table: Vec<_> = manifest
            .frames
            .iter()
            .map(|f| (f.bytes, f.content))
            .collect();
        table.push((held.end - held.start + SKIPPABLE_HEADER, 0));
        let Some(wanted) = frames::seek_table(&table) else {
            return Ok(false);
        };
        let mut found = vec![0; wanted.len()];
        if held.end + wanted.len() as u64 != self.meta.size {
            return Ok(false);
        }
        self.file
            .read_exact_at(&mut found, held.end)
            .map_err(fail)?;
        Ok(found == wanted)
    }

    /// BLAKE3 of the whole file, in hexadecimal digits.
    ///
    /// # Errors
    /// When it can not be read.
    pub fn digest(&self) -> Result<String> {
        let fail = |error| Error::io("can not read", &self.path, error);
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            match self.file.read_at(&mut buffer, at).map_err(fail)? {
                0 => return Ok(hasher.finalize().to_hex().to_string()),
                length => {
                    hasher.update(&buffer[..length]);
                    at += length as u64;
                }
            }
        }
    }
}

fn ranges(lengths: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut at = 0u64;
    let range = |length: u64| {
        let from = at;
        at = at.saturating_add(length);
        from..at
    };
    lengths.map(range).collect()
}
