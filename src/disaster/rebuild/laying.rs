//! Laying what a snapshot names into the folder that becomes the home: the home itself first, then everything in it,
//! small things side by side.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;

use super::outcome::{InThing, Missing, Older, Outcome};
use super::place::{Dressed, HOME, Site};
use crate::backup::fetch::{self, Fetched};
use crate::backup::{Form, Item, Place, Source, Standing};
use crate::base::wire::WirePath;
use crate::base::{self, Context, Error, Kind, Result, human};
use crate::disk::{self, Dir};
use crate::home;
use crate::pack::{ENDING, Member, MemberKind};

/// Things that hold more are unpacked one by one: each may take a window of its size, up to 128 MiB.
const SMALL: u64 = 24 << 20;

/// So many things at once at most.
const SIDE_BY_SIDE: usize = 4;

/// What was laid, as far as others have to know it.
#[derive(Debug, Default)]
pub(super) struct Ground {
    /// Sessions that are there as archives alone.
    pub archived: HashSet<String>,
    /// What came from an older pack than the newest: where it lies, and when that was made.
    pub since: Vec<(PathBuf, Timestamp)>,
    /// Things that did not come back: where they would lie.
    pub lost: Vec<PathBuf>,
    /// Folders that get their modes and times in the end.
    pub dressed: Vec<Dressed>,
    /// Whether something stands otherwise than the index says.
    pub differs: bool,
}

/// Where a thing lies below the home.
pub(super) fn place_of(place: &Place) -> Option<PathBuf> {
    Some(match place {
        Place::Home => PathBuf::new(),
        Place::Agents => "agents".into(),
        Place::Folder(name) => name.into(),
        Place::Session(id) => Path::new("sessions").join(id.as_str()),
        Place::State(..) | Place::Transcripts(..) => return None,
    })
}

/// Lays the whole home.
///
/// # Errors
/// A disk that can not be written, and interruption. What a pack does not give is told in the outcome.
pub(super) fn lay(
    source: &Source,
    site: &Site,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<Ground> {
    let mut ground = Ground::default();
    lay_home(source, site, outcome, &mut ground, context)?;
    let fail = |e| Error::io("can not write to", site.home(), e);
    let root = site.restoring.open_beneath(Path::new(HOME)).map_err(fail)?;
    // Whatever modes they get in the end: now something comes into them.
    root.set_mode(0o700).map_err(fail)?;
    let open = |name: &str| -> std::io::Result<Dir> {
        let dir = root.make_beneath(Path::new(name))?;
        dir.set_mode(0o700)?;
        Ok(dir)
    };
    let sessions = open("sessions").map_err(fail)?;
    let archive = open("archive").map_err(fail)?;
    let mut tasks = Vec::new();
    for item in &source.snapshot().items {
        if item.standing == Standing::Removed {
            continue;
        }
        let mut add = |into, name: OsString, archive| {
            tasks.push(Task {
                item,
                into,
                beside: &sessions,
                name,
                archive,
            });
        };
        match &item.place {
            Place::Home | Place::State(..) | Place::Transcripts(..) => {}
            Place::Agents => add(&root, "agents".into(), false),
            Place::Folder(name) => add(&root, name.into(), false),
            Place::Session(id) => {
                let pack = format!("{id}{ENDING}");
                let is_archive = item.newest.form == Form::Archive;
                if is_archive || item.archive.is_some() {
                    add(&archive, pack.into(), true);
                }
                if !is_archive {
                    add(&sessions, id.as_str().into(), false);
                }
                if item.standing == Standing::Missing {
                    outcome.were_missing.push(id.to_string());
                    ground.differs = true;
                }
            }
        }
    }
    let laid = lay_all(&tasks, source, context)?;
    for (task, laid) in tasks.iter().zip(laid) {
        task.tell(laid, outcome, &mut ground);
    }
    let lost: HashSet<&str> = outcome.lost.iter().map(|lost| &*lost.thing).collect();
    outcome.were_missing.retain(|id| !lost.contains(&**id));
    Ok(ground)
}

fn lay_home(
    source: &Source,
    site: &Site,
    outcome: &mut Outcome,
    ground: &mut Ground,
    context: &Context,
) -> Result<()> {
    let place = Place::Home;
    let laid = match source.snapshot().item(&place) {
        None => None,
        Some(item) => {
            let fetched = fetch::folder(source, item, &site.restoring, OsStr::new(HOME), context)?;
            tell(item, &fetched, outcome, ground);
            fetched.laid
        }
    };
    match laid {
        Some(laid) => {
            let (files, bytes) = laid.content();
            outcome.count(place.kind(), false, files, bytes);
            ground.dressed = folders_at_top(&laid.members);
            ground.differs |= laid.salvaged || !laid.missing.is_empty();
        }
        None => {
            outcome.lost(
                &place,
                "no pack of it is whole: settings and records are gone",
            );
            ground.lost.push(PathBuf::new());
            ground.differs = true;
        }
    }
    let home = site.home();
    if !disk::exists(&home.join(".wbhome").join("home.json")) {
        home::begin_again(&home, &outcome.home, context)?;
    }
    Ok(())
}

/// The home's own folder, and those directly in it.
fn folders_at_top(members: &[Member]) -> Vec<Dressed> {
    let top = members
        .iter()
        .filter(|member| member.kind == MemberKind::Folder && member.path.iter().count() <= 1);
    let mut dressed: Vec<Dressed> = top
        .map(|member| Dressed::new(member.path.0.clone(), member.mode, member.mtime))
        .collect();
    // The home itself last.
    dressed.sort_by(|one, other| other.path.cmp(&one.path));
    dressed
}

/// A thing that is to be laid.
struct Task<'t> {
    item: &'t Item,
    into: &'t Dir,
    /// Where it goes when the archive itself can not be had.
    beside: &'t Dir,
    name: OsString,
    archive: bool,
}

