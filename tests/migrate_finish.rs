//! `migrate finish`: the original in one verified file, and never in the way of anybody.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;
use support::moving::{OLD, SESSION, assert_same, damaged, map_to, small_home};
use support::{Place, digest, has_tool, tree};

/// A home that was migrated from `drive/C`, and a disk for the pack.
fn moved() -> Place {
    let place = Place::new();
    small_home(&place, "drive/C", OLD);
    symlink(
        "/nowhere/数据",
        place.path(format!("drive/C/{SESSION}/artifacts/latest")),
    )
    .unwrap();
    migrate(&place);
    place
}

fn migrate(place: &Place) {
    fs::create_dir(place.path("disk")).unwrap();
    place
        .run([
            "migrate",
            "drive/C",
            "H",
            "-y",
            "--no-state",
            "--map",
            &map_to(place, "H"),
        ])
        .expect(0);
}

const FINISH: [&str; 6] = ["migrate", "finish", "--home", "H", "--to", "disk"];

fn packs(place: &Place) -> Vec<PathBuf> {
    let names = fs::read_dir(place.path("disk")).unwrap();
    let mut names: Vec<PathBuf> = names.map(|name| name.unwrap().path()).collect();
    names.sort();
    names
}

fn record(place: &Place) -> PathBuf {
    let mut records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
    records.next().unwrap().unwrap().path()
}

fn noted(place: &Place) -> Value {
    serde_json::from_slice(&fs::read(record(place).join("finish.json")).unwrap()).unwrap()
}

