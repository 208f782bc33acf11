//! `wbhome rotate`: logs are cut while they are written, no line is lost, and what people know from logrotate holds.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use support::disks::Disk;
use support::lines::{self, Writer, assert_all, content, rotated};
use support::{Place, Ran, differences, has_tool, tree};

const LOGS: &str = "sessions/20240603_crawler/logs";
const LOG: &str = "sessions/20240603_crawler/logs/run.log";

/// A home with a session, and these settings below `[rotate]`.
fn place(settings: &str) -> Place {
    with(Place::with_home(), settings)
}

fn with(place: Place, settings: &str) -> Place {
    place.session("20240603_crawler", 3);
    place.put_home("wbhome.toml", format!("[rotate]\n{settings}\n"));
    place.ok(["index", "-q"]);
    place
}

/// Runs it at three o'clock of a day of June 2024.
fn on(place: &Place, day: u32, args: &[&str]) -> Ran {
    let now = format!("2024-06-{day:02}T03:00:00Z");
    place.run_with(&[("WBHOME_NOW", &now)], args)
}

/// Rotates on that day, and gives the document.
fn rotate(place: &Place, day: u32, args: &[&str]) -> Value {
    let ran = on(place, day, &[&["rotate", "--json"], args].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    ran.json()
}

fn append(place: &Place, rel: &str, text: &str) {
    let path = place.home().join(rel);
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The names of everything in the folder of the log but the log.
fn others(place: &Place) -> Vec<String> {
    let mut names = place.names(LOGS);
    names.retain(|name| name != "run.log");
    names
}

/// What a log and all that was cut out of it hold, without blank lines.
fn all_text(place: &Place) -> String {
    let log = place.home().join(LOG);
    let paths = rotated(&log);
    let texts = paths.iter().chain([&log]).filter(|path| path.exists());
    let text: String = texts
        .map(|path| String::from_utf8(content(path)).unwrap())
        .collect();
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !line.trim().is_empty());
    lines.collect()
}

fn collapses(done: &Value) -> bool {
    let how = done["cut"][0]["how"].as_str().unwrap();
    if how == "truncate" {
        eprintln!("SKIPPED: this filesystem does not collapse");
    }
    how != "truncate"
}

// ── The equation ───────────────────────────────────────────────────────────────────────────────────────────────────

/// Three writers in turn on three logs. Gives how long the longest write took.
fn no_line_is_lost(place: &Place, rotations: u32, a_second: u64) -> Duration {
    let logs: Vec<PathBuf> = (0..3)
        .map(|n| place.home().join(LOGS).join(format!("{n}.log")))
        .collect();
    let mut written = vec![0; 3];
    let mut longest = Duration::ZERO;
    for n in 0..rotations {
        let at = n as usize % 3;
        let writer = Writer::from(&logs[at], a_second, written[at]);
        writer.wait_for(2000);
        let done = place.json(["rotate", "--force"]);
        let cut = done["cut"].as_array().unwrap();
        assert!(cut.iter().all(|cut| cut["lossless"] == true), "{done}");
        writer.wait_for(100);
        let (count, took) = writer.end();
        written[at] = count;
        longest = longest.max(took);
    }
    for (log, written) in logs.iter().zip(written) {
        assert_all(log, written);
        assert!(rotated(log).len() >= rotations as usize / 3);
    }
    longest
}

fn keeping_all(place: Place) -> Place {
    with(place, "keep = 9999")
}

#[test]
fn no_line_is_lost_doubled_or_torn_while_three_logs_are_written_in_turn() {
    let place = place("keep = 9999");
    append(&place, LOG, "probe\n");
    let probe = place.json(["rotate", "--force"]);
    if collapses(&probe) {
        no_line_is_lost(&place, 12, 60_000);
    }
}

/// One writer that never rests, and sixty rotations.
fn sixty_rotations(folder: &Path) {
    let place = keeping_all(Place::on(folder));
    let log = place.home().join(LOG);
    let writer = Writer::new(&log, 100_000);
    let begun = Instant::now();
    for _ in 0..60 {
        writer.wait_for(3000);
        let done = place.json(["rotate", "--force"]);
        assert_eq!(done["cut"][0]["lossless"], true, "{done}");
    }
    let (written, longest) = writer.end();
    let rate = written as f64 / begun.elapsed().as_secs_f64();
    eprintln!(
        "{}: {written} lines, {rate:.0} a second, longest write {longest:?}",
        folder.display()
    );
    assert_all(&log, written);
    assert_eq!(rotated(&log).len(), 60);
    eprintln!(
        "three in turn: longest write {:?}",
        no_line_is_lost(&keeping_all(Place::on(folder)), 60, 100_000)
    );
}

#[test]
#[ignore = "a minute; run by hand"]
fn sixty_rotations_lose_no_line() {
    sixty_rotations(&std::env::temp_dir());
}

#[test]
#[ignore = "a minute, and mounts XFS; run by hand"]
fn sixty_rotations_lose_no_line_on_xfs() {
    let outer = Place::new();
    if let Some(disk) = Disk::new(&outer.root(), "xfs", 2048) {
        sixty_rotations(disk.path());
    }
}

#[test]
fn on_xfs_nothing_is_lost_either() {
    let outer = Place::new();
    if let Some(disk) = Disk::new(&outer.root(), "xfs", 512) {
        no_line_is_lost(&keeping_all(Place::on(disk.path())), 6, 40_000);
    }
}

/// Where nothing can be taken out of a file, that is told, and what is lost is what was written in one moment.
#[test]
fn elsewhere_a_log_is_truncated_and_that_is_told() {
    let outer = Place::new();
    for kind in ["tmpfs", "btrfs"] {
        let Some(disk) = Disk::new(&outer.root(), kind, 256) else {
            continue;
        };
        let place = keeping_all(Place::on(disk.path()));
        let log = place.home().join(LOG);
        let writer = Writer::new(&log, 40_000);
        for _ in 0..8 {
            writer.wait_for(1000);
            let done = place.json(["rotate", "--force"]);
            assert_eq!(done["cut"][0]["lossless"], false, "{done}");
            assert_eq!(done["cut"][0]["how"], "truncate");
        }
        let (written, _) = writer.end();
        let seen = lines::follow(&log);
        eprintln!("{kind}: {} of {written} lines lost", seen.lost);
        // A write is four lines at most; a few of them fit into the moment.
        assert!(
            seen.lost + seen.torn < 200 && seen.doubled == 0,
            "{kind}: {seen:?}"
        );
        assert_eq!(seen.next, written);
        // Without a writer nothing is lost.
        fs::write(place.home().join(LOGS).join("rests.log"), "one\ntwo").unwrap();
        let ran = place.run(["rotate", "--force"]);
        assert!(ran.stdout.contains("truncated: not lossless"), "{ran:?}");
        let rests = place.home().join(LOGS).join("rests.log");
        assert_eq!(content(&rotated(&rests)[0]), b"one\ntwo");
        assert_eq!(content(&rests), b"");
    }
}

// ── When ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_log_is_not_due_the_first_time_and_then_once_a_day() {
    let place = place("");
    append(&place, LOG, "first\n");
    let first = rotate(&place, 10, &[]);
    assert_eq!(
        (&first["cut"], &first["seen"], &first["resting"]),
        (&Value::Array(vec![]), &1.into(), &1.into())
    );
    assert_eq!(rotate(&place, 10, &[])["seen"], 0);
    assert_eq!(others(&place), [""; 0]);
    let next = rotate(&place, 11, &[]);
    assert_eq!(next["cut"][0]["due"], "day", "{next}");
    assert_eq!(next["cut"][0]["rotated"], "run.log-20240611T030000Z");
    assert_eq!(next["cut"][0]["bytes"], 6);
    append(&place, LOG, "second\n");
    assert_eq!(rotate(&place, 11, &[])["cut"], Value::Array(vec![]));
    assert_eq!(
        rotate(&place, 12, &[])["cut"][0]["rotated"],
        "run.log-20240612T030000Z"
    );
    // Nothing was written since: nothing is due, however long.
    assert_eq!(rotate(&place, 20, &[])["cut"], Value::Array(vec![]));
    assert_eq!(all_text(&place), "first\nsecond\n");
}

