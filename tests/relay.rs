//! `wbhome relay init`, `sync`, `status`: in each mode the relay is exactly the tagged sessions, nothing else in that
//! folder is touched, and what somebody else has done there is told and left alone.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and plays the other device"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use support::disks::Disk;
use support::{Place, has_tool, is_root, tree};

const MODES: [&str; 3] = ["clone", "hardlink", "symlink"];
const CRAWLER: &str = "20240603_爬虫";
const REPORT: &str = "20240604_报告";
const OTHER: &str = "20240605_other";

/// A home with three sessions, two of them tagged, bound to a relay in which somebody else's things lie.
fn place(mode: &str) -> Place {
    let place = Place::with_home();
    for (day, id) in [(3, CRAWLER), (4, REPORT), (5, OTHER)] {
        place.session(id, day);
        place.put_home(
            &format!("sessions/{id}/artifacts/结果.md"),
            format!("of {id}\n"),
        );
        place.put_home(&format!("sessions/{id}/logs/run.log"), "line\n");
        place.put_home(&format!("sessions/{id}/artifacts/sub/deep/a.txt"), "deep\n");
        place.date(id, day);
    }
    place.ok(["index", "-q"]);
    place.put("relay/读我.txt", "not ours\n");
    place.put("relay/.stfolder/x", "the client's\n");
    place.put("relay/20230101_of_others/session.json", "{}\n");
    place.ok(["relay", "init", "relay", "--mode", mode]);
    place.ok(["label", CRAWLER, REPORT, "--sync-tag", "笔记本"]);
    place
}

fn relay(place: &Place) -> PathBuf {
    place.path("relay")
}

/// Everything below a folder that is content: path, kind and bytes or target. Logs of a session left out.
fn content(root: &Path) -> BTreeMap<String, String> {
    let shown = tree(root).into_iter().map(|(path, entry)| {
        let path = String::from_utf8(path).unwrap();
        (path, format!("{} {}", entry.kind, entry.content))
    });
    shown
        .filter(|(path, _)| !path.is_empty() && path != "logs" && !path.starts_with("logs/"))
        .collect()
}

/// The relay must hold exactly these sessions, as they are here, and what was there before.
#[track_caller]
fn exactly(place: &Place, mode: &str, ids: &[&str]) {
    let mut expected = vec![
        ".leases".to_owned(),
        ".stfolder".into(),
        "20230101_of_others".into(),
        "读我.txt".into(),
    ];
    expected.extend(ids.iter().map(|id| (*id).to_owned()));
    expected.sort();
    let mut names: Vec<String> = std::fs::read_dir(relay(place))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, expected, "{mode}");
    assert_eq!(place.text("relay/读我.txt"), "not ours\n");
    assert_eq!(place.text("relay/.stfolder/x"), "the client's\n");
    for id in ids {
        let (here, there) = (
            place.home().join("sessions").join(id),
            relay(place).join(id),
        );
        if mode == "symlink" {
            assert_eq!(std::fs::read_link(&there).unwrap(), here);
            continue;
        }
        assert!(!std::fs::symlink_metadata(&there).unwrap().is_symlink());
        assert_eq!(content(&there), content(&here), "{mode} {id}");
        for (path, entry) in tree(&there) {
            let path = String::from_utf8(path).unwrap();
            let one = |root: &Path| std::fs::symlink_metadata(root.join(&path)).unwrap().ino();
            if entry.kind == 'f' {
                let linked = one(&here) == one(&there);
                assert_eq!(linked, mode == "hardlink", "{mode} {id}/{path}");
            }
        }
    }
    // Nothing is left to be done, and nothing is touched.
    let before = stamps(&relay(place));
    let again = place.json(["relay", "sync"]);
    for session in again["sessions"].as_array().unwrap() {
        assert_eq!(session["state"], "same", "{mode}: {session:#}");
    }
    assert!(stamps(&relay(place)) == before, "{mode}");
}

/// What a change of any kind would change.
fn stamps(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, i64, i64)> {
    let all = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    all.map(|entry| {
        let meta = std::fs::symlink_metadata(entry.path()).unwrap();
        let times = (
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        );
        (entry.into_path(), times)
    })
    .collect()
}

fn sync(place: &Place) {
    place.ok(["relay", "sync", "-q"]);
}

#[test]
fn in_each_mode_the_relay_is_exactly_the_tagged_sessions() {
    for mode in MODES {
        let place = place(mode);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT]);

        // Another tag is no change; one more session comes.
        place.ok(["label", CRAWLER, OTHER, "--sync-tag", "desktop"]);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT, OTHER]);

        // Edited in place, edited by rename, added, removed, a file where a folder was, a link.
        let session = place.home().join("sessions").join(CRAWLER);
        std::fs::write(
            session.join("context/turn_001.json"),
            "{\"turn\": 1, \"text\": \"二\"}\n",
        )
        .unwrap();
        std::fs::write(session.join("new"), "saved by rename\n").unwrap();
        std::fs::rename(session.join("new"), session.join("artifacts/结果.md")).unwrap();
        std::fs::write(session.join("context/turn_002.json"), "{}\n").unwrap();
        std::fs::create_dir_all(session.join("memory/新/空")).unwrap();
        std::fs::remove_dir_all(session.join("artifacts/sub")).unwrap();
        std::fs::write(session.join("artifacts/sub"), "a file now\n").unwrap();
        symlink("结果.md", session.join("artifacts/link")).unwrap();
        std::fs::set_permissions(
            session.join("session.json"),
            PermissionsExt::from_mode(0o640),
        )
        .unwrap();
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT, OTHER]);

        // A folder where a file was, and the link points elsewhere.
        std::fs::remove_file(session.join("artifacts/sub")).unwrap();
        std::fs::create_dir(session.join("artifacts/sub")).unwrap();
        std::fs::write(session.join("artifacts/sub/b"), "b\n").unwrap();
        std::fs::remove_file(session.join("artifacts/link")).unwrap();
        symlink("sub/b", session.join("artifacts/link")).unwrap();
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT, OTHER]);

        // Renamed by us, renamed by hand, archived, untagged, removed: each leaves, and only it.
        place.ok(["mv", CRAWLER, "20240603_新名"]);
        sync(&place);
        exactly(&place, mode, &["20240603_新名", REPORT, OTHER]);
        let sessions = place.home().join("sessions");
        std::fs::rename(sessions.join("20240603_新名"), sessions.join(CRAWLER)).unwrap();
        place.ok(["index", "-q"]);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT, OTHER]);
        place.ok(["archive", REPORT]);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, OTHER]);
        place.ok(["unarchive", REPORT]);
        place.ok(["label", OTHER, "--no-sync-tag"]);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT]);
        place.ok(["rm", CRAWLER, "-y"]);
        sync(&place);
        exactly(&place, mode, &[REPORT]);
        place.ok(["restore", CRAWLER, "--from", "trash"]);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT]);
    }
}

