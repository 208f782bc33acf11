//! `wbhome restore SESSION[/PATH] --from backup`, and `--from archive`: one session, or something in it, out of a pack.
//!
//! It is unpacked and compared first, into an act of the trash; then what is there makes way into that act, and what came
//! takes its place, by journaled steps: a kill leaves the one or the other. What is newer than the pack makes way only
//! with `force`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::fetch::{self, Fetched, Missing, NotUsed};
use super::source::Source;
use super::{Form, Item, PackRef, Place, Standing, Store};
use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Context, Error, Result, Stop, failpoint, human};
use crate::disk::{self, Dir, FileKind, Meta, Stamp};
use crate::home::journal::{self, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Note, Was};
use crate::home::{
    Candidate, Entry, Home, Index, IndexFile, Leases, LockedHome, RelPath, SessionId, Status,
    candidates, identity_of, matching, resolve, split,
};
use crate::pack::{self, ENDING, Limits, Member, MemberKind, Pack};
use crate::state::{Agent, AtWork};

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
        error = error.hint(format!("and {} more", plan.newer.len() - NAMED));
    }
    Err(error.hint("--force puts what is there into the trash; --to DIR brings it back elsewhere"))
}

/// Where it is built, in an act or in a folder that a person named.
const BUILT: &str = ".wbhome-restoring";

/// What was built, ready to take its place.
struct Built {
    from: Timestamp,
    files: u64,
    bytes: u64,
    not_used: Vec<NotUsed>,
    newer: Vec<PackRef>,
    missing: Vec<Missing>,
    /// As the pack has the session's entry.
    entry: Option<Map<String, Value>>,
}

/// Builds it under [`Plan::own_name`] in a folder.
fn build(
    home: &Home,
    plan: &mut Plan,
    request: &Request,
    into: &Dir,
    context: &Context,
) -> Result<Built> {
    let whole = OsString::from(plan.session.as_str());
    let mut built = match &plan.item {
        Some(item) => {
            let item = item.clone();
            let store = opened(request)?;
            let source = source(store.as_ref(), request, context)?;
            let Some(source) = source else {
                return Err(Error::failed("the store is gone"));
            };
            let fetched = match plan.as_archive {
                true => fetch::archive(&source, &item, into, &plan.own_name(), context)?,
                false => fetch::folder(&source, &item, into, &whole, context)?,
            };
            of_store(fetched, &item, plan)?
        }
        None => {
            let opened = Pack::open(&home.archive_of(&plan.session))?;
            let unpacked = fetch::unpack_as(&opened, into, &whole, Limits::default(), context)?;
            let entry = opened
                .manifest()
                .and_then(|manifest| manifest.entry.clone());
            refuse_not_held(plan, &unpacked.members)?;
            let (files, bytes) = content(&unpacked.members, plan);
            Built {
                from: made(&opened),
                files,
                bytes,
                not_used: Vec::new(),
                newer: Vec::new(),
                missing: unpacked.missing,
                entry,
            }
        }
    };
    if !plan.rel.is_empty() {
        let rel = plan.rel.as_path().to_path_buf();
        built
            .missing
            .retain(|missing| missing.path.starts_with(&rel));
        take_out(plan, into, &whole)?;
    }
    disk::sync_filesystem(into)
        .map_err(|e| Error::io("can not write to the disk:", &*plan.to, e))?;
    Ok(built)
}

fn of_store(fetched: Fetched, item: &Item, plan: &mut Plan) -> Result<Built> {
    let Some(laid) = fetched.laid else {
        let mut error = Error::failed(format!(
            "nothing of any pack of {} can be proved good",
            human::name(plan.session.as_str())
        ));
        for not_used in fetched.not_used.iter().take(NAMED) {
            let file = human::name(&not_used.pack.file);
            error = error.hint(format!("{file}: {}", not_used.why));
        }
        return Err(error.hint("nothing was changed"));
    };
    if !plan.as_archive {
        refuse_not_held(plan, &laid.members)?;
    }
    plan.at = laid.pack.at;
    let (files, bytes) = match plan.as_archive {
        true => laid.content(),
        false => content(&laid.members, plan),
    };
    Ok(Built {
        from: laid.pack.at,
        files,
        bytes,
        not_used: fetched.not_used,
        newer: laid.newer,
        missing: laid.missing,
        entry: item.entry.clone(),
    })
}

/// Files of what was asked for, and their bytes.
fn content(members: &[Member], plan: &Plan) -> (u64, u64) {
    let rel = plan.rel.as_path();
    let wanted = members.iter().filter(|member| {
        member.kind != MemberKind::Folder && (plan.rel.is_empty() || member.path.starts_with(rel))
    });
    wanted.fold((0, 0), |(n, bytes), member| (n + 1, bytes + member.size))
}

