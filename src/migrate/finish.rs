//! `migrate finish`: the original packed into one verified file, so that it may go one day.
//!
//! Packing reads the whole original once; then the pack is read back, and the original compared with it once more. The
//! pack gets its name after that. What was packed is compared with the record of the migration, too: a pack of an
//! original that has lost files is no reason to remove it. Nothing is removed, here or later: when the original may go is
//! told, and the rest is for a person.

mod since;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::adopt::KEEP_DAYS;
use super::record::Record;
use super::verify::{Difference, newest};
use crate::base::wire::{self, WirePath};
use crate::base::{Context, Error, Exit, Result, human};
use crate::disk::{self, Dir, FileKind, NewFile, Space};
use crate::home::{Home, LockedHome};
use crate::pack::{self, About, FlawKind, MemberKind, Pack, Survey};

/// Where the pack of an original is noted, in the record of its migration.
const NOTE: &str = "finish.json";

/// Something of the original that is not in the pack as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Below the original.
    #[serde(flatten)]
    pub path: WirePath,
    /// In which way.
    pub kind: FlawKind,
    /// Why, for a person.
    pub why: String,
}

/// Something of the original that was changed after it was packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSince {
    /// Below the original.
    #[serde(flatten)]
    pub path: WirePath,
    /// What differs, for a person.
    pub what: String,
}

/// The pack of an original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// What was packed.
    #[serde(with = "wire::exact_path")]
    pub source: PathBuf,
    /// The pack.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 of it.
    pub blake3: String,
    /// When it was made.
    pub at: Timestamp,
    /// Until when the original should be kept all the same.
    pub keep_until: Timestamp,
    /// Files in it, further names of one included.
    pub files: u64,
    /// The length of the files together.
    pub content: u64,
    /// What is not in it as it was.
    pub left: Vec<Left>,
    /// What was changed in the original while it was packed, and so may be in it as it was before.
    pub changed: Vec<ChangedSince>,
    /// What the migration had found in the original, and is missing there or another one now.
    #[serde(default)]
    pub since: Vec<Difference>,
}

impl Finished {
    /// 3 when something is not in the pack as it is in the original, or not in the original as it was migrated.
    pub fn exit(&self) -> Exit {
        match self.is_complete() {
            true => Exit::Done,
            false => Exit::Partial,
        }
    }

    /// Whether the pack holds all of the original, and that all that was migrated.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.changed.is_empty() && self.since.is_empty()
    }

    /// Whether the pack is where it was made, as long as it was. It is not read.
    pub fn is_there(&self) -> bool {
        let found = disk::stat(&self.path).ok().flatten();
        found.is_some_and(|meta| meta.kind == FileKind::File && meta.size == self.bytes)
    }
}

/// What would be packed, and where.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The original.
    #[serde(with = "wire::exact_path")]
    pub source: PathBuf,
    /// The folder that gets the pack.
    #[serde(flatten)]
    pub path: WirePath,
    /// Files, further names of one included.
    pub files: u64,
    /// Their length together: the pack is hardly ever larger.
    pub content: u64,
    /// Room left on the disk of the pack.
    pub room: u64,
    /// What can not be packed.
    pub left: Vec<Left>,
    /// What the migration had found in the original, and is missing there or another one now: see [`preview`].
    pub since: Vec<Difference>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// The pack that was made before.
    pub before: Option<Finished>,
    #[serde(skip)]
    home: PathBuf,
    #[serde(skip)]
    record: Record,
    #[serde(skip)]
    dir: Dir,
    #[serde(skip)]
    survey: Survey,
}

impl Plan {
    /// 3 when it is plain already that the pack would not be whole.
    pub fn exit(&self) -> Exit {
        match self.left.is_empty() && self.since.is_empty() {
            true => Exit::Done,
            false => Exit::Partial,
        }
    }
}

