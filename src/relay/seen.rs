//! `.wbhome/leases.json`: what each device said when this home looked last, and since when it has said that.
//!
//! How long a device has been silent is told by our own clock: theirs may be wrong, and the times of files in a folder
//! that is carried are those of the sync client. What stands here is also gone by while the relay folder can not be
//! reached. It may be deleted at any time, and one that can not be understood is none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::devices::FILES;
use super::said::{OfLeases, Wanted};
use super::{Devices, Relay, Said};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result};
use crate::disk;
use crate::home::{Home, Index, LockedHome};

const FORMAT: u64 = 1;
const LIMIT: u64 = 256 << 20;

/// So much of it may be what devices have said.
const NOTED: u64 = 128 << 20;

/// What was heard of all devices of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When they were looked at last; `None`: never.
    pub at: Option<Timestamp>,
    devices: BTreeMap<String, Heard>,
    /// Sessions that this home had at a time when this device held their lease, as long as it does.
    had: BTreeSet<String>,
}

/// What a device said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heard<S = Said> {
    /// Since when it has said just that, as far as was seen from here.
    since: Timestamp,
    /// Since when its file is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<Timestamp>,
    said: S,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de>"))]
struct Document<S = Said> {
    format: u64,
    /// The relay folder: of another one nothing is known.
    relay: ExactPath,
    at: Timestamp,
    devices: BTreeMap<String, Heard<S>>,
    #[serde(default)]
    had: BTreeSet<String>,
}

impl Seen {
    /// What was noted of the relay in this folder. Whatever can not be understood is nothing.
    pub fn read(home: &Home, relay: &Path) -> Seen {
        Seen::read_as(home, relay, Wanted::All)
    }

    /// Like [`Seen::read`], so much of it.
    pub(super) fn read_as(home: &Home, relay: &Path, wanted: Wanted) -> Seen {
        let content = disk::read_small(&home.leases_file(), LIMIT).ok().flatten();
        let content = content.unwrap_or_default();
        let document = match wanted {
            Wanted::All => serde_json::from_slice::<Document>(&content).ok(),
            Wanted::Leases => serde_json::from_slice::<Document<OfLeases>>(&content)
                .ok()
                .map(Document::from),
        };
        let ours = |document: &Document| document.format == FORMAT && *document.relay == *relay;
        match document.filter(ours) {
            Some(document) => Seen {
                at: Some(document.at),
                devices: document.devices,
                had: document.had,
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

    /// Whether a device said something when this home looked last.
    pub fn knows(&self, device: &str) -> bool {
        self.devices.contains_key(device)
    }

    /// Since when the file of a device is not there any more, by our own clock, if that was noted.
    pub fn gone_since(&self, device: &str) -> Option<Timestamp> {
        self.devices.get(device)?.gone
    }

    /// Whether this home has had a session, since this device holds its lease. `false` also when that was never looked at.
    pub fn had(&self, session: &str) -> bool {
        self.had.contains(session)
    }

    fn with(&self, devices: &Devices, index: Option<&Index>, now: Timestamp) -> Seen {
        let heard = |said: &Said| {
            let gone = devices.is_gone(&said.device);
            Heard {
                since: self.unchanged_since(said).unwrap_or(now),
                gone: gone.then(|| self.gone_since(&said.device).unwrap_or(now)),
                said: said.clone(),
            }
        };
        // What is there is noted before what has gone, and no more than is read again.
        let mut all: Vec<Heard> = devices.all().map(heard).collect();
        all.sort_by_key(|heard| heard.gone.is_some());
        let mut bytes = 0;
        all.truncate(FILES);
        all.retain(|heard| {
            bytes += serde_json::to_vec(heard).map_or(NOTED, |text| text.len() as u64);
            bytes < NOTED
        });
        let is_here = |session: &str| index.is_some_and(|index| index.find(session).is_some());
        let own = devices.own().into_iter().flat_map(|own| own.leases.keys());
        let by_id = |heard: Heard| (heard.said.device.clone(), heard);
        Seen {
            at: Some(now),
            devices: all.into_iter().map(by_id).collect(),
            had: own
                .filter(|session| self.had(session) || is_here(session))
                .cloned()
                .collect(),
        }
    }
}

impl From<Document<OfLeases>> for Document {
    fn from(document: Document<OfLeases>) -> Document {
        let whole = |heard: Heard<OfLeases>| Heard {
            since: heard.since,
            gone: heard.gone,
            said: heard.said.into(),
        };
        let devices = document.devices.into_iter();
        Document {
            format: document.format,
            relay: document.relay,
            at: document.at,
            devices: devices.map(|(id, heard)| (id, whole(heard))).collect(),
            had: document.had,
        }
    }
}

/// Notes what all devices say now, for whoever has the lock and the relay open.
///
/// # Errors
/// When it can not be written.
pub fn note(home: &LockedHome, relay: &mut Relay, context: &Context) -> Result<()> {
    let now = context.clock.now();
    // Of an index that can not be understood it is not known what is here.
    let index = Index::read(home).ok();
    let seen = relay.seen.with(&relay.devices, index.as_ref(), now);
    let path = home.leases_file();
    let document = Document {
        format: FORMAT,
        relay: relay.path.clone().into(),
        at: now,
        devices: seen.devices,
        had: seen.had,
    };
    let text = serde_json::to_vec(&document).map_err(|e| Error::io("can not write", &path, e))?;
    disk::replace_any(&path, &text, 0o600)?;
    relay.seen = Seen {
        at: Some(now),
        devices: document.devices,
        had: document.had,
    };
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
        let seen = Seen::default().with(&devices(7), None, moment(100));
        let seen = seen.with(&devices(7), None, moment(200));
        assert_eq!(seen.unchanged_since(&said(2, 7)), Some(moment(100)));
        assert_eq!(seen.unchanged_since(&said(2, 8)), None);
        let seen = seen.with(&devices(8), None, moment(300));
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
