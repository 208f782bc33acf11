//! Links into the place that the home was moved from, pointed into the home.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use super::{Action, Deciding, Item, Mended, What};
use crate::base::{Error, Result, human};
use crate::check::Finding;
use crate::disk::FileKind;
use crate::home::mend::{self, Seen};

impl Deciding<'_> {
    pub(super) fn link(&mut self, finding: &Finding) -> Result<()> {
        let path = &finding.path;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let Some(meta) = mend::look(self.root, path)?.filter(|m| m.kind == FileKind::Symlink)
        else {
            return Ok(());
        };
        let target = self
            .open(parent)?
            .read_link(name)
            .map_err(|e| Error::io("can not read", path, e))?;
        let target = PathBuf::from(OsString::from_vec(target));
        let Some(within) = self.counterpart(&target) else {
            return Ok(());
        };
        if mend::look(self.root, &within)?.is_none() {
            return Ok(());
        }
        if let Some(who) = self.busy(path) {
            self.leave(path, None, who);
            return Ok(());
        }
        let new = self.spelled(path, &within);
        self.items.push(Item {
            path: path.clone(),
            told: Some(Mended {
                what: What::Pointed,
                path: path.clone().into(),
                of: None,
                relation: None,
                detail: format!("{} → {}", human::path(&target), human::path(&new)),
            }),
            action: Action::Point {
                seen: Seen::of(&meta),
                target: new,
            },
        });
        Ok(())
    }

    /// Where in the home lies what a target in the old place meant.
    fn counterpart(&self, target: &Path) -> Option<PathBuf> {
        let plain = target
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !target.is_absolute() || !plain {
            return None;
        }
        // The longest of several wins.
        let moved = self.request.moved.iter();
        let moved = moved
            .filter(|moved| target.starts_with(&moved.old))
            .max_by_key(|moved| moved.old.as_os_str().len())?;
        let rest = target.strip_prefix(&moved.old).ok()?;
        Some(moved.within.join(rest))
    }

    /// As a migration would write it; a project's view as the views are written.
    fn spelled(&self, path: &Path, within: &Path) -> PathBuf {
        let is_view = path.starts_with("projects")
            && path.iter().count() == 3
            && within.parent() == Some(Path::new("sessions"));
        match is_view {
            true => Path::new("../..").join(within),
            false => self.home.root().join(within),
        }
    }
}