/// Looks at the original and at the folder that shall get the pack.
///
/// # Errors
/// A home that was not migrated, or not to the end; an original that is gone or emptied; a folder that is not there, lies in the
/// original, in the home, or in what the same sync client carries to other devices; too little room, without `force`.
pub fn plan(home: &Home, to: &Path, force: bool, ctx: &Context) -> Result<Plan> {
    let record = newest(home)?;
    if !record.is_finished() {
        return Err(Error::failed("the migration was stopped before its end:")
            .at(record.folder())
            .hint("run the same `wbhome migrate SRC DEST` again, it goes on where it stopped"));
    }
    let source = record.settings().source.clone();
    let dir = Dir::open(&source).map_err(|e| {
        Error::io("can not open the original", &source, e)
            .hint("is the sync drive mounted? Once the original is gone, there is nothing to pack")
    })?;
    since::refuse_emptied(&record, &dir, ctx)?;
    let to = place(home, &source, to)?;
    let top = top_of(&source);
    let survey = pack::survey(&dir, &top, &|_, _| false, ctx)?;
    let room = room(&to, &survey, force)?;
    let is_file = |kind| matches!(kind, MemberKind::File | MemberKind::HardLink);
    Ok(Plan {
        files: survey.members().iter().filter(|m| is_file(m.kind)).count() as u64,
        content: survey.bytes(),
        room,
        left: survey.flaws().iter().map(left).collect(),
        since: Vec::new(),
        warnings: warnings(&to, &record)?,
        before: noted(&record)?,
        path: to.into(),
        home: home.root().to_path_buf(),
        source,
        record,
        dir,
        survey,
    })
}

/// Compares the original with what was migrated, for a plan that is only to be shown: [`apply`] does it with what it
/// has packed. A file in the state that was recorded is not read.
///
/// # Errors
/// An original that can not be walked, and interruption.
pub fn preview(plan: &mut Plan, ctx: &Context) -> Result<()> {
    let since = since::differences(&plan.record, &plan.home, &plan.dir, None, ctx)?;
    plan.since = without(since, &plan.left);
    Ok(())
}

/// What can not be packed at all is named once.
fn without(since: Vec<Difference>, left: &[Left]) -> Vec<Difference> {
    let left: HashSet<&Path> = left.iter().map(|left| &*left.path.0).collect();
    let mut since = since;
    since.retain(|difference| !left.contains(&*difference.path.0));
    since
}

fn left(flaw: &pack::Flaw) -> Left {
    Left {
        path: flaw.path.0.clone().into(),
        kind: flaw.kind,
        why: flaw.why.clone(),
    }
}

/// The name of the original, for the one folder in the pack and for the pack itself.
fn top_of(source: &Path) -> String {
    let name = source.file_name().map(|name| name.to_string_lossy());
    name.map_or_else(|| "original".to_owned(), std::borrow::Cow::into_owned)
}

/// The folder that gets the pack, without links.
fn place(home: &Home, source: &Path, to: &Path) -> Result<PathBuf> {
    let real = disk::real_path(to)?;
    if !disk::is_folder(&real) {
        let error = match disk::exists(&real) {
            true => Error::failed("is no folder:").at(to),
            false => Error::failed("there is no folder").at(to).hint(format!(
                "mkdir {} makes it; it is not made unasked, for a disk that is not mounted looks so",
                human::quoted(to)
            )),
        };
        return Err(error);
    }
    let look = |e| Error::io("can not compare the places of", to, e);
    let elsewhere = "choose a folder on another disk, outside of the home and of what is synced";
    for (folder, what) in [
        (source, "the original, which is never written"),
        (home.root(), "the home, which it is no part of"),
    ] {
        if disk::is_inside(&real, folder).map_err(look)? {
            let error = Error::failed(format!("the pack would lie in {what}:"));
            return Err(error.at(to).hint(elsewhere));
        }
    }
    if let Some((root, client)) = disk::sync_folder(source)
        && disk::is_inside(&real, root).map_err(look)?
    {
        let error =
            format!("the pack would lie in the folder of {client} that the original lies in:");
        return Err(Error::failed(error).at(to).hint(elsewhere));
    }
    Ok(real)
}

/// The room that there is. A pack may be as large as what is in it, where nothing can be compressed.
fn room(to: &Path, survey: &Survey, force: bool) -> Result<u64> {
    /// Headers of a member, its line in the manifest, and what stands behind the data.
    const MEMBER: u64 = 1536;
    const END: u64 = 1 << 20;
    let fail = |e| Error::io("can not ask for the room on", to, e);
    let room = Dir::open(to).and_then(Space::of).map_err(fail)?.bytes;
    let needed = survey.bytes() + survey.members().len() as u64 * MEMBER + END;
    if needed > room && !force {
        return Err(Error::failed(format!(
            "there may not be enough room: up to {} needed, {} left on",
            human::size(needed),
            human::size(room)
        ))
        .at(to)
        .hint("make room, or choose a folder on another disk; --force tries it, for text is packed much smaller"));
    }
    Ok(room)
}

