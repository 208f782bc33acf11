//! What a store says: packs, things and places that lead out of it and out of the home.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::support::verbs::{Siege, VICTIM};
use super::{clear, fifo};

/// All that reads a store, and what writes to it.
const OF_STORES: &[&[&str]] = &[
    &["backup", "ls"],
    &["backup", "ls", VICTIM],
    &["backup", "verify"],
    &["restore", VICTIM, "--from", "backup", "--force"],
    &["restore", "--from", "backup", "--to", "beside", VICTIM],
    &["restore", "--all", "--from", "store", "--to", "anew", "-n"],
    &["restore", "--all", "--from", "store", "--to", "anew"],
    &[
        "restore",
        "--all",
        "--from",
        "store",
        "--to",
        "anew2",
        "--state-to",
        "anew-state",
    ],
    &["drill"],
    &["doctor"],
    &["rm", VICTIM],
    &["backup", "run", "-v"],
    &["backup", "prune"],
    &["backup", "adopt", "store"],
    &["nightly"],
];

/// A store with two snapshots, of which the last has been changed by somebody.
fn besieged(kind: &'static str, change: impl FnOnce(&Siege, &Path)) -> Vec<String> {
    let mut s = Siege::new(kind);
    s.place.ok(["backup", "run", "-q"]);
    s.place
        .put_home("sessions/20240603_crawler/memory/notes.md", "more\n");
    s.place
        .run_with(
            &[("WBHOME_NOW", "2024-06-16T12:00:00Z")],
            &["backup", "run", "-q"],
        )
        .expect(0);
    let store = s.place.path("store");
    change(&s, &store);
    s.outside.watch();
    s.runs(OF_STORES);
    s.wrongs()
}

/// Nothing was wrong with any of them.
#[track_caller]
fn held<T: Send>(kinds: Vec<T>, besieged: impl Fn(T) -> Vec<String> + Send + Sync) {
    let wrong: Vec<String> = kinds.into_par_iter().flat_map_iter(besieged).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A part of a store, and what is done with it.
type Part = (&'static str, fn(&Siege, &Path));

/// The newest snapshot, changed.
fn rewrite(store: &Path, change: impl FnOnce(&mut Value)) {
    let all = fs::read_dir(store.join("snapshots")).unwrap();
    let newest = all.map(|one| one.unwrap().path()).max().unwrap();
    let mut snapshot: Value = serde_json::from_slice(&fs::read(&newest).unwrap()).unwrap();
    change(&mut snapshot);
    fs::write(newest, snapshot.to_string()).unwrap();
}

#[test]
fn packs_that_lie_elsewhere() {
    let files = [
        "../outside/file",
        "{outside}/file",
        "packs/../../outside/file",
        "packs/sessions/20240603_crawler/../../../../outside/file",
        "/etc/passwd",
        "",
        "packs",
        "lock",
        "-rf",
    ];
    held(files.to_vec(), |file| {
        besieged("packs", |s, store| {
            let file = file.replace("{outside}", s.outside.root.to_str().unwrap());
            rewrite(store, |snapshot| {
                for item in snapshot["items"].as_array_mut().unwrap() {
                    item["newest"]["file"] = json!(file);
                }
            });
        })
    });
}

#[test]
fn things_that_are_called_like_a_way_out() {
    let things = [
        ("session", "../../outside/session"),
        ("session", "/etc"),
        ("session", ".."),
        ("session", ""),
        ("session", ".git"),
        ("session", "-rf"),
        ("folder", "../outside"),
        ("folder", ".wbhome"),
        ("folder", "sessions"),
        ("folder", "a/b"),
        ("state", "../../outside"),
        ("archive", "../../outside/file"),
    ];
    held(things.to_vec(), |(kind, name)| {
        besieged("things", |_, store| {
            rewrite(store, |snapshot| {
                for item in snapshot["items"].as_array_mut().unwrap() {
                    if item["kind"] == "session" {
                        item["kind"] = json!(kind);
                        item["name"] = json!(name);
                        item["entry"] = json!({"id": name, "status": "active", "project": name});
                        break;
                    }
                }
                snapshot["home"]["path"] = json!("/etc");
                snapshot["home"]["state"] = json!([{"name": name, "path": name}]);
            });
        })
    });
}

#[test]
fn parts_of_a_store_that_lead_out() {
    let parts: [Part; 8] = [
        ("packs", |s, store| lead(s, store, "packs", "sessions")),
        ("packs of sessions", |s, store| {
            lead(s, store, "packs/sessions", "sessions")
        }),
        ("packs of a session", |s, store| {
            lead(
                s,
                store,
                "packs/sessions/20240603_crawler",
                "sessions/20240603_crawler",
            );
        }),
        ("snapshots", |s, store| lead(s, store, "snapshots", "act")),
        ("snapshot", |s, store| {
            symlink(
                s.outside.path("index.json"),
                store.join("snapshots/20240701T030000Z.json"),
            )
            .unwrap();
        }),
        ("lock", |s, store| lead(s, store, "lock", "file")),
        ("store", |s, store| {
            lead(s, store, "wbhome-store.json", "file")
        }),
        ("pipes", |_, store| {
            fifo(&store.join("lock"));
            fifo(&store.join("snapshots/20240701T030000Z.json"));
            fifo(&store.join("packs/sessions/20240603_crawler/20240701T030000Z.tar.zst"));
        }),
    ];
    held(parts.to_vec(), |(kind, change)| besieged(kind, change));
}

fn lead(s: &Siege, store: &Path, part: &str, to: &str) {
    clear(&store.join(part));
    symlink(s.outside.path(to), store.join(part)).unwrap();
}

/// The lock of a store has another name outside, which must not be written to.
#[test]
fn a_lock_with_a_name_outside() {
    let wrong = besieged("lock", |s, store| {
        clear(&store.join("lock"));
        fs::hard_link(s.outside.path("file"), store.join("lock")).unwrap();
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
