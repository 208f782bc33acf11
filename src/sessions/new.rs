//! `wbhome new`: a session with its folders, its record and its entry.
//!
//! The folder is built complete under `.wbhome/tmp/` and then renamed into its place, so that nobody ever
//! sees half of one.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::reconcile::refresh_cache;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::journal::{self, Step};
use crate::home::views::unusable_project;
use crate::home::{
    Cache, Entry, Home, Index, KINDS, LockedHome, SessionId, SessionsStamp, folded, measure,
};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The part of the name after the date.
    pub task: String,
    /// The agent that will work in it.
    pub agent: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whom it is shared with.
    pub sync_tag: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The day in its name, when it is not today.
    pub date: Option<jiff::civil::Date>,
    /// Allow a name that is too long.
    pub force: bool,
}

/// The session that would be made.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Its id.
    pub id: SessionId,
    /// Its folder.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its entry in the index.
    pub entry: Map<String, Value>,
    /// Its `session.json`.
    #[serde(skip)]
    record: Value,
    /// What a person may want to know.
    pub warnings: Vec<String>,
}

/// The session that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Its id.
    pub id: SessionId,
    /// Its folder.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its entry in the index.
    pub entry: Map<String, Value>,
    /// What a person may want to know.
    pub warnings: Vec<String>,
}

/// Chooses the id. One that is taken (on the disk, in the archive, or anywhere in the index) gets `_2`.
///
/// # Errors
/// A usage error for a name or label that can not be; an index that can not be understood.
pub fn plan(home: &Home, request: &Request, context: &Context) -> Result<Plan> {
    check_labels(request)?;
    let now = context.clock.zoned();
    let date = request.date.unwrap_or_else(|| now.date());
    let id = free_id(home, request, date)?;
    let began = date
        .to_datetime(now.time())
        .to_zoned_datetime(now.time_zone().clone());
    let began = began.map_or(now.timestamp(), |z| z.timestamp());
    let created_at = began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let identity = format!("{:032x}", context.clock.random());
    let path = home.session(&id);
    let text = |value: &Option<String>| value.as_deref().map_or(Value::Null, Value::from);
    let mut entry = Entry::new(&id);
    entry.set("title", text(&request.title));
    entry.set("agent", text(&request.agent));
    entry.set("project", text(&request.project));
    for tag in &request.tags {
        entry.add_tag(tag);
    }
    entry.set("sync_tag", text(&request.sync_tag));
    entry.set("created_at", created_at.as_str());
    entry.set("session_id", identity.as_str());
    let record = json!({
        "id": id,
        "session_id": identity,
        "created_at": created_at,
        "agent": request.agent,
        "title": request.title,
        "project": request.project,
        "tags": entry.tags(),
        "cwd": path.to_string_lossy(),
    });
    Ok(Plan {
        warnings: warnings(home, request),
        id,
        path: path.into(),
        entry: entry.fields().clone(),
        record,
    })
}

fn check_labels(request: &Request) -> Result<()> {
    if let Some(project) = &request.project {
        check_project(project)?;
    }
    let tags = request.tags.iter().map(|tag| ("tag", tag));
    let sync_tag = request.sync_tag.iter().map(|tag| ("sync tag", tag));
    tags.chain(sync_tag)
        .try_for_each(|(what, tag)| check_tag(what, tag))
}

/// A project names a folder in `projects/`.
pub(super) fn check_project(project: &str) -> Result<()> {
    match unusable_project(project) {
        None => check_tag("project", project),
        Some(why) => Err(Error::usage(format!(
            "`{}` can not be a project: {why}, and a project is a folder in projects/",
            human::name(project)
        ))),
    }
}

/// Refuses a label that can not be one; `what` says which kind of label it is.
///
/// # Errors
/// A usage error for one that is empty or holds control characters.
pub fn check_tag(what: &str, tag: &str) -> Result<()> {
    let why = if tag.trim().is_empty() {
        "it is empty"
    } else if tag.chars().any(char::is_control) {
        "it holds control characters"
    } else {
        return Ok(());
    };
    let shown = human::name(tag);
    Err(Error::usage(format!(
        "`{shown}` can not be a {what}: {why}"
    )))
}

