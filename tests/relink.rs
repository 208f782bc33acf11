//! `wbhome relink` and `wbhome mv`: references follow a folder that was moved or renamed, all of them or none.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use support::corpus::Corpus;
use support::moving::{assert_same, small_home, visible};
use support::state::{State, cwd, everything, rows, slug};
use support::{Entry, Place, has_tool};

/// A home of several sessions with every kind of file, its own paths in every spelling, and the folder of an application.
struct Scene {
    place: Place,
    home: PathBuf,
    state: PathBuf,
}

fn scene(sessions: usize, turns: usize) -> Scene {
    let place = Place::new();
    let old = place.path("家/wb (旧)+[1]");
    let corpus = Corpus {
        sessions,
        turns,
        old_path: old.to_str().unwrap().to_owned(),
        log_bytes: 2 << 10,
        artifact_bytes: 2 << 10,
        ..Corpus::default()
    };
    corpus.write(&place.path("C")).unwrap();
    // Migrated into the place that the files speak of already: a home in which everything is right.
    let ran = place.run(["migrate", "C", "家/wb (旧)+[1]", "--no-state"]);
    ran.expect(0);
    let state = place.path("S");
    State::new(old.to_str().unwrap(), 6).write(&state);
    Scene {
        home: old,
        place,
        state,
    }
}

impl Scene {
    fn text(&self, path: &std::path::Path) -> String {
        path.to_str().unwrap().to_owned()
    }

    fn relink(&self, home: &str, old: &str, new: &str) -> support::Ran {
        self.place
            .run(["--home", home, "relink", old, new, "--state", "S"])
    }
}

/// The content of a tree, without what a home keeps of its own.
fn look(home: &std::path::Path) -> BTreeMap<Vec<u8>, Entry> {
    visible(home)
}

#[test]
fn there_and_back_again_is_the_same_tree_times_included() {
    there_and_back(12, 20);
}

/// `cargo test --release --test relink -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn there_and_back_again_on_twenty_thousand_files() {
    there_and_back(400, 38);
}

fn there_and_back(sessions: usize, turns: usize) {
    let scene = scene(sessions, turns);
    let (old, new) = (
        scene.text(&scene.home),
        scene.text(&scene.place.path("新 (家)+[2]")),
    );
    let (before, rows_before) = (look(&scene.home), rows(&scene.state));
    let state_before = everything(&scene.state);
    eprintln!("{} files", before.len());
    fs::rename(&scene.home, &new).unwrap();
    let begun = std::time::Instant::now();
    scene.relink(&new, &old, &new).expect(0);
    eprintln!("there in {:.1?}", begun.elapsed());
    let there = look(std::path::Path::new(&new));
    assert_ne!(there, before);
    // Nothing speaks of the old place but what must not be touched.
    let check = scene.place.json(["--home", &new, "check"]);
    for kind in ["stale-path", "wrong-cwd", "dangling-link"] {
        assert!(
            check["counts"].get(kind).is_none(),
            "{kind}: {}",
            check["counts"]
        );
    }
    assert!(
        rows(&scene.state)["sessions"]
            .iter()
            .any(|row| row.contains(&cwd(&new, 0)))
    );
    assert!(
        scene
            .state
            .join("projects")
            .join(slug(&cwd(&new, 0)))
            .is_dir()
    );

    fs::rename(&new, &scene.home).unwrap();
    scene.relink(&old, &new, &old).expect(0);
    assert_same(&look(&scene.home), &before, "there and back again");
    assert_eq!(rows(&scene.state), rows_before);
    let without = |mut all: BTreeMap<String, (Vec<u8>, u32, i64, i64)>| {
        all.retain(|path, _| !path.starts_with("workbuddy.db"));
        all
    };
    assert_eq!(without(everything(&scene.state)), without(state_before));
    // A second time there is nothing to do.
    let again = scene.relink(&old, &new, &old);
    assert!(again.expect(0).stdout.contains("0 references"), "{again:?}");
}

