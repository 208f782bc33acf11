//! `wbhome drill`: what a disaster would cost.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it lays out its own folders"
)]

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::Place;
use support::cold::files_in;
use support::mount::Mount;

/// A home with sessions, a store, and a first night.
fn place() -> Place {
    let place = Place::with_sessions();
    place.put_home("agents/甲/agent.yaml", "name: 甲\n");
    place.put_home("资料/书.txt", "一二三\n");
    place.ok(["index", "-q"]);
    let store = place.path("cold/store");
    std::fs::create_dir_all(place.path("cold")).unwrap();
    place.ok(["backup", "init", "-q", store.to_str().unwrap()]);
    place.ok(["backup", "run", "-q"]);
    place
}

fn drill(place: &Place, code: i32) -> Value {
    place.run(["drill", "--json"]).expect(code).json()
}

/// What is printed for people.
fn printed(place: &Place, args: &[&str], code: i32, parts: &[&str]) {
    let ran = place.run(args);
    let stdout = &ran.expect(code).stdout;
    for part in parts {
        assert!(stdout.contains(part), "{part:?} is not in {stdout}");
    }
}

fn kind<'r>(report: &'r Value, data: &str) -> &'r Value {
    let kinds = report["kinds"].as_array().unwrap();
    kinds
        .iter()
        .find(|kind| kind["data"] == data)
        .unwrap_or_else(|| panic!("no {data} in {report:#}"))
}

fn packs(place: &Place, of: &str) -> Vec<PathBuf> {
    let folder = place.path("cold/store/packs").join(of);
    files_in(folder)
}

