//! The former version of a session: out of `sessions/`, and looked at once more where nobody writes to it by its name.

use std::path::{Path, PathBuf};

use super::super::standing::Side;
use super::settle::folder_of;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::journal::Step;
use crate::home::mend::Mend;
use crate::home::trash::{self, Was};
use crate::home::{LockedHome, SessionId};
use crate::state::works_in;

/// The former version, and where it goes.
pub(super) struct Former<'a> {
    home: &'a LockedHome,
    root: Dir,
    id: &'a SessionId,
    /// As it was when the new one was made.
    here: &'a Side,
    act: &'a str,
    lies: PathBuf,
}

impl<'a> Former<'a> {
    pub fn new(
        home: &'a LockedHome,
        id: &'a SessionId,
        here: &'a Side,
        act: &'a str,
    ) -> Result<Former<'a>> {
        let fail = |e| Error::io("can not open the home", home.root(), e);
        Ok(Former {
            home,
            root: Dir::open(home.root()).map_err(fail)?,
            id,
            here,
            act,
            lies: Was::new(folder_of(id)).lies,
        })
    }

    /// How it comes back.
    pub fn back(&self) -> Vec<Step> {
        let act = self.act.to_owned();
        let back = Mend::BringBack {
            act: act.clone(),
            lies: self.lies.clone().into(),
            path: folder_of(self.id).into(),
        };
        [back, Mend::Close { act }]
            .map(|step| Step::Mend { step })
            .to_vec()
    }

    /// Puts it away. Whether it is still what the new version was made from; if not, it has to come back.
    ///
    /// # Errors
    /// Somebody who is at work in it, and what the system says: then it has to come back, too.
    pub fn put_away(&self, context: &Context) -> Result<bool> {
        let away = Path::new(trash::TRASH).join(self.act).join(&self.lies);
        self.move_away(&folder_of(self.id), &away)?;
        failpoint::hit("relay-take.away");
        let fail = |e| Error::io("can not open the folder", self.home.root().join(&away), e);
        let moved = self.root.open_beneath(&away).map_err(fail)?;
        let now = Side::look(moved, context.stop)?;
        if now.top.identity() != self.here.top.identity() || !now.holds_as(self.here) {
            return Ok(false);
        }
        // Whoever has opened a file since, or reaches it without its name.
        self.refuse_writer(&away).map(|()| true)
    }

    fn move_away(&self, folder: &Path, away: &Path) -> Result<()> {
        let fail = |e| Error::io("can not be put away:", self.home.root().join(folder), e);
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
        let name = folder.file_name().unwrap_or_default();
        let sessions = self.root.open_beneath(&parent(folder)).map_err(fail)?;
        let trash = self.root.make_beneath(&parent(away)).map_err(fail)?;
        sessions
            .rename(name, &trash, name)
            .and_then(|()| trash.sync())
            .and_then(|()| sessions.sync())
            .map_err(fail)
    }

    fn refuse_writer(&self, away: &Path) -> Result<()> {
        let open = disk::open_below(&disk::real_path(self.home.root())?.join(away));
        let inside = open.folders.first();
        let inside = inside.map(|folder| works_in(&folder.program, folder.pid));
        let mut writers = open.seen.iter().filter(|file| file.writing);
        let who = inside.or_else(|| {
            let file = writers.next()?;
            let program = human::name(&file.program);
            Some(format!(
                "{program} (process {}) has a file of it open for writing",
                file.pid
            ))
        });
        match who {
            None => Ok(()),
            Some(who) => Err(super::refuse::not_replaced(self.id, &who)),
        }
    }

    /// When its place was taken while it was away, that is told before anything else.
    ///
    /// # Errors
    /// That.
    pub fn refuse_lost(&self) -> Result<()> {
        let Some(act) = trash::act(self.home, self.act) else {
            return Ok(());
        };
        if act.holds(&self.root).is_empty() {
            return Ok(());
        }
        Err(Error::failed(format!(
            "`{}` was put away to be replaced, and its place was taken meanwhile: it is in {}",
            human::name(self.id.as_str()),
            human::path(&act.folder())
        ))
        .hint(format!(
            "`wbhome restore {} --from trash --force` brings it back; what has its place now goes into the trash",
            act.name
        )))
    }
}
