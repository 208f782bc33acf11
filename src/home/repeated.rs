//! A key that stands twice in one JSON object. Parsers keep the last and say nothing; writing such a file
//! again would lose the first.

use std::collections::HashSet;

use super::index::Broken;

/// Finds the first key that repeats an earlier one of the same object. `content` is JSON that parses. The
/// outermost object is left out: there the index keeps both.
pub(super) fn repeated_key(content: &[u8]) -> Option<Broken> {
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut key_next = false;
    let mut at = 0;
    while let Some(&byte) = content.get(at) {
        match byte {
            b'{' => {
                open.push(Some(HashSet::new()));
                key_next = true;
            }
            b'[' => open.push(None),
            b'}' | b']' => {
                open.pop();
                key_next = false;
            }
            b',' => key_next = matches!(open.last(), Some(Some(_))),
            b'"' => {
                let end = string_end(content, at)?;
                let outermost = open.len() == 1;
                if let Some(Some(keys)) = open.last_mut()
                    && key_next
                    && !outermost
                {
                    let key: String = serde_json::from_slice(&content[at..end]).ok()?;
                    if let Some(again) = keys.replace(key) {
                        return Some(place(content, at, &again));
                    }
                }
                key_next = false;
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the string that begins at `start` ends, the closing quote included.
fn string_end(content: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match content.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn place(content: &[u8], at: usize, key: &str) -> Broken {
    let before = &content[..at];
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |n| n + 1) + 1;
    Broken::new(line, column, format!("`{key}` stands twice in one object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_in_one_object_and_only_there() {
        let good = r#"[{"id":"a","x":{"id":"{\"id\":"},"y":[{"id":1},{"id":2}]},{"id":"a"}]"#;
        assert_eq!(repeated_key(good.as_bytes()), None);
        // The index itself keeps two entries of one id.
        assert_eq!(repeated_key(br#"{"a":{"x":1},"a":{"x":1}}"#), None);
        let bad = "[\n {\"id\": \"数\", \"tags\": [], \"\\u0074ags\": [\"x\"]}]";
        let found = repeated_key(bad.as_bytes()).unwrap();
        assert_eq!((found.line, found.column), (2, 28));
        assert_eq!(found.why, "`tags` stands twice in one object");
    }
}
