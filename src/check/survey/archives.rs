//! `archive/`: what is no archive, and what the index does not know.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::sessions::archive_of;
use super::view::{View, copy_in};
use crate::base::human;
use crate::check::{Finding, FindingKind};
use crate::disk::{Dir, Entry, FileKind, Folder};
use crate::home::Status;

const ENDING: &[u8] = b".tar.zst";

/// A zstd frame (RFC 8878, section 3.1.1).
const FRAME: u32 = 0xfd2f_b528;
/// The first of the sixteen numbers of a skippable frame (section 3.1.2), which some tools put first.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Looks at the beginning of each archive, and for its entry in the index.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let Some(archive) = view.folder(Path::new("archive")) else {
        return Vec::new();
    };
    let dir = match view.survey.root.open_beneath(&archive.rel) {
        Ok(dir) => dir,
        Err(error) => return vec![Finding::unreadable(&archive.rel, human::io(&error))],
    };
    let known = known(view);
    archive
        .entries
        .iter()
        .filter(|e| e.meta.kind == FileKind::File && e.name.as_bytes().ends_with(ENDING))
        .flat_map(|entry| {
            let mut findings = Vec::new();
            findings.extend(bad(&dir, archive, entry));
            findings.extend(unindexed(archive, entry, known.as_ref()));
            let id = id_of(&entry.name);
            findings.into_iter().map(move |finding| match id {
                Some(id) => finding.session(id),
                None => finding,
            })
        })
        .collect()
}

fn id_of(name: &OsStr) -> Option<&str> {
    name.to_str()?.strip_suffix(".tar.zst")
}

fn bad(dir: &Dir, folder: &Folder, entry: &Entry) -> Option<Finding> {
    let rel = folder.rel.join(&entry.name);
    let mut magic = [0; 4];
    let why = match dir
        .open_file(&entry.name)
        .and_then(|mut file| file.read_exact(&mut magic))
    {
        Ok(()) if is_zstd(magic) => return None,
        Ok(()) => "does not begin as zstd does",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => match entry.meta.size {
            0 => "is empty",
            _ => "is too short to be zstd",
        },
        Err(error) => return Some(Finding::unreadable(rel, human::io(&error))),
    };
    Some(Finding::new(FindingKind::BadArchive, rel, why))
}

fn is_zstd(magic: [u8; 4]) -> bool {
    let magic = u32::from_le_bytes(magic);
    magic == FRAME || magic & !0xf == SKIPPABLE
}

/// The archives that the index names, and whether it says that their session was removed.
fn known(view: &View) -> Option<HashMap<PathBuf, bool>> {
    let entries = view.survey.index?.entries();
    let known = entries.filter_map(|entry| {
        let archive = archive_of(entry, &entry.session().ok()?);
        Some((archive, entry.status() == Status::Removed))
    });
    Some(known.collect())
}

fn unindexed(
    folder: &Folder,
    entry: &Entry,
    known: Option<&HashMap<PathBuf, bool>>,
) -> Option<Finding> {
    let rel = folder.rel.join(&entry.name);
    let detail = match known?.get(&rel) {
        Some(false) => return None,
        Some(true) => "is here, and its session removed according to the index",
        // It is reported as a second version of one that is indexed or not.
        None if copy_in(folder, entry).is_some_and(|copy| copy.present) => return None,
        None => "is not in the index",
    };
    Some(Finding::new(FindingKind::ArchiveUnindexed, rel, detail))
}
