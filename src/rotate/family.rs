//! What was cut out of a log before: let go of, compressed, let go of. None of it is being written, so that there is
//! time; what fails is tried again next time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::outcome::{Compressed, Failed, Outcome, Removed};
use super::{Beyond, Plan, Planned, Request, compress, names, retire};
use crate::base::{Context, Error, Result, human};
use crate::disk::{Dir, FileKind};
use crate::home::{Compress, Home, LockedHome, log_folder};

/// What one cut has put aside, under one name or, after a kill, under two.
#[derive(Clone, Debug)]
struct Generation {
    /// When.
    at: Timestamp,
    /// Each name with how it is compressed and its length.
    files: Vec<(OsString, Compress, u64)>,
}

impl Generation {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// The name under which it is not compressed.
    fn plain(&self) -> Option<&OsStr> {
        let mut files = self.files.iter();
        let plain = files.find(|(_, compress, _)| *compress == Compress::None);
        plain.map(|(name, _, _)| name.as_os_str())
    }
}

/// All that was cut out of one log, the newest first.
#[derive(Debug)]
struct Family {
    folder: PathBuf,
    session: Option<String>,
    generations: Vec<Generation>,
}

impl Family {
    /// Lets go of one; gives what went.
    fn take(&mut self, n: usize, beyond: Beyond) -> (Generation, Vec<Removed>) {
        let generation = self.generations.remove(n);
        let files = generation.files.iter();
        let removed = files.map(|(name, _, bytes)| Removed {
            path: self.folder.join(name).into(),
            bytes: *bytes,
            beyond,
        });
        let removed = removed.collect();
        (generation, removed)
    }

    /// The places of those that go by their number and age, the last first.
    fn beyond(&self, request: &Request, now: Timestamp) -> Vec<(usize, Beyond)> {
        let ages: Vec<Timestamp> = self.generations.iter().map(|g| g.at).collect();
        let settings = &request.settings;
        let why = retire::by_count_and_age(&ages, settings.keep, settings.max_age, now);
        let going = why.into_iter().enumerate().rev();
        going.filter_map(|(n, why)| Some((n, why?))).collect()
    }

    /// Those that are to be compressed.
    fn uncompressed(&self, request: &Request) -> impl Iterator<Item = &Generation> {
        let skip = usize::from(request.settings.delay_compress);
        let wanted = request.settings.compress != Compress::None;
        let rest = self.generations.iter().skip(skip);
        rest.filter(move |generation| wanted && generation.plain().is_some())
    }
}

/// The families of these logs; folders that can not be listed are told.
fn families(home: &Home, logs: &[Planned], failed: &mut Vec<Failed>) -> Vec<Family> {
    let mut folders: BTreeMap<&Path, BTreeMap<&OsStr, Option<&String>>> = BTreeMap::new();
    for log in logs {
        let names = folders.entry(&log.found.folder).or_default();
        names.insert(&log.found.name, log.session.as_ref());
    }
    let mut families = Vec::new();
    for (folder, logs) in folders {
        let found = log_folder(home, folder).and_then(|dir| generations(&dir));
        let mut found = found.unwrap_or_else(|error| {
            let told = Error::io("can not list", folder, error);
            failed.push(Failed::of(folder.to_path_buf().into(), &told));
            BTreeMap::new()
        });
        families.extend(logs.into_iter().map(|(log, session)| Family {
            folder: folder.to_path_buf(),
            session: session.cloned(),
            generations: found.remove(log).unwrap_or_default(),
        }));
    }
    families
}

