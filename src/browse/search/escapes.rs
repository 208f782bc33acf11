//! The escapes of JSON: what they stand for, and whether what is searched for may be hidden behind one.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

/// The escapes of one character after the backslash.
const SHORT: [(u8, u8); 8] = [
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b'/', b'/'),
    (b'b', 0x08),
    (b'f', 0x0c),
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
];

/// Adds a text to `out` with its escapes replaced by what they stand for: of a string what stands between its quotes, or
/// of a whole document all of it. Half of a surrogate pair becomes U+FFFD, and what is no escape stays.
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    // What an escape stands for is never longer.
    out.reserve(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let escape = rest.get(1).copied();
        let short = SHORT.iter().find(|(name, _)| Some(*name) == escape);
        let length = match (short, escape) {
            (Some((_, stands_for)), _) => {
                out.push(*stands_for);
                2
            }
            (None, Some(b'u')) => match unit(rest) {
                Some(first) => code_point(first, rest, out),
                None => literally(2, rest, out),
            },
            _ => literally(1, rest, out),
        };
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

fn literally(length: usize, rest: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&rest[..length]);
    length
}

/// The number of `\uXXXX` at the beginning of a text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digit = |value: u16, byte: &u8| Some(value << 4 | char::from(*byte).to_digit(16)? as u16);
    digits.iter().try_fold(0, digit)
}

/// Writes what one or two units stand for, and tells how long their escapes are.
fn code_point(first: u16, rest: &[u8], out: &mut Vec<u8>) -> usize {
    let second = (0xd800..0xdc00)
        .contains(&first)
        .then(|| unit(&rest[6..]))
        .flatten()
        .filter(|second| (0xdc00..0xe000).contains(second));
    let (units, length) = match second {
        Some(second) => (vec![first, second], 12),
        None => (vec![first], 6),
    };
    for decoded in char::decode_utf16(units) {
        let c = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    length
}

/// The same expression for a JSON text as it is written: each character as itself or escaped, in as far as anybody escapes
/// it. `None` when it holds more than words. What is not in it are letters, digits and signs of ASCII that are written as
/// `\u00XX` for no reason: these are to be looked for.
pub(super) fn as_written(hir: &Hir) -> Option<Hir> {
    written(hir, Backslashes::One)
}

/// How many backslashes may stand before an escape.
#[derive(Clone, Copy)]
enum Backslashes {
    /// The last one is enough where nothing of the match stands before them. Then a search has a text of some length to
    /// look for, where otherwise it would stop at each backslash.
    One,
    /// In a string of JSON in a string of JSON there are two, and four one level deeper.
    All,
}

fn written(hir: &Hir, first: Backslashes) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let chars = text.chars().enumerate().map(|(n, c)| match n {
                0 => forms_of(c, first),
                _ => forms_of(c, Backslashes::All),
            });
            Hir::concat(chars.collect())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let length = |range: &ClassUnicodeRange| range.end() as u32 - range.start() as u32 + 1;
            if class.iter().map(length).sum::<u32>() > MOST_OF_CLASS {
                return None;
            }
            let all = class.iter().flat_map(|range| range.start()..=range.end());
            Hir::alternation(all.map(|c| forms_of(c, first)).collect())
        }
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => return None,
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            min: repetition.min,
            max: repetition.max,
            greedy: repetition.greedy,
            // From the second time on something stands before it.
            sub: Box::new(written(&repetition.sub, Backslashes::All)?),
        }),
        HirKind::Capture(group) => written(&group.sub, first)?,
        HirKind::Concat(parts) => {
            let (begin, rest) = parts.split_first()?;
            let begin = std::iter::once(written(begin, first));
            let rest = rest.iter().map(|part| written(part, Backslashes::All));
            Hir::concat(begin.chain(rest).collect::<Option<_>>()?)
        }
        HirKind::Alternation(parts) => {
            let parts = parts.iter().map(|part| written(part, first));
            Hir::alternation(parts.collect::<Option<_>>()?)
        }
    })
}

/// A larger class is no letter in its two cases.
const MOST_OF_CLASS: u32 = 12;

/// A character as it is, and how it may be escaped.
fn forms_of(c: char, before: Backslashes) -> Hir {
    let literal = |text: &[u8]| Hir::literal(text.to_vec());
    let some = |most| {
        Hir::repetition(Repetition {
            min: 1,
            max: Some(most),
            greedy: true,
            sub: Box::new(literal(b"\\")),
        })
    };
    let first = some(match before {
        Backslashes::One => 1,
        Backslashes::All => 4,
    });
    let mut forms = vec![literal(c.encode_utf8(&mut [0; 4]).as_bytes())];
    let short = SHORT
        .iter()
        .filter(|(_, stands_for)| char::from(*stands_for) == c);
    forms.extend(short.map(|(name, _)| Hir::concat(vec![first.clone(), literal(&[*name])])));
    if !c.is_ascii() {
        let mut buffer = [0; 2];
        let units = c
            .encode_utf16(&mut buffer)
            .iter()
            .enumerate()
            .map(|(n, unit)| {
                let digits = format!("{unit:04x}");
                let digits = digits.chars().map(|digit| match digit.is_ascii_digit() {
                    true => literal(&[digit as u8]),
                    false => Hir::class(Class::Unicode(ClassUnicode::new(
                        [digit, digit.to_ascii_uppercase()].map(|d| ClassUnicodeRange::new(d, d)),
                    ))),
                });
                let backslashes = if n == 0 { first.clone() } else { some(4) };
                let begin = [backslashes, literal(b"u")].into_iter();
                Hir::concat(begin.chain(digits).collect())
            });
        forms.push(Hir::concat(units.collect()));
    }
    Hir::alternation(forms)
}

