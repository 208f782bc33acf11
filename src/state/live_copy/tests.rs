use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::base::{FixedClock, NoProgress, Stop};

fn copy(live: &Path, into: &Path) -> Result<()> {
    let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
    copy_database(
        live,
        into,
        &Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &Stop::new(),
        },
    )
}

/// The stock `sqlite3` at work on a database, in a process of its own: record locks belong to processes.
struct Writer {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Writer {
    fn new(database: &Path) -> Option<Writer> {
        let process = Command::new("sqlite3")
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut process) = process else {
            eprintln!("SKIPPED: there is no sqlite3");
            return None;
        };
        let said = BufReader::new(process.stdout.take().unwrap());
        Some(Writer { process, said })
    }

    /// Runs a statement and returns when it has been carried out.
    fn run(&mut self, script: &str) {
        let mut input = self.process.stdin.as_ref().unwrap();
        writeln!(input, "{script}\n.print done").unwrap();
        let mut line = String::new();
        while line != "done\n" {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "{script}");
        }
    }

    /// Ends as a crash does.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const WAL: &str = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; \
                   CREATE TABLE t(n INTEGER PRIMARY KEY, x TEXT);";

/// Every file of a folder with its bytes, without the index of a log, which readers change.
fn bytes(folder: &Path) -> Vec<(OsString, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_name().to_str().unwrap().ends_with("-shm"))
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    names
}

fn rows(copy: &Path) -> i64 {
    let connection = Connection::open(copy).unwrap();
    let ok: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(ok, "ok");
    connection
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap()
}

struct Places {
    _folder: tempfile::TempDir,
    live: PathBuf,
    copies: PathBuf,
}

fn places() -> Places {
    let folder = tempfile::tempdir().unwrap();
    let (live, copies) = (folder.path().join("实 100%?"), folder.path().join("copies"));
    std::fs::create_dir(&live).unwrap();
    std::fs::create_dir(&copies).unwrap();
    Places {
        live: live.join("workbuddy.db"),
        copies,
        _folder: folder,
    }
}

#[test]
fn rows_that_are_only_in_the_log_are_in_the_copy_and_the_log_stays() {
    let places = places();
    let Some(mut writer) = Writer::new(&places.live) else {
        return;
    };
    writer.run(WAL);
    writer.run("INSERT INTO t(x) VALUES('甲'),('乙');");
    let folder = places.live.parent().unwrap();
    let before = bytes(folder);
    let into = places.copies.join("copy");
    copy(&places.live, &into).unwrap();
    assert_eq!(names(&places.copies), ["copy"]);
    let meta = std::fs::metadata(&into).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let log = std::fs::metadata(folder.join("workbuddy.db-wal")).unwrap();
    assert_eq!(meta.modified().unwrap(), log.modified().unwrap());
    assert_eq!(rows(&into), 2);
    assert_eq!(bytes(folder), before);

    // The application has died, and its log is all that is left of the last rows.
    writer.run("INSERT INTO t(x) VALUES('丙');");
    writer.kill();
    let before = bytes(folder);
    let into = places.copies.join("later");
    copy(&places.live, &into).unwrap();
    assert_eq!(rows(&into), 3);
    assert_eq!(bytes(folder), before);
}

#[test]
fn a_writer_that_never_stops_loses_no_row_that_was_there_before() {
    let places = places();
    let Some(mut writer) = Writer::new(&places.live) else {
        return;
    };
    writer.run("PRAGMA journal_mode=WAL; CREATE TABLE t(n INTEGER PRIMARY KEY, x TEXT);");
    let mut input = writer.process.stdin.take().unwrap();
    let mut written = std::mem::replace(
        &mut writer.said,
        BufReader::new(
            Command::new("true")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
                .stdout
                .take()
                .unwrap(),
        ),
    );
    let stop = std::sync::atomic::AtomicBool::new(false);
    let committed = std::sync::atomic::AtomicI64::new(0);
    std::thread::scope(|scope| {
        use std::sync::atomic::Ordering::SeqCst;
        scope.spawn(|| {
            let mut line = String::new();
            let mut n = 0;
            while !stop.load(SeqCst) {
                let text = "x".repeat(3000);
                writeln!(input, "INSERT INTO t(x) VALUES('{text}');\n.print done").unwrap();
                line.clear();
                written.read_line(&mut line).unwrap();
                n += 1;
                committed.store(n, SeqCst);
            }
        });
        for n in 0..8 {
            std::thread::sleep(Duration::from_millis(40));
            let before = committed.load(SeqCst);
            let into = places.copies.join(n.to_string());
            copy(&places.live, &into).unwrap();
            let copied = rows(&into);
            assert!(copied >= before, "{copied} of {before}");
        }
        stop.store(true, SeqCst);
    });
    assert!(places.live.with_file_name("workbuddy.db-wal").exists());
}

