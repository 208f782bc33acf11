//! `wbhome diff`, on commits that git itself has made.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::process::Command;

use support::home::HOME;
use support::{Place, has_tool};

const TURN: &str = "sessions/20240604_数据清洗/context/turn_001.json";

fn turn(content: &str) -> String {
    serde_json::json!({"turn": 1, "messages": [
        {"role": "user", "content": "清洗数据"},
        {"role": "assistant", "content": content},
    ]})
    .to_string()
}

fn with_turn(content: &str) -> Place {
    let place = Place::with_sessions();
    place.put_home(TURN, turn(content));
    place.commit_on(6, "第一次");
    place
}

/// What is shown below the line that tells the commits apart.
fn body(shown: &str) -> &str {
    shown.split_once('\n').unwrap().1
}

#[test]
fn a_changed_word_of_a_long_text_is_a_changed_line() {
    if !has_tool("git") {
        return;
    }
    let text = |word: &str| {
        let lines: Vec<String> = (1..40).map(|n| format!("第{n}行")).collect();
        lines.join("\n").replace("第20行", word)
    };
    let place = with_turn(&text("这是旧的一行"));
    place.put_home(TURN, turn(&text("这是新的一行")));
    let shown = place.ok(["diff", "数据"]);
    assert!(
        shown.starts_with("20240604_数据清洗  since ")
            && shown.contains(", 2024-06-06 12:00 (9 days ago): 1 changed\n"),
        "{shown}"
    );
    assert_eq!(
        body(&shown),
        "\nchanged  context/turn_001.json   487 B → 487 B\n@@ messages[1].content\n     第17行\n     第18行\n     第19行\n\
         -    这是旧的一行\n+    这是新的一行\n     第21行\n     第22行\n     第23行\n"
    );
}

#[test]
fn a_changed_sentence_of_one_long_line_is_a_changed_line() {
    if !has_tool("git") {
        return;
    }
    let text = |word: &str| {
        format!(
            "今天我们把数据从网盘搬到了本地文件夹里。之后每个会话都有自己的文件夹，不会再丢失{word}！你还记得上一次同步时丢了哪一轮吗？是第四轮。"
        )
    };
    let place = with_turn(&text("内容"));
    place.put_home(TURN, turn(&text("任何东西")));
    let shown = place.ok(["diff", "数据/context"]);
    let changed: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .collect();
    assert_eq!(
        changed,
        [
            "-    之后每个会话都有自己的文件夹，不会再丢失内容！↩",
            "+    之后每个会话都有自己的文件夹，不会再丢失任何东西！↩"
        ]
    );
}

#[test]
fn formatting_alone_says_so_and_a_torn_file_says_why() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("a");
    place.put_home(TURN, "{\"messages\": [{\"content\": \"清洗数据\", \"role\": \"user\"},\n {\"role\":\"assistant\",\"content\":\"\\u0061\"}], \"turn\": 1}");
    let shown = place.ok(["diff", "数据"]);
    assert!(shown.contains("only its formatting differs"), "{shown}");
    assert!(!shown.contains("\n-") && !shown.contains("\n+"), "{shown}");
    place.put_home(TURN, "{\"messages\": [{\"role\": \"us");
    let shown = place.ok(["diff", "数据"]);
    assert!(
        shown.contains("the newer version is no whole JSON: EOF"),
        "{shown}"
    );
    assert!(
        shown.contains("\n+{\"messages\": [{\"role\": \"us\n\\ no line break"),
        "{shown}"
    );
    // It is JSON, and no text can be made of it.
    for whole in [
        format!("{}{}", "[".repeat(200), "]".repeat(200)),
        "{\"turn\": 1, \"content\": \"\\ud83d\"}".to_owned(),
    ] {
        place.put_home(TURN, whole);
        let shown = place.ok(["diff", "数据"]);
        assert!(
            shown.contains("the newer version can not be shown value by value"),
            "{shown}"
        );
    }
    place.put_home(TURN, format!("\u{feff}{}", turn("a")));
    let shown = place.ok(["diff", "数据"]);
    assert!(
        shown.contains("  it begins with a byte order mark now\n"),
        "{shown}"
    );
    // A digit is a difference.
    place.put_home(TURN, turn("a").replace("\"turn\":1", "\"turn\":1.0"));
    let shown = place.ok(["diff", "数据"]);
    assert!(shown.contains("-turn: 1\n+turn: 1.0\n"), "{shown}");
}

