//! Keeping the repository small and quick: few packs, no heap of loose objects, deltas where they help.
//!
//! Each commit writes a pack, so every so often the small ones go into that of the next commit, as they stand: that
//! costs no more than the commit itself. Deltas are looked for only when a person or the night asks
//! ([`now`]): that takes as long as the repository is large. `git gc` would not find them, because it never compares
//! two objects that stand whole in one pack.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use git2::Oid;
use serde::Serialize;

use super::read::Sink;
use super::repository::{Repository, torn};
use super::{loose, pack};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::LockedHome;

/// git's folder for packs, opened.
pub(super) fn folder_of_packs(repository: &Repository) -> Result<Dir> {
    let packs = repository.git.commondir().join("objects/pack");
    disk::create_private_folder(&packs)?;
    Dir::open(&packs).map_err(|e| Error::io("can not open", &packs, e))
}

/// So many packs may lie there before small ones are folded; git itself begins to complain at 50.
const PACKS: usize = 24;

/// Larger packs than this are left to [`now`]: a commit must stay quick.
const LARGEST: u64 = 16 << 20;

/// Small packs whose objects go into the next one.
pub(super) struct Small {
    names: Vec<String>,
}

/// Looks whether there are too many packs, and which ones to fold: as many of the smallest as keep each pack that
/// stays twice as large as all smaller ones together, so that an object is moved a few times and no more.
pub(super) fn small(packs: &Dir) -> io::Result<Option<Small>> {
    let mut found = Vec::new();
    let names = packs.names()?;
    let has = |name: &str| names.iter().any(|(n, _)| n == name);
    if has("multi-pack-index") {
        // It names the packs; only git removes one of those.
        return Ok(None);
    }
    for (name, _) in &names {
        let stem = name.to_str().and_then(|name| name.strip_suffix(".idx"));
        let Some(stem) = stem.filter(|stem| stem.starts_with("pack-")) else {
            continue;
        };
        // What git has put aside on purpose, or has derived from it.
        let marked = ["keep", "promisor", "mtimes", "bitmap"];
        if marked.iter().any(|ending| has(&format!("{stem}.{ending}"))) {
            continue;
        }
        let pack = OsString::from(format!("{stem}.pack"));
        if let Some(meta) = packs.find(&pack)? {
            found.push((meta.size, stem.to_owned()));
        }
    }
    if found.len() <= PACKS {
        return Ok(None);
    }
    found.sort_unstable();
    let (mut below, mut upto) = (0, 0);
    for (n, (size, _)) in found.iter().enumerate() {
        if *size > LARGEST {
            break;
        }
        if *size < below * 2 || n == 0 {
            upto = n + 1;
        }
        below += size;
    }
    found.truncate(upto);
    let names = found.into_iter().map(|(_, stem)| stem).collect();
    Ok(Some(Small { names }))
}

impl Small {
    /// Copies their objects into a pack that is being written. Those that can not be copied as they stand are left.
    pub fn fold(self, packs: &Dir, into: &Sink<'_>) -> io::Result<Small> {
        let mut names = Vec::new();
        for name in self.names {
            if let Ok(Some(objects)) = pack::read(packs, &name, LARGEST) {
                objects
                    .iter()
                    .try_for_each(|object| into.put_encoded(object))?;
                names.push(name);
            }
        }
        Ok(Small { names })
    }

    /// Removes them, once the pack that has their objects is on the disk.
    pub fn remove(self, packs: &Dir, kept: &str) -> io::Result<()> {
        for name in self.names.iter().filter(|name| *name != kept) {
            // The index first: a pack without one is passed over, an index without its pack is an error.
            for ending in ["idx", "rev", "pack"] {
                match packs.unlink(&OsString::from(format!("{name}.{ending}"))) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => failpoint::hit("commit.folding"),
                }
            }
        }
        packs.sync()
    }
}

/// So many loose objects that others made may lie there.
const LOOSE: usize = 1000;

/// Whether others have left so much that git's own housekeeping is due. Counted as git counts, by one of the 256
/// folders.
fn is_heap(repository: &Repository) -> Result<bool> {
    let objects = repository.git.commondir().join("objects");
    let loose = disk::read_dir_names(&objects.join("17"))?.len();
    let packs = disk::read_dir_names(&objects.join("pack"))?;
    // Those that somebody keeps on purpose are not packed again.
    let with = |ending: &str| {
        let named = packs
            .iter()
            .filter(|(name, _)| Path::new(name).extension() == Some(OsStr::new(ending)));
        named.count()
    };
    let packs = with("pack").saturating_sub(with("keep"));
    Ok(loose > LOOSE.div_ceil(256) || packs > 50)
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consolidated {
    /// Who did it.
    pub by: &'static str,
    /// Bytes of the objects before.
    pub before: u64,
    /// Bytes of the objects after.
    pub after: u64,
}

impl std::fmt::Display for Consolidated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = (human::size(self.before), human::size(self.after));
        write!(f, "The history takes {after} now, {before} before")
    }
}

/// After a commit: git's own housekeeping, when it is due; without git, our own.
pub(super) fn when_due(
    home: &LockedHome,
    repository: &Repository,
    context: &Context,
) -> Result<Option<Consolidated>> {
    if !is_heap(repository)? {
        return Ok(None);
    }
    let before = bytes_of_objects(repository)?;
    // Detached, it would outlive our lock.
    let arguments = [
        "-c",
        "gc.auto=1000",
        "-c",
        "gc.autoDetach=false",
        "gc",
        "--auto",
        "--quiet",
    ];
    let by = match git(home, repository, &arguments)? {
        true => "git gc",
        false => {
            repack(repository, context)?;
            "wbhome"
        }
    };
    let after = bytes_of_objects(repository)?;
    Ok((after != before).then_some(Consolidated { by, before, after }))
}

