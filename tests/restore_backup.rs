//! `wbhome restore SESSION[/PATH] --from backup` and `--from archive`: one session, or something in it, out of a pack.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it breaks what it has laid out, and says what does not fit"
)]

mod support;

use std::path::PathBuf;

use support::cold::{damage, files_in};
use support::{Place, Ran, differences, tree};

const LATER: &str = "2024-06-18T03:00:00Z";
const CRAWLER: &str = "sessions/20240603_crawler";

trait Backed {
    fn backed_up() -> Place;
    fn run_at(&self, now: &str, args: &[&str]) -> Ran;
    fn restore(&self, args: &[&str]) -> Ran;
    fn packs_of(&self, session: &str) -> Vec<PathBuf>;
}

impl Backed for Place {
    fn backed_up() -> Place {
        let place = Place::with_sessions();
        place.ok([
            "label",
            "20240603_crawler",
            "--tag",
            "爬虫",
            "--project",
            "alpha",
            "-q",
        ]);
        place.put_home(&format!("{CRAWLER}/memory/笔记.md"), "one\n");
        place.date("20240603_crawler", 3);
        place.ok(["backup", "init", "cold", "-q"]);
        place.ok(["backup", "run", "-q"]);
        place
    }

    fn run_at(&self, now: &str, args: &[&str]) -> Ran {
        self.run_with(&[("WBHOME_NOW", now)], args)
    }

    fn restore(&self, args: &[&str]) -> Ran {
        let all: Vec<&str> = ["restore"].iter().chain(args).copied().collect();
        self.run_at(LATER, &all)
    }

    fn packs_of(&self, session: &str) -> Vec<PathBuf> {
        let folder = self.path("cold/packs/sessions").join(session);
        files_in(folder)
    }
}

#[test]
fn a_lost_session_comes_back_with_its_labels() {
    let place = Place::backed_up();
    let session = place.home().join(CRAWLER);
    let before = tree(&session);
    std::fs::remove_dir_all(&session).unwrap();
    place.ok(["index", "-q"]);
    assert_eq!(place.index()[0]["status"], "missing");
    let ran = place.restore(&["crawler", "--from", "backup", "-n"]);
    ran.expect(0);
    assert!(!session.exists(), "{ran:?}");
    let ran = place.restore(&["crawler", "--from", "backup"]);
    ran.expect(0);
    assert!(
        before == tree(&session),
        "{}",
        differences(&before, &tree(&session))
    );
    let entry = &place.index()[0];
    assert_eq!(
        (&entry["status"], &entry["tags"][0]),
        (&"active".into(), &"爬虫".into())
    );
    assert!(
        place
            .home()
            .join("projects/alpha/20240603_crawler")
            .exists()
    );
    assert!(
        ran.stdout.contains("as of 2024-06-15 12:00 (2 days ago)"),
        "{ran:?}"
    );
    assert_eq!(place.json(["ls"])["stale"], false);
}

#[test]
fn a_session_that_was_removed_comes_back() {
    let place = Place::backed_up();
    place.ok(["rm", "20240603_crawler", "-q"]);
    place
        .restore(&["20240603_crawler", "--from", "backup"])
        .expect(0);
    assert_eq!(place.index()[0]["status"], "active");
    assert!(place.index()[0].get("removed_at").is_none());
}

#[test]
fn nothing_newer_makes_way_unasked_and_with_force_it_is_in_the_trash() {
    let place = Place::backed_up();
    let turn = format!("{CRAWLER}/context/turn_002.json");
    place.put_home(&turn, "{}\n");
    let before = place.apart_from_own();
    place
        .restore(&["crawler", "--from", "backup"])
        .expect(1)
        .says(&[
            "1 file is newer",
            "context/turn_002.json",
            "--force",
            "--to",
        ]);
    assert_eq!(before, place.apart_from_own());
    let contents = place.contents();
    let ran = place.restore(&["crawler", "--from", "backup", "--force"]);
    ran.expect(0);
    assert!(!place.home().join(&turn).exists());
    place.nothing_lost(&contents);
    // And back again.
    let again = ran
        .stdout
        .split("Back again: wbhome ")
        .nth(1)
        .unwrap()
        .trim();
    let again: Vec<&str> = again.split(' ').collect();
    place.run_at(LATER, &again).expect(0);
    assert!(place.home().join(&turn).exists());
}

