//! The journal: the former version away and compared once more, the new one in its place, and the index knows it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::Plan;
use super::apply::Built;
use super::former::Former;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::journal::{self, Completed, Step};
use crate::home::mend::Mend;
use crate::home::trash::{self, Note, Was};
use crate::home::{Index, IndexFile, LockedHome, SessionId};
use crate::sessions::new_entry;
use crate::sessions::reconcile::refresh_cache;

/// What came of it.
pub(super) enum Settled {
    /// It has its place.
    Taken {
        /// The act that holds the former version.
        act: Option<String>,
        /// What was left and why, a line each.
        left: Vec<String>,
    },
    /// Somebody has written to the former version meanwhile: it is back in its place.
    Restless,
}

/// Gives the version its place; the former one goes into the trash.
///
/// What is written down first is how the former one comes back. When it has been compared where nobody writes to it by
/// its name, that note becomes, in one rename, the one that completes the taking.
pub(super) fn settle(
    home: &LockedHome,
    plan: &Plan,
    built: Built,
    context: &Context,
) -> Result<Settled> {
    let id = &plan.session;
    let tmp = Path::new(".wbhome/tmp").join(format!("take-{:032x}", context.clock.random()));
    // All that could fail for another reason comes before the former one is touched.
    let entries = entries(&IndexFile::ready(home)?, plan);
    // Out of the scratch folder, which goes with this process: the journal will speak of it.
    disk::rename_no_replace(
        &built.scratch.path().join(id.as_str()),
        &home.root().join(&tmp),
    )?;
    let mut copy = Copy {
        home,
        tmp: Some(tmp),
    };
    let Some((pending, act)) = begin(home, plan, entries, &mut copy, context)? else {
        return Ok(Settled::Restless);
    };
    let completed = pending.complete_telling(home, context)?;
    refuse_elsewhere(home, id, &built.dir, &completed)?;
    refresh_cache(home, context)?;
    Ok(Settled::Taken {
        act: act.filter(|act| trash::act(home, act).is_some()),
        left: completed.left.iter().map(ToString::to_string).collect(),
    })
}

/// Writes down what makes the new version the session's own, with the former one out of its place; `None` when that was
/// written to, and is back.
fn begin(
    home: &LockedHome,
    plan: &Plan,
    entries: Vec<Mend>,
    copy: &mut Copy,
    context: &Context,
) -> Result<Option<(journal::Pending, Option<String>)>> {
    let Some(here) = &plan.here else {
        failpoint::hit("relay-take.noted");
        let steps = steps(plan, entries, &copy.spoken_of(), None);
        let pending = journal::begin(home, "relay take", steps, context)?;
        return Ok(Some((pending, None)));
    };
    let act = trash::open(home, note(plan, context), context)?;
    failpoint::hit("relay-take.noted");
    let former = Former::new(home, &plan.session, here, &act)?;
    let pending = match journal::begin(home, "relay take", former.back(), context) {
        Ok(pending) => pending,
        Err(error) => {
            // Nothing but a note is there, and nobody has been told of it.
            let _ = trash::close(home, &act);
            return Err(error);
        }
    };
    match former.put_away(context) {
        Ok(true) => {
            let steps = steps(plan, entries, &copy.spoken_of(), Some(&act));
            let pending = pending.turn_into(steps)?;
            Ok(Some((pending, Some(act))))
        }
        looked => {
            pending.complete(home, context)?;
            former.refuse_lost()?;
            looked.map(|_| None)
        }
    }
}

/// The new version beside its place; gone when it is dropped before the journal may speak of it.
struct Copy<'a> {
    home: &'a LockedHome,
    tmp: Option<PathBuf>,
}

impl Copy<'_> {
    /// Where it is, for the journal. From now on it stays: what no entry speaks of goes with the next command.
    fn spoken_of(&mut self) -> PathBuf {
        self.tmp.take().unwrap_or_default()
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        let name = self.tmp.as_deref().and_then(Path::file_name);
        // What stays is cleared by whoever takes the lock next.
        if let Some(name) = name {
            let _ = Dir::open(self.home.tmp()).and_then(|dir| disk::remove_tree(&dir, name));
        }
    }
}

fn note(plan: &Plan, context: &Context) -> Note {
    let by = match &plan.sender {
        Some(sender) => format!("the version of {}", human::name(&sender.name)),
        None => "the version of the relay".to_owned(),
    };
    let id = human::name(plan.session.as_str());
    Note {
        why: format!("{id} was replaced by {by}"),
        at: context.clock.now().to_string(),
        command: Some("relay take".to_owned()),
        was: vec![Was::new(folder_of(&plan.session))],
        ..Note::default()
    }
}

pub(super) fn folder_of(id: &SessionId) -> PathBuf {
    Path::new("sessions").join(id.as_str())
}

/// What makes the index know the session: its entry, if it has none, and what changes in one.
fn entries(index: &Index, plan: &Plan) -> Vec<Mend> {
    let id = &plan.session;
    let record = plan.record.as_ref();
    let entry = index.find(id.as_str());
    let mut fields = Map::new();
    if let Some(tag) = &plan.sync_tag {
        fields.insert("sync_tag".into(), tag.as_str().into());
    }
    // Taken by force, it is another session.
    let identity = record.and_then(|record| record.session_id.as_deref());
    if let (Some(identity), Some(_)) = (identity, entry) {
        fields.insert("session_id".into(), identity.into());
    }
    let entry = entry.cloned().unwrap_or_else(|| new_entry(id, record));
    let mut steps = vec![Mend::Unarchived {
        entry: entry.fields().clone(),
        archive: None,
    }];
    if !fields.is_empty() {
        steps.push(Mend::Label {
            id: id.to_string(),
            fields: fields.into_iter().collect::<Map<String, Value>>(),
        });
    }
    steps
}

fn steps(plan: &Plan, entries: Vec<Mend>, tmp: &Path, act: Option<&str>) -> Vec<Step> {
    let mut steps = vec![Step::Rename {
        from: tmp.to_string_lossy().into_owned(),
        to: folder_of(&plan.session).to_string_lossy().into_owned(),
    }];
    steps.extend(entries.into_iter().map(|step| Step::Mend { step }));
    steps.push(Step::Views {
        ids: Some(vec![plan.session.to_string()]),
    });
    if let Some(act) = act {
        let act = act.to_owned();
        let step = Mend::Close { act };
        steps.push(Step::Mend { step });
    }
    steps
}

/// Refuses to say that it is done when something else has the place.
fn refuse_elsewhere(
    home: &LockedHome,
    id: &SessionId,
    built: &Dir,
    completed: &Completed,
) -> Result<()> {
    let fail = |e| Error::io("can not look at", home.session(id), e);
    let sessions = Dir::open(home.sessions()).map_err(fail)?;
    let there = sessions.find(OsStr::new(id.as_str())).map_err(fail)?;
    let ours = built.meta().map_err(fail)?;
    if there.is_some_and(|there| there.identity() == ours.identity()) {
        return Ok(());
    }
    let error = Error::failed(format!(
        "the place of `{}` was taken meanwhile",
        human::name(id.as_str())
    ));
    let error = completed.did.iter().cloned().fold(error, Error::hint);
    Err(error.hint("the relay still has its version; look at what is in sessions/ now"))
}