/// Packs everything as small as it gets. What no branch reaches any more stays: a person may want it back.
///
/// # Errors
/// When git fails, or there is no room: then everything is as it was.
pub fn now(home: &LockedHome, repository: &Repository, context: &Context) -> Result<Consolidated> {
    let before = bytes_of_objects(repository)?;
    let arguments = [
        "-c",
        "pack.windowMemory=64m",
        "-c",
        "pack.deltaCacheSize=32m",
        "-c",
        "core.bigFileThreshold=64m",
        "repack",
        "-a",
        "-d",
        "-F",
        "-k",
        "-q",
    ];
    let by = match git(home, repository, &arguments)? {
        true => "git repack",
        false => {
            repack(repository, context)?;
            "wbhome"
        }
    };
    Ok(Consolidated {
        by,
        before,
        after: bytes_of_objects(repository)?,
    })
}

/// Runs git on the repository; false when it is not installed, or the home is not trusted with its configuration.
fn git(home: &LockedHome, repository: &Repository, arguments: &[&str]) -> Result<bool> {
    if !home.is_trusted() {
        return Ok(false);
    }
    let fail = |why: String| {
        Error::failed("git could not make the repository smaller:")
            .at(repository.dir())
            .because(io::Error::other(why))
            .hint("the commit stands")
    };
    match home.run_git(arguments).map_err(|e| fail(human::io(&e)))? {
        None => Ok(false),
        Some(finished) if finished.is_good() => Ok(true),
        Some(finished) => Err(fail(finished.complaint())),
    }
}

fn bytes_of_objects(repository: &Repository) -> Result<u64> {
    let objects = repository.git.commondir().join("objects");
    let dir = Dir::open(&objects).map_err(|e| Error::io("can not open", &objects, e))?;
    let tree = disk::walk(&dir, &|_, _| false, &crate::base::Stop::new())?;
    Ok(tree
        .entries()
        .map(|(_, entry)| entry.meta.blocks * 512)
        .sum())
}

/// Without git: everything into one pack with deltas, by libgit2; then what it was before goes.
fn repack(repository: &Repository, context: &Context) -> Result<()> {
    let fail = |e| torn(repository.dir(), "an object", e);
    let packs = folder_of_packs(repository)?;
    let io = |e| Error::io("can not write to the repository", repository.dir(), e);
    // Only what is there before the objects are listed goes: what somebody writes meanwhile is in no list of ours.
    let loose = loose::all(repository.git.commondir())?;
    let mut former: Vec<OsString> = packs
        .names()
        .map_err(io)?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    if former.iter().any(|name| name == "multi-pack-index") {
        return Err(Error::failed(
            "the packs are named in a multi-pack-index, which git alone can change:",
        )
        .at(repository.dir())
        .hint("install git, or remove that file: it is made again by git multi-pack-index write"));
    }
    // Indexes first: an index without its pack is an error to git, a pack without its index is passed over.
    former.sort_by_key(|name| Path::new(name).extension() != Some(OsStr::new("idx")));
    let odb = repository.git.odb().map_err(fail)?;
    let mut builder = repository.git.packbuilder().map_err(fail)?;
    builder.set_threads(0);
    // By way of the commits, so that each object comes with its path: what has one name is compared.
    let mut walk = repository.git.revwalk().map_err(fail)?;
    for reference in repository.git.references().map_err(fail)?.flatten() {
        if let Ok(commit) = reference.peel_to_commit() {
            walk.push(commit.id()).map_err(fail)?;
        }
    }
    for commit in walk {
        context.stop.check()?;
        builder.insert_commit(commit.map_err(fail)?).map_err(fail)?;
    }
    let mut all: Vec<Oid> = Vec::new();
    odb.foreach(|oid| {
        all.push(*oid);
        true
    })
    .map_err(fail)?;
    for oid in all {
        builder.insert_object(oid, None).map_err(fail)?;
    }
    let own = repository.dir().join(super::repository::OWN);
    disk::create_private_folder(&own)?;
    builder.write(&own, 0o444).map_err(fail)?;
    let kept = builder
        .name()
        .unwrap_or_default()
        .map(|name| format!("pack-{name}"));
    let kept = kept.ok_or_else(|| Error::failed("the pack has no name:").at(&own))?;
    publish(&own, &packs, &kept).map_err(io)?;
    for name in former {
        let stem = name
            .to_str()
            .and_then(|name| name.split_once('.'))
            .map(|(stem, _)| stem);
        let aside = stem.is_none_or(|stem| {
            stem == kept
                || !stem.starts_with("pack-")
                || disk::exists(
                    &repository
                        .git
                        .commondir()
                        .join(format!("objects/pack/{stem}.keep")),
                )
        });
        if !aside {
            packs.unlink(&name).map_err(io)?;
        }
    }
    packs.sync().map_err(io)?;
    loose.iter().try_for_each(|path| disk::remove_file(path))
}

fn publish(own: &Path, packs: &Dir, name: &str) -> io::Result<()> {
    let from = Dir::open(own)?;
    for ending in ["pack", "idx"] {
        let name = OsString::from(format!("{name}.{ending}"));
        from.open_file(&name)?.sync_all()?;
        from.replace_in(&name, packs, &name)?;
    }
    packs.sync()
}
