//! What each `session.json` says: who the session is, whose it is, and where it works.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::view::{Session, View};
use crate::base::human;
use crate::check::{Finding, FindingKind};
use crate::disk::{self, FileKind};
use crate::home::Record;

/// Sessions with the same identity, of unknown agents, and without their working folder.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let sessions: Vec<&Session> = view.every_session().collect();
    let read: Vec<_> = sessions
        .par_iter()
        .map(|session| read(view, session))
        .collect();
    let mut findings = Vec::new();
    let mut by_identity: HashMap<String, PathBuf> = HashMap::new();
    for (session, read) in sessions.iter().zip(read) {
        let record = match read {
            Ok(record) => record.unwrap_or_default(),
            Err(why) => {
                findings.push(Finding::unreadable(session.rel.join("session.json"), why));
                continue;
            }
        };
        findings.extend(wrong_cwd(session, &record));
        findings.extend(unknown_agent(view, session, &record));
        if let Some(identity) = record.session_id {
            let here = session.rel.join("session.json");
            match by_identity.get(&identity) {
                Some(first) => findings.push(duplicate(here, first, &identity)),
                None => drop(by_identity.insert(identity, here)),
            }
        }
    }
    findings
}

/// `None` when there is none, or it can not be understood: what is torn was found by reading it. An error says why it
/// can not be read.
fn read(view: &View, session: &Session) -> Result<Option<Record>, String> {
    let entry = session
        .top()
        .and_then(|top| super::view::find_in(top, OsStr::new("session.json")));
    if view.stop.raised() || entry.is_none_or(|entry| entry.meta.kind != FileKind::File) {
        return Ok(None);
    }
    let dir = view.survey.root.open_beneath(&session.rel);
    let dir = dir.map_err(|error| human::io(&error))?;
    match Record::read(&dir) {
        Ok(record) => Ok(record),
        Err(error) => error
            .io_cause()
            .map_or(Ok(None), |cause| Err(human::io(cause))),
    }
}

fn wrong_cwd(session: &Session, record: &Record) -> Option<Finding> {
    let cwd = Path::new(record.cwd.as_deref()?);
    // What can not be looked at (another user's folder, a name too long) may be there.
    if !cwd.is_absolute() || !matches!(disk::stat(cwd), Ok(None)) {
        return None;
    }
    let detail = format!("would resume in {}, which is not there", human::path(cwd));
    let at = session.rel.join("session.json");
    Some(Finding::new(FindingKind::WrongCwd, at, detail))
}

fn unknown_agent(view: &View, session: &Session, record: &Record) -> Option<Finding> {
    let indexed = || view.survey.index?.find(session.name.to_str()?)?.agent();
    let (agent, by_record) = match record.agent.as_deref() {
        Some(agent) => (agent, true),
        None => (indexed()?, false),
    };
    if agent.is_empty() || view.entry(&Path::new("agents").join(agent)).is_some() {
        return None;
    }
    let at = match by_record {
        true => session.rel.join("session.json"),
        false => session.rel.clone(),
    };
    let agent = human::name(agent);
    let detail = format!("is of the agent {agent}, and agents/{agent}/ is not there");
    Some(Finding::new(FindingKind::UnknownAgent, at, detail))
}

fn duplicate(here: PathBuf, first: &Path, identity: &str) -> Finding {
    let detail = format!(
        "has the same session_id as {}: {}",
        human::path(first),
        human::name(identity)
    );
    Finding::new(FindingKind::DuplicateId, here, detail).of(first)
}
