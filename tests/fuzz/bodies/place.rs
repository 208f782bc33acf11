//! Where a body works: a folder of its own, and a home in it. `TMPDIR` says where that is; in memory it is faster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wbhome::base::{Context, FixedClock, NoProgress, Result, Stop};
use wbhome::home::{Home, LockedHome, Trust};

/// A pack of a small session, as `wbhome archive` has made it.
pub const SOUND: &[u8] = include_bytes!("sound.tar.zst");

/// A folder that is gone when this is dropped, and a clock that stands at 2024-06-15T12:00:00Z.
pub struct Place {
    folder: tempfile::TempDir,
    clock: FixedClock,
    stop: Stop,
}

impl Place {
    pub fn new() -> Place {
        let now = jiff::Timestamp::from_second(1_718_452_800).expect("a moment");
        Place {
            folder: tempfile::tempdir().expect("a folder"),
            clock: FixedClock::new(now),
            stop: Stop::new(),
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            clock: &self.clock,
            progress: &NoProgress,
            stop: &self.stop,
        }
    }

    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    pub fn root(&self) -> PathBuf {
        // By its real path: a home is compared with the links to it.
        self.folder.path().canonicalize().expect("it is there")
    }

    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.root().join(rel)
    }

    /// A file, written with the folders above it.
    pub fn put(&self, rel: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(rel);
        let parent = path.parent().expect("it is below the folder");
        std::fs::create_dir_all(parent).expect("a folder");
        std::fs::write(&path, content).expect("it is written");
        path
    }

    /// A home of which nothing but its mark is there.
    pub fn bare_home(&self) -> Home {
        let mark = r#"{"format": 1, "id": "0f", "created": "2024-06-15T12:00:00Z"}"#;
        self.put("主页/.wbhome/home.json", mark);
        Home::open(self.path("主页"), Trust::Named).expect("a home")
    }

    /// A new home in it.
    pub fn home(&self) -> Home {
        let root = self.path("主页");
        wbhome::home::init(&root, &self.context()).expect("a home");
        Home::open(root, Trust::Named).expect("a home")
    }

    pub fn locked(&self, home: &Home) -> Result<LockedHome> {
        home.lock(Duration::ZERO, "test", &self.context())
    }

    /// Every name below a folder of it, which may be missing; of a file what it holds, of a link where it points.
    pub fn tree(&self, rel: impl AsRef<Path>) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut all = BTreeMap::new();
        let mut open = vec![self.path(rel)];
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("a name").path();
                let kind = path.symlink_metadata().expect("it is there").file_type();
                let held = if kind.is_dir() {
                    open.push(path.clone());
                    None
                } else if kind.is_symlink() {
                    let target = path.read_link().expect("a link");
                    Some(target.into_os_string().into_encoded_bytes())
                } else {
                    Some(std::fs::read(&path).expect("a file"))
                };
                all.insert(path, held);
            }
        }
        all
    }
}

/// The pieces of an input that holds several things: they stand between lines of four dashes.
pub fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(input);
    std::iter::from_fn(move || {
        let text = rest?;
        let line = b"\n----\n";
        match text.windows(line.len()).position(|window| window == line) {
            Some(at) => {
                rest = Some(&text[at + line.len()..]);
                Some(&text[..at])
            }
            None => rest.take(),
        }
    })
}
