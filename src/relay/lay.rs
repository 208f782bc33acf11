//! Copying what a session holds into a folder that nobody uses yet: each file read back and compared, no link followed.
//!
//! What is copied was looked at before ([`Side`]). A file that is not as it was then has changed under our hands; that
//! is told, and whoever called looks again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::below::Below;
use super::standing::{Item, Side};
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Buffers, CopyError, Digest, Dir, FileKind, Identity, Meta, Xattrs};

/// Something to be copied, and what its copy shall be.
#[derive(Debug)]
pub(super) struct Piece<'s> {
    /// Where, below the session.
    pub path: &'s Path,
    /// The side that it is copied from.
    pub from: &'s Side,
    /// What it was when it was looked at.
    pub item: &'s Item,
    /// The permission bits of the copy; a link has none.
    pub mode: u32,
    /// Its owner, where that is not whoever copies.
    pub owner: Option<(u32, u32)>,
    /// Whether its extended attributes are copied, too.
    pub attributes: bool,
    /// What it must hold, if that is known.
    pub holds: Option<Digest>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Laid {
    /// Files and links that were copied.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// What could not be read, and why.
    pub unread: BTreeMap<PathBuf, String>,
    /// Whether something has changed since it was looked at: what lies there is of no use.
    pub restless: bool,
}

/// Why one file was not copied.
enum Trouble {
    Restless,
    Unread(String),
    Fatal(Error),
}

/// Copies the pieces, a folder before what is in it, into an empty folder. What can not be read is told.
///
/// # Errors
/// What can not be written, and interruption.
pub(super) fn lay(into: &Dir, pieces: &[Piece], context: &Context) -> Result<Laid> {
    let folders = || {
        pieces
            .iter()
            .filter(|p| p.item.meta.kind == FileKind::Folder)
    };
    let mut made = Below::new(into);
    for piece in folders() {
        made.make(piece.path)
            .map_err(|e| unwritten(piece.path, e))?;
    }
    let content: Vec<&Piece> = pieces
        .iter()
        .filter(|p| p.item.meta.kind != FileKind::Folder)
        .collect();
    let total = Total {
        items: content.len() as u64,
        bytes: content.iter().map(|piece| piece.item.bytes()).sum(),
    };
    context.progress.stage("copying", total);
    let (laid, restless) = (Mutex::new(Laid::default()), AtomicBool::new(false));
    let done = content.par_iter().try_for_each_init(
        || Hand::new(into),
        |hand, piece| {
            context.stop.check()?;
            if restless.load(Ordering::Relaxed) {
                return Ok(());
            }
            let done = hand.one(piece, context);
            context.progress.advance(1, piece.item.bytes());
            let Ok(mut laid) = laid.lock() else {
                return Ok(());
            };
            match done {
                Ok(()) => {
                    laid.files += 1;
                    laid.bytes += piece.item.bytes();
                }
                Err(Trouble::Restless) => restless.store(true, Ordering::Relaxed),
                Err(Trouble::Unread(why)) => {
                    drop(laid.unread.insert(piece.path.to_path_buf(), why))
                }
                Err(Trouble::Fatal(error)) => return Err(error),
            }
            Ok(())
        },
    );
    context.progress.finish();
    done?;
    // Deepest first, so that dressing one does not change another's time.
    for piece in folders().collect::<Vec<_>>().into_iter().rev() {
        dress_folder(&mut made, piece).map_err(|e| unwritten(piece.path, e))?;
    }
    let mut laid = laid.into_inner().unwrap_or_default();
    laid.restless = restless.into_inner();
    Ok(laid)
}

fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::io("can not write a copy of", path, error)
}

fn dress_folder(made: &mut Below, piece: &Piece) -> std::io::Result<()> {
    let copy = made.open(piece.path)?;
    if let Some((uid, gid)) = piece.owner {
        copy.set_owner(uid, gid)?;
    }
    copy.set_mode(piece.mode)?;
    copy.set_time(piece.item.meta.mtime)
}

