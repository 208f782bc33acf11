//! The way through a pack: which members there should be, and the stream beside them, member by member.
//!
//! What there should be comes from the manifest; of a pack made by hand it is learned by reading it once. After that
//! both are read in the same way, by whoever verifies, unpacks, or wants one member ([`Sink`]).

use std::borrow::Cow;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::stream::{self, Decoded};
use super::tar::{Header, Rules, Tar, Type};
use super::trouble::{Damage, Trouble};
use super::{Member, MemberKind, Pack, names};
use crate::base::{Stop, human};

/// What should be in a pack.
pub(super) struct Expected<'p> {
    /// In the order of the stream.
    pub members: Cow<'p, [Member]>,
    /// The session's folder in the stream.
    pub root: PathBuf,
    /// Whether it was made by hand, or has lost its manifest.
    pub foreign: bool,
}

/// What becomes of a member. The header is as expected.
pub(super) trait Sink {
    /// Takes a member; what is wrong with its content, if anything.
    fn take(
        &mut self,
        number: usize,
        member: &Member,
        tar: &mut Tar<'_, '_>,
    ) -> Result<Option<String>, Trouble>;
}

/// Is told what is wrong, and which members can not be proved good because of it. An error ends the course.
pub(super) type Report<'r> = dyn FnMut(Damage, &[Member]) -> Result<(), Trouble> + 'r;

/// Some of the members, and the frames that they stand in. The first member begins the first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub members: Range<usize>,
    pub frames: Range<u32>,
}

