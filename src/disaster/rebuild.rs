//! `wbhome restore --all`: a whole home from nothing but a store, and from the repository where that has survived.
//!
//! It needs no home, and reads nothing but what it is told of. What it builds becomes a home in one rename at the end
//! (`rebuild/place`); a run that was killed is begun anew, or only has to move up what is complete.

mod laying;
mod newer;
mod outcome;
mod place;
mod state;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

pub use outcome::{
    FromGit, History, InThing, Left, Lost, Missing, Newer, NotUsed, Older, Outcome, Recovered,
    StateBack,
};

use crate::backup::{Device, Form, Item, Kind, Place, Snapshot, Source, Standing, Store};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, Total, failpoint, human};
use crate::disk::{self, Dir, Space};
use crate::history::{Surviving, Told};
use crate::home::{Config, Entry, Home, Index, Shape, Trust};
use crate::sessions::reconcile;
use laying::Ground;
use place::{Dressed, HOME, Ready, Site};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The store.
    pub store: PathBuf,
    /// Where the home shall be.
    pub to: PathBuf,
    /// As of when; the newest snapshot if none.
    pub at: Option<Timestamp>,
    /// The repository, if it has survived.
    pub git: Option<PathBuf>,
    /// A folder for what the agent application had.
    pub state_to: Option<PathBuf>,
    /// Also out of a repository that does not know the home, and where the room may not do.
    pub force: bool,
    /// Whether this is a rehearsal: it may be built inside a home, and nothing outside of `to` is written.
    pub rehearsal: bool,
}

/// What would be done.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The store.
    #[serde(rename = "store")]
    store_path: ExactPath,
    #[serde(skip)]
    store: Store,
    #[serde(skip)]
    request: Request,
    /// Where the home would be.
    pub to: ExactPath,
    /// The snapshot.
    pub snapshot: Timestamp,
    /// The id of the home.
    pub home: String,
    /// Where it lay.
    pub was: ExactPath,
    /// On which machine.
    pub host: String,
    /// What would come back, kind by kind.
    pub kinds: Vec<Recovered>,
    /// Sessions that the home itself was missing; they would come back.
    pub were_missing: Vec<String>,
    /// Things that were removed on purpose; they would not.
    pub removed: Vec<String>,
    /// The last commit of the repository, if one was named.
    pub git: Option<Told>,
    /// How much room it takes.
    pub needs: u64,
    /// How much room there is.
    pub room: u64,
    /// Whether an earlier run was stopped in it; what that had built would be built anew, or only be moved up.
    pub begun: bool,
    /// Snapshots that could not be read.
    pub skipped: Vec<String>,
    #[serde(skip)]
    standing: place::Standing,
    #[serde(skip)]
    surviving: Option<Surviving>,
}

/// What building a home anew would do.
///
/// # Errors
/// A store that is not there, holds no such snapshot or can not be read; a place that holds something, or lies where no
/// home can be; a repository that can not be opened; no room.
pub fn plan(request: &Request, context: &Context) -> Result<Plan> {
    let store = Store::open_to_read(&request.store)?;
    let to = disk::real_path(&request.to)?;
    refuse_place(request, &store, &to)?;
    let standing = place::look(&to)?;
    let source = Source::of(&store, request.at, context)?;
    let snapshot = source.snapshot();
    match &standing {
        place::Standing::Ready(ready) => refuse_other(ready, request, snapshot)?,
        _ => refuse_state_place(request, &store, snapshot)?,
    }
    let surviving = match &request.git {
        Some(path) => Some(surviving(path, snapshot, request)?),
        None => None,
    };
    let git = match &surviving {
        Some(surviving) => Some(surviving.tip()?),
        None => None,
    };
    let with_state = request.state_to.is_some();
    let (kinds, were_missing, removed) = counted(&source, with_state);
    let mut plan = Plan {
        store_path: disk::real_path(store.path())?.into(),
        to: to.clone().into(),
        snapshot: snapshot.at,
        home: snapshot.home.id.clone(),
        was: snapshot.home.path.clone(),
        host: snapshot.home.device.host.clone(),
        kinds,
        were_missing,
        removed,
        git,
        needs: 0,
        room: 0,
        begun: !matches!(standing, place::Standing::Free),
        skipped: source.skipped(),
        standing,
        surviving,
        request: Request {
            to,
            ..request.clone()
        },
        store,
    };
    if !matches!(plan.standing, place::Standing::Ready(_)) {
        plan.look_at_room(context)?;
    }
    Ok(plan)
}

