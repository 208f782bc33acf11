//! The folders in `sessions/`: what they hold, how they are called, and whether the index knows them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::view::{Session, View};
use crate::base::human;
use crate::check::{Finding, FindingKind};
use crate::disk::FileKind;
use crate::home::{Entry, SessionId, Status};

/// Everything about sessions as wholes, and about the home as one.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(open_to_others(view));
    for session in view.sessions() {
        findings.extend(holding(session));
        findings.extend(bad_name(session));
    }
    findings.extend(against_index(view));
    findings
}

fn open_to_others(view: &View) -> Option<Finding> {
    let root = view.folder(Path::new(""))?;
    let open = root.meta.mode & 0o077;
    (open != 0).then(|| {
        let detail = format!(
            "mode {:04o}: other users of this machine can enter it; 0700 keeps them out",
            root.meta.mode
        );
        Finding::new(FindingKind::OpenToOthers, "", detail)
    })
}

fn holding(session: &Session) -> Option<Finding> {
    let top = session.top()?;
    let files = session
        .folders
        .iter()
        .flat_map(|folder| &folder.entries)
        .filter(|entry| entry.meta.kind != FileKind::Folder)
        .count() as u64;
    if session
        .folders
        .iter()
        .any(|folder| !folder.unreadable.is_empty())
    {
        // What it holds is not known.
        return None;
    }
    if files == 0 {
        return Some(Finding::new(
            FindingKind::EmptySession,
            &session.rel,
            "holds no file",
        ));
    }
    let has = |name: &str| super::view::find_in(top, OsStr::new(name)).is_some();
    if has("session.json") || has(".session.json.icloud") {
        return None;
    }
    let detail = format!(
        "has no session.json beside its {}",
        human::plural(files, "file", "files")
    );
    Some(Finding::new(
        FindingKind::NoSessionJson,
        &session.rel,
        detail,
    ))
}

fn bad_name(session: &Session) -> Option<Finding> {
    let why = match session.name.to_str() {
        None => "is not UTF-8: it can not be archived until it is renamed".to_owned(),
        Some(name) => {
            let id = SessionId::adopt(name);
            if id.as_ref().is_ok_and(SessionId::follows_convention) {
                return None;
            }
            let characters = name.chars().count();
            match id {
                Err(_) => format!(
                    "has {} bytes: it can not be archived until it is renamed",
                    name.len()
                ),
                Ok(id) if id.date().is_none() => {
                    "does not begin with a date: YYYYMMDD_task".to_owned()
                }
                Ok(_) if characters > crate::home::LONGEST_NEW => {
                    format!(
                        "has {characters} characters, {} are the limit",
                        crate::home::LONGEST_NEW
                    )
                }
                Ok(_) => "holds more than letters, digits, `_` and `-`".to_owned(),
            }
        }
    };
    Some(Finding::new(
        FindingKind::BadName,
        &session.rel,
        format!("the name {why}"),
    ))
}

fn against_index(view: &View) -> Vec<Finding> {
    let Some(index) = view.survey.index else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut entries: HashMap<&str, Vec<&Entry>> = HashMap::new();
    for entry in index.entries() {
        entries.entry(entry.id()).or_default().push(entry);
    }
    for (id, same) in &entries {
        findings.extend(missing(view, same[0]));
        if same.len() > 1 {
            let detail = format!("has {} entries with the id {}", same.len(), human::name(id));
            let twice = Finding::new(FindingKind::DuplicateId, "index.json", detail);
            findings.push(twice.session(*id).count(same.len() as u64));
        }
    }
    for session in view.sessions() {
        let entry = session.name.to_str().and_then(|id| entries.get(id));
        let detail = match entry {
            None => "is not in the index",
            Some(same) if same[0].status() == Status::Removed => {
                "is here, and removed according to the index"
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(
            FindingKind::UnindexedSession,
            &session.rel,
            detail,
        ));
    }
    findings
}

/// A session that the index names and that is not where it should be.
fn missing(view: &View, entry: &Entry) -> Option<Finding> {
    let status = entry.status();
    if status == Status::Removed {
        return None;
    }
    let finding = |path: PathBuf, detail: String| {
        let id = entry.id().to_owned();
        Some(Finding::new(FindingKind::MissingSession, path, detail).session(id))
    };
    let Ok(id) = entry.session() else {
        return finding(
            "index.json".into(),
            "has an id that can not be a folder's name".into(),
        );
    };
    let folder = Path::new("sessions").join(id.as_str());
    let archive = archive_of(entry, &id);
    let (here, packed) = (
        view.entry(&folder).is_some(),
        view.entry(&archive).is_some(),
    );
    match status {
        Status::Archived if !packed && here => finding(
            folder,
            format!(
                "is archived according to the index, but only its folder is there, not {}",
                human::path(&archive)
            ),
        ),
        Status::Archived if !packed => finding(
            folder,
            format!(
                "is archived according to the index, but {} is not there",
                human::path(&archive)
            ),
        ),
        Status::Archived => None,
        _ if here => None,
        _ if packed => finding(
            folder,
            format!(
                "is {} according to the index, but only {} is there",
                human::name(status.as_str()),
                human::path(&archive)
            ),
        ),
        _ => finding(folder, "is in the index, and found nowhere".into()),
    }
}

/// Where the archive of a session lies.
pub(in crate::check) fn archive_of(entry: &Entry, id: &SessionId) -> PathBuf {
    let usual = format!("{id}.tar.zst");
    let named = entry
        .archive()
        .and_then(|archive| archive.get("file")?.as_str());
    // Only a plain name may become a path.
    let named = named.map(|file| file.strip_prefix("archive/").unwrap_or(file));
    let name = named
        .filter(|file| SessionId::adopt(file).is_ok())
        .unwrap_or(&usual);
    Path::new("archive").join(name)
}
