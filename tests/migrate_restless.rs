//! A source that does not hold still: whatever changes, the migration ends with counts that add up, names what changed,
//! and loses nothing that held still.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use support::Place;
use support::corpus::Corpus;
use support::moving::{OLD, map_to};

/// What somebody does to a folder: each move is allowed to fail.
fn disturb(folder: &Path, n: u64) -> io::Result<()> {
    let file = |n: u64| folder.join(format!("f{}.json", n % 40));
    let (one, other) = (file(n), file(n / 7 + 13));
    let sub = folder.join(format!("d{}", n % 3));
    match n % 9 {
        0 | 1 => {
            let mut log = File::options().append(true).create(true).open(one)?;
            writeln!(log, "{{\"cwd\":\"{OLD}\"}}")
        }
        2 => fs::remove_file(one),
        3 => fs::rename(one, other),
        4 => fs::hard_link(one, other),
        5 => std::os::unix::fs::symlink(format!("{OLD}/x"), one),
        6 => {
            let new = one.with_extension("new");
            fs::write(&new, format!("{{\"cwd\":\"{OLD}\"}}\n"))?;
            fs::rename(new, one)
        }
        7 => {
            fs::create_dir(&sub)?;
            fs::write(sub.join("a.md"), OLD)
        }
        _ => fs::remove_dir_all(sub),
    }
}

fn run(moves: fn(u64) -> bool) {
    let place = Place::new();
    let corpus = Corpus {
        old_path: OLD.into(),
        ..Corpus::default()
    };
    let written = corpus.write(&place.path("C")).unwrap();
    let busy: Vec<PathBuf> = written.ids[..3]
        .iter()
        .map(|id| place.path(format!("C/sessions/{id}/artifacts")))
        .collect();
    for folder in &busy {
        for n in 0..40 {
            fs::write(
                folder.join(format!("f{n}.json")),
                format!("{{\"cwd\":\"{OLD}\"}}\n"),
            )
            .unwrap();
        }
    }
    for round in 0..6 {
        let dest = format!("H{round}");
        let stop = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Odd multiples, so that the moves do not come in the order of the files.
                for n in (0u64..).map(|n| n.wrapping_mul(2_654_435_761) >> 8) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    if moves(n) {
                        let _ = disturb(&busy[(n % 3) as usize], n / 3);
                    }
                }
            });
            let map = map_to(&place, &dest);
            let ran = place.run(["migrate", "C", &dest, "--map", &map, "--force", "--json"]);
            stop.store(true, Ordering::Relaxed);
            ran
        });
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
        let outcome = ran.json();
        let classes = &outcome["classes"];
        let parts = ["copied", "rewritten", "linked", "folders", "skipped"];
        let sum: u64 = parts.iter().map(|p| classes[p].as_u64().unwrap()).sum();
        assert_eq!(classes["total"], sum);
        // What held still is as it should be.
        let verified = place
            .run(["migrate", "verify", "--home", &dest, "--json"])
            .json();
        for difference in verified["differences"].as_array().unwrap() {
            let path = place.path("C").join(difference["path"].as_str().unwrap());
            assert!(busy.iter().any(|b| path.starts_with(b)), "{difference}");
            assert_ne!(difference["kind"], "damaged", "{difference}");
        }
    }
}

#[test]
fn files_that_are_appended_to_and_saved_again() {
    run(|n| matches!((n / 3) % 9, 0 | 1 | 6));
}

#[test]
fn names_that_come_go_and_change_their_kind() {
    run(|_| true);
}
