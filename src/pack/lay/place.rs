//! What a worker lays: one member, which it reads back, and reports.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{TOO_LONG, is_too_long, not_made};
use crate::base::{Context, Error};
use crate::disk::{self, Digest, Dir, Meta, Xattrs};
use crate::pack::tar::Tar;
use crate::pack::trouble::Trouble;
use crate::pack::verify::wrong_digest;
use crate::pack::{Member, short_digest};

/// Setuid and setgid.
const LENT: u32 = 0o6000;

/// What the workers report.
#[derive(Default)]
pub(in crate::pack) struct Laid {
    /// As read back.
    pub(super) members: Mutex<Vec<(usize, Member)>>,
    /// What is wrong with the content of a member.
    pub(super) faults: Mutex<Vec<(usize, String)>>,
    failed: Mutex<Option<Error>>,
    /// Whether to look at `faults` and `failed`.
    trouble: AtomicBool,
    pub(super) waiting: AtomicU64,
    /// Buffers that were used: fresh memory costs more than what is written into it.
    pub(super) spare: Mutex<Vec<Vec<u8>>>,
}

/// What a worker has to know.
#[derive(Clone, Copy)]
pub(super) struct Place<'w> {
    pub(super) members: &'w [Member],
    pub(super) foreign: bool,
    pub(super) laid: &'w Laid,
    pub(super) context: &'w Context<'w>,
}

impl Place<'_> {
    /// Lays a small file.
    pub(super) fn small(self, number: usize, dir: &Dir, content: &[u8]) {
        let member = &self.members[number];
        if self.laid.trouble_of_all() {
            return;
        }
        let digest = blake3::hash(content);
        if let Some(what) = wrong_digest(member, &digest) {
            lock(&self.laid.faults).push((number, what));
            return;
        }
        let name = member.path.file_name().unwrap_or_default();
        let laid = dir.create_file(name).and_then(|file| {
            file.write_all_at(content, 0)?;
            read_back(&file, content, 0)?;
            self.dress(&file, member, digest)
        });
        match laid {
            Ok(back) => self.done(number, back),
            Err(error) if is_too_long(Some(&error)) => {
                lock(&self.laid.faults).push((number, TOO_LONG.to_owned()));
            }
            Err(error) => self
                .laid
                .give_up(not_made("can not write", dir, &member.path, error)),
        }
    }

    /// Lays a large file while it is decoded. What could not be proved good is not left there.
    pub(super) fn large(
        self,
        number: usize,
        dir: &Dir,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        let member = &self.members[number];
        let name = member.path.file_name().unwrap_or_default();
        let fail = |error| Trouble::Failed(not_made("can not write", dir, &member.path, error));
        let file = dir.create_file(name).map_err(fail)?;
        let wrong = match self.stream(&file, member, tar) {
            Ok(Ok(back)) => {
                self.done(number, back);
                return Ok(None);
            }
            Ok(Err(what)) => Ok(Some(what)),
            Err(trouble) => Err(trouble),
        };
        dir.unlink(name).map_err(fail)?;
        wrong
    }

    fn stream(
        self,
        file: &File,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Result<Member, String>, Trouble> {
        let fail = |error| Trouble::Failed(Error::io("can not write", &*member.path, error));
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        tar.content(&mut |piece| {
            self.context.stop.check()?;
            hasher.update(piece);
            // Nothing is written where nothing but zeros stands: it is a hole then.
            if piece.iter().any(|byte| *byte != 0) {
                file.write_all_at(piece, at).map_err(fail)?;
                read_back(file, piece, at).map_err(fail)?;
            }
            at += piece.len() as u64;
            Ok(())
        })?;
        file.set_len(at).map_err(fail)?;
        let digest = hasher.finalize();
        if let Some(what) = wrong_digest(member, &digest) {
            return Ok(Err(what));
        }
        self.dress(file, member, digest).map(Ok).map_err(fail)
    }

    /// Gives a file everything but its content, and returns what it is then.
    fn dress(self, file: &File, member: &Member, digest: Digest) -> io::Result<Member> {
        let xattrs = self.attributes(member);
        // Before the mode, which may forbid it. What the place does not keep is seen when they are read back.
        let _ = xattrs.apply(file);
        let owner = disk::is_root().then_some((member.uid, member.gid));
        let whose = match owner {
            Some(owner) => owner,
            None => Meta::of(file).map(|meta| (meta.uid, meta.gid))?,
        };
        let mode = mode_for(member, self.foreign, whose);
        disk::dress_file(file, owner, mode, member.mtime)?;
        if owner.is_some() && !xattrs.is_empty() {
            // A file that is given away loses its capabilities.
            let _ = xattrs.apply(file);
        }
        let meta = Meta::of(file)?;
        if meta.size != member.size {
            return Err(io::Error::other("it has not the length that was written"));
        }
        let xattrs = match xattrs.is_empty() {
            true => xattrs,
            false => Xattrs::of(file)?,
        };
        let mut back = seen(member, &meta, &xattrs);
        back.blake3 = Some(short_digest(&digest));
        Ok(back)
    }

    pub(super) fn dress_folder(self, into: &Dir, number: usize) -> Result<(), Error> {
        let member = &self.members[number];
        let fail = |error| Error::io("can not set the mode of the folder", &*member.path, error);
        let dir = into.open_beneath(&member.path).map_err(fail)?;
        let xattrs = self.attributes(member);
        let _ = xattrs.apply(&dir);
        if disk::is_root() {
            dir.set_owner(member.uid, member.gid).map_err(fail)?;
        }
        dir.set_mode(member.mode).map_err(fail)?;
        dir.set_time(member.mtime).map_err(fail)?;
        let kept = match xattrs.is_empty() {
            true => xattrs,
            false => Xattrs::of(&dir).map_err(fail)?,
        };
        let meta = dir.meta().map_err(fail)?;
        self.done(number, seen(member, &meta, &kept));
        Ok(())
    }

    /// The attributes that a member may have here.
    fn attributes(self, member: &Member) -> Xattrs {
        let rights = |name: &str| name.starts_with("security.") || name.starts_with("trusted.");
        let allowed = member
            .xattrs
            .iter()
            .filter(|(name, _)| !(self.foreign && rights(name)));
        Xattrs::known(allowed.filter_map(|(name, value)| {
            Some((name.clone().into_bytes(), STANDARD.decode(value).ok()?))
        }))
    }

    pub(super) fn done(self, number: usize, member: Member) {
        self.context.progress.advance(1, member.size);
        lock(&self.laid.members).push((number, member));
    }
}

