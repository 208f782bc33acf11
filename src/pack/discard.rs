//! Removing a folder that a pack holds, name by name: each is looked at right before, and what is not what the pack has
//! stays.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{Difference, Manifest, Member, MemberKind};
use crate::base::{Error, Result};
use crate::disk::{Dir, FileKind, Meta, remove_name};

/// Removes the folder `name` of `parent`, whose content was compared with the manifest. What has been changed, made or
/// replaced since is left, with the folders that it lies in, and returned. What no pack holds (a socket, a FIFO) goes.
///
/// # Errors
/// What the system does not let go.
pub fn discard(manifest: &Manifest, parent: &Dir, name: &OsStr) -> Result<Vec<Difference>> {
    let members: HashMap<&Path, &Member> = manifest
        .members
        .iter()
        .map(|member| (&*member.path, member))
        .collect();
    let mut left = Vec::new();
    // An explicit stack: a tree may be deeper than a thread's stack.
    let mut todo = vec![(PathBuf::new(), false)];
    while let Some((rel, emptied)) = todo.pop() {
        let fail = |e| Error::io("can not remove", &rel, e);
        let at = Path::new(name).join(&rel);
        // `join` with nothing adds a separator.
        let at: PathBuf = at.components().collect();
        let dir = parent
            .open_beneath(at.parent().unwrap_or(Path::new("")))
            .map_err(fail)?;
        let own = at.file_name().unwrap_or_default();
        let Some(meta) = dir.find(own).map_err(fail)? else {
            continue;
        };
        if meta.kind == FileKind::Folder && !emptied {
            let below = dir
                .open_beneath(Path::new(own))
                .and_then(|dir| dir.names())
                .map_err(fail)?;
            todo.push((rel.clone(), true));
            todo.extend(below.into_iter().map(|(n, _)| (rel.join(n), false)));
            continue;
        }
        if let Some(what) = kept_back(&members, &rel, &meta, &dir, own).map_err(fail)? {
            left.push(Difference {
                path: rel,
                what: what.to_owned(),
            });
            continue;
        }
        match remove_name(&dir, own, &meta, !rel.as_os_str().is_empty()) {
            // Something in it was left.
            Err(error)
                if meta.kind == FileKind::Folder
                    && matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty) => {}
            done => done.map_err(fail)?,
        }
    }
    Ok(left)
}

/// Why something is not removed.
fn kept_back(
    members: &HashMap<&Path, &Member>,
    rel: &Path,
    meta: &Meta,
    dir: &Dir,
    name: &OsStr,
) -> io::Result<Option<&'static str>> {
    let changed = Some("was changed after it had been compared");
    let member = match members.get(rel) {
        Some(member) if member.kind == MemberKind::HardLink => {
            // All that is told of it is told of its first name.
            let first = member.link.as_deref().and_then(|link| members.get(link));
            *first.unwrap_or(member)
        }
        Some(member) => member,
        None if matches!(meta.kind, FileKind::File | FileKind::Symlink) => {
            return Ok(Some("was made after the session had been packed"));
        }
        None if meta.kind == FileKind::Folder => {
            return Ok(Some("was made after the session had been packed"));
        }
        // What no pack holds.
        None => return Ok(None),
    };
    Ok(match (member.kind, meta.kind) {
        (MemberKind::Folder, FileKind::Folder) => None,
        (MemberKind::File, FileKind::File) => {
            match member.size == meta.size && member.mtime == meta.mtime && member.mode == meta.mode
            {
                true => None,
                false => changed,
            }
        }
        (MemberKind::Symlink, FileKind::Symlink) => {
            let target = dir.read_link(name)?;
            let packed = member.link.as_ref().map(|link| link.as_os_str());
            match packed.is_some_and(|packed| packed.as_encoded_bytes() == target) {
                true => None,
                false => changed,
            }
        }
        _ => changed,
    })
}
