//! What can be asked of a migration: what is left behind, which references change, the user's own check, and what is
//! told afterwards.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::BTreeSet;

use support::Place;
use support::corpus::{Corpus, ELSEWHERE};
use support::moving::{OLD, SESSION, SMALL_REFERENCES, assert_same, map_to, small_home, visible};
use support::naive::Spellings;
use support::tree;

#[test]
fn excluded_files_stay_behind_and_are_named() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    place.put(
        format!("C/{SESSION}/artifacts/node_modules/x/index.js"),
        "x",
    );
    place.put(format!("C/{SESSION}/artifacts/keep.tmp.md"), "keep");
    place.put(format!("C/{SESSION}/artifacts/a.tmp"), "x");
    place.put("C/a.tmp", "x");
    let before = tree(&place.path("C"));
    let map = map_to(&place, "H");
    let ran = place.run([
        "migrate",
        "C",
        "H",
        "--map",
        &map,
        "--exclude",
        "*.tmp",
        "--exclude",
        "node_modules",
        "--exclude",
        "sessions/*/logs",
        "--json",
    ]);
    let outcome = ran.expect(0).json();
    let skipped: BTreeSet<String> = outcome["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .inspect(|s| {
            assert_eq!(s["reason"], "excluded");
            assert_eq!(s["failed"], false);
        })
        .map(|s| s["path"].as_str().unwrap().to_owned())
        .collect();
    let wanted = [
        "a.tmp".to_owned(),
        format!("{SESSION}/artifacts/a.tmp"),
        format!("{SESSION}/artifacts/node_modules"),
        format!("{SESSION}/logs"),
    ];
    assert_eq!(skipped, BTreeSet::from(wanted));
    for name in &skipped {
        assert!(!place.path("H").join(name).exists(), "{name}");
    }
    assert_eq!(
        place.text(format!("H/{SESSION}/artifacts/keep.tmp.md")),
        "keep"
    );
    let classes = &outcome["classes"];
    let sum: u64 = ["copied", "rewritten", "linked", "folders", "skipped"]
        .iter()
        .map(|c| classes[c].as_u64().unwrap())
        .sum();
    assert_eq!(classes["total"], sum);
    assert_eq!(classes["skipped"], 4);
    assert_same(&tree(&place.path("C")), &before, "the source");
    // What was left behind on purpose is not missed later.
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

#[test]
fn a_bad_glob_is_a_usage_error() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let ran = place.run(["migrate", "C", "H", "--exclude", "a[", "--no-state"]);
    ran.expect(2).says(&["--exclude"]);
    assert!(!place.path("H").exists());
}

#[test]
fn fields_only_changes_what_identifies_a_place_and_leaves_prose_alone() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let map = map_to(&place, "H");
    let ran = place.run([
        "migrate",
        "C",
        "H",
        "--map",
        &map,
        "--fields-only",
        "--json",
    ]);
    let outcome = ran.expect(0).json();
    let here = place.path("H").to_str().unwrap().to_owned();
    let record = place.text(format!("H/{SESSION}/session.json"));
    assert!(
        record.contains(&format!("\"cwd\": \"{here}/{SESSION}\"")),
        "{record}"
    );
    let turn = place.text(format!("H/{SESSION}/context/turn_001.json"));
    assert!(turn.contains(&format!("\"cwd\": \"{here}\"")), "{turn}");
    assert!(turn.contains(&format!("see {OLD}/{SESSION}")), "{turn}");
    for prose in ["memory/notes.md", "logs/run.log"] {
        let path = format!("{SESSION}/{prose}");
        assert_eq!(
            place.text(format!("H/{path}")),
            place.text(format!("C/{path}"))
        );
    }
    let references = &outcome["references"];
    let (changed, left) = (
        references["changed"].as_u64().unwrap(),
        references["left"].as_u64().unwrap(),
    );
    assert!(changed >= 3 && left >= 4, "{references}");
    assert_eq!(changed + left, SMALL_REFERENCES);
}