/// What came of one.
struct Done {
    fetched: Fetched,
    /// What the attempt to have the archive itself gave.
    before: Option<Fetched>,
}

impl Task<'_> {
    fn size(&self) -> u64 {
        match self.archive {
            true => 0,
            false => self
                .item
                .packs()
                .map(|pack| pack.content)
                .max()
                .unwrap_or(0),
        }
    }

    fn lay(&self, source: &Source, context: &Context) -> Result<Done> {
        if !self.archive {
            let fetched = fetch::folder(source, self.item, self.into, &self.name, context)?;
            return Ok(Done {
                fetched,
                before: None,
            });
        }
        let fetched = fetch::archive(source, self.item, self.into, &self.name, context)?;
        if let Some(laid) = &fetched.laid {
            context.progress.advance(1, laid.pack.content);
        }
        // Beside a folder the archive is not all that there is.
        if fetched.laid.is_some() || self.item.newest.form != Form::Archive {
            return Ok(Done {
                fetched,
                before: None,
            });
        }
        let name = OsStr::new(self.item.place.top());
        let unpacked = fetch::folder(source, self.item, self.beside, name, context)?;
        Ok(Done {
            fetched: unpacked,
            before: Some(fetched),
        })
    }

    fn tell(&self, done: Result<Done>, outcome: &mut Outcome, ground: &mut Ground) {
        let place = &self.item.place;
        let id = place.top().to_owned();
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                outcome.lost(place, error.to_string());
                ground.lost.extend(place_of(place));
                ground.differs = true;
                return;
            }
        };
        if let Some(before) = &done.before {
            ground.differs = true;
            tell(self.item, before, outcome, ground);
        }
        let fetched = &done.fetched;
        tell(self.item, fetched, outcome, ground);
        match &fetched.laid {
            Some(laid) => {
                let (files, bytes) = laid.content();
                outcome.count(place.kind(), laid.as_it_is, files, bytes);
                if laid.as_it_is && self.item.newest.form == Form::Archive {
                    ground.archived.insert(id);
                }
                ground.differs |= laid.salvaged;
            }
            None if self.archive && self.item.newest.form != Form::Archive => {
                outcome.lost(place, "its archive; its folder is told apart from that");
                ground.differs = true;
            }
            None => {
                outcome.lost(place, "nothing of any pack of it can be proved good");
                ground.lost.extend(place_of(place));
                ground.differs = true;
            }
        }
    }
}

