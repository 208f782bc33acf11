//! Where the bytes of a session are: its folder, its archive, the trash, a pack of a store, the relay. All is read by
//! others' means: the file system, `tar` and `zstd`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::written::Tree;

/// Every file below a folder.
pub fn folder(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry.unwrap_or_else(|e| panic!("{}: {e}", root.display()));
        if !entry.file_type().is_dir() {
            let rel = entry.path().strip_prefix(root).unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            tree.insert(rel.to_str().unwrap().to_owned(), bytes);
        }
    }
    tree
}

/// Every file of a pack, without the folder at its top; whatever is wrong with it ends the test.
pub fn pack(path: &Path) -> Tree {
    let read = || -> std::io::Result<Tree> {
        let mut decoder = zstd::stream::Decoder::new(File::open(path)?)?;
        decoder.window_log_max(31)?;
        let mut tree = Tree::new();
        let mut archive = tar::Archive::new(&mut decoder);
        for entry in archive.entries()? {
            let mut entry = entry?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = entry.path()?.into_owned();
            let rel: PathBuf = name.components().skip(1).collect();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            tree.insert(rel.to_str().unwrap().to_owned(), bytes);
        }
        std::io::copy(&mut decoder, &mut std::io::sink())?;
        Ok(tree)
    };
    read().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The folders of a session in the acts of the trash, the newest first. What a relay had of it is no session of the home.
pub fn in_trash(home: &Path, id: &str) -> Vec<PathBuf> {
    let mut acts = names(&home.join(".wbhome/trash"));
    acts.reverse();
    let is_of_relay = |act: &Path| {
        let note = std::fs::read(act.join("note.json")).unwrap_or_default();
        serde_json::from_slice(&note).is_ok_and(|note: Value| note["command"] == "relay sync")
    };
    acts.retain(|act| !is_of_relay(act));
    let folders = acts.iter().map(|act| act.join("sessions").join(id));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// What lies in a folder, sorted; nothing, if there is none.
pub fn names(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

/// Number, length and time of a file: one of them changes when it does.
pub type Facts = (u64, u64, i64, i64);

pub fn facts(path: &Path) -> Option<Facts> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// The newest snapshot of a store.
pub fn newest_snapshot(store: &Path) -> Option<Value> {
    let all = names(&store.join("snapshots"));
    let newest = all
        .iter()
        .rfind(|path| crate::support::cold::is_snapshot(path))?;
    Some(crate::support::cold::read(newest))
}

/// The entries of the index, by id.
pub fn index(home: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read(home.join("index.json")).unwrap();
    let entries: Vec<Value> =
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("index.json: {e}"));
    let entries = entries.into_iter();
    entries
        .map(|entry| (entry["id"].as_str().unwrap().to_owned(), entry))
        .collect()
}
