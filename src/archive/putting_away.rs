//! The folder of a session that has its pack: out of `sessions/`, compared once more, and gone.
//!
//! What is written down first is how it comes back. When it has been compared where nobody writes to it by its name,
//! that note is replaced, in one rename, by the one that completes the archiving. A kill at any point leaves the session
//! whole: in its folder, in the trash, or in its pack.

use std::path::{Path, PathBuf};

use super::former::telling;
use super::packing::Archived;
use super::record::{archive_field, folder_of, pack_of};
use super::shown;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir};
use crate::home::journal::{self, Pending, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Note, Was};
use crate::home::{Entry, LockedHome, SessionId};
use crate::pack;
use crate::state::works_in;

/// What came of it.
#[derive(Debug)]
pub(super) enum Put {
    /// It is archived. What was left and why, a line each.
    Away(Vec<String>),
    /// Somebody has written to it meanwhile: it is back in its place.
    Back(String),
}

/// A session that has been packed.
pub(super) struct PuttingAway<'a> {
    pub home: &'a LockedHome,
    pub root: &'a Dir,
    pub id: &'a SessionId,
    /// What becomes its entry when it has none.
    pub entry: &'a Entry,
    pub archived: &'a Archived,
    /// What its folder is.
    pub folder: Seen,
    pub context: &'a Context<'a>,
}

/// What is made ready before a folder is put away.
struct Ready {
    /// What the pack is.
    kept_seen: Seen,
    /// The step that notes it.
    noting: Step,
    /// The act, and where in the home the folder lies in it.
    act: String,
    away: PathBuf,
    /// The steps by which it comes back.
    back: [Step; 2],
}

