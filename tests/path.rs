//! `wbhome path`: where a session lies, and what may stand for one on every command line.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;
use support::Place;

fn finds(place: &Place, spec: &str) -> String {
    let out = place.ok(["path", spec]);
    let sessions = format!("{}/sessions/", place.home().display());
    out.strip_prefix(&sessions)
        .unwrap()
        .trim_end_matches('\n')
        .to_owned()
}

#[test]
fn an_absolute_path_alone_on_a_line() {
    let place = Place::with_sessions();
    assert_snapshot!(place.run(["path", "20240603_crawler"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/me/workbuddy_home/sessions/20240603_crawler
    --- stderr
    ");
    assert_snapshot!(place.run(["path", "20240603_crawler", "-q"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/me/workbuddy_home/sessions/20240603_crawler
    --- stderr
    ");
}

#[test]
fn exact_then_prefix_then_part() {
    let place = Place::with_sessions();
    place.session("20240603_crawler_2", 2);
    assert_eq!(finds(&place, "20240603_crawler"), "20240603_crawler");
    assert_eq!(finds(&place, "20240604"), "20240604_数据清洗");
    assert_eq!(finds(&place, "清"), "20240604_数据清洗");
    assert_eq!(
        finds(&place, "ler_2"),
        "20240603_crawler_2",
        "no entry is needed"
    );
}

#[test]
fn a_decomposed_name_is_found_by_a_composed_one() {
    let place = Place::with_home();
    place.session("20240604_e\u{301}tude", 4);
    assert_eq!(finds(&place, "\u{e9}tude"), "20240604_e\u{301}tude");
}

#[test]
fn by_activity() {
    let place = Place::with_sessions();
    assert_eq!(finds(&place, "@1"), "20240605_api_refactor");
    assert_eq!(finds(&place, "@3"), "20240603_crawler");
    // A file that is written makes it the most recent at once, whatever was counted before.
    place.put_home(
        "sessions/20240603_crawler/context/turn_001.json",
        "{\"turn\": 1}",
    );
    assert_eq!(finds(&place, "@1"), "20240603_crawler");
    assert_snapshot!(place.run(["path", "@9"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session @9: this home has 3 sessions
    hint: @1 is the most recently active one
    ");
    assert_snapshot!(place.run(["path", "@0"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session @0: this home has 3 sessions
    hint: @1 is the most recently active one
    ");
}

#[test]
fn several_are_listed() {
    let place = Place::with_sessions();
    assert_snapshot!(place.run(["path", "2024060"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `2024060` may mean 3 sessions
    hint: 20240605_api_refactor
    hint: 20240604_数据清洗
    hint: 20240603_crawler
    ");
    for n in 0..12 {
        place.session(&format!("20240701_{n:02}"), 1);
    }
    assert_snapshot!(place.run(["path", "20240701"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240701` may mean 12 sessions
    hint: 20240701_00
    hint: 20240701_01
    hint: 20240701_02
    hint: 20240701_03
    hint: 20240701_04
    hint: 20240701_05
    hint: 20240701_06
    hint: 20240701_07
    hint: 20240701_08
    hint: 20240701_09
    hint: and 2 more
    ");
}

#[test]
fn the_nearest_is_offered_for_a_slip() {
    let place = Place::with_sessions();
    assert_snapshot!(place.run(["path", "crawlre"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `crawlre`
    hint: did you mean 20240603_crawler?
    ");
    assert_snapshot!(place.run(["path", "20240604_数据清晰"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `20240604_数据清晰`
    hint: did you mean 20240604_数据清洗?
    ");
    assert_snapshot!(place.run(["path", "nothing like it"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `nothing like it`
    hint: `wbhome ls` lists them
    ");
    assert_snapshot!(place.run(["path", ""]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: no session was named
    ");
    assert_snapshot!(place.run(["path", "\u{1b}[31m"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `\x1b[31m`
    hint: `wbhome ls` lists them
    ");
}

#[test]
fn what_is_inside() {
    let place = Place::with_sessions();
    assert_eq!(
        finds(&place, "crawler/context/turn_001.json"),
        "20240603_crawler/context/turn_001.json"
    );
    assert_eq!(
        finds(&place, "crawler/./context//"),
        "20240603_crawler/context"
    );
    assert_eq!(finds(&place, "crawler/"), "20240603_crawler");
    assert_eq!(
        finds(&place, "@1/artifacts/yet to be.md"),
        "20240605_api_refactor/artifacts/yet to be.md"
    );
    assert_eq!(
        place.json(["path", "@1/artifacts/yet to be.md"])["exists"],
        false
    );
    assert_eq!(place.json(["path", "@1"])["exists"], true);
    for out in ["crawler/../../index.json", "crawler//etc/passwd"] {
        let ran = place.run(["path", out]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{out}");
    }
    assert_snapshot!(place.run(["path", "crawler/../x"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `../x` leads out of the session
    hint: write a path below the session, such as context/checkpoint.md
    ");
}

#[test]
fn sessions_that_are_not_there_say_where_they_went() {
    let place = Place::with_sessions();
    place.put_home("archive/20240520_old.tar.zst", "");
    let mut index = place.index();
    for (id, status) in [
        ("20240520_old", "archived"),
        ("20240521_gone", "active"),
        ("20240522_away", "removed"),
    ] {
        index
            .as_array_mut()
            .unwrap()
            .push(serde_json::json!({"id": id, "status": status}));
    }
    place.put_home("index.json", index.to_string());
    assert_snapshot!(place.run(["path", "old"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240520_old` is archived
    hint: `wbhome unarchive 20240520_old` brings it back
    hint: `wbhome show 20240520_old/` lists what is in it, and `wbhome show 20240520_old/PATH` prints a file
    hint: without wbhome: tar --zstd -xf [ROOT]/me/workbuddy_home/archive/20240520_old.tar.zst -C [ROOT]/me/workbuddy_home/sessions
    ");
    assert_snapshot!(place.run(["path", "gone"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240521_gone` is missing: it is indexed, and found nowhere
    hint: `wbhome index` looks for it again
    hint: `wbhome restore 20240521_gone --from backup` (or git) brings it back
    ");
    assert_snapshot!(place.run(["path", "away"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `away`
    hint: `wbhome ls` lists them
    ");
    assert_snapshot!(place.run(["path", "20240522_away"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240522_away` has been removed
    hint: `wbhome restore 20240522_away --from trash` brings it back, unless the trash was emptied
    ");
}

#[test]
fn an_id_in_the_index_can_not_lead_out() {
    let place = Place::with_sessions();
    place.put_home(
        "index.json",
        r#"[{"id": "../../etc"}, {"id": "/etc/passwd"}, {"id": ".."}, {"id": "20240603_crawler"}]"#,
    );
    for hostile in ["../../etc", "/etc/passwd", "..", "etc"] {
        let ran = place.run(["path", hostile]);
        assert_eq!(ran.stdout, "", "{hostile}");
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    }
    assert_eq!(finds(&place, "crawler"), "20240603_crawler");
}

#[test]
fn with_a_broken_index_one_still_finds_ones_way() {
    let place = Place::with_sessions();
    place.put_home("index.json", "[{");
    assert_eq!(finds(&place, "crawler"), "20240603_crawler");
    assert_eq!(finds(&place, "@1"), "20240605_api_refactor");
}

#[test]
fn names_that_break_the_convention() {
    let place = Place::with_home();
    for id in ["-rf", "my session (1)", "a'b \"c\""] {
        place.session(id, 3);
    }
    assert_eq!(finds(&place, "my sess"), "my session (1)");
    assert_eq!(finds(&place, "a'b"), "a'b \"c\"");
    let ran = place.run(["path", "--", "-rf"]);
    assert!(ran.stdout.ends_with("/sessions/-rf\n"), "{ran:?}");
}

#[test]
fn a_home_whose_path_is_not_utf8_is_printed_byte_for_byte() {
    let place = Place::new();
    let home = place.root().join(OsStr::from_bytes(b"h\xff\n"));
    let run = |args: &[&str]| {
        place
            .command()
            .arg("--home")
            .arg(&home)
            .args(args)
            .output()
            .unwrap()
    };
    assert!(
        place
            .command()
            .arg("init")
            .arg(&home)
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(run(&["new", "x"]).status.success());
    let mut expected = home.as_os_str().as_bytes().to_vec();
    expected.extend_from_slice(b"/sessions/20240615_x\n");
    assert_eq!(run(&["path", "x"]).stdout, expected);
    let json: serde_json::Value =
        serde_json::from_slice(&run(&["path", "x", "--json"]).stdout).unwrap();
    assert!(json["path"].as_str().unwrap().contains("h\u{fffd}\n"));
    assert!(json["path_bytes"].is_string());
}
