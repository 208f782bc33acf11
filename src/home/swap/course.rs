//! The steps of a swap with what is asked of them often, looked up once.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::carry::Place;
use super::moves::Moves;
use super::{Seen, Step};

/// What the steps say of moves, databases and built files.
pub(super) struct Course<'s> {
    pub moves: Moves,
    /// Where something is taken away.
    pub taken: HashSet<(usize, &'s Path)>,
    /// The numbers of the files that were built.
    built: HashMap<&'s str, u64>,
    /// What belongs to a database, and the database.
    logs: HashMap<(usize, &'s Path), &'s str>,
    /// The places of files that were built, and how they look there.
    databases: HashMap<&'s str, (&'s Path, Seen)>,
}

impl<'s> Course<'s> {
    pub fn of(steps: &'s [Step]) -> Course<'s> {
        let taken = steps
            .iter()
            .filter(|step| matches!(step, Step::Take { .. }));
        let built = steps.iter().filter_map(|step| match step {
            Step::Put { built, new, .. } => Some((built.as_str(), new.ino)),
            _ => None,
        });
        Course {
            moves: Moves::of(steps),
            taken: taken.map(Step::place).collect(),
            built: built.collect(),
            logs: steps
                .iter()
                .filter_map(|step| match step {
                    Step::Take { root, at, with, .. } => Some(((*root, &**at), with.as_str())),
                    _ => None,
                })
                .collect(),
            databases: steps
                .iter()
                .filter_map(|step| match step {
                    Step::Put { at, new, built, .. } => Some((built.as_str(), (&**at, *new))),
                    _ => None,
                })
                .collect(),
        }
    }

    /// The database to which what is put at `at` belongs: the name that its new form waits under, its place, and
    /// how it looks there.
    pub fn database_of(&self, root: usize, at: &Path) -> Option<(&'s str, (&'s Path, Seen))> {
        let with = self.logs.get(&(root, at))?;
        Some((with, *self.databases.get(with)?))
    }

    /// Whether a file that was built waits for its place still. Afterwards its name is that of what it has
    /// replaced.
    pub fn waits(&self, place: &Place, built: &str) -> io::Result<bool> {
        let there = place.staging.find(OsStr::new(built))?;
        Ok(there.is_some_and(|meta| self.built.get(built) == Some(&meta.ino)))
    }
}
