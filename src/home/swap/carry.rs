//! Carrying a swap out, or giving it up: what the command itself does, and what the next one does after a kill.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::course::Course;
use super::{
    DONE, Done, HEAD, Head, Looks, OVERTAKEN, STEPS, Seen, Step, read_done, read_head, read_steps,
    split, stamp,
};
use crate::base::{Context, Error, Kind, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, FolderLock, Meta};
use crate::home::{LockedHome, RelPath};
use crate::state;

/// What became of a swap that stood in the journal.
pub enum Settlement {
    /// It was given up, if after it had begun then for this reason: everything is as it was.
    GivenUp(Option<Error>),
    /// It is done.
    Done(Done),
}

/// Whether a swap has to wait because the application, whose folder it changes, runs again. A swap of the home
/// itself can not wait: everybody else would work on a home that is half one and half the other.
///
/// # Errors
/// What the record or the registry says; a home that has to wait.
pub fn waits(home: &LockedHome, rel: &RelPath) -> Result<Option<String>> {
    let folder = home.root().join(rel.as_path());
    let (Some(head), true) = (read_head(&folder)?, disk::exists(&folder.join(STEPS))) else {
        return Ok(None);
    };
    if disk::exists(&folder.join(DONE)) {
        return Ok(None);
    }
    for root in head.roots.iter().filter(|root| root.application) {
        let waits = match disk::is_folder(&root.path) {
            true => state::refuse_while_in_use(&root.path),
            false => Err(Error::failed("is not there any more, and is half done:")
                .at(&root.path)
                .hint("put it back, or mount it")),
        };
        if let Err(error) = waits {
            return match head.roots.iter().all(|root| root.application) {
                true => Ok(Some(error.to_string())),
                false => Err(error),
            };
        }
    }
    Ok(None)
}

/// Does what a swap in the journal still wants: all of it when its steps were published and nothing stands in the
/// way, else nothing.
///
/// # Errors
/// What can be neither done nor taken back yet.
pub fn settle(home: &LockedHome, rel: &RelPath, ctx: &Context) -> Result<Settlement> {
    let folder = home.root().join(rel.as_path());
    let head = read_head(&folder)?;
    let steps = match &head {
        Some(head) => read_steps(&folder, head)?,
        None => None,
    };
    let (Some(head), Some(steps)) = (head, steps) else {
        discard(&folder)?;
        return Ok(Settlement::GivenUp(None));
    };
    if let Some(done) = read_done(&folder)? {
        tidy(&head)?;
        return Ok(Settlement::Done(done));
    }
    let carry = Carry::open(&folder, &head, true)?;
    let failed = match carry.disturbed(&steps)? {
        Some(error) => error,
        None => match carry.run(&steps, ctx) {
            Ok(done) => {
                tidy(&head)?;
                return Ok(Settlement::Done(done));
            }
            Err(error) => error,
        },
    };
    let overtaken = carry.take_back(&steps, ctx)?;
    discard(&folder)?;
    let failed = match overtaken.len() as u64 {
        0 => failed.hint("nothing was changed"),
        n => failed.hint(format!(
            "everything was put back; {} had been changed meanwhile, see {}",
            human::plural(n, "file", "files"),
            human::path(&folder.join(OVERTAKEN))
        )),
    };
    Ok(Settlement::GivenUp(Some(failed)))
}

/// Takes the lock of an application's folder: homes have locks of their own, and two may share one such folder.
pub(super) fn locked(dir: &Dir, path: &Path) -> Result<FolderLock> {
    let attempt = FolderLock::attempt(dir).map_err(|e| Error::io("can not lock", path, e))?;
    attempt.ok_or_else(|| {
        Error::new(
            Kind::Locked,
            "another wbhome is at work in the agent application's folder:",
        )
        .at(path)
        .hint("wait until it is done, and run this again")
    })
}

