//! What will be in a pack: looked at before the first byte is written, so that the layout of frames and members
//! follows from the input alone.

use std::path::Path;

use super::Member;
use super::write::Flaw;
use crate::base::{Context, Result};
use crate::disk::{Dir, Entry, Meta};

/// Everything that will be packed.
#[derive(Debug)]
pub struct Survey {
    pub(super) top: String,
    pub(super) members: Vec<Member>,
    /// What each member was, beside it.
    pub(super) states: Vec<Meta>,
    /// The length of the content of each frame.
    pub(super) frames: Vec<u64>,
    pub(super) flaws: Vec<Flaw>,
}

/// Looks at everything below `dir`, which will be the folder `top` of the pack. What `skip` says yes to is left out.
///
/// # Errors
/// A folder that can not be opened, and interruption. What can not be read, and what is neither file, folder nor
/// link, is left out and told as a flaw.
pub fn survey(
    dir: &Dir,
    top: &str,
    skip: &(dyn Fn(&Path, &Entry) -> bool + Sync),
    context: &Context,
) -> Result<Survey> {
    let _ = (dir, top, skip, context);
    unimplemented!("the next commit")
}

impl Survey {
    /// The members, in the order of the pack.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What will not be in it.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// The length of the files together.
    pub fn bytes(&self) -> u64 {
        self.members.iter().map(|member| member.size).sum()
    }
}
