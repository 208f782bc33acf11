use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::base::{FixedClock, NoProgress, Stop};

fn lay(folder: &Path, files: &[&str]) {
    for rel in files {
        let path = folder.join(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, rel).unwrap();
    }
}

fn database(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES('甲')")
        .unwrap();
}

fn with<T>(run: impl FnOnce(&Context) -> T) -> T {
    let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
    run(&Context {
        clock: &clock,
        progress: &NoProgress,
        stop: &Stop::new(),
    })
}

#[test]
fn each_file_is_in_one_part_and_no_log_in_any() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(".workbuddy");
    lay(
        &folder,
        &[
            "settings.json",
            "skills/爬虫/SKILL.md",
            "plans/a.md",
            "memory/b/c.md",
            "projects/loose.json",
            "projects/Users-me-甲/a.jsonl",
            "projects/Users-me-甲/a/subagents/agent-1.jsonl",
            "projects/tmp/b.jsonl",
            "logs/today.log",
            "sessions/12.json",
            "not-one.db",
            "workbuddy.db-wal",
            "workbuddy.db-shm",
        ],
    );
    std::fs::remove_file(folder.join("workbuddy.db-wal")).unwrap();
    database(&folder.join("workbuddy.db"));
    database(&folder.join("projects/tmp/index"));
    std::fs::write(folder.join("workbuddy.db-shm"), "").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("agent.sock")).unwrap();

    let saved = Arc::new(Saved::new(&[], &[]).unwrap());
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let portions = with(|context| portions(&folder, &saved, context)).unwrap();
    for portion in &portions {
        let tree = disk::walk(&portion.root, &*portion.skip, &Stop::new()).unwrap();
        let files = tree
            .entries()
            .filter(|(_, entry)| entry.meta.kind != FileKind::Folder)
            .map(|(rel, _)| rel.to_str().unwrap().to_owned())
            .collect();
        found.insert(portion.place.shown(), files);
    }
    let expected = [
        (
            ".workbuddy: databases",
            vec!["projects/tmp/index", "workbuddy.db"],
        ),
        (
            ".workbuddy: plans, memory",
            vec!["memory/b/c.md", "plans/a.md"],
        ),
        (
            ".workbuddy: projects/Users-me-甲",
            vec!["a.jsonl", "a/subagents/agent-1.jsonl"],
        ),
        (".workbuddy: projects/tmp", vec!["b.jsonl"]),
        (
            ".workbuddy: settings",
            vec![
                "not-one.db",
                "settings.json",
                "projects/loose.json",
                "skills/爬虫/SKILL.md",
            ],
        ),
    ];
    for (place, files) in &expected {
        let mut files = files.clone();
        files.sort_unstable();
        let mut got = found.remove(*place).unwrap();
        got.sort_unstable();
        assert_eq!(got, files, "{place}");
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn databases_are_laid_out_as_they_lie_and_one_that_is_damaged_is_named() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(".workbuddy");
    database(&folder.join("workbuddy.db"));
    database(&folder.join("deep/er/other"));
    std::fs::set_permissions(
        folder.join("deep/er"),
        std::fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    let mut broken = std::fs::read(folder.join("workbuddy.db")).unwrap();
    broken[100..].fill(0xaa);
    std::fs::write(folder.join("broken.db"), &broken).unwrap();
    let into = place.path().join("staged");
    std::fs::create_dir(&into).unwrap();

    let saved = Arc::new(Saved::new(&[], &[]).unwrap());
    let failed = with(|context| {
        let portions = portions(&folder, &saved, context).unwrap();
        stage_databases(&portions[0], &into, context).unwrap()
    });
    let failed: Vec<&Path> = failed.iter().map(|(rel, _)| rel.as_path()).collect();
    assert_eq!(failed, [Path::new("broken.db")]);
    assert_eq!(std::fs::read(into.join("broken.db")).unwrap(), broken);
    for rel in ["workbuddy.db", "deep/er/other"] {
        let connection = rusqlite::Connection::open(into.join(rel)).unwrap();
        let x: String = connection
            .query_row("SELECT x FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(x, "甲", "{rel}");
    }
    let mode = std::fs::metadata(into.join("deep/er"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
}
