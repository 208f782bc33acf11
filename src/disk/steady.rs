//! Reading a file that somebody may be writing: what comes back was one state of it, or the beginning of one.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Dir, FileKind, Meta};

/// So often a file is read before it is called restless.
const ATTEMPTS: u32 = 7;

/// What a file held.
#[derive(Debug)]
pub enum Steady {
    /// The whole of it, as one state.
    Whole(Content),
    /// It is being appended to: the content is a beginning of it, which two reads have found.
    Growing(Content),
    /// It is larger than the limit.
    TooLarge(Meta),
    /// Each read has found another content.
    Restless,
    /// It is no regular file any more.
    Other(Meta),
}

/// Bytes, and what the file was when they were read.
#[derive(Debug)]
pub struct Content {
    /// What it held.
    pub bytes: Vec<u8>,
    /// Its state before that.
    pub meta: Meta,
    /// Whether it was changed so shortly before that a change after it may leave the same times.
    pub fresh: bool,
}

/// Reads a file of at most `limit` bytes. A file that changes meanwhile is read again, unless it only grew.
///
/// # Errors
/// When it can not be opened or read.
pub fn read_steady(dir: &Dir, name: &OsStr, limit: u64) -> io::Result<Steady> {
    let mut before: Option<Content> = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 1 {
            std::thread::sleep(Duration::from_millis(1 << attempt));
        }
        let file = dir.open_file(name)?;
        let meta = Meta::of(&file)?;
        if meta.kind != FileKind::File {
            return Ok(Steady::Other(meta));
        }
        if meta.size > limit {
            return Ok(Steady::TooLarge(meta));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
        (&file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Ok(Steady::TooLarge(Meta::of(&file)?));
        }
        let same = meta.same_state(&Meta::of(&file)?) && bytes.len() as u64 == meta.size;
        let content = Content {
            fresh: is_fresh(&meta),
            bytes,
            meta,
        };
        if same {
            return Ok(Steady::Whole(content));
        }
        if let Some(before) = before.take()
            && before.meta.identity() == content.meta.identity()
            && content.bytes.starts_with(&before.bytes)
        {
            return Ok(Steady::Growing(before));
        }
        before = Some(content);
    }
    Ok(Steady::Restless)
}

/// Whether one more change could leave the same times: the system's clock for files ticks a few milliseconds wide,
/// and on some filesystems two seconds.
pub fn is_fresh(meta: &Meta) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let tick = match meta.mtime.nanos {
        0 => Duration::from_secs(2),
        _ => Duration::from_millis(20),
    };
    let changed =
        |stamp: super::Stamp| Duration::new(u64::try_from(stamp.seconds).unwrap_or(0), stamp.nanos);
    // A time that lies ahead may come again as well.
    changed(meta.mtime) + tick >= now && changed(meta.ctime) + tick >= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn place() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        (folder, dir)
    }

    #[test]
    fn a_resting_file_is_read_whole_and_a_large_one_is_not_read() {
        let (folder, dir) = place();
        std::fs::write(folder.path().join("a"), b"12345").unwrap();
        let name = OsStr::new("a");
        let Steady::Whole(content) = read_steady(&dir, name, 5).unwrap() else {
            panic!("not whole");
        };
        assert_eq!(
            (content.bytes.as_slice(), content.meta.size),
            (&b"12345"[..], 5)
        );
        assert!(content.fresh);
        assert!(matches!(
            read_steady(&dir, name, 4).unwrap(),
            Steady::TooLarge(_)
        ));
        assert!(matches!(
            read_steady(&dir, OsStr::new("."), 4).unwrap(),
            Steady::Other(_)
        ));
        std::thread::sleep(Duration::from_millis(40));
        let Steady::Whole(content) = read_steady(&dir, name, 5).unwrap() else {
            panic!("not whole");
        };
        assert!(!content.fresh);
    }

    fn while_writing(write: impl Fn(&std::fs::File, u64) + Sync, look: impl Fn(&Steady)) {
        let (folder, dir) = place();
        let path = folder.path().join("turn");
        std::fs::write(&path, vec![b'0'; 2 << 20]).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    write(&file, n);
                }
            });
            for _ in 0..12 {
                look(&read_steady(&dir, OsStr::new("turn"), 1 << 30).unwrap());
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_growing_file_gives_a_beginning_of_it() {
        while_writing(
            |mut file, n| {
                file.seek(io::SeekFrom::End(0)).unwrap();
                file.write_all(format!("line {n}\n").as_bytes()).unwrap();
            },
            |steady| match steady {
                Steady::Whole(content) | Steady::Growing(content) => {
                    assert!(content.bytes.len() >= 2 << 20);
                    assert!(content.bytes[..2 << 20].iter().all(|b| *b == b'0'));
                }
                other => panic!("{other:?}"),
            },
        );
    }

    /// Overwritten from its start again and again: two states in one would be torn.
    #[test]
    fn a_file_written_over_in_place_is_never_a_mixture_that_is_called_growing() {
        while_writing(
            |mut file, n| {
                file.rewind().unwrap();
                let byte = b'a' + (n % 26) as u8;
                file.write_all(&vec![byte; 2 << 20]).unwrap();
            },
            |steady| {
                if let Steady::Growing(content) = steady {
                    let first = content.bytes[0];
                    assert!(content.bytes.iter().all(|b| *b == first));
                }
            },
        );
    }
}
