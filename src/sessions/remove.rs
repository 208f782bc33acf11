//! `wbhome rm`: sessions into the trash, with a tombstone in the index, so that it is known to be meant.
//!
//! A session's folder and its archive go into one act, together with those of the others that are removed by
//! the same command. Labels stay in the index; `wbhome restore` brings everything back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::agree::new_entry;
use super::reconcile::refresh_cache;
use super::scan::read_record;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir};
use crate::home::journal::{self, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Former, Note, Was};
use crate::home::{
    Entry, Home, Index, IndexFile, Leases, LockedHome, SessionId, Status, identity_of, measure,
};
use crate::state::{Agent, AtWork};

/// What becomes of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Its id.
    pub id: SessionId,
    /// Its status before, in the index's own word.
    pub status: String,
    /// Whether its folder goes into the trash.
    pub folder: bool,
    /// Whether its archive does.
    pub archive: bool,
    /// Files in its folder.
    pub files: u64,
    /// Bytes of its folder and its archive.
    pub bytes: u64,
}

/// What would be removed.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// Session by session.
    pub sessions: Vec<Removed>,
}

/// What was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Those that were removed.
    pub sessions: Vec<Removed>,
    /// The act of the trash that holds them; none when nothing could be moved.
    pub act: Option<String>,
    /// What could not be moved and why, a line each.
    pub left: Vec<String>,
}

/// What removing these sessions would do.
///
/// # Errors
/// A session that was removed already, in which somebody is at work, or which another device holds: then none is removed.
pub fn plan(home: &Home, ids: &[SessionId], agents: &[Agent], leases: &Leases) -> Result<Plan> {
    // It will have to be written.
    let index = IndexFile::ready(home)?;
    let at_work = AtWork::look(home.root(), agents);
    let mut named = BTreeSet::new();
    let mut sessions = Vec::new();
    for id in ids.iter().filter(|id| named.insert(*id)) {
        leases.refuse(id)?;
        sessions.push(look_at(home, &index, id, &at_work)?);
    }
    Ok(Plan { sessions })
}

fn look_at(home: &Home, index: &Index, id: &SessionId, at_work: &AtWork) -> Result<Removed> {
    let name = human::name(id.as_str());
    let folder = home.session(id);
    let identity = identity_of(home, Some(index), id);
    if let Some(who) = at_work
        .agent_in_session(&folder, identity.as_deref())
        .or_else(|| at_work.writer_of(&folder))
    {
        return Err(Error::failed(format!("`{name}` can not be removed: {who}"))
            .hint("end its session first; nothing was removed"));
    }
    let archive = disk::stat(&home.archive_of(id))?;
    let here = disk::exists(&folder);
    let status = index.find(id.as_str()).map(Entry::status);
    if status == Some(Status::Removed) && !here && archive.is_none() {
        let hint = match is_in_trash(home, id)? {
            true => format!(
                "`wbhome restore {}` brings it back",
                human::argument_with(id.as_str(), "--from trash")
            ),
            false => "it is not in the trash any more; a backup may hold it".to_owned(),
        };
        return Err(Error::failed(format!("`{name}` has been removed already")).hint(hint));
    }
    let total = Dir::open(home.sessions())
        .map(|sessions| measure(&sessions, id.as_str().as_ref()).total())
        .unwrap_or_default();
    Ok(Removed {
        id: id.clone(),
        status: status.unwrap_or(Status::Active).as_str().to_owned(),
        folder: here,
        archive: archive.is_some(),
        files: total.files,
        bytes: total.bytes + archive.map_or(0, |meta| meta.size),
    })
}

fn is_in_trash(home: &Home, id: &SessionId) -> Result<bool> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let folder = Path::new("sessions").join(id.as_str());
    let archive = Path::new("archive").join(format!("{id}.tar.zst"));
    let held = |act: &trash::Act| {
        [&folder, &archive].map(|path| act.place_of(&root, path)) != [None, None]
    };
    Ok(trash::acts(home)?.iter().any(held))
}

/// The paths of a session that go into the trash.
fn paths(removed: &Removed) -> Vec<PathBuf> {
    let folder = Path::new("sessions").join(removed.id.as_str());
    let archive = Path::new("archive").join(format!("{}.tar.zst", removed.id));
    let paths = [(folder, removed.folder), (archive, removed.archive)];
    paths
        .into_iter()
        .filter_map(|(path, there)| there.then_some(path))
        .collect()
}

