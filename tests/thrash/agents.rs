//! Agents that write to their sessions without pause, and tell the model of each byte that the system has taken.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::cold::noise;
use crate::support::kill::Rng;
use crate::written::{LOG, Lies, Session, TRANSCRIPT};

/// What agents and judge share.
pub struct Shared {
    pub home: PathBuf,
    pub sessions: RwLock<BTreeMap<String, Arc<Mutex<Session>>>>,
    /// Read by an agent while it writes, written by whoever needs all of them to hold still.
    pub hold_still: RwLock<()>,
    pub step: AtomicU64,
    pub stop: AtomicBool,
    /// How often an agent did something, and how often the disk was full for it.
    pub deeds: AtomicU64,
    pub full: AtomicU64,
}

/// So many agents; each session belongs to one of them.
pub const AGENTS: usize = 3;

const MOST_TURNS: u32 = 60;
const MOST_ARTIFACTS: u32 = 25;
const LONGEST_STREAM: usize = 800_000;

pub fn set_to_work(shared: &Arc<Shared>, rng: &mut Rng) -> Vec<JoinHandle<()>> {
    let agents = 0..AGENTS;
    agents
        .map(|n| {
            let shared = Arc::clone(shared);
            let mut agent = Agent {
                n,
                rng: Rng(rng.below(u64::MAX)),
                open: BTreeMap::new(),
            };
            std::thread::spawn(move || {
                while !shared.stop.load(Ordering::Relaxed) {
                    agent.deed(&shared);
                    std::thread::sleep(Duration::from_micros(1000 + agent.rng.below(6000)));
                }
            })
        })
        .collect()
}

struct Agent {
    n: usize,
    rng: Rng,
    /// Logs that it keeps open, by session.
    open: BTreeMap<String, File>,
}

impl Agent {
    fn deed(&mut self, shared: &Shared) {
        // Poisoned when the test has failed.
        let Ok(_at_work) = shared.hold_still.read() else {
            return;
        };
        let mine: Vec<Arc<Mutex<Session>>> = {
            let all = shared.sessions.read().unwrap();
            let mine = all.values().filter(|s| s.lock().unwrap().agent == self.n);
            mine.map(Arc::clone).collect()
        };
        for session in &mine {
            let mut session = session.lock().unwrap();
            if session.rests || session.lies == Lies::Gone {
                self.open.remove(&session.id);
                session.is_open = false;
            }
        }
        if mine.is_empty() {
            return;
        }
        let session = &mine[self.rng.below(mine.len() as u64) as usize];
        let mut session = session.lock().unwrap();
        if session.rests || session.lies == Lies::Gone {
            return;
        }
        let folder = shared.home.join("sessions").join(&session.id);
        let step = shared.step.load(Ordering::Relaxed);
        let mut desk = Desk {
            folder,
            step,
            session: &mut session,
            rng: &mut self.rng,
        };
        let done = match desk.rng.below(30) {
            0..15 => desk.log(&mut self.open),
            15..19 => desk.append("memory/笔记.md"),
            19..21 => desk.append(TRANSCRIPT),
            21 => desk.turn(),
            22 => desk.artifact(),
            23..25 => desk.change_artifact(),
            25 => desk.delete_artifact(),
            _ => desk.replace("context/checkpoint.md"),
        };
        match done {
            Ok(()) => drop(shared.deeds.fetch_add(1, Ordering::Relaxed)),
            // Its session was taken away under it.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if e.kind() == ErrorKind::StorageFull => {
                shared.full.fetch_add(1, Ordering::Relaxed);
            }
            Err(e) => panic!("an agent can not write to {}: {e}", session.id),
        }
    }
}

/// An agent at one of its sessions.
struct Desk<'a> {
    folder: PathBuf,
    step: u64,
    session: &'a mut Session,
    rng: &'a mut Rng,
}

