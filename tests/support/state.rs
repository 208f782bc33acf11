//! An agent application's own folder as a killed application leaves it: every table, every kind of file, half of the
//! rows in the log of the database; and a look at all of it that knows nothing of the program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::Value;

/// How to write one.
pub struct State {
    /// The home as the application knows it.
    pub old: String,
    /// So many sessions.
    pub sessions: usize,
    /// Bytes of each conversation.
    pub transcript: usize,
}

/// The folder that a session worked in.
pub fn cwd(old: &str, n: usize) -> String {
    format!("{old}/sessions/{}", id(n))
}

pub fn id(n: usize) -> String {
    // Chinese names of one length have one slug.
    let task = ["crawler", "清洗", "周报"][n % 3];
    format!("202406{:02}_{task}_{n}", n % 28 + 1)
}

/// What the application makes of a folder: every character but ASCII letters and digits as a dash.
pub fn slug(cwd: &str) -> String {
    let dashed: String = cwd
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    dashed.trim_start_matches('-').to_owned()
}

fn uuid(n: usize) -> String {
    format!("{n:08x}-0000-4000-8000-{n:012x}")
}

impl State {
    pub fn new(old: impl Into<String>, sessions: usize) -> State {
        State {
            old: old.into(),
            sessions,
            transcript: 600,
        }
    }

    pub fn write(&self, root: &Path) {
        let put = |rel: &str, content: &[u8]| {
            let path = root.join(rel);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        };
        let old = &self.old;
        for n in 0..self.sessions {
            self.conversation(n, &put);
        }
        for (n, kind) in ["interactive", "prewarm"].iter().enumerate() {
            // Above the largest number that the kernel gives: never alive.
            let pid = 4_194_305 + n;
            let cwd = cwd(old, n);
            put(
                &format!("sessions/{pid}.json"),
                format!("{{\"pid\": {pid}, \"sessionId\": \"{}\", \"cwd\": \"{cwd}\", \"startedAt\": 1717405200000, \"lastHeartbeat\": 1717405200000, \"kind\": \"{kind}\"}}\n", uuid(n)).as_bytes(),
            );
        }
        put(
            "settings.json",
            format!(
                "{{\"theme\": \"dark\", \"workspaceRoot\": \"{}\"}}\n",
                old.replace('/', "\\/")
            )
            .as_bytes(),
        );
        let secret = put("credentials.json", b"{\"token\": \"x\"}\n");
        fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
        put(
            "memory/MEMORY.md",
            format!("# 记忆\n\nthe home is {old}.\nnot {old}2 nor {old}-2\n").as_bytes(),
        );
        let named = put("plans/plan.md", format!("in {old}\n").as_bytes());
        fs::hard_link(named, root.join("plans/again.md")).unwrap();
        put(
            "local_storage/000003.ldb",
            format!("\0\u{1}{old}\0").as_bytes(),
        );
        put("logs/main.log", format!("opened {old}\n").as_bytes());
        put(
            "traces/7/trace-1.jsonl",
            format!("{{\"cwd\": \"{old}\"}}\n").as_bytes(),
        );
        symlink(format!("{old}/memory"), root.join("shared")).unwrap();
        symlink("/elsewhere", root.join("other")).unwrap();
        self.databases(root);
        let mut paths: Vec<PathBuf> = walkdir::WalkDir::new(root)
            .contents_first(true)
            .into_iter()
            .map(|entry| entry.unwrap().into_path())
            .collect();
        // Old enough to be swept when a copy were dated today.
        for (n, path) in paths.drain(..).enumerate() {
            let when = std::time::SystemTime::UNIX_EPOCH
                + std::time::Duration::new(1_715_000_000 + n as u64, 123_456_789);
            if !path.is_symlink() {
                let file = fs::File::open(&path).unwrap();
                file.set_times(fs::FileTimes::new().set_modified(when))
                    .unwrap();
            }
        }
    }

