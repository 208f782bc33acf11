//! A home as the subjects of a survey look at it: its folders without those that are left alone, and its sessions.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Survey;
use crate::base::Stop;
use crate::check::conflict::{self, Client};
use crate::check::{Defect, is_left_alone, is_selected};
use crate::disk::{Entry, FileKind, Folder};

/// A folder in `sessions/` that is not hidden.
pub(super) struct Session<'a> {
    pub(super) name: &'a OsStr,
    /// Relative to the home.
    pub(super) rel: PathBuf,
    /// It and every folder below it.
    pub(super) folders: &'a [Folder],
    /// What it is a second version of, if that is there.
    pub(super) twin_of: Option<PathBuf>,
}

impl Session<'_> {
    /// The folder itself; `None` when it was gone before it could be read.
    pub(super) fn top(&self) -> Option<&Folder> {
        self.folders.first().filter(|folder| folder.rel == self.rel)
    }
}

/// A second version of something in the same folder.
pub(super) struct Copy {
    /// The name of the original.
    pub(super) original: Vec<u8>,
    pub(super) client: Client,
    /// Whether the original is there.
    pub(super) present: bool,
}

/// The home.
pub(super) struct View<'a> {
    pub(super) survey: &'a Survey<'a>,
    pub(super) stop: &'a Stop,
    defects: HashMap<&'a Path, Vec<&'a Defect>>,
    sessions: Vec<Session<'a>>,
    left_alone: Vec<bool>,
}

impl<'a> View<'a> {
    pub(super) fn new(survey: &'a Survey<'a>, stop: &'a Stop) -> Self {
        let mut defects: HashMap<&Path, Vec<&Defect>> = HashMap::new();
        for (rel, defect) in &survey.defects {
            defects.entry(rel).or_default().push(defect);
        }
        let left_alone = survey.tree.folders.iter().map(|f| is_left_alone(&f.rel));
        let left_alone = left_alone.collect();
        let mut view = View {
            survey,
            stop,
            defects,
            sessions: Vec::new(),
            left_alone,
        };
        if let Some(sessions) = view.folder(Path::new("sessions")) {
            view.sessions = sessions
                .entries
                .iter()
                .filter(|e| e.meta.kind == FileKind::Folder && !e.name.as_bytes().starts_with(b"."))
                .map(|entry| view.session(sessions, entry))
                .collect();
        }
        view
    }

    fn session(&self, sessions: &'a Folder, entry: &'a Entry) -> Session<'a> {
        let rel = sessions.rel.join(&entry.name);
        let twin = copy_in(sessions, entry).filter(|copy| copy.present);
        Session {
            name: &entry.name,
            folders: self.below(&rel),
            twin_of: twin.map(|copy| sessions.rel.join(OsStr::from_bytes(&copy.original))),
            rel,
        }
    }

    /// The sessions that were chosen, without second versions of sessions.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session<'a>> {
        self.every_session()
            .filter(|session| is_selected(&session.rel, self.survey.only))
    }

    /// Every session, chosen or not, without second versions of sessions.
    pub(super) fn every_session(&self) -> impl Iterator<Item = &Session<'a>> {
        self.sessions.iter().filter(|s| s.twin_of.is_none())
    }

    /// Every folder that is looked at: the chosen sessions, or all; without what is left alone.
    pub(super) fn folders(&self) -> impl Iterator<Item = &'a Folder> {
        let all = self.survey.tree.folders.iter().zip(&self.left_alone);
        all.filter(|(folder, left_alone)| {
            // Second versions of a chosen session stand beside it.
            !**left_alone
                && (folder.rel == Path::new("sessions")
                    || is_selected(&folder.rel, self.survey.only))
        })
        .map(|(folder, _)| folder)
    }

    /// The folder of that path.
    pub(super) fn folder(&self, rel: &Path) -> Option<&'a Folder> {
        let folders = &self.survey.tree.folders;
        let at = folders.binary_search_by(|folder| folder.rel.as_path().cmp(rel));
        at.ok().map(|at| &folders[at])
    }

    /// The folder of that path and all below it.
    pub(super) fn below(&self, rel: &Path) -> &'a [Folder] {
        let folders = &self.survey.tree.folders;
        let start = folders.partition_point(|folder| folder.rel.as_path() < rel);
        let rest = &folders[start..];
        &rest[..rest.partition_point(|folder| folder.rel.starts_with(rel))]
    }

    /// The entry of that path.
    pub(super) fn entry(&self, rel: &Path) -> Option<&'a Entry> {
        find_in(self.folder(rel.parent()?)?, rel.file_name()?)
    }

    /// What the content of a file told.
    pub(super) fn defects(&self, rel: &Path) -> &[&'a Defect] {
        self.defects.get(rel).map_or(&[], Vec::as_slice)
    }
}

/// The entry of that name in a folder.
pub(super) fn find_in<'f>(folder: &'f Folder, name: &OsStr) -> Option<&'f Entry> {
    let at = folder
        .entries
        .binary_search_by(|e| e.name.as_os_str().cmp(name));
    at.ok().map(|at| &folder.entries[at])
}

/// What an entry is a second version of, by its name and those beside it. Only things of the same kind are versions of
/// each other.
pub(super) fn copy_in(folder: &Folder, entry: &Entry) -> Option<Copy> {
    let exists = |name: &[u8]| {
        find_in(folder, OsStr::from_bytes(name)).is_some_and(|e| e.meta.kind == entry.meta.kind)
    };
    let is_folder = entry.meta.kind == FileKind::Folder;
    let (original, client) = conflict::original_of(entry.name.as_bytes(), is_folder, &exists)?;
    Some(Copy {
        present: exists(&original),
        original,
        client,
    })
}
