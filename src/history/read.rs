//! The files that a commit has to read: on all cores, each as one state, straight into the pack.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use git2::{IndexEntry, ObjectType, Oid};
use rayon::prelude::*;

use super::left_out::{Left, Why};
use super::pack::{Encoded, Encoder, Writer};
use super::said::said;
use super::staging::Staging;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, Meta, Steady};

/// A file to be read.
pub(super) struct Job {
    /// Below the home.
    pub path: Vec<u8>,
    /// Its entry in the index, when it has one.
    pub tracked: Option<usize>,
    pub size: u64,
}

/// What was found of it.
pub(super) enum Seen {
    /// Its entry, complete but for its path. The bytes of its object are in the pack, or were committed before.
    Text(IndexEntry),
    /// It is left out.
    Left(Left),
    /// It is not there any more.
    Gone,
    /// It was rewritten again and again while it was read.
    Restless,
    /// It can not be read, and why.
    Unreadable(String),
}

/// What all workers share.
pub(super) struct Reading<'a, 'd> {
    pub root: &'a Dir,
    pub staging: &'a Staging,
    pub max_file: u64,
    /// Objects that the repository has for sure.
    pub known: HashSet<Oid>,
    /// Where new objects go; nowhere when it is only looked.
    pub pack: Option<&'a Sink<'d>>,
    pub context: &'a Context<'a>,
}

/// The pack, shared by the workers. What it has got already is not put into it again.
pub(super) struct Sink<'d>(Mutex<(Writer<'d>, HashSet<Oid>)>);

impl<'d> Sink<'d> {
    pub fn new(writer: Writer<'d>) -> Self {
        Sink(Mutex::new((writer, HashSet::new())))
    }

    /// Says that an object is about to come; false when it came before.
    fn announce(&self, oid: Oid) -> io::Result<bool> {
        Ok(self.lock()?.1.insert(oid))
    }

    fn add(&self, object: &Encoded) -> io::Result<()> {
        self.lock()?.0.add(object)
    }

    fn lock(&self) -> io::Result<std::sync::MutexGuard<'_, (Writer<'d>, HashSet<Oid>)>> {
        self.0
            .lock()
            .map_err(|_| io::Error::other("a worker has failed"))
    }

    /// Encodes an object and adds it, unless it came before.
    pub fn put(
        &self,
        encoder: &mut Encoder,
        oid: Oid,
        kind: ObjectType,
        content: &[u8],
    ) -> io::Result<()> {
        match self.announce(oid)? {
            true => self.add(&encoder.encode(oid, kind, content)?),
            false => Ok(()),
        }
    }

    /// Adds an object as it stands in another pack, unless it came before.
    pub fn put_encoded(&self, object: &Encoded) -> io::Result<()> {
        match self.announce(object.oid)? {
            true => self.add(object),
            false => Ok(()),
        }
    }

    /// Whether it has got an object.
    pub fn has(&self, oid: Oid) -> io::Result<bool> {
        Ok(self.lock()?.1.contains(&oid))
    }

    /// How many objects it has, and how many bytes.
    pub fn size(&self) -> io::Result<(u64, u64)> {
        Ok(self.lock()?.0.size())
    }

    /// The pack, when all workers are done.
    pub fn into_writer(self) -> io::Result<Writer<'d>> {
        let inner = self.0.into_inner();
        inner
            .map(|inner| inner.0)
            .map_err(|_| io::Error::other("a worker has failed"))
    }
}

impl Reading<'_, '_> {
    /// Reads all of them; the answers come in the same order.
    ///
    /// # Errors
    /// A pack that can not be written, and interruption. Then nothing has been published.
    pub fn all(&self, jobs: &[Job]) -> Result<impl Iterator<Item = Seen> + use<>> {
        let of_one_folder: Vec<&[Job]> = jobs
            .chunk_by(|a, b| parent(&a.path) == parent(&b.path))
            .collect();
        let answers: Result<Vec<Vec<Seen>>> = of_one_folder
            .into_par_iter()
            .map_init(Encoder::new, |encoder, jobs| self.folder(jobs, encoder))
            .collect();
        Ok(answers?.into_iter().flatten())
    }

