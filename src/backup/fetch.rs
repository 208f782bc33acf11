//! Fetching one thing out of a store: the best pack of it that is whole, unpacked, read back, compared.
//!
//! A pack is compared as a whole with the digest that the snapshot has of it, and member by member while it is
//! unpacked. A damaged one is told, and the next is taken; where none is whole, what is proved good of the newest. What
//! a pack has in the place of something that nobody could read is zeros: that does not come back, and is named.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::source::Source;
use super::{Form, Item, PackRef, Store};
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::{self, Dir, Meta, NewFile};
use crate::pack::{self, FlawKind, Limits, Member, MemberKind, Nature, Pack};

/// A thing that was fetched, or not.
#[derive(Debug)]
pub struct Fetched {
    /// What was laid; `None` when nothing of any pack could be proved good.
    pub laid: Option<Laid>,
    /// Packs that would have come first and are of no use.
    pub not_used: Vec<NotUsed>,
}

/// What was laid.
#[derive(Debug)]
pub struct Laid {
    /// The pack that it came from.
    pub pack: PackRef,
    /// Its members as they were read back from the disk. Empty where the pack itself was copied.
    pub members: Vec<Member>,
    /// What of it is not there.
    pub missing: Vec<Missing>,
    /// Files that changed while they were packed: they may be a mixture of two states.
    pub restless: Vec<PathBuf>,
    /// Newer packs, which are partial.
    pub newer: Vec<PackRef>,
    /// Whether the pack is damaged, and this is what is proved good of it.
    pub salvaged: bool,
    /// Whether it is the pack itself, which was copied as it is.
    pub as_it_is: bool,
}

/// A pack that was of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUsed {
    /// The pack.
    pub pack: PackRef,
    /// Why.
    pub why: String,
}

/// Something that could not be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which, below the thing; empty for the thing itself.
    pub path: PathBuf,
    /// Why.
    pub why: String,
    /// Whether it had been removed by the time that it should have been read: then nothing is missed.
    pub vanished: bool,
}

impl Laid {
    /// How many files were laid, and their bytes.
    pub fn content(&self) -> (u64, u64) {
        if self.as_it_is {
            return (1, self.pack.bytes);
        }
        let files = self.members.iter().filter(|member| member.kind.is_file());
        files.fold((0, 0), |(n, bytes), member| (n + 1, bytes + member.size))
    }

    /// Whether something is missed.
    pub fn is_whole(&self) -> bool {
        !self.salvaged && self.missing.iter().all(|missing| missing.vanished)
    }
}

/// Fetches a thing as the folder `name` of `into`, where nothing may stand. What is written is not yet on the disk:
/// [`disk::sync_filesystem`] sees to that.
///
/// # Errors
/// What can not be written, and interruption. Nothing is left of it then.
pub fn folder(
    source: &Source,
    item: &Item,
    into: &Dir,
    name: &OsStr,
    context: &Context,
) -> Result<Fetched> {
    let newest = Source::newest(item);
    let mut course = Course {
        store: source.store(),
        item,
        into,
        name,
        not_used: Vec::new(),
        context,
    };
    for pack in &newest {
        if let Some(laid) = course.attempt(pack, Limits::default())? {
            return Ok(course.fetched(Some(laid)));
        }
    }
    for pack in source.further(item) {
        if let Some(laid) = course.attempt(&pack, Limits::default())? {
            return Ok(course.fetched(Some(laid)));
        }
    }
    // None is whole. What is proved good of the newest is more than nothing.
    let salvage = Limits { salvage: true };
    for pack in &newest {
        let told = course.not_used.len();
        let laid = course.attempt(pack, salvage)?;
        course.not_used.truncate(told);
        if laid.is_some() {
            return Ok(course.fetched(laid));
        }
    }
    Ok(course.fetched(None))
}

/// Fetches the archive of a session as the file `name` of `into`, as it stood in `archive/`. `None` when no pack of
/// that form is whole.
///
/// # Errors
/// As [`folder`].
pub fn archive(
    source: &Source,
    item: &Item,
    into: &Dir,
    name: &OsStr,
    context: &Context,
) -> Result<Fetched> {
    let mut course = Course {
        store: source.store(),
        item,
        into,
        name,
        not_used: Vec::new(),
        context,
    };
    let own = item.archive.iter().cloned().chain(Source::newest(item));
    let is_archive = |pack: &PackRef| pack.form == Form::Archive;
    let mut damaged = Vec::new();
    for pack in own.filter(is_archive) {
        // One that was damaged when it was copied comes when there is no other.
        if !pack.is_complete() {
            damaged.push(pack);
        } else if let Some(laid) = course.copy(&pack)? {
            return Ok(course.fetched(Some(laid)));
        }
    }
    let further = source.further(item).into_iter().filter(is_archive);
    let (whole, more): (Vec<_>, Vec<_>) = further.partition(PackRef::is_complete);
    for pack in whole.into_iter().chain(damaged).chain(more) {
        if let Some(laid) = course.copy(&pack)? {
            return Ok(course.fetched(Some(laid)));
        }
    }
    Ok(course.fetched(None))
}

