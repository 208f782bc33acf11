//! A secret that was found, told without giving it away.

use serde::Serialize;

use crate::base::human;
use crate::disk;

/// Where a secret stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The id of the rule that found it.
    pub rule: String,
    /// What the rule looks for, in words.
    pub description: String,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1, in characters.
    pub column: u64,
    /// How it begins, and how it ends when it is long: enough to recognise it, never the secret. Escaped for a
    /// terminal.
    pub shown: String,
    /// What `[secrets] allow` takes.
    pub digest: String,
}

impl Match {
    /// The text that it was found in, up to the secret, and then what is shown of the secret.
    pub fn cut(&self, text: &[u8]) -> Vec<u8> {
        let line = usize::try_from(self.line).unwrap_or(usize::MAX) - 1;
        let column = usize::try_from(self.column).unwrap_or(usize::MAX) - 1;
        let lines = text.split_inclusive(|b| *b == b'\n').take(line);
        let before: usize = lines.map(<[u8]>::len).sum();
        // Characters, as they were counted: bytes that go on with one do not count.
        let begins = |(_, byte): &(usize, &u8)| **byte & 0xC0 != 0x80;
        let mut characters = text[before..].iter().enumerate().filter(begins);
        let upto = characters
            .nth(column)
            .map_or(text.len(), |(at, _)| before + at);
        [&text[..upto], self.shown.as_bytes()].concat()
    }
}

/// How many hex digits of the digest are kept: 128 bits, so that two secrets do not meet.
pub(super) const DIGITS: usize = 32;

/// The digest of a secret that a rule found. Part of the format of a home: what a person has allowed stays allowed.
pub(super) fn digest(rule: &str, secret: &[u8]) -> String {
    let content = [rule.as_bytes(), b"\0", secret].concat();
    let mut hex = disk::digest(&content).to_string();
    hex.truncate(DIGITS);
    hex
}

/// A quarter of it and at most four characters; two more from the end of one that is long.
pub(super) fn masked(secret: &[u8]) -> String {
    let text = String::from_utf8_lossy(secret);
    let length = text.chars().count();
    let head: String = text.chars().take((length / 4).min(4)).collect();
    let tail: String = match length {
        24.. => text.chars().skip(length - 2).collect(),
        _ => String::new(),
    };
    format!("{}…{}", human::escape(&head), human::escape(&tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_shown() {
        assert_eq!(masked(b""), "…");
        assert_eq!(masked(b"abc"), "…");
        assert_eq!(masked(b"hunter22"), "hu…");
        assert_eq!(masked(b"abcdefghijklmnopqrstuvw"), "abcd…");
        assert_eq!(masked(b"abcdefghijklmnopqrstuvwx"), "abcd…wx");
        assert_eq!(masked("密码一二三四五六".as_bytes()), "密码…");
        assert_eq!(masked(b"\x1b[31mabcdefg"), "\\x1b[3…");
    }

    /// The digests stand in people's settings.
    #[test]
    fn a_digest_stays_what_it_is() {
        let whole = blake3::hash(b"a-rule\0secret").to_string();
        assert_eq!(digest("a-rule", b"secret"), whole[..32]);
        assert_ne!(digest("a-rule", b"secret"), digest("b-rule", b"secret"));
    }
}
