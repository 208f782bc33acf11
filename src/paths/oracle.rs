//! The slow and obvious way: every pattern at every place, the leftmost and then the longest wins. No anchors, no
//! walking back, no windows. It judges the fast way in the tests and in `tests/fuzz`, and is in no program.

use super::boundary::Verdict;
use super::compiled::verdict;
use super::{Found, Rewriter, TextKind, spell, write};

/// Where something stands: offset, length, and which mapping it belongs to.
pub type Place = (usize, usize, u16);

/// What [`Rewriter::rewrite`] has to make of a text that is no UTF-16, whatever fields it has: the text, what was
/// rewritten in it, and what is doubtful.
pub fn oracle(
    rewriter: &Rewriter,
    kind: TextKind,
    input: &[u8],
) -> (Vec<u8>, Vec<Place>, Vec<Place>) {
    let compiled = &rewriter.compiled;
    let mut all = Vec::new();
    for core in 0..input.len() {
        for (index, pattern) in compiled.patterns.iter().enumerate() {
            if let Some(found) = spell::read(pattern, input, core) {
                match verdict(pattern, &found, input, false) {
                    Verdict::Other => {}
                    verdict => {
                        all.push((found.start, usize::MAX - found.end, index, found, verdict))
                    }
                }
            }
        }
    }
    let rank = |index: usize| compiled.patterns[index].rank(index);
    all.sort_by_key(|(start, end, index, ..)| (*start, *end, rank(*index)));
    let (mut out, mut done, mut floor) = (Vec::new(), 0, 0);
    let (mut references, mut doubtful) = (Vec::new(), Vec::new());
    for (start, _, index, found, verdict) in all {
        if start < floor {
            continue;
        }
        floor = found.end;
        let pattern = &compiled.patterns[index];
        let place = (start, found.end - start, pattern.mapping);
        if verdict == Verdict::Doubtful {
            doubtful.push(place);
            continue;
        }
        out.extend_from_slice(&input[done..start]);
        let target = &compiled.targets[usize::from(pattern.mapping)];
        let begin = out.len();
        write::replacement(target, pattern, &found, input, kind, &mut out);
        if out[begin..] != input[start..found.end] {
            references.push(place);
        }
        done = found.end;
    }
    out.extend_from_slice(&input[done..]);
    (out, references, doubtful)
}

/// What the fast way has found, in the same words.
pub fn places(found: &Found) -> (Vec<Place>, Vec<Place>) {
    let references = found
        .references
        .iter()
        .map(|r| (r.offset as usize, r.len as usize, r.mapping));
    let doubtful = found
        .doubtful
        .iter()
        .map(|d| (d.offset as usize, d.len as usize, d.mapping));
    (references.collect(), doubtful.collect())
}
