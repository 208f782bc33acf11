//! What holds for all inputs.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::oracle::{oracle, places};
use super::*;

/// A folder name with something of everything, but for what ends or begins with a dot or space.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9]{1,9}",
        "[a-zA-Z][a-zA-Z0-9_+~-]{0,6}[()\\[\\]&' 工é家😀]{0,2}[a-z0-9]",
        "[工作主页家é😀]{1,3}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(name(), 1..4).prop_map(|names| format!("/{}", names.join("/")))
}

/// Two folders that show the same habits of a writer: only then is nothing lost on the way there and back.
fn pair() -> impl Strategy<Value = (String, String)> {
    let shared = "k工 \\(é😀\\)\\+\\[1\\]&o";
    (path(), path(), shared)
        .prop_map(|(a, b, s)| (format!("{a}/{s}/old"), format!("{b}/{s}/n")))
        .prop_filter("they differ", |(a, b)| !a.contains(b) && !b.contains(a))
}

fn filler() -> impl Strategy<Value = String> {
    select(vec![
        " ",
        "\n",
        ", see ",
        " \"",
        "' ",
        "，",
        "（在",
        ": ",
        "=",
        " x = ",
        "\t",
        " 1,2,",
        "。打开",
        "<",
        "`",
        " é ",
        "\0",
        " 😀",
    ])
    .prop_map(str::to_owned)
}

fn tail() -> impl Strategy<Value = String> {
    select(vec!["", "/x/y.md", "/", "/z-2", ". ", "...", "/在"]).prop_map(str::to_owned)
}

/// Pieces out of which texts are made that come close to references.
fn piece(old: &'static str, new: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let text = select(vec![
        " ",
        "/",
        "\\",
        "\\\\",
        "\\n",
        "\"",
        "\\\"",
        "'",
        ".",
        "..",
        "-",
        "2",
        "x",
        "的",
        "é",
        "😀",
        "\\u5de5",
        "\\ud83d",
        "\\u002f",
        "%20",
        "%2F",
        "%E7%9A%84",
        "%e5",
        "%",
        " (1)",
        "(1)",
        " 2/",
        " (conflicted copy",
        ")",
        "~",
        "$HOME",
        "${HOME}",
        "file://",
        "/Volumes/B",
        "sessions",
        "\0",
        "-sessions-",
        "-2",
        "{\"cwd\":\"",
        "\"}",
        "\n",
        "C:",
        "/mnt/c",
        "\\\\?\\",
        "，",
        "。",
    ])
    .prop_map(|s| s.as_bytes().to_vec());
    let slugs = select(vec![slug(old), slug(new)]).prop_map(String::into_bytes);
    let whole =
        (select(WAYS), select(vec![old, new])).prop_map(|(way, path)| way.write(path).into_bytes());
    let part = (select(WAYS), any::<prop::sample::Index>()).prop_map(|(way, at)| {
        let text = way
            .write("/Users/me/Cloud Drive/工作 (old)+[1]/workbuddy_home")
            .into_bytes();
        text[at.index(text.len())..].to_vec()
    });
    prop_oneof![4 => text, 4 => whole, 1 => part, 1 => slugs, 1 => proptest::collection::vec(any::<u8>(), 1..4)]
}

fn sets() -> impl Strategy<Value = (Rewriter, &'static str, &'static str)> {
    select(vec![
        vec![(OLD, NEW)],
        vec![("/工作/主页", "/家/x y")],
        vec![("/a/b", "/a/b/c"), ("/a/b/x", "/q")],
        vec![("/a (1)/b", "/n"), ("/b", "/m \"q\""), ("/b/x", "/p'q")],
        vec![(r"C:\Users\me\工 x", r"D:\y"), ("/mnt/c/Users", "/u")],
        vec![("/😀", "/x\\y"), ("/tmp/é-_", "/t")],
        vec![("/_/-", "/n/n")],
        vec![("/o\"d/x\\\\y", "/n\"\\")],
    ])
    .prop_map(|pairs| {
        let (old, new) = pairs[0];
        (with(&pairs, at_home()), old, new)
    })
}

