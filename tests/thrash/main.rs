//! Agents that append turns, logs and artifacts to several sessions without pause, while everything that changes a home
//! runs at random beside them, is killed at random, finds the disk full, and sees a clock that jumps. A model knows each
//! byte that was written; after every step each of them must be where it belongs.
//!
//! `WBHOME_THRASH_SECONDS` says for how long, `WBHOME_TEST_SEED` with which random numbers (the agents are threads, so a
//! run is not repeated exactly). By hand: `cargo test --all-features --test thrash -- --ignored --nocapture`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it plays agents, fills disks, and kills what it started"
)]

mod agents;
mod deeds;
mod found;
mod invariants;
mod judge;
mod settle;
mod step;
#[path = "../support/mod.rs"]
mod support;
mod written;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agents::Shared;
use deeds::{DECK, Deed};
use judge::{Judge, Sessions};
use support::kill::Rng;
use support::mount::Mount;
use support::{Place, has_tool};
use written::{Lies, Session};

/// Enough for what is written in an hour, and little enough to be filled in a moment.
const DISK_MIB: u64 = 700;
const FEWEST: usize = 5;
const MOST: usize = 9;

/// How often something was done, and how it ended.
#[derive(Debug, Default)]
struct Tally {
    /// With exit code 0.
    done: u64,
    /// With another that is right.
    otherwise: u64,
    /// Killed while it ran.
    killed: u64,
    /// While the disk was full.
    full: u64,
}

struct Thrash {
    place: Place,
    stores: Vec<PathBuf>,
    relay: PathBuf,
    shared: Arc<Shared>,
    agents: Vec<JoinHandle<()>>,
    rng: Rng,
    /// The clock of the program, in seconds since 1970, and what it was set back by.
    now: i64,
    back: i64,
    step: u64,
    deck: Vec<Deed>,
    takes: BTreeMap<Deed, Duration>,
    tally: BTreeMap<Deed, Tally>,
    /// What was really done, by name.
    effects: BTreeMap<&'static str, u64>,
    judge: Judge,
    /// The last steps, for whoever has to find out what went wrong.
    story: VecDeque<String>,
    made: u64,
    // Last, since the others lie on it.
    mount: Option<Mount>,
    outer: Option<tempfile::TempDir>,
}

/// How a command is run.
#[derive(Clone, Copy, Default)]
struct Trouble {
    kill: bool,
    full: bool,
    /// Something else runs at the same time.
    company: Option<Deed>,
}

impl Thrash {
    fn new(rng: Rng) -> Thrash {
        let outer = tempfile::Builder::new().prefix("wbhome-thrash-").tempdir();
        let outer = outer.unwrap();
        let mount = Mount::image(outer.path().join("disk"), DISK_MIB);
        let at = mount.as_ref().map_or(outer.path(), |mount| &mount.at);
        let place = Place::on(at);
        let home = place.home();
        let settings = place.home_text("wbhome.toml");
        let settings = settings
            .replace("keep = 7\n", "keep = 3\n")
            .replace("keep = \"14d\"", "keep = \"2d\"")
            .replace("keep_deleted = \"90d\"", "keep_deleted = \"20d\"");
        place.put_home("wbhome.toml", settings);
        let stores = ["cold", "冷"].map(|name| place.path(name));
        let relay = place.path("relay");
        for folder in stores.iter().chain([&relay]) {
            std::fs::create_dir(folder).unwrap();
        }
        for store in &stores {
            place.ok(["backup", "init", store.to_str().unwrap(), "-q"]);
        }
        place.ok([
            "relay",
            "init",
            relay.to_str().unwrap(),
            "--mode",
            "clone",
            "-q",
        ]);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut thrash = Thrash {
            stores: stores.to_vec(),
            relay,
            shared: Arc::new(Shared {
                home,
                sessions: RwLock::default(),
                hold_still: RwLock::default(),
                step: AtomicU64::new(0),
                stop: AtomicBool::new(false),
                deeds: AtomicU64::new(0),
                full: AtomicU64::new(0),
            }),
            place,
            agents: Vec::new(),
            rng,
            now: now.unwrap().as_secs() as i64 + 60,
            back: 0,
            step: 0,
            deck: Vec::new(),
            takes: BTreeMap::new(),
            tally: BTreeMap::new(),
            effects: BTreeMap::new(),
            judge: Judge::default(),
            story: VecDeque::new(),
            made: 0,
            mount,
            outer: Some(outer),
        };
        for _ in 0..FEWEST {
            thrash.by_hand();
        }
        for deed in [Deed::Index, Deed::Backup, Deed::Commit] {
            let ran = thrash.command(deed, None, &[]).output().unwrap();
            assert!(ran.status.success(), "{deed:?}: {ran:?}");
        }
        // Two travel from the beginning.
        let tag = ["--sync-tag".to_owned(), "两台".to_owned()];
        let ids: Vec<String> = thrash.all().into_keys().take(2).collect();
        for id in ids {
            let ran = thrash
                .command(Deed::Label, Some(&id), &tag)
                .output()
                .unwrap();
            assert!(ran.status.success(), "{id}: {ran:?}");
            thrash.change(&id, |session| session.labels.told(&tag));
        }
        thrash.agents = agents::set_to_work(&thrash.shared, &mut thrash.rng);
        thrash
    }

