use std::path::Path;

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;

const RECORD: &str = "sessions/s/context/turn_001.json";
const LINES: &str = "sessions/s/logs/run.jsonl";
const ANYTHING: &str = "sessions/s/artifacts/tsconfig.json";

fn probe(rel: &str, content: &[u8]) -> Vec<Defect> {
    let mut probe = Probe::for_file(Path::new(rel)).unwrap();
    probe.push(Some(content), content.len() as u64);
    probe.finish()
}

/// The detail of the torn finding, if there is one.
fn torn(rel: &str, content: &[u8]) -> Option<String> {
    probe(rel, content)
        .into_iter()
        .find_map(|defect| match defect {
            Defect::Torn { detail, .. } => Some(detail),
            Defect::NulRun { .. } => None,
        })
}

fn nul_run(offset: u64, length: u64, runs: u64, whole_file: bool) -> Defect {
    Defect::NulRun {
        offset,
        length,
        runs,
        whole_file,
    }
}

#[test]
fn only_text_is_probed_and_no_dependency() {
    let probed = |rel: &str| Probe::for_file(Path::new(rel)).is_some();
    assert!(TEXT.is_sorted());
    for rel in [
        RECORD,
        LINES,
        ANYTHING,
        "index.json",
        "sessions/s/a/B.MD",
        "sessions/s/x.Py",
    ] {
        assert!(probed(rel), "{rel}");
    }
    for rel in [
        "sessions/s/model.bin",
        "sessions/s/README",
        "sessions/s/.json",
        "sessions/s/code/node_modules/x/package.json",
        "sessions/s/.venv/lib/x.py",
        ".wbhome/cache.json",
        ".git/config.json",
    ] {
        assert!(!probed(rel), "{rel}");
    }
}

#[test]
fn records_must_parse_to_their_end() {
    for whole in [
        "{}",
        " {\"a\": [1, -2.5e+7, \"\\u00e9\\\"\", null]}\n",
        "3",
        "\u{feff}[]",
        "[NaN, -Infinity]",
    ] {
        assert_eq!(probe(RECORD, whole.as_bytes()), [], "{whole}");
    }
    let cuts: [&[u8]; 9] = [
        b"{",
        b"{\"a\": \"b",
        b"[1,",
        b"[1",
        b"{\"a\": -",
        b"[1.",
        b"tr",
        b"\"\\u12",
        b"{\"a\": \"\xe4\xb8",
    ];
    for cut in cuts {
        let detail = torn(RECORD, cut);
        assert_eq!(
            detail.as_deref(),
            Some("ends in mid-record"),
            "{}",
            cut.escape_ascii()
        );
    }
    assert_eq!(torn(RECORD, b"").as_deref(), Some("is empty"));
    assert_eq!(torn(RECORD, b" \n").as_deref(), Some("is empty"));
    assert_eq!(
        torn(RECORD, b"{}\n{}").as_deref(),
        Some("goes on after its end, at byte 4")
    );
    assert_eq!(
        torn(RECORD, b"{\"a\" 1}").as_deref(),
        Some("does not parse at byte 6")
    );
    assert_eq!(
        torn(RECORD, b"{\"a\": \"b\nc\"}").as_deref(),
        Some("does not parse at byte 9")
    );
    for strict in ["sessions/s/session.json", "sessions/s/memory/a/b.json"] {
        assert!(torn(strict, b"{} x").is_some(), "{strict}");
    }
}

#[test]
fn elsewhere_only_what_ends_too_early_is_torn() {
    for fine in ["", "// a comment\n{}", "{\"a\": 1,}", "{} {}", "{a: 1}"] {
        assert_eq!(torn(ANYTHING, fine.as_bytes()), None, "{fine}");
    }
    assert!(torn(ANYTHING, b"{\"a\": [1, 2").is_some());
    assert!(torn("sessions/s/session.json/x.json", b"{} {}").is_none());
    assert!(torn("index.json", b"[{").is_some());
}

#[test]
fn each_line_is_judged_for_itself() {
    for whole in [
        "",
        "{}\n{}\n",
        "{} {}\n\n[1]",
        "{}\r\n3 4\r\n",
        "\u{feff}{}\n",
    ] {
        assert_eq!(probe(LINES, whole.as_bytes()), [], "{whole}");
    }
    let cases = [
        ("{}\n{\"a\": ", "the last line is not finished"),
        ("{}\n{\"a\": {}{}", "the last line is not finished"),
        ("{}\n{\"a\": \n{}\n", "line 2 is not finished"),
        (
            "{}\n{\"a\": {\"b\": 1}\"c\"}\n{}\n",
            "line 2 does not parse",
        ),
        (
            "x\n{}\n{\n{}\n",
            "2 of 4 lines do not parse, the first is line 1",
        ),
        ("x\ny", "2 of 2 lines do not parse, the first is line 1"),
    ];
    for (lines, detail) in cases {
        assert_eq!(
            torn(LINES, lines.as_bytes()).as_deref(),
            Some(detail),
            "{lines}"
        );
    }
    let defects = probe(LINES, b"{}\n{}\n{\"a\"");
    assert!(
        matches!(
            defects[..],
            [Defect::Torn {
                offset: 6,
                records: 1,
                cut: true,
                ..
            }]
        ),
        "{defects:?}"
    );
}

