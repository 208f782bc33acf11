//! A folder below `.wbhome/tmp/` for what is being built, gone when it is not needed any more.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::LockedHome;
use crate::base::{Context, Error, Result};
use crate::disk;

/// A folder of one's own; removed with everything in it when dropped. One that a kill left is cleared by
/// whoever takes the lock next.
#[derive(Debug)]
pub struct Scratch {
    tmp: PathBuf,
    name: OsString,
    path: PathBuf,
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
        let _ = disk::Dir::open(&self.tmp).and_then(|tmp| disk::remove_tree(&tmp, &self.name));
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
        disk::Dir::open(&tmp)
            .and_then(|dir| dir.make(&name))
            .map_err(|e| Error::io("can not make the folder", &path, e))?;
        Ok(Scratch { tmp, name, path })
    }
}
