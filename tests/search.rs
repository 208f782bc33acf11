//! `wbhome search`: what was said, noted and made in sessions, archived or not.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;
use support::{Place, Ran, has_tool};

const CRAWLER: &str = "20240603_crawler";
const DATA: &str = "20240604_数据清洗";
const API: &str = "20240605_api_refactor";

/// Three sessions, with something to be found in each folder of them.
fn place() -> Place {
    let place = Place::with_sessions();
    let put = |id: &str, rel: &str, content: &[u8]| {
        place.put_home(&format!("sessions/{id}/{rel}"), content)
    };
    put(
        CRAWLER,
        "context/turn_10.json",
        br#"{"role": "user", "content": "look at \/data\/in\nthe \u6570\u636e stops with a timeout"}"#,
    );
    put(
        CRAWLER,
        "context/turn_9.json",
        r#"{"role": "assistant", "content": [{"type": "text", "text": "a Timeout 😀"}], "tool_calls": [{"args": "{\"s\": \"timeout\"}"}]}"#.as_bytes(),
    );
    put(
        CRAWLER,
        "memory/notes.md",
        "# 数据\r\ntimeout after 30 s\r\n".as_bytes(),
    );
    put(CRAWLER, "artifacts/data.bin", b"timeout\0timeout\n");
    put(
        DATA,
        "logs/run.log",
        b"one\ntwo\ntimeout a\nfour\nfive\nsix\nsix\ntimeouts b\nnine\n",
    );
    put(DATA, "logs/trace.jsonl", "{\"event\": \"start\"}\n{\"role\": \"tool\", \"content\": \"\\u0074imeout in the tool\"}\n{\"torn\": \"timeout".as_bytes());
    put(API, "artifacts/deep/er/a.txt", b"nothing\n");
    for (id, day) in [(CRAWLER, 3), (DATA, 4), (API, 5)] {
        place.date(id, day);
    }
    place.ok(["index", "-q"]);
    place.ok(["label", DATA, "--title", "五月", "-q"]);
    place
}

