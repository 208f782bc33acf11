//! `wbhome index`: the index agrees with the disk, and nothing that a person wrote is lost.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::{Place, differences, tree};

fn entry(place: &Place, id: &str) -> Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == id);
    found.unwrap_or_else(|| &Value::Null).clone()
}

#[test]
fn what_agrees_is_not_written() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
    3 entries, all as on the disk.
    --- stderr
    ");
    assert_snapshot!(place.run(["index", "--rebuild"]).shown(&place), @r"
    exit: 0
    --- stdout
    3 entries, all as on the disk.
    --- stderr
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn sessions_that_came_by_hand_are_added() {
    let place = Place::with_sessions();
    place.session("20240606_周报", 6);
    place.session("my session (1)", 7);
    place.packed_by_hand("20240520_old");
    place.put_home("sessions/.DS_Store", "");
    assert_snapshot!(place.run(["index", "-n"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240606_周报
                 my session (1)
                 20240520_old
    6 entries, 3 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240606_周报"), Value::Null);
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240606_周报
                 my session (1)
                 20240520_old
    6 entries, 3 unchanged.
    --- stderr
    ");
    assert_eq!(
        entry(&place, "20240606_周报")["created_at"],
        "2024-06-06T08:00:00Z"
    );
    let old = entry(&place, "20240520_old");
    assert_eq!(old["status"], "archived");
    let path = place.home().join("archive/20240520_old.tar.zst");
    let (bytes, blake3) = (
        std::fs::metadata(&path).unwrap().len(),
        support::digest(&path),
    );
    assert_eq!(
        old["archive"],
        json!({"file": "archive/20240520_old.tar.zst", "bytes": bytes, "blake3": blake3})
    );
    assert_eq!(old["session_id"], "by hand");
}

#[test]
fn a_folder_renamed_by_hand_keeps_its_labels() {
    let place = Place::with_sessions();
    place.ok([
        "label",
        "crawler",
        "--tag",
        "web",
        "--project",
        "alpha",
        "--sync-tag",
        "laptop",
        "-q",
    ]);
    let sessions = place.home().join("sessions");
    std::fs::rename(
        sessions.join("20240603_crawler"),
        sessions.join("20240603_价格"),
    )
    .unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      renamed    20240603_crawler → 20240603_价格
    3 entries, 2 unchanged.
    --- stderr
    ");
    let entry = entry(&place, "20240603_价格");
    assert_eq!(entry["tags"], json!(["web"]));
    assert_eq!(entry["sync_tag"], "laptop");
    assert_eq!(place.names("projects"), ["alpha/", "alpha/20240603_价格"]);
    assert!(
        place
            .home()
            .join("projects/alpha/20240603_价格/session.json")
            .exists()
    );
}

#[test]
fn a_copy_of_a_session_does_not_take_its_labels() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "--tag", "web", "-q"]);
    let record = place.home_text("sessions/20240603_crawler/session.json");
    place.put_home("sessions/20240603_crawler copy/session.json", &record);
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240603_crawler copy
    4 entries, 3 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["tags"], json!(["web"]));
    assert_eq!(entry(&place, "20240603_crawler copy")["tags"], json!([]));
}

#[test]
fn two_that_claim_to_be_the_renamed_one() {
    let place = Place::with_sessions();
    let sessions = place.home().join("sessions");
    std::fs::rename(
        sessions.join("20240603_crawler"),
        sessions.join("20240603_one"),
    )
    .unwrap();
    let record = place.home_text("sessions/20240603_one/session.json");
    place.put_home("sessions/20240603_two/session.json", &record);
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      missing    20240603_crawler
      added      20240603_one
                 20240603_two
      problem    20240603_crawler   was renamed to one of 20240603_one, 20240603_two, but which?
    5 entries, 2 unchanged.
    --- stderr
    ");
}