#[test]
fn another_mode_converts_what_is_there() {
    for from in MODES {
        for to in MODES.into_iter().filter(|to| *to != from) {
            let place = place(from);
            sync(&place);
            let told = place.ok(["relay", "init", "relay", "--mode", to]);
            assert!(told.contains(&format!("It was {from}")), "{told}");
            sync(&place);
            exactly(&place, to, &[CRAWLER, REPORT]);
        }
    }
}

#[test]
fn one_tag_alone_leaves_the_others_as_they_are() {
    let place = place("clone");
    place.ok(["label", OTHER, "--sync-tag", "desktop"]);
    sync(&place);
    place.ok(["label", CRAWLER, OTHER, "--no-sync-tag"]);
    place.ok(["relay", "sync", "--tag", "desktop", "-q"]);
    assert!(!relay(&place).join(OTHER).exists());
    assert!(relay(&place).join(CRAWLER).exists());
    sync(&place);
    exactly(&place, "clone", &[REPORT]);
}

#[test]
fn logs_travel_when_they_are_wanted() {
    for mode in ["clone", "hardlink"] {
        let place = place(mode);
        sync(&place);
        assert!(!relay(&place).join(CRAWLER).join("logs").exists());
        let config = place.home_text("wbhome.toml");
        let with = config.replace("logs = false", "logs = true");
        assert_ne!(config, with);
        place.put_home("wbhome.toml", with);
        sync(&place);
        let log = format!("relay/{CRAWLER}/logs/run.log");
        assert_eq!(place.text(&log), "line\n");
        // One that has another name could not be cut.
        assert_eq!(std::fs::metadata(place.path(&log)).unwrap().nlink(), 1);
        place.put_home("wbhome.toml", config);
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT]);
        // Those that another device sends are none of ours.
        place.put(format!("relay/{CRAWLER}/logs/theirs.log"), "theirs\n");
        sync(&place);
        assert_eq!(
            place.text(format!("relay/{CRAWLER}/logs/theirs.log")),
            "theirs\n"
        );
    }
}

/// What another device, or a person, has done in the relay.
#[test]
fn what_somebody_else_has_done_is_told_and_left_alone() {
    let turn = format!("relay/{CRAWLER}/context/turn_001.json");
    for (what, kind) in [
        ("added", "added"),
        ("changed", "changed"),
        ("deleted", "deleted"),
        ("all", "deleted"),
    ] {
        let place = place("clone");
        sync(&place);
        match what {
            "added" => drop(place.put(format!("relay/{CRAWLER}/context/turn_002.json"), "theirs")),
            "changed" => drop(place.put(&turn, "theirs")),
            "deleted" => std::fs::remove_file(place.path(&turn)).unwrap(),
            _ => std::fs::remove_dir_all(relay(&place).join(CRAWLER)).unwrap(),
        }
        // And here something else: nothing of that may mix with it.
        place.put_home(&format!("sessions/{CRAWLER}/memory/here.md"), "ours");
        let theirs = tree(&relay(&place).join("."));
        let here = tree(&place.home().join("sessions"));
        let ran = place.run(["relay", "sync", "--json"]);
        ran.expect(3);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let session = &told["sessions"][0];
        assert_eq!(session["id"], CRAWLER);
        assert_eq!(
            (&session["state"], &session["why"]),
            (&"held".into(), &"changed-there".into())
        );
        assert!(
            session["differences"]
                .as_array()
                .unwrap()
                .iter()
                .all(|d| d["there"] == kind),
            "{session:#}"
        );
        assert_eq!(told["sessions"][1]["state"], "same");
        assert!(tree(&relay(&place).join(".")) == theirs, "{what}");
        assert_eq!(tree(&place.home().join("sessions")), here, "{what}");
        let before = match relay(&place).join(CRAWLER).exists() {
            true => tree(&relay(&place).join(CRAWLER)),
            false => BTreeMap::new(),
        };
        // Without its tag it does not travel from here any more, and what they have changed is theirs.
        place.ok(["label", CRAWLER, "--no-sync-tag"]);
        let told = place.json(["relay", "sync"]);
        if kind != "deleted" {
            assert_eq!(told["sessions"][0]["state"], "left", "{told:#}");
        }
        let told = place.json(["relay", "sync"]);
        assert_eq!(told["sessions"].as_array().unwrap().len(), 1, "{told:#}");
        if kind != "deleted" {
            let now = tree(&relay(&place).join(CRAWLER));
            assert!(now == before, "{what}");
        }
    }
}

