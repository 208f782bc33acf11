//! The pack, `<id>.tar.zst`: one format for archives, snapshots, exports and packed sources.
//!
//! Stock tools come first: `tar --zstd -xf` gives the exact tree. What this room adds stands behind the data, in two
//! skippable frames that every decoder ignores: the [`Manifest`], and the seek table of the public zstd seekable
//! format. With them a pack can be listed at once, verified member by member, and read in the middle. A pack that
//! somebody made by hand has neither, and is read from its beginning.
//!
//! ```text
//! frame  frame  frame …    zstd with checksums: one tar stream, cut where a member begins
//! skippable 0x184D2A57     "wbhome manifest\n", BLAKE3 of the rest, the manifest as zstd-compressed JSON
//! skippable 0x184D2A5E     seek table
//! ```

mod compare;
mod course;
mod discard;
mod files;
mod frames;
mod head;
mod lay;
mod learn;
mod manifest;
mod member;
mod names;
mod open;
mod order;
mod read;
mod records;
mod sparse;
mod stream;
mod survey;
mod tar;
mod trouble;
mod unpack;
mod verify;
mod write;

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod stock_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole_tests;

pub use compare::{Difference, compare};
pub use discard::discard;
pub use files::{Piece, read_files};
pub use manifest::{About, Frame, Manifest};
pub use member::{Member, MemberKind, short_digest};
pub use open::{Nature, Pack};
pub use read::{list, list_good, read_member};
pub use survey::{Survey, survey};
pub use unpack::{Limits, Unpacked, unpack};
pub use verify::{Problem, Verified, verify};
pub use write::{Flaw, FlawKind, Packed, write};

/// The ending of a pack's name.
pub const ENDING: &str = ".tar.zst";

/// The largest window that any frame of ours asks of its decoder (2²⁷ bytes): more would need a flag.
pub const WINDOW_LOG: u32 = 27;
