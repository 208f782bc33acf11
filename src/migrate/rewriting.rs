//! The change that a file's content goes through on its way: references in text, counted in binary data.

use std::io::Write as _;
use std::path::Path;

use super::record::Done;
use crate::base::wire;
use crate::disk::Transform;
use crate::paths::{self, BinaryScan, Content, Found, Rewriter, Spelling, Stream, TextKind};

/// How a SQLite database begins. <https://www.sqlite.org/fileformat.html#magic_header_string>
const DATABASE: &[u8] = b"SQLite format 3\0";

/// References are written out when so many bytes of lines have come together, whatever the file's size.
const SPILL: usize = 1 << 20;

/// Rewrites one file after another.
pub(super) struct Rewriting<'r> {
    rewriter: &'r Rewriter,
    path: &'r Path,
    now: Now<'r>,
    found: Totals,
    /// Lines for `references.jsonl`.
    lines: Vec<u8>,
    /// Where they go when there are too many.
    spill: &'r dyn Fn(&[u8]),
}

enum Now<'r> {
    Text(TextKind),
    Stream(Box<Stream<'r>>),
    Binary(Box<BinaryScan<'r>>),
    Database,
}

/// What was found in one file.
#[derive(Default)]
struct Totals {
    references: std::collections::BTreeMap<(u16, Spelling), u64>,
    doubtful: std::collections::BTreeMap<u16, u64>,
    left: u64,
    foreign: std::collections::BTreeMap<String, u64>,
}

impl<'r> Rewriting<'r> {
    /// For the file at `path`, relative to the source.
    pub fn new(
        rewriter: &'r Rewriter,
        path: &'r Path,
        lines: Vec<u8>,
        spill: &'r dyn Fn(&[u8]),
    ) -> Self {
        Rewriting {
            rewriter,
            path,
            now: Now::Database,
            found: Totals::default(),
            lines,
            spill,
        }
    }

    /// Writes what was found into the file's line, and gives back the lines of references.
    pub fn report(self, done: &mut Done) -> Vec<u8> {
        done.references = self
            .found
            .references
            .into_iter()
            .map(|((mapping, spelling), n)| (mapping, spelling, n))
            .collect();
        done.doubtful = self.found.doubtful.into_iter().collect();
        done.left = self.found.left;
        done.foreign = self.found.foreign;
        match self.now {
            Now::Binary(scan) => done.binary = scan.count(),
            Now::Database => done.database = true,
            Now::Text(_) | Now::Stream(_) => {}
        }
        self.lines
    }

    /// Whether any byte was changed.
    pub fn changed(&self) -> bool {
        !self.found.references.is_empty()
    }

    fn take(&mut self, found: Found) {
        for doubtful in &found.doubtful {
            *self.found.doubtful.entry(doubtful.mapping).or_default() += 1;
        }
        self.found.left += found.left;
        for (root, n) in found.foreign {
            *self.found.foreign.entry(root).or_default() += n;
        }
        let references = found.references;
        let mut kinds: Vec<(u16, Spelling)> = Vec::new();
        for reference in &references {
            let kind = (reference.mapping, reference.spelling);
            *self.found.references.entry(kind).or_default() += 1;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for kind in kinds {
            let offsets = references
                .iter()
                .filter(|r| (r.mapping, r.spelling) == kind)
                .map(|r| r.offset);
            write_line(&mut self.lines, self.path, kind, offsets);
        }
        if self.lines.len() >= SPILL {
            (self.spill)(&self.lines);
            self.lines.clear();
        }
    }
}

/// Writes a line of `references.jsonl` for references that have no place in a file, those of a database:
/// `offsets` is empty, `count` tells how many.
pub(super) fn write_count(lines: &mut Vec<u8>, path: &Path, kind: (u16, Spelling), count: u64) {
    let begun = lines.len();
    write_line(lines, path, kind, []);
    // The line ends in `"count":0}` and a newline.
    lines.truncate(lines.len() - 3);
    debug_assert!(lines[begun..].ends_with(b"\"count\":"));
    let _ = writeln!(lines, "{count}}}");
}

/// Writes a line of `references.jsonl`:
/// `{"path": …, "mapping": 0, "spelling": "plain", "count": 2, "offsets": [17, 99]}`
pub(super) fn write_line(
    lines: &mut Vec<u8>,
    path: &Path,
    (mapping, spelling): (u16, Spelling),
    offsets: impl IntoIterator<Item = u64>,
) {
    let (path, bytes) = wire::path_fields(path);
    // Writing to memory does not fail, nor does writing text as JSON.
    let _ = write!(lines, "{{\"path\":");
    let _ = serde_json::to_writer(&mut *lines, &path);
    if let Some(bytes) = bytes {
        let _ = write!(lines, ",\"path_bytes\":\"{bytes}\"");
    }
    let _ = write!(
        lines,
        ",\"mapping\":{mapping},\"spelling\":\"{}\",\"offsets\":[",
        spelling.as_str()
    );
    let mut count = 0u64;
    // A table may hold millions: the formatting machinery of the standard library would be felt.
    let mut digits = itoa::Buffer::new();
    for offset in offsets {
        if count > 0 {
            lines.push(b',');
        }
        lines.extend_from_slice(digits.format(offset).as_bytes());
        count += 1;
    }
    let _ = writeln!(lines, "],\"count\":{count}}}");
}

impl Transform for Rewriting<'_> {
    fn start(&mut self, head: &[u8]) {
        self.found = Totals::default();
        self.lines.clear();
        let name = self
            .path
            .file_name()
            .map(std::os::unix::ffi::OsStrExt::as_bytes);
        self.now = if head.starts_with(DATABASE) {
            Now::Database
        } else {
            match paths::classify(name.unwrap_or_default(), head) {
                Content::Text(kind) => Now::Text(kind),
                Content::Binary => Now::Binary(Box::new(self.rewriter.scan_binary())),
            }
        };
    }

    fn whole(&mut self, input: &[u8], output: &mut Vec<u8>) {
        match &mut self.now {
            Now::Text(kind) => {
                let found = self.rewriter.rewrite(*kind, input, output);
                self.take(found);
            }
            Now::Binary(scan) => scan.push(input),
            Now::Stream(_) | Now::Database => {}
        }
    }

    fn push(&mut self, chunk: &[u8], output: &mut Vec<u8>) {
        if let Now::Text(kind) = self.now {
            self.now = Now::Stream(Box::new(self.rewriter.stream(kind)));
        }
        match &mut self.now {
            Now::Stream(stream) => {
                stream.push(chunk, output);
                let found = stream.drain();
                self.take(found);
            }
            Now::Binary(scan) => {
                scan.push(chunk);
                output.extend_from_slice(chunk);
            }
            Now::Text(_) | Now::Database => output.extend_from_slice(chunk),
        }
    }

    fn zeros(&mut self, length: u64, output: &mut Vec<u8>) {
        if let Now::Text(kind) = self.now {
            self.now = Now::Stream(Box::new(self.rewriter.stream(kind)));
        }
        if let Now::Stream(stream) = &mut self.now {
            stream.zeros(length, output);
            let found = stream.drain();
            self.take(found);
        }
    }

    fn finish(&mut self, output: &mut Vec<u8>) {
        if let Now::Stream(stream) = &mut self.now {
            stream.finish(output);
            let found = stream.drain();
            self.take(found);
        }
    }

    fn is_identity(&self) -> bool {
        matches!(self.now, Now::Binary(_) | Now::Database)
    }
}
