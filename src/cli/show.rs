//! `wbhome show`: a session at a glance, or something in it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::args::Global;
use super::complete;
use super::output::{Console, FAINT, STRONG, WARNING, stdout_is_terminal, styled, terminal_width};
use super::when::dated;
use super::width::{end_of, fit, fold};
use super::{pager, place};
use crate::backup::list::{self, Held};
use crate::backup::{Standing, Store};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result, human};
use crate::browse::ls::Holds;
use crate::browse::show::{self, Archive, ArchiveForm, From, Inside, Kind, Session, Thing, Turn};
use crate::history::{self, Told};
use crate::home::{Home, RelPath, SessionId, Tally, turn_number};

/// Show a session at a glance, or a file in it
///
/// Alone, SESSION tells what it is, where it stands, what it holds and what protects it. With PATH the bytes of a file are
/// printed just as they are, as `cat` does, control characters too; on a terminal a turn is made readable, unless --raw is
/// given. A folder is listed, and of a link the target is shown. An archived session is read from its archive, without
/// unpacking it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome show @1                               the most recent session
  wbhome show crawler/context/checkpoint.md    a file, to standard output
  wbhome show crawler/                         what it holds; crawler/artifacts/ a folder of it
  wbhome show crawler/context/turn_014.json    a turn, readable on a terminal; --raw as it is
  wbhome show old/artifacts/data.bin > data.bin")]
pub(super) struct ShowArgs {
    /// An id, a unique part of one, or @1 for the most recent; then a path inside, if you like
    #[arg(value_name = "SESSION[/PATH]", add = complete::inside_sessions())]
    session: OsString,
    /// The bytes of a turn on a terminal, too, where it is made readable else
    #[arg(long)]
    raw: bool,
    /// Straight to the terminal, without a pager
    #[arg(long)]
    no_pager: bool,
}

pub(super) fn run(
    args: ShowArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    match show::meant(&home, &args.session)? {
        (id, None) => overview(&home, &id, console, ctx),
        (id, Some(rel)) if is_turn(&rel) && stdout_is_terminal() && !args.raw && !console.json => {
            turn(&home, &id, &rel, args.no_pager, console, ctx)
        }
        (id, Some(rel)) => inside(&home, &id, &rel, console, ctx),
    }
}

/// What `--json` prints of a session.
#[derive(Serialize)]
struct Printed<'s> {
    #[serde(flatten)]
    session: &'s Session,
    commit: Option<Told>,
    backups: Vec<Backup>,
}

/// What a cold store has of it.
#[derive(Serialize)]
struct Backup {
    store: WirePath,
    /// `None` when the store has no snapshot, or why it is not known stands below.
    held: Option<Held>,
    /// Why nothing is known.
    why: Option<String>,
}

fn overview(home: &Home, id: &SessionId, console: &Console, ctx: &Context) -> Result<Exit> {
    let agents = place::agents(home, console);
    let leases = place::leases_to_show(home, console, ctx);
    let session = show::session(home, id, &agents, &leases, ctx)?;
    // What is wrong with the repository, `check` tells.
    let commit = history::last_touch(home, id, ctx);
    ctx.stop.check()?;
    let printed = Printed {
        session: &session,
        commit: commit.unwrap_or_default(),
        backups: backups(home, id),
    };
    for warning in &session.warnings {
        console.warn(warning);
    }
    console.result("show/1", &printed, |out| write(out, &printed, ctx))?;
    Ok(Exit::Done)
}

/// What the cold stores have of it. One that is not there says so: that is what one wants to know of a backup.
fn backups(home: &Home, id: &SessionId) -> Vec<Backup> {
    // Settings that are not understood, or set none: `doctor` tells.
    let stores = place::stores(home).unwrap_or_default();
    let look = |path: PathBuf| {
        let held = Store::open_of(&path, home).and_then(|store| list::held(&store, id));
        let (held, why) = match held {
            Ok(held) => (held, None),
            Err(error) => (None, Some(error.to_string())),
        };
        Backup {
            store: path.into(),
            held,
            why,
        }
    };
    stores.into_iter().map(look).collect()
}

/// Whether it is where turns are.
fn is_turn(rel: &RelPath) -> bool {
    let name = rel.as_path().strip_prefix("context").ok();
    name.is_some_and(|name| turn_number(name.as_os_str()).is_some())
}

