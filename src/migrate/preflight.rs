//! What must be true before the first byte is copied. Each refusal says why, and the way out.

use std::path::Path;

use super::plan::{OWN, Request, Settings};
use super::record::{Done, Record};
use crate::base::{Error, Kind, Result, human};
use crate::disk::{self, FileKind, Space, Tree};
use crate::home::{self, Home, Trust};
use crate::paths::Mapping;
use crate::state::{self, Liveness};

/// Neither folder may lie in the other: the copy would copy itself, or write into the source.
pub(super) fn apart(settings: &Settings) -> Result<()> {
    let Settings { source, dest, .. } = settings;
    let look = |e| Error::io("can not compare the places of source and home", dest, e);
    if disk::is_inside(dest, source).map_err(look)? {
        return Err(Error::failed("the home would lie inside the source:")
            .at(dest)
            .hint("choose a DEST outside of the sync folder"));
    }
    if disk::exists(dest) && disk::is_inside(source, dest).map_err(look)? {
        return Err(
            Error::failed("the source lies inside the folder that would become the home:")
                .at(dest)
                .hint("choose a DEST beside it"),
        );
    }
    Ok(())
}

/// The source is never written, and so no state folder in it is; nor may one of them hold the other's files.
pub(super) fn apart_from_state(settings: &Settings, state: &Path) -> Result<()> {
    for (place, what) in [(&settings.source, "source"), (&settings.dest, "new home")] {
        let look = |e| Error::io("can not compare the places of", state, e);
        let state = disk::real_path(state)?;
        let overlap = place.starts_with(&state)
            || disk::exists(place)
                && (disk::is_inside(&state, place).map_err(look)?
                    || disk::is_inside(place, &state).map_err(look)?);
        if overlap {
            return Err(Error::failed(format!(
                "the state folder and the {what} lie in each other:"
            ))
            .at(state)
            .hint("--state DIR names the right one; --no-state leaves it as it is"));
        }
    }
    Ok(())
}

/// The destination must be new or empty, or hold this very migration, stopped or finished.
pub(super) fn destination(settings: &Settings) -> Result<Option<Record>> {
    let dest = &settings.dest;
    let Some(meta) = disk::stat(dest)? else {
        return Ok(None);
    };
    if meta.kind != FileKind::Folder {
        return Err(Error::failed(format!(
            "there is {} where the home should be:",
            meta.kind.described()
        ))
        .at(dest));
    }
    let names = disk::read_dir_names(dest)?;
    if names.is_empty() {
        return Ok(None);
    }
    // One that a newer program has written is not to be understood by this one, and one that leads out is not to be read.
    if let Err(error) = Home::open(dest.clone(), Trust::Found)
        && error.kind() != Kind::NoHome
    {
        return Err(error);
    }
    let refuse = |what: &str| Error::failed(what.to_owned()).at(dest);
    let Some(record) = Record::newest(&dest.join(OWN))? else {
        // A run that was stopped before it wrote anything down has made the tool's own folder and no more.
        if names.iter().all(|(name, _)| name == OWN) {
            return Ok(None);
        }
        return Err(
            refuse("the folder is not empty, and no migration was begun in it:")
                .hint("choose a DEST that does not exist yet"),
        );
    };
    if record.settings().ask_the_same(settings) {
        return Ok(Some(record));
    }
    let (was, now) = (record.settings(), settings);
    let differs = if was.source != now.source {
        format!("its source is {}", human::path(&was.source))
    } else if was.mappings != now.mappings {
        let maps: Vec<String> = was
            .mappings
            .iter()
            .map(|m| format!("{}={}", human::name(&m.old), human::name(&m.new)))
            .collect();
        format!("with --map {}", maps.join(" --map "))
    } else {
        "its options are others".to_owned()
    };
    Err(refuse(&format!(
        "a migration with other settings was made here ({differs}):"
    ))
    .hint("run it with the same settings to go on with it, or migrate into a fresh DEST; `wbhome migrate status` shows what was done"))
}

/// What a home can not hold is said before the copy, not after it: a link or file where a folder of the layout
/// belongs, or another home around.
pub(super) fn layout(settings: &Settings, tree: &Tree) -> Result<()> {
    // A bind mount shows a folder of the source in another place.
    let inside = settings.dest.ancestors().find(|ancestor| {
        let here = disk::stat(ancestor)
            .ok()
            .flatten()
            .map(|meta| meta.identity());
        tree.folders
            .iter()
            .any(|folder| Some(folder.meta.identity()) == here)
    });
    if let Some(inside) = inside {
        return Err(Error::failed(
            "the home would lie inside the source, which is also seen here:",
        )
        .at(inside)
        .hint("choose a DEST outside of the sync folder"));
    }
    let outer = settings
        .dest
        .ancestors()
        .skip(1)
        .find(|a| disk::is_folder(&a.join(OWN)));
    if let Some(outer) = outer {
        return Err(Error::failed("the home would lie inside another one:")
            .at(&settings.dest)
            .hint(format!("choose a DEST outside of {}", human::path(outer))));
    }
    let top = tree.folders.first().map_or(&[][..], |root| &root.entries);
    for (name, kind) in home::layout() {
        let found = top.iter().find(|entry| entry.name == name);
        if let Some(found) = found.filter(|entry| entry.meta.kind != kind) {
            return Err(Error::failed(format!(
                "{} belongs there in a home, and it is {}:",
                kind.described(),
                found.meta.kind.described()
            ))
            .at(settings.source.join(name))
            .hint("put the folder or file itself there, or leave it behind with --exclude"));
        }
    }
    Ok(())
}

