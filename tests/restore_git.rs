//! `wbhome restore --from git`, from commits that git itself has made.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use serde_json::json;
use support::home::HOME;
use support::{Place, Ran, differences, has_tool};

const NOTES: &str = "sessions/20240604_数据清洗/memory/笔记.md";
const TURN: &str = "sessions/20240604_数据清洗/context/turn_001.json";

/// Two commits of a session: one on the 6th, one on the 8th.
fn with_commits() -> Place {
    let place = Place::with_sessions();
    place.put_home(NOTES, "一\n");
    place.put_home("sessions/20240604_数据清洗/artifacts/run.sh", "#!/bin/sh\n");
    let script = place
        .home()
        .join("sessions/20240604_数据清洗/artifacts/run.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(
        "run.sh",
        place
            .home()
            .join("sessions/20240604_数据清洗/artifacts/link"),
    )
    .unwrap();
    place.commit_on(6, "第一次");
    place.put_home(NOTES, "二\n");
    place.commit_on(8, "第二次");
    place
}

/// The act that a run names to take it back.
fn act(ran: &Ran) -> String {
    let rest = ran.stdout.split("wbhome restore ").nth(1).unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

#[test]
fn what_was_lost_or_torn_comes_back_and_can_be_taken_back() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.put_home("sessions/20240604_数据清洗/memory/new.md", "stays\n");
    std::fs::remove_dir_all(place.home().join("sessions/20240604_数据清洗/artifacts")).unwrap();
    std::fs::remove_file(place.home().join(TURN)).unwrap();
    let before = place.apart_from_own();
    let plan = place.run(["restore", "数据", "--from", "git", "-n"]);
    plan.expect(0);
    assert!(
        plan.stdout
            .contains("This would be done. Nothing was changed.")
    );
    assert_eq!(place.apart_from_own(), before);
    let ran = place.run(["restore", "数据", "--from", "git"]);
    ran.expect(0);
    let told: String = ran
        .stdout
        .lines()
        .skip(1)
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(
        told,
        "  back     sessions/20240604_数据清洗/artifacts/link\n  back     sessions/20240604_数据清洗/artifacts/run.sh\n  \
         back     sessions/20240604_数据清洗/context/turn_001.json\n3 files back, 2 as in the commit already, 1 not in the commit, which stay.\n\
         To take it back: wbhome restore 20240615T120000Z --from trash\n"
    );
    assert_eq!(place.home_text(TURN), "{\"turn\": 1, \"text\": \"一\"}\n");
    assert_eq!(
        place.mode(format!(
            "{HOME}/sessions/20240604_数据清洗/artifacts/run.sh"
        )),
        0o700
    );
    let link = std::fs::read_link(
        place
            .home()
            .join("sessions/20240604_数据清洗/artifacts/link"),
    );
    assert_eq!(link.unwrap().to_str(), Some("run.sh"));
    assert_eq!(place.git_on(9, &["diff", "--name-only"]), "");
    place.ok(["restore", &act(&ran), "--from", "trash"]);
    let mut after = place.apart_from_own();
    let mut before = before;
    // Folders were written to.
    for tree in [&mut before, &mut after] {
        tree.retain(|name, entry| entry.kind != 'd' && !name.starts_with(b".git/"));
    }
    assert_eq!(differences(&before, &after), "");
}

#[test]
fn an_older_version_takes_the_place_of_one_that_a_commit_holds() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    let ran = place.run([
        "restore",
        "数据/memory/笔记.md",
        "--from",
        "git",
        "--at",
        "2024-06-07",
    ]);
    ran.expect(0);
    assert_eq!(place.home_text(NOTES), "一\n");
    // That is in a commit as well, so it may be replaced in turn.
    place.ok(["restore", "数据/memory", "--from", "git"]);
    assert_eq!(place.home_text(NOTES), "二\n");
    let again = place.ok(["restore", "数据", "--from", "git"]);
    assert!(
        again.contains("0 files back, 5 as in the commit already"),
        "{again}"
    );
    assert!(!again.contains("trash"), "{again}");
}