fn warnings(home: &Home, request: &Request) -> Vec<String> {
    let unknown = request.agent.iter().filter(|agent| {
        let plain = SessionId::adopt(agent).is_ok();
        !plain || !disk::is_folder(&home.agents().join(agent))
    });
    let warning = |agent: &String| format!("there is no agent `{}` in agents/", human::name(agent));
    unknown.map(warning).collect()
}

/// The first of `<id>`, `<id>_2`, … that nothing has, not even in another case or Unicode form.
fn free_id(home: &Home, request: &Request, date: jiff::civil::Date) -> Result<SessionId> {
    let taken = taken(home)?;
    let mut id = SessionId::compose(date, &request.task, request.force)?;
    let mut n = 1;
    while taken.contains(&folded(id.as_str())) {
        n += 1;
        let task = format!("{}_{n}", request.task);
        id = SessionId::compose(date, &task, request.force)?;
    }
    Ok(id)
}

fn taken(home: &Home) -> Result<BTreeSet<String>> {
    let index = Index::read(home)?;
    let mut taken: BTreeSet<String> = index.entries().map(|e| folded(e.id())).collect();
    for (name, _) in disk::read_dir_names(&home.sessions())? {
        taken.extend(name.to_str().map(folded));
    }
    for (name, _) in disk::read_dir_names(&home.archive())? {
        let packed = name.to_str().and_then(|n| n.strip_suffix(".tar.zst"));
        taken.extend(packed.map(folded));
    }
    Ok(taken)
}

/// Makes the session.
///
/// # Errors
/// A name that has been taken since; what can not be written.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    if taken(home)?.contains(&folded(plan.id.as_str())) {
        return Err(Error::failed("has been made meanwhile by somebody else:")
            .at(&*plan.path)
            .hint("run the command again: it takes the next free name"));
    }
    let fresh = Cache::read(home).filter(|cache| !cache.is_stale(home));
    let built = build(home, &plan, context)?;
    failpoint::hit("new.built");
    let id = plan.id.to_string();
    let steps = vec![
        Step::Rename {
            from: built,
            to: format!("sessions/{id}"),
        },
        Step::Entry {
            entry: plan.entry.clone(),
        },
        Step::Views {
            ids: Some(vec![id.clone()]),
        },
    ];
    journal::begin(home, "new", steps, context)?.complete(home, context)?;
    remember(home, fresh, &plan.id, context)?;
    Ok(Outcome {
        id: plan.id,
        path: plan.path,
        entry: plan.entry,
        warnings: plan.warnings,
    })
}

/// Builds the folder; returns its path below the home.
fn build(home: &LockedHome, plan: &Plan, context: &Context) -> Result<String> {
    let name = format!("new-{:032x}", context.clock.random());
    let path = home.tmp().join(&name);
    let fail = |e| Error::io("can not make", &path, e);
    disk::create_private_folder(&path)?;
    let mut text = serde_json::to_vec_pretty(&plan.record)
        .map_err(|e| Error::io("can not write session.json in", &path, e))?;
    text.push(b'\n');
    disk::write_new(&path.join("session.json"), &text, 0o600)?;
    let folder = Dir::open(&path).map_err(fail)?;
    for kind in KINDS {
        folder.make(OsStr::new(kind)).map_err(fail)?;
    }
    folder.sync().map_err(fail)?;
    Ok(format!(".wbhome/tmp/{name}"))
}

/// Keeps a cache that was right until now right.
fn remember(
    home: &LockedHome,
    fresh: Option<Cache>,
    id: &SessionId,
    context: &Context,
) -> Result<()> {
    let Some(mut cache) = fresh else {
        return refresh_cache(home, context);
    };
    let path = home.sessions();
    let sessions = Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
    cache.stamp = SessionsStamp::now(home)?;
    let counts = measure(&sessions, id.as_str().as_ref());
    cache.sessions.insert(id.to_string(), counts);
    cache.write(home)
}

#[cfg(test)]
#[path = "new_tests.rs"]
mod tests;