    fn conversation(&self, n: usize, put: &dyn Fn(&str, &[u8]) -> PathBuf) {
        let (cwd, sid) = (cwd(&self.old, n), uuid(n));
        let base = format!("projects/{}/{sid}", slug(&cwd));
        let ascii = |text: &str| -> String {
            text.chars()
                .map(|c| match c.is_ascii() {
                    true => c.to_string(),
                    false => format!("\\u{:04x}", c as u32),
                })
                .collect()
        };
        let shown = if n.is_multiple_of(2) {
            cwd.clone()
        } else {
            ascii(&cwd)
        };
        let line = |k: usize| {
            let kinds = [
                "message",
                "function_call",
                "function_call_result",
                "reasoning",
                "ai-title",
            ];
            let kind = kinds[k % kinds.len()];
            format!(
                "{{\"type\":\"{kind}\",\"id\":\"{n}-{k}\",\"timestamp\":{k},\"sessionId\":\"{sid}\",\"cwd\":\"{shown}\",\"content\":\"会话 {k} at {:x}\"}}",
                n * 7919 + k
            )
        };
        let mut text = String::new();
        let mut k = 0;
        while text.len() < self.transcript {
            text += &line(k);
            // Two objects on one line, as a race leaves them.
            text += if k == 3 { "" } else { "\n" };
            k += 1;
        }
        let mut bytes = text.into_bytes();
        if n % 5 == 4 {
            bytes.extend(&line(k).as_bytes()[..30]);
        }
        if n % 7 == 5 {
            // What a power cut leaves in the middle.
            let at = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
            bytes.splice(at..at, [0u8; 64]);
        }
        put(&format!("{base}.jsonl"), &bytes);
        put(
            &format!("{base}.meta.json"),
            format!("{{\"cwd\":\"{cwd}\"}}").as_bytes(),
        );
        if n.is_multiple_of(4) {
            put(
                &format!("{base}/subagents/agent-1.jsonl"),
                (line(1) + "\n").as_bytes(),
            );
            put(
                &format!("{base}/tool-results/1.txt"),
                format!("{cwd}/a.md\n").as_bytes(),
            );
        }
    }

    fn databases(&self, root: &Path) {
        let old = &self.old;
        let cloud = Connection::open(root.join("edge-sync-mapping-v2.db")).unwrap();
        cloud
            .execute_batch("create table mapping(session_id text primary key, local_path text);")
            .unwrap();
        cloud
            .execute("insert into mapping values('a', ?1)", [old])
            .unwrap();
        drop(cloud);
        let path = root.join("workbuddy.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "pragma foreign_keys = off;
             create table sessions(id text primary key, cwd text not null, user_id text, title text, custom_title text,
                status text, created_at integer, updated_at integer, last_activity_at integer, deleted_at integer,
                project_id text, base text generated always as (cwd || '/x') stored);
             create index sessions_by_cwd on sessions(cwd, id);
             create table workspaces(path text primary key, last_opened_at integer);
             create table automations(id text primary key, name text, prompt text, cwds text, created_at integer);
             create table automation_runs(id text primary key, automation_id text references automations(id),
                source_cwd text, runs_json text, metadata_json text);
             create table session_usage(session_id text primary key, input_tokens integer, output_tokens integer);
             create table migration_meta(key text primary key, value text);
             create table bookmarks(place text, note text);
             create trigger touched after update on sessions begin update sessions set updated_at = 0 where id = new.id; end;
             insert into migration_meta values('schema_version', '14');
             pragma journal_mode = wal; pragma wal_autocheckpoint = 0;",
        )
        .unwrap();
        self.rows(&db, 0, self.sessions / 2);
        db.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
            .unwrap();
        self.rows(&db, self.sessions / 2, self.sessions);
        let insert = |sql: &str, values: &[&str]| {
            db.execute(sql, rusqlite::params_from_iter(values)).unwrap();
        };
        for path in [
            old.clone(),
            cwd(old, 0),
            format!("{old}2"),
            "/Users/me/other".into(),
        ] {
            insert("insert into workspaces values(?1, 100)", &[&path]);
        }
        let list = serde_json::to_string(&[old.clone(), cwd(old, 0), format!("{old}-2")]).unwrap();
        insert(
            "insert into automations values('a1', 'nightly', 'tidy ' || ?1, ?2, 7)",
            &[old, &list],
        );
        insert(
            "insert into automations values('a2', 'weekly', 'x', ?1, 7)",
            &[&list.replace('/', "\\/")],
        );
        insert("insert into bookmarks values(?1, 'mine')", &[old]);
        // As a killed application leaves it: the log is there, and what it holds is nowhere else.
        let keep = |name: &str| fs::read(root.join(name)).unwrap();
        let (main, log) = (keep("workbuddy.db"), keep("workbuddy.db-wal"));
        assert!(log.len() > 4096);
        drop(db);
        fs::write(&path, main).unwrap();
        fs::write(root.join("workbuddy.db-wal"), log).unwrap();
    }

