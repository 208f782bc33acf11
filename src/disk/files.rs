//! Single calls on paths that a person or the layout of a home names.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::{Dir, FileKind, Meta};
use crate::base::{Error, Result};

/// `lstat` of a path; `None` when nothing is there.
pub fn stat(path: &Path) -> Result<Option<Meta>> {
    match rustix::fs::lstat(path) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(Error::io("can not look at", path, io::Error::from(error))),
    }
}

/// Whether something is there, a dangling link included.
pub fn exists(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok()
}

/// Whether a folder is there, not a link to one.
pub fn is_folder(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|s| Meta::from(s).kind == FileKind::Folder)
}

/// The absolute path without links. What does not exist yet is taken from its nearest ancestor that does.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    let fail = |e| Error::io("can not resolve", path, e);
    let absolute = std::path::absolute(path).map_err(fail)?;
    let mut missing: Vec<OsString> = Vec::new();
    let mut at = absolute.clone();
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                for name in missing.iter().rev() {
                    // `..` after what does not exist can only be taken by the letter.
                    if name == ".." {
                        real.pop();
                    } else {
                        real.push(name);
                    }
                }
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let last = match at.components().next_back() {
                    Some(std::path::Component::Normal(name)) => name.to_owned(),
                    Some(std::path::Component::ParentDir) => OsString::from(".."),
                    _ => return Err(fail(error)),
                };
                missing.push(last);
                at.pop();
            }
            Err(error) => return Err(fail(error)),
        }
    }
}

/// The content of a file; `None` when nothing is there.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    read_small(path, u64::MAX)
}

/// The content of a regular file of at most `limit` bytes; `None` when nothing is there. A FIFO or device
/// is an error instead of a wait.
pub fn read_small(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    read_with(path, limit, rustix::fs::OFlags::NONBLOCK)
}

/// Bytes of the longest record that [`read_own`] reads: many times what a home of a hundred thousand sessions writes.
const LONGEST_OWN: u64 = 256 << 20;

/// The content of a record that this program keeps for itself; `None` when nothing is there. A link in its place was
/// not made by it, and is an error like anything else that is no file of a credible size.
pub fn read_own(path: &Path) -> Result<Option<Vec<u8>>> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    read_with(path, LONGEST_OWN, flags)
}

fn read_with(path: &Path, limit: u64, flags: rustix::fs::OFlags) -> Result<Option<Vec<u8>>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let fail = |e| Error::io("can not read", path, e);
    let flags = flags.bits();
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags as _)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let meta: Meta = rustix::fs::fstat(&file).map_err(|e| fail(e.into()))?.into();
    if meta.kind != FileKind::File {
        return Err(
            Error::failed(format!("expected a file, found {}:", meta.kind.described())).at(path),
        );
    }
    if meta.size > limit {
        return Err(Error::failed(format!(
            "is too large to be read ({}, the limit is {}):",
            crate::base::human::size(meta.size),
            crate::base::human::size(limit)
        ))
        .at(path));
    }
    // A vector that grows takes twice the room of what it holds.
    let mut content = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0).saturating_add(1));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(fail)?;
    Ok(Some(content))
}

/// The last bytes of a regular file, at most so many; `None` when nothing is there.
pub fn read_end(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    use std::io::{Read, Seek, SeekFrom};
    let fail = |e| Error::io("can not read", path, e);
    let (dir, name) = parent_of(path)?;
    let mut file = match dir.open_file(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let size = Meta::of(&file).map_err(fail)?.size;
    let from = SeekFrom::Start(size.saturating_sub(limit));
    let mut end = Vec::new();
    file.seek(from)
        .and_then(|_| file.take(limit).read_to_end(&mut end))
        .map_err(fail)?;
    Ok(Some(end))
}

/// Whether an error says that nothing stands under a path: a name on the way is not there, or is no folder.
pub fn is_nowhere(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    codes
        .iter()
        .any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

/// The names in a folder with their kinds, sorted; empty when nothing is there.
pub fn read_dir_names(path: &Path) -> Result<Vec<(OsString, FileKind)>> {
    let fail = |e| Error::io("can not list", path, e);
    let dir = match Dir::open(path) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut names = dir.names().map_err(fail)?;
    for (name, kind) in &mut names {
        if *kind == FileKind::Unknown
            && let Ok(meta) = dir.stat(name)
        {
            *kind = meta.kind;
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

/// Makes a folder (0700) and those above it that are missing. One that exists is left as it is.
pub fn create_private_folder(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| Error::io("can not make the folder", path, e))
}

/// Makes a folder and those above it that are missing, with the modes that the user's mask gives. One that
/// exists is left as it is.
pub fn create_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| Error::io("can not make the folder", path, e))
}

/// Writes a file that can be made again, over what has its name now.
pub fn overwrite(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).map_err(|e| Error::io("can not write", path, e))
}

/// Sets permission bits.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| Error::io("can not set the mode of", path, e))
}

