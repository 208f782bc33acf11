//! The steps of a swap with what is asked of them often, looked up once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::carry::Place;
use super::moves::Moves;
use super::{Seen, Step};

/// What the steps say of moves, databases and built files.
pub(super) struct Course<'s> {
    pub moves: Moves,
    /// Where something is taken away that belongs to a database, and the database.
    logs: HashMap<(usize, &'s Path), &'s str>,
    /// The places of files that were built, and how they look there.
    built: HashMap<&'s str, (&'s Path, Seen)>,
}

impl<'s> Course<'s> {
    pub fn of(steps: &'s [Step]) -> Course<'s> {
        let logs = steps.iter().filter_map(|step| match step {
            Step::Take { root, at, with, .. } => Some(((*root, &**at), with.as_str())),
            _ => None,
        });
        let built = steps.iter().filter_map(|step| match step {
            Step::Put { at, new, built, .. } => Some((built.as_str(), (&**at, *new))),
            _ => None,
        });
        Course {
            moves: Moves::of(steps),
            logs: logs.collect(),
            built: built.collect(),
        }
    }

    /// Whether something is taken away there.
    pub fn takes(&self, root: usize, at: &Path) -> bool {
        self.logs.contains_key(&(root, at))
    }

    /// The database to which what is put at `at` belongs: the name that its new form waits under, its place, and
    /// how it looks there.
    pub fn database_of(&self, root: usize, at: &Path) -> Option<(&'s str, (&'s Path, Seen))> {
        let with = self.logs.get(&(root, at))?;
        Some((with, *self.built.get(with)?))
    }

    /// Whether a file that was built waits for its place still. Afterwards its name is that of what it has
    /// replaced.
    pub fn waits(&self, place: &Place, built: &str) -> io::Result<bool> {
        let there = place.staging.find(OsStr::new(built))?;
        let new = self.built.get(built).map(|(_, new)| new.ino);
        Ok(there.is_some_and(|meta| new == Some(meta.ino)))
    }
}
