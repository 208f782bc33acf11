//! One file: where the secrets are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use regex::bytes::Regex;

use super::allowlist::Candidate;
use super::compile::Rule;
use super::view::Reading;
use super::{Match, Rules, entropy, found, view};

/// A secret, while it is not known yet whether another rule knows it better.
pub(super) struct Hit {
    rule: usize,
    reading: usize,
    /// In the reading; at last, in the text.
    pub from: usize,
    to: usize,
    secret: Vec<u8>,
}

impl Rules {
    /// The secrets in a file, each once, where it stands first; in order of place. `path` is the one that rules about
    /// paths look at, and is not opened.
    ///
    /// Of UTF-16 the line and the column are those of the text.
    pub fn scan(&self, path: &Path, content: &[u8]) -> Vec<Match> {
        if self.pass_by(path) {
            return Vec::new();
        }
        let text = view::text(content);
        let mut secrets = Secrets::new(usize::MAX);
        let mut place = Place::default();
        let hits = self.hits(path, &text, &mut BTreeSet::new());
        secrets.gather(&text, &mut place, hits);
        self.told(path, secrets)
    }

    /// Whether the files of this path are not looked at.
    pub(super) fn pass_by(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_encoded_bytes();
        let general = self.allowlists.iter();
        general
            .filter(|general| general.targets.is_none())
            .any(|general| general.allowlist.allows_file(path))
    }

    /// Where the secrets stand in a text, in order and apart from each other. `whole` are the rules of a person that
    /// look at all of it because a keyword was there: it grows.
    pub(super) fn hits(&self, path: &Path, text: &[u8], whole: &mut BTreeSet<usize>) -> Vec<Hit> {
        let path = path.as_os_str().as_encoded_bytes();
        let readings = view::readings(text);
        let mut hits = Vec::new();
        for (reading, read) in readings.iter().enumerate() {
            let text = &*read.text;
            let places = self.keywords.places(read, whole);
            for (rule, places) in places.iter().enumerate() {
                if !places.is_empty() {
                    self.try_rule(rule, path, text, places, |from, to| {
                        hits.push(Hit {
                            rule,
                            reading,
                            from,
                            to,
                            secret: text[from..to].to_vec(),
                        });
                    });
                }
            }
        }
        lead_back(&readings, &mut hits);
        apart(hits)
    }

    /// What is reported: files that are secret as such, then what was found inside.
    pub(super) fn told(&self, path: &Path, secrets: Secrets) -> Vec<Match> {
        let path = path.as_os_str().as_encoded_bytes();
        let mut matches: Vec<Match> = self.files_as_such(path).collect();
        matches.extend(secrets.kept.into_iter().map(|secret| {
            let rule = &self.rules[secret.rule];
            Match {
                rule: rule.id.clone(),
                description: rule.description.clone(),
                line: secret.place.line,
                column: secret.place.column,
                shown: found::masked(&secret.content),
                digest: found::digest(&rule.id, &secret.content),
            }
        }));
        matches
    }

    /// Runs a rule where it could match.
    fn try_rule(
        &self,
        rule: usize,
        path: &[u8],
        text: &[u8],
        places: &[(usize, usize)],
        mut found: impl FnMut(usize, usize),
    ) {
        let rule = &self.rules[rule];
        let Some(regex) = &rule.regex else {
            return;
        };
        if rule.path.as_ref().is_some_and(|only| !only.is_match(path)) {
            return;
        }
        each_match(rule, regex, text, places, |whole, secret| {
            let candidate = Candidate {
                path,
                text,
                whole,
                secret,
            };
            let (from, to) = secret;
            if from < to
                && (rule.entropy <= 0.0 || entropy::bits(&text[from..to]) > rule.entropy)
                && !self.allowed(rule, &candidate)
            {
                found(from, to);
            }
        });
    }

    /// Whether an allowlist says that it is none.
    fn allowed(&self, rule: &Rule, candidate: &Candidate<'_>) -> bool {
        let general = self.allowlists.iter().filter(|general| {
            let targets = general.targets.as_ref();
            targets.is_none_or(|targets| targets.contains(&rule.id))
        });
        rule.allowlists
            .iter()
            .chain(general.map(|general| &general.allowlist))
            .any(|allowlist| allowlist.allows(candidate))
    }

    /// Rules that say of a whole file, by its path, that it is secret.
    fn files_as_such(&self, path: &[u8]) -> impl Iterator<Item = Match> {
        let rules = self.rules.iter().filter(|rule| rule.regex.is_none());
        rules
            .filter(move |rule| rule.path.as_ref().is_some_and(|only| only.is_match(path)))
            .filter(move |rule| {
                let candidate = Candidate {
                    path,
                    text: path,
                    whole: (0, path.len()),
                    secret: (0, path.len()),
                };
                !self.allowed(rule, &candidate)
            })
            .map(move |rule| Match {
                rule: rule.id.clone(),
                description: rule.description.clone(),
                line: 1,
                column: 1,
                shown: "the whole file".to_owned(),
                digest: found::digest(&rule.id, path),
            })
    }
}

