//! The order of names as people count: `turn_9` stands before `turn_10`.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Compares two names: digits by the number that they are, everything else byte by byte.
pub(super) fn names(one: &[u8], other: &[u8]) -> Ordering {
    let (mut a, mut b) = (one, other);
    loop {
        match (a.first(), b.first()) {
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let ((x, rest_a), (y, rest_b)) = (number(a), number(b));
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
            // `01` and `1` are the same number, and not the same name.
            (None, None) => return one.cmp(other),
            (x, y) => return x.cmp(&y),
        }
    }
}

/// Compares two paths, name by name.
pub(super) fn paths(one: &Path, other: &Path) -> Ordering {
    let (mut a, mut b) = (one.iter(), other.iter());
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) => match names(x.as_bytes(), y.as_bytes()) {
                Ordering::Equal => {}
                order => return order,
            },
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The digits at the beginning, without zeros before them, and what follows.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zeros = text[..digits]
        .iter()
        .take_while(|byte| **byte == b'0')
        .count();
    (&text[zeros..digits], &text[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_count() {
        let wanted = [
            "artifacts/a",
            "artifacts/a/b",
            "context/turn_9.json",
            "context/turn_09.json",
            "context/turn_10.json",
            "context/turn_010.json",
            "context/turn_100.json",
            "context.json",
            "v1.2",
            "v1.10",
            "v1.10a",
            "数据1",
            "数据2",
            "数据10",
        ];
        let mut sorted = wanted.map(Path::new);
        sorted.reverse();
        sorted.sort_by(|a, b| paths(a, b));
        // Of two names of one number, that with more zeros comes first.
        let mut wanted = wanted.map(Path::new);
        wanted.swap(2, 3);
        wanted.swap(4, 5);
        assert_eq!(sorted, wanted);
    }
}
