//! The store of `wbhome backup` in trouble: not there, somebody else's, full, read-only, damaged, in use, killed.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use support::cold::{item, named, night, noise, packed, read, rest};
use support::mount::Mount;
use support::{Place, Ran, differences, tree};

const CRAWLER: &str = "20240603_crawler";
const CLEANING: &str = "20240604_数据清洗";

fn put_noise(place: &Place, seed: u64, length: usize) {
    let file = format!("sessions/{CRAWLER}/artifacts/noise.bin");
    place.put_home(&file, noise(seed, length));
}

#[test]
fn a_store_is_made_once_and_told_to_the_settings() {
    let place = Place::with_sessions();
    let settings = place.home_text("wbhome.toml");
    let before = tree(&place.root());
    let plan = place.run(["backup", "init", "disk/cold", "-n"]);
    plan.expect(0);
    assert_eq!(differences(&before, &tree(&place.root())), "");
    place.ok(["backup", "init", "disk/cold"]);
    let cold = place.path("disk/cold");
    let now = place.home_text("wbhome.toml");
    assert!(now.starts_with(&settings), "{now}");
    let dir = format!("\n[[backup.store]]\ndir = \"{}\"\n", cold.display());
    assert!(now.ends_with(&dir), "{now}");
    assert_eq!(place.mode("disk/cold") & 0o777, 0o700);
    let marker = read(&cold.join("wbhome-store.json"));
    let home: serde_json::Value =
        serde_json::from_str(&place.home_text(".wbhome/home.json")).unwrap();
    assert_eq!(
        (&marker["home"], &marker["path"]),
        (&home["id"], &place.home().to_str().unwrap().into())
    );
    // Twice is once.
    let again = place.run(["backup", "init", "disk/cold"]);
    again.expect(0);
    assert!(again.stdout.contains("already"), "{again:?}");
    assert_eq!(place.home_text("wbhome.toml"), now);
    // Also when a person has written it their way.
    let mine = "[[backup.store]]\ndir = \"~/own cold\"\n";
    place.put_home("wbhome.toml", mine);
    let own = place.user_home().join("own cold");
    let ran = place.run(["backup", "init", own.to_str().unwrap()]);
    ran.expect(1).says(&["names the store already"]);
    place.ok(["backup", "init", "--again", own.to_str().unwrap()]);
    place.ok(["backup", "init", own.to_str().unwrap()]);
    assert_eq!(place.home_text("wbhome.toml"), mine);
    std::fs::remove_dir_all(own).unwrap();
    // The settings were changed by hand: it is added again, and nothing else happens.
    place.put_home("wbhome.toml", "# mine, without an end");
    place.ok(["backup", "init", "disk/cold"]);
    assert_eq!(
        place.home_text("wbhome.toml"),
        format!("# mine, without an end\n{dir}")
    );
    place.ok(["check", "-q"]);
}

#[test]
fn what_can_be_no_store_is_refused_and_nothing_is_made() {
    let place = Place::with_sessions();
    place.put("full/file", "x");
    let without_lock = || {
        let mut all = tree(&place.root());
        all.remove(&b"me/workbuddy_home/.wbhome/lock"[..]);
        all
    };
    let before = without_lock();
    for (dir, says) in [
        ("me/workbuddy_home/cold", "in the home"),
        ("me", "the home in it"),
        ("full", "not empty"),
        ("full/file", "can not open"),
    ] {
        place.run(["backup", "init", dir]).expect(1).says(&[says]);
    }
    assert_eq!(differences(&before, &without_lock()), "");
    // Settings that can not take the lines: said before anything is made.
    place.put_home("wbhome.toml", "backup = { keep = \"7d\" }\n");
    let ran = place.run(["backup", "init", "cold"]);
    ran.expect(1).says(&["[[backup.store]]", "by hand"]);
    assert!(!place.path("cold").exists());
    assert_eq!(
        place.home_text("wbhome.toml"),
        "backup = { keep = \"7d\" }\n"
    );
    // An `init` that was killed half-way is no obstacle.
    place.put_home("wbhome.toml", "");
    std::fs::create_dir_all(place.path("cold/packs")).unwrap();
    place.put("cold/.wbhome-probe", "");
    place.ok(["backup", "init", "cold"]);
    assert!(!place.path("cold/.wbhome-probe").exists());
}

