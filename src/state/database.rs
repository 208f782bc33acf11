//! `workbuddy.db`: the places that the application itself goes by follow a move, and everything else in it stays.
//!
//! A few columns are known to hold a folder, or a list of folders as JSON; they are rewritten in one transaction, all or
//! none. A path in any other column is somebody's words (a title, a prompt) or belongs to a version that is not known
//! here: it is listed, for a person to decide. Works on a private copy, see [`paths::database`](crate::paths::database).

mod moving;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, human};
use crate::paths::database::{self, Column, Stored, Table, quoted, refused};
use crate::paths::{Rewriter, TextKind};

/// A column holds a path and nothing else.
const PLAIN: [(&str, &str); 3] = [
    ("sessions", "cwd"),
    ("workspaces", "path"),
    ("automation_runs", "source_cwd"),
];

/// A column holds JSON with paths in it.
const JSON: [(&str, &str); 3] = [
    ("automations", "cwds"),
    ("automation_runs", "runs_json"),
    ("automation_runs", "metadata_json"),
];

/// What was changed in the database, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewritten {
    /// How many rows, by `table.column`.
    pub rows: BTreeMap<String, u64>,
    /// How many references in them.
    pub references: u64,
    /// Workspaces that the new folder had already.
    pub merged: Vec<Merged>,
    /// What mentions the old folder still.
    pub left: Vec<Left>,
    /// Whatever else a person should know.
    pub notes: Vec<String>,
}

impl Rewritten {
    /// Whether the database is as it was.
    pub fn is_unchanged(&self) -> bool {
        self.rows.is_empty() && self.merged.is_empty()
    }
}

/// Two rows of `workspaces` that became one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The folder that moved.
    pub old: String,
    /// Where it is now, which had a row of its own.
    pub new: String,
    /// Whose row was kept: the one that was opened last.
    pub kept: Kept,
}

/// One of two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// The row of the folder that moved; it has the new path now.
    Old,
    /// The row that had the new path already.
    New,
}

/// A column that mentions the old folder still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// How many rows of it.
    pub rows: u64,
    /// How many references in them.
    pub references: u64,
    /// How many places that may be references or other paths.
    pub doubtful: u64,
}

/// Rewrites what the application goes by, in the private copy `database`. The rewriter should change all of a text, not
/// only fields: what is rewritten is a path or a list of paths.
///
/// # Errors
/// A file that is no sound database, before or afterwards; a value that the database does not take. Then nothing was
/// changed.
pub fn rewrite(database: &Path, rewriter: &Rewriter) -> Result<Rewritten> {
    run(database, rewriter, true)
}

/// What [`rewrite`] would do and list, found by doing it without keeping it. `database` is a private copy too.
///
/// # Errors
/// As [`rewrite`].
pub fn preview(database: &Path, rewriter: &Rewriter) -> Result<Rewritten> {
    run(database, rewriter, false)
}

/// Every folder that the private copy `database` says somebody works in, for [`plan`](super::slugs::plan).
///
/// # Errors
/// What SQLite can not open or read.
pub fn folders(database: &Path) -> Result<BTreeSet<String>> {
    let connection = database::open(database)?;
    let mut found = BTreeSet::new();
    for table in database::tables(&connection).map_err(refused)? {
        for name in &table.columns {
            let plain = is_one_of(&PLAIN, &table, name);
            if plain || is_one_of(&[("automations", "cwds")], &table, name) {
                let column = Column {
                    table: &table,
                    name,
                };
                collect(&connection, &column, plain, &mut found).map_err(refused)?;
            }
        }
    }
    database::close(connection)?;
    Ok(found)
}

fn collect(
    connection: &Connection,
    column: &Column,
    plain: bool,
    found: &mut BTreeSet<String>,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare(&format!(
        "SELECT DISTINCT {} FROM {}",
        quoted(column.name),
        quoted(&column.table.name)
    ))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let ValueRef::Text(text) = row.get_ref(0)? else {
            continue;
        };
        if plain {
            found.extend(std::str::from_utf8(text).map(str::to_owned));
        } else if let Ok(list) = serde_json::from_slice::<Vec<String>>(text) {
            found.extend(list);
        }
    }
    Ok(())
}

