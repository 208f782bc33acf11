//! How random a text looks: Shannon's measure, in bits per character.
//!
//! A word in English has 2 to 3.5, random hex at most 4, random Base64 up to 6; a short text has less than its
//! alphabet allows, because it can not use all of it.

use std::collections::HashMap;

/// Bits per character; of bytes that are not UTF-8, per byte.
pub(super) fn bits(text: &[u8]) -> f64 {
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => {
            let mut seen: HashMap<char, u32> = HashMap::new();
            let mut all = 0;
            for c in text.chars() {
                *seen.entry(c).or_default() += 1;
                all += 1;
            }
            // In an order of its own, so that the sum is the same each time.
            let mut counts: Vec<u32> = seen.into_values().collect();
            counts.sort_unstable();
            of_counts(counts, all)
        }
        _ => {
            let mut seen = [0_u32; 256];
            for byte in text {
                seen[usize::from(*byte)] += 1;
            }
            of_counts(seen, text.len())
        }
    }
}

fn of_counts(counts: impl IntoIterator<Item = u32>, all: usize) -> f64 {
    let all = all as f64;
    let used = counts.into_iter().filter(|n| *n > 0);
    used.map(|n| f64::from(n) / all)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_counted_in_bits_per_character() {
        let near = |text: &str, expected: f64| {
            let got = bits(text.as_bytes());
            assert!((got - expected).abs() < 1e-9, "{text}: {got}");
        };
        near("", 0.0);
        near("aaaa", 0.0);
        near("abab", 1.0);
        near("0123456789abcdef", 4.0);
        // Characters, not bytes.
        near("密码密码", 1.0);
    }
}
