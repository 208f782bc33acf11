//! `kill -9` at any moment, and a disk that is full: nothing half-written under its final name, and the same command
//! finishes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::corpus::Corpus;
use support::kill::Rng;
use support::mount::Mount;
use support::moving::{OLD, assert_same, map_to, small_home, visible};
use support::{Entry, Place, Ran, tree};

/// Where the files say that the home is afterwards: the same for every folder that they are migrated into, so that two
/// migrations can be compared byte by byte.
const NEW: &str = "/home/me/本地 (new)/workbuddy_home";

/// A source, and its migration that nobody has stopped.
struct Race {
    place: Place,
    before: BTreeMap<Vec<u8>, Entry>,
    reference: BTreeMap<Vec<u8>, Entry>,
    /// How long the migration takes.
    takes: Duration,
}

impl Race {
    fn of(corpus: &Corpus) -> Race {
        let place = Place::new();
        let written = corpus.write(&place.path("C")).unwrap();
        let before = tree(&place.path("C"));
        let begun = Instant::now();
        let ran = Ran::of(command(&place, "R").output().unwrap());
        let takes = begun.elapsed();
        ran.expect(0);
        eprintln!("{} files, {takes:.1?} without a stop", written.files);
        let reference = visible(&place.path("R"));
        Race {
            place,
            before,
            reference,
            takes,
        }
    }

    /// Every file that has its final name has all of its content, its mode and its time; every link its target.
    fn nothing_is_half_written(&self, dest: &str) -> usize {
        let home = self.place.path(dest);
        if !home.exists() {
            return 0;
        }
        let mut files = 0;
        for (path, entry) in visible(&home) {
            let name = String::from_utf8_lossy(&path).into_owned();
            // A kill between two calls may leave a copy under a temporary name, which is not its final one; the
            // next run takes it away, as the comparison at the end shows.
            if path_name(&path).starts_with(b".wbhome-tmp-") {
                continue;
            }
            let Some(wanted) = self.reference.get(&path) else {
                panic!("{name} is no part of the home");
            };
            assert_eq!(entry.kind, wanted.kind, "{name}");
            match entry.kind {
                'd' => continue,
                // Its links may come later, and its content is at first that of the source's index.
                'f' if name == "index.json" => {
                    let text = fs::read(home.join(&name)).unwrap();
                    serde_json::from_slice::<serde_json::Value>(&text).unwrap();
                }
                _ => {
                    let looks = |e: &Entry| (e.size, e.content.clone());
                    assert_eq!(looks(&entry), looks(wanted), "{name}");
                    if entry.kind == 'f' && !made_here(&path) {
                        assert_eq!(
                            (entry.mode, entry.mtime),
                            (wanted.mode, wanted.mtime),
                            "{name}"
                        );
                    }
                }
            }
            files += 1;
        }
        files
    }

    /// The home is that which nobody has stopped.
    fn is_finished(&self, dest: &str) {
        let place = &self.place;
        let mut home = visible(&place.path(dest));
        let mut reference = self.reference.clone();
        // The root's time is that of the last thing that was made in it.
        for tree in [&mut home, &mut reference] {
            tree.retain(|path, _| !path.is_empty());
            for (path, entry) in tree {
                // Made by the program, not copied.
                if made_here(path) {
                    entry.mtime = (0, 0);
                }
            }
        }
        assert_same(
            &home,
            &reference,
            "the home differs from one that nobody has stopped",
        );
        place.run(["migrate", "verify", "--home", dest]).expect(0);
        let status = place.json(["migrate", "status", "--home", dest]);
        let parts = ["copied", "rewritten", "linked", "folders", "skipped"];
        let classes = &status["classes"];
        let sum: u64 = parts.iter().map(|p| classes[p].as_u64().unwrap()).sum();
        assert_eq!(classes["total"], sum);
        assert_eq!(sum, self.before.len() as u64 - 1);
        self.lists_every_reference(&status);
    }

