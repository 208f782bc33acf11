//! Three states of a session: what is here, what is there, and what we have put there. Whoever has changed since.
//!
//! A file whose facts are those of the record is not opened. Any other is read, and then its content decides: that a
//! sync client has written the same bytes anew is no change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde::Serialize;

use super::record::{Begun, Holds, Names, Noted, Put, Seen};
use super::side::Side;
use crate::base::wire::WirePath;
use crate::base::{Error, Kind, Result, Stop};
use crate::disk::{self, Buffers, CopyError, Dir, FileKind, Identity, Meta};
use crate::home::{RelayMode, is_log};
use crate::pack::short_digest;
use crate::secrets::{Check, Match};

/// A file from this size on is looked at for secrets alone.
const LARGE: u64 = 4 << 20;

/// What has to be done in the relay for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It comes: this is what it holds here.
    Put,
    /// It takes the place of what we have put there, or of what is the same.
    Replace(Box<Meta>),
    /// What we have put there goes.
    Remove(Box<Meta>),
}

/// A name that is not there as we have put it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// What happened to it there.
    pub there: Happened,
    /// When it was changed there, as far as it tells.
    pub changed_there: Option<Timestamp>,
    /// Whether it was changed here as well.
    pub here_too: bool,
    /// When it was changed here, as far as it tells.
    pub changed_here: Option<Timestamp>,
}

/// What happened to a name in the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happened {
    /// It came.
    Added,
    /// It holds something else.
    Changed,
    /// It went.
    Deleted,
}

/// A secret in what would leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// Below the session; a name that holds a secret itself is cut off there.
    #[serde(flatten)]
    pub path: WirePath,
    /// What was found.
    #[serde(flatten)]
    pub found: Match,
}

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct Compared {
    /// What has to be done, by name.
    pub changes: BTreeMap<PathBuf, Change>,
    /// What is here, as it will be recorded; without what it will be there.
    pub names: Names,
    /// What somebody else has done there.
    pub differences: Vec<Difference>,
    /// Secrets in what would leave, or has left already.
    pub leaks: Vec<Leak>,
    /// Findings that a person allows.
    pub allowed: u64,
    /// What could not be read on either side, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Files that were written to in place while both sides are one file.
    pub written_through: u64,
    /// Bytes of what has to be put.
    pub bytes: u64,
    /// Whether the record has to be written for this session, though nothing changes there.
    pub renewed: bool,
    /// Whether something is another here than we have put there.
    pub changed_here: bool,
    /// When that was, as far as it tells.
    pub changed_here_at: Option<Timestamp>,
}

/// A tree that has grown name by name has leaves that are half empty, and those of all sessions wait until they are carried.
fn full<V>(names: BTreeMap<PathBuf, V>) -> BTreeMap<PathBuf, V> {
    names.into_iter().collect()
}

/// What a comparison goes by.
pub struct Comparison<'a> {
    /// The id of the session, for rules that look at paths.
    pub id: &'a str,
    /// Here; none when it is to leave the relay.
    pub here: Option<&'a Side>,
    /// There; none when there is nothing.
    pub there: Option<&'a Side>,
    /// What we have put there.
    pub put: Option<&'a Put>,
    /// What a killed sync was about to leave there.
    pub begun: Option<&'a Begun>,
    /// How files get there.
    pub mode: RelayMode,
    /// Whether logs go there. If not, those of other devices are none of ours.
    pub logs: bool,
    /// What finds secrets; none when they are not asked for.
    pub check: Option<&'a Check>,
    /// Whether what has not changed is looked at for secrets, too: the rules are others.
    pub all_again: bool,
    /// Whether what stands there counts as put by us, whatever it is: a person has said so.
    pub ours: bool,
    /// Whether all that is there has to go: then everything in it counts, logs and what can not travel, too.
    pub whole: bool,
    /// Of a session that leaves: its folder here, or in the trash.
    pub kept: Option<&'a Side>,
    /// Of a session that leaves: the digests of what its archive holds ([`short_digest`]).
    pub archived: Option<&'a BTreeMap<PathBuf, String>>,
    /// Held by who reads a large file: each takes as much memory as a window on it.
    pub large: &'a Mutex<()>,
    /// Whether to stop.
    pub stop: &'a Stop,
}

