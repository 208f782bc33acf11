use std::path::PathBuf;

use super::*;
use crate::paths::{Mapping, Options};

/// A database as a test wants it.
struct Db {
    folder: tempfile::TempDir,
}

const SCHEMA: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, cwd TEXT, title TEXT, deleted_at INTEGER);
    CREATE TABLE workspaces (path TEXT PRIMARY KEY, last_opened_at INTEGER, name TEXT);
    CREATE TABLE automations (id TEXT PRIMARY KEY, cwds TEXT, prompt TEXT);
    CREATE TABLE automation_runs (id TEXT PRIMARY KEY, source_cwd TEXT, runs_json TEXT, metadata_json TEXT);";

impl Db {
    fn new(script: &str) -> Db {
        let db = Db {
            folder: tempfile::tempdir().unwrap(),
        };
        db.connect().execute_batch(script).unwrap();
        db
    }

    fn known(script: &str) -> Db {
        Db::new(&format!("{SCHEMA}{script}"))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("workbuddy.db")
    }

    fn connect(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// Everything that a query gives, each row as text.
    fn rows(&self, query: &str) -> Vec<String> {
        let connection = self.connect();
        let mut query = connection.prepare(query).unwrap();
        let columns = query.column_count();
        let mut rows = query.query([]).unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<String> = (0..columns)
                .map(|i| match row.get_ref(i).unwrap() {
                    ValueRef::Null => "NULL".into(),
                    ValueRef::Integer(n) => n.to_string(),
                    ValueRef::Real(n) => n.to_string(),
                    ValueRef::Text(t) | ValueRef::Blob(t) => human::bytes(t),
                })
                .collect();
            all.push(cells.join("|"));
        }
        all
    }

    fn rewrite(&self, maps: &[(&str, &str)]) -> Rewritten {
        super::rewrite(&self.path(), &rewriter(maps)).unwrap()
    }
}

fn rewriter(maps: &[(&str, &str)]) -> Rewriter {
    let maps = maps.iter().map(|(old, new)| Mapping {
        old: (*old).into(),
        new: (*new).into(),
    });
    Rewriter::new(maps.collect(), Options::default()).unwrap()
}

const OLD: &str = "/Users/me/云盘/wb";
const NEW: &str = "/home/me/wb";

fn left(outcome: &Rewritten) -> Vec<(String, u64, u64)> {
    outcome
        .left
        .iter()
        .map(|l| (format!("{}.{}", l.table, l.column), l.rows, l.references))
        .collect()
}

#[test]
fn what_the_application_goes_by_follows_and_words_stay() {
    let json = format!(r#"{{"cwd":"{OLD}/x","n":1.50,"n":2}}"#);
    let escaped = OLD.replace('/', "\\/").replace('云', "\\u4e91");
    let db = Db::known(&format!(
        "INSERT INTO sessions VALUES ('a', '{OLD}/sessions/数据', 'about {OLD}', NULL), ('b', '{OLD}2', NULL, NULL),
           ('c', '{OLD}', 't', 7), ('d', NULL, NULL, NULL), ('e', 'in {OLD}', NULL, NULL);
         INSERT INTO workspaces VALUES ('{OLD}', 5, 'n');
         INSERT INTO automations VALUES ('x', '[\"{escaped}\\/a\",\"/other\"]', 'look into {OLD} and {OLD}');
         INSERT INTO automation_runs VALUES ('r', '{OLD}/a', '{json}', NULL);
         CREATE TABLE future (what TEXT, raw BLOB);
         INSERT INTO future VALUES ('{OLD}', CAST('{OLD}' AS BLOB)), ('no', NULL);
         CREATE TABLE audit (what TEXT);
         CREATE TRIGGER watch AFTER UPDATE ON sessions BEGIN INSERT INTO audit VALUES ('!'); END;"
    ));
    let foreseen = preview(&db.path(), &rewriter(&[(OLD, NEW)])).unwrap();
    assert_eq!(db.rows("SELECT path FROM workspaces"), [OLD]);
    let outcome = db.rewrite(&[(OLD, NEW)]);
    assert_eq!(outcome, foreseen);

    assert_eq!(
        db.rows("SELECT * FROM sessions ORDER BY id"),
        [
            format!("a|{NEW}/sessions/数据|about {OLD}|NULL"),
            format!("b|{OLD}2|NULL|NULL"),
            format!("c|{NEW}|t|7"),
            "d|NULL|NULL|NULL".into(),
            format!("e|in {OLD}|NULL|NULL"),
        ]
    );
    assert_eq!(db.rows("SELECT * FROM workspaces"), [format!("{NEW}|5|n")]);
    let new = NEW.replace('/', "\\/");
    assert_eq!(
        db.rows("SELECT cwds FROM automations"),
        [human::bytes(
            format!("[\"{new}\\/a\",\"/other\"]").as_bytes()
        )]
    );
    assert_eq!(
        db.rows("SELECT source_cwd, runs_json FROM automation_runs"),
        [format!("{NEW}/a|{}", json.replace(OLD, NEW))]
    );
    assert!(db.rows("SELECT * FROM audit").is_empty(), "no trigger runs");
    let rows: Vec<_> = outcome
        .rows
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    assert_eq!(
        rows,
        [
            ("automation_runs.runs_json", 1),
            ("automation_runs.source_cwd", 1),
            ("automations.cwds", 1),
            ("sessions.cwd", 2),
            ("workspaces.path", 1)
        ]
    );
    assert_eq!(outcome.references, 6);
    let listed = |name: &str, rows, n| (name.to_owned(), rows, n);
    assert_eq!(
        left(&outcome),
        [
            listed("automations.prompt", 1, 2),
            listed("future.what", 1, 1),
            listed("future.raw", 1, 1),
            listed("sessions.cwd", 1, 1),
            listed("sessions.title", 1, 1),
        ]
    );
    // Told in JSON, and read again from a journal.
    let text = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<Rewritten>(&text).unwrap(), outcome);
}

