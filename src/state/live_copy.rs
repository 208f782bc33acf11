//! A copy of a database that somebody may be writing, as one state of it.
//!
//! A database is more than its file: its newest rows may be in the write-ahead log alone, and two files copied one after
//! the other may not belong together. So SQLite copies it (the online backup API, in one step). The live side is opened to
//! read and in no other way: closing a connection that may write empties the log and removes it. Where no log lies beside
//! the database nothing is made beside it either, and whether somebody wrote meanwhile is told by its times.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Entry, FileKind, Meta, Tree};
use crate::paths::database;

/// The first bytes of every database. See <https://www.sqlite.org/fileformat2.html#the_database_header>.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// A database is made of pages, the smallest of which has 512 bytes.
const SMALLEST_DATABASE: u64 = 512;

/// Where in the file stands that it is kept with a write-ahead log, and the value that says so.
const READ_VERSION: (usize, u8) = (19, 2);

/// For how long a database that somebody holds is tried again, and how long is waited in between.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a file begins as a database does. What is no regular file does not.
///
/// # Errors
/// When it can not be opened or read.
pub fn is_database(dir: &Dir, name: &OsStr) -> io::Result<bool> {
    Ok(header(dir, name)?.is_some())
}

/// The databases in a tree that was walked from this folder. What can not be read counts as none.
pub fn databases_in(root: &Dir, tree: &Tree) -> Vec<PathBuf> {
    // One that is cut off in the middle of a page is a database all the same.
    let is_worth_opening = |entry: &Entry| {
        let meta = &entry.meta;
        meta.kind == FileKind::File && meta.size >= SMALLEST_DATABASE
    };
    let files: Vec<(PathBuf, &Entry)> = tree
        .entries()
        .filter(|(_, entry)| is_worth_opening(entry))
        .collect();
    files
        .into_par_iter()
        .filter(|(rel, entry)| {
            let parent = rel.parent().unwrap_or(Path::new(""));
            root.open_beneath(parent)
                .and_then(|dir| is_database(&dir, &entry.name))
                .unwrap_or(false)
        })
        .map(|(rel, _)| rel)
        .collect()
}

/// The first bytes of a database, up to [`READ_VERSION`].
fn header(dir: &Dir, name: &OsStr) -> io::Result<Option<[u8; 20]>> {
    let file = dir.open_file(name)?;
    if Meta::of(&file)?.kind != FileKind::File {
        return Ok(None);
    }
    let mut start = [0; 20];
    match (&file).read_exact(&mut start) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| start.starts_with(HEADER).then_some(start)),
    }
}

/// Copies a database to `into`, where nothing may stand, as one file that holds everything which was committed before. The
/// copy is readable by its owner alone, and as old as the newest of the live files.
///
/// # Errors
/// A database that is not sound, that this program can not read (encrypted ones do not get here, they have no such
/// header), or that somebody holds for too long; then there is no copy.
pub fn copy_database(live: &Path, into: &Path, context: &Context) -> Result<()> {
    let wrong = |error| Error::io("can not read the database", live, error);
    // SQLite is told to follow no link, on the whole way.
    let (parent, name) = split(live)?;
    let live = Live {
        path: disk::real_path(parent)?.join(name),
        dir: Dir::open(parent).map_err(wrong)?,
        name: name.to_owned(),
    };
    let (folder, copy) = split(into)?;
    let folder = Dir::open(folder).map_err(|e| Error::io("can not open", into, e))?;
    let made = folder.create_file(copy);
    let made = made.map_err(|e| Error::io("can not make the copy", into, e))?;
    let copied = live.copy(into, &folder, context).and_then(|mtime| {
        sound(into)?;
        disk::dress_file(&made, None, 0o600, mtime)
            .map_err(|e| Error::io("can not write the copy", into, e))
    });
    copied.map_err(|error| {
        // What is half done is of no use, nor is what SQLite put beside it.
        discard(&folder, copy);
        match error.path() {
            Some(_) => error,
            None => error.at(&live.path),
        }
    })
}

struct Live {
    path: PathBuf,
    dir: Dir,
    name: OsString,
}

