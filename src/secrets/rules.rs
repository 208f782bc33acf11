//! All rules: those of the program, and those of a person.

use std::collections::HashSet;
use std::path::Path;

use toml::Spanned;

use super::allowlist::Allowlist;
use super::compile::{self, Rule};
use super::format::{self, File, Wrong};
use super::keywords::Keywords;
use crate::base::{Error, Kind, Result, human};
use crate::disk;

/// The rules of the program.
const BUILT_IN: &str = include_str!("rules.toml");

/// What a file of rules may hold at most.
const LIMIT: u64 = 4 << 20;

/// What is looked for: compiled, to be shared by all threads.
#[derive(Debug)]
pub struct Rules {
    /// Those of a person first. Of two that find the same the earlier one wins, so that a vague one stands last.
    pub(super) rules: Vec<Rule>,
    pub(super) allowlists: Vec<General>,
    pub(super) keywords: Keywords,
    /// Of the texts that they were read from.
    pub(super) digest: disk::Digest,
}

/// An allowlist of the whole file.
#[derive(Debug)]
pub(super) struct General {
    pub allowlist: Allowlist,
    /// For which rules; `None` for all.
    pub targets: Option<HashSet<String>>,
}

impl Rules {
    /// The built-in rules, and those of a file of the person's own in the format of gitleaks.
    ///
    /// # Errors
    /// A file that is not there or can not be read, or a rule that makes no sense, with its line and its id.
    pub fn load(own: Option<&Path>) -> Result<Rules> {
        let Some(path) = own else {
            return Rules::combine(None);
        };
        let content = disk::read_small(path, LIMIT)?.ok_or_else(|| {
            Error::failed("can not find the file of secret rules")
                .at(path)
                .hint("put it there, or change `rules` in [secrets] of wbhome.toml")
        })?;
        let text = String::from_utf8(content).map_err(|e| {
            let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            Error::failed(format!("line {} is not UTF-8 in", line(valid)))
                .at(path)
                .hint("save the file as UTF-8")
        })?;
        Rules::combine(Some((path, &text)))
    }

    fn combine(own: Option<(&Path, &str)>) -> Result<Rules> {
        let flawed = |wrong: Wrong| {
            let line = line(&BUILT_IN.as_bytes()[..wrong.at]);
            let what = format!("line {line} of the built-in secret rules: {}", wrong.why);
            Error::new(Kind::Bug, what)
        };
        let mut built_in = format::parse(BUILT_IN).map_err(flawed)?;
        let mut own_rules = Vec::new();
        let mut allowlists = Vec::new();
        if let Some((path, text)) = own {
            let wrong = |wrong: Wrong| explained(path, text, &wrong);
            let mut file = format::parse(text).map_err(wrong)?;
            own_rules = join(&mut built_in, &mut file).map_err(wrong)?;
            allowlists = general(&file, &built_in, &own_rules).map_err(wrong)?;
        }
        let mut rules = own_rules;
        allowlists.extend(general(&built_in, &built_in, &rules).map_err(flawed)?);
        for rule in &built_in.rules {
            rules.push(Rule::compile(rule, true).map_err(flawed)?);
        }
        let own_text = own.map_or(String::new(), |(_, text)| format!("\0{text}"));
        Ok(Rules {
            digest: disk::digest(format!("{BUILT_IN}{own_text}").as_bytes()),
            keywords: Keywords::new(&rules)?,
            rules,
            allowlists,
        })
    }
}

/// Lets a person's file change the built-in rules as it says, and compiles the rules that are its own.
fn join(built_in: &mut File, file: &mut File) -> Result<Vec<Rule>, Wrong> {
    let known: HashSet<String> = ids(built_in).map(str::to_owned).collect();
    for disabled in &file.extend.disabled_rules {
        if !known.contains(disabled.get_ref()) {
            return Err(unknown("disabledRules", disabled));
        }
    }
    let disabled: HashSet<&String> = file
        .extend
        .disabled_rules
        .iter()
        .map(Spanned::get_ref)
        .collect();
    let all = file.extend.use_default.unwrap_or(true);
    built_in.rules.retain(|rule| {
        all && !compile::id(rule.get_ref()).is_some_and(|id| disabled.contains(&id.to_owned()))
    });
    if !all {
        built_in.allowlists.clear();
    }
    let mut seen = HashSet::new();
    let mut own = Vec::new();
    for rule in &mut file.rules {
        if let Some(id) = rule
            .get_ref()
            .id
            .as_ref()
            .filter(|id| !seen.insert(id.get_ref().clone()))
        {
            let why = format!("a second rule \"{}\"", human::name(id.get_ref()));
            return Err(Wrong::new(id.span().start, why, "give it another `id`"));
        }
        let id = compile::id(rule.get_ref());
        let same = built_in
            .rules
            .iter()
            .position(|b| id.is_some() && compile::id(b.get_ref()) == id);
        if let Some(same) = same {
            complete(rule.get_mut(), built_in.rules.remove(same).into_inner());
        }
        own.push(Rule::compile(rule, false)?);
    }
    Ok(own)
}

/// A rule with the id of a built-in one is that rule, with what it says itself instead; keywords and allowlists add up.
fn complete(rule: &mut format::Rule, base: format::Rule) {
    rule.description = rule.description.take().or(base.description);
    rule.entropy = rule.entropy.or(base.entropy);
    rule.path = rule.path.take().or(base.path);
    if rule.regex.is_none() {
        rule.regex = base.regex;
        rule.secret_group = rule.secret_group.take().or(base.secret_group);
    }
    rule.keywords.extend(base.keywords);
    rule.allowlists.extend(base.allowlists);
    rule.allowlists.extend(base.allowlist);
}

/// The allowlists at the top of a file.
fn general(file: &File, built_in: &File, own: &[Rule]) -> Result<Vec<General>, Wrong> {
    let known: HashSet<&str> = ids(built_in)
        .chain(own.iter().map(|r| r.id.as_str()))
        .collect();
    let mut compiled = Vec::new();
    for allow in file.allowlist.iter().chain(&file.allowlists) {
        let targets = &allow.get_ref().target_rules;
        if let Some(target) = targets
            .iter()
            .find(|t| !known.contains(t.get_ref().as_str()))
        {
            return Err(unknown("targetRules", target));
        }
        compiled.push(General {
            allowlist: Allowlist::compile(allow)?,
            targets: match targets.as_slice() {
                [] => None,
                some => Some(some.iter().map(|t| t.get_ref().clone()).collect()),
            },
        });
    }
    Ok(compiled)
}

fn ids(file: &File) -> impl Iterator<Item = &str> {
    file.rules
        .iter()
        .filter_map(|rule| compile::id(rule.get_ref()))
}

fn unknown(key: &str, id: &Spanned<String>) -> Wrong {
    let why = format!(
        "`{key}` names \"{}\", and there is no such rule",
        human::name(id.get_ref())
    );
    Wrong::new(
        id.span().start,
        why,
        "the ids of the built-in rules stand in docs/secrets.md",
    )
}

fn explained(path: &Path, text: &str, wrong: &Wrong) -> Error {
    let line = line(&text.as_bytes()[..wrong.at.min(text.len())]);
    let why = human::escape(&wrong.why);
    Error::failed(format!("line {line}: {why}, in"))
        .at(path)
        .hint(&wrong.hint)
}

/// The line that comes after `before`.
fn line(before: &[u8]) -> usize {
    1 + memchr::memchr_iter(b'\n', before).count()
}
