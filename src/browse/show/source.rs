//! Where a session is read from: its folder, or its archive.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, Stop, human};
use crate::browse::path::not_there;
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{Counts, Home, SessionId, counts_of, measure, read_beginning};
use crate::pack::{self, Member, MemberKind, Pack, Problem};

/// Where something was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// In `sessions/`.
    Folder,
    /// In `archive/`.
    Archive,
}

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Special,
}

/// Something in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thing {
    /// Below the session.
    #[serde(flatten)]
    pub path: WirePath,
    /// What it is.
    pub kind: Kind,
    /// Its length; 0 for all but files.
    pub bytes: u64,
    /// Permission bits; none for a folder that an archive made by hand only implies.
    pub mode: Option<u32>,
    /// When its content changed last.
    pub modified: Option<Timestamp>,
    /// Where a symbolic link points.
    pub target: Option<WirePath>,
}

/// A session, open.
pub(super) enum Source {
    Folder(Dir),
    /// With its members by path, and what is wrong with it besides.
    Pack(Box<Pack>, BTreeMap<PathBuf, Member>, Vec<Problem>),
}

impl Source {
    /// Opens a session. The folder is what is worked in, so it comes before an archive of it.
    pub fn open(home: &Home, id: &SessionId, context: &Context) -> Result<Source> {
        let folder = home.session(id);
        if disk::is_folder(&folder) {
            let fail = |e| Error::io("can not open the folder", &folder, e);
            let sessions = Dir::open(home.sessions()).map_err(fail)?;
            let session = sessions.open_beneath(Path::new(id.as_str()));
            return Ok(Source::Folder(session.map_err(fail)?));
        }
        let Some(pack) = open_pack(home, id)? else {
            return Err(not_there(home, id));
        };
        Source::listed(pack, context)
    }

    fn listed(pack: Pack, context: &Context) -> Result<Source> {
        let (members, problems) = pack::list_good(&pack, context)?;
        let members = members.into_iter().map(|m| (m.path.0.clone(), m));
        let members = members.collect();
        Ok(Source::Pack(Box::new(pack), members, problems))
    }

    pub fn from(&self) -> From {
        match self {
            Source::Folder(_) => From::Folder,
            Source::Pack(..) => From::Archive,
        }
    }