    fn home(&self) -> PathBuf {
        self.shared.home.clone()
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn effect(&mut self, what: &'static str, times: u64) {
        *self.effects.entry(what).or_default() += times;
    }

    /// A session whose folder an agent has made.
    fn by_hand(&mut self) {
        self.made += 1;
        let id = format!(
            "20261130_{}_{}",
            ["爬虫", "report", "数据"][self.made as usize % 3],
            self.made
        );
        let folder = self.home().join("sessions").join(&id);
        std::fs::create_dir(&folder).unwrap();
        let record = format!(
            "{{\"id\": {id:?}, \"session_id\": \"identity-{}\", \"created_at\": \"2026-11-30T08:00:00Z\"}}\n",
            self.made
        );
        if std::fs::write(folder.join("session.json"), &record).is_ok() {
            self.take_in(&id);
        }
    }

    /// The model learns of a session, whose record is there.
    fn take_in(&mut self, id: &str) {
        let folder = self.home().join("sessions").join(id);
        for name in ["context", "memory", "artifacts", "logs"] {
            let _ = std::fs::create_dir(folder.join(name));
        }
        let agent = self.shared.sessions.read().unwrap().len() % agents::AGENTS;
        let mut session = Session::new(id, agent);
        let record = std::fs::read(folder.join("session.json")).unwrap();
        session.wrote(0, "session.json", &record);
        let session = Arc::new(Mutex::new(session));
        let mut all = self.shared.sessions.write().unwrap();
        all.insert(id.to_owned(), session);
    }

    fn all(&self) -> Sessions {
        let all = self.shared.sessions.read().unwrap();
        let all = all.iter();
        all.map(|(id, session)| (id.clone(), session.lock().unwrap().clone()))
            .collect()
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Session)) {
        let all = self.shared.sessions.read().unwrap();
        change(&mut all[id].lock().unwrap());
    }

    fn some(&mut self, lies: Lies) -> Option<String> {
        let all = self.all();
        let of: Vec<&String> = all
            .iter()
            .filter(|(_, session)| session.lies == lies && session.known)
            .map(|(id, _)| id)
            .collect();
        let n = self.rng.below(of.len().max(1) as u64) as usize;
        of.get(n).map(|id| (*id).clone())
    }

    fn living(&self) -> usize {
        let all = self.all();
        all.values()
            .filter(|session| session.lies <= Lies::Archive)
            .count()
    }

    fn step(&mut self) {
        self.step += 1;
        self.clock();
        let Some((deed, target, labels)) = self.choose() else {
            return;
        };
        let trouble = Trouble {
            kill: self.chance(4),
            full: self.mount.is_some() && self.chance(14),
            company: match self.rng.below(7) {
                0 => Some(Deed::Backup),
                1 => Some(Deed::Commit),
                _ => None,
            }
            .filter(|company| *company != deed),
        };
        self.tell(deed, target.as_deref(), trouble);
        let before = {
            let shared = Arc::clone(&self.shared);
            let _still = shared.hold_still.write().unwrap();
            shared.step.store(self.step, Ordering::Relaxed);
            self.all()
        };
        let snapshots: Vec<Vec<PathBuf>> = self.snapshots();
        let ran = self.carry_out(deed, target.as_deref(), &labels, trouble);
        let disturbed = ran.is_none() || trouble.full;
        if disturbed {
            self.recover();
        }
        let shared = Arc::clone(&self.shared);
        let _still = shared.hold_still.write().unwrap();
        self.settle(deed, target.as_deref(), &labels, ran.as_ref(), trouble);
        self.invariants(
            deed,
            target.as_deref(),
            &before,
            &snapshots,
            ran.as_ref(),
            trouble,
        );
        if let (Some(id), Some(_)) = (&target, deed.moves()) {
            self.change(id, |session| session.rests = false);
        }
        if self.step.is_multiple_of(40) {
            self.deep();
        }
    }

