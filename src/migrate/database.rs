//! References in SQLite databases, changed by SQL in a copy that then takes the database's place.
//!
//! The source is never opened: even a reader makes files beside a database. The exact copy in the home, with
//! its write-ahead log or rollback journal, is copied once more into a scratch folder; there SQLite brings it
//! up to date, every text in every plain column is rewritten in one transaction, and the result must pass
//! `integrity_check`. When anything fails, the exact copy stays, and the report says so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::outcome::Database;
use super::plan::Skipped;
use super::record::{Class, Done, Record};
use super::rewriting::write_count;
use super::tally::Tally;
use super::transfer::{Transfer, write_error};
use crate::base::{Error, Kind, Result, human};
use crate::disk::{self, Buffers, Copied, CopyError, Dir, Identity, NewFile, Xattrs};
use crate::paths::{Rewriter, Spelling, TextKind};

/// What SQLite keeps beside a database. The shared-memory file is only a cache of the log.
const COMPANIONS: [&str; 3] = ["-wal", "-journal", "-shm"];

type Counts = BTreeMap<(u16, Spelling), u64>;

/// Rewrites every database that the pass has met.
pub(super) fn rewrite_all(
    transfer: &Transfer,
    record: &Record,
    tally: &mut Tally,
) -> Result<Vec<Database>> {
    let mut reports = Vec::new();
    for path in tally.databases.clone() {
        transfer.ctx.stop.check()?;
        reports.push(rewrite_one(transfer, record, &path, tally)?);
    }
    Ok(reports)
}

fn rewrite_one(
    transfer: &Transfer,
    record: &Record,
    path: &Path,
    tally: &mut Tally,
) -> Result<Database> {
    let mut report = Database {
        path: path.to_path_buf().into(),
        references: 0,
        failed: false,
        notes: Vec::new(),
    };
    // Taken by this run, and so as it is in the source.
    let Some(done) = record.file(path) else {
        return Ok(report);
    };
    let scratch = transfer.home.scratch(transfer.ctx)?;
    let staged = stage(transfer, path, scratch.path())?;
    match rewrite(&staged, transfer.rewriter) {
        Ok((counts, notes)) => {
            report.notes = notes;
            report.references = counts.values().sum();
            if !counts.is_empty() {
                // Before it has its name: an old log beside the new database would undo parts of it.
                remove_companions(transfer, path, tally)?;
                let done = put_back(transfer, path, done, scratch.path(), counts)?;
                // It was counted as copied, without references.
                tally.copied = tally.copied.saturating_sub(1);
                tally.add(path, &done);
                let mut lines = Vec::new();
                for (mapping, spelling, n) in &done.references {
                    write_count(&mut lines, path, (*mapping, *spelling), *n);
                }
                transfer.append(&[], &lines)?;
                transfer.record_file(&done)?;
            }
        }
        Err(error) => {
            report.failed = true;
            report.notes.push(format!(
                "copied exactly, its references could not be looked for: {}",
                human::escape(&error.to_string())
            ));
        }
    }
    Ok(report)
}

fn split(path: &Path) -> (&Path, OsString) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default().to_owned(),
    )
}

fn fail(transfer: &Transfer, path: &Path, error: std::io::Error) -> Error {
    write_error("the database", &transfer.path(path), error)
}

/// Copies the database and what belongs to it into the scratch folder.
fn stage(transfer: &Transfer, path: &Path, scratch: &Path) -> Result<PathBuf> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let from = transfer.dest.open_beneath(folder).map_err(fail)?;
    let to = Dir::open(scratch).map_err(fail)?;
    for suffix in ["", "-wal", "-journal"] {
        let mut source = name.clone();
        source.push(suffix);
        if from.find(&source).map_err(fail)?.is_some() {
            let (mut copy, _) = copy(transfer, path, &from, &source, &to)?;
            copy.publish(format!("database{suffix}").as_ref())
                .map_err(fail)?;
        }
    }
    Ok(scratch.join("database"))
}

fn copy<'d>(
    transfer: &Transfer,
    path: &Path,
    from: &Dir,
    name: &std::ffi::OsStr,
    to: &'d Dir,
) -> Result<(NewFile<'d>, Copied)> {
    let fail = |e| fail(transfer, path, e);
    let meta = from.stat(name).map_err(fail)?;
    let file = from.open_file(name).map_err(fail)?;
    let stop = transfer.ctx.stop;
    disk::copy_file(&file, &meta, to, &mut Identity, &mut Buffers::new(), stop)
        .map_err(|e| copy_error(transfer, path, e))
}

fn copy_error(transfer: &Transfer, path: &Path, error: CopyError) -> Error {
    match error {
        CopyError::Read(error) | CopyError::Write(error) => fail(transfer, path, error),
        CopyError::Stopped => Error::new(Kind::Interrupted, "interrupted"),
    }
}

