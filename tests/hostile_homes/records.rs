//! What the records of a home say: ids, paths and steps that lead out.

use std::fs;

use serde_json::json;

use super::at;
use super::support::verbs::{CHANGING, LOOKING, Siege};

/// Ids that no folder of `sessions/` has.
const IDS: [&str; 12] = [
    "../../outside/session",
    "../../../../../../etc",
    "/etc",
    "..",
    ".",
    "",
    "../../outside",
    "sessions/../../../outside",
    ".git",
    "-rf",
    "a/b",
    "20240603_crawler/../../../../outside/session",
];

#[test]
fn ids_that_lead_out() {
    let mut s = Siege::new("ids");
    let mut index = s.place.index();
    let entries = index.as_array_mut().unwrap();
    for (n, id) in IDS.iter().enumerate() {
        let status = ["active", "archived", "removed", "missing"][n % 4];
        entries.push(json!({
            "id": id, "status": status, "project": "../../../outside", "agent": "../../outside", "sync_tag": "../x",
            "archive": {"file": "../../outside/file", "bytes": 22, "blake3": "00"}, "session_id": id,
        }));
    }
    // Also that of one that is there.
    entries[0]["project"] = "../../../outside/empty".into();
    entries[0]["archive"] = json!({"file": "../../../outside/file", "bytes": 22, "blake3": "00"});
    entries[1]["project"] = "/tmp".into();
    s.place.put_home("index.json", index.to_string());
    let record = json!({"id": "../../outside/session", "project": "../../../outside", "agent": "../..", "cwd": "/"});
    s.place
        .put_home("sessions/20240603_crawler/session.json", record.to_string());
    s.mistypes = true;
    s.outside.watch();
    s.runs(LOOKING);
    for id in [IDS[0], IDS[2], IDS[3], IDS[8], IDS[11]] {
        for verb in [
            "show",
            "path",
            "du",
            "search",
            "archive",
            "unarchive",
            "rm",
            "history",
            "diff",
            "lease",
        ] {
            match verb {
                "search" => s.run_plain(&["search", "canary", "--", id]),
                "lease" => s.run_plain(&["lease", "take", "--", id]),
                verb => s.run_plain(&[verb, "--", id]),
            };
        }
        for args in [
            &["mv", "--", id, "20240609_x"][..],
            &["mv", "20240603_crawler", "--", id],
            &["export", "--to", "exported", "--", id],
            &["restore", "--from", "trash", "--", id],
            &["restore", "--from", "git", "--", id],
            &["restore", "--from", "backup", "--", id],
            &["restore", "--from", "archive", "--", id],
            &["relay", "fetch", "--to", "fetched", "--", id],
            &["relay", "take", "--", id],
            &["new", "--project", id, "x"],
            &["label", "--project", id, "20240603_crawler"],
        ] {
            s.run_plain(args);
        }
    }
    s.runs(CHANGING);
    let place = s.end();
    assert!(
        fs::read_dir(place.path("outside/empty"))
            .unwrap()
            .next()
            .is_none()
    );
}

/// Steps that no command writes down. Each alone: the first stops the rest.
#[test]
fn entries_of_the_journal() {
    let mut s = Siege::new("journal");
    // After a step that takes the session's entry away there is none to be labelled.
    s.mistypes = true;
    let outside = s.outside.root.to_str().unwrap().to_owned();
    s.outside.watch();
    let mut steps = Vec::new();
    for path in [
        "../../outside/file",
        &format!("{outside}/file"),
        "sessions/../../../outside/file",
        "sessions/x/../../../../outside/file",
    ] {
        steps.extend([
            json!({"do": "rename", "from": path, "to": "sessions/x"}),
            json!({"do": "rename", "from": "index.json", "to": path}),
            json!({"do": "swap", "record": path}),
            json!({"do": "undone", "record": path}),
            json!({"do": "renamed", "from": path, "to": "x"}),
            json!({"do": "renamed", "from": "20240603_crawler", "to": path}),
            json!({"do": "entry", "entry": {"id": path, "status": "active", "project": path}}),
            json!({"do": "views", "ids": [path]}),
            json!({"do": "cut", "cut": {"path": path, "log": path, "into": path, "copy": path}}),
        ]);
        for step in [
            "put", "move", "discard", "keep", "bring", "mode", "copy", "link", "remove", "close",
        ] {
            steps.push(json!({"do": "mend", "step": {"mend": step, "path": path, "from": path, "to": path, "act": path}}));
        }
    }
    for step in steps {
        let entry = ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json";
        let record = json!({"command": "new", "since": "2024-06-14T00:00:00Z", "steps": [step]});
        s.place.put_home(entry, record.to_string());
        s.run(&["label", "20240603_crawler", "--tag", "t"]);
        let _ = fs::remove_file(at(&s, entry));
    }
    s.end();
}

/// A note leads nowhere but into the home, and so does a listing of many.
#[test]
fn notes_of_the_trash() {
    let mut s = Siege::new("trash");
    for (n, path) in [
        "../../outside/file",
        "/etc/passwd",
        ".wbhome/home.json",
        ".git/config",
        "sessions/../../../outside/file",
    ]
    .iter()
    .enumerate()
    {
        let act = format!(".wbhome/trash/20240614T12000{n}Z");
        let note = json!({
            "why": "x", "command": "rm", "at": "2024-06-14T12:00:00Z", "was": [path], "moved": [path], "added": [path],
            "modes": [{"path": path, "mode": 0o7777}], "tombstones": [path], "removed": [path],
        });
        s.place
            .put_home(&format!("{act}/note.json"), note.to_string());
        s.place.put_home(&format!("{act}/sessions/x"), "x");
        std::os::unix::fs::symlink(&s.outside.root, at(&s, &format!("{act}/out"))).unwrap();
    }
    s.outside.watch();
    s.runs(LOOKING);
    for n in 0..5 {
        s.run(&[
            "restore",
            "--from",
            "trash",
            "--force",
            &format!("20240614T12000{n}Z"),
        ]);
    }
    s.runs(CHANGING);
    s.end();
}
