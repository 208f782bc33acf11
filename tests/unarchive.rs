//! `wbhome unarchive`: an archived session is back exactly, or it is said why not.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;

use insta::assert_snapshot;
use support::home::tool;
use support::{Entry, Place, differences, has_tool, tree};

const ID: &str = "20240603_crawler";
const PACK: &str = "archive/20240603_crawler.tar.zst";

/// A home whose first session is archived, and what that was.
fn archived() -> (Place, BTreeMap<Vec<u8>, Entry>) {
    let place = Place::with_sessions();
    place.put_home(
        "sessions/20240603_crawler/memory/记忆.md",
        "数据\n".repeat(100),
    );
    place.ok([
        "label",
        "crawler",
        "--project",
        "alpha",
        "--tag",
        "网",
        "-q",
    ]);
    let before = session(&place);
    place.ok(["archive", "crawler", "-q"]);
    (place, before)
}

fn session(place: &Place) -> BTreeMap<Vec<u8>, Entry> {
    tree(&place.home().join("sessions").join(ID))
}

fn entry(place: &Place) -> serde_json::Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == ID);
    found.unwrap().clone()
}

#[test]
fn it_is_back_exactly_with_its_labels_and_its_archive_goes() {
    let (place, before) = archived();
    assert_snapshot!(place.run(["unarchive", "crawler"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler   3 files, 838 B
    --- stderr
    ");
    assert_eq!(differences(&before, &session(&place)), "");
    assert!(!place.home().join(PACK).exists());
    let entry = entry(&place);
    assert_eq!(
        (&entry["status"], &entry["tags"][0]),
        (&"active".into(), &"网".into())
    );
    assert!(entry["archived_at"].is_null() && entry["archive"].is_null());
    assert!(place.home().join("projects/alpha").join(ID).exists());
    assert!(place.names(".wbhome/tmp").is_empty());
    place.ok(["check"]);
    assert_snapshot!(place.ok(["unarchive", "crawler"]), @"20240603_crawler   is not archived: it is in sessions/");
}

#[test]
fn a_word_of_somebody_elses_is_its_status_again() {
    let place = Place::with_sessions();
    let index = place
        .home_text("index.json")
        .replacen("\"active\"", "\"paused\"", 1);
    place.put_home("index.json", index);
    place.ok(["archive", "crawler", "-q"]);
    assert_eq!(entry(&place)["status"], "archived");
    place.ok(["unarchive", "crawler", "-q"]);
    assert_eq!(entry(&place)["status"], "paused");
}

#[test]
fn a_dry_run_changes_nothing() {
    let (place, _) = archived();
    let before = place.apart_from_own();
    assert_snapshot!(place.ok(["unarchive", "-n", "crawler"]), @r"
    20240603_crawler   3 files, 838 B
    1 session would be brought back. Nothing was changed.
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn kept_it_has_both() {
    let (place, before) = archived();
    let pack = place.read(format!("{}/{PACK}", support::home::HOME));
    place.ok(["unarchive", "crawler", "--keep"]);
    assert_eq!(differences(&before, &session(&place)), "");
    assert_eq!(place.read(format!("{}/{PACK}", support::home::HOME)), pack);
    assert_eq!(entry(&place)["status"], "active");
    assert_eq!(entry(&place)["archive"]["file"], PACK);
    // The same content twice is no conflict: only the archive goes.
    let done = place.json(["unarchive", "crawler"]);
    assert_eq!(done["sessions"][0]["was_there"], true);
    assert!(!place.home().join(PACK).exists());
    assert_eq!(differences(&before, &session(&place)), "");
}

#[test]
fn what_is_in_sessions_is_never_written_over() {
    let (place, _) = archived();
    place.put_home(
        "sessions/20240603_crawler/context/turn_001.json",
        "{\"other\": 1}",
    );
    let (before, contents) = (place.files(), place.contents());
    for args in [&["unarchive", ID][..], &["unarchive", ID, "--force"]] {
        place
            .run(args)
            .expect(1)
            .says(&["is in sessions/, and is not what its archive holds"]);
        assert_eq!(differences(&before, &place.files()), "");
    }
    place.nothing_lost(&contents);
}

#[test]
fn one_that_is_not_archived_or_removed_is_refused_and_stops_no_other() {
    let (place, _) = archived();
    place.ok(["rm", "api", "-q"]);
    place
        .run(["unarchive", "20240605_api_refactor", "crawler"])
        .expect(3)
        .says(&["has been removed", "--from trash"]);
    assert!(place.home().join("sessions").join(ID).exists());
}

/// Packed from inside, of a session that holds nothing but its context: that is no top folder.
#[test]
fn a_part_of_a_session_is_no_top_folder() {
    if !has_tool("zstd") || !has_tool("tar") {
        return;
    }
    for what in [".", "./context", "context/turn_001.json"] {
        let place = Place::with_home();
        place.put(
            "s/context/turn_001.json",
            r#"{"role": "user", "content": "needle"}"#,
        );
        let (from, pack) = (
            place.path("s"),
            place.home().join("archive/20240520_ctx.tar.zst"),
        );
        let (from, pack) = (from.to_str().unwrap(), pack.to_str().unwrap());
        tool("tar", &["--zstd", "-cf", pack, "-C", from, what]);
        place.ok(["index", "-q"]);
        let found = place.ok(["search", "needle", "--archived", "--in", "context"]);
        assert!(found.contains("context/turn_001.json"), "{what}: {found}");
        place.ok(["unarchive", "ctx", "-q"]);
        let back = place
            .home()
            .join("sessions/20240520_ctx/context/turn_001.json");
        assert!(back.exists(), "{what}");
    }
}

#[test]
fn an_archive_made_by_hand_comes_back_and_goes_into_the_trash() {
    if !has_tool("zstd") || !has_tool("tar") {
        return;
    }
    let place = Place::with_sessions();
    let before = session(&place);
    let (home, contents) = (place.home(), place.contents());
    let (sessions, pack) = (home.join("sessions"), home.join(PACK));
    let (sessions, pack) = (sessions.to_str().unwrap(), pack.to_str().unwrap());
    tool(
        "tar",
        &["--zstd", "--format=pax", "-cf", pack, "-C", sessions, ID],
    );
    fs::remove_dir_all(home.join("sessions").join(ID)).unwrap();
    // The index has not been told, and has lost its entry: it is found all the same.
    place.put_home("index.json", "[]");
    let ran = place.run(["unarchive", "crawler"]);
    ran.expect(0);
    assert!(
        ran.stdout.contains("its archive is in the trash"),
        "{ran:?}"
    );
    assert_eq!(differences(&before, &session(&place)), "");
    let entry = entry(&place);
    assert_eq!(entry["session_id"], format!("identity-of-{ID}"));
    assert_eq!(entry["status"], "active");
    place.nothing_lost(&contents);
    assert_eq!(place.acts().len(), 1);
}

#[test]
fn a_pack_alone_is_enough_for_its_entry() {
    let (place, before) = archived();
    place.put_home("index.json", "[]");
    place.ok(["unarchive", "crawler", "-q"]);
    assert_eq!(differences(&before, &session(&place)), "");
    let entry = entry(&place);
    assert_eq!(
        (&entry["project"], &entry["tags"][0]),
        (&"alpha".into(), &"网".into())
    );
    assert_eq!(entry["status"], "active");
}

#[test]
fn one_that_was_renamed_gets_its_new_name() {
    let (place, before) = archived();
    place.ok(["mv", "crawler", "price_crawler", "-q"]);
    let ran = place.run(["unarchive", "price"]);
    ran.expect(0).says(&[
        "20240603_price_crawler was called 20240603_crawler",
        "wbhome relink ",
        "/sessions/20240603_crawler ",
        "/sessions/20240603_price_crawler 20240603_price_crawler",
    ]);
    let now = tree(&place.home().join("sessions/20240603_price_crawler"));
    assert_eq!(differences(&before, &now), "");
}

/// Every byte of the second half of the data is another.
fn damage(place: &Place) {
    let path = place.home().join(PACK);
    let mut pack = fs::read(&path).unwrap();
    for byte in &mut pack[40..60] {
        *byte ^= 0x5a;
    }
    fs::write(&path, pack).unwrap();
}

#[test]
fn a_damaged_archive_is_refused_and_stays() {
    let (place, _) = archived();
    damage(&place);
    let before = place.apart_from_own();
    place
        .run(["unarchive", "crawler"])
        .expect(1)
        .says(&["is damaged", "nothing in it can be proved good"]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    assert!(place.names(".wbhome/tmp").is_empty());
    assert!(place.names(".wbhome/journal").is_empty());
}

#[test]
fn of_a_damaged_archive_force_brings_back_what_is_good() {
    let place = Place::with_sessions();
    // Several frames: each large file begins one.
    let noise = |seed: u64| -> Vec<u8> {
        (0..9_000_000u64)
            .flat_map(|n| {
                (n ^ seed)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(29)
                    .to_le_bytes()
            })
            .collect()
    };
    for n in 1..4 {
        place.put_home(&format!("sessions/20240603_crawler/logs/{n}.bin"), noise(n));
    }
    let before = session(&place);
    place.ok(["archive", "crawler", "-q"]);
    let path = place.home().join(PACK);
    let mut pack = fs::read(&path).unwrap();
    let at = pack.len() - 20_000_000;
    pack[at] ^= 0xff;
    fs::write(&path, &pack).unwrap();
    place
        .run(["unarchive", "crawler"])
        .expect(1)
        .says(&["is damaged"]);
    place
        .run(["unarchive", "crawler", "--force"])
        .expect(3)
        .says(&["missing: "]);
    let now = session(&place);
    let lost: Vec<_> = before
        .keys()
        .filter(|name| !now.contains_key(*name))
        .collect();
    assert!(!lost.is_empty() && lost.len() < 3, "{lost:?}");
    for (name, entry) in now.iter().filter(|(_, entry)| entry.kind == 'f') {
        assert_eq!(entry.content, before[name].content);
    }
    assert_eq!(fs::read(&path).unwrap(), pack);
    assert_eq!(entry(&place)["status"], "active");
    assert_eq!(entry(&place)["archive"]["file"], PACK);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_the_session_whole_and_the_next_command_settles_it() {
    for (failpoint, back) in [
        ("unarchive.unpacked", false),
        ("journal.begun", true),
        ("journal.renamed", true),
        ("mend.discarded", true),
        ("index.before", true),
        ("index.written", true),
        ("mend.unarchived", true),
        ("journal.viewed", true),
        ("journal.done", true),
    ] {
        let (place, before) = archived();
        let ran = place.run_with(
            &[("WBHOME_FAILPOINT", failpoint)],
            &["unarchive", "crawler"],
        );
        assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
        place.ok(["index", "-q"]);
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        assert!(place.names(".wbhome/tmp").is_empty(), "{failpoint}");
        let folder = place.home().join("sessions").join(ID);
        assert_eq!(folder.exists(), back, "{failpoint}");
        if !back {
            assert_eq!(entry(&place)["status"], "archived");
            place.ok(["unarchive", "crawler"]);
        }
        assert_eq!(differences(&before, &session(&place)), "", "{failpoint}");
        assert_eq!(entry(&place)["status"], "active", "{failpoint}");
        assert!(entry(&place)["archive"].is_null(), "{failpoint}");
        assert!(!place.home().join(PACK).exists(), "{failpoint}");
        place.ok(["check"]);
    }
}

/// A session that somebody made meanwhile keeps its place, and the archive stays.
#[cfg(feature = "failpoints")]
#[test]
fn a_place_that_was_taken_meanwhile_loses_neither() {
    let (place, _) = archived();
    let contents = place.contents();
    let env = [("WBHOME_FAILPOINT", "unarchive.unpacked")];
    assert_eq!(place.run_with(&env, &["unarchive", "crawler"]).code, None);
    place.put_home("sessions/20240603_crawler/context/turn_009.json", "{}");
    place.ok(["index", "-q"]);
    place.nothing_lost(&contents);
    assert!(place.home().join(PACK).exists());
    assert!(
        place
            .home()
            .join("sessions/20240603_crawler/context/turn_009.json")
            .exists()
    );
}

/// Whoever puts another file in the place of the archive while it is unpacked loses neither of the two.
#[test]
fn an_archive_that_is_replaced_meanwhile_is_not_removed() {
    for delay in [5, 20, 40, 80] {
        let place = Place::with_sessions();
        place.put_home(
            "sessions/20240603_crawler/artifacts/big.bin",
            noise(24 << 20),
        );
        place.ok(["archive", "crawler"]);
        let other = place.put_home("archive/other", "another file");
        let mut contents = place.contents();
        // The archive that is written over here, by this test.
        contents.remove(&format!("f:{}", support::digest(&place.home().join(PACK))));
        let ran = std::thread::scope(|scope| {
            let run = scope.spawn(|| place.run(["unarchive", "crawler"]));
            std::thread::sleep(std::time::Duration::from_millis(delay));
            fs::rename(&other, place.home().join(PACK)).unwrap();
            run.join().unwrap()
        });
        if place.home().join("sessions").join(ID).exists() {
            place.nothing_lost(&contents);
        }
        let found = fs::read(place.home().join(PACK));
        assert_eq!(found.unwrap(), b"another file", "{delay} ms: {ran:?}");
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 7u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
