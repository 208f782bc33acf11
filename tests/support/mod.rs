//! What every integration test stands on: a fresh folder, the built program run in an empty environment with a
//! clock that stands still, and a picture of a tree that two runs can be compared by.

#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test binary uses a part of this, lays out its own folders and says what went wrong"
)]

pub mod cold;
pub mod corpus;
pub mod disks;
pub mod git;
pub mod hostile;
pub mod kill;
pub mod lines;
pub mod lived_in;
pub mod mount;
pub mod moving;
pub mod naive;
pub mod outside;
pub mod packed;
pub mod relay;
pub mod relayed;
pub mod state;
pub mod terminal;
pub mod verbs;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The moment at which every test runs.
pub const NOW: &str = "2024-06-15T12:00:00Z";

/// A fresh folder with a user's home in it.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place {
            folder: tempfile::Builder::new()
                .prefix("wbhome-test-")
                .tempdir()
                .unwrap(),
        };
        std::fs::create_dir(place.user_home()).unwrap();
        place
    }

    /// A fresh folder below this one, with a user's home in it that is a home.
    pub fn on(folder: &Path) -> Place {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("wbhome-test-").tempdir_in(folder).unwrap();
        let place = Place { folder };
        std::fs::create_dir(place.user_home()).unwrap();
        place.ok(["init", "-q"]);
        place
    }

    /// A fresh folder whose path is as long everywhere, for what is folded at so many columns.
    pub fn of_usual_length() -> Place {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("wbhome-test-").tempdir_in("/tmp").unwrap();
        let place = Place { folder };
        std::fs::create_dir(place.user_home()).unwrap();
        place
    }

    /// The folder, without links.
    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// `$HOME` of the program.
    pub fn user_home(&self) -> PathBuf {
        self.root().join("me")
    }

    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.root().join(rel)
    }

    /// Writes a file, with the folders above it.
    pub fn put(&self, rel: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, rel: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(rel);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn text(&self, rel: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(rel)).unwrap()
    }

    /// The program, to be run in this folder with nothing in its environment but what it must have.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wbhome"));
        command
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.user_home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .env("WBHOME_NOW", NOW)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        Ran::of(self.command().args(args).output().unwrap())
    }

    /// Runs the program, which must succeed, and gives its standard output.
    pub fn ok<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    /// Runs the program with `--json`, whatever its exit code, and parses the one document on its standard output.
    pub fn json<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> serde_json::Value {
        let output = self.command().args(args).arg("--json").output().unwrap();
        let ran = Ran::of(output);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
    }
}

/// What a run printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one document on standard output.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Must have ended with this exit code.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Ran {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Standard error must say all of this.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Ran {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {self:#?}");
        }
        self
    }

    /// Exit code, standard output and standard error in one text, with the test's folder as `[ROOT]`: for a snapshot.
    pub fn shown(&self, place: &Place) -> String {
        let root = place.root().to_str().unwrap().to_owned();
        let clean = |text: &str| text.replace(&root, "[ROOT]");
        let code = self.code.map_or("signal".to_owned(), |c| c.to_string());
        format!(
            "exit: {code}\n--- stdout\n{}--- stderr\n{}",
            clean(&self.stdout),
            clean(&self.stderr)
        )
    }
}

/// One entry of a tree: everything that a migration must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: char,
    pub mode: u32,
    pub mtime: (i64, i64),
    pub size: u64,
    pub links: u64,
    /// BLAKE3 of the content, or the target of a link.
    pub content: String,
}

/// Everything below a folder, by path in bytes; the folder itself as the empty path.
pub fn tree(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).follow_links(false) {
        let entry = entry.unwrap();
        let meta = std::fs::symlink_metadata(entry.path()).unwrap();
        let kind = match meta.file_type() {
            t if t.is_dir() => 'd',
            t if t.is_symlink() => 'l',
            t if t.is_file() => 'f',
            _ => '?',
        };
        let content = match kind {
            'f' => digest(entry.path()),
            'l' => String::from_utf8_lossy(
                std::fs::read_link(entry.path())
                    .unwrap()
                    .as_os_str()
                    .as_bytes(),
            )
            .into_owned(),
            _ => String::new(),
        };
        let rel = entry.path().strip_prefix(root).unwrap();
        found.insert(
            rel.as_os_str().as_bytes().to_vec(),
            Entry {
                kind,
                mode: meta.permissions().mode() & 0o7777,
                mtime: (meta.mtime(), meta.mtime_nsec()),
                size: if kind == 'd' { 0 } else { meta.len() },
                links: if kind == 'd' { 0 } else { meta.nlink() },
                content,
            },
        );
    }
    found
}

/// BLAKE3 of a file, in fixed memory.
pub fn digest(path: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    hasher.update_reader(file).unwrap();
    hasher.finalize().to_hex().to_string()
}

/// The differences of two trees, a line each, for a message that can be read.
pub fn differences(one: &BTreeMap<Vec<u8>, Entry>, other: &BTreeMap<Vec<u8>, Entry>) -> String {
    let mut out = String::new();
    let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for name in names {
        let (a, b) = (one.get(name), other.get(name));
        if a != b {
            let _ = writeln!(out, "{}\n  {a:?}\n  {b:?}", String::from_utf8_lossy(name));
        }
    }
    out
}

/// Whether a tool is there; says so on standard error when it is not, so that a test that has to skip is heard.
pub fn has_tool(name: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|p| p.join(name).exists());
    if !found {
        eprintln!("SKIPPED: `{name}` is not installed");
    }
    found
}

/// Whether the tests run as root; says so on standard error when they do not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED: needs root");
    }
    root
}

pub mod home;
