//! One session into a pack that has been read back, under its final name.

use std::ffi::OsStr;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::record::{folder_of, pack_of};
use super::shown;
use crate::base::{Context, Error, Result, Total, failpoint, human};
use crate::disk::{self, Dir, Meta, NewFile};
use crate::home::journal::{self, Pending, Step};
use crate::home::mend::{Mend, Seen};
use crate::home::{LockedHome, RelPath, SessionId, trash};
use crate::pack::{self, About, Flaw, FlawKind, Manifest, MemberKind, Pack};

/// So often is a session packed that is written to meanwhile.
const ATTEMPTS: u32 = 3;

/// So many things are named where there may be thousands.
const NAMED: usize = 3;

/// The pack of a session, as it stands in `archive/`.
#[derive(Debug)]
pub(super) struct Archived {
    pub manifest: Manifest,
    pub bytes: u64,
    pub blake3: String,
    /// What the file was that was read.
    pub seen: Seen,
    /// Whether it was there before.
    pub reused: bool,
}

impl Archived {
    /// Files in it, and their bytes.
    pub fn content(&self) -> (u64, u64) {
        content(&self.manifest.members)
    }

    /// The step that removes it again, as long as it is this file, and `folder` is what has the name of the session.
    pub fn taking_back(&self, id: &SessionId, folder: Seen) -> Step {
        Step::Mend {
            step: Mend::Discard {
                path: pack_of(id).into(),
                seen: self.seen,
                kept_in: folder_of(id).into(),
                kept_seen: folder,
            },
        }
    }

    /// What is not in it as it was, of such kinds.
    pub fn flaws(&self, of: impl Fn(FlawKind) -> bool) -> Vec<&Flaw> {
        let flaws = self.manifest.flaws.iter();
        flaws.filter(|flaw| of(flaw.kind)).collect()
    }
}

/// Files among members, and their bytes.
pub(super) fn content(members: &[pack::Member]) -> (u64, u64) {
    let files = members.iter();
    let files = files.filter(|m| matches!(m.kind, MemberKind::File | MemberKind::HardLink));
    files.fold((0, 0), |(n, bytes), m| (n + 1, bytes + m.size))
}

/// How a session is packed.
pub(super) struct Packing<'a> {
    pub home: &'a LockedHome,
    pub id: &'a SessionId,
    /// The session's folder.
    pub folder: &'a Dir,
    /// What the pack keeps of its entry.
    pub entry: Map<String, Value>,
    pub level: i32,
    /// Whether a pack is good that holds a beginning of what goes on growing.
    pub force: bool,
    pub context: &'a Context<'a>,
}