/// Replaces the exact copy by the rewritten one, with the modes, times and attributes of the source, after it has
/// been read back.
fn put_back(
    transfer: &Transfer,
    path: &Path,
    done: &Done,
    scratch: &Path,
    counts: Counts,
) -> Result<Done> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let from = Dir::open(scratch).map_err(fail)?;
    let to = transfer.dest.open_beneath(folder).map_err(fail)?;
    let dress = to.stat(&name).map_err(fail)?;
    let attributes = to.open_file(&name).and_then(Xattrs::of).map_err(fail)?;
    let (new, copied) = copy(transfer, path, &from, "database".as_ref(), &to)?;
    // Those of the exact copy, which this filesystem took before.
    attributes.apply(new.file()).map_err(|(_, e)| fail(e))?;
    new.dress(transfer.owner_of(&dress), dress.mode, dress.mtime)
        .map_err(fail)?;
    let stop = transfer.ctx.stop;
    let back = disk::check_open(new.file(), &mut Buffers::new(), stop, &mut |_, _| {})
        .map_err(|e| copy_error(transfer, path, e))?;
    if back.digest != copied.digest {
        return Err(Error::failed("what was written reads back differently:")
            .at(transfer.path(path))
            .hint("the disk or its driver is failing: choose a DEST on another one"));
    }
    new.publish_over(&name).map_err(fail)?;
    let mut rewritten = done.clone();
    rewritten.class = Class::Rewritten;
    rewritten.size = copied.size;
    rewritten.digest = copied.digest.to_hex().to_string();
    rewritten.references = counts.into_iter().map(|((m, s), n)| (m, s, n)).collect();
    Ok(rewritten)
}

/// What the log or journal held is in the database now; the old ones would undo that.
fn remove_companions(transfer: &Transfer, path: &Path, tally: &mut Tally) -> Result<()> {
    let fail = |e| fail(transfer, path, e);
    let (folder, name) = split(path);
    let dest = transfer.dest.open_beneath(folder).map_err(fail)?;
    for suffix in COMPANIONS {
        let mut companion = name.clone();
        companion.push(suffix);
        if dest.find(&companion).map_err(fail)?.is_some() {
            dest.unlink(&companion).map_err(fail)?;
            let rel = folder.join(&companion);
            tally.copied = tally.copied.saturating_sub(1);
            tally.binary.retain(|(path, _)| *path != rel);
            tally.skipped.push(Skipped::by_design(
                rel,
                format!("what it held is in {} now", human::path(Path::new(&name))),
            ));
        }
    }
    Ok(())
}

fn rewrite(database: &Path, rewriter: &Rewriter) -> Result<(Counts, Vec<String>)> {
    let fail = |e: rusqlite::Error| Error::failed("SQLite").because(e);
    let mut connection = open(database).map_err(fail)?;
    check_integrity(&connection)?;
    let (counts, notes) = rewrite_tables(&mut connection, rewriter).map_err(fail)?;
    if !counts.is_empty() {
        check_integrity(&connection)?;
    }
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(fail)?;
    connection.close().map_err(|(_, e)| fail(e))?;
    Ok((counts, notes))
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    // The schema is somebody else's: none of its code may run, and triggers would write more than was read.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

fn check_integrity(connection: &Connection) -> Result<()> {
    let verdict: rusqlite::Result<String> =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(Error::failed(format!("integrity_check says: {verdict}"))),
        Err(error) => Err(Error::failed("integrity_check failed").because(error)),
    }
}

fn rewrite_tables(
    connection: &mut Connection,
    rewriter: &Rewriter,
) -> rusqlite::Result<(Counts, Vec<String>)> {
    let transaction = connection.transaction()?;
    let (mut counts, mut notes) = (Counts::new(), Vec::new());
    for table in tables(&transaction)? {
        if table.key.is_empty() {
            notes.push(format!(
                "{}: its rows have no name, they were left alone",
                human::escape(&table.name)
            ));
            continue;
        }
        for name in &table.columns {
            let column = Column {
                table: &table,
                name,
            };
            rewrite_column(&transaction, &column, rewriter, &mut counts, &mut notes)?;
        }
    }
    if !counts.is_empty() {
        rebuild_searches(&transaction, &mut notes)?;
    }
    transaction.commit()?;
    Ok((counts, notes))
}

/// A full-text index over somebody else's table keeps words of texts that have changed now, and triggers, which
/// would have told it, were off: it is made anew.
fn rebuild_searches(connection: &Connection, notes: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut query = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' \
         AND sql LIKE 'create virtual table%using fts%' AND replace(sql, ' ', '') LIKE '%content=%'",
    )?;
    let names: Vec<String> = query
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in names {
        let table = quoted(&name);
        let rebuilt = connection.execute(
            &format!("INSERT INTO {table}({table}) VALUES('rebuild')"),
            [],
        );
        if let Err(error) = rebuilt {
            notes.push(format!(
                "{}: this full-text index could not be made anew: {}",
                human::escape(&name),
                human::escape(&error.to_string())
            ));
        }
    }
    Ok(())
}