/// A text close to references, for one of several sets of mappings.
fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = (std::rc::Rc<Rewriter>, Vec<u8>)> {
    sets().prop_flat_map(move |(rewriter, old, new)| {
        let rewriter = std::rc::Rc::new(rewriter);
        proptest::collection::vec(piece(old, new), pieces.clone())
            .prop_map(move |pieces| (rewriter.clone(), pieces.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    /// Exactly what was planted changes, in its spelling; and back.
    #[test]
    fn planted_references_change_and_change_back(
        (old, new) in pair(),
        parts in proptest::collection::vec((filler(), select(WAYS), tail(), any::<bool>()), 1..8),
    ) {
        let text = |path: &str| {
            let mut text = String::new();
            for (filler, way, tail, planted) in &parts {
                let written = way.write(&if *planted { path.to_owned() } else { format!("/x{old}") });
                text += &format!("{filler}{written}{}", way.write(tail));
            }
            text
        };
        let forth = rewriter(&[(&old, &new)]);
        let (out, found) = run(&forth, TextKind::Other, &text(&old));
        prop_assert_eq!(&out, &text(&new));
        prop_assert_eq!(found.references.len(), parts.iter().filter(|p| p.3).count());
        let (back, _) = run(&rewriter(&[(&new, &old)]), TextKind::Other, &out);
        prop_assert_eq!(back, text(&old));
    }

    /// The fast way, the streaming way and the obvious way agree.
    #[test]
    fn agrees_with_the_obvious_way((rewriter, input) in text(1..40), sizes in proptest::collection::vec(1usize..60, 1..5)) {
        for kind in [TextKind::Other, TextKind::Json] {
            let mut out = Vec::new();
            let found = rewriter.rewrite(kind, &input, &mut out);
            let (slow, references, doubtful) = oracle(&rewriter, kind, &input);
            prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&slow), "{:?}", String::from_utf8_lossy(&input));
            prop_assert_eq!(places(&found), (references, doubtful));
            prop_assert_eq!(streamed(&rewriter, kind, &input, &sizes), (out, found));
        }
    }

    /// Random bytes neither panic nor change, in any kind of text, with fields only or not.
    #[test]
    fn random_bytes_pass(input in proptest::collection::vec(any::<u8>(), 0..600), sizes in proptest::collection::vec(1usize..60, 1..5)) {
        for fields_only in [false, true] {
            let options = Options { fields_only, known_ids: vec!["x".into()], ..at_home() };
            let rewriter = with(&[(OLD, NEW), ("/工作/主页", "/x")], options);
            for kind in [TextKind::Json, TextKind::JsonLines, TextKind::Other, TextKind::Utf16Le, TextKind::Utf16Be] {
                prop_assert_eq!(&streamed(&rewriter, kind, &input, &sizes).0, &input);
            }
            let mut scan = rewriter.scan_binary();
            scan.push(&input);
            prop_assert_eq!(scan.count(), 0);
            let _ = (classify(b"x", &input), rewriter.link_target(&input));
        }
    }

    /// UTF-16 says what UTF-8 says.
    #[test]
    fn utf16_agrees_with_utf8((rewriter, input) in text(1..20), sizes in proptest::collection::vec(1usize..60, 1..5)) {
        let text = String::from_utf8_lossy(&input).into_owned();
        let encode = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        let (out, found) = run(&rewriter, TextKind::Other, &text);
        let (wide, places) = streamed(&rewriter, TextKind::Utf16Be, &encode(&text), &sizes);
        prop_assert_eq!(wide, encode(&out));
        let expected: Vec<u64> = found.references.iter().map(|r| encode(&text[..r.offset as usize]).len() as u64).collect();
        prop_assert_eq!(places.references.iter().map(|r| r.offset).collect::<Vec<_>>(), expected);
    }

    /// JSON stays JSON, and says NEW where it said OLD, however deep and by whatever writer.
    #[test]
    fn json_differs_only_in_the_references(
        (old, mut new) in pair(),
        quotes in any::<bool>(),
        parts in proptest::collection::vec((filler(), tail(), any::<bool>()), 1..5),
        (ascii_only, slashed, depth) in (any::<bool>(), any::<bool>(), 0usize..3),
        fields_only in any::<bool>(),
    ) {
        if quotes {
            new += " \"q\"\\w";
        }
        let value = |path: &str, quiet: &str| {
            let mut list = serde_json::json!([1.5e3, null]);
            for (filler, tail, planted) in &parts {
                let path = if *planted { path.to_owned() } else { format!("/x{old}") };
                let text = format!("{path}{tail}");
                let inside = format!("{filler}{}{tail}", if *planted { quiet } else { &path });
                list = serde_json::json!({"path": text, "content": inside, "next": list});
            }
            for _ in 0..depth {
                list = serde_json::json!({"json": list.to_string()});
            }
            list
        };
        let write = |value: serde_json::Value| {
            let mut text = value.to_string();
            if ascii_only {
                text = ascii(&text, "\\", false);
            }
            if slashed { text.replace('/', "\\/") } else { text }
        };
        let fields_only = fields_only && depth <= 1; // deeper, fields are not read
        let rewriter = with(&[(&old, &new)], Options { fields_only, ..Options::default() });
        let (out, _) = run(&rewriter, TextKind::Json, &write(value(&old, &old)));
        let parsed: serde_json::Value = serde_json::from_str(&out).expect("still JSON");
        prop_assert_eq!(parsed, value(&new, if fields_only { &old } else { &new }));
        if !quotes && !slashed {
            prop_assert_eq!(out, write(value(&new, if fields_only { &old } else { &new })));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// Texts longer than a window, so that windows move on.
    #[test]
    fn long_texts_in_any_pieces(
        (rewriter, input) in text(20..80),
        sizes in proptest::collection::vec(prop_oneof![1usize..200, 5_000usize..40_000], 1..5),
        fields_only in any::<bool>(),
    ) {
        let mappings = rewriter.mappings().to_vec();
        let options = Options { fields_only, known_ids: vec!["s1".into()], ..at_home() };
        let rewriter = Rewriter::new(mappings, options).expect("they were sound");
        let mut long = input.repeat(1 + 80_000 / input.len().max(1));
        long.extend_from_slice(b" /q/sessions/s1");
        for kind in [TextKind::JsonLines, TextKind::Other, TextKind::Utf16Le] {
            let mut out = Vec::new();
            let found = rewriter.rewrite(kind, &long, &mut out);
            let (pieces, found_in_pieces) = streamed(&rewriter, kind, &long, &sizes);
            let differs = pieces.iter().zip(&out).position(|(a, b)| a != b).unwrap_or(pieces.len().min(out.len()));
            let near = |text: &[u8]| String::from_utf8_lossy(&text[differs.saturating_sub(60)..text.len().min(differs + 60)]).into_owned();
            prop_assert_eq!(near(&pieces), near(&out), "{:?} at {}", kind, differs);
            prop_assert!(pieces == out);
            let first = found_in_pieces.references.iter().zip(&found.references).find(|(a, b)| a != b);
            prop_assert!(found_in_pieces == found, "{:?}: {:?} {:?} {:?} {:?}", kind, first, found_in_pieces.foreign, found.foreign, (found.left, found_in_pieces.left));
        }
    }
}
