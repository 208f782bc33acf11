//! SQLite databases: rows follow the move, nothing else changes, and the source is not even opened.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use support::moving::{OLD, SESSION, assert_same, map_to, small_home};
use support::{Place, tree};

const FOLDER: &str = "sessions/20240601_one/artifacts";

fn texts(database: &Connection, query: &str) -> Vec<String> {
    let mut query = database.prepare(query).unwrap();
    let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn is_sound(database: &Connection) {
    assert_eq!(texts(database, "PRAGMA integrity_check"), ["ok"]);
}

/// Opens a copy: opening itself makes files beside a database.
fn look(place: &Place, path: &Path) -> Connection {
    let copy = place.path("look.db");
    for suffix in ["", "-wal"] {
        let name = |p: &Path| PathBuf::from(format!("{}{suffix}", p.display()));
        let _ = fs::remove_file(name(&copy));
        if name(path).exists() {
            fs::copy(name(path), name(&copy)).unwrap();
        }
    }
    Connection::open(copy).unwrap()
}

fn migrate(place: &Place) -> Value {
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(place, "H"), "--json"]);
    ran.expect(0).json()
}

/// Writes `C/…/artifacts/app.db`, and its log as a program leaves it that was killed.
fn put_database(place: &Place, wal: bool, script: &str) -> PathBuf {
    small_home(place, "C", OLD);
    let live = place.path("live.db");
    let database = Connection::open(&live).unwrap();
    if wal {
        let mode: String = database
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
        database
            .execute_batch("PRAGMA wal_autocheckpoint = 0")
            .unwrap();
    }
    database.execute_batch(script).unwrap();
    let there = place.path(format!("C/{FOLDER}/app.db"));
    // While it is open, so that the log is still there.
    fs::copy(&live, &there).unwrap();
    if wal {
        let log = format!("{}-wal", there.display());
        fs::copy(place.path("live.db-wal"), log).unwrap();
    }
    there
}

#[test]
fn rows_point_to_the_new_home() {
    let place = Place::new();
    let json =
        serde_json::to_string(&serde_json::json!({"cwd": format!("{OLD}/x"), "n": 1.50})).unwrap();
    let escaped = OLD.replace('/', "\\/");
    let source = put_database(
        &place,
        false,
        &format!(
            "CREATE TABLE sessions (id INTEGER PRIMARY KEY, cwd TEXT, note TEXT, size INTEGER, raw BLOB,
               folder TEXT GENERATED ALWAYS AS (cwd || '/artifacts') STORED, short TEXT AS (substr(cwd, 1, 3)));
             INSERT INTO sessions (cwd, note, size, raw) VALUES
               ('{OLD}/{SESSION}', 'see {OLD} and {OLD}2', 7, CAST('{OLD}' AS BLOB)),
               ('/elsewhere', NULL, 8, x'00ff');
             CREATE TABLE workspaces (path TEXT PRIMARY KEY, opened INTEGER) WITHOUT ROWID;
             INSERT INTO workspaces VALUES ('{OLD}', 1), ('{OLD}-2', 2);
             CREATE TABLE automations (cwds TEXT, meta TEXT);
             INSERT INTO automations VALUES ('[\"{escaped}\\/a\",\"{escaped}\"]', '{json}');
             CREATE TABLE audit (what TEXT);
             CREATE TRIGGER watch AFTER UPDATE ON sessions BEGIN INSERT INTO audit VALUES ('changed'); END;
             CREATE VIEW places AS SELECT cwd FROM sessions;
             CREATE INDEX by_cwd ON sessions (cwd);"
        ),
    );
    let before = tree(&place.path("C"));
    let bytes = fs::read(&source).unwrap();
    let outcome = migrate(&place);
    assert_eq!(fs::read(&source).unwrap(), bytes);
    assert_same(&tree(&place.path("C")), &before, "the source");

    let home = place.path("H").to_str().unwrap().to_owned();
    let path = place.path(format!("H/{FOLDER}/app.db"));
    let database = look(&place, &path);
    is_sound(&database);
    let cwds = texts(&database, "SELECT cwd FROM sessions ORDER BY id");
    assert_eq!(cwds, [format!("{home}/{SESSION}"), "/elsewhere".into()]);
    let notes = texts(
        &database,
        "SELECT note FROM sessions WHERE note IS NOT NULL",
    );
    assert_eq!(notes, [format!("see {home} and {OLD}2")]);
    let folders = texts(&database, "SELECT folder FROM sessions ORDER BY id");
    assert_eq!(folders[0], format!("{home}/{SESSION}/artifacts"));
    // The index was changed with it.
    let found =
        format!("SELECT id || '' FROM sessions INDEXED BY by_cwd WHERE cwd = '{home}/{SESSION}'");
    assert_eq!(texts(&database, &found), ["1"]);
    let paths = texts(&database, "SELECT path FROM workspaces ORDER BY opened");
    assert_eq!(paths, [home.clone(), format!("{OLD}-2")]);
    let spelled = home.replace('/', "\\/");
    assert_eq!(
        texts(&database, "SELECT cwds FROM automations"),
        [format!("[\"{spelled}\\/a\",\"{spelled}\"]")]
    );
    assert_eq!(
        texts(&database, "SELECT meta FROM automations"),
        [json.replace(OLD, &home)]
    );
    // The schema's own code has not run, and what is no text has not changed.
    assert!(texts(&database, "SELECT what FROM audit").is_empty());
    let raw = "SELECT CAST(raw AS TEXT) FROM sessions WHERE id = 1";
    assert_eq!(texts(&database, raw), [OLD]);
    // 1 cwd, 1 note, 1 workspace, 2 cwds, 1 meta.
    assert_eq!(outcome["databases"][0]["references"], 6, "{outcome}");
    assert_eq!(outcome["databases"][0]["path"], format!("{FOLDER}/app.db"));
    assert_kept_dress(&source, &path);
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

