//! `wbhome new`: a session with its four folders, its record, its entry and its view.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use support::home::{tool, without_random};
use support::{Place, Ran, differences, has_tool, tree};

#[test]
fn prints_the_id_alone() {
    let place = Place::with_home();
    assert_snapshot!(place.run(["new", "crawler"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240615_crawler
    --- stderr
    ");
    assert_eq!(
        place.names("sessions"),
        [
            "20240615_crawler/",
            "20240615_crawler/artifacts/",
            "20240615_crawler/context/",
            "20240615_crawler/logs/",
            "20240615_crawler/memory/",
            "20240615_crawler/session.json",
        ]
    );
    assert_eq!(
        place.mode("me/workbuddy_home/sessions/20240615_crawler"),
        0o700
    );
    assert_eq!(
        place.mode("me/workbuddy_home/sessions/20240615_crawler/session.json"),
        0o600
    );
    place.ok(["check"]);
    assert_eq!(place.run(["ls"]).stderr, "", "the list is up to date");
}

#[test]
fn record_and_entry_hold_what_was_given() {
    let place = Place::with_home();
    place.put_home("agents/research_agent/agent.yaml", "name: research_agent\n");
    let id = place.ok([
        "new",
        "数据清洗",
        "--agent",
        "research_agent",
        "--project",
        "alpha",
        "--tag",
        "web",
        "--tag",
        "五月",
        "--tag",
        "web",
        "--sync-tag",
        "laptop",
        "--title",
        "五月 sales",
        "--date",
        "2024-06-04",
    ]);
    assert_eq!(id, "20240604_数据清洗\n");
    let clean =
        |text: String| without_random(&text.replace(place.root().to_str().unwrap(), "[ROOT]"));
    assert_snapshot!(clean(place.home_text("index.json")), @r#"
    [
      {
        "id": "20240604_数据清洗",
        "status": "active",
        "title": "五月 sales",
        "agent": "research_agent",
        "project": "alpha",
        "tags": [
          "web",
          "五月"
        ],
        "sync_tag": "laptop",
        "created_at": "2024-06-04T12:00:00Z",
        "archived_at": null,
        "session_id": "[RANDOM]",
        "archive": null
      }
    ]
    "#);
    assert_snapshot!(clean(place.home_text("sessions/20240604_数据清洗/session.json")), @r#"
    {
      "id": "20240604_数据清洗",
      "session_id": "[RANDOM]",
      "created_at": "2024-06-04T12:00:00Z",
      "agent": "research_agent",
      "title": "五月 sales",
      "project": "alpha",
      "tags": [
        "web",
        "五月"
      ],
      "cwd": "[ROOT]/me/workbuddy_home/sessions/20240604_数据清洗"
    }
    "#);
    let view = place.home().join("projects/alpha/20240604_数据清洗");
    assert_eq!(
        std::fs::read_link(view).unwrap().to_str(),
        Some("../../sessions/20240604_数据清洗")
    );
    let entry = &place.index()[0];
    let record: Value =
        serde_json::from_str(&place.home_text("sessions/20240604_数据清洗/session.json")).unwrap();
    assert_eq!(entry["session_id"], record["session_id"]);
}

#[test]
fn a_name_that_is_taken_gets_a_number() {
    let place = Place::with_home();
    let new = |task: &str| place.ok(["new", task, "--date", "2024-06-03"]);
    assert_eq!(new("crawler"), "20240603_crawler\n");
    assert_eq!(new("crawler"), "20240603_crawler_2\n");
    assert_eq!(
        new("Crawler"),
        "20240603_Crawler_3\n",
        "some filesystems do not tell case"
    );
    // Taken in the archive, by an entry whose session is missing, by a tombstone, by a stray file.
    place.put_home("archive/20240603_old.tar.zst", "");
    assert_eq!(new("old"), "20240603_old_2\n");
    place.put_home("sessions/20240603_stray", "");
    assert_eq!(new("stray"), "20240603_stray_2\n");
    let mut index = place.index();
    for (id, status) in [("20240603_gone", "missing"), ("20240603_away", "removed")] {
        index
            .as_array_mut()
            .unwrap()
            .push(serde_json::json!({"id": id, "status": status}));
    }
    place.put_home("index.json", index.to_string());
    assert_eq!(new("gone"), "20240603_gone_2\n");
    assert_eq!(new("away"), "20240603_away_2\n");
}

#[test]
fn decomposed_names_are_composed() {
    let place = Place::with_home();
    assert_eq!(place.ok(["new", "e\u{301}tude"]), "20240615_\u{e9}tude\n");
    assert_eq!(place.ok(["new", "\u{e9}tude"]), "20240615_\u{e9}tude_2\n");
}

#[test]
fn what_can_not_be_a_name_is_told_what_could() {
    let place = Place::with_home();
    let before = place.apart_from_own();
    let refused = |args: &[&str]| {
        let ran = place.run(std::iter::once(&"new").chain(args));
        assert_eq!(ran.stdout, "");
        ran.shown(&place)
    };
    assert_snapshot!(refused(&["my task / 2"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: ` ` can not stand in a session's name: `my task / 2`
    hint: letters and digits of any script, `_` and `-` can: `my_task___2`
    ");
    assert_snapshot!(refused(&["20240603_crawler"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `20240603_crawler` begins with a date already
    hint: give the task alone; the date is put before it (--date sets another day)
    ");
    assert_snapshot!(refused(&["a_task_with_a_very_long_name"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `20240615_a_task_with_a_very_long_name` has 37 characters, 30 are the limit: completion and listings suffer from longer names
    hint: choose a shorter task, or allow it with --force
    ");
    assert_snapshot!(refused(&[""]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: a session needs a task in its name
    ");
    assert_snapshot!(refused(&["x\u{1b}[31m"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `\x1b` can not stand in a session's name: `x\x1b[31m`
    hint: letters and digits of any script, `_` and `-` can: `x__31m`
    ");
    assert_snapshot!(refused(&["x", "--date", "June"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `June` is not a day
    hint: write --date 2024-06-03
    ");
    assert_snapshot!(refused(&["x", "--project", "a/b"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `a/b` can not be a project: it holds a slash, and a project is a folder in projects/
    ");
    assert_snapshot!(refused(&["x", "--project", "..", "-n"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `..` can not be a project: it begins with a dot, and a project is a folder in projects/
    ");
    assert_snapshot!(refused(&["x", "--tag", " "]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: ` ` can not be a tag: it is empty
    ");
    assert_snapshot!(refused(&["x", "--sync-tag", "a\nb"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `a\nb` can not be a sync tag: it holds control characters
    ");
    assert_snapshot!(refused(&[]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      <TASK>

    Usage: wbhome new <TASK>

    For more information, try '--help'.
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn a_long_name_can_be_forced() {
    let place = Place::with_home();
    let id = place.ok(["new", "a_task_with_a_very_long_name", "--force"]);
    assert_eq!(id, "20240615_a_task_with_a_very_long_name\n");
}

#[test]
fn an_agent_that_is_not_there_is_a_warning() {
    let place = Place::with_home();
    let ran = place.run(["new", "x", "--agent", "nobody"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240615_x
    --- stderr
    warning: there is no agent `nobody` in agents/
    ");
    let ran = place.run(["new", "y", "--agent", "nobody", "-n"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240615_y
    --- stderr
    warning: there is no agent `nobody` in agents/
    ");
}

#[test]
fn dry_run_prints_the_id_and_makes_nothing() {
    let place = Place::with_home();
    let before = tree(&place.home());
    assert_snapshot!(place.run(["new", "crawler", "-n"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240615_crawler
    --- stderr
    ");
    assert_eq!(differences(&before, &tree(&place.home())), "");
}

#[test]
fn quiet_still_prints_the_id() {
    let place = Place::with_home();
    assert_eq!(place.ok(["new", "crawler", "-q"]), "20240615_crawler\n");
}

#[test]
fn a_broken_index_is_not_overwritten() {
    let place = Place::with_home();
    place.put_home("index.json", "[\n  {\"id\": \"20240603_x\",}\n]\n");
    let ran = place.run(["new", "crawler"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 2, column 23 (trailing comma): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    assert_eq!(
        place.home_text("index.json"),
        "[\n  {\"id\": \"20240603_x\",}\n]\n"
    );
    assert!(place.names("sessions").is_empty());
    assert!(
        place.names(".wbhome").iter().all(|n| !n.contains("new-")),
        "nothing half-built is left"
    );
}

#[test]
fn the_line_in_its_help_works_in_a_shell() {
    if !has_tool("sh") {
        return;
    }
    let place = Place::with_home();
    let program = env!("CARGO_BIN_EXE_wbhome");
    let line = format!("cd \"$({program} path \"$({program} new 数据清洗)\")\" && pwd -P");
    let command = place.command();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &line])
        .current_dir(place.root())
        .env_clear();
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap());
    }
    let ran = Ran::of(shell.output().unwrap());
    assert_eq!(
        ran.stdout,
        format!("{}/sessions/20240615_数据清洗\n", place.home().display())
    );
}

#[test]
fn the_one_liner_of_people_finds_what_is_shared() {
    if !has_tool("jq") {
        return;
    }
    let place = Place::with_home();
    place.ok(["new", "a", "--sync-tag", "laptop"]);
    place.ok(["new", "b"]);
    place.ok(["new", "数据", "--sync-tag", "phone"]);
    let index = place.home().join("index.json");
    let filter = ".[] | select(.sync_tag != null) | .id";
    let found = tool("jq", &["-r", filter, index.to_str().unwrap()]);
    assert_eq!(found, "20240615_a\n20240615_数据\n");
}
