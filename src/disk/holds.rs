//! Whether one file or folder holds all that another does.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Dir, FileKind};
use crate::base::Stop;

/// Whether nothing is in a copy that is not in its original: of a file, its bytes are a beginning of the
/// original's; a link has the same target; of a folder, each file and link is in the original folder too, and
/// equal there. FIFOs, sockets and devices are held by nothing.
///
/// # Errors
/// What can not be read, and interruption.
pub fn holds_all(original: (&Dir, &OsStr), copy: (&Dir, &OsStr), stop: &Stop) -> io::Result<bool> {
    let (Some(first), Some(second)) = (original.0.find(original.1)?, copy.0.find(copy.1)?) else {
        return Ok(false);
    };
    match (first.kind, second.kind) {
        (FileKind::Folder, FileKind::Folder) if first.identity() != second.identity() => {
            folder_holds_all(original, copy, stop)
        }
        _ => Ok(leaf_holds_all(original, copy, stop)?.is_some()),
    }
}

/// `Some(whether they are equal)` when the original begins with all of the copy.
fn leaf_holds_all(
    original: (&Dir, &OsStr),
    copy: (&Dir, &OsStr),
    stop: &Stop,
) -> io::Result<Option<bool>> {
    let (first, second) = (original.0.stat(original.1)?, copy.0.stat(copy.1)?);
    match (first.kind, second.kind) {
        (FileKind::Symlink, FileKind::Symlink) => {
            let same = original.0.read_link(original.1)? == copy.0.read_link(copy.1)?;
            Ok(same.then_some(true))
        }
        (FileKind::File, FileKind::File) if first.identity() == second.identity() => Ok(Some(true)),
        (FileKind::File, FileKind::File) if second.size <= first.size => {
            let mut long = original.0.open_file(original.1)?;
            let mut short = copy.0.open_file(copy.1)?;
            begins_with(&mut long, &mut short, stop)
        }
        _ => Ok(None),
    }
}

/// `None` when the longer one does not begin with the shorter; else whether both end together.
fn begins_with(long: &mut dyn Read, short: &mut dyn Read, stop: &Stop) -> io::Result<Option<bool>> {
    const CHUNK: usize = 256 << 10;
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        stop.check().map_err(|_| io::Error::other("interrupted"))?;
        let wanted = fill(short, &mut right)?;
        let got = fill(long, &mut left)?;
        if got < wanted || left[..wanted] != right[..wanted] {
            return Ok(None);
        }
        if wanted < CHUNK {
            return Ok(Some(got == wanted));
        }
    }
}

fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

fn folder_holds_all(
    original: (&Dir, &OsStr),
    copy: (&Dir, &OsStr),
    stop: &Stop,
) -> io::Result<bool> {
    let first = original.0.open_beneath(Path::new(original.1))?;
    let second = copy.0.open_beneath(Path::new(copy.1))?;
    // An explicit stack: a tree may be deeper than a thread's stack.
    let mut todo = vec![PathBuf::new()];
    while let Some(rel) = todo.pop() {
        let here = second.open_beneath(&rel)?;
        let beside = match first.open_beneath(&rel) {
            Ok(dir) => Some(dir),
            // A folder that only the copy has may still hold no file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
            Err(error) => return Err(error),
        };
        for (name, _) in here.names()? {
            if here.stat(&name)?.kind == FileKind::Folder {
                todo.push(rel.join(&name));
                continue;
            }
            let Some(beside) = &beside else {
                return Ok(false);
            };
            if beside.find(&name)?.is_none()
                || leaf_holds_all((beside, &name), (&here, &name), stop)? != Some(true)
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay(folder: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn nothing_of_the_copy_is_missing_in_the_original() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open(place.path()).unwrap();
        lay(
            place.path(),
            &[
                ("日志.log", "一\n二\n"),
                ("same", "一\n二\n"),
                ("shorter", "一\n"),
                ("longer", "一\n二\n三\n"),
                ("empty", ""),
                ("a/x/1", "1"),
                ("a/x/2", "2"),
                ("fewer/x/1", "1"),
                ("more/x/3", "3"),
                ("other/x/1", "I"),
                ("short/x/1", ""),
            ],
        );
        std::fs::create_dir_all(place.path().join("fewer/only folders")).unwrap();
        let holds = |original: &str, copy: &str| {
            holds_all(
                (&dir, OsStr::new(original)),
                (&dir, OsStr::new(copy)),
                &Stop::new(),
            )
            .unwrap()
        };
        for copy in ["same", "shorter", "empty"] {
            assert!(holds("日志.log", copy), "{copy}");
        }
        for copy in ["longer", "a", "gone"] {
            assert!(!holds("日志.log", copy), "{copy}");
        }
        assert!(holds("a", "fewer"));
        for copy in ["more", "other", "short"] {
            assert!(!holds("a", copy), "{copy}");
        }
        assert!(!holds("a", "a"), "a folder is no copy of itself");
    }
}
