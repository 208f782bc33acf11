//! Any text as what a killed command has left in the journal: whatever is done about it stays in the home, and nothing that
//! a session held is gone afterwards.
//!
//! The first piece is the entry of the journal; in it `"SEEN:sessions/…"` stands for the facts of what lies there, which
//! nobody could guess. The others are files of the home, with the path on the first line.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use super::place::{Place, pieces};

/// What no entry of a journal may take away.
const KEPT: [(&str, &str); 5] = [
    (
        "sessions/20240603_周报/session.json",
        "{\"id\": \"周报\"}\n",
    ),
    ("sessions/20240603_周报/context/turn_001.json", "第一轮\n"),
    ("sessions/20240604_b/memory/a.md", "second\n"),
    ("agents/助手.toml", "name = \"助手\"\n"),
    (
        ".wbhome/trash/20240610T000000Z/sessions/旧/x",
        "in the trash\n",
    ),
];

/// The entry that was left.
const ENTRY: &str = ".wbhome/journal/20240614T000000Z-0.json";

pub fn run(input: &[u8]) -> bool {
    let place = Place::new();
    let home = place.home();
    place.put("外/秘密", "not of the home");
    place.put("外/logs/a.log", "a line\n");
    for (path, content) in KEPT {
        place.put(format!("主页/{path}"), content);
    }
    place.put(format!("主页/{ENTRY}"), "");
    let mut pieces = pieces(input);
    let entry = pieces.next().unwrap_or_default();
    for piece in pieces.take(6) {
        add(&place, piece);
    }
    let link = place.path("主页/agents/出");
    let _ = std::os::unix::fs::symlink(place.path("外"), link);
    let outside = place.tree("外");
    let entry = with_facts(&place, &String::from_utf8_lossy(entry));
    place.put(format!("主页/{ENTRY}"), entry);
    let mut is_settled = false;
    // What can not be completed is tried again by every command.
    for _ in 0..2 {
        if let Ok(locked) = place.locked(&home) {
            is_settled |= locked
                .settled()
                .iter()
                .any(|settled| settled.command.is_some());
        }
        assert_eq!(place.tree("外"), outside, "something outside has changed");
        let names = std::fs::read_dir(place.root()).expect("a folder").count();
        assert_eq!(names, 2, "something was made outside");
        let all = place.tree("主页");
        let held: BTreeSet<&[u8]> = all.values().flatten().map(Vec::as_slice).collect();
        for (path, content) in KEPT {
            assert!(held.contains(content.as_bytes()), "{path} is gone");
        }
    }
    is_settled
}

/// A file of the home where none is, or another index.
fn add(place: &Place, piece: &[u8]) {
    let Some(at) = piece.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (path, content) = (String::from_utf8_lossy(&piece[..at]), &piece[at + 1..]);
    let path = Path::new(&*path);
    let mut parts = path.components();
    let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
    let is_whole = path.iter().count() < 8 && path.iter().all(|part| part.len() < 200);
    let is_named = !path.as_os_str().is_empty() && !path.to_string_lossy().contains('\0');
    if !(is_below && is_whole && is_named) {
        return;
    }
    let is_index = path == Path::new("index.json");
    let path = place.path("主页").join(path);
    let Some(parent) = path.parent() else { return };
    if std::fs::create_dir_all(parent).is_ok() && (is_index || !path.exists()) {
        let _ = std::fs::write(&path, content);
    }
}

/// The entry with the facts in it.
fn with_facts(place: &Place, entry: &str) -> String {
    let mut parts = entry.split("\"SEEN:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts.take(8) {
        let (path, rest) = part.split_once('"').unwrap_or((part, ""));
        let is_below = !path.contains("..") && !path.contains('\0');
        let meta = place.path("主页").join(path.trim_start_matches('/'));
        match meta.symlink_metadata() {
            Ok(meta) if is_below && meta.is_dir() => {
                text += &format!("{{\"ino\": {}}}", meta.ino());
            }
            Ok(meta) if is_below => {
                let state = (meta.size(), meta.mtime(), meta.mtime_nsec());
                let (size, seconds, nanos) = state;
                text += &format!(
                    "{{\"ino\": {}, \"state\": [{size}, {seconds}, {nanos}]}}",
                    meta.ino()
                );
            }
            _ => text += "{\"ino\": 1}",
        }
        text += rest;
    }
    text
}
