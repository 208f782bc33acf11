use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::pattern::Meaning;
use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::new(text, Meaning::default()).unwrap()
}

/// `line|pointer#within|text` of all that is found, and the same when it is given piece by piece.
fn search(pattern: &Pattern, form: Form, content: &[u8]) -> Vec<String> {
    let given = |pieces: Option<usize>| {
        let mut told = Vec::new();
        let mut found = |line: Line, place: Option<(Place, u64)>| {
            let place = place.map_or(String::new(), |(place, within)| {
                format!("{}#{within}", place.pointer)
            });
            told.push(format!("{}|{place}|{}", line.number, line.text));
            ControlFlow::Continue(())
        };
        let mut text = Text::new(pattern, Want::Lines(0), form);
        let done = match pieces {
            None => text.whole(content, &mut found),
            Some(size) => {
                for piece in content.chunks(size) {
                    assert!(text.piece(piece, &mut found).is_continue());
                }
                text.end(&mut found)
            }
        };
        assert!(done.is_continue());
        told
    };
    let whole = given(None);
    assert_eq!(given(Some(7)), whole);
    whole
}

#[test]
fn a_document_is_searched_as_people_see_it() {
    let search =
        |text: &str, content: &str| search(&pattern(text), Form::Document, content.as_bytes());
    let turn = r#"{
  "role": "user",
  "content": "\u6570\u636e\n在 \/a\/b\/c \ud83d\ude00 \"x\"",
  "数据": 17
}"#;
    assert_eq!(search("数据", turn), ["3|/content#1|数据"]);
    assert_eq!(search("/a/b", turn), ["3|/content#2|在 /a/b/c 😀 \"x\""]);
    for (text, found) in [
        ("^在", 1),
        ("数据$", 1),
        ("😀 \"", 1),
        ("数据.*在", 0),
        ("17", 0),
        ("role", 0),
        (r"\\u6570", 0),
        (r"\\/", 0),
        (r"c\s😀", 1),
        ("(?i)USER", 1),
    ] {
        assert_eq!(search(text, turn).len(), found, "{text}");
    }
}

#[test]
fn what_is_torn_is_searched_as_it_stands_there() {
    let torn = "{\"role\": \"user\", \"content\": \"in the \\u6570 mid";
    assert_eq!(
        search(&pattern("mid$"), Form::Document, torn.as_bytes()),
        [format!("1||{torn}")]
    );
    assert!(search(&pattern("数"), Form::Document, torn.as_bytes()).is_empty());
    let records =
        "{\"a\": \"one\"}\n{\"a\": \"two\" one\n\n{\"b\": \"on\\u0065\"} {\"c\": \"one\"}\none";
    assert_eq!(
        search(&pattern("one"), Form::Records, records.as_bytes()),
        [
            "1|/a#1|one",
            "2||{\"a\": \"two\" one",
            "4|/b#1|one",
            "4|/c#1|one",
            "5||one"
        ]
    );
}

#[test]
fn what_is_binary_is_left_out() {
    for content in [&b"one\0one"[..], b"\x1f\x8bone", b"\x28\xb5\x2f\xfdone"] {
        assert!(search(&pattern("one"), Form::Plain, content).is_empty());
    }
    let mut late = vec![b'x'; SNIFFED];
    late.extend(b"\none\0\n");
    assert_eq!(search(&pattern("one"), Form::Plain, &late), ["2||one\0"]);
    let mut early = late.clone();
    early[SNIFFED - 1] = 0;
    assert!(search(&pattern("one"), Form::Plain, &early).is_empty());
    // What is text by its name is text with holes in it, too.
    early.resize(3 * SNIFFED, b'x');
    for form in [Form::Text, Form::Document, Form::Records] {
        assert_eq!(search(&pattern("one"), form, &early).len(), 1, "{form:?}");
    }
}

#[test]
fn names_tell_the_form() {
    for (name, form) in [
        ("turn_001.json", Form::Document),
        ("A.JSON", Form::Document),
        ("a.jsonl", Form::Records),
        ("a.ndjson.gz", Form::Records),
        ("a.jsonl-20240615T030000Z.zst", Form::Records),
        ("a-b.json", Form::Document),
        (".json", Form::Plain),
        ("run.log-20240615T030000Z", Form::Text),
        ("notes.md", Form::Text),
        ("run.LOG.gz", Form::Text),
        ("run.bin", Form::Plain),
        ("a.json5", Form::Plain),
    ] {
        assert_eq!(Form::of(OsStr::new(name)), form, "{name}");
    }
    let compressed = |path: &str| {
        let path = Path::new(path);
        Compressed::of(path.parent().unwrap(), path.file_name().unwrap())
    };
    assert_eq!(compressed("logs/a/b.zst"), Some(Compressed::Zstd));
    assert_eq!(compressed("logs/b.gz"), Some(Compressed::Gzip));
    assert_eq!(compressed("artifacts/b.gz"), None);
}

