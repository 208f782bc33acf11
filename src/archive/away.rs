//! `wbhome archive`: which sessions, and one after the other into its pack.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::group::group;
use super::{Refused, absent, one_by_one, shown};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::{
    Entry, Home, Index, IndexFile, Leases, LockedHome, SessionId, identity_of, measure,
};
use crate::pack::Flaw;
use crate::state::{Agent, AtWork};

/// Which sessions are asked for.
#[derive(Clone, Debug)]
pub enum Which {
    /// These.
    Named(Vec<SessionId>),
    /// All in which nothing was written for so long.
    Idle(Duration),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which.
    pub which: Which,
    /// Leave the folders where they are.
    pub keep: bool,
    /// Pack what is being written, too, and put another pack that is in the way into the trash.
    pub force: bool,
    /// Compression, 1 to 19.
    pub level: i32,
}

/// A session that would be archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Its id.
    pub id: SessionId,
    /// Files in its folder.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// When something was last written in it.
    pub last_activity: Option<Timestamp>,
    /// Whether there is a pack of that name already.
    pub archive: bool,
}

/// Why a session that was not asked for by name is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Somebody is at work in it.
    AtWork,
    /// Something was written in it since.
    Active,
    /// It can not be read whole.
    Unreadable,
    /// Its name can not be that of a pack.
    Name,
    /// Another device holds its lease.
    Leased,
}

/// A session that is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Its name.
    pub id: String,
    /// Why.
    pub reason: Reason,
    /// The same for a person.
    pub why: String,
    /// When something was last written in it.
    pub last_activity: Option<Timestamp>,
}

/// What would be archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Whether the folders stay.
    pub keep: bool,
    /// Session by session.
    pub sessions: Vec<Planned>,
    /// Those that are archived already.
    pub already: Vec<String>,
    /// Those asked for that can not be archived.
    pub refused: Vec<Refused>,
    /// Those that have not rested for long enough.
    pub left: Vec<Left>,
}

/// Something that is not in a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Where, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

impl From<&Flaw> for Missing {
    fn from(flaw: &Flaw) -> Missing {
        Missing {
            path: flaw.path.0.clone().into(),
            why: flaw.why.clone(),
        }
    }
}

/// A session that has its pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Its id.
    pub id: SessionId,
    /// Files in the pack.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// The pack, below the home.
    pub file: String,
    /// Its length.
    pub packed: u64,
    /// Its digest, in hexadecimal digits.
    pub blake3: String,
    /// Whether the pack was there before, and is the same.
    pub reused: bool,
    /// Whether the folder is still in `sessions/`.
    pub folder: bool,
    /// Why the folder is still there although nobody asked for that.
    pub kept_because: Option<String>,
    /// What holds no bytes, and so is not in the pack: sockets, pipes, devices.
    pub special: Vec<Missing>,
    /// What was written to meanwhile: the pack holds a beginning of it, or one of its states.
    pub changed: Vec<Missing>,
    /// What of the folder could not be removed, a line each.
    pub leftover: Vec<String>,
}

impl Done {
    /// Whether all was done that was asked for.
    pub fn is_whole(&self) -> bool {
        self.kept_because.is_none()
            && self.special.is_empty()
            && self.changed.is_empty()
            && self.leftover.is_empty()
    }
}

/// What was archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Session by session.
    pub sessions: Vec<Done>,
    /// Those that were archived already.
    pub already: Vec<String>,
    /// Those that were not archived, and why.
    pub refused: Vec<Refused>,
    /// Those that had not rested for long enough.
    pub left: Vec<Left>,
    /// Whether somebody interrupted it: what comes after the last one was not begun.
    pub interrupted: bool,
}

/// What archiving would do. `agents` are the processes that the application has noted.
///
/// # Errors
/// An index that can not be written; a home that can not be listed.
pub fn plan(
    home: &Home,
    request: &Request,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Plan> {
    let look = Look {
        home,
        leases,
        index: IndexFile::ready(home)?,
        at_work: AtWork::look(home.root(), agents),
        sessions: Dir::open(home.sessions())
            .map_err(|e| Error::io("can not open the folder", home.sessions(), e))?,
    };
    let mut plan = Plan {
        keep: request.keep,
        sessions: Vec::new(),
        already: Vec::new(),
        refused: Vec::new(),
        left: Vec::new(),
    };
    match &request.which {
        Which::Named(ids) => look.named(ids, request.force, &mut plan)?,
        Which::Idle(rest) => look.idle(*rest, &mut plan, context)?,
    }
    Ok(plan)
}

struct Look<'a> {
    home: &'a Home,
    leases: &'a Leases,
    index: Index,
    at_work: AtWork<'a>,
    sessions: Dir,
}

