//! A turn as a person reads it: who said what and when, and what was called.
//!
//! Agents write turns in more than one shape: a list of messages, or one message; text as it is, or in parts; calls beside
//! the text, or among the parts. What has none of these shapes is no turn, and is shown as the bytes that it is.

use serde::Serialize;
use serde_json::Value;

/// A turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its number, as it says itself.
    pub number: Option<u64>,
    /// When, in its own words.
    pub at: Option<String>,
    /// What was said, in order.
    pub messages: Vec<Message>,
}

/// Something that was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// By whom: `user`, `assistant`, `tool`, or another word of the agent's.
    pub role: String,
    /// When, in its own words.
    pub at: Option<String>,
    /// The text.
    pub text: String,
    /// What was called, a line each.
    pub calls: Vec<String>,
}

/// What was said last by one side, in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// By whom.
    pub role: String,
    /// The first line of it that is not empty; of one that only calls, the call.
    pub text: String,
}

/// So long a line of a call may be, in characters.
const CALL: usize = 120;

/// So much is told of what was said.
const BRIEF: usize = 160;

/// The names that time goes by.
const TIMES: [&str; 5] = ["timestamp", "time", "at", "created_at", "started_at"];

impl Turn {
    /// Understands the content of a file; `None` when it is no turn.
    pub fn read(content: &[u8]) -> Option<Turn> {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let value: Value = serde_json::from_slice(content).ok()?;
        let messages = match value.get("messages") {
            Some(Value::Array(messages)) => messages.iter().filter_map(message).collect(),
            _ => vec![message(&value)?],
        };
        (!messages.is_empty()).then(|| Turn {
            number: value.get("turn").and_then(Value::as_u64),
            at: time(&value),
            messages,
        })
    }

    /// What the person said last, and what came of it: a line each.
    pub fn brief(&self) -> Vec<Said> {
        let last = |user: bool| {
            let mut messages = self.messages.iter().enumerate().rev();
            messages.find(|(_, message)| match user {
                true => message.role == "user",
                false => message.role == "assistant",
            })
        };
        let mut found: Vec<(usize, &Message)> =
            [last(true), last(false)].into_iter().flatten().collect();
        if found.is_empty() {
            found.extend(self.messages.iter().enumerate().next_back());
        }
        found.sort_by_key(|(n, _)| *n);
        let said = |(_, message): (usize, &Message)| Said {
            role: message.role.clone(),
            text: message.first_line(),
        };
        found.into_iter().map(said).collect()
    }
}

impl Message {
    fn first_line(&self) -> String {
        let mut lines = self.text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty());
        let line = line.or_else(|| self.calls.first().map(String::as_str));
        cut(line.unwrap_or_default(), BRIEF)
    }
}

fn time(value: &Value) -> Option<String> {
    TIMES.iter().find_map(|name| match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => of_number(number),
        _ => None,
    })
}

/// Seconds, or milliseconds: of no other is a year between 2001 and 2286 spelled so.
fn of_number(number: &serde_json::Number) -> Option<String> {
    let moment = match number.as_i64()? {
        seconds @ 1_000_000_000..10_000_000_000 => jiff::Timestamp::from_second(seconds),
        ms @ 1_000_000_000_000..10_000_000_000_000 => jiff::Timestamp::from_millisecond(ms),
        _ => return None,
    };
    moment.ok().map(|moment| moment.to_string())
}

fn message(value: &Value) -> Option<Message> {
    // Some wrap each message once more.
    if let Some(inner @ Value::Object(_)) = value.get("message") {
        let mut found = message(inner)?;
        found.at = found.at.or_else(|| time(value));
        return Some(found);
    }
    let mut found = Message {
        role: value.get("role")?.as_str()?.to_owned(),
        at: time(value),
        ..Message::default()
    };
    let content = ["content", "text"].iter().find_map(|name| value.get(name));
    match content {
        Some(Value::String(text)) => found.say(text),
        Some(Value::Array(parts)) => parts.iter().for_each(|part| found.add(part)),
        _ => {}
    }
    if let Some(Value::Array(calls)) = value.get("tool_calls") {
        found.calls.extend(calls.iter().filter_map(call));
    }
    Some(found)
}