/// Tells what of a thing did not come back as its newest pack has it.
pub(super) fn tell(item: &Item, fetched: &Fetched, outcome: &mut Outcome, ground: &mut Ground) {
    let place = &item.place;
    for not_used in &fetched.not_used {
        let known = outcome.not_used.iter();
        if !known
            .into_iter()
            .any(|known| known.file == not_used.pack.file)
        {
            outcome.not_used(place, &not_used.pack, &not_used.why);
        }
    }
    let Some(laid) = &fetched.laid else {
        return;
    };
    // Of a session that has both, the archive is as new as its own copy.
    let of_archive = laid.pack.form == Form::Archive;
    let newest = item.archive.as_ref().filter(|_| of_archive);
    let newest = newest.unwrap_or(&item.newest);
    if laid.pack.file != newest.file {
        let why = match laid.newer.iter().any(|pack| pack.file == newest.file) {
            true => format!(
                "{} could not be read when it was packed",
                human::plural(newest.unreadable, "file", "files")
            ),
            false => "it is damaged".to_owned(),
        };
        outcome.older.push(Older {
            kind: place.kind(),
            thing: place.shown(),
            at: laid.pack.at,
            newest: newest.at,
            file: newest.file.clone(),
            why,
        });
        ground
            .since
            .extend(place_of(place).map(|path| (path, laid.pack.at)));
        ground.differs = true;
    }
    for missing in &laid.missing {
        outcome.missing.push(Missing {
            thing: place.shown(),
            path: missing.path.clone().into(),
            why: missing.why.clone(),
            vanished: missing.vanished,
        });
    }
    // A database that was not sound is there, and yet not as it should be: only the snapshot knows.
    let named = laid.missing.iter().map(|missing| &*missing.path);
    let named: HashSet<&Path> = named.collect();
    let flaws = laid.pack.flaws.iter();
    for flaw in flaws.filter(|flaw| !named.contains(&*flaw.path)) {
        outcome.missing.push(Missing {
            thing: place.shown(),
            path: WirePath(flaw.path.to_path_buf()),
            why: flaw.why.clone(),
            vanished: false,
        });
    }
    for path in &laid.restless {
        outcome.restless.push(InThing {
            thing: place.shown(),
            path: path.clone().into(),
        });
    }
}

/// Lays all things: small ones side by side, the others one by one. An error of one is its own, but where the next
/// would fare no better.
fn lay_all(tasks: &[Task], source: &Source, context: &Context) -> Result<Vec<Result<Done>>> {
    let (small, large): (Vec<usize>, Vec<usize>) =
        (0..tasks.len()).partition(|n| tasks[*n].size() <= SMALL);
    let mut laid: Vec<Option<Result<Done>>> = tasks.iter().map(|_| None).collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Done>)>> = Mutex::new(Vec::new());
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let has_failed = || failed.lock().is_ok_and(|failed| failed.is_some());
    let one = |n: usize| match tasks[n].lay(source, context) {
        Err(error) if is_hopeless(&error) => {
            if let Ok(mut failed) = failed.lock() {
                failed.get_or_insert(error);
            }
        }
        laid => {
            if let Ok(mut done) = done.lock() {
                done.push((n, laid));
            }
        }
    };
    let work = || {
        while !has_failed() {
            let Some(n) = small.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            one(*n);
        }
    };
    let threads = rayon::current_num_threads().clamp(1, SIDE_BY_SIDE);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Without another thread it only takes longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    for n in large {
        if !has_failed() {
            one(n);
        }
    }
    if let Some(error) = failed.into_inner().unwrap_or_default() {
        return Err(error);
    }
    for (n, one) in done.into_inner().unwrap_or_default() {
        laid[n] = Some(one);
    }
    let lost = || Err(Error::new(Kind::Bug, "a thread that restores has died"));
    Ok(laid
        .into_iter()
        .map(|one| one.unwrap_or_else(lost))
        .collect())
}

/// Whether nothing else can be written either.
pub(super) fn is_hopeless(error: &Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, ReadOnlyFilesystem};
    let hopeless = |cause: &std::io::Error| {
        base::is_full(cause) || matches!(cause.kind(), ReadOnlyFilesystem | FileTooLarge)
    };
    error.kind() == Kind::Interrupted || error.io_cause().is_some_and(hopeless)
}
