//! What will be in a pack: looked at before the first byte is written, so that the layout of frames and members
//! follows from the input alone.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rayon::prelude::*;

use super::head::{END, head, padding};
use super::write::{Flaw, FlawKind};
use super::{Member, MemberKind, order};
use crate::base::{Context, Result, human};
use crate::disk::{self, Dir, Entry, FileKind, Meta, Xattrs};

/// The most that the first frame holds: one frame finds every repetition, and most sessions need no other.
const FIRST_FRAME: u64 = 128 << 20;

/// The most that each further frame holds: as much has to be decoded for one file out of the middle.
const FRAME: u64 = 64 << 20;

/// So much is asked for before the first byte is packed. What does not fit into memory would be read twice.
const AHEAD: u64 = 128 << 20;

/// Everything that will be packed.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) top: String,
    pub(super) members: Vec<Member>,
    /// What each member was, beside it.
    pub(super) states: Vec<Meta>,
    /// The length of the content of each frame.
    pub(super) frames: Vec<u64>,
    pub(super) flaws: Vec<Flaw>,
}

/// Looks at everything below `dir`, which will be the folder `top` of the pack. What `skip` says yes to is left out.
///
/// # Errors
/// A folder that can not be opened, and interruption. What can not be read, and what is neither file, folder nor
/// link, is left out and told as a flaw.
pub fn survey(
    dir: &Dir,
    top: &str,
    skip: &(dyn Fn(&Path, &Entry) -> bool + Sync),
    context: &Context,
) -> Result<Survey> {
    let tree = disk::walk(dir, skip, context.stop)?;
    let ahead = Ahead(AtomicU64::new(AHEAD));
    let (seen, flaws): (Vec<_>, Vec<_>) = tree
        .folders
        .par_iter()
        .map(|folder| {
            context.stop.check()?;
            Ok(look_into(dir, folder, &ahead))
        })
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let mut seen: Vec<(Member, Meta)> = seen.into_iter().flatten().collect();
    seen.sort_by(|(one, _), (other, _)| order::compare(&one.path, &other.path));
    name_hard_links(&mut seen);
    let mut flaws: Vec<Flaw> = flaws.into_iter().flatten().collect();
    flaws.sort_by(|one, other| order::compare(&one.path, &other.path));
    let (mut members, states): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
    let frames = lay_out(&mut members, top);
    Ok(Survey {
        top: top.to_owned(),
        members,
        states,
        frames,
        flaws,
    })
}

impl Survey {
    /// The members, in the order of the pack.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What will not be in it.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// The length of the files together.
    pub fn bytes(&self) -> u64 {
        self.members.iter().map(|member| member.size).sum()
    }
}

/// How much more the system is asked to fetch.
struct Ahead(AtomicU64);

impl Ahead {
    /// The file will be packed soon. From a disk that has to be waited for, many at once take half the time of one after
    /// the other.
    fn ask(&self, file: &File, size: u64) {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            let asked = disk::read_ahead(file, size);
            self.0.store(left.saturating_sub(asked), Ordering::Relaxed);
        }
    }
}

type Seen = (Vec<(Member, Meta)>, Vec<Flaw>);

