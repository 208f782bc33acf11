//! References in SQLite databases: one more spelling in which a path is kept, and one that bytes can not be replaced
//! in. Lengths, checksums and indexes depend on each value, so they are changed by SQL.
//!
//! Everything here works on a private copy that nobody else has open, with the write-ahead log or rollback journal that
//! belongs to it lying beside it: SQLite brings it up to date, and when it is closed one file remains that holds all.
//! Where copies are made and put back is the matter of whoever moves the database.

mod schema;

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};

pub use schema::{Column, Stored, Table, quoted, tables};

use super::{Rewriter, Spelling, TextKind};
use crate::base::{Error, Result, human};

/// What SQLite keeps beside a database. The shared-memory file is only a cache of the log.
pub const COMPANIONS: [&str; 3] = ["-wal", "-journal", "-shm"];

/// How often each mapping was found in each spelling.
pub type Counts = BTreeMap<(u16, Spelling), u64>;

/// What names a row: a value for each part of [`Table::key`].
pub type Key = Vec<Stored>;

/// Rewrites every text in every plain column, in one transaction. Returns what was found, and what a person should know
/// of: tables and rows that had to be left alone.
///
/// # Errors
/// A file that is no sound database, before or afterwards. What lies on the disk then is of no use.
pub fn rewrite(database: &Path, rewriter: &Rewriter) -> Result<(Counts, Vec<String>)> {
    let mut connection = open(database)?;
    check_integrity(&connection)?;
    let (counts, notes) = rewrite_tables(&mut connection, rewriter).map_err(refused)?;
    if !counts.is_empty() {
        check_integrity(&connection)?;
    }
    close(connection)?;
    Ok((counts, notes))
}

/// Opens a private copy to change it. Nothing that its schema says is executed.
///
/// # Errors
/// What SQLite does not open.
pub fn open(database: &Path) -> Result<Connection> {
    let prepared = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(database, flags)?;
        // The schema is somebody else's: none of its code may run, and triggers would write more than was read.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "foreign_keys", false)?;
        // The index of the log stays in memory. As a file it is mapped, and on a full disk a mapped file is a signal
        // instead of an error. See https://www.sqlite.org/wal.html#noshm
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        Ok(connection)
    };
    prepared().map_err(refused)
}

/// Moves what the log holds into the database and closes it, so that one file remains.
///
/// # Errors
/// What SQLite can not write.
pub fn close(connection: Connection) -> Result<()> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(refused)?;
    connection.close().map_err(|(_, e)| refused(e))
}

/// Whether the database is sound.
///
/// # Errors
/// The first thing that is not.
pub fn check_integrity(connection: &Connection) -> Result<()> {
    let verdict: rusqlite::Result<String> =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(Error::failed(format!(
            "integrity_check says: {}",
            human::escape(&verdict)
        ))),
        Err(error) => Err(Error::failed("integrity_check failed").because(error)),
    }
}

/// What SQLite says, as an error of this program.
pub fn refused(error: rusqlite::Error) -> Error {
    Error::failed("SQLite").because(error)
}

/// Whether it is a rule of the schema that does not take a value.
pub fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
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
/// would have told it, were off: it is made anew. One that can not be is noted.
///
/// # Errors
/// A schema that can not be read.
pub fn rebuild_searches(connection: &Connection, notes: &mut Vec<String>) -> rusqlite::Result<()> {
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
    let changes = |value: ValueRef| rewritten(value, rewriter).is_some();
    for key in column.rows_where(connection, "'text'", changes)? {
        let Some((text, found)) = select.query_row(params_from_iter(&key), |row| {
            Ok(rewritten(row.get_ref(0)?, rewriter))
        })?
        else {
            continue;
        };
        let values = std::iter::once(Stored::Text(text)).chain(key);
        match update.execute(params_from_iter(values)) {
            Ok(_) => {
                for (kind, n) in found {
                    *counts.entry(kind).or_default() += n;
                }
            }
            Err(error) if is_constraint(&error) => taken += 1,
            Err(error) => return Err(error),
        }
    }
    if taken > 0 {
        notes.push(format!(
            "{}.{}: {} left alone, the database does not take the new value",
            human::name(&column.table.name),
            human::name(column.name),
            human::plural(taken, "row", "rows")
        ));
    }
    Ok(())
}

/// A text with its references changed; `None` when there are none, or it is no text.
fn rewritten(value: ValueRef, rewriter: &Rewriter) -> Option<(Vec<u8>, Counts)> {
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
    Some((output, counts))
}
