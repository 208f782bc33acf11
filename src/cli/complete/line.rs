//! The command line that is being completed. What is offered for one word may depend on the others: on `--home`, on
//! `--from trash`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::super::place;
use crate::home::{self, Home};

/// The function of `shell-init` that takes a session as `wbhome path` does.
pub(super) const GO: &str = "wbcd";

/// One line a run: the completers of an argument are called with nothing but the word.
static LINE: OnceLock<Line> = OnceLock::new();

/// The words of the line, the program's name first.
#[derive(Debug, Default)]
pub(super) struct Line {
    words: Vec<OsString>,
    /// Which of them is being typed.
    current: usize,
    goes: bool,
    describes: bool,
}

/// Notes the line, and gives it as one of `wbhome`, with the number of the word that is being typed. `describes`: whether
/// it will be shown what an offer is.
pub(super) fn note(
    mut words: Vec<OsString>,
    mut current: usize,
    describes: bool,
) -> (Vec<OsString>, usize) {
    let name = words.first().map(PathBuf::from).unwrap_or_default();
    let goes = name.file_name() == Some(OsStr::new(GO));
    if goes {
        words.splice(..1, ["wbhome".into(), "path".into()]);
        current += 1;
    }
    words.resize(words.len().max(current + 1), OsString::new());
    let line = Line {
        words: words.clone(),
        current,
        goes,
        describes,
    };
    // Only ever set once.
    let _ = LINE.set(line);
    (words, current)
}

/// The line; an empty one when none was noted.
pub(super) fn line() -> &'static Line {
    LINE.get_or_init(Line::default)
}

impl Line {
    /// Whether somebody is on the way into a folder: then files are none.
    pub fn goes(&self) -> bool {
        self.goes
    }

    /// Whether it will be shown what an offer is.
    pub fn describes(&self) -> bool {
        self.describes
    }

    /// The value of an option on the line, unless it is the one that is being typed.
    pub fn option(&self, name: &str) -> Option<OsString> {
        let mut found = None;
        for (n, word) in self.words.iter().enumerate() {
            if n == self.current {
                continue;
            }
            let text = word.to_string_lossy();
            if text == "--" && n < self.current {
                break;
            }
            match text.strip_prefix(name) {
                Some("") if n + 1 != self.current => found = self.words.get(n + 1).cloned(),
                Some(rest) if rest.starts_with('=') => found = Some(rest[1..].into()),
                _ => {}
            }
        }
        found
    }

    /// Whether an option stands on the line.
    pub fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    /// The home that the line means, as it will be found when it is run.
    pub fn home(&self) -> Option<Home> {
        let named = self
            .option("--home")
            .map(|home| (PathBuf::from(home), "--home"))
            .or_else(place::named_by_environment);
        let cwd = place::current_folder().ok()?;
        let found = home::find(named, &cwd, place::user_home().as_deref()).ok()?;
        Home::open(found.root.0, found.trust).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_wherever_they_stand() {
        let of = |text: &str, current| Line {
            words: text.split(' ').map(OsString::from).collect(),
            current,
            ..Line::default()
        };
        let home = |text: &str, current| of(text, current).option("--home");
        assert_eq!(home("wbhome --home a path x", 4), Some("a".into()));
        assert_eq!(home("wbhome path x --home a", 2), Some("a".into()));
        assert_eq!(home("wbhome --home=a=b path x", 3), Some("a=b".into()));
        assert_eq!(home("wbhome --home=a path x", 1), None);
        assert_eq!(home("wbhome path --home a", 3), None);
        assert_eq!(home("wbhome path -- --home a x", 5), None);
        assert_eq!(home("wbhome --homely a x", 3), None);
        assert!(of("wbhome restore --all x", 3).has("--all"));
    }
}
