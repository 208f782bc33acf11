//! The string values of a JSON text, and where they stand in it.
//!
//! Nothing is built: two passes over the text, with as much memory as it is deep. The first tells whether it is whole and
//! which objects have a `role`; the second gives the values. Several documents may follow each other.

use std::fmt::Write as _;
use std::ops::{ControlFlow, Range};

use super::escapes::unescape;

/// Words that a value may be besides numbers. The last ones are no JSON, and Python writes them.
const WORDS: [&[u8]; 6] = [
    b"true",
    b"false",
    b"null",
    b"NaN",
    b"Infinity",
    b"-Infinity",
];

/// One step from a document to a value in it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Of objects: its number, in the order in which they are opened.
    object: Option<usize>,
    /// Of objects: where the current key stands, without its quotes.
    key: Range<usize>,
    /// Of lists: the number of the current item.
    item: usize,
}

/// What the first pass learns.
#[derive(Debug)]
pub(super) struct Outline {
    /// Of each object where its role stands.
    roles: Vec<Option<Range<usize>>>,
}

/// Where a value stands, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The JSON pointer (RFC 6901).
    pub pointer: String,
    /// The role that the innermost object around it has.
    pub role: Option<String>,
    /// The way to it in brief: below the object that has the role, if one has.
    pub brief: String,
}

/// Whether a text is whole JSON, and what is in it; `None` when it is torn, or something else.
pub(super) fn outline(text: &[u8]) -> Option<Outline> {
    let mut roles: Vec<Option<Range<usize>>> = Vec::new();
    let done = walk(text, |steps, value| {
        if let Some(Step {
            object: Some(number),
            key,
            ..
        }) = steps.last()
            && &text[key.clone()] == b"role"
        {
            roles.resize((*number + 1).max(roles.len()), None);
            roles[*number] = Some(value);
        }
        ControlFlow::Continue(())
    });
    matches!(done, Walked::Whole).then_some(Outline { roles })
}

/// Gives each string value: the way to it, and where it stands without its quotes.
pub(super) fn values(
    text: &[u8],
    each: impl FnMut(&[Step], Range<usize>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match walk(text, each) {
        Walked::Ended => ControlFlow::Break(()),
        Walked::Whole | Walked::Torn => ControlFlow::Continue(()),
    }
}

impl Outline {
    /// Where a value stands.
    pub(super) fn place(&self, text: &[u8], steps: &[Step]) -> Place {
        let role_of = |step: &Step| self.roles.get(step.object?)?.clone();
        let with_role = steps.iter().rposition(|step| role_of(step).is_some());
        let role = with_role.and_then(|n| role_of(&steps[n]));
        let mut place = Place {
            role: role.map(|role| unescaped(&text[role])),
            ..Place::default()
        };
        let mut brief = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            let name = match step.object {
                Some(_) => unescaped(&text[step.key.clone()]),
                None => step.item.to_string(),
            };
            let _ = write!(
                place.pointer,
                "/{}",
                name.replace('~', "~0").replace('/', "~1")
            );
            if with_role.is_none_or(|with_role| n >= with_role) {
                brief.push(name);
            }
        }
        // What somebody says is what one expects to find: `content`, `content.0.text`.
        let said = |name: &String| {
            matches!(name.as_str(), "content" | "text" | "parts")
                || name.bytes().all(|byte| byte.is_ascii_digit())
        };
        if with_role.is_none() || !brief.iter().all(said) {
            place.brief = brief.join(".");
        }
        place
    }
}

fn unescaped(text: &[u8]) -> String {
    let mut out = Vec::new();
    unescape(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Debug, PartialEq, Eq)]
enum Walked {
    Whole,
    Torn,
    /// `each` has had enough.
    Ended,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of the list that has just begun.
    FirstItem,
    /// A key, or the end of the object that has just begun.
    FirstKey,
    Key,
    /// A comma, or the end of what is open.
    Comma,
}