impl PuttingAway<'_> {
    /// The step that notes the pack in the index.
    pub fn noting(&self, at: Option<String>) -> Result<Step> {
        let Archived { bytes, blake3, .. } = self.archived;
        Ok(Step::Mend {
            step: Mend::Archived {
                entry: self.entry.fields().clone(),
                archive: archive_field(self.id, *bytes, blake3),
                at,
                pack: pack_of(self.id).into(),
                seen: self.pack_seen()?,
            },
        })
    }

    /// The pack is still the file that was read: it is the proof of all that follows.
    fn pack_seen(&self) -> Result<Seen> {
        let pack = pack_of(self.id);
        match mend::look(self.root, &pack)? {
            Some(meta) if self.archived.seen == Seen::of(&meta) => Ok(self.archived.seen),
            _ => Err(
                Error::failed("another file has taken the place of the archive meanwhile:")
                    .at(self.home.root().join(pack))
                    .hint("the session is in sessions/; look at what the other file is"),
            ),
        }
    }

    /// Notes the pack, and leaves the folder where it is. `new` is the note that would take a new pack away again.
    pub fn keep(&self, new: Option<Pending>) -> Result<()> {
        let (home, context) = (self.home, self.context);
        let step = self.or_give_up(self.noting(None), &new)?;
        self.note(new, vec![step])?.complete(home, context)?;
        Ok(())
    }

    /// Writes down these steps, in place of the note on a new pack.
    fn note(&self, new: Option<Pending>, steps: Vec<Step>) -> Result<Pending> {
        match new {
            Some(pending) => pending.turn_into(steps),
            None => journal::begin(self.home, "archive", steps, self.context),
        }
    }

    /// After an error a new pack goes at once.
    fn or_give_up<T>(&self, result: Result<T>, new: &Option<Pending>) -> Result<T> {
        if let (Err(_), Some(pending)) = (&result, new) {
            pending.clone().complete(self.home, self.context)?;
        }
        result
    }

    /// Puts the folder away. When it has to come back, a new pack goes; one that is to be kept all the same is noted.
    pub fn put(&self, new: Option<Pending>, keep: bool) -> Result<Put> {
        let (home, context) = (self.home, self.context);
        // All that could fail for another reason comes before the folder is touched.
        let ready = self.or_give_up(self.ready(), &new)?;
        let mut steps = ready.back.to_vec();
        match (&new, keep) {
            (_, true) => steps.push(self.or_give_up(self.noting(None), &new)?),
            (Some(_), false) => steps.push(self.archived.taking_back(self.id, self.folder)),
            (None, false) => {}
        }
        let pending = self.note(new, steps)?;
        let looked = self
            .move_away(&folder_of(self.id), &ready.away)
            .and_then(|()| {
                failpoint::hit("archive.away");
                let found = self.look_again(&ready.away)?;
                self.pack_seen()?;
                Ok(found)
            });
        let seen = match looked {
            Ok(Ok(seen)) => seen,
            Ok(Err(why)) => {
                pending.complete(home, context)?;
                self.refuse_lost(&ready.act)?;
                return Ok(Put::Back(why));
            }
            Err(error) => {
                pending.complete(home, context)?;
                self.refuse_lost(&ready.act)?;
                return Err(error);
            }
        };
        let discard = Mend::Discard {
            path: ready.away.into(),
            seen,
            kept_in: pack_of(self.id).into(),
            kept_seen: ready.kept_seen,
        };
        let [_, close] = ready.back;
        let steps = vec![
            ready.noting,
            Step::Views {
                ids: Some(vec![self.id.to_string()]),
            },
            Step::Mend { step: discard },
            close,
        ];
        let completed = pending.turn_into(steps)?.complete_telling(home, context)?;
        Ok(Put::Away(
            completed.left.iter().map(ToString::to_string).collect(),
        ))
    }

    /// What has to be known, and the act that has to be there, before the folder is moved.
    fn ready(&self) -> Result<Ready> {
        let context = self.context;
        let kept_seen = self.pack_seen()?;
        let noting = self.noting(Some(context.clock.now().to_string()))?;
        let folder = folder_of(self.id);
        let was = Was::new(&folder);
        let lies = was.lies.clone();
        let note = Note {
            why: format!("archived the session {}", human::name(self.id.as_str())),
            at: context.clock.now().to_string(),
            command: Some("archive".to_owned()),
            was: vec![was],
            ..Note::default()
        };
        let act = trash::open(self.home, note, context)?;
        let back = Mend::BringBack {
            act: act.clone(),
            lies: lies.clone().into(),
            path: folder.into(),
        };
        let close = Mend::Close { act: act.clone() };
        Ok(Ready {
            kept_seen,
            noting,
            back: [back, close].map(|step| Step::Mend { step }),
            away: Path::new(".wbhome/trash").join(&act).join(lies),
            act,
        })
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

    /// Compares the folder where it is now: what it is, or why it must go back.
    fn look_again(&self, away: &Path) -> Result<std::result::Result<Seen, String>> {
        let moved = self
            .root
            .open_beneath(away)
            .map_err(|e| Error::io("can not open the folder", self.home.root().join(away), e))?;
        let differences = pack::compare(&self.archived.manifest, &moved, self.context)?;
        if let Some(what) = telling(&differences) {
            return Ok(Err(what));
        }
        // Whoever has opened a file while it was compared, or reaches it without its name.
        if let Some(who) = self.writer_in(away)? {
            return Ok(Err(who));
        }
        let meta = moved
            .meta()
            .map_err(|e| Error::io("can not look at", self.home.root().join(away), e))?;
        Ok(Ok(Seen::of(&meta)))
    }

    fn writer_in(&self, away: &Path) -> Result<Option<String>> {
        let real = disk::real_path(self.home.root())?.join(away);
        let open = disk::open_below(&real);
        if let Some(folder) = open.folders.first() {
            return Ok(Some(works_in(&folder.program, folder.pid)));
        }
        let writer = open.seen.into_iter().find(|file| file.writing);
        Ok(writer.map(|file| {
            format!(
                "{} (process {}) has a file of it open for writing",
                human::name(&file.program),
                file.pid
            )
        }))
    }

    /// When its place was taken while it was away, that is told before anything else.
    fn refuse_lost(&self, act: &str) -> Result<()> {
        let Some(act) = trash::act(self.home, act) else {
            return Ok(());
        };
        if act.holds(self.root).is_empty() {
            return Ok(());
        }
        Err(Error::failed(format!(
            "{} was put away to be compared, and its place was taken meanwhile: it is in {}",
            shown(self.id),
            human::path(&act.folder())
        ))
        .hint(format!(
            "`wbhome restore {} --from trash --force` brings it back; what has its place now goes into the trash",
            act.name
        )))
    }
}