    /// The record has every reference that was changed, those of the runs that were stopped too. What was copied again
    /// may be listed again.
    fn lists_every_reference(&self, status: &serde_json::Value) {
        let list = Path::new(status["record"].as_str().unwrap()).join("references.jsonl");
        let text = fs::read_to_string(list).unwrap();
        let lines: BTreeSet<&str> = text.lines().collect();
        let counts = lines.iter().filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            line["count"].as_u64()
        });
        assert_eq!(status["references"]["changed"], counts.sum::<u64>());
    }
}

fn made_here(path: &[u8]) -> bool {
    let name = String::from_utf8_lossy(path);
    [
        "archive",
        "projects",
        "wbhome.toml",
        ".gitignore",
        "index.json",
    ]
    .contains(&&*name)
        || name.starts_with("projects/")
}

fn command(place: &Place, dest: &str) -> Command {
    let mut command = place.command();
    let map = format!("{OLD}={NEW}");
    command
        .args(["migrate", "C", dest, "--map", &map])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn spawn(place: &Place, dest: &str) -> Child {
    command(place, dest).spawn().unwrap()
}

/// Whether the record of a migration says that it is finished.
fn says_finished(home: &Path) -> bool {
    let records = fs::read_dir(home.join(".wbhome/migrations"));
    records.is_ok_and(|mut all| all.any(|r| r.unwrap().path().join("outcome.json").exists()))
}

/// So many kills does a migration have to bear before it is left alone.
const EACH: usize = 4;

/// Kills migrations until so many were hit in their middle. Each is followed by the same command, until it finishes.
fn kill(race: &Race, wanted: usize) {
    let (place, mut rng) = (&race.place, Rng::seeded());
    let (mut hits, mut early, mut homes) = (0, 0, 0);
    // The first migration of a source is the slowest.
    let mut limit = race.takes;
    while hits < wanted {
        let dest = format!("H{homes}");
        homes += 1;
        let home = place.path(&dest);
        let mut borne = 0;
        while borne < EACH && !says_finished(&home) {
            let mut child = spawn(place, &dest);
            let pause = rng.within(limit);
            std::thread::sleep(pause);
            let _ = child.kill();
            child.wait().unwrap();
            if says_finished(&home) {
                limit = limit * 7 / 10;
                break;
            }
            match race.nothing_is_half_written(&dest) {
                0 => early += 1,
                files => {
                    borne += 1;
                    eprintln!(
                        "killed after {pause:.0?}: {files} of {} files",
                        race.reference.len()
                    );
                }
            }
        }
        hits += borne;
        // What is removed makes what follows slow: the homes stay until the end.
        if borne == 0 {
            continue;
        }
        Ran::of(spawn(place, &dest).wait_with_output().unwrap()).expect(0);
        race.is_finished(&dest);
    }
    eprintln!("{hits} kills in the middle, {early} before the first file, {homes} homes");
    assert_same(
        &tree(&place.path("C")),
        &race.before,
        "the source was changed",
    );
}

#[test]
fn killed_at_random_moments_the_same_command_finishes() {
    let corpus = Corpus {
        sessions: 60,
        turns: 36,
        old_path: OLD.into(),
        log_bytes: 2 << 10,
        artifact_bytes: 2 << 10,
        damage: true,
        ..Corpus::default()
    };
    kill(&Race::of(&corpus), 12);
}

/// `cargo test --release --test migrate_kill -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn killed_fifty_times_in_twenty_thousand_files() {
    let corpus = Corpus {
        sessions: 400,
        turns: 36,
        old_path: OLD.into(),
        log_bytes: 2 << 10,
        artifact_bytes: 2 << 10,
        damage: true,
        ..Corpus::default()
    };
    kill(&Race::of(&corpus), 50);
}

