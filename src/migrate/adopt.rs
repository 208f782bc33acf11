//! The copy becomes a home: what is missing is made, the index agrees with the disk, everything that is
//! wrong is listed, and the user's own smoke test is run.

use std::collections::BTreeMap;

use super::Copied;
use super::outcome::{Classes, Outcome, SessionCounts, SmokeTest};
use super::plan::Plan;
use super::preview::references;
use super::record::Record;
use super::tally::Tally;
use crate::base::{Context, Error, Kind, Result, human};
use crate::check::{self, Finding, Survey};
use crate::disk::{self, Dir, FileKind, Tree};
use crate::home::{Config, Counts, Index, IndexFile, LockedHome, SessionId, Status};
use crate::sessions::reconcile;

/// How long the original should be kept.
pub(super) const KEEP_DAYS: i64 = 14;

pub(super) fn adopt(
    plan: &Plan,
    home: &LockedHome,
    record: &Record,
    copied: Copied,
    resumed: bool,
    ctx: &Context,
) -> Result<Outcome> {
    let Copied {
        mut tally,
        databases,
        entries,
        tree,
    } = copied;
    ctx.progress
        .stage("Reading every session", Default::default());
    let (sessions, former) = adopt_index(plan, home, &tree, &mut tally, ctx)?;
    let findings = findings(plan, home, former.as_ref(), &mut tally, &tree, ctx)?;
    let mut warnings = std::mem::take(&mut tally.warnings);
    warnings.sort();
    warnings.extend(no_reference(plan, &tally));
    let command = smoke_test(home, &mut warnings, ctx)?;
    ctx.progress.finish();
    let now = ctx.clock.now();
    let keep = jiff::SignedDuration::from_hours(24 * KEEP_DAYS);
    let classes = classes(&tally, entries)?;
    tally.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    tally.restless.sort();
    tally.restless.dedup();
    Ok(Outcome {
        source: plan.settings.source.clone(),
        home: plan.settings.dest.clone(),
        started: record.started(),
        finished: now,
        keep_until: now.saturating_add(keep).unwrap_or(now),
        resumed,
        totals: plan.totals,
        classes,
        references: references(&plan.settings.mappings, &tally),
        skipped: tally.skipped,
        restless: tally.restless.into_iter().map(Into::into).collect(),
        databases,
        state: Vec::new(),
        sessions,
        findings,
        warnings,
        command,
        record: record.folder().to_path_buf(),
    })
}

fn classes(tally: &Tally, total: u64) -> Result<Classes> {
    let classes = Classes {
        copied: tally.copied,
        rewritten: tally.rewritten,
        linked: tally.links_rewritten + tally.links_kept + tally.hard_links,
        folders: tally.folders,
        skipped: tally.skipped.len() as u64,
        total,
        links_rewritten: tally.links_rewritten,
        links_kept: tally.links_kept,
        hard_links: tally.hard_links,
        kept: tally.kept,
    };
    if classes.sum() != total {
        return Err(
            Error::new(Kind::Bug, format!("the classes do not add up: {classes:?}"))
                .hint("the copy is complete; please report this with the migration record"),
        );
    }
    Ok(classes)
}

/// Zero references where some were expected is a warning, not a success.
fn no_reference(plan: &Plan, tally: &Tally) -> Vec<String> {
    let mut warnings = Vec::new();
    if tally.references() == 0 && plan.totals.sessions > 0 {
        let olds: Vec<String> = plan
            .settings
            .mappings
            .iter()
            .map(|m| human::name(&m.old).into_owned())
            .collect();
        warnings.push(format!(
            "no reference to {} was found in any file; if the home was written under another path, name it with --map OLD=NEW",
            olds.join(" or to ")
        ));
        return warnings;
    }
    for (i, mapping) in plan.settings.mappings.iter().enumerate() {
        let asked_for = i < plan.asked_for;
        if asked_for && tally.of_mapping(i) == 0 {
            warnings.push(format!(
                "no reference to {} was found",
                human::name(&mapping.old)
            ));
        }
    }
    warnings
}

