//! `wbhome restore --from trash`: what an act of the trash has done, taken back; the whole of it, or one path.
//!
//! Nothing that is there is written over: it is a refusal, or with `force` it goes into the trash itself, in an
//! act of its own. Everything is a rename, so modes and times stay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::reconcile::refresh_cache;
use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Context, Error, Result, Stop, human};
use crate::disk::{self, Dir};
use crate::home::journal::{self, Step};
use crate::home::mend::{self, INDEX, Mend, Seen};
use crate::home::trash::{self, Act, Former, Mark, Note, Was};
use crate::home::{
    Candidate, Home, Index, IndexFile, Leases, LockedHome, SessionId, Status, candidates, resolve,
    split,
};
use crate::state::{Agent, AtWork};

mod list;
mod look;
mod noted;

use look::Look;
use noted::{gone, refuse_what_no_command_wrote};

pub use list::{Listed, ListedItem, Listing, list};

/// What is to be taken back.
#[derive(Clone, Debug)]
pub struct Request {
    /// The name of an act, a session, or something in a session.
    pub what: String,
    /// What is there goes into the trash.
    pub force: bool,
}

/// Something that comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Back {
    /// Where, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whether it takes the place of something, which goes into the trash.
    pub replaces: bool,
    #[serde(skip)]
    lies: PathBuf,
    /// What it takes the place of, of the index.
    #[serde(skip)]
    present: Option<Mark>,
}

/// A mode that is set back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModeBack {
    /// Of what, below the home; empty for the home itself.
    #[serde(flatten)]
    pub path: WirePath,
    /// What it will be.
    pub mode: u32,
    #[serde(skip)]
    now: u32,
}

/// What would be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The act.
    pub act: String,
    /// What comes back.
    pub back: Vec<Back>,
    /// What the act had added, and goes.
    pub away: Vec<WirePath>,
    /// Modes that are set back.
    pub modes: Vec<ModeBack>,
    /// Sessions whose entries in the index stop being tombstones.
    pub sessions: Vec<String>,
    /// What can not be taken back, a line each.
    pub left: Vec<String>,
    #[serde(skip)]
    folders: Vec<PathBuf>,
    #[serde(skip)]
    former: Vec<Former>,
}

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What was done of the plan.
    #[serde(flatten)]
    pub done: Plan,
    /// The act that holds what was replaced or taken away, if anything was.
    pub kept: Option<String>,
}

/// What taking something back would do.
///
/// # Errors
/// Nothing of that name in the trash; something in the way; somebody at work; a session that another device holds.
pub fn plan(
    home: &Home,
    request: &Request,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Plan> {
    let root = open(home)?;
    let (mut plan, is_whole) = match trash::act(home, &request.what) {
        Some(act) => (whole(home, &root, act, context.stop)?, true),
        None => (one(home, &root, &request.what, context.stop)?, false),
    };
    let look = Look {
        home,
        root: &root,
        stop: context.stop,
    };
    look.at_work(&plan, &AtWork::look(home.root(), agents))?;
    let paths = plan.back.iter().map(|back| &back.path);
    let paths = paths.chain(&plan.away);
    let mut paths = paths.chain(plan.modes.iter().map(|mode| &mode.path));
    paths.try_for_each(|path| leases.refuse_path(path))?;
    look.see_what_is_there(&mut plan, is_whole, request.force)?;
    Ok(plan)
}

/// Whether an act can be taken back only with `force`, so that it can be said beforehand.
pub fn needs_force(home: &Home, act: &str, context: &Context) -> bool {
    let planned = |force| {
        let what = act.to_owned();
        plan(
            home,
            &Request { what, force },
            &[],
            &Leases::default(),
            context,
        )
    };
    planned(false).is_err() && planned(true).is_ok()
}

fn open(home: &Home) -> Result<Dir> {
    Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))
}

/// Everything that an act has done and that still stands.
fn whole(home: &Home, root: &Dir, act: Act, stop: &Stop) -> Result<Plan> {
    if !act.noted {
        return Err(Error::failed("has no note that can be read:")
            .at(act.folder())
            .hint("what lies in it can be moved back by hand"));
    }
    refuse_what_no_command_wrote(&act)?;
    let held = act
        .holds(root)
        .into_iter()
        .map(|(was, _)| back(was, &was.lies));
    let mut plan = Plan {
        back: held.collect(),
        act: act.name.clone(),
        away: Vec::new(),
        modes: Vec::new(),
        sessions: Vec::new(),
        left: gone(home, root, &act, &|_| true, stop)?,
        folders: Vec::new(),
        former: act.note.entries.clone(),
    };
    for added in act.note.added.iter().rev() {
        match (mend::look(root, &added.path)?, &added.mark) {
            (None, _) => {}
            (Some(_), None) => plan.folders.push(added.path.0.clone()),
            (Some(_), Some(_)) => plan.away.push(added.path.clone()),
        }
    }
    for change in &act.note.modes {
        let meta = mend::look(root, &change.path)?;
        if meta.is_some_and(|meta| meta.mode == change.now) {
            plan.modes.push(ModeBack {
                path: change.path.clone(),
                mode: change.mode,
                now: change.now,
            });
        }
    }
    Ok(plan)
}

