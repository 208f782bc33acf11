//! `wbhome drill`: a whole home is rebuilt from the newest snapshot and the repository, in a scratch folder; opened as the
//! program would open it; and compared with the live home. What that tells is the report.
//!
//! Nothing but the scratch folder and the report is written. The lock of the home is not held: it may take an hour, and
//! changes nothing.

mod blind;
mod compare;
mod opened;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

pub use report::{
    BlindSpot, Command, Data, Lost, OfKind, Report, Repository as Used, Then, Wrong, last_drill,
};

use super::rebuild;
use crate::backup::agent_state::{self, Portion};
use crate::backup::init::on_one_disk;
use crate::backup::{Snapshot, Source, Store};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::{self, Dir, Entry, TEMPORARY_PREFIX};
use crate::history::{Repository, Surviving};
use crate::home::{Home, Scratch, Trust};
use crate::state::Saved;
use compare::{Comparison, Side, Thing, data_of_place, thing_of_home};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The stores; one with the newest snapshot is taken, on another disk than the home if one of that night is.
    pub stores: Vec<PathBuf>,
    /// A folder, new or empty, in which the rebuilt home is left.
    pub keep: Option<PathBuf>,
    /// The agent application's own folders that are saved.
    pub state: Vec<PathBuf>,
    /// Those that there are and that nobody has asked to save.
    pub unsaved_state: Vec<PathBuf>,
    /// `[state] include`.
    pub include: Vec<String>,
    /// `[state] exclude`.
    pub exclude: Vec<String>,
    /// The user's own folder: what `~` means in references.
    pub user_home: Option<PathBuf>,
}

/// What would be rehearsed.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The home.
    pub home: ExactPath,
    /// The store that is taken.
    pub store: ExactPath,
    /// Its newest snapshot.
    pub snapshot: Timestamp,
    /// The repository, if there is one.
    pub repository: Option<ExactPath>,
    /// Whether `[drill] command` is run.
    pub runs_command: bool,
    /// How much room it takes.
    pub needs: u64,
    /// How much room there is.
    pub room: u64,
    /// What else a person should know.
    pub warnings: Vec<String>,
}

/// The folders below the one that is built in.
const HOME: &str = "home";
const STATE: &str = "state";
const CHECKED: &str = "checked";

/// What of `.wbhome/` belongs to this place and moment, and is not in a snapshot. And the records of drills and nights: each
/// would make the next say that something is newer.
const OWN: [&str; 7] = [
    "lock",
    "journal",
    "tmp",
    "trash",
    "cache.json",
    "drills",
    "runs",
];

/// What a drill would do.
///
/// # Errors
/// No store that can be used, no room, a folder to keep it in that is not empty.
pub fn plan(home: &Home, request: &Request, context: &Context) -> Result<Plan> {
    if let Some(keep) = &request.keep {
        refuse_keep(home, keep)?;
    }
    let (store, warnings) = chosen(home, &request.stores, context)?;
    let repository = repository_of(home).ok().flatten();
    let below = match &request.keep {
        Some(keep) => keep.clone(),
        None => home.tmp(),
    };
    let rebuild = rebuild::plan(
        &rebuilding(&store, repository.as_ref(), &below.join("drill")),
        context,
    )?;
    Ok(Plan {
        home: home.root().to_path_buf().into(),
        store: store.into(),
        snapshot: rebuild.snapshot,
        repository: repository.map(|repository| repository.dir().to_path_buf().into()),
        runs_command: crate::home::Config::load(home)?
            .drill
            .command
            .is_some_and(|command| command.of(home).is_some()),
        needs: rebuild.needs,
        room: rebuild.room,
        warnings,
    })
}

fn rebuilding(store: &Path, repository: Option<&Repository>, to: &Path) -> rebuild::Request {
    rebuild::Request {
        store: store.to_path_buf(),
        to: to.join(HOME),
        only_state: false,
        at: None,
        git: repository.map(|repository| repository.dir().to_path_buf()),
        state_to: Some(to.join(STATE)),
        force: false,
        rehearsal: true,
    }
}

/// A folder that shall be left must be there for this alone.
fn refuse_keep(home: &Home, keep: &Path) -> Result<()> {
    let inside = disk::is_inside(keep, home.root());
    if inside.map_err(|e| Error::io("can not look at", keep, e))? {
        return Err(Error::failed("the folder lies inside the home:")
            .at(keep)
            .hint("--keep names a folder outside of it"));
    }
    if disk::exists(keep) && (!disk::is_folder(keep) || !disk::read_dir_names(keep)?.is_empty()) {
        return Err(
            Error::failed("the folder is there already, and not an empty folder:")
                .at(keep)
                .hint("--keep names a folder that is new or empty"),
        );
    }
    Ok(())
}