#[test]
fn several_maps_each_change_their_own() {
    let place = Place::new();
    let corpus = Corpus {
        old_path: OLD.into(),
        ..Corpus::default()
    };
    let written = corpus.write(&place.path("C")).unwrap();
    let elsewhere = format!("{ELSEWHERE}={}", place.path("H").to_str().unwrap());
    // A folder within the old home that has gone to another place: the longest OLD wins.
    let table = format!("{OLD}/sessions/{}/in.csv", written.ids[0]);
    let input = format!("{table}=/data/in.csv");
    let ran = place.run([
        "migrate",
        "C",
        "H",
        "--map",
        &map_to(&place, "H"),
        "--map",
        &elsewhere,
        "--map",
        &input,
        "--json",
    ]);
    let outcome = ran.expect(0).json();
    let count = |old: &str| {
        let all = outcome["references"]["by_mapping"].as_array().unwrap();
        all.iter().find(|m| m["old"] == old).unwrap()["count"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(count(ELSEWHERE), written.planted.elsewhere);
    let inputs = count(&table);
    assert!(inputs > 0);
    let all = written.planted.references + written.planted.links;
    assert_eq!(count(OLD), all - inputs);
    let csv = place.text(format!("H/sessions/{}/artifacts/table.csv", written.ids[0]));
    let had = place.text(format!("C/sessions/{}/artifacts/table.csv", written.ids[0]));
    assert_eq!(csv, had.replace(&table, "/data/in.csv"));
    assert_eq!(
        outcome["references"]["also_mentioned"]
            .as_object()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn references_from_the_users_home_are_found() {
    let place = Place::new();
    let me = place.user_home();
    let old = me.join("云盘/wb home");
    let corpus = Corpus {
        old_path: old.to_str().unwrap().into(),
        user_home: Some(me.to_str().unwrap().into()),
        ..Corpus::default()
    };
    let written = corpus.write(&old).unwrap();
    let planted = written.planted;
    assert!(planted.from_home > 0);
    // The source is where its files say that it is: no --map is needed.
    let ran = place.run(["migrate", "me/云盘/wb home", "me/wb", "--json"]);
    let outcome = ran.expect(0).json();
    assert_eq!(
        outcome["references"]["changed"],
        planted.references + planted.links + planted.from_home
    );
    let notes = place.text(format!(
        "me/wb/sessions/{}/artifacts/paths.md",
        written.ids[0]
    ));
    let line = notes.lines().find(|l| l.starts_with("home: ")).unwrap();
    let id = &written.ids[0];
    assert_eq!(
        line,
        format!("home: ~/wb/sessions/{id}/a.md $HOME/wb/sessions/{id}")
    );
    let sibling = notes
        .lines()
        .find(|l| l.starts_with("home sibling: "))
        .unwrap();
    assert_eq!(
        sibling,
        "home sibling: ~/云盘/wb home2/keep $HOME/云盘/wb home-2/keep"
    );
    // A home outside the user's own has no short name.
    let ran = place.run(["migrate", "me/云盘/wb home", "H", "--json"]);
    ran.expect(0);
    let notes = place.text(format!("H/sessions/{id}/artifacts/paths.md"));
    let line = notes.lines().find(|l| l.starts_with("home: ")).unwrap();
    let here = place.path("H").to_str().unwrap().to_owned();
    assert_eq!(
        line,
        format!("home: {here}/sessions/{id}/a.md {here}/sessions/{id}")
    );
}

#[test]
fn a_source_reached_by_a_link_is_known_by_both_names() {
    let place = Place::new();
    let link = place.path("drive").to_str().unwrap().to_owned();
    let real = place.path("C").to_str().unwrap().to_owned();
    small_home(&place, "C", &real);
    place.put(
        format!("C/{SESSION}/memory/more.md"),
        format!("{link}/sessions and {real}/sessions\n"),
    );
    std::os::unix::fs::symlink("C", place.path("drive")).unwrap();
    let outcome = place
        .run(["migrate", "drive", "H", "--json"])
        .expect(0)
        .json();
    assert_eq!(outcome["references"]["changed"], SMALL_REFERENCES + 2);
    let here = place.path("H").to_str().unwrap().to_owned();
    assert_eq!(
        place.text(format!("H/{SESSION}/memory/more.md")),
        format!("{here}/sessions and {here}/sessions\n")
    );
}

#[test]
fn a_path_that_the_map_can_not_tell_is_a_usage_error() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    for map in ["/a", "a=b", "/a=/b=/c", "=", "/=/x"] {
        let ran = place.run(["migrate", "C", "H", "--map", map]);
        ran.expect(2).says(&["--map"]);
    }
    assert!(!place.path("H").exists());
}

#[test]
fn no_reference_at_all_is_a_warning() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let ran = place.run(["migrate", "C", "H"]);
    ran.expect(0).says(&["no reference to", "--map"]);
    // The files are those of the source.
    let (source, home) = (tree(&place.path("C")), visible(&place.path("H")));
    for (name, there) in source.iter().filter(|(_, e)| e.kind == 'f') {
        assert_eq!(home[name].content, there.content);
    }
    // One of two maps that names nothing is told too.
    let nothing = format!("/no/such/place={}", place.path("H2").to_str().unwrap());
    let ran = place.run([
        "migrate",
        "C",
        "H2",
        "--map",
        &map_to(&place, "H2"),
        "--map",
        &nothing,
    ]);
    ran.expect(0)
        .says(&["no reference to /no/such/place was found"]);
}

#[test]
fn other_roots_of_the_home_are_shown_with_the_map_to_add() {
    let place = Place::new();
    let corpus = Corpus {
        old_path: OLD.into(),
        ..Corpus::default()
    };
    let written = corpus.write(&place.path("C")).unwrap();
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(&place, "H")]);
    let text = &ran.expect(0).stdout;
    let line = format!("{:>8}   {ELSEWHERE}\n", written.planted.elsewhere);
    let times = format!("Also mentioned, and left alone:\n  {line}");
    let cure = "add --map OLD=DEST for each".to_owned();
    for part in [&times, &cure] {
        assert!(text.contains(part.as_str()), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_users_own_check_is_run_in_the_home() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    place.put(
        "C/wbhome.toml",
        "[check]\ncommand = \"echo from the check; pwd > seen.txt\"\n",
    );
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(&place, "H"), "--json"]);
    let outcome = ran.expect(0).json();
    assert_eq!(outcome["command"]["exit"], 0);
    // What it prints does not spoil the JSON.
    ran.says(&["from the check"]);
    let here = place.path("H").to_str().unwrap().to_owned();
    assert_eq!(place.text("H/seen.txt"), format!("{here}\n"));
    assert!(!place.path("C/seen.txt").exists());
}

