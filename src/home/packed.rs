//! What a home wants to know of a pack without unpacking it: what it holds, and small records in it.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use super::record::LIMIT;
use super::{Counts, Record, SessionId};
use crate::base::{Context, Error, Result};
use crate::disk::{FileKind, Stamp};
use crate::pack::{self, Member, MemberKind, Pack};

/// That what stands in `archive/` under the name of a session's pack is none.
pub fn no_pack(id: &SessionId, kind: FileKind) -> String {
    match kind {
        FileKind::Symlink => format!("archive/{id}.tar.zst is a link, and is not followed"),
        _ => format!(
            "archive/{id}.tar.zst is {}, and no archive",
            kind.described()
        ),
    }
}

/// What the members of a pack are, counted as [`super::measure`] counts a folder: each name of a file by itself.
pub fn counts_of(members: &[Member]) -> Counts {
    let sizes: HashMap<&Path, u64> = members.iter().map(|m| (&*m.path, m.size)).collect();
    let mut counts = Counts::default();
    let mut own_time = None;
    for member in members {
        match member.kind {
            MemberKind::File => counts.add_file(&member.path, member.size, member.mtime),
            MemberKind::HardLink => {
                let first = member.link.as_deref().and_then(|link| sizes.get(link));
                counts.add_file(&member.path, first.copied().unwrap_or(0), member.mtime);
            }
            MemberKind::Folder if member.path.as_os_str().is_empty() => {
                own_time = Some(member.mtime);
            }
            MemberKind::Folder | MemberKind::Symlink => {}
        }
    }
    if counts.last_activity.is_none() {
        counts.last_activity = own_time.map(Stamp::timestamp);
    }
    counts
}

/// The beginning of a file in a pack, at most so many bytes; `None` when there is no such file.
///
/// # Errors
/// What can not be read, or is damaged.
pub fn read_beginning(
    pack: &Pack,
    path: &Path,
    limit: u64,
    context: &Context,
) -> Result<Option<Vec<u8>>> {
    let mut beginning = Beginning {
        kept: Vec::new(),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let member = pack::read_member(pack, path, &mut beginning, context)?;
    let is_file = member.is_some_and(|m| matches!(m.kind, MemberKind::File | MemberKind::HardLink));
    Ok(is_file.then_some(beginning.kept))
}

/// The `session.json` in a pack; `None` when it has none.
///
/// # Errors
/// As [`Record::read`].
pub fn record_of(pack: &Pack, context: &Context) -> Result<Option<Record>> {
    let name = Path::new("session.json");
    match read_beginning(pack, name, LIMIT + 1, context)? {
        Some(content) if content.len() as u64 > LIMIT => {
            Err(Error::failed("is too large to be read:").at(name))
        }
        Some(content) => Record::parse(&content).map(Some),
        None => Ok(None),
    }
}

/// Keeps the beginning of what is written, and lets the rest go by: a pack may claim any length.
struct Beginning {
    kept: Vec<u8>,
    limit: usize,
}

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.limit.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(path: &str, kind: MemberKind, size: u64, second: i64) -> Member {
        let (seconds, nanos) = (second, 0);
        Member {
            path: Path::new(path).to_path_buf().into(),
            kind,
            mode: 0o600,
            uid: 0,
            gid: 0,
            mtime: Stamp { seconds, nanos },
            size,
            blake3: None,
            link: None,
            xattrs: Default::default(),
            frame: 0,
            at: 0,
        }
    }

    #[test]
    fn members_are_counted_as_a_folder_is() {
        let mut twin = member("artifacts/b", MemberKind::HardLink, 0, 9);
        twin.link = Some(Path::new("artifacts/a").to_path_buf().into());
        let counts = counts_of(&[
            member("", MemberKind::Folder, 0, 99),
            member("context/turn_001.json", MemberKind::File, 7, 5),
            member("artifacts", MemberKind::Folder, 0, 99),
            member("artifacts/a", MemberKind::File, 3, 9),
            twin,
            member("artifacts/l", MemberKind::Symlink, 0, 99),
        ]);
        assert_eq!(counts.turns, 1);
        assert_eq!((counts.artifacts.files, counts.artifacts.bytes), (2, 6));
        assert_eq!(counts.total().files, 3);
        assert_eq!(counts.last_activity.map(|t| t.as_second()), Some(9));
        let empty = counts_of(&[member("", MemberKind::Folder, 0, 99)]);
        assert_eq!(empty.last_activity.map(|t| t.as_second()), Some(99));
    }

    #[test]
    fn what_is_too_long_goes_by() {
        let mut beginning = Beginning {
            kept: Vec::new(),
            limit: 4,
        };
        for part in ["abc", "def", ""] {
            beginning.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(beginning.kept, b"abcd");
    }
}
