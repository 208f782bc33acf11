//! Recognising an expected character in any spelling, forward and back, and remembering the spelling.
//!
//! Searching begins at an anchor in the middle of a pattern. From there one walks back to the first character, which
//! only needs to be lenient, and then reads the whole pattern forward, which decides and records the [`Style`].

use super::boundary;
use super::pattern::{Form, Pattern, Unit};
use super::reading::{
    MAX_RUN, Seen, is_escapable, next, percent_char, prev, run_before, run_from, unicode_char, utf8,
};

/// How the folders of a reference are separated. Numbers are backslashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Slash(usize),
    Back(usize),
    UnicodeSlash(usize),
    PercentSlash,
    PercentBack,
}

/// The spelling of one reference, in as much detail as writing another path the same way needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) separator: Option<Separator>,
    /// Backslashes before the first slash.
    pub(super) lead: usize,
    /// Backslashes before a `uXXXX`.
    pub(super) unicode: Option<usize>,
    /// Whether the digits of `uXXXX` are in upper case, where that can be seen.
    pub(super) unicode_upper: Option<bool>,
    pub(super) percent: bool,
    pub(super) percent_upper: Option<bool>,
    /// Backslashes before a space or another character that is special in a shell.
    pub(super) shell: usize,
    /// Backslashes before a double quote.
    pub(super) quote: Option<usize>,
    /// Backslashes for each backslash of a name.
    pub(super) backslash: Option<usize>,
    /// ASCII characters seen percent-encoded, `\u`-encoded, and as they are: one bit each.
    pub(super) percent_ascii: u128,
    pub(super) unicode_ascii: u128,
    pub(super) raw_ascii: u128,
    /// Whether characters beyond ASCII were seen as they are.
    pub(super) raw_wide: bool,
    pub(super) lower_drive: bool,
    /// In a URL by what stands before.
    pub(super) url: bool,
}

impl Style {
    /// The style of units that are written plainly.
    pub(super) fn plain(units: &[Unit]) -> Style {
        let mut style = Style::default();
        for (i, unit) in units.iter().enumerate() {
            match unit {
                Unit::Slash if i > 0 => style.separator = Some(Separator::Slash(0)),
                Unit::Backslashes(_) => style.backslash = Some(1),
                Unit::Char(c) if c.is_ascii_alphanumeric() => {}
                Unit::Char(c) if c.is_ascii() => style.raw_ascii |= bit(*c),
                Unit::Char(_) => style.raw_wide = true,
                _ => {}
            }
        }
        style
    }
}

/// A set of one ASCII character; empty for any other one.
pub(super) fn bit(c: char) -> u128 {
    1u128.checked_shl(u32::from(c)).unwrap_or(0)
}

/// A pattern found in a text, boundaries not yet looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    /// Where the reference begins.
    pub(super) start: usize,
    /// Where the first expected character begins: behind `~`, `\\?\` and the backslashes of a first `\/`.
    pub(super) core: usize,
    pub(super) end: usize,
    pub(super) style: Style,
}

/// Reads `pattern` at `core`, its first character.
pub(super) fn read(pattern: &Pattern, text: &[u8], core: usize) -> Option<Match> {
    let mut style = Style::default();
    let rest = text.get(core..)?;
    let end = match &pattern.plain {
        Some(plain) if rest.starts_with(plain) => {
            style = pattern.plain_style;
            core + plain.len()
        }
        _ => read_units(&pattern.units, text, core, &mut style)?,
    };
    let start = whole(pattern, text, core, end, &mut style)?;
    style.url = boundary::in_url(text, start) && !matches!(pattern.form, Form::Slug(_));
    Some(Match {
        start,
        core,
        end,
        style,
    })
}

fn read_units(units: &[Unit], text: &[u8], core: usize, style: &mut Style) -> Option<usize> {
    let mut at = core;
    for (i, unit) in units.iter().enumerate() {
        at = match *unit {
            Unit::Char(c) if c.is_ascii_alphanumeric() => {
                (text.get(at).copied().map(char::from) == Some(c)).then_some(at + 1)?
            }
            Unit::Char(c) => read_char(c, text, at, style)?,
            Unit::Slash | Unit::Either => {
                let (separator, end) = read_separator(*unit, text, at, style)?;
                // The first character of a raw slash is the slash: its backslashes may not all be its own. Those of
                // `\u002f` are, all of them.
                let inside = run_before(text, core) > 0 && text.get(core) == Some(&b'\\');
                if i == 0 && (inside || matches!(separator, Separator::Slash(1..))) {
                    return None;
                }
                let known = *style.separator.get_or_insert(separator);
                // The backslashes of a first raw slash are found later, when those of the others are known.
                if i == 0 && separator == Separator::Slash(0) {
                    style.separator = None;
                } else if known != separator && *unit == Unit::Slash {
                    return None;
                }
                end
            }
            Unit::Drive(c) => {
                let letter = char::from(*text.get(at)?);
                style.lower_drive = letter.is_ascii_lowercase();
                letter.eq_ignore_ascii_case(&c).then_some(at + 1)?
            }
            Unit::Backslashes(n) => read_backslashes(n, text, at, style)?,
        };
    }
    Some(at)
}

