//! Two devices with a home each, bound to a folder as `relay init` would bind them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{NOW, Place};

/// Two devices that look into the same folder, as if a sync client carried everything at once.
pub struct Devices {
    pub laptop: Place,
    pub desk: Place,
}

/// The ids of the two; of equal numbers the higher id wins.
pub const LAPTOP: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub const DESK: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A session that both homes have, with a sync tag.
pub const SHARED: &str = "20240604_数据清洗";

impl Devices {
    pub fn new() -> Devices {
        let devices = Devices {
            laptop: Place::with_sessions(),
            desk: Place::with_sessions(),
        };
        let relay = devices.laptop.path("中继");
        std::fs::create_dir(&relay).unwrap();
        for (place, id, name) in [
            (&devices.laptop, LAPTOP, "laptop"),
            (&devices.desk, DESK, "desk"),
        ] {
            place.bind(&relay, id, name);
            place.ok(["label", SHARED, "--sync-tag", "两台", "-q"]);
        }
        devices
    }

    pub fn relay(&self) -> PathBuf {
        self.laptop.path("中继")
    }

    /// What a device says of itself.
    pub fn said(&self, id: &str) -> Value {
        said_in(&self.relay(), id)
    }

    /// Changes what a device says, as if it had done so.
    pub fn say(&self, id: &str, change: impl FnOnce(&mut Value)) {
        let mut said = self.said(id);
        change(&mut said);
        write_said(&self.relay(), id, &said);
    }

    /// The folder of the other device is from now on another one, which nobody carries.
    pub fn part(&self) -> PathBuf {
        let apart = self.desk.path("中继");
        std::fs::create_dir_all(apart.join(".leases")).unwrap();
        for id in [LAPTOP, DESK] {
            write_said(&apart, id, &self.said(id));
        }
        let toml = self.desk.home_text("wbhome.toml");
        let toml = toml.replace(self.relay().to_str().unwrap(), apart.to_str().unwrap());
        self.desk.put_home("wbhome.toml", toml);
        apart
    }
}

fn file(relay: &Path, id: &str) -> PathBuf {
    relay.join(format!(".leases/{id}.json"))
}

/// What a device says of itself in a folder.
pub fn said_in(relay: &Path, id: &str) -> Value {
    serde_json::from_slice(&std::fs::read(file(relay, id)).unwrap()).unwrap()
}

/// Writes that.
pub fn write_said(relay: &Path, id: &str, said: &Value) {
    std::fs::write(file(relay, id), said.to_string()).unwrap();
}

impl Place {
    /// Binds the home of this place, on a device of that id and name, to a relay folder.
    pub fn bind(&self, relay: &Path, id: &str, name: &str) {
        let relay_text = relay.to_str().unwrap();
        self.ok(["relay", "init", relay_text, "--mode", "clone", "-q"]);
        let of_device = "me/.local/share/wbhome/device.json";
        let mut device: Value = serde_json::from_str(&self.text(of_device)).unwrap();
        let made = device["id"].as_str().unwrap().to_owned();
        std::fs::remove_file(file(relay, &made)).unwrap();
        device["id"] = id.into();
        device["name"] = name.into();
        self.put(of_device, device.to_string());
        let home: Value = serde_json::from_str(&self.home_text(".wbhome/home.json")).unwrap();
        let said = json!({
            "format": 1, "device": id, "name": name, "home": home["id"], "path": self.home(), "since": NOW,
        });
        std::fs::create_dir_all(relay.join(".leases")).unwrap();
        write_said(relay, id, &said);
    }
}
