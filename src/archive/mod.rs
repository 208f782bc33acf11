//! `wbhome archive` and `wbhome unarchive`: a session becomes `archive/<id>.tar.zst`, and a folder again.
//!
//! A pack gets its name when it has been read back and compared. Only then does the folder leave `sessions/`: into the
//! trash, where nobody writes to it by its name any more, and where it is compared with the pack once more. What is not
//! the same by then goes back. On the way home it is the other way round: the folder is complete and on the disk before
//! it gets its name, and the pack goes last.

pub mod away;
pub mod back;
mod former;
mod group;
mod packing;
mod putting_away;
mod record;

use std::path::Path;

use serde::Serialize;

use crate::base::{Context, Error, Exit, Kind, Result, Stop, human};
use crate::home::journal::{self, Completed, Pending};
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

/// So many sessions are completed at once: until they are, none of them is in its place. The index is read and written for
/// each group, which is all of it in a large home.
const MOST: usize = 2048;
/// A group with so many bytes takes no more sessions: what is put away is removed when all of the group is.
const ENOUGH: u64 = 64 << 20;

/// Takes the sessions one after the other: what happens to one does not stop the others. `group` takes some of the first,
/// and says what came of each; what it has begun it completes with the context that nobody stops. In the end all are
/// counted again.
///
/// # Errors
/// When they can not be counted.
fn one_by_one<D>(
    home: &LockedHome,
    ids: &[&SessionId],
    context: &Context,
    group: impl Fn(&[&SessionId], &Context) -> Vec<Result<D>>,
) -> Result<Ran<D>> {
    // What was done is counted, also when somebody wants to go.
    let stop = Stop::new();
    let going_on = Context {
        stop: &stop,
        ..*context
    };
    let mut ran = Ran {
        done: Vec::new(),
        refused: Vec::new(),
        interrupted: false,
    };
    let mut rest = ids;
    while !rest.is_empty() && !ran.interrupted {
        let taken = group(rest, &going_on);
        let (these, others) = rest.split_at(taken.len().clamp(1, rest.len()));
        rest = others;
        let before = ran.refused.len();
        for (id, taken) in these.iter().zip(taken) {
            match taken {
                Ok(done) => ran.done.push(done),
                Err(error) if error.kind() == Kind::Interrupted => ran.interrupted = true,
                Err(error) => ran.refused.push(Refused::new(id, &error)),
            }
        }
        // What could not be completed is for the next command: nothing more is begun on top of it.
        if ran.refused.len() > before && home.has_unsettled()? {
            break;
        }
    }
    refresh_cache(home, &going_on)?;
    Ok(ran)
}

/// Begins with the first sessions, until there are so many or so much of them, or one can not be begun. `begin` also tells
/// the length of what a session holds.
fn begin_some<'i, B>(
    ids: &[&'i SessionId],
    context: &Context,
    begin: impl Fn(&'i SessionId) -> Result<(B, u64)>,
) -> (Vec<B>, Option<Error>) {
    let (mut begun, mut bytes) = (Vec::new(), 0);
    for id in ids.iter().take(MOST) {
        match context.stop.check().and_then(|()| begin(id)) {
            Ok((one, length)) => {
                begun.push(one);
                bytes += length;
            }
            Err(error) => return (begun, Some(error)),
        }
        if bytes >= ENOUGH {
            break;
        }
    }
    (begun, None)
}

/// Completes what is written down of a group's sessions. When that fails it fails for all of them.
fn together(entries: Vec<Pending>, home: &LockedHome, context: &Context) -> Vec<Result<Completed>> {
    let count = entries.len();
    journal::complete_together(entries, home, context).unwrap_or_else(|error| {
        let told = error.to_string();
        let others = (1..count).map(|_| Err(Error::failed(told.clone())));
        let others: Vec<_> = others.collect();
        std::iter::once(Err(error)).chain(others).collect()
    })
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