/// A turn made readable; what has not the shape of one is printed as it is.
fn turn(
    home: &Home,
    id: &SessionId,
    rel: &RelPath,
    no_pager: bool,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let mut content = Vec::new();
    let found = show::inside(home, id, rel.as_path(), Some(&mut content), ctx)?;
    match Turn::read(&content).filter(|_| found.thing.kind == Kind::File) {
        Some(turn) => {
            let mut text = String::new();
            let named = rel.as_path().file_name().and_then(turn_number);
            write_turn(&mut text, &turn, named);
            pager::print(&text, console, !no_pager)?;
            Ok(Exit::Done)
        }
        None => inside(home, id, rel, console, ctx),
    }
}

/// A turn; one that does not say its number has that in its name.
fn write_turn(out: &mut String, turn: &Turn, named: Option<u64>) {
    let mut put = |line: String| {
        let _ = writeln!(out, "{}", line.trim_end());
    };
    let headed = |head: String, at: Option<&String>| match at {
        Some(at) => format!(
            "{}   {}",
            styled(STRONG, head),
            styled(FAINT, human::escape(at))
        ),
        None => styled(STRONG, head),
    };
    let number = turn.number.or(named);
    let head = number.map_or_else(|| "turn".to_owned(), |n| format!("turn {n}"));
    put(headed(head, turn.at.as_ref()));
    for message in &turn.messages {
        let role = human::escape(&message.role).into_owned();
        put(String::new());
        put(headed(role, message.at.as_ref()));
        for text in message.text.lines() {
            // A tab is no harm, and code is full of them.
            let text = text.replace('\t', "    ");
            put(format!("  {}", human::escape(&text)));
        }
        for call in &message.calls {
            put(format!("  {} {}", styled(FAINT, "→"), human::escape(call)));
        }
    }
}

fn inside(
    home: &Home,
    id: &SessionId,
    rel: &RelPath,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if console.json {
        let found = show::inside(home, id, rel.as_path(), None, ctx)?;
        console.document("show-path/1", &found)?;
        return Ok(Exit::Done);
    }
    let mut pipe = Pipe::new();
    let found = show::inside(home, id, rel.as_path(), Some(&mut pipe), ctx);
    let found = match pipe.end() {
        // Somebody who has stopped reading is not an error.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
        Some(error) => {
            return Err(Error::failed("can not write to standard output").because(error));
        }
        None => found?,
    };
    if found.thing.kind == Kind::Folder {
        for problem in &found.problems {
            let (part, what) = (human::escape(&problem.part), human::escape(&problem.what));
            console.warn(&format!(
                "not all of the archive can be read: {part}: {what}"
            ));
        }
    }
    match (found.thing.kind, &found.thing.target) {
        (Kind::File, _) => {}
        (Kind::Folder, _) => console.print(&listing(&found))?,
        (Kind::Symlink, target) => {
            let target = target.as_deref().map(human::path).unwrap_or_default();
            console.print(&format!("{} → {target}\n", human::path(&found.thing.path)))?;
        }
        (Kind::Special, _) => {
            return Err(
                Error::failed("is neither file, folder nor link, and is not opened:")
                    .at(rel.as_path()),
            );
        }
    }
    Ok(Exit::Done)
}

/// Standard output, which remembers why it could not be written to.
struct Pipe {
    out: io::StdoutLock<'static>,
    failed: Option<io::Error>,
}

impl Pipe {
    fn new() -> Self {
        Pipe {
            out: io::stdout().lock(),
            failed: None,
        }
    }

    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed.get_or_insert(error);
            kind.into()
        })
    }

    /// Writes what is left; why that, or anything before, has failed.
    fn end(mut self) -> Option<io::Error> {
        let _ = self.flush();
        self.failed
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.noted(done)
    }
}

/// A line a name: its size, and a slash behind a folder.
fn listing(found: &Inside) -> String {
    let size = |thing: &Thing| match thing.kind {
        Kind::File => human::size(thing.bytes),
        _ => "-".to_owned(),
    };
    let width = found.names.iter().map(|thing| size(thing).len()).max();
    let width = width.unwrap_or(0);
    let mut out = String::new();
    for thing in &found.names {
        let name = Path::new(thing.path.file_name().unwrap_or_default());
        let name = human::path(name);
        let _ = match (thing.kind, &thing.target) {
            (Kind::Folder, _) => writeln!(out, "{:>width$}  {name}/", size(thing)),
            (_, Some(target)) => {
                let target = human::path(target);
                writeln!(out, "{:>width$}  {name} → {target}", size(thing))
            }
            _ => writeln!(out, "{:>width$}  {name}", size(thing)),
        };
    }
    out
}

