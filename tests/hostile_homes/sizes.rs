//! More than a home ever has: files that no memory holds, sessions that no person counts.

use std::fs;
use std::time::Instant;

use super::support::home::HOME;
use super::support::verbs::{CHANGING, LOOKING, Siege};
use super::{at, besiege_briefly, sparse, within};

const LARGE: u64 = 2 << 30;

/// Each is refused by its name, or passed over; none is read into memory.
#[test]
fn files_of_two_gigabytes() {
    besiege_briefly(&[
        ("index.json", |s| sparse(&at(s, "index.json"), LARGE)),
        ("wbhome.toml", |s| sparse(&at(s, "wbhome.toml"), LARGE)),
        ("home.json", |s| sparse(&at(s, ".wbhome/home.json"), LARGE)),
        ("what may be deleted", |s| {
            for name in ["cache.json", "du.json", "rotate.json", "leases.json"] {
                sparse(&at(s, &format!(".wbhome/{name}")), LARGE);
            }
            sparse(&at(s, ".wbhome/runs/20240614T120000Z.json"), LARGE);
            sparse(&at(s, ".wbhome/drills/20240614T120000Z.json"), LARGE);
            sparse(&at(s, ".wbhome/trash/20240614T120000Z/note.json"), LARGE);
            sparse(
                &at(
                    s,
                    ".wbhome/relinks/20240614T120000Z-00000000/swap/done.json",
                ),
                LARGE,
            );
            sparse(
                &at(s, ".wbhome/migrations/20240614T120000Z/outcome.json"),
                LARGE,
            );
        }),
        ("the record of the relay", |s| {
            sparse(&at(s, ".wbhome/relay.json"), LARGE);
            sparse(&at(s, ".wbhome/relay.log"), LARGE);
        }),
        ("the journal", |s| {
            sparse(
                &at(
                    s,
                    ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
                ),
                LARGE,
            );
        }),
        ("session.json", |s| {
            sparse(&within(s, "session.json"), 64 << 20)
        }),
        (".gitignore", |s| sparse(&at(s, ".gitignore"), LARGE)),
    ]);
}

/// A log that takes no room and is longer than any disk. What reads contents (`check`, `search`,
/// `mv`) would be at it for hours.
#[test]
fn a_log_of_a_terabyte() {
    let mut s = Siege::new("1 TiB");
    sparse(&within(&s, "logs/run.log"), 1 << 40);
    s.outside.watch();
    for args in [
        &["ls", "-l"][..],
        &["show", "20240603_crawler"],
        &["du", "-v"],
        &["doctor"],
        &["index"],
        &["commit"],
        &["label", "20240603_crawler", "--sync-tag", "s"],
        &["relay", "sync"],
        &["rm", "20240603_crawler"],
        &["restore", "20240603_crawler", "--from", "trash"],
    ] {
        s.run(args);
    }
    s.end();
}

/// So many sessions, each with a record and a turn, in the index.
fn crowded(sessions: usize) -> Siege {
    let s = Siege::new("crowded");
    let mut index = Vec::new();
    for n in 0..sessions {
        let id = format!("20230101_s{n:06}");
        let folder = s.place.path(HOME).join("sessions").join(&id);
        fs::create_dir_all(folder.join("context")).unwrap();
        fs::write(folder.join("session.json"), format!("{{\"id\": \"{id}\"}}")).unwrap();
        fs::write(folder.join("context/turn_001.json"), "{\"turn\": 1}").unwrap();
        index.push(serde_json::json!({"id": id, "status": "active", "project": null}));
    }
    s.place
        .put_home("index.json", serde_json::Value::Array(index).to_string());
    s
}

#[test]
fn a_thousand_sessions() {
    let mut s = crowded(1000);
    s.outside.watch();
    for args in [
        &["index"][..],
        &["ls", "--json"],
        &["check"],
        &["du"],
        &["search", "nothing"],
        &["doctor"],
    ] {
        s.run(args);
    }
    s.end();
}

/// By hand: `cargo test --test hostile_homes -- --ignored --nocapture`.
#[test]
#[ignore = "makes 100,000 sessions, and takes minutes"]
fn a_hundred_thousand_sessions() {
    let begun = Instant::now();
    let mut s = crowded(100_000);
    eprintln!("laid out in {} s", begun.elapsed().as_secs());
    s.outside.watch();
    s.patience = std::time::Duration::from_secs(1200);
    s.memory = 1 << 20;
    s.tells = true;
    s.runs(LOOKING);
    s.runs(CHANGING);
    s.end();
}
