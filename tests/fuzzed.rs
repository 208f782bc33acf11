//! What `cargo fuzz` has found worth keeping, through the same bodies as there: the corpus of each target, and every input
//! that once broke something. Nothing is random here, and libFuzzer is not needed.

#![cfg(feature = "oracle")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "they lay out their own folders and say what went wrong"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[path = "fuzz/bodies/mod.rs"]
mod bodies;

/// What one target may keep: more of it says no more, and every clone carries it.
const MOST_FILES: usize = 150;
const MOST_BYTES: u64 = 300 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz")
}

/// The inputs in a folder, in order; none where there is no folder.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs all that is kept of a target; how much of it was understood.
fn replay(target: &str) {
    let (_, body) = bodies::ALL
        .iter()
        .find(|(name, _)| *name == target)
        .unwrap();
    let corpus = inputs(&fuzz().join("corpus").join(target));
    let bytes = corpus.iter().map(|path| path.metadata().unwrap().len());
    assert!(corpus.len() <= MOST_FILES, "{target}: {}", corpus.len());
    assert!(bytes.sum::<u64>() <= MOST_BYTES, "{target} keeps too much");
    let crashes = inputs(&fuzz().join("crashes").join(target));
    let (mut understood, mut refused) = (0, 0);
    for path in corpus.iter().chain(&crashes) {
        // What fails says which input it was.
        eprintln!("{}", path.display());
        match body(&std::fs::read(path).unwrap()) {
            true => understood += 1,
            false => refused += 1,
        }
    }
    assert!(understood >= 3, "{target}: {understood} were understood");
    assert!(refused >= 1, "{target}: nothing is refused");
}

macro_rules! targets {
    ($($target:ident),*) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target));
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($target)),*];
    };
}

targets!(
    conflict_name,
    index,
    journal,
    pack_manifest,
    pack_reader,
    path_rewriting,
    relay_names,
    relay_said,
    rotate_state,
    secret_rules,
    seek_table,
    session_record,
    settings,
    snapshot
);

#[test]
fn each_target_has_a_body_a_corpus_and_a_test() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let files = inputs(&fuzz().join(folder)).into_iter();
        files
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    let known: BTreeSet<String> = bodies::ALL.iter().map(|(n, _)| (*n).to_owned()).collect();
    assert_eq!(known, TESTED.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(stems("fuzz_targets"), known);
    assert_eq!(stems("corpus"), known);
    let crashed = stems("crashes");
    assert!(crashed.is_subset(&known), "{crashed:?} of no target");
}
