//! `wbhome rotate` killed at any point while somebody writes: after the next command each line is there, once and whole.

#![cfg(feature = "failpoints")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::Place;
use support::disks::Disk;
use support::lines::{self, Writer, assert_all, line, rotated};

const LOG: &str = "sessions/20240603_crawler/logs/run.log";

/// Keeps everything that is cut out.
fn place_on(folder: &Path, more: &str) -> (Place, PathBuf) {
    let place = Place::on(folder);
    place.session("20240603_crawler", 3);
    place.put_home("wbhome.toml", format!("[rotate]\nkeep = 9999\n{more}"));
    place.ok(["index", "-q"]);
    let log = place.home().join(LOG);
    (place, log)
}

fn die(place: &Place, failpoint: &str) {
    let ran = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], &["rotate", "--force"]);
    assert_eq!(ran.code, None, "it did not come to {failpoint}: {ran:?}");
}

/// Lines `0..n` at once.
fn fill(log: &Path, n: u64) {
    fill_from(log, 0, n);
}

fn fill_from(log: &Path, first: u64, n: u64) {
    let mut text = Vec::new();
    (first..n).for_each(|n| line(n, &mut text));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(log).unwrap();
    file.write_all(&text).unwrap();
}

/// Whether logs here are cut without loss; says so when they are not.
fn is_lossless(place: &Place) -> bool {
    place.put_home("sessions/20240603_crawler/logs/probe.log", "x\n");
    let done = place.json(["rotate", "--force"]);
    let lossless = done["cut"][0]["lossless"] == true;
    for name in place.names("sessions/20240603_crawler/logs") {
        std::fs::remove_file(
            place
                .home()
                .join("sessions/20240603_crawler/logs")
                .join(name),
        )
        .unwrap();
    }
    if !lossless {
        eprintln!("SKIPPED: this filesystem does not collapse");
    }
    lossless
}

/// Every step of a cut that takes whole blocks out, and what comes after it.
const STEPS: [&str; 14] = [
    "rotate.copied",
    "journal.begun",
    "rotate.named",
    "cut.unmarked",
    "cut.marked",
    "cut.mark-synced",
    "cut.slice",
    "cut.collapsed",
    "cut.out",
    "cut.noted",
    "cut.cleared",
    "rotate.cut",
    "rotate.compressed",
    "rotate.compressed-named",
];

/// Every step of a cut of a log without a whole block.
const SMALL: [&str; 9] = [
    "rotate.copied",
    "journal.begun",
    "rotate.named",
    "cut.unblanked",
    "cut.blanked",
    "cut.out",
    "cut.noted",
    "cut.cleared",
    "rotate.cut",
];

fn kill_at_every_step(folder: &Path) {
    let (place, log) = place_on(folder, "delay_compress = false\n");
    if !is_lossless(&place) {
        return;
    }
    let mut next = 0;
    for (n, failpoint) in STEPS.iter().enumerate() {
        let writer = Writer::from(&log, 50_000, next);
        writer.wait_for(4000);
        die(&place, failpoint);
        writer.wait_for(500);
        // Any command settles it, or the next rotation does.
        match n % 2 {
            0 => place.ok(["index", "-q"]),
            _ => place.ok(["rotate", "--force", "-q"]),
        };
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        writer.wait_for(500);
        place.ok(["rotate", "--force", "-q"]);
        (next, _) = writer.end();
        assert_all(&log, next);
        assert!(
            !lines::content(&log).starts_with(b"\n[wbhome"),
            "{failpoint}"
        );
    }
    place.ok(["rotate", "--force", "-q"]);
    assert_all(&log, next);
    let all = rotated(&log);
    assert!(all.len() > STEPS.len(), "{}", all.len());
    let is_packed = |path: &PathBuf| path.extension().is_some_and(|e| e == "zst");
    assert!(all.iter().all(is_packed), "{all:?}");
}

#[test]
fn a_log_of_a_few_lines_loses_none_and_doubles_none() {
    for (n, failpoint) in SMALL.iter().enumerate() {
        let (place, log) = place_on(&std::env::temp_dir(), "");
        fill(&log, 5);
        if n == 0 && !is_lossless(&place) {
            return;
        }
        fill(&log, if n == 0 { 5 } else { 0 });
        die(&place, failpoint);
        let mut options = std::fs::OpenOptions::new();
        let mut sixth = Vec::new();
        line(5, &mut sixth);
        options
            .append(true)
            .open(&log)
            .unwrap()
            .write_all(&sixth)
            .unwrap();
        match n % 2 {
            0 => place.ok(["index", "-q"]),
            _ => place.ok(["rotate", "--force", "-q"]),
        };
        assert_all(&log, 6);
        place.ok(["rotate", "--force", "-q"]);
        assert_all(&log, 6);
    }
}