#[test]
fn the_version_here_counts_when_a_person_says_so_and_the_other_is_kept() {
    let place = place("clone");
    sync(&place);
    let turn = format!("relay/{CRAWLER}/context/turn_001.json");
    place.put(&turn, "theirs");
    place.put(format!("relay/{CRAWLER}/extra.md"), "theirs too");
    let ran = place.run(["relay", "sync", "--ours", CRAWLER]);
    ran.expect(1)
        .says(&["nobody holds the lease", "lease take"]);
    assert_eq!(place.text(&turn), "theirs");
    hold_lease(&place, CRAWLER);
    place.ok(["relay", "sync", "--ours", CRAWLER]);
    let_go_of_leases(&place);
    exactly(&place, "clone", &[CRAWLER, REPORT]);
    let trash = place.names(".wbhome/trash");
    let kept = |end: &str| {
        let name = trash.iter().find(|name| name.ends_with(end));
        place.home_text(&format!(
            ".wbhome/trash/{}",
            name.unwrap_or_else(|| panic!("{end}: {trash:?}"))
        ))
    };
    assert_eq!(kept("context/turn_001.json"), "theirs");
    assert_eq!(kept("extra.md"), "theirs too");
}

/// Writes a lease of this device, as `lease take` does.
fn hold_lease(place: &Place, id: &str) {
    let leases = relay(place).join(".leases");
    let file = std::fs::read_dir(&leases)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut said: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    said["leases"][id] = serde_json::json!({"epoch": 1, "since": support::NOW});
    std::fs::write(&file, said.to_string()).unwrap();
}

/// As `lease release` does: who holds a lease gives a sign of life with each sync.
fn let_go_of_leases(place: &Place) {
    let leases = relay(place).join(".leases");
    let file = std::fs::read_dir(&leases)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut said: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(said["beat"], 1);
    said["leases"] = serde_json::json!({});
    std::fs::write(&file, said.to_string()).unwrap();
}

/// A file in the relay, of another device that holds a lease.
fn held_by_another(place: &Place, id: &str) {
    let device = "f".repeat(32);
    let said = serde_json::json!({
        "format": 1, "device": device, "name": "台式机\u{1b}[31m", "home": "other", "path": "/somewhere",
        "since": support::NOW, "leases": {id: {"epoch": 9, "since": support::NOW}},
    });
    place.put(format!("relay/.leases/{device}.json"), said.to_string());
}

#[test]
fn a_session_whose_lease_another_device_holds_is_not_touched() {
    let place = place("clone");
    sync(&place);
    held_by_another(&place, CRAWLER);
    place.put_home(&format!("sessions/{CRAWLER}/memory/here.md"), "ours");
    let ran = place.run(["relay", "sync"]);
    ran.expect(0)
        .says(&["台式机\\x1b[31m holds its lease since 2024-06-15"]);
    assert!(!relay(&place).join(CRAWLER).join("memory/here.md").exists());
    place.ok(["label", CRAWLER, "--no-sync-tag"]);
    sync(&place);
    assert!(relay(&place).join(CRAWLER).join("session.json").exists());
}

#[test]
fn the_same_content_is_no_change_whoever_wrote_it() {
    let place = place("clone");
    sync(&place);
    // A client that writes everything anew, and a record that is lost or torn.
    let turn = format!("relay/{CRAWLER}/context/turn_001.json");
    let text = place.text(&turn);
    std::fs::remove_file(place.path(&turn)).unwrap();
    place.put(&turn, text);
    sync(&place);
    exactly(&place, "clone", &[CRAWLER, REPORT]);
    std::fs::remove_file(place.home().join(".wbhome/relay.json")).unwrap();
    sync(&place);
    exactly(&place, "clone", &[CRAWLER, REPORT]);
    place.put_home(".wbhome/relay.json", "{\"format\": 1, \"relay\":");
    sync(&place);
    exactly(&place, "clone", &[CRAWLER, REPORT]);
    // What file managers and clients leave is nobody's change.
    place.put(format!("relay/{CRAWLER}/context/.DS_Store"), "x");
    sync(&place);
    assert!(
        relay(&place)
            .join(CRAWLER)
            .join("context/.DS_Store")
            .exists()
    );
    // Both sides got the same by another way.
    place.put(format!("relay/{CRAWLER}/context/turn_002.json"), "both");
    place.put_home(&format!("sessions/{CRAWLER}/context/turn_002.json"), "both");
    sync(&place);
}

#[test]
fn what_is_gone_here_without_a_word_stays_there() {
    let place = place("clone");
    sync(&place);
    let session = place.home().join("sessions").join(CRAWLER);
    let aside = place.path("aside");
    std::fs::rename(&session, &aside).unwrap();
    let ran = place.run(["relay", "sync"]);
    ran.expect(3).says(&["missing here"]);
    place.run(["index", "-q"]);
    place
        .run(["relay", "sync"])
        .expect(3)
        .says(&["missing here"]);
    assert!(relay(&place).join(CRAWLER).join("session.json").exists());
    // Emptied, as by a client that has lost its files.
    std::fs::create_dir_all(session.join("context")).unwrap();
    place.ok(["index", "-q"]);
    place
        .run(["relay", "sync"])
        .expect(3)
        .says(&["emptied here"]);
    assert!(relay(&place).join(CRAWLER).join("session.json").exists());
    std::fs::remove_dir_all(&session).unwrap();
    std::fs::rename(&aside, &session).unwrap();
    place.ok(["index", "-q"]);
    sync(&place);
    exactly(&place, "clone", &[CRAWLER, REPORT]);
}

