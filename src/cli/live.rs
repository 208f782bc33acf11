//! The agents that the application's own folders name, for verbs that must not disturb one.

use super::output::Console;
use super::place;
use crate::base::human;
use crate::home::{Config, Home};
use crate::state::{self, Agent};

/// Every agent of the state folders: the one that the settings name, else those in the user's home. A registry
/// that can not be read is told, and hides nobody's open files.
pub(super) fn agents(home: &Home, console: &Console) -> Vec<Agent> {
    let settings = Config::load(home).unwrap_or_else(|error| {
        console.warn(&human::escape(&error.to_string()));
        Config::default()
    });
    let folders = match settings.state.dir {
        Some(folder) => vec![folder],
        None => place::user_home()
            .map(|user| state::folders_in(&user))
            .unwrap_or_default(),
    };
    let mut agents = Vec::new();
    for folder in folders {
        match state::agents(&folder) {
            Ok(found) => agents.extend(found),
            Err(error) => console.warn(&format!(
                "{}; whether an agent is at work is not known from there",
                human::escape(&error.to_string())
            )),
        }
    }
    agents
}
