use super::*;
use crate::disk;
use crate::home::Cache;
use crate::home::testing::{self, Place};

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
