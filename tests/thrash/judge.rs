//! The invariants: what must hold after each step, whatever was killed, and whoever went on writing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::found::{self, Facts};
use crate::support::cold::{is_snapshot, packs_of, read};
use crate::support::home::tool;
use crate::written::{self, LOG, Lies, Logs, Piece, Session, TRANSCRIPT, Tree};

/// What agents have written, by session, at one moment.
pub type Sessions = BTreeMap<String, Session>;

/// So many cut logs are kept.
pub const KEEP_LOGS: usize = 3;
/// `[backup] keep`, in seconds.
pub const KEEP: i64 = 2 * 86_400;
/// `[backup] keep_deleted`, in seconds.
pub const KEEP_DELETED: i64 = 20 * 86_400;

#[derive(Default)]
pub struct Judge {
    /// What was compared and can not have changed since: path, its facts, and the version of the session.
    compared: BTreeMap<PathBuf, (Facts, u64)>,
    /// The digests of packs.
    digests: BTreeMap<PathBuf, (Facts, String)>,
    /// What the newest good snapshot of a store must hold, at least.
    secured: BTreeMap<PathBuf, Sessions>,
    /// How many trees were compared with what was written.
    pub compared_trees: u64,
}

/// Where a session lies.
pub fn lies(home: &Path, id: &str) -> Lies {
    if home.join("sessions").join(id).is_dir() {
        Lies::Folder
    } else if archive(home, id).is_file() {
        Lies::Archive
    } else if !found::in_trash(home, id).is_empty() {
        Lies::Trash
    } else {
        Lies::Gone
    }
}

fn archive(home: &Path, id: &str) -> PathBuf {
    home.join("archive").join(format!("{id}.tar.zst"))
}

impl Judge {
    /// Each byte of a session is where it lies. `may_let_go`: the oldest cut logs may have gone just now.
    pub fn bytes(&mut self, home: &Path, session: &mut Session, may_let_go: bool) -> Vec<String> {
        let (at, tree) = match session.lies {
            Lies::Folder => {
                let at = home.join("sessions").join(&session.id);
                let tree = found::folder(&at);
                (at, tree)
            }
            Lies::Archive => {
                let at = archive(home, &session.id);
                if self.is_compared(&at, session.version) {
                    return Vec::new();
                }
                let tree = found::pack(&at);
                (at, tree)
            }
            Lies::Trash => {
                // An older act may hold what another command has put away of it.
                let acts = found::in_trash(home, &session.id);
                let whole = acts.iter().find(|act| {
                    self.is_compared(act, session.version)
                        || written::exact(&found::folder(act), session).is_empty()
                });
                let at = whole.unwrap_or(&acts[0]).clone();
                let tree = found::folder(&at);
                (at, tree)
            }
            Lies::Gone => return Vec::new(),
        };
        self.compared_trees += 1;
        let mut wrong = written::exact(&tree, session);
        if let Ok(lost) = written::log_since(&tree, session, session) {
            let kept = written::cut_out(&tree);
            let right =
                lost == session.let_go || may_let_go && lost > session.let_go && kept >= KEEP_LOGS;
            if !right {
                wrong.push(format!(
                    "{LOG}: {lost} bytes of its beginning are gone, {} were let go of; {kept} cut logs are there",
                    session.let_go
                ));
            }
            session.let_go = lost;
        }
        if wrong.is_empty() {
            self.note(&at, session.version);
        }
        told(&at, wrong)
    }

    fn is_compared(&self, at: &Path, version: u64) -> bool {
        let known = self.compared.get(at);
        known.is_some_and(|known| found::facts(at) == Some(known.0) && known.1 == version)
    }

    fn note(&mut self, at: &Path, version: u64) {
        if let Some(facts) = found::facts(at) {
            self.compared.insert(at.to_owned(), (facts, version));
        }
    }

    /// Every snapshot of a store can be read, and every pack that it names is there as it says.
    pub fn snapshots(&mut self, store: &Path) -> Vec<String> {
        let mut wrong = Vec::new();
        for path in found::names(&store.join("snapshots")) {
            if !is_snapshot(&path) {
                continue;
            }
            for (file, bytes, blake3) in packs_of(&read(&path)) {
                let at = store.join(&file);
                let Some(facts) = found::facts(&at) else {
                    wrong.push(format!("{}: {file} is not there", path.display()));
                    continue;
                };
                let known = self.digests.get(&at).filter(|known| known.0 == facts);
                let digest = match known {
                    Some((_, digest)) => digest.clone(),
                    None => crate::support::digest(&at),
                };
                if facts.1 != bytes || digest != blake3 {
                    wrong.push(format!("{}: {file} is another", path.display()));
                }
                self.digests.insert(at, (facts, digest));
            }
        }
        wrong
    }