#[test]
fn new_deleted_and_binary_files_and_what_no_commit_would_take() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("a");
    place.put_home(
        "sessions/20240604_数据清洗/artifacts/data.bin",
        b"a\0b".repeat(4),
    );
    place.commit_on(7, "binary");
    place.put_home(
        "sessions/20240604_数据清洗/artifacts/data.bin",
        b"a\0c".repeat(5),
    );
    place.put_home("sessions/20240604_数据清洗/artifacts/new.bin", b"a\0");
    place.put_home("sessions/20240604_数据清洗/logs/run.log", "line\n");
    place.put_home(
        "sessions/20240604_数据清洗/memory/new.md",
        "one\n\u{1b}[31mtwo\u{202e}\n",
    );
    std::fs::remove_file(place.home().join(TURN)).unwrap();
    let shown = place.ok(["diff", "数据"]);
    assert!(shown.contains("1 changed, 1 added, 1 deleted"), "{shown}");
    assert!(
        shown.contains("changed  artifacts/data.bin   binary, 12 B → 15 B\n"),
        "{shown}"
    );
    assert!(
        shown.contains("added    memory/new.md   16 B\n+one\n+\\x1b[31mtwo\\u{202e}\n"),
        "{shown}"
    );
    assert!(shown.contains("deleted  context/turn_001.json"), "{shown}");
    let diff = place.json(["diff", "数据"]);
    assert_eq!(diff["files"].as_array().unwrap().len(), 3);
    assert_eq!(diff["files"][0]["form"], "binary");
    assert_eq!(diff["files"][2]["hunks"][0]["lines"][0]["kind"], "new");
}

#[test]
fn between_moments_and_names_and_before_the_first() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("eins");
    place.put_home(TURN, turn("zwei"));
    place.commit_on(8, "zweite");
    place.put_home(TURN, turn("drei"));
    for (args, old, new) in [
        (vec!["2024-06-07"], "eins", "drei"),
        (vec!["HEAD"], "zwei", "drei"),
        (vec!["8d", "7d"], "eins", "zwei"),
        (vec!["main~1", "2024-06-08 12:00"], "eins", "zwei"),
    ] {
        let shown = place.ok([["diff", "数据"].as_slice(), &args].concat());
        assert!(
            shown.contains(&format!(
                "-messages[1].content: \"{old}\"\n+messages[1].content: \"{new}\"\n"
            )),
            "{args:?}: {shown}"
        );
    }
    let shown = place.ok(["diff", "数据", "7d", "HEAD"]);
    assert!(
        shown.starts_with("Nothing of 20240604_数据清洗 differs from "),
        "{shown}"
    );
    place
        .run(["diff", "数据", "2024-06-06"])
        .expect(1)
        .says(&["no commit is that old: the first was made 2024-06-06 12:00"]);
    place
        .run(["diff", "数据", "nonsense"])
        .expect(1)
        .says(&["`nonsense` is neither a commit of the repository nor a moment"]);
    place
        .run(["diff", "数据/none.md"])
        .expect(1)
        .says(&["neither side has none.md", "wbhome history"]);
}

#[test]
fn a_line_of_jsonl_that_moves_is_the_same_line() {
    if !has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    let path = "sessions/20240603_crawler/context/log.jsonl";
    place.put_home(path, "{\"n\": 1}\n{\"n\": 2}\n");
    place.commit_on(6, "x");
    place.put_home(path, "{\"n\":1}\n{\"n\": 2}\n{\"n\": 3}\n{\"to");
    let shown = place.ok(["diff", "crawler"]);
    assert!(
        shown.ends_with(" ---\n n: 2\n+---\n+n: 3\n+---\n+torn: {\"to\n"),
        "{shown}"
    );
}

