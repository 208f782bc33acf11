//! `wbhome check --repair` and `--empty-trash`: what can not lose anything, taken back as one, and nothing more.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};

use insta::assert_snapshot;
use support::{Place, differences};

const CRAWLER: &str = "sessions/20240603_crawler";
const DATA: &str = "sessions/20240604_数据清洗";

/// How eight clients call the second version of `周报.md`.
const MARKS: [&str; 8] = [
    "周报 (Mei's conflicted copy 2024-06-11).md",
    "周报-LAPTOP7.md",
    "周报 (1).md",
    "周报 2.md",
    "周报.sync-conflict-20240611-101112-ABCDEF2.md",
    "周报 (SFConflict mei@example.org 2024-06-11-10-11-12).md",
    "周报(MEI的冲突副本1_2024-06-11 10-11-12).md",
    "周报-NSConflict.md",
];

fn chmod(place: &Place, rel: &str, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.home().join(rel), mode).unwrap();
}

/// Everything that can be put right, in one home; and what can not.
fn damaged() -> Place {
    let place = Place::with_sessions();
    place.put_home(&format!("{DATA}/memory/周报.md"), "一\n二\n三\n");
    for (n, mark) in MARKS.iter().enumerate() {
        let content = if n % 2 == 0 {
            "一\n二\n三\n"
        } else {
            "一\n二\n"
        };
        place.put_home(&format!("{DATA}/memory/{mark}"), content);
    }
    // The copy of this log is the longer one, and this one differs.
    place.put_home(&format!("{DATA}/logs/run.log"), "1\n2\n");
    place.put_home(&format!("{DATA}/logs/run (1).log"), "1\n2\n3\n");
    place.put_home(&format!("{DATA}/artifacts/表.csv"), "a,b\n");
    place.put_home(&format!("{DATA}/artifacts/表 (1).csv"), "b,a\n");
    // A copy of a copy, a link, and a folder that holds less.
    place.put_home(&format!("{CRAWLER}/artifacts/a.md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/a (1).md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/a (1) (1).md"), "a");
    let artifacts = place.home().join(CRAWLER).join("artifacts");
    symlink("a.md", artifacts.join("latest.md")).unwrap();
    symlink("a.md", artifacts.join("latest (1).md")).unwrap();
    place.put_home(&format!("{CRAWLER}/artifacts/图/1.svg"), "<svg/>");
    place.put_home(&format!("{CRAWLER}/artifacts/图/2.svg"), "<svg></svg>");
    place.put_home(&format!("{CRAWLER}/artifacts/图(1)/1.svg"), "<svg/>");
    chmod(&place, &format!("{CRAWLER}/artifacts/a (1).md"), 0o600);
    // The second version of a session has a turn and a folder that the session lacks; the index knows it.
    let twin = "sessions/20240605_api_refactor(1)";
    place.session("20240605_api_refactor(1)", 5);
    std::fs::remove_file(place.home().join(twin).join("session.json")).unwrap();
    std::fs::copy(
        place
            .home()
            .join("sessions/20240605_api_refactor/session.json"),
        place.home().join(twin).join("session.json"),
    )
    .unwrap();
    std::fs::copy(
        place
            .home()
            .join("sessions/20240605_api_refactor/context/turn_001.json"),
        place.home().join(twin).join("context/turn_001.json"),
    )
    .unwrap();
    place.put_home(&format!("{twin}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twin}/artifacts/深/层/图.svg"), "<svg>深</svg>");
    chmod(&place, &format!("{twin}/context/turn_002.json"), 0o640);
    place.date("20240605_api_refactor(1)", 5);
    place.ok(["index", "-q"]);
    place.ok([
        "label",
        "20240605_api_refactor(1)",
        "--project",
        "alpha",
        "-q",
    ]);
    // A session that the index does not know, and a home that is open.
    place.session("20240606_by_hand", 6);
    for (id, day) in [("20240603_crawler", 3), ("20240604_数据清洗", 4)] {
        place.date(id, day);
    }
    chmod(&place, "", 0o755);
    place
}

