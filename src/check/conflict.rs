//! How sync clients name the second version of a file, and how two versions relate.
//!
//! A client that finds two versions keeps both, and tells them apart by a *mark* at the end of the stem:
//! `notes (Mei's conflicted copy 2024-06-11).md`. A mark is read from the end of the name, and only the rightmost one is
//! taken off, because copies of copies exist: `notes (1) (SFConflict …).md` is a version of `notes (1).md`. The base may
//! hold parentheses of its own.
//!
//! Some marks look like what people type themselves: `slides (1).md`, `photo 2.md`, `main-LAPTOP7.py`. They are
//! *ambiguous*, and mean something only where the original stands beside them; [`original_of`] settles that. A mark says
//! nothing about which version is newer: compare with [`relation`], never judge by name.
//!
//! Names are bytes. Everything here works on names that are not UTF-8, as far as the mark itself is ASCII.

use std::collections::VecDeque;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

mod computer;
mod marks;
#[cfg(test)]
mod tests;

/// One reading of a name as a conflict copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The name without its rightmost mark.
    pub original: Vec<u8>,
    /// Who writes such marks.
    pub client: Client,
    /// True when people write such names too: believe it only where `original` exists.
    pub ambiguous: bool,
}

/// The programs whose marks are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// `stem (Mei's conflicted copy 2024-06-11).ext`, `(Case Conflict)`, and the same in other languages.
    Dropbox,
    /// `stem-COMPUTER.ext`, and of its Linux client `stem-HOST-safeBackup-0001.ext`.
    OneDrive,
    /// `stem (1).ext`, `stem(1).ext`: Google Drive, browsers, several Chinese clients.
    #[serde(rename = "numbered-copy")]
    NumberedCopy,
    /// `stem 2.ext`
    ICloud,
    /// `stem.sync-conflict-20240611-101112-ABCDEF2.ext`
    Syncthing,
    /// `stem (conflicted copy mei 2024-06-11 101112).ext`; ownCloud and OpenCloud share its client.
    Nextcloud,
    /// `stem (SFConflict mei@example.org 2024-06-11-10-11-12).ext`
    Seafile,
    /// `stem.Conflict.ext`
    Resilio,
    /// `stem_HOST_Jun-11-1011-2024_CaseConflict_1.ext`
    Synology,
    /// `stem [conflicted].ext`
    PCloud,
    /// `stem (copy: conflict on 2024-06-11).ext`
    Unison,
    /// `stem.ext.conflict1`
    Rclone,
    /// `stem (# Edit conflict 2024-06-11 nGFf #).ext`
    Proton,
    /// `stem-NSConflict.ext`, `stem-conflict-….ext`: 坚果云.
    Nutstore,
    /// `stem(HOST的冲突副本1_2024-06-11 10-11-12).ext`, `-冲突…`, `-副本`: several clients, the name does not tell which.
    Chinese,
}

impl Client {
    /// The word that people know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Client::Dropbox => "Dropbox",
            Client::OneDrive => "OneDrive",
            Client::NumberedCopy => "numbered copy",
            Client::ICloud => "iCloud",
            Client::Syncthing => "Syncthing",
            Client::Nextcloud => "Nextcloud",
            Client::Seafile => "Seafile",
            Client::Resilio => "Resilio Sync",
            Client::Synology => "Synology Drive",
            Client::PCloud => "pCloud",
            Client::Unison => "Unison",
            Client::Rclone => "rclone",
            Client::Proton => "Proton Drive",
            Client::Nutstore => "Nutstore",
            Client::Chinese => "冲突副本",
        }
    }
}

/// How the bytes of a copy relate to those of its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Equal bytes.
    Same,
    /// The copy is a shorter beginning of the original: nothing in it is unique. An empty copy is one.
    Prefix,
    /// The copy begins with the whole original and goes on: the copy is the fuller one.
    Extends,
    /// Each holds something that the other lacks.
    Diverged,
}

impl Relation {
    /// The word used in reports and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Same => "same",
            Relation::Prefix => "prefix",
            Relation::Extends => "extends",
            Relation::Diverged => "diverged",
        }
    }
}

/// Every reading of `name` as a conflict copy, best first: certain marks before ambiguous ones, the likelier base before
/// the others (a computer's name may hold the hyphen that separates it). Empty when the name is innocent.
pub fn parse(name: &[u8], is_folder: bool) -> Vec<Mark> {
    if !marks::possible(name) {
        return Vec::new();
    }
    for at in marks::extensions(name) {
        let (stem, extension) = name.split_at(at);
        let mut readings: Vec<Mark> = marks::of_stem(stem, is_folder)
            .into_iter()
            .map(|found| Mark {
                original: [&stem[..found.base], extension].concat(),
                client: found.client,
                ambiguous: found.ambiguous,
            })
            .filter(|mark| {
                !mark.original.is_empty() && mark.original != b"." && mark.original != b".."
            })
            .collect();
        if !readings.is_empty() {
            readings.sort_by_key(|mark| mark.ambiguous);
            return readings;
        }
    }
    Vec::new()
}

/// What `name` is a conflict copy of, among the names beside it, or `None` when it is no conflict copy.
///
/// A reading whose original exists wins. Where the version in between is gone (`a (1) (1).md` beside `a.md` alone), marks
/// are taken off until an original is found. A certain mark counts even without one: the answer is then what the original
/// would be called.
pub fn original_of(
    name: &[u8],
    is_folder: bool,
    exists: &dyn Fn(&[u8]) -> bool,
) -> Option<(Vec<u8>, Client)> {
    // Names are short and readings few; the bound is for names made to be expensive.
    const MOST_READINGS: usize = 64;
    let mut certain = None;
    let mut queue: VecDeque<(Vec<u8>, Option<Client>)> = VecDeque::from([(name.to_vec(), None)]);
    let mut seen = 0;
    while let Some((current, outer)) = queue.pop_front() {
        for mark in parse(&current, is_folder) {
            let client = outer.unwrap_or(mark.client);
            if exists(&mark.original) {
                return Some((mark.original, client));
            }
            if !mark.ambiguous && certain.is_none() {
                certain = Some((mark.original.clone(), client));
            }
            seen += 1;
            if seen < MOST_READINGS {
                queue.push_back((mark.original, Some(client)));
            }
        }
    }
    certain
}

/// Compares two versions from their beginnings, in a fixed amount of memory.
///
/// # Errors
/// Whatever reading either of them gives.
pub fn relation(original: &mut dyn Read, copy: &mut dyn Read) -> io::Result<Relation> {
    const CHUNK: usize = 64 * 1024;
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let (a, b) = (fill(original, &mut left)?, fill(copy, &mut right)?);
        let common = a.min(b);
        if left[..common] != right[..common] {
            return Ok(Relation::Diverged);
        }
        // `fill` stops short only at the end of the input.
        match (a < b, b < a) {
            (true, _) => return Ok(Relation::Extends),
            (_, true) => return Ok(Relation::Prefix),
            _ if a < CHUNK => return Ok(Relation::Same),
            _ => {}
        }
    }
}

/// Reads until `buffer` is full or the input ends, whatever sizes the reader likes to give.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
