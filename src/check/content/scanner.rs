//! A JSON reader that keeps nothing: it says whether bytes, pushed in pieces of any size, are whole JSON values.
//!
//! A parser that wants the whole text would need as much memory as the largest file; this one needs a bit for each level of
//! nesting. The grammar is RFC 8259, with what agents' own writers add to it: `NaN`, `Infinity` and `-Infinity` (Python
//! writes these). What the standard only asks of meaning (surrogates in pairs, keys that differ) is not asked here, and
//! neither is UTF-8: text in another encoding is not torn. The tests hold it against `serde_json`.

/// Nesting beyond this is not followed; no honest file has it, and memory stays small.
pub(super) const DEEPEST: usize = 1 << 20;

/// Where in the grammar the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a value, at the top.
    Start,
    /// A value at the top is complete.
    Done,
    /// A value must follow: after `:` or `,`.
    Value,
    /// After `[`.
    ValueOrEnd,
    /// After `{`.
    KeyOrEnd,
    /// After `,` in an object.
    Key,
    /// After a key.
    Colon,
    /// After a value in an array or object.
    CommaOrEnd,
    String,
    Escape,
    /// So many hex digits of `\uXXXX` are still to come.
    Hex(u8),
    /// A number, by what has been read of it.
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    Sign,
    ExponentDigits,
    /// So much of one of [`WORDS`] has been read.
    Word(u8, u8),
}

const WORDS: [&[u8]; 5] = [b"true", b"false", b"null", b"NaN", b"Infinity"];

/// Why the reader can not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// The grammar does not allow the byte at this place of the data pushed last.
    At(usize),
    /// Nested deeper than [`DEEPEST`].
    TooDeep,
}

