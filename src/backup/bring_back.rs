//! `wbhome restore SESSION[/PATH] --from backup`, and `--from archive`: one session, or something in it, out of a pack.
//!
//! It is unpacked and compared first, into an act of the trash; then what is there makes way into that act, and what came
//! takes its place, by journaled steps: a kill leaves the one or the other. What is newer than the pack makes way only
//! with `force`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::source::Source;
use super::{Form, Item, Place, Standing, Store};
use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Context, Error, Result, Stop, human};
use crate::disk::{self, Dir, FileKind, Meta, Stamp};
use crate::home::{
    Candidate, Home, Index, Leases, RelPath, SessionId, Status, candidates, identity_of, matching,
    mend, resolve, split,
};
use crate::pack::{self, ENDING, Member, MemberKind, Pack};
use crate::state::{Agent, AtWork};

mod apply;

use apply::BUILT;
pub use apply::{apply, apply_elsewhere};

/// Where it comes from.
#[derive(Clone, Debug)]
pub enum From {
    /// A cold store, as of a moment.
    Store {
        /// The store.
        store: PathBuf,
        /// The newest snapshot if none.
        at: Option<Timestamp>,
    },
    /// The session's own archive.
    Archive,
}

/// What is to come back.
#[derive(Clone, Debug)]
pub struct Request {
    /// `SESSION` or `SESSION/PATH`.
    pub what: String,
    /// From where.
    pub from: From,
    /// Into this folder, which is new or empty, in the place of the home.
    pub to: Option<PathBuf>,
    /// Also over what is newer.
    pub force: bool,
}

/// What would come back.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The session.
    pub session: SessionId,
    /// What in it, if not the whole.
    pub within: Option<String>,
    /// What it was called then, where that differs.
    pub was: Option<String>,
    /// The store; none when it comes from the session's archive.
    pub store: Option<ExactPath>,
    /// The snapshot, if it comes from a store.
    pub snapshot: Option<Timestamp>,
    /// When the pack was made that comes first.
    pub at: Timestamp,
    /// Whether it is the archive itself that comes back.
    pub as_archive: bool,
    /// Where to: below the home, or the whole path.
    pub to: ExactPath,
    /// Whether it takes the place of something, which goes into the trash.
    pub replaces: bool,
    /// What there is newer than the pack, or not in it: with `force` it goes into the trash.
    pub newer: Vec<WirePath>,
    /// Snapshots that could not be read.
    pub skipped: Vec<String>,
    #[serde(skip)]
    rel: RelPath,
    #[serde(skip)]
    item: Option<Item>,
}

/// What came back.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What was done of the plan.
    #[serde(flatten)]
    pub done: Plan,
    /// When the pack was made that it came from.
    pub from: Timestamp,
    /// Files that came.
    pub files: u64,
    /// And their bytes.
    pub bytes: u64,
    /// Packs that were of no use.
    pub not_used: Vec<Useless>,
    /// Newer packs, which are partial: below the store.
    pub partial: Vec<String>,
    /// What of it is not there.
    pub missing: Vec<Gap>,
    /// The act of the trash that holds what was replaced.
    pub kept: Option<String>,
    /// What was left and why, a line each.
    pub left: Vec<String>,
}

/// A pack that was of no use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Useless {
    /// The pack, below the store.
    pub file: String,
    /// When it was made.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// Something that did not come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Which, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

impl Outcome {
    /// Whether all of it is back, as the newest pack has it.
    pub fn is_complete(&self) -> bool {
        self.not_used.is_empty()
            && self.partial.is_empty()
            && self.missing.is_empty()
            && self.left.is_empty()
    }
}

