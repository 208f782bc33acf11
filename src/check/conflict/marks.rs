//! The grammar of conflict marks: what each client puts at the end of a stem.
//!
//! One function a family, each on plain bytes and without a pattern language: the shapes are few and fixed, a name is
//! looked at once for every file of a home, and a function can say why it refuses an honest name.

use super::{Client, computer};

/// Where the extension may begin, the rightmost first: not at all, at the last dot, and, as clients differ about
/// `x.tar.gz`, at up to two dots before it while what follows looks like extensions.
pub(super) fn extensions(name: &[u8]) -> impl Iterator<Item = usize> {
    const MOST_PARTS: usize = 3;
    let dots = name
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'.')
        .map(|(at, _)| at);
    let mut end = name.len();
    let parts = dots.take(MOST_PARTS).take_while(move |&at| {
        let part = &name[at + 1..end];
        end = at;
        (1..=16).contains(&part.len()) && !part.iter().any(|b| b" ()[]".contains(b))
    });
    std::iter::once(name.len()).chain(parts)
}

/// A mark at the end of a stem: the base before it ends at `base`.
pub(super) struct Found {
    pub(super) base: usize,
    pub(super) client: Client,
    pub(super) ambiguous: bool,
}

fn certain(base: usize, client: Client) -> Found {
    Found {
        base,
        client,
        ambiguous: false,
    }
}

fn ambiguous(base: usize, client: Client) -> Found {
    Found {
        base,
        client,
        ambiguous: true,
    }
}

/// Can `name` hold a mark at all? Most names of a home can not, and each is asked about.
pub(super) fn possible(name: &[u8]) -> bool {
    // 0xEF begins the wide bracket.
    name.iter().any(|b| b" -)]\xef".contains(b)) || contains(name, b"onflict")
}

/// Every mark that ends the stem of a name.
pub(super) fn of_stem(stem: &[u8], is_folder: bool) -> Vec<Found> {
    let mut found = Vec::new();
    found.extend(bracketed(stem));
    found.extend(dotted(stem));
    found.extend(nextcloud_of_old(stem));
    found.extend(synology(stem));
    found.extend(safe_backup(stem));
    found.extend(dashed_word(stem));
    if !is_folder {
        // OneDrive merges folders, so `name-LAPTOP7` beside the folder `name` is somebody's choice.
        found.extend(onedrive(stem));
    }
    if let Some((before, number)) = split_number(stem)
        && before.ends_with(b" ")
        && number.len() <= 2
        && number != b"1"
    {
        // iCloud counts from 2. More digits are years and the like: `report 2024.md`.
        found.push(ambiguous(before.len() - 1, Client::ICloud));
    }
    found
}

/// A group in brackets that ends the stem: most clients.
fn bracketed(stem: &[u8]) -> Option<Found> {
    const PAIRS: [(&[u8], &[u8]); 3] = [
        (b"(", b")"),
        ("（".as_bytes(), "）".as_bytes()),
        (b"[", b"]"),
    ];
    let (open, close) = PAIRS.into_iter().find(|(_, close)| stem.ends_with(close))?;
    let end = stem.len() - close.len();
    let start = opening(&stem[..end], open, close)?;
    let (client, is_ambiguous) = match open {
        b"[" => bracket_client(&stem[start + open.len()..end])?,
        _ => group_client(&stem[start + open.len()..end])?,
    };
    let base = start - usize::from(stem[..start].ends_with(b" "));
    Some(Found {
        base,
        client,
        ambiguous: is_ambiguous,
    })
}

/// Where the bracket opens that closes after `text`. A device may be called `Mei (home)`: pairs inside are skipped; when
/// they do not pair up, the nearest opening is taken.
fn opening(text: &[u8], open: &[u8], close: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..text.len()).rev() {
        if text[at..].starts_with(close) {
            depth += 1;
        } else if text[at..].starts_with(open) {
            match depth.checked_sub(1) {
                Some(rest) => depth = rest,
                None => return Some(at),
            }
        }
    }
    text.windows(open.len()).rposition(|window| window == open)
}