/// Turns a byte in the middle of a file.
fn break_file(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_home_that_rests_would_be_back_as_it_is_now_and_nothing_but_the_report_is_written() {
    let place = place();
    let before = support::tree(&place.home());
    let report = drill(&place, 0);
    assert_eq!(report["recovered"], true, "{report:#}");
    assert_eq!(report["lost"], serde_json::json!([]));
    assert_eq!(report["rpo_seconds"], Value::Null, "{report:#}");
    assert!(report["rto_seconds"].as_f64().unwrap() > 0.0);
    let sessions = kind(&report, "sessions");
    assert_eq!(sessions["things"], sessions["as_now"]);
    assert!(sessions["things"].as_u64().unwrap() >= 2);
    for data in ["home", "agents", "folders"] {
        assert_eq!(kind(&report, data)["as_now"], 1, "{report:#}");
    }
    let mut after = support::tree(&place.home());
    let reports = place.names(".wbhome/drills");
    assert_eq!(reports.len(), 1);
    let kept: Value =
        serde_json::from_str(&place.home_text(&format!(".wbhome/drills/{}", reports[0]))).unwrap();
    assert_eq!(kept, report);
    after.retain(|path, _| !path.starts_with(b".wbhome/drills"));
    // The folders in which something came or went.
    let changed = |path: &Vec<u8>| matches!(path.as_slice(), b".wbhome" | b".wbhome/tmp" | b"");
    let mut before = before;
    before.retain(|path, _| !changed(path));
    after.retain(|path, _| !changed(path));
    assert_eq!(support::differences(&before, &after), "");
    assert!(place.names(".wbhome/tmp").is_empty());
}

#[test]
fn of_the_stores_of_a_night_one_that_does_not_die_with_the_disk_is_rehearsed() {
    let place = place();
    let own = place.path("cold/store");
    let at = |now: &str, args: &[&str]| {
        let ran = place.run_with(&[("WBHOME_NOW", now)], args);
        ran.expect(0);
        ran
    };
    let warned = |report: &Value, part: &str| report["warnings"].to_string().contains(part);
    let report = drill(&place, 0);
    assert!(
        warned(&report, "on the same disk as the home"),
        "{report:#}"
    );
    assert!(!warned(&report, "--store"), "{report:#}");
    let Some(disk) = Mount::memory(place.path("盘"), "64m") else {
        return;
    };
    let other = disk.at.join("store");
    let (own, other) = (own.to_str().unwrap(), other.to_str().unwrap());
    place.ok(["backup", "init", "-q", other]);
    let backup = |now: &str, store: &str| at(now, &["backup", "run", "-q", "--store", store]);
    // The one on the disk of the home is written last.
    backup("2024-06-16T03:00:00Z", other);
    backup("2024-06-16T05:00:00Z", own);
    let report = at("2024-06-16T09:00:00Z", &["drill", "--json"]).json();
    assert_eq!(report["store"], other);
    assert!(!warned(&report, "the same disk"), "{report:#}");
    // Of another night, it is the newest all the same.
    backup("2024-06-17T03:00:00Z", own);
    let report = at("2024-06-17T09:00:00Z", &["drill", "--json"]).json();
    assert_eq!(report["store"], own);
    assert!(warned(&report, "--store"), "{report:#}");
}

#[test]
fn what_is_newer_in_the_live_home_is_counted_with_its_age() {
    let place = place();
    let id = place.index()[0]["id"].as_str().unwrap().to_owned();
    place.put_home(
        &format!("sessions/{id}/context/turn_002.json"),
        "{\"turn\": 2}\n",
    );
    place.put_home(
        &format!("sessions/{id}/context/turn_001.json"),
        "{\"turn\": 1, \"text\": \"二\"}\n",
    );
    let ran = place.run_with(
        &[("WBHOME_NOW", "2024-06-20T12:00:00Z")],
        &["drill", "--json"],
    );
    let report = ran.expect(0).json();
    let sessions = kind(&report, "sessions");
    assert_eq!(sessions["as_then"], 1, "{report:#}");
    assert_eq!(sessions["newer_files"], 2);
    assert_eq!(sessions["as_of"], report["snapshot"]);
    assert_eq!(report["then"][0]["thing"], id);
    let age = report["rpo_seconds"].as_u64().unwrap();
    assert!(age >= 4 * 86_400, "{age}");
    assert_eq!(report["recovered"], true);
}

#[test]
fn a_session_that_no_backup_has_would_be_lost() {
    let place = place();
    place.session("20240616_新", 16);
    place.ok(["index", "-q"]);
    let report = drill(&place, 4);
    assert_eq!(report["recovered"], false);
    assert_eq!(report["lost"][0]["thing"], "20240616_新");
    printed(
        &place,
        &["drill"],
        4,
        &[
            "Would be lost",
            "20240616_新",
            "neither the store nor the history has it",
        ],
    );
    assert_eq!(place.names(".wbhome/drills").len(), 2);
}

#[test]
fn a_broken_pack_is_told_and_the_one_before_it_does() {
    let place = place();
    let id = place.index()[0]["id"].as_str().unwrap().to_owned();
    place.put_home(
        &format!("sessions/{id}/context/turn_002.json"),
        "{\"turn\": 2}\n",
    );
    place
        .run_with(
            &[("WBHOME_NOW", "2024-06-18T03:00:00Z")],
            &["backup", "run", "-q"],
        )
        .expect(0);
    let all = packs(&place, &format!("sessions/{id}"));
    assert_eq!(all.len(), 2);
    break_file(&all[1]);
    let report = drill(&place, 4);
    assert_eq!(report["older"][0]["thing"], id, "{report:#}");
    assert_eq!(report["lost"], serde_json::json!([]));
    let then = report["then"].as_array().unwrap();
    let of = then
        .iter()
        .find(|then| then["thing"] == id.as_str())
        .unwrap();
    assert_eq!(of["as_of"], report["older"][0]["at"]);

    // Nothing before it: lost, and the others come back.
    break_file(&all[0]);
    let len = std::fs::metadata(&all[0]).unwrap().len();
    for pack in &all {
        std::fs::write(pack, vec![0; usize::try_from(len).unwrap()]).unwrap();
    }
    let report = drill(&place, 4);
    assert_eq!(report["lost"][0]["thing"], id, "{report:#}");
    let sessions = kind(&report, "sessions");
    assert_eq!(
        sessions["as_now"].as_u64().unwrap() + 1,
        sessions["things"].as_u64().unwrap()
    );
}

#[test]
fn a_live_file_that_rots_without_a_trace_is_found() {
    let place = place();
    let path = place.home().join("资料/书.txt");
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "一二四\n").unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    let report = drill(&place, 4);
    assert_eq!(report["wrong"][0]["path"], "书.txt", "{report:#}");
}

