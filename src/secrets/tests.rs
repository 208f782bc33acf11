//! What is found, what is not, and how it is told. Secrets are put together when the tests run, so that no scanner
//! trips over this file.

mod checking;
mod own;
mod properties;
mod samples;
mod scanning;

use std::path::Path;
use std::sync::LazyLock;

use super::{Match, Rules};

const LOWER_HEX: &str = "0123456789abcdef";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Compiled once.
fn built_in() -> &'static Rules {
    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::load(None).unwrap());
    &RULES
}

/// As many characters of an alphabet, the same each time. Begins and ends with a letter or digit.
fn random(alphabet: &str, n: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = 88_172_645_463_325_252 ^ (n as u64) << 20 ^ letters.len() as u64;
    let mut text = String::new();
    while text.chars().count() < n {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let next = letters[(state >> 33) as usize % letters.len()];
        let at_edge = text.is_empty() || text.len() + 1 == n;
        if next.is_ascii_alphanumeric() || !at_edge {
            text.push(next);
        }
    }
    text
}

/// Lines of a key file.
fn key_lines() -> String {
    let line = random(BASE64, 64);
    format!("{line}\n{}\n{}", random(BASE64, 63), random(BASE64, 40))
}

fn pem(kind: &str) -> String {
    format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        key_lines()
    )
}

fn private_key() -> String {
    pem(&["RSA PRIVATE", "KEY"].join(" "))
}

fn github() -> String {
    format!("gh{}_{}", "p", random(WORD, 36))
}

fn scan(text: impl AsRef<[u8]>) -> Vec<Match> {
    built_in().scan(Path::new("sessions/a/x.json"), text.as_ref())
}

fn rules_in(text: impl AsRef<[u8]>) -> Vec<String> {
    scan(text).into_iter().map(|found| found.rule).collect()
}
