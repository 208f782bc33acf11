//! The steps of a swap in their order, and the times that folders get back.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use super::{Draft, died, dress};
use crate::base::{Error, Result};
use crate::home::swap::moves::Moves;
use crate::home::swap::{Step, pair, split};

impl Draft<'_> {
    /// The steps in their order, and as they are written.
    pub(super) fn finished_steps(&mut self) -> Result<(Vec<Step>, Vec<u8>)> {
        let mut steps = std::mem::take(&mut *self.steps.lock().map_err(|_| died())?);
        steps.extend(self.dressing(&steps)?);
        move_what_was_put(&mut steps);
        let (databases, logs) = databases_of(&steps);
        // Deepest first, so that dressing a folder does not change one that was dressed before.
        steps.sort_by_key(|step| match step {
            Step::Put { built, .. } if databases.contains(built) => (1, 0),
            Step::Put { root, at, .. } if logs.contains(&(*root, at.to_path_buf())) => (2, 0),
            Step::Dress { .. } => (step.rank(), usize::MAX - step.place().1.iter().count()),
            _ => (step.rank(), 0),
        });
        let mut text = Vec::new();
        for step in &steps {
            serde_json::to_writer(&mut text, step)
                .map_err(|e| Error::failed("can not write the record").because(e))?;
            text.push(b'\n');
        }
        Ok((steps, text))
    }

    /// The folders whose time would be changed by the steps, with the time that they have now.
    fn dressing(&self, steps: &[Step]) -> Result<Vec<Step>> {
        let mut known = BTreeSet::new();
        let mut dressing = Vec::new();
        for step in steps {
            match step {
                Step::Drop { root, at, .. } => known.insert((*root, at.to_path_buf())),
                Step::Dress { root, at, .. } => known.insert((*root, at.to_path_buf())),
                Step::Make { root, at, looks } => {
                    dressing.push(dress(*root, at, looks.mtime));
                    known.insert((*root, at.to_path_buf()))
                }
                _ => false,
            };
        }
        let moves = Moves::of(steps);
        let touched = steps.iter().flat_map(|step| {
            let (root, at) = step.place();
            let to = match step {
                Step::Move { to, .. } => Some((root, split(to).0)),
                _ => None,
            };
            std::iter::once((root, split(at).0)).chain(to)
        });
        for (root, parent) in touched {
            let later = moves.follow(root, parent);
            if known.contains(&(root, parent.to_path_buf())) || !known.insert((root, later.clone()))
            {
                continue;
            }
            let now = self.roots[root].dir.open_beneath(parent);
            match now.and_then(|dir| dir.meta()) {
                Ok(_) if parent.as_os_str().is_empty() => {
                    dressing.push(dress(root, &later, self.head.times[root]));
                }
                Ok(meta) => dressing.push(dress(root, &later, pair(meta.mtime))),
                // A place that something is moved to first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.fail(root, parent, error)),
            }
        }
        Ok(dressing)
    }
}

/// Databases, by the names that their new forms wait under, and the places of what belongs to them.
fn databases_of(steps: &[Step]) -> (HashSet<String>, HashSet<(usize, PathBuf)>) {
    let taken = steps.iter().filter_map(|step| match step {
        Step::Take { root, at, with, .. } => Some((with.clone(), (*root, at.to_path_buf()))),
        _ => None,
    });
    taken.unzip()
}

/// The files that are put, by their place, and their numbers.
fn new_files(steps: &[Step]) -> HashMap<(usize, PathBuf), u64> {
    let put = steps.iter().filter_map(|step| match step {
        Step::Put { root, at, new, .. } => Some(((*root, at.to_path_buf()), new.ino)),
        _ => None,
    });
    put.collect()
}

/// A file that gets a new form and a new place is another one by the time that it is moved.
fn move_what_was_put(steps: &mut [Step]) {
    let put = new_files(steps);
    for step in steps {
        if let Step::Move { root, at, ino, .. } = step
            && let Some(new) = put.get(&(*root, at.to_path_buf()))
        {
            *ino = *new;
        }
    }
}
