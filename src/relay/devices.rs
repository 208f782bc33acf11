//! `.leases/<device>.json`: what each device says of itself in a relay folder.
//!
//! A plain folder knows no compare-and-swap, and a sync client makes two files of one that two devices have written. So
//! each device has a file of its own, and writes no other: it says which home is bound to the folder there, which
//! sessions that home has put into it, and which leases the device holds. What others say is hostile data: it becomes
//! no path, is printed escaped, and only so much of it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::said::Wanted;
pub use super::said::{Lease, Said, Sent};
use crate::base::{Error, Result};
use crate::disk::{self, Dir, FileKind};
use crate::home::is_device_id;

/// The folder in a relay that holds them.
pub const FOLDER: &str = ".leases";

/// No honest file is larger.
const LIMIT: u64 = 16 << 20;

/// Nobody has more devices.
pub(super) const FILES: usize = 64;

/// So much is read in all.
const TOGETHER: u64 = 64 << 20;

/// Who holds the lease of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The id of the device.
    pub device: String,
    /// What its machine is called. Not escaped.
    pub name: String,
    /// The epoch of the lease.
    pub epoch: u64,
    /// Since when, by the clock of that device.
    pub since: Timestamp,
    /// Whether it is this device.
    pub ours: bool,
}

/// What all devices say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// The id of this one.
    this: String,
    /// By id, this device's own among them.
    said: BTreeMap<String, Said>,
    /// Those of which there is no file any more; what they said before counts on.
    gone: BTreeSet<String>,
    /// Names in the folder that are no such file, and why: conflict copies of a sync client, torn ones.
    pub strange: Vec<(String, String)>,
}

impl Devices {
    /// Reads what all devices say, from the top of a relay, which lies at `path`. Nothing there is nothing said.
    ///
    /// # Errors
    /// A folder that can not be listed; this device's own file when it can not be understood. What others have torn is
    /// only noted.
    pub fn read(relay: &Dir, path: &Path, this: &str) -> Result<Devices> {
        Devices::read_as(relay, path, this, Wanted::All)
    }

    /// Like [`Devices::read`], so much of it.
    ///
    /// # Errors
    /// As there.
    pub(super) fn read_as(relay: &Dir, path: &Path, this: &str, wanted: Wanted) -> Result<Devices> {
        let mut devices = Devices {
            this: this.to_owned(),
            ..Devices::default()
        };
        let Some(folder) = open(relay, path)? else {
            return Ok(devices);
        };
        let names = folder.names();
        let mut names = names.map_err(|e| Error::io("can not read", path.join(FOLDER), e))?;
        // However many others there are, this device's own is read.
        let own = format!("{this}.json");
        names.sort_by(|(a, _), (b, _)| (*a != *own, a).cmp(&(*b != *own, b)));
        let mut room = Room {
            files: FILES,
            bytes: TOGETHER,
        };
        for (name, _) in names {
            let shown = name.to_string_lossy().into_owned();
            let id = shown.strip_suffix(".json").unwrap_or_default();
            if shown.starts_with(disk::TEMPORARY_PREFIX) {
                continue;
            }
            match read_one(&folder, &name, id, wanted, &mut room) {
                Ok(said) => drop(devices.said.insert(id.to_owned(), said)),
                Err(why) if id == this => {
                    return Err(Error::failed("what this device says of itself can not be understood:")
                        .at(path.join(FOLDER).join(&name))
                        .because(std::io::Error::other(why))
                        .hint("look at it; when it is moved away, `wbhome relay init` makes a new one, and its leases are gone"));
                }
                Err(why) => devices.strange.push((shown, why)),
            }
        }
        Ok(devices)
    }

    /// As they were noted once, for a time when the folder can not be reached.
    pub fn noted(this: &str, said: Vec<Said>) -> Devices {
        Devices {
            this: this.to_owned(),
            said: said.into_iter().map(|s| (s.device.clone(), s)).collect(),
            ..Devices::default()
        }
    }

    /// Of a device whose file is torn right now, or not there, what it said before counts on: a lease does not fall
    /// because a sync client is in the middle of writing, or puts a file in the place of another by removing that first.
    pub(super) fn stand_in(&mut self, former: impl Iterator<Item = Said>) {
        let strange: BTreeSet<&str> = self.strange.iter().map(|(name, _)| &**name).collect();
        for said in former.filter(|said| said.device != self.this) {
            if self.said.contains_key(&said.device) {
                continue;
            }
            if !strange.contains(format!("{}.json", said.device).as_str()) {
                self.gone.insert(said.device.clone());
            }
            self.said.insert(said.device.clone(), said);
        }
    }

