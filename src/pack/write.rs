//! Writing a pack: the files of the next batch are read on all cores while those of the last one are compressed.

use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::head::{END, head, padding};
use super::manifest::{self, About};
use super::{Manifest, Member, MemberKind, Survey, frames, short_digest};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{Dir, Meta};

mod compress;

use compress::Compressor;

/// Why something is not in a pack as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlawKind {
    /// It could not be read. If it is a member all the same, what is packed from there on is zeros.
    Unreadable,
    /// It was changed while it was read: what is packed may be a mixture of its states.
    Changed,
    /// It grew while it was read: what is packed is its beginning, as long as it was when it was looked at.
    Grew,
    /// It was removed before it was read: what is packed in its place is zeros.
    Vanished,
    /// It is neither file, folder nor link.
    Special,
}

impl FlawKind {
    /// Whether it was there to be read, and did not hold still.
    pub fn is_restless(self) -> bool {
        matches!(
            self,
            FlawKind::Changed | FlawKind::Grew | FlawKind::Vanished
        )
    }
}

/// Something that is not in a pack as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// Below the top folder.
    pub path: ExactPath,
    /// What is wrong.
    pub kind: FlawKind,
    /// Why, for a person.
    pub why: String,
}

/// What was written.
#[derive(Debug)]
pub struct Packed {
    /// As it stands in the pack, with the digest of each file as it was read.
    pub manifest: Manifest,
    /// The length of the pack.
    pub bytes: u64,
    /// BLAKE3 of the pack, in hexadecimal digits.
    pub blake3: String,
}

/// A file up to this size is read at once, with others beside it.
const SMALL: u64 = 1 << 20;

/// So much is read before it is compressed.
const BATCH: u64 = 8 << 20;

/// So many members are a batch, however small.
const BATCH_MEMBERS: usize = 1024;

/// So many members are read by one thread in a row.
const ROW: usize = 32;

/// Writes a pack into an empty file, at its beginning. The data frames depend on the input and `level` alone, not on
/// `threads` (at least one). Syncing and naming the file is the caller's.
///
/// # Errors
/// A file that can not be written, and interruption. What could not be read as it was is a flaw in the manifest.
pub fn write(
    file: &File,
    dir: &Dir,
    survey: Survey,
    about: About,
    level: i32,
    threads: u32,
    context: &Context,
) -> Result<Packed> {
    let total = Total {
        items: survey.members.len() as u64,
        bytes: survey.bytes(),
    };
    context.progress.stage("packing", total);
    let Survey {
        top,
        mut members,
        states,
        frames,
        mut flaws,
    } = survey;
    let mut compressor = Compressor::new(file, frames, level, threads)?;
    let mut state = states.as_slice();
    let mut rest = members.as_mut_slice();
    let mut batch = Batch::default();
    // The buffer of the batch that was compressed last: fresh memory costs more than what is read into it.
    let mut spare = Vec::new();
    loop {
        let (now, later) = rest.split_at_mut(batch_of(rest));
        let (states, later_states) = state.split_at(now.len());
        let (pushed, read) = rayon::join(
            || push(&mut compressor, batch, &top, dir, context),
            || read_batch(dir, now, states, spare, context),
        );
        let (flaws_of_batch, buffer) = pushed?;
        flaws.extend(flaws_of_batch);
        (batch, spare) = (read?, buffer);
        (rest, state) = (later, later_states);
        if batch.members.is_empty() {
            break;
        }
    }
    compressor.push(&END)?;
    let (frames, mut tail) = compressor.finish()?;
    context.progress.finish();

    flaws.sort_by(|one, other| super::order::compare(&one.path, &other.path));
    let manifest = Manifest {
        format: manifest::FORMAT,
        created_at: about.created_at,
        made_by: concat!("wbhome ", env!("CARGO_PKG_VERSION")).to_owned(),
        top,
        entry: about.entry,
        flaws,
        frames,
        members,
    };
    let encoded = manifest.encode()?;
    tail.write(&encoded)?;
    let mut table: Vec<_> = manifest
        .frames
        .iter()
        .map(|f| (f.bytes, f.content))
        .collect();
    table.push((encoded.len() as u64, 0));
    let table = frames::seek_table(&table)
        .ok_or_else(|| Error::failed("a frame became too long for the table of frames"))?;
    tail.write(&table)?;
    Ok(Packed {
        manifest,
        bytes: tail.at(),
        blake3: tail.digest(),
    })
}

