//! `wbhome du`: what the home takes, held against `du`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::cold::noise;
use support::{Place, has_tool, tree};

const ID: &str = "20240604_数据清洗";

/// The bytes of regular files below a folder as GNU `du` counts them: without what folders and links take by themselves.
fn judged(folder: &Path, flags: &[&str]) -> u64 {
    let du = |flags: &[&str], folder: &Path| {
        let out = Command::new("du")
            .args(flags)
            .arg("-s")
            .arg(folder)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.split('\t')
            .next()
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    let apparent = flags.contains(&"-b");
    let mut own = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        if entry.file_type().is_dir() || entry.file_type().is_symlink() {
            own += match apparent {
                // Whether lengths of folders are counted differs from version to version of `du`.
                true if entry.file_type().is_dir() => {
                    let empty = tempfile::tempdir().unwrap();
                    match du(&["-b"], empty.path()) {
                        0 => 0,
                        _ => meta.len(),
                    }
                }
                true => meta.len(),
                false => meta.blocks() * 512,
            };
        }
    }
    du(flags, folder) - own
}

fn session<'d>(told: &'d Value, id: &str) -> &'d Value {
    let sessions = told["sessions"].as_array().unwrap();
    sessions
        .iter()
        .find(|session| session["path"] == id)
        .unwrap()
}

fn grows<'d>(told: &'d Value, what: &str) -> &'d Value {
    let grows = told["grows"].as_array().unwrap();
    grows.iter().find(|grows| grows["what"] == what).unwrap()
}

/// Sessions with something of every kind, an archive, trash, a history.
fn place() -> Place {
    let place = Place::with_sessions();
    let at = format!("sessions/{ID}");
    place.put_home(
        &format!("{at}/artifacts/sub/deep/data.bin"),
        noise(1, 70_001),
    );
    place.put_home(&format!("{at}/memory/notes.md"), "备忘");
    place.put_home(&format!("{at}/logs/run.log"), "y".repeat(12_345));
    place.put_home(&format!("{at}/notes.txt"), "elsewhere");
    place.archived("20240605_api_refactor");
    place.put_home("agents/a/agent.yaml", "name: a\n");
    place.put_home("lies about.bin", noise(2, 999));
    place.session("20240607_gone", 7);
    place.ok(["index", "-q"]);
    place.ok(["rm", "gone", "--yes", "-q"]);
    place
}

#[test]
fn the_numbers_are_those_of_du() {
    if !has_tool("du") {
        return;
    }
    let place = place();
    let home = place.home();
    let log = home.join("sessions").join(ID).join("logs/run.log");
    std::fs::hard_link(&log, home.join("sessions/20240603_crawler/logs/same.log")).unwrap();
    symlink("/etc", home.join("sessions/20240603_crawler/artifacts/etc")).unwrap();
    let hole = std::fs::File::create(home.join("sessions/20240603_crawler/artifacts/hole.bin"));
    hole.unwrap().set_len(5_000_000).unwrap();
    let told = place.json(["du", "-n"]);
    assert_eq!(told["total"]["bytes"], judged(&home, &["-b"]));
    assert_eq!(told["total"]["allocated"], judged(&home, &["-B1"]));
    let sessions = home.join("sessions");
    assert_eq!(told["together"]["bytes"], judged(&sessions, &["-b"]));
    assert_eq!(told["together"]["allocated"], judged(&sessions, &["-B1"]));
    assert_eq!(
        told["rest"]["archives"]["bytes"],
        judged(&home.join("archive"), &["-b"])
    );
    assert_eq!(
        told["rest"]["history"]["bytes"],
        judged(&home.join(".git"), &["-b"])
    );
    assert_eq!(
        told["rest"]["trash"]["bytes"],
        judged(&home.join(".wbhome/trash"), &["-b"])
    );
    let own = judged(&home.join(".wbhome"), &["-b"]) - judged(&home.join(".wbhome/trash"), &["-b"]);
    assert_eq!(told["rest"]["own"]["bytes"], own);
    // Two names of one file: once, and with the first of the sessions.
    let (first, second) = (session(&told, "20240603_crawler"), session(&told, ID));
    assert_eq!(
        (&first["logs"]["bytes"], &second["logs"]["bytes"]),
        (&json!(12_345), &json!(0))
    );
    assert_eq!(first["artifacts"]["bytes"], 5_000_000);
    assert!(
        first["artifacts"]["allocated"].as_u64().unwrap() < 100_000,
        "{first}"
    );
    assert!(place.ok(["du", "-n"]).contains("on the disk)"));
}

