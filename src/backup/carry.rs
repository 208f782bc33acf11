//! From one snapshot to the next: what is there now, and what has to be kept of what is not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::retention::is_older;
use super::{Form, Item, Kept, PackRef, Place, Snapshot, Standing};

/// A thing that is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Its pack as a folder; `None` when it has no folder, or that could not be packed.
    pub folder: Option<PackRef>,
    /// Its archive.
    pub archive: Option<PackRef>,
    /// What of it could not be packed this time: its former pack stands for it.
    pub failed: bool,
    pub session_id: Option<String>,
    pub entry: Option<Map<String, Value>>,
    /// In which way the newest pack holds less than the last complete one.
    pub shrunk: Option<String>,
}

/// What is known besides.
pub(super) struct Now<'a> {
    pub at: Timestamp,
    pub keep_deleted: Duration,
    /// Sessions that were removed on purpose, and when.
    pub removed: &'a BTreeMap<String, Option<Timestamp>>,
    /// Sessions that have another name now, and nothing less in them.
    pub renamed: &'a BTreeSet<Place>,
}

/// The items of the next snapshot.
pub(super) fn next(
    former: Option<&Snapshot>,
    found: BTreeMap<Place, Found>,
    now: &Now,
) -> Vec<Item> {
    let mut items = BTreeMap::new();
    let mut before: BTreeMap<&Place, &Item> = BTreeMap::new();
    if let Some(former) = former {
        before.extend(former.items.iter().map(|item| (&item.place, item)));
    }
    for (place, found) in found {
        let former = before.remove(&place);
        if let Some(item) = present(place, found, former, now) {
            items.insert(item.place.clone(), item);
        }
    }
    for item in before.into_values() {
        if let Some(item) = gone(item, now) {
            items.insert(item.place.clone(), item);
        }
    }
    items.into_values().collect()
}

/// The last copy of its archive.
fn former_archive(former: &Item) -> Option<PackRef> {
    former.in_form(Form::Archive).cloned()
}

fn present(place: Place, found: Found, former: Option<&Item>, now: &Now) -> Option<Item> {
    let (newest, archive) = match (found.folder, found.archive) {
        // An archive that could not be copied this time: the former copy stands for it.
        (Some(folder), None) if found.failed => (folder, former.and_then(former_archive)),
        (Some(folder), archive) => (folder, archive),
        // Only its folder failed: the former pack of that still stands for it.
        (None, archive) if found.failed => match former {
            Some(former) => {
                let mut item = former.clone();
                item.standing = Standing::Present;
                item.since = None;
                match former.newest.form {
                    Form::Archive => {
                        item.newest = archive.unwrap_or(item.newest);
                        item.archive = None;
                    }
                    Form::Packed => item.archive = archive.or_else(|| former.archive.clone()),
                }
                return Some(item);
            }
            None => (archive?, None),
        },
        (None, archive) => (archive?, None),
    };
    let last = former.map(last_complete);
    let complete = match newest.is_complete() {
        true => None,
        false => last.flatten().cloned(),
    };
    let mut kept = former.map(|former| former.kept.clone()).unwrap_or_default();
    if let (Some(why), Some(last)) = (found.shrunk, last.flatten())
        && last.file != newest.file
        && !kept.iter().any(|kept| kept.pack.file == last.file)
    {
        kept.push(Kept {
            why,
            since: now.at,
            pack: last.clone(),
        });
    }
    // Beside a folder nothing else names the copy of an archive that was whole.
    if let Some(damaged) = archive.as_ref().filter(|pack| !pack.is_complete())
        && let Some(whole) = former.and_then(former_archive)
        && whole.is_complete()
        && !kept.iter().any(|kept| kept.pack.file == whole.file)
    {
        let why = damaged.flaws.first().map(|flaw| flaw.why.clone());
        kept.push(Kept {
            why: why.unwrap_or_default(),
            since: now.at,
            pack: whole,
        });
    }
    Some(Item {
        place,
        standing: Standing::Present,
        since: None,
        newest,
        complete,
        archive,
        kept,
        session_id: found.session_id,
        entry: found.entry,
    })
}

/// The newest pack that holds everything.
pub(super) fn last_complete(item: &Item) -> Option<&PackRef> {
    match item.newest.is_complete() {
        true => Some(&item.newest),
        false => item.complete.as_ref(),
    }
}

fn gone(former: &Item, now: &Now) -> Option<Item> {
    let at_home = match &former.place {
        Place::Session(id) => now.removed.get(id.as_str()),
        _ => None,
    };
    // A person may have said so to the store alone, too.
    let removed = former.standing == Standing::Removed || at_home.is_some();
    if !removed && now.renamed.contains(&former.place) {
        return None;
    }
    let standing = match removed {
        true => Standing::Removed,
        false => Standing::Missing,
    };
    let since = match former.standing == standing {
        // It may have been back in between, and removed again.
        true => {
            let again = at_home.copied().flatten().filter(|at| *at <= now.at);
            former.since.max(again).unwrap_or(now.at)
        }
        false => now.at,
    };
    if removed && is_older(since, now.at, now.keep_deleted) {
        return None;
    }
    Some(Item {
        standing,
        since: Some(since),
        ..former.clone()
    })
}

