//! A night: what has changed since the last snapshot is packed, and a new snapshot names everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::carry::{self, Found, Now};
use super::retention::is_older;
use super::things::{self, Looked, Source};
use super::{Form, Item, PackRef, Place, Snapshot, Standing, StatePart, Store};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result, Total, human, stamp};
use crate::disk::Dir;
use crate::home::{Entry, Home, Index, Status, identity_of};

/// What is packed up to this size is packed beside others; what is larger, with all cores for itself.
pub(super) const SMALL: u64 = 8 << 20;

pub use super::night::apply;

/// What a person has set.
#[derive(Clone, Debug)]
pub struct Request {
    /// `[backup] keep`, for what has to go when there is no room.
    pub keep: Duration,
    /// `[backup] keep_deleted`.
    pub keep_deleted: Duration,
    /// `[backup] settings_every`.
    pub settings_every: Duration,
    /// Compression, 1 to 19.
    pub level: i32,
    /// The newest commit of the home's history.
    pub commit: Option<String>,
    /// The agent application's own folders that are saved.
    pub state: Vec<PathBuf>,
    /// `[state] include`.
    pub include: Vec<String>,
    /// `[state] exclude`.
    pub exclude: Vec<String>,
    /// Whether the plan names the first file that has changed.
    pub explain: bool,
}

/// Why something is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The store does not know it.
    New,
    /// It has changed since it was packed.
    Changed,
    /// It was being changed while it was packed last.
    Restless,
    /// Some of it could not be read then, and can be now.
    Unread,
    /// Its pack is not in the store any more.
    Lost,
}

/// Something that is to be packed.
#[derive(Serialize)]
pub struct Todo {
    /// What.
    pub what: String,
    /// How.
    pub form: Form,
    /// Why.
    pub why: Why,
    /// The first file that has changed, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How many more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    #[serde(skip)]
    pub(super) source: Source,
}

impl std::fmt::Debug for Todo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.what, self.why)
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Of which thing.
    pub what: String,
    /// What, below it.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

/// Something that is not there, and whose last pack is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gone {
    /// What.
    pub what: String,
    /// Since which snapshot.
    pub since: Timestamp,
    /// Whether this run is the first that misses it.
    pub new: bool,
}

/// Something that holds less than it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shrunken {
    /// What.
    pub what: String,
    /// In which way.
    pub why: String,
    /// Since which snapshot.
    pub since: Timestamp,
    /// The former pack, which is kept.
    pub pack: String,
}

/// What a run is going to do.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The store.
    pub store: WirePath,
    /// The moment of the new snapshot.
    pub at: Timestamp,
    /// What the clock says, where that is behind the newest snapshot.
    pub clock: Option<Timestamp>,
    /// The snapshot before.
    pub after: Option<Timestamp>,
    /// What will be packed.
    pub packs: Vec<Todo>,
    /// How many things are as they were.
    pub unchanged: u64,
    /// Settings of the agent application that have changed, and are not due yet.
    pub waiting: Vec<String>,
    /// What can not be read at all.
    pub unread: Vec<Unread>,
    /// Whatever else a person should know.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(super) former: Option<Snapshot>,
    #[serde(skip)]
    pub(super) found: BTreeMap<Place, Found>,
    #[serde(skip)]
    pub(super) removed: BTreeMap<String, Option<Timestamp>>,
}

/// What was packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packed {
    /// What.
    pub what: String,
    /// How.
    pub form: Form,
    /// Why.
    pub why: Why,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The length of the pack.
    pub packed: u64,
    /// How many of the files were being changed meanwhile.
    pub restless: u64,
}

/// What was done.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The store.
    pub store: WirePath,
    /// The snapshot; `None` when there is none.
    pub snapshot: Option<Timestamp>,
    /// What the clock says, where that is behind the newest snapshot.
    pub clock: Option<Timestamp>,
    /// What was packed.
    pub packed: Vec<Packed>,
    /// How many things are as they were.
    pub unchanged: u64,
    /// Settings of the agent application that have changed, and are not due yet.
    pub waiting: Vec<String>,
    /// What could not be read; what the packs do not hold because of that.
    pub unread: Vec<Unread>,
    /// What holds less than it did.
    pub shrunken: Vec<Shrunken>,
    /// What is not there.
    pub missing: Vec<Gone>,
    /// What was removed on purpose, and is kept for a while.
    pub removed: Vec<Gone>,
    /// What the snapshots before held, whose pack is not in the store any more, or not as long as it was written.
    pub lost: Vec<String>,
    /// What was not packed, because there is no room.
    pub no_room: Vec<String>,
    /// Superfluous packs that were let go of to make room.
    pub let_go: u64,
    /// Whatever else a person should know.
    pub notes: Vec<String>,
}

impl Outcome {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        if !self.no_room.is_empty() {
            Exit::Failed
        } else if !self.unread.is_empty() || !self.lost.is_empty() {
            Exit::Partial
        } else {
            Exit::Done
        }
    }
}