/// The rewritten database has the mode and the time of the source's.
fn assert_kept_dress(source: &Path, home: &Path) {
    use std::os::unix::fs::MetadataExt;
    let dress = |p: &Path| {
        let meta = fs::metadata(p).unwrap();
        (meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.uid())
    };
    assert_eq!(dress(home), dress(source));
}

#[test]
fn rows_that_are_only_in_the_log_are_rewritten_too() {
    let place = Place::new();
    let source = put_database(
        &place,
        true,
        &format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, cwd TEXT);
             PRAGMA wal_checkpoint(TRUNCATE);
             INSERT INTO t (cwd) VALUES ('{OLD}/in-the-log'), ('{OLD}');"
        ),
    );
    let before = tree(&place.path("C"));
    let outcome = migrate(&place);
    assert_same(&tree(&place.path("C")), &before, "the source");
    assert!(!PathBuf::from(format!("{}-shm", source.display())).exists());
    let home = place.path("H").to_str().unwrap().to_owned();
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    is_sound(&database);
    let rows = texts(&database, "SELECT cwd FROM t ORDER BY id");
    assert_eq!(rows, [format!("{home}/in-the-log"), home]);
    // The old log would undo that.
    assert!(!place.path(format!("H/{FOLDER}/app.db-wal")).exists());
    let skipped = &outcome["skipped"][0];
    assert_eq!(skipped["path"], format!("{FOLDER}/app.db-wal"));
    assert_eq!(skipped["failed"], false);
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

#[test]
fn a_rollback_journal_that_a_kill_left_is_played_back() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let live = place.path("live.db");
    let database = Connection::open(&live).unwrap();
    database
        .execute_batch(&format!(
            "PRAGMA cache_spill = 1; PRAGMA cache_size = 1;
             CREATE TABLE t (id INTEGER PRIMARY KEY, cwd TEXT, pad TEXT);
             INSERT INTO t (cwd, pad) VALUES ('{OLD}/good', '');
             BEGIN; UPDATE t SET cwd = '{OLD}/half';
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO t (cwd, pad) SELECT '{OLD}/half', hex(zeroblob(500)) FROM n;"
        ))
        .unwrap();
    assert!(place.path("live.db-journal").exists());
    for suffix in ["", "-journal"] {
        let to = place.path(format!("C/{FOLDER}/app.db{suffix}"));
        fs::copy(format!("{}{suffix}", live.display()), to).unwrap();
    }
    migrate(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    is_sound(&database);
    assert_eq!(
        texts(&database, "SELECT cwd FROM t"),
        [format!("{home}/good")]
    );
    assert!(!place.path(format!("H/{FOLDER}/app.db-journal")).exists());
}