/// Makes a symbolic link; an existing name is an error.
pub fn symlink(target: &Path, path: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, path)
        .map_err(|e| Error::io("can not make the link", path, e))
}

/// Renames a file or folder, never over something that exists, and makes that durable on both sides.
pub fn rename_no_replace(from: &Path, to: &Path) -> Result<()> {
    let fail = |e| {
        Error::io(
            format!("can not rename {} to", crate::base::human::path(from)),
            to,
            e,
        )
    };
    let (from_dir, from_name) = parent_of(from)?;
    let (to_dir, to_name) = parent_of(to)?;
    from_dir.rename(from_name, &to_dir, to_name).map_err(fail)?;
    to_dir.sync().and_then(|()| from_dir.sync()).map_err(fail)
}

/// The open folder that a path lies in, and its name there.
pub(super) fn parent_of(path: &Path) -> Result<(Dir, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::failed("is not the path of a file:").at(path));
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    let dir = Dir::open(parent).map_err(|e| Error::io("can not open the folder", parent, e))?;
    Ok((dir, name))
}

/// Removes a file or link, or a folder with everything in it, by name in an open folder. No link is
/// followed: what a link points to stays.
pub fn remove_tree(dir: &Dir, name: &OsStr) -> io::Result<()> {
    // An explicit stack: a tree may be deeper than a thread's stack.
    let mut todo = vec![(PathBuf::from(name), false)];
    while let Some((rel, emptied)) = todo.pop() {
        let parent = dir.open_beneath(rel.parent().unwrap_or(Path::new("")))?;
        let Some(name) = rel.file_name() else {
            continue;
        };
        match parent.find(name)? {
            None => {}
            Some(meta) if meta.kind != FileKind::Folder || emptied => {
                remove_name(&parent, name, &meta, rel.components().nth(1).is_some())?;
            }
            Some(_) => {
                let below = parent.open_beneath(Path::new(name))?.names()?;
                todo.push((rel.clone(), true));
                todo.extend(below.into_iter().map(|(n, _)| (rel.join(n), false)));
            }
        }
    }
    Ok(())
}

/// Removes one name: a file or link, or a folder that is empty. `within` says that its folder is to be removed as well:
/// one that nobody may write to, such as one of a package cache, is made writable then.
///
/// # Errors
/// What the system says.
pub fn remove_name(dir: &Dir, name: &OsStr, meta: &Meta, within: bool) -> io::Result<()> {
    let remove = || match meta.kind {
        FileKind::Folder => dir.remove_folder(name),
        _ => dir.unlink(name),
    };
    match remove() {
        Err(error) if within && error.kind() == io::ErrorKind::PermissionDenied => {
            dir.set_mode(0o700)?;
            remove()
        }
        done => done,
    }
}

/// The content of a regular file of at most `limit` bytes in an open folder; `None` when nothing is there.
/// A link is not followed, and what is no file is an error instead of a wait.
pub fn read_small_in(dir: &Dir, name: &OsStr, limit: u64) -> io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    let meta = match dir.find(name)? {
        Some(meta) => meta,
        None => return Ok(None),
    };
    if meta.kind != FileKind::File {
        let what = format!("expected a file, found {}", meta.kind.described());
        return Err(io::Error::other(what));
    }
    if meta.size > limit {
        let size = crate::base::human::size(meta.size);
        return Err(io::Error::other(format!("too large to be read ({size})")));
    }
    let mut content = Vec::new();
    dir.open_file(name)?.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Removes a file's name and makes that durable; one that has gone already is no error.
pub fn remove_file(path: &Path) -> Result<()> {
    let (dir, name) = parent_of(path)?;
    match dir.unlink(name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("can not remove", path, error)),
    }
    dir.sync().map_err(|e| Error::io("can not remove", path, e))
}

/// The user whom this process acts for.
pub fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