/// Looks at the home beside the newest snapshot of the store.
///
/// # Errors
/// A home that is half gone, a store whose snapshots can not be read, and interruption.
pub fn plan(home: &Home, store: &Store, request: &Request, context: &Context) -> Result<Plan> {
    let root = home.dir()?;
    let (mut notes, mut unread) = (Vec::new(), Vec::new());
    let former = newest(store, &mut unread)?;
    let (at, clock) = moment(store, context)?;
    let mut sources = things::things(home, &root)?;
    if let Some(why) = super::of_state::not_kept(request, store) {
        notes.push(why);
    } else {
        super::of_state::add(&mut sources, request, &mut unread, context)?;
    }
    context.progress.stage(
        "looking",
        Total {
            items: sources.len() as u64,
            bytes: 0,
        },
    );
    let looked: Vec<Result<Looked>> = sources
        .par_iter()
        .map(|source| {
            context.stop.check()?;
            let looked = source.look(&root, context);
            context.progress.advance(1, 0);
            Ok(looked)
        })
        .collect::<Result<_>>()?;
    context.progress.finish();
    let index = Index::read(home).map_err(|error| {
        notes.push(format!(
            "the index can not be read, so nobody knows what was removed on purpose: {error}"
        ));
    });
    let index = index.ok();
    let mut plan = Plan {
        store: store.path().to_path_buf().into(),
        at,
        clock,
        after: former.as_ref().map(|former| former.at),
        packs: Vec::new(),
        unchanged: 0,
        waiting: Vec::new(),
        unread,
        notes,
        former,
        found: BTreeMap::new(),
        removed: index.as_ref().map(removed).unwrap_or_default(),
    };
    let look = Looking {
        home,
        root: &root,
        store,
        index: index.as_ref(),
        request,
        context,
    };
    for (source, looked) in sources.into_iter().zip(looked) {
        look.decide(&mut plan, source, looked)?;
    }
    plan.refuse_half_gone()?;
    Ok(plan)
}

/// The newest snapshot that can be read.
fn newest(store: &Store, unread: &mut Vec<Unread>) -> Result<Option<Snapshot>> {
    for at in store.snapshots()?.into_iter().rev() {
        match store.snapshot(at) {
            Ok(snapshot) => return Ok(Some(snapshot)),
            Err(error) if error.kind() == crate::base::Kind::Newer => return Err(error),
            Err(error) => unread.push(Unread {
                what: "a snapshot of the store".to_owned(),
                path: PathBuf::default().into(),
                why: format!("{error}; the one before it is gone by"),
            }),
        }
    }
    Ok(None)
}

/// The moment of the next snapshot: now, and in any case later than the newest.
fn moment(store: &Store, context: &Context) -> Result<(Timestamp, Option<Timestamp>)> {
    let now = stamp::whole(context.clock.now());
    let Some(newest) = store.snapshots()?.pop() else {
        return Ok((now, None));
    };
    if newest < now {
        return Ok((now, None));
    }
    let next = newest.checked_add(jiff::SignedDuration::from_secs(1));
    let next = next.map_err(|error| {
        Error::failed("the newest snapshot is at the end of time:")
            .at(store.snapshot_file(newest))
            .because(error)
    })?;
    // Two runs in one second are no wonder.
    let behind = next.duration_since(now) > jiff::SignedDuration::from_secs(60);
    Ok((next, behind.then_some(now)))
}

/// What was removed on purpose, and when, where the index says so.
fn removed(index: &Index) -> BTreeMap<String, Option<Timestamp>> {
    let removed = index
        .entries()
        .filter(|entry| entry.status() == Status::Removed);
    let at = |entry: &Entry| entry.text("removed_at")?.parse().ok();
    removed
        .map(|entry| (entry.id().to_owned(), at(entry)))
        .collect()
}

struct Looking<'a> {
    home: &'a Home,
    root: &'a Dir,
    store: &'a Store,
    index: Option<&'a Index>,
    request: &'a Request,
    context: &'a Context<'a>,
}

