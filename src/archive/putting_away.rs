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
use crate::disk::{Dir, OpenFile, OpenFiles};
use crate::home::journal::{self, Pending, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Note, Was};
use crate::home::{Entry, LockedHome, SessionId};
use crate::pack;
use crate::state::works_in;

/// What came of putting it away.
#[derive(Debug)]
pub(super) enum Put {
    /// It is in the trash, and is what the pack holds.
    Moved(Box<Moved>),
    /// Somebody has written to it meanwhile: it is back in its place.
    Back(String),
}

/// What came of the last look at it.
#[derive(Debug)]
pub(super) enum Looked {
    /// It is archived when this is completed.
    Away(Pending),
    /// Somebody has written to it meanwhile: it is back in its place.
    Back(String),
}

/// A folder that was put away. What is written down is how it comes back.
#[derive(Debug)]
pub(super) struct Moved {
    pending: Pending,
    ready: Ready,
}

/// A session that has been packed.
pub(super) struct PuttingAway<'a> {
    pub home: &'a LockedHome,
    pub root: &'a Dir,
    pub id: &'a SessionId,
    /// What becomes its entry when it has none.
    pub entry: Entry,
    pub archived: Archived,
    /// What its folder is.
    pub folder: Seen,
    pub context: &'a Context<'a>,
}

/// What is made ready before a folder is put away.
#[derive(Debug)]
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
        let Archived { bytes, blake3, .. } = &self.archived;
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

    /// What notes the pack, and leaves the folder where it is. `new` is the note that would take a new pack away again.
    pub fn keep(&self, new: Option<Pending>) -> Result<Pending> {
        let step = self.or_give_up(self.noting(None), &new)?;
        self.note(new, vec![step])
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

    /// Puts the folder away, and compares it there. When it has to come back, a new pack goes; one that is to be kept all
    /// the same is noted.
    pub fn put(&self, new: Option<Pending>, keep: bool) -> Result<Put> {
        // All that could fail for another reason comes before the folder is touched.
        let ready = self.or_give_up(self.ready(), &new)?;
        let mut steps = ready.back.to_vec();
        match (&new, keep) {
            (_, true) => steps.push(self.or_give_up(self.noting(None), &new)?),
            (Some(_), false) => steps.push(self.archived.taking_back(self.id, self.folder)),
            (None, false) => {}
        }
        let pending = self.note(new, steps)?;
        let moved = Moved { pending, ready };
        let looked = self
            .move_away(&folder_of(self.id), &moved.ready.away)
            .and_then(|()| {
                failpoint::hit("archive.away");
                self.compare_again(&moved.ready.away)
            });
        match looked {
            Ok(None) => Ok(Put::Moved(Box::new(moved))),
            Ok(Some(why)) => {
                self.bring_back(moved)?;
                Ok(Put::Back(why))
            }
            Err(error) => {
                self.bring_back(moved)?;
                Err(error)
            }
        }
    }

    /// Looks whether anybody has come to it meanwhile, among what is `open` in the trash of the home, whose path through
    /// no link is `real`. What is written down is how it is archived then.
    pub fn look(&self, moved: Moved, real: &Path, open: &OpenFiles) -> Result<Looked> {
        // Whoever has opened a file while it was compared, or reaches it without its name.
        if let Some(who) = writer_in(&real.join(&moved.ready.away), open) {
            self.bring_back(moved)?;
            return Ok(Looked::Back(who));
        }
        let seen = self.pack_seen().and_then(|_| self.seen(&moved.ready.away));
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                self.bring_back(moved)?;
                return Err(error);
            }
        };
        let Moved { pending, ready } = moved;
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
        Ok(Looked::Away(pending.turn_into(steps)?))
    }

    /// Gives the folder its place again.
    fn bring_back(&self, moved: Moved) -> Result<()> {
        moved.pending.complete(self.home, self.context)?;
        self.refuse_lost(&moved.ready.act)
    }

    /// What has to be known, and the act that has to be there, before the folder is moved.
    fn ready(&self) -> Result<Ready> {
        let context = self.context;
        let kept_seen = self.pack_seen()?;
        let noting = self.noting(Some(context.clock.now().to_string()))?;
        let folder = folder_of(self.id);
        let was = Was::new(&folder);
        let lies = was.lies.clone();
        let why = format!("archived the session {}", human::name(self.id.as_str()));
        let note = Note {
            was: vec![was],
            ..Note::by("archive", why, context)
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
            away: Path::new(trash::TRASH).join(&act).join(lies),
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

    /// Compares the folder where it is now; why it must go back, if so.
    fn compare_again(&self, away: &Path) -> Result<Option<String>> {
        let moved = self.open(away)?;
        let differences = pack::compare(&self.archived.manifest, &moved, self.context)?;
        Ok(telling(&differences))
    }

    fn open(&self, away: &Path) -> Result<Dir> {
        let opened = self.root.open_beneath(away);
        opened.map_err(|e| Error::io("can not open the folder", self.home.root().join(away), e))
    }

    fn seen(&self, away: &Path) -> Result<Seen> {
        let meta = self.open(away)?.meta();
        let meta =
            meta.map_err(|e| Error::io("can not look at", self.home.root().join(away), e))?;
        Ok(Seen::of(&meta))
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

/// Who has something open in a folder, for writing or as the folder that relative names begin at.
fn writer_in(real: &Path, open: &OpenFiles) -> Option<String> {
    let within = |file: &&OpenFile| file.path.starts_with(real);
    if let Some(folder) = open.folders.iter().find(within) {
        return Some(works_in(&folder.program, folder.pid));
    }
    let mut seen = open.seen.iter().filter(within);
    let writer = seen.find(|file| file.writing)?;
    Some(format!(
        "{} (process {}) has a file of it open for writing",
        human::name(&writer.program),
        writer.pid
    ))
}
