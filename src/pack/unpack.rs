//! Unpacking: into a fresh folder, whatever the pack says.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::course::{Expected, go};
use super::lay::{Laid, Laying, Work};
use super::learn::learn;
use super::trouble::{Damage, Trouble};
use super::verify::Problem;
use super::{Member, Nature, Pack, names};
use crate::base::{Context, Result, human};
use crate::disk::Dir;

/// How much a pack may be taken at its word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Unpack what is proved good of a damaged pack, instead of nothing.
    pub salvage: bool,
}

/// What was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// The members, as they were read back from the disk, in the order of the pack.
    pub members: Vec<Member>,
    /// What is wrong with the pack, and so not here: empty but for a salvage. And what a pack made by hand holds that
    /// this program does not give back: access lists in the form of text.
    pub problems: Vec<Problem>,
}

/// Unpacks the session into `into`, which is empty: its files lie directly in it, and it gets the mode and time of
/// the session's folder. Everything is read back and compared with the manifest, or of a pack made by hand with what
/// was decoded.
///
/// What the place can not keep (an attribute, an owner unless it is root who unpacks) is not in
/// [`Unpacked::members`]. Setuid and setgid bits of a file are left out where it does not get back the owner and the
/// group that it had: they would lend out the rights of somebody else. A pack made by hand gives nobody's files special
/// rights: there these bits, and attributes that only root may set, are always left out.
///
/// # Errors
/// A pack that is damaged, lies, or holds what may not be unpacked: `..`, absolute names, devices, a member under a
/// link, two of one name, more than the manifest says. What lies in `into` then is for the caller to remove; nothing
/// outside of it was touched.
pub fn unpack(pack: &Pack, into: &Dir, limits: Limits, context: &Context) -> Result<Unpacked> {
    let mut problems = Vec::new();
    let unpacked = unpack_what_is_good(pack, into, limits, context, &mut problems);
    let members = unpacked.map_err(|trouble| trouble.error("can not unpack", pack))?;
    Ok(Unpacked { members, problems })
}

fn unpack_what_is_good(
    pack: &Pack,
    into: &Dir,
    limits: Limits,
    context: &Context,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Member>, Trouble> {
    let report = &mut |damage: Damage, members: &[Member]| {
        if !limits.salvage {
            return Err(Trouble::Damage(damage));
        }
        let mut problem = damage.problem();
        problem.members = members.iter().map(|member| member.path.0.clone()).collect();
        problems.push(problem);
        Ok(())
    };
    if let Nature::Damaged(what) = &pack.nature {
        report(Damage::new("what stands behind the data", what, 0), &[])?;
    }
    let mut dropped = None;
    let expected = match Expected::from_manifest(pack) {
        Some(Ok(expected)) => expected,
        lost => {
            if let Some(Err(damage)) = lost {
                report(damage, &[])?;
            }
            let learned = learn(pack, limits.salvage, context)?;
            for damage in learned.damage {
                report(damage, &[])?;
            }
            dropped = access_lists(&learned.access_lists);
            learned.expected
        }
    };
    let mut left_out = HashSet::new();
    for (n, why) in names::refused(&expected.members) {
        report(
            expected.refusal(n, why),
            std::slice::from_ref(&expected.members[n]),
        )?;
        left_out.insert(n);
    }
    let laid = Laid::default();
    let mut work = Work::new(into, &expected, left_out, &laid, context);
    rayon::in_place_scope(|scope| {
        let mut sink = Laying {
            work: &mut work,
            scope,
        };
        let stretch = expected.stretch(pack);
        go(pack, &expected, &stretch, context.stop, &mut sink, report)
    })?;
    let members = work.finish(report)?;
    problems.extend(dropped);
    Ok(members)
}

/// That access lists are not given back, if any member has one. The members themselves are.
fn access_lists(paths: &[PathBuf]) -> Option<Problem> {
    let first = paths.first()?;
    let more = match paths.len() - 1 {
        0 => String::new(),
        more => format!(" and of {} more", human::count(more as u64)),
    };
    Some(Problem {
        part: "the access lists (ACLs)".to_owned(),
        what: format!(
            "that of {}{more} was dropped: `tar --acls` gives it back, and not this program",
            human::path(if first.as_os_str().is_empty() {
                Path::new(".")
            } else {
                first
            })
        ),
        members: Vec::new(),
    })
}
