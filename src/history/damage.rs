//! What a sync client has torn in a git dir: names that git does not know, files without a byte.
//!
//! Only names and sizes are looked at, which takes no time; `git fsck` reads every object.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::loose::is_hex;
use super::repository::{DOT_GIT, Repository};
use super::staging::Staging;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, FileKind};
use crate::home::Home;

/// Something in the git dir that should not be there, or not be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Where: below the home when the git dir lies in it, else the whole path.
    #[serde(flatten)]
    pub path: WirePath,
    /// What is wrong, for a person.
    pub what: String,
}

/// Everything in the repository of a home that a sync client is known to tear. A home without one has nothing.
///
/// # Errors
/// When the git dir can not be listed, and interruption.
pub fn damage(home: &Home, context: &Context) -> Result<Vec<Damage>> {
    let dot_git = home.root().join(DOT_GIT);
    let Some(found) = disk::stat(&dot_git)? else {
        return Ok(Vec::new());
    };
    let mut damage = Vec::new();
    let mut add = |path: PathBuf, what: String| {
        damage.push(Damage {
            path: path.into(),
            what,
        });
    };
    // It may be too torn to be opened; where it lies is then known only when it lies in the home.
    let dir = match Repository::open(home) {
        Ok(Some(repository)) => {
            if let Err(error) = repository.branch() {
                add(DOT_GIT.into(), error.to_string());
            }
            if let Err(error) = Staging::read(&repository) {
                add(DOT_GIT.into(), error.to_string());
            }
            repository.dir().to_path_buf()
        }
        Ok(None) => return Ok(Vec::new()),
        Err(error) => {
            add(DOT_GIT.into(), error.to_string());
            match found.kind {
                FileKind::Folder => dot_git,
                _ => return Ok(damage),
            }
        }
    };
    let below = match dir.strip_prefix(disk::real_path(home.root())?) {
        Ok(below) => below.to_path_buf(),
        Err(_) if dir.starts_with(home.root()) => DOT_GIT.into(),
        Err(_) => dir.clone(),
    };
    let opened = match Dir::open(&dir) {
        Ok(opened) => opened,
        // That has been told.
        Err(_) if !damage.is_empty() => return Ok(damage),
        Err(error) => return Err(Error::io("can not open", &dir, error)),
    };
    let tree = disk::walk(
        &opened,
        &|folder, entry| is_ours_or_deep(folder, &entry.name),
        context.stop,
    )?;
    halves(&tree, &dir, &mut |path, what| {
        add(below.join(path), what.to_owned());
    });
    for (path, entry) in tree
        .entries()
        .filter(|(_, entry)| entry.meta.kind == FileKind::File)
    {
        if let Some(what) = wrong(&path, entry.meta.size) {
            add(below.join(path), what.to_owned());
        }
    }
    Ok(damage)
}

/// A pack without its index is not looked into, and an index without its pack points nowhere.
fn halves(tree: &disk::Tree, dir: &Path, tell: &mut dyn FnMut(PathBuf, &'static str)) {
    let folder = tree
        .folders
        .iter()
        .find(|folder| folder.rel == Path::new("objects/pack"));
    let Some(folder) = folder else {
        return;
    };
    let has = |name: &Path| folder.entries.iter().any(|entry| entry.name == name);
    for entry in folder.entries.iter().filter(|entry| is_pack(&entry.name)) {
        let name = Path::new(&entry.name);
        let path = folder.rel.join(name);
        match name.extension().and_then(OsStr::to_str) {
            Some("pack") if !has(&name.with_extension("idx")) => {
                tell(path, "a pack without its .idx; git index-pack makes it");
            }
            Some("pack") if entry.meta.size > 0 && !ends_as_its_index_says(&dir.join(&path)) => {
                tell(
                    path,
                    "a pack that does not end as its .idx says: one of the two is cut off",
                );
            }
            Some("idx") if !has(&name.with_extension("pack")) => {
                tell(path, "the index of a pack that is not there");
            }
            _ => {}
        }
    }
}

/// The checksum at the end of a pack stands in its index as well, before that of the index itself.
fn ends_as_its_index_says(pack: &Path) -> bool {
    let end = |path: &Path, bytes| disk::read_end(path, bytes).ok().flatten();
    match (end(pack, 20), end(&pack.with_extension("idx"), 40)) {
        (Some(pack), Some(index)) => index.len() == 40 && pack == index[..20],
        // What can not be read is no sign of damage.
        _ => true,
    }
}

/// What this program keeps there, and the repositories of submodules and worktrees, which are not the home's.
fn is_ours_or_deep(folder: &Path, name: &OsStr) -> bool {
    let deep = [
        super::repository::OWN,
        "modules",
        "worktrees",
        "hooks",
        "lfs",
    ];
    folder.as_os_str().is_empty() && deep.iter().any(|known| name == *known)
}

/// Files at the top that git reads; a second one beside is what a sync client makes of two writers.
const TOP: [&str; 4] = ["HEAD", "config", "index", "packed-refs"];

fn wrong(path: &Path, size: u64) -> Option<&'static str> {
    let mut parts = path.iter();
    let first = parts.next()?;
    let rest: Vec<&OsStr> = parts.collect();
    let name = path.file_name()?.to_str();
    let empty = |what| (size == 0).then_some(what);
    match (first.to_str()?, rest.as_slice()) {
        (top, []) if TOP.contains(&top) && top != "config" && top != "packed-refs" => {
            empty("it is empty")
        }
        (top, []) => {
            let copy = TOP.iter().any(|known| {
                let more = top.strip_prefix(known);
                more.is_some_and(|more| more.starts_with([' ', '(', '-']))
            });
            copy.then_some("a second one, which git does not read")
        }
        ("refs", [_, ..]) if !is_ref(path) && !is_lock(name) => {
            Some("git can not read a branch or tag of this name")
        }
        ("refs", [_, ..]) => empty("a branch or tag without a byte"),
        ("objects", [folder, object]) if folder.len() == 2 => match is_hex(object, 38) {
            true => empty("an object without a byte"),
            false if name.is_some_and(|name| name.starts_with("tmp_obj_")) => None,
            false => Some("git knows no object of this name"),
        },
        ("objects", [folder, pack]) if *folder == "pack" => match is_pack(pack) {
            true => (size == 0 && !has_no_content(pack)).then_some("a pack without a byte"),
            false if is_temporary(pack) => None,
            false => Some("git knows no pack of this name"),
        },
        _ => None,
    }
}