#[test]
fn blind_spots_are_named_with_their_size() {
    let place = place();
    place.put("me/.workbuddy/settings.json", "{}");
    place.put("me/.workbuddy/logs/today.log", "x".repeat(1000));
    let id = place.index()[1]["id"].as_str().unwrap().to_owned();
    place.ok(["rm", "-q", "-y", &id]);
    place.ok(["commit", "-q"]);
    place
        .run_with(
            &[("WBHOME_NOW", "2024-06-18T03:00:00Z")],
            &["backup", "run", "-q"],
        )
        .expect(0);
    let report = drill(&place, 0);
    let spots = report["blind_spots"].as_array().unwrap();
    let spot = |end: &str| {
        spots
            .iter()
            .find(|spot| {
                spot["path"]
                    .as_str()
                    .unwrap()
                    .trim_end_matches('/')
                    .ends_with(end)
            })
            .unwrap_or_else(|| panic!("no {end} in {report:#}"))
    };
    assert_eq!(spot(".workbuddy")["bytes"], 1002);
    assert!(spot("workbuddy_home/.git")["bytes"].as_u64().unwrap() > 0);
    assert!(spot(".wbhome/trash")["files"].as_u64().unwrap() > 0);
    assert_eq!(kind(&report, "history")["as_now"], 1);
    assert_eq!(report["repository"]["in_home"], true);
    printed(
        &place,
        &["drill"],
        0,
        &[
            "No backup holds",
            ".workbuddy",
            "below [state] in wbhome.toml",
        ],
    );
}

#[test]
fn newer_text_comes_from_the_history() {
    let place = place();
    let id = place.index()[0]["id"].as_str().unwrap().to_owned();
    place.put_home(
        &format!("sessions/{id}/context/turn_002.json"),
        "{\"turn\": 2}\n",
    );
    place
        .run_with(&[("WBHOME_NOW", "2024-06-15T18:00:00Z")], &["commit", "-q"])
        .expect(0);
    let report = drill(&place, 0);
    let sessions = kind(&report, "sessions");
    assert_eq!(sessions["as_then"], 0, "{report:#}");
    assert!(report["repository"]["newer_files"].as_u64().unwrap() > 0);
    place
        .run(["drill"])
        .expect(0)
        .says(&["newer in the history than in the store"]);
}

