//! One thing into a pack of the store, under its final name. Nothing is synced here: a run does that once for all of its
//! packs, reads them back, and only then names them in a snapshot.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::agent_state::{self, Portion};
use super::cuts::Cuts;
use super::store::StoreScratch;
use super::things::{Looked, Source, Way};
use super::{Form, PackRef, Place, StatePart, Store};
use crate::base::{self, Context, Error, Kind, Progress, Result, Total, failpoint, stamp};
use crate::disk::{self, Buffers, CopyError, Dir, Identity, Meta, NewFile};
use crate::home::{self, turn_number};
use crate::pack::{self, About, Flaw, FlawKind, Manifest, Member, MemberKind, Pack};

/// So often is something packed that does not hold still. What merely grows is packed as it was looked at.
const ATTEMPTS: u32 = 3;

/// How long is waited before the next attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// So many of the things that could not be read are named in a snapshot; the manifest has all of them.
const NAMED: usize = 20;

/// What is packed, and into what.
pub(super) struct Packing<'a> {
    pub store: &'a Store,
    /// The home's folder.
    pub root: &'a Dir,
    /// The moment of the snapshot.
    pub at: Timestamp,
    pub level: i32,
    pub threads: u32,
    /// The folders that were written to, and by what.
    pub taken: &'a Taken,
    pub context: &'a Context<'a>,
}

/// Folders of the store into which something was packed in this run. Where the filesystem of the store takes two names for
/// one (it knows no case, or only one way to write an accent), two things have one folder, and one name for their packs.
#[derive(Default)]
pub(super) struct Taken(Mutex<HashMap<(u64, u64), Place>>);

impl Taken {
    fn take(&self, folder: &Meta, place: &Place) -> Result<()> {
        let Ok(mut taken) = self.0.lock() else {
            return Ok(());
        };
        let other = taken
            .entry((folder.dev, folder.ino))
            .or_insert_with(|| place.clone());
        if other == place {
            return Ok(());
        }
        Err(Error::failed(format!(
            "the filesystem of the store takes its name and that of {} for one, so it was not packed",
            other.shown()
        ))
        .hint("`wbhome mv` gives one of them another name; or keep the store on a filesystem that tells them apart"))
    }
}

/// A new pack in the store.
pub(super) struct Made {
    pub pack: PackRef,
    /// What it says of itself; `None` of a copied archive.
    pub manifest: Option<Manifest>,
}

/// Copies of databases, to be packed.
struct Staged<'s> {
    scratch: StoreScratch<'s>,
    /// Those of which there is no copy.
    without: Vec<Flaw>,
}

impl Staged<'_> {
    fn open(&self, packing: &Packing) -> Result<Dir, Trouble> {
        let opened = self.scratch.open();
        opened.map_err(|e| packing.of_store(e, Path::new("tmp")))
    }
}

/// Which side failed.
pub(super) enum Trouble {
    /// The thing could not be read: the others can.
    Source(Error),
    /// There is no room in the store.
    Full,
    /// The store can not be written, or the run was interrupted.
    Store(Error),
}

/// Passes on how far a pack is, and not that it begins and ends: there are many.
pub(super) struct Within<'a>(pub &'a dyn Progress);

impl Progress for Within<'_> {
    fn stage(&self, _: &'static str, _: Total) {}

    fn advance(&self, items: u64, bytes: u64) {
        self.0.advance(items, bytes);
    }

    fn finish(&self) {}
}

