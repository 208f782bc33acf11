//! `wbhome index`: the index agrees with the disk, the project views with the index, and the cache with both.

use std::collections::BTreeMap;

use serde::Serialize;

use super::agree::{self, Changes};
use super::{Knowing, Scan, scan};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk;
use crate::home::journal::{self, Step};
use crate::home::views::{self, Views};
use crate::home::{Counts, Home, Index, IndexFile, LockedHome, SessionId, trash};

/// What would be changed. The run looks at the index again, and changes it by the same rule.
#[derive(Debug, Serialize)]
pub struct Plan {
    #[serde(skip)]
    scan: Scan,
    #[serde(skip)]
    labels: Option<Index>,
    /// Whether the index is made anew.
    pub rebuild: bool,
    /// What would be changed.
    #[serde(flatten)]
    pub changes: Changes,
}

impl Plan {
    /// Whether it would note all sessions as missing: a disk that is not mounted looks so. Whoever is not asked by a person
    /// leaves the index as it is then.
    ///
    /// # Errors
    /// That it would.
    pub fn refuse_if_all_are_missing(&self) -> Result<()> {
        let missing = self.changes.missing.len();
        match missing > 0 && self.scan.sessions.is_empty() {
            false => Ok(()),
            true => Err(Error::failed(format!(
                "the folder of the sessions is empty, and {} should be in it; is its disk mounted?",
                human::plural(missing as u64, "session", "sessions")
            ))
            .at("sessions")
            .hint("nothing was noted as missing")
            .hint("if they are gone for good: `wbhome index`")),
        }
    }
}

/// What was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// In the index.
    #[serde(flatten)]
    pub changes: Changes,
    /// In `projects/`.
    pub views: Views,
    /// Where the former index is kept, when it was made anew and differs: a path below the home.
    pub former_index: Option<String>,
    /// Folders in `sessions/` whose name no id can hold.
    pub strangers: Vec<WirePath>,
}

/// Looks at the disk and at the index.
///
/// # Errors
/// An index that can not be understood, unless it is to be rebuilt; a disk that can not be read.
pub fn plan(home: &Home, rebuild: bool, context: &Context) -> Result<Plan> {
    plan_knowing(home, BTreeMap::new(), rebuild, context)
}

/// Like [`plan`], for a caller who has counted what some sessions hold: those are not counted again.
///
/// # Errors
/// As [`plan`].
pub fn plan_knowing(
    home: &Home,
    known: BTreeMap<SessionId, Counts>,
    rebuild: bool,
    context: &Context,
) -> Result<Plan> {
    plan_from(home, known, None, rebuild, context)
}

/// Like [`plan`], for an index that is made anew. `labels` is a former one, which stands in for the present one where
/// that can not be understood, or is not there.
///
/// # Errors
/// As [`plan`].
pub fn plan_anew(home: &Home, labels: Option<Index>, context: &Context) -> Result<Plan> {
    plan_from(home, BTreeMap::new(), labels, true, context)
}

fn plan_from(
    home: &Home,
    known: BTreeMap<SessionId, Counts>,
    labels: Option<Index>,
    rebuild: bool,
    context: &Context,
) -> Result<Plan> {
    let index = match Index::read(home) {
        Ok(_) if labels.is_some() && !disk::exists(&home.index_file()) => labels.clone(),
        Ok(index) => Some(index),
        Err(_) if rebuild => labels.clone(),
        Err(error) => return Err(error),
    };
    let knowing = Knowing {
        index: index.as_ref(),
        rebuilding: rebuild,
    };
    let scan = scan(home, known, Some(knowing), context)?;
    let changes = if rebuild {
        agree::rebuild(index.as_ref(), &scan).1
    } else {
        agree::agree(&mut index.unwrap_or_default(), &scan, false)
    };
    Ok(Plan {
        scan,
        labels,
        rebuild,
        changes,
    })
}

/// Makes the index, the project views and the cache agree with the disk.
///
/// # Errors
/// What can not be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    let Plan {
        scan,
        labels,
        rebuild,
        ..
    } = plan;
    let lost = !disk::exists(&home.index_file());
    let pending = journal::begin(home, "index", vec![Step::Views { ids: None }], context)?;
    let updated = if rebuild {
        IndexFile::rebuild(home, context, |old| {
            let old = old.filter(|_| labels.is_none() || !lost);
            Ok(agree::rebuild(old.or(labels.as_ref()), &scan))
        })
    } else {
        let agreed = IndexFile::update(home, |index| Ok(agree::agree(index, &scan, false)));
        agreed.map(|changes| (changes, None))
    };
    let (changes, former) = match updated {
        Ok(updated) => updated,
        Err(error) => {
            pending.forget()?;
            return Err(error);
        }
    };
    let views = views::follow(home, &Index::read(home)?, None)?;
    pending.forget()?;
    scan.to_cache(context).write(home)?;
    Ok(Outcome {
        changes,
        views,
        former_index: former.map(|path| trash::shown(home, &path)),
        strangers: scan.strangers,
    })
}

/// Counts all sessions again, without a look at the index.
///
/// # Errors
/// When `sessions/` can not be read, or the cache not written.
pub fn refresh_cache(home: &LockedHome, context: &Context) -> Result<()> {
    let scan = scan(home, BTreeMap::new(), None, context)?;
    scan.to_cache(context).write(home)
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
