//! Searching one file, whatever it is: plain text line by line, JSON as people see it. It is given whole, or piece by
//! piece.

use std::cell::Cell;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::escapes::unescape;
use super::json::{self, Place};
use super::lines::{Line, Lines, Want};
use super::pattern::Pattern;

/// What has a NUL in so much of its beginning is binary, unless its name says that it is text.
const SNIFFED: usize = 8000;
/// Lines are searched as soon as there is so much of them.
const WINDOW: usize = 1 << 20;
/// A JSON text that is larger is searched as plain text, and so is a line of a JSONL file. A line that is longer counts as
/// several.
const LARGEST: usize = 64 << 20;

/// How a text is to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Line by line.
    Plain,
    /// The same, and text whatever is in it: a log that was truncated under its writer, or that a sync client has torn, has
    /// NULs where lines were.
    Text,
    /// One JSON document.
    Document,
    /// A JSON document a line.
    Records,
}

impl Form {
    /// By its name. What was cut out of a log has a stamp behind the name of the log, and may be compressed.
    pub(super) fn of(name: &OsStr) -> Form {
        let name = name.as_bytes();
        let packed = [&b".zst"[..], b".gz"];
        let plain = packed
            .iter()
            .find_map(|ending| name.strip_suffix(*ending))
            .unwrap_or(name);
        let log = memchr::memrchr(b'-', plain).map_or(plain, |dash| &plain[..dash]);
        let ends = |name: &[u8], ending: &[u8]| {
            name.len() > ending.len()
                && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
        };
        let is_records = |name| ends(name, b".jsonl") || ends(name, b".ndjson");
        if ends(plain, b".json") {
            Form::Document
        } else if is_records(plain) || is_records(log) {
            Form::Records
        } else if [&b".log"[..], b".txt", b".md"]
            .iter()
            .any(|ending| ends(plain, ending))
            || ends(log, b".log")
        {
            Form::Text
        } else {
            Form::Plain
        }
    }

    fn is_binary(self, content: &[u8]) -> bool {
        self == Form::Plain && is_binary(content)
    }
}

/// How a log is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressed {
    Zstd,
    Gzip,
}

impl Compressed {
    /// Of what was cut out of a log: only below `logs/` compressed files are searched.
    pub(super) fn of(folder: &Path, name: &OsStr) -> Option<Compressed> {
        let compressed = match Path::new(name).extension()?.as_bytes() {
            b"zst" => Compressed::Zstd,
            b"gz" => Compressed::Gzip,
            _ => return None,
        };
        (folder.iter().next() == Some(OsStr::new("logs"))).then_some(compressed)
    }
}

/// Takes what is found: a line, and in JSON the place of the value that it is a line of.
pub(super) type Found<'f> = dyn FnMut(Line, Option<(Place, u64)>) -> ControlFlow<()> + 'f;

/// A file being searched.
pub(super) struct Text<'p> {
    pattern: &'p Pattern,
    want: Want,
    form: Form,
    lines: Lines<'p>,
    /// What was given and is not searched yet.
    held: Vec<u8>,
    looked_at: bool,
    is_binary: bool,
}