/// Snapshots that are no further apart than so many seconds are of one night.
const NIGHT: i64 = 12 * 3600;

/// A store that can be used.
struct Usable<'s> {
    /// Its newest snapshot.
    at: Timestamp,
    path: &'s Path,
    /// Whether it survives the disk of the home.
    apart: bool,
}

/// The store with the newest snapshot, and of those that have one of that night the one that does not die with the home's
/// disk; what a person should know of it, and why others can not be used.
fn chosen(home: &Home, stores: &[PathBuf], context: &Context) -> Result<(PathBuf, Vec<String>)> {
    let mut usable = Vec::new();
    let (mut warnings, mut failed) = (Vec::new(), None);
    for path in stores {
        let at = Store::open_of(path, home)
            .and_then(|store| Ok(Source::of(&store, None, context)?.snapshot().at));
        match at {
            Ok(at) => usable.push(Usable {
                at,
                path,
                apart: !on_one_disk(home.root(), path),
            }),
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => {
                warnings.push(error.to_string());
                failed.get_or_insert(error);
            }
        }
    }
    let newest = usable.iter().map(|store| store.at).max();
    let of_the_night = |store: &&Usable| {
        newest.is_some_and(|newest| newest.duration_since(store.at).as_secs() < NIGHT)
    };
    // Of equal ones the first in the settings.
    let last_nights = usable.iter().rev().filter(of_the_night);
    let Some(chosen) = last_nights.max_by_key(|store| (store.apart, store.at)) else {
        return Err(failed.unwrap_or_else(|| Error::failed("no backup store was named")));
    };
    if !chosen.apart {
        let other = usable.iter().find(|store| store.apart);
        let other = other.map(|other| {
            let path = human::quoted(other.path);
            format!("; --store {path} rehearses one that does not")
        });
        warnings.push(format!(
            "the store lies on the same disk as the home, and goes with it: {}{}",
            human::path(chosen.path),
            other.unwrap_or_default()
        ));
    }
    Ok((chosen.path.to_path_buf(), warnings))
}

/// Where it is built: gone again when dropped, unless it is to be kept.
enum Ground {
    Scratch(Scratch),
    Kept(PathBuf),
}

impl Ground {
    fn path(&self) -> &Path {
        match self {
            Ground::Scratch(scratch) => scratch.path(),
            Ground::Kept(path) => path,
        }
    }
}