#[test]
fn the_users_own_test_runs_in_the_rebuilt_home_and_decides() {
    let place = place();
    let settings = place.home_text("wbhome.toml");
    let with = |command: &str| {
        let text = settings.replace(
            "\n[drill]\n",
            &format!("\n[drill]\ncommand = {command:?}\n"),
        );
        assert_ne!(text, settings);
        place.put_home("wbhome.toml", text);
    };
    with("test -f index.json && pwd > ../../../../seen-by-test; test -d sessions");
    let home = place.home();
    let run = |code: i32| {
        place
            .run(["--home", home.to_str().unwrap(), "drill", "--json"])
            .expect(code)
            .json()
    };
    let report = run(0);
    assert_eq!(report["command"]["exit"], 0, "{report:#}");
    // What it calls means the home that was rebuilt, wherever the person's own environment leads.
    with(r#"case "$WBHOME" in "$PWD") ;; *) exit 9 ;; esac"#);
    place
        .run_with(&[("WBHOME", home.to_str().unwrap())], &["drill"])
        .expect(0);
    with("exit 3");
    let report = run(4);
    assert_eq!(report["command"]["exit"], 3);
    assert_eq!(report["recovered"], false);
}

#[test]
fn the_rebuilt_home_can_be_kept_and_a_full_folder_is_not_used() {
    let place = place();
    let kept = place.path("rebuilt");
    place.ok(["drill", "-q", "--keep", kept.to_str().unwrap()]);
    let rebuilt = kept.join("home");
    assert!(rebuilt.join("index.json").exists());
    place.ok(["--home", rebuilt.to_str().unwrap(), "ls", "-q"]);
    place
        .run(["drill", "--keep", kept.to_str().unwrap()])
        .expect(1)
        .says(&["not an empty folder"]);
    let inside = place.home().join("rebuilt");
    place
        .run(["drill", "--keep", inside.to_str().unwrap()])
        .expect(1)
        .says(&["inside the home"]);
    assert!(!inside.exists());
}

#[test]
fn a_command_that_hangs_ends_with_an_interrupt() {
    let place = place();
    let settings = place.home_text("wbhome.toml");
    let set = settings.replace(
        "\n[drill]\n",
        "\n[drill]\ncommand = \"touch ../../../../begun; sleep 100\"\n",
    );
    place.put_home("wbhome.toml", set);
    let drill = place.command().arg("drill").spawn().unwrap();
    while !place.home().join("../begun").exists() && !place.home().join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_raw(drill.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = drill.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(!place.home().join(".wbhome/drills").exists());
}

#[test]
fn a_database_that_is_unsound_in_the_live_home_is_warned_of() {
    let place = place();
    let mut bytes = b"SQLite format 3\0".to_vec();
    bytes.resize(8192, 0x5a);
    place.put_home("sessions/20240603_crawler/artifacts/data.db", bytes);
    place.ok(["backup", "run", "-q"]);
    place
        .run(["drill"])
        .expect(0)
        .says(&["is not sound, in the live folder"]);
}

#[test]
fn without_a_store_it_says_what_to_do_and_a_dry_run_writes_nothing() {
    let bare = Place::with_sessions();
    bare.run(["drill"]).expect(1).says(&["backup init"]);
    let place = place();
    let before = support::tree(&place.home());
    printed(&place, &["drill", "-n"], 0, &["would be rebuilt from"]);
    assert_eq!(
        support::differences(&before, &support::tree(&place.home())),
        ""
    );
}

#[test]
fn a_drill_and_another_command_do_not_disturb_each_other() {
    let place = place();
    let mut other = place.command();
    other.args(["drill", "-q"]);
    let mut running = other.spawn().unwrap();
    for _ in 0..20 {
        place.ok(["index", "-q"]);
    }
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(place.names(".wbhome/tmp").is_empty());
}

/// A state folder that is saved: conversations, settings, and a database whose last rows are only in its log.
fn with_state(place: &Place) {
    place.put("me/.workbuddy/settings.json", "{}");
    place.put("me/.workbuddy/memory/a.md", "记\n");
    place.put("me/.workbuddy/projects/Users-me/a.jsonl", "{}\n");
    place.put("me/.workbuddy/logs/today.log", "x".repeat(1000));
    let settings = place.home_text("wbhome.toml");
    let set = settings.replace("\n[state]\n", "\n[state]\ndir = \"~/.workbuddy\"\n");
    assert_ne!(set, settings);
    place.put_home("wbhome.toml", set);
}

#[test]
fn the_agents_own_folder_is_compared_part_by_part() {
    let place = place();
    with_state(&place);
    let database = place.path("me/.workbuddy/workbuddy.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(x); INSERT INTO t VALUES('甲')",
        )
        .unwrap();
    place
        .run_with(
            &[("WBHOME_NOW", "2024-06-16T03:00:00Z")],
            &["backup", "run", "-q"],
        )
        .expect(0);
    let report = drill(&place, 0);
    for data in ["conversations", "databases", "settings"] {
        let kind = kind(&report, data);
        assert_eq!(kind["as_now"], kind["things"], "{report:#}");
    }
    assert_eq!(report["databases"], 1);
    let spots = report["blind_spots"].as_array().unwrap();
    assert_eq!(spots.len(), 1, "{report:#}");
    assert!(spots[0]["path"].as_str().unwrap().ends_with("/logs"));
    assert_eq!(spots[0]["bytes"], 1000);
    assert!(place.path("me/.workbuddy/workbuddy.db-wal").exists());

    connection
        .execute_batch("INSERT INTO t VALUES('乙')")
        .unwrap();
    place.put("me/.workbuddy/projects/Users-me/a.jsonl", "{}\n{}\n");
    place.put("me/.workbuddy/projects/Users-me-new/b.jsonl", "{}\n");
    let report = drill(&place, 4);
    assert_eq!(kind(&report, "databases")["as_then"], 1, "{report:#}");
    assert_eq!(kind(&report, "conversations")["as_then"], 1);
    assert_eq!(
        report["lost"][0]["thing"],
        ".workbuddy: projects/Users-me-new"
    );
}