/// Where no home can be.
fn refuse_place(request: &Request, store: &Store, to: &Path) -> Result<()> {
    let look = |e| Error::io("can not compare the places of store and home", to, e);
    if disk::is_inside(to, store.path()).map_err(look)? {
        return Err(Error::failed("the home would lie inside the store:")
            .at(to)
            .hint("name a folder outside of it"));
    }
    let mut above = to.ancestors().skip(1);
    if !request.rehearsal
        && let Some(outer) = above.find(|above| disk::is_folder(&above.join(".wbhome")))
    {
        return Err(Error::failed("the folder is inside another home:")
            .at(to)
            .hint(format!("choose a folder outside {}", human::path(outer))));
    }
    Ok(())
}

/// Where what the agent application had can not be: in the home or around it, in the store, where the application has its
/// own, and where something lies already.
fn refuse_state_place(request: &Request, store: &Store, snapshot: &Snapshot) -> Result<()> {
    let Some(state) = &request.state_to else {
        return Ok(());
    };
    let (state, to) = (disk::real_path(state)?, disk::real_path(&request.to)?);
    let within = |outer: &Path| {
        Error::failed("the folder for the agent application would lie in another:")
            .at(&state)
            .hint(format!(
                "--state-to names a folder outside {}",
                human::path(outer)
            ))
    };
    if state.starts_with(&to) || to.starts_with(&state) {
        return Err(Error::failed(
            "the home and the folder for the agent application lie in each other:",
        )
        .at(state)
        .hint("--state-to names a folder beside it"));
    }
    let own = snapshot.home.state.iter().map(|state| &*state.path);
    for outer in own
        .chain([store.path()])
        .filter(|outer| disk::exists(outer))
    {
        let inside = disk::is_inside(&state, outer);
        if !request.rehearsal && inside.map_err(|e| Error::io("can not look at", &state, e))? {
            return Err(within(outer));
        }
    }
    // Laid, and only to be moved up, by a run that was killed.
    match state::is_laid(&state) {
        true => state::refuse_other(&state, snapshot),
        false => place::look(&state).map(|_| ()),
    }
}

/// Whether what a stopped run has completed is what is asked for.
fn refuse_other(ready: &Ready, request: &Request, snapshot: &Snapshot) -> Result<()> {
    let state = request
        .state_to
        .as_deref()
        .map(disk::real_path)
        .transpose()?;
    let done = &ready.outcome;
    let laid = done.state.as_ref().map(|state| state.to.to_path_buf());
    let same = (done.snapshot, &done.home) == (snapshot.at, &snapshot.home.id) && laid == state;
    match same {
        true => Ok(()),
        false => Err(Error::failed(format!(
            "another restore, as of {}, was stopped there and is complete but for the last renames:",
            done.snapshot
        ))
        .at(&request.to)
        .hint("the same command again finishes it; or name another folder")),
    }
}

/// The repository, if it is that of the home: it has the commit that was the newest when the snapshot was made.
fn surviving(path: &Path, snapshot: &Snapshot, request: &Request) -> Result<Surviving> {
    let surviving = Surviving::open(path)
        .map_err(|error| error.hint("without --git everything comes back that the store has"))?;
    let known = snapshot.home.commit.as_ref();
    if request.force || request.rehearsal || known.is_none_or(|commit| surviving.has(commit)) {
        return Ok(surviving);
    }
    Err(Error::failed("the repository does not have the last commit that the snapshot knows, so it may be another home's:")
        .at(path)
        .hint("without --git everything comes back that the store has")
        .hint("if it is this home's, and was begun anew or has lost something: --force"))
}

