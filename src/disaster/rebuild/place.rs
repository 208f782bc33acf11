//! Where a home is built anew: in a folder of its own below the place, from which it moves up name by name when all of
//! it is there, `.wbhome` last. Until then the place is no home, and a run that was killed is known by that folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Kind, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, FolderLock, Stamp};
use crate::home::{Home, Trust};
use crate::sessions::reconcile;

/// The folder that is built in.
pub(super) const RESTORING: &str = ".wbhome-restoring";

/// The home in it.
pub(super) const HOME: &str = "home";

/// What says that all of it is there, and on the disk.
pub(super) const READY: &str = "ready.json";

/// The folder that makes a home one.
const OWN: &str = ".wbhome";

/// How a place stands.
#[derive(Debug)]
pub(super) enum Standing {
    /// Nothing is there, or an empty folder.
    Free,
    /// A run was stopped in it: what it had built is begun anew.
    Begun,
    /// A run was stopped in it when nothing was left but to move up.
    Ready(Box<Ready>),
}

/// What is left to be done when all is built.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub outcome: Outcome,
    /// Folders that get their modes and times when nothing comes or goes in them any more.
    pub dressed: Vec<Dressed>,
}

/// Mode and time of a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Dressed {
    /// Below the home; empty for the home itself.
    pub path: ExactPath,
    pub mode: u32,
    pub seconds: i64,
    pub nanos: u32,
}

impl Dressed {
    pub fn new(path: PathBuf, mode: u32, mtime: Stamp) -> Dressed {
        Dressed {
            path: path.into(),
            mode,
            seconds: mtime.seconds,
            nanos: mtime.nanos,
        }
    }

    pub fn dress(&self, root: &Dir) -> std::io::Result<()> {
        let dir = root.open_beneath(&self.path)?;
        dir.set_mode(self.mode)?;
        dir.set_time(Stamp {
            seconds: self.seconds,
            nanos: self.nanos,
        })
    }
}

/// Looks at a place.
///
/// # Errors
/// A home, or anything else than an empty folder; a path that can not be looked at.
pub(super) fn look(to: &Path) -> Result<Standing> {
    let names = match disk::stat(to)? {
        None => return Ok(Standing::Free),
        Some(meta) if meta.kind != FileKind::Folder => {
            return Err(
                Error::failed(format!("there is {} already:", meta.kind.described()))
                    .at(to)
                    .hint("name a folder that is new or empty"),
            );
        }
        Some(_) => disk::read_dir_names(to)?,
    };
    let has = |name: &str| names.iter().any(|(n, _)| n == name);
    let restoring = to.join(RESTORING);
    if has(RESTORING)
        && let Some(text) = disk::read_small(&restoring.join(READY), 1 << 30)?
    {
        return match serde_json::from_slice(&text) {
            Ok(ready) => Ok(Standing::Ready(Box::new(ready))),
            Err(error) => Err(Error::io(
                "can not understand what a stopped restore has left in",
                restoring.join(READY),
                error,
            )
            .hint("remove the folder, or name another one")),
        };
    }
    if has(OWN) {
        return Err(Error::failed("there is a home already:")
            .at(to)
            .hint("nothing is restored over a home: name a folder that is new or empty")
            .hint("`wbhome restore SESSION --from backup` brings one session back into it"));
    }
    let is_ours = |name: &OsStr| name == RESTORING || name == "lost+found";
    if let Some((name, _)) = names.iter().find(|(name, _)| !is_ours(name)) {
        return Err(Error::failed(format!(
            "the folder is not empty, it holds {}:",
            human::path(Path::new(name))
        ))
        .at(to)
        .hint("name a folder that is new or empty"));
    }
    Ok(match has(RESTORING) {
        true => Standing::Begun,
        false => Standing::Free,
    })
}

/// A place in which somebody builds; nobody else does so meanwhile.
#[derive(Debug)]
pub(super) struct Site {
    pub path: PathBuf,
    /// The place.
    pub to: Dir,
    /// The folder that is built in.
    pub restoring: Dir,
    _lock: FolderLock,
}

