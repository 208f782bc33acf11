//! `wbhome restore`: what was put away comes back, and never over what is there.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;
use support::{Place, differences};

const CRAWLER: &str = "sessions/20240603_crawler";
const TURN: &str = "sessions/20240603_crawler/context/turn_002.json";

/// A session with a torn turn and a whole copy of it.
fn torn() -> Place {
    let place = Place::with_sessions();
    place.put_home(TURN, "{\"turn\": 2, \"text\": \"五");
    place.put_home(
        &format!("{CRAWLER}/context/turn_002 (Mei's conflicted copy 2024-06-11).json"),
        "{\"turn\": 2, \"text\": \"五十\"}\n",
    );
    place.date("20240603_crawler", 3);
    place
}

#[test]
fn the_whole_twin_takes_the_place_of_a_torn_file() {
    let place = torn();
    let (files, contents) = (place.files(), place.contents());
    let checked = place.json(["check"]);
    let finding = &checked["findings"][0];
    let command = finding["command"].as_str().unwrap();
    assert_eq!(
        command,
        "wbhome restore 20240603_crawler/context/turn_002.json --from twin"
    );
    assert!(place.run(["check"]).stdout.contains(command));
    // What it says can be typed.
    let words = command.split(' ').skip(1);
    assert_snapshot!(place.run(words).shown(&place), @r"
    exit: 0
    --- stdout
    sessions/20240603_crawler/context/turn_002.json
      holds what sessions/20240603_crawler/context/turn_002 (Mei's conflicted copy 2024-06-11).json holds, which stays
    The former one is in the trash.  Back again: wbhome restore 20240615T120000Z --from trash
    --- stderr
    ");
    assert_eq!(place.home_text(TURN), "{\"turn\": 2, \"text\": \"五十\"}\n");
    let (now, turn) = (place.files(), TURN.as_bytes());
    assert_eq!(now[turn].mtime, files[turn].mtime, "the time of the twin");
    place.nothing_lost(&contents);
    // Once more there is nothing to be put right.
    let what = "20240603_crawler/context/turn_002.json";
    place
        .run(["restore", what, "--from", "twin"])
        .expect(1)
        .says(&["is not damaged"]);
    // Back: what is there is not written over unasked.
    place.run(["restore", what, "--from", "trash"]).expect(1).says(&[
        "is in the way of .wbhome/trash/20240615T120000Z/sessions/20240603_crawler/context/turn_002.json",
        "--force",
    ]);
    place.ok(["restore", what, "--from", "trash", "--force"]);
    assert_eq!(differences(&files, &place.files()), "");
    place.nothing_lost(&contents);
}

#[test]
fn of_several_twins_one_has_to_be_named() {
    let place = torn();
    place.put_home(
        &format!("{CRAWLER}/context/turn_002 (1).json"),
        "{\"turn\": 2, \"text\": \"另一\"}\n",
    );
    let what = "20240603_crawler/context/turn_002.json";
    place
        .run(["restore", what, "--from", "twin"])
        .expect(1)
        .says(&[
            "has 2 whole second versions",
            "hint: name one: '20240603_crawler/context/turn_002 (1).json'",
        ]);
    let command = place.json(["check"])["findings"][0]["command"].clone();
    assert_eq!(
        command,
        "wbhome restore '20240603_crawler/context/turn_002 (1).json' --from twin"
    );
    place.ok([
        "restore",
        "20240603_crawler/context/turn_002 (1).json",
        "--from",
        "twin",
    ]);
    assert!(place.home_text(TURN).contains("另一"));
    // One that is damaged itself helps nobody.
    let place = Place::with_sessions();
    place.put_home(TURN, "{\"turn\": 2");
    place.put_home(&format!("{CRAWLER}/context/turn_002 (1).json"), "{\"tu");
    for what in [what, "20240603_crawler/context/turn_002 (1).json"] {
        place.run(["restore", what, "--from", "twin"]).expect(1);
    }
    assert!(
        place.json(["check"])["findings"][0]
            .get("command")
            .is_none()
    );
}

#[test]
fn a_name_that_is_no_text_comes_back_exactly() {
    let place = Place::with_sessions();
    let folder = place.home().join(CRAWLER).join("artifacts");
    let name = |name: &[u8]| folder.join(OsStr::from_bytes(name));
    std::fs::write(name(b"a\xff\n.txt"), "same").unwrap();
    std::fs::write(name(b"a\xff\n (1).txt"), "same").unwrap();
    let before = place.files();
    place.ok(["check", "--repair", "-q"]);
    assert!(!name(b"a\xff\n (1).txt").exists());
    place.ok(["restore", &place.acts()[0], "--from", "trash"]);
    assert_eq!(differences(&before, &place.files()), "");
}

#[test]
fn a_file_comes_out_of_a_session_that_was_removed_only_into_the_session() {
    let place = Place::with_sessions();
    place.ok(["rm", "crawler", "-q"]);
    let turn = "crawler/context/turn_001.json";
    place
        .run(["restore", turn, "--from", "trash"])
        .expect(1)
        .says(&["its session is not there", "bring the session back first"]);
    // Somebody has made it again: the one in the trash is not put over it.
    place.session("20240603_crawler", 7);
    place.ok(["index", "-q"]);
    place
        .run(["restore", "crawler", "--from", "trash"])
        .expect(1)
        .says(&["is in the way"]);
    place.ok(["restore", turn, "--from", "trash", "--force"]);
    let contents = place.contents();
    place.ok(["restore", "crawler", "--from", "trash", "--force"]);
    place.nothing_lost(&contents);
    let made = place.home().join(CRAWLER).join("session.json");
    let made = std::fs::metadata(made).unwrap().modified().unwrap();
    let day = 1_717_232_400 + 86_400 * 2;
    assert_eq!(
        made,
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(day)
    );
}

#[test]
fn an_older_act_is_chosen_by_its_name() {
    let place = Place::with_sessions();
    let what = "20240603_crawler/artifacts/a (1).md";
    let path = format!("sessions/{what}");
    for content in ["一", "二"] {
        place.put_home(&format!("{CRAWLER}/artifacts/a.md"), content);
        place.put_home(&path, content);
        place.ok(["check", "--repair", "-q"]);
    }
    assert_eq!(place.acts().len(), 2);
    place.ok(["restore", what, "--from", "trash"]);
    assert_eq!(place.home_text(&path), "二");
    place
        .run(["restore", "20240615T120000Z", "--from", "trash"])
        .expect(1);
    place.ok(["restore", "20240615T120000Z", "--from", "trash", "--force"]);
    assert_eq!(place.home_text(&path), "一");
}

#[test]
fn the_trash_is_listed() {
    let place = Place::with_sessions();
    assert_eq!(
        place.ok(["restore", "--from", "trash"]),
        "The trash is empty.\n"
    );
    place.put_home("index.json", "[{");
    place.ok(["index", "--rebuild", "-q"]);
    place.ok(["rm", "crawler", "-q"]);
    assert_snapshot!(place.ok(["restore", "--from", "trash"]), @r"
    2 acts · 3 files · 140 B

    20240615T120000Z-2   just now, 138 B   removed the session 20240603_crawler
      kept     sessions/20240603_crawler

    20240615T120000Z   just now, 2 B   the index was made anew
      kept     index.json

    Back again: wbhome restore ACT --from trash
    ");
    // The broken index comes back as long as nobody has changed the new one; rm has.
    place
        .run(["restore", "20240615T120000Z", "--from", "trash"])
        .expect(1);
    place.ok(["restore", "20240615T120000Z", "--from", "trash", "--force"]);
    assert_eq!(place.home_text("index.json"), "[{");
}

/// Runs a printed command as a person would who copies it.
fn typed(place: &Place, command: &str) -> support::Ran {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_wbhome"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [program.parent().unwrap().to_owned()];
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    let mut shell = std::process::Command::new("sh");
    let ran = shell.arg("-c").arg(command).current_dir(place.root());
    let ran = ran.env_clear().env("PATH", path).env("HOME", place.root());
    support::Ran::of(ran.env("WBHOME_NOW", support::NOW).output().unwrap())
}

#[test]
fn what_is_printed_can_be_typed_also_for_a_home_that_was_named() {
    let place = torn();
    let named = place.path("me/it's 我的 home");
    std::fs::rename(place.home(), &named).unwrap();
    let named = named.to_str().unwrap();
    let command = |told: &str| {
        let at = told.find("wbhome --home ").expect(told);
        told[at..].lines().next().unwrap().to_owned()
    };
    // check names the command that mends; that one the command back; and so on.
    let checked = place.run(["--home", named, "check"]).stdout;
    let mended = typed(&place, &command(&checked));
    assert!(mended.stdout.contains("holds what"), "{mended:?}");
    typed(&place, &command(&mended.stdout)).expect(0);
    let removed = place.ok(["--home", named, "rm", "crawler"]);
    typed(&place, &command(&removed)).expect(0);
    // Hints of rooms that know nothing of the command line.
    let told = place.run(["--home", named, "restore", "no such", "--from", "trash"]);
    assert!(told.stderr.contains("`wbhome --home '"), "{told:?}");
    typed(&place, command(&told.stderr).split('`').next().unwrap()).expect(0);
}

#[test]
fn the_way_back_says_when_it_needs_force_and_when_there_is_none() {
    let place = Place::with_sessions();
    place.ok(["rm", "crawler", "-q"]);
    place.session("20240603_crawler", 7);
    place.ok(["index", "-q"]);
    let told = place.ok(["restore", "crawler", "--from", "trash", "--force"]);
    let back = told.split("Back again: ").nth(1).unwrap().trim();
    assert!(back.ends_with(" --from trash --force"), "{told}");
    place.ok(back.split(' ').skip(1));
    place.ok(["rm", "crawler", "-q"]);
    place.ok(["check", "--empty-trash", "-y", "-q"]);
    let told = place.run(["rm", "20240603_crawler"]);
    assert!(!told.stderr.contains("brings it back"), "{told:?}");
    told.expect(1).says(&["not in the trash any more"]);
}

#[test]
fn what_the_note_names_and_is_not_there_is_told() {
    let place = Place::with_sessions();
    place.put_home(&format!("{CRAWLER}/artifacts/a.md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/a (1).md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/a (2).md"), "a");
    place.run(["check", "--repair", "-q"]);
    let act = place.acts().pop().unwrap();
    let lost = format!(".wbhome/trash/{act}/{CRAWLER}/artifacts/a (1).md");
    std::fs::remove_file(place.home().join(lost)).unwrap();
    let args = ["restore", &act, "--from", "trash"];
    place.run(args.iter().chain(&["-n"])).expect(3);
    place
        .run(args)
        .expect(3)
        .says(&["artifacts/a (1).md is not in the trash any more"]);
    assert!(
        place
            .home()
            .join(CRAWLER)
            .join("artifacts/a (2).md")
            .exists()
    );
}

/// Whether something was done is not read from what is said: names may say anything.
#[test]
fn a_session_may_be_called_as_it_likes() {
    let place = Place::with_sessions();
    place.session("left_notes", 9);
    place.ok(["index", "-q"]);
    place.ok(["rm", "left_notes", "-q"]);
    let ran = place.run(["restore", "left_notes", "--from", "trash"]);
    ran.expect(0);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_note_leads_nowhere_but_into_the_home() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    let act = ".wbhome/trash/20240601T000000Z";
    let note =
        |was: &str| format!(r#"{{"why": "x", "at": "2024-06-01T00:00:00Z", "was": [{was}]}}"#);
    let evil = [
        r#""../out.md""#.to_owned(),
        r#""/etc/out.md""#.to_owned(),
        r#"".wbhome/home.json""#.to_owned(),
        r#"".git/hooks/pre-commit""#.to_owned(),
        r#""sessions/20240603_crawler/.GIT/config""#.to_owned(),
        r#"{"path": "a.md", "lies": "../../home.json"}"#.to_owned(),
        r#"{"path": "a.md", "lies": "/etc/hostname"}"#.to_owned(),
        r#"{"path": "a.md", "lies": "note.json"}"#.to_owned(),
        r#"{"path": "sessions/20240603_crawler/b.md", "lies": "../20240602T000000Z/x"}"#.to_owned(),
    ];
    for was in evil {
        // Something honest beside it: it is not done either.
        place.put_home(
            &format!("{act}/note.json"),
            note(&format!(r#""ok.md", {was}"#)),
        );
        place.put_home(&format!("{act}/ok.md"), "ok");
        for path in [
            ".wbhome/home.json",
            ".git/hooks/pre-commit",
            "sessions/20240603_crawler/.GIT/config",
        ] {
            place.put_home(&format!("{act}/{path}"), "evil");
        }
        place.put_home(".wbhome/trash/20240602T000000Z/x", "x");
        let home = place.home_text(".wbhome/home.json");
        for what in ["20240601T000000Z", "20240603_crawler/b.md"] {
            for force in [&[][..], &["--force"]] {
                let args = ["restore", what, "--from", "trash"];
                let ran = place.run(args.iter().chain(force));
                assert_eq!(ran.code, Some(1), "{was}: {ran:?}");
            }
        }
        assert_eq!(differences(&before, &place.apart_from_own()), "", "{was}");
        assert_eq!(place.home_text(".wbhome/home.json"), home);
        assert!(place.names(".wbhome/journal").is_empty());
        place.ok(["index", "-q"]);
    }
}

#[test]
fn the_whole_twin_gets_the_mode_and_the_owner_of_the_file() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = torn();
    let path = place.home().join(TURN);
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&path, mode(0o600)).unwrap();
    let twin = place
        .home()
        .join(CRAWLER)
        .join("context/turn_002 (Mei's conflicted copy 2024-06-11).json");
    std::fs::set_permissions(&twin, mode(0o664)).unwrap();
    if support::is_root() {
        std::os::unix::fs::chown(&path, Some(1234), Some(1235)).unwrap();
    }
    let (before, twin) = (
        std::fs::metadata(&path).unwrap(),
        std::fs::metadata(&twin).unwrap(),
    );
    place.ok([
        "restore",
        "20240603_crawler/context/turn_002.json",
        "--from",
        "twin",
    ]);
    let now = std::fs::metadata(&path).unwrap();
    assert_eq!(
        (now.mode(), now.uid(), now.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert_eq!((now.size(), now.mtime()), (twin.size(), twin.mtime()));
}

#[test]
fn a_missing_turn_is_made_of_its_only_copy() {
    let place = Place::with_sessions();
    place.put_home(&format!("{CRAWLER}/context/turn_003.json"), "{}");
    let copy = format!("{CRAWLER}/context/turn_002 (1).json");
    place.put_home(&copy, "{\"turn\": 2}\n");
    place.date("20240603_crawler", 3);
    let files = place.files();
    let checked = place.run(["check"]);
    let command = "wbhome restore 20240603_crawler/context/turn_002.json --from twin";
    assert!(checked.stdout.contains(command), "{checked:?}");
    let told = place.ok(command.split(' ').skip(1));
    assert_eq!(place.home_text(TURN), "{\"turn\": 2}\n");
    assert!(!place.run(["check"]).stdout.contains("missing-turn"));
    let back = told.split("To take it back: ").nth(1).unwrap().trim();
    place.ok(back.split(' ').skip(1));
    assert_eq!(differences(&files, &place.files()), "");
    // Of two nobody knows which.
    place.put_home(
        &format!("{CRAWLER}/context/turn_002 (2).json"),
        "{\"turn\": 22}\n",
    );
    place
        .run(command.split(' ').skip(1))
        .expect(1)
        .says(&["has 2 whole second versions"]);
    assert!(!place.run(["check"]).stdout.contains(command));
}

#[cfg(feature = "failpoints")]
#[test]
fn an_index_that_was_written_after_a_kill_is_not_written_over() {
    for failpoint in ["journal.begun", "mend.index-back"] {
        let place = Place::with_sessions();
        place.put_home("index.json", "[]");
        place.ok(["index", "--rebuild", "-q"]);
        let act = place.acts().pop().unwrap();
        let env = [("WBHOME_FAILPOINT", failpoint)];
        let ran = place.run_with(&env, &["restore", &act, "--from", "trash"]);
        assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
        place.put_home(
            "index.json",
            r#"[{"id": "20240603_crawler", "title": "by hand"}]"#,
        );
        let ran = place.run(["label", "crawler", "--tag", "x"]);
        ran.expect(0)
            .says(&["was changed since and is left as it is"]);
        assert!(
            place.home_text("index.json").contains("by hand"),
            "{failpoint}"
        );
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
    }
}

#[test]
fn a_note_of_an_earlier_version_is_read() {
    let place = Place::with_sessions();
    place.put_home(
        ".wbhome/trash/20240601T000000Z/note.json",
        r#"{"why": "its place, sessions/20240601_old, was taken meanwhile", "at": "2024-06-01T00:00:00Z", "was": ["sessions/20240601_old"]}"#,
    );
    place.put_home(
        ".wbhome/trash/20240601T000000Z/sessions/20240601_old/session.json",
        "{}",
    );
    place.put_home(
        ".wbhome/trash/20240602T000000Z/note.json",
        r#"{"why": "x", "at": "2024-06-02T00:00:00Z", "was": ["sessions/20240603_crawler/deep/a.md"]}"#,
    );
    place.put_home(".wbhome/trash/20240602T000000Z/a.md", "beside its note");
    place.put_home(".wbhome/trash/20240603T000000Z/what is this", "no note");
    place.ok(["restore", "old", "--from", "trash"]);
    assert!(
        place
            .home()
            .join("sessions/20240601_old/session.json")
            .exists()
    );
    place.ok(["restore", "20240602T000000Z", "--from", "trash"]);
    assert_eq!(
        place.home_text(&format!("{CRAWLER}/deep/a.md")),
        "beside its note"
    );
    place
        .run(["restore", "20240603T000000Z", "--from", "trash"])
        .expect(1)
        .says(&["has no note"]);
    assert_eq!(place.acts(), ["20240603T000000Z"]);
}

#[test]
fn refusals_change_nothing() {
    let place = torn();
    place.ok(["rm", "api", "-q"]);
    let before = place.apart_from_own();
    place.agent_in(CRAWLER);
    for (args, code, said) in [
        (
            &["restore", "crawler/context/turn_002.json", "--from", "twin"][..],
            1,
            "is at work in it",
        ),
        (
            &["restore", "nothing", "--from", "trash"],
            1,
            "the trash does not hold `nothing`",
        ),
        (&["restore", "api/../x", "--from", "trash"], 2, "leads out"),
        (&["restore", "crawler", "--from", "twin"], 2, "SESSION/PATH"),
        (&["restore", "crawler"], 2, "--from"),
        (&["restore", "--from", "git"], 2, "git"),
    ] {
        place.run(args).expect(code).says(&[said]);
    }
    place.ok(["restore", "api", "--from", "trash", "-n"]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_each_thing_here_or_in_the_trash() {
    let twin: &[&str] = &["restore", "crawler/context/turn_002.json", "--from", "twin"];
    let back: &[&str] = &[
        "restore",
        "crawler/context/turn_002.json",
        "--from",
        "trash",
        "--force",
    ];
    let session: &[&str] = &["restore", "api", "--from", "trash"];
    let index: &[&str] = &["restore", "20240615T120000Z", "--from", "trash", "--force"];
    for (failpoint, args) in [
        ("journal.begun", twin),
        ("mend.replaced", twin),
        ("mend.copied", twin),
        ("journal.begun", back),
        ("mend.put-away", back),
        ("mend.brought-back", back),
        ("journal.begun", session),
        ("mend.brought-back", session),
        ("mend.returned", session),
        ("mend.index-back", index),
    ] {
        let place = torn();
        if args == index {
            place.put_home("index.json", "[]");
            place.ok(["index", "--rebuild", "-q"]);
        }
        if args == back {
            place.ok(twin);
        }
        if args == session {
            place.ok(["rm", "api", "-q"]);
        }
        let contents = place.contents();
        let ran = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], args);
        assert_eq!(
            ran.code, None,
            "{args:?} did not come to {failpoint}: {ran:?}"
        );
        place.nothing_lost(&contents);
        place.ok(["label", "清洗", "--tag", "x", "-q"]);
        if args != index {
            place.nothing_lost(&contents);
        }
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        assert!(
            place.home_text(TURN).ends_with("五十\"}\n") == (args == twin),
            "{args:?} {failpoint}"
        );
        assert!(
            place
                .home()
                .join("sessions/20240605_api_refactor/session.json")
                .exists()
        );
        assert_eq!(
            place.index()[2]["status"],
            match args == index {
                true => serde_json::Value::Null,
                false => "active".into(),
            },
            "{args:?} {failpoint}"
        );
    }
}