fn counted(source: &Source, with_state: bool) -> (Vec<Recovered>, Vec<String>, Vec<String>) {
    let mut kinds: Vec<Recovered> = Vec::new();
    let (mut missing, mut removed) = (Vec::new(), Vec::new());
    for item in &source.snapshot().items {
        let kind = item.place.kind();
        match item.standing {
            Standing::Removed => {
                removed.push(item.place.shown());
                continue;
            }
            Standing::Missing => missing.push(item.place.shown()),
            Standing::Present => {}
        }
        if matches!(kind, Kind::State | Kind::Transcripts) && !with_state {
            continue;
        }
        if !kinds.iter().any(|known| known.kind == kind) {
            kinds.push(Recovered {
                kind,
                things: 0,
                archives: 0,
                files: 0,
                bytes: 0,
            });
        }
        let Some(counted) = kinds.iter_mut().find(|known| known.kind == kind) else {
            continue;
        };
        counted.things += 1;
        for pack in std::iter::once(&item.newest).chain(&item.archive) {
            let as_it_is = pack.form == Form::Archive;
            counted.archives += u64::from(as_it_is);
            counted.files += if as_it_is { 1 } else { pack.files };
            counted.bytes += if as_it_is { pack.bytes } else { pack.content };
        }
    }
    (kinds, missing, removed)
}

impl Plan {
    /// The store.
    pub fn store(&self) -> &Path {
        &self.store_path
    }

    /// Whether only the last renames of an earlier run are left.
    pub fn only_moves_up(&self) -> bool {
        matches!(self.standing, place::Standing::Ready(_))
    }

    /// Files and bytes of all that would come back.
    pub fn content(&self) -> Total {
        let kinds = self.kinds.iter();
        kinds.fold(Total::default(), |total, kind| Total {
            items: total.items + kind.files,
            bytes: total.bytes + kind.bytes,
        })
    }

    fn look_at_room(&mut self, context: &Context) -> Result<()> {
        let at = self
            .request
            .to
            .ancestors()
            .find(|above| disk::is_folder(above));
        let at = at.unwrap_or(Path::new("/"));
        let fail = |e| Error::io("can not ask for the room on", at, e);
        let dir = Dir::open(at).map_err(fail)?;
        let space = Space::of(&dir).map_err(fail)?;
        let Total { items, bytes } = self.content();
        let repository = match &self.surviving {
            Some(surviving) => size_of(surviving.dir(), context)?,
            None => 0,
        };
        // Each file ends in a block that is half empty.
        self.needs = bytes + items * (space.block / 2) + repository;
        self.room = space.bytes;
        if self.request.force {
            return Ok(());
        }
        if self.needs > self.room {
            return Err(Error::failed(format!(
                "there is no room for the home: it needs about {}, and {} are free",
                human::size(self.needs),
                human::size(self.room)
            ))
            .at(at)
            .hint("make room, or name a folder on another disk")
            .hint("files with holes need less than they are long: --force tries all the same"));
        }
        match space.inodes {
            Some(free) if free < items => Err(Error::failed(format!(
                "there is no room for so many files: {}, and {} can be made",
                human::count(items),
                human::count(free)
            ))
            .at(at)
            .hint("name a folder on another disk")),
            _ => Ok(()),
        }
    }
}

fn size_of(folder: &Path, context: &Context) -> Result<u64> {
    let dir = Dir::open(folder).map_err(|e| Error::io("can not open", folder, e))?;
    let tree = disk::walk(&dir, &|_, _| false, context.stop)?;
    Ok(tree.entries().map(|(_, entry)| entry.meta.size).sum())
}