impl Comparison<'_> {
    /// Compares.
    ///
    /// # Errors
    /// Interruption.
    pub fn run(&self) -> Result<Compared> {
        let mut compared = Compared::default();
        for side in [self.here, self.there].into_iter().flatten() {
            compared.unreadable.extend(side.unreadable.iter().cloned());
        }
        let mut buffers = Buffers::new();
        for path in self.paths() {
            self.stop.check()?;
            if let Err(error) = self.name(path, &mut compared, &mut buffers) {
                if error.kind() == io::ErrorKind::Interrupted {
                    return Err(Error::new(Kind::Interrupted, "interrupted"));
                }
                let why = crate::base::human::io(&error);
                compared.unreadable.push((path.clone(), why));
            }
        }
        self.temporary(&mut compared, &mut buffers)?;
        if let (Some(there), true) = (self.there, self.whole) {
            let odd = there.odd.iter();
            compared.differences.extend(odd.map(|path| Difference {
                path: path.clone().into(),
                there: Happened::Added,
                changed_there: None,
                here_too: false,
                changed_here: None,
            }));
        }
        compared.names = full(compared.names);
        compared.changes = full(compared.changes);
        // What can not be seen is not gone.
        let unseen = compared.unreadable.clone();
        let unseen = |path: &Path| unseen.iter().any(|(folder, _)| path.starts_with(folder));
        compared
            .differences
            .retain(|one| one.there != Happened::Deleted || !unseen(&one.path));
        Ok(compared)
    }

    /// What a sync that was killed has left under temporary names, if that was ours. A file that was renamed aside to be
    /// looked at may be somebody else's: what nobody here knows the content of is told, and stays.
    fn temporary(&self, compared: &mut Compared, buffers: &mut Buffers) -> Result<()> {
        // Where nothing of ours was begun they are another device's: nothing, unless all has to go.
        let Some(there) = self.there.filter(|_| self.begun.is_some() || self.whole) else {
            return Ok(());
        };
        let begun = self.begun.into_iter().flat_map(BTreeMap::values);
        let put = self.put.into_iter().flat_map(|put| put.names.values());
        let here = compared.names.values().chain(put).map(|noted| &noted.holds);
        let known: Vec<Holds> = begun.flatten().flatten().chain(here).cloned().collect();
        for (path, meta) in &there.temporary {
            self.stop.check()?;
            match read(there, path, meta, buffers, self.stop) {
                Ok(holds) if known.contains(&holds) || self.ours => {
                    compared
                        .changes
                        .insert(path.clone(), Change::Remove(Box::new(*meta)));
                }
                Ok(_) => {
                    let told = difference(path, None, Some(meta), None, false);
                    compared.differences.push(told);
                }
                Err(error) => {
                    let why = crate::base::human::io(&error);
                    compared.unreadable.push((path.clone(), why));
                }
            }
        }
        Ok(())
    }

    /// Looks at what is here alone: for a session that is shown as it is, and of which nothing is put there.
    ///
    /// # Errors
    /// Interruption.
    pub fn look(&self) -> Result<Compared> {
        let mut compared = Compared::default();
        let mut buffers = Buffers::new();
        let Some(here) = self.here else {
            return Ok(compared);
        };
        compared.unreadable.clone_from(&here.unreadable);
        for (path, meta) in &here.names {
            self.stop.check()?;
            let put = self.put.and_then(|put| put.noted(path));
            match self.here_holds(here, path, meta, put, &mut compared, &mut buffers) {
                Ok(holds) => {
                    let noted = Noted {
                        holds,
                        looked: Some(Box::new(Seen::of(meta))),
                        put: true,
                        mode: meta.mode,
                        here: (!disk::is_fresh(meta)).then(|| Seen::of(meta)),
                        there: None,
                    };
                    compared.names.insert(path.clone(), Box::new(noted));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(Error::new(Kind::Interrupted, "interrupted"));
                }
                Err(error) => {
                    let why = crate::base::human::io(&error);
                    compared.unreadable.push((path.clone(), why));
                }
            }
        }
        Ok(compared)
    }

    fn paths(&self) -> BTreeSet<&PathBuf> {
        let put = self.put.map(|put| &put.names);
        let here = self.here.map(|here| &here.names);
        let there = self.there.map(|there| &there.names);
        let ours = |path: &&PathBuf| {
            let put = put.is_some_and(|put| put.contains_key(*path));
            self.logs || self.whole || put || !is_log(path)
        };
        let theirs = there.into_iter().flat_map(BTreeMap::keys).filter(ours);
        here.into_iter()
            .flat_map(BTreeMap::keys)
            .chain(theirs)
            .chain(put.into_iter().flat_map(BTreeMap::keys))
            .collect()
    }

    fn name(
        &self,
        path: &PathBuf,
        compared: &mut Compared,
        buffers: &mut Buffers,
    ) -> io::Result<()> {
        let here = self.here.and_then(|here| here.names.get(path));
        let there = self.there.and_then(|there| there.names.get(path));
        let put = self.put.and_then(|put| put.noted(path));
        let holds_there = match (there, self.there) {
            (Some(meta), Some(side)) => Some(self.there_holds(side, path, meta, put, buffers)?),
            _ => None,
        };
        let holds_here = match (here, self.here) {
            (Some(meta), Some(side)) => {
                let holds = self.here_holds(side, path, meta, put, compared, buffers)?;
                let linked = self.mode == RelayMode::Hardlink
                    && there.is_some_and(|there| there.identity() == meta.identity());
                let other = put.is_some_and(|put| put.holds != holds);
                compared.written_through += u64::from(linked && other);
                Some(holds)
            }
            _ => None,
        };
        self.note_change_here(here, holds_here.as_ref(), put, compared);
        let same = holds_here == holds_there;
        let as_put = same
            || self.is_as_put(path, holds_there.as_ref(), put)
            || there.is_some_and(|meta| self.is_still_here(path, meta, holds_there.as_ref(), put));
        if !as_put && !self.ours {
            let here_too = holds_here.as_ref() != put.map(|put| &put.holds);
            compared
                .differences
                .push(difference(path, here, there, put, here_too));
            return Ok(());
        }
        let change = self.change(path, same, here, there, put);
        if let Some(change) = change {
            if let (Change::Put | Change::Replace(_), Some(meta)) = (&change, here)
                && meta.kind == FileKind::File
            {
                compared.bytes += meta.size;
            }
            compared.changes.insert(path.clone(), change);
        }
        if let (Some(holds), Some(meta)) = (holds_here, here) {
            let settled = |meta: &&Meta| !disk::is_fresh(meta);
            let noted = Noted {
                holds,
                looked: Some(Box::new(Seen::of(meta))),
                put: same,
                mode: meta.mode,
                here: Some(meta).filter(settled).map(Seen::of),
                there: there.filter(|_| same).filter(settled).map(Seen::of),
            };
            compared.renewed |= !put.is_some_and(|put| put.is_recorded_as(&noted));
            compared.names.insert(path.clone(), Box::new(noted));
        } else {
            compared.renewed |= put.is_some();
        }
        Ok(())
    }

    /// What has to be done in the relay, when what is there is ours to change or the same as here.
    fn change(
        &self,
        path: &Path,
        same: bool,
        here: Option<&Meta>,
        there: Option<&Meta>,
        put: Option<&Noted>,
    ) -> Option<Change> {
        match (here, there) {
            (None, None) => None,
            (Some(_), None) => Some(Change::Put),
            // A folder that somebody else has made is nobody's content, and theirs.
            (None, Some(there)) if there.kind == FileKind::Folder && put.is_none() => None,
            (None, Some(there)) => Some(Change::Remove(Box::new(*there))),
            (Some(here), Some(there)) => {
                let is_file = here.kind == FileKind::File && there.kind == FileKind::File;
                let one = here.identity() == there.identity();
                let as_wanted = !is_file || one == is_linked(self.mode, path);
                // Modes are kept from here to there; a sync client that does not keep them is not fought.
                let mode = put.is_none_or(|put| put.mode == here.mode);
                (!same || !as_wanted || !mode && is_file).then(|| Change::Replace(Box::new(*there)))
            }
        }
    }

    /// Whether what stands there is what we have put there, or were about to. Folders are nobody's content.
    fn is_as_put(&self, path: &Path, there: Option<&Holds>, put: Option<&Noted>) -> bool {
        let put = put.map(|put| &put.holds);
        let nothing = |holds: Option<&Holds>| matches!(holds, None | Some(Holds::Folder));
        let mut begun = self
            .begun
            .and_then(|begun| begun.get(path))
            .into_iter()
            .flatten();
        there == put || nothing(there) && nothing(put) || begun.any(|begun| begun.as_ref() == there)
    }

    /// Whether a hard link of ours, through which somebody has written since, is not the last name of what it holds now.
    fn is_still_here(
        &self,
        path: &Path,
        meta: &Meta,
        there: Option<&Holds>,
        put: Option<&Noted>,
    ) -> bool {
        let recorded = self.put.is_some_and(|put| put.mode == RelayMode::Hardlink)
            && put.is_some_and(|put| put.there.is_some_and(|seen| seen.same_file(meta)));
        let begun = self.begun.is_some_and(|begun| begun.contains_key(path));
        let ours = recorded || begun && self.mode == RelayMode::Hardlink;
        let kept = self.kept.and_then(|kept| kept.names.get(path));
        let kept = kept.is_some_and(|kept| kept.identity() == meta.identity());
        let archived = || match (self.archived.and_then(|files| files.get(path)), there) {
            (Some(archived), Some(Holds::File(there))) => *archived == short_digest(there),
            _ => false,
        };
        ours && (kept || archived())
    }

    fn note_change_here(
        &self,
        here: Option<&Meta>,
        holds: Option<&Holds>,
        put: Option<&Noted>,
        compared: &mut Compared,
    ) {
        let former = put.map(|put| &put.holds);
        let folder = |holds: Option<&Holds>| matches!(holds, None | Some(Holds::Folder));
        if self.put.is_none() || holds == former || folder(holds) && folder(former) {
            return;
        }
        let at = here.map(|meta| meta.mtime.timestamp());
        compared.changed_here = true;
        compared.changed_here_at = compared.changed_here_at.max(at);
    }

    fn there_holds(
        &self,
        side: &Side,
        path: &Path,
        meta: &Meta,
        put: Option<&Noted>,
        buffers: &mut Buffers,
    ) -> io::Result<Holds> {
        match put {
            Some(put) if put.there == Some(Seen::of(meta)) => Ok(put.holds.clone()),
            _ => read(side, path, meta, buffers, self.stop),
        }
    }

    /// What is here, looked at for secrets where that has not been done.
    fn here_holds(
        &self,
        side: &Side,
        path: &Path,
        meta: &Meta,
        put: Option<&Noted>,
        compared: &mut Compared,
        buffers: &mut Buffers,
    ) -> io::Result<Holds> {
        let known = put.filter(|put| put.here == Some(Seen::of(meta)));
        if let Some(known) = known
            && !self.all_again
        {
            return Ok(known.holds.clone());
        }
        let Some(check) = self.check else {
            return read(side, path, meta, buffers, self.stop);
        };
        let told = Path::new("sessions").join(self.id).join(path);
        let mut leaks = check.name(path);
        let holds = match meta.kind {
            FileKind::File => {
                let (dir, name) = parent(&side.dir, path)?;
                let file = dir.open_file(name)?;
                let _alone = (meta.size > LARGE).then(|| self.large.lock());
                let checked = check.beginning(&told, &file, meta.size, self.stop)?;
                compared.allowed += checked.allowed;
                leaks.extend(checked.findings);
                Holds::File(checked.digest)
            }
            _ => {
                let holds = read(side, path, meta, buffers, self.stop)?;
                if let Holds::Link(target) = &holds {
                    use std::os::unix::ffi::OsStrExt as _;
                    leaks.extend(check.name(Path::new(OsStr::from_bytes(target))));
                }
                holds
            }
        };
        if !leaks.is_empty() {
            let shown = check.shown(path);
            compared.leaks.extend(leaks.into_iter().map(|found| Leak {
                path: shown.clone().into(),
                found,
            }));
        }
        Ok(holds)
    }
}

