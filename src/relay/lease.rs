//! `wbhome lease take`, `release` and `steal`: which device may write to a session that travels.
//!
//! A lease is a line in the file of one device, with a number that is higher than any before it: of two claims the
//! higher one counts. Nobody is asked, and a sync client carries the line when it does; so a lease keeps apart people
//! who look at it, and can not prevent that two devices take one in the same minute. Then each sees both claims as soon
//! as they have met, and the one with the lower gives its own up.

use std::collections::BTreeSet;

use serde::Serialize;

use super::claim::Claimants;
use super::meant::refuse_at_home;
use super::said::HIGHEST;
use super::{Claim, Lease, Relay, give_up, note, overtaken};
use crate::base::{Context, Error, Result, human};
use crate::home::{Home, Index, LockedHome, SessionId, lease_hint};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The lease, if nobody has it.
    Take,
    /// The lease, whoever has it.
    Steal,
    /// To be rid of it.
    Release,
}

/// What becomes of the lease of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nobody had it, and this device takes it.
    Taken,
    /// Another device had it, and this one takes it.
    Stolen,
    /// This device has it already.
    Held,
    /// This device had it, and nobody has it now.
    Released,
    /// Another device has it, or has had it since; the claim of this one, which was overtaken, goes.
    GivenUp,
    /// Nobody has it, and nothing is to be released.
    Free,
}

/// A session, and what becomes of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its id.
    #[serde(rename = "id")]
    pub session: SessionId,
    /// What becomes of its lease.
    pub change: Change,
    /// The number of this device's lease, which it gets, has or had.
    pub epoch: Option<u64>,
    /// The other device that had it, or has it.
    pub other: Option<Claim>,
}

/// A session whose lease stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its id.
    #[serde(rename = "id")]
    pub session: SessionId,
    /// Why, for a person.
    pub why: String,
    /// What can be done about it.
    pub hints: Vec<String>,
    /// The other device that has the lease.
    pub other: Option<Claim>,
}

/// What would become of the leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Session by session.
    pub sessions: Vec<Step>,
    /// Those for which it is not done.
    pub refused: Vec<Refused>,
}

/// What has become of the leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Session by session.
    pub sessions: Vec<Step>,
    /// Those for which it was not done.
    pub refused: Vec<Refused>,
}

impl Plan {
    /// The leases that would be taken from other devices.
    pub fn stolen(&self) -> impl Iterator<Item = (&Step, &Claim)> {
        let stolen = self.sessions.iter();
        stolen
            .filter(|step| step.change == Change::Stolen)
            .filter_map(|step| Some((step, step.other.as_ref()?)))
    }
}

/// What would become of the leases of these sessions.
///
/// # Errors
/// An index that can not be understood.
pub fn plan(
    home: &Home,
    relay: &Relay,
    ids: &[SessionId],
    wish: Wish,
    context: &Context,
) -> Result<Plan> {
    let index = Index::read(home)?;
    let claimants = Claimants::of(&relay.devices, &relay.seen, context.clock.now());
    let mut plan = Plan {
        sessions: Vec::new(),
        refused: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for id in ids.iter().filter(|id| seen.insert(*id)) {
        let found = Found::of(id, relay, &claimants);
        let step = match wish {
            Wish::Release => found.release(context),
            Wish::Take | Wish::Steal => found.take(home, &index, relay, wish, context),
        };
        match step {
            Ok(step) => plan.sessions.push(step),
            Err(error) => plan.refused.push(found.refused(&error)),
        }
    }
    Ok(plan)
}

/// Who has the lease of a session.
struct Found<'a> {
    id: &'a SessionId,
    /// What this device claims.
    ours: Option<&'a Lease>,
    /// Whether that counts.
    held: bool,
    /// Another device that has the better claim.
    other: Option<Claim>,
}

