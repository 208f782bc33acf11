//! Second versions that a sync client left, and how they relate to the first.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::damage::described;
use super::view::{Copy, View, copy_in, find_in};
use crate::base::{Stop, human};
use crate::check::conflict::{self, Relation};
use crate::check::finding::session_of;
use crate::check::{Finding, FindingKind, is_left_alone};
use crate::disk::{Entry, FileKind, Folder};

/// Every second version of a file, link or folder. What lies within a second version of a folder is told with that.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let mut tasks: Vec<(&Folder, &Entry, Copy)> = Vec::new();
    let mut folders_twice: HashSet<PathBuf> = HashSet::new();
    let mut within: Option<&Path> = None;
    // A folder comes before what is in it, and all of that before anything else.
    for folder in view.folders() {
        if folders_twice.contains(&folder.rel) {
            within = Some(&folder.rel);
        }
        if within.is_some_and(|copy| folder.rel.starts_with(copy)) {
            continue;
        }
        for entry in folder.entries.iter().filter(|e| is_versioned(e.meta.kind)) {
            let rel = folder.rel.join(&entry.name);
            let Some(copy) = copy_in(folder, entry).filter(|_| !is_left_alone(&rel)) else {
                continue;
            };
            if entry.meta.kind == FileKind::Folder && copy.present {
                folders_twice.insert(rel);
            }
            tasks.push((folder, entry, copy));
        }
    }
    tasks
        .into_par_iter()
        .map(|(folder, entry, copy)| finding(view, folder, entry, &copy))
        .collect()
}

/// FIFOs, sockets and devices have no content that could be compared.
fn is_versioned(kind: FileKind) -> bool {
    matches!(kind, FileKind::File | FileKind::Symlink | FileKind::Folder)
}

fn finding(view: &View, folder: &Folder, entry: &Entry, copy: &Copy) -> Finding {
    let rel = folder.rel.join(&entry.name);
    let original = folder.rel.join(OsStr::from_bytes(&copy.original));
    let kind = match entry.meta.kind {
        FileKind::Folder => FindingKind::ConflictDir,
        _ => FindingKind::ConflictCopy,
    };
    let name = human::bytes(&copy.original);
    let first = match find_in(folder, OsStr::from_bytes(&copy.original)) {
        Some(first) if copy.present => first,
        _ => {
            let client = copy.client.as_str();
            let detail =
                format!("is marked as a second version ({client}) of {name}, which is not there");
            return Finding::new(kind, rel, detail);
        }
    };
    let found = Finding::new(kind, &rel, "").of(&original);
    let told = match entry.meta.kind {
        FileKind::Folder => compare_folders(view, &rel, &original)
            .map(|d| (d.relation(), d.told(&name), Some(d.unique()))),
        _ => compare(view, folder, first, folder, entry)
            .map(|relation| (relation, versions(relation, &name, first, entry), None)),
    };
    let mut found = match told {
        Ok((relation, detail, count)) => Finding {
            detail,
            count,
            ..found.relation(relation)
        },
        Err(error) => Finding {
            detail: format!(
                "is a second version of {name}; they could not be compared: {}",
                human::io(&error)
            ),
            ..found
        },
    };
    found.detail.push_str(&remarks(view, &rel, &original));
    // A second version of a session concerns the session.
    match session_of(&original) {
        Some(session) => found.session(session),
        None => found,
    }
}

/// Which of the two is damaged, if one is.
fn remarks(view: &View, copy: &Path, original: &Path) -> String {
    let defects = view.defects(copy);
    if defects.is_empty() && !view.defects(original).is_empty() {
        return "; it is whole, the original is not".to_owned();
    }
    let told = defects
        .iter()
        .map(|defect| format!("; it {}", described(defect)));
    told.collect()
}

fn versions(relation: Relation, name: &str, first: &Entry, copy: &Entry) -> String {
    match relation {
        Relation::Same => format!("is the same as {name}"),
        Relation::Prefix => format!("is a shorter beginning of {name}"),
        Relation::Extends => format!("goes on where {name} ends"),
        Relation::Diverged => {
            let age = match copy.meta.mtime.cmp(&first.meta.mtime) {
                std::cmp::Ordering::Less => "older",
                std::cmp::Ordering::Equal => "of the same time",
                std::cmp::Ordering::Greater => "newer",
            };
            format!("differs from {name}, and is {age}")
        }
    }
}

