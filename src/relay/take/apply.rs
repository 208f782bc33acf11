//! Carrying it out: a copy beside the place, a second look at the relay, and then the journal.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::agree::agree;
use super::super::lay::{self, Laid, Piece};
use super::super::place::Relay;
use super::super::standing::{Item, Side};
use super::super::version::{self, ATTEMPTS};
use super::refuse::{not_carried, refuse_unleased, unreadable};
use super::{Plan, Request, is_log, own, plan};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::journal::{self, Completed, Step};
use crate::home::mend::{Mend, Seen};
use crate::home::trash::{self, Note, Was};
use crate::home::{Index, IndexFile, LockedHome, Scratch, SessionId};
use crate::sessions::new_entry;
use crate::sessions::reconcile::refresh_cache;
use crate::state::Agent;

/// What has become of the session.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What was done of the plan.
    #[serde(flatten)]
    pub done: Plan,
    /// The act of the trash that holds the former version.
    pub act: Option<String>,
    /// What was left and why, a line each.
    pub left: Vec<String>,
}

/// Takes the version. One that has changed since it was looked at is looked at again, with all that speaks against it.
///
/// # Errors
/// What [`plan`] refuses; a version that changes each time that it is read; a session here that changed meanwhile; what
/// can not be written; interruption. Where nothing was noted yet nothing has changed; else the next command goes on from
/// there.
pub fn apply(
    home: &LockedHome,
    relay: &mut Relay,
    mut plan: Plan,
    request: &Request,
    agents: &[Agent],
    context: &Context,
) -> Result<Outcome> {
    for _ in 0..ATTEMPTS {
        if plan.is_nothing() {
            agree(home, relay, &plan.session, context)?;
            return Ok(Outcome {
                done: plan,
                act: None,
                left: Vec::new(),
            });
        }
        let built = build(home, &plan, context)?;
        let after = version::open(home, relay, &plan.session, context.stop)?;
        if built.laid.restless || !after.is_as(&plan.there) {
            plan = self::plan(home, relay, request, agents, context)?;
            continue;
        }
        if let Some((path, why)) = built.laid.unread.first_key_value() {
            return Err(match plan.keeps_logs() && is_log(path) {
                true => not_carried(home, &plan.session, path, why),
                false => unreadable(relay, &plan.session, path, why),
            });
        }
        relay.read_devices()?;
        refuse_unleased(relay, &plan.session)?;
        refuse_changed(home, &plan, context)?;
        let outcome = settle(home, plan, built, context)?;
        agree(home, relay, &outcome.done.session, context)?;
        return Ok(outcome);
    }
    Err(version::restless(relay, &plan.session))
}

/// A version that is complete, beside its place.
struct Built {
    scratch: Scratch,
    dir: Dir,
    laid: Laid,
}

fn build(home: &LockedHome, plan: &Plan, context: &Context) -> Result<Built> {
    let scratch = home.scratch(context)?;
    let path = scratch.path().join(plan.session.as_str());
    let fail = |e| Error::io("can not write", &path, e);
    let dir = Dir::open(scratch.path())
        .and_then(|dir| dir.make_beneath(Path::new(plan.session.as_str())))
        .map_err(fail)?;
    let owner = owner(home)?;
    let laid = lay::lay(&dir, &pieces(plan, owner), context)?;
    let here = plan.here.as_ref().map(|here| &here.top);
    let dress = || {
        if let Some((uid, gid)) = here
            .map(|top| (top.uid, top.gid))
            .filter(|_| disk::is_root())
            .or(owner)
        {
            dir.set_owner(uid, gid)?;
        }
        dir.set_mode(here.map_or(0o700, |top| top.mode))?;
        dir.set_time(plan.there.top.mtime)?;
        disk::sync_filesystem(&dir)
    };
    dress().map_err(fail)?;
    failpoint::hit("relay-take.built");
    Ok(Built { scratch, dir, laid })
}

/// What root writes here belongs to whom the sessions belong to.
fn owner(home: &LockedHome) -> Result<Option<(u32, u32)>> {
    match disk::is_root() {
        false => Ok(None),
        true => Ok(disk::stat(&home.sessions())?.map(|meta| (meta.uid, meta.gid))),
    }
}

