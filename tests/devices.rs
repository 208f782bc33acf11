//! Two devices, a home and a relay folder each, and between the folders a sync client that is faithful and slow: it
//! carries files one by one, in any order, some of them later, keeps both where both sides have changed one, and is cut
//! off for a while. Over random steps no content is lost and no two versions mix.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and plays the sync client"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use support::kill::Rng;
use support::{Place, Ran};

const SESSIONS: [&str; 3] = ["20240603_爬虫", "20240604_报告", "20240605_notes"];

/// What every file below a folder holds, by path; no link is followed.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    if !root.exists() {
        return BTreeMap::new();
    }
    let all = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    all.filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let rel = entry.path().strip_prefix(root).unwrap();
            let content = std::fs::read(entry.path()).unwrap();
            (rel.to_str().unwrap().to_owned(), content)
        })
        .collect()
}

/// Writes as sync clients do: whole, under another name first.
fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = path.with_file_name(".client-new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// A sync client between two folders.
#[derive(Default)]
struct Client {
    /// What both had when they were the same.
    base: BTreeMap<String, Vec<u8>>,
    conflicts: usize,
}

impl Client {
    /// Carries each file with that chance in a hundred. Whether there was anything to carry.
    fn step(&mut self, one: &Path, other: &Path, rng: &mut Rng, chance: u64) -> bool {
        let (a, b) = (files(one), files(other));
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).chain(self.base.keys()).collect();
        let mut anything = false;
        for name in names.into_iter().cloned().collect::<Vec<_>>() {
            let (x, y, base) = (a.get(&name), b.get(&name), self.base.get(&name));
            if x == y {
                match x {
                    Some(content) => drop(self.base.insert(name, content.clone())),
                    None => drop(self.base.remove(&name)),
                }
                continue;
            }
            anything = true;
            if rng.below(100) >= chance {
                continue;
            }
            let to_other = match (x, y) {
                _ if y == base => true,
                _ if x == base => false,
                // Deleted on one side and changed on the other: what was changed stays.
                (_, None) => true,
                (None, _) => false,
                (Some(x), Some(y)) => {
                    self.conflicts += 1;
                    let (stem, end) = name.rsplit_once('.').unwrap_or((&name, "x"));
                    let copy = format!("{stem} (conflicted copy {}).{end}", self.conflicts);
                    let wins = rng.below(2) == 0;
                    let loser = if wins { y } else { x };
                    for side in [one, other] {
                        write(&side.join(&copy), loser);
                    }
                    self.base.insert(copy, loser.clone());
                    wins
                }
            };
            let (from, to) = if to_other { (x, other) } else { (y, one) };
            let source = if to_other { one } else { other };
            match from {
                Some(content) => {
                    write(&to.join(&name), content);
                    self.base.insert(name, content.clone());
                }
                None => {
                    std::fs::remove_file(to.join(&name)).unwrap();
                    for folder in Path::new(&name).ancestors().skip(1) {
                        if !source.join(folder).exists() {
                            let _ = std::fs::remove_dir(to.join(folder));
                        }
                    }
                    self.base.remove(&name);
                }
            }
        }
        anything
    }

    fn settle(&mut self, two: &Two, rng: &mut Rng) {
        let (one, other) = (two.relay(0), two.relay(1));
        while self.step(&one, &other, rng, 100) {}
    }
}

struct Two {
    places: [Place; 2],
    /// Everything that was ever written.
    written: Vec<String>,
    mode: &'static str,
}

impl Two {
    fn new(mode: &'static str) -> Two {
        let places = [Place::with_home(), Place::with_home()];
        let mut two = Two {
            places,
            written: Vec::new(),
            mode,
        };
        for (device, ids) in [(0, &SESSIONS[..2]), (1, &SESSIONS[2..])] {
            let place = &two.places[device];
            place.ok(["relay", "init", "relay", "--mode", mode, "-q"]);
            for id in ids {
                place.session(id, 3);
            }
            place.ok(["index", "-q"]);
            place.ok([&["label"], ids, &["--sync-tag", "x", "-q"]].concat());
            for id in ids {
                two.work(device, id);
            }
        }
        two
    }

    fn relay(&self, device: usize) -> PathBuf {
        self.places[device].path("relay")
    }

    fn session(&self, device: usize, id: &str) -> PathBuf {
        self.places[device].home().join("sessions").join(id)
    }

    fn run(&self, device: usize, args: &[&str]) -> Ran {
        self.places[device].run(args)
    }