fn warnings(to: &Path, record: &Record) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    if let Some((_, client)) = disk::sync_folder(to) {
        warnings.push(format!(
            "the pack would lie in a folder of {client}, which carries it to other devices"
        ));
    } else if let Some(holder) = holder(&record.settings().source, to)? {
        warnings.push(format!(
            "the pack would lie in {}, the folder that holds the original: if that is synced, the pack is carried to every device, and goes when that folder goes; another disk is safer",
            human::path(holder)
        ));
    }
    if record
        .outcome()?
        .is_some_and(|outcome| !outcome.is_complete())
    {
        warnings.push(
            "the migration could not copy everything: `wbhome migrate status` names it".to_owned(),
        );
    }
    Ok(warnings)
}

/// The folder around the original, where the pack would lie in it as well: the client that syncs it may be one that is
/// not known by any mark. Another disk that is mounted there is not what is synced, and `/` holds everything.
fn holder<'s>(source: &'s Path, to: &Path) -> Result<Option<&'s Path>> {
    let Some(holder) = source.parent().filter(|holder| holder.parent().is_some()) else {
        return Ok(None);
    };
    let look = |e| Error::io("can not compare the places of", to, e);
    let is_inside = disk::is_inside(to, holder).map_err(look)?;
    let dev = |path| disk::stat(path).map(|meta| meta.map(|meta| meta.dev));
    Ok((is_inside && dev(to)? == dev(holder)?).then_some(holder))
}

/// Packs the original. What came of it is to be noted by [`note`].
///
/// # Errors
/// A pack that can not be written, or does not read back as it was written: then there is none.
pub fn apply(plan: Plan, level: i32, ctx: &Context) -> Result<(Record, Finished)> {
    let Plan {
        source,
        path: WirePath(to),
        home,
        record,
        dir,
        survey,
        ..
    } = plan;
    let folder = Dir::open(&to).map_err(|e| Error::io("can not open the folder", &to, e))?;
    let stem = format!("{}-{}", top_of(&source), ctx.clock.stamp());
    let pack_path = to.join(format!("{stem}{}", pack::ENDING));
    let fail = |e| Error::io("can not write", &pack_path, e);
    let mut file = NewFile::create(&folder).map_err(fail)?;
    let at = ctx.clock.now();
    let about = About {
        created_at: at,
        entry: None,
    };
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let packed = pack::write(file.file(), &dir, survey, about, level, threads, ctx)?;
    file.sync().map_err(fail)?;
    // What is read back shall come from the disk.
    disk::drop_cache(file.file());
    let pack = Pack::of(file.file().try_clone().map_err(fail)?, &pack_path)?;
    let verified = pack::verify(&pack, ctx)?;
    let problem = verified.problems.first();
    if let Some(problem) = problem {
        let what = format!(
            "does not read back as it was written ({}: {}):",
            problem.part, problem.what
        );
        return Err(unsound(&what, &pack_path));
    }
    if pack.digest()? != packed.blake3 {
        return Err(unsound("does not read back as it was written:", &pack_path));
    }
    let changed = pack::compare(&packed.manifest, &dir, ctx)?;
    let since = since::differences(&record, &home, &dir, Some(&packed.manifest), ctx)?;
    let path = publish(&mut file, &to, &stem)?;
    folder.sync().map_err(fail)?;
    let is_file = |kind| matches!(kind, MemberKind::File | MemberKind::HardLink);
    let members = &packed.manifest.members;
    let keep = SignedDuration::from_hours(24 * KEEP_DAYS);
    let changed = changed.into_iter().map(|difference| ChangedSince {
        path: difference.path.into(),
        what: difference.what,
    });
    let left: Vec<Left> = packed.manifest.flaws.iter().map(left).collect();
    let finished = Finished {
        source,
        path: path.into(),
        bytes: packed.bytes,
        blake3: packed.blake3,
        at,
        keep_until: at.saturating_add(keep).unwrap_or(at),
        files: members.iter().filter(|m| is_file(m.kind)).count() as u64,
        content: members.iter().map(|member| member.size).sum(),
        // What was left out is not missed a second time.
        changed: changed
            .filter(|c| !left.iter().any(|l| l.path == c.path))
            .collect(),
        since: without(since, &left),
        left,
    };
    Ok((record, finished))
}

