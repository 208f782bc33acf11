//! What makes a repository and is no file, or leads elsewhere: whoever opens a pipe waits until somebody writes into it, and
//! libgit2 opens whatever has the right name. So names are looked at before it sees any.

use std::path::{Path, PathBuf};

use crate::base::{Error, Result};
use crate::disk::{self, FileKind};

/// Refuses a repository (a `.git`, or what it names) with something in it that would be waited for.
///
/// # Errors
/// With its path.
pub(super) fn refuse_pipes(dot_git: &Path) -> Result<()> {
    refuse(dot_git, FileKind::Symlink)?;
    let dir = match named_in(dot_git, "gitdir:") {
        Some(dir) => dir,
        None => dot_git.to_path_buf(),
    };
    look_in(&dir)?;
    match named_in(&dir.join("commondir"), "") {
        Some(common) => look_in(&common),
        None => Ok(()),
    }
}

/// The folder that a small file names, if it is one.
fn named_in(file: &Path, word: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let text = disk::read_small(file, 8 << 10).ok()??;
    let named = text.trim_ascii().strip_prefix(word.as_bytes())?;
    let named = std::ffi::OsStr::from_bytes(named.trim_ascii());
    Some(file.parent()?.join(named))
}

/// A part of a repository that is a link leads to what may be another's.
fn refuse_links(dir: &Path) -> Result<()> {
    for part in [
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "logs",
        "info",
        "wbhome",
    ] {
        let part = dir.join(part);
        if disk::stat(&part)?.is_some_and(|meta| meta.kind == FileKind::Symlink) {
            return Err(Error::failed("a part of the repository is a link:")
                .at(part)
                .hint(
                    "what it leads to may be another repository's: put the folder itself there",
                ));
        }
    }
    Ok(())
}

fn look_in(dir: &Path) -> Result<()> {
    refuse_links(dir)?;
    for folder in ["", "info", "objects/info", "objects/pack"] {
        each(&dir.join(folder), false)?;
    }
    for folder in ["refs", "logs"] {
        each(&dir.join(folder), true)?;
    }
    Ok(())
}

/// What is not there, or can not be listed, is for libgit2 to tell.
fn each(folder: &Path, below: bool) -> Result<()> {
    for (name, kind) in disk::read_dir_names(folder).unwrap_or_default() {
        let path = folder.join(name);
        match kind {
            FileKind::Folder if below => each(&path, true)?,
            kind => refuse(&path, kind)?,
        }
    }
    Ok(())
}

/// Refuses what would be waited for, also behind a link.
///
/// # Errors
/// With its path.
pub(super) fn refuse(path: &Path, kind: FileKind) -> Result<()> {
    let kind = match kind {
        FileKind::Symlink => {
            let real = disk::real_path(path).and_then(|real| disk::stat(&real));
            real.ok().flatten().map_or(kind, |meta| meta.kind)
        }
        kind => kind,
    };
    let what = match kind {
        FileKind::Fifo => "a pipe",
        FileKind::Socket | FileKind::Device => kind.described(),
        _ => return Ok(()),
    };
    Err(Error::failed(format!(
        "is {what}, and no file of a repository; git would wait for it without end:"
    ))
    .at(path)
    .hint("move it away, and put the file there from another copy of the repository (docs/disaster.md)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_found_wherever_git_would_open_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = root.join("elsewhere");
        for below in ["refs/heads/a", "info", "objects/pack"] {
            std::fs::create_dir_all(git.join(below)).unwrap();
        }
        let dot_git = root.join(".git");
        std::fs::write(&dot_git, "gitdir: elsewhere\n").unwrap();
        refuse_pipes(&dot_git).unwrap();
        let fifo = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        };
        for name in ["config", "HEAD", "refs/heads/a/b", "info/attributes"] {
            let path = git.join(name);
            fifo(&path);
            let error = refuse_pipes(&dot_git).unwrap_err();
            assert_eq!(error.path(), Some(path.as_path()));
            assert!(error.to_string().contains("is a pipe"), "{error}");
            std::fs::remove_file(&path).unwrap();
        }
        fifo(&root.join("pipe"));
        std::os::unix::fs::symlink("../pipe", git.join("index")).unwrap();
        refuse_pipes(&dot_git).unwrap_err();
        std::fs::remove_file(&dot_git).unwrap();
        fifo(&dot_git);
        refuse_pipes(&dot_git).unwrap_err();
    }
}
