//! Loose objects that are cut off. libgit2 reads one without end (`git_zstream_get_output` waits for bytes that never
//! come), so they are looked for before it sees any. This program makes none: there are some only where git was used
//! by hand, and `git gc` keeps them few.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flate2::{Decompress, FlushDecompress, Status};
use rayon::prelude::*;

use crate::base::{Error, Result};
use crate::disk;

/// Refuses a repository with an object that begins and does not end.
///
/// # Errors
/// With the object's path.
pub(super) fn refuse_torn(common: &Path) -> Result<()> {
    let torn = all(common)?
        .into_par_iter()
        .find_any(|path| is_cut_off(path));
    match torn {
        None => Ok(()),
        Some(path) => Err(Error::failed("an object of the repository is cut off:")
            .at(&path)
            .hint("put it in place from another copy of the repository (docs/disaster.md)")
            .hint("or move it out of .git and keep it: git fsck then says what it was part of")),
    }
}

/// Every loose object of a repository.
pub(super) fn all(common: &Path) -> Result<Vec<PathBuf>> {
    let objects = common.join("objects");
    let mut found = Vec::new();
    for (folder, _) in disk::read_dir_names(&objects)?
        .into_iter()
        .filter(|(name, _)| is_hex(name, 2))
    {
        let folder = objects.join(folder);
        let names = disk::read_dir_names(&folder)?;
        let names = names.into_iter().filter(|(name, _)| is_hex(name, 38));
        for (name, kind) in names {
            let path = folder.join(name);
            super::pipes::refuse(&path, kind)?;
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether a name is made of so many hex digits.
pub(super) fn is_hex(name: &OsStr, long: usize) -> bool {
    let name = name.to_str().filter(|name| name.len() == long);
    name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// An empty one, or one that can not be read at all, is an error to libgit2 as well.
fn is_cut_off(path: &Path) -> bool {
    let Ok(Some(bytes)) = disk::read(path) else {
        return false;
    };
    let mut inflate = Decompress::new(true);
    let mut out = vec![0; 64 << 10];
    while !bytes.is_empty() {
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let taken = usize::try_from(before_in).unwrap_or(usize::MAX);
        let rest = bytes.get(taken..).unwrap_or_default();
        match inflate.decompress(rest, &mut out, FlushDecompress::None) {
            Ok(Status::StreamEnd) => return false,
            // Damage of another kind, which libgit2 names.
            Err(_) => return false,
            Ok(_) if (before_in, before_out) == (inflate.total_in(), inflate.total_out()) => {
                return true;
            }
            Ok(_) => {}
        }
    }
    false
}
