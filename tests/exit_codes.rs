//! `docs/exit-codes.md` is the contract: it and the program say the same.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it reads the documents"
)]

mod support;

use support::Place;
use wbhome::base::Exit;

/// Every exit code. The match makes this list grow with the enum.
fn all() -> Vec<Exit> {
    use Exit::*;
    let all = vec![
        Done,
        Failed,
        Usage,
        Partial,
        Problems,
        NoHome,
        Locked,
        Newer,
        Bug,
        Interrupted,
    ];
    for exit in &all {
        match exit {
            Done | Failed | Usage | Partial | Problems | NoHome | Locked | Newer | Bug
            | Interrupted => {}
        }
    }
    all
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/exit-codes.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_table_has_every_code_once() {
    let written: Vec<u8> = document()
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    let mut known: Vec<u8> = all().into_iter().map(Exit::code).collect();
    known.sort_unstable();
    assert_eq!(written, known);
}

#[test]
fn the_order_is_that_of_merging() {
    let text = document();
    let order = text.lines().find(|line| line.contains(" > ")).unwrap();
    let codes: Vec<u8> = order
        .split(" > ")
        .map(|code| code.trim().parse().unwrap())
        .collect();
    let exits: Vec<Exit> = codes
        .iter()
        .map(|code| all().into_iter().find(|exit| exit.code() == *code).unwrap())
        .collect();
    assert_eq!(exits.len(), all().len() - 1, "all but usage");
    for (graver, exit) in exits.iter().enumerate() {
        for lesser in &exits[graver..] {
            assert_eq!(exit.merge(*lesser), *exit);
            assert_eq!(lesser.merge(*exit), *exit);
        }
    }
}

#[test]
fn help_and_manual_name_the_same_codes() {
    let place = Place::new();
    let help = place.ok(["--help"]);
    place.ok(["man", "man"]);
    let manual = place.text("man/wbhome.1");
    for code in all().into_iter().map(Exit::code) {
        // What a bug looks like is no news to whoever reads the help.
        assert!(
            code == 101 || help.contains(&format!(" {code} ")),
            "{code}: {help}"
        );
        assert!(manual.contains(&code.to_string()), "{code}");
    }
}
