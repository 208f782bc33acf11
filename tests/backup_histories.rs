//! `wbhome backup` over weeks of anything that may happen to a home: what a store holds is compared, on every day, with
//! what a model says that it has to hold, and no more than that.
//!
//! The model knows contents, and neither packs nor stamps: what each session held on which night, which of them are gone
//! and on whose word, and what is promised of the former ones (docs/backup.md). Packs are read with the `zstd` and `tar`
//! of other people.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use support::cold::noise;
use support::{Place, Ran};
use wbhome::archive::{away, back};
use wbhome::backup::{LockedStore, Store, prune, run};
use wbhome::base::{Context, FixedClock, NoProgress, Stop};
use wbhome::home::{Home, Leases, LockedHome, SessionId, Trust};
use wbhome::migrate::{relink, rename};
use wbhome::sessions::{reconcile, remove, restore};

const KEEP: i64 = 5;
const KEEP_DELETED: i64 = 9;

/// A program that another test is about to start has the open locks of this process until it runs.
const WAIT: Duration = Duration::from_secs(10);

/// What the store takes in a night without room; a heavy file is larger.
const ROOM: u64 = 128 << 10;
const HEAVY: usize = 160 << 10;

// ---------------------------------------------------------------------------------------------------------------------
// What happens.

#[derive(Clone)]
struct History {
    sessions: usize,
    days: Vec<Day>,
}

#[derive(Clone, Debug)]
struct Day {
    time: Time,
    events: Vec<Event>,
    night: Night,
}

/// How the clock came to this day.
#[derive(Clone, Copy, Debug)]
enum Time {
    Later(i64),
    /// A day later, and from then on it is so many days off.
    Off(i64),
    /// A day later, and it is right again.
    Right,
    /// So, too, and the snapshots of the future are moved out of the store, as `prune` advises.
    RightAndMovedOut,
}

/// What happens to the home by day. The number is a session's, whatever it is called by then.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A turn more; a new session, if there is none of that number yet.
    Write(usize),
    /// Something that can not be compressed.
    Heavy(usize),
    /// `wbhome rm`.
    Remove(usize),
    /// Folder and archive are gone.
    Lose(usize),
    LoseFolder(usize),
    LoseMost,
    /// Back from where it is, the trash for example.
    Return(usize),
    ReturnAll,
    /// Everything in the folder is gone.
    Empty(usize),
    /// Some files are gone: those whose bit is set.
    Shrink(usize, u8),
    /// `wbhome mv`.
    Rename(usize),
    RenameByHand(usize),
    Archive(usize, Keep),
    Unarchive(usize, Keep),
    Accept(usize),
    /// What a run leaves that was killed: temporary files, packs that nothing names.
    Leftovers,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Keep {
    Nothing,
    Both,
}

/// What happens to the store by night.
#[derive(Clone, Copy, Debug)]
enum Night {
    Missed,
    Run,
    RunAndPrune,
    Prune,
    /// By a process that may write no file larger than [`ROOM`].
    WithoutRoom,
    /// Of some sessions a file can not be read.
    Unreadable(u8),
    KilledRun(&'static str),
    KilledPrune(&'static str),
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} sessions, numbered from 0", self.sessions)?;
        for (n, day) in self.days.iter().enumerate() {
            let Day {
                time,
                events,
                night,
            } = day;
            writeln!(f, "    {n:3}: {time:?}  {events:?}  {night:?}")?;
        }
        Ok(())
    }
}

/// Where a run is killed, and a prune.
const KILLED_RUNS: [&str; 5] = [
    "backup.pack",
    "backup.pack:2",
    "backup.copy",
    "backup.packed",
    "backup.snapshot",
];
const KILLED_PRUNES: [&str; 3] = ["prune.snapshot", "prune.pack", "prune.pack:2"];

fn history(longest: usize) -> impl Strategy<Value = History> {
    let days = proptest::collection::vec(day(), 1..=longest);
    (3usize..=6, days).prop_map(|(sessions, days)| History { sessions, days })
}

fn day() -> impl Strategy<Value = Day> {
    let time = prop_oneof![
        30 => Just(Time::Later(1)),
        4 => (2i64..8).prop_map(Time::Later),
        1 => (8i64..15).prop_map(Time::Later),
        1 => prop_oneof![-4i64..5, Just(365), Just(-365)].prop_map(Time::Off),
        1 => Just(Time::Right),
        2 => Just(Time::RightAndMovedOut),
    ];
    let keep = prop_oneof![Just(Keep::Nothing), Just(Keep::Both)];
    let n = 0usize..8;
    let event = prop_oneof![
        12 => n.clone().prop_map(Event::Write),
        1 => n.clone().prop_map(Event::Heavy),
        2 => n.clone().prop_map(Event::Remove),
        2 => n.clone().prop_map(Event::Lose),
        1 => n.clone().prop_map(Event::LoseFolder),
        1 => Just(Event::LoseMost),
        4 => n.clone().prop_map(Event::Return),
        2 => Just(Event::ReturnAll),
        1 => n.clone().prop_map(Event::Empty),
        3 => (n.clone(), any::<u8>()).prop_map(|(n, bits)| Event::Shrink(n, bits)),
        2 => n.clone().prop_map(Event::Rename),
        1 => n.clone().prop_map(Event::RenameByHand),
        2 => (n.clone(), keep.clone()).prop_map(|(n, keep)| Event::Archive(n, keep)),
        2 => (n.clone(), keep).prop_map(|(n, keep)| Event::Unarchive(n, keep)),
        4 => n.prop_map(Event::Accept),
        1 => Just(Event::Leftovers),
    ];
    let night = prop_oneof![
        40 => Just(Night::RunAndPrune),
        8 => Just(Night::Run),
        8 => Just(Night::Missed),
        3 => Just(Night::Prune),
        2 => Just(Night::WithoutRoom),
        3 => any::<u8>().prop_map(Night::Unreadable),
        1 => proptest::sample::select(&KILLED_RUNS[..]).prop_map(Night::KilledRun),
        1 => proptest::sample::select(&KILLED_PRUNES[..]).prop_map(Night::KilledPrune),
    ];
    (time, proptest::collection::vec(event, 0..4), night).prop_map(|(time, events, night)| Day {
        time,
        events,
        night,
    })
}

