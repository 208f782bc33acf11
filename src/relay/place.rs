//! The relay folder of a home on this device: opened, and made sure of.

use std::path::{Path, PathBuf};

use super::devices::{Devices, FOLDER, Said};
use super::seen::Seen;
use crate::base::{Error, Result, human};
use crate::disk::{self, Dir};
use crate::home::{Device, Home, RelayMode, Trust};

/// What the settings say, with the folder as an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The folder.
    pub dir: PathBuf,
    /// How sessions get there.
    pub mode: RelayMode,
    /// Whether logs go too.
    pub logs: bool,
}

/// A relay folder that is bound to this home on this device.
#[derive(Debug)]
pub struct Relay {
    /// Where it is, as the settings say.
    pub path: PathBuf,
    /// The open folder.
    pub root: Dir,
    /// This device.
    pub device: Device,
    /// How sessions get there.
    pub mode: RelayMode,
    /// Whether logs go too.
    pub logs: bool,
    /// What all devices say, as it was when the folder was opened.
    pub devices: Devices,
    /// What they said when this home noted it last.
    pub seen: Seen,
}

impl Relay {
    /// Opens the relay folder of a home.
    ///
    /// # Errors
    /// A folder that is not there, or holds no word of this device: a disk may not be mounted, and what seems to have
    /// been removed from it was not. One that lies in the home or holds it, and one that another home of this device is
    /// bound to.
    pub fn open(home: &Home, setting: &Setting, device: Device) -> Result<Relay> {
        let path = setting.dir.clone();
        refuse_within(home, &path)?;
        if disk::stat(&path)?.is_none() {
            return Err(Error::failed("the relay folder is not there:")
                .at(&path)
                .hint("if it is on a disk that is not mounted, mount it")
                .hint("`wbhome relay init DIR --mode MODE` makes one, or changes to another"));
        }
        let root =
            Dir::open(&path).map_err(|e| Error::io("can not open the relay folder", &path, e))?;
        let seen = Seen::read(home, &path);
        let mut relay = Relay {
            path,
            root,
            device,
            mode: setting.mode,
            logs: setting.logs,
            devices: Devices::default(),
            seen,
        };
        relay.read_devices()?;
        match relay.devices.own() {
            Some(own) => relay.refuse_another_home(home, own)?,
            None => return Err(not_bound(&relay.path)),
        }
        Ok(relay)
    }

    /// Reads again what all devices say.
    ///
    /// # Errors
    /// As [`Devices::read`].
    pub fn read_devices(&mut self) -> Result<()> {
        self.devices = Devices::read(&self.root, &self.path, &self.device.id)?;
        self.devices.stand_in(self.seen.all());
        Ok(())
    }

    /// Writes what this device says from now on.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn say(&mut self, said: &Said) -> Result<()> {
        said.write(&self.root)
            .map_err(|e| Error::io("can not write to", self.path.join(FOLDER), e))?;
        self.read_devices()
    }

    fn refuse_another_home(&self, home: &Home, own: &Said) -> Result<()> {
        match another_home(home, own)? {
            None => Ok(()),
            Some(error) => Err(error.at(&self.path)),
        }
    }
}

/// A folder in which nothing of this device stands.
pub fn not_bound(path: &Path) -> Error {
    Error::failed("the folder is not, or not any more, a relay of this device:")
        .at(path)
        .hint("if it is on a disk that is not mounted, mount it")
        .hint(format!(
            "`wbhome relay init {} --mode MODE` makes it one",
            human::quoted(path)
        ))
}

/// Why the home that a device has bound to a relay is not this one, if so. One that was moved is the same.
///
/// # Errors
/// A home whose real path can not be found.
pub(super) fn another_home(home: &Home, own: &Said) -> Result<Option<Error>> {
    let other = human::path(&own.path);
    if own.home != home.id() {
        return Ok(Some(
            Error::failed(format!(
                "another home of this device, {other}, is bound to the relay:"
            ))
            .hint("each home of a device needs a relay folder of its own"),
        ));
    }
    let here = disk::real_path(home.root())?;
    if *own.path == *here {
        return Ok(None);
    }
    // A copy has the same id; only one of the two may speak for it.
    let still = Home::open(own.path.to_path_buf(), Trust::Found);
    Ok(match still {
        Ok(still) if still.id() == home.id() => Some(
            Error::failed(format!(
                "the relay is bound to {other}, of which this home is a copy:"
            ))
            .hint("use that one; or, if this is the one to go on with, move that one away"),
        ),
        _ => None,
    })
}

/// Refuses a relay in the home, a home in the relay, and a link from one into the other.
///
/// # Errors
/// The refusal, and paths that can not be looked at.
pub(super) fn refuse_within(home: &Home, dir: &Path) -> Result<()> {
    let inside = |one: &Path, other: &Path| {
        disk::is_inside(one, other).map_err(|e| Error::io("can not look at", one, e))
    };
    if inside(dir, home.root())? {
        return Err(Error::failed("a relay can not lie in the home:")
            .at(dir)
            .hint("a sync client that carries it would carry parts of the home: choose a folder outside"));
    }
    if disk::exists(dir) && inside(home.root(), dir)? {
        return Err(Error::failed("the home can not lie in the relay:")
            .at(dir)
            .hint("a sync client would carry the home itself: choose a folder of its own"));
    }
    Ok(())
}