    /// What is wrong with an archive of which the rest can be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Source::Folder(_) => &[],
            Source::Pack(.., problems) => problems,
        }
    }

    /// What it holds.
    pub fn counts(&self, home: &Home, id: &SessionId) -> Result<Counts> {
        match self {
            Source::Folder(_) => {
                let path = home.sessions();
                let sessions =
                    Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
                Ok(measure(&sessions, id.as_str().as_ref()))
            }
            Source::Pack(_, members, _) => {
                let members: Vec<Member> = members.values().cloned().collect();
                Ok(counts_of(&members))
            }
        }
    }

    /// What stands at a path whose folders are known to be folders; `None` when nothing does.
    pub fn find(&self, rel: &Path) -> Result<Option<Thing>> {
        match self {
            Source::Folder(session) => {
                let fail = |e| Error::io("can not look at", rel, e);
                let Some(name) = rel.file_name() else {
                    return Ok(Some(of_meta(rel, &session.meta().map_err(fail)?, None)));
                };
                let parent = open_parent(session, rel)?;
                let Some(meta) = parent.find(name).map_err(fail)? else {
                    return Ok(None);
                };
                thing_in(&parent, rel, name, &meta).map(Some).map_err(fail)
            }
            Source::Pack(_, members, _) => Ok(match members.get(rel) {
                Some(member) => Some(of_member(member, members)),
                // Some archives name no folders. The session itself is always one.
                None if rel.as_os_str().is_empty() || implied(members, rel) => {
                    Some(implied_folder(rel))
                }
                None => None,
            }),
        }
    }

    /// What a folder holds, by name.
    pub fn list(&self, rel: &Path) -> Result<Vec<Thing>> {
        match self {
            Source::Folder(session) => {
                let fail = |e| Error::io("can not list", rel, e);
                let folder = session.open_beneath(rel).map_err(fail)?;
                let mut found = Vec::new();
                for (name, _) in folder.names().map_err(fail)? {
                    let path = rel.join(&name);
                    // What vanishes meanwhile was never there.
                    if let Some(meta) = folder.find(&name).map_err(fail)? {
                        found.push(thing_in(&folder, &path, &name, &meta).map_err(fail)?);
                    }
                }
                found.sort_by(|a, b| a.path.cmp(&b.path));
                Ok(found)
            }
            Source::Pack(_, members, _) => {
                let mut found: BTreeMap<PathBuf, Thing> = BTreeMap::new();
                for (path, member) in members {
                    let Ok(below) = path.strip_prefix(rel) else {
                        continue;
                    };
                    let mut names = below.iter();
                    match (names.next(), names.next()) {
                        (None, _) => {}
                        (Some(_), None) => {
                            found.insert(path.clone(), of_member(member, members));
                        }
                        (Some(first), Some(_)) => {
                            let folder = rel.join(first);
                            let implied = || implied_folder(&folder);
                            found.entry(folder.clone()).or_insert_with(implied);
                        }
                    }
                }
                Ok(found.into_values().collect())
            }
        }
    }

    /// So many of its largest files, the largest first, and of equal ones by name.
    pub fn largest(&self, most: usize, stop: &Stop) -> Result<Vec<Thing>> {
        let mut files: Vec<Thing> = match self {
            Source::Folder(session) => disk::walk(session, &|_, _| false, stop)?
                .entries()
                .filter(|(_, entry)| entry.meta.kind == FileKind::File)
                .map(|(path, entry)| of_meta(&path, &entry.meta, None))
                .collect(),
            Source::Pack(_, members, _) => members
                .values()
                .filter(|member| matches!(member.kind, MemberKind::File | MemberKind::HardLink))
                .map(|member| of_member(member, members))
                .collect(),
        };
        files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
        files.truncate(most);
        Ok(files)
    }

    /// Writes the content of a file that [`Source::find`] has found.
    pub fn copy(&self, rel: &Path, out: &mut dyn Write, context: &Context) -> Result<()> {
        match self {
            Source::Folder(session) => {
                let fail = |e| Error::io("can not read", rel, e);
                let name = rel.file_name().unwrap_or_default();
                let mut file = open_parent(session, rel)?.open_file(name).map_err(fail)?;
                let kind = Meta::of(&file).map_err(fail)?.kind;
                if kind != FileKind::File {
                    let what = format!("expected a file, found {}:", kind.described());
                    return Err(Error::failed(what).at(rel));
                }
                let mut buffer = vec![0; 256 << 10];
                loop {
                    context.stop.check()?;
                    match file.read(&mut buffer).map_err(fail)? {
                        0 => return Ok(()),
                        n => out.write_all(&buffer[..n]).map_err(unwritten)?,
                    }
                }
            }
            Source::Pack(pack, ..) => pack::read_member(pack, rel, out, context).map(|_| ()),
        }
    }

    /// The beginning of a file, when there is one.
    pub fn beginning(&self, rel: &Path, limit: u64, context: &Context) -> Result<Option<Vec<u8>>> {
        match self {
            Source::Folder(session) => {
                let name = rel.file_name().unwrap_or_default();
                let read = || -> std::io::Result<Vec<u8>> {
                    let folder = session.open_beneath(rel.parent().unwrap_or(Path::new("")))?;
                    let file = folder.open_file(name)?;
                    let mut kept = Vec::new();
                    if Meta::of(&file)?.kind == FileKind::File {
                        file.take(limit).read_to_end(&mut kept)?;
                    }
                    Ok(kept)
                };
                match read() {
                    Ok(kept) => Ok(Some(kept)),
                    Err(error) if disk::is_nowhere(&error) => Ok(None),
                    Err(error) => Err(Error::io("can not read", rel, error)),
                }
            }
            Source::Pack(_, members, _) if !members.contains_key(rel) => Ok(None),
            Source::Pack(pack, ..) => read_beginning(pack, rel, limit, context),
        }
    }
}

