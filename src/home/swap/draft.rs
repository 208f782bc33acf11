//! A swap that is being built: new files beside the old ones, the old ones kept, nothing changed yet.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::carry::{self, Carry};
use super::{
    Done, FORMER, HEAD, Head, Looks, Root, STAGING, STEPS, Seen, Step, pair, read_done, split,
};
use crate::base::{self, Context, Error, Result, failpoint, human};
use crate::disk::{self, Buffers, Digest, Dir, FileKind, FolderLock, Meta, NewFile};
use crate::home::journal::{self, Pending};
use crate::home::{LockedHome, RelPath};
use crate::state;

mod order;

/// A swap that is being built. Dropped without [`Draft::commit`], it leaves everything as it was. Files may be
/// added by several workers at once.
#[must_use = "nothing is changed before it is committed"]
pub struct Draft<'d> {
    home: &'d LockedHome,
    ctx: &'d Context<'d>,
    /// The record, and its path below the home.
    folder: PathBuf,
    head: Head,
    roots: Vec<Open>,
    steps: Mutex<Vec<Step>>,
    next: AtomicU64,
    pending: Option<Pending>,
}

/// A root that is open.
struct Open {
    dir: Dir,
    staging: Dir,
    former: Dir,
    /// Nobody else changes an application's folder meanwhile.
    lock: Option<FolderLock>,
    /// Folders below `former` that are there.
    made: Mutex<HashSet<PathBuf>>,
}

