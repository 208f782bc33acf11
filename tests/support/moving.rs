//! What the tests of the migration share: a small home by hand, and a look at the home without the program's own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::corpus::Corpus;
use super::{Entry, Place, differences, tree};

/// The path under which the homes of these tests were written: blanks, another script, and what patterns are made of.
pub const OLD: &str = "/Users/me/Cloud Drive/工作 (old)+[1]/workbuddy_home";

/// The session of [`small_home`].
pub const SESSION: &str = "sessions/20240601_one";

/// A home of one session, sound and indexed, whose files mention `old` eight times.
pub fn small_home(place: &Place, rel: &str, old: &str) -> PathBuf {
    let put = |path: &str, content: String| place.put(format!("{rel}/{path}"), content);
    let session = SESSION;
    put(
        &format!("{session}/session.json"),
        format!(
            "{{\"id\": \"20240601_one\", \"agent\": \"coder\", \"cwd\": \"{old}/{session}\"}}\n"
        ),
    );
    put(
        &format!("{session}/context/turn_001.json"),
        format!(
            "{{\"turn\": 1, \"cwd\": \"{old}\", \"messages\": [{{\"role\": \"user\", \"content\": \"see {old}/{session}/artifacts.\"}}]}}\n"
        ),
    );
    put(
        &format!("{session}/memory/notes.md"),
        format!("# Notes\n\nWork in `{old}`.\n"),
    );
    put(
        &format!("{session}/logs/run.log"),
        format!(
            "2024-06-01 started in {old}\n2024-06-01 wrote {old}/{session}/artifacts/out.txt\n"
        ),
    );
    put(&format!("{session}/artifacts/out.txt"), "42\n".into());
    put(
        "agents/coder/agent.yaml",
        format!("name: coder\nhome: \"{old}\"\nskills: []\n"),
    );
    put(
        "index.json",
        format!(
            "[\n  {{\n    \"id\": \"20240601_one\",\n    \"status\": \"active\",\n    \"agent\": \"coder\",\n    \"path\": \"{old}/{session}\"\n  }}\n]\n"
        ),
    );
    fs::create_dir_all(place.path(rel).join("agents/coder/skills")).unwrap();
    let root = place.path(rel);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    root
}

/// How often [`small_home`] mentions the old path.
pub const SMALL_REFERENCES: u64 = 8;

/// A damaged home as in the acceptance of the migration.
pub fn damaged() -> Corpus {
    Corpus {
        old_path: OLD.into(),
        damage: true,
        ..Corpus::default()
    }
}

/// A home as a person sees it: without `.wbhome/`.
pub fn visible(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut all = tree(root);
    all.retain(|path, _| path != b".wbhome" && !path.starts_with(b".wbhome/"));
    all
}

/// The home holds the source's entries as they were. What a person sees that the source never had must be among what
/// makes a folder a home.
pub fn assert_kept(
    source: &BTreeMap<Vec<u8>, Entry>,
    home: &BTreeMap<Vec<u8>, Entry>,
    but: impl Fn(&str) -> bool,
) {
    for (path, there) in source {
        let name = String::from_utf8_lossy(path);
        if but(&name) {
            continue;
        }
        let here = home
            .get(path)
            .unwrap_or_else(|| panic!("{name} is not in the home"));
        let looks = |e: &Entry| (e.kind, e.mode, e.mtime, e.links);
        assert_eq!(looks(here), looks(there), "{name}");
    }
    let new: Vec<_> = home
        .keys()
        .filter(|path| !source.contains_key(*path))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .filter(|path| {
            ![
                "archive",
                "projects",
                "agents",
                "sessions",
                "wbhome.toml",
                ".gitignore",
                "index.json",
            ]
            .contains(&path.as_str())
                && !path.starts_with("projects/")
        })
        .collect();
    assert!(new.is_empty(), "new in the home: {new:?}");
}

/// Two trees that must be the same.
pub fn assert_same(one: &BTreeMap<Vec<u8>, Entry>, other: &BTreeMap<Vec<u8>, Entry>, what: &str) {
    let differ = differences(one, other);
    assert!(differ.is_empty(), "{what}:\n{differ}");
}

/// `OLD=<the folder>`, for `--map`.
pub fn map_to(place: &Place, rel: &str) -> String {
    format!("{OLD}={}", place.path(rel).to_str().unwrap())
}