/// At night nobody writes: what is left is shorter than the blank line of the cut before.
#[test]
fn the_second_cut_of_a_quiet_log_is_completed_too() {
    for failpoint in &STEPS[1..12] {
        let (place, log) = place_on(&std::env::temp_dir(), "");
        if !is_lossless(&place) {
            return;
        }
        // Where the seam falls is a matter of the bytes before: of all these some leave a short blank line.
        for lines in [40, 90, 150] {
            let _ = std::fs::remove_file(&log);
            rotated(&log)
                .iter()
                .for_each(|path| std::fs::remove_file(path).unwrap());
            fill(&log, 100 + lines);
            place.ok(["rotate", "--force", "-q"]);
            fill_from(&log, 100 + lines, 500);
            die(&place, failpoint);
            let told = place.run(["index"]);
            told.expect(0);
            assert!(
                !told.stderr.contains("may be in both"),
                "{failpoint}: {told:?}"
            );
            assert!(
                !lines::content(&log).starts_with(b"\n[wbhome"),
                "{failpoint} {lines}"
            );
            assert_all(&log, 500);
        }
    }
}

#[test]
fn every_line_is_there_once_whatever_step_was_the_last() {
    kill_at_every_step(&std::env::temp_dir());
}

#[test]
#[ignore = "mounts XFS; run by hand"]
fn every_line_is_there_once_on_xfs() {
    let place = Place::new();
    if let Some(disk) = Disk::new(&place.root(), "xfs", 1024) {
        kill_at_every_step(disk.path());
    }
}

/// A log of several slices, and lines that are all the same: only the mark says how far it came.
#[test]
fn between_two_slices_nothing_is_taken_out_twice() {
    let (place, log) = place_on(&std::env::temp_dir(), "compress = \"none\"\n");
    if !is_lossless(&place) {
        return;
    }
    let text = b"always the very same thirty-two\n".repeat(1 << 13);
    let mut lines = 0;
    for failpoint in [
        "cut.slice:1",
        "cut.slice:2",
        "cut.slice:3",
        "cut.mark-synced",
    ] {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(&log).unwrap();
        // 50 MiB.
        for _ in 0..200 {
            file.write_all(&text).unwrap();
            lines += 1 << 13;
        }
        die(&place, failpoint);
        file.write_all(&text).unwrap();
        lines += 1 << 13;
        // While it is half done, nothing is missing, and a person is told what is going on.
        let now = lines::content(&log);
        let told = b"\n[wbhome cuts this log ";
        assert!(memchr::memmem::find(&now, told).is_some(), "{failpoint}");
        place.ok(["index", "-q"]);
    }
    place.ok(["rotate", "--force", "-q"]);
    let mut found = 0;
    for path in rotated(&log).iter().chain([&log]) {
        for text in lines::content(path).split_inclusive(|b| *b == b'\n') {
            if text.iter().any(|b| !b.is_ascii_whitespace()) {
                assert_eq!(text, b"always the very same thirty-two\n");
                found += 1;
            }
        }
    }
    assert_eq!(found, lines);
}

fn kill_often(kills: u64, seed: u64) {
    let (place, log) = place_on(&std::env::temp_dir(), "delay_compress = false\n");
    if !is_lossless(&place) {
        return;
    }
    let mut state = seed;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below.max(1)
    };
    let writer = Writer::new(&log, 50_000);
    writer.wait_for(5000);
    let begun = Instant::now();
    place.ok(["rotate", "--force", "-q"]);
    let takes = begun.elapsed().as_micros() as u64 + 1;
    let mut hits = 0;
    for _ in 0..kills * 12 {
        if hits == kills {
            break;
        }
        let mut child = place
            .command()
            .args(["rotate", "--force", "-q"])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(random(takes)));
        let running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        hits += u64::from(running);
        if hits % 3 == 0 {
            place.ok(["index", "-q"]);
        }
    }
    assert_eq!(hits, kills);
    place.ok(["rotate", "--force", "-q"]);
    let (written, _) = writer.end();
    assert!(place.names(".wbhome/journal").is_empty());
    assert_all(&log, written);
}

#[test]
fn a_few_kills_at_any_moment() {
    kill_often(8, 7);
}

#[test]
#[ignore = "half a minute; run by hand"]
fn fifty_kills_at_any_moment() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    eprintln!("seed {}", now.as_nanos());
    kill_often(50, now.as_nanos() as u64);
}

/// Where a log is truncated: nothing is lost but what is written in the moment of it, and lines may be in both.
#[test]
fn what_is_truncated_loses_nothing_by_a_kill() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place.root(), "tmpfs", 64) else {
        return;
    };
    for failpoint in [
        "rotate.copied",
        "journal.begun",
        "rotate.named",
        "cut.unmarked",
        "cut.marked",
        "cut.rest",
        "cut.truncated",
        "cut.out",
        "cut.noted",
        "rotate.cut",
    ] {
        let (place, log) = place_on(disk.path(), "");
        fill(&log, 3000);
        // Something has to be written between the copy and the truncation.
        let writer = (failpoint == "cut.rest").then(|| Writer::from(&log, 20_000, 3000));
        die(&place, failpoint);
        let mut written = 3000;
        if let Some(writer) = writer {
            (written, _) = writer.end();
        }
        place.ok(["index", "-q"]);
        let seen = lines::follow(&log);
        assert_eq!(
            (seen.next, seen.lost),
            (written, 0),
            "{failpoint}: {seen:?}"
        );
        assert_eq!((seen.doubled, seen.torn), (0, 0), "{failpoint}");
    }
}
