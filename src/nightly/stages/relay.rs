//! The last stage: tagged sessions into the relay, when one is set.

use super::NAMED;
use crate::base::human;
use crate::nightly::{Night, Stage};
use crate::relay::sync;
use crate::relay::{Outcome, Session, State};

/// The relay holds what it should. Where none is set there is no such stage.
pub(super) fn sync(night: &Night, _: &[Stage]) -> Vec<Stage> {
    let config = night.config.as_ref();
    if config.is_ok_and(|config| config.relay.dir.is_none()) {
        return Vec::new();
    }
    vec![night.set_up("relay", None, |stage| {
        let request = (night.request.relay_request)(night.home)?;
        let mut relay = (night.request.relay)(night.home)?;
        let done = if night.only_look {
            sync::plan(night.home, &relay, &request, night.context)?.told
        } else {
            let locked = night.lock(stage)?;
            relay.read_devices()?;
            let plan = sync::plan(&locked, &relay, &request, night.context)?;
            sync::apply(&locked, &mut relay, plan, &request, night.context)?
        };
        tell(stage, &done);
        Ok(())
    })]
}

fn tell(stage: &mut Stage, done: &Outcome) {
    let mut parts = Vec::new();
    for (what, state) in [
        ("sent", State::Sent),
        ("updated", State::Updated),
        ("removed", State::Removed),
        ("left", State::Left),
        ("held", State::Held),
    ] {
        let n = done.count(state);
        stage.count(what, n);
        if n > 0 {
            parts.push(format!("{} {what}", human::count(n)));
        }
    }
    let same = done.count(State::Same);
    stage.count("same", same);
    let total = human::plural(done.sessions.len() as u64, "session", "sessions");
    stage.did = match parts.is_empty() {
        true => format!("{total} in the relay, as they are here"),
        false => format!("{}; {} the same", parts.join(", "), human::count(same)),
    };
    stage.exit = stage.exit.merge(done.exit());
    for session in done
        .sessions
        .iter()
        .filter(|s| s.state != State::Held && !s.leaks.is_empty())
    {
        let found = human::plural(session.leaks.len() as u64, "secret", "secrets");
        stage.warn(
            format!("{} was sent with {found}", human::name(&session.id)),
            "`wbhome relay sync -n` names each; [secrets] on_find is \"warn\"",
        );
    }
    let released = done.released.iter();
    stage.notes.extend(released.map(|session| {
        format!(
            "the lease of {} is released: it does not travel any more",
            human::name(session)
        )
    }));
    for lost in &done.overtaken {
        let session = human::name(&lost.session);
        let why = match &lost.holder {
            Some(holder) => format!("{} has a better claim", human::name(&holder.name)),
            None => "another device has taken it, and let go of it since".to_owned(),
        };
        stage.warn(
            format!("the lease of {session} is given up: {why}"),
            "`wbhome relay status` says whether there are two versions of it now",
        );
    }
    let stuck: Vec<&Session> = done.stuck().collect();
    for session in stuck.iter().take(NAMED) {
        let message = format!("not sent: {}: {}", human::name(&session.id), session.word());
        stage.lacks(message, Vec::new());
    }
    if let Some(more @ 1..) = stuck.len().checked_sub(NAMED) {
        stage.lacks(format!("and {more} more were not sent"), Vec::new());
    }
    if !stuck.is_empty() {
        stage
            .notes
            .push("`wbhome relay sync -n` says why each is held back".to_owned());
    }
}
