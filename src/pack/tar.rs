//! The members in a decoded tar stream: ours, and those of any tar of the last forty years.
//!
//! A parser of our own, because the `tar` crate's takes a PAX value that holds a newline for two records, and in raw
//! mode forgets the sizes that stand there. POSIX.1-2017 (pax), and for the older and the GNU forms the manual of GNU
//! tar, "Basic Tar Format". No input makes it panic, or hold more than [`LONGEST_RECORDS`] and a few names.

use std::collections::BTreeMap;

use super::records::Records;
use super::sparse::{self, Extent};
use super::stream::Decoded;
use super::trouble::{Damage, Trouble};
use crate::base::human;
use crate::disk::Stamp;

/// A tar stream consists of blocks of this size.
const BLOCK: usize = 512;

/// The longest PAX or long-name record that is read.
const LONGEST_RECORDS: u64 = 16 << 20;

/// The longest name of a member.
const LONGEST_NAME: usize = 16 << 10;

/// What a member says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    File,
    Folder,
    Symlink,
    HardLink,
    /// What no session holds: a device, a FIFO, a part of a volume.
    Other(u8),
}

/// A member as its headers describe it.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// As it stands there: not looked at yet.
    pub name: Vec<u8>,
    pub kind: Type,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: Stamp,
    /// The length of its content, holes included.
    pub size: u64,
    pub link: Vec<u8>,
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Whether it has an access list in the form of text, as other tars write them.
    pub has_access_list: bool,
    /// Where its first header stands: frame, and place in its content.
    pub at: (u32, u64),
}

/// How much of the stream is read, and how strictly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether the end of the archive has to stand at the end, as it may nowhere else.
    pub to_the_end: bool,
    /// Whether a PAX record may hold for all that follow. In a pack of ours each member stands for itself.
    pub globals: bool,
}

/// Reads members.
pub(super) struct Tar<'d, 's> {
    source: &'d mut Decoded<'s>,
    rules: Rules,
    globals: Records,
    /// Of the current member: what is stored of it and not read yet, and the zeros behind it.
    left: u64,
    padding: u64,
    /// Its length, and where what is stored lies in it when it has holes.
    size: u64,
    extents: Option<Vec<Extent>>,
}

impl<'d, 's> Tar<'d, 's> {
    pub(super) fn new(source: &'d mut Decoded<'s>, rules: Rules) -> Self {
        Tar {
            source,
            rules,
            globals: Records::default(),
            left: 0,
            padding: 0,
            size: 0,
            extents: None,
        }
    }

    /// The next member; what is left of the one before is passed over.
    pub(super) fn next(&mut self) -> Result<Option<Header>, Trouble> {
        self.pass_over()?;
        let (mut records, mut long_name, mut long_link) = (None, None, None);
        let mut first = None;
        loop {
            self.source.peek()?;
            let position = self.source.position();
            let mut block = [0; BLOCK];
            match self.source.fill(&mut block)? {
                BLOCK => {}
                0 if first.is_none() && !self.rules.to_the_end => return Ok(None),
                0 => return Err(self.wrong("it has no end mark: it may have been cut off")),
                _ => return Err(self.wrong("it ends in the middle of a header: it was cut off")),
            }
            let at = *first.get_or_insert(position);
            let wrong = |what: &str| Trouble::Damage(damage(position, what));
            if block == [0; BLOCK] {
                if at != position {
                    return Err(wrong("it ends where a member should follow"));
                }
                return self.end(position).map(|()| None);
            }
            if !has_checksum(&block) {
                return Err(wrong("what should be the header of a member is none"));
            }
            let size = number(&block[124..136]).ok_or_else(|| wrong("a size is no number"))?;
            let size = u64::try_from(size).map_err(|_| wrong("a size is negative"))?;
            match block[156] {
                b'x' | b'X' => {
                    let record = self.record(size, position)?;
                    records = Some(Records::read(&record, position)?);
                }
                b'g' if self.rules.globals => {
                    let record = self.record(size, position)?;
                    self.globals.add(Records::for_all(&record, position)?);
                }
                b'L' => long_name = Some(until_nul(self.record(size, position)?)),
                b'K' => long_link = Some(until_nul(self.record(size, position)?)),
                // The label of a volume is no member.
                b'V' if self.rules.globals => {
                    first = None;
                    self.left = size;
                    self.padding = padding(size);
                    self.pass_over()?;
                }
                _ => {
                    let mut merged = self.globals.clone();
                    if let Some(records) = records {
                        merged.add(records);
                    }
                    return self
                        .member(&block, size, merged, long_name, long_link, at)
                        .map(Some);
                }
            }
        }
    }