impl Site {
    /// Takes a place, and clears what a stopped run has left there unless that is complete.
    ///
    /// # Errors
    /// A place that somebody else builds in, or that can not be written.
    pub fn take(path: &Path, keep: bool) -> Result<Site> {
        let fail = |e| Error::io("can not build a home in", path, e);
        disk::create_private_folder(path)?;
        let to = Dir::open(path).map_err(fail)?;
        // Of others nobody shall look into what is half there.
        match to.make(OsStr::new(RESTORING)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(fail(error));
            }
            _ => {}
        }
        let restoring = to.open_beneath(Path::new(RESTORING)).map_err(fail)?;
        let Some(lock) = FolderLock::attempt(&restoring).map_err(fail)? else {
            return Err(Error::new(Kind::Locked, "somebody else restores a home into").at(path));
        };
        if !keep {
            for (name, _) in restoring.names().map_err(fail)? {
                disk::remove_tree(&restoring, &name).map_err(fail)?;
            }
        }
        Ok(Site {
            path: path.to_path_buf(),
            to,
            restoring,
            _lock: lock,
        })
    }

    /// Where the home is until it moves up.
    pub fn home(&self) -> PathBuf {
        self.path.join(RESTORING).join(HOME)
    }

    /// Says that all of it is there, after it was made sure of.
    ///
    /// # Errors
    /// What can not be written.
    pub fn ready(&self, ready: &Ready) -> Result<()> {
        let path = self.path.join(RESTORING).join(READY);
        let fail = |e| Error::io("can not write to the disk:", &self.path, e);
        disk::sync_filesystem(&self.to).map_err(fail)?;
        failpoint::hit("restore-all.laid");
        let text = serde_json::to_vec(ready).map_err(|e| Error::io("can not write", &path, e))?;
        disk::write_new(&path, &text, 0o600)?;
        failpoint::hit("restore-all.ready");
        Ok(())
    }

    /// Takes away all that was built: the place is as it was, but that it exists.
    pub fn give_up(self) {
        // What stays is known by its name, and cleared by the next run.
        let _ = disk::remove_tree(&self.to, OsStr::new(RESTORING));
    }

    /// Moves everything up. Each step can be done again.
    ///
    /// # Errors
    /// Something that has come in the way, and what the system says.
    pub fn move_up(&self, ready: &Ready, context: &Context) -> Result<()> {
        let fail = |e| Error::io("can not move the home into", &self.path, e);
        match self.restoring.open_beneath(Path::new(HOME)) {
            Ok(home) => self.rename_all(&home)?,
            // All of it has moved.
            Err(error) if disk::is_nowhere(&error) => {}
            Err(error) => return Err(fail(error)),
        }
        let own = Path::new(OWN);
        let late =
            |dressed: &&Dressed| dressed.path.as_os_str().is_empty() || *dressed.path == *own;
        for dressed in ready.dressed.iter().filter(|dressed| !late(dressed)) {
            dressed.dress(&self.to).map_err(fail)?;
        }
        // The cache is of no use to a home that has moved since.
        let home = Home::open(&self.path, Trust::Named)?;
        let locked = home.lock_while_moving(std::time::Duration::ZERO, "restore", context)?;
        reconcile::refresh_cache(&locked, context)?;
        drop(locked);
        self.clear().map_err(fail)?;
        for dressed in ready.dressed.iter().filter(late) {
            dressed.dress(&self.to).map_err(fail)?;
        }
        disk::sync_filesystem(&self.to).map_err(fail)
    }

    fn rename_all(&self, home: &Dir) -> Result<()> {
        let fail = |e| Error::io("can not move the home into", &self.path, e);
        let mut names: Vec<OsString> = home
            .names()
            .map_err(fail)?
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        // What makes it a home comes last.
        names.sort_by_key(|name| (name == OWN, name.clone()));
        for name in names {
            if name == OWN {
                self.to.sync().map_err(fail)?;
                failpoint::hit("restore-all.moved");
            }
            let meta = home.stat(&name).map_err(fail)?;
            if meta.kind == FileKind::Folder && meta.mode & 0o200 == 0 {
                // A folder that nobody may write to can not get another parent.
                let folder = home.open_beneath(Path::new(&name)).map_err(fail)?;
                folder.set_mode(meta.mode | 0o700).map_err(fail)?;
            }
            home.rename(&name, &self.to, &name).map_err(|e| {
                Error::io("can not move into its place:", self.path.join(&name), e)
                    .hint("what is restored is whole, and waits beside: move away what is there, and run it again")
            })?;
        }
        self.to.sync().map_err(fail)?;
        failpoint::hit("restore-all.home");
        Ok(())
    }

    /// Removes what was built in; what says that all is there goes last.
    fn clear(&self) -> std::io::Result<()> {
        for (name, _) in self.restoring.names()? {
            if name != READY {
                disk::remove_tree(&self.restoring, &name)?;
            }
        }
        if self.restoring.find(OsStr::new(READY))?.is_some() {
            self.restoring.unlink(OsStr::new(READY))?;
        }
        self.to.remove_folder(OsStr::new(RESTORING))
    }
}