/// The archive of a session, when there is one.
pub(in crate::browse) fn open_pack(home: &Home, id: &SessionId) -> Result<Option<Pack>> {
    let path = home.archive_of(id);
    let is_file = disk::stat(&path)?.is_some_and(|meta| meta.kind == FileKind::File);
    is_file.then(|| Pack::open(&path)).transpose()
}

fn unwritten(error: std::io::Error) -> Error {
    Error::failed("can not write the content").because(error)
}

fn open_parent(session: &Dir, rel: &Path) -> Result<Dir> {
    let parent = rel.parent().unwrap_or(Path::new(""));
    session
        .open_beneath(parent)
        .map_err(|e| Error::io("can not open the folder", parent, e))
}

fn thing_in(dir: &Dir, path: &Path, name: &OsStr, meta: &Meta) -> std::io::Result<Thing> {
    let target = match meta.kind {
        FileKind::Symlink => {
            let target = std::ffi::OsString::from_vec(dir.read_link(name)?);
            Some(PathBuf::from(target))
        }
        _ => None,
    };
    Ok(of_meta(path, meta, target))
}

fn of_meta(path: &Path, meta: &Meta, target: Option<PathBuf>) -> Thing {
    let kind = match meta.kind {
        FileKind::File => Kind::File,
        FileKind::Folder => Kind::Folder,
        FileKind::Symlink => Kind::Symlink,
        _ => Kind::Special,
    };
    Thing {
        path: path.to_path_buf().into(),
        kind,
        bytes: if kind == Kind::File { meta.size } else { 0 },
        mode: Some(meta.mode),
        modified: Some(meta.mtime.timestamp()),
        target: target.map(WirePath::from),
    }
}

/// A further name of a file is that file.
fn of_member(member: &Member, members: &BTreeMap<PathBuf, Member>) -> Thing {
    let first = match (member.kind, &member.link) {
        (MemberKind::HardLink, Some(first)) => members.get(&first.0).unwrap_or(member),
        _ => member,
    };
    let target = match member.kind {
        MemberKind::Symlink => member.link.as_ref().map(|link| WirePath(link.0.clone())),
        _ => None,
    };
    Thing {
        path: member.path.0.clone().into(),
        kind: match member.kind {
            MemberKind::File | MemberKind::HardLink => Kind::File,
            MemberKind::Folder => Kind::Folder,
            MemberKind::Symlink => Kind::Symlink,
        },
        bytes: first.size,
        mode: Some(first.mode),
        modified: Some(first.mtime.timestamp()),
        target,
    }
}

fn implied(members: &BTreeMap<PathBuf, Member>, rel: &Path) -> bool {
    members.keys().any(|path| path.starts_with(rel))
}

fn implied_folder(rel: &Path) -> Thing {
    Thing {
        path: rel.to_path_buf().into(),
        kind: Kind::Folder,
        bytes: 0,
        mode: None,
        modified: None,
        target: None,
    }
}

impl Thing {
    /// What it is, for a person.
    pub(super) fn described(&self) -> String {
        match (self.kind, &self.target) {
            (Kind::File, _) => "a file".to_owned(),
            (Kind::Folder, _) => "a folder".to_owned(),
            (Kind::Symlink, Some(target)) => {
                format!("a symbolic link to {}", human::path(target))
            }
            (Kind::Symlink, None) => "a symbolic link".to_owned(),
            (Kind::Special, _) => "neither file, folder nor link".to_owned(),
        }
    }
}