/// On the way through the packs of a thing.
struct Course<'c> {
    store: &'c Store,
    item: &'c Item,
    into: &'c Dir,
    name: &'c OsStr,
    not_used: Vec<NotUsed>,
    context: &'c Context<'c>,
}

impl Course<'_> {
    fn fetched(self, laid: Option<Laid>) -> Fetched {
        let mut fetched = Fetched {
            laid,
            not_used: self.not_used,
        };
        if let Some(laid) = &mut fetched.laid {
            let newer = Source::newest(self.item).into_iter();
            let is_newer = |pack: &PackRef| pack.at > laid.pack.at && !pack.is_complete();
            let told = |pack: &PackRef| fetched.not_used.iter().any(|n| n.pack.file == pack.file);
            laid.newer = newer.filter(|pack| is_newer(pack) && !told(pack)).collect();
        }
        fetched
    }

    fn refuse(&mut self, pack: &PackRef, why: impl ToString) {
        self.not_used.push(NotUsed {
            pack: pack.clone(),
            why: why.to_string(),
        });
    }

    /// The pack, open and compared with its digest; with `salvage` whatever it is.
    fn opened(&mut self, pack: &PackRef, salvage: bool) -> Result<Option<Pack>> {
        self.context.stop.check()?;
        let opened = match salvage {
            true => self.store.damaged_pack(pack),
            false => self.store.pack(pack),
        };
        let whole = opened.and_then(|opened| match salvage || opened.digest()? == pack.blake3 {
            true => Ok(opened),
            false => Err(Error::failed(
                "it is not what it was when it was written: its digest differs",
            )),
        });
        match whole {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == Kind::Interrupted => Err(error),
            Err(error) => {
                self.refuse(pack, error);
                Ok(None)
            }
        }
    }

    fn attempt(&mut self, pack: &PackRef, limits: Limits) -> Result<Option<Laid>> {
        let Some(opened) = self.opened(pack, limits.salvage)? else {
            return Ok(None);
        };
        match unpack_as(&opened, self.into, self.name, limits, self.context) {
            Ok(unpacked) => {
                let laid = Laid {
                    pack: pack.clone(),
                    members: unpacked.members,
                    missing: unpacked.missing,
                    restless: unpacked.restless,
                    newer: Vec::new(),
                    salvaged: limits.salvage,
                    as_it_is: false,
                };
                if limits.salvage && laid.content().0 == 0 {
                    self.clear();
                    return Ok(None);
                }
                Ok(Some(laid))
            }
            // The disk that is written to, or somebody at the keyboard: the next pack would fare no better.
            Err(error) if error.kind() == Kind::Interrupted || error.io_cause().is_some() => {
                self.clear();
                Err(error)
            }
            Err(error) => {
                self.clear();
                self.refuse(pack, error);
                Ok(None)
            }
        }
    }

    fn clear(&self) {
        // What stays makes the next attempt fail, which says so.
        let _ = disk::remove_tree(self.into, self.name);
    }

    /// Copies the pack itself.
    fn copy(&mut self, pack: &PackRef) -> Result<Option<Laid>> {
        self.context.stop.check()?;
        match copy_pack(self.store, pack, self.into, self.name, self.context)? {
            Ok(()) => Ok(Some(Laid {
                pack: pack.clone(),
                members: Vec::new(),
                missing: Vec::new(),
                restless: Vec::new(),
                newer: Vec::new(),
                salvaged: false,
                as_it_is: true,
            })),
            Err(why) => {
                self.refuse(pack, why);
                Ok(None)
            }
        }
    }
}

/// What came out of a pack.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub members: Vec<Member>,
    pub missing: Vec<Missing>,
    pub restless: Vec<PathBuf>,
}