// ---------------------------------------------------------------------------------------------------------------------
// What has to be in the store.

/// The files of a session: length and digest of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Content(BTreeMap<String, (u64, String)>);

impl Content {
    fn turns(&self) -> BTreeSet<&str> {
        let names = self.0.keys().map(String::as_str);
        names
            .filter(|name| name.starts_with("context/turn_"))
            .collect()
    }

    fn bytes(&self) -> u64 {
        self.0.values().map(|(length, _)| length).sum()
    }

    fn is_heavy(&self) -> bool {
        self.bytes() > ROOM
    }

    /// Whether something was lost on the way from this to that: a turn, or more than half of its bytes.
    fn shrank_to(&self, now: &Content) -> bool {
        !self.turns().is_subset(&now.turns()) || now.bytes() * 2 < self.bytes()
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self
            .0
            .iter()
            .map(|(name, (length, digest))| format!("{name}:{length}:{}", &digest[..4]))
            .collect();
        write!(f, "[{}]", files.join(" "))
    }
}

/// A session of the home, as it is now.
#[derive(Clone, Debug)]
struct Here {
    folder: Option<Content>,
    archive: Option<Content>,
    identity: Option<String>,
    /// Not everything in its folder can be read: what `folder` holds is the rest.
    partial: bool,
}

impl Here {
    fn content(&self) -> &Content {
        self.folder.as_ref().or(self.archive.as_ref()).unwrap()
    }

    /// Only its folder can be partial.
    fn is_partial(&self) -> bool {
        self.partial && self.folder.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Present,
    Missing,
    /// Since the night on which it was seen first.
    Removed(Option<Timestamp>),
}

/// What a store has to hold of a session.
#[derive(Clone, Debug)]
struct Known {
    standing: Standing,
    newest: Content,
    /// Whether that is an archive.
    of_archive: bool,
    partial: bool,
    /// The last one that was whole, if the newest is not.
    complete: Option<Content>,
    /// What it held before it shrank.
    larger: BTreeSet<Content>,
    identity: Option<String>,
}

impl Known {
    fn last_whole(&self) -> Option<&Content> {
        match self.partial {
            true => self.complete.as_ref(),
            false => Some(&self.newest),
        }
    }
}

type Sessions = BTreeMap<String, Known>;

#[derive(Default)]
struct Model {
    /// What each snapshot that is kept has to give back.
    snapshots: BTreeMap<Timestamp, Sessions>,
}

fn days(n: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * n)
}

impl Model {
    fn newest(&self) -> Option<Timestamp> {
        self.snapshots.keys().next_back().copied()
    }

    fn last(&self) -> Sessions {
        self.snapshots
            .values()
            .next_back()
            .cloned()
            .unwrap_or_default()
    }

    /// The moment of the next snapshot: snapshots follow each other, whatever the clock says.
    fn next(&self, clock: Timestamp) -> Timestamp {
        match self.newest() {
            Some(newest) if newest >= clock => newest + SignedDuration::from_secs(1),
            _ => clock,
        }
    }

    fn is_behind(&self, clock: Timestamp) -> bool {
        self.newest()
            .is_some_and(|newest| newest.duration_since(clock) > SignedDuration::from_secs(60))
    }

    /// New names of sessions that are gone.
    fn renamed<'h>(
        &self,
        home: &'h BTreeMap<String, Here>,
    ) -> BTreeMap<String, (&'h String, &'h Here)> {
        let last = self.last();
        let is_new = |id: &String| {
            last.get(id)
                .is_none_or(|known| known.standing != Standing::Present)
        };
        let mut found = BTreeMap::new();
        for (id, known) in last.iter().filter(|(id, _)| !home.contains_key(*id)) {
            let same =
                |(id, here): &(&String, &Here)| is_new(id) && here.identity == known.identity;
            if let (Some(_), Some(new)) = (&known.identity, home.iter().find(same)) {
                found.insert(id.clone(), new);
            }
        }
        found
    }

    /// More than half of the sessions are gone, and nobody said that they should be.
    fn is_half_gone(&self, home: &BTreeMap<String, Here>, tombstones: &BTreeSet<String>) -> bool {
        let (last, renamed) = (self.last(), self.renamed(home));
        let all: Vec<&String> = last
            .iter()
            .filter(|(_, known)| known.standing == Standing::Present)
            .map(|(id, _)| id)
            .filter(|id| !tombstones.contains(*id) && !renamed.contains_key(*id))
            .collect();
        all.iter().filter(|id| !home.contains_key(**id)).count() * 2 > all.len()
    }

    fn run(
        &mut self,
        at: Timestamp,
        home: &BTreeMap<String, Here>,
        tombstones: &BTreeSet<String>,
        without_room: bool,
    ) {
        let last = self.last();
        let renamed = self.renamed(home);
        let fits = |here: &Here, known: Option<&Known>| {
            let as_before = known.is_some_and(|known| known.newest == *here.content());
            !(without_room && here.content().is_heavy()) || as_before
        };
        let mut next = Sessions::new();
        for (id, here) in home {
            let former = last.get(id);
            // A folder for which there is no room leaves what stood for it; what is new has only its archive.
            let archive = Here {
                folder: None,
                ..here.clone()
            };
            let alone = archive.archive.is_some() && former.is_none_or(|former| former.of_archive);
            if fits(here, former) {
                next.insert(id.clone(), present(here, former));
            } else if alone && fits(&archive, former) {
                next.insert(id.clone(), present(&archive, former));
            } else if let Some(former) = former {
                let standing = Standing::Present;
                let former = former.clone();
                next.insert(id.clone(), Known { standing, ..former });
            }
        }
        for (id, known) in last.iter().filter(|(id, _)| !home.contains_key(*id)) {
            let by_word = tombstones.contains(id) || matches!(known.standing, Standing::Removed(_));
            let standing = match known.standing {
                Standing::Removed(Some(since)) => Standing::Removed(Some(since)),
                _ if by_word => Standing::Removed(Some(at)),
                _ => Standing::Missing,
            };
            let over = match standing {
                Standing::Removed(Some(since)) => at.duration_since(since) > days(KEEP_DELETED),
                _ => renamed.get(id).is_some_and(|(new, here)| {
                    // With everything in it, and in the store under its new name.
                    let whole = known
                        .last_whole()
                        .is_some_and(|last| !last.shrank_to(here.content()));
                    let in_store = fits(here, last.get(*new)) && !here.is_partial();
                    whole && in_store && known.larger.is_empty()
                }),
            };
            if !over {
                next.insert(
                    id.clone(),
                    Known {
                        standing,
                        ..known.clone()
                    },
                );
            }
        }
        self.snapshots.insert(at, next);
    }

    fn prune(&mut self, clock: Timestamp) {
        let moments: Vec<Timestamp> = self.snapshots.keys().copied().collect();
        for pair in moments.windows(2) {
            if clock.duration_since(pair[1]) > days(KEEP) {
                self.snapshots.remove(&pair[0]);
            }
        }
    }

    /// Whether there was something to accept.
    fn accept(&mut self, id: &str, there: bool) -> bool {
        let Some(mut newest) = self.snapshots.last_entry() else {
            return false;
        };
        let Some(known) = newest.get_mut().get_mut(id) else {
            return false;
        };
        let gone = !there && !matches!(known.standing, Standing::Removed(_));
        if !gone && known.larger.is_empty() {
            return false;
        }
        known.larger.clear();
        if gone {
            known.standing = Standing::Removed(None);
        }
        true
    }
}