/// How many of the members are the next batch.
fn batch_of(members: &[Member]) -> usize {
    let mut bytes = 0;
    let fits = |member: &&Member| {
        bytes += held(member) as u64;
        bytes <= BATCH
    };
    let count = members.iter().take(BATCH_MEMBERS).take_while(fits).count();
    count.max(members.len().min(1))
}

/// Members, and the contents of the small files among them, one after the other.
#[derive(Default)]
struct Batch<'m> {
    members: Vec<Ready<'m>>,
    contents: Vec<u8>,
}

/// A member, and what came of reading it where it is a small file.
struct Ready<'m> {
    member: &'m mut Member,
    state: &'m Meta,
    read: Option<Read>,
}

/// What a file held, as long as it was when it was looked at.
struct Read {
    digest: blake3::Hash,
    flaw: Option<Flaw>,
}

/// How much of the batch's contents a member has.
fn held(member: &Member) -> usize {
    match member.size <= SMALL {
        // Not more than a MiB.
        true => member.size as usize,
        false => 0,
    }
}

fn read_batch<'m>(
    dir: &Dir,
    members: &'m mut [Member],
    states: &'m [Meta],
    mut contents: Vec<u8>,
    context: &Context,
) -> Result<Batch<'m>> {
    contents.resize(members.iter().map(held).sum(), 0);
    let mut rows = Vec::new();
    let mut rest = contents.as_mut_slice();
    for (members, states) in members.chunks_mut(ROW).zip(states.chunks(ROW)) {
        let (row, later) = rest.split_at_mut(members.iter().map(held).sum());
        rows.push((members, states, row));
        rest = later;
    }
    let read_row = |(members, states, mut row): (&'m mut [Member], &'m [Meta], &mut [u8])| {
        context.stop.check()?;
        let mut folders = Folders::new(dir);
        let mut ready = Vec::with_capacity(members.len());
        for (member, state) in members.iter_mut().zip(states) {
            let (content, later) = row.split_at_mut(held(member));
            let small = member.kind == MemberKind::File && member.size <= SMALL;
            ready.push(Ready {
                read: small.then(|| read_small(&mut folders, member, state, content)),
                member,
                state,
            });
            row = later;
        }
        Ok(ready)
    };
    let rows: Vec<Vec<Ready>> = rows.into_par_iter().map(read_row).collect::<Result<_>>()?;
    Ok(Batch {
        members: rows.into_iter().flatten().collect(),
        contents,
    })
}

/// Folders below the root; members of one folder stand together, so the last is kept open.
struct Folders<'d> {
    root: &'d Dir,
    last: Option<(PathBuf, Dir)>,
}

impl<'d> Folders<'d> {
    fn new(root: &'d Dir) -> Self {
        Folders { root, last: None }
    }

    fn open_file(&mut self, path: &Path) -> io::Result<File> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let last = match self.last.take() {
            Some((path, dir)) if path == parent => (path, dir),
            _ => (parent.to_path_buf(), self.root.open_beneath(parent)?),
        };
        let (_, dir) = self.last.insert(last);
        dir.open_file(name)
    }
}

/// A file that is being read, and what was wrong with it first.
struct Reading<'m> {
    file: Option<File>,
    member: &'m Member,
    state: &'m Meta,
    flaw: Option<Flaw>,
}

impl<'m> Reading<'m> {
    fn open(folders: &mut Folders, member: &'m Member, state: &'m Meta) -> Self {
        let mut reading = Reading {
            file: None,
            member,
            state,
            flaw: None,
        };
        match folders.open_file(&member.path) {
            Ok(file) => {
                reading.file = Some(file);
                reading.compare();
            }
            Err(error) if crate::disk::is_nowhere(&error) => {
                reading.note(
                    FlawKind::Vanished,
                    "was removed while it was packed".to_owned(),
                );
            }
            Err(error) => reading.note(FlawKind::Unreadable, human::io(&error)),
        }
        reading
    }