/// There must be room, in bytes and in files.
pub(super) fn room(
    settings: &Settings,
    tree: &Tree,
    record: Option<&Record>,
    force: bool,
) -> Result<()> {
    let mut at = settings.dest.as_path();
    while !disk::exists(at) {
        at = at.parent().unwrap_or(Path::new("/"));
    }
    let dir = disk::Dir::open(at).map_err(|e| Error::io("can not open the folder", at, e))?;
    let space = Space::of(&dir).map_err(|e| Error::io("can not ask for the room on", at, e))?;
    let (bytes, files) = needed(tree, space.block, record);
    if force {
        return Ok(());
    }
    let hint = "make room, or choose a DEST on another disk; --force goes on all the same";
    if bytes > space.bytes {
        return Err(Error::failed(format!(
            "not enough room: {} needed, {} left on",
            human::size(bytes),
            human::size(space.bytes)
        ))
        .at(at)
        .hint(hint));
    }
    match space.inodes {
        Some(free) if files > free => Err(Error::failed(format!(
            "not enough room: {} files needed, {} left on",
            human::count(files),
            human::count(free)
        ))
        .at(at)
        .hint(hint)),
        _ => Ok(()),
    }
}

/// What a copy takes: each file in whole blocks, each hard-linked file once, holes not at all, and a fiftieth
/// more for the record and for what grows meanwhile. What an earlier run has copied takes no more.
fn needed(tree: &Tree, block: u64, record: Option<&Record>) -> (u64, u64) {
    let mut linked = std::collections::HashSet::new();
    let (mut bytes, mut files) = (0u64, 64u64);
    for (path, entry) in tree.entries() {
        let meta = &entry.meta;
        if record.is_some_and(|record| record.file(&path).is_some_and(Done::is_copy)) {
            continue;
        }
        if meta.kind == FileKind::File && meta.nlink > 1 && !linked.insert(meta.identity()) {
            continue;
        }
        files += 1;
        bytes += match meta.kind {
            FileKind::File if meta.is_sparse() => meta.blocks * 512,
            FileKind::File => meta.size.next_multiple_of(block),
            FileKind::Folder => block,
            _ => 0,
        };
    }
    (bytes + bytes / 50, files)
}

/// Nobody may be writing to the source, and no agent may be at work in it.
pub(super) fn quiet(settings: &Settings, request: &Request) -> Result<()> {
    if request.force {
        return Ok(());
    }
    let open = disk::open_below(&settings.source);
    let writing: Vec<_> = open.seen.iter().filter(|file| file.writing).collect();
    if let Some(file) = writing.first() {
        let path = file
            .path
            .strip_prefix(&settings.source)
            .unwrap_or(&file.path);
        let files = match writing.len() {
            1 => "has a file of the source open for writing:".to_owned(),
            n => format!(
                "or others have {} of the source open for writing, the first:",
                human::plural(n as u64, "file", "files")
            ),
        };
        return Err(Error::failed(format!(
            "{} (process {}) {files}",
            human::name(&file.program),
            file.pid
        ))
        .at(path)
        .hint("end it and run the same command again; --force copies all the same, and reports what did not hold still"));
    }
    let roots: Vec<&Path> = std::iter::once(settings.source.as_path())
        .chain(settings.mappings.iter().map(|m| Path::new(m.old.as_str())))
        .collect();
    for folder in &request.state {
        for agent in state::agents(folder)? {
            let at_work = agent.liveness == Liveness::Running
                && !agent.is_prewarm()
                && agent
                    .cwd
                    .as_deref()
                    .is_some_and(|cwd| roots.iter().any(|root| cwd.starts_with(root)));
            if let (true, Some(cwd)) = (at_work, &agent.cwd) {
                return Err(Error::failed(format!(
                    "an agent (process {}) is at work in the source:",
                    agent.pid
                ))
                .at(cwd)
                .hint(
                    "end its session and run the same command again; --force copies all the same",
                ));
            }
        }
    }
    Ok(())
}

