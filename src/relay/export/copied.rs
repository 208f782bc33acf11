//! A file or folder of a session as it is: content, mode and time. What the other disk can not keep of mode and time it
//! does not get; the content is read back.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::packed::unwritten;
use super::prepare::{Ready, is_file};
use super::{ATTEMPTS, Done, Export, Kind, LeftOut};
use crate::base::{Error, Result, Total, failpoint, human};
use crate::disk::{self, Buffers, CopyError, Dir, FileKind, Identity, Meta, NewFile};
use crate::pack::{Member, MemberKind};

/// Copies the file or folder.
///
/// # Errors
/// What can not be read or written; a file that does not hold still.
pub(super) fn write(export: &Export, mut ready: Ready) -> Result<Done> {
    let members = std::mem::take(&mut ready.survey);
    let members = members.members();
    let total = Total {
        items: ready.item.files,
        bytes: ready.item.bytes,
    };
    export.context.progress.stage("copying", total);
    let mut copying = Copying {
        export,
        ready: &mut ready,
        buffers: Buffers::new(),
    };
    let done = match copying.ready.place.kind {
        Kind::Folder => copying.folder(members),
        _ => copying.single(members),
    };
    export.context.progress.finish();
    match done {
        Ok(true) => {
            ready.item.written = Some(ready.item.bytes);
            Ok(Done::Exported(ready.item))
        }
        Ok(false) => Ok(Done::HeldBack(ready.item)),
        Err(error) => Err(error),
    }
}

struct Copying<'a> {
    export: &'a Export<'a>,
    ready: &'a mut Ready,
    buffers: Buffers,
}

