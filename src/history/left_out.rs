//! What the history leaves out, and why: remembered from commit to commit, so that nothing large or binary is read
//! again, and told to git in `info/exclude`, so that `git status` is clean.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::repository::{DOT_GIT, OWN, Repository};
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{LockedHome, trash};

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It has a NUL byte in its first 8,000, which is git's own test.
    Binary,
    /// It is larger than `[git] max_file`.
    TooLarge,
    /// git takes it into no repository: a name such as `.GIT`, a link called `.gitmodules`, what `git fsck` calls an
    /// error.
    Refused,
    /// A socket, FIFO or device.
    Special,
}

impl Why {
    /// For a person.
    pub fn described(self) -> &'static str {
        match self {
            Why::Binary => "binary",
            Why::TooLarge => "larger than [git] max_file",
            Why::Refused => "no name or content for a repository",
            Why::Special => "no file",
        }
    }
}

/// What is remembered of something that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Left {
    pub why: Why,
    pub size: u64,
    ino: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl Left {
    pub fn new(why: Why, meta: &Meta) -> Self {
        Left {
            why,
            size: meta.size,
            ino: meta.ino,
            mtime: (meta.mtime.seconds, meta.mtime.nanos),
            ctime: (meta.ctime.seconds, meta.ctime.nanos),
        }
    }

    /// Whether a binary is what it was, so that it need not be read.
    pub fn fits(&self, meta: &Meta) -> bool {
        *self == Left::new(self.why, meta)
    }
}

/// By path below the home, as bytes; on the disk the bytes stand as hexadecimal where they are no UTF-8.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LeftOut(pub BTreeMap<Vec<u8>, Left>);

#[derive(Serialize, Deserialize)]
struct Line {
    path: crate::base::wire::ExactPath,
    #[serde(flatten)]
    left: Left,
}

impl LeftOut {
    /// Reads what the last commit has left out; nothing when that is not known.
    pub fn read(repository: &Repository) -> LeftOut {
        let text = disk::read(&file(repository))
            .ok()
            .flatten()
            .unwrap_or_default();
        let lines: Vec<Line> = serde_json::from_slice(&text).unwrap_or_default();
        let pair = |line: Line| {
            use std::os::unix::ffi::OsStringExt;
            (line.path.0.into_os_string().into_vec(), line.left)
        };
        LeftOut(lines.into_iter().map(pair).collect())
    }

    /// Writes it where it differs from `before`, and the block in `info/exclude` with it. `nested` are folders with a
    /// `.git` of which nothing is committed.
    pub fn write(
        &self,
        repository: &Repository,
        before: &LeftOut,
        nested: &[Vec<u8>],
    ) -> Result<()> {
        let file = file(repository);
        if self != before || !disk::exists(&file) {
            use std::os::unix::ffi::OsStrExt;
            let line = |(path, left): (&Vec<u8>, &Left)| Line {
                path: crate::base::wire::ExactPath(std::ffi::OsStr::from_bytes(path).into()),
                left: left.clone(),
            };
            let lines: Vec<Line> = self.0.iter().map(line).collect();
            let text = serde_json::to_vec(&lines).map_err(|e| {
                Error::failed("the list of what is left out can not be written:")
                    .at(&file)
                    .because(e)
            })?;
            disk::create_private_folder(&repository.dir().join(OWN))?;
            disk::replace_any(&file, &text, 0o600)?;
        }
        self.write_exclude(repository, nested)
    }

    fn write_exclude(&self, repository: &Repository, nested: &[Vec<u8>]) -> Result<()> {
        let info = repository.git.commondir().join("info");
        let path = info.join("exclude");
        // A person may save the file meanwhile: then it is looked at again.
        for _ in 0..10 {
            let former = disk::read(&path)?;
            let mut text = without_block(former.as_deref().unwrap_or_default());
            let named = self.0.iter().filter(|(_, left)| left.why != Why::Special);
            let mut lines: Vec<Vec<u8>> = named.map(|(path, _)| pattern(path, b"")).collect();
            lines.extend(nested.iter().map(|path| pattern(path, b"/")));
            if !lines.is_empty() {
                if !text.is_empty() && !text.ends_with(b"\n") {
                    text.push(b'\n');
                }
                text.extend_from_slice(BEGIN);
                lines.iter().for_each(|line| text.extend_from_slice(line));
                text.extend_from_slice(END);
            }
            if text == former.as_deref().unwrap_or_default() {
                return Ok(());
            }
            disk::create_private_folder(&info)?;
            if let disk::Written::Done = disk::replace(&path, former.as_deref(), &text, 0o600)? {
                return Ok(());
            }
        }
        Err(Error::failed("is changed again and again:").at(&path))
    }
}