/// What bringing it back would do.
///
/// # Errors
/// A session, snapshot or store that is not known; somebody at work; a session that another device holds; what is newer,
/// without `force`.
pub fn plan(
    home: &Home,
    request: &Request,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Plan> {
    let store = opened(request)?;
    let source = source(store.as_ref(), request, context)?;
    let (query, rel) = split(&request.what)?;
    let session = meant(home, source.as_ref(), query)?;
    let mut plan = Plan {
        within: (!rel.is_empty()).then(|| rel.as_path().to_string_lossy().into_owned()),
        was: None,
        store: None,
        snapshot: None,
        at: Timestamp::UNIX_EPOCH,
        as_archive: false,
        to: PathBuf::new().into(),
        replaces: false,
        newer: Vec::new(),
        skipped: Vec::new(),
        item: None,
        rel,
        session,
    };
    let members = match &source {
        Some(source) => from_store(home, source, &mut plan, context)?,
        None => from_archive(home, &mut plan, context)?,
    };
    if let Some(to) = &request.to {
        refuse_full(to)?;
        refuse_inside(to, home.root(), "the home")?;
        if let Some(store) = &store {
            refuse_inside(to, store.path(), "the store")?;
        }
        plan.to = disk::real_path(to)?.join(plan.own_name()).into();
        plan.as_archive &= plan.rel.is_empty();
        return Ok(plan);
    }
    leases.refuse(&plan.session)?;
    let folder = disk::exists(&home.session(&plan.session));
    let archived = disk::exists(&home.archive_of(&plan.session));
    // Where there is a folder, it is the folder that comes back.
    plan.as_archive &= plan.rel.is_empty() && !folder;
    plan.to = plan.place().into();
    refuse_archived(
        &plan,
        source.is_some() && !folder && archived && !plan.as_archive,
        request,
    )?;
    at_work(home, &plan, agents)?;
    let root = home.dir()?;
    plan.replaces = mend::look(&root, &plan.to)?.is_some();
    if plan.replaces {
        plan.newer = match (plan.as_archive, members) {
            (true, _) => newer_archive(&root, &plan)?,
            (false, Some(members)) => newer(&root, &plan, &members, context.stop)?,
            // Told once it is unpacked.
            (false, None) => Vec::new(),
        };
        refuse_newer(&plan, request)?;
    }
    Ok(plan)
}

impl Plan {
    /// Where it belongs in the home.
    fn place(&self) -> PathBuf {
        match self.as_archive {
            true => Path::new("archive").join(format!("{}{ENDING}", self.session)),
            false => {
                let session = Path::new("sessions").join(self.session.as_str());
                match self.rel.is_empty() {
                    true => session,
                    false => session.join(self.rel.as_path()),
                }
            }
        }
    }

    /// The name of what comes.
    fn own_name(&self) -> OsString {
        match (self.as_archive, self.rel.as_path().file_name()) {
            (_, Some(name)) => name.to_owned(),
            (true, None) => format!("{}{ENDING}", self.session).into(),
            (false, None) => self.session.as_str().into(),
        }
    }
}

fn opened(request: &Request) -> Result<Option<Store>> {
    match &request.from {
        From::Store { store, .. } => Store::open_to_read(store).map(Some),
        From::Archive => Ok(None),
    }
}

fn source<'s>(
    store: Option<&'s Store>,
    request: &Request,
    context: &Context,
) -> Result<Option<Source<'s>>> {
    match (store, &request.from) {
        (Some(store), From::Store { at, .. }) => Source::of(store, *at, context).map(Some),
        _ => Ok(None),
    }
}

/// The session that a person means: one that the home knows, or else one that the snapshot names.
fn meant(home: &Home, source: Option<&Source>, query: &str) -> Result<SessionId> {
    let known = candidates(home, query.starts_with('@'))?;
    if let Some(id) = matching(query, &known)? {
        return Ok(id);
    }
    let items = source
        .into_iter()
        .flat_map(|source| &source.snapshot().items);
    let kept: Vec<Candidate> = items
        .filter_map(|item| match &item.place {
            Place::Session(id) => Some(Candidate {
                id: id.clone(),
                status: match item.standing {
                    Standing::Removed => Status::Removed,
                    _ => Status::Active,
                },
                activity: None,
            }),
            _ => None,
        })
        .collect();
    match matching(query, &kept)? {
        Some(id) => Ok(id),
        None => resolve(query, &known),
    }
}

/// Finds the session in the snapshot. The members of the pack that comes first, as far as it can be read.
fn from_store(
    home: &Home,
    source: &Source,
    plan: &mut Plan,
    context: &Context,
) -> Result<Option<Vec<Member>>> {
    let snapshot = source.snapshot();
    let index = Index::read(home).ok();
    let own = identity_of(home, index.as_ref(), &plan.session);
    let item = snapshot
        .item(&Place::Session(plan.session.clone()))
        .or_else(|| {
            let own = own.as_ref()?;
            let is_it = |item: &&Item| item.session_id.as_ref() == Some(own);
            snapshot.items.iter().find(is_it)
        });
    let Some(item) = item else {
        return Err(Error::failed(format!(
            "the snapshot of {} does not have {}",
            snapshot.at,
            human::name(plan.session.as_str())
        ))
        .at(source.store().path())
        .hint(
            "`wbhome backup ls SESSION` lists the packs of a session; --at WHEN names a moment",
        ));
    };
    let first = Source::newest(item).into_iter().next();
    let first = first.unwrap_or_else(|| item.newest.clone());
    plan.store = Some(source.store().path().to_path_buf().into());
    plan.snapshot = Some(snapshot.at);
    plan.skipped = source.skipped();
    plan.at = first.at;
    plan.was = Some(item.place.top().to_owned()).filter(|was| was != plan.session.as_str());
    plan.as_archive = first.form == Form::Archive;
    plan.item = Some(item.clone());
    let opened = source.store().pack(&first);
    Ok(opened.and_then(|opened| pack::list(&opened, context)).ok())
}

fn from_archive(home: &Home, plan: &mut Plan, context: &Context) -> Result<Option<Vec<Member>>> {
    let path = home.archive_of(&plan.session);
    if !disk::exists(&path) {
        return Err(Error::failed(format!(
            "{} has no archive",
            human::name(plan.session.as_str())
        ))
        .hint("--from backup takes it from a cold store"));
    }
    let opened = Pack::open(&path)?;
    plan.at = made(&opened);
    pack::list(&opened, context).map(Some)
}

