//! Letting go: snapshots that were superseded long ago, and packs that no snapshot names any more.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::store::{PACKS, SNAPSHOTS, snapshot_name};
use super::{LockedStore, Place, Store, packing, retention};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Total, failpoint, human, stamp};
use crate::disk::{self, FileKind};
use crate::home::folded;

/// A pack that goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Going {
    /// Where it lies, relative to the store.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// What goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The store.
    pub store: WirePath,
    /// Snapshots.
    pub snapshots: Vec<Timestamp>,
    /// Packs.
    pub packs: Vec<Going>,
    /// How many bytes that frees.
    pub bytes: u64,
    /// Packs of things that no snapshot knows: a snapshot was lost, or the first run with them was killed. They stay for
    /// as long as what was removed.
    pub unknown: Vec<Going>,
    /// Snapshots that stay.
    pub snapshots_kept: u64,
    /// Packs that stay.
    pub packs_kept: u64,
}

/// What went. The same words: an interrupted prune is an error, and what it has not removed stays for the next.
pub type Outcome = Plan;

/// How long things are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Snapshots, after they were superseded: `[backup] keep`.
    pub snapshots: Duration,
    /// What was removed, and what no snapshot knows: `[backup] keep_deleted`.
    pub deleted: Duration,
}

/// A run that is under way and needs room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'r> {
    /// The moment in the names of its packs.
    pub at: Timestamp,
    /// What it has packed, and so needs no pack that no snapshot knows.
    pub packed: &'r BTreeSet<Place>,
}

/// Says what may go.
///
/// # Errors
/// A clock that is behind the newest snapshot, and a snapshot that can not be read: nobody knows what it needs.
pub fn plan(store: &Store, keep: Keep, context: &Context) -> Result<Plan> {
    plan_for(store, keep, None, context)
}

/// Like [`plan`], for a run that is under way.
///
/// # Errors
/// As there.
pub(super) fn plan_for(
    store: &Store,
    keep: Keep,
    run: Option<Under>,
    context: &Context,
) -> Result<Plan> {
    let now = context.clock.now();
    let snapshots = store.snapshots()?;
    refuse_clock_behind(store, &snapshots, now)?;
    let going = retention::expired(&snapshots, now, keep.snapshots);
    let (expired, kept) = snapshots.split_at(going);
    let (mut named, mut known) = (BTreeSet::new(), BTreeSet::new());
    let folder = |place: &Place| folded(&place.folder().to_string_lossy());
    for snapshot in expired.iter().filter_map(|at| store.snapshot(*at).ok()) {
        known.extend(snapshot.items.iter().map(|item| folder(&item.place)));
    }
    known.extend(run.iter().flat_map(|run| run.packed).map(folder));
    for at in kept {
        let snapshot = store.snapshot(*at).map_err(|error| {
            error.hint("nothing was removed: what this snapshot needs is not known")
        })?;
        known.extend(snapshot.items.iter().map(|item| folder(&item.place)));
        let packs = snapshot.items.iter().flat_map(super::Item::packs);
        named.extend(packs.map(|pack| pack.file.clone()));
    }
    let there = packs(store, context)?;
    let mut plan = Plan {
        store: store.path().to_path_buf().into(),
        snapshots: expired.to_vec(),
        packs: Vec::new(),
        bytes: 0,
        unknown: Vec::new(),
        snapshots_kept: kept.len() as u64,
        packs_kept: 0,
    };
    let unnamed: BTreeSet<&str> =
        retention::unnamed(there.iter().map(|pack| pack.file.as_str()), &named)
            .into_iter()
            .collect();
    for pack in &there {
        let moment = moment_of(&pack.file);
        // Where there is no snapshot at all, nobody knows what is needed.
        let is_needed = kept.is_empty() || !unnamed.contains(pack.file.as_str());
        if is_needed || moment.is_some() && moment == run.map(|run| run.at) {
            plan.packs_kept += 1;
            continue;
        }
        let of = Path::new(&pack.file).parent().unwrap_or(Path::new(""));
        let is_known = known.contains(&folded(&of.to_string_lossy()));
        let lately = |at| !retention::is_older(at, now, keep.deleted);
        if !is_known && moment.is_some_and(lately) {
            plan.packs_kept += 1;
            plan.unknown.push(pack.clone());
            continue;
        }
        plan.bytes += pack.bytes;
        plan.packs.push(pack.clone());
    }
    Ok(plan)
}

