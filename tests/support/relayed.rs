//! A relay folder that a home is bound to, and what another device has sent there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{NOW, Place, Ran, has_tool, is_root, tree};

/// The other device.
pub const OTHER: &str = "00000000000000000000000000000001";

impl Place {
    /// [`Place::with_sessions`], whose home is bound to the empty relay folder `relay` in the mode clone.
    pub fn with_relay() -> Place {
        let place = Place::with_sessions();
        place.bind_relay("mode = \"clone\"");
        place
    }

    /// Binds the home to the relay folder `relay`.
    pub fn bind_relay(&self, more: &str) {
        self.ok(["relay", "init", "relay", "--mode", "clone", "-q"]);
        self.put_home(
            "wbhome.toml",
            format!("[relay]\ndir = {:?}\n{more}\n", self.relay()),
        );
        self.say(&self.device(), json!({"sessions": {}, "leases": {}}));
    }

    pub fn relay(&self) -> PathBuf {
        self.path("relay")
    }

    /// The id of this device.
    pub fn device(&self) -> String {
        let file = "me/.local/share/wbhome/device.json";
        let device: Value = serde_json::from_str(&self.text(file)).unwrap();
        device["id"].as_str().unwrap().to_owned()
    }

    /// What a device says of itself, written as that device would.
    pub fn say(&self, device: &str, more: Value) {
        let home: Value = serde_json::from_str(&self.home_text(".wbhome/home.json")).unwrap();
        let (id, path) = match device == OTHER {
            true => (json!("f".repeat(32)), json!("/data/主页")),
            false => (
                home["id"].clone(),
                json!(self.home().canonicalize().unwrap()),
            ),
        };
        let mut said = json!({
            "format": 1, "device": device, "name": "笔记本", "home": id, "path": path, "since": NOW, "beat": 1,
        });
        said.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.put(format!("relay/.leases/{device}.json"), said.to_string());
    }

    /// The other device says that it has sent a session as it is in the relay now, an hour ago.
    pub fn sent(&self, id: &str) {
        self.say(OTHER, json!({"sessions": {id: self.word(id, "工作")}}));
    }

    /// What a device says of a session that it has sent.
    pub fn word(&self, id: &str, tag: &str) -> Value {
        json!({"tag": tag, "at": "2024-06-15T11:00:00Z", "version": version_of(&self.relay().join(id))})
    }

    /// A session of the other device in the relay: a record, and a turn of that text.
    pub fn send(&self, id: &str, text: &str) {
        self.put(
            format!("relay/{id}/session.json"),
            format!(
                "{{\"id\": {id:?}, \"session_id\": \"identity-of-{id}\", \"title\": \"远程\"}}\n"
            ),
        );
        self.put(format!("relay/{id}/context/turn_001.json"), text);
        self.sent(id);
    }

    /// This device holds the lease of a session.
    pub fn hold_lease(&self, id: &str) {
        self.say(
            &self.device(),
            json!({"leases": {id: {"epoch": 1, "since": NOW}}}),
        );
    }
}

/// The digest of a version: of its files and links by path, without logs and what file managers leave.
fn version_of(folder: &Path) -> String {
    use base64::Engine as _;
    use std::os::unix::ffi::OsStringExt as _;
    let mut names: Vec<(PathBuf, super::Entry)> = tree(folder)
        .into_iter()
        .map(|(path, entry)| (std::ffi::OsString::from_vec(path).into(), entry))
        .filter(|(path, entry): &(PathBuf, super::Entry)| {
            let left = entry.kind == 'f' && path.ends_with(".DS_Store");
            matches!(entry.kind, 'f' | 'l') && !path.starts_with("logs") && !left
        })
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = blake3::Hasher::new();
    for (path, entry) in names {
        let value = match entry.kind {
            'l' => base64::engine::general_purpose::STANDARD.encode(entry.content),
            _ => entry.content,
        };
        let kind = entry.kind.to_string();
        for part in [
            path.as_os_str().as_encoded_bytes(),
            kind.as_bytes(),
            value.as_bytes(),
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Runs the program as somebody who may not read everything: root gives that up. `None`, and said so, where it can not.
pub fn run_unprivileged(place: &Place, args: &[&str]) -> Option<Ran> {
    if !rustix::process::geteuid().is_root() {
        return Some(place.run(args));
    }
    if !is_root() || !has_tool("setpriv") {
        return None;
    }
    const GIVEN_UP: &str = "-dac_override,-dac_read_search";
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set", GIVEN_UP, "--inh-caps", GIVEN_UP]);
    let wbhome = place.command();
    command
        .arg(wbhome.get_program())
        .args(args)
        .env_clear()
        .current_dir(place.root());
    command.envs(
        wbhome
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Some(Ran::of(command.output().unwrap()))
}