    fn tell(&mut self, deed: Deed, target: Option<&str>, trouble: Trouble) {
        let mut line = format!("{} {deed:?}", self.step);
        for (so, word) in [
            (trouble.kill, "killed"),
            (trouble.full, "full"),
            (self.back > 0, "clock back"),
        ] {
            if so {
                line += ", ";
                line += word;
            }
        }
        if let Some(company) = trouble.company {
            line += &format!(", beside {company:?}");
        }
        if let Some(target) = target {
            line += &format!(" «{target}»");
        }
        if std::env::var_os("WBHOME_THRASH_KEEP").is_some() {
            let now = jiff::Timestamp::from_second(self.moment()).unwrap();
            eprintln!("{now} {line}");
        }
        self.story.push_back(line);
        if self.story.len() > 25 {
            self.story.pop_front();
        }
    }

    /// Ends the test, and leaves everything to be looked at when it is run by hand.
    fn fail(&mut self, wrong: &[String]) -> ! {
        let story: Vec<&String> = self.story.iter().collect();
        let shown = wrong
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n");
        let kept = std::env::var_os("WBHOME_THRASH_KEEP").is_some();
        if kept {
            // The rest of the process is a failed test: nothing is unmounted.
            std::mem::forget(self.mount.take());
            std::mem::forget(self.outer.take());
            eprintln!("kept: {}", self.place.root().display());
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        eprintln!("the last steps: {story:#?}");
        let message = format!("step {}:\n{shown}", self.step);
        if kept {
            eprintln!("{message}");
            std::process::exit(1);
        }
        panic!("{message}");
    }

    /// Whether everything was done at least once, killed often enough, and found full.
    fn is_proved(&self) -> Result<(), String> {
        for deed in DECK {
            if self.tally.get(&deed).is_none_or(|tally| tally.done == 0) {
                return Err(format!("{deed:?} was never done"));
            }
        }
        let wanted = [
            "archived",
            "unarchived",
            "removed",
            "restored",
            "new",
            "labelled",
            "committed",
            "consolidated",
            "cut",
            "compressed",
            "cut logs let go of",
            "packed",
            "snapshots pruned",
            "packs pruned",
            "sent",
            "updated in the relay",
            "taken out of the relay",
            "added to the index",
            "nights",
            "verified",
            "looked",
            "recovered",
            "clock set back",
            "refused, since somebody wrote",
        ];
        if let Some(effect) = wanted
            .iter()
            .find(|e| self.effects.get(*e).is_none_or(|n| *n == 0))
        {
            return Err(format!("nothing was {effect}"));
        }
        if self.mount.is_some() && self.effects.get("disk full").is_none_or(|n| *n < 2) {
            return Err("the disk was never full".to_owned());
        }
        let killed: u64 = self.tally.values().map(|tally| tally.killed).sum();
        match killed {
            0..5 => Err(format!("only {killed} were killed")),
            _ => Ok(()),
        }
    }

    fn run(mut self, takes: Duration) {
        let began = Instant::now();
        while began.elapsed() < takes || self.is_proved().is_err() {
            self.step();
            if self.agents.iter().any(JoinHandle::is_finished) {
                self.fail(&["an agent could not go on".to_owned()]);
            }
            if began.elapsed() > takes * 2 + Duration::from_secs(120) {
                let why = self.is_proved().unwrap_err();
                self.fail(&[why]);
            }
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        for agent in std::mem::take(&mut self.agents) {
            agent.join().unwrap();
        }
        self.deep();
        println!("{} steps in {:.0?}", self.step, began.elapsed());
        println!("{:#?}", self.effects);
        for (deed, tally) in &self.tally {
            println!("{deed:?}: {tally:?}");
        }
        println!(
            "{} deeds of agents, {} on a full disk; {} trees compared",
            self.shared.deeds.load(Ordering::Relaxed),
            self.shared.full.load(Ordering::Relaxed),
            self.judge.compared_trees
        );
    }
}

fn thrash(seconds: u64) {
    if !["git", "zstd"].iter().all(|name| has_tool(name)) {
        return;
    }
    let given = std::env::var("WBHOME_THRASH_SECONDS").ok();
    let seconds = given.and_then(|s| s.parse().ok()).unwrap_or(seconds);
    Thrash::new(Rng::seeded()).run(Duration::from_secs(seconds));
}

#[test]
fn a_minute_loses_nothing() {
    thrash(60);
}

#[test]
#[ignore = "by hand, before a release"]
fn an_hour_loses_nothing() {
    thrash(3600);
}
