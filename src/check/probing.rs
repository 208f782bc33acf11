//! Reading every text file of a home once, on all cores, in a fixed amount of memory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{Defect, Finding, Probe, is_left_alone, is_selected};
use crate::base::{Context, Result, Stop, Total, human};
use crate::disk::{Dir, Entry, FileKind, Folder, Tree};

/// What reading told.
#[derive(Debug, Default)]
pub(super) struct Probed {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) probed: u64,
    pub(super) defects: Vec<(PathBuf, Defect)>,
    pub(super) unreadable: Vec<Finding>,
}

/// Larger files come in pieces of this size.
const BLOCK: usize = 256 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BLOCK]);
}

/// Probes every file of `tree` that is selected and tells something.
pub(super) fn probe(
    root: &Dir,
    tree: &Tree,
    only: Option<&BTreeSet<String>>,
    context: &Context,
) -> Result<Probed> {
    let mut probed = Probed::default();
    let mut total = Total::default();
    let mut folders = Vec::new();
    for folder in &tree.folders {
        let files = files_of(folder, only);
        let all = folder
            .entries
            .iter()
            .filter(|e| e.meta.kind == FileKind::File);
        // Files at the top of the home, and those of the archive, are no session's: they are looked at when nobody chose.
        for entry in all.filter(|_| is_selected(&folder.rel, only)) {
            probed.files += 1;
            probed.bytes += entry.meta.size;
        }
        total.items += files.len() as u64;
        total.bytes += files.iter().map(|(_, entry)| entry.meta.size).sum::<u64>();
        if !files.is_empty() {
            folders.push((folder, files));
        }
    }
    probed.probed = total.items;
    context.progress.stage("checking", total);
    let found = folders
        .into_par_iter()
        .flat_map(|(folder, files)| probe_folder(root, folder, &files, context))
        .collect::<Vec<_>>();
    context.progress.finish();
    context.stop.check()?;
    for (rel, told) in found {
        match told {
            Ok(defects) => probed
                .defects
                .extend(defects.into_iter().map(|defect| (rel.clone(), defect))),
            Err(error) => probed
                .unreadable
                .push(Finding::unreadable(rel, human::io(&error))),
        }
    }
    Ok(probed)
}

fn files_of<'t>(folder: &'t Folder, only: Option<&BTreeSet<String>>) -> Vec<(PathBuf, &'t Entry)> {
    if is_left_alone(&folder.rel) || !is_selected(&folder.rel, only) {
        return Vec::new();
    }
    folder
        .entries
        .iter()
        .filter(|entry| entry.meta.kind == FileKind::File)
        .map(|entry| (folder.rel.join(&entry.name), entry))
        .filter(|(rel, _)| Probe::for_file(rel).is_some())
        .collect()
}

type Told = (PathBuf, io::Result<Vec<Defect>>);

/// Those files of a folder that are damaged or can not be read.
fn probe_folder(
    root: &Dir,
    folder: &Folder,
    files: &[(PathBuf, &Entry)],
    context: &Context,
) -> Vec<Told> {
    let dir = match root.open_beneath(&folder.rel) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        // The walk has said the same of the folder; here it is said of the folder, not of each file.
        Err(error) => return vec![(folder.rel.clone(), Err(error))],
    };
    files
        .par_iter()
        .with_min_len(16)
        .filter_map(|(rel, entry)| {
            let told = probe_file(&dir, rel, &entry.name, context.stop);
            context.progress.advance(1, entry.meta.size);
            match told {
                Ok(defects) if defects.is_empty() => None,
                // Removed since the walk: it was never there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                told => Some((rel.clone(), told)),
            }
        })
        .collect()
}

/// What the content of one file tells, by its path relative to the home.
pub(super) fn defects(root: &Dir, rel: &Path, stop: &Stop) -> io::Result<Vec<Defect>> {
    let (Some(parent), Some(name)) = (rel.parent(), rel.file_name()) else {
        return Ok(Vec::new());
    };
    probe_file(&root.open_beneath(parent)?, rel, name, stop)
}

fn probe_file(dir: &Dir, rel: &Path, name: &OsStr, stop: &Stop) -> io::Result<Vec<Defect>> {
    let Some(mut probe) = Probe::for_file(rel) else {
        return Ok(Vec::new());
    };
    let mut file = dir.open_file(name)?;
    BUFFER.with_borrow_mut(|buffer| {
        while !stop.raised() {
            match file.read(buffer) {
                Ok(0) => break,
                Ok(length) => probe.push(Some(&buffer[..length]), length as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(probe.finish())
    })
}