fn run(database: &Path, rewriter: &Rewriter, keep: bool) -> Result<Rewritten> {
    let mut connection = database::open(database)?;
    database::check_integrity(&connection)?;
    let transaction = connection.transaction().map_err(refused)?;
    let mut outcome = Rewritten::default();
    let tables = database::tables(&transaction).map_err(refused)?;
    let followers = followers(&transaction, &tables).map_err(refused)?;
    for table in &tables {
        for name in &table.columns {
            let column = Column { table, name };
            let follows = followers.contains(&(table.name.clone(), name.clone()));
            if table.key.is_empty() {
                list(&transaction, &column, rewriter, &mut outcome).map_err(refused)?;
            } else if follows || is_one_of(&PLAIN, table, name) {
                moving::column(&transaction, &column, rewriter, &mut outcome)?;
            } else if is_one_of(&JSON, table, name) {
                rewrite_json(&transaction, &column, rewriter, &mut outcome)?;
            } else {
                list(&transaction, &column, rewriter, &mut outcome).map_err(refused)?;
            }
        }
    }
    list_virtual(&transaction, rewriter, &mut outcome).map_err(refused)?;
    if !outcome.is_unchanged() {
        database::rebuild_searches(&transaction, &mut outcome.notes).map_err(refused)?;
    }
    if keep && !outcome.is_unchanged() {
        transaction.commit().map_err(refused)?;
        database::check_integrity(&connection)?;
    } else {
        transaction.rollback().map_err(refused)?;
    }
    database::close(connection)?;
    Ok(outcome)
}

fn is_one_of(known: &[(&str, &str)], table: &Table, column: &str) -> bool {
    known
        .iter()
        .any(|(t, c)| table.name.eq_ignore_ascii_case(t) && column.eq_ignore_ascii_case(c))
}

/// Columns that must agree with one of the plain ones, because the schema says `REFERENCES`: foreign keys are not
/// enforced while we write.
fn followers(
    connection: &Connection,
    tables: &[Table],
) -> rusqlite::Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    let mut query = connection
        .prepare("SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1)")?;
    for table in tables {
        let mut rows = query.query([&table.name])?;
        while let Some(row) = rows.next()? {
            let (parent, from): (String, String) = (row.get(0)?, row.get(1)?);
            let to: Option<String> = row.get(2)?;
            let plain = PLAIN.iter().any(|(t, c)| {
                // Without a column the parent's primary key is meant.
                let key = to
                    .as_deref()
                    .unwrap_or(if *t == "workspaces" { "path" } else { "id" });
                parent.eq_ignore_ascii_case(t) && key.eq_ignore_ascii_case(c)
            });
            if plain {
                found.insert((table.name.clone(), from));
            }
        }
    }
    Ok(found)
}

fn rewrite_json(
    connection: &Connection,
    column: &Column,
    rewriter: &Rewriter,
    outcome: &mut Rewritten,
) -> Result<()> {
    let mut left = Count::default();
    let changing = column.rows_where(connection, "'text', 'blob'", |value| match value {
        ValueRef::Text(text) => {
            let found = rewriter.rewrite(TextKind::Json, text, &mut Vec::new());
            left.add(0, found.doubtful.len() as u64);
            !found.references.is_empty()
        }
        other => {
            left.look(other, rewriter);
            false
        }
    });
    let changing = changing.map_err(refused)?;
    left.note(column, outcome);
    let read = column.select(&column.same_row(1));
    let mut select = connection.prepare(&read).map_err(refused)?;
    let mut update = connection.prepare(&column.update()).map_err(refused)?;
    for key in changing {
        let mut new = Vec::new();
        let references = select
            .query_row(params_from_iter(&key), |row| {
                let text = row.get_ref(0)?.as_bytes()?;
                Ok(rewriter
                    .rewrite(TextKind::Json, text, &mut new)
                    .references
                    .len())
            })
            .map_err(refused)?;
        let new = Stored::Text(new);
        update
            .execute(params_from_iter(std::iter::once(&new).chain(&key)))
            .map_err(|e| not_taken(column, &new, e))?;
        changed(column, references as u64, outcome);
    }
    Ok(())
}

