//! Off the sync drive: a damaged folder becomes a sound home, and the original stays untouched.
//!
//! [`plan()`] looks and refuses; [`apply`] copies, rewrites, verifies and adopts, in this order:
//!
//! 1. every entry is read once, changed as it streams, published complete, and read back (`transfer`);
//! 2. the source is looked at again, and what changed meanwhile is copied again (`settle`);
//! 3. databases are rewritten by SQL (`database`);
//! 4. folders get their modes and times, and the filesystem is synced;
//! 5. the index is made to agree with the disk, and everything that is wrong is listed;
//! 6. the record says that it is finished (`record`).
//!
//! A kill before the last step leaves a home that the same command finishes. The source is opened for
//! reading only, and access times are left alone.

mod adopt;
mod database;
mod entry;
pub mod finish;
mod in_place;
mod outcome;
mod plan;
mod preflight;
mod preview;
mod record;
pub mod relink;
pub mod rename;
mod rewriting;
mod scan;
mod settle;
mod stale;
mod state;
mod taking_back;
mod tally;
mod transfer;
mod verify;

use std::time::Duration;

pub use outcome::{Classes, Database, Mapped, Outcome, References, SessionCounts, SmokeTest};
pub use plan::{Plan, Request, Settings, Skipped, Totals, plan};
pub use preview::preview;
pub use record::{Class, Done, Record};
pub use stale::{add_stale_paths, moved_from};
pub use state::{Followed, Mention, Survey, Unclear};
pub use taking_back::{UndoPlan, Undone, WouldUndo};
pub use verify::{Difference, DifferenceKind, Verified, newest, verify};

use crate::base::{Context, Error, Exit, Result};
use crate::disk::{self, Dir, Tree};
use crate::home::{self, Home, LockedHome, Trust};
use crate::paths::Rewriter;
use tally::Tally;
use transfer::{Job, Transfer};

/// Carries a plan out, or goes on with it where it was stopped. A migration that is finished already gives
/// its outcome again.
///
/// # Errors
/// When the home can not be written; what was copied stays, and the same command goes on.
pub fn apply(mut plan: Plan, lock_wait: Duration, ctx: &Context) -> Result<Outcome> {
    // Nothing is to be done, and so nobody has to be waited for.
    if let Some(outcome) = plan
        .unfinished
        .as_ref()
        .map(Record::outcome)
        .transpose()?
        .flatten()
        && outcome.exit() == Exit::Done
        && plan.state.is_empty()
    {
        return Ok(outcome);
    }
    let root = &plan.settings.dest;
    home::begin(root, ctx)?;
    let home =
        Home::open(root.clone(), Trust::Named)?.lock_while_moving(lock_wait, "migrate", ctx)?;
    // Looked for again: the lock may have been waited for while somebody else ran the same migration.
    let (mut record, resumed) = match preflight::destination(&plan.settings)? {
        Some(record) => (record, true),
        None => (
            Record::begin(&home.own(), &plan.settings, plan.totals, ctx)?,
            false,
        ),
    };
    if let Some(outcome) = record.outcome()? {
        if outcome.is_complete() {
            let mut outcome = adopt::again(&home, &mut record, outcome, ctx)?;
            outcome.warnings.extend(settled(&home));
            if !plan.state.is_empty() {
                let compiled = plan::compiled(&plan.settings, &plan.tree)?;
                follow(&plan, &home, &record, &compiled, &mut outcome, ctx)?;
                record.amend(&outcome)?;
            }
            return Ok(outcome);
        }
        // Something could not be read then. What was copied is known and stays; the rest is tried again.
        record.reopen(ctx)?;
    }
    let rewriter = plan::rewriter(&plan.settings, &plan.tree)?;
    let compiled = plan::compiled(&plan.settings, &plan.tree)?;
    // Each look at a large source takes room: none is kept for longer than it is needed.
    let source = std::mem::take(&mut plan.tree);
    let done = copy(&plan, source, &home, &rewriter, &mut record, ctx)?;
    let mut outcome = adopt::adopt(&plan, &home, &record, done, resumed, ctx)?;
    outcome.warnings.extend(settled(&home));
    follow(&plan, &home, &record, &compiled, &mut outcome, ctx)?;
    record.finish(&outcome)?;
    Ok(outcome)
}

/// What an earlier run had left half done, and what was done about it when the lock was taken.
fn settled(home: &LockedHome) -> impl Iterator<Item = String> {
    home.settled().iter().flat_map(|settled| {
        let did = settled
            .did
            .iter()
            .map(|did| format!("a command was stopped in its middle; {did}"));
        let pending = settled.pending.iter();
        did.chain(
            pending.map(|why| format!("a command was stopped in its middle, and waits: {why}")),
        )
    })
}