fn read_char(c: char, text: &[u8], at: usize, style: &mut Style) -> Option<usize> {
    match *text.get(at)? {
        b'\\' => {
            let run = run_from(text, at);
            let after = at + run;
            if run > MAX_RUN {
                return None;
            }
            if let Some((seen, end)) = unicode_char(text, after) {
                note_unicode(c, run, text.get(after + 1..end)?, style);
                return (seen == Seen::Char(c)).then_some(end);
            }
            let (seen, end) = next(text, at, None);
            (seen == Seen::Char(c)).then_some(())?;
            match c {
                '"' => style.quote = style.quote.or(Some(run)),
                c if c.is_control() => {}
                _ => style.shell = style.shell.max(run),
            }
            Some(end)
        }
        b'%' if let Some((seen, end)) = percent_char(text, at) => {
            note_percent(c, text.get(at..end)?, style);
            (seen == Seen::Char(c)).then_some(end)
        }
        _ => {
            let (found, len) = utf8(text.get(at..)?)?;
            (found == c).then_some(())?;
            if c.is_ascii() {
                style.raw_ascii |= bit(c);
            } else {
                style.raw_wide = true;
            }
            Some(at + len)
        }
    }
}

fn note_unicode(c: char, run: usize, digits: &[u8], style: &mut Style) {
    style.unicode.get_or_insert(run);
    if style.unicode_upper.is_none() {
        // A pair holds the `u` of its second half among the digits.
        let digit = digits
            .iter()
            .find(|b| b.is_ascii_alphabetic() && **b != b'u');
        style.unicode_upper = digit.map(u8::is_ascii_uppercase);
    }
    if c.is_ascii() {
        style.unicode_ascii |= bit(c);
    }
}

fn note_percent(c: char, digits: &[u8], style: &mut Style) {
    style.percent = true;
    if style.percent_upper.is_none() {
        let digit = digits.iter().find(|b| b.is_ascii_alphabetic());
        style.percent_upper = digit.map(u8::is_ascii_uppercase);
    }
    if c.is_ascii() {
        style.percent_ascii |= bit(c);
    }
}