/// How many of the sessions that were there are gone, and of how many, when it is more than half: then it is not sessions
/// that are gone, but a folder that is not there.
pub(super) fn half_gone(
    former: &Snapshot,
    there: &BTreeSet<Place>,
    now: &Now,
) -> Option<(Vec<Place>, usize)> {
    let sessions = former.items.iter().filter(|item| {
        matches!(item.place, Place::Session(_)) && item.standing == Standing::Present
    });
    let (mut gone, mut all) = (Vec::new(), 0);
    for item in sessions {
        let Place::Session(id) = &item.place else {
            continue;
        };
        if now.removed.contains_key(id.as_str()) || now.renamed.contains(&item.place) {
            continue;
        }
        all += 1;
        if !there.contains(&item.place) {
            gone.push(item.place.clone());
        }
    }
    (gone.len() * 2 > all).then_some((gone, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).unwrap()
    }

    fn pack(n: i64, form: Form) -> PackRef {
        PackRef {
            file: format!("{n}-{form:?}"),
            form,
            at: day(n),
            bytes: 1,
            blake3: String::new(),
            files: 1,
            content: 1,
            turns: Some(1),
            seen: Some(String::new()),
            restless: 0,
            unreadable: 0,
            flaws: Vec::new(),
        }
    }

    /// The item that follows: what was packed of its folder and its archive, and whether one of them could not be.
    fn after(former: &Item, packs: [Option<PackRef>; 2], failed: bool) -> Item {
        let [folder, archive] = packs;
        let found = Found {
            folder,
            archive,
            failed,
            ..Found::default()
        };
        let nobody = (BTreeMap::new(), BTreeSet::new());
        let now = Now {
            at: day(9),
            keep_deleted: Duration::MAX,
            removed: &nobody.0,
            renamed: &nobody.1,
        };
        present(former.place.clone(), found, Some(former), &now).unwrap()
    }

    fn item(newest: PackRef, archive: Option<PackRef>) -> Item {
        Item {
            place: Place::Session(crate::home::SessionId::adopt("20240603_a").unwrap()),
            standing: Standing::Present,
            since: None,
            newest,
            complete: None,
            archive,
            kept: Vec::new(),
            session_id: None,
            entry: None,
        }
    }

    #[test]
    fn what_could_not_be_packed_stays_what_it_was() {
        use Form::{Archive, Packed};
        let files = |item: Item| (item.newest.file, item.archive.map(|pack| pack.file));
        let named = |newest: PackRef, archive: Option<PackRef>| {
            (newest.file, archive.map(|pack| pack.file))
        };
        let both = item(pack(1, Packed), Some(pack(1, Archive)));
        // The archive failed, then the folder, then both.
        let now = after(&both, [Some(pack(2, Packed)), None], true);
        assert_eq!(files(now), named(pack(2, Packed), Some(pack(1, Archive))));
        let now = after(&both, [None, Some(pack(2, Archive))], true);
        assert_eq!(files(now), named(pack(1, Packed), Some(pack(2, Archive))));
        assert_eq!(files(after(&both, [None, None], true)), files(both.clone()));
        // It is gone on purpose, and nothing failed.
        let now = after(&both, [Some(pack(2, Packed)), None], false);
        assert_eq!(files(now), named(pack(2, Packed), None));
        // There was only an archive, and the new folder can not be packed.
        let alone = item(pack(1, Archive), None);
        let now = after(&alone, [None, Some(pack(2, Archive))], true);
        assert_eq!(files(now), named(pack(2, Archive), None));
        let now = after(&alone, [None, None], true);
        assert_eq!(files(now), named(pack(1, Archive), None));
    }

    /// Removed, back between two nights, and removed again: it is kept as long as if it had been removed but once.
    #[test]
    fn a_session_that_was_removed_again_is_kept_from_then_on() {
        let former = Item {
            standing: Standing::Removed,
            since: Some(day(1)),
            ..item(pack(1, Form::Packed), None)
        };
        let kept = |removed_at: Option<Timestamp>, night: i64| {
            let removed = BTreeMap::from([("20240603_a".to_owned(), removed_at)]);
            let now = Now {
                at: day(night),
                keep_deleted: Duration::from_secs(5 * 86_400),
                removed: &removed,
                renamed: &BTreeSet::new(),
            };
            gone(&former, &now).map(|item| item.since)
        };
        assert_eq!(kept(Some(day(1)), 9), None);
        assert_eq!(kept(Some(day(7)), 9), Some(Some(day(7))));
        assert_eq!(kept(None, 9), None);
        // A clock that was ahead.
        assert_eq!(kept(Some(day(20)), 9), None);
        assert_eq!(kept(None, 4), Some(Some(day(1))));
    }
}
