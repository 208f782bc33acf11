//! What a command of several steps is about to do: written before it is done, removed after.
//!
//! Each step can be done any number of times with the same end, so that completing what a killed command
//! left is the same code as doing it. An entry is written only when everything that it needs is on the disk:
//! it can always be completed, and nothing has to be undone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::layout::OWN;
use super::mend::{self, Mend, Said};
use super::swap::{self, Settlement};
use super::{Entry, Index, IndexFile, LockedHome, LogCut, RelPath, SessionId, trash, views};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, Written};

mod settle;

pub(super) use settle::settle;
pub use settle::waiting;

/// No entry is longer.
const ENTRY_LIMIT: u64 = 256 << 20;

mod together;

pub use together::complete_together;

/// A step. Paths are relative to the home.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// Give something its final place. When that is taken, what was to go there goes to the trash.
    Rename {
        /// Where it was built.
        from: String,
        /// Where it belongs.
        to: String,
    },
    /// The index has this entry, unless it already has one of that id.
    Entry {
        /// All its fields.
        entry: Map<String, Value>,
    },
    /// Many files are replaced as one. When the record was never complete, it is given up, and so is all that
    /// comes after it.
    Swap {
        /// Its record.
        record: String,
    },
    /// A swap was taken back.
    Undone {
        /// Its record.
        record: String,
    },
    /// The entry of a session has its new name, with all its labels.
    Renamed {
        /// The id that it had.
        from: String,
        /// The id that it has.
        to: String,
    },
    /// One of the steps by which something is put away, brought back or put right.
    Mend {
        /// Which.
        step: Mend,
    },
    /// What was copied out of a log is taken out of it.
    Cut {
        /// What.
        cut: LogCut,
    },
    /// The project views of these sessions (none named: of all) agree with the index.
    Views {
        /// Their ids.
        ids: Option<Vec<String>>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    command: String,
    since: String,
    steps: Vec<Step>,
}

/// Something that a killed command had left, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settled {
    /// The command that was killed, when it had written that down.
    pub command: Option<String>,
    /// When it began.
    pub since: Option<String>,
    /// What was done, a line each; empty when everything had been done.
    pub did: Vec<String>,
    /// Why it could not be completed yet, if so. It stays in the journal.
    pub pending: Option<String>,
}

/// An entry of the journal that is being worked on.
#[derive(Clone, Debug)]
#[must_use = "an entry that is neither completed nor forgotten is done by the next command"]
pub struct Pending {
    path: PathBuf,
    record: Record,
}

const VIEWS_LATER: &str =
    "everything else is done; `wbhome index` sets the project views when the cause is gone";

/// What came of the steps of an entry.
#[derive(Debug, Default)]
pub struct Completed {
    /// What was done, a line each.
    pub did: Vec<String>,
    /// What was left as it was.
    pub left: Vec<mend::Left>,
    /// Why a swap was given up, if so, and with it all that came after: everything is as it was.
    gave_up: Option<Error>,
    /// Why the project views could not be set, if so. They follow from the index, and nobody has to wait for them.
    unviewed: Option<Error>,
}

/// Whether a log below this folder of the home is being cut, or a kill has left that to be completed: for whoever reads
/// a home without its lock. An entry that can not be read is none.
pub fn cuts_below(root: &Dir, folder: &Path) -> bool {
    let Ok(journal) = root.open_beneath(Path::new(".wbhome/journal")) else {
        return false;
    };
    let cuts = |name: &OsStr| {
        let content = disk::read_small_in(&journal, name, ENTRY_LIMIT).ok()??;
        let record: Record = serde_json::from_slice(&content).ok()?;
        let mut steps = record.steps.into_iter();
        Some(steps.any(|step| matches!(step, Step::Cut { cut } if cut.folder.starts_with(folder))))
    };
    let names = journal.names().unwrap_or_default();
    names.iter().any(|(name, _)| cuts(name).unwrap_or(false))
}