#[test]
fn by_session_and_kind() {
    let place = place();
    let told = place.json(["du"]);
    let one = session(&told, ID);
    let turn = place
        .home_text(&format!("sessions/{ID}/context/turn_001.json"))
        .len() as u64;
    let record = place
        .home_text(&format!("sessions/{ID}/session.json"))
        .len() as u64;
    for (kind, bytes, files) in [
        ("context", turn, 1),
        ("memory", 6, 1),
        ("artifacts", 70_001, 1),
        ("logs", 12_345, 1),
        ("other", record + 9, 2),
        ("archive", 0, 0),
        ("all", turn + 6 + 70_001 + 12_345 + record + 9, 6),
    ] {
        assert_eq!(
            (&one[kind]["bytes"], &one[kind]["files"]),
            (&json!(bytes), &json!(files)),
            "{kind}"
        );
    }
    assert_eq!(told["sessions"][0]["path"], ID, "the largest first");
    let archived = session(&told, "20240605_api_refactor");
    let pack = place.home().join("archive/20240605_api_refactor.tar.zst");
    assert_eq!(archived["status"], "archived");
    assert_eq!(archived["archive"]["bytes"], pack.metadata().unwrap().len());
    assert_eq!(archived["all"]["files"], 0);
    // What `ls` has counted is the same.
    let listed = place.json(["ls", ID]);
    assert_eq!(listed["sessions"][0]["holds"]["bytes"], {
        place.ok(["index", "-q"]);
        place.json(["ls", ID])["sessions"][0]["holds"]["bytes"].clone()
    });
    assert_eq!(
        place.json(["ls", ID])["sessions"][0]["holds"]["bytes"],
        one["all"]["bytes"]
    );
}

