//! Changing one session in the relay: what a comparison has found to be done, name by name.
//!
//! A session that is new there is built under a temporary name and appears whole. In one that is there each file takes
//! its place whole; what it takes the place of is looked at once more in that moment. What was checked is what leaves:
//! a copy whose content is another is not put there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::compare::{Change, Compared, is_linked, parent};
use super::record::{Holds, Log, Seen};
use crate::base::{Result, Stop, failpoint, human};
use crate::disk::{
    self, Buffers, CopyError, Dir, Expected, FileKind, Identity, Meta, NewFile, TEMPORARY_PREFIX,
};
use crate::home::RelayMode;

/// Why a session was not carried, or not wholly.
#[derive(Debug)]
pub enum Stuck {
    /// Something here was written to again and again.
    Restless(PathBuf),
    /// Something there is not what it was when it was looked at.
    ChangedThere(PathBuf),
    /// The system said no.
    Io(PathBuf, io::Error),
    /// Somebody asked to stop.
    Stopped,
    /// The log could not be written.
    Log(crate::base::Error),
}

/// What is needed for it.
pub struct Carrying<'a> {
    /// The relay.
    pub root: &'a Dir,
    /// The id of this device.
    pub device: &'a str,
    /// The id of the session: its name there.
    pub id: &'a str,
    /// Here.
    pub here: &'a Dir,
    /// How files get there.
    pub mode: RelayMode,
    /// The log.
    pub log: &'a Log,
    /// Whether to stop.
    pub stop: &'a Stop,
}

