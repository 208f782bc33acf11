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

use std::path::Path;

use serde::Serialize;

use crate::base::{Context, Error, Exit, Kind, Result, Stop, human};
use crate::home::{LockedHome, SessionId, Status};
use crate::sessions::reconcile::refresh_cache;

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

/// What came of sessions that were taken one after the other.
struct Ran<D> {
    done: Vec<D>,
    refused: Vec<Refused>,
    interrupted: bool,
}

/// Takes the sessions one after the other: what happens to one does not stop the others. In the end they are counted
/// again.
///
/// # Errors
/// When they can not be counted.
fn one_by_one<'i, D>(
    home: &LockedHome,
    ids: impl Iterator<Item = &'i SessionId>,
    context: &Context,
    one: impl Fn(&SessionId) -> Result<D>,
) -> Result<Ran<D>> {
    let mut ran = Ran {
        done: Vec::new(),
        refused: Vec::new(),
        interrupted: false,
    };
    for id in ids {
        match context.stop.check().and_then(|()| one(id)) {
            Ok(done) => ran.done.push(done),
            Err(error) if error.kind() == Kind::Interrupted => {
                ran.interrupted = true;
                break;
            }
            Err(error) => {
                ran.refused.push(Refused::new(id, &error));
                // What could not be completed is for the next command: nothing more is begun on top of it.
                if home.has_unsettled()? {
                    break;
                }
            }
        }
    }
    // What was done is counted, also when somebody wants to go.
    let stop = Stop::new();
    let counting = Context {
        stop: &stop,
        ..*context
    };
    refresh_cache(home, &counting)?;
    Ok(ran)
}

/// That a session is not where it should be, and what can be done.
fn absent(id: &SessionId, status: Option<Status>, what: &str) -> Error {
    let name = shown(id);
    match status {
        Some(Status::Removed) => Error::failed(format!("{name} has been removed")).hint(format!(
            "`wbhome restore {} --from trash` brings it back",
            human::quoted(Path::new(id.as_str()))
        )),
        _ => {
            Error::failed(format!("{name} {what}")).hint("`wbhome check` tells what is known of it")
        }
    }
}

/// The id as a person may see it.
fn shown(id: &SessionId) -> String {
    format!("`{}`", human::name(id.as_str()))
}