fn walk(text: &[u8], mut each: impl FnMut(&[Step], Range<usize>) -> ControlFlow<()>) -> Walked {
    let mut at = if text.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut steps: Vec<Step> = Vec::new();
    let mut objects = 0;
    let mut next = Next::Value;
    loop {
        at = past_space(text, at);
        let Some(&byte) = text.get(at) else {
            return match steps.is_empty() && next == Next::Value {
                true => Walked::Whole,
                false => Walked::Torn,
            };
        };
        let begins_value = matches!(next, Next::Value | Next::FirstItem);
        let mut after_value = false;
        match (byte, next) {
            (b'"', Next::FirstKey | Next::Key) => {
                let Some(end) = end_of_string(text, at + 1) else {
                    return Walked::Torn;
                };
                let colon = past_space(text, end + 1);
                if text.get(colon) != Some(&b':') {
                    return Walked::Torn;
                }
                if let Some(step) = steps.last_mut() {
                    step.key = at + 1..end;
                }
                at = colon + 1;
                next = Next::Value;
            }
            (b'"', _) if begins_value => {
                let Some(end) = end_of_string(text, at + 1) else {
                    return Walked::Torn;
                };
                if each(&steps, at + 1..end).is_break() {
                    return Walked::Ended;
                }
                at = end + 1;
                after_value = true;
            }
            (b'{', _) if begins_value => {
                steps.push(Step {
                    object: Some(objects),
                    key: 0..0,
                    item: 0,
                });
                objects += 1;
                at += 1;
                next = Next::FirstKey;
            }
            (b'[', _) if begins_value => {
                steps.push(Step {
                    object: None,
                    key: 0..0,
                    item: 0,
                });
                at += 1;
                next = Next::FirstItem;
            }
            (b'}' | b']', Next::Comma | Next::FirstKey | Next::FirstItem) => {
                let closes_object = steps.pop().map(|step| step.object.is_some());
                if closes_object != Some(byte == b'}') {
                    return Walked::Torn;
                }
                at += 1;
                after_value = true;
            }
            (b',', Next::Comma) => {
                at += 1;
                next = match steps.last_mut() {
                    Some(step) if step.object.is_none() => {
                        step.item += 1;
                        Next::Value
                    }
                    _ => Next::Key,
                };
            }
            _ if begins_value => match end_of_word(text, at) {
                Some(end) => {
                    at = end;
                    after_value = true;
                }
                None => return Walked::Torn,
            },
            _ => return Walked::Torn,
        }
        if after_value {
            next = match steps.is_empty() {
                // One more document may follow.
                true => Next::Value,
                false => Next::Comma,
            };
        }
    }
}

fn past_space(text: &[u8], from: usize) -> usize {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| space(byte)).count()
}

/// Where the quote stands that ends a string.
fn end_of_string(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at),
            _ => at += 2,
        }
    }
}

/// The end of a number or a word.
fn end_of_word(text: &[u8], from: usize) -> Option<usize> {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let rest = &text[from..];
    let word = &rest[..rest.iter().take_while(|byte| part(byte)).count()];
    let is_number = || {
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let of_number = |byte: &u8| byte.is_ascii_digit() || b"eE+-.".contains(byte);
        digits.first().is_some_and(u8::is_ascii_digit) && digits.iter().all(of_number)
    };
    (WORDS.contains(&word) || is_number()).then_some(from + word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Option<Vec<(String, String, String)>> {
        let outline = outline(text.as_bytes())?;
        let mut found = Vec::new();
        let _ = values(text.as_bytes(), |steps, value| {
            let place = outline.place(text.as_bytes(), steps);
            let label = format!("{}|{}", place.role.unwrap_or_default(), place.brief);
            found.push((place.pointer, label, unescaped(&text.as_bytes()[value])));
            ControlFlow::Continue(())
        });
        Some(found)
    }

    #[track_caller]
    fn has(text: &str, wanted: &[(&str, &str, &str)]) {
        let found = all(text).unwrap();
        let found: Vec<_> = found.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn values_and_the_way_to_them() {
        has(
            r#"{"content": "hi", "tool_calls": [{"args": "{\"a\": 1}"}], "role": "assistant"}"#,
            &[
                ("/content", "assistant|", "hi"),
                (
                    "/tool_calls/0/args",
                    "assistant|tool_calls.0.args",
                    "{\"a\": 1}",
                ),
                ("/role", "assistant|role", "assistant"),
            ],
        );
        has(
            r#"{"m": [{"role": "user", "content": [{"text": "a"}]}, "b"], "x/~\u6570": "c", "n": -1.5e3, "t": true}"#,
            &[
                ("/m/0/role", "user|role", "user"),
                ("/m/0/content/0/text", "user|", "a"),
                ("/m/1", "|m.1", "b"),
                ("/x~1~0数", "|x/~数", "c"),
            ],
        );
        has(
            "\u{feff} \"a\" [\"b\"]\n{}[] {\"k\":\"c\"}",
            &[("", "|", "a"), ("/0", "|0", "b"), ("/k", "|k", "c")],
        );
        has("", &[]);
        has("NaN [Infinity, null, 0]", &[]);
    }

    #[test]
    fn what_is_torn_is_not_whole() {
        for text in [
            "{",
            "[",
            "{\"a\"",
            "{\"a\":",
            "{\"a\": 1",
            "{\"a\": \"b",
            "[1,]",
            "{\"a\":1,}",
            "]",
            "}",
            "[}",
            "{]",
            "[1 2]",
            "{\"a\" 1}",
            "{1: 2}",
            "hello",
            "tru",
            "\"a\\",
            "[\"a\"] x",
            "1,2",
            "{\"a\":1}\0",
            "-",
            "[1}",
        ] {
            assert!(all(text).is_none(), "{text}");
        }
    }

    #[test]
    fn any_depth_is_walked() {
        let deep = "[".repeat(200_000);
        assert!(all(&deep).is_none());
        let closed = format!("{deep}\"x\"{}", "]".repeat(200_000));
        assert_eq!(all(&closed).unwrap().len(), 1);
    }
}
