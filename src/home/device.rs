//! This device, told from others that share a folder with it.
//!
//! Its id is random and lies in the user's own data folder, outside of any home: a home that was copied to another
//! machine is not mistaken for the one that it came from. The file notes the machine, too, since data folders are copied
//! as well: on another machine the id is no longer its own, and a new one is made.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::{Context, Error, Result};
use crate::disk::{self, Written};

/// Where it stands in the user's data folder.
const FILE: &str = "wbhome/device.json";

/// A device, as it calls itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// 32 hex digits.
    pub id: String,
    /// The name of its machine when the id was made.
    pub name: String,
    /// When that was.
    pub created: Timestamp,
    /// What tells the machine from others; its own id is not to be shown to anybody: machine-id(5).
    machine: String,
}

impl Device {
    /// The device of the user whose data folder this is (`~/.local/share`), as long as one was made there on this machine.
    ///
    /// # Errors
    /// A file that can not be read or understood.
    pub fn known(data: &Path) -> Result<Option<Device>> {
        Ok(read(data)?.filter(|device| device.machine == machine()))
    }

    /// Like [`Device::known`]; makes one where there is none.
    ///
    /// # Errors
    /// As there, or when it can not be written.
    pub fn of_user(data: &Path, context: &Context) -> Result<Device> {
        let path = data.join(FILE);
        for _ in 0..8 {
            let former = disk::read_small(&path, 1 << 16)?;
            if let Some(device) = Device::known(data)? {
                return Ok(device);
            }
            let device = Device {
                id: format!("{:032x}", context.clock.random()),
                name: disk::host_name(),
                created: context.clock.now(),
                machine: machine(),
            };
            let mut text = serde_json::to_vec_pretty(&device)
                .map_err(|e| Error::io("can not write", &path, e))?;
            text.push(b'\n');
            disk::create_private_folder(path.parent().unwrap_or(data))?;
            // Of two that make one at once, the first has made it for both.
            if disk::replace(&path, former.as_deref(), &text, 0o600)? == Written::Done {
                return Ok(device);
            }
        }
        Err(Error::failed("is being changed again and again:").at(&path))
    }
}

fn read(data: &Path) -> Result<Option<Device>> {
    let path = data.join(FILE);
    let Some(text) = disk::read_small(&path, 1 << 16)? else {
        return Ok(None);
    };
    let device: Device = serde_json::from_slice(&text).map_err(|e| {
        Error::io("can not understand", &path, e).hint(
            "it says which device this is; move it away and run `wbhome relay init` again: leases of before are the old device's then",
        )
    })?;
    match is_id(&device.id) {
        true => Ok(Some(device)),
        false => Err(Error::failed("holds no id of a device:").at(&path)),
    }
}

/// Whether a text is the id of a device, and so safe as the name of a file.
pub fn is_id(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn machine() -> String {
    let own = disk::machine_id().unwrap_or_else(disk::host_name);
    let id = blake3::derive_key("wbhome 2026 machine of a device", own.as_bytes());
    blake3::Hash::from_bytes(id).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn a_device_is_made_once_and_a_copied_one_is_another() {
        let place = testing::home();
        let data = tempfile::tempdir().unwrap();
        assert_eq!(Device::known(data.path()).unwrap(), None);
        let made = Device::of_user(data.path(), &place.context()).unwrap();
        assert!(is_id(&made.id));
        assert_eq!(
            Device::of_user(data.path(), &place.context()).unwrap(),
            made
        );
        let path = data.path().join(FILE);
        let copied = Device {
            machine: "another".into(),
            ..made.clone()
        };
        std::fs::write(&path, serde_json::to_vec(&copied).unwrap()).unwrap();
        assert_eq!(Device::known(data.path()).unwrap(), None);
        let new = Device::of_user(data.path(), &place.context()).unwrap();
        assert_ne!(new.id, made.id);

        std::fs::write(&path, "{").unwrap();
        assert!(Device::known(data.path()).is_err());
        let odd = Device {
            id: "../../x".into(),
            ..made
        };
        std::fs::write(&path, serde_json::to_vec(&odd).unwrap()).unwrap();
        assert!(Device::known(data.path()).is_err());
    }
}
