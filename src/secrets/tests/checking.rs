//! A file of any size is looked at in windows, and the same is found as in the whole.

use std::fs::File;
use std::io::{Seek, Write};

use proptest::prelude::*;

use super::*;
use crate::base::Stop;
use crate::secrets::windows::Sizes;
use crate::secrets::{Check, Checked};

const SMALL: Sizes = Sizes {
    window: 8 << 10,
    margin: 2 << 10,
    block: 1 << 10,
};

fn small() -> &'static Check {
    static CHECK: LazyLock<Check> =
        LazyLock::new(|| Check::load(None, &[]).unwrap().with_sizes(SMALL));
    &CHECK
}

fn file_of(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn check(check: &Check, content: &[u8]) -> Checked {
    let file = file_of(content);
    let seen = check
        .file(Path::new("sessions/a/x.json"), &file, &Stop::new())
        .unwrap();
    assert_eq!(seen.digest, blake3::hash(content));
    assert_eq!(seen.size, content.len() as u64);
    seen
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_be_bytes).collect()
}

/// Ordinary lines, some as long as several windows would be.
fn filler(bytes: usize) -> String {
    let line = "第一行 {\"a\": \"b\\nc 😀\"} the token of a line\n";
    line.repeat(bytes / line.len() + 1)
}

#[test]
fn a_secret_across_a_seam_is_found_once_at_its_place() {
    let token = github();
    let key = private_key().replace('\n', "\\n");
    for at in (4000..14_000).step_by(37) {
        for (planted, rule) in [(&token, "github-token"), (&key, "private-key")] {
            let mut text = filler(at);
            text.truncate(text.floor_char_boundary(at));
            text.push_str(&format!(" {planted}\n"));
            text.push_str(&filler(20_000));
            let seen = check(small(), text.as_bytes());
            assert_eq!(seen.findings, scan(&text), "at {at}");
            assert_eq!(seen.findings.len(), 1, "at {at}");
            assert_eq!(seen.findings[0].rule, rule);
        }
    }
}

#[test]
fn in_one_line_of_many_windows_the_column_counts_through() {
    let mut text = "密".repeat(30_000);
    text.push_str(&format!(" {} ", github()));
    text.push_str(&"x ".repeat(30_000));
    let seen = check(small(), text.as_bytes());
    let found = &seen.findings[0];
    assert_eq!((found.line, found.column), (1, 30_002));
    let seen = check(small(), &utf16(&format!("a\n{text}")));
    let found = &seen.findings[0];
    assert_eq!((found.line, found.column), (2, 30_002));
}

#[test]
fn utf16_is_read_whatever_the_windows_cut() {
    let text = format!(
        "{}令牌 {}\n{}",
        "😀 行\n".repeat(5000),
        github(),
        "😀a".repeat(9000)
    );
    for text in [text.clone(), format!("x{text}")] {
        let seen = check(small(), &utf16(&text));
        assert_eq!(seen.findings, scan(&text));
        assert_eq!(seen.findings[0].line, 5001);
    }
    assert!(check(small(), b"\xff\xfe").findings.is_empty());
    assert!(check(small(), b"").findings.is_empty());
}

/// Megabytes, in windows of eight KiB: a secret stands in the last line, and the same one once before.
#[test]
fn a_large_file_goes_through_in_windows() {
    let mut text = filler(2 << 20);
    text.push_str(&format!("{}\n", github()));
    text.push_str(&filler(2 << 20));
    text.push_str(&format!("{}\nsk-{}", github(), random(LOWER_HEX, 32)));
    let seen = check(small(), text.as_bytes());
    assert_eq!(seen.findings, scan(&text));
    assert_eq!(seen.findings.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Windows are nobody's business.
    #[test]
    fn as_much_is_found_as_in_the_whole(
        parts in proptest::collection::vec((0..4_usize, 1..4000_usize, 0..3_usize), 1..20)
    ) {
        let mut text = String::new();
        for (what, length, layers) in parts {
            let mut part = match what {
                0 => format!("{} ", random(WORD, length % 60 + 1)),
                1 => format!("\"api_{}\": \"{}\"\n", "key", random(WORD, length % 30 + 20)),
                2 => private_key(),
                _ => filler(length),
            };
            for _ in 0..layers {
                part = serde_json::to_string(&part).unwrap();
            }
            text.push_str(&part);
        }
        prop_assert_eq!(check(small(), text.as_bytes()).findings, scan(&text));
    }
}

/// A rule of a person is tried in all of a file that has its keyword, wherever that stands.
#[test]
fn a_keyword_that_comes_late_counts_from_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.toml");
    let rule =
        "[[rules]]\nid = \"acme\"\nregex = '''\\bac[0-9]{9}\\b'''\nkeywords = [\"acme corp\"]\n";
    std::fs::write(&own, rule).unwrap();
    let own = Check::load(Some(&own), &[]).unwrap().with_sizes(SMALL);
    let text = format!("ac{}\n{}", 123_456_780, filler(60_000));
    assert!(check(&own, text.as_bytes()).findings.is_empty());
    let seen = check(&own, format!("{text}acme corp").as_bytes());
    assert_eq!(seen.findings.len(), 1);
    assert_eq!(seen.findings[0].line, 1);
    assert_eq!(
        seen.findings,
        own.rules()
            .scan(Path::new("x"), format!("{text}acme corp").as_bytes())
    );
}