#[test]
fn names_of_any_case_missing_tables_and_generated_columns_are_fine() {
    let db = Db::new(&format!(
        "CREATE TABLE Sessions (ID INTEGER PRIMARY KEY, CWD TEXT, folder TEXT AS (cwd || '/x') STORED) ;
         INSERT INTO Sessions (CWD) VALUES ('{OLD}/a');"
    ));
    let outcome = db.rewrite(&[(OLD, NEW)]);
    assert_eq!(outcome.rows["Sessions.CWD"], 1);
    assert_eq!(
        db.rows("SELECT CWD, folder FROM Sessions"),
        [format!("{NEW}/a|{NEW}/a/x")]
    );
    let empty = Db::new("CREATE TABLE other (a)");
    assert_eq!(empty.rewrite(&[(OLD, NEW)]), Rewritten::default());
}

#[test]
fn of_two_rows_of_a_workspace_the_one_that_was_opened_last_stays() {
    let db = Db::known(
        "INSERT INTO workspaces VALUES ('/a/x', 10, 'old x'), ('/b/x', 5, 'new x'),
           ('/a/y', 5, 'old y'), ('/b/y', 10, 'new y'), ('/a/z', NULL, 'old z'), ('/b/z', 1, 'new z'),
           ('/a/t', 3, 'old t'), ('/b/t', 3, 'new t'), ('/c', 1, 'c');",
    );
    let outcome = db.rewrite(&[("/a", "/b")]);
    assert_eq!(
        db.rows("SELECT path, last_opened_at, name FROM workspaces ORDER BY path"),
        [
            "/b/t|3|new t",
            "/b/x|10|old x",
            "/b/y|10|new y",
            "/b/z|1|new z",
            "/c|1|c"
        ]
    );
    let mut merged: Vec<_> = outcome
        .merged
        .iter()
        .map(|m| (m.old.as_str(), m.new.as_str(), m.kept))
        .collect();
    merged.sort_by_key(|m| m.0);
    assert_eq!(
        merged,
        [
            ("/a/t", "/b/t", Kept::New),
            ("/a/x", "/b/x", Kept::Old),
            ("/a/y", "/b/y", Kept::New),
            ("/a/z", "/b/z", Kept::New)
        ]
    );
    assert_eq!(outcome.rows["workspaces.path"], 1);
}

#[test]
fn moments_are_compared_however_they_are_kept() {
    let db = Db::new(
        "CREATE TABLE workspaces (path TEXT PRIMARY KEY, last_opened_at) WITHOUT ROWID;
         INSERT INTO workspaces VALUES ('/a/1', '2024-06-03 10:00:00'), ('/b/1', '2024-06-03T09:00:00Z'),
           ('/a/2', '9'), ('/b/2', 10), ('/a/3', '2024-06-03T09:00:00.5Z'), ('/b/3', 1717405200000);",
    );
    db.rewrite(&[("/a", "/b")]);
    assert_eq!(
        db.rows("SELECT * FROM workspaces"),
        [
            "/b/1|2024-06-03 10:00:00",
            "/b/2|10",
            "/b/3|2024-06-03T09:00:00.5Z"
        ]
    );
}

