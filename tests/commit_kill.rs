//! `kill -9` at any moment of a commit: nothing that a branch reaches is missing, and the next commit succeeds.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and kills what it started"
)]

mod support;

use std::time::Instant;

use support::Place;
use support::corpus::Corpus;
use support::kill::{Rng, killed};

/// A home of some thousand files.
fn home() -> Place {
    Place::with_corpus(&Corpus {
        sessions: 30,
        ..Corpus::default()
    })
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

fn kill_often(times: u64, mut rng: Rng) {
    let place = home();
    let began = Instant::now();
    place.ok(["commit", "-q"]);
    let mut takes = began.elapsed();
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
        let mut command = place.command();
        command.args(["commit", "-q"]);
        let running = killed(command, rng.within(limit));
        *(if begins { &mut first } else { &mut later }) += u64::from(running);
        if !running {
            // It was done before: the first one was measured while the machine was busy.
            takes = takes * 3 / 4;
        }
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
    kill_often(12, Rng(7));
}

#[test]
#[ignore = "a minute or two; run by hand"]
fn fifty_kills() {
    kill_often(50, Rng::seeded());
}
