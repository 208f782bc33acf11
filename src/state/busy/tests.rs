//! With real processes: what is refused is somebody's work in progress.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;

/// A user that is nobody else on any machine.
const NOBODY: u32 = 65534;

/// A process that a test has started; it ends with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    fn pid(&self) -> u32 {
        self.0.id()
    }
}

fn sleeper(user: Option<u32>) -> Started {
    let mut command = Command::new("sleep");
    command.arg("600");
    if let Some(user) = user {
        command.uid(user);
    }
    Started(command.spawn().unwrap())
}

/// The stock `sqlite3`, which has the database open and has run `script`.
fn holder(database: &Path, script: &str, user: Option<u32>) -> Option<Started> {
    let mut command = Command::new("sqlite3");
    command
        .arg(database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(user) = user {
        command.uid(user);
    }
    let Ok(mut child) = command.spawn() else {
        eprintln!("SKIPPED: there is no sqlite3");
        return None;
    };
    let input = child.stdin.as_mut().unwrap();
    writeln!(input, "{script}\nSELECT 'ready';").unwrap();
    input.flush().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "sqlite3 has ended"
        );
    }
    Some(Started(child))
}

fn state() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sessions", "logs", "projects"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder
}

/// A database, and everything open to all users.
fn with_database(mode: &str) -> tempfile::TempDir {
    let state = state();
    let database = rusqlite::Connection::open(state.path().join(DATABASE)).unwrap();
    database
        .execute_batch(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE t (a);"
        ))
        .unwrap();
    drop(database);
    for (path, mode) in [("", 0o777), (DATABASE, 0o666)] {
        let path = state.path().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    state
}

fn register(state: &Path, pid: u32, kind: &str, started: i64, heartbeat: i64) {
    let content = format!(
        r#"{{"pid":{pid},"kind":"{kind}","cwd":"/a/工作","startedAt":{started},"lastHeartbeat":{heartbeat}}}"#
    );
    std::fs::write(state.join(format!("sessions/{pid}.json")), content).unwrap();
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn users(state: &Path) -> Vec<(Option<u32>, Use)> {
    let users = in_use(state).unwrap();
    users.into_iter().map(|u| (u.pid, u.what)).collect()
}

fn registered(kind: &str) -> Use {
    Use::Registered { kind: kind.into() }
}

#[test]
fn nobody_uses_a_folder_that_is_quiet_or_not_there() {
    let state = with_database("WAL");
    assert_eq!(users(state.path()), []);
    refuse_while_in_use(state.path()).unwrap();
    refuse_while_in_use(&state.path().join("none")).unwrap();
}

#[test]
fn whoever_the_registry_names_and_runs_is_refused_prewarm_and_sleepers_too() {
    let state = state();
    let process = sleeper(None);
    for kind in ["interactive", "prewarm", "一种新的"] {
        // Its last sign of life is a week old: it was stopped, or the machine slept.
        register(
            state.path(),
            process.pid(),
            kind,
            now(),
            now() - 604_800_000,
        );
        assert_eq!(
            users(state.path()),
            [(Some(process.pid()), registered(kind))]
        );
    }
    register(state.path(), process.pid(), "prewarm", now(), now());
    let error = refuse_while_in_use(state.path()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&format!("sleep (process {})", process.pid())) && text.contains("prewarm"),
        "{text}"
    );
    assert!(error.hints()[0].contains("quit the application"));
    let stopped = Command::new("kill")
        .args(["-STOP", &process.pid().to_string()])
        .status();
    assert!(stopped.unwrap().success());
    assert_eq!(users(state.path()).len(), 1, "a stopped process runs");
}

#[test]
fn a_number_that_was_given_again_and_a_process_that_has_gone_refuse_nothing() {
    let state = state();
    let process = sleeper(None);
    register(
        state.path(),
        process.pid(),
        "interactive",
        now() - 3_600_000,
        now(),
    );
    assert_eq!(users(state.path()), []);
    register(state.path(), process.pid(), "interactive", now(), now());
    assert_eq!(users(state.path()).len(), 1);
    drop(process);
    assert_eq!(users(state.path()), []);
}