fn bracket_client(group: &[u8]) -> Option<(Client, bool)> {
    let rest = group
        .to_ascii_lowercase()
        .strip_prefix(b"conflicted")
        .map(<[u8]>::to_vec)?;
    let plain = rest
        .iter()
        .all(|b| b.is_ascii_digit() || b" -_:".contains(b));
    plain.then_some((Client::PCloud, false))
}

/// Whose mark the words in parentheses are, and whether people write them too.
fn group_client(group: &[u8]) -> Option<(Client, bool)> {
    /// Dropbox's wordings in the languages it speaks. <https://help.dropbox.com/organize/conflicted-copy>
    const TRANSLATIONS: [&str; 12] = [
        "copia en conflicto",
        "motstridiga kopia",
        "copia in conflitto",
        "copie en conflit",
        "cópia em conflito",
        "in konflikt stehende kopie",
        "conflicterende kopie",
        "konfliktkopi",
        "powodująca konflikt",
        "конфликтующая копия",
        "競合コピー",
        "충돌한 사본",
    ];
    const DROPBOX_KINDS: [&[u8]; 4] = [
        b"unicode encoding conflict",
        b"case conflict",
        b"selective sync conflict",
        b"white space conflict",
    ];
    let low = group.to_ascii_lowercase();
    if split_number(&low).is_some_and(|(before, number)| before.is_empty() && number.len() <= 3) {
        return Some((Client::NumberedCopy, true));
    }
    let word = |client| Some((client, false));
    if low == b"sfconflict" || low.starts_with(b"sfconflict ") {
        return word(Client::Seafile);
    }
    if low.starts_with(b"copy: conflict") {
        return word(Client::Unison);
    }
    if low.starts_with(b"#")
        && low.ends_with(b"#")
        && (contains(&low, b" conflict") || contains(&low, b" clash"))
    {
        return word(Client::Proton);
    }
    if low.starts_with(b"case clash from ") {
        return word(Client::Nextcloud);
    }
    if let Some(at) = find(&low, b"conflicted copy") {
        let (before, after) = (
            low[..at].trim_ascii_end(),
            &low[at + b"conflicted copy".len()..],
        );
        let possessive = ["'s", "’s", "'", "’"]
            .iter()
            .any(|end| before.ends_with(end.as_bytes()));
        if before.is_empty() && ends_with_clock(after) {
            return word(Client::Nextcloud);
        }
        if before.is_empty() || possessive || has_date(after) {
            return word(Client::Dropbox);
        }
    }
    let unnumbered = split_number(&low)
        .map_or(&*low, |(before, _)| before)
        .trim_ascii_end();
    if DROPBOX_KINDS.contains(&unnumbered)
        || TRANSLATIONS
            .iter()
            .any(|phrase| contains(&low, phrase.as_bytes()))
    {
        return word(Client::Dropbox);
    }
    // `(HOST的冲突副本1_2024-06-11 10-11-12)`; `(冲突)` alone may be a remark.
    if let Some((_, doubtful)) = conflict_noun(&low) {
        return Some((Client::Chinese, doubtful));
    }
    (low == "冲突".as_bytes()).then_some((Client::Chinese, true))
}

/// Syncthing, Resilio and rclone append to the stem, or to the whole name, after a dot.
fn dotted(stem: &[u8]) -> Option<Found> {
    let at = stem.iter().rposition(|b| *b == b'.')?;
    let mark = &stem[at + 1..];
    if let Some(rest) = mark.strip_prefix(b"sync-conflict-") {
        // The device was added in Syncthing 1.0; older copies end with the time.
        let mut parts = rest.split(|b| *b == b'-');
        let stamped = is_digits(parts.next(), 8) && is_digits(parts.next(), 6);
        let device = parts
            .next()
            .is_none_or(|d| !d.is_empty() && d.iter().all(u8::is_ascii_alphanumeric));
        return (stamped && device && parts.next().is_none())
            .then(|| certain(at, Client::Syncthing));
    }
    let numbered = |rest: &[u8]| rest.len() <= 4 && rest.iter().all(u8::is_ascii_digit);
    if mark.strip_prefix(b"Conflict").is_some_and(numbered) {
        return Some(certain(at, Client::Resilio));
    }
    let rclone = mark
        .strip_prefix(b"conflict")
        .is_some_and(|rest| !rest.is_empty() && numbered(rest));
    rclone.then(|| certain(at, Client::Rclone))
}

