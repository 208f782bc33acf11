//! What lies outside of a home and is nobody's business: every file says who opened it, and nothing may have changed.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::{Entry, differences, tree};

/// Stands in every file outside, and nowhere else.
pub const CANARY: &str = "canary-金丝雀-7f3a";

/// A folder that is laid out like a home, a session and a repository, so that whoever follows a link into it finds what
/// they look for.
pub struct Outside {
    pub root: PathBuf,
    before: BTreeMap<Vec<u8>, (Entry, u64)>,
    eye: OwnedFd,
    watched: BTreeMap<i32, PathBuf>,
}

fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

impl Outside {
    /// Lays it out. From [`Outside::watch`] on it is watched.
    pub fn new(root: PathBuf) -> Outside {
        let session = |at: &str| {
            let at = root.join(at);
            let record = format!(
                r#"{{"id": "20240601_{CANARY}", "title": "{CANARY}", "created_at": "2024-06-01T08:00:00Z"}}"#
            );
            put(at.join("session.json"), &record);
            let turn = format!(r#"{{"turn": 1, "text": "{CANARY} /old/place"}}"#);
            put(at.join("context/turn_001.json"), &turn);
            put(at.join("context/turn_001 (1).json"), "{");
            put(
                at.join("memory/notes.md"),
                &format!("{CANARY} in /old/place"),
            );
            put(at.join("artifacts/run.sh"), CANARY);
            put(at.join("logs/run.log"), &format!("{CANARY}\n").repeat(50));
            put(
                at.join("logs/run.log-20240601"),
                &format!("{CANARY}\n").repeat(50),
            );
        };
        session("session");
        session("sessions/20240603_crawler");
        session("sessions/20240601_canary");
        put(root.join("file"), CANARY);
        put(
            root.join("index.json"),
            &format!(r#"[{{"id": "{CANARY}", "status": "active"}}]"#),
        );
        put(
            root.join("act/note.json"),
            &format!(r#"{{"why": "{CANARY}", "was": []}}"#),
        );
        put(root.join("old/stale.json"), CANARY);
        let path = root.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        let eye = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        Outside {
            root,
            before: BTreeMap::new(),
            eye,
            watched: BTreeMap::new(),
        }
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.root.join(rel)
    }

    /// Takes down how it is, and watches it from now on.
    pub fn watch(&mut self) {
        self.before = state(&self.root);
        for entry in walkdir::WalkDir::new(&self.root) {
            let entry = entry.unwrap();
            if entry.file_type().is_dir() {
                let flags =
                    WatchFlags::ALL_EVENTS.difference(WatchFlags::CLOSE | WatchFlags::MOVE_SELF);
                let number = inotify::add_watch(&self.eye, entry.path(), flags).unwrap();
                self.watched.insert(number, entry.into_path());
            }
        }
        // What this has opened itself.
        self.seen();
    }

    /// What was opened, read or changed by its name here since the last call, a line each.
    pub fn seen(&mut self) -> Vec<String> {
        let mut room = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(&self.eye, &mut room);
        let mut seen = Vec::new();
        while let Ok(event) = reader.next() {
            let folder = self.watched.get(&event.wd());
            let mut path = folder.cloned().unwrap_or_default();
            if let Some(name) = event.file_name() {
                path.push(name.to_str().unwrap());
            }
            let what = event.events().difference(ReadFlags::ISDIR);
            let line = format!("{what:?} {}", path.display());
            if seen.last() != Some(&line) {
                seen.push(line);
            }
        }
        seen
    }

    /// How it differs from what it was, a line each.
    pub fn changes(&mut self) -> String {
        let now = state(&self.root);
        // What was looked at here is not to be told.
        self.seen();
        let entries = |of: &BTreeMap<Vec<u8>, (Entry, u64)>| -> BTreeMap<Vec<u8>, Entry> {
            let inode = |(name, (entry, inode)): (&Vec<u8>, &(Entry, u64))| {
                let content = format!("{} inode {inode}", entry.content);
                // More names of a file are no change of it.
                let entry = Entry {
                    content,
                    links: 0,
                    ..entry.clone()
                };
                (name.clone(), entry)
            };
            of.iter().map(inode).collect()
        };
        differences(&entries(&self.before), &entries(&now))
    }
}

/// Each entry with its inode.
fn state(root: &Path) -> BTreeMap<Vec<u8>, (Entry, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let with_inode = |(name, entry): (Vec<u8>, Entry)| {
        let path = match name.is_empty() {
            true => root.to_owned(),
            false => root.join(std::ffi::OsStr::from_bytes(&name)),
        };
        let inode = fs::symlink_metadata(path).unwrap().ino();
        (name, (entry, inode))
    };
    tree(root).into_iter().map(with_inode).collect()
}
