//! A rule, ready to run.
//!
//! gitleaks is written in Go, where `\w`, `\d`, `\s` and `\b` mean ASCII only. So they do here, which is also what
//! keeps a search fast in Chinese text; a regex that can not be read so (`[密钥]`, `\p{Han}`) is taken as Unicode.

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};
use toml::Spanned;

use super::allowlist::Allowlist;
use super::format::{self, Wrong};
use crate::base::human;

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub id: String,
    pub description: String,
    /// `None`: the path alone says that a file is secret.
    pub regex: Option<Regex>,
    /// The group of the regex that is the secret; without it the first that is not empty, or the whole match.
    pub group: Option<usize>,
    /// A secret has more than so many bits per character.
    pub entropy: f64,
    /// One of them is in each file that the rule matches in; none: any file.
    pub keywords: Vec<String>,
    /// Of which files.
    pub path: Option<Regex>,
    pub allowlists: Vec<Allowlist>,
    /// Whether a match is never far from a keyword: ours are written so.
    pub near: bool,
}

impl Rule {
    pub(super) fn compile(rule: &Spanned<format::Rule>, near: bool) -> Result<Rule, Wrong> {
        let at = rule.span().start;
        let rule = rule.get_ref();
        let Some(id) = id(rule) else {
            let hint = "give it an `id`: it is what a finding is reported by";
            return Err(Wrong::new(at, "a rule without `id`", hint));
        };
        compile(rule, id, at, near).map_err(|wrong| Wrong {
            why: format!("the rule \"{}\": {}", human::name(id), wrong.why),
            ..wrong
        })
    }
}

/// The id that a rule has, when it has one.
pub(super) fn id(rule: &format::Rule) -> Option<&str> {
    let id = rule.id.as_ref()?.get_ref();
    (!id.is_empty()).then_some(id)
}

fn compile(rule: &format::Rule, id: &str, at: usize, near: bool) -> Result<Rule, Wrong> {
    if rule.regex.is_none() && rule.path.is_none() {
        let hint = "give it a `regex`, or a `path` for files that are secret as such";
        return Err(Wrong::new(at, "neither `regex` nor `path`", hint));
    }
    let regex_of = |text: &Option<Spanned<String>>| text.as_ref().map(regex).transpose();
    let regex = regex_of(&rule.regex)?;
    let group = match &rule.secret_group {
        Some(group) if *group.get_ref() > 0 => {
            let groups = regex.as_ref().map_or(0, |r| r.captures_len() - 1);
            if *group.get_ref() > groups {
                let at = group.span().start;
                let why = format!(
                    "`secretGroup` {}, and the regex has {groups}",
                    group.get_ref()
                );
                let hint = "count the opening brackets of the regex, without `(?:`";
                return Err(Wrong::new(at, why, hint));
            }
            Some(*group.get_ref())
        }
        _ => None,
    };
    if let Some(empty) = rule.keywords.iter().find(|word| word.get_ref().is_empty()) {
        let hint = "leave `keywords` out for a rule that is tried on every file";
        return Err(Wrong::new(empty.span().start, "an empty keyword", hint));
    }
    let allowlists = rule.allowlist.iter().chain(&rule.allowlists);
    Ok(Rule {
        id: id.to_owned(),
        description: rule.description.clone().unwrap_or_else(|| id.to_owned()),
        regex,
        group,
        entropy: rule.entropy.unwrap_or(0.0),
        keywords: rule.keywords.iter().map(|w| w.get_ref().clone()).collect(),
        path: regex_of(&rule.path)?,
        allowlists: allowlists
            .map(Allowlist::compile)
            .collect::<Result<_, _>>()?,
        near,
    })
}

/// A regex over bytes.
pub(super) fn regex(text: &Spanned<String>) -> Result<Regex, Wrong> {
    let build = |unicode| RegexBuilder::new(text.get_ref()).unicode(unicode).build();
    build(false).or_else(|_| build(true)).map_err(|e| {
        // The regex, and a mark below it, are for a screen; the reason stands on the last line.
        let whole = e.to_string();
        let reason = whole.lines().last().unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        let why = format!("a regex that can not be read ({})", human::escape(reason));
        let hint = "the syntax is that of https://docs.rs/regex: as in Go, without look-around and back-references";
        Wrong::new(text.span().start, why, hint)
    })
}

/// Words that are looked for as they are, in any case.
pub(super) fn literals(words: &[Spanned<String>], key: &str) -> Result<AhoCorasick, Wrong> {
    let at = words.first().map_or(0, |word| word.span().start);
    if let Some(empty) = words.iter().find(|word| word.get_ref().is_empty()) {
        let why = format!("an empty text in `{key}`");
        return Err(Wrong::new(
            empty.span().start,
            why,
            "take it out: it is in every secret",
        ));
    }
    let built = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words.iter().map(|word| word.get_ref()));
    built.map_err(|e| Wrong::new(at, e.to_string(), format!("shorten `{key}`")))
}
