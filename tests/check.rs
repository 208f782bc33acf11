//! `wbhome check`: every kind of finding, each in a home where nothing else is wrong.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};

use insta::assert_snapshot;
use support::{Place, Ran, differences, tree};

const CRAWLER: &str = "sessions/20240603_crawler";

/// A home with one sound session that is indexed.
fn sound() -> Place {
    let place = Place::with_home();
    place.session("20240603_crawler", 3);
    place.ok(["index", "-q"]);
    place
}

/// What is found in a sound home once it was broken in one way: all of that one kind. Nothing is changed by the look.
fn found(kind: &str, code: i32, place: &Place) -> String {
    let before = tree(&place.home());
    let outcome = place.json(["check"]);
    let counts = outcome["counts"].as_object().unwrap();
    assert_eq!(counts.keys().collect::<Vec<_>>(), [kind], "{outcome}");
    let ran = place.run(["check", "-v"]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(differences(&before, &tree(&place.home())), "");
    let mut lines = ran.stdout.lines().filter(|l| l.starts_with("  "));
    let line = lines.next().unwrap_or_default();
    line.replace(place.root().to_str().unwrap(), "[ROOT]")
}

#[test]
fn a_sound_home() {
    let place = sound();
    assert_snapshot!(place.run(["check"]).shown(&place), @r"
    exit: 0
    --- stdout
    1 session · 5 files · 3.3 kB

    Nothing is wrong.
    --- stderr
    ");
}

/// A home with an archived session besides.
fn with_archive() -> Place {
    let place = Place::with_sessions();
    place.put_home(
        "sessions/20240605_api_refactor/logs/run.log",
        "x".repeat(50_000),
    );
    place.archived("20240605_api_refactor");
    place.run(["check"]).expect(0);
    place
}

const ARCHIVE: &str = "archive/20240605_api_refactor.tar.zst";

/// The archive with one byte changed, at so many parts of hundred of its length.
fn damage(place: &Place, percent: usize) {
    let path = place.home().join(ARCHIVE);
    let mut content = std::fs::read(&path).unwrap();
    let at = content.len() * percent / 100;
    content[at] ^= 0x55;
    std::fs::write(&path, content).unwrap();
}

/// What is said of archives.
fn of_archives(ran: &Ran) -> Vec<&str> {
    let lines = ran.stdout.lines().map(str::trim_start);
    lines.filter(|line| line.contains(".tar.zst")).collect()
}

#[test]
fn archives_are_read_to_their_end_when_that_is_asked_for() {
    let place = with_archive();
    let ran = place.run(["check", "--archives"]);
    assert!(
        ran.expect(0).stdout.contains(" · 1 archive read, "),
        "{ran:?}"
    );
    let before = std::fs::read(place.home().join(ARCHIVE)).unwrap();
    // In the middle of the data: a look at the ends does not tell.
    damage(&place, 10);
    place.run(["check"]).expect(0);
    let ran = place.run(["check", "--archives"]);
    let told = of_archives(ran.expect(4));
    assert!(
        told[0].contains("frame") && told[0].contains("concerns"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("bad-archive"));
    place.run(["check", "--archives", "crawler"]).expect(0);
    place.run(["check", "--archives", "api"]).expect(4);
    damage(&place, 10);
    assert_eq!(std::fs::read(place.home().join(ARCHIVE)).unwrap(), before);
    place.run(["check", "--archives"]).expect(0);
}

#[test]
fn a_look_at_the_ends_tells_what_is_torn_and_what_was_replaced() {
    let place = with_archive();
    let path = place.home().join(ARCHIVE);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 40]).unwrap();
    let ran = place.run(["check"]);
    assert_eq!(of_archives(ran.expect(4)).len(), 1, "{ran:?}");
    std::fs::write(&path, &whole).unwrap();
    place.run(["check"]).expect(0);

    // Another pack of the same session, whole in itself.
    place.session("20240605_api_refactor", 5);
    std::fs::remove_file(&path).unwrap();
    place.pack("20240605_api_refactor");
    std::fs::remove_dir_all(place.home().join("sessions/20240605_api_refactor")).unwrap();
    let ran = place.run(["check"]);
    let told = of_archives(ran.expect(4));
    assert!(told[0].contains("according to the index"), "{ran:?}");
    let ran = place.run(["check", "--archives"]);
    let told = of_archives(ran.expect(4));
    assert!(
        told[0].contains("is whole, and not the file that the index knows"),
        "{ran:?}"
    );
    // It was meant: then the index takes it over.
    place.ok(["index", "--rebuild", "-q"]);
    place.run(["check", "--archives"]).expect(0);
}

#[test]
fn archives_made_by_hand_or_kept_or_renamed_are_fine() {
    let place = with_archive();
    place.packed_by_hand("20240520_old");
    place.pack("20240603_crawler");
    place.ok(["index", "-q"]);
    place.run(["check", "--archives"]).expect(0);
    let archive = place.home().join("archive");
    let to = archive.join("20240605_other.tar.zst");
    std::fs::rename(archive.join("20240605_api_refactor.tar.zst"), to).unwrap();
    place.ok(["index", "--rebuild", "-q"]);
    let ran = place.run(["check", "--archives"]);
    assert!(
        of_archives(&ran).iter().all(|line| !line.contains("other")),
        "{ran:?}"
    );
}

#[test]
fn what_has_the_name_of_an_archive_and_is_no_file_is_none() {
    let place = with_archive();
    let path = place.home().join(ARCHIVE);
    let elsewhere = place.root().join("elsewhere.tar.zst");
    std::fs::rename(&path, &elsewhere).unwrap();
    let told = |what: &str| {
        for args in [&["check"][..], &["check", "--archives"]] {
            let ran = place.run(args);
            let said = format!("{ARCHIVE} is {what}, not a file");
            let told = &ran.expect(4).stdout;
            assert!(
                told.contains("bad-archive") && told.contains(&said),
                "{ran:?}"
            );
        }
        place.run(["check", "crawler"]).expect(0);
        place.run(["check", "api"]).expect(4);
    };
    // A link to a whole archive is followed by nobody.
    symlink(&elsewhere, &path).unwrap();
    told("a symbolic link");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    told("a folder");
    std::fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    told("a FIFO");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&elsewhere, &path).unwrap();
    place.run(["check", "--archives"]).expect(0);
}

