//! `wbhome-store.json`: what makes a folder a store, and whose. A disk that is not mounted is an empty folder; without
//! the marker nothing is written into it.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::base::wire::ExactPath;
use crate::base::{Error, Kind, Result};
use crate::disk::{self, Dir};
use crate::home::Home;

/// The name of the file.
pub(super) const NAME: &str = "wbhome-store.json";

/// The format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;

/// The marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Its format.
    pub format: u32,
    /// The home that is backed up here.
    pub home: String,
    /// Where that home lies.
    pub path: ExactPath,
    /// The machine that it lies on.
    pub device: Device,
    /// When the store was made.
    pub created: Timestamp,
    /// Why the agent application's own folder is not kept here, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_state: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// What tells it from others: made from the machine's own id where it has one, else from its name.
    pub id: String,
    /// What it calls itself.
    pub host: String,
}

impl Device {
    /// This machine.
    pub fn this() -> Device {
        let host = disk::host_name();
        // The id itself is not to be shown to anybody: machine-id(5).
        let own = disk::machine_id().unwrap_or_else(|| host.clone());
        let id = blake3::derive_key("wbhome 2024 device of a store", own.as_bytes());
        let id = blake3::Hash::from_bytes(id).to_hex()[..32].to_owned();
        Device { id, host }
    }
}

impl Marker {
    /// A marker for this home on this machine.
    ///
    /// # Errors
    /// A home whose real path can not be found.
    pub(super) fn of(
        home: &Home,
        created: Timestamp,
        without_state: Option<String>,
    ) -> Result<Marker> {
        Ok(Marker {
            format: FORMAT,
            home: home.id().to_owned(),
            path: disk::real_path(home.root())?.into(),
            device: Device::this(),
            created,
            without_state,
        })
    }

    /// Of a store that has lost its own, until a snapshot of it says more.
    pub(super) fn unknown(store: &Path) -> Marker {
        Marker {
            format: FORMAT,
            home: String::new(),
            path: store.to_path_buf().into(),
            device: Device::this(),
            created: Timestamp::UNIX_EPOCH,
            without_state: None,
        }
    }

    /// Of a store that has lost its own, as far as a snapshot of it knows.
    pub(super) fn as_of(snapshot: &Snapshot) -> Marker {
        let then = &snapshot.home;
        Marker {
            format: FORMAT,
            home: then.id.clone(),
            path: then.path.clone(),
            device: then.device.clone(),
            created: snapshot.at,
            without_state: None,
        }
    }

    /// Reads the marker of a store; `None` when the folder is none.
    ///
    /// # Errors
    /// One that can not be read or understood, or is of a newer format.
    pub(super) fn read(dir: &Dir) -> Result<Option<Marker>> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let fail = |error| Error::io("can not read", NAME, error);
        let Some(text) = disk::read_small_in(dir, NAME.as_ref(), 1 << 20).map_err(fail)? else {
            return Ok(None);
        };
        match serde_json::from_slice::<Format>(&text) {
            Ok(found) if found.format > FORMAT => Err(Error::new(
                Kind::Newer,
                format!(
                    "the store is of a newer format ({}, this program knows {FORMAT}):",
                    found.format
                ),
            )
            .at(NAME)
            .hint("use the newer wbhome; stock tools unpack what is in it, too")),
            _ => serde_json::from_slice(&text).map(Some).map_err(|error| {
                Error::failed("the marker of the store can not be understood:")
                    .at(NAME)
                    .because(error)
            }),
        }
    }

    /// What tells that this store belongs to something else than this home on this machine.
    ///
    /// # Errors
    /// A home whose real path can not be found.
    pub(super) fn disagrees(&self, home: &Home) -> Result<Option<String>> {
        let now = Marker::of(home, self.created, None)?;
        Ok(if self.home != now.home {
            Some("it belongs to another home".to_owned())
        } else if self.device.id != now.device.id {
            Some(format!(
                "it belongs to the same home on another machine, {}",
                crate::base::human::escape(&self.device.host)
            ))
        } else if self.path != now.path {
            Some(format!(
                "it belongs to the home when that was {}",
                crate::base::human::path(&self.path)
            ))
        } else {
            None
        })
    }
}
