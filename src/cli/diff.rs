//! `wbhome diff`: what changed in a session since a commit.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use clap::Args;

use super::args::Global;
use super::complete;
use super::output::{Console, STRONG, stdout_is_terminal, styled};
use super::when::dated;
use super::{pager, place};
use crate::base::{Context, Exit, Result, human};
use crate::history::{
    self, ChangeKind, Diff, DiffRequest, Differing, Form, Line, LineKind, Told, Version,
};

const OLD: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();
const HEADING: Style = AnsiColor::Cyan.on_default();

/// Show what changed in a session since a commit
///
/// JSON is shown value by value, and long texts in it line by line. Without REV, since the last commit; with two, between
/// them. A REV is what git understands (HEAD~3, 1a2b3c4), or a moment: the last commit at or before it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome diff crawler                            since the last commit
  wbhome diff crawler/memory/notes.md yesterday  one file, since yesterday's first minute
  wbhome diff crawler 2w HEAD                    between two commits
  wbhome diff crawler --raw > crawler.patch      as a patch that git apply takes in the home")]
pub(super) struct DiffArgs {
    /// A session, or something in it
    #[arg(value_name = "SESSION[/PATH]", add = complete::inside_sessions())]
    what: String,
    /// Since when [default: the last commit]
    #[arg(value_name = "REV")]
    from: Option<String>,
    /// Up to when [default: the disk]
    #[arg(value_name = "REV")]
    to: Option<String>,
    /// The lines as they are stored, as a patch
    #[arg(long)]
    raw: bool,
    /// Print it at once, not a page at a time
    #[arg(long)]
    no_pager: bool,
}

pub(super) fn run(
    args: DiffArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    place::refuse_astray(&home)?;
    let request = DiffRequest {
        what: args.what,
        from: args.from,
        to: args.to,
        raw: args.raw,
    };
    let diff = history::diff(&home, &request, ctx)?;
    for unreadable in &diff.unreadable {
        console.warn(&format!(
            "{} can not be read: {}",
            human::path(&unreadable.path),
            human::escape(&unreadable.why)
        ));
    }
    if console.json {
        console.document("diff/1", &diff)?;
    } else if args.raw {
        patch(&diff, console, !args.no_pager)?;
    } else {
        let mut text = String::new();
        write(&mut text, &diff, ctx);
        pager::print(&text, console, !args.no_pager)?;
    }
    Ok(match diff.unreadable.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}

/// The patch; on a terminal as text that can not drive it.
fn patch(diff: &Diff, console: &Console, paged: bool) -> Result<()> {
    for file in diff.files.iter().filter(|f| f.form == Form::Binary) {
        console.warn(&format!(
            "{} is not in the patch: {}",
            human::path(&file.path),
            file.note.as_deref().unwrap_or("it is binary")
        ));
    }
    let patch = history::patch(diff);
    if !stdout_is_terminal() {
        return console.print_bytes(&patch);
    }
    let mut text = String::new();
    for line in patch.split_inclusive(|b| *b == b'\n') {
        let style = match line.first() {
            Some(b'-') => OLD,
            Some(b'+') => NEW,
            Some(b'@') => HEADING,
            _ => Style::new(),
        };
        let shown = safe(line.strip_suffix(b"\n").unwrap_or(line));
        let _ = writeln!(text, "{}", styled(style, shown));
    }
    pager::print(&text, console, paged)
}

fn write(out: &mut String, diff: &Diff, ctx: &Context) {
    let told = |told: &Told| format!("{}, {}", told.short, dated(told.at, ctx));
    let session = human::name(diff.session.as_str());
    let span = match &diff.to {
        None => format!("since {}", told(&diff.from)),
        Some(to) => format!("from {} to {}", told(&diff.from), told(to)),
    };
    if diff.files.is_empty() {
        let _ = writeln!(out, "Nothing of {session} differs {span}.");
        return;
    }
    let counts = [ChangeKind::Changed, ChangeKind::Added, ChangeKind::Deleted]
        .map(|kind| (kind, diff.files.iter().filter(|f| f.change == kind).count()));
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{} {}", human::count(*n as u64), kind.as_str()))
        .collect();
    let _ = writeln!(
        out,
        "{}  {span}: {}",
        styled(STRONG, session),
        counts.join(", ")
    );
    if let Some(was) = &diff.was {
        let _ = writeln!(out, "It was called {} then.", human::name(was));
    }
    for file in &diff.files {
        write_file(out, file);
    }
}

fn write_file(out: &mut String, file: &Differing) {
    let size = |version: &Option<Version>| version.as_ref().map(|v| human::size(v.bytes));
    let sizes = match (size(&file.before), size(&file.after)) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (one, other) => one.or(other).unwrap_or_default(),
    };
    let binary = match (file.form, &file.note) {
        (Form::Binary, None) => "binary, ",
        _ => "",
    };
    let _ = writeln!(
        out,
        "\n{}   {binary}{sizes}",
        styled(
            STRONG,
            format!("{:<9}{}", file.change.as_str(), human::path(&file.path))
        )
    );
    if let Some(note) = &file.note {
        let _ = writeln!(out, "  {}", human::escape(note));
    }
    for (n, hunk) in file.hunks.iter().enumerate() {
        match &hunk.heading {
            Some(heading) => {
                let heading = format!("@@ {}", human::escape(heading));
                let _ = writeln!(out, "{}", styled(HEADING, heading));
            }
            None if n > 0 => {
                let _ = writeln!(out, "{}", styled(HEADING, "@@"));
            }
            None => {}
        }
        for line in &hunk.lines {
            write_line(out, line);
        }
    }
}

fn write_line(out: &mut String, line: &Line) {
    let style = match line.kind {
        LineKind::Both => Style::new(),
        LineKind::Old => OLD,
        LineKind::New => NEW,
    };
    let shown = format!("{}{}", line.kind.sign(), safe(&line.text));
    let _ = writeln!(out, "{}", styled(style, shown));
    if line.unended {
        let _ = writeln!(out, "\\ no line break at the end");
    }
}

/// A line that can not drive the terminal; a tab in it is a tab.
fn safe(line: &[u8]) -> String {
    let parts: Vec<String> = line.split(|b| *b == b'\t').map(human::bytes).collect();
    parts.join("\t")
}