impl<'d> Draft<'d> {
    /// Begins a swap in these folders, whose record is at `rel` below the home. `then` are the journal's
    /// further steps, done after the last file has its place.
    ///
    /// # Errors
    /// When the record or a staging folder can not be made; a folder that lies in another one.
    pub fn begin(
        home: &'d LockedHome,
        rel: &RelPath,
        command: &str,
        roots: Vec<Root>,
        then: Vec<journal::Step>,
        ctx: &'d Context<'d>,
    ) -> Result<Draft<'d>> {
        apart(&roots)?;
        let folder = home.root().join(rel.as_path());
        let mut steps = vec![journal::Step::Swap {
            record: rel.as_path().to_string_lossy().into_owned(),
        }];
        steps.extend(then);
        let name = format!(
            "{STAGING}{}-{:016x}",
            ctx.clock.stamp(),
            ctx.clock.random() as u64
        );
        let times = roots.iter().map(|root| time_of(&root.path));
        let head = Head {
            schema: "wbhome/swap/1".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            command: command.to_owned(),
            begun: ctx.clock.now(),
            staging: name,
            times: times.collect::<Result<_>>()?,
            roots,
        };
        disk::create_private_folder(&folder)?;
        let text = serde_json::to_vec_pretty(&head)
            .map_err(|e| Error::failed("can not write the record").because(e))?;
        disk::write_new(&folder.join(HEAD), &text, 0o600)?;
        let pending = journal::begin(home, command, steps, ctx)?;
        let mut draft = Draft {
            home,
            ctx,
            folder,
            head,
            roots: Vec::new(),
            steps: Mutex::default(),
            next: AtomicU64::new(0),
            pending: Some(pending),
        };
        failpoint::hit("swap.begun");
        for number in 0..draft.head.roots.len() {
            let open = draft.open(number)?;
            draft.roots.push(open);
        }
        Ok(draft)
    }

    fn open(&self, number: usize) -> Result<Open> {
        let root = &self.head.roots[number];
        let staging = root.staging(&self.head.staging);
        let fail = |e| Error::io("can not build new files in", root.path.join(&staging), e);
        let dir = Dir::open(&root.path).map_err(fail)?;
        let lock = match root.application {
            true => Some(carry::locked(&dir, &root.path)?),
            false => None,
        };
        if root.application {
            nobody_elses(&dir, &root.path)?;
        }
        let place = root.path.join(&staging);
        let staging = dir.make_beneath(&staging).map_err(fail)?;
        if root.application {
            // For whoever finds it: only this home can finish what it has begun.
            let name = human::path(self.home.root()) + "\n";
            disk::write_new(&place.join(OF_HOME), name.as_bytes(), 0o600)?;
        }
        let former = self.folder.join(FORMER).join(number.to_string());
        disk::create_private_folder(&former)?;
        let former = Dir::open(&former).map_err(|e| Error::io("can not open", &former, e))?;
        Ok(Open {
            dir,
            staging,
            former,
            lock,
            made: Mutex::default(),
        })
    }

    /// The record's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A root, open.
    pub fn dir(&self, root: usize) -> &Dir {
        &self.roots[root].dir
    }

    /// Where new files of a root are built.
    pub fn staging(&self, root: usize) -> &Dir {
        &self.roots[root].staging
    }

    fn name(&self, kind: &str) -> String {
        format!("{kind}{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn push(&self, step: Step) {
        if let Ok(mut steps) = self.steps.lock() {
            steps.push(step);
        }
    }

    /// A file that was built in [`Draft::staging`], complete and dressed, shall take the place of the file at
    /// `path`, which was seen as `old` and is kept. Returns the name under which it waits.
    ///
    /// # Errors
    /// When it can not be named, or the old one not be kept.
    pub fn put(
        &self,
        root: usize,
        path: &Path,
        mut new: NewFile,
        digest: &Digest,
        old: &Meta,
    ) -> Result<String> {
        let built = self.name("f");
        let fail = |e| self.fail(root, path, e);
        new.publish(OsStr::new(&built)).map_err(fail)?;
        self.put_built(root, path, &built, Some(digest), old)?;
        Ok(built)
    }

    /// Like [`Draft::put`], for one more name of a hard-linked file whose new form waits under `first`.
    ///
    /// # Errors
    /// As there.
    pub fn put_again(&self, root: usize, path: &Path, first: &str, old: &Meta) -> Result<()> {
        let built = self.name("f");
        let staging = &self.roots[root].staging;
        staging
            .hard_link(staging, OsStr::new(first), OsStr::new(&built))
            .map_err(|e| self.fail(root, path, e))?;
        self.put_built(root, path, &built, None, old)
    }

    /// Like [`Draft::put`], for a link that shall point to `target`.
    ///
    /// # Errors
    /// As there.
    pub fn put_link(&self, root: usize, path: &Path, target: &[u8], old: &Meta) -> Result<()> {
        let built = self.name("l");
        let (staging, name) = (&self.roots[root].staging, OsStr::new(&built));
        let fail = |e| self.fail(root, path, e);
        staging.symlink(target, name).map_err(fail)?;
        if disk::is_root() {
            staging.set_owner_of(name, old.uid, old.gid).map_err(fail)?;
        }
        staging.set_time_of(name, old.mtime).map_err(fail)?;
        self.put_built(root, path, &built, Some(&disk::digest(target)), old)
    }

    /// What waits under `built` shall take its place at `path`; what is there is kept.
    fn put_built(
        &self,
        root: usize,
        path: &Path,
        built: &str,
        digest: Option<&Digest>,
        old: &Meta,
    ) -> Result<()> {
        self.keep(root, path, old, false)?;
        self.put_prepared(root, path, built, digest, Some(old.into()))
    }

    pub(super) fn put_prepared(
        &self,
        root: usize,
        path: &Path,
        built: &str,
        digest: Option<&Digest>,
        old: Option<Seen>,
    ) -> Result<()> {
        let new = self.roots[root]
            .staging
            .stat(OsStr::new(built))
            .map_err(|e| self.fail(root, path, e))?;
        self.push(Step::Put {
            root,
            at: path.to_path_buf().into(),
            new: (&new).into(),
            digest: digest.map(|digest| digest.to_hex().to_string()),
            old,
            built: built.to_owned(),
        });
        Ok(())
    }

    /// A new name in the staging folder.
    pub(super) fn new_name(&self) -> String {
        self.name("f")
    }

    /// A folder in which a new file is built that has to have a name from the beginning, such as a database:
    /// where it is, and open.
    ///
    /// # Errors
    /// When it can not be made.
    pub fn workshop(&self, root: usize) -> Result<(PathBuf, Dir)> {
        let name = self.name("w");
        let place = &self.head.roots[root];
        let path = place
            .path
            .join(place.staging(&self.head.staging))
            .join(&name);
        let dir = self.roots[root].staging.make_beneath(Path::new(&name));
        Ok((
            path.clone(),
            dir.map_err(|e| Error::io("can not make the folder", path, e))?,
        ))
    }

    /// Like [`Draft::put`], for a file that was built as `name` in a [`Draft::workshop`]: it gets the mode, owner,
    /// time and attributes of the old one.
    ///
    /// # Errors
    /// As there.
    pub fn put_worked(
        &self,
        root: usize,
        path: &Path,
        workshop: &Dir,
        name: &OsStr,
        old: &Meta,
    ) -> Result<String> {
        let fail = |e| self.fail(root, path, e);
        let built = self.name("f");
        let (parent, own) = split(path);
        let from = self.roots[root].dir.open_beneath(parent).map_err(fail)?;
        let new = workshop.open_file(name).map_err(fail)?;
        // An attribute that can not be kept is no reason to leave the file as it is.
        let _ = from
            .open_file(own)
            .and_then(disk::Xattrs::of)
            .map(|attributes| attributes.apply(&new));
        disk::dress_file(
            &new,
            disk::is_root().then_some((old.uid, old.gid)),
            old.mode,
            old.mtime,
        )
        .map_err(fail)?;
        workshop
            .rename(name, &self.roots[root].staging, OsStr::new(&built))
            .map_err(fail)?;
        self.keep(root, path, old, true)?;
        let stop = self.ctx.stop;
        let digest = disk::check_open(&new, &mut Buffers::new(), stop, &mut |_, _| {});
        let digest = digest.ok().map(|checked| checked.digest);
        self.put_prepared(root, path, &built, digest.as_ref(), Some(old.into()))?;
        Ok(built)
    }

    /// What belongs to the database whose new form waits under `built` shall go away, whether there is anything
    /// yet or not; what was seen is kept.
    ///
    /// # Errors
    /// When it can not be kept.
    pub fn take(&self, root: usize, path: &Path, old: Option<&Meta>, built: &str) -> Result<()> {
        if let Some(old) = old {
            self.keep(root, path, old, true)?;
        }
        self.take_kept(root, path, old.map(Seen::from), built);
        Ok(())
    }

    pub(super) fn take_kept(&self, root: usize, path: &Path, old: Option<Seen>, built: &str) {
        self.push(Step::Take {
            root,
            at: path.to_path_buf().into(),
            old,
            aside: self.name("t"),
            with: built.to_owned(),
        });
    }

    /// The file or folder at `from` shall have its place at `to`. What stands there must be moved away before:
    /// things are moved, and folders made and dropped, in the order in which that is asked for.
    pub fn shift(&self, root: usize, from: &Path, to: &Path, ino: u64) {
        self.push(Step::Move {
            root,
            at: from.to_path_buf().into(),
            to: to.to_path_buf().into(),
            ino,
        });
    }

    /// A folder shall be made, like the one that `like` describes.
    pub fn make(&self, root: usize, path: &Path, like: &Meta) {
        self.make_like(root, path, like.into());
    }

    pub(super) fn make_like(&self, root: usize, path: &Path, looks: Looks) {
        self.push(Step::Make {
            root,
            at: path.to_path_buf().into(),
            looks,
        });
    }

    /// A folder shall go away when it is empty.
    pub fn drop_empty(&self, root: usize, path: &Path, meta: &Meta) {
        self.drop_like(root, path, meta.into());
    }

    pub(super) fn drop_like(&self, root: usize, path: &Path, looks: Looks) {
        self.push(Step::Drop {
            root,
            at: path.to_path_buf().into(),
            looks,
        });
    }

    pub(super) fn dress(&self, root: usize, path: &Path, mtime: (i64, u32)) {
        self.push(dress(root, path, mtime));
    }

    /// Keeps what is at `path` in the record: under a second name where that is possible, else as a copy.
    fn keep(&self, root: usize, path: &Path, old: &Meta, in_place: bool) -> Result<()> {
        let open = &self.roots[root];
        let (parent, name) = split(path);
        let fail = |e| self.fail(root, path, e);
        let from = open.dir.open_beneath(parent).map_err(fail)?;
        let to = match open.made.lock().is_ok_and(|made| made.contains(parent)) {
            true => open.former.open_beneath(parent),
            false => open.former.make_beneath(parent),
        }
        .map_err(fail)?;
        if let Ok(mut made) = open.made.lock() {
            made.insert(parent.to_path_buf());
        }
        // A database is written in place: a second name would change with it.
        if old.kind == FileKind::File && !in_place && to.hard_link(&from, name, name).is_ok() {
            return Ok(());
        }
        disk::duplicate_as(&from, name, &to, name, self.ctx.stop).map_err(fail)?;
        Ok(())
    }

    fn fail(&self, root: usize, path: &Path, error: io::Error) -> Error {
        let full = base::is_full(&error);
        let at = self.head.roots[root].path.join(path);
        let error = Error::io("can not prepare the new form of", at, error);
        match full {
            true => error.hint("the disk is full: nothing was changed; make room and run it again"),
            false => error.hint("nothing was changed"),
        }
    }

    /// Whether anything is to be done.
    pub fn is_empty(&self) -> bool {
        self.steps.lock().is_ok_and(|steps| steps.is_empty())
    }

    /// Carries it out.
    ///
    /// # Errors
    /// Before the steps are published, with nothing changed: a full disk, something that changed meanwhile, an
    /// application that was started. After it what is left to do is done by the next command.
    pub fn commit(mut self) -> Result<Done> {
        let (steps, text) = self.finished_steps()?;
        for (open, root) in self.roots.iter().zip(&self.head.roots) {
            for dir in [&open.staging, &open.former] {
                disk::sync_filesystem(dir)
                    .map_err(|e| Error::io("can not write to the disk of", &root.path, e))?;
            }
        }
        failpoint::hit("swap.staged");
        self.ctx
            .stop
            .check()
            .map_err(|e| e.hint("nothing was changed"))?;
        // Everything must be as it was seen.
        if let Some(error) = Carry::open(&self.folder, &self.head, false)?.disturbed(&steps)? {
            return Err(error.hint("nothing was changed"));
        }
        for root in self.head.roots.iter().filter(|root| root.application) {
            state::refuse_while_in_use(&root.path)?;
        }
        disk::write_new(&self.folder.join(STEPS), &text, 0o600)?;
        let Some(pending) = self.pending.take() else {
            return Err(died());
        };
        failpoint::hit("swap.committed");
        // Whoever carries it out takes them, and looks again whether everything is as it was seen.
        for open in &mut self.roots {
            open.lock = None;
        }
        pending.complete(self.home, self.ctx)?;
        Ok(read_done(&self.folder)?.unwrap_or_default())
    }

    #[cfg(test)]
    pub(super) fn unlock_for_a_test(&mut self) {
        for open in &mut self.roots {
            open.lock = None;
        }
    }

    #[cfg(test)]
    pub(super) fn steps_for_a_test(&mut self) -> Vec<u8> {
        self.finished_steps().unwrap().1
    }
}