impl Look<'_> {
    fn named(&self, ids: &[SessionId], force: bool, plan: &mut Plan) -> Result<()> {
        let mut seen = BTreeSet::new();
        for id in ids.iter().filter(|id| seen.insert(*id)) {
            let folder = self.sessions.find(id.as_str().as_ref());
            let folder = folder
                .map_err(|e| Error::io("can not look at", self.home.session(id), e))?
                .map(|meta| meta.kind);
            if let Err(error) = self.leases.refuse(id) {
                plan.refused.push(Refused::new(id, &error));
                continue;
            }
            match folder {
                Some(FileKind::Folder) => match self.who(id) {
                    Some(who) if !force => plan.refused.push(Refused::new(id, &live(id, &who))),
                    _ => plan.sessions.push(self.planned(id)?),
                },
                Some(_) => {
                    let error = Error::failed("is no folder:").at(self.home.session(id));
                    plan.refused.push(Refused::new(id, &error));
                }
                None if self.archive(id)? => plan.already.push(id.to_string()),
                None => {
                    let status = self.index.find(id.as_str()).map(Entry::status);
                    let error = absent(id, status, "is neither in sessions/ nor in archive/");
                    plan.refused.push(Refused::new(id, &error));
                }
            }
        }
        Ok(())
    }

    fn idle(&self, rest: Duration, plan: &mut Plan, context: &Context) -> Result<()> {
        let now = context.clock.now();
        let names = disk::read_dir_names(&self.home.sessions())?;
        let folders = names
            .into_iter()
            .filter(|(_, kind)| *kind == FileKind::Folder);
        let mut folders: Vec<_> = folders.map(|(name, _)| name).collect();
        folders.sort();
        let looked: Vec<_> = folders
            .into_par_iter()
            .map(|name| {
                context.stop.check()?;
                let Some(id) = SessionId::of_folder(&name) else {
                    return Ok(Err(Left {
                        id: human::path(Path::new(&name)),
                        reason: Reason::Name,
                        why: "its name can not be that of a pack; rename it first".to_owned(),
                        last_activity: None,
                    }));
                };
                self.rests(id, rest, now)
            })
            .collect::<Result<_>>()?;
        for looked in looked {
            match looked {
                Ok(planned) => plan.sessions.push(planned),
                Err(left) => plan.left.push(left),
            }
        }
        Ok(())
    }

    /// Whether nothing was written in a session for so long, and nobody is at work in it.
    fn rests(
        &self,
        id: SessionId,
        rest: Duration,
        now: Timestamp,
    ) -> Result<std::result::Result<Planned, Left>> {
        if let Some(why) = self.leases.elsewhere(id.as_str()) {
            return Ok(Err(Left {
                id: id.to_string(),
                reason: Reason::Leased,
                why,
                last_activity: None,
            }));
        }
        let planned = self.planned(&id)?;
        let last = planned.last_activity;
        let left = |reason, why| {
            Ok(Err(Left {
                id: id.to_string(),
                reason,
                why,
                last_activity: last,
            }))
        };
        let Some(last) = last else {
            return left(Reason::Unreadable, "it can not be read".to_owned());
        };
        // What was written in the future was not written long ago.
        let rested = now.duration_since(last);
        if Duration::try_from(rested).unwrap_or_default() < rest {
            return left(
                Reason::Active,
                format!("active since {}", last.strftime("%Y-%m-%d")),
            );
        }
        match self.who(&id) {
            Some(who) => left(Reason::AtWork, who),
            None => Ok(Ok(planned)),
        }
    }

    fn planned(&self, id: &SessionId) -> Result<Planned> {
        let counts = measure(&self.sessions, id.as_str().as_ref());
        let total = counts.total();
        Ok(Planned {
            id: id.clone(),
            files: total.files,
            bytes: total.bytes,
            last_activity: counts.last_activity,
            archive: self.archive(id)?,
        })
    }

    fn archive(&self, id: &SessionId) -> Result<bool> {
        Ok(disk::stat(&self.home.archive_of(id))?.is_some())
    }

    fn who(&self, id: &SessionId) -> Option<String> {
        at_work(self.home, &self.index, &self.at_work, id)
    }
}

pub(super) fn at_work(home: &Home, index: &Index, look: &AtWork, id: &SessionId) -> Option<String> {
    let folder = home.session(id);
    let identity = identity_of(home, Some(index), id);
    look.agent_in_session(&folder, identity.as_deref())
        .or_else(|| look.writer_of(&folder))
        // What somebody writes by a relative name reaches the folder wherever it is put.
        .or_else(|| look.worker_in(&folder))
}

pub(super) fn live(id: &SessionId, who: &str) -> Error {
    Error::failed(format!("{} can not be archived: {who}", shown(id))).hint(
        "end its session first; --force packs what is there, and leaves the folder where it is",
    )
}

/// Archives the sessions, one after the other: what happens to one does not stop the others. `agents` tells who is
/// running now.
///
/// # Errors
/// When the sessions can not be counted again in the end.
pub fn apply(
    home: &LockedHome,
    plan: Plan,
    request: &Request,
    agents: &dyn Fn() -> Result<Vec<Agent>>,
    context: &Context,
) -> Result<Outcome> {
    let ids: Vec<_> = plan.sessions.iter().map(|planned| &planned.id).collect();
    let ran = one_by_one(home, &ids, context, |ids, going_on| {
        group(home, ids, request, agents, context, going_on)
    })?;
    Ok(Outcome {
        sessions: ran.done,
        already: plan.already,
        refused: plan.refused.into_iter().chain(ran.refused).collect(),
        left: plan.left,
        interrupted: ran.interrupted,
    })
}

#[cfg(test)]
#[path = "away_tests.rs"]
mod tests;