/// Rehearses it, and keeps the report in the home.
///
/// # Errors
/// A store or home that can not be read at all, no room, and interruption: then nothing is left of it.
pub fn apply(home: &Home, plan: Plan, request: &Request, context: &Context) -> Result<Report> {
    let ground = match &request.keep {
        Some(keep) => {
            disk::create_private_folder(keep)?;
            Ground::Kept(disk::real_path(keep)?)
        }
        None => Ground::Scratch(home.rehearsal(context)?),
    };
    let (mut repository, mut torn) = match repository_of(home) {
        Ok(repository) => (repository, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let at = context.clock.now();
    let rebuild = |repository: Option<&Repository>| {
        let request = rebuilding(&plan.store, repository, ground.path());
        rebuild::apply(rebuild::plan(&request, context)?, context)
    };
    let outcome = match rebuild(repository.as_ref()) {
        Err(error) if repository.is_some() && error.kind() != Kind::Interrupted => {
            // A history that can not be laid over does not stop what the store gives back.
            let outcome = rebuild(None)?;
            (repository, torn) = (None, Some(error.to_string()));
            outcome
        }
        rebuilt => rebuilt?,
    };
    let store = Store::open_of(&plan.store, home)?;
    let source = Source::of(&store, Some(outcome.snapshot), context)?;
    let drill = Drill {
        home,
        request,
        snapshot: source.snapshot(),
        store: &store,
        built: ground.path(),
        context,
    };
    let mut report = drill.report(at, plan, outcome, repository.as_ref(), torn)?;
    report.kept = match &ground {
        Ground::Kept(path) => Some(path.clone().into()),
        Ground::Scratch(_) => None,
    };
    drop(ground);
    report.keep(home)?;
    Ok(report)
}

struct Drill<'d> {
    home: &'d Home,
    request: &'d Request,
    snapshot: &'d Snapshot,
    store: &'d Store,
    built: &'d Path,
    context: &'d Context<'d>,
}

impl Drill<'_> {
    fn report(
        &self,
        at: Timestamp,
        plan: Plan,
        outcome: rebuild::Outcome,
        repository: Option<&Repository>,
        torn: Option<String>,
    ) -> Result<Report> {
        let context = self.context;
        let mut report = Report {
            at,
            home: plan.home,
            store: plan.store,
            snapshot: outcome.snapshot,
            repository: None,
            recovered: false,
            kinds: Vec::new(),
            lost: Vec::new(),
            older: outcome.older.clone(),
            missing: outcome.missing.clone(),
            wrong: Vec::new(),
            then: Vec::new(),
            index_changes: 0,
            findings: Vec::new(),
            history: Vec::new(),
            databases: 0,
            unsound: Vec::new(),
            command: None,
            blind_spots: Vec::new(),
            rpo_seconds: None,
            rto_seconds: outcome.seconds,
            files: 0,
            bytes: 0,
            kept: None,
            warnings: [plan.warnings, outcome.warnings.clone()].concat(),
        };
        let rebuilt = Home::open(self.built.join(HOME), Trust::Named)?;
        let saved = Arc::new(Saved::new(&self.request.include, &self.request.exclude)?);
        let mut states = Vec::new();
        // A store that was made without it says so.
        let unwanted = self.store.marker().without_state.as_deref();
        for folder in self.request.state.iter().filter(|_| unwanted.is_none()) {
            let folder = disk::real_path(folder).and_then(|folder| {
                let portions = agent_state::portions(&folder, &saved, context)?;
                Ok((folder, portions))
            });
            match folder {
                Ok(found) => states.push(found),
                Err(error) if error.kind() == Kind::Interrupted => return Err(error),
                // It may be what was lost: what the store has of it comes back all the same.
                Err(error) => report.warnings.push(error.to_string()),
            }
        }
        self.compare(&rebuilt, &states, &outcome, &mut report)?;
        opened::look(
            &rebuilt,
            self.home,
            &self.snapshot.home.path,
            self.request.user_home.as_deref(),
            &mut report,
            context,
        )?;
        self.databases(&rebuilt, &mut report)?;
        match (repository, torn) {
            (Some(repository), _) => self.history(repository, &rebuilt, &outcome, &mut report)?,
            (None, Some(why)) => lose_history(&mut report, &why),
            (None, None) => {}
        }
        report.blind_spots = self.blind_spots(&states, repository, unwanted)?;
        // Last, because it may do anything.
        report.command = opened::command(self.home, &rebuilt, context)?;
        let oldest = report.then.iter().map(|then| then.as_of).min();
        report.rpo_seconds = oldest.map(|oldest| {
            let age = at.duration_since(oldest).as_secs();
            u64::try_from(age).unwrap_or(0)
        });
        report.recovered = report.is_recovered();
        Ok(report)
    }

    /// The live home and its state folders beside what was rebuilt.
    fn compare(
        &self,
        rebuilt: &Home,
        states: &[(PathBuf, Vec<Portion>)],
        outcome: &rebuild::Outcome,
        report: &mut Report,
    ) -> Result<()> {
        let open = |path: &Path| Dir::open(path).map_err(|e| Error::io("can not open", path, e));
        let mut comparison = Comparison::new(self.snapshot, outcome, self.context);
        let live = open(self.home.root())?;
        comparison.add(&Side {
            live: &live,
            rebuilt: open(rebuilt.root())?,
            skip: &not_backed_up,
            thing: &thing_of_home,
        })?;
        let state = self.built.join(STATE);
        disk::create_private_folder(&state)?;
        for (folder, portions) in states {
            // One alone is the folder itself.
            let state = match self.snapshot.home.state.len() {
                0 | 1 => state.clone(),
                _ => state.join(folder.file_name().unwrap_or_default()),
            };
            for portion in portions {
                let rel = portion.path.strip_prefix(folder).unwrap_or(Path::new(""));
                let there = state.join(rel);
                disk::create_private_folder(&there)?;
                let thing = Thing {
                    data: data_of_place(&portion.place),
                    place: portion.place.clone(),
                };
                if portion.databases.is_empty() {
                    comparison.add(&Side {
                        live: &portion.root,
                        rebuilt: open(&there)?,
                        skip: &*portion.skip,
                        thing: &|rel| (thing.clone(), rel.to_path_buf()),
                    })?;
                    continue;
                }
                for database in &portion.databases {
                    // A copy by SQLite has other bytes; it is as old as the newest of the live files.
                    let back = disk::stat(&there.join(database))?;
                    let now = age_of(&portion.path.join(database))?;
                    let as_now = back.as_ref().map(|back| back.mtime) == now;
                    comparison.note(thing.clone(), back.is_some(), as_now, database);
                }
            }
        }
        comparison.tell(report);
        Ok(())
    }

    fn databases(&self, rebuilt: &Home, report: &mut Report) -> Result<()> {
        let scratch = self.built.join(CHECKED);
        disk::create_private_folder(&scratch)?;
        let (home, state) = (rebuilt.root(), self.built.join(STATE));
        let mut check = |folder: &Path, live: Option<&Path>, thing: &str| {
            opened::databases(folder, live, &scratch, thing, report, self.context)
        };
        check(home, Some(self.home.root()), "the home")?;
        check(&state, None, "the agent application's folder")?;
        let top = Dir::open(self.built);
        // It is empty, and goes with the rest at the latest.
        let _ = top.and_then(|top| disk::remove_tree(&top, CHECKED.as_ref()));
        Ok(())
    }

    fn history(
        &self,
        repository: &Repository,
        rebuilt: &Home,
        outcome: &rebuild::Outcome,
        report: &mut Report,
    ) -> Result<()> {
        let in_home = repository
            .dir()
            .starts_with(disk::real_path(self.home.root())?);
        let opened = Repository::open(rebuilt).and_then(|found| {
            found
                .map(|found| Surviving::open(found.dir())?.tip())
                .transpose()
        });
        match (opened, &outcome.git) {
            (Ok(Some(tip)), Some(git)) => {
                let kind = compare::of_kind(&mut report.kinds, Data::History);
                kind.things = 1;
                kind.as_now = 1;
                report.repository = Some(Used {
                    path: repository.dir().to_path_buf().into(),
                    in_home,
                    tip,
                    newer_files: git.files.len() as u64,
                });
            }
            (Ok(_), _) => lose_history(report, "it did not come back"),
            (Err(error), _) => lose_history(report, &error.to_string()),
        }
        if let Some(used) = report
            .repository
            .as_ref()
            .filter(|used| used.in_home && used.newer_files > 0)
        {
            report.warnings.push(format!(
                "{} newer in the history than in the store, and the history lies in the home: when the disk dies, the store's are what is left",
                human::plural(used.newer_files, "file is", "files are")
            ));
        }
        Ok(())
    }

    fn blind_spots(
        &self,
        states: &[(PathBuf, Vec<Portion>)],
        repository: Option<&Repository>,
        unwanted: Option<&str>,
    ) -> Result<Vec<BlindSpot>> {
        let mut spots = blind::in_home(self.home, repository, self.context)?;
        for (folder, portions) in states {
            spots.extend(blind::in_state(folder, portions, self.context)?);
        }
        if let Some(why) = unwanted {
            let why = format!("the store was made without it ({why})");
            for folder in &self.request.state {
                spots.extend(blind::unsaved_state(folder, &why, self.context)?);
            }
        }
        for folder in &self.request.unsaved_state {
            let why = format!(
                "the agent application's own folder is not backed up: dir = {} below [state] in wbhome.toml",
                human::quoted(folder)
            );
            spots.extend(blind::unsaved_state(folder, &why, self.context)?);
        }
        // The largest first.
        spots.sort_by_key(|spot| std::cmp::Reverse(spot.bytes));
        Ok(spots)
    }
}

