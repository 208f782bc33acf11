//! `wbhome export`: a session, or something in one, into a folder that a person carries or uploads by hand.
//!
//! Each item goes its way alone: it is looked at, every byte, name and link target of it, and what was looked at is what
//! is written, by the digests. It is read back before it gets its name, and never takes the place of anything. Nothing in
//! the home is changed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Kind as ErrorKind, Result};
use crate::disk::{self, Dir};
use crate::home::{Home, OnFind, RelPath, SessionId};
use crate::secrets::{Check, Match};

mod copied;
mod look;
mod names;
mod packed;
mod prepare;
mod source;
#[cfg(test)]
mod tests;

use prepare::Ready;

/// So often is something read again that changes while it is exported.
const ATTEMPTS: u32 = 3;

/// What of a home is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The session.
    pub id: SessionId,
    /// Something in it; none for the session as a pack.
    pub path: Option<RelPath>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Item by item.
    pub items: Vec<Wanted>,
    /// The folder it is put in, absolute.
    pub to: PathBuf,
    /// Whether packs hold the logs.
    pub logs: bool,
    /// What a secret means.
    pub on_find: OnFind,
    /// How hard packs are compressed: a level of zstd.
    pub level: i32,
}

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole session, as a pack.
    Session,
    /// A file of one, as it is.
    File,
    /// A folder of one, as it is.
    Folder,
}

/// Where it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// In `sessions/`.
    Folder,
    /// In `archive/`.
    Archive,
}

/// Where a secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// In what a file holds.
    Content,
    /// In a name.
    Name,
    /// In what a link points to.
    Link,
    /// In an extended attribute.
    Attribute,
}

/// A secret in what would leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where in it.
    pub part: Part,
    /// The file, beginning with the session's id. A name that holds a secret is cut off there.
    #[serde(flatten)]
    pub path: WirePath,
    /// What was found.
    #[serde(flatten)]
    pub found: Match,
}

/// Something that is not in what was exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Beginning with the session's id.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

/// Something that is, would be, or must not be exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The session.
    pub id: String,
    /// What of it; none for the session as a pack.
    pub inside: Option<WirePath>,
    /// What it is.
    pub kind: Kind,
    /// Where it is read.
    pub from: From,
    /// The file or folder that it becomes, absolute.
    pub to: WirePath,
    /// Files in it.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// The length of what was written; none before that.
    pub written: Option<u64>,
    /// Files of the logs that are left out of a pack.
    pub logs: u64,
    /// What can not be exported: sockets, FIFOs, devices.
    pub left_out: Vec<LeftOut>,
    /// Files that were being written: what was exported is their text of a moment.
    pub being_written: Vec<WirePath>,
    /// The secrets that were found.
    pub findings: Vec<Finding>,
    /// Findings that `[secrets] allow` passes over.
    pub allowed: u64,
    /// Names that others may not take, a line each.
    pub notes: Vec<String>,
}

/// An item that could not be exported, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The session.
    pub id: String,
    /// What of it.
    pub inside: Option<WirePath>,
    /// Why, for a person.
    pub why: String,
    /// What can be done about it.
    pub hints: Vec<String>,
    /// What the program exits with when it is the only one.
    #[serde(skip)]
    pub exit: Exit,
}

/// What would be exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// What nothing stands in the way of.
    pub items: Vec<Item>,
    /// What stays here because of a secret.
    pub held_back: Vec<Item>,
    /// What can not be exported.
    pub refused: Vec<Refused>,
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What is in the folder now.
    pub exported: Vec<Item>,
    /// What stays here because of a secret.
    pub held_back: Vec<Item>,
    /// What could not be exported.
    pub refused: Vec<Refused>,
    /// Whether somebody interrupted it: what comes after the last one was not begun.
    pub interrupted: bool,
}

/// What an item became.
enum Done {
    Exported(Item),
    HeldBack(Item),
}

