//! `wbhome label`: labels stand in the index, and the project views follow.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::json;
use support::home::tool;
use support::{Place, differences, has_tool, tree};

fn entry(place: &Place, id: &str) -> serde_json::Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == id);
    found.unwrap().clone()
}

#[test]
fn every_label_and_back() {
    let place = Place::with_sessions();
    let set = [
        "label",
        "crawler",
        "--tag",
        "web",
        "--tag",
        "五月",
        "--project",
        "alpha",
        "--sync-tag",
        "laptop",
        "--title",
        "Prices, second try",
    ];
    assert_snapshot!(place.run(set).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   +web  +五月  project: none → alpha  sync tag: none → laptop  title: none → Prices, second try
    --- stderr
    ");
    let labelled = entry(&place, "20240603_crawler");
    assert_eq!(labelled["tags"], json!(["web", "五月"]));
    assert_eq!(labelled["project"], "alpha");
    assert_eq!(labelled["sync_tag"], "laptop");
    assert_eq!(labelled["title"], "Prices, second try");
    let view = place.home().join("projects/alpha/20240603_crawler");
    assert_eq!(
        std::fs::read_link(&view).unwrap().to_str(),
        Some("../../sessions/20240603_crawler")
    );
    assert!(view.join("context/turn_001.json").exists());

    assert_snapshot!(place.run(set).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   has these labels already
    --- stderr
    ");
    let unset = [
        "label",
        "crawler",
        "--untag",
        "web",
        "--no-project",
        "--no-sync-tag",
        "--title",
        "",
    ];
    assert_snapshot!(place.run(unset).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   -web  project: alpha → none  sync tag: laptop → none  title: Prices, second try → none
    --- stderr
    ");
    let bare = entry(&place, "20240603_crawler");
    assert_eq!(bare["tags"], json!(["五月"]));
    for key in ["project", "sync_tag", "title"] {
        assert_eq!(bare[key], json!(null), "{key}");
    }
    assert!(
        place.names("projects").is_empty(),
        "a project without sessions has no folder"
    );
}

#[test]
fn another_project_moves_the_view() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "数据", "--project", "alpha", "-q"]);
    let ran = place.run(["label", "crawler", "--project", "数据 部"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   project: alpha → 数据 部
    --- stderr
    ");
    assert_eq!(
        place.names("projects"),
        [
            "alpha/",
            "alpha/20240604_数据清洗",
            "数据 部/",
            "数据 部/20240603_crawler"
        ]
    );
}

#[test]
fn several_sessions_at_once() {
    let place = Place::with_sessions();
    let ran = place.run([
        "label",
        "crawler",
        "@1",
        "清洗",
        "20240603_crawler",
        "--tag",
        "web",
    ]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   +web
    20240605_api_refactor   +web
    20240604_数据清洗   +web
    --- stderr
    ");
    assert_snapshot!(place.run(["label", "crawler", "清洗", "--tag", "web", "--project", "p"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   project: none → p
    20240604_数据清洗   project: none → p
    --- stderr
    ");
}

#[test]
fn one_unknown_session_and_none_is_labelled() {
    let place = Place::with_sessions();
    let before = place.home_text("index.json");
    assert_snapshot!(place.run(["label", "crawler", "crawlor", "--tag", "x"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `crawlor`
    hint: did you mean 20240603_crawler?
    ");
    assert_snapshot!(place.run(["label", "2024", "--tag", "x"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `2024` may mean 3 sessions
    hint: 20240605_api_refactor
    hint: 20240604_数据清洗
    hint: 20240603_crawler
    ");
    assert_eq!(place.home_text("index.json"), before);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    let refused = |args: &[&str]| {
        place
            .run(std::iter::once(&"label").chain(args))
            .shown(&place)
    };
    assert_snapshot!(refused(&["crawler"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: no label was given
    hint: --tag T, --untag T, --project P, --sync-tag S, --title T, and --no-project, --no-sync-tag
    ");
    assert_snapshot!(refused(&["--tag", "x"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      <SESSION>...

    Usage: wbhome label --tag <TAG> <SESSION>...

    For more information, try '--help'.
    ");
    assert_snapshot!(refused(&["crawler", "--tag", "x", "--untag", "x"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `x` is to be added and taken away
    ");
    assert_snapshot!(refused(&["crawler", "@1", "--title", "One"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: one title for several sessions tells nobody which is which
    hint: give --title for one session at a time
    ");
    assert_snapshot!(refused(&["crawler", "--project", "p", "--no-project"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the argument '--project <PROJECT>' cannot be used with '--no-project'

    Usage: wbhome label --project <PROJECT> <SESSION>...

    For more information, try '--help'.
    ");
    assert_snapshot!(refused(&["crawler", "--sync-tag", "p", "--no-sync-tag"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the argument '--sync-tag <SYNC_TAG>' cannot be used with '--no-sync-tag'

    Usage: wbhome label --sync-tag <SYNC_TAG> <SESSION>...

    For more information, try '--help'.
    ");
    assert_snapshot!(refused(&["crawler", "--project", ".hidden"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `.hidden` can not be a project: it begins with a dot, and a project is a folder in projects/
    ");
    assert_snapshot!(refused(&["crawler", "--project", "a\u{1b}b"]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `a\x1bb` can not be a project: it holds control characters
    ");
    assert_snapshot!(refused(&["crawler", "--tag", ""]), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `` can not be a tag: it is empty
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn dry_run_and_quiet() {
    let place = Place::with_sessions();
    let before = tree(&place.home());
    let args = ["label", "crawler", "--tag", "web", "--project", "alpha"];
    assert_snapshot!(place.run(args.iter().chain(&["-n"])).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   +web  project: none → alpha
    --- stderr
    ");
    assert_eq!(differences(&before, &tree(&place.home())), "");
    let ran = place.run(args.iter().chain(&["-q"]));
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "", "")
    );
    assert_eq!(entry(&place, "20240603_crawler")["project"], "alpha");
}

#[test]
fn a_session_without_an_entry_gets_one() {
    let place = Place::with_sessions();
    place.session("20240606_by_hand", 6);
    assert_snapshot!(place.run(["label", "by_hand", "--tag", "web"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240606_by_hand   +web
    --- stderr
    ");
    let entry = entry(&place, "20240606_by_hand");
    assert_eq!(entry["session_id"], "identity-of-20240606_by_hand");
    assert_eq!(entry["tags"], json!(["web"]));
}

#[test]
fn missing_sessions_keep_their_labels_and_may_get_more() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "--project", "alpha", "-q"]);
    std::fs::remove_dir_all(place.home().join("sessions/20240603_crawler")).unwrap();
    place.ok(["index", "-q"]);
    assert!(place.names("projects").is_empty());
    place.ok(["label", "crawler", "--tag", "lost", "-q"]);
    let entry = entry(&place, "20240603_crawler");
    assert_eq!(
        (&entry["status"], &entry["project"], &entry["tags"]),
        (&json!("missing"), &json!("alpha"), &json!(["lost"]))
    );
    assert!(
        place.names("projects").is_empty(),
        "a view of nothing helps nobody"
    );
}

#[test]
fn a_removed_session_is_not_labelled() {
    let place = Place::with_sessions();
    place.put_home(
        "index.json",
        r#"[{"id": "20240522_away", "status": "removed", "removed_at": "2024-06-01T00:00:00Z"}]"#,
    );
    assert_snapshot!(place.run(["label", "20240522_away", "--tag", "x"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240522_away` has been removed
    ");
    assert_snapshot!(place.run(["label", "away", "--tag", "x"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `away`
    hint: `wbhome ls` lists them
    ");
}

#[test]
fn what_others_wrote_into_the_index_survives() {
    let place = Place::with_sessions();
    let odd = r#"[
  {"zeta": 1.50, "id": "20240603_crawler", "cost": 12345678901234567890.123456789, "nested": {"b": 1, "a": [1e5, 0.10]}, "tags": ["old"]},
  "a remark",
  {"no": "id"},
  {"id": "20240604_数据清洗", "title": "\u4e94\u6708"}
]"#;
    place.put_home("index.json", odd);
    place.ok(["label", "crawler", "--tag", "web", "-q"]);
    assert_snapshot!(place.home_text("index.json"), @r#"
    [
      {
        "zeta": 1.50,
        "id": "20240603_crawler",
        "cost": 12345678901234567890.123456789,
        "nested": {
          "b": 1,
          "a": [
            1e+5,
            0.10
          ]
        },
        "tags": [
          "old",
          "web"
        ]
      },
      {
        "id": "20240604_数据清洗",
        "title": "五月"
      },
      "a remark",
      {
        "no": "id"
      }
    ]
    "#);
}

#[test]
fn an_index_that_is_an_object_stays_one() {
    let place = Place::with_sessions();
    place.put_home("index.json", r#"{"version": 3, "20240604_数据清洗": {"n": 1.0}, "20240603_crawler": {"tags": "one", "status": "paused"}}"#);
    place.ok(["label", "crawler", "--tag", "web", "--project", "p", "-q"]);
    assert_snapshot!(place.home_text("index.json"), @r#"
    {
      "version": 3,
      "20240603_crawler": {
        "tags": [
          "one",
          "web"
        ],
        "status": "paused",
        "project": "p"
      },
      "20240604_数据清洗": {
        "n": 1.0
      }
    }
    "#);
    assert_eq!(place.names("projects"), ["p/", "p/20240603_crawler"]);
}

#[test]
fn a_broken_index_is_never_overwritten() {
    let place = Place::with_sessions();
    for broken in [
        "[\n  {\"id\": \"20240603_crawler\", \"tags\": [\"a\"}\n]\n",
        "",
        "[{\"id\": \"20240603_crawler\"}] trailing",
        "[{\"id\": \"20240603_crawler\", \"tags\": [1], \"tags\": [2]}]",
        "[{\"id\": \"20240603_cra",
    ] {
        place.put_home("index.json", broken);
        let ran = place.run(["label", "crawler", "--tag", "x"]);
        assert_eq!(ran.code, Some(1), "{broken}: {ran:?}");
        assert!(ran.stderr.contains("index is broken at line "), "{ran:?}");
        assert_eq!(place.home_text("index.json"), broken);
    }
    place.put_home(
        "index.json",
        "[{\"id\": \"20240603_crawler\", \"tags\": [1], \"tags\": [2]}]",
    );
    assert_snapshot!(place.run(["label", "crawler", "--tag", "x"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 1, column 42 (`tags` stands twice in one object): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    assert!(
        place.names(".wbhome/journal").is_empty(),
        "nothing is left to be done"
    );
}

/// A person saves the index in an editor while a command changes it, at each moment of the command.
#[test]
fn an_edit_by_hand_made_meanwhile_survives() {
    let place = Place::with_sessions();
    let index = place.home().join("index.json");
    for n in 0..24u64 {
        let tag = format!("tag{n}");
        let child = place
            .command()
            .args(["label", "crawler", "-q", "--tag", &tag])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(500 * n));
        let mut edited = place.index();
        edited[1]["by_hand"] = n.into();
        std::fs::write(place.path("saving"), edited.to_string()).unwrap();
        std::fs::rename(place.path("saving"), &index).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        assert_eq!(place.index()[1]["by_hand"], n);
    }
}

#[test]
fn an_index_that_is_a_link_is_not_replaced() {
    let place = Place::with_sessions();
    let index = place.home().join("index.json");
    std::fs::rename(&index, place.path("index elsewhere.json")).unwrap();
    symlink(place.path("index elsewhere.json"), &index).unwrap();
    let ran = place.run(["label", "crawler", "--tag", "x"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is a symbolic link; replacing it would leave its target behind: [ROOT]/me/workbuddy_home/index.json
    hint: put the file itself there
    ");
    assert!(index.is_symlink());
}

#[test]
fn the_mode_of_the_index_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_sessions();
    let index = place.home().join("index.json");
    std::fs::set_permissions(&index, std::fs::Permissions::from_mode(0o640)).unwrap();
    place.ok(["label", "crawler", "--tag", "x", "-q"]);
    assert_eq!(place.mode("me/workbuddy_home/index.json"), 0o640);
}

#[test]
fn what_is_not_ours_in_projects_is_left_alone() {
    let place = Place::with_sessions();
    place.put_home("projects/alpha/notes.md", "mine\n");
    place.put_home("projects/README", "mine too\n");
    symlink("/etc", place.home().join("projects/alpha/etc")).unwrap();
    let ran = place.run(["label", "crawler", "--project", "alpha"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   project: none → alpha
    --- stderr
    ");
    let ran = place.run(["label", "crawler", "--no-project", "-q"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        place.names("projects"),
        ["README", "alpha/", "alpha/etc", "alpha/notes.md"]
    );
    assert_eq!(place.home_text("projects/alpha/notes.md"), "mine\n");
    assert_eq!(
        place.json(["label", "crawler", "--project", "beta"])["views"]["foreign"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn what_is_in_the_way_of_a_view_is_left_alone_and_told() {
    let place = Place::with_sessions();
    place.put_home("projects/alpha/20240603_crawler", "in the way\n");
    place.put_home("projects/beta", "in the way too\n");
    assert_snapshot!(place.run(["label", "crawler", "--project", "alpha"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   project: none → alpha
    --- stderr
    warning: projects/alpha/20240603_crawler is in the way of a project view; it was left alone, and the view was not made
    ");
    assert_snapshot!(place.run(["label", "crawler", "--project", "beta", "-q"]).shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    warning: projects/beta is in the way of a project view; it was left alone, and the view was not made
    ");
    assert_eq!(
        place.home_text("projects/alpha/20240603_crawler"),
        "in the way\n"
    );
    assert_eq!(place.home_text("projects/beta"), "in the way too\n");
}

#[test]
fn labels_can_not_drive_the_terminal() {
    let place = Place::with_sessions();
    let ran = place.run(["label", "crawler", "--title", "\u{1b}[31mred\u{202e}"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   title: none → \x1b[31mred\u{202e}
    --- stderr
    ");
    assert_eq!(
        entry(&place, "20240603_crawler")["title"],
        "\u{1b}[31mred\u{202e}"
    );
    let ran = place.run(["ls", "crawler"]);
    assert!(ran.stdout.contains("\\x1b[31mred\\u{202e}"), "{ran:?}");
}

#[test]
fn the_one_liner_of_people_goes_on_working() {
    if !has_tool("jq") {
        return;
    }
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "清洗", "--sync-tag", "laptop", "-q"]);
    let index = place.home().join("index.json");
    let filter = ".[] | select(.sync_tag != null) | .id";
    assert_eq!(
        tool("jq", &["-r", filter, index.to_str().unwrap()]),
        "20240603_crawler\n20240604_数据清洗\n"
    );
    // Laid out as jq lays it out: a diff shows only what was changed.
    let again = tool("jq", &[".", index.to_str().unwrap()]);
    assert_eq!(again, place.home_text("index.json"));
}

#[test]
fn every_session_that_a_filter_lists() {
    let place = Place::with_sessions();
    place.ok([
        "label",
        "crawler",
        "--project",
        "alpha",
        "--tag",
        "old",
        "-q",
    ]);
    place.ok([
        "label",
        "数据清洗",
        "--project",
        "beta",
        "--tag",
        "old",
        "-q",
    ]);
    let label = |conditions: &[&str]| {
        let line = [&["label", "-n", "--tag", "web"], conditions].concat();
        let plan = place.json(line);
        let sessions = plan["sessions"].as_array().unwrap().iter();
        sessions
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (crawler, data, api) = (
        "20240603_crawler",
        "20240604_数据清洗",
        "20240605_api_refactor",
    );
    assert_eq!(label(&["--where", "name=数据"]), data);
    assert_eq!(label(&["--where", "name=*c*"]), format!("{crawler} {api}"));
    assert_eq!(label(&["--where", "tag=old"]), format!("{crawler} {data}"));
    let both = ["--where", "tag=old", "--where", "project=beta"];
    assert_eq!(label(&both), data);
    assert_eq!(label(&["--where", "status=archived"]), "");
    assert_eq!(label(&["--where", "since=2100-01-01"]), "");
    let all = format!("{crawler} {data} {api}");
    assert_eq!(label(&["--where", "until=2100-01-01"]), all);
    let listed = place.json(["ls", "--tag", "old", "--sort", "id"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);

    let set = ["label", "--where", "tag=old", "--untag", "old"];
    assert_snapshot!(place.run(set).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   -old
    20240604_数据清洗   -old
    --- stderr
    ");
    assert_snapshot!(place.run(set).shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    hint: none of 3 sessions is what was asked for
    ");
    assert_eq!(entry(&place, crawler)["tags"], json!([]));

    let error = |args: &[&str]| place.run([&["label", "--tag", "web"], args].concat());
    assert_snapshot!(error(&["--where", "colour=red"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `colour=red` says nothing of a session
    hint: --where takes name=…, agent=…, tag=…, project=…, status=…, since=…, until=…
    ");
    assert_snapshot!(error(&["--where", "tag="]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `tag=` says nothing of a session
    hint: --where takes name=…, agent=…, tag=…, project=…, status=…, since=…, until=…
    ");
    assert_snapshot!(error(&["--where", "agent=a", "--where", "agent=b"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: --where agent=… is given twice, and no session is of both
    ");
    assert_snapshot!(error(&["--where", "since=yore"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `yore` is not a moment
    hint: write a date such as 2024-06-03, 2024-06-03 14:00, yesterday, or an age such as 2w
    ");
    assert_snapshot!(error(&["crawler", "--where", "tag=old"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the argument '[SESSION]...' cannot be used with '--where <KEY=VALUE>'

    Usage: wbhome label --tag <TAG> <SESSION>...

    For more information, try '--help'.
    ");
    assert_snapshot!(error(&[]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      <SESSION>...

    Usage: wbhome label --tag <TAG> <SESSION>...

    For more information, try '--help'.
    ");
}

/// An index that is gone is what the last commit knows, and not what one command writes.
#[test]
fn an_index_that_is_gone_comes_back_from_the_last_commit_first() {
    if !has_tool("git") {
        return;
    }
    for args in [
        &["label", "数据清洗", "--tag", "x"][..],
        &["new", "fresh"],
        &["rm", "数据清洗", "-y"],
        &["mv", "数据清洗", "20240604_cleaning"],
        &["archive", "数据清洗"],
        &["commit"],
    ] {
        let place = Place::with_sessions();
        place.ok(["label", "crawler", "--title", "Prices", "-q"]);
        place.ok(["commit", "-q"]);
        std::fs::remove_file(place.home().join("index.json")).unwrap();
        let ran = place.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(
            ran.stderr
                .contains("the labels are those of the last commit"),
            "{ran:?}"
        );
        assert_eq!(
            entry(&place, "20240603_crawler")["title"],
            "Prices",
            "{args:?}"
        );
        assert!(place.index().as_array().unwrap().len() >= 3, "{args:?}");
    }
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    std::fs::remove_file(place.home().join("index.json")).unwrap();
    std::fs::write(place.home().join(".git/HEAD"), "torn").unwrap();
    let ran = place.run(["label", "crawler", "--tag", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("wbhome index --rebuild"), "{ran:?}");
    assert!(!place.home().join("index.json").exists());
}