impl Packing<'_> {
    /// Packs a thing, or copies it if it is an archive.
    pub fn pack(
        &self,
        source: &Source,
        entry: Option<Map<String, Value>>,
    ) -> Result<Made, Trouble> {
        let folder = source.place.folder();
        let into = self.store.dir.make_beneath(&folder);
        let into = into.map_err(|e| self.of_store(e, &folder))?;
        let meta = into.meta().map_err(|e| self.of_store(e, &folder))?;
        self.taken
            .take(&meta, &source.place)
            .map_err(Trouble::Source)?;
        let name = pack_name(self.at, source.form());
        let file = format!("{}/{name}", folder.display());
        match &source.way {
            Way::Archive(archive) => self.copy(source, archive, &into, &name, file),
            _ => self.write(source, entry, &into, &name, file),
        }
    }

    fn write(
        &self,
        source: &Source,
        entry: Option<Map<String, Value>>,
        into: &Dir,
        name: &str,
        file: String,
    ) -> Result<Made, Trouble> {
        let mut attempt = 1;
        loop {
            let cuts = match (&source.place, &source.way) {
                (Place::Session(_), Way::Below(folder)) => Some(Cuts::wait(self.root, folder)),
                _ => None,
            };
            // Looked at before it is packed: what changes from here on is packed again on the next night.
            let mut looked = source
                .look(self.root, self.context)
                .map_err(source_or_stop)?;
            let staged = match &source.way {
                Way::Databases(portion) => Some(self.stage(portion)?),
                _ => None,
            };
            let dir = match &staged {
                Some(staged) => staged.open(self)?,
                None => source.open(self.root).map_err(Trouble::Source)?,
            };
            let skip =
                |rel: &Path, entry: &disk::Entry| staged.is_none() && source.skips(rel, entry);
            let survey = pack::survey(&dir, source.place.top(), &skip, self.context);
            let survey = survey.map_err(source_or_stop)?;
            let new = NewFile::create(into).map_err(|e| self.of_store(e, Path::new(&file)))?;
            let about = About {
                created_at: self.context.clock.now(),
                entry: entry.clone(),
            };
            let (level, threads) = (self.level, self.threads);
            let packed = pack::write(
                new.file(),
                &dir,
                survey,
                about,
                level,
                threads,
                self.context,
            )
            .map_err(|error| self.writing(error, &file))?;
            let flaws = &packed.manifest.flaws;
            let moved = |kind| matches!(kind, FlawKind::Changed | FlawKind::Vanished);
            let cut = cuts
                .as_ref()
                .is_some_and(|cuts| cuts.were_made(&dir, &packed.manifest));
            let stuck = cuts.is_some_and(|cuts| cuts.is_stuck);
            let again = cut && !stuck || flaws.iter().any(|flaw| moved(flaw.kind));
            if again && attempt < ATTEMPTS {
                attempt += 1;
                std::thread::sleep(PAUSE);
                continue;
            }
            failpoint::hit("backup.pack");
            // What has this name is of a run that was killed, and named in no snapshot.
            new.publish_over(name.as_ref())
                .map_err(|e| self.of_store(e, Path::new(&file)))?;
            looked.seen = looked.seen.filter(|_| !cut);
            let mut pack = self.told(&packed, looked, source, file);
            pack.restless += u64::from(cut);
            if let Some(staged) = staged {
                pack.unreadable += staged.without.len() as u64;
                pack.flaws.extend(staged.without);
                pack.flaws.truncate(NAMED);
            }
            return Ok(Made {
                pack,
                manifest: Some(packed.manifest),
            });
        }
    }

    /// Has SQLite copy the databases into the store, beside the packs.
    fn stage(&self, portion: &Portion) -> Result<Staged<'_>, Trouble> {
        let fail = |e| self.of_store(e, Path::new("tmp"));
        let digest = blake3::hash(portion.path.as_os_str().as_encoded_bytes()).to_hex();
        let scratch = StoreScratch::new(self.store, &digest[..16]).map_err(fail)?;
        let failed = agent_state::stage_databases(portion, &scratch.path(), self.context);
        let failed = failed.map_err(|error| self.writing(error, "tmp"))?;
        let without = failed.into_iter().map(|(path, error)| Flaw {
            path: path.into(),
            kind: FlawKind::Unreadable,
            why: format!("{error}; its files were packed as they lay"),
        });
        Ok(Staged {
            without: without.collect(),
            scratch,
        })
    }

    fn told(
        &self,
        packed: &pack::Packed,
        looked: Looked,
        source: &Source,
        file: String,
    ) -> PackRef {
        let manifest = &packed.manifest;
        let counts = home::counts_of(&manifest.members);
        let count = |of: &dyn Fn(FlawKind) -> bool| {
            manifest.flaws.iter().filter(|flaw| of(flaw.kind)).count() as u64
        };
        let is_unreadable = |kind| kind == FlawKind::Unreadable;
        let restless = count(&FlawKind::is_restless);
        let unreadable = manifest.flaws.iter().filter(|f| is_unreadable(f.kind));
        PackRef {
            file,
            form: Form::Packed,
            at: self.at,
            bytes: packed.bytes,
            blake3: packed.blake3.clone(),
            files: counts.total().files,
            content: counts.total().bytes,
            turns: matches!(source.place, Place::Session(_)).then_some(counts.turns),
            seen: looked.seen.filter(|_| restless == 0),
            restless,
            unreadable: count(&is_unreadable),
            flaws: unreadable.take(NAMED).cloned().collect(),
        }
    }

    fn copy(
        &self,
        source: &Source,
        archive: &OsString,
        into: &Dir,
        name: &str,
        file: String,
    ) -> Result<Made, Trouble> {
        let unread = |error| {
            let path = Path::new("archive").join(archive);
            Trouble::Source(Error::io("can not read", path, error))
        };
        let dir = source.open(self.root).map_err(Trouble::Source)?;
        let mut attempt = 1;
        let (new, copied, looked) = loop {
            let looked = source
                .look(self.root, self.context)
                .map_err(source_or_stop)?;
            let opened = dir.open_file(archive).map_err(unread)?;
            let mut seen = Meta::of(&opened).map_err(unread)?;
            let before = seen;
            seen.mode = 0o600;
            let copied = disk::copy_file(
                &opened,
                &seen,
                into,
                &mut Identity,
                &mut Buffers::new(),
                self.context.stop,
            );
            let (new, copied) = copied.map_err(|error| match error {
                CopyError::Read(error) => unread(error),
                CopyError::Write(error) => self.of_store(error, Path::new(&file)),
                CopyError::Stopped => Trouble::Store(stopped(self.context)),
            })?;
            if copied.source.same_state(&before) {
                // An archive comes back with the time that it had.
                new.dress(None, 0o600, before.mtime)
                    .map_err(|e| self.of_store(e, Path::new(&file)))?;
                break (new, copied, looked);
            }
            if attempt == ATTEMPTS {
                return Err(Trouble::Source(
                    Error::failed("was changed while it was copied:")
                        .at(Path::new("archive").join(archive)),
                ));
            }
            attempt += 1;
            std::thread::sleep(PAUSE);
        };
        self.context.progress.advance(1, copied.size);
        let again = new.file().try_clone();
        let again = again.map_err(|e| self.of_store(e, Path::new(&file)))?;
        let held = Pack::of(again, &self.store.path().join(&file));
        let damage = self.damage(&held)?;
        // What it holds, as far as it says so itself: one that was made by hand is kept all the same.
        let counts = held.ok().and_then(|pack| {
            let members = &pack.manifest()?.members;
            Some(home::counts_of(members))
        });
        failpoint::hit("backup.copy");
        new.publish_over(name.as_ref())
            .map_err(|e| self.of_store(e, Path::new(&file)))?;
        let total = counts.as_ref().map(home::Counts::total).unwrap_or_default();
        let pack = PackRef {
            file,
            form: Form::Archive,
            at: self.at,
            bytes: copied.size,
            blake3: copied.digest.to_hex().to_string(),
            files: total.files,
            content: total.bytes,
            turns: counts.map(|counts| counts.turns),
            seen: looked.seen,
            restless: 0,
            unreadable: u64::from(damage.is_some()),
            flaws: Vec::from_iter(damage),
        };
        Ok(Made {
            pack,
            manifest: None,
        })
    }

    /// What is wrong with a copied archive, if anything is: it may have been damaged before it was copied, and must not
    /// take the place of a copy that is whole.
    fn damage(&self, archive: &Result<Pack>) -> Result<Option<Flaw>, Trouble> {
        let read = match archive {
            Ok(pack) => pack::verify(pack, self.context).map(|read| {
                let problem = read.problems.into_iter().next();
                problem.map(|problem| format!("{}: {}", problem.part, problem.what))
            }),
            Err(error) => Ok(Some(error.to_string())),
        };
        let why = match read {
            Ok(why) => why,
            Err(error) if error.kind() == Kind::Interrupted => return Err(Trouble::Store(error)),
            Err(error) => Some(error.to_string()),
        };
        Ok(why.map(|why| Flaw {
            path: PathBuf::new().into(),
            kind: FlawKind::Unreadable,
            why: format!("the archive is damaged: {why}"),
        }))
    }

    fn of_store(&self, error: std::io::Error, file: &Path) -> Trouble {
        let full = is_full(&error);
        let error = Error::io("can not write", self.store.path().join(file), error);
        match full {
            true => Trouble::Full,
            false => Trouble::Store(error),
        }
    }

    fn writing(&self, error: Error, file: &str) -> Trouble {
        let full = error.io_cause().is_some_and(is_full);
        let error = match error.path() {
            Some(_) => error,
            None => error.at(self.store.path().join(file)),
        };
        match full {
            true => Trouble::Full,
            false => Trouble::Store(error),
        }
    }
}

