//! `wbhome unarchive`: out of the pack, read back and compared, and then into `sessions/` in one rename.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::former::{self, Former};
use super::packing::{content, told_one};
use super::record::{archive_field, entry_from, folder_of, pack_of};
use super::{Refused, absent, begin_some, one_by_one, shown, together};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Kind, Result, Total, failpoint, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::journal::{self, Completed, Pending, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Note, Was};
use crate::home::{Entry, Home, Index, IndexFile, Leases, LockedHome, Scratch, SessionId};
use crate::pack::{self, Limits, Nature, Pack, Problem};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which.
    pub sessions: Vec<SessionId>,
    /// Leave the packs where they are.
    pub keep: bool,
    /// Of a damaged pack, bring back what is proved good.
    pub force: bool,
}

/// A session that would be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Its id.
    pub id: SessionId,
    /// Files in the pack; none when it was made by hand, and does not say.
    pub files: Option<u64>,
    /// Their lengths together.
    pub bytes: Option<u64>,
    /// The length of the pack.
    pub packed: u64,
    /// Whether the pack was made by hand.
    pub foreign: bool,
    /// Whether the folder is there already; it will be compared.
    pub folder: bool,
}

/// What would be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Whether the packs stay.
    pub keep: bool,
    /// Session by session.
    pub sessions: Vec<Planned>,
    /// Those that are not archived: their folders are in `sessions/`.
    pub already: Vec<String>,
    /// Those that can not be brought back.
    pub refused: Vec<Refused>,
}

/// What of a pack could not be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Which part of the pack.
    pub part: String,
    /// What is wrong there.
    pub what: String,
    /// The files that are missing because of it, below the session.
    pub files: Vec<WirePath>,
}

impl From<&Problem> for Damage {
    fn from(problem: &Problem) -> Damage {
        Damage {
            part: problem.part.clone(),
            what: problem.what.clone(),
            files: problem.members.iter().cloned().map(WirePath).collect(),
        }
    }
}

/// A session that is back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Its id.
    pub id: SessionId,
    /// Files in its folder.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// Whether the folder was there before, and is what the pack holds.
    pub was_there: bool,
    /// Whether the pack is still in `archive/`.
    pub archive: bool,
    /// The act of the trash that the pack went into, when it was made by hand.
    pub act: Option<String>,
    /// What it was called when it was packed, when that was otherwise.
    pub was_called: Option<String>,
    /// What is wrong with the pack, and so not here.
    pub damage: Vec<Damage>,
    /// What was left and why, a line each.
    pub leftover: Vec<String>,
}

impl Done {
    /// Whether all of it is back.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.leftover.is_empty()
    }
}

/// What was brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Session by session.
    pub sessions: Vec<Done>,
    /// Those that were not archived.
    pub already: Vec<String>,
    /// Those that were not brought back, and why.
    pub refused: Vec<Refused>,
    /// Whether somebody interrupted it: what comes after the last one was not begun.
    pub interrupted: bool,
}

