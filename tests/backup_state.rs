//! The agent application's own folder in a cold store: every row that was committed, and nothing that costs the rest.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use support::Place;
use support::state::State;

/// A home whose settings name a state folder, with a store.
fn place() -> (Place, PathBuf) {
    let place = Place::with_store();
    let state = place.path("me/.workbuddy");
    State::new(place.home().to_str().unwrap(), 4).write(&state);
    set_state(&place, "~/.workbuddy");
    (place, state)
}

fn set_state(place: &Place, dir: &str) {
    let file = place.home().join("wbhome.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let set = text.replace("\n[state]\n", &format!("\n[state]\ndir = \"{dir}\"\n"));
    assert_ne!(set, text);
    std::fs::write(file, set).unwrap();
}

fn opened(database: &Path) -> Connection {
    let db = Connection::open(database).unwrap();
    db.busy_timeout(Duration::from_secs(20)).unwrap();
    db.execute_batch("pragma journal_mode = wal; pragma wal_autocheckpoint = 0")
        .unwrap();
    db
}

fn restored(place: &Place, n: i64) -> PathBuf {
    let to = ["--to", "back", "--state-to", "state"];
    let args = [&["restore", "--all", "--from", "cold", "-q"][..], &to].concat();
    place.at(n, &args).expect(0);
    place.path("state")
}

#[test]
fn rows_that_are_in_the_log_alone_come_back_though_somebody_is_writing() {
    let (place, state) = place();
    let database = state.join("workbuddy.db");
    let db = opened(&database);
    db.execute_batch("create table said(n integer primary key); insert into said values(1)")
        .unwrap();
    let log = state.join("workbuddy.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let (stop, committed) = (AtomicBool::new(false), AtomicI64::new(1));
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            let db = opened(&database);
            for n in 2_i64.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                db.execute("insert into said values(?1)", [n]).unwrap();
                committed.store(n, Ordering::SeqCst);
            }
        });
        while committed.load(Ordering::SeqCst) < 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = committed.load(Ordering::SeqCst);
        let ran = place.at(1, &["backup", "run"]);
        stop.store(true, Ordering::SeqCst);
        ran.expect(0);
        before
    });
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let copy = Connection::open(restored(&place, 2).join("workbuddy.db")).unwrap();
    let sound: String = copy
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
    let one_to = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (rows, last) = copy
        .query_row("select count(*), max(n) from said", [], one_to)
        .unwrap();
    assert!(rows == last && last >= before, "{rows} {last} {before}");
}

#[test]
fn a_folder_that_is_set_and_not_there_costs_only_itself() {
    let (place, state) = place();
    place.backup(1, 0);
    let aside = state.with_extension("aside");
    std::fs::rename(&state, &aside).unwrap();
    place.put_home("sessions/20240603_crawler/memory/new.md", "new\n");
    let ran = place.backup(2, 3);
    assert_eq!(ran["packed"][0]["what"], "20240603_crawler");
    assert_eq!(
        ran["unread"][0]["what"],
        "the agent application's own folder"
    );
    // What was packed of it is kept for ever, and present again when it is there again.
    place.at(200, &["backup", "run", "-q"]).expect(3);
    place.at(200, &["backup", "prune", "-q"]).expect(0);
    assert!(restored(&place, 201).join("workbuddy.db").exists());
    // It comes back into its place by what doctor says.
    let again = ["restore", "--all", "--from", "cold", "--state-to"];
    let told = format!(
        "--from {} --state-to {}",
        place.path("cold").display(),
        state.display()
    );
    let checks = place.json(["doctor"])["checks"].to_string();
    assert!(checks.contains(&told), "{told} is not in {checks}");
    let ran = place.at(201, &[&again[..], &[state.to_str().unwrap()]].concat());
    ran.expect(0);
    assert!(ran.stdout.contains("is in its place"), "{ran:?}");
    assert!(!ran.stdout.contains("Put it"), "{ran:?}");
    assert!(state.join("workbuddy.db").exists());
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&aside, &state).unwrap();
    assert_eq!(place.backup(202, 0)["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn a_database_that_sqlite_does_not_copy_is_packed_as_it_lies() {
    let (place, state) = place();
    let file = state.join("workbuddy.db");
    // Closed by whoever wrote last, so that no log makes up for the damage.
    drop(opened(&file));
    let mut bytes = std::fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[4096..half].fill(0x5a);
    std::fs::write(&file, &bytes).unwrap();
    let ran = place.backup(1, 3);
    assert_eq!(ran["unread"][0]["path"], "workbuddy.db", "{ran}");
    assert_eq!(ran["unread"].as_array().unwrap().len(), 1, "{ran}");
    let to = ["--to", "back", "--state-to", "state"];
    let args = [&["restore", "--all", "--from", "cold"][..], &to].concat();
    place.at(2, &args).expect(3).says(&["workbuddy.db"]);
    assert!(std::fs::read(place.path("state/workbuddy.db")).unwrap() == bytes);
}

/// Cut off in the middle of a page, or not even begun as one: it is a database all the same, and its last copy is kept.
#[test]
fn a_database_that_was_torn_keeps_its_last_whole_copy() {
    for torn in ["short", "no header", "gone"] {
        let (place, state) = place();
        let other = state.join("other.db");
        opened(&other)
            .execute_batch("create table t(x); insert into t values('甲')")
            .unwrap();
        place.backup(1, 0);
        let bytes = std::fs::read(&other).unwrap();
        let exit = match torn {
            "short" => std::fs::write(&other, &bytes[..bytes.len() - 100]).map(|()| 3),
            "no header" => std::fs::write(&other, vec![0; bytes.len()]).map(|()| 0),
            _ => std::fs::remove_file(&other).map(|()| 0),
        };
        let ran = place.backup(2, exit.unwrap());
        let told = match torn {
            "short" => &ran["unread"][0]["path"],
            _ => &ran["shrunken"][0]["why"],
        };
        let said = ["other.db", "1 of the 3 databases gone"];
        assert!(said.contains(&told.as_str().unwrap()), "{torn}: {ran}");
        place.at(60, &["backup", "run", "-q"]);
        place.at(60, &["backup", "prune", "-q"]).expect(0);
        let first = "packs/state-databases/%2Eworkbuddy/20240601T030000Z.tar.zst".to_owned();
        assert!(
            place.packs().contains(&first),
            "{torn}: {:?}",
            place.packs()
        );
    }
}