impl Completed {
    /// Does a step, and notes what came of it.
    fn take(&mut self, step: &Step, home: &LockedHome, context: &Context) -> Result<()> {
        match step {
            Step::Mend { step } => self.note(step.done(home, context)?),
            Step::Views { .. } => match step.done(home, context) {
                Ok(line) => self.did.extend(line),
                Err(why) => self.unviewed = Some(why),
            },
            step => self.did.extend(step.done(home, context)?),
        }
        Ok(())
    }

    fn note(&mut self, said: Said) {
        match said {
            Said::Nothing => {}
            Said::Did(line) => self.did.push(line),
            Said::Left(what) => self.left.push(what),
        }
    }

    fn told(mut self) -> Result<Completed> {
        match (self.gave_up.take(), self.unviewed.take()) {
            (Some(why), _) => Err(why),
            (None, Some(why)) => Err(why.hint(VIEWS_LATER)),
            (None, None) => Ok(self),
        }
    }
}

/// Writes down what is about to be done.
///
/// # Errors
/// When it can not be written.
pub fn begin(
    home: &LockedHome,
    command: &str,
    steps: Vec<Step>,
    context: &Context,
) -> Result<Pending> {
    let record = Record {
        command: command.to_owned(),
        since: context.clock.now().to_string(),
        steps,
    };
    let folder = home.journal();
    disk::create_private_folder(&folder)?;
    let random = context.clock.random();
    let path = folder.join(format!("{}-{random:032x}.json", context.clock.stamp()));
    // One that could never be completed would stand in everybody's way.
    for step in &record.steps {
        step.check(&path)?;
    }
    let text =
        serde_json::to_vec_pretty(&record).map_err(|e| Error::io("can not write", &path, e))?;
    disk::write_new(&path, &text, 0o600)?;
    failpoint::hit("journal.begun");
    Ok(Pending { path, record })
}

impl Pending {
    /// Does every step and removes the entry. Returns what was left and what was done, a line each. After an
    /// error the entry stays, and the next command that takes the lock completes it.
    ///
    /// # Errors
    /// What a step says.
    pub fn complete(self, home: &LockedHome, context: &Context) -> Result<Vec<String>> {
        let completed = self.complete_telling(home, context)?;
        let left = completed.left.iter().map(mend::Left::to_string);
        Ok(left.chain(completed.did).collect())
    }

    /// Like [`Pending::complete`], and tells what was left from what was done.
    ///
    /// # Errors
    /// What a step says.
    pub fn complete_telling(self, home: &LockedHome, context: &Context) -> Result<Completed> {
        self.run(home, context)?.told()
    }

    fn run(self, home: &LockedHome, context: &Context) -> Result<Completed> {
        let mut completed = Completed::default();
        for step in &self.record.steps {
            step.check(&self.path)?;
            match step {
                Step::Swap { record } => {
                    match swap::settle(home, &RelPath::new(record)?, context)? {
                        Settlement::GivenUp(None) => break,
                        Settlement::GivenUp(Some(why)) => {
                            disk::remove_file(&self.path)?;
                            return Ok(Completed {
                                gave_up: Some(why),
                                ..Completed::default()
                            });
                        }
                        Settlement::Done(done) => completed.did.push(told(&done, record)),
                    }
                }
                step => completed.take(step, home, context)?,
            }
        }
        self.is_done()?;
        Ok(completed)
    }

    fn is_done(&self) -> Result<()> {
        failpoint::hit("journal.done");
        disk::remove_file(&self.path)
    }

    /// Removes the entry: its steps were done by the caller, or will not be done after all.
    ///
    /// # Errors
    /// When it can not be removed.
    pub fn forget(self) -> Result<()> {
        disk::remove_file(&self.path)
    }

