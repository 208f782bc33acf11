//! `migrate verify`: each way in which home and source can part is told by its name.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs::{self, File, FileTimes};

use serde_json::Value;
use support::corpus::Corpus;
use support::moving::{OLD, SESSION, assert_same, damaged, map_to, small_home};
use support::{Place, tree};

fn moved() -> Place {
    let place = Place::new();
    small_home(&place, "C", OLD);
    std::os::unix::fs::symlink(
        format!("{OLD}/{SESSION}/artifacts/out.txt"),
        place.path(format!("C/{SESSION}/artifacts/latest")),
    )
    .unwrap();
    place
        .run(["migrate", "C", "H", "--map", &map_to(&place, "H")])
        .expect(0);
    place
}

/// The differences as `kind path`, and the whole document.
fn verify(place: &Place, code: i32) -> (Vec<String>, Value) {
    let ran = place.run(["migrate", "verify", "--home", "H", "--json"]);
    let document = ran.expect(code).json();
    let differences = document["differences"].as_array().unwrap();
    let told = differences
        .iter()
        .map(|d| {
            format!(
                "{} {}",
                d["kind"].as_str().unwrap(),
                d["path"].as_str().unwrap()
            )
        })
        .collect();
    (told, document)
}

#[test]
fn right_after_the_migration_all_is_as_it_should_be() {
    let place = Place::new();
    damaged().write(&place.path("C")).unwrap();
    place
        .run(["migrate", "C", "H", "--map", &map_to(&place, "H")])
        .expect(0);
    let (source, home) = (tree(&place.path("C")), tree(&place.path("H")));
    let (told, document) = verify(&place, 0);
    assert!(told.is_empty(), "{told:?}");
    // The root is no entry, and the index is not compared: it follows the disk.
    assert_eq!(document["compared"], source.len() - 2);
    assert_eq!(document["equal"], document["compared"]);
    assert_same(&tree(&place.path("C")), &source, "the source");
    assert_same(&tree(&place.path("H")), &home, "the home");
}

#[test]
fn a_change_in_the_home_is_told() {
    let place = moved();
    let notes = format!("{SESSION}/memory/notes.md");
    place.put(format!("H/{notes}"), "# Notes\n\nnewer\n");
    let (told, _) = verify(&place, 4);
    assert_eq!(told, [format!("changed-in-home {notes}")]);
    let ran = place.run(["migrate", "verify", "--home", "H"]);
    assert!(
        ran.stdout.contains("changed-in-home") && ran.stdout.contains(&notes),
        "{ran:#?}"
    );
}

#[test]
fn a_change_in_the_source_is_told() {
    let place = moved();
    let notes = format!("{SESSION}/memory/notes.md");
    place.put(format!("C/{notes}"), "# Notes\n\nnewer on the drive\n");
    let (told, _) = verify(&place, 4);
    assert_eq!(told, [format!("changed-in-source {notes}")]);
}

#[test]
fn what_is_gone_and_what_is_new_is_told() {
    let place = moved();
    let (out, log, notes) = (
        format!("{SESSION}/artifacts/out.txt"),
        format!("{SESSION}/logs/run.log"),
        format!("{SESSION}/memory/new.md"),
    );
    fs::remove_file(place.path(format!("H/{out}"))).unwrap();
    fs::remove_file(place.path(format!("C/{log}"))).unwrap();
    place.put(format!("C/{notes}"), "new on the drive\n");
    place.put(format!("H/{SESSION}/memory/here.md"), "new here\n");
    let (mut told, document) = verify(&place, 4);
    told.sort();
    let wanted = [
        format!("missing-in-home {out}"),
        format!("missing-in-source {log}"),
        format!("new-in-source {notes}"),
    ];
    assert_eq!(told, wanted);
    // The user's own new work is no difference.
    assert!(document["new_in_home"].as_u64().unwrap() >= 1, "{document}");
}

#[test]
fn a_bit_that_flipped_on_the_disk_is_damage() {
    let place = moved();
    for name in ["logs/run.log", "artifacts/out.txt"] {
        let path = place.path(format!("H/{SESSION}/{name}"));
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let mut content = fs::read(&path).unwrap();
        content[1] ^= 1;
        fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }
    let (mut told, _) = verify(&place, 4);
    told.sort();
    let wanted = ["artifacts/out.txt", "logs/run.log"];
    assert_eq!(told, wanted.map(|name| format!("damaged {SESSION}/{name}")));
}