#[test]
fn the_largest_files() {
    let place = place();
    let told = place.json(["du", "--top", "2", "-n"]);
    let largest = told["largest"].as_array().unwrap();
    assert_eq!(largest.len(), 2);
    assert_eq!(
        largest[0]["path"],
        format!("sessions/{ID}/artifacts/sub/deep/data.bin")
    );
    assert_eq!(largest[0]["bytes"], 70_001);
    assert!(largest[0]["bytes"].as_u64() >= largest[1]["bytes"].as_u64());
    assert!(
        place.json(["du", "--top", "0", "-n"])["largest"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let all = place.json(["du", "--top", "100000", "-n"]);
    let sum: u64 = all["largest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(
        all["total"]["bytes"], sum,
        "every file is one of the largest"
    );
    // Of equal ones by name.
    for name in ["c", "a", "b"] {
        place.put_home(
            &format!("sessions/20240603_crawler/artifacts/{name}"),
            noise(3, 90_000),
        );
    }
    let told = place.json(["du", "--top", "2", "-n"]);
    assert!(told["largest"][0]["path"].as_str().unwrap().ends_with("/a"));
    assert!(told["largest"][1]["path"].as_str().unwrap().ends_with("/b"));
}

#[test]
fn growth_since_the_last_record() {
    let place = place();
    let first = place.json(["du"]);
    assert_eq!(
        (&first["since"], &first["growth"], &first["recorded"]),
        (&Value::Null, &Value::Null, &json!(true))
    );
    place.put_home(
        "sessions/20240603_crawler/artifacts/more.bin",
        noise(4, 10_000),
    );
    std::fs::remove_file(place.home().join("sessions").join(ID).join("logs/run.log")).unwrap();
    place.session("20240608_new", 8);
    let later = [("WBHOME_NOW", "2024-06-18T12:00:00Z")];
    // What only looks, or looks at one, leaves the record as it is.
    let one = place.run_with(&later, &["du", "crawler", "--json"]).json();
    assert_eq!(
        (&one["growth"], &one["recorded"]),
        (&json!(10_000), &json!(false))
    );
    let looked = place.run_with(&later, &["du", "-n", "--json"]).json();
    assert_eq!(looked["recorded"], false);
    let told = place.run_with(&later, &["du", "--json"]).json();
    assert_eq!(told["since"], "2024-06-15T12:00:00Z");
    assert_eq!(session(&told, "20240603_crawler")["growth"], 10_000);
    assert_eq!(session(&told, ID)["growth"], -12_345);
    assert_eq!(session(&told, "20240608_new")["growth"], Value::Null);
    // What is archived has no folder to grow; it is not new for that.
    assert_eq!(session(&told, "20240605_api_refactor")["growth"], 0);
    let new = session(&told, "20240608_new")["all"]["bytes"]
        .as_i64()
        .unwrap();
    assert_eq!(
        told["growth"],
        10_000 - 12_345 + new,
        "its own record is no growth"
    );
    let text = place.run_with(&later, &["du"]).stdout;
    assert!(
        text.contains("+0 B since the last record, 2024-06-18T12:00:00Z"),
        "{text}"
    );
    assert_eq!(
        place.mode(format!("{}/.wbhome/du.json", support::home::HOME)),
        0o600
    );
    for broken in ["", "{", "[]", r#"{"format": 9}"#] {
        place.put_home(".wbhome/du.json", broken);
        assert_eq!(place.json(["du", "-n"])["since"], Value::Null, "{broken:?}");
    }
    assert_eq!(place.json(["du"])["recorded"], true);
}

#[test]
fn it_answers_where_it_can_not_write() {
    let place = place();
    // Merely found.
    let found = place.home().join("sessions");
    let other = Place::new();
    let mut command = place.command();
    command.current_dir(&found).env("HOME", other.user_home());
    let ran = support::Ran::of(command.args(["du", "--json"]).output().unwrap());
    ran.expect(0);
    assert_eq!(ran.json()["recorded"], false);
    assert!(!place.home().join(".wbhome/du.json").exists());
    // What a killed command has left is not settled by who only looks.
    place.put_home(".wbhome/journal/x.json", "{}");
    let before = tree(&place.home());
    assert_eq!(place.json(["du"])["recorded"], false);
    assert!(before == tree(&place.home()));
}

#[test]
fn what_can_not_be_read_is_named() {
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root reads everything");
        return;
    }
    let place = place();
    let folder = place.home().join("sessions/20240603_crawler/memory");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o0)).unwrap();
    let ran = place.run(["du", "--json"]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    ran.expect(3)
        .says(&["can not be read: sessions/20240603_crawler/memory"]);
}

