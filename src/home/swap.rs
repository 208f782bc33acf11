//! Many files of one or several folders, replaced as one: wholly, or not at all.
//!
//! What is to be is first built complete beside what is there, in a staging folder on the same filesystem, and
//! what it replaces is kept in the record ([`Draft`]). Then the list of steps, `steps.jsonl`, is published in
//! one rename: before that moment a kill leaves everything as it was, and the next command removes what was
//! built; after it every step is carried out, by this command or by the next (`carry`). A step is a rename or
//! an exchange of names, needs no room on the disk, and can be done any number of times with the same end. When
//! one can not be done, or somebody has changed meanwhile what is still to be replaced, all that was done is taken
//! back: what was taken off its place waits in the staging folder until the end.
//!
//! What somebody changed in between is never overwritten: it is put into `overtaken/` and named.
//!
//! The record of a swap is a folder below the home:
//!
//! | name | what |
//! | --- | --- |
//! | `swap.json` | which folders, by which command |
//! | `former/<n>/…` | what was replaced in the n-th folder, under its former path: `cp -a` brings it back |
//! | `steps.jsonl` | what is done, a line each |
//! | `done.json` | it is done |
//! | `undone.json` | it was taken back ([`undo`]) |

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::OWN;
use super::{Home, RelPath};
use crate::base::wire::{self, WirePath};
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, Lines, Meta, Stamp};

mod back;
mod carry;
mod course;
mod draft;
mod moves;
mod undo;

pub use draft::Draft;
pub use undo::{Changed, Taken, changed_since, refuse_if_changed, undo};

pub(super) use carry::{Settlement, settle, waits};

/// How the names of staging folders begin.
const STAGING: &str = "swap-";
const HEAD: &str = "swap.json";
const STEPS: &str = "steps.jsonl";
const DONE: &str = "done.json";
const UNDONE: &str = "undone.json";
const FORMER: &str = "former";
const OVERTAKEN: &str = "overtaken";

/// The folders below `.wbhome` in which records lie, each in one of the command's own.
const RECORDS: [&str; 2] = ["migrations", "relinks"];

/// Whether the record of a swap may lie there. Much of what is in a record is removed in the end, so that it must be known
/// for one by its place.
pub(super) fn may_lie(rel: &Path) -> bool {
    let names: Vec<_> = rel.iter().filter_map(|name| name.to_str()).collect();
    match names.as_slice() {
        [own, records, _, _, ..] => *own == OWN && RECORDS.contains(records),
        _ => false,
    }
}

/// A folder in which files are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Where it is, without links.
    #[serde(with = "wire::exact_path")]
    pub path: PathBuf,
    /// Whether it is the agent application's own: nothing is done in it while the application runs.
    pub application: bool,
}

impl Root {
    /// Where new files are built: on the same filesystem, where nobody looks for files.
    fn staging(&self, name: &str) -> PathBuf {
        match self.application {
            true => PathBuf::from(format!(".wbhome-{name}")),
            false => Path::new(".wbhome/tmp").join(name),
        }
    }
}

/// `swap.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    version: String,
    command: String,
    begun: jiff::Timestamp,
    /// The name of the staging folders.
    staging: String,
    roots: Vec<Root>,
    /// When the roots changed last before anything was built in them, seconds and nanoseconds.
    times: Vec<(i64, u32)>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    ino: u64,
    size: u64,
    mtime: (i64, u32),
}

impl From<&Meta> for Seen {
    fn from(meta: &Meta) -> Self {
        Seen {
            ino: meta.ino,
            size: meta.size,
            mtime: pair(meta.mtime),
        }
    }
}

fn pair(stamp: Stamp) -> (i64, u32) {
    (stamp.seconds, stamp.nanos)
}

fn stamp((seconds, nanos): (i64, u32)) -> Stamp {
    Stamp { seconds, nanos }
}

/// A line of `steps.jsonl`. Paths are relative to the root, names without a path are in its staging folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Step {
    /// What belongs to a database goes, whether it was there when that was read or not: beside another database it
    /// would be damage.
    Take {
        root: usize,
        at: WirePath,
        old: Option<Seen>,
        aside: String,
        /// The new form of the database, as it waits.
        with: String,
    },
    /// A file that was built takes its place.
    Put {
        root: usize,
        at: WirePath,
        new: Seen,
        /// BLAKE3 of what was built, of a link's target, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        old: Option<Seen>,
        built: String,
    },
    /// A folder is made for what is put into it.
    Make {
        root: usize,
        at: WirePath,
        looks: Looks,
    },
    /// A file or folder gets another place.
    Move {
        root: usize,
        at: WirePath,
        to: WirePath,
        ino: u64,
    },
    /// A folder that became empty goes away.
    Drop {
        root: usize,
        at: WirePath,
        looks: Looks,
    },
    /// A folder gets the time back that it had.
    Dress {
        root: usize,
        at: WirePath,
        mtime: (i64, u32),
    },
}

/// How a folder looks that is made, or made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Looks {
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: (i64, u32),
}

impl From<&Meta> for Looks {
    fn from(meta: &Meta) -> Self {
        Looks {
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
            mtime: pair(meta.mtime),
        }
    }
}

impl Step {
    /// Steps are carried out in this order: a database's old log goes right before the new database comes, and its
    /// new one comes right after; what is moved has its new form by then.
    fn rank(&self) -> u8 {
        match self {
            Step::Take { .. } => 0,
            Step::Put { .. } => 3,
            Step::Make { .. } | Step::Move { .. } | Step::Drop { .. } => 4,
            Step::Dress { .. } => 5,
        }
    }

