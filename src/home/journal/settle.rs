//! What killed commands have left: completed by whoever takes the lock next, and what was being built cleared away.

use std::path::Path;

use super::{Pending, Record, Settled, Step, VIEWS_LATER};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, FolderLock};
use crate::home::{Home, IndexFile, LockedHome, RelPath, mend, swap, trash};

/// Completes everything that stands in the journal, oldest first, and clears what was being built.
///
/// An entry that needs an index which a person has broken waits until it parses: otherwise not even
/// `index --rebuild` could take the lock.
///
/// # Errors
/// An entry that can not be understood or completed; something pending in a home that nobody named.
pub(in crate::home) fn settle(home: &LockedHome, context: &Context) -> Result<Vec<Settled>> {
    let folder = home.journal();
    let mut settled = Vec::new();
    let entries = disk::read_dir_names(&folder)?;
    for (name, _) in entries.iter().filter(|(name, _)| !disk::is_temporary(name)) {
        let path = folder.join(name);
        if !home.is_trusted() {
            return Err(Error::failed(
                "a command that was stopped here has left something to be done in",
            )
            .at(home.root())
            .hint(format!(
                "name the home, so that it is settled: --home {}",
                human::quoted(home.root())
            )));
        }
        if let Some(record) = read(&path)? {
            settled.push(settle_one(home, Pending { path, record }, context)?);
        }
    }
    if home.is_trusted() {
        settled.extend(sweep(home, context)?);
        if settled.iter().all(|s| s.pending.is_none()) {
            settled.extend(clear_tmp(home)?);
        }
    }
    Ok(settled)
}

/// How many commands have been stopped in the middle. Nothing is completed.
///
/// # Errors
/// An entry that can not be understood: nothing takes the lock until it is away.
pub fn waiting(home: &Home) -> Result<u64> {
    let folder = home.journal();
    let mut n = 0;
    for (name, _) in disk::read_dir_names(&folder)? {
        if !disk::is_temporary(&name) {
            read(&folder.join(&name))?;
        }
        n += 1;
    }
    Ok(n)
}

/// Puts away what a write that was killed left under a temporary name. It goes to the trash: in one moment of
/// [`disk::replace`] such a file may be all there is of an edit by hand. What can not be put there (on a full disk, out
/// of a folder that is another disk's) is told: it stands in nobody's way.
fn sweep(home: &LockedHome, context: &Context) -> Result<Option<Settled>> {
    let mut did = Vec::new();
    for folder in ["", "archive", ".wbhome", ".wbhome/journal"] {
        for (name, kind) in disk::read_dir_names(&home.root().join(folder))? {
            if kind == FileKind::File && disk::is_temporary(&name) {
                let rel = RelPath::new(Path::new(folder).join(&name))?;
                let why = "a command was stopped while it wrote this";
                did.push(match trash::put(home, &rel, why, context) {
                    Ok(kept) => format!("{why}: {}", trash::shown(home, &kept)),
                    Err(error) => format!("left {}: {error}", human::path(rel.as_path())),
                });
            }
        }
    }
    Ok((!did.is_empty()).then_some(Settled {
        command: None,
        since: None,
        did,
        pending: None,
    }))
}

fn settle_one(home: &LockedHome, pending: Pending, context: &Context) -> Result<Settled> {
    let mut settled = Settled {
        command: Some(pending.record.command.clone()),
        since: Some(pending.record.since.clone()),
        did: Vec::new(),
        pending: None,
    };
    for step in &pending.record.steps {
        step.check(&pending.path)?;
    }
    for record in pending.swaps() {
        let record = RelPath::new(record)?;
        if let Some(why) = swap::waits(home, &record)? {
            settled.pending = Some(why);
            return Ok(settled);
        }
    }
    if pending.needs_index()
        && let Err(error) = IndexFile::update(home, |_| Ok(()))
    {
        // A swap is carried out all the same: the files of the home must not stay half one and half the other.
        for record in pending.swaps() {
            swap::settle(home, &RelPath::new(record)?, context)?;
        }
        settled.pending = Some(error.to_string());
        return Ok(settled);
    }
    let is_cut = |step: &Step| matches!(step, Step::Cut { .. });
    let can_wait = pending.record.steps.iter().all(is_cut);
    let completed = match pending.run(home, context) {
        Ok(completed) => completed,
        // A log that can not be cut stands in nobody's way: its lines are in the copy as well.
        Err(error) if can_wait => {
            settled.pending = Some(error.to_string());
            return Ok(settled);
        }
        Err(error) => return Err(error),
    };
    let unviewed = completed
        .unviewed
        .map(|why| format!("{why}; {VIEWS_LATER}"));
    settled.did = match completed.gave_up {
        None => {
            let left = completed.left.iter().map(mend::Left::to_string);
            left.chain(completed.did).chain(unviewed).collect()
        }
        Some(why) => {
            let hint = why.hints().last().cloned().unwrap_or_default();
            vec![format!("it was taken back: {why}; {hint}")]
        }
    };
    Ok(settled)
}

fn read(path: &Path) -> Result<Option<Record>> {
    let Some(content) = disk::read_own(path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content).map(Some).map_err(|e| {
        Error::io("can not understand the journal entry", path, e)
            .hint("it was written by another version, or damaged: look into it; moved away, it is forgotten")
    })
}

/// Removes what a killed command had begun to build and no journal entry speaks of. What can not be removed is told: it
/// stands in nobody's way.
fn clear_tmp(home: &LockedHome) -> Result<Option<Settled>> {
    let tmp = home.tmp();
    let mut left = Vec::new();
    for (name, _) in disk::read_dir_names(&tmp)? {
        let removed = Dir::open(&tmp).and_then(|dir| {
            // A folder that somebody works in without the lock of the home is theirs: see `Home::rehearsal`.
            let folder = dir.open_beneath(Path::new(&name)).ok();
            let held = match &folder {
                Some(folder) => Some(FolderLock::attempt(folder)?),
                None => None,
            };
            match held {
                Some(None) => Ok(()),
                _ => disk::remove_tree(&dir, &name),
            }
        });
        if let Err(error) = removed {
            left.push(format!(
                "left {}: can not be removed: {}",
                human::path(&tmp.join(&name)),
                human::io(&error)
            ));
        }
    }
    Ok((!left.is_empty()).then_some(Settled {
        command: None,
        since: None,
        did: left,
        pending: None,
    }))
}
