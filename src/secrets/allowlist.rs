//! An allowlist of a rule, or of all: what looks like a secret and is none.

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use toml::Spanned;

use super::compile::{literals, regex};
use super::format::{Allow, Wrong};

/// What a match is compared with.
pub(super) struct Candidate<'a> {
    /// The file's path, as shown.
    pub path: &'a [u8],
    /// The reading in which it was found.
    pub text: &'a [u8],
    /// Where the whole match stands in it.
    pub whole: (usize, usize),
    /// Where its secret stands.
    pub secret: (usize, usize),
}

/// A compiled allowlist.
#[derive(Debug)]
pub(super) struct Allowlist {
    /// Whether each kind that is given must hold, or one of them.
    all: bool,
    target: Target,
    regexes: Vec<Regex>,
    paths: Vec<Regex>,
    stopwords: Option<AhoCorasick>,
}

/// What the regexes are compared with.
#[derive(Clone, Copy, Debug)]
enum Target {
    Secret,
    Match,
    Line,
}

/// As much of a line as is looked at, on both sides of a match: a line may be the whole file.
const LINE: usize = 1024;

impl Allowlist {
    pub(super) fn compile(allow: &Spanned<Allow>) -> Result<Allowlist, Wrong> {
        let at = allow.span().start;
        let allow = allow.get_ref();
        if allow.regexes.is_empty() && allow.paths.is_empty() && allow.stopwords.is_empty() {
            let hint = "give it `regexes`, `paths` or `stopwords`, or take it out";
            return Err(Wrong::new(at, "an allowlist that allows nothing", hint));
        }
        let all = match word(&allow.condition) {
            (_, "" | "OR" | "||") => false,
            (_, "AND" | "&&") => true,
            (at, _) => {
                let hint = "write \"OR\" (also without it) or \"AND\"";
                return Err(Wrong::new(at, "a `condition` that is not known", hint));
            }
        };
        let target = match word(&allow.regex_target) {
            (_, "" | "secret") => Target::Secret,
            (_, "match") => Target::Match,
            (_, "line") => Target::Line,
            (at, _) => {
                let hint = "write \"secret\" (also without it), \"match\" or \"line\"";
                return Err(Wrong::new(at, "a `regexTarget` that is not known", hint));
            }
        };
        let regexes = |texts: &[Spanned<String>]| {
            texts
                .iter()
                .map(regex)
                .collect::<Result<Vec<Regex>, Wrong>>()
        };
        Ok(Allowlist {
            all,
            target,
            regexes: regexes(&allow.regexes)?,
            paths: regexes(&allow.paths)?,
            stopwords: match allow.stopwords.as_slice() {
                [] => None,
                words => Some(literals(words, "stopwords")?),
            },
        })
    }

    /// Whether it says so of all that is in a file.
    pub(super) fn allows_file(&self, path: &[u8]) -> bool {
        let alone = self.regexes.is_empty() && self.stopwords.is_none();
        (alone || !self.all) && self.paths.iter().any(|regex| regex.is_match(path))
    }

    pub(super) fn allows(&self, found: &Candidate<'_>) -> bool {
        let secret = &found.text[found.secret.0..found.secret.1];
        let any = |regexes: &[Regex], text: &[u8]| regexes.iter().any(|r| r.is_match(text));
        let kinds = [
            (!self.regexes.is_empty()).then(|| any(&self.regexes, self.target.of(found))),
            (!self.paths.is_empty()).then(|| any(&self.paths, found.path)),
            self.stopwords.as_ref().map(|words| words.is_match(secret)),
        ];
        let mut given = kinds.into_iter().flatten();
        match self.all {
            true => given.all(|holds| holds),
            false => given.any(|holds| holds),
        }
    }
}

impl Target {
    fn of<'a>(self, found: &Candidate<'a>) -> &'a [u8] {
        let (from, to) = found.whole;
        match self {
            Target::Secret => &found.text[found.secret.0..found.secret.1],
            Target::Match => &found.text[from..to],
            Target::Line => {
                let before = &found.text[from.saturating_sub(LINE)..from];
                let after = &found.text[to..found.text.len().min(to + LINE)];
                let begin =
                    memchr::memrchr(b'\n', before).map_or(before.len(), |n| before.len() - n - 1);
                let end = memchr::memchr(b'\n', after).unwrap_or(after.len());
                &found.text[from - begin..to + end]
            }
        }
    }
}

/// An optional word and where it stands.
fn word(value: &Option<Spanned<String>>) -> (usize, &str) {
    match value {
        Some(word) => (word.span().start, word.get_ref()),
        None => (0, ""),
    }
}