fn read_separator(
    unit: Unit,
    text: &[u8],
    at: usize,
    style: &mut Style,
) -> Option<(Separator, usize)> {
    match *text.get(at)? {
        b'/' => Some((Separator::Slash(0), at + 1)),
        b'\\' => {
            let run = run_from(text, at);
            let after = at + run;
            if run > MAX_RUN {
                return None;
            }
            if text.get(after) == Some(&b'/') {
                return Some((Separator::Slash(run), after + 1));
            }
            if let Some((Seen::Char('/'), end)) = unicode_char(text, after) {
                note_unicode('/', run, text.get(after + 1..end)?, style);
                return Some((Separator::UnicodeSlash(run), end));
            }
            (unit == Unit::Either).then_some(())?;
            // What is left of an odd run escapes the next character: `C:\\` and `\u5de5`.
            let own = largest_power(run);
            Some((Separator::Back(own), at + own))
        }
        b'%' => {
            let (seen, end) = percent_char(text, at)?;
            note_percent('/', text.get(at..end)?, style);
            match (seen, unit) {
                (Seen::Char('/'), _) => Some((Separator::PercentSlash, end)),
                (Seen::Char('\\'), Unit::Either) => Some((Separator::PercentBack, end)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A separator takes 2^layers backslashes.
fn largest_power(run: usize) -> usize {
    [16, 8, 4, 2].into_iter().find(|p| run >= *p).unwrap_or(1)
}

/// Backslashes that belong to a name: n of them take n × 2^layers.
fn read_backslashes(n: usize, text: &[u8], at: usize, style: &mut Style) -> Option<usize> {
    let rest = text.get(at..)?;
    if text.get(at) == Some(&b'%') {
        let mut end = at;
        for _ in 0..n {
            let (seen, after) = percent_char(text, end)?;
            (seen == Seen::Char('\\')).then_some(())?;
            note_percent('\\', text.get(end..after)?, style);
            end = after;
        }
        return Some(end);
    }
    let most = n.checked_mul(MAX_RUN)?;
    let run = rest
        .iter()
        .take(most + 1)
        .take_while(|b| **b == b'\\')
        .count();
    let each = run.checked_div(n)?;
    (each * n == run && each.is_power_of_two() && each <= MAX_RUN).then_some(())?;
    style.backslash = Some(each);
    Some(at + run)
}

/// Where the reference begins, seen from its first expected character: with the backslashes of a first slash, the
/// user's home, the prefix of a drive.
fn whole(
    pattern: &Pattern,
    text: &[u8],
    core: usize,
    end: usize,
    style: &mut Style,
) -> Option<usize> {
    let before = text.get(..core)?;
    match pattern.form {
        Form::Slug(_) => Some(core),
        Form::Drive => Some(drive_start(text, core, style)),
        Form::Posix | Form::DriveUnix { .. } => lead(text, core, end, style),
        Form::Home => {
            let start = if text.get(core) == Some(&b'\\') {
                core // `~\x`: the separator is the core itself
            } else {
                lead(text, core, end, style)?
            };
            let before = before.get(..start)?;
            [&b"~"[..], b"${HOME}", b"$HOME"]
                .iter()
                .find(|home| before.ends_with(home))
                .map(|home| start - home.len())
        }
    }
}

/// The first slash owns as many backslashes as the others have. Where there is no other in the pattern, the one that
/// follows tells, and where there is none either, all of them are its own.
fn lead(text: &[u8], core: usize, end: usize, style: &mut Style) -> Option<usize> {
    if text.get(core) != Some(&b'/') {
        return Some(core);
    }
    let run = run_before(text, core);
    let own = match style.separator {
        Some(Separator::Slash(own)) => own,
        Some(Separator::Back(_)) => 0,
        Some(_) => return None,
        None => {
            let following = run_from(text, end);
            match text.get(end + following) {
                Some(b'/') if following <= run => following,
                _ if run <= MAX_RUN => run,
                _ => 0,
            }
        }
    };
    style.lead = own;
    (own <= run).then(|| core - own)
}

fn drive_start(text: &[u8], core: usize, style: &Style) -> usize {
    if let Some(Separator::Back(run)) = style.separator {
        let mut prefix = vec![b'\\'; 2 * run];
        prefix.push(b'?');
        prefix.extend(std::iter::repeat_n(b'\\', run));
        let before = text.get(..core).unwrap_or_default();
        return core
            - if before.ends_with(&prefix) {
                prefix.len()
            } else {
                0
            };
    }
    if boundary::scheme(text, core).is_some() {
        return core;
    }
    match prev(text, core) {
        (Seen::Char('/'), start) => start, // `file:///C:/x`, `/c:/x`
        _ => core,
    }
}

/// Where unit `index` begins if it ends at `end`; lenient.
pub(super) fn back(units: &[Unit], index: usize, text: &[u8], end: usize) -> Option<usize> {
    let unit = *units.get(index)?;
    let last = end.checked_sub(1)?;
    let byte = *text.get(last)?;
    let before = index.checked_sub(1).and_then(|i| units.get(i)).copied();
    match unit {
        Unit::Char(c) if c.is_ascii_alphanumeric() => (char::from(byte) == c).then_some(last),
        Unit::Drive(c) => char::from(byte).eq_ignore_ascii_case(&c).then_some(last),
        Unit::Backslashes(n) => {
            let run = text
                .get(..end)?
                .iter()
                .rev()
                .take(n.saturating_mul(MAX_RUN))
                .take_while(|b| **b == b'\\')
                .count();
            match run {
                0 => Some(end.checked_sub(3 * n)?), // `%5C`
                run => Some(end - run),
            }
        }
        Unit::Either if byte == b'\\' => Some(end - run_before(text, end)),
        Unit::Either if prev(text, end).0 == Seen::Char('\\') => Some(prev(text, end).1),
        _ => {
            let c = unit.char().unwrap_or('/');
            let (seen, start) = prev(text, end);
            (seen == Seen::Char(c)).then_some(())?;
            let first = text.get(start) == Some(&b'\\');
            let run = if first { run_from(text, start) } else { 0 };
            match before {
                // The first character is found without its backslashes, unless they are those of `\u002f`.
                None if byte == b'/' => Some(last),
                // Behind a slash the backslashes escape it; else they are what stands before it.
                Some(Unit::Either) if text.get(..start)?.ends_with(b"/") => Some(start),
                Some(Unit::Either | Unit::Backslashes(_)) if is_escapable(byte) => {
                    Some(start + run)
                }
                Some(Unit::Either) if run > largest_power(run) => Some(start + largest_power(run)),
                _ => Some(start),
            }
        }
    }
}