#[test]
fn killed_while_it_is_adopted_the_home_is_finished_by_the_same_command() {
    let place = Place::new();
    let corpus = Corpus {
        old_path: OLD.into(),
        damage: true,
        ..Corpus::default()
    };
    corpus.write(&place.path("C")).unwrap();
    let map = map_to(&place, "H");
    let migrate = || {
        place
            .run(["migrate", "C", "H", "--map", &map, "--json"])
            .expect(0)
            .json()
    };
    let first = migrate();
    let before = visible(&place.path("H"));
    // As after a kill just before the record says that it is finished.
    let records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
    for record in records {
        fs::remove_file(record.unwrap().path().join("outcome.json")).unwrap();
    }
    let ran = place.run(["migrate", "status", "--home", "H"]);
    ran.expect(1)
        .says(&["stopped before its end", "wbhome migrate"]);
    place.run(["migrate", "verify", "--home", "H"]).expect(1);
    let again = migrate();
    assert_eq!(again["resumed"], true);
    // Nothing is copied a second time, but the index, which is not that of the source any more.
    let (copied, rewritten) = (&again["classes"]["copied"], &again["classes"]["rewritten"]);
    let all = copied.as_u64().unwrap() + rewritten.as_u64().unwrap();
    assert_eq!(again["classes"]["kept"], all - 1);
    for key in ["references", "skipped", "restless", "databases", "totals"] {
        assert_eq!(again[key], first[key], "{key}");
    }
    // What was wrong with the source is told again, all of it.
    assert_eq!(again["findings"], first["findings"]);
    let mut after = visible(&place.path("H"));
    for path in [&b""[..], b"index.json"] {
        after.get_mut(path).unwrap().mtime = before[path].mtime;
    }
    assert_same(&after, &before, "the home");
}

#[test]
fn killed_before_it_had_a_record_the_same_command_begins_again() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let map = map_to(&place, "H");
    let migrate = || place.run(["migrate", "C", "H", "--map", &map]);
    migrate().expect(0);
    // The home is begun before the record is: as it looks in between.
    for entry in fs::read_dir(place.path("H")).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            _ if path.ends_with(".wbhome") => {}
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    let records = place.path("H/.wbhome/migrations");
    fs::remove_dir_all(&records).unwrap();
    migrate().expect(0);
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
    // A home that has anything else in it is not ours to begin in.
    for entry in ["agents", "sessions"] {
        fs::remove_dir_all(place.path("H").join(entry)).unwrap();
    }
    fs::remove_dir_all(&records).unwrap();
    migrate().expect(1).says(&["not empty"]);
}

#[test]
fn a_full_disk_is_told_and_after_room_is_made_the_same_command_finishes() {
    let place = Place::new();
    let corpus = Corpus {
        sessions: 20,
        turns: 12,
        old_path: OLD.into(),
        artifact_bytes: 200 << 10,
        ..Corpus::default()
    };
    corpus.write(&place.path("C")).unwrap();
    let before = tree(&place.path("C"));
    let Some(mount) = Mount::image(place.path("disk"), 24) else {
        return;
    };
    // Once with room for a part of the files, once with hardly any for the record.
    for left in [2 << 20, 40 << 10] {
        mount.fill(left);
        let map = format!("{OLD}={NEW}");
        let args = ["migrate", "C", "disk/H", "--map", &map, "--force"];
        let ran = place.run(&args[..5]);
        ran.expect(1).says(&["not enough room"]);
        assert!(!place.path("disk/H").exists());
        let ran = place.run(args);
        ran.expect(1)
            .says(&["the disk is full", "make room", "goes on where it stopped"]);
        // It has no hope of going better, and says the same.
        let ran = place.run(args);
        ran.expect(1).says(&["the disk is full"]);
        assert_same(&tree(&place.path("C")), &before, "the source was changed");
        mount.make_room();
        let outcome = place
            .run([&args[..], &["--json"]].concat())
            .expect(0)
            .json();
        if left > 1 << 20 {
            assert_eq!(outcome["resumed"], true);
            assert!(
                outcome["classes"]["kept"].as_u64().unwrap() > 0,
                "{outcome}"
            );
        }
        place
            .run(["migrate", "verify", "--home", "disk/H"])
            .expect(0);
        assert_same(&tree(&place.path("C")), &before, "the source was changed");
        fs::remove_dir_all(place.path("disk/H")).unwrap();
    }
}

fn path_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}
