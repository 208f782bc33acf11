//! The stages, in their order. Each takes the lock that it needs for itself, and is done whatever became of the others.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Night, Stage};
use crate::backup::{LockedStore, Store, prune as pruning, run as backing};
use crate::base::{Context, Exit, Result, human};
use crate::disk;
use crate::history::commit as committing;
use crate::history::{Repository, last_index, push as pushing, refuse_astray};
use crate::home::{Home, LockedHome};
use crate::sessions::{Changes, reconcile};

mod logs;
mod relay;

/// A stage: what was done before is known to it. One may be about several stores.
type Run = fn(&Night, &[Stage]) -> Vec<Stage>;

/// What a night consists of.
pub(super) const STAGES: [Run; 7] = [
    logs::rotate,
    index,
    commit,
    backup,
    prune,
    logs::let_go,
    relay::sync,
];

/// So many things are named when there are more.
const NAMED: usize = 20;

impl Night<'_> {
    /// The stage that does this, unless the settings are not known.
    fn set_up(
        &self,
        name: &'static str,
        store: Option<&Path>,
        run: impl FnOnce(&mut Stage) -> Result<()>,
    ) -> Stage {
        Stage::of(name, store, self.context, |stage| {
            if self.config.is_err() {
                stage.skip("the settings are not understood");
                return Ok(());
            }
            run(stage)
        })
    }

    /// Whether a cold store is set.
    fn has_store(&self) -> bool {
        let config = self.config.as_ref();
        config.is_ok_and(|config| !config.backup.store.is_empty())
    }

    fn lock(&self, stage: &mut Stage) -> Result<LockedHome> {
        let locked = self.home.lock(self.request.wait, "nightly", self.context)?;
        let settled = locked.settled().iter();
        stage
            .notes
            .extend(settled.map(|settled| settled.told(false)));
        Ok(locked)
    }

    fn lock_store(&self, store: Store) -> Result<LockedStore> {
        store.lock(self.request.wait, "nightly", self.context)
    }

    /// A stage for each store, if there is any.
    fn in_each_store(
        &self,
        name: &'static str,
        run: impl Fn(&mut Stage, &Path) -> Result<()>,
    ) -> Vec<Stage> {
        let none = self.config.is_ok() && !self.has_store();
        let mut folders: Vec<PathBuf> = Vec::new();
        let look = self.set_up(name, None, |stage| {
            match none {
                true => stage.skip(
                    "no backup store is set: `wbhome backup init DIR` makes one on another disk",
                ),
                false => folders = (self.request.stores)(self.home)?,
            }
            Ok(())
        });
        if folders.is_empty() {
            return vec![look];
        }
        let in_one = |folder: &PathBuf| self.set_up(name, Some(folder), |stage| run(stage, folder));
        folders.iter().map(in_one).collect()
    }
}

/// The index agrees with the disk.
fn index(night: &Night, _: &[Stage]) -> Vec<Stage> {
    vec![Stage::of("index", None, night.context, |stage| {
        let changes = if night.only_look {
            agreeing(night.home, stage, night.context)?.changes
        } else {
            let locked = night.lock(stage)?;
            let plan = agreeing(&locked, stage, night.context)?;
            plan.refuse_if_all_are_missing()?;
            let done = reconcile::apply(&locked, plan, night.context)?;
            let strangers = done.strangers.iter();
            stage.notes.extend(
                strangers.map(|stranger| format!("{} can not be indexed", human::path(stranger))),
            );
            done.changes
        };
        tell_index(stage, &changes);
        Ok(())
    })]
}

/// An index that is gone is not made without the labels that a commit holds.
fn agreeing(home: &Home, stage: &mut Stage, context: &Context) -> Result<reconcile::Plan> {
    if disk::exists(&home.index_file()) {
        return reconcile::plan(home, false, context);
    }
    match last_index(home.root()) {
        Ok(None) => reconcile::plan(home, false, context),
        Ok(labels) => {
            let note = "index.json is gone: the labels are those of the last commit that has one";
            stage.notes.push(note.to_owned());
            reconcile::plan_anew(home, labels, context)
        }
        // It would never be known again that there were some.
        Err(error) => Err(error.hint("index.json is gone, and its labels are in the commits")),
    }
}

