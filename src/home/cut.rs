//! The cut of a log as a step of the journal: written down when the copy is durable, and completed by whoever takes the
//! lock next if it was stopped. What is done for the first time and what is done after a kill is the same code.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Home, LockedHome, RelPath, Rotations};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Cut, Dir, FileKind, Means, Meta, Stamp, Taken};

/// What is cut out of which log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogCut {
    /// The folder of the log: relative to the home, or absolute where that is the application's own.
    pub folder: ExactPath,
    /// The name of the log.
    pub log: ExactPath,
    /// Its number on the filesystem: another file of its name is another log.
    pub inode: u64,
    /// How long it was when it was looked at.
    pub size: u64,
    /// When it was written last: to be cut is no activity.
    pub mtime: (i64, u32),
    /// The name of the copy, in the same folder.
    pub rotated: ExactPath,
    /// Where the copy begins in the log.
    pub from: u64,
    /// Where it ends.
    pub end: u64,
    /// The blocks in which it is taken out; none: it is truncated.
    pub block: Option<u64>,
    /// So much is taken out in one go.
    pub slice: u64,
    /// Nobody else's number, in hexadecimal digits.
    pub id: String,
    /// When it was decided.
    pub at: Timestamp,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutEnd {
    /// What was copied is out of the log.
    Out,
    /// The log does not hold it any more: its writer has begun it anew, or it was changed. What it held is in the copy.
    Changed,
    /// The log has got a second name: it is as it was, and no copy stays.
    Linked,
    /// Another file has the name of the log, or none. What it held is in the copy.
    Replaced,
    /// The copy never got its name: nothing was done.
    Nothing,
}