/// Unpacks a pack as the folder `name` of `into`, where nothing may stand. What lies there after an error is for the
/// caller to remove.
///
/// # Errors
/// As [`pack::unpack`].
pub(super) fn unpack_as(
    opened: &Pack,
    into: &Dir,
    name: &OsStr,
    limits: Limits,
    context: &Context,
) -> Result<Unpacked> {
    let fail = |e| Error::io("can not make the folder", Path::new(name), e);
    if let (Nature::Damaged(what), false) = (opened.nature(), limits.salvage) {
        return Err(Error::failed(format!("the pack is damaged: {what}")));
    }
    into.make(name).map_err(fail)?;
    let dir = into.open_beneath(Path::new(name)).map_err(fail)?;
    let unpacked = pack::unpack(opened, &dir, limits, context)?;
    let mut members = unpacked.members;
    let mut missing = Vec::new();
    for problem in &unpacked.problems {
        let lost = |path: &PathBuf| Missing {
            path: path.clone(),
            why: format!("{}: {}", problem.part, problem.what),
            vanished: false,
        };
        match problem.members.is_empty() {
            true => missing.push(lost(&PathBuf::new())),
            false => missing.extend(problem.members.iter().map(lost)),
        }
    }
    let mut restless = Vec::new();
    if let Some(manifest) = opened.manifest() {
        take_out_zeros(manifest, &dir, &mut members, &mut missing)?;
        let changed = manifest.flaws.iter();
        let changed = changed.filter(|flaw| flaw.kind == FlawKind::Changed);
        restless = changed.map(|flaw| flaw.path.0.clone()).collect();
        missing.extend(not_given_back(&manifest.members, &members));
    }
    Ok(Unpacked {
        members,
        missing,
        restless,
    })
}

/// What could not be read when it was packed is zeros in the pack: it goes again, with all its names.
fn take_out_zeros(
    manifest: &pack::Manifest,
    dir: &Dir,
    members: &mut Vec<Member>,
    missing: &mut Vec<Missing>,
) -> Result<()> {
    let mut zeros: HashMap<&Path, (&str, bool)> = HashMap::new();
    for flaw in &manifest.flaws {
        let vanished = flaw.kind == FlawKind::Vanished;
        if vanished || flaw.kind == FlawKind::Unreadable {
            zeros.insert(&flaw.path, (&flaw.why, vanished));
        }
    }
    if zeros.is_empty() {
        return Ok(());
    }
    let mut told: Vec<Missing> = Vec::new();
    for (path, (why, vanished)) in &zeros {
        told.push(Missing {
            path: path.to_path_buf(),
            why: format!("when it was packed: {why}"),
            vanished: *vanished,
        });
    }
    let mut folders = Vec::new();
    for member in members.iter() {
        let first = member.link.as_deref();
        let is_zeros = match member.kind {
            MemberKind::File => zeros.contains_key(&*member.path),
            MemberKind::HardLink => first.is_some_and(|first| zeros.contains_key(first)),
            _ => false,
        };
        if !is_zeros {
            continue;
        }
        if member.kind == MemberKind::HardLink {
            told.push(Missing {
                path: member.path.0.clone(),
                why: "one more name of a file that could not be read".to_owned(),
                vanished: false,
            });
        }
        let parent = member.path.parent().unwrap_or(Path::new(""));
        let name = member.path.file_name().unwrap_or_default();
        let gone = dir.open_beneath(parent).and_then(|dir| dir.unlink(name));
        gone.map_err(|e| Error::io("can not remove", &*member.path, e))?;
        folders.push(parent.to_path_buf());
    }
    let gone: HashSet<&Path> = told.iter().map(|gone| &*gone.path).collect();
    members.retain(|member| !(is_file(member) && gone.contains(&*member.path)));
    folders.sort();
    folders.dedup();
    let fail = |e| Error::io("can not set the time of a folder", Path::new("."), e);
    for member in members.iter() {
        if member.kind == MemberKind::Folder && folders.binary_search(&member.path.0).is_ok() {
            let folder = dir.open_beneath(&member.path).map_err(fail)?;
            folder.set_time(member.mtime).map_err(fail)?;
        }
    }
    told.sort_by(|one, other| one.path.cmp(&other.path));
    missing.extend(told);
    Ok(())
}

fn is_file(member: &Member) -> bool {
    matches!(member.kind, MemberKind::File | MemberKind::HardLink)
}

/// What of modes and attributes this user or this filesystem could not give back. That everything is one's own on
/// another machine is as it should be.
fn not_given_back(packed: &[Member], back: &[Member]) -> Option<Missing> {
    let known: HashMap<&Path, &Member> = packed.iter().map(|m| (&*m.path, m)).collect();
    let differs = |member: &&Member| {
        known
            .get(&*member.path)
            .is_some_and(|packed| packed.mode != member.mode || packed.xattrs != member.xattrs)
    };
    let count = back.iter().filter(differs).count() as u64;
    let first = back.iter().find(differs)?;
    Some(Missing {
        path: first.path.0.clone(),
        why: format!(
            "mode or attributes could not be given back as they were, of {}",
            human::plural(count, "file or folder", "files and folders")
        ),
        vanished: false,
    })
}