/// Which escapes may hide a match: those that stand for a character that can be a part of one. Any other escape leaves
/// what is searched for as it is, to be found in the raw bytes.
#[derive(Clone, Debug)]
pub(super) struct Hiding {
    /// By the character after the backslash.
    short: [bool; 256],
    /// Whether `\u` hides something only when `00` follows.
    only_ascii: bool,
}

impl Hiding {
    /// Of an expression that looks at nothing but the match itself.
    pub(super) fn of(hir: &Hir) -> Hiding {
        let mut may = Matched {
            ascii: [false; 128],
            beyond: false,
        };
        may.add(hir);
        let mut short = [false; 256];
        for (name, stands_for) in SHORT {
            short[usize::from(name)] = may.ascii[usize::from(stands_for)];
        }
        Hiding {
            short,
            only_ascii: !may.beyond,
        }
    }

    /// Where [`as_written`] sees all the others.
    pub(super) fn of_the_rest() -> Hiding {
        Hiding {
            short: [false; 256],
            only_ascii: true,
        }
    }

    /// Whether such an escape stands in a text.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        let mut rest = text;
        if self.short == [false; 256] && self.only_ascii {
            // What is no escape, because a backslash stands before it, costs a second look and no more.
            return memchr::memmem::find(text, b"\\u00").is_some();
        }
        while let Some(at) = memchr::memchr(b'\\', rest) {
            rest = &rest[at + 1..];
            match rest.first() {
                Some(b'u') if !self.only_ascii || rest[1..].starts_with(b"00") => return true,
                Some(name) if self.short[usize::from(*name)] => return true,
                Some(_) => rest = &rest[1..],
                None => {}
            }
        }
        false
    }
}

/// The characters that a match can consist of.
struct Matched {
    ascii: [bool; 128],
    beyond: bool,
}

impl Matched {
    fn add(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                literal
                    .0
                    .iter()
                    .for_each(|byte| self.range((*byte).into(), (*byte).into()));
            }
            HirKind::Class(Class::Unicode(class)) => class
                .iter()
                .for_each(|range| self.range(range.start().into(), range.end().into())),
            HirKind::Class(Class::Bytes(class)) => class
                .iter()
                .for_each(|range| self.range(range.start().into(), range.end().into())),
            HirKind::Repetition(repetition) => self.add(&repetition.sub),
            HirKind::Capture(group) => self.add(&group.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().for_each(|part| self.add(part));
            }
        }
    }

    fn range(&mut self, from: u32, to: u32) {
        self.beyond |= to >= 128;
        for c in from..=to.min(127) {
            self.ascii[c as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Meaning, Pattern};
    use super::*;

    fn unescaped(text: &str) -> String {
        let mut out = Vec::new();
        unescape(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_stand_for_characters() {
        for (text, wanted) in [
            (r"a\/b\\c\td\u0041", "a/b\\c\tdA"),
            (r"\u6570\u636E", "数据"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83dx\ude00", "\u{fffd}x\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\\u0041", "\\u0041"),
            (r"\x \u12 \", "\\x \\u12 \\"),
            ("", ""),
        ] {
            assert_eq!(unescaped(text), wanted, "{text}");
        }
    }

    #[test]
    fn only_an_escape_that_can_hide_the_pattern_counts() {
        let hides = |pattern: &str, text: &str| {
            let parsed = regex_syntax::Parser::new().parse(pattern).unwrap();
            Hiding::of(&parsed).is_in(text.as_bytes())
        };
        assert!(hides("/a/b", r#""\/a\/b""#));
        assert!(!hides("ab", r#""\/a\/b \n \" \u6570""#));
        assert!(hides("ab", r#""\u0061b""#));
        assert!(hides("数据", r#""\u6570\u636e""#));
        assert!(hides(r"a[ \t]b", r#""a\tb""#) && !hides(r"a[ \t]b", r#""a\nb""#));
        assert!(hides("a.b", r#""a\"b""#) && !hides("ab", r#""a\"b""#));
        assert!(hides("(?i)k", r#""\u212a""#), "the sign for Kelvin is a K");
        assert!(!hides("ab", "no backslash"));
        assert!(!hides("ab", "one at the end \\"));
    }
    #[test]
    fn words_are_found_as_they_are_written() {
        let found = |pattern: &str, text: &str| {
            let pattern = Pattern::new(pattern, Meaning::default()).unwrap();
            assert!(!pattern.hiding.is_in(text.as_bytes()), "{text}");
            pattern.written.is_match(text.as_bytes())
        };
        for (pattern, text) in [
            ("数据", r"\u6570\u636e"),
            ("数据", r"数\u636E"),
            ("数据", r"\\\\u6570\\\\u636e"),
            ("(数|据)+x?清", r"\\u6570\\u636e\\u6e05"),
            ("x?数", r"\\u6570"),
            ("/a/b", r"\/a/b"),
            ("😀+", r"\uD83D\ude00"),
            ("a\\tb", r"a\tb"),
            (r#"x\\""#, r#"x\\\""#),
            ("(?i)straße|ш", r"STRA\u1e9ee"),
            ("(?i)straße|ш", r"\u0428"),
        ] {
            assert!(found(pattern, text), "{pattern} in {text}");
        }
        assert!(!found("数据", r"\u6570 \u636e") && !found("ab", r"a\nb"));
        // A letter that nobody has to escape, and what is no word, are looked for without their escapes.
        let hides = |pattern: &str, text: &str| {
            let pattern = Pattern::new(pattern, Meaning::default()).unwrap();
            pattern.hiding.is_in(text.as_bytes())
        };
        assert!(hides("ab", r"\u0061b") && hides(r"\w数", r"\u6570") && hides("a.b", r#"a\"b"#));
    }
}
