//! The forms in which one mapping can be written, as sequences of expected characters.
//!
//! A form says which characters follow one another; how each of them is written is the business of
//! [`spell`](super::spell).

use std::cmp::{Ordering, Reverse};

use super::mapping::{Folder, Move};
use super::slug;
use super::spell::Style;

/// One expected character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Char(char),
    /// `/`, between folders.
    Slash,
    /// `\` or `/`, between the folders of a Windows path.
    Either,
    /// A drive letter in either case.
    Drive(char),
    /// So many backslashes that are part of a POSIX name.
    Backslashes(usize),
}

impl Unit {
    /// The character, where there is just one.
    pub(super) fn char(self) -> Option<char> {
        match self {
            Unit::Char(c) => Some(c),
            Unit::Slash => Some('/'),
            _ => None,
        }
    }

    pub(super) fn is_plain_letter(self) -> bool {
        matches!(self, Unit::Char(c) if c.is_ascii_alphanumeric())
    }

    /// Whether a text can hold both at one place.
    fn agrees(self, other: Unit) -> bool {
        match (self, other) {
            (Unit::Drive(a), Unit::Drive(b) | Unit::Char(b)) | (Unit::Char(a), Unit::Drive(b)) => {
                a.eq_ignore_ascii_case(&b)
            }
            (Unit::Slash | Unit::Either, Unit::Slash | Unit::Either) => true,
            (a, b) => a == b,
        }
    }
}

/// In which way a pattern stands for its mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `/Users/me/x`
    Posix,
    /// What follows `~` or `$HOME`: `/x`
    Home,
    /// `C:\x`, `C:/x`
    Drive,
    /// `/c/x`, or `/mnt/c/x`
    DriveUnix { mnt: bool },
    /// `Users-me-x`, and the slug to write instead
    Slug(String),
}

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) mapping: u16,
    pub(super) form: Form,
    pub(super) units: Vec<Unit>,
    /// The form as it is written plainly, where that is one string: the fast way to recognise it.
    pub(super) plain: Option<Vec<u8>>,
    /// How it looks then.
    pub(super) plain_style: Style,
    /// Patterns that begin with all of this one and go on, longest first, and those that are as long and of a lower
    /// rank: they win where they match.
    pub(super) longer: Vec<usize>,
    /// Patterns that may begin earlier and reach into this one, and at which of their units: they win, too.
    pub(super) earlier: Vec<(usize, usize)>,
}

impl Pattern {
    /// Of two patterns that match the same, the one with the lower rank wins: a folder as it was named before what another
    /// folder may also be called, and then the mapping that was given first. `index` is that among all patterns.
    pub(super) fn rank(&self, index: usize) -> (bool, usize) {
        let is_named = matches!(self.form, Form::Posix | Form::Drive);
        (!is_named, index)
    }
}

/// A slug shorter than this is an ordinary word.
const MIN_SLUG: usize = 8;

/// All patterns of all mappings.
pub(super) fn patterns(moves: &[Move], home: Option<&Folder>) -> Vec<Pattern> {
    let mut all = Vec::new();
    for (index, mapping) in moves.iter().enumerate() {
        let mapping_index = u16::try_from(index).unwrap_or(u16::MAX);
        for (form, units) in forms(mapping, home) {
            all.push(Pattern {
                mapping: mapping_index,
                plain: plain(&units),
                plain_style: Style::plain(&units),
                form,
                units,
                longer: Vec::new(),
                earlier: Vec::new(),
            });
        }
    }
    relate(&mut all);
    all
}

