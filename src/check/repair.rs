//! `wbhome check --repair`: what can not lose anything, and nothing more.
//!
//! [`plan`] goes through the findings and decides; each decision carries the facts that it rests on. [`apply`]
//! does all of it as one act, which `wbhome restore` takes back as one. Right before a copy goes into the
//! trash it is compared once more, so nothing goes of which not every byte is still there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::conflict::Relation;
use super::finding::session_of;
use super::{Finding, FindingKind, Outcome as Looked};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Kind, Result};
use crate::disk::Dir;
use crate::home::journal;
use crate::home::mend::{self, INDEX, Seen};
use crate::home::trash::{self, Mark, Was};
use crate::home::{
    Entry, Home, Index, IndexFile, Leases, LockedHome, SessionId, Status, identity_of,
};
use crate::state::{Agent, AtWork};

mod copies;
mod fill;
mod links;
mod steps;

/// What is asked for, and what the caller knows.
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// Files that only the second version of a session has are copied into the session.
    pub fill: bool,
    /// Where the home was moved from.
    pub moved: Vec<Moved>,
    /// The agents that the application names.
    pub agents: &'a [Agent],
    /// Who holds which session: what another device holds is left.
    pub leases: Leases,
    /// The caller will change the index: the present one is kept.
    pub keep_index: bool,
    /// The caller could read the index: when it can not be written all the same, that is to be told.
    pub index_parses: bool,
}

/// A folder that has moved into the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where it was.
    pub old: PathBuf,
    /// Where it is, below the home; empty for the home itself.
    pub within: PathBuf,
}

/// What kind of repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A second version went into the trash.
    PutAway,
    /// A file was copied from the second version of a session.
    Filled,
    /// A link was pointed into the home.
    Pointed,
    /// A mode was tightened.
    Tightened,
}

/// Something that is put right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// How.
    pub what: What,
    /// Where, below the home; empty for the home itself.
    #[serde(flatten)]
    pub path: WirePath,
    /// Of a second version, its original; of a file that was filled in, where it came from.
    pub of: Option<WirePath>,
    /// How a second version relates to its original.
    pub relation: Option<Relation>,
    /// What was the case, for a person.
    pub detail: String,
}

/// Something that is for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Where, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// What stands beside it.
    pub of: Option<WirePath>,
    /// Why it was left, for a person.
    pub why: String,
    /// Whether it could not be done, or not even be looked at; the rest is for a person to decide.
    pub failed: bool,
}

/// What would be put right.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// What is put right, in the order in which it is done.
    pub mended: Vec<Mended>,
    /// What is left for a person.
    pub left: Vec<Left>,
    #[serde(skip)]
    items: Vec<Item>,
    #[serde(skip)]
    keep_index: bool,
}

/// What was put right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The act of the trash that takes it back; none when there was nothing to do.
    pub act: Option<String>,
    /// What was put right.
    pub mended: Vec<Mended>,
    /// What is left for a person.
    pub left: Vec<Left>,
}

/// A repair, with all that it rests on.
#[derive(Debug)]
struct Item {
    path: PathBuf,
    action: Action,
    /// What a person is told of it; nothing of a folder that is made for what is copied into it.
    told: Option<Mended>,
}

impl Item {
    /// What goes into the trash.
    fn goes(&self) -> Option<&Path> {
        matches!(self.action, Action::PutAway { .. }).then_some(&self.path)
    }
}

#[derive(Debug)]
enum Action {
    PutAway {
        seen: Seen,
        held_by: PathBuf,
        /// Its entry in the index, when it is the second version of a whole session.
        entry: Option<Entry>,
    },
    Copy {
        from: PathBuf,
        seen: Seen,
        mark: Option<Mark>,
    },
    Folder {
        like: PathBuf,
    },
    Mode {
        before: u32,
        after: u32,
    },
    Point {
        seen: Seen,
        target: PathBuf,
    },
}

/// Deciding: what is looked at, and what has been decided so far.
struct Deciding<'a> {
    home: &'a Home,
    root: &'a Dir,
    request: &'a Request<'a>,
    context: &'a Context<'a>,
    at_work: AtWork<'a>,
    /// Or why it can not be written.
    index: Result<Index, String>,
    /// What is a second version of something that is there.
    second_versions: BTreeSet<PathBuf>,
    items: Vec<Item>,
    left: Vec<Left>,
    /// Files that will be copied: from the new path to where they come from.
    coming: HashMap<PathBuf, PathBuf>,
}

