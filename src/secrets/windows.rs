//! A file of any size, looked at window by window.
//!
//! Two windows that follow each other have two margins in common. A window tells what begins in its middle, and at
//! what it has of its margins it only looks: so each secret is told by one window, which sees a margin of text on both
//! sides of where it begins. A secret longer than a margin may be told as the part of it that the window has.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Rules;
use super::scan::{Place, Secrets};
use super::view::Decoder;
use crate::base::Stop;
use crate::disk::{Digest, Meta};

/// How much is looked at together. A scan has up to five more readings of it in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// A text up to this size is one window.
    pub window: usize,
    pub margin: usize,
    /// What is read at once; even.
    pub block: usize,
}

impl Sizes {
    pub(super) const USUAL: Sizes = Sizes {
        window: 15 << 20,
        margin: 256 << 10,
        block: 1 << 20,
    };
}

/// How much of a file is looked at, and told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// So many bytes at its beginning.
    pub limit: u64,
    /// So many distinct secrets, the first ones.
    pub most: usize,
}

/// What a file holds.
pub(super) struct Seen {
    pub secrets: Secrets,
    pub digest: Digest,
    pub size: u64,
}

/// Looks at a file as far as it reaches now.
///
/// # Errors
/// When it can not be read; `Interrupted` when the flag was raised.
pub(super) fn look(
    rules: &Rules,
    path: &Path,
    file: &File,
    bounds: Bounds,
    sizes: Sizes,
    stop: &Stop,
) -> io::Result<Seen> {
    let mut looking = Looking {
        rules,
        path,
        is_passed_by: rules.pass_by(path),
        whole: BTreeSet::new(),
        is_late: false,
    };
    loop {
        let seen = looking.pass(file, bounds, sizes, stop)?;
        // A keyword of a person's rule has turned up after windows in which the rule was not tried.
        if !std::mem::take(&mut looking.is_late) {
            return Ok(seen);
        }
    }
}

struct Looking<'a> {
    rules: &'a Rules,
    path: &'a Path,
    is_passed_by: bool,
    /// Rules of a person that are tried on the whole file.
    whole: BTreeSet<usize>,
    /// Whether one of them came in after the first window.
    is_late: bool,
}

impl Looking<'_> {
    fn pass(&mut self, file: &File, bounds: Bounds, sizes: Sizes, stop: &Stop) -> io::Result<Seen> {
        let mut source = Source::new(file, bounds.limit, sizes)?;
        let mut secrets = Secrets::new(bounds.most);
        // Where the window begins; from where on it tells.
        let (mut begin, mut from) = (Place::default(), 0);
        loop {
            source.fill(sizes.window, stop)?;
            let text = &source.text;
            let to = text.len().saturating_sub(sizes.margin);
            // Where more would not be told, the rest only counts for the digest.
            if !self.is_passed_by && !secrets.is_full() {
                let known = self.whole.len();
                let mut hits = self.rules.hits(self.path, text, &mut self.whole);
                self.is_late |= from > 0 && self.whole.len() > known;
                hits.retain(|hit| hit.from >= from && (source.is_ended || hit.from < to));
                secrets.gather(text, &mut begin.clone(), hits);
            }
            if source.is_ended {
                return Ok(Seen {
                    secrets,
                    digest: source.hasher.finalize(),
                    size: source.at,
                });
            }
            let next = to - sizes.margin;
            begin.pass(&text[..next]);
            source.text.drain(..next);
            from = sizes.margin;
        }
    }
}

/// The text of a file, as far as it was read and not let go of.
struct Source<'a> {
    file: &'a File,
    /// Its size when reading began: what is appended meanwhile is not waited for.
    size: u64,
    at: u64,
    is_ended: bool,
    hasher: blake3::Hasher,
    decoder: Option<Decoder>,
    block: Vec<u8>,
    text: Vec<u8>,
}

impl<'a> Source<'a> {
    fn new(file: &'a File, limit: u64, sizes: Sizes) -> io::Result<Source<'a>> {
        let size = Meta::of(file)?.size.min(limit);
        let held = usize::try_from(size).map_or(sizes.window, |size| size.min(sizes.window));
        // A small file is one short block: the last, so that it may be odd.
        let block = usize::try_from(size).map_or(sizes.block, |size| sizes.block.min(size + 1));
        Ok(Source {
            file,
            size,
            at: 0,
            is_ended: false,
            hasher: blake3::Hasher::new(),
            decoder: None,
            block: vec![0; block],
            text: Vec::with_capacity(held + block),
        })
    }

    /// Reads on until there is more text than a window has, or the file ends.
    fn fill(&mut self, window: usize, stop: &Stop) -> io::Result<()> {
        while self.text.len() <= window && !self.is_ended {
            stop.check().map_err(|_| io::ErrorKind::Interrupted)?;
            let length = self.read()?;
            let piece = &self.block[..length];
            self.hasher.update(piece);
            self.at += length as u64;
            self.is_ended = length < self.block.len() || self.at >= self.size;
            let decoder = self.decoder.get_or_insert_with(|| Decoder::new(piece));
            decoder.push(piece, self.is_ended, &mut self.text);
        }
        Ok(())
    }

    /// The next block; a short one is the last.
    fn read(&mut self) -> io::Result<usize> {
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX);
        let wanted = self.block.len().min(left);
        let mut length = 0;
        while length < wanted {
            match self
                .file
                .read_at(&mut self.block[length..wanted], self.at + length as u64)
            {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(length)
    }
}
