//! The search itself: from an anchor to a decision, over one window of a text.
//!
//! Windows are pieces of a source. What a window decides depends only on bytes within fixed distances of a place
//! ([`Sizes`](super::compiled::Sizes)), so that a window which holds them decides as the whole source would, and any
//! cutting gives the same.

use super::anchor::Hint;
use super::boundary::Verdict;
use super::compiled::{Compiled, Decision, walk_back};
use super::fields::Fields;
use super::found::{Doubtful, Found, Reference, Spelling};
use super::mapping::Folder;
use super::pattern::{Form, Pattern};
use super::spell::{Match, Separator};
use super::{TextKind, foreign, write};

/// A search in progress: over a whole source, window by window.
#[derive(Debug)]
pub(super) struct Scan<'r> {
    pub(super) compiled: &'r Compiled,
    pub(super) found: Found,
    /// References, counted and not kept: for binary data.
    pub(super) count: u64,
    kind: TextKind,
    binary: bool,
    fields: Option<Fields>,
    /// Up to where in the source fields were read; where the next anchor may begin; where the last reference or
    /// doubtful place ended, and the last reference.
    fields_at: u64,
    anchors_at: u64,
    floor: u64,
    reference_end: Option<u64>,
}

impl<'r> Scan<'r> {
    pub(super) fn new(compiled: &'r Compiled, kind: TextKind, binary: bool) -> Scan<'r> {
        let json = matches!(kind, TextKind::Json | TextKind::JsonLines);
        let fields = compiled.fields_only && json && !binary;
        Scan {
            compiled,
            found: Found::default(),
            count: 0,
            kind,
            binary,
            fields: fields.then(|| Fields::new(kind == TextKind::JsonLines)),
            fields_at: 0,
            anchors_at: 0,
            floor: 0,
            reference_end: None,
        }
    }

    /// Decides about all places of a window that begins at `base` in the source, or (unless it is the `last` one) all
    /// that it shows completely. Bytes before `done` have been written. Returns up to where bytes are written now.
    pub(super) fn run(
        &mut self,
        text: &[u8],
        base: u64,
        done: usize,
        last: bool,
        mut out: Option<&mut Vec<u8>>,
    ) -> usize {
        let compiled = self.compiled;
        let sizes = compiled.sizes;
        let limit = if last {
            text.len()
        } else {
            text.len().saturating_sub(sizes.ahead)
        };
        let mut at = index(self.anchors_at, base);
        let mut done = done;
        while at < limit
            && let Some((anchor, hints)) = compiled.anchors.find(text, at)
            && anchor < limit
        {
            at = anchor + 1;
            for hint in hints {
                match *hint {
                    Hint::Sessions(shift) => {
                        if let Some(at) = anchor.checked_add_signed(shift) {
                            self.session(text, base, at);
                        }
                    }
                    Hint::Pattern {
                        pattern,
                        units,
                        shift,
                        plain,
                    } => {
                        let decision = anchor
                            .checked_add_signed(shift)
                            .filter(|end| *end >= index(self.floor, base))
                            .and_then(|end| self.look(pattern, units, plain, text, base, end));
                        if let Some(decision) = decision {
                            done = self.settle(&decision, text, base, done, out.as_deref_mut());
                        }
                    }
                }
            }
        }
        self.anchors_at = self.anchors_at.max(base + limit as u64);
        let safe = if last {
            text.len()
        } else {
            limit.saturating_sub(sizes.head).max(done)
        };
        if let Some(out) = out {
            out.extend_from_slice(text.get(done..safe).unwrap_or_default());
        }
        safe
    }

    /// How many references there are if the window is the last one; nothing is settled by asking.
    pub(super) fn count_at_end(&self, text: &[u8], base: u64) -> u64 {
        let mut end = Scan::new(self.compiled, self.kind, self.binary);
        end.anchors_at = self.anchors_at;
        end.floor = self.floor;
        end.run(text, base, 0, true, None);
        self.count + end.count
    }

    /// What there is at an anchor, before which `units` units of a pattern end at `end`: the leftmost, then the
    /// longest pattern. In most texts OLD is written plainly, so that is tried first.
    fn look(
        &self,
        pattern: usize,
        units: usize,
        plain: Option<usize>,
        text: &[u8],
        base: u64,
        end: usize,
    ) -> Option<Decision> {
        let compiled = self.compiled;
        let one = compiled.patterns.get(pattern)?;
        let plainly = plain.and_then(|len| end.checked_sub(len)).filter(|core| {
            let rest = text.get(*core..).unwrap_or_default();
            one.plain
                .as_ref()
                .is_some_and(|plain| rest.starts_with(plain))
        });
        let floor = index(self.floor, base);
        let core = match plainly {
            Some(core) if core >= floor && is_certain(one, text, core) => {
                return Some(certain(pattern, one, core));
            }
            Some(core) => core,
            None => walk_back(&one.units, units, text, end)?,
        };
        let mut best = compiled.decide(pattern, text, core, self.binary)?;
        // Each round begins further left; more than a few are not worth a thought.
        for _ in 0..8 {
            match compiled.earlier(&best, text, self.binary) {
                Some(better) if better.found.start >= floor => best = better,
                _ => break,
            }
        }
        (best.found.start >= floor).then_some(best)
    }

    /// Records a decision, and writes the replacement.
    fn settle(
        &mut self,
        decision: &Decision,
        text: &[u8],
        base: u64,
        done: usize,
        out: Option<&mut Vec<u8>>,
    ) -> usize {
        let Some(pattern) = self.compiled.patterns.get(decision.pattern) else {
            return done;
        };
        let found = &decision.found;
        let (offset, len) = (base + found.start as u64, (found.end - found.start) as u32);
        let spelling = spelling(pattern, found);
        let mapping = pattern.mapping;
        self.floor = base + found.end as u64;
        if decision.verdict == Verdict::Doubtful {
            if self.binary {
                return done;
            }
            self.found.doubtful.push(Doubtful {
                offset,
                len,
                mapping,
                spelling,
            });
            return done;
        }
        self.reference_end = Some(self.floor);
        let Some(out) = out else {
            self.count += 1;
            return done;
        };
        if !self.may_change(text, base, found.start) {
            self.found.left += 1;
            return done;
        }
        let Some(target) = self.compiled.targets.get(usize::from(mapping)) else {
            return done;
        };
        out.extend_from_slice(text.get(done..found.start).unwrap_or_default());
        let begin = out.len();
        write::replacement(target, pattern, found, text, self.kind, out);
        // A folder mapped to itself only protects itself from the mapping of a folder above.
        if out.get(begin..) != text.get(found.start..found.end) {
            self.found.references.push(Reference {
                offset,
                len,
                mapping,
                spelling,
            });
        }
        found.end
    }

    fn may_change(&mut self, text: &[u8], base: u64, start: usize) -> bool {
        if !self.compiled.fields_only {
            return true;
        }
        self.read_fields(text, base, start);
        self.fields.as_ref().is_some_and(Fields::in_place)
    }

    /// Reads fields up to `end` of the window.
    pub(super) fn read_fields(&mut self, text: &[u8], base: u64, end: usize) {
        if let Some(fields) = &mut self.fields {
            let from = index(self.fields_at, base);
            fields.read(text.get(from..end).unwrap_or_default());
            self.fields_at = self.fields_at.max(base + end as u64);
        }
    }

    fn session(&mut self, text: &[u8], base: u64, at: usize) {
        let Some((end, separator)) = foreign::parent(text, at) else {
            return;
        };
        if self.binary
            || self.reference_end == Some(base + end as u64)
            || !foreign::is_session(text, at, separator, &self.compiled.ids)
        {
            return;
        }
        let Some(prefix) = foreign::prefix(text, end, separator) else {
            return;
        };
        if !self.is_mapped(&prefix) {
            *self.found.foreign.entry(prefix).or_default() += 1;
        }
    }

    fn is_mapped(&self, prefix: &str) -> bool {
        let home = self.compiled.home.as_deref();
        let path = match (prefix.strip_prefix('~'), home) {
            (Some(rest), Some(home)) => Folder::of(&format!("{home}{rest}")),
            _ => Folder::of(prefix),
        };
        let moves = &self.compiled.moves;
        moves.iter().any(|m| m.old.same(&path) || m.new.same(&path))
    }

    /// The source goes on at `offset`, behind a hole.
    pub(super) fn jump(&mut self, offset: u64) {
        self.anchors_at = offset;
        self.floor = offset;
        self.fields_at = offset;
        if let Some(fields) = &mut self.fields {
            fields.reset();
        }
    }
}

/// Whether a pattern that stands plainly at `core` needs no further thought, as most do: it goes on with `/`, an
/// ordinary character that can not belong to a path or an escape stands before it, and no other pattern competes.
fn is_certain(pattern: &Pattern, text: &[u8], core: usize) -> bool {
    let Some(plain) = &pattern.plain else {
        return false;
    };
    let before = core.checked_sub(1).map(|at| text[at]);
    let escaped = core.checked_sub(2).is_some_and(|at| text[at] == b'\\');
    pattern.form == Form::Posix
        && pattern.longer.is_empty()
        && pattern.earlier.is_empty()
        && text.get(core + plain.len()) == Some(&b'/')
        && !escaped
        && matches!(
            before,
            Some(b'"' | b'\'' | b'`' | b' ' | b'\n' | b'\t' | b',' | b'=' | b'[' | b'<')
        )
}

fn certain(index: usize, pattern: &Pattern, core: usize) -> Decision {
    let plain = pattern.plain.as_ref().map_or(0, Vec::len);
    Decision {
        pattern: index,
        found: Match {
            start: core,
            core,
            end: core + plain,
            style: pattern.plain_style,
        },
        verdict: Verdict::Reference,
    }
}

fn spelling(pattern: &Pattern, found: &Match) -> Spelling {
    let style = found.style;
    let run = match style.separator {
        Some(Separator::Slash(run) | Separator::UnicodeSlash(run)) => run,
        _ => style.lead,
    };
    let escapes = run
        .max(style.unicode.unwrap_or(0))
        .max(style.quote.unwrap_or(0).div_ceil(2));
    match pattern.form {
        Form::Slug(_) => Spelling::Slug,
        Form::Home => Spelling::Home,
        Form::Drive | Form::DriveUnix { .. } => Spelling::Windows,
        Form::Posix if style.url || style.percent => Spelling::Url,
        Form::Posix if style.shell > 0 => Spelling::Shell,
        Form::Posix if escapes > 1 => Spelling::JsonNested,
        Form::Posix if escapes == 1 => Spelling::Json,
        Form::Posix => Spelling::Plain,
    }
}

/// A place of the source in a window.
fn index(offset: u64, base: u64) -> usize {
    usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX)
}