/// `stem_conflict-20240611-101112`, with or without the user's name after the word.
fn nextcloud_of_old(stem: &[u8]) -> Option<Found> {
    let at = rfind(stem, b"_conflict-")?;
    let mut parts = stem[at + 1..].rsplit(|b| *b == b'-');
    (is_digits(parts.next(), 6) && is_digits(parts.next(), 8))
        .then(|| certain(at, Client::Nextcloud))
}

/// `stem_HOST_Jun-11-1011-2024_CaseConflict_1`: <https://kb.synology.com/en-global/DSM/tutorial/Synology_Drive_file_conflict_resolution>
fn synology(stem: &[u8]) -> Vec<Found> {
    let cut = |text: &[u8]| text.iter().rposition(|b| *b == b'_');
    let conflict = |end: usize| {
        let reason = cut(&stem[..end])?;
        let word = &stem[reason + 1..end];
        (word.ends_with(b"Conflict") && word.iter().all(u8::is_ascii_alphabetic)).then_some(reason)
    };
    let number = cut(stem).filter(|at| stem[at + 1..].iter().all(u8::is_ascii_digit));
    let Some(date_end) = conflict(number.unwrap_or(stem.len())) else {
        return Vec::new();
    };
    let Some(date) = cut(&stem[..date_end]) else {
        return Vec::new();
    };
    let mut parts = stem[date + 1..date_end].split(|b| *b == b'-');
    let month = parts
        .next()
        .is_some_and(|m| m.len() == 3 && m.iter().all(u8::is_ascii_alphabetic));
    if !(month
        && is_digits(parts.next(), 2)
        && is_digits(parts.next(), 4)
        && is_digits(parts.next(), 4))
    {
        return Vec::new();
    }
    separators(&stem[..date], b'_')
        .map(|at| certain(at, Client::Synology))
        .collect()
}

/// OneDrive's Linux client: `stem-HOST-safeBackup-0001`.
fn safe_backup(stem: &[u8]) -> Vec<Found> {
    let Some(at) = rfind(stem, b"-safeBackup-") else {
        return Vec::new();
    };
    let number = &stem[at + b"-safeBackup-".len()..];
    if number.len() < 4 || !number.iter().all(u8::is_ascii_digit) {
        return Vec::new();
    }
    let mut cuts: Vec<usize> = separators(&stem[..at], b'-').collect();
    cuts.sort_by_key(|cut| !computer::is_factory_name(&stem[cut + 1..at]));
    cuts.push(at);
    cuts.into_iter()
        .map(|cut| certain(cut, Client::OneDrive))
        .collect()
}

/// OneDrive elsewhere: `stem-HOST`, always ambiguous.
fn onedrive(stem: &[u8]) -> Vec<Found> {
    let mut cuts: Vec<usize> = separators(stem, b'-')
        .filter(|cut| *cut > 0 && computer::is_named(&stem[cut + 1..]))
        .collect();
    cuts.sort_by_key(|cut| !computer::is_factory_name(&stem[cut + 1..]));
    cuts.into_iter()
        .map(|cut| ambiguous(cut, Client::OneDrive))
        .collect()
}

/// Where a device's name may begin that ends `text`: after each of the last few separators, the nearest first.
fn separators(text: &[u8], separator: u8) -> impl Iterator<Item = usize> {
    let all = text
        .iter()
        .enumerate()
        .rev()
        .filter(move |(_, byte)| **byte == separator);
    all.map(|(at, _)| at)
        .take(5)
        .filter(move |at| at + 1 < text.len())
}