#[test]
fn a_database_without_references_is_the_same_bytes() {
    let place = Place::new();
    let source = put_database(
        &place,
        true,
        &format!(
            "CREATE TABLE t (cwd TEXT); PRAGMA wal_checkpoint(TRUNCATE);
             INSERT INTO t VALUES ('/elsewhere'), ('{OLD}2/keep');"
        ),
    );
    let outcome = migrate(&place);
    let home = place.path(format!("H/{FOLDER}/app.db"));
    for suffix in ["", "-wal"] {
        let read = |p: &Path| fs::read(format!("{}{suffix}", p.display())).unwrap();
        assert_eq!(read(&home), read(&source), "{suffix}");
    }
    assert!(!PathBuf::from(format!("{}-shm", home.display())).exists());
    assert_eq!(outcome["databases"][0]["references"], 0);
}

#[test]
fn a_row_whose_new_value_is_taken_stays_and_is_told() {
    let place = Place::new();
    let home = place.path("H").to_str().unwrap().to_owned();
    put_database(
        &place,
        false,
        &format!(
            "CREATE TABLE workspaces (path TEXT PRIMARY KEY, opened INTEGER);
             INSERT INTO workspaces VALUES ('{OLD}', 1), ('{home}', 2), ('{OLD}/b', 3);"
        ),
    );
    let outcome = migrate(&place);
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    is_sound(&database);
    let paths = texts(&database, "SELECT path FROM workspaces ORDER BY opened");
    assert_eq!(paths, [OLD.to_owned(), home.clone(), format!("{home}/b")]);
    let report = &outcome["databases"][0];
    assert_eq!(report["references"], 1);
    let note = report["notes"][0].as_str().unwrap();
    assert!(
        note.contains("workspaces.path") && note.contains("1 row"),
        "{note}"
    );
}

#[test]
fn full_text_tables_are_left_alone_and_go_on_working() {
    let place = Place::new();
    put_database(
        &place,
        false,
        &format!(
            "CREATE VIRTUAL TABLE found USING fts5(body);
             INSERT INTO found VALUES ('crawler notes in {OLD}/a');
             CREATE TABLE plain (cwd TEXT); INSERT INTO plain VALUES ('{OLD}');"
        ),
    );
    migrate(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    is_sound(&database);
    database
        .execute("INSERT INTO found(found) VALUES ('integrity-check')", [])
        .unwrap();
    assert_eq!(
        texts(
            &database,
            "SELECT body FROM found WHERE found MATCH 'crawler'"
        )
        .len(),
        1
    );
    assert_eq!(texts(&database, "SELECT cwd FROM plain"), [home]);
}

#[test]
fn a_database_that_is_damaged_is_copied_exactly_and_told() {
    let place = Place::new();
    let source = put_database(
        &place,
        false,
        &format!(
            "CREATE TABLE t (cwd TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
             INSERT INTO t SELECT '{OLD}/' || i FROM n;"
        ),
    );
    let mut bytes = fs::read(&source).unwrap();
    for byte in &mut bytes[4096..6000] {
        *byte = 0x5a;
    }
    fs::write(&source, &bytes).unwrap();
    // What could not be looked for is told by the exit code, too.
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(&place, "H"), "--json"]);
    let outcome = ran.expect(3).json();
    assert_eq!(outcome["databases"][0]["failed"], true);
    assert_eq!(place.read(format!("H/{FOLDER}/app.db")), bytes);
    let note = outcome["databases"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("copied exactly"), "{note}");
}

/// As after a kill just before the end: everything is done, and the record does not say so yet.
fn unfinish(place: &Place) {
    let records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
    for record in records {
        fs::remove_file(record.unwrap().path().join("outcome.json")).unwrap();
    }
}

#[test]
fn a_migration_that_goes_on_after_the_database_was_rewritten_leaves_no_old_log_beside_it() {
    let place = Place::new();
    let home = place.path("H").to_str().unwrap().to_owned();
    let source = put_database(
        &place,
        true,
        &format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, cwd TEXT);
             PRAGMA wal_checkpoint(TRUNCATE);
             INSERT INTO t (cwd) VALUES ('{OLD}/in-the-log'), ('{OLD}');
             CREATE TABLE w (path TEXT PRIMARY KEY); INSERT INTO w VALUES ('{OLD}'), ('{home}');"
        ),
    );
    let first = migrate(&place);
    assert_eq!(first["databases"][0]["notes"].as_array().unwrap().len(), 1);
    let copy = PathBuf::from(format!("{home}/{FOLDER}/app.db"));
    let log = |p: &Path| PathBuf::from(format!("{}-wal", p.display()));
    // Once killed before the end; once between the database and its log.
    for left in [false, true] {
        unfinish(&place);
        if left {
            fs::copy(log(&source), log(&copy)).unwrap();
        }
        let again = migrate(&place);
        assert!(!log(&copy).exists());
        let database = look(&place, &copy);
        is_sound(&database);
        let rows = texts(&database, "SELECT cwd FROM t ORDER BY id");
        assert_eq!(rows, [format!("{home}/in-the-log"), home.clone()]);
        for key in ["references", "databases", "skipped"] {
            assert_eq!(again[key], first[key], "{key}");
        }
        for key in [
            "copied",
            "rewritten",
            "linked",
            "folders",
            "skipped",
            "total",
        ] {
            assert_eq!(again["classes"][key], first["classes"][key], "{key}");
        }
        place.run(["migrate", "verify", "--home", "H"]).expect(0);
    }
}

