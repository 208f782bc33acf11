//! The plan of a run, carried out: packs first, then what makes sure of them, then the snapshot that names them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rayon::prelude::*;

use super::carry::{self, last_complete};
use super::packing::{self, Made, Packing, Taken, Trouble, Within};
use super::run::{Gone, Outcome, Packed, Plan, Request, SMALL, Shrunken, Todo, Unread, Why};
use super::store::keep_room;
use super::{
    Device, Form, HomeThen, Item, LockedStore, PackRef, Place, Snapshot, Standing, of_state, prune,
    snapshot,
};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Total, failpoint, human};
use crate::disk::{self, Dir, NewFile};
use crate::home::Home;

/// About so much takes a new item in a snapshot, generously.
const NEW_ITEM: u64 = 2 << 10;

/// So much more is kept free for the snapshot: for blocks of the filesystem's own, and for what is longer than before.
const SLACK: u64 = 32 << 10;

/// Packs what is to be packed, and makes the snapshot.
///
/// # Errors
/// A store that can not be written, that was unmounted meanwhile, or whose packs can not be read back; and interruption.
/// Then there is no new snapshot, and what was packed is removed by the next prune.
pub fn apply(
    home: &Home,
    store: &LockedStore,
    plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let root = home.dir()?;
    let snapshots = store.snapshots_folder().ok();
    let mut night = Night {
        home,
        root: &root,
        store,
        request,
        context,
        made: Vec::new(),
        taken: Taken::default(),
        no_room: Vec::new(),
        unread: Vec::new(),
        let_go: 0,
        room: None,
    };
    store.clear_leftovers()?;
    night.keep_room(&plan, snapshots.as_ref());
    let mut plan = plan;
    let todo = std::mem::take(&mut plan.packs);
    night.pack_all(&plan, todo)?;
    night.make_sure()?;
    night.finish(plan)
}

struct Night<'a> {
    home: &'a Home,
    root: &'a Dir,
    store: &'a LockedStore,
    request: &'a Request,
    context: &'a Context<'a>,
    made: Vec<(Todo, Made)>,
    taken: Taken,
    no_room: Vec<Todo>,
    unread: Vec<(Place, Unread)>,
    let_go: u64,
    /// Room for the snapshot.
    room: Option<NewFile<'a>>,
}

impl<'a> Night<'a> {
    /// Keeps room for the snapshot, before packs take all there is.
    fn keep_room(&mut self, plan: &Plan, snapshots: Option<&'a Dir>) {
        let Some(snapshots) = snapshots else {
            return;
        };
        let former = plan.former.as_ref().map(serde_json::to_vec_pretty);
        let former = former.and_then(|text| text.ok()).unwrap_or_default();
        let new = plan.packs.iter().filter(|todo| todo.why == Why::New);
        let bytes = former.len() as u64 + new.count() as u64 * NEW_ITEM + SLACK;
        let mut kept = keep_room(snapshots, bytes).ok();
        if kept.as_ref().is_some_and(|(_, taken)| *taken < bytes) {
            kept = None;
            self.let_go = self.make_room(plan).unwrap_or_default();
        }
        let kept = kept.or_else(|| keep_room(snapshots, bytes).ok());
        self.room = kept.map(|(room, _)| room);
    }

    fn pack_all(&mut self, plan: &Plan, todo: Vec<Todo>) -> Result<()> {
        let progress = self.context.progress;
        let total = Total {
            items: todo.iter().map(|todo| todo.files).sum(),
            bytes: todo.iter().map(|todo| todo.bytes).sum(),
        };
        progress.stage("packing", total);
        let (small, large): (Vec<Todo>, Vec<Todo>) =
            todo.into_iter().partition(|todo| todo.bytes <= SMALL);
        let done = Mutex::new(Vec::new());
        let pack_small = |todo: Todo| {
            self.context.stop.check()?;
            let result = self.pack(plan, &todo, 1);
            if let Ok(mut done) = done.lock() {
                done.push((todo, result));
            }
            Ok(())
        };
        small
            .into_par_iter()
            .map(pack_small)
            .collect::<Result<()>>()?;
        let mut full = Vec::new();
        for (todo, result) in done.into_inner().unwrap_or_default() {
            self.take(todo, result, &mut full)?;
        }
        let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
        for todo in large {
            self.context.stop.check()?;
            let result = self.pack(plan, &todo, threads);
            self.take(todo, result, &mut full)?;
        }
        if !full.is_empty() {
            self.let_go += self.make_room(plan)?;
            for todo in std::mem::take(&mut full) {
                self.context.stop.check()?;
                let result = self.pack(plan, &todo, threads);
                self.take(todo, result, &mut full)?;
            }
            self.no_room = full;
        }
        progress.finish();
        Ok(())
    }