fn tell_index(stage: &mut Stage, changes: &Changes) {
    let mut parts = Vec::new();
    for (what, n) in [
        ("missing", changes.missing.len()),
        ("renamed", changes.renamed.len()),
        ("added", changes.added.len()),
        ("returned", changes.returned.len()),
        ("archived", changes.archived.len()),
        ("completed", changes.completed.len()),
    ] {
        stage.count(what, n as u64);
        if n > 0 {
            parts.push(format!("{} {what}", human::count(n as u64)));
        }
    }
    stage.count("entries", changes.entries);
    let entries = human::plural(changes.entries, "entry", "entries");
    stage.did = match parts.is_empty() {
        true => format!("{entries}, all as on the disk"),
        false => format!("{}; {entries}", parts.join(", ")),
    };
    for problem in &changes.problems {
        let (id, why) = (human::name(&problem.id), human::escape(&problem.why));
        stage.notes.push(format!("{id}: {why}"));
    }
    for id in changes.missing.iter().take(NAMED) {
        let message = format!("{} is found nowhere any more", human::name(id));
        stage.warn(message, "`wbhome check` says what is known of it");
    }
}

/// Session text into git, and to the remote where the settings say so.
fn commit(night: &Night, _: &[Stage]) -> Vec<Stage> {
    vec![night.set_up("commit", None, |stage| {
        let Ok(config) = &night.config else {
            return Ok(());
        };
        refuse_astray(night.home, (night.request.git)(config).as_deref())?;
        let Some(repository) = Repository::open(night.home)? else {
            // Nobody has asked for one: the night does not begin it.
            stage.skip("there is no history yet: `wbhome commit` begins it");
            return Ok(());
        };
        let request = committing::Request {
            sessions: Vec::new(),
            message: None,
            max_file: config.git.max_file,
            wait: night.request.wait,
        };
        let (done, push) = if night.only_look {
            let plan = committing::plan(night.home, &repository, &request, night.context)?;
            let done = committing::preview(night.home, &repository, plan, night.context)?;
            let push = || pushing::preview(night.home, &repository, config, night.context);
            (done, config.git.push.then(push))
        } else {
            let locked = night.lock(stage)?;
            let done = committing::apply(&locked, &repository, &request, night.context)?;
            let push = || pushing::push(&locked, &repository, config, false, night.context);
            (done, config.git.push.then(push))
        };
        tell_commit(stage, &done);
        if let Some(push) = push {
            tell_push(stage, &push);
        }
        Ok(())
    })]
}

fn tell_commit(stage: &mut Stage, done: &committing::Outcome) {
    stage.count("files", done.files.total());
    stage.count("sessions", done.sessions.len() as u64);
    stage.count("held", done.held);
    stage.did = match &done.subject {
        None => format!(
            "nothing has changed; {} in the history",
            human::plural(done.held, "file", "files")
        ),
        Some(subject) => human::escape(subject).into_owned(),
    };
    for unread in done.unread.iter().take(NAMED) {
        let (path, why) = (human::path(&unread.path), human::escape(&unread.why));
        stage.lacks(format!("not in the commit: {path}: {why}"), Vec::new());
    }
    if let Some(why) = &done.not_consolidated {
        stage.lacks(human::escape(why), Vec::new());
    }
}

fn tell_push(stage: &mut Stage, push: &pushing::Push) {
    stage.count(
        "pushed",
        match push.state {
            pushing::State::Pushed | pushing::State::WouldPush => push.commits,
            _ => 0,
        },
    );
    let exit = push.exit();
    if exit != Exit::Done {
        let why = push
            .why
            .clone()
            .unwrap_or_else(|| "secrets were found".to_owned());
        stage.lacks(format!("not pushed: {why}"), push.hints.clone());
        stage.exit = stage.exit.merge(exit);
    } else if push.state == pushing::State::Pushed {
        let commits = human::plural(push.commits, "commit", "commits");
        stage.did = format!("{}; {commits} pushed", stage.did);
    }
}