#[test]
fn secrets_and_bad_names_hold_a_session_back_and_are_printed_nowhere() {
    for mode in MODES {
        let place = place(mode);
        let secret = "ghp_".to_owned() + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO2qV0hB";
        let file = format!("sessions/{CRAWLER}/artifacts/.env");
        place.put_home(&file, format!("A=1\nTOKEN={secret}\n"));
        for flags in [
            &["relay", "sync"][..],
            &["relay", "sync", "-v"],
            &["relay", "sync", "--json"],
            &["relay", "sync", "-n"],
        ] {
            let ran = place.run(flags);
            ran.expect(3);
            assert!(!format!("{ran:?}").contains(&secret[..12]), "{ran:?}");
        }
        place
            .run(["relay", "sync"])
            .says(&["a secret", "artifacts/.env:2", "github", "digest "]);
        exactly_but(&place, mode, &[REPORT]);
        // Called harmless by its digest.
        let told = Place::json(&place, ["relay", "sync", "-n"]);
        let digest = told["sessions"][0]["leaks"][0]["digest"]
            .as_str()
            .unwrap()
            .to_owned();
        let config = place.home_text("wbhome.toml");
        place.put_home(
            "wbhome.toml",
            config.replace("allow = []", &format!("allow = [\"{digest}\"]")),
        );
        sync(&place);
        exactly(&place, mode, &[CRAWLER, REPORT]);
        // No longer: it has left already, and that is told.
        place.put_home("wbhome.toml", &config);
        place
            .run(["relay", "sync"])
            .expect(3)
            .says(&["artifacts/.env:2"]);
        place.put_home(
            "wbhome.toml",
            config.replace("on_find = \"refuse\"", "on_find = \"warn\""),
        );
        place
            .run(["relay", "sync"])
            .expect(0)
            .says(&["artifacts/.env:2"]);
        place.put_home("wbhome.toml", &config);
        std::fs::remove_file(place.home().join(&file)).unwrap();
        sync(&place);

        place.put_home(&format!("sessions/{REPORT}/artifacts/a:b.md"), "x");
        let ran = place.run(["relay", "sync"]);
        ran.expect(3)
            .says(&["a bad name", "artifacts/a:b.md", "a_b.md would do"]);
    }
}

#[track_caller]
fn exactly_but(place: &Place, mode: &str, ids: &[&str]) {
    for id in ids {
        let there = relay(place).join(id);
        assert!(there.exists(), "{mode}");
    }
    assert!(!relay(place).join(CRAWLER).exists(), "{mode}");
}

#[test]
fn links_that_were_broken_are_made_again_and_writes_through_are_told() {
    let place = place("hardlink");
    sync(&place);
    let turn = format!("sessions/{CRAWLER}/context/turn_001.json");
    place.put_home(&format!("sessions/{CRAWLER}/new"), "saved by rename\n");
    std::fs::rename(
        place.home().join(format!("sessions/{CRAWLER}/new")),
        place.home().join(&turn),
    )
    .unwrap();
    sync(&place);
    exactly(&place, "hardlink", &[CRAWLER, REPORT]);
    // Written through from the side of the relay.
    assert!(!place.run(["relay", "sync"]).stderr.contains("in place"));
    place.put(
        format!("relay/{CRAWLER}/context/turn_001.json"),
        "written there\n",
    );
    assert_eq!(place.home_text(&turn), "written there\n");
    place
        .run(["relay", "sync"])
        .expect(0)
        .says(&["1 file written to in place"]);
    let ran = place.run(["relay", "sync"]);
    assert!(!ran.stderr.contains("in place"), "{ran:?}");
    // Written to since, and then it leaves: its archive holds what the link shows, and the trash has the same file.
    place.put_home(&turn, "the last word\n");
    place.put_home(&format!("sessions/{REPORT}/memory/last.md"), "ours\n");
    place.put_home(
        &format!("sessions/{REPORT}/context/turn_001.json"),
        "the last word\n",
    );
    place.ok(["archive", CRAWLER]);
    place.ok(["rm", REPORT, "-y"]);
    sync(&place);
    exactly(&place, "hardlink", &[]);
    // But one that is the last of its kind stays.
    place.ok(["unarchive", CRAWLER]);
    sync(&place);
    place.put_home(
        &format!("sessions/{CRAWLER}/new"),
        "saved by rename again\n",
    );
    std::fs::rename(
        place.home().join(format!("sessions/{CRAWLER}/new")),
        place.home().join(&turn),
    )
    .unwrap();
    place.put(
        format!("relay/{CRAWLER}/context/turn_001.json"),
        "only there\n",
    );
    place.ok(["archive", CRAWLER]);
    place
        .run(["relay", "sync"])
        .expect(0)
        .says(&["so it stays there"]);
    assert_eq!(
        place.text(format!("relay/{CRAWLER}/context/turn_001.json")),
        "only there\n"
    );
}

#[test]
fn places_that_can_not_be_a_relay_are_refused() {
    let place = place("clone");
    symlink(place.home().join("artifacts"), place.path("to_home")).unwrap();
    std::fs::create_dir_all(place.home().join("artifacts")).unwrap();
    for (dir, says) in [
        ("me/workbuddy_home/relay", "can not lie in the home"),
        ("to_home", "can not lie in the home"),
        ("me", "can not lie in the relay"),
        ("relay/inner", "inside another relay"),
    ] {
        let before = (tree(&relay(&place)), place.home_text("wbhome.toml"));
        place
            .run(["relay", "init", dir, "--mode", "clone"])
            .expect(1)
            .says(&[says]);
        let after = (tree(&relay(&place)), place.home_text("wbhome.toml"));
        assert!(after == before, "{dir}");
    }
    place
        .run(["relay", "init", "relay"])
        .expect(2)
        .says(&["clone: ", "hardlink: ", "symlink: "]);
    place
        .run(["relay", "init", "relay", "--mode", "x"])
        .expect(2);
    // What will leave is said before it does.
    let ran = place.run(["relay", "init", "anew", "--mode", "clone", "-n"]);
    ran.expect(0)
        .says(&["2 sessions carry a sync tag already", "relay sync -n"]);
    // Another home of the same device.
    place.ok(["init", "-q", "second"]);
    let second = place.path("second");
    let home = ["--home", second.to_str().unwrap()];
    let ran = place.run([&home[..], &["relay", "init", "relay", "--mode", "clone"]].concat());
    ran.expect(1).says(&["another home of this device"]);
    // A copy of the home; and the home itself, moved.
    sync(&place);
    let copy = place.path("copy");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(place.home())
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    let home = ["--home", copy.to_str().unwrap(), "relay", "sync"];
    place
        .run(home)
        .expect(1)
        .says(&["of which this home is a copy"]);
    std::fs::rename(place.home(), place.path("away")).unwrap();
    std::fs::remove_dir_all(place.path("away")).unwrap();
    place.run(home).expect(0);
    // A disk that is not mounted is an empty folder.
    std::fs::rename(relay(&place), place.path("real")).unwrap();
    place.run(home).expect(1).says(&["is not there", "mount"]);
    std::fs::create_dir(relay(&place)).unwrap();
    place
        .run(home)
        .expect(1)
        .says(&["not any more, a relay", "mount"]);
    assert_eq!(std::fs::read_dir(relay(&place)).unwrap().count(), 0);
}