/// Chinese clients after a hyphen: `-NSConflict`, `-conflict-…`, `-冲突…`, `-张三的冲突副本…`, `-副本`.
///
/// The bare words end the names of honest documents as well (`resolve-merge-conflict.md`, `方案-副本.md`), so without a
/// date, a device or the full noun they are ambiguous. Of several, the rightmost is the mark.
fn dashed_word(stem: &[u8]) -> Option<Found> {
    let latin = rfind(stem, b"-NSConflict")
        // What follows is a nickname; a dot would be the extension's.
        .filter(|at| !stem[*at..].contains(&b'.'))
        .map(|at| certain(at, Client::Nutstore));
    let copy = split_number(stem)
        .map_or(stem, |(before, _)| before)
        .strip_suffix("副本".as_bytes())
        .and_then(|before| before.trim_ascii_end().strip_suffix(b"-"))
        .map(|base| ambiguous(base.trim_ascii_end().len(), Client::Chinese));
    let noun = conflict_noun(stem).and_then(|(at, doubtful)| {
        let base = stem[..at].iter().rposition(|b| *b == b'-')?;
        let ambiguous = doubtful && base + 1 != at;
        Some(Found {
            base,
            client: Client::Chinese,
            ambiguous,
        })
    });
    let word = |word: &str, client| {
        let base = rfind(stem, word.as_bytes())?;
        let ambiguous = follows(&stem[base + word.len()..])?;
        Some(Found {
            base,
            client,
            ambiguous,
        })
    };
    let words = [
        word("-冲突", Client::Chinese),
        word("-conflict", Client::Nutstore),
    ];
    [latin, copy, noun]
        .into_iter()
        .chain(words)
        .flatten()
        .max_by_key(|found| found.base)
}

/// Where the last *conflict copy*, *conflict file* … begins that may end a mark, and whether that leaves doubt: it does
/// without the date and without the possessive, as in `(冲突文件)` and `-关于冲突文件`.
fn conflict_noun(text: &[u8]) -> Option<(usize, bool)> {
    const NOUNS: [&str; 5] = ["冲突副本", "冲突文件", "冲突版本", "衝突副本", "衝突檔案"];
    let last = NOUNS
        .iter()
        .filter_map(|noun| rfind(text, noun.as_bytes()).map(|at| (at, noun.len())));
    let (at, length) = last.max()?;
    let possessive = text[..at].trim_ascii_end().ends_with("的".as_bytes());
    let doubtful = follows(&text[at + length..])?;
    Some((at, doubtful && !possessive))
}

/// May `tail` follow the word *conflict* in a mark, and does that leave doubt? Nothing or a number may (doubtful), a
/// device, or something with a date in it (doubtful when it holds small letters: `-conflict-resolution-20240611`).
fn follows(tail: &[u8]) -> Option<bool> {
    // A dot is the extension's, which is not part of this stem.
    if tail.contains(&b'.') {
        return None;
    }
    if tail.iter().all(u8::is_ascii_digit) && tail.len() < 6 {
        return Some(true);
    }
    if tail.strip_prefix(b"-").is_some_and(computer::is_named) {
        return Some(false);
    }
    let dated = tail.iter().filter(|b| b.is_ascii_digit()).count() >= 6;
    dated.then(|| tail.iter().any(u8::is_ascii_lowercase))
}

/// The text before a number that ends it, and the number: positive, without leading zeros.
fn split_number(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (before, number) = text.split_at(text.len() - digits);
    (!number.is_empty() && number[0] != b'0').then_some((before, number))
}

/// Does it end with ` 101112`, the time that Nextcloud adds to the date?
fn ends_with_clock(text: &[u8]) -> bool {
    let clock = text.rsplit(|b| *b == b' ').next();
    has_date(text) && is_digits(clock, 6)
}

/// Does it hold `2024-06-11`?
fn has_date(text: &[u8]) -> bool {
    text.windows(10).any(|day| {
        day.iter().enumerate().all(|(i, b)| {
            if matches!(i, 4 | 7) {
                *b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
    })
}

fn is_digits(text: Option<&[u8]>, length: usize) -> bool {
    text.is_some_and(|t| t.len() == length && t.iter().all(u8::is_ascii_digit))
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .position(|window| window == needle)
}

fn rfind(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .rposition(|window| window == needle)
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    find(text, needle).is_some()
}
