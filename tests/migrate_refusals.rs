//! What a migration refuses to begin with: each time with the reason and a way out, and with nothing written.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use support::moving::{OLD, SESSION, assert_same, map_to, small_home};
use support::{Entry, Place, tree};

/// A place with a small home at `C`, and everything in it.
fn source() -> (Place, BTreeMap<Vec<u8>, Entry>) {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let before = tree(&place.root());
    (place, before)
}

/// Exit 1, the reason, a hint, and nothing changed anywhere in the place.
#[track_caller]
fn refused(place: &Place, before: &BTreeMap<Vec<u8>, Entry>, args: &[&str], says: &[&str]) {
    let ran = place.run(args);
    ran.expect(1).says(says).says(&["hint:"]);
    assert_eq!(ran.stdout, "");
    assert_same(&tree(&place.root()), before, "something was written");
    // The same in the words for programs.
    let ran = place.run([args, &["--json"]].concat());
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(
        (&error["schema"], &error["exit"]),
        (&json!("wbhome/error/1"), &json!(1))
    );
    assert!(!error["hints"].as_array().unwrap().is_empty(), "{error}");
    assert_same(&tree(&place.root()), before, "something was written");
}

/// A child that is ended by its number when the test is over.
struct Running(Child);

impl Running {
    /// Runs a shell that says when it is ready, and then waits for its standard input to close.
    fn shell(place: &Place, script: &str) -> Running {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("{script}; echo ready; read wait")])
            .current_dir(place.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let running = Running(child);
        assert_eq!(line, "ready\n");
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_home_inside_the_source() {
    let (place, before) = source();
    refused(
        &place,
        &before,
        &["migrate", "C", "C/H"],
        &["inside the source"],
    );
    refused(
        &place,
        &before,
        &["migrate", "C", "C/sessions/a/b"],
        &["inside the source"],
    );
    refused(
        &place,
        &before,
        &["migrate", "C", "C"],
        &["inside the source"],
    );
    // A folder is told by what it is, not by how it is written.
    std::os::unix::fs::symlink("C", place.path("other")).unwrap();
    std::os::unix::fs::symlink("C/agents", place.path("deep")).unwrap();
    let before = tree(&place.root());
    refused(
        &place,
        &before,
        &["migrate", "C", "other/H"],
        &["inside the source"],
    );
    refused(
        &place,
        &before,
        &["migrate", "C", "deep/H"],
        &["inside the source"],
    );
    refused(
        &place,
        &before,
        &["migrate", "other", "C/H"],
        &["inside the source"],
    );
    refused(
        &place,
        &before,
        &["migrate", "C", "H/../C/H"],
        &["inside the source"],
    );
    // A person can not know better.
    refused(
        &place,
        &before,
        &["migrate", "C", "C/H", "--force"],
        &["inside the source"],
    );
}

#[test]
fn a_source_inside_the_home() {
    let place = Place::new();
    small_home(&place, "drive/C", OLD);
    std::os::unix::fs::symlink("drive", place.path("other")).unwrap();
    let before = tree(&place.root());
    let inside = "the source lies inside";
    refused(&place, &before, &["migrate", "drive/C", "drive"], &[inside]);
    refused(&place, &before, &["migrate", "other/C", "drive"], &[inside]);
    refused(&place, &before, &["migrate", "drive/C", "other"], &[inside]);
    refused(
        &place,
        &before,
        &["migrate", "drive/C", ".", "--force"],
        &[inside],
    );
}

#[test]
fn a_destination_that_is_not_empty() {
    let (place, _) = source();
    place.put("H/notes.md", "mine");
    place.put("file", "mine");
    fs::create_dir(place.path("empty")).unwrap();
    let before = tree(&place.root());
    refused(&place, &before, &["migrate", "C", "H"], &["not empty"]);
    refused(
        &place,
        &before,
        &["migrate", "C", "H", "--force"],
        &["not empty"],
    );
    let ran = place.run(["migrate", "C", "file"]);
    ran.expect(1).says(&["where the home should be"]);
    assert_same(&tree(&place.root()), &before, "something was written");
    // An empty folder is as good as none.
    place
        .run(["migrate", "C", "empty", "--map", &map_to(&place, "empty")])
        .expect(0);
}

#[test]
fn a_home_that_is_in_use_is_not_migrated_into() {
    let (place, _) = source();
    place.ok(["init", "H"]);
    let before = tree(&place.root());
    refused(&place, &before, &["migrate", "C", "H"], &["not empty"]);
}

#[test]
fn a_source_that_is_no_home() {
    let (place, _) = source();
    place.put("docs/a.md", "x");
    let before = tree(&place.root());
    refused(
        &place,
        &before,
        &["migrate", "docs", "H"],
        &["not a session home", "sessions"],
    );
    let ran = place.run(["migrate", "nowhere", "H"]);
    ran.expect(1).says(&["can not open the source", "nowhere"]);
    assert_same(&tree(&place.root()), &before, "something was written");
}

#[test]
fn somebody_who_writes_into_the_source() {
    let (place, before) = source();
    let log = format!("C/{SESSION}/logs/run.log");
    let writer = Running::shell(&place, &format!("exec 3>> '{log}'"));
    let pid = writer.0.id().to_string();
    let args = ["migrate", "C", "H", "--map", &map_to(&place, "H")];
    refused(
        &place,
        &before,
        &args,
        &["open for writing", &pid, "run.log", "--force"],
    );
    // Before anything is planned, too.
    refused(
        &place,
        &before,
        &[&args[..], &["-n"]].concat(),
        &["open for writing"],
    );
    // Who only reads does no harm.
    drop(writer);
    let reader = Running::shell(&place, &format!("exec 3< '{log}'"));
    place.run([&args[..], &["-n"]].concat()).expect(0);
    drop(reader);
    // A person may know better.
    let _writer = Running::shell(&place, &format!("exec 3>> '{log}'"));
    place.run([&args[..], &["--force"]].concat()).expect(0);
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// An entry of the agent application's registry.
fn register(place: &Place, pid: u32, kind: &str, cwd: &Path, started: i64) {
    let entry = json!({
        "pid": pid, "sessionId": "8f14e45f-ceea-467f-a8a1-0a2b3c4d5e6f", "cwd": cwd, "kind": kind,
        "startedAt": started, "lastHeartbeat": started - 60_000, "mode": "cli", "version": "1.2.3",
    });
    place.put(format!("S/sessions/{pid}.json"), entry.to_string());
}

#[test]
fn an_agent_at_work_in_the_source() {
    let (place, _) = source();
    let agent = Running::shell(&place, ":");
    let pid = agent.0.id();
    let cwd = place.path(format!("C/{SESSION}"));
    register(&place, pid, "interactive", &cwd, now_ms());
    let before = tree(&place.root());
    let map = map_to(&place, "H");
    let args = ["migrate", "C", "H", "--map", &map, "--state", "S"];
    refused(
        &place,
        &before,
        &args,
        &["an agent", &pid.to_string(), "--force"],
    );
    // The files may mention another place than that where the source is now.
    register(
        &place,
        pid,
        "interactive",
        &Path::new(OLD).join(SESSION),
        now_ms(),
    );
    let before = tree(&place.root());
    refused(&place, &before, &args, &["an agent"]);
    // The state folder is looked for at its usual place too.
    fs::rename(place.path("S"), place.user_home().join(".workbuddy")).unwrap();
    let before = tree(&place.root());
    refused(&place, &before, &args[..5], &["an agent"]);
    // A person may know better, or not want to be asked.
    let dry = |more: &[&str]| place.run([&args[..5], more, &["-n"]].concat());
    dry(&["--no-state"]).expect(0);
    // The source may be copied while somebody works in it; a folder that would have to follow can not.
    dry(&["--force"])
        .expect(1)
        .says(&["is in use", "--no-state"]);
    drop(agent);
    // It has ended: its entry is only left over.
    dry(&[]).expect(0);
}

#[test]
fn agents_that_are_not_at_work_in_the_source() {
    let (place, _) = source();
    let agent = Running::shell(&place, ":");
    let pid = agent.0.id();
    let cwd = place.path(format!("C/{SESSION}"));
    let map = map_to(&place, "H");
    let run = || place.run(["migrate", "C", "H", "--map", &map, "--state", "S", "-n"]);
    // A process that started long after the entry was written only has the same number.
    register(&place, pid, "interactive", &cwd, now_ms() - 86_400_000);
    run().expect(0);
    // A process of the pool works nowhere; its folder is that of the application. Nothing has to follow here.
    register(&place, pid, "prewarm", &place.path("me"), now_ms());
    run().expect(0);
    // Somewhere else; and a folder whose name only begins the same.
    register(&place, pid, "interactive", &place.path("me"), now_ms());
    run().expect(0);
    register(
        &place,
        pid,
        "interactive",
        &place.path("C2/sessions"),
        now_ms(),
    );
    run().expect(0);
    // Half an entry is a process that is just beginning or ending.
    place.put(format!("S/sessions/{pid}.json"), "{\"pid\": ");
    run().expect(0);
}

#[test]
fn a_state_folder_that_is_not_there() {
    let (place, before) = source();
    let ran = place.run(["migrate", "C", "H", "--state", "S"]);
    ran.expect(1).says(&["no state folder"]);
    assert_same(&tree(&place.root()), &before, "something was written");
}

#[test]
fn other_settings_than_those_of_the_migration_that_was_stopped() {
    let (place, _) = source();
    small_home(&place, "D", OLD);
    let map = map_to(&place, "H");
    place.run(["migrate", "C", "H", "--map", &map]).expect(0);
    for outcome in ["stopped", "finished"] {
        if outcome == "stopped" {
            let records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
            let record = records.map(|e| e.unwrap().path()).next().unwrap();
            fs::rename(record.join("outcome.json"), place.path("outcome.json")).unwrap();
        }
        let before = tree(&place.root());
        let other = format!("{OLD}=/somewhere/else");
        let settings = "other settings";
        refused(
            &place,
            &before,
            &["migrate", "C", "H", "--map", &other],
            &[settings, &map],
        );
        refused(&place, &before, &["migrate", "C", "H"], &[settings]);
        refused(
            &place,
            &before,
            &["migrate", "D", "H", "--map", &map],
            &[settings, "source"],
        );
        let fields = ["migrate", "C", "H", "--map", &map, "--fields-only"];
        refused(&place, &before, &fields, &[settings, "options"]);
        // The same ones are welcome.
        place
            .run(["migrate", "C", "H", "--map", &map, "--json"])
            .expect(0);
    }
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_be_done() {
    let (place, before) = source();
    let map = map_to(&place, "H");
    let ran = place.run(["migrate", "C", "H", "--map", &map, "-n"]);
    let here = place.path("H").to_str().unwrap().to_owned();
    for part in [
        "1 session · 7 files",
        &format!("{OLD} → {here}"),
        "Nothing was changed",
    ] {
        assert!(
            ran.expect(0).stdout.contains(part),
            "{part:?} is not in {ran:#?}"
        );
    }
    let plan = place.json(["migrate", "C", "H", "--map", &map, "-n"]);
    assert_eq!(plan["schema"], "wbhome/migrate-plan/1");
    assert_eq!(
        (&plan["sessions"], &plan["files"], &plan["resumes"]),
        (&json!(1), &json!(7), &json!(false))
    );
    assert_same(&tree(&place.root()), &before, "something was written");
    // And the plan is that of the real run.
    let outcome = place.json(["migrate", "C", "H", "--map", &map]);
    for key in ["sessions", "files", "folders", "bytes"] {
        assert_eq!(plan[key], outcome["totals"][key], "{key}");
    }
}

#[test]
fn what_a_home_can_not_hold_is_said_before_the_copy() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let _ = std::fs::remove_dir_all(place.path("C/archive"));
    std::os::unix::fs::symlink("/nowhere", place.path("C/archive")).unwrap();
    let ran = place.run(["migrate", "C", "H"]);
    assert!(
        ran.expect(1)
            .stderr
            .contains("a folder belongs there in a home"),
        "{ran:?}"
    );
    assert!(!place.path("H").exists());
    // Left behind, it is in nobody's way.
    place
        .run(["migrate", "C", "H", "--exclude", "/archive"])
        .expect(0);
    let ran = place.run(["migrate", "C", "H2", "--exclude", ""]);
    assert!(ran.expect(2).stderr.contains("empty pattern"), "{ran:?}");
}