    /// The entry becomes another one, in one rename: what was written down to be taken back is to be completed from
    /// now on.
    ///
    /// # Errors
    /// When it can not be written; then it is what it was.
    pub fn turn_into(self, steps: Vec<Step>) -> Result<Pending> {
        for step in &steps {
            step.check(&self.path)?;
        }
        let text = |record: &Record| {
            serde_json::to_vec_pretty(record).map_err(|e| Error::io("can not write", &self.path, e))
        };
        let before = text(&self.record)?;
        let record = Record {
            steps,
            ..self.record
        };
        let after = text(&record)?;
        if disk::replace(&self.path, Some(&before), &after, 0o600)? != Written::Done {
            return Err(Error::failed("was changed by somebody else:").at(&self.path));
        }
        failpoint::hit("journal.turned");
        Ok(Pending { record, ..self })
    }

    fn needs_index(&self) -> bool {
        self.record.steps.iter().any(|step| match step {
            Step::Mend { step } => step.needs_index(),
            Step::Entry { .. } | Step::Renamed { .. } | Step::Views { .. } => true,
            _ => false,
        })
    }

    /// The records of swaps.
    fn swaps(&self) -> impl Iterator<Item = &String> {
        self.record.steps.iter().filter_map(|step| match step {
            Step::Swap { record } => Some(record),
            _ => None,
        })
    }
}

fn told(done: &swap::Done, record: &str) -> String {
    match done.overtaken.len() as u64 {
        0 => "gave the files their new form".to_owned(),
        n => format!(
            "gave the files their new form; {} had changed meanwhile, what stood there is in {}/overtaken",
            human::plural(n, "file", "files"),
            human::name(record)
        ),
    }
}

impl Step {
    /// A path that leads out of the home was written by no command, nor one that leads to where things are removed unseen.
    fn check(&self, entry: &Path) -> Result<()> {
        let paths = match self {
            Step::Rename { from, to } => vec![Path::new(from), Path::new(to)],
            Step::Swap { record } | Step::Undone { record } => vec![Path::new(record)],
            Step::Mend { step } => step.paths(),
            Step::Cut { cut } if !cut.is_sound() => vec![Path::new("..")],
            Step::Cut { .. } | Step::Entry { .. } | Step::Renamed { .. } | Step::Views { .. } => {
                vec![]
            }
        };
        let leads_out = paths.into_iter().any(|path| RelPath::new(path).is_err());
        let is_lost = self.place_given().is_some_and(|path| !is_lasting(path));
        let what = if leads_out {
            "names a path outside of the home:"
        } else if is_lost {
            "gives something a place where nothing lasts:"
        } else if !self.may_discard() {
            "removes what no command removes for good:"
        } else if self.record().is_some_and(|rel| !swap::may_lie(rel)) {
            "names a record where none lies:"
        } else {
            return Ok(());
        };
        Err(Error::failed(format!("the journal entry {what}"))
            .at(entry)
            .hint("no command wrote that: look into it; moved away, it is forgotten"))
    }

    /// Where something that is there goes.
    fn place_given(&self) -> Option<&Path> {
        match self {
            Step::Rename { to, .. } => Some(Path::new(to)),
            Step::Mend { step } => step.place_given(),
            _ => None,
        }
    }

    /// The record that is carried out, or given up.
    fn record(&self) -> Option<&Path> {
        match self {
            Step::Swap { record } | Step::Undone { record } => Some(Path::new(record)),
            _ => None,
        }
    }

    /// Only a session whose archive was compared goes for good, out of the trash, and the archive of one that was.
    fn may_discard(&self) -> bool {
        match self {
            Step::Mend {
                step: Mend::Discard { path, kept_in, .. },
            } => {
                let of_session = path.starts_with(trash::TRASH) && kept_in.starts_with(ARCHIVE);
                of_session || path.starts_with(ARCHIVE) && kept_in.starts_with(SESSIONS)
            }
            _ => true,
        }
    }