/// What came of one attempt.
enum Attempt {
    Done,
    /// Somebody is at it: to be tried again, this is why.
    Busy(String),
    /// A transaction was cut off by a crash: only a writer could take it back.
    CutOff,
}

impl Live {
    /// Returns how old the copy is.
    fn copy(&self, into: &Path, folder: &Dir, context: &Context) -> Result<disk::Stamp> {
        let begun = Instant::now();
        loop {
            context.stop.check()?;
            let before = self.state()?;
            let attempt = match (before.wal, before.keeps_log) {
                (None, true) => self.without_log(&before, into)?,
                _ => step(&self.path, &read_only(), into)?,
            };
            let why = match attempt {
                Attempt::Done => {
                    let log = before.wal.filter(|wal| wal.size > 0).map(|wal| wal.mtime);
                    return Ok(log.into_iter().fold(before.database.mtime, Ord::max));
                }
                Attempt::CutOff => match self.private(&before, into, folder, context)? {
                    true => return Ok(before.database.mtime),
                    false => "it is being written".to_owned(),
                },
                Attempt::Busy(why) => why,
            };
            if begun.elapsed() >= PATIENCE {
                return Err(self.held(&why));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn state(&self) -> Result<State> {
        let look = || -> io::Result<State> {
            let keeps_log = header(&self.dir, &self.name)?
                .is_some_and(|start| start[READ_VERSION.0] == READ_VERSION.1);
            Ok(State {
                database: self.dir.stat(&self.name)?,
                wal: self.dir.find(&with(&self.name, "-wal"))?,
                keeps_log,
            })
        };
        look().map_err(|e: io::Error| Error::io("can not read the database", &self.path, e))
    }

    /// No log beside it, and none may appear: nobody has it open, or did when we looked.
    fn without_log(&self, before: &State, into: &Path) -> Result<Attempt> {
        if disk::is_fresh(&before.database) {
            return Ok(Attempt::Busy("it was written just now".to_owned()));
        }
        let uri = immutable(&self.path);
        let attempt = step(
            Path::new(&uri),
            &(read_only() | OpenFlags::SQLITE_OPEN_URI),
            into,
        );
        let after = self.state()?;
        match after.wal.is_none() && after.database.same_state(&before.database) {
            true => attempt,
            // What was read may be a mixture, whatever was said of it.
            false => Ok(Attempt::Busy("it is being written".to_owned())),
        }
    }

    /// Copies the database with the journal of what was cut off, and lets SQLite take that back in the copy. `false` when
    /// they did not hold still.
    fn private(
        &self,
        before: &State,
        into: &Path,
        folder: &Dir,
        context: &Context,
    ) -> Result<bool> {
        let fail = |e| Error::io("can not copy the database", &self.path, e);
        let (_, copy) = split(into)?;
        let journal = with(&self.name, "-journal");
        let Some(seen) = self.dir.find(&journal).map_err(fail)? else {
            return Ok(false);
        };
        // Under a name of its own: `into` is there already.
        let scratch = with(copy, "-raw");
        let stop = context.stop;
        let raw = |from: &OsStr, to: &OsStr| {
            disk::duplicate_as(&self.dir, from, folder, to, stop).map_err(fail)
        };
        let made = raw(&self.name, &scratch)
            .and_then(|()| raw(&journal, &with(&scratch, "-journal")))
            .and_then(|()| {
                let same = self.dir.stat(&self.name).map_err(fail)?;
                let after = self.dir.find(&journal).map_err(fail)?;
                let held_still = same.same_state(&before.database)
                    && after.is_some_and(|after| after.same_state(&seen));
                if !held_still {
                    return Ok(false);
                }
                let whole = into.with_file_name(&scratch);
                disk::set_mode(&whole, 0o600)?;
                let connection = database::open(&whole)?;
                let result = copy_from(&connection, into).map_err(database::refused)?;
                drop(connection);
                Ok(result == StepResult::Done)
            });
        discard(folder, &scratch);
        made
    }

    /// Who holds it, as far as the system tells.
    fn held(&self, why: &str) -> Error {
        let mut who = String::new();
        let real = &self.path;
        let folder = real.parent().unwrap_or(real);
        let users = disk::open_below(folder).seen.into_iter();
        for user in users
            .filter(|file| file.path == *real && file.pid != std::process::id())
            .take(3)
        {
            let comma = if who.is_empty() { "" } else { ", " };
            let name = human::name(&user.program);
            let _ = write!(who, "{comma}{name} (process {})", user.pid);
        }
        let who = match who.is_empty() {
            true => "somebody".to_owned(),
            false => who,
        };
        Error::failed(format!(
            "{who} holds the database, {} were not enough ({why}):",
            human::plural(PATIENCE.as_secs(), "second", "seconds")
        ))
        .at(&self.path)
        .hint(
            "the next run tries again; if it happens every time, run it when the application rests",
        )
    }
}

/// What a live database looks like.
struct State {
    database: Meta,
    wal: Option<Meta>,
    /// Whether it is kept with a write-ahead log.
    keeps_log: bool,
}

fn read_only() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// The path as a URI that promises that nobody writes. See <https://www.sqlite.org/uri.html>.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri + "?immutable=1"
}

fn step(live: &Path, flags: &OpenFlags, into: &Path) -> Result<Attempt> {
    let attempt = || {
        let connection = Connection::open_with_flags(live, *flags)?;
        // Its pages are copied, and nothing that they say is done.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.busy_timeout(Duration::ZERO)?;
        copy_from(&connection, into)
    };
    match attempt() {
        Ok(StepResult::Done) => Ok(Attempt::Done),
        Ok(_) => Ok(Attempt::Busy("it is locked".to_owned())),
        Err(rusqlite::Error::SqliteFailure(error, said)) => match error.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Ok(Attempt::Busy("it is locked".to_owned()))
            }
            _ if error.extended_code == ffi::SQLITE_READONLY_ROLLBACK => Ok(Attempt::CutOff),
            // The log went between the look and the opening, or its index is being made.
            ErrorCode::CannotOpen | ErrorCode::ReadOnly => Ok(Attempt::Busy(
                human::escape(&said.unwrap_or_else(|| error.to_string())).into_owned(),
            )),
            _ => Err(database::refused(rusqlite::Error::SqliteFailure(
                error, said,
            ))),
        },
        Err(error) => Err(database::refused(error)),
    }
}