#[test]
fn undo_gives_home_and_state_folder_back_to_the_byte() {
    let scene = scene(6, 8);
    let (old, new) = (
        scene.text(&scene.home),
        scene.text(&scene.place.path("新 (家)+[2]")),
    );
    fs::rename(&scene.home, &new).unwrap();
    let home = PathBuf::from(&new);
    let (before, state) = (look(&home), everything(&scene.state));
    let plan = scene
        .place
        .json(["--home", &new, "relink", &old, &new, "--state", "S", "-n"]);
    assert_eq!(look(&home), before);
    let done = scene
        .place
        .json(["--home", &new, "relink", &old, &new, "--state", "S"]);
    assert_eq!(plan["references"]["changed"], done["references"]["changed"]);
    assert_eq!(plan["rewritten"], done["rewritten"]);
    // After an edit it is refused, and nothing is taken back.
    let edited = home.join("sessions");
    let edited = walkdir::WalkDir::new(edited)
        .into_iter()
        .map(|e| e.unwrap().into_path())
        .find(|p| p.ends_with("checkpoint.md"))
        .unwrap();
    let (text, time) = (
        fs::read(&edited).unwrap(),
        fs::metadata(&edited).unwrap().modified().unwrap(),
    );
    fs::write(&edited, "今天").unwrap();
    let undo = ["--home", &new, "relink", "undo"];
    scene
        .place
        .run(undo)
        .expect(1)
        .says(&["checkpoint.md was changed", "--force"]);
    // The edit is undone as an editor would, in place.
    fs::write(&edited, text).unwrap();
    fs::File::open(&edited)
        .unwrap()
        .set_times(fs::FileTimes::new().set_modified(time))
        .unwrap();
    scene.place.run(undo).expect(0);
    assert_same(&look(&home), &before, "after undo");
    assert_eq!(everything(&scene.state), state);
    scene
        .place
        .run(undo)
        .expect(1)
        .says(&["no relink to take back"]);
}

#[test]
fn only_the_sessions_that_are_named() {
    let place = Place::new();
    small_home(&place, "C", "/old/数据");
    place.ok(["migrate", "C", "H", "-q"]);
    let put = |id: &str| {
        place.put(
            format!("H/sessions/{id}/session.json"),
            format!("{{\"id\": \"{id}\"}}\n"),
        );
        place.put(
            format!("H/sessions/{id}/notes.md"),
            "see /old/数据/a.csv, not /old/数据2\n",
        )
    };
    let (one, other) = (put("20240602_two"), put("20240603_three"));
    let ran = place.run(["--home", "H", "relink", "/old/数据", "/new/资料", "two"]);
    ran.expect(1)
        .says(&["there is nothing at the new place", "--force"]);
    let ran = place.run([
        "--home",
        "H",
        "relink",
        "/old/数据",
        "/new/资料",
        "two",
        "--force",
    ]);
    ran.expect(0);
    assert_eq!(
        fs::read_to_string(one).unwrap(),
        "see /new/资料/a.csv, not /old/数据2\n"
    );
    assert_eq!(
        fs::read_to_string(other).unwrap(),
        "see /old/数据/a.csv, not /old/数据2\n"
    );
}

#[test]
fn a_new_place_below_the_old_one_is_written_once() {
    let place = Place::new();
    small_home(&place, "C", "/a/b");
    place.ok(["migrate", "C", "H", "-q"]);
    let note = place.put("H/sessions/20240601_one/notes.md", "/a/b/x and /a/b/c/x\n");
    let args = ["--home", "H", "relink", "/a/b", "/a/b/c", "--force"];
    place.run(args).expect(0);
    assert_eq!(
        fs::read_to_string(&note).unwrap(),
        "/a/b/c/x and /a/b/c/x\n"
    );
    place.run(args).expect(0);
    assert_eq!(
        fs::read_to_string(&note).unwrap(),
        "/a/b/c/x and /a/b/c/x\n"
    );
}

