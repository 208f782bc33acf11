//! Tables, as wide as the terminal is: a column has room whole, or is left out.
//!
//! Half of a number is another number, and half of an age is a lie. So only words are cut, in the last column that is
//! shown; where one is left out, the head says so. The first column holds ids and is never cut: an id that is too long
//! to leave room for what matters has a line for itself, and the rest of its row follows below it.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::output::{FAINT, styled, terminal_width};
use super::width::fit;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    /// Numbers, to the right.
    Numbers,
    /// Short words, such as states and ages.
    Words,
    /// What a person wrote: it may be cut.
    Text,
}

/// One column: its title, what stands in it, and a cell a row.
#[derive(Debug)]
pub(super) struct Column {
    pub title: &'static str,
    pub holds: Cells,
    pub cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.width());
        cells.max().unwrap_or(0).max(self.title.len())
    }

    /// Whether any row has something to say in it.
    fn says_anything(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(&**cell, "" | "-"))
    }
}

/// Between two columns.
const GAP: usize = 2;

/// Less of a text is a waste of room.
const LEAST: usize = 8;

/// How wide the first columns are, `matter` of them after the ids, when everything in them is whole.
pub(super) fn needs(columns: &[Column], matter: usize) -> usize {
    let widths = columns.iter().take(1 + matter).map(Column::width);
    widths.sum::<usize>() + GAP * matter
}

/// Writes the table. The first column holds ids, and the next `matter` are shown even where an id is too long for that.
pub(super) fn write(out: &mut String, mut columns: Vec<Column>, matter: usize, with_head: bool) {
    let limit = terminal_width();
    if limit.is_some() {
        let mut n = 0;
        columns.retain(|column| {
            n += 1;
            n <= 1 + matter || column.says_anything()
        });
    }
    let rows = columns.first().map_or(0, |ids| ids.cells.len());
    let shape = Shape::of(&columns, matter, limit.unwrap_or(usize::MAX));
    if with_head {
        let mut head = shape.line(&columns, |column| column.title);
        let room = limit.unwrap_or(0).saturating_sub(head.width());
        head.push_str(match (shape.cuts_off, room) {
            (false, _) | (_, ..2) => "",
            (true, 2) => " …",
            (true, _) => "  …",
        });
        let _ = writeln!(out, "{}", styled(FAINT, head));
    }
    for row in 0..rows {
        let id = &columns[0].cells[row];
        let cells = shape.line(&columns, |column| &column.cells[row]);
        let has_room = id.width() <= shape.widths[0];
        let _ = match (has_room, shape.widths.len()) {
            (true, _) => writeln!(out, "{cells}"),
            (false, 1) => writeln!(out, "{id}"),
            (false, _) => {
                let rest = &cells[cells.find(id.as_str()).unwrap_or(0) + id.len()..];
                let rest = rest.trim_start();
                let pad = shape.widths[0] + GAP + shape.indent(&columns, row);
                writeln!(out, "{id}\n{:pad$}{rest}", "")
            }
        };
    }
}

/// The columns that have room, and how wide each is.
struct Shape {
    widths: Vec<usize>,
    /// Whether there are more.
    cuts_off: bool,
}

impl Shape {
    fn of(columns: &[Column], matter: usize, limit: usize) -> Shape {
        let Some((ids, rest)) = columns.split_first() else {
            return Shape {
                widths: Vec::new(),
                cuts_off: false,
            };
        };
        let needed: usize = rest
            .iter()
            .take(matter)
            .map(|column| column.width() + GAP)
            .sum();
        let for_ids = limit.saturating_sub(needed);
        let fitting = ids.cells.iter().map(|id| id.width());
        let fitting = fitting.filter(|width| *width <= for_ids).max();
        // Where nothing has room beside an id, ids are all there is.
        let mut taken = match fitting {
            Some(width) => width.max(ids.title.len()),
            None if needed + ids.title.len() <= limit => ids.title.len(),
            None => ids.width(),
        };
        let mut widths = vec![taken];
        for column in rest {
            let room = limit.saturating_sub(taken + GAP);
            let width = column.width();
            let least = column.title.len().max(LEAST);
            match column.holds {
                _ if width <= room => widths.push(width),
                Cells::Text if room >= least => widths.push(room),
                _ => break,
            }
            taken += GAP + width;
            if width > room {
                break;
            }
        }
        Shape {
            cuts_off: widths.len() < columns.len(),
            widths,
        }
    }

    fn line<'c>(&self, columns: &'c [Column], cell: impl Fn(&'c Column) -> &'c str) -> String {
        let mut line = String::new();
        for (n, (column, width)) in columns.iter().zip(&self.widths).enumerate() {
            // An id is whole, whatever comes of it.
            let text = match n {
                0 => cell(column).to_owned(),
                _ => fit(cell(column), Some(*width)),
            };
            let pad = " ".repeat(width.saturating_sub(text.width()));
            if n > 0 {
                line.push_str("  ");
            }
            match column.holds {
                Cells::Numbers => line.extend([&*pad, &*text]),
                Cells::Words | Cells::Text => line.extend([&*text, &*pad]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// How far to the right the first cell after the id begins in its column.
    fn indent(&self, columns: &[Column], row: usize) -> usize {
        match (columns.get(1), self.widths.get(1)) {
            (Some(column), Some(width)) if column.holds == Cells::Numbers => {
                width.saturating_sub(column.cells[row].width())
            }
            _ => 0,
        }
    }
}