impl Copying<'_> {
    /// Whether it was copied: a secret that has come in meanwhile keeps it here.
    fn single(&mut self, members: &[Member]) -> Result<bool> {
        let name = self.ready.name.clone();
        let Some(member) = members.iter().find(|member| is_file(member.kind)) else {
            return Err(self.restless(Path::new(&name)));
        };
        let (to, export) = (&self.export.to, self.export);
        let Some(mut copy) = self.copy(member, to)? else {
            return Ok(false);
        };
        publish(export, &mut copy, &name)?;
        export.to.sync().map_err(|e| unwritten(export, e))?;
        Ok(true)
    }

    /// Builds the folder under a name of its own, and gives it its name in one rename.
    fn folder(&mut self, members: &[Member]) -> Result<bool> {
        let export = self.export;
        let random = export.context.clock.random();
        let building = OsString::from(format!("{}{random:032x}", disk::TEMPORARY_PREFIX));
        export
            .to
            .make(&building)
            .map_err(|e| unwritten(export, e))?;
        let done = self.fill(&building, members).and_then(|done| {
            if done {
                failpoint::hit("export.copied");
                let named = export.to.rename(&building, &export.to, &self.ready.name);
                named
                    .and_then(|()| export.to.sync())
                    .map_err(|e| match e.kind() {
                        io::ErrorKind::AlreadyExists => export.in_the_way(&self.ready.name),
                        _ => unwritten(export, e),
                    })?;
            }
            Ok(done)
        });
        if !matches!(done, Ok(true)) {
            // Nobody else knows the name; what can not be removed is told by its name.
            let _ = disk::remove_tree(&export.to, &building);
        }
        done
    }

    fn fill(&mut self, building: &OsStr, members: &[Member]) -> Result<bool> {
        let export = self.export;
        let fail = |e| unwritten(export, e);
        let root = export.to.open_beneath(Path::new(building)).map_err(fail)?;
        for member in members {
            export.context.stop.check()?;
            let above = member.path.parent().unwrap_or(Path::new(""));
            let name = member.path.file_name().unwrap_or_default();
            match member.kind {
                MemberKind::Folder => drop(root.make_beneath(&member.path).map_err(fail)?),
                MemberKind::Symlink => {
                    let into = root.make_beneath(above).map_err(fail)?;
                    self.link(member, &into, name)?;
                }
                MemberKind::File | MemberKind::HardLink => {
                    let into = root.make_beneath(above).map_err(fail)?;
                    let Some(mut copy) = self.copy(member, &into)? else {
                        return Ok(false);
                    };
                    publish(export, &mut copy, name)?;
                }
            }
        }
        // Deepest first, so that dressing one does not change another's time.
        let folders = members.iter().filter(|m| m.kind == MemberKind::Folder);
        for member in folders.rev() {
            let folder = root.open_beneath(&member.path).map_err(fail)?;
            let dressed = folder.set_mode(member.mode & 0o777);
            kept(dressed.and_then(|()| folder.set_time(member.mtime))).map_err(fail)?;
            folder.sync().map_err(fail)?;
        }
        Ok(true)
    }

    /// A link as it is. Some disks have none.
    fn link(&mut self, member: &Member, into: &Dir, name: &OsStr) -> Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let Some(target) = &member.link else {
            return Ok(());
        };
        match into.symlink(target.as_os_str().as_bytes(), name) {
            Ok(()) => {
                kept(into.set_time_of(name, member.mtime)).map_err(|e| unwritten(self.export, e))
            }
            Err(e) if is_beyond(&e) => {
                let below = self.ready.place.below.join(&*member.path);
                self.ready.item.left_out.push(LeftOut {
                    path: self.export.shown(&self.ready.id, &below),
                    why: "is a link, and there are none on that disk".to_owned(),
                });
                Ok(())
            }
            Err(e) => Err(unwritten(self.export, e)),
        }
    }

    /// A copy of what was looked at, read back, without a name. `None` when a secret has come in meanwhile.
    fn copy<'d>(&mut self, member: &Member, into: &'d Dir) -> Result<Option<NewFile<'d>>> {
        let path = &*member.path;
        for attempt in 1..=ATTEMPTS {
            if attempt > 1 && !self.look_again(path)? {
                return Ok(None);
            }
            let Some((digest, size)) = self.ready.looked.files.get(path).copied() else {
                continue;
            };
            let Some(file) = self.open(path)? else {
                continue;
            };
            let state = Meta::of(&file).map_err(|e| self.unread(path, e))?;
            if state.kind != FileKind::File {
                continue;
            }
            let mut seen = state;
            seen.size = size;
            let (stop, buffers) = (self.export.context.stop, &mut self.buffers);
            let copied = disk::copy_file(&file, &seen, into, &mut Identity, buffers, stop);
            let (copy, copied) = copied.map_err(|e| self.of_copy(path, e))?;
            if (copied.digest, copied.size) != (digest, size) {
                continue;
            }
            self.dress(&copy, &state)?;
            let back = disk::check_open(copy.file(), &mut self.buffers, stop, &mut |_, _| {});
            if back.map_err(|e| self.of_copy(path, e))?.digest != digest {
                let what = "what was read back is not what was written";
                return Err(unwritten(self.export, io::Error::other(what)));
            }
            if state.size != size || !copied.source.same_state(&state) {
                let below = self.ready.place.below.join(path);
                let shown = self.export.shown(&self.ready.id, &below);
                self.ready.item.being_written.push(shown);
            }
            self.export.context.progress.advance(1, size);
            return Ok(Some(copy));
        }
        Err(self.restless(path))
    }

    /// Looks at a file once more; `false` when there is a secret in it now that keeps it here.
    fn look_again(&mut self, path: &Path) -> Result<bool> {
        let looking = self.export.looking(&self.ready.id, &self.ready.place);
        let seen = looking.file(path, u64::MAX)?;
        let mut again = super::look::Looked::default();
        if let Some(seen) = seen {
            looking.take(path, seen, &mut again);
        }
        let looked = &mut self.ready.looked;
        looked.files.remove(path);
        looked.files.extend(again.files);
        for finding in again.findings {
            if !looked.findings.contains(&finding) {
                looked.findings.push(finding);
            }
        }
        self.ready.note();
        Ok(!self.ready.is_held(self.export.request))
    }

    fn open(&self, path: &Path) -> Result<Option<std::fs::File>> {
        let above = path.parent().unwrap_or(Path::new(""));
        let parent = self.ready.place.dir.open_beneath(above);
        match parent.and_then(|dir| dir.open_file(path.file_name().unwrap_or_default())) {
            Ok(file) => Ok(Some(file)),
            Err(e) if disk::is_nowhere(&e) => Ok(None),
            Err(e) => Err(self.unread(path, e)),
        }
    }

    fn dress(&self, copy: &NewFile, state: &Meta) -> Result<()> {
        let dressed = disk::dress_file(copy.file(), None, state.mode & 0o777, state.mtime);
        kept(dressed)
            .and_then(|()| copy.sync())
            .map_err(|e| unwritten(self.export, e))
    }

    fn unread(&self, path: &Path, error: io::Error) -> Error {
        let below = self.ready.place.below.join(path);
        Error::io(
            "can not read",
            &*self.export.shown(&self.ready.id, &below),
            error,
        )
    }

    fn of_copy(&self, path: &Path, error: CopyError) -> Error {
        match error {
            CopyError::Read(error) => self.unread(path, error),
            CopyError::Write(error) => unwritten(self.export, error),
            CopyError::Stopped => Error::new(crate::base::Kind::Interrupted, "interrupted"),
        }
    }

    fn restless(&self, path: &Path) -> Error {
        let below = self.ready.place.below.join(path);
        Error::failed(format!(
            "{} changed each time that it was read, and what leaves must be what was looked at",
            human::path(&self.export.shown(&self.ready.id, &below))
        ))
        .hint("try again when its session has ended")
    }
}

fn publish(export: &Export, copy: &mut NewFile, name: &OsStr) -> Result<()> {
    copy.publish(name).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => export.in_the_way(&name.to_owned()),
        _ => unwritten(export, e),
    })
}

/// What a disk made for other systems does not keep is no failure.
fn kept(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if is_beyond(&e) => Ok(()),
        done => done,
    }
}

fn is_beyond(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput)
}