#[test]
fn missing_and_returned() {
    let place = Place::with_sessions();
    place.ok([
        "label",
        "crawler",
        "--tag",
        "web",
        "--project",
        "alpha",
        "-q",
    ]);
    let (here, away) = (
        place.home().join("sessions/20240603_crawler"),
        place.path("away"),
    );
    std::fs::rename(&here, &away).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      missing    20240603_crawler
    3 entries, 2 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["status"], "missing");
    assert_eq!(entry(&place, "20240603_crawler")["tags"], json!(["web"]));
    assert!(place.names("projects").is_empty());
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
    3 entries, all as on the disk.
    --- stderr
    ");
    std::fs::rename(&away, &here).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      returned   20240603_crawler
    3 entries, 2 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["status"], "active");
    assert_eq!(
        place.names("projects"),
        ["alpha/", "alpha/20240603_crawler"]
    );
}

#[test]
fn a_word_of_ones_own_comes_back_with_the_session() {
    let place = Place::with_sessions();
    place.put_home("index.json", r#"[{"id": "20240603_crawler", "status": "paused"}, {"id": "20240604_数据清洗"}, {"id": "20240605_api_refactor"}]"#);
    let (here, away) = (
        place.home().join("sessions/20240603_crawler"),
        place.path("away"),
    );
    std::fs::rename(&here, &away).unwrap();
    place.ok(["index", "-q"]);
    assert_eq!(entry(&place, "20240603_crawler")["status"], "missing");
    std::fs::rename(&away, &here).unwrap();
    place.ok(["index", "-q"]);
    assert_eq!(entry(&place, "20240603_crawler")["status"], "paused");
    assert!(
        entry(&place, "20240603_crawler")
            .get("status_before")
            .is_none()
    );
}

#[test]
fn archived_and_unpacked_by_hand() {
    let place = Place::with_sessions();
    let here = place.home().join("sessions/20240603_crawler");
    place.packed_by_hand("20240603_crawler");
    std::fs::rename(&here, place.path("away")).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      archived   20240603_crawler
    3 entries, 2 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["status"], "archived");
    std::fs::rename(place.path("away"), &here).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      returned   20240603_crawler
    3 entries, 2 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["status"], "active");
}

#[test]
fn a_tombstone_stays_until_its_session_is_back() {
    let place = Place::with_sessions();
    let mut index = place.index();
    index.as_array_mut().unwrap().push(json!({"id": "20240522_away", "status": "removed", "removed_at": "2024-06-01T00:00:00Z", "tags": ["x"]}));
    place.put_home("index.json", index.to_string());
    place.ok(["index", "-q"]);
    place.ok(["index", "--rebuild", "-q"]);
    let tombstone = entry(&place, "20240522_away");
    assert_eq!(
        (&tombstone["status"], &tombstone["removed_at"]),
        (&json!("removed"), &json!("2024-06-01T00:00:00Z"))
    );
    place.session("20240522_away", 1);
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      returned   20240522_away
    4 entries, 3 unchanged.
    --- stderr
    ");
    let back = entry(&place, "20240522_away");
    assert_eq!(
        (&back["status"], &back["tags"]),
        (&json!("active"), &json!(["x"]))
    );
    assert!(back.get("removed_at").is_none());
}

