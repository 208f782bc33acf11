//! The files of a session's folder, in order, and searching one of them. No link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::text::{Compressed, Form, Found, Text};
use super::work::Halt;
use super::{Request, natural};
use crate::base::human;
use crate::disk::{self, Dir, FileKind, Meta};

/// A file is read in pieces of this size; most are smaller.
const PIECE: usize = 256 << 10;

/// What a session holds.
#[derive(Debug, Default)]
pub(super) struct Listing {
    folders: Vec<PathBuf>,
    /// The number of its folder, and its name.
    files: Vec<(usize, OsString)>,
    /// Folders that could not be listed, and why.
    pub unread: Vec<(PathBuf, String)>,
}

impl Listing {
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn path(&self, number: usize) -> PathBuf {
        let (folder, name) = &self.files[number];
        self.folders[*folder].join(name)
    }
}

/// Lists the files that are asked for.
pub(super) fn list(session: &Dir, request: &Request, halt: &Halt<'_>) -> Listing {
    let mut listing = Listing::default();
    // An explicit stack: a tree may be deeper than a thread's stack.
    let mut open = Vec::new();
    if let Some(names) = names_of(session, PathBuf::new(), &mut listing) {
        open.push((0, names.into_iter()));
    }
    while let Some((folder, names)) = open.last_mut() {
        let folder = *folder;
        let Some((name, kind)) = names.next() else {
            open.pop();
            continue;
        };
        let asked_for = open.len() > 1
            || request.kinds.is_empty()
            || kind == FileKind::Folder && request.kinds.iter().any(|k| name == k.as_str());
        match kind {
            _ if !asked_for || halt.is_raised() => {}
            FileKind::File => listing.files.push((folder, name)),
            FileKind::Folder => {
                let rel = listing.folders[folder].join(&name);
                let number = listing.folders.len();
                if let Some(names) = names_of(session, rel, &mut listing) {
                    open.push((number, names.into_iter()));
                }
            }
            _ => {}
        }
    }
    listing
}

/// The names in a folder, in order. What vanishes meanwhile was never there.
fn names_of(
    session: &Dir,
    rel: PathBuf,
    listing: &mut Listing,
) -> Option<Vec<(OsString, FileKind)>> {
    let read = || -> io::Result<Vec<(OsString, FileKind)>> {
        let folder = session.open_beneath(&rel)?;
        let mut names = folder.names()?;
        for (name, kind) in &mut names {
            if *kind == FileKind::Unknown
                && let Some(meta) = folder.find(name)?
            {
                *kind = meta.kind;
            }
        }
        names.sort_by(|(one, _), (other, _)| natural::names(one.as_bytes(), other.as_bytes()));
        Ok(names)
    };
    match read() {
        Ok(names) => {
            listing.folders.push(rel);
            Some(names)
        }
        Err(error) if disk::is_nowhere(&error) => None,
        Err(error) => {
            listing.unread.push((rel, human::io(&error)));
            None
        }
    }
}

/// Files of a session, read one after the other with one buffer.
pub(super) struct Files<'s> {
    session: &'s Dir,
    listing: &'s Listing,
    /// The folder that is open, and its number.
    folder: Option<(usize, Dir)>,
    buffer: Vec<u8>,
    halt: &'s Halt<'s>,
}

impl<'s> Files<'s> {
    pub(super) fn new(
        session: &'s Dir,
        listing: &'s Listing,
        buffer: Vec<u8>,
        halt: &'s Halt<'s>,
    ) -> Self {
        Files {
            session,
            listing,
            folder: None,
            buffer,
            halt,
        }
    }

    /// The buffer, to be used again.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Searches a file. One that has gone holds nothing.
    pub(super) fn search(
        &mut self,
        number: usize,
        request: &Request,
        found: &mut Found<'_>,
    ) -> Result<(), String> {
        match self.read(number, request, found) {
            Err(error) if disk::is_nowhere(&error) => Ok(()),
            done => done.map_err(|error| human::io(&error)),
        }
    }

    fn read(&mut self, number: usize, request: &Request, found: &mut Found<'_>) -> io::Result<()> {
        let (folder, name) = &self.listing.files[number];
        let Some(mut file) = self.open(*folder, name)? else {
            return Ok(());
        };
        let mut text = Text::new(&request.pattern, request.want, Form::of(name));
        if let Some(compressed) = Compressed::of(&self.listing.folders[*folder], name) {
            let mut decoded = decoder(&file, compressed)?;
            return pieces(&mut decoded, &mut text, &mut self.buffer, self.halt, found);
        }
        self.buffer.resize(PIECE, 0);
        let read = fill(&mut file, &mut self.buffer)?;
        if read < PIECE {
            let _ = text.whole(&self.buffer[..read], found);
            return Ok(());
        }
        match text.piece(&self.buffer, found) {
            ControlFlow::Continue(()) => {
                pieces(&mut file, &mut text, &mut self.buffer, self.halt, found)
            }
            ControlFlow::Break(()) => Ok(()),
        }
    }

    fn open(&mut self, folder: usize, name: &OsStr) -> io::Result<Option<File>> {
        let dir = match &mut self.folder {
            Some((number, dir)) if *number == folder => dir,
            other => {
                let dir = self.session.open_beneath(&self.listing.folders[folder])?;
                &mut other.insert((folder, dir)).1
            }
        };
        let file = dir.open_file(name)?;
        // Something else may have its name by now.
        Ok((Meta::of(&file)?.kind == FileKind::File).then_some(file))
    }
}

/// Searches what comes, piece by piece.
fn pieces(
    file: &mut dyn Read,
    text: &mut Text<'_>,
    buffer: &mut Vec<u8>,
    halt: &Halt<'_>,
    found: &mut Found<'_>,
) -> io::Result<()> {
    buffer.resize(PIECE, 0);
    loop {
        let read = fill(file, buffer)?;
        if halt.is_raised() || text.piece(&buffer[..read], found).is_break() {
            return Ok(());
        }
        if read < PIECE {
            let _ = text.end(found);
            return Ok(());
        }
    }
}

/// The content of a compressed log.
pub(super) fn decoder<'r>(
    file: impl Read + 'r,
    compressed: Compressed,
) -> io::Result<Box<dyn Read + 'r>> {
    Ok(match compressed {
        Compressed::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
        Compressed::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))),
    })
}

/// Fills a buffer; less only at the end.
fn fill(file: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Searches a compressed log that is held as a whole.
pub(super) fn search_held(
    held: &[u8],
    path: &Path,
    compressed: Compressed,
    request: &Request,
    found: &mut Found<'_>,
    halt: &Halt<'_>,
) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default();
    let mut text = Text::new(&request.pattern, request.want, Form::of(name));
    let searched = decoder(held, compressed)
        .and_then(|mut decoded| pieces(&mut decoded, &mut text, &mut Vec::new(), halt, found));
    searched.map_err(|error| human::io(&error))
}