/// Compares two files or two links.
fn compare(
    view: &View,
    first_in: &Folder,
    first: &Entry,
    copy_in: &Folder,
    copy: &Entry,
) -> io::Result<Relation> {
    if first.meta.kind == FileKind::File && first.meta.identity() == copy.meta.identity() {
        return Ok(Relation::Same);
    }
    let first_dir = view.survey.root.open_beneath(&first_in.rel)?;
    let copy_dir = view.survey.root.open_beneath(&copy_in.rel)?;
    if first.meta.kind == FileKind::Symlink {
        let same = first_dir.read_link(&first.name)? == copy_dir.read_link(&copy.name)?;
        return Ok(if same {
            Relation::Same
        } else {
            Relation::Diverged
        });
    }
    let mut first = Stoppable(first_dir.open_file(&first.name)?, view.stop);
    let mut copy = Stoppable(copy_dir.open_file(&copy.name)?, view.stop);
    conflict::relation(&mut first, &mut copy)
}

/// A reader that gives up when the person does.
struct Stoppable<'s, R>(R, &'s Stop);

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.raised() {
            return Err(io::Error::other("interrupted"));
        }
        self.0.read(buffer)
    }
}

/// How the files of two folders relate.
#[derive(Debug, Default)]
struct Difference {
    files: u64,
    /// Files that only the copy has.
    only_here: u64,
    different: u64,
    /// Whether the original has a file that the copy lacks.
    original_has_more: bool,
}

impl Difference {
    fn unique(&self) -> u64 {
        self.only_here + self.different
    }

    fn relation(&self) -> Relation {
        match (self.different, self.only_here, self.original_has_more) {
            (0, 0, false) => Relation::Same,
            (0, 0, true) => Relation::Prefix,
            (0, _, false) => Relation::Extends,
            _ => Relation::Diverged,
        }
    }

    fn told(&self, name: &str) -> String {
        let files = human::plural(self.files, "file", "files");
        let lack = format!("{} not in {name}", human::count(self.only_here));
        let differ = format!("{} unlike there", human::count(self.different));
        match (self.only_here, self.different, self.original_has_more) {
            (0, 0, false) => format!("holds the same {files} as {name}"),
            (0, 0, true) => format!("holds {files}, all of them in {name} too, which has more"),
            (_, 0, _) => format!("holds {files}, {lack}"),
            (0, _, _) => format!("holds {files} of {name}, {differ}"),
            _ => format!("holds {files}, {lack} and {differ}"),
        }
    }
}

fn compare_folders(view: &View, copy: &Path, original: &Path) -> io::Result<Difference> {
    let mut difference = Difference::default();
    let mut common = 0;
    for folder in view.below(copy) {
        // `below` gives what begins with `copy`.
        let within = folder.rel.strip_prefix(copy).unwrap_or(Path::new(""));
        let beside = view.folder(&join(original, within));
        for entry in folder
            .entries
            .iter()
            .filter(|e| e.meta.kind != FileKind::Folder)
        {
            difference.files += 1;
            let pair = beside.and_then(|beside| Some((beside, find_in(beside, &entry.name)?)));
            match pair {
                None => difference.only_here += 1,
                Some((beside, first)) => {
                    common += 1;
                    difference.different += u64::from(differ(view, beside, first, folder, entry)?);
                }
            }
        }
    }
    let firsts = view
        .below(original)
        .iter()
        .flat_map(|folder| &folder.entries);
    let firsts = firsts
        .filter(|entry| entry.meta.kind != FileKind::Folder)
        .count();
    difference.original_has_more = firsts > common;
    Ok(difference)
}

/// `join` without the slash that joining nothing adds.
fn join(base: &Path, within: &Path) -> PathBuf {
    match within.as_os_str().is_empty() {
        true => base.to_path_buf(),
        false => base.join(within),
    }
}

fn differ(
    view: &View,
    first_in: &Folder,
    first: &Entry,
    copy_in: &Folder,
    copy: &Entry,
) -> io::Result<bool> {
    if first.meta.kind != copy.meta.kind
        || !is_versioned(copy.meta.kind)
        || first.meta.size != copy.meta.size
    {
        return Ok(true);
    }
    Ok(compare(view, first_in, first, copy_in, copy)? != Relation::Same)
}