/// What bringing these sessions back would do.
///
/// # Errors
/// An index that can not be written.
pub fn plan(home: &Home, request: &Request, leases: &Leases) -> Result<Plan> {
    let index = IndexFile::ready(home)?;
    let mut plan = Plan {
        keep: request.keep,
        sessions: Vec::new(),
        already: Vec::new(),
        refused: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for id in request.sessions.iter().filter(|id| seen.insert(*id)) {
        if let Err(error) = leases.refuse(id) {
            plan.refused.push(Refused::new(id, &error));
            continue;
        }
        let folder = disk::stat(&home.session(id))?.map(|meta| meta.kind);
        let archive = disk::stat(&home.archive_of(id))?.map(|meta| meta.kind);
        let looked = match (archive, folder) {
            (None, Some(FileKind::Folder)) => {
                plan.already.push(id.to_string());
                continue;
            }
            (None, _) => {
                let status = index.find(id.as_str()).map(Entry::status);
                Err(absent(id, status, "has no archive"))
            }
            (Some(FileKind::File), None | Some(FileKind::Folder)) => {
                planned(home, id, folder.is_some(), request.force)
            }
            (Some(FileKind::File), Some(_)) => Err(Error::failed("stands in the way:")
                .at(home.session(id))
                .hint("it is no folder: move it away")),
            (Some(_), _) => Err(Error::failed("is no file:").at(home.archive_of(id))),
        };
        match looked {
            Ok(planned) => plan.sessions.push(planned),
            Err(error) => plan.refused.push(Refused::new(id, &error)),
        }
    }
    Ok(plan)
}

fn planned(home: &Home, id: &SessionId, folder: bool, force: bool) -> Result<Planned> {
    let pack = Pack::open(&home.archive_of(id))?;
    if let (Nature::Damaged(what), false) = (pack.nature(), force) {
        return Err(
            Error::failed(format!("the archive of {} is damaged: {what}", shown(id)))
                .at(pack.path())
                .hint("a backup may hold a sound one")
                .hint("--force brings back what is proved good, and leaves the archive"),
        );
    }
    let content = pack.manifest().map(|manifest| content(&manifest.members));
    Ok(Planned {
        id: id.clone(),
        files: content.map(|(files, _)| files),
        bytes: content.map(|(_, bytes)| bytes),
        packed: pack.size(),
        foreign: *pack.nature() == Nature::Foreign,
        folder,
    })
}

/// Brings the sessions back, one after the other: what happens to one does not stop the others.
///
/// # Errors
/// When the sessions can not be counted again in the end.
pub fn apply(
    home: &LockedHome,
    plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let ids: Vec<_> = plan.sessions.iter().map(|planned| &planned.id).collect();
    let ran = one_by_one(home, &ids, context, |ids, going_on| {
        group(home, ids, request, context, going_on)
    })?;
    Ok(Outcome {
        sessions: ran.done,
        already: plan.already,
        refused: plan.refused.into_iter().chain(ran.refused).collect(),
        interrupted: ran.interrupted,
    })
}

/// A session's folder, complete, in its place or beside it.
struct Folder {
    /// Open.
    dir: Dir,
    /// What it was built in; none when it is in its place.
    scratch: Option<Scratch>,
    members: Vec<pack::Member>,
    damage: Vec<Damage>,
}

/// Brings some of the first sessions back: the index is read once for them, and written once.
fn group(
    home: &LockedHome,
    ids: &[&SessionId],
    request: &Request,
    context: &Context,
    going_on: &Context,
) -> Vec<Result<Done>> {
    let look = || Ok((home.dir()?, IndexFile::ready(home)?));
    let (root, index) = match look() {
        Ok(looked) => looked,
        Err(error) => return vec![Err(error)],
    };
    let (begun, failed) = begin_some(ids, context, |id| {
        begin(home, &root, &index, id, request, context)
    });
    let (begun, entries): (Vec<Begun>, Vec<Pending>) = begun.into_iter().unzip();
    let completed = together(entries, home, going_on);
    let done = begun.into_iter().zip(completed);
    let mut done: Vec<_> = done
        .map(|(begun, completed)| begun.told(home, &root, completed?))
        .collect();
    done.extend(failed.map(Err));
    done
}

/// A session that is complete, and gets its place with the others.
struct Begun {
    done: Done,
    /// What it was built in, until it has its place.
    _scratch: Option<Scratch>,
    /// What its folder is.
    seen: Seen,
    /// Whether another file has taken the place of its pack.
    replaced: bool,
}

fn begin(
    home: &LockedHome,
    root: &Dir,
    index: &Index,
    id: &SessionId,
    request: &Request,
    context: &Context,
) -> Result<((Begun, Pending), u64)> {
    let pack = Pack::open(&home.archive_of(id))?;
    let folder = match mend::look(root, &folder_of(id))? {
        Some(_) => in_place(home, root, id, &pack, context)?,
        None => unpacked(home, id, &pack, request.force, context)?,
    };
    let (files, bytes) = content(&folder.members);
    let keep = request.keep || !folder.damage.is_empty();
    let placing = place(home, (root, index), id, &pack, &folder, keep, context)?;
    let top = pack.manifest().map(|manifest| manifest.top.clone());
    let done = Done {
        id: id.clone(),
        files,
        bytes,
        was_there: folder.scratch.is_none(),
        archive: true,
        act: placing.act,
        was_called: top.filter(|top| top != id.as_str()),
        damage: folder.damage,
        leftover: Vec::new(),
    };
    let begun = Begun {
        done,
        _scratch: folder.scratch,
        seen: placing.seen,
        replaced: placing.replaced,
    };
    Ok(((begun, placing.entry), bytes))
}

impl Begun {
    /// What came of it in the end.
    fn told(self, home: &LockedHome, root: &Dir, completed: Completed) -> Result<Done> {
        let mut done = self.done;
        let there = mend::look(root, &folder_of(&done.id))?;
        if there.is_none_or(|meta| Seen::of(&meta) != self.seen) {
            return Err(Error::failed("was taken meanwhile:")
                .at(home.session(&done.id))
                .hint("what was unpacked is in the trash (`wbhome restore --from trash`), and in the archive"));
        }
        let path = pack_of(&done.id);
        done.archive = mend::look(root, &path)?.is_some();
        done.leftover = completed.left.iter().map(ToString::to_string).collect();
        done.leftover.extend(self.replaced.then(|| {
            let path = human::path(&path);
            format!("another file has taken the place of {path} meanwhile: look at what it is")
        }));
        Ok(done)
    }
}

/// The folder is there: it must be what the pack holds.
fn in_place(
    home: &LockedHome,
    root: &Dir,
    id: &SessionId,
    pack: &Pack,
    context: &Context,
) -> Result<Folder> {
    let dir = root
        .open_beneath(&folder_of(id))
        .map_err(|e| Error::io("can not open the folder", home.session(id), e))?;
    match former::compare(pack, id, &dir, context)? {
        Former::Same(archived) => Ok(Folder {
            dir,
            scratch: None,
            members: archived.manifest.members,
            damage: Vec::new(),
        }),
        Former::Other(why) => Err(Error::failed(format!(
            "{} is in sessions/, and is not what its archive holds: {}",
            shown(id),
            human::escape(&why)
        ))
        .hint("compare the two: `tar --zstd -xf` unpacks the archive elsewhere")
        .hint("then give the one in sessions/ another name (`wbhome mv`), or put the archive elsewhere")),
    }
}

/// Unpacks the session beside `sessions/`.
fn unpacked(
    home: &LockedHome,
    id: &SessionId,
    pack: &Pack,
    force: bool,
    context: &Context,
) -> Result<Folder> {
    let scratch = home.scratch(context)?;
    let path = scratch.path().join(id.as_str());
    let fail = |e| Error::io("can not make the folder", &path, e);
    let dir = Dir::open(scratch.path())
        .and_then(|dir| {
            dir.make(id.as_str().as_ref())?;
            dir.open_beneath(Path::new(id.as_str()))
        })
        .map_err(fail)?;
    if let Some(manifest) = pack.manifest() {
        let (items, bytes) = content(&manifest.members);
        context.progress.stage("unpacking", Total { items, bytes });
    }
    let limits = Limits { salvage: force };
    let unpacked = pack::unpack(pack, &dir, limits, context);
    context.progress.finish();
    let unpacked = match unpacked {
        Ok(unpacked) => unpacked,
        Err(error) if error.kind() == Kind::Interrupted || force => return Err(error),
        Err(error) => return Err(damaged(id, pack, error, context)?),
    };
    if content(&unpacked.members).0 == 0 && !unpacked.problems.is_empty() {
        // An empty folder would stand in the way of a sound archive.
        return Err(Error::failed(format!(
            "nothing in the archive of {} can be proved good:",
            shown(id)
        ))
        .at(pack.path())
        .hint("a backup may hold a sound one; nothing was changed"));
    }
    disk::sync_filesystem(&dir).map_err(|e| Error::io("can not write to the disk:", &path, e))?;
    failpoint::hit("unarchive.unpacked");
    let mut damage: Vec<Damage> = unpacked.problems.iter().map(Damage::from).collect();
    damage.extend(not_given_back(pack, &unpacked.members));
    Ok(Folder {
        dir,
        scratch: Some(scratch),
        members: unpacked.members,
        damage,
    })
}

/// What of owners, modes and attributes this user or this filesystem could not give back: then the archive is the only
/// place where it is told.
fn not_given_back(pack: &Pack, back: &[pack::Member]) -> Option<Damage> {
    let known: HashMap<&Path, &pack::Member> = pack
        .manifest()?
        .members
        .iter()
        .map(|member| (&*member.path, member))
        .collect();
    let differs = |member: &&pack::Member| {
        let packed = known.get(&*member.path);
        packed.is_some_and(|packed| {
            (packed.uid, packed.gid, packed.mode) != (member.uid, member.gid, member.mode)
                || packed.xattrs != member.xattrs
        })
    };
    let count = back.iter().filter(differs).count() as u64;
    let first = back.iter().find(differs)?;
    Some(Damage {
        part: "owners, modes and attributes".to_owned(),
        what: format!(
            "{} could not be given back as it was, such as {}; root can",
            human::plural(count, "file or folder", "files and folders"),
            named(&first.path)
        ),
        files: Vec::new(),
    })
}

/// A path below the session, for a person.
fn named(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "the session's own folder".to_owned(),
        false => human::path(path),
    }
}

