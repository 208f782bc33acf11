//! `wbhome backup run`.

use std::fmt::Write as _;

use super::*;
use crate::backup::run::{self, Gone, Outcome, Plan, Why};
use crate::base::human;
use crate::cli::when::moment;

pub(super) fn run(
    args: StoreArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let mut request = place::backup_request(&home)?;
    let folders = args.folders(&home)?;
    if global.dry_run {
        request.explain = true;
        let plan = |folder: &Path| {
            let store = Store::open_of(folder, &home)?;
            let plan = run::plan(&home, &store, &request, ctx)?;
            let exit = match plan.unread.is_empty() {
                true => Exit::Done,
                false => Exit::Partial,
            };
            Ok((plan, exit))
        };
        let write = |out: &mut String, plan: &Plan| write_plan(out, plan, console, ctx);
        return in_each(folders, "backup-run-plan/1", global, console, plan, write);
    }
    let act = |folder: &Path| {
        let store = lock(folder, &home, "backup run", global, ctx)?;
        let plan = run::plan(&home, &store, &request, ctx)?;
        let outcome = run::apply(&home, &store, plan, &request, ctx)?;
        let exit = outcome.exit();
        warn(&outcome, console, global, ctx);
        Ok((outcome, exit))
    };
    let write = |out: &mut String, outcome: &Outcome| write(out, outcome, console, ctx);
    in_each(folders, "backup-run/1", global, console, act, write)
}

fn warn(outcome: &Outcome, console: &Console, global: &Global, ctx: &Context) {
    let again = place::again(global);
    for note in &outcome.notes {
        console.warn(&place::spelled(note, &again));
    }
    if let Some(clock) = outcome.clock {
        console.warn(&format!(
            "the clock ({clock}) is behind the newest snapshot: this one is dated after it, and nothing is pruned until the clock is right"
        ));
    }
    for unread in &outcome.unread {
        let path = match unread.path.as_os_str().is_empty() {
            true => String::new(),
            false => format!("{}: ", human::path(&unread.path)),
        };
        let why = human::escape(&unread.why);
        console.warn(&format!("could not be read, {}: {path}{why}", unread.what));
    }
    for lost in &outcome.lost {
        console.warn(&format!(
            "is not in the store any more, or not as it was written: {lost}"
        ));
    }
    if !outcome.no_room.is_empty() {
        console.warn(&format!(
            "there is no room in {} for {}: {}",
            human::path(&outcome.store),
            human::plural(outcome.no_room.len() as u64, "thing", "things"),
            some(&outcome.no_room)
        ));
        console.hint("their former packs are kept; make room, or set a shorter [backup] keep and run `wbhome backup prune`");
    }
    for shrunken in &outcome.shrunken {
        console.warn(&format!(
            "{} holds less than it did ({}, since {}); the former pack is kept: {}",
            shrunken.what,
            shrunken.why,
            moment(shrunken.since, ctx),
            human::name(&shrunken.pack)
        ));
        let id = human::argument(&shrunken.what);
        console.hint(&format!("if that is right: {again} backup accept {id}"));
    }
    if let Some(message) = newly_missing(outcome) {
        console.warn(&message);
    }
}

/// What the last snapshot had, and this is the first without.
fn newly_missing(outcome: &Outcome) -> Option<String> {
    let new = outcome.missing.iter().filter(|gone| gone.new);
    let names: Vec<String> = new.map(|gone| gone.what.clone()).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!(
            "{one} is not there any more; its last pack is kept"
        )),
        many => Some(format!(
            "{} are not there any more; their last packs are kept",
            some(many)
        )),
    }
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 {
        let _ = write!(text, " and {} more", human::count(names.len() as u64 - 3));
    }
    text
}

fn line(out: &mut String, what: &str, n: u64, rest: &str) {
    if n > 0 {
        let text = format!("  {what:<10}{:>6}   {rest}", human::count(n));
        let _ = writeln!(out, "{}", text.trim_end());
    }
}