#[test]
fn names_that_clash_and_things_that_can_not_travel_are_told() {
    let place = place("clone");
    place.session("20240606_A", 6);
    place.session("20240606_a", 6);
    place.ok(["index", "-q"]);
    place.ok(["label", "20240606_A", "20240606_a", "--sync-tag", "x"]);
    if has_tool("mkfifo") {
        let fifo = place
            .home()
            .join(format!("sessions/{CRAWLER}/artifacts/fifo"));
        assert!(
            std::process::Command::new("mkfifo")
                .arg(fifo)
                .status()
                .unwrap()
                .success()
        );
    }
    let ran = place.run(["relay", "sync"]);
    ran.expect(3).says(&[
        "20240606_A was held back: a clash",
        "20240606_a was held back",
        "artifacts/fifo",
    ]);
    assert!(!relay(&place).join("20240606_A").exists());
    assert!(relay(&place).join(CRAWLER).exists());
}

#[test]
fn a_dry_run_and_a_status_change_nothing() {
    let place = place("clone");
    let before = tree(&place.root());
    for args in [
        &["relay", "sync", "-n"][..],
        &["relay", "status"],
        &["relay", "status", "-v", "--json"],
    ] {
        place.run(args).expect(0);
        let after = tree(&place.root());
        // Which device this is was known since init.
        assert_eq!(support::differences(&before, &after), "");
    }
    sync(&place);
    let turn = format!("relay/{CRAWLER}/context/turn_001.json");
    place.put(&turn, "theirs");
    place.put_home(&format!("sessions/{CRAWLER}/context/turn_001.json"), "ours");
    let status = place.ok(["relay", "status", "-v"]);
    assert!(
        status.contains("changed on both sides")
            && status.contains("context/turn_001.json: changed there"),
        "{status}"
    );
    assert!(status.contains("20230101_of_others"), "{status}");
}

#[test]
fn a_relay_on_another_filesystem_full_or_read_only() {
    if !is_root() {
        return;
    }
    for kind in ["tmpfs", "ext4"] {
        let place = place("clone");
        let Some(disk) = Disk::new(&place.root(), kind, 8) else {
            return;
        };
        let dir = disk.path().join("relay");
        let dir = dir.to_str().unwrap();
        place
            .run(["relay", "init", dir, "--mode", "hardlink"])
            .expect(1)
            .says(&["another filesystem", "--mode clone"]);
        place.ok(["relay", "init", dir, "--mode", "clone"]);
        let big = place.put_home(
            &format!("sessions/{REPORT}/artifacts/big.bin"),
            vec![7u8; 12 << 20],
        );
        let ran = place.run(["relay", "sync"]);
        ran.expect(3).says(&["artifacts/big.bin", "no space left"]);
        let there = Path::new(dir);
        assert!(there.join(CRAWLER).join("session.json").exists());
        assert!(!there.join(REPORT).exists());
        assert_eq!(
            std::fs::read_dir(there).unwrap().count(),
            2,
            "nothing is left of it"
        );
        std::fs::write(big, "small").unwrap();
        sync(&place);
        assert_eq!(
            content(&there.join(REPORT)),
            content(&place.home().join("sessions").join(REPORT))
        );
        // Full while a session that is there is updated: the former files stay whole.
        place.put_home(
            &format!("sessions/{REPORT}/artifacts/big.bin"),
            vec![8u8; 12 << 20],
        );
        place
            .run(["relay", "sync"])
            .expect(3)
            .says(&["no space left"]);
        assert_eq!(
            std::fs::read_to_string(there.join(REPORT).join("artifacts/big.bin")).unwrap(),
            "small"
        );
        std::fs::remove_file(
            place
                .home()
                .join(format!("sessions/{REPORT}/artifacts/big.bin")),
        )
        .unwrap();
        sync(&place);
        let remount = |how: &str| {
            let options = format!("remount,{how}");
            let mut mount = std::process::Command::new("mount");
            assert!(
                mount
                    .args(["-o", &options])
                    .arg(disk.path())
                    .status()
                    .unwrap()
                    .success()
            );
        };
        remount("ro");
        place.run(["relay", "sync"]).expect(0);
        place.put_home(&format!("sessions/{REPORT}/artifacts/new.md"), "new");
        place
            .run(["relay", "sync"])
            .expect(1)
            .says(&["can not be written"]);
        remount("rw");
        sync(&place);
    }
}

/// A text that stands somewhere in the trash of the home.
fn is_in_trash(place: &Place, text: &str) -> bool {
    let names = place.names(".wbhome/trash").into_iter();
    let mut files = names.filter(|name| !name.ends_with('/'));
    files.any(|name| {
        let path = place.home().join(".wbhome/trash").join(name);
        std::fs::read_to_string(path).is_ok_and(|found| found == text)
    })
}