/// What has changed into each store.
fn backup(night: &Night, _: &[Stage]) -> Vec<Stage> {
    night.in_each_store("backup", |stage, folder| {
        let request = (night.request.backup)(night.home)?;
        let store = Store::open_of(folder, night.home)?;
        if night.only_look {
            let plan = backing::plan(night.home, &store, &request, night.context)?;
            let bytes = plan.packs.iter().map(|todo| todo.bytes).sum();
            stage.count("packed", plan.packs.len() as u64);
            stage.count("bytes", bytes);
            stage.count("unchanged", plan.unchanged);
            stage.did = format!(
                "{} to pack, {}; {} unchanged",
                human::plural(plan.packs.len() as u64, "thing", "things"),
                human::size(bytes),
                human::count(plan.unchanged)
            );
            tell_unread(stage, &plan.unread);
            return Ok(());
        }
        let store = night.lock_store(store)?;
        let plan = backing::plan(night.home, &store, &request, night.context)?;
        let done = backing::apply(night.home, &store, plan, &request, night.context)?;
        tell_backup(stage, &done);
        Ok(())
    })
}

fn tell_backup(stage: &mut Stage, done: &backing::Outcome) {
    let sum = |of: fn(&backing::Packed) -> u64| done.packed.iter().map(of).sum::<u64>();
    let packed = done.packed.len() as u64;
    for (what, n) in [
        ("packed", packed),
        ("files", sum(|packed| packed.files)),
        ("bytes", sum(|packed| packed.bytes)),
        ("stored", sum(|packed| packed.packed)),
        ("restless", sum(|packed| packed.restless)),
        ("unchanged", done.unchanged),
        ("missing", done.missing.len() as u64),
        ("removed", done.removed.len() as u64),
    ] {
        stage.count(what, n);
    }
    stage.did = match packed {
        0 => format!(
            "nothing has changed; {} as they were",
            human::count(done.unchanged)
        ),
        _ => format!(
            "{} packed, {} in the store; {} unchanged",
            human::plural(packed, "thing", "things"),
            human::size(sum(|packed| packed.packed)),
            human::count(done.unchanged)
        ),
    };
    tell_unread(stage, &done.unread);
    for lost in &done.lost {
        stage.lacks(
            format!("is not in the store any more, or not as it was written: {lost}"),
            Vec::new(),
        );
    }
    if !done.no_room.is_empty() {
        let things = human::plural(done.no_room.len() as u64, "thing", "things");
        let first = done.no_room.first().map_or("", String::as_str);
        let more = if done.no_room.len() > 1 { ", …" } else { "" };
        stage.lacks(
            format!("there is no room in the store for {things}: {first}{more}"),
            vec!["their former packs are kept; make room, or set a shorter [backup] keep and run `wbhome backup prune`".to_owned()],
        );
    }
    stage.exit = stage.exit.merge(done.exit());
    stage.notes.extend(done.notes.iter().cloned());
    if let Some(clock) = done.clock {
        let message = format!(
            "the clock ({clock}) is behind the newest snapshot, so the new one is dated after it"
        );
        stage.warn(message, "set the clock right: until then nothing is pruned");
    }
    let is_due = |since: Timestamp| done.snapshot.is_some_and(|at| is_due(since, at));
    for shrunken in done.shrunken.iter().filter(|one| is_due(one.since)) {
        let message = format!(
            "{} holds less than it did ({}); its former pack is kept",
            shrunken.what, shrunken.why
        );
        let quoted = human::argument(&shrunken.what);
        stage.warn(
            message,
            &format!("if that is right: `wbhome backup accept {quoted}`"),
        );
    }
    let gone = done.missing.iter().filter(|gone| is_due(gone.since));
    tell_missing(
        stage,
        &gone.map(|gone| gone.what.as_str()).collect::<Vec<_>>(),
    );
}

