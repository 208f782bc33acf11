//! Something in a session: a file, with its content when that is wanted, a folder with its names, a link.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::source::{From, Kind, Source, Thing};
use crate::base::{Context, Error, Result, human};
use crate::home::{Home, RelPath, SessionId, nearest, resolve_all, resolve_in};
use crate::pack::Problem;

/// Something in a session.
#[derive(Clone, Debug, Serialize)]
pub struct Inside {
    /// The session.
    pub id: SessionId,
    /// Where it was read.
    pub from: From,
    /// What it is.
    #[serde(flatten)]
    pub thing: Thing,
    /// What a folder holds, by name.
    pub names: Vec<Thing>,
    /// What is wrong with the archive: not everything may be listed.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// A session, and what in it: no path for the session alone, an empty one for what it holds.
pub type Meant = (SessionId, Option<RelPath>);

/// `SESSION/PATH` or `SESSION/` in its parts, or a session alone.
///
/// # Errors
/// A session that is unknown or ambiguous; a path that leads out of it.
pub fn meant(home: &Home, spec: &OsStr) -> Result<Meant> {
    let (query, rel) = parts(spec)?;
    Ok((resolve_in(home, &query)?, rel))
}

/// Like [`meant`], of several: the home is looked at once for all of them.
///
/// # Errors
/// A path that leads out of its session, of any; then a session that is unknown or ambiguous.
pub fn meant_all(home: &Home, specs: &[OsString]) -> Result<Vec<Meant>> {
    let parts = specs.iter().map(|spec| parts(spec));
    let (queries, rels): (Vec<_>, Vec<_>) = parts.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    Ok(resolve_all(home, &queries)?.into_iter().zip(rels).collect())
}

fn parts(spec: &OsStr) -> Result<(String, Option<RelPath>)> {
    let bytes = spec.as_bytes();
    let (query, rel) = match memchr::memchr(b'/', bytes) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    // No id is anything but UTF-8: what it stands for instead is not found, and named as it was typed.
    let query = String::from_utf8_lossy(query).into_owned();
    let rel = rel.map(|rel| RelPath::new(OsStr::from_bytes(rel)));
    Ok((query, rel.transpose()?))
}

/// What stands at `rel` in a session. The content of a file goes to `out`, if there is one. No link is followed.
///
/// # Errors
/// Nothing there, with what is near; a link on the way; what can not be read, or written.
pub fn inside(
    home: &Home,
    id: &SessionId,
    rel: &Path,
    out: Option<&mut dyn Write>,
    context: &Context,
) -> Result<Inside> {
    let source = Source::open(home, id, context)?;
    let thing = locate(&source, id, rel)?;
    let names = match thing.kind {
        Kind::Folder => source.list(rel)?,
        _ => Vec::new(),
    };
    if let (Some(out), Kind::File) = (out, thing.kind) {
        source.copy(rel, out, context)?;
    }
    Ok(Inside {
        id: id.clone(),
        from: source.from(),
        thing,
        names,
        problems: source.problems().to_vec(),
    })
}

fn locate(source: &Source, id: &SessionId, rel: &Path) -> Result<Thing> {
    let mut at = PathBuf::new();
    for name in rel.iter() {
        let parent = at.clone();
        at.push(name);
        let is_last = at == rel;
        match source.find(&at)? {
            None => return Err(missing(source, id, rel, &parent, name)),
            Some(found) if is_last => return Ok(found),
            Some(found) if found.kind == Kind::Folder => {}
            Some(found) => {
                let what = format!("is {}, and not a folder:", found.described());
                let error = Error::failed(what).at(&at);
                return Err(match &found.target {
                    Some(_) => error.hint("links are shown, and never followed"),
                    None => error,
                });
            }
        }
    }
    source
        .find(Path::new(""))?
        .ok_or_else(|| Error::failed("has no folder:").at(id.as_str()))
}

fn missing(source: &Source, id: &SessionId, rel: &Path, parent: &Path, name: &OsStr) -> Error {
    let error = Error::failed(format!("in {} there is no", human::name(id.as_str()))).at(rel);
    let spec = match parent.as_os_str().is_empty() {
        true => PathBuf::from(id.as_str()),
        false => Path::new(id.as_str()).join(parent),
    };
    let error = match source.problems().first() {
        Some(first) => error.hint(format!(
            "not all of its archive can be read: {}: {}",
            human::escape(&first.part),
            human::escape(&first.what)
        )),
        None => error,
    };
    let near = source.list(parent).ok().and_then(|things| {
        let names = things
            .iter()
            .filter_map(|thing| thing.path.file_name()?.to_str());
        let near = nearest(name.to_str()?, names)?;
        Some(parent.join(near))
    });
    match near {
        Some(near) => error.hint(format!("did you mean {}?", human::path(&near))),
        None => error,
    }
    .hint(format!(
        "`wbhome show {}/` lists what is there",
        human::quoted(&spec)
    ))
}
