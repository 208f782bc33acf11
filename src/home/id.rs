//! What a session may be called.

use std::ffi::OsStr;
use std::fmt;

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::base::{Error, Result, human};

/// Characters of a new id, date included: completion and listings suffer from longer ones.
pub const LONGEST_NEW: usize = 30;
/// Bytes of an adopted id. With `.tar.zst` and a temporary name's room it still fits the 255 bytes of a name.
pub const LONGEST_ADOPTED: usize = 200;

/// A session's id, which is its folder's name: one component of UTF-8, safe to be joined to a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// An id that exists already: any single path component of UTF-8 of at most 200 bytes.
    ///
    /// # Errors
    /// Whatever could not be such a folder's name.
    pub fn adopt(name: &str) -> Result<SessionId> {
        let why = if name.is_empty() {
            "it is empty"
        } else if matches!(name, "." | "..") || name.contains(['/', '\0']) {
            "it is not the name of a folder"
        } else if name.len() > LONGEST_ADOPTED {
            "it is longer than 200 bytes"
        } else {
            return Ok(SessionId(name.to_owned()));
        };
        let shown: String = name.chars().take(80).collect();
        let shown = human::escape(&shown);
        Err(Error::failed(format!(
            "`{shown}` can not be a session's id: {why}"
        )))
    }

    /// The id of a folder in `sessions/`; `None` for a name that can not be one, or a hidden folder.
    pub fn of_folder(name: &OsStr) -> Option<SessionId> {
        let name = name.to_str()?;
        if name.starts_with('.') {
            return None;
        }
        SessionId::adopt(name).ok()
    }

    /// A new id: `<date>_<task>`, in Unicode's composed form. `force` allows one that is too long.
    ///
    /// # Errors
    /// A usage error that says what the convention wants.
    pub fn compose(date: jiff::civil::Date, task: &str, force: bool) -> Result<SessionId> {
        let task: String = task.nfc().collect();
        if task.is_empty() {
            return Err(Error::usage("a session needs a task in its name"));
        }
        if date_of(&task).is_some() {
            return Err(Error::usage(format!(
                "`{}` begins with a date already",
                human::name(&task)
            ))
            .hint("give the task alone; the date is put before it (--date sets another day)"));
        }
        if let Some(bad) = task.chars().find(|c| !is_task_character(*c)) {
            let shown = human::name(&task).into_owned();
            let bad = human::name(&bad.to_string()).into_owned();
            return Err(Error::usage(format!(
                "`{bad}` can not stand in a session's name: `{shown}`"
            ))
            .hint(format!(
                "letters and digits of any script, `_` and `-` can: `{}`",
                mended(&task)
            )));
        }
        let id = format!("{}_{task}", date.strftime("%Y%m%d"));
        let length = id.chars().count();
        if length > LONGEST_NEW && !force {
            return Err(Error::usage(format!(
                "`{id}` has {length} characters, {LONGEST_NEW} are the limit: completion and listings suffer from longer names"
            ))
            .hint("choose a shorter task, or allow it with --force"));
        }
        SessionId::adopt(&id).map_err(|e| Error::usage(e.to_string()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The day in the name, when it begins with one.
    pub fn date(&self) -> Option<jiff::civil::Date> {
        date_of(&self.0)
    }

    /// Whether it keeps the convention for new ids; `check` calls what does not `bad-name`.
    pub fn follows_convention(&self) -> bool {
        self.date().is_some()
            && self.0.chars().count() <= LONGEST_NEW
            && self.0[9..].chars().all(is_task_character)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The form in which two names are the same to filesystems that ignore case or Unicode form.
pub fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// The date of `YYYYMMDD_…` with something after it.
fn date_of(name: &str) -> Option<jiff::civil::Date> {
    let (date, task) = name.split_once('_')?;
    if date.len() != 8 || !date.bytes().all(|b| b.is_ascii_digit()) || task.is_empty() {
        return None;
    }
    // Eight ASCII digits, as was just checked.
    let part = |range: std::ops::Range<usize>| date[range].parse::<i16>().ok();
    let (month, day) = (part(4..6)?, part(6..8)?);
    jiff::civil::Date::new(part(0..4)?, month as i8, day as i8).ok()
}

fn is_task_character(c: char) -> bool {
    // Marks belong to the letters of many scripts (Devanagari, Thai, Arabic).
    c.is_alphanumeric() || matches!(c, '_' | '-') || is_combining_mark(c)
}

/// The task with what can not stand in a name replaced.
fn mended(task: &str) -> String {
    let mended: String = task
        .trim()
        .chars()
        .map(|c| if is_task_character(c) { c } else { '_' })
        .collect();
    mended.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(task: &str) -> Result<SessionId> {
        SessionId::compose(jiff::civil::date(2024, 6, 3), task, false)
    }

    #[test]
    fn new_ids_keep_the_convention() {
        for task in ["crawler", "数据清洗", "周报-2", "हिन्दी", "task_01"] {
            let id = new(task).unwrap();
            assert!(id.follows_convention(), "{id}");
            assert_eq!(id.date(), Some(jiff::civil::date(2024, 6, 3)));
        }
        // 9 + 21 characters, of three bytes each.
        assert!(new(&"数".repeat(21)).is_ok());
        let error = new(&"数".repeat(22)).unwrap_err();
        assert!(error.to_string().contains("31 characters"), "{error}");
        let forced = SessionId::compose(jiff::civil::date(2024, 6, 3), &"a".repeat(60), true);
        assert!(!forced.unwrap().follows_convention());
        // Forced, but no name can be so long.
        assert!(SessionId::compose(jiff::civil::date(2024, 6, 3), &"a".repeat(192), true).is_err());
    }

    #[test]
    fn what_is_refused_says_what_would_do() {
        let error = new("my task / 2").unwrap_err();
        assert!(error.hints()[0].contains("`my_task___2`"), "{error:?}");
        for bad in ["", "a.b", "a\u{1b}b", "20240603_crawler", "..", "a/b"] {
            assert!(new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn adopted_ids_are_any_single_component() {
        for good in ["my session (1)", "a\nb", "-rf", "数据", &"x".repeat(200)] {
            assert!(SessionId::adopt(good).is_ok(), "{good:?}");
        }
        for bad in ["", ".", "..", "a/b", "../../etc", "a\0", &"x".repeat(201)] {
            assert!(SessionId::adopt(bad).is_err(), "{bad:?}");
        }
        assert!(SessionId::of_folder(OsStr::new(".stversions")).is_none());
        for odd in [
            "20241301_x",
            "20240603_",
            "20240603",
            "20240603_a b",
            "２０２４0603_x",
        ] {
            assert!(
                !SessionId::adopt(odd).unwrap().follows_convention(),
                "{odd}"
            );
        }
    }

    #[test]
    fn composed_and_decomposed_are_one_name() {
        assert_eq!(new("e\u{301}tude").unwrap(), new("\u{e9}tude").unwrap());
        assert_eq!(folded("E\u{301}tude"), folded("\u{e9}TUDE"));
    }
}