fn source_or_stop(error: Error) -> Trouble {
    match error.kind() {
        Kind::Interrupted => Trouble::Store(error),
        _ => Trouble::Source(error),
    }
}

fn stopped(context: &Context) -> Error {
    let done = context.stop.check();
    done.err().unwrap_or_else(|| Error::failed("interrupted"))
}

/// Whether there is no room for it.
pub(super) fn is_full(error: &std::io::Error) -> bool {
    base::is_full(error) || error.kind() == std::io::ErrorKind::FileTooLarge
}

/// The name of a pack.
fn pack_name(at: Timestamp, form: Form) -> String {
    let mark = match form {
        Form::Packed => "",
        Form::Archive => "-archive",
    };
    format!("{}{mark}{}", stamp::name(at), pack::ENDING)
}

/// The moment in the name of a pack; `None` of a name that this program does not give.
pub(super) fn moment_of(name: &str) -> Option<Timestamp> {
    let name = name.strip_suffix(pack::ENDING)?;
    stamp::read(name.strip_suffix("-archive").unwrap_or(name))
}

/// In which way a thing holds less than its last complete pack, if it does: turns of a session or databases of the
/// application that are gone, or more than half of its bytes. Logs do not count: they are there to be cut.
///
/// What could not be read is not gone. The last complete pack is kept beside a partial one, and compared with the next
/// complete one.
pub(super) fn shrunk(store: &Store, last: &PackRef, now: &Made) -> Option<String> {
    if !now.pack.is_complete() {
        return None;
    }
    let (before, after) = (
        held(store, last, None),
        held(store, &now.pack, now.manifest.as_ref()),
    );
    let (lost, all, [before, after]) = match (before, after) {
        (Some(before), Some(after)) => {
            let lost = before.parts.difference(&after.parts).count() as u64;
            (lost, before.parts.len() as u64, [before.bytes, after.bytes])
        }
        // One of them does not say what it holds, but how much.
        _ => match (last.turns, now.pack.turns) {
            (Some(before), Some(after)) => {
                let bytes = [last, &now.pack].map(|pack| pack.content);
                (before.saturating_sub(after), before, bytes)
            }
            // Not even that: an archive that somebody else made.
            _ => return None,
        },
    };
    if lost > 0 {
        let [lost, all] = [lost, all].map(crate::base::human::count);
        let what = match is_of_databases(last) {
            true => "databases",
            false => "turns",
        };
        return Some(format!("{lost} of the {all} {what} gone"));
    }
    (after.saturating_mul(2) < before).then(|| {
        let [before, after] = [before, after].map(crate::base::human::size);
        format!("{after} of the {before} left")
    })
}

