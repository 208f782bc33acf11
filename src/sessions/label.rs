//! `wbhome label`: tags, project, sync tag and title, in the index; the project views follow.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::agree::new_entry;
use super::new::{check_project, check_tag};
use super::scan::read_record;
use crate::base::{Context, Error, Result, human};
use crate::disk::Dir;
use crate::home::journal::{self, Step};
use crate::home::views::{self, Views};
use crate::home::{Entry, Home, Index, IndexFile, LockedHome, SessionId, Status};

/// What is to be changed on each session. `Some(None)` takes a label away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Tags to add.
    pub tag: Vec<String>,
    /// Tags to take away.
    pub untag: Vec<String>,
    /// The project.
    pub project: Option<Option<String>>,
    /// The sync tag.
    pub sync_tag: Option<Option<String>>,
    /// The title; an empty one takes it away.
    pub title: Option<String>,
}

/// The labels of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// The title.
    pub title: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The sync tag.
    pub sync_tag: Option<String>,
}

/// What becomes of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Labelled {
    /// Its id.
    pub id: String,
    /// Its labels before.
    pub before: Labels,
    /// Its labels after.
    pub after: Labels,
    /// Whether it had no entry in the index and gets one.
    pub added: bool,
}

impl Labelled {
    /// Whether anything differs.
    pub fn changed(&self) -> bool {
        self.added || self.before != self.after
    }
}

/// What would be changed.
#[derive(Debug, Serialize)]
pub struct Plan {
    #[serde(skip)]
    ids: Vec<SessionId>,
    #[serde(skip)]
    request: Request,
    /// Session by session.
    pub sessions: Vec<Labelled>,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Session by session.
    pub sessions: Vec<Labelled>,
    /// How many differ now.
    pub changed: u64,
    /// How many had these labels already.
    pub unchanged: u64,
    /// What changed in `projects/`.
    pub views: Views,
}

/// What labelling these sessions would change.
///
/// # Errors
/// A usage error when nothing is asked for, or what can not be; a session that is unknown or removed.
pub fn plan(home: &Home, ids: &[SessionId], request: Request) -> Result<Plan> {
    check(ids, &request)?;
    let mut index = Index::read(home)?;
    // A session named twice is labelled once.
    let mut named = BTreeSet::new();
    let ids: Vec<SessionId> = ids.iter().filter(|id| named.insert(*id)).cloned().collect();
    let sessions = label_all(home, &mut index, &ids, &request)?;
    Ok(Plan {
        ids,
        request,
        sessions,
    })
}

fn check(ids: &[SessionId], request: &Request) -> Result<()> {
    if *request == Request::default() {
        return Err(Error::usage("no label was given")
            .hint("--tag T, --untag T, --project P, --sync-tag S, --title T, and --no-project, --no-sync-tag"));
    }
    if let Some(tag) = request.tag.iter().find(|tag| request.untag.contains(tag)) {
        let tag = human::name(tag);
        return Err(Error::usage(format!(
            "`{tag}` is to be added and taken away"
        )));
    }
    if request.title.is_some() && ids.len() > 1 {
        return Err(
            Error::usage("one title for several sessions tells nobody which is which")
                .hint("give --title for one session at a time"),
        );
    }
    if let Some(Some(project)) = &request.project {
        check_project(project)?;
    }
    if let Some(Some(tag)) = &request.sync_tag {
        check_tag("sync tag", tag)?;
    }
    request.tag.iter().try_for_each(|tag| check_tag("tag", tag))
}

/// Labels the sessions in the index, and the project views.
///
/// # Errors
/// What can not be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    let Plan { ids, request, .. } = plan;
    let names: Vec<String> = ids.iter().map(SessionId::to_string).collect();
    let step = Step::Views {
        ids: Some(names.clone()),
    };
    let pending = journal::begin(home, "label", vec![step], context)?;
    let updated = IndexFile::update(home, |index| label_all(home, index, &ids, &request));
    let sessions = match updated {
        Ok(sessions) => sessions,
        Err(error) => {
            pending.forget()?;
            return Err(error);
        }
    };
    let views = views::follow(home, &Index::read(home)?, Some(&names))?;
    pending.forget()?;
    let changed = sessions.iter().filter(|s| s.changed()).count() as u64;
    Ok(Outcome {
        changed,
        unchanged: sessions.len() as u64 - changed,
        sessions,
        views,
    })
}

/// Labels these sessions, each named once. Entries that share an id are labelled alike.
fn label_all(
    home: &Home,
    index: &mut Index,
    ids: &[SessionId],
    request: &Request,
) -> Result<Vec<Labelled>> {
    let mut added = BTreeSet::new();
    for id in ids {
        if index.find(id.as_str()).is_none() {
            index.insert(entry_from_disk(home, id)?);
            added.insert(id.as_str());
        }
    }
    let named: BTreeSet<&str> = ids.iter().map(SessionId::as_str).collect();
    let mut labelled = BTreeMap::new();
    for entry in index.entries_mut() {
        let Some(&id) = named.get(entry.id()) else {
            continue;
        };
        if entry.status() == Status::Removed {
            let shown = human::name(id);
            return Err(Error::failed(format!("`{shown}` has been removed")));
        }
        let before = labels(entry);
        set(entry, request);
        labelled.entry(id).or_insert_with(|| Labelled {
            id: id.to_owned(),
            before,
            after: labels(entry),
            added: added.contains(id),
        });
    }
    let of = |id: &SessionId| labelled.remove(id.as_str()).ok_or_else(|| unknown(id));
    ids.iter().map(of).collect()
}

fn entry_from_disk(home: &Home, id: &SessionId) -> Result<Entry> {
    let sessions = Dir::open(home.sessions())
        .map_err(|e| Error::io("can not open the folder", home.sessions(), e))?;
    if !crate::disk::is_folder(&home.session(id)) {
        return Err(unknown(id));
    }
    // A torn record costs the entry its details, not the session its labels; `check` names it.
    let record = read_record(&sessions, id).unwrap_or_default();
    Ok(new_entry(id, record.as_ref()))
}

fn unknown(id: &SessionId) -> Error {
    let shown = human::name(id.as_str());
    Error::failed(format!("there is no session `{shown}`")).hint("`wbhome ls` lists them")
}

fn labels(entry: &Entry) -> Labels {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Labels {
        title: text(entry.title()),
        project: text(entry.project()),
        tags: entry.tags().into_iter().map(str::to_owned).collect(),
        sync_tag: text(entry.sync_tag()),
    }
}

fn set(entry: &mut Entry, request: &Request) {
    request.tag.iter().for_each(|tag| entry.add_tag(tag));
    request.untag.iter().for_each(|tag| entry.remove_tag(tag));
    for (key, value) in [
        ("project", &request.project),
        ("sync_tag", &request.sync_tag),
    ] {
        match value {
            Some(Some(value)) => entry.set(key, value.as_str()),
            Some(None) => entry.set(key, serde_json::Value::Null),
            None => {}
        }
    }
    match request.title.as_deref() {
        Some("") => entry.set("title", serde_json::Value::Null),
        Some(title) => entry.set("title", title),
        None => {}
    }
}

#[cfg(test)]
#[path = "label_tests.rs"]
mod tests;