fn refuse_not_held(plan: &Plan, members: &[Member]) -> Result<()> {
    let rel = plan.rel.as_path();
    match plan.rel.is_empty() || members.iter().any(|member| *member.path == *rel) {
        true => Ok(()),
        false => Err(Error::failed(format!(
            "the pack of {} does not hold {}",
            plan.at,
            human::path(rel)
        ))
        .hint("--at WHEN names another moment; nothing was changed")),
    }
}

/// Takes what was asked for out of the session that was unpacked; the rest of that goes.
fn take_out(plan: &Plan, into: &Dir, whole: &OsStr) -> Result<()> {
    let rel = plan.rel.as_path();
    let fail = |e| Error::io("can not take out", rel, e);
    let held = OsString::from(".whole");
    into.rename(whole, into, &held).map_err(fail)?;
    let parent = Path::new(&held).join(rel.parent().unwrap_or(Path::new("")));
    let parent: PathBuf = parent.components().collect();
    let from = into.open_beneath(&parent).map_err(fail)?;
    let name = rel.file_name().unwrap_or_default();
    from.set_mode(0o700).map_err(fail)?;
    from.rename(name, into, &plan.own_name()).map_err(fail)?;
    disk::remove_tree(into, &held).map_err(fail)
}

/// Brings it back into a folder that is none of the home's.
///
/// # Errors
/// What can not be written, and interruption: then the folder is as it was.
pub fn apply_elsewhere(
    home: &Home,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let to = plan.to.parent().unwrap_or(Path::new("/")).to_path_buf();
    let fail = |e| Error::io("can not write to", &to, e);
    disk::create_private_folder(&to)?;
    let dir = Dir::open(&to).map_err(fail)?;
    disk::remove_tree(&dir, OsStr::new(BUILT)).map_err(fail)?;
    let into = dir.make_beneath(Path::new(BUILT)).map_err(fail)?;
    let built = build(home, &mut plan, request, &into, context).and_then(|built| {
        let name = plan.own_name();
        into.rename(&name, &dir, &name)
            .and_then(|()| dir.sync())
            .map_err(fail)?;
        Ok(built)
    });
    disk::remove_tree(&dir, OsStr::new(BUILT)).map_err(fail)?;
    Ok(outcome(plan, built?, None, Vec::new()))
}

/// Brings it back.
///
/// # Errors
/// What can not be written, and interruption; what is newer than the pack that was whole, without `force`. Where nothing
/// was noted yet nothing has changed; else the next command goes on from there.
pub fn apply(
    home: &LockedHome,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let root = home.dir()?;
    let from = match plan.store {
        Some(_) => "a backup",
        None => "its archive",
    };
    let mut note = Note {
        why: format!(
            "{} came back from {from} of {}",
            human::name(plan.session.as_str()),
            plan.at
        ),
        at: context.clock.now().to_string(),
        command: Some("restore".to_owned()),
        ..Note::default()
    };
    if plan.replaces {
        note.was.push(Was::new(plan.to.0.clone()));
    }
    let act = trash::open(home, note, context)?;
    let folder = home.trash().join(&act).join(BUILT);
    let built = (|| {
        disk::create_private_folder(&folder)?;
        let into = Dir::open(&folder).map_err(|e| Error::io("can not open", &folder, e))?;
        let built = build(home, &mut plan, request, &into, context)?;
        // Perhaps it is another pack than the one that was looked into.
        if plan.replaces {
            refuse_newer_than(&root, &mut plan, request, &into, context)?;
        }
        failpoint::hit("restore-backup.built");
        let steps = steps(home, &root, &plan, &built, &into, &act)?;
        Ok((built, steps))
    })();
    let (built, steps) = match built {
        Ok(built) => built,
        Err(error) => {
            // Nothing but copies lies in it, and nobody has been told of it.
            let _ =
                Dir::open(home.trash()).and_then(|dir| disk::remove_tree(&dir, OsStr::new(&act)));
            return Err(error);
        }
    };
    let completed =
        journal::begin(home, "restore", steps, context)?.complete_telling(home, context)?;
    let left = completed.left.iter().map(ToString::to_string).collect();
    let kept = trash::act(home, &act).map(|act| act.name);
    Ok(outcome(plan, built, kept, left))
}

