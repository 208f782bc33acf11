//! git's index: what it knows of each file, and writing it so that `git status` has nothing to read again.
//!
//! The new index is written beside the old one and renamed over it while `index.lock` is held: git's own protocol.

mod format;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{Index, IndexEntry, IndexTime, Oid};

use super::repository::{OWN, Repository, torn};
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::{self, Dir, FileKind, Meta, NewFile, Stamp};
use crate::home::LockedHome;

/// The modes that git knows of what is no folder.
pub(super) const FILE: u32 = 0o100_644;
pub(super) const EXECUTABLE: u32 = 0o100_755;
pub(super) const LINK: u32 = 0o120_000;

/// The index of a repository as it was read.
pub(super) struct Staging {
    /// Where the new one is written.
    place: PathBuf,
    /// What the old one was; `None` when there was none.
    pub seen: Option<Meta>,
    /// Its entries, in git's order.
    pub entries: Vec<IndexEntry>,
    trust_mode: bool,
    /// Whether what it says of a file is what this program would say. git may have put other bytes into an object than
    /// the file holds (line ends, filters), and calls the file clean all the same.
    is_ours: bool,
    converting: bool,
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Staging({} entries)", self.entries.len())
    }
}

const INTENT_TO_ADD: u16 = 1 << 13;
/// What an entry says of a file that is not there on purpose (sparse checkout).
pub(super) const SKIP_WORKTREE: u16 = 1 << 14;
const STAGE: u16 = 0x3000;

impl Staging {
    /// Reads the index of a repository.
    ///
    /// # Errors
    /// One that can not be read, or that has conflicts.
    pub fn read(repository: &Repository) -> Result<Staging> {
        let file = repository.dir().join("index");
        let fail = |e| torn(repository.dir(), "the index", e);
        let seen = disk::stat(&file)?;
        let index =
            Index::open(&file).map_err(|e| match e.message().contains("extension") {
                true => fail(e)
                    .hint("git update-index --no-split-index makes it one that others can read"),
                false => fail(e)
                    .hint("git can make the index again: move .git/index away, then git reset"),
            })?;
        let mut entries = Vec::with_capacity(index.len());
        entries.extend(index.iter());
        drop(index);
        if let Some(conflict) = entries.iter().find(|entry| entry.flags & STAGE != 0) {
            return Err(Error::failed(format!(
                "a merge has left a conflict in {}, so nothing is committed:",
                human::bytes(&conflict.path)
            ))
            .at(repository.dir())
            .hint("settle it with git add, or give the merge up"));
        }
        let config = repository
            .git
            .config()
            .and_then(|mut config| config.snapshot());
        let trust_mode = config
            .and_then(|config| config.get_bool("core.fileMode"))
            .unwrap_or(true);
        let converting = !repository.advice().is_empty();
        let is_ours = Written::read(repository).is_some_and(|written| {
            let same = written.sum == sum_of(&file) && written.sum.bytes().any(|b| b != b'0');
            same || !written.converting && !converting
        });
        Ok(Staging {
            place: file,
            seen,
            entries,
            trust_mode,
            is_ours,
            converting,
        })
    }