fn is_ref(path: &Path) -> bool {
    path.to_str().is_some_and(git2::Reference::is_valid_name)
}

fn is_lock(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.ends_with(".lock"))
}

/// `pack-<40 digits>` with one of git's endings, or what names all packs.
fn is_pack(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let known = ["pack", "idx", "rev", "bitmap", "keep", "mtimes", "promisor"];
    if name.starts_with("multi-pack-index") {
        return !name.contains([' ', '(']);
    }
    let stem = name
        .strip_prefix("pack-")
        .and_then(|rest| rest.split_once('.'));
    stem.is_some_and(|(digits, ending)| {
        is_hex(&OsString::from(digits), 40) && known.contains(&ending)
    })
}

/// The endings of files that may be empty.
fn has_no_content(name: &OsStr) -> bool {
    let ending = Path::new(name).extension();
    ending == Some(OsStr::new("keep")) || ending == Some(OsStr::new("promisor"))
}

fn is_temporary(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.starts_with(b"tmp_") || bytes.starts_with(b".tmp-") || disk::is_temporary(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_tell() {
        let digits = "0123456789abcdef0123456789abcdef01234567";
        let sound = [
            "HEAD",
            "config",
            "index",
            "packed-refs",
            "description",
            "ORIG_HEAD",
            "COMMIT_EDITMSG",
            "index.lock",
            "refs/heads/main",
            "refs/heads/数据/x",
            "refs/tags/v1.0",
            "refs/heads/main.lock",
            "objects/info/packs",
            "logs/refs/heads/main 2",
            &format!("objects/ab/{}", &digits[2..]),
            &format!("objects/pack/pack-{digits}.pack"),
            &format!("objects/pack/pack-{digits}.idx"),
            "objects/pack/tmp_pack_x",
            "objects/pack/multi-pack-index",
        ];
        for path in sound {
            assert_eq!(wrong(Path::new(path), 1), None, "{path}");
        }
        assert_eq!(
            wrong(Path::new(&format!("objects/pack/pack-{digits}.keep")), 0),
            None
        );
        for (path, size) in [
            ("HEAD", 0),
            ("index", 0),
            ("HEAD (1)", 9),
            ("index 2", 9),
            ("config-MacBook", 9),
            ("packed-refs (conflicted copy)", 9),
            ("refs/heads/main 2", 9),
            ("refs/heads/main (1)", 9),
            ("refs/heads/main", 0),
            ("objects/ab/cdef (1)", 9),
            (&format!("objects/ab/{}", &digits[2..]), 0),
            (&format!("objects/ab/{} 2", &digits[2..]), 9),
            (&format!("objects/pack/pack-{digits}.pack"), 0),
            (&format!("objects/pack/pack-{digits} (1).pack"), 9),
        ] {
            assert!(wrong(Path::new(path), size).is_some(), "{path}");
        }
    }
}