fn forms(mapping: &Move, home: Option<&Folder>) -> Vec<(Form, Vec<Unit>)> {
    let mut forms = Vec::new();
    match mapping.old.drive() {
        None => forms.push((Form::Posix, units(mapping.old.as_str(), Unit::Slash))),
        Some((letter, rest)) => {
            let tail = |separator| units(rest, separator);
            let with = |head: &[Unit], separator| [head, &tail(separator)].concat();
            let drive = Unit::Drive(letter);
            forms.push((Form::Drive, with(&[drive, Unit::Char(':')], Unit::Either)));
            let unix = with(&[Unit::Slash, drive], Unit::Slash);
            forms.push((
                Form::DriveUnix { mnt: true },
                [units("/mnt", Unit::Slash), unix.clone()].concat(),
            ));
            forms.push((Form::DriveUnix { mnt: false }, unix));
        }
    }
    // `~` alone is too common to mean a folder that has moved.
    let below = home
        .and_then(|home| mapping.old.below(home))
        .filter(|r| !r.is_empty());
    if let Some(rest) = below {
        let separator = match mapping.old {
            Folder::Posix(_) => Unit::Slash,
            Folder::Drive(_) => Unit::Either,
        };
        forms.push((Form::Home, units(rest, separator)));
    }
    // The slug of a single folder (`workbuddy-home` for `/workbuddy_home`) is a name that people use.
    if components(&mapping.old) >= 2 {
        for (old, new) in slug::variants(&mapping.old, &mapping.new) {
            // The slug of `/工作` is empty: no name to write.
            if old.len() >= MIN_SLUG && !new.is_empty() {
                forms.push((Form::Slug(new), old.chars().map(Unit::Char).collect()));
            }
        }
    }
    forms
}

fn components(folder: &Folder) -> usize {
    folder
        .as_str()
        .split(['/', '\\'])
        .filter(|c| !c.is_empty())
        .count()
}

fn units(path: &str, separator: Unit) -> Vec<Unit> {
    let mut units = Vec::new();
    for c in path.chars() {
        match (c, separator) {
            ('/', Unit::Slash) => units.push(Unit::Slash),
            ('\\', Unit::Slash) if path.starts_with('\\') => units.push(Unit::Slash), // a Windows path as Unix tools see it
            ('\\' | '/', Unit::Either) => units.push(Unit::Either),
            ('\\', _) => match units.last_mut() {
                Some(Unit::Backslashes(n)) => *n += 1,
                _ => units.push(Unit::Backslashes(1)),
            },
            _ => units.push(Unit::Char(c)),
        }
    }
    units
}

/// The bytes of units that are written plainly, if there is only one way to do so.
pub(super) fn plain(units: &[Unit]) -> Option<Vec<u8>> {
    let mut text = String::new();
    for unit in units {
        match unit {
            Unit::Char(c) => text.push(*c),
            Unit::Slash => text.push('/'),
            Unit::Backslashes(n) => text.extend(std::iter::repeat_n('\\', *n)),
            Unit::Either | Unit::Drive(_) => return None,
        }
    }
    Some(text.into_bytes())
}

/// Finds out which patterns can match at, or reach into, the place of which others.
fn relate(all: &mut [Pattern]) {
    let starts_with =
        |a: &[Unit], b: &[Unit]| a.len() >= b.len() && a.iter().zip(b).all(|(x, y)| x.agrees(*y));
    let is_slug = |p: &Pattern| matches!(p.form, Form::Slug(_));
    for q in 0..all.len() {
        let mut longer = Vec::new();
        let mut earlier = Vec::new();
        for p in 0..all.len() {
            let (mine, theirs) = (&all[q], &all[p]);
            if p == q || is_slug(mine) != is_slug(theirs) {
                continue;
            }
            let wins = match theirs.units.len().cmp(&mine.units.len()) {
                Ordering::Greater => true,
                Ordering::Equal => theirs.rank(p) < mine.rank(q),
                Ordering::Less => false,
            };
            if wins && starts_with(&theirs.units, &mine.units) {
                longer.push(p);
            }
            for at in 1..theirs.units.len() {
                let tail = &theirs.units[at..];
                if starts_with(tail, &mine.units) || starts_with(&mine.units, tail) {
                    earlier.push((p, at));
                }
            }
        }
        longer.sort_by_key(|p| (Reverse(all[*p].units.len()), all[*p].rank(*p)));
        all[q].longer = longer;
        all[q].earlier = earlier;
    }
}