fn changed(column: &Column, references: u64, outcome: &mut Rewritten) {
    let name = format!("{}.{}", column.table.name, column.name);
    *outcome.rows.entry(name).or_default() += 1;
    outcome.references += references;
}

fn not_taken(column: &Column, value: &Stored, error: rusqlite::Error) -> Error {
    if !database::is_constraint(&error) {
        return refused(error);
    }
    let value = match value {
        Stored::Text(text) => human::bytes(text),
        other => human::escape(&format!("{other:?}")).into_owned(),
    };
    Error::failed(format!(
        "the column {} of the table {} does not take the new value `{value}`",
        human::name(column.name),
        human::name(&column.table.name),
    ))
    .because(error)
    .hint("another row has this value, or the application has other rules now: nothing in the database was changed")
}

/// What is still mentioned, row by row.
#[derive(Default)]
struct Count {
    rows: u64,
    references: u64,
    doubtful: u64,
}

impl Count {
    fn add(&mut self, references: u64, doubtful: u64) {
        self.rows += u64::from(references + doubtful > 0);
        self.references += references;
        self.doubtful += doubtful;
    }

    fn look(&mut self, value: ValueRef, rewriter: &Rewriter) {
        match value {
            ValueRef::Text(text) => {
                let kind = match text.first() {
                    Some(b'{' | b'[') => TextKind::Json,
                    _ => TextKind::Other,
                };
                let found = rewriter.rewrite(kind, text, &mut Vec::new());
                let references = found.references.len() as u64 + found.left;
                self.add(references, found.doubtful.len() as u64);
            }
            ValueRef::Blob(bytes) => {
                let mut scan = rewriter.scan_binary();
                scan.push(bytes);
                self.add(scan.count(), 0);
            }
            _ => {}
        }
    }

    fn note(self, column: &Column, outcome: &mut Rewritten) {
        if self.rows > 0 {
            outcome.left.push(Left {
                table: column.table.name.clone(),
                column: column.name.to_owned(),
                rows: self.rows,
                references: self.references,
                doubtful: self.doubtful,
            });
        }
    }
}

/// Lists what a column mentions, and changes nothing.
fn list(
    connection: &Connection,
    column: &Column,
    rewriter: &Rewriter,
    outcome: &mut Rewritten,
) -> rusqlite::Result<()> {
    let name = quoted(column.name);
    let mut query = connection.prepare(&format!(
        "SELECT {name} FROM {} WHERE typeof({name}) IN ('text', 'blob')",
        quoted(&column.table.name)
    ))?;
    let mut count = Count::default();
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        count.look(row.get_ref(0)?, rewriter);
    }
    count.note(column, outcome);
    Ok(())
}

/// A full-text table that keeps texts of its own can only be listed. One over another table mirrors what was listed
/// there.
fn list_virtual(
    connection: &Connection,
    rewriter: &Rewriter,
    outcome: &mut Rewritten,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'create virtual table%' \
         AND replace(sql, ' ', '') NOT LIKE '%content=%' ORDER BY name",
    )?;
    let names: Vec<String> = query
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in names {
        let mut look = || {
            let mut query =
                connection.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
            let columns: Vec<String> = query
                .query_map([&name], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let table = Table {
                name: name.clone(),
                columns,
                key: Vec::new(),
            };
            table.columns.iter().try_for_each(|name| {
                let column = Column {
                    table: &table,
                    name,
                };
                list(connection, &column, rewriter, outcome)
            })
        };
        // Its module may be one that only the application has.
        if let Err(error) = look() {
            outcome.notes.push(format!(
                "{}: this virtual table could not be looked at: {}",
                human::escape(&name),
                human::escape(&error.to_string())
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