/// Removes what was built, and the record but for what it keeps for others.
pub(super) fn discard(folder: &Path) -> Result<()> {
    // What has no head is no record, or nothing is left of one but its folder.
    let Some(head) = read_head(folder)? else {
        remove_empty(folder);
        return Ok(());
    };
    // The list first: without what was built it could not be carried out.
    remove(folder, OsStr::new(STEPS))?;
    tidy(&head)?;
    for (name, _) in disk::read_dir_names(folder)? {
        if name != OVERTAKEN && name != HEAD {
            remove(folder, &name)?;
        }
    }
    remove(folder, OsStr::new(HEAD))?;
    remove_empty(folder);
    Ok(())
}

/// Removes the folder of a record, unless something in it is kept.
fn remove_empty(folder: &Path) {
    if let (Some(parent), Some(name)) = (folder.parent(), folder.file_name())
        && let Ok(dir) = Dir::open(parent)
    {
        let _ = dir.remove_folder(name);
    }
}

/// Removes the staging folders, and gives the roots the time back that they had.
fn tidy(head: &Head) -> Result<()> {
    for (root, time) in head.roots.iter().zip(&head.times) {
        let staging = root.staging(&head.staging);
        let (parent, name) = split(&staging);
        remove(&root.path.join(parent), name)?;
        if let Ok(dir) = Dir::open(&root.path) {
            // A folder of somebody else's keeps the time of now: that is no reason to stop everybody.
            let _ = dir.set_time(stamp(*time)).and_then(|()| dir.sync());
        }
    }
    Ok(())
}

