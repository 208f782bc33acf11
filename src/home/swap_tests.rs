//! A swap changes everything or nothing, keeps what it replaces, and can be taken back.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;

use super::*;
use crate::base::Context;
use crate::disk::{Buffers, Dir, Identity, Stamp};
use crate::home::LockedHome;
use crate::home::testing::{self, Place};

const RECORD: &str = ".wbhome/migrations/1/state";

/// An application's folder beside a home.
struct Scene {
    place: Place,
    state: PathBuf,
}

fn scene() -> Scene {
    let place = testing::home();
    let state = place.home.root().parent().unwrap().join("state");
    let scene = Scene { place, state };
    for (path, content) in [
        ("settings.json", "旧"),
        ("projects/a-甲/1.jsonl", "old line\n"),
        ("projects/a-甲/1/x.txt", "stays"),
        ("projects/b/2.jsonl", "old"),
        ("projects/c/3.jsonl", "other"),
        ("db", "old database"),
        ("db-wal", "old log"),
    ] {
        let path = scene.state.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::os::unix::fs::symlink("/old/x", scene.state.join("link")).unwrap();
    for (n, entry) in walkdir::WalkDir::new(&scene.state)
        .contents_first(true)
        .into_iter()
        .enumerate()
    {
        let entry = entry.unwrap();
        let dir = Dir::open(entry.path().parent().unwrap()).unwrap();
        let seconds = 1_700_000_000 + n as i64;
        let time = Stamp { seconds, nanos: 5 };
        dir.set_time_of(entry.file_name(), time).unwrap();
    }
    scene
}

type Picture = BTreeMap<String, (String, i64, i64, u32)>;

impl Scene {
    /// Every entry with its content, time and mode.
    fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        for entry in walkdir::WalkDir::new(&self.state) {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            let content = if meta.is_file() {
                std::fs::read_to_string(entry.path()).unwrap()
            } else if meta.is_symlink() {
                format!("-> {}", std::fs::read_link(entry.path()).unwrap().display())
            } else {
                String::new()
            };
            let path = entry.path().strip_prefix(&self.state).unwrap();
            picture.insert(
                path.to_str().unwrap().to_owned(),
                (content, meta.mtime(), meta.mtime_nsec(), meta.mode()),
            );
        }
        picture
    }

    fn draft<'d>(&self, home: &'d LockedHome, ctx: &'d Context<'d>) -> Draft<'d> {
        let root = Root {
            path: disk::real_path(&self.state).unwrap(),
            application: true,
        };
        let rel = RelPath::new(RECORD).unwrap();
        let draft = Draft::begin(home, &rel, "migrate", vec![root], vec![], ctx).unwrap();
        put(&draft, "settings.json", "新");
        put(&draft, "projects/a-甲/1.jsonl", "new line\n");
        let built = put(&draft, "db", "new database");
        for companion in ["db-wal", "db-journal", "db-shm"] {
            let meta = draft.dir(0).find(OsStr::new(companion)).unwrap();
            draft
                .take(0, Path::new(companion), meta.as_ref(), &built)
                .unwrap();
        }
        put(&draft, "projects/c/3.jsonl", "other, new");
        let link = draft.dir(0).stat(OsStr::new("link")).unwrap();
        draft
            .put_link(0, Path::new("link"), b"/new/x", &link)
            .unwrap();
        // A folder moves to where another was, which moves away; one merges into a third.
        let ino = |path: &str| self.state.join(path).metadata().unwrap().ino();
        draft.shift(
            0,
            Path::new("projects/b"),
            Path::new("projects/b-2"),
            ino("projects/b"),
        );
        let a = "projects/a-甲";
        draft.shift(0, Path::new(a), Path::new("projects/b"), ino(a));
        let c = draft
            .dir(0)
            .open_beneath(Path::new("projects/c"))
            .unwrap()
            .meta()
            .unwrap();
        draft.make(0, Path::new("projects/d"), &c);
        let from = Path::new("projects/c/3.jsonl");
        draft.shift(
            0,
            from,
            Path::new("projects/d/3.jsonl"),
            ino("projects/c/3.jsonl"),
        );
        draft.drop_empty(0, Path::new("projects/c"), &c);
        draft
    }

    fn after(&self, before: &Picture) -> Picture {
        let mut after = before.clone();
        let mut set = |path: &str, content: &str| {
            after.get_mut(path).unwrap().0 = content.to_owned();
        };
        set("settings.json", "新");
        set("projects/a-甲/1.jsonl", "new line\n");
        set("db", "new database");
        set("projects/c/3.jsonl", "other, new");
        set("link", "-> /new/x");
        after.remove("db-wal");
        for (from, to) in [("b", "b-2"), ("a-甲", "b"), ("c", "d")] {
            let from = format!("projects/{from}");
            let moved: Vec<String> = after
                .keys()
                .filter(|k| **k == from || k.starts_with(&format!("{from}/")))
                .cloned()
                .collect();
            for key in moved {
                let value = after.remove(&key).unwrap();
                after.insert(key.replacen(&from, &format!("projects/{to}"), 1), value);
            }
        }
        after
    }
}

