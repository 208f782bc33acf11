//! Settings whose paths lead where they may not.

use std::collections::BTreeSet;
use std::fs;

use super::besiege;
use super::support::verbs::Siege;

/// The settings, with these in the place of those that `relay init` and `backup init` have written.
fn set(siege: &Siege, text: &str) {
    let place = &siege.place;
    let text = text
        .replace("{outside}", siege.outside.root.to_str().unwrap())
        .replace("{store}", place.path("store").to_str().unwrap())
        .replace("{relay}", place.path("relay").to_str().unwrap());
    fs::write(place.home().join("wbhome.toml"), text).unwrap();
}

fn top() -> BTreeSet<std::ffi::OsString> {
    let names = fs::read_dir("/").unwrap();
    names.map(|name| name.unwrap().file_name()).collect()
}

#[test]
fn places_that_can_not_be_one() {
    let before = top();
    besiege(&[
        ("everything is /", |s| {
            set(
                s,
                "[relay]\ndir = \"/\"\nmode = \"clone\"\n[git]\ndir = \"/\"\n[[backup.store]]\ndir = \"/\"\n[state]\ndir = \"/\"\n[secrets]\nrules = \"/\"\n",
            );
        }),
        ("everything is the home", |s| {
            set(
                s,
                "[relay]\ndir = \".\"\nmode = \"hardlink\"\n[git]\ndir = \".\"\n[[backup.store]]\ndir = \".\"\n[state]\ndir = \".\"\n[secrets]\nrules = \".\"\n",
            );
        }),
        ("everything is in a session", |s| {
            set(
                s,
                "[relay]\ndir = \"sessions/20240603_crawler/memory\"\nmode = \"symlink\"\n[git]\ndir = \"sessions/20240603_crawler/.git\"\n[[backup.store]]\ndir = \"sessions/20240603_crawler/artifacts\"\n[state]\ndir = \"sessions/20240603_crawler\"\n",
            );
        }),
        ("everything is the tool's own", |s| {
            set(
                s,
                "[relay]\ndir = \".wbhome\"\nmode = \"clone\"\n[git]\ndir = \".wbhome/git\"\n[[backup.store]]\ndir = \".wbhome/trash\"\n[state]\ndir = \".wbhome/tmp\"\n",
            );
        }),
        (
            "everything is outside, and none of it what it should be",
            |s| {
                set(
                    s,
                    "[relay]\ndir = \"{outside}\"\nmode = \"clone\"\n[git]\ndir = \"{outside}\"\n[[backup.store]]\ndir = \"{outside}\"\n",
                );
                // They were named: whether they are what they should be can only be told by looking.
                s.may_look_into = Some("outside");
            },
        ),
        ("everything is the same", |s| {
            set(
                s,
                "[relay]\ndir = \"{store}\"\nmode = \"clone\"\n[git]\ndir = \"{store}/git\"\n[[backup.store]]\ndir = \"{store}\"\n[state]\ndir = \"{store}\"\n",
            );
        }),
        ("pipes and endless devices", |s| {
            set(
                s,
                "[relay]\ndir = \"{outside}/pipe\"\nmode = \"clone\"\n[git]\ndir = \"{outside}/pipe\"\n[[backup.store]]\ndir = \"{outside}/pipe\"\n[state]\ndir = \"{outside}/pipe\"\n[secrets]\nrules = \"/dev/zero\"\n",
            );
            s.may_read = &["outside/pipe"];
        }),
    ]);
    assert_eq!(top(), before);
}

/// Only logs of sessions, and those of the application's own folder, are cut.
#[test]
fn logs_of_somebody_else() {
    besiege(&[
        ("globs", |s| {
            let text = "[relay]\ndir = \"{relay}\"\nmode = \"clone\"\n[[backup.store]]\ndir = \"{store}\"\n[rotate]\nkeep = 0\nmax_age = \"1s\"\nlogs = [\"../../outside/**/*.log\", \"{outside}/**/*.log\", \"/**\", \"~/**\", \"**\", \"../**\", \"sessions/../../../outside/session/logs/*\"]\n";
            set(s, text);
        }),
        ("globs that may be", |s| {
            let text = "[[backup.store]]\ndir = \"{store}\"\n[rotate]\nkeep = 0\nmax_age = \"1s\"\nlogs = [\"{outside}/**/*.log\", \"**/*\", \"~/**\", \"/**\"]\n";
            set(s, text);
        }),
    ]);
}
