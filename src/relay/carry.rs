//! Changing one session in the relay: what a comparison has found to be done, name by name.
//!
//! A session that is new there is built under a temporary name and appears whole. In one that is there each file takes
//! its place whole; what it takes the place of is looked at once more in that moment. What was checked is what leaves:
//! a copy whose content is another is not put there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::compare::{Change, Compared, is_linked, parent};
use super::record::{Holds, Log, Seen};
use super::side::is_left_by_others;
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
        if compared.changes.is_empty() && is_there {
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
                self.change(&there, compared, false)
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
                self.change(&dir, compared, true)?;
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

    /// `hidden` says that nobody else knows of the folder.
    fn change(&self, there: &Dir, compared: &mut Compared, hidden: bool) -> Result<(), Stuck> {
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
                Change::Replace(meta) if self.goes(compared, path, change).is_none() => {
                    Some(**meta)
                }
                Change::Put | Change::Replace(_) => None,
            };
            let place = Place { instead, hidden };
            self.put(&mut folders, path, place, compared, &mut buffers)?;
            failpoint::hit("relay.put");
        }
        Ok(())
    }

    /// What has to go before anything can come in its place: it goes for good, or one of the two is a folder.
    fn goes(&self, compared: &Compared, path: &Path, change: &Change) -> Option<Meta> {
        match change {
            Change::Remove(meta) => Some(**meta),
            Change::Replace(meta) => {
                let to_folder = matches!(holds(compared, path), Some(Holds::Folder));
                (to_folder != (meta.kind == FileKind::Folder)).then_some(**meta)
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
        place: Place,
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
        // What was put there, as far as it has facts of its own.
        let mut ours = None;
        let done = match &noted.holds {
            Holds::Folder => {
                made(to, name, noted.mode).map_err(fail)?;
                Expected::Done
            }
            Holds::Link(target) => {
                let make = |new: &OsStr| to.symlink(target, new);
                link(to, name, place, make, |meta| {
                    ours = Some(*meta);
                    true
                })
                .map_err(fail)?
                .unwrap_or(Expected::Done)
            }
            Holds::File(_) if is_linked(self.mode, path) => {
                let make = |new: &OsStr| to.hard_link(from, name, new);
                let looked = noted.looked.as_deref();
                let linked = link(to, name, place, make, |meta| {
                    ours = Some(*meta);
                    let same = looked.is_some_and(|looked| looked.same_content(meta));
                    same && meta.kind == FileKind::File
                });
                match linked.map_err(fail)? {
                    Some(done) => done,
                    // It is another file by now, which nobody has looked at.
                    None => return Err(Stuck::Restless(path.clone())),
                }
            }
            Holds::File(digest) => {
                let wanted = (
                    *digest,
                    noted.looked.as_ref().map_or(0, |looked| looked.size()),
                );
                let copy = self.copy(from, name, to, wanted, path, buffers)?;
                ours = Some(Meta::of(copy.file()).map_err(fail)?);
                published(copy, name, place.instead).map_err(fail)?
            }
        };
        expected(done, path)?;
        let there = to.stat(name).map_err(fail)?;
        // By now somebody else may have saved there: then the next sync looks at it.
        let is_ours = ours.is_none_or(|ours| Seen::of(&ours).same_content(&there));
        noted.there = (is_ours && !disk::is_fresh(&there)).then(|| Seen::of(&there));
        if !is_ours {
            return Err(Stuck::ChangedThere(path.clone()));
        }
        if let Some(here) = &mut noted.here {
            // One more name is a change of the file here, too.
            here.renew(&there);
        }
        noted.put = true;
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
                self.remove(&there, path, **meta)
                    .map_err(|e| Stuck::Io(path.clone(), e))
                    .and_then(|done| expected(done, path))?;
                failpoint::hit("relay.removed");
            }
        }
        let fail = |e| Stuck::Io(PathBuf::new(), e);
        self.sweep(&there).map_err(fail)?;
        let meta = there.meta().map_err(fail)?;
        let done = self.remove(self.root, name, meta);
        done.map(|_| ()).map_err(fail)
    }

    /// Takes what file managers leave out of folders in which there is nothing else.
    fn sweep(&self, there: &Dir) -> io::Result<()> {
        let tree = disk::walk(there, &|_, _| false, self.stop).map_err(io::Error::other)?;
        // The deepest first.
        for folder in tree.folders.iter().rev() {
            let dir = there.open_beneath(&folder.rel)?;
            let names = dir.names()?;
            if !names
                .iter()
                .all(|(name, kind)| is_left_by_others(name) && *kind == FileKind::File)
            {
                continue;
            }
            for (name, _) in names {
                dir.unlink(&name)?;
            }
            if let Some(name) = folder.rel.file_name() {
                let parent = folder.rel.parent().unwrap_or(Path::new(""));
                // What came in the meantime stays.
                let _ = there.open_beneath(parent)?.remove_folder(name);
            }
        }
        Ok(())
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

/// Where something is put.
#[derive(Clone, Copy)]
struct Place {
    /// What it takes the place of.
    instead: Option<Meta>,
    /// Whether nobody else knows of the folder.
    hidden: bool,
}

/// A link, symbolic or hard, under a name that is free, or in the place of what was looked at. `None` when it is not what
/// it should be: then nobody has seen it.
fn link(
    to: &Dir,
    name: &OsStr,
    place: Place,
    make: impl Fn(&OsStr) -> io::Result<()>,
    is_right: impl FnOnce(&Meta) -> bool,
) -> io::Result<Option<Expected>> {
    let first = match place.hidden {
        true => name.to_owned(),
        false => disk::temporary_name(),
    };
    make(&first)?;
    if !is_right(&to.stat(&first)?) {
        return to.unlink(&first).map(|()| None);
    }
    if place.hidden {
        return Ok(Some(Expected::Done));
    }
    if let Some(meta) = place.instead {
        return disk::replace_expected(to, &first, name, &meta).map(Some);
    }
    match came(to.rename(&first, to, name))? {
        Expected::Done => Ok(Some(Expected::Done)),
        Expected::Changed => to.unlink(&first).map(|()| Some(Expected::Changed)),
    }
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
pub(super) fn carried(compared: Compared) -> super::record::Names {
    compared
        .names
        .into_iter()
        .filter(|(_, noted)| noted.put)
        .map(|(path, mut noted)| {
            noted.looked = None;
            (path, noted)
        })
        .collect()
}
