//! `wbhome history`, on commits that git itself has made.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use support::home::HOME;
use support::{Place, has_tool};

/// Three sessions with a history of four days.
fn with_history() -> Place {
    let place = Place::with_sessions();
    place.commit_on(6, "第一次");
    place.put_home("sessions/20240604_数据清洗/context/turn_002.json", "{}\n");
    place.put_home("sessions/20240604_数据清洗/memory/笔记.md", "一\n");
    place.commit_on(7, "1 session");
    place.put_home("sessions/20240603_crawler/memory/notes.md", "x\n");
    place.commit_on(8, "another session");
    place.put_home("sessions/20240604_数据清洗/memory/笔记.md", "二\n");
    std::fs::remove_file(
        place
            .home()
            .join("sessions/20240604_数据清洗/context/turn_002.json"),
    )
    .unwrap();
    place.commit_on(9, "4 turns");
    place
}

/// The text without names of commits, which are the same only as long as git is.
fn without_ids(text: &str) -> String {
    let line = |line: &str| match line.split_once("  ") {
        Some((id, rest)) if id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
            format!("[ID]  {rest}\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn the_commits_that_touched_a_session_and_what_of_it() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    let shown = place.ok(["history", "数据"]);
    assert_eq!(
        without_ids(&shown),
        "[ID]  2024-06-09 12:00, 6 days ago   4 turns\n    -turn_002, ~memory/笔记.md\n\
         [ID]  2024-06-07 12:00, 8 days ago   1 session\n    +turn_002, +memory/笔记.md\n\
         [ID]  2024-06-06 12:00, 9 days ago   第一次\n    +turn_001, +session.json\n"
    );
    let shown = place.ok(["history", "-v", "数据/memory", "--limit", "1"]);
    assert_eq!(
        without_ids(&shown),
        "[ID]  2024-06-09 12:00, 6 days ago   4 turns\n    changed  memory/笔记.md   4 B → 4 B\n… 1 more: --limit 2\n"
    );
    let log = place.json(["history", "crawler", "--limit", "0"]);
    assert_eq!(log["total"], 2);
    let notes = &log["commits"][0]["changes"][0];
    assert_eq!(
        (&notes["path"], &notes["change"], &notes["after"]["bytes"]),
        (&"memory/notes.md".into(), &"added".into(), &2.into())
    );
    assert!(notes["before"].is_null());
}

#[test]
fn what_never_was_there_and_what_is_not_committed_yet() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place
        .run(["history", "crawler/memory/none.md"])
        .expect(1)
        .says(&["no commit has held memory/none.md of 20240603_crawler"]);
    place
        .run(["history", "nobody"])
        .expect(1)
        .says(&["there is no session `nobody`"]);
    place.session("20240610_new", 10);
    let shown = place.ok(["history", "20240610_new"]);
    assert_eq!(
        shown,
        "No commit holds 20240610_new yet.  Next: wbhome commit 20240610_new\n"
    );
}

#[test]
fn a_home_without_commits_says_so() {
    if !has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    std::fs::remove_dir_all(place.home().join(".git")).ok();
    place
        .run(["history", "crawler"])
        .expect(1)
        .says(&["no history yet", "wbhome commit"]);
    place.git_on(6, &["init", "-q", "-b", "main"]);
    let shown = place.ok(["history", "crawler"]);
    assert!(shown.contains("No commit holds"), "{shown}");
}

/// A branch that was only just begun: the commits of the others are there.
#[test]
fn a_branch_without_a_commit_names_those_that_have_one() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place.git(&["branch", "-M", "main"]);
    place.git(&["symbolic-ref", "HEAD", "refs/heads/neu"]);
    let git = ["restore", "数据", "--from", "git"];
    for args in [&["history", "数据"][..], &["diff", "数据"], &git] {
        let ran = place.run(args);
        ran.expect(1)
            .says(&["the branch neu has no commit yet", "these have: main"]);
    }
    place.put_home("sessions/20240604_数据清洗/memory/笔记.md", "三\n");
    let shown = place.ok(["diff", "数据", "main"]);
    assert!(shown.contains("-二") && shown.contains("+三"), "{shown}");
    place.put_home("sessions/20240604_数据清洗/memory/笔记.md", "一\n");
    place.ok(["restore", "数据/memory", "--from", "git", "--at", "main"]);
    assert_eq!(
        place.home_text("sessions/20240604_数据清洗/memory/笔记.md"),
        "二\n"
    );
}