#[test]
fn a_workspace_of_another_user_is_no_rival() {
    let db = Db::new(
        "CREATE TABLE workspaces (user TEXT, path TEXT, last_opened_at INTEGER, PRIMARY KEY (user, path));
         INSERT INTO workspaces VALUES ('me', '/a', 1), ('you', '/b', 2), ('me', '/b', 3);",
    );
    db.rewrite(&[("/a", "/b")]);
    assert_eq!(
        db.rows("SELECT * FROM workspaces ORDER BY user"),
        ["me|/b|3", "you|/b|2"]
    );
}

#[test]
fn rows_that_follow_each_other_and_rows_that_change_places_keep_their_own() {
    for without in ["", " WITHOUT ROWID"] {
        let table = format!(
            "CREATE TABLE workspaces (path TEXT PRIMARY KEY, last_opened_at INTEGER){without};"
        );
        let db = Db::new(&format!(
            "{table} INSERT INTO workspaces VALUES ('/a', 1), ('/a/b', 2), ('/a/b/b', 3);"
        ));
        let outcome = db.rewrite(&[("/a", "/a/b")]);
        assert_eq!(
            db.rows("SELECT * FROM workspaces ORDER BY path"),
            ["/a/b|1", "/a/b/b|2", "/a/b/b/b|3"]
        );
        assert!(outcome.merged.is_empty() && outcome.left.is_empty());

        let db = Db::new(&format!(
            "{table} INSERT INTO workspaces VALUES ('/a', 1), ('/b', 2), ('/c', 3), ('/d', 4);"
        ));
        let outcome = db.rewrite(&[("/a", "/b"), ("/b", "/c"), ("/c", "/a"), ("/d", "/a")]);
        assert_eq!(
            db.rows("SELECT * FROM workspaces ORDER BY path"),
            ["/a|4", "/b|1", "/c|2"]
        );
        assert_eq!(outcome.merged.len(), 1);
    }
}