    /// What it names in the staging folder.
    fn names(&self) -> Vec<&str> {
        match self {
            Step::Take { aside, with, .. } => vec![aside, with],
            Step::Put { built, .. } => vec![built],
            _ => Vec::new(),
        }
    }

    fn place(&self) -> (usize, &Path) {
        match self {
            Step::Take { root, at, .. }
            | Step::Put { root, at, .. }
            | Step::Make { root, at, .. }
            | Step::Move { root, at, .. }
            | Step::Drop { root, at, .. }
            | Step::Dress { root, at, .. } => (*root, at),
        }
    }
}

/// `done.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// What somebody had changed in the last moment: it is kept in `overtaken/<n>/` of the record.
    pub overtaken: Vec<WirePath>,
}

/// A swap as its record tells it.
#[derive(Clone, Debug)]
pub struct Swap {
    folder: PathBuf,
    head: Head,
    steps: Vec<Step>,
    /// What somebody had changed while it was done.
    pub done: Done,
    /// Whether every step was carried out.
    pub is_done: bool,
    /// Whether it was taken back.
    pub is_undone: bool,
}

impl Swap {
    /// Reads the record at `rel`, a path below the home; `None` when there is none, or it was given up before
    /// anything was changed.
    ///
    /// # Errors
    /// When it can not be read or understood.
    pub fn read(home: &Home, rel: &RelPath) -> Result<Option<Swap>> {
        let folder = home.root().join(rel.as_path());
        let Some(head) = read_head(&folder)? else {
            return Ok(None);
        };
        let Some(steps) = read_steps(&folder, &head)? else {
            return Ok(None);
        };
        Ok(Some(Swap {
            done: read_done(&folder)?.unwrap_or_default(),
            is_done: disk::exists(&folder.join(DONE)),
            is_undone: disk::exists(&folder.join(UNDONE)),
            folder,
            head,
            steps,
        }))
    }

    /// The folders in which files were replaced.
    pub fn roots(&self) -> &[Root] {
        &self.head.roots
    }

    /// Whether that command made it.
    pub fn by(&self, command: &str) -> bool {
        self.head.command == command
    }

    /// What it has replaced or moved in the home, below that; not in folders of the application.
    pub fn in_home(&self) -> impl Iterator<Item = &Path> {
        let is_home = |root: usize| self.head.roots.get(root).is_some_and(|r| !r.application);
        let places = self.steps.iter().map(Step::place);
        places.filter_map(move |(root, at)| is_home(root).then_some(at))
    }

    /// When it was begun.
    pub fn begun(&self) -> jiff::Timestamp {
        self.head.begun
    }
}

/// Notes that a swap was taken back.
pub(super) fn mark_undone(home: &Home, rel: &RelPath, ctx: &Context) -> Result<()> {
    let path = home.root().join(rel.as_path()).join(UNDONE);
    if !disk::exists(&path) {
        let text = format!("{{\"at\": \"{}\"}}\n", ctx.clock.now());
        disk::write_new(&path, text.as_bytes(), 0o600)?;
    }
    // It is in its place again, perhaps as the very same file: kept here too, it would change with that.
    let folder = home.root().join(rel.as_path());
    Dir::open(&folder)
        .and_then(|dir| disk::remove_tree(&dir, std::ffi::OsStr::new(FORMER)))
        .map_err(|e| Error::io("can not remove", folder.join(FORMER), e))
}

fn read_head(folder: &Path) -> Result<Option<Head>> {
    let path = folder.join(HEAD);
    let Some(content) = disk::read_own(&path)? else {
        return Ok(None);
    };
    let head: Head = serde_json::from_slice(&content).map_err(|e| not_understood(&path, e))?;
    match is_name(&head.staging) && head.staging.starts_with(STAGING) {
        true => Ok(Some(head)),
        false => Err(strange(&path)),
    }
}

/// Whether it is the name of something, and no path.
fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_plain = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    is_plain && parts.next().is_none()
}

fn strange(path: &Path) -> Error {
    let why = std::io::Error::other("it names something that no command would have written");
    not_understood(path, why)
}

/// The steps; `None` when they were never published.
fn read_steps(folder: &Path, head: &Head) -> Result<Option<Vec<Step>>> {
    let path = folder.join(STEPS);
    if !disk::exists(&path) {
        return Ok(None);
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut failed = None;
    Lines::read(&path, |line| match serde_json::from_slice(line) {
        Ok(step) => steps.push(step),
        Err(error) => failed = failed.take().or(Some(error)),
    })?;
    if let Some(error) = failed {
        return Err(not_understood(&path, error));
    }
    for step in &steps {
        let (root, at) = step.place();
        // No command wrote a path that leads out; the folder itself is dressed.
        RelPath::new(at).map_err(|e| not_understood(&path, e))?;
        if root >= head.roots.len() || !step.names().into_iter().all(is_name) {
            return Err(strange(&path));
        }
        if let Step::Move { to, .. } = step {
            RelPath::new(&**to).map_err(|e| not_understood(&path, e))?;
        }
    }
    Ok(Some(steps))
}

fn read_done(folder: &Path) -> Result<Option<Done>> {
    let path = folder.join(DONE);
    let Some(content) = disk::read_own(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content)
        .map(Some)
        .map_err(|e| not_understood(&path, e))
}

fn not_understood(path: &Path, why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::io("can not understand the record", path, why)
        .hint("it was written by another version, or damaged: look into it before anything else")
}

/// The folder above a path, and its name there.
fn split(path: &Path) -> (&Path, &std::ffi::OsStr) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default(),
    )
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