/// Copies every page in one step, over what stands in `into`.
fn copy_from(from: &Connection, into: &Path) -> rusqlite::Result<StepResult> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(into, flags)?;
    // Nobody reads it before it is done, and what is half done is thrown away.
    copy.pragma_update(None, "journal_mode", "OFF")?;
    copy.pragma_update(None, "synchronous", "OFF")?;
    let result = Backup::new(from, &mut copy)?.step(-1)?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(result)
}

/// Whether the copy is a sound database. Opened so that nothing appears beside it.
fn sound(copy: &Path) -> Result<()> {
    let uri = immutable(copy);
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(&uri, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        Ok(connection)
    };
    check_soundness(&open().map_err(database::refused)?)
}

/// `integrity_check`. A database of which it can not be said, because its schema needs what only its own application
/// knows (a collation, a function, a module), was copied page by page nevertheless, and is taken as it is.
fn check_soundness(connection: &Connection) -> Result<()> {
    use std::error::Error as _;
    let Err(error) = database::check_integrity(connection) else {
        return Ok(());
    };
    let unknown = error
        .source()
        .and_then(|cause| cause.downcast_ref::<rusqlite::Error>())
        .and_then(rusqlite::Error::sqlite_error_code)
        .is_some_and(|code| code == ErrorCode::Unknown);
    if unknown { Ok(()) } else { Err(error) }
}

/// Whether a database that was given back is sound, and can be opened without anything appearing beside it.
///
/// # Errors
/// What SQLite says of it.
pub fn check_database(path: &Path) -> Result<()> {
    sound(path).map_err(|error| error.at(path))
}

fn discard(folder: &Dir, name: &OsStr) {
    let _ = folder.unlink(name);
    for suffix in database::COMPANIONS {
        let _ = folder.unlink(&with(name, suffix));
    }
}

fn with(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

fn split(path: &Path) -> Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => Ok((parent, name)),
        _ => Err(Error::failed("no whole path of a file:").at(path)),
    }
}

#[cfg(test)]
mod tests;
