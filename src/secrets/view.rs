//! The readings of a file: its text, and the text with the escapes of JSON undone, once and again.
//!
//! A session is JSON, and what an agent has read or run stands in it as a string: the line ends of a key file are `\n`
//! there, the quotes around a password `\"`. A tool's answer is often a string inside a string. Each reading undoes
//! one layer, by the letter: nothing is parsed, so a torn line is no obstacle, and a text that is no JSON only loses
//! some backslashes in a copy that nobody keeps.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// How many layers are undone. What an agent logs about the log of a tool has three.
const LAYERS: usize = 4;

/// The text of a file as UTF-8: UTF-16 with its mark is decoded, anything else is taken as it is.
pub(super) fn text(content: &[u8]) -> Cow<'_, [u8]> {
    let mut decoder = Decoder::new(content);
    if decoder.utf16.is_none() {
        return Cow::Borrowed(content);
    }
    let mut decoded = Vec::with_capacity(content.len() / 2);
    decoder.push(content, true, &mut decoded);
    Cow::Owned(decoded)
}

/// The text of a file that comes in pieces.
pub(super) struct Decoder {
    utf16: Option<Utf16>,
}

struct Utf16 {
    big_endian: bool,
    mark_is_due: bool,
    /// The first half of a pair.
    half: Option<u16>,
}

impl Decoder {
    /// For a file that begins so: at least four bytes, where it has them.
    pub(super) fn new(beginning: &[u8]) -> Decoder {
        let big_endian = match beginning {
            [0xFE, 0xFF, ..] => Some(true),
            // The mark of UTF-32; what it marks is found nowhere.
            [0xFF, 0xFE, 0, 0, ..] => None,
            [0xFF, 0xFE, ..] => Some(false),
            _ => None,
        };
        Decoder {
            utf16: big_endian.map(|big_endian| Utf16 {
                big_endian,
                mark_is_due: true,
                half: None,
            }),
        }
    }

    /// Appends the text of the next piece. Each but the last has an even length.
    pub(super) fn push(&mut self, piece: &[u8], is_last: bool, text: &mut Vec<u8>) {
        let Some(utf16) = &mut self.utf16 else {
            text.extend_from_slice(piece);
            return;
        };
        let mark = match std::mem::take(&mut utf16.mark_is_due) {
            true => 2,
            false => 0,
        };
        let big_endian = utf16.big_endian;
        let pairs = piece.get(mark..).unwrap_or_default().chunks_exact(2);
        let mut units: Vec<u16> = utf16.half.take().into_iter().collect();
        units.extend(pairs.map(|pair| match big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        }));
        if !is_last {
            utf16.half = units.pop_if(|unit| (0xD800..0xDC00).contains(unit));
        }
        let mut buffer = [0; 4];
        for unit in char::decode_utf16(units) {
            let c = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// A text, read in one way.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub text: Cow<'a, [u8]>,
    /// Where it differs from the reading before it, with what stands around; ascending, apart from each other. Only
    /// there can something be found that was not found before.
    pub new: Vec<(usize, usize)>,
}

/// How much around an escape is read again: as much as a keyword may be away from the end of a match.
const AROUND: usize = 1024;

/// The text, and each deeper reading of it that is another one.
pub(super) fn readings(text: &[u8]) -> Vec<Reading<'_>> {
    let mut readings = vec![Reading {
        new: vec![(0, text.len())],
        text: without_colour(Cow::Borrowed(text)),
    }];
    while readings.len() <= LAYERS
        && let Some(deeper) = readings.last().and_then(|last| undone(&last.text))
    {
        readings.push(Reading {
            text: without_colour(deeper.text),
            ..deeper
        });
    }
    readings
}

/// With blanks in the place of what colours a terminal, raw or spelled as in C and shells: its last byte is a letter,
/// and would hide where a token begins. Nothing changes its place.
fn without_colour(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    static COLOUR: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?-u)(?:\x1b|\\033|\\x1[bB]|\\e)\[[0-9;:?]*[A-Za-z]").ok());
    let Some(colour) = COLOUR.as_ref().filter(|colour| colour.is_match(&text)) else {
        return text;
    };
    let mut plain = text.to_vec();
    for found in colour.find_iter(&text) {
        plain[found.range()].fill(b' ');
    }
    Cow::Owned(plain)
}

/// The text with one layer of escapes undone; `None` when there are none.
fn undone(text: &[u8]) -> Option<Reading<'static>> {
    let mut escape = next(text, 0)?;
    let mut out = Vec::with_capacity(text.len());
    let mut new: Vec<(usize, usize)> = Vec::new();
    let mut copied = 0;
    loop {
        out.extend_from_slice(&text[copied..escape.at]);
        let at = out.len();
        match new.last_mut() {
            Some(last) if at.saturating_sub(AROUND) <= last.1 => last.1 = at + AROUND,
            _ => new.push((at.saturating_sub(AROUND), at + AROUND)),
        }
        let mut buffer = [0; 4];
        out.extend_from_slice(escape.means.encode_utf8(&mut buffer).as_bytes());
        copied = escape.at + escape.len;
        match next(text, copied) {
            Some(another) => escape = another,
            None => break,
        }
    }
    out.extend_from_slice(&text[copied..]);
    if let Some(last) = new.last_mut() {
        last.1 = last.1.min(out.len());
    }
    Some(Reading {
        text: Cow::Owned(out),
        new,
    })
}