    /// The place of the entry of a path.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        let of = |entry: &IndexEntry| entry.path.as_slice().cmp(path);
        self.entries.binary_search_by(of).ok()
    }

    /// Whether an entry says for sure that its file is what was committed.
    pub fn is_clean(&self, entry: &IndexEntry, meta: &Meta) -> bool {
        let racy = self.seen.is_none_or(|index| meta.mtime >= index.mtime);
        let found = self.described(meta, Some(entry.mode));
        !racy
            && self.is_ours
            && entry.flags_extended & INTENT_TO_ADD == 0
            && found.is_some_and(|found| {
                found.mode == entry.mode
                    && found.file_size == entry.file_size
                    && same_time(found.mtime, entry.mtime)
                    && same_time(found.ctime, entry.ctime)
                    && (found.ino, found.uid, found.gid) == (entry.ino, entry.uid, entry.gid)
            })
    }

    /// The entry of a file in a state, without its name and object; `None` of what is neither file nor link.
    /// `former` is the mode that it is committed with, which stays where the filesystem has none.
    pub fn described(&self, meta: &Meta, former: Option<u32>) -> Option<IndexEntry> {
        let mode = match (meta.kind, former) {
            (FileKind::Symlink, _) => LINK,
            (FileKind::File, Some(former @ (FILE | EXECUTABLE))) if !self.trust_mode => former,
            (FileKind::File, _) if self.trust_mode && meta.mode & 0o100 != 0 => EXECUTABLE,
            (FileKind::File, _) => FILE,
            _ => return None,
        };
        // git keeps the low 32 bits of each.
        #[allow(clippy::cast_possible_truncation, reason = "as git does")]
        Some(IndexEntry {
            ctime: time(meta.ctime),
            mtime: time(meta.mtime),
            dev: meta.dev as u32,
            ino: meta.ino as u32,
            mode,
            uid: meta.uid,
            gid: meta.gid,
            file_size: meta.size as u32,
            id: Oid::ZERO_SHA1,
            flags: 0,
            flags_extended: 0,
            path: Vec::new(),
        })
    }

    /// Writes what stands in the index but for `former`, and what is new, and renames the result over the index. With
    /// `trees`, the names of the trees that it makes, git need not compare it with the last commit. `all_read` says that
    /// every file that the history holds was looked at.
    pub fn write(
        &self,
        repository: &Repository,
        former: &HashSet<usize>,
        new: &[IndexEntry],
        trees: Option<&[u8]>,
        all_read: bool,
    ) -> Result<()> {
        let io = |e| {
            Error::io(
                "can not write the index of the repository",
                repository.dir(),
                e,
            )
        };
        let own = repository.dir().join(OWN);
        disk::create_private_folder(&own)?;
        let stays = |(at, entry)| (!former.contains(&at)).then_some(entry);
        let mut all: Vec<&IndexEntry> = self.entries.iter().enumerate().filter_map(stays).collect();
        all.extend(new);
        all.sort_by(|a, b| a.path.cmp(&b.path));
        let own = Dir::open(&own).map_err(io)?;
        let git = Dir::open(repository.dir()).map_err(io)?;
        let draft = NewFile::create(&own).map_err(io)?;
        let mut out = BufWriter::new(draft.file());
        format::write(&mut out, all.into_iter(), trees).map_err(io)?;
        std::io::Write::flush(&mut out).map_err(io)?;
        drop(out);
        // Readable by whom it was before, or by whom the repository is.
        let like = self.seen.or(disk::stat(&repository.dir().join("HEAD"))?);
        let now = Meta::of(draft.file()).map_err(io)?.mtime;
        draft
            .dress(None, like.map_or(0o600, |like| like.mode), now)
            .map_err(io)?;
        draft.sync().map_err(io)?;
        draft.publish_over(OsStr::new("index")).map_err(io)?;
        own.replace_in(OsStr::new("index"), &git, OsStr::new("index"))
            .map_err(io)?;
        git.sync().map_err(io)?;
        match self.is_ours || all_read {
            true => self.note(repository),
            false => Ok(()),
        }
    }

    /// Remembers that the index is one that this program has read all of.
    fn note(&self, repository: &Repository) -> Result<()> {
        let written = Written {
            sum: sum_of(&self.place),
            converting: self.converting,
        };
        written.write(repository)
    }
}

/// What is remembered of the index that was last read whole.
#[derive(PartialEq, Eq)]
struct Written {
    /// The checksum at its end.
    sum: String,
    /// Whether the repository was set up so that git would change bytes.
    converting: bool,
}

impl Written {
    fn read(repository: &Repository) -> Option<Written> {
        let file = repository.dir().join(OWN).join("index-sum");
        let text = String::from_utf8(disk::read_small(&file, 1 << 10).ok()??).ok()?;
        let (sum, converting) = text.trim_end().split_once(' ')?;
        Some(Written {
            sum: sum.to_owned(),
            converting: converting != "plain",
        })
    }

