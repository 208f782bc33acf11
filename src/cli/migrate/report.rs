//! How a migration is told: what would be done, what came of it, what differs since.

use std::fmt::Write as _;
use std::path::Path;

use super::super::output::{Console, STRONG, WARNING, styled};
use super::super::shortened::more;
use super::super::{findings, followed};
use crate::base::wire::WirePath;
use crate::base::{Context, human};
use crate::check::{Finding, FindingKind};
use crate::migrate::{Database, DifferenceKind, Outcome, Plan, References, Skipped, Verified};

/// What a migration would do.
pub(super) fn write_plan(out: &mut String, plan: &Plan, references: &References, dest: &Path) {
    let totals = &plan.totals;
    let _ = writeln!(
        out,
        "{} · {} · {}    from {}",
        human::plural(totals.sessions, "session", "sessions"),
        human::plural(totals.files, "file", "files"),
        human::size(totals.bytes),
        human::path(&plan.settings.source)
    );
    let _ = writeln!(out, "would be copied to {}", human::path(dest));
    let _ = writeln!(
        out,
        "\nReferences that would be rewritten, in any spelling:"
    );
    for mapped in &references.by_mapping {
        let _ = writeln!(
            out,
            "  {:>8}   {} → {}",
            human::count(mapped.count),
            human::name(&mapped.old),
            human::name(&mapped.new)
        );
    }
    followed::write_surveys(out, &plan.state);
    write_also_mentioned(out, references, "Add");
    write_skipped(out, &plan.left.iter().collect::<Vec<_>>());
    if plan.resumes() {
        let _ = writeln!(
            out,
            "\nA migration was stopped here: what is done would not be copied again."
        );
    }
    let _ = writeln!(out, "\nNothing was changed.");
}

/// What came of a migration.
pub(super) fn write_outcome(
    out: &mut String,
    outcome: &Outcome,
    dest: &Path,
    console: &Console,
    ctx: &Context,
) {
    write_head(out, outcome);
    write_classes(out, outcome);
    write_skipped(out, &outcome.skipped.iter().collect::<Vec<_>>());
    write_names(
        out,
        "Changed while they were copied, and are as they were at some moment",
        &outcome.restless,
    );
    write_databases(out, &outcome.databases);
    let undo = format!(
        "wbhome --home {} migrate undo",
        human::quoted(&outcome.home)
    );
    followed::write_followed(out, &outcome.state, &undo, console.verbose);
    if console.verbose {
        write_references(out, outcome);
    }
    write_damage(out, outcome, console.verbose);
    write_next(out, outcome, dest, ctx);
}

fn write_head(out: &mut String, outcome: &Outcome) {
    let totals = &outcome.totals;
    let head = format!(
        "{} · {} · {}",
        human::plural(totals.sessions, "session", "sessions"),
        human::plural(totals.files, "file", "files"),
        human::size(totals.bytes)
    );
    let _ = writeln!(
        out,
        "{}    from {} (untouched)\n",
        styled(STRONG, head),
        human::path(&outcome.source)
    );
}

/// `  copied     1,171   read back, equal`
fn row(out: &mut String, name: &str, count: u64, more: &str) {
    let line = format!("  {name:<10}{:>8}   {more}", human::count(count));
    let _ = writeln!(out, "{}", line.trim_end());
}

fn write_classes(out: &mut String, outcome: &Outcome) {
    let classes = &outcome.classes;
    row(out, "copied", classes.copied, "read back, equal");
    let references = &outcome.references;
    let mapped: Vec<String> = references
        .by_mapping
        .iter()
        .filter(|m| m.count > 0)
        .map(|m| {
            format!(
                "{} to {}",
                human::plural(m.count, "reference", "references"),
                human::name(&m.old)
            )
        })
        .collect();
    let first = mapped.first().map_or("", String::as_str);
    row(out, "rewritten", classes.rewritten, first);
    for more in mapped.iter().skip(1) {
        let _ = writeln!(out, "{:23}{more}", "");
    }
    if classes.linked > 0 {
        let mut parts = Vec::new();
        if classes.links_rewritten > 0 {
            parts.push(format!(
                "{} pointed into the new home",
                human::count(classes.links_rewritten)
            ));
        }
        if classes.links_kept > 0 {
            parts.push(format!(
                "{} left as they were",
                human::count(classes.links_kept)
            ));
        }
        if classes.hard_links > 0 {
            parts.push(human::plural(
                classes.hard_links,
                "further name of a file",
                "further names of files",
            ));
        }
        row(out, "links", classes.linked, &parts.join(", "));
    }
    row(out, "folders", classes.folders, "");
    if classes.skipped > 0 {
        row(out, "skipped", classes.skipped, "named below");
    }
    row(out, "together", classes.total, "everything in the source");
    if classes.kept > 0 {
        let _ = writeln!(
            out,
            "\n{} of these had been done by the run that was stopped, and were compared again.",
            human::count(classes.kept)
        );
    }
    if references.left > 0 {
        let _ = writeln!(
            out,
            "\n{} outside of fields that identify a place were left alone (--fields-only).",
            human::plural(references.left, "reference", "references")
        );
    }
}

/// So many names are printed of a list that may be long; JSON and the record have them all.
const NAMED: usize = 20;

fn write_skipped(out: &mut String, skipped: &[&Skipped]) {
    if skipped.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nSkipped");
    let (failed, by_design): (Vec<&Skipped>, Vec<&Skipped>) =
        skipped.iter().partition(|s| s.failed);
    for skipped in failed.iter().chain(&by_design).take(NAMED) {
        let reason = human::escape(&skipped.reason);
        let reason = match skipped.failed {
            true => styled(WARNING, reason),
            false => reason.into_owned(),
        };
        let _ = writeln!(out, "  {}   {reason}", human::path(&skipped.path));
    }
    if skipped.len() > NAMED {
        let _ = writeln!(out, "  {}", more(skipped.len() - NAMED, ""));
    }
}

