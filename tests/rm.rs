//! `wbhome rm`: a session goes into the trash, and is known to have been meant.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use insta::assert_snapshot;
use support::{Place, differences};

#[test]
fn a_session_goes_and_comes_back_with_its_labels() {
    let place = Place::with_sessions();
    place.ok(["label", "清洗", "--project", "alpha", "--tag", "数据", "-q"]);
    place.put_home("archive/20240604_数据清洗.tar.zst", "packed");
    let (files, index) = (place.files(), place.home_text("index.json"));
    let contents = place.contents();
    assert_snapshot!(place.run(["rm", "清洗"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   2 files, 154 B with its archive
    In the trash.  Back again: wbhome restore 20240615T120000Z --from trash
    --- stderr
    ");
    place.nothing_lost(&contents);
    assert!(!place.home().join("sessions/20240604_数据清洗").exists());
    assert!(
        !place
            .home()
            .join("archive/20240604_数据清洗.tar.zst")
            .exists()
    );
    assert!(
        !place
            .home()
            .join("projects/alpha/20240604_数据清洗")
            .exists()
    );
    let entry = &place.index()[1];
    assert_eq!(
        (&entry["status"], &entry["removed_at"]),
        (&"removed".into(), &"2024-06-15T12:00:00Z".into())
    );
    assert_eq!(entry["tags"][0], "数据");
    // It is not listed, the index keeps it, and nothing is wrong.
    assert!(!place.ok(["ls"]).contains("清洗"));
    place.ok(["index", "-q"]);
    place.ok(["check"]);
    assert_eq!(place.index()[1]["status"], "removed");
    assert_eq!(place.run(["rm", "清洗"]).code, Some(1));
    place.run(["rm", "20240604_数据清洗"]).expect(1).says(&[
        "has been removed already",
        "wbhome restore 20240604_数据清洗 --from trash",
    ]);

    // A part of its name is enough: of what is in the trash, nothing else is called so.
    assert_snapshot!(place.run(["restore", "清洗", "--from", "trash"]).shown(&place), @r"
    exit: 0
    --- stdout
      back     sessions/20240604_数据清洗
      back     archive/20240604_数据清洗.tar.zst
      indexed  20240604_数据清洗
    --- stderr
    ");
    assert_eq!(differences(&files, &place.files()), "");
    assert_eq!(place.home_text("index.json"), index);
    assert!(
        place
            .home()
            .join("projects/alpha/20240604_数据清洗/session.json")
            .exists()
    );
    assert_eq!(place.acts(), [""; 0]);
}

#[test]
fn several_are_one_act_and_can_come_back_one_by_one() {
    let place = Place::with_sessions();
    let index = place.home_text("index.json");
    place.ok(["rm", "-q", "crawler", "api", "crawler"]);
    assert_eq!(place.acts().len(), 1);
    place.ok(["restore", "api", "--from", "trash"]);
    assert!(place.home().join("sessions/20240605_api_refactor").exists());
    assert!(!place.home().join("sessions/20240603_crawler").exists());
    place.ok(["restore", &place.acts()[0], "--from", "trash"]);
    assert_eq!(place.home_text("index.json"), index);
    assert_eq!(place.acts(), [""; 0]);
}

#[test]
fn a_dry_run_changes_nothing() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    assert_snapshot!(place.ok(["rm", "-n", "crawler"]), @r"
    20240603_crawler   2 files, 138 B
    1 session would be removed. Nothing was changed.
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    assert_eq!(place.acts(), [""; 0]);
}

#[test]
fn nothing_is_removed_when_one_is_live_or_unknown() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    place.run(["rm", "crawler", "nothing"]).expect(1);
    place.agent_in("sessions/20240605_api_refactor/context");
    place.run(["rm", "crawler", "api"]).expect(1).says(&[
        "`20240605_api_refactor` can not be removed",
        "is at work in it",
    ]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    // Its log is being written, whatever any registry says.
    let log = place.put_home("sessions/20240603_crawler/logs/run.log", "一\n");
    let _open = std::fs::File::options().append(true).open(log).unwrap();
    place
        .run(["rm", "crawler"])
        .expect(1)
        .says(&["open for writing"]);
    assert_eq!(place.acts(), [""; 0]);
}

/// What can be known of who is at work, and when it has to be taken for somebody.
#[test]
fn an_agent_of_which_little_is_known_may_be_at_work_anywhere() {
    let place = Place::with_sessions();
    let pid = std::process::id();
    let torn = place.home().join("sessions/20240605_api_refactor/a.md");
    std::fs::write(&torn, "a").unwrap();
    std::fs::write(torn.with_file_name("a (1).md"), "a").unwrap();
    place.ok(["rm", "清洗", "-q"]);
    let before = place.apart_from_own();
    let registry = format!("me/.workbuddy/sessions/{pid}.json");
    let unknown = format!("an agent (process {pid}) runs, and where can not be read");
    let home = place.home();
    let noted = |cwd: &str, more: &str| format!("{{\"pid\": {pid}, \"cwd\": {cwd:?}{more}}}");
    let cases = [
        // Emptied, torn, of another form; and without a time, which is no proof of an end.
        (String::new(), unknown.clone()),
        ("{\"pid\": 1, \"cwd\": \"/tm".into(), unknown.clone()),
        ("[]".into(), unknown.clone()),
        (format!("{{\"pid\": {pid}, \"startedAt\": 0}}"), unknown),
        // In the home itself.
        (
            noted(home.to_str().unwrap(), ""),
            "is at work in the home itself".into(),
        ),
        (
            noted(
                home.join("sessions").to_str().unwrap(),
                ", \"startedAt\": 0",
            ),
            "is at work in the home itself".into(),
        ),
    ];
    for (content, why) in cases {
        place.put(&registry, &content);
        place.run(["rm", "crawler"]).expect(1).says(&[&why]);
        place
            .run(["restore", "清洗", "--from", "trash"])
            .expect(1)
            .says(&[&why]);
        let done = place.json(["check", "--repair"]);
        assert!(
            done["left"][0]["why"].as_str().unwrap().contains(&why),
            "{done}"
        );
        place
            .run(["ls"])
            .expect(0)
            .says(&["warning: an agent", "it may work in any session"]);
        assert_eq!(
            differences(&before, &place.apart_from_own()),
            "",
            "{content}"
        );
    }
    // On its conversation, wherever; that concerns no other session.
    let elsewhere = noted("/tmp", ", \"sessionId\": \"identity-of-20240603_crawler\"");
    place.put(&registry, &elsewhere);
    place
        .run(["rm", "crawler"])
        .expect(1)
        .says(&["is at work in it"]);
    place.ok(["check", "--repair", "-q"]);
    place.ok(["restore", "清洗", "--from", "trash"]);
}

#[test]
fn nothing_is_changed_while_nobody_can_say_who_is_running() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    place.put("me/.workbuddy/sessions", "no folder");
    let act = ["restore", "20240615T120000Z", "--from", "trash"];
    for args in [&["rm", "crawler"][..], &["check", "--repair"], &act] {
        place
            .run(args)
            .expect(1)
            .says(&["who is running is not known", "[state] dir"]);
    }
    place
        .run(["check"])
        .expect(0)
        .says(&["who is running is not known"]);
    place
        .run(["ls"])
        .expect(0)
        .says(&["who is running is not known"]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    // What is being written anew is whole in a moment.
    std::fs::remove_file(place.path("me/.workbuddy/sessions")).unwrap();
    let pid = std::process::id();
    let registry = place.put(format!("me/.workbuddy/sessions/{pid}.json"), "");
    let writer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(90));
        std::fs::write(registry, format!("{{\"pid\": {pid}, \"cwd\": \"/tmp\"}}")).unwrap();
    });
    place.ok(["rm", "crawler"]);
    writer.join().unwrap();
}

#[test]
fn what_can_not_be_moved_is_named_with_its_reason() {
    if !support::is_root() || !support::has_tool("chattr") {
        return;
    }
    let place = Place::with_sessions();
    let folder = place.home().join("sessions/20240603_crawler");
    let chattr = |flag: &str| {
        let done = std::process::Command::new("chattr")
            .arg(flag)
            .arg(&folder)
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !chattr("+i") {
        eprintln!("SKIPPED: this filesystem does not keep root out");
        return;
    }
    let alone = place.run(["rm", "crawler"]);
    let both = place.run(["rm", "crawler", "api"]);
    chattr("-i");
    alone.expect(1).says(&[
        "left sessions/20240603_crawler: can not be moved",
        "not permitted",
    ]);
    both.expect(3).says(&["not permitted"]);
    assert!(folder.exists() && !place.home().join("sessions/20240605_api_refactor").exists());
    assert_eq!(place.acts().len(), 1);
}

#[test]
fn what_is_missing_or_was_never_indexed_becomes_a_tombstone_too() {
    let place = Place::with_sessions();
    std::fs::remove_dir_all(place.home().join("sessions/20240603_crawler")).unwrap();
    place.session("20240606_by_hand", 6);
    let ran = place.run(["rm", "crawler", "by_hand"]);
    assert_snapshot!(ran.stdout, @r"
    20240603_crawler   is found nowhere: its entry becomes a tombstone
    20240606_by_hand   2 files, 138 B
    In the trash.  Back again: wbhome restore 20240615T120000Z --from trash
    ");
    let status = |n: usize| place.index()[n]["status"].as_str().unwrap().to_owned();
    assert_eq!((status(0), status(3)), ("removed".into(), "removed".into()));
    place.ok(["check"]);
    place.ok(["restore", "20240615T120000Z", "--from", "trash"]);
    assert_eq!((status(0), status(3)), ("missing".into(), "active".into()));
    assert!(
        place
            .home()
            .join("sessions/20240606_by_hand/session.json")
            .exists()
    );
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_each_session_here_or_in_the_trash() {
    for failpoint in [
        "journal.begun",
        "mend.put-away",
        "mend.removed",
        "journal.viewed",
        "journal.done",
    ] {
        let place = Place::with_sessions();
        place.ok(["label", "crawler", "--project", "alpha", "-q"]);
        let (files, index, contents) = (
            place.files(),
            place.home_text("index.json"),
            place.contents(),
        );
        let env = [("WBHOME_FAILPOINT", failpoint)];
        let ran = place.run_with(&env, &["rm", "crawler", "api"]);
        assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
        place.nothing_lost(&contents);
        place.ok(["index", "-q"]);
        place.nothing_lost(&contents);
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        assert!(
            !place.home().join("sessions/20240605_api_refactor").exists(),
            "{failpoint}"
        );
        assert_eq!(place.index()[0]["status"], "removed", "{failpoint}");
        place.ok(["check"]);
        place.ok(["restore", "20240615T120000Z", "--from", "trash"]);
        assert_eq!(differences(&files, &place.files()), "", "{failpoint}");
        assert_eq!(place.home_text("index.json"), index, "{failpoint}");
        assert!(
            place
                .home()
                .join("projects/alpha/20240603_crawler")
                .exists()
        );
    }
}
