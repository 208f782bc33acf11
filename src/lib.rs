//! `wbhome` keeps AI-agent sessions safe on the local disk.
//!
//! The rooms, floor by floor. Imports point only downward; `tests/house.rs` holds that.
//!
//! | room | what it owns |
//! | --- | --- |
//! | [`cli`] | what a person types and reads: one file a verb |
//! | [`disaster`] | a whole home out of a store and the repository |
//! | [`doctor`] | whether a set-up is sound, with the cure for what is not |
//! | [`nightly`] | the night: its stages and its record; what makes the machine run it |
//! | [`migrate`] | off the sync drive: plan, transfer, settle, adopt, verify; what follows a move: state folder, relink, rename |
//! | [`check`] | what is wrong with a home, and the safe repairs |
//! | [`sessions`] | making, labelling, removing and restoring sessions; the index made to agree with the disk; project views |
//! | [`rotate`] | live logs are cut, and no line is lost |
//! | [`history`] | session text in git: commit, log, diff, bring back, push, keep small |
//! | [`archive`] | a session ⇄ `archive/<id>.tar.zst` |
//! | [`backup`] | the cold stores: packs of what changed, snapshots, retention, bringing back |
//! | [`relay`] | what goes to other devices, and what is looked at before: export |
//! | [`browse`] | list sessions, show and search what is in them, also in archives |
//! | [`pack`] | the .tar.zst format: write, read, verify, one member out of many |
//! | [`home`] | the layout of a home: settings, index, session records, lock, journal, swap, trash |
//! | [`state`] | the agent application's own folder: who is running, what in it follows a move |
//! | [`paths`] | finding and rewriting path references in any spelling |
//! | [`secrets`] | what must not leave: rules, scan, allow list |
//! | [`disk`] | every guarantee about files |
//! | [`base`] | errors and exit codes, clock, progress, sizes and ages |
//!
//! `std::fs` belongs to `disk`, `std::env` and printing to `cli`; `clippy.toml` bans them elsewhere. A
//! command that changes something is a plan and its application, and writing needs a `home::LockedHome`.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_macros,
        clippy::panic,
        reason = "tests lay out their own folders and say what went wrong"
    )
)]

pub mod archive;
pub mod backup;
pub mod base;
pub mod browse;
pub mod check;
pub mod cli;
pub mod disaster;
pub mod disk;
pub mod doctor;
pub mod history;
pub mod home;
pub mod migrate;
pub mod nightly;
pub mod pack;
pub mod paths;
pub mod relay;
pub mod rotate;
pub mod secrets;
pub mod sessions;
pub mod state;