#[test]
fn weekly_and_never_and_size() {
    let weekly = place("every = \"weekly\"");
    append(&weekly, LOG, "x\n");
    // Friday, Sunday, Monday.
    rotate(&weekly, 14, &[]);
    assert_eq!(rotate(&weekly, 16, &[])["cut"], Value::Array(vec![]));
    assert_eq!(rotate(&weekly, 17, &[])["cut"][0]["due"], "week");

    let sized = place("every = \"never\"\nsize = \"1k\"");
    append(&sized, LOG, &"x\n".repeat(512));
    assert_eq!(rotate(&sized, 14, &[])["cut"], Value::Array(vec![]));
    assert_eq!(rotate(&sized, 28, &[])["cut"], Value::Array(vec![]));
    append(&sized, LOG, "x\n");
    assert_eq!(rotate(&sized, 28, &[])["cut"][0]["due"], "size");
    // What a cut leaves at the head does not count.
    append(&sized, LOG, "y\n");
    assert_eq!(rotate(&sized, 28, &[])["cut"], Value::Array(vec![]));
}

#[test]
fn force_cuts_what_is_not_due_and_only_what_is_named() {
    let place = place("");
    place.session("20240604_other", 4);
    append(&place, LOG, "x\n");
    append(&place, "sessions/20240604_other/logs/run.log", "x\n");
    let done = rotate(&place, 10, &["--force", "crawler"]);
    assert_eq!(done["cut"].as_array().unwrap().len(), 1);
    assert_eq!(done["cut"][0]["session"], "20240603_crawler");
    assert_eq!(done["cut"][0]["due"], "forced");
    assert_eq!(place.names("sessions/20240604_other/logs"), ["run.log"]);
    on(&place, 10, &["rotate", "nobody"]).expect(1);
}

