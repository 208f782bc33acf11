//! What one device says of itself: the text of `.leases/<device>.json`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::devices::FOLDER;
use crate::base::wire::ExactPath;
use crate::disk::{self, Dir, NewFile};
use crate::home::is_device_id;

/// The format that this program writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// No machine has a longer name, in bytes.
const LONGEST_NAME: usize = 255;

/// No lease has a higher number: no device counts that far, and every reader of JSON holds it exactly.
pub(super) const HIGHEST: u64 = 1 << 53;

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The format.
    pub format: u64,
    /// The id of the device: the name of the file.
    pub device: String,
    /// What its machine is called.
    pub name: String,
    /// The id of the home that is bound to this folder there.
    pub home: String,
    /// Where that home lies there.
    pub path: ExactPath,
    /// When it was bound.
    pub since: Timestamp,
    /// Counts up with each sync: a sign of life that needs no clock.
    #[serde(default)]
    pub beat: u64,
    /// The sessions that it has put here.
    #[serde(default)]
    pub sessions: BTreeMap<String, Sent>,
    /// The leases that it holds, by session.
    #[serde(default)]
    pub leases: BTreeMap<String, Lease>,
    /// The highest epoch at which it has ever held a lease that it does not hold any more.
    #[serde(default)]
    pub released: BTreeMap<String, u64>,
}

/// A session that a device has put into the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its sync tag there.
    pub tag: String,
    /// When it was sent last, by the clock of that device.
    pub at: Timestamp,
    /// The digest of all that belongs to it (`record::version`): what arrives elsewhere is whole when it
    /// has the same. Empty when the device does not say.
    #[serde(default)]
    pub version: String,
}

/// A lease that a device says it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Higher wins; of two that are equal, the higher id of a device.
    pub epoch: u64,
    /// Since when, by the clock of that device.
    pub since: Timestamp,
}

/// What a device says, as it is read where only leases count: what it has sent is passed over.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OfLeases {
    format: u64,
    device: String,
    name: String,
    home: String,
    path: ExactPath,
    since: Timestamp,
    #[serde(default)]
    beat: u64,
    #[serde(default)]
    leases: BTreeMap<String, Lease>,
    #[serde(default)]
    released: BTreeMap<String, u64>,
}

impl From<OfLeases> for Said {
    fn from(said: OfLeases) -> Said {
        Said {
            format: said.format,
            device: said.device,
            name: said.name,
            home: said.home,
            path: said.path,
            since: said.since,
            beat: said.beat,
            sessions: BTreeMap::new(),
            leases: said.leases,
            released: said.released,
        }
    }
}

/// How much of what a device says is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    All,
    /// All but the sessions that it has put here.
    Leases,
}

impl Said {
    /// The first word of a device.
    pub fn first(device: &str, name: &str, home: &str, path: ExactPath, since: Timestamp) -> Said {
        Said {
            format: FORMAT,
            device: device.to_owned(),
            name: name.to_owned(),
            home: home.to_owned(),
            path,
            since,
            beat: 0,
            sessions: BTreeMap::new(),
            leases: BTreeMap::new(),
            released: BTreeMap::new(),
        }
    }

    /// What the device of that id says in its file, or why that is not believed, for a person.
    pub(super) fn understood(text: &[u8], id: &str, wanted: Wanted) -> Result<Said, String> {
        let said = match wanted {
            Wanted::All => serde_json::from_slice(text),
            Wanted::Leases => serde_json::from_slice::<OfLeases>(text).map(Said::from),
        };
        let said = said.map_err(|e| e.to_string())?;
        let held = said.leases.values().map(|lease| lease.epoch);
        let mut numbers = held.chain(said.released.values().copied());
        if said.format > FORMAT {
            let newer = said.format;
            return Err(format!(
                "it is of a newer format ({newer}, this program knows {FORMAT})"
            ));
        }
        if said.device != id {
            return Err("it speaks of another device".to_owned());
        }
        if said.name.len() > LONGEST_NAME {
            return Err("no machine has such a name".to_owned());
        }
        match numbers.find(|number| *number > HIGHEST) {
            Some(number) => Err(format!("no lease has the number {number}")),
            None => Ok(said),
        }
    }

    /// Writes it into the relay whose top this is, so that it is on the disk. Only for what this device says of itself.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write(&self, relay: &Dir) -> std::io::Result<()> {
        use std::io::Write as _;
        if !is_device_id(&self.device) {
            return Err(std::io::Error::other("that is not the id of a device"));
        }
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let is_new = relay.find(FOLDER.as_ref())?.is_none();
        let folder = relay.make_beneath(FOLDER.as_ref())?;
        let name = format!("{}.json", self.device);
        let mut file = NewFile::create(&folder)?;
        file.file().write_all(&text)?;
        if disk::is_root() {
            // Root that writes for another user must not lock them out of their own relay.
            let owner = relay.meta()?;
            if is_new {
                folder.set_owner(owner.uid, owner.gid)?;
            }
            let owner = folder.find(name.as_ref())?.unwrap_or(owner);
            file.give_to(owner.uid, owner.gid, 0o600)?;
        }
        file.sync()?;
        file.publish_over(name.as_ref())?;
        folder.sync()
    }

    /// Takes a lease out, and notes that it was held. Whether there was one.
    pub(super) fn let_go(&mut self, session: &str) -> bool {
        let Some(lease) = self.leases.remove(session) else {
            return false;
        };
        let released = self.released.entry(session.to_owned()).or_default();
        *released = lease.epoch.max(*released);
        true
    }
}
