//! Sessions on their way into packs, some at once: all processes are looked through once for them, and the index is
//! written once.

use std::path::{Path, PathBuf};

use super::away::{Done, Missing, Request, at_work, live};
use super::former::{self, Former};
use super::packing::{Archived, Packing};
use super::putting_away::{Looked, Moved, Put, PuttingAway};
use super::record::{entry_of, kept_in_pack, pack_of};
use super::{begin_some, shown, together};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, FileKind, OpenFiles};
use crate::home::journal::{Completed, Pending};
use crate::home::mend::Seen;
use crate::home::{Index, IndexFile, LockedHome, SessionId, trash};
use crate::pack::{FlawKind, Pack};
use crate::state::{Agent, AtWork};

/// Archives some of the first sessions: what is looked at for each, and noted of each, is looked at and noted once.
pub(super) fn group(
    home: &LockedHome,
    ids: &[&SessionId],
    request: &Request,
    agents: &dyn Fn() -> Result<Vec<Agent>>,
    context: &Context,
    going_on: &Context,
) -> Vec<Result<Done>> {
    let look = || -> Result<_> {
        let root = home.dir()?;
        // Somebody may have come since the plan was made: the sessions before these took their time.
        let real = disk::real_path(home.root())?;
        Ok((root, IndexFile::ready(home)?, agents()?, real))
    };
    let (root, index, agents, real) = match look() {
        Ok(looked) => looked,
        Err(error) => return vec![Err(error)],
    };
    let group = Group {
        home,
        root: &root,
        index: &index,
        at_work: &AtWork::look(home.root(), &agents),
        real: &real,
        request,
        context,
    };
    let (begun, failed) = begin_some(ids, context, |id| group.begin(id));
    let mut done = group.end(begun, going_on);
    done.extend(failed.map(Err));
    done
}

/// What a group of sessions is archived with.
struct Group<'a> {
    home: &'a LockedHome,
    root: &'a Dir,
    index: &'a Index,
    at_work: &'a AtWork<'a>,
    /// The home, through no link.
    real: &'a Path,
    request: &'a Request,
    context: &'a Context<'a>,
}

/// A session that has its pack.
struct Begun<'a> {
    away: PuttingAway<'a>,
    done: Done,
    next: Next,
}

/// What is to be done of it with all others.
enum Next {
    /// What is written down is completed.
    Note(Pending),
    /// Somebody may be at work in the folder that was put away.
    Look(Box<Moved>),
    /// Nothing more: somebody was, and all of it is as it was.
    Nothing,
}

impl<'a> Group<'a> {
    fn begin(&self, id: &'a SessionId) -> Result<(Begun<'a>, u64)> {
        let (home, request, context) = (self.home, self.request, self.context);
        let fail = |e| Error::io("can not open the folder", home.session(id), e);
        let who = at_work(home, self.index, self.at_work, id);
        if let (Some(who), false) = (&who, request.force) {
            return Err(live(id, who));
        }
        let folder = Path::new("sessions").join(id.as_str());
        let folder = self.root.open_beneath(&folder).map_err(fail)?;
        let entry = entry_of(self.index, id, &folder);
        let at = (!request.keep).then(|| context.clock.now().to_string());
        let packing = Packing {
            home,
            id,
            folder: &folder,
            entry: kept_in_pack(&entry, at.as_deref()),
            level: request.level,
            force: request.force,
            context,
        };
        let pack = |instead| {
            let (archived, new) = packing.pack(instead)?;
            Ok((archived, Some(new)))
        };
        let (archived, new) = match stands(home, id, &folder, context)? {
            None => pack(false)?,
            Some(Former::Same(archived)) => (*archived, None),
            Some(Former::Other(_)) if request.force => pack(true)?,
            Some(Former::Other(why)) => return Err(in_the_way(id, &why)),
        };
        let seen = Seen::of(&folder.meta().map_err(fail)?);
        drop(folder);
        let mut done = told(id, &archived);
        let stays = who.or_else(|| {
            let changed = archived.flaws(FlawKind::is_restless);
            let changed = changed.first()?;
            Some(format!("{} was written to", human::path(&changed.path)))
        });
        let away = PuttingAway {
            home,
            root: self.root,
            id,
            entry,
            archived,
            folder: seen,
            context,
        };
        let bytes = done.bytes;
        let next = if request.keep || stays.is_some() {
            done.kept_because = stays.filter(|_| !request.keep);
            Next::Note(away.keep(new)?)
        } else {
            match away.put(new, request.force)? {
                Put::Moved(moved) => Next::Look(moved),
                Put::Back(why) => {
                    self.back(id, &why, &mut done)?;
                    Next::Nothing
                }
            }
        };
        Ok((Begun { away, done, next }, bytes))
    }