/// Builds it.
///
/// # Errors
/// What can not be written, and interruption: then the place is as it was. What can not be had from the store is told
/// in the outcome.
pub fn apply(plan: Plan, context: &Context) -> Result<Outcome> {
    let begun = Instant::now();
    if let place::Standing::Ready(mut ready) = plan.standing {
        let site = Site::take(&plan.request.to, true)?;
        move_up(&site, &ready, context)?;
        ready.outcome.continued = true;
        return Ok(ready.outcome);
    }
    let existed = disk::exists(&plan.request.to);
    let state_to = plan.request.state_to.as_deref();
    let was_laid = state_to.is_some_and(state::is_laid);
    let site = Site::take(&plan.request.to, false)?;
    failpoint::hit("restore-all.begun");
    context.progress.stage("restoring", plan.content());
    let built = build(&plan, &site, begun, context);
    context.progress.finish();
    let ready = match built.and_then(|ready| site.ready(&ready).map(|()| ready)) {
        Ok(ready) => ready,
        Err(error) => {
            site.give_up();
            // What another run has laid there waits for that one.
            if let Some(state) = state_to.filter(|_| !was_laid) {
                state::give_up(state);
            }
            if !existed {
                // It was made for this.
                let _ = remove_empty(&plan.request.to);
            }
            return Err(error);
        }
    };
    move_up(&site, &ready, context)?;
    let mut outcome = ready.outcome;
    outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(outcome)
}

/// What the application had first: the home is what says that there is nothing left to do.
fn move_up(site: &Site, ready: &Ready, context: &Context) -> Result<()> {
    if let Some(state) = &ready.outcome.state {
        state::move_up(&state.to)?;
    }
    site.move_up(ready, context)
}

fn remove_empty(path: &Path) -> std::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    Dir::open(parent)?.remove_folder(name)
}

/// Everything but the moving up.
fn build(plan: &Plan, site: &Site, begun: Instant, context: &Context) -> Result<Ready> {
    let source = Source::of(&plan.store, Some(plan.snapshot), context)?;
    let request = &plan.request;
    let mut outcome = Outcome {
        store: plan.store_path.clone(),
        to: plan.to.clone(),
        snapshot: source.snapshot().at,
        home: plan.home.clone(),
        was: plan.was.clone(),
        host: plan.host.clone(),
        moved: plan.was != plan.to || source.snapshot().home.device.id != Device::this().id,
        kinds: Vec::new(),
        lost: Vec::new(),
        older: Vec::new(),
        not_used: Vec::new(),
        missing: Vec::new(),
        restless: Vec::new(),
        were_missing: Vec::new(),
        index_made_anew: false,
        git: None,
        state: None,
        state_left: 0,
        warnings: plan.skipped.clone(),
        seconds: 0.0,
        continued: false,
    };
    let mut ground = laying::lay(&source, site, &mut outcome, context)?;
    let fail = |e| Error::io("can not write to", site.home(), e);
    let root = site.restoring.open_beneath(Path::new(HOME)).map_err(fail)?;
    if let (Some(surviving), Some(named)) = (&plan.surviving, &request.git) {
        let snapshot = source.snapshot();
        let named = disk::real_path(named)?;
        let mut from = newer::lay_over(
            surviving,
            &named,
            snapshot,
            &root,
            &ground,
            &mut outcome,
            context,
        )?;
        ground.differs |= !from.files.is_empty();
        from.history = repository(surviving, plan, site, &root, &mut outcome, context)?;
        outcome.git = Some(from);
    }
    let labels = labels(source.snapshot());
    agree(site, labels, ground.differs, &mut outcome, context)?;
    match &request.state_to {
        Some(to) => {
            let to = disk::real_path(to)?;
            outcome.state = Some(state::lay(&source, &to, &mut outcome, context)?);
        }
        None => outcome.state_left = state::items(&source).count() as u64,
    }
    outcome.warnings.extend(late_warnings(&source, plan));
    outcome.kinds.sort_by_key(|counted| counted.kind);
    outcome.seconds = begun.elapsed().as_secs_f64();
    let dressed = dressed(&root, ground).map_err(fail)?;
    Ok(Ready { outcome, dressed })
}