#[test]
fn one_file_comes_back_and_all_else_stays() {
    let place = Place::backed_up();
    let file = format!("{CRAWLER}/memory/笔记.md");
    // As damage does it: nothing about its time says that it is newer.
    place.put_home(&file, "xxx\n");
    place.date("20240603_crawler", 3);
    place.put_home(&format!("{CRAWLER}/context/turn_002.json"), "{}\n");
    let mut before = place.apart_from_own();
    place
        .restore(&["crawler/memory/笔记.md", "--from", "backup"])
        .expect(0);
    assert_eq!(place.home_text(&file), "one\n");
    let mut after = place.apart_from_own();
    for tree in [&mut before, &mut after] {
        tree.retain(|name, _| {
            let name = String::from_utf8_lossy(name);
            !name.ends_with("memory") && !name.ends_with(".md") && !name.ends_with("index.json")
        });
    }
    assert_eq!(differences(&before, &after), "");
    place
        .restore(&["crawler/memory/none.md", "--from", "backup"])
        .expect(1)
        .says(&["does not hold memory/none.md"]);
    // A folder, too.
    std::fs::remove_dir_all(place.home().join(CRAWLER).join("memory")).unwrap();
    place
        .restore(&["crawler/memory", "--from", "backup"])
        .expect(0);
    assert_eq!(place.home_text(&file), "one\n");
}

#[test]
fn a_damaged_pack_is_told_and_the_one_before_comes() {
    let place = Place::backed_up();
    place.put_home(&format!("{CRAWLER}/memory/笔记.md"), "two\n");
    place.date("20240603_crawler", 16);
    place
        .run_at("2024-06-17T02:00:00Z", &["backup", "run", "-q"])
        .expect(0);
    let packs = place.packs_of("20240603_crawler");
    assert_eq!(packs.len(), 2);
    let at = |args: &[&str]| place.restore(args);
    at(&["crawler", "--from", "backup", "--to", "out"]).expect(0);
    assert_eq!(place.text("out/20240603_crawler/memory/笔记.md"), "two\n");
    at(&[
        "crawler/memory/笔记.md",
        "--from",
        "backup",
        "--at",
        "2024-06-15 20:00",
        "--to",
        "older",
    ])
    .expect(0);
    assert_eq!(place.text("older/笔记.md"), "one\n");
    damage(&packs[1]);
    let before = place.apart_from_own();
    let ran = at(&["crawler", "--from", "backup", "--to", "out2"]);
    ran.expect(3)
        .says(&["a pack is of no use", "20240617T020000Z"]);
    assert_eq!(place.text("out2/20240603_crawler/memory/笔记.md"), "one\n");
    // What is in the home is newer than that one.
    at(&["crawler", "--from", "backup"])
        .expect(1)
        .says(&["newer than the pack of 2024-06-15T12:00:00Z"]);
    assert_eq!(before, place.apart_from_own());
    at(&["crawler", "--from", "backup", "--to", "out"])
        .expect(1)
        .says(&["not empty"]);
}

#[test]
fn an_archive_comes_back_as_one() {
    let place = Place::backed_up();
    place.ok(["archive", "20240604_数据清洗", "-q"]);
    place
        .run_at("2024-06-16T02:00:00Z", &["backup", "run", "-q"])
        .expect(0);
    let archive = place.home().join("archive/20240604_数据清洗.tar.zst");
    let before = tree(&place.home().join("archive"));
    let entry = place.index()[1].clone();
    damage(&archive);
    place.restore(&["数据清洗", "--from", "backup"]).expect(1);
    place
        .restore(&["数据清洗", "--from", "backup", "--force"])
        .expect(0);
    let digest = |tree: &std::collections::BTreeMap<Vec<u8>, support::Entry>| {
        tree.iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(_, entry)| (entry.content.clone(), entry.mode, entry.mtime))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        digest(&before),
        digest(&tree(&place.home().join("archive")))
    );
    assert_eq!(place.index()[1], entry);
    std::fs::remove_file(&archive).unwrap();
    place.run_at(LATER, &["index", "-q"]).expect(0);
    place.restore(&["数据清洗", "--from", "backup"]).expect(0);
    assert_eq!(place.index()[1]["status"], "archived");
    place.ok(["unarchive", "数据清洗", "-q"]);
}