fn present(here: &Here, former: Option<&Known>) -> Known {
    let newest = here.content().clone();
    let last = former.and_then(Known::last_whole).cloned();
    let mut larger = former
        .map(|former| former.larger.clone())
        .unwrap_or_default();
    if let (Some(last), Some(former), false) = (&last, former, here.is_partial())
        && (former.partial || former.newest != newest)
        && last.shrank_to(&newest)
    {
        larger.insert(last.clone());
    }
    Known {
        standing: Standing::Present,
        newest,
        of_archive: here.folder.is_none(),
        partial: here.is_partial(),
        complete: last.filter(|_| here.is_partial()),
        larger,
        identity: here.identity.clone(),
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The home and the store.

/// A session, whatever it is called by now.
#[derive(Clone, Default)]
struct Slot {
    name: String,
    turns: u32,
}

/// A file, and what tells it from another one of that name: inode, time and length.
type Lying = (PathBuf, u64, i64, i64, u64);

struct World {
    place: Place,
    home: Home,
    slots: Vec<Slot>,
    names: usize,
    /// The moment without what the clock is off.
    day: Timestamp,
    off: i64,
    /// No two things happen in the same second.
    second: i64,
    model: Model,
    /// Contents of packs and archives that were read already, by what tells one file from another.
    read: RefCell<HashMap<Lying, (Content, String)>>,
    leftovers: u64,
}

fn digest(bytes: &[u8]) -> (u64, String) {
    (bytes.len() as u64, blake3::hash(bytes).to_hex().to_string())
}

/// The files of a pack, as `tar --zstd` unpacks them.
fn unpacked(pack: &[u8]) -> Content {
    let tar = zstd::decode_all(pack).unwrap();
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let path = entry.path().unwrap().into_owned();
            let below: PathBuf = path.components().skip(1).collect();
            files.insert(below.to_str().unwrap().to_owned(), digest(&bytes));
        }
    }
    Content(files)
}

fn of_folder(folder: &Path) -> Content {
    let files = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(Result::unwrap);
    let files = files
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let below = entry.path().strip_prefix(folder).unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            (below.to_str().unwrap().to_owned(), digest(&bytes))
        });
    Content(files.collect())
}

impl World {
    fn new(sessions: usize) -> World {
        let place = Place::with_home();
        let settings = place.home().join("wbhome.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        let short = text
            .replace("keep = \"14d\"", &format!("keep = \"{KEEP}d\""))
            .replace(
                "keep_deleted = \"90d\"",
                &format!("keep_deleted = \"{KEEP_DELETED}d\""),
            );
        std::fs::write(&settings, short).unwrap();
        place.ok(["backup", "init", "cold", "-q"]);
        let home = Home::open(place.home(), Trust::Named).unwrap();
        let mut world = World {
            place,
            home,
            slots: vec![Slot::default(); 8],
            names: 0,
            day: "2024-06-01T03:00:00Z".parse().unwrap(),
            off: 0,
            second: 0,
            model: Model::default(),
            read: RefCell::default(),
            leftovers: 0,
        };
        for n in 0..sessions {
            world.begin(n);
            world.write(n);
        }
        world
    }

    fn clock(&self) -> Timestamp {
        self.day + days(self.off) + SignedDuration::from_secs(self.second)
    }

    fn with<T>(&self, act: impl FnOnce(&Context) -> T) -> T {
        let (clock, stop) = (FixedClock::new(self.clock()), Stop::new());
        act(&Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &stop,
        })
    }

    fn locked<T>(&self, act: impl FnOnce(&LockedHome, &Context) -> T) -> T {
        self.with(|ctx| {
            let locked = self.home.lock(WAIT, "test", ctx).unwrap();
            act(&locked, ctx)
        })
    }