#[test]
fn nothing_appears_beside_a_database_that_rests() {
    for mode in ["WAL", "DELETE"] {
        let places = places();
        let connection = Connection::open(&places.live).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode={mode}; CREATE TABLE t(x); INSERT INTO t VALUES(1)"
            ))
            .unwrap();
        connection.close().unwrap();
        let folder = places.live.parent().unwrap();
        let before = bytes(folder);
        assert_eq!(names(folder), ["workbuddy.db"], "{mode}");
        let into = places.copies.join("copy");
        copy(&places.live, &into).unwrap();
        assert_eq!(names(folder), ["workbuddy.db"], "{mode}");
        assert_eq!(bytes(folder), before);
        assert_eq!(names(&places.copies), ["copy"]);
        assert_eq!(rows(&into), 1);
        let dir = Dir::open(&places.copies).unwrap();
        assert!(is_database(&dir, OsStr::new("copy")).unwrap());
    }
}

#[test]
fn what_a_crash_has_cut_off_is_taken_back_in_the_copy_alone() {
    let places = places();
    let Some(mut writer) = Writer::new(&places.live) else {
        return;
    };
    // A cache of one page writes into the database before the transaction is committed.
    writer.run("CREATE TABLE t(x); INSERT INTO t VALUES(1); PRAGMA cache_size=1;");
    writer.run(
        "BEGIN; INSERT INTO t SELECT randomblob(500) FROM \
         (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500) SELECT i FROM n);",
    );
    writer.kill();
    let folder = places.live.parent().unwrap();
    assert_eq!(names(folder), ["workbuddy.db", "workbuddy.db-journal"]);
    let before = bytes(folder);
    let into = places.copies.join("copy");
    copy(&places.live, &into).unwrap();
    assert_eq!(rows(&into), 1);
    assert_eq!(names(&places.copies), ["copy"]);
    assert_eq!(bytes(folder), before);
}

#[test]
fn what_is_damaged_or_no_database_is_said_and_leaves_no_copy() {
    let places = places();
    let connection = Connection::open(&places.live).unwrap();
    connection
        .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(20000))")
        .unwrap();
    connection.close().unwrap();
    let mut broken = std::fs::read(&places.live).unwrap();
    broken[4096..12000].fill(0xaa);
    std::fs::write(&places.live, &broken).unwrap();
    let into = places.copies.join("copy");
    let error = copy(&places.live, &into).unwrap_err();
    assert!(error.path().unwrap().ends_with("workbuddy.db"), "{error}");
    std::fs::write(&places.live, vec![0x5a; 8192]).unwrap();
    copy(&places.live, &into).unwrap_err();
    assert!(names(&places.copies).is_empty());

    let dir = Dir::open(places.live.parent().unwrap()).unwrap();
    assert!(!is_database(&dir, OsStr::new("workbuddy.db")).unwrap());
    std::fs::write(places.live.with_file_name("short"), HEADER).unwrap();
    assert!(!is_database(&dir, OsStr::new("short")).unwrap());
}

#[test]
fn a_schema_that_only_the_application_understands_is_copied_nevertheless() {
    let places = places();
    let connection = Connection::open(&places.live).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t(x TEXT COLLATE nocase UNIQUE); INSERT INTO t VALUES('b'),('a'); \
             PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, 'nocase', 'own')",
        )
        .unwrap();
    connection.close().unwrap();
    let into = places.copies.join("copy");
    copy(&places.live, &into).unwrap();
    assert_eq!(
        std::fs::metadata(&into).unwrap().len(),
        std::fs::metadata(&places.live).unwrap().len()
    );
}
