//! The places where a rule could match: one pass for the keywords of all rules.
//!
//! Most files have none. Where there are some, our own rules look at what stands around them only: `token` is on every
//! line of a session, and a session may be one line. A person's rules look at the whole file that has a keyword, as
//! gitleaks does.

use std::collections::{BTreeSet, HashMap};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::compile::Rule;
use super::view::Reading;
use crate::base::{Error, Kind, Result};

/// How far before a keyword a match of ours may begin.
const BEFORE: usize = 128;
/// How far after its beginning a match of ours may end; one that reaches so far is followed to its end.
const AFTER: usize = 512;

/// From so many bytes of keywords on, the fastest tables would take too much memory: a person's file may hold megabytes.
const MANY: usize = 64 << 10;

/// The fastest way to search that has room.
fn kind_for(words: &[String]) -> AhoCorasickKind {
    match words.iter().map(String::len).sum::<usize>() < MANY {
        true => AhoCorasickKind::DFA,
        false => AhoCorasickKind::ContiguousNFA,
    }
}

/// The keywords of all rules.
#[derive(Debug)]
pub(super) struct Keywords {
    search: AhoCorasick,
    /// The rules that have the keyword.
    rules: Vec<Vec<usize>>,
    /// Rules without keywords.
    always: Vec<usize>,
    /// Whether the places matter, rule by rule.
    near: Vec<bool>,
}

/// Where the rules are to be tried, rule by rule: ascending, apart from each other.
pub(super) type Places = Vec<Vec<(usize, usize)>>;

impl Keywords {
    pub(super) fn new(rules: &[Rule]) -> Result<Keywords> {
        let mut words: Vec<String> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut of_word: Vec<Vec<usize>> = Vec::new();
        let mut always = Vec::new();
        for (n, rule) in rules.iter().enumerate() {
            if rule.keywords.is_empty() && rule.regex.is_some() {
                always.push(n);
            }
            for word in &rule.keywords {
                let word = word.to_ascii_lowercase();
                match known.get(&word) {
                    Some(known) => of_word[*known].push(n),
                    None => {
                        known.insert(word.clone(), words.len());
                        words.push(word);
                        of_word.push(vec![n]);
                    }
                }
            }
        }
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(kind_for(&words)))
            .build(&words)
            .map_err(|e| {
                Error::new(Kind::Failed, "can not look for the keywords of the rules").because(e)
            })?;
        Ok(Keywords {
            search,
            rules: of_word,
            always,
            near: rules.iter().map(|rule| rule.near).collect(),
        })
    }

    /// Where the rules are to be tried in a reading. `whole` are the rules that look at all of it: it grows from one
    /// reading to the next.
    pub(super) fn places(&self, reading: &Reading<'_>, whole: &mut BTreeSet<usize>) -> Places {
        let text = &*reading.text;
        let mut places: Places = vec![Vec::new(); self.near.len()];
        for (from, to) in &reading.new {
            let input = Input::new(text).span(*from..*to);
            for hit in self.search.find_overlapping_iter(input) {
                for rule in &self.rules[hit.pattern().as_usize()] {
                    if !self.near[*rule] {
                        whole.insert(*rule);
                        continue;
                    }
                    let from = hit.start().saturating_sub(BEFORE);
                    let to = text.len().min(hit.start() + AFTER);
                    // Hits come in the order of their ends; one may begin a little earlier than the last.
                    match places[*rule].last_mut() {
                        Some(last) if from <= last.1 => last.1 = last.1.max(to),
                        _ => places[*rule].push((from, to)),
                    }
                }
            }
        }
        for rule in self.always.iter().chain(whole.iter()) {
            places[*rule].push((0, text.len()));
        }
        places
    }
}