/// The folder itself, and what is in it but for other folders.
fn look_into(root: &Dir, folder: &disk::Folder, ahead: &Ahead) -> Seen {
    let (mut seen, mut flaws) = (Vec::new(), Vec::new());
    let unreadable = folder.unreadable.iter();
    flaws.extend(
        unreadable.map(|(path, why)| flaw(path.clone(), FlawKind::Unreadable, why.clone())),
    );
    let dir = match root.open_beneath(&folder.rel) {
        Ok(dir) => dir,
        // It is not among what could not be listed, so it was there a moment ago.
        Err(error) => {
            if flaws.is_empty() && !disk::is_nowhere(&error) {
                flaws.push(flaw(
                    folder.rel.clone(),
                    FlawKind::Unreadable,
                    human::io(&error),
                ));
            }
            return (seen, flaws);
        }
    };
    match Xattrs::of(&dir).and_then(|xattrs| Ok((xattrs, dir.meta()?))) {
        Ok((xattrs, meta)) => seen.push((
            member(folder.rel.clone(), MemberKind::Folder, &meta, &xattrs),
            meta,
        )),
        Err(error) => flaws.push(flaw(
            folder.rel.clone(),
            FlawKind::Unreadable,
            human::io(&error),
        )),
    }
    for entry in &folder.entries {
        let path = folder.rel.join(&entry.name);
        match look_at(&dir, entry, path.clone(), ahead) {
            Ok(None) => {}
            Ok(Some(Ok(found))) => seen.push(found),
            Ok(Some(Err(what))) => flaws.push(flaw(path, FlawKind::Special, what.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => flaws.push(flaw(path, FlawKind::Unreadable, human::io(&error))),
        }
    }
    (seen, flaws)
}

/// One name in a folder; nothing of a folder, which comes by itself, and what it is instead of what can be packed.
fn look_at(
    dir: &Dir,
    entry: &Entry,
    path: PathBuf,
    ahead: &Ahead,
) -> io::Result<Option<std::result::Result<(Member, Meta), &'static str>>> {
    Ok(match entry.meta.kind {
        FileKind::Folder => None,
        FileKind::File => {
            let file = dir.open_file(&entry.name)?;
            let meta = Meta::of(&file)?;
            let is_file = meta.kind == FileKind::File;
            if is_file {
                ahead.ask(&file, meta.size);
            }
            let found = (
                member(path, MemberKind::File, &meta, &Xattrs::of(&file)?),
                meta,
            );
            Some(is_file.then_some(found).ok_or(meta.kind.described()))
        }
        FileKind::Symlink => {
            use std::os::unix::ffi::OsStringExt;
            let target = std::ffi::OsString::from_vec(dir.read_link(&entry.name)?);
            let mut member = member(path, MemberKind::Symlink, &entry.meta, &Xattrs::default());
            member.link = Some(PathBuf::from(target).into());
            Some(Ok((member, entry.meta)))
        }
        kind => Some(Err(kind.described())),
    })
}

fn flaw(path: PathBuf, kind: FlawKind, why: String) -> Flaw {
    Flaw {
        path: path.into(),
        kind,
        why,
    }
}

fn member(path: PathBuf, kind: MemberKind, meta: &Meta, xattrs: &Xattrs) -> Member {
    let xattrs = xattrs.iter().map(|(name, value)| {
        // The kernel's names of attributes are ASCII but for the last part, which people choose.
        let name = String::from_utf8_lossy(name).into_owned();
        (name, STANDARD.encode(value))
    });
    Member {
        path: path.into(),
        kind,
        mode: meta.mode,
        uid: meta.uid,
        gid: meta.gid,
        mtime: meta.mtime,
        size: match kind {
            MemberKind::File => meta.size,
            _ => 0,
        },
        blake3: None,
        link: None,
        xattrs: xattrs.collect(),
        frame: 0,
        at: 0,
    }
}

/// The first name of a file, in the order of the pack, stands for it; the others point to that.
fn name_hard_links(seen: &mut [(Member, Meta)]) {
    let mut first: HashMap<(u64, u64), PathBuf> = HashMap::new();
    for (member, meta) in seen {
        if member.kind != MemberKind::File || meta.nlink < 2 {
            continue;
        }
        match first.get(&meta.identity()) {
            None => {
                first.insert(meta.identity(), member.path.to_path_buf());
            }
            Some(path) => {
                member.kind = MemberKind::HardLink;
                member.link = Some(path.clone().into());
                member.size = 0;
                member.xattrs = BTreeMap::new();
            }
        }
    }
}

/// Gives each member its frame and place, and returns the length of the content of each frame. A frame ends where a
/// member begins; only a file that is longer than a frame is cut inside.
fn lay_out(members: &mut [Member], top: &str) -> Vec<u64> {
    let mut frames = Frames::default();
    for member in members {
        let length = head(member, top).len() as u64 + member.size + padding(member.size);
        frames.make_room(length);
        member.frame = u32::try_from(frames.full.len()).unwrap_or(u32::MAX);
        member.at = frames.filled;
        frames.fill(length);
    }
    frames.make_room(END.len() as u64);
    frames.fill(END.len() as u64);
    frames.full.push(frames.filled);
    frames.full
}

#[derive(Default)]
struct Frames {
    full: Vec<u64>,
    filled: u64,
}

impl Frames {
    fn limit(&self) -> u64 {
        match self.full.is_empty() {
            true => FIRST_FRAME,
            false => FRAME,
        }
    }

    fn make_room(&mut self, length: u64) {
        if self.filled > 0 && self.filled + length > self.limit() {
            self.full.push(std::mem::take(&mut self.filled));
        }
    }

    fn fill(&mut self, mut length: u64) {
        while self.filled + length > self.limit() {
            length -= self.limit() - self.filled;
            self.full.push(self.limit());
            self.filled = 0;
        }
        self.filled += length;
    }
}
