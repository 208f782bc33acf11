//! Looking at the home before something is taken back: who is at work, what is in the way, what was changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Plan, session_of};
use crate::base::{Error, Result, Stop, human};
use crate::disk::Dir;
use crate::home::mend::{self, INDEX, INDEX_CHANGED};
use crate::home::trash::{self, Former, Mark, Note, Was};
use crate::home::{Home, Index, IndexFile, Status, identity_of};
use crate::state::AtWork;

/// What a plan is measured by before it is carried out.
pub(super) struct Look<'h> {
    pub(super) home: &'h Home,
    pub(super) root: &'h Dir,
    pub(super) stop: &'h Stop,
}

impl Look<'_> {
    pub(super) fn at_work(&self, plan: &Plan, at_work: &AtWork) -> Result<()> {
        let index = Index::read(self.home).ok();
        let back = plan.back.iter().map(|back| &back.path);
        for path in back.chain(&plan.away) {
            let session = session_of(path, false);
            let who = session
                .and_then(|id| {
                    let identity = identity_of(self.home, index.as_ref(), &id);
                    at_work.agent_in_session(&self.home.session(&id), identity.as_deref())
                })
                .or_else(|| at_work.writer_of(&self.home.root().join(&**path)));
            if let Some(who) = who {
                let shown = human::path(path);
                return Err(Error::failed(format!("{shown} can not be changed: {who}"))
                    .hint("end its session first; nothing was changed"));
            }
        }
        Ok(())
    }

    /// Marks what would take the place of something, and refuses. Where a whole act is taken back, what it has
    /// itself put there and nobody has changed since is not in the way.
    pub(super) fn see_what_is_there(
        &self,
        plan: &mut Plan,
        is_whole: bool,
        force: bool,
    ) -> Result<()> {
        let act = trash::act(self.home, &plan.act);
        let note = act.map(|act| act.note).unwrap_or_default();
        self.leave_a_changed_index(plan, &note)?;
        let coming: BTreeSet<PathBuf> = plan.back.iter().map(|b| b.path.0.clone()).collect();
        // Of several of one path the first counts: it is put in last.
        let was = note.was.iter().rev();
        let was: BTreeMap<&Path, &Was> = was.map(|was| (&*was.path, was)).collect();
        let added = note.added.iter().rev();
        let added: BTreeMap<&Path, _> = added.map(|added| (&*added.path, added)).collect();
        for back in &mut plan.back {
            self.has_its_folder(&back.path, &coming)?;
            if mend::look(self.root, &back.path)?.is_none() {
                continue;
            }
            let kept = Path::new(trash::TRASH).join(&plan.act).join(&back.lies);
            let expected = was.get(&*back.path.0);
            let expected = expected.and_then(|was| was.replaced_by.as_ref());
            let there = self.mark(&back.path)?;
            let as_left = is_whole
                && there.is_some()
                && (there.as_ref() == expected || there == self.mark(&kept)?);
            if !as_left && !force {
                return Err(Error::failed(format!(
                    "{} is in the way of {}:",
                    human::path(&back.path),
                    human::path(&kept)
                ))
                .at(self.home.root().join(&*back.path))
                .hint("look at both; --force puts what is there into the trash"));
            }
            back.replaces = true;
            back.present = there.filter(|_| *back.path == *Path::new(INDEX));
        }
        for path in &plan.away {
            let expected = added.get(&**path);
            let expected = expected.and_then(|added| added.mark.as_ref());
            if self.mark(path)?.as_ref() != expected && !force {
                return Err(
                    Error::failed("was added by this act and has been changed since:")
                        .at(self.home.root().join(&**path))
                        .hint("--force puts it into the trash all the same"),
                );
            }
        }
        let index = Index::read(self.home).unwrap_or_default();
        let removed = |former: &&Former| {
            let entry = index.find(&former.id);
            entry.is_some_and(|entry| entry.status() == Status::Removed)
        };
        plan.sessions = plan
            .former
            .iter()
            .filter(removed)
            .map(|f| f.id.clone())
            .collect();
        let nothing = plan.back.is_empty()
            && plan.away.is_empty()
            && plan.modes.is_empty()
            && plan.sessions.is_empty();
        if nothing {
            let error = Error::failed("has nothing left to be taken back:")
                .at(Path::new(trash::TRASH).join(&plan.act));
            let error = error.hint(
                "what still lies there was no part of it, or is what was left of it: look at it, and move by hand what you want back",
            );
            let hint = |error: Error, left: &String| error.hint(left.clone());
            return Err(plan.left.iter().fold(error, hint));
        }
        Ok(())
    }

    /// The former index that other things of an act go with is put back only as long as nobody has changed the
    /// present one, which may hold labels of since then. The other things do not wait for that.
    fn leave_a_changed_index(&self, plan: &mut Plan, note: &Note) -> Result<()> {
        let index = Path::new(INDEX);
        let is_repair = note.command.as_deref() == Some("check --repair");
        let alone = note.was.iter().all(|was| was.path == index)
            && note.added.is_empty()
            && note.modes.is_empty()
            && note.entries.is_empty();
        if let (Some(at), true) = (
            plan.back.iter().position(|back| *back.path == *index),
            is_repair || !alone,
        ) {
            let kept = Path::new(trash::TRASH)
                .join(&plan.act)
                .join(&plan.back[at].lies);
            let was = note.was.iter().find(|was| was.path == index);
            let as_left = was.and_then(|was| was.replaced_by.clone());
            let there = mend::look(self.root, index)?;
            let now = self.mark(index)?;
            if there.is_some() && (now.is_none() || now != as_left && now != self.mark(&kept)?) {
                plan.back.remove(at);
                plan.left.push(format!("{INDEX}: {INDEX_CHANGED}"));
            }
        }
        let index_comes_back = plan.back.iter().any(|back| *back.path == *index);
        if plan.former.is_empty() || index_comes_back {
            return Ok(());
        }
        // It will have to be written.
        match IndexFile::ready(self.home) {
            Err(error) if is_repair => {
                plan.former.clear();
                plan.left.push(format!("{INDEX}: {error}"));
            }
            checked => drop(checked?),
        }
        Ok(())
    }

    /// Something of a session comes back only into that session.
    fn has_its_folder(&self, path: &Path, coming: &BTreeSet<PathBuf>) -> Result<()> {
        let Some(session) = session_of(path, false) else {
            return Ok(());
        };
        let folder = Path::new("sessions").join(session.as_str());
        if path == folder || !path.starts_with(&folder) || coming.contains(&folder) {
            return Ok(());
        }
        match mend::look(self.root, &folder)? {
            Some(_) => Ok(()),
            None => Err(Error::failed(format!(
                "{} can not come back, its session is not there",
                human::path(path)
            ))
            .hint("bring the session back first")),
        }
    }

    fn mark(&self, path: &Path) -> Result<Option<Mark>> {
        mend::mark(self.root, path, self.stop)
    }
}