    fn store<T>(&self, act: impl FnOnce(&LockedStore, &Context) -> T) -> T {
        self.with(|ctx| {
            let store = Store::open_of(&self.place.path("cold"), &self.home).unwrap();
            act(&store.lock(WAIT, "test", ctx).unwrap(), ctx)
        })
    }

    fn id(&self, n: usize) -> SessionId {
        SessionId::adopt(&self.slots[n].name).unwrap()
    }

    fn folder(&self, n: usize) -> PathBuf {
        self.home.sessions().join(&self.slots[n].name)
    }

    fn archive(&self, n: usize) -> PathBuf {
        let name = format!("{}.tar.zst", self.slots[n].name);
        self.home.archive().join(name)
    }

    /// Where a session lies that was lost.
    fn lost(&self, n: usize) -> PathBuf {
        self.place.path("lost").join(n.to_string())
    }

    fn is_named(&self, n: usize) -> bool {
        !self.slots[n].name.is_empty()
    }

    fn is_there(&self, n: usize) -> bool {
        self.is_named(n) && (self.folder(n).exists() || self.archive(n).exists())
    }

    fn fresh_name(&mut self, n: usize) -> String {
        self.names += 1;
        format!("202406{:02}_第{n}个_{}", self.names % 28 + 1, self.names)
    }

    fn index(&self) -> BTreeMap<String, Value> {
        let text = std::fs::read(self.home.index_file()).unwrap();
        let entries: Vec<Value> = serde_json::from_slice(&text).unwrap();
        let id = |entry: &Value| entry["id"].as_str().unwrap().to_owned();
        entries
            .into_iter()
            .map(|entry| (id(&entry), entry))
            .collect()
    }

    fn tombstones(&self) -> BTreeSet<String> {
        let index = self.index().into_iter();
        index
            .filter(|(_, entry)| entry["status"] == "removed")
            .map(|(id, _)| id)
            .collect()
    }

    // What happens by day.

    fn begin(&mut self, n: usize) {
        if !self.is_named(n) {
            self.slots[n].name = self.fresh_name(n);
        }
        let folder = self.folder(n);
        for part in ["context", "memory", "artifacts", "logs"] {
            std::fs::create_dir_all(folder.join(part)).unwrap();
        }
        let record = format!(
            "{{\"id\": {:?}, \"session_id\": \"identity-{n}\"}}\n",
            self.slots[n].name
        );
        std::fs::write(folder.join("session.json"), record).unwrap();
    }

    fn write(&mut self, n: usize) {
        self.slots[n].turns += 1;
        let turn = self.slots[n].turns;
        let context = self.folder(n).join("context");
        std::fs::create_dir_all(&context).unwrap();
        let text = format!("{{\"turn\": {turn}, \"text\": \"第 {turn} 轮\"}}\n")
            .repeat(turn as usize % 5 + 1);
        std::fs::write(context.join(format!("turn_{turn:03}.json")), text).unwrap();
    }

