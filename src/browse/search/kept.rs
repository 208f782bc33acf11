//! What is kept of what was found until it is told: so much of a file, and of all files of a task.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::json::Place;
use super::lines::{Line, Want};
use super::packed::Finds;
use super::{File, Hit, Session};

const MOST_OF_FILE: usize = 1 << 20;
const MOST_OF_TASK: usize = 4 << 20;

/// A file with something to tell.
pub(super) struct Done {
    /// Below the session.
    pub path: PathBuf,
    pub what: What,
}

pub(super) enum What {
    Lines(Vec<Hit>),
    /// Too many to be kept. Of a folder the number of the file.
    TooMany(Option<usize>),
    /// How many lines match.
    Count(u64),
    Unread(String),
}

/// What was found in a file.
pub(super) struct Kept<'s> {
    session: &'s Session,
    want: Want,
    file: Option<Arc<File>>,
    hits: Vec<Hit>,
    count: u64,
    weight: usize,
    /// What may be kept.
    room: usize,
    too_many: bool,
}

impl<'s> Kept<'s> {
    /// Of a file of a task of which so much is kept already.
    pub(super) fn new(want: Want, session: &'s Session, weight: usize) -> Kept<'s> {
        Kept {
            session,
            want,
            file: None,
            hits: Vec::new(),
            count: 0,
            weight: 0,
            room: MOST_OF_TASK.saturating_sub(weight).min(MOST_OF_FILE),
            too_many: false,
        }
    }

    pub(super) fn take(
        &mut self,
        path: &dyn Fn() -> PathBuf,
        line: Line,
        place: Option<(Place, u64)>,
    ) -> ControlFlow<()> {
        self.count += 1;
        match self.want {
            Want::Files => ControlFlow::Break(()),
            Want::Count => ControlFlow::Continue(()),
            Want::Lines(_) => {
                self.weight += line.weight();
                if self.weight > self.room {
                    self.too_many = true;
                    self.hits = Vec::new();
                    return ControlFlow::Break(());
                }
                let session = self.session;
                let new = || Arc::new(File::new(session, path()));
                let file = Arc::clone(self.file.get_or_insert_with(new));
                self.hits.push(Hit::new(file, line, place));
                ControlFlow::Continue(())
            }
        }
    }

    pub(super) fn what(self, number: Option<usize>, weight: &mut usize) -> Option<What> {
        match self.want {
            _ if self.count == 0 => None,
            Want::Files | Want::Count => Some(What::Count(self.count)),
            Want::Lines(_) if self.too_many => Some(What::TooMany(number)),
            Want::Lines(_) => {
                *weight += self.weight;
                Some(What::Lines(self.hits))
            }
        }
    }
}

/// What was found in an archive.
pub(super) struct Keeping<'s> {
    session: &'s Session,
    want: Want,
    pub files: BTreeMap<PathBuf, Kept<'s>>,
    pub unread: Vec<(PathBuf, String)>,
    weight: usize,
}

impl<'s> Keeping<'s> {
    pub(super) fn new(want: Want, session: &'s Session) -> Keeping<'s> {
        Keeping {
            session,
            want,
            files: BTreeMap::new(),
            unread: Vec::new(),
            weight: 0,
        }
    }
}

impl Finds for Keeping<'_> {
    fn found(&mut self, path: &Path, line: Line, place: Option<(Place, u64)>) -> ControlFlow<()> {
        if !self.files.contains_key(path) {
            let kept = Kept::new(self.want, self.session, self.weight);
            self.files.insert(path.to_path_buf(), kept);
        }
        let Some(kept) = self.files.get_mut(path) else {
            return ControlFlow::Break(());
        };
        let before = kept.weight;
        let done = kept.take(&|| path.to_path_buf(), line, place);
        match kept.too_many {
            true => self.weight = self.weight.saturating_sub(before),
            false => self.weight += kept.weight - before,
        }
        done
    }

    fn unread(&mut self, path: PathBuf, why: String) {
        self.unread.push((path, why));
    }
}