/// What the new version is made of. What holds the same here is taken from here, with all that describes it.
fn pieces(plan: &Plan, owner: Option<(u32, u32)>) -> Vec<Piece<'_>> {
    let keeps_logs = plan.keeps_logs();
    let theirs = plan.there.items.iter();
    let theirs = theirs.filter(|(path, _)| !(keeps_logs && is_log(path)));
    let mut pieces: Vec<Piece> = theirs
        .map(|(path, item)| {
            let here = plan.here.as_ref();
            let mine = here.and_then(|here| Some((here, here.items.get(path)?)));
            let folder = FileKind::Folder;
            match (mine, plan.compared.equal.get(path)) {
                (Some((here, mine)), Some(digest)) => Piece {
                    holds: Some(*digest),
                    ..as_it_is(path, here, mine)
                },
                // A folder keeps who may look into it.
                (Some((_, mine)), _) if mine.meta.kind == folder && item.meta.kind == folder => {
                    Piece {
                        item,
                        from: &plan.there,
                        attributes: false,
                        ..as_it_is(path, &plan.there, mine)
                    }
                }
                _ => sent(path, &plan.there, item, owner),
            }
        })
        .collect();
    if let Some(here) = plan.here.as_ref().filter(|_| keeps_logs) {
        let logs = here.items.iter().filter(|(path, _)| is_log(path));
        pieces.extend(logs.map(|(path, item)| as_it_is(path, here, item)));
    }
    pieces
}

fn as_it_is<'s>(path: &'s Path, from: &'s Side, item: &'s Item) -> Piece<'s> {
    Piece {
        path,
        from,
        item,
        mode: item.meta.mode,
        owner: disk::is_root().then_some((item.meta.uid, item.meta.gid)),
        attributes: true,
        holds: None,
    }
}

/// What another device has sent is its owner's alone, whatever its mode there.
fn sent<'s>(
    path: &'s Path,
    from: &'s Side,
    item: &'s Item,
    owner: Option<(u32, u32)>,
) -> Piece<'s> {
    Piece {
        path,
        from,
        item,
        mode: match item.meta.kind {
            FileKind::Folder => 0o700,
            _ => 0o600 | item.meta.mode & 0o100,
        },
        owner,
        attributes: false,
        holds: None,
    }
}

fn refuse_changed(home: &LockedHome, plan: &Plan, context: &Context) -> Result<()> {
    let now = own(home, &plan.session, context.stop)?;
    let same = match (&now, &plan.here) {
        (Some(now), Some(then)) => now.is_as(then),
        (None, None) => true,
        _ => false,
    };
    match same {
        true => Ok(()),
        false => Err(Error::failed("was changed meanwhile:")
            .at(home.session(&plan.session))
            .hint("nothing was done; look at it, and run the command again")),
    }
}

/// Gives the version its place; the former one goes into the trash.
fn settle(home: &LockedHome, plan: Plan, built: Built, context: &Context) -> Result<Outcome> {
    let id = plan.session.clone();
    let tmp = Path::new(".wbhome/tmp").join(format!("take-{:032x}", context.clock.random()));
    let entries = entries(&IndexFile::ready(home)?, &plan);
    // Out of the scratch folder, which goes with this process: the journal will speak of it.
    disk::rename_no_replace(
        &built.scratch.path().join(id.as_str()),
        &home.root().join(&tmp),
    )?;
    let mut act = None;
    let begun = (|| {
        if plan.here.is_some() {
            act = Some(trash::open(home, note(&plan, context), context)?);
        }
        failpoint::hit("relay-take.noted");
        let steps = steps(&plan, entries, &tmp, act.as_deref());
        journal::begin(home, "relay take", steps, context)
    })();
    let pending = match begun {
        Ok(pending) => pending,
        Err(error) => {
            give_up(home, &tmp, act.as_deref());
            return Err(error);
        }
    };
    let completed = pending.complete_telling(home, context)?;
    refuse_elsewhere(home, &id, &built.dir, &completed)?;
    refresh_cache(home, context)?;
    Ok(Outcome {
        act: act.filter(|act| trash::act(home, act).is_some()),
        left: completed.left.iter().map(ToString::to_string).collect(),
        done: plan,
    })
}

/// Nothing but a copy and a note are there, and nobody has been told of them.
fn give_up(home: &LockedHome, tmp: &Path, act: Option<&str>) {
    let name = tmp.file_name().unwrap_or_default();
    let _ = Dir::open(home.tmp()).and_then(|dir| disk::remove_tree(&dir, name));
    if let Some(act) = act {
        let _ = trash::close(home, act);
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

fn folder_of(id: &SessionId) -> PathBuf {
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
    let path = folder_of(&plan.session);
    let mut steps = Vec::new();
    if let (Some(here), Some(act)) = (&plan.here, act) {
        let step = Mend::PutAway {
            lies: Was::new(&path).lies.into(),
            path: path.clone().into(),
            act: act.to_owned(),
            seen: Seen::of(&here.top),
            held_by: None,
        };
        steps.push(Step::Mend { step });
    }
    steps.push(Step::Rename {
        from: tmp.to_string_lossy().into_owned(),
        to: path.to_string_lossy().into_owned(),
    });
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