#[test]
fn unwritten_blocks_are_found() {
    assert_eq!(probe(RECORD, &[0; 4096]), [nul_run(0, 4096, 1, true)]);
    assert_eq!(probe(RECORD, &[0; 3]), [nul_run(0, 3, 1, true)]);
    assert_eq!(
        probe("sessions/s/a.md", &[0; 16]),
        [nul_run(0, 16, 1, true)]
    );
    let text = |parts: &[&[u8]]| parts.concat();
    let log = text(&[b"ab\0\0cd", &[0; 16], b"x", &[0; 40]]);
    assert_eq!(probe("sessions/s/a.log", &log), [nul_run(6, 56, 2, false)]);
    assert_eq!(
        probe("sessions/s/a.log", &text(&[b"ab", &[0; 15], b"x"])),
        []
    );
    // A whole record before unwritten blocks is whole; a cut one is cut.
    assert_eq!(
        probe(RECORD, &text(&[b"{}\n", &[0; 50]])),
        [nul_run(3, 50, 1, false)]
    );
    let cut = probe(RECORD, &text(&[b"{\"a\": \"b", &[0; 50]]));
    assert!(
        matches!(
            cut[..],
            [
                Defect::Torn {
                    offset: 8,
                    cut: true,
                    ..
                },
                Defect::NulRun { .. }
            ]
        ),
        "{cut:?}"
    );
    let lines = text(&[b"{}\n", &[0; 20], b"{}\n"]);
    assert_eq!(probe(LINES, &lines), [nul_run(3, 20, 1, false)]);
    // Too few for a run are told all the same.
    assert!(torn(RECORD, b"{}\0\0").is_some());
    assert!(torn(LINES, b"{}\n\0{}\n").is_some());
}

#[test]
fn a_hole_is_read_as_the_zeros_it_stands_for() {
    for rel in [RECORD, LINES, "sessions/s/run.log"] {
        let mut probe = Probe::for_file(Path::new(rel)).unwrap();
        probe.push(Some(b"{}\n"), 3);
        probe.push(None, 10 << 40);
        probe.push(Some(b"\n"), 1);
        assert_eq!(probe.finish(), [nul_run(3, 10 << 40, 1, false)], "{rel}");
        let mut probe = Probe::for_file(Path::new(rel)).unwrap();
        probe.push(None, u64::MAX);
        probe.push(None, u64::MAX);
        assert_eq!(probe.finish(), [nul_run(0, u64::MAX, 1, true)], "{rel}");
    }
}

#[test]
fn other_encodings_and_deep_nesting_are_not_called_torn() {
    let utf16: Vec<u8> = "{\"a\": 1}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for rel in [RECORD, LINES] {
        assert_eq!(probe(rel, &utf16), []);
        assert_eq!(probe(rel, &[&[0xff, 0xfe], &utf16[..]].concat()), []);
        assert_eq!(probe(rel, "[".repeat(scanner::DEEPEST + 1).as_bytes()), []);
        assert!(torn(rel, "[".repeat(100_000).as_bytes()).is_some());
        let closed = ["[".repeat(100_000), "]".repeat(100_000)].concat();
        assert_eq!(probe(rel, closed.as_bytes()), []);
    }
}

/// What `serde_json` says of one document: whole, or torn.
fn by_the_book(content: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(content).is_ok()
}

/// Pieces of JSON and of what breaks it, so that random sequences come close to both.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"a\"",
        b"\"",
        b"\\",
        b"\\u00e9",
        b"\\n",
        b"-",
        b"0",
        b"12",
        b".5",
        b"e",
        b"E+3",
        b"true",
        b"fals",
        b"null",
        b" ",
        b"\n",
        b"\r",
        b"\t",
        "主".as_bytes(),
        b"\xff",
        b"\x01",
        b"/",
        b"{\"k\":[1,{}]}",
        b"longer text of a string",
    ];
    let piece = prop_oneof![30 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec), 1 => (1usize..40).prop_map(|n| vec![0; n])];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn valid() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(|f| f.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|v| format!("[{}]", v.join(" , "))),
            proptest::collection::vec((any::<String>(), inner), 0..5).prop_map(|pairs| {
                let pairs: Vec<String> = pairs
                    .into_iter()
                    .map(|(k, v)| format!("{}:{v}", serde_json::to_string(&k).unwrap()))
                    .collect();
                format!("{{{}}}", pairs.join(",\n"))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn the_scanner_agrees_with_serde_json(content in fragments()) {
        // What the book does not say: NULs around a record, and the encoding of the whole.
        prop_assume!(!content.contains(&0));
        prop_assert_eq!(probe(RECORD, &content).is_empty(), by_the_book(&content), "{}", content.escape_ascii());
    }

    #[test]
    fn whole_json_is_whole_and_cut_json_is_cut(text in valid(), at in any::<prop::sample::Index>()) {
        prop_assert_eq!(probe(RECORD, text.as_bytes()), []);
        prop_assert_eq!(probe(ANYTHING, text.as_bytes()), []);
        let cut = &text.as_bytes()[..at.index(text.len())];
        if !by_the_book(cut) && !cut.is_empty() {
            prop_assert_eq!(torn(ANYTHING, cut), Some("ends in mid-record".to_owned()));
        }
    }

    #[test]
    fn chunks_do_not_matter(content in prop_oneof![fragments(), proptest::collection::vec(any::<u8>(), 0..200)], cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(content.len() + 1)).collect();
        cuts.push(content.len());
        cuts.sort();
        for rel in [RECORD, ANYTHING, LINES, "sessions/s/a.md"] {
            let mut pieces = Probe::for_file(Path::new(rel)).unwrap();
            let mut start = 0;
            for &cut in &cuts {
                let piece = &content[start..cut];
                // Zeros may come as a hole.
                let hole = !piece.is_empty() && piece.iter().all(|b| *b == 0);
                pieces.push((!hole).then_some(piece), piece.len() as u64);
                start = cut;
            }
            prop_assert_eq!(pieces.finish(), probe(rel, &content), "{} {}", rel, content.escape_ascii());
        }
    }
}