    fn pack(&self, plan: &Plan, todo: &Todo, threads: u32) -> Result<Made, Trouble> {
        let within = Within(self.context.progress);
        let context = Context {
            progress: &within,
            ..*self.context
        };
        let packing = Packing {
            store: self.store,
            root: self.root,
            at: plan.at,
            level: self.request.level,
            threads,
            taken: &self.taken,
            context: &context,
        };
        let entry = plan
            .found
            .get(&todo.source.place)
            .and_then(|found| found.entry.clone());
        packing.pack(&todo.source, entry)
    }

    fn take(
        &mut self,
        todo: Todo,
        result: Result<Made, Trouble>,
        full: &mut Vec<Todo>,
    ) -> Result<()> {
        match result {
            Ok(made) => self.made.push((todo, made)),
            Err(Trouble::Full) => full.push(todo),
            Err(Trouble::Store(error)) => return Err(self.explained(error)),
            Err(Trouble::Source(error)) => {
                let place = todo.source.place.clone();
                let unread = super::run::unread(&place, &error);
                self.unread.push((place, unread));
            }
        }
        Ok(())
    }

    /// A disk that was pulled out fails in many ways, and only one of them is to be acted on.
    fn explained(&self, error: Error) -> Error {
        match self.store.is_still_there() {
            true if error.io_cause().is_some_and(packing::is_full) => error
                .hint("make room, or set a shorter [backup] keep and run `wbhome backup prune`"),
            true => error,
            false => self.unmounted().because(error),
        }
    }

    fn unmounted(&self) -> Error {
        Error::failed("the backup store was unmounted or replaced in the middle, and there is no new snapshot in it:")
            .at(self.store.path())
            .hint("mount the disk again, and run `wbhome backup run`")
    }

    /// Lets go of what the snapshots that are there have made superfluous; how many packs that were.
    fn make_room(&self, plan: &Plan) -> Result<u64> {
        if plan.clock.is_some() {
            return Ok(0);
        }
        let packed = self.made.iter().map(|(todo, _)| todo.source.place.clone());
        let packed: BTreeSet<Place> = packed.collect();
        let run = prune::Under {
            at: plan.at,
            packed: &packed,
        };
        let keep = prune::Keep {
            snapshots: self.request.keep,
            deleted: self.request.keep_deleted,
        };
        let superfluous = prune::plan_for(self.store, keep, Some(run), self.context)?;
        let done = prune::apply(self.store, superfluous, self.context)?;
        Ok(done.packs.len() as u64)
    }

    /// Writes everything to the disk, and compares each new pack with what was written.
    fn make_sure(&self) -> Result<()> {
        let fail = |error| Error::io("can not write", self.store.path(), error);
        disk::sync_filesystem(&self.store.dir).map_err(|e| self.explained(fail(e)))?;
        let progress = self.context.progress;
        let packs = self.made.iter().map(|(_, made)| &made.pack);
        let total = Total {
            items: packs.clone().count() as u64,
            bytes: packs.clone().map(|pack| pack.bytes).sum(),
        };
        progress.stage("reading back", total);
        let packs: Vec<&PackRef> = packs.collect();
        packs
            .par_iter()
            .try_for_each(|pack| {
                self.context.stop.check()?;
                self.store.compare(pack)?;
                progress.advance(1, pack.bytes);
                Ok(())
            })
            .map_err(|error| self.explained(error))?;
        progress.finish();
        Ok(())
    }

