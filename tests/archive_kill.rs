//! `kill -9` at any moment of archiving and of bringing back: the session is whole, once at least, and the next command
//! settles it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and kills what it started"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Instant;

use support::corpus::Corpus;
use support::kill::{Rng, killed};
use support::{Entry, Place, differences, tree};

fn sessions(place: &Place) -> BTreeMap<Vec<u8>, Entry> {
    let mut sessions = tree(&place.home().join("sessions"));
    // Its own time is that of the last rename.
    sessions.remove(&b""[..]);
    sessions
}

fn ids(place: &Place) -> Vec<String> {
    let index = place.index();
    let ids = index.as_array().unwrap().iter();
    ids.map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Kills both verbs in turn until each was hit so often while it was running.
fn kill_often(hits: u64, mut rng: Rng) {
    let place = Place::with_corpus(&Corpus::default());
    let (before, ids) = (sessions(&place), ids(&place));
    let args = |verb: &str| -> Vec<String> {
        let verb = std::iter::once(verb.to_owned());
        verb.chain(ids.iter().cloned()).collect()
    };
    let mut takes = BTreeMap::new();
    for verb in ["archive", "unarchive"] {
        let began = Instant::now();
        place.ok(args(verb));
        takes.insert(verb, began.elapsed());
    }
    assert_eq!(differences(&before, &sessions(&place)), "");
    let mut running = BTreeMap::from([("archive", 0), ("unarchive", 0)]);
    for n in 0.. {
        if running.values().all(|n| *n >= hits) {
            break;
        }
        assert!(n < hits * 12, "hardly ever hit: {running:?}");
        let verb = if n % 2 == 0 { "archive" } else { "unarchive" };
        if verb == "unarchive" {
            place.ok(args("archive"));
        }
        let mut command = place.command();
        command.args(args(verb));
        let was = killed(command, rng.within(takes[verb]));
        *running.get_mut(verb).unwrap() += u64::from(was);
        // Every session is in its folder or in its archive, and the index knows.
        place.ok(["index", "-q"]);
        assert!(place.names(".wbhome/journal").is_empty());
        // At most the note of an act that nothing had come into yet.
        let trash = place.names(".wbhome/trash").into_iter();
        let kept: Vec<String> = trash.filter(|name| !name.ends_with('/')).collect();
        assert!(
            kept.iter().all(|name| name.ends_with("/note.json")),
            "{kept:?}"
        );
        for entry in place.index().as_array().unwrap() {
            let id = entry["id"].as_str().unwrap();
            let folder = place.home().join("sessions").join(id).exists();
            let pack = place.home().join(format!("archive/{id}.tar.zst")).exists();
            assert!(folder || pack, "{id}");
            assert_eq!(entry["status"] == "archived", !folder, "{entry}");
        }
        // A pack that was published before the kill, beside its folder, is what the folder holds.
        place.ok(args("unarchive"));
        assert_eq!(differences(&before, &sessions(&place)), "");
        assert_eq!(place.names("archive"), [""; 0]);
    }
    eprintln!("killed while running: {running:?}");
}

#[test]
fn a_dozen_kills() {
    kill_often(4, Rng(5));
}

#[test]
#[ignore = "some minutes; run by hand"]
fn fifty_kills() {
    kill_often(50, Rng::seeded());
}
