//! Columns that hold a path and nothing else, and what happens when the new path is taken already.
//!
//! Rows wait for each other: where `/a` becomes `/a/b`, the row of `/a/b` has to go first. Those that no order helps are
//! merged (workspaces, whose path is their name) or refused. Two folders that change places are parked in between.

use std::cmp::Ordering;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::{Count, Kept, Merged, Rewritten, changed, not_taken};
use crate::base::{Result, human};
use crate::paths::Rewriter;
use crate::paths::database::{Column, Key, Stored, is_constraint, quoted, refused};

/// A row whose path is to change.
struct Waiting {
    key: Key,
    /// The path that it had.
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Moves the paths in one column.
pub(super) fn column(
    connection: &Connection,
    column: &Column,
    rewriter: &Rewriter,
    outcome: &mut Rewritten,
) -> Result<()> {
    let mut left = Count::default();
    let keys = column.rows_where(connection, "'text', 'blob'", |value| {
        let moves = matches!(value, ValueRef::Text(path) if rewriter.link_target(path).is_some());
        if !moves {
            left.look(value, rewriter);
        }
        moves
    });
    let keys = keys.map_err(refused)?;
    left.note(column, outcome);
    let mut stuck = Vec::new();
    for key in keys {
        let old = text_of(connection, column, &key)?;
        let Some((_, new)) = rewriter.link_target(&old) else {
            continue;
        };
        stuck.extend(step(
            connection,
            column,
            Waiting { key, old, new },
            outcome,
        )?);
    }
    let merges = super::is_one_of(&[("workspaces", "path")], column.table, column.name);
    while !stuck.is_empty() {
        let before = stuck.len();
        let mut still = Vec::new();
        for row in stuck {
            still.extend(step(connection, column, row, outcome)?);
        }
        stuck = still;
        if stuck.len() < before {
            continue;
        }
        if !merges {
            return Err(refusal(connection, column, &stuck));
        }
        stuck = merge(connection, column, stuck, outcome)?;
        if stuck.len() == before {
            stuck = park(connection, column, stuck)?;
        }
    }
    Ok(())
}

/// Tries to give a row its new path; gives it back when the path is taken.
fn step(
    connection: &Connection,
    column: &Column,
    row: Waiting,
    outcome: &mut Rewritten,
) -> Result<Option<Waiting>> {
    match put(connection, column, &row.key, &row.new) {
        Ok(()) => {
            changed(column, 1, outcome);
            Ok(None)
        }
        Err(error) if is_constraint(&error) => Ok(Some(row)),
        Err(error) => Err(refused(error)),
    }
}

fn put(connection: &Connection, column: &Column, key: &Key, path: &[u8]) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(&column.update())?;
    let path = Stored::Text(path.to_vec());
    update
        .execute(params_from_iter(std::iter::once(&path).chain(key)))
        .map(|_| ())
}

fn text_of(connection: &Connection, column: &Column, key: &Key) -> Result<Vec<u8>> {
    let mut select = connection
        .prepare_cached(&column.select(&column.same_row(1)))
        .map_err(refused)?;
    select
        .query_row(params_from_iter(key), |row| {
            Ok(row.get_ref(0)?.as_bytes()?.to_vec())
        })
        .map_err(refused)
}

/// Says in SQLite's words which rule it is that the first of these rows breaks.
fn refusal(connection: &Connection, column: &Column, stuck: &[Waiting]) -> crate::base::Error {
    let Some(row) = stuck.first() else {
        return refused(rusqlite::Error::QueryReturnedNoRows);
    };
    let value = Stored::Text(row.new.clone());
    match put(connection, column, &row.key, &row.new) {
        Err(error) => not_taken(column, &value, error),
        Ok(()) => refused(rusqlite::Error::QueryReturnedNoRows),
    }
}

/// Of two rows that claim one path the one that was opened last stays. A row that waits itself is no rival.
/// Gives back those that wait still.
fn merge(
    connection: &Connection,
    column: &Column,
    stuck: Vec<Waiting>,
    outcome: &mut Rewritten,
) -> Result<Vec<Waiting>> {
    let mut rest = Vec::new();
    let keys: Vec<Key> = stuck.iter().map(|row| row.key.clone()).collect();
    for row in stuck {
        let rivals = rivals(connection, column, &row).map_err(refused)?;
        if rivals.is_empty() {
            return Err(refusal(connection, column, &[row]));
        }
        let Some(rival) = rivals.into_iter().find(|key| !keys.contains(key)) else {
            rest.push(row);
            continue;
        };
        let order =
            opened(connection, column, &row.key)?.compare(&opened(connection, column, &rival)?);
        let kept = match order {
            Ordering::Greater => Kept::Old,
            _ => Kept::New,
        };
        let loser = if kept == Kept::Old { &rival } else { &row.key };
        let delete = format!(
            "DELETE FROM {} WHERE {}",
            quoted(&column.table.name),
            column.same_row(1)
        );
        connection
            .execute(&delete, params_from_iter(loser))
            .map_err(refused)?;
        outcome.merged.push(Merged {
            old: String::from_utf8_lossy(&row.old).into_owned(),
            new: String::from_utf8_lossy(&row.new).into_owned(),
            kept,
        });
        if kept == Kept::Old {
            // A further rule may still be against it, so it only waits for one thing less.
            rest.extend(step(connection, column, row, outcome)?);
        }
    }
    Ok(rest)
}

