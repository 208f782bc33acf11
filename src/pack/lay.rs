//! What is unpacked is laid into its folder: made, written, read back, dressed.
//!
//! Nobody uses the folder yet, so files are made under their final names. Small ones go as a whole to the other cores;
//! a large one is written piece by piece by the thread that reads the stream. Folders stay open to their owner until
//! the end, when they get their modes and times, deepest first.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::course::{Expected, Report, Sink};
use super::tar::Tar;
use super::trouble::Trouble;
use super::verify::wrong_digest;
use super::{Member, MemberKind, short_digest};
use crate::base::{Context, Error, human};
use crate::disk::{self, Digest, Dir, Meta, Xattrs};

/// A file up to this length is handed to another core as a whole.
const SMALL: u64 = 1 << 20;

/// How many bytes may wait for the other cores.
const WAITING: u64 = 32 << 20;

/// What a waiting file costs besides its content. Each may hold a folder open, and few may be open at once: 256 on
/// some systems.
const EACH: u64 = 512 << 10;

/// Setuid and setgid.
const LENT: u32 = 0o6000;

/// What the workers report.
#[derive(Default)]
pub(super) struct Laid {
    /// As read back.
    members: Mutex<Vec<(usize, Member)>>,
    /// What is wrong with the content of a member.
    faults: Mutex<Vec<(usize, String)>>,
    failed: Mutex<Option<Error>>,
    /// Whether to look at `faults` and `failed`.
    trouble: AtomicBool,
    waiting: AtomicU64,
    /// Buffers that were used: fresh memory costs more than what is written into it.
    spare: Mutex<Vec<Vec<u8>>>,
}

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

/// What a worker has to know.
#[derive(Clone, Copy)]
struct Place<'w> {
    members: &'w [Member],
    foreign: bool,
    laid: &'w Laid,
    context: &'w Context<'w>,
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
            let damage = super::trouble::Damage::new(
                super::course::part(expected.path.as_os_str().as_bytes()),
                what,
                expected.frame,
            );
            report(damage, std::slice::from_ref(expected))?;
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
        let laid = lock(&place.laid.members);
        let mut there: HashMap<&Path, ()> = laid
            .iter()
            .map(|(n, _)| (&*place.members[*n].path, ()))
            .collect();
        drop(laid);
        for number in names {
            let member = &place.members[number];
            let Some(first) = &member.link else {
                continue;
            };
            if !there.contains_key(&**first) {
                let what = format!(
                    "is one more name of {}, which is damaged",
                    human::path(first)
                );
                let name = super::course::part(member.path.as_os_str().as_bytes());
                let damage = super::trouble::Damage::new(name, what, member.frame);
                report(damage, std::slice::from_ref(member))?;
                continue;
            }
            let damaged = |what: &str| {
                let name = super::course::part(member.path.as_os_str().as_bytes());
                super::trouble::Damage::new(name, what, member.frame)
            };
            let dir = match self.folder_of(&member.path) {
                Err(error) if is_too_long(error.io_cause()) => {
                    report(damaged(TOO_LONG), std::slice::from_ref(member))?;
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
                report(damaged(TOO_LONG), std::slice::from_ref(member))?;
                continue;
            }
            linked.map_err(|error| {
                not_made("can not make the further name", &dir, &member.path, error)
            })?;
            there.insert(&member.path, ());
            place.done(number, member.clone());
        }
        Ok(())
    }
}