    /// A session that was written to meanwhile is in its place again.
    fn back(&self, id: &SessionId, why: &str, done: &mut Done) -> Result<()> {
        if self.request.force {
            done.kept_because = Some(format!("it was written to: {why}"));
            return Ok(());
        }
        Err(Error::failed(format!(
            "{} was written to while it was archived: {why}",
            shown(id)
        ))
        .hint("it is back in its place; try again when its session has ended"))
    }

    fn end(&self, begun: Vec<Begun<'a>>, going_on: &Context) -> Vec<Result<Done>> {
        let has_moved = begun.iter().any(|b| matches!(b.next, Next::Look(_)));
        let open = has_moved.then(|| disk::open_below(&self.real.join(trash::TRASH)));
        let open = open.unwrap_or_default();
        let (mut ready, mut entries) = (Vec::new(), Vec::new());
        for begun in begun {
            ready.push(self.ready(begun, &open).map(|(done, entry)| {
                let is_open = entry.is_some();
                entries.extend(entry);
                (done, is_open)
            }));
        }
        let mut completed = together(entries, self.home, going_on).into_iter();
        let tell = |ready: Result<(Done, bool)>| {
            let (mut done, is_open) = ready?;
            let completed = match is_open {
                true => completed
                    .next()
                    .unwrap_or_else(|| Ok(Completed::default()))?,
                false => Completed::default(),
            };
            if !done.folder {
                done.leftover = completed.left.iter().map(ToString::to_string).collect();
            }
            Ok(done)
        };
        ready.into_iter().map(tell).collect()
    }

    /// What is to be completed, after the last look at a folder that was put away.
    fn ready(&self, begun: Begun<'a>, open: &OpenFiles) -> Result<(Done, Option<Pending>)> {
        let Begun {
            away,
            mut done,
            next,
        } = begun;
        let entry = match next {
            Next::Nothing => None,
            Next::Note(entry) => Some(entry),
            Next::Look(moved) => match away.look(*moved, self.real, open)? {
                Looked::Away(entry) => {
                    done.folder = false;
                    Some(entry)
                }
                Looked::Back(why) => {
                    self.back(away.id, &why, &mut done)?;
                    None
                }
            },
        };
        Ok((done, entry))
    }
}

/// The pack that has the name already.
fn stands(
    home: &LockedHome,
    id: &SessionId,
    folder: &Dir,
    context: &Context,
) -> Result<Option<Former>> {
    let path = home.archive_of(id);
    match disk::stat(&path)? {
        None => Ok(None),
        Some(meta) if meta.kind == FileKind::File => match Pack::open(&path) {
            Ok(pack) => former::compare(&pack, id, folder, context).map(Some),
            Err(error) => Ok(Some(Former::Other(error.to_string()))),
        },
        Some(_) => Ok(Some(Former::Other("it is no file".to_owned()))),
    }
}

fn in_the_way(id: &SessionId, why: &str) -> Error {
    Error::failed(format!(
        "{} has an archive already, and that is not what its folder holds: {}",
        shown(id),
        human::escape(why)
    ))
    .hint("--force puts the former archive into the trash, and archives what the folder holds")
}

fn told(id: &SessionId, archived: &Archived) -> Done {
    let (files, bytes) = archived.content();
    let missing = |of: &dyn Fn(FlawKind) -> bool| {
        let flaws = archived.flaws(of);
        flaws.into_iter().map(Missing::from).collect()
    };
    let file: PathBuf = pack_of(id);
    Done {
        id: id.clone(),
        files,
        bytes,
        file: file.display().to_string(),
        packed: archived.bytes,
        blake3: archived.blake3.clone(),
        reused: archived.reused,
        folder: true,
        kept_because: None,
        special: missing(&|kind| kind == FlawKind::Special),
        changed: missing(&FlawKind::is_restless),
        leftover: Vec::new(),
    }
}