fn write_names(out: &mut String, title: &str, names: &[WirePath]) {
    if names.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for name in names.iter().take(NAMED) {
        let _ = writeln!(out, "  {}", human::path(name));
    }
    if names.len() > NAMED {
        let _ = writeln!(out, "  {}", more(names.len() - NAMED, ""));
    }
}

pub(in crate::cli) fn write_databases(out: &mut String, databases: &[Database]) {
    let worth_telling = databases
        .iter()
        .filter(|d| d.references > 0 || !d.notes.is_empty());
    let databases: Vec<_> = worth_telling.collect();
    if databases.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nDatabases");
    for database in databases {
        let references = human::plural(database.references, "reference", "references");
        let checked = match database.failed {
            true => "",
            false => ", integrity checked",
        };
        let _ = writeln!(
            out,
            "  {}   {references}{checked}",
            human::path(&database.path)
        );
        for note in &database.notes {
            let _ = writeln!(out, "    {}", human::escape(note));
        }
    }
}

fn write_references(out: &mut String, outcome: &Outcome) {
    if outcome.references.by_spelling.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nReferences by spelling");
    for (spelling, count) in &outcome.references.by_spelling {
        let _ = writeln!(out, "  {spelling:<12} {:>8}", human::count(*count));
    }
    let list = outcome.record.join("references.jsonl");
    let _ = writeln!(out, "  each with file and offset: {}", human::path(&list));
}

fn write_damage(out: &mut String, outcome: &Outcome, all: bool) {
    let (problems, others): (Vec<Finding>, Vec<Finding>) = outcome
        .findings
        .iter()
        .cloned()
        .partition(|f| f.kind.is_problem());
    // What the move itself has put right is told apart from what a person has to look at.
    let (settled, problems): (Vec<Finding>, Vec<Finding>) = problems
        .into_iter()
        .partition(|f| f.kind == FindingKind::UnindexedSession);
    if problems.is_empty() {
        let _ = writeln!(out, "\nNo damage was found in any session.");
    } else {
        let title = match findings::sessions_touched(&problems) {
            0 => "Wrong with the old home".to_owned(),
            n => format!(
                "The sync drive had damaged {}",
                human::plural(n, "session", "sessions")
            ),
        };
        let _ = writeln!(out, "\n{}", styled(STRONG, title));
        findings::write(out, &problems, all);
    }
    if !settled.is_empty() {
        let _ = writeln!(out, "\nPut right by the move: they were not in the index");
        findings::write(out, &settled, all);
    }
    if !others.is_empty() {
        let _ = writeln!(out, "\nGood to know");
        findings::write(out, &others, all);
    }
    let sessions = &outcome.sessions;
    let _ = writeln!(
        out,
        "\nSessions: {} in the source, {} in the home. Index: {} before, {} now ({} added, {} missing).",
        human::count(sessions.source_folders),
        human::count(sessions.home_folders),
        human::plural(sessions.source_indexed, "entry", "entries"),
        human::count(sessions.home_indexed),
        human::count(sessions.added),
        human::count(sessions.missing)
    );
}

/// Other homes that the files mention, and how to have them rewritten, too.
fn write_also_mentioned(out: &mut String, references: &References, verb: &str) {
    if references.also_mentioned.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nAlso mentioned, and left alone:");
    for (root, count) in &references.also_mentioned {
        let _ = writeln!(
            out,
            "  {:>8}   {}",
            human::count(*count),
            human::escape(root)
        );
    }
    let _ = writeln!(
        out,
        "{verb} --map OLD=DEST for each that is this home under another name."
    );
}

fn write_next(out: &mut String, outcome: &Outcome, dest: &Path, ctx: &Context) {
    write_also_mentioned(
        out,
        &outcome.references,
        "To rewrite them too, migrate into a fresh DEST, and add",
    );
    let _ = writeln!(out);
    if let Some(command) = &outcome.command {
        let what = match command.exit {
            Some(0) => "passed".to_owned(),
            Some(code) => styled(WARNING, format!("failed with exit code {code}")),
            None => styled(WARNING, "was ended by a signal"),
        };
        let _ = writeln!(
            out,
            "Your own check, `{}`, {what}.",
            human::escape(&command.command)
        );
    }
    let until = outcome
        .keep_until
        .to_zoned_datetime(ctx.clock.time_zone())
        .date();
    let _ = writeln!(
        out,
        "Keep the original until {until}.  Next: {}",
        styled(
            STRONG,
            format!("wbhome check -v --home {}", human::quoted(dest))
        )
    );
}

/// What came of a comparison.
pub(super) fn write_verified(out: &mut String, verified: &Verified) {
    let _ = writeln!(
        out,
        "{} compared with {}: {} as they should be, {} not.",
        human::plural(verified.compared, "entry", "entries"),
        human::path(&verified.source),
        human::count(verified.equal),
        human::count(verified.differences.len() as u64)
    );
    let _ = writeln!(out, "index.json follows the home, and is not compared.");
    let mut last: Option<DifferenceKind> = None;
    for difference in &verified.differences {
        if last != Some(difference.kind) {
            let _ = writeln!(out, "\n{}", styled(STRONG, difference.kind.as_str()));
            last = Some(difference.kind);
        }
        let _ = writeln!(
            out,
            "  {}   {}",
            human::path(&difference.path),
            human::escape(&difference.detail)
        );
    }
    if verified.new_in_home > 0 {
        let _ = writeln!(
            out,
            "\n{} in the home that the source never had.",
            human::plural(verified.new_in_home, "file is", "files are")
        );
    }
}
