//! A source of any size, piece by piece, in a fixed amount of memory.
//!
//! A window holds what the engine must still see: some bytes that are already written, for what stands before a
//! place, and some that are not, for what comes after it.

use super::Rewriter;
use super::TextKind;
use super::compiled::Compiled;
use super::engine::Scan;
use super::found::Found;
use super::utf16::Utf16;

/// Larger chunks are cut: memory must not depend on the caller's habits.
const PIECE: usize = 256 * 1024;

#[derive(Debug, Default)]
struct Window {
    text: Vec<u8>,
    /// Where the window begins, in the source (or, for UTF-16, in its decoded form).
    base: u64,
    /// Up to where it is written.
    done: usize,
}

impl Window {
    fn run(&mut self, scan: &mut Scan<'_>, last: bool, out: Option<&mut Vec<u8>>) {
        self.done = scan.run(&self.text, self.base, self.done, last, out);
    }

    /// Where the bytes that are no longer needed end.
    fn spent(&self, compiled: &Compiled) -> usize {
        let spent = self.done.saturating_sub(compiled.sizes.behind);
        // Moving the rest to the front has its price, too.
        if spent > self.text.len() / 2 {
            spent
        } else {
            0
        }
    }

    fn forget(&mut self, scan: &mut Scan<'_>, count: usize) {
        if count > 0 {
            scan.read_fields(&self.text, self.base, self.done);
            self.text.drain(..count);
            self.base += count as u64;
            self.done -= count;
        }
    }
}

/// Rewrites one source, pushed in chunks of any size. Made by [`Rewriter::stream`].
///
/// However the source is cut, the output and what is found are the same, and the same as those of
/// [`Rewriter::rewrite`].
#[derive(Debug)]
pub struct Stream<'r> {
    scan: Scan<'r>,
    window: Window,
    utf16: Option<Utf16>,
    /// What the engine wrote, before it is encoded.
    decoded: Vec<u8>,
}

impl<'r> Stream<'r> {
    pub(super) fn new(rewriter: &'r Rewriter, kind: TextKind) -> Stream<'r> {
        let utf16 = match kind {
            TextKind::Utf16Le => Some(Utf16::new(false)),
            TextKind::Utf16Be => Some(Utf16::new(true)),
            _ => None,
        };
        Stream {
            scan: Scan::new(rewriter.compiled(), kind, false),
            window: Window::default(),
            utf16,
            decoded: Vec::new(),
        }
    }

    /// Takes the next bytes of the source and appends what is settled to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        for piece in chunk.chunks(PIECE) {
            match &mut self.utf16 {
                Some(utf16) => utf16.decode(piece, &mut self.window.text, out),
                None => self.window.text.extend_from_slice(piece),
            }
            self.run(false, out);
            let spent = self.window.spent(self.scan.compiled);
            if let Some(utf16) = self.utf16.as_mut().filter(|_| spent > 0) {
                utf16.advance(
                    self.window.base + spent as u64,
                    &self.window.text,
                    self.window.base,
                );
            }
            self.window.forget(&mut self.scan, spent);
        }
    }

    /// A hole: the source goes on with `n` zero bytes, which the caller skips in the output, too. What is pending is
    /// written to `out`; nothing is written for the hole. A NUL is a boundary like any punctuation.
    pub fn zeros(&mut self, n: u64, out: &mut Vec<u8>) {
        if n == 0 {
            return;
        }
        self.flush(out);
        let end = self.window.base + self.window.text.len() as u64;
        let next = match &mut self.utf16 {
            Some(utf16) => {
                utf16.jump(n);
                end
            }
            None => end + n,
        };
        self.window.text.clear();
        self.window.done = 0;
        self.window.base = next;
        self.scan.jump(next);
    }

    /// The source ends: writes what is pending.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
    }

    /// What was found since the last call. Call it now and then: what is found is the only thing that grows.
    pub fn drain(&mut self) -> Found {
        std::mem::take(&mut self.scan.found)
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(utf16) = &mut self.utf16 {
            utf16.settle(&mut self.window.text);
        }
        self.run(true, out);
        if let Some(utf16) = &mut self.utf16 {
            let end = self.window.base + self.window.text.len() as u64;
            utf16.advance(end, &self.window.text, self.window.base);
            utf16.rest(out);
        }
    }

    fn run(&mut self, last: bool, out: &mut Vec<u8>) {
        let Some(utf16) = &mut self.utf16 else {
            return self.window.run(&mut self.scan, last, Some(out));
        };
        let known = (
            self.scan.found.references.len(),
            self.scan.found.doubtful.len(),
        );
        self.window
            .run(&mut self.scan, last, Some(&mut self.decoded));
        utf16.encode(&mut self.decoded, out);
        utf16.locate(
            &mut self.scan.found,
            known,
            &self.window.text,
            self.window.base,
        );
    }
}

/// Counts the references in binary data, which is never changed. Made by [`Rewriter::scan_binary`].
#[derive(Debug)]
pub struct BinaryScan<'r> {
    scan: Scan<'r>,
    window: Window,
}

impl<'r> BinaryScan<'r> {
    pub(super) fn new(rewriter: &'r Rewriter) -> BinaryScan<'r> {
        BinaryScan {
            scan: Scan::new(rewriter.compiled(), TextKind::Other, true),
            window: Window::default(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.chunks(PIECE) {
            self.window.text.extend_from_slice(piece);
            self.window.run(&mut self.scan, false, None);
            let spent = self.window.spent(self.scan.compiled);
            self.window.forget(&mut self.scan, spent);
        }
    }

    /// How many references the data mentions, taken that it ends here.
    pub fn count(&self) -> u64 {
        self.scan.count_at_end(&self.window.text, self.window.base)
    }
}
