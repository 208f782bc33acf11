//! `wbhome migrate finish`: the original in one verified file.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::super::args::Global;
use super::super::output::{Console, STRONG, WARNING, styled};
use super::super::place;
use super::super::when::moment;
use crate::base::{Context, Exit, Result, human};
use crate::home::Config;
use crate::migrate::Difference;
use crate::migrate::finish::{self, Finished, Left, Plan};

#[derive(Debug, Args)]
pub(super) struct FinishArgs {
    /// The folder that gets the pack: on another disk, outside of the home and of what is synced
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: PathBuf,
    /// Go on where there may be too little room
    #[arg(long)]
    force: bool,
}

/// How that is told which the migration had found otherwise.
const SINCE: &str = "missing in the original, or not as they were migrated";

/// So many names are printed when not all are.
const NAMES: usize = 10;

pub(super) fn run(
    args: &FinishArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    if !global.dry_run {
        place::refuse_untrusted(&home)?;
    }
    let mut plan = finish::plan(&home, &args.to, args.force, ctx)?;
    for warning in &plan.warnings {
        console.warn(warning);
    }
    if global.dry_run {
        finish::preview(&mut plan, ctx)?;
        console.result("migrate-finish-plan/1", &plan, |out| {
            write_plan(out, &plan, console)
        })?;
        return Ok(plan.exit());
    }
    if let Some(before) = &plan.before {
        console.note(&format!(
            "The original was packed before, into {}; that stays, and another pack is made.",
            human::path(&before.path)
        ));
    }
    let level = Config::load(&home)?.archive.level;
    let (record, finished) = finish::apply(plan, level, ctx)?;
    // Only now: nobody has to wait while the original is read.
    let better = place::lock(&home, "migrate finish", global, console, ctx)
        .and_then(|home| finish::note(&home, &record, &finished))
        .map_err(|error| {
            error.hint(format!(
                "the pack is there and whole, and only the record does not know of it: {}",
                human::path(&finished.path)
            ))
        })?;
    console.report("migrate-finish/1", &finished, |out| {
        write_finished(out, &finished, console, ctx);
    })?;
    for (what, names) in left_behind(&finished) {
        console.warn(&format!("{what}: {names}"));
    }
    if let Some(better) = better {
        console.note(&format!(
            "The pack of {} is whole, and stays the one that `wbhome migrate status` tells of: {}",
            moment(better.at, ctx),
            human::path(&better.path)
        ));
    }
    Ok(finished.exit())
}