fn is_of_databases(pack: &PackRef) -> bool {
    Path::new(&pack.file).starts_with(StatePart::Databases.packs())
}

/// What a pack gives back.
struct Held {
    /// Turns of a session, or databases of the application: each of them is missed.
    parts: BTreeSet<PathBuf>,
    /// Without those of a session's logs.
    bytes: u64,
}

fn held(store: &Store, pack: &PackRef, manifest: Option<&Manifest>) -> Option<Held> {
    let of = |manifest: &Manifest| {
        let members = manifest.members.iter();
        let is_log = |member: &&Member| pack.turns.is_some() && member.path.starts_with("logs");
        let kept = members.filter(|member| !is_log(member));
        let parts = match is_of_databases(pack) {
            true => files_in(manifest),
            false => turns_in(manifest),
        };
        Held {
            parts,
            bytes: kept.map(|member| member.size).sum(),
        }
    };
    match manifest {
        Some(manifest) => Some(of(manifest)),
        None => store.pack(pack).ok()?.manifest().map(of),
    }
}

/// The turns that a pack gives back. One that is empty is none: so do sync clients leave them. What vanished before it was
/// read is zeros there: the pack before this one has it, and has to be kept for that.
fn turns_in(manifest: &Manifest) -> BTreeSet<PathBuf> {
    let flaws = manifest.flaws.iter();
    let vanished: BTreeSet<&Path> = flaws
        .filter(|flaw| flaw.kind == FlawKind::Vanished)
        .map(|flaw| &*flaw.path)
        .collect();
    let turn = |path: &Path| {
        let name = path.file_name()?;
        let is_turn = path.parent() == Some(Path::new("context")) && turn_number(name).is_some();
        (is_turn && !vanished.contains(path)).then(|| path.to_path_buf())
    };
    let is_empty = |member: &&Member| member.kind == MemberKind::File && member.size == 0;
    let members = manifest.members.iter();
    let filled = members.filter(|member| !is_empty(member));
    filled.filter_map(|member| turn(&member.path)).collect()
}

