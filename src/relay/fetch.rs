//! `wbhome relay fetch`: a read-only copy of what the relay has of a session, for a person to look at.
//!
//! It is built beside its place under a temporary name, compared, and renamed, so that no half of one is ever seen. A note
//! beside it says where it came from. Neither the home nor the relay is touched.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::devices::Holder;
use super::lay::{self, Laid, Piece};
use super::place::Relay;
use super::standing::Side;
use super::version::{self, ATTEMPTS, Odd, Sender};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, FolderLock, Written};
use crate::home::{Home, SessionId};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The session, as a person names it.
    pub session: String,
    /// The folder that the copy is put into; made when it is missing.
    pub to: PathBuf,
}

/// What would be copied.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The session.
    #[serde(rename = "id")]
    pub session: SessionId,
    /// The relay.
    pub relay: WirePath,
    /// The copy.
    pub to: WirePath,
    /// The note of its origin, beside it.
    pub note: WirePath,
    /// Who has sent it; none when no other device says so.
    pub sender: Option<Sender>,
    /// Who holds its lease.
    pub lease: Option<Holder>,
    /// Files and links.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// FIFOs, sockets and devices, which are no content.
    pub left_out: Vec<Odd>,
    /// What can not be read.
    pub unread: Vec<Odd>,
    /// Links that lead out of the session; they are copied as links.
    pub leading_out: Vec<Odd>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What was copied.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What was done of the plan.
    #[serde(flatten)]
    pub done: Plan,
    /// When.
    pub fetched_at: Timestamp,
}

/// The note beside a copy.
#[derive(Serialize)]
struct Origin<'p> {
    format: u64,
    id: &'p SessionId,
    relay: &'p WirePath,
    sent_by: &'p Option<Sender>,
    lease: &'p Option<Holder>,
    fetched_at: Timestamp,
    files: u64,
    bytes: u64,
    left_out: Vec<&'p Odd>,
}

/// What is needed of a note that is there already.
#[derive(Deserialize)]
struct Noted {
    format: u64,
    id: String,
}

/// The format of the note.
const FORMAT: u64 = 1;

/// What fetching would do. Only names are looked at.
///
/// # Errors
/// A session that the relay does not have, or that is no folder there; a place that is taken, or in the home or the relay.
pub fn plan(home: &Home, relay: &Relay, request: &Request, context: &Context) -> Result<Plan> {
    let id = version::meant(relay, &request.session)?
        .ok_or_else(|| version::unknown(relay, &request.session))?;
    refuse_place(home, relay, &request.to)?;
    let side = version::open(home, relay, &id, context.stop)?;
    let to = request.to.join(id.as_str());
    let note = request.to.join(format!("{id}.origin.json"));
    refuse_taken(&to)?;
    refuse_other_note(&note, &id)?;
    let synced = disk::sync_folder(&request.to).map(|(_, client)| {
        format!("the folder seems to be synced by {client}: the copy would travel with it")
    });
    let empty = side.content().next().is_none().then(|| {
        "the version holds no file: the sync client may not have begun with it".to_owned()
    });
    let mut plan = Plan {
        relay: relay.path.clone().into(),
        to: to.into(),
        note: note.into(),
        sender: version::sender(relay, &id),
        lease: relay.devices.holder(id.as_str()),
        files: 0,
        bytes: 0,
        left_out: Vec::new(),
        unread: Vec::new(),
        leading_out: Vec::new(),
        warnings: synced.into_iter().chain(empty).collect(),
        session: id,
    };
    plan.told(&side, None);
    Ok(plan)
}

fn refuse_place(home: &Home, relay: &Relay, to: &Path) -> Result<()> {
    let inside = |folder: &Path| {
        disk::is_inside(to, folder).map_err(|e| Error::io("can not look at", to, e))
    };
    if inside(&relay.path)? {
        return Err(Error::failed("the folder lies in the relay:")
            .at(to)
            .hint("the copy would travel: --to names a folder outside of it"));
    }
    if inside(home.root())? {
        return Err(Error::failed("the folder lies in the home:")
            .at(to)
            .hint("--to names a folder outside of it; `wbhome relay take` makes the version the home's own"));
    }
    match disk::stat(&disk::real_path(to)?)? {
        Some(meta) if meta.kind != FileKind::Folder => {
            Err(Error::failed(format!("there is {} already:", meta.kind.described())).at(to))
        }
        _ => Ok(()),
    }
}

fn refuse_taken(to: &Path) -> Result<()> {
    match disk::exists(to) {
        false => Ok(()),
        true => Err(
            Error::failed("is there already, and nothing is written over:")
                .at(to)
                .hint("--to names another folder; or move away what is there"),
        ),
    }
}

