//! What is known of the other devices, whether or not their folder can be reached.

use std::path::Path;

use jiff::Timestamp;

use super::said::Wanted;
use super::{Devices, Seen};
use crate::disk::Dir;
use crate::home::{Device, Home};

/// What all devices say.
#[derive(Clone, Debug)]
pub struct Look {
    /// What they say now, or said when the folder could be reached last.
    pub devices: Devices,
    /// What was noted of them.
    pub seen: Seen,
    /// Why the folder can not be gone by, for a person, and when it was looked at last: then that is what `devices` holds.
    pub noted: Option<(String, Option<Timestamp>)>,
}

/// Looks at what all devices say in the relay in this folder, and changes nothing. A device that is not known is none of those
/// that speak there. Where the folder can not be reached, what was noted counts.
pub fn look(home: &Home, relay: &Path, device: Option<&Device>) -> Look {
    look_as(home, relay, device, Wanted::All)
}

/// Like [`look`], at so much of it.
pub(super) fn look_as(home: &Home, relay: &Path, device: Option<&Device>, wanted: Wanted) -> Look {
    let this = device.map_or("", |device| &device.id);
    let seen = Seen::read_as(home, relay, wanted);
    match read(relay, this, wanted) {
        Ok(mut devices) => {
            devices.stand_in(seen.all());
            Look {
                devices,
                seen,
                noted: None,
            }
        }
        Err(why) => Look {
            devices: Devices::noted(this, seen.all().collect()),
            noted: Some((why, seen.at)),
            seen,
        },
    }
}

fn read(relay: &Path, this: &str, wanted: Wanted) -> Result<Devices, String> {
    let root = Dir::open(relay).map_err(|e| crate::base::human::io(&e))?;
    let devices = Devices::read_as(&root, relay, this, wanted).map_err(|e| e.to_string())?;
    // The empty folder that a disk is mounted on says nothing either.
    match devices.all().next().is_some() || !devices.strange.is_empty() {
        true => Ok(devices),
        false => Err("no device says anything in it".to_owned()),
    }
}
