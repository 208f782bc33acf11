//! What was settled of a command that had been killed, told to a person.

use super::journal::Settled;
use crate::base::human;

/// So many steps are named when not all are.
const STEPS: usize = 3;

impl Settled {
    /// One line. `all` names each step.
    pub fn told(&self, all: bool) -> String {
        let who = match &self.command {
            Some(command) => format!(
                "`wbhome {}` was stopped in the middle",
                human::escape(command)
            ),
            None => "a command was stopped in the middle".to_owned(),
        };
        match (&self.pending, self.did.is_empty()) {
            (Some(why), _) => format!(
                "{who}, and can not be completed yet: {}",
                human::escape(why)
            ),
            (None, true) => {
                format!("{who}, and left nothing half done; run it again if its work is missing")
            }
            (None, false) => format!(
                "{who}; completed now: {}",
                human::escape(&shortened(&self.did, all))
            ),
        }
    }
}

/// What was done, and of much the beginning; what was left stands there.
fn shortened(did: &[String], all: bool) -> String {
    if all || did.len() <= STEPS + 1 {
        return did.join("; ");
    }
    let more = human::count((did.len() - STEPS) as u64);
    format!("{}; and {more} steps more", did[..STEPS].join("; "))
}