/// When a pack was made: as it says, or as its file says.
fn made(opened: &Pack) -> Timestamp {
    match opened.manifest() {
        Some(manifest) => manifest.created_at,
        None => opened.meta().mtime.timestamp(),
    }
}

fn refuse_full(to: &Path) -> Result<()> {
    match disk::stat(to)? {
        None => Ok(()),
        Some(meta) if meta.kind == FileKind::Folder => {
            match disk::read_dir_names(to)?
                .iter()
                .all(|(name, _)| name == BUILT)
            {
                true => Ok(()),
                false => Err(Error::failed("the folder is not empty:")
                    .at(to)
                    .hint("--to names a folder that is new or empty")),
            }
        }
        Some(meta) => {
            Err(Error::failed(format!("there is {} already:", meta.kind.described())).at(to))
        }
    }
}

fn refuse_inside(to: &Path, outer: &Path, what: &str) -> Result<()> {
    match disk::is_inside(to, outer) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::failed(format!("the folder lies inside {what}:"))
            .at(to)
            .hint("--to names a folder outside of it; without --to it comes back into its place in the home")),
        Err(error) => Err(Error::io("can not look at", to, error)),
    }
}

fn refuse_archived(plan: &Plan, archived: bool, request: &Request) -> Result<()> {
    match archived && !request.force {
        false => Ok(()),
        true => Err(Error::failed(format!(
            "`{}` is archived, and the archive holds all of it",
            human::name(plan.session.as_str())
        ))
        .hint("`wbhome unarchive` brings it back from there")
        .hint("--force puts what the store has into sessions/ all the same, beside the archive; --to DIR elsewhere")),
    }
}

fn at_work(home: &Home, plan: &Plan, agents: &[Agent]) -> Result<()> {
    let at_work = AtWork::look(home.root(), agents);
    let index = Index::read(home).ok();
    let identity = identity_of(home, index.as_ref(), &plan.session);
    let folder = home.session(&plan.session);
    let who = at_work
        .agent_in_session(&folder, identity.as_deref())
        .or_else(|| at_work.writer_of(&home.root().join(&*plan.to)));
    match who {
        None => Ok(()),
        Some(who) => Err(Error::failed(format!(
            "{} can not be changed: {who}",
            human::name(plan.session.as_str())
        ))
        .hint("end its session first, or name a folder with --to; nothing was changed")),
    }
}

/// What is there in the home that is newer than the pack, or that the pack does not have.
fn newer(root: &Dir, plan: &Plan, members: &[Member], stop: &Stop) -> Result<Vec<WirePath>> {
    let known: HashMap<&Path, &Member> = members.iter().map(|m| (&*m.path, m)).collect();
    let made = Stamp::from(plan.at);
    let mut newer = Vec::new();
    let mut look = |rel: PathBuf, meta: &Meta| {
        let member = known.get(&*rel);
        let is_folder = meta.kind == FileKind::Folder;
        // What was written since, and given an old time again.
        let edited = member.is_some_and(|member| {
            let as_packed = member.size == meta.size && member.mtime == meta.mtime;
            member.kind == MemberKind::File && meta.ctime > made && !as_packed
        });
        // That something has come or gone in a folder is told by what has come, and by nothing that has gone.
        if !is_folder && (member.is_none() || meta.mtime > made || edited) {
            newer.push(WirePath(rel));
        }
    };
    let there = mend::look(root, &plan.to)?;
    let Some(there) = there else {
        return Ok(newer);
    };
    let rel = plan.rel.as_path();
    if there.kind != FileKind::Folder {
        look(rel.to_path_buf(), &there);
        return Ok(newer);
    }
    let dir = root
        .open_beneath(&plan.to)
        .map_err(|e| Error::io("can not open the folder", &*plan.to, e))?;
    let tree = disk::walk(&dir, &|_, _| false, stop)?;
    for (path, entry) in tree.entries() {
        look(rel.join(path), &entry.meta);
    }
    Ok(newer)
}

/// An archive that is there is newer when it was made after the pack.
fn newer_archive(root: &Dir, plan: &Plan) -> Result<Vec<WirePath>> {
    let there = mend::look(root, &plan.to)?;
    let newer = there.is_some_and(|there| there.mtime.timestamp() > plan.at);
    Ok(match newer {
        true => vec![WirePath(plan.to.0.clone())],
        false => Vec::new(),
    })
}

/// So many are named.
const NAMED: usize = 10;

fn refuse_newer(plan: &Plan, request: &Request) -> Result<()> {
    if plan.newer.is_empty() || request.force {
        return Ok(());
    }
    let mut error = Error::failed(format!(
        "{} newer than the pack of {}, or not in it, so nothing was changed",
        human::plural(plan.newer.len() as u64, "file is", "files are"),
        plan.at
    ));
    for path in plan.newer.iter().take(NAMED) {
        error = error.hint(human::path(path));
    }
    if plan.newer.len() > NAMED {
        error = error.hint(format!(
            "and {} more",
            human::count((plan.newer.len() - NAMED) as u64)
        ));
    }
    Err(error.hint("--force puts what is there into the trash; --to DIR brings it back elsewhere"))
}
