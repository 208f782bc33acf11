//! One log: copied, written down, named, taken out.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::outcome::{CutLog, How, Left, Reason, Writer};
use super::{Found, Request, Why, left, names};
use crate::base::{self, Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, Means, Meta, NewFile, SLICE, Xattrs};
use crate::home::journal::{self, Step};
use crate::home::{CutEnd, LockedHome, LogCut, Rotations, log_folder};

/// What Linux and macOS allow, in bytes.
const LONGEST_NAME: usize = 255;

/// Cuts it, or says why it is left alone.
///
/// # Errors
/// What went wrong. What was not taken out stands in the log as before; what was begun is completed by the next command.
pub(super) fn cut(
    home: &LockedHome,
    found: &Found,
    why: Why,
    request: &Request,
    rotations: &mut Rotations,
    context: &Context,
) -> Result<Result<CutLog, Left>> {
    let path = home.root().join(found.path());
    let fail = |e: io::Error| told(e, &path, context);
    let dir = log_folder(home, &found.folder).map_err(fail)?;
    let Some(meta) = dir.find(&found.name).map_err(fail)? else {
        return Ok(Err(left::gone(found)));
    };
    if found.name.len() + names::LONGER > LONGEST_NAME {
        return Err(Error::failed("has a name too long for a time to be added:")
            .at(&path)
            .hint("let its writer use a shorter one"));
    }
    let now = Found {
        meta,
        ..found.clone()
    };
    if let Some(left) = left::for_its_kind(&now).or_else(|| left::for_its_names(&now)) {
        return Ok(Err(left));
    }
    let writers = plain_writers(&path);
    if !request.force
        && let Some(left) = left::for_its_writer(&now, writers.clone())
    {
        return Ok(Err(left));
    }
    let log = disk::open_log(&dir, &found.name).map_err(fail)?;
    let known = rotations.of(&found.path()).map_or(0, |known| known.blank);
    let Some(extent) = Extent::of(&dir, &log, known).map_err(fail)? else {
        return Ok(Err(left::for_its_line(&now)));
    };
    if extent.from == extent.end && request.settings.not_empty {
        return Ok(Err(Left::new(
            &now,
            Reason::NoLine,
            "is empty".to_owned(),
            None,
        )));
    }
    let copy = copied(&dir, &log, &extent, context).map_err(fail)?;
    // It may have got another name, or given its own to another file: there was time.
    if let Some(meta) = dir.find(&found.name).map_err(fail)?
        && let Some(left) = left::for_its_names(&Found {
            meta,
            ..found.clone()
        })
    {
        return Ok(Err(left));
    }
    let cut = LogCut {
        folder: found.folder.clone().into(),
        log: PathBuf::from(&found.name).into(),
        inode: extent.meta.ino,
        size: extent.meta.size,
        mtime: (extent.meta.mtime.seconds, extent.meta.mtime.nanos),
        rotated: PathBuf::from(free_name(&dir, &found.name, context)?).into(),
        from: extent.from,
        end: extent.end,
        block: match extent.means {
            Means::Collapse { block } => Some(block),
            Means::Truncate => None,
        },
        slice: SLICE,
        id: format!("{:032x}", context.clock.random()),
        at: context.clock.now(),
    };
    let end = carry(home, &dir, copy, &cut, rotations, context)?;
    if end == CutEnd::Linked {
        let meta = Meta::of(&log).map_err(fail)?;
        let left = left::for_its_names(&Found { meta, ..now });
        return Ok(Err(left.unwrap_or_else(|| left::gone(found))));
    }
    let how = match (end, extent.means) {
        (CutEnd::Out, Means::Truncate) => How::Truncate,
        (CutEnd::Out, Means::Collapse { .. }) if cut.takes_blocks() => How::Collapse,
        (CutEnd::Out, Means::Collapse { .. }) => How::Blank,
        _ => How::Copy,
    };
    let rotated = dir.stat(cut.rotated.as_os_str()).map_err(fail)?;
    Ok(Ok(CutLog {
        path: found.path().into(),
        session: found.session.clone(),
        due: why,
        how,
        lossless: how != How::Truncate && writers.is_empty(),
        rotated: cut.rotated,
        bytes: rotated.size,
        writers,
    }))
}

/// The copy gets its name when it is written down what it is for; then what it holds is taken out of the log.
fn carry(
    home: &LockedHome,
    dir: &Dir,
    mut copy: NewFile,
    cut: &LogCut,
    rotations: &mut Rotations,
    context: &Context,
) -> Result<CutEnd> {
    let rotated = home.root().join(&*cut.folder).join(&*cut.rotated);
    failpoint::hit("rotate.copied");
    let step = Step::Cut { cut: cut.clone() };
    let pending = journal::begin(home, "rotate", vec![step], context)?;
    let named = copy
        .publish(cut.rotated.as_os_str())
        .and_then(|()| dir.sync());
    if let Err(error) = named {
        pending.forget()?;
        return Err(Error::io("can not make", rotated, error));
    }
    drop(copy);
    failpoint::hit("rotate.named");
    let end = cut.carry_out(home, rotations, true, context)?;
    failpoint::hit("rotate.cut");
    pending.forget()?;
    Ok(end)
}