impl Looking<'_> {
    fn decide(&self, plan: &mut Plan, source: Source, looked: Result<Looked>) -> Result<()> {
        let place = source.place.clone();
        let form = source.form();
        let item = plan.former.as_ref().and_then(|former| former.item(&place));
        let before = item.and_then(|item| item.in_form(form)).cloned();
        let found = plan
            .found
            .entry(place.clone())
            .or_insert_with(|| self.found(&place));
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => {
                found.failed = true;
                plan.unread.push(unread(&place, &error));
                return Ok(());
            }
        };
        let why = self.why(before.as_ref(), &looked, &source);
        let waits = before.as_ref().is_some_and(|before| {
            let changed = matches!(why, Some(Why::Changed | Why::Restless | Why::Unread));
            changed && self.is_not_due(&place, before)
        });
        if waits {
            plan.waiting.push(place.shown());
        }
        match (why.filter(|_| !waits), before) {
            (None, Some(before)) => {
                found.take(before);
                plan.unchanged += u64::from(!waits);
            }
            (why, before) => {
                let (first, more) = match before.filter(|_| self.request.explain) {
                    Some(before) => self.explain(&source, &before)?,
                    None => (None, None),
                };
                plan.packs.push(Todo {
                    what: place.shown(),
                    form,
                    why: why.unwrap_or(Why::New),
                    first,
                    more,
                    files: looked.files,
                    bytes: looked.bytes,
                    source,
                });
            }
        }
        Ok(())
    }

    /// What has changed, if that can be told: a pack in the store may be damaged, and then it is packed all the same.
    fn explain(&self, source: &Source, before: &PackRef) -> Result<(Option<String>, Option<u64>)> {
        let Ok(pack) = self.store.pack(before) else {
            return Ok((None, None));
        };
        let differs = source.differs(self.root, &pack, self.context)?;
        Ok(differs.unzip())
    }

    /// Settings are packed once in a while.
    fn is_not_due(&self, place: &Place, before: &PackRef) -> bool {
        let is_settings = matches!(place, Place::State(StatePart::Settings, _));
        let now = self.context.clock.now();
        // A clock that was ahead says nothing of how long ago that was.
        let ahead = before.at > now;
        is_settings && !ahead && !is_older(before.at, now, self.request.settings_every)
    }

    fn found(&self, place: &Place) -> Found {
        let Place::Session(id) = place else {
            return Found::default();
        };
        let entry = self.index.and_then(|index| index.find(id.as_str()));
        Found {
            session_id: identity_of(self.home, self.index, id),
            entry: entry.map(|entry| entry.fields().clone()),
            ..Found::default()
        }
    }

    fn why(&self, before: Option<&PackRef>, looked: &Looked, source: &Source) -> Option<Why> {
        let Some(before) = before else {
            return Some(Why::New);
        };
        if !self.store.has(before) {
            return Some(Why::Lost);
        }
        match (&before.seen, &looked.seen) {
            (None, _) => Some(Why::Restless),
            (Some(before), Some(now)) if before == now => None,
            _ => Some(Why::Changed),
        }
        .or_else(|| {
            // A damaged archive is no better until it is another file.
            let could = !before.is_complete()
                && before.form == Form::Packed
                && source
                    .open(self.root)
                    .is_ok_and(|dir| things::can_be_read_now(before, &dir));
            could.then_some(Why::Unread)
        })
    }
}

pub(super) fn unread(place: &Place, error: &Error) -> Unread {
    Unread {
        what: place.shown(),
        path: error.path().map(PathBuf::from).unwrap_or_default().into(),
        why: error.to_string(),
    }
}

impl Found {
    /// Takes a pack for what is there.
    pub(super) fn take(&mut self, pack: PackRef) {
        match pack.form {
            Form::Packed => self.folder = Some(pack),
            Form::Archive => self.archive = Some(pack),
        }
    }
}

impl Plan {
    /// What is known of what is not there.
    pub(super) fn now<'a>(&'a self, request: &Request, renamed: &'a BTreeSet<Place>) -> Now<'a> {
        Now {
            at: self.at,
            keep_deleted: request.keep_deleted,
            removed: &self.removed,
            renamed,
        }
    }

    /// Sessions that are gone, and whose identity a session has that was not there before.
    pub(super) fn renamings(&self) -> Vec<(&Item, &Place)> {
        let Some(former) = &self.former else {
            return Vec::new();
        };
        let mut new: BTreeMap<&str, &Place> = BTreeMap::new();
        for (place, found) in &self.found {
            let known = former
                .item(place)
                .is_some_and(|item| item.standing == Standing::Present);
            if let (Some(id), false) = (&found.session_id, known) {
                new.insert(id, place);
            }
        }
        let gone = former
            .items
            .iter()
            .filter(|item| !self.found.contains_key(&item.place));
        gone.filter_map(|item| Some((item, *new.get(item.session_id.as_deref()?)?)))
            .collect()
    }

    /// When most of the sessions are gone at once, it is their folder that is.
    fn refuse_half_gone(&self) -> Result<()> {
        let Some(former) = &self.former else {
            return Ok(());
        };
        let there: BTreeSet<Place> = self.found.keys().cloned().collect();
        let renamed = self
            .renamings()
            .into_iter()
            .map(|(item, _)| item.place.clone())
            .collect();
        let now = Now {
            at: self.at,
            keep_deleted: Duration::MAX,
            removed: &self.removed,
            renamed: &renamed,
        };
        let Some((gone, all)) = carry::half_gone(former, &there, &now) else {
            return Ok(());
        };
        let named: Vec<String> = gone.iter().take(3).map(Place::shown).collect();
        let more = match gone.len() - named.len() {
            0 => String::new(),
            more => format!(" and {} more", human::count(more as u64)),
        };
        Err(Error::failed(format!(
            "{} of the {} sessions of the last snapshot are not in the home any more, and were not removed with `wbhome rm`: {}{more}; nothing was backed up",
            human::count(gone.len() as u64),
            human::count(all as u64),
            named.join(", "),
        ))
        .hint("if their folder lies on another disk, mount it; their packs are kept in the store")
        .hint("if they are gone for good: `wbhome backup accept SESSION…`"))
    }
}