    fn finish(mut self, mut plan: Plan) -> Result<Outcome> {
        let mut packed = Vec::new();
        let failed = self.no_room.iter().map(|todo| todo.source.place.clone());
        let failed: Vec<Place> = failed
            .chain(self.unread.iter().map(|(place, _)| place.clone()))
            .collect();
        for place in failed {
            if let Some(found) = plan.found.get_mut(&place) {
                found.failed = true;
            }
        }
        for (todo, made) in &self.made {
            let place = &todo.source.place;
            let last = plan
                .former
                .as_ref()
                .and_then(|former| last_complete(former.item(place)?));
            // The home itself shrinks when its records do.
            let shrunk = last
                .filter(|_| *place != Place::Home && self.counts(&plan, place, todo.form))
                .and_then(|last| packing::shrunk(self.store, last, made));
            if let Some(found) = plan.found.get_mut(place) {
                found.shrunk = shrunk.or(found.shrunk.take());
                found.take(made.pack.clone());
            }
            packed.push(Packed {
                what: todo.what.clone(),
                form: todo.form,
                why: todo.why,
                files: made.pack.files,
                bytes: match todo.form {
                    Form::Packed => made.pack.content,
                    Form::Archive => made.pack.bytes,
                },
                packed: made.pack.bytes,
                restless: made.pack.restless,
            });
        }
        packed.sort_by(|one, other| one.what.cmp(&other.what));
        self.shrunk_to_archives(&mut plan);
        let renamed = self.renamed(&plan);
        let found = std::mem::take(&mut plan.found);
        let mut items = carry::next(
            plan.former.as_ref(),
            found,
            &plan.now(self.request, &renamed),
        );
        let lost = self.without_lost(&mut items);
        let snapshot = Snapshot {
            format: snapshot::FORMAT,
            at: plan.at,
            clock: plan.clock,
            made_by: concat!("wbhome ", env!("CARGO_PKG_VERSION")).to_owned(),
            home: HomeThen {
                id: self.home.id().to_owned(),
                path: disk::real_path(self.home.root())?.into(),
                device: Device::this(),
                commit: self.request.commit.clone(),
                state: of_state::then(self.request),
            },
            items,
        };
        failpoint::hit("backup.packed");
        self.publish(&snapshot, &plan)?;
        failpoint::hit("backup.snapshot");
        let mut outcome = self.told(plan, snapshot, packed);
        outcome.lost = lost;
        Ok(outcome)
    }

    /// An archive that lay beside a folder, and was packed long ago, is all that is there of a session when the folder is
    /// gone.
    fn shrunk_to_archives(&self, plan: &mut Plan) {
        for (place, found) in &mut plan.found {
            let former = plan.former.as_ref().and_then(|former| former.item(place));
            if let (None, Some(archive), false) = (&found.folder, &found.archive, found.failed)
                && let Some(last) = former.and_then(last_complete)
                && last.file != archive.file
            {
                let left = Made {
                    pack: archive.clone(),
                    manifest: None,
                };
                let shrunk = packing::shrunk(self.store, last, &left);
                found.shrunk = shrunk.or(found.shrunk.take());
            }
        }
    }

    /// Of a session that has both a folder and an archive the folder is what may have shrunk.
    fn counts(&self, plan: &Plan, place: &Place, form: Form) -> bool {
        let has_folder = || {
            plan.found
                .get(place)
                .is_some_and(|found| found.folder.is_some())
                || self
                    .made
                    .iter()
                    .any(|(todo, _)| todo.source.place == *place && todo.form == Form::Packed)
        };
        form == Form::Packed || !has_folder()
    }

    /// Sessions that have another name now. One that lost something on the way, or before, is missing all the same: its
    /// former packs would be forgotten with its name.
    fn renamed(&self, plan: &Plan) -> BTreeSet<Place> {
        let whole = |(item, place): (&Item, &Place)| {
            let last = last_complete(item).filter(|_| item.kept.is_empty())?;
            let (_, made) = self.made.iter().find(|(todo, _)| {
                todo.source.place == *place && self.counts(plan, place, todo.form)
            })?;
            if plan.found.get(place)?.failed {
                return None;
            }
            let whole =
                made.pack.is_complete() && packing::shrunk(self.store, last, made).is_none();
            whole.then(|| item.place.clone())
        };
        plan.renamings().into_iter().filter_map(whole).collect()
    }