#[test]
fn hostile_ids_stay_what_they_are_text() {
    let place = Place::with_sessions();
    place.put("me/outside/secret", "s");
    let hostile = r#"[{"id": "../../outside", "project": "alpha"}, {"id": "/etc", "project": "../.."}, {"id": "20240603_crawler", "project": "../up"}, {"id": "a\u001b[31m\u202eb"}]"#;
    place.put_home("index.json", hostile);
    let mut before = (
        place.apart_from_own(),
        tree(&place.path("me/outside")),
        place.names("projects"),
    );
    let ran = place.run(["index"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
      missing    a\x1b[31m\u{202e}b
      added      20240604_数据清洗
                 20240605_api_refactor
      completed  20240603_crawler
      problem    ../../outside   can not be the name of a session's folder
      problem    /etc   can not be the name of a session's folder
    6 entries, 2 unchanged.
    --- stderr
    warning: `../up` can not be a folder in projects/: the sessions of that project have no view
    ");
    let mut after = (
        place.apart_from_own(),
        tree(&place.path("me/outside")),
        place.names("projects"),
    );
    for tree in [&mut before.0, &mut after.0] {
        tree.remove(b"index.json".as_slice());
    }
    assert_eq!(before, after, "nothing was made of those names");
    assert_eq!(entry(&place, "../../outside")["project"], "alpha");
}

#[test]
fn a_broken_index_is_refused_and_left_as_it_is() {
    let place = Place::with_sessions();
    let broken = "[\n  {\"id\": \"20240603_crawler\",\n   \"tags\": [\"web\"}\n]\n";
    place.put_home("index.json", broken);
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 3, column 18 (expected `,` or `]`): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    assert_snapshot!(place.run(["index", "-n"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 3, column 18 (expected `,` or `]`): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    assert_eq!(place.home_text("index.json"), broken);
}

#[test]
fn a_rebuild_puts_the_broken_one_into_the_trash() {
    let place = Place::with_sessions();
    let broken = "[\n  {\"id\": \"20240603_crawler\",\n   \"tags\": [\"web\"}\n]\n";
    place.put_home("index.json", broken);
    assert_snapshot!(place.run(["index", "--rebuild", "-n"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240603_crawler
                 20240604_数据清洗
                 20240605_api_refactor
    3 entries, 0 unchanged.
    --- stderr
    ");
    assert_eq!(place.home_text("index.json"), broken);
    assert_snapshot!(place.run(["index", "--rebuild"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240603_crawler
                 20240604_数据清洗
                 20240605_api_refactor
    3 entries, 0 unchanged.
    The former index is kept: .wbhome/trash/20240615T120000Z/index.json
    --- stderr
    ");
    assert_eq!(
        place.home_text(".wbhome/trash/20240615T120000Z/index.json"),
        broken
    );
    let note: Value =
        serde_json::from_str(&place.home_text(".wbhome/trash/20240615T120000Z/note.json")).unwrap();
    assert_eq!(note["was"][0]["path"], "index.json");
    assert_eq!(place.index().as_array().unwrap().len(), 3);
    place.ok(["check"]);
}

#[test]
fn a_rebuild_keeps_labels_and_folds_what_stands_twice() {
    let place = Place::with_sessions();
    place.put_home(
        "index.json",
        r#"[
  {"id": "20240603_crawler", "tags": ["web"], "cost": 1.50},
  "a remark",
  {"id": "20240603_crawler", "tags": ["prices"], "project": "alpha"},
  {"id": "20240522_away", "status": "removed"},
  {"id": "../../etc"}
]"#,
    );
    let former = place.home_text("index.json");
    assert_snapshot!(place.run(["index", "--rebuild"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240604_数据清洗
                 20240605_api_refactor
      completed  20240603_crawler
      problem    20240603_crawler   stood more than once in the index; its entries were put together
      2 elements of the former index can not be entries: left out
    4 entries, 1 unchanged.
    The former index is kept: .wbhome/trash/20240615T120000Z/index.json
    --- stderr
    ");
    let entry = entry(&place, "20240603_crawler");
    assert_eq!(entry["tags"], json!(["web", "prices"]));
    assert_eq!(entry["project"], "alpha");
    assert!(place.home_text("index.json").contains("\"cost\": 1.50"));
    assert_eq!(
        place.home_text(".wbhome/trash/20240615T120000Z/index.json"),
        former
    );
    assert_eq!(
        place.names("projects"),
        ["alpha/", "alpha/20240603_crawler"]
    );
}

#[test]
fn an_object_stays_an_object() {
    let place = Place::with_sessions();
    place.put_home(
        "index.json",
        r#"{"version": 3, "20240603_crawler": {"n": 0.10}, "20240604_数据清洗": {}}"#,
    );
    place.ok(["index", "-q"]);
    let index = place.index();
    assert_eq!(index["version"], 3);
    assert!(index["20240605_api_refactor"].is_object());
    assert!(place.home_text("index.json").contains("0.10"));
    place.ok(["index", "--rebuild", "-q"]);
    assert!(place.index()["20240603_crawler"].is_object());
}

#[test]
fn an_index_that_is_gone_is_made() {
    let place = Place::with_sessions();
    std::fs::remove_file(place.home().join("index.json")).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240603_crawler
                 20240604_数据清洗
                 20240605_api_refactor
    3 entries, 0 unchanged.
    --- stderr
    ");
    assert_eq!(place.mode("me/workbuddy_home/index.json"), 0o600);
}

#[test]
fn names_that_no_id_can_hold_are_named() {
    let place = Place::with_sessions();
    let sessions = place.home().join("sessions");
    std::fs::create_dir(sessions.join(OsStr::from_bytes(b"bad\xff\x1bname"))).unwrap();
    std::fs::create_dir(sessions.join("x".repeat(201))).unwrap();
    place.put_home("sessions/20240606_file", "no folder");
    symlink("20240603_crawler", sessions.join("20240607_link")).unwrap();
    assert_snapshot!(place.run(["index"]).shown(&place).replace(&"x".repeat(201), "[x × 201]"), @r"
    exit: 0
    --- stdout
    3 entries, all as on the disk.
    --- stderr
    warning: bad\xff\x1bname can not be indexed: its name is not UTF-8, or longer than 200 bytes
    warning: [x × 201] can not be indexed: its name is not UTF-8, or longer than 200 bytes
    ");
    assert_eq!(place.index().as_array().unwrap().len(), 3);
}

#[test]
fn a_file_in_the_place_of_a_session() {
    let place = Place::with_sessions();
    std::fs::remove_dir_all(place.home().join("sessions/20240603_crawler")).unwrap();
    place.put_home("sessions/20240603_crawler", "no folder");
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      problem    20240603_crawler   in sessions/ stands a file or a link of that name
    3 entries, 3 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240603_crawler")["status"], "active");
}

#[test]
fn a_torn_record_costs_details_not_the_entry() {
    let place = Place::with_sessions();
    place.put_home(
        "sessions/20240606_torn/session.json",
        "{\"id\": \"20240606_torn\", \"tit",
    );
    assert_snapshot!(place.run(["index"]).shown(&place), @r"
    exit: 0
    --- stdout
      added      20240606_torn
      problem    20240606_torn   can not understand session.json: EOF while parsing a string at line 1 column 28
    4 entries, 3 unchanged.
    --- stderr
    ");
    assert_eq!(entry(&place, "20240606_torn")["status"], "active");
}

#[test]
fn quiet_says_nothing_but_warnings() {
    let place = Place::with_sessions();
    place.session("20240606_x", 6);
    place.put_home("projects/alpha/mine", "");
    let ran = place.run(["index", "-q"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    warning: projects/alpha/mine is none of the links that wbhome makes; it was left alone
    ");
}

#[test]
fn a_project_that_no_folder_can_have_is_told() {
    let place = Place::with_sessions();
    place.put_home(
        "index.json",
        r#"[{"id": "20240603_crawler", "project": "../up"}, {"id": "20240604_数据清洗", "project": "a/\u001bb"}]"#,
    );
    let ran = place.run(["index", "-q"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    warning: `../up` can not be a folder in projects/: the sessions of that project have no view
    warning: `a/\x1bb` can not be a folder in projects/: the sessions of that project have no view
    ");
    assert!(place.names("projects").is_empty());
}

#[test]
fn views_are_repaired() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "清洗", "--project", "alpha", "-q"]);
    let alpha = place.home().join("projects/alpha");
    std::fs::remove_file(alpha.join("20240603_crawler")).unwrap();
    symlink(
        "../../sessions/20240605_api_refactor",
        alpha.join("20240605_api_refactor"),
    )
    .unwrap();
    let absolute = place.home().join("sessions/20240604_数据清洗");
    std::fs::remove_file(alpha.join("20240604_数据清洗")).unwrap();
    symlink(absolute, alpha.join("20240604_数据清洗")).unwrap();
    place.ok(["index"]);
    assert_eq!(
        place.names("projects"),
        [
            "alpha/",
            "alpha/20240603_crawler",
            "alpha/20240604_数据清洗"
        ]
    );
    for id in ["20240603_crawler", "20240604_数据清洗"] {
        assert_eq!(
            std::fs::read_link(alpha.join(id))
                .unwrap()
                .to_str()
                .unwrap(),
            format!("../../sessions/{id}")
        );
    }
}
