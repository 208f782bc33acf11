//! The agent application's own folder follows a migration, wholly or not at all, and is given back by `migrate undo`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use support::moving::{SESSION, small_home};
use support::state::{State, cwd, everything, files, rows, slug};
use support::{Place, Ran, has_tool, is_root};

/// A home on a sync drive, and the folder of an application that knows it.
struct Scene {
    place: Place,
    old: String,
    new: String,
    state: PathBuf,
}

fn scene(sessions: usize) -> Scene {
    let place = Place::new();
    let old = place.path("Cloud Drive/主页");
    let old = old.to_str().unwrap().to_owned();
    small_home(&place, "Cloud Drive/主页", &old);
    let state = place.path("S");
    State::new(&old, sessions).write(&state);
    let new = place.path("家/wb").to_str().unwrap().to_owned();
    Scene {
        place,
        old,
        new,
        state,
    }
}

const MIGRATE: [&str; 5] = ["migrate", "Cloud Drive/主页", "家/wb", "--state", "S"];
const UNDO: [&str; 4] = ["--home", "家/wb", "migrate", "undo"];

impl Scene {
    /// What the folder must be after the move, by replacing alone: in no spelling of these files is OLD a part of
    /// something else, but for the ones that end in `2`, `-2`, and the longer path.
    fn follows(&self, before: &Path) {
        let (old, new) = (self.old.as_str(), self.new.as_str());
        let escape = |text: &str| text.replace('/', "\\/");
        let ascii = |text: &str| -> String {
            let escaped = |c: char| match c.is_ascii() {
                true => c.to_string(),
                false => format!("\\u{:04x}", c as u32),
            };
            text.chars().map(escaped).collect()
        };
        let moved = |text: &str| -> String {
            let mut text = text.to_owned();
            for (old, new) in [
                (old.to_owned(), new.to_owned()),
                (escape(old), escape(new)),
                (ascii(old), ascii(new)),
            ] {
                for (from, kept) in [("2", "\u{1}"), ("-2", "\u{2}")] {
                    text = text.replace(&format!("{old}{from}"), kept);
                }
                text = text.replace(&format!("Backup{old}"), "\u{3}");
                text = text.replace(&old, &new);
                text = text
                    .replace('\u{1}', &format!("{old}2"))
                    .replace('\u{2}', &format!("{old}-2"))
                    .replace('\u{3}', &format!("Backup{old}"));
            }
            text
        };
        let mut expected = files(before);
        let stays = ["logs", "traces", "edge-sync", "local_storage"];
        for (path, (content, ..)) in &mut expected {
            if !stays.iter().any(|s| path.starts_with(s)) && path != "edge-sync-mapping-v2.db" {
                // Lossless: NUL runs are text, too.
                *content = moved(std::str::from_utf8(content).unwrap()).into_bytes();
            }
        }
        let expected = expected
            .into_iter()
            .map(|(path, looks)| (self.renamed(&path), looks))
            .collect();
        let now = files(&self.state);
        let paths =
            |all: &std::collections::BTreeMap<String, _>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(paths(&now), paths(&expected));
        for (path, looks) in &now {
            let wanted: &(Vec<u8>, u32, i64, i64) = &expected[path];
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            assert_eq!(text(&looks.0), text(&wanted.0), "{path}");
            assert_eq!(
                (looks.1, looks.2, looks.3),
                (wanted.1, wanted.2, wanted.3),
                "{path}"
            );
        }
        let mut tables = rows(before);
        for (name, rows) in &mut tables {
            for row in rows.iter_mut() {
                *row = match name.as_str() {
                    "bookmarks" | "migration_meta" | "session_usage" => row.clone(),
                    // A prompt is somebody's words.
                    "automations" => {
                        let (words, list) = row.split_once(" | [").unwrap();
                        format!("{words} | {}", moved(&format!("[{list}")))
                    }
                    _ => moved(row),
                };
            }
            rows.sort();
        }
        let mut now = rows(&self.state);
        now.values_mut().for_each(|rows| rows.sort());
        assert_eq!(now, tables);
    }