    /// Says what is not in the store any more, or not as long as it was written. What is left of the thing takes its place;
    /// of what nothing is left, nothing is named.
    fn without_lost(&self, items: &mut Vec<Item>) -> Vec<String> {
        let mut lost = Vec::new();
        items.retain_mut(|item| {
            let what = item.place.shown();
            let mut gone = |pack: &PackRef| {
                let gone = self.store.is_gone(pack);
                if gone || !self.store.has(pack) {
                    lost.push(format!("{what}: {}", human::name(&pack.file)));
                }
                gone
            };
            item.kept.retain(|kept| !gone(&kept.pack));
            item.complete = item.complete.take().filter(|pack| !gone(pack));
            item.archive = item.archive.take().filter(|pack| !gone(pack));
            let gone = gone(&item.newest);
            if !gone && self.store.has(&item.newest) {
                return true;
            }
            let left = item.complete.take().or_else(|| self.older(item));
            match gone {
                // Something of what is damaged may be good, and of what is whole all is.
                false => item.complete = left,
                true => {
                    let left = left.or_else(|| item.kept.pop().map(|kept| kept.pack));
                    let Some(left) = left.or_else(|| item.archive.take()) else {
                        return false;
                    };
                    item.newest = left;
                }
            }
            true
        });
        lost
    }

    /// The newest pack of a thing in an older snapshot that is still as it was written.
    fn older(&self, item: &Item) -> Option<PackRef> {
        let moments = self.store.snapshots().ok()?.into_iter().rev();
        let mut snapshots = moments.filter_map(|at| self.store.snapshot(at).ok());
        snapshots.find_map(|snapshot| {
            let mut packs = snapshot.item(&item.place)?.packs();
            packs
                .find(|pack| pack.file != item.newest.file && self.store.has(pack))
                .cloned()
        })
    }

    fn publish(&mut self, snapshot: &Snapshot, plan: &Plan) -> Result<()> {
        if !self.store.is_still_there() {
            return Err(self.unmounted());
        }
        self.room = None;
        let done = self.store.write_snapshot(snapshot);
        let full = |error: &Error| error.io_cause().is_some_and(packing::is_full);
        match done {
            Err(error) if full(&error) && self.let_go == 0 => {
                self.let_go = self.make_room(plan)?;
                self.store.write_snapshot(snapshot)
            }
            done => done,
        }
        .map_err(|error| self.explained(error))
    }

    fn told(self, plan: Plan, snapshot: Snapshot, packed: Vec<Packed>) -> Outcome {
        let mut unread = plan.unread;
        // Packed side by side, so in any order.
        let mut later = self.unread;
        later.sort_by(|(one, _), (other, _)| one.cmp(other));
        unread.extend(later.into_iter().map(|(_, unread)| unread));
        let mut outcome = Outcome {
            store: plan.store,
            snapshot: Some(snapshot.at),
            clock: plan.clock,
            packed,
            unchanged: plan.unchanged,
            waiting: plan.waiting,
            unread,
            shrunken: Vec::new(),
            missing: Vec::new(),
            removed: Vec::new(),
            lost: Vec::new(),
            no_room: self.no_room.into_iter().map(|todo| todo.what).collect(),
            let_go: self.let_go,
            notes: plan.notes,
        };
        for item in &snapshot.items {
            let what = item.place.shown();
            // Of what is gone nobody can read more.
            let packs = std::iter::once(&item.newest).chain(&item.archive);
            let packs = packs.filter(|_| item.standing == Standing::Present);
            for flaw in packs.flat_map(|pack| &pack.flaws) {
                outcome.unread.push(Unread {
                    what: what.clone(),
                    path: WirePath(flaw.path.to_path_buf()),
                    why: flaw.why.clone(),
                });
            }
            let kept = item.kept.iter().map(|kept| Shrunken {
                what: what.clone(),
                why: kept.why.clone(),
                since: kept.since,
                pack: kept.pack.file.clone(),
            });
            outcome.shrunken.extend(kept);
            let since = item.since.unwrap_or(snapshot.at);
            let gone = Gone {
                what,
                since,
                new: since == snapshot.at,
            };
            match item.standing {
                Standing::Present => {}
                Standing::Missing => outcome.missing.push(gone),
                Standing::Removed => outcome.removed.push(gone),
            }
        }
        outcome
    }
}