#[test]
fn git_apply_takes_the_patch() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("eins\nzwei");
    let odd = "sessions/20240604_数据清洗/memory/a b\"\\c.md";
    place.put_home(odd, "one\ntwo");
    place.put_home("sessions/20240604_数据清洗/memory/gone.md", "gone\n");
    place.put_home("sessions/20240604_数据清洗/artifacts/run.sh", "#!/bin/sh\n");
    place.put_home("sessions/20240604_数据清洗/artifacts/data.bin", b"a\0b");
    let first = place.commit_on(7, "more");
    place.git_on(
        7,
        &["clone", "-q", ".", place.path("copy").to_str().unwrap()],
    );
    place.put_home(TURN, turn("eins\ndrei"));
    place.put_home(odd, "one\r\ntwo\nthree");
    place.put_home("sessions/20240604_数据清洗/memory/空 .md", "new\u{1b}\n");
    place.put_home("sessions/20240604_数据清洗/memory/empty.md", "");
    place.put_home("sessions/20240604_数据清洗/artifacts/data.bin", b"a\0c");
    std::fs::remove_file(
        place
            .home()
            .join("sessions/20240604_数据清洗/memory/gone.md"),
    )
    .unwrap();
    std::os::unix::fs::symlink(
        "run.sh",
        place
            .home()
            .join("sessions/20240604_数据清洗/artifacts/link"),
    )
    .unwrap();
    let script = place
        .home()
        .join("sessions/20240604_数据清洗/artifacts/run.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = place
        .command()
        .args(["diff", "数据", &first, "--raw"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("data.bin is not in the patch: it is binary")
    );
    let patch = place.put("patch", &output.stdout);
    let applied = Command::new("git")
        .arg("-C")
        .arg(place.path("copy"))
        .args(["apply", "--whitespace=nowarn"])
        .arg(&patch)
        .output()
        .unwrap();
    assert!(
        applied.status.success(),
        "{applied:?}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let compared = Command::new("diff")
        .args(["-r", "--no-dereference", "-x", "data.bin"])
        .arg(place.path(format!("{HOME}/sessions/20240604_数据清洗")))
        .arg(place.path("copy/sessions/20240604_数据清洗"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    // Folders without a file are not git's.
    let differ: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with("Only in") || !l.ends_with(": logs"))
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert_eq!(
        place.mode("copy/sessions/20240604_数据清洗/artifacts/run.sh") & 0o111,
        0o111
    );
}

/// As git does it: one goes, and the other comes.
#[test]
fn git_apply_takes_a_link_that_was_a_file() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("eins");
    let artifacts = place.home().join("sessions/20240604_数据清洗/artifacts");
    place.put_home("sessions/20240604_数据清洗/artifacts/a", "text\n");
    std::os::unix::fs::symlink("a", artifacts.join("b")).unwrap();
    let first = place.commit_on(7, "more");
    place.git_on(
        7,
        &["clone", "-q", ".", place.path("copy").to_str().unwrap()],
    );
    for name in ["a", "b"] {
        std::fs::remove_file(artifacts.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("b", artifacts.join("a")).unwrap();
    place.put_home("sessions/20240604_数据清洗/artifacts/b", "text\n");
    let output = place
        .command()
        .args(["diff", "数据", &first, "--raw"])
        .output()
        .unwrap();
    let patch = place.put("patch", &output.stdout);
    let applied = Command::new("git")
        .arg("-C")
        .arg(place.path("copy"))
        .arg("apply")
        .arg(&patch)
        .output()
        .unwrap();
    assert!(
        applied.status.success(),
        "{applied:?}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let copy = place.path("copy/sessions/20240604_数据清洗/artifacts");
    let link = std::fs::read_link(copy.join("a")).unwrap();
    assert_eq!(link.to_str(), Some("b"));
    assert!(std::fs::read_link(copy.join("b")).is_err());
    assert_eq!(std::fs::read_to_string(copy.join("b")).unwrap(), "text\n");
}

/// What a person sees on a terminal with a pager.
fn paged(place: &Place, pager: &str) -> String {
    let wbhome = place.command();
    let line = format!("{} diff 数据", wbhome.get_program().to_str().unwrap());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    let set = wbhome.get_envs();
    script.envs(set.filter_map(|(name, value)| Some((name, value?))));
    script.current_dir(wbhome.get_current_dir().unwrap_or(&place.home()));
    script.env_remove("WBHOME_PAGER").env("PAGER", pager);
    let output = script.stdin(std::process::Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_pager_that_does_not_work_hides_nothing() {
    if !has_tool("git") || !has_tool("script") {
        return;
    }
    let place = with_turn("eins");
    place.put_home(TURN, turn("zwei"));
    let shown = paged(&place, "wbhome-has-no-such-pager");
    assert!(
        shown.contains("can not be started") && shown.contains("zwei"),
        "{shown}"
    );
    let shown = paged(&place, "false");
    assert!(
        shown.contains("the pager `false` failed (exit code 1)"),
        "{shown}"
    );
    let shown = paged(&place, "head -n 1");
    assert!(
        shown.contains("20240604") && !shown.contains("warning") && !shown.contains("zwei"),
        "{shown}"
    );
}

/// Nobody reads the rest, and a session can not choose the pager.
#[test]
fn a_pipe_gets_no_pager() {
    if !has_tool("git") {
        return;
    }
    let place = with_turn("eins");
    place.put_home(TURN, turn("zwei"));
    let ran = place.run_with(&[("PAGER", "touch paged; cat")], &["diff", "数据"]);
    ran.expect(0);
    assert!(!place.path("paged").exists());
}