/// What of a damaged pack could be brought back.
fn damaged(id: &SessionId, pack: &Pack, error: Error, context: &Context) -> Result<Error> {
    let verified = pack::verify(pack, context)?;
    let Some(first) = verified.problems.first() else {
        return Ok(error);
    };
    let mut lost: BTreeSet<&PathBuf> = BTreeSet::new();
    for problem in &verified.problems {
        lost.extend(&problem.members);
    }
    let mut what = format!(
        "the archive of {} is damaged: {}",
        shown(id),
        told_one(Path::new(&first.part), &first.what)
    );
    if let Some(first) = lost.first() {
        what += &format!(
            "; {} can not be proved good, such as {}",
            human::plural(lost.len() as u64, "file", "files"),
            named(first)
        );
    }
    let error = Error::failed(what + ":")
        .at(pack.path())
        .hint("a backup may hold a sound one");
    if verified.members == 0 {
        return Ok(error.hint("nothing in it can be proved good"));
    }
    let good = human::plural(verified.members, "member is", "members are");
    Ok(error.hint(format!(
        "{good} proved good: --force brings those back, and leaves the archive"
    )))
}

struct Placing {
    act: Option<String>,
    /// What is written down of it.
    entry: Pending,
    seen: Seen,
    replaced: bool,
}