impl LogCut {
    /// The path of the log, as it is noted.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&*self.log)
    }

    /// Whether whole blocks are taken out of it.
    pub fn takes_blocks(&self) -> bool {
        self.cut().is_some_and(|cut| cut.takes_blocks())
    }

    /// Whether it names nothing that no command would have written.
    pub(super) fn is_sound(&self) -> bool {
        let is_name = |path: &Path| {
            let mut parts = path.components();
            matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
        };
        let folder = self.folder.is_absolute() || RelPath::new(&*self.folder).is_ok();
        folder && is_name(&self.log) && is_name(&self.rotated) && *self.log != *self.rotated
    }

    /// Opens the folder of the log.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self, home: &LockedHome) -> io::Result<Dir> {
        log_folder(home, &self.folder)
    }

    fn cut(&self) -> Option<Cut> {
        Some(Cut {
            from: self.from,
            end: self.end,
            means: match self.block {
                Some(block) => Means::Collapse {
                    block: block.max(1),
                },
                None => Means::Truncate,
            },
            slice: self.slice,
            id: u128::from_str_radix(&self.id, 16).ok()?,
        })
    }

    /// Takes out of the log what its copy holds, and notes it. `fresh` says that the copy has just been made, and no kill
    /// has been between.
    ///
    /// # Errors
    /// What the system says. The same call goes on from there.
    pub fn carry_out(
        &self,
        home: &LockedHome,
        rotations: &mut Rotations,
        fresh: bool,
        context: &Context,
    ) -> Result<CutEnd> {
        let path = home.root().join(self.path());
        let fail = |e| Error::io("can not cut", &path, e);
        let dir = match self.open(home) {
            Ok(dir) => dir,
            Err(error) if disk::is_nowhere(&error) => return Ok(CutEnd::Replaced),
            Err(error) => return Err(fail(error)),
        };
        if dir.find(name(&self.rotated)).map_err(fail)?.is_none() {
            return Ok(CutEnd::Nothing);
        }
        let (Some(log), Some(cut)) = (self.open_log(&dir).map_err(fail)?, self.cut()) else {
            self.note(home, rotations, 0, context)?;
            return Ok(CutEnd::Replaced);
        };
        let copy = disk::open_log(&dir, name(&self.rotated)).map_err(fail)?;
        let known = rotations.of(&self.path());
        if known.is_none_or(|known| known.id.as_ref() != Some(&self.id)) {
            let fresh = fresh || self.is_untouched(&log).map_err(fail)?;
            match cut.take_out(&log, &copy, fresh).map_err(fail)? {
                Taken::Out => self.note(home, rotations, cut.blank(), context)?,
                Taken::Changed => {
                    self.note(home, rotations, 0, context)?;
                    return Ok(CutEnd::Changed);
                }
                Taken::Linked => {
                    // The log holds all of it.
                    let gone = dir.unlink(name(&self.rotated)).and_then(|()| dir.sync());
                    gone.map_err(fail)?;
                    return Ok(CutEnd::Linked);
                }
            }
        }
        failpoint::hit("cut.noted");
        cut.clear(&log).map_err(fail)?;
        failpoint::hit("cut.cleared");
        self.keep_time(&dir, &cut, &log, &copy).map_err(fail)?;
        Ok(CutEnd::Out)
    }

    fn note(
        &self,
        home: &LockedHome,
        rotations: &mut Rotations,
        blank: u64,
        context: &Context,
    ) -> Result<()> {
        rotations.note_cut(&self.path(), self.at, &self.id, blank);
        rotations.write_soon(home, context)
    }

    /// When nobody has written to the log since it was looked at, its time is what it was.
    fn keep_time(
        &self,
        dir: &Dir,
        cut: &Cut,
        log: &std::fs::File,
        copy: &std::fs::File,
    ) -> io::Result<()> {
        let (seconds, nanos) = self.mtime;
        let mtime = Stamp { seconds, nanos };
        let (log, held) = (Meta::of(log)?, Meta::of(copy)?.size);
        let rests = match self.block {
            Some(_) => log.size == cut.blank() + self.size.saturating_sub(self.end),
            None => log.size == 0 && held == self.size.saturating_sub(self.from),
        };
        match rests.then(|| dir.set_time_of(name(&self.log), mtime)) {
            // It was removed, or got another name, just now.
            Some(Err(error)) if disk::is_nowhere(&error) => Ok(()),
            Some(done) => done,
            None => Ok(()),
        }
    }

    /// Opens the log, unless another file has its name by now, or none.
    fn open_log(&self, dir: &Dir) -> io::Result<Option<std::fs::File>> {
        let is_it = |meta: &Meta| meta.ino == self.inode && meta.kind == FileKind::File;
        if !dir.find(name(&self.log))?.as_ref().is_some_and(is_it) {
            return Ok(None);
        }
        match disk::open_log(dir, name(&self.log)) {
            Ok(log) => Ok(is_it(&Meta::of(&log)?).then_some(log)),
            Err(error) if disk::is_nowhere(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether nobody has written to it since it was looked at.
    fn is_untouched(&self, log: &std::fs::File) -> io::Result<bool> {
        let meta = Meta::of(log)?;
        Ok(meta.size == self.size && (meta.mtime.seconds, meta.mtime.nanos) == self.mtime)
    }

    /// Like [`LogCut::carry_out`], after a kill: what was done, if something was.
    pub(super) fn settle(&self, home: &LockedHome, context: &Context) -> Result<Option<String>> {
        let mut rotations = Rotations::read(home)?;
        let end = self.carry_out(home, &mut rotations, false, context)?;
        rotations.write_rest(home, context)?;
        let log = human::path(&self.path());
        let rotated = human::path(&self.rotated);
        Ok(match end {
            CutEnd::Out => Some(format!("cut {log}; what was cut out is in {rotated}")),
            CutEnd::Changed => Some(format!(
                "left {log} as it is: it is not what it was; what it held is in {rotated}, and lines may be in both"
            )),
            CutEnd::Linked => Some(format!("left {log} as it is: it has several names by now")),
            CutEnd::Replaced => Some(format!(
                "left {log} as it is: it is another file by now; what it held is in {rotated}"
            )),
            CutEnd::Nothing => None,
        })
    }
}

/// Opens the folder of a log: relative to the home, through no link below it, or absolute.
///
/// # Errors
/// What the system says.
pub fn log_folder(home: &Home, path: &Path) -> io::Result<Dir> {
    match path.is_absolute() {
        true => Dir::open(path),
        false => Dir::open(home.root())?.open_beneath(path),
    }
}

fn name(path: &Path) -> &OsStr {
    path.as_os_str()
}
