//! Homes that somebody has made to do harm: every verb over each of them, and nothing outside is read or changed, nothing
//! hangs, nothing panics, and no more memory is taken than a home takes.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders"
)]

#[path = "../support/mod.rs"]
mod support;

mod contents;
mod links;
mod others;
mod records;
mod repositories;
mod settings;
mod sizes;
mod stores;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use support::verbs::{BRIEFLY, CHANGING, LOOKING, Siege};

/// A way to do harm with what lies in a home, beside what is told of it.
type Kind = (&'static str, fn(&mut Siege));

/// Something in the home, by its path there.
fn at(siege: &Siege, rel: &str) -> PathBuf {
    siege.place.home().join(rel)
}

/// A path of the session that the harm is done with.
fn within(siege: &Siege, rel: &str) -> PathBuf {
    at(siege, "sessions/20240603_crawler").join(rel)
}

/// A link takes the place of what is there.
fn link_out(siege: &Siege, rel: &str, to: &str) {
    let path = at(siege, rel);
    clear(&path);
    symlink(siege.outside.path(to), path).unwrap();
}

/// Makes room for something.
fn clear(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => fs::create_dir_all(path.parent().unwrap()).unwrap(),
    }
}

/// A pipe, or a device that never ends, takes the place of what is there.
fn special(path: &Path, kind: rustix::fs::FileType, device: u64) {
    use rustix::fs::{CWD, Mode, mknodat};
    clear(path);
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device).unwrap();
}

fn fifo(path: &Path) {
    special(path, rustix::fs::FileType::Fifo, 0);
}

/// A file of so many bytes, none of which takes room.
fn sparse(path: &Path, bytes: u64) {
    clear(path);
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

/// All verbs over each of them.
fn besiege(kinds: &[Kind]) {
    with_all(kinds, &[LOOKING, CHANGING]);
}

/// The verbs that would do most harm over each of them: where the home is refused at its door, the others come no further.
/// With `WBHOME_SIEGE=whole` all verbs, as by hand.
fn besiege_briefly(kinds: &[Kind]) {
    match std::env::var("WBHOME_SIEGE").is_ok_and(|siege| siege == "whole") {
        true => besiege(kinds),
        false => with_all(kinds, &[BRIEFLY]),
    }
}

fn with_all(kinds: &[Kind], verbs: &[&[&[&str]]]) {
    // Told by the test's own thread: what others print belongs to no test.
    let wrong: Vec<String> = kinds
        .par_iter()
        .flat_map_iter(|(kind, plant)| {
            let mut siege = Siege::new(kind);
            plant(&mut siege);
            siege.outside.watch();
            verbs.iter().for_each(|verbs| siege.runs(verbs));
            siege.wrongs()
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
