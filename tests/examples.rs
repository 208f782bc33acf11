//! What stands in `examples/`, and what the documents say of it, is true: README's first command works on the example
//! home and reports exactly the damage that `examples/README.md` lists.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Place, Ran, differences, tree};
use walkdir::WalkDir;

/// Where Mei's computer had the example home.
const OLD: &str = "/Users/mei/Cloud Drive/workbuddy_home";

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(rel: &str) -> String {
    let path = repository().join(rel);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{rel}: {e}"))
}

/// A copy of the example home at `examples/cloud_home` of a fresh folder: links as they are.
fn place_with_example() -> Place {
    let place = Place::new();
    let to = place.path("examples/cloud_home");
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let from = repository().join("examples/cloud_home");
    for entry in WalkDir::new(&from).follow_links(false) {
        let entry = entry.unwrap();
        let rel = entry.path().strip_prefix(&from).unwrap();
        let to = to.join(rel);
        if entry.file_type().is_dir() {
            std::fs::create_dir(&to).unwrap();
        } else if entry.path_is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), &to).unwrap();
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
    place
}

/// The line of README's first block that begins with `cargo run`.
fn first_command() -> String {
    let readme = text("README.md");
    let mut lines = readme.lines().filter(|line| line.starts_with("cargo run "));
    let first = lines.next().expect("README.md has a line `cargo run …`");
    assert_eq!(lines.next(), None, "README.md has one such line");
    first.to_owned()
}

/// Runs it as a shell would, with the built program in the place of `cargo run --`.
fn run_first_command(place: &Place) -> Ran {
    let wbhome = place.command();
    let script = format!(
        "cargo() {{ shift 2; exec \"$WBHOME_PROGRAM\" \"$@\"; }}\n{}",
        first_command()
    );
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script)
        .current_dir(place.root())
        .env_clear();
    for (name, value) in wbhome.get_envs() {
        shell.env(name, value.unwrap());
    }
    shell.env("WBHOME_PROGRAM", wbhome.get_program());
    Ran::of(shell.output().unwrap())
}

/// Kind and path of each row of the tables in `examples/README.md` that begins with a kind.
fn listed() -> BTreeSet<(String, String)> {
    let kinds: BTreeSet<&str> = wbhome::check::FindingKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .collect();
    text("examples/README.md")
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let mut code = || cells.next()?.strip_prefix('`')?.strip_suffix('`');
            let (kind, path) = (code()?, code()?);
            kinds
                .contains(kind)
                .then(|| (kind.to_owned(), path.to_owned()))
        })
        .collect()
}

fn found(outcome: &Value) -> BTreeSet<(String, String)> {
    let field = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = outcome["findings"].as_array().unwrap();
    let found: BTreeSet<_> = findings
        .iter()
        .map(|f| (field(f, "kind"), field(f, "path")))
        .collect();
    assert_eq!(
        found.len(),
        findings.len(),
        "each finding has a row of its own"
    );
    found
}

#[test]
fn the_first_command_moves_the_example_and_reports_what_is_damaged_in_it() {
    let place = place_with_example();
    let source = place.path("examples/cloud_home");
    let before = tree(&source);
    let ran = run_first_command(&place);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "");

    let home = place.path("target/first_home");
    let outcome = place.json(["migrate", "status", "--home", home.to_str().unwrap()]);
    let (listed, found) = (listed(), found(&outcome));
    assert_eq!(listed.len(), 14);
    assert_eq!(found, listed);
    for (kind, path) in &listed {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        assert!(ran.stdout.contains(kind), "{kind} in {}", ran.stdout);
        // A missing turn is told by its number.
        assert!(
            kind == "missing-turn" || ran.stdout.contains(name),
            "{name} in {}",
            ran.stdout
        );
    }
    let after = tree(&source);
    assert!(before == after, "{}", differences(&before, &after));
}

#[test]
fn no_reference_is_left_but_those_that_are_listed() {
    let place = place_with_example();
    run_first_command(&place);
    let home = place.path("target/first_home");
    let left_alone: BTreeSet<PathBuf> = listed()
        .into_iter()
        .filter(|(kind, _)| kind.ends_with("-path"))
        .map(|(_, path)| home.join(path))
        .collect();
    let mut seen = 0;
    for entry in WalkDir::new(&home) {
        let entry = entry.unwrap();
        if !entry.file_type().is_file() || entry.path().starts_with(home.join(".wbhome")) {
            continue;
        }
        let content = std::fs::read(entry.path()).unwrap();
        let content = String::from_utf8_lossy(&content);
        // The neighbours that the notes mention are other folders.
        let references = content
            .match_indices(OLD)
            .filter(|(at, _)| {
                let rest = &content[at + OLD.len()..];
                !rest.starts_with("_old") && !rest.starts_with(" (1)")
            })
            .count();
        assert_eq!(
            references > 0,
            left_alone.contains(entry.path()),
            "{}",
            entry.path().display()
        );
        seen += references;
    }
    assert_eq!(seen, 2);
}

#[test]
fn the_first_command_may_be_run_again() {
    let place = place_with_example();
    let first = run_first_command(&place);
    let home = tree(&place.path("target/first_home"));
    let second = run_first_command(&place);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("finished before"), "{second:?}");
    for line in ["  copied ", "  rewritten ", "  together "] {
        let of = |ran: &Ran| {
            ran.stdout
                .lines()
                .find(|l| l.starts_with(line))
                .map(str::to_owned)
        };
        assert_eq!(of(&first), of(&second));
        assert!(of(&first).is_some(), "{line} in {}", first.stdout);
    }
    let again = tree(&place.path("target/first_home"));
    assert!(home == again, "{}", differences(&home, &again));
}

#[test]
fn the_commented_settings_are_those_that_init_writes() {
    let place = Place::new();
    place.ok(["init", "home"]);
    let example = text("examples/wbhome.toml");
    assert_eq!(example, text("src/home/wbhome.toml"));
    assert_eq!(example, place.text("home/wbhome.toml"));
}

/// `fs_extra` drops times and follows links (see docs/dependencies.md): here are none, and only names matter.
#[test]
fn a_part_of_the_example_is_adopted_where_it_lies() {
    let place = Place::new();
    let part = place.path("part");
    let options = fs_extra::dir::CopyOptions::new();
    for (folder, to) in [
        ("agents", ""),
        ("sessions/20240603_周报", "sessions"),
        ("sessions/20240611_unit_tests", "sessions"),
    ] {
        let to = part.join(to);
        std::fs::create_dir_all(&to).unwrap();
        let from = repository().join("examples/cloud_home").join(folder);
        fs_extra::dir::copy(from, to, &options).unwrap();
    }
    place.ok(["init", "part"]);
    let listed = place.json(["ls", "--home", "part", "--sort", "id"]);
    let sessions = listed["sessions"].as_array().unwrap();
    let shown: Vec<_> = sessions
        .iter()
        .map(|s| (s["id"].as_str().unwrap(), s["agent"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ("20240603_周报", "writer_agent"),
            ("20240611_unit_tests", "coding_agent")
        ]
    );
}