/// What speaks against the pack, for standard error.
fn left_behind(finished: &Finished) -> Vec<(&'static str, u64)> {
    [
        ("not in the pack as they were", finished.left.len() as u64),
        (
            "changed since they were packed",
            finished.changed.len() as u64,
        ),
        (SINCE, finished.since.len() as u64),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .collect()
}

fn write_plan(out: &mut String, plan: &Plan, console: &Console) {
    let files = human::plural(plan.files, "file", "files");
    let head = styled(STRONG, format!("{files} · {}", human::size(plan.content)));
    let _ = writeln!(out, "{head}    from {}", human::path(&plan.source));
    let _ = writeln!(
        out,
        "would be packed into {}, where {} are left",
        human::path(&plan.path),
        human::size(plan.room)
    );
    write_left(out, &plan.left, console.verbose);
    write_since(out, &plan.since, console.verbose);
    if let Some(before) = &plan.before {
        let _ = writeln!(out, "\nPacked before: {}", human::path(&before.path));
    }
    let _ = writeln!(out, "\nNothing was changed.");
}

fn write_finished(out: &mut String, finished: &Finished, console: &Console, ctx: &Context) {
    let files = human::plural(finished.files, "file", "files");
    let head = styled(
        STRONG,
        format!("{files} · {}", human::size(finished.content)),
    );
    let _ = writeln!(out, "{head}    from {}", human::path(&finished.source));
    let _ = writeln!(
        out,
        "packed into {}, {}; read back and compared",
        human::path(&finished.path),
        human::size(finished.bytes)
    );
    let _ = writeln!(out, "BLAKE3 {}", finished.blake3);
    write_left(out, &finished.left, console.verbose);
    if !finished.changed.is_empty() {
        let _ = writeln!(out, "\nChanged in the original since they were packed:");
        let shown = shown(finished.changed.len(), console.verbose);
        for changed in finished.changed.iter().take(shown) {
            let (path, what) = (human::path(&changed.path), human::escape(&changed.what));
            let _ = writeln!(out, "  {path}   {what}");
        }
        write_more(out, finished.changed.len() - shown);
    }
    write_since(out, &finished.since, console.verbose);
    let _ = writeln!(out);
    write_when(out, finished, ctx);
}

/// What `migrate status` says of the pack.
pub(super) fn write_packed(out: &mut String, packed: &Finished, ctx: &Context) {
    let _ = writeln!(
        out,
        "\nThe original was packed {} into {}, {}.",
        moment(packed.at, ctx),
        human::path(&packed.path),
        human::size(packed.bytes)
    );
    let is_there = packed.is_there();
    if !is_there {
        let gone = "The pack is not there now, or not as long as it was: is its disk not mounted? Keep the original as long as it is not seen.";
        let _ = writeln!(out, "{}", styled(WARNING, gone));
    }
    for (what, n) in left_behind(packed) {
        let _ = writeln!(
            out,
            "{}",
            styled(WARNING, format!("{} {what}.", human::count(n)))
        );
    }
    if is_there || !packed.is_complete() {
        write_when(out, packed, ctx);
    }
}

/// When the original may go.
fn write_when(out: &mut String, packed: &Finished, ctx: &Context) {
    let date = packed
        .keep_until
        .to_zoned_datetime(ctx.clock.time_zone())
        .date();
    let removing = "removing it is for you, in the sync client's own way: it goes on every device";
    let _ = match (packed.is_complete(), ctx.clock.now() >= packed.keep_until) {
        (false, _) if !packed.since.is_empty() => writeln!(
            out,
            "Keep the original, and the home: the original is not what was migrated any more, nor is the pack. `wbhome migrate verify`\ncompares both; when that is mended, run `wbhome migrate finish` again."
        ),
        (false, _) => writeln!(
            out,
            "Keep the original: the pack does not hold all of it. Run `wbhome migrate finish` again when that is mended."
        ),
        (true, true) => writeln!(out, "The original may go now; {removing}."),
        (true, false) => writeln!(
            out,
            "The pack is new: from {date} on, the original may go; {removing}."
        ),
    };
}

fn write_left(out: &mut String, left: &[Left], all: bool) {
    if left.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(WARNING, "Not in the pack as they are:"));
    let shown = shown(left.len(), all);
    for left in left.iter().take(shown) {
        let (path, why) = (human::path(&left.path), human::escape(&left.why));
        let _ = writeln!(out, "  {path}   {why}");
    }
    write_more(out, left.len() - shown);
}

fn write_since(out: &mut String, since: &[Difference], all: bool) {
    if since.is_empty() {
        return;
    }
    let title = "Missing in the original, or not as they were migrated:";
    let _ = writeln!(out, "\n{}", styled(WARNING, title));
    let shown = shown(since.len(), all);
    for Difference { path, kind, detail } in since.iter().take(shown) {
        let (path, detail) = (human::path(path), human::escape(detail));
        let _ = writeln!(out, "  {path}   {}: {detail}", kind.as_str());
    }
    write_more(out, since.len() - shown);
}

fn shown(all: usize, verbose: bool) -> usize {
    match verbose {
        true => all,
        false => all.min(NAMES),
    }
}

fn write_more(out: &mut String, more: usize) {
    if more > 0 {
        let _ = writeln!(out, "  … {} more: -v", human::count(more as u64));
    }
}
