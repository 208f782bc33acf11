//! Emptying the trash: the one place where what somebody has had in a home is removed for good, and only by
//! asking for it.

use std::ffi::OsStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::acts;
use crate::base::{Context, Error, Result, failpoint};
use crate::disk::{self, Dir};
use crate::home::{Home, LockedHome};

/// An act that would go, or has gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Emptied {
    /// Its name.
    pub act: String,
    /// When it was done.
    pub at: Timestamp,
    /// Files that lie in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What would go, or has gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Act by act, the newest first.
    pub acts: Vec<Emptied>,
    /// Files together.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many acts are too young, and stay.
    pub kept: u64,
}

/// Which acts are older than this; all of them without an age.
///
/// # Errors
/// When the trash can not be read, and interruption.
pub fn plan(home: &Home, older: Option<Duration>, context: &Context) -> Result<Plan> {
    let root = home.dir()?;
    let older = older.map(|age| SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX));
    let oldest = older.map(|age| {
        let now = context.clock.now();
        now.checked_sub(age).unwrap_or(Timestamp::MIN)
    });
    let mut plan = Plan::default();
    for act in acts(home)? {
        let folder = home.trash().join(&act.name);
        let written = disk::stat(&folder)?.map(|meta| meta.mtime.timestamp());
        let at = act.at().or(written).unwrap_or(Timestamp::MAX);
        if oldest.is_some_and(|oldest| at > oldest) {
            plan.kept += 1;
            continue;
        }
        let (files, bytes) = act.size(&root, context.stop)?;
        plan.files += files;
        plan.bytes += bytes;
        plan.acts.push(Emptied {
            act: act.name,
            at,
            files,
            bytes,
        });
    }
    Ok(plan)
}

/// Removes them. Each leaves the trash in one step and is removed then; what a kill leaves of one is cleared by
/// whoever takes the lock next.
///
/// # Errors
/// What can not be removed, and interruption between two acts.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Plan> {
    for emptied in &plan.acts {
        context.stop.check()?;
        let path = home.trash().join(&emptied.act);
        let fail = |e| Error::io("can not remove", &path, e);
        let scratch = home.scratch(context)?;
        let going = Dir::open(scratch.path()).map_err(fail)?;
        let trash = Dir::open(home.trash()).map_err(fail)?;
        let name = OsStr::new(&emptied.act);
        trash
            .rename(name, &going, name)
            .and_then(|()| trash.sync())
            .map_err(fail)?;
        failpoint::hit("trash.emptied");
        if let Err(error) = disk::remove_tree(&going, name) {
            // What is left of it stays where it can be seen.
            let back = going.rename(name, &trash, name).and_then(|()| trash.sync());
            return Err(match back {
                Ok(()) => fail(error).hint("what is left of it is still in the trash; set its permissions right, or remove it by hand"),
                Err(_) => fail(error),
            });
        }
    }
    Ok(plan)
}
