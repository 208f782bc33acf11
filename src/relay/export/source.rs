//! Where a session is read: its folder, or its archive unpacked for as long as it is needed.

use std::path::Path;

use super::From;
use super::prepare::is_file;
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Dir, FileKind};
use crate::home::{Home, Scratch, SessionId};
use crate::pack::{self, Limits, Pack};

/// A session's folder, open.
pub(super) struct Source {
    pub dir: Dir,
    pub from: From,
    /// What an archive was unpacked into: gone with this value.
    _unpacked: Option<Scratch>,
}

impl Source {
    /// Opens a session for what is `wanted` in it, or for all. The folder is what is worked in, so it comes before an
    /// archive of it.
    pub fn open(
        home: &Home,
        id: &SessionId,
        wanted: Option<&Path>,
        context: &Context,
    ) -> Result<Source> {
        let folder = home.session(id);
        if disk::is_folder(&folder) {
            let dir = Dir::open(home.sessions())
                .and_then(|sessions| sessions.open_beneath(Path::new(id.as_str())))
                .map_err(|e| Error::io("can not open the folder", &folder, e))?;
            return Ok(Source {
                dir,
                from: From::Folder,
                _unpacked: None,
            });
        }
        let archive = home.archive_of(id);
        match disk::stat(&archive)? {
            Some(meta) if meta.kind == FileKind::File => {
                Source::unpack(home, id, &Pack::open(&archive)?, wanted, context)
            }
            _ => Err(Error::failed(format!(
                "{} is neither in sessions/ nor in archive/",
                human::name(id.as_str())
            ))
            .hint("`wbhome show` tells what is known of it, and what brings it back")),
        }
    }

    fn unpack(
        home: &Home,
        id: &SessionId,
        pack: &Pack,
        wanted: Option<&Path>,
        context: &Context,
    ) -> Result<Source> {
        let scratch = home.rehearsal(context)?;
        let path = scratch.path().join(id.as_str());
        let dir = Dir::open(scratch.path())
            .and_then(|dir| {
                dir.make(id.as_str().as_ref())?;
                dir.open_beneath(Path::new(id.as_str()))
            })
            .map_err(|e| Error::io("can not make the folder", &path, e))?;
        let members = pack
            .manifest()
            .map_or(&[][..], |manifest| &manifest.members);
        let is_in_it = |path: &&Path| {
            let member = members.iter().find(|member| *member.path == **path);
            member.is_some_and(|member| is_file(member.kind))
        };
        if let Some(path) = wanted.filter(is_in_it) {
            one_file(pack, path, &dir, context)?;
            return Ok(Source {
                dir,
                from: From::Archive,
                _unpacked: Some(scratch),
            });
        }
        let total = Total {
            items: members.len() as u64,
            bytes: members.iter().map(|member| member.size).sum(),
        };
        context.progress.stage("unpacking", total);
        let unpacked = pack::unpack(pack, &dir, Limits::default(), context);
        context.progress.finish();
        let typed = human::argument_with(id.as_str(), "--from backup");
        unpacked.map_err(|e| e.hint(format!("`wbhome restore {typed}` may have a sound one")))?;
        Ok(Source {
            dir,
            from: From::Archive,
            _unpacked: Some(scratch),
        })
    }
}

/// One file out of many: no more of the pack is decoded than it takes, and its digest is compared.
fn one_file(pack: &Pack, path: &Path, into: &Dir, context: &Context) -> Result<()> {
    let fail = |e| Error::io("can not unpack from", pack.path(), e);
    let above = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default();
    let parent = into.make_beneath(above).map_err(fail)?;
    let mut file = parent.create_file(name).map_err(fail)?;
    if let Some(member) = pack::read_member(pack, path, &mut file, context)? {
        disk::dress_file(&file, None, member.mode & 0o777, member.mtime).map_err(fail)?;
    }
    Ok(())
}
