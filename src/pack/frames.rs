//! Where the frames of a zstd file lie, found without decoding it; the two skippable frames behind the data.
//!
//! Zstandard: RFC 8878. Seekable format: `contrib/seekable_format/zstd_seekable_compression_format.md` of zstd.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A zstd frame (RFC 8878, section 3.1.1).
const ZSTD: u32 = 0xfd2f_b528;

/// The first of the sixteen numbers of a skippable frame (section 3.1.2).
const SKIPPABLE: u32 = 0x184d_2a50;

/// The skippable frame of the manifest.
pub(super) const MANIFEST: u32 = 0x184d_2a57;

/// The skippable frame of the seek table.
pub(super) const SEEK_TABLE: u32 = 0x184d_2a5e;

/// The last four bytes of a seek table.
const SEEK_TABLE_END: u32 = 0x8f92_eab1;

/// Magic number and length, before what a skippable frame holds.
pub(super) const SKIPPABLE_HEADER: u64 = 8;

/// Number of frames, descriptor, magic number.
const FOOTER: u64 = 9;

/// So many entries of a seek table are read at once.
const PIECE: usize = 8 << 10;

/// A frame in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Data.
    Data(Range<u64>),
    /// What a decoder skips: its number, and where what it holds lies.
    Skippable(u32, Range<u64>),
}

impl Found {
    /// Where the next frame begins.
    pub fn end(&self) -> u64 {
        match self {
            Found::Data(range) | Found::Skippable(_, range) => range.end,
        }
    }
}

