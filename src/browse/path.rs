//! `wbhome path`: where a session, or something in it, lies.

use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Error, Result, human};
use crate::disk::{self, FileKind};
use crate::home::{Home, Index, SessionId, Status, no_pack, resolve_in, split};

/// Where it lies.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The session.
    pub id: SessionId,
    /// The absolute path.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whether something is there: a file that is yet to be written has a path too.
    pub exists: bool,
}

/// The absolute path of `SESSION` or `SESSION/PATH`.
///
/// # Errors
/// A session that is unknown, ambiguous, or not in `sessions/`; a path that leads out of it.
pub fn path(home: &Home, spec: &str) -> Result<Outcome> {
    let (query, rel) = split(spec)?;
    let id = resolve_in(home, query)?;
    let folder = home.session(&id);
    if !disk::exists(&folder) {
        return Err(not_there(home, &id));
    }
    let path = if rel.is_empty() {
        folder
    } else {
        folder.join(rel.as_path())
    };
    Ok(Outcome {
        exists: disk::exists(&path),
        id,
        path: path.into(),
    })
}

/// Why a session is not in `sessions/`, and what brings it there.
pub(super) fn not_there(home: &Home, id: &SessionId) -> Error {
    let index = Index::read(home).unwrap_or_default();
    let status = index.find(id.as_str()).map(crate::home::Entry::status);
    let in_archive = disk::stat(&home.archive_of(id)).ok().flatten();
    let in_archive = in_archive.map(|meta| meta.kind);
    let name = human::name(id.as_str());
    match status {
        _ if let Some(kind) = in_archive => match kind {
            FileKind::File => archived(home, id),
            _ => Error::failed(human::escape(&no_pack(id, kind)).into_owned())
                .hint("put the file itself there"),
        },
        Some(Status::Removed) => Error::failed(format!("`{name}` has been removed")).hint(format!(
            "`wbhome restore {}` brings it back, unless the trash was emptied",
            human::argument_with(id.as_str(), "--from trash")
        )),
        _ => Error::failed(format!(
            "`{name}` is missing: it is indexed, and found nowhere"
        ))
        .hint("`wbhome index` looks for it again")
        .hint(format!(
            "`wbhome restore {}` (or git) brings it back",
            human::argument_with(id.as_str(), "--from backup")
        )),
    }
}

/// An archived session has no path; what is in it can be read all the same.
fn archived(home: &Home, id: &SessionId) -> Error {
    let (name, typed) = (human::name(id.as_str()), human::argument(id.as_str()));
    let pack = human::quoted(&home.archive_of(id));
    let sessions = human::quoted(&home.sessions());
    Error::failed(format!("`{name}` is archived"))
        .hint(format!("`wbhome unarchive {typed}` brings it back"))
        .hint(format!(
            "`wbhome show {typed}/` lists what is in it, and `wbhome show {typed}/PATH` prints a file"
        ))
        .hint(format!("without wbhome: tar --zstd -xf {pack} -C {sessions}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn of_sessions_and_of_what_is_in_them() {
        let place = testing::home();
        let home = &place.home;
        place.put("sessions/20240603_数据/context/turn_001.json", "{}");
        place.put("archive/20240604_old.tar.zst", "");
        place.put(
            "index.json",
            r#"[{"id": "20240604_old", "status": "archived"}, {"id": "20240605_gone"}, {"id": "../../etc"}]"#,
        );
        let found = path(home, "数据").unwrap();
        assert_eq!(*found.path, home.root().join("sessions/20240603_数据"));
        let found = path(home, "20240603/context/turn_001.json").unwrap();
        assert!(found.exists && found.path.ends_with("context/turn_001.json"));
        assert!(!path(home, "@1/artifacts/new.md").unwrap().exists);
        let why = |spec: &str| path(home, spec).unwrap_err().to_string();
        assert!(why("old").contains("archived"));
        assert!(why("gone").contains("missing"));
        assert!(why("@1/../../index.json").contains("leads out"));
        assert!(why("etc").contains("no session"));
        // Even with a broken index one finds one's way.
        place.put("index.json", "[");
        assert!(path(home, "20240603").is_ok());
    }
}