impl Packing<'_> {
    /// Packs the session. With `instead` the pack that has the name now goes into the trash. What comes along is the note
    /// that takes the pack away again: a pack that nobody has put anything away for says what its session once was, and
    /// would stand in the way of the next one.
    pub fn pack(&self, instead: bool) -> Result<(Archived, Pending)> {
        let folder = self.home.archive();
        disk::create_private_folder(&folder)?;
        // Through a link nobody could look at it again in the steps that follow.
        let archive = Dir::open(self.home.root())
            .and_then(|root| root.open_beneath(Path::new("archive")))
            .map_err(|e| {
                Error::io("can not open the folder", &folder, e)
                    .hint("if it is a link, put the folder itself there")
            })?;
        let mut attempt = 1;
        loop {
            let (file, archived) = self.write(&archive)?;
            let changed = archived.flaws(FlawKind::is_restless);
            if !changed.is_empty() && attempt < ATTEMPTS {
                attempt += 1;
                continue;
            }
            if !changed.is_empty() && !self.force {
                return Err(self.being_written(&changed));
            }
            let pending = self.publish(&archive, file, &archived, instead)?;
            return Ok((archived, pending));
        }
    }

    /// Writes a pack without a name, and reads it back from the disk.
    fn write<'d>(&self, archive: &'d Dir) -> Result<(NewFile<'d>, Archived)> {
        let context = self.context;
        let path = self.home.archive_of(self.id);
        let fail = |e| Error::io("can not write", &path, e);
        let survey = pack::survey(self.folder, self.id.as_str(), &|_, _| false, context)?;
        self.refuse_unreadable(survey.flaws())?;
        let items = survey.members().len() as u64;
        let bytes = survey.bytes();
        let file = NewFile::create(archive).map_err(fail)?;
        let about = About {
            created_at: context.clock.now(),
            entry: Some(self.entry.clone()),
        };
        let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
        let written = pack::write(
            file.file(),
            self.folder,
            survey,
            about,
            self.level,
            threads,
            context,
        )
        .map_err(|error| match error.path() {
            None => error.at(&path),
            Some(_) => error,
        })?;
        self.refuse_unreadable(&written.manifest.flaws)?;
        file.sync().map_err(fail)?;
        disk::drop_cache(file.file());
        context
            .progress
            .stage("reading back", Total { items, bytes });
        let again = file.file().try_clone().map_err(fail)?;
        let verified = pack::verify(&Pack::of(again, &path)?, context)?;
        context.progress.finish();
        if let Some(problem) = verified.problems.first() {
            return Err(Error::failed(format!(
                "the pack of {} could not be read back as it was written: {}: {}",
                shown(self.id),
                problem.part,
                human::escape(&problem.what)
            ))
            .hint("the session is untouched; the disk or the memory may be failing"));
        }
        let archived = Archived {
            manifest: written.manifest,
            bytes: written.bytes,
            blake3: written.blake3,
            seen: Seen::of(&Meta::of(file.file()).map_err(fail)?),
            reused: false,
        };
        Ok((file, archived))
    }

    fn publish(
        &self,
        archive: &Dir,
        mut file: NewFile,
        archived: &Archived,
        instead: bool,
    ) -> Result<Pending> {
        let rel = pack_of(self.id);
        let folder = self.folder.meta();
        let folder =
            folder.map_err(|e| Error::io("can not look at", self.home.session(self.id), e))?;
        if instead && disk::stat(&self.home.archive_of(self.id))?.is_some() {
            let why = format!("another pack of {} takes its place", shown(self.id));
            trash::put(self.home, &RelPath::new(&rel)?, &why, self.context)?;
        }
        let back = archived.taking_back(self.id, Seen::of(&folder));
        let pending = journal::begin(self.home, "archive", vec![back], self.context)?;
        let name = rel.file_name().unwrap_or(OsStr::new(""));
        let published = file.publish(name).and_then(|()| archive.sync());
        if let Err(error) = published {
            pending.complete(self.home, self.context)?;
            return Err(Error::io(
                "can not write",
                self.home.root().join(&rel),
                error,
            ));
        }
        failpoint::hit("archive.published");
        Ok(pending)
    }

    fn refuse_unreadable(&self, flaws: &[Flaw]) -> Result<()> {
        let unreadable: Vec<&Flaw> = flaws
            .iter()
            .filter(|flaw| flaw.kind == FlawKind::Unreadable)
            .collect();
        match unreadable.is_empty() {
            true => Ok(()),
            false => Err(Error::failed(format!(
                "{} can not be read whole: {}",
                shown(self.id),
                told(&unreadable)
            ))
            .hint(
                "set its permissions right (`chmod`, `chown`), or repair the disk, and try again",
            )),
        }
    }

    fn being_written(&self, changed: &[&Flaw]) -> Error {
        Error::failed(format!(
            "{} is being written: {}",
            shown(self.id),
            told(changed)
        ))
        .hint("try again when its session has ended; --force packs what is there, and leaves the folder where it is")
    }
}

/// Flaws in a line: the first few.
pub(super) fn told(flaws: &[&Flaw]) -> String {
    let named = flaws.iter().take(NAMED);
    let named = named.map(|flaw| told_one(&flaw.path, &flaw.why));
    let mut told = named.collect::<Vec<_>>().join("; ");
    if flaws.len() > NAMED {
        told += &format!("; and {} more", human::count((flaws.len() - NAMED) as u64));
    }
    told
}

/// A path and what is wrong with it.
pub(super) fn told_one(path: &Path, why: &str) -> String {
    match path.as_os_str().is_empty() {
        true => format!("the folder itself {}", human::escape(why)),
        false => format!("{} ({})", human::path(path), human::escape(why)),
    }
}

/// Foreign packs have members without all that a manifest says; what is compared is these.
pub(super) fn manifest_of(members: Vec<pack::Member>, id: &SessionId, now: Timestamp) -> Manifest {
    Manifest {
        format: 0,
        created_at: now,
        made_by: String::new(),
        top: id.to_string(),
        entry: None,
        flaws: Vec::new(),
        frames: Vec::new(),
        members,
    }
}
