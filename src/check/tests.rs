//! Small homes with one thing wrong each.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests lay out their homes by hand"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::conflict::Relation;
use super::*;
use crate::base::{FixedClock, NoProgress, Stop};

mod copies;
mod index;
mod links;
mod sessions;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    fn put(&self, rel: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(rel);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn link(&self, rel: &str, target: impl AsRef<Path>) {
        let path = self.root().join(rel);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A sound session with that many turns.
    fn session(&self, id: &str, turns: u32) -> String {
        let at = format!("sessions/{id}");
        self.put(
            format!("{at}/session.json"),
            format!("{{\"id\": \"{id}\", \"session_id\": \"uuid of {id}\"}}\n"),
        );
        for turn in 1..=turns {
            self.put(
                format!("{at}/context/turn_{turn:03}.json"),
                format!("{{\"turn\": {turn}}}\n"),
            );
        }
        at
    }

    fn inspect(&self, index: Option<&str>, only: Option<&[&str]>) -> Outcome {
        let root = Dir::open(self.root()).unwrap();
        let index = index.map(|text| Index::parse(text.as_bytes()).unwrap());
        let options = Options {
            only: only.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect()),
        };
        let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
        let stop = Stop::new();
        let context = Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &stop,
        };
        inspect(&root, &self.root(), index.as_ref(), &options, &context).unwrap()
    }

    fn findings(&self) -> Vec<Finding> {
        self.inspect(None, None).findings
    }

    /// Each finding as `kind path: detail`.
    fn lines(&self) -> Vec<String> {
        lines(&self.findings())
    }
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|f| format!("{} {}: {}", f.kind, f.path.display(), f.detail))
        .collect()
}

fn home() -> Place {
    let place = Place {
        folder: tempfile::tempdir().unwrap(),
    };
    fs::create_dir(place.root()).unwrap();
    fs::set_permissions(place.root(), fs::Permissions::from_mode(0o700)).unwrap();
    place
}

