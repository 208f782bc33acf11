//! `wbhome search`: a pattern in what sessions hold.

mod excerpt;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::args::Global;
use super::complete;
use super::output::{Console, FAINT, STRONG, stdout_is_terminal, styled, terminal_width};
use super::pager::Paged;
use super::place;
use super::when::exact;
use super::width::{end_of, fit};
use crate::base::{Context, Exit, Result, human};
use crate::browse::search::{
    self, Count, File, Hit, Meaning, Outcome, Pattern, Request, Session, Told, Unread, Want,
};
use crate::home::resolve_all;

/// Search what sessions hold: context, memory, artifacts, logs
///
/// PATTERN is a regular expression, looked for in each line. JSON is searched as people see it: its texts, without escapes.
/// Binary files are left out. Exit code 4 says that nothing was found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome search 'timeout|refused' --in logs     in the logs of every session
  wbhome search -F 'a[0].b' crawler -C 2        as it is, in one session, with two lines around
  wbhome search -i 数据 --archived -l            files of archived sessions, too
  wbhome search TODO --json | jq -r .path")]
pub(super) struct SearchArgs {
    /// A regular expression
    pattern: String,
    /// Only these sessions, archived or not [default: all that are not archived]
    #[arg(value_name = "SESSION", add = complete::sessions())]
    sessions: Vec<String>,
    /// Take PATTERN as it is, and not as a regular expression
    #[arg(short = 'F', long)]
    fixed_strings: bool,
    /// Take large letters and small ones for the same
    #[arg(short, long)]
    ignore_case: bool,
    /// Find whole words only
    #[arg(short, long)]
    word: bool,
    /// Only in these folders of a session
    #[arg(long = "in", value_name = "KIND", value_enum, value_delimiter = ',')]
    kinds: Vec<Place>,
    /// In archived sessions, too
    #[arg(long)]
    archived: bool,
    /// So many lines around each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1000),
        conflicts_with_all = ["list", "count"])]
    context: u16,
    /// Only the files with a match
    #[arg(short, long, conflicts_with = "count")]
    list: bool,
    /// Only how many lines match, for each session and together
    #[arg(long)]
    count: bool,
    /// Print it at once, not a page at a time
    #[arg(long)]
    no_pager: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    Context,
    Memory,
    Artifacts,
    Logs,
}

impl Place {
    fn folder(self) -> &'static str {
        match self {
            Place::Context => "context",
            Place::Memory => "memory",
            Place::Artifacts => "artifacts",
            Place::Logs => "logs",
        }
    }
}

pub(super) fn run(
    args: SearchArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let meaning = Meaning {
        literal: args.fixed_strings,
        ignore_case: args.ignore_case,
        words: args.word,
    };
    let pattern = Pattern::new(&args.pattern, meaning)?;
    let home = place::open(global)?;
    let request = Request {
        pattern,
        want: match (args.list, args.count) {
            (true, _) => Want::Files,
            (_, true) => Want::Count,
            _ => Want::Lines(args.context.into()),
        },
        sessions: resolve_all(&home, &args.sessions)?,
        archived: args.archived,
        kinds: args
            .kinds
            .iter()
            .map(|kind| kind.folder().to_owned())
            .collect(),
    };
    let mut printing = Printing {
        out: Paged::open(console, !args.no_pager && !console.json),
        waiting: String::new(),
        console,
        now: ctx.clock.now(),
        width: terminal_width(),
        has_headings: matches!(request.want, Want::Lines(_)),
        around: args.context > 0,
        is_first: true,
        last: None,
    };
    let done = search::search(&home, &request, &mut |told| printing.told(&told), ctx);
    if let Ok(outcome) = &done {
        printing.end(outcome, request.want)?;
    }
    printing.out.close()?;
    let outcome = done?;
    if outcome.left_out > 0 && outcome.found == 0 {
        let sessions = human::plural(
            outcome.left_out,
            "archived session was",
            "archived sessions were",
        );
        console.hint(&format!("{sessions} not searched: --archived does"));
    }
    let exit = match outcome.found {
        0 => Exit::Problems,
        _ => Exit::Done,
    };
    Ok(match outcome.unread {
        0 => exit,
        _ => exit.merge(Exit::Partial),
    })
}

