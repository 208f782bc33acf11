//! Cutting live logs without losing a line.
//!
//! [`plan`] finds the logs and says of each whether it is due and why (`find`, `due`); [`apply`] cuts those that are
//! (`cutting`, on what `disk` guarantees and the journal of the home carries through), and then lets go of what was cut
//! out long ago and compresses the rest (`family`, `retire`, `compress`). What was cut out carries a time in its name
//! (`names`): no chain of renames that a kill could leave half done. What is known of each log stands in
//! `.wbhome/rotate.json` (`home::Rotations`) and is noted after it has been done.

mod compress;
mod cutting;
mod due;
mod family;
mod find;
mod left;
mod names;
mod outcome;
mod retire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::ZonedDateTime;
use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Total};
use crate::disk::{self, OpenFile};
use crate::home::{self, Home, Leases, LockedHome, Rotations, SessionId};

pub use due::{Rest, Why};
pub use find::Found;
pub use outcome::{Compressed, CutLog, Failed, How, Left, Outcome, Reason, Removed, Writer};
pub use retire::Beyond;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// These sessions; none named: all logs.
    pub sessions: Vec<SessionId>,
    /// Cut what is not due, and what is written without `O_APPEND`.
    pub force: bool,
    /// `[rotate]`. A glob is relative to the home or absolute.
    pub settings: home::Rotate,
    /// The application's own folders, whose logs an absolute glob may name.
    pub state: Vec<PathBuf>,
    /// Who holds which session: logs of what another device holds are left alone.
    pub leases: Leases,
    /// Whether what is beyond the settings goes at once. Otherwise [`let_go`] has to be called.
    pub lets_go: bool,
}

/// A log, and what is to become of it.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Where it is.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whose it is.
    pub session: Option<String>,
    /// How long it is, without the blank line that the last cut has left.
    pub bytes: u64,
    /// Why it is due; none: it is not.
    pub due: Option<Why>,
    /// Why it is not due; none: it is.
    pub rest: Option<Rest>,
    #[serde(skip)]
    found: Found,
}

/// What will be done.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Every log that could be cut.
    pub logs: Vec<Planned>,
    /// Those that are left alone, and why.
    pub left: Vec<Left>,
    /// What could not be looked at, and globs without a log.
    pub failed: Vec<Failed>,
    /// What was cut out before and would go.
    pub removed: Vec<Removed>,
    /// What was cut out before and would be compressed.
    pub compressed: Vec<WirePath>,
    /// So many entries of `rotate.json` could not be understood; none: all could.
    pub forgotten: Option<u64>,
    #[serde(skip)]
    rotations: Rotations,
}

/// Finds the logs, and what is due.
///
/// # Errors
/// A record that a newer program has written; a session that was named and that another device holds.
pub fn plan(home: &Home, request: &Request, context: &Context) -> Result<Plan> {
    let mut held = request.sessions.iter();
    held.try_for_each(|id| request.leases.refuse(id))?;
    let finds = find::find(home, request);
    let rotations = Rotations::read(home)?;
    let now = context.clock.zoned();
    let mut plan = Plan {
        logs: Vec::new(),
        left: Vec::new(),
        failed: finds.failed,
        removed: Vec::new(),
        compressed: Vec::new(),
        forgotten: rotations.broken(),
        rotations: Rotations::default(),
    };
    if !request.settings.missing_ok {
        let missing = finds.unmatched.iter();
        plan.failed
            .extend(missing.map(|glob| Failed::missing(glob)));
    }
    let writers = Writers::look(home, &finds.logs);
    for found in finds.logs {
        match look_at(found, home, request, &rotations, &writers, &now) {
            Looked::Log(log) => plan.logs.push(log),
            Looked::Left(left) => plan.left.push(left),
        }
    }
    family::foresee(home, &mut plan, request, context);
    plan.rotations = rotations;
    Ok(plan)
}

/// What is to become of a log that was found.
enum Looked {
    Log(Planned),
    Left(Left),
}

fn look_at(
    found: Found,
    home: &Home,
    request: &Request,
    rotations: &Rotations,
    writers: &Writers,
    now: &ZonedDateTime,
) -> Looked {
    let left = left::for_its_lease(&found, &request.leases);
    if let Some(left) = left.or_else(|| left::for_its_kind(&found)) {
        return Looked::Left(left);
    }
    let path = found.path();
    let known = rotations.of(&path);
    let noted = known.map_or(0, |known| known.blank);
    let decide = |bytes| due::decide(&request.settings, known, bytes, request.force, now);
    let mut bytes = found.meta.size;
    let mut holds_lines = true;
    // Every log that is cut leaves a blank line, and is looked at each time; others when it matters.
    if noted > 0 || decide(bytes).is_ok() {
        let (blank, end) = lines_of(home, &found, noted);
        bytes = bytes.saturating_sub(blank);
        holds_lines = end > blank || bytes == 0;
    }
    let decided = decide(bytes);
    if decided.is_ok() {
        let left = match holds_lines {
            true => left::for_its_names(&found),
            false => Some(left::for_its_line(&found)),
        };
        let left = left.or_else(|| match request.force {
            true => None,
            false => left::for_its_writer(&found, writers.of(home, &found)),
        });
        if let Some(left) = left {
            return Looked::Left(left);
        }
    }
    Looked::Log(Planned {
        path: path.into(),
        session: found.session.clone(),
        bytes,
        due: decided.as_ref().ok().copied(),
        rest: decided.err(),
        found,
    })
}

