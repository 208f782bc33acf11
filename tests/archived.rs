//! What other verbs do with a session that is archived: it is renamed, removed, brought back and labelled as any other,
//! and its archive stays the same file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::process::Command;

use serde_json::json;
use support::home::tool;
use support::{Entry, Place, Ran, differences, has_tool, is_root, tree};

const ID: &str = "20240603_crawler";
const PACK: &str = "archive/20240603_crawler.tar.zst";

/// A home whose first session is archived, and what that was.
fn archived() -> (Place, BTreeMap<Vec<u8>, Entry>) {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/memory/记忆.md", "数据\n");
    let labels = ["--project", "alpha", "--tag", "网"];
    place.ok(["label", "crawler"].iter().chain(&labels));
    let before = tree(&place.home().join("sessions").join(ID));
    place.ok(["archive", "crawler"]);
    (place, before)
}

fn entry(place: &Place, id: &str) -> serde_json::Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == id);
    found.unwrap().clone()
}

fn pack(place: &Place, rel: &str) -> Vec<u8> {
    std::fs::read(place.home().join(rel)).unwrap()
}

/// Nothing is wrong, and the archive is what the index says.
fn sound(place: &Place) {
    place.run(["check", "--archives"]).expect(0);
}

#[test]
fn mv_renames_the_archive_and_no_byte_of_it() {
    let (place, before) = archived();
    let packed = pack(&place, PACK);
    let former = entry(&place, ID);
    place.ok(["mv", "crawler", "prices"]);
    let renamed = "archive/20240603_prices.tar.zst";
    assert_eq!(place.names("archive"), ["20240603_prices.tar.zst"]);
    assert_eq!(pack(&place, renamed), packed);
    let now = entry(&place, "20240603_prices");
    assert_eq!(now["archive"]["file"], renamed);
    for field in ["status", "project", "tags", "session_id", "archived_at"] {
        assert_eq!(now[field], former[field], "{field}");
    }
    let index = place.index();
    let ids: Vec<_> = index.as_array().unwrap().iter().map(|e| &e["id"]).collect();
    assert!(!ids.contains(&&json!(ID)), "{ids:?}");
    sound(&place);

    // For those who unpack it by hand, the folder in it is what it was.
    if has_tool("tar") && has_tool("zstd") {
        let path = place.home().join(renamed);
        let listed = tool("tar", &["--zstd", "-tf", path.to_str().unwrap()]);
        let mut lines = listed.lines();
        assert!(
            lines.all(|line| line.starts_with("20240603_crawler/")),
            "{listed}"
        );
    }

    let ran = place.run(["unarchive", "prices"]);
    ran.expect(0).says(&[
        "20240603_prices was called 20240603_crawler when it was archived",
        "relink",
    ]);
    let back = tree(&place.home().join("sessions/20240603_prices"));
    assert_eq!(differences(&before, &back), "");
    assert!(!place.home().join("sessions").join(ID).exists());
    assert_eq!(place.names("archive"), [""; 0]);
    let now = entry(&place, "20240603_prices");
    assert_eq!(
        (&now["status"], &now["tags"]),
        (&json!("active"), &json!(["网"]))
    );
    assert!(
        place
            .home()
            .join("projects/alpha/20240603_prices/session.json")
            .exists()
    );
}

#[test]
fn mv_never_puts_an_archive_over_another() {
    let (place, _) = archived();
    let packed = pack(&place, PACK);
    place.put_home("archive/20240603_prices.tar.zst", "somebody's\n");
    place.run(["mv", "crawler", "prices"]).expect(1);
    assert_eq!(pack(&place, PACK), packed);
    let other = place.home_text("archive/20240603_prices.tar.zst");
    assert_eq!(other, "somebody's\n");
    assert_eq!(entry(&place, ID)["status"], "archived");
}