#[test]
fn something_comes_out_of_the_archive() {
    let place = Place::backed_up();
    let before = tree(&place.home().join(CRAWLER));
    place.ok(["archive", "crawler", "--keep", "-q"]);
    std::fs::remove_file(place.home().join(CRAWLER).join("memory/笔记.md")).unwrap();
    place
        .restore(&["crawler/memory/笔记.md", "--from", "archive"])
        .expect(0);
    assert_eq!(
        place.home_text(&format!("{CRAWLER}/memory/笔记.md")),
        "one\n"
    );
    place
        .restore(&["crawler", "--from", "archive", "--to", "out"])
        .expect(0);
    let out = tree(&place.path("out/20240603_crawler"));
    assert!(before == out, "{}", differences(&before, &out));
    place
        .restore(&["数据清洗", "--from", "archive"])
        .expect(1)
        .says(&["has no archive"]);
}

#[test]
fn whose_store_it_is_counts() {
    let place = Place::backed_up();
    let other = place.path("other");
    place.ok(["init", "other", "-q"]);
    let args = [
        "--home",
        other.to_str().unwrap(),
        "restore",
        "crawler",
        "--from",
        "backup",
    ];
    place
        .run_at(LATER, &args)
        .expect(1)
        .says(&["no backup store is set"]);
    let args: Vec<&str> = args.iter().copied().chain(["--store", "cold"]).collect();
    place
        .run_at(LATER, &args)
        .expect(1)
        .says(&["belongs to another home", "--all"]);
    place
        .run(["restore", "crawler", "--from", "git", "--to", "x"])
        .expect(2);
    place
        .run(["restore", "crawler", "--from", "trash", "--store", "x"])
        .expect(2);
}

#[test]
fn nobody_is_at_work_in_it_meanwhile() {
    let place = Place::backed_up();
    place.at_work(
        "me/.workbuddy",
        place.home().join(CRAWLER),
        serde_json::json!({}),
    );
    let ran = place.restore(&["crawler", "--from", "backup", "--force"]);
    ran.expect(1).says(&["an agent"]);
    place
        .restore(&["crawler", "--from", "backup", "--to", "out"])
        .expect(0);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_the_one_or_the_other() {
    for point in [
        "restore-backup.built",
        "journal.begun",
        "mend.put-away",
        "mend.brought-back",
        "mend.unarchived",
        "journal.done",
    ] {
        let place = Place::backed_up();
        let file = format!("{CRAWLER}/memory/笔记.md");
        place.put_home(&file, "xxx\n");
        place.date("20240603_crawler", 3);
        if point == "mend.unarchived" {
            std::fs::remove_dir_all(place.home().join(CRAWLER)).unwrap();
            place.ok(["index", "-q"]);
        }
        let env = [("WBHOME_NOW", LATER), ("WBHOME_FAILPOINT", point)];
        let ran = place.run_with(&env, &["restore", "crawler", "--from", "backup"]);
        assert_eq!(ran.code, None, "{point}: {ran:?}");
        place.run_at(LATER, &["index", "-q"]).expect(0);
        let text = place.home_text(&file);
        let built = point == "restore-backup.built";
        assert_eq!(text, if built { "xxx\n" } else { "one\n" }, "{point}");
        assert_eq!(place.index()[0]["status"], "active", "{point}");
        place.restore(&["crawler", "--from", "backup"]).expect(0);
        assert_eq!(place.home_text(&file), "one\n");
    }
}

#[test]
fn what_was_edited_and_given_an_old_time_does_not_make_way_unasked() {
    let place = Place::backed_up();
    let file = place
        .home()
        .join("sessions/20240603_crawler/context/turn_001.json");
    let old = std::fs::File::options().write(true).open(&file).unwrap();
    std::fs::write(&file, "{\"edited\": true}\n").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    old.set_modified(long_ago).unwrap();
    drop(old);
    for what in ["crawler/context/turn_001.json", "crawler"] {
        let ran = place.restore(&[what, "--from", "backup"]);
        ran.expect(1).says(&["turn_001.json", "--force"]);
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "{\"edited\": true}\n"
    );
    place
        .restore(&[
            "crawler/context/turn_001.json",
            "--from",
            "backup",
            "--force",
        ])
        .expect(0);
}

#[test]
fn elsewhere_is_neither_in_the_home_nor_in_the_store() {
    let place = Place::backed_up();
    let store = place.path("cold");
    for to in [
        place.home().join("sessions/x"),
        place.home().join(".wbhome/x"),
        store.join("x"),
    ] {
        let ran = place.restore(&["crawler", "--from", "backup", "--to", to.to_str().unwrap()]);
        ran.expect(1).says(&["lies inside the"]);
        assert!(!to.exists());
    }
}