#[test]
fn ours_keeps_what_makes_way_whatever_it_is() {
    for to in MODES {
        let place = place("clone");
        sync(&place);
        place.put(format!("relay/{CRAWLER}/artifacts/theirs.md"), "their work");
        place.ok(["relay", "init", "relay", "--mode", to, "-q"]);
        hold_lease(&place, CRAWLER);
        place.ok(["relay", "sync", "--ours", CRAWLER]);
        assert!(is_in_trash(&place, "their work"), "{to}");
        assert!(
            !relay(&place)
                .join(CRAWLER)
                .join("artifacts/theirs.md")
                .exists()
        );
    }
    // Something that is no session at all, and something that nothing can be kept of.
    for what in ["link", "file", "fifo"] {
        let place = place("clone");
        sync(&place);
        let there = relay(&place).join(CRAWLER);
        if what != "fifo" {
            std::fs::rename(&there, place.path("aside")).unwrap();
        }
        match what {
            "link" => symlink("/etc", &there).unwrap(),
            "file" => std::fs::write(&there, "a file").unwrap(),
            _ => {
                let fifo = there.join("artifacts/p");
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(fifo)
                        .status()
                        .unwrap()
                        .success()
                );
                place.put(format!("relay/{CRAWLER}/artifacts/theirs.md"), "their work");
            }
        }
        place.run(["relay", "sync"]).expect(3).says(&["--ours"]);
        hold_lease(&place, CRAWLER);
        place.ok(["relay", "sync", "--ours", CRAWLER]);
        let here = place.home().join("sessions").join(CRAWLER);
        if what == "fifo" {
            assert!(is_in_trash(&place, "their work"));
            assert!(
                there.join("artifacts/p").exists(),
                "nobody has put it there"
            );
        } else {
            assert_eq!(content(&there), content(&here), "{what}");
        }
    }
}

#[test]
fn a_conversion_takes_nothing_that_is_not_ours() {
    for from in ["clone", "hardlink"] {
        let place = place(from);
        sync(&place);
        place.put(format!("relay/{CRAWLER}/logs/theirs.log"), "theirs");
        place.put(
            format!("relay/{REPORT}/artifacts/.DS_Store"),
            "of a file manager",
        );
        place.ok(["label", OTHER, "--sync-tag", "x"]);
        sync(&place);
        let temporary = format!("relay/{OTHER}/artifacts/.wbhome-tmp-0123456789abcdef");
        place.put(&temporary, "of another device");
        place.ok(["relay", "init", "relay", "--mode", "symlink", "-q"]);
        place.run(["relay", "sync"]).expect(3).says(&[
            "logs/theirs.log: added there",
            &format!("relay fetch {CRAWLER} --to DIR"),
            &format!("what lies in the relay's {OTHER} under a temporary name"),
            &format!("relay sync --ours {OTHER} puts it into the trash"),
        ]);
        assert_eq!(
            place.text(format!("relay/{CRAWLER}/logs/theirs.log")),
            "theirs"
        );
        assert!(std::fs::read_link(relay(&place).join(REPORT)).is_ok());
        assert_eq!(place.text(&temporary), "of another device");
    }
    // A session that leaves takes along what a file manager has left in its folders.
    let place = place("clone");
    sync(&place);
    place.put(format!("relay/{CRAWLER}/artifacts/sub/.DS_Store"), "x");
    place.ok(["label", CRAWLER, "--no-sync-tag"]);
    sync(&place);
    exactly(&place, "clone", &[REPORT]);
}

