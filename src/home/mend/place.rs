//! Doing one step: look at the facts, do it in one rename where that can be, say what was done.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::{CHANGED, INDEX, INDEX_CHANGED, Instead, Left, Said, Seen};
use crate::base::{Context, Error, Kind, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, Meta, Written};
use crate::home::LockedHome;
use crate::home::journal::below;
use crate::home::trash::{self, Mark, TRASH};
use crate::pack::{self, Difference, Pack};

/// Where steps are done.
pub(super) struct Place<'h> {
    pub(super) home: &'h LockedHome,
    pub(super) root: &'h Dir,
    pub(super) context: &'h Context<'h>,
}

/// A name in an open folder.
type Named = (Dir, OsString);

impl Place<'_> {
    /// The folder that holds a path of the home and the name in it, when both are there.
    fn find(&self, path: &Path) -> Result<Option<(Named, Meta)>> {
        let fail = |e| Error::io("can not look at", path, e);
        let Some((dir, name)) = below(self.root, path).map_err(fail)? else {
            return Ok(None);
        };
        let meta = dir.find(&name).map_err(fail)?;
        Ok(meta.map(|meta| ((dir, name), meta)))
    }

    /// The folder that a path belongs into, made if it is missing.
    fn make_way(&self, path: &Path) -> Result<Named> {
        let fail = |e| Error::io("can not make the folder for", path, e);
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut at = self.root.open_beneath(Path::new("")).map_err(fail)?;
        for name in parent {
            let next = match at.open_beneath(Path::new(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    at.make(name).map_err(fail)?;
                    at.sync().map_err(fail)?;
                    at.open_beneath(Path::new(name))
                }
                next => next,
            };
            at = next.map_err(fail)?;
        }
        Ok((at, path.file_name().unwrap_or_default().to_owned()))
    }

    /// Renames something, never over what is there; makes that durable on both sides.
    fn rename(&self, from: &Named, to: &Named, path: &Path) -> Result<()> {
        from.0
            .rename(&from.1, &to.0, &to.1)
            .and_then(|()| to.0.sync())
            .and_then(|()| from.0.sync())
            .map_err(|e| Error::io("can not be moved:", path, e))
    }

    pub(super) fn put_away(
        &self,
        path: &Path,
        to: (&str, &Path),
        seen: &Seen,
        held_by: Option<&Path>,
    ) -> Result<Said> {
        let Some((from, meta)) = self.find(path)? else {
            return Ok(Said::Nothing);
        };
        if !seen.fits(&meta) {
            // Before a kill it went, and what is there has taken its place since.
            let gone = self.find(&in_act(to.0, to.1))?;
            return Ok(match gone.is_some_and(|(_, meta)| seen.fits(&meta)) {
                true => Said::Nothing,
                false => left(path, CHANGED),
            });
        }
        if let Some(original) = held_by
            && !self.holds(original, &from, path)?
        {
            let why = format!("it is not all in {}", human::path(original));
            return Ok(left(path, why));
        }
        let to = self.make_way(&in_act(to.0, to.1))?;
        self.rename(&from, &to, path)?;
        failpoint::hit("mend.put-away");
        Ok(Said::Did(format!(
            "put {} into the trash",
            human::path(path)
        )))
    }

    fn holds(&self, original: &Path, copy: &Named, path: &Path) -> Result<bool> {
        let Some((first, _)) = self.find(original)? else {
            return Ok(false);
        };
        let stop = self.context.stop;
        disk::holds_all((&first.0, &first.1), (&copy.0, &copy.1), stop).map_err(|e| {
            match stop.check() {
                Err(interrupted) => interrupted,
                Ok(()) => Error::io("can not be compared:", path, e),
            }
        })
    }

    pub(super) fn bring_back(&self, lies: (&str, &Path), path: &Path) -> Result<Said> {
        let Some((from, _)) = self.find(&in_act(lies.0, lies.1))? else {
            return Ok(Said::Nothing);
        };
        let to = self.make_way(path)?;
        if to.0.find(&to.1).is_ok_and(|there| there.is_some()) {
            let why = format!(
                "something else has its place meanwhile; it is in {}, whole",
                human::path(&in_act(lies.0, lies.1))
            );
            return Ok(left(path, why));
        }
        self.rename(&from, &to, path)?;
        failpoint::hit("mend.brought-back");
        Ok(Said::Did(format!("put {} back", human::path(path))))
    }

    pub(super) fn copy(
        &self,
        from: &Path,
        seen: &Seen,
        path: &Path,
        instead: Option<&Instead>,
    ) -> Result<Said> {
        let Some((source, meta)) = self.find(from)? else {
            return Ok(Said::Nothing);
        };
        if !seen.fits(&meta) {
            return Ok(left(from, CHANGED));
        }
        let there = self.find(path)?;
        let replaced = match (&there, instead) {
            (None, _) => None,
            (Some((_, meta)), Some(instead)) if instead.seen.fits(meta) => Some(instead),
            // Copied already.
            (Some((_, now)), _) if now.size == meta.size && self.holds(path, &source, from)? => {
                return Ok(Said::Nothing);
            }
            (Some(_), _) => return Ok(left(path, "something else stands there meanwhile")),
        };
        // What it takes the place of; after a kill that lies in the act already.
        let former = match (&there, instead) {
            (Some((_, meta)), _) => Some(*meta),
            (None, Some(i)) => self.find(&in_act(&i.act, &i.lies))?.map(|(_, meta)| meta),
            (None, None) => None,
        };
        let to = self.make_way(path)?;
        let publish = |make: &mut dyn FnMut() -> io::Result<()>| -> Result<()> {
            if let (Some((former, _)), Some(instead)) = (&there, replaced) {
                let kept = self.make_way(&in_act(&instead.act, &instead.lies))?;
                self.rename(former, &kept, path)?;
                failpoint::hit("mend.replaced");
            }
            make()
                .and_then(|()| to.0.sync())
                .map_err(|e| Error::io("can not write", path, e))
        };
        match meta.kind {
            FileKind::Symlink => {
                let fail = |e| Error::io("can not read", from, e);
                let target = source.0.read_link(&source.1).map_err(fail)?;
                publish(&mut || {
                    to.0.symlink(&target, &to.1)?;
                    to.0.set_time_of(&to.1, meta.mtime)
                })?;
            }
            _ => {
                let stop = self.context.stop;
                // Complete, read back and compared before it has a name.
                let mut copy = disk::duplicate(&source.0, &source.1, &to.0, stop)
                    .map_err(|e| copy_error(e, from, path))?;
                // Who may read a file does not change with what it holds.
                if let Some(former) = former.filter(|former| former.kind == FileKind::File) {
                    let owner = disk::is_root().then_some((former.uid, former.gid));
                    disk::dress_file(copy.file(), owner, former.mode, meta.mtime)
                        .and_then(|()| copy.sync())
                        .map_err(|e| Error::io("can not write", path, e))?;
                }
                publish(&mut || copy.publish(&to.1))?;
            }
        }
        failpoint::hit("mend.copied");
        let (from, path) = (human::path(from), human::path(path));
        Ok(Said::Did(format!("copied {from} to {path}")))
    }

    pub(super) fn folder(&self, like: &Path, path: &Path) -> Result<Said> {
        let fail = |e| Error::io("can not make the folder", path, e);
        let Ok(model) = self.root.open_beneath(like) else {
            return Ok(Said::Nothing);
        };
        let meta = model.meta().map_err(fail)?;
        let made = match self.find(path)? {
            // As it is made: a kill came before it got its mode.
            Some((_, there)) if there.kind == FileKind::Folder && there.mode == MADE => {
                self.root.open_beneath(path).map_err(fail)?
            }
            Some(_) => return Ok(Said::Nothing),
            None => {
                let (dir, name) = self.make_way(path)?;
                let made = dir.make(&name).and_then(|()| dir.sync());
                made.map_err(fail)?;
                failpoint::hit("mend.folder-made");
                dir.open_beneath(Path::new(&name)).map_err(fail)?
            }
        };
        let dress = || {
            if disk::is_root() {
                made.set_owner(meta.uid, meta.gid)?;
            }
            made.set_mode(meta.mode)?;
            made.sync()
        };
        dress().map_err(fail)?;
        Ok(Said::Nothing)
    }

    pub(super) fn prune(&self, path: &Path) -> Result<Said> {
        let Some(((dir, name), meta)) = self.find(path)? else {
            return Ok(Said::Nothing);
        };
        if meta.kind == FileKind::Folder {
            // Fails, as it should, when something lies in it.
            let _ = dir.remove_folder(&name).and_then(|()| dir.sync());
        }
        Ok(Said::Nothing)
    }

    /// Removes a folder of the trash that a pack holds: what is in the pack, and nothing else.
    fn discard_folder(
        &self,
        path: &Path,
        (dir, name): (&Dir, &OsStr),
        kept_in: &Path,
        kept_seen: &Seen,
    ) -> Result<Vec<Difference>> {
        let pack = Pack::open(&self.home.root().join(kept_in))?;
        // Of the file that was opened, and of its name: right before the first thing goes.
        let stands = |place: &Self| -> Result<bool> {
            let named = place.find(kept_in)?;
            let named = named.is_some_and(|(_, meta)| kept_seen.fits(&meta));
            Ok(named && kept_seen.fits(pack.meta()))
        };
        let Some(manifest) = pack.manifest() else {
            let what = "says nothing of what it holds, so that nothing is removed:";
            return Err(Error::failed(what).at(pack.path()));
        };
        let act = path
            .strip_prefix(TRASH)
            .ok()
            .and_then(|rel| rel.iter().next());
        if let Some(act) = act.and_then(OsStr::to_str) {
            // From here on it is no whole session any more, and may not be brought back as one.
            let why = format!(
                "what is left of {} after all that {} holds was removed",
                human::path(path),
                human::path(kept_in)
            );
            if !stands(self)? {
                return Err(Error::failed(CHANGED).at(pack.path()));
            }
            trash::let_go(self.home, act, &why)?;
        }
        if !stands(self)? {
            return Err(Error::failed(
                "has been replaced, and the session's folder stays in the trash:",
            )
            .at(pack.path())
            .hint(format!("it is in {}, whole", human::path(path))));
        }
        pack::discard(manifest, dir, name)
    }

    pub(super) fn discard(
        &self,
        path: &Path,
        seen: &Seen,
        kept_in: &Path,
        kept_seen: &Seen,
    ) -> Result<Said> {
        let Some(((dir, name), meta)) = self.find(path)? else {
            return Ok(Said::Nothing);
        };
        if !seen.fits(&meta) {
            return Ok(left(path, CHANGED));
        }
        // The proof must still stand at the moment when the other is removed.
        match self.find(kept_in)? {
            Some((_, kept)) if kept_seen.fits(&kept) => {}
            _ => {
                let why = format!(
                    "{}, which holds all of it, has changed meanwhile",
                    human::path(kept_in)
                );
                return Ok(left(path, why));
            }
        }
        let fail = |e| Error::io("can not remove", path, e);
        let rest = match meta.kind {
            FileKind::Folder => self.discard_folder(path, (&dir, &name), kept_in, kept_seen)?,
            _ => {
                dir.unlink(&name).map_err(fail)?;
                Vec::new()
            }
        };
        dir.sync().map_err(fail)?;
        failpoint::hit("mend.discarded");
        if let Some(first) = rest.first() {
            let n = human::plural(rest.len() as u64, "thing", "things");
            let why = format!(
                "{n} in it came or changed after it had been compared with {}, such as {}: what is left there is only that",
                human::path(kept_in),
                human::path(&first.path)
            );
            return Ok(left(path, why));
        }
        Ok(Said::Did(format!(
            "removed {}, all of which is in {}",
            human::path(path),
            human::path(kept_in)
        )))
    }

    pub(super) fn mode(&self, path: &Path, before: u32, after: u32) -> Result<Said> {
        let fail = |e| Error::io("can not set the mode of", path, e);
        let dir = self.root.open_beneath(path).map_err(fail)?;
        if dir.meta().map_err(fail)?.mode != before {
            return Ok(Said::Nothing);
        }
        dir.set_mode(after).map_err(fail)?;
        failpoint::hit("mend.mode-set");
        Ok(Said::Did(format!("set mode {after:04o}")))
    }

    pub(super) fn point(
        &self,
        path: &Path,
        to: (&str, &Path),
        seen: &Seen,
        target: &Path,
    ) -> Result<Said> {
        let fail = |e| Error::io("can not make the link", path, e);
        let kept = in_act(to.0, to.1);
        match self.find(path)? {
            Some((from, meta)) if seen.fits(&meta) && meta.kind == FileKind::Symlink => {
                let to = self.make_way(&kept)?;
                self.rename(&from, &to, path)?;
                failpoint::hit("mend.link-kept");
            }
            Some(_) => return Ok(Said::Nothing),
            None => {}
        }
        // Between the two there is no link; one that was killed here is made by the next command.
        let Some((_, former)) = self.find(&kept)? else {
            return Ok(Said::Nothing);
        };
        let Some((dir, name)) = below(self.root, path).map_err(fail)? else {
            return Ok(Said::Nothing);
        };
        dir.symlink(target.as_os_str().as_encoded_bytes(), &name)
            .and_then(|()| dir.set_time_of(&name, former.mtime))
            .and_then(|()| dir.sync())
            .map_err(fail)?;
        failpoint::hit("mend.pointed");
        Ok(Said::Did(format!(
            "pointed {} into the home",
            human::path(path)
        )))
    }

    pub(super) fn keep_index(&self, act: &str) -> Result<Said> {
        let kept = self.home.root().join(in_act(act, Path::new(INDEX)));
        if let (Some(content), false) = (disk::read(&self.home.index_file())?, disk::exists(&kept))
        {
            disk::write_new(&kept, &content, 0o600)?;
        }
        Ok(Said::Nothing)
    }

    pub(super) fn index_back(
        &self,
        from: (&str, &Path),
        keep: &str,
        seen: Option<&Mark>,
    ) -> Result<Said> {
        let held = in_act(from.0, from.1);
        let Some(((dir, name), meta)) = self.find(&held)? else {
            return Ok(Said::Nothing);
        };
        let fail = |e| Error::io("can not read", &held, e);
        let content = disk::read_small_in(&dir, &name, u64::MAX).map_err(fail)?;
        let content = content.unwrap_or_default();
        let path = self.home.index_file();
        let present = disk::read(&path)?;
        let was = present.as_deref() != Some(&content);
        if was {
            let changed = || Ok(left(Path::new(INDEX), INDEX_CHANGED));
            let mark = |content: &Vec<u8>| Mark::of(disk::digest(content));
            if seen.is_some() && present.as_ref().map(mark).as_ref() != seen {
                return changed();
            }
            let kept = self.home.root().join(in_act(keep, Path::new(INDEX)));
            match (&present, disk::read(&kept)?) {
                (Some(present), None) => disk::write_new(&kept, present, 0o600)?,
                // Something was kept before a kill, and somebody has written the index since.
                (_, Some(kept)) if Some(&kept) != present.as_ref() => return changed(),
                _ => {}
            }
            let mode = disk::stat(&path)?.map_or(meta.mode, |meta| meta.mode & 0o777);
            if let Written::Changed(_) = disk::replace(&path, present.as_deref(), &content, mode)? {
                return changed();
            }
            failpoint::hit("mend.index-back");
        }
        // What was kept is in its place, byte for byte.
        dir.unlink(&name).and_then(|()| dir.sync()).map_err(fail)?;
        Ok(match was {
            true => Said::Did("put the former index back".to_owned()),
            false => Said::Nothing,
        })
    }
}

/// The mode of a folder as [`Dir::make`] makes it.
const MADE: u32 = 0o700;

fn in_act(act: &str, lies: &Path) -> PathBuf {
    Path::new(TRASH).join(act).join(lies)
}

fn left(path: &Path, why: impl Into<String>) -> Said {
    Said::Left(Left {
        path: path.to_path_buf(),
        why: why.into(),
    })
}

fn copy_error(error: disk::CopyError, from: &Path, path: &Path) -> Error {
    match error {
        disk::CopyError::Read(e) => Error::io("can not read", from, e),
        disk::CopyError::Write(e) => Error::io("can not write", path, e),
        disk::CopyError::Stopped => Error::new(Kind::Interrupted, "interrupted"),
    }
}