#[test]
fn a_value_that_is_taken_elsewhere_changes_nothing_and_is_named() {
    let script = "CREATE UNIQUE INDEX one ON sessions (cwd);
        INSERT INTO workspaces VALUES ('/a', 1, NULL);
        INSERT INTO automations VALUES ('x', '[\"/a\"]', NULL);
        INSERT INTO sessions VALUES ('1', '/a/x', NULL, NULL), ('2', '/b/x', NULL, NULL);";
    let db = Db::known(script);
    let before = db.rows("SELECT * FROM sessions, workspaces, automations");
    let error = super::rewrite(&db.path(), &rewriter(&[("/a", "/b")])).unwrap_err();
    let text = error.to_string();
    assert!(
        ["column cwd", "table sessions", "`/b/x`"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );
    assert_eq!(
        db.rows("SELECT * FROM sessions, workspaces, automations"),
        before
    );
    let strict = Db::new(
        "CREATE TABLE automations (cwds TEXT CHECK (length(cwds) < 10));
         INSERT INTO automations VALUES ('[\"/a\"]');",
    );
    let error = super::rewrite(&strict.path(), &rewriter(&[("/a", "/much/longer")])).unwrap_err();
    assert!(error.to_string().contains("cwds"), "{error}");
}

#[test]
fn what_refers_to_a_workspace_goes_with_it() {
    let db = Db::known(
        "CREATE TABLE pins (id INTEGER PRIMARY KEY, place TEXT REFERENCES workspaces);
         CREATE TABLE tabs (id INTEGER PRIMARY KEY, place TEXT REFERENCES Workspaces(Path));
         INSERT INTO workspaces VALUES ('/a/x', 1, NULL);
         INSERT INTO pins VALUES (1, '/a/x'); INSERT INTO tabs VALUES (1, '/a/x');",
    );
    let outcome = db.rewrite(&[("/a", "/b")]);
    assert_eq!(
        db.rows("SELECT pins.place, tabs.place FROM pins, tabs"),
        ["/b/x|/b/x"]
    );
    assert!(db.rows("PRAGMA foreign_key_check").is_empty());
    assert!(outcome.left.is_empty());
}

#[test]
fn texts_in_any_encoding_are_moved_or_listed() {
    let db = Db::known(
        "INSERT INTO sessions VALUES ('1', CAST(x'2f612fff' AS TEXT), CAST(x'ff202f61' AS TEXT), NULL);
         INSERT INTO automations VALUES ('1', CAST(x'5b222f612fff225d' AS TEXT), NULL);",
    );
    let outcome = db.rewrite(&[("/a", "/b")]);
    assert_eq!(
        db.rows("SELECT hex(cwd), typeof(cwd) FROM sessions"),
        ["2F622FFF|text"]
    );
    assert_eq!(
        db.rows("SELECT hex(cwds) FROM automations"),
        ["5B222F622FFF225D"]
    );
    assert_eq!(left(&outcome), [("sessions.title".to_owned(), 1, 1)]);

    let wide = Db::new(&format!(
        "PRAGMA encoding = 'UTF-16le'; {SCHEMA} INSERT INTO workspaces VALUES ('{OLD}/数据', 1, 'x');"
    ));
    wide.rewrite(&[(OLD, NEW)]);
    assert_eq!(
        wide.rows("SELECT path FROM workspaces"),
        [format!("{NEW}/数据")]
    );
}

#[test]
fn a_log_is_taken_in_and_one_file_remains() {
    let db = Db::new("PRAGMA journal_mode = WAL");
    let live = db.connect();
    live.execute_batch(&format!(
        "PRAGMA wal_autocheckpoint = 0; {SCHEMA} INSERT INTO workspaces VALUES ('/a', 1, 'x');"
    ))
    .unwrap();
    // As a kill leaves it: copied while somebody has it open.
    let copy = tempfile::tempdir().unwrap();
    let staged = copy.path().join("workbuddy.db");
    for suffix in ["", "-wal"] {
        let name = |p: PathBuf| PathBuf::from(format!("{}{suffix}", p.display()));
        std::fs::copy(name(db.path()), name(staged.clone())).unwrap();
    }
    drop(live);
    super::rewrite(&staged, &rewriter(&[("/a", "/b")])).unwrap();
    let names: Vec<_> = std::fs::read_dir(copy.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["workbuddy.db"]);
    let header = std::fs::read(&staged).unwrap();
    assert_eq!(header[18..20], [2, 2], "still a database with a log");
    let moved = Connection::open(&staged).unwrap();
    let path: String = moved
        .query_row("SELECT path FROM workspaces", [], |row| row.get(0))
        .unwrap();
    assert_eq!(path, "/b");
}

#[test]
fn full_text_indexes_over_changed_columns_find_the_new_words() {
    let db = Db::known(
        "CREATE VIRTUAL TABLE found USING fts5(cwd, content='sessions', content_rowid='rowid');
         CREATE VIRTUAL TABLE own USING fts5(words);
         INSERT INTO own VALUES ('see /alpha/x');
         INSERT INTO sessions VALUES ('1', '/alpha/x', NULL, NULL);
         INSERT INTO found(found) VALUES ('rebuild');",
    );
    let outcome = db.rewrite(&[("/alpha", "/beta")]);
    assert_eq!(
        db.rows("SELECT count(*) FROM found WHERE found MATCH 'beta'"),
        ["1"]
    );
    assert!(
        db.rows("SELECT 1 FROM found WHERE found MATCH 'alpha'")
            .is_empty()
    );
    assert_eq!(left(&outcome), [("own.words".to_owned(), 1, 1)]);
}

#[test]
fn what_is_no_sound_database_is_refused() {
    let db = Db::known("");
    std::fs::write(db.path(), "SQLite format 3\0 and then nothing").unwrap();
    assert!(super::rewrite(&db.path(), &rewriter(&[("/a", "/b")])).is_err());
    assert!(super::rewrite(&db.folder.path().join("none"), &rewriter(&[("/a", "/b")])).is_err());
}

#[test]
fn the_folders_that_it_knows() {
    let db = Db::known(
        "INSERT INTO sessions VALUES ('1', '/a', NULL, NULL), ('2', '/a', NULL, NULL), ('3', NULL, NULL, NULL);
         INSERT INTO workspaces VALUES ('/b', 1, NULL);
         INSERT INTO automations VALUES ('1', '[\"/c\", \"/d\"]', NULL), ('2', 'torn [', NULL);",
    );
    let known = folders(&db.path()).unwrap();
    assert_eq!(
        known.into_iter().collect::<Vec<_>>(),
        ["/a", "/b", "/c", "/d"]
    );
}

#[test]
fn a_large_table_is_moved_whole() {
    let db = Db::known(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         INSERT INTO sessions SELECT i, '/a/' || i, NULL, NULL FROM n;",
    );
    let outcome = db.rewrite(&[("/a", "/b")]);
    assert_eq!(outcome.rows["sessions.cwd"], 50_000);
    assert_eq!(
        db.rows("SELECT count(*) FROM sessions WHERE cwd = '/b/' || id"),
        ["50000"]
    );
}