/// What can be put right of what was found.
///
/// # Errors
/// When the home can not be read, and interruption.
pub fn plan(home: &Home, looked: &Looked, request: &Request, context: &Context) -> Result<Plan> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let mut deciding = Deciding {
        home,
        root: &root,
        request,
        context,
        at_work: AtWork::look(home.root(), request.agents),
        index: IndexFile::ready(home).map_err(|error| error.to_string()),
        second_versions: looked
            .findings
            .iter()
            .filter(|finding| finding.of.is_some())
            .map(|finding| finding.path.clone())
            .collect(),
        items: Vec::new(),
        left: Vec::new(),
        coming: HashMap::new(),
    };
    if let (Err(why), true) = (&deciding.index, request.index_parses) {
        let why = why.clone();
        deciding.fail(Path::new(INDEX), None, why);
    }
    for finding in &looked.findings {
        context.stop.check()?;
        deciding.decide(finding)?;
    }
    deciding.keep_those_that_have_copies(&looked.findings);
    let Deciding {
        mut items,
        mut left,
        ..
    } = deciding;
    in_order(&mut items);
    left.sort_by_key(|left| !left.failed);
    Ok(Plan {
        mended: items.iter().filter_map(|item| item.told.clone()).collect(),
        left,
        items,
        keep_index: request.keep_index,
    })
}

/// What is copied comes before what is put away; of second versions of second versions, the outer ones first.
fn in_order(items: &mut [Item]) {
    let held: BTreeMap<PathBuf, PathBuf> = items
        .iter()
        .filter_map(|item| match &item.action {
            Action::PutAway { held_by, .. } => Some((item.path.clone(), held_by.clone())),
            _ => None,
        })
        .collect();
    // Names only become shorter on the way to the original, so the way ends.
    let depth =
        |path: &Path| std::iter::successors(held.get(path), |original| held.get(*original)).count();
    items.sort_by_key(|item| match item.action {
        Action::PutAway { .. } => (1, usize::MAX - depth(&item.path)),
        _ => (0, 0),
    });
}

impl Deciding<'_> {
    /// One that can not be looked at holds up none of the others.
    fn decide(&mut self, finding: &Finding) -> Result<()> {
        use FindingKind::{ConflictCopy, ConflictDir, DanglingLink, OpenToOthers, OutsideLink};
        let before = self.items.len();
        let decided = match finding.kind {
            ConflictCopy | ConflictDir | DanglingLink | OutsideLink | OpenToOthers
                if self.is_elsewhere(finding) =>
            {
                Ok(())
            }
            ConflictCopy | ConflictDir => self.copy(finding),
            DanglingLink | OutsideLink => self.link(finding),
            OpenToOthers => self.mode(finding),
            _ => Ok(()),
        };
        match decided {
            Err(error) if error.kind() != Kind::Interrupted => {
                for item in self.items.drain(before..) {
                    self.coming.remove(&item.path);
                }
                self.fail(&finding.path, finding.of.as_deref(), error.to_string());
                Ok(())
            }
            decided => decided,
        }
    }

    /// Leaves what is in a session that another device holds, and in the second version of one.
    fn is_elsewhere(&mut self, finding: &Finding) -> bool {
        let paths = [Some(&finding.path), finding.of.as_ref()];
        let mut sessions = paths
            .into_iter()
            .flatten()
            .filter_map(|path| session_of(path));
        let who = sessions.find_map(|id| self.request.leases.elsewhere(id));
        if let Some(who) = &who {
            let why = format!("is read-only here: {who}");
            self.leave(&finding.path, finding.of.as_deref(), why);
        }
        who.is_some()
    }

    /// A second version that has a second version itself stays as long as that does: the next run would take that
    /// for one of the original, and go on where this one has stopped.
    fn keep_those_that_have_copies(&mut self, findings: &[Finding]) {
        loop {
            let goes: BTreeSet<&Path> = self.items.iter().filter_map(Item::goes).collect();
            let stays = findings.iter().find_map(|finding| {
                let of = finding.of.as_deref()?;
                let copy = goes.contains(of) && !goes.contains(finding.path.as_path());
                copy.then(|| (of.to_path_buf(), finding.path.clone()))
            });
            let Some((stays, copy)) = stays else { return };
            self.items.retain(|item| item.goes() != Some(&stays));
            let why = "has a second version itself, which has to be looked at first";
            self.leave(&stays, Some(&copy), why);
        }
    }

    fn leave(&mut self, path: &Path, of: Option<&Path>, why: impl Into<String>) {
        self.push(path, of, why.into(), false);
    }

    /// Leaves something because it could not be looked at.
    fn fail(&mut self, path: &Path, of: Option<&Path>, why: impl Into<String>) {
        self.push(path, of, why.into(), true);
    }

    fn push(&mut self, path: &Path, of: Option<&Path>, why: String, failed: bool) {
        self.left.push(Left {
            path: path.to_path_buf().into(),
            of: of.map(|of| of.to_path_buf().into()),
            why,
            failed,
        });
    }

    /// Who works with this or in its session, if anybody does.
    fn busy(&self, path: &Path) -> Option<String> {
        let session = session_of(path);
        session
            .and_then(|id| {
                let session = SessionId::of_folder(id.as_ref());
                let identity = session
                    .and_then(|session| identity_of(self.home, self.index.as_ref().ok(), &session));
                let folder = self.home.sessions().join(id);
                self.at_work.agent_in_session(&folder, identity.as_deref())
            })
            .or_else(|| self.at_work.writer_of(&self.home.root().join(path)))
    }

    fn mode(&mut self, finding: &Finding) -> Result<()> {
        let path = &finding.path;
        let Some(meta) = mend::look(self.root, path)? else {
            return Ok(());
        };
        let (before, after) = (meta.mode, meta.mode & !0o077);
        self.items.push(Item {
            path: path.clone(),
            action: Action::Mode { before, after },
            told: Some(Mended {
                what: What::Tightened,
                path: path.clone().into(),
                of: None,
                relation: None,
                detail: format!("mode {before:04o} → {after:04o}"),
            }),
        });
        Ok(())
    }
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.keep_index
    }
}

