//! `wbhome search`: what was said, noted and made in sessions, archived or not.
//!
//! Everything is read when it is asked for: there is no index of words that could be old. JSON is searched as people see
//! it (`escapes`, `json`), everything else line by line (`lines`, `text`). A session is a unit of work (`work`); what is
//! found is told in order, newest session first, while the rest is still being searched.

mod escapes;
mod folder;
mod json;
mod kept;
mod lines;
mod natural;
mod packed;
mod pattern;
mod sessions;
mod telling;
mod text;
mod work;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

pub use lines::{Line, Want};
pub use pattern::{Meaning, Pattern};

use crate::base::wire::WirePath;
use crate::base::{Context, Result};
use crate::home::{Home, SessionId, turn_number};

use json::Place;

/// What is searched, and for what.
#[derive(Clone, Debug)]
pub struct Request {
    /// For what.
    pub pattern: Pattern,
    /// What is to be told.
    pub want: Want,
    /// These sessions, wherever they are; empty for all.
    pub sessions: Vec<SessionId>,
    /// Archived sessions, too.
    pub archived: bool,
    /// Only what lies below these folders of a session; empty for everything.
    pub kinds: Vec<String>,
}

/// A session that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// When something was last written in it, as the cache knows.
    pub updated: Option<Timestamp>,
    /// Whether it is read from its archive.
    pub archived: bool,
}

/// A file of a session.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// The session.
    pub session: SessionId,
    /// Whether it was read from its archive.
    pub archived: bool,
    /// Below the session.
    #[serde(flatten)]
    pub path: WirePath,
}

/// A line that matches.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// The file.
    #[serde(flatten, serialize_with = "the_file")]
    pub file: Arc<File>,
    /// The number of the turn, in the file of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The line of the file; of a JSON value that on which it begins.
    pub line: u64,
    /// In JSON the value, as a JSON pointer (RFC 6901).
    pub pointer: Option<String>,
    /// In JSON the line of the value.
    pub within: Option<u64>,
    /// In JSON the role that the innermost object around the value has.
    pub role: Option<String>,
    /// In JSON the way to the value in brief.
    #[serde(skip)]
    pub brief: String,
    /// The line.
    #[serde(flatten)]
    pub found: Line,
}

/// How many lines of a session match.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    /// The session.
    pub session: SessionId,
    /// Whether it was read from its archive.
    pub archived: bool,
    /// Lines that match.
    pub lines: u64,
    /// Files that they are in.
    pub files: u64,
}

/// What could not be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// A file or folder below the home.
    pub path: WirePath,
    /// Why.
    pub why: String,
}

/// What is told, in order.
#[derive(Debug)]
pub enum Told<'t> {
    /// What follows is of this session. Nothing is told of one without a match.
    Session(&'t Session),
    /// A line, with [`Want::Lines`].
    Hit(&'t Hit),
    /// A file, with [`Want::Files`].
    File(&'t File),
    /// A session, with [`Want::Count`].
    Count(&'t Count),
    /// Something that could not be searched.
    Unread(&'t Unread),
    /// That was all of the session.
    End,
}

/// Takes what is told. To break ends the search.
pub type Teller<'t> = dyn FnMut(Told<'_>) -> Result<ControlFlow<()>> + 't;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Sessions that were searched.
    pub sessions: u64,
    /// Those with a match.
    pub matched: u64,
    /// Lines that were told, or files with [`Want::Files`].
    pub found: u64,
    /// What could not be searched.
    pub unread: u64,
    /// Archived sessions that were left out, because nobody asked for them.
    pub left_out: u64,
}

/// Searches.
///
/// # Errors
/// A session that was named and is nowhere; interruption; what `teller` fails with. What can not be read is told, and the
/// search goes on.
pub fn search(
    home: &Home,
    request: &Request,
    teller: &mut Teller<'_>,
    context: &Context,
) -> Result<Outcome> {
    let (sessions, left_out) = sessions::of(home, request)?;
    let outcome = work::run(home, request, &sessions, teller, context)?;
    Ok(Outcome {
        left_out,
        ..outcome
    })
}

fn the_file<S: Serializer>(
    file: &Arc<File>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    file.as_ref().serialize(serializer)
}

impl File {
    fn new(session: &Session, path: PathBuf) -> File {
        File {
            session: session.id.clone(),
            archived: session.archived,
            path: path.into(),
        }
    }
}

impl Hit {
    fn new(file: Arc<File>, line: Line, place: Option<(Place, u64)>) -> Hit {
        let turn = match file.path.parent() == Some(Path::new("context")) {
            true => file.path.file_name().and_then(turn_number),
            false => None,
        };
        let (place, within) =
            place.map_or((None, None), |(place, within)| (Some(place), Some(within)));
        let number = line.number;
        let (pointer, role, brief) = match place {
            Some(place) => (Some(place.pointer), place.role, place.brief),
            None => (None, None, String::new()),
        };
        Hit {
            file,
            turn,
            line: number,
            pointer,
            within,
            role,
            brief,
            found: line,
        }
    }
}
