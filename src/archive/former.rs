//! A pack that is there already: is it what the folder holds?

use super::packing::{Archived, manifest_of, told_one};
use crate::base::{Context, Result};
use crate::disk::Dir;
use crate::home::SessionId;
use crate::home::mend::Seen;
use crate::pack::{self, Difference, Flaw, FlawKind, MemberKind, Pack};

/// What came of a comparison.
#[derive(Debug)]
pub(super) enum Former {
    /// The pack is sound, and the folder is what it holds.
    Same(Box<Archived>),
    /// It is not, or nobody can tell; why.
    Other(String),
}

/// Reads the pack, and the folder beside it.
pub(super) fn compare(
    pack: &Pack,
    id: &SessionId,
    folder: &Dir,
    context: &Context,
) -> Result<Former> {
    let verified = pack::verify(pack, context)?;
    if let Some(problem) = verified.problems.first() {
        let what = format!("it is damaged: {}: {}", problem.part, problem.what);
        return Ok(Former::Other(what));
    }
    let mut manifest = match pack.manifest() {
        Some(manifest) => manifest.clone(),
        None => {
            let members = pack::list(pack, context)?;
            let told = |m: &pack::Member| m.kind != MemberKind::File || m.blake3.is_some();
            if !members.iter().all(told) {
                let why = "it was made by hand, and says nothing of its content";
                return Ok(Former::Other(why.to_owned()));
            }
            manifest_of(members, id, context.clock.now())
        }
    };
    let of = |kind: fn(FlawKind) -> bool| manifest.flaws.iter().find(|flaw| kind(flaw.kind));
    let unreadable = |kind| kind == FlawKind::Unreadable;
    if let Some(flaw) = of(FlawKind::is_restless).or(of(unreadable)) {
        let what = format!("it is not complete: {}", told_one(&flaw.path, &flaw.why));
        return Ok(Former::Other(what));
    }
    let differences = pack::compare(&manifest, folder, context)?;
    // What no pack holds may have come since; it is told each time that it is left out.
    let is_special = |flaw: &Flaw| flaw.kind == FlawKind::Special;
    let found = pack::survey(folder, &manifest.top, &|_, _| false, context)?;
    manifest.flaws.retain(|flaw| !is_special(flaw));
    let special = found.flaws().iter().filter(|flaw| is_special(flaw));
    manifest.flaws.extend(special.cloned());
    Ok(match telling(&differences) {
        Some(what) => Former::Other(what),
        None => Former::Same(Box::new(Archived {
            bytes: pack.size(),
            blake3: pack.digest()?,
            manifest,
            seen: Seen::of(pack.meta()),
            reused: true,
        })),
    })
}

/// The difference that says most: a folder's time follows from what was put into it.
pub(super) fn telling(differences: &[Difference]) -> Option<String> {
    let says = |difference: &&Difference| difference.what != "has another time";
    let first = differences.iter().find(says).or(differences.first())?;
    Some(told_one(&first.path, &first.what))
}