impl Desk<'_> {
    /// A line, whole and different from every other of its session.
    fn lines(&mut self, rel: &str) -> Vec<u8> {
        let written = self.session.stream(rel);
        let mut out = Vec::new();
        // What did not fit on a full disk comes first.
        if written.last().is_some_and(|b| *b != b'\n') {
            out.extend_from_slice(b" \xe2\x80\xa6\n");
        }
        for n in 0..1 + self.rng.below(12) {
            let at = written.len() + n as usize;
            let words = "爬 fetched 一页 page 数据 ".repeat(self.rng.below(4) as usize);
            let _ = writeln!(out, "{at:09}.{n:02} {words}。");
        }
        out
    }

    fn log(&mut self, open: &mut BTreeMap<String, File>) -> std::io::Result<()> {
        if self.session.stream(LOG).len() > LONGEST_STREAM {
            open.remove(&self.session.id);
            self.session.is_open = false;
            return Ok(());
        }
        if self.rng.below(40) == 0 {
            open.remove(&self.session.id);
            self.session.is_open = false;
        }
        if !open.contains_key(&self.session.id) {
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(self.folder.join(LOG))?;
            open.insert(self.session.id.clone(), file);
            self.session.is_open = true;
        }
        let lines = self.lines(LOG);
        let (taken, ended) = write(&open[&self.session.id], &lines);
        self.session.appended(self.step, LOG, &lines[..taken]);
        // Some keep it open for days, some open it for each line.
        if !self.session.id.contains("report") {
            open.remove(&self.session.id);
            self.session.is_open = false;
        }
        ended
    }

    fn append(&mut self, rel: &str) -> std::io::Result<()> {
        if self.session.stream(rel).len() > LONGEST_STREAM {
            return Ok(());
        }
        let path = self.folder.join(rel);
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let lines = match rel == TRANSCRIPT {
            true => self.records(rel),
            false => self.lines(rel),
        };
        let (taken, ended) = write(&file, &lines);
        self.session.appended(self.step, rel, &lines[..taken]);
        if rel == TRANSCRIPT {
            self.session.unfinished = lines[taken..].to_vec();
        }
        ended
    }

    /// JSON, a line each; what did not fit on a full disk comes first.
    fn records(&mut self, rel: &str) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.session.unfinished);
        let at = self.session.stream(rel).len();
        for n in 0..1 + self.rng.below(4) {
            let _ = writeln!(out, "{{\"at\": {at}, \"n\": {n}, \"text\": \"第一页\"}}");
        }
        out
    }

    fn turn(&mut self) -> std::io::Result<()> {
        if self.session.turns >= MOST_TURNS {
            return Ok(());
        }
        let n = self.session.turns + 1;
        let rel = format!("context/turn_{n:03}.json");
        let text = "一二三 ".repeat(self.rng.below(300) as usize);
        let content = format!(
            "{{\"turn\": {n}, \"cwd\": {:?}, \"text\": \"{text}\"}}\n",
            self.folder
        );
        self.whole(&rel, content.as_bytes())?;
        self.session.turns = n;
        Ok(())
    }

    fn artifact(&mut self) -> std::io::Result<()> {
        if self.session.artifacts >= MOST_ARTIFACTS {
            return Ok(());
        }
        self.session.artifacts += 1;
        let names = ["图 表", "-rf", "数据.bin", "a'b\"", "emoji 🙂"];
        let name = names[self.rng.below(names.len() as u64) as usize];
        let rel = format!("artifacts/{name} {}", self.session.artifacts);
        let content = self.content();
        self.whole(&rel, &content)
    }

    fn change_artifact(&mut self) -> std::io::Result<()> {
        let Some(rel) = self.some_artifact() else {
            return Ok(());
        };
        if self.rng.below(2) == 0 {
            return self.replace(&rel);
        }
        // In place, as many do: what it was is gone at once.
        let content = self.content();
        let path = self.folder.join(&rel);
        let file = OpenOptions::new().write(true).truncate(true).open(path)?;
        let (taken, ended) = write(&file, &content);
        self.session.wrote(self.step, &rel, &content[..taken]);
        ended
    }

    fn delete_artifact(&mut self) -> std::io::Result<()> {
        let Some(rel) = self.some_artifact() else {
            return Ok(());
        };
        std::fs::remove_file(self.folder.join(&rel))?;
        self.session.deleted(self.step, &rel);
        Ok(())
    }

    fn some_artifact(&mut self) -> Option<String> {
        let all = self.session.pieces.keys();
        let all: Vec<&String> = all.filter(|rel| rel.starts_with("artifacts/")).collect();
        let n = self.rng.below(all.len().max(1) as u64) as usize;
        all.get(n).map(|rel| (*rel).clone())
    }

    /// Mostly of a few bytes, and often as long as another.
    fn content(&mut self) -> Vec<u8> {
        let length = [1, 100, 100, 5000, 30_000][self.rng.below(5) as usize];
        noise(self.rng.below(u64::MAX), length)
    }

    /// A new file, under its name from the first byte on, or at the last.
    fn whole(&mut self, rel: &str, content: &[u8]) -> std::io::Result<()> {
        if self.rng.below(2) == 0 {
            return self.rename_over(rel, content);
        }
        let path = self.folder.join(rel);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        let (half, rest) = content.split_at(content.len() / 2);
        let ended = write(&file, half).1.and_then(|()| write(&file, rest).1);
        if ended.is_err() {
            // Nobody leaves half a turn behind.
            std::fs::remove_file(&path)?;
            return ended;
        }
        self.session.wrote(self.step, rel, content);
        Ok(())
    }

    /// As editors save.
    fn replace(&mut self, rel: &str) -> std::io::Result<()> {
        let content = match rel.ends_with(".md") {
            true => format!("# 检查点\n{}\n", self.rng.below(u64::MAX)).into_bytes(),
            false => self.content(),
        };
        self.rename_over(rel, &content)
    }

    fn rename_over(&mut self, rel: &str, content: &[u8]) -> std::io::Result<()> {
        let path = self.folder.join(rel);
        let draft = format!("草稿-{}", self.rng.below(u64::MAX));
        let draft = path.with_file_name(draft);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft)?;
        let ended = write(&file, content).1;
        let ended = ended.and_then(|()| std::fs::rename(&draft, &path));
        if ended.is_err() {
            remove(&draft);
            return ended;
        }
        self.session.wrote(self.step, rel, content);
        Ok(())
    }
}

fn remove(path: &Path) {
    // It may have been moved away with its folder.
    let _ = std::fs::remove_file(path);
}

/// How many bytes the system has taken, and why not all.
fn write(mut file: &File, content: &[u8]) -> (usize, std::io::Result<()>) {
    let mut taken = 0;
    while taken < content.len() {
        match file.write(&content[taken..]) {
            Ok(n) => taken += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return (taken, Err(e)),
        }
    }
    (taken, Ok(()))
}