#[test]
fn a_sound_home_has_no_findings() {
    let place = home();
    let at = place.session("20240603_crawler", 3);
    place.put("index.json", "[]");
    place.put(".wbhome/cache.json", "{");
    place.put(".git/x.json", "{");
    place.put(format!("{at}/artifacts/site/node_modules/a/a.json"), "{");
    place.put(
        format!("{at}/artifacts/site/node_modules/a/a-ESM.json"),
        "{",
    );
    place.link(
        &format!("{at}/artifacts/.venv/bin/python"),
        "/nowhere/python",
    );
    let outcome = place.inspect(Some(r#"[{"id": "20240603_crawler"}]"#), None);
    assert_eq!(lines(&outcome.findings), [""; 0]);
    assert!(!outcome.has_problems());
    assert_eq!((outcome.sessions, outcome.files, outcome.probed), (1, 7, 5));
}

#[test]
fn an_empty_home_and_an_empty_folder_are_fine() {
    let place = home();
    assert_eq!(place.lines(), [""; 0]);
    fs::create_dir_all(place.root().join("sessions")).unwrap();
    assert_eq!(place.lines(), [""; 0]);
}

#[test]
fn the_worst_comes_first_and_counts_agree() {
    let place = home();
    let at = place.session("20240603_crawler", 2);
    place.put(format!("{at}/context/turn_002.json"), "{\"turn\"");
    place.put(format!("{at}/context/turn_002 (1).json"), "{\"turn\": 2}");
    place.put(format!("{at}/context/turn_004.json"), "{}");
    place.link(&format!("{at}/artifacts/out"), "/usr");
    fs::set_permissions(place.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = place.inspect(None, None);
    assert_eq!(
        lines(&outcome.findings),
        [
            "torn-json sessions/20240603_crawler/context/turn_002.json: ends in mid-record; the copy \"(1)\" beside it is whole",
            "missing-turn sessions/20240603_crawler/context/turn_003.json: 003 between 002 and 004",
            "conflict-copy sessions/20240603_crawler/context/turn_002 (1).json: goes on where turn_002.json ends; it is whole, the original is not",
            "open-to-others : mode 0755: other users of this machine can enter it; 0700 keeps them out",
            "outside-link sessions/20240603_crawler/artifacts/out: points to /usr, out of the home",
        ]
    );
    let counts = serde_json::to_string(&outcome.counts).unwrap();
    assert_eq!(
        counts,
        r#"{"torn-json":1,"missing-turn":1,"conflict-copy":1,"open-to-others":1,"outside-link":1}"#
    );
    assert!(outcome.has_problems());
}

#[test]
fn only_the_chosen_sessions_are_looked_at() {
    let place = home();
    let one = place.session("20240603_crawler", 2);
    let other = place.session("20240604_report", 2);
    for at in [&one, &other] {
        place.put(format!("{at}/context/turn_002.json"), "{");
        place.put(format!("{at}(1)/session.json"), "{}");
        place.link(&format!("{at}/out"), "nowhere");
    }
    fs::set_permissions(place.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let index = r#"[{"id": "20240101_ghost"}, {"id": "20240603_crawler"}]"#;
    let outcome = place.inspect(Some(index), Some(&["20240603_crawler"]));
    let kinds: Vec<&str> = outcome.findings.iter().map(|f| f.kind.as_str()).collect();
    assert_eq!(kinds, ["torn-json", "conflict-dir", "dangling-link"]);
    assert!(
        outcome
            .findings
            .iter()
            .all(|f| f.session.as_deref() == Some("20240603_crawler"))
    );
    assert_eq!((outcome.sessions, outcome.files), (1, 3));
}

#[test]
fn what_can_not_be_read_is_told_once() {
    let place = home();
    place.session("20240603_crawler", 1);
    let root = Dir::open(place.root()).unwrap();
    let stop = Stop::new();
    let mut tree = disk::walk(&root, &|_, _| false, &stop).unwrap();
    let at = PathBuf::from("sessions/20240603_crawler/context");
    let folder = tree
        .folders
        .iter_mut()
        .find(|folder| folder.rel == at)
        .unwrap();
    folder.unreadable = vec![(at.clone(), "permission denied".into()); 2];
    let survey = Survey {
        root: &root,
        root_path: &place.root(),
        tree: &tree,
        index: None,
        defects: Vec::new(),
        only: None,
    };
    let findings = super::survey(&survey, &stop).unwrap();
    assert_eq!(
        lines(&findings),
        ["unreadable sessions/20240603_crawler/context: permission denied"]
    );
}

#[test]
fn interruption_ends_it() {
    let place = home();
    place.session("20240603_crawler", 1);
    let root = Dir::open(place.root()).unwrap();
    let stop = Stop::new();
    let tree = disk::walk(&root, &|_, _| false, &stop).unwrap();
    stop.raise();
    let survey = Survey {
        root: &root,
        root_path: &place.root(),
        tree: &tree,
        index: None,
        defects: Vec::new(),
        only: None,
    };
    let error = super::survey(&survey, &stop).unwrap_err();
    assert_eq!(error.kind(), crate::base::Kind::Interrupted);
}

#[test]
fn names_of_any_bytes_and_paths_of_any_length() {
    let place = home();
    let odd = Path::new(OsStr::from_bytes(b"sessions/2024\xff"));
    place.put(odd.join("session.json"), "{");
    place.put(odd.join("artifacts/a.json"), "{\"");
    // 20 folders of 250 bytes: longer than PATH_MAX, so it is made from within.
    let mut at = Dir::open(place.root().join("sessions")).unwrap();
    let name = "d".repeat(250);
    at.make(OsStr::new("20240603_deep")).unwrap();
    at = at.open_beneath(Path::new("20240603_deep")).unwrap();
    for _ in 0..20 {
        at.make(OsStr::new(&name)).unwrap();
        at = at.open_beneath(Path::new(&name)).unwrap();
    }
    at.symlink(b"nowhere", OsStr::new("link")).unwrap();
    let findings = place.findings();
    let kinds: Vec<&str> = findings.iter().map(|f| f.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "torn-json",
            "torn-json",
            "no-session-json",
            "dangling-link",
            "bad-name"
        ]
    );
    assert!(findings[3].path.as_os_str().len() > 5000);
    assert_eq!(findings[4].path, odd);
    // The folder's own clean-up can not go so deep.
    let sessions = Dir::open(place.root()).unwrap();
    disk::remove_tree(&sessions, OsStr::new("sessions")).unwrap();
}
