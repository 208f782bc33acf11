//! A lifelike home as a sync drive leaves it, of any size, the same bytes and times for the same settings.
//!
//! Tests and races need a home whose content is known: how many references to the old path it holds, in which spelling,
//! what only looks like one, and what the sync client broke. So every path goes into a [`text::Doc`], which counts it
//! while it is written, and every damage is recorded where it is done: nothing is found out afterwards by a second
//! reading that could share an error with the program under test.
//!
//! Each session has random numbers of its own, so that they can be written by all cores in any order. 50,000 files and
//! 300 MB take a few seconds, most of it the file system's.
// Each test uses a part of this; and making what a sync drive made is what `std::fs` is for here.
#![allow(dead_code, clippy::disallowed_methods, clippy::disallowed_types)]

use std::io;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[path = "corpus/broken.rs"]
mod broken;
#[path = "corpus/phrases.rs"]
mod phrases;
#[path = "corpus/session.rs"]
mod session;
#[path = "corpus/spellings.rs"]
mod spellings;
#[path = "corpus/text.rs"]
mod text;
#[path = "corpus/tree.rs"]
mod tree;

use phrases::Phrases;
use text::Doc;
use tree::{Time, Tree};

/// What to write. The default is a small home without damage.
#[derive(Debug, Clone)]
pub struct Corpus {
    pub sessions: usize,
    /// Turns a session; each is a file of about 3.5 kB.
    pub turns: usize,
    /// The absolute path that the home's files mention as their own place.
    pub old_path: String,
    /// A folder above `old_path`: then `~/…` and `$HOME/…` are written too.
    pub user_home: Option<String>,
    /// Each turn also holds the turns before it, as some agents do: the size grows with the square of `turns`.
    pub snapshots: bool,
    /// Bytes of a session's log, about.
    pub log_bytes: usize,
    /// Bytes of a session's table and binary together, about.
    pub artifact_bytes: usize,
    /// Break it as sync clients do. Needs 7 sessions of 6 turns.
    pub damage: bool,
    pub seed: u64,
}

impl Default for Corpus {
    fn default() -> Corpus {
        Corpus {
            sessions: 8,
            turns: 8,
            old_path: "/Users/mei/Cloud Drive/主页/workbuddy_home".into(),
            user_home: None,
            snapshots: false,
            log_bytes: 4 << 10,
            artifact_bytes: 8 << 10,
            damage: false,
            seed: 7,
        }
    }
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// Names of regular files; those of a hard-link group each count.
    pub files: u64,
    pub symlinks: u64,
    /// Content of the regular files, once for a hard-link group.
    pub bytes: u64,
    /// The sessions that have a folder with content and are no conflict copies, sorted.
    pub ids: Vec<String>,
    pub damage: Vec<Damage>,
    pub planted: Planted,
}

impl Written {
    /// The damage of one kind.
    pub fn damage_of(&self, kind: &str) -> impl Iterator<Item = &Damage> {
        self.damage.iter().filter(move |damage| damage.kind == kind)
    }
}

/// One thing that a sync client broke, or that only looks so (`innocent`).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The word that `wbhome check` uses.
    pub kind: &'static str,
    /// Relative to the home.
    pub path: String,
    /// The original beside a conflict copy.
    pub of: Option<String>,
    /// `same`, `prefix`, `extends` or `diverged`, for a conflict copy.
    pub relation: Option<&'static str>,
    /// Whose mark a conflict copy carries, in the word that JSON has for it.
    pub client: Option<&'static str>,
}

/// How often the text of the home mentions what. What is in a hard-linked file counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planted {
    /// The old path as a reference, in any spelling that holds it whole.
    pub references: u64,
    /// The old path as `~/…` or `$HOME/…`.
    pub from_home: u64,
    /// What begins or ends with the old path and is another: must stay.
    pub stays: u64,
    /// A letter of another script directly behind the old path: must stay, and be told.
    pub doubtful: u64,
    /// The old path within binary files: must stay, and be told.
    pub binary: u64,
    /// Sessions of this home under another root, [`ELSEWHERE`]: must stay without a map.
    pub elsewhere: u64,
    /// Symlinks whose target is under the old path.
    pub links: u64,
}

/// Another root under which the home once stood.
pub const ELSEWHERE: &str = "/Volumes/old-mac/workbuddy_home";

impl AddAssign for Planted {
    fn add_assign(&mut self, more: Planted) {
        self.references += more.references;
        self.from_home += more.from_home;
        self.stays += more.stays;
        self.doubtful += more.doubtful;
        self.binary += more.binary;
        self.elsewhere += more.elsewhere;
        self.links += more.links;
    }
}

/// An agent and its skills.
const AGENTS: [(&str, &[&str]); 3] = [
    ("research_agent", &["web_search", "summarize"]),
    ("coding_agent", &["code_runner", "git", "web_search"]),
    ("writer_agent", &["summarize", "translate"]),
];

