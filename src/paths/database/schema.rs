//! The tables and columns of somebody else's database, and statements about one of its values.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row};

use super::Key;

/// A value exactly as it is kept. A text may be no UTF-8: SQLite does not look at that.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// `NULL`
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl FromSql for Stored {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Stored::Null,
            ValueRef::Integer(n) => Stored::Integer(n),
            ValueRef::Real(n) => Stored::Real(n),
            ValueRef::Text(text) => Stored::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Stored::Blob(bytes.to_vec()),
        })
    }
}

impl ToSql for Stored {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Stored::Null => ValueRef::Null,
            Stored::Integer(n) => ValueRef::Integer(*n),
            Stored::Real(n) => ValueRef::Real(*n),
            Stored::Text(text) => ValueRef::Text(text),
            Stored::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Stored columns; those that SQLite computes follow by themselves.
    pub columns: Vec<String>,
    /// What names a row: the row number, or the primary key of a table without one. Empty when each of the row
    /// number's names is a column of its own.
    pub key: Vec<String>,
}

/// The plain tables: not views, not virtual ones, and not the shadows in which virtual ones keep an index
/// that must agree with their text.
///
/// # Errors
/// A schema that can not be read.
pub fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
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

/// A name as SQL takes it, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// One column of one table, and the statements about it.
#[derive(Clone, Copy, Debug)]
pub struct Column<'c> {
    /// The table.
    pub table: &'c Table,
    /// The column.
    pub name: &'c str,
}

impl Column<'_> {
    /// `SELECT value, key… FROM table WHERE …`
    pub fn select(&self, condition: &str) -> String {
        let keys: Vec<String> = self.table.key.iter().map(|k| quoted(k)).collect();
        format!(
            "SELECT {}, {} FROM {} WHERE {condition}",
            quoted(self.name),
            keys.join(", "),
            quoted(&self.table.name)
        )
    }

    /// `key IS ?n AND …`, counted from `first`. `IS`, because a key may be NULL.
    pub fn same_row(&self, first: usize) -> String {
        let keys = self.table.key.iter().enumerate();
        let parts: Vec<String> = keys
            .map(|(i, k)| format!("{} IS ?{}", quoted(k), first + i))
            .collect();
        parts.join(" AND ")
    }

    /// `UPDATE table SET column = ?1 WHERE key IS ?2 …`
    pub fn update(&self) -> String {
        format!(
            "UPDATE {} SET {} = ?1 WHERE {}",
            quoted(&self.table.name),
            quoted(self.name),
            self.same_row(2)
        )
    }

    /// The key of a row of [`Column::select`].
    ///
    /// # Errors
    /// A row of another statement.
    pub fn key_of(&self, row: &Row) -> rusqlite::Result<Key> {
        (1..=self.table.key.len()).map(|i| row.get(i)).collect()
    }

    /// The keys of the rows whose value is of one of `types` (as `typeof` names them, quoted) and `wanted`. Only keys
    /// are held in memory: a value may be large.
    ///
    /// # Errors
    /// What can not be read.
    pub fn rows_where(
        &self,
        connection: &Connection,
        types: &str,
        mut wanted: impl FnMut(ValueRef) -> bool,
    ) -> rusqlite::Result<Vec<Key>> {
        let condition = format!("typeof({}) IN ({types})", quoted(self.name));
        let mut query = connection.prepare(&self.select(&condition))?;
        let mut rows = query.query([])?;
        let mut keys = Vec::new();
        while let Some(row) = rows.next()? {
            if wanted(row.get_ref(0)?) {
                keys.push(self.key_of(row)?);
            }
        }
        Ok(keys)
    }
}