fn late_warnings(source: &Source, plan: &Plan) -> Vec<String> {
    let skipped = source.skipped().into_iter();
    skipped
        .filter(|line| !plan.skipped.contains(line))
        .collect()
}

/// The repository becomes the home's own: a copy of it, or where the settings name it, itself.
fn repository(
    surviving: &Surviving,
    plan: &Plan,
    site: &Site,
    root: &Dir,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<History> {
    let request = &plan.request;
    let home = Home::open(site.home(), Trust::Named)?;
    let dir = Config::load(&home).ok().and_then(|config| config.git.dir);
    let is_it = |dir: PathBuf| disk::same_file(&dir, surviving.dir()).unwrap_or(false);
    let named = dir.is_some_and(|dir| is_it(request.to.join(&dir)) || is_it(plan.was.join(&dir)));
    // Another home may be using it.
    let used = surviving.works_for().filter(|folder| *folder != request.to);
    let used = used.filter(|folder| disk::exists(&folder.join(".wbhome").join("home.json")));
    if named && !request.rehearsal && used.is_none() {
        let link = [
            b"gitdir: ".as_slice(),
            surviving.dir().as_os_str().as_encoded_bytes(),
            b"\n",
        ]
        .concat();
        disk::write_new(&site.home().join(".git"), &link, 0o600)?;
        surviving.lead_to(&request.to)?;
        return Ok(History::Linked);
    }
    surviving.copy_to(root, &site.home(), context.stop)?;
    if let (true, Some(used)) = (named && !request.rehearsal, used) {
        outcome.warnings.push(format!(
            "the repository belongs to {}, which is a home still: this one got a copy of it, in .git",
            human::path(&used)
        ));
    }
    Ok(History::Copied)
}

/// The index as the snapshot knows it: for when the home's own can not be had.
fn labels(snapshot: &crate::backup::Snapshot) -> Index {
    let entry = |item: &Item| {
        let Place::Session(id) = &item.place else {
            return None;
        };
        let mut entry = Entry::packed(id, item.entry.as_ref()?);
        if item.standing == Standing::Removed {
            entry.set_status(&crate::home::Status::Removed);
        }
        Some(entry)
    };
    Index::anew(Shape::default(), snapshot.items.iter().filter_map(entry))
}

/// Makes the index agree with what is there, where it may not.
fn agree(
    site: &Site,
    labels: Index,
    differs: bool,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<()> {
    let home = Home::open(site.home(), Trust::Named)?;
    let lost = !disk::exists(&home.index_file()) || Index::read(&home).is_err();
    if !differs && !lost {
        return Ok(());
    }
    let locked = home.lock_while_moving(Duration::ZERO, "restore", context)?;
    let plan = match lost {
        true => reconcile::plan_anew(&locked, Some(labels), context)?,
        false => reconcile::plan(&locked, false, context)?,
    };
    reconcile::apply(&locked, plan, context)?;
    outcome.index_made_anew = lost;
    Ok(())
}

/// Modes and times that were given already, and may be lost when something moves; and those that are due.
fn dressed(root: &Dir, ground: Ground) -> std::io::Result<Vec<Dressed>> {
    let mut all = ground.dressed;
    for (name, _) in root.names()? {
        let meta = root.stat(&name)?;
        let known = all.iter().any(|known| *known.path == *Path::new(&name));
        if meta.kind == disk::FileKind::Folder && !known {
            all.push(Dressed::new(name.into(), meta.mode, meta.mtime));
        }
    }
    // The home itself last.
    all.sort_by(|one, other| other.path.cmp(&one.path));
    Ok(all)
}