impl Message {
    fn say(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    /// A part of a content: text, a call, or what a call has given.
    fn add(&mut self, part: &Value) {
        if let Value::String(text) = part {
            self.say(text);
        } else if let Some(Value::String(text)) = part.get("text") {
            self.say(text);
        } else if let Some(call) = call(part) {
            self.calls.push(call);
        } else {
            match part.get("content") {
                Some(Value::String(text)) => self.say(text),
                Some(Value::Array(parts)) => parts.iter().for_each(|part| self.add(part)),
                // A picture, or what nobody here knows: that it is there is told.
                _ => {
                    let kind = part.get("type").and_then(Value::as_str);
                    self.say(&format!("[{}]", kind.unwrap_or("something else")));
                }
            }
        }
    }
}

/// `shell  command: ls -la`
fn call(value: &Value) -> Option<String> {
    let function = value.get("function").unwrap_or(value);
    let name = function.get("name")?.as_str()?;
    let given = ["arguments", "input"]
        .iter()
        .find_map(|name| function.get(name));
    let parsed;
    let given = match given {
        Some(Value::String(text)) => {
            parsed = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
            Some(&parsed)
        }
        given => given,
    };
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let told = match given {
        Some(Value::Object(fields)) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key}: {}", plain(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Some(Value::Null) | None => String::new(),
        Some(value) => plain(value),
    };
    let line = format!(
        "{name}  {}",
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    Some(cut(line.trim_end(), CALL))
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_calls_beside_their_text() {
        let turn = Turn::read(
            r#"{"turn": 2, "started_at": "2024-05-27T09:20:05+08:00", "messages": [
                {"role": "user", "content": "\u6570\u636e\nplease"},
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "shell",
                    "arguments": "{\"command\": \"cd \\\"/a b\\\" &&\\n ls\"}"}}]},
                {"role": "tool", "content": "a\nb"}]}"#
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(
            (turn.number, turn.at.as_deref()),
            (Some(2), Some("2024-05-27T09:20:05+08:00"))
        );
        assert_eq!(turn.messages[0].text, "数据\nplease");
        assert_eq!(
            turn.messages[1].calls,
            ["shell  command: cd \"/a b\" && ls"]
        );
        let brief: Vec<(String, String)> =
            turn.brief().into_iter().map(|s| (s.role, s.text)).collect();
        let call = "shell  command: cd \"/a b\" && ls".to_owned();
        assert_eq!(
            brief,
            [
                ("user".to_owned(), "数据".to_owned()),
                ("assistant".to_owned(), call)
            ]
        );
    }

    #[test]
    fn one_message_in_parts() {
        let turn = Turn::read(
            br#"{"type": "assistant", "timestamp": 1717405200000, "message": {"role": "assistant", "content": [
                {"type": "text", "text": "I look."}, {"type": "tool_use", "name": "read", "input": {"path": "/a", "n": 3}},
                {"type": "image", "source": {}}, {"type": "tool_result", "content": [{"type": "text", "text": "found"}]}]}}"#,
        )
        .unwrap();
        let message = &turn.messages[0];
        assert_eq!(message.text, "I look.\n[image]\nfound");
        assert_eq!(message.calls, ["read  path: /a, n: 3"]);
        assert_eq!(message.at.as_deref(), Some("2024-06-03T09:00:00Z"));
        let long = format!(r#"{{"role": "user", "text": "{}"}}"#, "数".repeat(400));
        let turn = Turn::read(long.as_bytes()).unwrap();
        assert_eq!(turn.messages[0].text.chars().count(), 400);
        assert_eq!(turn.brief()[0].text.chars().count(), BRIEF + 1);
    }

    #[test]
    fn what_is_no_turn() {
        for other in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"messages": []}"#,
            r#"{"turn": 1, "text": "a"}"#,
            "12",
        ] {
            assert_eq!(Turn::read(other.as_bytes()), None, "{other}");
        }
    }
}