/// Turns offsets in the reading that [`undone`] made of `text`, in ascending order, into those in `text`. One in the
/// middle of what an escape stands for becomes the place of the escape.
pub(super) fn locate(text: &[u8], offsets: &mut [&mut usize]) {
    // Where both are after the last escape.
    let (mut here, mut deeper) = (0, 0);
    let mut escape = next(text, 0);
    for offset in offsets {
        while let Some(Escape { at, len, means }) = escape {
            let before = deeper + (at - here);
            if **offset <= before {
                break;
            }
            let after = before + means.len_utf8();
            if **offset < after {
                break;
            }
            (here, deeper) = (at + len, after);
            escape = next(text, here);
        }
        let straight = here + (**offset - deeper);
        **offset = escape.map_or(straight, |escape| straight.min(escape.at));
    }
}

/// An escape of JSON: where, how many bytes, and what it means.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Escape {
    at: usize,
    len: usize,
    means: char,
}

/// The first escape from `from` on. A backslash before anything else is a backslash.
fn next(text: &[u8], from: usize) -> Option<Escape> {
    let mut from = from;
    loop {
        let at = from + memchr::memchr(b'\\', text.get(from..)?)?;
        let means = match text.get(at + 1)? {
            b'n' => '\n',
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => match character(text, at) {
                Some((means, len)) => return Some(Escape { at, len, means }),
                None => {
                    from = at + 1;
                    continue;
                }
            },
            _ => {
                from = at + 1;
                continue;
            }
        };
        return Some(Escape { at, len: 2, means });
    }
}

/// `\u0041`, or a pair of surrogates; `None` for half of one.
fn character(text: &[u8], at: usize) -> Option<(char, usize)> {
    let first = unit(text, at)?;
    if let Some(means) = char::from_u32(first.into()) {
        return Some((means, 6));
    }
    let second = unit(text, at + 6)?;
    let means = char::decode_utf16([first, second]).next()?.ok()?;
    Some((means, 12))
}

fn unit(text: &[u8], at: usize) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = text.get(at..at + 6)? else {
        return None;
    };
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_layer_is_a_reading() {
        let shown = |text: &str| -> Vec<String> {
            let readings = readings(text.as_bytes());
            readings
                .iter()
                .map(|r| String::from_utf8_lossy(&r.text).into_owned())
                .collect()
        };
        assert_eq!(shown("plain"), ["plain"]);
        assert_eq!(shown(r"C:\a\"), [r"C:\a\"]);
        assert_eq!(shown(r#"\"a\nb\""#), [r#"\"a\nb\""#, "\"a\nb\""]);
        assert_eq!(shown(r"a\\nb"), [r"a\\nb", r"a\nb", "a\nb"]);
        assert_eq!(
            shown(r"\u002d\u5BC6\ud83d\ude00"),
            [r"\u002d\u5BC6\ud83d\ude00", "-密😀"]
        );
        // Half a pair, too few digits, the end.
        assert_eq!(shown(r"\ud83dx \u12 \u"), [r"\ud83dx \u12 \u"]);
        assert_eq!(shown(&r"\".repeat(1000)).len(), 1 + LAYERS);
    }

    #[test]
    fn utf16_is_decoded() {
        let units = |text: &str, big: bool| -> Vec<u8> {
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            units
                .flat_map(|u| match big {
                    true => u.to_be_bytes(),
                    false => u.to_le_bytes(),
                })
                .collect()
        };
        for big in [true, false] {
            assert_eq!(&*text(&units("密a😀", big)), "密a😀".as_bytes());
        }
        assert_eq!(&*text(b"\xff\xfe\x00"), b"");
        assert_eq!(&*text(b"\xff\xfe\x00\xd8"), "\u{fffd}".as_bytes());
        assert_eq!(&*text(b"plain"), b"plain");
    }

    proptest! {
        /// What an offset points to in a deeper reading is what it points to in the text.
        #[test]
        fn offsets_lead_back(text in r#"([abé密]|\\n|\\\\|\\"|\\u0041|\\u5bc6|\\ud83d\\ude00|\\){0,30}"#) {
            let text = text.as_bytes();
            if let Some(deeper) = undone(text) {
                let deeper = deeper.text;
                let mut offsets: Vec<usize> = (0..=deeper.len()).collect();
                let mut places: Vec<&mut usize> = offsets.iter_mut().collect();
                locate(text, &mut places);
                prop_assert!(offsets.is_sorted());
                prop_assert_eq!(offsets[deeper.len()], text.len());
                for (offset, at) in offsets[..deeper.len()].iter().enumerate() {
                    match next(text, *at) {
                        Some(escape) if escape.at == *at => {
                            let mut buffer = [0; 4];
                            let means = escape.means.encode_utf8(&mut buffer).as_bytes();
                            prop_assert!(means.contains(&deeper[offset]));
                        }
                        _ => prop_assert_eq!(text[*at], deeper[offset]),
                    }
                }
            }
        }
    }
}