/// Copies a pack of the store to `name` in `into`, and compares it with its digest. Inside: why it is of no use.
///
/// # Errors
/// What can not be written, and interruption.
pub(super) fn copy_pack(
    store: &Store,
    pack: &PackRef,
    into: &Dir,
    name: &OsStr,
    context: &Context,
) -> Result<Result<(), String>> {
    let (mut from, meta) = match store.open_pack_file(pack) {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let fail = |e: io::Error| Error::io("can not write", Path::new(name), e);
    let mut file = NewFile::create(into).map_err(fail)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        context.stop.check()?;
        let length = match io::Read::read(&mut from, &mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => return Ok(Err(format!("can not be read: {}", human::io(&error)))),
        };
        hasher.update(&buffer[..length]);
        file.file().write_all(&buffer[..length]).map_err(fail)?;
    }
    if hasher.finalize().to_hex().as_str() != pack.blake3 {
        return Ok(Err(
            "it is not what it was when it was written: its digest differs".to_owned(),
        ));
    }
    let mut copy = file.file().try_clone().map_err(fail)?;
    let mut again = blake3::Hasher::new();
    io::Seek::rewind(&mut copy)
        .and_then(|()| again.update_reader(&copy).map(|_| ()))
        .map_err(fail)?;
    if again.finalize().to_hex().as_str() != pack.blake3 {
        return Err(fail(io::Error::other(
            "what was read back is not what was written",
        )));
    }
    let owner = disk::is_root().then_some((meta.uid, meta.gid));
    disk::dress_file(file.file(), owner, meta.mode, meta.mtime)
        .and_then(|()| file.publish(name))
        .map_err(fail)?;
    Ok(Ok(()))
}

impl Store {
    /// Opens a pack that need not be whole.
    ///
    /// # Errors
    /// One that is not there, or no pack at all.
    fn damaged_pack(&self, pack: &PackRef) -> Result<Pack> {
        let path = self.path().join(&pack.file);
        let (file, _) = self.open_pack_file(pack)?;
        Pack::of(file, &path)
    }

    /// The file of a pack, whatever it is by now.
    fn open_pack_file(&self, pack: &PackRef) -> Result<(std::fs::File, Meta)> {
        let path = self.path().join(&pack.file);
        let fail = |e| Error::io("can not open the pack", &path, e);
        let file = self.open_file(Path::new(&pack.file)).map_err(fail)?;
        let meta = Meta::of(&file).map_err(fail)?;
        Ok((file, meta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{FixedClock, NoProgress, Stop};
    use crate::pack::{About, Flaw};

    #[test]
    fn what_could_not_be_read_does_not_come_back_as_zeros() {
        let from = tempfile::tempdir().unwrap();
        std::fs::create_dir(from.path().join("a")).unwrap();
        for name in ["a/unread", "a/whole", "a/gone"] {
            std::fs::write(from.path().join(name), "\0\0").unwrap();
        }
        std::fs::hard_link(from.path().join("a/unread"), from.path().join("z")).unwrap();
        let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
        let stop = Stop::new();
        let context = Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &stop,
        };
        let dir = Dir::open(from.path()).unwrap();
        let survey = pack::survey(&dir, "x", &|_, _| false, &context).unwrap();
        let file = tempfile::tempfile().unwrap();
        let about = About {
            created_at: "2024-06-15T12:00:00Z".parse().unwrap(),
            entry: None,
        };
        let packed = pack::write(&file, &dir, survey, about, 3, 1, &context).unwrap();
        let into = tempfile::tempdir().unwrap();
        let top = Dir::open(into.path()).unwrap();
        let opened = Pack::of(file, Path::new("x.tar.zst")).unwrap();
        let limits = Limits::default();
        let mut back = unpack_as(&opened, &top, OsStr::new("x"), limits, &context).unwrap();
        assert!(back.missing.is_empty());
        let time = |rel: &str| {
            let meta = std::fs::metadata(into.path().join(rel)).unwrap();
            meta.modified().unwrap()
        };
        let before = time("x/a");
        // As the packer tells it.
        let mut manifest = packed.manifest;
        let flaw = |path: &str, kind| Flaw {
            path: PathBuf::from(path).into(),
            kind,
            why: "Input/output error".to_owned(),
        };
        manifest.flaws.push(flaw("a/unread", FlawKind::Unreadable));
        manifest.flaws.push(flaw("a/gone", FlawKind::Vanished));
        let own = top.open_beneath(Path::new("x")).unwrap();
        take_out_zeros(&manifest, &own, &mut back.members, &mut back.missing).unwrap();
        assert!(into.path().join("x/a/whole").exists());
        for gone in ["x/a/unread", "x/a/gone", "x/z"] {
            assert!(!into.path().join(gone).exists(), "{gone}");
        }
        assert_eq!(time("x/a"), before);
        let told: Vec<(&str, bool)> = back
            .missing
            .iter()
            .map(|missing| (missing.path.to_str().unwrap(), missing.vanished))
            .collect();
        assert_eq!(told, [("a/gone", true), ("a/unread", false), ("z", false)]);
        assert_eq!(back.members.iter().filter(|m| is_file(m)).count(), 1);
    }
}