/// A commit that holds one of several does not decide which is meant.
#[test]
fn several_that_may_be_meant_are_named() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place.session("20240610_crawler_two", 10);
    let git = ["restore", "crawler", "--from", "git"];
    for args in [&["history", "crawler"][..], &["diff", "crawler"], &git] {
        place.run(args).expect(1).says(&[
            "may mean 2 sessions",
            "20240603_crawler",
            "20240610_crawler_two",
        ]);
    }
}

#[test]
fn one_that_is_removed_or_gone_has_a_history() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place.ok(["rm", "crawler", "-y"]);
    let shown = place.ok(["history", "crawler"]);
    assert!(shown.contains("another session"), "{shown}");
    // Gone without a trace, index and all.
    std::fs::remove_dir_all(place.home().join("sessions/20240605_api_refactor")).unwrap();
    place.put_home("index.json", "[]\n");
    place.commit_on(10, "gone");
    let shown = place.ok(["history", "api_ref"]);
    assert!(
        shown.contains("gone") && shown.contains("第一次"),
        "{shown}"
    );
}

#[test]
fn a_renamed_session_goes_on_under_its_former_name() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place.ok(["mv", "数据", "20240604_清洗2"]);
    // Before the rename is committed, too.
    let shown = place.ok(["history", "清洗2"]);
    assert!(shown.contains("第一次"), "{shown}");
    place.commit_on(10, "renamed");
    place.put_home("sessions/20240604_清洗2/memory/笔记.md", "三\n");
    place.commit_on(11, "after");
    let shown = without_ids(&place.ok(["history", "清洗2"]));
    let subjects: Vec<&str> = shown.lines().filter(|l| l.starts_with('[')).collect();
    assert_eq!(subjects.len(), 5, "{shown}");
    assert!(shown.contains("was 20240604_数据清洗"), "{shown}");
    assert!(subjects[4].contains("第一次"), "{shown}");
    let log = place.json(["history", "清洗2/memory/笔记.md"]);
    let names: Vec<&str> = log["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| commit["session"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "20240604_清洗2",
            "20240604_清洗2",
            "20240604_数据清洗",
            "20240604_数据清洗"
        ]
    );
}

#[test]
fn a_merge_is_told_only_where_it_differs_from_all() {
    if !has_tool("git") {
        return;
    }
    let place = with_history();
    place.git_on(10, &["switch", "-q", "-c", "side", "HEAD~1"]);
    place.put_home("sessions/20240603_crawler/memory/side.md", "side\n");
    place.commit_on(10, "on the side");
    place.git_on(11, &["switch", "-q", "main"]);
    place.git_on(11, &["merge", "-q", "--no-edit", "side"]);
    let shown = place.ok(["history", "crawler"]);
    assert!(shown.contains("on the side"), "{shown}");
    assert!(!shown.contains("Merge"), "{shown}");
}

/// A long history of many files is compared by the names of trees alone.
#[test]
fn five_hundred_commits_of_a_wide_home_take_no_time() {
    if !has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    for session in 0..400 {
        let id = format!("20240601_wide_{session:03}");
        for turn in 0..5 {
            place.put_home(
                &format!("sessions/{id}/context/turn_{turn:03}.json"),
                format!("{session} {turn}"),
            );
        }
    }
    place.commit_on(6, "wide");
    let mut stream = String::new();
    for n in 0..500 {
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter w <w@x> {} +0000\ndata 3\nlog\n{}M 100644 inline sessions/20240603_crawler/memory/n.md\ndata {}\n{n}\n",
            1_717_700_000 + n * 60,
            if n == 0 { "from refs/heads/main^0\n" } else { "" },
            n.to_string().len(),
        ));
    }
    std::fs::write(place.path("stream"), stream).unwrap();
    let status = std::process::Command::new("git")
        .args([
            "-C",
            place.path(HOME).to_str().unwrap(),
            "fast-import",
            "--quiet",
        ])
        .stdin(std::fs::File::open(place.path("stream")).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let begun = std::time::Instant::now();
    let log = place.json(["history", "crawler"]);
    let took = begun.elapsed();
    assert_eq!(log["total"], 501);
    assert_eq!(log["commits"].as_array().unwrap().len(), 20);
    assert!(took.as_secs_f64() < 3.0, "{took:?}");
}
