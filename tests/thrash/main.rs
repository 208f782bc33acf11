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
mod judge;
#[path = "../support/mod.rs"]
mod support;
mod written;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agents::Shared;
use deeds::{DECK, Deed};
use judge::{Judge, Sessions};
use serde_json::Value;
use support::cold::is_snapshot;
use support::kill::Rng;
use support::mount::Mount;
use support::{Place, Ran, has_tool};
use written::{Lies, Session, TRANSCRIPT};

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

    // ── sessions ──────────────────────────────────────────────────────────────────────────────────────────────────

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

    // ── one step ──────────────────────────────────────────────────────────────────────────────────────────────────

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

    fn snapshots(&self) -> Vec<Vec<PathBuf>> {
        let stores = self.stores.iter();
        stores
            .map(|store| found::names(&store.join("snapshots")))
            .collect()
    }

    fn clock(&mut self) {
        self.now += match self.rng.below(12) {
            0 => 86_400 * (1 + self.rng.below(9) as i64),
            _ => 600 + self.rng.below(20_000) as i64,
        };
        self.back = match self.rng.below(16) {
            0 => {
                self.effect("clock set back", 1);
                3600 * (1 + self.rng.below(30) as i64)
            }
            // It stays wrong for a while.
            1..8 => self.back,
            _ => 0,
        };
    }

    fn moment(&self) -> i64 {
        self.now - self.back
    }

    /// What is done next, with which session, and what more stands on its command line.
    fn choose(&mut self) -> Option<(Deed, Option<String>, Vec<String>)> {
        if self.deck.is_empty() {
            self.deck = DECK.to_vec();
            for n in (1..self.deck.len()).rev() {
                let other = self.rng.below(n as u64 + 1) as usize;
                self.deck.swap(n, other);
            }
        }
        let deed = self.deck.pop().unwrap();
        let mut more = Vec::new();
        let target = match deed {
            Deed::Remove if self.living() <= FEWEST => return None,
            Deed::New if self.living() >= MOST => return None,
            Deed::ByHand if self.living() >= MOST => return None,
            Deed::ByHand => {
                let shared = Arc::clone(&self.shared);
                let _still = shared.hold_still.write().unwrap();
                self.by_hand();
                None
            }
            Deed::CommitOne => Some(self.some(Lies::Folder)?),
            Deed::Label => {
                let lies = match self.chance(3) {
                    true => Lies::Archive,
                    false => Lies::Folder,
                };
                let id = self.some(lies)?;
                more = self.some_labels(&id);
                Some(id)
            }
            Deed::New => {
                self.made += 1;
                more = vec![format!("新_{}", self.made)];
                None
            }
            _ => match deed.moves() {
                Some((from, _)) => Some(self.some(from)?),
                None => None,
            },
        };
        // Mostly a session that is put away rests; who writes to it all the same must lose nothing.
        if let (Some(id), Some(_)) = (&target, deed.moves()) {
            let rests = !self.chance(3);
            self.change(id, |session| session.rests = rests);
            while rests
                && self.all()[id].is_open
                && !self.agents.iter().any(JoinHandle::is_finished)
            {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Some((deed, target, more))
    }

    fn some_labels(&mut self, id: &str) -> Vec<String> {
        let all = self.all();
        let labels = &all[id].labels;
        let word = ["甲", "beta", "c d"][self.rng.below(3) as usize].to_owned();
        let pairs: Vec<&str> = match self.rng.below(6) {
            0 if labels.tags.contains(&word) => vec!["--untag", &word],
            0 => vec!["--tag", &word],
            1 => vec!["--title", &word],
            2 if labels.project.is_some() => vec!["--no-project"],
            2 => vec!["--project", "甲"],
            _ if labels.sync_tag.is_none() => vec!["--sync-tag", "两台"],
            _ => vec!["--no-sync-tag"],
        };
        pairs.into_iter().map(str::to_owned).collect()
    }

    fn command(&self, deed: Deed, target: Option<&str>, more: &[String]) -> Command {
        let mut command = self.place.command();
        let now = jiff::Timestamp::from_second(self.moment()).unwrap();
        command
            .env("WBHOME_NOW", now.to_string())
            .args(deed.verb())
            .args(target)
            .args(more)
            .args(["--json", "--lock-wait", "60s", "--no-progress"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it; `None` when it was killed.
    fn carry_out(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        more: &[String],
        trouble: Trouble,
    ) -> Option<Ran> {
        if trouble.full {
            let left = self.rng.below(600_000);
            self.mount.as_ref().unwrap().fill(left);
            self.effect("disk full", 1);
        }
        let usual = self.takes.get(&deed).copied();
        let usual = usual.unwrap_or(Duration::from_millis(100));
        let after = self.rng.within(usual);
        let began = Instant::now();
        let company = trouble.company.map(|company| {
            let child = self.command(company, None, &[]).spawn().unwrap();
            (company, child)
        });
        let mut child = self.command(deed, target, more).spawn().unwrap();
        let killed = trouble.kill && kill_after(&mut child, after);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let took = began.elapsed();
        if let Some((company, child)) = company {
            let ran = Ran::of(child.wait_with_output().unwrap());
            self.ended_right(company, &ran, trouble.full, false);
        }
        if trouble.full {
            self.mount.as_ref().unwrap().make_room();
        }
        let tally = self.tally.entry(deed).or_default();
        if trouble.full {
            tally.full += 1;
        }
        if killed && ran.code.is_none() {
            tally.killed += 1;
            return None;
        }
        match ran.code {
            Some(0) => tally.done += 1,
            _ => tally.otherwise += 1,
        }
        self.takes.insert(deed, (usual * 3 + took) / 4);
        let rests = target.is_some_and(|id| self.all()[id].rests);
        self.ended_right(deed, &ran, trouble.full, rests);
        Some(ran)
    }

    fn ended_right(&mut self, deed: Deed, ran: &Ran, full: bool, rests: bool) {
        let code = ran.code.unwrap_or(-1);
        // Nothing but a writer keeps a session where it is.
        let mut right = deed.ends().contains(&code) && !(rests && code != 0);
        right |= full && [0, 1, 3].contains(&code);
        // Behind the newest snapshot, nothing is pruned, and that is told.
        right |= self.back > 0 && deed.backs_up() && [1, 3].contains(&code);
        if !right || ran.stderr.contains("panicked") {
            self.fail(&[format!("{deed:?} ended so: {ran:#?}")]);
        }
    }

    /// The next command that takes the lock completes what was left.
    fn recover(&mut self) {
        let mut command = self.command(Deed::Index, None, &[]);
        let ran = Ran::of(command.output().unwrap());
        if ran.code != Some(0) {
            self.fail(&[format!("the next command ended so: {ran:#?}")]);
        }
        self.effect("recovered", 1);
    }

    // ── what it did ───────────────────────────────────────────────────────────────────────────────────────────────

    /// The model takes over what a command was told to change.
    fn settle(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        labels: &[String],
        ran: Option<&Ran>,
        trouble: Trouble,
    ) {
        let home = self.home();
        let done = ran.is_some_and(|ran| ran.code == Some(0));
        let sure = done && !trouble.full;
        if let (Some(id), Some((from, to))) = (target, deed.moves()) {
            let lies = judge::lies(&home, id);
            let right = match done {
                true => lies == to,
                false => lies == from || lies == to,
            };
            if !right {
                self.fail(&[format!("{id} lies in {lies:?} after {deed:?}: {ran:#?}")]);
            }
            let moment = self.moment();
            self.change(id, |session| {
                session.lies = lies;
                let since = session.removed_at.unwrap_or(moment);
                session.removed_at = (lies == Lies::Trash).then_some(since);
            });
            if lies == to {
                let moved = match deed {
                    Deed::Archive => "archived",
                    Deed::Unarchive => "unarchived",
                    Deed::Remove => "removed",
                    _ => "restored",
                };
                self.effect(moved, 1);
            } else if done || ran.is_some() {
                self.effect("refused, since somebody wrote", 1);
            }
        }
        if deed == Deed::New {
            self.settle_new();
        }
        if deed == Deed::EmptyTrash {
            self.settle_emptied(ran.is_some());
        }
        // Of what was killed, either is right, if it is whole; of what was done, only the new.
        if let (Deed::Label, Some(id)) = (deed, target) {
            self.settle_labels(id, labels, done);
        }
        if matches!(deed, Deed::Index | Deed::ByHand | Deed::Nightly) && sure
            || ran.is_none()
            || trouble.full
        {
            for id in self.all().keys() {
                self.change(id, |session| session.known = true);
            }
        }
        if let Some(ran) = ran.filter(|_| done) {
            self.count(deed, ran);
        }
    }

    /// `new` has made a folder, if it came so far.
    fn settle_new(&mut self) {
        let known = self.all();
        for path in found::names(&self.home().join("sessions")) {
            let id = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !id.starts_with('.') && !known.contains_key(&id) {
                self.take_in(&id);
                self.change(&id, |session| session.known = true);
                self.effect("new", 1);
            }
        }
    }

    fn settle_emptied(&mut self, ended: bool) {
        let home = self.home();
        for (id, session) in self.all() {
            if session.lies != Lies::Trash || judge::lies(&home, &id) == Lies::Trash {
                continue;
            }
            // What is removed while the clock is behind seems older than it is.
            let age = self.moment() - session.removed_at.unwrap();
            if age < 30 * 86_400 {
                self.fail(&[format!(
                    "{id} was emptied out of the trash after {age} s ({ended})"
                )]);
            }
            self.change(&id, |session| session.lies = Lies::Gone);
            self.effect("emptied", 1);
        }
    }

    fn settle_labels(&mut self, id: &str, told: &[String], done: bool) {
        let entries = found::index(&self.home());
        let found = judge::labels(&entries[id]);
        let former = self.all()[id].labels.clone();
        let mut wanted = former.clone();
        wanted.told(told);
        if found != wanted && (done || found != former) {
            self.fail(&[format!("{id}: {found:?}, not {wanted:?}, after {former:?}")]);
        }
        self.effect("labelled", u64::from(found != former));
        self.change(id, |session| session.labels = found);
    }

    /// Proof that it was really done.
    fn count(&mut self, deed: Deed, ran: &Ran) {
        let said = match ran.stdout.trim().is_empty() {
            true => return,
            false => ran.json(),
        };
        let length = |value: &Value| value.as_array().map_or(0, |all| all.len() as u64);
        let stores = said["stores"].as_array().cloned().unwrap_or_default();
        match deed {
            Deed::Commit | Deed::CommitOne => {
                self.effect("committed", u64::from(!said["commit"].is_null()));
            }
            Deed::Consolidate => {
                self.effect("consolidated", u64::from(!said["consolidated"].is_null()));
            }
            Deed::Rotate | Deed::RotateForced => {
                self.effect("cut", length(&said["cut"]));
                self.effect("compressed", length(&said["compressed"]));
                self.effect("cut logs let go of", length(&said["removed"]));
            }
            Deed::Backup => {
                let packed = stores.iter().map(|store| length(&store["packed"]));
                self.effect("packed", packed.sum());
            }
            Deed::Prune => {
                let gone = stores.iter().map(|store| length(&store["snapshots"]));
                self.effect("snapshots pruned", gone.sum());
                let gone = stores.iter().map(|store| length(&store["packs"]));
                self.effect("packs pruned", gone.sum());
            }
            Deed::Relay => {
                let sessions = said["sessions"].as_array().cloned().unwrap_or_default();
                for session in &sessions {
                    match session["state"].as_str() {
                        Some("sent") => self.effect("sent", 1),
                        Some("updated") => self.effect("updated in the relay", 1),
                        Some("removed") => self.effect("taken out of the relay", 1),
                        _ => {}
                    }
                }
            }
            Deed::Index | Deed::ByHand => self.effect("added to the index", length(&said["added"])),
            Deed::Nightly => self.effect("nights", 1),
            Deed::Verify => self.effect("verified", 1),
            Deed::Look => self.effect("looked", 1),
            _ => {}
        }
    }

    // ── invariants ────────────────────────────────────────────────────────────────────────────────────────────────

    fn invariants(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        before: &Sessions,
        snapshots: &[Vec<PathBuf>],
        ran: Option<&Ran>,
        trouble: Trouble,
    ) {
        let home = self.home();
        let mut wrong = Vec::new();
        let ids: Vec<String> = self.all().into_keys().collect();
        for id in &ids {
            let all = self.shared.sessions.read().unwrap();
            let mut session = all[id].lock().unwrap();
            let lies = judge::lies(&home, id);
            if lies != session.lies {
                wrong.push(format!("{id} lies in {lies:?}, not in {:?}", session.lies));
                continue;
            }
            wrong.extend(self.judge.bytes(&home, &mut session, deed.rotates()));
        }
        let now = self.all();
        wrong.extend(judge::index(&home, &now));
        wrong.extend(judge::nothing_pending(&home));
        let clean = ran.filter(|_| !trouble.full && trouble.company.is_none());
        let done = clean.is_some_and(|ran| ran.code == Some(0));
        if done && matches!(deed, Deed::Commit | Deed::CommitOne | Deed::Nightly) {
            wrong.extend(judge::committed(&home, before, &now, target));
        }
        if done && matches!(deed, Deed::Relay | Deed::Nightly) {
            wrong.extend(judge::relayed(&self.relay, before, &now));
        }
        let touched = deed.backs_up() || trouble.company == Some(Deed::Backup);
        if touched {
            let after = self.snapshots();
            for (n, store) in self.stores.clone().iter().enumerate() {
                wrong.extend(self.judge.snapshots(store));
                wrong.extend(judge::pruned(&snapshots[n], &after[n], self.moment()));
                let new = after[n].iter().rfind(|path| is_snapshot(path))
                    != snapshots[n].iter().rfind(|path| is_snapshot(path));
                if clean.is_some() && new && matches!(deed, Deed::Backup | Deed::Nightly) {
                    wrong.extend(self.judge.backed_up(store, before, &now));
                } else {
                    wrong.extend(self.judge.still_backed_up(store, &now, self.now));
                }
            }
        }
        if !wrong.is_empty() {
            if let Some(ran) = ran {
                self.story.push_back(format!("{ran:#?}"));
            }
            self.fail(&wrong);
        }
    }

    /// What takes longer: every now and then, and at the end. Nobody writes meanwhile.
    fn deep(&mut self) {
        for (id, session) in self.all() {
            if session.lies == Lies::Folder && !session.unfinished.is_empty() {
                self.finish(&id);
            }
        }
        judge::sound(&self.home(), &self.stores);
        let mut check = self.place.command();
        let ran = Ran::of(check.args(["check", "-v"]).output().unwrap());
        if ran.code != Some(0) {
            self.fail(&[format!("check: {ran:#?}")]);
        }
        self.effect("found sound", 1);
    }

    /// Writes what did not fit, as its agent would: a record that ends in the middle is a damage that `check` tells.
    fn finish(&self, id: &str) {
        let path = self.home().join("sessions").join(id).join(TRANSCRIPT);
        let mut file = std::fs::File::options().append(true).open(path).unwrap();
        self.change(id, |session| {
            let rest = std::mem::take(&mut session.unfinished);
            file.write_all(&rest).unwrap();
            session.appended(self.step, TRANSCRIPT, &rest);
        });
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

    // ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────────

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

/// Whether it was still running then.
fn kill_after(child: &mut Child, after: Duration) -> bool {
    let until = Instant::now() + after;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().is_ok()
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
