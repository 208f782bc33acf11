//! `wbhome archive` and `wbhome unarchive`: a session becomes `archive/<id>.tar.zst`, and a folder again.
//!
//! A pack gets its name when it has been read back and compared. Only then does the folder leave `sessions/`: into the
//! trash, where nobody writes to it by its name any more, and where it is compared with the pack once more. What is not
//! the same by then goes back. On the way home it is the other way round: the folder is complete and on the disk before
//! it gets its name, and the pack goes last.

pub mod away;
pub mod back;
mod former;
mod packing;
mod putting_away;
mod record;

use serde::Serialize;

use crate::base::{Error, Exit, human};
use crate::home::SessionId;

/// A session that a command did not touch, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its id.
    pub id: String,
    /// Why, for a person.
    pub why: String,
    /// What can be done about it.
    pub hints: Vec<String>,
    /// What the program exits with when it is the only one.
    #[serde(skip)]
    pub exit: Exit,
}

impl Refused {
    fn new(id: &SessionId, error: &Error) -> Refused {
        Refused {
            id: id.to_string(),
            why: error.to_string(),
            hints: error.hints().to_vec(),
            exit: error.kind().exit(),
        }
    }
}

/// The id as a person may see it.
fn shown(id: &SessionId) -> String {
    format!("`{}`", human::escape(id.as_str()))
}
