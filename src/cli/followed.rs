//! How it is told what the agent application's own folder follows, and has followed.

use std::fmt::Write as _;

use super::output::{STRONG, styled};
use crate::base::wire::WirePath;
use crate::base::{Exit, human};
use crate::home::swap::Changed;
use crate::migrate::{Followed, Mention, Survey, UndoPlan, Undone};
use crate::state::database::Kept;

/// So many names are printed of a list that may be long; JSON and the record have them all.
const NAMED: usize = 5;

/// What state folders would have to follow.
pub(super) fn write_surveys(out: &mut String, surveys: &[Survey]) {
    for survey in surveys {
        let _ = writeln!(
            out,
            "\nThe agent's own folder would follow: {}",
            human::path(&survey.folder)
        );
        let _ = writeln!(
            out,
            "  {} in {}, {} renamed, {}",
            human::plural(survey.references, "reference", "references"),
            human::plural(survey.files, "file", "files"),
            human::plural(survey.renamed, "project folder", "project folders"),
            match survey.database_mentions {
                0 => "nothing in its database".to_owned(),
                _ => "and rows of its database".to_owned(),
            }
        );
    }
}

/// What state folders have followed.
pub(super) fn write_followed(out: &mut String, state: &[Followed], undo: &str, all: bool) {
    for followed in state {
        let title = match followed.undone {
            true => "The agent's own folder had followed, and was given back as it was",
            false => "The agent's own folder has followed",
        };
        let _ = writeln!(
            out,
            "\n{}: {}",
            styled(STRONG, title),
            human::path(&followed.folder)
        );
        let mut parts = vec![
            human::plural(followed.references.changed, "reference", "references")
                + " in "
                + &human::plural(followed.rewritten, "file", "files"),
        ];
        if followed.links > 0 {
            parts.push(human::plural(followed.links, "link", "links"));
        }
        if followed.renamed > 0 {
            let renamed = human::plural(followed.renamed, "project folder", "project folders");
            parts.push(renamed + " renamed");
        }
        let _ = writeln!(out, "  {}", parts.join(", "));
        write_database(out, followed, all);
        write_mentions(out, "Binary, left as they are", &followed.binary, all);
        write_mentions(
            out,
            "A reference or prose, left as they are",
            &followed.doubtful,
            all,
        );
        for unclear in &followed.unclear {
            let why = human::escape(&unclear.why);
            let _ = writeln!(
                out,
                "  left as it is: {}   {why}",
                human::path(&unclear.path)
            );
        }
        match &followed.record {
            _ if followed.undone => {}
            Some(record) => {
                let record = human::name(record);
                let _ = writeln!(
                    out,
                    "  The former state is kept in {record}; `{undo}` gives it back."
                );
            }
            None => {
                let _ = writeln!(out, "  `{undo}` gives it back.");
            }
        }
    }
}

fn write_database(out: &mut String, followed: &Followed, all: bool) {
    let Some(database) = &followed.database else {
        return;
    };
    let rows: Vec<String> = database
        .rows
        .iter()
        .map(|(column, n)| format!("{} {}", human::name(column), human::count(*n)))
        .collect();
    let rows = match rows.is_empty() {
        true => "nothing to change".to_owned(),
        false => format!("rows changed: {}, integrity checked", rows.join(", ")),
    };
    let _ = writeln!(out, "  workbuddy.db   {rows}");
    let shown = |n: usize| if all { usize::MAX } else { n };
    for merged in database.merged.iter().take(shown(NAMED)) {
        let kept = match merged.kept {
            Kept::Old => &merged.old,
            Kept::New => &merged.new,
        };
        let _ = writeln!(
            out,
            "    workspaces had both {} and {}; the row of {} was opened last and is kept",
            human::name(&merged.old),
            human::name(&merged.new),
            human::name(kept)
        );
    }
    for left in &database.left {
        let _ = writeln!(
            out,
            "    {}.{} mentions it in {}, left as it is",
            human::name(&left.table),
            human::name(&left.column),
            human::plural(left.rows, "row", "rows")
        );
    }
    for note in &database.notes {
        let _ = writeln!(out, "    {}", human::escape(note));
    }
}

fn write_mentions(out: &mut String, title: &str, mentions: &[Mention], all: bool) {
    if mentions.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {title}: {}",
        human::plural(mentions.len() as u64, "file", "files")
    );
    let shown = if all { usize::MAX } else { NAMED };
    for mention in mentions.iter().take(shown) {
        let times = human::plural(mention.count, "mention", "mentions");
        let _ = writeln!(out, "    {}   {times}", human::path(&mention.path));
    }
}

/// Tells what was taken back, for every verb that does so.
pub(super) fn write_undone(out: &mut String, undone: &[Undone]) {
    if undone.is_empty() {
        let _ = writeln!(out, "It was stopped before, and is completed now.");
    }
    for Undone { folders, taken } in undone {
        let _ = writeln!(out, "{}", names(folders));
        let _ = writeln!(
            out,
            "  {} as before, {} by their former name",
            human::plural(taken.restored, "file is", "files are"),
            human::plural(taken.moved, "folder goes", "folders go"),
        );
        for path in &taken.overtaken {
            let path = human::path(path);
            let _ = writeln!(
                out,
                "  {path} was changed in the last moment; what stood there is in the record"
            );
        }
        if let Some(trash) = &taken.trash {
            write_changed(
                out,
                &taken.replaced,
                &format!(
                    "changed since; what had to give way is in {}",
                    human::name(trash)
                ),
            );
        }
    }
}

fn names(folders: &[WirePath]) -> String {
    let names: Vec<String> = folders.iter().map(|folder| human::path(folder)).collect();
    names.join(", ")
}

fn write_changed(out: &mut String, changed: &[Changed], what: &str) {
    if changed.is_empty() {
        return;
    }
    let n = human::count(changed.len() as u64);
    let _ = writeln!(out, "  {n} {what}:");
    for changed in changed {
        let _ = writeln!(out, "    {} {}", human::path(&changed.path), changed.what);
    }
}

/// What would be taken back, or refused.
pub(super) fn write_undo_plan(out: &mut String, plan: &UndoPlan, force: bool) {
    let is_refused = undo_exit(plan, force) != Exit::Done;
    for would in &plan.would {
        let what = match is_refused {
            true => "would not be given back, as something was changed since",
            false => "would be given back as it was",
        };
        let _ = writeln!(out, "{what}: {}", names(&would.folders));
        let what = match force {
            true => "changed since, and would go to the trash",
            false => "changed since, and in the way",
        };
        write_changed(out, &would.changed, what);
    }
    if is_refused {
        let _ = writeln!(
            out,
            "\n--force takes it back all the same; what was changed goes to the trash then."
        );
    }
    let _ = writeln!(out, "\nNothing was changed.");
}

/// The exit code that taking back would have.
pub(super) fn undo_exit(plan: &UndoPlan, force: bool) -> Exit {
    let is_changed = plan.would.iter().any(|would| !would.changed.is_empty());
    match is_changed && !force {
        true => Exit::Failed,
        false => Exit::Done,
    }
}
