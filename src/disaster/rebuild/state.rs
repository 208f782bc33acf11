//! The agent application's own folder, into a folder that a person names: never into the one that the application uses.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::laying::{Ground, tell};
use super::outcome::{Lost, Missing, NotUsed, Older, Outcome, StateBack};
use super::place::{Dressed, READY, RESTORING};
use crate::backup::{Item, Place, Snapshot, Source, Standing, fetch};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, Stamp};
use crate::pack::MemberKind;

/// The folder in which everything is put together.
const ALL: &str = "all";

/// The things of a snapshot that belong there.
pub(super) fn items<'s>(source: &'s Source) -> impl Iterator<Item = &'s Item> {
    let is_state = |item: &&Item| matches!(item.place, Place::State(..) | Place::Transcripts(..));
    let all = source.snapshot().items.iter().filter(is_state);
    all.filter(|item| item.standing != Standing::Removed)
}

/// Lays them.
///
/// # Errors
/// What can not be written, and interruption.
pub(super) fn lay(
    source: &Source,
    to: &Path,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<StateBack> {
    let fail = |e| Error::io("can not write to", to, e);
    disk::create_private_folder(to)?;
    let top = Dir::open(to).map_err(fail)?;
    // Laid by a run that was killed before the home was.
    if let Some(ready) = Ready::of(to, source.snapshot())? {
        return Ok(ready.told(outcome));
    }
    let before = Lacking::of(outcome);
    disk::remove_tree(&top, OsStr::new(RESTORING)).map_err(fail)?;
    let building = top.make_beneath(Path::new(RESTORING)).map_err(fail)?;
    let was = &source.snapshot().home.state;
    let mut back = StateBack {
        to: to.to_path_buf().into(),
        was: was.iter().map(|state| state.path.clone()).collect(),
        transcripts: 0,
        files: 0,
        bytes: 0,
    };
    let names: BTreeSet<&str> = items(source).map(|item| name_of(&item.place)).collect();
    let mut laying = Laying {
        source,
        building: &building,
        folders: BTreeMap::new(),
        outcome,
        back: &mut back,
        context,
    };
    for item in items(source) {
        context.stop.check()?;
        // One alone is the folder itself.
        let into = match names.len() {
            0 | 1 => PathBuf::from(ALL),
            _ => Path::new(ALL).join(name_of(&item.place)),
        };
        laying.one(item, &into)?;
    }
    laying.dress().map_err(fail)?;
    let own = laying.folders.remove(Path::new(ALL));
    let all = building.make_beneath(Path::new(ALL)).map_err(fail)?;
    disk::sync_filesystem(&all).map_err(fail)?;
    let ready = Ready {
        snapshot: source.snapshot().at,
        home: source.snapshot().home.id.clone(),
        back,
        own: own.map(|(mode, mtime)| Dressed::new(PathBuf::new(), mode, mtime)),
        lacking: Lacking::of(outcome).since(&before),
    };
    let text = serde_json::to_vec(&ready).map_err(|e| fail(e.into()))?;
    disk::write_new(&to.join(RESTORING).join(READY), &text, 0o600)?;
    failpoint::hit("restore-all.state-ready");
    Ok(ready.back)
}

/// Moves up what was laid, when the home is complete, too: a run that was killed before begins anew, and one that is killed
/// now is gone on with.
///
/// # Errors
/// What can not be moved.
pub(super) fn move_up(to: &Path) -> Result<()> {
    match Ready::read(to)? {
        Some(ready) => {
            let top = Dir::open(to).map_err(|e| Error::io("can not open", to, e))?;
            ready.move_up(to, &top)
        }
        None => Ok(()),
    }
}

/// Takes away what was laid and not moved up. What stays is known by its name.
pub(super) fn give_up(to: &Path) {
    if let Ok(top) = Dir::open(to) {
        let _ = disk::remove_tree(&top, OsStr::new(RESTORING));
    }
}

/// Whether a run that was stopped has laid everything there.
pub(super) fn is_laid(to: &Path) -> bool {
    disk::exists(&to.join(RESTORING).join(READY))
}

/// Refuses what a run that was stopped has laid there, when that is of another snapshot.
///
/// # Errors
/// The refusal; what can not be understood.
pub(super) fn refuse_other(to: &Path, snapshot: &Snapshot) -> Result<()> {
    Ready::of(to, snapshot).map(|_| ())
}

/// What is laid and only has to be moved up.
#[derive(Serialize, Deserialize)]
struct Ready {
    snapshot: Timestamp,
    home: String,
    back: StateBack,
    /// Mode and time of the folder itself.
    own: Option<Dressed>,
    lacking: Lacking,
}

/// What of it did not come back as it was.
#[derive(Clone, Serialize, Deserialize)]
struct Lacking {
    lost: Vec<Lost>,
    older: Vec<Older>,
    not_used: Vec<NotUsed>,
    missing: Vec<Missing>,
}

impl Lacking {
    fn of(outcome: &Outcome) -> Lacking {
        Lacking {
            lost: outcome.lost.clone(),
            older: outcome.older.clone(),
            not_used: outcome.not_used.clone(),
            missing: outcome.missing.clone(),
        }
    }

    fn since(mut self, before: &Lacking) -> Lacking {
        self.lost.drain(..before.lost.len());
        self.older.drain(..before.older.len());
        self.not_used.drain(..before.not_used.len());
        self.missing.drain(..before.missing.len());
        self
    }
}

impl Ready {
    /// What a run that was killed has left in a folder.
    fn read(to: &Path) -> Result<Option<Ready>> {
        let path = to.join(RESTORING).join(READY);
        let Some(text) = disk::read_small(&path, 1 << 30)? else {
            return Ok(None);
        };
        let ready = serde_json::from_slice(&text);
        ready.map(Some).map_err(|e| {
            Error::io(
                "can not understand what a stopped restore has left in",
                path,
                e,
            )
            .hint("remove the folder, or name another one")
        })
    }

    /// The same, which must be of this snapshot.
    fn of(to: &Path, snapshot: &Snapshot) -> Result<Option<Ready>> {
        let ready = Ready::read(to)?;
        match ready {
            Some(ready) if (ready.snapshot, &ready.home) != (snapshot.at, &snapshot.home.id) => {
                Err(Error::failed(format!(
                    "a restore as of {} was stopped there:",
                    ready.snapshot
                ))
                .at(to)
                .hint("the same command again finishes it; or name another folder"))
            }
            ready => Ok(ready),
        }
    }

    fn move_up(&self, to: &Path, top: &Dir) -> Result<()> {
        let fail = |e| Error::io("can not write to", to, e);
        let rel = Path::new(RESTORING).join(ALL);
        let all = top.open_beneath(&rel).map_err(fail)?;
        for (name, _) in all.names().map_err(fail)? {
            all.rename(&name, top, &name)
                .map_err(|e| Error::io("can not move into its place:", to.join(&name), e))?;
            failpoint::hit("restore-all.state-moved");
        }
        top.sync().map_err(fail)?;
        disk::remove_tree(top, OsStr::new(RESTORING)).map_err(fail)?;
        if let Some(own) = &self.own {
            own.dress(top).map_err(fail)?;
        }
        top.sync().map_err(fail)
    }

    fn told(self, outcome: &mut Outcome) -> StateBack {
        outcome.lost.extend(self.lacking.lost);
        outcome.older.extend(self.lacking.older);
        outcome.not_used.extend(self.lacking.not_used);
        outcome.missing.extend(self.lacking.missing);
        self.back
    }
}

/// The name of the folder that a thing belongs to.
fn name_of(place: &Place) -> &str {
    match place {
        Place::State(_, name) | Place::Transcripts(name, _) => name,
        other => other.top(),
    }
}

struct Laying<'l> {
    source: &'l Source<'l>,
    building: &'l Dir,
    /// Modes and times of folders that several packs have.
    folders: BTreeMap<PathBuf, (u32, Stamp)>,
    outcome: &'l mut Outcome,
    back: &'l mut StateBack,
    context: &'l Context<'l>,
}