impl<'p> Expected<'p> {
    /// What the manifest says, in so far as it can be true.
    pub(super) fn from_manifest(pack: &'p Pack) -> Option<Result<Expected<'p>, Damage>> {
        let manifest = pack.manifest.as_ref()?;
        let wrong = |what: &str| Some(Err(Damage::new("the manifest", what, 0)));
        let mut place = None;
        for member in &manifest.members {
            let here = (member.frame, member.at);
            if place.is_some_and(|before| before >= here) || place.is_none() && here != (0, 0) {
                return wrong("its members do not stand in the order of the frames");
            }
            if member.frame as usize >= manifest.frames.len() {
                return wrong("a member stands in a frame that it does not name");
            }
            // Without it nothing would prove what the file holds, and it would pass for proved.
            if member.kind == MemberKind::File && member.blake3.is_none() {
                return wrong("it has no digest of a file");
            }
            place = Some(here);
        }
        match names::path_of(manifest.top.as_bytes()) {
            Ok(top) if top.as_os_str() == manifest.top.as_str() && top.iter().count() == 1 => {}
            _ => return wrong("its top folder has no name of a folder"),
        }
        Some(Ok(Expected {
            members: Cow::Borrowed(&manifest.members),
            root: PathBuf::from(&manifest.top),
            foreign: false,
        }))
    }

    /// Why a member may not be unpacked.
    pub(super) fn refusal(&self, number: usize, why: String) -> Damage {
        let member = &self.members[number];
        Damage::new(part(member_name(member)), why, member.frame)
    }

    /// All of it in one.
    pub(super) fn stretch(&self, pack: &Pack) -> Stretch {
        Stretch {
            members: 0..self.members.len(),
            frames: 0..frame_count(pack),
        }
    }

    /// Stretches that can be read each on its own: they begin where a member begins a frame.
    pub(super) fn stretches(&self, pack: &Pack) -> Vec<Stretch> {
        let begins = |member: &Member| member.at == 0;
        let firsts: Vec<usize> = (0..self.members.len())
            .filter(|n| begins(&self.members[*n]))
            .collect();
        if firsts.is_empty() {
            return vec![self.stretch(pack)];
        }
        let ends = firsts.iter().skip(1).copied().map(Some).chain([None]);
        let stretches = firsts.iter().zip(ends).map(|(first, end)| Stretch {
            members: *first..end.unwrap_or(self.members.len()),
            frames: self.members[*first].frame
                ..end.map_or(frame_count(pack), |end| self.members[end].frame),
        });
        stretches.collect()
    }
}

/// How many frames there should be. Where nobody says so, what is torn at the end of the file counts as one more: it
/// is read as far as it goes, and then told.
pub(super) fn frame_count(pack: &Pack) -> u32 {
    let count = match &pack.manifest {
        Some(manifest) => manifest.frames.len(),
        None => pack.frames.len() + usize::from(pack.broken_off.is_some()),
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Goes through a stretch. After something that damages the stream, reading goes on at the next member that begins
/// in a later frame, unless `report` has ended the course.
pub(super) fn go(
    pack: &Pack,
    expected: &Expected<'_>,
    stretch: &Stretch,
    stop: &Stop,
    sink: &mut dyn Sink,
    report: &mut Report<'_>,
) -> Result<(), Trouble> {
    let mut next = stretch.members.start;
    let mut from = (stretch.frames.start, 0);
    loop {
        let mut pass = Pass {
            expected,
            end: stretch.members.end,
            next: &mut next,
            sink,
            report,
            rules: Rules {
                to_the_end: stretch.frames.end == frame_count(pack),
                globals: expected.foreign,
            },
        };
        let frames = from.0..stretch.frames.end;
        let outcome = stream::ahead(pack, frames, stop, |source| pass.run(source, from.1));
        let damage = match outcome {
            Err(Trouble::Damage(damage)) => damage,
            done => return done,
        };
        let rest = &expected.members[next..stretch.members.end];
        let resume = rest.iter().position(|member| member.frame > damage.frame);
        let unproved = &rest[..resume.unwrap_or(rest.len())];
        report(damage, unproved)?;
        let Some(resume) = resume else {
            return Ok(());
        };
        next += resume;
        from = (expected.members[next].frame, expected.members[next].at);
    }
}

/// Reads one member and stops right after it. `small` says that there is little to decode: not worth a thread.
pub(super) fn read_one(
    pack: &Pack,
    expected: &Expected<'_>,
    stretch: &Stretch,
    small: bool,
    stop: &Stop,
    sink: &mut dyn Sink,
) -> Result<(), Trouble> {
    let number = stretch.members.start;
    let member = &expected.members[number];
    let mut read = |source: &mut Decoded<'_>| {
        source.skip(member.at)?;
        let rules = Rules {
            to_the_end: false,
            globals: expected.foreign,
        };
        let mut tar = Tar::new(source, rules);
        let wrong = |what: String| {
            Trouble::Damage(Damage::new(part(member_name(member)), what, member.frame))
        };
        let header = tar
            .next()?
            .filter(|header| header.at == (member.frame, member.at));
        let header = header.ok_or_else(|| wrong("it is not where it should be".into()))?;
        if let Some(what) = differs(member, &header, expected) {
            return Err(wrong(what));
        }
        match sink.take(number, member, &mut tar)? {
            Some(what) => Err(wrong(what)),
            None => Ok(()),
        }
    };
    let frames = stretch.frames.clone();
    match small {
        true => read(&mut Decoded::here(pack, frames, stop)),
        false => stream::ahead(pack, frames, stop, read),
    }
}

struct Pass<'a, 'r> {
    expected: &'a Expected<'a>,
    end: usize,
    /// The member that should come next.
    next: &'a mut usize,
    sink: &'a mut dyn Sink,
    report: &'a mut Report<'r>,
    rules: Rules,
}

impl Pass<'_, '_> {
    fn run(&mut self, source: &mut Decoded<'_>, skip: u64) -> Result<(), Trouble> {
        source.skip(skip)?;
        let mut tar = Tar::new(source, self.rules);
        // What follows the last member of a pack made by hand was seen when the members were learned.
        while !(self.expected.foreign && *self.next == self.end) {
            let Some(header) = tar.next()? else {
                break;
            };
            self.member(&header, &mut tar)?;
        }
        self.missing((u32::MAX, u64::MAX))
    }

    fn member(&mut self, header: &Header, tar: &mut Tar<'_, '_>) -> Result<(), Trouble> {
        self.missing(header.at)?;
        let all = &self.expected.members;
        let Some(member) = all[..self.end]
            .get(*self.next)
            .filter(|m| (m.frame, m.at) == header.at)
        else {
            if self.expected.foreign {
                // Looked at when the members were learned: a folder that leads to the session's, or refused.
                return Ok(());
            }
            let what = "it is not named by the manifest";
            return (self.report)(Damage::new(part(&header.name), what, header.at.0), &[]);
        };
        let fault = match differs(member, header, self.expected) {
            Some(what) => Some(what),
            None => self.sink.take(*self.next, member, tar)?,
        };
        *self.next += 1;
        match fault {
            Some(what) => (self.report)(
                Damage::new(part(member_name(member)), what, header.at.0),
                std::slice::from_ref(member),
            ),
            None => Ok(()),
        }
    }

    /// Those that should have come before this place.
    fn missing(&mut self, place: (u32, u64)) -> Result<(), Trouble> {
        let rest = &self.expected.members[*self.next..self.end];
        let count = rest.iter().take_while(|m| (m.frame, m.at) < place).count();
        if count == 0 {
            return Ok(());
        }
        *self.next += count;
        let what = match self.expected.foreign {
            true => "it has changed while it was read".into(),
            false => format!(
                "{} that the manifest names {} not there",
                human::plural(count as u64, "member", "members"),
                if count == 1 { "is" } else { "are" }
            ),
        };
        (self.report)(
            Damage::new("the tar stream", what, rest[0].frame),
            &rest[..count],
        )
    }
}

fn member_name(member: &Member) -> &[u8] {
    match member.path.as_os_str().as_bytes() {
        b"" => b".",
        name => name,
    }
}

/// A member for a person.
pub(super) fn part(name: &[u8]) -> String {
    format!("the member {}", human::bytes(name))
}

/// In what a header is not the member that should stand there.
fn differs(member: &Member, header: &Header, expected: &Expected<'_>) -> Option<String> {
    let (path, said) = match names::path_of(&header.name) {
        Ok(path) => (path, "another name than"),
        Err(why) => return Some(format!("in the tar stream it {why}")),
    };
    let wrong = |what: &str| Some(format!("the tar stream has {what} the manifest"));
    let doubled = memchr::memmem::find(&header.name, b"//").is_some();
    if doubled && !expected.foreign || path != joined(&expected.root, &member.path) {
        return wrong(said);
    }
    if Some(member.kind) != kind_of(header.kind) {
        return wrong("another kind than");
    }
    if header.size != member.size {
        return wrong("another length than");
    }
    let link = match member.kind {
        MemberKind::Symlink => Some(PathBuf::from(std::ffi::OsStr::from_bytes(&header.link))),
        MemberKind::HardLink => match names::path_of(&header.link) {
            Ok(link) => link
                .strip_prefix(&expected.root)
                .ok()
                .map(Path::to_path_buf),
            Err(_) => return wrong("another target than"),
        },
        _ => None,
    };
    // By its bytes: to `Path`, `a/` is `a`.
    if link.as_ref().map(|l| l.as_os_str()) != member.link.as_ref().map(|l| l.as_os_str()) {
        return wrong("another target than");
    }
    if member.kind == MemberKind::HardLink {
        // The rest is told where its first name stands.
        return None;
    }
    if header.mode != member.mode {
        return wrong("another mode than");
    }
    if (header.uid, header.gid) != (member.uid, member.gid) {
        return wrong("another owner than");
    }
    if header.mtime != member.mtime {
        return wrong("another time than");
    }
    if attributes(header) != member.xattrs {
        return wrong("other attributes than");
    }
    None
}

/// A path below a folder; of nothing the folder itself.
fn joined(root: &Path, path: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => root.to_path_buf(),
        false => root.join(path),
    }
}

/// What a type of tar is in a session.
pub(super) fn kind_of(kind: Type) -> Option<MemberKind> {
    Some(match kind {
        Type::File => MemberKind::File,
        Type::Folder => MemberKind::Folder,
        Type::Symlink => MemberKind::Symlink,
        Type::HardLink => MemberKind::HardLink,
        Type::Other(_) => return None,
    })
}

/// The attributes of a member as the manifest has them.
pub(super) fn attributes(header: &Header) -> std::collections::BTreeMap<String, String> {
    let attributes = header.xattrs.iter();
    attributes
        .map(|(name, value)| (name.clone(), STANDARD.encode(value)))
        .collect()
}