    /// An agent goes on: one more turn, and the list of all turns that belong to this version.
    fn work(&mut self, device: usize, id: &str) {
        let session = self.session(device, id);
        if !session.exists() {
            return;
        }
        let token = format!("token-{}-{device}-end", self.written.len());
        let turn = session.join(format!(
            "context/turn_{:03}_{device}.json",
            self.written.len() + 100
        ));
        std::fs::write(turn, format!("{{\"text\": \"{token}\"}}\n")).unwrap();
        self.written.push(token);
        let list = turns(&session).into_iter().collect::<Vec<_>>().join("\n");
        std::fs::write(session.join("memory/version.md"), list).unwrap();
    }

    /// Each version in a home is one that an agent has written, and nothing that was written is nowhere.
    fn sound(&self, what: &str) {
        let mut everything = Vec::new();
        for (device, place) in self.places.iter().enumerate() {
            for id in SESSIONS {
                let session = self.session(device, id);
                if !session.exists() {
                    continue;
                }
                let list = std::fs::read_to_string(session.join("memory/version.md"));
                let list: BTreeSet<String> = list
                    .unwrap_or_default()
                    .lines()
                    .map(str::to_owned)
                    .collect();
                assert_eq!(turns(&session), list, "{what}: mixed: {device} {id}");
            }
            for folder in [
                "me/workbuddy_home/sessions",
                "me/workbuddy_home/.wbhome/trash",
                "relay",
            ] {
                for content in files(&place.path(folder)).into_values() {
                    everything.extend(content);
                    everything.push(b'\n');
                }
            }
        }
        let everything = String::from_utf8_lossy(&everything);
        for token in &self.written {
            assert!(
                everything.contains(token),
                "{what}: {token} is lost ({})",
                self.mode
            );
        }
    }

    /// Who holds a lease, as a device sees it.
    fn holder(&self, device: usize, id: &str) -> Option<String> {
        let leases = files(&self.relay(device).join(".leases"));
        let said: Vec<(String, serde_json::Value)> = leases
            .iter()
            .filter_map(|(name, text)| {
                let said: serde_json::Value = serde_json::from_slice(text).ok()?;
                let device = said["device"].as_str()?.to_owned();
                (name.strip_suffix(".json") == Some(&*device)).then_some((device, said))
            })
            .collect();
        let numbers = |of: &dyn Fn(&serde_json::Value) -> Option<u64>| {
            let numbers = said.iter();
            numbers
                .filter_map(|(device, said)| Some((of(said)?, device.clone())))
                .max()
        };
        let held = numbers(&|said| said["leases"][id]["epoch"].as_u64());
        // What was let go of has overtaken what is lower.
        let let_go = numbers(&|said| said["released"][id].as_u64());
        held.filter(|held| let_go.is_none_or(|let_go| let_go <= *held))
            .map(|(_, device)| device)
    }

    fn device(&self, device: usize) -> String {
        let file = self.places[device].text("me/.local/share/wbhome/device.json");
        let device: serde_json::Value = serde_json::from_str(&file).unwrap();
        device["id"].as_str().unwrap().to_owned()
    }
}

/// What the turns of a version hold.
fn turns(session: &Path) -> BTreeSet<String> {
    let turns = files(&session.join("context")).into_values();
    let texts = turns.map(|text| String::from_utf8(text).unwrap());
    texts
        .filter_map(|text| {
            let from = text.find("token-")?;
            let to = text.find("-end")?;
            Some(text[from..to + 4].to_owned())
        })
        .collect()
}

