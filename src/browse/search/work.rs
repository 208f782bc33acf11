//! Who searches what, and when it is told: all cores search, session by session, and what they find is told in order.
//!
//! A session is a task; one of many files is several. Whoever is far ahead of what was told waits, so that what was found
//! and not told stays small. Of a file with more than that nothing is kept: it is searched once more when its turn has
//! come, and told as it is found.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::folder::{self, Files, Listing};
use super::kept::{Done, Keeping, Kept, What};
use super::telling::Telling;
use super::{Outcome, Request, Session, Teller, natural, packed};
use crate::base::{Context, Error, Kind, Result, Stop};
use crate::disk::Dir;
use crate::home::Home;
use crate::pack::Pack;

/// So many files are a task.
const BATCH: usize = 256;
/// When so much waits to be told, only what is told next is searched.
const MOST: usize = 32 << 20;

/// More cores wait for the disk, or for each other.
const MOST_CORES: usize = 16;

/// Says that nobody waits for more.
pub(super) struct Halt<'h> {
    stop: &'h Stop,
    is_over: AtomicBool,
}

impl Halt<'_> {
    pub(super) fn is_raised(&self) -> bool {
        self.stop.raised() || self.is_over.load(Ordering::Relaxed)
    }

    fn raise(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A session, open.
pub(super) enum Source {
    Folder(Dir, Listing),
    Pack(Box<Pack>),
}

/// What came of a task.
pub(super) struct BatchDone {
    pub files: Vec<Done>,
    /// Whence, for what is to be searched once more.
    pub source: Option<Arc<Source>>,
    weight: usize,
    /// Tasks of the session.
    tasks: usize,
}

/// The number of a session, and of a task of it.
type Position = (usize, usize);

/// Files of an open folder.
type Part = (Arc<Source>, Range<usize>, usize);

struct State {
    /// The next session that nobody has begun.
    next: usize,
    /// Parts of sessions that were begun.
    parts: BTreeMap<Position, Part>,
    done: BTreeMap<Position, BatchDone>,
    /// What is told next.
    head: Position,
    /// What waits to be told, in bytes.
    weight: usize,
    at_work: usize,
}

struct Shared<'s> {
    home: &'s Home,
    request: &'s Request,
    sessions: &'s [Session],
    context: &'s Context<'s>,
    halt: Halt<'s>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Searches the sessions, and tells what is found.
pub(super) fn run(
    home: &Home,
    request: &Request,
    sessions: &[Session],
    teller: &mut Teller<'_>,
    context: &Context,
) -> Result<Outcome> {
    let shared = Shared {
        home,
        request,
        sessions,
        context,
        halt: Halt {
            stop: context.stop,
            is_over: AtomicBool::new(false),
        },
        state: Mutex::new(State {
            next: 0,
            parts: BTreeMap::new(),
            done: BTreeMap::new(),
            head: (0, 0),
            weight: 0,
            at_work: 0,
        }),
        changed: Condvar::new(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut telling = Telling::new(request, &shared.halt, teller, context);
    std::thread::scope(|scope| {
        let start = |_| {
            let builder = std::thread::Builder::new();
            builder.spawn_scoped(scope, || work(&shared)).ok()
        };
        let workers: Vec<_> = (0..cores.min(MOST_CORES)).filter_map(start).collect();
        // Whoever ends has left nothing to be done: all of it waits to be told.
        let alive = || !workers.is_empty() && workers.iter().all(|worker| !worker.is_finished());
        let told = tell(&shared, &mut telling, &alive);
        // Under the lock, so that nobody looks before this and sleeps after it.
        let state = shared.state();
        shared.halt.raise();
        drop(state);
        shared.changed.notify_all();
        told
    })?;
    context.stop.check()?;
    Ok(Outcome {
        sessions: sessions.len() as u64,
        ..telling.outcome
    })
}

impl Shared<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what was done, in order, until all is told or nobody wants more.
fn tell(
    shared: &Shared<'_>,
    telling: &mut Telling<'_, '_>,
    alive: &dyn Fn() -> bool,
) -> Result<()> {
    loop {
        let (position, done) = {
            let mut state = shared.state();
            loop {
                let head = state.head;
                if head.0 == shared.sessions.len() || shared.halt.is_raised() {
                    return Ok(());
                }
                if let Some(done) = state.done.remove(&head) {
                    state.weight -= done.weight;
                    break (head, done);
                }
                if !alive() {
                    let what = "a thread that searches has died, or none could be started";
                    return Err(Error::new(Kind::Bug, what));
                }
                let waited = shared
                    .changed
                    .wait_timeout(state, Duration::from_millis(200));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let session = &shared.sessions[position.0];
        let is_last = position.1 + 1 == done.tasks;
        if telling.batch(session, done, is_last)?.is_break() {
            return Ok(());
        }
        shared.state().head = match is_last {
            true => (position.0 + 1, 0),
            false => (position.0, position.1 + 1),
        };
        shared.changed.notify_all();
    }
}

fn work(shared: &Shared<'_>) {
    // Whoever shares a regular expression waits for the others.
    let request = &shared.request.clone();
    let mut buffer = Vec::new();
    while let Some((position, part)) = next(shared) {
        let (done, more) = match part {
            Some((source, files, tasks)) => {
                let done = search_files(
                    shared,
                    request,
                    position.0,
                    &source,
                    files,
                    tasks,
                    &mut buffer,
                );
                (done, Vec::new())
            }
            None => begin(shared, request, position.0, &mut buffer),
        };
        let mut state = shared.state();
        state.weight += done.weight;
        state.done.insert(position, done);
        let more = more.into_iter().enumerate();
        state
            .parts
            .extend(more.map(|(n, part)| ((position.0, n + 1), part)));
        state.at_work -= 1;
        drop(state);
        shared.changed.notify_all();
    }
}

/// What is to be done next; none when there is nothing more.
fn next(shared: &Shared<'_>) -> Option<(Position, Option<Part>)> {
    let mut state = shared.state();
    loop {
        if shared.halt.is_raised() {
            return None;
        }
        let part = state.parts.keys().next().copied();
        let begins = (state.next < shared.sessions.len()).then_some((state.next, 0));
        let next = part.or(begins);
        match next {
            Some(position) if position == state.head || state.weight < MOST => {
                let part = state.parts.remove(&position);
                state.next += usize::from(part.is_none());
                state.at_work += 1;
                return Some((position, part));
            }
            None if state.at_work == 0 => return None,
            _ => {
                let waited = shared.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Opens a session and searches the first part of it; the others.
fn begin(
    shared: &Shared<'_>,
    request: &Request,
    number: usize,
    buffer: &mut Vec<u8>,
) -> (BatchDone, Vec<Part>) {
    let session = &shared.sessions[number];
    match session.archived {
        true => (search_pack(shared, request, session), Vec::new()),
        false => match open(shared, session) {
            Ok(source) => {
                let Source::Folder(_, listing) = &source else {
                    return (BatchDone::empty(), Vec::new());
                };
                let count = listing.len();
                let tasks = count.div_ceil(BATCH).max(1);
                let source = Arc::new(source);
                let range = |task: usize| task * BATCH..count.min((task + 1) * BATCH);
                let more = (1..tasks).map(|task| (Arc::clone(&source), range(task), tasks));
                let more = more.collect();
                (
                    search_files(shared, request, number, &source, range(0), tasks, buffer),
                    more,
                )
            }
            Err(why) => (BatchDone::unread(why), Vec::new()),
        },
    }
}

fn open(shared: &Shared<'_>, session: &Session) -> std::result::Result<Source, String> {
    let open = || {
        let sessions = Dir::open(shared.home.sessions())?;
        sessions.open_beneath(Path::new(session.id.as_str()))
    };
    let dir = match open() {
        Ok(dir) => dir,
        Err(error) => return Err(crate::base::human::io(&error)),
    };
    let listing = folder::list(&dir, shared.request, &shared.halt);
    Ok(Source::Folder(dir, listing))
}

fn search_files(
    shared: &Shared<'_>,
    request: &Request,
    session: usize,
    source: &Arc<Source>,
    files: Range<usize>,
    tasks: usize,
    buffer: &mut Vec<u8>,
) -> BatchDone {
    let mut done = BatchDone {
        tasks,
        ..BatchDone::empty()
    };
    let Source::Folder(dir, listing) = &**source else {
        return done;
    };
    if files.start == 0 {
        let unread = listing.unread.iter().cloned();
        done.files.extend(unread.map(|(path, why)| Done {
            path,
            what: What::Unread(why),
        }));
    }
    let mut reader = Files::new(dir, listing, std::mem::take(buffer), &shared.halt);
    for number in files {
        if shared.halt.is_raised() {
            break;
        }
        let mut kept = Kept::new(request.want, &shared.sessions[session], done.weight);
        let searched = reader.search(number, request, &mut |line, place| {
            kept.take(&|| listing.path(number), line, place)
        });
        if let Some(what) = kept.what(Some(number), &mut done.weight) {
            done.files.push(Done {
                path: listing.path(number),
                what,
            });
        }
        if let Err(why) = searched {
            done.files.push(Done {
                path: listing.path(number),
                what: What::Unread(why),
            });
        }
    }
    *buffer = reader.into_buffer();
    done.source = done.has_too_many().then(|| Arc::clone(source));
    done
}

fn search_pack(shared: &Shared<'_>, request: &Request, session: &Session) -> BatchDone {
    let pack = match Pack::open(&shared.home.archive_of(&session.id)) {
        Ok(pack) => pack,
        Err(error) => return BatchDone::unread(error.to_string()),
    };
    let mut finds = Keeping::new(request.want, session);
    let searched = packed::search(
        &pack,
        request,
        &|_| true,
        &mut finds,
        &shared.halt,
        shared.context,
    );
    if let Err(error) = searched {
        finds.unread.push((PathBuf::new(), error.to_string()));
    }
    let mut done = BatchDone::empty();
    let unread = finds.unread.into_iter();
    done.files.extend(unread.map(|(path, why)| Done {
        path,
        what: What::Unread(why),
    }));
    let mut found: Vec<(PathBuf, Kept<'_>)> = finds.files.into_iter().collect();
    found.sort_by(|(one, _), (other, _)| natural::paths(one, other));
    for (path, kept) in found {
        if let Some(what) = kept.what(None, &mut done.weight) {
            done.files.push(Done { path, what });
        }
    }
    done.source = done
        .has_too_many()
        .then(|| Arc::new(Source::Pack(Box::new(pack))));
    done
}

impl BatchDone {
    fn empty() -> BatchDone {
        BatchDone {
            files: Vec::new(),
            source: None,
            weight: 0,
            tasks: 1,
        }
    }

    fn unread(why: String) -> BatchDone {
        let path = PathBuf::new();
        BatchDone {
            files: vec![Done {
                path,
                what: What::Unread(why),
            }],
            ..BatchDone::empty()
        }
    }

    fn has_too_many(&self) -> bool {
        let too_many = |done: &Done| matches!(done.what, What::TooMany(_));
        self.files.iter().any(too_many)
    }
}
