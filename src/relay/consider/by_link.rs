//! A session that is one link in the relay: a client that follows it carries what stands here, as it stands here.
//!
//! So nothing is copied, and nothing of it is ours to replace there. What is looked at is what the link shows: its secrets
//! and its names, logs too.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Considering, There, Work, whole};
use crate::base::Result;
use crate::home::RelayMode;
use crate::relay::compare::{Change, Compared, Comparison, Happened};
use crate::relay::outcome::{Session, State};
use crate::relay::record::{Holds, Noted, Put};
use crate::relay::side::Side;

impl Considering<'_> {
    pub(super) fn by_link(
        &self,
        session: &mut Session,
        here: &Side,
        there: There,
        put: Option<&Put>,
        mut new: Put,
    ) -> Result<Option<Work>> {
        let was_link = put.filter(|put| put.mode == RelayMode::Symlink);
        let is_ours = self.is_ours(&session.id);
        let mut shown = self
            .comparison(&session.id, Some(here), None, was_link)
            .look()?;
        let former = match &there {
            There::Folder(side) => {
                let files = put.filter(|put| put.mode != RelayMode::Symlink);
                let comparison = Comparison {
                    // What the link takes the place of goes, all of it.
                    whole: true,
                    ..self.comparison(&session.id, Some(here), Some(side), files)
                };
                shown.differences = comparison.run()?.differences;
                Some(all_of(side))
            }
            There::Nothing if put.is_some() && !is_ours => {
                let begun = self.record.begun.contains_key(&session.id);
                let gone = (!begun).then(|| whole(Happened::Deleted, None));
                shown.differences.extend(gone);
                None
            }
            _ => None,
        };
        if !self.may(session, &shown, true) {
            return Ok(None);
        }
        let target = self.real.join(&session.id);
        new.names = shown.names;
        new.names.insert(PathBuf::new(), Box::new(link_to(&target)));
        let points = |put: &Put| put.noted(Path::new("")) == new.noted(Path::new(""));
        let former_link = match there {
            There::OurLink(_) if put.is_none_or(points) => {
                return Ok((put != Some(&new)).then_some(Work::Record { put: new }));
            }
            There::OurLink(meta) | There::Strange(meta) => Some(meta),
            _ => None,
        };
        session.added = 1;
        session.removed = former
            .as_ref()
            .map_or(0, |former| former.changes.len() as u64);
        session.state = match former.is_some() || former_link.is_some() {
            true => State::Updated,
            false => State::Sent,
        };
        Ok(Some(Work::Link {
            put: new,
            target,
            former,
            former_link,
        }))
    }
}

fn link_to(target: &Path) -> Noted {
    Noted {
        holds: Holds::Link(target.as_os_str().as_bytes().to_vec()),
        looked: None,
        put: true,
        mode: 0o777,
        here: None,
        there: None,
    }
}

/// All that stands there, to be taken away: it was found to be ours, or the same as here.
fn all_of(side: &Side) -> Compared {
    let all = side
        .names
        .iter()
        .chain(side.temporary.iter().map(|(path, meta)| (path, meta)));
    let changes: BTreeMap<PathBuf, Change> = all
        .map(|(path, meta)| (path.clone(), Change::Remove(Box::new(*meta))))
        .collect();
    Compared {
        changes,
        ..Compared::default()
    }
}