fn refuse_clock_behind(store: &Store, snapshots: &[Timestamp], now: Timestamp) -> Result<()> {
    match snapshots.last() {
        // Two runs in one second give their snapshots two seconds.
        Some(newest) if newest.duration_since(now) > jiff::SignedDuration::from_secs(60) => Err(Error::failed(format!(
            "the clock ({}) is behind the newest snapshot ({newest}), so nothing is removed:",
            stamp::whole(now),
        ))
        .at(store.snapshot_file(*newest))
        .hint("set the clock right")
        .hint("if it is right now, and was wrong when that snapshot was made, move the snapshots of the future out of the store: the next run packs what only they name, as far as it is in the home")),
        _ => Ok(()),
    }
}

fn moment_of(file: &str) -> Option<Timestamp> {
    packing::moment_of(Path::new(file).file_name()?.to_str()?)
}

/// Every pack in the store, and what a write that was killed has left. Whatever else lies there is somebody else's.
fn packs(store: &Store, context: &Context) -> Result<Vec<Going>> {
    let fail = |e| Error::io("can not list the packs in", store.path(), e);
    let dir = match store.dir.open_beneath(Path::new(PACKS)) {
        Err(error) if disk::is_nowhere(&error) => return Ok(Vec::new()),
        opened => opened.map_err(fail)?,
    };
    let tree = disk::walk(&dir, &|_, _| false, context.stop)?;
    if let Some((path, why)) = tree
        .folders
        .iter()
        .flat_map(|folder| &folder.unreadable)
        .next()
    {
        return Err(Error::failed(format!(
            "can not list the packs ({}), so nothing is removed:",
            human::escape(why)
        ))
        .at(store.path().join(PACKS).join(path)));
    }
    let ours = |name: &OsStr| {
        disk::is_temporary(name) || name.to_str().and_then(packing::moment_of).is_some()
    };
    let mut found = Vec::new();
    for (path, entry) in tree.entries() {
        if let (FileKind::File, true, Some(path)) =
            (entry.meta.kind, ours(&entry.name), path.to_str())
        {
            found.push(Going {
                file: format!("{PACKS}/{path}"),
                bytes: entry.meta.size,
            });
        }
    }
    Ok(found)
}

/// Removes what the plan says: snapshots first, the oldest before the others, so that none that stays ever names a pack
/// that is gone.
///
/// # Errors
/// What can not be removed, and interruption.
pub fn apply(store: &LockedStore, plan: Plan, context: &Context) -> Result<Outcome> {
    store.clear_leftovers()?;
    context.progress.stage(
        "removing",
        Total {
            items: (plan.snapshots.len() + plan.packs.len()) as u64,
            bytes: 0,
        },
    );
    let fail = |path: &Path, e| Error::io("can not remove", store.path().join(path), e);
    if !plan.snapshots.is_empty() {
        let folder = Path::new(SNAPSHOTS);
        let dir = store
            .dir
            .open_beneath(folder)
            .map_err(|e| fail(folder, e))?;
        for at in &plan.snapshots {
            context.stop.check()?;
            let name = snapshot_name(*at);
            remove(&dir, OsStr::new(&name)).map_err(|e| fail(&folder.join(&name), e))?;
            failpoint::hit("prune.snapshot");
            context.progress.advance(1, 0);
        }
        // From here on no snapshot on the disk names what goes now.
        dir.sync().map_err(|e| fail(folder, e))?;
    }
    for pack in &plan.packs {
        context.stop.check()?;
        let path = PathBuf::from(&pack.file);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let dir = store.dir.open_beneath(parent).map_err(|e| fail(&path, e))?;
        remove(&dir, name).map_err(|e| fail(&path, e))?;
        failpoint::hit("prune.pack");
        // A folder with other packs in it stays, of course.
        if let (Some(above), Some(name)) = (parent.parent(), parent.file_name())
            && let Ok(above) = store.dir.open_beneath(above)
        {
            let _ = above.remove_folder(name);
        }
        context.progress.advance(1, 0);
    }
    context.progress.finish();
    Ok(plan)
}

fn remove(dir: &disk::Dir, name: &OsStr) -> std::io::Result<()> {
    match dir.unlink(name) {
        Err(error) if disk::is_nowhere(&error) => Ok(()),
        done => done,
    }
}