#[test]
fn what_can_not_lose_anything_is_put_right() {
    let place = damaged();
    let (files, index, contents) = (
        place.files(),
        place.home_text("index.json"),
        place.contents(),
    );
    let planned = place.run(["check", "--repair", "--fill", "-n", "-v"]);
    planned.expect(4);
    assert_eq!(differences(&files, &place.files()), "");
    let ran = place.run(["check", "--repair", "--fill", "-v"]);
    let told: Vec<&str> = ran
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    let meant: Vec<&str> = planned
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(told, meant, "what is done is what was planned");
    assert_snapshot!(ran.shown(&place), @r"
    exit: 4
    --- stdout
      put away     13   sessions/20240603_crawler/artifacts/a (1) (1).md is the same as a (1).md
                        sessions/20240603_crawler/artifacts/图(1) holds 1 file, all of them in 图 too, which has more
                        sessions/20240605_api_refactor(1) held more than 20240605_api_refactor, which has it all now
                        sessions/20240603_crawler/artifacts/a (1).md is the same as a.md
                        sessions/20240603_crawler/artifacts/latest (1).md is the same as latest.md
                        sessions/20240604_数据清洗/memory/周报 (1).md is the same as 周报.md
                        sessions/20240604_数据清洗/memory/周报 (Mei's conflicted copy 2024-06-11).md is the same as 周报.md
                        sessions/20240604_数据清洗/memory/周报 (SFConflict mei@example.org 2024-06-11-10-11-12).md is a shorter beginning of 周报.md
                        sessions/20240604_数据清洗/memory/周报 2.md is a shorter beginning of 周报.md
                        sessions/20240604_数据清洗/memory/周报(MEI的冲突副本1_2024-06-11 10-11-12).md is the same as 周报.md
                        sessions/20240604_数据清洗/memory/周报-LAPTOP7.md is a shorter beginning of 周报.md
                        sessions/20240604_数据清洗/memory/周报-NSConflict.md is a shorter beginning of 周报.md
                        sessions/20240604_数据清洗/memory/周报.sync-conflict-20240611-101112-ABCDEF2.md is the same as 周报.md
      filled in     2   sessions/20240605_api_refactor/artifacts/深/层/图.svg was only in the second version
                        sessions/20240605_api_refactor/context/turn_002.json was only in the second version
      tightened     1   . mode 0755 → 0700
      index         1   made to agree with the disk: 1 added

    Left for you
      sessions/20240604_数据清洗/artifacts/表 (1).csv   differs from 表.csv, and is of the same time
      sessions/20240604_数据清洗/artifacts/表.csv
      sessions/20240604_数据清洗/logs/run (1).log   goes on where run.log ends
      sessions/20240604_数据清洗/logs/run.log

    To take it back: wbhome restore 20240615T120000Z --from trash

    2 problems left.  See them: wbhome check
    --- stderr
    ");
    place.nothing_lost(&contents);

    // All that is gone is gone from the files; all that stays is as it was.
    let now = place.files();
    for mark in MARKS {
        assert!(
            !place.home().join(DATA).join("memory").join(mark).exists(),
            "{mark}"
        );
    }
    assert!(
        !place
            .home()
            .join("sessions/20240605_api_refactor(1)")
            .exists()
    );
    assert!(!place.home().join(CRAWLER).join("artifacts/图(1)").exists());
    let kept = now.iter().filter(|(name, _)| files.contains_key(*name));
    for (name, entry) in kept {
        assert_eq!(
            Some(entry),
            files.get(name),
            "{}",
            String::from_utf8_lossy(name)
        );
    }
    // What was filled in is as it was there: content, mode, time.
    let pair = |rel: &str| {
        let at = |base: &str| format!("{base}/{rel}").into_bytes();
        let there = now[&at("sessions/20240605_api_refactor")].clone();
        (
            there,
            files[&at("sessions/20240605_api_refactor(1)")].clone(),
        )
    };
    for rel in ["context/turn_002.json", "artifacts/深/层/图.svg"] {
        let (filled, twin) = pair(rel);
        assert_eq!(filled, twin, "{rel}");
    }
    assert_eq!(place.mode("me/workbuddy_home"), 0o700);
    let index_now = place.index();
    let status = |id: &str| {
        let entries = index_now.as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["id"] == id).unwrap();
        entry["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status("20240605_api_refactor(1)"), "removed");
    assert_eq!(status("20240606_by_hand"), "active");
    assert!(
        !place
            .home()
            .join("projects/alpha/20240605_api_refactor(1)")
            .exists()
    );

    // A second run has nothing more to do.
    let again = place.run(["check", "--repair", "--fill"]);
    assert_eq!(again.code, Some(4));
    assert!(
        again.stdout.starts_with("Nothing to repair.\n"),
        "{again:?}"
    );
    assert_eq!(place.acts().len(), 1);
    assert_eq!(differences(&now, &place.files()), "");

    // And all of it is taken back.
    place.ok(["restore", "20240615T120000Z", "--from", "trash", "-q"]);
    assert_eq!(differences(&files, &place.files()), "");
    assert_eq!(place.home_text("index.json"), index);
    assert_eq!(place.mode("me/workbuddy_home"), 0o755);
    assert!(
        !place
            .home()
            .join("sessions/20240605_api_refactor/artifacts/深")
            .exists()
    );
    assert!(
        place
            .home()
            .join("projects/alpha/20240605_api_refactor(1)")
            .exists()
    );
    place.nothing_lost(&contents);
}

#[test]
fn without_fill_the_twin_of_a_session_stays() {
    let place = damaged();
    let twin = place
        .home()
        .join("sessions/20240605_api_refactor(1)/context/turn_002.json");
    let done = place.json(["check", "--repair"]);
    assert!(twin.exists());
    let left = done["left"].as_array().unwrap();
    assert!(
        left.iter()
            .any(|l| l["path"] == "sessions/20240605_api_refactor(1)"),
        "{left:?}"
    );
}

#[test]
fn the_longer_copy_of_a_log_stays_and_is_named() {
    let place = Place::with_sessions();
    place.put_home(&format!("{DATA}/logs/run.log"), "1\n2\n");
    place.put_home(&format!("{DATA}/logs/run (1).log"), "1\n2\n3\n");
    let before = place.files();
    let ran = place.run(["check", "--repair"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 4
    --- stdout
    Nothing to repair.

    Left for you
      sessions/20240604_数据清洗/logs/run (1).log   goes on where run.log ends
      sessions/20240604_数据清洗/logs/run.log

    1 problem left.  See them: wbhome check
    --- stderr
    ");
    assert_eq!(differences(&before, &place.files()), "");
    assert_eq!(place.acts(), [""; 0]);
}

#[test]
fn a_whole_beginning_of_a_damaged_original_stays() {
    let place = Place::with_sessions();
    let turn = "{\"turn\": 2}\n";
    place.put_home(&format!("{CRAWLER}/context/turn_002 (1).json"), turn);
    place.put_home(
        &format!("{CRAWLER}/context/turn_002.json"),
        format!("{turn}{{\"tu"),
    );
    let before = place.files();
    let done = place.json(["check", "--repair"]);
    assert_eq!(
        done["left"][0]["why"],
        "it is whole, and turn_002.json is damaged"
    );
    assert_eq!(differences(&before, &place.files()), "");
}

#[test]
fn what_is_in_use_is_left_alone_and_named() {
    let place = damaged();
    place.agent_in(DATA);
    let log = place.home().join(CRAWLER).join("artifacts/a (1).md");
    let _open = std::fs::File::options().append(true).open(&log).unwrap();
    let done = place.json(["check", "--repair", "--fill"]);
    for mark in MARKS {
        assert!(
            place.home().join(DATA).join("memory").join(mark).exists(),
            "{mark}"
        );
    }
    assert!(log.exists(), "{done}");
    let why: Vec<&str> = done["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["why"].as_str().unwrap())
        .collect();
    assert!(
        why.iter().any(|w| w.contains("is at work in it")),
        "{why:?}"
    );
    assert!(
        why.iter().any(|w| w.contains("open for writing")),
        "{why:?}"
    );
    assert!(
        !place
            .home()
            .join("sessions/20240605_api_refactor(1)")
            .exists(),
        "the rest is done"
    );
}

#[test]
fn files_that_differ_or_would_collide_keep_the_twin_where_it_is() {
    let place = Place::with_sessions();
    let twin = "sessions/20240603_crawler(1)";
    place.put_home(
        &format!("{twin}/context/turn_001.json"),
        "{\"turn\": 1, \"text\": \"他\"}\n",
    );
    place.put_home(&format!("{twin}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twin}/memory/notes.md"), "他的");
    place.put_home(&format!("{CRAWLER}/memory/Notes.md"), "我的");
    place.put_home(&format!("{twin}/Memory/more.md"), "大写");
    place.put_home(&format!("{twin}/artifacts/node_modules/x/index.js"), "1");
    place.ok(["index", "-q"]);
    let (before, contents) = (place.files(), place.contents());
    let done = place.json(["check", "--repair", "--fill"]);
    let named = |list: &str| -> Vec<String> {
        let list = done[list].as_array().unwrap().iter();
        list.map(|item| item["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        named("mended"),
        [format!("{CRAWLER}/context/turn_002.json")]
    );
    assert_eq!(
        named("left"),
        [
            format!("{twin}/Memory"),
            format!("{twin}/artifacts/node_modules/x/index.js"),
            format!("{twin}/context/turn_001.json"),
            format!("{twin}/memory/notes.md"),
        ]
    );
    let now = place.files();
    assert!(
        before
            .iter()
            .all(|(name, entry)| now.get(name) == Some(entry))
    );
    assert_eq!(now.len(), before.len() + 1);
    place.nothing_lost(&contents);
    let again = place.json(["check", "--repair", "--fill"]);
    assert_eq!(again["mended"].as_array().unwrap().len(), 0);
    place.ok(["restore", &place.acts()[0], "--from", "trash"]);
    assert_eq!(differences(&before, &place.files()), "");
}

/// Of two names of one file, the second may go: the first is the file.
#[test]
fn a_hard_link_is_the_same() {
    let place = Place::with_sessions();
    let artifacts = place.home().join(CRAWLER).join("artifacts");
    place.put_home(&format!("{CRAWLER}/artifacts/a.md"), "a");
    std::fs::hard_link(artifacts.join("a.md"), artifacts.join("a (1).md")).unwrap();
    let before = place.files();
    place.ok(["check", "--repair", "-q"]);
    assert!(!artifacts.join("a (1).md").exists() && artifacts.join("a.md").exists());
    place.ok(["restore", &place.acts()[0], "--from", "trash"]);
    assert_eq!(
        differences(&before, &place.files()),
        "",
        "still two names of one file"
    );
}

#[test]
fn links_into_the_old_place_are_pointed_into_the_home() {
    let place = Place::new();
    place.put("drive/sessions/20240603_数据/context/turn_001.json", "{}");
    place.put("drive/sessions/20240603_数据/session.json", "{}");
    place.ok([
        "migrate",
        "drive",
        "me/workbuddy_home",
        "--no-state",
        "-y",
        "-q",
    ]);
    let old = place.path("drive");
    let artifacts = place.home().join("sessions/20240603_数据/artifacts");
    std::fs::create_dir_all(&artifacts).unwrap();
    symlink(
        old.join("sessions/20240603_数据/context/turn_001.json"),
        artifacts.join("last"),
    )
    .unwrap();
    symlink(old.join("sessions/gone"), artifacts.join("gone")).unwrap();
    symlink("/etc/hosts", artifacts.join("hosts")).unwrap();
    place.date("20240603_数据", 3);
    let before = place.files();
    let done = place.json(["check", "--repair"]);
    assert_eq!(done["mended"].as_array().unwrap().len(), 1, "{done}");
    let target = place
        .home()
        .join("sessions/20240603_数据/context/turn_001.json");
    assert_eq!(std::fs::read_link(artifacts.join("last")).unwrap(), target);
    let (now, last) = (
        place.files(),
        "sessions/20240603_数据/artifacts/last".as_bytes(),
    );
    assert_eq!(now[last].mtime, before[last].mtime);
    assert_eq!(
        std::fs::read_link(artifacts.join("gone")).unwrap(),
        old.join("sessions/gone")
    );
    let act = place.acts().pop().unwrap();
    place.ok(["restore", &act, "--from", "trash"]);
    assert_eq!(differences(&before, &place.files()), "");
}

#[test]
fn a_broken_index_hinders_only_what_needs_it() {
    let place = damaged();
    place.put_home("index.json", "[{");
    let ran = place.run(["check", "--repair", "--fill", "--json"]);
    assert_eq!(ran.code, Some(4));
    let done = ran.json();
    assert!(done["index"].is_null());
    assert_eq!(place.home_text("index.json"), "[{");
    assert!(
        place
            .home()
            .join("sessions/20240605_api_refactor(1)")
            .exists()
    );
    assert!(
        !place
            .home()
            .join(DATA)
            .join("memory")
            .join(MARKS[0])
            .exists()
    );
}

#[test]
fn chosen_sessions_alone_are_repaired() {
    let place = damaged();
    let index = place.home_text("index.json");
    place.run(["check", "--repair", "crawler", "-q"]);
    assert!(
        !place
            .home()
            .join(CRAWLER)
            .join("artifacts/a (1).md")
            .exists()
    );
    assert!(
        place
            .home()
            .join(DATA)
            .join("memory")
            .join(MARKS[0])
            .exists()
    );
    assert_eq!(place.home_text("index.json"), index);
    assert_eq!(place.mode("me/workbuddy_home"), 0o755);
    // By its own name, which is gone afterwards.
    let ran = place.run(["check", "--repair", "--fill", "20240605_api_refactor(1)"]);
    assert_ne!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_home_that_was_merely_found_is_not_changed() {
    let place = damaged();
    std::fs::rename(place.home(), place.path("found")).unwrap();
    place
        .run_in("found/sessions", &["check", "--repair"])
        .expect(1)
        .says(&["name it: --home"]);
}

#[test]
fn what_the_system_refuses_is_told_and_blocks_nobody() {
    if rustix::process::geteuid().is_root() && !support::has_tool("chattr") {
        return;
    }
    let place = Place::with_sessions();
    place.put_home(&format!("{CRAWLER}/artifacts/a.md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/a (1).md"), "a");
    place.put_home(&format!("{DATA}/artifacts/a.md"), "a");
    place.put_home(&format!("{DATA}/artifacts/a (1).md"), "a");
    let folder = place.home().join(CRAWLER).join("artifacts");
    let shut = |flag: &str, mode: u32| {
        let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode));
        let done = std::process::Command::new("chattr")
            .arg(flag)
            .arg(&folder)
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !shut("+i", 0o500) && rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: this filesystem does not keep root out");
        return;
    }
    let done = place.json(["check", "--repair"]);
    shut("-i", 0o700);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(done["mended"].as_array().unwrap().len(), 1, "{done}");
    assert!(
        done["left"][0]["why"]
            .as_str()
            .unwrap()
            .contains("can not be moved"),
        "{done}"
    );
    assert!(folder.join("a (1).md").exists());
    place.ok(["label", "crawler", "--tag", "x"]);
    // It is done in part, and what could not be done stands first.
    for n in 0..6 {
        place.put_home(&format!("{DATA}/artifacts/b{n}.md"), "b");
        place.put_home(&format!("{DATA}/artifacts/b{n} (1).md"), "c");
    }
    shut("+i", 0o500);
    let ran = place.run(["check", "--repair"]);
    shut("-i", 0o700);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    ran.expect(3);
    let told = ran.stdout.split("Could not be done").nth(1).unwrap();
    assert!(
        told.lines()
            .nth(1)
            .unwrap()
            .contains("artifacts/a (1).md   can not be moved"),
        "{ran:?}"
    );
    place.run(["check", "--repair", "-q"]).expect(4);
}

#[test]
fn the_trash_is_emptied_only_by_asking() {
    let place = Place::with_sessions();
    place.ok(["rm", "crawler", "-q"]);
    place.put_home(
        ".wbhome/trash/20240401T000000Z/note.json",
        r#"{"why": "old", "at": "2024-04-01T00:00:00Z", "was": ["a"]}"#,
    );
    place.put_home(".wbhome/trash/20240401T000000Z/a", "1234");
    symlink(
        "/etc",
        place.home().join(".wbhome/trash/20240401T000000Z/etc"),
    )
    .unwrap();
    assert_snapshot!(place.run(["check", "--empty-trash"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: 4 files, 146 B of the trash would go for good
    hint: --yes removes them without a question; -n shows them
    ");
    assert_snapshot!(place.ok(["check", "--empty-trash", "--older", "30d", "-n"]), @r"
      20240401T000000Z   8 B
    1 act, 2 files, 8 B would go for good.
    1 act is younger, and kept.
    Nothing was changed.
    ");
    // Thirty seconds are not what anybody means.
    for bare in ["30", " 30 ", "0", "30.0"] {
        let ran = place.run(["check", "--empty-trash", "--older", bare, "-y"]);
        ran.expect(2)
            .says(&["write a number and a unit, such as 30d"]);
    }
    place.ok(["ls", "-q", "--lock-wait", "10"]);
    assert_eq!(place.acts().len(), 2);
    place.ok(["check", "--empty-trash", "--older", "30d", "-y"]);
    assert_eq!(place.acts(), ["20240615T120000Z"]);
    assert!(std::path::Path::new("/etc/hosts").exists());
    place.ok(["check", "--empty-trash", "-y"]);
    assert_eq!(place.acts(), [""; 0]);
    assert_eq!(place.ok(["check", "--empty-trash"]), "Nothing to remove.\n");
    for args in [
        &["check", "--empty-trash", "--repair"][..],
        &["check", "--empty-trash", "crawler"],
        &["check", "--older", "30d"],
        &["check", "--fill"],
    ] {
        place.run(args).expect(2);
    }
}

/// One file that can not be read, or a folder that is none, holds up nothing else.
#[test]
fn what_can_not_be_looked_at_is_named_and_the_rest_is_done() {
    let place = Place::with_sessions();
    let twin = "sessions/20240603_crawler(1)";
    place.put_home(&format!("{twin}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twin}/memory/deep/er/notes.md"), "a");
    let memory = place.home().join(CRAWLER).join("memory");
    std::fs::remove_dir(&memory).unwrap();
    symlink("/etc", &memory).unwrap();
    place.put_home(&format!("{DATA}/artifacts/a.md"), "a");
    place.put_home(&format!("{DATA}/artifacts/a (1).md"), "a");
    place.ok(["index", "-q"]);
    let contents = place.contents();
    let planned = place.run(["check", "--repair", "--fill", "-n"]);
    assert!(
        planned
            .stdout
            .ends_with("\nThis would be done. Nothing was changed.\n"),
        "{planned:?}"
    );
    let done = place.json(["check", "--repair", "--fill"]);
    assert_eq!(done["mended"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(done["left"][0]["path"], format!("{twin}/memory"));
    assert!(!place.home().join(DATA).join("artifacts/a (1).md").exists());
    place.home_text(&format!("{CRAWLER}/context/turn_002.json"));
    place.nothing_lost(&contents);
    // Counted anew: ls has nothing to complain of.
    let listed = place.run(["ls"]);
    assert_eq!(listed.stderr, "", "{listed:?}");
}

#[test]
fn a_file_that_can_not_be_read_is_named_and_the_rest_is_filled_in() {
    let root = rustix::process::geteuid().is_root();
    if root && !support::has_tool("setpriv") {
        return;
    }
    let place = Place::with_sessions();
    let twin = "sessions/20240603_crawler(1)";
    place.put_home(&format!("{twin}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twin}/context/turn_003.json"), "{\"turn\": 3}\n");
    place.ok(["index", "-q"]);
    chmod(&place, &format!("{twin}/context/turn_002.json"), 0);
    let run = |args: &[&str]| match root {
        false => place.run(args),
        true => {
            let mut command = std::process::Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(env!("CARGO_BIN_EXE_wbhome")).args(args);
            command.current_dir(place.root()).env_clear();
            command
                .env("HOME", place.user_home())
                .env("WBHOME_NOW", support::NOW);
            support::Ran::of(command.output().unwrap())
        }
    };
    if root {
        for entry in walkdir::WalkDir::new(place.root()) {
            std::os::unix::fs::lchown(entry.unwrap().path(), Some(65534), Some(65534)).unwrap();
        }
        if run(&["--version"]).code != Some(0) {
            eprintln!("SKIPPED: another user can not run the program");
            return;
        }
    }
    run(&["check", "--repair", "--fill", "-n"]).expect(3);
    let ran = run(&["check", "--repair", "--fill"]);
    ran.expect(3);
    let told = ran.stdout.split("Could not be done").nth(1).unwrap();
    assert!(told.contains("turn_002.json"), "{ran:?}");
    assert!(
        place
            .home()
            .join(CRAWLER)
            .join("context/turn_003.json")
            .exists()
    );
    assert!(
        place
            .home()
            .join(twin)
            .join("context/turn_002.json")
            .exists()
    );
}

#[test]
fn only_the_true_session_is_filled_and_a_second_run_finds_nothing_more() {
    let place = Place::with_sessions();
    let (twin, twins) = (
        "sessions/20240603_crawler(1)",
        "sessions/20240603_crawler(1)(1)",
    );
    place.put_home(&format!("{twin}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twins}/context/turn_002.json"), "{\"turn\": 2}\n");
    place.put_home(&format!("{twins}/context/turn_003.json"), "{\"turn\": 3}\n");
    place.put_home(&format!("{DATA}/logs/a.log"), "1\n2\n3\n");
    place.put_home(&format!("{DATA}/logs/a (1).log"), "1\n");
    place.put_home(&format!("{DATA}/logs/a (1) (1).log"), "1\n2\n");
    place.ok(["index", "-q"]);
    let contents = place.contents();
    let done = place.json(["check", "--repair", "--fill"]);
    place.nothing_lost(&contents);
    let mended: Vec<&str> = done["mended"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["path"].as_str().unwrap())
        .collect();
    assert_eq!(mended, [format!("{CRAWLER}/context/turn_002.json")]);
    assert!(
        !place
            .home()
            .join(twin)
            .join("context/turn_003.json")
            .exists()
    );
    let left = |path: &str| {
        let mut left = done["left"].as_array().unwrap().iter();
        left.any(|left| left["path"] == path)
    };
    assert!(
        left(twins) && left(twin) && left(&format!("{DATA}/logs/a (1).log")),
        "{done}"
    );
    let files = place.files();
    let again = place.json(["check", "--repair", "--fill"]);
    assert_eq!(again["mended"].as_array().unwrap().len(), 0, "{again}");
    assert_eq!(differences(&files, &place.files()), "");
}

#[test]
fn an_index_that_is_a_link_hinders_only_what_needs_it() {
    let place = damaged();
    let index = place.home().join("index.json");
    let there = place.path("me/elsewhere.json");
    std::fs::rename(&index, &there).unwrap();
    symlink(&there, &index).unwrap();
    let content = std::fs::read(&there).unwrap();
    let ran = place.run(["check", "--repair", "--fill"]);
    ran.expect(3);
    let told = ran.stdout.split("Could not be done").nth(1).unwrap();
    assert!(
        told.contains("index.json") && told.contains("symbolic link"),
        "{ran:?}"
    );
    assert!(
        !place
            .home()
            .join(DATA)
            .join("memory")
            .join(MARKS[0])
            .exists()
    );
    assert!(
        place
            .home()
            .join("sessions/20240605_api_refactor(1)")
            .exists()
    );
    assert_eq!(std::fs::read(&there).unwrap(), content);
    assert!(place.names(".wbhome/journal").is_empty());
}

#[test]
fn a_repair_is_taken_back_also_after_the_index_was_changed() {
    let place = damaged();
    let (files, contents) = (place.files(), place.contents());
    place.run(["check", "--repair", "--fill", "-q"]).expect(4);
    place.ok(["label", "crawler", "--tag", "later", "-q"]);
    let changed = place.home_text("index.json");
    let act = place.acts().pop().unwrap();
    for args in [
        &["restore", &act, "--from", "trash"][..],
        &["restore", &act, "--from", "trash", "--force"],
    ] {
        let ran = place.run(args);
        match args.len() {
            4 => ran.expect(3),
            _ => ran.expect(1),
        };
        ran.says(&[
            "index.json",
            "was changed since and is left as it is; `wbhome index` makes it agree",
        ]);
    }
    assert_eq!(differences(&files, &place.files()), "");
    place.nothing_lost(&contents);
    let now = place.home_text("index.json");
    assert!(now.contains("later") && changed.contains("later"));
    // The session that came back is no tombstone, whatever became of the index.
    assert!(!now.contains("\"removed\""), "{now}");
}

#[cfg(feature = "failpoints")]
#[test]
fn a_folder_that_was_made_before_a_kill_gets_its_mode() {
    let place = damaged();
    for folder in ["artifacts/深", "artifacts/深/层"] {
        chmod(
            &place,
            &format!("sessions/20240605_api_refactor(1)/{folder}"),
            0o751,
        );
    }
    let env = [("WBHOME_FAILPOINT", "mend.folder-made")];
    assert_eq!(
        place.run_with(&env, &["check", "--repair", "--fill"]).code,
        None
    );
    let told = place.run(["index"]);
    // Counts, and not every path.
    assert!(
        told.stderr.contains("steps more") && told.stderr.len() < 700,
        "{told:?}"
    );
    for folder in ["artifacts/深", "artifacts/深/层"] {
        let folder = format!("me/workbuddy_home/sessions/20240605_api_refactor/{folder}");
        assert_eq!(place.mode(&folder), 0o751, "{folder}");
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_loses_nothing_and_the_next_command_goes_on() {
    for failpoint in [
        "journal.begun",
        "mend.mode-set",
        "mend.copied",
        "mend.put-away",
        "mend.removed",
        "journal.viewed",
        "journal.done",
        "index.before",
        "index.written",
    ] {
        let place = damaged();
        let (files, contents) = (place.files(), place.contents());
        let env = [("WBHOME_FAILPOINT", failpoint)];
        let ran = place.run_with(&env, &["check", "--repair", "--fill"]);
        assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
        place.nothing_lost(&contents);
        let half = place.files();
        // No half copy: each file is one that was there, under its own name or filled in.
        let known: Vec<_> = files.values().collect();
        for (name, entry) in &half {
            let name = String::from_utf8_lossy(name);
            assert!(known.contains(&entry), "{failpoint}: {name}");
        }
        place.ok(["label", "crawler", "--tag", "x", "-q"]);
        place.nothing_lost(&contents);
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        place.run(["check", "--repair", "--fill"]).expect(4);
        place.nothing_lost(&contents);
        let again = place.json(["check", "--repair", "--fill"]);
        assert_eq!(again["mended"].as_array().unwrap().len(), 0, "{failpoint}");
        assert_eq!(
            again["counts"].as_object().unwrap().len(),
            1,
            "{failpoint}: {again}"
        );
        // The newest first; the index was changed by hand in between.
        for act in place.acts().iter().rev() {
            let ran = place.run(["restore", act, "--from", "trash", "--force"]);
            // The index is left as it was changed; all the rest is taken back.
            assert!(matches!(ran.code, Some(0 | 1 | 3)), "{failpoint}: {ran:?}");
        }
        assert_eq!(differences(&files, &place.files()), "", "{failpoint}");
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn a_link_between_two_targets_is_made_by_the_next_command() {
    for failpoint in ["mend.link-kept", "mend.pointed"] {
        let place = Place::new();
        place.put("drive/sessions/20240603_数据/session.json", "{}");
        place.ok([
            "migrate",
            "drive",
            "me/workbuddy_home",
            "--no-state",
            "-y",
            "-q",
        ]);
        let link = place.home().join("sessions/20240603_数据/record");
        symlink(
            place.path("drive/sessions/20240603_数据/session.json"),
            &link,
        )
        .unwrap();
        let env = [("WBHOME_FAILPOINT", failpoint)];
        let ran = place.run_with(&env, &["check", "--repair"]);
        assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
        place.ok(["index", "-q"]);
        let target = place.home().join("sessions/20240603_数据/session.json");
        assert_eq!(std::fs::read_link(&link).unwrap(), target, "{failpoint}");
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn a_trash_that_was_half_emptied_is_cleared() {
    let place = Place::with_sessions();
    place.ok(["rm", "crawler", "-q"]);
    let env = [("WBHOME_FAILPOINT", "trash.emptied")];
    assert_eq!(
        place.run_with(&env, &["check", "--empty-trash", "-y"]).code,
        None
    );
    assert_eq!(place.acts(), [""; 0]);
    place.ok(["index", "-q"]);
    assert!(place.names(".wbhome/tmp").is_empty());
}