/// The reader.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// Whether the string being read is a key.
    key: bool,
    levels: Levels,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Scanner {
            state: State::Start,
            key: false,
            levels: Levels::default(),
        }
    }

    /// Forgets what was read.
    pub(super) fn reset(&mut self) {
        self.state = State::Start;
        self.levels.depth = 0;
    }

    /// Whether nothing but white space was read.
    pub(super) fn is_at_start(&self) -> bool {
        self.state == State::Start
    }

    /// Whether what was read so far is one whole value, if it ended here.
    pub(super) fn is_whole(&self) -> bool {
        use State::*;
        match self.state {
            Done => true,
            Zero | Digits | Fraction | ExponentDigits => self.levels.depth == 0,
            _ => false,
        }
    }

    /// Whether the value at the top is complete, so that what follows is not part of it.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads on, until the end of `data` or just after the value is complete; says how far.
    pub(super) fn push(&mut self, data: &[u8]) -> Result<usize, Stuck> {
        let mut at = 0;
        while let Some(&byte) = data.get(at) {
            match self.state {
                State::Done => return Ok(at),
                State::String => at = self.string(data, at)?,
                State::Digits | State::Fraction | State::ExponentDigits
                    if byte.is_ascii_digit() =>
                {
                    at += run(&data[at..], u8::is_ascii_digit);
                }
                State::Escape => {
                    self.state = match byte {
                        b'u' => State::Hex(4),
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::String,
                        _ => return Err(Stuck::At(at)),
                    };
                    at += 1;
                }
                State::Hex(left) => {
                    if !byte.is_ascii_hexdigit() {
                        return Err(Stuck::At(at));
                    }
                    self.state = match left {
                        0 | 1 => State::String,
                        more => State::Hex(more - 1),
                    };
                    at += 1;
                }
                State::Word(word, read) => {
                    self.word(word, read, byte, at)?;
                    at += 1;
                }
                _ if self.in_number() => {
                    // A number ends at the first byte that is none of it, which is then read again.
                    if self.number(byte, at)? {
                        at += 1;
                    }
                }
                _ if is_space(&byte) => at += run(&data[at..], is_space),
                _ => {
                    self.structure(byte, at)?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// Between values: punctuation, or what begins a value.
    #[inline]
    fn structure(&mut self, byte: u8, at: usize) -> Result<(), Stuck> {
        use State::*;
        match (self.state, byte) {
            (KeyOrEnd | Key, b'"') => {
                self.key = true;
                self.state = String;
            }
            (Colon, b':') => self.state = Value,
            (CommaOrEnd, b',') if self.levels.in_object() => self.state = Key,
            (CommaOrEnd, b',') => self.state = Value,
            (CommaOrEnd | KeyOrEnd, b'}') if self.levels.in_object() => self.close(),
            (CommaOrEnd | ValueOrEnd, b']') if !self.levels.in_object() => self.close(),
            (Start | Value | ValueOrEnd, _) => return self.begin(byte, at),
            _ => return Err(Stuck::At(at)),
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8, at: usize) -> Result<(), Stuck> {
        self.state = match byte {
            b'"' => {
                self.key = false;
                State::String
            }
            b'{' | b'[' => {
                if !self.levels.open(byte == b'{') {
                    return Err(Stuck::TooDeep);
                }
                match byte {
                    b'{' => State::KeyOrEnd,
                    _ => State::ValueOrEnd,
                }
            }
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            b't' => State::Word(0, 1),
            b'f' => State::Word(1, 1),
            b'n' => State::Word(2, 1),
            b'N' => State::Word(3, 1),
            b'I' => State::Word(4, 1),
            _ => return Err(Stuck::At(at)),
        };
        Ok(())
    }

    fn close(&mut self) {
        self.levels.depth -= 1;
        self.value_ends();
    }

    fn value_ends(&mut self) {
        self.state = match self.levels.depth {
            0 => State::Done,
            _ => State::CommaOrEnd,
        };
    }

    /// Within a string: to its end, or the end of the data.
    #[inline]
    fn string(&mut self, data: &[u8], mut at: usize) -> Result<usize, Stuck> {
        loop {
            at += plain(&data[at..]);
            match &data[at..] {
                [] => return Ok(at),
                [b'"', ..] if self.key => self.state = State::Colon,
                [b'"', ..] => self.value_ends(),
                // The usual escapes at once; what is rare, wrong or cut goes the long way.
                [b'\\', b'"' | b'\\' | b'/' | b'n' | b't', ..] => {
                    at += 2;
                    continue;
                }
                [b'\\', b'u', hex @ ..]
                    if run(&hex[..hex.len().min(4)], u8::is_ascii_hexdigit) == 4 =>
                {
                    at += 6;
                    continue;
                }
                [b'\\', ..] => self.state = State::Escape,
                _ => return Err(Stuck::At(at)),
            }
            return Ok(at + 1);
        }
    }

    fn word(&mut self, word: u8, read: u8, byte: u8, at: usize) -> Result<(), Stuck> {
        let letters = WORDS[usize::from(word)];
        if letters.get(usize::from(read)) != Some(&byte) {
            return Err(Stuck::At(at));
        }
        if usize::from(read) + 1 == letters.len() {
            self.value_ends();
        } else {
            self.state = State::Word(word, read + 1);
        }
        Ok(())
    }

    fn in_number(&self) -> bool {
        use State::*;
        matches!(
            self.state,
            Minus | Zero | Digits | Point | Fraction | Exponent | Sign | ExponentDigits
        )
    }

    /// Takes one byte after the beginning of a number; `false` when the number ended before it.
    fn number(&mut self, byte: u8, at: usize) -> Result<bool, Stuck> {
        use State::*;
        self.state = match (self.state, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') => Digits,
            (Minus, b'I') => Word(4, 1),
            (Zero | Digits, b'.') => Point,
            (Zero | Digits | Fraction, b'e' | b'E') => Exponent,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Exponent, b'+' | b'-') => Sign,
            (Exponent | Sign, b'0'..=b'9') => ExponentDigits,
            (Zero, b'0'..=b'9') => return Err(Stuck::At(at)),
            (Zero | Digits | Fraction | ExponentDigits, _) => {
                self.value_ends();
                return Ok(false);
            }
            _ => return Err(Stuck::At(at)),
        };
        Ok(true)
    }
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// How many bytes `data` begins with that are of one sort.
#[inline]
fn run(data: &[u8], sort: impl Fn(&u8) -> bool) -> usize {
    data.iter().take_while(|byte| sort(byte)).count()
}

/// How many bytes of a string go by before one that means something: a quote, a backslash, or a control character, which
/// must not be there. Eight at a time; the arithmetic is that of "Bit Twiddling Hacks", "determine if a word has a byte
/// less than n".
#[inline]
fn plain(data: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 0x80;
    // Exact up to the lowest byte that matches, which is the one that is asked for.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let mut at = 0;
    for eight in data.chunks_exact(8) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(eight);
        let word = u64::from_le_bytes(bytes);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = quote | backslash | below(word, 0x20);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    at + data[at..]
        .iter()
        .position(special)
        .unwrap_or(data.len() - at)
}

/// The open brackets, a bit each: set for an object.
#[derive(Debug, Default)]
struct Levels {
    bits: Vec<u64>,
    depth: usize,
}

impl Levels {
    /// Goes one deeper; `false` when that is too deep.
    fn open(&mut self, object: bool) -> bool {
        if self.depth >= DEEPEST {
            return false;
        }
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(object) << bit;
        self.depth += 1;
        true
    }

    fn in_object(&self) -> bool {
        match self.depth.checked_sub(1) {
            Some(top) => self.bits[top / 64] >> (top % 64) & 1 == 1,
            None => false,
        }
    }
}
