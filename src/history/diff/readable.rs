//! JSON as lines that a person can read, and that change only where a value changed.
//!
//! Each value stands on a line of its own, after the path that leads to it; a longer text follows it as it is, with its
//! own line breaks. Nothing is left out: numbers keep their digits, and what stands twice in an object stays twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use unicode_width::UnicodeWidthStr;

use super::lines::{GOES_ON, pieces};

/// A JSON value, as it stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// Its digits.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In order, and with what stands twice.
    Fields(Vec<(String, Json)>),
}

/// By this key `serde_json` hands over a number with all its digits.
const NUMBER: &str = "$serde_json::private::Number";

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value()?;
            match value {
                Json::Text(digits) if key == NUMBER && fields.is_empty() => {
                    return Ok(Json::Number(digits));
                }
                value => fields.push((key, value)),
            }
        }
        Ok(Json::Fields(fields))
    }
}

impl Json {
    /// Understands a whole text.
    pub fn parse(text: &[u8]) -> serde_json::Result<Json> {
        serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
    }

    /// Puts the fields of objects into the order that another value has: their order means nothing.
    pub fn arrange(&mut self, like: &Json) {
        match (self, like) {
            (Json::List(items), Json::List(others)) => {
                for (item, other) in items.iter_mut().zip(others) {
                    item.arrange(other);
                }
            }
            (Json::Fields(fields), Json::Fields(others)) => {
                let place = |key: &str| others.iter().position(|(other, _)| other == key);
                let mut last = 0;
                let mut placed: Vec<(usize, (String, Json))> = Vec::new();
                for (key, mut value) in std::mem::take(fields) {
                    // What the other has not stays behind what it stood behind.
                    if let Some(at) = place(&key) {
                        value.arrange(&others[at].1);
                        last = at;
                    }
                    placed.push((last, (key, value)));
                }
                placed.sort_by_key(|(at, _)| *at);
                fields.extend(placed.into_iter().map(|(_, field)| field));
            }
            _ => {}
        }
    }
}

/// Lines, and which of them name what follows.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub text: String,
    count: usize,
    heads: Vec<(usize, String)>,
}

impl Text {
    pub fn of(json: &Json) -> Text {
        let mut text = Text::default();
        text.value(json, &mut String::new());
        text
    }

    /// The name of what a line, counted from 1, belongs to, and the line that has it.
    pub fn head(&self, line: usize) -> Option<(usize, &str)> {
        let after = self.heads.partition_point(|(at, _)| *at <= line);
        let (at, name) = self.heads.get(after.checked_sub(1)?)?;
        Some((*at, name))
    }

    /// A line that names what follows.
    pub fn named(&mut self, name: &str, line: &str) {
        self.heads.push((self.count + 1, name.to_owned()));
        self.line(line);
    }

    /// A line, in pieces when it is long.
    pub fn long(&mut self, indent: &str, line: &str) {
        let pieces = pieces(line);
        for (n, piece) in pieces.iter().enumerate() {
            self.text.push_str(indent);
            match n + 1 < pieces.len() {
                true => self.line(&format!("{piece}{GOES_ON}")),
                false => self.line(piece),
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
    }

    pub fn value(&mut self, json: &Json, path: &mut String) {
        let length = path.len();
        match json {
            Json::List(items) if !items.is_empty() => {
                for (n, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{n}]"));
                    self.value(item, path);
                    path.truncate(length);
                }
            }
            Json::Fields(fields) if !fields.is_empty() => {
                for (key, value) in fields {
                    match is_plain(key) {
                        true if path.is_empty() => path.push_str(key),
                        true => path.push_str(&format!(".{key}")),
                        false => path.push_str(&format!("[{}]", quoted(key))),
                    }
                    self.value(value, path);
                    path.truncate(length);
                }
            }
            Json::Text(text) if is_long(text) => self.block(text, path),
            json => {
                let value = match json {
                    Json::Null => "null".to_owned(),
                    Json::Bool(value) => value.to_string(),
                    Json::Number(digits) => digits.clone(),
                    Json::Text(text) => quoted(text),
                    Json::List(_) => "[]".to_owned(),
                    Json::Fields(_) => "{}".to_owned(),
                };
                let line = match path.is_empty() {
                    true => value,
                    false => format!("{path}: {value}"),
                };
                self.named(path, &line);
            }
        }
    }

    /// A text with line breaks of its own, as YAML writes one: `|` when it ends with a line break, else `|-`.
    fn block(&mut self, text: &str, path: &str) {
        let (text, sign) = match text.strip_suffix('\n') {
            Some(text) => (text, "|"),
            None => (text, "|-"),
        };
        self.named(path, &format!("{path}: {sign}"));
        for line in text.split('\n') {
            self.long("    ", line);
        }
    }
}

/// So wide a text follows its name on lines of its own.
const LONG: usize = 80;

fn is_long(text: &str) -> bool {
    text.contains('\n') || text.len() > LONG && text.width() > LONG
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        Text::of(&Json::parse(json.as_bytes()).unwrap()).text
    }

    #[test]
    fn every_value_with_its_path_and_texts_with_their_line_breaks() {
        let json = r#"{"turn": 1.50, "messages": [{"role": "用户", "content": "第一行\n第二行"}, {}],
            "a.b": {"": null}, "twice": 1, "twice": 12345678901234567890123, "ends": "a\nb\n", "none": []}"#;
        assert_eq!(
            shown(json),
            "turn: 1.50\nmessages[0].role: \"用户\"\nmessages[0].content: |-\n    第一行\n    第二行\nmessages[1]: {}\n\
             [\"a.b\"][\"\"]: null\ntwice: 1\ntwice: 12345678901234567890123\nends: |\n    a\n    b\nnone: []\n"
        );
        assert_eq!(shown("[1.0e7, -0]"), "[0]: 1.0e+7\n[1]: -0\n");
    }

    #[test]
    fn the_order_of_fields_means_nothing_and_what_differs_stays() {
        let parse = |json: &str| Json::parse(json.as_bytes()).unwrap();
        let new = parse(r#"{"a": 1, "b": {"c": 2, "d": 3}, "e": 4}"#);
        let mut old = parse(r#"{"e": 4, "b": {"d": 3, "c": 2}, "a": 1}"#);
        old.arrange(&new);
        assert_eq!(old, new);
        let mut old = parse(r#"{"e": 4, "x": 9, "a": 1, "a": 2}"#);
        old.arrange(&new);
        assert_eq!(Text::of(&old).text, "a: 1\na: 2\ne: 4\nx: 9\n");
    }

    #[test]
    fn a_line_knows_whose_it_is() {
        let text = Text::of(&Json::parse(br#"{"a": 1, "b": "x\ny"}"#).unwrap());
        assert_eq!(text.head(4), Some((2, "b")));
        assert_eq!(text.head(1), Some((1, "a")));
        assert_eq!(text.head(0), None);
    }
}