/// So much is printed at once, when there is so much of a session.
const AT_ONCE: usize = 64 << 10;

/// What is printed, as it is found.
struct Printing<'c> {
    out: Paged<'c>,
    /// What is not printed yet, of one session.
    waiting: String,
    console: &'c Console,
    now: Timestamp,
    width: Option<usize>,
    /// Whether what is told of a session stands below its name.
    has_headings: bool,
    /// Whether lines around the matches are printed.
    around: bool,
    is_first: bool,
    /// The place of the last line that was printed: file, value, and number.
    last: Option<(Arc<File>, Option<String>, u64)>,
}

impl Printing<'_> {
    fn told(&mut self, told: &Told<'_>) -> Result<ControlFlow<()>> {
        if let Told::Unread(unread) = told {
            self.unread(unread);
            return Ok(ControlFlow::Continue(()));
        }
        let text = match (self.console.json, told) {
            (true, Told::Hit(hit)) => self.console.line("search/1", hit)?,
            (true, Told::File(file)) => self.console.line("search-file/1", file)?,
            (true, Told::Count(count)) => self.console.line("search-count/1", count)?,
            (_, Told::End) => return self.flush(),
            (true, _) => return Ok(ControlFlow::Continue(())),
            (false, Told::Session(session)) if self.has_headings => self.heading(session),
            (false, Told::Session(_)) => return Ok(ControlFlow::Continue(())),
            (false, Told::Hit(hit)) => self.hit(hit),
            (false, Told::File(file)) => format!("{}\n", path_of(file)),
            (false, Told::Count(count)) => count_of(count),
            (false, Told::Unread(_)) => return Ok(ControlFlow::Continue(())),
        };
        self.waiting.push_str(&text);
        match self.waiting.len() < AT_ONCE {
            true => Ok(ControlFlow::Continue(())),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<ControlFlow<()>> {
        self.out.print(&std::mem::take(&mut self.waiting))
    }

    fn unread(&self, unread: &Unread) {
        let path = human::path(&unread.path);
        let why = human::escape(&unread.why);
        self.console
            .warn(&format!("{path} could not be searched: {why}"));
    }

    /// `20240604_数据清洗   3 days ago   五月`
    fn heading(&mut self, session: &Session) -> String {
        let id = human::name(session.id.as_str());
        let mut after = String::new();
        if session.archived {
            after.push_str("   archived");
        }
        match session.updated {
            Some(then) if stdout_is_terminal() => {
                let age = format!("   {}", human::age(self.now, then));
                let used = excerpt::width(&id) + after.len() + age.len();
                if self.width.is_none_or(|width| used <= width) {
                    after.push_str(&age);
                }
            }
            Some(then) => {
                let _ = write!(after, "   {}", exact(then));
            }
            None => {}
        }
        if let Some(title) = &session.title {
            let used = excerpt::width(&id) + excerpt::width(&after) + 3;
            let room = self
                .width
                .map_or(excerpt::ELSEWHERE, |width| width.saturating_sub(used));
            if room > 0 {
                after.push_str("   ");
                excerpt::write(&mut after, title, &[], room, false);
            }
        }
        let gap = if std::mem::take(&mut self.is_first) {
            ""
        } else {
            "\n"
        };
        format!("{gap}{}{after}\n", styled(STRONG, id))
    }

    /// `  context/turn_014.json  assistant: …match…`, with the lines around it.
    fn hit(&mut self, hit: &Hit) -> String {
        let path = human::path(&hit.file.path);
        let number = hit.within.unwrap_or(hit.line);
        let first = number.saturating_sub(hit.found.before.len() as u64);
        let mut out = String::new();
        if self.around
            && let Some((file, pointer, line)) = &self.last
        {
            let same_value = file.session == hit.file.session
                && *file.path == *hit.file.path
                && *pointer == hit.pointer;
            if file.session == hit.file.session && !(same_value && line + 1 == first) {
                out.push_str("  --\n");
            }
        }
        let label = label(hit);
        for (n, line) in hit.found.before.iter().enumerate() {
            let at = beside(hit, first + n as u64);
            self.line(&mut out, (&path, &at, '-'), line, &[], false);
        }
        let found = &hit.found;
        let place = (path.as_str(), label.as_str(), ':');
        self.line(&mut out, place, &found.text, &found.matches, found.cut);
        for (n, line) in hit.found.after.iter().enumerate() {
            let at = beside(hit, number + 1 + n as u64);
            self.line(&mut out, (&path, &at, '-'), line, &[], false);
        }
        let end = number + hit.found.after.len() as u64;
        if self.around {
            self.last = Some((Arc::clone(&hit.file), hit.pointer.clone(), end));
        }
        out
    }

    fn line(
        &self,
        out: &mut String,
        (path, label, mark): (&str, &str, char),
        text: &str,
        matches: &[(usize, usize)],
        is_cut: bool,
    ) {
        let gap = if label.is_empty() { "" } else { "  " };
        let Some(width) = self.width else {
            let _ = write!(out, "  {FAINT}{path}{gap}{label}{mark} {FAINT:#}");
            excerpt::write(out, text, matches, excerpt::ELSEWHERE, is_cut);
            out.push('\n');
            return;
        };
        let place = format!("{gap}{label}{mark} ");
        // A third of a narrow terminal is for the text, however long the name is.
        let room = (width * 2 / 3).max(width.saturating_sub(26));
        let of_path = room.saturating_sub(excerpt::width(&place)).max(8);
        let prefix = format!("{}{place}", end_of(path, of_path));
        let prefix = fit(&prefix, Some(room));
        let left = width.saturating_sub(excerpt::width(&prefix) + 2).max(8);
        let _ = write!(out, "  {FAINT}{prefix}{FAINT:#}");
        excerpt::write(out, text, matches, left, is_cut);
        out.push('\n');
    }

    fn end(&mut self, outcome: &Outcome, want: Want) -> Result<()> {
        if want == Want::Count && !self.console.json && outcome.matched != 1 {
            let lines = human::plural(outcome.found, "line", "lines");
            let sessions = human::plural(outcome.matched, "session", "sessions");
            let total = format!("{}\n", styled(STRONG, format!("{lines} in {sessions}")));
            let _ = self.out.print(&total)?;
        }
        Ok(())
    }
}

/// Where in its file a match is: the line of a plain file, else who said it, or the way to the value.
fn label(hit: &Hit) -> String {
    let mut parts = Vec::new();
    let name = hit.file.path.extension().unwrap_or_default();
    if hit.pointer.is_none() || !name.eq_ignore_ascii_case("json") {
        parts.push(hit.line.to_string());
    }
    parts.extend(
        hit.role
            .as_deref()
            .map(|role| human::escape(role).into_owned()),
    );
    if !hit.brief.is_empty() {
        parts.push(human::escape(&hit.brief).into_owned());
    }
    parts.join(" ")
}

fn beside(hit: &Hit, number: u64) -> String {
    match hit.pointer {
        None => number.to_string(),
        Some(_) => label(hit),
    }
}

fn path_of(file: &File) -> String {
    let session = human::name(file.session.as_str());
    format!("{session}/{}", human::path(&file.path))
}

fn count_of(count: &Count) -> String {
    let id = human::name(count.session.as_str());
    let lines = human::plural(count.lines, "line", "lines");
    let files = human::plural(count.files, "file", "files");
    let found = format!("{lines} in {files}");
    let wide = excerpt::width(&id) + 3 + found.len();
    let gap = match terminal_width() {
        Some(width) if wide > width => "\n",
        _ => "",
    };
    format!("{}{gap}   {found}\n", styled(STRONG, id))
}