fn put(draft: &Draft, path: &str, content: &str) -> String {
    let (parent, name) = split(Path::new(path));
    let dir = draft.dir(0).open_beneath(parent).unwrap();
    let old = dir.stat(name).unwrap();
    let scratch = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(scratch.path(), content).unwrap();
    let source = std::fs::File::open(scratch.path()).unwrap();
    let mut seen = old;
    seen.size = content.len() as u64;
    let stop = crate::base::Stop::new();
    let buffers = &mut Buffers::new();
    let (new, copied) = disk::copy_file(
        &source,
        &seen,
        draft.staging(0),
        &mut Identity,
        buffers,
        &stop,
    )
    .unwrap();
    new.dress(None, old.mode, old.mtime).unwrap();
    draft
        .put(0, Path::new(path), new, &copied.digest, &old)
        .unwrap()
}

#[test]
fn everything_is_replaced_with_its_times_and_comes_back() {
    let scene = scene();
    let before = scene.picture();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    let done = scene.draft(&home, &ctx).commit().unwrap();
    assert_eq!(done, Done::default());
    assert_eq!(scene.picture(), scene.after(&before));
    let rel = RelPath::new(RECORD).unwrap();
    let swap = Swap::read(&home, &rel).unwrap().unwrap();
    assert!(swap.is_done && !swap.is_undone);
    assert_eq!(changed_since(&swap, &ctx).unwrap(), []);
    let former = scene
        .place
        .get(&format!("{RECORD}/former/0/projects/a-甲/1.jsonl"));
    assert_eq!(former.unwrap(), "old line\n");

    let taken = undo(&home, &rel, "migrate undo", false, &ctx).unwrap();
    assert_eq!((taken.restored, taken.moved), (6, 3));
    assert_eq!(scene.picture(), before);
    let again = undo(&home, &rel, "migrate undo", true, &ctx).unwrap_err();
    assert!(
        again.to_string().contains("nothing to be taken back"),
        "{again}"
    );
}

#[test]
fn given_up_nothing_has_changed() {
    let scene = scene();
    let before = scene.picture();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    drop(scene.draft(&home, &ctx));
    assert_eq!(scene.picture(), before);
    assert!(!disk::exists(&home.root().join(RECORD)));
    assert_eq!(disk::read_dir_names(&home.journal()).unwrap(), []);
}

#[test]
fn what_changed_while_it_was_prepared_is_not_replaced() {
    let scene = scene();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    let draft = scene.draft(&home, &ctx);
    std::fs::write(scene.state.join("settings.json"), "edited").unwrap();
    let before = scene.picture();
    let error = draft.commit().unwrap_err().to_string();
    assert!(error.contains("settings.json"), "{error}");
    let mut now = scene.picture();
    // The staging folder came and went; the time of the root was put back.
    let root = before[""].clone();
    now.insert(String::new(), root);
    let mut expected = before;
    expected.retain(|path, _| !path.starts_with(".wbhome"));
    assert_eq!(now, expected);
}