/// The frame that begins at `at`, followed block by block (section 3.1.1.2); its content is not decoded.
///
/// # Errors
/// `InvalidData` where no frame begins, `UnexpectedEof` when the file ends in its middle.
pub(super) fn frame_at(file: &File, at: u64, size: u64) -> io::Result<Found> {
    let read = |at: u64, length: usize| -> io::Result<u64> {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes[..length], at)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let magic = read(at, 4)? as u32;
    let within = |end: u64| -> io::Result<u64> {
        match end <= size {
            true => Ok(end),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    if magic & !0xf == SKIPPABLE {
        let from = at + SKIPPABLE_HEADER;
        let end = within(from + read(at + 4, 4)?)?;
        return Ok(Found::Skippable(magic, from..end));
    }
    if magic != ZSTD {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let descriptor = read(at + 4, 1)?;
    let (content_flag, single_segment) = (descriptor >> 6, descriptor >> 5 & 1);
    let checksum = descriptor >> 2 & 1;
    let dictionary = [0, 1, 2, 4][(descriptor & 3) as usize];
    let content = match content_flag {
        0 => single_segment,
        flag => 1 << flag,
    };
    let mut next = at + 5 + (1 - single_segment) + dictionary + content;
    loop {
        let header = read(next, 3)?;
        let (last, kind, length) = (header & 1, header >> 1 & 3, header >> 3);
        next = within(
            next + 3
                + match kind {
                    // One byte, repeated.
                    1 => 1,
                    3 => return Err(io::ErrorKind::InvalidData.into()),
                    _ => length,
                },
        )?;
        if last == 1 {
            return Ok(Found::Data(at..within(next + 4 * checksum)?));
        }
    }
}

/// Whether a data frame begins at `at`.
///
/// # Errors
/// When the file can not be read.
pub(super) fn is_data(file: &File, at: u64) -> io::Result<bool> {
    let mut magic = [0; 4];
    match file.read_exact_at(&mut magic, at) {
        Ok(()) => Ok(u32::from_le_bytes(magic) == ZSTD),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Every frame from the beginning of a file on, as far as there are frames, and what is wrong with the place where
/// that ends, if it is not the end of the file.
///
/// # Errors
/// When the file can not be read.
pub(super) fn walk(file: &File, size: u64) -> io::Result<(Vec<Found>, Option<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < size {
        match frame_at(file, at, size) {
            Ok(frame) => {
                at = frame.end();
                found.push(frame);
            }
            Err(error) => {
                let what = match error.kind() {
                    io::ErrorKind::InvalidData => "no zstd frame begins",
                    io::ErrorKind::UnexpectedEof => {
                        "the file ends in the middle of the frame that begins"
                    }
                    _ => return Err(error),
                };
                let at = crate::base::human::count(at);
                return Ok((found, Some(format!("{what} at byte {at}"))));
            }
        }
    }
    Ok((found, None))
}

/// A skippable frame.
pub(super) fn skippable(magic: u32, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut frame = Vec::with_capacity(length + SKIPPABLE_HEADER as usize);
    frame.extend(magic.to_le_bytes());
    frame.extend(u32::try_from(length).ok()?.to_le_bytes());
    parts.iter().for_each(|part| frame.extend(*part));
    Some(frame)
}

/// The seek table of frames, each with its length in the file and that of its content. `None` when one is too long
/// for it.
pub(super) fn seek_table(frames: &[(u64, u64)]) -> Option<Vec<u8>> {
    let mut table = Vec::with_capacity(frames.len() * 8 + FOOTER as usize);
    for (bytes, content) in frames {
        table.extend(u32::try_from(*bytes).ok()?.to_le_bytes());
        table.extend(u32::try_from(*content).ok()?.to_le_bytes());
    }
    table.extend(u32::try_from(frames.len()).ok()?.to_le_bytes());
    // No checksums: each frame has its own.
    table.push(0);
    table.extend(SEEK_TABLE_END.to_le_bytes());
    skippable(SEEK_TABLE, &[&table])
}

/// A seek table at the end of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SeekTable {
    /// Where its frame begins.
    pub at: u64,
    /// Of each frame before it the length in the file and that of its content.
    pub frames: Vec<(u64, u64)>,
}

/// Reads the seek table; `None` when the file does not end with one.
///
/// # Errors
/// When the file can not be read.
pub(super) fn read_seek_table(file: &File, size: u64) -> io::Result<Option<SeekTable>> {
    let Some(footer_at) = size.checked_sub(FOOTER) else {
        return Ok(None);
    };
    let mut footer = [0; FOOTER as usize];
    file.read_exact_at(&mut footer, footer_at)?;
    let number = |at: &[u8]| at.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let (count, descriptor) = (number(&footer[..4]), footer[4]);
    if number(&footer[5..]) != u64::from(SEEK_TABLE_END) || descriptor & !0x80 != 0 {
        return Ok(None);
    }
    let entry = match descriptor {
        0 => 8,
        _ => 12,
    };
    let length = count * entry + FOOTER;
    let Some(at) = size.checked_sub(length + SKIPPABLE_HEADER) else {
        return Ok(None);
    };
    let mut head = [0; SKIPPABLE_HEADER as usize];
    file.read_exact_at(&mut head, at)?;
    if number(&head[..4]) != u64::from(SEEK_TABLE) || number(&head[4..]) != length {
        return Ok(None);
    }
    let Some(frames) = read_entries(file, at + SKIPPABLE_HEADER, count, entry as usize)? else {
        return Ok(None);
    };
    let covered = frames.iter().map(|(bytes, _)| bytes).sum::<u64>();
    Ok((covered == at).then_some(SeekTable { at, frames }))
}

/// Reads so many entries of a seek table; `None` when one of them is of no frame. The number is anybody's, and a file may
/// be one great hole: nothing is held that does not stand there.
fn read_entries(
    file: &File,
    mut at: u64,
    count: u64,
    entry: usize,
) -> io::Result<Option<Vec<(u64, u64)>>> {
    let number = |at: &[u8]| at.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let mut buffer = vec![0; entry * PIECE];
    let mut frames = Vec::new();
    let mut left = count;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE) * entry;
        let piece = &mut buffer[..length];
        file.read_exact_at(piece, at)?;
        for entry in piece.chunks_exact(entry) {
            let frame = (number(&entry[..4]), number(&entry[4..8]));
            if frame.0 < SKIPPABLE_HEADER {
                return Ok(None);
            }
            frames.push(frame);
        }
        at += length as u64;
        left -= (length / entry) as u64;
    }
    Ok(Some(frames))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    #[test]
    fn frames_of_every_shape_are_told_apart() {
        let noise: Vec<u8> = (0..300_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let mut bytes = Vec::new();
        let mut wanted = Vec::new();
        for content in [&b""[..], b"a", &[0; 500_000], &noise] {
            // Once with the length in the header, once streamed without.
            let whole = zstd::bulk::compress(content, 3).unwrap();
            let mut stream = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
            stream.include_checksum(true).unwrap();
            stream.write_all(content).unwrap();
            for frame in [whole, stream.finish().unwrap()] {
                wanted.push(Found::Data(
                    bytes.len() as u64..(bytes.len() + frame.len()) as u64,
                ));
                bytes.extend(frame);
            }
        }
        let at = bytes.len() as u64 + 8;
        bytes.extend(skippable(MANIFEST, &[b"one", b"two"]).unwrap());
        wanted.push(Found::Skippable(MANIFEST, at..at + 6));
        let whole = file(&bytes);
        assert_eq!(
            walk(&whole, bytes.len() as u64).unwrap(),
            (wanted.clone(), None)
        );
        let cut = bytes.len() - 1;
        let (found, why) = walk(&file(&bytes[..cut]), cut as u64).unwrap();
        assert_eq!(found, wanted[..wanted.len() - 1]);
        assert!(why.unwrap().contains("ends in the middle"));
        let (found, why) = walk(&file(b"not zstd"), 8).unwrap();
        assert_eq!(
            (found.len(), why.as_deref()),
            (0, Some("no zstd frame begins at byte 0"))
        );
    }

    #[test]
    fn a_seek_table_comes_back_and_a_damaged_one_is_none() {
        let mut bytes = zstd::bulk::compress(b"some data", 3).unwrap();
        let frames = [(bytes.len() as u64, 9)];
        let at = bytes.len() as u64;
        bytes.extend(seek_table(&frames).unwrap());
        let read = |bytes: &[u8]| read_seek_table(&file(bytes), bytes.len() as u64).unwrap();
        let frames = frames.to_vec();
        assert_eq!(read(&bytes), Some(SeekTable { at, frames }));
        for place in at as usize..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[place] ^= 1;
            // The lengths of contents are compared with the manifest.
            let content = at as usize + 12..at as usize + 16;
            assert_eq!(read(&bytes).is_some(), content.contains(&place), "{place}");
        }
        assert_eq!(read(b""), None);
        assert_eq!(seek_table(&[(1 << 32, 0)]), None);
    }

    #[test]
    fn a_table_of_a_hole_takes_no_memory() {
        // A hole of a terabyte, and behind it what says that four gigabytes of it are a table.
        let count = (u64::from(u32::MAX) - FOOTER) / 8;
        let at = (1 << 40) - (count * 8 + SKIPPABLE_HEADER + FOOTER);
        let head = [SEEK_TABLE, (count * 8 + FOOTER) as u32].map(u32::to_le_bytes);
        let mut foot = (count as u32).to_le_bytes().to_vec();
        foot.push(0);
        foot.extend(SEEK_TABLE_END.to_le_bytes());
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&foot, (1 << 40) - FOOTER).unwrap();
        assert_eq!(read_seek_table(&file, 1 << 40).unwrap(), None);
        file.write_all_at(&head.concat(), at).unwrap();
        assert_eq!(read_seek_table(&file, 1 << 40).unwrap(), None);
        assert_eq!(
            read_entries(&file, at + 8, count, 8).unwrap(),
            None,
            "it ends at the first entry"
        );
    }
}