/// Does it. What goes wrong with one log does not stop the others.
///
/// # Errors
/// A former cut that can not be completed; a record that can not be written.
pub fn apply(
    home: &LockedHome,
    plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    if let Some(why) = home
        .settled()
        .iter()
        .find_map(|settled| settled.pending.as_ref())
    {
        return Err(Error::failed(format!(
            "something that was stopped can not be completed yet, and no log is cut before: {why}"
        )));
    }
    let mut rotations = plan.rotations;
    let now = context.clock.now();
    let known: BTreeSet<&Path> = plan.logs.iter().map(|log| &*log.path).collect();
    let mut changed = rotations.forget(now, |path| known.contains(path));
    drop(known);
    let mut outcome = Outcome::new(plan.left, plan.failed, rotations.broken());
    for log in &plan.logs {
        let new = rotations.see(&log.path, now);
        outcome.seen += u64::from(new);
        outcome.resting += u64::from(log.due.is_none());
        changed |= new;
    }
    if changed || rotations.broken().is_some() {
        rotations.write(home, context)?;
    }
    let due = || plan.logs.iter().filter_map(|log| Some((log, log.due?)));
    context.progress.stage(
        "rotating",
        Total {
            items: due().count() as u64,
            bytes: due().map(|(log, _)| log.bytes).sum(),
        },
    );
    for (log, why) in due() {
        if context.stop.raised() {
            outcome.interrupted = true;
            break;
        }
        match cutting::cut(home, &log.found, why, request, &mut rotations, context) {
            Ok(Ok(cut)) => outcome.cut.push(cut),
            Ok(Err(left)) => outcome.left.push(left),
            Err(_) if context.stop.raised() => outcome.interrupted = true,
            // Removed in the middle of it.
            Err(_) if !disk::exists(&home.root().join(&*log.path)) => {
                outcome.left.push(left::gone(&log.found));
            }
            Err(error) => outcome.failed.push(Failed::of(log.path.clone(), &error)),
        }
        context.progress.advance(1, 0);
    }
    context.progress.finish();
    rotations.write_rest(home, context)?;
    family::tend(home, &plan.logs, request, &mut outcome, context);
    Ok(outcome)
}

/// Lets go of what was cut out earlier and is beyond the settings, when [`apply`] was told to leave it.
pub fn let_go(home: &LockedHome, plan: Plan, request: &Request, context: &Context) -> Outcome {
    let mut outcome = Outcome::new(Vec::new(), Vec::new(), None);
    family::let_go(home, &plan.logs, request, &mut outcome, context);
    outcome
}

/// How long the blank line at its head is, and where its last whole line ends. Noted is not enough: its writer may have
/// begun it anew.
fn lines_of(home: &Home, found: &Found, noted: u64) -> (u64, u64) {
    let read = home::log_folder(home, &found.folder)
        .and_then(|dir| dir.open_file(&found.name))
        .and_then(|log| {
            let blank = disk::blank_head(&log, noted)?;
            Ok((blank, disk::end_of_lines(&log, blank, found.meta.size)?))
        });
    // What can not be read is told when it is to be cut.
    read.unwrap_or((0, found.meta.size))
}

/// Who writes to which log without `O_APPEND`.
#[derive(Debug, Default)]
struct Writers(BTreeMap<PathBuf, Vec<Writer>>);

impl Writers {
    /// Looks at all processes that let us, once for all logs.
    fn look(home: &Home, logs: &[Found]) -> Writers {
        let folders: BTreeSet<PathBuf> = logs
            .iter()
            .filter_map(|log| match log.folder.is_absolute() {
                true => Some(log.folder.clone()),
                false => log.folder.iter().next().map(PathBuf::from),
            })
            .collect();
        let mut writers = Writers::default();
        for folder in folders {
            if let Ok(folder) = disk::real_path(&home.root().join(folder)) {
                disk::open_below(&folder)
                    .seen
                    .into_iter()
                    .for_each(|file| writers.add(file));
            }
        }
        writers
    }

    fn add(&mut self, file: OpenFile) {
        if file.writing && !file.appending {
            self.0.entry(file.path).or_default().push(Writer {
                pid: file.pid,
                program: file.program,
            });
        }
    }

    fn of(&self, home: &Home, found: &Found) -> Vec<Writer> {
        let path = disk::real_path(&home.root().join(found.path()));
        let writers = path.ok().and_then(|path| self.0.get(&path).cloned());
        writers.unwrap_or_default()
    }
}
