//! Unpacking: into a fresh folder, whatever the pack says.

use super::verify::Problem;
use super::{Member, Pack};
use crate::base::{Context, Result};
use crate::disk::Dir;

/// How much a pack may be taken at its word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Unpack what is proved good of a damaged pack, instead of nothing.
    pub salvage: bool,
}

/// What was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// The members, as they were read back from the disk.
    pub members: Vec<Member>,
    /// What is wrong with the pack, and so not here. Empty but for a salvage.
    pub problems: Vec<Problem>,
}

/// Unpacks the session into `into`, which is empty: its files lie directly in it, and it gets the mode and time of
/// the session's folder. Everything is read back and compared with the manifest, or of a pack made by hand with what
/// was decoded.
///
/// # Errors
/// A pack that is damaged, lies, or holds what may not be unpacked: `..`, absolute names, devices, a member under a
/// link, two of one name, more than the manifest says. What lies in `into` then is for the caller to remove; nothing
/// outside of it was touched.
pub fn unpack(pack: &Pack, into: &Dir, limits: Limits, context: &Context) -> Result<Unpacked> {
    let _ = (pack, into, limits, context);
    unimplemented!("the next commit")
}
