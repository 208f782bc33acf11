//! Carrying it out: a copy beside the place, a second look at both sides, and then the journal.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::super::agree::agree;
use super::super::lay::{self, Laid, Piece};
use super::super::place::Relay;
use super::super::seen::note;
use super::super::standing::{Item, Side};
use super::super::version::{self, ATTEMPTS};
use super::refuse::{not_carried, refuse_at_work, unreadable};
use super::settle::{Settled, settle};
use super::{Plan, Request, own, plan};
use crate::base::{Context, Error, Result, failpoint};
use crate::disk::{self, Dir, FileKind};
use crate::home::{IndexFile, LockedHome, Scratch, SessionId, is_log};
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
/// `agents` are the processes that the application has noted by then.
///
/// # Errors
/// What [`plan`] refuses; a version that changes each time that it is read, on either side; what can not be written; interruption. Where nothing was noted yet nothing has changed; else the next command goes on from
/// there.
pub fn apply(
    home: &LockedHome,
    relay: &mut Relay,
    mut plan: Plan,
    request: &Request,
    agents: &dyn Fn() -> Result<Vec<Agent>>,
    context: &Context,
) -> Result<Outcome> {
    let mut synced = false;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            plan = self::plan(home, relay, request, &agents()?, context)?;
        }
        if plan.is_nothing() {
            agree(home, relay, &plan.session, context)?;
            return Ok(Outcome {
                done: plan,
                act: None,
                left: Vec::new(),
            });
        }
        let built = build(home, &plan, context)?;
        synced = !version::open(home, relay, &plan.session, context.stop)?.is_as(&plan.there);
        if built.laid.restless || synced {
            continue;
        }
        if let Some((path, why)) = built.laid.unread.first_key_value() {
            let carried = plan.here.as_ref();
            let carried = carried.is_some_and(|here| here.left_by_others.contains_key(path));
            return Err(match carried || plan.keeps_logs() && is_log(path) {
                true => not_carried(home, &plan.session, path, why),
                false => unreadable(relay, &plan.session, path, why),
            });
        }
        relay.read_devices()?;
        relay.refuse_unleased(plan.session.as_str(), context)?;
        refuse_at_work(home, &IndexFile::ready(home)?, &plan.session, &agents()?)?;
        if !is_unchanged(home, &plan, context)? {
            continue;
        }
        match settle(home, &plan, built, context)? {
            Settled::Restless => {}
            Settled::Taken { act, mut left } => {
                // It is taken, whatever comes of the note.
                let noted = agree(home, relay, &plan.session, context);
                if let Err(error) = noted.and_then(|()| note(home, relay, context)) {
                    left.push(format!(
                        "that both sides are the same is not noted yet: {error}"
                    ));
                }
                let done = plan;
                return Ok(Outcome { done, act, left });
            }
        }
    }
    Err(match synced {
        true => version::restless(relay, &plan.session),
        false => restless_here(home, &plan.session),
    })
}

fn restless_here(home: &LockedHome, id: &SessionId) -> Error {
    Error::failed("is being written to; it changed each time that it was read:")
        .at(home.session(id))
        .hint("end its session first; nothing was changed")
}

/// A version that is complete, beside its place.
pub(super) struct Built {
    pub scratch: Scratch,
    pub dir: Dir,
    pub laid: Laid,
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
    let left = left_by_others(plan, &pieces);
    pieces.extend(left);
    pieces
}

/// What file managers have left here stays, where its folder does.
fn left_by_others<'p>(plan: &'p Plan, pieces: &[Piece<'p>]) -> Vec<Piece<'p>> {
    let Some(here) = &plan.here else {
        return Vec::new();
    };
    let taken: BTreeMap<&Path, FileKind> = pieces
        .iter()
        .map(|piece| (piece.path, piece.item.meta.kind))
        .collect();
    let stays = |path: &Path| {
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_folder =
            parent.as_os_str().is_empty() || taken.get(parent) == Some(&FileKind::Folder);
        is_folder && !taken.contains_key(path)
    };
    let left = here.left_by_others.iter();
    left.filter(|(path, _)| stays(path))
        .map(|(path, item)| as_it_is(path, here, item))
        .collect()
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

fn is_unchanged(home: &LockedHome, plan: &Plan, context: &Context) -> Result<bool> {
    let now = own(home, &plan.session, context.stop)?;
    Ok(match (&now, &plan.here) {
        (Some(now), Some(then)) => now.is_as(then),
        (None, None) => true,
        _ => false,
    })
}