#[test]
fn a_link_that_points_elsewhere_and_another_kind_are_changes_in_the_home() {
    let place = moved();
    let (link, out) = (
        format!("{SESSION}/artifacts/latest"),
        format!("{SESSION}/artifacts/out.txt"),
    );
    fs::remove_file(place.path(format!("H/{link}"))).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.path(format!("H/{link}"))).unwrap();
    fs::remove_file(place.path(format!("H/{out}"))).unwrap();
    fs::create_dir(place.path(format!("H/{out}"))).unwrap();
    let (mut told, _) = verify(&place, 4);
    told.sort();
    assert_eq!(
        told,
        [&link, &out].map(|name| format!("changed-in-home {name}"))
    );
}

#[test]
fn a_source_that_is_gone_is_an_error_not_a_list() {
    let place = moved();
    fs::rename(place.path("C"), place.path("elsewhere")).unwrap();
    let ran = place.run(["migrate", "verify", "--home", "H"]);
    ran.expect(1).says(&["source", "hint"]);
}

#[test]
fn many_files_are_compared_from_the_disk() {
    let place = Place::new();
    let corpus = Corpus {
        sessions: 12,
        turns: 20,
        old_path: OLD.into(),
        ..Corpus::default()
    };
    let written = corpus.write(&place.path("C")).unwrap();
    place
        .run(["migrate", "C", "H", "--map", &map_to(&place, "H")])
        .expect(0);
    verify(&place, 0);
    let turn = format!("sessions/{}/context/turn_003.json", written.ids[5]);
    let mut content = place.read(format!("H/{turn}"));
    content.truncate(content.len() / 2);
    place.put(format!("H/{turn}"), content);
    assert_eq!(verify(&place, 4).0, [format!("changed-in-home {turn}")]);
}

/// Whoever deletes the original after this must not have lost what could not be read then.
#[test]
fn what_could_not_be_copied_is_missed_and_copied_by_the_same_command() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let target = place.path(format!("C/{SESSION}/artifacts/too_long"));
    // A link whose new target would be longer than a link can be.
    let long = format!("{OLD}/{}", "x/".repeat((4090 - OLD.len()) / 2));
    std::os::unix::fs::symlink(&long, &target).unwrap();
    std::fs::create_dir_all(
        place.path("a_folder_with_a_name_that_is_much_longer_than_the_old_one"),
    )
    .unwrap();
    let dest = "a_folder_with_a_name_that_is_much_longer_than_the_old_one/H";
    let args = ["migrate", "C", dest, "--map", &map_to(&place, dest)];
    let ran = place.run(args);
    assert!(
        ran.expect(3).stdout.contains("longer than a link can hold"),
        "{ran:?}"
    );
    let verify = || place.run(["migrate", "verify", "--home", dest]);
    assert!(verify().expect(4).stdout.contains("too_long"));
    // The cause goes, and the same command copies what is missing; work in the home meanwhile is left alone.
    fs::remove_file(&target).unwrap();
    std::os::unix::fs::symlink(format!("{OLD}/{SESSION}"), &target).unwrap();
    let edited = place.path(format!("{dest}/{SESSION}/artifacts/out.txt"));
    assert!(edited.exists());
    fs::write(&edited, "my own work").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let file = File::options().write(true).open(&edited).unwrap();
    file.set_times(FileTimes::new().set_modified(later))
        .unwrap();
    let ran = place.run(args);
    assert!(ran.expect(0).stderr.contains("is left as it is"), "{ran:?}");
    assert_eq!(fs::read(&edited).unwrap(), b"my own work");
    assert!(
        place
            .path(format!("{dest}/{SESSION}/artifacts/too_long"))
            .exists()
    );
}

#[test]
fn a_home_that_is_not_complete_is_read_and_not_changed() {
    let place = moved();
    for record in fs::read_dir(place.path("H/.wbhome/migrations")).unwrap() {
        fs::remove_file(record.unwrap().path().join("outcome.json")).unwrap();
    }
    let ran = place.run(["label", "@1", "--tag", "t", "--home", "H"]);
    assert!(
        ran.expect(1).stderr.contains("its migration was stopped"),
        "{ran:?}"
    );
    place.run(["ls", "--home", "H"]).expect(0);
    let status = place.run(["migrate", "status", "--home", "H"]);
    let status = &status.expect(1).stderr;
    // The hint is the command itself.
    let command = status
        .lines()
        .find_map(|l| l.split_once("wbhome migrate "))
        .unwrap()
        .1;
    let line = format!("{} migrate {command}", env!("CARGO_BIN_EXE_wbhome"));
    let mut shell = std::process::Command::new("/bin/sh");
    let done = shell
        .args(["-c", &line])
        .env("HOME", place.user_home())
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    place
        .run(["label", "@1", "--tag", "t", "--home", "H"])
        .expect(0);
}