/// Looks at all that is wanted, and says what an export would do. Writes nothing but, of archived sessions, what is
/// unpacked into the home's own folder for the time of the look.
///
/// # Errors
/// A folder that can not take anything: one that is not there, or in the home. An interruption.
pub fn plan(home: &Home, request: &Request, check: &Check, context: &Context) -> Result<Plan> {
    let export = Export::begin(home, request, check, context)?;
    let mut plan = Plan::default();
    let mut taken = BTreeSet::new();
    for wanted in &request.items {
        match export.prepare(wanted, &taken) {
            Ok(ready) if ready.is_held(request) => plan.held_back.push(ready.item),
            Ok(ready) => {
                taken.insert(ready.name);
                plan.items.push(ready.item);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => plan.refused.push(export.refused(wanted, &error)),
        }
    }
    Ok(plan)
}

/// Exports what is wanted: item by item as [`plan`] looks at it, and then what was looked at.
///
/// # Errors
/// As [`plan`], but for an interruption, which the outcome tells.
pub fn apply(home: &Home, request: &Request, check: &Check, context: &Context) -> Result<Outcome> {
    let export = Export::begin(home, request, check, context)?;
    let mut outcome = Outcome::default();
    let mut taken = BTreeSet::new();
    for wanted in &request.items {
        let done = export.prepare(wanted, &taken).and_then(|ready| {
            let name = ready.name.clone();
            Ok((name, export.write(ready)?))
        });
        match done {
            Ok((name, Done::Exported(item))) => {
                taken.insert(name);
                outcome.exported.push(item);
            }
            Ok((_, Done::HeldBack(item))) => outcome.held_back.push(item),
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                outcome.interrupted = true;
                break;
            }
            Err(error) => outcome.refused.push(export.refused(wanted, &error)),
        }
    }
    Ok(outcome)
}

/// An export, with all that stays the same from item to item.
struct Export<'a> {
    home: &'a Home,
    request: &'a Request,
    check: &'a Check,
    to: Dir,
    context: &'a Context<'a>,
}

impl<'a> Export<'a> {
    fn begin(
        home: &'a Home,
        request: &'a Request,
        check: &'a Check,
        context: &'a Context<'a>,
    ) -> Result<Export<'a>> {
        let folder = &request.to;
        let fail = |e| Error::io("can not open the folder", folder, e);
        let to = Dir::open(folder).map_err(|e| match disk::is_nowhere(&e) {
            true => Error::failed("there is no folder:")
                .at(folder)
                .hint("make it first, or mount what it is on"),
            false => fail(e),
        })?;
        if disk::is_inside(folder, home.root()).map_err(fail)? {
            return Err(Error::failed("lies in the home:")
                .at(folder)
                .hint("name a folder outside: what is exported is for somewhere else"));
        }
        Ok(Export {
            home,
            request,
            check,
            to,
            context,
        })
    }

    fn write(&self, ready: Ready) -> Result<Done> {
        if ready.is_held(self.request) {
            return Ok(Done::HeldBack(ready.item));
        }
        match ready.item.kind {
            Kind::Session => packed::write(self, ready),
            Kind::File | Kind::Folder => copied::write(self, ready),
        }
    }

    fn refused(&self, wanted: &Wanted, error: &Error) -> Refused {
        let inside = wanted.path.as_ref().filter(|path| !path.is_empty());
        Refused {
            id: self.told(wanted.id.as_str()),
            inside: inside.map(|path| self.check.shown(path.as_path()).into()),
            why: self.told(&error.to_string()),
            hints: error.hints().iter().map(|hint| self.told(hint)).collect(),
            exit: error.kind().exit(),
        }
    }

    /// A text as it may be told: a path in it may hold a secret.
    fn told(&self, text: &str) -> String {
        let shown = self.check.shown(Path::new(text));
        shown.to_string_lossy().into_owned()
    }

    /// Something of a session as it may be told.
    fn shown(&self, id: &SessionId, rel: &Path) -> WirePath {
        let path = match rel.as_os_str().is_empty() {
            true => PathBuf::from(id.as_str()),
            false => Path::new(id.as_str()).join(rel),
        };
        self.check.shown(&path).into()
    }

    /// An error about a name that another item has.
    fn taken(&self, name: &OsString) -> Error {
        Error::failed("is the name of another item, too:")
            .at(self.request.to.join(name))
            .hint("export the two into two folders")
    }

    /// An error about what stands under a name in the folder already.
    fn in_the_way(&self, name: &OsString) -> Error {
        Error::failed("is there already:")
            .at(self.request.to.join(name))
            .hint("nothing is written over: name another folder with --to, or move that away")
    }
}
