//! What is in a store: how fresh its newest snapshot is, whether the packs are there that it names, and whether there is
//! room for the next one.

use super::{Check, Visit};
use crate::backup::{Snapshot, Store};
use crate::base::human;
use crate::disk::{Dir, Space};

const NAME: &str = "backup";

/// A snapshot older than so many days is a warning, and then an error.
const WARN: i64 = 2;
const ALARM: i64 = 7;

const DAY: i64 = 86_400;

/// A clock may be a little ahead of another.
const AHEAD: i64 = 3_600;

/// Less room than that is soon none, and less than that is none; of a small disk, a tenth and a fiftieth of it.
const SCARCE: u64 = 100 << 20;
const NONE: u64 = 16 << 20;

/// The same for the number of files.
const FEW: u64 = 1_000;
const NO_FILES: u64 = 50;

/// What a store holds: the first check says how fresh it is.
pub(super) fn look(visit: &Visit, store: &Store) -> Vec<Check> {
    let shown = human::path(store.path());
    let now = visit.context.clock.now();
    let all = match store.snapshots() {
        Ok(all) => all,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let newest = all.iter().rev().find_map(|at| store.snapshot(*at).ok());
    let Some(snapshot) = newest else {
        return vec![none(visit, store, !all.is_empty())];
    };
    let mut checks = vec![fresh(visit, store, &snapshot)];
    let unread = all.iter().filter(|at| **at > snapshot.at).count() as u64;
    if unread > 0 {
        let newer = human::plural(unread, "newer snapshot", "newer snapshots");
        let says = format!("{shown} holds {newer} that can not be read");
        checks.push(Check::warning(NAME, says).cure("wbhome backup verify"));
    }
    let said = snapshot.clock.unwrap_or(snapshot.at);
    if said.as_second() - now.as_second() > AHEAD {
        let says = format!("the newest snapshot in {shown} is of {said}, which is still to come");
        let check = Check::warning(NAME, says);
        checks.push(check.hint("nothing is pruned until that day; if the clock was wrong then, and is right now, move that snapshot's file out of the store"));
    }
    checks.extend(packs(store, &snapshot));
    checks.extend(room(store, &snapshot));
    checks
}

/// How old it is, by what the clock said then.
fn fresh(visit: &Visit, store: &Store, snapshot: &Snapshot) -> Check {
    let shown = human::path(store.path());
    let now = visit.context.clock.now();
    let said = snapshot.clock.unwrap_or(snapshot.at);
    let when = human::age(now, said);
    let partial = snapshot
        .items
        .iter()
        .filter(|item| !item.newest.is_complete());
    let partial = match partial.count() as u64 {
        0 => String::new(),
        n => format!(", {} only in part", human::plural(n, "thing", "things")),
    };
    let says = format!("{shown}, last snapshot {when}{partial}");
    let run = |check: Check| check.cure("wbhome backup run");
    match now.as_second() - said.as_second() {
        age if age > ALARM * DAY => run(Check::error(NAME, says)),
        age if age > WARN * DAY => run(Check::warning(NAME, says)),
        _ => Check::ok(NAME, says),
    }
}

/// There is none that can be read, and perhaps none at all yet.
fn none(visit: &Visit, store: &Store, damaged: bool) -> Check {
    let now = visit.context.clock.now().as_second();
    let says = format!(
        "{} holds no snapshot that can be read",
        human::path(store.path())
    );
    let age = now - store.marker().created.as_second();
    let check = match damaged || age > ALARM * DAY {
        true => Check::error(NAME, says),
        false => Check::warning(NAME, says),
    };
    let check = check.cure("wbhome backup run");
    match damaged {
        true => check.hint("it makes a new one; the packs of those that can not be read stay for [backup] keep_deleted"),
        false => check,
    }
}

/// Whether its packs lie there, as long as they were written. What is in them `backup verify` reads.
fn packs(store: &Store, snapshot: &Snapshot) -> Option<Check> {
    let named = || snapshot.items.iter().flat_map(|item| item.packs());
    let lost = named().filter(|pack| !store.has(pack));
    let lost: std::collections::BTreeSet<&str> = lost.map(|pack| pack.file.as_str()).collect();
    let one = lost.first()?;
    let says = format!(
        "{} that the newest snapshot in {} names: gone or cut off, such as {}",
        human::plural(lost.len() as u64, "pack", "packs"),
        human::path(store.path()),
        human::path(std::path::Path::new(one))
    );
    let check = Check::error(NAME, says).cure("wbhome backup verify");
    Some(
        check
            .hint("it names all of them; `wbhome backup run` packs anew what is still in the home"),
    )
}

/// Whether what a night brings finds room.
fn room(store: &Store, snapshot: &Snapshot) -> Option<Check> {
    let space = Dir::open(store.path()).and_then(Space::of).ok()?;
    let fresh = snapshot.items.iter().flat_map(|item| item.packs());
    let fresh = fresh.filter(|pack| pack.at == snapshot.at);
    let night: u64 = fresh.map(|pack| pack.bytes).sum();
    let none = space.bytes < NONE.min(space.total / 50)
        || space.inodes.is_some_and(|inodes| inodes < NO_FILES);
    let scarce = space.bytes < night.max(SCARCE.min(space.total / 10))
        || space.inodes.is_some_and(|inodes| inodes < FEW);
    let shown = human::path(store.path());
    let says = match space.inodes {
        Some(inodes) if inodes < FEW => format!(
            "{shown}: {} left, and no more than {}",
            human::size(space.bytes),
            human::plural(inodes, "new file", "new files")
        ),
        _ => format!("{shown}: {} left", human::size(space.bytes)),
    };
    let check = match (none, scarce) {
        (true, _) => Check::error(NAME, says),
        (_, true) => Check::warning(NAME, says),
        _ => return None,
    };
    let prune = format!(
        "wbhome backup prune --store {}",
        human::quoted(store.path())
    );
    Some(check.cure(prune).hint(
        "it removes what nothing needs any more; where that is little, a larger disk helps, or a shorter [backup] keep",
    ))
}
