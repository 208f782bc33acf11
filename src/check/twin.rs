//! `wbhome restore --from twin`: the second version of a damaged file, which a sync client has left beside it,
//! takes its place. The damaged one goes into the trash, the second version stays.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{conflict, probing};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Stop, human};
use crate::disk::{Dir, FileKind};
use crate::home::journal::{self, Step};
use crate::home::mend::{self, Instead, Mend, Seen};
use crate::home::trash::{self, Added, Note, Was};
use crate::home::{Home, Index, Leases, LockedHome, SessionId, identity_of};
use crate::state::{Agent, AtWork};

/// What would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The file that is put right, below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its second version.
    pub twin: WirePath,
    /// Whether there is something that goes into the trash.
    pub replaces: bool,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// It.
    #[serde(flatten)]
    pub done: Plan,
    /// The act of the trash that takes it back, and holds the former file if there was one.
    pub kept: Option<String>,
    /// Why it was not done, if so.
    pub left: Option<String>,
}

/// Which second version of a file would take its place. `path`, below the home, is the file or the second
/// version itself.
///
/// # Errors
/// No whole second version, or several; a file that is whole itself, without `force`; somebody at work; a session that
/// another device holds.
pub fn plan(
    home: &Home,
    path: &Path,
    force: bool,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Plan> {
    leases.refuse_path(path)?;
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let stop = context.stop;
    let (path, twin) = pair(&root, path, stop)?;
    let there = mend::look(&root, &path)?;
    if there.is_some_and(|meta| meta.kind != FileKind::File) {
        return Err(Error::failed("this is no file:").at(&path));
    }
    if there.is_some() && !force && is_whole(&root, &path, stop)? {
        return Err(Error::failed("the file is not damaged:")
            .at(&path)
            .hint(format!(
                "--force puts it into the trash, and {} in its place",
                human::path(&twin)
            )));
    }
    let at_work = AtWork::look(home.root(), agents);
    let session = path.iter().nth(1).and_then(SessionId::of_folder);
    let index = Index::read(home).ok();
    let identity = session.and_then(|id| identity_of(home, index.as_ref(), &id));
    let folder: PathBuf = path.iter().take(2).collect();
    let who = at_work.agent_in_session(&home.root().join(folder), identity.as_deref());
    if let Some(who) = who.or_else(|| at_work.writer_of(&home.root().join(&path))) {
        return Err(
            Error::failed(format!("{} can not be changed: {who}", human::path(&path)))
                .hint("end its session first; nothing was changed"),
        );
    }
    Ok(Plan {
        replaces: there.is_some(),
        path: path.into(),
        twin: twin.into(),
    })
}

/// The file and the second version that is meant.
fn pair(root: &Dir, path: &Path, stop: &Stop) -> Result<(PathBuf, PathBuf)> {
    let fail = |e| Error::io("can not look for a second version of", path, e);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::usage("names no file"));
    };
    let dir = root.open_beneath(parent).map_err(fail)?;
    let mut files: Vec<OsString> = Vec::new();
    for (name, _) in dir.names().map_err(fail)? {
        if dir
            .stat(&name)
            .is_ok_and(|meta| meta.kind == FileKind::File)
        {
            files.push(name);
        }
    }
    files.sort();
    // The file itself may be what is missing.
    let exists = |n: &[u8]| n == name.as_bytes() || files.iter().any(|file| file.as_bytes() == n);
    let original = |file: &OsStr| conflict::original_of(file.as_bytes(), false, &exists);
    let mut whole = Vec::new();
    for file in &files {
        let of = original(file).is_some_and(|(first, _)| first == name.as_bytes());
        if of && is_whole(root, &parent.join(file), stop)? {
            whole.push(parent.join(file));
        }
    }
    match (whole.len(), original(name)) {
        (1, _) => Ok((path.to_path_buf(), whole.remove(0))),
        // It is a second version itself.
        (0, Some((first, _))) if files.iter().any(|file| file == name) => {
            if !is_whole(root, path, stop)? {
                return Err(Error::failed("is damaged itself:").at(path));
            }
            Ok((parent.join(OsStr::from_bytes(&first)), path.to_path_buf()))
        }
        (0, _) => Err(Error::failed("has no whole second version beside it:")
            .at(path)
            .hint("look in the version history of the sync client")),
        _ => {
            let error = Error::failed(format!(
                "has {} whole second versions:",
                human::count(whole.len() as u64)
            ))
            .at(path);
            let hint = |error: Error, twin: &PathBuf| {
                let within: PathBuf = twin.iter().skip(1).collect();
                error.hint(format!("name one: {}", human::quoted(&within)))
            };
            Err(whole.iter().fold(error, hint))
        }
    }
}

/// Whether a file holds something, and nothing damaged.
fn is_whole(root: &Dir, path: &Path, stop: &Stop) -> Result<bool> {
    let Some(meta) = mend::look(root, path)? else {
        return Ok(false);
    };
    let defects =
        probing::defects(root, path, stop).map_err(|e| Error::io("can not read", path, e))?;
    stop.check()?;
    Ok(meta.size > 0 && defects.is_empty())
}

/// Puts it in its place.
///
/// # Errors
/// When nothing can be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let gone = || Error::failed("is not there any more:").at(&*plan.twin);
    let twin = mend::look(&root, &plan.twin)?.ok_or_else(gone)?;
    let former = mend::look(&root, &plan.path)?;
    let was =
        Was::new(plan.path.0.clone()).replaced_by(mend::mark(&root, &plan.twin, context.stop)?);
    let lies = was.lies.clone();
    let mut note = Note {
        why: format!("{} took its place", human::path(&plan.twin)),
        at: context.clock.now().to_string(),
        command: Some("restore".to_owned()),
        ..Note::default()
    };
    match former {
        Some(_) => note.was.push(was),
        None => {
            let (path, mark) = (WirePath(was.path), was.replaced_by);
            note.added.push(Added { path, mark });
        }
    }
    let act = trash::open(home, note, context)?;
    let instead = former.map(|former| Instead {
        act: act.clone(),
        lies: lies.into(),
        seen: Seen::of(&former),
    });
    let copy = Mend::Copy {
        from: plan.twin.0.clone().into(),
        seen: Seen::of(&twin),
        path: plan.path.0.clone().into(),
        instead,
    };
    let close = Mend::Close { act: act.clone() };
    let steps = [copy, close].map(|step| Step::Mend { step });
    let pending = journal::begin(home, "restore", steps.to_vec(), context)?;
    let completed = pending.complete_telling(home, context)?;
    Ok(Outcome {
        kept: trash::act(home, &act).map(|act| act.name),
        left: completed.left.first().map(mend::Left::to_string),
        done: plan,
    })
}

/// The command that puts a whole second version in the place of a damaged file of a session: `twin` is the
/// path to be named, below the home.
pub(super) fn command(named: &Path) -> Option<String> {
    let within = named.strip_prefix("sessions").ok()?;
    // A name that can not be typed can not be shown either.
    within
        .to_str()
        .filter(|text| human::escape(text) == *text)?;
    Some(format!(
        "wbhome restore {} --from twin",
        human::quoted(within)
    ))
}