    fn act(&mut self, event: Event) {
        self.second += 1;
        match event {
            Event::Write(n) if self.folder(n).is_dir() && self.is_named(n) => self.write(n),
            // One that was lost or removed begins again under its name.
            Event::Write(n) if !self.is_there(n) => {
                self.begin(n);
                self.write(n);
            }
            Event::Heavy(n) if self.is_named(n) && self.folder(n).is_dir() => {
                self.slots[n].turns += 1;
                let bytes = noise(self.slots[n].turns as u64 * 8 + n as u64, HEAVY);
                let folder = self.folder(n).join("artifacts");
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("noise.bin"), bytes).unwrap();
            }
            Event::Remove(n) if self.is_named(n) => self.remove(n),
            Event::Lose(n) if self.is_there(n) => self.lose(n),
            Event::LoseFolder(n) if self.is_there(n) && self.folder(n).exists() => {
                std::fs::remove_dir_all(self.folder(n)).unwrap();
            }
            Event::LoseMost => {
                let there: Vec<usize> = (0..8).filter(|n| self.is_there(*n)).collect();
                for n in &there[there.len() / 3..] {
                    self.lose(*n);
                }
            }
            Event::Return(n) if self.is_named(n) && !self.is_there(n) => self.bring_back(n),
            Event::ReturnAll => {
                for n in 0..8 {
                    self.act(Event::Return(n));
                }
            }
            Event::Empty(n) if self.is_named(n) && self.folder(n).is_dir() => {
                std::fs::remove_dir_all(self.folder(n)).unwrap();
                std::fs::create_dir(self.folder(n)).unwrap();
            }
            Event::Shrink(n, bits) if self.is_named(n) && self.folder(n).is_dir() => {
                let files = of_folder(&self.folder(n)).0.into_keys().enumerate();
                for (_, file) in files.filter(|(at, _)| bits >> (at % 8) & 1 == 1) {
                    std::fs::remove_file(self.folder(n).join(file)).unwrap();
                }
            }
            Event::Rename(n) if self.is_there(n) => self.rename(n),
            Event::RenameByHand(n) if self.is_there(n) => {
                let before = (self.folder(n), self.archive(n));
                self.slots[n].name = self.fresh_name(n);
                for (from, to) in [(before.0, self.folder(n)), (before.1, self.archive(n))] {
                    if from.exists() {
                        std::fs::rename(from, to).unwrap();
                    }
                }
            }
            Event::Archive(n, keep) if self.is_named(n) && self.folder(n).is_dir() => {
                let request = away::Request {
                    which: away::Which::Named(vec![self.id(n)]),
                    keep: keep == Keep::Both,
                    force: true,
                    level: 1,
                };
                self.locked(|home, ctx| {
                    let plan = away::plan(home, &request, &[], &Leases::default(), ctx).unwrap();
                    away::apply(home, plan, &request, &|| Ok(Vec::new()), ctx).unwrap();
                });
            }
            Event::Unarchive(n, keep) if self.is_there(n) && self.archive(n).exists() => {
                let request = back::Request {
                    sessions: vec![self.id(n)],
                    keep: keep == Keep::Both,
                    force: true,
                };
                self.locked(|home, ctx| {
                    let plan = back::plan(home, &request, &Leases::default()).unwrap();
                    back::apply(home, plan, &request, ctx).unwrap();
                });
            }
            Event::Accept(n) if self.is_named(n) => {
                let (id, there) = (self.id(n), self.is_there(n));
                let ran = self.program(&[], &[], &["backup", "accept", "-q", id.as_str()]);
                ran.expect(match self.model.accept(id.as_str(), there) {
                    true => 0,
                    false => 1,
                });
            }
            Event::Leftovers => self.leave_something(),
            // There is nothing that it could happen to.
            _ => {}
        }
    }

    fn remove(&mut self, n: usize) {
        let ids = [self.id(n)];
        self.locked(|home, ctx| {
            if let Ok(plan) = remove::plan(home, &ids, &[], &Leases::default()) {
                remove::apply(home, plan, ctx).unwrap();
            }
        });
    }

    fn lose(&mut self, n: usize) {
        let lost = self.lost(n);
        let _ = std::fs::remove_dir_all(&lost);
        std::fs::create_dir_all(&lost).unwrap();
        for (from, to) in [(self.folder(n), "folder"), (self.archive(n), "archive")] {
            if from.exists() {
                std::fs::rename(from, lost.join(to)).unwrap();
            }
        }
    }

    fn bring_back(&mut self, n: usize) {
        let lost = self.lost(n);
        if lost.exists() {
            for (to, from) in [(self.folder(n), "folder"), (self.archive(n), "archive")] {
                if lost.join(from).exists() {
                    std::fs::rename(lost.join(from), to).unwrap();
                }
            }
            std::fs::remove_dir_all(&lost).unwrap();
            return;
        }
        let request = restore::Request {
            what: self.slots[n].name.clone(),
            force: false,
        };
        self.locked(|home, ctx| {
            if let Ok(plan) = restore::plan(home, &request, &[], &Leases::default(), ctx) {
                restore::apply(home, plan, ctx).unwrap();
            }
        });
    }

    fn rename(&mut self, n: usize) {
        self.reconcile();
        let from = self.id(n);
        let to = SessionId::adopt(&self.fresh_name(n)).unwrap();
        let request = relink::Request {
            old: self.home.session(&from),
            new: self.home.session(&to),
            sessions: Vec::new(),
            state: Vec::new(),
            fields_only: false,
            force: true,
            leases: Leases::default(),
            user_home: None,
        };
        self.locked(|home, ctx| {
            let plan = rename::plan(home, &from, &to, &request, ctx).unwrap();
            rename::apply(home, plan, ctx).unwrap();
        });
        self.slots[n].name = to.to_string();
    }

    fn leave_something(&mut self) {
        self.leftovers += 1;
        let cold = self.place.path("cold");
        let seed = self.leftovers;
        for file in [
            format!(
                "packs/sessions/of-nobody/202305{:02}T030000Z.tar.zst",
                seed % 28 + 1
            ),
            format!("packs/home/.wbhome-tmp-{seed:016x}"),
            format!("snapshots/.wbhome-tmp-{seed:016x}"),
            format!("tmp/{seed}/half.sqlite"),
        ] {
            let file = cold.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, noise(seed, 100)).unwrap();
        }
    }

    fn reconcile(&self) {
        self.locked(|home, ctx| {
            let plan = reconcile::plan(home, false, ctx).unwrap();
            reconcile::apply(home, plan, ctx).unwrap();
        });
    }

    // What is there.

    fn read_pack(&self, path: &Path) -> (Content, String) {
        let meta = std::fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let key = (
            path.to_path_buf(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.len(),
        );
        let known = self.read.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let bytes = std::fs::read(path).unwrap();
            let read = (unpacked(&bytes), blake3::hash(&bytes).to_hex().to_string());
            self.read.borrow_mut().insert(key, read.clone());
            read
        })
    }

    fn look(&self) -> BTreeMap<String, Here> {
        let index = self.index();
        let mut found = BTreeMap::new();
        for n in (0..8).filter(|n| self.is_there(*n)) {
            let (folder, archive) = (self.folder(n), self.archive(n));
            let indexed = index
                .get(&self.slots[n].name)
                .map(|entry| &entry["session_id"]);
            let record = std::fs::read(folder.join("session.json")).ok();
            let record: Option<Value> = record.and_then(|text| serde_json::from_slice(&text).ok());
            let recorded = record.as_ref().map(|record| &record["session_id"]);
            let identity = [indexed, recorded]
                .into_iter()
                .flatten()
                .find_map(Value::as_str);
            let here = Here {
                folder: folder.is_dir().then(|| of_folder(&folder)),
                archive: archive.exists().then(|| self.read_pack(&archive).0),
                identity: identity.map(str::to_owned),
                partial: false,
            };
            found.insert(self.slots[n].name.clone(), here);
        }
        found
    }

    fn snapshots(&self) -> BTreeMap<Timestamp, Value> {
        let all = std::fs::read_dir(self.place.path("cold/snapshots")).unwrap();
        let mut found = BTreeMap::new();
        for file in all.map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|e| e == "json") {
                let snapshot: Value =
                    serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
                let at: Timestamp = snapshot["at"].as_str().unwrap().parse().unwrap();
                let name = format!("{}.json", at.strftime("%Y%m%dT%H%M%SZ"));
                assert_eq!(file.file_name().unwrap().to_str(), Some(&*name));
                found.insert(at, snapshot);
            }
        }
        found
    }

    // What happens by night.

    /// Runs the program at the moment that the clock says; its home and its store are where they usually are.
    fn program(&self, wrapper: &[&str], env: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = match wrapper {
            [] => Command::new(env!("CARGO_BIN_EXE_wbhome")),
            [first, more @ ..] => {
                let mut command = Command::new(first);
                command.args(more).arg(env!("CARGO_BIN_EXE_wbhome"));
                command
            }
        };
        command
            .args(args)
            .current_dir(self.place.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.place.user_home())
            .env("WBHOME_NOW", self.clock().to_string())
            .envs(env.iter().copied());
        Ran::of(command.output().unwrap())
    }

    fn night(&mut self, night: Night) {
        self.second += 1;
        let clock = self.clock();
        if matches!(night, Night::Missed) {
            return;
        }
        self.reconcile();
        let mut here = self.look();
        let tombstones = self.tombstones();
        let refused = self.model.is_half_gone(&here, &tombstones);
        let at = self.model.next(clock);
        let before = self.picture();
        match night {
            Night::Missed => {}
            Night::Run | Night::RunAndPrune => {
                let done = self.backup();
                assert_eq!(done.is_err(), refused, "{done:?}");
                if let Ok(done) = done {
                    assert_eq!(done.snapshot, Some(at));
                    self.model.run(at, &here, &tombstones, false);
                }
            }
            Night::Prune => {}
            Night::WithoutRoom => {
                let script = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
                let ran = self.program(&["sh", "-c", script], &[], &["backup", "run", "--json"]);
                match refused {
                    true => drop(ran.expect(1)),
                    false => {
                        let done = ran.json();
                        let no_room = done["stores"][0]["no_room"].as_array().unwrap().len();
                        ran.expect(i32::from(no_room > 0));
                        if no_room > 0 && !self.model.is_behind(clock) {
                            self.model.prune(clock);
                        }
                        self.model.run(at, &here, &tombstones, true);
                    }
                }
            }
            Night::Unreadable(bits) => {
                let closed = self.close(bits, &mut here);
                let ran = self.program(unprivileged(), &[], &["backup", "run", "--json"]);
                for file in &closed {
                    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
                }
                match refused {
                    true => drop(ran.expect(1)),
                    false => {
                        // Also of what was not packed again because it was partial before, in the same way.
                        let partial = !closed.is_empty();
                        ran.expect(if partial { 3 } else { 0 });
                        self.model.run(at, &here, &tombstones, false);
                    }
                }
            }
            Night::KilledRun(point) => {
                let ran = self.program(
                    &[],
                    &[("WBHOME_FAILPOINT", point)],
                    &["backup", "run", "-q"],
                );
                // A run in which there was nothing of the kind to do ends as any other.
                match (ran.code, refused) {
                    (Some(0), false) => self.model.run(at, &here, &tombstones, false),
                    (Some(1), true) => {}
                    (None, false) if point == "backup.snapshot" => {
                        self.model.run(at, &here, &tombstones, false);
                    }
                    (None, false) => {}
                    _ => panic!("{ran:?}"),
                }
            }
            Night::KilledPrune(point) => {
                let behind = self.model.is_behind(clock);
                let ran = self.program(
                    &[],
                    &[("WBHOME_FAILPOINT", point)],
                    &["backup", "prune", "-q"],
                );
                match (ran.code, behind) {
                    (Some(0), false) => self.model.prune(clock),
                    (Some(1), true) => {}
                    (None, false) => {
                        // The oldest go first, and none that stays for longer.
                        let left: BTreeSet<Timestamp> = self.snapshots().into_keys().collect();
                        let all: Vec<Timestamp> = self.model.snapshots.keys().copied().collect();
                        let gone = all.len() - left.len();
                        let mut pruned = Model {
                            snapshots: self.model.snapshots.clone(),
                        };
                        pruned.prune(clock);
                        assert!(gone <= all.len() - pruned.snapshots.len());
                        assert_eq!(left, all[gone..].iter().copied().collect());
                        self.model.snapshots.retain(|at, _| left.contains(at));
                    }
                    _ => panic!("{ran:?}"),
                }
            }
        }
        if refused && !matches!(night, Night::Prune | Night::KilledPrune(_)) {
            assert_eq!(before, self.picture(), "a refused run changed something");
        }
        if matches!(night, Night::RunAndPrune | Night::Prune) {
            self.prune();
        }
        if matches!(night, Night::RunAndPrune) && !refused {
            // What a run that was killed has begun, too.
            let cold = self.place.path("cold");
            let mut others = self.picture();
            others.retain(|file| {
                let is_snapshot = file.extension().is_some_and(|e| e == "json");
                !file.starts_with(cold.join("packs")) && !is_snapshot
            });
            assert!(others.is_empty(), "left: {others:?}");
        }
    }

    fn backup(&self) -> wbhome::base::Result<run::Outcome> {
        let request = run::Request {
            keep: Duration::from_secs(86_400 * KEEP as u64),
            keep_deleted: Duration::from_secs(86_400 * KEEP_DELETED as u64),
            settings_every: Duration::ZERO,
            level: 1,
            commit: None,
            state: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            explain: false,
        };
        self.store(|store, ctx| {
            let plan = run::plan(&self.home, store, &request, ctx)?;
            let done = run::apply(&self.home, store, plan, &request, ctx)?;
            assert!(
                done.unread
                    .iter()
                    .all(|unread| unread.why.contains("denied")),
                "{done:?}"
            );
            assert!(done.lost.is_empty() && done.no_room.is_empty(), "{done:?}");
            Ok(done)
        })
    }

    fn prune(&mut self) {
        let clock = self.clock();
        let keep = prune::Keep {
            snapshots: Duration::from_secs(86_400 * KEEP as u64),
            deleted: Duration::from_secs(86_400 * KEEP_DELETED as u64),
        };
        let before = self.picture();
        let done =
            self.store(|store, ctx| prune::apply(store, prune::plan(store, keep, ctx)?, ctx));
        assert_eq!(done.is_err(), self.model.is_behind(clock), "{done:?}");
        if done.is_err() || self.model.snapshots.is_empty() {
            assert_eq!(
                before,
                self.picture(),
                "a prune that may do nothing did something"
            );
            return;
        }
        self.model.prune(clock);
        // Nothing is left that nothing needs.
        let named: BTreeSet<String> = self
            .snapshots()
            .values()
            .flat_map(support::cold::named)
            .collect();
        let there: BTreeSet<String> = self.place.packs().into_iter().collect();
        assert!(there.is_superset(&named), "{named:?} {there:?}");
        // But for a while what no snapshot has ever known.
        let folder = |file: &str| file.rsplit_once('/').unwrap().0.to_owned();
        let known: BTreeSet<String> = named.iter().map(|file| folder(file)).collect();
        for left in there.difference(&named) {
            let stamp = &left[folder(left).len() + 1..][..16];
            let made = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp).unwrap();
            let made = jiff::tz::TimeZone::UTC.to_timestamp(made).unwrap();
            let lately = clock.duration_since(made) <= days(KEEP_DELETED);
            assert!(lately && !known.contains(&folder(left)), "{left}");
        }
    }

    /// The files of the store.
    fn picture(&self) -> BTreeSet<PathBuf> {
        let files = walkdir::WalkDir::new(self.place.path("cold"))
            .into_iter()
            .map(Result::unwrap);
        let files = files.filter(|entry| entry.file_type().is_file());
        files
            .map(walkdir::DirEntry::into_path)
            .filter(|path| !path.ends_with("lock"))
            .collect()
    }

    /// Lets nobody read a file of some of the sessions.
    fn close(&self, bits: u8, here: &mut BTreeMap<String, Here>) -> Vec<PathBuf> {
        let mut closed = Vec::new();
        for n in (0..8).filter(|n| bits >> n & 1 == 1 && self.is_there(*n)) {
            let session = here.get_mut(&self.slots[n].name).unwrap();
            let Some(folder) = &mut session.folder else {
                continue;
            };
            let Some(file) = folder
                .0
                .keys()
                .nth(bits as usize / 8 % folder.0.len().max(1))
                .cloned()
            else {
                continue;
            };
            folder.0.remove(&file);
            session.partial = true;
            let path = self.folder(n).join(file);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
            closed.push(path);
        }
        closed
    }

    /// Compares everything that is in the store with the model.
    fn check(&self) {
        let there = self.snapshots();
        assert_eq!(
            there.keys().collect::<Vec<_>>(),
            self.model.snapshots.keys().collect::<Vec<_>>(),
            "the snapshots"
        );
        for (at, snapshot) in &there {
            for pack in packs(snapshot) {
                let path = self.place.path("cold").join(pack["file"].as_str().unwrap());
                let (_, digest) = self.read_pack(&path);
                assert_eq!(pack["blake3"].as_str(), Some(&*digest), "{pack}");
            }
            let of_session = |item: &&Value| item["kind"] == "session";
            let items = snapshot["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter(of_session);
            let items: BTreeMap<&str, &Value> = items
                .map(|item| (item["name"].as_str().unwrap(), item))
                .collect();
            let known = &self.model.snapshots[at];
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            assert_eq!(
                items.keys().copied().collect::<Vec<_>>(),
                names,
                "sessions of {at}"
            );
            for (id, known) in known {
                self.compare(&format!("{id} of {at}"), known, items[&**id]);
            }
        }
    }

    fn compare(&self, what: &str, known: &Known, item: &Value) {
        let content = |pack: &Value| {
            let path = self.place.path("cold").join(pack["file"].as_str().unwrap());
            self.read_pack(&path).0
        };
        let standing = match known.standing {
            Standing::Present => "present",
            Standing::Missing => "missing",
            Standing::Removed(_) => "removed",
        };
        assert_eq!(item["standing"], standing, "{what}");
        let newest = content(&item["newest"]);
        assert!(
            newest == known.newest,
            "{what}: {newest}\nand not {}",
            known.newest
        );
        let shown = |all: &BTreeSet<Content>| {
            let all: Vec<String> = all.iter().map(Content::to_string).collect();
            all.join(" ")
        };
        let complete = (!item["complete"].is_null()).then(|| content(&item["complete"]));
        let [complete, expected]: [BTreeSet<Content>; 2] =
            [complete, known.complete.clone()].map(|one| one.into_iter().collect());
        assert!(
            complete == expected,
            "{what}: the last whole one is {}\nand not {}",
            shown(&complete),
            shown(&expected)
        );
        let kept = item["kept"].as_array().into_iter().flatten();
        let kept: BTreeSet<Content> = kept.map(|kept| content(&kept["pack"])).collect();
        assert!(
            kept == known.larger,
            "{what}: kept is {}\nand not {}",
            shown(&kept),
            shown(&known.larger)
        );
    }
}