#[test]
fn what_was_changed_since_is_named_and_goes_to_the_trash_when_forced() {
    let scene = scene();
    let before = scene.picture();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    scene.draft(&home, &ctx).commit().unwrap();
    std::fs::write(scene.state.join("settings.json"), "since").unwrap();
    std::fs::write(scene.state.join("projects/b/new.jsonl"), "a new session").unwrap();
    std::fs::write(scene.state.join("db-wal"), "a new log").unwrap();
    let rel = RelPath::new(RECORD).unwrap();
    let error = undo(&home, &rel, "migrate undo", false, &ctx).unwrap_err();
    let text = error.to_string();
    for name in [
        "settings.json was changed",
        "new.jsonl is new",
        "db-wal is there again",
    ] {
        assert!(text.contains(name), "{text}");
    }
    assert!(error.hints()[0].contains("--force"));

    let taken = undo(&home, &rel, "migrate undo", true, &ctx).unwrap();
    assert_eq!(taken.replaced.len(), 3, "{taken:?}");
    let mut now = scene.picture();
    // A session that was begun since stays with its folder.
    assert_eq!(
        now.remove("projects/a-甲/new.jsonl").unwrap().0,
        "a new session"
    );
    let contents = |p: &Picture| -> Vec<(String, String)> {
        p.iter().map(|(k, v)| (k.clone(), v.0.clone())).collect()
    };
    assert_eq!(contents(&now), contents(&before));
    let kept: Vec<String> = walkdir::WalkDir::new(home.trash())
        .into_iter()
        .filter_map(|e| std::fs::read_to_string(e.unwrap().path()).ok())
        .collect();
    assert!(kept.iter().any(|text| text == "since"), "{kept:?}");
    assert!(kept.iter().any(|text| text == "a new log"), "{kept:?}");
}

#[test]
fn after_a_kill_what_somebody_has_changed_since_is_not_replaced() {
    let scene = scene();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    // As after a kill between the publishing of the steps and the first of them.
    let mut draft = scene.draft(&home, &ctx);
    let steps = draft.steps_for_a_test();
    disk::write_new(&draft.folder().join(STEPS), &steps, 0o600).unwrap();
    // The lock of the folder goes with the process.
    draft.unlock_for_a_test();
    std::mem::forget(draft);
    std::fs::write(scene.state.join("settings.json"), "edited after the kill").unwrap();
    drop(home);
    let mut expected = scene.picture();
    expected.retain(|path, _| !path.starts_with(".wbhome"));

    let home = scene.place.locked("label");
    assert_eq!(home.settled().len(), 1);
    let did = home.settled()[0].did.join("; ");
    assert!(did.contains("taken back"), "{did}");
    assert!(did.contains("settings.json"), "{did}");
    let mut now = scene.picture();
    // The root had the staging folder in it, and has its former time again.
    now.remove("");
    expected.remove("");
    assert_eq!(now, expected);
    assert!(!disk::exists(&home.root().join(RECORD)));
}

#[test]
fn a_step_that_can_not_be_done_takes_the_others_back() {
    let scene = scene();
    let before = scene.picture();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    let draft = scene.draft(&home, &ctx);
    // Nobody sees it coming: a step at the end that leads nowhere.
    let ino = scene.state.join("link").symlink_metadata().unwrap().ino();
    draft.shift(0, Path::new("link"), Path::new("settings.json/x"), ino);
    let error = draft.commit().unwrap_err();
    assert!(
        error
            .hints()
            .iter()
            .any(|hint| hint == "nothing was changed"),
        "{error:?}"
    );
    assert_eq!(scene.picture(), before);
    assert_eq!(disk::read_dir_names(&home.journal()).unwrap(), []);
}

#[test]
fn undo_compares_content_where_only_dates_have_changed() {
    let scene = scene();
    let before = scene.picture();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    scene.draft(&home, &ctx).commit().unwrap();
    // As a rename there and back, or a backup tool, leaves them: the filesystem says that something was changed.
    for name in ["link", "settings.json", "db"] {
        let path = scene.state.join(name);
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::fs::rename(&path, scene.state.join("aside")).unwrap();
        std::fs::rename(scene.state.join("aside"), &path).unwrap();
    }
    let rel = RelPath::new(RECORD).unwrap();
    undo(&home, &rel, "migrate undo", false, &ctx).unwrap();
    let mut now = scene.picture();
    now.insert(String::new(), before[""].clone());
    assert_eq!(now, before);
}

#[test]
fn undo_refuses_when_a_log_was_begun_beside_the_database_and_keeps_both_when_forced() {
    let scene = scene();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    scene.draft(&home, &ctx).commit().unwrap();
    // The application ran and was killed: the database itself is as it was.
    std::fs::write(scene.state.join("db-wal"), "rows that are nowhere else").unwrap();
    let rel = RelPath::new(RECORD).unwrap();
    let error = undo(&home, &rel, "migrate undo", false, &ctx).unwrap_err();
    assert!(
        error.to_string().contains("db-wal is there again"),
        "{error}"
    );
    let taken = undo(&home, &rel, "migrate undo", true, &ctx).unwrap();
    let trash = home.root().join(taken.trash.unwrap()).join("state-0");
    assert_eq!(
        std::fs::read(trash.join("db-wal")).unwrap(),
        b"rows that are nowhere else"
    );
    assert_eq!(std::fs::read(trash.join("db")).unwrap(), b"new database");
    assert_eq!(scene.picture()["db"].0, "old database");
    assert_eq!(scene.picture()["db-wal"].0, "old log");
}