impl<'p> Text<'p> {
    pub(super) fn new(pattern: &'p Pattern, want: Want, form: Form) -> Text<'p> {
        Text {
            pattern,
            want,
            form,
            lines: Lines::new(&pattern.lines, want),
            held: Vec::new(),
            looked_at: false,
            is_binary: false,
        }
    }

    /// Searches a file that is there as a whole.
    pub(super) fn whole(&mut self, content: &[u8], found: &mut Found<'_>) -> ControlFlow<()> {
        if self.form.is_binary(content) {
            return ControlFlow::Continue(());
        }
        self.last(content, found)
    }

    /// Takes the next piece of a file.
    pub(super) fn piece(&mut self, piece: &[u8], found: &mut Found<'_>) -> ControlFlow<()> {
        if self.is_binary {
            return ControlFlow::Continue(());
        }
        self.held.extend_from_slice(piece);
        if !self.looked_at && self.held.len() >= SNIFFED {
            self.looked_at = true;
            self.is_binary = self.form.is_binary(&self.held);
            if self.is_binary {
                self.held = Vec::new();
                return ControlFlow::Continue(());
            }
        }
        if self.form == Form::Document {
            if self.held.len() <= LARGEST {
                return ControlFlow::Continue(());
            }
            self.form = Form::Text;
        }
        if self.held.len() < WINDOW {
            return ControlFlow::Continue(());
        }
        let fresh = self.held.len() - piece.len();
        let in_piece = memchr::memrchr(b'\n', piece).map(|at| fresh + at);
        let before = || match fresh < WINDOW {
            true => memchr::memrchr(b'\n', &self.held[..fresh]),
            // It was looked through when there was less of it.
            false => None,
        };
        let end = match in_piece.or_else(before) {
            Some(at) => at + 1,
            None if self.held.len() > LARGEST => self.held.len(),
            None => return ControlFlow::Continue(()),
        };
        let held = std::mem::take(&mut self.held);
        let done = self.window(&held[..end], false, found);
        self.held = held;
        self.held.drain(..end);
        done
    }

    /// After the last piece.
    pub(super) fn end(&mut self, found: &mut Found<'_>) -> ControlFlow<()> {
        let held = std::mem::take(&mut self.held);
        match self.is_binary || !self.looked_at && self.form.is_binary(&held) {
            true => ControlFlow::Continue(()),
            false => self.last(&held, found),
        }
    }

    fn last(&mut self, content: &[u8], found: &mut Found<'_>) -> ControlFlow<()> {
        match self.form {
            Form::Document => self.document(content, found),
            Form::Plain | Form::Text | Form::Records => {
                self.window(content, true, found)?;
                self.lines.end(&mut |line| found(line, None))
            }
        }
    }

    fn document(&mut self, content: &[u8], found: &mut Found<'_>) -> ControlFlow<()> {
        if !self.may_be_in(content) {
            return ControlFlow::Continue(());
        }
        if let Some(done) = self.values(content, 0, found) {
            return done;
        }
        // Torn: what there is of it.
        self.lines
            .window(content, true, &mut |line| found(line, None))?;
        self.lines.end(&mut |line| found(line, None))
    }

    fn window(&mut self, text: &[u8], is_last: bool, found: &mut Found<'_>) -> ControlFlow<()> {
        if matches!(self.form, Form::Plain | Form::Text) {
            return self
                .lines
                .window(text, is_last, &mut |line| found(line, None));
        }
        let first = self.lines.breaks();
        if self.may_be_in(text) {
            for (n, record) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
                if !self.may_be_in(record) {
                    continue;
                }
                let breaks = first + n as u64;
                let values = match record.len() <= LARGEST {
                    true => self.values(record, breaks, found),
                    false => None,
                };
                match values {
                    Some(done) => done?,
                    None => {
                        let mut lines = Lines::new(&self.pattern.lines, self.want).behind(breaks);
                        lines.window(record, true, &mut |line| found(line, None))?;
                        lines.end(&mut |line| found(line, None))?;
                    }
                }
            }
        }
        if !is_last {
            self.lines.skip(text);
        }
        ControlFlow::Continue(())
    }

    /// Whether what is searched for can be in a JSON text, as it stands there or behind escapes.
    fn may_be_in(&self, text: &[u8]) -> bool {
        let pattern = self.pattern;
        pattern.written.is_match(text)
            || pattern.hiding.is_in(text) && {
                let mut plain = Vec::with_capacity(text.len());
                unescape(text, &mut plain);
                pattern.anywhere.is_match(&plain)
            }
    }

    /// Searches the string values of a JSON text that begins behind so many line breaks; `None` when it is torn.
    fn values(&self, text: &[u8], breaks: u64, found: &mut Found<'_>) -> Option<ControlFlow<()>> {
        let outline = json::outline(text)?;
        let mut plain = Vec::new();
        let (mut counted, mut breaks) = (0, breaks);
        Some(json::values(text, |steps, range| {
            let stored = &text[range.clone()];
            let value = match memchr::memchr(b'\\', stored) {
                None => stored,
                Some(_) => {
                    plain.clear();
                    unescape(stored, &mut plain);
                    &plain
                }
            };
            let mut place = None;
            let any = Cell::new(false);
            let mut in_value = |mut line: Line| {
                any.set(true);
                let within = line.number;
                breaks += memchr::memchr_iter(b'\n', &text[counted..range.start]).count() as u64;
                counted = range.start;
                line.number = breaks + 1;
                let place = place.get_or_insert_with(|| outline.place(text, steps));
                found(line, Some((place.clone(), within)))
            };
            let mut search = |text: &[u8]| {
                let mut lines = Lines::new(&self.pattern.lines, self.want);
                lines.window(text, true, &mut in_value)?;
                lines.end(&mut in_value)
            };
            search(value)?;
            // What an agent says to a tool is JSON in a string of JSON, with escapes of its own.
            let is_json = matches!(value.trim_ascii_start().first(), Some(b'{' | b'['));
            if !is_json || any.get() || memchr::memchr(b'\\', value).is_none() {
                return ControlFlow::Continue(());
            }
            let mut inner = Vec::new();
            each_text(value, |text| {
                inner.clear();
                unescape(text, &mut inner);
                search(&inner)
            })
        }))
    }
}

/// The texts of a JSON text that have escapes, as they stand there.
fn each_text(text: &[u8], mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
    if json::outline(text).is_none() {
        return ControlFlow::Continue(());
    }
    json::values(text, |_, range| {
        match memchr::memchr(b'\\', &text[range.clone()]) {
            Some(_) => each(&text[range]),
            None => ControlFlow::Continue(()),
        }
    })
}

fn is_binary(content: &[u8]) -> bool {
    let beginning = &content[..content.len().min(SNIFFED)];
    let packed = [&b"\x1f\x8b"[..], b"\x28\xb5\x2f\xfd"];
    memchr::memchr(0, beginning).is_some() || packed.iter().any(|magic| content.starts_with(magic))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