/// A note of a fetch that was killed before its copy got its name may be written anew, and nothing else.
fn refuse_other_note(path: &Path, id: &SessionId) -> Result<Option<Vec<u8>>> {
    if !disk::exists(path) {
        return Ok(None);
    }
    let content = disk::read_small(path, 16 << 20).ok().flatten();
    let noted = content.filter(|content| {
        let noted = serde_json::from_slice::<Noted>(content);
        noted.is_ok_and(|noted| noted.format == FORMAT && noted.id == id.as_str())
    });
    match noted {
        Some(content) => Ok(Some(content)),
        None => refuse_taken(path).map(|()| None),
    }
}

impl Plan {
    /// Notes what a look at the version has found, or what came of copying it.
    fn told(&mut self, side: &Side, laid: Option<&Laid>) {
        let odd = |(path, why): (&PathBuf, &String)| Odd::new(path, why);
        let (mut files, mut bytes) = (0, 0);
        for (_, item) in side.content() {
            files += 1;
            bytes += item.bytes();
        }
        (self.files, self.bytes) = laid.map_or((files, bytes), |laid| (laid.files, laid.bytes));
        let special = side.special.iter();
        self.left_out = special
            .map(|(path, kind)| Odd::new(path, kind.described()))
            .collect();
        let unread = side.unread.iter().map(|(path, why)| (path, why));
        let unread = unread.chain(laid.into_iter().flat_map(|laid| &laid.unread));
        self.unread = unread.map(odd).collect();
        let links = side.leading_out().into_iter();
        self.leading_out = links
            .map(|(path, target)| Odd::new(path, human::bytes(&target)))
            .collect();
    }

    fn origin(&self, at: Timestamp) -> Result<Vec<u8>> {
        let origin = Origin {
            format: FORMAT,
            id: &self.session,
            relay: &self.relay,
            sent_by: &self.sender,
            lease: &self.lease,
            fetched_at: at,
            files: self.files,
            bytes: self.bytes,
            left_out: self.left_out.iter().chain(&self.unread).collect(),
        };
        let mut text = serde_json::to_vec_pretty(&origin)
            .map_err(|e| Error::io("can not write", &*self.note, e))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Copies the version.
///
/// # Errors
/// A version that changes each time that it is read; a place that was taken meanwhile; what can not be written;
/// interruption. Then nothing is there.
pub fn apply(home: &Home, relay: &Relay, plan: Plan, context: &Context) -> Result<Outcome> {
    let id = plan.session.clone();
    let look = &mut || version::open(home, relay, &id, context.stop);
    let folder = plan.to.parent().unwrap_or(Path::new("/")).to_path_buf();
    disk::create_private_folder(&folder)?;
    refuse_place(home, relay, &folder)?;
    match copy(&folder, plan, look, context)? {
        Some(outcome) => Ok(outcome),
        None => Err(version::restless(relay, &id)),
    }
}

/// Builds the copy and gives it its name; `None` when each look has found another version.
fn copy(
    folder: &Path,
    mut plan: Plan,
    look: &mut dyn FnMut() -> Result<Side>,
    context: &Context,
) -> Result<Option<Outcome>> {
    let fail = |e| Error::io("can not write to", folder, e);
    let dir = Dir::open(folder).map_err(fail)?;
    clear(&dir).map_err(fail)?;
    let mut side = look()?;
    for _ in 0..ATTEMPTS {
        let built = Built::new(&dir, context).map_err(fail)?;
        let laid = lay::lay(&built.copy, &pieces(&side), context)?;
        let after = look()?;
        if laid.restless || !after.is_as(&side) {
            side = after;
            continue;
        }
        plan.told(&side, Some(&laid));
        let top = &side.top;
        built
            .copy
            .set_mode(FOLDER)
            .and_then(|()| built.copy.set_time(top.mtime))
            .and_then(|()| disk::sync_filesystem(&dir))
            .map_err(fail)?;
        failpoint::hit("relay-fetch.built");
        return named(plan, built, context).map(Some);
    }
    Ok(None)
}

/// Nobody writes to the folders of a copy, and nobody else reads them.
const FOLDER: u32 = 0o500;

fn pieces(side: &Side) -> Vec<Piece<'_>> {
    let piece = |(path, item)| {
        let item: &super::standing::Item = item;
        let path: &PathBuf = path;
        Piece {
            path,
            from: side,
            item,
            mode: match item.meta.kind {
                FileKind::Folder => FOLDER,
                _ => 0o400 | item.meta.mode & 0o100,
            },
            owner: None,
            attributes: false,
            holds: None,
        }
    };
    side.items.iter().map(piece).collect()
}

/// Writes the note, and gives the copy its name.
fn named(plan: Plan, built: Built, context: &Context) -> Result<Outcome> {
    let at = context.clock.now();
    let text = plan.origin(at)?;
    let fail = |e| Error::io("can not write", &*plan.to, e);
    let former = refuse_other_note(&plan.note, &plan.session)?;
    if disk::replace(&plan.note, former.as_deref(), &text, 0o400)? != Written::Done {
        return Err(Error::failed("was made meanwhile by somebody else:").at(&*plan.note));
    }
    failpoint::hit("relay-fetch.noted");
    let name = OsStr::new(plan.session.as_str());
    if let Err(error) = built.dir.rename(&built.name, built.dir, name) {
        disk::remove_file(&plan.note)?;
        refuse_taken(&plan.to)?;
        return Err(fail(error));
    }
    built.dir.sync().map_err(fail)?;
    Ok(Outcome {
        done: plan,
        fetched_at: at,
    })
}

/// How the name of a copy begins that is being built.
fn prefix() -> String {
    format!("{}fetch-", disk::TEMPORARY_PREFIX)
}

/// A copy that is being built; gone when it is dropped before it got its name.
struct Built<'d> {
    dir: &'d Dir,
    name: OsString,
    copy: Dir,
    /// It says that somebody works here.
    _held: FolderLock,
}