fn lose_history(report: &mut Report, why: &str) {
    let kind = compare::of_kind(&mut report.kinds, Data::History);
    kind.things = 1;
    kind.lost = 1;
    report.lost.push(Lost {
        data: Data::History,
        thing: "the history".to_owned(),
        why: why.to_owned(),
    });
}

/// The repository of a home; `None` also when nothing was committed yet.
fn repository_of(home: &Home) -> Result<Option<Repository>> {
    let Some(repository) = Repository::open(home)? else {
        return Ok(None);
    };
    if repository.branch()?.tip.is_none() {
        return Ok(None);
    }
    Surviving::open(repository.dir())?.tip()?;
    Ok(Some(repository))
}

/// What of a live home is in no snapshot by design.
fn not_backed_up(rel: &Path, entry: &Entry) -> bool {
    let name = &entry.name;
    if name
        .as_encoded_bytes()
        .starts_with(TEMPORARY_PREFIX.as_bytes())
    {
        return true;
    }
    match rel.to_str() {
        Some("") => name == ".git",
        Some(".wbhome") => OWN.iter().any(|own| name == *own),
        _ => false,
    }
}

/// How old a live database is: the newer of it and its log.
fn age_of(database: &Path) -> Result<Option<disk::Stamp>> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = disk::stat(Path::new(&log))?.filter(|log| log.size > 0);
    let own = disk::stat(database)?.map(|own| own.mtime);
    Ok(own.map(|own| log.into_iter().fold(own, |own, log| own.max(log.mtime))))
}