#[test]
fn a_database_that_was_replaced_but_not_recorded_is_done_again() {
    let place = Place::new();
    put_database(
        &place,
        false,
        &format!("CREATE TABLE t (cwd TEXT); INSERT INTO t VALUES ('{OLD}');"),
    );
    migrate(&place);
    unfinish(&place);
    // As if it had been killed before the line of the rewritten database was written.
    let records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
    let list = records
        .map(|e| e.unwrap().path())
        .next()
        .unwrap()
        .join("files.jsonl");
    let text = fs::read_to_string(&list).unwrap();
    let is_rewritten = |line: &str| line.contains("app.db") && line.contains("\"rewritten\"");
    let kept: Vec<&str> = text.lines().filter(|line| !is_rewritten(line)).collect();
    assert_eq!(kept.len() + 1, text.lines().count());
    fs::write(&list, kept.join("\n") + "\n").unwrap();
    let outcome = migrate(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    assert_eq!(texts(&database, "SELECT cwd FROM t"), [home]);
    assert_eq!(outcome["databases"][0]["references"], 1);
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

#[test]
fn a_further_name_of_a_database_is_a_name_of_the_new_one() {
    let place = Place::new();
    let source = put_database(
        &place,
        false,
        &format!("CREATE TABLE t (cwd TEXT); INSERT INTO t VALUES ('{OLD}/x');"),
    );
    fs::hard_link(&source, place.path(format!("C/{FOLDER}/zapp.db"))).unwrap();
    migrate(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    let further = look(&place, &place.path(format!("H/{FOLDER}/zapp.db")));
    assert_eq!(texts(&further, "SELECT cwd FROM t"), [format!("{home}/x")]);
    let ino = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(place.path(format!("H/{FOLDER}/{name}")))
            .unwrap()
            .ino()
    };
    assert_eq!(ino("app.db"), ino("zapp.db"));
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

#[test]
fn a_full_text_index_over_a_changed_table_is_made_anew() {
    let place = Place::new();
    put_database(
        &place,
        false,
        &format!(
            "CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT);
             CREATE VIRTUAL TABLE words USING fts5(body, content='docs', content_rowid='id');
             INSERT INTO docs VALUES (1, 'see {OLD}/notes.md for more');
             INSERT INTO words(rowid, body) SELECT id, body FROM docs;"
        ),
    );
    migrate(&place);
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    is_sound(&database);
    database
        .execute(
            "INSERT INTO words(words, rank) VALUES('integrity-check', 1)",
            [],
        )
        .unwrap();
    assert_eq!(
        texts(
            &database,
            "SELECT body FROM words WHERE words MATCH 'notes'"
        )
        .len(),
        1
    );
}

#[test]
fn what_a_log_holds_by_now_is_not_lost_when_a_migration_goes_on() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let live = Connection::open(place.path("live.db")).unwrap();
    let mode: String = live
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    let put = |text: &str| {
        live.execute_batch(&format!("PRAGMA wal_autocheckpoint = 0; {text}"))
            .unwrap();
        let there = place.path(format!("C/{FOLDER}/app.db-wal"));
        fs::copy(place.path("live.db-wal"), there).unwrap();
    };
    fs::copy(
        place.path("live.db"),
        place.path(format!("C/{FOLDER}/app.db")),
    )
    .unwrap();
    put(&format!(
        "CREATE TABLE t (cwd TEXT); INSERT INTO t VALUES ('{OLD}/one');"
    ));
    migrate(&place);
    unfinish(&place);
    // The application goes on: only the log of its database changes.
    put(&format!("INSERT INTO t VALUES ('{OLD}/two');"));
    migrate(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    let database = look(&place, &place.path(format!("H/{FOLDER}/app.db")));
    assert_eq!(
        texts(&database, "SELECT cwd FROM t ORDER BY cwd"),
        [format!("{home}/one"), format!("{home}/two")]
    );
}