/// More than fill a day at [`SPACING`], so that a date and a task make an id.
const TASKS: [&str; 14] = [
    "crawler",
    "data_analysis",
    "周报",
    "api_refactor",
    "log_triage",
    "数据清洗",
    "schema_fix",
    "translate_docs",
    "market_scan",
    "unit_tests",
    "会议纪要",
    "deploy_check",
    "report_draft",
    "招聘筛选",
];

/// 2025-02-10T01:00:00Z
const FIRST_SESSION: i64 = 1_739_149_200;
/// Seconds between the starts of two sessions.
const SPACING: i64 = 2 * 3600;

impl Corpus {
    /// Writes the home into `out`, which must be empty or not there.
    ///
    /// # Errors
    /// Whatever the file system says; `InvalidInput` when damage is asked of too small a home.
    pub fn write(&self, out: &Path) -> io::Result<Written> {
        if self.damage && (self.sessions < broken::SESSIONS || self.turns < broken::TURNS) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "damage needs at least 7 sessions of 6 turns",
            ));
        }
        let mut home = Tree::new(out);
        for folder in ["", "agents", "sessions"] {
            home.folder(folder, 0o755)?;
        }
        let mut written = Written::default();
        self.agents(&mut home, &mut written.planted)?;

        let phrases = Phrases::new();
        let mut sessions = self.all_sessions(out, &phrases)?;
        if self.damage {
            sessions.push(broken::orphans(out, self.end())?);
        }
        let mut entries = Vec::new();
        for session in sessions {
            written.files += session.files;
            written.symlinks += session.symlinks;
            written.bytes += session.bytes;
            written.planted += session.planted;
            written.damage.extend(session.damage);
            written.ids.extend(session.id);
            entries.extend(session.entry);
        }
        written.ids.sort();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let index = index(&entries);
        written.planted += index.planted;
        home.put("index.json", &index.text, self.end(), 0o644)?;
        written.files += home.files;
        written.bytes += home.bytes;
        home.settle(self.end())?;
        Ok(written)
    }

    /// When session `n` began.
    fn start(&self, n: usize) -> i64 {
        FIRST_SESSION + SPACING * n as i64
    }

    /// When the whole home was last touched.
    fn end(&self) -> Time {
        Time::new(self.start(self.sessions) + 86_400, 1)
    }

    fn agents(&self, home: &mut Tree, planted: &mut Planted) -> io::Result<()> {
        let when = Time::new(FIRST_SESSION - 3600, 0);
        for (agent, skills) in AGENTS {
            home.folder(&format!("agents/{agent}"), 0o755)?;
            home.folder(&format!("agents/{agent}/skills"), 0o755)?;
            let mut doc = Doc::default();
            doc.raw(&format!("name: {agent}\nmodel: hunyuan-large\nhome: "))
                .reference(&self.old_path);
            doc.raw(&format!(
                "/agents/{agent}\nskills: [{}]\n",
                skills.join(", ")
            ));
            home.put(
                &format!("agents/{agent}/agent.yaml"),
                &doc.text,
                when,
                0o644,
            )?;
            *planted += doc.planted;
            for skill in skills {
                let mut doc = Doc::default();
                doc.raw(&format!("name: {skill}\nversion: 1.2\nentry: \""))
                    .reference(&self.old_path);
                doc.raw(&format!("/agents/{agent}/bin/{skill}\"\ntimeout: 30s\n"));
                home.put(
                    &format!("agents/{agent}/skills/{skill}.yaml"),
                    &doc.text,
                    when,
                    0o644,
                )?;
                *planted += doc.planted;
            }
        }
        Ok(())
    }

    /// All sessions, in order, written by as many threads as there are cores.
    fn all_sessions(&self, out: &Path, phrases: &Phrases) -> io::Result<Vec<session::Outcome>> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> io::Result<()> {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= self.sessions {
                    return Ok(());
                }
                let outcome = session::write(self, n, out, phrases)?;
                done.lock()
                    .expect("no thread panics with the lock")
                    .push((n, outcome));
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running
                .into_iter()
                .try_for_each(|thread| thread.join().expect("a writer does not panic"))
        })?;
        let mut done = done.into_inner().expect("no thread panics with the lock");
        done.sort_by_key(|(n, _)| *n);
        Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

/// The entries as one array, laid out as `jq` does.
fn index(entries: &[(String, Doc)]) -> Doc {
    let mut doc = Doc::default();
    doc.raw("[");
    for (n, (_, entry)) in entries.iter().enumerate() {
        doc.raw(if n == 0 { "\n" } else { ",\n" });
        doc.append(entry);
    }
    doc.raw("\n]\n");
    doc
}