#[test]
fn what_may_be_the_last_copy_does_not_leave() {
    let last = |place: &Place| relay(place).join(CRAWLER).join("session.json").exists();
    let session = |place: &Place| place.home().join("sessions").join(CRAWLER);
    // A copy of it has the same identity, and is not it.
    let one = place("clone");
    sync(&one);
    let copy = one.home().join("sessions/20240607_copy");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(session(&one))
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    one.put_home(
        &format!("sessions/{CRAWLER}/artifacts/new.md"),
        "a week of work",
    );
    sync(&one);
    std::fs::remove_dir_all(session(&one)).unwrap();
    std::fs::remove_file(one.home().join("index.json")).unwrap();
    one.run(["index", "-q"]);
    one.ok(["label", REPORT, "--sync-tag", "x"]);
    one.run(["relay", "sync"]).expect(3).says(&["missing here"]);
    assert!(last(&one));
    // Gone, and then its tag was taken away.
    let two = place("clone");
    sync(&two);
    std::fs::remove_dir_all(session(&two)).unwrap();
    two.run(["label", CRAWLER, "--no-sync-tag"]);
    two.run(["relay", "sync"]).expect(3).says(&["missing here"]);
    assert!(last(&two));
    // Removed when it was gone: the trash gets what the relay has.
    two.run(["index", "-q"]);
    two.run(["rm", CRAWLER, "-y"]);
    let turn = two.text(format!("relay/{CRAWLER}/context/turn_001.json"));
    sync(&two);
    assert!(!last(&two) && is_in_trash(&two, &turn));
    // Emptied, and then untagged, archived or renamed.
    for how in [
        &["label", CRAWLER, "--no-sync-tag"][..],
        &["archive", CRAWLER],
    ] {
        let three = place("clone");
        sync(&three);
        let turn = three.text(format!("relay/{CRAWLER}/context/turn_001.json"));
        for entry in walkdir::WalkDir::new(session(&three))
            .into_iter()
            .map(Result::unwrap)
        {
            if entry.file_type().is_file() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        three.ok(how);
        three
            .run(["relay", "sync"])
            .expect(3)
            .says(&["emptied here"]);
        assert!(last(&three), "{how:?}");
        if how[0] == "label" {
            three.ok(["label", CRAWLER, "--sync-tag", "x"]);
            hold_lease(&three, CRAWLER);
            three.ok(["relay", "sync", "--ours", CRAWLER]);
            assert!(is_in_trash(&three, &turn));
        }
    }
    // Emptied and renamed; and removed when an older act of the trash has the session, too.
    let five = place("clone");
    sync(&five);
    let empty = |place: &Place| {
        for entry in walkdir::WalkDir::new(session(place))
            .into_iter()
            .map(Result::unwrap)
        {
            if entry.file_type().is_file() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    };
    let aside = five.path("aside");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(session(&five))
            .arg(&aside)
            .status()
            .unwrap()
            .success()
    );
    empty(&five);
    five.ok(["mv", CRAWLER, "20240603_neu"]);
    five.run(["relay", "sync"]).expect(3);
    assert!(last(&five));
    let six = place("clone");
    sync(&six);
    six.ok(["rm", CRAWLER, "-y"]);
    sync(&six);
    six.ok(["restore", CRAWLER, "--from", "trash"]);
    six.put_home(&format!("sessions/{CRAWLER}/memory/later"), "later work");
    sync(&six);
    empty(&six);
    six.ok(["rm", CRAWLER, "-y"]);
    sync(&six);
    assert!(!last(&six) && is_in_trash(&six, "later work"));
    // An index that was made anew knows no tags.
    let four = place("clone");
    sync(&four);
    std::fs::remove_file(four.home().join("index.json")).unwrap();
    four.run(["index", "-q"]);
    four.run(["relay", "sync"]).expect(1).says(&[
        "no session carries a sync tag any more, so 2 sessions",
        "--yes",
    ]);
    four.run(["nightly"]).expect(1);
    assert!(last(&four));
    four.ok(["relay", "sync", "-y"]);
    exactly(&four, "clone", &[]);
    // Also when only one session travels.
    let seven = place("clone");
    seven.ok(["label", REPORT, "--no-sync-tag"]);
    sync(&seven);
    std::fs::remove_file(seven.home().join("index.json")).unwrap();
    seven.run(["index", "-q"]);
    seven.run(["relay", "sync"]).expect(1).says(&["--yes"]);
    assert!(last(&seven));
}

/// A session under another name is the same, whatever was done with it since; another one is not.
#[test]
fn what_was_renamed_leaves_under_its_former_name() {
    let neu = "20240603_neu";
    let ways: [&[&[&str]]; 5] = [
        &[&["archive", CRAWLER], &["mv", CRAWLER, neu]],
        &[&["mv", CRAWLER, neu], &["archive", neu]],
        &[&["mv", CRAWLER, neu], &["rm", neu, "-y"]],
        &[
            &["mv", CRAWLER, neu],
            &["archive", neu],
            &["unarchive", neu],
        ],
        &[
            &["archive", CRAWLER],
            &["unarchive", CRAWLER],
            &["mv", CRAWLER, neu],
        ],
    ];
    for way in ways {
        let place = place("clone");
        sync(&place);
        for command in way {
            place.ok(*command);
        }
        sync(&place);
        let stays = std::path::Path::new(&relay(&place)).join(neu).exists();
        let active = place.home().join("sessions").join(neu).exists();
        assert_eq!(stays, active, "{way:?}");
        assert!(!relay(&place).join(CRAWLER).exists(), "{way:?}");
    }
    // Written to through the link, and then renamed.
    let place = place("hardlink");
    sync(&place);
    place.put_home(
        &format!("sessions/{CRAWLER}/context/turn_001.json"),
        "the last word",
    );
    place.ok(["mv", CRAWLER, neu]);
    sync(&place);
    exactly(&place, "hardlink", &[neu, REPORT]);
}

#[test]
fn two_hard_links_of_one_file_hide_nothing() {
    let place = place("hardlink");
    let artifacts = place.home().join(format!("sessions/{CRAWLER}/artifacts"));
    std::fs::write(artifacts.join("a.md"), "one").unwrap();
    std::fs::hard_link(artifacts.join("a.md"), artifacts.join("b.md")).unwrap();
    sync(&place);
    for name in ["a.md", "b.md"] {
        std::fs::write(artifacts.join(".n"), "saved anew").unwrap();
        std::fs::rename(artifacts.join(".n"), artifacts.join(name)).unwrap();
    }
    place.put(format!("relay/{CRAWLER}/artifacts/a.md"), "their work");
    place
        .run(["relay", "sync"])
        .expect(3)
        .says(&["changed there"]);
    assert_eq!(
        place.text(format!("relay/{CRAWLER}/artifacts/a.md")),
        "their work"
    );
}

#[test]
fn a_filesystem_with_whole_seconds_hides_no_change() {
    let place = place("clone");
    if !is_root() || !has_tool("mkfs.ext4") || !has_tool("mount") {
        return;
    }
    // Inodes of 128 bytes have no room for more than seconds.
    let (image, at) = (place.path("image"), place.path("old"));
    std::fs::File::create(&image)
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    std::fs::create_dir(&at).unwrap();
    let run = |tool: &str, args: &[&str]| {
        std::process::Command::new(tool)
            .args(args)
            .output()
            .unwrap()
            .status
            .success()
    };
    let (image, mounted) = (image.to_str().unwrap(), at.to_str().unwrap());
    if !run("mkfs.ext4", &["-q", "-I", "128", image])
        || !run("mount", &["-o", "loop", image, mounted])
    {
        eprintln!("SKIPPED: no such filesystem can be mounted here");
        return;
    }
    struct Unmount(String);
    impl Drop for Unmount {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount")
                .args(["-l", &self.0])
                .status();
        }
    }
    let _unmount = Unmount(mounted.to_owned());
    let dir = at.join("relay");
    place.ok([
        "relay",
        "init",
        dir.to_str().unwrap(),
        "--mode",
        "clone",
        "-q",
    ]);
    let (here, there) = (
        place.home().join(format!("sessions/{CRAWLER}/memory/f")),
        dir.join(CRAWLER).join("memory/f"),
    );
    // In one second: written, sent, and changed there to as many other bytes.
    for n in 0..40 {
        std::fs::write(&here, format!("ours {n:03}")).unwrap();
        sync(&place);
        let sent = std::fs::metadata(&there).unwrap().mtime();
        std::fs::write(&there, format!("them {n:03}")).unwrap();
        if std::fs::metadata(&there).unwrap().mtime() == sent {
            place
                .run(["relay", "sync"])
                .expect(3)
                .says(&["memory/f: changed there"]);
            return;
        }
        std::fs::write(&there, format!("ours {n:03}")).unwrap();
    }
    panic!("never within one second");
}

