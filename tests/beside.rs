//! Two commands at once, of which one stands still in the middle: what the other does meanwhile, and what both have done
//! in the end.

#![cfg(feature = "failpoints")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and stops and ends what it started"
)]

mod support;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::cold::{item, packed, rest};
use support::{Place, Ran};

const CRAWLER: &str = "20240603_crawler";

/// A command that stands still at a failpoint; ended when it is dropped.
struct Stopped(Option<Child>);

impl Stopped {
    fn new(place: &Place, failpoint: &str, args: &[&str]) -> Stopped {
        let mut command = place.command();
        command
            .env("WBHOME_FAILPOINT", format!("stop {failpoint}"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let began = Instant::now();
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(began.elapsed() < Duration::from_secs(60), "{failpoint}");
            std::thread::sleep(Duration::from_millis(5));
        }
        Stopped(Some(child))
    }

    /// It goes on to its end.
    fn go_on(mut self) -> Ran {
        let child = self.0.take().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_session_is_archived_while_a_backup_reads_it() {
    let place = Place::with_store();
    // All five things are packed, and the last still open.
    let backup = Stopped::new(&place, "backup.pack:5", &["backup", "run", "--json"]);
    for id in [CRAWLER, "20240604_数据清洗", "20240605_api_refactor"] {
        place.ok(["archive", id, "-q"]);
    }
    backup.go_on().expect(0);
    rest();
    let ran = place.backup(1, 0);
    assert_eq!(packed(&ran).len(), 4, "{ran}");
    place.ok(["backup", "verify", "-q"]);
}

/// The log still holds what its copy has, or does not hold it any more, and only its length says so.
#[test]
fn a_session_whose_log_is_being_cut_is_packed_again() {
    for failpoint in ["rotate.named", "cut.noted", "rotate.cut"] {
        let place = Place::with_store();
        place.put_home(
            &format!("sessions/{CRAWLER}/logs/run.log"),
            "一行\n".repeat(3000),
        );
        rest();
        let rotate = Stopped::new(&place, failpoint, &["rotate", "--force", "-q"]);
        let ran = place.backup(1, 0);
        assert!(packed(&ran).contains(&CRAWLER.to_owned()), "{ran}");
        let snapshot = place.snapshot();
        let newest = &item(&snapshot, CRAWLER).unwrap()["newest"];
        assert!(newest["seen"].is_null(), "{failpoint}: {newest}");
        assert_eq!(newest["restless"], 1, "{failpoint}");
        rotate.go_on().expect(0);
        let ran = place.backup(2, 0);
        assert!(packed(&ran).contains(&CRAWLER.to_owned()), "{ran}");
        let file = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
        let unpacked = place.unpack(file.as_str().unwrap());
        let there = place.home().join("sessions").join(CRAWLER);
        let (one, other) = (support::tree(&unpacked), support::tree(&there));
        assert_eq!(support::differences(&one, &other), "", "{failpoint}");
        assert!(packed(&place.backup(3, 0)).len() <= 1, "{failpoint}");
    }
}

/// git goes on when the command that has started it is killed: it makes packs, and removes others.
#[test]
fn nobody_changes_the_home_before_the_git_of_a_killed_command_has_ended() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = r#"#!/bin/sh
cd "${0%/*}/.." && : > began
for n in $(seq 6000); do [ -e end ] && : > ended && exit; sleep 0.01; done
"#;
    std::fs::write(bin.join("git"), script).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = place.command();
    command.env("PATH", path).args(["commit", "--consolidate"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| place.path("began").exists());
    child.kill().unwrap();
    child.wait().unwrap();

    let label = ["label", CRAWLER, "--project", "alpha", "--lock-wait", "0s"];
    let ran = place.run(label);
    ran.expect(11);
    assert!(
        ran.stderr
            .contains("the home is in use by git, started by wbhome commit (process"),
        "{ran:?}"
    );
    std::fs::write(place.path("end"), "").unwrap();
    place.ok(["label", CRAWLER, "--project", "alpha", "--lock-wait", "60s"]);
    assert!(place.path("ended").exists());
}

fn until(there: impl Fn() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}