#[test]
fn undo_refuses_when_something_stands_where_a_folder_goes_back_to() {
    let scene = scene();
    let ctx = scene.place.context();
    let home = scene.place.locked("migrate");
    scene.draft(&home, &ctx).commit().unwrap();
    let again = scene.state.join("projects/a-甲");
    std::fs::create_dir(&again).unwrap();
    std::fs::write(again.join("late.jsonl"), "a conversation").unwrap();
    let before = scene.picture();
    let rel = RelPath::new(RECORD).unwrap();
    for force in [false, true] {
        let error = undo(&home, &rel, "migrate undo", force, &ctx).unwrap_err();
        assert!(error.to_string().contains("a-甲 is there again"), "{error}");
        assert_eq!(scene.picture(), before);
    }
}

/// A record is removed in the end, with what was built beside it. So nothing else may be taken for one.
#[test]
fn what_is_no_record_is_not_removed_as_one() {
    let place = testing::home();
    let outside = place.home.root().parent().unwrap().join("外");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("秘密"), "not of the home").unwrap();
    disk::symlink(&outside, &place.home.root().join("agents/out")).unwrap();
    place.put("sessions/数据/session.json", "the only one");
    place.put(".wbhome/migrations/1/plan.json", "{}");
    place.put(".wbhome/migrations/2/state/plan.json", "no head beside it");
    let head = |staging: &str, root: &Path| {
        serde_json::json!({
            "schema": "wbhome/swap/1", "version": "0.1.0", "command": "mv", "begun": "2024-06-14T00:00:00Z",
            "staging": staging, "roots": [{"path": root, "application": true}], "times": [[0, 0]],
        })
    };
    for (n, staging) in ["../外", "x/../秘密", "", "swap-/../../外"]
        .iter()
        .enumerate()
    {
        let text = head(staging, &outside).to_string();
        place.put(&format!(".wbhome/migrations/{n}/hostile/swap.json"), &text);
    }
    let step =
        r#"{"do":"take","root":0,"at":{"path":"a"},"old":null,"aside":"../秘密","with":"n1"}"#;
    place.put(
        ".wbhome/migrations/9/hostile/swap.json",
        &head("swap-1", &outside).to_string(),
    );
    place.put(".wbhome/migrations/9/hostile/steps.jsonl", step);
    let step = r#"{"do":"dress","root":7,"at":{"path":""},"mtime":[0,0]}"#;
    place.put(
        ".wbhome/migrations/8/hostile/swap.json",
        &head("swap-1", &outside).to_string(),
    );
    place.put(".wbhome/migrations/8/hostile/steps.jsonl", step);
    for record in [
        "",
        "sessions",
        "sessions/数据",
        "agents/out",
        ".wbhome",
        ".wbhome/trash/x/y",
        ".wbhome/migrations",
        ".wbhome/migrations/1",
        ".wbhome/migrations/2/state",
        ".wbhome/migrations/0/hostile",
        ".wbhome/migrations/1/hostile",
        ".wbhome/migrations/2/hostile",
        ".wbhome/migrations/3/hostile",
        ".wbhome/migrations/9/hostile",
        ".wbhome/migrations/8/hostile",
    ] {
        for kind in ["swap", "undone"] {
            let entry = serde_json::json!({
                "command": "mv", "since": "", "steps": [{"do": kind, "record": record}],
            });
            let entry = place.put(".wbhome/journal/by hand.json", &entry.to_string());
            let lock = place
                .home
                .lock(std::time::Duration::ZERO, "ls", &place.context());
            drop(lock);
            disk::remove_file(&entry).unwrap();
            let session = place.get("sessions/数据/session.json");
            assert_eq!(session.as_deref(), Some("the only one"), "{record}");
            assert!(place.get(".wbhome/migrations/1/plan.json").is_some());
            let kept = place.get(".wbhome/migrations/2/state/plan.json");
            assert!(kept.is_some(), "{record}");
            let names: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
            assert_eq!(names.len(), 1, "{record}");
        }
    }
}
