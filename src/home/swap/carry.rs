//! Carrying a swap out, or giving it up: what the command itself does, and what the next one does after a kill.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::{DONE, Done, Head, OVERTAKEN, STEPS, Seen, Step, read_head, read_steps, split, stamp};
use crate::base::{Context, Error, Result, failpoint};
use crate::disk::{self, Dir, FileKind};
use crate::home::{LockedHome, RelPath};
use crate::state;

/// What became of a swap that stood in the journal.
pub enum Settlement {
    /// It was given up: everything is as it was.
    GivenUp,
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
        if !disk::is_folder(&root.path) {
            let what = format!("{} is not there", crate::base::human::path(&root.path));
            return Ok(Some(what));
        }
        if let Err(error) = state::refuse_while_in_use(&root.path) {
            return match head.roots.iter().all(|root| root.application) {
                true => Ok(Some(error.to_string())),
                false => Err(error),
            };
        }
    }
    Ok(None)
}

/// Does what a swap in the journal still wants: all of it when its steps were published, else nothing.
///
/// # Errors
/// What can not be read, or done yet.
pub fn settle(home: &LockedHome, rel: &RelPath, ctx: &Context) -> Result<Settlement> {
    let folder = home.root().join(rel.as_path());
    let (Some(head), Some(steps)) = (read_head(&folder)?, read_steps(&folder)?) else {
        discard(&folder)?;
        return Ok(Settlement::GivenUp);
    };
    let path = folder.join(DONE);
    let done = match disk::read(&path)? {
        Some(content) => serde_json::from_slice(&content)
            .map_err(|e| Error::io("can not understand the record", &path, e))?,
        None => Carry::open(&folder, &head)?.run(&steps, ctx)?,
    };
    tidy(&head)?;
    Ok(Settlement::Done(done))
}

/// Removes what was built, and the record with it.
pub(super) fn discard(folder: &Path) -> Result<()> {
    if let Some(head) = read_head(folder)? {
        tidy(&head)?;
    }
    let (parent, name) = split(folder);
    remove(parent, name)
}

