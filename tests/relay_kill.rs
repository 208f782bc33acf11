//! `kill -9` at any moment of a sync: the home is as it was, what others have put into the relay is too, and the next
//! sync makes the relay right, although the sessions have gone on meanwhile.

#![cfg(feature = "failpoints")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and kills what it started"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use support::corpus::Corpus;
use support::kill::{Rng, killed};
use support::{Place, tree};

const MODES: [&str; 3] = ["clone", "hardlink", "symlink"];

fn content(root: &Path) -> BTreeMap<String, String> {
    let all = tree(root).into_iter().map(|(path, entry)| {
        let path = String::from_utf8_lossy(&path).into_owned();
        (path, format!("{} {}", entry.kind, entry.content))
    });
    all.filter(|(path, _)| !path.is_empty() && path.split('/').next() != Some("logs"))
        .collect()
}

fn ids(place: &Place) -> Vec<String> {
    let index = place.index();
    let ids = index.as_array().unwrap().iter();
    ids.map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A corpus, most of it tagged, and somebody else's things in the relay.
fn place(mode: &str) -> Place {
    let place = Place::with_corpus(&Corpus {
        sessions: 6,
        ..Corpus::default()
    });
    place.put("relay/theirs/session.json", "{}");
    place.put("relay/读我", "theirs");
    place.ok(["relay", "init", "relay", "--mode", mode, "-q"]);
    for id in ids(&place).iter().skip(1) {
        place.ok(["label", id, "--sync-tag", "x", "-q"]);
    }
    place
}

/// Something happens in each session, and one comes or goes.
fn go_on(place: &Place, n: u64) {
    for (at, id) in ids(place).iter().enumerate() {
        let session = format!("sessions/{id}");
        place.put_home(
            &format!("{session}/context/turn_9{n:02}.json"),
            format!("{{\"turn\": {n}}}"),
        );
        place.put_home(&format!("{session}/memory/notes.md"), format!("notes {n}"));
        let new = place.put_home(&format!("{session}/new"), format!("saved by rename {n}"));
        std::fs::rename(new, place.home().join(format!("{session}/artifacts.md"))).unwrap();
        if n % 2 == at as u64 % 2 {
            let gone = place.home().join(format!(
                "{session}/context/turn_9{:02}.json",
                n.saturating_sub(1)
            ));
            let _ = std::fs::remove_file(gone);
        }
    }
    let first = ids(place).remove(0);
    let flag: &[&str] = if n.is_multiple_of(2) {
        &["--sync-tag", "x"]
    } else {
        &["--no-sync-tag"]
    };
    place.ok([&["label", &first, "-q"][..], flag].concat());
}

#[track_caller]
fn right(place: &Place, mode: &str, what: &str) {
    let ran = place.run(["relay", "sync"]);
    assert_eq!(ran.code, Some(0), "{mode} {what}: {ran:#?}");
    let mut expected = vec!["theirs".to_owned(), "读我".into(), ".leases".into()];
    for entry in place.index().as_array().unwrap() {
        if entry["sync_tag"].is_null() {
            continue;
        }
        let id = entry["id"].as_str().unwrap();
        expected.push(id.to_owned());
        let (here, there) = (
            place.home().join("sessions").join(id),
            place.path("relay").join(id),
        );
        match mode {
            "symlink" => assert_eq!(std::fs::read_link(&there).unwrap(), here),
            _ => assert!(content(&there) == content(&here), "{mode} {what} {id}"),
        }
    }
    let mut names: Vec<String> = std::fs::read_dir(place.path("relay"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "{mode} {what}");
    assert_eq!(place.text("relay/读我"), "theirs");
    assert_eq!(place.text("relay/theirs/session.json"), "{}");
    assert!(
        !place.home().join(".wbhome/relay.log").exists(),
        "{mode} {what}"
    );
}

/// Sessions as they are here, which no sync changes. Hard links add to their names.
fn here(place: &Place) -> BTreeMap<String, String> {
    content(&place.home().join("sessions"))
}

#[test]
fn at_each_step() {
    let first = [
        "relay.begun",
        "relay.put:5",
        "relay.built:2",
        "relay.named:3",
        "relay.synced",
        "relay.recorded",
    ];
    let next = [
        "relay.begun:3",
        "relay.put",
        "relay.put:9",
        "relay.removed",
        "relay.synced",
        "relay.recorded",
    ];
    for mode in ["clone", "hardlink"] {
        for (n, (points, again)) in [(&first, false), (&next, true)].into_iter().enumerate() {
            for point in points.iter() {
                let place = place(mode);
                if again {
                    go_on(&place, 0);
                    right(&place, mode, "first");
                    go_on(&place, 1);
                }
                let before = here(&place);
                let ran = place
                    .command()
                    .args(["relay", "sync"])
                    .env("WBHOME_FAILPOINT", point)
                    .output()
                    .unwrap();
                assert_eq!(ran.status.code(), None, "{mode} did not come to {point}");
                assert!(here(&place) == before, "{mode} {point}");
                // What the killed sync has left is known as ours, although here it has gone on.
                go_on(&place, 2 + n as u64);
                right(&place, mode, point);
            }
        }
    }
    for point in ["relay.begun", "relay.linked:2", "relay.recorded"] {
        let place = place("symlink");
        let ran = place
            .command()
            .args(["relay", "sync"])
            .env("WBHOME_FAILPOINT", point)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), None, "symlink did not come to {point}");
        go_on(&place, 2);
        right(&place, "symlink", point);
    }
}