#[test]
fn a_store_in_a_synced_folder_goes_without_the_applications_own() {
    let place = Place::with_sessions();
    place.put("synced/.dropbox", "");
    let ran = place.run(["backup", "init", "synced/cold"]);
    ran.expect(0).says(&["Dropbox", "--with-state"]);
    let marker = read(&place.path("synced/cold/wbhome-store.json"));
    assert!(
        marker["without_state"]
            .as_str()
            .unwrap()
            .contains("Dropbox"),
        "{marker}"
    );
    place.ok(["backup", "init", "synced/with", "--with-state"]);
    let marker = read(&place.path("synced/with/wbhome-store.json"));
    assert!(marker.get("without_state").is_none(), "{marker}");
}

#[test]
fn nothing_is_written_where_no_store_is() {
    let place = Place::with_store();
    place.backup(1, 0);
    // Not mounted: an empty folder, or none.
    std::fs::rename(place.path("cold"), place.path("away")).unwrap();
    for there in [false, true] {
        if there {
            std::fs::create_dir(place.path("cold")).unwrap();
        }
        for args in [
            &["run"][..],
            &["prune"],
            &["verify"],
            &["ls"],
            &["accept", CRAWLER],
            &["run", "-n"],
        ] {
            let ran = place.at(2, &[&["backup"], args].concat());
            ran.expect(1)
                .says(&["there is no backup store", "mount it"]);
            assert!(
                !there
                    || std::fs::read_dir(place.path("cold"))
                        .unwrap()
                        .next()
                        .is_none()
            );
        }
    }
    std::fs::remove_dir(place.path("cold")).unwrap();
    assert!(!place.path("cold").exists());
}

#[test]
fn a_store_of_another_home_machine_or_place_wants_a_word() {
    let place = Place::with_store();
    place.backup(1, 0);
    let marker = place.text("cold/wbhome-store.json");
    let json: serde_json::Value = serde_json::from_str(&marker).unwrap();
    let changed = |key: &str, to: serde_json::Value| {
        let mut changed = json.clone();
        changed[key] = to;
        place.put("cold/wbhome-store.json", changed.to_string());
    };
    let refused = |says: &str| {
        let before = place.store();
        for verb in ["run", "prune", "verify", "ls"] {
            place
                .at(2, &["backup", verb])
                .expect(1)
                .says(&[says, "backup adopt"]);
        }
        assert_eq!(differences(&before, &place.store()), "");
    };
    changed(
        "device",
        serde_json::json!({"id": "other", "host": "迷你主机"}),
    );
    refused("another machine, 迷你主机");
    place.ok(["backup", "adopt", "cold", "-n"]);
    refused("another machine");
    place.ok(["backup", "adopt", "cold"]);
    place.backup(2, 0);
    changed("home", "f".repeat(32).into());
    refused("another home");
    place
        .run(["backup", "adopt", "cold"])
        .expect(1)
        .says(&["--force"]);
    place.ok(["backup", "adopt", "cold", "--force"]);
    place.backup(3, 0);
    // The home is moved.
    std::fs::rename(place.home(), place.path("me/moved")).unwrap();
    let moved = |args: &[&str]| place.at(4, &[args, &["--home", "me/moved"]].concat());
    moved(&["backup", "run"])
        .expect(1)
        .says(&["when that was", "backup adopt"]);
    moved(&["backup", "adopt", "cold"]).expect(0);
    moved(&["backup", "run"]).expect(0);
    // A newer program was here.
    let before = place.store();
    let newer = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, text.replacen("\"format\": 1", "\"format\": 2", 1)).unwrap();
        for args in [
            &["backup", "run"][..],
            &["backup", "verify"],
            &["backup", "prune"],
        ] {
            moved(args).expect(12).says(&["newer format"]);
        }
        std::fs::write(file, text).unwrap();
    };
    newer(&place.path("cold/wbhome-store.json"));
    newer(place.snapshots().last().unwrap());
    let names = |tree: std::collections::BTreeMap<Vec<u8>, support::Entry>| {
        tree.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(names(before), names(place.store()));
}

