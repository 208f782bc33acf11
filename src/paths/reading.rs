//! Reading a text as people see it: one character forward or back, escapes decoded.
//!
//! Nothing here knows what is looked for. The layers in which a text is written (JSON, JSON in JSON, shell, URL) are
//! not known either; they need not be, because each leaves its own marks: any run of backslashes before `uXXXX`, a
//! letter such as `n`, or punctuation is an escape in some number of layers, and `%` with two hex digits is an
//! encoded byte. Reading too much into a text only ever makes us leave a place alone.
//!
//! All reads are bounded (`MAX_RUN`), so that a stream needs a fixed window around a place to decide about it.

/// The longest run of backslashes that counts as an escape: four layers of JSON, all of which escape, need 15.
pub(super) const MAX_RUN: usize = 16;

/// The most bytes that one character can take: two `\uXXXX`, each behind a run of backslashes.
pub(super) const MAX_CHAR: usize = 2 * (MAX_RUN + 5);

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The text begins or ends here.
    End,
    /// A character, however it is written.
    Char(char),
    /// A byte (or escape) that is no character: another encoding, or no text.
    Bad,
}

/// How many backslashes begin at `at`, counting no further than one above [`MAX_RUN`].
pub(super) fn run_from(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter()
        .take(MAX_RUN + 1)
        .take_while(|b| **b == b'\\')
        .count()
}

/// How many backslashes end at `at`, counting no further than one above [`MAX_RUN`].
pub(super) fn run_before(text: &[u8], at: usize) -> usize {
    let rest = text.get(..at).unwrap_or_default();
    rest.iter()
        .rev()
        .take(MAX_RUN + 1)
        .take_while(|b| **b == b'\\')
        .count()
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let mut value = 0;
    for digit in digits? {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    Some(value)
}

/// The number in `uXXXX` at `at`.
pub(super) fn unicode_at(text: &[u8], at: usize) -> Option<u32> {
    (text.get(at) == Some(&b'u')).then_some(())?;
    hex(text.get(at + 1..at + 5))
}

/// The byte in `%XX` at `at`.
pub(super) fn percent_at(text: &[u8], at: usize) -> Option<u8> {
    (text.get(at) == Some(&b'%')).then_some(())?;
    hex(text.get(at + 1..at + 3)).and_then(|v| u8::try_from(v).ok())
}

fn is_high(unit: u32) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u32) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