fn remove(folder: &Path, name: &OsStr) -> Result<()> {
    let removed = match Dir::open(folder) {
        Ok(dir) => disk::remove_tree(&dir, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|e| Error::io("can not remove", folder.join(name), e))
}

/// A swap whose folders are open.
pub(super) struct Carry {
    record: PathBuf,
    pub roots: Vec<Place>,
}

/// A root, and where new files wait for their place in it.
pub(super) struct Place {
    path: PathBuf,
    pub dir: Dir,
    pub staging: Dir,
    _lock: Option<FolderLock>,
}

impl Place {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Carry {
    /// Opens the folders of a swap. Those of the application are locked, unless whoever built the swap holds them
    /// locked still.
    pub fn open(record: &Path, head: &Head, lock: bool) -> Result<Carry> {
        let open = |root: &super::Root| {
            let fail = |e| Error::io("can not open the folder", &root.path, e);
            let dir = Dir::open(&root.path).map_err(fail)?;
            let _lock = match lock && root.application {
                true => Some(locked(&dir, &root.path)?),
                false => None,
            };
            let staging = root.staging(&head.staging);
            Ok(Place {
                staging: dir.make_beneath(&staging).map_err(fail)?,
                path: root.path.clone(),
                dir,
                _lock,
            })
        };
        Ok(Carry {
            record: record.to_path_buf(),
            roots: head.roots.iter().map(open).collect::<Result<_>>()?,
        })
    }

    pub fn record(&self) -> &Path {
        &self.record
    }

    pub fn root(&self, root: usize) -> io::Result<&Place> {
        self.roots
            .get(root)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn run(&self, steps: &[Step], ctx: &Context) -> Result<Done> {
        let (dressing, acts): (Vec<&Step>, Vec<&Step>) = steps
            .iter()
            .partition(|step| matches!(step, Step::Dress { .. }));
        let course = Course::of(steps);
        for step in &acts {
            failpoint::hit("swap.step");
            self.step(step, &course).map_err(|e| self.fail(step, e))?;
        }
        let done = Done {
            overtaken: self.keep_overtaken(steps, ctx)?,
        };
        for step in &dressing {
            self.step(step, &course).map_err(|e| self.fail(step, e))?;
        }
        for Place { path, dir, .. } in &self.roots {
            disk::sync_filesystem(dir)
                .map_err(|e| Error::io("can not write to the disk of", path, e))?;
        }
        let path = self.record.join(DONE);
        let text =
            serde_json::to_vec_pretty(&done).map_err(|e| Error::io("can not write", &path, e))?;
        disk::write_new(&path, &text, 0o600)?;
        failpoint::hit("swap.done");
        Ok(done)
    }

    pub fn fail(&self, step: &Step, error: io::Error) -> Error {
        let (root, at) = step.place();
        let root = self.roots.get(root).map(|place| place.path.as_path());
        let at = root.unwrap_or(Path::new("")).join(at);
        Error::io("can not give its new form or place to", at, error)
    }

    /// Whether something that is still to be replaced, moved or filled is not any more as it was seen.
    ///
    /// # Errors
    /// What can not be looked at.
    pub fn disturbed(&self, steps: &[Step]) -> Result<Option<Error>> {
        let course = Course::of(steps);
        for step in steps {
            let as_seen = self.is_as_seen(step, &course);
            if !as_seen.map_err(|e| self.fail(step, e))? {
                let (root, at) = step.place();
                let at = match step {
                    Step::Move { to, .. } => to,
                    _ => at,
                };
                let at = self.roots[root].path.join(at);
                return Ok(Some(
                    Error::failed("somebody has changed meanwhile what was to be replaced:")
                        .at(at)
                        .hint("end whoever writes there and run it again"),
                ));
            }
        }
        Ok(None)
    }

    fn is_as_seen(&self, step: &Step, course: &Course) -> io::Result<bool> {
        let (root, at) = step.place();
        let place = self.root(root)?;
        let there = || find(&place.dir, at);
        Ok(match step {
            Step::Take {
                old, aside, with, ..
            } => {
                if !course.waits(place, with)? {
                    return Ok(true);
                }
                let expected = match place.staging.find(OsStr::new(aside))? {
                    Some(_) => None,
                    None => *old,
                };
                there()?.as_ref().map(Seen::from) == expected
            }
            Step::Put {
                new, old, built, ..
            } => {
                let waits = place.staging.find(OsStr::new(built))?;
                if let Some(meta) = waits
                    && meta.ino == new.ino
                    && let Some((database, put)) = course.database_of(root, at)
                {
                    // A log goes beside the database that it belongs to and no other.
                    return Ok(course.waits(place, database)?
                        || there()?.is_none()
                            && find(&place.dir, put.0)?.as_ref().map(Seen::from) == Some(put.1));
                }
                if waits.is_some_and(|meta| meta.ino != new.ino) || course.takes(root, at) {
                    return Ok(true);
                }
                let now = there()?.as_ref().map(Seen::from);
                match waits {
                    Some(_) => now == *old,
                    // What was built is gone, and was never put.
                    None => {
                        place.staging.find(&second(built))?.is_some()
                            || now.is_none()
                            || now != *old
                    }
                }
            }
            Step::Move { to, ino, .. } => {
                let waits = there()?.is_some_and(|meta| meta.ino == *ino);
                let target = find(&place.dir, to)?;
                !waits
                    || target.is_none_or(|meta| meta.ino == *ino)
                    || course.moves.leaves(root, to)
            }
            Step::Make { .. } | Step::Drop { .. } | Step::Dress { .. } => true,
        })
    }

    fn step(&self, step: &Step, course: &Course) -> io::Result<()> {
        let (root, at) = step.place();
        let place = self.root(root)?;
        let Place { dir, staging, .. } = place;
        let (parent, name) = split(at);
        match step {
            Step::Take { aside, with, .. } => {
                let aside = OsStr::new(aside);
                // When the new database has its place, what lies beside it is its own.
                if course.waits(place, with)?
                    && staging.find(aside)?.is_none()
                    && let Some(parent) = below(dir, parent)?
                    && parent.find(name)?.is_some()
                {
                    parent.rename(name, staging, aside)?;
                }
                Ok(())
            }
            Step::Put { new, built, .. } => put(dir, parent, name, staging, built, *new),
            Step::Make { looks, .. } => make(dir, at, looks),
            Step::Move { to, ino, .. } => {
                if let Some(parent) = below(dir, parent)?
                    && parent.find(name)?.is_some_and(|meta| meta.ino == *ino)
                {
                    let (to, new) = split(to);
                    parent.rename(name, &dir.make_beneath(to)?, new)?;
                }
                Ok(())
            }
            Step::Drop { .. } => drop_empty(dir, at),
            Step::Dress { mtime, .. } => match below(dir, at)? {
                Some(folder) => folder.set_time(stamp(*mtime)),
                None => Ok(()),
            },
        }
    }

    /// What was taken off its place is in the staging folder, which goes. It is in the record too, unless
    /// somebody changed it in the last moment: then it is kept, and told.
    fn keep_overtaken(
        &self,
        steps: &[Step],
        ctx: &Context,
    ) -> Result<Vec<crate::base::wire::WirePath>> {
        let mut kept = Vec::new();
        for step in steps {
            let (root, at) = step.place();
            let (names, old) = match step {
                Step::Take { aside, old, .. } => (vec![OsString::from(aside)], *old),
                Step::Put { built, old, .. } => (vec![built.into(), second(built)], *old),
                _ => continue,
            };
            for name in names {
                let done = || -> io::Result<bool> {
                    let place = self.root(root)?;
                    match place.staging.find(&name)? {
                        Some(meta) if old != Some(Seen::from(&meta)) => {
                            self.overtake(root, at, &place.staging, &name, ctx)?;
                            Ok(true)
                        }
                        _ => Ok(false),
                    }
                };
                if done().map_err(|e| self.fail(step, e))? {
                    kept.push(at.to_path_buf().into());
                }
            }
        }
        Ok(kept)
    }

    /// The folder of the record in which what was to be at `at` is kept.
    pub fn room_for(&self, root: usize, at: &Path) -> io::Result<Dir> {
        let folder = self.record.join(OVERTAKEN).join(root.to_string());
        disk::create_private_folder(&folder).map_err(io::Error::other)?;
        Dir::open(&folder)?.make_beneath(split(at).0)
    }

    /// Keeps something in the record that somebody has made or changed meanwhile, which was to be at `at`.
    pub fn overtake(
        &self,
        root: usize,
        at: &Path,
        from: &Dir,
        name: &OsStr,
        ctx: &Context,
    ) -> io::Result<()> {
        let to = self.room_for(root, at)?;
        let mut own = split(at).1.to_owned();
        while to.find(&own)?.is_some() {
            own.push("-");
        }
        match from.rename(name, &to, &own) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                disk::duplicate_tree(from, name, &to, &own, ctx.stop)?;
                disk::remove_tree(from, name)
            }
            done => done,
        }
    }
}

/// What is at `at`, if anything.
pub(super) fn find(dir: &Dir, at: &Path) -> io::Result<Option<Meta>> {
    let (parent, name) = split(at);
    match below(dir, parent)? {
        Some(parent) => parent.find(name),
        None => Ok(None),
    }
}

/// The folder at `rel`; `None` when there is none.
pub(super) fn below(dir: &Dir, rel: &Path) -> io::Result<Option<Dir>> {
    match dir.open_beneath(rel) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a folder, or gives one that is there its looks.
pub(super) fn make(dir: &Dir, at: &Path, looks: &Looks) -> io::Result<()> {
    let folder = dir.make_beneath(at)?;
    if disk::is_root() {
        folder.set_owner(looks.uid, looks.gid)?;
    }
    folder.set_mode(looks.mode)?;
    folder.set_time(stamp(looks.mtime))
}

/// Removes a folder, unless something came into it: then it stays.
pub(super) fn drop_empty(dir: &Dir, at: &Path) -> io::Result<()> {
    let (parent, name) = split(at);
    match below(dir, parent)?.map(|parent| parent.remove_folder(name)) {
        Some(Err(error))
            if !matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Where a system that can not exchange names puts what a new file replaces.
pub(super) fn second(built: &str) -> OsString {
    format!("{built}.former").into()
}

/// Gives what was built its place. What was there has its name in the staging folder then.
fn put(
    dir: &Dir,
    parent: &Path,
    name: &OsStr,
    staging: &Dir,
    built: &str,
    new: Seen,
) -> io::Result<()> {
    let built_name = OsStr::new(built);
    let waits = staging.find(built_name)?;
    if waits.is_none_or(|meta| meta.ino != new.ino) {
        return Ok(());
    }
    let to = dir.make_beneath(parent)?;
    match to.find(name)? {
        None => return staging.rename(built_name, &to, name),
        Some(meta) if meta.kind == FileKind::Folder => {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Some(_) => {}
    }
    match staging.exchange(built_name, &to, name) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            to.rename(name, staging, &second(built))?;
            staging.rename(built_name, &to, name)
        }
        done => done,
    }
}
