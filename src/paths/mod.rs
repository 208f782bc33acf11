//! Finding and rewriting path references, in any spelling.
//!
//! When a folder moves, everything that mentions it must change with it, in whatever way it is written: plain, with
//! JSON's escapes once or twice, percent-encoded, with a shell's backslashes, from `~` or `$HOME` on, as a Windows
//! path, as a slug. Nothing else may change, not a byte. OLD is data, never a pattern.
//!
//! ```text
//!   classify ── is it text?            mapping, slug, pattern ── what to look for
//!   stream ──── windows of a source    anchor ── where to look (SIMD)
//!     utf16                            spell ─── is it OLD, and how is it written
//!   engine ──── from anchor            boundary ── is it all of a path (reading decodes)
//!     compiled  to decision            fields ─── may it change;  foreign ── whose is it
//!   found ───── what is reported       write ─── NEW, in the spelling of OLD
//!   database ── the texts in SQLite's tables, by SQL
//! ```
//!
//! A text is never parsed as a whole and never written anew: it may be torn, hold NULs, or be in no known format. One
//! pass finds the few places where OLD could be; each is judged by the characters around it, read as people see them.
//! Where nobody can know whether it is a reference, it is left alone and reported as doubtful.

mod anchor;
mod boundary;
mod classify;
mod compiled;
pub mod database;
mod engine;
mod fields;
mod foreign;
mod found;
mod mapping;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod pattern;
mod reading;
mod slug;
mod spell;
mod stream;
mod utf16;
mod write;

#[cfg(test)]
mod tests;

pub use classify::{Content, HEAD, TextKind, classify};
pub use found::{Doubtful, Found, Reference, Spelling};
pub use mapping::{Mapping, MappingError};
pub use slug::{slug, slug_pairs};
pub use stream::{BinaryScan, Stream};

use compiled::Compiled;
use engine::Scan;

/// What a rewriter is to take into account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Change only JSON fields that identify a place (`cwd`, `path`, `*_path`, `workspaceRoot` …), and no prose.
    /// Other kinds of text are then not changed at all; [`Found::left`] counts what was not.
    pub fields_only: bool,
    /// The folder that `~` and `$HOME` mean in the texts.
    pub user_home: Option<String>,
    /// Ids of sessions: `<prefix>/sessions/<id>` below a folder that is not mapped is reported as [`Found::foreign`].
    pub known_ids: Vec<String>,
}

/// Mappings, compiled. Immutable: one is shared by all threads.
#[derive(Debug)]
pub struct Rewriter {
    compiled: Compiled,
}

impl Rewriter {
    /// Checks and compiles mappings.
    ///
    /// # Errors
    /// A path that is empty, relative, a root, too long or holds a NUL; one OLD with two NEWs.
    pub fn new(mappings: Vec<Mapping>, options: Options) -> Result<Rewriter, MappingError> {
        Compiled::new(mappings, options).map(|compiled| Rewriter { compiled })
    }

    fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The mappings as they were given, without repetitions: what [`Reference::mapping`] counts.
    pub fn mappings(&self) -> &[Mapping] {
        &self.compiled.mappings
    }

    /// Begins to rewrite one source piece by piece.
    pub fn stream(&self, kind: TextKind) -> Stream<'_> {
        Stream::new(self, kind)
    }

    /// Rewrites a whole text and appends the result to `out`. When no references are found, that is `input`.
    pub fn rewrite(&self, kind: TextKind, input: &[u8], out: &mut Vec<u8>) -> Found {
        out.reserve(input.len());
        if matches!(kind, TextKind::Utf16Le | TextKind::Utf16Be) {
            let mut stream = self.stream(kind);
            stream.push(input, out);
            stream.finish(out);
            return stream.drain();
        }
        let mut scan = Scan::new(&self.compiled, kind, false);
        scan.run(input, 0, 0, true, Some(out));
        scan.found
    }

    /// The new target of a symbolic link and the mapping that it follows, or `None` if it stays. A target is a path and nothing else, so it is plain,
    /// absolute, and exactly OLD or below it.
    pub fn link_target(&self, target: &[u8]) -> Option<(u16, Vec<u8>)> {
        let moves = self.compiled.moves.iter().zip(0u16..);
        let (length, mapping, new) = moves
            .flat_map(|(m, mapping)| {
                mapping::plain_forms(&m.old, &m.new)
                    .into_iter()
                    .map(move |(old, new)| (old, mapping, new))
            })
            .filter(|(old, ..)| {
                target.starts_with(old.as_bytes())
                    && matches!(target.get(old.len()), None | Some(b'/' | b'\\'))
            })
            .map(|(old, mapping, new)| (old.len(), mapping, new))
            .max_by_key(|(length, ..)| *length)?;
        let rest = target.get(length..)?;
        let changed = [new.as_bytes(), rest].concat();
        (changed != target).then_some((mapping, changed))
    }

    /// Begins to count the references in binary data.
    pub fn scan_binary(&self) -> BinaryScan<'_> {
        BinaryScan::new(self)
    }
}