#[test]
fn the_original_comes_back_with_stock_tools_exactly() {
    if !has_tool("tar") || !has_tool("zstd") {
        return;
    }
    let place = Place::new();
    damaged().write(&place.path("drive/C")).unwrap();
    migrate(&place);
    let before = tree(&place.path("drive"));
    place.run(FINISH).expect(0);
    assert_same(
        &before,
        &tree(&place.path("drive")),
        "the original was written",
    );
    let [pack] = &packs(&place)[..] else { panic!() };
    assert_eq!(
        fs::metadata(pack).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(digest(pack), noted(&place)["blake3"]);
    fs::create_dir(place.path("back")).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--zstd", "-xpf"])
        .arg(pack)
        .arg("-C")
        .arg(place.path("back"));
    assert!(tar.status().unwrap().success());
    assert_same(
        &tree(&place.path("drive/C")),
        &tree(&place.path("back/C")),
        "unpacked",
    );
}

#[test]
fn what_is_told_and_noted() {
    let place = moved();
    let ran = place.run(FINISH);
    ran.expect(0);
    let document = noted(&place);
    let shown = ran.shown(&place);
    let bytes = document["bytes"].as_u64().unwrap();
    assert!(bytes > 1000 && bytes < 100_000);
    assert!(
        shown.contains("packed into [ROOT]/disk/C-20240615T120000Z.tar.zst, "),
        "{shown}"
    );
    assert!(shown.contains("read back and compared"), "{shown}");
    assert!(
        shown.contains(
            "The pack is new: from 2024-06-29 on, the original may go; removing it is for you"
        ),
        "{shown}"
    );
    assert_eq!(document["keep_until"], "2024-06-29T12:00:00Z");
    assert_eq!(document["files"], 7);
    let status = place.ok(["migrate", "status", "--home", "H"]);
    assert!(
        status.contains("The original was packed 2024-06-15 12:00 into "),
        "{status}"
    );
    // The day that the migration has named, and no second one in the same words.
    assert_eq!(status.matches("Keep the original").count(), 1, "{status}");
    let later = place.run_with(
        &[("WBHOME_NOW", "2024-07-01T00:00:00Z")],
        &["migrate", "status", "--home", "H"],
    );
    assert!(
        later
            .expect(0)
            .stdout
            .contains("The original may go now; removing it is for you"),
        "{later:?}"
    );
    assert_eq!(
        place.json(["migrate", "status", "--home", "H"])["packed"],
        document
    );
    let pack = &packs(&place)[0];
    let cut = fs::File::options().write(true).open(pack).unwrap();
    cut.set_len(bytes - 1).unwrap();
    for _ in 0..2 {
        let later = place.run_with(
            &[("WBHOME_NOW", "2024-07-01T00:00:00Z")],
            &["migrate", "status", "--home", "H"],
        );
        let status = &later.expect(0).stdout;
        assert!(status.contains("The pack is not there now"), "{status}");
        assert!(!status.contains("may go"), "{status}");
        let _ = fs::remove_file(pack);
    }
}

#[test]
fn again_makes_another_one_and_the_first_stays() {
    let place = moved();
    place.run(FINISH).expect(0);
    let first = packs(&place)[0].clone();
    let was = digest(&first);
    place.put(format!("drive/C/{SESSION}/logs/added.log"), "more\n");
    place
        .run(FINISH)
        .expect(0)
        .says(&["packed before", "another pack is made"]);
    assert_eq!(packs(&place).len(), 2);
    assert_eq!(digest(&first), was);
    assert_ne!(noted(&place)["blake3"], was.as_str());
    let former = fs::read_to_string(record(&place).join("finish-20240615T120000Z.json")).unwrap();
    assert!(former.contains(&was));
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = moved();
    let before = tree(&place.root());
    let plan = place.ok([&FINISH[..], &["-n"]].concat());
    assert!(
        plan.contains(
            "would be packed into [ROOT]/disk, where "
                .replace("[ROOT]", place.root().to_str().unwrap())
                .as_str()
        ),
        "{plan}"
    );
    assert!(plan.ends_with("Nothing was changed.\n"), "{plan}");
    let plan = place.json([&FINISH[..], &["-n"]].concat());
    assert_eq!((&plan["files"], &plan["before"]), (&7.into(), &Value::Null));
    assert!(plan["room"].as_u64().unwrap() > 0);
    assert_same(&before, &tree(&place.root()), "something was written");
}

#[test]
fn what_can_not_be_packed_is_named() {
    let place = moved();
    let made = Command::new("mkfifo")
        .arg(place.path(format!("drive/C/{SESSION}/artifacts/pipe")))
        .status();
    assert!(made.unwrap().success());
    let plan = place.run([&FINISH[..], &["-n"]].concat());
    assert!(plan.expect(3).stdout.contains("artifacts/pipe"), "{plan:?}");
    let ran = place.run(FINISH);
    ran.expect(3).says(&["not in the pack as they were: 1"]);
    assert!(ran.stdout.contains("artifacts/pipe"), "{ran:?}");
    assert!(
        ran.stdout
            .contains("Keep the original: the pack does not hold all of it"),
        "{ran:?}"
    );
    assert_eq!(noted(&place)["left"][0]["kind"], "special");
    let later = place.run_with(
        &[("WBHOME_NOW", "2024-07-01T00:00:00Z")],
        &["migrate", "status", "--home", "H"],
    );
    assert!(!later.stdout.contains("may go now"), "{later:?}");
}

#[test]
fn places_that_would_do_harm_are_refused() {
    let place = moved();
    fs::create_dir(place.path("drive/C/inside")).unwrap();
    fs::create_dir(place.path("H/inside")).unwrap();
    symlink(place.path("H"), place.path("way into the home")).unwrap();
    place.put("file", "");
    let before = tree(&place.root());
    let refused = |to: &str| {
        let ran = place.run(["migrate", "finish", "--home", "H", "--to", to]);
        assert_same(&before, &tree(&place.root()), to);
        ran.expect(1).shown(&place)
    };
    assert_snapshot!(refused("drive/C/inside"), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the pack would lie in the original, which is never written: drive/C/inside
    hint: choose a folder on another disk, outside of the home and of what is synced
    ");
    assert!(refused("way into the home").contains("the pack would lie in the home"));
    assert!(refused("file").contains("is no folder: file"));
    assert_snapshot!(refused("not there"), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no folder not there
    hint: mkdir 'not there' makes it; it is not made unasked, for a disk that is not mounted looks so
    ");
    // The sync client would carry the pack to every device, and the original's folder is no place for it.
    fs::create_dir(place.path("drive/.dropbox.cache")).unwrap();
    fs::create_dir(place.path("drive/beside")).unwrap();
    let ran = place.run(["migrate", "finish", "--home", "H", "--to", "drive/beside"]);
    ran.expect(1)
        .says(&["in the folder of Dropbox that the original lies in: drive/beside"]);
}

#[test]
fn nothing_to_pack_is_told() {
    let place = moved();
    fs::rename(place.path("drive/C"), place.path("drive/gone")).unwrap();
    place
        .run(FINISH)
        .expect(1)
        .says(&["can not open the original", "is the sync drive mounted?"]);
    let place = Place::with_home();
    fs::create_dir(place.path("disk")).unwrap();
    place
        .run(["migrate", "finish", "--to", "disk"])
        .expect(1)
        .says(&["was not made by a migration"]);
    place.run(["migrate", "finish"]).expect(2);
}

/// What the sync client did to the original after the migration is found, each in its own way.
fn harm(place: &Place) {
    let at = |rel: &str| place.path(format!("drive/C/{SESSION}/{rel}"));
    // Rewritten, and of the same length and time now.
    let turn = at("context/turn_001.json");
    let time = fs::metadata(&turn).unwrap().modified().unwrap();
    let length = fs::metadata(&turn).unwrap().len() as usize;
    fs::write(&turn, "\0".repeat(length)).unwrap();
    let file = fs::File::options().write(true).open(&turn).unwrap();
    file.set_modified(time).unwrap();
    // Copied as it was, and cut short.
    fs::write(at("artifacts/out.txt"), "4").unwrap();
    fs::remove_file(at("memory/notes.md")).unwrap();
    fs::remove_file(at("artifacts/latest")).unwrap();
}

const HARMED: [(&str, &str); 4] = [
    ("artifacts/out.txt", "changed-in-source"),
    ("context/turn_001.json", "changed-in-source"),
    ("artifacts/latest", "missing-in-source"),
    ("memory/notes.md", "missing-in-source"),
];

#[test]
fn what_was_lost_since_the_migration_is_named() {
    let place = moved();
    harm(&place);
    let named = |document: &Value| {
        let since = document["since"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        since
            .map(|d| (text(&d["path"]), text(&d["kind"])))
            .collect::<Vec<_>>()
    };
    let wanted: Vec<_> = HARMED
        .iter()
        .map(|(path, kind)| (format!("{SESSION}/{path}"), (*kind).to_owned()))
        .collect();
    let plan = place.run([&FINISH[..], &["-n", "--json"]].concat());
    let plan: Value = serde_json::from_str(&plan.expect(3).stdout).unwrap();
    assert_eq!(named(&plan), wanted);
    let ran = place.run(FINISH);
    ran.expect(3)
        .says(&["missing in the original, or not as they were migrated: 4"]);
    assert_eq!(named(&noted(&place)), wanted);
    assert!(
        ran.stdout.contains(
            "artifacts/out.txt   changed-in-source: other content than was migrated, 1 B now"
        ),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("memory/notes.md   missing-in-source: the home still has it"),
        "{ran:?}"
    );
    let later = place.run_with(
        &[("WBHOME_NOW", "2024-07-01T00:00:00Z")],
        &["migrate", "status", "--home", "H"],
    );
    for told in [&ran.stdout, &later.expect(0).stdout] {
        assert!(
            told.contains("Keep the original, and the home") && !told.contains("may go"),
            "{told}"
        );
    }
}

/// A client that breaks hard links leaves two files; one of them may be swapped for a placeholder.
#[test]
fn a_further_name_that_is_a_file_of_its_own_is_compared() {
    let place = Place::new();
    small_home(&place, "drive/C", OLD);
    let name = |name: &str| place.path(format!("drive/C/{SESSION}/{name}"));
    fs::hard_link(name("memory/notes.md"), name("memory/too.md")).unwrap();
    migrate(&place);
    place.run([&FINISH[..], &["-n"]].concat()).expect(0);
    for further in ["memory/notes.md", "memory/too.md"] {
        let content = fs::read(name(further)).unwrap();
        fs::remove_file(name(further)).unwrap();
        fs::write(name(further), content).unwrap();
    }
    place.run([&FINISH[..], &["-n"]].concat()).expect(0);
    fs::write(name("memory/too.md"), "").unwrap();
    let ran = place.run(FINISH);
    assert!(
        ran.expect(3)
            .stdout
            .contains("memory/too.md   changed-in-source: "),
        "{ran:?}"
    );
}

/// Seen anew on a filesystem that counts its files otherwise, with other modes, an original is what it was.
#[test]
fn the_same_content_in_other_files_is_the_same() {
    let place = Place::new();
    damaged().write(&place.path("drive/C")).unwrap();
    migrate(&place);
    let copied = Command::new("cp")
        .arg("-a")
        .args([place.path("drive/C"), place.path("drive/D")])
        .status();
    assert!(copied.unwrap().success());
    fs::rename(place.path("drive/C"), place.path("drive/before")).unwrap();
    fs::rename(place.path("drive/D"), place.path("drive/C")).unwrap();
    fs::set_permissions(
        place.path("drive/C/index.json"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    place.run([&FINISH[..], &["-n"]].concat()).expect(0);
    place.run(FINISH).expect(0);
}

#[test]
fn a_worse_pack_does_not_take_the_place_of_a_whole_one() {
    let place = moved();
    place.run(FINISH).expect(0);
    let whole = noted(&place);
    harm(&place);
    let later = [("WBHOME_NOW", "2024-06-16T12:00:00Z")];
    let ran = place.run_with(&later, &FINISH);
    ran.expect(3)
        .says(&["The pack of 2024-06-15 12:00 is whole, and stays the one"]);
    assert_eq!(noted(&place), whole);
    assert_eq!(
        place.json(["migrate", "status", "--home", "H"])["packed"],
        whole
    );
    let worse = fs::read(record(&place).join("finish-20240616T120000Z.json")).unwrap();
    let worse: Value = serde_json::from_slice(&worse).unwrap();
    assert_eq!(worse["since"].as_array().unwrap().len(), HARMED.len());
    assert_eq!(packs(&place).len(), 2);
}

#[test]
fn an_emptied_original_is_refused() {
    let place = moved();
    place.run([&FINISH[..], &["-n"]].concat()).expect(0);
    fs::rename(place.path("drive/C"), place.path("drive/gone")).unwrap();
    let refused = |what: &str| {
        for args in [FINISH.to_vec(), [&FINISH[..], &["-n", "--force"]].concat()] {
            let ran = place.run(args);
            ran.expect(1).says(&[what, "is the disk mounted"]);
            assert!(!ran.stdout.contains("may go"), "{ran:?}");
        }
        assert!(packs(&place).is_empty());
        assert!(!record(&place).join("finish.json").exists());
    };
    // The mount point of a drive that is not mounted.
    fs::create_dir(place.path("drive/C")).unwrap();
    refused("the original has no folder `sessions` any more");
    fs::create_dir(place.path("drive/C/sessions")).unwrap();
    place.put("drive/C/.DS_Store", "");
    refused("not one file that was migrated is in the original");
    fs::remove_dir_all(place.path("drive/C")).unwrap();
    fs::rename(place.path("drive/gone"), place.path("drive/C")).unwrap();
    fs::write(record(&place).join("files.jsonl"), "").unwrap();
    place
        .run(FINISH)
        .expect(1)
        .says(&["the record does not say which files were migrated"]);
}

#[test]
fn a_folder_beside_the_original_is_warned_of() {
    let place = moved();
    fs::create_dir(place.path("drive/beside")).unwrap();
    let beside = ["migrate", "finish", "--home", "H", "--to", "drive/beside"];
    place
        .run(beside)
        .expect(0)
        .says(&["drive, the folder that holds the original: if that is synced"]);
    let ran = place.run(FINISH);
    assert!(
        !ran.expect(0)
            .stderr
            .contains("the folder that holds the original"),
        "{ran:?}"
    );
}