    fn rows(&self, db: &Connection, from: usize, to: usize) {
        db.execute_batch("begin").unwrap();
        for n in from..to {
            let deleted = (n % 7 == 6).then_some(99);
            let cwd = cwd(&self.old, n);
            db.execute(
                "insert into sessions(id, cwd, user_id, title, status, created_at, updated_at, last_activity_at, deleted_at)
                 values(?1, ?2, 'u1', ?3, 'idle', 1, 2, 3, ?4)",
                rusqlite::params![uuid(n), cwd, id(n), deleted],
            )
            .unwrap();
            db.execute(
                "insert into automation_runs values(?1, 'a1', ?2, ?3, ?4)",
                rusqlite::params![
                    format!("r{n}"),
                    cwd,
                    format!("[{{\"cwd\": \"{cwd}\", \"ok\": true}}]"),
                    format!(
                        "{{\"source\": {{\"cwd\": \"{}\"}}}}",
                        cwd.replace('/', "\\/")
                    ),
                ],
            )
            .unwrap();
            db.execute("insert into session_usage values(?1, 10, 5)", [uuid(n)])
                .unwrap();
        }
        for other in [
            format!("{}2/keep", self.old),
            format!("/Volumes/Backup{}", self.old),
        ] {
            db.execute(
                "insert into sessions(id, cwd, updated_at) values(?1, ?2, 2)",
                rusqlite::params![format!("other-{from}-{to}-{other}"), other],
            )
            .unwrap();
        }
        db.execute_batch("commit").unwrap();
    }
}

/// Every row of every table of a copy of the database, the generated column too: `table` → rows as text.
pub fn rows(state: &Path) -> BTreeMap<String, Vec<String>> {
    let copy = tempfile::tempdir().unwrap();
    for name in ["workbuddy.db", "workbuddy.db-wal"] {
        if state.join(name).exists() {
            fs::copy(state.join(name), copy.path().join(name)).unwrap();
        }
    }
    let db = Connection::open(copy.path().join("workbuddy.db")).unwrap();
    let sound: String = db
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
    let names: Vec<String> = db
        .prepare("select name from sqlite_schema where type = 'table' order by name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    names
        .into_iter()
        .map(|name| {
            let mut query = db
                .prepare(&format!("select * from {name} order by 1"))
                .unwrap();
            let width = query.column_count();
            let found = query
                .query_map([], |row| {
                    let values: Vec<String> = (0..width)
                        .map(|i| match row.get::<_, Value>(i).unwrap() {
                            Value::Text(text) => text,
                            other => format!("{other:?}"),
                        })
                        .collect();
                    Ok(values.join(" | "))
                })
                .unwrap()
                .map(Result::unwrap)
                .collect();
            (name, found)
        })
        .collect()
}

/// Everything in a state folder but the database itself: path → content, mode, time.
pub fn files(state: &Path) -> BTreeMap<String, (Vec<u8>, u32, i64, i64)> {
    let mut all = everything(state);
    all.retain(|path, _| !path.starts_with("workbuddy.db"));
    all
}

/// Everything in a state folder, to the byte.
pub fn everything(state: &Path) -> BTreeMap<String, (Vec<u8>, u32, i64, i64)> {
    walkdir::WalkDir::new(state)
        .into_iter()
        .map(|entry| {
            let entry = entry.unwrap();
            let meta = fs::symlink_metadata(entry.path()).unwrap();
            let content = if meta.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                format!("-> {}", target.display()).into_bytes()
            } else if meta.is_file() {
                fs::read(entry.path()).unwrap()
            } else {
                Vec::new()
            };
            let rel = entry.path().strip_prefix(state).unwrap();
            let looks = (content, meta.mode(), meta.mtime(), meta.mtime_nsec());
            (rel.to_str().unwrap().to_owned(), looks)
        })
        .collect()
}
