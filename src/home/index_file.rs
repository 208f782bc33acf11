//! Writing `index.json` without losing what a person wrote into it meanwhile.

use std::path::PathBuf;

use super::index::{LIMIT, broken};
use super::repeated::repeated_key;
use super::{Index, LockedHome, trash};
use crate::base::{Context, Error, Result, failpoint};
use crate::disk::{self, Written};

/// How often an index that keeps changing under us is read again.
const ATTEMPTS: usize = 100;

/// The file of a locked home's index.
#[derive(Debug)]
pub struct IndexFile {
    path: PathBuf,
}

impl IndexFile {
    fn of(home: &LockedHome) -> IndexFile {
        IndexFile {
            path: home.index_file(),
        }
    }

    /// Reads the index, lets `edit` change it, and writes it. When somebody else has written it in between,
    /// `edit` is run again on what stands there now: it must not remember anything of the first time. Nothing
    /// is written when nothing was changed.
    ///
    /// # Errors
    /// An index that can not be understood, which is left as it is; or what `edit` says.
    pub fn update<T>(
        home: &LockedHome,
        mut edit: impl FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        let file = IndexFile::of(home);
        let mut content = disk::read_small(&file.path, LIMIT)?;
        for _ in 0..ATTEMPTS {
            let before = file.parse(content.as_deref())?;
            let mut index = before.clone();
            let value = edit(&mut index)?;
            if index == before && content.is_some() {
                return Ok(value);
            }
            match file.write(content.as_deref(), &index)? {
                Written::Done => return Ok(value),
                Written::Changed(now) => content = now,
            }
        }
        Err(file.restless())
    }

    /// Reads the index as one that may be rewritten: stricter than [`Index::read`], since what stands twice in an
    /// entry would be lost.
    ///
    /// # Errors
    /// An index that can not be understood.
    pub fn check(home: &super::Home) -> Result<Index> {
        let path = home.index_file();
        let content = disk::read_small(&path, LIMIT)?;
        IndexFile { path }.parse(content.as_deref())
    }

    /// Like [`IndexFile::check`], also whether it may be replaced: for those who have other things to do first.
    ///
    /// # Errors
    /// An index that can not be understood, or is a link.
    pub fn ready(home: &super::Home) -> Result<Index> {
        let path = home.index_file();
        IndexFile { path }.mode()?;
        IndexFile::check(home)
    }

    /// Whether a content is that of an index which may be rewritten.
    pub fn parses(content: &[u8]) -> bool {
        Index::parse(content).is_ok() && repeated_key(content).is_none()
    }

    /// Makes the index anew. `build` gets the present one, or `None` when it can not be understood. When what
    /// comes out differs, the present file goes to the trash, byte for byte.
    ///
    /// # Errors
    /// When it can not be read or written, or what `build` says.
    pub fn rebuild<T>(
        home: &LockedHome,
        context: &Context,
        mut build: impl FnMut(Option<&Index>) -> Result<(Index, T)>,
    ) -> Result<(T, Option<PathBuf>)> {
        let file = IndexFile::of(home);
        let mut content = disk::read_small(&file.path, LIMIT)?;
        for _ in 0..ATTEMPTS {
            let before = file.parse(content.as_deref()).ok();
            let (index, value) = build(before.as_ref())?;
            if before.as_ref() == Some(&index) && content.is_some() {
                return Ok((value, None));
            }
            let kept = match &content {
                Some(content) => {
                    let why = "the index was made anew";
                    let by = trash::Mark::of(disk::digest(&index.to_bytes()));
                    let kept =
                        trash::keep_before(home, "index.json", content, Some(by), why, context)?;
                    Some(kept)
                }
                None => None,
            };
            failpoint::hit("index.kept");
            match file.write(content.as_deref(), &index)? {
                Written::Done => return Ok((value, kept)),
                Written::Changed(now) => content = now,
            }
        }
        Err(file.restless())
    }

    fn parse(&self, content: Option<&[u8]>) -> Result<Index> {
        let Some(content) = content else {
            return Ok(Index::default());
        };
        let index = Index::parse(content).map_err(|e| broken(&self.path, &e))?;
        match repeated_key(content) {
            Some(repeated) => Err(broken(&self.path, &repeated)),
            None => Ok(index),
        }
    }

    /// The mode that it has and keeps.
    fn mode(&self) -> Result<u32> {
        match disk::stat(&self.path)? {
            Some(meta) if meta.kind == disk::FileKind::Symlink => Err(Error::failed(
                "the index is a symbolic link; replacing it would leave its target behind:",
            )
            .at(&self.path)
            .hint("put the file itself there")),
            Some(meta) => Ok(meta.mode & 0o777),
            None => Ok(0o600),
        }
    }

    fn write(&self, expected: Option<&[u8]>, index: &Index) -> Result<Written> {
        let mode = self.mode()?;
        failpoint::hit("index.before");
        let written = disk::replace(&self.path, expected, &index.to_bytes(), mode)?;
        failpoint::hit("index.written");
        Ok(written)
    }

    fn restless(&self) -> Error {
        Error::failed("somebody else keeps writing the index:")
            .at(&self.path)
            .hint("find out who writes it, and try again")
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