/// So many missing things are told one by one.
const APART: usize = 3;

/// Many at once have one cause, as when a folder of the application follows a move under other names.
fn tell_missing(stage: &mut Stage, gone: &[&str]) {
    if gone.len() <= APART {
        for what in gone {
            let quoted = human::argument(what);
            stage.warn(
                format!("{what} is not there any more; its last pack is kept"),
                &format!("if it is gone for good: `wbhome backup accept {quoted}`"),
            );
        }
        return;
    }
    let more = human::count((gone.len() - APART) as u64);
    let quoted = gone.iter().map(|what| human::quoted(Path::new(what)));
    let quoted: Vec<String> = quoted.collect();
    // What begins with a dash is a name all the same.
    let end = match gone.iter().any(|what| what.starts_with('-')) {
        true => "-- ",
        false => "",
    };
    stage.warn(
        format!(
            "{} and {more} more are not there any more; their last packs are kept",
            gone[..APART].join(", ")
        ),
        &format!(
            "if they are gone for good, or have other names now: `wbhome backup accept {end}{}`",
            quoted.join(" ")
        ),
    );
}

/// What stays as it is is told on the first night, and then once a week: what is told every night is read by nobody.
fn is_due(since: Timestamp, now: Timestamp) -> bool {
    let days = (now.duration_since(since).as_hours() + 12) / 24;
    since == now || days > 0 && days % 7 == 0
}

fn tell_unread(stage: &mut Stage, unread: &[backing::Unread]) {
    for unread in unread.iter().take(NAMED) {
        let path = match unread.path.as_os_str().is_empty() {
            true => String::new(),
            false => format!("{}: ", human::path(&unread.path)),
        };
        let why = human::escape(&unread.why);
        let message = format!("could not be read, {}: {path}{why}", unread.what);
        stage.lacks(message, Vec::new());
    }
    stage.count("unread", unread.len() as u64);
    if let Some(more @ 1..) = unread.len().checked_sub(NAMED) {
        stage.lacks(format!("and {more} more could not be read"), Vec::new());
    }
}

/// What nothing needs any more goes out of each store whose backup has just been good.
fn prune(night: &Night, before: &[Stage]) -> Vec<Stage> {
    let keep = night.config.as_ref().map(|config| pruning::Keep {
        snapshots: config.backup.keep,
        deleted: config.backup.keep_deleted,
    });
    let is_good = |folder: &Path| {
        let backup = before.iter().find(|stage| {
            stage.name == "backup" && stage.store.as_ref().is_some_and(|store| **store == *folder)
        });
        backup.is_some_and(|stage| stage.exit == Exit::Done && stage.skipped.is_none())
    };
    night.in_each_store("prune", |stage, folder| {
        let Ok(keep) = keep else {
            return Ok(());
        };
        if !is_good(folder) {
            stage.skip("its backup has not been good, so everything stays");
            return Ok(());
        }
        let store = Store::open_of(folder, night.home)?;
        let done = if night.only_look {
            pruning::plan(&store, keep, night.context)?
        } else {
            let store = night.lock_store(store)?;
            let plan = pruning::plan(&store, keep, night.context)?;
            pruning::apply(&store, plan, night.context)?
        };
        stage.count("snapshots", done.snapshots.len() as u64);
        stage.count("packs", done.packs.len() as u64);
        stage.count("bytes", done.bytes);
        stage.did = match done.snapshots.is_empty() && done.packs.is_empty() {
            true => format!(
                "nothing to let go of; {} kept",
                human::plural(done.snapshots_kept, "snapshot", "snapshots")
            ),
            false => format!(
                "{} and {} let go of, {}",
                human::plural(done.snapshots.len() as u64, "snapshot", "snapshots"),
                human::plural(done.packs.len() as u64, "pack", "packs"),
                human::size(done.bytes)
            ),
        };
        Ok(())
    })
}
