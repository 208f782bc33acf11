//! One log: copied, written down, named, taken out.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::outcome::{CutLog, How, Left, Reason, Writer};
use super::{Found, Request, Why, left_for_its_writer, left_for_what_it_is, names};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, Means, Meta, NewFile, SLICE, Xattrs};
use crate::home::journal::{self, Step};
use crate::home::{CutEnd, LockedHome, LogCut, Rotations, log_folder};

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
        return Ok(Err(Left::new(
            found,
            Reason::NoLine,
            "is not there any more".to_owned(),
            None,
        )));
    };
    let now = Found {
        meta,
        ..found.clone()
    };
    if let Some(left) = left_for_what_it_is(&now) {
        return Ok(Err(left));
    }
    let writers = plain_writers(&path);
    if !request.force
        && let Some(left) = left_for_its_writer(&now, writers.clone())
    {
        return Ok(Err(left));
    }
    let log = disk::open_log(&dir, &found.name).map_err(fail)?;
    let known = rotations.of(&found.path()).map_or(0, |known| known.blank);
    let Some(extent) = Extent::of(&dir, &log, known).map_err(fail)? else {
        let why = "holds no whole line yet".to_owned();
        return Ok(Err(Left::new(&now, Reason::NoLine, why, None)));
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
fn told(error: io::Error, path: &std::path::Path, context: &Context) -> Error {
    if let Err(interrupted) = context.stop.check() {
        return interrupted;
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::failed("was truncated by its writer while it was copied; it is as that left it:")
                .at(path)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::io(
            "can not cut",
            path,
            error,
        )
        .hint(
            "it is as it was; a cut needs as much room as the log holds, until that is compressed",
        ),
        _ => Error::io("can not cut", path, error),
    }
}

/// Who writes to it at places of their own, right now.
fn plain_writers(path: &std::path::Path) -> Vec<Writer> {
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
    Ok(copy)
}

/// A name after all that were given before, so that their order is that of the lines: within one second, and when the
/// clock was set back.
fn free_name(dir: &Dir, log: &OsStr, context: &Context) -> Result<std::ffi::OsString> {
    let there = dir
        .names()
        .map_err(|e| Error::io("can not list the folder of", log, e))?;
    let there = there.iter().filter_map(|(name, _)| names::read(name));
    let newest = there
        .filter(|name| name.log == log)
        .map(|name| name.age)
        .max();
    // A name tells no more than seconds.
    let now = context.clock.now().as_second();
    Ok(match newest {
        Some((at, n)) if at.as_second() >= now => names::name(log, at, n.saturating_add(1)),
        _ => names::name(log, context.clock.now(), 1),
    })
}