fn back(was: &Was, lies: &Path) -> Back {
    Back {
        path: was.path.clone().into(),
        replaces: false,
        lies: lies.to_path_buf(),
        present: None,
    }
}

/// A session, or something in one.
fn one(home: &Home, root: &Dir, what: &str, stop: &Stop) -> Result<Plan> {
    let (query, rel) = split(what)?;
    let acts = trash::acts(home)?;
    let id = meant(home, root, &acts, query, rel.is_empty())?;
    let session = Path::new("sessions").join(id.as_str());
    let wanted = match rel.is_empty() {
        true => vec![session, archive_of(&id)],
        false => vec![session.join(rel.as_path())],
    };
    // What was the home's own comes first, though a version of the relay was put away later.
    let (of_relay, own): (Vec<Act>, Vec<Act>) = acts.into_iter().partition(Act::is_of_relay);
    let found = own.into_iter().chain(of_relay).find_map(|act| {
        let places: Vec<(PathBuf, PathBuf)> = wanted
            .iter()
            .filter_map(|path| Some((path.clone(), act.place_of(root, path)?.1)))
            .collect();
        (!places.is_empty()).then_some((act, places))
    });
    let Some((act, places)) = found else {
        return Err(not_there(what));
    };
    refuse_what_no_command_wrote(&act)?;
    let concerned = |path: &Path| wanted.iter().any(|wanted| wanted == path);
    let left = gone(home, root, &act, &concerned, stop)?;
    let former = act.note.entries.iter().filter(|f| f.id == id.as_str());
    let mut former: Vec<Former> = former.cloned().collect();
    if former.is_empty() && rel.is_empty() {
        former.push(Former {
            id: id.to_string(),
            status: Some(Status::Active.as_str().to_owned()),
        });
    }
    let back = places.into_iter().map(|(path, lies)| Back {
        path: path.into(),
        replaces: false,
        lies,
        present: None,
    });
    Ok(Plan {
        back: back.collect(),
        act: act.name,
        away: Vec::new(),
        modes: Vec::new(),
        sessions: Vec::new(),
        left,
        folders: Vec::new(),
        former: match rel.is_empty() {
            true => former,
            false => Vec::new(),
        },
    })
}

fn archive_of(id: &SessionId) -> PathBuf {
    Path::new("archive").join(format!("{id}.tar.zst"))
}

fn not_there(what: &str) -> Error {
    Error::failed(format!("the trash does not hold `{}`", human::escape(what)))
        .hint("`wbhome restore --from trash` lists what it holds")
}

/// The session that is meant: first among those of which the trash holds something.
fn meant(home: &Home, root: &Dir, acts: &[Act], query: &str, all: bool) -> Result<SessionId> {
    let mut held = BTreeSet::new();
    for act in acts {
        for (was, _) in act.holds(root) {
            held.extend(session_of(&was.path, all));
        }
    }
    let known = candidates(home, query.starts_with('@'))?;
    if query.starts_with('@') {
        return resolve(query, &known);
    }
    let of_trash: Vec<Candidate> = held
        .into_iter()
        .map(|id| Candidate {
            id,
            status: Status::Active,
            activity: None,
        })
        .collect();
    match resolve(query, &of_trash) {
        Ok(id) => Ok(id),
        Err(error) if of_trash.iter().any(|c| c.id.as_str().contains(query)) => Err(error),
        Err(_) => match resolve(query, &known) {
            Ok(id) => Ok(id),
            Err(_) => Err(not_there(query)),
        },
    }
}

/// The session that a path lies in; with `all`, only where it is the whole of it.
fn session_of(path: &Path, all: bool) -> Option<SessionId> {
    let mut names = path.iter();
    let (room, name) = (names.next()?, names.next()?);
    let rest = names.next();
    if room == "archive" {
        return SessionId::adopt(name.to_str()?.strip_suffix(".tar.zst")?).ok();
    }
    match room == "sessions" && (rest.is_none() || !all) {
        true => SessionId::of_folder(name),
        false => None,
    }
}

