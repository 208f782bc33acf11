//! The last step of a commit: the branch moves.
//!
//! What is about to be done is noted first. So a lock that a kill left can be told from somebody else's, and a line in
//! the branch's log that was never followed by the move from a branch that a sync client lost: libgit2 writes the log
//! before the ref.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{ErrorCode, Oid};

use super::repository::{Branch, OWN, Repository};
use super::said::said;
use crate::base::{Context, Error, Kind, Result, failpoint};
use crate::disk;

fn note_of(repository: &Repository) -> PathBuf {
    repository.dir().join(OWN).join("moving")
}

fn last_of(repository: &Repository) -> PathBuf {
    repository.dir().join(OWN).join("last")
}

/// Where a branch was last about to be moved, by us.
pub(super) fn noted(repository: &Repository, branch: &str) -> Option<Oid> {
    read(&note_of(repository), branch)
}

/// The last commit that this program has made on a branch, wherever the branch is now.
pub(super) fn last(repository: &Repository, branch: &str) -> Option<Oid> {
    read(&last_of(repository), branch)
}

/// What a note says of a branch: a commit, a blank, the name of the ref.
fn read(note: &Path, branch: &str) -> Option<Oid> {
    let text = disk::read_small(note, 8 << 10).ok()??;
    let text = String::from_utf8(text).ok()?;
    let (oid, name) = text.trim_end_matches('\n').split_once(' ')?;
    (name == branch).then(|| Oid::from_str(oid).ok())?
}

fn write(note: &Path, branch: &str, commit: Oid) -> Result<()> {
    let text = format!("{commit} {branch}\n");
    disk::replace_any(note, text.as_bytes(), 0o600)
}

/// Removes the lock of the branch that a killed run of ours has left. Whoever calls this holds `index.lock`.
///
/// # Errors
/// When it can not be removed.
pub(super) fn settle(repository: &Repository, branch: &Branch) -> Result<()> {
    let Some(oid) = noted(repository, &branch.name) else {
        return Ok(());
    };
    let lock = repository
        .git
        .commondir()
        .join(format!("{}.lock", branch.name));
    if let (Some(found), Some(note)) = (disk::stat(&lock)?, disk::stat(&note_of(repository))?) {
        let text = disk::read_small(&lock, 1 << 10)?.unwrap_or_default();
        let text = text.trim_ascii();
        let since = found.mtime.seconds - note.mtime.seconds;
        let ours = text.is_empty() || text == oid.to_string().as_bytes();
        match ours && (0..=LONGEST).contains(&since) {
            true => disk::remove_file(&lock)?,
            false => return Ok(()),
        }
    }
    // A move that was made has nothing left to be known by.
    match branch.tip == Some(oid) {
        true => disk::remove_file(&note_of(repository)),
        false => Ok(()),
    }
}

/// A lock that appears so many seconds after our note is not ours.
const LONGEST: i64 = 60;

/// Between two looks at somebody else's lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Moves the branch. Whoever has moved it since it was read is not overwritten.
///
/// # Errors
/// A lock of somebody else that is not given back within `wait`; a branch that was moved; what can not be written.
pub(super) fn to(
    repository: &Repository,
    branch: &Branch,
    commit: Oid,
    subject: &str,
    wait: Duration,
    context: &Context,
) -> Result<()> {
    repository.make_refs_durable()?;
    write(&note_of(repository), &branch.name, commit)?;
    failpoint::hit("commit.noted");
    let git = &repository.git;
    let began = Instant::now();
    loop {
        let moved = match branch.tip {
            Some(tip) => {
                let log = format!("commit: {subject}");
                git.reference_matching(&branch.name, commit, true, tip, &log)
            }
            None => {
                let log = format!("commit (initial): {subject}");
                git.reference(&branch.name, commit, false, &log)
            }
        };
        let error = match moved {
            Ok(_) => {
                // The commit stands: what can not be tidied up now is by the next one.
                let _ = settle(repository, branch)
                    .and_then(|()| disk::remove_file(&note_of(repository)));
                let _ = write(&last_of(repository), &branch.name, commit);
                return Ok(());
            }
            Err(error) => error,
        };
        let is_locked = error.code() == ErrorCode::Locked;
        if is_locked && began.elapsed() < wait && !context.stop.raised() {
            std::thread::sleep(PAUSE);
            continue;
        }
        let (kind, what, hint) = match error.code() {
            ErrorCode::Locked => (
                Kind::Locked,
                "a git command holds the branch:",
                "wait for it; if none runs any more, remove the file that ends in .lock",
            ),
            ErrorCode::Modified | ErrorCode::Exists => (
                Kind::Failed,
                "somebody has moved the branch meanwhile:",
                "run the same command again",
            ),
            _ => (
                Kind::Failed,
                "the branch can not be moved to the commit:",
                "`wbhome check` and git fsck look at the repository; nothing was lost",
            ),
        };
        return Err(Error::new(kind, what)
            .at(repository.dir())
            .because(said(error))
            .hint(hint));
    }
}
