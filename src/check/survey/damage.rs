//! Defects of content as findings, what could not be read, and what was never downloaded.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::view::{View, copy_in};
use crate::base::human;
use crate::check::{Defect, Finding, FindingKind, is_left_alone, is_selected, twin};
use crate::disk::{Entry, FileKind, Folder};

/// Torn and zero-filled files; with what stands whole beside them.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let only = view.survey.only;
    let mut copies = HashMap::new();
    let defects = view.survey.defects.iter();
    defects
        .filter(|(rel, _)| is_selected(rel, only))
        // What is wrong with a second version is told where that is told.
        .filter(|(rel, _)| !is_told_as_copy(view, rel))
        .map(|(rel, defect)| {
            let (kind, count) = match defect {
                Defect::Torn { records, .. } => (FindingKind::TornJson, *records),
                Defect::NulRun { length, .. } => (FindingKind::NulRun, *length),
            };
            let mut detail = described(defect);
            let whole = whole_copies(view, rel, &mut copies);
            if let Some(copy) = whole.first() {
                let mark = mark(file_name(rel), file_name(copy));
                detail.push_str(&format!("; the copy \"{mark}\" beside it is whole"));
            }
            let command = match whole.as_slice() {
                [] => None,
                [_] => twin::command(rel),
                // Of several, one has to be named.
                [first, ..] => twin::command(first),
            };
            Finding::new(kind, rel, detail)
                .count(count)
                .command(command)
        })
        .collect()
}

/// A defect in words that follow the name of the file.
pub(super) fn described(defect: &Defect) -> String {
    match defect {
        Defect::Torn { detail, .. } => detail.clone(),
        Defect::NulRun {
            whole_file: true,
            length,
            ..
        } => format!("holds nothing but {}", nuls(*length)),
        Defect::NulRun {
            offset,
            length,
            runs: 1,
            ..
        } => format!(
            "holds {} from byte {} on",
            nuls(*length),
            human::count(offset + 1)
        ),
        Defect::NulRun {
            offset,
            length,
            runs,
            ..
        } => format!(
            "holds {} in {} runs, the first from byte {} on",
            nuls(*length),
            human::count(*runs),
            human::count(offset.saturating_add(1))
        ),
    }
}

fn nuls(count: u64) -> String {
    human::plural(count, "NUL byte", "NUL bytes")
}

/// A second version is, unless it lies within a second version of a folder, which is told as a whole.
fn is_told_as_copy(view: &View, rel: &Path) -> bool {
    is_present_copy(view, rel)
        && !rel
            .ancestors()
            .skip(1)
            .any(|above| is_present_copy(view, above))
}

fn is_present_copy(view: &View, rel: &Path) -> bool {
    let (Some(parent), Some(entry)) = (rel.parent(), view.entry(rel)) else {
        return false;
    };
    let folder = view.folder(parent);
    folder.is_some_and(|folder| copy_in(folder, entry).is_some_and(|copy| copy.present))
}

/// The second versions of files in a folder, by the name of the first.
type Copies<'v> = HashMap<Vec<u8>, Vec<&'v Entry>>;

/// The second versions of a damaged file that are not damaged themselves. What stands in the folders is remembered: many
/// files of one may be damaged.
fn whole_copies<'v>(
    view: &'v View,
    rel: &'v Path,
    known: &mut HashMap<&'v Path, Copies<'v>>,
) -> Vec<PathBuf> {
    let Some(folder) = rel.parent().and_then(|parent| view.folder(parent)) else {
        return Vec::new();
    };
    let copies = known
        .entry(&folder.rel)
        .or_insert_with(|| copies_in(folder));
    let copies = copies.get(file_name(rel)).into_iter().flatten();
    copies
        .filter(|entry| entry.meta.size > 0)
        .map(|entry| folder.rel.join(&entry.name))
        .filter(|copy| view.defects(copy).is_empty())
        .collect()
}

fn copies_in(folder: &Folder) -> Copies<'_> {
    let mut copies = Copies::new();
    let entries = folder.entries.iter();
    for entry in entries.filter(|entry| entry.meta.kind == FileKind::File) {
        if let Some(copy) = copy_in(folder, entry) {
            copies.entry(copy.original).or_default().push(entry);
        }
    }
    copies
}

fn file_name(rel: &Path) -> &[u8] {
    rel.file_name().unwrap_or_default().as_bytes()
}

/// What the name of a copy adds to that of its original: `(1)`; the whole name when it adds nothing in one place.
fn mark(original: &[u8], copy: &[u8]) -> String {
    let common =
        |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
    let start = common(&mut original.iter().zip(copy));
    let end = common(
        &mut original[start..]
            .iter()
            .rev()
            .zip(copy[start..].iter().rev()),
    );
    match start + end == original.len() {
        true => human::bytes(copy[start..copy.len() - end].trim_ascii()),
        false => human::bytes(copy),
    }
}

/// What the walk could not read.
pub(super) fn find_unreadable(view: &View) -> Vec<Finding> {
    let folders = view.survey.tree.folders.iter();
    folders
        .flat_map(|folder: &Folder| &folder.unreadable)
        .map(|(rel, why)| Finding::unreadable(rel, why))
        .collect()
}

/// `.name.icloud`: a property list that stands for a file which is still in the cloud.
pub(super) fn find_placeholders(view: &View) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in view.folders() {
        for entry in &folder.entries {
            let Some(name) = placeholder_of(entry.name.as_bytes()) else {
                continue;
            };
            let (rel, of) = (
                folder.rel.join(&entry.name),
                folder.rel.join(OsStr::from_bytes(name)),
            );
            if entry.meta.kind == FileKind::File && !is_left_alone(&rel) {
                let detail = format!(
                    "stands for {}, which was never downloaded",
                    human::bytes(name)
                );
                findings.push(Finding::new(FindingKind::Placeholder, rel, detail).of(of));
            }
        }
    }
    findings
}

/// The name of the file that a placeholder of that name stands for.
pub(super) fn placeholder_of(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(b".")?.strip_suffix(b".icloud")?;
    (!name.is_empty()).then_some(name)
}
