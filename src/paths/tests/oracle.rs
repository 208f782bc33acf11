//! The slow and obvious way: every pattern at every place, the leftmost and then the longest wins. No anchors, no
//! walking back, no windows.

use super::super::boundary::Verdict;
use super::super::compiled::verdict;
use super::super::{spell, write};
use super::*;

/// Offset, length, mapping.
type Place = (usize, usize, u16);

pub(super) fn oracle(
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
    all.sort_by_key(|(start, end, index, ..)| (*start, *end, *index));
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

/// The fast way, in the same words.
pub(super) fn places(found: &Found) -> (Vec<Place>, Vec<Place>) {
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