#[test]
fn refused_while_somebody_works_in_the_home() {
    let scene = scene(2, 4);
    let old = scene.text(&scene.home);
    let log = scene
        .home
        .join("sessions")
        .join("20240601_open/logs/run.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let script = format!("exec 3>>'{}'; sleep 60", log.display());
    if !has_tool("bash") {
        return;
    }
    let mut child = std::process::Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while !log.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let before = look(&scene.home);
    let args = ["--home", &old, "relink", "/x/y", &old];
    scene
        .place
        .run(args)
        .expect(1)
        .says(&["open for writing", "run.log"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(look(&scene.home), before);
}

#[test]
fn bad_folders_are_told() {
    let place = Place::new();
    small_home(&place, "C", "/a/b");
    place.ok(["migrate", "C", "H", "-q"]);
    place
        .run(["--home", "H", "relink", "/a/b", "/a/b"])
        .expect(2)
        .says(&["the same folder"]);
    place
        .run(["--home", "H", "relink", "/", "/a/b", "--force"])
        .expect(2);
    place.run(["--home", "H", "relink", "/a/b"]).expect(2);
    place
        .run(["--home", "H", "relink", "/a/b", "/c", "nobody", "--force"])
        .expect(1);
}

mod mv {
    use super::*;

    #[test]
    fn everything_follows_the_new_name_and_the_old_name_brings_it_back() {
        let scene = scene(8, 6);
        let home = scene.text(&scene.home);
        let ls = scene.place.json(["--home", &home, "ls"]);
        let id = ls["sessions"][0]["id"].as_str().unwrap().to_owned();
        let labels = [
            "--tag",
            "留",
            "--project",
            "项目",
            "--sync-tag",
            "laptop",
            "--title",
            "一",
        ];
        scene
            .place
            .ok(["--home", &home, "label", &id].iter().chain(&labels));
        scene
            .place
            .put(format!("家/wb (旧)+[1]/archive/{id}.tar.zst"), "a pack");
        // A conversation of the application in this very session.
        let state = scene.place.path("S2");
        State::new(&home, 1).write(&state);
        let session = |id: &str| format!("{home}/sessions/{id}");
        let rewrite = |path: PathBuf| {
            let text = fs::read_to_string(&path)
                .unwrap()
                .replace(&cwd(&home, 0), &session(&id));
            fs::write(path, text).unwrap();
        };
        let folder = state.join("projects").join(slug(&cwd(&home, 0)));
        for name in fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file())
        {
            rewrite(name);
        }
        fs::rename(&folder, state.join("projects").join(slug(&session(&id)))).unwrap();
        let before = (look(&scene.home), everything(&state.join("projects")));

        let to = format!("{}_改名", &id[..8]);
        let ran = scene
            .place
            .run(["--home", &home, "mv", &id, "改名", "--state", "S2"]);
        ran.expect(0);
        assert!(!scene.home.join("sessions").join(&id).exists());
        let entry = scene.place.json(["--home", &home, "ls", &to]);
        let entry = &entry["sessions"][0];
        assert_eq!(entry["id"], to);
        assert_eq!(entry["project"], "项目");
        assert_eq!(entry["sync_tag"], "laptop");
        assert_eq!(entry["title"], "一");
        let view = fs::read_link(scene.home.join("projects/项目").join(&to)).unwrap();
        assert_eq!(view, PathBuf::from(format!("../../sessions/{to}")));
        assert!(!scene.home.join("projects/项目").join(&id).is_symlink());
        assert_eq!(
            fs::read(scene.home.join(format!("archive/{to}.tar.zst"))).unwrap(),
            b"a pack"
        );
        assert!(state.join("projects").join(slug(&session(&to))).is_dir());
        let record =
            fs::read_to_string(scene.home.join("sessions").join(&to).join("session.json")).unwrap();
        assert!(record.contains(&session(&to)), "{record}");
        let check = scene.place.json(["--home", &home, "check", &to]);
        assert!(check["counts"].get("wrong-cwd").is_none(), "{check}");
        assert!(check["counts"].get("dangling-link").is_none(), "{check}");
        // The index has nothing to put right.
        let index = scene.place.json(["--home", &home, "index", "-n"]);
        assert_eq!(index["unchanged"], index["entries"], "{index}");

        scene
            .place
            .run(["--home", &home, "mv", &to, &id, "--state", "S2"])
            .expect(0);
        let (mut now, mut then) = (look(&scene.home), before.0);
        for tree in [&mut now, &mut then] {
            // Views are made anew, and the index is written anew.
            tree.retain(|path, _| {
                !path.starts_with(b"projects") && path != b"index.json" && !path.is_empty()
            });
        }
        assert_same(&now, &then, "renamed back");
        assert_eq!(everything(&state.join("projects")), before.1);
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let place = Place::new();
        small_home(&place, "C", "/a/b");
        place.ok(["migrate", "C", "H", "-q"]);
        place.put("H/sessions/20240601_TWO/session.json", "{}");
        place.put("H/archive/20240601_three.tar.zst", "x");
        let before = look(&place.path("H"));
        for (to, why) in [
            ("20240601_two", "taken"),
            ("20240601_three", "taken"),
            ("20240601_one", "its name already"),
            ("20240601_a/b", "20240601_a/b"),
            ("", "empty"),
        ] {
            let ran = place.run(["--home", "H", "mv", "one", to]);
            assert!(ran.code == Some(1) || ran.code == Some(2), "{to}: {ran:?}");
            ran.says(&[why]);
        }
        assert_eq!(look(&place.path("H")), before);
        place.run(["--home", "H", "mv", "nobody", "x"]).expect(1);
    }

    #[cfg(feature = "failpoints")]
    #[test]
    fn killed_at_every_step_the_next_command_completes_it_or_nothing_happened() {
        let place = Place::new();
        // The files speak of the place that it will have.
        small_home(&place, "C", place.path("H").to_str().unwrap());
        place.ok(["migrate", "C", "H", "-q"]);
        place.ok([
            "--home",
            "H",
            "label",
            "one",
            "--project",
            "p",
            "--tag",
            "kept",
        ]);
        let mut points: Vec<String> = [
            "swap.begun",
            "swap.staged",
            "swap.committed",
            "swap.done",
            "journal.entry_renamed",
            "journal.viewed",
            "journal.done",
        ]
        .map(String::from)
        .into();
        points.extend((1..40).map(|n| format!("swap.step:{n}")));
        let (mut from, mut to) = ("20240601_one".to_owned(), "20240601_二".to_owned());
        let mut kills = 0;
        for point in points {
            let killed = place
                .command()
                .args(["--home", "H", "mv", &from, &to])
                .env("WBHOME_FAILPOINT", &point)
                .output()
                .unwrap();
            if killed.status.code().is_some() {
                std::mem::swap(&mut from, &mut to);
                continue;
            }
            kills += 1;
            place.ok(["--home", "H", "index", "-q"]);
            if place.path("H/sessions").join(&to).exists() {
                std::mem::swap(&mut from, &mut to);
            }
            let text = place.text(format!("H/sessions/{from}/session.json"));
            assert!(
                text.contains(&format!("sessions/{from}")),
                "{point}: {text}"
            );
            let entry = place.json(["--home", "H", "ls"]);
            assert_eq!(
                entry["sessions"].as_array().unwrap().len(),
                1,
                "{point}: {entry}"
            );
            let entry = &entry["sessions"][0];
            assert_eq!(entry["id"], from, "{point}");
            assert_eq!(entry["tags"][0], "kept", "{point}");
            let view = place.path("H/projects/p").join(&from);
            assert!(view.join("session.json").is_file(), "{point}");
        }
        assert!(kills > 10, "{kills}");
    }
}
