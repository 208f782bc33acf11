//! Any bytes as `session.json`: what is read of it is what stands in it, and a moment is one.

use serde_json::Value;
use wbhome::home::{Record, parse_moment};

pub fn run(input: &[u8]) -> bool {
    let plain = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let value = serde_json::from_slice::<Value>(plain);
    let Ok(record) = Record::parse(input) else {
        assert!(!value.is_ok_and(|value| value.is_object()), "it is sound");
        return false;
    };
    let Ok(Value::Object(fields)) = value else {
        panic!("a record that is no object");
    };
    let text = |key: &str| {
        let text = fields.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    assert_eq!(record.id, text("id"));
    assert_eq!(
        record.session_id,
        text("session_id").or_else(|| text("sessionId"))
    );
    assert_eq!(record.agent, text("agent"));
    assert_eq!(record.title, text("title"));
    assert_eq!(record.cwd, text("cwd"));
    assert_eq!(record.project, text("project"));
    if let Some(moment) = &record.created_at {
        let read = parse_moment(moment);
        let written = [text("created_at"), text("createdAt")];
        if !written.contains(&Some(moment.clone())) {
            assert!(read.is_some(), "{moment} is no moment");
        }
        if let Some(read) = read {
            assert_eq!(parse_moment(&read.to_string()), Some(read));
        }
    }
    let tags = fields.get("tags").and_then(Value::as_array);
    let tags = tags
        .into_iter()
        .flatten()
        .filter(|tag| tag.is_string())
        .count();
    assert_eq!(record.tags.len(), tags);
    true
}
