//! Any name as a conflict copy: what is taken off it is a mark within it, and its original is a name. The names beside it
//! follow, each on a line, and then two contents that are compared.

use std::collections::BTreeSet;

use wbhome::check::conflict::{Relation, original_of, parse, relation};

use super::place::pieces;

pub fn run(input: &[u8]) -> bool {
    let Some((how, input)) = input.split_first() else {
        return false;
    };
    let is_folder = how % 2 == 1;
    let mut pieces = pieces(input);
    let mut lines = pieces
        .next()
        .unwrap_or_default()
        .split(|byte| *byte == b'\n');
    let name = lines.next().unwrap_or_default();
    let name = &name[..name.len().min(4096)];
    let beside: BTreeSet<&[u8]> = lines.filter(|line| *line != name).collect();
    let marks = parse(name, is_folder);
    assert!(marks.is_sorted_by_key(|mark| mark.ambiguous));
    for mark in &marks {
        is_within(&mark.original, name);
    }
    let found = original_of(name, is_folder, &|other| beside.contains(other));
    match &found {
        Some((original, _)) => {
            let mut rest = name.iter();
            let is_left = original.iter().all(|byte| rest.any(|other| other == byte));
            assert!(is_left, "more than marks was taken off");
            let is_certain = beside.contains(original.as_slice())
                || marks.iter().any(|mark| !mark.ambiguous)
                || parse_deep(name, is_folder).contains(original);
            assert!(is_certain, "nothing tells that it is a copy");
        }
        None => {
            let is_one = marks
                .iter()
                .any(|mark| !mark.ambiguous || beside.contains(mark.original.as_slice()));
            assert!(!is_one, "a copy that is not seen");
        }
    }
    let (one, other) = (
        pieces.next().unwrap_or_default(),
        pieces.next().unwrap_or_default(),
    );
    let wanted = if one == other {
        Relation::Same
    } else if one.starts_with(other) {
        Relation::Prefix
    } else if other.starts_with(one) {
        Relation::Extends
    } else {
        Relation::Diverged
    };
    assert_eq!(relation(&mut &*one, &mut &*other).ok(), Some(wanted));
    !marks.is_empty()
}

/// The originals of certain marks, however many marks were taken off before.
fn parse_deep(name: &[u8], is_folder: bool) -> BTreeSet<Vec<u8>> {
    let (mut certain, mut queue) = (BTreeSet::new(), vec![name.to_vec()]);
    for _ in 0..80 {
        let Some(name) = queue.pop() else { break };
        for mark in parse(&name, is_folder) {
            if !mark.ambiguous {
                certain.insert(mark.original.clone());
            }
            queue.insert(0, mark.original);
        }
    }
    certain
}

/// The original is the name with something cut out of it, and a name.
fn is_within(original: &[u8], name: &[u8]) {
    assert!(original.len() < name.len() && !matches!(original, b"" | b"." | b".."));
    let begins = (0..original.len()).take_while(|n| original[*n] == name[*n]);
    let head = begins.count();
    assert!(
        name.ends_with(&original[head..]),
        "{:?} is not {:?} without something",
        String::from_utf8_lossy(original),
        String::from_utf8_lossy(name)
    );
    if str::from_utf8(name).is_ok() {
        assert!(str::from_utf8(original).is_ok(), "a character was cut");
    }
}