    /// Whether the file of a device, whose word counts on, is not there any more.
    pub fn is_gone(&self, device: &str) -> bool {
        self.gone.contains(device)
    }

    /// What this device says.
    pub fn own(&self) -> Option<&Said> {
        self.said.get(&self.this)
    }

    /// What the others say, by id.
    pub fn others(&self) -> impl Iterator<Item = &Said> {
        self.said.values().filter(|said| said.device != self.this)
    }

    /// What all say, by id.
    pub fn all(&self) -> impl Iterator<Item = &Said> {
        self.said.values()
    }

    /// Every claim on the lease of a session, the best first. Even that one may count no more: [`Devices::holder`].
    pub fn claims(&self, session: &str) -> Vec<Holder> {
        let mut claims: Vec<Holder> = self
            .said
            .values()
            .filter_map(|said| {
                let lease = said.leases.get(session)?;
                Some(Holder {
                    device: said.device.clone(),
                    name: said.name.clone(),
                    epoch: lease.epoch,
                    since: lease.since,
                    ours: said.device == self.this,
                })
            })
            .collect();
        claims.sort_by(|a, b| (b.epoch, &b.device).cmp(&(a.epoch, &a.device)));
        claims
    }

    /// Who holds the lease of a session.
    pub fn holder(&self, session: &str) -> Option<Holder> {
        let best = self.claims(session).into_iter().next()?;
        // Whoever was overtaken does not come to it again because the other has let go of it.
        let let_go = self.said.values().filter_map(|said| {
            let number = said.released.get(session)?;
            Some((*number, &said.device))
        });
        let is_overtaken = let_go.max() > Some((best.epoch, &best.device));
        (!is_overtaken).then_some(best)
    }

    /// Who holds it, when that is another device.
    pub fn held_elsewhere(&self, session: &str) -> Option<Holder> {
        self.holder(session).filter(|holder| !holder.ours)
    }

    /// The highest epoch that any device has had for a session.
    pub fn highest_epoch(&self, session: &str) -> u64 {
        let held = self.said.values().filter_map(|s| s.leases.get(session));
        let released = self.said.values().filter_map(|s| s.released.get(session));
        held.map(|lease| lease.epoch)
            .chain(released.copied())
            .max()
            .unwrap_or(0)
    }

    /// The devices that say to have put a session here, the newest word first; this one not among them.
    pub fn senders(&self, session: &str) -> Vec<(&Said, &Sent)> {
        let mut senders: Vec<(&Said, &Sent)> = self
            .others()
            .filter_map(|said| Some((said, said.sessions.get(session)?)))
            .collect();
        senders.sort_by_key(|(_, sent)| std::cmp::Reverse(sent.at));
        senders
    }
}

/// Opens the folder of the files; `None` where there is none.
fn open(relay: &Dir, path: &Path) -> Result<Option<Dir>> {
    let path = path.join(FOLDER);
    let found = relay.find(FOLDER.as_ref());
    match found.map_err(|e| Error::io("can not read", &path, e))? {
        None => Ok(None),
        Some(meta) if meta.kind == FileKind::Folder => {
            let folder = relay.open_beneath(FOLDER.as_ref());
            folder
                .map(Some)
                .map_err(|e| Error::io("can not read", &path, e))
        }
        Some(meta) => {
            let what = meta.kind.described();
            Err(Error::failed(format!("expected a folder, found {what}:"))
                .at(&path)
                .hint("what the devices say lies in it, and no link is followed in a relay: put the folder itself there"))
        }
    }
}

/// What may still be read.
struct Room {
    files: usize,
    bytes: u64,
}

fn read_one(
    folder: &Dir,
    name: &OsStr,
    id: &str,
    wanted: Wanted,
    room: &mut Room,
) -> Result<Said, String> {
    if !is_device_id(id) {
        return Err("its name is not the id of a device".to_owned());
    }
    let meta = folder.stat(name).map_err(|e| e.to_string())?;
    if meta.kind != FileKind::File {
        return Err(format!("it is {}", meta.kind.described()));
    }
    if room.files == 0 {
        return Err(format!("there are more than {FILES} such files"));
    }
    if meta.size > room.bytes && meta.size <= LIMIT {
        let together = crate::base::human::size(TOGETHER);
        return Err(format!("such files hold more than {together} together"));
    }
    let text = disk::read_small_in(folder, name, LIMIT.min(room.bytes));
    let text = text.map_err(|e| e.to_string())?.unwrap_or_default();
    room.files -= 1;
    room.bytes = room.bytes.saturating_sub(text.len() as u64);
    Said::understood(&text, id, wanted)
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
