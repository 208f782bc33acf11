//! Symbolic links that lead nowhere, or out of the home.
//!
//! A link is resolved by hand, component by component through open folders, so that a link on the way is seen and a
//! target outside is never looked at: it may lie on a disk that is not mounted.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::view::View;
use crate::base::human;
use crate::check::{Finding, FindingKind, is_left_alone};
use crate::disk::{self, Dir, FileKind};

/// As many links on one way as Linux follows (`MAXSYMLINKS`).
const MOST_HOPS: usize = 40;

/// Every link that does not end within the home.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let home = Home::new(view);
    let mut findings = Vec::new();
    for folder in view.folders() {
        for entry in folder
            .entries
            .iter()
            .filter(|e| e.meta.kind == FileKind::Symlink)
        {
            let rel = folder.rel.join(&entry.name);
            if view.stop.raised() || is_left_alone(&rel) {
                continue;
            }
            let told = home
                .read(&folder.rel, &entry.name)
                .and_then(|target| Ok((home.follow(&folder.rel, &target)?, target)));
            match told {
                Ok((end, target)) => findings.extend(finding(rel, &end, &target)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => findings.push(Finding::unreadable(rel, human::io(&error))),
            }
        }
    }
    findings
}

fn finding(rel: PathBuf, end: &End, target: &[u8]) -> Option<Finding> {
    let shown = human::bytes(target);
    let dangling = |detail| Some(Finding::new(FindingKind::DanglingLink, &rel, detail));
    match end {
        End::Inside => None,
        End::Missing => dangling(format!("points to {shown}, which is not there")),
        End::Circle => dangling(format!("points to {shown}, and so round in a circle")),
        // A relative way out of the home broke when the home was moved; whether it did can be seen without waiting.
        End::Outside(place) if !target.starts_with(b"/") && !disk::exists(place) => dangling(
            format!("points to {shown}, out of the home, where nothing is"),
        ),
        End::Outside(_) => {
            let detail = format!("points to {shown}, out of the home");
            Some(Finding::new(FindingKind::OutsideLink, rel, detail))
        }
    }
}

/// Where a link ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Inside,
    Missing,
    Circle,
    Outside(PathBuf),
}

struct Home<'a> {
    root: &'a Dir,
    /// The absolute paths under which it is known.
    places: Vec<PathBuf>,
}

impl<'a> Home<'a> {
    fn new(view: &View<'a>) -> Self {
        let given = view.survey.root_path;
        let mut places: Vec<PathBuf> = disk::real_path(given).into_iter().collect();
        if given.is_absolute() {
            places.push(given.to_path_buf());
        }
        Home {
            root: view.survey.root,
            places,
        }
    }

    fn read(&self, folder: &Path, name: &OsStr) -> io::Result<Vec<u8>> {
        self.root.open_beneath(folder)?.read_link(name)
    }

    /// Follows a target as seen from a folder of the home.
    fn follow(&self, folder: &Path, target: &[u8]) -> io::Result<End> {
        let mut at: PathBuf = folder.to_path_buf();
        let mut ahead: VecDeque<OsString> = VecDeque::new();
        let mut hops = 0;
        if let Some(out) = self.turn(&mut at, &mut ahead, target) {
            return Ok(End::Outside(out));
        }
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                if at.pop() {
                    continue;
                }
                match self.leave(&ahead) {
                    Ok(within) => {
                        ahead = within;
                        continue;
                    }
                    Err(out) => return Ok(End::Outside(out)),
                }
            }
            let Some(dir) = found(self.root.open_beneath(&at))? else {
                return Ok(End::Missing);
            };
            match found(dir.find(&name))?.flatten() {
                None => return Ok(End::Missing),
                Some(meta) if meta.kind == FileKind::Symlink => {
                    hops += 1;
                    if hops > MOST_HOPS {
                        return Ok(End::Circle);
                    }
                    let target = dir.read_link(&name)?;
                    if let Some(out) = self.turn(&mut at, &mut ahead, &target) {
                        return Ok(End::Outside(out));
                    }
                }
                Some(_) => at.push(name),
            }
        }
        Ok(End::Inside)
    }

    /// Puts a target before what is still ahead; the place outside, when it leads there.
    fn turn(
        &self,
        at: &mut PathBuf,
        ahead: &mut VecDeque<OsString>,
        target: &[u8],
    ) -> Option<PathBuf> {
        let target = Path::new(OsStr::from_bytes(target));
        let within = match target.is_absolute() {
            false => target.to_path_buf(),
            true => {
                let rest = ahead
                    .iter()
                    .fold(target.to_path_buf(), |path, name| path.join(name));
                let plain = plain(&rest);
                let within = self
                    .places
                    .iter()
                    .find_map(|place| plain.strip_prefix(place).ok());
                ahead.clear();
                *at = PathBuf::new();
                match within {
                    Some(within) => within.to_path_buf(),
                    None => return Some(rest),
                }
            }
        };
        for name in within.components().rev() {
            match name {
                Component::Normal(name) => ahead.push_front(name.to_owned()),
                Component::ParentDir => ahead.push_front("..".into()),
                _ => {}
            }
        }
        None
    }

    /// Goes up from the home itself: what is ahead within it, if the way leads back, or the place outside.
    fn leave(&self, ahead: &VecDeque<OsString>) -> Result<VecDeque<OsString>, PathBuf> {
        let Some(place) = self.places.first() else {
            return Err(PathBuf::from(".."));
        };
        let mut out = place.clone();
        out.pop();
        out.extend(ahead);
        let out = plain(&out);
        match out.strip_prefix(place) {
            Ok(within) => Ok(within.iter().map(OsStr::to_owned).collect()),
            Err(_) => Err(out),
        }
    }
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

/// `None` for what is not there, or has something that is no folder on its way.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::*;
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidFilename) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