/// The documents of `search --json`, one a line.
fn hits(place: &Place, args: &[&str]) -> Vec<Value> {
    let ran = place.run([&["search", "--json"], args].concat());
    assert!(matches!(ran.code, Some(0 | 4)), "{ran:?}");
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `PATH:line text` of each.
fn found(place: &Place, args: &[&str]) -> Vec<String> {
    let hits = hits(place, args);
    let told = hits.iter().map(|hit| {
        let text = |field: &str| hit[field].as_str().unwrap().to_owned();
        format!("{}:{} {}", text("path"), hit["line"], text("text"))
    });
    told.collect()
}

#[test]
fn by_session_newest_first_and_turns_as_people_count() {
    let place = place();
    assert_snapshot!(place.run(["search", "timeout"]).shown(&place), @r#"
    exit: 0
    --- stdout
    20240604_数据清洗   2024-06-04T09:00:00Z   五月
      logs/run.log  3: timeout a
      logs/run.log  8: timeouts b
      logs/trace.jsonl  2 tool: timeout in the tool
      logs/trace.jsonl  3: {"torn": "timeout

    20240603_crawler   2024-06-03T09:00:00Z
      context/turn_9.json  assistant tool_calls.0.args: {"s": "timeout"}
      context/turn_10.json  user: the 数据 stops with a timeout
      memory/notes.md  2: timeout after 30 s
    --- stderr
    "#);
    assert_snapshot!(place.run(["search", "nowhere"]).shown(&place), @r"
    exit: 4
    --- stdout
    --- stderr
    ");
    assert_snapshot!(place.run(["search", "-l", "timeout"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240604_数据清洗/logs/run.log
    20240604_数据清洗/logs/trace.jsonl
    20240603_crawler/context/turn_9.json
    20240603_crawler/context/turn_10.json
    20240603_crawler/memory/notes.md
    --- stderr
    ");
    assert_snapshot!(place.run(["search", "--count", "timeout"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   4 lines in 2 files
    20240603_crawler   3 lines in 3 files
    7 lines in 2 sessions
    --- stderr
    ");
    assert_snapshot!(place.run(["search", "timeout", "-C", "1"]).shown(&place), @r#"
    exit: 0
    --- stdout
    20240604_数据清洗   2024-06-04T09:00:00Z   五月
      logs/run.log  2- two
      logs/run.log  3: timeout a
      logs/run.log  4- four
      --
      logs/run.log  7- six
      logs/run.log  8: timeouts b
      logs/run.log  9- nine
      --
      logs/trace.jsonl  2 tool: timeout in the tool
      --
      logs/trace.jsonl  3: {"torn": "timeout

    20240603_crawler   2024-06-03T09:00:00Z
      context/turn_9.json  assistant tool_calls.0.args: {"s": "timeout"}
      --
      context/turn_10.json  user- look at /data/in
      context/turn_10.json  user: the 数据 stops with a timeout
      --
      memory/notes.md  1- # 数据
      memory/notes.md  2: timeout after 30 s
    --- stderr
    "#);
}

#[test]
fn json_is_searched_as_people_see_it() {
    let place = place();
    assert_eq!(
        found(&place, &["数据", CRAWLER]),
        [
            "context/turn_10.json:1 the 数据 stops with a timeout",
            "memory/notes.md:1 # 数据"
        ]
    );
    assert_eq!(
        found(&place, &["/data/in"]),
        ["context/turn_10.json:1 look at /data/in"]
    );
    assert_eq!(found(&place, &["^the"]).len(), 1);
    assert_eq!(
        found(&place, &["in the tool"]),
        ["logs/trace.jsonl:2 timeout in the tool"]
    );
    // What is only there as an escape, a key, or a number is not what anybody sees.
    for nowhere in [r"\\u6570", r"\\/data", "tool_calls", r#""turn""#] {
        assert_eq!(found(&place, &[nowhere, CRAWLER]), [""; 0], "{nowhere}");
    }
    let pair = place.put_home(
        &format!("sessions/{API}/context/turn_002.json"),
        br#"{"a": "\ud83d\ude00 \ud83d half"}"#,
    );
    assert_eq!(
        found(&place, &["😀", API]),
        ["context/turn_002.json:1 😀 \u{fffd} half"]
    );
    std::fs::write(&pair, "{\"a\": [{\"b\": \"\\u0061bc\"}]}").unwrap();
    let hit = &hits(&place, &["abc"])[0];
    assert_eq!(hit["pointer"], "/a/0/b");
    assert_eq!((&hit["turn"], &hit["role"]), (&2.into(), &Value::Null));
    assert_eq!(hit["matches"], serde_json::json!([[0, 3]]));
    // Torn: its bytes are all there is.
    std::fs::write(&pair, "{\"a\": [{\"b\": \"\\u0061bc\", \"c\": \"abcd").unwrap();
    assert_eq!(found(&place, &["abc"]).len(), 1);
    assert_eq!(hits(&place, &["abc"])[0]["pointer"], Value::Null);
}

#[test]
fn where_in_a_turn() {
    let place = place();
    let hits = hits(&place, &["-i", "timeout", CRAWLER, "--in", "context"]);
    let told: Vec<_> = hits
        .iter()
        .map(|hit| (&hit["turn"], &hit["role"], &hit["pointer"], &hit["within"]))
        .collect();
    let value = |text: &str| Value::from(text);
    assert_eq!(
        told,
        [
            (
                &9.into(),
                &value("assistant"),
                &value("/content/0/text"),
                &1.into()
            ),
            (
                &9.into(),
                &value("assistant"),
                &value("/tool_calls/0/args"),
                &1.into()
            ),
            (&10.into(), &value("user"), &value("/content"), &2.into()),
        ]
    );
    for hit in &hits {
        let text = hit["text"].as_str().unwrap();
        let at = |n: usize| hit["matches"][0][n].as_u64().unwrap() as usize;
        assert!(text[at(0)..at(1)].eq_ignore_ascii_case("timeout"));
    }
}

#[test]
fn how_the_pattern_is_meant() {
    let place = place();
    let lines = |args: &[&str]| found(&place, args).len();
    assert_eq!(lines(&["timeout"]), 7);
    assert_eq!(lines(&["-i", "TIMEOUT"]), 8);
    assert_eq!(lines(&["-w", "timeout"]), 6);
    assert_eq!(lines(&["-w", "timeouts"]), 1);
    assert_eq!(lines(&["-F", "t.meout"]), 0);
    assert_eq!(lines(&["t.meout"]), 7);
    assert_eq!(lines(&["-F", "{\"s\""]), 1);
    assert_eq!(
        lines(&["s$", CRAWLER, "--in", "memory"]),
        1,
        "before a carriage return"
    );
    place
        .run(["search", "a(b"])
        .expect(2)
        .says(&["`a(b` is no regular expression: unclosed group", "-F"]);
    place
        .run(["search", "a\\nb"])
        .expect(2)
        .says(&["line break"]);
    place.run(["search", ""]).expect(2).says(&["empty"]);
    let error = place.run(["search", "[", "--json"]).expect(2).error();
    assert_eq!(
        (&error["kind"], &error["exit"]),
        (&"usage".into(), &2.into())
    );
}

#[test]
fn which_folders_and_which_sessions() {
    let place = place();
    let lines = |args: &[&str]| found(&place, &[&["timeout"], args].concat()).len();
    assert_eq!(lines(&["--in", "logs"]), 4);
    assert_eq!(lines(&["--in", "context"]), 2);
    assert_eq!(lines(&["--in", "memory,logs"]), 5);
    assert_eq!(lines(&["--in", "artifacts"]), 0, "it is binary");
    assert_eq!(lines(&["crawl"]), 3);
    assert_eq!(lines(&["@2", "crawl"]), 7);
    // Records of the session lie in no folder.
    assert_eq!(found(&place, &["identity-of"]).len(), 3);
    assert_eq!(
        found(
            &place,
            &["identity-of", "--in", "context,memory,artifacts,logs"]
        )
        .len(),
        0
    );
    place.run(["search", "x", "nothing_like_it"]).expect(1);
    place.run(["search", "x", "--in", "elsewhere"]).expect(2);
    // One that the index does not know is there all the same, and a broken index hides nothing.
    place.session("20240607_by_hand", 7);
    assert_eq!(found(&place, &["identity-of"]).len(), 4);
    place.put_home("index.json", "[");
    assert_eq!(found(&place, &["identity-of"]).len(), 4);
}

/// What is found, with all that differs between a folder and an archive taken out.
fn same(place: &Place, args: &[&str], archived: bool) -> Vec<Value> {
    let mut hits = hits(place, args);
    for hit in &mut hits {
        assert_eq!(hit["archived"], archived);
        hit["archived"] = Value::Null;
    }
    hits
}

#[test]
fn archives_are_searched_by_the_same_rules() {
    let place = place();
    let link = place.home().join(format!("sessions/{CRAWLER}/memory"));
    std::fs::hard_link(link.join("notes.md"), link.join("a.md")).unwrap();
    let asked: [&[&str]; 6] = [
        &["-i", "timeout"],
        &["数据"],
        &["-C", "2", "timeout"],
        &["--in", "memory", "."],
        &["-l", "timeout"],
        &["--count", "timeout"],
    ];
    let before = asked.map(|args| same(&place, &[args, &[CRAWLER, DATA]].concat(), false));
    assert!(before.iter().all(|hits| hits.len() > 1));
    place.archived(CRAWLER);
    place.archived(DATA);
    // Nobody asked for archives, and they are told of.
    place
        .run(["search", "timeout"])
        .expect(4)
        .says(&["2 archived sessions were not searched", "--archived"]);
    let archives = place.apart_from_own();
    for (args, before) in asked.iter().zip(&before) {
        assert_eq!(
            &same(&place, &[*args, &[CRAWLER, DATA]].concat(), true),
            before,
            "named: {args:?}"
        );
        let all = same(
            &place,
            &[*args, &["--archived", CRAWLER, DATA]].concat(),
            true,
        );
        assert_eq!(&all, before, "{args:?}");
    }
    assert_eq!(found(&place, &["timeout", "--archived"]).len(), 8);
    assert!(
        place
            .ok(["search", "timeout", "--archived"])
            .contains(&format!("{DATA}   archived   "))
    );
    assert_eq!(
        support::differences(&archives, &place.apart_from_own()),
        "",
        "nothing is unpacked"
    );
}

#[test]
fn an_archive_made_by_hand_and_one_that_is_damaged() {
    let place = place();
    place.packed_by_hand("20240101_old");
    assert_eq!(
        found(&place, &["by hand", "old"]),
        ["session.json:1 by hand"]
    );
    let packed = place.pack(DATA);
    std::fs::remove_dir_all(place.home().join("sessions").join(DATA)).unwrap();
    let path = place.home().join(format!("archive/{DATA}.tar.zst"));
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, packed.bytes);
    bytes[60] ^= 0x55;
    std::fs::write(&path, bytes).unwrap();
    let ran = place.run(["search", "timeout", "--archived"]);
    ran.expect(3)
        .says(&[&format!("archive/{DATA}.tar.zst could not be searched")]);
    assert!(
        ran.stdout.contains(CRAWLER),
        "the rest is searched: {ran:?}"
    );
    std::fs::write(&path, "no pack").unwrap();
    place
        .run(["search", "timeout", "数据清洗"])
        .expect(3)
        .says(&[&format!("archive/{DATA}.tar.zst")]);
}

#[test]
fn logs_that_were_cut_and_compressed() {
    let place = place();
    let text = "{\"m\": \"a \\u0074imeout\"}\n".repeat(3000);
    let at = format!("sessions/{API}");
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let packed = |mut gz: flate2::write::GzEncoder<Vec<u8>>| {
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap()
    };
    let gz = packed(gz);
    let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
    place.put_home(&format!("{at}/logs/run.jsonl-20240601T000000Z.gz"), &gz);
    place.put_home(&format!("{at}/logs/run.jsonl-20240602T000000Z.zst"), &zst);
    place.put_home(&format!("{at}/artifacts/run.gz"), &gz);
    let counts = |args: &[&str]| {
        let count = &hits(&place, &[&["--count", "a timeout", API], args].concat())[0];
        (
            count["lines"].as_u64().unwrap(),
            count["files"].as_u64().unwrap(),
        )
    };
    assert_eq!(counts(&[]), (6000, 2));
    assert_eq!(
        found(&place, &["timeout", API])[2999],
        "logs/run.jsonl-20240601T000000Z.gz:3000 a timeout"
    );
    place.archived(API);
    assert_eq!(counts(&[]), (6000, 2));
    place.put_home(
        "sessions/20240603_crawler/logs/torn.gz",
        &gz[..gz.len() / 2],
    );
    place
        .run(["search", "timeout", CRAWLER])
        .expect(3)
        .says(&["logs/torn.gz could not be searched"]);
}

#[test]
fn links_are_not_followed_and_what_can_not_be_read_is_named() {
    let place = place();
    let at = place.home().join(format!("sessions/{API}/artifacts"));
    place.put("secret/outside.txt", "timeout outside");
    symlink(place.path("secret"), at.join("folder")).unwrap();
    symlink(place.path("secret/outside.txt"), at.join("file.txt")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    place.run(["search", "outside"]).expect(4);
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root can read everything");
        return;
    }
    let file = place.put_home(&format!("sessions/{API}/artifacts/locked.txt"), "x");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = place.run(["search", "timeout"]);
    ran.expect(3)
        .says(&["artifacts/locked.txt could not be searched: permission denied"]);
    assert!(ran.stdout.contains("timeout a"));
}

#[test]
fn nothing_in_a_session_drives_the_terminal() {
    let place = place();
    place.put_home(
        &format!("sessions/{API}/artifacts/\u{1b}[31mred\u{202e}.txt"),
        "x \u{1b}]0;title\u{7} needle \u{9b}1m\r",
    );
    let name = OsStr::from_bytes(b"artifacts/\xff\x1b.log");
    let path = place.home().join("sessions").join(API).join(name);
    std::fs::write(path, b"needle \xff\xfe").unwrap();
    place.ok(["label", API, "--title", "a\u{1b}[2Jb", "-q"]);
    for args in [
        &["needle"][..],
        &["-l", "needle"],
        &["--count", "needle"],
        &["-C", "1", "needle"],
        &["needle", "--json"],
    ] {
        let shown = place.ok([&["search"], args].concat());
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r']), "{shown:?}");
        assert!(args.contains(&"--json") || !shown.contains(['\u{9b}', '\u{202e}']));
    }
    let hits = hits(&place, &["needle"]);
    assert!(
        hits.iter()
            .any(|hit| hit["path_bytes"] == "YXJ0aWZhY3RzL/8bLmxvZw=="),
        "{hits:?}"
    );
    // Colour is ours alone.
    let coloured = place.ok(["search", "needle", "--color", "always"]);
    assert!(
        coloured.contains("\u{1b}[1m\u{1b}[31mneedle\u{1b}[0m") && !coloured.contains("\u{1b}[2J")
    );
}

#[test]
fn a_long_line_is_shown_around_what_was_found() {
    let place = place();
    let line = format!("{}needle{}", "数据".repeat(20_000), "x".repeat(300_000));
    place.put_home(&format!("sessions/{API}/memory/long.md"), &line);
    let shown = place.ok(["search", "needle"]);
    assert!(
        shown.len() < 1000 && shown.contains("数据needlexxx"),
        "{shown}"
    );
    let hit = &hits(&place, &["needle"])[0];
    let (text, at) = (
        hit["text"].as_str().unwrap(),
        hit["matches"][0][0].as_u64().unwrap() as usize,
    );
    assert_eq!((&text[at..at + 6], &hit["cut"]), ("needle", &true.into()));
}

#[test]
fn more_than_is_kept_comes_out_in_order() {
    let place = place();
    // More hits than are held of one file, and more files than are one task.
    let line = |n: usize| format!("needle {n} {}\n", "x".repeat(100));
    let many: String = (0..30_000).map(line).collect();
    place.put_home(&format!("sessions/{DATA}/logs/many.log"), &many);
    for n in 0..700 {
        place.put_home(
            &format!("sessions/{DATA}/artifacts/n{n}.txt"),
            format!("needle {n}\n"),
        );
    }
    place.put_home(
        &format!("sessions/{CRAWLER}/memory/last.md"),
        "needle last\n",
    );
    place.date(DATA, 4);
    place.date(CRAWLER, 3);
    place.ok(["index", "-q"]);
    let check = || {
        let found = found(&place, &["needle"]);
        assert_eq!(found.len(), 30_701);
        for (n, told) in found[..700].iter().enumerate() {
            assert_eq!(*told, format!("artifacts/n{n}.txt:1 needle {n}"));
        }
        for n in [0, 9_999, 29_999] {
            assert_eq!(
                found[700 + n],
                format!("logs/many.log:{} {}", n + 1, line(n).trim_end())
            );
        }
        assert_eq!(found[30_700], "memory/last.md:1 needle last");
    };
    check();
    place.archived(DATA);
    let archived = |args: &[&str]| found(&place, &[args, &["--archived"]].concat());
    let hits = archived(&["needle"]);
    assert_eq!(hits.len(), 30_701);
    assert_eq!(hits[699], "artifacts/n699.txt:1 needle 699");
    assert_eq!(
        hits[700 + 29_999],
        format!("logs/many.log:30000 {}", line(29_999).trim_end())
    );
}

#[test]
fn whoever_stops_reading_ends_it() {
    let place = place();
    let many = "needle\n".repeat(500_000);
    for n in 0..20 {
        place.put_home(&format!("sessions/{DATA}/logs/{n}.log"), &many);
    }
    let mut child = place
        .command()
        .args(["search", "needle"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.starts_with(DATA), "{first}");
    let ended = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
}

#[test]
fn what_its_json_says_jq_reads() {
    if !has_tool("jq") {
        return;
    }
    let place = place();
    let command = format!(
        "{} search timeout --json | jq -r 'select(.role == \"user\") | .path'",
        env!("CARGO_BIN_EXE_wbhome")
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .env("HOME", place.user_home())
        .current_dir(place.root())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "context/turn_10.json\n"
    );
}

/// What an agent says to a tool is mostly JSON in a string of JSON.
#[test]
fn json_in_a_text_of_json_is_searched_as_people_see_it() {
    let place = place();
    let arguments = r#"{"cmd":"echo \u6570\u636e\u5e93 \/srv\/db","plain":"once"}"#;
    assert!(serde_json::from_str::<serde_json::Value>(&arguments.replace(r"\\", r"\")).is_ok());
    let arguments = arguments.replace(r"\\", r"\");
    let turn = serde_json::json!({"role": "assistant", "tool_calls": [{"arguments": arguments}]});
    place.put_home(
        &format!("sessions/{API}/context/turn_014.json"),
        turn.to_string(),
    );
    for pattern in ["数据库", "/srv/db", "echo 数据库 /srv/db", "once", "echo"] {
        let found = place.ok(["search", pattern, "--json"]);
        let hits: Vec<&str> = found.lines().collect();
        assert_eq!(hits.len(), 1, "{pattern}: {found}");
        let hit: serde_json::Value = serde_json::from_str(hits[0]).unwrap();
        assert_eq!(hit["pointer"], "/tool_calls/0/arguments", "{found}");
        assert_eq!(hit["role"], "assistant");
    }
}

/// What a person sees who searches on a terminal without colour.
fn on_terminal(place: &Place, columns: u16, pattern: &str, pager: &str) -> String {
    let env = [("PAGER", pager), ("NO_COLOR", "1")];
    place.on_terminal_with(columns, &env, &["search", pattern])
}

#[test]
fn a_line_is_as_wide_as_the_terminal_and_no_wider() {
    use unicode_width::UnicodeWidthStr;
    let place = place();
    let long = format!("{}needle {}", "数据清洗 ".repeat(50), "报告😀".repeat(50));
    let turn = serde_json::json!({"role": "assistant", "content": long}).to_string();
    place.put_home(&format!("sessions/{API}/context/turn_014.json"), turn);
    place.put_home(
        &format!("sessions/{API}/artifacts/a/very/deep/folder/for/目录/x.txt"),
        &long,
    );
    for columns in [40, 80, 200] {
        let shown = on_terminal(&place, columns, "needle", "cat");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(
            lines[0].starts_with(API) && lines[0].contains(" days ago"),
            "{shown}"
        );
        for line in &lines[1..] {
            assert!(line.contains("needle") && line.contains('…'), "{shown}");
            assert!(
                (columns - 3..=columns).contains(&(line.width() as u16)),
                "{columns}: {} {line}",
                line.width()
            );
        }
    }
    place.ok(["label", API, "--title", &"标题".repeat(100), "-q"]);
    assert_snapshot!(on_terminal(&place, 60, "needle", "cat"), @r"
    20240605_api_refactor   10 days ago   标题标题标题标题标题…
      …/a/very/deep/folder/for/目录/x.txt  1: …清洗 needle 报告…
      context/turn_014.json  assistant: …据清洗 needle 报告😀报…
    ");
}

#[test]
fn results_go_through_a_pager() {
    let place = place();
    let many = "needle\n".repeat(100_000);
    place.put_home(&format!("sessions/{DATA}/logs/many.log"), &many);
    let shown = on_terminal(&place, 80, "needle", "head -n 2");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("logs/many.log  1: needle"), "{shown}");
    let shown = on_terminal(&place, 80, "timeout", "wbhome-has-no-such-pager");
    assert!(
        shown.contains("can not be started") && shown.contains("timeout a"),
        "{shown}"
    );
}
