//! `archive/`: what is no archive, what says of itself that it is damaged, and what the index does not know; and an
//! `archive/` that is no folder.
//!
//! Here only the two ends of each are looked at; `check::packed` reads what is between.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::sessions::archive_of;
use super::view::{View, copy_in};
use crate::base::{Error, Kind, human};
use crate::check::{Finding, FindingKind, is_selected};
use crate::disk::{Dir, Entry, FileKind, Folder};
use crate::home::Status;
use crate::pack::{ENDING, Nature, Pack};

/// A zstd frame (RFC 8878, section 3.1.1).
const FRAME: u32 = 0xfd2f_b528;
/// The first of the sixteen numbers of a skippable frame (section 3.1.2), which some tools put first.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Looks at the beginning and the end of each archive, and for its entry in the index.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let rel = Path::new("archive");
    let Some(archive) = view.folder(rel) else {
        return not_a_folder(view, rel).into_iter().collect();
    };
    let dir = match view.survey.root.open_beneath(&archive.rel) {
        Ok(dir) => dir,
        Err(error) => return vec![Finding::unreadable(&archive.rel, human::io(&error))],
    };
    let known = known(view);
    archive
        .entries
        .iter()
        .filter(|e| e.name.as_bytes().ends_with(ENDING.as_bytes()))
        .flat_map(|entry| {
            let mut findings = Vec::new();
            let id = id_of(&entry.name);
            if id.is_some_and(|id| !is_selected(&Path::new("sessions").join(id), view.survey.only))
            {
                return Vec::new();
            }
            let rel = archive.rel.join(&entry.name);
            if entry.meta.kind == FileKind::File {
                let indexed = known.as_ref().and_then(|known| known.get(&rel));
                findings.extend(bad(&dir, &rel, entry, indexed));
                findings.extend(unindexed(archive, entry, known.as_ref()));
            } else {
                findings.push(not_a_file(&rel, entry.meta.kind));
            }
            let named = findings.into_iter().map(|finding| match id {
                Some(id) => finding.session(id),
                None => finding,
            });
            named.collect()
        })
        .collect()
}

/// What stands where the folder should be. Nothing is there in a home that archives nothing, and one that could not be
/// read is reported by the walk.
fn not_a_folder(view: &View, rel: &Path) -> Option<Finding> {
    let kind = view.entry(rel)?.meta.kind;
    let why = format!(
        "is {}, not the folder of the archives: none can be read or made",
        kind.described()
    );
    (kind != FileKind::Folder).then(|| Finding::new(FindingKind::BadArchive, rel, why))
}

/// What has the name of an archive and is no file. A link is not followed: where it leads, nobody keeps what is there.
fn not_a_file(rel: &Path, kind: FileKind) -> Finding {
    let why = format!("is {}, not a file", kind.described());
    Finding::new(FindingKind::BadArchive, rel, why)
}

fn id_of(name: &OsStr) -> Option<&str> {
    name.to_str()?.strip_suffix(ENDING)
}

fn bad(dir: &Dir, rel: &Path, entry: &Entry, indexed: Option<&Indexed>) -> Option<Finding> {
    let mut magic = [0; 4];
    let why = match dir
        .open_file(&entry.name)
        .and_then(|mut file| file.read_exact(&mut magic))
    {
        Ok(()) if is_zstd(magic) => return bad_end(dir, rel, entry, indexed),
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

/// What the manifest and the seek table tell, which stand behind the data: they are read, and no data is.
fn bad_end(dir: &Dir, rel: &Path, entry: &Entry, indexed: Option<&Indexed>) -> Option<Finding> {
    let file = match dir.open_file(&entry.name) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Finding::unreadable(rel, human::io(&error))),
    };
    let bad = |why: String| Some(Finding::new(FindingKind::BadArchive, rel, why));
    let pack = match Pack::of(file, rel) {
        Ok(pack) => pack,
        Err(error) => return Some(not_opened(rel, &error)),
    };
    if let Nature::Damaged(what) = pack.nature() {
        return bad(what.clone());
    }
    match indexed.and_then(|indexed| indexed.bytes) {
        Some(bytes) if bytes != pack.size() => bad(format!(
            "has {} bytes, and {} according to the index",
            human::count(pack.size()),
            human::count(bytes)
        )),
        _ => None,
    }
}

/// What can not be opened as a pack: it is damaged, or it can not be looked at here and now.
pub(in crate::check) fn not_opened(rel: &Path, error: &Error) -> Finding {
    match error.io_cause() {
        Some(cause) => Finding::unreadable(rel, human::io(cause)),
        None if error.kind() == Kind::Newer => {
            Finding::unreadable(rel, "was written by a newer wbhome")
        }
        None => Finding::new(FindingKind::BadArchive, rel, error.to_string()),
    }
}

/// What the index says of an archive.
struct Indexed {
    /// That its session was removed.
    removed: bool,
    /// Its length.
    bytes: Option<u64>,
}

/// The archives that the index names.
fn known(view: &View) -> Option<HashMap<PathBuf, Indexed>> {
    let entries = view.survey.index?.entries();
    let known = entries.filter_map(|entry| {
        let archive = archive_of(entry, &entry.session().ok()?);
        let indexed = Indexed {
            removed: entry.status() == Status::Removed,
            bytes: entry.archive().and_then(|a| a.get("bytes")?.as_u64()),
        };
        Some((archive, indexed))
    });
    Some(known.collect())
}

fn unindexed(
    folder: &Folder,
    entry: &Entry,
    known: Option<&HashMap<PathBuf, Indexed>>,
) -> Option<Finding> {
    let rel = folder.rel.join(&entry.name);
    let detail = match known?.get(&rel).map(|indexed| indexed.removed) {
        Some(false) => return None,
        Some(true) => "is here, and its session removed according to the index",
        // It is reported as a second version of one that is indexed or not.
        None if copy_in(folder, entry).is_some_and(|copy| copy.present) => return None,
        None => "is not in the index",
    };
    Some(Finding::new(FindingKind::ArchiveUnindexed, rel, detail))
}
