//! `.leases/<device>.json`: what each device says of itself in a relay folder.
//!
//! A plain folder knows no compare-and-swap, and a sync client makes two files of one that two devices have written. So
//! each device has a file of its own, and writes no other: it says which home is bound to the folder there, which
//! sessions that home has put into it, and which leases the device holds. What others say is hostile data: it becomes
//! no path, and is printed escaped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::wire::ExactPath;
use crate::base::{Error, Result};
use crate::disk::{self, Dir, FileKind, NewFile};
use crate::home::is_device_id;

/// The folder in a relay that holds them.
pub const FOLDER: &str = ".leases";

/// The format that this program writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// No honest file is larger.
const LIMIT: u64 = 16 << 20;

/// No machine has a longer name, in bytes.
const LONGEST_NAME: usize = 255;

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
    /// Names in the folder that are no such file, and why: conflict copies of a sync client, torn ones.
    pub strange: Vec<(String, String)>,
}

impl Devices {
    /// Reads what all devices say, from the top of a relay. Nothing there is nothing said.
    ///
    /// # Errors
    /// A folder that can not be listed; this device's own file when it can not be understood. What others have torn is
    /// only noted.
    pub fn read(relay: &Dir, this: &str) -> Result<Devices> {
        let mut devices = Devices {
            this: this.to_owned(),
            ..Devices::default()
        };
        let fail = |e| Error::io("can not read", FOLDER, e);
        let folder = match relay.open_beneath(FOLDER.as_ref()) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(devices),
            Err(error) => return Err(fail(error)),
        };
        let mut names = folder.names().map_err(fail)?;
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, _) in names {
            let shown = name.to_string_lossy().into_owned();
            let id = shown.strip_suffix(".json").unwrap_or_default();
            if shown.starts_with(disk::TEMPORARY_PREFIX) {
                continue;
            }
            match read_one(&folder, &name, id) {
                Ok(said) => drop(devices.said.insert(id.to_owned(), said)),
                Err(why) if id == this => {
                    return Err(Error::failed("what this device says of itself can not be understood:")
                        .at(std::path::Path::new(FOLDER).join(&name))
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
            strange: Vec::new(),
        }
    }

    /// Of a device whose file is torn right now, what it said before counts on: a lease does not fall because a sync
    /// client is in the middle of writing.
    pub(super) fn stand_in(&mut self, former: impl Iterator<Item = Said>) {
        for said in former.filter(|said| said.device != self.this) {
            let name = format!("{}.json", said.device);
            if self.strange.iter().any(|(strange, _)| *strange == name) {
                self.said.entry(said.device.clone()).or_insert(said);
            }
        }
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

    /// Every claim on the lease of a session, the one that counts first.
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
        self.claims(session).into_iter().next()
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

fn read_one(folder: &Dir, name: &std::ffi::OsStr, id: &str) -> Result<Said, String> {
    if !is_device_id(id) {
        return Err("its name is not the id of a device".to_owned());
    }
    let kind = folder.stat(name).map_err(|e| e.to_string())?.kind;
    if kind != FileKind::File {
        return Err(format!("it is {}", kind.described()));
    }
    let text = disk::read_small_in(folder, name, LIMIT).map_err(|e| e.to_string())?;
    let said: Said =
        serde_json::from_slice(&text.unwrap_or_default()).map_err(|e| e.to_string())?;
    if said.format > FORMAT {
        return Err(format!(
            "it is of a newer format ({}, this program knows {FORMAT})",
            said.format
        ));
    }
    match said.device == id {
        true if said.name.len() > LONGEST_NAME => Err("no machine has such a name".to_owned()),
        true => Ok(said),
        false => Err("it speaks of another device".to_owned()),
    }
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
        let folder = relay.make_beneath(FOLDER.as_ref())?;
        let file = NewFile::create(&folder)?;
        file.file().write_all(&text)?;
        file.sync()?;
        file.publish_over(format!("{}.json", self.device).as_ref())?;
        folder.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0000000000000000000000000000000a";
    const B: &str = "0000000000000000000000000000000b";

    fn said(device: &str) -> Said {
        let path = std::path::PathBuf::from("/主页").into();
        Said::first(device, "host", "home", path, Timestamp::UNIX_EPOCH)
    }

    fn with_lease(device: &str, epoch: u64) -> Said {
        let mut said = said(device);
        let since = Timestamp::UNIX_EPOCH;
        said.leases.insert("任务".into(), Lease { epoch, since });
        said
    }

    #[test]
    fn what_was_written_is_read_and_what_is_strange_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Dir::open(folder.path()).unwrap();
        assert_eq!(Devices::read(&relay, A).unwrap().all().count(), 0);
        said(A).write(&relay).unwrap();
        with_lease(B, 3).write(&relay).unwrap();
        let leases = folder.path().join(FOLDER);
        let copy = format!("{B} (1).json");
        std::fs::copy(leases.join(format!("{B}.json")), leases.join(&copy)).unwrap();
        std::fs::write(leases.join(format!("{:032x}.json", 3)), "{").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", leases.join(format!("{:032x}.json", 4))).unwrap();
        let devices = Devices::read(&relay, A).unwrap();
        assert_eq!(devices.own(), Some(&said(A)));
        assert_eq!(devices.others().collect::<Vec<_>>(), [&with_lease(B, 3)]);
        assert_eq!(devices.strange.len(), 3, "{:?}", devices.strange);

        std::fs::write(leases.join(format!("{A}.json")), "{").unwrap();
        assert!(Devices::read(&relay, A).is_err());
    }

    #[test]
    fn the_highest_epoch_wins_and_then_the_higher_id() {
        let holder = |a: Said, b: Said| {
            let devices = Devices::noted(A, vec![a, b]);
            devices
                .holder("任务")
                .map(|holder| (holder.device, holder.ours))
        };
        assert_eq!(holder(said(A), said(B)), None);
        let ours = Some((A.to_owned(), true));
        let theirs = Some((B.to_owned(), false));
        assert_eq!(holder(with_lease(A, 2), with_lease(B, 1)), ours);
        assert_eq!(holder(with_lease(A, 2), with_lease(B, 2)), theirs);
        let mut released = said(B);
        released.released.insert("任务".into(), 7);
        let devices = Devices::noted(A, vec![with_lease(A, 2), released]);
        assert_eq!(devices.highest_epoch("任务"), 7);
        assert_eq!(devices.held_elsewhere("任务"), None);
    }
}