    fn write(&self, repository: &Repository) -> Result<()> {
        if Written::read(repository).as_ref() == Some(self) {
            return Ok(());
        }
        let own = repository.dir().join(OWN);
        disk::create_private_folder(&own)?;
        let how = if self.converting {
            "converting"
        } else {
            "plain"
        };
        let text = format!("{} {how}\n", self.sum);
        disk::replace_any(&own.join("index-sum"), text.as_bytes(), 0o600)
    }
}

/// The checksum at the end of an index, as text; empty when there is none.
fn sum_of(index: &Path) -> String {
    let bytes = disk::read_end(index, 20).ok().flatten().unwrap_or_default();
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn time(stamp: Stamp) -> IndexTime {
    #[allow(clippy::cast_possible_truncation, reason = "as git does")]
    IndexTime::new(stamp.seconds as i32, stamp.nanos)
}

fn same_time(one: IndexTime, other: IndexTime) -> bool {
    (one.seconds(), one.nanoseconds()) == (other.seconds(), other.nanoseconds())
}

/// `index.lock`, held: no git writes the index meanwhile.
#[derive(Debug)]
pub(super) struct IndexLock {
    dir: Dir,
}

const LOCK: &str = "index.lock";

/// How a lock file of ours begins; git leaves its own empty or writes an index into it.
const OURS: &str = "wbhome commit, home ";

impl IndexLock {
    /// Takes the lock, waiting for at most `wait`: `git status` holds it for a moment. One that a killed run of ours
    /// has left says so itself, and is taken over: whoever calls this holds the lock of the home.
    ///
    /// # Errors
    /// [`Kind::Locked`] when anybody else has it and does not give it back.
    pub fn take(
        repository: &Repository,
        home: &LockedHome,
        wait: Duration,
        context: &Context,
    ) -> Result<IndexLock> {
        let path = repository.dir().join(LOCK);
        let io = |e| Error::io("can not take the lock", &path, e);
        let dir = Dir::open(repository.dir()).map_err(io)?;
        let first = format!("{OURS}{}\n", home.id());
        let text = format!(
            "{first}process {}\nsince {}\n",
            std::process::id(),
            context.clock.now()
        );
        let began = Instant::now();
        loop {
            let mut file = NewFile::create(&dir).map_err(io)?;
            std::io::Write::write_all(&mut file.file(), text.as_bytes()).map_err(io)?;
            // It appears with its text in it, so that there is no moment in which it could be anybody's.
            match file.publish(OsStr::new(LOCK)) {
                Ok(()) => {
                    drop(file);
                    return Ok(IndexLock { dir });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io(error)),
            }
            let Some(found) = disk::stat(&path)? else {
                continue;
            };
            let there = disk::read_small_in(&dir, OsStr::new(LOCK), 1 << 10)
                .ok()
                .flatten();
            if there.is_some_and(|there| there.starts_with(first.as_bytes())) {
                dir.unlink(OsStr::new(LOCK)).map_err(io)?;
                continue;
            }
            // One that has stood for so long belongs to an editor, or to nobody.
            let old = context.clock.now().duration_since(found.mtime.timestamp());
            if began.elapsed() >= wait || old.unsigned_abs() >= wait && old.is_positive() {
                return Err(held(&path, &found, context));
            }
            context.stop.check()?;
            std::thread::sleep(PAUSE);
        }
    }
}

/// Between two looks at somebody else's lock.
const PAUSE: Duration = Duration::from_millis(20);

fn held(path: &Path, found: &Meta, context: &Context) -> Error {
    let since = human::age(context.clock.now(), found.mtime.timestamp());
    Error::new(
        Kind::Locked,
        format!("a git command holds the repository, since {since}:"),
    )
    .at(path)
    .hint("wait for it, or close the editor that it opened")
    .hint(format!(
        "if no git command runs any more: rm {}",
        human::quoted(path)
    ))
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // What stays is taken over by the next commit.
        let _ = self.dir.unlink(OsStr::new(LOCK));
    }
}
