//! The cold stores: whether they are there, whose they are, how fresh they are; and whether anybody tried to come back
//! from one.

use std::path::Path;

use super::{Check, Verdict, Visit};
use crate::backup::{Snapshot, Store};
use crate::base::{Error, human};
use crate::disaster::last_drill;
use crate::disk::{self, Dir};

/// A snapshot older than so many days is a warning, and then an error.
const WARN: i64 = 2;
const ALARM: i64 = 7;

/// After so many days without a drill a backup is a hope.
const DRILL: i64 = 30;

const DAY: i64 = 86_400;

/// Each store.
pub(super) fn stores(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "backup";
    let Ok(config) = &visit.config else {
        return vec![Check::warning(
            NAME,
            "not looked at: the settings are not understood",
        )];
    };
    if config.backup.store.is_empty() {
        let check = Check::warning(NAME, "no backup store: what dies with this disk is gone");
        return vec![
            check
                .cure("wbhome backup init DIR")
                .hint("DIR is a folder on another disk"),
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
    const NAME: &str = "backup";
    let shown = human::path(path);
    let store = match Store::open_of(path, visit.home) {
        Ok(store) => store,
        Err(error) => {
            let check = Check::failed(NAME, &error);
            return vec![match command_in(&error) {
                Some(command) => check.cure(command),
                None => check,
            }];
        }
    };
    let mut checks = vec![fresh(visit, &store)];
    if !Dir::open(path).is_ok_and(|dir| disk::may_write(&dir)) {
        let check = Check::error(NAME, format!("{shown} can not be written"));
        checks.push(check.hint("is its disk mounted read-only?"));
    }
    let dev = |path: &Path| disk::stat(path).ok().flatten().map(|meta| meta.dev);
    if dev(path) == dev(visit.home.root()) {
        let says = format!(
            "{shown} lies on the same filesystem as the home: it helps against slips, and not against a dead disk"
        );
        let check = Check::warning(NAME, says);
        checks.push(
            check
                .cure("wbhome backup init DIR")
                .hint("DIR is a folder on another disk; several stores may be set"),
        );
    }
    // One line when all is well, and the worst first.
    if checks.len() > 1 && checks[0].verdict == Verdict::Ok {
        checks.rotate_left(1);
    }
    checks
}

/// How old the newest snapshot is that can be read.
fn fresh(visit: &Visit, store: &Store) -> Check {
    const NAME: &str = "backup";
    let shown = human::path(store.path());
    let now = visit.context.clock.now().as_second();
    let all = match store.snapshots() {
        Ok(all) => all,
        Err(error) => return Check::failed(NAME, &error),
    };
    let newest = all.iter().rev().find_map(|at| store.snapshot(*at).ok());
    let run = |check: Check| check.cure("wbhome backup run");
    let Some(snapshot) = newest else {
        let age = now - store.marker().created.as_second();
        let says = format!("{shown} holds no snapshot that can be read");
        return run(match age > ALARM * DAY {
            true => Check::error(NAME, says),
            false => Check::warning(NAME, says),
        });
    };
    let when = human::age(visit.context.clock.now(), snapshot.at);
    let partial = snapshot
        .items
        .iter()
        .filter(|item| !item.newest.is_complete());
    let partial = match partial.count() as u64 {
        0 => String::new(),
        n => format!(", {} only in part", human::plural(n, "thing", "things")),
    };
    let says = format!(
        "{shown}, last snapshot {when}{partial}{}",
        unread(&all, &snapshot)
    );
    match now - snapshot.at.as_second() {
        age if age > ALARM * DAY => run(Check::error(NAME, says)),
        age if age > WARN * DAY => run(Check::warning(NAME, says)),
        _ => Check::ok(NAME, says),
    }
}

fn unread(all: &[jiff::Timestamp], snapshot: &Snapshot) -> String {
    match all.iter().filter(|at| **at > snapshot.at).count() as u64 {
        0 => String::new(),
        n => format!(
            ", {} that can not be read",
            human::plural(n, "newer one", "newer ones")
        ),
    }
}

/// The command that an error names, unless the first thing to do is another: to mount the disk.
fn command_in(error: &Error) -> Option<String> {
    let first = error.hints().first()?;
    let (_, rest) = first.split_once("`wbhome ")?;
    let (command, _) = rest.split_once('`')?;
    Some(format!("wbhome {command}"))
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
