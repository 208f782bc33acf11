//! The rebuilt home, opened as the program would open it: settings, index, check, databases, history, and the user's
//! own test. What is wrong with the live home in the same way is not the backup's fault.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::report::{Command, Report, Wrong};
use crate::base::{Context, Error, Kind, Result};
use crate::check::{self, Finding, FindingKind, Options};
use crate::disk::{self, Dir, Entry};
use crate::history;
use crate::home::{Config, Home, Index};
use crate::migrate;
use crate::paths::database;
use crate::sessions::reconcile;
use crate::state::live_copy::{check_database, databases_in};

/// Looks at the rebuilt home beside the live one.
///
/// # Errors
/// A home that can not be read at all, and interruption.
pub(super) fn look(
    rebuilt: &Home,
    live: &Home,
    was: &Path,
    user_home: Option<&Path>,
    report: &mut Report,
    context: &Context,
) -> Result<()> {
    if let Err(error) = Config::load(rebuilt) {
        report.wrong.push(Wrong {
            thing: "the home itself".to_owned(),
            path: PathBuf::from("wbhome.toml").into(),
            why: error.to_string(),
        });
    }
    match reconcile::plan(rebuilt, false, context) {
        Ok(plan) => {
            let count = changed(&plan);
            if count > 0 {
                let own = reconcile::plan(live, false, context).map(|plan| changed(&plan));
                report.index_changes = count.saturating_sub(own.unwrap_or(0));
            }
        }
        Err(error) if error.kind() == Kind::Interrupted => return Err(error),
        Err(error) => report.wrong.push(Wrong {
            thing: "the home itself".to_owned(),
            path: PathBuf::from("index.json").into(),
            why: error.to_string(),
        }),
    }
    report.findings = findings(rebuilt, was, user_home, context)?;
    if !report.findings.is_empty() {
        let known = findings(live, live.root(), user_home, context)?;
        let known: BTreeSet<_> = known.iter().map(what).collect();
        report
            .findings
            .retain(|found| !known.contains(&what(found)));
    }
    report.history = history::damage(rebuilt, context)?;
    if !report.history.is_empty() {
        let known = history::damage(live, context)?;
        let same = |one: &history::Damage| {
            let within = one.path.strip_prefix(rebuilt.root()).unwrap_or(&one.path);
            known
                .iter()
                .any(|known| known.what == one.what && known.path.ends_with(within))
        };
        report.history.retain(|one| !same(one));
    }
    Ok(())
}

/// By what a finding is known again.
fn what(found: &Finding) -> (FindingKind, &Path, Option<u64>) {
    (found.kind, &found.path, found.count)
}

fn changed(plan: &reconcile::Plan) -> u64 {
    plan.changes.entries.saturating_sub(plan.changes.unchanged)
}

/// What `wbhome check` says, as if the home lay at `place`.
fn findings(
    home: &Home,
    place: &Path,
    user_home: Option<&Path>,
    context: &Context,
) -> Result<Vec<Finding>> {
    let root =
        Dir::open(home.root()).map_err(|e| Error::io("can not open the home", home.root(), e))?;
    let index = Index::read(home).ok();
    let options = Options::default();
    let mut outcome = check::inspect(&root, place, index.as_ref(), &options, context)?;
    migrate::add_stale_paths(home, &root, &options, user_home, &mut outcome, context)?;
    Ok(outcome.findings)
}

/// Checks every database below a rebuilt folder. One that has a log or journal beside it is checked in a copy, in
/// `scratch`. One that is the same in the live folder is as sound as that.
///
/// # Errors
/// A folder that can not be read, and interruption.
pub(super) fn databases(
    rebuilt: &Path,
    live: Option<&Path>,
    scratch: &Path,
    thing: &str,
    report: &mut Report,
    context: &Context,
) -> Result<()> {
    let fail = |e| Error::io("can not read", rebuilt, e);
    let root = Dir::open(rebuilt).map_err(fail)?;
    let skip = |rel: &Path, entry: &Entry| rel.as_os_str().is_empty() && entry.name == ".git";
    let tree = disk::walk(&root, &skip, context.stop)?;
    for rel in databases_in(&root, &tree) {
        context.stop.check()?;
        report.databases += 1;
        let Err(error) = check_one(&root, rebuilt, &rel, scratch, context) else {
            continue;
        };
        match is_same(&root, live, &rel) {
            true => report.warnings.push(format!(
                "a database of {thing} is not sound, in the live folder and so in the backup: {error}"
            )),
            false => report.unsound.push(Wrong {
                thing: thing.to_owned(),
                path: rel.into(),
                why: error.to_string(),
            }),
        }
    }
    Ok(())
}

fn check_one(
    root: &Dir,
    folder: &Path,
    rel: &Path,
    scratch: &Path,
    context: &Context,
) -> Result<()> {
    let fail = |e| Error::io("can not read the database", rel, e);
    let (parent, name) = (
        rel.parent().unwrap_or(Path::new("")),
        rel.file_name().unwrap_or_default(),
    );
    let dir = root.open_beneath(parent).map_err(fail)?;
    let with = |suffix: &str| {
        let mut name = name.to_owned();
        name.push(suffix);
        name
    };
    let beside: Vec<OsString> = ["-wal", "-journal"]
        .map(with)
        .into_iter()
        .filter(|name| matches!(dir.find(name), Ok(Some(meta)) if meta.size > 0))
        .collect();
    if beside.is_empty() {
        return check_database(&folder.join(rel));
    }
    let into = Dir::open(scratch).map_err(fail)?;
    let place = OsString::from("database");
    let _ = disk::remove_tree(&into, &place);
    into.make(&place).map_err(fail)?;
    let copy = into.open_beneath(Path::new(&place)).map_err(fail)?;
    for file in beside.iter().map(OsString::as_os_str).chain([name]) {
        disk::duplicate_as(&dir, file, &copy, file, context.stop).map_err(fail)?;
    }
    let connection = database::open(&scratch.join(&place).join(name))?;
    let checked = database::check_integrity(&connection);
    drop(connection);
    let _ = disk::remove_tree(&into, &place);
    checked
}

fn is_same(root: &Dir, live: Option<&Path>, rel: &Path) -> bool {
    let same = || {
        let live = Dir::open(live?).ok()?;
        let (parent, name) = (rel.parent()?, rel.file_name()?);
        let here = root.open_beneath(parent).ok()?;
        let there = live.open_beneath(parent).ok()?;
        let stop = crate::base::Stop::new();
        let held = |one, other| disk::holds_all((one, name), (other, name), &stop).ok();
        Some(held(&here, &there)? && held(&there, &here)?)
    };
    same().unwrap_or(false)
}

/// Runs the user's own test in the rebuilt home.
///
/// # Errors
/// When it can not be started, and interruption.
pub(super) fn command(live: &Home, rebuilt: &Home, context: &Context) -> Result<Option<Command>> {
    let config = Config::load(live)?;
    let command = config.drill.command.as_ref().and_then(|c| c.of(live));
    let Some(command) = command.map(str::to_owned) else {
        return Ok(None);
    };
    let exit = disk::run_in(rebuilt.root(), &command, b"", context.stop)?;
    Ok(Some(Command { command, exit }))
}