/// What lies in a folder of what was cut out of which log, the newest first.
fn generations(dir: &Dir) -> std::io::Result<BTreeMap<OsString, Vec<Generation>>> {
    type Files = Vec<(OsString, Compress, u64)>;
    let mut found: BTreeMap<OsString, BTreeMap<Timestamp, Files>> = BTreeMap::new();
    for (file, _) in dir.names()? {
        let Some(name) = names::read(&file) else {
            continue;
        };
        let Some(meta) = dir.find(&file)?.filter(|meta| meta.kind == FileKind::File) else {
            continue;
        };
        let times = found.entry(name.log).or_default();
        let files = times.entry(name.at).or_default();
        files.push((file, name.compress, meta.size));
    }
    let newest_first = |ages: BTreeMap<Timestamp, Files>| {
        let each = ages.into_iter().rev();
        each.map(|(at, files)| Generation { at, files }).collect()
    };
    let each = found.into_iter();
    Ok(each.map(|(log, ages)| (log, newest_first(ages))).collect())
}

/// Which go because all of a session's are too large: the family and the place in it.
fn over_total(families: &[Family], most: u64) -> Vec<(usize, usize)> {
    let mut sessions: BTreeMap<&String, Vec<(usize, usize)>> = BTreeMap::new();
    for (f, family) in families.iter().enumerate() {
        let Some(session) = &family.session else {
            continue;
        };
        let places = sessions.entry(session).or_default();
        places.extend((0..family.generations.len()).map(|g| (f, g)));
    }
    let mut going = Vec::new();
    for places in sessions.into_values() {
        let facts = places.iter().map(|&(f, g)| {
            let generation = &families[f].generations[g];
            (generation.at, generation.bytes(), g == 0)
        });
        let facts: Vec<_> = facts.collect();
        going.extend(
            retire::by_total(&facts, most)
                .into_iter()
                .map(|n| places[n]),
        );
    }
    // The last of each first: the places of the others stay what they are.
    going.sort_by(|one, other| other.cmp(one));
    going
}

/// What would go and be compressed once the logs that are due are cut. What compressing would save is not foreseen.
pub(super) fn foresee(home: &Home, plan: &mut Plan, request: &Request, context: &Context) {
    let now = context.clock.now();
    let mut families = families(home, &plan.logs, &mut plan.failed);
    let is_due = |log: &&Planned| log.due.is_some();
    let due: BTreeMap<PathBuf, u64> = plan
        .logs
        .iter()
        .filter(is_due)
        .map(|log| (log.path.0.clone(), log.bytes))
        .collect();
    let order: BTreeSet<(&Path, &OsStr)> = plan
        .logs
        .iter()
        .map(|log| (log.found.folder.as_path(), log.found.name.as_os_str()))
        .collect();
    for (family, (folder, name)) in families.iter_mut().zip(order) {
        if let Some(bytes) = due.get(&folder.join(name)) {
            let newest = family.generations.first().map(|g| g.at);
            let at = names::after(newest, now).unwrap_or(now);
            let generation = Generation {
                at,
                files: vec![(names::name(name, at), Compress::None, *bytes)],
            };
            family.generations.insert(0, generation);
        }
    }
    for family in &mut families {
        for (n, beyond) in family.beyond(request, now) {
            plan.removed.extend(family.take(n, beyond).1);
        }
    }
    if let Some(most) = request.settings.max_total {
        for (f, n) in over_total(&families, most) {
            plan.removed.extend(families[f].take(n, Beyond::MaxTotal).1);
        }
    }
    for family in &families {
        let names = family.uncompressed(request);
        let paths = names.filter_map(|g| Some(family.folder.join(g.plain()?).into()));
        plan.compressed.extend(paths);
    }
}

/// Lets go of what is beyond the settings, unless that is to wait, and compresses what is to be.
pub(super) fn tend(
    home: &LockedHome,
    logs: &[Planned],
    request: &Request,
    outcome: &mut Outcome,
    context: &Context,
) {
    let mut all = families(home, logs, &mut outcome.failed);
    if request.lets_go {
        go_by_count_and_age(home, &mut all, request, outcome, context);
    }
    compress_all(home, &all, request, outcome, context);
    if request.lets_go && request.settings.max_total.is_some() {
        // What is compressed is shorter now. What could not be listed was told.
        let mut all = families(home, logs, &mut Vec::new());
        go_by_total(home, &mut all, request, outcome);
    }
}

