//! What the agent application had in its own folder, out of a store and without the home: for when the home is back, or
//! was never gone.

use std::time::Instant;

use super::plan::{counted, refuse_state_place};
use super::{Outcome, Plan, Request, late_warnings, place, state};
use crate::backup::{Kind, Source, Store};
use crate::base::{Context, Error, Result};
use crate::disk;

/// What laying it would do.
///
/// # Errors
/// A store that is not there, or holds nothing of it; a folder that holds something, or lies where it can not be; no room.
pub(super) fn plan(request: &Request, context: &Context) -> Result<Plan> {
    let store = Store::open_to_read(&request.store)?;
    let source = Source::of(&store, request.at, context)?;
    let snapshot = source.snapshot();
    let home = snapshot.home.path.to_path_buf();
    let of_home = Request {
        to: home,
        ..request.clone()
    };
    refuse_state_place(&of_home, &store, snapshot)?;
    if state::items(&source).next().is_none() {
        return Err(Error::failed(
            "the snapshot holds nothing of the agent application's own folder:",
        )
        .at(store.path())
        .hint("it is backed up as long as [state] dir is set in wbhome.toml"));
    }
    let (mut kinds, _, _) = counted(&source, true);
    kinds.retain(|counted| matches!(counted.kind, Kind::State | Kind::Transcripts));
    let to = disk::real_path(request.state_to.as_deref().unwrap_or(&request.to))?;
    let mut plan = Plan {
        store_path: disk::real_path(store.path())?.into(),
        to: of_home.to.into(),
        snapshot: snapshot.at,
        home: snapshot.home.id.clone(),
        was: snapshot.home.path.clone(),
        host: snapshot.home.device.host.clone(),
        kinds,
        were_missing: Vec::new(),
        removed: Vec::new(),
        git: None,
        needs: 0,
        room: 0,
        begun: state::is_laid(&to),
        skipped: source.skipped(),
        standing: place::Standing::Free,
        surviving: None,
        request: Request {
            to: to.clone(),
            state_to: Some(to),
            ..request.clone()
        },
        store,
    };
    plan.look_at_room(context)?;
    Ok(plan)
}

/// Lays it.
///
/// # Errors
/// What can not be written, and interruption: then nothing of it has its name.
pub(super) fn apply(plan: &Plan, context: &Context) -> Result<Outcome> {
    let begun = Instant::now();
    let source = Source::of(&plan.store, Some(plan.snapshot), context)?;
    let mut outcome = Outcome::of(plan, &source);
    outcome.moved = false;
    let to = &plan.request.to;
    let was_laid = state::is_laid(to);
    context.progress.stage("restoring", plan.content());
    let laid = state::lay(&source, to, &mut outcome, context);
    context.progress.finish();
    match laid {
        Ok(back) => outcome.state = Some(back),
        Err(error) => {
            // What another run has laid there waits for that one.
            if !was_laid {
                state::give_up(to);
            }
            return Err(error);
        }
    }
    state::move_up(to)?;
    outcome.warnings.extend(late_warnings(&source, plan));
    outcome.kinds.sort_by_key(|counted| counted.kind);
    outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(outcome)
}