#[test]
fn what_was_found_under_warn_is_found_under_refuse() {
    let place = place("clone");
    let secret = "ghp_".to_owned() + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO2qV0hB";
    let config = place.home_text("wbhome.toml");
    place.put_home(
        "wbhome.toml",
        config.replace("on_find = \"refuse\"", "on_find = \"warn\""),
    );
    place.put_home(&format!("sessions/{CRAWLER}/artifacts/k.txt"), &secret);
    place.run(["relay", "sync"]).expect(0).says(&["k.txt:1"]);
    place.put_home("wbhome.toml", &config);
    place.put_home(&format!("sessions/{CRAWLER}/memory/other"), "x");
    place.run(["relay", "sync"]).expect(3).says(&["k.txt:1"]);
    std::fs::remove_file(
        place
            .home()
            .join(format!("sessions/{CRAWLER}/artifacts/k.txt")),
    )
    .unwrap();
    sync(&place);

    // In its own name, its tag, a bad name, the name of what stays here, and what somebody else has added.
    let named = format!("20240608_{secret}");
    place.session(&named, 8);
    place.ok(["index", "-q"]);
    place.ok(["label", &named, "--sync-tag", "x"]);
    place.ok(["label", REPORT, "--sync-tag", &secret]);
    place.put_home(&format!("sessions/{CRAWLER}/artifacts/{secret}:x"), "x");
    let fifo = place
        .home()
        .join(format!("sessions/{CRAWLER}/artifacts/{secret}-p"));
    assert!(
        std::process::Command::new("mkfifo")
            .arg(fifo)
            .status()
            .unwrap()
            .success()
    );
    place.put(format!("relay/{CRAWLER}/{secret}"), "theirs");
    for args in [
        &["relay", "sync"][..],
        &["relay", "sync", "-v", "--json"],
        &["relay", "sync", "-n"],
        &["relay", "status", "-v"],
        &["relay", "status", "--json"],
    ] {
        let ran = place.run(args);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        // The id of a session is told by its owner's own commands; what is told of it here is not.
        let shown = all.matches(&secret[..12]).count();
        assert_eq!(shown, 0, "{args:?}: {all}");
    }
    place
        .run(["relay", "sync"])
        .expect(3)
        .says(&["its name, or its sync tag"]);
    assert!(!relay(&place).join(&named).exists());
    let said = std::fs::read_dir(relay(&place).join(".leases"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert!(
        !std::fs::read_to_string(said.path())
            .unwrap()
            .contains(&secret)
    );
}

#[test]
fn empty_folders_that_others_have_made_stay() {
    let place = place("clone");
    sync(&place);
    let theirs = relay(&place).join(CRAWLER).join("artifacts/theirs");
    std::fs::create_dir(&theirs).unwrap();
    place.put_home(&format!("sessions/{CRAWLER}/memory/m"), "x");
    sync(&place);
    assert!(theirs.exists() && relay(&place).join(CRAWLER).join("memory/m").exists());
    // One with logs alone has nothing to send, and is there all the same.
    for name in ["session.json", "context/turn_001.json"] {
        std::fs::remove_file(place.home().join(format!("sessions/{OTHER}/{name}"))).unwrap();
    }
    std::fs::remove_dir_all(place.home().join(format!("sessions/{OTHER}/artifacts"))).unwrap();
    std::fs::remove_dir_all(place.home().join(format!("sessions/{OTHER}/context"))).unwrap();
    std::fs::remove_dir_all(place.home().join(format!("sessions/{OTHER}/memory"))).unwrap();
    place.ok(["label", OTHER, "--sync-tag", "x"]);
    sync(&place);
    let told = place.json(["relay", "sync"]);
    assert_eq!(told["sessions"][2]["state"], "same", "{told:#}");
}

/// What one session can not be done with says nothing of the others, however long that lasts.
#[test]
fn a_session_that_fails_for_weeks_makes_no_old_content_ours() {
    let place = place("clone");
    if !is_root() || !has_tool("chattr") {
        return;
    }
    sync(&place);
    let folder = relay(&place).join(CRAWLER).join("artifacts");
    let chattr = |how: &str| {
        std::process::Command::new("chattr")
            .arg(how)
            .arg(&folder)
            .status()
            .unwrap()
            .success()
    };
    if !chattr("+i") {
        eprintln!("SKIPPED: no immutable folders here");
        return;
    }
    place.put_home(&format!("sessions/{CRAWLER}/artifacts/new"), "x");
    let file = format!("sessions/{REPORT}/memory/f");
    for n in ["v1", "v2", "v3"] {
        place.put_home(&file, n);
        place
            .run(["relay", "sync"])
            .expect(3)
            .says(&["artifacts/new"]);
    }
    place.put(format!("relay/{REPORT}/memory/f"), "v2");
    let ran = place.run(["relay", "sync"]);
    chattr("-i");
    ran.says(&["memory/f: changed there"]);
    assert_eq!(place.text(format!("relay/{REPORT}/memory/f")), "v2");
}

/// The relay holds more than the trash, in an older version, when a session is removed: its version is kept, too. What
/// comes back is what was removed.
#[test]
fn what_is_restored_is_the_session_and_not_the_version_of_the_relay() {
    let place = place("clone");
    place.put_home(&format!("sessions/{CRAWLER}/artifacts/旧"), "old");
    place.ok(["relay", "sync", "-q"]);
    std::fs::remove_file(
        place
            .home()
            .join(format!("sessions/{CRAWLER}/artifacts/旧")),
    )
    .unwrap();
    place.put_home(&format!("sessions/{CRAWLER}/memory/later"), "later work");
    place.put_home(&format!("sessions/{CRAWLER}/logs/run.log"), "一行\n");
    let before = tree(&place.home().join("sessions").join(CRAWLER));
    place.ok(["rm", CRAWLER, "-y", "-q"]);
    place.ok(["relay", "sync", "--yes", "-q"]);
    assert_eq!(place.acts().len(), 2);
    place.ok(["restore", CRAWLER, "--from", "trash", "-q"]);
    let after = tree(&place.home().join("sessions").join(CRAWLER));
    assert_eq!(support::differences(&before, &after), "");
    assert!(is_in_trash(&place, "old"));
}