/// Lets go of what is beyond the settings.
pub(super) fn let_go(
    home: &LockedHome,
    logs: &[Planned],
    request: &Request,
    outcome: &mut Outcome,
    context: &Context,
) {
    let mut all = families(home, logs, &mut outcome.failed);
    go_by_count_and_age(home, &mut all, request, outcome, context);
    go_by_total(home, &mut all, request, outcome);
}

fn go_by_count_and_age(
    home: &LockedHome,
    all: &mut [Family],
    request: &Request,
    outcome: &mut Outcome,
    context: &Context,
) {
    let now = context.clock.now();
    for family in all {
        for (n, beyond) in family.beyond(request, now) {
            let gone = family.take(n, beyond);
            remove(home, &family.folder, gone, outcome);
        }
    }
}

fn go_by_total(home: &LockedHome, all: &mut [Family], request: &Request, outcome: &mut Outcome) {
    let Some(most) = request.settings.max_total else {
        return;
    };
    for (f, n) in over_total(all, most) {
        let gone = all[f].take(n, Beyond::MaxTotal);
        remove(home, &all[f].folder, gone, outcome);
    }
}

fn compress_all(
    home: &LockedHome,
    all: &[Family],
    request: &Request,
    outcome: &mut Outcome,
    context: &Context,
) {
    for family in all {
        for generation in family.uncompressed(request) {
            if context.stop.raised() {
                outcome.interrupted = true;
                return;
            }
            match pack(home, &family.folder, generation, request, context) {
                Ok(packed) => outcome.compressed.extend(packed),
                Err(_) if context.stop.raised() => outcome.interrupted = true,
                Err(error) => {
                    let path = family.folder.join(generation.plain().unwrap_or_default());
                    outcome.failed.push(Failed::of(path.into(), &error));
                }
            }
        }
    }
}

fn remove(home: &Home, folder: &Path, gone: (Generation, Vec<Removed>), outcome: &mut Outcome) {
    let (generation, removed) = gone;
    let done = log_folder(home, folder).and_then(|dir| {
        for (name, _, _) in &generation.files {
            dir.unlink(name)?;
        }
        dir.sync()
    });
    match done {
        Ok(()) => outcome.removed.extend(removed),
        Err(error) => {
            let path = folder.join(&generation.files[0].0);
            let told = Error::io("can not remove", &path, error);
            outcome.failed.push(Failed::of(path.into(), &told));
        }
    }
}

/// Compresses one, and lets go of what was not compressed.
fn pack(
    home: &Home,
    folder: &Path,
    generation: &Generation,
    request: &Request,
    context: &Context,
) -> Result<Option<Compressed>> {
    let Some(plain) = generation.plain() else {
        return Ok(None);
    };
    let path = folder.join(plain);
    let fail = |e| Error::io("can not compress", &path, e);
    let dir = log_folder(home, folder).map_err(fail)?;
    // One that a kill has left beside what it was made of is looked at first.
    let packed = generation
        .files
        .iter()
        .find(|(_, compress, _)| *compress != Compress::None);
    let (name, compress, is_there) = match packed {
        Some((name, compress, _)) => (name.clone(), *compress, true),
        None => {
            let mut name = plain.to_owned();
            name.push(names::ending(request.settings.compress));
            (name, request.settings.compress, false)
        }
    };
    let (from, bytes) = compress::compress(&dir, plain, &name, compress, is_there, context)
        .map_err(|error| {
            let there = human::path(Path::new(&name));
            match is_there {
                true => fail(error).hint(format!(
                    "{there} lies beside it: look at that, and move it away"
                )),
                false => fail(error),
            }
        })?;
    Ok(Some(Compressed {
        path: folder.join(name).into(),
        from,
        bytes,
    }))
}
