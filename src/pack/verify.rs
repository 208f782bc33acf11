//! Reading every byte of a pack, and comparing it with what the pack says of itself.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::course::{Expected, Sink, frame_count, go, part};
use super::learn::learn;
use super::tar::Tar;
use super::trouble::Trouble;
use super::{Member, MemberKind, Nature, Pack, names, short_digest};
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::Digest;

/// Something wrong with a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which part, for a person: "the data frame 3 (at byte 1,234)", "the seek table", "the manifest".
    pub part: String,
    /// What.
    pub what: String,
    /// The members that can not be proved good because of it, below the top folder; empty when none is concerned,
    /// or nobody can tell.
    pub members: Vec<PathBuf>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Members that are what the manifest says, or of a pack made by hand that could be read.
    pub members: u64,
    /// The length of their content together.
    pub bytes: u64,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}

/// Reads everything: frames with their checksums, each member beside the manifest, manifest and seek table beside
/// the frames. Of a pack made by hand: the checksums, and that it could be unpacked.
///
/// # Errors
/// A file that can not be read, and interruption. What is wrong with the pack itself is told in the outcome.
pub fn verify(pack: &Pack, context: &Context) -> Result<Verified> {
    let mut verified = Verified {
        members: 0,
        bytes: 0,
        problems: Vec::new(),
    };
    if let Nature::Damaged(what) = &pack.nature {
        verified.problems.push(Problem {
            part: "what stands behind the data".into(),
            what: what.clone(),
            members: Vec::new(),
        });
    }
    let done = match Expected::from_manifest(pack) {
        Some(Ok(expected)) => beside_manifest(pack, &expected, context, &mut verified),
        Some(Err(damage)) => Err(damage.into()),
        None => by_hand(pack, context, &mut verified),
    };
    match done {
        Ok(()) => {}
        Err(Trouble::Damage(damage)) => verified.problems.push(damage.problem()),
        Err(Trouble::Failed(error)) => return Err(error),
    }
    Ok(verified)
}

/// Reads a pack without a manifest.
fn by_hand(pack: &Pack, context: &Context, verified: &mut Verified) -> Result<(), Trouble> {
    let learned = learn(pack, true, context)?;
    let members = &learned.expected.members;
    let refused = names::refused(members);
    verified.members = (members.len() - refused.len()) as u64;
    verified.bytes = members.iter().map(|member| member.size).sum();
    context.progress.advance(verified.members, verified.bytes);
    verified
        .problems
        .extend(learned.damage.iter().map(|damage| damage.problem()));
    verified.problems.extend(named(members, refused));
    Ok(())
}

/// Reads a pack beside its manifest: stretches that do not need each other, two at a time. Each of the two decoders
/// may need a window of 128 MiB.
fn beside_manifest(
    pack: &Pack,
    expected: &Expected<'_>,
    context: &Context,
    verified: &mut Verified,
) -> Result<(), Trouble> {
    let refused = names::refused(&expected.members);
    verified.problems.extend(named(&expected.members, refused));
    if pack.frames.len() != frame_count(pack) as usize {
        let (found, said) = (pack.frames.len() as u64, u64::from(frame_count(pack)));
        verified.problems.push(Problem {
            part: "the file".into(),
            what: format!(
                "it has {}, and the manifest says {}",
                human::plural(found, "data frame", "data frames"),
                human::count(said)
            ),
            members: Vec::new(),
        });
    }
    let stretches = expected.stretches(pack);
    let next = AtomicUsize::new(0);
    let found = Mutex::new((0, 0, Vec::new()));
    let work = || -> Result<(), Trouble> {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(stretch) = stretches.get(n) else {
                return Ok(());
            };
            let mut problems = Vec::new();
            let mut digests = Digests {
                members: 0,
                bytes: 0,
                context,
            };
            go(
                pack,
                expected,
                stretch,
                context.stop,
                &mut digests,
                &mut |damage, members| {
                    let mut problem = damage.problem();
                    problem.members = members.iter().map(|member| member.path.0.clone()).collect();
                    problems.push(problem);
                    Ok(())
                },
            )?;
            if let Ok(mut found) = found.lock() {
                found.0 += digests.members;
                found.1 += digests.bytes;
                found.2.push((n, problems));
            }
        }
    };
    std::thread::scope(|scope| {
        let other = match stretches.len() {
            0 | 1 => None,
            // Without a second thread it only takes longer.
            _ => std::thread::Builder::new().spawn_scoped(scope, work).ok(),
        };
        let one = work();
        let other = other.map_or(Ok(()), |other| {
            other.join().unwrap_or_else(|_| {
                let error = Error::new(Kind::Bug, "a thread that verifies has died");
                Err(Trouble::Failed(error.at(&pack.path)))
            })
        });
        one.and(other)
    })?;
    let (members, bytes, mut problems) = found.into_inner().unwrap_or_default();
    problems.sort_by_key(|(n, _)| *n);
    verified.members = members;
    verified.bytes = bytes;
    verified
        .problems
        .extend(problems.into_iter().flat_map(|(_, problems)| problems));
    Ok(())
}

/// Names that may not be, as problems.
pub(super) fn named(members: &[Member], refused: Vec<(usize, String)>) -> Vec<Problem> {
    let problems = refused.into_iter().map(|(n, what)| Problem {
        part: part(members[n].path.as_os_str().as_bytes()),
        what,
        members: vec![members[n].path.0.clone()],
    });
    problems.collect()
}

/// Compares the digest of each file, and keeps nothing.
struct Digests<'c> {
    members: u64,
    bytes: u64,
    context: &'c Context<'c>,
}

impl Sink for Digests<'_> {
    fn take(
        &mut self,
        _: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        if member.kind == MemberKind::File {
            let mut hasher = blake3::Hasher::new();
            tar.content(&mut |piece| {
                hasher.update(piece);
                Ok(())
            })?;
            if let Some(what) = wrong_digest(member, &hasher.finalize()) {
                return Ok(Some(what));
            }
        }
        self.members += 1;
        self.bytes += member.size;
        self.context.progress.advance(1, member.size);
        Ok(None)
    }
}

/// What is wrong when a content has this digest; a member of a pack made by hand has none to compare.
pub(super) fn wrong_digest(member: &Member, digest: &Digest) -> Option<String> {
    let said = member.blake3.as_ref()?;
    let same = *said == short_digest(digest);
    (!same).then(|| "its content is not what the manifest has the digest of".into())
}
