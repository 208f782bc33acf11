//! `.wbhome/leases.json`: what each device said when this home looked last, and since when it has said that.
//!
//! How long a device has been silent is told by our own clock: theirs may be wrong, and the times of files in a folder
//! that is carried are those of the sync client. What stands here is also gone by while the relay folder can not be
//! reached. It may be deleted at any time, and one that can not be understood is none.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Devices, Relay, Said};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result};
use crate::disk::{self, Written};
use crate::home::{Home, LockedHome};

const FORMAT: u64 = 1;
const LIMIT: u64 = 256 << 20;

/// What was heard of all devices of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When they were looked at last; `None`: never.
    pub at: Option<Timestamp>,
    devices: BTreeMap<String, Heard>,
}

/// What a device said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    /// Since when it has said just that, as far as was seen from here.
    since: Timestamp,
    said: Said,
}

#[derive(Serialize, Deserialize)]
struct Document<'s> {
    format: u64,
    /// The relay folder: of another one nothing is known.
    relay: ExactPath,
    at: Timestamp,
    devices: std::borrow::Cow<'s, BTreeMap<String, Heard>>,
}

impl Seen {
    /// What was noted of the relay in this folder. Whatever can not be understood is nothing.
    pub fn read(home: &Home, relay: &Path) -> Seen {
        let content = disk::read_small(&home.leases_file(), LIMIT).ok().flatten();
        let document = content.and_then(|text| serde_json::from_slice::<Document>(&text).ok());
        let ours = |document: &Document| document.format == FORMAT && *document.relay == *relay;
        match document.filter(ours) {
            Some(document) => Seen {
                at: Some(document.at),
                devices: document.devices.into_owned(),
            },
            None => Seen::default(),
        }
    }

    /// What each device said.
    pub fn all(&self) -> impl Iterator<Item = Said> {
        self.devices.values().map(|heard| heard.said.clone())
    }

    /// Since when a device has said just that, by our own clock; `None` when it said something else, or was not there,
    /// when this home looked last.
    pub fn unchanged_since(&self, said: &Said) -> Option<Timestamp> {
        let heard = self.devices.get(&said.device)?;
        (heard.said == *said).then_some(heard.since)
    }

    fn with(&self, devices: &Devices, now: Timestamp) -> Seen {
        let heard = |said: &Said| Heard {
            since: self.unchanged_since(said).unwrap_or(now),
            said: said.clone(),
        };
        let devices = devices.all();
        Seen {
            at: Some(now),
            devices: devices
                .map(|said| (said.device.clone(), heard(said)))
                .collect(),
        }
    }
}

/// Notes what all devices say now, for whoever has the lock and the relay open.
///
/// # Errors
/// When it can not be written.
pub fn note(home: &LockedHome, relay: &mut Relay, context: &Context) -> Result<()> {
    let now = context.clock.now();
    let seen = relay.seen.with(&relay.devices, now);
    let path = home.leases_file();
    let document = Document {
        format: FORMAT,
        relay: relay.path.clone().into(),
        at: now,
        devices: std::borrow::Cow::Borrowed(&seen.devices),
    };
    let text = serde_json::to_vec(&document).map_err(|e| Error::io("can not write", &path, e))?;
    let mut expected = disk::read_small(&path, u64::MAX)?;
    while let Written::Changed(now) = disk::replace(&path, expected.as_deref(), &text, 0o600)? {
        expected = now;
    }
    relay.seen = seen;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    fn said(device: u8, beat: u64) -> Said {
        let path = std::path::PathBuf::from("/主页").into();
        let id = format!("{device:032x}");
        let mut said = Said::first(&id, "host", "home", path, Timestamp::UNIX_EPOCH);
        said.beat = beat;
        said
    }

    #[test]
    fn a_device_is_silent_since_its_word_was_seen_first() {
        let moment = |s: i64| Timestamp::new(s, 0).unwrap();
        let this = format!("{:032x}", 1);
        let devices = |beat| Devices::noted(&this, vec![said(1, 0), said(2, beat)]);
        let seen = Seen::default().with(&devices(7), moment(100));
        let seen = seen.with(&devices(7), moment(200));
        assert_eq!(seen.unchanged_since(&said(2, 7)), Some(moment(100)));
        assert_eq!(seen.unchanged_since(&said(2, 8)), None);
        let seen = seen.with(&devices(8), moment(300));
        assert_eq!(seen.unchanged_since(&said(2, 8)), Some(moment(300)));
    }

    #[test]
    fn what_can_not_be_understood_is_nothing() {
        let place = testing::home();
        let relay = Path::new("/中继");
        let whole = r#"{"format":1,"relay":"/中继","at":"2024-06-15T12:00:00Z","devices":{}}"#;
        for (text, is_known) in [
            (whole, true),
            (&whole.replace("中继", "other"), false),
            (&whole.replace(":1,", ":9,"), false),
            (&whole[..40], false),
            ("", false),
        ] {
            place.put(".wbhome/leases.json", text);
            assert_eq!(
                Seen::read(&place.home, relay).at.is_some(),
                is_known,
                "{text}"
            );
        }
    }
}
