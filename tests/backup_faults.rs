//! The disk of the store, and that of the home, in real trouble: an ext4 of its own that is full to the last byte, pulled
//! out, read-only; a system call that fails; a clock that is wrong; two runs at once.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, breaks their disks, and says what went wrong"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::cold::{item, night, noise, packed, rest};
use support::home::HOME;
use support::mount::Mount;
use support::{Place, Ran, differences, digest, has_tool, tree};

const CRAWLER: &str = "20240603_crawler";
const CLEANING: &str = "20240604_数据清洗";

/// A home of three sessions with its store on a disk of so many megabytes.
fn on_a_disk(megabytes: u64) -> Option<(Place, Mount)> {
    let place = Place::with_sessions();
    let mount = Mount::image(place.path("disk"), megabytes)?;
    place.ok(["backup", "init", "disk/cold", "-q"]);
    std::os::unix::fs::symlink("disk/cold", place.path("cold")).unwrap();
    Some((place, mount))
}

fn put_noise(place: &Place, session: &str, seed: u64, length: usize) {
    let file = format!("sessions/{session}/artifacts/noise.bin");
    place.put_home(&file, noise(seed, length));
}

/// Every snapshot names whole packs, and nothing lies about that a write has left.
#[track_caller]
fn is_sound(place: &Place) {
    if has_tool("zstd") {
        place.snapshots_are_whole(&mut BTreeSet::new());
    }
    let left: Vec<_> = tree(&place.path("disk")).into_keys().collect();
    let left = left.iter().map(|name| String::from_utf8_lossy(name));
    let left: Vec<_> = left.filter(|name| name.contains(".wbhome-")).collect();
    assert_eq!(left, [""; 0]);
}

/// A run of the program in the background, ended with the test.
struct Running(Child);

