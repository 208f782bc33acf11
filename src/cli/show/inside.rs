//! Something in a session: its bytes, a readable turn, a list of a folder.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use crate::base::{Context, Error, Exit, Result, human};
use crate::browse::show::{self, Inside, Kind, Thing, Turn};
use crate::cli::output::{Console, FAINT, STRONG, styled};
use crate::cli::pager;
use crate::home::{Home, RelPath, SessionId, turn_number};

/// Whether it is where turns are.
pub(super) fn is_turn(rel: &RelPath) -> bool {
    let name = rel.as_path().strip_prefix("context").ok();
    name.is_some_and(|name| turn_number(name.as_os_str()).is_some())
}

/// A turn made readable; what has not the shape of one is printed as it is.
pub(super) fn turn(
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

/// The bytes of a file, a list of a folder, or where a link leads.
pub(super) fn inside(
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