impl Built<'_> {
    fn new<'d>(dir: &'d Dir, context: &Context) -> std::io::Result<Built<'d>> {
        loop {
            let name = OsString::from(format!("{}{:032x}", prefix(), context.clock.random()));
            dir.make(&name)?;
            let copy = dir.open_beneath(Path::new(&name));
            // Until it is locked somebody else may take it for one that was left.
            if let Ok(copy) = copy
                && let Some(held) = FolderLock::attempt(&copy)?
                && dir.find(&name)?.is_some()
            {
                return Ok(Built {
                    dir,
                    name,
                    copy,
                    _held: held,
                });
            }
        }
    }
}

impl Drop for Built<'_> {
    fn drop(&mut self) {
        // What stays is cleared by the next fetch into the same folder.
        let _ = disk::remove_tree(self.dir, &self.name);
    }
}

/// Removes what fetches that were killed have left in a folder. One that somebody works in is left alone.
fn clear(dir: &Dir) -> std::io::Result<()> {
    for (name, _) in dir.names()? {
        if !name.as_encoded_bytes().starts_with(prefix().as_bytes()) {
            continue;
        }
        if let Ok(left) = dir.open_beneath(Path::new(&name))
            && let Some(_held) = FolderLock::attempt(&left)?
        {
            disk::remove_tree(dir, &name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::home::testing;

    /// Fetches a version that is written to before each of the first `changes` looks. What is in the folder then.
    fn fetched(changes: u32) -> (bool, Vec<OsString>) {
        let place = testing::home();
        let (there, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = there.path().join("数据.json");
        std::fs::write(&file, "0").unwrap();
        let looks = Cell::new(0);
        let look = &mut || {
            looks.set(looks.get() + 1);
            if looks.get() <= changes {
                std::fs::write(&file, "x".repeat(looks.get() as usize)).unwrap();
            }
            Side::look(Dir::open(there.path()).unwrap(), place.context().stop)
        };
        let session = SessionId::adopt("20240603_数据").unwrap();
        let plan = Plan {
            relay: there.path().to_path_buf().into(),
            to: to.path().join(session.as_str()).into(),
            note: to.path().join("note").into(),
            sender: None,
            lease: None,
            files: 0,
            bytes: 0,
            left_out: Vec::new(),
            unread: Vec::new(),
            leading_out: Vec::new(),
            warnings: Vec::new(),
            session,
        };
        let done = copy(to.path(), plan, look, &place.context()).unwrap();
        let names = Dir::open(to.path()).unwrap().names().unwrap();
        let mut names: Vec<OsString> = names.into_iter().map(|(name, _)| name).collect();
        names.sort();
        (done.is_some(), names)
    }

    #[test]
    fn a_version_that_changes_is_read_again_and_then_given_up() {
        for changes in [0, 1, 2, 3] {
            let (done, names) = fetched(changes);
            assert!(done, "{changes}");
            assert_eq!(names, ["20240603_数据", "note"]);
        }
        assert_eq!(fetched(4), (false, Vec::new()));
    }
}