/// An error as a person understands it.
fn told(error: io::Error, path: &Path, context: &Context) -> Error {
    if let Err(interrupted) = context.stop.check() {
        return interrupted;
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::failed("was truncated by its writer while it was copied; it is as that left it:")
                .at(path)
        }
        _ if base::is_full(&error) => Error::io("can not cut", path, error).hint(
            "it is as it was; a cut needs as much room as the log holds, until that is compressed",
        ),
        io::ErrorKind::PermissionDenied => Error::io("can not cut", path, error)
            .hint("if its mode allows it: attributes may forbid it (`lsattr` shows them)"),
        _ => Error::io("can not cut", path, error),
    }
}

/// Who writes to it at places of their own, right now.
fn plain_writers(path: &Path) -> Vec<Writer> {
    let Ok(path) = disk::real_path(path) else {
        return Vec::new();
    };
    let open = disk::open_below(&path).seen.into_iter();
    open.filter(|file| file.writing && !file.appending)
        .map(|file| Writer {
            pid: file.pid,
            program: file.program,
        })
        .collect()
}

/// What of a log is cut out, and how.
struct Extent {
    meta: Meta,
    means: Means,
    from: u64,
    end: u64,
}

impl Extent {
    /// None when there is something, and no line of it is whole.
    fn of(dir: &Dir, log: &File, known: u64) -> io::Result<Option<Extent>> {
        let meta = Meta::of(log)?;
        let from = disk::blank_head(log, known)?;
        let lines = disk::end_of_lines(log, from, meta.size)?;
        if lines == from && meta.size > from {
            return Ok(None);
        }
        // This may count as a change of the log, whose time is set back when it is cut.
        let means = disk::means(dir, log)?;
        let end = match means {
            Means::Collapse { .. } => lines,
            Means::Truncate => meta.size,
        };
        let extent = Extent {
            meta,
            means,
            from,
            end,
        };
        Ok(Some(extent))
    }
}

/// A durable copy without a name, with the owner, mode, time and attributes of the log.
fn copied<'d>(
    dir: &'d Dir,
    log: &File,
    extent: &Extent,
    context: &Context,
) -> io::Result<NewFile<'d>> {
    let copy = NewFile::create(dir)?;
    let span = (extent.from, extent.end);
    disk::copy_out(log, copy.file(), span, context.progress, context.stop)?;
    let meta = &extent.meta;
    let owner = disk::is_root().then_some((meta.uid, meta.gid));
    Xattrs::of(log)?
        .apply(copy.file())
        .map_err(|(name, error)| {
            let why = human::io(&error);
            io::Error::new(
                error.kind(),
                format!(
                    "the attribute {} can not be kept: {why}",
                    human::escape(&name)
                ),
            )
        })?;
    copy.dress(owner, meta.mode, meta.mtime)?;
    copy.sync()?;
    let ends_whole = disk::end_of_lines(copy.file(), 0, extent.end - extent.from)?;
    if matches!(extent.means, Means::Collapse { .. }) && ends_whole < extent.end - extent.from {
        // Its writer has begun it anew between the look for the last newline and the copy.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(copy)
}

/// A name after all that were given before.
fn free_name(dir: &Dir, log: &OsStr, context: &Context) -> Result<std::ffi::OsString> {
    let there = dir
        .names()
        .map_err(|e| Error::io("can not list the folder of", log, e))?;
    let there = there.iter().filter_map(|(name, _)| names::read(name));
    let newest = there
        .filter(|name| name.log == log)
        .map(|name| name.at)
        .max();
    match names::after(newest, context.clock.now()) {
        Some(at) => Ok(names::name(log, at)),
        None => Err(
            Error::failed("has been cut at the end of time, by a name beside it:")
                .at(Path::new(log))
                .hint("rename what is named so, and run it again"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    /// Its writer has begun it anew between the look for the last newline and the copy.
    #[test]
    fn a_copy_that_ends_within_a_line_is_none() {
        let place = testing::home();
        let context = place.context();
        place.put("run.log", "one\ntwo\n");
        let dir = Dir::open(place.home.root()).unwrap();
        let log = disk::open_log(&dir, OsStr::new("run.log")).unwrap();
        let meta = Meta::of(&log).unwrap();
        let extent = |end| Extent {
            meta,
            means: Means::Collapse { block: 4096 },
            from: 0,
            end,
        };
        assert!(copied(&dir, &log, &extent(8), &context).is_ok());
        let Err(error) = copied(&dir, &log, &extent(6), &context) else {
            panic!("it is torn")
        };
        let told = told(error, Path::new("run.log"), &context).to_string();
        assert!(told.contains("truncated by its writer"), "{told}");
    }
}
