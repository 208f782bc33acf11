//! The cold stores: whether they are there, whose they are, where they lie; and whether anybody tried to come back from
//! one.

use std::path::Path;

use super::{Check, Verdict, Visit, snapshots};
use crate::backup::init::on_one_disk;
use crate::backup::{Store, word};
use crate::base::{Error, Kind, human};
use crate::disaster::last_drill;
use crate::disk::{self, Dir};

const NAME: &str = "backup";

/// After so many days without a drill a backup is a hope.
const DRILL: i64 = 30;

const DAY: i64 = 86_400;

/// Each store.
pub(super) fn stores(visit: &Visit) -> Vec<Check> {
    let Ok(config) = &visit.config else {
        return vec![Check::warning(
            NAME,
            "not looked at: the settings are not understood",
        )];
    };
    if config.backup.store.is_empty() {
        let check = Check::warning(NAME, "no backup store: what dies with this disk is gone");
        return vec![
            check.hint("`wbhome backup init DIR` makes one; DIR is a folder on another disk"),
        ];
    }
    if !visit.home.is_trusted() {
        return vec![Check::ok(NAME, "not looked at: the home was not named")];
    }
    match (visit.request.stores)(visit.home) {
        Ok(stores) => stores.iter().flat_map(|path| store(visit, path)).collect(),
        Err(error) => vec![Check::failed(NAME, &error)],
    }
}

fn store(visit: &Visit, path: &Path) -> Vec<Check> {
    let store = match Store::open_of(path, visit.home) {
        Ok(store) => store,
        Err(error) => return vec![unusable(visit, path, &error)],
    };
    let mut checks = snapshots::look(visit, &store);
    checks.extend(place(visit, path));
    // One line when all is well, and the worst first.
    if checks.len() > 1 && checks[0].verdict == Verdict::Ok {
        checks.rotate_left(1);
    }
    checks
}

/// Where it lies: whether it can be written, and how much of what happens to the home happens to it as well.
fn place(visit: &Visit, path: &Path) -> Vec<Check> {
    let shown = human::path(path);
    let mut checks = Vec::new();
    if !Dir::open(path).is_ok_and(|dir| disk::may_write(&dir)) {
        let check = Check::error(NAME, format!("{shown} can not be written"));
        checks.push(check.hint("is its disk mounted read-only?"));
    }
    let another =
        "DIR is a folder on another disk; several stores may be set: `wbhome backup init DIR`";
    if on_one_disk(visit.home.root(), path) {
        let says = format!(
            "{shown} lies on the same filesystem as the home: it helps against slips, and not against a dead disk"
        );
        checks.push(Check::warning(NAME, says).hint(another));
    }
    let real = disk::real_path(path).unwrap_or_else(|_| path.to_path_buf());
    if let Some((_, client)) = disk::sync_folder(&real) {
        let says = format!(
            "{shown} lies in a folder of {client}: what is backed up there leaves this machine, and what the client removes is gone"
        );
        checks.push(Check::warning(NAME, says).hint(another));
    }
    checks
}

/// A store that can not be opened as this home's. What is printed as its cure is never refused.
fn unusable(visit: &Visit, path: &Path, error: &Error) -> Check {
    let check = Check::failed(NAME, error);
    let named = human::quoted(path);
    let Ok(store) = Store::open_to_read(path) else {
        return match disk::exists(path) || error.kind() != Kind::Failed {
            true => check,
            // One whose disk is away comes back with it.
            false => check.hint(format!(
                "if it was never made, or is gone: `wbhome backup init --again {named}` makes a new one"
            )),
        };
    };
    let whole = Store::open(path).is_ok();
    if store.marker().home != visit.home.id() || error.kind() != Kind::Failed {
        return check;
    }
    match word::adoption(visit.home, &store, !whole) {
        Ok(_) if whole => check.cure(format!("wbhome backup adopt {named}")),
        Ok(_) => check.cure(format!("wbhome backup adopt --force {named}")),
        Err(why) => Check {
            hints: why.hints().to_vec(),
            ..check
        }
        .hint(why.to_string()),
    }
}

/// When somebody last tried to come back.
pub(super) fn drill(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "drill";
    let has_store = matches!(&visit.config, Ok(config) if !config.backup.store.is_empty());
    if !has_store || !visit.home.is_trusted() {
        return Vec::new();
    }
    let now = visit.context.clock.now();
    let last = match last_drill(visit.home) {
        Ok(last) => last,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let since = match last {
        Some(last) => Some(last),
        None => first_store(visit),
    };
    let old = since.is_some_and(|since| now.as_second() - since.as_second() >= DRILL * DAY);
    let says = match (last, since) {
        (Some(last), _) => format!("the last one was {}", human::age(now, last)),
        (None, Some(since)) => {
            format!(
                "none yet; there has been a store since {}",
                human::age(now, since)
            )
        }
        (None, None) => "none yet".to_owned(),
    };
    vec![match old {
        true => Check::warning(NAME, says)
            .cure("wbhome drill")
            .hint("it rehearses a restore: a backup that was never restored is a hope"),
        false => Check::ok(NAME, says),
    }]
}

fn first_store(visit: &Visit) -> Option<jiff::Timestamp> {
    let stores = (visit.request.stores)(visit.home).ok()?;
    let made = stores.iter().filter_map(|path| {
        let store = Store::open_of(path, visit.home).ok()?;
        Some(store.marker().created)
    });
    made.min()
}