impl Laid {
    fn give_up(&self, error: Error) {
        lock(&self.failed).get_or_insert(error);
        self.trouble.store(true, Ordering::Relaxed);
    }

    fn trouble_of_all(&self) -> bool {
        self.trouble.load(Ordering::Relaxed)
    }

    /// An error once a worker has failed.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.trouble_of_all() {
            true => self.fail(),
            false => Ok(()),
        }
    }

    pub(super) fn fail(&self) -> Result<(), Error> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }
}

/// The mode of a file that will belong to `whose` user and group. Setuid and setgid lend out the rights of those whose
/// file it is: nobody's whom the one who set them did not mean, and nobody's at the word of a pack made by hand.
fn mode_for(member: &Member, foreign: bool, whose: (u32, u32)) -> u32 {
    match foreign || whose != (member.uid, member.gid) {
        true => member.mode & !LENT,
        false => member.mode,
    }
}

/// A member with what the disk says of it.
fn seen(member: &Member, meta: &Meta, xattrs: &Xattrs) -> Member {
    let mut seen = member.clone();
    (seen.mode, seen.uid, seen.gid, seen.mtime) = (meta.mode, meta.uid, meta.gid, meta.mtime);
    let xattrs = xattrs.iter().map(|(name, value)| {
        (
            String::from_utf8_lossy(name).into_owned(),
            STANDARD.encode(value),
        )
    });
    seen.xattrs = xattrs.collect();
    seen
}

fn read_back(file: &File, written: &[u8], mut at: u64) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    for piece in written.chunks(buffer.len()) {
        let back = &mut buffer[..piece.len()];
        file.read_exact_at(back, at)?;
        if back != piece {
            let what = "what was read back is not what was written";
            return Err(io::Error::other(what));
        }
        at += piece.len() as u64;
    }
    Ok(())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::Stamp;
    use crate::pack::MemberKind;

    #[test]
    fn rights_are_lent_out_by_those_alone_whose_file_it_was() {
        let mode = |mode, foreign, whose| {
            let member = Member {
                path: Path::new("run").to_path_buf().into(),
                kind: MemberKind::File,
                mode,
                uid: 1000,
                gid: 100,
                mtime: Stamp {
                    seconds: 0,
                    nanos: 0,
                },
                size: 0,
                blake3: None,
                link: None,
                xattrs: Default::default(),
                frame: 0,
                at: 0,
            };
            mode_for(&member, foreign, whose)
        };
        assert_eq!(mode(0o6755, false, (1000, 100)), 0o6755);
        assert_eq!(mode(0o6755, false, (1001, 100)), 0o755);
        assert_eq!(mode(0o2755, false, (1000, 50)), 0o755);
        assert_eq!(mode(0o4711, false, (0, 0)), 0o711);
        assert_eq!(mode(0o4711, true, (1000, 100)), 0o711);
        // The rest is nobody's right.
        assert_eq!(mode(0o1754, false, (1001, 50)), 0o1754);
    }
}
