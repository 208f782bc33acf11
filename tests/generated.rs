//! `completions/` and `man/` are made by the program itself and checked in. Here it is seen that they are not stale.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it compares files"
)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Place, has_tool};

/// Makes them anew.
const REFRESH: &str = "WBHOME_REFRESH=1 cargo test --test generated";

const SHELLS: [(&str, &str); 5] = [
    ("bash", "wbhome.bash"),
    ("zsh", "_wbhome"),
    ("fish", "wbhome.fish"),
    ("elvish", "wbhome.elv"),
    ("powershell", "_wbhome.ps1"),
];

fn checked_in(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// The manual pages, made into the folder `man` of the place.
fn made_pages(place: &Place) -> BTreeMap<String, String> {
    place.ok(["man", "man", "-q"]);
    let pages = files(&place.path("man"));
    assert!(pages.contains_key("wbhome.1"));
    pages
}

/// The folder holds exactly what the program makes; or is made to, when that is asked for.
fn compare(folder: &str, made: &BTreeMap<String, String>) {
    let at = checked_in(folder);
    if std::env::var_os("WBHOME_REFRESH").is_some() {
        std::fs::create_dir_all(&at).unwrap();
        for name in files(&at).keys().filter(|name| !made.contains_key(*name)) {
            std::fs::remove_file(at.join(name)).unwrap();
        }
        for (name, text) in made {
            std::fs::write(at.join(name), text).unwrap();
        }
    }
    let there = files(&at);
    let stale: Vec<&String> = made
        .keys()
        .chain(there.keys())
        .filter(|name| made.get(*name) != there.get(*name))
        .collect();
    assert!(
        stale.is_empty(),
        "{folder}/ is stale ({stale:?}). To make it anew: {REFRESH}"
    );
}

#[test]
fn completions_are_those_of_this_program() {
    let place = Place::new();
    let made = SHELLS.map(|(shell, file)| (file.to_owned(), place.ok(["completions", shell])));
    compare("completions", &BTreeMap::from(made));
    let ran = place.run(["completions", "tcsh"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("powershell"),
        "it says which there are: {ran:?}"
    );
}

#[test]
fn manual_pages_are_those_of_this_program() {
    let place = Place::new();
    let listed = place.run(["man", "new/man1"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""));
    let made = files(&place.path("new/man1"));
    assert_eq!(listed.stderr.lines().count(), made.len());
    assert!(made.contains_key("wbhome.1") && made.contains_key("wbhome-migrate-verify.1"));
    compare("man", &made);
    // Once more, over what is there; and without doing it.
    assert_eq!(place.run(["man", "new/man1", "-q"]).stderr, "");
    assert_eq!(files(&place.path("new/man1")), made);
    place.ok(["man", "-n", "another"]);
    assert!(!place.path("another").exists());
}

/// An example that is filled to the width of the screen can not be copied.
#[test]
fn each_page_has_its_sections_and_examples_stand_line_by_line() {
    for (name, page) in made_pages(&Place::new()) {
        assert!(!page.contains(".SH EXTRA"), "{name}");
        for section in ["EXAMPLES", "\"EXIT STATUS\"", "FILES", "ENVIRONMENT"] {
            let times = page.matches(&format!(".SH {section}\n")).count();
            assert_eq!(times, 1, "{name}: {section}");
        }
        let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        let (examples, _) = examples.split_once("\n.fi").unwrap();
        assert!(
            examples.lines().all(|line| line.starts_with("  ")),
            "{name}: {examples}"
        );
        assert!(examples.contains("wbhome"), "{name}");
    }
}

#[test]
fn manual_pages_are_sound_roff() {
    if !has_tool("groff") {
        return;
    }
    let place = Place::new();
    for name in made_pages(&place).keys() {
        let page = place.path("man").join(name);
        let checked = Command::new("groff")
            .args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"])
            .arg(page)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(
            checked.status.success() && said.is_empty(),
            "{name}: {said}"
        );
    }
}
