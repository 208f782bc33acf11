//! The model: every byte that the agents have written, and what is to be known of each session.

use std::collections::{BTreeMap, BTreeSet};

/// A file as its agent has left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One that is written as a whole: the digest of what it holds.
    Whole(blake3::Hash),
    /// One that is only appended to: all of it.
    Stream(Vec<u8>),
}

/// Where a session has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lies {
    Folder,
    Archive,
    Trash,
    /// What held it was let go of by a rule that is written down.
    Gone,
}

/// What a person has said of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    pub tags: BTreeSet<String>,
    pub title: Option<String>,
    pub project: Option<String>,
    pub sync_tag: Option<String>,
}

impl Labels {
    /// What `label` makes of them when it is told so.
    pub fn told(&mut self, args: &[String]) {
        let value = || args[1].clone();
        match args[0].as_str() {
            "--tag" => drop(self.tags.insert(value())),
            "--untag" => drop(self.tags.remove(&value())),
            "--title" => self.title = Some(value()),
            "--project" => self.project = Some(value()),
            "--no-project" => self.project = None,
            "--sync-tag" => self.sync_tag = Some(value()),
            "--no-sync-tag" => self.sync_tag = None,
            other => panic!("{other}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Session {
    pub id: String,
    /// Which of the agents writes to it.
    pub agent: usize,
    pub pieces: BTreeMap<String, Piece>,
    /// What of the last records did not fit on a full disk.
    pub unfinished: Vec<u8>,
    /// In which step each file was written last; those that were deleted stay in it.
    pub touched: BTreeMap<String, u64>,
    /// How often anything was written.
    pub version: u64,
    pub lies: Lies,
    /// Its agent does nothing, and has nothing open.
    pub rests: bool,
    /// Its agent has its log open.
    pub is_open: bool,
    /// The index has been told of it.
    pub known: bool,
    pub labels: Labels,
    pub turns: u32,
    pub artifacts: u32,
    /// So much of the beginning of its log was let go of with the oldest that was cut out.
    pub let_go: usize,
    /// When it was removed, in seconds since 1970 of the clock that jumps.
    pub removed_at: Option<i64>,
}

/// The one log of each session.
pub const LOG: &str = "logs/run.log";
/// Its records, a line of JSON each.
pub const TRANSCRIPT: &str = "context/transcript.jsonl";

impl Session {
    pub fn new(id: &str, agent: usize) -> Session {
        Session {
            id: id.to_owned(),
            agent,
            pieces: BTreeMap::new(),
            unfinished: Vec::new(),
            touched: BTreeMap::new(),
            version: 0,
            lies: Lies::Folder,
            rests: false,
            is_open: false,
            known: false,
            labels: Labels::default(),
            turns: 0,
            artifacts: 0,
            let_go: 0,
            removed_at: None,
        }
    }

    pub fn wrote(&mut self, step: u64, rel: &str, content: &[u8]) {
        let piece = Piece::Whole(blake3::hash(content));
        self.pieces.insert(rel.to_owned(), piece);
        self.touch(step, rel);
    }

    pub fn appended(&mut self, step: u64, rel: &str, content: &[u8]) {
        let piece = self.pieces.entry(rel.to_owned());
        match piece.or_insert_with(|| Piece::Stream(Vec::new())) {
            Piece::Stream(all) => all.extend_from_slice(content),
            Piece::Whole(_) => panic!("{rel} is no stream"),
        }
        self.touch(step, rel);
    }

    pub fn deleted(&mut self, step: u64, rel: &str) {
        self.pieces.remove(rel);
        self.touch(step, rel);
    }

    /// What was appended to a file so far.
    pub fn stream(&self, rel: &str) -> &[u8] {
        match self.pieces.get(rel) {
            Some(Piece::Stream(all)) => all,
            _ => &[],
        }
    }

    fn touch(&mut self, step: u64, rel: &str) {
        self.touched.insert(rel.to_owned(), step);
        self.version += 1;
    }
}

/// What is asked of the logs in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// Every line once, in its order.
    InOrder,
    /// Every line: what was packed while a cut stood still, or was left by a kill, has some twice.
    Each,
    /// There are none: they do not travel.
    AtHome,
}

/// The files of a session as they were found somewhere, by their path in it.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// What is wrong with a tree that should be a session as it is now, to the byte.
pub fn exact(tree: &Tree, session: &Session) -> Vec<String> {
    since(tree, session, session, Logs::InOrder)
}

/// What is wrong with a tree that was taken while the session was written: it must hold at least what was there `then`,
/// and nothing but what was there in between. One without logs has none because they do not travel.
pub fn since(tree: &Tree, then: &Session, now: &Session, logs: Logs) -> Vec<String> {
    let mut wrong = Vec::new();
    for (rel, before) in &then.pieces {
        let untouched = then.touched.get(rel) == now.touched.get(rel);
        match (before, now.pieces.get(rel)) {
            _ if is_log(rel) => {}
            (Piece::Whole(digest), _) if untouched => match tree.get(rel) {
                None => wrong.push(format!("{rel} is not there")),
                Some(found) if blake3::hash(found) != *digest => {
                    wrong.push(format!("{rel} differs, {} bytes", found.len()));
                }
                Some(_) => {}
            },
            (Piece::Stream(before), Some(Piece::Stream(now))) => match tree.get(rel) {
                None => wrong.push(format!("{rel} is not there")),
                Some(found) if !(found.starts_with(before) && now.starts_with(found)) => {
                    wrong.push(format!(
                        "{rel}: {} bytes, not the first {} to {} of what was written",
                        found.len(),
                        before.len(),
                        now.len()
                    ));
                }
                Some(_) => {}
            },
            // Replaced or deleted meanwhile: either is right.
            _ => {}
        }
    }
    for rel in tree.keys() {
        let ever = now.touched.contains_key(rel);
        let gone_since = now.touched.get(rel) != then.touched.get(rel);
        let known = now.pieces.contains_key(rel) || ever && gone_since;
        if !(known || is_log(rel) || is_draft(rel)) {
            wrong.push(format!("{rel} should not be there"));
        }
    }
    match logs {
        Logs::InOrder => wrong.extend(log_since(tree, then, now).err()),
        Logs::Each => wrong.extend(lines_are_there(tree, then, now.let_go).err()),
        Logs::AtHome => {
            let log = tree.keys().find(|rel| is_log(rel));
            wrong.extend(log.map(|log| format!("{log} should have stayed at home")));
        }
    }
    wrong
}

/// How much of the beginning of the log is not in a tree any more, or what is wrong with the log.
pub fn log_since(tree: &Tree, then: &Session, now: &Session) -> Result<usize, String> {
    let (before, all) = (then.stream(LOG), now.stream(LOG));
    let found = log_of(tree);
    let lost = match found.iter().position(|b| *b == b'\n') {
        // Each line is there once: its first says where in the whole it begins.
        Some(end) => find(all, &found[..=end])
            .ok_or_else(|| format!("a line of {LOG} that nobody wrote: {:?}", shown(&found)))?,
        None => all.len().max(found.len()) - found.len(),
    };
    let until = lost + found.len();
    if all.get(lost..until) != Some(&found[..]) {
        let same = found.iter().zip(&all[lost..]).take_while(|(a, b)| a == b);
        let at = same.count();
        let place = shown(&found[at.min(found.len())..]);
        return Err(format!(
            "{LOG}: what was written goes on otherwise after {at} of {} bytes: {place:?}",
            found.len()
        ));
    }
    if until < before.len() {
        return Err(format!(
            "{LOG} ends at byte {until}, though {} were written before",
            before.len()
        ));
    }
    Ok(lost)
}

/// Each line that was there `then` is in the log, or in what was cut out of it.
fn lines_are_there(tree: &Tree, then: &Session, let_go: usize) -> Result<(), String> {
    let found = log_of(tree);
    let found: BTreeSet<&[u8]> = found.split_inclusive(|b| *b == b'\n').collect();
    let wanted = then.stream(LOG);
    let mut wanted = wanted[let_go.min(wanted.len())..].split_inclusive(|b| *b == b'\n');
    match wanted.find(|line| line.ends_with(b"\n") && !found.contains(line)) {
        Some(line) => Err(format!("{LOG}: a line is nowhere: {:?}", shown(line))),
        None => Ok(()),
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned()
}

fn find(all: &[u8], line: &[u8]) -> Option<usize> {
    // A line that was let go of begins at the beginning or after a line end.
    let starts = std::iter::once(0).chain(
        all.iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .map(|(at, _)| at + 1),
    );
    starts.into_iter().find(|at| all[*at..].starts_with(line))
}

/// What was cut out of the log, the oldest first, and the log, without blank lines, which a cut leaves.
fn log_of(tree: &Tree) -> Vec<u8> {
    let mut files: BTreeMap<(String, u32), Vec<u8>> = BTreeMap::new();
    for (rel, bytes) in tree {
        let Some(rest) = rel.strip_prefix("logs/run.log-") else {
            continue;
        };
        let (stamp, ending) = rest.split_once('.').unwrap_or((rest, ""));
        let (stamp, n) = stamp.split_once('_').unwrap_or((stamp, "1"));
        let plain = match ending {
            "zst" => zstd::stream::decode_all(&bytes[..]).unwrap_or_default(),
            _ => bytes.clone(),
        };
        // After a kill it may be there twice, plain and compressed.
        let n = n.parse().unwrap_or(u32::MAX);
        let place = files.entry((stamp.to_owned(), n)).or_default();
        if place.len() < plain.len() {
            *place = plain;
        }
    }
    let live = tree.get(LOG).map(Vec::as_slice);
    let mut all = Vec::new();
    for file in files.values().map(Vec::as_slice).chain(live) {
        for line in file.split_inclusive(|b| *b == b'\n') {
            if !(line.ends_with(b"\n") && line.iter().all(u8::is_ascii_whitespace)) {
                all.extend_from_slice(line);
            }
        }
    }
    all
}

/// How many were cut out of the log and are there.
pub fn cut_out(tree: &Tree) -> usize {
    let names = tree.keys().filter_map(|rel| {
        let rest = rel.strip_prefix("logs/run.log-")?;
        Some(rest.split('.').next().unwrap_or(rest))
    });
    names.collect::<BTreeSet<_>>().len()
}

pub fn is_log(rel: &str) -> bool {
    rel.starts_with("logs/run.log")
}

/// What an agent was writing under another name when its session went away.
fn is_draft(rel: &str) -> bool {
    rel.rsplit('/')
        .next()
        .is_some_and(|n| n.starts_with("草稿-"))
}
