//! A `.jsonl` or `.ndjson` file: on each line any number of values, mostly one.
//!
//! A crash leaves the last line unfinished, and a writer that goes on after it glues the next record to the stump. Each
//! line is judged for itself, so that one torn line says nothing about the next.

use super::Defect;
use super::document::{Encoding, Head, encoding};
use super::scanner::{Scanner, Stuck};
use crate::base::human;

/// Judges a file of JSON lines.
#[derive(Debug)]
pub(super) struct Lines {
    scanner: Scanner,
    head: Head,
    line: Line,
    /// Number of the current line, from 1, and where it begins.
    number: u64,
    begin: u64,
    seen: u64,
    stray_nuls: u64,
    torn: u64,
    first: Option<First>,
    /// The text is not UTF-8: nothing can be said.
    unknown: bool,
}

/// What is known of the current line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Reading,
    Broken,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct First {
    number: u64,
    begin: u64,
    cut: bool,
    last: bool,
}

impl Lines {
    pub(super) fn new() -> Self {
        Lines {
            scanner: Scanner::new(),
            head: Head::default(),
            line: Line::Reading,
            number: 1,
            begin: 0,
            seen: 0,
            stray_nuls: 0,
            torn: 0,
            first: None,
            unknown: false,
        }
    }

    pub(super) fn push(&mut self, mut data: &[u8]) {
        if let Some(head) = self.head.take(&mut data) {
            self.start(head.as_slice());
        }
        if self.head.is_read() {
            self.read(data);
        }
    }

    pub(super) fn push_hole(&mut self, len: u64) {
        let part = len.min(Head::SIZE as u64);
        self.push(&[0; Head::SIZE][..part as usize]);
        let rest = len - part;
        if rest > 0 {
            // One tells what all of them mean.
            self.read(&[0]);
            self.seen = self.seen.saturating_add(rest - 1);
            if self.line == Line::Reading {
                self.stray_nuls = self.stray_nuls.saturating_add(rest - 1);
            }
        }
    }

    fn start(&mut self, head: &[u8]) {
        match encoding(head) {
            Encoding::Utf8 { mark } => {
                self.seen = self.seen.saturating_add(mark as u64);
                self.read(&head[mark..]);
            }
            Encoding::Other => self.unknown = true,
        }
    }

    fn read(&mut self, mut data: &[u8]) {
        while !self.unknown && !data.is_empty() {
            match memchr::memchr(b'\n', data) {
                Some(end) => {
                    self.piece(&data[..end]);
                    self.seen = self.seen.saturating_add(end as u64 + 1);
                    self.end_line(false);
                    data = &data[end + 1..];
                }
                None => {
                    self.piece(data);
                    self.seen = self.seen.saturating_add(data.len() as u64);
                    data = &[];
                }
            }
        }
    }

    /// A piece of one line.
    fn piece(&mut self, data: &[u8]) {
        let mut at = 0;
        while at < data.len() && self.line == Line::Reading {
            if self.scanner.is_done() {
                self.scanner.reset();
            }
            let between = self.scanner.is_at_start();
            if between && data[at] == 0 {
                let nuls = super::nuls::leading_nuls(&data[at..]);
                self.stray_nuls = self.stray_nuls.saturating_add(nuls as u64);
                at += nuls;
                continue;
            }
            let end = match between {
                true => at + 1,
                false => data.len(),
            };
            match self.scanner.push(&data[at..end]) {
                Ok(read) => at += read,
                Err(Stuck::TooDeep) => self.line = Line::Unknown,
                Err(Stuck::At(_)) => self.line = Line::Broken,
            }
        }
    }

    fn end_line(&mut self, last: bool) {
        let whole = self.scanner.is_at_start() || self.scanner.is_whole();
        if self.line == Line::Broken || (self.line == Line::Reading && !whole) {
            self.torn += 1;
            self.first.get_or_insert(First {
                number: self.number,
                begin: self.begin,
                cut: self.line == Line::Reading,
                last,
            });
        }
        self.scanner.reset();
        self.line = Line::Reading;
        self.number += 1;
        self.begin = self.seen;
    }

    /// `nul_run` says whether the NUL bytes are reported as such.
    pub(super) fn finish(mut self, nul_run: bool) -> Option<Defect> {
        if let Some(head) = self.head.end() {
            self.start(head.as_slice());
        }
        if self.unknown {
            return None;
        }
        // After the newline that ends the file no further line begins.
        let lines = self.number - u64::from(self.begin == self.seen);
        self.end_line(true);
        let Some(first) = self.first else {
            return (self.stray_nuls > 0 && !nul_run).then(|| Defect::Torn {
                offset: 0,
                records: 1,
                cut: false,
                detail: "holds NUL bytes beside its records".into(),
            });
        };
        Some(Defect::Torn {
            offset: first.begin,
            records: self.torn,
            cut: first.cut && first.last,
            detail: described(first, self.torn, lines),
        })
    }
}

fn described(first: First, torn: u64, lines: u64) -> String {
    let number = human::count(first.number);
    match (torn, first.last, first.cut) {
        (1, true, _) => "the last line is not finished".into(),
        (1, _, true) => format!("line {number} is not finished"),
        (1, _, false) => format!("line {number} does not parse"),
        _ => format!(
            "{} of {} lines do not parse, the first is line {number}",
            human::count(torn),
            human::count(lines)
        ),
    }
}