/// Everything that says which pack it is.
fn packs(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) if fields.contains_key("blake3") && fields.contains_key("form") => {
            vec![value]
        }
        Value::Object(fields) => fields.values().flat_map(packs).collect(),
        Value::Array(values) => values.iter().flat_map(packs).collect(),
        _ => Vec::new(),
    }
}

/// Root reads everything, unless it gives that up.
fn unprivileged() -> &'static [&'static str] {
    const GIVEN_UP: &str = "-dac_override,-dac_read_search";
    match rustix::process::geteuid().is_root() {
        true => &[
            "setpriv",
            "--bounding-set",
            GIVEN_UP,
            "--inh-caps",
            GIVEN_UP,
        ],
        false => &[],
    }
}

fn can_be_unreadable() -> bool {
    !rustix::process::geteuid().is_root() || support::has_tool("setpriv")
}

fn live(history: &History) {
    let mut world = World::new(history.sessions);
    let can_be_unreadable = can_be_unreadable();
    for (n, day) in history.days.iter().enumerate() {
        world.second = 0;
        world.day += match day.time {
            Time::Later(n) => days(n),
            _ => days(1),
        };
        match day.time {
            Time::Later(_) => {}
            Time::Off(off) => world.off = off,
            Time::Right => world.off = 0,
            Time::RightAndMovedOut => {
                world.off = 0;
                let clock = world.clock();
                for at in world.snapshots().into_keys().filter(|at| *at > clock) {
                    let name = format!("cold/snapshots/{}.json", at.strftime("%Y%m%dT%H%M%SZ"));
                    std::fs::remove_file(world.place.path(name)).unwrap();
                }
                world.model.snapshots.retain(|at, _| *at <= clock);
            }
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for event in &day.events {
                world.act(*event);
            }
            match day.night {
                Night::Unreadable(_) if !can_be_unreadable => world.night(Night::Run),
                Night::KilledRun(_) if !cfg!(feature = "failpoints") => world.night(Night::Run),
                Night::KilledPrune(_) if !cfg!(feature = "failpoints") => world.night(Night::Prune),
                night => world.night(night),
            }
            world.check();
        }));
        if let Err(panic) = result {
            panic!("on day {n}: {}", said(&*panic));
        }
    }
    // With the tools that everybody has.
    if let (true, Some((_, newest))) = (support::has_tool("zstd"), world.snapshots().pop_last())
        && let Some((id, known)) = world.model.last().pop_first()
    {
        let item = support::cold::item(&newest, &id).unwrap();
        let top = world.place.unpack(item["newest"]["file"].as_str().unwrap());
        assert!(of_folder(&top) == known.newest, "{id}");
    }
}