/// `  created    2024-06-03 09:00`
fn line(out: &mut String, name: &str, text: impl std::fmt::Display) {
    let name = styled(FAINT, format!("{name:<10}"));
    let text = fold(&text.to_string(), 13, terminal_width());
    let _ = writeln!(out, "  {name} {text}");
}

/// What goes on below it.
fn below(out: &mut String, text: &str) {
    let _ = writeln!(out, "{:13}{}", "", fold(text, 13, terminal_width()));
}

fn write(out: &mut String, printed: &Printed, ctx: &Context) {
    let session = printed.session;
    let moment = |at: Timestamp| dated(at, ctx);
    let id = styled(STRONG, human::name(session.id.as_str()));
    let status = match (&session.running, session.indexed) {
        (Some(running), _) => format!("running, process {}", running.pid),
        (None, true) => human::name(&session.status).into_owned(),
        (None, false) => format!("{}, not in the index", human::name(&session.status)),
    };
    let limit = terminal_width();
    let wide = human::name(session.id.as_str()).width() + 3 + status.width();
    let _ = match limit.is_some_and(|limit| wide > limit) {
        true => writeln!(out, "{id}\n  {status}"),
        false => writeln!(out, "{id}   {status}"),
    };
    if let Some(title) = &session.title {
        let _ = writeln!(out, "{}", fold(&human::name(title), 0, limit));
    }
    out.push('\n');
    for (name, value) in [
        ("agent", &session.agent),
        ("project", &session.project),
        ("shared", &session.sync_tag),
    ] {
        if let Some(value) = value {
            line(out, name, human::name(value));
        }
    }
    if let Some(holder) = &session.held_by {
        let since = moment(holder.since);
        let told = match holder.ours {
            true => format!("held by this device since {since}"),
            false => format!(
                "held by {} since {since}: read-only here",
                human::name(&holder.name)
            ),
        };
        line(out, "lease", told);
    }
    if !session.tags.is_empty() {
        line(out, "tags", human::name(&session.tags.join(", ")));
    }
    if let Some(created) = session.created {
        line(out, "created", moment(created));
    }
    if let Some(updated) = session.updated {
        line(out, "active", moment(updated));
    }
    let turns = human::count(session.holds.turns);
    match &session.last_turn {
        Some(last) => line(
            out,
            "turns",
            format!("{turns}, the last {}", human::escape(last)),
        ),
        None => line(out, "turns", turns),
    }
    write_holds(out, &session.holds);
    if session.from == From::Folder {
        line(out, "folder", human::path(&session.path));
    }
    if let Some(archive) = &session.archive {
        write_archive(out, archive, session.from, ctx);
    }
    if !session.largest.is_empty() {
        write_largest(out, &session.largest);
    }
    if printed.commit.is_none() && printed.backups.is_empty() && session.archive.is_none() {
        line(
            out,
            "kept",
            "nowhere else: no commit and no backup holds it",
        );
    }
    if let Some(commit) = &printed.commit {
        let subject = human::escape(&commit.subject);
        line(
            out,
            "commit",
            format!("{} {}", commit.short, moment(commit.at)),
        );
        below(out, &subject);
    }
    for backup in &printed.backups {
        write_backup(out, backup, ctx);
    }
    if !session.turns.is_empty() {
        write_turns(out, session);
    }
    if !session.checkpoint.is_empty() {
        let _ = writeln!(out, "\n{}", styled(FAINT, "context/checkpoint.md"));
        for text in &session.checkpoint {
            let _ = writeln!(out, "  {}", fold(&human::escape(text), 2, limit));
        }
    }
}