impl Running {
    fn new(mut command: Command) -> Running {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Stops it, as `kill -STOP`, once something is true. It must not have ended by then.
    #[track_caller]
    fn stop_when(&mut self, seen: impl Fn() -> bool) {
        let began = Instant::now();
        while !seen() {
            assert!(began.elapsed() < Duration::from_secs(20), "it never begins");
            assert!(self.0.try_wait().unwrap().is_none(), "it ended too early");
        }
        self.signal(rustix::process::Signal::STOP);
    }

    fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(mut self) -> Ran {
        use std::io::Read as _;
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let mut out = self.0.stdout.take().unwrap();
        let mut err = self.0.stderr.take().unwrap();
        out.read_to_string(&mut stdout).unwrap();
        err.read_to_string(&mut stderr).unwrap();
        let code = self.0.wait().unwrap().code();
        Ran {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program on a night, to be run.
fn command(place: &Place, n: i64, args: &[&str]) -> Command {
    let mut command = place.command();
    command.env("WBHOME_NOW", night(n)).args(args);
    command
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_pack_keeps_the_former_ones() {
    let Some((place, mount)) = on_a_disk(32) else {
        return;
    };
    put_noise(&place, CRAWLER, 1, 3 << 20);
    // So large that it is packed after the others, by all cores.
    put_noise(&place, "20240605_api_refactor", 2, 9 << 20);
    place.backup(1, 0);
    mount.fill(1 << 20);
    put_noise(&place, CRAWLER, 3, 3 << 20);
    put_noise(&place, "20240605_api_refactor", 4, 9 << 20);
    place.put_home(&format!("sessions/{CLEANING}/memory/new"), "x");
    rest();
    let ran = place.at(2, &["backup", "run"]);
    ran.expect(1)
        .says(&["no room", CRAWLER, "api_refactor", "former packs are kept"]);
    is_sound(&place);
    let snapshot = place.snapshot();
    let newest = |id| item(&snapshot, id).unwrap()["newest"]["at"].clone();
    assert_eq!(newest(CRAWLER), night(1));
    assert_eq!(newest(CLEANING), night(2));
    // What did not fit is not left there: there is as much room as before.
    assert!(mount.room() > 900 << 10, "{}", mount.room());
    mount.make_room();
    let mut again = packed(&place.backup(3, 0));
    again.sort();
    assert_eq!(again, [CRAWLER, "20240605_api_refactor"]);
    place.at(3, &["backup", "verify", "--all"]).expect(0);
    is_sound(&place);
}

/// Many small things fill the disk to the last block. What was packed is in a snapshot all the same.
#[test]
fn a_disk_that_is_full_to_the_last_block_gets_its_snapshot() {
    let Some((place, mount)) = on_a_disk(8) else {
        return;
    };
    place.backup(1, 0);
    for left in [300, 150, 90] {
        mount.fill(left << 10);
        for n in 0..40 {
            let id = format!("202406{:02}_small_{left}_{n}", 10 + n % 20);
            place.session(&id, 10);
            put_noise(&place, &id, n, 2000 + 700 * n as usize);
        }
        rest();
        let before = place.snapshots().len();
        let ran = place.at(2 + before as i64, &["backup", "run"]);
        ran.expect(1).says(&["no room"]);
        is_sound(&place);
        assert_eq!(place.snapshots().len(), before + 1, "{left} kB: {ran:?}");
        mount.make_room();
    }
    // Where not even that fits, it is said, and nothing is left of the attempt.
    mount.fill(8 << 10);
    let before = place.snapshots();
    let ran = place.at(10, &["backup", "run"]);
    ran.expect(1)
        .says(&["can not write", "o space left", "make room"]);
    assert_eq!(place.snapshots(), before);
    mount.make_room();
    place.backup(11, 0);
    place.at(11, &["backup", "verify", "--all"]).expect(0);
    is_sound(&place);
}

/// The disk is pulled out while a pack is written. The mount point, an empty folder again, stays one.
#[test]
fn a_disk_that_is_pulled_out_in_the_middle_leaves_nothing_in_its_place() {
    let Some((place, mount)) = on_a_disk(64) else {
        return;
    };
    place.backup(1, 0);
    put_noise(&place, CRAWLER, 1, 30 << 20);
    let room = mount.room();
    let mut run = Running::new(command(&place, 2, &["backup", "run"]));
    run.stop_when(|| mount.room() < room - (1 << 20));
    assert!(mount.pull());
    run.go_on();
    run.end().expect(1).says(&[
        "unmounted or replaced in the middle",
        "mount the disk again",
    ]);
    assert_eq!(std::fs::read_dir(&mount.at).unwrap().count(), 0);
    // Without it, too.
    let ran = place.at(2, &["nightly"]);
    ran.expect(1).says(&["there is no backup store"]);
    assert_eq!(std::fs::read_dir(&mount.at).unwrap().count(), 0);
    assert!(mount.mount("loop"));
    is_sound(&place);
    assert_eq!(place.snapshots().len(), 1);
    assert_eq!(packed(&place.backup(3, 0))[0], CRAWLER);
    place.at(3, &["backup", "verify", "--all"]).expect(0);
    is_sound(&place);
}

#[test]
fn a_disk_that_is_mounted_read_only_is_read_and_no_byte_of_it_is_written() {
    let Some((place, mount)) = on_a_disk(8) else {
        return;
    };
    place.backup(1, 0);
    put_noise(&place, CRAWLER, 1, 5000);
    rest();
    assert!(mount.pull() && mount.mount("loop,ro"));
    let before = digest(mount.file());
    for args in [&["run"][..], &["prune"], &["accept", CRAWLER]] {
        let ran = place.at(60, &[&["backup"], args].concat());
        match args[0] {
            // One snapshot: there is nothing to remove, and nothing is.
            "prune" => ran.expect(0),
            "accept" => ran.expect(1).says(&["nothing to accept"]),
            _ => ran.expect(1).says(&["ead-only"]),
        };
    }
    place.at(60, &["nightly"]).expect(1).says(&["ead-only"]);
    for args in [&["ls"][..], &["verify"], &["run", "-n"], &["prune", "-n"]] {
        place.at(60, &[&["backup"], args].concat()).expect(0);
    }
    assert_eq!(before, digest(mount.file()));
    assert!(mount.pull() && mount.mount("loop"));
    assert!(packed(&place.backup(61, 0)).contains(&CRAWLER.to_owned()));
    // With something to remove, it is said that it can not be.
    assert!(mount.pull() && mount.mount("loop,ro"));
    place
        .at(90, &["backup", "prune"])
        .expect(1)
        .says(&["ead-only"]);
    assert_eq!(place.snapshots().len(), 2);
    place.at(90, &["backup", "verify", "--all"]).expect(0);
}

#[test]
fn a_home_without_a_byte_of_room_is_backed_up() {
    let place = Place::new();
    let Some(mount) = Mount::image(place.path(HOME), 16) else {
        return;
    };
    std::fs::remove_dir(mount.at.join("lost+found")).unwrap();
    place.ok(["init", "-q"]);
    for (id, day) in [(CRAWLER, 3), (CLEANING, 4)] {
        place.session(id, day);
    }
    place.ok(["index", "-q"]);
    place.ok(["backup", "init", "cold", "-q"]);
    place.ok(["commit", "-q"]);
    put_noise(&place, CRAWLER, 1, 300_000);
    place.session("20240610_new", 10);
    // The filler is in the home, and backed up with it.
    mount.fill(0);
    rest();
    let before = place.contents();
    let ran = place.backup(1, 0);
    assert!(packed(&ran).contains(&CRAWLER.to_owned()), "{ran}");
    place.nothing_lost(&before);
    let snapshot = place.snapshot();
    for id in [CRAWLER, CLEANING, "20240610_new"] {
        let file = item(&snapshot, id).unwrap()["newest"]["file"].as_str();
        let top = place.unpack(file.unwrap());
        assert_eq!(differences(&place.of_session(id), &tree(&top)), "", "{id}");
    }
    // A night says what it could not do in the home, and does what lies elsewhere.
    std::fs::write(
        place
            .home()
            .join(format!("sessions/{CLEANING}/context/turn_001.json")),
        "{}",
    )
    .unwrap();
    rest();
    let ran = place.at(2, &["nightly"]);
    ran.expect(1).says(&["o space left"]);
    assert_eq!(place.snapshots().len(), 2, "{ran:?}");
    let newest = item(&place.snapshot(), CLEANING).unwrap()["newest"]["at"].clone();
    assert_eq!(newest, night(2));
    // And once there is room, it goes well.
    mount.make_room();
    place.at(3, &["nightly"]).expect(0);
    place.ok(["check", "-q"]);
}

#[test]
fn of_two_runs_at_once_one_waits_or_says_who_is_there() {
    let place = Place::with_store();
    place.backup(1, 0);
    put_noise(&place, CRAWLER, 1, 12 << 20);
    rest();
    let lock = place.path("cold/lock");
    let holds = || std::fs::read_to_string(&lock).is_ok_and(|text| text.contains("backup run"));
    let mut first = Running::new(command(&place, 2, &["backup", "run", "-q"]));
    first.stop_when(holds);
    let pid = format!("process {}", first.0.id());
    let now = ["--lock-wait", "0s"];
    for args in [&["backup", "run"][..], &["backup", "prune"], &["nightly"]] {
        let ran = place.at(60, &[args, &now].concat());
        ran.expect(11).says(&["in use by wbhome backup run", &pid]);
    }
    let wait = ["--lock-wait", "60s"];
    let others = [
        &["backup", "run", "-q"][..],
        &["backup", "prune", "-q"],
        &["backup", "run", "-q"],
    ];
    let others = others.map(|args| Running::new(command(&place, 2, &[args, &wait].concat())));
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(place.snapshots().len(), 1);
    first.go_on();
    first.end().expect(0);
    for other in others {
        other.end().expect(0);
    }
    // Each made one, with a moment of its own; nothing was packed twice.
    assert_eq!(place.snapshots().len(), 4);
    let of_crawler = place.packs().into_iter().filter(|f| f.contains(CRAWLER));
    assert_eq!(of_crawler.count(), 2);
    place.at(3, &["backup", "verify", "--all"]).expect(0);
    if has_tool("zstd") {
        place.snapshots_are_whole(&mut BTreeSet::new());
    }
}

/// A full disk makes nobody forget that the clock is wrong.
#[test]
fn a_clock_that_is_a_year_behind_lets_nothing_go_even_on_a_full_disk() {
    let Some((place, mount)) = on_a_disk(8) else {
        return;
    };
    for n in 1..=3 {
        put_noise(&place, CRAWLER, n, 300_000);
        place.backup(400 + 20 * n as i64, 0);
    }
    put_noise(&place, CRAWLER, 4, 300_000);
    mount.fill(100 << 10);
    rest();
    let packs = place.packs();
    let ran = place.at(60, &["backup", "run"]);
    ran.expect(1)
        .says(&["no room", "behind the newest snapshot"]);
    assert!(
        packs
            .iter()
            .all(|pack| place.path("cold").join(pack).exists())
    );
    place
        .at(60, &["backup", "prune"])
        .expect(1)
        .says(&["nothing is removed"]);
    // Looking needs no clock.
    let listed = place.at(60, &["backup", "ls", "--json"]).expect(0).json();
    let listed = listed["stores"][0]["snapshots"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 4);
    assert!(
        listed
            .windows(2)
            .all(|two| two[0]["at"].as_str() < two[1]["at"].as_str()
                || two[0]["at"].as_str() > two[1]["at"].as_str()),
        "{listed:?}"
    );
    place.at(60, &["backup", "verify", "--all"]).expect(0);
    // It is right again: what is superfluous makes room.
    let ran = place.backup(461, 0);
    assert!(ran["let_go"].as_u64() > Some(0), "{ran}");
    is_sound(&place);
    let file = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
    let top = place.unpack(file.as_str().unwrap());
    assert_eq!(differences(&place.of_session(CRAWLER), &tree(&top)), "");
}

#[test]
fn a_store_that_has_lost_its_marker_is_left_as_it_is() {
    let place = Place::with_store();
    place.backup(1, 0);
    let marker = place.path("cold/wbhome-store.json");
    let text = std::fs::read(&marker).unwrap();
    std::fs::remove_file(&marker).unwrap();
    let before = tree(&place.path("cold"));
    for args in [
        &["backup", "run"][..],
        &["backup", "prune"],
        &["backup", "verify"],
        &["backup", "accept", CRAWLER],
        &["backup", "adopt", "cold"],
        &["nightly"],
    ] {
        let ran = place.at(60, args);
        ran.expect(1).says(&["has lost its marker"]);
    }
    // Nor is it made a new one of, which would make somebody believe that it is empty.
    let ran = place.at(60, &["backup", "init", "cold"]);
    ran.expect(1).says(&["not empty"]);
    assert_eq!(differences(&before, &tree(&place.path("cold"))), "");
    std::fs::write(marker, text).unwrap();
    place.backup(61, 0);
}

/// A run under strace, which makes system calls fail; `None`, and said so, where it can not be.
fn with_failing(place: &Place, n: i64, fault: &str) -> Option<Ran> {
    if !has_tool("strace") {
        return None;
    }
    let call = fault.split(':').next().unwrap();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={fault}")])
        .arg(env!("CARGO_BIN_EXE_wbhome"))
        .args(["backup", "run"]);
    command
        .current_dir(place.root())
        .env_clear()
        .env("HOME", place.user_home())
        .env("TZ", "UTC")
        .env("WBHOME_NOW", night(n));
    let ran = Ran::of(command.output().unwrap());
    if ran.stderr.contains("strace:") {
        eprintln!("SKIPPED: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

/// As on NFS, and with quotas: that there is no room is said when the data are written back, long after `write`.
#[test]
fn what_was_not_written_back_is_named_in_no_snapshot() {
    let place = Place::with_store();
    place.backup(1, 0);
    let mut n = 1;
    for (fault, says) in [
        ("syncfs:error=ENOSPC:when=1", "o space left"),
        ("syncfs:error=EDQUOT:when=1", "uota"),
        ("syncfs:error=EIO:when=1", "nput/output error"),
        ("fsync:error=EDQUOT", "uota"),
        ("fsync:error=EIO:when=1", "nput/output error"),
        ("fsync:error=EIO:when=2", "nput/output error"),
        ("fsync:error=ENOSPC:when=2+", "o space left"),
        ("fsync:error=EIO:when=3", "nput/output error"),
    ] {
        n += 1;
        put_noise(&place, CRAWLER, n as u64, 5000);
        rest();
        let before = place.snapshots();
        let Some(ran) = with_failing(&place, n, fault) else {
            return;
        };
        ran.expect(1).says(&[says]);
        assert_eq!(place.snapshots(), before, "{fault}: {ran:?}");
        n += 1;
        let ran = place.backup(n, 0);
        assert_eq!(packed(&ran), [CRAWLER], "{fault}");
        place.at(n, &["backup", "verify", "--all"]).expect(0);
    }
    place.at(n + 60, &["backup", "prune", "-q"]).expect(0);
    assert!(!Path::new(&place.path("cold/tmp")).exists());
}