#[test]
fn the_three_things_that_grow() {
    let place = place();
    let at = "sessions/20240603_crawler";
    let mut repeated = 0;
    for turn in 1..=12_usize {
        place.put_home(
            &format!("{at}/context/turn_{turn:03}.json"),
            noise(5, turn * 100_000),
        );
        repeated += turn * 100_000;
    }
    place.put_home(&format!("{at}/logs/run.log"), noise(6, 3_000_000));
    place.put_home(
        &format!("{at}/artifacts/old result.bin"),
        noise(7, 11_000_000),
    );
    place.put_home(&format!("{at}/artifacts/small.bin"), noise(8, 9_999_999));
    // Of June 2024; the session rests for thirty days in the middle of July.
    place.date("20240603_crawler", 3);
    place.put_home(
        &format!("sessions/{ID}/artifacts/in use.bin"),
        noise(9, 12_000_000),
    );
    place.date(ID, 30);
    let told = |now: &str| {
        place
            .run_with(&[("WBHOME_NOW", now)], &["du", "-n", "--json"])
            .json()
    };
    let june = told("2024-06-15T12:00:00Z");
    let context = grows(&june, "context_snapshots");
    assert_eq!(context["bytes"], (repeated - 1_200_000) as u64);
    assert_eq!(context["sessions"][0]["path"], "20240603_crawler");
    assert_eq!(
        (&context["of"], &context["helps"]),
        (&json!(1), &Value::Null),
        "it does not rest yet"
    );
    assert_eq!(grows(&june, "logs")["bytes"], 3_012_345);
    assert_eq!(grows(&june, "logs")["helps"], "wbhome rotate --force");
    assert_eq!(grows(&june, "artifacts_left_behind")["files"], json!([]));
    let july = told("2024-07-10T12:00:00Z");
    assert_eq!(
        grows(&july, "context_snapshots")["helps"],
        "wbhome archive --idle 30d"
    );
    let left = grows(&july, "artifacts_left_behind");
    assert_eq!(
        (&left["bytes"], &left["of"], &left["helps"]),
        (&json!(11_000_000), &json!(1), &Value::Null)
    );
    assert_eq!(
        left["files"][0]["path"],
        format!("{at}/artifacts/old result.bin")
    );
    assert_eq!(
        left["files"].as_array().unwrap().len(),
        1,
        "what is small, and what is in use, stays unnamed"
    );
    let text = place
        .run_with(&[("WBHOME_NOW", "2024-07-10T12:00:00Z")], &["du", "-n"])
        .stdout;
    for line in [
        "What grows, and what helps",
        "wbhome archive --idle 30d",
        "wbhome rotate --force",
        "old result.bin   2024-06-0",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    // What is printed helps.
    let late = [("WBHOME_NOW", "2024-07-10T12:00:00Z")];
    place
        .run_with(&late, &["archive", "--idle", "30d", "-q"])
        .expect(0);
    let after = told("2024-07-10T12:00:00Z");
    assert_eq!(grows(&after, "context_snapshots")["bytes"], 0);
    assert_eq!(grows(&after, "artifacts_left_behind")["bytes"], 0);
}

#[test]
fn names_can_not_drive_the_terminal_and_ids_are_never_cut() {
    let place = Place::with_home();
    let odd = "20240603_a\u{1b}[31m数\r";
    place.put_home(
        &format!("sessions/{odd}/artifacts/\u{1b}]0;x\u{7}.bin"),
        noise(1, 2000),
    );
    let mut command = place.command();
    command.env("COLUMNS", "40");
    let out = support::Ran::of(command.arg("du").output().unwrap());
    assert!(
        out.stdout.chars().all(|c| c == '\n' || !c.is_control()),
        "{out:?}"
    );
    assert!(out.stdout.contains("20240603_a\\x1b[31m数\\r"), "{out:?}");
    place.run(["du", "nothing"]).expect(1);
}

/// What could not be read would look as if it had grown the next time.
#[test]
fn a_partial_look_is_no_record() {
    let place = Place::with_sessions();
    place.ok(["du", "-q"]);
    let before = place.read("me/workbuddy_home/.wbhome/du.json");
    let logs = place.home().join("sessions/20240603_crawler/logs");
    std::fs::create_dir_all(logs.join("a")).unwrap();
    std::fs::write(logs.join("a/run.log"), "line\n").unwrap();
    std::fs::set_permissions(&logs, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read_dir(&logs).is_err() {
        let found = place.run(["du", "--json"]);
        assert_eq!(found.code, Some(3));
        assert!(found.stdout.contains("\"recorded\":false"), "{found:?}");
        assert_eq!(place.read("me/workbuddy_home/.wbhome/du.json"), before);
    } else {
        eprintln!("SKIPPED: root reads what nobody may");
    }
    std::fs::set_permissions(&logs, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