/// Returns the counts, and the index as the source had it.
fn adopt_index(
    plan: &Plan,
    home: &LockedHome,
    tree: &Tree,
    tally: &mut Tally,
    ctx: &Context,
) -> Result<(SessionCounts, Option<Index>)> {
    home.complete()?;
    let (source_indexed, rebuild) = match IndexFile::check(home) {
        Ok(index) => (index.entries().count() as u64, false),
        Err(error) => {
            tally.warnings.push(format!("the index was damaged and has been rebuilt, the damaged one is in the trash: {error}"));
            (0, true)
        }
    };
    // As bytes: parsed it takes seven times as much, and the home's own is about to be parsed beside it.
    let former = match rebuild {
        false => Some(disk::read(&home.index_file())?.unwrap_or_default()),
        true => None,
    };
    let reconciling = reconcile::plan_knowing(home, counts_of(tree), rebuild, ctx)?;
    let reconciled = reconcile::apply(home, reconciling, ctx)?;
    let after = Index::read(home)?;
    let counts = SessionCounts {
        source_folders: plan.totals.sessions,
        source_indexed,
        home_folders: super::plan::session_folders(tree),
        home_indexed: after.entries().count() as u64,
        added: reconciled.changes.added.len() as u64,
        missing: after
            .entries()
            .filter(|e| e.status() == Status::Missing)
            .count() as u64,
    };
    drop(after);
    let parsed = |content: Vec<u8>| match content.is_empty() {
        true => Some(Index::default()),
        false => Index::parse(&content).ok(),
    };
    Ok((counts, former.and_then(parsed)))
}

/// What each session holds, as the walk of the home has seen it.
fn counts_of(tree: &Tree) -> BTreeMap<SessionId, Counts> {
    let mut counts: BTreeMap<SessionId, Counts> = BTreeMap::new();
    for folder in &tree.folders {
        let mut parts = folder.rel.iter();
        let (Some(first), Some(session)) = (parts.next(), parts.next()) else {
            continue;
        };
        let Some(id) = SessionId::of_folder(session).filter(|_| first == "sessions") else {
            continue;
        };
        let within = parts.as_path();
        let counts = counts.entry(id).or_default();
        for entry in folder
            .entries
            .iter()
            .filter(|e| e.meta.kind == FileKind::File)
        {
            counts.add(&within.join(&entry.name), &entry.meta);
        }
    }
    // One that holds no file was last active when it was made: that is for the scan to see.
    counts.retain(|_, counts| counts.total().files > 0);
    counts
}

/// What is wrong is judged by the index of the source: in the home's own, what it lacked has been added.
fn findings(
    plan: &Plan,
    home: &LockedHome,
    former: Option<&Index>,
    tally: &mut Tally,
    tree: &Tree,
    ctx: &Context,
) -> Result<Vec<Finding>> {
    let root = home.root();
    let dir = Dir::open(root).map_err(|e| Error::io("can not open the home", root, e))?;
    let survey = Survey {
        root: &dir,
        root_path: root,
        tree,
        index: former,
        defects: std::mem::take(&mut tally.defects),
        only: None,
    };
    let mut findings = check::survey(&survey, ctx.stop)?;
    let old = |mapping: u16| {
        let mapping = plan.settings.mappings.get(usize::from(mapping));
        std::path::PathBuf::from(mapping.map_or("", |m| m.old.as_str()))
    };
    findings.extend(
        tally
            .doubtful
            .drain(..)
            .map(|(path, m, n)| Finding::doubtful_path(path, &old(m), n)),
    );
    findings.extend(
        tally
            .binary
            .drain(..)
            .map(|(path, n)| Finding::binary_path(path, &old(0), n)),
    );
    let unread: BTreeMap<_, _> = tally
        .skipped
        .iter()
        .filter(|s| s.failed)
        .map(|s| (&s.path.0, &s.reason))
        .collect();
    findings.extend(
        unread
            .into_iter()
            .map(|(path, why)| Finding::unreadable(path, why)),
    );
    check::survey::settle(&mut findings);
    Ok(findings)
}

/// What came of a migration that was finished before. The user's own test is run once more if it failed then:
/// its cause may be gone.
pub(super) fn again(
    home: &LockedHome,
    record: &mut Record,
    mut outcome: Outcome,
    ctx: &Context,
) -> Result<Outcome> {
    if outcome.failed_its_test() {
        let mut warnings = Vec::new();
        outcome.command = smoke_test(home, &mut warnings, ctx)?;
        outcome.warnings.extend(warnings);
        record.amend(&outcome)?;
    }
    Ok(outcome)
}

/// Runs `[check] command` in the home.
fn smoke_test(
    home: &LockedHome,
    warnings: &mut Vec<String>,
    ctx: &Context,
) -> Result<Option<SmokeTest>> {
    let config = match Config::load(home) {
        Ok(config) => config,
        Err(error) => {
            let hint = error
                .hints()
                .first()
                .map(|h| format!("; {h}"))
                .unwrap_or_default();
            warnings.push(format!(
                "the settings of the home are not understood: {error}{hint}"
            ));
            return Ok(None);
        }
    };
    let Some(command) = config
        .check
        .command
        .as_ref()
        .and_then(|c| c.of(home))
        .map(str::to_owned)
    else {
        return Ok(None);
    };
    let exit = disk::run_in(home.root(), &command, b"", ctx.stop)?;
    Ok(Some(SmokeTest { command, exit }))
}