#[test]
fn a_log_that_was_begun_anew_is_not_taken_for_one_that_was_cut() {
    let place = place("");
    append(&place, LOG, "same length\n");
    rotate(&place, 10, &["--force"]);
    place.put_home(LOG, "other words\n");
    let done = rotate(&place, 11, &[]);
    assert_eq!(done["cut"][0]["bytes"], 12, "{done}");
    assert_eq!(all_text(&place), "same length\nother words\n");
}

#[test]
fn a_dry_run_says_what_is_due_and_why_and_changes_nothing() {
    let place = place("keep = 1");
    append(&place, LOG, "first\n");
    rotate(&place, 10, &[]);
    rotate(&place, 11, &[]);
    append(&place, LOG, "second\n");
    append(&place, &format!("{LOGS}/new.log"), "x\n");
    let before = tree(&place.home());
    let ran = on(&place, 12, &["rotate", "-n", "-v"]);
    ran.expect(0);
    for said in [
        "run.log   7 B   due: the day has changed",
        "new.log   not due: it is seen for the first time",
        "would go: [rotate] keep",
        "1 log due, 1 not. Nothing was changed.",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    let plan = on(&place, 12, &["rotate", "-n", "--json"]).json();
    assert_eq!(
        plan["removed"][0]["path"],
        format!("{LOG}-20240611T030000Z")
    );
    assert_eq!(differences(&before, &tree(&place.home())), "");
    // What it says is what is done.
    let done = rotate(&place, 12, &[]);
    assert_eq!(done["removed"], plan["removed"]);
    assert_eq!(done["cut"].as_array().unwrap().len(), 1);
}

#[test]
fn missing_and_empty_logs() {
    let place =
        place("logs = [\"sessions/*/logs/*.log\", \"agents/x/run.log\"]\nmissing_ok = false");
    append(&place, LOG, "");
    let ran = on(&place, 10, &["rotate"]);
    ran.expect(1).says(&[
        "no log is there for [rotate] logs agents/x/run.log",
        "missing_ok",
    ]);
    place.put_home("agents/x/run.log", "x\n");
    on(&place, 10, &["rotate"]).expect(0);
    // Empty: not cut, not even with force.
    let done = rotate(&place, 11, &["--force"]);
    assert_eq!(done["cut"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(done["cut"][0]["path"], "agents/x/run.log");
    place.put_home("wbhome.toml", "[rotate]\nnot_empty = false\n");
    let done = rotate(&place, 12, &[]);
    assert_eq!(
        (&done["cut"][0]["path"], &done["cut"][0]["bytes"]),
        (&LOG.into(), &0.into())
    );
    assert_eq!(others(&place), ["run.log-20240612T030000Z"]);
    // No log at all is no error.
    fs::remove_file(place.home().join(LOG)).unwrap();
    on(&place, 13, &["rotate"]).expect(0);
}

// ── What stays ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// A line a day from the 10th on; gives what is there in the end.
fn days(place: &Place, last: u32) -> Vec<String> {
    for day in 10..=last {
        append(place, LOG, &format!("day {day}\n"));
        rotate(place, day, &[]);
    }
    others(place)
}

#[test]
fn seven_are_kept_and_the_newest_is_not_compressed_yet() {
    let place = place("");
    let mut wanted: Vec<String> = (14..=19)
        .map(|day| format!("run.log-202406{day}T030000Z.zst"))
        .collect();
    wanted.push("run.log-20240620T030000Z".into());
    assert_eq!(days(&place, 20), wanted);
    let text: String = (14..=20).map(|day| format!("day {day}\n")).collect();
    assert_eq!(all_text(&place), text);
    if has_tool("zstd") {
        let packed = place.home().join(LOGS).join(&wanted[0]);
        let out = Command::new("zstd")
            .args(["-dcq"])
            .arg(packed)
            .output()
            .unwrap();
        assert_eq!(out.stdout, b"day 14\n");
    }
}

#[test]
fn none_one_and_many_are_kept() {
    for (keep, left) in [(0, 0), (1, 1), (2, 2), (9, 3)] {
        let place = place(&format!("keep = {keep}"));
        assert_eq!(days(&place, 13).len(), left, "{keep}");
    }
}

#[test]
fn without_delay_all_are_compressed_and_with_none_nothing_is() {
    let place = place("delay_compress = false\ncompress = \"gzip\"");
    let names = days(&place, 13);
    assert!(names.iter().all(|name| name.ends_with("Z.gz")), "{names:?}");
    if has_tool("gzip") {
        let packed = place.home().join(LOGS).join(&names[0]);
        let done = Command::new("gzip").arg("-t").arg(packed).status().unwrap();
        assert!(done.success());
    }
    assert_eq!(all_text(&place), "day 10\nday 11\nday 12\nday 13\n");
    let place = self::place("compress = \"none\"");
    let names = days(&place, 13);
    assert!(names.iter().all(|name| name.ends_with('Z')), "{names:?}");
}

#[test]
fn what_is_older_than_max_age_goes_but_never_the_newest() {
    let place = place("max_age = \"2d\"");
    days(&place, 14);
    // Exactly two days old is not older.
    assert_eq!(others(&place).len(), 3);
    rotate(&place, 28, &[]);
    assert_eq!(others(&place), ["run.log-20240614T030000Z"]);
}

#[test]
fn all_of_a_session_take_no_more_than_max_total() {
    let place = place("max_total = \"250\"\ncompress = \"none\"");
    let hundred = format!("{}\n", "x".repeat(99));
    for day in 10..=14 {
        append(&place, LOG, &hundred);
        append(&place, &format!("{LOGS}/b.log"), &hundred);
        rotate(&place, day, &[]);
    }
    // The newest of each stays, and they are 200 together.
    let mut left = place.names(LOGS);
    left.retain(|name| name.contains('-'));
    assert_eq!(left, ["b.log-20240614T030000Z", "run.log-20240614T030000Z"]);
    let before = left.len();
    place.put_home("wbhome.toml", "[rotate]\nmax_total = \"10\"\n");
    rotate(&place, 15, &[]);
    assert_eq!(
        place
            .names(LOGS)
            .iter()
            .filter(|name| name.contains('-'))
            .count(),
        before
    );
}

#[test]
fn files_that_only_look_alike_are_nobodys_business() {
    let place = place("keep = 1\nmax_age = \"1d\"\nlogs = [\"sessions/*/logs/*\"]");
    let strays = [
        "run.log-20240101",
        "run.log.1",
        "run.log-20240101T000000Z.bak",
        "other.log-20200101T000000Z",
    ];
    for stray in strays {
        place.put_home(&format!("{LOGS}/{stray}"), "");
    }
    days(&place, 14);
    let left = others(&place);
    for stray in strays {
        assert!(left.contains(&stray.to_owned()), "{stray}: {left:?}");
    }
    assert_eq!(left.len(), strays.len() + 1);
}

#[test]
fn times_modes_and_what_nobody_wrote_stay() {
    let place = place("delay_compress = false");
    append(&place, LOG, "x\n");
    let log = place.home().join(LOG);
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_717_405_200, 7);
    fs::set_permissions(&log, fs::Permissions::from_mode(0o640)).unwrap();
    File::open(&log).unwrap().set_modified(then).unwrap();
    place.ok(["index", "-q"]);
    let listed = place.json(["ls", "-l"])["sessions"][0]["last_activity"].clone();
    rotate(&place, 10, &["--force"]);
    for name in place.names(LOGS) {
        let meta = fs::metadata(place.home().join(LOGS).join(&name)).unwrap();
        assert_eq!(
            (meta.permissions().mode() & 0o7777, meta.modified().unwrap()),
            (0o640, then),
            "{name}"
        );
    }
    assert!(others(&place)[0].ends_with(".zst"));
    // To be cut is no activity.
    place.ok(["index", "-q"]);
    assert_eq!(
        place.json(["ls", "-l"])["sessions"][0]["last_activity"],
        listed
    );
}

#[test]
fn what_can_not_be_compressed_is_told_and_tried_again() {
    let place = place("keep = 99");
    days(&place, 11);
    let plain = place.home().join(LOGS).join("run.log-20240610T030000Z");
    let packed = place.home().join(LOGS).join("run.log-20240610T030000Z.zst");
    // Somebody else's file has the name; and one that a kill has left is completed.
    fs::rename(
        place.home().join(LOGS).join("run.log-20240611T030000Z"),
        &plain,
    )
    .unwrap();
    assert!(!packed.exists() || fs::remove_file(&packed).is_ok());
    append(&place, LOG, "x\n");
    fs::write(&packed, "not what it should be").unwrap();
    let ran = on(&place, 12, &["rotate"]);
    ran.expect(3)
        .says(&["can not compress", "run.log-20240610T030000Z"]);
    assert!(plain.exists() && packed.exists());
    fs::remove_file(&packed).unwrap();
    let done = rotate(&place, 12, &[]);
    assert_eq!(
        done["compressed"][0]["path"],
        format!("{LOG}-20240610T030000Z.zst")
    );
    assert!(!plain.exists() && packed.exists());
    fs::write(&plain, content(&packed)).unwrap();
    rotate(&place, 12, &[]);
    assert!(!plain.exists());
}

#[test]
fn names_sort_by_age_however_many_there_are_in_a_second() {
    let place = place("keep = 99");
    let mut lines = String::new();
    for n in 0..13 {
        append(&place, LOG, &format!("{n}\n"));
        lines += &format!("{n}\n");
        rotate(&place, 10, &["--force"]);
    }
    let names = others(&place);
    assert_eq!(names[0], "run.log-20240610T030000Z.zst");
    assert_eq!(names[12], "run.log-20240610T030012Z");
    assert_eq!(all_text(&place), lines);
    // What docs/rotate.md says about reading it without this program.
    if !has_tool("zstdcat") {
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rotate.md");
    let page = fs::read_to_string(page).unwrap();
    let recipe = page
        .lines()
        .find(|line| line.starts_with("zstdcat "))
        .unwrap();
    let (recipe, _) = recipe.split_once("| less").unwrap();
    let mut bash = Command::new("bash");
    let read = bash
        .args(["-c", recipe])
        .current_dir(place.home().join(LOGS));
    let read = String::from_utf8(read.output().unwrap().stdout).unwrap();
    let read: Vec<&str> = read
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(read.join("\n") + "\n", lines);
}

/// What is cut out last is the newest, whatever the clock says: else it would be the first to go.
#[test]
fn a_clock_that_was_set_back_costs_nothing() {
    let place = place("keep = 2\ncompress = \"none\"");
    for (day, text) in [(20, "1\n"), (19, "2\n"), (10, "3\n")] {
        append(&place, LOG, text);
        rotate(&place, day, &["--force"]);
    }
    assert_eq!(all_text(&place), "2\n3\n");
    append(&place, LOG, "4\n");
    rotate(&place, 21, &["--force"]);
    assert_eq!(
        others(&place),
        ["run.log-20240620T030002Z", "run.log-20240621T030000Z"]
    );
    assert_eq!(all_text(&place), "3\n4\n");
}

// ── What is left alone ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn links_and_fifos_are_named_and_left_alone() {
    let place = place("");
    let logs = place.home().join(LOGS);
    place.put_home("outside.txt", "outside\n");
    append(&place, LOG, "x\n");
    symlink("../../../outside.txt", logs.join("link.log")).unwrap();
    fs::write(logs.join("hard.log"), "hard\n").unwrap();
    fs::hard_link(logs.join("hard.log"), place.home().join("second name")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        logs.join("fifo.log"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let ran = on(&place, 10, &["rotate", "--force"]);
    ran.expect(3).says(&[
        "hard.log: it has 2 names (hard links)",
        "link.log: it is a symbolic link",
        "fifo.log: it is a FIFO",
    ]);
    assert_eq!(place.home_text("outside.txt"), "outside\n");
    assert_eq!(place.home_text("second name"), "hard\n");
    // One that is not due does not trouble anybody.
    let ran = on(&place, 11, &["rotate"]);
    ran.expect(0);
    assert!(!ran.stderr.contains("hard.log"), "{ran:?}");
    let done = rotate(&place, 12, &[]);
    let mut reasons: Vec<&str> = done["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["reason"].as_str().unwrap())
        .collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["hard-linked", "special", "symlink"]);
    // A folder on the way that is a link is not followed.
    symlink(
        place.home().join("sessions/20240603_crawler"),
        place.home().join("sessions/20240605_link"),
    )
    .unwrap();
    append(&place, LOG, "y\n");
    let done = rotate(&place, 13, &[]);
    assert_eq!(done["cut"].as_array().unwrap().len(), 1);
    let left = done["left"].as_array().unwrap();
    let is_it = |left: &Value| left["path"] == "sessions/20240605_link";
    assert!(left.iter().any(is_it), "{done}");
}

/// What is cut is let go of some day: nothing but logs may ever be.
#[test]
fn whatever_a_glob_says_nothing_but_logs_is_cut() {
    let place = place("logs = [\"**/*\"]\nkeep = 0");
    place.session("20240604_done", 2);
    place.ok(["archive", "20240604_done", "-q"]);
    append(&place, LOG, "x\n");
    let all = |place: &Place| {
        let mut all = tree(&place.home());
        all.retain(|path, _| !path.starts_with(b".wbhome") && !path.starts_with(LOGS.as_bytes()));
        all
    };
    let before = all(&place);
    let done = rotate(&place, 10, &["--force"]);
    assert_eq!(done["cut"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(differences(&before, &all(&place)), "");
    place.ok(["unarchive", "20240604_done", "-q"]);
    place.put_home("wbhome.toml", "[rotate]\nlogs = [\"sessions/*/*.json\"]\n");
    on(&place, 11, &["rotate"])
        .expect(1)
        .says(&["names nothing that is a log"]);
}

#[test]
fn one_glob_that_leads_nowhere_does_not_stop_the_others() {
    let place = place("logs = [\"sessions/*/logs/*.log\", \"~/.workbuddy/logs/*.log\"]");
    append(&place, LOG, "x\n");
    let ran = on(&place, 10, &["rotate", "--force"]);
    ran.expect(0);
    assert_eq!(others(&place).len(), 1);
    place.put_home(
        "wbhome.toml",
        "[rotate]\nlogs = [\"sessions/*/logs/*.log\", \"/etc/*.conf\", \"[\"]\n",
    );
    append(&place, LOG, "y\n");
    let ran = on(&place, 11, &["rotate", "--force"]);
    ran.expect(3).says(&["/etc/*.conf", "makes no sense"]);
    assert_eq!(others(&place).len(), 2);
}

#[test]
fn a_dry_run_names_what_would_go_and_be_compressed_of_what_is_cut() {
    let place = place("keep = 0");
    append(&place, LOG, "x\n");
    let plan = || on(&place, 10, &["rotate", "--force", "-n"]).stdout;
    assert!(plan().contains("run.log-20240610T030000Z   would go: [rotate] keep"));
    place.put_home("wbhome.toml", "[rotate]\ndelay_compress = false\n");
    assert!(plan().contains("run.log-20240610T030000Z   would be compressed"));
}

#[test]
fn a_blank_line_is_no_reason_to_cut_whoever_has_lost_the_record() {
    let place = place("");
    append(
        &place,
        LOG,
        &"a line of some length, so that it is no short one\n".repeat(3),
    );
    rotate(&place, 10, &["--force"]);
    fs::remove_file(place.home().join(".wbhome/rotate.json")).unwrap();
    let plan = rotate(&place, 11, &["--force", "-n"]);
    assert_eq!(plan["logs"][0]["rest"], "empty", "{plan}");
    assert_eq!(others(&place).len(), 1);
}

#[test]
fn an_archived_session_has_no_logs_to_cut() {
    let place = place("");
    place.session("20240604_done", 2);
    place.ok(["archive", "20240604_done", "-q"]);
    on(&place, 10, &["rotate", "20240604_done"])
        .expect(1)
        .says(&["is not in sessions/", "wbhome unarchive"]);
}

/// Runs it while the `n`-th call of a kind is held up, does something when it has come so far, and gives what came of it.
fn meanwhile(
    place: &Place,
    call: &str,
    n: u32,
    is_there: impl Fn() -> bool,
    act: impl FnOnce(),
) -> Option<(Option<i32>, Value)> {
    if !has_tool("strace") {
        eprintln!("SKIPPED: no strace");
        return None;
    }
    let running = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={call}"),
        ])
        .args(["-e", &format!("inject={call}:delay_enter=1500000:when={n}")])
        .arg(env!("CARGO_BIN_EXE_wbhome"))
        .args(["rotate", "--force", "--json", "--home"])
        .arg(place.home())
        .env_clear()
        .env("HOME", place.user_home())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !is_there() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    act();
    let done = running.wait_with_output().unwrap();
    let json = serde_json::from_slice(&done.stdout).unwrap_or_default();
    Some((done.status.code(), json))
}

fn many_lines() -> String {
    (0..3000).map(|n| format!("{n:09}\n")).collect()
}

#[test]
fn a_log_that_is_removed_in_the_middle_is_in_its_copy_and_no_failure() {
    let place = place("");
    append(&place, LOG, &many_lines());
    let log = place.home().join(LOG);
    // The mark is synced.
    let is_named = || !others(&place).is_empty();
    let remove = || fs::remove_file(&log).unwrap();
    let ran = meanwhile(&place, "fdatasync", 1, is_named, remove);
    let Some((code, done)) = ran else { return };
    assert_eq!(code, Some(0), "{done}");
    assert_eq!(all_text(&place), many_lines());
    // Nothing waits.
    assert_eq!(place.names(".wbhome/journal"), [""; 0]);
}

#[test]
fn a_log_that_gets_a_second_name_in_the_middle_is_left_alone() {
    let place = place("");
    append(&place, LOG, &many_lines());
    let (log, other) = (place.home().join(LOG), place.home().join("other"));
    // The copy gets its length, mostly; whenever the name is made, the log is left alone.
    let begun = Instant::now();
    let is_late = || begun.elapsed() > Duration::from_millis(700);
    let link = || fs::hard_link(&log, &other).unwrap();
    let ran = meanwhile(&place, "ftruncate", 2, is_late, link);
    let Some((code, done)) = ran else { return };
    if code == Some(0) && done["cut"][0]["how"] == "truncate" {
        eprintln!("SKIPPED: this filesystem does not collapse");
        return;
    }
    assert_eq!(code, Some(3), "{done}");
    assert_eq!(done["left"][0]["reason"], "hard-linked", "{done}");
    assert_eq!(fs::read_to_string(&other).unwrap(), many_lines());
    assert_eq!(others(&place), [""; 0]);
}

/// A disk in trouble is no reason to lose lines.
#[test]
fn a_log_is_not_truncated_because_the_disk_has_an_error() {
    if !has_tool("strace") {
        eprintln!("SKIPPED: no strace");
        return;
    }
    let place = place("");
    append(&place, LOG, &many_lines());
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fallocate"])
        .args(["-e", "inject=fallocate:error=EIO:when=1"])
        .arg(env!("CARGO_BIN_EXE_wbhome"))
        .args(["rotate", "--force", "--home"])
        .arg(place.home())
        .env_clear()
        .env("HOME", place.user_home())
        .output()
        .unwrap();
    let is_elsewhere = others(&place).len() == 1;
    if is_elsewhere && done.status.code() == Some(0) {
        eprintln!("SKIPPED: this filesystem does not collapse");
        return;
    }
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(
        fs::read_to_string(place.home().join(LOG)).unwrap(),
        many_lines()
    );
}

/// Somebody who writes at places of their own, as `> run.log` does.
#[test]
fn a_log_that_is_not_appended_to_is_left_alone_unless_forced() {
    let place = place("");
    let log = place.home().join(LOG);
    let mut file = File::create(&log).unwrap();
    let text = "a line of a crawl\n".repeat(1000);
    file.write_all(text.as_bytes()).unwrap();
    rotate(&place, 10, &[]);
    let ran = on(&place, 11, &["rotate"]);
    ran.expect(3).says(&[
        "without O_APPEND",
        &format!("process {}", std::process::id()),
        ">>",
        "--force",
    ]);
    assert_eq!(place.home_text(LOG), text);
    let done = rotate(&place, 11, &[]);
    assert_eq!(done["left"][0]["reason"], "plain-writer");
    assert_eq!(done["left"][0]["writers"][0]["pid"], std::process::id());

    let ran = on(&place, 11, &["rotate", "--force"]);
    ran.expect(0)
        .says(&["writes without O_APPEND: what it writes next stands behind a hole of NULs"]);
    file.write_all(b"the next line\n").unwrap();
    let now = fs::read(&log).unwrap();
    assert!(now.ends_with(b"\0the next line\n"));
    assert_eq!(content(&rotated(&log)[0]), text.as_bytes());
    // With O_APPEND it would not have been.
    drop(file);
    let done = rotate(&place, 12, &[]);
    assert_eq!(done["cut"][0]["lossless"], true);
}

#[test]
fn half_a_line_stays_until_it_is_whole() {
    let place = place("");
    append(&place, LOG, "no newline yet");
    let looked_at = || {
        fs::metadata(place.home().join(LOG))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = looked_at();
    for args in [&["--force", "-n"][..], &["--force"]] {
        let done = rotate(&place, 10, args);
        assert_eq!(done["left"][0]["reason"], "no-line", "{done}");
    }
    assert_eq!(looked_at(), before);
    append(&place, LOG, ", but now\nand half of");
    rotate(&place, 10, &["--force"]);
    append(&place, LOG, " the next\n");
    rotate(&place, 10, &["--force"]);
    let log = place.home().join(LOG);
    assert_eq!(content(&rotated(&log)[0]), b"no newline yet, but now\n");
    assert_eq!(content(&rotated(&log)[1]), b"and half of the next\n");
}

#[test]
fn a_hole_in_a_log_takes_no_room_in_what_is_cut_out() {
    let place = place("compress = \"none\"");
    let log = place.home().join(LOG);
    let mut file = File::create(&log).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"after a gigabyte of nothing\n").unwrap();
    drop(file);
    rotate(&place, 10, &["--force"]);
    let cut = fs::metadata(&rotated(&log)[0]).unwrap();
    assert_eq!(cut.len(), (1 << 30) + 28);
    assert!(cut.blocks() * 512 < 1 << 20 && fs::metadata(&log).unwrap().len() < 8192);
}

#[test]
fn a_full_disk_leaves_the_log_as_it_was() {
    let outer = Place::new();
    for (kind, mib) in [("ext4", 48), ("tmpfs", 40)] {
        let Some(disk) = Disk::new(&outer.root(), kind, mib) else {
            continue;
        };
        let place = with(Place::on(disk.path()), "");
        let text = "sixteen letters\n".repeat(1 << 20);
        append(&place, LOG, &text);
        append(
            &place,
            "sessions/20240603_crawler/artifacts/fill",
            &"x".repeat(((mib - 18) << 20) as usize / 3 * 2),
        );
        let ran = place.run(["rotate", "--force"]);
        ran.expect(1)
            .says(&["can not cut", "run.log", "no space left", "it is as it was"]);
        assert!(place.home_text(LOG) == text);
        assert_eq!(others(&place), [""; 0]);
        assert!(place.names(".wbhome/journal").is_empty());
        fs::remove_file(
            place
                .home()
                .join("sessions/20240603_crawler/artifacts/fill"),
        )
        .unwrap();
        place.ok(["rotate", "--force"]);
        assert!(all_text(&place) == text);
    }
}

// ── What is known ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn of_a_broken_record_every_entry_is_kept_that_can_be_read() {
    let place = place("");
    for name in ["a", "b", "c"] {
        append(&place, &format!("{LOGS}/{name}.log"), "x\n");
    }
    rotate(&place, 10, &[]);
    let record = place.home_text(".wbhome/rotate.json");
    let torn = record.replacen("b.log\"", "b.log", 1);
    assert_ne!(torn, record);
    place.put_home(".wbhome/rotate.json", &torn);
    let done = rotate(&place, 11, &[]);
    let cut: Vec<&str> = done["cut"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cut| cut["path"].as_str().unwrap())
        .collect();
    assert_eq!(cut, [format!("{LOGS}/a.log"), format!("{LOGS}/c.log")]);
    assert_eq!((&done["forgotten"], &done["seen"]), (&1.into(), &1.into()));
    assert_eq!(
        rotate(&place, 12, &[])["cut"][0]["path"],
        format!("{LOGS}/b.log")
    );
    // The torn one is in the trash.
    assert!(
        place
            .names(".wbhome/trash")
            .iter()
            .any(|name| name.ends_with("rotate.json"))
    );
}

#[test]
fn two_hundred_thousand_logs_that_are_gone_cost_no_second() {
    let place = place("");
    append(&place, LOG, "x\n");
    let line = |n: u32| {
        format!(
            "{{\"path\":\"sessions/gone/logs/{n}.log\",\"seen\":\"2022-01-01T00:00:00Z\",\"cut\":\"2022-01-02T00:00:00Z\",\"id\":\"b\",\"blank\":99}}"
        )
    };
    let lines: Vec<String> = (0..200_000).map(line).collect();
    place.put_home(
        ".wbhome/rotate.json",
        format!("{{\"format\": 1, \"logs\": [\n{}\n]}}\n", lines.join(",\n")),
    );
    let begun = Instant::now();
    rotate(&place, 10, &[]);
    let took = begun.elapsed();
    // Tests are built without optimisation, and the machine may be at work.
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert!(place.home_text(".wbhome/rotate.json").len() < 1000);
    eprintln!("200,000 stale entries: {took:?}");
}

#[test]
fn a_failure_is_not_noted_as_done() {
    if !support::is_root() {
        return;
    }
    let place = place("");
    append(&place, LOG, "x\n");
    rotate(&place, 10, &[]);
    // A name that would be too long for what is cut out.
    let long = format!("{LOGS}/{}.log", "n".repeat(245));
    append(&place, &long, "x\n");
    rotate(&place, 10, &[]);
    for _ in 0..2 {
        let ran = on(&place, 11, &["rotate", "--json"]);
        let done = ran.json();
        assert_eq!(done["failed"][0]["path"], long, "{done}");
    }
    assert_eq!(place.home_text(&long), "x\n");
    assert!(place.names(".wbhome/journal").is_empty());
}

// ── With others ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn logs_of_the_applications_own_folder_are_cut_when_asked_for() {
    let place = place("logs = [\"~/.workbuddy/logs/*.log\"]");
    let app = place.put("me/.workbuddy/logs/app.log", "of the application\n");
    place.put("me/.workbuddy/settings.json", "{}");
    let done = rotate(&place, 10, &["--force"]);
    assert_eq!(done["cut"][0]["path"], app.to_str().unwrap(), "{done}");
    assert_eq!(done["cut"][0]["session"], Value::Null);
    assert_eq!(content(&rotated(&app)[0]), b"of the application\n");
    // Nowhere else.
    place.put_home("wbhome.toml", "[rotate]\nlogs = [\"/var/log/*.log\"]\n");
    on(&place, 10, &["rotate"])
        .expect(1)
        .says(&["leads neither into the home nor into the application's own folder"]);
}

#[test]
fn one_at_a_time() {
    let place = place("");
    append(&place, LOG, &"a line\n".repeat(100_000));
    let runs: Vec<_> = (0..4)
        .map(|_| {
            place
                .command()
                .args(["rotate", "--force", "--json"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut cut = 0;
    for run in runs {
        let ran = Ran::of(run.wait_with_output().unwrap());
        cut += ran.expect(0).json()["cut"].as_array().unwrap().len();
    }
    assert_eq!(cut, 1);
    assert_eq!(all_text(&place), "a line\n".repeat(100_000));
}

/// A backup takes no lock of the home: it sees a log that shrinks.
#[test]
fn a_backup_or_an_archive_meanwhile_loses_nothing() {
    let place = Place::with_store();
    let settings = place.home_text("wbhome.toml");
    place.put_home(
        "wbhome.toml",
        settings.replace("\nkeep = 7\n", "\nkeep = 9999\n"),
    );
    let log = place.home().join(LOG);
    let writer = Writer::new(&log, 30_000);
    for night in 0..4 {
        writer.wait_for(3000);
        let run = place
            .command()
            .env("WBHOME_NOW", support::cold::night(night))
            .args(["backup", "run", "-q"])
            .spawn()
            .unwrap();
        for _ in 0..3 {
            place.ok(["rotate", "--force", "-q"]);
        }
        let code = Ran::of(run.wait_with_output().unwrap()).code;
        assert!(matches!(code, Some(0 | 3)), "{code:?}");
    }
    let (written, _) = writer.end();
    assert_all(&log, written);
    // The last one of a resting session holds all.
    place.backup(9, 0);
    let to = place.path("back");
    place.ok([
        "restore",
        "20240603_crawler",
        "--from",
        "backup",
        "--to",
        to.to_str().unwrap(),
    ]);
    let back = walkdir::WalkDir::new(&to).into_iter().map(Result::unwrap);
    let back = back
        .map(|entry| entry.into_path())
        .find(|path| path.ends_with("logs/run.log"))
        .unwrap();
    assert_all(&back, written);
    // An archive waits for the lock, and takes what the rotation has left.
    let run = place
        .command()
        .args(["rotate", "--force", "-q"])
        .spawn()
        .unwrap();
    place.ok(["archive", "crawler", "-q"]);
    run.wait_with_output().unwrap();
    place.ok(["unarchive", "crawler", "-q"]);
    assert_all(&log, written);
}