impl Carrying<'_> {
    /// Carries a session that is not there yet, or what of it has changed. What was done is noted in `compared.names`.
    ///
    /// # Errors
    /// Why it could not be; what was carried until then is there, and is in the log.
    pub fn run(&self, compared: &mut Compared, is_there: bool) -> Result<(), Stuck> {
        if compared.changes.is_empty() {
            return Ok(());
        }
        let names = compared.changes.keys();
        let names = names.map(|path| (path.as_path(), holds(compared, path)));
        self.log.begin(self.id, names).map_err(Stuck::Log)?;
        failpoint::hit("relay.begun");
        match is_there {
            true => {
                let there = self.root.open_beneath(Path::new(self.id));
                let there = there.map_err(|e| Stuck::Io(PathBuf::new(), e))?;
                self.change(&there, compared)
            }
            false => self.put_whole(compared),
        }
    }

    /// Builds a session under a temporary name, and gives it its own.
    fn put_whole(&self, compared: &mut Compared) -> Result<(), Stuck> {
        let fail = |e| Stuck::Io(PathBuf::new(), e);
        let temporary = temporary_folder(self.device);
        self.root.make(&temporary).map_err(fail)?;
        let built = self
            .root
            .open_beneath(Path::new(&temporary))
            .map_err(fail)
            .and_then(|dir| {
                let mode = self.here.meta().map_err(fail)?.mode;
                self.change(&dir, compared)?;
                dir.set_mode(mode | 0o700).map_err(fail)
            });
        let done = built.and_then(|()| {
            failpoint::hit("relay.built");
            match self.root.rename(&temporary, self.root, OsStr::new(self.id)) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    Err(Stuck::ChangedThere(PathBuf::new()))
                }
                done => done.map_err(fail),
            }
        });
        if done.is_err() {
            // What stays is removed by the next sync.
            let _ = disk::remove_tree(self.root, &temporary);
        }
        failpoint::hit("relay.named");
        done
    }

    fn change(&self, there: &Dir, compared: &mut Compared) -> Result<(), Stuck> {
        let changes = std::mem::take(&mut compared.changes);
        // What goes makes way, the deepest first.
        for (path, change) in changes.iter().rev() {
            self.stop.check().map_err(|_| Stuck::Stopped)?;
            if let Some(meta) = self.goes(compared, path, change) {
                self.remove(there, path, meta)
                    .map_err(|e| Stuck::Io(path.clone(), e))
                    .and_then(|done| expected(done, path))?;
                failpoint::hit("relay.removed");
            }
        }
        let mut buffers = Buffers::new();
        let mut folders = Folders::new(self.here, there);
        for (path, change) in &changes {
            self.stop.check().map_err(|_| Stuck::Stopped)?;
            let instead = match change {
                Change::Remove(_) => continue,
                Change::Replace(meta) if self.goes(compared, path, change).is_none() => Some(*meta),
                Change::Put | Change::Replace(_) => None,
            };
            self.put(&mut folders, path, instead, compared, &mut buffers)?;
            failpoint::hit("relay.put");
        }
        Ok(())
    }

    /// What has to go before anything can come in its place: it goes for good, or one of the two is a folder.
    fn goes(&self, compared: &Compared, path: &Path, change: &Change) -> Option<Meta> {
        match change {
            Change::Remove(meta) => Some(*meta),
            Change::Replace(meta) => {
                let to_folder = matches!(holds(compared, path), Some(Holds::Folder));
                (to_folder != (meta.kind == FileKind::Folder)).then_some(*meta)
            }
            Change::Put => None,
        }
    }

    fn remove(&self, there: &Dir, path: &Path, meta: Meta) -> io::Result<Expected> {
        let (dir, name) = match parent(there, path) {
            Err(error) if disk::is_nowhere(&error) => return Ok(Expected::Done),
            found => found?,
        };
        if meta.kind != FileKind::Folder {
            return disk::remove_expected(&dir, name, &meta);
        }
        match dir.remove_folder(name) {
            // What others have left in it stays, and it with that.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
                ) =>
            {
                Ok(Expected::Done)
            }
            done => done.map(|()| Expected::Done),
        }
    }

    fn put(
        &self,
        folders: &mut Folders<'_>,
        path: &PathBuf,
        instead: Option<Meta>,
        compared: &mut Compared,
        buffers: &mut Buffers,
    ) -> Result<(), Stuck> {
        let fail = |e| Stuck::Io(path.clone(), e);
        let Some(noted) = compared.names.get_mut(path) else {
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default();
        let (from, to) = folders
            .of(path.parent().unwrap_or(Path::new("")))
            .map_err(fail)?;
        let done = match &noted.holds {
            Holds::Folder => {
                made(to, name, noted.mode).map_err(fail)?;
                Expected::Done
            }
            Holds::Link(target) => {
                link(to, name, instead, |new| to.symlink(target, new)).map_err(fail)?
            }
            Holds::File(_) if is_linked(self.mode, path) => {
                link(to, name, instead, |new| to.hard_link(from, name, new)).map_err(fail)?
            }
            Holds::File(digest) => {
                let wanted = (*digest, noted.size);
                let copy = self.copy(from, name, to, wanted, path, buffers)?;
                published(copy, name, instead).map_err(fail)?
            }
        };
        expected(done, path)?;
        let there = to.stat(name).map_err(fail)?;
        noted.there = Some(Seen::of(&there));
        if let Some(here) = &mut noted.here {
            // One more name is a change of the file here, too.
            here.renew(&there);
        }
        Ok(())
    }

    /// A copy of what was looked at. The file may have been written to since: then it is looked at again by whoever
    /// called.
    fn copy<'d>(
        &self,
        from: &Dir,
        name: &OsStr,
        to: &'d Dir,
        (digest, size): (disk::Digest, u64),
        path: &Path,
        buffers: &mut Buffers,
    ) -> Result<NewFile<'d>, Stuck> {
        let fail = |e| Stuck::Io(path.to_path_buf(), e);
        let restless = || Stuck::Restless(path.to_path_buf());
        let file = from.open_file(name).map_err(fail)?;
        // One that has grown since leaves as far as it was looked at.
        let seen = Meta {
            size,
            ..Meta::of(&file).map_err(fail)?
        };
        if seen.kind != FileKind::File {
            return Err(restless());
        }
        let copied = disk::copy_file(&file, &seen, to, &mut Identity, buffers, self.stop);
        let (copy, copied) = match copied {
            Ok(copied) => copied,
            Err(CopyError::Read(e) | CopyError::Write(e)) => return Err(fail(e)),
            Err(CopyError::Stopped) => return Err(Stuck::Stopped),
        };
        if copied.digest != digest {
            return Err(restless());
        }
        copy.dress(None, seen.mode | 0o600, seen.mtime)
            .map_err(fail)?;
        Ok(copy)
    }

    /// Takes away what we have put there, and the folder of the session with it unless somebody has left something in it.
    ///
    /// # Errors
    /// As [`Carrying::run`].
    pub fn clear(&self, compared: &Compared) -> Result<(), Stuck> {
        let name = Path::new(self.id);
        let there = match self.root.open_beneath(name) {
            Err(error) if disk::is_nowhere(&error) => return Ok(()),
            found => found.map_err(|e| Stuck::Io(PathBuf::new(), e))?,
        };
        let names = compared.changes.keys().map(|path| (path.as_path(), None));
        self.log.begin(self.id, names).map_err(Stuck::Log)?;
        failpoint::hit("relay.begun");
        for (path, change) in compared.changes.iter().rev() {
            self.stop.check().map_err(|_| Stuck::Stopped)?;
            if let Change::Remove(meta) = change {
                self.remove(&there, path, *meta)
                    .map_err(|e| Stuck::Io(path.clone(), e))
                    .and_then(|done| expected(done, path))?;
                failpoint::hit("relay.removed");
            }
        }
        let meta = there.meta().map_err(|e| Stuck::Io(PathBuf::new(), e))?;
        let done = self.remove(self.root, name, meta);
        done.map(|_| ()).map_err(|e| Stuck::Io(PathBuf::new(), e))
    }

    /// Takes away the link that the session was there.
    ///
    /// # Errors
    /// As [`Carrying::run`].
    pub fn unlink(&self, link: &Meta) -> Result<(), Stuck> {
        let line = std::iter::once((Path::new(""), None));
        self.log.begin(self.id, line).map_err(Stuck::Log)?;
        disk::remove_expected(self.root, OsStr::new(self.id), link)
            .map_err(|e| Stuck::Io(PathBuf::new(), e))
            .and_then(|done| expected(done, Path::new("")))
    }

    /// Makes the session one link.
    ///
    /// # Errors
    /// As [`Carrying::run`].
    pub fn put_link(&self, target: &Path) -> Result<(), Stuck> {
        use std::os::unix::ffi::OsStrExt as _;
        let fail = |e| Stuck::Io(PathBuf::new(), e);
        let name = OsStr::new(self.id);
        let holds = Holds::Link(target.as_os_str().as_bytes().to_vec());
        let line = std::iter::once((Path::new(""), Some(&holds)));
        self.log.begin(self.id, line).map_err(Stuck::Log)?;
        failpoint::hit("relay.begun");
        match self.root.symlink(target.as_os_str().as_bytes(), name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Stuck::ChangedThere(PathBuf::new()));
            }
            done => done.map_err(fail)?,
        }
        failpoint::hit("relay.linked");
        Ok(())
    }
}

