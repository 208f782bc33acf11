//! The agent application's own folder: whether it is found, and how soon it lets go of conversations.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{Check, Visit, edit};
use crate::base::human;
use crate::disk;

/// The setting by which its engine deletes old conversations, by the time of the file, and what it is when nobody has
/// set it.
const KEY: &str = "cleanupPeriodDays";
const USUAL: u64 = 30;

/// Whether the folder that the settings name is there.
pub(super) fn folder(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "agent";
    match (visit.request.state)(visit.home) {
        Err(_) if visit.config.is_err() => Vec::new(),
        Err(error) => {
            let check = Check::failed(NAME, &error);
            let stores = (visit.request.stores)(visit.home).unwrap_or_default();
            let gone = error.path().filter(|path| !disk::exists(path));
            vec![match stores.first().zip(gone) {
                Some((store, folder)) => check
                    .hint(format!(
                        "if it was lost: wbhome restore --all --from {} --state-to {}",
                        human::quoted(store),
                        human::quoted(folder)
                    ))
                    .hint(format!(
                        "if it lies in another place: {}",
                        edit(&visit.home.config_file())
                    )),
                None => check.cure(edit(&visit.home.config_file())),
            }]
        }
        Ok(folders) if folders.is_empty() => Vec::new(),
        Ok(folders) => {
            let shown: Vec<String> = folders.iter().map(|folder| human::path(folder)).collect();
            vec![Check::ok(NAME, shown.join(", "))]
        }
    }
}

/// How long conversations stay. One that rests for as long as `[archive] idle` should still be there.
pub(super) fn retention(visit: &Visit) -> Vec<Check> {
    let Ok(config) = &visit.config else {
        return Vec::new();
    };
    let folders = (visit.request.state)(visit.home).unwrap_or_default();
    let folders = folders.iter();
    folders
        .map(|folder| of_folder(folder, config.archive.idle))
        .collect()
}

fn of_folder(folder: &Path, idle: Duration) -> Check {
    const NAME: &str = "retention";
    let path = folder.join("settings.json");
    let settings = match disk::read_small(&path, 16 << 20) {
        Ok(settings) => settings,
        Err(error) => {
            let check = Check::failed("agent", &error);
            return check.hint(
                "the agent can not read its settings either: put a file there, or move this away",
            );
        }
    };
    let settings = settings.as_deref().map(serde_json::from_slice::<Value>);
    let set = match settings {
        Some(Err(error)) => {
            let says = format!("{}: {error}", human::path(&path));
            return Check::warning(NAME, says).cure(edit(&path));
        }
        Some(Ok(settings)) => settings.get(KEY).and_then(Value::as_u64),
        None => None,
    };
    let (days, by) = match set {
        Some(days) => (days, "as its settings say"),
        None => (USUAL, "as it is when nobody says otherwise"),
    };
    let wanted = idle.as_secs().div_ceil(86_400);
    let days_shown = human::plural(days, "day", "days");
    let says = format!("the agent deletes conversations after {days_shown}, {by}");
    match days < wanted {
        true => Check::warning(
            NAME,
            format!("{says}: sooner than a session counts as resting ([archive] idle)"),
        )
        .cure(edit(&path))
        .hint(format!("\"{KEY}\": {} or more", wanted.max(USUAL))),
        false => Check::ok(NAME, says),
    }
}
