//! `wbhome archive`: which sessions, and one after the other into its pack.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::former::{self, Former};
use super::packing::{Archived, Packing};
use super::putting_away::{Put, PuttingAway};
use super::record::{entry_of, kept_in_pack, pack_of};
use super::{Refused, absent, one_by_one, shown};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::mend::Seen;
use crate::home::{
    Entry, Home, Index, IndexFile, Leases, LockedHome, SessionId, identity_of, measure,
};
use crate::pack::{Flaw, FlawKind, Pack};
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

fn at_work(home: &Home, index: &Index, look: &AtWork, id: &SessionId) -> Option<String> {
    let folder = home.session(id);
    let identity = identity_of(home, Some(index), id);
    look.agent_in_session(&folder, identity.as_deref())
        .or_else(|| look.writer_of(&folder))
        // What somebody writes by a relative name reaches the folder wherever it is put.
        .or_else(|| look.worker_in(&folder))
}

fn live(id: &SessionId, who: &str) -> Error {
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
    let all = plan.sessions.iter();
    let ran = one_by_one(home, all.map(|planned| &planned.id), context, |id| {
        one(home, id, request, agents, context)
    })?;
    Ok(Outcome {
        sessions: ran.done,
        already: plan.already,
        refused: plan.refused.into_iter().chain(ran.refused).collect(),
        left: plan.left,
        interrupted: ran.interrupted,
    })
}

fn one(
    home: &LockedHome,
    id: &SessionId,
    request: &Request,
    agents: &dyn Fn() -> Result<Vec<Agent>>,
    context: &Context,
) -> Result<Done> {
    let fail = |e| Error::io("can not open the folder", home.session(id), e);
    let root = home.dir()?;
    let index = IndexFile::ready(home)?;
    // Somebody may have come since the plan was made: the sessions before this one took their time.
    let agents = agents()?;
    let who = at_work(home, &index, &AtWork::look(home.root(), &agents), id);
    if let (Some(who), false) = (&who, request.force) {
        return Err(live(id, who));
    }
    let folder = Path::new("sessions").join(id.as_str());
    let folder = root.open_beneath(&folder).map_err(fail)?;
    let entry = entry_of(&index, id, &folder);
    let at = (!request.keep).then(|| context.clock.now().to_string());
    let packing = Packing {
        home,
        id,
        folder: &folder,
        entry: kept_in_pack(&entry, at.as_deref()),
        level: request.level,
        force: request.force,
        context,
    };
    let pack = |instead| {
        let (archived, new) = packing.pack(instead)?;
        Ok((archived, Some(new)))
    };
    let (archived, new) = match stands(home, id, &folder, context)? {
        None => pack(false)?,
        Some(Former::Same(archived)) => (*archived, None),
        Some(Former::Other(_)) if request.force => pack(true)?,
        Some(Former::Other(why)) => return Err(in_the_way(id, &why)),
    };
    let seen = Seen::of(&folder.meta().map_err(fail)?);
    drop(folder);
    let away = PuttingAway {
        home,
        root: &root,
        id,
        entry: &entry,
        archived: &archived,
        folder: seen,
        context,
    };
    let mut done = told(id, &archived);
    let stays = who.or_else(|| {
        let changed = archived.flaws(FlawKind::is_restless);
        let changed = changed.first()?;
        Some(format!("{} was written to", human::path(&changed.path)))
    });
    if request.keep || stays.is_some() {
        away.keep(new)?;
        done.kept_because = stays.filter(|_| !request.keep);
        return Ok(done);
    }
    match away.put(new, request.force)? {
        Put::Away(leftover) => {
            done.folder = false;
            done.leftover = leftover;
        }
        Put::Back(why) if request.force => {
            done.kept_because = Some(format!("it was written to: {why}"));
        }
        Put::Back(why) => {
            return Err(Error::failed(format!(
                "{} was written to while it was archived: {why}",
                shown(id)
            ))
            .hint("it is back in its place; try again when its session has ended"));
        }
    }
    Ok(done)
}

/// The pack that has the name already.
fn stands(
    home: &LockedHome,
    id: &SessionId,
    folder: &Dir,
    context: &Context,
) -> Result<Option<Former>> {
    let path = home.archive_of(id);
    match disk::stat(&path)? {
        None => Ok(None),
        Some(meta) if meta.kind == FileKind::File => match Pack::open(&path) {
            Ok(pack) => former::compare(&pack, id, folder, context).map(Some),
            Err(error) => Ok(Some(Former::Other(error.to_string()))),
        },
        Some(_) => Ok(Some(Former::Other("it is no file".to_owned()))),
    }
}

fn in_the_way(id: &SessionId, why: &str) -> Error {
    Error::failed(format!(
        "{} has an archive already, and that is not what its folder holds: {}",
        shown(id),
        human::escape(why)
    ))
    .hint("--force puts the former archive into the trash, and archives what the folder holds")
}

fn told(id: &SessionId, archived: &Archived) -> Done {
    let (files, bytes) = archived.content();
    let missing = |of: &dyn Fn(FlawKind) -> bool| {
        let flaws = archived.flaws(of);
        flaws.into_iter().map(Missing::from).collect()
    };
    let file: PathBuf = pack_of(id);
    Done {
        id: id.clone(),
        files,
        bytes,
        file: file.display().to_string(),
        packed: archived.bytes,
        blake3: archived.blake3.clone(),
        reused: archived.reused,
        folder: true,
        kept_because: None,
        special: missing(&|kind| kind == FlawKind::Special),
        changed: missing(&FlawKind::is_restless),
        leftover: Vec::new(),
    }
}

#[cfg(test)]
#[path = "away_tests.rs"]
mod tests;