fn holds<'a>(compared: &'a Compared, path: &Path) -> Option<&'a Holds> {
    compared.names.get(path).map(|noted| &noted.holds)
}

fn expected(done: Expected, path: &Path) -> Result<(), Stuck> {
    match done {
        Expected::Done => Ok(()),
        Expected::Changed => Err(Stuck::ChangedThere(path.to_path_buf())),
    }
}

fn published(mut copy: NewFile<'_>, name: &OsStr, instead: Option<Meta>) -> io::Result<Expected> {
    match instead {
        Some(meta) => copy.publish_instead(name, &meta),
        None => came(copy.publish(name)),
    }
}

/// A link, symbolic or hard, under a name that is free, or in the place of what was looked at.
fn link(
    to: &Dir,
    name: &OsStr,
    instead: Option<Meta>,
    make: impl Fn(&OsStr) -> io::Result<()>,
) -> io::Result<Expected> {
    let Some(meta) = instead else {
        return came(make(name));
    };
    let temporary = disk::temporary_name();
    make(&temporary)?;
    disk::replace_expected(to, &temporary, name, &meta)
}

fn came(done: io::Result<()>) -> io::Result<Expected> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Expected::Changed),
        done => done.map(|()| Expected::Done),
    }
}

fn made(to: &Dir, name: &OsStr, mode: u32) -> io::Result<()> {
    match to.make(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Fails when it is no folder.
            to.open_beneath(Path::new(name)).map(|_| ())
        }
        Err(error) => Err(error),
        // One that its owner can not write to could not be filled.
        Ok(()) => to.open_beneath(Path::new(name))?.set_mode(mode | 0o700),
    }
}

/// How the temporary folder of a session begins that this device is building.
pub(super) fn temporary_of(device: &str) -> String {
    format!("{TEMPORARY_PREFIX}{}", device.get(..8).unwrap_or(device))
}

/// Names from another device may look like a temporary file of ours, but for its id.
fn temporary_folder(device: &str) -> OsString {
    let random = disk::temporary_name();
    let random = random.to_string_lossy();
    let end = random.len().saturating_sub(8);
    format!(
        "{}{}",
        temporary_of(device),
        random.get(end..).unwrap_or_default()
    )
    .into()
}

/// The folders of both sides that were opened last: files come in order, so each is opened once.
struct Folders<'a> {
    here: &'a Dir,
    there: &'a Dir,
    open: Option<(PathBuf, Dir, Dir)>,
}

impl<'a> Folders<'a> {
    fn new(here: &'a Dir, there: &'a Dir) -> Self {
        Folders {
            here,
            there,
            open: None,
        }
    }

    fn of(&mut self, rel: &Path) -> io::Result<(&Dir, &Dir)> {
        if self.open.as_ref().is_none_or(|(open, ..)| open != rel) {
            let here = self.here.open_beneath(rel)?;
            let there = self.there.open_beneath(rel)?;
            self.open = Some((rel.to_path_buf(), here, there));
        }
        match &self.open {
            Some((_, here, there)) => Ok((here, there)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Stuck {
    /// Why, for a person.
    pub fn told(&self) -> String {
        let at = |path: &Path| match path.as_os_str().is_empty() {
            true => String::new(),
            false => format!("{}: ", human::path(path)),
        };
        match self {
            Stuck::Restless(path) => format!(
                "{}it was written to whenever it was read; the next sync tries again",
                at(path)
            ),
            Stuck::ChangedThere(path) => format!(
                "{}it was changed in the relay at the same moment; the next sync looks again",
                at(path)
            ),
            Stuck::Io(path, error) => format!("{}{}", at(path), human::io(error)),
            Stuck::Stopped => "interrupted".to_owned(),
            Stuck::Log(error) => error.to_string(),
        }
    }
}

/// What of a comparison was carried, by name, where only a part was: the names that are recorded as they are there.
pub(super) fn carried(compared: Compared) -> BTreeMap<PathBuf, super::record::Noted> {
    compared
        .names
        .into_iter()
        .filter(|(_, noted)| noted.there.is_some())
        .collect()
}