/// Removes the sessions.
///
/// # Errors
/// When nothing can be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let note = note(home, &plan, context)?;
    let was: Vec<Was> = note.was.clone();
    let act = trash::open(home, note, context)?;
    let mut steps = Vec::new();
    for was in &was {
        let Some(meta) = mend::look(&root, &was.path)? else {
            continue;
        };
        steps.push(Mend::PutAway {
            path: was.path.clone().into(),
            act: act.clone(),
            lies: was.lies.clone().into(),
            seen: Seen::of(&meta),
            held_by: None,
        });
    }
    steps.push(Mend::Remove {
        entries: tombstones(home, &plan)?,
        at: context.clock.now().to_string(),
    });
    let mut steps: Vec<Step> = steps.into_iter().map(|step| Step::Mend { step }).collect();
    let ids = plan.sessions.iter().map(|s| s.id.to_string()).collect();
    steps.push(Step::Views { ids: Some(ids) });
    let close = Mend::Close { act: act.clone() };
    steps.push(Step::Mend { step: close });
    let pending = journal::begin(home, "rm", steps, context)?;
    let completed = pending.complete_telling(home, context)?;
    refresh_cache(home, context)?;
    let (sessions, left): (Vec<Removed>, Vec<Removed>) =
        plan.sessions.into_iter().partition(|removed| {
            paths(removed)
                .iter()
                .all(|path| !disk::exists(&home.root().join(path)))
        });
    let left = left.iter().flat_map(paths);
    let left = left.filter(|path| disk::exists(&home.root().join(path)));
    let why = |path: PathBuf| {
        let why = completed.left.iter().find(|left| left.path == path);
        let why = why.map_or("it came back meanwhile", |left| left.why.as_str());
        format!("{}: {why}", human::path(&path))
    };
    Ok(Outcome {
        sessions,
        left: left.map(why).collect(),
        act: trash::act(home, &act).map(|act| act.name),
    })
}

fn note(home: &Home, plan: &Plan, context: &Context) -> Result<Note> {
    let index = Index::read(home)?;
    let former = |removed: &Removed| Former {
        id: removed.id.to_string(),
        status: match index.find(removed.id.as_str()) {
            Some(entry) => entry.text("status").map(str::to_owned),
            None => Some(Status::Active.as_str().to_owned()),
        },
    };
    let why = match plan.sessions.as_slice() {
        [one] => format!("removed the session {}", human::name(one.id.as_str())),
        many => format!("removed {} sessions", many.len()),
    };
    Ok(Note {
        why,
        at: context.clock.now().to_string(),
        command: Some("rm".to_owned()),
        was: plan.sessions.iter().flat_map(paths).map(Was::new).collect(),
        entries: plan.sessions.iter().map(former).collect(),
        ..Note::default()
    })
}

/// The entries of the sessions as they are now, for those that have none.
fn tombstones(home: &Home, plan: &Plan) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
    let sessions = Dir::open(home.sessions())
        .map_err(|e| Error::io("can not open the folder", home.sessions(), e))?;
    let entry = |removed: &Removed| {
        // A torn record costs the entry its details, and nothing else.
        let record = read_record(&sessions, &removed.id).unwrap_or_default();
        new_entry(&removed.id, record.as_ref()).fields().clone()
    };
    Ok(plan.sessions.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    fn ids(names: &[&str]) -> Vec<SessionId> {
        let adopt = |name: &&str| SessionId::adopt(name).unwrap();
        names.iter().map(adopt).collect()
    }

    #[test]
    fn a_session_goes_with_its_archive_and_leaves_a_tombstone() {
        let place = testing::home();
        place.put("sessions/20240603_数据/context/turn_001.json", "{}");
        place.put("archive/20240603_数据.tar.zst", "packed");
        place.put(
            "index.json",
            r#"[{"id": "20240603_数据", "tags": ["清洗"], "project": "alpha"}]"#,
        );
        let home = place.locked("rm");
        let removed = plan(
            &home,
            &ids(&["20240603_数据", "20240603_数据"]),
            &[],
            &Leases::default(),
        )
        .unwrap();
        assert_eq!(removed.sessions.len(), 1);
        assert_eq!(removed.sessions[0].bytes, 8);
        let done = apply(&home, removed, &place.context()).unwrap();
        assert_eq!(done.left, [""; 0]);
        let act = format!(".wbhome/trash/{}", done.act.unwrap());
        assert!(
            place
                .get(&format!(
                    "{act}/sessions/20240603_数据/context/turn_001.json"
                ))
                .is_some()
        );
        assert!(
            place
                .get(&format!("{act}/archive/20240603_数据.tar.zst"))
                .is_some()
        );
        let index = Index::read(&home).unwrap();
        let entry = index.find("20240603_数据").unwrap();
        assert_eq!(entry.status(), Status::Removed);
        assert_eq!(entry.text("removed_at"), Some("2024-06-15T12:00:00Z"));
        assert_eq!(entry.tags(), ["清洗"]);
        let again = plan(&home, &ids(&["20240603_数据"]), &[], &Leases::default()).unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
    }
}