    fn done(&self, home: &LockedHome, context: &Context) -> Result<Option<String>> {
        match self {
            Step::Rename { from, to } => {
                let did = rename(home, &RelPath::new(from)?, &RelPath::new(to)?, context)?;
                failpoint::hit("journal.renamed");
                Ok(did)
            }
            Step::Entry { entry } => {
                let did = insert(home, entry)?;
                failpoint::hit("journal.indexed");
                Ok(did.then(|| format!("indexed {}", shown_id(entry))))
            }
            // Done where it can be given up, and where what it says is told apart.
            Step::Swap { .. } | Step::Mend { .. } => Ok(None),
            Step::Undone { record } => {
                swap::mark_undone(home, &RelPath::new(record)?, context)?;
                Ok(None)
            }
            Step::Renamed { from, to } => {
                let did = rename_entry(home, from, to)?;
                failpoint::hit("journal.entry_renamed");
                Ok(did.then(|| format!("indexed {}", human::name(to))))
            }
            Step::Cut { cut } => cut.settle(home, context),
            Step::Views { ids } => {
                let index = Index::read(home)?;
                let outcome = views::follow(home, &index, ids.as_deref())?;
                failpoint::hit("journal.viewed");
                let n = (outcome.made.len() + outcome.removed.len()) as u64;
                let line = || format!("set {}", human::plural(n, "project view", "project views"));
                Ok((n > 0).then(line))
            }
        }
    }
}

const ARCHIVE: &str = "archive";
const SESSIONS: &str = "sessions";

/// Whether what has this place stays: what lies about below `tmp` and in the journal does not.
fn is_lasting(path: &Path) -> bool {
    let own = RelPath::new(path).is_ok_and(|path| {
        let mut parts = path.as_path().iter();
        parts.next().is_none_or(|first| first == OWN)
            && parts
                .next()
                .is_none_or(|name| name == "tmp" || name == "journal")
    });
    !own
}

fn shown_id(entry: &Map<String, Value>) -> String {
    let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
    human::name(id).into_owned()
}

fn insert(home: &LockedHome, fields: &Map<String, Value>) -> Result<bool> {
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
    let entry = Entry::read(id.to_owned(), fields.clone());
    entry.session()?;
    IndexFile::update(home, |index| {
        let absent = index.find(entry.id()).is_none();
        if absent {
            index.insert(entry.clone());
        }
        Ok(absent)
    })
}

/// Nothing is done twice: an entry that has the new name stays as it is.
fn rename_entry(home: &LockedHome, from: &str, to: &str) -> Result<bool> {
    let to = SessionId::adopt(to)?;
    IndexFile::update(home, |index| {
        if index.find(to.as_str()).is_some() {
            return Ok(false);
        }
        let Some(entry) = index.entries_mut().find(|entry| entry.id() == from) else {
            return Ok(false);
        };
        entry.set_id(&to);
        entry.follow_archive(&to);
        Ok(true)
    })
}

fn rename(
    home: &LockedHome,
    from: &RelPath,
    to: &RelPath,
    context: &Context,
) -> Result<Option<String>> {
    let shown = human::path(to.as_path());
    let fail = |e| Error::io("can not make", home.root().join(to.as_path()), e);
    let root = Dir::open(home.root()).map_err(fail)?;
    let Some((from_dir, from_name)) = below(&root, from.as_path()).map_err(fail)? else {
        return Ok(None);
    };
    if from_dir.find(&from_name).map_err(fail)?.is_none() {
        return Ok(None);
    }
    let gone = || fail(io::ErrorKind::NotFound.into());
    let (to_dir, to_name) = below(&root, to.as_path()).map_err(fail)?.ok_or_else(gone)?;
    match from_dir.rename(&from_name, &to_dir, &to_name) {
        Ok(()) => {
            to_dir.sync().and_then(|()| from_dir.sync()).map_err(fail)?;
            Ok(Some(format!("put {shown} in its place")))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let why = format!("its place, {shown}, was taken meanwhile");
            let kept = trash::put(home, from, &why, context)?;
            Ok(Some(format!(
                "{why}: it is in {}",
                trash::shown(home, &kept)
            )))
        }
        Err(error) => Err(fail(error)),
    }
}

/// The folder that holds `path`, through no link, and the name in it; `None` when there is no such folder.
pub(super) fn below(root: &Dir, path: &Path) -> io::Result<Option<(Dir, OsString)>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match root.open_beneath(parent) {
        Ok(dir) => Ok(Some((dir, name.to_owned()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
