//! A folder below `.wbhome/tmp/` for what is being built, gone when it is not needed any more.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Home, LockedHome};
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, FolderLock};

/// A folder of one's own; removed with everything in it when dropped. One that a kill left is cleared by
/// whoever takes the lock next.
#[derive(Debug)]
pub struct Scratch {
    tmp: PathBuf,
    name: OsString,
    path: PathBuf,
    /// Where the home's lock is not held: it says that somebody works here.
    held: Option<FolderLock>,
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is cleared by whoever takes the lock next.
        let _ = Dir::open(&self.tmp).and_then(|tmp| disk::remove_tree(&tmp, &self.name));
        self.held = None;
    }
}

impl LockedHome {
    /// Makes a scratch folder.
    ///
    /// # Errors
    /// When it can not be made.
    pub fn scratch(&self, context: &Context) -> Result<Scratch> {
        let tmp = self.tmp();
        disk::create_private_folder(&tmp)?;
        let name = OsString::from(format!("{:032x}", context.clock.random()));
        let path = tmp.join(&name);
        Dir::open(&tmp)
            .and_then(|dir| dir.make(&name))
            .map_err(|e| Error::io("can not make the folder", &path, e))?;
        Ok(Scratch {
            tmp,
            name,
            path,
            held: None,
        })
    }
}

impl Home {
    /// Makes a scratch folder for something long that changes nothing in the home: its lock is not held meanwhile, and
    /// whoever takes that leaves the folder alone as long as this value lives.
    ///
    /// # Errors
    /// When it can not be made.
    pub fn rehearsal(&self, context: &Context) -> Result<Scratch> {
        let tmp = self.tmp();
        disk::create_private_folder(&tmp)?;
        loop {
            context.stop.check()?;
            let name = OsString::from(format!("{:032x}", context.clock.random()));
            let path = tmp.join(&name);
            let made = Dir::open(&tmp).and_then(|dir| {
                dir.make(&name)?;
                let folder = dir.open_beneath(Path::new(&name))?;
                let held = FolderLock::attempt(&folder)?;
                // Between the two somebody may have cleared it.
                let still = dir.find(&name)?.map(|meta| meta.identity());
                Ok(held.filter(|_| still == folder.meta().ok().map(|meta| meta.identity())))
            });
            match made {
                Ok(Some(held)) => {
                    return Ok(Scratch {
                        tmp,
                        name,
                        path,
                        held: Some(held),
                    });
                }
                Ok(None) => {}
                Err(error)
                    if disk::is_nowhere(&error)
                        || error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("can not make the folder", &path, error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::disk;
    use crate::home::testing;

    #[test]
    fn a_rehearsal_outlives_the_lock_of_others_and_a_leftover_does_not() {
        let place = testing::home();
        let scratch = place.home.rehearsal(&place.context()).unwrap();
        let left = place.put(".wbhome/tmp/left/file", "of one that was killed");
        disk::write_new(&scratch.path().join("file"), b"of a drill", 0o600).unwrap();
        drop(place.locked("index"));
        assert!(scratch.path().join("file").exists());
        assert!(!left.exists());
        drop(scratch);
        assert_eq!(disk::read_dir_names(&place.home.tmp()).unwrap(), []);
    }
}