#[test]
fn an_archive_folder_that_is_none_is_a_finding() {
    let place = sound();
    let archive = place.home().join("archive");
    let told = |what: &str| {
        for args in [&["check"][..], &["check", "--archives"]] {
            let ran = place.run(args);
            let said = format!("archive is {what}, not the folder of the archives");
            let told = &ran.expect(4).stdout;
            assert!(
                told.contains("bad-archive") && told.contains(&said),
                "{ran:?}"
            );
        }
    };
    std::fs::remove_dir(&archive).unwrap();
    place.run(["check", "--archives"]).expect(0);
    std::fs::write(&archive, "").unwrap();
    told("a file");
    std::fs::remove_file(&archive).unwrap();
    symlink("nowhere", &archive).unwrap();
    told("a symbolic link");
}

#[test]
fn an_empty_home() {
    let place = Place::with_home();
    assert_snapshot!(place.run(["check"]).shown(&place), @r"
    exit: 0
    --- stdout
    0 sessions · 3 files · 2.9 kB

    Nothing is wrong.
    --- stderr
    ");
}

#[test]
fn what_is_lost_or_damaged() {
    let place = sound();
    place.put_home(
        "index.json",
        r#"[{"id": "20240603_crawler"}, {"id": "20240604_gone"}]"#,
    );
    assert_snapshot!(found("missing-session", 4, &place), @r"  missing-session     1   20240604_gone  is in the index, and found nowhere");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/context/turn_002.json"),
        "{\"turn\": 2, \"text\": \"五",
    );
    assert_snapshot!(found("torn-json", 4, &place), @r"  torn-json     1   20240603_crawler  context/turn_002.json ends in mid-record");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/logs/agent_run.log"),
        [b"line\n".as_slice(), &[0; 512], b"line\n"].concat(),
    );
    assert_snapshot!(found("nul-run", 4, &place), @r"  nul-run     1   20240603_crawler  logs/agent_run.log holds 512 NUL bytes from byte 6 on");

    let place = sound();
    place.put_home(&format!("{CRAWLER}/context/turn_004.json"), "{}");
    assert_snapshot!(found("missing-turn", 4, &place), @r"  missing-turn     2   20240603_crawler  002 between 001 and 004");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/artifacts/.report.pdf.icloud"),
        "bplist00",
    );
    assert_snapshot!(found("placeholder", 4, &place), @r"  placeholder     1   20240603_crawler  artifacts/.report.pdf.icloud stands for report.pdf, which was never downloaded");

    let place = sound();
    place.put_home(
        "index.json",
        r#"[{"id": "20240603_crawler"}, {"id": "20240520_old", "status": "archived"}]"#,
    );
    place.put_home("archive/20240520_old.tar.zst", "");
    assert_snapshot!(found("bad-archive", 4, &place), @r"  bad-archive     1   20240520_old  archive/20240520_old.tar.zst is empty");

    let place = sound();
    place.put_home("agents/research_agent/agent.yaml", vec![b'#'; 2 << 20]);
    assert_snapshot!(found("unreadable", 3, &place), @r"  unreadable     1   agents/research_agent/agent.yaml too large to be read (2.1 MB)");

    let place = sound();
    std::fs::remove_dir_all(place.home().join(CRAWLER)).unwrap();
    std::fs::create_dir(place.home().join(CRAWLER)).unwrap();
    assert_snapshot!(found("empty-session", 4, &place), @r"  empty-session     1   20240603_crawler  holds no file");

    let place = sound();
    std::fs::remove_file(place.home().join(CRAWLER).join("session.json")).unwrap();
    assert_snapshot!(found("no-session-json", 4, &place), @r"  no-session-json     1   20240603_crawler  has no session.json beside its 1 file");
}