fn write_holds(out: &mut String, holds: &Holds) {
    let files = human::plural(holds.files, "file", "files");
    line(
        out,
        "holds",
        format!("{files}, {}", human::size(holds.bytes)),
    );
    let kinds: [(&str, Tally); 5] = [
        ("context", holds.context),
        ("memory", holds.memory),
        ("artifacts", holds.artifacts),
        ("logs", holds.logs),
        ("other", holds.other),
    ];
    let kinds = kinds.iter().filter(|(_, tally)| tally.files > 0);
    let kinds: Vec<(String, String)> = kinds
        .map(|(name, tally)| {
            let size = human::size(tally.bytes);
            let files = human::plural(tally.files, "file", "files");
            (format!("{:13}{name:<9} {size:>9}", ""), files)
        })
        .collect();
    // In all lines or in none: a number that stands alone in one would be read as something else.
    let widest = kinds
        .iter()
        .map(|(size, files)| size.len() + 3 + files.len());
    let has_room = terminal_width().is_none_or(|limit| widest.max() <= Some(limit));
    for (size, files) in kinds {
        let _ = match has_room {
            true => writeln!(out, "{size}   {files}"),
            false => writeln!(out, "{size}"),
        };
    }
    if holds.unreadable > 0 {
        let folders = human::plural(holds.unreadable, "folder", "folders");
        below(
            out,
            &styled(WARNING, format!("{folders} could not be read")),
        );
    }
}

fn write_largest(out: &mut String, largest: &[Thing]) {
    for (n, thing) in largest.iter().filter(|thing| thing.bytes > 0).enumerate() {
        let (size, path) = (human::size(thing.bytes), human::path(&thing.path));
        let room = terminal_width().map_or(usize::MAX, |limit| limit.saturating_sub(25));
        let path = end_of(&path, room.max(8));
        let name = if n == 0 { "largest" } else { "" };
        let name = styled(FAINT, format!("{name:<10}"));
        let _ = writeln!(out, "  {name} {size:>9}   {path}");
    }
}

fn write_backup(out: &mut String, backup: &Backup, ctx: &Context) {
    let store = human::path(&backup.store);
    let told = match (&backup.held, &backup.why) {
        (_, Some(why)) => styled(WARNING, why),
        (None, None) => format!("{store} has no snapshot yet"),
        (Some(held), None) => {
            let when = dated(held.at, ctx);
            match (held.standing, held.complete) {
                (None, _) => format!("{store} {when}: {}", styled(WARNING, "not in it")),
                (Some(Standing::Missing), _) => {
                    format!("{store} {when}: it was missing then, its last pack is kept")
                }
                (Some(Standing::Removed), _) => format!("{store} {when}: it was removed then"),
                (Some(Standing::Present), false) => {
                    format!("{store} {when}: {}", styled(WARNING, "only in part"))
                }
                (Some(Standing::Present), true) => format!("{store} {when}"),
            }
        }
    };
    line(out, "backup", told);
}

fn write_turns(out: &mut String, session: &Session) {
    let _ = writeln!(out, "\n{}", styled(FAINT, "last turns"));
    for turn in &session.turns {
        let name = turn.file.strip_prefix("context/").unwrap_or(&turn.file);
        let name = name.strip_suffix(".json").unwrap_or(name);
        for (n, said) in turn.said.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            let who = format!("{:<10}", human::escape(&said.role));
            let text = format!("  {name:<9} {who}{}", human::escape(&said.text));
            let _ = writeln!(out, "{}", fit(&text, terminal_width()));
        }
    }
}

fn write_archive(out: &mut String, archive: &Archive, from: From, ctx: &Context) {
    let file = human::name(&archive.file);
    let kept = match from {
        From::Folder => ", kept beside the folder",
        From::Archive => "",
    };
    line(
        out,
        "archive",
        format!("{file}, {}{kept}", human::size(archive.bytes)),
    );
    let made = archive
        .made
        .map(|made| format!("made {}, ", dated(made, ctx)));
    let what = match (archive.form, &archive.damage) {
        (ArchiveForm::Whole, _) => "with a digest of each file".to_owned(),
        (ArchiveForm::Foreign, _) => "by hand, with checksums alone".to_owned(),
        (ArchiveForm::Damaged, damage) => {
            let damage = damage.as_deref().map(human::escape).unwrap_or_default();
            styled(WARNING, format!("damaged: {damage}"))
        }
    };
    below(out, &format!("{}{what}", made.unwrap_or_default()));
    if archive.flaws > 0 {
        let files = human::plural(archive.flaws, "file", "files");
        below(
            out,
            &styled(WARNING, format!("{files} could not be packed as they were")),
        );
    }
}