impl Laying<'_> {
    fn one(&mut self, item: &Item, into: &Path) -> Result<()> {
        let part = OsStr::new("part");
        let fetched = fetch::folder(self.source, item, self.building, part, self.context)?;
        tell(item, &fetched, self.outcome, &mut Ground::default());
        let Some(laid) = fetched.laid else {
            self.outcome
                .lost(&item.place, "nothing of any pack of it can be proved good");
            return Ok(());
        };
        let (files, bytes) = laid.content();
        self.outcome.count(item.place.kind(), false, files, bytes);
        self.back.files += files;
        self.back.bytes += bytes;
        let into = match &item.place {
            Place::Transcripts(_, slug) => {
                self.back.transcripts += 1;
                into.join("projects").join(slug)
            }
            _ => into.to_path_buf(),
        };
        for member in laid.members.iter().filter(|m| m.kind == MemberKind::Folder) {
            let at = match member.path.as_os_str().is_empty() {
                true => into.clone(),
                false => into.join(&*member.path),
            };
            let known = self
                .folders
                .entry(at)
                .or_insert((member.mode, member.mtime));
            if member.mtime > known.1 {
                *known = (member.mode, member.mtime);
            }
        }
        let fail = |e| Error::io("can not put together", &into, e);
        let target = self.building.make_beneath(&into).map_err(fail)?;
        let from = self.building.open_beneath(Path::new(part)).map_err(fail)?;
        let mut clashes = Vec::new();
        merge(&from, &target, Path::new(""), &mut clashes).map_err(fail)?;
        disk::remove_tree(self.building, part).map_err(fail)?;
        for path in clashes {
            self.outcome.missing.push(Missing {
                thing: item.place.shown(),
                why: format!("something else has the name {}", human::path(&path)),
                path: path.into(),
                vanished: false,
            });
        }
        Ok(())
    }

    fn dress(&self) -> std::io::Result<()> {
        // A folder stands before what is in it, and is dressed after that.
        let inner = self
            .folders
            .iter()
            .filter(|(path, _)| *path != Path::new(ALL));
        for (path, (mode, mtime)) in inner.rev() {
            match self.building.open_beneath(path) {
                Ok(dir) => {
                    dir.set_mode(*mode)?;
                    dir.set_time(*mtime)?;
                }
                Err(error) if disk::is_nowhere(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Moves everything in one folder into another; a folder that is there already takes in what the other holds.
fn merge(from: &Dir, into: &Dir, at: &Path, clashes: &mut Vec<PathBuf>) -> std::io::Result<()> {
    from.set_mode(0o700)?;
    into.set_mode(0o700)?;
    for (name, _) in from.names()? {
        let meta = from.stat(&name)?;
        let there = into.find(&name)?;
        let rel = at.join(&name);
        match there.map(|there| there.kind) {
            None => {
                if meta.kind == FileKind::Folder {
                    // One that nobody may write to can not get another parent.
                    from.open_beneath(Path::new(&name))?.set_mode(0o700)?;
                }
                from.rename(&name, into, &name)?;
            }
            Some(FileKind::Folder) if meta.kind == FileKind::Folder => {
                let (one, other) = (
                    from.open_beneath(Path::new(&name))?,
                    into.open_beneath(Path::new(&name))?,
                );
                merge(&one, &other, &rel, clashes)?;
            }
            Some(_) => clashes.push(rel),
        }
    }
    Ok(())
}
