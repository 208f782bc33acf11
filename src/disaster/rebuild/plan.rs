//! What a home would be built from, and whether it can be: looked at before anything is written.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::outcome::Recovered;
use super::place::{self, Ready};
use super::{alone, state};
use crate::backup::{Form, Kind, Snapshot, Source, Standing, Store};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Dir, Space};
use crate::history::{Surviving, Told};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The store.
    pub store: PathBuf,
    /// Where the home shall be. Without meaning when only the application's folder is wanted.
    pub to: PathBuf,
    /// Only what the agent application had: no home is built.
    pub only_state: bool,
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
    pub(super) store_path: ExactPath,
    #[serde(skip)]
    pub(super) store: Store,
    #[serde(skip)]
    pub(super) request: Request,
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
    pub(super) standing: place::Standing,
    #[serde(skip)]
    pub(super) surviving: Option<Surviving>,
}

/// What building a home anew would do.
///
/// # Errors
/// A store that is not there, holds no such snapshot or can not be read; a place that holds something, or lies where no
/// home can be; a repository that can not be opened; no room.
pub fn plan(request: &Request, context: &Context) -> Result<Plan> {
    if request.only_state {
        return alone::plan(request, context);
    }
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
pub(super) fn refuse_state_place(
    request: &Request,
    store: &Store,
    snapshot: &Snapshot,
) -> Result<()> {
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

pub(super) fn counted(
    source: &Source,
    with_state: bool,
) -> (Vec<Recovered>, Vec<String>, Vec<String>) {
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

    /// The folder that is written to.
    pub fn built_in(&self) -> &Path {
        &self.request.to
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

    pub(super) fn look_at_room(&mut self, context: &Context) -> Result<()> {
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