/// Like [`refuse_newer`], after a look at what was built.
fn refuse_newer_than(
    root: &Dir,
    plan: &mut Plan,
    request: &Request,
    into: &Dir,
    context: &Context,
) -> Result<()> {
    if plan.as_archive {
        plan.newer = newer_archive(root, plan)?;
        return refuse_newer(plan, request);
    }
    let name = plan.own_name();
    let rel = plan.rel.as_path();
    let mut names: Vec<Member> = Vec::new();
    let mut add = |path: PathBuf, meta: &Meta| names.push(as_member(path, meta));
    let meta = into
        .stat(&name)
        .map_err(|e| Error::io("can not look at", &*plan.to, e))?;
    add(rel.to_path_buf(), &meta);
    if meta.kind == FileKind::Folder {
        let dir = into
            .open_beneath(Path::new(&name))
            .map_err(|e| Error::io("can not open the folder", &*plan.to, e))?;
        let tree = disk::walk(&dir, &|_, _| false, context.stop)?;
        for (path, entry) in tree.entries() {
            add(rel.join(path), &entry.meta);
        }
    }
    plan.newer = newer(root, plan, &names, context.stop)?;
    refuse_newer(plan, request)
}

/// What lies somewhere, as a pack would have it.
fn as_member(path: PathBuf, meta: &Meta) -> Member {
    Member {
        path: path.into(),
        kind: match meta.kind {
            FileKind::Folder => MemberKind::Folder,
            FileKind::Symlink => MemberKind::Symlink,
            _ => MemberKind::File,
        },
        mode: 0,
        uid: 0,
        gid: 0,
        mtime: meta.mtime,
        size: meta.size,
        blake3: None,
        link: None,
        xattrs: std::collections::BTreeMap::new(),
        frame: 0,
        at: 0,
    }
}

fn steps(
    home: &LockedHome,
    root: &Dir,
    plan: &Plan,
    built: &Built,
    into: &Dir,
    act: &str,
) -> Result<Vec<Step>> {
    let name = plan.own_name();
    let fail = |e| Error::io("can not look at", &*plan.to, e);
    let coming = into.stat(&name).map_err(fail)?;
    let mut steps = Vec::new();
    if let Some(there) = mend::look(root, &plan.to)? {
        steps.push(Mend::PutAway {
            path: plan.to.clone(),
            act: act.to_owned(),
            lies: Was::new(plan.to.0.clone()).lies.into(),
            seen: Seen::of(&there),
            held_by: None,
        });
    }
    steps.push(Mend::BringBack {
        act: act.to_owned(),
        lies: Path::new(BUILT).join(&name).into(),
        path: plan.to.clone(),
    });
    let built_in = Path::new(".wbhome/trash").join(act).join(BUILT);
    steps.push(Mend::Prune {
        path: built_in.into(),
    });
    let index = IndexFile::ready(home)?;
    let entry = match (index.find(plan.session.as_str()), &built.entry) {
        (Some(entry), _) => entry.clone(),
        (None, Some(fields)) => Entry::packed(&plan.session, fields),
        (None, None) => Entry::new(&plan.session),
    };
    let fields = entry.fields().clone();
    steps.push(match plan.as_archive {
        true => {
            let mut archive = Map::new();
            archive.insert("file".into(), json!(plan.to.to_string_lossy()));
            archive.insert("bytes".into(), json!(coming.size));
            let path = Path::new(&name);
            let file = into.open_file(&name).map_err(fail)?;
            archive.insert("blake3".into(), json!(Pack::of(file, path)?.digest()?));
            let former = built
                .entry
                .as_ref()
                .and_then(|fields| fields.get("archived_at"));
            let at = entry.archived_at().map(str::to_owned);
            let at = at.or_else(|| Some(former?.as_str()?.to_owned()));
            Mend::Archived {
                entry: fields,
                archive,
                at: Some(at.unwrap_or_else(|| plan.at.to_string())),
                pack: plan.to.clone(),
                seen: Seen::of(&coming),
            }
        }
        false => Mend::Unarchived {
            entry: fields,
            archive: None,
        },
    });
    let mut steps: Vec<Step> = steps.into_iter().map(|step| Step::Mend { step }).collect();
    steps.push(Step::Views {
        ids: Some(vec![plan.session.to_string()]),
    });
    let act = act.to_owned();
    let step = Mend::Close { act };
    steps.push(Step::Mend { step });
    Ok(steps)
}

fn outcome(plan: Plan, built: Built, kept: Option<String>, left: Vec<String>) -> Outcome {
    Outcome {
        done: plan,
        from: built.from,
        files: built.files,
        bytes: built.bytes,
        not_used: built
            .not_used
            .into_iter()
            .map(|not_used| Useless {
                file: not_used.pack.file,
                at: not_used.pack.at,
                why: not_used.why,
            })
            .collect(),
        partial: built.newer.into_iter().map(|pack| pack.file).collect(),
        missing: built
            .missing
            .into_iter()
            .filter(|missing| !missing.vanished)
            .map(|missing| Gap {
                path: missing.path.into(),
                why: missing.why,
            })
            .collect(),
        kept,
        left,
    }
}
