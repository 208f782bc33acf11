//! Second versions that may go: those of which every byte is in the original.

use std::ffi::OsStr;
use std::path::Path;

use super::{Action, Deciding, Item, Mended, What, entry_of};
use crate::base::{Error, Result, human};
use crate::check::conflict::Relation;
use crate::check::{Finding, FindingKind, probing};
use crate::disk;
use crate::home::mend::{self, Seen};

impl Deciding<'_> {
    pub(super) fn copy(&mut self, finding: &Finding) -> Result<()> {
        let path = &finding.path;
        let Some(of) = &finding.of else {
            self.leave(path, None, finding.detail.clone());
            return Ok(());
        };
        if let Some(who) = self.busy(path).or_else(|| self.busy(of)) {
            self.leave(path, Some(of), who);
            return Ok(());
        }
        let is_session = path.parent() == Some(Path::new("sessions"));
        if is_session && self.index.is_err() {
            let why = "its entry in the index can not be changed, see there";
            self.leave(path, Some(of), why);
            return Ok(());
        }
        match finding.relation {
            Some(Relation::Same | Relation::Prefix) => self.put_away(finding, of),
            Some(_)
                if is_session && finding.kind == FindingKind::ConflictDir && self.request.fill =>
            {
                if self.is_second_version(of) {
                    let detail = format!("{}; that is a second version itself", finding.detail);
                    self.leave(path, Some(of), detail);
                    return Ok(());
                }
                match self.fill(path, of)? {
                    true => self.put_away(finding, of),
                    false => Ok(()),
                }
            }
            // The view of a second version of a session: it goes when that goes.
            _ if path.starts_with("projects") => Ok(()),
            _ => {
                self.leave(path, Some(of), finding.detail.clone());
                Ok(())
            }
        }
    }

    fn put_away(&mut self, finding: &Finding, of: &Path) -> Result<()> {
        let path = &finding.path;
        let Some(meta) = mend::look(self.root, path)? else {
            return Ok(());
        };
        if let Some(why) = self.why_not(path, of, finding)? {
            self.leave(path, Some(of), why);
            return Ok(());
        }
        let filled = matches!(
            finding.relation,
            Some(Relation::Extends | Relation::Diverged)
        );
        let detail = match filled {
            true => format!(
                "held more than {}, which has it all now",
                human::bytes(of.file_name().unwrap_or_default().as_encoded_bytes())
            ),
            false => finding.detail.clone(),
        };
        let told = Mended {
            what: What::PutAway,
            path: path.clone().into(),
            of: Some(of.to_path_buf().into()),
            relation: finding.relation,
            detail,
        };
        self.items.push(Item {
            path: path.clone(),
            action: Action::PutAway {
                seen: Seen::of(&meta),
                held_by: of.to_path_buf(),
                entry: entry_of(self.index.as_ref().ok(), path),
            },
            told: Some(told),
        });
        Ok(())
    }

    /// Why a second version has to stay, although nothing in it is unique.
    fn why_not(&self, path: &Path, of: &Path, finding: &Finding) -> Result<Option<String>> {
        let unlike = matches!(
            finding.relation,
            Some(Relation::Extends | Relation::Diverged)
        );
        // What is to be filled in is not there yet; the step looks again when it is.
        if !unlike && !self.holds_all(of, path)? {
            return Ok(Some("it is not all in the original any more".to_owned()));
        }
        if finding.kind == FindingKind::ConflictDir {
            return Ok(None);
        }
        let stop = self.context.stop;
        let defects = |path: &Path| probing::defects(self.root, path, stop).unwrap_or_default();
        let is_damaged = !defects(of).is_empty() && defects(path).is_empty();
        // What was read in part may seem whole.
        stop.check()?;
        if is_damaged {
            let name = human::bytes(of.file_name().unwrap_or_default().as_encoded_bytes());
            return Ok(Some(format!("it is whole, and {name} is damaged")));
        }
        Ok(None)
    }

    /// Whether nothing is in a copy that is not in its original; what can not be read is not known to be.
    pub(super) fn holds_all(&self, original: &Path, copy: &Path) -> Result<bool> {
        let at = |path: &Path| {
            let dir = self
                .root
                .open_beneath(path.parent().unwrap_or(Path::new("")));
            dir.map(|dir| (dir, path.file_name().unwrap_or(OsStr::new("")).to_owned()))
        };
        let (Ok(first), Ok(second)) = (at(original), at(copy)) else {
            return Ok(false);
        };
        let stop = self.context.stop;
        let held = disk::holds_all((&first.0, &first.1), (&second.0, &second.1), stop);
        stop.check()?;
        Ok(held.unwrap_or(false))
    }

    /// Whether two files or links are equal. Unlike [`Deciding::holds_all`], it tells what can not be read.
    pub(super) fn are_equal(&self, one: &Path, other: &Path) -> Result<bool> {
        let (Some(first), Some(second)) =
            (mend::look(self.root, one)?, mend::look(self.root, other)?)
        else {
            return Ok(false);
        };
        if first.kind != second.kind || first.size != second.size {
            return Ok(false);
        }
        let mark = |path: &Path| mend::mark(self.root, path, self.context.stop);
        let one = mark(one)?;
        Ok(one.is_some() && one == mark(other)?)
    }

    /// Whether a session is the second version of another one that is there.
    fn is_second_version(&self, path: &Path) -> bool {
        self.second_versions.contains(path)
    }

    /// What is known to be there can be looked at.
    pub(super) fn open(&self, path: &Path) -> Result<disk::Dir> {
        self.root
            .open_beneath(path)
            .map_err(|e| Error::io("can not open the folder", path, e))
    }
}