#[test]
fn nothing_that_no_commit_holds_is_replaced_without_force() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.put_home(NOTES, "三, and nowhere else\n");
    std::fs::remove_file(place.home().join(TURN)).unwrap();
    let before = place.apart_from_own();
    place
        .run(["restore", "数据", "--from", "git"])
        .expect(1)
        .says(&[
            "1 file holds what no commit holds, so nothing was changed",
            NOTES,
            "wbhome commit 20240604_数据清洗",
            "--force",
        ]);
    assert_eq!(place.apart_from_own(), before);
    // Something that git has only been told of is in no commit either.
    place.git_on(9, &["add", "sessions"]);
    place.run(["restore", "数据", "--from", "git"]).expect(1);
    let ran = place.run(["restore", "数据", "--from", "git", "--force"]);
    ran.expect(0);
    assert_eq!(place.home_text(NOTES), "二\n");
    place.ok(["restore", &act(&ran), "--from", "trash"]);
    assert_eq!(place.home_text(NOTES), "三, and nowhere else\n");
    assert!(!place.home().join(TURN).exists());
}

#[test]
fn a_removed_session_and_one_that_nobody_knows_any_more_are_in_the_index_again() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.ok(["label", "数据", "--tag", "重要", "--project", "alpha"]);
    place.commit_on(9, "labels");
    place.ok(["rm", "数据", "-y"]);
    place.ok(["restore", "20240604_数据清洗", "--from", "git"]);
    let entry = |place: &Place| {
        let index = place.index();
        let found = index
            .as_array()
            .unwrap()
            .iter()
            .find(|e| e["id"] == "20240604_数据清洗");
        found.cloned()
    };
    assert_eq!(entry(&place).unwrap()["status"], "active");
    assert!(
        place
            .home()
            .join("projects/alpha/20240604_数据清洗")
            .exists()
    );
    // Lost with its entry: the labels come from the commit.
    std::fs::remove_dir_all(place.home().join("sessions/20240604_数据清洗")).unwrap();
    place.put_home("index.json", "[]\n");
    place.ok(["restore", "数据", "--from", "git"]);
    assert_eq!(entry(&place).unwrap()["tags"], json!(["重要"]));
    assert_eq!(place.home_text(NOTES), "二\n");
    // Missing in the index.
    std::fs::remove_dir_all(place.home().join("sessions/20240604_数据清洗")).unwrap();
    place.ok(["index", "-q"]);
    assert_eq!(entry(&place).unwrap()["status"], "missing");
    place.ok(["restore", "数据", "--from", "git"]);
    assert_eq!(entry(&place).unwrap()["status"], "active");
}

#[test]
fn taking_it_back_gives_the_index_back_as_it_was() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    let folder = place.home().join("sessions/20240604_数据清洗");
    let lost = |place: &Place| {
        std::fs::remove_dir_all(&folder).unwrap();
        place.ok(["index", "-q"]);
    };
    let unknown = |place: &Place| {
        place.put_home("index.json", "[]\n");
    };
    let removed = |place: &Place| {
        place.ok(["restore", "20240604_数据清洗", "--from", "git"]);
        place.ok(["rm", "数据", "-y"]);
    };
    let ways: [&dyn Fn(&Place); 3] = [&lost, &removed, &unknown];
    for way in ways {
        way(&place);
        let before = place.home_text("index.json");
        let ran = place.run(["restore", "20240604_数据清洗", "--from", "git"]);
        ran.expect(0);
        assert_ne!(place.home_text("index.json"), before);
        assert_eq!(place.home_text(NOTES), "二\n");
        place.ok(["restore", &act(&ran), "--from", "trash"]);
        assert_eq!(place.home_text("index.json"), before);
        assert!(!folder.exists());
    }
}

#[test]
fn one_that_was_renamed_by_hand_is_not_indexed_as_another() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    let sessions = place.home().join("sessions");
    std::fs::rename(
        sessions.join("20240604_数据清洗"),
        sessions.join("20240604_清洗2"),
    )
    .unwrap();
    place.commit_on(9, "renamed");
    std::fs::remove_file(sessions.join("20240604_清洗2/memory/笔记.md")).unwrap();
    let index = place.home_text("index.json");
    place.ok(["restore", "清洗2/memory", "--from", "git"]);
    assert_eq!(
        place.home_text("sessions/20240604_清洗2/memory/笔记.md"),
        "二\n"
    );
    assert_eq!(place.home_text("index.json"), index);
    let told = place.ok(["index"]);
    assert!(
        told.contains("renamed    20240604_数据清洗 → 20240604_清洗2"),
        "{told}"
    );
}

