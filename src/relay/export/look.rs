//! The look before anything leaves: what files hold, names, targets of links, attributes.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rayon::prelude::*;

use super::{Export, Finding, Part};
use crate::base::{Error, Result, Total};
use crate::disk::{self, Digest, Dir};
use crate::home::SessionId;
use crate::pack::{Flaw, Member, MemberKind};
use crate::secrets::{Checked, Match};

/// A file up to this size is read beside others; a larger one takes memory, and is read alone.
const SMALL: u64 = 1 << 20;

/// What was found, and what each file was that was looked at.
#[derive(Default)]
pub(super) struct Looked {
    pub findings: Vec<Finding>,
    pub allowed: u64,
    /// By the path below the folder: digest and length.
    pub files: HashMap<PathBuf, (Digest, u64)>,
}

impl Looked {
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|(_, size)| size).sum()
    }
}

/// A folder of a session, and what of it leaves.
pub(super) struct Looking<'a> {
    pub export: &'a Export<'a>,
    pub id: &'a SessionId,
    pub dir: &'a Dir,
    /// Where the folder is, below the session.
    pub below: &'a Path,
    /// What stands before the names that leave.
    pub top: &'a Path,
    /// Whether attributes leave too.
    pub attributes: bool,
}

impl Looking<'_> {
    /// Looks at all of it. `special` is named in a pack, though not in it.
    ///
    /// # Errors
    /// What can not be read; an interruption.
    pub fn all(&self, members: &[Member], special: &[Flaw]) -> Result<Looked> {
        let mut looked = Looked::default();
        let mut told = HashSet::new();
        let paths = members.iter().map(|member| &*member.path);
        for path in paths.chain(special.iter().map(|flaw| &*flaw.path)) {
            for found in self.name(path) {
                // What is in the name of a folder is in the path of all that it holds.
                if told.insert(found.digest.clone()) {
                    looked.findings.push(self.finding(Part::Name, path, found));
                }
            }
        }
        for member in members {
            self.links_and_attributes(member, &mut looked);
        }
        let files = members
            .iter()
            .filter(|m| matches!(m.kind, MemberKind::File | MemberKind::HardLink));
        self.contents(&files.collect::<Vec<_>>(), &mut looked)?;
        looked
            .findings
            .sort_by(|a, b| (&a.path, a.part).cmp(&(&b.path, b.part)));
        Ok(looked)
    }

    fn name(&self, path: &Path) -> Vec<Match> {
        match path.as_os_str().is_empty() {
            true => self.export.check.name(self.top),
            false => self.export.check.name(&self.top.join(path)),
        }
    }

    fn links_and_attributes(&self, member: &Member, looked: &mut Looked) {
        let check = self.export.check;
        if let (MemberKind::Symlink, Some(target)) = (member.kind, &member.link) {
            let found = check.name(target).into_iter();
            looked
                .findings
                .extend(found.map(|found| self.finding(Part::Link, &member.path, found)));
        }
        if !self.attributes {
            return;
        }
        for (name, value) in &member.xattrs {
            let value = STANDARD.decode(value).unwrap_or_default();
            let text = [name.as_bytes(), b"=", &value].concat();
            let found = check.name(Path::new(OsStr::from_bytes(&text))).into_iter();
            looked
                .findings
                .extend(found.map(|found| self.finding(Part::Attribute, &member.path, found)));
        }
    }

    fn contents(&self, files: &[&Member], looked: &mut Looked) -> Result<()> {
        let context = self.export.context;
        let total = Total {
            items: files.len() as u64,
            bytes: files.iter().map(|file| file.size).sum(),
        };
        context.progress.stage("looking for secrets", total);
        let one = |file: &&Member| {
            context.stop.check()?;
            // A further name has no length of its own.
            let limit = match file.kind {
                MemberKind::File => file.size,
                _ => u64::MAX,
            };
            let seen = self.file(&file.path, limit)?;
            context.progress.advance(1, file.size);
            Ok(seen.map(|seen| (file.path.to_path_buf(), seen)))
        };
        let (small, large): (Vec<&Member>, Vec<&Member>) = files
            .iter()
            .partition(|f| f.kind == MemberKind::File && f.size <= SMALL);
        let seen = small.par_iter().map(one).collect::<Result<Vec<_>>>();
        let seen = seen.and_then(|mut seen| {
            for file in &large {
                seen.push(one(file)?);
            }
            Ok(seen)
        });
        context.progress.finish();
        for (path, seen) in seen?.into_iter().flatten() {
            self.take(&path, seen, looked);
        }
        Ok(())
    }

    /// Notes what a file was.
    pub fn take(&self, path: &Path, seen: Checked, looked: &mut Looked) {
        looked.allowed += seen.allowed;
        let found = seen.findings.into_iter();
        looked
            .findings
            .extend(found.map(|found| self.finding(Part::Content, path, found)));
        looked
            .files
            .insert(path.to_path_buf(), (seen.digest, seen.size));
    }

    /// Looks at the beginning of a file; `None` when it is not there any more.
    pub fn file(&self, path: &Path, limit: u64) -> Result<Option<Checked>> {
        let name = path.file_name().unwrap_or_default();
        let whole = Path::new("sessions")
            .join(self.id.as_str())
            .join(self.below)
            .join(path);
        let stop = self.export.context.stop;
        let open = self
            .dir
            .open_beneath(path.parent().unwrap_or(Path::new("")))
            .and_then(|parent| parent.open_file(name));
        match open.and_then(|file| self.export.check.beginning(&whole, &file, limit, stop)) {
            Ok(seen) => Ok(Some(seen)),
            Err(e) if disk::is_nowhere(&e) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                stop.check()?;
                Err(self.unread(path, e))
            }
            Err(e) => Err(self.unread(path, e)),
        }
    }

    fn unread(&self, path: &Path, error: io::Error) -> Error {
        let shown = self.export.shown(self.id, &self.below.join(path));
        Error::io("can not read", &*shown, error)
            .hint("set its permissions right (`chmod`, `chown`), or repair the disk, and try again")
    }

    fn finding(&self, part: Part, path: &Path, found: Match) -> Finding {
        Finding {
            part,
            path: self.export.shown(self.id, &self.below.join(path)),
            found,
        }
    }
}