struct Table {
    name: String,
    /// Stored columns; those that SQLite computes follow by themselves.
    columns: Vec<String>,
    /// What names a row: the row number, or the primary key of a table without one.
    key: Vec<String>,
}

/// The plain tables: not views, not virtual ones, and not the shadows in which virtual ones keep an index
/// that must agree with their text.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut query = connection.prepare(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
         AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name",
    )?;
    let listed: Vec<(String, bool)> = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    listed
        .into_iter()
        .map(|(name, without_row_number)| {
            let mut query =
                connection.prepare("SELECT name, pk, hidden FROM pragma_table_xinfo(?1)")?;
            let all: Vec<(String, i64, i64)> = query
                .query_map([&name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let taken = |alias: &str| {
                all.iter()
                    .any(|(column, ..)| column.eq_ignore_ascii_case(alias))
            };
            let key = if without_row_number {
                all.iter()
                    .filter(|c| c.1 > 0)
                    .map(|c| c.0.clone())
                    .collect()
            } else {
                ["rowid", "_rowid_", "oid"]
                    .into_iter()
                    .find(|a| !taken(a))
                    .map(String::from)
                    .into_iter()
                    .collect()
            };
            let columns = all
                .iter()
                .filter(|c| c.2 == 0)
                .map(|c| c.0.clone())
                .collect();
            Ok(Table { name, columns, key })
        })
        .collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statements for one column of one table.
struct Column<'c> {
    table: &'c Table,
    name: &'c str,
}

impl Column<'_> {
    /// `SELECT value, key… FROM table WHERE …`
    fn select(&self, condition: &str) -> String {
        let keys: Vec<String> = self.table.key.iter().map(|k| quoted(k)).collect();
        format!(
            "SELECT {}, {} FROM {} WHERE {condition}",
            quoted(self.name),
            keys.join(", "),
            quoted(&self.table.name)
        )
    }

    /// `key IS ?n AND …`, counted from `first`. `IS`, because a key may be NULL.
    fn same_row(&self, first: usize) -> String {
        let keys = self.table.key.iter().enumerate();
        let parts: Vec<String> = keys
            .map(|(i, k)| format!("{} IS ?{}", quoted(k), first + i))
            .collect();
        parts.join(" AND ")
    }

    fn update(&self) -> String {
        format!(
            "UPDATE {} SET {} = ?1 WHERE {}",
            quoted(&self.table.name),
            quoted(self.name),
            self.same_row(2)
        )
    }
}

fn rewrite_column(
    connection: &Connection,
    column: &Column,
    rewriter: &Rewriter,
    counts: &mut Counts,
    notes: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare(&column.select(&column.same_row(1)))?;
    let mut update = connection.prepare(&column.update())?;
    let mut taken = 0u64;
    for key in changing_rows(connection, column, rewriter)? {
        let Some((text, found)) = select.query_row(params_from_iter(&key), |row| {
            Ok(rewritten(row.get_ref(0)?, rewriter))
        })?
        else {
            continue;
        };
        let values = std::iter::once(Value::Text(text)).chain(key);
        match update.execute(params_from_iter(values)) {
            Ok(_) => {
                for (kind, n) in found {
                    *counts.entry(kind).or_default() += n;
                }
            }
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::ConstraintViolation =>
            {
                taken += 1;
            }
            Err(error) => return Err(error),
        }
    }
    if taken > 0 {
        notes.push(format!(
            "{}.{}: {} left alone, the database does not take the new value",
            human::escape(&column.table.name),
            human::escape(column.name),
            human::plural(taken, "row", "rows")
        ));
    }
    Ok(())
}

/// The keys of the rows that will change. Only the keys are held in memory: a value may be large.
fn changing_rows(
    connection: &Connection,
    column: &Column,
    rewriter: &Rewriter,
) -> rusqlite::Result<Vec<Vec<Value>>> {
    let condition = format!("typeof({}) = 'text'", quoted(column.name));
    let mut query = connection.prepare(&column.select(&condition))?;
    let mut rows = query.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        if rewritten(row.get_ref(0)?, rewriter).is_some() {
            keys.push(
                (1..=column.table.key.len())
                    .map(|i| row.get(i))
                    .collect::<rusqlite::Result<_>>()?,
            );
        }
    }
    Ok(keys)
}

/// A text with its references changed; `None` when there are none, or it is no text.
fn rewritten(value: ValueRef, rewriter: &Rewriter) -> Option<(String, Counts)> {
    let ValueRef::Text(text) = value else {
        return None;
    };
    let kind = match text.first() {
        Some(b'{' | b'[') => TextKind::Json,
        _ => TextKind::Other,
    };
    let mut output = Vec::new();
    let found = rewriter.rewrite(kind, text, &mut output);
    if found.references.is_empty() {
        return None;
    }
    let mut counts = Counts::new();
    for reference in &found.references {
        *counts
            .entry((reference.mapping, reference.spelling))
            .or_default() += 1;
    }
    // A reference is replaced by text, so only what was no UTF-8 before is none now.
    Some((String::from_utf8(output).ok()?, counts))
}