/// Removes the staging folders, and gives the roots the time back that they had.
fn tidy(head: &Head) -> Result<()> {
    for (root, time) in head.roots.iter().zip(&head.times) {
        let staging = root.staging(&head.staging);
        let (parent, name) = split(&staging);
        remove(&root.path.join(parent), name)?;
        if let Ok(dir) = Dir::open(&root.path) {
            dir.set_time(stamp(*time))
                .and_then(|()| dir.sync())
                .map_err(|e| Error::io("can not set the time of", &root.path, e))?;
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

struct Carry {
    record: PathBuf,
    roots: Vec<(PathBuf, Dir, Dir)>,
}

impl Carry {
    fn open(record: &Path, head: &Head) -> Result<Carry> {
        let open = |root: &super::Root| {
            let fail = |e| Error::io("can not open the folder", &root.path, e);
            let dir = Dir::open(&root.path).map_err(fail)?;
            let staging = dir
                .make_beneath(&root.staging(&head.staging))
                .map_err(fail)?;
            Ok((root.path.clone(), dir, staging))
        };
        Ok(Carry {
            record: record.to_path_buf(),
            roots: head.roots.iter().map(open).collect::<Result<_>>()?,
        })
    }

    fn run(&self, steps: &[Step], ctx: &Context) -> Result<Done> {
        let (dressing, acts): (Vec<&Step>, Vec<&Step>) = steps
            .iter()
            .partition(|step| matches!(step, Step::Dress { .. }));
        for step in &acts {
            failpoint::hit("swap.step");
            self.step(step).map_err(|e| self.fail(step, e))?;
        }
        let mut done = Done::default();
        for step in &acts {
            let kept = self
                .keep_overtaken(step, ctx)
                .map_err(|e| self.fail(step, e))?;
            done.overtaken.extend(kept.map(Into::into));
        }
        for step in &dressing {
            self.step(step).map_err(|e| self.fail(step, e))?;
        }
        for (path, dir, _) in &self.roots {
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

    fn fail(&self, step: &Step, error: io::Error) -> Error {
        let (root, at) = step.place();
        let root = self.roots.get(root).map(|r| r.0.as_path());
        Error::io(
            "can not give its new form to",
            root.unwrap_or(Path::new("")).join(at),
            error,
        )
        .hint("when the cause is gone, run any command that writes: it completes what was begun")
    }

    fn step(&self, step: &Step) -> io::Result<()> {
        let (root, at) = step.place();
        let Some((_, dir, staging)) = self.roots.get(root) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (parent, name) = split(at);
        match step {
            Step::Take { aside, .. } => {
                let aside = OsStr::new(aside);
                if staging.find(aside)?.is_none()
                    && let Some(parent) = below(dir, parent)?
                    && parent.find(name)?.is_some()
                {
                    parent.rename(name, staging, aside)?;
                }
                Ok(())
            }
            Step::Put { new, built, .. } => put(dir, parent, name, staging, built, *new),
            Step::Lift { ino, aside, .. } => {
                if let Some(parent) = below(dir, parent)?
                    && parent.find(name)?.is_some_and(|meta| meta.ino == *ino)
                {
                    parent.rename(name, staging, OsStr::new(aside))?;
                }
                Ok(())
            }
            Step::Make { mode, .. } => {
                let parent = dir.make_beneath(parent)?;
                match parent.make(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => parent.open_beneath(Path::new(name))?.set_mode(*mode),
                }
            }
            Step::Lower { aside, .. } => {
                let aside = OsStr::new(aside);
                if staging.find(aside)?.is_none() {
                    return Ok(());
                }
                let to = dir.make_beneath(parent)?;
                match staging.rename(aside, &to, name) {
                    // Made there since the plan: it is kept, and told.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        let kept = self.overtaken(root, at)?;
                        to.rename(name, &kept, split(at).1)?;
                        staging.rename(aside, &to, name)
                    }
                    done => done,
                }
            }
            Step::Drop { .. } => match below(dir, parent)?.map(|parent| parent.remove_folder(name))
            {
                // Something came into it: it stays.
                Some(Err(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Step::Dress { mtime, .. } => match below(dir, at)? {
                Some(folder) => folder.set_time(stamp(*mtime)),
                None => Ok(()),
            },
        }
    }

    /// What was taken off its place is in the staging folder, which goes. It is in the record too, unless
    /// somebody changed it after that: then it is kept, and told.
    fn keep_overtaken(&self, step: &Step, ctx: &Context) -> io::Result<Option<PathBuf>> {
        let (root, at) = step.place();
        let Some((_, _, staging)) = self.roots.get(root) else {
            return Ok(None);
        };
        let (names, old) = match step {
            Step::Take { aside, old, .. } => (vec![OsString::from(aside)], Some(*old)),
            Step::Put { built, old, .. } => (vec![built.into(), second(built)], *old),
            Step::Lower { .. } => {
                let kept = self.overtaken(root, at)?.find(split(at).1)?;
                return Ok(kept.map(|_| at.to_path_buf()));
            }
            _ => return Ok(None),
        };
        for name in names {
            let Some(meta) = staging.find(&name)? else {
                continue;
            };
            if old == Some(Seen::from(&meta)) {
                continue;
            }
            let own = split(at).1;
            let to = self.overtaken(root, at)?;
            if to.find(own)?.is_none() {
                match staging.rename(&name, &to, own) {
                    Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                        disk::duplicate_as(staging, &name, &to, own, ctx.stop)?;
                    }
                    done => done?,
                }
            }
            return Ok(Some(at.to_path_buf()));
        }
        Ok(None)
    }

    /// The folder of the record in which what somebody left at `at` is kept.
    fn overtaken(&self, root: usize, at: &Path) -> io::Result<Dir> {
        let folder = self.record.join(OVERTAKEN).join(root.to_string());
        disk::create_private_folder(&folder).map_err(io::Error::other)?;
        Dir::open(&folder)?.make_beneath(split(at).0)
    }
}

/// The folder at `rel`; `None` when there is none.
fn below(dir: &Dir, rel: &Path) -> io::Result<Option<Dir>> {
    match dir.open_beneath(rel) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a system that can not exchange names puts what a new file replaces.
fn second(built: &str) -> OsString {
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
    let built_meta = staging.find(built_name)?;
    if built_meta.is_none_or(|meta| meta.ino != new.ino) {
        return Ok(());
    }
    let to = dir.make_beneath(parent)?;
    match to.find(name)? {
        None => return staging.rename(built_name, &to, name),
        // A folder is nothing that was seen here: the new file waits until somebody has looked.
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

/// Where things are after the steps.
#[derive(Debug, Default)]
pub(super) struct Moves(BTreeMap<(usize, PathBuf), PathBuf>);

impl Moves {
    pub fn of(steps: &[Step]) -> Moves {
        let mut lifted: BTreeMap<(usize, &str), &Path> = BTreeMap::new();
        let mut moves = Moves::default();
        for step in steps {
            if let Step::Lift {
                root, at, aside, ..
            } = step
            {
                lifted.insert((*root, aside), at);
            }
        }
        for step in steps {
            if let Step::Lower { root, at, aside } = step
                && let Some(from) = lifted.get(&(*root, aside.as_str()))
            {
                moves
                    .0
                    .insert((*root, from.to_path_buf()), at.to_path_buf());
            }
        }
        moves
    }

    /// Where something is that was at `path`.
    pub fn follow(&self, root: usize, path: &Path) -> PathBuf {
        for ancestor in path.ancestors() {
            if let Some(to) = self.0.get(&(root, ancestor.to_path_buf()))
                && let Ok(rest) = path.strip_prefix(ancestor)
            {
                return match rest.as_os_str().is_empty() {
                    true => to.clone(),
                    false => to.join(rest),
                };
            }
        }
        path.to_path_buf()
    }

    /// The same moves, taken back.
    pub fn reversed(&self) -> Moves {
        let turned = self
            .0
            .iter()
            .map(|((root, from), to)| ((*root, to.clone()), from.clone()));
        Moves(turned.collect())
    }

    /// Root, from, to.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Path, &Path)> {
        self.0
            .iter()
            .map(|((root, from), to)| (*root, from.as_path(), to.as_path()))
    }
}
