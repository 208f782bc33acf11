//! What holds for all contents.

use proptest::prelude::*;

use super::*;

/// Pieces that rules and escapes begin with, and anything else.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "token=",
        "\\",
        "\\\\n",
        "\\u",
        "\\ud83d\\ude00",
        "\"password\": \"",
        "://",
        "@",
        ":",
        "sk-",
        "ghp_",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        ".eyJ",
        "密码：",
        "\u{feff}",
        "\n",
        "Wq7pLm2xAb9zRt5k",
        "machine a login b password ",
    ]);
    let piece = prop_oneof![
        known.prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
        "[A-Za-z0-9+/=]{0,80}".prop_map(String::into_bytes),
    ];
    let mark = prop::sample::select(vec![&b""[..], b"\xff\xfe", b"\xfe\xff"]);
    (mark, prop::collection::vec(piece, 0..30))
        .prop_map(|(mark, pieces)| [mark.to_vec(), pieces.concat()].concat())
}

proptest! {
    #[test]
    fn any_content_is_scanned(content in pieces()) {
        let found = scan(&content);
        prop_assert!(found.is_sorted_by_key(|f| (f.line, f.column)));
        for found in found {
            prop_assert!(found.line >= 1 && found.column >= 1);
            prop_assert_eq!(found.digest.len(), 32);
            prop_assert!(!found.shown.chars().any(char::is_control));
        }
    }

    /// Whatever stands around it, unless that makes it part of a word.
    #[test]
    fn a_planted_token_is_found(
        before in prop::collection::vec(any::<u8>(), 0..300),
        after in prop::collection::vec(any::<u8>(), 0..300),
        left in prop::sample::select(vec![" ", "\"", "\n", "=", "：", "\\n", "/"]),
        right in prop::sample::select(vec![" ", "\"", "\n", "\\n", "，", "\\\"", "&"]),
    ) {
        // No mark of UTF-16, and no backslash that would take the first of ours away.
        let mut content = b"x".to_vec();
        content.extend(before.iter().filter(|b| **b != b'\\'));
        content.extend_from_slice(left.as_bytes());
        let line = 1 + content.iter().filter(|b| **b == b'\n').count() as u64;
        content.extend_from_slice(github().as_bytes());
        content.extend_from_slice(right.as_bytes());
        content.extend_from_slice(&after);
        let found = scan(&content);
        let found = found.iter().find(|f| f.rule == "github-token");
        prop_assert!(found.is_some());
        prop_assert_eq!(found.map(|f| f.line), Some(line));
        prop_assert_eq!(found.map(|f| f.digest.clone()), Some(scan(github())[0].digest.clone()));
    }
}