    /// The snapshot that was just made holds each session at least as it was before. It is what has to be there from now
    /// on.
    pub fn backed_up(
        &mut self,
        store: &Path,
        then: &Sessions,
        now: &Sessions,
        clock: i64,
    ) -> Vec<String> {
        let mut secured = Sessions::new();
        for (id, before) in then {
            let stayed = now.get(id).is_some_and(|now| now.lies == before.lies);
            if stayed && matches!(before.lies, Lies::Folder | Lies::Archive) {
                secured.insert(id.clone(), before.clone());
            } else if let Some(former) = self.secured.get(store).and_then(|all| all.get(id)) {
                secured.insert(id.clone(), former.clone());
            }
        }
        self.secured.insert(store.to_owned(), secured);
        self.still_backed_up(store, then, now, clock)
    }

    /// Whatever was in a good snapshot is in the newest one, unless its session was removed long ago: now, or before the
    /// step, in which a backup may have looked before the session came back.
    pub fn still_backed_up(
        &mut self,
        store: &Path,
        before: &Sessions,
        now: &Sessions,
        clock: i64,
    ) -> Vec<String> {
        let Some(snapshot) = found::newest_snapshot(store) else {
            return match self.secured.get(store).is_some_and(|all| !all.is_empty()) {
                true => vec![format!("{}: no snapshot is left", store.display())],
                false => Vec::new(),
            };
        };
        let mut secured = self.secured.remove(store).unwrap_or_default();
        let mut wrong = Vec::new();
        secured.retain(|id, then| {
            let now = &now[id];
            let before = before.get(id);
            let may_go = may_go(now, clock) || before.is_some_and(|before| may_go(before, clock));
            if !may_go {
                wrong.extend(self.held(store, &snapshot, then, now));
            }
            !may_go
        });
        self.secured.insert(store.to_owned(), secured);
        wrong
    }

    fn held(
        &mut self,
        store: &Path,
        snapshot: &Value,
        then: &Session,
        now: &Session,
    ) -> Vec<String> {
        let Some(item) = crate::support::cold::item(snapshot, &then.id) else {
            return vec![format!(
                "{}: {} is not in the newest snapshot",
                store.display(),
                then.id
            )];
        };
        // A folder counts; of a session that is archived the archive is the newest there is.
        let file = item["newest"]["file"].as_str().unwrap();
        let at = store.join(file);
        if self.is_compared(&at, then.version) {
            return Vec::new();
        }
        if !at.is_file() {
            return vec![format!("{}: {file} is not there", store.display())];
        }
        let tree = found::pack(&at);
        self.compared_trees += 1;
        let logs = match item["newest"]["restless"].as_u64() {
            Some(0) => Logs::InOrder,
            _ => Logs::Each,
        };
        let wrong = written::since(&tree, then, now, logs);
        if wrong.is_empty() {
            self.note(&at, then.version);
        }
        told(&at, wrong)
    }
}

/// Whether a session was removed so long ago that a store may let go of it.
fn may_go(session: &Session, clock: i64) -> bool {
    // A moment before it may go: a clock that was set back was behind when it was removed.
    let removed = session.removed_at.filter(|_| session.lies > Lies::Archive);
    removed.is_some_and(|at| clock.saturating_sub(at) > KEEP_DELETED - 5 * 86_400)
}

/// Only snapshots that were superseded long enough ago have gone, and never the newest.
pub fn pruned(before: &[PathBuf], after: &[PathBuf], clock: i64) -> Vec<String> {
    let moment = |path: &Path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
        let stamp = stem.split('-').next().unwrap();
        let at = jiff::fmt::strtime::parse("%Y%m%dT%H%M%S%z", stamp.replace('Z', "+0000"));
        at.unwrap().to_timestamp().unwrap().as_second()
    };
    let mut wrong = Vec::new();
    let before: Vec<&PathBuf> = before.iter().filter(|path| is_snapshot(path)).collect();
    for (n, path) in before.iter().enumerate() {
        if after.contains(path) {
            continue;
        }
        let next = before.get(n + 1).map(|next| moment(next));
        if next.is_none_or(|next| clock - next < KEEP) {
            wrong.push(format!("{} has gone too early", path.display()));
        }
    }
    wrong
}

/// The index knows each session, where it lies, and what was said of it.
pub fn index(home: &Path, sessions: &Sessions) -> Vec<String> {
    let entries = found::index(home);
    let mut wrong = Vec::new();
    for session in sessions.values().filter(|session| session.known) {
        let Some(entry) = entries.get(&session.id) else {
            wrong.push(format!("the index does not know {}", session.id));
            continue;
        };
        let status = match session.lies {
            Lies::Folder => "active",
            Lies::Archive => "archived",
            Lies::Trash | Lies::Gone => "removed",
        };
        if entry["status"] != status {
            wrong.push(format!(
                "{}: {} in the index, not {status}",
                session.id, entry["status"]
            ));
        }
        let labels = labels(entry);
        if labels != session.labels {
            wrong.push(format!(
                "{}: {labels:?}, not {:?}",
                session.id, session.labels
            ));
        }
        if let (Lies::Folder, Some(project)) = (session.lies, &session.labels.project) {
            let view = home.join("projects").join(project).join(&session.id);
            if view.canonicalize().ok()
                != home.join("sessions").join(&session.id).canonicalize().ok()
            {
                wrong.push(format!("{} leads elsewhere", view.display()));
            }
        }
    }
    wrong
}