/// Writes down how the folder gets its place; the pack goes last.
fn place(
    home: &LockedHome,
    (root, index): (&Dir, &Index),
    id: &SessionId,
    pack: &Pack,
    folder: &Folder,
    keep: bool,
    context: &Context,
) -> Result<Placing> {
    let path = pack_of(id);
    let fail = |e| Error::io("can not look at", home.session(id), e);
    let folder_seen = Seen::of(&folder.dir.meta().map_err(fail)?);
    // What was unpacked is what goes: another file may have the name by now. Then what was unpacked is all there is.
    let seen = Seen::of(pack.meta());
    let replaced = mend::look(root, &path)?.is_none_or(|meta| Seen::of(&meta) != seen);
    let keep = keep || replaced;
    let entry = entry_from(index, id, pack.manifest(), &folder.dir);
    let mut steps = Vec::new();
    if let Some(scratch) = &folder.scratch {
        // The folder gets its name only when it is written down that the pack goes: both side by side would stand in the
        // way of the next archive.
        let path = home.session(id);
        if disk::stat(&path)?.is_some() {
            return Err(Error::failed("was taken meanwhile:").at(path));
        }
        let from = scratch.path().strip_prefix(home.root());
        let from = from.unwrap_or(scratch.path()).join(id.as_str());
        steps.push(Step::Rename {
            from: from.display().to_string(),
            to: folder_of(id).display().to_string(),
        });
    }
    let mut act = None;
    let step = |step| Step::Mend { step };
    let digest = pack.digest()?;
    let known = index
        .find(id.as_str())
        .and_then(|entry| entry.archive()?.get("blake3"));
    let is_ours = pack.manifest().is_some()
        && known.is_none_or(|known| known.is_null() || known == digest.as_str());
    let archive = (keep && !replaced).then(|| archive_field(id, pack.size(), &digest));
    if !keep {
        // Nobody can prove that a pack made by hand held nothing more; and one that the index knows otherwise is not the
        // one that was made of the session.
        steps.push(step(match is_ours {
            true => Mend::Discard {
                path: path.into(),
                seen,
                kept_in: folder_of(id).into(),
                kept_seen: folder_seen,
            },
            false => {
                let was = Was::new(&path);
                let lies = was.lies.clone();
                let why = format!("brought {} back from it; wbhome had not made it", shown(id));
                let note = Note {
                    was: vec![was],
                    ..Note::by("unarchive", why, context)
                };
                let name = trash::open(home, note, context)?;
                act = Some(name.clone());
                Mend::PutAway {
                    path: path.into(),
                    act: name,
                    lies: lies.into(),
                    seen,
                    held_by: None,
                }
            }
        }));
    }
    steps.push(step(Mend::Unarchived {
        entry: entry.fields().clone(),
        archive,
    }));
    steps.push(Step::Views {
        ids: Some(vec![id.to_string()]),
    });
    Ok(Placing {
        act,
        entry: journal::begin(home, "unarchive", steps, context)?,
        seen: folder_seen,
        replaced,
    })
}