    fn note(&mut self, kind: FlawKind, why: String) {
        self.flaw.get_or_insert(Flaw {
            path: self.member.path.clone(),
            kind,
            why,
        });
    }

    /// Fills the buffer from this place on, with zeros where the file has no more.
    fn fill(&mut self, buffer: &mut [u8], at: u64) {
        let mut filled = 0;
        while let Some(file) = &self.file
            && filled < buffer.len()
        {
            match file.read_at(&mut buffer[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.note(FlawKind::Unreadable, human::io(&error));
                    self.file = None;
                }
            }
        }
        if filled < buffer.len() {
            buffer[filled..].fill(0);
            let short = "is shorter than it was when it was looked at";
            self.note(FlawKind::Changed, short.to_owned());
        }
    }

    /// Notes it when the file is not what it was.
    fn compare(&mut self) {
        let Some(file) = &self.file else { return };
        match Meta::of(file) {
            Ok(now) if now.same_state(self.state) => {}
            Ok(now) => {
                let (kind, why) = changed(&now, self.state);
                self.note(kind, why);
            }
            Err(error) => self.note(FlawKind::Unreadable, human::io(&error)),
        }
    }

    fn finish(mut self) -> Option<Flaw> {
        self.compare();
        self.flaw
    }
}

fn changed(now: &Meta, before: &Meta) -> (FlawKind, String) {
    let by = human::size(now.size.abs_diff(before.size));
    let (kind, what) = match now.size.cmp(&before.size) {
        _ if now.identity() != before.identity() => (FlawKind::Changed, "was replaced".to_owned()),
        Ordering::Equal => (FlawKind::Changed, "was changed".to_owned()),
        Ordering::Greater => (FlawKind::Grew, format!("grew by {by}")),
        Ordering::Less => (FlawKind::Changed, format!("shrank by {by}")),
    };
    (kind, format!("{what} while it was packed"))
}

fn read_small(folders: &mut Folders, member: &Member, state: &Meta, content: &mut [u8]) -> Read {
    let mut reading = Reading::open(folders, member, state);
    reading.fill(content, 0);
    Read {
        digest: blake3::hash(content),
        flaw: reading.finish(),
    }
}

/// Compresses a batch, and returns what is wrong with it, and its buffer.
fn push(
    compressor: &mut Compressor,
    batch: Batch,
    top: &str,
    dir: &Dir,
    context: &Context,
) -> Result<(Vec<Flaw>, Vec<u8>)> {
    let mut flaws = Vec::new();
    let mut contents = batch.contents.as_slice();
    for Ready {
        member,
        state,
        read,
    } in batch.members
    {
        compressor.push(&head(member, top))?;
        let (content, later) = contents.split_at(held(member));
        contents = later;
        match read {
            Some(read) => {
                compressor.push(content)?;
                member.blake3 = Some(short_digest(&read.digest));
                flaws.extend(read.flaw);
            }
            None if member.kind == MemberKind::File => {
                let (digest, flaw) = stream(compressor, member, state, dir, context)?;
                member.blake3 = Some(digest);
                flaws.extend(flaw);
            }
            None => {}
        }
        compressor.push(&END[..padding(member.size) as usize])?;
        context.progress.advance(1, content.len() as u64);
    }
    Ok((flaws, batch.contents))
}

/// Compresses a large file as it is read.
fn stream(
    compressor: &mut Compressor,
    member: &Member,
    state: &Meta,
    dir: &Dir,
    context: &Context,
) -> Result<(String, Option<Flaw>)> {
    let mut reading = Reading::open(&mut Folders::new(dir), member, state);
    let mut buffer = vec![0; SMALL as usize];
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    while at < member.size {
        context.stop.check()?;
        let length = SMALL.min(member.size - at);
        let piece = &mut buffer[..length as usize];
        reading.fill(piece, at);
        hasher.update(piece);
        compressor.push(piece)?;
        context.progress.advance(0, length);
        at += length;
    }
    Ok((short_digest(&hasher.finalize()), reading.finish()))
}