impl Drop for Draft<'_> {
    /// Given up: everything is as it was. What can not be removed now is removed by the next command.
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take()
            && carry::discard(&self.folder).is_ok()
        {
            let _ = pending.forget();
        }
    }
}

fn dress(root: usize, path: &Path, mtime: (i64, u32)) -> Step {
    Step::Dress {
        root,
        at: path.to_path_buf().into(),
        mtime,
    }
}

fn died() -> Error {
    Error::new(
        crate::base::Kind::Bug,
        "a worker died while it built new files",
    )
}

/// The name of the file in a staging folder that says whose it is.
const OF_HOME: &str = "home.txt";

/// What another home has begun in a folder must be settled by that home first.
fn nobody_elses(dir: &Dir, path: &Path) -> Result<()> {
    let names = dir
        .names()
        .map_err(|e| Error::io("can not list", path, e))?;
    let begun = names
        .into_iter()
        .find(|(name, _)| name.as_encoded_bytes().starts_with(b".wbhome-swap-"));
    let Some((name, _)) = begun else {
        return Ok(());
    };
    let begun = path.join(name);
    let home = disk::read_own(&begun.join(OF_HOME))?.unwrap_or_default();
    let home = human::escape(String::from_utf8_lossy(&home).trim()).into_owned();
    Err(Error::failed("another home has begun to change the agent application's folder, and was stopped:")
        .at(&begun)
        .hint(format!("settle that first, with any command that writes: wbhome --home {} index", human::quoted(Path::new(&home))))
        .hint("if that home is gone, look into the folder: it holds new forms of files, or old ones that were taken off their place"))
}

/// The time of a root before anything was built in it.
fn time_of(root: &Path) -> Result<(i64, u32)> {
    let dir = Dir::open(root).map_err(|e| Error::io("can not open the folder", root, e))?;
    let meta = dir
        .meta()
        .map_err(|e| Error::io("can not look at the folder", root, e))?;
    Ok(pair(meta.mtime))
}

/// No root may lie in another: one would see what is built in the other.
fn apart(roots: &[Root]) -> Result<()> {
    for (i, one) in roots.iter().enumerate() {
        for (j, other) in roots.iter().enumerate() {
            let inside = disk::is_inside(&one.path, &other.path)
                .map_err(|e| Error::io("can not compare the places of", &one.path, e))?;
            if i != j && inside {
                return Err(Error::failed("lies in")
                    .at(&other.path)
                    .hint(format!("move {} out of it", human::path(&one.path))));
            }
        }
    }
    Ok(())
}
