//! What a command has done, taken over into the model, and counted: proof that it was really done.

use serde_json::Value;

use crate::deeds::Deed;
use crate::support::Ran;
use crate::written::Lies;
use crate::{Thrash, Trouble, found, judge};

impl Thrash {
    /// The model takes over what a command was told to change.
    pub fn settle(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        labels: &[String],
        ran: Option<&Ran>,
        trouble: Trouble,
    ) {
        let home = self.home();
        let done = ran.is_some_and(|ran| ran.code == Some(0));
        let sure = done && !trouble.full;
        if let (Some(id), Some((from, to))) = (target, deed.moves()) {
            let lies = judge::lies(&home, id);
            let right = match done {
                true => lies == to,
                false => lies == from || lies == to,
            };
            if !right {
                self.fail(&[format!("{id} lies in {lies:?} after {deed:?}: {ran:#?}")]);
            }
            let moment = self.moment();
            self.change(id, |session| {
                session.lies = lies;
                let since = session.removed_at.unwrap_or(moment);
                session.removed_at = (lies == Lies::Trash).then_some(since);
            });
            if lies == to {
                let moved = match deed {
                    Deed::Archive => "archived",
                    Deed::Unarchive => "unarchived",
                    Deed::Remove => "removed",
                    _ => "restored",
                };
                self.effect(moved, 1);
            } else if done || ran.is_some() {
                self.effect("refused, since somebody wrote", 1);
            }
        }
        if deed == Deed::New {
            self.settle_new();
        }
        if deed == Deed::EmptyTrash {
            self.settle_emptied(ran.is_some());
        }
        // Of what was killed, either is right, if it is whole; of what was done, only the new.
        if let (Deed::Label, Some(id)) = (deed, target) {
            self.settle_labels(id, labels, done);
        }
        if matches!(deed, Deed::Index | Deed::ByHand | Deed::Nightly) && sure
            || ran.is_none()
            || trouble.full
        {
            for id in self.all().keys() {
                self.change(id, |session| session.known = true);
            }
        }
        if let Some(ran) = ran.filter(|_| done) {
            self.count(deed, ran);
        }
    }

    /// `new` has made a folder, if it came so far.
    fn settle_new(&mut self) {
        let known = self.all();
        for path in found::names(&self.home().join("sessions")) {
            let id = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !id.starts_with('.') && !known.contains_key(&id) {
                self.take_in(&id);
                self.change(&id, |session| session.known = true);
                self.effect("new", 1);
            }
        }
    }

    fn settle_emptied(&mut self, ended: bool) {
        let home = self.home();
        for (id, session) in self.all() {
            if session.lies != Lies::Trash || judge::lies(&home, &id) == Lies::Trash {
                continue;
            }
            // What is removed while the clock is behind seems older than it is.
            let age = self.moment() - session.removed_at.unwrap();
            if age < 30 * 86_400 {
                self.fail(&[format!(
                    "{id} was emptied out of the trash after {age} s ({ended})"
                )]);
            }
            self.change(&id, |session| session.lies = Lies::Gone);
            self.effect("emptied", 1);
        }
    }

    fn settle_labels(&mut self, id: &str, told: &[String], done: bool) {
        let entries = found::index(&self.home());
        let found = judge::labels(&entries[id]);
        let former = self.all()[id].labels.clone();
        let mut wanted = former.clone();
        wanted.told(told);
        if found != wanted && (done || found != former) {
            self.fail(&[format!("{id}: {found:?}, not {wanted:?}, after {former:?}")]);
        }
        self.effect("labelled", u64::from(found != former));
        self.change(id, |session| session.labels = found);
    }

    /// Proof that it was really done.
    fn count(&mut self, deed: Deed, ran: &Ran) {
        let said = match ran.stdout.trim().is_empty() {
            true => return,
            false => ran.json(),
        };
        let length = |value: &Value| value.as_array().map_or(0, |all| all.len() as u64);
        let stores = said["stores"].as_array().cloned().unwrap_or_default();
        match deed {
            Deed::Commit | Deed::CommitOne => {
                self.effect("committed", u64::from(!said["commit"].is_null()));
            }
            Deed::Consolidate => {
                self.effect("consolidated", u64::from(!said["consolidated"].is_null()));
            }
            Deed::Rotate | Deed::RotateForced => {
                self.effect("cut", length(&said["cut"]));
                self.effect("compressed", length(&said["compressed"]));
                self.effect("cut logs let go of", length(&said["removed"]));
            }
            Deed::Backup => {
                let packed = stores.iter().map(|store| length(&store["packed"]));
                self.effect("packed", packed.sum());
            }
            Deed::Prune => {
                let gone = stores.iter().map(|store| length(&store["snapshots"]));
                self.effect("snapshots pruned", gone.sum());
                let gone = stores.iter().map(|store| length(&store["packs"]));
                self.effect("packs pruned", gone.sum());
            }
            Deed::Relay => {
                let sessions = said["sessions"].as_array().cloned().unwrap_or_default();
                for session in &sessions {
                    match session["state"].as_str() {
                        Some("sent") => self.effect("sent", 1),
                        Some("updated") => self.effect("updated in the relay", 1),
                        Some("removed") => self.effect("taken out of the relay", 1),
                        _ => {}
                    }
                }
            }
            Deed::Index | Deed::ByHand => self.effect("added to the index", length(&said["added"])),
            Deed::Nightly => self.effect("nights", 1),
            Deed::Verify => self.effect("verified", 1),
            Deed::Look => self.effect("looked", 1),
            _ => {}
        }
    }
}
