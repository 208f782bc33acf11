//! A home with a cold store, nights by number, and what stock tools find in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Entry, Place, Ran, tree};

/// Three o'clock in a night, counted from the first of June 2024.
pub fn night(n: i64) -> String {
    let first: jiff::Timestamp = "2024-06-01T03:00:00Z".parse().unwrap();
    let then = first + jiff::SignedDuration::from_hours(24 * (n - 1));
    then.to_string()
}

/// Waits until what was just written does not look as if it were being written.
pub fn rest() {
    std::thread::sleep(std::time::Duration::from_millis(40));
}

/// What can not be compressed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Changes a byte in the middle of a file.
pub fn damage(path: &Path) {
    let mut content = std::fs::read(path).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 0x55;
    std::fs::write(path, content).unwrap();
}

/// The files in a folder, by name: of packs the oldest first.
pub fn files_in(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

impl Place {
    /// [`Place::with_sessions`] with the store `cold`.
    pub fn with_store() -> Place {
        let place = Place::with_sessions();
        place.ok(["backup", "init", "cold", "-q"]);
        place
    }

    /// Runs the program in a night.
    pub fn at(&self, n: i64, args: &[&str]) -> Ran {
        self.run_with(&[("WBHOME_NOW", &night(n))], args)
    }

    /// `backup run` in a night, which must end so, and what it says of the one store.
    #[track_caller]
    pub fn backup(&self, n: i64, exit: i32) -> Value {
        rest();
        let ran = self.at(n, &["backup", "run", "--json"]);
        ran.expect(exit);
        ran.json()["stores"][0].clone()
    }

    /// The files of the snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(self.path("cold/snapshots")).unwrap();
        let mut names: Vec<PathBuf> = names.map(|name| name.unwrap().path()).collect();
        names.sort();
        names
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Value {
        read(self.snapshots().last().unwrap())
    }

    /// Every pack that lies in the store, relative to it.
    pub fn packs(&self) -> Vec<String> {
        let cold = self.path("cold");
        let files = walkdir::WalkDir::new(cold.join("packs")).sort_by_file_name();
        files
            .into_iter()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let rel = entry.path().strip_prefix(&cold).unwrap();
                rel.to_str().unwrap().to_owned()
            })
            .collect()
    }

    /// A pack of the store unpacked by stock tools: its top folder.
    pub fn unpack(&self, file: &str) -> PathBuf {
        let into = self.path("unpacked");
        let _ = std::fs::remove_dir_all(&into);
        std::fs::create_dir(&into).unwrap();
        let pack = self.path("cold").join(file);
        super::home::tool(
            "tar",
            &[
                "--zstd",
                "-xpf",
                pack.to_str().unwrap(),
                "-C",
                into.to_str().unwrap(),
            ],
        );
        let tops: Vec<PathBuf> = std::fs::read_dir(&into)
            .unwrap()
            .map(|top| top.unwrap().path())
            .collect();
        assert_eq!(tops.len(), 1, "{file}: {tops:?}");
        tops[0].clone()
    }

    /// Every snapshot can be read, and every pack that it names is there, as long as it says, of the digest that it
    /// says, and sound for `zstd`, which is asked once for each digest.
    #[track_caller]
    pub fn snapshots_are_whole(&self, asked: &mut BTreeSet<String>) {
        let cold = self.path("cold");
        let mut digests: BTreeMap<String, String> = BTreeMap::new();
        for snapshot in self
            .snapshots()
            .into_iter()
            .filter(|name| is_snapshot(name))
        {
            for (file, bytes, blake3) in packs_of(&read(&snapshot)) {
                let (at, named) = (cold.join(&file), format!("{}: {file}", snapshot.display()));
                let meta = std::fs::symlink_metadata(&at);
                let meta = meta.unwrap_or_else(|e| panic!("{named}: {e}"));
                assert_eq!(meta.len(), bytes, "{named}");
                let found = digests.entry(file).or_insert_with(|| super::digest(&at));
                assert_eq!(*found, blake3, "{named}");
                if asked.insert(blake3) {
                    super::home::tool("zstd", &["-tq", at.to_str().unwrap()]);
                }
            }
        }
    }

    /// A session of the home.
    pub fn of_session(&self, id: &str) -> BTreeMap<Vec<u8>, Entry> {
        tree(&self.home().join("sessions").join(id))
    }

    /// Everything in the store but its lock, to be compared.
    pub fn store(&self) -> BTreeMap<Vec<u8>, Entry> {
        let mut store = tree(&self.path("cold"));
        store.remove(&b"lock"[..]);
        // The lock may have been made in it.
        if let Some(top) = store.get_mut(&b""[..]) {
            top.mtime = (0, 0);
        }
        store
    }
}

/// A JSON file.
pub fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The item of a session in a snapshot.
pub fn item<'s>(snapshot: &'s Value, id: &str) -> Option<&'s Value> {
    let mut items = snapshot["items"].as_array().unwrap().iter();
    items.find(|item| item["kind"] == "session" && item["name"] == id)
}

/// What a run has packed, by name.
pub fn packed(ran: &Value) -> Vec<String> {
    let packed = ran["packed"].as_array().unwrap().iter();
    packed
        .map(|packed| packed["what"].as_str().unwrap().to_owned())
        .collect()
}

/// Every pack that a snapshot names.
pub fn named(snapshot: &Value) -> Vec<String> {
    fn find(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let (Some(Value::String(file)), true) =
                    (fields.get("file"), fields.contains_key("blake3"))
                    && fields.contains_key("form")
                {
                    out.push(file.clone());
                }
                fields.values().for_each(|value| find(value, out));
            }
            Value::Array(values) => values.iter().for_each(|value| find(value, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    find(snapshot, &mut out);
    out.sort();
    out.dedup();
    out
}

/// A home as a backup keeps it: without what the tool makes again, and without the repository.
pub fn kept(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut tree = tree(root);
    let made_again = ["lock", "cache.json", "tmp", "trash", "journal"];
    tree.retain(|name, _| {
        let name = String::from_utf8_lossy(name);
        let own = name.strip_prefix(".wbhome/").unwrap_or_default();
        !made_again
            .iter()
            .any(|made| own == *made || own.starts_with(&format!("{made}/")))
            && name != ".git"
            && !name.starts_with(".git/")
    });
    tree
}

/// Every pack that a snapshot names, as anybody would find them in it: file, length and digest.
pub fn packs_of(snapshot: &Value) -> Vec<(String, u64, String)> {
    let mut found = Vec::new();
    for item in snapshot["items"].as_array().unwrap() {
        let kept = item["kept"].as_array().into_iter().flatten();
        let packs = ["newest", "complete", "archive"].map(|key| &item[key]);
        let packs = packs.into_iter().chain(kept.map(|kept| &kept["pack"]));
        for pack in packs.filter(|pack| pack.is_object()) {
            let text = |key: &str| pack[key].as_str().unwrap().to_owned();
            found.push((
                text("file"),
                pack["bytes"].as_u64().unwrap(),
                text("blake3"),
            ));
        }
    }
    found
}

/// Whether a file among the snapshots is one, and not what a kill has left.
pub fn is_snapshot(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}
