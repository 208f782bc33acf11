//! What stands directly in a folder of a session, for somebody who is typing its path: names alone, and at once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::show::open_pack;
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, FileKind};
use crate::home::{Home, SessionId};
use crate::pack::{self, MemberKind};

/// An archive without a manifest has to be decoded from its beginning; one that is larger is not, for names.
const DECODED: u64 = 4 << 20;

/// A name, and whether it is a folder.
pub type Name = (OsString, bool);

/// The names in the folder `rel` of a session, or of its archive when it has no folder. No link is followed.
///
/// # Errors
/// A session that is found nowhere; what can not be read.
pub fn below(home: &Home, id: &SessionId, rel: &Path, context: &Context) -> Result<Vec<Name>> {
    let folder = home.session(id);
    if !disk::is_folder(&folder) {
        return packed(home, id, rel, context);
    }
    let path = folder.join(rel);
    let fail = |e| Error::io("can not list", &path, e);
    let sessions = Dir::open(home.sessions()).map_err(fail)?;
    let session = sessions.open_beneath(Path::new(id.as_str()));
    let dir = session.and_then(|s| s.open_beneath(rel)).map_err(fail)?;
    let mut names: Vec<Name> = Vec::new();
    for (name, kind) in dir.names().map_err(fail)? {
        let kind = match kind {
            FileKind::Unknown => dir.stat(&name).map_or(kind, |meta| meta.kind),
            known => known,
        };
        names.push((name, kind == FileKind::Folder));
    }
    names.sort();
    Ok(names)
}

fn packed(home: &Home, id: &SessionId, rel: &Path, context: &Context) -> Result<Vec<Name>> {
    let Some(pack) = open_pack(home, id)? else {
        return Ok(Vec::new());
    };
    if pack.manifest().is_none() && pack.size() > DECODED {
        return Ok(Vec::new());
    }
    let (members, _) = pack::list_good(&pack, context)?;
    let mut names = BTreeMap::new();
    for member in &members {
        let Ok(within) = member.path.strip_prefix(rel) else {
            continue;
        };
        let mut parts = within.iter();
        if let Some(name) = parts.next() {
            let is_folder = parts.next().is_some() || member.kind == MemberKind::Folder;
            *names.entry(name.to_owned()).or_default() |= is_folder;
        }
    }
    Ok(names.into_iter().collect())
}
