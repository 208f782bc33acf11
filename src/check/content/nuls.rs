//! Runs of NUL bytes: blocks that a sync client or a power cut left unwritten.

use super::{Defect, SHORTEST_NUL_RUN};

/// Counts the runs of NUL bytes of a file.
#[derive(Debug, Default)]
pub(super) struct Nuls {
    /// How much of the file was seen.
    seen: u64,
    /// NUL bytes at the end of what was seen.
    current: u64,
    first: u64,
    length: u64,
    runs: u64,
}

impl Nuls {
    pub(super) fn push(&mut self, data: &[u8]) {
        let mut rest = data;
        while !rest.is_empty() {
            let text = match memchr::memchr(0, rest) {
                Some(0) => 0,
                Some(text) => text,
                None => rest.len(),
            };
            if text > 0 {
                self.end_run();
                self.seen = self.seen.saturating_add(text as u64);
                rest = &rest[text..];
            }
            let nuls = leading_nuls(rest);
            self.push_hole(nuls as u64);
            rest = &rest[nuls..];
        }
    }

    pub(super) fn push_hole(&mut self, len: u64) {
        self.seen = self.seen.saturating_add(len);
        self.current = self.current.saturating_add(len);
    }

    fn end_run(&mut self) {
        if self.current >= SHORTEST_NUL_RUN {
            if self.runs == 0 {
                self.first = self.seen - self.current;
            }
            self.runs += 1;
            self.length = self.length.saturating_add(self.current);
        }
        self.current = 0;
    }

    pub(super) fn finish(mut self) -> Option<Defect> {
        // A file of nothing but NULs held something else, however short it is.
        let whole_file = self.seen > 0 && self.current == self.seen;
        if whole_file {
            (self.runs, self.length) = (1, self.seen);
        } else {
            self.end_run();
        }
        (self.runs > 0).then_some(Defect::NulRun {
            offset: self.first,
            length: self.length,
            runs: self.runs,
            whole_file,
        })
    }
}

/// How many NUL bytes `data` begins with.
pub(super) fn leading_nuls(data: &[u8]) -> usize {
    let blocks = data.chunks_exact(64);
    let whole = blocks
        .take_while(|block| block.iter().fold(0, |all, byte| all | byte) == 0)
        .count()
        * 64;
    let rest = &data[whole..];
    whole + rest.iter().take_while(|byte| **byte == 0).count()
}