/// The matches of a rule in some places of a text: the whole, and its secret.
fn each_match(
    rule: &Rule,
    regex: &Regex,
    text: &[u8],
    places: &[(usize, usize)],
    mut found: impl FnMut((usize, usize), (usize, usize)),
) {
    let mut groups = regex.capture_locations();
    let mut at = 0;
    for (from, to) in places {
        let mut end = *to;
        at = at.max(*from);
        while at <= end {
            // The text before the place is still seen, by `\b` for one.
            let Some(whole) = regex.captures_read_at(&mut groups, &text[..end], at) else {
                break;
            };
            if whole.end() == end && end < text.len() {
                // It may go on. Twice as far each time, so that a long one is not read over and over.
                at = whole.start();
                end = text.len().min(end + 2 * (end - at) + 1);
                continue;
            }
            let secret = match rule.group {
                Some(group) => groups.get(group),
                None => (1..groups.len())
                    .filter_map(|group| groups.get(group))
                    .find(|(from, to)| from < to)
                    .or(groups.get(0)),
            };
            if let Some((from, to)) = secret {
                // How a key ends in the file does not make it another one.
                let to = from + text[from..to].trim_ascii_end().len();
                found((whole.start(), whole.end()), (from, to));
            }
            at = whole.end().max(whole.start() + 1);
        }
    }
}

/// Turns the places in deeper readings into places in the text.
fn lead_back(readings: &[Reading<'_>], hits: &mut [Hit]) {
    for deeper in (1..readings.len()).rev() {
        let mut offsets: Vec<&mut usize> = hits
            .iter_mut()
            .filter(|hit| hit.reading >= deeper)
            .flat_map(|hit| [&mut hit.from, &mut hit.to])
            .collect();
        offsets.sort_unstable();
        view::locate(&readings[deeper - 1].text, &mut offsets);
    }
}

/// Of hits that overlap, the one of the best rule; then the longest, then that of the plainest reading. In order.
fn apart(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| {
        (
            hit.rule,
            std::cmp::Reverse(hit.to - hit.from),
            hit.reading,
            hit.from,
        )
    });
    let mut kept: BTreeMap<usize, Hit> = BTreeMap::new();
    for hit in hits {
        let before = kept.range(..hit.to).next_back();
        if before.is_none_or(|(_, before)| before.to <= hit.from) {
            kept.insert(hit.from, hit);
        }
    }
    kept.into_values().collect()
}

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    line: u64,
    /// In characters.
    column: u64,
}

impl Default for Place {
    fn default() -> Place {
        Place { line: 1, column: 1 }
    }
}

impl Place {
    /// Goes past a text.
    pub(super) fn pass(&mut self, text: &[u8]) {
        let in_line = match memchr::memrchr(b'\n', text) {
            Some(end) => {
                self.line += memchr::memchr_iter(b'\n', text).count() as u64;
                self.column = 1;
                &text[end + 1..]
            }
            None => text,
        };
        // Bytes that go on with a character are not counted.
        self.column += in_line.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
    }
}

/// A secret and where it stands first.
struct Secret {
    /// The best rule that has found it.
    rule: usize,
    place: Place,
    content: Vec<u8>,
}

/// The secrets of a file, each once, in order of place.
pub(super) struct Secrets {
    kept: Vec<Secret>,
    known: HashMap<Vec<u8>, usize>,
    most: usize,
}

impl Secrets {
    /// None yet; of more than `most` the first ones are kept.
    pub(super) fn new(most: usize) -> Secrets {
        Secrets {
            kept: Vec::new(),
            known: HashMap::new(),
            most,
        }
    }

    /// Whether there are as many as are kept.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= self.most
    }

    /// Takes the hits in a piece of text that begins at `place`, which goes on to the last of them. They are in order.
    pub(super) fn gather(&mut self, text: &[u8], place: &mut Place, hits: Vec<Hit>) {
        let mut at = 0;
        for hit in hits {
            place.pass(&text[at..hit.from]);
            at = hit.from;
            match self.known.get(&hit.secret) {
                Some(known) => {
                    let known = &mut self.kept[*known];
                    known.rule = known.rule.min(hit.rule);
                }
                None if !self.is_full() => {
                    self.known.insert(hit.secret.clone(), self.kept.len());
                    self.kept.push(Secret {
                        rule: hit.rule,
                        place: *place,
                        content: hit.secret,
                    });
                }
                None => {}
            }
        }
    }
}
