//! `kill -9` at any moment of `backup run` and of `backup prune`, while an agent writes: what a snapshot names is whole,
//! the next run makes it good, and prune leaves nothing that no snapshot names.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and kills what it started"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::cold::{is_snapshot, kept, night, noise, packs_of, read, rest};
use support::corpus::Corpus;
use support::kill::{Rng, killed, killed_once};
use support::{Place, differences, has_tool};

/// Between two rounds pass so many nights: longer than a snapshot is kept.
const APART: i64 = 20;

/// How often one of the verbs was hit.
#[derive(Debug, Default)]
struct Hits {
    /// Before its end.
    running: u64,
    /// When the store was no more what it was, and not yet what it should become.
    amid: u64,
    /// Before its end or after.
    rounds: u64,
}

struct Race {
    place: Place,
    rng: Rng,
    /// The sessions, by their ids.
    ids: Vec<String>,
    /// The night that it is.
    now: i64,
    /// How long each verb takes.
    takes: BTreeMap<&'static str, Duration>,
    /// Packs that `zstd -t` has found whole, by their digests.
    whole: BTreeSet<String>,
    hits: BTreeMap<&'static str, Hits>,
}

/// Appends to the log of a session until it is dropped, as an agent at work does.
struct Writer {
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    fn new(log: PathBuf) -> Writer {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let write = move || {
            let mut file = std::fs::File::options()
                .append(true)
                .create(true)
                .open(log)
                .unwrap();
            while !seen.load(Ordering::Relaxed) {
                writeln!(file, "一行: a line").unwrap();
                std::thread::sleep(Duration::from_micros(700));
            }
        };
        let thread = Some(std::thread::spawn(write));
        Writer { stop, thread }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

impl Race {
    fn new(corpus: &Corpus, rng: Rng) -> Race {
        let place = Place::with_corpus(corpus);
        place.ok(["backup", "init", "cold", "-q"]);
        let index = place.index();
        let ids = index.as_array().unwrap().iter();
        let ids = ids.map(|entry| entry["id"].as_str().unwrap().to_owned());
        let mut race = Race {
            ids: ids.collect(),
            place,
            rng,
            now: 1,
            takes: BTreeMap::new(),
            whole: BTreeSet::new(),
            hits: BTreeMap::new(),
        };
        // Once everything, and then as often as it takes to know what a night takes, and what there is to prune.
        for _ in 0..3 {
            let began = Instant::now();
            race.expect(&["backup", "run"]);
            race.takes.insert("run", began.elapsed());
            race.now += APART;
            race.change();
        }
        let began = Instant::now();
        race.expect(&["backup", "prune"]);
        race.takes.insert("prune", began.elapsed());
        race
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command();
        command
            .env("WBHOME_NOW", night(self.now))
            .args(args)
            .arg("-q");
        command
    }

    /// Runs a command that must succeed.
    #[track_caller]
    fn expect(&self, args: &[&str]) {
        support::Ran::of(self.command(args).output().unwrap()).expect(0);
    }

    fn session(&self, n: usize) -> PathBuf {
        self.place.home().join("sessions").join(&self.ids[n])
    }

    /// What a day of work leaves: turns, tables, a session less in its folder and more in the archive, a new one.
    fn change(&mut self) {
        let all = self.ids.len() as u64;
        for _ in 0..3 {
            let n = self.rng.below(all) as usize;
            let folder = self.session(n);
            if !folder.exists() {
                self.place.ok(["unarchive", &self.ids[n], "-q"]);
            }
            let turn = 100 + self.now;
            std::fs::write(
                folder.join(format!("context/turn_{turn}.json")),
                format!("{{\"turn\": {turn}}}\n"),
            )
            .unwrap();
            let length = self.rng.below(200_000) as usize;
            std::fs::write(
                folder.join("artifacts/noise.bin"),
                noise(self.rng.below(u64::MAX), length),
            )
            .unwrap();
        }
        match self.rng.below(4) {
            // The first one is that of the writer.
            0 => {
                let n = 1 + self.rng.below(all - 1) as usize;
                if self.session(n).exists() {
                    self.place.ok(["archive", &self.ids[n], "-q"]);
                }
            }
            1 => {
                let id = format!("20240620_新_{}", self.now);
                self.place.session(&id, 20);
                self.place.ok(["index", "-q"]);
            }
            _ => {}
        }
        rest();
    }

    /// What the snapshots name is whole; this trusts nothing of the program. Then the program is asked.
    fn is_sound(&mut self) {
        self.place.snapshots_are_whole(&mut self.whole);
        self.expect(&["backup", "verify", "--all"]);
    }

    /// Nothing lies in the store but what belongs to it and is named.
    fn is_tidy(&self) {
        let cold = self.place.path("cold");
        let snapshots = self.place.snapshots();
        let named: BTreeSet<String> = snapshots
            .iter()
            .flat_map(|snapshot| packs_of(&read(snapshot)))
            .map(|(file, ..)| file)
            .collect();
        let there: BTreeSet<String> = self.place.packs().into_iter().collect();
        assert_eq!(there, named);
        assert!(snapshots.iter().all(|name| is_snapshot(name)));
        let mut names: Vec<_> = std::fs::read_dir(&cold)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "tmp")
            .collect();
        names.sort();
        assert_eq!(names, ["lock", "packs", "snapshots", "wbhome-store.json"]);
        let mut tmp = walkdir::WalkDir::new(cold.join("tmp"))
            .min_depth(1)
            .into_iter();
        assert!(tmp.next().is_none_or(|entry| entry.is_err()));
    }

    /// The files of the store but its lock, which may change while they are listed.
    fn names(&self) -> BTreeSet<PathBuf> {
        let cold = self.place.path("cold");
        let files = ["packs", "snapshots"].map(|folder| walkdir::WalkDir::new(cold.join(folder)));
        let files = files.into_iter().flatten().filter_map(Result::ok);
        let files = files.filter(|entry| entry.file_type().is_file());
        files.map(walkdir::DirEntry::into_path).collect()
    }

    /// One kill, and what it has to leave. An agent writes meanwhile.
    fn round(&mut self, verb: &'static str) {
        self.now += APART;
        self.change();
        if verb == "prune" {
            self.expect(&["backup", "run"]);
            // Now the one before it is superseded for long enough.
            self.now += APART;
        }
        let (before, planned) = (self.names(), self.planned());
        let writer = Writer::new(self.session(0).join("logs/agent.log"));
        let running = self.kill(verb, &before);
        let now = self.names();
        let amid = match verb {
            "run" => now != before && self.place.snapshots().len() == snapshots_in(&before),
            _ => now != before && before.difference(&now).count() < planned,
        };
        let hits = self.hits.entry(verb).or_default();
        hits.rounds += 1;
        hits.running += u64::from(running);
        hits.amid += u64::from(running && amid);
        self.is_sound();
        if verb == "prune" {
            // None of what went was needed: what is there now is what was to stay, and more.
            assert!(now.is_subset(&before));
        }
        self.now += 1;
        self.expect(&["backup", "run"]);
        drop(writer);
        self.is_sound();
        self.now += 1;
        self.expect(&["backup", "prune"]);
        self.is_tidy();
    }

    /// Kills a verb at any moment; every other time at one after the store is no more what it was.
    fn kill(&mut self, verb: &str, before: &BTreeSet<PathBuf>) -> bool {
        let takes = self.takes[verb];
        let command = self.command(&["backup", verb]);
        match self.rng.below(2) {
            0 => killed(command, self.rng.within(takes)),
            _ => {
                // The last of a prune are a few files to be unlinked.
                let after = self.rng.within(takes / if verb == "run" { 3 } else { 40 });
                killed_once(command, || self.names() != *before, after)
            }
        }
    }

    /// How many snapshots and packs a prune would remove.
    fn planned(&self) -> usize {
        let plan = self
            .place
            .at(self.now, &["backup", "prune", "-n", "--json"]);
        let plan = plan.expect(0).json()["stores"][0].clone();
        let count = |key: &str| plan[key].as_array().unwrap().len();
        count("snapshots") + count("packs")
    }

    /// The newest snapshot is the home.
    fn comes_back(&mut self) {
        rest();
        self.now += 1;
        self.expect(&["backup", "run"]);
        let now = night(self.now);
        let args = ["restore", "--all", "--from", "cold", "--to", "back"];
        self.place
            .run_with(&[("WBHOME_NOW", &now)], &args)
            .expect(0);
        let (home, back) = (self.place.home(), self.place.path("back"));
        let (home, restored) = (kept(&home), kept(&back));
        assert!(home == restored, "{}", differences(&home, &restored));
        std::fs::remove_dir_all(back).unwrap();
    }
}

fn snapshots_in(names: &BTreeSet<PathBuf>) -> usize {
    names.iter().filter(|name| is_snapshot(name)).count()
}

/// Kills both verbs in turn until each was hit so often while it was running.
fn kill_often(corpus: &Corpus, hits: u64, rng: Rng) {
    if !has_tool("zstd") {
        return;
    }
    let mut race = Race::new(corpus, rng);
    for n in 0.. {
        let enough = |verb| race.hits.get(verb).is_some_and(|h| h.running >= hits);
        let verb = match n % 2 {
            0 => "run",
            _ => "prune",
        };
        if enough("run") && enough("prune") {
            break;
        }
        assert!(n < hits * 12, "hardly ever hit: {:?}", race.hits);
        if !enough(verb) {
            race.round(verb);
        }
        if n % 5 == 4 {
            race.comes_back();
        }
    }
    race.comes_back();
    eprintln!("{:?}, {} packs looked at", race.hits, race.whole.len());
}

#[test]
fn a_few_kills() {
    kill_often(&Corpus::default(), 3, Rng(11));
}

/// `cargo test --all-features --test backup_kill -- --ignored --nocapture`
#[test]
#[ignore = "some minutes; run by hand"]
fn fifty_kills() {
    let corpus = Corpus {
        sessions: 24,
        ..Corpus::default()
    };
    kill_often(&corpus, 50, Rng::seeded());
}
