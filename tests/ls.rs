//! `wbhome ls`: what there is, from the index and the cache alone.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use insta::assert_snapshot;
use support::Place;
use unicode_width::UnicodeWidthStr;

/// Three sessions on the disk, and entries for one that is missing, one archived and one removed.
fn place() -> Place {
    let place = Place::with_sessions();
    place.put_home(
        "sessions/20240604_数据清洗/artifacts/表.csv",
        "x".repeat(2048),
    );
    place.put_home(
        "sessions/20240604_数据清洗/logs/agent_run.log",
        "y".repeat(300),
    );
    place.put_home("sessions/20240604_数据清洗/memory/notes.md", "z\n");
    place.put_home("sessions/20240604_数据清洗/context/turn_002.json", "{}");
    place.date("20240604_数据清洗", 4);
    let mut index = place.index();
    let entries = index.as_array_mut().unwrap();
    for (id, status) in [
        ("20240520_gone", "missing"),
        ("20240521_old", "archived"),
        ("20240522_away", "removed"),
    ] {
        entries.push(serde_json::json!({"id": id, "status": status}));
    }
    entries[4]["archive"] = serde_json::json!({"file": "archive/20240521_old.tar.zst", "bytes": 5_000_000, "blake3": null});
    place.put_home("index.json", index.to_string());
    place.put_home("archive/20240521_old.tar.zst", "");
    place.ok(["index", "-q"]);
    place.ok([
        "label",
        "crawler",
        "--tag",
        "web",
        "--tag",
        "prices",
        "--project",
        "alpha",
        "-q",
    ]);
    place.ok([
        "label",
        "数据",
        "--tag",
        "web",
        "--title",
        "五月 Sales",
        "--sync-tag",
        "laptop",
        "-q",
    ]);
    place
}

