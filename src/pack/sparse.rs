//! Files with holes in packs made by hand (`tar -S`). Ours have none: zstd takes zeros away.
//!
//! All four forms of GNU tar: see its manual, "Storing Sparse Files".

use super::records::decimal;
use super::tar::number;

/// More pieces than a file of any use has.
pub(super) const MOST_EXTENTS: usize = 1 << 20;

/// A few bytes can ask for exabytes of holes, and each zero of them has to be read.
pub(super) const MOST_HOLES: u64 = 64 << 30;

/// A stretch of a file that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub from: u64,
    pub length: u64,
}

/// The four that stand in a header of the old GNU form.
pub(super) fn in_header(block: &[u8; 512]) -> Option<Vec<Extent>> {
    in_fields(&block[386..482])
}

/// The twenty-one in each block that follows it.
pub(super) fn in_extension(block: &[u8; 512]) -> Option<Vec<Extent>> {
    in_fields(&block[..504])
}

fn in_fields(fields: &[u8]) -> Option<Vec<Extent>> {
    let mut extents = Vec::new();
    for field in fields.chunks_exact(24) {
        // The unused ones are empty.
        if field[0] == 0 {
            break;
        }
        extents.push(Extent {
            from: number(&field[..12])?.try_into().ok()?,
            length: number(&field[12..])?.try_into().ok()?,
        });
    }
    Some(extents)
}

/// Numbers that are in turn a place and a length.
pub(super) fn pairs(numbers: &[u64]) -> Option<Vec<Extent>> {
    if !numbers.len().is_multiple_of(2) || numbers.len() / 2 > MOST_EXTENTS {
        return None;
    }
    let pairs = numbers.chunks_exact(2);
    Some(
        pairs
            .map(|pair| Extent {
                from: pair[0],
                length: pair[1],
            })
            .collect(),
    )
}

/// Whether they follow each other, lie in the file, and are together what is stored.
pub(super) fn fits(extents: &[Extent], size: u64, stored: u64) -> bool {
    let (mut end, mut sum) = (0u64, 0u64);
    for extent in extents {
        if extent.from < end {
            return false;
        }
        let Some(next) = extent.from.checked_add(extent.length) else {
            return false;
        };
        end = next;
        sum += extent.length;
    }
    end <= size && sum == stored
}

/// A map in decimal lines, read block by block: how many pairs, then each pair.
#[derive(Debug, Default)]
pub(super) struct Map {
    pairs: Option<u64>,
    digits: Vec<u8>,
    pub numbers: Vec<u64>,
}

impl Map {
    /// Reads on; whether that was all of it. `None` when it is no map.
    pub(super) fn read(&mut self, block: &[u8]) -> Option<bool> {
        for byte in block {
            if *byte != b'\n' {
                self.digits.push(*byte);
                if self.digits.len() > 20 {
                    return None;
                }
                continue;
            }
            let number = decimal(&std::mem::take(&mut self.digits))?;
            match self.pairs {
                None if number > MOST_EXTENTS as u64 => return None,
                None => self.pairs = Some(number),
                Some(_) => self.numbers.push(number),
            }
            if self
                .pairs
                .is_some_and(|pairs| self.numbers.len() as u64 == 2 * pairs)
            {
                return Some(true);
            }
        }
        Some(false)
    }
}