/// Takes it back.
///
/// # Errors
/// When nothing can be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    let root = open(home)?;
    let kept = match note(&root, &plan, context)? {
        Some(note) => Some(trash::open(home, note, context)?),
        None => None,
    };
    let steps = steps(&root, &plan, kept.as_deref())?;
    let pending = journal::begin(home, "restore", steps, context)?;
    let completed = pending.complete_telling(home, context)?;
    refresh_cache(home, context)?;
    let act = trash::act(home, &plan.act);
    let still = |lies: &Path| {
        act.as_ref()
            .is_some_and(|act| act.look(&root, lies).is_some())
    };
    let mut done = plan;
    done.left
        .extend(completed.left.iter().map(|left| left.to_string()));
    done.back.retain(|back| !still(&back.lies));
    done.away
        .retain(|path| mend::look(&root, path).is_ok_and(|found| found.is_none()));
    let mode = |path: &Path| mend::look(&root, path).ok().flatten().map(|meta| meta.mode);
    done.modes
        .retain(|change| mode(&change.path) == Some(change.mode));
    let index = Index::read(home).unwrap_or_default();
    let removed = |id: &String| {
        let entry = index.find(id);
        entry.is_some_and(|entry| entry.status() == Status::Removed)
    };
    done.sessions.retain(|id| !removed(id));
    Ok(Outcome {
        kept: kept.filter(|kept| trash::act(home, kept).is_some()),
        done,
    })
}

impl Plan {
    /// Whether the index that comes back can be understood.
    fn index_parses(&self, root: &Dir) -> bool {
        let folder = Path::new(trash::TRASH).join(&self.act);
        let index = self
            .back
            .iter()
            .find(|back| *back.path == *Path::new(INDEX));
        index.is_some_and(|back| {
            let dir = root.open_beneath(&folder.join(back.lies.parent().unwrap_or(Path::new(""))));
            let name = back.lies.file_name().unwrap_or_default();
            let content = dir.and_then(|dir| disk::read_small_in(&dir, name, u64::MAX));
            content.is_ok_and(|content| IndexFile::parses(&content.unwrap_or_default()))
        })
    }
}

/// The note on what is replaced or goes.
fn note(root: &Dir, plan: &Plan, context: &Context) -> Result<Option<Note>> {
    let mut was = Vec::new();
    for back in plan.back.iter().filter(|back| back.replaces) {
        let kept = Path::new(trash::TRASH).join(&plan.act).join(&back.lies);
        let mark = mend::mark(root, &kept, context.stop)?;
        was.push(Was::new(back.path.0.clone()).replaced_by(mark));
    }
    was.extend(plan.away.iter().map(|path| Was::new(path.0.clone())));
    Ok((!was.is_empty()).then(|| Note {
        why: format!("took back the act {}", plan.act),
        at: context.clock.now().to_string(),
        command: Some("restore".to_owned()),
        was,
        ..Note::default()
    }))
}

fn steps(root: &Dir, plan: &Plan, kept: Option<&str>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let put_away = |path: &Path| -> Result<Option<Mend>> {
        let (Some(kept), Some(meta)) = (kept, mend::look(root, path)?) else {
            return Ok(None);
        };
        Ok(Some(Mend::PutAway {
            path: path.to_path_buf().into(),
            act: kept.to_owned(),
            lies: Was::new(path).lies.into(),
            seen: Seen::of(&meta),
            held_by: None,
        }))
    };
    for path in &plan.away {
        steps.extend(put_away(path)?);
    }
    for path in plan.folders.iter().cloned() {
        steps.push(Mend::Prune { path: path.into() });
    }
    for back in &plan.back {
        let (act, lies) = (plan.act.clone(), ExactPath(back.lies.clone()));
        if *back.path == *Path::new(INDEX) && back.replaces {
            let keep = kept.unwrap_or_default().to_owned();
            let seen = back.present.clone();
            steps.push(Mend::IndexBack {
                act,
                lies,
                keep,
                seen,
            });
            continue;
        }
        if back.replaces {
            steps.extend(put_away(&back.path)?);
        }
        let path = back.path.0.clone().into();
        steps.push(Mend::BringBack { act, lies, path });
    }
    for mode in &plan.modes {
        steps.push(Mend::Mode {
            path: mode.path.0.clone().into(),
            before: mode.now,
            after: mode.mode,
        });
    }
    let entries = plan.former.clone();
    let ids: Vec<String> = entries.iter().map(|former| former.id.clone()).collect();
    let index_comes_back = plan.back.iter().any(|back| *back.path == *Path::new(INDEX));
    let views = match index_comes_back {
        // A broken one names no views; they are set when it has been mended.
        true => plan.index_parses(root).then_some(Step::Views { ids: None }),
        false if ids.is_empty() => None,
        false => Some(Step::Views { ids: Some(ids) }),
    };
    let mut steps: Vec<Step> = steps.into_iter().map(|step| Step::Mend { step }).collect();
    if !entries.is_empty() && (views.is_some() || !index_comes_back) {
        let step = Mend::Return { entries };
        steps.push(Step::Mend { step });
    }
    steps.extend(views);
    for act in kept.into_iter().chain([plan.act.as_str()]) {
        let act = act.to_owned();
        steps.push(Step::Mend {
            step: Mend::Close { act },
        });
    }
    Ok(steps)
}