fn unsound(what: &str, path: &Path) -> Error {
    Error::failed(what)
        .at(path)
        .hint("it was not kept; test the disk before anything else is written to it")
}

/// Gives the pack its name: the next free one, for a pack that is there stays there.
fn publish(file: &mut NewFile, to: &Path, stem: &str) -> Result<PathBuf> {
    for name in names(stem, pack::ENDING) {
        match file.publish(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("can not write", to.join(name), error)),
            Ok(()) => return Ok(to.join(name)),
        }
    }
    Err(Error::failed("there are too many packs of the same moment in").at(to))
}

/// `a.x`, `a_2.x`, `a_3.x`, …
fn names(stem: &str, ending: &str) -> impl Iterator<Item = OsString> {
    (1..1000).map(move |n| match n {
        1 => format!("{stem}{ending}").into(),
        n => format!("{stem}_{n}{ending}").into(),
    })
}

/// Notes in the record of the migration that the original was packed. The note of an earlier pack is kept beside it;
/// when only the earlier one is whole, that stays first, and comes back.
///
/// # Errors
/// When it can not be written.
pub fn note(_home: &LockedHome, record: &Record, finished: &Finished) -> Result<Option<Finished>> {
    let mut path = record.folder().join(NOTE);
    let mut better = None;
    if let Some(former) = noted(record)? {
        if former.is_complete() && !finished.is_complete() {
            path = beside(record, finished)?;
            better = Some(former);
        } else {
            disk::rename_no_replace(&path, &beside(record, &former)?)?;
        }
    }
    let mut text = serde_json::to_vec_pretty(finished)
        .map_err(|e| Error::failed("can not write the migration record").because(e))?;
    text.push(b'\n');
    disk::write_new(&path, &text, 0o600)?;
    Ok(better)
}

/// A free name for the note of a pack that is not the first one.
fn beside(record: &Record, finished: &Finished) -> Result<PathBuf> {
    let stem = format!("finish-{}", finished.at.strftime("%Y%m%dT%H%M%SZ"));
    let mut names = names(&stem, ".json").map(|name| record.folder().join(name));
    let free = names.find(|path| !disk::exists(path));
    free.ok_or_else(|| Error::failed("there are too many notes of packs in").at(record.folder()))
}

/// The pack of the original, as it was noted: the newest that is whole, or else the newest.
///
/// # Errors
/// A note that can not be read.
pub fn noted(record: &Record) -> Result<Option<Finished>> {
    let path = record.folder().join(NOTE);
    let Some(content) = disk::read_own(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content)
        .map(Some)
        .map_err(|e| Error::io("can not understand the migration record", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back_as_it_was_written() {
        let at: Timestamp = "2024-06-15T12:00:00Z".parse().unwrap();
        let path = |text: &str| WirePath(PathBuf::from(text));
        let finished = Finished {
            source: "/云盘/主页".into(),
            path: path("/media/主页-20240615T120000Z.tar.zst"),
            bytes: 7,
            blake3: "ab".into(),
            at,
            keep_until: at,
            files: 1,
            content: 9_007_199_254_740_993,
            left: vec![Left {
                path: path("a"),
                kind: FlawKind::Unreadable,
                why: "no".into(),
            }],
            changed: vec![ChangedSince {
                path: path("b"),
                what: "its content differs".into(),
            }],
            since: vec![Difference {
                path: path("c"),
                kind: super::super::DifferenceKind::MissingInSource,
                detail: "the home still has it".into(),
            }],
        };
        let text = serde_json::to_vec_pretty(&finished).unwrap();
        assert_eq!(serde_json::from_slice::<Finished>(&text).unwrap(), finished);
    }

    #[test]
    fn a_name_that_is_taken_is_followed_by_the_next() {
        let names: Vec<OsString> = names("a", ".x").take(3).collect();
        assert_eq!(names, ["a.x", "a_2.x", "a_3.x"]);
    }
}