#[test]
fn a_check_that_fails_is_a_failure_and_the_copy_is_complete() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    place.put("C/wbhome.toml", "[check]\ncommand = \"exit 7\"\n");
    let map = map_to(&place, "H");
    let ran = place.run(["migrate", "C", "H", "--map", &map]);
    ran.expect(1);
    assert!(ran.stdout.contains("failed with exit code 7"), "{ran:#?}");
    place.run(["migrate", "verify", "--home", "H"]).expect(0);
}

#[test]
fn status_tells_it_again() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let map = map_to(&place, "H");
    let first = place.json(["migrate", "C", "H", "--map", &map]);
    let mut status = place.json(["migrate", "status", "--home", "H"]);
    assert_eq!(status["schema"], "wbhome/migrate-status/1");
    status["schema"] = first["schema"].clone();
    // What came after the migration is told besides.
    let packed = status.as_object_mut().unwrap().remove("packed");
    assert_eq!(packed, Some(serde_json::Value::Null));
    assert_eq!(status, first);
    let text = place.ok(["migrate", "status", "--home", "H"]);
    for part in [
        "Migrated 2024-06-15",
        "8 references",
        "Keep the original until 2024-06-29",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn status_and_verify_of_a_home_that_was_not_migrated_say_so() {
    let place = Place::new();
    place.ok(["init", "H"]);
    for verb in ["status", "verify"] {
        let ran = place.run(["migrate", verb, "--home", "H"]);
        ran.expect(1).says(&["was not made by a migration"]);
    }
}

#[test]
fn a_finished_migration_is_not_done_again() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let map = map_to(&place, "H");
    let first = place.json(["migrate", "C", "H", "--map", &map]);
    // The home goes on living: it must not be taken back to what it was.
    place.put(format!("H/{SESSION}/memory/notes.md"), "newer\n");
    let before = tree(&place.path("H"));
    let ran = place.run(["migrate", "C", "H", "--map", &map, "--json"]);
    assert_eq!(ran.expect(0).json(), first);
    assert_same(&tree(&place.path("H")), &before, "the home");
}

#[test]
fn slugs_and_other_spellings_of_small_files_follow() {
    let place = Place::new();
    let old = "/Users/me/Drive/wb";
    small_home(&place, "C", old);
    let here = place.path("H").to_str().unwrap().to_owned();
    let spelled = |path: &str| {
        format!(
            "gitdir: {path}/sessions/x/.git/worktrees/a\n#!{path}/.venv/bin/python\nVIRTUAL_ENV='{path}/.venv'\n{{\"uri\":\"file://{path}/a\"}}\n{}\n",
            path.replace('/', "\\/")
        )
    };
    place.put(format!("C/{SESSION}/artifacts/tree/.git"), spelled(old));
    place.put(format!("C/{SESSION}/artifacts/pyvenv.cfg"), spelled(old));
    let map = format!("{old}={here}");
    place.run(["migrate", "C", "H", "--map", &map]).expect(0);
    for name in ["tree/.git", "pyvenv.cfg"] {
        assert_eq!(
            place.text(format!("H/{SESSION}/artifacts/{name}")),
            spelled(&here)
        );
    }
}

#[test]
fn utf_16_files_are_rewritten_as_utf_16() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let encode = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let line = |path: &str| format!("日志: {path}/sessions\r\n");
    place.put(format!("C/{SESSION}/logs/win.log"), encode(&line(OLD)));
    place
        .run(["migrate", "C", "H", "--map", &map_to(&place, "H")])
        .expect(0);
    let here = place.path("H").to_str().unwrap().to_owned();
    assert_eq!(
        place.read(format!("H/{SESSION}/logs/win.log")),
        encode(&line(&here))
    );
}

#[test]
fn a_new_path_that_holds_the_old_one_is_not_rewritten_twice() {
    let place = Place::new();
    small_home(&place, "C", "/data");
    let map = "/data=/data/data";
    let outcome = place
        .run(["migrate", "C", "H", "--map", map, "--json"])
        .expect(0)
        .json();
    assert_eq!(outcome["references"]["changed"], SMALL_REFERENCES);
    assert_eq!(
        place.text(format!("H/{SESSION}/memory/notes.md")),
        "# Notes\n\nWork in `/data/data`.\n"
    );
    let spellings = Spellings::new("/data/data/data", "/x");
    for (name, entry) in visible(&place.path("H")) {
        if entry.kind == 'f' {
            let name = String::from_utf8(name).unwrap();
            assert_eq!(
                spellings.count(&place.read(format!("H/{name}"))),
                0,
                "{name}"
            );
        }
    }
}