/// Nobody may work in a home whose files are about to be written anew.
pub(super) fn home_is_quiet(
    home: &Home,
    mappings: &[Mapping],
    request: &super::relink::Request,
) -> Result<()> {
    if request.force {
        return Ok(());
    }
    let root = disk::real_path(home.root())?;
    let hint = "end it and run the same command again; --force goes on all the same";
    let concerned = |path: &Path| {
        let Ok(rel) = path.strip_prefix(&root) else {
            return false;
        };
        let mut parts = rel.iter();
        match (parts.next(), parts.next()) {
            (Some(first), _) if first == OWN => false,
            (Some(first), Some(session)) if first == "sessions" && !request.sessions.is_empty() => {
                request.sessions.iter().any(|id| session == id.as_str())
            }
            _ => true,
        }
    };
    let open = disk::open_below(&root);
    let writing = |file: &&disk::OpenFile| file.writing && concerned(&file.path);
    if let Some(file) = open.seen.iter().find(writing) {
        return Err(Error::failed(format!(
            "{} (process {}) has a file of the home open for writing:",
            human::name(&file.program),
            file.pid
        ))
        .at(&file.path)
        .hint(hint));
    }
    for folder in &request.state {
        for agent in state::agents(folder)? {
            let Some(cwd) = agent.cwd.as_deref() else {
                continue;
            };
            let moved = |m: &Mapping| cwd.starts_with(&m.old) || cwd.starts_with(&m.new);
            let at_work = agent.liveness == Liveness::Running && !agent.is_prewarm();
            if at_work && (concerned(cwd) || mappings.iter().any(moved)) {
                return Err(Error::failed(format!(
                    "an agent (process {}) is at work in",
                    agent.pid
                ))
                .at(cwd)
                .hint(hint));
            }
        }
    }
    Ok(())
}

/// What does not stand in the way, but should be known.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if !disk::tells_open_files() {
        warnings.push("this system does not tell who has files open: see to it that nobody writes to the source".to_owned());
    }
    let running: std::collections::BTreeSet<&str> = disk::processes()
        .iter()
        .filter_map(|process| sync_client(&process.name))
        .collect();
    if !running.is_empty() {
        let names: Vec<&str> = running.into_iter().collect();
        warnings.push(format!(
            "{} is running and may change the source meanwhile; what changes is copied again. Pausing it is safer",
            names.join(", ")
        ));
    }
    if let Some(client) = sync_root(&settings.dest) {
        warnings.push(format!(
            "the home would lie in a folder of {client}, which is what damaged the old one; choose a DEST outside of it"
        ));
    }
    warnings
}

/// The sync client that a process name belongs to. Linux cuts names at 15 bytes.
fn sync_client(process: &str) -> Option<&'static str> {
    const CLIENTS: [(&str, &str); 17] = [
        ("dropbox", "Dropbox"),
        ("onedrive", "OneDrive"),
        ("googledrivefs", "Google Drive"),
        ("google drive", "Google Drive"),
        ("syncthing", "Syncthing"),
        ("nextcloud", "Nextcloud"),
        ("owncloud", "ownCloud"),
        ("seaf-daemon", "Seafile"),
        ("rslsync", "Resilio Sync"),
        ("megasync", "MEGA"),
        ("pcloud", "pCloud"),
        ("insync", "Insync"),
        ("bird", "iCloud Drive"),
        ("nutstore", "Nutstore"),
        ("synology drive", "Synology Drive"),
        ("cloud-drive-ui", "Synology Drive"),
        ("baidunetdisk", "Baidu Netdisk"),
    ];
    let process = process.to_lowercase();
    CLIENTS
        .iter()
        .find(|(name, _)| process == *name || (name.len() > 5 && process.starts_with(name)))
        .map(|(_, client)| *client)
}

/// The sync client whose folder a path lies in.
fn sync_root(path: &Path) -> Option<&'static str> {
    disk::sync_folder(path).map(|(_, client)| client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_roots_are_known_by_name() {
        let root = |p: &str| sync_root(Path::new(p));
        assert_eq!(root("/nowhere/me/Dropbox/home"), Some("Dropbox"));
        assert_eq!(root("/nowhere/me/OneDrive - Acme/h"), Some("OneDrive"));
        assert_eq!(root("/nowhere/me/Dropbox (Personal)"), Some("Dropbox"));
        assert_eq!(root("/nowhere/me/我的坚果云/h"), Some("Nutstore"));
        assert_eq!(root("/nowhere/me/Dropboxes/h"), None);
        assert_eq!(root("/nowhere/me/workbuddy_home"), None);
    }

    #[test]
    fn sync_clients_are_known_by_their_process() {
        assert_eq!(sync_client("dropbox"), Some("Dropbox"));
        assert_eq!(sync_client("OneDrive"), Some("OneDrive"));
        assert_eq!(sync_client("bird"), Some("iCloud Drive"));
        assert_eq!(sync_client("birdwatch"), None);
        assert_eq!(sync_client("bash"), None);
    }
}
