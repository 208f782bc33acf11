//! What is unpacked is laid into its folder: made, written, read back, dressed.
//!
//! Nobody uses the folder yet, so files are made under their final names. Small ones go as a whole to the other cores;
//! a large one is written piece by piece by the thread that reads the stream. Folders stay open to their owner until
//! the end, when they get their modes and times, deepest first.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::course::{Expected, Report, Sink, part};
use super::tar::Tar;
use super::trouble::{Damage, Trouble};
use super::{Member, MemberKind};
use crate::base::{Context, Error, human};
use crate::disk::{self, Dir};

mod place;

pub(super) use place::Laid;
use place::{Place, lock};

/// A file up to this length is handed to another core as a whole.
const SMALL: u64 = 1 << 20;

/// How many bytes may wait for the other cores.
const WAITING: u64 = 32 << 20;

/// What a waiting file costs besides its content. Each may hold a folder open, and few may be open at once: 256 on
/// some systems.
const EACH: u64 = 512 << 10;

/// The unpacking of one pack.
pub(super) struct Work<'w> {
    place: Place<'w>,
    into: &'w Dir,
    /// What may not be unpacked, and was told.
    left_out: HashSet<usize>,
    /// Folders that were made here.
    made: HashSet<PathBuf>,
    /// The folder that the last member lies in.
    open: Option<(PathBuf, Arc<Dir>)>,
    /// What waits for the end.
    folders: Vec<usize>,
    names: Vec<usize>,
}

/// [`Work`] while the stream is read.
pub(super) struct Laying<'a, 'w, 's> {
    pub work: &'a mut Work<'w>,
    pub scope: &'a rayon::Scope<'s>,
}

impl<'s, 'w: 's> Sink for Laying<'_, 'w, 's> {
    fn take(
        &mut self,
        number: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        self.work.place.laid.check()?;
        match self.lay(number, member, tar) {
            Err(Trouble::Failed(error)) if is_too_long(error.io_cause()) => {
                Ok(Some(TOO_LONG.to_owned()))
            }
            laid => laid,
        }
    }
}

impl<'s, 'w: 's> Laying<'_, 'w, 's> {
    fn lay(
        &mut self,
        number: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        let place = self.work.place;
        if self.work.left_out.contains(&number) {
            return Ok(None);
        }
        match member.kind {
            MemberKind::Folder => {
                self.work.folder(&member.path)?;
                self.work.folders.push(number);
            }
            MemberKind::HardLink => self.work.names.push(number),
            MemberKind::Symlink => self.work.symlink(number, member)?,
            MemberKind::File if member.size <= SMALL => {
                let dir = self.work.folder_of(&member.path)?;
                let spare = lock(&place.laid.spare).pop();
                let content = tar.whole(spare.unwrap_or_default())?;
                let cost = content.len() as u64 + EACH;
                let waiting = place.laid.waiting.fetch_add(cost, Ordering::Relaxed);
                let work = move || {
                    place.small(number, &dir, &content);
                    lock(&place.laid.spare).push(content);
                    place.laid.waiting.fetch_sub(cost, Ordering::Relaxed);
                };
                match waiting > WAITING {
                    // The others have enough to do. To wait for them could be for ever: this may be one of them.
                    true => work(),
                    false => self.scope.spawn(move |_| work()),
                }
            }
            MemberKind::File => {
                let dir = self.work.folder_of(&member.path)?;
                return place.large(number, &dir, tar);
            }
        }
        Ok(None)
    }
}