#[test]
fn what_stands_twice() {
    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/context/turn_001 (1).json"),
        "{\"turn\": 1, \"text\": \"一\"}\n",
    );
    assert_snapshot!(found("conflict-copy", 4, &place), @r"  conflict-copy     1   20240603_crawler  context/turn_001 (1).json is the same as turn_001.json");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/context/turn_001-MACBOOK.json"),
        "{\"turn\": 1, \"text\": \"二\"}\n",
    );
    place.put_home(
        &format!("{CRAWLER}/context/turn_001 (MacBook's conflicted copy 2024-06-03).json"),
        "{\"turn\": 1, \"text\": \"三\"}\n",
    );
    found("conflict-copy", 4, &place);

    let place = sound();
    place.put_home(&format!("{CRAWLER} (1)/session.json"), "{}");
    assert_snapshot!(found("conflict-dir", 4, &place), @r"  conflict-dir     1   20240603_crawler  sessions/20240603_crawler (1) holds 1 file of 20240603_crawler, 1 unlike there");

    let place = sound();
    place.put_home(
        "index.json",
        r#"[{"id": "20240603_crawler", "tags": ["a"]}, {"id": "20240603_crawler"}]"#,
    );
    assert_snapshot!(found("duplicate-id", 4, &place), @r"  duplicate-id     1   20240603_crawler  index.json has 2 entries with the id 20240603_crawler");

    let place = sound();
    place.put_home(&format!("{CRAWLER}/artifacts/Report.md"), "a");
    place.put_home(&format!("{CRAWLER}/artifacts/report.md"), "b");
    assert_snapshot!(found("name-collision", 4, &place), @r"  name-collision     1   20240603_crawler  artifacts/report.md differs from Report.md only by upper and lower case");
}

