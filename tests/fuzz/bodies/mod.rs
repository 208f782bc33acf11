//! What is done with any bytes, one file a format. The targets of `cargo fuzz` and `tests/fuzzed.rs` run the same.
//!
//! Each `run` says whether what it was given was understood: a corpus in which nothing is understood proves nothing.

#![allow(
    dead_code,
    reason = "a target runs one of them, and the tests run all of them"
)]

pub mod conflict_name;
pub mod index;
pub mod journal;
pub mod pack_manifest;
pub mod pack_reader;
pub mod path_rewriting;
pub mod place;
pub mod relay_names;
pub mod relay_said;
pub mod rotate_state;
pub mod secret_rules;
pub mod seek_table;
pub mod session_record;
pub mod settings;
pub mod snapshot;

/// What is run, by name.
pub type Body = fn(&[u8]) -> bool;

/// Every target, by the name of its file and of its folder of inputs.
pub const ALL: [(&str, Body); 14] = [
    ("conflict_name", conflict_name::run),
    ("index", index::run),
    ("journal", journal::run),
    ("pack_manifest", pack_manifest::run),
    ("pack_reader", pack_reader::run),
    ("path_rewriting", path_rewriting::run),
    ("relay_names", relay_names::run),
    ("relay_said", relay_said::run),
    ("rotate_state", rotate_state::run),
    ("secret_rules", secret_rules::run),
    ("seek_table", seek_table::run),
    ("session_record", session_record::run),
    ("settings", settings::run),
    ("snapshot", snapshot::run),
];