#[test]
fn a_clock_that_went_back_loses_nothing() {
    let place = Place::with_store();
    place.backup(400, 0);
    let ran = place.at(35, &["backup", "run"]);
    ran.expect(0).says(&["behind the newest snapshot"]);
    assert_eq!(place.snapshots().len(), 2);
    let (first, second) = (read(&place.snapshots()[0]), read(&place.snapshots()[1]));
    assert!(first["at"].as_str() < second["at"].as_str());
    assert_eq!(second["clock"], night(35));
    let before = place.store();
    place.at(35, &["backup", "prune"]).expect(1).says(&[
        "clock",
        "nothing is removed",
        "set the clock right",
    ]);
    assert_eq!(differences(&before, &place.store()), "");
    // Twice within a second is no wonder.
    assert_eq!(place.at(500, &["backup", "run"]).expect(0).stderr, "");
    assert_eq!(place.at(500, &["backup", "run"]).expect(0).stderr, "");
    assert_eq!(place.snapshots().len(), 4);
    place.at(500, &["backup", "prune"]).expect(0);
}

#[test]
fn one_at_a_time() {
    let place = Place::with_store();
    place.backup(1, 0);
    let lock = std::fs::File::options()
        .read(true)
        .write(true)
        .open(place.path("cold/lock"))
        .unwrap();
    lock.lock().unwrap();
    std::io::Write::write_all(&mut &lock, "wbhome backup run (process 7)".as_bytes()).unwrap();
    for verb in ["run", "prune", "verify"] {
        let ran = place.at(2, &["backup", verb, "--lock-wait", "0s"]);
        ran.expect(11).says(&["in use", "process 7"]);
    }
    // Looking is nobody's business.
    place.at(2, &["backup", "ls"]).expect(0);
    place.at(2, &["backup", "run", "-n"]).expect(0);
    drop(lock);
    place.backup(2, 0);
    // The home can be worked in while it is backed up.
    let locked = std::fs::File::options()
        .read(true)
        .write(true)
        .open(place.home().join(".wbhome/lock"))
        .unwrap();
    locked.lock().unwrap();
    place.backup(3, 0);
}

#[test]
fn a_pack_that_was_damaged_is_found_and_named() {
    let place = Place::with_store();
    put_noise(&place, 1, 50_000);
    place.backup(1, 0);
    put_noise(&place, 2, 50_000);
    place.backup(2, 0);
    place.at(2, &["backup", "verify"]).expect(0);
    let [old, new] = ["20240601", "20240602"].map(|day| {
        place.path(format!(
            "cold/packs/sessions/{CRAWLER}/{day}T030000Z.tar.zst"
        ))
    });
    let flip = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    let whole = std::fs::read(&new).unwrap();
    flip(&new);
    let ran = place.at(2, &["backup", "verify", "--json"]);
    ran.expect(4);
    let broken = &ran.json()["stores"][0]["broken"];
    assert_eq!(
        (&broken[0]["what"], broken.as_array().unwrap().len()),
        (&CRAWLER.into(), 1)
    );
    std::fs::write(&new, &whole).unwrap();
    // What only an older snapshot names is read with --all.
    flip(&old);
    place.at(2, &["backup", "verify"]).expect(0);
    let ran = place.at(2, &["backup", "verify", "--all"]);
    ran.expect(4);
    assert!(ran.stdout.contains("20240601T030000Z.tar.zst"), "{ran:?}");
    // Cut off, and away: named, and packed again by the next run.
    std::fs::write(&new, &whole[..whole.len() - 100]).unwrap();
    place.at(2, &["backup", "verify"]).expect(4);
    let ran = place.backup(3, 0);
    assert_eq!(
        (packed(&ran), &ran["packed"][0]["why"]),
        (vec![CRAWLER.to_owned()], &"lost".into())
    );
    let third = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::remove_file(place.path("cold").join(third)).unwrap();
    place.at(3, &["backup", "verify"]).expect(4);
    assert_eq!(packed(&place.backup(4, 0)), [CRAWLER]);
    place.at(4, &["backup", "verify"]).expect(0);
    // A snapshot that is damaged: named, and the one before it is gone by; nothing is pruned.
    let newest = place.snapshots().pop().unwrap();
    std::fs::write(&newest, "{").unwrap();
    place.at(5, &["backup", "verify"]).expect(4);
    place.at(5, &["backup", "ls"]).expect(3);
    place
        .at(5, &["backup", "run"])
        .expect(3)
        .says(&["20240604T030000Z.json"]);
    place
        .at(5, &["backup", "prune"])
        .expect(1)
        .says(&["20240604T030000Z.json", "nothing was removed"]);
    std::fs::remove_file(newest).unwrap();
    place.at(5, &["backup", "prune"]).expect(0);
}

