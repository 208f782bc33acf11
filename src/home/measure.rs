//! What a session holds, counted without opening a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::{Dir, FileKind, Meta, Stamp};

/// Files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Regular files.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What a session holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Files `context/turn_<digits>.json`.
    pub turns: u64,
    /// Below `context/`.
    pub context: Tally,
    /// Below `memory/`.
    pub memory: Tally,
    /// Below `artifacts/`.
    pub artifacts: Tally,
    /// Below `logs/`.
    pub logs: Tally,
    /// Anywhere else.
    pub other: Tally,
    /// When a file was last written; of a session without files, when its folder was.
    pub last_activity: Option<jiff::Timestamp>,
    /// Folders that could not be read, whose files are not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Counts {
    /// Counts one regular file; `rel` is its path below the session.
    pub fn add(&mut self, rel: &Path, meta: &Meta) {
        self.add_file(rel, meta.size, meta.mtime);
    }

    /// Like [`Counts::add`], of a file that lies on no disk.
    pub fn add_file(&mut self, rel: &Path, size: u64, mtime: Stamp) {
        let mut names = rel.iter();
        let (kind, name) = (names.next().unwrap_or_default(), names.next());
        let tally = match (kind.to_str(), name) {
            (Some("context"), Some(_)) => &mut self.context,
            (Some("memory"), Some(_)) => &mut self.memory,
            (Some("artifacts"), Some(_)) => &mut self.artifacts,
            (Some("logs"), Some(_)) => &mut self.logs,
            _ => &mut self.other,
        };
        tally.add(size);
        let turn = name.and_then(turn_number);
        if kind == "context" && names.next().is_none() && turn.is_some() {
            self.turns += 1;
        }
        self.note(mtime);
    }

    /// Everything together.
    pub fn total(&self) -> Tally {
        let all = [
            self.context,
            self.memory,
            self.artifacts,
            self.logs,
            self.other,
        ];
        all.iter().fold(Tally::default(), |sum, t| Tally {
            files: sum.files + t.files,
            bytes: sum.bytes.saturating_add(t.bytes),
        })
    }

    fn note(&mut self, mtime: Stamp) {
        self.last_activity = self.last_activity.max(Some(mtime.timestamp()));
    }
}

/// The number in the name of a turn, `turn_<digits>.json`; the largest there is for one that has no end.
pub fn turn_number(name: &OsStr) -> Option<u64> {
    let digits = name
        .to_str()?
        .strip_prefix("turn_")?
        .strip_suffix(".json")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Counts what the session `name` of the open folder `sessions` holds. What can not be read is counted as
/// unreadable; what vanishes meanwhile was never there.
pub fn measure(sessions: &Dir, name: &OsStr) -> Counts {
    let mut counts = Counts::default();
    let mut own_time = None;
    let mut todo = vec![PathBuf::new()];
    while let Some(rel) = todo.pop() {
        let folder = match sessions.open_beneath(&Path::new(name).join(&rel)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => {
                counts.unreadable += 1;
                continue;
            }
        };
        if rel.as_os_str().is_empty() {
            own_time = folder.meta().ok().map(|meta| meta.mtime);
        }
        if measure_folder(&folder, &rel, &mut counts, &mut todo).is_err() {
            counts.unreadable += 1;
        }
    }
    if counts.last_activity.is_none() {
        counts.last_activity = own_time.map(Stamp::timestamp);
    }
    counts
}

fn measure_folder(
    folder: &Dir,
    rel: &Path,
    counts: &mut Counts,
    todo: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for (name, kind) in folder.names()? {
        let path = rel.join(&name);
        match kind {
            // A folder's own size and time say nothing: no need to look at it.
            FileKind::Folder => todo.push(path),
            FileKind::File | FileKind::Unknown => match folder.find(&name)? {
                Some(meta) if meta.kind == FileKind::File => counts.add(&path, &meta),
                Some(meta) if meta.kind == FileKind::Folder => todo.push(path),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk;
    use crate::home::testing;

    #[test]
    fn by_kind_with_turns_and_the_newest_time() {
        let place = testing::home();
        let base = "sessions/20240603_数据";
        for (rel, content) in [
            ("session.json", "{}"),
            ("context/turn_001.json", "12345"),
            ("context/turn_1000.json", "1"),
            ("context/turn_002 (1).json", "1"),
            ("context/old/turn_003.json", "1"),
            ("memory/a/b.json", "12"),
            ("artifacts/报告.md", "123"),
            ("logs/agent_run.log", "1234"),
        ] {
            place.put(&format!("{base}/{rel}"), content);
        }
        let root = place.home.root().join(base);
        disk::symlink(Path::new("/etc"), &root.join("artifacts/latest")).unwrap();
        let context = Dir::open(root.join("context")).unwrap();
        let (seconds, nanos) = (4_000_000_000, 5);
        let stamp = Stamp { seconds, nanos };
        context
            .set_time_of(OsStr::new("turn_001.json"), stamp)
            .unwrap();

        let sessions = Dir::open(place.home.sessions()).unwrap();
        let counts = measure(&sessions, OsStr::new("20240603_数据"));
        assert_eq!(counts.turns, 2);
        let of = |t: Tally| (t.files, t.bytes);
        assert_eq!(of(counts.context), (4, 8));
        assert_eq!((of(counts.memory), of(counts.artifacts)), ((1, 2), (1, 3)));
        assert_eq!((of(counts.logs), of(counts.other)), ((1, 4), (1, 2)));
        assert_eq!(counts.total().files, 8);
        assert_eq!(counts.last_activity, Some(stamp.timestamp()));
        assert_eq!(counts.unreadable, 0);

        disk::create_private_folder(&place.home.sessions().join("empty/context")).unwrap();
        let empty = measure(&sessions, OsStr::new("empty"));
        assert!(empty.last_activity.is_some());
        assert_eq!(empty.total(), Tally::default());
        assert_eq!(measure(&sessions, OsStr::new("gone")), Counts::default());
    }
}
