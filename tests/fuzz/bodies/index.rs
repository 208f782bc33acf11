//! Any bytes as `index.json`: what is read is written so that it is read again and nothing is lost, no id leads out, and
//! the quick reader (`home::each_brief`) sees the same sessions.

use std::path::{Component, Path};

use serde_json::Value;
use wbhome::home::{Entry, Index, IndexFile, Shape, each_brief};

use super::place::Place;

pub fn run(input: &[u8]) -> bool {
    let Ok(index) = Index::parse(input) else {
        assert!(!IndexFile::parses(input), "it may be rewritten unread");
        return false;
    };
    let written = index.to_bytes();
    let again = Index::parse(&written).expect("what was written is read");
    assert_eq!(again.shape(), index.shape());
    assert_eq!(again.others(), index.others());
    assert_eq!(sorted(&again), sorted(&index));
    assert_eq!(again.to_bytes(), written, "it is written in another way");
    for entry in index.entries() {
        leads_nowhere(entry);
    }
    if IndexFile::parses(input) {
        assert!(IndexFile::parses(&written), "it is not to be written twice");
        nothing_is_lost(&index, input, &written);
        briefly(&index, input);
    }
    true
}

fn sorted(index: &Index) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = index.entries().collect();
    entries.sort_by_key(|entry| entry.id());
    entries
}

/// An id that passes as a session's is one name in `sessions/`.
fn leads_nowhere(entry: &Entry) {
    if let Ok(id) = entry.session() {
        let path = Path::new("sessions").join(id.as_str());
        let mut parts = path.components();
        assert_eq!(parts.next(), Some(Component::Normal("sessions".as_ref())));
        assert_eq!(
            parts.next(),
            Some(Component::Normal(id.as_str().as_ref())),
            "{id:?} leads out"
        );
        assert_eq!(parts.next(), None, "{id:?} leads below");
        assert!(!id.as_str().contains('\0') && id.as_str().len() <= 200);
    }
}

/// Every value of the file is in what was written, as it was.
fn nothing_is_lost(index: &Index, input: &[u8], written: &[u8]) {
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("it was parsed");
    match (read(input), read(written)) {
        (Value::Array(before), Value::Array(after)) => {
            let texts = |all: Vec<Value>| {
                let mut texts: Vec<String> = all.iter().map(Value::to_string).collect();
                texts.sort();
                texts
            };
            assert_eq!(texts(after), texts(before));
        }
        // Of two equal keys a parser keeps the last, and the index both.
        (Value::Object(before), Value::Object(after)) => {
            if before.len() == index.items().len() {
                assert_eq!(after, before);
            }
        }
        // A number of any length is read by way of an object with a key of its own (`arbitrary_precision`).
        (before, _) => panic!("an index that is {before}"),
    }
}

/// The quick reader sees the same entries.
fn briefly(index: &Index, input: &[u8]) {
    let place = Place::new();
    let home = place.bare_home();
    place.put("主页/index.json", input);
    let mut seen = Vec::new();
    let read = each_brief(&home, &|_| true, &mut |brief| {
        let status = brief.status();
        seen.push((
            brief.id.into_owned(),
            status,
            brief.title.map(|title| title.into_owned()),
            brief.sync_tag.map(|tag| tag.into_owned()),
        ));
    });
    if read.is_err() {
        return;
    }
    let told = |entry: &Entry| {
        (
            entry.id().to_owned(),
            entry.status(),
            entry.title().map(str::to_owned),
            entry.sync_tag().map(str::to_owned),
        )
    };
    // What has an empty id is no session, and nothing is told of it.
    let mut wanted: Vec<_> = index.entries().map(told).collect();
    wanted.retain(|entry| !entry.0.is_empty());
    seen.retain(|entry| !entry.0.is_empty());
    if index.shape() == Shape::Object {
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        seen.sort_by(|a, b| a.0.cmp(&b.0));
    }
    assert_eq!(seen, wanted);
}