fn a_hundred_steps(mode: &'static str, seed: u64) {
    let mut two = Two::new(mode);
    let mut client = Client::default();
    let mut rng = Rng(seed);
    let mut parted = false;
    let mut done: BTreeMap<&str, u64> = BTreeMap::new();
    for n in 0..100 {
        let device = rng.below(2) as usize;
        let id = SESSIONS[rng.below(3) as usize];
        let what = [
            "work",
            "work",
            "sync",
            "sync",
            "carry",
            "carry",
            "part",
            "take-lease",
            "release",
            "steal",
            "take",
            "ours",
        ][rng.below(12) as usize];
        let held_by_other: Vec<&str> = SESSIONS
            .into_iter()
            .filter(|id| {
                let holder = two.holder(device, id);
                holder.is_some_and(|holder| holder != two.device(device))
            })
            .collect();
        let there = |two: &Two, id: &&str| files(&two.relay(device).join(id));
        let before: Vec<_> = held_by_other.iter().map(|id| there(&two, id)).collect();
        let ran = match what {
            "work" => {
                two.work(device, id);
                None
            }
            "carry" => {
                if !parted {
                    let chance = 30 + rng.below(71);
                    client.step(&two.relay(0), &two.relay(1), &mut rng, chance);
                }
                None
            }
            "part" => {
                parted = !parted && rng.below(2) == 0;
                None
            }
            "sync" => Some(two.run(device, &["relay", "sync"])),
            "take-lease" => Some(two.run(device, &["lease", "take", id])),
            "release" => Some(two.run(device, &["lease", "release", id])),
            "steal" => Some(two.run(device, &["lease", "steal", id, "-y"])),
            "take" => Some(two.run(device, &["relay", "take", id])),
            _ => Some(two.run(device, &["relay", "sync", "--ours", id])),
        };
        let step = format!("{mode} seed {seed} step {n} {what} on {device} {id}");
        if let Some(ran) = &ran {
            assert!(matches!(ran.code, Some(0 | 1 | 3)), "{step}: {ran:#?}");
            *done.entry(what).or_default() += u64::from(ran.code == Some(0));
            if what != "steal" {
                let after: Vec<_> = held_by_other.iter().map(|id| there(&two, id)).collect();
                // Written in place through a hard link, what an agent does is there at once; no command does it.
                assert!(before == after, "{step}: {held_by_other:?} {ran:#?}");
            }
        }
        two.sound(&step);
    }
    eprintln!(
        "{mode} seed {seed}: succeeded {done:?}, {} conflict copies",
        client.conflicts
    );

    // The folders come together, and a person decides: what the first device has, counts.
    client.settle(&two, &mut rng);
    two.sound("settled");
    if mode == "symlink" {
        return;
    }
    for id in SESSIONS {
        let first = usize::from(!two.session(0, id).exists());
        let other = 1 - first;
        two.run(first, &["lease", "steal", id, "-y"]).expect(0);
        two.run(first, &["relay", "sync", "--ours", id]);
        two.run(first, &["lease", "release", id]).expect(0);
        client.settle(&two, &mut rng);
        // Also where that is what this device itself had sent once, and has gone on from since.
        two.run(other, &["lease", "take", id]).expect(0);
        two.run(other, &["relay", "take", id, "--force"]).expect(0);
        two.run(other, &["lease", "release", id]).expect(0);
        client.settle(&two, &mut rng);
        two.sound(id);
        assert_eq!(
            turns(&two.session(0, id)),
            turns(&two.session(1, id)),
            "{id}"
        );
    }
    for device in [0, 1] {
        two.run(device, &["relay", "sync"]).expect(0);
        client.settle(&two, &mut rng);
    }
    for id in SESSIONS {
        let both = [0, 1].map(|device| files(&two.relay(device).join(id)));
        assert!(both[0] == both[1] && !both[0].is_empty(), "{id}");
    }
}

#[test]
fn random_steps_with_copies() {
    for seed in 1..=4 {
        a_hundred_steps("clone", seed);
    }
}

#[test]
fn random_steps_with_hard_links() {
    for seed in 5..=6 {
        a_hundred_steps("hardlink", seed);
    }
}

#[test]
fn random_steps_with_symbolic_links() {
    a_hundred_steps("symlink", 7);
}

#[test]
#[ignore = "some minutes; run by hand"]
fn many_random_steps() {
    let mut rng = Rng::seeded();
    for _ in 0..30 {
        for mode in ["clone", "hardlink"] {
            a_hundred_steps(mode, rng.below(u64::MAX));
        }
    }
}

#[test]
fn a_double_lease_after_a_partition_is_seen_by_both_and_both_versions_are_kept() {
    let mut two = Two::new("clone");
    let mut client = Client::default();
    let mut rng = Rng(1);
    let id = SESSIONS[0];
    two.run(0, &["relay", "sync"]).expect(0);
    client.settle(&two, &mut rng);
    two.run(1, &["lease", "take", id]).expect(0);
    two.run(1, &["relay", "take", id]).expect(0);
    two.run(1, &["lease", "release", id]).expect(0);
    client.settle(&two, &mut rng);

    // Nobody carries anything: both take the lease, both write, both send.
    for device in [0, 1] {
        two.run(device, &["lease", "take", id]).expect(0);
        two.work(device, id);
        two.run(device, &["relay", "sync"]).expect(0);
    }
    let versions = [0, 1].map(|device| turns(&two.session(device, id)));
    assert_ne!(versions[0], versions[1]);
    client.settle(&two, &mut rng);
    let (loser, winner) = match two.device(0) > two.device(1) {
        true => (1, 0),
        false => (0, 1),
    };
    for device in [0, 1] {
        let seen = two.places[device].ok(["lease", "ls"]);
        // The one holds it, the other claims it as well.
        assert!(
            seen.contains("vm") && seen.contains("this device"),
            "{seen}"
        );
    }
    two.run(loser, &["relay", "sync"])
        .says(&["the lease of", "is given up"]);
    let told = two.run(winner, &["relay", "sync"]);
    told.expect(3).says(&["changed there"]);
    two.sound("after the partition");
    for device in [0, 1] {
        assert_eq!(turns(&two.session(device, id)), versions[device]);
    }
    // The relay holds both, in conflict copies: no version of it can be taken for one.
    client.settle(&two, &mut rng);
    two.run(winner, &["relay", "take", id])
        .expect(1)
        .says(&["may be still on its way"]);
    // The winner's counts; the loser takes it, and its own is in its trash.
    two.run(winner, &["relay", "sync", "--ours", id]).expect(0);
    two.run(winner, &["lease", "release", id]).expect(0);
    client.settle(&two, &mut rng);
    two.run(loser, &["lease", "take", id]).expect(0);
    two.run(loser, &["relay", "take", id]).expect(0);
    assert_eq!(turns(&two.session(loser, id)), versions[winner]);
    two.sound("at the end");
}