/// The rows that have the new path of `row` where the schema allows it only once.
fn rivals(connection: &Connection, column: &Column, row: &Waiting) -> rusqlite::Result<Vec<Key>> {
    let mut query = connection.prepare_cached(
        "SELECT name FROM pragma_index_list(?1) WHERE \"unique\" = 1 AND partial = 0",
    )?;
    let indexes: Vec<String> = query
        .query_map([&column.table.name], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut found = Vec::new();
    for index in indexes {
        let mut query = connection.prepare_cached("SELECT name FROM pragma_index_info(?1)")?;
        let names: Vec<Option<String>> = query
            .query_map([&index], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let Some(names) = names.into_iter().collect::<Option<Vec<String>>>() else {
            continue;
        };
        let (mine, others): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| name.eq_ignore_ascii_case(column.name));
        if mine.is_empty() {
            continue;
        }
        let table = quoted(&column.table.name);
        let mut condition = format!("{} = ?1", quoted(column.name));
        for other in others.iter().map(|name| quoted(name)) {
            let own = column.same_row(2);
            condition += &format!(" AND {other} IS (SELECT {other} FROM {table} WHERE {own})");
        }
        let mut query = connection.prepare(&column.select(&condition))?;
        let path = Stored::Text(row.new.clone());
        let values: Vec<&Stored> = match others.is_empty() {
            true => vec![&path],
            false => std::iter::once(&path).chain(&row.key).collect(),
        };
        let rival = query
            .query_row(params_from_iter(values), |row| column.key_of(row))
            .optional()?;
        found.extend(rival.filter(|key| *key != row.key));
    }
    Ok(found)
}

/// When a workspace was last opened.
struct Opened(Stored);

fn opened(connection: &Connection, column: &Column, key: &Key) -> Result<Opened> {
    let mut columns = column.table.columns.iter();
    let Some(name) = columns.find(|name| name.eq_ignore_ascii_case("last_opened_at")) else {
        return Ok(Opened(Stored::Null));
    };
    let moment = Column {
        table: column.table,
        name,
    };
    connection
        .query_row(
            &moment.select(&moment.same_row(1)),
            params_from_iter(key),
            |row| row.get(0),
        )
        .map(Opened)
        .map_err(refused)
}

impl Opened {
    fn compare(&self, other: &Opened) -> Ordering {
        let order = self.moment().partial_cmp(&other.moment());
        order.unwrap_or(Ordering::Equal)
    }

    /// Milliseconds since 1970, whether it is kept as a number, as digits or as a date. What is not known is oldest.
    fn moment(&self) -> Option<f64> {
        match &self.0 {
            Stored::Integer(n) => Some(*n as f64),
            Stored::Real(n) => Some(*n),
            Stored::Text(text) => {
                let text = std::str::from_utf8(text).ok()?.trim();
                let date = || {
                    // SQLite's own `datetime()` writes a space and no zone, and means UTC.
                    let text = text.replacen(' ', "T", 1);
                    let moment: jiff::Timestamp =
                        text.parse().or_else(|_| format!("{text}Z").parse()).ok()?;
                    Some(moment.as_millisecond() as f64)
                };
                text.parse().ok().or_else(date)
            }
            _ => None,
        }
    }
}

/// Puts rows that only wait for each other out of the way, under paths that nobody has.
fn park(connection: &Connection, column: &Column, rows: Vec<Waiting>) -> Result<Vec<Waiting>> {
    let mut parked = Vec::new();
    for (n, mut row) in rows.into_iter().enumerate() {
        let mut aside = row.new.clone();
        aside.extend(format!("/.wbhome-{n}-on-its-way").bytes());
        put(connection, column, &row.key, &aside).map_err(|e| {
            let value = Stored::Text(row.new.clone());
            not_taken(column, &value, e)
                .hint(format!("it was to replace `{}`", human::bytes(&row.old)))
        })?;
        let keys = column.table.key.iter().zip(&mut row.key);
        for (name, value) in keys {
            if name.eq_ignore_ascii_case(column.name) {
                *value = Stored::Text(aside.clone());
            }
        }
        parked.push(row);
    }
    Ok(parked)
}
