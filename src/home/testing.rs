//! A home in a temporary folder, for the unit tests of every room that works on one.

use std::path::PathBuf;
use std::time::Duration;

use super::{Home, LockedHome, Trust};
use crate::base::{Context, FixedClock, NoProgress, Stop};
use crate::disk;

static STOP: std::sync::LazyLock<Stop> = std::sync::LazyLock::new(Stop::default);

pub(crate) struct Place {
    _folder: tempfile::TempDir,
    pub home: Home,
    pub clock: FixedClock,
}

/// A new home at 2024-06-15T12:00:00Z.
pub(crate) fn home() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
    let root = disk::real_path(folder.path()).unwrap().join("主页");
    super::init(&root, &context(&clock)).unwrap();
    let home = Home::open(root, Trust::Named).unwrap();
    Place {
        _folder: folder,
        home,
        clock,
    }
}

pub(crate) fn context(clock: &FixedClock) -> Context<'_> {
    Context {
        clock,
        progress: &NoProgress,
        stop: &STOP,
    }
}

impl Place {
    pub fn context(&self) -> Context<'_> {
        context(&self.clock)
    }

    pub fn locked(&self, command: &str) -> LockedHome {
        self.home
            .lock(Duration::from_secs(5), command, &self.context())
            .unwrap()
    }

    /// Writes a file below the home, over one that is there, and makes the folders above it.
    pub fn put(&self, rel: &str, content: &str) -> PathBuf {
        let path = self.home.root().join(rel);
        disk::create_private_folder(path.parent().unwrap()).unwrap();
        disk::remove_file(&path).unwrap();
        disk::write_new(&path, content.as_bytes(), 0o644).unwrap();
        path
    }

    pub fn get(&self, rel: &str) -> Option<String> {
        let content = disk::read(&self.home.root().join(rel)).unwrap()?;
        Some(String::from_utf8(content).unwrap())
    }
}
