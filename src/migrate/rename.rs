//! A session gets another name: its folder, its archive, its entry in the index with all labels, its project
//! view, and every reference to it, in one go.

use std::path::Path;

use serde::Serialize;

use super::relink::{self, Outcome, Plan, Request};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::swap::Draft;
use crate::home::{Home, Index, LockedHome, SessionId, journal};
use crate::paths::Mapping;

/// A session and the name that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renaming {
    /// As it is called.
    pub from: String,
    /// As it will be called.
    pub to: String,
    /// Whether it has a folder in `sessions/`.
    pub folder: bool,
    /// Whether it has an archive.
    pub archive: bool,
}

impl Renaming {
    /// The paths that change, relative to the home.
    fn paths(&self) -> Vec<[String; 2]> {
        let Renaming { from, to, .. } = self;
        let mut paths = Vec::new();
        if self.folder {
            paths.push([format!("sessions/{from}"), format!("sessions/{to}")]);
        }
        if self.archive {
            let pack = |id: &str| format!("archive/{id}.tar.zst");
            paths.push([pack(from), pack(to)]);
        }
        paths
    }

    /// What follows after the files have their names.
    pub(super) fn then(&self) -> Vec<journal::Step> {
        let Renaming { from, to, .. } = self;
        vec![
            journal::Step::Renamed {
                from: from.clone(),
                to: to.clone(),
            },
            journal::Step::Views {
                ids: Some(vec![from.clone(), to.clone()]),
            },
        ]
    }

    /// Prepares the new names.
    pub(super) fn stage(&self, draft: &Draft) -> Result<()> {
        for [from, to] in self.paths() {
            let from = Path::new(&from);
            let (parent, name) = (
                from.parent().unwrap_or(Path::new("")),
                from.file_name().unwrap_or_default(),
            );
            let meta = draft
                .dir(0)
                .open_beneath(parent)
                .and_then(|dir| dir.stat(name))
                .map_err(|e| Error::io("can not look at", from, e))?;
            draft.shift(0, from, Path::new(&to), meta.ino);
        }
        Ok(())
    }
}

/// Thinks it through: everything that speaks of the session's folder follows. `request` says which state folders
/// follow; its OLD and NEW are not used.
///
/// # Errors
/// A name that is taken; a session that is not there, in which somebody works, or that another device holds.
pub fn plan(
    home: &Home,
    from: &SessionId,
    to: &SessionId,
    request: &Request,
    ctx: &Context,
) -> Result<Plan> {
    if from == to {
        return Err(Error::usage("that is its name already"));
    }
    request.leases.refuse(from)?;
    let renaming = Renaming {
        from: from.to_string(),
        to: to.to_string(),
        folder: disk::is_folder(&home.session(from)),
        archive: disk::stat(&home.archive_of(from))?.is_some_and(|m| m.kind == FileKind::File),
    };
    if !renaming.folder && !renaming.archive {
        return Err(Error::failed(format!(
            "`{}` is neither in sessions/ nor in archive/",
            human::name(from.as_str())
        ))
        .hint("`wbhome check` tells what is known of it"));
    }
    free(home, from, to)?;
    // One in the archive was led to by others while it had a folder, and will be again.
    let mut mappings: Vec<Mapping> = Vec::new();
    for root in [disk::real_path(home.root())?, home.root().to_path_buf()] {
        let folder = |id: &SessionId| {
            let folder = root.join("sessions").join(id.as_str());
            folder.to_str().map(str::to_owned)
        };
        if let (Some(old), Some(new)) = (folder(from), folder(to))
            && root.is_absolute()
            && !mappings.iter().any(|m| m.old == old)
        {
            mappings.push(Mapping { old, new });
        }
    }
    let mut plan = relink::survey(home, mappings, request, ctx)?;
    plan.rename = Some(renaming);
    Ok(plan)
}

/// Nothing may have the new name: not on this disk, nor on one that knows no case, nor as a tombstone.
fn free(home: &Home, from: &SessionId, to: &SessionId) -> Result<()> {
    let taken = |what: &str, name: &str| {
        Err(Error::failed(format!(
            "the name is taken by {what}: {}",
            human::escape(name)
        ))
        .hint("choose another one"))
    };
    let index = Index::read(home)?;
    if let Some(entry) = index.find(to.as_str()) {
        return taken("an entry of the index", entry.id());
    }
    let folded = crate::home::folded(to.as_str());
    for (folder, suffix) in [("sessions", ""), ("archive", ".tar.zst")] {
        let path = home.root().join(folder);
        let Ok(dir) = Dir::open(&path) else { continue };
        let names = dir
            .names()
            .map_err(|e| Error::io("can not list", &path, e))?;
        for (name, _) in names {
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(suffix)) else {
                continue;
            };
            if id != from.as_str() && crate::home::folded(id) == folded {
                return taken(&format!("something in {folder}/"), id);
            }
        }
    }
    Ok(())
}

/// Carries a plan out.
///
/// # Errors
/// As [`relink::apply`].
pub fn apply(home: &LockedHome, plan: Plan, ctx: &Context) -> Result<Outcome> {
    let mut outcome = relink::apply(home, plan, ctx)?;
    // The way back is the old name: what was replaced is read by nobody.
    if outcome.overtaken.is_empty()
        && let Some(record) = outcome.record.take()
    {
        let record = home.root().join(record);
        let removed =
            Dir::open(&record).and_then(|dir| disk::remove_tree(&dir, "swap/former".as_ref()));
        removed.map_err(|e| Error::io("can not remove", record, e))?;
    }
    Ok(outcome)
}