fn files_in(manifest: &Manifest) -> BTreeSet<PathBuf> {
    let members = manifest.members.iter();
    let files = members.filter(|member| member.kind == MemberKind::File);
    files.map(|member| member.path.to_path_buf()).collect()
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::base::{FixedClock, NoProgress, Stop};

    #[test]
    fn a_turn_that_vanished_before_it_was_read_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let context = folder.path().join("context");
        std::fs::create_dir(&context).unwrap();
        for n in 1..=3 {
            std::fs::write(context.join(format!("turn_00{n}.json")), "{}").unwrap();
        }
        let (clock, stop) = (FixedClock::new(Timestamp::UNIX_EPOCH), Stop::new());
        let ctx = Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &stop,
        };
        let dir = Dir::open(folder.path()).unwrap();
        let survey = pack::survey(&dir, "a", &|_, _| false, &ctx).unwrap();
        std::fs::remove_file(context.join("turn_002.json")).unwrap();
        let about = About {
            created_at: Timestamp::UNIX_EPOCH,
            entry: None,
        };
        let into = tempfile::tempfile().unwrap();
        let packed = pack::write(&into, &dir, survey, about, 1, 1, &ctx).unwrap();
        let turns = turns_in(&packed.manifest);
        assert_eq!(turns.len(), 2);
        assert!(!turns.contains(Path::new("context/turn_002.json")));
    }
}