    /// The content of the current member in pieces. Of a file with holes the holes are given as zeros.
    pub(super) fn content(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let Some(extents) = self.extents.take() else {
            let stored = self.left;
            return self.stored(stored, each);
        };
        let mut done = 0;
        for extent in extents {
            zeros(extent.from.saturating_sub(done), each)?;
            self.stored(extent.length, each)?;
            done = extent.from + extent.length;
        }
        zeros(self.size.saturating_sub(done), each)
    }

    /// The content of the current member as one, in a buffer that was used before; for small ones.
    pub(super) fn whole(&mut self, mut whole: Vec<u8>) -> Result<Vec<u8>, Trouble> {
        whole.clear();
        whole.reserve(usize::try_from(self.size).unwrap_or(0).min(4 << 20));
        self.content(&mut |piece| {
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(whole)
    }

    fn stored(
        &mut self,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut left = bytes.min(self.left);
        while left > 0 {
            let here = self.source.peek()?;
            if here.is_empty() {
                return Err(self.wrong("it ends in the middle of a file: it was cut off"));
            }
            let step = here.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            each(&here[..step])?;
            self.source.consume(step);
            left -= step as u64;
            self.left -= step as u64;
        }
        Ok(())
    }

    /// Passes over what is left of the current member.
    pub(super) fn pass_over(&mut self) -> Result<(), Trouble> {
        let rest = self.left.saturating_add(self.padding);
        (self.left, self.padding, self.extents) = (0, 0, None);
        match self.source.skip(rest)? == rest {
            true => Ok(()),
            false => Err(self.wrong("it ends in the middle of a file: it was cut off")),
        }
    }

    /// The content of a member that only describes the next one.
    fn record(&mut self, size: u64, at: (u32, u64)) -> Result<Vec<u8>, Trouble> {
        if size > LONGEST_RECORDS {
            let what = format!("a record of {} is longer than any name", human::size(size));
            return Err(damage(at, what).into());
        }
        let mut record = vec![0; size as usize];
        let read = self.source.fill(&mut record)?;
        let padding = padding(size);
        if read < record.len() || self.source.skip(padding)? < padding {
            return Err(self.wrong("it ends in the middle of a record: it was cut off"));
        }
        Ok(record)
    }

    fn member(
        &mut self,
        block: &[u8; BLOCK],
        size: u64,
        mut records: Records,
        long_name: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
        at: (u32, u64),
    ) -> Result<Header, Trouble> {
        let wrong = |what: &str| Trouble::Damage(damage(at, what));
        let stored = records.size.unwrap_or(size);
        let name = records.sparse_name().or(records.path.take());
        let name = name.or(long_name).unwrap_or_else(|| name_of(block));
        let link = records.link.take().or(long_link);
        let link = link.unwrap_or_else(|| until_nul(block[157..257].to_vec()));
        if name.len() > LONGEST_NAME || link.len() > LONGEST_NAME {
            return Err(wrong("a name is longer than any name of a file"));
        }
        let kind = match block[156] {
            // Before POSIX, a folder was a file whose name ends in a slash.
            b'0' | 0 if name.ends_with(b"/") && !records.is_sparse() => Type::Folder,
            b'0' | 0 | b'7' | b'S' => Type::File,
            b'1' => Type::HardLink,
            b'2' => Type::Symlink,
            b'5' | b'D' => Type::Folder,
            other => Type::Other(other),
        };
        let field = |from: usize, to: usize| number(&block[from..to]);
        let id = |record: Option<u64>, from: usize| {
            let id = record
                .map(i128::from)
                .or(field(from, from + 8).map(i128::from));
            id.and_then(|id| u32::try_from(id).ok())
                .ok_or_else(|| wrong("an owner is no number"))
        };
        let mode = field(100, 108).ok_or_else(|| wrong("a mode is no number"))?;
        let mtime = match records.mtime {
            Some(mtime) => mtime,
            None => Stamp {
                seconds: field(136, 148).ok_or_else(|| wrong("a time is no number"))?,
                nanos: 0,
            },
        };
        let (uid, gid) = (id(records.uid, 108)?, id(records.gid, 116)?);
        self.left = match kind {
            // What tar itself does: some write the length of the file that it is a name of.
            Type::HardLink => 0,
            _ => stored,
        };
        self.padding = padding(self.left);
        self.size = self.left;
        if kind == Type::File {
            self.holes(block, &records, at)?;
        }
        Ok(Header {
            name,
            kind,
            mode: (mode & 0o7777) as u32,
            uid,
            gid,
            mtime,
            size: match kind {
                Type::File => self.size,
                _ => 0,
            },
            link,
            xattrs: records.xattrs,
            has_access_list: records.has_access_list,
            at,
        })
    }

    /// Learns where what is stored of a file with holes lies in it.
    fn holes(
        &mut self,
        block: &[u8; BLOCK],
        records: &Records,
        at: (u32, u64),
    ) -> Result<(), Trouble> {
        let wrong = |what: &str| Trouble::Damage(damage(at, what));
        let (extents, size) = if block[156] == b'S' {
            let mut extents =
                sparse::in_header(block).ok_or_else(|| wrong("a map of holes is none"))?;
            let mut more = block[482] != 0;
            while more {
                let mut next = [0; BLOCK];
                if self.source.fill(&mut next)? < BLOCK {
                    return Err(self.wrong("it ends in the middle of a header: it was cut off"));
                }
                let further =
                    sparse::in_extension(&next).ok_or_else(|| wrong("a map of holes is none"))?;
                extents.extend(further);
                if extents.len() > sparse::MOST_EXTENTS {
                    return Err(wrong("a map of holes is longer than any"));
                }
                more = next[504] != 0;
            }
            let size = number(&block[483..495]).and_then(|size| u64::try_from(size).ok());
            (extents, size.ok_or_else(|| wrong("a size is no number"))?)
        } else if records.is_sparse() {
            let size = records
                .sparse_size
                .ok_or_else(|| wrong("a file with holes has no size"))?;
            match records.sparse_in_content() {
                true => (self.map_in_content(at)?, size),
                false => {
                    let extents = sparse::pairs(&records.sparse_map);
                    (
                        extents.ok_or_else(|| wrong("a map of holes is none"))?,
                        size,
                    )
                }
            }
        } else {
            return Ok(());
        };
        if !sparse::fits(&extents, size, self.left) {
            return Err(wrong("a map of holes does not fit its file"));
        }
        if size - self.left > sparse::MOST_HOLES {
            return Err(wrong("a file has larger holes than this program fills"));
        }
        self.size = size;
        self.extents = Some(extents);
        Ok(())
    }

    /// The map of GNU's sparse format 1.0: decimal numbers, each on a line, before the content.
    fn map_in_content(&mut self, at: (u32, u64)) -> Result<Vec<Extent>, Trouble> {
        let wrong = |what: &str| Trouble::Damage(damage(at, what));
        let mut map = sparse::Map::default();
        loop {
            let mut block = [0; BLOCK];
            if self.left < BLOCK as u64 {
                return Err(wrong("a map of holes does not end"));
            }
            if self.source.fill(&mut block)? < BLOCK {
                return Err(self.wrong("it ends in the middle of a file: it was cut off"));
            }
            self.left -= BLOCK as u64;
            match map.read(&block) {
                Some(false) => {}
                Some(true) => break,
                None => return Err(wrong("a map of holes is none")),
            }
        }
        sparse::pairs(&map.numbers).ok_or_else(|| wrong("a map of holes is none"))
    }

    /// After the first block of zeros: another, and then nothing but zeros.
    fn end(&mut self, at: (u32, u64)) -> Result<(), Trouble> {
        if !self.rules.to_the_end {
            return Err(damage(at, "it ends before its last frame").into());
        }
        let mut zeros = 0;
        loop {
            let here = self.source.peek()?;
            if here.is_empty() {
                break;
            }
            if let Some(first) = here.iter().position(|byte| *byte != 0) {
                self.source.consume(first);
                let found = self.source.position();
                let mut block = [0; BLOCK];
                let is_header = (zeros + first).is_multiple_of(BLOCK)
                    && self.source.fill(&mut block)? == BLOCK
                    && has_checksum(&block);
                let what = match is_header {
                    true => "another tar stream follows behind the end",
                    false => "something stands behind its end",
                };
                return Err(damage(found, what).into());
            }
            let length = here.len();
            zeros += length;
            self.source.consume(length);
        }
        match zeros >= BLOCK {
            true => Ok(()),
            false => Err(self.wrong("only half of the mark of its end is there: it was cut off")),
        }
    }

    fn wrong(&self, what: &str) -> Trouble {
        damage(self.source.position(), what).into()
    }
}

/// Something wrong at a place of the stream.
pub(super) fn damage((frame, at): (u32, u64), what: impl Into<String>) -> Damage {
    let (number, at) = (human::count(u64::from(frame) + 1), human::count(at));
    let part = format!("the tar stream (at byte {at} of the content of the data frame {number})");
    Damage::new(part, what, frame)
}

fn zeros(
    mut bytes: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while bytes > 0 {
        let step = bytes.min(ZEROS.len() as u64);
        each(&ZEROS[..step as usize])?;
        bytes -= step;
    }
    Ok(())
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

/// The name in a header, with the prefix that POSIX added. GNU's header has other fields in that place.
fn name_of(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_nul(block[..100].to_vec());
    if &block[257..263] != b"ustar\0" || block[345] == 0 {
        return name;
    }
    [&until_nul(block[345..500].to_vec())[..], b"/", &name].concat()
}

/// Whether the sum of a header's bytes is the one that it gives, its own field taken for blanks. Some old tars added
/// signed bytes.
fn has_checksum(block: &[u8; BLOCK]) -> bool {
    let bytes = || block[..148].iter().chain(&[b' '; 8]).chain(&block[156..]);
    let unsigned: i64 = bytes().map(|byte| i64::from(*byte)).sum();
    let signed: i64 = bytes().map(|byte| i64::from(*byte as i8)).sum();
    number(&block[148..156]).is_some_and(|sum| sum == unsigned || sum == signed)
}

/// A number in a header: octal digits between blanks and NULs, or where that is too narrow the two's complement in
/// base 256, marked by the first bit.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let negative = first & 0x40 != 0;
        let start = match negative {
            true => i128::from(*first) - 0x100,
            false => i128::from(first & 0x3f),
        };
        // At most twelve bytes.
        let value = rest
            .iter()
            .fold(start, |value, byte| value * 256 + i128::from(*byte));
        return i64::try_from(value).ok();
    }
    let digits = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    let digits = field[..digits].trim_ascii();
    digits.iter().try_fold(0i64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_age() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"77777777"), Some(0o7777_7777));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\0\0\0\x01\x02"), Some(258));
        assert_eq!(number(&[0xff; 12]), Some(-1));
        for wrong in [
            &b"8"[..],
            b"1x",
            b"-1",
            &[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }
}
