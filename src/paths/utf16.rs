//! UTF-16 through the same engine: decoded into generalised UTF-8 (WTF-8, which holds lone surrogates, too), and back.
//! <https://simonsapin.github.io/wtf-8/>

use super::found::Found;

/// One UTF-16 source, between its bytes and the engine's.
#[derive(Debug)]
pub(super) struct Utf16 {
    big_endian: bool,
    /// The first byte of a unit whose second one has not come yet.
    half: Option<u8>,
    /// The first unit of a pair whose second one has not come yet.
    high: Option<u16>,
    /// The next byte is the second of a unit whose first one lies in a hole.
    torn: bool,
    /// The same place, counted in the engine's bytes and in the source's.
    engine: u64,
    source: u64,
}

impl Utf16 {
    pub(super) fn new(big_endian: bool) -> Utf16 {
        Utf16 {
            big_endian,
            half: None,
            high: None,
            torn: false,
            engine: 0,
            source: 0,
        }
    }

    /// Decodes a piece of the source. What cannot be decoded on its own goes to `out` as it is.
    pub(super) fn decode(&mut self, piece: &[u8], into: &mut Vec<u8>, out: &mut Vec<u8>) {
        let mut piece = piece;
        if self.torn
            && let Some((first, rest)) = piece.split_first()
        {
            out.push(*first);
            self.source += 1;
            self.torn = false;
            piece = rest;
        }
        if let (Some(half), Some((first, rest))) = (self.half, piece.split_first()) {
            self.half = None;
            self.unit([half, *first], into);
            piece = rest;
        }
        let units = piece.chunks_exact(2);
        if let [half] = units.remainder() {
            self.half = Some(*half);
        }
        for pair in units {
            self.unit([pair[0], pair[1]], into);
        }
    }

    fn unit(&mut self, bytes: [u8; 2], into: &mut Vec<u8>) {
        let unit = match self.big_endian {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        };
        if let Some(high) = self.high.take() {
            if (0xDC00..0xE000).contains(&unit) {
                let pair = char::decode_utf16([high, unit]).next();
                if let Some(Ok(c)) = pair {
                    return into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            lone(high, into);
        }
        match char::from_u32(u32::from(unit)) {
            Some(c) => into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None if unit < 0xDC00 => self.high = Some(unit),
            None => lone(unit, into),
        }
    }

    /// The source pauses or ends here: a pair will not be completed.
    pub(super) fn settle(&mut self, into: &mut Vec<u8>) {
        if let Some(high) = self.high.take() {
            lone(high, into);
        }
    }

    /// Encodes what the engine wrote, and takes it away; the engine may have stopped in the middle of a character.
    pub(super) fn encode(&self, text: &mut Vec<u8>, out: &mut Vec<u8>) {
        out.reserve(2 * text.len());
        let mut push = |unit: u16| {
            out.extend_from_slice(&match self.big_endian {
                true => unit.to_be_bytes(),
                false => unit.to_le_bytes(),
            });
        };
        let mut rest = text.as_slice();
        loop {
            let (valid, after) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, &[][..]),
                Err(e) => {
                    let (valid, after) = rest.split_at(e.valid_up_to());
                    (std::str::from_utf8(valid).unwrap_or_default(), after)
                }
            };
            valid.encode_utf16().for_each(&mut push);
            // What is no UTF-8 is a lone surrogate in three bytes, or not complete; nothing else is decoded to.
            rest = after;
            let [0xED, b, c, after @ ..] = rest else {
                break;
            };
            push(0xD000 | (u16::from(b & 0x3F) << 6) | u16::from(c & 0x3F));
            rest = after;
        }
        let done = text.len() - rest.len();
        text.drain(..done);
    }

    /// What is left when the source pauses at a hole or ends: half a unit.
    pub(super) fn rest(&mut self, out: &mut Vec<u8>) {
        if let Some(half) = self.half.take() {
            out.push(half);
            self.source += 1;
        }
    }

    /// The source goes on `bytes` later; the engine does not know.
    pub(super) fn jump(&mut self, bytes: u64) {
        self.source += bytes;
        self.torn = self.source % 2 == 1;
    }

    /// Turns the engine's offsets into those of the source. `text` is the engine's window, from `base` on; what was
    /// found lies in it.
    pub(super) fn locate(
        &mut self,
        found: &mut Found,
        from: (usize, usize),
        text: &[u8],
        base: u64,
    ) {
        let references = found.references.iter_mut().skip(from.0);
        let doubtful = found.doubtful.iter_mut().skip(from.1);
        let mut places: Vec<(&mut u64, &mut u32)> = references
            .map(|r| (&mut r.offset, &mut r.len))
            .chain(doubtful.map(|d| (&mut d.offset, &mut d.len)))
            .collect();
        places.sort_by_key(|(offset, _)| **offset);
        for (offset, len) in places {
            let begin = self.advance(*offset, text, base);
            let end = self.advance(*offset + u64::from(*len), text, base);
            *offset = begin;
            *len = u32::try_from(end - begin).unwrap_or(u32::MAX);
        }
    }

    /// Moves on to `engine` and says where that is in the source.
    pub(super) fn advance(&mut self, engine: u64, text: &[u8], base: u64) -> u64 {
        let index = |at: u64| usize::try_from(at.saturating_sub(base)).unwrap_or(usize::MAX);
        let passed = text
            .get(index(self.engine)..index(engine))
            .unwrap_or_default();
        let units = passed.iter().map(|byte| match byte {
            0x80..=0xBF => 0,
            0xF0..=0xFF => 2,
            _ => 1u64,
        });
        self.source += 2 * units.sum::<u64>();
        self.engine = self.engine.max(engine);
        self.source
    }
}

/// A lone surrogate in generalised UTF-8.
fn lone(unit: u16, into: &mut Vec<u8>) {
    let [high, low] = unit.to_be_bytes();
    into.extend_from_slice(&[
        0xE0 | (high >> 4),
        0x80 | ((high & 0x0F) << 2) | (low >> 6),
        0x80 | (low & 0x3F),
    ]);
}