/// Puts it right. The caller, who may change the index afterwards, calls [`settle_index`] when that is done.
///
/// # Errors
/// When nothing can be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    if plan.is_empty() {
        return Ok(Outcome {
            left: plan.left,
            ..Outcome::default()
        });
    }
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let at = context.clock.now().to_string();
    let note = plan.note(IndexFile::ready(home).ok().as_ref(), at.clone());
    let keeps_index = note.was.iter().any(|was| was.path == Path::new(INDEX));
    let act = trash::open(home, note, context)?;
    let steps = plan.steps(&act, keeps_index, at);
    let pending = journal::begin(home, "check --repair", steps, context)?;
    let completed = pending.complete_telling(home, context)?;
    let Plan {
        items, mut left, ..
    } = plan;
    let held = trash::act(home, &act);
    let kept = |path: &Path| {
        let lies = Was::new(path).lies;
        held.as_ref()
            .is_some_and(|act| act.look(&root, &lies).is_some())
    };
    let mut mended = Vec::new();
    for item in items {
        let there = mend::look(&root, &item.path)?;
        let done = match &item.action {
            Action::PutAway { .. } | Action::Point { .. } => kept(&item.path),
            Action::Copy { .. } | Action::Folder { .. } => there.is_some(),
            Action::Mode { after, .. } => there.is_some_and(|meta| meta.mode == *after),
        };
        match item.told {
            Some(told) if done => mended.push(told),
            Some(undone) => left.push(Left {
                why: why_left(&completed.left, &undone.path),
                path: undone.path,
                of: undone.of,
                failed: true,
            }),
            None => {}
        }
    }
    left.sort_by_key(|left| !left.failed);
    Ok(Outcome {
        act: held.map(|act| act.name),
        mended,
        left,
    })
}

/// What a step has said of what it did not do.
fn why_left(left: &[mend::Left], path: &Path) -> String {
    match left.iter().find(|left| left.path == path) {
        Some(left) => left.why.clone(),
        None => "it has changed meanwhile".to_owned(),
    }
}

/// Says in the act what the index has become, so that it can be taken back as long as nobody has changed it
/// since; a former index that is the present one is not kept. Whether the act is still there.
///
/// # Errors
/// When it can not be read or written.
pub fn settle_index(home: &LockedHome, act: &str, context: &Context) -> Result<bool> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let kept = Path::new(trash::TRASH).join(act).join(INDEX);
    let former = mend::mark(&root, &kept, context.stop)?;
    let present = mend::mark(&root, Path::new(INDEX), context.stop)?;
    match (former, present) {
        (Some(former), Some(present)) if former == present => {
            crate::disk::remove_file(&home.root().join(kept))?;
            trash::close(home, act)?;
        }
        (Some(_), Some(present)) => trash::mark(home, act, Path::new(INDEX), &present)?,
        _ => {}
    }
    Ok(trash::act(home, act).is_some())
}

/// The entry of a second version of a whole session.
fn entry_of(index: Option<&Index>, path: &Path) -> Option<Entry> {
    let mut names = path.iter();
    let (room, name, rest) = (names.next()?, names.next()?, names.next());
    if room != "sessions" || rest.is_some() {
        return None;
    }
    let id = SessionId::of_folder(name)?;
    let entry = index?.find(id.as_str())?;
    (entry.status() != Status::Removed).then(|| entry.clone())
}