#[test]
fn rm_puts_the_archive_into_the_trash_and_restore_brings_it_back() {
    let (place, before) = archived();
    let packed = pack(&place, PACK);
    let former = entry(&place, ID);
    place.ok(["rm", "crawler"]);
    assert_eq!(place.names("archive"), [""; 0]);
    assert_eq!(entry(&place, ID)["status"], "removed");
    place.run(["check", "--archives"]).expect(0);
    place.run(["unarchive", ID]).expect(1);

    place.ok(["restore", ID, "--from", "trash"]);
    assert_eq!(pack(&place, PACK), packed);
    assert_eq!(entry(&place, ID), former);
    sound(&place);
    place.ok(["unarchive", "crawler"]);
    let back = tree(&place.home().join("sessions").join(ID));
    assert_eq!(differences(&before, &back), "");
}

#[test]
fn labels_of_an_archived_session_are_changed_in_the_index_alone_and_stay_when_it_is_back() {
    let (place, _) = archived();
    let packed = pack(&place, PACK);
    let former = entry(&place, ID);
    let labels = ["--project", "beta", "--tag", "五月", "--title", "Prices"];
    place.ok(["label", "crawler"].iter().chain(&labels));
    assert_eq!(pack(&place, PACK), packed);
    let now = entry(&place, ID);
    assert_eq!(
        (&now["project"], &now["tags"], &now["title"]),
        (&json!("beta"), &json!(["网", "五月"]), &json!("Prices"))
    );
    for field in ["status", "archived_at", "archive"] {
        assert_eq!(now[field], former[field], "{field}");
    }
    // A project shows what is in sessions/: a link to an archived one would lead nowhere.
    assert!(!place.home().join("projects/beta").join(ID).exists());
    sound(&place);

    place.ok(["unarchive", "crawler"]);
    let back = entry(&place, ID);
    assert_eq!(back["title"], "Prices");
    assert!(
        place
            .home()
            .join("projects/beta")
            .join(ID)
            .join("session.json")
            .exists()
    );
}

#[test]
fn another_user_who_unpacks_lends_out_no_rights_of_theirs() {
    if !is_root() || !has_tool("setpriv") {
        return;
    }
    let place = Place::with_sessions();
    let run = place.put_home("sessions/20240603_crawler/artifacts/run", "#!/bin/true\n");
    let own = place.put_home("sessions/20240603_crawler/artifacts/own", "#!/bin/true\n");
    let special = || Permissions::from_mode(0o6755);
    chown(&own, Some(65534), Some(65534)).unwrap();
    for file in [&run, &own] {
        std::fs::set_permissions(file, special()).unwrap();
    }
    place.ok(["archive", "crawler", "-q"]);
    // For root, who gives owners back, the bits come back, too.
    place.ok(["unarchive", "crawler", "--keep", "-q"]);
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&run), mode(&own)), (0o6755, 0o6755));
    std::fs::remove_dir_all(place.home().join("sessions").join(ID)).unwrap();

    for entry in walkdir::WalkDir::new(place.root()) {
        lchown(entry.unwrap().path(), Some(65534), Some(65534)).unwrap();
    }
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(env!("CARGO_BIN_EXE_wbhome")).args(args);
        command.current_dir(place.root()).env_clear();
        command
            .env("HOME", place.user_home())
            .env("WBHOME_NOW", support::NOW);
        Ran::of(command.output().unwrap())
    };
    if as_nobody(&["--version"]).code != Some(0) {
        eprintln!("SKIPPED: another user can not run the program");
        return;
    }
    // What can not be given back is said, and the archive stays: it is the only place where it is told.
    let ran = as_nobody(&["unarchive", "crawler"]);
    ran.expect(3).says(&["could not be given back as it was"]);
    assert!(ran.stdout.contains("its archive stays"), "{ran:?}");
    assert_eq!((mode(&run), mode(&own)), (0o755, 0o6755));
    assert!(place.home().join(format!("archive/{ID}.tar.zst")).exists());
}