/// It is known what was begun, also when the session does not belong into the relay any more.
#[test]
fn untagged_after_a_kill() {
    for mode in MODES {
        let place = place(mode);
        let ids = ids(&place);
        let point = match mode {
            "symlink" => "relay.linked:3",
            _ => "relay.synced",
        };
        let mut command = place.command();
        command
            .args(["relay", "sync"])
            .env("WBHOME_FAILPOINT", point);
        assert_eq!(command.output().unwrap().status.code(), None, "{mode}");
        go_on(&place, 1);
        place.ok(["label", &ids[2], "--no-sync-tag", "-q"]);
        place.ok(["relay", "sync", "--tag", "another", "-q"]);
        right(&place, mode, "untagged");
        place.ok(["label", &ids[2], "--sync-tag", "x", "-q"]);
        right(&place, mode, "tagged again");
    }
}

/// Half of what has to make way is never taken for a whole.
#[test]
fn while_a_version_is_kept() {
    let place = place("clone");
    right(&place, "clone", "first");
    let id = ids(&place).remove(1);
    place.put(format!("relay/{id}/theirs"), "their work");
    place.ok(["lease", "take", &id]);
    let mut command = place.command();
    command
        .args(["relay", "sync", "--ours", &id])
        .env("WBHOME_FAILPOINT", "relay.keeping");
    assert_eq!(command.output().unwrap().status.code(), None);
    assert_eq!(place.text(format!("relay/{id}/theirs")), "their work");
    let told = place.json(["relay", "sync", "--ours", &id]);
    let sessions = told["sessions"].as_array().unwrap();
    let act = sessions
        .iter()
        .find_map(|one| one["kept"].as_str())
        .unwrap();
    assert_eq!(
        place.home_text(&format!(".wbhome/trash/{act}/sessions/{id}/theirs")),
        "their work"
    );
    place.ok(["lease", "release", &id]);
    right(&place, "clone", "after that");
}

/// A conversion that was killed is known as ours, also when the session does not belong there any more.
#[test]
fn untagged_after_a_killed_conversion() {
    let place = place("symlink");
    right(&place, "symlink", "first");
    place.ok(["relay", "init", "relay", "--mode", "clone", "-q"]);
    let mut command = place.command();
    command
        .args(["relay", "sync"])
        .env("WBHOME_FAILPOINT", "relay.synced");
    assert_eq!(command.output().unwrap().status.code(), None);
    place.ok(["label", &ids(&place)[2], "--no-sync-tag", "-q"]);
    right(&place, "clone", "untagged");
}

/// What was begun is known until it was seen to, whatever holds the session back in the meantime.
#[test]
fn held_back_after_a_kill() {
    let place = place("clone");
    right(&place, "clone", "first");
    go_on(&place, 1);
    let mut command = place.command();
    command
        .args(["relay", "sync"])
        .env("WBHOME_FAILPOINT", "relay.synced");
    assert_eq!(command.output().unwrap().status.code(), None);
    let secret = "ghp_".to_owned() + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO2qV0hB";
    for id in ids(&place).iter().skip(1) {
        place.put_home(&format!("sessions/{id}/memory/key"), &secret);
    }
    assert_eq!(place.run(["relay", "sync"]).code, Some(3));
    for id in ids(&place).iter().skip(1) {
        std::fs::remove_file(place.home().join(format!("sessions/{id}/memory/key"))).unwrap();
    }
    go_on(&place, 3);
    right(&place, "clone", "the secret is out");
}

#[test]
fn while_a_mode_is_converted() {
    for (from, to) in [
        ("clone", "hardlink"),
        ("clone", "symlink"),
        ("symlink", "clone"),
        ("hardlink", "clone"),
        ("hardlink", "symlink"),
    ] {
        for point in ["relay.begun:2", "relay.synced"] {
            let place = place(from);
            right(&place, from, "first");
            place.ok(["relay", "init", "relay", "--mode", to, "-q"]);
            let before = here(&place);
            let ran = place
                .command()
                .args(["relay", "sync"])
                .env("WBHOME_FAILPOINT", point)
                .output()
                .unwrap();
            assert_eq!(
                ran.status.code(),
                None,
                "{from} {to} did not come to {point}"
            );
            assert!(here(&place) == before, "{from} {to} {point}");
            go_on(&place, 2);
            right(&place, to, point);
        }
    }
}

/// Kills a sync until it was hit so often while it was running.
fn kill_often(mode: &str, hits: u64, mut rng: Rng) {
    let place = place(mode);
    let began = Instant::now();
    place.ok(["relay", "sync", "-q"]);
    let takes = began.elapsed();
    let mut hit = 0;
    for n in 0.. {
        if hit >= hits {
            break;
        }
        assert!(n < hits * 12, "hardly ever hit: {hit}");
        go_on(&place, n % 90);
        let before = here(&place);
        let mut command = place.command();
        command.args(["relay", "sync"]);
        hit += u64::from(killed(command, rng.within(takes)));
        assert!(here(&place) == before, "{mode}");
        if n % 3 == 0 {
            right(&place, mode, &format!("kill {n}"));
        }
    }
    right(&place, mode, "the end");
}

#[test]
fn thirty_kills() {
    for (mode, seed) in MODES.into_iter().zip(1..) {
        kill_often(mode, 10, Rng(seed));
    }
}
