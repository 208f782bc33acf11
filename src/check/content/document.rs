//! A `.json` file: one value, and nothing after it.

use super::scanner::{Scanner, Stuck};
use super::{Care, Defect};
use crate::base::human;

/// Judges one JSON document.
#[derive(Debug)]
pub(super) struct Document {
    care: Care,
    scanner: Scanner,
    head: Head,
    seen: u64,
    /// NUL bytes after the value, or before it.
    stray_nuls: u64,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Reading,
    /// Not JSON in UTF-8, or nested too deeply: nothing can be said.
    Unknown,
    /// Something is there that must not be, at this offset.
    Broken(u64),
    /// Text after the end of the value, from this offset.
    Trailing(u64),
    /// Unwritten bytes where the value should go on.
    Unwritten(u64),
}

impl Document {
    pub(super) fn new(care: Care) -> Self {
        Document {
            care,
            scanner: Scanner::new(),
            head: Head::default(),
            seen: 0,
            stray_nuls: 0,
            verdict: Verdict::Reading,
        }
    }

    pub(super) fn push(&mut self, mut data: &[u8]) {
        if let Some(head) = self.head.take(&mut data) {
            self.begin(head.as_slice());
        }
        if self.head.is_read() {
            self.read(data);
        }
    }

    pub(super) fn push_hole(&mut self, len: u64) {
        // The head is four bytes at most; what a hole has of it is read as the bytes that it stands for.
        let part = len.min(Head::SIZE as u64);
        self.push(&[0; Head::SIZE][..part as usize]);
        self.read_nuls(len - part);
    }

    fn begin(&mut self, head: &[u8]) {
        match encoding(head) {
            Encoding::Utf8 { mark } => {
                self.seen = self.seen.saturating_add(mark as u64);
                self.read(&head[mark..]);
            }
            Encoding::Other => self.verdict = Verdict::Unknown,
        }
    }

    fn read(&mut self, data: &[u8]) {
        let mut at = 0;
        let seen = self.seen;
        let place = |at: usize| seen.saturating_add(at as u64);
        while at < data.len() && self.verdict == Verdict::Reading {
            let between = self.scanner.is_done() || self.scanner.is_at_start();
            if between && data[at] == 0 {
                let nuls = super::nuls::leading_nuls(&data[at..]);
                self.stray_nuls = self.stray_nuls.saturating_add(nuls as u64);
                at += nuls;
            } else if self.scanner.is_done() {
                if !data[at].is_ascii_whitespace() {
                    self.verdict = Verdict::Trailing(place(at));
                }
                at += 1;
            } else {
                // Between values the reader must not run into the NULs that are counted above.
                let end = match between {
                    true => at + 1,
                    false => data.len(),
                };
                match self.scanner.push(&data[at..end]) {
                    Ok(read) => at += read,
                    Err(Stuck::TooDeep) => self.verdict = Verdict::Unknown,
                    Err(Stuck::At(stuck)) if data[at + stuck] == 0 => {
                        self.verdict = Verdict::Unwritten(place(at + stuck));
                    }
                    Err(Stuck::At(stuck)) => self.verdict = Verdict::Broken(place(at + stuck)),
                }
            }
        }
        self.seen = self.seen.saturating_add(data.len() as u64);
    }

    fn read_nuls(&mut self, len: u64) {
        if len == 0 {
            return;
        }
        self.read(&[0]);
        // One tells what all of them mean.
        self.seen = self.seen.saturating_add(len - 1);
        if self.verdict == Verdict::Reading {
            self.stray_nuls = self.stray_nuls.saturating_add(len - 1);
        }
    }

    /// `nul_run` says whether the NUL bytes are reported as such.
    pub(super) fn finish(mut self, nul_run: bool) -> Option<Defect> {
        if let Some(head) = self.head.end() {
            self.begin(head.as_slice());
        }
        let record = self.care == Care::Record;
        let torn = |offset, cut, detail: String| {
            Some(Defect::Torn {
                offset,
                records: 1,
                cut,
                detail,
            })
        };
        match self.verdict {
            Verdict::Reading if self.scanner.is_at_start() && self.stray_nuls == 0 => {
                record.then(|| torn(0, true, "is empty".into()))?
            }
            Verdict::Reading if !self.scanner.is_whole() => {
                torn(self.seen, true, "ends in mid-record".into())
            }
            Verdict::Reading if self.stray_nuls > 0 && !nul_run => {
                torn(self.seen, false, "holds NUL bytes beside its record".into())
            }
            Verdict::Reading | Verdict::Unknown => None,
            Verdict::Unwritten(at) => torn(at, true, "ends in mid-record".into()),
            Verdict::Broken(at) => record.then(|| {
                let at_byte = format!("does not parse at byte {}", human::count(at + 1));
                torn(at, false, at_byte)
            })?,
            Verdict::Trailing(at) => record.then(|| {
                let after = format!("goes on after its end, at byte {}", human::count(at + 1));
                torn(at, false, after)
            })?,
        }
    }
}

/// The first bytes of a file, which tell its encoding, however small the pieces are in which they come.
#[derive(Debug, Default)]
pub(super) struct Head {
    bytes: [u8; Head::SIZE],
    length: usize,
    read: bool,
}

/// The head once it is complete.
#[derive(Debug)]
pub(super) struct Taken([u8; Head::SIZE], usize);

impl Taken {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl Head {
    pub(super) const SIZE: usize = 4;

    /// Takes from `data` what is still missing. The head when that completes it.
    pub(super) fn take(&mut self, data: &mut &[u8]) -> Option<Taken> {
        if self.read {
            return None;
        }
        let part = data.len().min(Head::SIZE - self.length);
        self.bytes[self.length..self.length + part].copy_from_slice(&data[..part]);
        self.length += part;
        *data = &data[part..];
        (self.length == Head::SIZE).then(|| self.taken())
    }

    /// The file ended: what there is of the head, if it was not taken before.
    pub(super) fn end(&mut self) -> Option<Taken> {
        (!self.read).then(|| self.taken())
    }

    pub(super) fn is_read(&self) -> bool {
        self.read
    }

    fn taken(&mut self) -> Taken {
        self.read = true;
        Taken(self.bytes, self.length)
    }
}

/// How the text of a file is encoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, after so many bytes of a byte order mark.
    Utf8 { mark: usize },
    /// UTF-16 or UTF-32, by its mark or by the NUL beside the first character (RFC 4627, section 3).
    Other,
}

pub(super) fn encoding(head: &[u8]) -> Encoding {
    match head {
        [0xef, 0xbb, 0xbf, ..] => Encoding::Utf8 { mark: 3 },
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Encoding::Other,
        [0, 0, 0xfe, 0xff] => Encoding::Other,
        // A character of UTF-16 and the beginning of the next one; a text that was cut and filled up has more NULs.
        [first, 0, second, 0] | [0, first, 0, second] if *first != 0 && *second != 0 => {
            Encoding::Other
        }
        _ => Encoding::Utf8 { mark: 0 },
    }
}