pub fn labels(entry: &Value) -> written::Labels {
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    let tags = entry["tags"].as_array().into_iter().flatten();
    written::Labels {
        tags: tags.map(|tag| tag.as_str().unwrap().to_owned()).collect(),
        title: text("title"),
        project: text("project"),
        sync_tag: text("sync_tag"),
    }
}

/// Nothing is half done: no entry in the journal, nothing that was being built, no act that says nothing of itself.
pub fn nothing_pending(home: &Path) -> Vec<String> {
    let folders = [".wbhome/journal", ".wbhome/tmp"].map(|folder| home.join(folder));
    let left = folders.iter().flat_map(|folder| found::names(folder));
    let acts = found::names(&home.join(".wbhome/trash")).into_iter();
    // One that a kill has left empty says nothing, and holds nothing.
    let silent =
        acts.filter(|act| !act.join("note.json").is_file() && !found::names(act).is_empty());
    left.chain(silent)
        .map(|path| format!("{} was left behind", path.display()))
        .collect()
}

/// The last commit holds the text of these sessions at least as it was before.
pub fn committed(home: &Path, then: &Sessions, now: &Sessions, only: Option<&str>) -> Vec<String> {
    let listed = git(home, &["ls-tree", "-r", "-z", "HEAD", "--", "sessions"]);
    let listed = String::from_utf8(listed).unwrap();
    let blobs: BTreeMap<&str, &str> = listed
        .split('\0')
        .filter_map(|line| {
            let (facts, path) = line.split_once('\t')?;
            Some((path, facts.split(' ').nth(2)?))
        })
        .collect();
    let mut wrong = Vec::new();
    for (id, before) in then {
        let now = &now[id];
        if [before.lies, now.lies] != [Lies::Folder; 2] || only.is_some_and(|only| only != id) {
            continue;
        }
        for (rel, piece) in &before.pieces {
            let untouched = before.touched.get(rel) == now.touched.get(rel);
            let text = rel == "session.json" || rel.starts_with("context/");
            if !untouched || !matches!(piece, Piece::Whole(_)) || !text {
                continue;
            }
            let path = format!("sessions/{id}/{rel}");
            let content = std::fs::read(home.join(&path)).unwrap();
            if blobs.get(path.as_str()) != Some(&blob(&content).as_str()) {
                wrong.push(format!("{path} is not in the last commit as it is"));
            }
        }
        let rel = TRANSCRIPT;
        if !before.stream(rel).is_empty() {
            let found = git(home, &["show", &format!("HEAD:sessions/{id}/{rel}")]);
            let least = before.stream(rel);
            if !(found.starts_with(least) && now.stream(rel).starts_with(&found)) {
                wrong.push(format!(
                    "sessions/{id}/{rel} is {} bytes in the last commit",
                    found.len()
                ));
            }
        }
    }
    wrong
}

fn git(home: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git").arg("-C").arg(home).args(args).output();
    let output = output.unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    output.stdout
}

/// The id that git gives to a file.
fn blob(content: &[u8]) -> String {
    use sha1::Digest as _;
    let mut hasher = sha1::Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The relay holds the sessions with a sync tag, at least as they were before, and no others.
pub fn relayed(relay: &Path, then: &Sessions, now: &Sessions) -> Vec<String> {
    let travels =
        |session: &Session| session.lies == Lies::Folder && session.labels.sync_tag.is_some();
    let wanted: BTreeSet<&str> = now
        .values()
        .filter(|s| travels(s))
        .map(|s| s.id.as_str())
        .collect();
    let names = found::names(relay);
    let there: BTreeSet<&str> = names
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    let mut wrong = Vec::new();
    if wanted != there {
        wrong.push(format!("the relay holds {there:?}, not {wanted:?}"));
    }
    for id in wanted.intersection(&there) {
        let tree: Tree = found::folder(&relay.join(id));
        let differs = written::since(&tree, &then[*id], &now[*id], Logs::AtHome);
        wrong.extend(told(&relay.join(id), differs));
    }
    wrong
}

/// What `git`, `zstd` and the program itself say of it, while nobody writes.
pub fn sound(home: &Path, stores: &[PathBuf]) {
    // The git of a command that was killed may still be at work, and holds the lock as long.
    let lock = std::fs::File::open(home.join(".wbhome/lock")).unwrap();
    lock.lock().unwrap();
    git(home, &["fsck", "--no-dangling", "--no-progress"]);
    let packs = stores.iter().map(|store| store.join("packs"));
    for folder in packs.chain([home.join("archive")]) {
        for entry in walkdir::WalkDir::new(folder) {
            let entry = entry.unwrap();
            if entry.file_name().to_str().unwrap().ends_with(".zst") {
                tool(
                    "zstd",
                    &["-tq", "--long=31", entry.path().to_str().unwrap()],
                );
            }
        }
    }
}

fn told(at: &Path, wrong: Vec<String>) -> Vec<String> {
    let wrong = wrong.into_iter();
    wrong
        .map(|wrong| format!("{}: {wrong}", at.display()))
        .collect()
}