    fn folder(&self, jobs: &[Job], encoder: &mut Encoder) -> Result<Vec<Seen>> {
        let folder = jobs
            .first()
            .map(|job| parent(&job.path))
            .unwrap_or_default();
        let dir = self.root.open_beneath(Path::new(OsStr::from_bytes(folder)));
        let one = |job: &Job| {
            self.context.stop.check()?;
            let seen = match &dir {
                Ok(dir) => self.file(dir, job, encoder),
                Err(error) => Err(Failed::Read(io::Error::from(error.kind()))),
            };
            self.context.progress.advance(1, job.size);
            match seen {
                Ok(seen) => Ok(seen),
                Err(Failed::Read(error)) if is_gone(&error) => Ok(Seen::Gone),
                Err(Failed::Read(error)) => Ok(Seen::Unreadable(human::io(&error))),
                Err(Failed::Write(error)) => {
                    Err(Error::failed("can not write to the repository:").because(error))
                }
                Err(Failed::Git(error)) => {
                    Err(Error::failed("can not name an object:").because(said(error)))
                }
            }
        };
        jobs.iter().map(one).collect()
    }

    fn file(&self, dir: &Dir, job: &Job, encoder: &mut Encoder) -> Result<Seen, Failed> {
        let name = job.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let name = OsStr::from_bytes(name);
        let meta = dir.stat(name)?;
        if meta.kind == FileKind::Symlink {
            let target = dir.read_link(name)?;
            return self.text(job, &meta, &target, disk::is_fresh(&meta), encoder);
        }
        match disk::read_steady(dir, name, self.max_file)? {
            Steady::Whole(content) => self.content(job, &content, content.fresh, encoder),
            // Its entry must not match what is there: the next look reads it again.
            Steady::Growing(content) => self.content(job, &content, true, encoder),
            Steady::TooLarge(meta) => Ok(Seen::Left(Left::new(Why::TooLarge, &meta))),
            Steady::Restless => Ok(Seen::Restless),
            Steady::Other(meta) if meta.kind == FileKind::Folder => Ok(Seen::Gone),
            Steady::Other(meta) => Ok(Seen::Left(Left::new(Why::Special, &meta))),
        }
    }

    fn content(
        &self,
        job: &Job,
        content: &disk::Content,
        fresh: bool,
        encoder: &mut Encoder,
    ) -> Result<Seen, Failed> {
        let bytes = &content.bytes;
        // What was text once stays: its history shows the day on which it was torn.
        if job.tracked.is_none() && is_binary(bytes) {
            return Ok(Seen::Left(Left::new(Why::Binary, &content.meta)));
        }
        if git_refuses(&job.path, bytes) {
            return Ok(Seen::Left(Left::new(Why::Refused, &content.meta)));
        }
        self.text(job, &content.meta, bytes, fresh, encoder)
    }

    fn text(
        &self,
        job: &Job,
        meta: &Meta,
        bytes: &[u8],
        fresh: bool,
        encoder: &mut Encoder,
    ) -> Result<Seen, Failed> {
        let oid = Oid::hash_object(ObjectType::Blob, bytes).map_err(Failed::Git)?;
        if let Some(pack) = self.pack
            && !self.known.contains(&oid)
        {
            pack.put(encoder, oid, ObjectType::Blob, bytes)
                .map_err(Failed::Write)?;
        }
        let former = job.tracked.and_then(|at| self.staging.entries.get(at));
        let Some(mut entry) = self.staging.described(meta, former.map(|entry| entry.mode)) else {
            return Ok(Seen::Gone);
        };
        if fresh {
            // "Look again", as git itself writes it (racy-git.txt).
            entry.file_size = 0;
        }
        entry.id = oid;
        Ok(Seen::Text(entry))
    }
}

enum Failed {
    Read(io::Error),
    Write(io::Error),
    Git(git2::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Read(error)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn parent(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(b"", |end| &path[..end])
}

/// git's own test for what is no text (`buffer_is_binary`).
pub(super) fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, &content[..content.len().min(8000)]).is_some()
}

/// Whether `git fsck` would call this content an error under this name (git-fsck(1): `gitattributesLineLength`,
/// `gitmodulesName`, `gitmodulesUrl`, `gitmodulesPath`, `gitmodulesUpdate`), so that no server takes the repository.
/// A little more is refused than fsck would.
fn git_refuses(path: &[u8], content: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let mut lines = content.split(|b| *b == b'\n');
    match name.to_ascii_lowercase().as_slice() {
        b".gitattributes" => lines.any(|line| line.len() >= 2048),
        b".gitmodules" => lines.any(|line| {
            let line = line.trim_ascii();
            let value = line
                .split(|b| *b == b'=')
                .nth(1)
                .unwrap_or_default()
                .trim_ascii();
            let has = |what: &[u8]| memchr::memmem::find(line, what).is_some();
            line.starts_with(b"[") && has(b"..")
                || value.starts_with(b"-")
                || value.starts_with(b"\"-")
                || value.starts_with(b"!")
                || has(b"%0a")
                || has(b"%0A")
                || has(b"\\n")
        }),
        _ => false,
    }
}