#[test]
fn what_points_nowhere_or_disagrees() {
    let place = sound();
    symlink(
        "gone.md",
        place.home().join(CRAWLER).join("artifacts/latest"),
    )
    .unwrap();
    assert_snapshot!(found("dangling-link", 4, &place), @r"  dangling-link     1   20240603_crawler  artifacts/latest points to gone.md, which is not there");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/session.json"),
        r#"{"id": "20240603_crawler", "cwd": "/nowhere/at/all"}"#,
    );
    assert_snapshot!(found("wrong-cwd", 4, &place), @r"  wrong-cwd     1   20240603_crawler  session.json would resume in /nowhere/at/all, which is not there");

    let place = sound();
    place.put_home(
        &format!("{CRAWLER}/session.json"),
        r#"{"id": "20240603_crawler", "agent": "nobody"}"#,
    );
    assert_snapshot!(found("unknown-agent", 4, &place), @r"  unknown-agent     1   20240603_crawler  session.json is of the agent nobody, and agents/nobody/ is not there");

    let place = sound();
    place.put_home(
        "agents/research_agent/agent.yaml",
        "name: research_agent\nskills: [web_search]\n",
    );
    assert_snapshot!(found("missing-skill", 4, &place), @r"  missing-skill     1   agents/research_agent/skills/web_search.yaml is not there; agents/research_agent/agent.yaml names it");

    let place = sound();
    place.session("20240606_by_hand", 6);
    assert_snapshot!(found("unindexed-session", 4, &place), @r"  unindexed-session     1   20240606_by_hand  is not in the index");

    let place = sound();
    place.packed_by_hand("20240520_old");
    assert_snapshot!(found("archive-unindexed", 4, &place), @r"  archive-unindexed     1   20240520_old  archive/20240520_old.tar.zst is not in the index");

    let place = sound();
    std::fs::set_permissions(place.home(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_snapshot!(found("open-to-others", 4, &place), @r"  open-to-others     1   mode 0755: other users of this machine can enter it; 0700 keeps them out");
}

#[test]
fn what_one_should_only_know_is_no_failure() {
    let place = sound();
    place.session("my session (x)", 6);
    place.ok(["index", "-q"]);
    assert_snapshot!(found("bad-name", 0, &place), @r"  bad-name     1   my session (x)  the name does not begin with a date: YYYYMMDD_task");
    assert_snapshot!(place.run(["check"]).shown(&place), @r"
    exit: 0
    --- stdout
    2 sessions · 7 files · 3.7 kB

    Nothing is wrong.

    Good to know
      bad-name     1   my session (x)  the name does not begin with a date: YYYYMMDD_task
    --- stderr
    ");

    let place = sound();
    symlink(
        "/etc/hosts",
        place.home().join(CRAWLER).join("artifacts/hosts"),
    )
    .unwrap();
    assert_snapshot!(found("outside-link", 0, &place), @r"  outside-link     1   20240603_crawler  artifacts/hosts points to /etc/hosts, out of the home");
}

/// A home that was migrated from `[ROOT]/old drive`.
fn migrated() -> Place {
    let place = Place::new();
    place.put(
        "old drive/sessions/20240603_crawler/session.json",
        "{\"id\": \"20240603_crawler\"}\n",
    );
    place.ok([
        "migrate",
        "old drive",
        support::home::HOME,
        "--no-state",
        "-y",
        "-q",
    ]);
    place
}

#[test]
fn references_to_the_place_that_it_came_from() {
    let place = migrated();
    place.ok(["check"]);
    let old = place.path("old drive").display().to_string();
    place.put_home(
        &format!("{CRAWLER}/memory/notes.md"),
        format!("see {old}/sessions and {old}\n"),
    );
    assert_snapshot!(found("stale-path", 4, &place), @r"  stale-path     1   20240603_crawler  memory/notes.md holds 2 references to [ROOT]/old drive");

    // `~` is what it is now: in another user's home nothing of theirs is what was left behind.
    let place = migrated();
    // Without a reference that follows, `relink` has nothing to remember.
    place.put_home(
        &format!("{CRAWLER}/memory/notes.md"),
        format!("in ~/workbuddy_home/sessions, {}\n", place.home().display()),
    );
    std::fs::create_dir(place.path("neu")).unwrap();
    let (old, new) = (place.home(), place.path("neu/workbuddy_home"));
    std::fs::rename(&old, &new).unwrap();
    let run = |home: &str, args: &[&str]| {
        let home = place.path(home);
        let env = [("HOME", home.to_str().unwrap())];
        let at = ["--home", new.to_str().unwrap()];
        place.run_with(&env, &[&at[..], args].concat())
    };
    let (old, new_text) = (old.to_str().unwrap(), new.to_str().unwrap());
    run("neu", &["relink", old, new_text, "--no-state"]).expect(0);
    run("neu", &["check"]).expect(0);
    // Whoever stayed has left it.
    assert!(
        run("me", &["check"])
            .expect(4)
            .stdout
            .contains("stale-path")
    );

    let place = migrated();
    let old = place.path("old drive").display().to_string();
    place.put_home(
        &format!("{CRAWLER}/memory/notes.md"),
        format!("看{old}的文件\n"),
    );
    assert_snapshot!(found("doubtful-path", 0, &place), @r"  doubtful-path     1   20240603_crawler  memory/notes.md holds 1 reference to [ROOT]/old drive, with a letter of another script right behind it, left alone");

    let place = migrated();
    let old = place.path("old drive").display().to_string();
    place.put_home(
        &format!("{CRAWLER}/artifacts/model.bin"),
        [b"\0\x01\xff\xfe\0\0", old.as_bytes(), b"\0\0\xff"].concat(),
    );
    assert_snapshot!(found("binary-path", 0, &place), @r"  binary-path     1   20240603_crawler  artifacts/model.bin holds 1 reference to [ROOT]/old drive in binary data, left alone");
}

/// Two sessions with something wrong each, and one that is sound.
fn damaged() -> Place {
    let place = Place::with_sessions();
    place.put_home(&format!("{CRAWLER}/context/turn_003.json"), "{");
    for n in 1..=6 {
        place.put_home(
            &format!("sessions/20240604_数据清洗/artifacts/表 ({n}).csv"),
            format!("{n}\n"),
        );
    }
    place.put_home("sessions/20240604_数据清洗/artifacts/表.csv", "0\n");
    place
}

#[test]
fn the_worst_first_and_a_few_of_each() {
    let place = damaged();
    assert_snapshot!(place.run(["check"]).shown(&place), @r"
    exit: 4
    --- stdout
    3 sessions · 17 files · 4.2 kB

    8 problems
      torn-json         1   20240603_crawler  context/turn_003.json ends in mid-record
      missing-turn      1   20240603_crawler  002 between 001 and 003
      conflict-copy     6   20240604_数据清洗  artifacts/表 (1).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (2).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (3).csv differs from 表.csv, and is older
                            … 3 more; in all 6 diverged

    Every finding: wbhome check -v
    --- stderr
    ");
    assert_snapshot!(place.run(["check", "-v"]).shown(&place), @r"
    exit: 4
    --- stdout
    3 sessions · 17 files · 4.2 kB

    8 problems
      torn-json         1   20240603_crawler  context/turn_003.json ends in mid-record
      missing-turn      1   20240603_crawler  002 between 001 and 003
      conflict-copy     6   20240604_数据清洗  artifacts/表 (1).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (2).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (3).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (4).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (5).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (6).csv differs from 表.csv, and is older
    --- stderr
    ");
    assert_snapshot!(place.run(["check", "-q"]).shown(&place), @r"
    exit: 4
    --- stdout
    3 sessions · 17 files · 4.2 kB

    8 problems
      torn-json         1   20240603_crawler  context/turn_003.json ends in mid-record
      missing-turn      1   20240603_crawler  002 between 001 and 003
      conflict-copy     6   20240604_数据清洗  artifacts/表 (1).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (2).csv differs from 表.csv, and is older
                            20240604_数据清洗  artifacts/表 (3).csv differs from 表.csv, and is older
                            … 3 more; in all 6 diverged

    Every finding: wbhome check -v
    --- stderr
    ");
}

#[test]
fn only_some_sessions() {
    let place = damaged();
    assert_snapshot!(place.run(["check", "crawler"]).shown(&place), @r"
    exit: 4
    --- stdout
    1 session · 3 files · 139 B

    2 problems
      torn-json        1   20240603_crawler  context/turn_003.json ends in mid-record
      missing-turn     1   20240603_crawler  002 between 001 and 003
    --- stderr
    ");
    assert_eq!(place.run(["check", "@3", "清洗"]).code, Some(4));
    place.ok(["check", "api_refactor"]);
    assert_eq!(place.run(["check", "nothing"]).code, Some(1));
}

#[test]
fn verbose_json_is_a_document_a_line() {
    let place = damaged();
    let ran = place.run(["check", "-v", "--json"]);
    assert_eq!(ran.code, Some(4));
    let kinds: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|finding| {
            assert_eq!(finding["schema"], "wbhome/finding/1");
            finding["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds.len() as u64,
        place.json(["check"])["findings"].as_array().unwrap().len() as u64
    );
    assert_eq!(kinds[0], "torn-json");
    let sound = sound().run(["check", "-v", "--json"]);
    assert_eq!((sound.code, sound.stdout.as_str()), (Some(0), ""));
}

#[test]
fn a_broken_index_is_told_and_the_sessions_are_looked_at() {
    let place = damaged();
    place.put_home("index.json", "[{\"id\": \"20240603_crawler\"");
    let ran = place.run(["check", "crawler"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 4
    --- stdout
    1 session · 3 files · 139 B

    2 problems
      torn-json        1   20240603_crawler  context/turn_003.json ends in mid-record
      missing-turn     1   20240603_crawler  002 between 001 and 003
    --- stderr
    warning: the index is broken at line 1, column 26 (EOF while parsing an object): [ROOT]/me/workbuddy_home/index.json; sessions are looked at without it
    ");
    place.put_home("index.json", "[");
    assert_snapshot!(place.run(["check", "api_refactor"]).shown(&place), @r"
    exit: 4
    --- stdout
    1 session · 2 files · 148 B

    Nothing is wrong here but the index.
    --- stderr
    warning: the index is broken at line 1, column 1 (EOF while parsing a list): [ROOT]/me/workbuddy_home/index.json; sessions are looked at without it
    ");
    let place = sound();
    place.put_home("index.json", "[");
    assert_snapshot!(place.run(["check"]).shown(&place), @r"
    exit: 4
    --- stdout
    1 session · 5 files · 3.0 kB

    1 problem
      torn-json     1   index.json ends in mid-record
    --- stderr
    warning: the index is broken at line 1, column 1 (EOF while parsing a list): [ROOT]/me/workbuddy_home/index.json; sessions are looked at without it
    ");
}

#[test]
fn names_can_not_drive_the_terminal() {
    let place = sound();
    place.put_home(
        "sessions/20240606_\u{1b}[31m\u{202e}x/context/a\u{7}.json",
        "{",
    );
    let ran: Ran = place.run(["check", "-v"]);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.stdout.contains("20240606_\\x1b[31m\\u{202e}x"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("a\\x07.json"), "{ran:?}");
    assert!(ran.stdout.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn usage() {
    let place = sound();
    assert_eq!(place.run(["check", "--rebuild"]).code, Some(2));
    assert_eq!(place.run(["check", "-q", "-v"]).code, Some(2));
}

/// What only the application's registry knows.
#[test]
fn an_agent_that_runs_where_nothing_is() {
    let none = || serde_json::json!({});
    let line = |place: &Place| {
        let line = found("wrong-cwd", 4, place);
        line.replace(&std::process::id().to_string(), "[PID]")
    };
    let place = sound();
    place.at_work("me/.workbuddy", place.home().join(CRAWLER), none());
    assert_eq!(place.run(["check"]).code, Some(0));
    let gone = place.home().join(CRAWLER).join("work");
    place.at_work("me/.workbuddy", gone, none());
    assert_snapshot!(line(&place), @"  wrong-cwd     1   20240603_crawler  an agent (process [PID]) is running in [ROOT]/me/workbuddy_home/sessions/20240603_crawler/work, which is not there");
    // In the place that the home was moved from.
    place.at_work(
        "me/.workbuddy",
        "/nowhere/Drive/wb/sessions/20240603_crawler",
        none(),
    );
    assert_snapshot!(line(&place), @"  wrong-cwd     1   20240603_crawler  an agent (process [PID]) is running in /nowhere/Drive/wb/sessions/20240603_crawler, which is not there");
    let session = serde_json::json!({"sessionId": "identity-of-20240603_crawler"});
    place.at_work("me/.workbuddy", "/nowhere/work", session);
    assert_snapshot!(line(&place), @"  wrong-cwd     1   20240603_crawler  an agent (process [PID]) is running in /nowhere/work, which is not there");
    // Of another session, of none, ended, or kept ready.
    assert_eq!(
        place.json(["check", "crawler"])["counts"]["wrong-cwd"],
        serde_json::json!(1)
    );
    place.session("20240604_other", 4);
    place.ok(["index", "-q"]);
    assert_eq!(place.run(["check", "other"]).code, Some(0));
    for more in [
        none(),
        serde_json::json!({"kind": "prewarm", "sessionId": "identity-of-20240603_crawler"}),
        serde_json::json!({"startedAt": 7, "sessionId": "identity-of-20240603_crawler"}),
    ] {
        place.at_work("me/.workbuddy", "/nowhere/work", more);
        assert_eq!(place.run(["check"]).code, Some(0));
    }
}

#[test]
fn a_skill_whose_entry_is_not_there() {
    let place = sound();
    let agent = "agents/research_agent";
    let declare = |file: &str, entry: &str| {
        let content = format!("name: x\nentry: {entry}\n");
        place.put_home(&format!("{agent}/skills/{file}.yaml"), content);
    };
    place.put_home(&format!("{agent}/bin/网 页"), "#!/bin/sh\n");
    place.put_home(&format!("{agent}/skills/deep/run.py"), "");
    place.put_home("shared/tool", "");
    let home = place.home().to_str().unwrap().to_owned();
    for there in [
        format!("{home}/{agent}/bin/网 页"),
        format!("\"{home}/{agent}/bin/\\u7f51 页 --fast\" # with an option"),
        format!("'/nowhere/wb/{agent}/bin/网 页'"),
        "bin/网".into(),
        "./deep/run.py".into(),
        "../research_agent/bin/../skills/deep/run.py".into(),
        "shared/tool".into(),
        // Not ours to judge.
        "git".into(),
        "python -m tool.run".into(),
        "package.module:main".into(),
        "https://example.org/x/y".into(),
        "$HOME/bin/x".into(),
        "~/bin/x".into(),
        "/nowhere/bin/x".into(),
        "/nowhere/agents/another/bin/x".into(),
        "../../../outside/x".into(),
    ] {
        declare("a", &there);
        // A name that holds a space, with what follows it, and one that does not.
        if there == "bin/网" {
            place.put_home(&format!("{agent}/bin/网"), "");
        }
        let ran = place.run(["check"]);
        assert_eq!(ran.code, Some(0), "{there}: {ran:?}");
    }
    declare("a", "bin/gone");
    assert_snapshot!(found("missing-skill", 4, &place), @"  missing-skill     1   agents/research_agent/skills/a.yaml its entry bin/gone is not there");
    declare("a", &format!("{home}/{agent}/gone/gone"));
    assert_snapshot!(found("missing-skill", 4, &place), @"  missing-skill     1   agents/research_agent/skills/a.yaml its entry [ROOT]/me/workbuddy_home/agents/research_agent/gone/gone is not there");
    declare("a", "\"/nowhere/Drive/wb/agents/research_agent/bin/gone\"");
    assert_snapshot!(found("missing-skill", 4, &place), @"  missing-skill     1   agents/research_agent/skills/a.yaml its entry /nowhere/Drive/wb/agents/research_agent/bin/gone is not there");
    declare("a", "run.py");
    assert_snapshot!(found("missing-skill", 4, &place), @"  missing-skill     1   agents/research_agent/skills/a.yaml its entry run.py is not there");
    // One that all agents share is told once.
    declare("a", "git");
    for agent in ["research_agent", "writer_agent"] {
        let names = format!("skills: [shared]\nname: {agent}\n");
        place.put_home(&format!("agents/{agent}/agent.yaml"), names);
    }
    let json = "{\"entry\": \"bin/gone\"}";
    place.put_home("agents/skills/shared.json", json);
    assert_snapshot!(found("missing-skill", 4, &place), @"  missing-skill     1   agents/skills/shared.json its entry bin/gone is not there");
    assert_eq!(place.json(["check"])["counts"]["missing-skill"], 1);
}