thread_local! {
    /// Whether panics of this thread are told by whoever has caught them.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Hundreds of panics while a failing history is made shorter would bury what it comes to.
fn tell_no_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                usual(panic);
            }
        }));
    });
}

/// Many histories, the same ones each time.
fn live_through(cases: u32, seed: u64, longest: usize) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 600,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    tell_no_caught_panics();
    CAUGHT.set(true);
    let done = runner.run(&history(longest), |history| {
        let lived = std::panic::catch_unwind(|| live(&history));
        lived.map_err(|panic| TestCaseError::fail(said(&*panic)))
    });
    CAUGHT.set(false);
    if let Err(error) = done {
        panic!("seed {seed}: {error}");
    }
}

/// What a panic has said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_default()
}

#[test]
fn a_store_holds_what_it_has_to_and_no_more() {
    live_through(4, 7, 50);
}

/// `WBHOME_HISTORIES` says how many, and `WBHOME_SEED` which.
#[test]
#[ignore = "takes minutes"]
fn a_store_holds_what_it_has_to_over_thousands_of_days() {
    let number = |name: &str, usual| {
        let set = std::env::var(name).ok();
        set.and_then(|set| set.parse().ok()).unwrap_or(usual)
    };
    let (cases, seed) = (number("WBHOME_HISTORIES", 100), number("WBHOME_SEED", 1));
    live_through(cases as u32, seed, 80);
}

