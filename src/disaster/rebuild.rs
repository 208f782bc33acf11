//! `wbhome restore --all`: a whole home from nothing but a store, and from the repository where that has survived.
//!
//! It needs no home, and reads nothing but what it is told of. What it builds becomes a home in one rename at the end
//! (`rebuild/place`); a run that was killed is begun anew, or only has to move up what is complete.

mod alone;
mod laying;
mod newer;
mod outcome;
mod place;
mod plan;
mod state;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use outcome::{
    FromGit, History, InThing, Left, Lost, Missing, Newer, NotUsed, Older, Outcome, Recovered,
    StateBack,
};
pub use plan::{Plan, Request, plan};

use crate::backup::{Device, Item, Place, Source, Standing};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::history::Surviving;
use crate::home::{Config, Entry, Home, Index, Shape, Trust};
use crate::sessions::reconcile;
use laying::Ground;
use place::{Dressed, HOME, Ready, Site};

/// Builds it.
///
/// # Errors
/// What can not be written, and interruption: then the place is as it was. What can not be had from the store is told
/// in the outcome.
pub fn apply(plan: Plan, context: &Context) -> Result<Outcome> {
    if plan.request.only_state {
        return alone::apply(&plan, context);
    }
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

impl Outcome {
    /// Nothing of it is back yet.
    fn of(plan: &Plan, source: &Source) -> Outcome {
        Outcome {
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
        }
    }
}

/// Everything but the moving up.
fn build(plan: &Plan, site: &Site, begun: Instant, context: &Context) -> Result<Ready> {
    let source = Source::of(&plan.store, Some(plan.snapshot), context)?;
    let request = &plan.request;
    let mut outcome = Outcome::of(plan, &source);
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
    let named = dir
        .as_ref()
        .is_some_and(|dir| is_it(request.to.join(dir)) || is_it(plan.was.join(dir)));
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
    if let (false, Some(dir)) = (request.rehearsal, dir) {
        outcome.warnings.push(format!(
            "[git] dir in wbhome.toml names {}, and the history is in .git: before the next commit take `dir` out, or move .git there",
            human::path(&dir)
        ));
    }
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
