use serde_json::json;

use super::*;
use crate::disk;
use crate::home::testing::{self, Place};
use crate::home::{Cache, Status};
use crate::pack::{self, About};

fn run(place: &Place, rebuild: bool) -> Outcome {
    let home = place.locked("index");
    let plan = plan(&home, rebuild, &place.context()).unwrap();
    let planned = plan.changes.clone();
    let outcome = apply(&home, plan, &place.context()).unwrap();
    assert_eq!(outcome.changes, planned);
    outcome
}

fn session(place: &Place, id: &str, identity: &str) {
    let record = format!(r#"{{"id": "{id}", "session_id": "{identity}", "project": "项目"}}"#);
    place.put(&format!("sessions/{id}/session.json"), &record);
    place.put(&format!("sessions/{id}/context/turn_001.json"), "{}");
}

#[test]
fn index_views_and_cache_follow_the_disk() {
    let place = testing::home();
    session(&place, "20240603_数据", "1");
    session(&place, "20240604_b", "2");
    place.put("sessions/20240605_torn/session.json", "{\"id\": ");
    place.put("sessions/.stfolder/x", "");
    place.put("sessions/notes.txt", "");
    let outcome = run(&place, false);
    assert_eq!(outcome.changes.added.len(), 3);
    assert_eq!(outcome.changes.problems.len(), 1);
    assert!(outcome.changes.problems[0].why.contains("session.json"));
    assert_eq!(
        outcome.views.made,
        ["projects/项目/20240603_数据", "projects/项目/20240604_b"]
    );
    let cache = Cache::read(&place.home).unwrap();
    assert!(!cache.is_stale(&place.home));
    assert_eq!(cache.sessions["20240603_数据"].turns, 1);

    let again = run(&place, false);
    assert!(!again.changes.any() && again.views.made.is_empty());

    let sessions = place.home.sessions();
    disk::rename_no_replace(&sessions.join("20240604_b"), &sessions.join("20240604_新")).unwrap();
    let outcome = run(&place, false);
    assert_eq!(outcome.changes.renamed[0].to, "20240604_新");
    assert_eq!(outcome.views.removed, ["projects/项目/20240604_b"]);
    assert_eq!(outcome.views.made, ["projects/项目/20240604_新"]);
}

/// Packs a session into `archive/`, and lets the index say so, as `archive` does.
fn archive(place: &Place, id: &str) -> String {
    let home = place.locked("archive");
    let folder = disk::Dir::open(home.sessions().join(id)).unwrap();
    let context = place.context();
    let survey = pack::survey(&folder, id, &|_, _| false, &context).unwrap();
    let entry = Index::read(&home).unwrap().find(id).unwrap().clone();
    let about = About {
        created_at: "2024-06-10T08:00:00Z".parse().unwrap(),
        entry: Some(entry.fields().clone()),
    };
    let into = disk::Dir::open(home.archive()).unwrap();
    let mut file = disk::NewFile::create(&into).unwrap();
    let packed = pack::write(file.file(), &folder, survey, about, 3, 1, &context).unwrap();
    file.publish(format!("{id}.tar.zst").as_ref()).unwrap();
    disk::remove_tree(&disk::Dir::open(home.sessions()).unwrap(), id.as_ref()).unwrap();
    IndexFile::update(&home, |index| {
        let entry = index.entries_mut().find(|entry| entry.id() == id).unwrap();
        entry.set("status", "archived");
        entry.set("archived_at", "2024-06-10T08:00:00Z");
        entry.set(
            "archive",
            json!({"file": format!("archive/{id}.tar.zst"), "bytes": packed.bytes, "blake3": packed.blake3}),
        );
        Ok(())
    })
    .unwrap();
    packed.blake3
}

#[test]
fn the_index_of_archives_is_made_anew_from_nothing_but_themselves() {
    let place = testing::home();
    session(&place, "20240603_数据", "1");
    session(&place, "20240604_b", "2");
    run(&place, false);
    IndexFile::update(&place.locked("label"), |index| {
        let entry = index.entries_mut().next().unwrap();
        entry.add_tag("一");
        entry.set("title", "Weekly");
        entry.set("sync_tag", "laptop");
        entry.set("somebody's own", json!({"n": 1}));
        Ok(())
    })
    .unwrap();
    archive(&place, "20240603_数据");
    run(&place, false);
    let before = place.get("index.json").unwrap();
    let counted = &Cache::read(&place.home).unwrap();
    assert_eq!(counted.archives["20240603_数据"].counts.turns, 1);
    assert_eq!(counted.counts("20240603_数据").unwrap().total().files, 2);

    // Nothing more is learned from archives that are known.
    let again = run(&place, true);
    assert!(!again.changes.any(), "{:?}", again.changes);
    assert_eq!(place.get("index.json").unwrap(), before);

    for rebuild in [true, false] {
        disk::remove_file(&place.home.index_file()).unwrap();
        let outcome = run(&place, rebuild);
        assert_eq!(outcome.changes.added.len(), 2);
        assert!(outcome.changes.problems.is_empty());
        assert_eq!(place.get("index.json").unwrap(), before, "{rebuild}");
    }
}

#[test]
fn an_archive_that_was_renamed_is_the_session_of_its_new_name() {
    let place = testing::home();
    session(&place, "20240603_a", "1");
    run(&place, false);
    archive(&place, "20240603_a");
    let archives = place.home.archive();
    let to = archives.join("20240603_b.tar.zst");
    disk::rename_no_replace(&archives.join("20240603_a.tar.zst"), &to).unwrap();
    disk::remove_file(&place.home.index_file()).unwrap();
    assert_eq!(run(&place, false).changes.added, ["20240603_b"]);
    let index = Index::read(&place.home).unwrap();
    let entry = index.find("20240603_b").unwrap();
    assert_eq!(entry.session_id(), Some("1"));
    let archive = entry.archive().unwrap();
    assert_eq!(archive["file"], "archive/20240603_b.tar.zst");
}

#[test]
fn labels_of_a_session_come_from_the_archive_that_was_kept_of_it() {
    let place = testing::home();
    session(&place, "20240603_a", "1");
    run(&place, false);
    IndexFile::update(&place.locked("label"), |index| {
        index.entries_mut().next().unwrap().add_tag("kept");
        Ok(())
    })
    .unwrap();
    let digest = archive(&place, "20240603_a");
    session(&place, "20240603_a", "1");
    disk::remove_file(&place.home.index_file()).unwrap();
    run(&place, true);
    let index = Index::read(&place.home).unwrap();
    let entry = index.find("20240603_a").unwrap();
    assert_eq!(entry.status(), Status::Active);
    assert_eq!((entry.tags(), entry.archived_at()), (vec!["kept"], None));
    assert_eq!(entry.archive().unwrap()["blake3"], digest.as_str());
    // Another session of the same name has nothing of it.
    session(&place, "20240603_a", "2");
    disk::remove_file(&place.home.index_file()).unwrap();
    run(&place, true);
    let index = Index::read(&place.home).unwrap();
    assert!(index.find("20240603_a").unwrap().tags().is_empty());
}

#[test]
fn an_archive_that_can_not_be_read_is_a_problem_and_has_an_entry() {
    let place = testing::home();
    place.put("archive/20240603_a.tar.zst", "no pack");
    let outcome = run(&place, false);
    assert_eq!(outcome.changes.added, ["20240603_a"]);
    assert!(
        outcome.changes.problems[0]
            .why
            .contains("archive can not be read")
    );
    // It is told once, and from then on by `check`.
    assert!(run(&place, false).changes.problems.is_empty());
}

#[test]
fn labels_that_go_with_the_manifest_are_not_lost_in_silence() {
    let place = testing::home();
    session(&place, "20240603_a", "1");
    run(&place, false);
    archive(&place, "20240603_a");
    let path = place.home.archive().join("20240603_a.tar.zst");
    let mut bytes = std::fs::read(&path).unwrap();
    let tag = b"wbhome manifest\n";
    let at = bytes.windows(16).position(|bytes| bytes == tag).unwrap();
    bytes[at + 60] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // Nor where the folder is there, which would get the labels back.
    for folder in [false, true] {
        if folder {
            session(&place, "20240603_a", "1");
        }
        disk::remove_file(&place.home.index_file()).unwrap();
        let problems = run(&place, true).changes.problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        let why = &problems[0].why;
        assert!(why.contains("the manifest is damaged; the labels"), "{why}");
    }
}

#[test]
fn a_broken_index_stops_it_and_rebuilding_does_not() {
    let place = testing::home();
    session(&place, "20240603_数据", "1");
    place.put("index.json", "[{\"id\": \"20240603_数据\",");
    let error = super::plan(&place.home, false, &place.context()).unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
    let outcome = run(&place, true);
    assert_eq!(outcome.changes.added, ["20240603_数据"]);
    let kept = outcome.former_index.unwrap();
    assert!(place.get(&kept).unwrap().ends_with("数据\","));
    assert!(run(&place, true).former_index.is_none());
}

#[test]
fn an_absent_sessions_folder_is_not_a_thousand_missing_sessions() {
    let place = testing::home();
    session(&place, "a", "1");
    run(&place, false);
    let sessions = place.home.sessions();
    disk::rename_no_replace(&sessions, &place.home.root().join("elsewhere")).unwrap();
    let error = super::plan(&place.home, false, &place.context()).unwrap_err();
    assert!(error.hints()[0].contains("not mounted"), "{error:?}");
}

#[test]
fn names_that_are_not_utf8_are_told_and_kept_in_the_cache() {
    use std::os::unix::ffi::OsStrExt;
    let place = testing::home();
    let name = std::ffi::OsStr::from_bytes(b"20240603_\xff");
    disk::create_private_folder(&place.home.sessions().join(name)).unwrap();
    let outcome = run(&place, false);
    assert_eq!(outcome.strangers.len(), 1);
    let cache = Cache::read(&place.home).unwrap();
    assert_eq!(cache.strangers[0].as_os_str(), name);
}

#[test]
fn what_the_caller_knows_is_not_looked_at_again() {
    let place = testing::home();
    session(&place, "a", "1");
    let id = SessionId::adopt("a").unwrap();
    let counts = crate::home::Counts {
        turns: 77,
        ..Default::default()
    };
    let home = place.locked("migrate");
    let known = [(id, counts)].into();
    let plan = plan_knowing(&home, known, false, &place.context()).unwrap();
    apply(&home, plan, &place.context()).unwrap();
    assert_eq!(Cache::read(&home).unwrap().sessions["a"].turns, 77);
}

/// `cargo test --release -- --ignored ten_thousand --nocapture` prints the times.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr, reason = "it prints what it measures")]
fn ten_thousand() {
    let place = testing::home();
    for n in 0..10_000 {
        session(&place, &format!("20240603_s{n}"), &n.to_string());
    }
    for _ in 0..3 {
        let begun = std::time::Instant::now();
        run(&place, false);
        let indexed = begun.elapsed();
        let begun = std::time::Instant::now();
        let sort = crate::home::Cache::read(&place.home).unwrap();
        eprintln!(
            "index {indexed:?}, cache {:?} ({})",
            begun.elapsed(),
            sort.sessions.len()
        );
    }
}
