//! "Did you mean …": the known word that a mistyped one is nearest to.

/// The candidate that differs from `word` by the fewest insertions, deletions, substitutions and swaps of
/// neighbours, if they are few enough to be a slip of the hand.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let limit = 1 + word.len() / 6;
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            if other.len().abs_diff(word.len()) > limit {
                return None;
            }
            let distance = distance(&word, &other);
            (distance <= limit).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment, the restricted form of the Damerau–Levenshtein distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["level", "idle", "20240603_数据清洗"];
        assert_eq!(nearest("levle", known), Some("level"));
        assert_eq!(nearest("Level", known), Some("level"));
        assert_eq!(
            nearest("20240603_数据清晰", known),
            Some("20240603_数据清洗")
        );
        assert_eq!(nearest("compression", known), None);
        assert_eq!(nearest("", known), None);
    }
}