    fn renamed(&self, path: &str) -> String {
        let Some(rest) = path.strip_prefix("projects/") else {
            return path.to_owned();
        };
        let rest = rest.strip_prefix(&slug(&self.old)).unwrap();
        format!("projects/{}{rest}", slug(&self.new))
    }

    fn keep(&self, name: &str) -> PathBuf {
        let kept = self.place.path(name);
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(&self.state)
            .arg(&kept)
            .status();
        assert!(copied.unwrap().success());
        kept
    }
}

#[test]
fn every_row_line_folder_and_link_follows_and_undo_gives_all_of_it_back() {
    let scene = scene(40);
    let before = scene.keep("before");
    let exact = everything(&scene.state);
    let ran = scene.place.run(MIGRATE);
    ran.expect(0);
    assert!(
        ran.stdout.contains("The agent's own folder has followed"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("bookmarks.place mentions it in 1 row"),
        "{}",
        ran.stdout
    );
    scene.follows(&before);
    // The deleted rows are still deleted, and no trigger ran.
    let sessions = &rows(&scene.state)["sessions"];
    assert_eq!(
        sessions
            .iter()
            .filter(|row| row.contains("Integer(99)"))
            .count(),
        5
    );
    assert!(!sessions.iter().any(|row| row.contains("Integer(0)")));

    let status = scene.place.json(["--home", "家/wb", "migrate", "status"]);
    let followed = &status["state"][0];
    assert_eq!(followed["database"]["rows"]["sessions.cwd"], 40);
    assert_eq!(followed["undone"], false);
    assert_eq!(followed["binary"][0]["path"], "local_storage/000003.ldb");

    let undone = scene.place.json(UNDO);
    assert_eq!(undone["undone"][0]["replaced"], serde_json::json!([]));
    assert_eq!(everything(&scene.state), exact);
    let status = scene.place.json(["--home", "家/wb", "migrate", "status"]);
    assert_eq!(status["state"][0]["undone"], true);
    scene
        .place
        .run(UNDO)
        .expect(1)
        .says(&["nothing to take back"]);
    // And the same command lets it follow again.
    scene.place.run(MIGRATE).expect(0);
    scene.follows(&before);
}

#[test]
fn undo_refuses_after_a_change_and_puts_it_into_the_trash_when_forced() {
    let scene = scene(6);
    let exact = everything(&scene.state);
    scene.place.run(MIGRATE).expect(0);
    fs::write(
        scene.state.join("settings.json"),
        "{\"theme\": \"light\"}\n",
    )
    .unwrap();
    let folder = scene.state.join("projects").join(slug(&cwd(&scene.new, 0)));
    fs::write(folder.join("new.jsonl"), "{}\n").unwrap();
    let now = everything(&scene.state);
    let ran = scene.place.run(UNDO);
    ran.expect(1)
        .says(&["settings.json was changed", "new.jsonl is new", "--force"]);
    assert_eq!(everything(&scene.state), now);
    let plan = scene.place.json(UNDO.iter().chain(&["-n"]));
    assert_eq!(plan["would"][0]["changed"].as_array().unwrap().len(), 2);
    // Without doing it, it says the same.
    let ran = scene.place.run(UNDO.iter().chain(&["-n"]));
    ran.expect(1);
    for part in ["would not be given back", "--force"] {
        assert!(ran.stdout.contains(part), "{ran:?}");
    }
    let ran = scene.place.run(UNDO.iter().chain(&["-n", "--force"]));
    ran.expect(0);
    assert!(ran.stdout.contains("would be given back"), "{ran:?}");

    scene.place.run(UNDO.iter().chain(&["--force"])).expect(0);
    let mut after = everything(&scene.state);
    // A conversation that was begun since goes with its folder.
    let back = format!("projects/{}", slug(&cwd(&scene.old, 0)));
    assert_eq!(
        after.remove(&format!("{back}/new.jsonl")).unwrap().0,
        b"{}\n"
    );
    let mut wanted = exact;
    // Whose time has changed with it.
    for all in [&mut after, &mut wanted] {
        all.remove(&back);
    }
    assert_eq!(after, wanted);
    let kept = walkdir::WalkDir::new(scene.place.path("家/wb/.wbhome/trash"))
        .into_iter()
        .filter(|entry| {
            fs::read(entry.as_ref().unwrap().path()).is_ok_and(|c| c == b"{\"theme\": \"light\"}\n")
        });
    assert_eq!(kept.count(), 1);
}

#[test]
fn the_usual_folder_is_found_and_no_state_leaves_it_alone() {
    let scene = scene(3);
    let usual = scene.place.user_home().join(".workbuddy");
    fs::rename(&scene.state, &usual).unwrap();
    // One that speaks of something else is none of its business.
    State::new("/somewhere/else", 2).write(&scene.place.user_home().join(".workbuddy-ai"));
    let exact = everything(&usual);
    let migrate = ["migrate", "Cloud Drive/主页", "家/wb"];
    scene
        .place
        .run(migrate.iter().chain(&["--no-state"]))
        .expect(0);
    assert_eq!(everything(&usual), exact);
    let plan = scene.place.run(migrate.iter().chain(&["-n"]));
    assert!(
        plan.expect(0)
            .stdout
            .contains("The agent's own folder would follow"),
        "{plan:?}"
    );
    assert_eq!(everything(&usual), exact);
    // The migration was finished; the folder follows when it is asked for.
    let ran = scene.place.run(migrate);
    ran.expect(0);
    assert!(ran.stdout.contains(".workbuddy\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(".workbuddy-ai"), "{}", ran.stdout);
    assert_ne!(everything(&usual), exact);
    assert!(
        usual
            .join("projects")
            .join(slug(&cwd(&scene.new, 1)))
            .is_dir()
    );
}

#[test]
fn refused_while_the_application_runs_and_nothing_is_copied() {
    let scene = scene(3);
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let now = jiff::Timestamp::now().as_millisecond();
    for kind in ["interactive", "prewarm"] {
        let registry = format!(
            "{{\"pid\": {}, \"kind\": \"{kind}\", \"cwd\": \"/elsewhere\", \"startedAt\": {now}, \"lastHeartbeat\": 1}}",
            child.id()
        );
        fs::write(scene.state.join("sessions/1.json"), registry).unwrap();
        let exact = everything(&scene.state);
        let ran = scene.place.run(MIGRATE);
        ran.expect(1).says(&[&child.id().to_string(), "--no-state"]);
        assert!(!scene.place.path("家/wb").exists());
        assert_eq!(everything(&scene.state), exact);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    scene.place.run(MIGRATE).expect(0);
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let registry = format!(
        "{{\"pid\": {}, \"kind\": \"prewarm\", \"startedAt\": {now}}}",
        child.id()
    );
    fs::write(scene.state.join("sessions/1.json"), registry).unwrap();
    scene
        .place
        .run(UNDO)
        .expect(1)
        .says(&[&child.id().to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn refused_while_somebody_has_the_database_open() {
    if !has_tool("python3") {
        return;
    }
    let scene = scene(3);
    let script = "import sqlite3, sys, time\nc = sqlite3.connect(sys.argv[1])\nc.execute('select count(*) from sessions').fetchone()\nprint('open', flush=True)\ntime.sleep(60)\n";
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(scene.state.join("workbuddy.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let ran = scene.place.run(MIGRATE);
    ran.expect(1)
        .says(&["workbuddy.db", &child.id().to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_workspace_that_both_places_have_keeps_the_newer_row() {
    let scene = scene(2);
    let insert = |path: &str, opened: i64| {
        let db = rusqlite::Connection::open(scene.state.join("workbuddy.db")).unwrap();
        db.execute(
            "insert or replace into workspaces values(?1, ?2)",
            rusqlite::params![path, opened],
        )
        .unwrap();
    };
    insert(&scene.new, 500);
    insert(&cwd(&scene.new, 0), 50);
    let ran = scene.place.json(MIGRATE);
    let merged = ran["state"][0]["database"]["merged"].as_array().unwrap();
    assert_eq!(merged.len(), 2, "{merged:?}");
    let workspaces = &rows(&scene.state)["workspaces"];
    assert!(
        workspaces.contains(&format!("{} | Integer(500)", scene.new)),
        "{workspaces:?}"
    );
    assert!(
        workspaces.contains(&format!("{} | Integer(100)", cwd(&scene.new, 0))),
        "{workspaces:?}"
    );
    assert_eq!(workspaces.len(), 4);
}

#[test]
fn a_project_folder_that_is_there_already_is_merged_or_refused() {
    let scene = scene(2);
    let there = scene.state.join("projects").join(slug(&cwd(&scene.new, 0)));
    fs::create_dir_all(&there).unwrap();
    fs::write(
        there.join("own.jsonl"),
        format!("{{\"cwd\":\"{}\"}}\n", cwd(&scene.new, 0)),
    )
    .unwrap();
    let exact = everything(&scene.state);
    scene.place.run(MIGRATE).expect(0);
    let names = |folder: &Path| -> Vec<String> {
        let all = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = all
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&there).len(), 4, "{:?}", names(&there));
    assert!(
        !scene
            .state
            .join("projects")
            .join(slug(&cwd(&scene.old, 0)))
            .exists()
    );
    scene.place.run(UNDO).expect(0);
    assert_eq!(everything(&scene.state), exact);

    let clash = names(&scene.state.join("projects").join(slug(&cwd(&scene.old, 0))));
    fs::write(there.join(&clash[0]), "another one").unwrap();
    let exact = everything(&scene.state);
    let ran = scene.place.run(MIGRATE);
    ran.expect(1).says(&[&clash[0]]);
    assert_eq!(everything(&scene.state), exact);
}

/// Kills a run at the n-th step of a swap, and says whether it got there.
#[cfg(feature = "failpoints")]
fn killed_at(scene: &Scene, args: &[&str], point: &str) -> bool {
    let status = scene
        .place
        .command()
        .args(args)
        .env("WBHOME_FAILPOINT", point)
        .output()
        .unwrap();
    status.status.code().is_none()
}

#[cfg(feature = "failpoints")]
#[test]
fn killed_at_every_step_it_is_wholly_old_or_wholly_new_after_the_next_command() {
    let scene = scene(12);
    let before = scene.keep("before");
    let exact = everything(&scene.state);
    let mut points: Vec<String> = ["swap.begun", "swap.staged", "swap.committed", "swap.done"]
        .map(String::from)
        .into();
    points.extend((1..200).map(|n| format!("swap.step:{n}")));
    let (mut old, mut new) = (0, 0);
    for point in &points {
        if !killed_at(&scene, &MIGRATE, point) {
            break;
        }
        // Any command that writes settles it; while the migration is not finished, it is the migration itself.
        scene.place.run(MIGRATE).expect(0);
        scene.follows(&before);
        new += 1;
        // The way back.
        if !killed_at(&scene, &UNDO, point) {
            panic!("undo has fewer steps than the move: {point}");
        }
        scene
            .place
            .run(["--home", "家/wb", "label", "@1", "--tag", "x"]);
        if everything(&scene.state) == exact {
            old += 1;
        } else {
            scene.follows(&before);
            scene.place.run(UNDO).expect(0);
            assert_eq!(everything(&scene.state), exact, "{point}");
        }
    }
    eprintln!("{new} kills of the move, {old} of undo that were completed");
    assert!(new >= 50 && old >= 50, "{new} {old}");
}

/// What the application does between a kill and the next command: it adds a row, and is killed itself, so that the
/// row is in the log alone; and it goes on with a conversation.
#[cfg(feature = "failpoints")]
fn application_runs(scene: &Scene) {
    let script = "import sqlite3, os, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('pragma wal_autocheckpoint=0')\nc.execute(\"insert into bookmarks values('here', 'precious')\")\nos._exit(0)\n";
    let done = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(scene.state.join("workbuddy.db"))
        .status()
        .unwrap();
    assert!(done.success());
    let settings = scene.state.join("settings.json");
    fs::write(settings, "{\"theme\": \"precious\"}\n").unwrap();
}

/// It adds a row and ends as it should: the log is gone, and the database itself has changed.
#[cfg(feature = "failpoints")]
fn application_runs_and_ends(scene: &Scene) {
    let db = rusqlite::Connection::open(scene.state.join("workbuddy.db")).unwrap();
    db.execute("insert into bookmarks values('here', 'precious')", [])
        .unwrap();
    db.close().unwrap();
}

/// Whether something that the application has written is in the folder, or in the home's records with what belongs to it.
#[cfg(feature = "failpoints")]
fn is_somewhere(scene: &Scene) -> (bool, bool) {
    let databases = walkdir::WalkDir::new(scene.place.root())
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_name() == "workbuddy.db");
    let row = databases
        .map(|entry| entry.path().parent().unwrap().to_owned())
        .filter(|folder| !folder.ends_with("before"))
        .any(|folder| {
            rows(&folder)["bookmarks"]
                .iter()
                .any(|row| row.contains("precious"))
        });
    let setting = walkdir::WalkDir::new(scene.place.root())
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .any(|entry| fs::read(entry.path()).is_ok_and(|c| c == b"{\"theme\": \"precious\"}\n"));
    (row, setting)
}

#[cfg(feature = "failpoints")]
#[test]
fn what_the_application_has_written_after_a_kill_is_not_lost() {
    if !has_tool("python3") {
        return;
    }
    for n in 1..40 {
        let scene = scene(2);
        let before = scene.keep("before");
        if !killed_at(&scene, &MIGRATE, &format!("swap.step:{n}")) {
            assert!(n > 15, "{n}");
            return;
        }
        application_runs(&scene);
        assert_eq!(is_somewhere(&scene), (true, true), "{n}: the scene");
        let ran = scene.place.run(["--home", "家/wb", "migrate", "status"]);
        assert!(ran.stderr.contains("half done"), "{n}: {ran:?}");
        // The home is not complete yet, so that nothing else settles it; it is killed while it does, too.
        killed_at(&scene, &MIGRATE, "swap.back:3");
        let ran = scene.place.run(MIGRATE);
        ran.expect(0);
        assert_eq!(is_somewhere(&scene), (true, true), "{n}: {ran:?}");
        // Whatever became of it, the database is sound, and what it goes by is wholly new now.
        let sessions = &rows(&scene.state)["sessions"];
        let old: Vec<&String> = sessions
            .iter()
            .filter(|row| row.contains(&cwd(&scene.old, 0)))
            .collect();
        assert!(old.is_empty(), "{n}: {old:?}");
        assert!(
            scene
                .state
                .join("projects")
                .join(slug(&cwd(&scene.new, 0)))
                .is_dir(),
            "{n}"
        );
        assert!(
            !scene
                .state
                .join("projects")
                .join(slug(&cwd(&scene.old, 0)))
                .exists(),
            "{n}"
        );
        drop(before);
    }
    panic!("there are more steps than this test has kills");
}

#[cfg(feature = "failpoints")]
#[test]
fn killed_in_the_middle_it_waits_while_the_application_runs() {
    let scene = scene(3);
    let before = scene.keep("before");
    assert!(killed_at(&scene, &MIGRATE, "swap.step:5"));
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let now = jiff::Timestamp::now().as_millisecond();
    let registry = scene.state.join("sessions/1.json");
    fs::write(
        &registry,
        format!(
            "{{\"pid\": {}, \"kind\": \"interactive\", \"startedAt\": {now}}}",
            child.id()
        ),
    )
    .unwrap();
    let half = everything(&scene.state);
    let ran = scene.place.run(MIGRATE);
    ran.expect(1).says(&[&child.id().to_string()]);
    assert_eq!(everything(&scene.state), half);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(registry).unwrap();
    scene.place.run(MIGRATE).expect(0);
    // The registry's folder was written to by this test.
    let time = fs::metadata(before.join("sessions"))
        .unwrap()
        .modified()
        .unwrap();
    fs::File::open(scene.state.join("sessions"))
        .unwrap()
        .set_times(fs::FileTimes::new().set_modified(time))
        .unwrap();
    scene.follows(&before);
}

#[test]
fn a_full_disk_leaves_it_as_it_was() {
    if !is_root() || !has_tool("mkfs.ext4") || !has_tool("mount") {
        return;
    }
    let scene = scene(12);
    let image = scene.place.path("image");
    fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let sh = |text: &str| {
        let done = std::process::Command::new("sh")
            .args(["-c", text])
            .current_dir(scene.place.root())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{text}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    sh("mkfs.ext4 -q -m 0 image && mkdir disk");
    let mounted = std::process::Command::new("mount")
        .args(["-o", "loop", "image", "disk"])
        .current_dir(scene.place.root())
        .status()
        .unwrap();
    if !mounted.success() {
        eprintln!("SKIPPED: a file can not be mounted here");
        return;
    }
    sh("cp -a S/. disk/");
    // Nearly full: room enough for what is counted, not for the blocks that it takes.
    let state = scene.place.path("disk");
    let exact = |path: &Path| {
        let mut all = everything(path);
        all.retain(|name, _| name != "lost+found" && name != "filler" && !name.is_empty());
        all
    };
    let before = exact(&state);
    let _ = std::process::Command::new("sh")
        .args([
            "-c",
            "head -c 100M /dev/zero > disk/filler; truncate -s -49152 disk/filler; sync",
        ])
        .current_dir(scene.place.root())
        .status();
    let args = ["migrate", "Cloud Drive/主页", "家/wb", "--state", "disk"];
    let ran = scene.place.run(args);
    let after = exact(&state);
    let _ = fs::remove_file(state.join("filler"));
    let again = scene.place.run(args);
    let names: Vec<String> = everything(&state).into_keys().collect();
    sh("umount disk");
    ran.expect(1);
    assert!(
        ran.stderr.contains("disk is full") || ran.stderr.contains("not enough room"),
        "{}",
        ran.stderr
    );
    assert_eq!(after, before);
    again.expect(0);
    assert!(
        names.contains(&format!("projects/{}", slug(&cwd(&scene.new, 0)))),
        "{names:?}"
    );
}

/// `cargo test --release --all-features --test state -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes, and 2 GB"]
fn ten_thousand_sessions_and_half_a_gigabyte() {
    let place = Place::new();
    let old = place.path("Cloud Drive/主页").to_str().unwrap().to_owned();
    small_home(&place, "Cloud Drive/主页", &old);
    let state = place.path("S");
    State {
        old: old.clone(),
        sessions: 10_000,
        transcript: 50_000,
    }
    .write(&state);
    let new = place.path("家/wb").to_str().unwrap().to_owned();
    let scene = Scene {
        place,
        old,
        new,
        state,
    };
    let before = scene.keep("before");
    let begun = std::time::Instant::now();
    scene.place.run(MIGRATE).expect(0);
    eprintln!("followed in {:.1?}", begun.elapsed());
    scene.follows(&before);
    let begun = std::time::Instant::now();
    scene.place.run(UNDO).expect(0);
    eprintln!("taken back in {:.1?}", begun.elapsed());
    assert!(
        everything(&scene.state) == everything(&before),
        "undo has not given everything back"
    );
    // Kills at any moment.
    let takes = Duration::from_secs(6);
    let mut kills = 0;
    while kills < 6 {
        for args in [&MIGRATE[..], &UNDO[..]] {
            let mut child = scene
                .place
                .command()
                .args(args)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(takes.mul_f64((kills as f64 * 0.37).fract()));
            let _ = child.kill();
            child.wait().unwrap();
            kills += 1;
            Ran::of(scene.place.command().args(MIGRATE).output().unwrap()).expect(0);
            scene.follows(&before);
        }
        Ran::of(scene.place.command().args(UNDO).output().unwrap()).expect(0);
        assert!(
            everything(&scene.state) == everything(&before),
            "undo has not given everything back"
        );
    }
}

#[test]
fn the_home_of_the_session_is_what_its_row_says() {
    // The one thing that it is all for: what the application would open is there.
    let scene = scene(1);
    scene.place.run(MIGRATE).expect(0);
    let sessions = &rows(&scene.state)["sessions"];
    assert!(sessions.iter().any(|row| row.contains(&cwd(&scene.new, 0))));
    assert!(scene.place.path("家/wb").join(SESSION).is_dir());
}

#[test]
fn two_homes_share_an_application_and_only_one_changes_its_folder_at_a_time() {
    let scene = scene(2);
    let exact = everything(&scene.state);
    // As another wbhome holds it.
    let folder = fs::File::open(&scene.state).unwrap();
    folder.lock().unwrap();
    let ran = scene.place.run(MIGRATE);
    ran.expect(11)
        .says(&["another wbhome is at work", "run this again"]);
    assert_eq!(everything(&scene.state), exact);
    drop(folder);
    scene.place.run(MIGRATE).expect(0);
}

#[test]
fn a_folder_that_can_not_be_written_leaves_everything_as_it_was_and_stops_nobody() {
    if !is_root() || !has_tool("chattr") {
        return;
    }
    let scene = scene(4);
    let sealed = scene.state.join("projects").join(slug(&cwd(&scene.old, 2)));
    let seal = |flag: &str| {
        let done = std::process::Command::new("chattr")
            .arg(flag)
            .arg(&sealed)
            .status();
        done.is_ok_and(|status| status.success())
    };
    let exact = everything(&scene.state);
    if !seal("+i") {
        eprintln!("SKIPPED: this filesystem has no immutable folders");
        return;
    }
    let ran = scene.place.run(MIGRATE);
    let after = everything(&scene.state);
    let other = scene
        .place
        .run(["migrate", "Cloud Drive/主页", "家/wb", "--no-state"]);
    seal("-i");
    ran.expect(1).says(&["nothing was changed"]);
    assert_eq!(after, exact);
    other.expect(0);
    scene.place.run(MIGRATE).expect(0);
}

#[test]
fn undo_obeys_only_a_home_that_was_named() {
    let scene = scene(2);
    scene.place.run(MIGRATE).expect(0);
    let now = everything(&scene.state);
    let mut command = scene.place.command();
    let ran = command
        .current_dir(scene.place.path("家/wb/sessions"))
        .args(["migrate", "undo"])
        .output();
    Ran::of(ran.unwrap())
        .expect(1)
        .says(&["was merely found", "--home"]);
    assert_eq!(everything(&scene.state), now);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_row_that_was_written_after_a_kill_is_not_lost_by_the_move_nor_by_undo() {
    for args in [&MIGRATE[..], &UNDO[..]] {
        for n in 1..30 {
            let scene = scene(2);
            if args == UNDO {
                scene.place.run(MIGRATE).expect(0);
            }
            if !killed_at(&scene, args, &format!("swap.step:{n}")) {
                break;
            }
            application_runs_and_ends(&scene);
            let ran = scene.place.run(args);
            assert!(is_somewhere(&scene).0, "{args:?} {n}: {ran:?}");
            // Sound, whatever it holds.
            rows(&scene.state);
        }
    }
}

#[test]
fn undo_compares_what_the_database_holds_and_not_its_dates() {
    let scene = scene(2);
    let exact = everything(&scene.state);
    scene.place.run(MIGRATE).expect(0);
    let database = scene.state.join("workbuddy.db");
    fs::hard_link(&database, scene.place.path("second name")).unwrap();
    fs::remove_file(scene.place.path("second name")).unwrap();
    scene.place.run(UNDO).expect(0);
    assert_eq!(everything(&scene.state), exact);
}

#[cfg(feature = "failpoints")]
#[test]
fn what_one_home_has_begun_no_other_one_goes_on_with() {
    let scene = scene(2);
    small_home(&scene.place, "other drive", &scene.old);
    assert!(killed_at(&scene, &MIGRATE, "swap.step:6"));
    let half = everything(&scene.state);
    let map = format!(
        "{}={}",
        scene.old,
        scene.place.path("second").to_str().unwrap()
    );
    let second = [
        "migrate",
        "other drive",
        "second",
        "--state",
        "S",
        "--map",
        &map,
    ];
    scene
        .place
        .run(second)
        .expect(1)
        .says(&["another home has begun", "家/wb", "index"]);
    assert_eq!(everything(&scene.state), half);
    scene.place.run(MIGRATE).expect(0);
}