/// Lets the application's own folders follow. An agent that opens a session whose folder it can not find may
/// begin an empty one over it: so the migration is not finished before this is done.
fn follow(
    plan: &Plan,
    home: &LockedHome,
    record: &Record,
    compiled: &state::Compiled,
    outcome: &mut Outcome,
    ctx: &Context,
) -> Result<()> {
    let rel = record.rel(home)?;
    let folders: Vec<_> = plan
        .state
        .iter()
        .map(|survey| survey.folder.as_path())
        .collect();
    state::follow(home, &rel, "migrate", &folders, &compiled.moved(), ctx)?;
    // Also what an earlier run of the same migration has done.
    outcome.state = state::followed_by(home, &rel)?;
    Ok(())
}

/// What a migration has done in the application's own folders: whether it was taken back since is looked up.
///
/// # Errors
/// A record that can not be read.
pub fn state_of(home: &Home, record: &Record) -> Result<Vec<Followed>> {
    state::followed_by(home, &record.rel(home)?)
}

/// What [`undo`] would do.
///
/// # Errors
/// A record that can not be read.
pub fn undo_plan(home: &Home, ctx: &Context) -> Result<UndoPlan> {
    let record = newest(home)?;
    let plan = taking_back::undo_plan(home, state::swaps_of(home, &record.rel(home)?)?, ctx)?;
    match plan.would.is_empty() {
        true => Err(nothing_to_take_back()),
        false => Ok(plan),
    }
}

fn nothing_to_take_back() -> Error {
    Error::failed("there is nothing to take back: the migration has changed no state folder, or that was taken back before")
        .hint("`wbhome migrate status` shows what was done")
}

/// Gives the application's own folders the state back that they had before the newest migration.
///
/// # Errors
/// A home that was not migrated, or whose migration left the application's folder alone; whoever uses that
/// folder; what was changed in it since, without `force`.
pub fn undo(home: &LockedHome, force: bool, ctx: &Context) -> Result<Vec<Undone>> {
    if taking_back::settled_by(home, "migrate undo") {
        return Ok(Vec::new());
    }
    let record = newest(home)?;
    let swaps = state::swaps_of(home, &record.rel(home)?)?;
    let undone = taking_back::take_back(home, swaps, "migrate undo", force, ctx).map_err(|error| {
        match relink::was_made(home) {
            Ok(true) => error.hint("references were relinked, or sessions renamed, since: `wbhome relink undo` or `wbhome mv NEW OLD` first"),
            _ => error,
        }
    })?;
    match undone.is_empty() {
        true => Err(nothing_to_take_back()),
        false => Ok(undone),
    }
}

/// The source as it was copied, and what became of it.
struct Copied {
    tally: Tally,
    databases: Vec<Database>,
    /// All entries of the source that were ever seen.
    entries: u64,
    /// The home.
    tree: Tree,
}

fn copy(
    plan: &Plan,
    source: Tree,
    home: &LockedHome,
    rewriter: &Rewriter,
    record: &mut Record,
    ctx: &Context,
) -> Result<Copied> {
    let root = home.root();
    let dest = Dir::open(root).map_err(|e| Error::io("can not open the home", root, e))?;
    let job = Job {
        plan,
        home,
        dest: &dest,
        rewriter,
        ctx,
    };
    ctx.progress.stage("Copying", plan.totals.total());
    settle::clear_temporary(&dest, ctx)?;
    let mut tally = Transfer::new(&job, record)?
        .among(&source.folders)
        .run(&source.folders)?;
    ctx.progress
        .stage("Looking at the source again", Default::default());
    let swept = settle::sweep(&job, source, record, &mut tally)?;
    if !tally.databases.is_empty() {
        record.reread()?;
    }
    let transfer = Transfer::new(&job, record)?;
    let databases = database::rewrite_all(&transfer, record, &mut tally)?;
    // After databases were replaced: a further name of one is a name of the new one.
    settle::link_names(&transfer, &mut tally)?;
    settle::dress_folders(&transfer, &swept.folders, &mut tally)?;
    tally.skipped.extend(plan.left.iter().cloned());
    ctx.progress
        .stage("Writing to the disk", Default::default());
    transfer.sync_record()?;
    disk::sync_filesystem(&dest).map_err(|e| transfer::write_error("the home", root, e))?;
    let tree = settle::walk_home(&dest, ctx)?;
    settle::all_there(&swept.folders, &tree, &tally)?;
    ctx.progress.finish();
    Ok(Copied {
        tally,
        databases,
        entries: swept.entries + plan.left.len() as u64,
        tree,
    })
}
