//! Taking back what was begun: a step could not be done, or somebody has changed meanwhile what was still to be
//! replaced.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::carry::{Carry, Place, below, drop_empty, find, make, second};
use super::course::Course;
use super::{FORMER, Seen, Step, split, stamp};
use crate::base::{Context, Error, Result, failpoint};
use crate::disk;

impl Carry {
    /// Puts everything back that the steps have moved so far, and gives the folders their times. Can be done any
    /// number of times. Returns what somebody had made or changed meanwhile, and is kept in the record.
    ///
    /// # Errors
    /// What can not be put back yet.
    pub fn take_back(&self, steps: &[Step], ctx: &Context) -> Result<Vec<PathBuf>> {
        let course = Course::of(steps);
        let mut overtaken = Vec::new();
        for step in steps {
            self.keep_used_database(step, steps, &course, &mut overtaken, ctx)
                .map_err(|e| self.fail(step, e))?;
        }
        for step in steps.iter().rev() {
            failpoint::hit("swap.back");
            let back = self.back(step, &mut overtaken, ctx);
            back.map_err(|error| {
                let (root, at) = step.place();
                let root = self.roots.get(root).map(|place| place.path());
                let at = root.unwrap_or(Path::new("")).join(at);
                Error::io("can be neither finished nor put back yet:", at, error).hint(
                    "when the cause is gone, run any command that writes: it completes what was begun, or takes it back",
                )
            })?;
        }
        let back = course.moves.reversed();
        for step in steps {
            if let Step::Dress { root, at, mtime } = step
                && let Ok(place) = self.root(*root)
                && let Ok(folder) = place.dir.open_beneath(&back.follow(*root, at))
            {
                // A time that can not be set is no reason to leave the rest half done.
                let _ = folder.set_time(stamp(*mtime));
            }
        }
        for place in &self.roots {
            disk::sync_filesystem(&place.dir)
                .map_err(|e| Error::io("can not write to the disk of", place.path(), e))?;
        }
        Ok(overtaken)
    }

    /// A database that was worked on since its log was taken away, or since it was replaced, is kept together with
    /// the log that was begun; where the former one is to have its log back, it has its former content then.
    fn keep_used_database(
        &self,
        step: &Step,
        steps: &[Step],
        course: &Course,
        overtaken: &mut Vec<PathBuf>,
        ctx: &Context,
    ) -> io::Result<()> {
        let Step::Take {
            root,
            at,
            aside,
            with,
            ..
        } = step
        else {
            return Ok(());
        };
        let database = steps.iter().find_map(|step| match step {
            Step::Put { at, old, built, .. } if built == with => Some((&**at, *old)),
            _ => None,
        });
        let Some((database, old)) = database else {
            return Ok(());
        };
        let place = self.root(*root)?;
        let is_aside = place.staging.find(OsStr::new(aside))?.is_some();
        let is_put = !course.waits(place, with)?;
        if !is_aside && !is_put {
            return Ok(());
        }
        let (parent, name) = split(database);
        let dir = place.dir.open_beneath(parent)?;
        let there = dir.find(name)?;
        let used = is_aside && !is_put && there.as_ref().map(Seen::from) != old;
        // One that was put there by these steps goes with them.
        let ours = |seen: Seen| {
            steps.iter().any(|step| match step {
                Step::Put {
                    root: r,
                    at: put,
                    new,
                    ..
                } => r == root && put == at && *new == seen,
                _ => false,
            })
        };
        let log = find(&place.dir, at)?.is_some_and(|meta| !ours((&meta).into()));
        if log && !used && there.is_some() {
            let to = self.room_for(*root, database)?;
            if to.find(name)?.is_none() {
                disk::duplicate_as(&dir, name, &to, name, ctx.stop)?;
            }
        }
        if used && there.is_some() {
            overtaken.push(database.to_path_buf());
            self.overtake(*root, database, &dir, name, ctx)?;
        }
        if log {
            overtaken.push(at.to_path_buf());
            self.overtake(*root, at, &dir, split(at).1, ctx)?;
        }
        if used {
            self.former(*root, database, &dir, ctx)?;
        }
        Ok(())
    }

    /// Gives a file that is to have its log back the content that it had.
    fn former(&self, root: usize, at: &Path, dir: &disk::Dir, ctx: &Context) -> io::Result<()> {
        let (parent, name) = split(at);
        let from = self.record().join(FORMER).join(root.to_string());
        let from = disk::Dir::open(&from)?.open_beneath(parent)?;
        disk::duplicate_as(&from, name, dir, name, ctx.stop)
    }

    fn back(&self, step: &Step, overtaken: &mut Vec<PathBuf>, ctx: &Context) -> io::Result<()> {
        let (root, at) = step.place();
        let place = self.root(root)?;
        let dir = &place.dir;
        let (parent, name) = split(at);
        match step {
            Step::Put { new, built, .. } => {
                let mut overtake = |from: &disk::Dir, name: &OsStr| {
                    overtaken.push(at.to_path_buf());
                    self.overtake(root, at, from, name, ctx)
                };
                self.back_put(place, at, *new, built, &mut overtake)?;
            }
            Step::Take { aside, .. } => {
                let aside = OsStr::new(aside);
                if place.staging.find(aside)?.is_some() {
                    place
                        .staging
                        .rename(aside, &dir.make_beneath(parent)?, name)?;
                }
            }
            Step::Move { to, ino, .. } => {
                let (new_parent, new) = split(to);
                if let Some(from) = below(dir, new_parent)?
                    && from.find(new)?.is_some_and(|meta| meta.ino == *ino)
                {
                    let back = dir.make_beneath(parent)?;
                    // Made anew since by somebody who did not find it.
                    if back.find(name)?.is_some() {
                        overtaken.push(at.to_path_buf());
                        self.overtake(root, at, &back, name, ctx)?;
                    }
                    from.rename(new, &back, name)?;
                }
            }
            Step::Make { .. } => drop_empty(dir, at)?,
            Step::Drop { looks, .. } => {
                if find(dir, at)?.is_none() {
                    make(dir, at, looks)?;
                }
            }
            Step::Dress { .. } => {}
        }
        Ok(())
    }

    fn back_put(
        &self,
        place: &Place,
        at: &Path,
        new: Seen,
        built: &str,
        overtake: &mut dyn FnMut(&disk::Dir, &OsStr) -> io::Result<()>,
    ) -> io::Result<()> {
        let (parent, name) = split(at);
        let (built, former) = (OsStr::new(built), second(built));
        let staging = &place.staging;
        let waits = staging.find(built)?;
        if waits.is_some_and(|meta| meta.ino == new.ino) && staging.find(&former)?.is_none() {
            return Ok(());
        }
        // The old one waits under one of two names; there may have been none.
        let old = match waits {
            Some(meta) if meta.ino != new.ino => Some(built.to_owned()),
            _ => staging.find(&former)?.map(|_| former),
        };
        let to = place.dir.make_beneath(parent)?;
        let stands = to.find(name)?;
        match stands {
            // Ours, as it was put: it goes.
            Some(meta) if Seen::from(&meta) == new => {
                to.rename(
                    name,
                    staging,
                    OsStr::new(&format!("{}.back", built.to_string_lossy())),
                )?;
            }
            // Something else stands there, or ours was changed since.
            Some(meta) if old.is_some() || meta.ino == new.ino => overtake(&to, name)?,
            _ => {}
        }
        match old {
            Some(old) => staging.rename(&old, &to, name),
            None => Ok(()),
        }
    }
}