impl<'a> Found<'a> {
    fn of(id: &'a SessionId, relay: &'a Relay, claimants: &Claimants) -> Found<'a> {
        let own = relay.devices.own();
        let holder = relay.devices.holder(id.as_str());
        Found {
            id,
            ours: own.and_then(|own| own.leases.get(id.as_str())),
            held: holder.as_ref().is_some_and(|holder| holder.ours),
            other: holder
                .filter(|holder| !holder.ours)
                .map(|holder| claimants.claim(holder)),
        }
    }

    fn take(
        &self,
        home: &Home,
        index: &Index,
        relay: &Relay,
        wish: Wish,
        context: &Context,
    ) -> Result<Step> {
        let change = match (&self.other, self.ours) {
            (None, Some(ours)) if self.held => {
                return Ok(self.step(Change::Held, Some(ours.epoch)));
            }
            (None, _) => Change::Taken,
            (Some(_), _) if wish == Wish::Steal => Change::Stolen,
            (Some(other), _) => return Err(self.elsewhere(other, context)),
        };
        // What another device claims travels, whatever became of it here.
        if change == Change::Taken {
            refuse_at_home(index, relay, self.id)?;
        }
        let highest = relay.devices.highest_epoch(self.id.as_str());
        match highest < HIGHEST {
            true => Ok(self.step(change, Some(highest + 1))),
            false => Err(self.at_the_end(home, relay)),
        }
    }

    fn release(&self, context: &Context) -> Result<Step> {
        match (&self.other, self.ours) {
            (None, None) => Ok(self.step(Change::Free, None)),
            (None, Some(ours)) if self.held => Ok(self.step(Change::Released, Some(ours.epoch))),
            (_, Some(ours)) => Ok(self.step(Change::GivenUp, Some(ours.epoch))),
            (Some(other), None) => Err(self.elsewhere(other, context)),
        }
    }

    fn step(&self, change: Change, epoch: Option<u64>) -> Step {
        Step {
            session: self.id.clone(),
            change,
            epoch,
            other: self.other.clone(),
        }
    }

    fn elsewhere(&self, other: &Claim, context: &Context) -> Error {
        Error::failed(format!(
            "{}; {}",
            other.told(self.id.as_str(), context),
            other.heard(context)
        ))
        .hint(lease_hint(self.id.as_str()))
    }

    fn at_the_end(&self, home: &Home, relay: &Relay) -> Error {
        let shown = human::name(self.id.as_str());
        let noted = human::quoted(&home.leases_file());
        Error::failed(format!("there is no higher number than that of the lease of `{shown}` in"))
            .at(relay.path.join(super::FOLDER))
            .hint("no device counts that far: one of the files there was not written by wbhome; move it away")
            .hint(format!("what it said is noted, too, and counts on until that is gone: rm {noted}"))
    }

    fn refused(&self, error: &Error) -> Refused {
        Refused {
            session: self.id.clone(),
            why: error.to_string(),
            hints: error.hints().to_vec(),
            other: self.other.clone(),
        }
    }
}

/// Does it: this device says from now on what it holds. Then the files of all are read once more, and a lease that
/// another device has taken in the same moment, with the better claim, is given up.
///
/// # Errors
/// When it can not be written.
pub fn apply(
    home: &LockedHome,
    relay: &mut Relay,
    plan: Plan,
    context: &Context,
) -> Result<Outcome> {
    let mut said = relay.said()?.clone();
    let since = context.clock.now();
    for step in &plan.sessions {
        let session = step.session.as_str();
        match (step.change, step.epoch) {
            (Change::Taken | Change::Stolen, Some(epoch)) => {
                let lease = Lease { epoch, since };
                said.leases.insert(session.to_owned(), lease);
            }
            (Change::Released | Change::GivenUp, _) => drop(said.let_go(session)),
            _ => {}
        }
    }
    if said != *relay.said()? {
        relay.say(&said)?;
    }
    let mut done = Outcome {
        sessions: plan.sessions,
        refused: plan.refused,
    };
    lost(relay, &mut done, context)?;
    note(home, relay, context)?;
    Ok(done)
}

/// What was taken here and at the same moment elsewhere.
fn lost(relay: &mut Relay, done: &mut Outcome, context: &Context) -> Result<()> {
    let is_new = |step: &Step| matches!(step.change, Change::Taken | Change::Stolen);
    let new = done.sessions.iter().filter(|step| is_new(step));
    let new: BTreeSet<&str> = new.map(|step| step.session.as_str()).collect();
    let lost: BTreeSet<String> = overtaken(&relay.devices)
        .into_iter()
        .map(|(session, ..)| session)
        .filter(|session| new.contains(session.as_str()))
        .collect();
    give_up(relay, lost.iter().map(String::as_str))?;
    let (gone, kept) = std::mem::take(&mut done.sessions)
        .into_iter()
        .partition(|step| lost.contains(step.session.as_str()));
    done.sessions = kept;
    let claimants = Claimants::of(&relay.devices, &relay.seen, context.clock.now());
    for step in gone {
        let found = Found::of(&step.session, relay, &claimants);
        if let Some(other) = &found.other {
            done.refused
                .push(found.refused(&found.elsewhere(other, context)));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