/// Puts into the trash what a write of `info/exclude` that was stopped has left under a temporary name: it may be all
/// there is of an edit by hand.
///
/// # Errors
/// What can not be looked at, or not be put there; then it is where it was.
pub(super) fn keep_edits(
    home: &LockedHome,
    repository: &Repository,
    context: &Context,
) -> Result<()> {
    let info = repository.git.commondir().join("info");
    let fail = |e| Error::io("can not open", &info, e);
    let is_left = |(name, _): &(OsString, FileKind)| disk::is_temporary(name);
    for (name, _) in disk::read_dir_names(&info)?.into_iter().filter(is_left) {
        let rel = Path::new(DOT_GIT).join("info").join(&name);
        let why = "a commit was stopped while it wrote this";
        let dir = Dir::open(&info).map_err(fail)?;
        trash::put_entry(home, &dir, &name, &rel, why, context)?;
    }
    Ok(())
}

fn file(repository: &Repository) -> std::path::PathBuf {
    repository.dir().join(OWN).join("left-out.json")
}

const BEGIN: &[u8] = b"# >>> left out by wbhome, written anew by each commit\n";
const END: &[u8] = b"# <<< left out by wbhome\n";

/// The lines of `info/exclude` that are a person's own.
pub(super) fn own_excludes(repository: &Repository) -> Vec<u8> {
    let path = repository.git.commondir().join("info/exclude");
    without_block(&disk::read(&path).ok().flatten().unwrap_or_default())
}

/// Without our block. One that has lost its end stops at its last line that is a pattern of ours.
fn without_block(text: &[u8]) -> Vec<u8> {
    let (mut out, mut inside) = (Vec::with_capacity(text.len()), false);
    for line in text.split_inclusive(|b| *b == b'\n') {
        match inside {
            false if line == BEGIN => inside = true,
            false => out.extend_from_slice(line),
            true if line == END => inside = false,
            true if line.starts_with(b"/") => {}
            true => {
                inside = false;
                out.extend_from_slice(line);
            }
        }
    }
    out
}

/// A line that matches this path alone (gitignore(5)).
fn pattern(path: &[u8], end: &[u8]) -> Vec<u8> {
    let mut line = vec![b'/'];
    for byte in path {
        match byte {
            // A line break can not be written; `?` stands for any byte but a slash.
            0..=0x1f | 0x7f => line.push(b'?'),
            b'*' | b'?' | b'[' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            _ => line.push(*byte),
        }
    }
    // Blanks at the end would be cut off.
    if end.is_empty() && line.ends_with(b" ") {
        line.insert(line.len() - 1, b'\\');
    }
    line.extend_from_slice(end);
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_and_goes_without_a_trace() {
        let own = b"*.swp\n# mine\n".to_vec();
        let with = [own.as_slice(), BEGIN, b"/a\n/b c\n", END, b"late\n"].concat();
        assert_eq!(without_block(&with), b"*.swp\n# mine\nlate\n");
        assert_eq!(without_block(&own), own);
        // An end that somebody has deleted takes no line of theirs with it.
        let open = [own.as_slice(), BEGIN, b"/a\n", b"theirs\n"].concat();
        assert_eq!(without_block(&open), b"*.swp\n# mine\ntheirs\n");
    }

    #[test]
    fn patterns_match_one_path_alone() {
        assert_eq!(pattern(b"a/b.png", b""), b"/a/b.png\n");
        assert_eq!(pattern(b"a/[x]*?\\", b""), b"/a/\\[x]\\*\\?\\\\\n");
        assert_eq!(pattern(b"a/end  ", b""), b"/a/end \\ \n");
        assert_eq!(pattern(b"a/two\nlines\r", b""), b"/a/two?lines?\n");
        assert_eq!(pattern(b"a/repo", b"/"), b"/a/repo/\n");
    }
}