#[test]
fn one_that_the_last_commit_does_not_hold_any_more() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.git_on(9, &["rm", "-rq", "sessions/20240604_数据清洗"]);
    place.commit_on(9, "gone");
    let ran = place.run(["restore", "20240604_数据清洗", "--from", "git"]);
    ran.expect(1)
        .says(&["does not hold sessions/20240604_数据清洗\n", "--at"]);
    assert!(!ran.stderr.contains("清洗/"), "{ran:?}");
}

#[test]
fn what_is_in_the_way_or_at_work_is_left_alone() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    let folder = place.home().join("sessions/20240604_数据清洗/memory");
    std::fs::remove_dir_all(&folder).unwrap();
    place.put_home("sessions/20240604_数据清洗/memory", "a file");
    place
        .run(["restore", "数据", "--from", "git", "--force"])
        .expect(1)
        .says(&["there is a file now where a folder would have to be"]);
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir_all(place.home().join(NOTES)).unwrap();
    place
        .run(["restore", "数据", "--from", "git", "--force"])
        .expect(1)
        .says(&["there is a folder now where a file would have to be"]);
    std::fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/tmp", &folder).unwrap();
    place
        .run(["restore", "数据", "--from", "git", "--force"])
        .expect(1)
        .says(&["there is a symbolic link now where a folder would have to be"]);
    std::fs::remove_file(&folder).unwrap();
    let cwd = place.home().join("sessions/20240604_数据清洗");
    place.at_work("me/.workbuddy", cwd, json!({}));
    place
        .run(["restore", "数据", "--from", "git"])
        .expect(1)
        .says(&["at work in it", "end its session first"]);
    assert!(!place.home().join(NOTES).exists());
}

#[test]
fn what_the_commit_does_not_hold_and_what_is_archived() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place
        .run(["restore", "数据/none.md", "--from", "git"])
        .expect(1)
        .says(&[
            "does not hold sessions/20240604_数据清洗/none.md",
            "wbhome history",
        ]);
    place
        .run(["restore", "数据", "--from", "trash", "--at", "HEAD"])
        .expect(2)
        .says(&["--at is a matter of --from git and --from backup alone"]);
    std::fs::remove_dir_all(place.home().join("sessions/20240604_数据清洗")).unwrap();
    place.put_home("archive/20240604_数据清洗.tar.zst", "x");
    place.ok(["index", "-q"]);
    place
        .run(["restore", "数据", "--from", "git"])
        .expect(1)
        .says(&["is archived", "--force"]);
    place.ok(["restore", "数据", "--from", "git", "--force"]);
    assert_eq!(place.home_text(NOTES), "二\n");
}

#[test]
fn a_renamed_session_gets_what_it_held_under_its_former_name() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.ok(["mv", "数据", "20240604_清洗2"]);
    place.commit_on(9, "renamed");
    let shown = place.ok([
        "restore",
        "清洗2/memory",
        "--from",
        "git",
        "--at",
        "2024-06-07",
    ]);
    assert!(
        shown.contains("It was called 20240604_数据清洗 then."),
        "{shown}"
    );
    assert_eq!(
        place.home_text("sessions/20240604_清洗2/memory/笔记.md"),
        "一\n"
    );
    assert!(!place.home().join("sessions/20240604_数据清洗").exists());
}

/// Killed anywhere, the next command completes it, and nothing is lost.
#[cfg(feature = "failpoints")]
#[test]
fn killed_in_the_middle_the_next_command_completes_it() {
    if !has_tool("git") {
        return;
    }
    for point in [
        "journal.begun",
        "mend.put-away",
        "mend.brought-back",
        "mend.brought-back:2",
        "journal.done",
    ] {
        let place = with_commits();
        std::fs::remove_file(place.home().join(TURN)).unwrap();
        let args = ["restore", "数据", "--from", "git", "--at", "2024-06-07"];
        let killed = place.run_with(&[("WBHOME_FAILPOINT", point)], &args);
        assert_eq!(killed.code, None, "{point}: {killed:?}");
        place.ok(["index", "-q"]);
        assert_eq!(place.home_text(NOTES), "一\n", "{point}");
        assert_eq!(
            place.home_text(TURN),
            "{\"turn\": 1, \"text\": \"一\"}\n",
            "{point}"
        );
        let back = place.run(["restore", "20240615T120000Z", "--from", "trash"]);
        back.expect(0);
        assert_eq!(place.home_text(NOTES), "二\n", "{point}");
        assert!(!place.home().join(TURN).exists(), "{point}");
        let names = place.names(".wbhome/trash");
        assert!(
            !names.iter().any(|name| name.contains("_git")),
            "{point}: {names:?}"
        );
    }
}

