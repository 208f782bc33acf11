//! What another device holds is read-only here: named sessions are refused, commands over many pass them over.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::relay::{Devices, SHARED};
use support::{Place, Ran, differences, tree};

const WHO: &str = "laptop holds its lease since 2024-06-15 12:00 by its clock";

/// The laptop holds the session that both have.
fn held() -> Devices {
    let devices = Devices::new();
    devices.laptop.ok(["lease", "take", "数据", "-q"]);
    devices
}

fn refused(place: &Place, args: &[&str]) {
    let before = place.apart_from_own();
    for dry in [&["-n"][..], &[]] {
        let ran = place.run([args, dry].concat());
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(WHO), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("lease steal"), "{args:?}: {ran:?}");
    }
    let changed = differences(&before, &place.apart_from_own());
    assert_eq!(changed, "", "{args:?}");
}

#[test]
fn every_command_that_changes_a_named_session_refuses_it() {
    let devices = Devices::new();
    let desk = &devices.desk;
    desk.put_home(&format!("sessions/{SHARED}/logs/run.log"), "line\n");
    desk.put_home(&format!("sessions/{SHARED}/memory/a"), "a");
    desk.ok(["commit", "-q"]);
    desk.ok(["backup", "init", "store", "-q"]);
    desk.ok(["backup", "run", "-q"]);
    desk.ok(["relink", "/a", "/b", "数据", "--force", "-q"]);
    devices.laptop.ok(["lease", "take", "数据", "-q"]);
    let inside = format!("{SHARED}/memory/a");
    for args in [
        &["archive", "数据"][..],
        &["archive", "数据", "--keep", "--force"],
        &["unarchive", "数据"],
        &["rotate", "数据", "--force"],
        &["mv", "数据", "别的"],
        &["mv", "数据", "别的", "--force", "--no-state"],
        &["rm", "数据"],
        // None of several is removed.
        &["rm", "crawler", "数据"],
        &["relink", "/old", "/new", "数据", "--force"],
        &["restore", "数据", "--from", "git", "--force"],
        &["restore", &inside, "--from", "git", "--force"],
        &["restore", "数据", "--from", "backup", "--force"],
        &["restore", &inside, "--from", "twin"],
        &["check", "--repair", "数据"],
    ] {
        refused(desk, args);
    }
    assert_snapshot!(desk.run(["rm", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240604_数据清洗` is read-only here: laptop holds its lease since 2024-06-15 12:00 by its clock
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    hint: docs/devices.md says what a lease is
    ");
    // Of several that go their ways alone the others are done.
    let ran = desk.run(["archive", "数据", "crawler", "-q"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        desk.home()
            .join("archive/20240603_crawler.tar.zst")
            .exists()
    );

    // The one that holds it is not hindered.
    let laptop = &devices.laptop;
    laptop.ok(["mv", "数据", "别的", "-q"]);
    laptop.ok(["archive", "别的", "-q"]);
}

#[test]
fn what_only_looks_is_free_and_so_are_labels() {
    let devices = held();
    let desk = &devices.desk;
    for args in [
        &["path", "数据"][..],
        &["search", "一", "数据"],
        &["du", "数据"],
        &["check", "数据"],
        &["commit", "数据"],
        &["history", "数据"],
        &["index"],
    ] {
        desk.ok(args);
    }
    desk.ok(["backup", "init", "store", "-q"]);
    desk.ok(["backup", "run", "-q"]);
    let out = ["restore", "数据", "--from", "backup", "--to", "out"];
    assert_eq!(desk.run(out).code, Some(0));
    assert_snapshot!(desk.run(["label", "数据", "--tag", "x"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   +x
    --- stderr
    20240604_数据清洗: laptop holds its lease since 2024-06-15 12:00 by its clock; its labels are this home's own all the same
    ");
    // Without the sync tag it is this home's own.
    desk.ok(["label", "数据", "--no-sync-tag", "-q"]);
    desk.ok(["archive", "数据", "-q"]);
}

#[test]
fn the_trash_and_an_archive_are_no_way_around() {
    let devices = Devices::new();
    let desk = &devices.desk;
    desk.ok(["rm", "数据", "crawler", "-q"]);
    devices.laptop.ok(["lease", "take", "数据", "-q"]);
    let act = desk.acts().remove(0);
    refused(desk, &["restore", SHARED, "--from", "trash"]);
    refused(desk, &["restore", &act, "--from", "trash"]);
    desk.ok(["restore", "crawler", "--from", "trash", "-q"]);
    // A theft is the way, although the session is in the trash.
    desk.ok(["lease", "steal", SHARED, "--yes", "-q"]);
    desk.ok(["restore", SHARED, "--from", "trash", "-q"]);

    desk.ok(["archive", "数据", "-q"]);
    devices.laptop.ok(["lease", "steal", "数据", "--yes", "-q"]);
    refused(desk, &["unarchive", "数据"]);
    refused(desk, &["rm", "数据"]);
    refused(desk, &["restore", SHARED, "--from", "archive", "--force"]);
}

#[test]
fn commands_over_many_pass_it_over() {
    let devices = held();
    let desk = &devices.desk;
    for id in ["20240603_crawler", SHARED] {
        desk.put_home(&format!("sessions/{id}/logs/run.log"), "一\n".repeat(99));
        desk.put_home(&format!("sessions/{id}/memory/a.md"), "see /old/data\n");
        let copy = format!("sessions/{id}/memory/a (desk's conflicted copy 2024-06-10).md");
        desk.put_home(&copy, "see /old/data\n");
    }
    desk.date(SHARED, 3);
    let shared = || tree(&desk.home().join("sessions").join(SHARED));
    let before = shared();
    assert_snapshot!(desk.run(["rotate", "--force"]).shown(desk), @r"
    exit: 0
    --- stdout
    sessions/20240603_crawler/logs/run.log   396 B → run.log-20240615T120000Z   lossless
    Logs: 1 cut · 1 left alone
    --- stderr
    left sessions/20240604_数据清洗/logs/run.log: it is read-only here: laptop holds its lease since 2024-06-15 12:00 by its clock
    ");
    let relinked = desk.ok(["relink", "/old/data", "/new/data", "--force"]);
    let told =
        format!("left, since another device holds the lease: 1 session\n    {SHARED}   {WHO}\n");
    assert!(relinked.contains(&told), "{relinked}");
    assert!(
        desk.home_text("sessions/20240603_crawler/memory/a.md")
            .contains("/new/data")
    );
    assert_snapshot!(desk.run(["check", "--repair"]).settled(desk), @r"
    exit: 4
    --- stdout
      put away      1   sessions/20240603_crawler/memory/a (desk's conflicted copy 2024-06-10).md is the same as a.md

    Left for you
      sessions/20240604_数据清洗/memory/a (desk's conflicted copy 2024-06-10).md   is read-only here: laptop holds its lease since 2024-06-15 12:00 by its clock
      sessions/20240604_数据清洗/memory/a.md

    To take it back: wbhome restore 20240615T120000Z --from trash

    3 problems left.  See them: wbhome check
    --- stderr
    ");
    let record: Value = desk.json(["nightly"]);
    let rotate = &record["stages"][0];
    assert_eq!(
        (&rotate["name"], &rotate["exit"]),
        (&json!("rotate"), &json!(0))
    );
    assert!(rotate["notes"].to_string().contains(WHO), "{rotate}");
    for id in ["20240603_crawler", SHARED, "20240605_api_refactor"] {
        desk.date(id, 3);
    }
    assert_snapshot!(desk.run(["archive", "--idle", "1d"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240603_crawler   5 files, 944 B → 1.2 kB
    20240605_api_refactor   2 files, 148 B → 906 B
    1 session left, held by another device:
      20240604_数据清洗   laptop holds its lease since 2024-06-15 12:00 by its clock
    2 sessions: 7 files, 1.1 kB → 2.1 kB
    Back again: wbhome unarchive 20240603_crawler
    --- stderr
    ");
    assert_eq!(differences(&before, &shared()), "");
}

/// What a relink had changed is not changed back under another device's hands.
#[test]
fn a_relink_is_not_taken_back_under_its_hands() {
    let devices = Devices::new();
    let desk = &devices.desk;
    desk.put_home(&format!("sessions/{SHARED}/memory/a.md"), "see /old/data\n");
    desk.ok(["relink", "/old/data", "/new/data", "--force", "-q"]);
    devices.laptop.ok(["lease", "take", "数据", "-q"]);
    refused(desk, &["relink", "undo"]);
    devices.laptop.ok(["lease", "release", "数据", "-q"]);
    desk.ok(["relink", "undo", "-q"]);
}

#[test]
fn lists_tell_of_it() {
    let devices = held();
    let desk = &devices.desk;
    assert_snapshot!(desk.run(["ls", "--sort", "id"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240603_crawler       active  2024-06-03T09:00:00Z  -        -      -
    20240604_数据清洗      active  2024-06-04T09:00:00Z  laptop   -      -        sync:两台
    20240605_api_refactor  active  2024-06-05T09:00:00Z  -        -      -
    --- stderr
    ");
    assert_snapshot!(devices.laptop.run(["ls", "-l", "数据"]).shown(&devices.laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  active  2024-06-04T09:00:00Z      1     27 B     0 B        0 B   0 B        -  this device  -      -        sync:两台
    --- stderr
    ");
    let shown = desk.ok(["show", "数据"]);
    let lease = shown.lines().find(|line| line.contains("lease"));
    assert_snapshot!(lease.unwrap_or_default().trim(), @"lease      held by laptop since 2024-06-15 12:00 (just now): read-only here");
    let shown = devices.laptop.ok(["show", "数据"]);
    let lease = shown.lines().find(|line| line.contains("lease"));
    assert_snapshot!(lease.unwrap_or_default().trim(), @"lease      held by this device since 2024-06-15 12:00 (just now)");
    // Whoever holds one that does not travel here holds nothing here.
    desk.ok(["label", "数据", "--no-sync-tag", "-q"]);
    assert!(!desk.ok(["ls"]).contains("laptop"));
}

#[test]
fn what_was_noted_counts_while_the_relay_is_away() {
    let devices = held();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    // Nothing was noted by this home yet.
    std::fs::rename(devices.relay(), laptop.path("away")).unwrap();
    desk.ok(["archive", "数据", "-n", "-q"]);
    std::fs::rename(laptop.path("away"), devices.relay()).unwrap();
    assert_eq!(desk.run(["lease", "take", "数据"]).code, Some(1));
    std::fs::rename(devices.relay(), laptop.path("away")).unwrap();
    assert_snapshot!(desk.run(["rm", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240604_数据清洗` is read-only here: laptop holds its lease since 2024-06-15 12:00 by its clock (noted on 2024-06-15 12:00; the relay can not be reached now)
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    hint: docs/devices.md says what a lease is
    ");
    std::fs::create_dir(devices.relay()).unwrap();
    refused(desk, &["rm", "数据"]);
    // The holder knows of its own.
    laptop.ok(["rm", "数据", "-q"]);
}

#[test]
fn an_unknown_device_holds_nothing() {
    let devices = held();
    let laptop = &devices.laptop;
    std::fs::remove_file(laptop.path("me/.local/share/wbhome/device.json")).unwrap();
    refused(laptop, &["rm", "数据"]);
}

/// A home that was merely found is looked at, too: more than a refusal does not come of it.
#[test]
fn a_home_that_was_found_is_no_way_around() {
    let devices = held();
    let desk = &devices.desk;
    let other = desk.path("home");
    std::fs::rename(desk.home(), &other).unwrap();
    let ran = desk.run_in("home/sessions", &["archive", SHARED]);
    assert!(ran.code == Some(1) && ran.stderr.contains(WHO), "{ran:?}");
}

#[test]
fn leases_of_a_broken_index_count_all_the_same() {
    let devices = held();
    let desk = &devices.desk;
    desk.put_home("index.json", "[{");
    let ran = desk.run(["restore", &format!("{SHARED}/memory/a"), "--from", "twin"]);
    assert!(ran.code == Some(1) && ran.stderr.contains(WHO), "{ran:?}");
}

#[test]
fn doctor_looks_at_the_relay() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    let checks = |place: &Place| -> Vec<Value> {
        let report = place.json(["doctor"]);
        let checks = report["checks"].as_array().unwrap().iter();
        checks
            .filter(|check| check["name"] == "relay")
            .cloned()
            .collect()
    };
    let says = |place: &Place| -> String {
        let root = laptop.root();
        let told = checks(place)
            .into_iter()
            .map(|check| format!("{}: {} {}", check["verdict"], check["says"], check["cure"]));
        told.collect::<Vec<_>>()
            .join("\n")
            .replace(root.to_str().unwrap(), "[LAPTOP]")
    };
    assert_snapshot!(says(desk), @r#""ok": "[LAPTOP]/中继, clone; 2 devices, 0 leases" null"#);
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.ok(["lease", "steal", "数据", "--yes", "-q"]);
    std::fs::write(devices.relay().join(".leases/x\u{1b}.json"), "").unwrap();
    assert_snapshot!(says(laptop), @r#"
    "warning": "1 file in .leases that can not be understood: x\\x1b.json (its name is not the id of a device)" null
    "warning": "desk holds the lease of `20240604_数据清洗`, which this device claims, too" "wbhome lease release 20240604_数据清洗"
    "#);
    std::fs::rename(devices.relay(), laptop.path("away")).unwrap();
    assert_snapshot!(says(desk), @r#""error": "the relay folder is not there: [LAPTOP]/中继" null"#);
    std::fs::create_dir(devices.relay()).unwrap();
    assert_snapshot!(says(desk), @r#""error": "the folder is not, or not any more, a relay of this device: [LAPTOP]/中继" null"#);
    std::fs::remove_file(desk.path("me/.local/share/wbhome/device.json")).unwrap();
    assert_snapshot!(says(desk), @r#""error": "[LAPTOP]/中继 is set, and this device was never made known there" null"#);
    assert!(checks(&Place::with_sessions()).is_empty());
}

#[test]
fn completion_offers_what_travels() {
    let devices = Devices::new();
    for verb in ["take", "steal", "release"] {
        let line = format!("wbhome lease {verb} ");
        let mut command = devices.desk.command();
        command
            .env("COMPLETE", "bash")
            .args(["--", &line, "", "", "9", "80"]);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.stdout.trim_end(), SHARED, "{ran:?}");
    }
}
