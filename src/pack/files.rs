//! The contents of many files of a pack, in the order of the stream, with nothing laid on the disk.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::course::{Expected, Sink, Stretch, go};
use super::learn::learn;
use super::tar::Tar;
use super::trouble::{Damage, Trouble};
use super::verify::named;
use super::{Member, MemberKind, Pack, Problem, names};
use crate::base::{Context, Error, Result};

/// What is told of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'p> {
    /// Its next bytes.
    Content(&'p [u8]),
    /// It was given as a whole.
    End,
    /// The rest of it can not be read.
    Broken,
}

/// Gives the content of each file that is wanted, piece by piece, with all the names of it that are wanted. Only the frames
/// that they stand in are decoded, each once; a pack made by hand is read once more before, to know where the session lies
/// in it. What is wrong with the pack is told, and the rest is given all the same. To break ends it.
///
/// Digests of members are not compared: the checksums of the frames are.
///
/// # Errors
/// A pack that can not be read, and interruption.
pub fn read_files(
    pack: &Pack,
    wanted: &dyn Fn(&Path) -> bool,
    each: &mut dyn FnMut(&[&Path], Piece<'_>) -> ControlFlow<()>,
    context: &Context,
) -> Result<Vec<Problem>> {
    let failed = |trouble: Trouble| trouble.error("can not read", pack);
    let mut problems = Vec::new();
    let expected = match Expected::from_manifest(pack) {
        Some(expected) => expected.map_err(|damage| failed(damage.into()))?,
        None => {
            let learned = learn(pack, true, context).map_err(failed)?;
            problems.extend(learned.damage.iter().map(Damage::problem));
            learned.expected
        }
    };
    let members = &expected.members;
    let refused = names::refused(members);
    let mut names_of = names_of(members, wanted);
    for (number, _) in &refused {
        names_of.remove(number);
    }
    problems.extend(named(members, refused));
    let mut giving = Giving {
        names_of,
        each,
        is_over: false,
    };
    for stretch in wanted_stretches(&expected, pack, &giving.names_of) {
        let gone = go(
            pack,
            &expected,
            &stretch,
            context.stop,
            &mut giving,
            &mut |damage, members| {
                let mut problem = damage.problem();
                problem.members = members.iter().map(|m| m.path.0.clone()).collect();
                problems.push(problem);
                Ok(())
            },
        );
        match gone {
            _ if giving.is_over => break,
            done => done.map_err(failed)?,
        }
    }
    Ok(problems)
}

/// The wanted names of each file: its own, and further ones that stand behind it.
fn names_of<'m>(
    members: &'m [Member],
    wanted: &dyn Fn(&Path) -> bool,
) -> HashMap<usize, Vec<&'m Path>> {
    let mut first_of: HashMap<&Path, usize> = HashMap::new();
    let mut names_of: HashMap<usize, Vec<&Path>> = HashMap::new();
    for (number, member) in members.iter().enumerate() {
        let first = match (member.kind, &member.link) {
            (MemberKind::File, _) => number,
            // Most sessions have no such name: then nothing had to be looked up.
            (MemberKind::HardLink, Some(link)) => {
                if first_of.is_empty() {
                    let files = members.iter().enumerate();
                    let files = files.filter(|(_, m)| m.kind == MemberKind::File);
                    first_of = files.map(|(n, m)| (&*m.path, n)).collect();
                }
                match first_of.get(&**link) {
                    Some(first) => {
                        let first = *first;
                        first_of.insert(&member.path, first);
                        first
                    }
                    None => continue,
                }
            }
            _ => continue,
        };
        if wanted(&member.path) {
            names_of.entry(first).or_default().push(&member.path);
        }
    }
    names_of
}

/// The stretches that hold what is wanted, as few as possible.
fn wanted_stretches(
    expected: &Expected<'_>,
    pack: &Pack,
    wanted: &HashMap<usize, Vec<&Path>>,
) -> Vec<Stretch> {
    let mut kept: Vec<Stretch> = Vec::new();
    for stretch in expected.stretches(pack) {
        if !stretch.members.clone().any(|n| wanted.contains_key(&n)) {
            continue;
        }
        match kept.last_mut() {
            Some(last) if last.members.end == stretch.members.start => {
                last.members.end = stretch.members.end;
                last.frames.end = stretch.frames.end;
            }
            _ => kept.push(stretch),
        }
    }
    kept
}

struct Giving<'g, 'm> {
    names_of: HashMap<usize, Vec<&'m Path>>,
    each: &'g mut dyn FnMut(&[&Path], Piece<'_>) -> ControlFlow<()>,
    /// Whoever takes it has had enough.
    is_over: bool,
}

impl Sink for Giving<'_, '_> {
    fn take(
        &mut self,
        number: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble> {
        let Some(names) = self.names_of.get(&number) else {
            return Ok(None);
        };
        let enough = || {
            Trouble::Failed(
                Error::failed("has been read as far as it was wanted:").at(&*member.path),
            )
        };
        let given = tar.content(
            &mut |piece| match (self.each)(names, Piece::Content(piece)) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => {
                    self.is_over = true;
                    Err(enough())
                }
            },
        );
        let last = match &given {
            Ok(()) => Piece::End,
            Err(_) if self.is_over => return given.map(|()| None),
            Err(_) => Piece::Broken,
        };
        let after = (self.each)(names, last);
        given?;
        match after {
            ControlFlow::Continue(()) => Ok(None),
            ControlFlow::Break(()) => {
                self.is_over = true;
                Err(enough())
            }
        }
    }
}