#[test]
fn another_users_process_counts_by_its_number_and_start() {
    if !disk::is_root() {
        return eprintln!("SKIPPED: only root can start a process of another user");
    }
    let state = state();
    let process = sleeper(Some(NOBODY));
    register(state.path(), process.pid(), "interactive", now(), now());
    assert_eq!(users(state.path()).len(), 1);
    register(
        state.path(),
        process.pid(),
        "interactive",
        now() - 3_600_000,
        now(),
    );
    assert_eq!(users(state.path()), []);
}

#[test]
fn whoever_has_the_database_open_is_refused_also_when_it_has_been_replaced() {
    for mode in ["WAL", "DELETE"] {
        let state = with_database(mode);
        let database = state.path().join(DATABASE);
        let Some(process) = holder(&database, "SELECT count(*) FROM t;", None) else {
            return;
        };
        assert_eq!(users(state.path()), [(Some(process.pid()), Use::Database)]);
        std::fs::remove_file(&database).unwrap();
        assert_eq!(users(state.path()), [(Some(process.pid()), Use::Database)]);
        drop(process);
        assert_eq!(users(state.path()), []);
    }
}

#[test]
fn the_link_that_a_state_folder_may_be_hides_nobody() {
    let state = with_database("WAL");
    let link = state.path().join("projects/link");
    std::os::unix::fs::symlink(state.path(), &link).unwrap();
    let database = state.path().join(DATABASE);
    if let Some(process) = holder(&database, "SELECT count(*) FROM t;", None) {
        assert_eq!(users(&link), [(Some(process.pid()), Use::Database)]);
    }
}

#[test]
fn a_lock_tells_of_a_user_whose_files_are_hidden() {
    for (mode, script) in [
        ("WAL", "SELECT count(*) FROM t;"),
        ("DELETE", "BEGIN; SELECT count(*) FROM t;"),
        ("DELETE", "BEGIN IMMEDIATE;"),
        ("DELETE", "BEGIN EXCLUSIVE;"),
    ] {
        let state = with_database(mode);
        let database = state.path().join(DATABASE);
        assert_eq!(lock_on_database(state.path()).unwrap(), None);
        let Some(process) = holder(&database, script, None) else {
            return;
        };
        let holder = lock_on_database(state.path()).unwrap();
        let pid = Some(process.pid());
        assert_eq!(holder, Some(disk::LockHolder { pid }), "{mode} {script}");
    }
}

/// Run by the test below as another user, whom the kernel shows no open files of root's.
#[test]
#[ignore = "is run by another test"]
fn as_nobody() {
    let state = std::env::var_os("WBHOME_TEST_STATE").unwrap();
    print!("\nusers: {:?}\n", users(Path::new(&state)));
}

#[test]
fn somebody_who_may_not_look_into_processes_is_not_told_that_there_is_nobody() {
    let state = with_database("WAL");
    let database = state.path().join(DATABASE);
    let Some(process) = holder(&database, "SELECT count(*) FROM t;", None) else {
        return;
    };
    for name in ["workbuddy.db-shm", "workbuddy.db-wal"] {
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(state.path().join(name), mode).unwrap();
    }
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["state::busy::tests::as_nobody", "--exact", "--ignored"])
        .args(["--nocapture"])
        .env("WBHOME_TEST_STATE", state.path())
        .current_dir("/")
        .uid(NOBODY)
        .output();
    // Not root, or the tests lie where nobody else may look.
    let Ok(ran) = ran else {
        return eprintln!("SKIPPED: can not run as another user");
    };
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let expected = format!("users: [(Some({}), Lock)]", process.pid());
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn whoever_writes_to_another_file_is_refused_but_for_logs() {
    let state = state();
    let writer = |rel: &str, redirect: &str| {
        let path = state.path().join(rel);
        let script = format!("exec 3{redirect}\"$1\"; echo ready; exec sleep 600");
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Started(child)
    };
    let log = writer("logs/a.log", ">>");
    let process = writer("projects/会话.jsonl", ">>");
    let reader = writer("projects/会话.jsonl", "<");
    let path = PathBuf::from("projects/会话.jsonl");
    assert_eq!(
        users(state.path()),
        [(Some(process.pid()), Use::Writing { path })]
    );
    drop((log, process, reader));
    assert_eq!(users(state.path()), []);
}
