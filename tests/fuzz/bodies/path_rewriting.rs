//! Any text and any folders that have moved: the fast way, the slow way and the way in windows make the same of it, and
//! nothing but references changes.
//!
//! Two pieces. The first has a line of numbers (which kind of text, whether only fields change, the lengths of the pieces
//! in which the text is read), and then in turn a folder and its new place; the second is the text.

use wbhome::paths::oracle::{oracle, places};
use wbhome::paths::{Found, Mapping, Options, Rewriter, TextKind, classify};

use super::place::pieces;

const KINDS: [TextKind; 5] = [
    TextKind::Other,
    TextKind::Json,
    TextKind::JsonLines,
    TextKind::Utf16Le,
    TextKind::Utf16Be,
];

pub fn run(input: &[u8]) -> bool {
    let mut pieces = pieces(input);
    let Ok(head) = str::from_utf8(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let text = pieces.next().unwrap_or_default();
    let mut lines = head.lines();
    let numbers = lines.next().unwrap_or_default().split(' ');
    let numbers: Vec<usize> = numbers.filter_map(|n| n.parse().ok()).take(8).collect();
    let [kind, fields, sizes @ ..] = numbers.as_slice() else {
        return false;
    };
    let kind = KINDS[kind % KINDS.len()];
    let fields_only = fields % 2 == 1;
    let mut mappings = Vec::new();
    while let (Some(old), Some(new)) = (lines.next(), lines.next()) {
        mappings.push(Mapping {
            old: old.to_owned(),
            new: new.to_owned(),
        });
    }
    // The slow way looks for every folder at every byte.
    mappings.truncate(6);
    let options = Options {
        fields_only,
        user_home: Some("/Users/me".to_owned()),
        known_ids: vec!["20240603_周报".to_owned(), "s1".to_owned()],
    };
    let Ok(rewriter) = Rewriter::new(mappings, options) else {
        return false;
    };
    let text = &text[..text.len().min(8192)];
    let mut out = Vec::new();
    let found = rewriter.rewrite(kind, text, &mut out);
    only_references_change(&rewriter, kind, text, &out, &found);
    let sizes = if sizes.is_empty() { &[1] } else { sizes };
    let (in_windows, also_found) = streamed(&rewriter, kind, text, sizes);
    assert_eq!(
        String::from_utf8_lossy(&in_windows),
        String::from_utf8_lossy(&out)
    );
    assert_eq!(also_found, found);
    let is_utf8 = !matches!(kind, TextKind::Utf16Le | TextKind::Utf16Be);
    if is_utf8 && !fields_only {
        let (slowly, references, doubtful) = oracle(&rewriter, kind, text);
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&slowly)
        );
        assert_eq!(places(&found), (references, doubtful));
    }
    let _ = classify(head.as_bytes(), text);
    if let Some((_, target)) = rewriter.link_target(text) {
        assert_ne!(target, text);
    }
    let mut binary = rewriter.scan_binary();
    binary.push(text);
    let _ = binary.count();
    !found.references.is_empty()
}

fn streamed(rewriter: &Rewriter, kind: TextKind, text: &[u8], sizes: &[usize]) -> (Vec<u8>, Found) {
    let (mut out, mut found) = (Vec::new(), Found::default());
    let mut stream = rewriter.stream(kind);
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at(rest.len().min((*size).max(1)));
        stream.push(chunk, &mut out);
        found.merge(stream.drain());
        rest = after;
    }
    stream.finish(&mut out);
    found.merge(stream.drain());
    (out, found)
}

/// References follow each other, each belongs to a mapping, and before the first and after the last nothing changes.
fn only_references_change(
    rewriter: &Rewriter,
    kind: TextKind,
    text: &[u8],
    out: &[u8],
    found: &Found,
) {
    let mut at = 0;
    for reference in &found.references {
        let from = reference.offset as usize;
        assert!(from >= at, "references overlap");
        assert!(usize::from(reference.mapping) < rewriter.mappings().len());
        at = from + reference.len as usize;
    }
    let first = found
        .references
        .first()
        .map_or(text.len(), |first| first.offset as usize);
    assert!(
        out.starts_with(&text[..first]),
        "{kind:?}: the beginning changed"
    );
    assert!(out.ends_with(&text[at..]), "{kind:?}: the end changed");
    if found.references.is_empty() {
        assert_eq!(out.len(), text.len());
    }
}
