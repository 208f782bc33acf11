//! Opening a pack: what it says of itself, and whether that can be trusted.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::Manifest;
use crate::base::Result;

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
    pub(super) size: u64,
    pub(super) nature: Nature,
    pub(super) manifest: Option<Manifest>,
    /// The data frames: where each begins and ends in the file. Of a damaged pack those that could be told apart.
    pub(super) frames: Vec<std::ops::Range<u64>>,
}

impl Pack {
    /// Opens a pack and reads its manifest.
    ///
    /// # Errors
    /// A file that can not be read or is no zstd at all; a manifest of a newer format.
    pub fn open(path: &Path) -> Result<Pack> {
        let _ = path;
        unimplemented!("the next commit")
    }

    /// Like [`Pack::open`], of a file that is open already and perhaps has no name yet.
    ///
    /// # Errors
    /// As there.
    pub fn of(file: File, path: &Path) -> Result<Pack> {
        let _ = (file, path);
        unimplemented!("the next commit")
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What kind of pack it is.
    pub fn nature(&self) -> &Nature {
        &self.nature
    }

    /// What it says of itself; none when it was made by hand, or when that part is damaged.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// BLAKE3 of the whole file, in hexadecimal digits.
    ///
    /// # Errors
    /// When it can not be read.
    pub fn digest(&self) -> Result<String> {
        unimplemented!("the next commit")
    }
}
