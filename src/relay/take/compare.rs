//! What differs between the session here and the version in the relay, by content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Result, Total, human};
use crate::disk::{self, Buffers, CopyError, Digest, FileKind, Identity};

use super::super::below::Below;
use super::super::standing::{Item, Side};

/// What would become of a file or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// It comes.
    Added,
    /// It becomes another.
    Changed,
    /// It goes into the trash with the former version.
    Gone,
}

/// A file or link on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// Its length.
    pub bytes: u64,
    /// When it was written last, by the clock of whoever wrote it.
    pub modified: Timestamp,
}

/// A file or link that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which, below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// What would become of it.
    pub change: Turn,
    /// What is here.
    pub here: Option<State>,
    /// What is in the relay.
    pub there: Option<State>,
}

/// Two sides, compared.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// What differs.
    pub changes: Vec<Change>,
    /// Files that hold the same, with what they hold.
    pub equal: BTreeMap<PathBuf, Digest>,
}

/// Compares the two, but for what stands apart.
///
/// # Errors
/// Interruption. A file that can not be read is one that differs.
pub(super) fn compare(
    here: Option<&Side>,
    there: &Side,
    apart: &(dyn Fn(&Path) -> bool + Sync),
    context: &Context,
) -> Result<Compared> {
    let content = |side: &Side| -> BTreeMap<PathBuf, Item> {
        let items = side.content().filter(|(path, _)| !apart(path));
        items
            .map(|(path, item)| (path.clone(), item.clone()))
            .collect()
    };
    let (mine, theirs) = (here.map(content).unwrap_or_default(), content(there));
    let mut compared = Compared::default();
    if let Some(here) = here {
        compared.equal = equal((here, &mine), (there, &theirs), context)?;
    }
    for (path, item) in &theirs {
        let former = mine.get(path);
        let same = former.is_some_and(|former| match &item.link {
            Some(_) => item.link == former.link,
            None => compared.equal.contains_key(path),
        });
        if !same {
            let turn = if former.is_some() {
                Turn::Changed
            } else {
                Turn::Added
            };
            compared
                .changes
                .push(change(path, turn, former, Some(item)));
        }
    }
    for (path, item) in mine.iter().filter(|(path, _)| !theirs.contains_key(*path)) {
        compared
            .changes
            .push(change(path, Turn::Gone, Some(item), None));
    }
    compared.changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(compared)
}

fn change(path: &Path, change: Turn, here: Option<&Item>, there: Option<&Item>) -> Change {
    let state = |item: &Item| State {
        bytes: item.meta.size,
        modified: item.meta.mtime.timestamp(),
    };
    Change {
        path: path.to_path_buf().into(),
        change,
        here: here.map(state),
        there: there.map(state),
    }
}

type Named<'s> = (&'s Side, &'s BTreeMap<PathBuf, Item>);

/// The files that hold the same on both sides; those of different lengths are not read.
fn equal(here: Named, there: Named, context: &Context) -> Result<BTreeMap<PathBuf, Digest>> {
    let is_file = |item: &Item| item.meta.kind == FileKind::File;
    let pairs: Vec<(&PathBuf, &Item, &Item)> = there
        .1
        .iter()
        .filter_map(|(path, theirs)| {
            let mine = here.1.get(path)?;
            let alike = is_file(mine) && is_file(theirs) && mine.meta.size == theirs.meta.size;
            alike.then_some((path, mine, theirs))
        })
        .collect();
    let total = Total {
        items: pairs.len() as u64,
        bytes: pairs.iter().map(|(_, mine, _)| mine.meta.size).sum(),
    };
    context.progress.stage("comparing", total);
    let same = pairs
        .par_iter()
        .map_init(
            || (Reading::of(here.0), Reading::of(there.0)),
            |(here, there), (path, mine, theirs)| {
                let digest = here.digest(path, mine, context)?;
                let same_file = mine.meta.identity() == theirs.meta.identity();
                let other = match digest {
                    // There is nothing to compare the other with.
                    None => None,
                    Some(_) if same_file => digest,
                    Some(_) => there.digest(path, theirs, context)?,
                };
                context.progress.advance(1, mine.meta.size);
                let same = digest.filter(|_| digest == other);
                Ok(same.map(|digest| ((*path).clone(), digest)))
            },
        )
        .collect::<Result<Vec<_>>>();
    context.progress.finish();
    Ok(same?.into_iter().flatten().collect())
}

/// What reads one file of a side after the other.
pub(super) struct Reading<'s> {
    buffers: Buffers,
    folders: Below<'s>,
}

impl<'s> Reading<'s> {
    pub fn of(side: &'s Side) -> Self {
        Reading {
            buffers: Buffers::new(),
            folders: Below::new(&side.dir),
        }
    }

    /// Why a file can not be opened; `None` when it can, or is not there any more.
    pub fn why_not(&mut self, path: &Path) -> Option<String> {
        let opened = self.folders.open(path.parent().unwrap_or(Path::new("")));
        let name = path.file_name().unwrap_or_default();
        let error = opened.and_then(|dir| dir.open_file(name)).err()?;
        (!disk::is_nowhere(&error)).then(|| human::io(&error))
    }

    /// What a file holds; `None` when it can not be read, or has changed since it was looked at.
    pub fn digest(
        &mut self,
        path: &Path,
        item: &Item,
        context: &Context,
    ) -> Result<Option<Digest>> {
        context.stop.check()?;
        let opened = self.folders.open(path.parent().unwrap_or(Path::new("")));
        let name = path.file_name().unwrap_or_default();
        let Ok(file) = opened.and_then(|dir| dir.open_file(name)) else {
            return Ok(None);
        };
        let still = || disk::Meta::of(&file).is_ok_and(|meta| meta.same_state(&item.meta));
        if !still() {
            return Ok(None);
        }
        let read = disk::digest_of_copy(
            &file,
            &item.meta,
            &mut Identity,
            &mut self.buffers,
            context.stop,
        );
        match read {
            Ok((_, digest)) => Ok(Some(digest).filter(|_| still())),
            Err(CopyError::Stopped) => context.stop.check().map(|()| None),
            Err(_) => Ok(None),
        }
    }
}