// ---------------------------------------------------------------------------------------------------------------------
// Histories that were not lived through once.

/// Three sessions, and what happened to them.
fn lived(days: impl IntoIterator<Item = (Time, Vec<Event>, Night)>) {
    let days = days.into_iter().map(|(time, events, night)| Day {
        time,
        events,
        night,
    });
    live(&History {
        sessions: 3,
        days: days.collect(),
    });
}

const NEXT: Time = Time::Later(1);

#[test]
fn what_a_killed_run_has_begun_goes() {
    lived([(NEXT, vec![Event::Leftovers], Night::RunAndPrune)]);
}

#[test]
fn an_accepted_loss_is_kept_from_the_word_on() {
    lived([
        (NEXT, vec![], Night::RunAndPrune),
        (NEXT, vec![Event::Lose(0)], Night::Missed),
        (Time::Later(7), vec![Event::Accept(0)], Night::Missed),
        (Time::Later(3), vec![], Night::RunAndPrune),
        (Time::Later(8), vec![], Night::RunAndPrune),
        (Time::Later(2), vec![], Night::RunAndPrune),
    ]);
}

#[test]
fn a_folder_that_is_lost_is_not_made_up_for_by_an_older_archive() {
    let both = Event::Archive(0, Keep::Both);
    lived([
        (NEXT, vec![both], Night::RunAndPrune),
        (NEXT, vec![Event::Write(0)], Night::RunAndPrune),
        (NEXT, vec![Event::LoseFolder(0)], Night::RunAndPrune),
        (Time::Later(7), vec![], Night::RunAndPrune),
        (NEXT, vec![Event::Accept(0)], Night::RunAndPrune),
    ]);
}

#[test]
fn a_renamed_folder_that_can_not_be_read_is_not_made_up_for_by_its_archive() {
    let all = |event: fn(usize) -> Event| (0..3).map(event).collect();
    lived([
        (
            NEXT,
            all(|n| Event::Archive(n, Keep::Both)),
            Night::RunAndPrune,
        ),
        (NEXT, all(Event::RenameByHand), Night::Unreadable(0b111)),
        (Time::Later(7), vec![], Night::RunAndPrune),
    ]);
}

#[test]
fn without_a_snapshot_no_pack_goes() {
    lived([
        (Time::Off(365), vec![], Night::Run),
        (Time::RightAndMovedOut, vec![], Night::Prune),
        (NEXT, vec![], Night::RunAndPrune),
    ]);
}

#[test]
fn a_turn_that_can_not_be_read_for_a_night_is_not_lost() {
    lived([
        (NEXT, vec![Event::Write(0)], Night::RunAndPrune),
        (NEXT, vec![], Night::Unreadable(1)),
        (NEXT, vec![], Night::RunAndPrune),
    ]);
}
