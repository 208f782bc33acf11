//! `kill -9` at any moment of a commit: nothing that a branch reaches is missing, and the next commit succeeds.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and kills what it started"
)]

mod support;

use std::time::{Duration, Instant};

use support::Place;
use support::corpus::Corpus;

/// Random numbers: SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

/// A home of some thousand files.
fn home() -> Place {
    let place = Place::with_home();
    let corpus = Corpus {
        sessions: 30,
        ..Corpus::default()
    };
    corpus.write(&place.path("made")).unwrap();
    std::fs::remove_dir_all(place.home().join("sessions")).unwrap();
    std::fs::rename(place.path("made/sessions"), place.home().join("sessions")).unwrap();
    place.ok(["index", "-q"]);
    place
}

/// Runs a commit and kills it after so long; whether it was still running then.
fn killed(place: &Place, after: Duration) -> bool {
    let mut child = place.command().args(["commit", "-q"]).spawn().unwrap();
    std::thread::sleep(after);
    let running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    running
}

fn touch(place: &Place, n: u64) {
    for session in std::fs::read_dir(place.home().join("sessions")).unwrap() {
        let memory = session.unwrap().path().join("memory");
        std::fs::create_dir_all(&memory).unwrap();
        std::fs::write(
            memory.join("state.md"),
            format!("{n}\n{}", "状态\n".repeat(200)),
        )
        .unwrap();
    }
}

fn kill_often(times: u64, seed: u64) {
    let mut rng = Rng(seed);
    let place = home();
    let began = Instant::now();
    place.ok(["commit", "-q"]);
    let takes = began.elapsed();
    place.git_is_content();
    let (mut first, mut later) = (0, 0);
    for n in 0..times {
        // Half of them in a repository that has nothing yet.
        let begins = n % 2 == 0;
        if begins {
            std::fs::remove_dir_all(place.home().join(".git")).unwrap();
        }
        touch(&place, n);
        let limit = if begins { takes } else { takes / 3 };
        let after = Duration::from_micros(rng.below(limit.as_micros() as u64 + 1));
        let running = killed(&place, after);
        *(if begins { &mut first } else { &mut later }) += u64::from(running);
        if place.home().join(".git/HEAD").exists() {
            place.fsck();
        }
        place.run(["commit", "-q"]).expect(0);
        place.git_is_content();
        assert!(!place.home().join(".git/index.lock").exists());
    }
    eprintln!("killed while running: {first} first commits, {later} later ones");
    assert!(first > times / 8 && later > 0, "{first} {later} of {times}");
}

#[test]
fn a_dozen_kills() {
    kill_often(12, 7);
}

#[test]
#[ignore = "a minute or two; run by hand"]
fn fifty_kills() {
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    eprintln!("seed {seed}");
    kill_often(50, seed as u64);
}