fn pair(high: u32, low: u32) -> Option<char> {
    char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

fn seen(value: u32) -> Seen {
    char::from_u32(value).map_or(Seen::Bad, Seen::Char)
}

/// The first character of UTF-8 bytes, and its length.
pub(super) fn utf8(bytes: &[u8]) -> Option<(char, usize)> {
    let len = match bytes.first()? {
        0..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(bytes.get(..len)?)
        .ok()?
        .chars()
        .next()?;
    Some((c, len))
}

/// A percent-encoded character at `at`: one to four `%XX`.
pub(super) fn percent_char(text: &[u8], at: usize) -> Option<(Seen, usize)> {
    let mut bytes = [0u8; 4];
    for i in 0..4 {
        let Some(byte) = percent_at(text, at + 3 * i) else {
            break;
        };
        bytes[i] = byte;
        if let Some((c, len)) = utf8(&bytes[..=i]) {
            return Some((Seen::Char(c), at + 3 * len));
        }
    }
    percent_at(text, at).map(|_| (Seen::Bad, at + 3))
}

/// `uXXXX` at `at`, the low half of a pair included: what it says and where it ends.
pub(super) fn unicode_char(text: &[u8], at: usize) -> Option<(Seen, usize)> {
    let unit = unicode_at(text, at)?;
    let end = at + 5;
    if is_high(unit) {
        let run = run_from(text, end);
        if (1..=MAX_RUN).contains(&run)
            && let Some(low) = unicode_at(text, end + run)
            && is_low(low)
            && let Some(c) = pair(unit, low)
        {
            return Some((Seen::Char(c), end + run + 5));
        }
    }
    Some((seen(unit), end))
}

/// What a letter means after a backslash in JSON and its kin. Only that it is not a letter matters here.
fn control(letter: u8) -> Option<char> {
    Some(match letter {
        b'n' | b'v' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' | b'f' => '\u{c}',
        _ => return None,
    })
}

/// Whether backslashes before it may be an escape of it.
pub(super) fn is_escapable(byte: u8) -> bool {
    byte.is_ascii_punctuation() || byte == b' '
}

/// The character at `at` and where the next one begins. `separator` is the number of backslashes that separate
/// folders here, if they do: they are then never an escape.
pub(super) fn next(text: &[u8], at: usize, separator: Option<usize>) -> (Seen, usize) {
    match text.get(at) {
        None => (Seen::End, at),
        Some(b'\\') => {
            let run = run_from(text, at);
            let after = at + run;
            if run > MAX_RUN {
                return (Seen::Char('\\'), at + 1);
            }
            if separator == Some(run) {
                return (Seen::Char('\\'), after);
            }
            if let Some(found) = unicode_char(text, after) {
                return found;
            }
            match text.get(after) {
                Some(b) if control(*b).is_some() => {
                    (control(*b).map_or(Seen::Bad, Seen::Char), after + 1)
                }
                Some(b) if is_escapable(*b) => (Seen::Char(char::from(*b)), after + 1),
                _ => (Seen::Char('\\'), after),
            }
        }
        Some(b'%') => percent_char(text, at).unwrap_or((Seen::Char('%'), at + 1)),
        Some(_) => match utf8(text.get(at..).unwrap_or_default()) {
            Some((c, len)) => (Seen::Char(c), at + len),
            None => (Seen::Bad, at + 1),
        },
    }
}

/// The character before `at` and where it begins.
pub(super) fn prev(text: &[u8], at: usize) -> (Seen, usize) {
    let Some(last) = at.checked_sub(1) else {
        return (Seen::End, 0);
    };
    let Some(&b) = text.get(last) else {
        return (Seen::End, last);
    };
    if b >= 0x80 {
        return prev_utf8(text, at);
    }
    if b.is_ascii_hexdigit()
        && let Some(found) = prev_unicode(text, at).or_else(|| prev_percent(text, at))
    {
        return found;
    }
    let run = if b == b'\\' {
        0
    } else {
        run_before(text, last)
    };
    let escaped = (1..=MAX_RUN).contains(&run);
    if escaped && let Some(c) = control(b) {
        return (Seen::Char(c), last - run);
    }
    let owns = escaped && is_escapable(b);
    (
        Seen::Char(char::from(b)),
        if owns { last - run } else { last },
    )
}

fn prev_utf8(text: &[u8], at: usize) -> (Seen, usize) {
    for start in (at.saturating_sub(4)..at).rev() {
        match text.get(start..at).and_then(utf8) {
            Some((c, len)) if start + len == at => return (Seen::Char(c), start),
            _ => {}
        }
    }
    (Seen::Bad, at - 1)
}

/// Where the escape `\uXXXX` that ends at `at` begins, and its number.
fn unicode_before(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let u = at.checked_sub(5)?;
    let unit = unicode_at(text.get(..at)?, u)?;
    let run = run_before(text, u);
    (1..=MAX_RUN).contains(&run).then_some((unit, u - run))
}

fn prev_unicode(text: &[u8], at: usize) -> Option<(Seen, usize)> {
    let (unit, start) = unicode_before(text, at)?;
    if is_low(unit)
        && let Some((high, first)) = unicode_before(text, start)
        && is_high(high)
        && let Some(c) = pair(high, unit)
    {
        return Some((Seen::Char(c), first));
    }
    Some((seen(unit), start))
}

fn prev_percent(text: &[u8], at: usize) -> Option<(Seen, usize)> {
    let last = at.checked_sub(3)?;
    percent_at(text.get(..at)?, last)?;
    for i in 1..=4 {
        let Some(start) = at.checked_sub(3 * i) else {
            break;
        };
        match percent_char(text.get(..at)?, start) {
            Some((Seen::Char(c), end)) if end == at => return Some((Seen::Char(c), start)),
            _ => {}
        }
    }
    Some((Seen::Bad, last))
}