/// Half of a version, as a client has carried so far, is not taken.
#[test]
fn what_has_arrived_in_part_is_not_taken() {
    let two = Two::new("clone");
    let mut rng = Rng(3);
    let id = SESSIONS[0];
    two.run(0, &["relay", "sync"]).expect(0);
    let mut client = Client::default();
    client.settle(&two, &mut rng);
    let turn = two.relay(1).join(id).join("memory/version.md");
    let text = std::fs::read(&turn).unwrap();
    std::fs::remove_file(&turn).unwrap();
    two.run(1, &["lease", "take", id]).expect(0);
    let ran = two.run(1, &["relay", "take", id]);
    ran.expect(1)
        .says(&["may be still on its way, it is not what any device says to have sent"]);
    assert!(!two.session(1, id).exists());
    std::fs::write(&turn, text).unwrap();
    std::fs::write(two.relay(1).join(id).join(".DS_Store"), "x").unwrap();
    two.run(1, &["relay", "take", id]).expect(0);
    two.sound("taken");
}

/// The file in which a device says what it has sent is carried like any other, and may come last.
#[test]
fn what_comes_before_the_word_of_its_sender_is_not_taken() {
    let two = Two::new("clone");
    let id = SESSIONS[0];
    two.run(0, &["relay", "sync"]).expect(0);
    let sent = files(&two.relay(0));
    let (words, content): (Vec<_>, Vec<_>) = sent
        .iter()
        .partition(|(name, _)| name.starts_with(".leases/"));
    two.run(1, &["lease", "take", id]).expect(1);
    for (name, text) in content {
        write(&two.relay(1).join(name), text);
        if !name.starts_with(id) {
            continue;
        }
        two.run(1, &["lease", "take", id]).expect(0);
        two.run(1, &["relay", "take", id])
            .expect(1)
            .says(&["may be still on its way"]);
    }
    assert!(!two.session(1, id).exists());
    for (name, text) in words {
        write(&two.relay(1).join(name), text);
    }
    two.run(1, &["relay", "take", id]).expect(0);
    two.sound("taken");
}

/// Whether logs travel is each device's own choice.
#[test]
fn versions_go_to_and_fro_between_a_device_that_sends_logs_and_one_that_does_not() {
    let mut two = Two::new("clone");
    let (mut client, mut rng) = (Client::default(), Rng(5));
    let id = SESSIONS[0];
    let settings = two.places[0].home_text("wbhome.toml");
    let with_logs = settings.replace("\nlogs = false", "\nlogs = true");
    assert_ne!(settings, with_logs);
    two.places[0].put_home("wbhome.toml", with_logs);
    let log = |two: &Two, device| two.session(device, id).join("logs/run.log");
    std::fs::create_dir_all(log(&two, 0).parent().unwrap()).unwrap();
    std::fs::write(log(&two, 0), "of the first\n").unwrap();
    two.run(0, &["relay", "sync"]).expect(0);
    client.settle(&two, &mut rng);
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        two.run(to, &["lease", "take", id]).expect(0);
        two.run(to, &["relay", "take", id]).expect(0);
        two.work(to, id);
        two.run(to, &["relay", "sync"]).expect(0);
        two.run(to, &["lease", "release", id]).expect(0);
        client.settle(&two, &mut rng);
        assert!(turns(&two.session(from, id)).is_subset(&turns(&two.session(to, id))));
    }
    two.sound("to and fro");
    assert_eq!(std::fs::read(log(&two, 0)).unwrap(), b"of the first\n");
}