fn head(out: &mut String, store: &Path, at: &str) {
    let _ = writeln!(out, "{}    {at}\n", styled(STRONG, human::path(store)));
}

fn write(out: &mut String, outcome: &Outcome, console: &Console, ctx: &Context) {
    let at = outcome
        .snapshot
        .map(|at| moment(at, ctx))
        .unwrap_or_default();
    head(out, &outcome.store, &format!("snapshot {at}"));
    let sum = |of: fn(&run::Packed) -> u64| outcome.packed.iter().map(of).sum::<u64>();
    line(
        out,
        "packed",
        outcome.packed.len() as u64,
        &format!(
            "{}, {}; {} in the store",
            human::plural(sum(|p| p.files), "file", "files"),
            human::size(sum(|p| p.bytes)),
            human::size(sum(|p| p.packed))
        ),
    );
    if console.verbose {
        for packed in &outcome.packed {
            let _ = writeln!(out, "{:19}{}  {}", "", packed.what, why(packed.why));
        }
    }
    line(out, "unchanged", outcome.unchanged, "");
    line(
        out,
        "not due",
        outcome.waiting.len() as u64,
        "settings, packed every [backup] settings_every",
    );
    line(
        out,
        "restless",
        sum(|p| p.restless),
        "written to meanwhile: packed as they were when they were looked at, and again next time",
    );
    let gone = |gone: &[Gone], kept: &str| {
        let names: Vec<String> = gone.iter().map(|gone| gone.what.clone()).collect();
        format!("{}: {kept}", some(&names))
    };
    line(
        out,
        "missing",
        outcome.missing.len() as u64,
        &gone(
            &outcome.missing,
            "not there any more; the last packs are kept",
        ),
    );
    line(
        out,
        "removed",
        outcome.removed.len() as u64,
        &gone(&outcome.removed, "kept for [backup] keep_deleted"),
    );
    line(
        out,
        "let go",
        outcome.let_go,
        "packs that nothing needs, to make room",
    );
    if outcome.packed.is_empty() && outcome.unchanged == 0 {
        let _ = writeln!(out, "  nothing to back up");
    }
}

fn why(why: Why) -> &'static str {
    match why {
        Why::New => "new",
        Why::Changed => "changed",
        Why::Restless => "was being written when it was packed last",
        Why::Unread => "can be read now",
        Why::Lost => "its pack is not in the store any more",
    }
}

fn write_plan(out: &mut String, plan: &Plan, console: &Console, ctx: &Context) {
    let after = plan.after.map(|at| moment(at, ctx));
    let after = after.map_or("the first snapshot".to_owned(), |after| {
        format!("after the snapshot of {after}")
    });
    head(out, &plan.store, &after);
    for note in &plan.notes {
        console.warn(note);
    }
    for unread in &plan.unread {
        console.warn(&format!(
            "could not be read, {}: {}",
            unread.what,
            human::escape(&unread.why)
        ));
    }
    for todo in &plan.packs {
        let mut because = match (&todo.first, todo.why) {
            (Some(first), Why::Changed) => first.clone(),
            (None, Why::Changed) => "its times, or what lies around it, were changed".to_owned(),
            (_, other) => why(other).to_owned(),
        };
        match todo.more {
            Some(more) if more > 0 => because += &format!(" and {} more", human::count(more)),
            _ => {}
        }
        let _ = writeln!(
            out,
            "  pack  {}  {}, {}  ({because})",
            todo.what,
            human::plural(todo.files, "file", "files"),
            human::size(todo.bytes)
        );
    }
    let total: u64 = plan.packs.iter().map(|todo| todo.bytes).sum();
    let _ = writeln!(
        out,
        "\n{} to pack, {}; {} unchanged",
        human::plural(plan.packs.len() as u64, "thing", "things"),
        human::size(total),
        human::count(plan.unchanged)
    );
}
