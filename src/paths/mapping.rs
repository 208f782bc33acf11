//! What is to become what: mappings as people give them, checked once so that the rest of the room need not.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A folder that has moved: both are absolute paths without a trailing slash.
/// `old` and `new` may be POSIX paths or Windows paths with a drive (`C:\…` or `C:/…`).
///
/// OLD is data, never a pattern. NEW may lie inside OLD: a text is read once, so what was written is not read again.
/// But a text that already says NEW then says OLD + the rest, and *is* rewritten; whoever runs twice must know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mapping {
    /// The folder as the text mentions it.
    pub old: String,
    /// The folder as it shall mention it.
    pub new: String,
}

/// Why a set of mappings was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappingError {
    /// A path is empty.
    Empty,
    /// A path is neither POSIX-absolute nor begins with a drive.
    NotAbsolute(String),
    /// `/` or a bare drive: nearly every path would be a reference, or every NEW would begin with two slashes.
    Root(String),
    /// A path holds a NUL, which no path can.
    Nul(String),
    /// A path is longer than any system allows; the memory of a stream depends on it.
    TooLong(String),
    /// One OLD, two NEWs.
    Conflict {
        /// The folder in question.
        old: String,
        /// Its first and its second new place.
        news: [String; 2],
    },
    /// More than 65,535 mappings.
    TooMany(usize),
    /// The search could not be built (its tables would be too large).
    Search(String),
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MappingError::Empty => write!(f, "a path to map is empty"),
            MappingError::NotAbsolute(path) => write!(f, "not an absolute path: {path}"),
            MappingError::Root(path) => write!(f, "{path} is a root, not a folder that can move"),
            MappingError::Nul(path) => write!(f, "the path holds a NUL: {}", path.escape_debug()),
            MappingError::TooLong(path) => {
                write!(f, "a path of {} bytes is too long to map", path.len())
            }
            MappingError::Conflict { old, news } => {
                write!(f, "{old} is mapped to both {} and {}", news[0], news[1])
            }
            MappingError::TooMany(count) => write!(f, "{count} mappings are more than 65535"),
            MappingError::Search(why) => write!(f, "can not search for these paths: {why}"),
        }
    }
}

impl std::error::Error for MappingError {}

/// PATH_MAX on Linux; every other system is at or below it, except Windows' `\\?\` paths that nobody has.
const MAX_PATH: usize = 4096;

/// A checked absolute folder, in its normal form: no trailing slash, Windows paths with backslashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Folder {
    Posix(String),
    /// Drive letter as given, colon, backslashes.
    Drive(String),
}

impl Folder {
    /// The normal form, unchecked.
    pub(super) fn of(path: &str) -> Folder {
        let b = path.as_bytes();
        let drive = b.len() >= 2
            && b[0].is_ascii_alphabetic()
            && b[1] == b':'
            && matches!(b.get(2), None | Some(b'\\' | b'/'));
        if drive {
            let path = path.replace('/', "\\");
            Folder::Drive(path.trim_end_matches('\\').to_owned())
        } else {
            Folder::Posix(path.trim_end_matches('/').to_owned())
        }
    }

    fn checked(path: &str) -> Result<Folder, MappingError> {
        if path.is_empty() {
            return Err(MappingError::Empty);
        }
        if path.contains('\0') {
            return Err(MappingError::Nul(path.to_owned()));
        }
        if path.len() > MAX_PATH {
            return Err(MappingError::TooLong(path.to_owned()));
        }
        let folder = Folder::of(path);
        match &folder {
            Folder::Posix(_) if !path.starts_with('/') => {
                Err(MappingError::NotAbsolute(path.to_owned()))
            }
            Folder::Posix(rest) if rest.is_empty() => Err(MappingError::Root(path.to_owned())),
            Folder::Drive(rest) if rest.len() <= 2 => Err(MappingError::Root(path.to_owned())),
            _ => Ok(folder),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Folder::Posix(path) | Folder::Drive(path) => path,
        }
    }

    /// The drive letter and what follows its colon (beginning with a backslash).
    pub(super) fn drive(&self) -> Option<(char, &str)> {
        match self {
            Folder::Posix(_) => None,
            Folder::Drive(path) => Some((path.chars().next()?, path.get(2..)?)),
        }
    }

    /// What follows `home`, if this folder is `home` or below it: empty, or beginning with a separator.
    pub(super) fn below(&self, home: &Folder) -> Option<&str> {
        let (mine, theirs) = (self.as_str(), home.as_str());
        let rest = match (self, home) {
            (Folder::Posix(_), Folder::Posix(_)) => mine.strip_prefix(theirs)?,
            (Folder::Drive(_), Folder::Drive(_)) => {
                let same_drive = mine.get(..1)?.eq_ignore_ascii_case(theirs.get(..1)?);
                mine.get(1..)?
                    .strip_prefix(theirs.get(1..)?)
                    .filter(|_| same_drive)?
            }
            _ => return None,
        };
        (rest.is_empty() || rest.starts_with(['/', '\\'])).then_some(rest)
    }

    /// Whether both name the same folder: a drive letter may differ in case.
    pub(super) fn same(&self, other: &Folder) -> bool {
        self.below(other) == Some("")
    }
}

/// A checked mapping.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) old: Folder,
    pub(super) new: Folder,
}

/// Checks mappings, brings them to their normal form and drops repetitions.
pub(super) fn check(mappings: Vec<Mapping>) -> Result<Vec<(Mapping, Move)>, MappingError> {
    let mut checked: Vec<(Mapping, Move)> = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        let old = Folder::checked(&mapping.old)?;
        let new = Folder::checked(&mapping.new)?;
        if let Some((earlier, same)) = checked.iter().find(|(_, m)| m.old.same(&old)) {
            if same.new.same(&new) {
                continue;
            }
            return Err(MappingError::Conflict {
                old: mapping.old,
                news: [earlier.new.clone(), mapping.new],
            });
        }
        checked.push((mapping, Move { old, new }));
    }
    if checked.len() > usize::from(u16::MAX) {
        return Err(MappingError::TooMany(checked.len()));
    }
    Ok(checked)
}

/// The plain spellings of a mapping, for texts that are a path and nothing else, such as the target of a link: a
/// drive also as Unix tools on Windows see it.
pub(super) fn plain_forms(old: &Folder, new: &Folder) -> Vec<(String, String)> {
    let Some((letter, rest)) = old.drive() else {
        return vec![(old.as_str().to_owned(), new.as_str().to_owned())];
    };
    let mut forms = Vec::new();
    for letter in [letter.to_ascii_lowercase(), letter.to_ascii_uppercase()] {
        for (head, slashes) in [("", false), ("", true), ("/", true), ("/mnt/", true)] {
            let form = |letter: char, rest: &str| {
                let colon = if head.is_empty() { ":" } else { "" };
                let rest = if slashes {
                    rest.replace('\\', "/")
                } else {
                    rest.to_owned()
                };
                format!("{head}{letter}{colon}{rest}")
            };
            let to = match new.drive() {
                Some((to, rest)) if letter.is_ascii_lowercase() => {
                    form(to.to_ascii_lowercase(), rest)
                }
                Some((to, rest)) => form(to, rest),
                None => new.as_str().to_owned(),
            };
            forms.push((form(letter, rest), to));
        }
    }
    forms
}