/// What copies one file after the other.
struct Hand<'s> {
    buffers: Buffers,
    to: Below<'s>,
    /// Of each side that something is copied from.
    from: Vec<(&'s Side, Below<'s>)>,
}

impl<'s> Hand<'s> {
    fn new(into: &'s Dir) -> Self {
        Hand {
            buffers: Buffers::new(),
            to: Below::new(into),
            from: Vec::new(),
        }
    }

    fn one(&mut self, piece: &Piece<'s>, context: &Context) -> Result<(), Trouble> {
        let fatal = |e| Trouble::Fatal(unwritten(piece.path, e));
        let parent = piece.path.parent().unwrap_or(Path::new(""));
        let name = piece.path.file_name().unwrap_or_default();
        let to = self.to.make(parent).map_err(fatal)?;
        if let Some(target) = &piece.item.link {
            to.symlink(target, name).map_err(fatal)?;
            if let Some((uid, gid)) = piece.owner {
                to.set_owner_of(name, uid, gid).map_err(fatal)?;
            }
            return to.set_time_of(name, piece.item.meta.mtime).map_err(fatal);
        }
        let from = folders_of(&mut self.from, piece.from);
        let from = from.open(parent).map_err(unread)?;
        match file(from, to, name, piece, &mut self.buffers, context) {
            Err(CopyError::Read(error)) => Err(unread(error)),
            Err(CopyError::Write(error)) => Err(fatal(error)),
            Err(CopyError::Stopped) => Err(match context.stop.check() {
                Err(interrupted) => Trouble::Fatal(interrupted),
                Ok(()) => Trouble::Restless,
            }),
            Ok(true) => Ok(()),
            Ok(false) => Err(Trouble::Restless),
        }
    }
}

fn folders_of<'f, 's>(
    all: &'f mut Vec<(&'s Side, Below<'s>)>,
    side: &'s Side,
) -> &'f mut Below<'s> {
    let known = all.iter().position(|(known, _)| std::ptr::eq(*known, side));
    let at = known.unwrap_or_else(|| {
        all.push((side, Below::new(&side.dir)));
        all.len() - 1
    });
    &mut all[at].1
}

/// What is gone, or is of another kind by now, is not unreadable: it has changed.
fn unread(error: std::io::Error) -> Trouble {
    match disk::is_nowhere(&error) {
        true => Trouble::Restless,
        false => Trouble::Unread(human::io(&error)),
    }
}

/// Copies one file; whether it was all the time what it was when it was looked at.
fn file(
    from: &Dir,
    to: &Dir,
    name: &OsStr,
    piece: &Piece,
    buffers: &mut Buffers,
    context: &Context,
) -> Result<bool, CopyError> {
    let seen = &piece.item.meta;
    let source = from.open_file(name).map_err(CopyError::Read)?;
    if !Meta::of(&source).map_err(CopyError::Read)?.same_state(seen) {
        return Ok(false);
    }
    let (mut copy, copied) =
        disk::copy_file(&source, seen, to, &mut Identity, buffers, context.stop)?;
    let other = piece.holds.is_some_and(|holds| holds != copied.digest);
    if other || copied.size != seen.size || !copied.source.same_state(seen) {
        return Ok(false);
    }
    if piece.attributes {
        let attributes = Xattrs::of(&source).map_err(CopyError::Read)?;
        attributes
            .apply(copy.file())
            .map_err(|(_, error)| CopyError::Write(error))?;
    }
    copy.dress(piece.owner, piece.mode, seen.mtime)
        .map_err(CopyError::Write)?;
    let back = disk::check_open(copy.file(), buffers, context.stop, &mut |_, _| {})?;
    if back.digest != copied.digest {
        let what = "what was read back is not what was written";
        return Err(CopyError::Write(std::io::Error::other(what)));
    }
    copy.publish(name).map_err(CopyError::Write)?;
    Ok(true)
}
