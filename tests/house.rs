//! The rules of the house: imports point only downward, the map names every room, and links in the documents lead
//! somewhere.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it reads the sources"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rooms, floor by floor. A room may use any lower floor, and of its own floor only what [`ALONGSIDE`] allows.
const FLOORS: [&[&str]; 8] = [
    &["base"],
    &["disk"],
    &["pack", "paths", "secrets"],
    &["state"],
    &["home"],
    &[
        "archive", "backup", "browse", "check", "history", "migrate", "relay", "rotate", "sessions",
    ],
    &["disaster", "doctor", "nightly"],
    &["cli"],
];

/// From which room into which one of the same floor: each is a decision.
const ALONGSIDE: [(&str, &str); 7] = [
    // A migration finds damage while it reads, and says it in the words of `check`.
    ("migrate", "check"),
    // A session that comes out of its archive is indexed and counted as `wbhome index` does.
    ("archive", "sessions"),
    // A session that another device has sent is indexed and counted as `wbhome index` does.
    ("relay", "sessions"),
    // What was migrated is indexed as `wbhome index` does.
    ("migrate", "sessions"),
    // Nights warn when the last drill was long ago.
    ("nightly", "disaster"),
    // Whether a set-up is sound is also a question of drills and nights.
    ("doctor", "disaster"),
    ("doctor", "nightly"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn floor(room: &str) -> usize {
    let floor = FLOORS.iter().position(|rooms| rooms.contains(&room));
    floor.unwrap_or_else(|| panic!("`{room}` is on no floor: give it one in tests/house.rs"))
}

/// Every source file, with its room; `lib.rs` and `main.rs` are the door.
fn sources() -> Vec<(String, PathBuf)> {
    let src = root().join("src");
    let files = walkdir::WalkDir::new(&src).into_iter().map(Result::unwrap);
    files
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "rs"))
        .filter_map(|entry| {
            let rel = entry.path().strip_prefix(&src).unwrap();
            let room = rel.parent()?.iter().next()?.to_str().unwrap().to_owned();
            Some((room, entry.into_path()))
        })
        .collect()
}

/// The rooms that a line names after `crate::`.
fn named_in(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap();
    let ends = |c: char| !(c.is_alphanumeric() || c == '_');
    let mut rooms = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            // One line of it; rustfmt breaks a longer list, and then each of its lines would have to be read.
            Some(list) => rooms.extend(
                list.split(',')
                    .map(|name| name.trim().split(ends).next().unwrap()),
            ),
            None => rooms.push(after.split(ends).next().unwrap()),
        }
    }
    rooms
}

fn allowed(from: &str, to: &str) -> bool {
    from == to || floor(to) < floor(from) || ALONGSIDE.contains(&(from, to))
}

#[test]
fn imports_point_only_downward() {
    let mut upward = Vec::new();
    for (room, path) in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate() {
            for used in named_in(line) {
                if !allowed(&room, used) {
                    upward.push(format!("{}:{}: {used}", path.display(), n + 1));
                }
            }
        }
    }
    assert!(
        upward.is_empty(),
        "not downward (floors and exceptions stand in tests/house.rs):\n{}",
        upward.join("\n")
    );
}

/// A list over several lines would not be seen whole.
#[test]
fn rooms_are_imported_one_by_one() {
    for (_, path) in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("use crate::{"),
            "{}: a `use` for each room",
            path.display()
        );
    }
}

#[test]
fn an_upward_import_would_be_seen() {
    assert_eq!(named_in("use crate::cli::run;"), ["cli"]);
    assert_eq!(named_in("use crate::{cli, base::Exit};"), ["cli", "base"]);
    assert_eq!(
        named_in("    let x = crate::migrate::plan(crate::base::x);"),
        ["migrate", "base"]
    );
    assert_eq!(named_in("#[serde(with = \"crate::base::wire\")]"), ["base"]);
    assert!(named_in("// crate::cli is above").is_empty());
    assert!(!allowed("home", "check") && !allowed("disk", "home") && !allowed("check", "cli"));
    assert!(!allowed("check", "migrate") && !allowed("paths", "home"));
    assert!(allowed("migrate", "check") && allowed("cli", "base") && allowed("home", "disk"));
}

#[test]
fn every_exception_is_in_use() {
    for (from, to) in ALONGSIDE {
        let used = sources()
            .iter()
            .filter(|(room, _)| room == from)
            .any(|(_, path)| {
                let text = std::fs::read_to_string(path).unwrap();
                text.lines().any(|line| named_in(line).contains(&to))
            });
        assert!(
            used,
            "nothing in `{from}` uses `{to}` any more: take the exception away"
        );
    }
}

#[test]
fn the_map_names_every_room() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mapped: BTreeSet<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split('`').next())
        .collect();
    let built: BTreeSet<String> = sources().into_iter().map(|(room, _)| room).collect();
    assert_eq!(mapped, built.iter().map(String::as_str).collect());
    for room in built {
        floor(&room);
    }
}

/// The documents at the top and in `docs/`.
fn documents() -> Vec<PathBuf> {
    let folders = [root().to_owned(), root().join("docs")];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect()
}

/// Targets of `[text](target)` outside of code, without those on other machines.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for after in line.split("](").skip(1) {
            let target = after.split([')', ' ']).next().unwrap();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The anchors that GitHub makes of a document's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        line.starts_with('#')
            .then(|| line.trim_start_matches('#').trim().to_owned())
    };
    text.lines()
        .filter_map(heading)
        .map(|title| {
            let kept = title.to_lowercase().replace(' ', "-");
            kept.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect()
        })
        .collect()
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let documents = documents();
    assert!(!documents.is_empty());
    let mut broken = Vec::new();
    for path in documents {
        let text = std::fs::read_to_string(&path).unwrap();
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let there = target.exists()
                && (anchor.is_empty()
                    || anchors(&std::fs::read_to_string(&target).unwrap()).contains(anchor));
            if !there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links that lead nowhere:\n{}",
        broken.join("\n")
    );
}