fn ids(place: &Place, args: &[&str]) -> Vec<String> {
    let listed = place.json(std::iter::once(&"ls").chain(args));
    let sessions = listed["sessions"].as_array().unwrap().clone();
    sessions
        .iter()
        .map(|s| s["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_table() {
    let place = place();
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240605_api_refactor  active    2024-06-05T09:00:00Z  -      -
    20240604_数据清洗      active    2024-06-04T09:00:00Z  -      -        web sync:laptop  五月 Sales
    20240603_crawler       active    2024-06-03T09:00:00Z  -      alpha    web prices
    20240521_old           archived  2024-05-21T00:00:00Z  -      -
    20240520_gone          missing   2024-05-20T00:00:00Z  -      -
    --- stderr
    ");
    assert_snapshot!(place.run(["ls", "-l"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240605_api_refactor  active    2024-06-05T09:00:00Z      1     27 B     0 B        0 B    0 B        -  -      -
    20240604_数据清洗      active    2024-06-04T09:00:00Z      2     29 B     2 B     2.0 kB  300 B        -  -      -        web sync:laptop  五月 Sales
    20240603_crawler       active    2024-06-03T09:00:00Z      1     27 B     0 B        0 B    0 B        -  -      alpha    web prices
    20240521_old           archived  2024-05-21T00:00:00Z      -        -       -          -      -   5.0 MB  -      -
    20240520_gone          missing   2024-05-20T00:00:00Z      -        -       -          -      -        -  -      -
    --- stderr
    ");
}

#[test]
fn a_line_can_be_read_by_a_script() {
    let place = place();
    let out = place.ok(["ls", "数据"]);
    let line = out.lines().next().unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        &words[..3],
        ["20240604_数据清洗", "active", "2024-06-04T09:00:00Z"]
    );
    assert!(
        !out.contains('\u{1b}'),
        "no colour where there is no terminal"
    );
}

#[test]
fn filters() {
    let place = place();
    let all = [
        "20240605_api_refactor",
        "20240604_数据清洗",
        "20240603_crawler",
        "20240521_old",
        "20240520_gone",
    ];
    assert_eq!(ids(&place, &[]), all);
    assert_eq!(ids(&place, &["--status", "removed"]), ["20240522_away"]);
    assert_eq!(ids(&place, &["--status", "archived"]), ["20240521_old"]);
    assert_eq!(ids(&place, &["--status", "missing"]), ["20240520_gone"]);
    assert_eq!(
        ids(&place, &["--tag", "web"]),
        ["20240604_数据清洗", "20240603_crawler"]
    );
    assert_eq!(
        ids(&place, &["--tag", "web", "--tag", "prices"]),
        ["20240603_crawler"]
    );
    assert_eq!(ids(&place, &["--project", "alpha"]), ["20240603_crawler"]);
    assert_eq!(
        ids(&place, &["--since", "2024-06-04"]),
        ["20240605_api_refactor", "20240604_数据清洗"]
    );
    assert_eq!(ids(&place, &["--since", "11d"]), ["20240605_api_refactor"]);
    assert_eq!(
        ids(
            &place,
            &["--until", "2024-06-03 10:00", "--since", "2024-06-01"]
        ),
        ["20240603_crawler"]
    );
    assert_eq!(ids(&place, &["--agent", "nobody"]), [""; 0]);
}

#[test]
fn patterns_are_parts_or_globs_of_ids_and_titles() {
    let place = place();
    assert_eq!(ids(&place, &["清洗"]), ["20240604_数据清洗"]);
    assert_eq!(
        ids(&place, &["sales"]),
        ["20240604_数据清洗"],
        "in the title, in any case"
    );
    assert_eq!(ids(&place, &["2024060?_*"]).len(), 3);
    assert_eq!(
        ids(&place, &["*_crawl"]),
        [""; 0],
        "a glob is for the whole"
    );
    assert_snapshot!(place.run(["ls", "[x"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `[x` is no pattern: error parsing glob '[x': unclosed character class; missing ']'
    ");
}

#[test]
fn orders() {
    let place = place();
    assert_eq!(ids(&place, &["--sort", "id"])[0], "20240520_gone");
    assert_eq!(
        ids(&place, &["--sort", "id", "--reverse"])[0],
        "20240605_api_refactor"
    );
    assert_eq!(
        ids(&place, &["--sort", "created"])[0],
        "20240605_api_refactor"
    );
    assert_eq!(
        ids(&place, &["--sort", "size"])[..2],
        ["20240521_old", "20240604_数据清洗"]
    );
    assert_eq!(ids(&place, &["--reverse"])[0], "20240520_gone");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = place();
    assert_snapshot!(place.run(["ls", "--since", "tomorrowish"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `tomorrowish` is not a moment
    hint: write a date such as 2024-06-03, 2024-06-03 14:00, yesterday, or an age such as 2w
    ");
    assert_snapshot!(place.run(["ls", "--sort", "colour"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'colour' for '--sort <SORT>'
      [possible values: updated, created, size, id]

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run(["ls", "--status", "activ"]).shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    hint: none of 6 sessions is what was asked for
    ");
}

#[test]
fn nothing_to_list_is_no_failure() {
    let place = Place::with_home();
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 0
    --- stdout
    No session yet. `wbhome new TASK` makes one.
    --- stderr
    ");
    let place = self::place();
    assert_snapshot!(place.run(["ls", "no such thing"]).shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    hint: none of 6 sessions is what was asked for
    ");
}

#[test]
fn sessions_that_came_by_hand_are_hinted_at() {
    let place = place();
    assert_eq!(place.run(["ls"]).stderr, "");
    place.session("20240606_by_hand", 6);
    let ran = place.run(["ls", "crawler"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler  active  2024-06-03T09:00:00Z  -      alpha    web prices
    --- stderr
    hint: sessions have come or gone since they were counted: wbhome index looks again
    ");
    assert_eq!(place.run(["ls", "-q"]).stderr, "");
    assert_eq!(place.json(["ls"])["stale"], true);
    place.ok(["index", "-q"]);
    assert_eq!(place.run(["ls"]).stderr, "");
    assert_eq!(ids(&place, &[])[0], "20240606_by_hand");
}

#[test]
fn without_a_cache_it_still_lists() {
    let place = place();
    std::fs::remove_file(place.home().join(".wbhome/cache.json")).unwrap();
    let ran = place.run(["ls", "crawler", "-l"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler  active  2024-06-03T08:00:00Z      -        -       -          -     -        -  -      alpha    web prices
    --- stderr
    hint: sessions have come or gone since they were counted: wbhome index looks again
    ");
    place.put_home(".wbhome/cache.json", "\0\0{");
    assert_eq!(place.run(["ls"]).code, Some(0));
}

#[test]
fn what_the_index_says_can_not_drive_the_terminal() {
    let place = Place::with_home();
    let hostile = serde_json::json!([
        {"id": "../../etc", "title": "up and out"},
        {"id": "20240603_a\u{1b}]0;owned\u{7}", "title": "\u{1b}[2J\u{202e}txt.exe", "tags": ["a\nb", "\u{9b}31m"],
         "agent": "\u{1b}[31mred", "project": "\r\n", "status": "\u{1b}[5mblink", "sync_tag": "\u{2066}x"},
    ]);
    place.put_home("index.json", hostile.to_string());
    let ran = place.run(["ls"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_a\x1b]0;owned\x07  \x1b[5mblink  2024-06-03T00:00:00Z  \x1b[31mred  \r\n     a\nb \u{9b}31m sync:\u{2066}x  \x1b[2J\u{202e}txt.exe
    ../../etc                   active        -                     -            -                                       up and out
    --- stderr
    hint: sessions have come or gone since they were counted: wbhome index looks again
    ");
    for stream in [&ran.stdout, &ran.stderr] {
        assert!(stream.chars().all(|c| c == '\n' || !c.is_control()));
    }
    // In JSON it is what it is: the encoding escapes it.
    assert_eq!(
        place.json(["ls"])["sessions"][0]["title"],
        "\u{1b}[2J\u{202e}txt.exe"
    );
}

#[test]
fn a_broken_index_says_where() {
    let place = place();
    place.put_home(
        "index.json",
        "[\n  {\"id\": \"20240603_crawler\", \"tags\": [\"web\"},\n]\n",
    );
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 2, column 44 (expected `,` or `]`): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    place.put_home("index.json", "");
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 1, column 1 (it is empty): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
    place.put_home("index.json", "sessions: none\n");
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the index is broken at line 1, column 1 (expected `[` and a list of sessions): [ROOT]/me/workbuddy_home/index.json
    hint: mend it in an editor; nothing overwrites it meanwhile
    hint: or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash
    ");
}

#[test]
fn an_index_of_another_shape_is_read() {
    let place = Place::with_home();
    place.put_home(
        "index.json",
        "\u{feff}{\"version\": 3, \"20240603_x\": {\"status\": \"paused\", \"tags\": \"one\"}, \"20240604_y\": {}}",
    );
    let listed = place.json(["ls"]);
    assert_eq!(listed["total"], 2);
    assert_eq!(listed["sessions"][1]["status"], "paused");
    assert_eq!(listed["sessions"][1]["tags"], serde_json::json!(["one"]));
    assert_eq!(ids(&place, &["--status", "active"]), ["20240604_y"]);
}

#[test]
fn a_session_in_which_an_agent_runs_is_marked() {
    let place = place();
    let crawler = place.home().join("sessions/20240603_crawler/artifacts");
    let none = serde_json::json!({});
    assert_eq!(ids(&place, &["--status", "running"]), [] as [&str; 0]);
    place.at_work("me/.workbuddy-ai", &crawler, none.clone());
    let status = |place: &Place| {
        let out = place.ok(["ls", "crawler"]);
        out.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&place), "running");
    assert_eq!(ids(&place, &["--status", "running"]), ["20240603_crawler"]);
    assert_eq!(
        ids(&place, &["crawler", "--status", "active"]),
        ["20240603_crawler"]
    );
    let long = place.ok(["ls", "crawler", "-l"]);
    let pid = std::process::id().to_string();
    for part in [&pid, "2024-06-15T11:59:55Z", crawler.to_str().unwrap()] {
        assert!(long.contains(part), "{part}: {long}");
    }
    let running = &place.json(["ls", "crawler"])["sessions"][0]["running"];
    assert_eq!(running["pid"], std::process::id());
    assert_eq!(running["heartbeat"], "2024-06-15T11:59:55Z");
    assert_eq!(running["cwd"], crawler.to_str().unwrap());

    // One that is kept ready works nowhere; one that has ended has only left its file.
    let pool = serde_json::json!({"kind": "prewarm"});
    place.at_work("me/.workbuddy-ai", &crawler, pool);
    assert_eq!(status(&place), "active");
    let ended = serde_json::json!({"startedAt": 1_000_000_000_000_u64});
    place.at_work("me/.workbuddy-ai", &crawler, ended);
    assert_eq!(status(&place), "active");
    assert_eq!(
        place.json(["ls", "crawler"])["sessions"][0]["running"],
        serde_json::Value::Null
    );
}

#[test]
fn an_agent_is_known_by_its_conversation_wherever_it_works() {
    let place = place();
    let session = serde_json::json!({"sessionId": "identity-of-20240605_api_refactor"});
    place.at_work("me/.workbuddy", "/somewhere/else", session);
    assert_eq!(
        ids(&place, &["--status", "running"]),
        ["20240605_api_refactor"]
    );
}

#[test]
fn the_settings_say_where_the_application_has_its_folder() {
    let place = place();
    let crawler = place.home().join("sessions/20240603_crawler");
    place.at_work("me/应用", &crawler, serde_json::json!({}));
    assert!(ids(&place, &["--status", "running"]).is_empty());
    place.put_home("wbhome.toml", "[state]\ndir = \"~/应用\"\n");
    assert_eq!(ids(&place, &["--status", "running"]), ["20240603_crawler"]);
    place.put_home("wbhome.toml", "[state]\ndir = \"../应用\"\n");
    assert_eq!(ids(&place, &["--status", "running"]), ["20240603_crawler"]);
    // What is wrong with it is said, and the list is there all the same.
    for (settings, why) in [
        ("[state]\ndir = \"/nowhere\"\n", "/nowhere"),
        ("[state]\ndri = \"x\"\n", "dri"),
    ] {
        place.put_home("wbhome.toml", settings);
        let ran = place.run(["ls"]);
        ran.expect(0);
        assert!(
            ran.stdout.contains("20240603_crawler       active"),
            "{ran:?}"
        );
        assert!(
            ran.stderr
                .starts_with("warning: who is running is not known")
                && ran.stderr.contains(why),
            "{ran:?}"
        );
    }
    place.put_home("wbhome.toml", "");
    place.put("me/.workbuddy/sessions", "no folder");
    let ran = place.run(["ls"]);
    ran.expect(0);
    assert!(ran.stderr.contains("who is running"), "{ran:?}");
}

/// On a terminal nothing is wrapped, ids are whole, and what does not fit is cut between characters.
#[test]
fn at_any_width() {
    let place = place();
    place.ok([
        "label",
        "crawler",
        "--title",
        "爬虫 🕷️ and a title that is longer than a small terminal is wide, by far",
        "-q",
    ]);
    let shown = |columns: u16, more: &[&str]| {
        let args = [&["ls", "--color", "never"], more].concat();
        place.on_terminal(columns, &args)
    };
    for columns in [40, 80, 200] {
        for more in [&[][..], &["-l"]] {
            let shown = shown(columns, more);
            for line in shown.lines() {
                assert!(
                    line.width() <= usize::from(columns),
                    "{columns}: {} {line}",
                    line.width()
                );
            }
            for id in [
                "20240605_api_refactor",
                "20240604_数据清洗",
                "20240603_crawler",
                "20240521_old",
            ] {
                assert!(
                    shown
                        .lines()
                        .any(|line| line.starts_with(&format!("{id} "))),
                    "{shown}"
                );
            }
        }
    }
    assert_snapshot!(shown(40, &[]), @r"
    SESSION                STATUS    ACTIVE
    20240605_api_refactor  active    10d
    20240604_数据清洗      active    11d
    20240603_crawler       active    12d
    20240521_old           archived  3w
    20240520_gone          missing   3w
    ");
    assert_snapshot!(shown(80, &[]), @r"
    SESSION                STATUS    ACTIVE       PROJECT  TAGS             TITLE
    20240605_api_refactor  active    10 days ago  -
    20240604_数据清洗      active    11 days ago  -        web sync:laptop  五月 Sa…
    20240603_crawler       active    12 days ago  alpha    web prices       爬虫 🕷️…
    20240521_old           archived  3 weeks ago  -
    20240520_gone          missing   3 weeks ago  -
    ");
    assert_snapshot!(shown(200, &[]), @r"
    SESSION                STATUS    ACTIVE       PROJECT  TAGS             TITLE
    20240605_api_refactor  active    10 days ago  -
    20240604_数据清洗      active    11 days ago  -        web sync:laptop  五月 Sales
    20240603_crawler       active    12 days ago  alpha    web prices       爬虫 🕷️ and a title that is longer than a small terminal is wide, by far
    20240521_old           archived  3 weeks ago  -
    20240520_gone          missing   3 weeks ago  -
    ");
    assert_snapshot!(shown(80, &["-l"]), @r"
    SESSION                STATUS    ACTIVE       TURNS  CONTEXT  MEMORY  ARTIFACTS
    20240605_api_refactor  active    10 days ago      1     27 B     0 B        0 B
    20240604_数据清洗      active    11 days ago      2     29 B     2 B     2.0 kB
    20240603_crawler       active    12 days ago      1     27 B     0 B        0 B
    20240521_old           archived  3 weeks ago      -        -       -          -
    20240520_gone          missing   3 weeks ago      -        -       -          -
    5 sessions, 5.0 MB
    ");
    assert_snapshot!(shown(200, &["-l"]), @r"
    SESSION                STATUS    ACTIVE       TURNS  CONTEXT  MEMORY  ARTIFACTS   LOGS  ARCHIVE  PROJECT  TAGS             TITLE
    20240605_api_refactor  active    10 days ago      1     27 B     0 B        0 B    0 B        -  -
    20240604_数据清洗      active    11 days ago      2     29 B     2 B     2.0 kB  300 B        -  -        web sync:laptop  五月 Sales
    20240603_crawler       active    12 days ago      1     27 B     0 B        0 B    0 B        -  alpha    web prices       爬虫 🕷️ and a title that is longer than a small terminal is wide, by far
    20240521_old           archived  3 weeks ago      -        -       -          -      -   5.0 MB  -
    20240520_gone          missing   3 weeks ago      -        -       -          -      -        -  -
    5 sessions, 5.0 MB
    ");
    // Narrower than an id: that is whole all the same.
    let narrow = shown(10, &[]);
    assert!(
        narrow.lines().any(|line| line == "20240605_api_refactor"),
        "{narrow}"
    );
    // Elsewhere moments are exact, and nothing is cut.
    let piped = place.run_with(&[("COLUMNS", "40")], &["ls"]).stdout;
    assert!(
        piped.contains("2024-06-03T09:00:00Z") && piped.contains("by far"),
        "{piped}"
    );
}

/// The count of the last night does not know what was written since.
#[test]
fn a_time_is_asked_of_the_sessions_themselves() {
    let place = Place::with_sessions();
    let turn = "sessions/20240603_crawler/context/turn_002.json";
    place.put_home(turn, "{}");
    for args in [
        &["ls", "--since", "2025-01-01"][..],
        &["label", "--where", "since=2025-01-01", "--tag", "x", "-n"],
    ] {
        let found = place.json(args);
        let sessions = found["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{args:?}: {found}");
        assert_eq!(sessions[0]["id"], "20240603_crawler");
    }
    assert_eq!(
        place.json(["ls", "--until", "2025-01-01"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn it_says_when_what_is_counted_is_old() {
    let place = Place::with_sessions();
    let hints = |now: &str| place.run_with(&[("WBHOME_NOW", now)], &["ls"]).stderr;
    assert_eq!(hints("2024-06-16T12:00:00Z"), "");
    assert_eq!(
        hints("2024-06-18T12:00:00Z"),
        "hint: activity and sizes are those of 3 days ago: wbhome index looks again\n"
    );
    let place = Place::with_home();
    place.session("20240603_crawler", 3);
    let ran = place.run(["ls"]);
    assert_eq!(ran.stdout, "No session is in the index.\n");
    assert!(ran.stderr.contains("wbhome index looks again"), "{ran:?}");
}