#[test]
fn a_large_file_takes_little_memory() {
    let lines = "nothing to be found in this line\n".repeat(20_000);
    let searched = pattern("needle");
    let mut text = Text::new(&searched, Want::Lines(0), Form::Plain);
    let mut numbers = Vec::new();
    let mut found = |line: Line, _| {
        numbers.push(line.number);
        ControlFlow::Continue(())
    };
    for _ in 0..20 {
        for piece in lines.as_bytes().chunks(100_000) {
            let _ = text.piece(piece, &mut found);
            assert!(text.held.capacity() < 4 * WINDOW);
        }
        let _ = text.piece(b"needle\n", &mut found);
    }
    let _ = text.end(&mut found);
    let wanted: Vec<u64> = (1..=20).map(|n| n * 20_001).collect();
    assert_eq!(numbers, wanted);
}

/// Everything that is found, by parsing every text and looking at each line of each string.
fn naive(pattern: &Pattern, value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            for (n, line) in text.lines().enumerate() {
                if pattern.lines.is_match(line.as_bytes()) {
                    found.push(format!("{pointer}#{}|{line}", n + 1));
                }
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                naive(pattern, item, &format!("{pointer}/{n}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                naive(pattern, value, &format!("{pointer}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// JSON with as many characters escaped as `every` says.
fn written(value: &Value, every: usize, out: &mut String) {
    let text = |text: &str, out: &mut String| {
        out.push('"');
        for (n, c) in text.chars().enumerate() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '/' if every > 0 && n.is_multiple_of(every) => out.push_str("\\/"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if every > 0 && n.is_multiple_of(every) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&match every % 2 {
                            0 => format!("\\u{unit:04x}"),
                            _ => format!("\\u{unit:04X}"),
                        });
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    };
    match value {
        Value::String(string) => text(string, out),
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { " , " } else { "" });
                written(item, every, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (n, (key, value)) in fields.iter().enumerate() {
                out.push_str(if n > 0 { ",\n" } else { "" });
                text(key, out);
                out.push_str(": ");
                written(value, every, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn texts() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a", "b", "ab", "/", "\\", "\"", "\n", "\t", "数", "数据", "😀", "é", " ", "u0061",
        "\\u6570", "A", "1", "~",
    ]);
    prop::collection::vec(parts, 0..8).prop_map(|parts| parts.concat())
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => texts().prop_map(Value::from),
        1 => prop::sample::select(vec![json!(null), json!(true), json!(-1.5e3), json!("")]),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(texts(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever is escaped: what is found is what parsing everything finds, no more and no less.
    #[test]
    fn as_parsing_everything_would(
        document in documents(),
        every in 0usize..4,
        text in prop::sample::select(vec![
            "a", "ab", "^a", "b$", "^$", "数据", "/", r"\\", "\"", r"\t", r"a\s", "[^a]", "a.b", "😀", r"\bab\b", "(?i)a",
            "u0061", r"^\W", "a*", "数|b", r"\x{6570}", "~", "é$", r"[\s\S]a",
        ]),
    ) {
        let pattern = pattern(text);
        let mut json = String::new();
        written(&document, every, &mut json);
        prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &document);
        let mut wanted = Vec::new();
        naive(&pattern, &document, "", &mut wanted);
        let without_line = |told: Vec<String>| -> Vec<String> {
            told.iter().map(|told| told.split_once('|').unwrap().1.to_owned()).collect()
        };
        let found = search(&pattern, Form::Document, json.as_bytes());
        prop_assert_eq!(without_line(found), wanted.clone());
        // The same as a line of many.
        let record = json.replace('\n', " ");
        let records = format!("{{}}\n{record}\n{record}");
        let found = search(&pattern, Form::Records, records.as_bytes());
        let twice: Vec<String> = wanted.iter().chain(&wanted).cloned().collect();
        prop_assert_eq!(without_line(found), twice);
    }

    /// No bytes make it panic, and what is torn loses nothing that stands there.
    #[test]
    fn any_bytes(content in prop::collection::vec(prop::sample::select(b"{}[]\",:\\u0a \n\x80tru".to_vec()), 0..60)) {
        let all = search(&pattern("a"), Form::Document, &content);
        if serde_json::from_slice::<Value>(&content).is_err() && json::outline(&content).is_none() {
            let lines = content.split(|b| *b == b'\n').filter(|line| line.contains(&b'a')).count();
            prop_assert_eq!(all.len(), lines);
        }
        search(&pattern("a"), Form::Records, &content);
    }
}