impl<'w> Work<'w> {
    pub(super) fn new(
        into: &'w Dir,
        expected: &'w Expected<'_>,
        left_out: HashSet<usize>,
        laid: &'w Laid,
        context: &'w Context<'w>,
    ) -> Work<'w> {
        Work {
            place: Place {
                members: &expected.members,
                foreign: expected.foreign,
                laid,
                context,
            },
            into,
            left_out,
            made: HashSet::from([PathBuf::new()]),
            open: None,
            folders: Vec::new(),
            names: Vec::new(),
        }
    }

    /// The open folder that a member lies in, made with all above it where nobody has done so.
    fn folder_of(&mut self, path: &Path) -> Result<Arc<Dir>, Error> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if let Some((at, dir)) = &self.open
            && at == parent
        {
            return Ok(Arc::clone(dir));
        }
        self.folder(parent)?;
        let dir = self.into.open_beneath(parent);
        let dir = Arc::new(dir.map_err(|e| Error::io("can not open the folder", parent, e))?);
        self.open = Some((parent.to_path_buf(), Arc::clone(&dir)));
        Ok(dir)
    }

    /// Makes a folder and those above it.
    fn folder(&mut self, path: &Path) -> Result<(), Error> {
        let missing = path
            .ancestors()
            .take_while(|above| !self.made.contains(*above));
        let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        for folder in missing.into_iter().rev() {
            let parent = folder.parent().unwrap_or(Path::new(""));
            let dir = self.into.open_beneath(parent);
            let dir = dir.map_err(|e| Error::io("can not open the folder", parent, e))?;
            let name = folder.file_name().unwrap_or_default();
            dir.make(name)
                .map_err(|error| not_made("can not make the folder", &dir, &folder, error))?;
            self.made.insert(folder);
        }
        Ok(())
    }

    fn symlink(&mut self, number: usize, member: &Member) -> Result<(), Error> {
        let dir = self.folder_of(&member.path)?;
        let name = member.path.file_name().unwrap_or_default();
        let target = member
            .link
            .as_ref()
            .map_or(&b""[..], |link| link.as_os_str().as_bytes());
        let fail = |error| not_made("can not make the link", &dir, &member.path, error);
        dir.symlink(target, name).map_err(fail)?;
        if disk::is_root() {
            dir.set_owner_of(name, member.uid, member.gid)
                .map_err(fail)?;
        }
        dir.set_time_of(name, member.mtime).map_err(fail)?;
        let meta = dir.stat(name).map_err(fail)?;
        if dir.read_link(name).map_err(fail)? != target {
            return Err(fail(io::Error::other(
                "what was read back is not what was written",
            )));
        }
        let mut back = member.clone();
        (back.mtime, back.uid, back.gid) = (meta.mtime, meta.uid, meta.gid);
        back.xattrs.clear();
        self.place.done(number, back);
        Ok(())
    }

    /// Gives the further names, then the folders their modes and times. What was unpacked, as read back.
    pub(super) fn finish(mut self, report: &mut Report<'_>) -> Result<Vec<Member>, Trouble> {
        let place = self.place;
        place.laid.fail()?;
        for (number, what) in std::mem::take(&mut *lock(&place.laid.faults)) {
            let expected = &place.members[number];
            tell(report, expected, what)?;
        }
        self.further_names(report)?;
        let mut folders = std::mem::take(&mut self.folders);
        folders.sort_by_cached_key(|n| std::cmp::Reverse(place.members[*n].path.iter().count()));
        for number in folders {
            place.context.stop.check()?;
            place.dress_folder(self.into, number)?;
        }
        let mut members = std::mem::take(&mut *lock(&place.laid.members));
        members.sort_by_key(|(number, _)| *number);
        Ok(members.into_iter().map(|(_, member)| member).collect())
    }

    fn further_names(&mut self, report: &mut Report<'_>) -> Result<(), Trouble> {
        let place = self.place;
        let names = std::mem::take(&mut self.names);
        if names.is_empty() {
            return Ok(());
        }
        let mut there: HashSet<&Path> = lock(&place.laid.members)
            .iter()
            .map(|(n, _)| &*place.members[*n].path)
            .collect();
        for number in names {
            let member = &place.members[number];
            let Some(first) = &member.link else {
                continue;
            };
            if !there.contains(&**first) {
                let what = format!(
                    "is one more name of {}, which is damaged",
                    human::path(first)
                );
                tell(report, member, what)?;
                continue;
            }
            let dir = match self.folder_of(&member.path) {
                Err(error) if is_too_long(error.io_cause()) => {
                    tell(report, member, TOO_LONG.to_owned())?;
                    continue;
                }
                dir => dir?,
            };
            let above = first.parent().unwrap_or(Path::new(""));
            let name = member.path.file_name().unwrap_or_default();
            let linked = self
                .into
                .open_beneath(above)
                .and_then(|from| dir.hard_link(&from, first.file_name().unwrap_or_default(), name));
            if is_too_long(linked.as_ref().err()) {
                tell(report, member, TOO_LONG.to_owned())?;
                continue;
            }
            linked.map_err(|error| {
                not_made("can not make the further name", &dir, &member.path, error)
            })?;
            there.insert(&member.path);
            place.done(number, member.clone());
        }
        Ok(())
    }
}

/// Reports what is wrong with a member.
fn tell(report: &mut Report<'_>, member: &Member, what: String) -> Result<(), Trouble> {
    let name = part(member.path.as_os_str().as_bytes());
    let damage = Damage::new(name, what, member.frame);
    report(damage, std::slice::from_ref(member))
}

/// Why something could not be made. Names that were told apart in the pack may be one to this filesystem.
fn not_made(attempt: &str, dir: &Dir, path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists
        && let Some(other) = same_here(dir, path.file_name().unwrap_or_default())
    {
        let other = human::path(&path.with_file_name(other));
        return Error::failed(format!(
            "{attempt}, because {other} has the same name to this filesystem:"
        ))
        .at(path)
        .hint("unpack it on a filesystem that tells upper case from lower");
    }
    Error::io(attempt, path, error)
}

/// What is wrong with a member that can not be laid because of its name.
const TOO_LONG: &str = "has a name that is longer than this filesystem takes";

fn is_too_long(error: Option<&io::Error>) -> bool {
    error.is_some_and(|error| error.kind() == io::ErrorKind::InvalidFilename)
}

/// The name under which a folder holds what it also finds under this one.
fn same_here(dir: &Dir, name: &OsStr) -> Option<std::ffi::OsString> {
    let found = dir.stat(name).ok()?.identity();
    let mut names = dir.names().ok()?.into_iter().map(|(name, _)| name);
    names.find(|other| other != name && dir.stat(other).is_ok_and(|meta| meta.identity() == found))
}