/// Whether a file is one here and there. A log never is: one that has another name can not be cut.
pub(super) fn is_linked(mode: RelayMode, path: &Path) -> bool {
    mode == RelayMode::Hardlink && !is_log(path)
}

fn difference(
    path: &Path,
    here: Option<&Meta>,
    there: Option<&Meta>,
    put: Option<&Noted>,
    here_too: bool,
) -> Difference {
    Difference {
        path: path.to_path_buf().into(),
        there: match (put, there) {
            (_, None) => Happened::Deleted,
            (None, Some(_)) => Happened::Added,
            (Some(_), Some(_)) => Happened::Changed,
        },
        changed_there: there.map(|meta| meta.mtime.timestamp()),
        here_too,
        changed_here: here.map(|meta| meta.mtime.timestamp()),
    }
}

/// The folder that a path below another lies in, opened, and its name there.
pub(super) fn parent<'p>(dir: &Dir, path: &'p Path) -> io::Result<(Dir, &'p OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok((dir.open_beneath(parent)?, name))
}

/// What a name holds, read from the disk.
pub(super) fn read(
    side: &Side,
    path: &Path,
    meta: &Meta,
    buffers: &mut Buffers,
    stop: &Stop,
) -> io::Result<Holds> {
    if meta.kind == FileKind::Folder {
        return Ok(Holds::Folder);
    }
    let (dir, name) = parent(&side.dir, path)?;
    if meta.kind == FileKind::Symlink {
        return Ok(Holds::Link(dir.read_link(name)?));
    }
    let file = dir.open_file(name)?;
    let now = Meta {
        size: meta.size,
        ..Meta::of(&file)?
    };
    if now.kind != FileKind::File {
        return Err(io::Error::other("it is no file any more"));
    }
    let digest = disk::digest_of_copy(&file, &now, &mut Identity, buffers, stop);
    match digest {
        Ok((_, digest)) => Ok(Holds::File(digest)),
        Err(CopyError::Read(error) | CopyError::Write(error)) => Err(error),
        Err(CopyError::Stopped) => Err(io::ErrorKind::Interrupted.into()),
    }
}
