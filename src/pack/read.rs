//! What is in a pack, and one member of it, without unpacking the rest.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use super::course::{Expected, Sink, Stretch, frame_count, read_one};
use super::learn::learn;
use super::tar::Tar;
use super::trouble::{Damage, Trouble};
use super::verify::{named, wrong_digest};
use super::{Member, MemberKind, Pack, Problem, names};
use crate::base::{Context, Error, Result};

/// A file up to this length is given out only after its digest was compared; a longer one as it is decoded.
const HELD: u64 = 8 << 20;

/// The members of a pack: from its manifest, or of a pack made by hand by reading it. The paths are below the
/// session's folder, wherever that lies in the pack.
///
/// # Errors
/// A pack that can not be read, or holds something that no session can (`..`, a device).
pub fn list(pack: &Pack, context: &Context) -> Result<Vec<Member>> {
    let attempt = "can not list";
    let expected = match Expected::from_manifest(pack) {
        Some(expected) => expected.map_err(|damage| damage.error(attempt, pack))?,
        None => {
            let learned = learn(pack, false, context);
            learned
                .map_err(|trouble| trouble.error(attempt, pack))?
                .expected
        }
    };
    match names::refused(&expected.members).into_iter().next() {
        Some((n, why)) => Err(expected.refusal(n, why).error(attempt, pack)),
        None => Ok(expected.members.into_owned()),
    }
}

/// Like [`list`], past what is wrong with a pack made by hand, or with one that has lost its manifest: the members that
/// are good, and what is wrong.
///
/// # Errors
/// A pack that can not be read, or of which nothing is good; a manifest that lies.
pub fn list_good(pack: &Pack, context: &Context) -> Result<(Vec<Member>, Vec<Problem>)> {
    if pack.manifest.is_some() {
        return Ok((list(pack, context)?, Vec::new()));
    }
    let failed = |trouble: Trouble| trouble.error("can not list", pack);
    let learned = learn(pack, true, context).map_err(failed)?;
    let mut members = learned.expected.members.into_owned();
    let refused = names::refused(&members);
    let mut problems: Vec<Problem> = learned.damage.iter().map(Damage::problem).collect();
    let left_out: HashSet<usize> = refused.iter().map(|(n, _)| *n).collect();
    problems.extend(named(&members, refused));
    let mut number = 0..members.len();
    members.retain(|_| number.next().is_some_and(|n| !left_out.contains(&n)));
    match learned.damage.into_iter().next() {
        Some(damage) if members.is_empty() => Err(failed(damage.into())),
        _ => Ok((members, problems)),
    }
}

/// Writes the content of one file, decoding only what it must. A further name of a file gives that file: its content,
/// length and digest, under the name that was asked for. `None` when there is no such member; a member that is no
/// file is returned and nothing written. Where the manifest knows it, the digest is compared: of a short file before
/// anything is written.
///
/// A pack made by hand has to be read whole to know where the session lies in it.
///
/// # Errors
/// What can not be read, is damaged, or can not be written.
pub fn read_member(
    pack: &Pack,
    path: &Path,
    out: &mut dyn Write,
    context: &Context,
) -> Result<Option<Member>> {
    let attempt = "can not read from";
    let failed = |trouble: Trouble| trouble.error(attempt, pack);
    let (expected, damage): (_, Vec<Damage>) = match Expected::from_manifest(pack) {
        Some(expected) => (
            expected.map_err(|damage| failed(damage.into()))?,
            Vec::new(),
        ),
        None => {
            let learned = learn(pack, true, context).map_err(failed)?;
            (learned.expected, learned.damage)
        }
    };
    let position = |path: &Path| {
        let mut all = expected.members.iter();
        all.position(|member| member.path.as_os_str() == path.as_os_str())
    };
    let Some(asked) = position(path) else {
        // It could stand in the part that can not be read.
        let damage = damage.into_iter().next();
        return damage.map_or(Ok(None), |damage| Err(failed(damage.into())));
    };
    let mut number = asked;
    while let (MemberKind::HardLink, Some(link)) = (
        expected.members[number].kind,
        &expected.members[number].link,
    ) {
        // A name can only be given to what stands before it, so this ends.
        match position(link).filter(|first| *first < number) {
            Some(first) => number = first,
            None => {
                let why = "is one more name of what is not there".to_owned();
                return Err(expected.refusal(asked, why).error(attempt, pack));
            }
        }
    }
    let mut member = expected.members[number].clone();
    if member.kind == MemberKind::File {
        let stretch = Stretch {
            members: number..number + 1,
            frames: member.frame..frame_count(pack),
        };
        let small = member.at.saturating_add(member.size) <= HELD;
        read_one(
            pack,
            &expected,
            &stretch,
            small,
            context.stop,
            &mut Out { out },
        )
        .map_err(failed)?;
    }
    member.path.0 = path.to_path_buf();
    Ok(Some(member))
}

/// Writes what it is given.
struct Out<'o> {
    out: &'o mut dyn Write,
}

impl Sink for Out<'_> {
    fn take(
        &mut self,
        _: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        let fail = |error| Trouble::Failed(Error::io("can not give out", &*member.path, error));
        if member.size <= HELD {
            let content = tar.whole(Vec::new())?;
            let wrong = wrong_digest(member, &blake3::hash(&content));
            if wrong.is_none() {
                self.out.write_all(&content).map_err(fail)?;
            }
            return Ok(wrong);
        }
        let mut hasher = blake3::Hasher::new();
        tar.content(&mut |piece| {
            hasher.update(piece);
            self.out.write_all(piece).map_err(fail)
        })?;
        Ok(wrong_digest(member, &hasher.finalize()))
    }
}