#[test]
fn check_names_the_command_for_a_torn_file_and_a_lost_turn() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    for n in 2..=4 {
        let turn = format!("sessions/20240604_数据清洗/context/turn_00{n}.json");
        place.put_home(&turn, format!("{{\"turn\": {n}}}\n"));
    }
    place.commit_on(9, "turns");
    place.put_home(TURN, "{\"turn\": 1, \"te");
    std::fs::remove_file(
        place
            .home()
            .join("sessions/20240604_数据清洗/context/turn_003.json"),
    )
    .unwrap();
    let found = place.json(["check"]);
    let commands: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["command"].as_str())
        .collect();
    assert_eq!(
        commands,
        [
            "wbhome restore 20240604_数据清洗/context/turn_001.json --from git",
            "wbhome restore 20240604_数据清洗/context/turn_003.json --from git"
        ]
    );
    place.ok([
        "restore",
        "20240604_数据清洗/context/turn_003.json",
        "--from",
        "git",
    ]);
    // What is torn is in no commit. Named alone it may go into the trash, with the session it may not.
    place.run(["restore", "数据", "--from", "git"]).expect(1);
    let ran = place.run([
        "restore",
        "20240604_数据清洗/context/turn_001.json",
        "--from",
        "git",
    ]);
    ran.expect(0);
    assert_eq!(place.home_text(TURN), "{\"turn\": 1, \"text\": \"一\"}\n");
    place.ok(["restore", &act(&ran), "--from", "trash"]);
    assert_eq!(place.home_text(TURN), "{\"turn\": 1, \"te");
}

/// With a commit every few minutes the damage is committed before anybody looks.
#[test]
fn check_names_the_newest_commit_that_holds_what_was_torn_before_the_last() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    for n in 2..=9 {
        let turn = format!("sessions/20240604_数据清洗/context/turn_00{n}.json");
        place.put_home(&turn, format!("{{\"turn\": {n}}}\n"));
    }
    place.commit_on(9, "whole");
    let whole = place.git(&["rev-parse", "--short", "HEAD"]);
    let whole = whole.trim();
    place.put_home(TURN, "{\"turn\": 1, \"te");
    for n in 3..=7 {
        let turn = format!("sessions/20240604_数据清洗/context/turn_00{n}.json");
        std::fs::remove_file(place.home().join(turn)).unwrap();
    }
    place.commit_on(10, "torn");
    place.put_home(NOTES, "三\n");
    place.commit_on(11, "another");
    // Torn in another way since: no commit holds that.
    place.put_home(TURN, "{\"turn\": 1, \"text");
    let found = place.json(["check"]);
    let commands: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["command"].as_str())
        .collect();
    let expected = ["001", "003"].map(|n| {
        format!("wbhome restore 20240604_数据清洗/context/turn_{n}.json --from git --at {whole}")
    });
    assert_eq!(commands, expected);
    for command in commands {
        place.ok(command.split(' ').skip(1));
    }
    assert_eq!(place.home_text(TURN), "{\"turn\": 1, \"text\": \"一\"}\n");
    let third = "sessions/20240604_数据清洗/context/turn_003.json";
    assert_eq!(place.home_text(third), "{\"turn\": 3}\n");
}

#[test]
fn a_rebuilt_index_takes_its_labels_from_the_last_commit() {
    if !has_tool("git") {
        return;
    }
    let place = with_commits();
    place.ok(["label", "数据", "--tag", "重要", "--title", "清洗"]);
    place.commit_on(9, "labels");
    place.put_home("index.json", "[{\"id\": \"2024060");
    let shown = place.run(["index", "--rebuild"]);
    shown
        .expect(0)
        .says(&["the labels are those of the last commit"]);
    let index = place.index();
    let entry = index
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["id"] == "20240604_数据清洗")
        .unwrap()
        .clone();
    assert_eq!(
        (&entry["tags"], &entry["title"]),
        (&json!(["重要"]), &json!("清洗"))
    );
}
