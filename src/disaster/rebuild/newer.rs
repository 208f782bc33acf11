//! What a surviving repository holds that is newer than the snapshot, laid over what the store gave; and what the store
//! could not give at all. Nothing is removed because git removed it: that is told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::laying::{Ground, place_of};
use super::outcome::{FromGit, History, Left, Newer, Outcome};
use crate::backup::{Place, Snapshot};
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir};
use crate::history::{Cut, LaidOver, Surviving};
use crate::home::SessionId;

/// Lays it.
///
/// # Errors
/// A history that can not be read, what can not be written, and interruption.
pub(super) fn lay_over(
    surviving: &Surviving,
    named: &Path,
    snapshot: &Snapshot,
    root: &Dir,
    ground: &Ground,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<FromGit> {
    let mut from = FromGit {
        repository: named.to_path_buf().into(),
        tip: surviving.tip()?,
        files: Vec::new(),
        removed: Vec::new(),
        left: Vec::new(),
        text_only: Vec::new(),
        history: History::Copied,
    };
    let mut wanted = newer_than_snapshot(surviving, snapshot, root, &mut from, context)?;
    wanted.extend(newer_than_packs(surviving, ground, context)?);
    let lost = not_given(surviving, snapshot, root, ground, outcome, &mut from)?;
    let unknown = lost.into_iter().filter(|path| !wanted.contains_key(path));
    let unknown: BTreeSet<PathBuf> = unknown.collect();
    let tip = from.tip.at;
    let mut times = surviving.last_touched(unknown.iter().cloned(), context.stop)?;
    for path in unknown {
        let at = times.remove(&path).unwrap_or(tip);
        wanted.insert(path, at);
    }
    for (path, at) in wanted {
        context.stop.check()?;
        if let Some(why) = as_archive_alone(&path, ground) {
            from.left.push(Left {
                path: path.into(),
                why,
                in_archive: true,
            });
            continue;
        }
        match surviving.lay(&path, root, at)? {
            LaidOver::Same => {}
            LaidOver::Left(why) => from.left.push(Left {
                path: path.into(),
                why,
                in_archive: false,
            }),
            LaidOver::Laid { replaced } => from.files.push(Newer {
                path: path.into(),
                at,
                replaced,
            }),
        }
    }
    let laid: HashSet<&Path> = from.files.iter().map(|file| &*file.path).collect();
    let came = |name: &String| {
        let session = Path::new("sessions").join(name);
        laid.iter().any(|path| path.starts_with(&session))
    };
    let text_only = from
        .text_only
        .iter()
        .filter(|name| came(name))
        .cloned()
        .collect();
    let of_thing = things(snapshot);
    outcome.missing.retain(|missing| {
        let place = of_thing.get(&missing.thing);
        place.is_none_or(|place| !laid.contains(&*place.join(&*missing.path)))
    });
    from.text_only = text_only;
    Ok(from)
}

/// What a commit after the snapshot has touched.
fn newer_than_snapshot(
    surviving: &Surviving,
    snapshot: &Snapshot,
    root: &Dir,
    from: &mut FromGit,
    context: &Context,
) -> Result<BTreeMap<PathBuf, Timestamp>> {
    let known = snapshot.home.commit.clone();
    let cut = match known.filter(|commit| surviving.has(commit)) {
        Some(commit) => Cut::Commit(commit),
        None => Cut::Moment(snapshot.at),
    };
    let mut wanted = BTreeMap::new();
    for (path, at) in surviving.touched(&cut, context.stop)? {
        if surviving.holds(&path)? {
            wanted.insert(path, at);
        } else if is_there(root, &path)? {
            from.removed.push(path.into());
        }
    }
    Ok(wanted)
}

fn is_there(root: &Dir, path: &Path) -> Result<bool> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let found = root.open_beneath(parent).and_then(|dir| {
        let name = path.file_name().unwrap_or_default();
        dir.find(name)
    });
    match found {
        Ok(found) => Ok(found.is_some()),
        Err(error) if disk::is_nowhere(&error) => Ok(false),
        Err(error) => Err(Error::io("can not look at", path, error)),
    }
}

/// What a commit has touched after an older pack was made, which had to stand in for the newest.
fn newer_than_packs(
    surviving: &Surviving,
    ground: &Ground,
    context: &Context,
) -> Result<BTreeMap<PathBuf, Timestamp>> {
    let mut wanted = BTreeMap::new();
    let Some(first) = ground.since.iter().map(|(_, at)| *at).min() else {
        return Ok(wanted);
    };
    for (path, at) in surviving.touched(&Cut::Moment(first), context.stop)? {
        let mut since = ground.since.iter();
        let is_newer = since.any(|(prefix, pack)| belongs(&path, prefix) && at > *pack);
        if is_newer && surviving.holds(&path)? {
            wanted.insert(path, at);
        }
    }
    Ok(wanted)
}

/// Whether a path belongs to the thing that lies there. To the home itself belongs what lies at its top.
fn belongs(path: &Path, thing: &Path) -> bool {
    match thing.as_os_str().is_empty() {
        true => path.components().count() == 1,
        false => path.starts_with(thing),
    }
}

/// What the store knows of and could not give, and sessions that it never knew.
fn not_given(
    surviving: &Surviving,
    snapshot: &Snapshot,
    root: &Dir,
    ground: &Ground,
    outcome: &Outcome,
    from: &mut FromGit,
) -> Result<Vec<PathBuf>> {
    let mut wanted = Vec::new();
    for lost in &ground.lost {
        let all = surviving.below(lost)?.into_iter();
        wanted.extend(all.filter(|path| belongs(path, lost)));
    }
    let of_thing = things(snapshot);
    for missing in outcome.missing.iter().filter(|missing| !missing.vanished) {
        let Some(place) = of_thing.get(&missing.thing) else {
            continue;
        };
        let path = place.join(&*missing.path);
        if !missing.path.as_os_str().is_empty() && !is_there(root, &path)? {
            wanted.extend(surviving.below(&path)?);
        }
    }
    let sessions = snapshot.items.iter().filter_map(|item| match &item.place {
        Place::Session(id) => Some(id.as_str()),
        _ => None,
    });
    let known: HashSet<&str> = sessions.collect();
    for name in surviving.sessions()? {
        let path = Path::new("sessions").join(&name);
        if is_there(root, &path)? || ground.archived.contains(&name) {
            continue;
        }
        let is_lost = ground.lost.contains(&path);
        if (is_lost || !known.contains(name.as_str())) && SessionId::adopt(&name).is_ok() {
            wanted.extend(surviving.below(&path)?);
            from.text_only.push(name);
        }
    }
    Ok(wanted)
}

/// Where each thing lies, by what a person calls it.
fn things(snapshot: &Snapshot) -> BTreeMap<String, PathBuf> {
    let all = snapshot.items.iter();
    let all = all.filter_map(|item| Some((item.place.shown(), place_of(&item.place)?)));
    let home = (Place::Home.shown(), PathBuf::new());
    all.chain([home]).collect()
}

/// Why nothing is laid into a session that is there as its archive alone.
fn as_archive_alone(path: &Path, ground: &Ground) -> Option<String> {
    let id = path
        .strip_prefix("sessions")
        .ok()?
        .iter()
        .next()?
        .to_str()?;
    ground
        .archived
        .contains(id)
        .then(|| "the store has the session as its archive, which holds all of it".to_owned())
}