impl Place<'_> {
    /// Lays a small file.
    fn small(self, number: usize, dir: &Dir, content: &[u8]) {
        let member = &self.members[number];
        if self.laid.trouble_of_all() {
            return;
        }
        let digest = blake3::hash(content);
        if let Some(what) = wrong_digest(member, &digest) {
            lock(&self.laid.faults).push((number, what));
            return;
        }
        let name = member.path.file_name().unwrap_or_default();
        let laid = dir.create_file(name).and_then(|file| {
            file.write_all_at(content, 0)?;
            read_back(&file, content, 0)?;
            self.dress(&file, member, digest)
        });
        match laid {
            Ok(back) => self.done(number, back),
            Err(error) if is_too_long(Some(&error)) => {
                lock(&self.laid.faults).push((number, TOO_LONG.to_owned()));
            }
            Err(error) => self
                .laid
                .give_up(not_made("can not write", dir, &member.path, error)),
        }
    }

    /// Lays a large file while it is decoded. What could not be proved good is not left there.
    fn large(
        self,
        number: usize,
        dir: &Dir,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        let member = &self.members[number];
        let name = member.path.file_name().unwrap_or_default();
        let fail = |error| Trouble::Failed(not_made("can not write", dir, &member.path, error));
        let file = dir.create_file(name).map_err(fail)?;
        let wrong = match self.stream(&file, member, tar) {
            Ok(Ok(back)) => {
                self.done(number, back);
                return Ok(None);
            }
            Ok(Err(what)) => Ok(Some(what)),
            Err(trouble) => Err(trouble),
        };
        dir.unlink(name).map_err(fail)?;
        wrong
    }

    fn stream(
        self,
        file: &File,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Result<Member, String>, Trouble> {
        let fail = |error| Trouble::Failed(Error::io("can not write", &*member.path, error));
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        tar.content(&mut |piece| {
            self.context.stop.check()?;
            hasher.update(piece);
            // Nothing is written where nothing but zeros stands: it is a hole then.
            if piece.iter().any(|byte| *byte != 0) {
                file.write_all_at(piece, at).map_err(fail)?;
                read_back(file, piece, at).map_err(fail)?;
            }
            at += piece.len() as u64;
            Ok(())
        })?;
        file.set_len(at).map_err(fail)?;
        let digest = hasher.finalize();
        if let Some(what) = wrong_digest(member, &digest) {
            return Ok(Err(what));
        }
        self.dress(file, member, digest).map(Ok).map_err(fail)
    }

    /// Gives a file everything but its content, and returns what it is then.
    fn dress(self, file: &File, member: &Member, digest: Digest) -> io::Result<Member> {
        let xattrs = self.attributes(member);
        // Before the mode, which may forbid it. What the place does not keep is seen when they are read back.
        let _ = xattrs.apply(file);
        let owner = disk::is_root().then_some((member.uid, member.gid));
        let whose = match owner {
            Some(owner) => owner,
            None => Meta::of(file).map(|meta| (meta.uid, meta.gid))?,
        };
        let mode = mode_for(member, self.foreign, whose);
        disk::dress_file(file, owner, mode, member.mtime)?;
        if owner.is_some() && !xattrs.is_empty() {
            // A file that is given away loses its capabilities.
            let _ = xattrs.apply(file);
        }
        let meta = Meta::of(file)?;
        if meta.size != member.size {
            return Err(io::Error::other("it has not the length that was written"));
        }
        let xattrs = match xattrs.is_empty() {
            true => xattrs,
            false => Xattrs::of(file)?,
        };
        let mut back = seen(member, &meta, &xattrs);
        back.blake3 = Some(short_digest(&digest));
        Ok(back)
    }

    fn dress_folder(self, into: &Dir, number: usize) -> Result<(), Error> {
        let member = &self.members[number];
        let fail = |error| Error::io("can not set the mode of the folder", &*member.path, error);
        let dir = into.open_beneath(&member.path).map_err(fail)?;
        let xattrs = self.attributes(member);
        let _ = xattrs.apply(&dir);
        if disk::is_root() {
            dir.set_owner(member.uid, member.gid).map_err(fail)?;
        }
        dir.set_mode(member.mode).map_err(fail)?;
        dir.set_time(member.mtime).map_err(fail)?;
        let kept = match xattrs.is_empty() {
            true => xattrs,
            false => Xattrs::of(&dir).map_err(fail)?,
        };
        let meta = dir.meta().map_err(fail)?;
        self.done(number, seen(member, &meta, &kept));
        Ok(())
    }

    /// The attributes that a member may have here.
    fn attributes(self, member: &Member) -> Xattrs {
        let rights = |name: &str| name.starts_with("security.") || name.starts_with("trusted.");
        let allowed = member
            .xattrs
            .iter()
            .filter(|(name, _)| !(self.foreign && rights(name)));
        Xattrs::known(allowed.filter_map(|(name, value)| {
            Some((name.clone().into_bytes(), STANDARD.decode(value).ok()?))
        }))
    }

    fn done(self, number: usize, member: Member) {
        self.context.progress.advance(1, member.size);
        lock(&self.laid.members).push((number, member));
    }
}

impl Laid {
    fn give_up(&self, error: Error) {
        lock(&self.failed).get_or_insert(error);
        self.trouble.store(true, Ordering::Relaxed);
    }

    fn trouble_of_all(&self) -> bool {
        self.trouble.load(Ordering::Relaxed)
    }

    /// An error once a worker has failed.
    fn check(&self) -> Result<(), Error> {
        match self.trouble_of_all() {
            true => self.fail(),
            false => Ok(()),
        }
    }

    fn fail(&self) -> Result<(), Error> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }
}

/// The mode of a file that will belong to `whose` user and group. Setuid and setgid lend out the rights of those whose
/// file it is: nobody's whom the one who set them did not mean, and nobody's at the word of a pack made by hand.
fn mode_for(member: &Member, foreign: bool, whose: (u32, u32)) -> u32 {
    match foreign || whose != (member.uid, member.gid) {
        true => member.mode & !LENT,
        false => member.mode,
    }
}

/// A member with what the disk says of it.
fn seen(member: &Member, meta: &Meta, xattrs: &Xattrs) -> Member {
    let mut seen = member.clone();
    (seen.mode, seen.uid, seen.gid, seen.mtime) = (meta.mode, meta.uid, meta.gid, meta.mtime);
    let xattrs = xattrs.iter().map(|(name, value)| {
        (
            String::from_utf8_lossy(name).into_owned(),
            STANDARD.encode(value),
        )
    });
    seen.xattrs = xattrs.collect();
    seen
}

fn read_back(file: &File, written: &[u8], mut at: u64) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    for piece in written.chunks(buffer.len()) {
        let back = &mut buffer[..piece.len()];
        file.read_exact_at(back, at)?;
        if back != piece {
            let what = "what was read back is not what was written";
            return Err(io::Error::other(what));
        }
        at += piece.len() as u64;
    }
    Ok(())
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Stamp;

    #[test]
    fn rights_are_lent_out_by_those_alone_whose_file_it_was() {
        let mode = |mode, foreign, whose| {
            let member = Member {
                path: Path::new("run").to_path_buf().into(),
                kind: MemberKind::File,
                mode,
                uid: 1000,
                gid: 100,
                mtime: Stamp {
                    seconds: 0,
                    nanos: 0,
                },
                size: 0,
                blake3: None,
                link: None,
                xattrs: Default::default(),
                frame: 0,
                at: 0,
            };
            mode_for(&member, foreign, whose)
        };
        assert_eq!(mode(0o6755, false, (1000, 100)), 0o6755);
        assert_eq!(mode(0o6755, false, (1001, 100)), 0o755);
        assert_eq!(mode(0o2755, false, (1000, 50)), 0o755);
        assert_eq!(mode(0o4711, false, (0, 0)), 0o711);
        assert_eq!(mode(0o4711, true, (1000, 100)), 0o711);
        // The rest is nobody's right.
        assert_eq!(mode(0o1754, false, (1001, 50)), 0o1754);
    }
}