#[test]
fn what_is_allowed_is_counted_and_not_told() {
    let token = github();
    let digest = scan(&token)[0].digest.clone();
    let allowing = Check::load(None, &[digest.to_uppercase()]).unwrap();
    let text = format!("{token} sk-{}", random(LOWER_HEX, 32));
    let seen = check(&allowing, text.as_bytes());
    assert_eq!((seen.findings.len(), seen.allowed), (1, 1));
    assert_eq!(seen.findings[0].rule, "sk-key");
    assert!(allowing.name(Path::new(&token)).is_empty());
    assert!(Check::load(None, &["x".into()]).is_err());
}

/// However many there are, and some of them allowed: what is told is bounded, and never nothing.
#[test]
fn a_file_of_secrets_alone() {
    let mut text = String::new();
    for n in 0..3000 {
        text.push_str(&format!("sk-{}{n:04}\n", random(LOWER_HEX, 32)));
    }
    let all = scan(&text);
    assert_eq!(all.len(), 3000);
    let digests: Vec<String> = all[..1500].iter().map(|m| m.digest.clone()).collect();
    let allowing = Check::load(None, &digests).unwrap().with_sizes(SMALL);
    let seen = check(&allowing, text.as_bytes());
    assert_eq!((seen.findings.len(), seen.allowed), (1000, 1500));
    assert_eq!(seen.findings[0], all[1500]);
}

#[test]
fn names_and_links_are_looked_at() {
    let token = github();
    let name = format!("会话/dump_{token}.txt");
    let found = small().name(Path::new(&name));
    assert_eq!(found.len(), 1);
    let shown = small().shown(Path::new(&name));
    assert_eq!(shown, Path::new(&format!("会话/dump_{}", found[0].shown)));
    let harmless = Path::new("会话/a.txt");
    assert!(small().name(harmless).is_empty());
    assert_eq!(small().shown(harmless), harmless);
}

#[test]
fn the_digest_follows_the_rules_and_the_allow_list() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.toml");
    std::fs::write(&own, "").unwrap();
    let digest = |own: Option<&Path>, allow: &[&str]| {
        let allow: Vec<String> = allow.iter().map(|d| (*d).to_owned()).collect();
        Check::load(own, &allow).unwrap().digest().to_owned()
    };
    let (a, b) = (&"a".repeat(32), &"b".repeat(32));
    let plain = digest(None, &[]);
    assert_eq!(plain.len(), 32);
    assert_eq!(plain, digest(None, &[]));
    assert_ne!(plain, digest(Some(&own), &[]));
    assert_ne!(plain, digest(None, &[a]));
    assert_eq!(
        digest(None, &[a, b]),
        digest(None, &[b, &a.to_uppercase(), a])
    );
}

#[test]
fn the_cursor_stays_and_an_interruption_is_told() {
    let mut file = file_of(b"abc");
    file.seek(std::io::SeekFrom::Start(1)).unwrap();
    let stop = Stop::new();
    let seen = small().file(Path::new("x"), &file, &stop).unwrap();
    assert_eq!(seen.digest, blake3::hash(b"abc"));
    let seen = small().beginning(Path::new("x"), &file, 2, &stop).unwrap();
    assert_eq!((seen.digest, seen.size), (blake3::hash(b"ab"), 2));
    assert_eq!(file.stream_position().unwrap(), 1);
    stop.raise();
    let error = small().file(Path::new("x"), &file, &stop).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
}