/// Where a file can not be made without a name (FAT, NFS), a kill leaves it under a temporary one.
#[test]
fn what_a_killed_write_has_left_goes_and_nothing_of_somebody_else() {
    let place = Place::with_store();
    place.backup(1, 0);
    let clean = place.store();
    let left = [
        "cold/.wbhome-tmp-0123456789abcdef",
        "cold/snapshots/.wbhome-tmp-0123456789abcdef",
        "cold/packs/home/.wbhome-tmp-0123456789abcdef",
        "cold/tmp/0123456789abcdef/data.db",
    ];
    for verb in ["prune", "run"] {
        for left in left {
            place.put(left, "half");
        }
        place.put("cold/snapshots/note.txt", "mine");
        place.at(1, &["backup", verb, "-q"]).expect(0);
        place.at(1, &["backup", "prune", "-q"]).expect(0);
        for left in left {
            assert!(!place.path(left).exists(), "{verb}: {left}");
        }
        assert_eq!(place.text("cold/snapshots/note.txt"), "mine");
        assert!(clean.keys().all(|name| place.store().contains_key(name)));
    }
    assert_eq!(place.snapshots().len(), 3);
}

/// The last pack of a session that is gone is all that is left of it, also when it is damaged.
#[test]
fn the_last_pack_of_what_is_gone_is_named_although_it_is_damaged() {
    let place = Place::with_store();
    place.backup(1, 0);
    std::fs::remove_dir_all(place.home().join("sessions").join(CRAWLER)).unwrap();
    let pack = place.path(format!(
        "cold/packs/sessions/{CRAWLER}/20240601T030000Z.tar.zst"
    ));
    let bytes = std::fs::read(&pack).unwrap();
    std::fs::write(&pack, &bytes[..bytes.len() - 10]).unwrap();
    place.backup(2, 3);
    place.backup(40, 3);
    place.at(80, &["backup", "prune"]).expect(0);
    assert!(pack.exists());
    place.at(80, &["backup", "verify"]).expect(4);
    std::fs::remove_file(&pack).unwrap();
    let ran = place.backup(81, 3);
    assert!(ran["lost"][0].as_str().unwrap().contains(CRAWLER), "{ran}");
    assert_eq!(place.backup(82, 0)["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn ls_tells_snapshots_of_one_minute_apart() {
    let place = Place::with_store();
    let run = |at: &str, args: &[&str]| place.run_with(&[("WBHOME_NOW", at)], args);
    run("2024-06-01T03:00:00Z", &["backup", "run", "-q"]).expect(0);
    let before = run("2024-06-01T04:00:00Z", &["backup", "ls"]).stdout;
    assert!(before.contains("  2024-06-01 03:00  "), "{before}");
    place.put_home("wbhome.md", "more");
    run("2024-06-01T03:00:20Z", &["backup", "run", "-q"]).expect(0);
    let listed = run("2024-06-01T04:00:00Z", &["backup", "ls"]).stdout;
    for moment in ["2024-06-01 03:00:00", "2024-06-01 03:00:20"] {
        assert!(listed.contains(moment), "{listed}");
    }
    // A moment as it is shown is a moment that is understood.
    let args = ["restore", "--all", "--from", "cold", "--to", "back", "--at"];
    let args = [&args[..], &["2024-06-01 03:00:00", "-q"]].concat();
    run("2024-06-01T04:00:00Z", &args).expect(0);
    assert!(!place.path("back/wbhome.md").exists());
}

#[test]
fn ls_tells_what_is_there() {
    let place = Place::with_store();
    assert!(
        place
            .at(1, &["backup", "ls"])
            .expect(0)
            .stdout
            .contains("0 snapshots")
    );
    place
        .at(1, &["backup", "verify"])
        .expect(1)
        .says(&["no snapshot"]);
    place.backup(1, 0);
    put_noise(&place, 1, 1000);
    place.backup(2, 0);
    let listed = place.at(2, &["backup", "ls", "--json"]).json();
    let of = &listed["stores"][0];
    assert_eq!(of["snapshots"][0]["packed"], 1);
    assert_eq!(
        (&of["snapshots"][1]["sessions"], &of["packs"]),
        (&3.into(), &6.into())
    );
    let listed = place.at(2, &["backup", "ls", "crawler", "--json"]).json();
    assert_eq!(listed["stores"][0]["packs"].as_array().unwrap().len(), 2);
    place
        .at(2, &["backup", "ls", "20200101_nobody"])
        .expect(1)
        .says(&["no snapshot knows"]);
    // Also of what is not in the home any more.
    place.ok(["rm", "crawler", "-q"]);
    place.backup(3, 0);
    let listed = place.at(3, &["backup", "ls", CRAWLER]).stdout;
    assert!(listed.contains("20240602T030000Z.tar.zst"), "{listed}");
    Place::with_sessions()
        .run(["backup", "run"])
        .expect(1)
        .says(&["no backup store", "backup init"]);
}

/// A limit on the length of files stands for a disk that is full.
#[test]
fn where_there_is_no_room_the_former_packs_stay() {
    let place = Place::with_store();
    put_noise(&place, 1, 400_000);
    place.backup(1, 0);
    put_noise(&place, 2, 400_000);
    place.put_home(&format!("sessions/{CLEANING}/memory/new"), "x");
    rest();
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 256; exec \"$0\" backup run";
    command
        .args(["-c", script])
        .arg(env!("CARGO_BIN_EXE_wbhome"));
    command
        .current_dir(place.root())
        .env_clear()
        .env("HOME", place.user_home());
    command.env("WBHOME_NOW", night(2));
    let ran = Ran::of(command.output().unwrap());
    ran.expect(1)
        .says(&["no room", CRAWLER, "former packs are kept"]);
    let snapshot = place.snapshot();
    let newest = |id| item(&snapshot, id).unwrap()["newest"]["at"].clone();
    assert_eq!(
        (newest(CRAWLER), newest(CLEANING)),
        (night(1).into(), night(2).into())
    );
    assert_eq!(place.packs().len(), 6);
    place.at(2, &["backup", "verify", "--all"]).expect(0);
    assert_eq!(packed(&place.backup(3, 0)), [CRAWLER]);
}

#[test]
fn on_a_full_disk_what_nothing_needs_goes_first() {
    let place = Place::with_sessions();
    let Some(mount) = Mount::memory(place.path("disk"), "1m") else {
        return;
    };
    place.ok(["backup", "init", "disk/cold", "-q"]);
    std::os::unix::fs::symlink("disk/cold", place.path("cold")).unwrap();
    for (day, seed) in [(1, 1), (2, 2)] {
        put_noise(&place, seed, 360_000);
        place.backup(day, 0);
    }
    put_noise(&place, 3, 360_000);
    let ran = place.backup(40, 0);
    assert_eq!(
        (packed(&ran), &ran["let_go"]),
        (vec![CRAWLER.to_owned()], &1.into()),
        "{ran}"
    );
    place.at(40, &["backup", "verify", "--all"]).expect(0);
    assert_eq!(place.snapshots().len(), 2);
    // Nothing is superfluous any more: what is there stays, and it is said.
    put_noise(&place, 4, 360_000);
    place.backup(41, 1);
    place.at(41, &["backup", "verify", "--all"]).expect(0);
    assert_eq!(
        item(&place.snapshot(), CRAWLER).unwrap()["newest"]["at"],
        night(40)
    );
    // To the last byte: pruning makes room all the same.
    let _ = std::fs::write(place.path("disk/filler"), noise(9, 2 << 20));
    let filled = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(place.path("disk/filler"));
    let _ = std::io::Write::write_all(&mut filled.unwrap(), &noise(9, 4096));
    place.at(60, &["backup", "prune"]).expect(0);
    std::fs::remove_file(place.path("disk/filler")).unwrap();
    mount.remount("size=8m");
    assert_eq!(packed(&place.backup(61, 0)), [CRAWLER]);
    place.at(61, &["backup", "verify", "--all"]).expect(0);
}

#[test]
fn a_store_that_can_not_be_written_can_be_read() {
    let place = Place::with_sessions();
    let Some(mount) = Mount::memory(place.path("disk"), "8m") else {
        return;
    };
    place.ok(["backup", "init", "disk/cold", "-q"]);
    std::os::unix::fs::symlink("disk/cold", place.path("cold")).unwrap();
    place.backup(1, 0);
    mount.remount("ro");
    place
        .at(2, &["backup", "run"])
        .expect(1)
        .says(&["ead-only"]);
    put_noise(&place, 1, 1000);
    place
        .at(2, &["backup", "run"])
        .expect(1)
        .says(&["ead-only"]);
    for verb in ["ls", "verify"] {
        place.at(2, &["backup", verb]).expect(0);
    }
    mount.remount("rw");
    assert_eq!(packed(&place.backup(2, 0)), [CRAWLER]);
}

/// A disk that is pulled out while a run packs: what then lies under the store's path is not touched.
#[test]
fn what_is_unmounted_in_the_middle_leaves_the_mount_point_empty() {
    use wbhome::backup::{Store, run};
    use wbhome::base::{Context, FixedClock, NoProgress, Stop};
    let place = Place::with_sessions();
    let Some(mount) = Mount::memory(place.path("disk"), "8m") else {
        return;
    };
    place.ok(["backup", "init", "disk/cold", "-q"]);
    let home = wbhome::home::Home::open(place.home(), wbhome::home::Trust::Named).unwrap();
    let (clock, stop) = (FixedClock::new(night(1).parse().unwrap()), Stop::new());
    let context = Context {
        clock: &clock,
        progress: &NoProgress,
        stop: &stop,
    };
    let day = std::time::Duration::from_secs(86_400);
    let request = run::Request {
        keep: 14 * day,
        keep_deleted: 90 * day,
        settings_every: 7 * day,
        level: 3,
        commit: None,
        state: Vec::new(),
        include: Vec::new(),
        exclude: Vec::new(),
        explain: false,
    };
    let store = Store::open_of(&place.path("disk/cold"), &home).unwrap();
    let store = store.lock(day, "test", &context).unwrap();
    let plan = run::plan(&home, &store, &request, &context).unwrap();
    assert!(mount.pull());
    let error = run::apply(&home, &store, plan, &request, &context).unwrap_err();
    assert!(error.to_string().contains("unmounted"), "{error}");
    assert_eq!(std::fs::read_dir(place.path("disk")).unwrap().count(), 0);
}

#[test]
fn what_can_not_be_read_is_named_every_night_and_stops_nothing() {
    let place = Place::with_store();
    let secret = place.put_home(
        &format!("sessions/{CRAWLER}/artifacts/secret.txt"),
        "a secret",
    );
    place.backup(1, 0);
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::create_dir(place.home().join("closed")).unwrap();
    std::fs::set_permissions(
        place.home().join("closed"),
        std::fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    let program = place.path("wbhome");
    if support::is_root() {
        if !support::has_tool("setpriv") {
            return;
        }
        if std::fs::hard_link(env!("CARGO_BIN_EXE_wbhome"), &program).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_wbhome"), &program).unwrap();
        }
        for entry in walkdir::WalkDir::new(place.root()) {
            let entry = entry.unwrap();
            if entry.path() != program {
                std::os::unix::fs::lchown(entry.path(), Some(65534), Some(65534)).unwrap();
            }
        }
    }
    let run = |day: i64, args: &[&str]| {
        if !rustix::process::geteuid().is_root() {
            return place.at(day, args);
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(args);
        command.current_dir(place.root()).env_clear();
        command
            .env("HOME", place.user_home())
            .env("WBHOME_NOW", night(day));
        rest();
        Ran::of(command.output().unwrap())
    };
    let before = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
    let first = run(2, &["backup", "run", "--json"]);
    first.expect(3);
    let told = first.json()["stores"][0]["unread"].to_string();
    assert!(
        told.contains("artifacts/secret.txt") && told.contains("closed"),
        "{told}"
    );
    let snapshot = place.snapshot();
    let crawler = item(&snapshot, CRAWLER).unwrap();
    assert_eq!(
        (
            &crawler["newest"]["unreadable"],
            &crawler["complete"]["file"]
        ),
        (&1.into(), &before)
    );
    // Nothing has changed, and it is named all the same; it is not packed again.
    let second = run(3, &["backup", "run", "--json"]);
    second.expect(3);
    assert_eq!(packed(&second.json()["stores"][0]), [""; 0]);
    assert!(second.stdout.contains("secret.txt"), "{second:?}");
    run(40, &["backup", "run"]).expect(3);
    run(80, &["backup", "prune"]).expect(0);
    assert!(named(&place.snapshot()).iter().any(|file| *file == before));
    run(80, &["backup", "verify"]).expect(0);
    // It can be read again, and the complete one is not needed any more.
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(
        place.home().join("closed"),
        std::fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    run(81, &["backup", "run"]).expect(0);
    let snapshot = place.snapshot();
    let crawler = item(&snapshot, CRAWLER).unwrap();
    assert!(
        crawler.get("complete").is_none() && crawler["newest"].get("unreadable").is_none(),
        "{crawler}"
    );
}

#[cfg(feature = "failpoints")]
#[test]
fn killed_at_any_point_every_snapshot_names_whole_packs() {
    for point in [
        "backup.pack",
        "backup.pack:2",
        "backup.copy",
        "backup.packed",
        "backup.snapshot",
    ] {
        let place = Place::with_store();
        put_noise(&place, 1, 1000);
        place.backup(1, 0);
        put_noise(&place, 2, 1000);
        place.ok(["archive", "api", "-q"]);
        rest();
        let env = [("WBHOME_FAILPOINT", point), ("WBHOME_NOW", &night(2))];
        let ran = place.run_with(&env, &["backup", "run"]);
        assert_eq!(ran.code, None, "{point}: {ran:?}");
        settled(&place, point);
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn killed_while_pruning_every_snapshot_names_whole_packs() {
    for point in [
        "prune.snapshot",
        "prune.snapshot:2",
        "prune.pack",
        "prune.pack:2",
    ] {
        let place = Place::with_store();
        for day in 1..=3 {
            put_noise(&place, day as u64, 1000);
            place.backup(day, 0);
        }
        let env = [("WBHOME_FAILPOINT", point), ("WBHOME_NOW", &night(60))];
        let ran = place.run_with(&env, &["backup", "prune"]);
        assert_eq!(ran.code, None, "{point}: {ran:?}");
        settled(&place, point);
    }
}

/// What is there verifies, and the next run and the next prune leave nothing but what is named.
#[cfg(feature = "failpoints")]
fn settled(place: &Place, point: &str) {
    place.at(60, &["backup", "verify", "--all"]).expect(0);
    place.backup(61, 0);
    let snapshot = place.snapshot();
    let file = item(&snapshot, CRAWLER).unwrap()["newest"]["file"]
        .as_str()
        .unwrap();
    let top = place.unpack(file);
    assert_eq!(
        differences(&place.of_session(CRAWLER), &tree(&top)),
        "",
        "{point}"
    );
    place.at(61, &["backup", "prune", "-q"]).expect(0);
    let mut needed: Vec<String> = place
        .snapshots()
        .iter()
        .flat_map(|s| named(&read(s)))
        .collect();
    needed.sort();
    needed.dedup();
    assert_eq!(needed, place.packs(), "{point}");
    place.at(61, &["backup", "verify", "--all"]).expect(0);
    let left: Vec<_> = std::fs::read_dir(place.path("cold/snapshots"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), place.snapshots().len());
}
